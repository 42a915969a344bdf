//! The examples of the specification and the recorded responses of the game, held to files that
//! were checked by hand. `AFTERIMAGE_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::observing;
use afterimage_testkit::data;

use std::{cell::RefCell, fmt::Write, fs, path::Path};

use afterimage_json as json;
use afterimage_json::Value;
use afterimage_observe::{
    Form, IgnoreReason, Observations, PlannedCall, Policy, Response, SummaryEnding, ToolCall,
};
use observing::{Agent, galaxy, on_each_store, ship, spacemolt, status, system, tick, wall};

#[track_caller]
fn check(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/observations");
    let path = folder.join(name);
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name}: expected\n{expected}\nfound\n{found}");
}

/// Answers of the game by tool, in the order in which they were recorded.
fn recorded(name: &str) -> Option<Vec<(String, Value)>> {
    let folder = data::recordings("I-spacemolt")?;
    let document = json::read(&fs::read(folder.join(name)).unwrap()).unwrap();
    let mut all = Vec::new();
    if name.starts_with("spacemolt") {
        for (tool, response) in document.as_object().unwrap().iter().skip(1) {
            all.push((tool.clone(), response.clone()));
        }
        return Some(all);
    }
    all.push(("login".to_owned(), document.pointer("/login/raw").unwrap().clone()));
    for (tool, call) in document.get("read_only_calls").unwrap().as_object().unwrap() {
        all.push((tool.clone(), call.get("raw").unwrap().clone()));
    }
    all.push(("mine".to_owned(), document.pointer("/mutation/raw").unwrap().clone()));
    Some(all)
}

/// Figures alone, since recordings hold what is nobody else's business: what came of each answer
/// in a line, and at the end the tools of the summary, its size and its hash.
fn played(observations: &Observations, recorded: &[(String, Value)]) -> String {
    let mut said = String::new();
    for (at, (tool, response)) in recorded.iter().enumerate() {
        let response = Response::json(response.clone());
        let call = ToolCall::new("pilot", tool, &response);
        let outcome = observations.intercept(&call, wall(at as u64)).unwrap();
        let (is_stored, changed) = (outcome.stored.is_some(), outcome.changed);
        let ignored = outcome.ignored;
        writeln!(said, "{tool}: stored {is_stored}, {changed} changed, {ignored:?}").unwrap();
    }
    let summary = observations.summary_of_agent("pilot", wall(60), 500).unwrap();
    let text = summary.text();
    said.push_str("\nsummary\n");
    for section in summary.sections() {
        writeln!(said, "{}: {} bytes", section.tool, section.bytes).unwrap();
    }
    let (lines, tokens) = (text.lines().count(), summary.tokens());
    writeln!(said, "{lines} lines, {} bytes, {tokens} tokens", text.len()).unwrap();
    writeln!(said, "{}", blake3::hash(text.as_bytes())).unwrap();
    said
}

#[test]
fn recorded_json_is_kept_and_summed_up() {
    let Some(recorded) = recorded("spacemolt-probe-2026-07-12.json") else { return };
    on_each_store(&spacemolt(), |observations| {
        check("recorded-json.txt", &played(observations, &recorded));
        let bytes: usize = recorded.iter().map(|(_, value)| value.to_string().len()).sum();
        let summary = observations.summary_of_agent("pilot", wall(60), 500).unwrap();
        assert!(summary.text().len() * 12 <= bytes, "{bytes}");
    });
}

#[test]
fn recorded_dashboards_are_kept_and_summed_up() {
    let Some(recorded) = recorded("mcp-probe-2026-07-12.json") else { return };
    on_each_store(&spacemolt(), |observations| {
        check("recorded-text.txt", &played(observations, &recorded));
    });
}

#[test]
fn the_example_policy_holds_on_the_recorded_system() {
    let Some(recorded) = recorded("spacemolt-probe-2026-07-12.json") else { return };
    let (tool, response) = recorded.into_iter().find(|(tool, _)| tool == "get_system").unwrap();
    on_each_store(&spacemolt(), |observations| {
        let response = Response::json(response.clone());
        let call = ToolCall::of_account("Pilot", &tool, &response);
        let outcome = observations.intercept(&call, wall(0)).unwrap();
        assert_eq!(outcome.missing, [""; 0]);
        let summary = observations.summary("Pilot", wall(0), 500).unwrap();
        let lines = "\n\n- Moonshadow (Lawless (no police protection))\n- POIs: Moonshadow Star, ";
        assert!(summary.text().contains(lines), "{}", summary.text());
    });
}

#[test]
fn a_dashboard_does_not_replace_the_recorded_json_and_is_told() {
    let json = recorded("spacemolt-probe-2026-07-12.json");
    let Some((json, text)) = json.zip(recorded("mcp-probe-2026-07-12.json")) else { return };
    on_each_store(&spacemolt(), |observations| {
        played(observations, &json);
        let (_, dashboard) = text.iter().find(|(tool, _)| tool == "spacemolt/get_status").unwrap();
        let response = Response::json(dashboard.clone());
        let call = ToolCall::new("pilot", "get_status", &response);
        let outcome = observations.intercept(&call, wall(60)).unwrap();
        assert_eq!(outcome.ignored, Some(IgnoreReason::OtherShape));
        let seen = observations.summary_of_agent("pilot", wall(60), 500).unwrap();
        assert!(seen.text().contains("- Not updated (just now): the answer had another shape: "));
        assert!(seen.text().contains("- Credits: 2,720\n"), "{}", seen.text());
        // The same answer a second time is what was known.
        let (_, same) = json.iter().find(|(tool, _)| tool == "get_status").unwrap();
        let response = Response::json(same.clone());
        let call = ToolCall::new("pilot", "get_status", &response);
        let outcome = observations.intercept(&call, wall(70)).unwrap();
        assert_eq!(outcome.unchanged_since, Some(wall(0)));
    });
}

#[test]
fn a_recorded_action_that_failed_makes_nothing_stale() {
    let Some(recorded) = recorded("mcp-probe-2026-07-12.json") else { return };
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent" };
        observations.login("agent", "Pilot", wall(0)).unwrap();
        agent.calls("get_ship", &ship(1), wall(1));
        let mined = Response::json(recorded.last().unwrap().1.clone());
        let call = ToolCall::new("agent", "mine", &mined);
        assert_eq!(
            observations.intercept(&call, wall(2)).unwrap().ignored,
            Some(IgnoreReason::Failed)
        );
        assert!(observations.stale("Pilot", wall(2)).unwrap().is_empty());
    });
}

// The specification's own examples.

/// The turns of the specification: four tools at their ticks, and what was done in between.
fn specified(agent: &Agent<'_>) {
    agent.calls("login", "{\"username\":\"VoidWanderer\"}", tick(49));
    agent.calls("get_map", &galaxy(487, 50), tick(50));
    agent.calls("get_system", &system(95), tick(95));
    agent.calls("get_status", &status("VoidWanderer", 98, 5_000), tick(98));
    agent.calls("get_ship", &ship(98), tick(98));
}

#[test]
fn the_examples_of_the_specification_look_as_they_do_there() {
    let mut said = String::new();
    let mut short = Policy { form: Form::Short, closing: SummaryEnding::Update, ..spacemolt() };
    short.tools.retain(|rule| ["get_status", "get_ship"].contains(&&*rule.name));
    short.partials.truncate(1);
    for (title, policy) in [("sections", spacemolt()), ("short", short)] {
        let observations = Observations::in_memory(policy).unwrap();
        let observations = observations.counted_by(std::sync::Arc::new(afterimage_tokens::Chars4));
        let agent = Agent { observations: &observations, name: "agent-1" };
        specified(&agent);
        writeln!(said, "==== {title}, at tick 100\n{}", agent.sees(tick(100))).unwrap();
    }
    check("specification.txt", &said);
}

#[test]
fn the_problem_of_the_specification_does_not_come_back() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "mysis" };
        specified(&agent);
        let said = RefCell::new(String::new());
        let asks = |tool: &str, at| {
            let call = PlannedCall::new("mysis", tool);
            let freshness = observations.freshness(&call, tick(at)).unwrap();
            observations.record_check(&freshness).unwrap();
            writeln!(said.borrow_mut(), "{at}: {}", freshness.text()).unwrap();
        };
        // A turn each: the agent asks before it calls.
        asks("get_status", 99);
        asks("get_ship", 99);
        asks("get_map", 99);
        asks("get_map", 100);
        agent.calls("travel", "{\"ok\":true}", tick(101));
        asks("get_status", 102);
        agent.calls("mine", "{\"ok\":true}", tick(102));
        asks("get_ship", 103);
        agent.calls("buy", "{\"ok\":true}", tick(103));
        asks("get_status", 104);
        agent.calls("get_status", &status("VoidWanderer", 105, 4_200), tick(105));
        asks("get_status", 106);
        agent.calls("get_status", "Rate limited, try again in 5 s", tick(107));
        asks("get_status", 108);
        agent.calls("get_notifications", "{\"player\":{\"credits\":4300}}", tick(109));
        writeln!(said.borrow_mut(), "\n{}", agent.sees(tick(110))).unwrap();
        agent.calls("login", "{\"username\":\"Other\"}", tick(111));
        asks("get_status", 112);
        agent.calls("login", "{\"username\":\"VoidWanderer\"}", tick(113));
        asks("get_status", 113);
        agent.calls("logout", "{}", tick(114));
        asks("get_status", 115);
        check("specification-turns.txt", &said.into_inner());
    });
}
