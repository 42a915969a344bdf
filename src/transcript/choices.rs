//! The choices of a chat completion: the pieces of a stream, and what of several is one message.

use super::{sse::join, take};
use crate::json::{self, Object, ObjectExt, Value, object};

/// The choices of a streamed completion, as far as they have come.
#[derive(Default)]
pub(super) struct StreamedChoices(Vec<StreamedChoice>);

#[derive(Default)]
struct StreamedChoice {
    index: u64,
    message: Object,
    calls: StreamedCalls,
}

impl StreamedChoices {
    /// Adds what an event says of a choice, which stands at this position in it.
    pub(super) fn add(&mut self, mut choice: Object, position: usize) {
        let index = choice.get("index").and_then(number).unwrap_or(position as u64);
        let known = self.0.iter().position(|of| of.index == index);
        let Some(Value::Object(mut delta)) = choice.shift_remove("delta").or_else(|| {
            // Some providers end with the whole message, or send nothing else.
            choice.shift_remove("message").filter(|_| known.is_none())
        }) else {
            return;
        };
        let at = known.unwrap_or_else(|| {
            self.0.push(StreamedChoice { index, ..StreamedChoice::default() });
            self.0.len() - 1
        });
        let Some(of) = self.0.get_mut(at) else { return };
        if let Some(Value::Array(pieces)) = delta.shift_remove("tool_calls") {
            of.calls.add(pieces);
        }
        join(&mut of.message, delta);
    }

    /// The choices as they would have been in a response that is not streamed; `None` without any.
    pub(super) fn end(mut self) -> Option<Value> {
        self.0.sort_by_key(|choice| choice.index);
        let choices = self.0.into_iter().map(|StreamedChoice { index, mut message, calls }| {
            if !calls.0.is_empty() {
                message.put("tool_calls", calls.end());
            }
            as_assistant(&mut message);
            let mut choice = Object::new();
            choice.put("index", index);
            choice.put("message", message);
            Value::from(choice)
        });
        let choices: Vec<Value> = choices.collect();
        (!choices.is_empty()).then_some(Value::Array(choices))
    }
}

/// The calls of a streamed message, in the order in which they began.
#[derive(Default)]
struct StreamedCalls(Vec<StreamedCall>);

struct StreamedCall {
    /// `None` where the provider numbers none.
    index: Option<u64>,
    call: Object,
}

impl StreamedCalls {
    fn add(&mut self, pieces: Vec<Value>) {
        let is_alone = pieces.len() == 1;
        for (position, piece) in pieces.into_iter().enumerate() {
            let mut piece = match piece {
                Value::Object(piece) => piece,
                other => object! { "call": other },
            };
            let index = piece.get("index").and_then(number);
            if index.is_some() {
                piece.shift_remove("index");
            }
            match self.place(index, (!is_alone).then_some(position), &piece) {
                Some(StreamedCall { call, .. }) => {
                    // Some servers make up another id for each piece.
                    if text(call, "id").is_some() {
                        piece.shift_remove("id");
                    }
                    join(call, piece);
                }
                None => self.0.push(StreamedCall { index, call: piece }),
            }
        }
    }

    /// The call that a piece goes on with; `None` where it begins one. Some providers give all
    /// calls of an answer one index, or none, and tell them apart by their ids alone; some have no
    /// ids either, and write each call whole.
    fn place(
        &mut self,
        index: Option<u64>,
        position: Option<usize>,
        piece: &Object,
    ) -> Option<&mut StreamedCall> {
        let id = text(piece, "id");
        let (name, arguments) = (name_of(piece), arguments_of(piece));
        let is_at = |of: &StreamedCall| index.is_none() || of.index.is_none() || of.index == index;
        let by_id = id.and_then(|id| {
            self.0.iter().rposition(|of| is_at(of) && text(&of.call, "id") == Some(id))
        });
        if let Some(at) = by_id {
            return self.0.get_mut(at);
        }
        let latest = match (index, position) {
            (Some(_), _) => self.0.iter().rposition(|of| of.index == index),
            // Of several pieces without an index the one at this place.
            (None, Some(position)) if name.is_none() => Some(position),
            (None, Some(position)) if position > 0 => None,
            (None, _) => self.0.len().checked_sub(1),
        };
        let of = self.0.get_mut(latest?)?;
        let (known, written) = (name_of(&of.call), arguments_of(&of.call));
        let is_whole = written.is_some_and(|written| {
            json::read(written.as_bytes()).is_ok_and(|value| value.as_object().is_some())
        });
        let is_named_again = name.is_some() && known.is_some();
        let begins = if id.is_some() && text(&of.call, "id").is_some() {
            name.is_some() || arguments.is_none() || is_whole
        } else {
            is_named_again
                && (is_whole && arguments.is_some() || written.is_some() && name != known)
        };
        (!begins).then_some(of)
    }

    fn end(mut self) -> Value {
        if self.0.iter().all(|of| of.index.is_some()) {
            self.0.sort_by_key(|of| of.index);
        }
        self.0.into_iter().map(|of| Value::from(of.call)).collect()
    }
}

/// A number, also one that is written as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A text that is not empty.
fn text<'o>(object: &'o Object, key: &str) -> Option<&'o str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn called(piece: &Object) -> Option<&Object> {
    ["function", "custom"].iter().find_map(|key| piece.get(key)?.as_object())
}

fn name_of(piece: &Object) -> Option<&str> {
    text(called(piece)?, "name")
}

fn arguments_of(piece: &Object) -> Option<&str> {
    let called = called(piece)?;
    text(called, "arguments").or_else(|| text(called, "input"))
}

fn as_assistant(message: &mut Object) {
    take::default_role(message, "assistant");
}

/// The message that the choices of a completion are. Some providers put what a model says at once
/// into several choices, its text into one and its calls into the next: these are one message.
/// Alternatives are not: those stay as they are, in the member `choices` of the first one. So does
/// what two parts say differently. `asked_several` is whether the request asked for alternatives.
pub(super) fn message_of(mut choices: Vec<Value>, asked_several: bool) -> Option<Object> {
    let is_first = |choice: &Value| choice.get("index").and_then(number) == Some(0);
    let first = choices.iter().position(is_first).unwrap_or_default();
    let first = (first < choices.len()).then(|| choices.remove(first));
    let Some(Value::Object(mut first)) = first else { return None };
    let Some(Value::Object(mut whole)) = first.shift_remove("message") else { return None };
    let mut others: Vec<Value> = Vec::new();
    for choice in choices {
        let Value::Object(mut choice) = choice else {
            others.push(choice);
            continue;
        };
        let is_part = |part: &Object| {
            let (own, other) = (content_of(&whole), content_of(part));
            !asked_several && (own.is_none() || other.is_none() || own == other)
        };
        match choice.shift_remove("message") {
            Some(Value::Object(part)) if is_part(&part) => {
                let rest = add_part(&mut whole, part);
                if rest.is_empty() {
                    continue;
                }
                choice.put("message", rest);
            }
            message => choice.put_some("message", message),
        }
        others.push(choice.into());
    }
    if !others.is_empty() {
        whole.put("choices", others);
    }
    as_assistant(&mut whole);
    Some(whole)
}

/// What a message says, where it says anything.
fn content_of(message: &Object) -> Option<&Value> {
    let is_empty = |content: &Value| match content {
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        other => other.is_null(),
    };
    message.get("content").filter(|content| !is_empty(content))
}

/// Adds the members of another part of a message, and gives back those that it has already, and
/// otherwise.
fn add_part(whole: &mut Object, part: Object) -> Object {
    let mut rest = Object::new();
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(Value::Array(calls)), Value::Array(more)) if key == "tool_calls" => {
                let new = more.into_iter().filter(|call| !calls.contains(call));
                let new: Vec<Value> = new.collect();
                calls.extend(new);
            }
            (_, Value::Null) => {}
            (None | Some(Value::Null), value) => whole.put(&key, value),
            (Some(Value::String(known)), value) if known.is_empty() => whole.put(&key, value),
            (Some(Value::Array(known)), value) if known.is_empty() => whole.put(&key, value),
            (Some(known), value) if *known == value || value.as_str() == Some("") => {}
            (Some(_), value) => rest.put(&key, value),
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::sse;

    /// The calls of a stream whose events have these `tool_calls`, as `id name(arguments)`.
    #[track_caller]
    fn check(events: &[&str], expected: &str) {
        let mut stream = String::new();
        for calls in events {
            stream += "data: {\"choices\":[{\"delta\":{\"tool_calls\":";
            stream += calls;
            stream += "}}]}\n\n";
        }
        let completion = sse::chat_completion(&(stream + "data: [DONE]\n\n")).unwrap().response;
        let message = completion.pointer("/choices/0/message").unwrap();
        let calls = message.get("tool_calls").and_then(Value::as_array).unwrap_or_default();
        let told = calls.iter().map(|call| {
            let text = |path: &str| call.pointer(path).and_then(Value::as_str).unwrap_or("-");
            format!("{} {}({})", text("/id"), text("/function/name"), text("/function/arguments"))
        });
        assert_eq!(told.collect::<Vec<_>>().join(" "), expected, "{events:?}");
    }

    #[test]
    fn a_new_id_at_an_index_that_has_another_begins_a_call() {
        for index in ["\"index\":0,", "\"index\":\"0\",", "\"index\":null,", ""] {
            let whole = |id: &str, name: &str, arguments: &str| {
                format!(
                    r#"[{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}}}]"#
                )
            };
            let more = |arguments: &str| {
                format!(r#"[{{{index}"function":{{"arguments":"{arguments}"}}}}]"#)
            };
            check(
                &[&whole("a", "f", "{}"), &whole("b", "g", r#"{\"x\":1}"#)],
                r#"a f({}) b g({"x":1})"#,
            );
            // What follows without an id belongs to the last that began.
            check(
                &[&whole("a", "f", "{}"), &whole("b", "f", r#"{\"x\""#), &more(":1"), &more("}")],
                r#"a f({}) b f({"x":1})"#,
            );
            // Pieces that name their call go to it, whatever came between.
            check(
                &[
                    &whole("a", "f", "{"),
                    &whole("b", "g", "["),
                    &whole("a", "", "}"),
                    &whole("b", "g", "]"),
                ],
                "a f({}) b g([])",
            );
        }
    }

    #[test]
    fn calls_without_ids_are_told_apart_by_their_names_and_ends() {
        check(
            &[
                r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]"#,
                r#"[{"index":0,"function":{"name":"g","arguments":"{\"a\":"}}]"#,
                r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
                r#"[{"index":0,"function":{"name":"g","arguments":""}}]"#,
            ],
            r#" f({})  f({}) - g({"a":1})"#,
        );
        check(
            &[
                r#"[{"function":{"name":"f","arguments":""}},{"function":{"name":"g","arguments":""}}]"#,
                r#"[{"function":{"arguments":"{1}"}},{"function":{"arguments":"{2}"}}]"#,
            ],
            "- f({1}) - g({2})",
        );
    }

    #[test]
    fn pieces_with_made_up_ids_and_interleaved_pieces_stay_with_their_calls() {
        check(
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]"#,
                r#"[{"index":0,"id":"b","function":{"arguments":"{\"x\":"}}]"#,
                r#"[{"index":0,"id":"c","function":{"name":null,"arguments":"1}"}}]"#,
            ],
            r#"a f({"x":1})"#,
        );
        check(
            &[
                r#"[{"index":1,"id":"b","function":{"name":"g","arguments":"["}},{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]"#,
                r#"[{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"]"}}]"#,
            ],
            "a f({}) b g([])",
        );
    }

    #[test]
    fn a_streamed_content_may_change_from_text_to_parts_and_back() {
        let delta = |content: &str| format!("data: {{\"choices\":[{{\"delta\":{content}}}]}}\n\n");
        let stream = [
            delta(r#"{"content":"a"}"#),
            delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#),
            delta(r#"{"content":"b"}"#),
            delta(r#"{"content":"c"}"#),
        ];
        let response = sse::chat_completion(&stream.concat()).unwrap().response;
        assert_eq!(
            response.pointer("/choices/0/message/content").unwrap().to_string(),
            r#"[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"bc"}]"#
        );
    }

    #[test]
    fn pieces_that_do_not_go_together_are_kept() {
        let pieces = [
            r#"{"content":{"novel":"N"},"tool_calls":["T"]}"#,
            r#"{"content":"y","tool_calls":[{"index":"first","id":"c","function":{"arguments":{"a":1}}}]}"#,
            r#"{"tool_calls":[{"id":"c","function":{"arguments":"b"}}]}"#,
        ];
        let event = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
        let stream: String = pieces.into_iter().map(event).collect();
        let response = sse::chat_completion(&stream).unwrap().response;
        assert_eq!(
            response.pointer("/choices/0/message").unwrap().to_string(),
            r#"{"content":[{"novel":"N"},"y"],"tool_calls":[{"call":"T","index":"first","id":"c","function":{"arguments":[{"a":1},"b"]}}],"role":"assistant"}"#
        );
    }

    #[track_caller]
    fn joined(choices: &str, asked_several: bool, expected: &str) {
        let Ok(Value::Array(list)) = json::read(choices.as_bytes()) else { panic!("{choices}") };
        let message = message_of(list, asked_several).map(Value::from).unwrap_or_default();
        assert_eq!(message.to_string(), expected, "{choices}");
    }

    #[test]
    fn parts_of_an_answer_in_several_choices_are_one_message_and_alternatives_are_not() {
        let text = r#"{"message":{"role":"assistant","content":"I will read it."}}"#;
        let call = |id: &str| {
            format!(
                r#"{{"message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}"}}]}}}}"#
            )
        };
        let (a, b) = (call("a"), call("b"));
        joined(
            &format!("[{text},{a},{b}]"),
            false,
            r#"{"role":"assistant","content":"I will read it.","tool_calls":[{"id":"a"},{"id":"b"}]}"#,
        );
        joined(
            &format!("[{a},{text}]"),
            false,
            r#"{"role":"assistant","content":"I will read it.","tool_calls":[{"id":"a"}]}"#,
        );
        joined(
            &format!("[{a},{b}]"),
            true,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a"}],"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"b"}]}}]}"#,
        );
        // Two texts are alternatives, whatever was asked.
        joined(
            r#"[{"index":1,"message":{"content":"two"}},{"index":0,"message":{"content":"one"}}]"#,
            false,
            r#"{"content":"one","choices":[{"index":1,"message":{"content":"two"}}],"role":"assistant"}"#,
        );
        // What two parts say differently stays.
        joined(
            r#"[{"message":{"content":"one","reasoning":"x"}},{"message":{"reasoning":"y","audio":{"id":"z"}}}]"#,
            false,
            r#"{"content":"one","reasoning":"x","audio":{"id":"z"},"choices":[{"message":{"reasoning":"y"}}],"role":"assistant"}"#,
        );
        joined("[]", false, "null");
    }
}
