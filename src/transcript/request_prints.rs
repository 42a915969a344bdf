//! What tells the beginnings of a request's messages from those of another.

use super::{
    Api,
    threads::{MessageHash, Print},
};
use crate::json::Value;

/// The prints of the beginnings of what a request holds.
#[derive(Default)]
pub(super) struct RequestPrints {
    /// So many messages come before its own, with the response that it builds on.
    base: usize,
    /// Of the operator's messages, which begin the list in Chat Completions.
    pub(super) operator: Vec<Print>,
    /// Of what is behind them, or behind the base.
    pub(super) after_operator: Vec<Print>,
}

impl RequestPrints {
    /// The prints of a list with these hashes, which follows one with the print `base`. The operator
    /// wrote the first `operator` of them.
    pub(super) fn of(base: Print, operator: usize, hashes: &[MessageHash]) -> Self {
        let (operator, others) = hashes.split_at_checked(operator).unwrap_or((&[], hashes));
        Self {
            base: base.len(),
            operator: Print::default().running(operator).collect(),
            after_operator: base.running(others).collect(),
        }
    }

    /// The print of all messages but the operator's.
    pub(super) fn end(&self, base: Print) -> Print {
        self.after_operator.last().copied().unwrap_or(base)
    }

    /// Whether the last request of the conversation, with its answer, begins with these
    /// messages, the operator's aside.
    pub(super) fn begins_with(&self, end: Print) -> bool {
        end.len().checked_sub(1).is_none_or(|last| self.after_operator.get(last) == Some(&end))
    }

    /// How many messages it is of.
    pub(super) fn len(&self) -> usize {
        self.base + self.operator.len() + self.after_operator.len()
    }

    /// Where the message at `at` stands in the last request of the conversation, if it stands there
    /// behind the same ones: those of the operator aside, unless it is one of them.
    pub(super) fn place_in(&self, last: &Self, at: usize) -> Option<usize> {
        if at < self.base {
            return Some(at);
        }
        let at = at - self.base;
        match at.checked_sub(self.operator.len()) {
            None => (self.operator.get(at) == last.operator.get(at)).then_some(at),
            Some(at) => {
                let is_same =
                    self.after_operator.get(at) == last.after_operator.get(self.base + at);
                is_same.then_some(last.operator.len() + self.base + at)
            }
        }
    }
}

/// How many messages the operator wrote, the first ones, where they are in the list of messages.
pub(super) fn operator_messages<'a>(
    api: Api,
    messages: impl IntoIterator<Item = &'a Value>,
) -> usize {
    let is_operator =
        |message: &&Value| matches!(message.str_at("role"), Some("system" | "developer"));
    match api {
        Api::Chat => messages.into_iter().take_while(is_operator).count(),
        _ => 0,
    }
}
