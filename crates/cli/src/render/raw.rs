//! `afterimage render --raw`: the bytes of a recorded body, whatever they are.

use std::io::Write;

use afterimage::{
    json::MAX_BYTES,
    record::{Exchange, Recording, unpacked_start},
    request as listed,
};

use super::args::Render;
use crate::{
    failure::{Outcome, Stop},
    input::{self, Source},
    lens::uncounted,
    output::Output,
    recorded,
};

/// Which body of an exchange is asked for.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Request,
    Response,
}

/// Prints what is stored of a body, unpacked where it can be.
pub(super) fn print(args: &Render, number: usize, side: Side, out: &mut Output) -> Outcome {
    recorded::of_one_file(&args.input)?;
    input::each(&args.input.of_all_sessions(), true, |source| {
        let session = args.input.session.as_deref();
        let listed = recorded::with(source, number, session, &uncounted())?;
        let listed = listed.exchange(number);
        let recording = opened(source)?;
        let Some(exchange) = exchange_at(&recording, listed.and_then(|listed| listed.line)) else {
            return Err(source.fail(format!("request {number} is no longer in the file")).into());
        };
        // Clients close the connection behind the last event of a stream.
        let is_ended = listed.is_some_and(|listed| listed.cut.is_none());
        let stored = Stored::of(source, &recording, exchange, number, (side, is_ended))?;
        out.write_all(&stored.bytes)?;
        out.flush()?;
        // What is printed must not be taken for the whole.
        if stored.is_cut { Err(Stop::Negative) } else { Ok(()) }
    })
}

/// Whether anything is stored of a response that is listed.
pub(super) fn has_response(source: &Source, listed: &listed::Exchange) -> bool {
    let Ok(recording) = opened(source) else { return false };
    let exchange = exchange_at(&recording, listed.line);
    let stored = exchange.and_then(|exchange| recording.response(exchange).ok());
    stored.is_some_and(|body| !body.into_parts().0.is_empty())
}

/// The exchange of this line, from one.
fn exchange_at(recording: &Recording, line: Option<u64>) -> Option<&Exchange> {
    let index = usize::try_from(line?.checked_sub(1)?).ok()?;
    recording.exchanges().get(index)
}

/// The recording that a source is.
fn opened(source: &Source) -> Outcome<Recording> {
    let recording = source.is_recording().then(|| Recording::open(source.path())).transpose()?;
    recording.flatten().ok_or_else(|| {
        let sentence = "the file is no recording of `afterimage record`, which alone has raw bytes";
        source.fail(sentence).hint("without --raw the body is printed as text").into()
    })
}

struct Stored {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Stored {
    /// Says what is missing, and what could not be unpacked. With the side comes whether the answer
    /// has its last event.
    fn of(
        source: &Source,
        recording: &Recording,
        exchange: &Exchange,
        number: usize,
        (side, is_ended): (Side, bool),
    ) -> Outcome<Self> {
        let (what, body, encoding) = match side {
            Side::Request => ("request", recording.request(exchange), exchange.request_encoding()),
            Side::Response => {
                ("response", recording.response(exchange), exchange.response_encoding())
            }
        };
        let (bytes, cut) = body.map_err(|error| source.refuse(error.into()))?.into_parts();
        if matches!(side, Side::Response) && exchange.response.is_none() {
            let why = cut.map(|cut| format!(": {cut}")).unwrap_or_default();
            return Err(source.fail(format!("request {number} has no response{why}")).into());
        }
        let breaks_off = cut.is_some();
        let cut = cut.filter(|_| !(is_ended && matches!(side, Side::Response)));
        if let Some(cut) = &cut {
            source.note(&format!("{what} {number} is cut, its end is missing: {cut}"));
        }
        let is_cut = cut.is_some();
        let Some(encoding) = encoding.filter(|_| !bytes.is_empty()) else {
            return Ok(Self { bytes, is_cut });
        };
        let error = match unpacked_start(bytes.clone(), &encoding, MAX_BYTES as u64) {
            Ok((bytes, None)) => return Ok(Self { bytes, is_cut }),
            // Of a body that broke off, what came before is unpacked.
            Ok((bytes, Some(_))) if breaks_off && !bytes.is_empty() => {
                return Ok(Self { bytes, is_cut });
            }
            Ok((_, Some(error))) | Err(error) => error,
        };
        let why = error.message();
        source.note(&format!("{what} {number} is printed as it was sent, not unpacked: {why}"));
        Ok(Self { bytes, is_cut })
    }
}
