//! Documents that hold the responses of tools by name, as probes of a server record them.

use afterimage::{
    json::{self, Value},
    observe::Response,
};

/// How deep a response may stand in a document.
const DEPTH: usize = 8;

/// A response with the tool that it is of.
pub(super) struct Recorded {
    pub(super) tool: String,
    pub(super) response: Response,
    /// What the model read of it.
    pub(super) text: String,
}

/// The responses of a document, in its order; `None` where it is no JSON or has none.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Recorded>> {
    let (document, _) = json::read_mended(bytes).ok()?;
    let mut found = Vec::new();
    collect("", &document, 0, &mut found);
    (!found.is_empty()).then_some(found)
}

fn collect(name: &str, value: &Value, depth: usize, found: &mut Vec<Recorded>) {
    let Some(object) = value.as_object() else { return };
    if is_response(value) {
        let response = Response::json(value.clone());
        let text = shown(value).unwrap_or_else(|| response.payload().to_string());
        found.push(Recorded { tool: name.to_owned(), response, text });
        return;
    }
    if depth >= DEPTH {
        return;
    }
    // What stands beside says which action it was.
    let name = value.str_at("action").filter(|_| depth > 0).unwrap_or(name);
    for (key, value) in object {
        let is_envelope = matches!(key.as_str(), "raw" | "body" | "response" | "result");
        collect(if is_envelope { name } else { key }, value, depth + 1, found);
    }
}

/// Whether this is what a tool answered, with its envelope.
fn is_response(value: &Value) -> bool {
    let inside = value.get("result").filter(|_| value.get("jsonrpc").is_some()).unwrap_or(value);
    let is_content = |content: &Value| {
        content.as_array().is_some_and(|items| {
            !items.is_empty() && items.iter().all(|item| item.str_at("type").is_some())
        })
    };
    inside.get("content").is_some_and(is_content) || inside.get("structuredContent").is_some()
}

/// The text of a response, where it has one.
fn shown(value: &Value) -> Option<String> {
    let inside = value.get("result").filter(|_| value.get("jsonrpc").is_some()).unwrap_or(value);
    if let Some(items) = inside.get("content").and_then(Value::as_array) {
        let texts: Vec<&str> = items.iter().filter_map(|item| item.str_at("text")).collect();
        return Some(texts.join("\n"));
    }
    // A client that gets both shows the JSON to the model.
    inside.get("structuredContent").map(Value::to_string)
}
