//! Streams of events that broke off: up to where can a secret not have been cut?

use std::collections::HashSet;

use super::{Redactor, stream::StreamForm};
use crate::json::{self, Value};

impl Redactor {
    /// As [`Redactor::body`], of a body that broke off. Of a stream of events it gives what comes
    /// before the first item that did not come to its end: what is there of a secret would not be
    /// known for one. `None` where nothing is left, as of JSON. Costs what that does, and parses
    /// the events: O(text).
    ///
    /// ```
    /// use afterimage::redact::{RedactionRules, Redactor};
    ///
    /// let mut redactor = Redactor::new(&RedactionRules::embedded()?);
    /// let begun = "data: {\"type\":\"message_start\"}\n\n";
    /// let cut = format!("{begun}data: {{\"type\":\"content_block_start\",\"index\":0}}\n\ndata: {{\"ty");
    /// assert_eq!(redactor.broken_body(&cut, "response 1").as_deref(), Some(begun));
    /// assert_eq!(redactor.broken_body("{\"key\": \"sk-ant-", "response 2"), None);
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn broken_body(&mut self, text: &str, place: &str) -> Option<String> {
        let is_of_events = StreamForm::of(text) == Some(StreamForm::Events);
        let end = if is_of_events { whole_items(text) } else { 0 };
        let whole = text.get(..end).filter(|whole| !whole.is_empty())?;
        Some(self.body(whole, place).into_owned())
    }
}

/// The events that end an answer.
const LAST: [&str; 4] =
    ["message_stop", "response.completed", "response.failed", "response.incomplete"];

/// The events that are whole by themselves: what they say goes on in no other.
const WHOLE: [&str; 8] = [
    "message_start",
    "message_delta",
    "ping",
    "error",
    "response.created",
    "response.in_progress",
    "response.queued",
    "codex.rate_limits",
];

/// Where the last event ends before which every item of a stream came to its end.
fn whole_items(stream: &str) -> usize {
    let mut open: HashSet<u64> = HashSet::new();
    let (mut end, mut at, mut data) = (0, 0, String::new());
    // What is of no item that began may go on, and does not say where it ends.
    let mut is_loose = false;
    for line in stream.split_inclusive('\n') {
        at += line.len();
        let text = line.trim_end_matches(['\n', '\r']);
        if let Some(piece) = text.strip_prefix("data:") {
            data.push_str(piece);
        }
        // Without its last line an event is none.
        if !text.is_empty() || !line.ends_with('\n') {
            continue;
        }
        let event = json::read(data.as_bytes()).unwrap_or_default();
        // Behind these nothing follows.
        if data.trim() == "[DONE]" || event.str_at("type").is_some_and(|kind| LAST.contains(&kind))
        {
            return at;
        }
        is_loose |= !data.trim().is_empty() && !follow(&event, &mut open);
        if open.is_empty() && !is_loose {
            end = at;
        }
        data.clear();
    }
    end
}

/// Follows which items are open. False for an event that says something outside of them.
fn follow(event: &Value, open: &mut HashSet<u64>) -> bool {
    let number = |key: &str| event.get(key).and_then(Value::as_u64);
    let index = |key: &str| number(key).unwrap_or_default();
    let Some(kind) = event.str_at("type") else { return false };
    match kind {
        "content_block_start" => drop(open.insert(index("index"))),
        "content_block_stop" => drop(open.remove(&index("index"))),
        "response.output_item.added" => drop(open.insert(index("output_index"))),
        "response.output_item.done" => drop(open.remove(&index("output_index"))),
        kind if WHOLE.contains(&kind) => {}
        _ => {
            let item = number("output_index").or_else(|| number("index"));
            return item.is_some_and(|item| open.contains(&item));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(list: &[&str]) -> String {
        list.iter().map(|data| format!("event: x\ndata: {data}\n\n")).collect()
    }

    #[test]
    fn a_stream_is_kept_up_to_the_first_item_that_is_not_whole() {
        let responses = [
            r#"{"type":"response.created"}"#,
            r#"{"type":"response.output_item.added","output_index":0}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"sk-"}"#,
            r#"{"type":"response.output_item.added","output_index":1}"#,
            r#"{"type":"response.output_item.done","output_index":1}"#,
            r#"{"type":"response.output_item.done","output_index":0}"#,
            r#"{"type":"response.completed"}"#,
        ];
        let messages = [
            r#"{"type":"message_start"}"#,
            r#"{"type":"content_block_start","index":0}"#,
            r#"{"type":"content_block_delta","index":0}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta"}"#,
        ];
        let loose = [r#"{"type":"ping"}"#, r#"{"type":"x.delta"}"#, r#"{"type":"ping"}"#];
        // An event of a kind that is not known may say half of a secret.
        let unknown = [r#"{"type":"token","text":"sk-"}"#, r#"{"type":"ping"}"#];
        // A delta of another item than the one that is open belongs to none that began.
        let other = [
            r#"{"type":"content_block_start","index":0}"#,
            r#"{"type":"content_block_delta","index":1}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ];
        let chat = [r#"{"choices":[]}"#, "[DONE]"];
        for (list, whole) in [
            (&responses[..], &[1, 1, 1, 1, 1, 6, 7][..]),
            (&messages, &[1, 1, 1, 4, 5]),
            (&loose, &[1, 1, 1]),
            (&unknown, &[0, 0]),
            (&other, &[0, 0, 0]),
            (&chat, &[0, 2]),
        ] {
            for (count, whole) in (1..).zip(whole) {
                let stream = events(&list[..count]);
                assert_eq!(whole_items(&stream), events(&list[..*whole]).len(), "{stream}");
                // Half of the next event changes nothing.
                let cut = format!("{stream}data: {{\"type\":\"response.completed\"}}\n");
                assert_eq!(whole_items(&cut), whole_items(&stream), "{cut}");
            }
        }
    }
}
