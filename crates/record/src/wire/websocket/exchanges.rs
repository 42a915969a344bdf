use std::{collections::VecDeque, ops::Range, sync::Arc};

use afterimage_json as json;

use crate::{
    Recorder, ResponseRecorder, Start,
    wire::passing::{Patience, Recorded},
};

/// The message of a client that asks for an answer.
const ASKS: &str = "response.create";
/// The events that end an answer.
const LAST: [&str; 5] =
    ["response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"];
/// So many answers may be asked for before the first one came.
const MOST_RUNNING: usize = 64;
/// Switching protocols: the status of the answer that opened the WebSocket.
const SWITCHED: u16 = 101;

/// The exchanges of one WebSocket.
#[derive(Debug)]
pub(super) struct Exchanges {
    recorder: Arc<Recorder>,
    /// How the exchange that opened it began.
    start: Start,
    /// Those that were asked for and not answered, the oldest first: providers answer in order.
    running: VecDeque<Running>,
    patience: Patience,
}

#[derive(Debug)]
struct Running {
    response: ResponseRecorder,
    /// The provider's id of the answer, where it has said it.
    id: Option<String>,
    has_head: bool,
}

/// What an event tells of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    kind: Option<String>,
    /// The answer that it is of.
    response: Option<String>,
}

impl Exchanges {
    pub(super) fn new(recorder: Arc<Recorder>, start: Start, patience: Patience) -> Self {
        Self { recorder, start, running: VecDeque::new(), patience }
    }

    /// Takes a message of the client.
    pub(super) fn asked(&mut self, bytes: &[u8], total: u64) {
        let is_asking = if total > bytes.len() as u64 {
            // Of a message that is too long the kind may stand behind what was kept.
            let kind = ASKS.as_bytes();
            bytes.windows(kind.len()).any(|window| window == kind)
        } else {
            Told::of(bytes).kind.as_deref() == Some(ASKS)
        };
        if !is_asking || self.running.len() >= MOST_RUNNING {
            return;
        }
        let Start { path, provider, headers, .. } = self.start.clone();
        let start = Start { path, headers, is_websocket: true, ..Start::now("GET", &provider) };
        let (mut request, response) = self.recorder.exchange(start);
        request.push(bytes);
        request.push_unseen(total.saturating_sub(bytes.len() as u64));
        request.end();
        self.running.push_back(Running { response, id: None, has_head: false });
    }

    /// Takes an event of the provider. Gives the end of the exchange that it ends.
    pub(super) fn answered(&mut self, bytes: &[u8], total: u64) -> Option<Recorded> {
        let told = if total > bytes.len() as u64 { Told::default() } else { Told::of(bytes) };
        let at = self.place(told.response.as_deref())?;
        let running = self.running.get_mut(at)?;
        if !std::mem::replace(&mut running.has_head, true) {
            running.response.head(SWITCHED, Vec::new());
        }
        running.id = running.id.take().or(told.response);
        running.response.push(&event(bytes));
        if total > bytes.len() as u64 {
            let reason = "an event is longer than what is stored of one";
            let mut cut = self.running.remove(at)?;
            return Some(Recorded::end(&mut cut.response, Some(reason), &self.patience));
        }
        let is_last = told.kind.is_some_and(|kind| LAST.contains(&kind.as_str()));
        let ended = is_last.then(|| self.running.remove(at)).flatten();
        ended.map(|mut running| Recorded::end(&mut running.response, None, &self.patience))
    }

    /// The exchange that an event of this answer belongs to.
    fn place(&self, response: Option<&str>) -> Option<usize> {
        let Some(response) = response else { return (!self.running.is_empty()).then_some(0) };
        let known = self.running.iter().position(|of| of.id.as_deref() == Some(response));
        known.or_else(|| self.running.iter().position(|of| of.id.is_none()))
    }

    /// Ends what runs for a reason.
    pub(super) fn cut(&mut self, reason: &str) {
        for mut running in self.running.drain(..) {
            running.response.end(Some(reason), || {});
        }
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        self.cut("the recorder was stopped");
    }
}

impl Told {
    /// Scans the message once.
    fn of(bytes: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(bytes) else { return Self::default() };
        let mut told = Self::default();
        for member in json::children(text, 0..text.len()) {
            match member.key.as_deref() {
                Some("type") => told.kind = string(text, member.value),
                Some("response_id") => told.response = string(text, member.value),
                Some("response") => {
                    let members = json::children(text, member.value);
                    let id = members.into_iter().find(|of| of.key.as_deref() == Some("id"));
                    told.response = id.and_then(|id| string(text, id.value)).or(told.response);
                }
                _ => {}
            }
        }
        told
    }
}

fn string(text: &str, range: Range<usize>) -> Option<String> {
    let value = json::read(text.get(range)?.as_bytes()).ok()?;
    value.as_str().map(str::to_owned)
}

/// A message as an event of a stream: JSON has line ends between its values alone, where a space does
/// as well.
fn event(message: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(message.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend(
        message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }),
    );
    event.extend_from_slice(b"\n\n");
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_tells_its_kind_and_its_answer_in_any_order() {
        let told = |text: &str| {
            let told = Told::of(text.as_bytes());
            (told.kind.unwrap_or_default(), told.response.unwrap_or_default())
        };
        let pair = |kind: &str, id: &str| (kind.to_owned(), id.to_owned());
        assert_eq!(
            told(r#"{"type":"response.created","response":{"a":1,"id":"r"}}"#),
            pair("response.created", "r")
        );
        assert_eq!(told("{\"response_id\":\"r\",\n\"type\":\"x\"}"), pair("x", "r"));
        assert_eq!(told(r#"{"response":{"type":"response.completed"}}"#), pair("", ""));
        assert_eq!(told(r#"{"text":"\"type\":\"error\""}"#), pair("", ""));
        assert_eq!(told("nonsense"), pair("", ""));
    }

    #[test]
    fn a_message_is_one_event_of_a_stream() {
        assert_eq!(event(b"{\n\"a\": 1}"), b"data: { \"a\": 1}\n\n");
    }
}
