//! Which answers replace what is known, what to ask before a call, and who has an account.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::observing;

use afterimage::{
    observe::{
        ErrorKind, IgnoreReason, LineRule, Observations, PlannedCall, Policy, ReplacementRule,
        Response, ToolCall, ToolRule, Verdict,
    },
    session::bridge::observed::Repeats,
};
use observing::{Agent, galaxy, on_each_store, ship, spacemolt, status, tick, value, wall};

/// Runs a test on each store, with an agent that knows its status since tick 100.
fn informed(test: impl Fn(&Agent<'_>)) {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("get_status", &status("Ada", 100, 5_000), tick(100));
        test(&agent);
    });
}

fn credits(observations: &Observations) -> u64 {
    let found = observations.get("Ada", "get_status").unwrap().unwrap();
    found.value().unwrap().pointer("/player/credits").unwrap().as_u64().unwrap()
}

fn figures(observations: &Observations, tool: &str) -> afterimage::observe::Figures {
    observations.figures().unwrap().into_iter().find(|(name, _)| name == tool).unwrap().1
}

// What replaces nothing.

#[test]
fn an_answer_that_is_empty_an_error_or_of_another_shape_replaces_nothing_and_is_told() {
    let limited = "Rate limited, try again in 5 s";
    for (answer, reason, told) in [
        ("", IgnoreReason::Empty, "the answer was empty"),
        ("  \n", IgnoreReason::Empty, "the answer was empty"),
        ("{}", IgnoreReason::Empty, "the answer was empty: {}"),
        ("[]", IgnoreReason::Empty, "the answer was empty: []"),
        ("{\"message\":\"slow down\",\"current_tick\":101}", IgnoreReason::Empty, "slow down"),
        ("{\"content\":[]}", IgnoreReason::Empty, "the answer was empty"),
        (limited, IgnoreReason::Failed, "the call failed: Rate limited, try again in 5 s"),
        ("429 Too Many Requests", IgnoreReason::Failed, "the call failed: 429"),
        ("Error: maintenance", IgnoreReason::Failed, "the call failed: Error: maintenance"),
        ("{\"error\":{\"code\":1}}", IgnoreReason::Failed, "the call failed"),
        (
            "The server restarts soon.",
            IgnoreReason::OtherShape,
            "another shape: The server restarts",
        ),
        ("[1,2]", IgnoreReason::OtherShape, "the answer had another shape: [1,2]"),
        ("7", IgnoreReason::OtherShape, "the answer had another shape: 7"),
        ("{\"retry_after\":5,\"queue\":{}}", IgnoreReason::OtherShape, "had another shape"),
    ] {
        informed(|agent| {
            let before = agent.observations.get("Ada", "get_status").unwrap();
            let outcome = agent.calls("get_status", answer, tick(101));
            assert_eq!(outcome.ignored, Some(reason), "{answer}");
            assert_eq!((outcome.aside.as_deref(), &outcome.stored), (Some("get_status"), &None));
            assert_eq!(agent.observations.get("Ada", "get_status").unwrap(), before, "{answer}");
            let seen = agent.sees(tick(103));
            let line = seen.lines().find(|line| line.starts_with("- Not updated")).unwrap();
            assert!(line.starts_with("- Not updated (2 ticks ago): ") && line.contains(told));
            assert!(seen.contains("- Credits: 5,000\n"), "{seen}");
            // What was set aside is there, and counted.
            let aside = agent.observations.aside("Ada", "get_status").unwrap().unwrap();
            assert_eq!((aside.info.reason, aside.info.count), (reason, 1));
            let figures = figures(agent.observations, "get_status");
            assert_eq!(figures.kept, 1);
            assert_eq!(figures.failed + figures.set_aside(), 1, "{answer}");
            // The next good answer takes its place, and nothing more is told.
            agent.calls("get_status", &status("Ada", 104, 5_100), tick(104));
            assert!(!agent.sees(tick(104)).contains("Not updated"));
            assert!(agent.observations.asides("Ada").unwrap().is_empty());
        });
    }
}

/// What becomes of an answer of a tool of which this is known.
fn after(known: &str, answer: &str) -> Option<IgnoreReason> {
    let observations = Observations::in_memory(Policy::default()).unwrap();
    let says = |text: &str, at| {
        let response = Response::text(text).unwrap();
        let call = ToolCall::of_account("Ada", "look", &response);
        let outcome = observations.intercept(&call, tick(at)).unwrap();
        let content = observations.get("Ada", "look").unwrap().unwrap().value().unwrap();
        // A text is kept byte for byte.
        let is_kept = outcome.stored.is_some();
        assert!(!is_kept || content.as_str().is_none_or(|content| content == text), "{text}");
        outcome.ignored
    };
    assert_eq!(says(known, 1), None, "{known}");
    says(answer, 2)
}

const DASHBOARD: &str = "Hull 90 of 100\nFuel 12\nCargo: 3 ore";

#[test]
fn a_bare_scalar_of_json_is_empty_or_of_the_shape_that_it_says() {
    let line = "Docked at Earth";
    for known in [DASHBOARD, line, "{\"hull\":90}", "[1]", "7"] {
        for empty in ["null", " null\n", "\"\"", "\"  \""] {
            assert_eq!(after(known, empty), Some(IgnoreReason::Empty), "{known} {empty}");
        }
        let limited = "\"Rate limited, try again\"";
        assert_eq!(after(known, limited), Some(IgnoreReason::Failed), "{known}");
    }
    for scalar in ["7", "true", "-1.5e3"] {
        assert_eq!(after(DASHBOARD, scalar), Some(IgnoreReason::OtherShape), "{scalar}");
        assert_eq!(after("{\"hull\":90}", scalar), Some(IgnoreReason::OtherShape), "{scalar}");
        // A tool may say a number at one time, and a word at another.
        assert_eq!(after(line, scalar), None, "{scalar}");
        assert_eq!(after(scalar, line), None, "{scalar}");
        assert_eq!(after(scalar, "43"), None, "{scalar}");
    }
    // What is nothing is no observation, and the next answer is the first.
    for nothing in ["null", "\"\"", ""] {
        let observations = Observations::in_memory(Policy::default()).unwrap();
        let says = |text: &str| {
            let response = Response::text(text).unwrap();
            let call = ToolCall::of_account("Ada", "look", &response);
            observations.intercept(&call, tick(1)).unwrap()
        };
        assert_eq!(says(nothing).ignored, Some(IgnoreReason::Empty), "{nothing}");
        assert_eq!(says(DASHBOARD).stored.as_deref(), Some("look"), "{nothing}");
    }
    for text in ["nullified", "\"Ada\" is docked", "7 ships", "true north", "\"quoted\""] {
        assert_eq!(after(DASHBOARD, text), None, "{text}");
    }
}

#[test]
fn a_line_that_tells_an_error_replaces_nothing_and_a_good_line_does() {
    for error in [
        "Error: connection reset by peer",
        "ERROR: no such ship",
        "Internal error",
        "internal error: out of memory",
        "Internal error while docking",
        "Internal Server Error",
        "502 Bad Gateway",
        "bad gateway",
        "Service Unavailable",
        "timeout",
        "Timed out.",
        "Timeout: no answer",
        "timed out after 30 s",
        "timeout of 3000 ms exceeded",
    ] {
        for known in [DASHBOARD, "Docked at Earth", "{\"hull\":90}"] {
            assert_eq!(after(known, error), Some(IgnoreReason::Failed), "{known}: {error}");
        }
    }
    let long = format!("Error: {}", "a log of many words ".repeat(20));
    for good in [
        "Error: none",
        "error: 0",
        "Errors: none",
        "Internal errors: 0",
        "Internal error count: 0",
        "Timeout: 30 s",
        "timeout=30",
        "Timeouts are off",
        "No error: all is well",
        "The internal error log is empty",
        "Error: 3 of 9\nHull 90",
        long.as_str(),
    ] {
        assert_eq!(after(DASHBOARD, good), None, "{good}");
    }
}

#[test]
fn a_page_of_html_replaces_nothing_but_a_page() {
    let map = "<html>the map</html>";
    for error in ["<html>502</html>", "\n<!DOCTYPE html>\n<html>\n<h1>502</h1>"] {
        for known in [DASHBOARD, "Docked at Earth", "{\"hull\":90}", map] {
            assert_eq!(after(known, error), Some(IgnoreReason::Failed), "{known}: {error}");
        }
    }
    let page = "<!DOCTYPE html>\n<html>\n<h1>Welcome</h1>";
    for known in [DASHBOARD, "Docked at Earth", "{\"hull\":90}"] {
        assert_eq!(after(known, page), Some(IgnoreReason::OtherShape), "{known}: {page}");
    }
    assert_eq!(after(map, page), None);
    assert_eq!(after(map, DASHBOARD), None);
    assert_eq!(after(DASHBOARD, "<hull> 90"), None);
}

#[test]
fn escapes_that_were_mended_are_counted() {
    for (text, count) in [
        ("{\"a\":\"\\ud83d\",\"b\":\"\\udc00\"}", 2),
        ("[\"\\ud83d\"]", 1),
        ("{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":\\\"\\\\ud83d\\\"}\"}]}", 1),
        ("{\"a\":\"\\ud83d\\ude00\"}", 0),
        ("\"\\ud83d\"", 0),
    ] {
        assert_eq!(Response::text(text).unwrap().mended(), count, "{text}");
    }
}

#[test]
fn an_answer_that_arrives_late_replaces_nothing_newer() {
    informed(|agent| {
        let outcome = agent.calls("get_status", &status("Ada", 90, 100), tick(101));
        assert_eq!(outcome.ignored, Some(IgnoreReason::Older));
        assert_eq!(credits(agent.observations), 5_000);
        let seen = agent.sees(wall(1_010));
        assert!(seen.contains("### Status (get_status - just now)\n\n- Not updated"), "{seen}");
        assert!(seen.contains("(10 ticks ago): the answer was older than this\n"), "{seen}");
        // Nor does it turn back the clock of the account.
        agent.calls("get_ship", &ship(90), tick(102));
        let seen = agent.sees(wall(1_020));
        assert!(seen.contains("### Ship (get_ship - 10 ticks ago)"), "{seen}");
        // The tick decides where both are known, else the clock.
        assert_eq!(agent.calls("get_status", &status("Ada", 100, 6_000), tick(99)).ignored, None);
        assert_eq!(credits(agent.observations), 6_000);
    });
    let policy = Policy { tools: vec![ToolRule::new("get_weather")], ..Policy::default() };
    on_each_store(&policy, |observations| {
        let says = |text: &str, at| {
            let response = Response::text(text).unwrap();
            let call = ToolCall::of_account("home", "get_weather", &response);
            observations.intercept(&call, wall(at)).unwrap()
        };
        says("{\"sky\":\"clear\"}", 60);
        assert_eq!(says("{\"sky\":\"rain\"}", 30).ignored, Some(IgnoreReason::Older));
        assert_eq!(says("{\"sky\":\"snow\"}", 60).changed, 1);
    });
}

#[test]
fn a_part_that_arrives_late_or_is_no_part_is_not_merged() {
    informed(|agent| {
        let late = "{\"current_tick\":90,\"player\":{\"credits\":1}}";
        let outcome = agent.calls("get_notifications", late, tick(101));
        assert_eq!((outcome.ignored, outcome.merged.len()), (Some(IgnoreReason::Older), 0));
        let garbage = "{\"current_tick\":101,\"player\":\"try again\"}";
        let outcome = agent.calls("get_notifications", garbage, tick(101));
        assert_eq!(outcome.ignored, Some(IgnoreReason::OtherShape));
        assert_eq!(credits(agent.observations), 5_000);
        // A full answer that is older than a part would take the part back.
        agent.calls("get_notifications", "{\"player\":{\"credits\":5300}}", tick(110));
        let outcome = agent.calls("get_status", &status("Ada", 105, 5_100), tick(111));
        assert_eq!(outcome.ignored, Some(IgnoreReason::Older));
        assert_eq!(credits(agent.observations), 5_300);
    });
}

#[test]
fn an_action_before_the_observation_makes_nothing_stale() {
    informed(|agent| {
        assert!(agent.calls("travel", "{\"current_tick\":95}", tick(101)).stale.is_empty());
        assert_eq!(agent.calls("travel", "{\"current_tick\":101}", tick(101)).stale.len(), 1);
    });
}

#[test]
fn an_answer_that_grows_shrinks_or_brings_json_for_text_replaces() {
    for (known, new) in [
        ("{\"all\":[1],\"page\":1}", "{\"all\":[1]}"),
        ("{\"all\":[1]}", "{\"all\":[],\"page\":1,\"more\":{}}"),
        ("[1]", "[]"),
        ("Docked at: Sol", "No ships here."),
        ("Server starts", "{\"ships\":[]}"),
        ("{\"error\":\"\",\"message\":\"starting\"}", "{\"ships\":[]}"),
        ("", "Docked at: Sol"),
        ("{}", "text"),
    ] {
        on_each_store(&spacemolt(), |observations| {
            let agent = Agent { observations, name: "agent-1" };
            observations.login("agent-1", "Ada", tick(1)).unwrap();
            agent.calls("get_nearby", known, tick(2));
            let outcome = agent.calls("get_nearby", new, tick(3));
            assert_eq!(outcome.stored.as_deref(), Some("get_nearby"), "{known} {new}");
        });
    }
    // Members that parts brought along are not missed in a full answer.
    informed(|agent| {
        let many: Vec<String> = (0..20).map(|at| format!("\"m{at}\":{{\"a\":1}}")).collect();
        let part = format!("{{\"state\":{{{}}}}}", many.join(","));
        agent.calls("get_notifications", &part, tick(101));
        let outcome = agent.calls("get_status", &status("Ada", 102, 1), tick(102));
        assert_eq!(outcome.ignored, None);
    });
}

#[test]
fn a_policy_may_take_answers_of_any_shape() {
    let rule = ToolRule { accepts: ReplacementRule::Any, ..ToolRule::new("run") };
    let policy = Policy { tools: vec![rule], ..Policy::default() };
    assert_eq!(Policy::from_json(policy.to_json()).unwrap(), policy);
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "work", wall(0)).unwrap();
        agent.calls("run", "{\"a\":1,\"b\":2}", wall(1));
        for (at, answer) in ["", "text", "{\"c\":1}"].into_iter().enumerate() {
            let outcome = agent.calls("run", answer, wall(2 + at as u64));
            assert_eq!(outcome.stored.as_deref(), Some("run"), "{answer}");
        }
    });
}

#[test]
fn what_was_set_aside_can_be_accepted() {
    informed(|agent| {
        for at in [101, 102] {
            agent.calls("get_status", "Ada [solarian] | 7,000cr", tick(at));
        }
        let seen = agent.sees(tick(103));
        assert!(seen.contains("- Not updated (2 times, the last 1 tick ago): the answer had"));
        let outcome = agent.observations.accept("Ada", "get_status").unwrap().unwrap();
        assert_eq!(outcome.stored.as_deref(), Some("get_status"));
        let seen = agent.sees(tick(103));
        assert!(seen.contains("- Ada [solarian] | 7,000cr\n"), "{seen}");
        assert!(!seen.contains("Not updated"), "{seen}");
        assert_eq!(agent.observations.accept("Ada", "get_status").unwrap(), None);
    });
    // A world that began anew at tick 0.
    informed(|agent| {
        agent.calls("get_status", &status("Ada", 3, 10), wall(2_000));
        agent.observations.accept("Ada", "get_status").unwrap().unwrap();
        assert_eq!(credits(agent.observations), 10);
        assert_eq!(agent.calls("get_status", &status("Ada", 5, 20), wall(2_010)).ignored, None);
        assert!(agent.sees(wall(2_020)).contains("(get_status - just now)"));
    });
}

#[test]
fn what_was_set_aside_goes_with_the_account() {
    informed(|agent| {
        let refused = || drop(agent.calls("get_status", "", tick(101)));
        let asides = || agent.observations.asides("Ada").unwrap().len();
        refused();
        assert_eq!(
            (asides(), agent.observations.clear("Ada", Some("get_status")).unwrap()),
            (1, 1)
        );
        assert_eq!(asides(), 0);
        agent.calls("get_status", &status("Ada", 102, 1), tick(102));
        refused();
        agent.calls("logout", "{}", tick(103));
        assert_eq!(asides(), 0);
    });
}

// What to ask before a call.

#[test]
fn before_a_call_one_can_ask_whether_it_can_be_spared() {
    informed(|agent| {
        let observations = agent.observations;
        agent.calls("get_map", &galaxy(3, 100), tick(100));
        let asks = |tool: &str, at| {
            observations.freshness(&PlannedCall::new("agent-1", tool), tick(at)).unwrap()
        };
        let says = |tool: &str, at| asks(tool, at).text();
        assert_eq!(says("get_map", 103), "get_map: known, 3 ticks old, fresh enough.");
        assert_eq!(says("mcp__spacemolt__get_map", 103), says("get_map", 103));
        assert_eq!(
            says("get_map", 160),
            "get_map: known, 60 ticks old; it counts as old from 50 ticks on. Call it."
        );
        assert_eq!(says("get_ship", 103), "get_ship: not known. Call it.");
        assert_eq!(says("chat", 103), "chat: not observed. Call it.");
        agent.calls("travel", "{}", tick(101));
        assert_eq!(
            says("get_status", 103),
            "get_status: known, 3 ticks old, but stale: location since travel (2 ticks ago). Call it."
        );
        agent.calls("get_notifications", "{\"state\":{}}", tick(101));
        agent.calls("get_map", "", tick(102));
        assert_eq!(
            says("get_map", 103),
            "get_map: known, 3 ticks old, fresh enough. Its last answer was set aside (1 tick \
             ago): the answer was empty."
        );
        for (tool, at, verdict) in [
            ("get_map", 103, Verdict::Fresh),
            ("get_map", 160, Verdict::Old),
            ("get_status", 103, Verdict::Stale),
            ("get_ship", 103, Verdict::Unknown),
            ("chat", 103, Verdict::NotObserved),
        ] {
            let freshness = asks(tool, at);
            assert_eq!(freshness.verdict, verdict, "{tool}");
            assert_eq!(freshness.is_fresh(), verdict == Verdict::Fresh);
            observations.record_check(&freshness).unwrap();
        }
        // The caller's own limit counts before the policy's.
        let within = |ticks| {
            let call = PlannedCall::of_account("Ada", "get_map").within(ticks);
            observations.freshness(&call, tick(103)).unwrap().verdict
        };
        assert_eq!((within(3), within(4)), (Verdict::Old, Verdict::Fresh));
        let nobody =
            observations.freshness(&PlannedCall::new("other", "get_map"), tick(1)).unwrap();
        assert_eq!(nobody.verdict, Verdict::NoAccount);
        let map = figures(observations, "get_map");
        assert_eq!((map.checks, map.spared), (2, 1));
        assert!((observations.metrics().unwrap().spared_share - 0.25).abs() < 1e-9);
    });
}

#[test]
fn a_part_of_an_observation_spares_no_call() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "Ada", tick(1)).unwrap();
        agent.calls("get_notifications", "{\"player\":{\"credits\":70}}", tick(3));
        let call = PlannedCall::new("agent-1", "get_status");
        let freshness = observations.freshness(&call, tick(4)).unwrap();
        assert_eq!(freshness.verdict, Verdict::Partial);
        assert_eq!(
            freshness.text(),
            "get_status: known in part, 1 tick old. Call it for the rest."
        );
    });
}

#[test]
fn a_call_is_asked_about_with_its_arguments() {
    on_each_store(&Policy::default(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "work", wall(0)).unwrap();
        agent.tries("read", "{\"path\":\"a\"}", "text", wall(1)).unwrap();
        for (path, verdict) in [("a", Verdict::Fresh), ("b", Verdict::Unknown)] {
            let arguments = value(&format!("{{\"path\":\"{path}\"}}"));
            let call = PlannedCall::new("agent-1", "read").with_arguments(&arguments);
            assert_eq!(observations.freshness(&call, wall(2)).unwrap().verdict, verdict);
        }
    });
}

#[test]
fn an_equal_payload_is_unchanged_since_its_first_tick() {
    informed(|agent| {
        let observations = agent.observations;
        let mut repeats = Repeats::new();
        let mut line = |at| {
            let outcome = agent.calls("get_map", &galaxy(487, at), tick(at));
            let since = outcome.unchanged_since.and_then(|since| since.tick);
            (since, repeats.line(observations, &outcome).unwrap())
        };
        assert_eq!(line(101), (None, None));
        let unchanged = "(get_map: unchanged since tick 101, 190664 bytes. What it said then still \
                         holds; call it again at once for all of it.)";
        for at in [102, 150] {
            assert_eq!(line(at), (Some(101), Some(unchanged.to_owned())));
            agent.calls("get_notifications", "{}", tick(at));
            // Something else was asked in between.
            let outcome = agent.calls("get_ship", &ship(at), tick(at));
            assert!(Repeats::new().line(observations, &outcome).unwrap().is_none());
            let _ = line(at);
        }
    });
    // Another session has not read it yet, and what changed comes whole.
    informed(|agent| {
        let line = |repeats: &mut Repeats, answer: &str, at| {
            let outcome = agent.calls("get_status", answer, tick(at));
            repeats.line(agent.observations, &outcome).unwrap()
        };
        let mut repeats = Repeats::new();
        assert_eq!(line(&mut repeats, &status("Ada", 101, 5_000), 101), None);
        let since = line(&mut repeats, &status("Ada", 102, 5_000), 102).unwrap();
        assert!(since.starts_with("(get_status: unchanged since tick 100, "), "{since}");
        assert_eq!(line(&mut repeats, &status("Ada", 103, 5_000), 103), None);
        assert!(line(&mut repeats, &status("Ada", 104, 5_000), 104).is_some());
        assert_eq!(line(&mut repeats, &status("Ada", 105, 6_000), 105), None);
        assert!(line(&mut repeats, &status("Ada", 106, 6_000), 106).unwrap().contains("tick 105"));
    });
}

// What a template says, and who has an account.

#[test]
fn a_template_says_which_value_is_missing() {
    let rule = ToolRule {
        lines: vec![
            LineRule::new("Hull", "{/hull}/{/max_hull}").unwrap(),
            LineRule::new("", "{/name} ({/empire})").unwrap(),
            LineRule::new("Shield", "{/shield}/{/max_shield}").unwrap(),
            LineRule::list("Crew", "/crew", "{/name|}").unwrap(),
        ],
        only_marked: true,
        ..ToolRule::new("get_ship")
    };
    let policy = Policy { tools: vec![rule], ..Policy::default() };
    on_each_store(&policy, |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "Ada", wall(0)).unwrap();
        let crew = "[{\"name\":\"Bo\"},\"Cy\",{\"id\":1}]";
        let answer = format!("{{\"hull\":85,\"name\":\"Dove\",\"crew\":{crew}}}");
        let outcome = agent.calls("get_ship", &answer, wall(1));
        assert_eq!(
            outcome.missing,
            ["Hull: nothing at /max_hull", "nothing at /empire", "Crew: nothing at /crew/2/name"]
        );
        let seen = agent.sees(wall(1));
        let lines = "\n- Hull: 85/unknown\n- Dove (unknown)\n- Crew: Bo, Cy, unknown\n";
        assert!(seen.contains(lines), "{seen}");
        // A line of which nothing is there is for answers of another form.
        assert!(!seen.contains("Shield"));
        agent.calls("get_ship", "{\"hull\":null,\"speed\":3,\"crew\":[],\"name\":0}", wall(2));
        observations.clear("Ada", None).unwrap();
        let outcome = agent.calls("get_ship", "{\"speed\":3}", wall(3));
        assert_eq!(outcome.missing, ["none of the lines finds its place"]);
        let seen = agent.sees(wall(3));
        assert!(seen.contains("- Nothing that the policy marks is in it.\n"), "{seen}");
    });
}

#[test]
fn an_answer_for_one_account_is_never_filed_under_another() {
    on_each_store(&spacemolt(), |observations| {
        for (tool, answer, arguments) in [
            ("get_status", status("Bob", 1, 1), "null"),
            ("login", "{\"username\":\"Bob\"}".to_owned(), "null"),
            ("login", "Welcome back, Bob!".to_owned(), "null"),
            ("login", "Welcome back!".to_owned(), "{\"username\":\"Bob\"}"),
            ("register", "Welcome!".to_owned(), "{\"username\":\"Bob\"}"),
            // What another did makes nothing stale here.
            ("travel", "{\"player\":{\"username\":\"Bob\"}}".to_owned(), "null"),
            ("attack", "{\"username\":\"Bob\"}".to_owned(), "null"),
        ] {
            let response = Response::text(&answer).unwrap();
            let arguments = value(arguments);
            let call = ToolCall::of_account("Ada", tool, &response).with_arguments(&arguments);
            let error = observations.intercept(&call, tick(1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{tool}");
            let message = format!(
                "the answer of {tool} names the account \"Bob\", the call names \"Ada\": nothing \
                 was kept; name the right account"
            );
            assert_eq!(error.message(), message);
            assert!(observations.accounts().unwrap().is_empty());
        }
        // A tool of which the policy says nothing may tell of others.
        let response = Response::text("{\"username\":\"Bob\"}").unwrap();
        let call = ToolCall::of_account("Ada", "find_player", &response);
        observations.intercept(&call, tick(1)).unwrap();
    });
}

#[test]
fn a_login_under_a_new_id_can_take_its_account_over() {
    informed(|agent| {
        let observations = agent.observations;
        let login = Response::text("{\"username\":\"Ada\"}").unwrap();
        let call = ToolCall::new("agent-2", "login", &login);
        let error = observations.intercept(&call, tick(101)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let message = "the account \"Ada\" belongs to the agent \"agent-1\": release it \
                       (`afterimage observe release`), or log in with `taking_over`";
        assert_eq!(error.message(), message);
        let outcome = observations.intercept(&call.taking_over(), tick(101)).unwrap();
        assert_eq!(outcome.taken_from.as_deref(), Some("agent-1"));
        let second = Agent { observations, name: "agent-2" };
        assert!(second.sees(tick(101)).contains("- Credits: 5,000\n"));
        assert!(agent.sees(tick(101)).starts_with("Not logged in."));
        // Only a login does: an answer alone may be a mistake.
        let answer = Response::text(&status("Ada", 102, 1)).unwrap();
        let call = ToolCall::new("agent-1", "get_status", &answer).taking_over();
        assert_eq!(
            observations.intercept(&call, tick(102)).unwrap_err().kind(),
            ErrorKind::Conflict
        );
        assert_eq!(
            observations.take_over("agent-3", "Ada", tick(103)).unwrap().as_deref(),
            Some("agent-2")
        );
        assert_eq!(observations.take_over("agent-3", "Ada", tick(103)).unwrap(), None);
    });
}

#[test]
fn an_account_can_be_released_without_its_agent() {
    informed(|agent| {
        let observations = agent.observations;
        assert_eq!(observations.release_account("Ada").unwrap().as_deref(), Some("agent-1"));
        assert_eq!(observations.release_account("Ada").unwrap(), None);
        assert_eq!(credits(observations), 5_000);
        observations.login("agent-2", "Ada", tick(101)).unwrap();
        assert_eq!(observations.release_account("Nobody").unwrap_err().kind(), ErrorKind::Shape);
    });
}
