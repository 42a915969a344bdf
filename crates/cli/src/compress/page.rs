//! What a budget came to, for people.

use std::io::Write;

use afterimage::{
    compress::CompressionBlock, snapshot::ChunkRef, tokens::Certainty, window::FittedContext,
};

use crate::{
    failure::Outcome,
    fitting::Session,
    lens::Counts,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, percent, printable},
    view,
};

/// The context, message by message, and what it took.
pub(super) fn text(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    for (index, message) in fitted.context.messages().iter().enumerate() {
        let from = match (message.is_block(), message.frames()) {
            (true, Some((from, to))) if from == to => format!("in place of frame {from}"),
            (true, Some((from, to))) => format!("in place of frames {from} to {to}"),
            (_, Some((frame, _))) => format!("frame {frame}"),
            (_, None) => "after the last frame".to_owned(),
        };
        let after = format!("{from} · {}", counted(message.tokens(), "token"));
        view::heading(out, index, Some(message.role()), &after)?;
        let chunks: Vec<ChunkRef<'_>> =
            fitted.context.runs(message).filter_map(|run| run.chunk).collect();
        view::body_of(out, &chunks)?;
        writeln!(out)?;
    }
    summary(session, fitted, out)
}

/// The blocks and what they say, and what it took.
pub(super) fn blocks(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    for block in session.blocks() {
        let CompressionBlock { from, to, original_tokens, tokens, .. } = **block;
        let after =
            format!("frames {from} to {to} · {} → {}", grouped(original_tokens), grouped(tokens));
        view::rule(out, &block.id, style::HEADING, &after)?;
        let chunks: Vec<ChunkRef<'_>> = block.snapshot.chunks().collect();
        view::body_of(out, &chunks)?;
        writeln!(out)?;
    }
    summary(session, fitted, out)
}

fn summary(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    let (before, after) = (session.tokens_before, session.tokens_after);
    let budget = session.window.budget().room();
    let title = format!("{} → {} tokens", grouped(before), grouped(after));
    let name = printable(&session.name).into_owned();
    view::rule(out, &title, style::HEADING, &name)?;
    let share = percent(after, budget);
    let lacks = session.counts.lacks.map_or_else(String::new, |lacks| {
        format!(", beside {} that the transcript lacks", counted(lacks, "token"))
    });
    writeln!(out, " {share} of a budget of {}{lacks}", grouped(budget))?;
    if session.counts.certainty == Certainty::Calibrated {
        let Counts { tokenizer, certainty, .. } = &session.counts;
        writeln!(out, " Counts are {certainty}: {tokenizer}")?;
    }
    let table = Table::new([
        Column::text("WHAT", 10),
        Column::text("FRAMES", 13),
        Column::number("BEFORE", 9),
        Column::number("AFTER", 9),
        Column::text("EXPAND WITH --block", 0),
    ]);
    let mut rows = Vec::new();
    for block in session.blocks() {
        let what = if block.level > 1 { format!("block, {}", block.level) } else { "block".into() };
        let frames = format!("{}–{}", block.from, block.to);
        rows.push((what, frames, block.original_tokens, block.tokens, block.id.to_string()));
    }
    for shortened in fitted.shortened.iter() {
        let (frame, id) = (shortened.frame.to_string(), shortened.id.to_string());
        rows.push(("shortened".into(), frame, shortened.original_tokens, shortened.tokens, id));
    }
    for dropped in fitted.dropped.iter() {
        let frames = format!("{}–{}", dropped.from, dropped.to);
        let id = dropped.id().to_string();
        rows.push(("left out".into(), frames, dropped.tokens, 0, id));
    }
    if rows.is_empty() {
        return Ok(writeln!(out, " It fits unchanged.")?);
    }
    writeln!(out)?;
    table.head(out)?;
    for (what, frames, before, after, id) in rows {
        let cells = [what, frames, grouped(before), grouped(after), id];
        table.row(out, cells.into_iter().map(plain).collect())?;
    }
    Ok(writeln!(out)?)
}
