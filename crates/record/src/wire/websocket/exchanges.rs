use std::{collections::VecDeque, ops::Range, sync::Arc};

use afterimage_json as json;

use crate::{
    Recorder, ResponseRecorder, Start,
    wire::passing::{EndReceipt, Patience},
};

/// The message of a client that asks for an answer.
const ASKS: &str = "response.create";
/// The events that end an answer.
const LAST: [&str; 5] =
    ["response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"];
/// The event that begins an answer, and tells its id first.
const FIRST: &str = "response.created";
/// So many answers are recorded that were asked for before the first one came.
const MOST_RUNNING: usize = 64;
/// And so many are waited for. With more nobody knows whose an event is.
const MOST_ASKED: usize = 4096;
/// So many answers are remembered that are over, though events of them may come.
const MOST_OVER: usize = 64;
const TOO_LONG: &str = "an event is longer than what is stored of one";
const TOO_MANY: &str = "more answers were asked for at once than are recorded of a WebSocket";
/// Switching protocols: the status of the answer that opened the WebSocket.
const SWITCHED: u16 = 101;

/// The exchanges of one WebSocket.
#[derive(Debug)]
pub(super) struct Exchanges {
    recorder: Arc<Recorder>,
    /// How the exchange that opened it began.
    start: Start,
    /// Those that were asked for and not answered, the oldest first: providers answer in order.
    running: VecDeque<OpenAnswer>,
    /// The ids of answers that are not recorded any further: what comes of them is of no other.
    over: VecDeque<String>,
    /// Whether more was asked for than can be told apart: from then on no answer is recorded.
    is_lost: bool,
    patience: Patience,
}

/// An answer that was asked for, until its last event.
#[derive(Debug)]
struct OpenAnswer {
    /// `None` where its exchange was ended before.
    response: Option<ResponseRecorder>,
    /// The provider's id of the answer, where it has said it.
    id: Option<String>,
    has_head: bool,
}

/// What an event tells of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct EventLabel {
    kind: Option<String>,
    /// The answer that it is of.
    response: Option<String>,
}

impl Exchanges {
    pub(super) fn new(recorder: Arc<Recorder>, start: Start, patience: Patience) -> Self {
        let (running, over) = Default::default();
        Self { recorder, start, running, over, is_lost: false, patience }
    }

    /// Takes a message of the client.
    pub(super) fn asked(&mut self, bytes: &[u8], total: u64) {
        let is_asking = if total > bytes.len() as u64 {
            // Of a message that is too long the kind may stand behind what was kept.
            let kind = ASKS.as_bytes();
            bytes.windows(kind.len()).any(|window| window == kind)
        } else {
            EventLabel::of(bytes).kind.as_deref() == Some(ASKS)
        };
        if !is_asking {
            return;
        }
        let Start { path, provider, headers, .. } = self.start.clone();
        let start = Start { path, headers, is_websocket: true, ..Start::now("GET", &provider) };
        let (mut request, response) = self.recorder.exchange(start);
        request.push(bytes);
        request.push_unseen(total.saturating_sub(bytes.len() as u64));
        request.end();
        // The events of what is not recorded keep their place, so that no other gets them.
        let mut answer = OpenAnswer { response: Some(response), id: None, has_head: false };
        if self.is_lost || self.running.len() >= MOST_RUNNING {
            drop(answer.end(Some(TOO_MANY), &self.patience));
        }
        if !self.is_lost {
            self.running.push_back(answer);
        }
        if self.running.len() > MOST_ASKED {
            self.is_lost = true;
            self.cut(TOO_MANY);
        }
    }

    /// Takes an event of the provider. Gives the end of the exchange that it ends.
    pub(super) fn answered(&mut self, bytes: &[u8], total: u64) -> Option<EndReceipt> {
        let is_long = total > bytes.len() as u64;
        let label = EventLabel::of(bytes);
        let at = self.place(&label)?;
        let answer = self.running.get_mut(at)?;
        answer.id = answer.id.take().or(label.response);
        answer.push(bytes);
        // What follows of an answer that was cut keeps its place.
        let cut = is_long.then(|| answer.end(Some(TOO_LONG), &self.patience)).flatten();
        let kind = label.kind.unwrap_or_default();
        if LAST.contains(&kind.as_str()) {
            let mut answer = self.running.remove(at)?;
            let ended = answer.end(None, &self.patience);
            answer.id.into_iter().for_each(|id| self.forget(id));
            return cut.or(ended);
        }
        if kind == FIRST {
            self.drop_cut(at);
        }
        cut
    }

    /// Answers are given in order: of those before one that begins nothing comes any more. One that is
    /// not recorded any further may have had a last event that was too long to be known.
    fn drop_cut(&mut self, begun: usize) {
        for at in (0..begun).rev() {
            let is_cut = |of: &OpenAnswer| of.response.is_none() && of.id.is_some();
            if self.running.get(at).is_some_and(is_cut)
                && let Some(id) = self.running.remove(at).and_then(|of| of.id)
            {
                self.forget(id);
            }
        }
    }

    /// The answer that an event belongs to.
    fn place(&self, label: &EventLabel) -> Option<usize> {
        let Some(id) = &label.response else { return (!self.running.is_empty()).then_some(0) };
        let known = self.running.iter().position(|of| of.id.as_ref() == Some(id));
        let new = || {
            // One without an id yet. Only its first event names it, unless it is the one whose turn
            // it is: some providers leave that event out.
            let is_over = self.over.contains(id);
            let next = self.running.iter().position(|of| of.id.is_none());
            next.filter(|at| !is_over && (*at == 0 || label.kind.as_deref() == Some(FIRST)))
        };
        known.or_else(new)
    }

    fn forget(&mut self, id: String) {
        if self.over.len() == MOST_OVER {
            self.over.pop_front();
        }
        self.over.push_back(id);
    }

    /// Ends what runs for a reason.
    pub(super) fn cut(&mut self, reason: &str) {
        for mut response in self.running.drain(..).filter_map(|answer| answer.response) {
            response.end(Some(reason), || {});
        }
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        self.cut("the recorder was stopped");
    }
}

impl OpenAnswer {
    /// Records an event.
    fn push(&mut self, event: &[u8]) {
        let Some(response) = &mut self.response else { return };
        if !std::mem::replace(&mut self.has_head, true) {
            response.head(SWITCHED, Vec::new());
        }
        response.push(&as_event(event));
    }

    /// Ends its exchange, unless that is ended.
    fn end(&mut self, cut: Option<&str>, patience: &Patience) -> Option<EndReceipt> {
        let mut response = self.response.take()?;
        Some(EndReceipt::end(&mut response, cut, patience))
    }
}

impl EventLabel {
    /// Scans the message once. Of one that is cut it says what comes before the cut.
    fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).or_else(|error| {
            std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
        });
        let text = text.unwrap_or_default();
        let mut label = Self::default();
        for member in json::children(text, 0..text.len()) {
            match member.key.as_deref() {
                Some("type") => label.kind = string(text, member.value),
                Some("response_id") => label.response = string(text, member.value),
                Some("response") => {
                    let members = json::children(text, member.value);
                    let id = members.into_iter().find(|of| of.key.as_deref() == Some("id"));
                    label.response = id.and_then(|id| string(text, id.value)).or(label.response);
                }
                _ => {}
            }
        }
        label
    }
}

fn string(text: &str, range: Range<usize>) -> Option<String> {
    let value = json::read(text.get(range)?.as_bytes()).ok()?;
    value.as_str().map(str::to_owned)
}

/// A message as an event of a stream: JSON has line ends between its values alone, where a space does
/// as well.
fn as_event(message: &[u8]) -> Vec<u8> {
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
        let label = |text: &str| {
            let label = EventLabel::of(text.as_bytes());
            (label.kind.unwrap_or_default(), label.response.unwrap_or_default())
        };
        let pair = |kind: &str, id: &str| (kind.to_owned(), id.to_owned());
        assert_eq!(
            label(r#"{"type":"response.created","response":{"a":1,"id":"r"}}"#),
            pair("response.created", "r")
        );
        assert_eq!(label("{\"response_id\":\"r\",\n\"type\":\"x\"}"), pair("x", "r"));
        assert_eq!(label(r#"{"response":{"type":"response.completed"}}"#), pair("", ""));
        assert_eq!(label(r#"{"text":"\"type\":\"error\""}"#), pair("", ""));
        assert_eq!(label("nonsense"), pair("", ""));
        // Of a message that is cut.
        assert_eq!(label(r#"{"type":"response.completed","resp"#), pair("response.completed", ""));
        assert_eq!(label(r#"{"type":"x","response_id":"r","delta":"lo"#), pair("x", "r"));
    }

    #[test]
    fn a_message_is_one_event_of_a_stream() {
        assert_eq!(as_event(b"{\n\"a\": 1}"), b"data: { \"a\": 1}\n\n");
    }
}
