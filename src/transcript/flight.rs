//! Recordings of the wire, which `afterimage record` makes.

use std::{path::Path, sync::Arc};

use super::{
    Api, Decoder, TranscriptFormat, Usage, body::Payload, exchange, interaction::Interaction,
    otlp::rfc3339, recorded::RecordedExchange, request_body::ReadBodies, sink::Sink,
    wire::WireReader,
};
use crate::{
    Result,
    json::{MAX_BYTES, Value},
    record::{Body, Exchange, Outcome, Recording, unpacked},
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

/// The exchange that has this number in a list of requests. Reads the bodies of that exchange, and at
/// most 16 that its request is stored after. `None` where there is none in the folder, and of one whose
/// request goes on from another's answer: who wants that reads all of them. Of a damaged recording too.
pub(crate) fn exchange_at(folder: &Path, number: usize) -> Result<Option<RecordedExchange>> {
    let Some(recording) = Recording::open(folder)? else { return Ok(None) };
    if !recording.damage().is_empty() || recording.torn().is_some() {
        return Ok(None);
    }
    let mut listed = Vec::new();
    for (line, exchange) in (1..).zip(recording.exchanges()) {
        let is_asked = exchange.start.method == "POST" || exchange.start.is_websocket;
        match Api::of_uri(&exchange.start.path) {
            _ if !is_asked || exchange.outcome() == Outcome::Running => {}
            Some(_) => listed.push((line, exchange)),
            // The body may tell.
            None if Api::is_in_doubt(&exchange.start.path) => return Ok(None),
            None => {}
        }
    }
    let found = number.checked_sub(1).and_then(|index| listed.get(index).copied());
    let Some((line, exchange)) = found else { return Ok(None) };
    let exchange = exchange.clone();
    let interaction = FlightReader::new(recording).interaction(&exchange, line);
    let read = exchange::read(&interaction, &mut ReadBodies::default());
    let alone = read.ok().filter(|read| read.previous.is_none() && read.unread.is_none());
    Ok(alone.map(|read| RecordedExchange::of(interaction, &read)))
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
        let is_ended = exchange.end.as_ref().is_some_and(|end| end.cut.is_none());
        Interaction {
            is_cut_in_store: is_ended && exchange.response.is_some(),
            is_recorded: true,
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
            Ok(body) => match body.cut() {
                None if is_plain(exchange) => self.payload(&body, None),
                None => self.payload(&body, coding(&exchange.start.headers)),
                Some(cut) => Payload::Unreadable(cut.to_owned()),
            },
            Err(error) => Payload::Unreadable(error.message().to_owned()),
        }
    }

    /// The response, and why it is not whole.
    fn response(&mut self, exchange: &Exchange) -> (Payload, Option<String>) {
        match self.recording.response(exchange) {
            Ok(body) => {
                let head = exchange.response.as_ref().filter(|_| !is_plain(exchange));
                let coding = head.and_then(|head| coding(&head.headers));
                (self.payload(&body, coding), body.cut().map(str::to_owned))
            }
            Err(error) => {
                let reason = error.message().to_owned();
                (Payload::Unreadable(reason.clone()), Some(reason))
            }
        }
    }

    fn payload(&mut self, body: &Body, coding: Option<&str>) -> Payload {
        let bytes = body.bytes();
        let payload = match (coding.filter(|_| !bytes.is_empty()), body.text()) {
            (Some(coding), _) => match unpacked(bytes.to_vec(), coding, MAX_BYTES as u64) {
                Ok(bytes) => Payload::of_bytes(bytes),
                Err(error) => return Payload::Unreadable(error.message().to_owned()),
            },
            // No text begins as something packed does.
            (None, Some(text)) if !text.is_empty() => Payload::Text(Arc::clone(text)),
            (None, _) => Payload::of_slice(bytes),
        };
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

/// The method and the path of a request.
fn target(exchange: &Exchange) -> String {
    let path = exchange.start.path.split(['?', '#']).next().unwrap_or_default();
    format!("{} {path}", exchange.start.method)
}

/// What is paid of a request that is in no list.
fn of_no_list(interaction: &Interaction) -> RecordedExchange {
    let response = interaction.response.value();
    let usage = response.as_ref().and_then(|response| Usage::of(response.get("usage")?));
    let model = response.as_ref().and_then(|response| response.str_at("model")).map(str::to_owned);
    RecordedExchange::unlisted(interaction.line, model, usage)
}

impl Decoder for FlightReader {
    fn record(&mut self, _value: Value, _line: u64, sink: &mut Sink) {
        self.note(sink);
        let mut traffic = WireReader::default();
        let mut unlisted = Vec::new();
        for (line, exchange) in (1..).zip(self.recording.exchanges().to_vec()) {
            if exchange.outcome() == Outcome::Running {
                sink.skip("exchange that still runs");
                sink.report.running.get_or_insert(line);
            } else if exchange.start.method != "POST" && !exchange.start.is_websocket {
                // Lists of models, and what else a client asks for: no model reads them.
                sink.skip("request without a body");
                // What an opened WebSocket carries has rows of its own.
                if exchange.response.as_ref().is_none_or(|head| head.status != 101) {
                    sink.unlisted(&target(&exchange));
                }
            } else {
                let interaction = self.interaction(&exchange, line);
                if Api::of_uri(&interaction.uri).is_none() {
                    sink.unlisted(&target(&exchange));
                    unlisted.push(of_no_list(&interaction));
                }
                traffic.take(interaction, sink);
            }
        }
        traffic.give(sink);
        if sink.keeps_exchanges() {
            unlisted.into_iter().for_each(|exchange| sink.exchange(exchange));
        }
    }
}
