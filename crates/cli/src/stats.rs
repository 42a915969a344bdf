//! `afterimage stats`: what a transcript holds and costs.

mod ledger;
mod page;

use afterimage::session::{
    ViewedFrame, Viewer,
    archive::{ArchivedTranscript, TranscriptEntry},
    unknown_records,
};

use std::io::Write;

use crate::{
    args,
    failure::Outcome,
    input::{self, Source},
    lens::{Counting, Lens, Lenses},
    output::Output,
};
use ledger::Ledger;

pub(crate) fn run(args: &args::Stats) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut lenses = Lenses::new(&args.rendering, Counting::Always);
    let mut is_first = true;
    input::each(&args.input, true, |source| {
        let lens = lenses.of(source)?;
        let ledger = match source.archived() {
            Some(archived) => of_archive(archived, &lens)?,
            None => of_frames(source, &lens)?,
        };
        if args.json {
            out.json(ledger.to_json(source))?;
        } else {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            page::print(&ledger, source, lens.counter.id(), &mut out)?;
        }
        Ok(out.flush()?)
    })
}

fn of_frames(source: &mut Source, lens: &Lens) -> Outcome<Ledger> {
    let mut viewer = Viewer::new(&lens.hud, source.format());
    let mut ledger = Ledger::new(source.format());
    while let Some(record) = source.next() {
        let ViewedFrame { session, frame, snapshot, .. } = source.see(&mut viewer, record?)?;
        ledger.frames += 1;
        ledger.tally.add(&frame);
        ledger.unknown_records += unknown_records(&frame);
        for chunk in snapshot.chunks() {
            ledger.add(&session, frame.sequence, chunk, lens.tokens(&snapshot, chunk));
        }
        ledger.let_go();
    }
    Ok(ledger)
}

/// The same sums, from what is archived of the chunks: no frame is read.
fn of_archive(archived: &ArchivedTranscript, lens: &Lens) -> Outcome<Ledger> {
    let TranscriptEntry { input_format, tally, unknown_records, tokenizer, .. } = &archived.entry();
    let is_counted = tokenizer == lens.counter.id();
    let mut ledger = Ledger::new(*input_format);
    (ledger.tally, ledger.unknown_records) = (*tally, *unknown_records);
    for row in archived.rows()? {
        let session = archived.session_name(*row);
        ledger.frames += 1;
        archived.view(*row, |view| {
            for chunk in view.chunks() {
                let count = || lens.counter.count(chunk.content()) as u64;
                let tokens = if is_counted { chunk.tokens() } else { count() };
                ledger.add(&session, row.sequence, chunk, tokens);
            }
        })?;
        ledger.let_go();
    }
    Ok(ledger)
}
