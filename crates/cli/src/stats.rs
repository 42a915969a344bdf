//! `afterimage stats`: what a transcript holds and costs.

pub(crate) mod args;
mod context;
mod frames;
mod ledger;
mod media;
mod page;
pub(crate) mod residency;
pub(crate) mod row;

use afterimage::{
    bill::certainty_for,
    request::Exchange,
    session::{RequestSums, ViewedFrame, Viewer},
    tokens::Certainty,
};

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    calibrated,
    copies::Copies,
    failure::Outcome,
    input::{self, InputRefusal, Source},
    labels::Labels,
    lens::{Counting, Lens, Lenses},
    output::Output,
    recorded,
    text::counted,
    usage::{self, Reported},
};
use context::{ContextHeld, Contexts, OfRequest, RequestsHeld};
use frames::FrameSums;
use ledger::Ledger;
use media::FileMedia;
use row::{FileRow, RequestRow};

pub(crate) fn run(args: &args::Stats) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    if let Some(number) = args.request {
        return of_request(args, number, &mut out);
    }
    if let Some(path) = &args.calibrate {
        calibrated::write(&args.input, path, &mut out)?;
        return Ok(out.flush()?);
    }
    let prices = usage::prices(&args.pricing)?;
    let lenses = Mutex::new(Lenses::new(&args.rendering, Counting::Always));
    let lens_of = |source: &mut Source| {
        // What is behind the lock is whole whenever it is let go.
        lenses.lock().unwrap_or_else(PoisonError::into_inner).of(source)
    };
    let mut is_first = true;
    let input = args.input.with_exchanges();
    let copies = Copies::of_files(&input)?;
    if args.residency {
        return input::each(&input, true, |source| {
            let lens = lens_of(source)?;
            if !args.json && !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            residency::show(source, &lens, (&prices, &copies), args.json, &mut out)?;
            Ok(out.flush()?)
        });
    }
    let holdings = |source: &mut Source| {
        let lens = lens_of(source)?;
        let holdings = of_frames(source, &lens)?;
        Ok((lens, holdings))
    };
    let passed_over = InputRefusal::IsPassedOver;
    input::each_at_once(&input, passed_over, holdings, |source, (lens, holdings)| {
        let Holdings { frames, ledger, contexts, mut reported, media } = holdings;
        copies.mark(&mut reported.iter_mut().collect::<Vec<_>>());
        let going_on = reported.iter().filter(|exchange| exchange.goes_on()).count() as u64;
        let media = media.sums(&reported);
        let reported = Reported::of(reported.iter(), &prices);
        let counts = lens.counts_as(certainty(&frames, &ledger, &reported, &lens));
        if args.json {
            let RequestSums { requests: count, tokens, last, .. } = contexts.sums;
            out.answer(&FileRow {
                file: source.name(),
                format: source.format().name(),
                sessions: source.sessions(),
                frames,
                sums: ledger.answer(),
                counts: counts.answer(),
                requests: RequestsHeld { count, tokens },
                context: ContextHeld::of(last, contexts.sums.last_tokens()),
                provenance: contexts.provenance.as_str(),
                lacks: contexts.provenance.lacks().iter().map(|lack| lack.as_str()).collect(),
                media: media.answer(),
                reported: reported.answer(),
            })?;
        } else {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            let held = (&frames, &ledger, &contexts, &media);
            page::print(&counts, held, &reported, source, &mut out)?;
        }
        out.flush()?;
        if going_on > 0 {
            let go_on = if going_on == 1 { "goes on" } else { "go on" };
            source.note(&format!(
                "{} {go_on} from what a provider keeps, and what was sent alone is counted: \
                 `afterimage requests` counts what the source holds of the rest",
                counted(going_on, "request")
            ));
        }
        Ok(())
    })
}

/// What the counts of texts are to the models that a file names.
///
/// They are exact where each exchange names a model that the tokenizer is of, and there is nothing
/// but plain messages: what providers make of calls, results and reasoning is not known.
fn certainty(
    frames: &FrameSums,
    ledger: &Ledger,
    reported: &Reported<'_>,
    lens: &Lens,
) -> Certainty {
    let base = lens.counter.certainty();
    let mut models = reported.sums.by_model.keys();
    if let Some(calibrated) = &lens.calibrated {
        // The model of the calibration speaks in the file, or it says nothing of it.
        let is_its =
            |model: &Option<Arc<str>>| model.as_deref().is_some_and(|of| calibrated.is_of(of));
        return if models.any(is_its) { base } else { Certainty::Estimated };
    }
    if base != Certainty::Exact {
        return base;
    }
    let of = models.map(|model| {
        model.as_ref().map_or(Certainty::Estimated, |model| certainty_for(model, &*lens.counter))
    });
    let of = of.max().unwrap_or(Certainty::Estimated);
    if ledger.is_plain() && frames.tool_calls == 0 { of } else { of.max(Certainty::Estimated) }
}

/// The sums of one request alone.
fn of_request(args: &args::Stats, number: usize, out: &mut Output) -> Outcome {
    recorded::of_one_file(&args.input)?;
    let lens = Lens::new(&args.rendering, Counting::Always)?;
    input::each(&args.input.of_all_sessions(), true, |source| {
        let of = OfRequest::of(source, number, args.input.session.as_deref(), &lens)?;
        if args.json {
            out.answer(&RequestRow {
                file: source.name(),
                format: source.format().name(),
                request: number,
                provenance: of.provenance.as_str(),
                lacks: of.provenance.lacks().iter().map(|lack| lack.as_str()).collect(),
                context: ContextHeld::of(of.size, of.size.tokens()),
                media: of.media,
                sums: of.ledger.answer(),
                counts: lens.own_counts().answer(),
            })?;
        } else {
            page::print_request(&of, source, &lens, out)?;
        }
        Ok(out.flush()?)
    })
}

/// What a file holds.
struct Holdings {
    frames: FrameSums,
    ledger: Ledger,
    contexts: Contexts,
    reported: Vec<Exchange>,
    media: FileMedia,
}

fn of_frames(source: &mut Source, lens: &Lens) -> Outcome<Holdings> {
    let mut viewer = Viewer::new(&lens.hud, source.format());
    let (mut frames, mut media) = (FrameSums::default(), FileMedia::default());
    let mut ledger = Ledger::new(source.format());
    let mut labels = Labels::default();
    while let Some(record) = source.next() {
        let seen = source.see(&mut viewer, record?)?;
        let labels = labels.of_seen(&seen);
        let ViewedFrame { session, frame, snapshot, .. } = seen;
        frames.add(&frame);
        media.add(&session, &frame);
        for chunk in snapshot.chunks() {
            let tokens = lens.tokens(&snapshot, chunk);
            ledger.add(&session, (frame.sequence, Some(&labels)), chunk, tokens);
        }
        ledger.let_go();
        source.see_exchanges(&mut viewer, Some(&*lens.counter))?;
    }
    source.see_exchanges(&mut viewer, Some(&*lens.counter))?;
    let contexts = Contexts { sums: viewer.requests(), provenance: viewer.provenance() };
    let reported = viewer.reported().cloned().collect();
    Ok(Holdings { frames, ledger, contexts, reported, media })
}
