//! The page of `compress`: the context or its blocks, then a summary.

use std::{io::Write, sync::Arc};

use afterimage::{
    compress::CompressionBlock,
    snapshot::{ChunkRef, SubstitutionKind},
    window::FittedContext,
};

use super::places::Places;
use crate::{
    failure::Outcome,
    fitting::Session,
    labels::Label,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, percent, printable},
    view,
};

/// From how many columns on the table has room for the numbers of frames, which ids hold too.
const WIDE: usize = 110;

/// Writes the context, message by message, then the summary.
pub(super) fn text(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    for (index, message) in fitted.context.messages().iter().enumerate() {
        let is_ledger = message.substitution_kind() == Some(SubstitutionKind::Ledger);
        let from = match (message.is_block(), message.frames()) {
            (true, Some((_, to))) if is_ledger => format!("where things stand after frame {to}"),
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

/// Writes the blocks with their texts, then the summary.
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

/// Writes the tokens before and after, and a row for each block, shortened frame and dropped range.
pub(super) fn summary(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    let (before, after) = (session.tokens_before, session.tokens_after);
    let (budget, tools) = (session.window.budget().max_tokens, session.overhead.total());
    let title = format!("{} → {} tokens", grouped(before), grouped(after));
    let name = printable(&session.name).into_owned();
    view::rule(out, &title, style::HEADING, &name)?;
    let lacks = session.counts.lacks.map_or_else(String::new, |lacks| {
        let tokens = counted(lacks.tokens, "token");
        format!("; the transcript lacks {tokens} of a request{}", lacks.from())
    });
    if budget < u64::MAX {
        let share = percent(after.saturating_add(tools), budget);
        let with = match tools {
            0 => String::new(),
            tools => format!(" with {} of tools", counted(tools, "token")),
        };
        writeln!(out, " {share} of a budget of {}{with}{lacks}", grouped(budget))?;
    }
    writeln!(out, " Counted by {}", session.counts)?;
    let [before, after] = session.media;
    if before.parts > 0 {
        let unknown = match after.unknown {
            0 => String::new(),
            unknown => format!("; the tokens of {} more are unknown", grouped(unknown)),
        };
        let (stay, all) = (grouped(after.parts), grouped(before.parts));
        let tokens = counted(after.tokens, "token");
        writeln!(out, " Images and documents: {stay} of {all}, {tokens} of the budget{unknown}")?;
    }
    let is_wide = out.width >= WIDE;
    let mut columns = vec![Column::text("WHAT", 9)];
    columns.extend(is_wide.then(|| Column::text("FRAMES", 11)));
    columns.extend(Label::columns());
    columns.extend([
        Column::number("BEFORE", 8),
        Column::number("AFTER", 7),
        Column::text("ID FOR expand --block, TOOLS", 0),
    ]);
    let table = Table::new(columns);
    let places = Places::of(&session.history);
    let mut rows = Vec::new();
    for block in session.blocks() {
        let what = if block.level > 1 { format!("block, {}", block.level) } else { "block".into() };
        let frames = (block.from, block.to);
        rows.push((what, frames, [block.original_tokens, block.tokens], Arc::clone(&block.id)));
    }
    for shortened in fitted.shortened.iter() {
        let (frames, tokens) = ((shortened.frame, shortened.frame), shortened.tokens);
        let tokens = [shortened.original_tokens, tokens];
        rows.push((shortened.kind().into(), frames, tokens, Arc::clone(&shortened.id)));
    }
    for dropped in fitted.dropped.iter() {
        let frames = (dropped.from, dropped.to);
        rows.push(("left out".into(), frames, [dropped.tokens, 0], dropped.id()));
    }
    if rows.is_empty() {
        return Ok(writeln!(out, " It fits unchanged.")?);
    }
    writeln!(out)?;
    table.head(out)?;
    for (what, (from, to), tokens, id) in rows {
        let place = places.of_frames(from, to);
        let mut cells = vec![plain(what)];
        cells.extend(
            is_wide.then(|| {
                plain(if from == to { from.to_string() } else { format!("{from}–{to}") })
            }),
        );
        cells.extend(place.first.cells());
        cells.extend(tokens.map(|tokens| plain(grouped(tokens))));
        cells.push(plain(place.after(&id, table.rest(out))));
        table.row(out, cells)?;
    }
    Ok(writeln!(out)?)
}
