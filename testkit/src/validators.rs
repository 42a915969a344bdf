//! What the providers accept, as strict as their documentation and their errors are. Plain
//! `serde_json`: nothing here knows how an export is made.
//!
//! A request may end in calls that wait for their results; everywhere else pairs are whole.

use std::collections::HashSet;

use serde_json::{Map, Value};

pub type Verdict = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => { if !$holds { return Err(format!($($message)*)); } };
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("no object: {}", brief(value)))
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("no list: {}", brief(value)))
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> Result<&'v str, String> {
    let value = object.get(key).ok_or_else(|| format!("no {key:?} in {object:.200?}"))?;
    value.as_str().ok_or_else(|| format!("{key:?} is no string: {}", brief(value)))
}

fn brief(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}

fn members(object: &Map<String, Value>, known: &[&str]) -> Verdict {
    for key in object.keys() {
        ensure!(known.contains(&key.as_str()), "member {key:?} is not known");
    }
    Ok(())
}

fn is_name(name: &str, longest: usize) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= longest && name.chars().all(is_plain)
}

fn at<T>(index: usize, verdict: Result<T, String>) -> Result<T, String> {
    verdict.map_err(|error| format!("[{index}]: {error}"))
}

/// `messages` of OpenAI's Chat Completions.
///
/// # Errors
///
/// The first rule that the request breaks, and where.
pub fn chat(value: &Value) -> Verdict {
    let mut open: HashSet<String> = HashSet::new();
    let mut function: Option<String> = None;
    for (index, message) in list(value)?.iter().enumerate() {
        at(index, chat_message(message, &mut open, &mut function))?;
    }
    Ok(())
}

fn chat_message(
    value: &Value,
    open: &mut HashSet<String>,
    function: &mut Option<String>,
) -> Verdict {
    let message = object(value)?;
    let role = text(message, "role")?;
    if role != "tool" {
        ensure!(open.is_empty(), "calls {open:?} are not answered directly");
    }
    if role != "function" {
        ensure!(function.is_none(), "call of {function:?} is not answered directly");
    }
    let content = message.get("content");
    match role {
        "system" | "developer" => {
            members(message, &["role", "content", "name"])?;
            chat_content(content, &["text"])
        }
        "user" => {
            members(message, &["role", "content", "name"])?;
            chat_content(content, &["text", "image_url", "input_audio", "file"])
        }
        "tool" => {
            members(message, &["role", "content", "tool_call_id", "name"])?;
            let id = text(message, "tool_call_id")?;
            ensure!(open.remove(id), "{id:?} is no open call of the message before");
            match content {
                Some(Value::String(_)) => Ok(()),
                content => chat_content(content, &["text"]),
            }
        }
        "function" => {
            members(message, &["role", "content", "name"])?;
            ensure!(content.is_some_and(Value::is_string), "a function's content is a string");
            let name = text(message, "name")?;
            let called = function.take();
            ensure!(called.as_deref() == Some(name), "{name:?} answers {called:?}");
            Ok(())
        }
        "assistant" => chat_assistant(message, open, function),
        other => Err(format!("role {other:?}")),
    }
}

fn chat_assistant(
    message: &Map<String, Value>,
    open: &mut HashSet<String>,
    function: &mut Option<String>,
) -> Verdict {
    let own = ["role", "content", "name", "refusal", "audio", "tool_calls", "function_call"];
    let relatives = [
        "annotations",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "thought_signature",
        "extra_content",
        "prefix",
    ];
    members(message, &[&own[..], &relatives[..]].concat())?;
    for field in ["reasoning_content", "reasoning"] {
        ensure!(message.get(field).is_none_or(Value::is_string), "{field} is no string");
    }
    let calls = message.get("tool_calls").map(list).transpose()?;
    ensure!(calls.is_none_or(|calls| !calls.is_empty()), "tool_calls is empty");
    let legacy = message.get("function_call").map(object).transpose()?;
    ensure!(calls.is_none() || legacy.is_none(), "both tool_calls and function_call");
    let refuses = message.get("refusal").is_some_and(Value::is_string);
    match message.get("content") {
        None | Some(Value::Null) => {
            ensure!(
                calls.is_some() || legacy.is_some() || refuses,
                "neither content nor calls nor a refusal"
            );
        }
        Some(Value::String(content)) => {
            ensure!(!content.is_empty() || calls.is_some() || legacy.is_some(), "empty content");
        }
        content => chat_content(content, &["text", "refusal"])?,
    }
    for call in calls.into_iter().flatten() {
        let call = object(call)?;
        let kind = text(call, "type")?;
        members(call, &["id", "type", kind, "extra_content", "thought_signature"])?;
        let id = text(call, "id")?;
        ensure!(!id.is_empty() && id.chars().count() <= 40, "id {id:?}");
        ensure!(open.insert(id.to_owned()), "id {id:?} twice in one message");
        let input = match kind {
            "function" => "arguments",
            "custom" => "input",
            other => return Err(format!("a call of type {other:?}")),
        };
        let inner = object(&call[kind])?;
        members(inner, &["name", input])?;
        ensure!(is_name(text(inner, "name")?, 64), "name {:?}", inner["name"]);
        text(inner, input)?;
    }
    if let Some(call) = legacy {
        members(call, &["name", "arguments"])?;
        ensure!(is_name(text(call, "name")?, 64), "name {:?}", call["name"]);
        text(call, "arguments")?;
        *function = Some(text(call, "name")?.to_owned());
    }
    Ok(())
}

fn chat_content(content: Option<&Value>, kinds: &[&str]) -> Verdict {
    match content {
        Some(Value::String(content)) => {
            ensure!(!content.is_empty(), "empty content");
            Ok(())
        }
        Some(Value::Array(parts)) => {
            ensure!(!parts.is_empty(), "an empty list as content");
            for part in parts {
                let part = object(part)?;
                let kind = text(part, "type")?;
                ensure!(kinds.contains(&kind), "a part of type {kind:?}");
                members(part, &["type", kind])?;
                match kind {
                    "text" | "refusal" => ensure!(!text(part, kind)?.is_empty(), "empty text"),
                    "image_url" => {
                        let image = object(&part[kind])?;
                        members(image, &["url", "detail"])?;
                        let url = text(image, "url")?;
                        ensure!(
                            url.starts_with("data:image/") || url.contains("://"),
                            "url {url:.40?}"
                        );
                    }
                    _ => {
                        object(&part[kind])?;
                    }
                }
            }
            Ok(())
        }
        content => Err(format!("content {content:?}")),
    }
}

/// `input` items of OpenAI's Responses.
///
/// # Errors
///
/// The first rule that the request breaks, and where.
pub fn responses(value: &Value) -> Verdict {
    let items = list(value)?;
    let mut ids = HashSet::new();
    // Open calls with their kind, and whether anything came after the agent's last item.
    let mut open: Vec<(String, String)> = Vec::new();
    let mut answered = false;
    for (index, item) in items.iter().enumerate() {
        let next = items.get(index + 1);
        at(index, responses_item(item, next, &mut ids, &mut open, &mut answered))?;
    }
    Ok(())
}

fn is_of_agent(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call") || kind == "reasoning")
        || item["role"] == "assistant"
}

fn responses_item(
    value: &Value,
    next: Option<&Value>,
    ids: &mut HashSet<String>,
    open: &mut Vec<(String, String)>,
    answered: &mut bool,
) -> Verdict {
    let item = object(value)?;
    let kind = text(item, "type")?;
    if matches!(kind, "compaction" | "mcp_list_tools") {
        return Ok(());
    }
    let is_output = kind.ends_with("_output");
    if is_of_agent(value) {
        ensure!(open.is_empty() || !*answered, "calls {open:?} have no result");
        *answered = false;
    } else {
        ensure!(is_output || open.is_empty(), "calls {open:?} have no result");
        *answered = true;
    }
    match kind {
        "message" if item.get("role").is_some_and(|role| role == "assistant") => {
            responses_said(item, ids)
        }
        "message" => {
            members(item, &["type", "role", "content"])?;
            let kinds: &[&str] = match text(item, "role")? {
                "user" => &["input_text", "input_image"],
                "system" | "developer" => &["input_text"],
                other => return Err(format!("role {other:?}")),
            };
            responses_content(item.get("content"), kinds, false)
        }
        "function_call" | "custom_tool_call" => {
            let input = if kind == "function_call" { "arguments" } else { "input" };
            members(item, &["type", "call_id", "name", input])?;
            let id = text(item, "call_id")?;
            ensure!(!id.is_empty() && id.chars().count() <= 64, "id {id:?}");
            ensure!(ids.insert(id.to_owned()), "id {id:?} twice");
            ensure!(is_name(text(item, "name")?, 64), "name {:?}", item["name"]);
            text(item, input)?;
            open.push((id.to_owned(), kind.to_owned()));
            Ok(())
        }
        "function_call_output" | "custom_tool_call_output" => {
            members(item, &["type", "call_id", "output"])?;
            let id = text(item, "call_id")?;
            let at = open.iter().position(|(open, _)| open == id);
            let Some(at) = at else { return Err(format!("{id:?} is no open call")) };
            let (_, call) = open.remove(at);
            ensure!(kind == format!("{call}_output"), "{kind} answers {call}");
            responses_content(item.get("output"), &["input_text", "input_image"], true)
        }
        "reasoning" => {
            members(item, &["type", "id", "summary", "content", "encrypted_content"])?;
            ensure!(!text(item, "id")?.is_empty(), "reasoning without an id");
            list(&item["summary"])?;
            ensure!(!text(item, "encrypted_content")?.is_empty(), "nothing encrypted");
            ensure!(next.is_some_and(is_of_agent), "reasoning without what followed");
            Ok(())
        }
        "web_search_call" | "file_search_call" => {
            let asked = if kind == "web_search_call" { "action" } else { "queries" };
            members(item, &["type", "id", "status", "results", asked])?;
            ensure!(!text(item, "id")?.is_empty(), "a call without an id");
            text(item, "status")?;
            ensure!(item.contains_key(asked), "a call without {asked}");
            Ok(())
        }
        other => Err(format!("an item of type {other:?}")),
    }
}

/// A message of the agent: as the item that it was, with its id and status, or in the plain form.
fn responses_said(item: &Map<String, Value>, ids: &mut HashSet<String>) -> Verdict {
    let is_plain = item["content"].is_string();
    let own: &[&str] = if is_plain { &[] } else { &["id", "status"] };
    members(item, &[&["type", "role", "content", "phase"], own].concat())?;
    if !is_plain {
        let id = text(item, "id")?;
        ensure!(!id.is_empty() && ids.insert(format!("message {id}")), "id {id:?}");
        let status = text(item, "status")?;
        ensure!(["in_progress", "completed", "incomplete"].contains(&status), "status {status:?}");
    }
    responses_content(item.get("content"), &["output_text"], false)
}

fn responses_content(content: Option<&Value>, kinds: &[&str], may_be_empty: bool) -> Verdict {
    match content {
        Some(Value::String(content)) => {
            ensure!(may_be_empty || !content.is_empty(), "empty content");
            Ok(())
        }
        Some(Value::Array(parts)) => {
            ensure!(!parts.is_empty(), "an empty list as content");
            for part in parts {
                let part = object(part)?;
                let kind = text(part, "type")?;
                ensure!(kinds.contains(&kind), "a part of type {kind:?}");
                match kind {
                    "input_image" => {
                        members(part, &["type", "image_url", "detail"])?;
                        let url = text(part, "image_url")?;
                        ensure!(
                            url.starts_with("data:image/") || url.contains("://"),
                            "url {url:.40?}"
                        );
                        let detail = text(part, "detail")?;
                        ensure!(["auto", "low", "high", "original"].contains(&detail), "{detail}");
                    }
                    "output_text" => {
                        members(part, &["type", "text", "annotations"])?;
                        list(&part["annotations"])?;
                        ensure!(!text(part, "text")?.is_empty(), "empty text");
                    }
                    _ => {
                        members(part, &["type", "text"])?;
                        ensure!(!text(part, "text")?.is_empty(), "empty text");
                    }
                }
            }
            Ok(())
        }
        content => Err(format!("content {content:?}")),
    }
}

/// `{"systemInstruction": …, "contents": […]}` of Gemini.
///
/// # Errors
///
/// The first rule that the request breaks, and where.
pub fn gemini(value: &Value) -> Verdict {
    let request = object(value)?;
    members(request, &["systemInstruction", "contents"])?;
    if let Some(system) = request.get("systemInstruction") {
        let system = object(system)?;
        members(system, &["parts"])?;
        for part in list(&system["parts"])? {
            members(object(part)?, &["text"])?;
        }
    }
    // The names of the calls of the content before, which the next one answers, all of them.
    let mut open: Vec<String> = Vec::new();
    let contents = list(&request["contents"])?;
    for (index, content) in contents.iter().enumerate() {
        let content = at(index, object(content))?;
        members(content, &["role", "parts"])?;
        let role = text(content, "role")?;
        ensure!(role == "user" || role == "model" && index > 0, "[{index}]: {role:?}");
        let parts = list(&content["parts"])?;
        ensure!(!parts.is_empty(), "[{index}]: no parts");
        let names = |key: &str| -> Vec<String> {
            let named = parts.iter().filter_map(|part| part[key]["name"].as_str());
            named.map(str::to_owned).collect()
        };
        let (mut calls, mut results) = (names("functionCall"), names("functionResponse"));
        let is_results = !results.is_empty();
        open.sort();
        results.sort();
        // At the end calls may be open, in a context that is looked at.
        let is_last = index + 1 == contents.len();
        let is_begun = is_last && is_results && results.iter().all(|name| open.contains(name));
        ensure!(results == open || is_begun, "[{index}]: {results:?} answer {open:?}");
        ensure!(!is_results || results.len() == parts.len(), "[{index}]: results among others");
        ensure!(calls.is_empty() || role == "model", "[{index}]: the user calls");
        open = std::mem::take(&mut calls);
        for part in parts {
            at(index, gemini_part(object(part)?, role))?;
        }
    }
    Ok(())
}

fn gemini_part(part: &Map<String, Value>, role: &str) -> Verdict {
    let kinds = [
        "text",
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
    ];
    let data = kinds.iter().filter(|kind| part.contains_key(**kind)).count();
    ensure!(data == 1, "{data} kinds of data in a part");
    members(part, &[&kinds[..], &["thought", "thoughtSignature"]].concat())?;
    ensure!(role == "model" || part.len() == 1, "the user thinks");
    if let Some(call) = part.get("functionCall") {
        let call = object(call)?;
        members(call, &["id", "name", "args"])?;
        object(&call["args"])?;
    }
    if let Some(result) = part.get("functionResponse") {
        let result = object(result)?;
        members(result, &["id", "name", "response", "parts"])?;
        object(&result["response"])?;
    }
    Ok(())
}

/// `{"system": …, "messages": […]}` of Anthropic's Messages.
///
/// # Errors
///
/// The first rule that the request breaks, and where.
pub fn anthropic(value: &Value) -> Verdict {
    let request = object(value)?;
    members(request, &["system", "messages"])?;
    let mut marks = 0;
    match request.get("system") {
        None => {}
        Some(Value::String(system)) => ensure!(!system.trim().is_empty(), "a blank system prompt"),
        Some(system) => {
            let blocks = list(system)?;
            ensure!(!blocks.is_empty(), "system is an empty list");
            for block in blocks {
                let block = object(block)?;
                ensure!(text(block, "type")? == "text", "system holds {block:?}");
                anthropic_block(block, "system", &mut marks)?;
            }
        }
    }
    let messages = list(&request["messages"])?;
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut last_role = "";
    for (index, message) in messages.iter().enumerate() {
        let is_last = index + 1 == messages.len();
        let message = at(index, object(message))?;
        members(message, &["role", "content"])?;
        let role = text(message, "role")?;
        let follows = match role {
            "user" => last_role.is_empty() || last_role == "assistant",
            "assistant" => last_role == "user" || last_role == "system",
            "system" => last_role == "user",
            _ => false,
        };
        ensure!(follows, "[{index}]: {role:?} after {last_role:?}");
        let verdict = anthropic_message(message, role, is_last, &mut ids, &mut open, &mut marks);
        at(index, verdict)?;
        last_role = role;
    }
    ensure!(marks <= 4, "{marks} breakpoints");
    Ok(())
}

fn anthropic_message(
    message: &Map<String, Value>,
    role: &str,
    is_last: bool,
    ids: &mut HashSet<String>,
    open: &mut Vec<String>,
    marks: &mut usize,
) -> Verdict {
    let blocks = match &message["content"] {
        Value::String(content) => {
            ensure!(!content.trim().is_empty(), "blank content");
            ensure!(open.is_empty(), "calls {open:?} have no result");
            ensure!(
                !is_last || role != "assistant" || content.trim_end() == content,
                "white space at the end"
            );
            return Ok(());
        }
        content => list(content)?,
    };
    ensure!(!blocks.is_empty(), "an empty list as content");
    let mut servers: Vec<String> = Vec::new();
    let mut results_ended = false;
    for block in blocks {
        let block = object(block)?;
        anthropic_block(block, role, marks)?;
        let kind = text(block, "type")?;
        let is_use = matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use");
        if is_use {
            let id = text(block, "id")?;
            ensure!(is_name(id, 64), "id {id:?}");
            ensure!(ids.insert(id.to_owned()), "id {id:?} twice");
            let waiting = if kind == "tool_use" { &mut *open } else { &mut servers };
            waiting.push(id.to_owned());
        } else if kind.ends_with("tool_result") {
            let id = text(block, "tool_use_id")?;
            let waiting = if kind == "tool_result" { &mut *open } else { &mut servers };
            let at = waiting.iter().position(|open| open == id);
            let Some(at) = at else { return Err(format!("{id:?} is no open call")) };
            waiting.remove(at);
            ensure!(kind != "tool_result" || !results_ended, "a result after other blocks");
        }
        results_ended |= kind != "tool_result";
    }
    ensure!(
        role == "assistant" || open.is_empty() || is_last && !results_ended,
        "no result for {open:?}"
    );
    ensure!(servers.is_empty() || is_last, "no result for {servers:?}");
    let last = object(&blocks[blocks.len() - 1])?;
    let kind = text(last, "type")?;
    if role == "assistant" {
        ensure!(!kind.ends_with("thinking"), "an agent's message ends in {kind}");
        if is_last && kind == "text" {
            let text = text(last, "text")?;
            ensure!(text.trim_end() == text, "white space at the end");
        }
    }
    Ok(())
}

fn anthropic_block(block: &Map<String, Value>, role: &str, marks: &mut usize) -> Verdict {
    let kind = text(block, "type")?;
    if let Some(mark) = block.get("cache_control") {
        *marks += 1;
        ensure!(mark["type"] == "ephemeral", "cache_control {mark}");
        ensure!(!kind.ends_with("thinking"), "a breakpoint on {kind}");
    }
    let known = match (role, kind) {
        (_, "text") => {
            members(block, &["type", "text", "citations", "cache_control"])?;
            ensure!(!text(block, "text")?.trim().is_empty(), "blank text");
            true
        }
        ("user", "image") => {
            members(block, &["type", "source", "cache_control"])?;
            let source = object(&block["source"])?;
            match text(source, "type")? {
                "base64" => {
                    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                    let kind = text(source, "media_type")?;
                    ensure!(kinds.contains(&kind), "media type {kind:?}");
                    ensure!(!text(source, "data")?.is_empty(), "no data");
                }
                "url" => ensure!(text(source, "url")?.contains("://"), "no address"),
                "file" => {
                    text(source, "file_id")?;
                }
                other => return Err(format!("a source of type {other:?}")),
            }
            true
        }
        ("user", "tool_result") => {
            let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
            members(block, &known)?;
            ensure!(block.get("is_error").is_none_or(Value::is_boolean), "is_error");
            match block.get("content") {
                None | Some(Value::String(_)) => {}
                Some(content) => {
                    for inside in list(content)? {
                        let inside = object(inside)?;
                        let kinds =
                            ["text", "image", "search_result", "document", "tool_reference"];
                        let kind = text(inside, "type")?;
                        ensure!(kinds.contains(&kind), "{kind} in a result");
                        anthropic_block(inside, "user", marks)?;
                    }
                }
            }
            true
        }
        ("assistant", "tool_use" | "server_tool_use" | "mcp_tool_use") => {
            let known = ["type", "id", "name", "input", "caller", "server_name", "cache_control"];
            members(block, &known)?;
            ensure!(is_name(text(block, "name")?, 128), "name {:?}", block["name"]);
            object(&block["input"])?;
            true
        }
        ("assistant", "thinking") => {
            members(block, &["type", "thinking", "signature"])?;
            text(block, "thinking")?;
            !text(block, "signature")?.is_empty()
        }
        ("assistant", "redacted_thinking") => {
            members(block, &["type", "data"])?;
            !text(block, "data")?.is_empty()
        }
        ("assistant", "compaction") => true,
        ("assistant", kind) if kind.ends_with("_tool_result") => {
            let known = ["type", "tool_use_id", "content", "caller", "is_error", "cache_control"];
            members(block, &known)?;
            for inside in block.get("content").and_then(Value::as_array).into_iter().flatten() {
                let kind = inside["type"].as_str().unwrap_or_default();
                let ends = ["tool_use", "tool_result", "thinking", "compaction"];
                ensure!(!ends.iter().any(|end| kind.ends_with(end)), "{kind} in a result");
            }
            block.contains_key("content")
        }
        ("user", "document" | "search_result" | "container_upload" | "tool_reference")
        | ("assistant", "container_upload")
        | ("system", "tool_addition" | "tool_removal") => true,
        _ => false,
    };
    ensure!(known, "{kind} in a message of {role}");
    Ok(())
}
