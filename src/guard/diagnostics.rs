use crate::{
    json::{self, Value},
    transcript::sse_events,
};

/// What a provider itself says of why its cache served less, where the request asked for it.
///
/// Anthropic answers in `diagnostics.cache_miss_reason`, OpenAI in `prompt_cache_diagnostics`.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProviderDiagnostics {
    /// The reason, as the provider names it: `tools_changed`; `none` where it found no difference.
    pub reason: String,
    /// The tokens that were not served because of it: an estimate of the provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

impl ProviderDiagnostics {
    /// What a response says: a document, or the events of a stream. `None` where it says nothing.
    /// Scans the text; nothing is parsed where neither name is in it.
    pub fn of(response: &str) -> Option<Self> {
        let names = ["cache_miss_reason", "prompt_cache_diagnostics", "\"diagnostics\""];
        if !names.into_iter().any(|name| response.contains(name)) {
            return None;
        }
        if let Ok((value, _)) = json::read_mended(response.as_bytes()) {
            return Self::of_value(&value);
        }
        // The last event that says it holds: a comparison may end after the answer has begun.
        sse_events(response).iter().rev().find_map(Self::of_value)
    }

    fn of_value(value: &Value) -> Option<Self> {
        let within = ["message", "response", "delta"].into_iter().filter_map(|key| value.get(key));
        let mut objects = std::iter::once(value).chain(within);
        objects.find_map(|object| Self::anthropic(object).or_else(|| Self::openai(object)))
    }

    fn anthropic(object: &Value) -> Option<Self> {
        let said = object.get("diagnostics").filter(|said| **said != Value::Null)?;
        let reason = said.get("cache_miss_reason")?;
        let Some(name) = reason.str_at("type") else {
            let reason = "pending".to_owned();
            return Some(Self { reason, missed: None });
        };
        let missed = reason.get("cache_missed_input_tokens").and_then(Value::as_u64);
        Some(Self { reason: name.to_owned(), missed })
    }

    fn openai(object: &Value) -> Option<Self> {
        let said = object.get("prompt_cache_diagnostics")?;
        let reason = match said.str_at("type")? {
            "cache_hit" => "none",
            "cache_miss" => said.str_at("reason").unwrap_or("cache_miss"),
            other => other,
        };
        let missed = said.get("cache_missed_tokens").and_then(Value::as_u64);
        Some(Self { reason: reason.to_owned(), missed })
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        json::to_value(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(response: &str, expected: Option<(&str, Option<u64>)>) {
        let found = ProviderDiagnostics::of(response);
        let found = found.as_ref().map(|of| (of.reason.as_str(), of.missed));
        assert_eq!(found, expected, "{response}");
    }

    #[test]
    fn what_anthropic_says_is_read_from_documents_and_streams() {
        let said =
            r#"{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":41}}"#;
        check(&format!(r#"{{"id":"m","diagnostics":{said}}}"#), Some(("tools_changed", Some(41))));
        let stream = format!(
            "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{{\"diagnostics\":{said}}}}}\n\ndata: {{\"type\":\"ping\"}}\n\n"
        );
        check(&stream, Some(("tools_changed", Some(41))));
        check(
            r#"{"diagnostics":{"cache_miss_reason":{"type":"unavailable"}}}"#,
            Some(("unavailable", None)),
        );
        check(r#"{"diagnostics":{"cache_miss_reason":null}}"#, Some(("pending", None)));
        check(r#"{"diagnostics":null}"#, None);
    }

    #[test]
    fn what_openai_says_is_read_from_documents_and_streams() {
        let said = r#"{"type":"cache_miss","reason":"input_changed","comparison_reusable_tokens":9,"cache_missed_tokens":7}"#;
        check(
            &format!(r#"{{"prompt_cache_diagnostics":{said}}}"#),
            Some(("input_changed", Some(7))),
        );
        let stream = format!(
            "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{{\"prompt_cache_diagnostics\":{said}}}}}\n\n"
        );
        check(&stream, Some(("input_changed", Some(7))));
        check(r#"{"prompt_cache_diagnostics":{"type":"cache_hit"}}"#, Some(("none", None)));
        check(
            r#"{"prompt_cache_diagnostics":{"type":"comparison_response_not_found"}}"#,
            Some(("comparison_response_not_found", None)),
        );
        check(r#"{"output":[{"text":"prompt_cache_diagnostics"}]}"#, None);
        check("prompt_cache_diagnostics", None);
    }
}
