//! Exports of OpenCode: messages whose parts are what the model said and what its tools gave.

use std::collections::{BTreeMap, HashMap};

use super::{
    answer,
    branches::Branches,
    draft::{CompactionRecord, FrameDraft, Replaced},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, ModelAnswer, Source},
};

/// Reads `{info, messages: [{info, parts}]}`.
pub(super) struct OpenCodeReader;

impl OpenCodeReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let is_message = |message: &Value| {
            message.get("info").is_some()
                && message.get("parts").is_some_and(|parts| parts.as_array().is_some())
        };
        // A session in which nothing was said yet has its id alone.
        let is_new = || value.get("info").is_some_and(|info| info.str_at("id").is_some());
        let messages = value.get("messages").and_then(Value::as_array);
        messages.is_some_and(|all| all.iter().any(is_message) || all.is_empty() && is_new())
    }
}

impl super::Decoder for OpenCodeReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Some((document, messages)) = take::document(value, "messages", line, sink) else {
            return;
        };
        let info = document.get("info");
        sink.session(info.and_then(|info| info.str_at("id")).unwrap_or("1"));
        let revert = info.and_then(|info| info.get("revert"));
        let reverted = |key: &str| revert.and_then(|revert| revert.str_at(key));
        let began = info.and_then(|info| info.get("time")?.get("created")?.as_u64());
        let (mut session, mut cut) = (Session { began, ..Session::default() }, None);
        for message in messages {
            let Value::Object(mut message) = message else {
                sink.unknown(line, format!("{} is no message", message.kind()), message);
                continue;
            };
            let parts = take::list(&mut message, "parts");
            let (mut info, mut parts) = match (take::object(&mut message, "info"), parts) {
                (Some(info), Some(parts)) => (info, parts),
                (info, parts) => {
                    message.put_some("info", info);
                    message.put_some("parts", parts.map(Value::Array));
                    sink.unknown(line, "a message without `info` and `parts`", message.into());
                    continue;
                }
            };
            info.put_some("record", (!message.is_empty()).then_some(message));
            let mut rest = None;
            if info.str_at("id").is_some_and(|id| reverted("messageID") == Some(id)) {
                let part = reverted("partID");
                let is_first = |of: &Value| part.is_some() && of.str_at("id") == part;
                match parts.iter().position(is_first).filter(|at| *at > 0) {
                    Some(at) => rest = Some((info.get("role").cloned(), parts.split_off(at))),
                    None => cut = Some(sink.next_frame()),
                }
            }
            session.message(info, parts, line, sink);
            if let Some((role, parts)) = rest {
                cut = Some(sink.next_frame());
                let mut info = Object::new();
                info.put_some("role", role);
                session.give(info, parts, false, line, sink);
            }
        }
        session.edit(u64::MAX, FrameDraft::record(Source::Environment, line), sink);
        // What is taken back stays in the session until the next prompt.
        if let Some(cut) = cut {
            let draft = FrameDraft::of_record(line, None, document);
            sink.take_back(&mut Branches::default(), (cut, &[]), "revert", draft);
            session.edit_again(cut, FrameDraft::record(Source::Environment, line), sink);
        }
    }
}

/// What messages say of those before them.
#[derive(Default)]
struct Session {
    /// When it was made. A fork holds copies of messages that are older.
    began: Option<u64>,
    /// The frames of answers that the client sends no more: they failed.
    failed: Vec<u64>,
    /// The first frame of each message.
    frames: HashMap<String, u64>,
    /// The first message that the compaction which goes on keeps.
    tail: Option<String>,
    /// The results that were cleared, by when: their frames and places there. And what these hold.
    cleared: BTreeMap<u64, Vec<(u64, usize)>>,
    results: HashMap<u64, Vec<Facet>>,
    /// Where frames were cleared last.
    cleared_at: BTreeMap<u64, u64>,
    /// What the user's messages add to the system prompt, and its frame.
    system: Option<(String, u64)>,
}

impl Session {
    /// A message of the user, or an answer, and the results of its calls after it.
    fn message(&mut self, mut info: Object, parts: Vec<Value>, line: u64, sink: &mut Sink) {
        if let Some(id) = info.str_at("id") {
            self.frames.insert(id.to_owned(), sink.next_frame());
        }
        let created = info.get("time").and_then(|time| time.get("created")?.as_u64());
        let mut before = FrameDraft::record(Source::Environment, line);
        let is_users = info.str_at("role") == Some("user");
        let system = take::text(&mut info, "system").filter(|text| !text.is_empty());
        if is_users && system.as_ref() != self.system.as_ref().map(|(text, _)| text) {
            let old = self.system.take().map(|(_, frame)| (frame, Vec::new()));
            before.edits.extend(old);
            if let Some(text) = system {
                // It is not the whole system prompt, which is not in the file.
                before.facets.push(parts::text(FacetType::NOTICE, text.as_str()));
                self.system = Some((text, sink.next_frame()));
            }
        }
        self.edit(created.unwrap_or(0), before, sink);
        self.give(info, parts, true, line, sink);
    }

    /// Gives out a draft, unless it says nothing, with what is read of results that were cleared until
    /// then.
    fn edit(&mut self, until: u64, mut draft: FrameDraft, sink: &mut Sink) {
        let later = self.cleared.split_off(&until.saturating_add(1));
        let mut edits = BTreeMap::new();
        for frame in self.failed.drain(..) {
            edits.insert(frame, Vec::new());
            self.results.insert(frame, Vec::new());
            self.cleared_at.insert(frame, sink.next_frame());
        }
        for (frame, at) in std::mem::replace(&mut self.cleared, later).into_values().flatten() {
            let Some(facets) = self.results.get_mut(&frame) else { continue };
            facets.get_mut(at).into_iter().for_each(|of| parts::replace(of, parts::CLEARED));
            edits.insert(frame, facets.clone());
            self.cleared_at.insert(frame, sink.next_frame());
        }
        draft.edits.extend(edits);
        if !draft.edits.is_empty() || !draft.facets.is_empty() {
            sink.push(draft);
        }
    }

    /// Clears results before a frame again that were cleared behind it: that was taken back, and these
    /// stay cleared.
    fn edit_again(&self, cut: u64, mut draft: FrameDraft, sink: &mut Sink) {
        let cleared = self.cleared_at.range(..cut).filter(|(_, at)| **at >= cut);
        let facets = |(frame, _): (&u64, _)| Some((*frame, self.results.get(frame)?.clone()));
        draft.edits = cleared.filter_map(facets).collect();
        if !draft.edits.is_empty() {
            sink.push(draft);
        }
    }

    /// What the summary replaces: all but what the compaction says that it keeps.
    fn compaction(&mut self) -> CompactionRecord {
        let kept = self.tail.take().and_then(|id| self.frames.get(&id).copied());
        let first = kept.unwrap_or(u64::MAX);
        self.system.take_if(|(_, frame)| *frame < first);
        let replaced = kept.map_or(Replaced::All, Replaced::BeforeFrame);
        CompactionRecord { replaced, ..CompactionRecord::of("opencode") }
    }

    /// Gives out a message, or the rest of one, and the results of its calls.
    fn give(
        &mut self,
        mut info: Object,
        parts: Vec<Value>,
        is_message: bool,
        line: u64,
        sink: &mut Sink,
    ) {
        let is_answer = info.str_at("role") == Some("assistant");
        let created = info.get("time").and_then(|time| time.get("created")?.as_u64());
        let is_copy = created.zip(self.began).is_some_and(|(created, began)| created < began);
        let source = if is_answer { Source::Agent } else { Source::User };
        // The answer that holds a summary takes the place of all before it.
        let error = info.get("error").filter(|error| !error.is_null());
        let is_summary = is_answer && is_true(info.get("summary")) && error.is_none();
        let is_failed = is_answer && is_left_out(error, &parts);
        let stop =
            error.map(|error| if is_abort(error) { "aborted".into() } else { "error".into() });
        let text_type = match (is_summary, is_answer) {
            (true, _) => FacetType::SUMMARY,
            (_, true) => FacetType::SPEECH,
            _ => FacetType::EVENT,
        };
        let mut draft = FrameDraft { is_message, ..FrameDraft::message(source, line) };
        draft.uuid = take::text(&mut info, "id");
        draft.timestamp =
            info.get("time").and_then(|time| time.get("created")).map(Value::to_string);
        draft.compacted = is_summary.then(|| self.compaction());
        let answer = answer::of(info.get("modelID"), usage(&info).as_ref());
        let copied = is_copy.then(CopyOf::default);
        draft.add_answer(ModelAnswer { stop, copied, ..answer });
        draft.payload = info;
        let mut results = FrameDraft::record(Source::Environment, line);
        results.timestamp.clone_from(&draft.timestamp);
        let mut cleared: Vec<(u64, usize)> = Vec::new();
        for value in parts {
            let kind = value.str_at("type").unwrap_or("part").to_owned();
            let is_text = value.str_at("text").is_some();
            match (kind.as_str(), value) {
                // What the client shows to people alone.
                ("text", value) if is_true(value.get("ignored")) => {
                    sink.skip("ignored text");
                }
                ("text" | "reasoning", Value::Object(mut part)) if is_text => {
                    let text = take::text(&mut part, "text").unwrap_or_default();
                    let thinks = kind == "reasoning";
                    // What the client put beside the user's words: files, what agents are told.
                    let is_notice = is_true(part.get("synthetic"));
                    let of = match (thinks, is_answer) {
                        (true, _) => FacetType::THOUGHT,
                        (_, false) if is_notice => FacetType::NOTICE,
                        _ => text_type.clone(),
                    };
                    draft.facets.push(with_origin(parts::text(of, text), part.into()));
                }
                ("tool", Value::Object(part)) => {
                    let times = part.get("state").and_then(|state| state.get("time"));
                    let time = times.and_then(|times| times.get("compacted")?.as_u64());
                    let (call, result) = tool(part);
                    draft.facets.push(call);
                    if result.is_some() && !is_failed {
                        cleared.extend(time.map(|time| (time, results.facets.len())));
                    }
                    results.facets.extend(result);
                }
                ("file", value) => draft.facets.push(file(value)),
                ("compaction", value) => {
                    sink.skip(&kind);
                    self.tail = value.str_at("tail_start_id").map(str::to_owned);
                }
                ("step-start" | "step-finish" | "snapshot" | "patch" | "retry", _) => {
                    sink.skip(&kind);
                }
                (kind, value) => draft.facets.push(parts::opaque(kind, value)),
            }
        }
        let is_notice = |facet: &Facet| facet.facet_type == FacetType::NOTICE;
        if !draft.facets.is_empty() && draft.facets.iter().all(is_notice) {
            draft.source = Source::Environment;
        }
        self.failed.extend(is_failed.then(|| sink.next_frame()));
        sink.push(draft);
        if results.facets.is_empty() {
            return;
        }
        let frame = sink.next_frame();
        self.failed.extend(is_failed.then_some(frame));
        if !cleared.is_empty() {
            self.results.insert(frame, results.facets.clone());
        }
        for (time, at) in cleared {
            self.cleared.entry(time).or_default().push((frame, at));
        }
        sink.push(results);
    }
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

/// Whether the client leaves an answer out of what it sends from then on: it failed, or was stopped
/// while the model only thought.
fn is_left_out(error: Option<&Value>, parts: &[Value]) -> bool {
    let says = |part: &Value| !matches!(part.str_at("type"), Some("step-start" | "reasoning"));
    error.is_some_and(|error| !is_abort(error) || !parts.iter().any(says))
}

fn is_abort(error: &Value) -> bool {
    error.str_at("name") == Some("MessageAbortedError")
}

/// The usage in the names of those whose input leaves out what the cache served; the output leaves out
/// the reasoning.
fn usage(info: &Object) -> Option<Value> {
    let tokens = info.get("tokens")?;
    let mut usage = Object::new();
    let cache = |key: &str| tokens.get("cache").and_then(|cache| cache.get(key)).cloned();
    let reasoning = tokens.get("reasoning");
    let more = reasoning.and_then(Value::as_u64).unwrap_or(0);
    let output = tokens.get("output").map(|output| match output.as_u64() {
        Some(output) => output.saturating_add(more).into(),
        None => output.clone(),
    });
    usage.put_some("input", tokens.get("input").cloned());
    usage.put_some("output", output);
    usage.put_some("reasoning", reasoning.cloned());
    usage.put_some("cacheRead", cache("read"));
    usage.put_some("cacheWrite", cache("write"));
    usage.put_some("cost", info.get("cost").cloned());
    Some(usage.into())
}

/// A call, and its result where it has ended.
fn tool(mut part: Object) -> (Facet, Option<Facet>) {
    let (id, name) = (take::text(&mut part, "callID"), take::text(&mut part, "tool"));
    let (id, name) = (id.as_deref(), name.as_deref().unwrap_or_default());
    let mut state = take::object(&mut part, "state").unwrap_or_default();
    let arguments = Arguments::from(state.shift_remove("input"));
    let stated = CallOutcome::of_status(state.str_at("status"));
    let key = if stated.is_failure() { "error" } else { "output" };
    // Of a call that was stopped the model reads what it gave until then.
    let partial = match state.get_mut("metadata") {
        Some(Value::Object(of)) if stated.is_failure() && is_true(of.get("interrupted")) => {
            take::text(of, "output")
        }
        _ => None,
    };
    let stated = if partial.is_some() { stated.max(CallOutcome::Cancelled) } else { stated };
    let said = partial.or_else(|| take::text(&mut state, key));
    let files = take::list(&mut state, "attachments").unwrap_or_default();
    let result = said.map(|text| {
        let mut facet = parts::result(id, Some(name), &*text, stated.said_as(&text));
        facet.children = files.into_iter().map(file).collect();
        facet
    });
    part.put("state", state);
    (with_origin(parts::call(id, name, arguments), part.into()), result)
}

/// A file: an image, or something that is kept whole.
fn file(part: Value) -> Facet {
    let url = part.str_at("url").map(str::to_owned);
    match part.str_at("mime").map(str::to_owned) {
        Some(kind) if kind.starts_with("image/") => parts::image(Some(&kind), url.as_deref(), part),
        _ => parts::opaque("file", part),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::super::{Transcript, sample::check};
    use crate::{
        json::{self, Value},
        veil::{Branch, CallOutcome, Compaction, ContextEdit},
    };

    #[test]
    fn exports_that_stand_one_a_line_are_sessions_of_one_file() {
        let export = |id: &str| {
            format!(
                r#"{{"info":{{"id":"{id}"}},"messages":[{{"info":{{"role":"user"}},"parts":[{{"type":"text","text":"Go"}}]}}]}}"#
            )
        };
        let lines = [export("a"), r#"{"info":{"id":"n"},"messages":[]}"#.to_owned(), export("b")];
        let text = lines.join("\n");
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let sessions = transcript.map(|record| record.unwrap().session.to_string());
        assert_eq!(sessions.collect::<Vec<_>>(), ["a", "b"]);
    }

    /// The frames of a session that changes its context: what each tells of that, and shows.
    fn told(input: &str) -> String {
        let mut out = String::new();
        for record in Transcript::new(input.as_bytes()).unwrap() {
            let frame = record.unwrap().frame;
            let texts: Vec<&str> = frame.added().map(|facet| &*facet.content).collect();
            write!(out, "{} {} {texts:?}", frame.sequence, frame.source.as_str()).unwrap();
            if let Some(told) = Compaction::of(&frame).unwrap() {
                write!(out, ", replaces {} to {}", told.from, told.to).unwrap();
            }
            let edit = ContextEdit::of(&frame).unwrap().unwrap_or_default();
            for (frame, facets) in edit.frames {
                let texts: Vec<&str> = facets.iter().map(|facet| &*facet.content).collect();
                write!(out, ", {frame} reads {texts:?}").unwrap();
            }
            if let Some(branch) = Branch::of(&frame).unwrap() {
                let outside = branch.outside.iter().map(|of| (of.start().get(), of.end().get()));
                write!(out, ", without {:?}", outside.collect::<Vec<_>>()).unwrap();
            }
            out += "\n";
        }
        out
    }

    #[test]
    fn a_compaction_keeps_its_tail_and_results_are_cleared_when_they_were() {
        let found = told(
            r#"{"info": {"id": "ses"}, "messages": [
                 {"info": {"role": "user", "id": "m1", "time": {"created": 10}, "system": "Be brief"}, "parts": [{"type": "text", "text": "Look"}]},
                 {"info": {"role": "assistant", "id": "m2", "time": {"created": 11}}, "parts": [
                   {"type": "tool", "tool": "ls", "callID": "c1", "state": {"status": "completed", "input": {}, "output": "old", "time": {"compacted": 19}, "attachments": [{"mime": "image/png", "url": "data:image/png;base64,AAAA"}]}},
                   {"type": "tool", "tool": "ls", "callID": "c2", "state": {"status": "completed", "input": {}, "output": "new", "time": {"compacted": 99}}},
                   {"type": "tool", "tool": "ls", "callID": "c3", "state": {"status": "running", "input": {}, "time": {"compacted": 19}}}]},
                 {"info": {"role": "user", "id": "m3", "time": {"created": 20}, "system": "Be brief"}, "parts": [{"type": "text", "text": "On"}]},
                 {"info": {"role": "user", "id": "m4", "time": {"created": 30}}, "parts": [{"type": "compaction", "tail_start_id": "m3"}]},
                 {"info": {"role": "assistant", "id": "m5", "summary": true, "error": {"name": "MessageAbortedError"}}, "parts": [{"type": "text", "text": "Half"}]},
                 {"info": {"role": "assistant", "id": "m6", "summary": true}, "parts": [{"type": "text", "text": "So far"}]},
                 {"info": {"role": "user", "id": "m7", "time": {"created": 40}, "system": "Be brief"}, "parts": [{"type": "text", "text": "More"}]}]}"#,
        );
        assert_eq!(
            found,
            r#"0 environment ["Be brief"]
1 user ["Look"]
2 agent ["", "", ""]
3 environment ["old", "new"]
4 environment [], 3 reads ["[Old tool result content cleared]", "new"]
5 user ["On"]
6 environment [], 0 reads []
7 user []
8 agent ["Half"]
9 agent ["So far"], replaces 0 to 3
10 environment ["Be brief"]
11 user ["More"]
12 environment [], 3 reads ["[Old tool result content cleared]", "[Old tool result content cleared]"]
"#
        );
    }

    #[test]
    fn what_is_reverted_leaves_the_context_at_the_end() {
        let session = |revert: &str| {
            told(&format!(
                r#"{{"info": {{"id": "ses", "revert": {revert}}}, "messages": [
                 {{"info": {{"role": "user", "id": "m1"}}, "parts": [{{"type": "text", "text": "Look"}}]}},
                 {{"info": {{"role": "assistant", "id": "m2"}}, "parts": [{{"type": "text", "id": "p1", "text": "I look"}}, {{"type": "text", "id": "p2", "text": "Aye"}}]}},
                 {{"info": {{"role": "user", "id": "m3"}}, "parts": [{{"type": "text", "text": "On"}}]}}]}}"#
            ))
        };
        let whole = session(r#"{"messageID": "m2"}"#);
        assert!(
            whole.ends_with("2 user [\"On\"]\n3 environment [], without [(1, 2)]\n"),
            "{whole}"
        );
        let part = session(r#"{"messageID": "m2", "partID": "p2"}"#);
        let end = "1 agent [\"I look\"]\n2 agent [\"Aye\"]\n3 user [\"On\"]\n4 environment [], without [(2, 3)]\n";
        assert!(part.ends_with(end), "{part}");
    }

    #[test]
    fn what_was_cleared_stays_cleared_where_a_later_message_is_reverted() {
        let session = told(
            r#"{"info": {"id": "ses", "revert": {"messageID": "m3"}}, "messages": [
                 {"info": {"role": "user", "id": "m1", "time": {"created": 5}}, "parts": [{"type": "text", "text": "Look"}]},
                 {"info": {"role": "assistant", "id": "m2", "time": {"created": 6}}, "parts": [
                   {"type": "tool", "tool": "ls", "callID": "c1", "state": {"status": "completed", "input": {}, "output": "old", "time": {"compacted": 19}}}]},
                 {"info": {"role": "user", "id": "m3", "time": {"created": 20}}, "parts": [{"type": "text", "text": "On"}]}]}"#,
        );
        let end = "5 environment [], without [(3, 4)]\n6 environment [], 2 reads [\"[Old tool result content cleared]\"]\n";
        assert!(session.ends_with(end), "{session}");
        let session = told(
            r#"{"info": {"id": "ses", "revert": {"messageID": "m2"}}, "messages": [
                 {"info": {"role": "assistant", "id": "m1", "error": {"name": "APIError"}}, "parts": [{"type": "text", "text": "Half"}]},
                 {"info": {"role": "user", "id": "m2"}, "parts": [{"type": "text", "text": "On"}]}]}"#,
        );
        assert!(session.ends_with("without [(1, 2)]\n4 environment [], 0 reads []\n"), "{session}");
    }

    #[test]
    fn a_failed_answer_leaves_the_context_and_a_stopped_one_stays() {
        let found = told(
            r#"{"info": {"id": "ses"}, "messages": [
                 {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Look"}]},
                 {"info": {"role": "assistant", "error": {"name": "APIError"}}, "parts": [{"type": "text", "text": "Half"},
                   {"type": "tool", "tool": "ls", "callID": "c1", "state": {"status": "completed", "input": {}, "output": "old", "time": {"compacted": 3}}}]},
                 {"info": {"role": "user", "time": {"created": 5}}, "parts": [{"type": "text", "text": "On"}]},
                 {"info": {"role": "assistant", "error": {"name": "MessageAbortedError"}}, "parts": [{"type": "text", "text": "I look"},
                   {"type": "tool", "tool": "ls", "callID": "c2", "state": {"status": "error", "input": {}, "error": "Tool execution aborted", "metadata": {"interrupted": true, "output": "a.t"}}}]},
                 {"info": {"role": "assistant", "summary": true, "error": {"name": "MessageAbortedError"}}, "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "Hm"}]}]}"#,
        );
        assert_eq!(
            found,
            r#"0 user ["Look"]
1 agent ["Half", ""]
2 environment ["old"]
3 environment [], 1 reads [], 2 reads []
4 user ["On"]
5 agent ["I look", ""]
6 environment ["a.t"]
7 agent ["Hm"]
8 environment [], 7 reads []
"#
        );
    }

    #[test]
    fn a_call_that_was_stopped_was_cancelled_whatever_it_gave_until_then() {
        let part = r#"{"callID": "c", "tool": "ls", "state": {"status": "error", "error": "Tool execution aborted", "metadata": {"interrupted": true, "output": "a.t"}}}"#;
        let Ok(Value::Object(part)) = json::read(part.as_bytes()) else { panic!() };
        let result = super::tool(part).1.unwrap();
        assert_eq!((&*result.content, result.outcome()), ("a.t", CallOutcome::Cancelled));
    }

    #[test]
    fn answers_that_are_older_than_their_session_are_copies_of_a_fork() {
        let answer = |id: &str, at: u64| {
            format!(
                r#"{{"info":{{"id":"{id}","role":"assistant","time":{{"created":{at}}},"tokens":{{"input":7,"output":2}}}},"parts":[{{"type":"text","text":"Aye"}}]}}"#
            )
        };
        let input = format!(
            r#"{{"info":{{"id":"fork","time":{{"created":20}}}},"messages":[{},{}]}}"#,
            answer("m1", 10),
            answer("m2", 20)
        );
        let transcript = Transcript::new(input.as_bytes()).unwrap();
        let copied = transcript.map(|record| {
            let imported = record.unwrap().frame.imported.unwrap();
            imported.answer.unwrap().copied.is_some()
        });
        assert_eq!(copied.collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn parts_are_what_was_said_called_and_given() {
        check(
            r#"{"info": {"id": "ses"}, "messages": [
                 {"info": {"role": "user", "id": "m1", "time": {"created": 5}}, "parts": [{"type": "text", "text": "Look"}, {"type": "text", "text": "hid", "ignored": true},
                   {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}]},
                 {"info": {"role": "assistant", "modelID": "q", "cost": 0, "tokens": {"input": 7, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}},
                  "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "Hm"},
                   {"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed", "input": {"c": 1}, "output": "a.txt"}},
                   {"type": "tool", "tool": "bash", "callID": "c2", "state": {"status": "error", "input": {}, "error": "no"}},
                   {"type": "tool", "tool": "bash", "callID": "c3", "state": {"status": "running", "input": {}}},
                   {"type": "novel", "x": 1}, {"type": "step-finish"}]},
                 {"info": {"role": "assistant", "summary": true}, "parts": [{"type": "text", "text": "So far"}]},
                 {"info": {}}, 5]}"#,
            r#"
            opencode
            # ses
            user message m1 5 {"time":{"created":5}}
              event "Look" <- {"type":"text"}
              image "[image/png, 3 bytes]" <- {"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"}
            agent message {"answer":{"model":"q","usage":{"input":10,"cacheRead":3,"cacheWrite":0,"output":3,"reasoning":1,"cost":{"amount":"0","currency":"USD"}}},"modelID":"q","cost":0,"tokens":{"input":7,"output":2,"reasoning":1,"cache":{"read":3,"write":0}}}
              thought "Hm" <- {"type":"reasoning"}
              call bash c1 {"c":1} <- {"type":"tool","state":{"status":"completed"}}
              call bash c2 {} <- {"type":"tool","state":{"status":"error"}}
              call bash c3 {} <- {"type":"tool","state":{"status":"running"}}
              opaque "[novel, 22 bytes]" <- {"type":"novel","x":1}
            environment -
              result bash c1 done "a.txt"
              result bash c2 failed "no"
            agent message {"summary":true}
              summary "So far" <- {"type":"text"}
            environment -
              unknown (a message without `info` and `parts`) {"info":{}}
            environment -
              unknown (a number is no message) 5
            messages 3, calls 3, results 2, sessions 1, unknown 2, skipped {"ignored text": 1, "info": 1, "step-finish": 1, "step-start": 1}
            "#,
        );
    }
}
