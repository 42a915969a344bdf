use std::sync::Arc;

use crate::{
    Recorder, ResponseRecorder, SocketAnswers, Start,
    wire::passing::{EndReceipt, Patience},
};

/// So many answers are recorded that were asked for before the first one came.
const MOST_RUNNING: usize = 64;
/// And so many are waited for. With more nobody knows whose an event is.
const MOST_ASKED: usize = 4096;
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
    answers: SocketAnswers<OpenAnswer>,
    /// Whether more was asked for than can be told apart: from then on no answer is recorded.
    is_lost: bool,
    patience: Patience,
}

/// An answer that was asked for, until its last event.
#[derive(Debug)]
struct OpenAnswer {
    /// `None` where its exchange was ended before.
    response: Option<ResponseRecorder>,
    has_head: bool,
}

impl Exchanges {
    pub(super) fn new(recorder: Arc<Recorder>, start: Start, patience: Patience) -> Self {
        Self { recorder, start, answers: SocketAnswers::default(), is_lost: false, patience }
    }

    /// Takes a message of the client.
    pub(super) fn asked(&mut self, bytes: &[u8], total: u64) {
        let is_asking = SocketAnswers::is_asking(bytes, total <= bytes.len() as u64);
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
        let mut answer = OpenAnswer { response: Some(response), has_head: false };
        if self.is_lost || self.answers.len() >= MOST_RUNNING {
            drop(answer.end(Some(TOO_MANY), &self.patience));
        }
        if !self.is_lost {
            self.answers.ask(answer);
        }
        if self.answers.len() > MOST_ASKED {
            self.is_lost = true;
            self.cut(TOO_MANY);
        }
    }

    /// Takes an event of the provider. Gives the end of the exchange that it ends.
    pub(super) fn answered(&mut self, bytes: &[u8], total: u64) -> Option<EndReceipt> {
        let is_long = total > bytes.len() as u64;
        let event = self.answers.place(bytes)?;
        let answer = self.answers.get_mut(event.at)?;
        answer.push(bytes);
        // What follows of an answer that was cut keeps its place.
        let cut = is_long.then(|| answer.end(Some(TOO_LONG), &self.patience)).flatten();
        if event.is_last {
            let mut answer = self.answers.remove(event.at)?;
            return cut.or(answer.end(None, &self.patience));
        }
        if event.is_first {
            // One that is not recorded any further may have had a last event that was too long to be
            // known.
            self.answers.remove_cut_before(event.at, |of| of.response.is_none());
        }
        cut
    }

    /// Ends what runs for a reason.
    pub(super) fn cut(&mut self, reason: &str) {
        for mut response in self.answers.drain().filter_map(|answer| answer.response) {
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
        response.push(&SocketAnswers::as_event(event));
    }

    /// Ends its exchange, unless that is ended.
    fn end(&mut self, cut: Option<&str>, patience: &Patience) -> Option<EndReceipt> {
        let mut response = self.response.take()?;
        Some(EndReceipt::end(&mut response, cut, patience))
    }
}
