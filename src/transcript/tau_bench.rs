//! tau-bench results: one conversation per entry, and each task once per trial.

use super::{
    chat,
    draft::FrameDraft,
    names::{Names, label},
    sink::Sink,
    take,
};
use crate::{
    json::{Object, Value},
    veil::Source,
};

/// Reads `[{task_id, trial, reward, info, traj: [message]}]`.
#[derive(Default)]
pub(super) struct TauBenchReader {
    names: Names,
}

impl TauBenchReader {
    pub(super) fn is_document(value: &Value) -> bool {
        value.as_array().is_some_and(|entries| entries.iter().any(is_entry))
    }

    fn entry(&mut self, mut entry: Object, line: u64, sink: &mut Sink) {
        let Some(messages) = take::list(&mut entry, "traj") else {
            return sink.unknown(line, "an entry without a list `traj`", entry.into());
        };
        let (task, trial) = (label(entry.get("task_id")), label(entry.get("trial")));
        sink.session(&self.names.unique(format!("task-{task}-trial-{trial}")));
        // The reward and the rest of the entry stand before the conversation, as a record.
        sink.push(FrameDraft { payload: entry, ..FrameDraft::record(Source::Environment, line) });
        for message in messages {
            chat::message_or_unknown(message, line, sink);
        }
    }
}

fn is_entry(value: &Value) -> bool {
    value.get("traj").is_some_and(|traj| traj.as_array().is_some())
}

impl super::Decoder for TauBenchReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let entries = match value {
            Value::Array(entries) => entries,
            other => vec![other],
        };
        for entry in entries {
            match entry {
                Value::Object(entry) if entry.contains_key("traj") => self.entry(entry, line, sink),
                other => sink.unknown(line, "an entry without `traj`", other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn an_entry_is_a_session_and_keeps_its_reward() {
        check(
            r#"[{"task_id": 0, "trial": 0, "reward": 1.0, "info": {"source": "user"}, "traj": [
                 {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function",
                    "function": {"name": "find", "arguments": "{\"x\": 1}"}}]},
                 {"role": "tool", "tool_call_id": "a", "name": "find", "content": ""}]},
                {"task_id": 0, "trial": 1, "traj": []},
                {"task_id": 0, "trial": 1, "traj": [7]},
                {"task_id": 2, "traj": {}}, 5]"#,
            r#"
            tau-bench
            # task-0-trial-0
            environment - {"task_id":0,"trial":0,"reward":1.0,"info":{"source":"user"}}
            user message
              event "Hi"
            agent message {"form":"null"}
              call find a {"x":1}
            environment message {"name":"find"}
              result find a ""
            # task-0-trial-1
            environment - {"task_id":0,"trial":1}
            # task-0-trial-1-2
            environment - {"task_id":0,"trial":1}
            environment -
              unknown (a number is no message) 7
            environment -
              unknown (an entry without a list `traj`) {"task_id":2,"traj":{}}
            environment -
              unknown (an entry without `traj`) 5
            messages 3, calls 1, results 1, sessions 3, unknown 3, skipped {}
            "#,
        );
    }
}
