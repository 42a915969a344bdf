//! What the events of a stream say, as they come: what a client shows before the answer is whole.

use super::sse::events;
use crate::json::Value;

/// What the events in a piece of a stream say: text, then reasoning.
pub(crate) fn said_in(stream: &str) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for event in events(stream) {
        let (said, thought) = said_by(&event);
        said.into_iter().for_each(|said| text.push_str(said));
        thought.into_iter().for_each(|thought| reasoning.push_str(thought));
    }
    (text, reasoning)
}

/// The text and the reasoning of an event. The APIs name their events apart, so each says whose it is.
fn said_by(event: &Value) -> (Option<&str>, Option<&str>) {
    match event.str_at("type") {
        Some("content_block_start" | "content_block_delta") => {
            let part = event.get("content_block").or_else(|| event.get("delta"));
            let of = |kind: &str| part.and_then(|part| part.str_at(kind));
            (of("text"), of("thinking"))
        }
        Some("response.output_text.delta" | "response.refusal.delta") => {
            (event.str_at("delta"), None)
        }
        Some("response.reasoning_text.delta" | "response.reasoning_summary_text.delta") => {
            (None, event.str_at("delta"))
        }
        _ => {
            let choices = event.get("choices").and_then(Value::as_array);
            let is_first = |of: &&Value| of.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
            let delta = choices.and_then(|choices| choices.iter().find(is_first)?.get("delta"));
            let of = |key: &str| delta.and_then(|delta| delta.str_at(key));
            let text = of("content").or_else(|| of("refusal"));
            (text, of("reasoning_content").or_else(|| of("reasoning")))
        }
    }
}
