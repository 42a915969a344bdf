//! What compression of a range would do.

use std::io::Write;

use afterimage::{compress::StayingFrames, id::FrameSeq, window::RangePreview};

use crate::{
    answer::answer,
    failure::Outcome,
    fitting::Previewed,
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
pub(super) fn answer(of: &Previewed<'_>) -> PreviewAnswer {
    let RangePreview { plan, tokens_before, tokens_after, tokens_unchanged, .. } = &of.preview;
    let goes = plan.goes.iter().map(|run| FrameRun { from: *run.start(), to: *run.end() });
    let stays = plan.stays.iter().map(|of| StayingRun {
        from: of.from,
        to: of.to,
        reason: of.reason.to_string(),
    });
    PreviewAnswer {
        file: of.source.file(),
        session: of.name.to_string(),
        goes: goes.collect(),
        stays: stays.collect(),
        tokens: plan.tokens,
        limit: plan.limit,
        tokens_before: *tokens_before,
        tokens_after: *tokens_after,
        tokens_unchanged: *tokens_unchanged,
        lost_from_cache: of.preview.lost_from_cache(),
        written_anew: of.preview.written_anew(),
    }
}

answer! {
    /// What compression of a range would do.
    pub(crate) struct PreviewAnswer {
        /// the file, where several are named
        file?: String,
        /// the session
        session: String,
        /// runs of frames that one block each is to stand for
        goes: Vec<FrameRun>,
        /// frames that stay
        stays: Vec<StayingRun>,
        /// the tokens of what goes
        tokens: u64,
        /// how many of these the summaries may have
        limit: u64,
        /// the tokens of the context as it stands
        tokens_before: u64,
        /// its tokens with the blocks, at most
        tokens_after: u64,
        /// those before the first changed byte, which a cache still serves
        tokens_unchanged: u64,
        /// the rest of those before
        lost_from_cache: u64,
        /// the rest of those after, at most
        written_anew: u64,
    }

    /// Frames that follow each other.
    pub(crate) struct FrameRun {
        /// the first
        from: FrameSeq,
        /// the last
        to: FrameSeq,
    }

    /// Frames that stay.
    pub(crate) struct StayingRun {
        /// the first
        from: FrameSeq,
        /// the last
        to: FrameSeq,
        /// why, in a sentence
        reason: String,
    }
}
