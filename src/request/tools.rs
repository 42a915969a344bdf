//! The tools that a transcript says that requests had.

use std::sync::Arc;

use crate::{
    json::{Object, ObjectExt, Value, object},
    tokens::TokenCounter,
    transcript::Api,
    veil::Frame,
};

/// The tools of the requests of a session, from a frame on that says so.
#[derive(Debug)]
pub(crate) struct RecordedTools {
    /// As a request of the API has them.
    pub(crate) list: Value,
    /// The tokens of each as it is written.
    pub(crate) tokens: u64,
}

impl RecordedTools {
    /// The tools that a frame tells of. Writes and counts them.
    pub(crate) fn of(frame: &Frame, api: Api, counter: &dyn TokenCounter) -> Option<Arc<Self>> {
        let stated = frame.imported.as_ref()?.tools()?;
        let list: Vec<Value> = stated.iter().map(|tool| written(tool, api)).collect();
        let tokens = list.iter().map(|tool| counter.count(&tool.to_string()) as u64).sum();
        Some(Arc::new(Self { list: list.into_iter().collect(), tokens }))
    }
}

/// A tool in the form of an API. Transcripts and sessions have `{name, description, parameters}`; one of another form
/// stays as it is.
pub(crate) fn written(tool: &Value, api: Api) -> Value {
    let is_own = tool.get("parameters").is_some() && tool.get("type").is_none();
    let Some(members) = tool.as_object().filter(|_| is_own) else { return tool.clone() };
    let mut members = members.clone();
    let mut outer = Object::new();
    match api {
        Api::Chat | Api::Ollama | Api::Generate => {
            outer.put("type", "function");
            outer.put("function", members);
        }
        Api::Responses => {
            outer.put("type", "function");
            outer.extend(members);
            // Without it a schema has to be of the strict kind.
            if !outer.contains_key("strict") {
                outer.put("strict", false);
            }
        }
        Api::Messages => {
            let schema = members.shift_remove("parameters");
            outer.extend(members);
            outer.put_some("input_schema", schema);
        }
        // They stand in a group.
        Api::Gemini => outer.extend(members),
        Api::Converse => {
            let schema = members.shift_remove("parameters").unwrap_or_default();
            members.put("inputSchema", object! { "json": schema });
            outer.put("toolSpec", members);
        }
    }
    outer.into()
}
