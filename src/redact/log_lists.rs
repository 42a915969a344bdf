//! Log probabilities: they repeat what an answer says token by token, so that a secret stands there
//! in pieces that no rule finds. Where anything is redacted, their lists are emptied.

use std::ops::Range;

use super::redactor::{MARK, Replacement};
use crate::json::Value;

/// Whether a member with this name holds log probabilities: in lists, or in an object of lists.
pub(super) fn is_of_log_probabilities(name: &str) -> bool {
    name.ends_with("logprobs") || matches!(name, "logprobsResult" | "completion_probabilities")
}

/// Whether a list with this name is one of log probabilities, where it stands in a member that holds
/// some. The schema of a tool has lists of other names there.
pub(super) fn is_log_list(name: &str) -> bool {
    matches!(
        name,
        "content"
            | "refusal"
            | "tokens"
            | "token_logprobs"
            | "top_logprobs"
            | "text_offset"
            | "topCandidates"
            | "chosenCandidates"
    )
}

/// What of written JSON is to be replaced, while it is gathered.
#[derive(Default)]
pub(super) struct GatheredReplacements {
    pub(super) secrets: Vec<Replacement>,
    /// Lists of log probabilities, some within others.
    pub(super) log_lists: Vec<Range<usize>>,
}

impl GatheredReplacements {
    /// The replacements in order. Where there is a placeholder, now or from before, the lists of log
    /// probabilities are empty; else all bytes stay.
    pub(super) fn into_replacements(self, text: &str) -> Vec<Replacement> {
        let Self { mut secrets, mut log_lists } = self;
        if !log_lists.is_empty() && (!secrets.is_empty() || text.contains(MARK)) {
            log_lists.sort_by_key(|list| (list.start, usize::MAX - list.end));
            let mut end = 0;
            log_lists.retain(|list| {
                let is_outermost = list.start >= end;
                end = end.max(list.end);
                is_outermost
            });
            secrets.retain(|(secret, _)| {
                let before = log_lists.partition_point(|list| list.start <= secret.start);
                let around = before.checked_sub(1).and_then(|at| log_lists.get(at));
                around.is_none_or(|list| list.end <= secret.start)
            });
            secrets.extend(log_lists.into_iter().map(|list| (list, "[]".to_owned())));
        }
        secrets.sort_by_key(|(range, _)| range.start);
        secrets
    }
}

/// Empties the lists of log probabilities in a value that has a placeholder. O(size).
pub(super) fn empty_log_lists(value: &mut Value) {
    if has_log_list(value) && has_placeholder(value) {
        empty(value, false);
    }
}

fn has_log_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_log_list),
        Value::Object(members) => {
            members.iter().any(|(name, value)| is_of_log_probabilities(name) || has_log_list(value))
        }
        _ => false,
    }
}

fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MARK),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.contains(MARK) || has_placeholder(value))
        }
        _ => false,
    }
}

fn empty(value: &mut Value, is_of_log_list: bool) {
    match value {
        Value::Array(items) if is_of_log_list => items.clear(),
        Value::Array(items) => items.iter_mut().for_each(|item| empty(item, false)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            empty(value, is_of_log_probabilities(name) || is_of_log_list && is_log_list(name));
        }),
        _ => {}
    }
}
