//! Sessions of Continue: messages of a chat list, with the context and the state of their calls
//! beside them.

use super::{
    answer, chat,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, ModelAnswer, Source},
};

/// Reads `{sessionId, history: [{message, contextItems, toolCallStates?}]}`.
pub(super) struct ContinueReader;

impl ContinueReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let is_item = |item: &Value| {
            item.get("message").is_some_and(|message| message.str_at("role").is_some())
        };
        value.str_at("sessionId").is_some()
            && value
                .get("history")
                .and_then(Value::as_array)
                .is_some_and(|history| history.iter().any(is_item))
    }
}

impl super::Decoder for ContinueReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Some((document, history)) = take::document(value, "history", line, sink) else {
            return;
        };
        sink.session(document.str_at("sessionId").unwrap_or("1"));
        if let Some(system) = system_prompt(&history) {
            chat::system_prompt(system.into(), line, sink);
        }
        let copied = copied(&document, &history);
        if copied.is_none() {
            sink.note(
                line,
                "the session does not say which answers a fork copied: all are counted",
            );
        }
        for (index, item) in history.into_iter().enumerate() {
            let is_copy = copied.is_some_and(|copied| index < copied);
            let Value::Object(mut item) = item else {
                sink.unknown(line, format!("{} is no message", item.kind()), item);
                continue;
            };
            match take::object(&mut item, "message") {
                Some(message)
                    if message.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    self::item(message, item, is_copy, line, sink);
                }
                message => {
                    item.put_some("message", message);
                    sink.unknown(line, "a message without a role", item.into());
                }
            }
        }
    }
}

/// The system prompt of the last request that the session logged as text.
fn system_prompt(history: &[Value]) -> Option<&str> {
    let logs = history.iter().filter_map(|item| item.get("promptLogs")?.as_array()).flatten();
    let sent =
        logs.filter_map(|log| log.str_at("prompt")?.strip_prefix("<system>\n")).next_back()?;
    Some(sent.split_once("\n\n<user>\n").map_or(sent, |(system, _)| system))
}

/// How many of the first messages a fork copied. A session states the input of its own requests as
/// a sum, so the answers before those that make up the sum are copies. `None` where several answers
/// report their usage and the session states no sum.
fn copied(document: &Object, history: &[Value]) -> Option<usize> {
    // The figure as Continue adds it up: `Usage` would add what the cache of Anthropic took.
    let input = |usage: &Value| {
        let mut keys = ["prompt_tokens", "promptTokens"].into_iter();
        keys.find_map(|key| usage.get(key)?.as_u64())
    };
    let of_item = |item: &Value| input(item.get("message")?.get("usage")?);
    let stated = document.get("usage").and_then(input);
    let Some(mut left) = stated else {
        return (history.iter().filter_map(of_item).count() < 2).then_some(0);
    };
    let last_copy = history.iter().rposition(|item| {
        let rest = left.checked_sub(of_item(item).unwrap_or_default());
        left = rest.unwrap_or_default();
        rest.is_none()
    });
    Some(last_copy.map_or(0, |last_copy| last_copy + 1))
}

/// A message, what its calls gave, and the summary of all up to it.
fn item(message: Object, mut item: Object, is_copy: bool, line: u64, sink: &mut Sink) {
    if item.get("editorState") == message.get("content") {
        item.shift_remove("editorState");
    }
    for key in ["appliedRules", "promptLogs"] {
        if take::list(&mut item, key).is_some_and(|list| !list.is_empty()) {
            sink.skip(key);
        }
    }
    let mut results = FrameDraft::record(Source::Environment, line);
    let states = take::list(&mut item, "toolCallStates").unwrap_or_default();
    let mut open = Vec::new();
    for state in states {
        match result(state) {
            Ok(facet) => results.facets.push(facet),
            Err(state) => open.push(state),
        }
    }
    item.put_some("toolCallStates", (!open.is_empty()).then_some(open));
    let summary = take::text(&mut item, "conversationSummary");
    let is_summary = summary.is_some() && summary.as_deref() == message.str_at("content");
    let mut draft = self::message(message, &mut item, line);
    let copied = is_copy.then(CopyOf::default);
    draft.add_answer(ModelAnswer { copied, ..ModelAnswer::default() });
    if is_summary {
        draft.facets.iter_mut().for_each(|facet| facet.facet_type = FacetType::SUMMARY);
        draft.compacted = Some(CompactionRecord::of("continue"));
    }
    draft.payload.extend(item);
    sink.push(draft);
    if !results.facets.is_empty() {
        sink.push(results);
    }
    if let Some(text) = summary.filter(|_| !is_summary) {
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.facets.push(parts::text(FacetType::SUMMARY, text));
        draft.compacted = Some(CompactionRecord::of("continue"));
        sink.push(draft);
    }
}

/// A message; `item` is what stands beside it.
fn message(mut message: Object, item: &mut Object, line: u64) -> FrameDraft {
    for (own, name) in [("toolCalls", "tool_calls"), ("toolCallId", "tool_call_id")] {
        if let Some(value) = message.shift_remove(own) {
            message.put(name, value);
        }
    }
    // What the model thought has a message of its own.
    let thinks = message.str_at("role") == Some("thinking");
    if thinks {
        message.put("role", "assistant");
        message.put("statedRole", "thinking");
    }
    let said = message.get("usage").map(answer::of_usage).unwrap_or_default();
    let mut draft = chat::message_with_parts(message, line, |part, text_type| {
        vec![self::part(part, text_type)]
    });
    draft.add_answer(said);
    if thinks {
        for facet in draft.facets.iter_mut().filter(|of| of.facet_type == FacetType::SPEECH) {
            facet.facet_type = FacetType::THOUGHT;
            // Its provider asks for the signature with it.
            if facet.source().is_none()
                && let Some(signature) = draft.payload.shift_remove("signature")
            {
                let mut origin = Object::new();
                origin.put("signature", signature);
                *facet = with_origin(facet.clone(), origin.into());
            }
        }
    }
    let reasoning = take::object(item, "reasoning").map(|mut reasoning| {
        match take::text(&mut reasoning, "text") {
            Some(text) => with_origin(parts::thought(text), reasoning.into()),
            None => parts::opaque("reasoning", reasoning.into()),
        }
    });
    let context = take::list(item, "contextItems").unwrap_or_default().into_iter().map(context);
    draft.facets.splice(..0, context.chain(reasoning));
    draft
}

/// A file, or what else the user put beside the words: it is sent before them.
fn context(item: Value) -> Facet {
    match item {
        Value::Object(mut item) => match take::text(&mut item, "content") {
            Some(text) => with_origin(parts::text(FacetType::NOTICE, text), item.into()),
            None => parts::opaque("context item", item.into()),
        },
        other => parts::opaque("context item", other),
    }
}

/// A part of a content list.
fn part(part: Value, text_type: &FacetType) -> Facet {
    let url = part.get("imageUrl").and_then(|image| image.str_at("url")).map(str::to_owned);
    match url {
        Some(url) => parts::image(None, Some(&url), part),
        None => chat::content_part(part, text_type),
    }
}

/// What a call gave, where it has ended: the texts of its output, as they are sent.
///
/// # Errors
/// The state of a call that goes on.
fn result(state: Value) -> Result<Facet, Value> {
    let Value::Object(mut state) = state else { return Err(state) };
    let outcome = match state.str_at("status") {
        Some("errored") => CallOutcome::Failed,
        status => CallOutcome::of_status(status),
    };
    let mut output = take::list(&mut state, "output").unwrap_or_default();
    if output.is_empty() && outcome == CallOutcome::Unstated {
        return Err(state.into());
    }
    let mut texts = Vec::new();
    for item in &mut output {
        match item {
            Value::Object(item) => texts.extend(take::text(item, "content")),
            Value::String(text) => texts.push(std::mem::take(text)),
            _ => {}
        }
    }
    let id = take::text(&mut state, "toolCallId");
    let result = parts::result(id.as_deref(), None, texts.join("\n\n"), outcome);
    state.put("output", output);
    Ok(with_origin(result, state.into()))
}

#[cfg(test)]
mod tests {
    use super::super::{Transcript, sample::check};

    #[test]
    fn answers_beyond_what_the_session_says_it_used_are_copies_of_a_fork() {
        let read = |more: &str| {
            let answer = |tokens: u64| {
                format!(
                    r#"{{"message":{{"role":"assistant","content":"Aye","usage":{{"prompt_tokens":{tokens},"completion_tokens":1}}}}}}"#
                )
            };
            let history = [answer(50), answer(60), answer(70)].join(",");
            let input = format!(r#"{{"sessionId":"s","history":[{history}]{more}}}"#);
            let mut transcript = Transcript::new(input.as_bytes()).unwrap();
            let answers = transcript.by_ref().map(|record| {
                let imported = record.unwrap().frame.imported.unwrap();
                imported.answer.unwrap().copied.is_some()
            });
            (answers.collect::<Vec<_>>(), transcript.report().noted)
        };
        let stated = |tokens: u64| read(&format!(r#","usage":{{"promptTokens":{tokens}}}"#));
        assert_eq!(stated(180), (vec![false, false, false], 0));
        assert_eq!(stated(130), (vec![true, false, false], 0));
        // A title was asked for too.
        assert_eq!(stated(75), (vec![true, true, false], 0));
        assert_eq!(stated(0), (vec![true, true, true], 0));
        assert_eq!(read(""), (vec![false, false, false], 1));
    }

    #[test]
    fn prompts_are_logged_with_the_system_prompt() {
        check(
            r#"{"sessionId": "s", "history": [
                 {"message": {"role": "user", "content": "Look"}, "appliedRules": [{"name": "r", "rule": "Be kind."}], "promptLogs": []},
                 {"message": {"role": "assistant", "content": "Hm"}, "promptLogs": [{"prompt": "<system>\nBe.\n\n<user>\nLook\n\n"}, {"prompt": "<system>\nBe kind.\n\n<user>\nLook\n\n"}]},
                 {"message": {"role": "assistant", "content": "So"}, "promptLogs": [{"prompt": "Sum up", "completion": "T"}]}]}"#,
            r#"
            continue
            # s
            system -
              system "Be kind."
            user message
              event "Look"
            agent message
              speech "Hm"
            agent message
              speech "So"
            messages 3, calls 0, results 0, sessions 1, unknown 0, skipped {"appliedRules": 1, "promptLogs": 2, "sessionId": 1}
            "#,
        );
    }

    #[test]
    fn results_stand_in_the_state_of_their_calls() {
        check(
            r#"{"sessionId": "s", "title": "T", "workspaceDirectory": "/w", "history": [
                 {"message": {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "imageUrl", "imageUrl": {"url": "https://a.b/c"}}]},
                  "contextItems": [{"content": "buoys", "name": "b.txt"}], "editorState": "Look"},
                 {"message": {"role": "thinking", "content": "Hm", "signature": "S"}, "contextItems": []},
                 {"message": {"role": "assistant", "content": "I look", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}, {"id": "d", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
                   "usage": {"prompt_tokens": 5, "completion_tokens": 2, "model": "q", "cost_cents": 0}}, "contextItems": [], "reasoning": {"text": "So", "active": false},
                  "toolCallStates": [{"toolCallId": "c", "status": "done", "output": [{"content": "a.txt", "name": "R"}, {"content": "b.txt"}]},
                   {"toolCallId": "d", "status": "errored", "output": [{"content": "no"}]}, {"toolCallId": "e", "status": "calling"}]},
                 {"message": {"role": "assistant", "content": "Done", "usage": {"promptTokens": 30, "completionTokens": 4}}, "contextItems": [], "conversationSummary": "All of it"},
                 {"message": {"role": "assistant", "content": "So far"}, "contextItems": [], "conversationSummary": "So far"},
                 {"contextItems": []}, 5]}"#,
            r#"
            continue
            # s
            user message {"form":"parts","editorState":"Look"}
              notice "buoys" <- {"name":"b.txt"}
              event "Look" <- {"type":"text"}
              image "[image: https://a.b/c]" <- {"type":"imageUrl","imageUrl":{"url":"https://a.b/c"}}
            agent message {"statedRole":"thinking"}
              thought "Hm" <- {"signature":"S"}
            agent message {"answer":{"model":"q","usage":{"input":5,"output":2}},"usage":{"prompt_tokens":5,"completion_tokens":2,"model":"q","cost_cents":0},"toolCallStates":[{"toolCallId":"e","status":"calling"}]}
              thought "So" <- {"active":false}
              speech "I look"
              call ls c {}
              call ls d {}
            environment -
              result ls c done "a.txt\n\nb.txt" <- {"status":"done","output":[{"name":"R"},{}]}
              result ls d failed "no" <- {"status":"errored","output":[{}]}
            agent message {"answer":{"usage":{"input":30,"output":4}},"usage":{"promptTokens":30,"completionTokens":4}}
              speech "Done"
            environment -
              summary "All of it"
            agent message
              summary "So far"
            environment -
              unknown (a message without a role) {"contextItems":[]}
            environment -
              unknown (a number is no message) 5
            messages 5, calls 2, results 2, sessions 1, unknown 2, skipped {"sessionId": 1, "title": 1, "workspaceDirectory": 1}
            "#,
        );
    }
}
