//! The sums of a file for people.

use std::{io::Write, sync::Arc};

use afterimage::{
    bill::MediaCount,
    request::Provenance,
    session::RequestSums,
    transcript::{ImportReport, TranscriptFormat},
    window::ContextSize,
};
use anstyle::Style;
use indexmap::IndexMap;

use super::{
    context::{Contexts, OfRequest},
    frames::FrameSums,
    ledger::{Ledger, Sums},
    media::MediaSums,
};
use crate::{
    failure::Outcome,
    input::Source,
    labels::Label,
    lens::{Counts, Lens},
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, percent, plural, printable, shortened},
    usage::Reported,
    view,
};

/// The columns of a bar that stands for everything.
const BAR: usize = 24;

pub(super) fn print(
    counts: &Counts,
    (frames, ledger, contexts, media): (&FrameSums, &Ledger, &Contexts, &MediaSums),
    reported: &Reported<'_>,
    source: &Source,
    out: &mut Output,
) -> Outcome {
    let report = source.report();
    let bold = out.paint.style(style::HEADING);
    view::file(out, &source.name(), source.format().name())?;
    let mut held = vec![counted(source.sessions(), "session")];
    held.extend(frames.held());
    writeln!(out, "{}\n", held.join(" · "))?;
    writeln!(out, "  {bold}THE WHOLE HISTORY{bold:#}")?;
    figures(ledger, &counts.tokenizer(), out)?;
    if let Some(error) = &counts.error {
        let dim = out.paint.style(style::DIM);
        writeln!(out, "  {:<14}{:>12}  {dim}{error}{dim:#}", "error", "")?;
    }
    media.print(out)?;
    if contexts.sums.requests > 0 {
        requests(contexts, source.format(), source.sessions() > 1, out)?;
    }
    reported.block(out)?;
    bars("BY ROLE", &ledger.by_role, ledger.all.tokens, role_style, out)?;
    bars("BY TYPE", &ledger.by_type, ledger.all.tokens, style::of_type, out)?;
    facets(ledger, source.sessions() > 1, out)?;
    if !report.skipped.is_empty() {
        let mut kinds: Vec<_> = report.skipped.iter().collect();
        kinds.sort_by(|(_, a), (_, b)| b.cmp(a));
        let (unsent, others): (Vec<_>, Vec<_>) =
            kinds.into_iter().partition(|(kind, _)| ImportReport::is_unsent(kind));
        writeln!(out)?;
        let labels = ["Records that the model never saw", "Metadata that is in no context"];
        for (label, kinds) in labels.into_iter().zip([unsent, others]) {
            let kinds: Vec<_> =
                kinds.iter().map(|(kind, count)| format!("{kind} {}", grouped(**count))).collect();
            if !kinds.is_empty() {
                view::note(out, 0, &format!("{label}: {}", kinds.join(", ")))?;
            }
        }
    }
    Ok(())
}

/// The sums of one request.
pub(super) fn print_request(
    of: &OfRequest,
    source: &Source,
    lens: &Lens,
    out: &mut Output,
) -> Outcome {
    let bold = out.paint.style(style::HEADING);
    let (name, number) = (source.name(), of.number);
    writeln!(out, "{bold}{}{bold:#}  request {number}", printable(&name))?;
    if let Some(note) = crate::recorded::provenance_note(source.format(), &of.provenance) {
        view::note(out, 0, &note)?;
    }
    writeln!(out, "{}\n", held(of.size))?;
    figures(&of.ledger, &lens.own_counts().tokenizer(), out)?;
    if of.media.parts > 0 {
        let MediaCount { parts, tokens, unknown, .. } = of.media;
        let says = format!(
            "{} by their providers' rules, {} of unknown cost",
            counted(parts, "media item"),
            grouped(unknown)
        );
        rows(&[("media", tokens, says)], out)?;
    }
    bars("BY ROLE", &of.ledger.by_role, of.ledger.all.tokens, role_style, out)?;
    bars("BY TYPE", &of.ledger.by_type, of.ledger.all.tokens, style::of_type, out)?;
    facets(&of.ledger, false, out)
}

/// What a context holds.
fn held(size: ContextSize) -> String {
    let mut held = vec![counted(size.messages, "message"), counted(size.frames, "frame")];
    if size.replaced > 0 {
        held.push(format!("{} replaced", counted(size.replaced, "frame")));
    }
    held.join(" · ")
}

/// What the requests hold: of the history the last one may hold a part.
fn requests(
    contexts: &Contexts,
    format: TranscriptFormat,
    has_sessions: bool,
    out: &mut Output,
) -> Outcome {
    let RequestSums { requests, tokens, last, .. } = contexts.sums;
    let bold = out.paint.style(style::HEADING);
    let title = if has_sessions { "THE LAST CONTEXT OF EACH SESSION" } else { "THE LAST CONTEXT" };
    let note = match &contexts.provenance {
        Provenance::Sent => "as it was sent, with its tools and parameters".to_owned(),
        of if of.is_logged() => "as the client logged it, with its tools and parameters".to_owned(),
        other => crate::recorded::provenance_note(format, other).unwrap_or_default(),
    };
    writeln!(out, "\n  {bold}{title}{bold:#}")?;
    view::note(out, 2, &note)?;
    let figures = [
        ("tokens", contexts.sums.last_tokens(), held(last)),
        ("bytes", last.bytes, String::new()),
        ("all contexts", tokens, format!("tokens of {} together", counted(requests, "request"))),
    ];
    rows(&figures, out)
}

fn figures(ledger: &Ledger, tokenizer: &str, out: &mut Output) -> Outcome {
    let Sums { chunks, bytes, tokens } = ledger.all;
    let off = match tokens {
        0 => String::new(),
        _ => format!(
            ", {:+.1} %",
            (ledger.estimated_tokens as f64 - tokens as f64) * 100.0 / tokens as f64
        ),
    };
    let figures = [
        ("tokens", tokens, format!("in {}, by {tokenizer}", counted(chunks, "chunk"))),
        ("estimate", ledger.estimated_tokens, format!("chars4{off}")),
        ("repeated", ledger.repeated.tokens, percent(ledger.repeated.tokens, tokens)),
        ("unattributed", ledger.unattributed.tokens, percent(ledger.unattributed.tokens, tokens)),
        ("bytes", bytes, String::new()),
    ];
    rows(&figures, out)
}

fn rows(figures: &[(&str, u64, String)], out: &mut Output) -> Outcome {
    let dim = out.paint.style(style::DIM);
    for (name, figure, says) in figures {
        write!(out, "  {name:<14}{:>12}", grouped(*figure))?;
        if !says.is_empty() {
            write!(out, "  {dim}{says}{dim:#}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn role_style(name: &str) -> Style {
    style::of_role(afterimage::id::Role::from_name(name))
}

fn bars(
    title: &str,
    sums: &IndexMap<Arc<str>, Sums>,
    whole: u64,
    style_of: fn(&str) -> Style,
    out: &mut Output,
) -> Outcome {
    if sums.is_empty() {
        return Ok(());
    }
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.tokens));
    let bold = out.paint.style(style::HEADING);
    writeln!(out, "\n  {bold}{title:<14}{:>12}{:>2$}{bold:#}", "TOKENS", "CHUNKS", BAR + 19)?;
    for (name, Sums { chunks, tokens, .. }) in sums {
        let style = out.paint.style(style_of(name));
        let name = printable(name);
        let name = shortened(&name, 14);
        let bar = bar(*tokens, whole);
        writeln!(
            out,
            "  {style}{name:<14}{style:#}{:>12}  {style}{bar:<BAR$}{style:#} {:>7} {:>8}",
            grouped(*tokens),
            percent(*tokens, whole),
            grouped(*chunks)
        )?;
    }
    Ok(())
}

/// A bar in eighths of a column.
fn bar(part: u64, whole: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let whole = u128::from(whole.max(1));
    let eighths = (u128::from(part) * (BAR as u128 * 8) + whole / 2) / whole;
    let eighths = usize::try_from(eighths).unwrap_or(BAR * 8);
    // What is not nothing is to be seen.
    let eighths = if part > 0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS.get(eighths % 8).unwrap_or(&""))
}

fn facets(ledger: &Ledger, has_sessions: bool, out: &mut Output) -> Outcome {
    let largest = ledger.largest();
    if largest.is_empty() {
        return Ok(());
    }
    let title = plural(largest.len() as u64, "FACET").to_uppercase();
    let bold = out.paint.style(style::HEADING);
    writeln!(out, "\n  {bold}LARGEST {title}{bold:#}")?;
    let [time, line] = Label::columns();
    let table = Table::new([
        Column::number("TOKENS", 9),
        Column::number("BYTES", 10),
        time,
        line,
        Column::number("FRAME", 6),
        Column::text(if has_sessions { "FACET (SESSION)" } else { "FACET" }, 0),
    ]);
    table.head(out)?;
    for ((session, facet), sums) in largest {
        let kind = sums.chunk_type.as_deref().unwrap_or("none");
        let id = if has_sessions { format!("{facet} ({session})") } else { facet.to_string() };
        let [time, line] = sums.label.cells();
        table.row(
            out,
            vec![
                plain(grouped(sums.sums.tokens)),
                plain(grouped(sums.sums.bytes)),
                time,
                line,
                plain(sums.sequence.map_or_else(|| "–".to_owned(), |frame| frame.to_string())),
                (sums.label.name(kind, &id, table.rest(out)), style::of_type(kind)),
            ],
        )?;
    }
    Ok(())
}
