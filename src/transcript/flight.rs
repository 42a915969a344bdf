//! Recordings of the wire, which `afterimage record` makes.

use std::path::Path;

use super::{
    Decoder, TranscriptFormat, body::Payload, interaction::Interaction, otlp::rfc3339, sink::Sink,
    wire::WireReader,
};
use crate::{
    Result,
    json::{MAX_BYTES, Value},
    record::{Exchange, Outcome, Recording, unpacked},
};

/// The bodies of a recording may have so many bytes together,
const FREE: u64 = 1 << 30;
/// or this many for each byte of the recording.
const MOST_RATIO: u64 = 1024;

/// Opens the recording in a folder.
///
/// # Errors
/// Those of [`Recording::open`].
pub(super) fn open(folder: &Path) -> Result<Option<(TranscriptFormat, Box<dyn Decoder>)>> {
    let Some(recording) = Recording::open(folder)? else { return Ok(None) };
    Ok(Some((TranscriptFormat::Recording, Box::new(FlightReader::new(recording)))))
}

/// Gives out the exchanges of a recording, one at a time.
struct FlightReader {
    recording: Recording,
    /// How many bytes of bodies may still come.
    room: u64,
}

impl FlightReader {
    fn new(recording: Recording) -> Self {
        let room = FREE.max(recording.bytes().saturating_mul(MOST_RATIO));
        Self { recording, room }
    }

    /// What was odd about the file.
    fn note(&self, sink: &mut Sink) {
        for damage in self.recording.damage() {
            sink.note(0, &format!("damage in the recording: {damage}"));
        }
        // What somebody is writing has no end yet.
        if let Some(torn) = self.recording.torn().filter(|_| !self.recording.is_live()) {
            sink.note(0, &format!("the recording ends with a {torn}"));
        }
    }

    fn interaction(&mut self, exchange: &Exchange, line: u64) -> Interaction {
        let request = self.request(exchange);
        let (response, cut) = self.response(exchange);
        // Without a head there is no response, and what broke it off is all there is to say.
        let failure = cut.clone().filter(|_| exchange.response.is_none());
        Interaction {
            uri: exchange.start.path.clone(),
            request,
            response,
            // That of a WebSocket is of its opening.
            status: exchange
                .response
                .as_ref()
                .filter(|_| !exchange.start.is_websocket)
                .map(|head| u64::from(head.status)),
            started: Some(rfc3339(exchange.start.time_ms.saturating_mul(1_000_000))),
            duration_ms: exchange.end.as_ref().map(|end| end.after_ms),
            failure,
            line,
            cut,
            // What was redacted is not what went over the wire.
            is_logged: exchange.start.is_redacted,
            ..Interaction::default()
        }
    }

    fn request(&mut self, exchange: &Exchange) -> Payload {
        match self.recording.request(exchange) {
            Ok(body) => match body.into_parts() {
                (bytes, None) if is_plain(exchange) => self.payload(bytes, None),
                (bytes, None) => self.payload(bytes, coding(&exchange.start.headers)),
                (_, Some(cut)) => Payload::Unreadable(cut),
            },
            Err(error) => Payload::Unreadable(error.message().to_owned()),
        }
    }

    /// The response, and why it is not whole.
    fn response(&mut self, exchange: &Exchange) -> (Payload, Option<String>) {
        match self.recording.response(exchange) {
            Ok(body) => {
                let (bytes, cut) = body.into_parts();
                let head = exchange.response.as_ref().filter(|_| !is_plain(exchange));
                let coding = head.and_then(|head| coding(&head.headers));
                (self.payload(bytes, coding), cut)
            }
            Err(error) => {
                let reason = error.message().to_owned();
                (Payload::Unreadable(reason.clone()), Some(reason))
            }
        }
    }

    fn payload(&mut self, bytes: Vec<u8>, coding: Option<&str>) -> Payload {
        let bytes = match coding.filter(|_| !bytes.is_empty()) {
            Some(coding) => match unpacked(bytes, coding, MAX_BYTES as u64) {
                Ok(bytes) => bytes,
                Err(error) => return Payload::Unreadable(error.message().to_owned()),
            },
            None => bytes,
        };
        let payload = Payload::of_bytes(bytes);
        let size = match &payload {
            Payload::Text(text) => text.len() as u64,
            _ => 0,
        };
        match self.room.checked_sub(size) {
            Some(room) => {
                self.room = room;
                payload
            }
            None => Payload::Unreadable(format!(
                "the bodies of the recording have more than {FREE} bytes and {MOST_RATIO} times its length"
            )),
        }
    }
}

/// Whether bodies are stored as their texts. Headers of a WebSocket are those of its opening.
fn is_plain(exchange: &Exchange) -> bool {
    exchange.start.is_websocket || exchange.start.is_redacted
}

/// How a body was packed to be sent.
fn coding(headers: &[(String, String)]) -> Option<&str> {
    let mut of = headers.iter().filter(|(name, _)| name == "content-encoding");
    of.next().map(|(_, value)| value.as_str())
}

impl Decoder for FlightReader {
    fn record(&mut self, _value: Value, _line: u64, sink: &mut Sink) {
        self.note(sink);
        let mut traffic = WireReader::default();
        for (line, exchange) in (1..).zip(self.recording.exchanges().to_vec()) {
            if exchange.outcome() == Outcome::Running {
                sink.skip("exchange that still runs");
            } else if exchange.start.method != "POST" && !exchange.start.is_websocket {
                // Lists of models, and what else a client asks for: no model reads them.
                sink.skip("request without a body");
            } else {
                let interaction = self.interaction(&exchange, line);
                traffic.take(interaction, sink);
            }
        }
        traffic.give(sink);
    }
}
