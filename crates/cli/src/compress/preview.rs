//! What compression of a range would do.

use std::io::Write;

use afterimage::{compress::StayingFrames, id::FrameSeq, json::Value, window::RangePreview};

use crate::{
    failure::Outcome,
    fitting::Previewed,
    json::object,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, printable},
    view,
};

fn frames(from: FrameSeq, to: FrameSeq) -> String {
    if from == to { from.to_string() } else { format!("{from}–{to}") }
}

/// For people.
pub(super) fn page(of: &Previewed<'_>, out: &mut Output) -> Outcome {
    let RangePreview { plan, tokens_before, tokens_after, tokens_unchanged, .. } = &of.preview;
    let title = if plan.goes.is_empty() {
        counted(*tokens_before, "token")
    } else {
        format!("{} → at most {} tokens", grouped(*tokens_before), grouped(*tokens_after))
    };
    view::rule(out, &title, style::HEADING, &printable(&of.name))?;
    let table =
        Table::new([Column::text("WHAT", 10), Column::text("FRAMES", 13), Column::text("WHY", 0)]);
    table.head(out)?;
    for run in &plan.goes {
        let cells = ["goes".to_owned(), frames(*run.start(), *run.end()), "one block".to_owned()];
        table.row(out, cells.into_iter().map(plain).collect())?;
    }
    for StayingFrames { from, to, reason } in &plan.stays {
        let cells = ["stays".to_owned(), frames(*from, *to), reason.to_string()];
        table.row(out, cells.into_iter().map(plain).collect())?;
    }
    writeln!(out)?;
    if plan.goes.is_empty() {
        return Ok(writeln!(out, " None of these frames can be compressed.")?);
    }
    let (blocks, tokens) = (plan.goes.len() as u64, counted(plan.tokens, "token"));
    let (blocks, limit) = (counted(blocks, "block"), grouped(plan.limit));
    writeln!(out, " {tokens} become {blocks} of at most {limit}.")?;
    Ok(writeln!(
        out,
        " The cache keeps {} and loses {}; at most {} are written anew.",
        grouped(*tokens_unchanged),
        grouped(of.preview.lost_from_cache()),
        grouped(of.preview.written_anew()),
    )?)
}

/// For programs.
pub(super) fn json(of: &Previewed<'_>) -> Value {
    let RangePreview { plan, tokens_before, tokens_after, tokens_unchanged, .. } = &of.preview;
    let goes = plan.goes.iter().map(|run| {
        object! { "from": run.start().get(), "to": run.end().get() }
    });
    let stays = plan.stays.iter().map(|of| {
        object! { "from": of.from.get(), "to": of.to.get(), "reason": of.reason.to_string() }
    });
    let mut line = object! {
        "session": &*of.name,
        "goes": goes.collect::<Value>(),
        "stays": stays.collect::<Value>(),
        "tokens": plan.tokens,
        "limit": plan.limit,
        "tokensBefore": *tokens_before,
        "tokensAfter": *tokens_after,
        "tokensUnchanged": *tokens_unchanged,
        "lostFromCache": of.preview.lost_from_cache(),
        "writtenAnew": of.preview.written_anew(),
    };
    if of.source.is_one_of_several {
        line.shift_insert(0, "file".to_owned(), of.source.name().into());
    }
    line.into()
}
