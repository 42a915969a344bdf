use std::{collections::VecDeque, ops::Range};

use afterimage_json as json;

/// The message of a client that asks for an answer.
const ASKS: &str = "response.create";
/// The events that end an answer.
const LAST: [&str; 5] =
    ["response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"];
/// The event that begins an answer, and tells its id first.
const FIRST: &str = "response.created";
/// So many answers are remembered that are over, though events of them may come.
const MOST_OVER: usize = 64;

/// The answers of a WebSocket of the Responses API that were asked for and have not ended, with what
/// is held of each: which of them an event belongs to.
///
/// ```
/// use afterimage_record::SocketAnswers;
///
/// let mut answers = SocketAnswers::default();
/// assert!(SocketAnswers::is_asking(b"{\"type\": \"response.create\"}", true));
/// answers.ask("first");
/// let event = answers.place(b"{\"type\": \"response.completed\"}").unwrap();
/// assert!(event.is_last);
/// assert_eq!(answers.remove(event.at), Some("first"));
/// ```
#[derive(Debug)]
pub struct SocketAnswers<T> {
    /// Those that run, the oldest first: providers answer in order.
    running: VecDeque<Running<T>>,
    /// The ids of answers that have ended: what comes of them is of no other.
    over: VecDeque<String>,
}

#[derive(Debug)]
struct Running<T> {
    held: T,
    /// The provider's id of the answer, where it has said it.
    id: Option<String>,
}

/// An event of an answer that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerEvent {
    /// The place of the answer among those that run.
    pub at: usize,
    /// Whether it is the first one of a well-behaved provider.
    pub is_first: bool,
    /// Whether nothing follows it.
    pub is_last: bool,
}

impl<T> Default for SocketAnswers<T> {
    fn default() -> Self {
        Self { running: VecDeque::new(), over: VecDeque::new() }
    }
}

impl<T> SocketAnswers<T> {
    /// How many answers run.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Another answer was asked for.
    pub fn ask(&mut self, held: T) {
        self.running.push_back(Running { held, id: None });
    }

    /// The answer that an event belongs to; `None` where nobody knows. O(n + answers).
    pub fn place(&mut self, event: &[u8]) -> Option<AnswerEvent> {
        let label = EventLabel::of(event);
        let at = self.place_of(&label)?;
        let of = self.running.get_mut(at)?;
        of.id = of.id.take().or(label.response);
        let kind = label.kind.unwrap_or_default();
        let (is_first, is_last) = (kind == FIRST, LAST.contains(&kind.as_str()));
        Some(AnswerEvent { at, is_first, is_last })
    }

    fn place_of(&self, label: &EventLabel) -> Option<usize> {
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

    /// What is held of the answer at this place.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.running.get_mut(at).map(|of| &mut of.held)
    }

    /// Ends the answer at this place.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        let Running { held, id } = self.running.remove(at)?;
        if let Some(id) = id {
            if self.over.len() == MOST_OVER {
                self.over.pop_front();
            }
            self.over.push_back(id);
        }
        Some(held)
    }

    /// Answers are given in order: of those before one that begins nothing comes any more. Removes
    /// those that `is_cut` says nothing more is held of, and whose last event may have been missed.
    pub fn remove_cut_before(&mut self, begun: usize, is_cut: impl Fn(&T) -> bool) {
        for at in (0..begun).rev() {
            if self.running.get(at).is_some_and(|of| of.id.is_some() && is_cut(&of.held)) {
                self.remove(at);
            }
        }
    }

    /// Ends all of them, the oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.running.drain(..).map(|of| of.held)
    }
}

impl SocketAnswers<()> {
    /// Whether a message of the client asks for an answer. Of one that is not whole the kind may
    /// stand behind its beginning, and is looked for anywhere. O(n).
    pub fn is_asking(message: &[u8], is_whole: bool) -> bool {
        if is_whole {
            return EventLabel::of(message).kind.as_deref() == Some(ASKS);
        }
        message.windows(ASKS.len()).any(|window| window == ASKS.as_bytes())
    }

    /// A message of a WebSocket as an event of a stream: JSON has line ends between its values alone, where a space does
    /// as well.
    pub fn as_event(message: &[u8]) -> Vec<u8> {
        let mut event = Vec::with_capacity(message.len() + 8);
        event.extend_from_slice(b"data: ");
        event.extend(
            message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }),
        );
        event.extend_from_slice(b"\n\n");
        event
    }
}

/// What an event tells of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct EventLabel {
    kind: Option<String>,
    /// The answer that it is of.
    response: Option<String>,
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
        assert_eq!(SocketAnswers::as_event(b"{\n\"a\": 1}"), b"data: { \"a\": 1}\n\n");
    }
}
