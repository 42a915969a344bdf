//! The bodies of a call, as its API would have them.

use super::{
    any_value::structured,
    message::SpanMessage,
    messages::{cut, list},
    older,
    span::SpanRecord,
    vercel,
};
use crate::{
    json::{MAX_DEPTH, Object, ObjectExt, Value, object},
    transcript::Api,
};

impl SpanRecord {
    /// The body of the request, in the form of the API.
    pub(super) fn request(
        &self,
        api: Api,
        input: Vec<SpanMessage>,
        notes: &mut Vec<String>,
    ) -> Value {
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

    /// The body of the response, in the form of the API.
    pub(super) fn response(
        &self,
        api: Api,
        output: Vec<SpanMessage>,
        usage: Option<&Value>,
    ) -> Value {
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

/// Makes a body one that is read again. The form of an API puts a value some levels deeper than the
/// attribute that held it.
pub(super) fn shorten(body: &mut Value, name: &str, notes: &mut Vec<String>) {
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
