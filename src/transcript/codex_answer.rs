//! The items of an answer in a rollout, until its usage is known: the record of that comes after them.

use super::{
    joining,
    sink::{FrameDraft, Sink},
};
use crate::{
    json::{Object, ObjectExt, Value},
    veil::Source,
};

/// How many items wait for the usage of their answer, and how many bytes of them.
const MOST_ITEMS: usize = 1024;
const MOST_BYTES: usize = 16 << 20;

/// The answer that is being read.
#[derive(Default)]
pub(super) struct CodexAnswer {
    /// Its items, and the outputs of its calls that came before its usage.
    waiting: Vec<FrameDraft>,
    bytes: usize,
    /// What was reported last, with the total of the session: a client writes it again.
    reported: Option<Value>,
    /// The model of the answers from here on.
    model: Option<String>,
}

impl CodexAnswer {
    /// Takes the context of a turn, which names its model.
    pub(super) fn turn(&mut self, context: &Value) {
        if let Some(model) = context.get("model").and_then(Value::as_str) {
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
            if !draft.payload.contains_key("model") {
                draft.payload.put_some("model", self.model.as_deref());
            }
        } else if self.waiting.is_empty() {
            return sink.push(draft);
        }
        self.bytes += joining::bytes(&draft);
        self.waiting.push(draft);
        if self.waiting.len() >= MOST_ITEMS || self.bytes >= MOST_BYTES {
            self.give(sink);
        }
    }

    /// Takes a record of what an answer cost; `false` where it tells nothing of one.
    pub(super) fn report(&mut self, record: Object, sink: &mut Sink) -> bool {
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
        let is_told = !self.waiting.is_empty();
        for draft in self.waiting.iter_mut().filter(|draft| draft.source == Source::Agent) {
            draft.payload.put("usage", usage.clone());
        }
        self.give(sink);
        is_told
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
            number => match number.parse::<u64>() {
                Ok(total) => format!(
                    r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{},"cached_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":0}},"total_token_usage":{{"total_tokens":{total}}}}}}}}}"#,
                    total % 100,
                ),
                Err(_) => format!(r#"{{"type":"turn_context","payload":{{"model":"{number}"}}}}"#),
            },
        });
        let head = r#"{"type":"session_meta","payload":{"id":"s"}}"#.to_owned();
        let file: String = std::iter::once(head).chain(lines).map(|line| line + "\n").collect();
        let transcript =
            Transcript::with_format(file.as_bytes(), Some(TranscriptFormat::Codex)).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        recording.exchanges().iter().fold(String::new(), |mut all, exchange| {
            let (frame, model) = (exchange.answer().unwrap().get(), exchange.model.as_deref());
            let input = exchange.usage.and_then(|usage| usage.input);
            let (model, input) = (model.unwrap_or("?"), input.map_or(0, |input| input));
            write!(all, "{frame} {model} {input}, ").unwrap();
            all
        })
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
    fn usage_that_is_written_again_or_of_no_answer_counts_for_none() {
        let again = ["m", "user", "speech", "10", "10", "user", "speech", "10", "30"];
        assert_eq!(exchanges(&again), "1 m 10, 3 m 30, ");
        // An answer that was broken off has none, and those of others are not its own.
        let broken = ["user", "call", "output", "none", "user", "10", "m", "speech", "30"];
        assert_eq!(exchanges(&broken), "1 ? 0, 4 m 30, ");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut records = vec!["user"];
        records.resize(3 * super::MOST_ITEMS, "speech");
        records.push("10");
        assert_eq!(exchanges(&records), "1 ? 10, ");
    }
}
