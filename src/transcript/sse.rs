//! Streamed responses: server-sent events, joined to what the response would have been in one.
//!
//! A stream that broke off gives what had come so far, and says so; one that gave nothing but an
//! error gives nothing.

use std::collections::BTreeMap;

use super::{choices::StreamedChoices, responses, take};
use crate::json::{self, Object, ObjectExt, Value, object};

/// A response that was put together from a stream.
pub(super) struct StreamedResponse {
    pub(super) response: Value,
    /// Whether the stream says where it ends. One that does not broke off.
    pub(super) is_whole: bool,
    /// Whether its last event came, behind which nothing follows: clients close the connection there.
    pub(super) is_ended: bool,
}

impl StreamedResponse {
    /// Whether it is all that there will be of a response of the Responses API.
    pub(super) fn is_over(&self) -> bool {
        self.is_whole && self.response.str_at("status").is_none_or(responses::is_over)
    }
}

/// The data of the events, in order, the elements of a list, or the lines; what is not JSON
/// (`[DONE]`) is passed over.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    let read = |text: &str| json::read_mended(text.as_bytes()).ok().map(|(value, _)| value);
    // Google streams the elements of a list. The last one may have broken off.
    if stream.trim_start().starts_with('[') {
        let elements = json::children(stream, 0..stream.len()).into_iter();
        return elements.filter_map(|element| read(stream.get(element.value)?)).collect();
    }
    // Others write a value on each line.
    let mut lines = stream.lines().filter(|line| !line.is_empty());
    if let (Some(first), Some(_)) =
        (lines.next().filter(|line| line.starts_with('{')), lines.next())
        && read(first).is_some()
    {
        return stream.lines().filter_map(read).collect();
    }
    let mut events = Vec::new();
    let mut data = String::new();
    // A blank line ends an event, and so does the end of the stream.
    for line in stream.lines().chain([""]) {
        if line.is_empty() {
            events.extend(read(&data));
            data.clear();
        } else if let Some(piece) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(piece.strip_prefix(' ').unwrap_or(piece));
        }
    }
    events
}

/// Whether a text is a stream with any data.
pub(super) fn has_data(stream: &str) -> bool {
    stream.lines().any(|line| line.starts_with("data:"))
}

/// An error that an event of a stream tells of.
pub(super) struct ErrorEvent {
    /// Its kind, and the first line of its message, whole: what is redacted must not be cut before.
    pub(super) summary: String,
    /// Whether no event follows it.
    pub(super) is_last: bool,
    /// Whether the stream has no other event.
    pub(super) is_alone: bool,
}

/// The last error that an event tells of.
pub(super) fn error(stream: &str) -> Option<ErrorEvent> {
    let mut events = events(stream);
    events.retain(|event| event.str_at("type") != Some("ping"));
    let is_error = |event: &Value| {
        let error = event.get("error").filter(|error| !error.is_null());
        error.is_some() || event.str_at("type") == Some("error")
    };
    let at = events.iter().rposition(is_error)?;
    let event = events.get(at)?;
    // Responses have its members in the event itself.
    let error = event.get("error").filter(|error| !error.is_null()).unwrap_or(event);
    Some(ErrorEvent {
        summary: error_words(error).unwrap_or_else(|| "without a message".to_owned()),
        is_last: at + 1 == events.len(),
        is_alone: events.len() == 1,
    })
}

/// What an error of a provider says: its kind or code, and the first line of its message; `None` where
/// it says neither.
pub(super) fn error_words(error: &Value) -> Option<String> {
    let code = error.get("code").filter(|code| !code.is_null());
    let code = code.map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
    let kind = error.str_at("type").filter(|kind| *kind != "error").map(str::to_owned).or(code);
    let message = error.str_at("message").or_else(|| error.as_str());
    let message = message.map(|message| message.lines().next().unwrap_or_default().to_owned());
    let said: Vec<String> = kind.into_iter().chain(message).collect();
    (!said.is_empty()).then(|| said.join(": "))
}

/// A streamed chat completion as it would have been in one: its choices, each of them joined, with
/// the id, the model and the usage that the stream tells.
pub(super) fn chat_completion(stream: &str) -> Option<StreamedResponse> {
    let is_ended = stream
        .lines()
        .any(|line| line.strip_prefix("data:").is_some_and(|data| data.trim() == "[DONE]"));
    let mut is_whole = is_ended;
    let mut choices = StreamedChoices::default();
    let mut completion = Object::new();
    for event in events(stream) {
        let usage = stated_usage(&event).cloned();
        usage.into_iter().for_each(|usage| add_usage(&mut completion, usage));
        let Value::Object(mut event) = event else { continue };
        for key in ["id", "model", "service_tier"] {
            completion.put_some(key, event.shift_remove(key).filter(|value| !value.is_null()));
        }
        let Some(Value::Array(list)) = event.shift_remove("choices") else { continue };
        for (position, choice) in list.into_iter().enumerate() {
            let Value::Object(choice) = choice else { continue };
            is_whole |= choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
            choices.add(choice, position);
        }
    }
    completion.put("choices", choices.end()?);
    Some(StreamedResponse { response: completion.into(), is_whole, is_ended })
}

/// The usage that a response of Chat Completions states, or an event of one: some state it with a
/// choice, or in a member of their own.
pub(super) fn stated_usage(of: &Value) -> Option<&Value> {
    let is_stated = |usage: &&Value| usage.as_object().is_some_and(|usage| !usage.is_empty());
    let choices = of.get("choices").and_then(Value::as_array).into_iter().flatten();
    let in_choices = choices.flat_map(|choice| {
        [choice.get("usage"), choice.pointer("/message/usage"), choice.pointer("/delta/usage")]
    });
    let is_ollamas = ["prompt_eval_count", "eval_count"].iter().any(|key| of.get(key).is_some());
    let of_ollama = is_ollamas.then_some(of);
    let found = [of.get("usage"), of.get("usageMetadata"), of_ollama].into_iter().chain(in_choices);
    let found = found.chain([of.pointer("/x_groq/usage")]);
    found.flatten().find(is_stated)
}

/// Adds what an event says of the usage to what earlier ones said. Null says nothing, and neither
/// does a zero after a figure.
fn add_usage(whole: &mut Object, usage: Value) {
    fn add(known: &mut Object, key: &str, value: Value) {
        let is_zero = |value: &Value| matches!(value, Value::Number(of) if of.as_f64() == 0.0);
        match (known.get_mut(key), value) {
            (_, Value::Null) => {}
            (Some(Value::Object(known)), Value::Object(stated)) => {
                stated.into_iter().for_each(|(key, value)| add(known, &key, value));
            }
            (Some(Value::Number(_)), value) if is_zero(&value) => {}
            (_, value) => known.put(key, value),
        }
    }
    add(whole, "usage", usage);
}

/// Adds the pieces of `delta`: texts that come in pieces are joined, lists grow, objects join in
/// depth. A content may begin as a text and go on as a list of parts, or the other way round; of other
/// texts, lists and objects that do not go together a list is made. A null, and what is none of these
/// behind one of them, is left out. Anything else is replaced.
pub(super) fn join(whole: &mut Object, delta: Object) {
    for (key, piece) in delta {
        match (whole.get_mut(&key), piece) {
            (Some(Value::Array(parts)), Value::String(text)) if key == "content" => {
                match parts.last_mut() {
                    Some(Value::Object(last)) if last.get("type") == Some(&"text".into()) => {
                        let piece = [("text".to_owned(), Value::from(text))];
                        join(last, Object::from_iter(piece));
                    }
                    _ => parts.extend(text_part(text)),
                }
            }
            (Some(Value::String(text)), Value::Array(parts)) if key == "content" => {
                let text = text_part(std::mem::take(text));
                let parts: Vec<Value> = text.into_iter().chain(parts).collect();
                whole.put(&key, parts);
            }
            (Some(Value::String(text)), Value::String(piece)) => match key.as_str() {
                "role" | "id" | "type" | "name" if *text == piece || piece.is_empty() => {}
                "role" | "id" | "type" => *text = piece,
                _ => text.push_str(&piece),
            },
            (Some(Value::Object(whole)), Value::Object(piece)) => join(whole, piece),
            (Some(Value::Array(whole)), Value::Array(piece)) => whole.extend(piece),
            (Some(_), Value::Null) => {}
            (Some(known), piece) if holds_text(known) => {
                if holds_text(&piece) {
                    let mut all = as_list(std::mem::take(known));
                    all.extend(as_list(piece));
                    whole.put(&key, all);
                }
            }
            (_, piece) => whole.put(&key, piece),
        }
    }
}

/// Whether a value may hold any text.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => false,
    }
}

fn as_list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        value => vec![value],
    }
}

/// A text that stands in a list of parts, if it says anything.
fn text_part(text: String) -> Option<Value> {
    (!text.is_empty()).then(|| object! { "type": "text", "text": text }.into())
}

/// The message of a streamed response of the Messages API.
pub(super) fn anthropic_message(stream: &str) -> Option<StreamedResponse> {
    let (mut is_whole, mut is_ended) = (false, false);
    let mut message: Option<Object> = None;
    // In the order in which they began: some gateways give all of them one index.
    let mut blocks: Vec<Block> = Vec::new();
    for event in events(stream) {
        let Value::Object(mut event) = event else { continue };
        let kind = event.str_at("type").unwrap_or_default().to_owned();
        let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        let mut part = |key: &str| match event.shift_remove(key) {
            Some(Value::Object(part)) => Some(part),
            _ => None,
        };
        match kind.as_str() {
            "message_start" => message = part("message"),
            "content_block_start" => {
                let whole = part("content_block").unwrap_or_default();
                blocks.push(Block { index, whole, input: String::new() });
            }
            "content_block_delta" => {
                let block = blocks.iter_mut().rfind(|block| block.index == index);
                if let (Some(block), Some(delta)) = (block, part("delta")) {
                    block.add(delta);
                }
            }
            "message_stop" => (is_whole, is_ended) = (true, true),
            "message_delta" => {
                // It comes once, when all is said, with what was put out.
                is_whole = true;
                if let (Some(message), Some(delta)) = (&mut message, part("delta")) {
                    message.extend(delta);
                }
                if let (Some(message), Some(usage)) = (&mut message, part("usage")) {
                    // The start tells what was read, the end what was written.
                    add_usage(message, usage.into());
                }
                let edits = event.shift_remove("context_management");
                if let (Some(message), Some(edits)) = (&mut message, edits) {
                    message.put("context_management", edits);
                }
            }
            _ => {}
        }
    }
    let mut message = message?;
    message.put("content", blocks.into_iter().map(Block::end).collect::<Value>());
    Some(StreamedResponse { response: message.into(), is_whole, is_ended })
}

struct Block {
    index: u64,
    whole: Object,
    /// The JSON text of the input, as far as it has come.
    input: String,
}

impl Block {
    fn add(&mut self, mut delta: Object) {
        let kind = delta.str_at("type").unwrap_or_default().to_owned();
        if kind == "input_json_delta" {
            self.input.push_str(&take::text(&mut delta, "partial_json").unwrap_or_default());
        } else if let Some(citation) = delta.shift_remove("citation") {
            match self.whole.get_mut("citations") {
                Some(Value::Array(citations)) => citations.push(citation),
                _ => self.whole.put("citations", Value::Array(vec![citation])),
            }
        } else {
            delta.shift_remove("type");
            join(&mut self.whole, delta);
        }
    }

    fn end(mut self) -> Value {
        if !self.input.is_empty() {
            // An input that broke off stays text.
            let input = json::read_mended(self.input.as_bytes());
            let input = input.map_or_else(|_| Value::String(self.input), |(input, _)| input);
            self.whole.put("input", input);
        }
        self.whole.into()
    }
}

/// The response of a streamed call of the Responses API; where the stream does not end with it, the
/// items that were done, and what had come of the others. Of one that ends with an error the error.
pub(super) fn response(stream: &str) -> Option<StreamedResponse> {
    let (mut last, mut done) = (None, Vec::new());
    let mut open = BTreeMap::<u64, Object>::new();
    let mut begun: Option<Value> = None;
    for event in events(stream) {
        let Value::Object(mut event) = event else { continue };
        match event.str_at("type") {
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                last = event.shift_remove("response");
            }
            Some("response.output_item.added") => {
                if let Some(Value::Object(item)) = event.shift_remove("item") {
                    open.insert(index_at(&event, "output_index"), item);
                }
            }
            Some("response.output_item.done") => {
                open.remove(&index_at(&event, "output_index"));
                done.extend(event.shift_remove("item"));
            }
            Some("response.created") => {
                begun = event.get("response").and_then(|response| response.get("id")).cloned();
            }
            Some("error") if last.is_none() => {
                let error = event.shift_remove("error").unwrap_or_else(|| event.into());
                let mut failed = Object::new();
                failed.put_some("id", begun.clone());
                failed.put("error", error);
                last = Some(failed.into());
            }
            Some(kind) => {
                let piece = PIECES.iter().find(|piece| piece.event == kind);
                let item = open.get_mut(&index_at(&event, "output_index"));
                if let (Some(piece), Some(item)) = (piece, item) {
                    piece.add(item, &mut event);
                }
            }
            None => {}
        }
    }
    let is_whole = last.is_some();
    if !is_whole {
        done.extend(open.into_values().map(Value::from));
    }
    let has_output = last.as_ref().is_some_and(|response| {
        response.get("output").and_then(Value::as_array).is_some_and(|output| !output.is_empty())
    });
    if has_output || done.is_empty() {
        return last.map(|response| StreamedResponse { response, is_whole, is_ended: is_whole });
    }
    let mut response = match last {
        Some(Value::Object(response)) => response,
        // What broke off has an id all the same, where it began.
        _ => begun.map(|id| Object::from_iter([("id".to_owned(), id)])).unwrap_or_default(),
    };
    response.put("output", done);
    Some(StreamedResponse { response: response.into(), is_whole, is_ended: is_whole })
}

/// The id of the response that a stream begins.
pub(super) fn begun_response(stream: &str) -> Option<String> {
    let is_begun = |event: &Value| event.str_at("type") == Some("response.created");
    let begun = events(stream).into_iter().find(is_begun)?;
    begun.get("response")?.str_at("id").map(str::to_owned)
}

/// A piece of an item that is not done.
struct Piece {
    event: &'static str,
    /// The part of the item that it belongs to; `None` for one of the item itself.
    part: Option<PieceOfPart>,
    /// The member that it goes on with.
    member: &'static str,
}

struct PieceOfPart {
    /// The list that has the part.
    list: &'static str,
    /// The member of the event that says which.
    index: &'static str,
    part_type: &'static str,
}

const fn of_content(event: &'static str, part_type: &'static str, member: &'static str) -> Piece {
    let part = PieceOfPart { list: "content", index: "content_index", part_type };
    Piece { event, part: Some(part), member }
}

const fn of_item(event: &'static str, member: &'static str) -> Piece {
    Piece { event, part: None, member }
}

const PIECES: [Piece; 7] = [
    of_content("response.output_text.delta", "output_text", "text"),
    of_content("response.refusal.delta", "refusal", "refusal"),
    of_content("response.reasoning_text.delta", "reasoning_text", "text"),
    Piece {
        event: "response.reasoning_summary_text.delta",
        part: Some(PieceOfPart {
            list: "summary",
            index: "summary_index",
            part_type: "summary_text",
        }),
        member: "text",
    },
    of_item("response.function_call_arguments.delta", "arguments"),
    of_item("response.custom_tool_call_input.delta", "input"),
    of_item("response.mcp_call_arguments.delta", "arguments"),
];

impl Piece {
    fn add(&self, item: &mut Object, event: &mut Object) {
        let Some(Value::String(text)) = event.shift_remove("delta") else { return };
        let piece = Object::from_iter([(self.member.to_owned(), Value::from(text))]);
        let Some(PieceOfPart { list, index, part_type }) = &self.part else {
            return join(item, piece);
        };
        if item.get(list).and_then(Value::as_array).is_none() {
            item.put(list, Value::Array(Vec::new()));
        }
        let Some(Value::Array(parts)) = item.get_mut(list) else { return };
        // A part that was passed over has said nothing; an index beyond all sense is the next one.
        let at = usize::try_from(index_at(event, index)).unwrap_or(usize::MAX).min(parts.len());
        if at == parts.len() {
            parts.push(object! { "type": *part_type }.into());
        }
        if let Some(Value::Object(part)) = parts.get_mut(at) {
            join(part, piece);
        }
    }
}

fn index_at(event: &Object, key: &str) -> u64 {
    event.get(key).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: Option<Value>, expected: &str) {
        assert_eq!(found.map_or_else(|| "nothing".to_owned(), |value| value.to_string()), expected);
    }

    /// A response whose stream has an end.
    #[track_caller]
    fn whole(found: Option<StreamedResponse>) -> Option<Value> {
        found.map(|found| {
            assert!(found.is_whole);
            found.response
        })
    }

    fn message_of(completion: &Value) -> Option<Value> {
        completion.get("choices")?.as_array()?.first()?.get("message").cloned()
    }

    #[test]
    fn pieces_of_a_chat_completion_are_joined_by_index() {
        let stream = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"He"}}]}

: comment
data: {"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"y"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"x\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{}}

data: [DONE]
"#;
        check(
            whole(chat_completion(stream)).as_ref().and_then(message_of),
            r#"{"role":"assistant","content":"Hey","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
        );
        check(whole(chat_completion("data: {\"error\":{\"message\":\"no\"}}\r\n\r\n")), "nothing");
    }

    #[test]
    fn blocks_of_a_message_are_joined_by_index() {
        let stream = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S="}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"c":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}

data: {"type":"message_stop"}"#;
        check(
            whole(anthropic_message(stream)),
            r#"{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S="},{"type":"tool_use","id":"t","name":"f","input":{"a":1}},{"type":"text","text":"","citations":[{"c":1}]}],"stop_reason":"tool_use","usage":{"output_tokens":3}}"#,
        );
        check(
            whole(anthropic_message(
                "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            )),
            "nothing",
        );
    }

    #[test]
    fn a_response_is_taken_from_its_last_event_or_from_its_items() {
        let done =
            "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\"}}\n\n";
        let completed =
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n";
        check(
            whole(response(&format!("{done}{completed}"))),
            r#"{"id":"r","output":[{"type":"message"}]}"#,
        );
        let items = response(done).map(|found| found.response);
        check(items, r#"{"output":[{"type":"message"}]}"#);
        check(whole(response(completed)), r#"{"id":"r","output":[]}"#);
        check(whole(response("nonsense")), "nothing");
    }

    #[test]
    fn what_had_come_of_an_item_is_kept_where_a_response_broke_off() {
        let events = [
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"i","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"h"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"i","summary":[{"type":"summary_text","text":"hm"}]}}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"He"}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"y"}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"x\":"}"#,
        ];
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let found = response(&stream).unwrap();
        assert!(!found.is_whole);
        check(
            Some(found.response),
            r#"{"output":[{"type":"reasoning","id":"i","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hey"}]},{"type":"function_call","name":"f","arguments":"{\"x\":"}]}"#,
        );
    }

    #[test]
    fn a_stream_without_its_end_broke_off() {
        let start = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"output_tokens\":1}}}\n\n";
        let stop = "data: {\"type\":\"message_stop\"}\n\n";
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"He\"}}]}\n\n";
        let done = "data: [DONE]\n\n";
        let item = "data: {\"type\":\"response.output_item.done\",\"item\":{}}\n\n";
        let completed = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
        for (read, first, last) in [
            (anthropic_message as fn(&str) -> Option<StreamedResponse>, start, stop),
            (chat_completion, begun, done),
            (response, item, completed),
        ] {
            assert!(!read(first).unwrap().is_whole, "{first}");
            assert!(read(&format!("{first}{last}")).unwrap().is_whole, "{last}");
        }
    }
}
