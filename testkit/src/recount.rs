//! Counts a transcript a second time, sharing no code with the readers.
//!
//! The rules are those of `docs/transcripts.md`; everything here is the shortest way to a
//! number over plain [`serde_json::Value`]s. The shape of a file is told from its content.

#![allow(clippy::indexing_slicing, reason = "a JSON value gives null for a key that it lacks")]

use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// What one transcript file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub messages: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
}

/// Counts the messages, calls and results of the file at `path`.
///
/// # Panics
///
/// If the file cannot be read, is not JSON or JSONL, or has no known shape.
pub fn recount(path: &Path) -> Counts {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut counts = Counts::default();
    // A JSONL file of one line is also a JSON document, hence the second chance.
    let known = match serde_json::from_str(&text) {
        Ok(document) => counts.document(&document) || counts.records(&[document]),
        Err(_) => counts.records(&parse_lines(&text, path)),
    };
    assert!(known, "{} has no shape that recount knows", path.display());
    counts
}

fn parse_lines(text: &str, path: &Path) -> Vec<Value> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(index, line): (usize, &str)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), index + 1))
    };
    lines.map(parse).collect()
}

impl Counts {
    /// Counts one JSON document; false if its shape is not known.
    fn document(&mut self, document: &Value) -> bool {
        if let Some(exchanges) = document["interactions"].as_array() {
            self.exchanges(exchanges);
        } else if let Some(records) = document["loglines"].as_array() {
            self.claude_code(records);
        } else if let Some(samples) = document["samples"].as_array() {
            for sample in samples {
                self.chat(list(&sample["messages"]));
            }
        } else if let Some(states) = document["answer_generation"]["train_messages"].as_array() {
            // `max_by_key` gives the last of several that are longest.
            let longest = states.iter().max_by_key(|state| list(state).len());
            self.chat(longest.map_or(&[], list));
        } else if is_gemini_cli(document) {
            self.gemini_cli(list(&document["messages"]));
        } else if let Some(messages) = document["history"].as_array() {
            self.chat(messages);
        } else if let Some(messages) = document["messages"].as_array() {
            self.chat(messages);
        } else if let Some(elements) = document.as_array() {
            if elements.iter().any(|element| element["traj"].is_array()) {
                for element in elements {
                    self.chat(list(&element["traj"]));
                }
            } else if elements.iter().any(|element| element["source"].is_string()) {
                self.openhands(elements);
            } else {
                self.chat(elements);
            }
        } else {
            return false;
        }
        true
    }

    /// Counts the records of a JSONL file; false if their shape is not known.
    fn records(&mut self, records: &[Value]) -> bool {
        let any = |test: fn(&Value) -> bool| records.iter().any(test);
        if any(|record| record["payload"].is_object())
            || any(|record| record["record_type"].is_string())
            || any(|record| kind(record) == "message" && record["role"].is_string())
        {
            self.codex(records);
        } else if any(|record| kind(record) == "message" && record["message"].is_object()) {
            self.pi(records);
        } else if any(|record| record["protocol_version"].is_string()) {
            self.kimi(records);
        } else if any(|record| kind(record).contains('.') && record["data"].is_object()) {
            self.copilot(records);
        } else if any(|record| record["projectHash"].is_string()) {
            self.gemini_cli(records);
        } else if any(|record| record["history"].is_array()) {
            for record in records {
                self.openhands(list(&record["history"]));
            }
        } else if any(|record| ["user", "assistant"].contains(&kind(record))) {
            self.claude_code(records);
        } else {
            return false;
        }
        true
    }

    fn chat(&mut self, messages: &[Value]) {
        for message in messages {
            self.message(message);
        }
    }

    /// Counts one chat message, of either provider's style.
    fn message(&mut self, message: &Value) {
        self.messages += 1;
        self.tool_calls += list(&message["tool_calls"]).len() as u64;
        self.tool_calls += u64::from(message["function_call"].is_object());
        let role = message["role"].as_str().unwrap_or_default();
        self.tool_results += u64::from(["tool", "function", "toolResult"].contains(&role));
        self.blocks(&message["content"]);
    }

    /// Counts one content of Gemini's API.
    fn content(&mut self, content: &Value) {
        self.messages += 1;
        let of =
            |key: &str| list(&content["parts"]).iter().filter(|of| of[key].is_object()).count();
        self.tool_calls += of("functionCall") as u64;
        self.tool_results += of("functionResponse") as u64;
    }

    fn blocks(&mut self, content: &Value) {
        for block in list(content) {
            match kind(block) {
                "tool_use" | "server_tool_use" | "mcp_tool_use" | "toolCall" => {
                    self.tool_calls += 1;
                }
                "tool_result" => self.tool_results += 1,
                other if other.ends_with("_tool_result") => self.tool_results += 1,
                _ => {}
            }
        }
    }

    /// Counts one item of the Responses API; `answered` are the ids of items whose outcome an
    /// earlier response gave, since a client may drop it when it sends the item back.
    fn item(&mut self, item: &Value, answered: &HashSet<&str>) {
        match kind(item) {
            "message" => self.message(item),
            "" if item["role"].is_string() => self.message(item),
            call if call.ends_with("_call") => {
                self.tool_calls += 1;
                let known = item["id"].as_str().is_some_and(|id| answered.contains(id));
                self.tool_results += u64::from(known || has_outcome(item));
            }
            output if output.ends_with("_output") => self.tool_results += 1,
            _ => {}
        }
    }

    fn claude_code(&mut self, records: &[Value]) {
        let mut ids = HashSet::new();
        for record in records {
            let message = &record["message"];
            match kind(record) {
                "user" | "assistant" if message.is_object() => {
                    let repeated = message["id"].as_str().is_some_and(|id| !ids.insert(id));
                    self.messages += u64::from(!repeated);
                    self.blocks(&message["content"]);
                }
                "tool_use" => self.tool_calls += 1,
                "tool_result" => self.tool_results += 1,
                _ => {}
            }
        }
    }

    fn pi(&mut self, records: &[Value]) {
        for record in records.iter().filter(|record| kind(record) == "message") {
            self.message(&record["message"]);
        }
    }

    fn codex(&mut self, records: &[Value]) {
        for record in records {
            match kind(record) {
                "response_item" => self.item(&record["payload"], &HashSet::new()),
                // The flat shape; an envelope's own type is never that of an item.
                _ if record["payload"].is_null() && record["type"].is_string() => {
                    self.item(record, &HashSet::new());
                }
                _ => {}
            }
        }
    }

    fn copilot(&mut self, records: &[Value]) {
        for record in records {
            match kind(record) {
                "user.message" => self.messages += 1,
                "assistant.message" => {
                    self.messages += 1;
                    self.tool_calls += list(&record["data"]["toolRequests"]).len() as u64;
                }
                "tool.execution_complete" => self.tool_results += 1,
                _ => {}
            }
        }
    }

    fn gemini_cli(&mut self, messages: &[Value]) {
        // In the JSONL form a later line replaces the one with its id: only the last counts.
        for (index, message) in messages.iter().enumerate() {
            let later = messages.iter().skip(index + 1);
            let replaced = message["id"].is_string()
                && later.clone().any(|other| other["id"] == message["id"]);
            if !["user", "gemini"].contains(&kind(message)) || replaced {
                continue;
            }
            self.messages += 1;
            let calls = list(&message["toolCalls"]);
            let results = calls.iter().filter(|call| !list(&call["result"]).is_empty());
            self.tool_calls += calls.len() as u64;
            self.tool_results += results.count() as u64;
        }
    }

    fn kimi(&mut self, records: &[Value]) {
        let mut steps = HashSet::new();
        for record in records {
            let event = &record["event"];
            match (kind(record), kind(event)) {
                ("context.append_message", _) => {
                    self.message(&record["message"]);
                    self.tool_calls += list(&record["message"]["toolCalls"]).len() as u64;
                }
                ("context.append_loop_event", "content.part" | "tool.call") => {
                    self.messages += u64::from(steps.insert(event["stepUuid"].as_str()));
                    self.tool_calls += u64::from(kind(event) == "tool.call");
                }
                ("context.append_loop_event", "tool.result") => self.tool_results += 1,
                _ => {}
            }
        }
    }

    fn openhands(&mut self, events: &[Value]) {
        let answers = |event: &Value| {
            let observation = event["observation"].as_str().unwrap_or_default();
            !["", "null", "recall", "agent_state_changed"].contains(&observation)
        };
        let causes: HashSet<_> =
            events.iter().filter(|event| answers(event)).map(|e| e["cause"].as_u64()).collect();
        let is_call = |event: &Value| {
            event["source"] == "agent"
                && event["action"].as_str().is_some_and(|a| a != "message" && a != "system")
                && (event["tool_call_metadata"].is_object()
                    || causes.contains(&event["id"].as_u64()))
        };
        let calls: HashSet<_> =
            events.iter().filter(|event| is_call(event)).map(|e| e["id"].as_u64()).collect();
        for event in events {
            match event["action"].as_str() {
                Some("message" | "system") => self.messages += 1,
                Some(_) => self.tool_calls += u64::from(is_call(event)),
                None => {
                    let answered = answers(event) && event["cause"].is_u64();
                    let result = answered && calls.contains(&event["cause"].as_u64());
                    self.tool_results += u64::from(result);
                }
            }
        }
    }

    /// Counts recorded API traffic: each conversation's last request and the reply to it.
    fn exchanges(&mut self, exchanges: &[Value]) {
        let mut conversations: Vec<Conversation> = Vec::new();
        for exchange in exchanges {
            let Some(api) = Api::of(exchange) else { continue };
            let mut messages = api.messages(&exchange["request"]);
            messages.iter_mut().for_each(forget_cache_control);
            let previous = &exchange["request"]["previous_response_id"];
            if let Some(earlier) =
                conversations.iter().find(|c| previous.is_string() && c.reply_id == *previous)
            {
                messages = [&earlier.messages[..], &earlier.reply[..], &messages[..]].concat();
            }
            // `max_by_key` gives the last, and so the most recent, of several that are longest.
            let continued = conversations
                .iter_mut()
                .filter(|conversation| conversation.is_continued_by(api, &messages))
                .max_by_key(|conversation| conversation.messages.len());
            let (reply, reply_id) = api.reply(exchange);
            match continued {
                Some(earlier) => *earlier = Conversation { api, messages, reply, reply_id },
                None => conversations.push(Conversation { api, messages, reply, reply_id }),
            }
        }

        let outputs = exchanges.iter().flat_map(|exchange| list(&exchange["response"]["output"]));
        let answered: HashSet<_> =
            outputs.filter(|item| has_outcome(item)).filter_map(|i| i["id"].as_str()).collect();
        for conversation in &conversations {
            for message in conversation.messages.iter().chain(&conversation.reply) {
                match conversation.api {
                    Api::Chat | Api::Messages => self.message(message),
                    Api::Responses => self.item(message, &answered),
                    Api::Gemini => self.content(message),
                }
            }
        }
    }
}

struct Conversation {
    api: Api,
    /// Messages or items of the last request.
    messages: Vec<Value>,
    /// Messages or items of the reply to it; empty if the request failed.
    reply: Vec<Value>,
    reply_id: Value,
}

impl Conversation {
    fn is_continued_by(&self, api: Api, messages: &[Value]) -> bool {
        self.api == api && !self.messages.is_empty() && messages.starts_with(&self.messages)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    Chat,
    Messages,
    Responses,
    Gemini,
}

impl Api {
    fn of(exchange: &Value) -> Option<Self> {
        let uri = exchange["uri"].as_str().unwrap_or_default();
        let request = &exchange["request"];
        let has_messages = request["messages"].is_array();
        if has_messages && uri.contains("/chat/completions") {
            Some(Self::Chat)
        } else if has_messages && uri.contains("/messages") {
            Some(Self::Messages)
        } else if !request["input"].is_null() && uri.contains("/responses") {
            Some(Self::Responses)
        } else if request["contents"].is_array() && uri.contains(":generateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    fn messages(self, request: &Value) -> Vec<Value> {
        match (self, &request["input"]) {
            (Self::Chat | Self::Messages, _) => list(&request["messages"]).to_vec(),
            (Self::Gemini, _) => list(&request["contents"]).to_vec(),
            (Self::Responses, Value::String(text)) => {
                vec![serde_json::json!({"role": "user", "content": text})]
            }
            (Self::Responses, items) => list(items).to_vec(),
        }
    }

    /// The messages or items of the response, and its id; nothing if the request failed.
    fn reply(self, exchange: &Value) -> (Vec<Value>, Value) {
        let status = &exchange["status"];
        let code = status.as_u64().or(status["code"].as_u64()).unwrap_or(200);
        let response = match &exchange["response"] {
            Value::String(stream) => self.joined(stream),
            other => other.clone(),
        };
        if !(200..300).contains(&code) || !response["error"].is_null() {
            return (Vec::new(), Value::Null);
        }
        let messages = match self {
            Self::Chat => vec![response["choices"][0]["message"].clone()],
            Self::Messages => vec![response.clone()],
            Self::Responses => list(&response["output"]).to_vec(),
            Self::Gemini => vec![response["candidates"][0]["content"].clone()],
        };
        (messages.into_iter().filter(Value::is_object).collect(), response["id"].clone())
    }

    /// A response that counts like the one which the stream of server-sent events spells out.
    fn joined(self, stream: &str) -> Value {
        let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
        let events: Vec<Value> = data.filter_map(|d| serde_json::from_str(d).ok()).collect();
        let named = |name: &'static str| events.iter().filter(move |event| kind(event) == name);
        match self {
            Self::Chat => {
                let deltas = events.iter().map(|event| &event["choices"][0]["delta"]);
                let pieces = deltas.flat_map(|delta| list(&delta["tool_calls"]));
                let indices: HashSet<_> = pieces.map(|piece| piece["index"].as_u64()).collect();
                let calls = vec![Value::Null; indices.len()];
                serde_json::json!({"choices": [{"message": {"tool_calls": calls}}]})
            }
            Self::Messages => {
                let blocks = named("content_block_start").map(|event| &event["content_block"]);
                serde_json::json!({"content": blocks.collect::<Vec<_>>()})
            }
            Self::Gemini => Value::Null,
            Self::Responses => named("response.completed")
                .next_back()
                .map_or(Value::Null, |e| e["response"].clone()),
        }
    }
}

fn is_gemini_cli(document: &Value) -> bool {
    document["messages"].is_array()
        && (document["projectHash"].is_string()
            || list(&document["messages"]).iter().any(|message| kind(message) == "gemini"))
}

/// True if a call item carries what came of it.
fn has_outcome(item: &Value) -> bool {
    ["output", "outputs", "results", "result", "error"].iter().any(|key| !item[key].is_null())
}

fn forget_cache_control(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("cache_control");
            map.values_mut().for_each(forget_cache_control);
        }
        Value::Array(values) => values.iter_mut().for_each(forget_cache_control),
        _ => {}
    }
}

fn kind(value: &Value) -> &str {
    value["type"].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
