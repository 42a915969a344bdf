//! `afterimage requests --follow`: the requests of a session as they come.

use std::io::Write;

use afterimage::{bill::Prices, request::Exchange};

use super::args::Requests;
use super::{counted::RequestCounts, listing::Listing, page::Shape};
use crate::{
    failure::Outcome,
    input::{self, InputRefusal},
    lens::Lens,
    output::Output,
    watch::{self, Reading, held, watch},
};

/// The requests that were printed already, and the columns of their table.
pub(super) type Printed = watch::Printed<Shape>;

/// Prints the requests of a file, and those that come, until it is interrupted.
pub(super) fn run(args: &Requests, lens: &Lens, prices: &Prices, out: &mut Output) -> Outcome {
    let mut printed = Printed::default();
    watch(&args.input, |input, is_quiet| {
        let following = Following { args, input, lens, prices };
        let is_held = following.refresh(is_quiet, &mut printed, out)?;
        Ok(Reading { is_held, is_none: printed.is_none() })
    })
}

/// What is followed, and how it is shown.
struct Following<'f> {
    args: &'f Requests,
    input: &'f crate::args::Input,
    lens: &'f Lens,
    prices: &'f Prices,
}

impl Following<'_> {
    /// Prints what is new in a file. An answer that ends the session may still be written, with its
    /// usage: it is held back until the file is quiet. Says whether one is.
    fn refresh(&self, is_quiet: bool, printed: &mut Printed, out: &mut Output) -> Outcome<bool> {
        let mut is_held = false;
        input::read(self.input, false, InputRefusal::Ends, |source| {
            let recording = crate::recorded::read(source, &self.lens.counter)?;
            if !printed.are_in(recording.exchanges()) {
                source.note("the file was replaced or cut: it is followed from its beginning");
                *printed = Printed::default();
            }
            let counts = RequestCounts::of(self.args, self.lens, &recording);
            let counts = counts.map_err(|error| source.refuse(error))?;
            let of = (&recording, counts);
            let mut listing = Listing::new(self.args, source, of, self.prices, Some(&*printed))?;
            listing.held = held(source, &recording, is_quiet);
            let is_ready = |exchange: &&Exchange| !listing.held.contains(&exchange.number);
            let ready: Vec<&Exchange> = recording.exchanges().iter().filter(is_ready).collect();
            is_held = ready.len() < recording.exchanges().len();
            if !ready.is_empty() {
                if self.args.json { listing.json(out)? } else { listing.table(out)? }
            }
            let shape = listing.shape.get().or(printed.shape);
            printed.take(&ready, shape);
            Ok(out.flush()?)
        })?;
        Ok(is_held)
    }
}
