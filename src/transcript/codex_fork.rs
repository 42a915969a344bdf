//! Where the own records of a rollout begin that was forked from another session, or resumed into
//! another file: the program copies the records of the first session, and what these report was paid
//! for there.

use super::{draft::FrameDraft, sink::Sink, times};
use crate::{
    json::{Object, Value},
    veil::{CopyOf, Source},
};

/// The program writes copies one after the other. So long a pause, in milliseconds, ends them.
const PAUSE: i64 = 250;
/// No model answers within so many milliseconds.
const INSTANT: i64 = 2;

/// Finds the first record of a rollout that is no copy. Times are milliseconds since 1970.
///
/// The times of the copies are those of the first session, or all of the moment of the fork. Turns
/// have ids that hold their times, and some versions write the session's own header again behind the
/// copies.
#[derive(Debug, Default)]
pub(super) struct CodexFork {
    copies: Copies,
    /// The id in the first header, which is the session's own.
    id: Option<String>,
    /// The session that it was forked from, once a header says that it was.
    from: Option<CopyOf>,
    forked_at: Option<i64>,
    /// The line of the last record, and when the last was written that says so.
    line: u64,
    written: Option<i64>,
    /// How many records a model was to answer, and when the last of them was written.
    questions: u64,
    asked: Option<i64>,
    /// How many answers reported their usage, and how many of them faster than a model could.
    answers: u64,
    instant: u64,
}

/// What will end the copies.
#[derive(Debug, Default, PartialEq, Eq)]
enum Copies {
    /// A pause: no record has told that it is older than the fork.
    #[default]
    UntilPause,
    /// A turn that is newer than the fork, since one before was older.
    UntilNewTurn,
    /// Any record that is newer than the fork, since one before was older.
    UntilNewRecord,
    /// Nothing: they have ended.
    Ended,
}

impl CodexFork {
    /// Takes the next record, before it is read. Where it is the first after copies, returns a frame
    /// that says so of all frames before.
    pub(super) fn record(&mut self, record: &Object, line: u64) -> Option<FrameDraft> {
        self.line = line;
        if self.copies == Copies::Ended {
            return None;
        }
        let written = times::of_record(record);
        let payload = record.get("payload");
        if record.str_at("type") == Some("session_meta") {
            return self.header(payload?.as_object()?, written);
        }
        let turn = payload.filter(|payload| begins_turn(record, payload));
        let by_turn = turn.and_then(|payload| self.turn(payload.str_at("turn_id")?));
        let mark = by_turn.or_else(|| self.time(written?));
        if written.is_some() && payload.is_some_and(is_question) {
            self.questions += 1;
            self.asked = written;
        }
        mark
    }

    /// Takes that the last record reports the usage of an answer.
    pub(super) fn answer(&mut self) {
        let waited = self.written.zip(self.asked).map(|(written, asked)| written - asked);
        self.answers += 1;
        self.instant += u64::from(waited.is_some_and(|waited| waited <= INSTANT));
    }

    /// Takes a header: the first is the session's own, others are those of the sessions before it.
    fn header(&mut self, meta: &Object, written: Option<i64>) -> Option<FrameDraft> {
        let id = meta.str_at("id");
        let copy_of = |session: &str| CopyOf { session: Some(session.into()) };
        if self.id.is_none() {
            let from = meta.str_at("forked_from_id").filter(|from| !from.is_empty());
            let created = meta.str_at("timestamp").and_then(times::moment);
            self.from = from.map(copy_of);
            self.forked_at = created.or_else(|| minted(id?)).or(written);
            self.written = written;
            self.id = Some(id.unwrap_or_default().to_owned());
        } else if self.id.as_deref() == id {
            return self.end_copies(self.from.is_some());
        } else if self.answers == 0 {
            self.from.get_or_insert_with(|| id.map(copy_of).unwrap_or_default());
        }
        None
    }

    /// Takes the id of a turn that begins.
    fn turn(&mut self, id: &str) -> Option<FrameDraft> {
        self.from.as_ref()?;
        if minted(id)? >= self.forked_at? {
            return self.end_copies(true);
        }
        if self.copies == Copies::UntilPause {
            self.copies = Copies::UntilNewTurn;
        }
        None
    }

    /// Takes when a record was written.
    fn time(&mut self, written: i64) -> Option<FrameDraft> {
        let last = self.written.replace(written);
        let is_forked = self.from.is_some();
        if is_forked && self.forked_at.is_some_and(|at| written < at) {
            self.copies = Copies::UntilNewRecord;
            return None;
        }
        let is_pause = last.is_some_and(|last| written - last >= PAUSE);
        match self.copies {
            Copies::UntilNewRecord => self.end_copies(true),
            Copies::UntilPause if is_pause => {
                let are_answers_copied = self.answers > 1 && self.instant == self.answers;
                self.end_copies(is_forked || are_answers_copied && self.questions > 1)
            }
            _ => None,
        }
    }

    /// The session's own records begin. If those before them are copies, returns a frame that says so.
    fn end_copies(&mut self, are_copies: bool) -> Option<FrameDraft> {
        self.copies = Copies::Ended;
        let mut draft = FrameDraft::record(Source::Environment, self.line);
        draft.copied_before = Some(self.from.take().unwrap_or_default());
        (are_copies && self.questions > 0).then_some(draft)
    }

    /// The file ends. If it was forked and nothing says where the copies end, notes that.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        let Some(from) = self.from.as_ref().filter(|_| self.answers > 0) else { return };
        let is_dated = self.written.is_some();
        if self.copies == Copies::UntilPause {
            let taken = if is_dated { "all are taken for copies" } else { "all are counted" };
            let from = from.session.as_deref().unwrap_or("another session");
            let says = "nothing tells its own answers from those that it copied";
            sink.note(self.line, &format!("forked from {from}, and {says}: {taken}"));
        }
        if let Some(mark) = self.end_copies(is_dated || self.copies != Copies::UntilPause) {
            sink.push(mark);
        }
    }
}

/// Whether a record says that a turn begins.
fn begins_turn(record: &Object, payload: &Value) -> bool {
    match record.str_at("type") {
        Some("turn_context") => true,
        Some("event_msg") => {
            matches!(payload.str_at("type"), Some("task_started" | "turn_started"))
        }
        _ => false,
    }
}

/// Whether a model is to answer an item: a message of the user, or the output of a call.
fn is_question(item: &Value) -> bool {
    let is_output = item.str_at("type").is_some_and(|kind| kind.ends_with("_output"));
    is_output || item.str_at("role") == Some("user")
}

/// The milliseconds since 1970 at which a UUID was made that holds its time (version 7).
fn minted(id: &str) -> Option<i64> {
    let is_of_time = id.len() == 36 && id.get(14..15) == Some("7");
    let digits = id.get(..13).filter(|_| is_of_time)?.replace('-', "");
    i64::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_hold_its_time() {
        assert_eq!(minted("019ac4f1-8000-7000-8000-00000000000a"), Some(0x019a_c4f1_8000));
        assert_eq!(minted("019ac4f1-8000-4000-8000-00000000000a"), None);
    }
}
