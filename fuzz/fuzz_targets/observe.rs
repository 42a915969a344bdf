//! Any policy and any responses: a refusal has a sentence. Each observation is read back, and the
//! summary keeps to its limit and to lines of its own.
#![no_main]

use std::sync::Arc;

use afterimage::{
    id::Millis,
    json,
    observe::{self, Form, Moment, Observations, Policy, Response, ToolCall},
    tokens::{Chars4, TokenCounter},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

const TOOLS: [&str; 14] = [
    "get_status",
    "get_ship",
    "get_system",
    "get_map",
    "get_notifications",
    "get_cargo",
    "get_location",
    "login",
    "logout",
    "register",
    "travel",
    "buy",
    "spacemolt",
    "a",
];

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    policy: PolicyText<'a>,
    calls: Vec<Call<'a>>,
    limit: u16,
}

#[derive(Arbitrary, Debug)]
enum PolicyText<'a> {
    Spacemolt,
    Default,
    Toml(&'a str),
    Json(&'a str),
}

#[derive(Arbitrary, Debug)]
struct Call<'a> {
    agent: bool,
    account: Option<&'a str>,
    tool: u8,
    arguments: &'a str,
    response: &'a str,
    at: i64,
    tick: Option<u64>,
}

/// The policy of the examples for a game.
const SPACEMOLT: &str = include_str!("../../examples/policies/spacemolt.toml");

fn policy(text: &PolicyText<'_>) -> observe::Result<Policy> {
    match text {
        PolicyText::Spacemolt => Policy::from_toml(SPACEMOLT),
        PolicyText::Default => Ok(Policy::default()),
        PolicyText::Toml(text) => Policy::from_toml(text),
        PolicyText::Json(text) => Policy::from_json(json::read(text.as_bytes())?),
    }
}

fuzz_target!(|input: Input<'_>| {
    let policy = match policy(&input.policy) {
        Ok(policy) => policy,
        Err(error) => return assert!(!error.message().is_empty()),
    };
    assert_eq!(Policy::from_json(policy.to_json()).expect("its own form"), policy);
    let is_ready = matches!(input.policy, PolicyText::Spacemolt | PolicyText::Default);
    let is_sectioned = policy.form == Form::Sections;
    let observations =
        Observations::in_memory(policy).expect("memory").counted_by(Arc::new(Chars4));
    let limit = usize::from(input.limit);
    for call in &input.calls {
        let now = Moment {
            at: Millis::new(call.at),
            tick: call.tick.filter(|tick| *tick <= i64::MAX as u64),
        };
        let agent = if call.agent { "agent-1" } else { "agent-2" };
        let tool = TOOLS[usize::from(call.tool) % TOOLS.len()];
        let Ok(response) = Response::text(call.response) else { continue };
        let arguments = json::read(call.arguments.as_bytes()).unwrap_or_default();
        let made = match call.account {
            Some(account) => ToolCall::of_account(account, tool, &response),
            None => ToolCall::new(agent, tool, &response),
        };
        let outcome = match observations.intercept(&made.with_arguments(&arguments), now) {
            Ok(outcome) => outcome,
            Err(error) => {
                assert!(!error.message().is_empty());
                continue;
            }
        };
        for name in outcome.stored.iter().chain(&outcome.merged) {
            let account = outcome.account.as_deref().expect("whose it is");
            let found = observations.get(account, name).expect("memory").expect("what was kept");
            assert_eq!(found.info.bytes, found.content.len() as u64);
            let value = found.value().expect("what was written is JSON");
            if outcome.stored.as_ref() == Some(name) {
                assert_eq!(&value, response.payload());
            }
        }
        let summary = observations.summary_of_agent(agent, now, limit).expect("memory");
        let count = Chars4.count(summary.text());
        assert!(count <= limit && summary.tokens() == count as u64, "{count} of {limit}");
        assert!(summary.text().len() <= 4 * limit.max(10));
        if is_ready && is_sectioned && summary.account().is_some() {
            for line in summary.text().lines() {
                let own =
                    ["- ", "  - ", "## Current ", "### ", "**Account:** ", "**Last Updated:** "];
                let closing = [
                    "**Note:** Call get_notifications",
                    "**Stale data:** ",
                    "Nothing has been observed yet.",
                ];
                let is_own =
                    line.is_empty() || own.iter().chain(&closing).any(|own| line.starts_with(own));
                assert!(is_own && !line.chars().any(char::is_control), "{line:?}");
                assert!(
                    line.starts_with("**") || !line.contains("**") || line.contains("\\*"),
                    "{line:?}"
                );
            }
        }
    }
});
