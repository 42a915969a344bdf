//! What became of a call, as its source states it.

use crate::{
    json::Value,
    text::{
        lower_head,
        words::outcome::{CANCELLED, DENIED},
    },
};

/// What became of a call, as the source of its result states it: a mark of its own, and not the
/// result's words. The wire member `outcome` of a result. The greater of two statements is the one
/// that says more.
///
/// ```
/// use afterimage::veil::CallOutcome;
///
/// assert!(CallOutcome::Denied.is_failure() && !CallOutcome::Unstated.is_failure());
/// assert_eq!(CallOutcome::from_name("done"), Some(CallOutcome::Done));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallOutcome {
    /// The source does not say.
    #[default]
    Unstated,
    /// The call did what it was to do. Of a shell it is the last program that says so.
    Done,
    /// The call failed.
    Failed,
    /// Somebody stopped the call, before or while it ran.
    Cancelled,
    /// The user, or a rule, refused the call: it was not run.
    Denied,
}

impl CallOutcome {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 5] =
        [Self::Unstated, Self::Done, Self::Failed, Self::Cancelled, Self::Denied];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unstated => "unstated",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
        }
    }

    /// The name, where something is stated.
    pub(crate) fn stated(self) -> Option<&'static str> {
        (self != Self::Unstated).then(|| self.as_str())
    }

    /// The outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// Whether the call did not do what it was to do: it failed, or was denied or cancelled.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Cancelled | Self::Denied)
    }

    /// That a call failed, where that is stated and nothing else can be.
    pub(crate) fn failed_if(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Unstated }
    }

    /// What a mark like `is_error` states.
    pub(crate) fn of_error_mark(mark: Option<&Value>) -> Self {
        match mark.and_then(Value::as_bool) {
            Some(true) => Self::Failed,
            Some(false) => Self::Done,
            None => Self::Unstated,
        }
    }

    /// What a mark like `success` states.
    pub(crate) fn of_success_mark(mark: Option<&Value>) -> Self {
        match Self::of_error_mark(mark) {
            Self::Failed => Self::Done,
            Self::Done => Self::Failed,
            unstated => unstated,
        }
    }

    /// What a status or a code of an error states, as clients name them.
    pub(crate) fn of_status(status: Option<&str>) -> Self {
        match status.unwrap_or_default() {
            "success" | "completed" | "available" | "ok" | "done" => Self::Done,
            "error" | "failed" | "failure" | "timeout" => Self::Failed,
            "cancelled" | "canceled" | "aborted" | "interrupted" => Self::Cancelled,
            "denied" | "declined" | "rejected" | "user_rejected" | "approval"
            | "execution-denied" => Self::Denied,
            _ => Self::Unstated,
        }
    }

    /// What a client says in the place of a result that there is none, if it does.
    pub(crate) fn of_words(text: &str) -> Self {
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let head = lower_head(text, 160);
        let head = head.strip_prefix("error: ").unwrap_or(&head);
        let begins = |words: &[&str]| words.iter().any(|words| head.starts_with(words));
        let is_rule = head.starts_with("permission to use ") && head.contains(" denied");
        if begins(&DENIED) || is_rule || head.contains("user did not allow") {
            Self::Denied
        } else if begins(&CANCELLED) {
            Self::Cancelled
        } else {
            Self::Unstated
        }
    }

    /// This, or what the client's words in the place of the result say besides that there is none.
    pub(crate) fn said_as(self, text: &str) -> Self {
        if self.is_failure() { self.max(Self::of_words(text)) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::CallOutcome;

    #[test]
    fn what_clients_write_in_the_place_of_a_result_is_told_from_one() {
        for (text, expected) in [
            ("User rejected tool use", CallOutcome::Denied),
            ("Error: The user doesn't want to proceed with this tool use.", CallOutcome::Denied),
            ("Permission to use dredge with berth 7 has been denied.", CallOutcome::Denied),
            ("[Operation Cancelled] Reason: User did not allow it", CallOutcome::Denied),
            ("[Request interrupted by user for tool use]", CallOutcome::Cancelled),
            ("aborted by user after 1.2s", CallOutcome::Cancelled),
            ("Permission to use the quay is free.", CallOutcome::Unstated),
            ("The pilot cancelled the trip.", CallOutcome::Unstated),
            ("fatal: permission denied", CallOutcome::Unstated),
        ] {
            assert_eq!(CallOutcome::of_words(text), expected, "{text}");
        }
    }

    #[test]
    fn words_say_more_of_a_call_that_failed_and_nothing_of_one_that_is_done() {
        let text = "User rejected tool use";
        assert_eq!(CallOutcome::Failed.said_as(text), CallOutcome::Denied);
        assert_eq!(CallOutcome::Failed.said_as("no berth"), CallOutcome::Failed);
        assert_eq!(CallOutcome::Done.said_as(text), CallOutcome::Done);
        for outcome in CallOutcome::ALL {
            assert_eq!(CallOutcome::from_name(outcome.as_str()), Some(outcome));
        }
    }
}
