//! The items of an answer in a rollout, until its usage is known: the record of that comes after them.

use super::{LimitWindow, answer, draft::FrameDraft, joining, sink::Sink};
use crate::{
    json::{Object, ObjectExt, Value},
    veil::{AnswerId, ModelAnswer, Source},
};

/// How many items wait for the usage of their answer, and how many bytes of them.
const MOST_ITEMS: usize = 1024;
const MOST_BYTES: usize = 16 << 20;

/// Where a record stands: its line, and its time.
pub(super) type RecordPlace = (u64, Option<String>);

/// The answer that is being read.
#[derive(Default)]
pub(super) struct CodexAnswer {
    /// Its items, and the outputs of its calls that came before its usage.
    waiting: Vec<FrameDraft>,
    bytes: usize,
    /// What was reported last, with the total of the session: a client writes it again.
    reported: Option<Value>,
    /// Whether usage was reported since the last turn ended.
    is_turn_reported: bool,
    /// The model of the answers from here on.
    model: Option<String>,
}

impl CodexAnswer {
    /// Takes the context of a turn, which names its model.
    pub(super) fn turn(&mut self, context: &Value) {
        if let Some(model) = context.str_at("model") {
            self.model = Some(model.to_owned());
        }
    }

    /// Takes the next item. One of the agent's after another's begins the next answer.
    pub(super) fn push(&mut self, mut draft: FrameDraft, sink: &mut Sink) {
        let goes_on = match draft.source {
            Source::Agent => self.waiting.last().is_none_or(|last| last.source == Source::Agent),
            // The outputs of calls.
            Source::Environment => true,
            _ => false,
        };
        if !goes_on {
            self.give(sink);
        }
        if draft.source == Source::Agent {
            let model = self.model.as_deref().map(Box::from);
            draft.add_answer(ModelAnswer { model, ..ModelAnswer::default() });
        } else if self.waiting.is_empty() {
            return sink.push(draft);
        }
        self.bytes += joining::bytes(&draft);
        self.waiting.push(draft);
        if self.waiting.len() >= MOST_ITEMS || self.bytes >= MOST_BYTES {
            self.give(sink);
        }
    }

    /// Takes a record of what an answer cost; `false` where it tells nothing new. Where no answer
    /// waits for it, it is that of an answer that is nowhere.
    pub(super) fn report(&mut self, record: Object, at: RecordPlace, sink: &mut Sink) -> bool {
        if let Some(limits) = record.get("rate_limits") {
            let windows = LimitWindow::of_codex(limits, at.1.as_deref());
            windows.for_each(|window| sink.limit(&window));
        }
        let mut record = match record.get("info") {
            Some(Value::Object(info)) => info.clone(),
            _ => record,
        };
        let Some(usage @ Value::Object(_)) = record.get("last_token_usage").cloned() else {
            return false;
        };
        let total = record.shift_remove("total_token_usage");
        if total.is_some() && self.reported == total {
            return false;
        }
        self.reported = total;
        self.is_turn_reported = true;
        if self.waiting.is_empty() {
            return self.without_answer(usage, at, sink);
        }
        for draft in &mut self.waiting {
            // An item has an id of its own.
            let id = draft.payload.str_at("id");
            let id = id.map(|id| AnswerId::Part(id.into()));
            draft.add_answer(ModelAnswer { id, ..answer::of(None, Some(&usage)) });
        }
        self.give(sink);
        true
    }

    /// Takes the end of a turn, which may say what the turn cost: that counts where no answer of it
    /// did. `false` where it tells nothing.
    pub(super) fn end_turn(&mut self, record: &Object, at: RecordPlace, sink: &mut Sink) -> bool {
        self.give(sink);
        let is_known = std::mem::take(&mut self.is_turn_reported);
        let usage = record.get("usage").filter(|_| !is_known);
        usage.is_some_and(|usage| self.without_answer(usage.clone(), at, sink))
    }

    /// Gives out a frame that shows nothing and tells this usage, unless that is of no tokens: after
    /// a compaction the program estimates its context, and reports that nothing was used.
    fn without_answer(
        &self,
        usage: Value,
        (line, timestamp): RecordPlace,
        sink: &mut Sink,
    ) -> bool {
        let figures = [usage.get("input_tokens"), usage.get("output_tokens")];
        let is_nothing = figures.into_iter().flatten().all(|figure| figure.as_u64() == Some(0));
        let Value::Object(mut usage) = usage else { return false };
        if is_nothing {
            return false;
        }
        usage.put_some("model", self.model.as_deref());
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.timestamp = timestamp;
        draft.session_usage.push(answer::of_usage(&usage.into()));
        sink.push(draft);
        true
    }

    /// Gives out what waits.
    pub(super) fn give(&mut self, sink: &mut Sink) {
        self.bytes = 0;
        self.waiting.drain(..).for_each(|draft| sink.push(draft));
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, sync::Arc};

    use crate::{
        id::Millis,
        request::Recording,
        tokens::Chars4,
        transcript::{Transcript, TranscriptFormat},
    };

    /// The model and the usage of each exchange of a rollout of these records.
    fn exchanges(records: &[&str]) -> String {
        let lines = records.iter().map(|record| match *record {
            "user" => r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}}"#.to_owned(),
            "speech" => r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}}"#.to_owned(),
            "hidden" => r#"{"type":"response_item","payload":{"type":"reasoning","summary":[]}}"#.to_owned(),
            "call" => r#"{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}}"#.to_owned(),
            "output" => r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"7"}}"#.to_owned(),
            "none" => r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#.to_owned(),
            "turn" => r#"{"type":"event_msg","payload":{"type":"turn.completed"}}"#.to_owned(),
            turn if turn.starts_with("turn ") => format!(
                r#"{{"type":"event_msg","payload":{{"type":"turn.completed","usage":{{"input_tokens":{},"cached_input_tokens":0,"output_tokens":2}}}}}}"#,
                &turn[5..],
            ),
            number => match number.parse::<u64>() {
                Ok(total) => format!(
                    r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{},"cached_input_tokens":{},"output_tokens":{},"reasoning_output_tokens":0}},"total_token_usage":{{"total_tokens":{total}}}}}}}}}"#,
                    total % 100,
                    (total % 100).min(1),
                    (total % 100).min(2),
                ),
                Err(_) => format!(r#"{{"type":"turn_context","payload":{{"model":"{number}"}}}}"#),
            },
        });
        let head = r#"{"type":"session_meta","payload":{"id":"s"}}"#.to_owned();
        let file: String = std::iter::once(head).chain(lines).map(|line| line + "\n").collect();
        let transcript =
            Transcript::with_format(file.as_bytes(), Some(TranscriptFormat::Codex)).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let unlisted = recording.reported().filter(|exchange| exchange.is_unlisted);
        let unlisted: String = unlisted
            .map(|exchange| {
                let model = exchange.model.as_deref().unwrap_or("?");
                format!(
                    "- {model} {}, ",
                    exchange.usage.as_ref().and_then(|usage| usage.input).unwrap_or(0)
                )
            })
            .collect();
        let listed = recording.exchanges().iter().fold(String::new(), |mut all, exchange| {
            let (frame, model) = (exchange.answer().unwrap().get(), exchange.model.as_deref());
            let input = exchange.usage.as_ref().and_then(|usage| usage.input);
            let (model, input) = (model.unwrap_or("?"), input.map_or(0, |input| input));
            write!(all, "{frame} {model} {input}, ").unwrap();
            all
        });
        listed + &unlisted
    }

    #[test]
    fn an_answer_has_the_model_of_its_turn_and_the_usage_after_it() {
        let plain = ["m", "user", "hidden", "call", "10", "output", "speech", "30"];
        assert_eq!(exchanges(&plain), "2 m 10, 4 m 30, ");
        // The usage may come after the outputs, too.
        let late =
            ["m", "user", "call", "output", "10", "speech", "30", "n", "user", "speech", "70"];
        assert_eq!(exchanges(&late), "1 m 10, 3 m 30, 5 n 70, ");
        // Answers that follow each other are told apart by it.
        let adjacent = ["m", "user", "hidden", "speech", "10", "hidden", "speech", "30"];
        assert_eq!(exchanges(&adjacent), "2 m 10, 4 m 30, ");
    }

    #[test]
    fn usage_that_is_written_again_counts_once_and_that_of_no_answer_is_in_no_list() {
        let again = ["m", "user", "speech", "10", "10", "user", "speech", "10", "30"];
        assert_eq!(exchanges(&again), "1 m 10, 3 m 30, ");
        // An answer that was broken off has none, and those of others are not its own.
        let broken = ["user", "call", "output", "none", "user", "10", "m", "speech", "30"];
        assert_eq!(exchanges(&broken), "1 ? 0, 5 m 30, - ? 10, ");
        // Two requests may cost the same, and what is of no tokens is none.
        let alike = ["m", "user", "10", "110", "200", "speech", "30"];
        assert_eq!(exchanges(&alike), "3 m 30, - m 10, - m 10, ");
    }

    #[test]
    fn what_a_turn_cost_counts_where_its_answers_say_nothing() {
        let turns = ["m", "user", "turn 40", "turn 50", "user", "speech", "30", "turn 30"];
        assert_eq!(exchanges(&turns), "4 m 30, - m 40, - m 50, ");
        let none = ["user", "speech", "none", "turn 40", "turn"];
        assert_eq!(exchanges(&none), "1 ? 0, - ? 40, ");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut records = vec!["user"];
        records.resize(3 * super::MOST_ITEMS, "speech");
        records.push("10");
        assert_eq!(exchanges(&records), "1 ? 10, ");
    }
}
