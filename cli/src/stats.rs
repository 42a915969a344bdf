//! `afterimage stats`: what a transcript holds and costs.

mod ledger;
mod page;

use std::io::Write;

use crate::{
    args,
    failure::Outcome,
    input::{self, Source},
    output::Output,
    viewer::{Lens, Viewer},
};
use ledger::Ledger;

pub(crate) fn run(args: &args::Stats) -> Outcome {
    let mut out = Output::new(args.color);
    let lens = Lens::counting(&args.rendering)?;
    let mut is_first = true;
    input::each(&args.input, true, |source| {
        let mut viewer = Viewer::new(&lens, source.format());
        let ledger = read(source, &mut viewer)?;
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

fn read(source: &mut Source, viewer: &mut Viewer<'_>) -> Outcome<Ledger> {
    let mut ledger = Ledger::new(source.format());
    while let Some(record) = source.next() {
        let seen = viewer.see(record?).map_err(|error| source.refuse(error))?;
        ledger.add(&seen, |chunk| viewer.tokens(&seen.snapshot, chunk));
    }
    Ok(ledger)
}
