//! The answers to a request for several messages, put together.

use async_nats::{Message, StatusCode, header::HeaderValue};

use super::{connect::unavailable, wire};
use crate::{
    Result,
    request::{Page, Position},
};

/// The status at the end of a page, and where there is nothing to put on one.
const END_OF_BATCH: u16 = 204;
const NOTHING_THERE: u16 = 404;

/// A page that comes in message by message.
pub(super) struct IncomingPage<'s> {
    stream: &'s str,
    /// Events before this position are not wanted.
    from: Position,
    /// The message that came last; 0 before the first one.
    last: u64,
    page: Page,
}

impl<'s> IncomingPage<'s> {
    pub(super) fn new(stream: &'s str, from: Position) -> Self {
        Self { stream, from, last: 0, page: Page::default() }
    }

    /// Takes the next answer; the page where that one is its end.
    ///
    /// # Errors
    /// `Unavailable` where messages before this one did not come, wherever on the page they were,
    /// and for an answer that is no page; `Damaged` for a message that is no event.
    pub(super) fn take(&mut self, answer: &Message) -> Result<Option<Page>> {
        match answer.status.map(|status| status.as_u16()) {
            None => {}
            Some(NOTHING_THERE) => return Ok(Some(self.end(true))),
            Some(END_OF_BATCH) => {
                self.follows(answer)?;
                let is_end = number(answer, "Nats-Num-Pending") == Some(0);
                if self.page.events.is_empty() && !is_end {
                    return Err(unavailable("the server sent a page without events"));
                }
                return Ok(Some(self.end(is_end)));
            }
            Some(_) if answer.status == Some(StatusCode::NO_RESPONDERS) => {
                return Err(unavailable(format!("nobody has the stream ({})", self.stream)));
            }
            Some(status) => {
                let description = answer.description.as_deref().unwrap_or("no reason");
                return Err(unavailable(format!("the server answered {status}: {description}")));
            }
        }
        let message = number(answer, "Nats-Sequence")
            .ok_or_else(|| unavailable("the server answered without a sequence"))?;
        self.follows(answer)?;
        self.last = message;
        let placed = wire::placed(message, &answer.payload)?;
        let from = self.from;
        self.page.events.extend(placed.into_iter().filter(|placed| placed.position >= from));
        Ok(None)
    }

    /// That nothing was lost between the last answer and this one, which names what was sent before
    /// it: 0 before the first message of a page.
    fn follows(&self, answer: &Message) -> Result<()> {
        match number(answer, "Nats-Last-Sequence") {
            Some(before) if before != self.last => {
                Err(unavailable("messages of a page were lost on the way"))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, is_end: bool) -> Page {
        Page { is_end, ..std::mem::take(&mut self.page) }
    }
}

fn number(message: &Message, name: &str) -> Option<u64> {
    message.headers.as_ref()?.get(name).map(HeaderValue::as_str)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use async_nats::HeaderMap;

    use super::*;
    use crate::{
        Error, ErrorKind, EventId, Millis, NewEvent,
        request::{Append, Writing},
    };

    /// An answer with what it says of itself, and one event for a message.
    fn answer(status: Option<u16>, headers: &[(&str, u64)]) -> Message {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.to_string());
        }
        let sequence = headers.iter().find(|(name, _)| *name == "Nats-Sequence");
        let payload = sequence.map(|(_, sequence)| {
            let id = EventId::new(sequence.to_string()).unwrap();
            let event = NewEvent::new(id, "note", *b"{}").unwrap();
            let events = vec![Writing { event, recorded_at: Millis::new(0) }];
            wire::payload(&Append { sequence: *sequence, after: 0, events })
        });
        Message {
            subject: "inbox".into(),
            reply: None,
            payload: payload.unwrap_or_default().into(),
            headers: Some(map),
            status: status.map(|status| StatusCode::from_u16(status).unwrap()),
            description: None,
            length: 0,
        }
    }

    fn message(sequence: u64, before: u64) -> Message {
        answer(None, &[("Nats-Sequence", sequence), ("Nats-Last-Sequence", before)])
    }

    fn end(last: u64, pending: u64) -> Message {
        answer(Some(END_OF_BATCH), &[("Nats-Last-Sequence", last), ("Nats-Num-Pending", pending)])
    }

    fn read(from: u64, answers: &[Message]) -> Result<Page> {
        let mut incoming = IncomingPage::new("afterimage", wire::first_position(from));
        for answer in answers {
            if let Some(page) = incoming.take(answer)? {
                return Ok(page);
            }
        }
        Err(Error::new(ErrorKind::Other, "no end"))
    }

    #[test]
    fn a_page_is_whole_or_asked_for_again_wherever_messages_of_it_were_lost() {
        let sent = [message(3, 0), message(4, 3), message(9, 4), end(9, 0)];
        let page = read(3, &sent).unwrap();
        let sequences: Vec<u64> = page.events.iter().map(|placed| placed.event.sequence).collect();
        assert_eq!((sequences, page.is_end), (vec![3, 4, 9], true));
        for lost in 0..3 {
            for until in lost + 1..=3 {
                let mut came = sent.to_vec();
                came.drain(lost..until);
                let error = read(3, &came).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{lost} to {until}: {error}");
            }
        }
    }

    #[test]
    fn messages_before_the_wanted_position_count_as_sent() {
        let page = read(4, &[message(3, 0), message(4, 3), end(4, 7)]).unwrap();
        assert_eq!((page.events.len(), page.is_end), (1, false));
        assert_eq!(read(4, &[message(3, 0), end(3, 0)]).unwrap().events.len(), 0);
    }
}
