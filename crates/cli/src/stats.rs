//! `afterimage stats`: what a transcript holds and costs.

pub(crate) mod args;
mod context;
mod ledger;
mod media;
mod page;
mod residency;

use afterimage::{
    bill::certainty_for,
    request::Exchange,
    session::{
        ViewedFrame, Viewer,
        archive::{ArchivedTranscript, TranscriptEntry},
        unknown_records,
    },
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
    labels::{ArchivedLabels, Label, Labels},
    lens::{Counting, Lens, Lenses},
    output::Output,
    recorded,
    usage::{self, Reported},
};
pub(crate) use context::media_json;
use context::{Contexts, OfRequest};
use ledger::Ledger;
use media::FileMedia;

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
        let known = source.archived().map(|archived| of_archive(archived, &lens)).transpose()?;
        let holdings = match known.flatten() {
            Some(known) => known,
            None => of_frames(source, &lens)?,
        };
        Ok((lens, holdings))
    };
    let passed_over = InputRefusal::IsPassedOver;
    input::each_at_once(&input, passed_over, holdings, |source, (lens, holdings)| {
        let Holdings { ledger, contexts, mut reported, media } = holdings;
        copies.mark(&mut reported.iter_mut().collect::<Vec<_>>());
        let media = media.sums(&reported);
        let reported = Reported::of(reported.iter(), &prices);
        let counts = lens.counts_as(certainty(&ledger, &reported, &lens));
        if args.json {
            let mut json = ledger.to_json(source);
            counts.put(&mut json);
            contexts.put(&mut json);
            json.insert("media".to_owned(), media.to_json().into());
            reported.put(&mut json);
            out.json(json)?;
        } else {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            let held = (&ledger, &contexts, &media);
            page::print(&counts, held, &reported, source, &mut out)?;
        }
        Ok(out.flush()?)
    })
}

/// What the counts of texts are to the models that a file names.
///
/// They are exact where each exchange names a model that the tokenizer is of, and there is nothing
/// but plain messages: what providers make of calls, results and reasoning is not known.
fn certainty(ledger: &Ledger, reported: &Reported<'_>, lens: &Lens) -> Certainty {
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
    if ledger.is_plain() { of } else { of.max(Certainty::Estimated) }
}

/// The sums of one request alone.
fn of_request(args: &args::Stats, number: usize, out: &mut Output) -> Outcome {
    recorded::of_one_file(&args.input)?;
    let lens = Lens::new(&args.rendering, Counting::Always)?;
    input::each(&args.input.of_all_sessions(), true, |source| {
        let of = OfRequest::of(source, number, args.input.session.as_deref(), &lens)?;
        if args.json {
            let mut json = of.to_json(source);
            lens.put(&mut json);
            out.json(json)?;
        } else {
            page::print_request(&of, source, &lens, out)?;
        }
        Ok(out.flush()?)
    })
}

/// What a file holds.
struct Holdings {
    ledger: Ledger,
    contexts: Contexts,
    reported: Vec<Exchange>,
    media: FileMedia,
}

fn of_frames(source: &mut Source, lens: &Lens) -> Outcome<Holdings> {
    let mut viewer = Viewer::new(&lens.hud, source.format());
    let (mut ledger, mut media) = (Ledger::new(source.format()), FileMedia::default());
    let mut labels = Labels::default();
    while let Some(record) = source.next() {
        let seen = source.see(&mut viewer, record?)?;
        let labels = labels.of_seen(&seen);
        let ViewedFrame { session, frame, snapshot, .. } = seen;
        ledger.frames += 1;
        ledger.tally.add(&frame);
        media.add(&session, &frame);
        ledger.unknown_records += unknown_records(&frame);
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
    Ok(Holdings { ledger, contexts, reported, media })
}

/// The types of chunks that stand for images, sounds and documents.
const MAY_BE_MEDIA: [&str; 2] = ["image", "opaque"];

/// The same sums, from what is archived of the chunks: of frames only those with media are read.
/// `None` where the requests were counted by another tokenizer, or not at all.
fn of_archive(archived: &ArchivedTranscript, lens: &Lens) -> Outcome<Option<Holdings>> {
    let TranscriptEntry { input_format, tally, unknown_records, tokenizer, .. } = &archived.entry();
    let is_counted = tokenizer == lens.counter.id();
    let Some(sums) = archived.entry().requests.filter(|_| is_counted) else {
        return Ok(None);
    };
    let contexts = Contexts { sums, provenance: archived.provenance()? };
    let mut ledger = Ledger::new(*input_format);
    (ledger.tally, ledger.unknown_records) = (*tally, *unknown_records);
    let mut media = FileMedia::default();
    for (index, row) in archived.rows()?.iter().enumerate() {
        let session = archived.session_name(*row);
        ledger.frames += 1;
        let mut has_media = false;
        archived.view(*row, |view| {
            for chunk in view.chunks() {
                has_media |= chunk.chunk_type().is_some_and(|kind| MAY_BE_MEDIA.contains(&kind));
                ledger.add(&session, (row.sequence, None), chunk, chunk.tokens());
            }
        })?;
        ledger.let_go();
        if has_media {
            media.add(&session, &archived.frame(index)?);
        }
    }
    label(&mut ledger, archived)?;
    Ok(Some(Holdings { ledger, contexts, reported: archived.entry().reported.clone(), media }))
}

/// Labels the largest facets: their frames are read, and no others.
fn label(ledger: &mut Ledger, archived: &ArchivedTranscript) -> Outcome {
    let mut labels = ArchivedLabels::default();
    ledger.label(|session, frame, facet| {
        let of = archived.session_index(session);
        let mut rows = archived.rows()?.iter();
        let index = rows.position(|row| Some(row.session) == of && row.sequence == frame);
        let Some(index) = index else { return Ok(Label::default()) };
        Ok(labels.of(archived, index)?.of(facet.as_str()).clone())
    })
}
