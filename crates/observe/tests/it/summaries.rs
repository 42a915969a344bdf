//! The specification of the game state cache, row by row: `docs/spec-observations.md` links each row
//! to its test here.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::observing;

use afterimage_observe::{
    Age, ErrorKind, Form, IgnoreReason, LoginChange, Moment, Observations, PartialRule, Pointer,
    Policy, Response, SummaryEnding, Target, ToolCall, ToolRule,
};
use observing::{Agent, galaxy, on_each_store, ship, spacemolt, status, system, tick, value, wall};

const LOGIN: &str = "{\"username\":\"VoidWanderer\"}";

/// Runs a test on each store with an agent that is logged in.
fn in_game(test: impl Fn(&Agent<'_>)) {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("login", LOGIN, tick(1));
        test(&agent);
    });
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

// Core concept and lifecycle.

#[test]
fn a_response_is_stored_for_the_username_that_it_names() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        let outcome = agent.calls("get_status", &status("VoidWanderer", 7, 5_000), wall(70));
        assert_eq!(outcome.account.as_deref(), Some("VoidWanderer"));
        let found = observations.get("VoidWanderer", "get_status").unwrap().unwrap();
        assert_eq!(found.info.seen, tick(7));
        assert_eq!(found.value().unwrap(), value(&status("VoidWanderer", 7, 5_000)));
        // A place where no name stands is passed over.
        let other = "{\"player\":{\"username\":{\"first\":\"Void\"}},\"username\":\"Other\"}";
        let outcome = agent.calls("get_status", other, wall(80));
        assert_eq!(outcome.account.as_deref(), Some("Other"));
    });
}

#[test]
fn a_second_response_replaces_the_first() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 7, 5_000), tick(7));
        let outcome = agent.calls("get_status", &status("VoidWanderer", 8, 6_000), tick(8));
        assert_eq!((outcome.was_known, outcome.changed), (true, 1));
        assert_eq!(agent.observations.infos("VoidWanderer").unwrap().len(), 1);
        let found = agent.observations.get("VoidWanderer", "get_status").unwrap().unwrap();
        assert_eq!(found.info.changed, [pointer("/player/credits")]);
        assert_eq!(found.value().unwrap().pointer("/player/credits"), Some(&6_000_u64.into()));
    });
}

#[test]
fn state_is_kept_per_username_and_not_per_agent() {
    on_each_store(&spacemolt(), |observations| {
        let first = Agent { observations, name: "agent-1" };
        first.calls("login", LOGIN, tick(1));
        first.calls("get_ship", &ship(2), tick(2));
        assert!(observations.release("agent-1").unwrap());
        let second = Agent { observations, name: "agent-2" };
        second.calls("login", LOGIN, tick(3));
        assert!(second.sees(tick(4)).contains("### Ship (get_ship - 2 ticks ago)"));
        assert!(first.sees(tick(4)).contains("Not logged in."));
    });
}

#[test]
fn logout_deletes_the_observations_of_the_account() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        let outcome = agent.calls("logout", "{\"ok\":true}", tick(3));
        assert_eq!(outcome.session, Some(LoginChange::LoggedOut));
        assert!(agent.observations.infos("VoidWanderer").unwrap().is_empty());
        assert_eq!(agent.sees(tick(3)), "Not logged in. Use register or login.\n");
        // The account stays, for whoever plays next.
        assert_eq!(agent.observations.accounts().unwrap()[0].name, "VoidWanderer");
        agent.calls("login", LOGIN, tick(4));
        assert!(agent.sees(tick(4)).contains("Nothing has been observed yet."));
    });
}

#[test]
fn register_creates_an_account_of_which_nothing_is_known() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        let outcome = agent
            .tries("register", "{\"username\":\"Newcomer\"}", "Welcome aboard!", tick(3))
            .unwrap();
        assert_eq!(outcome.session, Some(LoginChange::Registered));
        assert_eq!(outcome.account.as_deref(), Some("Newcomer"));
        assert!(agent.observations.infos("Newcomer").unwrap().is_empty());
        assert_eq!(agent.observations.infos("VoidWanderer").unwrap().len(), 1);
        // A name that is registered anew is another account.
        agent.calls("get_ship", &ship(4), tick(4));
        agent.tries("register", "{\"username\":\"Newcomer\"}", "Welcome!", tick(5)).unwrap();
        assert!(agent.observations.infos("Newcomer").unwrap().is_empty());
    });
}

#[test]
fn login_switches_and_preserves_what_was_left() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        agent.calls("login", "{\"username\":\"Other\"}", tick(3));
        assert!(agent.sees(tick(3)).contains("**Account:** Other"));
        assert!(!agent.sees(tick(3)).contains("get_ship"));
        agent.calls("get_system", &system(4), tick(4));
        agent.calls("login", LOGIN, tick(5));
        let seen = agent.sees(tick(5));
        assert!(seen.contains("get_ship - 3 ticks ago") && !seen.contains("get_system"), "{seen}");
    });
}

#[test]
fn a_login_that_does_not_say_as_whom_leaves_the_agent_without_an_account() {
    in_game(|agent| {
        let named = agent.calls("login", "Welcome back, Second! Session ID: 1", tick(2));
        assert_eq!(named.account.as_deref(), Some("Second"));
        let outcome = agent.calls("login", "Welcome back!", tick(2));
        assert_eq!(outcome.session, Some(LoginChange::Released));
        assert_eq!(
            agent.calls("get_ship", &ship(3), tick(3)).ignored,
            Some(IgnoreReason::NoAccount)
        );
        agent.calls("get_status", &status("Third", 4, 1), tick(4));
        assert!(agent.sees(tick(4)).contains("**Account:** Third"));
    });
}

#[test]
fn an_account_belongs_to_one_agent_at_a_time() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        let other = Agent { observations: agent.observations, name: "agent-2" };
        let error = other.tries("login", "null", LOGIN, tick(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let error =
            other.tries("get_status", "null", &status("VoidWanderer", 3, 1), tick(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(agent.sees(tick(3)).contains("get_ship - 1 tick ago"));
        // Once it is left it can be taken up again, with what is known of it.
        agent.calls("login", "{\"username\":\"Other\"}", tick(4));
        other.calls("login", LOGIN, tick(5));
        assert!(other.sees(tick(5)).contains("get_ship - 3 ticks ago"));
        let holder = agent.observations.account_of_agent("agent-2").unwrap().unwrap();
        assert_eq!(holder.name, "VoidWanderer");
    });
}

#[test]
fn accounts_are_isolated_from_each_other() {
    on_each_store(&spacemolt(), |observations| {
        let one = Agent { observations, name: "agent-1" };
        let two = Agent { observations, name: "agent-2" };
        one.calls("login", "{\"username\":\"A\"}", tick(1));
        two.calls("login", "{\"username\":\"B\"}", tick(1));
        one.calls("get_status", &status("A", 2, 111), tick(2));
        two.calls("get_status", &status("B", 3, 222), tick(3));
        two.calls("travel", "{\"ok\":true}", tick(4));
        let (of_one, of_two) = (one.sees(tick(4)), two.sees(tick(4)));
        assert!(of_one.contains("Credits: 111") && !of_one.contains("Stale since"), "{of_one}");
        assert!(of_two.contains("Credits: 222") && of_two.contains("Stale since travel"));
        two.calls("logout", "{}", tick(5));
        assert!(one.sees(tick(5)).contains("Credits: 111"));
    });
}

#[test]
fn calls_that_failed_change_nothing_and_are_told() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let before = agent.sees(tick(9));
        for response in [
            "Error: no_resources: Nothing to mine here",
            "{\"error\":\"not docked\",\"current_tick\":99}",
            "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"current_tick\\\":99}\"}],\"isError\":true}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"session_invalid\"}}",
        ] {
            for tool in ["get_status", "travel", "logout", "login", "register"] {
                let outcome =
                    agent.tries(tool, "{\"username\":\"Other\"}", response, tick(9)).unwrap();
                assert_eq!(outcome.ignored, Some(IgnoreReason::Failed), "{tool}: {response}");
                assert_eq!((outcome.session, outcome.stored), (None, None));
            }
        }
        // That the last call failed is all that a summary says more.
        let after = agent.sees(tick(9));
        let told = "- Not updated (4 times, the last just now): the call failed: ";
        let is_told = |line: &&str| line.starts_with(told);
        assert_eq!(after.lines().filter(is_told).count(), 1, "{after}");
        let rest: Vec<&str> = after.lines().filter(|line| !is_told(line)).collect();
        assert_eq!(rest, before.lines().collect::<Vec<_>>());
        let figures = agent.observations.figures().unwrap();
        let of = |tool: &str| figures.iter().find(|(name, _)| name == tool).unwrap().1;
        assert_eq!((of("get_status").calls, of("get_status").failed), (5, 4));
    });
}

#[test]
fn an_error_of_nothing_is_no_failure() {
    in_game(|agent| {
        for (error, is_failure) in [
            ("0", false),
            ("null", false),
            ("false", false),
            ("\"\"", false),
            ("[]", false),
            ("{}", false),
            ("1", true),
            ("0.5", true),
            ("true", true),
            ("\"no\"", true),
            ("[1]", true),
        ] {
            let outcome = agent.calls("get_ship", &format!("{{\"error\":{error}}}"), tick(2));
            assert_eq!(outcome.ignored == Some(IgnoreReason::Failed), is_failure, "{error}");
        }
    });
}

#[test]
fn tools_that_the_policy_does_not_name_are_let_through() {
    in_game(|agent| {
        let outcome = agent.calls("chat", "{\"text\":\"hello\"}", wall(20));
        assert_eq!(outcome.ignored, Some(IgnoreReason::NotObserved));
        assert!(agent.observations.infos("VoidWanderer").unwrap().is_empty());
        // Nor do they make accounts.
        let response = Response::text("{\"current_tick\":3}").unwrap();
        let call = ToolCall::of_account("Nobody", "chat", &response);
        let outcome = agent.observations.intercept(&call, tick(3)).unwrap();
        assert_eq!((outcome.ignored, outcome.account), (Some(IgnoreReason::NotObserved), None));
        assert_eq!(agent.observations.accounts().unwrap().len(), 1);
    });
    // Where they tell nothing, the store is left alone.
    let observations = Observations::new(Unwritten, spacemolt());
    let agent = Agent { observations: &observations, name: "agent-1" };
    for response in ["{\"text\":\"hello\"}", "Error: no", "{\"error\":1,\"current_tick\":9}"] {
        agent.calls("chat", response, tick(20));
    }
    assert!(agent.tries("get_ship", "null", "{}", tick(20)).is_err());
}

/// A store that refuses to be written.
struct Unwritten;

impl afterimage_observe::ObservationStore for Unwritten {
    fn read(
        &self,
        _: &mut dyn FnMut(&dyn afterimage_observe::StoreReader) -> afterimage_observe::Result<()>,
    ) -> afterimage_observe::Result<()> {
        Ok(())
    }

    fn write(
        &self,
        _: &mut dyn FnMut(
            &mut dyn afterimage_observe::StoreWriter,
        ) -> afterimage_observe::Result<()>,
    ) -> afterimage_observe::Result<()> {
        Err(Pointer::parse("refused").unwrap_err())
    }
}

#[test]
fn prefixes_and_dispatching_arguments_are_seen_through() {
    in_game(|agent| {
        let shipped = agent.calls("mcp__spacemolt__get_ship", &ship(2), tick(2));
        assert_eq!(shipped.stored.as_deref(), Some("get_ship"));
        let system =
            agent.tries("spacemolt", "{\"action\":\"get_system\"}", &system(3), tick(3)).unwrap();
        assert_eq!(system.stored.as_deref(), Some("get_system"));
        let arguments = "{\"action\":\"login\",\"username\":\"Other\"}";
        let login = agent
            .tries("mcp__spacemolt__spacemolt_auth", arguments, "Welcome back!", tick(4))
            .unwrap();
        assert_eq!(login.account.as_deref(), Some("Other"));
    });
}

#[test]
fn responses_come_as_text_as_json_and_as_both() {
    let text = "Sol [nebula] | 2,750cr\nHull: 95/95";
    let structured = value("{\"player\":{\"credits\":2750},\"current_tick\":6}");
    for (response, payload) in [
        (Response::text(text).unwrap(), text.into()),
        (Response::json(structured.clone()), structured.clone()),
        (Response::both(text, structured.clone()), structured.clone()),
        (Response::text(&structured.to_string()).unwrap(), structured.clone()),
        (
            Response::text(&format!(
                "{{\"content\":[{{\"type\":\"text\",\"text\":\"shown\"}}],\"structuredContent\":{structured}}}"
            ))
            .unwrap(),
            structured.clone(),
        ),
        (
            Response::text(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}}}",
                afterimage_json::Value::from(structured.to_string())
            ))
            .unwrap(),
            structured.clone(),
        ),
        (
            Response::text(&format!("{{\"result\":\"shown\",\"structuredContent\":{structured}}}"))
                .unwrap(),
            structured.clone(),
        ),
    ] {
        assert_eq!(response.payload(), &payload);
        in_game(|agent| {
            let call = ToolCall::new("agent-1", "get_status", &response);
            agent.observations.intercept(&call, wall(60)).unwrap();
            let found = agent.observations.get("VoidWanderer", "get_status").unwrap().unwrap();
            assert_eq!(found.value().unwrap(), payload);
        });
    }
}

#[test]
fn the_tick_is_found_at_any_of_its_places() {
    for (response, expected) in [
        ("{\"current_tick\":41}", Some(41)),
        ("{\"data\":{\"current_tick\":42}}", Some(42)),
        ("{\"result\":{\"tick\":43}}", Some(43)),
        ("{\"structuredContent\":{\"a\":1},\"result\":\"x\",\"current_tick\":44}", Some(44)),
        ("{\"current_tick\":null,\"tick\":45}", Some(45)),
        ("{\"current_tick\":\"46\"}", Some(46)),
        ("{\"current_tick\":\"soon\",\"tick\":47}", Some(47)),
        ("{\"current_tick\":-1,\"game_tick\":0}", Some(0)),
        ("{\"current_tick\":18446744073709551615}", None),
        ("{\"a\":1}", None),
    ] {
        in_game(|agent| {
            agent.calls("get_ship", response, wall(1));
            let found = agent.observations.get("VoidWanderer", "get_ship").unwrap().unwrap();
            assert_eq!(found.info.seen.tick, expected, "{response}");
        });
    }
}

#[test]
fn a_prefix_of_nothing_is_none() {
    let policy = Policy { prefixes: vec![String::new()], ..spacemolt() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("login", LOGIN, tick(1));
        assert_eq!(
            agent.calls("spacemolt", "{}", tick(2)).ignored,
            Some(IgnoreReason::NotObserved)
        );
    });
}

#[test]
fn what_could_not_be_read_again_is_not_kept() {
    let nested = |levels: usize| {
        (1..levels).fold(afterimage_json::Value::Array(Vec::new()), |inside, _| {
            afterimage_json::Value::Array(vec![inside])
        })
    };
    let mut policy = spacemolt();
    policy.partials.push(PartialRule {
        tool: "scan".to_owned(),
        from: Pointer::default(),
        into: "get_ship".to_owned(),
        to: pointer("/scans/last"),
    });
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("login", LOGIN, tick(1));
        for (tool, most) in [("get_ship", 128), ("scan", 126)] {
            let says = |levels: usize| {
                let response = Response::json(nested(levels));
                observations.intercept(&ToolCall::new("agent-1", tool, &response), tick(2))
            };
            says(most).unwrap();
            let before = observations.get("VoidWanderer", "get_ship").unwrap().unwrap();
            before.value().unwrap();
            for levels in [most + 1, 1_000] {
                assert_eq!(says(levels).unwrap_err().kind(), ErrorKind::Limit, "{tool} {levels}");
            }
            let after = observations.get("VoidWanderer", "get_ship").unwrap().unwrap();
            assert_eq!(after, before);
        }
    });
}

#[test]
fn an_observation_can_be_kept_for_each_of_its_arguments() {
    let policy = Policy::default();
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "work", wall(0)).unwrap();
        for path in ["a.rs", "b.rs", "a.rs"] {
            agent.tries("read_file", &format!("{{\"path\":\"{path}\"}}"), "text", wall(1)).unwrap();
        }
        let long = format!("{{\"path\":\"{}\"}}", "é".repeat(400));
        agent.tries("read_file", &long, "text", wall(1)).unwrap();
        let names: Vec<String> =
            observations.infos("work").unwrap().into_iter().map(|info| info.name).collect();
        assert_eq!(names.len(), 3);
        assert_eq!(names[0], "read_file {\"path\":\"a.rs\"}");
        assert!(names.iter().all(|name| name.len() <= 200), "{names:?}");
    });
}

// Recency.

#[test]
fn recency_is_in_ticks_with_their_seconds() {
    let long = |seen: u64, now: u64| tick(seen).age(tick(now)).long(Some(10_000));
    assert_eq!(long(40, 42), "2 ticks ago (20 seconds)");
    assert_eq!(long(41, 42), "1 tick ago (10 seconds)");
    assert_eq!(long(0, 50), "50 ticks ago (500 seconds)");
    assert_eq!(long(42, 42), "just now");
    assert_eq!(Age::Ticks(1).long(Some(1_000)), "1 tick ago (1 second)");
    assert_eq!(Age::Ticks(3).long(Some(2_500)), "3 ticks ago (7 seconds)");
    assert_eq!(Age::Ticks(2).long(None), "2 ticks ago");
}

#[test]
fn recency_falls_back_to_the_wall_clock_where_a_tick_is_missing() {
    for (seconds, expected) in [
        (0, "just now"),
        (1, "1 second ago"),
        (30, "30 seconds ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (119, "1 minute ago"),
        (300, "5 minutes ago"),
        (3_599, "59 minutes ago"),
        (3_600, "1 hour ago"),
        (86_399, "23 hours ago"),
        (86_400, "1 day ago"),
        (1_000_000, "11 days ago"),
    ] {
        assert_eq!(wall(100).age(wall(100 + seconds)).short(), expected);
        assert_eq!(wall(100).on(5).age(wall(100 + seconds)).short(), expected);
        assert_eq!(wall(100).age(wall(100 + seconds).on(9)).short(), expected);
    }
    let before = Moment::at(afterimage_json::Millis::new(1_000));
    let after = |millis| Moment::at(afterimage_json::Millis::new(millis));
    assert_eq!(before.age(after(1_999)), Age::JustNow);
    assert_eq!(before.age(after(i64::MAX)).short(), "106751991167 days ago");
    assert_eq!(after(i64::MIN).age(after(i64::MAX)), Age::Seconds(i64::MAX as u64 / 1_000));
}

#[test]
fn a_tick_or_a_clock_that_runs_backwards_reads_just_now() {
    assert_eq!(tick(9).age(tick(3)).short(), "just now");
    assert_eq!(wall(9).age(wall(3)).short(), "just now");
    // The ticks decide where both are known.
    assert_eq!(wall(0).on(9).age(wall(500).on(3)).short(), "just now");
}

#[test]
fn without_a_current_tick_the_latest_of_the_account_counts() {
    in_game(|agent| {
        agent.calls("get_system", &system(30), wall(300));
        agent.calls("get_ship", &ship(35), wall(350));
        let seen = agent.sees(wall(5_000));
        assert!(seen.contains("get_system - 5 ticks ago"), "{seen}");
        assert!(seen.contains("get_ship - just now"), "{seen}");
        // A tool that is not observed tells the tick as well.
        agent.calls("chat", "{\"current_tick\":37}", wall(370));
        assert!(agent.sees(wall(5_000)).contains("get_ship - 2 ticks ago"));
        assert!(agent.sees(wall(5_000).on(60)).contains("get_ship - 25 ticks ago"));
    });
}

#[test]
fn a_world_without_ticks_has_wall_clock_ages() {
    let policy = Policy { tools: vec![ToolRule::new("get_weather")], ..Policy::default() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "home", wall(0)).unwrap();
        agent.calls("get_weather", "{\"sky\":\"clear\"}", wall(10));
        let expected = "## Current State\n\n**Account:** home\n**Last Updated:** 5 minutes ago\n\n\
                        ### Weather (get_weather - 5 minutes ago)\n\n- Sky: clear\n";
        assert_eq!(agent.sees(wall(310)), expected);
    });
}

// The format of a summary.

#[test]
fn the_summary_has_the_format_of_the_specification() {
    in_game(|agent| {
        agent.calls("get_map", &galaxy(487, 50), tick(50));
        agent.calls("get_system", &system(95), tick(95));
        agent.calls("get_status", &status("VoidWanderer", 98, 5_000), tick(98));
        agent.calls("get_ship", &ship(98), tick(98));
        let expected = "\
## Current Game State

**Account:** VoidWanderer (Solarian Empire)
**Last Updated:** 2 ticks ago (20 seconds)

### Status (get_status - 2 ticks ago)

- Credits: 5,000
- Location: Sol System > Asteroid Belt Alpha
- Ship: Cargo Hauler
- Docked: none
- Hull: 85/100
- Fuel: 60/100
- Cargo: 45/100
  - Iron Ore x30
  - Copper Ore x15
- Player home base: earth_station
- Player is cloaked: No

### Ship (get_ship - 2 ticks ago)

- Hull: 85/100
- Shield: 50/50
- Fuel: 60/100
- Cargo: 45/100
  - Iron Ore x30
  - Copper Ore x15

### System (get_system - 5 ticks ago)

- Sol System (Solarian Empire)
- POIs: Earth, Mars, Asteroid Belt Alpha, Station Alpha
- Connections: Alpha Centauri, Barnard's Star
- System id: sol

### Map (get_map - 50 ticks ago)

- 487 systems cached
- Use get_map to refresh full galaxy data

**Note:** Call get_notifications to see events since last update.
**Stale data:** get_map is 50 ticks old - consider refreshing if planning long journey.
";
        assert_eq!(agent.sees(tick(100)), expected);
    });
}

#[test]
fn the_short_form_names_the_tools_that_update() {
    let policy = Policy { form: Form::Short, closing: SummaryEnding::Update, ..spacemolt() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 98, 5_000), tick(98));
        agent.calls("get_ship", &ship(90), tick(98));
        let seen = agent.sees(tick(100));
        let head = "Current Game State (updated 2 ticks ago):\n  \
                    Account: VoidWanderer (Solarian Empire)\n  Credits: 5,000 (2 ticks ago)\n";
        assert!(seen.starts_with(head), "{seen}");
        assert!(seen.contains("\n  Shield: 50/50 (10 ticks ago)\n"), "{seen}");
        let end = "\n\nTo update: call get_status, get_ship, get_notifications, get_location, get_cargo\n";
        assert!(seen.ends_with(end), "{seen}");
    });
}

#[test]
fn the_short_form_tells_a_fact_of_two_tools_once_and_takes_the_newer() {
    let policy = Policy { form: Form::Short, ..spacemolt() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        let put = |tool: &str, hull: u64, at: u64| {
            let answer = format!(
                "{{\"player\":{{\"username\":\"Ada\"}},\"ship\":{{\"hull\":{hull},\"max_hull\":90}}}}"
            );
            agent.calls(tool, &answer, tick(at));
        };
        for (older, newer) in [("get_status", "get_ship"), ("get_ship", "get_status")] {
            observations.register("agent-1", "Ada", tick(1)).unwrap();
            put(older, 7, 2);
            put(newer, 8, 3);
            let seen = agent.sees(tick(4));
            assert_eq!(seen.matches("Hull: ").count(), 1, "{seen}");
            assert!(seen.contains("  Hull: 8/90 (1 tick ago)\n"), "{seen}");
        }
    });
}

#[test]
fn the_hint_for_the_rest_of_a_tool_stands_once() {
    on_each_store(&Policy::default(), |observations| {
        observations.login("agent-1", "Ada", wall(0)).unwrap();
        let agent = Agent { observations, name: "agent-1" };
        for page in 0..5 {
            let answer = format!("{{\"page\":{page},\"items\":[{{\"a\":1}},{{\"a\":2}}]}}");
            agent.tries("list", &format!("{{\"page\":{page}}}"), &answer, wall(0)).unwrap();
        }
        let seen = agent.sees(wall(0));
        assert_eq!(seen.matches("- Items: 2 entries\n").count(), 5, "{seen}");
        assert_eq!(seen.matches("- Use list for the rest\n").count(), 1, "{seen}");
    });
}

#[test]
fn long_lists_are_counts_with_a_hint() {
    in_game(|agent| {
        let items: Vec<String> = (0..300).map(|at| format!("{{\"id\":{at}}}")).collect();
        agent.calls(
            "get_missions",
            &format!("{{\"all\":[{}],\"page\":1}}", items.join(",")),
            tick(2),
        );
        let seen = agent.sees(tick(2));
        assert!(seen.contains("- All: 300 entries\n- Use get_missions for the rest\n"), "{seen}");
    });
}

#[test]
fn what_changed_comes_before_what_is_marked_before_the_small_before_the_many() {
    let rule = ToolRule { important: vec![pointer("/c")], ..ToolRule::new("get") };
    let policy = Policy { tools: vec![rule], ..Policy::default() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "x", wall(0)).unwrap();
        agent.calls("get", "{\"a\":[[1],[2]],\"b\":1,\"c\":1,\"d\":1}", wall(0));
        agent.calls("get", "{\"a\":[[1],[2]],\"b\":1,\"c\":1,\"d\":2}", wall(0));
        let seen = agent.sees(wall(0));
        assert!(seen.contains("- D: 2\n- C: 1\n- B: 1\n- A: 2 entries\n"), "{seen}");
    });
}

#[test]
fn the_whole_payload_is_one_call_away() {
    in_game(|agent| {
        let galaxy = galaxy(487, 5);
        agent.calls("get_map", &galaxy, tick(5));
        let found = agent.observations.get("VoidWanderer", "get_map").unwrap().unwrap();
        assert_eq!(*found.content, *galaxy);
    });
}

// Staleness.

#[test]
fn travel_makes_the_location_of_the_status_stale() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let outcome = agent.calls("travel", "{\"ok\":true}", tick(3));
        assert_eq!(outcome.stale, ["get_status#/location"]);
        let seen = agent.sees(tick(5));
        let mark = "- Stale since travel (2 ticks ago): location. Call get_status.\n- Credits";
        assert!(seen.contains(mark), "{seen}");
        // To travel again does not make it any fresher.
        agent.calls("travel", "{\"ok\":true}", tick(5));
        assert!(agent.sees(tick(5)).contains("Stale since travel (2 ticks ago): location."));
        agent.calls("get_status", &status("VoidWanderer", 6, 5_000), tick(6));
        assert!(!agent.sees(tick(6)).contains("Stale"));
    });
}

#[test]
fn mine_makes_the_cargo_of_the_ship_stale() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        assert_eq!(agent.calls("mine", "Mined 3 ore.", tick(3)).stale, ["get_ship#/cargo"]);
        assert!(
            agent.sees(tick(3)).contains("- Stale since mine (just now): cargo. Call get_ship.\n")
        );
    });
}

#[test]
fn buy_makes_the_credits_of_the_status_stale() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let stale = agent.calls("buy", "{\"bought\":1}", tick(3)).stale;
        assert_eq!(stale, ["get_status#/player/credits", "get_status#/cargo"]);
        let seen = agent.sees(tick(3));
        assert!(seen.contains("Stale since buy (just now): player credits, cargo. Call"), "{seen}");
    });
}

#[test]
fn attack_makes_the_ship_stale() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        assert_eq!(agent.calls("attack", "{}", tick(3)).stale, ["get_ship#/ship"]);
    });
}

#[test]
fn a_jump_makes_the_whole_system_stale() {
    in_game(|agent| {
        agent.calls("get_system", &system(2), tick(2));
        assert_eq!(agent.calls("jump", "{}", tick(3)).stale, ["get_system"]);
        assert!(agent.sees(tick(3)).contains("Stale since jump (just now): all of it. Call"));
        assert_eq!(agent.observations.stale("VoidWanderer", tick(3)).unwrap().len(), 1);
    });
}

#[test]
fn an_observation_is_called_old_after_its_ticks() {
    in_game(|agent| {
        agent.calls("get_map", &galaxy(3, 10), tick(10));
        assert!(!agent.sees(tick(59)).contains("Stale data"));
        let note = "**Stale data:** get_map is 50 ticks old - consider refreshing if planning long journey.\n";
        assert!(agent.sees(tick(60)).ends_with(note), "{}", agent.sees(tick(60)));
        assert!(agent.observations.stale("VoidWanderer", tick(59)).unwrap().is_empty());
        assert_eq!(agent.observations.stale("VoidWanderer", tick(60)).unwrap()[0].name, "get_map");
    });
    // Where no tick is known, the wall clock stands for it.
    in_game(|agent| {
        observations_without_ticks(agent);
    });
}

fn observations_without_ticks(agent: &Agent<'_>) {
    agent.observations.register("agent-1", "Clockless", wall(0)).unwrap();
    agent.calls("get_map", "{\"systems\":[]}", wall(0));
    assert!(!agent.sees(wall(499)).contains("Stale data"));
    let seen = agent.sees(wall(500));
    assert!(seen.contains("**Stale data:** get_map is 8 minutes old - consider"), "{seen}");
}

// Partial updates.

#[test]
fn a_partial_response_merges_and_does_not_replace() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let outcome = agent.calls(
            "get_notifications",
            "{\"current_tick\":6,\"player\":{\"credits\":5250},\"events\":[\"sold\"]}",
            tick(6),
        );
        assert_eq!((outcome.merged, outcome.changed), (vec!["get_status".to_owned()], 1));
        let found = agent.observations.get("VoidWanderer", "get_status").unwrap().unwrap();
        let known = found.value().unwrap();
        assert_eq!(known.pointer("/player/credits"), Some(&5_250_u64.into()));
        assert_eq!(known.pointer("/player/home_base"), Some(&"earth_station".into()));
        assert_eq!(known.pointer("/ship/hull"), Some(&85_u64.into()));
        let seen = agent.sees(tick(8));
        assert!(seen.contains("### Status (get_status - 6 ticks ago)"), "{seen}");
        assert!(seen.contains("- Credits: 5,250 (2 ticks ago)\n"), "{seen}");
        assert!(seen.contains("**Last Updated:** 2 ticks ago (20 seconds)"), "{seen}");
    });
}

#[test]
fn a_part_that_is_null_says_nothing() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        agent.calls("travel", "{}", tick(2));
        let before = agent.observations.get("VoidWanderer", "get_status").unwrap();
        let nothing = "{\"state\":null,\"player\":null,\"current_tick\":3}";
        assert!(agent.calls("get_notifications", nothing, tick(3)).merged.is_empty());
        assert_eq!(agent.observations.get("VoidWanderer", "get_status").unwrap(), before);
    });
}

#[test]
fn each_path_knows_when_it_was_last_seen() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let part = "{\"player\":{\"credits\":5250,\"rank\":{\"name\":\"Ace\"}}}";
        agent.calls("get_notifications", part, tick(6));
        let found = agent.observations.get("VoidWanderer", "get_status").unwrap().unwrap();
        let seen = |at: &str| agent.observations.seen(&found, &pointer(at)).unwrap();
        assert_eq!(seen("/player/credits"), Some(tick(6)));
        assert_eq!(seen("/player/rank/name"), Some(tick(6)));
        assert_eq!(seen("/player/rank"), Some(tick(6)));
        assert_eq!(seen("/player/home_base"), Some(tick(2)));
        // What holds both is as old as the older.
        assert_eq!(seen("/player"), Some(tick(2)));
        assert_eq!(seen(""), Some(tick(2)));
        assert_eq!(seen("/nothing"), None);
    });
}

#[test]
fn arrays_merge_by_the_key_that_the_policy_names() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let part = "{\"cargo\":[{\"item_id\":\"gold_ore\",\"item_name\":\"Gold Ore\",\"quantity\":2},\
                    {\"item_id\":\"iron_ore\",\"quantity\":31}]}";
        agent.calls("get_cargo", part, tick(6));
        let found = agent.observations.get("VoidWanderer", "get_status").unwrap().unwrap();
        let cargo = found.value().unwrap().get("cargo").unwrap().to_string();
        let expected = "[{\"item_id\":\"iron_ore\",\"item_name\":\"Iron Ore\",\"quantity\":31},\
                        {\"item_id\":\"copper_ore\",\"item_name\":\"Copper Ore\",\"quantity\":15},\
                        {\"item_id\":\"gold_ore\",\"item_name\":\"Gold Ore\",\"quantity\":2}]";
        assert_eq!(cargo, expected);
        let seen = |at: &str| agent.observations.seen(&found, &pointer(at)).unwrap();
        for (at, of) in [
            ("/cargo/item_id=iron_ore/quantity", 6),
            ("/cargo/0/quantity", 6),
            ("/cargo/item_id=iron_ore/item_name", 2),
            ("/cargo/item_id=copper_ore", 2),
            ("/cargo/2", 6),
            ("/cargo", 2),
        ] {
            assert_eq!(seen(at), Some(tick(of)), "{at}");
        }
    });
}

#[test]
fn a_part_of_what_was_never_seen_whole_is_kept_as_a_part() {
    in_game(|agent| {
        agent.calls("get_notifications", "{\"player\":{\"credits\":70}}", tick(3));
        let seen = agent.sees(tick(4));
        assert!(seen.contains("### Status (get_status - 1 tick ago, in part)\n\n- Credits: 70\n"));
        agent.calls("get_status", &status("VoidWanderer", 5, 80), tick(5));
        assert!(agent.sees(tick(5)).contains("(get_status - just now)"));
    });
}

#[test]
fn a_partial_response_clears_the_marks_of_what_it_names() {
    in_game(|agent| {
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        agent.calls("buy", "{}", tick(2));
        agent.calls("get_notifications", "{\"player\":{\"clan\":\"x\"}}", tick(2));
        assert!(agent.sees(tick(2)).contains("(just now): player credits, cargo."));
        agent.calls("get_notifications", "{\"player\":{\"credits\":4000}}", tick(3));
        assert!(agent.sees(tick(3)).contains("(1 tick ago): cargo."));
    });
}

#[test]
fn an_action_may_answer_with_what_it_changed() {
    let mut policy = spacemolt();
    policy.partials.push(PartialRule {
        tool: "travel".to_owned(),
        from: pointer("/arrived"),
        into: "get_status".to_owned(),
        to: pointer("/location"),
    });
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let arrived = "{\"arrived\":{\"system_name\":\"Sol System\",\"poi_name\":\"Mars\",\"docked_at\":null}}";
        agent.calls("travel", arrived, tick(3));
        let seen = agent.sees(tick(3));
        assert!(seen.contains("- Location: Sol System > Mars (just now)\n"), "{seen}");
        assert!(!seen.contains("Stale since"), "{seen}");
    });
}

// Edge cases and phases.

#[test]
fn without_an_account_the_summary_says_how_to_get_one() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        assert_eq!(agent.sees(tick(1)), "Not logged in. Use register or login.\n");
        let nobody = observations.summary("Nobody", tick(1), 500).unwrap();
        assert_eq!((nobody.text(), nobody.account()), (agent.sees(tick(1)).as_str(), None));
        assert_eq!(
            agent.calls("get_ship", &ship(1), tick(1)).ignored,
            Some(IgnoreReason::NoAccount)
        );
        agent.calls("login", LOGIN, tick(1));
        assert!(agent.sees(tick(1)).contains("**Account:** VoidWanderer"));
    });
}

#[test]
fn the_operations_are_store_get_list_and_delete() {
    in_game(|agent| {
        let observations = agent.observations;
        agent.calls("get_ship", &ship(2), tick(2));
        agent.calls("get_system", &system(2), tick(2));
        let names = || -> Vec<String> {
            let infos = observations.infos("VoidWanderer").unwrap();
            infos.into_iter().map(|info| info.name).collect()
        };
        assert_eq!(names(), ["get_ship", "get_system"]);
        assert!(observations.get("VoidWanderer", "get_ship").unwrap().is_some());
        assert!(observations.get("VoidWanderer", "get_map").unwrap().is_none());
        assert_eq!(observations.clear("VoidWanderer", Some("get_ship")).unwrap(), 1);
        assert_eq!(names(), ["get_system"]);
        assert_eq!(observations.clear("VoidWanderer", None).unwrap(), 1);
        assert_eq!(observations.clear("Nobody", None).unwrap(), 0);
    });
}

#[test]
fn repeated_calls_that_found_a_fresh_observation_are_counted() {
    in_game(|agent| {
        agent.calls("get_ship", &ship(2), tick(2));
        assert!(agent.calls("get_ship", &ship(2), tick(3)).was_fresh);
        agent.calls("mine", "{}", tick(4));
        assert!(!agent.calls("get_ship", &ship(4), tick(4)).was_fresh);
        assert!(!agent.calls("get_ship", &ship(40), tick(40)).was_fresh);
        let figures = agent.observations.figures().unwrap();
        let ship = figures.iter().find(|(name, _)| name == "get_ship").unwrap().1;
        assert_eq!((ship.calls, ship.kept, ship.fresh_repeats, ship.unchanged), (4, 4, 1, 3));
        let metrics = agent.observations.metrics().unwrap();
        // Of a login, an action and four calls of a tool, one was for nothing.
        assert!((metrics.repeated_share - 1.0 / 6.0).abs() < 1e-9, "{metrics:?}");
    });
}

#[test]
fn the_measures_of_success_can_be_read_off() {
    in_game(|agent| {
        agent.calls("get_map", &galaxy(487, 2), tick(2));
        for now in 3..13 {
            let summary = agent.observations.summary_of_agent("agent-1", tick(now), 500).unwrap();
            agent.observations.record_shown(&summary).unwrap();
        }
        let metrics = agent.observations.metrics().unwrap();
        assert!((metrics.calls_per_context - 0.2).abs() < 1e-9, "{metrics:?}");
        assert!(metrics.context_bytes_without > 180_000.0, "{metrics:?}");
        assert!(metrics.context_bytes_with < 2_000.0, "{metrics:?}");
        let (_, map) = &agent.observations.figures().unwrap()[1];
        assert_eq!(map.contexts, 10);
        assert!(map.tokens_saved() > 10 * 45_000, "{map:?}");
    });
}

// Policies.

#[test]
fn what_a_policy_says_is_read_or_refused() {
    let policy = spacemolt();
    assert_eq!(Policy::from_json(policy.to_json()).unwrap(), policy);
    for (text, at) in [
        ("{\"tols\":[]}", None),
        ("{\"ticks\":[\"current_tick\"]}", Some("/ticks/0")),
        (
            "{\"tools\":[{\"name\":\"a\",\"lines\":[{\"label\":\"x\",\"value\":\"{/a\"}]}]}",
            Some("/tools/0/lines/0/value"),
        ),
        ("{\"tools\":[{\"name\":\"a\",\"lines\":[{\"label\":\"x\"}]}]}", Some("/tools/0/lines/0")),
        ("{\"tools\":[{}]}", Some("/tools/0/name")),
        ("{\"actions\":[{\"tool\":\"a\",\"stale\":[\"b#c\"]}]}", Some("/actions/0/stale/0")),
        ("{\"form\":\"long\"}", Some("/form")),
        ("[]", None),
    ] {
        let error = Policy::from_json(value(text)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape, "{text}");
        assert_eq!(error.place().path.as_deref(), at, "{text}: {error}");
    }
    let misspelt = "{\"tools\":[{\"name\":\"a\",\"lines\":[{\"label\":\"x\",\"eech\":\"/a\"}]}]}";
    let error = Policy::from_json(value(misspelt)).unwrap_err();
    assert!(error.message().contains("\"eech\""), "{error}");
    let error = Policy::from_json(value("{\"version\":2}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert_eq!(Target::parse("get_status#/location").unwrap().to_string(), "get_status#/location");
}

#[cfg(feature = "toml")]
#[test]
fn the_policy_file_of_the_examples_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policies/spacemolt.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(Policy::from_toml(&text).unwrap(), spacemolt());
    let error = Policy::from_toml("heading = \"x\"\nticks = [").unwrap_err();
    assert_eq!((error.kind(), error.place().line), (ErrorKind::Shape, Some(2)));
    assert_eq!(Policy::from_toml("[[tools]]\nname = 1.5").unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn an_outline_of_another_policy_is_made_anew() {
    let store = std::sync::Arc::new(afterimage_observe::MemoryStore::default());
    let first = Observations::new(Shared(store.clone()), spacemolt());
    let agent = Agent { observations: &first, name: "agent-1" };
    agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    let rule = ToolRule {
        important: vec![pointer("/player/home_base")],
        only_marked: true,
        ..ToolRule::new("get_status")
    };
    let second =
        Observations::new(Shared(store), Policy { tools: vec![rule], ..Policy::default() });
    let seen = second.summary("VoidWanderer", tick(2), 500).unwrap();
    assert!(seen.text().contains("- Player home base: earth_station\n"), "{}", seen.text());
    assert!(!seen.text().contains("Credits"));
}

struct Shared(std::sync::Arc<afterimage_observe::MemoryStore>);

impl afterimage_observe::ObservationStore for Shared {
    fn read(
        &self,
        job: &mut dyn FnMut(&dyn afterimage_observe::StoreReader) -> afterimage_observe::Result<()>,
    ) -> afterimage_observe::Result<()> {
        self.0.read(job)
    }

    fn write(
        &self,
        job: &mut dyn FnMut(
            &mut dyn afterimage_observe::StoreWriter,
        ) -> afterimage_observe::Result<()>,
    ) -> afterimage_observe::Result<()> {
        self.0.write(job)
    }
}
