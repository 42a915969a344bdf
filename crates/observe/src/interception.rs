use serde::{Deserialize, Serialize};

use super::{Moment, Response};
use crate::json::Value;

/// A tool call on its way back to the agent.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    pub(super) agent: Option<&'a str>,
    pub(super) account: Option<&'a str>,
    pub(super) tool: &'a str,
    pub(super) arguments: Option<&'a Value>,
    pub(super) response: &'a Response,
    pub(super) takes_over: bool,
}

impl<'a> ToolCall<'a> {
    /// A call by an agent, whose account is known from what it did before.
    pub fn new(agent: &'a str, tool: &'a str, response: &'a Response) -> Self {
        Self {
            agent: Some(agent),
            account: None,
            tool,
            arguments: None,
            response,
            takes_over: false,
        }
    }

    /// A call for an account, whoever made it. A response that says that it is of another account
    /// is refused.
    pub fn of_account(account: &'a str, tool: &'a str, response: &'a Response) -> Self {
        Self { agent: None, account: Some(account), ..Self::new("", tool, response) }
    }

    /// As a login that takes the account over from the agent that has it, as after a restart under
    /// another id. Of other tools it changes nothing.
    pub fn taking_over(self) -> Self {
        Self { takes_over: true, ..self }
    }

    /// Adds the arguments.
    pub fn with_arguments(self, arguments: &'a Value) -> Self {
        Self { arguments: Some(arguments), ..self }
    }
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interception {
    /// The tool, as the policy knows it.
    pub tool: String,
    /// Whose world it told of.
    pub account: Option<String>,
    /// How it changed who plays what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<LoginChange>,
    /// The observation that the response now is.
    pub stored: Option<String>,
    /// The observations that it brought a part of up to date.
    pub merged: Vec<String>,
    /// What it made stale, as `observation#/path`.
    pub stale: Vec<String>,
    /// How many paths of the observations it changed, up to 64 for each.
    pub changed: usize,
    /// Whether something was known of it before.
    pub was_known: bool,
    /// Whether the call asked for what was there, not stale and not old.
    pub was_fresh: bool,
    /// Since when the payload is what it is, where the response said nothing new but the tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<Moment>,
    /// The observation beside which the response is kept, where it did not replace it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
    /// The lines of the policy of which a value is missing in what was kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The agent that had the account until this login took it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
    /// Why nothing was kept, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<IgnoreReason>,
}

/// How a call changed who plays what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginChange {
    /// The agent has this account now, with all that was known of it.
    LoggedIn,
    /// As `LoggedIn`, for an account of which nothing is known.
    Registered,
    /// The agent has no account, and what was known of it is gone.
    LoggedOut,
    /// The agent logged in, but nothing says as whom: it has no account until a response does.
    Released,
}

/// Why a response was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoreReason {
    /// The call failed.
    Failed,
    /// The policy says nothing of the tool.
    NotObserved,
    /// It is not known whose world it tells of.
    NoAccount,
    /// It is older than what is known.
    Older,
    /// It says nothing, where something is known.
    Empty,
    /// It is of another kind than what is known, or lacks most of its members.
    OtherShape,
    /// It was set aside, and cannot be read any more.
    Damaged,
}

impl LoginChange {
    /// The change in a word, for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            LoginChange::LoggedIn => "logged_in",
            LoginChange::Registered => "registered",
            LoginChange::LoggedOut => "logged_out",
            LoginChange::Released => "released",
        }
    }
}
