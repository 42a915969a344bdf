//! A span as a request to a model and what came back.

use super::{any_value::structured, message::SpanMessage, older, span::SpanRecord, vercel};
use crate::{
    json::{MAX_DEPTH, Object, ObjectExt, Value, object},
    transcript::{
        Api, Exchange, Usage, body::Payload, exchange::model_named, interaction::Interaction,
        times::rfc3339,
    },
};

/// What a span is.
pub(super) enum Call {
    /// A request with its messages.
    Exchange(Box<Interaction>),
    /// A call of a model of which no messages were kept.
    Unlisted(Box<Exchange>),
    /// Another operation, by its name.
    Other(String),
}

/// Operations that call a model and get messages.
const INFERENCES: [&str; 6] =
    ["chat", "text_completion", "generate_content", "completion", "responses", "llm"];
/// Operations that never are the call itself, though they may hold its messages.
const OTHERS: [&str; 14] = [
    "agent",
    "chain",
    "create_agent",
    "embedding",
    "embeddings",
    "execute_tool",
    "invoke_agent",
    "invoke_workflow",
    "plan",
    "rerank",
    "retrieval",
    "task",
    "tool",
    "workflow",
];

impl SpanRecord {
    pub(super) fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.attributes.get(key)?.as_str())
    }

    /// Gives a span of afterimage's that holds only what is new the rest of its request, from that
    /// of the span before in its conversation; that of this span is known then.
    pub(super) fn complete(&mut self, known: &mut Object, notes: &mut Vec<String>) {
        const NUMBER: &str = "afterimage.request.number";
        const PARTS: [&str; 3] =
            ["gen_ai.input.messages", "gen_ai.tool.definitions", "gen_ai.system_instructions"];
        let figure = |key: &str| self.attributes.get(key).and_then(Value::as_u64);
        let Some(same) = figure("afterimage.request.messages_before") else { return };
        let from = figure("afterimage.request.goes_on_from").filter(|from| *from > 0);
        if from != known.get(NUMBER).and_then(Value::as_u64) {
            let number = from.unwrap_or_default();
            notes
                .push(format!("the span of request {number} is missing: this one goes on from it"));
        }
        let [input, tools, system] = PARTS;
        let list = |of: &Object| match of.get(input).map(structured) {
            Some(Ok(Value::Array(list))) => list,
            _ => Vec::new(),
        };
        let before = list(known).into_iter().take(usize::try_from(same).unwrap_or(usize::MAX));
        let all: Value = before.chain(list(&self.attributes)).collect();
        self.attributes.put(input, all);
        for (key, same) in
            [(tools, "afterimage.request.same_tools"), (system, "afterimage.request.same_system")]
        {
            if self.attributes.get(same) == Some(&Value::Bool(true)) {
                self.attributes.put_some(key, known.get(key).cloned());
            }
        }
        let parts = PARTS.into_iter().chain([NUMBER]);
        *known = parts
            .filter_map(|key| Some((key.to_owned(), self.attributes.get(key)?.clone())))
            .collect();
    }

    /// The conversation that the span names.
    pub(super) fn conversation(&self) -> Option<&str> {
        let keys = [
            "gen_ai.conversation.id",
            "session.id",
            "traceloop.association.properties.session_id",
            "ai.telemetry.metadata.sessionId",
        ];
        self.text(&keys).filter(|id| !id.is_empty())
    }

    /// The name of the operation, in small letters.
    fn operation(&self) -> Option<String> {
        if let Some(is_call) = vercel::is_call(&self.attributes) {
            // What holds a call says it again.
            return Some(if is_call { "chat" } else { "chain" }.to_owned());
        }
        let keys = [
            "gen_ai.operation.name",
            "llm.request.type",
            "openinference.span.kind",
            "traceloop.span.kind",
        ];
        self.text(&keys).map(str::to_ascii_lowercase)
    }

    /// Whether it calls a model: by its operation, or else by the usage that it states.
    pub(super) fn is_call(&self) -> bool {
        match self.operation() {
            Some(operation) => INFERENCES.contains(&&*operation),
            None => self.usage().is_some(),
        }
    }

    fn model(&self) -> Option<&str> {
        let keys = [
            "gen_ai.request.model",
            "gen_ai.response.model",
            "llm.request.model",
            "llm.model_name",
            "ai.model.id",
        ];
        self.text(&keys)
    }

    /// The API whose form the request is written in.
    fn api(&self) -> Api {
        let keys = ["gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"];
        let provider = self.text(&keys).unwrap_or_default().to_ascii_lowercase();
        let hosts_several = ["bedrock", "vertex"].iter().any(|host| provider.contains(host));
        let is_claude = self.model().is_some_and(|model| model.contains("claude"));
        let is_messages = provider == "anthropic" || hosts_several && is_claude;
        if is_messages { Api::Messages } else { Api::Chat }
    }

    /// What is wrong with the call.
    fn failure(&self) -> Option<String> {
        let kind = self.text(&["error.type"]);
        if let (true, Some(reason)) = (self.is_own, &self.failure) {
            return Some(reason.clone());
        }
        match (kind, self.failure.as_deref()) {
            (Some(kind), Some("an error") | None) => Some(format!("error {kind}")),
            (Some(kind), Some(message)) => Some(format!("error {kind}: {message}")),
            (None, message) => message.map(str::to_owned),
        }
    }

    /// What the span is. Notes are what was cut, and what has another shape.
    pub(super) fn into_call(self, notes: &mut Vec<String>) -> Call {
        let operation = self.operation();
        let named = operation.as_deref().unwrap_or_default();
        if OTHERS.contains(&named) {
            return Call::Other(named.to_owned());
        }
        let input = self.input(notes);
        let usage = self.usage();
        let is_inference = INFERENCES.contains(&named) || operation.is_none();
        let has_messages =
            input.as_ref().is_some_and(|input| input.iter().any(SpanMessage::says_something));
        if !has_messages {
            let usage = usage.as_ref().and_then(Usage::of).filter(|_| is_inference);
            return match usage {
                Some(usage) => Call::Unlisted(Box::new(Exchange {
                    model: self.model().and_then(model_named),
                    usage: Some(usage),
                    time: self.started(),
                    failure: self.failure(),
                    is_unlisted: true,
                    ..Exchange::default()
                })),
                None if is_inference => Call::Other("call without messages and usage".to_owned()),
                None => Call::Other(named.to_owned()),
            };
        }
        let api = self.api();
        let mut request = self.request(api, input.unwrap_or_default(), notes);
        shorten(&mut request, "request", notes);
        let output = self.output(notes);
        let failure = self.failure();
        let has_answer = !output.is_empty() || usage.is_some() || self.end.is_some();
        let response = match (failure.is_some() && output.is_empty(), has_answer) {
            (true, _) | (_, false) => Payload::Absent,
            _ => {
                let mut response = self.response(api, output, usage.as_ref());
                shorten(&mut response, "response", notes);
                Payload::Json(response)
            }
        };
        let status = self.text(&["error.type"]).and_then(|kind| kind.parse().ok());
        Call::Exchange(Box::new(Interaction {
            uri: if api == Api::Messages { "/messages" } else { "/chat/completions" }.to_owned(),
            request: Payload::Json(request),
            response,
            status,
            started: self.started(),
            duration_ms: self.duration(),
            failure,
            line: self.line,
            usage,
            is_logged: true,
            ..Interaction::default()
        }))
    }

    /// Whether afterimage made up the times, since its source had none.
    fn has_made_up_time(&self) -> bool {
        let of = self.text(&["afterimage.time"]).filter(|_| self.is_own);
        of.is_some_and(|time| matches!(time, "neighbour" | "order"))
    }

    /// How long the call took, in milliseconds.
    fn duration(&self) -> Option<u64> {
        let has_end = self.text(&["afterimage.time"]).filter(|_| self.is_own) != Some("start");
        let duration = self.end?.checked_sub(self.start?)?;
        (has_end && !self.has_made_up_time()).then_some(duration / 1_000_000)
    }

    fn started(&self) -> Option<String> {
        self.start.filter(|_| !self.has_made_up_time()).map(rfc3339)
    }

    /// The messages of the request; `None` where they were cut, or are no list.
    pub(super) fn input(&self, notes: &mut Vec<String>) -> Option<Vec<SpanMessage>> {
        const INPUT: &str = "gen_ai.input.messages";
        if let Some(value) = self.attributes.get(INPUT) {
            let list = list(INPUT, value, notes)?;
            return Some(messages(INPUT, list, notes));
        }
        let mut found = older::numbered(&self.attributes, "gen_ai.prompt", "user");
        if found.is_empty() {
            found = older::numbered(&self.attributes, "llm.input_messages", "user");
        }
        if found.is_empty() {
            found = vercel::input(&self.attributes);
        }
        if found.is_empty() {
            found = older::events_in(&self.events);
        }
        if found.is_empty() {
            found = older::listed(&self.attributes, "gen_ai.prompt", "user");
        }
        Some(found)
    }

    /// The messages of the response: one for each choice.
    fn output(&self, notes: &mut Vec<String>) -> Vec<SpanMessage> {
        const OUTPUT: &str = "gen_ai.output.messages";
        if let Some(value) = self.attributes.get(OUTPUT) {
            let list = list(OUTPUT, value, notes).unwrap_or_default();
            return messages(OUTPUT, list, notes);
        }
        let mut found = older::numbered(&self.attributes, "gen_ai.completion", "assistant");
        if found.is_empty() {
            found = older::numbered(&self.attributes, "llm.output_messages", "assistant");
        }
        if found.is_empty() {
            found = vercel::output(&self.attributes);
        }
        if found.is_empty() {
            found = older::events_out(&self.events);
        }
        if found.is_empty() {
            found = older::listed(&self.attributes, "gen_ai.completion", "assistant");
        }
        found
    }

    fn request(&self, api: Api, input: Vec<SpanMessage>, notes: &mut Vec<String>) -> Value {
        const SYSTEM: &str = "gen_ai.system_instructions";
        let mut body = Object::new();
        body.put_some("model", self.model());
        self.put_parameters(api, &mut body);
        let tools = self.tools(api, notes);
        if !tools.is_empty() {
            body.put("tools", tools);
        }
        match self.attributes.get(SYSTEM).map(structured) {
            Some(Ok(Value::Null)) | None => {}
            Some(Ok(instructions)) => {
                body.put("system", SpanMessage::of_instructions(instructions).into_system());
            }
            // Some write the bare text.
            Some(Err(text)) if !text.trim_start().starts_with(['[', '{']) => {
                body.put("system", text);
            }
            Some(Err(text)) => notes.push(cut(SYSTEM, text)),
        }
        // The API has no instructions among its first messages.
        let leading = input.iter().take_while(|said| said.is_system()).count();
        let mut input = input.into_iter();
        if api == Api::Messages && leading > 0 && !body.contains_key("system") {
            let mut instructions = input.by_ref().take(leading);
            if let Some(first) = instructions.next() {
                let mut all = first;
                instructions.for_each(|said| all.append(said));
                body.put("system", all.into_system());
            }
        }
        let messages: Vec<Value> = input.flat_map(|said| said.into_api(api)).collect();
        body.put("messages", messages);
        body.into()
    }

    /// The parameters, by the names of the API.
    fn put_parameters(&self, api: Api, body: &mut Object) {
        if let Some(Ok(Value::Object(all))) =
            self.attributes.get("llm.invocation_parameters").map(structured)
        {
            let is_parameter =
                |key: &str| !["model", "messages", "tools", "system", "input"].contains(&key);
            all.into_iter().filter(|(key, _)| is_parameter(key)).for_each(|(key, value)| {
                body.insert(key, value);
            });
        }
        // What the conventions have no names for.
        if let Some(Ok(Value::Object(rest))) =
            self.attributes.get("afterimage.request.parameters").map(structured)
        {
            body.extend(rest);
        }
        for (key, value) in &self.attributes {
            let name = key
                .strip_prefix("gen_ai.request.")
                .or_else(|| key.strip_prefix("gen_ai.openai.request."));
            let Some(name) = name.filter(|name| *name != "model") else { continue };
            let name = match (name, api) {
                ("choice.count", _) => "n",
                ("stop_sequences", Api::Chat) => "stop",
                ("encoding_formats", _) => continue,
                (name, _) if name.contains('.') => continue,
                (name, _) => name,
            };
            body.put(name, value.clone());
        }
    }

    /// The tools in the form of the API.
    fn tools(&self, api: Api, notes: &mut Vec<String>) -> Vec<Value> {
        const TOOLS: &str = "gen_ai.tool.definitions";
        let defined = match self.attributes.get(TOOLS) {
            Some(value) => list(TOOLS, value, notes).unwrap_or_default(),
            None if self.attributes.contains_key("ai.prompt.tools") => {
                vercel::tools(&self.attributes)
            }
            None => older::tools(&self.attributes),
        };
        defined.into_iter().map(|tool| in_form(tool, api)).collect()
    }

    fn response(&self, api: Api, output: Vec<SpanMessage>, usage: Option<&Value>) -> Value {
        let reasons = self.attributes.get("gen_ai.response.finish_reasons");
        let reasons = reasons.or_else(|| self.attributes.get("ai.response.finishReason"));
        let reason = |index: usize| match reasons {
            Some(Value::Array(list)) => list.get(index).cloned(),
            other => other.cloned(),
        };
        let mut body = Object::new();
        body.put_some(
            "id",
            self.text(&["gen_ai.response.id", "llm.response.id", "ai.response.id"]),
        );
        body.put_some("model", self.text(&["gen_ai.response.model", "llm.response.model"]));
        if api == Api::Messages {
            body.put("type", "message");
            let mut blocks = Vec::new();
            let (mut role, mut output) = ("assistant".to_owned(), output.into_iter());
            if let Some(Value::Object(mut message)) =
                output.next().and_then(|said| said.into_api(api).into_iter().next())
            {
                if let Some(Value::String(own)) = message.shift_remove("role") {
                    role = own;
                }
                match message.shift_remove("content") {
                    Some(Value::Array(list)) => blocks = list,
                    Some(Value::String(text)) => {
                        blocks.push(object! { "type": "text", "text": text }.into());
                    }
                    _ => {}
                }
            }
            body.put("role", role);
            body.put("content", blocks);
            body.put_some("stop_reason", reason(0));
        } else {
            let choice = |(index, message): (usize, Value)| {
                let mut choice = object! { "index": index, "message": message };
                choice.put_some("finish_reason", reason(index));
                Value::Object(choice)
            };
            let messages =
                output.into_iter().filter_map(|said| said.into_api(api).into_iter().next());
            body.put("choices", messages.enumerate().map(choice).collect::<Value>());
        }
        body.put_some("usage", usage.cloned());
        body.into()
    }
}

/// The list that an attribute holds. What was cut, or is something else, is noted.
fn list(key: &str, value: &Value, notes: &mut Vec<String>) -> Option<Vec<Value>> {
    match structured(value) {
        Ok(Value::Array(list)) => return Some(list),
        Ok(Value::Null) => {}
        Ok(other) => notes.push(format!("{key} is {}, not an array: left out", other.kind())),
        Err(text) => notes.push(cut(key, text)),
    }
    None
}

/// The messages in a list. What is none is kept as it is, and noted.
fn messages(key: &str, list: Vec<Value>, notes: &mut Vec<String>) -> Vec<SpanMessage> {
    let message = |value: Value| {
        SpanMessage::of_message(value.clone()).unwrap_or_else(|| {
            notes.push(format!("{key} holds {} without a role or parts", value.kind()));
            SpanMessage::of_other(value)
        })
    };
    list.into_iter().map(message).collect()
}

/// What is noted of a text that is no whole JSON.
fn cut(key: &str, text: &str) -> String {
    format!(
        "{key} is no whole JSON: it ends after {} characters, as where a limit cut it",
        text.chars().count()
    )
}

/// Makes a body one that is read again. The form of an API puts a value some levels deeper than the
/// attribute that held it.
fn shorten(body: &mut Value, name: &str, notes: &mut Vec<String>) {
    if flatten_below(body, MAX_DEPTH) {
        notes.push(format!(
            "the {name} nests deeper than {MAX_DEPTH} levels: what is deeper is kept as JSON text"
        ));
    }
}

/// Makes the lists and objects below so many levels strings: their JSON text. Says whether there
/// were any.
fn flatten_below(value: &mut Value, levels: usize) -> bool {
    let is_nest = matches!(value, Value::Array(_) | Value::Object(_));
    let Some(next) = levels.checked_sub(1) else {
        if is_nest {
            *value = Value::String(value.to_string());
        }
        return is_nest;
    };
    let mut is_deeper = false;
    let mut flatten = |value: &mut Value| is_deeper |= flatten_below(value, next);
    match value {
        Value::Array(list) => list.iter_mut().for_each(&mut flatten),
        Value::Object(object) => object.values_mut().for_each(&mut flatten),
        _ => {}
    }
    is_deeper
}

/// A definition of the conventions in the form of the API; one in a provider's form stays.
fn in_form(tool: Value, api: Api) -> Value {
    let Value::Object(mut definition) = tool else { return tool };
    let is_function = definition.get("type").is_none_or(|kind| kind.as_str() == Some("function"));
    let is_known = definition.get("name").is_some() && !definition.contains_key("input_schema");
    if !is_function || !is_known {
        return definition.into();
    }
    definition.shift_remove("type");
    if api == Api::Messages {
        if let Some(parameters) = definition.shift_remove("parameters") {
            definition.put("input_schema", parameters);
        }
        return definition.into();
    }
    object! { "type": "function", "function": definition }.into()
}
