//! Every recording exports to requests that the providers accept, and comes back as it was.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::exporting;
use afterimage_testkit::data;

use std::{collections::BTreeMap, fmt::Write, path::PathBuf, sync::Arc};

use afterimage::{
    export::{
        Breakpoints, Export, ExportOptions, ExportReport, ExportedRequest, Orphans, PrefixRules,
        UnansweredCalls, prefix_report,
    },
    hud::{Hud, NativeFormat, Owner, RenderRequest, RenderedContext},
    id::Millis,
    tokens::Chars4,
    transcript::Transcript,
    veil::{Frame, History, Source},
};
use exporting::{check, json};
use serde_json::{Value, json as value};

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn files(groups: &[&str]) -> Vec<PathBuf> {
    let folders = groups.iter().filter_map(|group| data::recordings(group));
    folders.flat_map(|folder| data::files_under(&folder)).collect()
}

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

/// The histories of a file's sessions, in the order in which they begin.
fn histories(path: &PathBuf) -> Vec<(String, History)> {
    let hud = hud();
    let mut sessions: Vec<(String, Vec<Frame>)> = Vec::new();
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        match sessions.iter_mut().find(|(name, _)| **name == *record.session) {
            Some((_, frames)) => frames.push(record.frame),
            None => sessions.push((record.session.to_string(), vec![record.frame])),
        }
    }
    let history = |(name, frames): (String, Vec<Frame>)| {
        let mut history = History::new();
        for frame in frames {
            hud.capture(&mut history, frame, Millis::new(0)).unwrap();
        }
        (name, history)
    };
    sessions.into_iter().map(history).collect()
}

fn context(history: &History, frames: usize) -> RenderedContext {
    let end = history.frames().get(frames - 1).unwrap().sequence;
    let range = history.frames().get(0).unwrap().sequence..=end;
    let request = RenderRequest { frames: Some(range), ..RenderRequest::default() };
    hud().render(history, &request, Millis::new(0)).unwrap()
}

/// Where a history is cut: at the end, and at some places before it.
fn cuts(frames: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..=8).map(|part| frames * part / 8).collect();
    cuts.extend([1, 2, 3, frames.saturating_sub(1)]);
    cuts.retain(|cut| (1..=frames).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

#[test]
fn every_export_of_every_recording_is_accepted_at_every_cut() {
    let choices = [
        ExportOptions::default(),
        ExportOptions {
            unanswered: UnansweredCalls::Drop,
            orphans: Orphans::Drop,
            keep_open: true,
            breakpoints: Breakpoints::Recorded,
        },
    ];
    for path in files(&GROUPS) {
        for (session, history) in histories(&path) {
            let frames = history.frames().len();
            for cut in cuts(frames) {
                let context = context(&history, cut);
                let export = Export::of(&history, &context).unwrap();
                for options in &choices {
                    check(&export, options, &format!("{} {session} at {cut}", path.display()));
                }
            }
        }
    }
}

/// Exported without marks of the cache, which are not the source's.
fn unmarked() -> ExportOptions {
    ExportOptions { keep_open: true, breakpoints: Breakpoints::None, ..ExportOptions::default() }
}

fn exports(path: &PathBuf, form: fn(&Export<'_>) -> ExportedRequest) -> Vec<(Value, ExportReport)> {
    let whole = |(_, history): &(String, History)| {
        let context = context(history, history.frames().len());
        let exported = form(&Export::of(history, &context).unwrap());
        (json(&exported), exported.report().clone())
    };
    histories(path).iter().map(whole).collect()
}

fn parse(path: &PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    files(&GROUPS).into_iter().filter(|path| path.to_string_lossy().contains(folder)).collect()
}

fn assert_same(found: &Value, expected: &Value, place: &str) {
    if found == expected {
        return;
    }
    if let (Some(found), Some(expected)) = (found.as_array(), expected.as_array()) {
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_same(found, expected, &format!("{place}/{index}"));
        }
        panic!("{place}: {} and not {} elements", found.len(), expected.len());
    }
    if let (Some(found), Some(expected)) = (found.as_object(), expected.as_object()) {
        for (key, value) in expected {
            assert_same(found.get(key).unwrap_or(&Value::Null), value, &format!("{place}/{key}"));
        }
    }
    panic!("{place}:\nfound    {found:.600}\nexpected {expected:.600}");
}

/// A chat message as an export gives it back: members that no request takes are gone.
fn chat_message(message: &Value) -> Option<Value> {
    let mut message = message.as_object()?.clone();
    let known = [
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "refusal",
        "annotations",
        "audio",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "thought_signature",
        "extra_content",
    ];
    message.retain(|key, _| known.contains(&key.as_str()));
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        // Left over from a stream.
        call.as_object_mut()?.remove("index");
    }
    let is_empty = matches!(message.get("content"), None | Some(Value::Null))
        || message.get("content") == Some(&value!(""));
    let says = ["tool_calls", "function_call", "refusal", "tool_call_id"];
    let says = says.iter().any(|key| message.get(*key).is_some_and(|value| !value.is_null()));
    (!is_empty || says).then_some(Value::Object(message))
}

/// Ids in the order in which they appear, for transcripts that lack some.
fn number_ids(messages: &mut Value) {
    let mut calls = 0;
    let mut results = 0;
    for message in messages.as_array_mut().unwrap() {
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            call["id"] = value!(calls);
            calls += 1;
        }
        if message["role"] == "tool" {
            message["tool_call_id"] = value!(results);
            results += 1;
        }
    }
}

#[test]
fn tau_bench_and_toolbench_come_back_field_by_field() {
    let mut sessions = 0;
    for path in files_in("/tau-bench/").into_iter().chain(files_in("/toolbench/")) {
        let raw = parse(&path);
        let conversations: Vec<&Value> = if let Some(entries) = raw.as_array() {
            entries.iter().map(|entry| &entry["traj"]).collect()
        } else {
            let states = raw["answer_generation"]["train_messages"].as_array().unwrap();
            let longest = states.iter().max_by_key(|state| state.as_array().unwrap().len());
            longest.into_iter().collect()
        };
        let found = exports(&path, |export| export.openai_chat(&unmarked()));
        assert_eq!(found.len(), conversations.len());
        for ((found, report), raw) in found.iter().zip(conversations) {
            let raw = raw.as_array().unwrap();
            let expected: Value = raw.iter().filter_map(chat_message).collect();
            assert_same(found, &expected, &path.display().to_string());
            assert!(report.repaired.is_empty());
            sessions += 1;
        }
    }
    if data::recordings(GROUPS[0]).is_some() {
        assert_eq!(sessions, 101);
    }
}

#[test]
fn inspect_logs_come_back_in_the_form_of_chat_lists() {
    for path in files_in("/inspect-ai/") {
        let raw = parse(&path);
        let samples = raw["samples"].as_array().unwrap();
        let found = exports(&path, |export| export.openai_chat(&unmarked()));
        assert_eq!(found.len(), samples.len());
        for ((mut found, _), sample) in found.into_iter().zip(samples) {
            let attachments = &sample["attachments"];
            let mut messages = Vec::new();
            for message in sample["messages"].as_array().unwrap() {
                let mut message = message.clone();
                resolve(&mut message, attachments);
                for part in message["content"].as_array_mut().into_iter().flatten() {
                    if part["type"] == "image" {
                        let url = value!({"url": part["image"], "detail": part["detail"]});
                        *part = value!({"type": "image_url", "image_url": url});
                    }
                }
                if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
                    for call in calls {
                        let function =
                            value!({"name": call["function"], "arguments": call["arguments"]});
                        *call =
                            value!({"id": call["id"], "type": "function", "function": function});
                    }
                }
                messages.extend(chat_message(&message));
            }
            // inspect has the arguments parsed.
            for message in found.as_array_mut().unwrap() {
                for call in message
                    .get_mut("tool_calls")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    let arguments = call["function"]["arguments"].as_str().unwrap();
                    call["function"]["arguments"] = serde_json::from_str(arguments).unwrap();
                }
            }
            assert_same(&found, &Value::Array(messages), &path.display().to_string());
        }
    }
}

fn resolve(value: &mut Value, attachments: &Value) {
    match value {
        Value::String(text) => {
            if let Some(hash) = text.strip_prefix("attachment://")
                && let Some(whole) = attachments[hash].as_str()
            {
                *text = whole.to_owned();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| resolve(value, attachments)),
        Value::Object(object) => object.values_mut().for_each(|value| resolve(value, attachments)),
        _ => {}
    }
}

/// Every session of a file of traffic is one of its requests with the response to it, and the
/// last request is among them.
fn assert_traffic(
    path: &PathBuf,
    found: &[(Value, ExportReport)],
    whole: impl Fn(&Value) -> Option<Value>,
) {
    let raw = parse(path);
    let requests: Vec<Value> =
        raw["interactions"].as_array().unwrap().iter().filter_map(whole).collect();
    let place = path.display().to_string();
    let last = requests.last().unwrap();
    for (found, report) in found {
        assert!(report.repaired.is_empty(), "{place}: {report:?}");
        if !requests.contains(found) {
            assert_same(found, last, &place);
        }
    }
    assert!(
        found.iter().any(|(found, _)| found == last),
        "{place}: no session is the last request"
    );
}

/// The contents of the requests to Gemini in a file, each with its answer.
fn gemini_contents(path: &PathBuf) -> Vec<Value> {
    let raw = parse(path);
    let interactions = raw["interactions"].as_array().unwrap().iter();
    let contents = interactions.filter_map(|interaction| {
        let mut contents = interaction["request"]["contents"].as_array()?.clone();
        contents.push(interaction["response"]["candidates"][0]["content"].clone());
        Some(Value::Array(contents))
    });
    contents.collect()
}

#[test]
fn recorded_chat_traffic_comes_back_field_by_field() {
    for path in files_in("/wire-openai_chat/") {
        let lacks_ids = path.to_string_lossy().contains("without_id");
        let mut found = exports(&path, |export| export.openai_chat(&unmarked()));
        if lacks_ids {
            found.iter_mut().for_each(|(messages, _)| number_ids(messages));
        }
        // A file may hold traffic with Gemini too.
        let gemini = exports(&path, |export| export.gemini(&unmarked()));
        let contents = gemini_contents(&path);
        let is_geminis = gemini.iter().map(|(found, _)| contents.contains(&found["contents"]));
        let is_geminis: Vec<bool> = is_geminis.collect();
        assert_eq!(is_geminis.contains(&true), !contents.is_empty(), "{}", path.display());
        let mut of_chat = is_geminis.into_iter().map(|is| !is);
        found.retain(|_| of_chat.next().unwrap());
        assert_traffic(&path, &found, |interaction| {
            let mut messages = interaction["request"]["messages"].as_array()?.clone();
            let answer = &interaction["response"]["choices"][0]["message"];
            messages.extend(answer.is_object().then(|| answer.clone()));
            let mut messages: Value = messages.iter().filter_map(chat_message).collect();
            if lacks_ids {
                number_ids(&mut messages);
            }
            Some(messages)
        });
    }
}

/// Messages as Anthropic takes them: neighbours of one role are one message, results first, marks
/// of the cache and what is `null` are gone.
fn anthropic_messages(messages: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for message in messages {
        let role = message["role"].clone();
        let mut content = message["content"].clone();
        clean(&mut content);
        if let Some(blocks) = content.as_array_mut() {
            let is_blank = |block: &Value| {
                block["type"] == "text"
                    && block["text"].as_str().is_some_and(|text| text.trim().is_empty())
            };
            blocks.retain(|block| !is_blank(block));
        }
        if content == value!([]) || content == value!("") {
            continue;
        }
        let as_blocks = |content: &Value| match content {
            Value::String(text) => vec![value!({"type": "text", "text": text})],
            content => content.as_array().unwrap().clone(),
        };
        match joined.last_mut().filter(|last| last["role"] == role) {
            Some(last) => {
                let mut blocks = as_blocks(&last["content"]);
                blocks.extend(as_blocks(&content));
                if role == "user" {
                    blocks.sort_by_key(|block| block["type"] != "tool_result");
                }
                last["content"] = Value::Array(blocks);
            }
            None => joined.push(value!({"role": role, "content": content})),
        }
    }
    if let Some(last) = joined.last_mut().filter(|last| last["role"] == "assistant")
        && let Some(block) = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut())
        && let Some(text) = block["text"].as_str()
    {
        block["text"] = value!(text.trim_end());
    }
    joined
}

fn clean(content: &mut Value) {
    for block in content.as_array_mut().into_iter().flatten() {
        if let Value::String(text) = block {
            *block = value!({"type": "text", "text": text});
        }
        if block["type"] == "tool_result" {
            clean(&mut block["content"]);
        }
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
            block.retain(|key, value| key != "citations" || !value.is_null());
        }
    }
}

#[test]
fn recorded_anthropic_traffic_comes_back_field_by_field() {
    for path in files_in("/wire-anthropic/") {
        let found = exports(&path, |export| export.anthropic(&unmarked()));
        assert_traffic(&path, &found, |interaction| {
            let mut messages = interaction["request"]["messages"].as_array()?.clone();
            let answer = &interaction["response"];
            messages.extend(answer["content"].is_array().then(|| answer.clone()));
            let messages = anthropic_messages(messages);
            let mut system = interaction["request"]["system"].clone();
            clean(&mut system);
            Some(match system {
                Value::Null => value!({"messages": messages}),
                system => value!({"system": system, "messages": messages}),
            })
        });
    }
}

/// Sessions whose ids, types and calls the fixture's maker cut out.
const CUT: [&str; 2] = ["/agent-sessions/", "/edge_cases.jsonl"];

#[test]
fn claude_code_sessions_come_back_as_the_messages_that_were_sent() {
    let mut sessions = 0;
    for path in files_in("/claude-code/") {
        let place = path.display().to_string();
        if CUT.iter().any(|cut| place.contains(cut)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let records: Vec<Value> = match serde_json::from_str::<Value>(&text) {
            Ok(document) if document["loglines"].is_array() => {
                document["loglines"].as_array().unwrap().clone()
            }
            _ => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        };
        let found = exports(&path, |export| export.anthropic(&unmarked()));
        // The sessions of its subagents follow that of the file itself.
        let subagents = afterimage::transcript::subagent_files(&path).len();
        assert_eq!(found.len(), 1 + subagents, "{place}");
        let (found, report) = &found[0];
        assert!(report.repaired.is_empty(), "{place}: {report:?}");
        let mut once = anthropic_messages(claude_code_messages(&records));
        for message in once.iter_mut().filter(|message| message["role"] == "assistant") {
            let blocks = message["content"].as_array_mut().unwrap();
            while blocks.last().is_some_and(|block| block["type"] == "thinking") {
                blocks.pop();
            }
        }
        let mut expected = anthropic_messages(once);
        if expected[0]["role"] == "assistant" {
            let opening =
                value!({"role": "user", "content": "[the conversation before this is not shown]"});
            expected.insert(0, opening);
        }
        assert_same(&found["messages"], &Value::Array(expected), &place);
        sessions += 1;
    }
    if data::recordings(GROUPS[1]).is_some() {
        assert_eq!(sessions, 14);
    }
}

/// The messages of a session: records that share an id are one, results stand after it.
fn claude_code_messages(records: &[Value]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for record in records {
        let kind = record["type"].as_str().unwrap_or_default();
        let message = &record["message"];
        if record["subtype"] == "local_command" {
            messages.push(value!({"role": "user", "content": record["content"]}));
            continue;
        }
        if !matches!(kind, "user" | "assistant") || !message.is_object() {
            continue;
        }
        let mut message =
            value!({"role": kind, "content": message["content"], "id": message["id"]});
        if let Some(blocks) = message["content"].as_array_mut() {
            // Reasoning without a signature is refused.
            blocks.retain(|block| {
                block["type"] != "thinking"
                    || block["signature"] != value!("") && block["signature"].is_string()
            });
        }
        let has_result = message["content"]
            .as_array()
            .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
        let id = message["id"].as_str().filter(|_| kind == "assistant").map(str::to_owned);
        if let (Some(id), Some((at, same))) = (&id, &open)
            && id == same
        {
            let more = message["content"].as_array().unwrap().clone();
            messages[*at]["content"].as_array_mut().unwrap().extend(more);
            continue;
        }
        if id.is_some() || !(kind == "user" && (has_result || record["isMeta"] == true)) {
            open = id.map(|id| (messages.len(), id));
        }
        messages.push(message);
    }
    messages
}

#[test]
fn pi_sessions_come_back_as_the_messages_that_were_sent() {
    for path in files_in("/pi/") {
        let text = std::fs::read_to_string(&path).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let messages = records.filter_map(|record| match record["type"].as_str().unwrap() {
            "message" => pi_message(&record["message"]),
            // What stood for the messages before it from then on; the import keeps those too.
            "compaction" => Some(value!({"role": "user", "content": record["summary"]})),
            _ => None,
        });
        let expected = anthropic_messages(with_placeholders(messages));
        let found = exports(&path, |export| export.anthropic(&unmarked()));
        assert_eq!(found.len(), 1);
        assert_same(&found[0].0["messages"], &Value::Array(expected), &path.display().to_string());
    }
}

/// A message of pi as Anthropic takes it. Its reasoning is left out: pi calls the signature by
/// another name, and has those of other providers too.
fn pi_message(message: &Value) -> Option<Value> {
    let text = |text: &str| value!({"type": "text", "text": text});
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => Some(text(block["text"].as_str().unwrap())),
        "thinking" => None,
        "toolCall" => Some(value!({"type": "tool_use", "id": block["id"], "name": block["name"],
            "input": block["arguments"]})),
        "image" => Some(value!({"type": "image", "source": {"type": "base64",
            "media_type": block["mimeType"], "data": block["data"]}})),
        other => panic!("a block of type {other}"),
    };
    let blocks = || message["content"].as_array().unwrap().iter().filter_map(block).collect();
    let (role, content): (_, Vec<Value>) = match message["role"].as_str().unwrap() {
        "toolResult" => {
            let blocks: Vec<Value> = blocks();
            let blocks: Vec<_> = blocks.into_iter().filter(|block| block["text"] != "").collect();
            let mut result = value!({"type": "tool_result", "tool_use_id": message["toolCallId"],
                "content": blocks});
            if message["isError"] == true {
                result["is_error"] = value!(true);
            }
            ("user", vec![result])
        }
        "bashExecution" => {
            let (command, output) = (&message["command"], message["output"].as_str().unwrap());
            let mut said = format!("Ran `{}`\n```\n{output}\n```", command.as_str().unwrap());
            if let Some(code) = message["exitCode"].as_i64().filter(|code| *code != 0) {
                write!(said, "\n\nCommand exited with code {code}").unwrap();
            }
            if message["truncated"] == true {
                let file = message["fullOutputPath"].as_str().unwrap();
                write!(said, "\n\n[Output truncated. Full output: {file}]").unwrap();
            }
            return Some(value!({"role": "user", "content": said}));
        }
        role => (if role == "assistant" { role } else { "user" }, blocks()),
    };
    (!content.is_empty()).then(|| value!({"role": role, "content": content}))
}

/// Calls that nobody answered before the agent spoke again have the placeholder as result.
fn with_placeholders(messages: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let (mut whole, mut open, mut followed) = (Vec::new(), Vec::new(), false);
    let close = |open: &mut Vec<Value>| {
        let result = |id| {
            value!({"type": "tool_result", "tool_use_id": id,
            "content": "[no result was recorded for this call]"})
        };
        let results: Vec<Value> = std::mem::take(open).into_iter().map(result).collect();
        (!results.is_empty()).then(|| value!({"role": "user", "content": results}))
    };
    for message in messages {
        if message["role"] == "assistant" && std::mem::take(&mut followed) {
            whole.extend(close(&mut open));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str().unwrap() {
                "tool_use" => open.push(block["id"].clone()),
                "tool_result" => open.retain(|id| *id != block["tool_use_id"]),
                _ => {}
            }
        }
        followed |= message["role"] == "user";
        whole.push(message);
    }
    whole
}

#[test]
fn a_request_begins_with_the_whole_of_the_one_before() {
    let options = ExportOptions::default();
    let forms: [fn(&Export<'_>, &ExportOptions) -> ExportedRequest; 4] = [
        |export, options| export.openai_chat(options),
        |export, options| export.responses(options),
        |export, options| export.anthropic(options),
        |export, options| export.plain(options),
    ];
    for path in files(&GROUPS) {
        for (session, history) in histories(&path).into_iter().take(12) {
            // A request is sent where the agent speaks next, and did not speak before.
            let frames: Vec<_> = history.frames().enumerate().collect();
            let shows = |frame: &Frame| !frame.rendered_snapshot.as_ref().unwrap().is_empty();
            let shown: Vec<_> = frames.iter().filter(|(_, frame)| shows(frame)).collect();
            let begins = |pair: &[&(usize, Arc<Frame>)]| {
                let is_agent = [0, 1].map(|at| pair[at].1.source == Source::Agent);
                (is_agent == [false, true]).then_some(pair[1].0)
            };
            let sent: Vec<usize> = shown.windows(2).filter_map(begins).collect();
            let step = sent.len().div_ceil(8).max(1);
            let contexts: Vec<_> =
                sent.iter().step_by(step).map(|cut| context(&history, *cut)).collect();
            for form in forms {
                let requests: Vec<ExportedRequest> = contexts
                    .iter()
                    .map(|context| form(&Export::of(&history, context).unwrap(), &options))
                    .collect();
                for pair in requests.windows(2) {
                    let report = prefix_report(&pair[0], &pair[1], &Chars4, PrefixRules::EXACT);
                    let place = format!("{} {session}", path.display());
                    if pair[0].value().as_str().is_some() {
                        // One text: it differs where the first one ends.
                        let end = pair[0].value().as_str().unwrap().len();
                        let offset = report.divergence.and_then(|divergence| divergence.offset);
                        assert!(offset.is_none_or(|offset| offset == end), "{place}");
                    } else {
                        assert_eq!(report.divergence, None, "{place}");
                        assert!(report.unchanged <= report.tokens, "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_that_was_captured_is_missing_from_the_plain_text() {
    for path in files(&GROUPS) {
        for (session, history) in histories(&path) {
            let context = context(&history, history.frames().len());
            let plain = Export::of(&history, &context).unwrap().plain(&ExportOptions::default());
            let mut expected: BTreeMap<(u64, usize), usize> = BTreeMap::new();
            for message in context.messages() {
                for run in context.runs(message) {
                    if let Owner::Chunk { frame, chunk, .. } = run.owner {
                        expected.insert((frame.get(), chunk), run.text.len());
                    }
                }
            }
            expected.retain(|_, len| *len > 0);
            let mut found: BTreeMap<(u64, usize), usize> = BTreeMap::new();
            for span in plain.root().spans() {
                if let Owner::Chunk { frame, chunk, .. } = span.owner {
                    *found.entry((frame.get(), chunk)).or_default() += span.range.len();
                }
            }
            // The name of a call belongs to its chunk as well.
            let short = expected.iter().find(|(key, len)| found.get(key) < Some(len));
            assert_eq!(short, None, "{} {session}", path.display());
        }
    }
}
