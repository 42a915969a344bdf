//! Files of tools that are known and not read: they are refused by name.

use super::database::MAGIC;
use crate::json::Value;

/// What a file with these first bytes is, if it is of such a tool.
pub(super) fn of_bytes(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(MAGIC) {
        return Some("a database of SQLite, which is read from a file alone");
    }
    let is_aider = head.trim_ascii_start().starts_with(b"# aider chat started at ");
    is_aider.then_some("a chat history of aider, which is Markdown and not read yet")
}

/// What a document is, if it is of such a tool.
pub(super) fn of_document(value: &Value) -> Option<&'static str> {
    let list = value.as_array().or_else(|| value.get("messages")?.as_array());
    let first = list.and_then(<[Value]>::first).unwrap_or(value);
    let kind = first.str_at("type").unwrap_or_default();
    let is_langchain = matches!(kind, "human" | "ai" | "system" | "tool" | "function")
        && first.get("data").is_some_and(|data| data.get("content").is_some())
        || kind == "constructor" && first.get("lc").is_some();
    if is_langchain {
        return Some("messages of LangChain, which are not read yet");
    }
    let has_parts = first.get("parts").is_some_and(|parts| parts.as_array().is_some());
    if has_parts && matches!(first.str_at("kind"), Some("request" | "response")) {
        return Some("messages of pydantic-ai, which are not read yet");
    }
    let is_shown = matches!(kind, "say" | "ask") && first.get("ts").is_some();
    is_shown.then_some(
        "what Cline shows to people: `api_conversation_history.json` beside it is what is read",
    )
}
