//! Recordings of the wire, which `afterimage record` makes.

use std::{collections::VecDeque, path::Path, sync::mpsc::sync_channel, thread};

use super::{
    Api, BodyText, Decoder, Exchange, TranscriptFormat, Usage, body::Payload,
    exchange::model_named, interaction::Interaction, read_exchange, request_body::ReadBodies,
    sink::Sink, times::rfc3339, wire::WireReader,
};
use crate::{
    Result,
    json::{Value, most_unpacked},
    record::{self, Outcome, Recording, RequestBodies, unpacked, unpacked_start},
};

/// The bodies of a recording may have so many bytes together, however short it is.
const FREE: u64 = 1 << 30;
/// They may have this many for each byte of the recording.
const MOST_RATIO: u64 = 1024;
/// How many requests are at hand for those that go on from them: as many as conversations are followed.
const KEPT: usize = 16;
/// A recording of so many bytes is long; a shorter one where it is tested.
const LONG: u64 = if cfg!(debug_assertions) { 1 << 10 } else { 256 << 10 };
/// So many exchanges of a long recording are unpacked ahead.
const AHEAD: usize = 4;

/// Opens the recording in a folder.
///
/// # Errors
/// Those of [`Recording::open`].
pub(super) fn open(folder: &Path) -> Result<Option<(TranscriptFormat, Box<dyn Decoder>)>> {
    let Some(recording) = Recording::open(folder)? else { return Ok(None) };
    Ok(Some((TranscriptFormat::Recording, Box::new(FlightReader { recording }))))
}

/// The exchange that has this number in a list of requests. Reads the bodies of that exchange, and at
/// most 16 that its request is stored after. `None` where there is none in the folder, and of one whose
/// request goes on from another's answer: who wants that reads all of them. Of a damaged recording too.
pub(crate) fn exchange_at(folder: &Path, number: usize) -> Result<Option<Exchange>> {
    let Some(recording) = Recording::open(folder)? else { return Ok(None) };
    if !recording.damage().is_empty() || recording.torn().is_some() {
        return Ok(None);
    }
    let mut listed = Vec::new();
    for (line, exchange) in (1..).zip(recording.exchanges()) {
        match Api::of_uri(&exchange.start.path) {
            _ if !is_asked(exchange) => {}
            // The body may tell.
            _ if Api::is_in_doubt(&exchange.start.path) => return Ok(None),
            Some(_) => listed.push((line, exchange)),
            None => {}
        }
    }
    let found = number.checked_sub(1).and_then(|index| listed.get(index).copied());
    let Some((line, exchange)) = found else { return Ok(None) };
    let exchange = exchange.clone();
    let interaction = Reading::of(&recording).interaction(&exchange, line);
    let read = read_exchange::read(&interaction, &mut ReadBodies::default());
    let alone = read.ok().map(|read| read.exchange);
    let alone = alone.filter(|read| !read.asked.goes_on() && read.unread.is_none());
    Ok(alone.map(|mut exchange| {
        exchange.keep_bodies(&interaction);
        exchange
    }))
}

/// Gives out the exchanges of a recording, one at a time.
struct FlightReader {
    recording: Recording,
}

impl FlightReader {
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
}

/// The requests of a recording while they are read.
struct Reading<'r> {
    recording: &'r Recording,
    bodies: RequestBodies<'r>,
    /// The last requests, the latest first.
    texts: VecDeque<BodyText>,
    /// How many bytes of bodies may still come.
    room: u64,
}

impl<'r> Reading<'r> {
    fn of(recording: &'r Recording) -> Self {
        let room = FREE.max(recording.bytes().saturating_mul(MOST_RATIO));
        Self { recording, bodies: recording.bodies(), texts: VecDeque::new(), room }
    }

    fn interaction(&mut self, exchange: &record::Exchange, line: u64) -> Interaction {
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

    fn request(&mut self, exchange: &record::Exchange) -> Payload {
        let bytes = match (self.bodies.request(exchange), exchange.request_cut()) {
            (Ok(bytes), None) => bytes,
            (Ok(_), Some(cut)) => return Payload::Unreadable(cut.to_owned()),
            (Err(error), _) => return Payload::Unreadable(error.message().to_owned()),
        };
        let coding = exchange.request_encoding();
        let texts = &mut self.texts;
        let text = |bytes: &[u8]| text_after(bytes, texts);
        let payload = match coding.filter(|_| !bytes.is_empty()) {
            None => Payload::of_slice(bytes, bytes.len(), text),
            // What the client packed repeats itself as a conversation does.
            Some(coding) => {
                match unpacked(bytes.to_vec(), &coding, most_unpacked(bytes.len()) as u64) {
                    Ok(unpacked) => Payload::of_slice(&unpacked, bytes.len(), text),
                    Err(error) => Payload::Unreadable(error.message().to_owned()),
                }
            }
        };
        self.limited(payload)
    }

    /// The response, and why it is not whole.
    fn response(&mut self, exchange: &record::Exchange) -> (Payload, Option<String>) {
        let unreadable = |reason: &str, cut: Option<String>| {
            (Payload::Unreadable(reason.to_owned()), cut.or_else(|| Some(reason.to_owned())))
        };
        let (bytes, cut) = match self.recording.response(exchange) {
            Ok(body) => body.into_parts(),
            Err(error) => return unreadable(error.message(), None),
        };
        let (sent, most) = (bytes.len(), most_unpacked(bytes.len()) as u64);
        let coding = exchange.response_encoding().filter(|_| !bytes.is_empty());
        let bytes = match coding.map(|coding| unpacked_start(bytes.clone(), &coding, most)) {
            None => bytes,
            Some(Ok((unpacked, None))) => unpacked,
            // Of an answer that broke off, what came before is read.
            Some(Ok((unpacked, Some(_)))) if cut.is_some() && !unpacked.is_empty() => unpacked,
            Some(Ok((_, Some(error))) | Err(error)) => return unreadable(error.message(), cut),
        };
        let whole = if cut.is_some() { without_half_character(&bytes) } else { &bytes };
        (self.limited(Payload::of_slice(whole, sent, BodyText::of_bytes)), cut)
    }

    /// The payload, unless the bodies together are too long.
    fn limited(&mut self, payload: Payload) -> Payload {
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

/// The bytes without the beginning of a character that they end with.
fn without_half_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or_default()
        }
        _ => bytes,
    }
}

/// The text of these bytes, after that of the request which it goes on from.
fn text_after(bytes: &[u8], texts: &mut VecDeque<BodyText>) -> Option<BodyText> {
    let mut best = (0, 0);
    for (at, known) in texts.iter().enumerate() {
        let same = known.shared_with(bytes);
        best = best.max((same, texts.len() - at));
        // Most of the body before is enough.
        if same.saturating_mul(2) >= known.len() {
            break;
        }
    }
    let (same, place) = (best.0, texts.len() - best.1);
    let before = texts.get(place).cloned().unwrap_or_default();
    let text = BodyText::after(&before, same, bytes)?;
    // What goes on from a request stands in its place.
    if same > 0 && same.saturating_mul(2) >= before.len() {
        texts.remove(place);
    }
    texts.truncate(KEPT - 1);
    texts.push_front(text.clone());
    Some(text)
}

/// Whether an exchange asked a model, and has ended.
fn is_asked(exchange: &record::Exchange) -> bool {
    exchange.start.is_for_model() && exchange.outcome() != Outcome::Running
}

/// The method and the path of a request.
fn target(exchange: &record::Exchange) -> String {
    let path = exchange.start.path.split(['?', '#']).next().unwrap_or_default();
    format!("{} {path}", exchange.start.method)
}

/// What is paid of a request that is in no list.
fn of_no_list(interaction: &Interaction) -> Exchange {
    let response = interaction.response.value();
    let usage = response.as_ref().and_then(|response| Usage::of(response.get("usage")?));
    let model = response.as_ref().and_then(|response| model_named(response.str_at("model")?));
    let line = Some(interaction.line);
    Exchange { line, model, usage, is_unlisted: true, ..Exchange::default() }
}

impl Decoder for FlightReader {
    fn record(&mut self, _value: Value, _line: u64, sink: &mut Sink) {
        self.note(sink);
        self.give(sink);
    }
}

impl FlightReader {
    /// Gives out the exchanges in their order. Those of a longer recording are unpacked ahead of their
    /// reading, by a thread of their own.
    fn give(&self, sink: &mut Sink) {
        let mut reading = Reading::of(&self.recording);
        let in_turn = |exchange: &record::Exchange, line| Some(reading.interaction(exchange, line));
        if self.recording.bytes() < LONG {
            self.give_each(in_turn, sink);
            return;
        }
        thread::scope(|scope| {
            let (ahead, unpacked) = sync_channel(AHEAD);
            let unpack = move || {
                let mut reading = Reading::of(&self.recording);
                for (line, exchange) in self.listed().filter(|(_, exchange)| is_asked(exchange)) {
                    if ahead.send(reading.interaction(exchange, line)).is_err() {
                        break;
                    }
                }
            };
            match thread::Builder::new().name("unpacker".to_owned()).spawn_scoped(scope, unpack) {
                // It ends before only by a panic, which the scope hands on.
                Ok(_) => self.give_each(|_, _| unpacked.recv().ok(), sink),
                Err(_) => self.give_each(in_turn, sink),
            }
        });
    }

    /// The exchanges with their lines, from one.
    fn listed(&self) -> impl Iterator<Item = (u64, &record::Exchange)> {
        (1..).zip(self.recording.exchanges())
    }

    /// Gives out the exchanges; `unpacked` has what those hold that asked a model.
    fn give_each(
        &self,
        mut unpacked: impl FnMut(&record::Exchange, u64) -> Option<Interaction>,
        sink: &mut Sink,
    ) {
        let mut traffic = WireReader::default();
        let mut unlisted = Vec::new();
        for (line, exchange) in self.listed() {
            if exchange.outcome() == Outcome::Running {
                sink.skip("exchange that still runs");
                sink.report.running.get_or_insert(line);
            } else if !is_asked(exchange) {
                // Lists of models, and what else a client asks for: no model reads them.
                sink.skip("request without a body");
                // What an opened WebSocket carries has rows of its own.
                if exchange.response.as_ref().is_none_or(|head| head.status != 101) {
                    sink.unlisted(&target(exchange));
                }
            } else {
                let Some(interaction) = unpacked(exchange, line) else { return };
                let is_read = |uri: &str| {
                    let body = || interaction.request.value().and_then(|body| Api::of(uri, &body));
                    Api::of_uri(uri).or_else(body).is_some()
                };
                if !is_read(&interaction.uri) {
                    if interaction.unread_api().is_none() {
                        sink.unlisted(&target(exchange));
                    }
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
