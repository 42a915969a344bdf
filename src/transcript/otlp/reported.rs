//! The usage that a span reports.

use super::{any_value::structured, span::SpanRecord};
use crate::json::{Object, ObjectExt, Value, object};

impl SpanRecord {
    fn number(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().find_map(|key| self.attributes.get(key)).filter(|value| !value.is_null())
    }

    /// The usage in the names of Chat Completions, whose input holds what was cached, as it does by
    /// the conventions.
    pub(super) fn usage(&self) -> Option<Value> {
        let mut usage = Object::new();
        let mut put = |key: &str, keys: &[&str]| usage.put_some(key, self.number(keys).cloned());
        put(
            "prompt_tokens",
            &[
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens",
                "llm.usage.prompt_tokens",
                "llm.token_count.prompt",
                "ai.usage.inputTokens",
                "ai.usage.promptTokens",
            ],
        );
        put(
            "completion_tokens",
            &[
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.completion_tokens",
                "llm.usage.completion_tokens",
                "llm.token_count.completion",
                "ai.usage.outputTokens",
                "ai.usage.completionTokens",
            ],
        );
        put(
            "total_tokens",
            &[
                "gen_ai.usage.total_tokens",
                "llm.usage.total_tokens",
                "llm.token_count.total",
                "ai.usage.totalTokens",
            ],
        );
        let read = self.number(&[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ]);
        let written = self.number(&[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ]);
        let reasoning = self.number(&[
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "llm.usage.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.reasoningTokens",
        ]);
        let details = |pairs: &[(&str, Option<&Value>)]| {
            let mut details = Object::new();
            pairs.iter().for_each(|(key, value)| details.put_some(key, value.cloned()));
            (!details.is_empty()).then_some(details)
        };
        usage.put_some(
            "prompt_tokens_details",
            details(&[("cached_tokens", read), ("cache_write_tokens", written)]),
        );
        usage.put_some("completion_tokens_details", details(&[("reasoning_tokens", reasoning)]));
        usage.put_some(
            "cache_creation",
            details(&[
                ("ephemeral_5m_input_tokens", self.number(&["afterimage.usage.cache_creation_5m"])),
                ("ephemeral_1h_input_tokens", self.number(&["afterimage.usage.cache_creation_1h"])),
            ]),
        );
        if let Some(cost) = self.number(&["afterimage.usage.cost"]).and_then(Value::as_str) {
            let amount = crate::json::read(cost.as_bytes()).unwrap_or_default();
            let currency = self.text(&["afterimage.usage.cost_currency"]).unwrap_or("USD");
            usage.put("cost", object! { "amount": amount, "currency": currency });
        }
        if let Some(Ok(terms)) = self.number(&["afterimage.usage.terms"]).map(structured) {
            usage.put("terms", terms);
        }
        (!usage.is_empty()).then(|| usage.into())
    }
}
