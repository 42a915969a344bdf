//! Which answers replace what is known.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use afterimage_observe::{
    ErrorKind, IgnoreReason, LineRule, Observations, PartialRule, PlannedCall, Pointer, Policy,
    Response, ToolCall, ToolRule,
};

use crate::support::observing::{on_each_store, tick, value, wall};

fn policy() -> Policy {
    Policy {
        ticks: vec![Pointer::parse("/tick").unwrap(), Pointer::parse("/data/tick").unwrap()],
        tools: vec![
            ToolRule {
                lines: vec![
                    LineRule::new("Hull", "{/ship/hull}/{/ship/max}").unwrap(),
                    LineRule::list("Crew", "/crew", "{/name}").unwrap(),
                ],
                ..ToolRule::new("look")
            },
            ToolRule::new("*"),
        ],
        partials: vec![PartialRule {
            tool: "dock".to_owned(),
            from: Pointer::parse("/ship").unwrap(),
            into: "look".to_owned(),
            to: Pointer::parse("/ship").unwrap(),
        }],
        ..Policy::default()
    }
}

/// What comes of `new` after `known`, and what is known then.
fn after(observations: &Observations, tool: &str, known: &str, new: &str) -> Option<IgnoreReason> {
    let put = |text: &str, at: u64| {
        let response = Response::text(text).unwrap();
        let call = ToolCall::of_account("Ada", tool, &response);
        observations.intercept(&call, tick(at)).unwrap()
    };
    observations.clear("Ada", None).unwrap();
    assert_eq!(put(known, 1).ignored, None, "{known}");
    let outcome = put(new, 2);
    let found = observations.get("Ada", tool).unwrap().unwrap().value().unwrap();
    let expected = if outcome.ignored.is_some() { known } else { new };
    assert_eq!(found, value(expected), "{new}");
    outcome.ignored
}

#[test]
fn an_error_below_the_members_does_not_replace_what_is_known() {
    on_each_store(&policy(), |observations| {
        let after = |known, new| after(observations, "scan", known, new);
        let known = r#"{"player":{"credits":5},"ship":{"hull":1},"tick":1}"#;
        for new in [
            r#"{"player":{"error":"timeout"},"ship":{"error":"timeout"},"tick":2}"#,
            r#"{"player":{"message":"try later"},"ship":{"message":"try later","code":3}}"#,
            r#"{"player":{"error":{"code":4}},"ship":{"ok":false,"reason":"busy"}}"#,
            r#"{"player":{"errors":["a"]},"ship":{"inner":{"error":"b"}}}"#,
            r#"{"player":null,"ship":null,"errors":["no such account"]}"#,
        ] {
            assert_eq!(after(known, new), Some(IgnoreReason::OtherShape), "{new}");
        }
        let wrapped = r#"{"data":{"player":{"credits":5},"tick":1}}"#;
        for new in [
            r#"{"data":{"error":"timeout","tick":2}}"#,
            r#"{"data":{"player":{"error":"timeout"},"tick":2}}"#,
            r#"{"data":null,"errors":[{"message":"timeout"}]}"#,
        ] {
            assert_eq!(after(wrapped, new), Some(IgnoreReason::OtherShape), "{new}");
        }
    });
}

#[test]
fn a_place_that_the_policy_reads_keeps_its_kind() {
    on_each_store(&policy(), |observations| {
        let after = |new| {
            let known =
                r#"{"ship":{"hull":1,"max":9},"crew":[{"name":"Bo"}],"name":"x","log":[1]}"#;
            after(observations, "look", known, new)
        };
        for new in [
            r#"{"ship":{"hull":1,"max":9},"crew":{"error":"timeout"},"name":"x","log":[1]}"#,
            r#"{"ship":{"hull":1,"max":9},"crew":{"Bo":1},"name":"x","log":[1]}"#,
            r#"{"ship":{"hull":1,"max":9},"crew":"unavailable","name":"x","log":[1]}"#,
            r#"{"ship":[1,9],"crew":[],"name":"x","log":[1]}"#,
            r#"{"ship":{"error":"timeout"},"crew":[],"name":"x","log":[1]}"#,
        ] {
            assert_eq!(after(new), Some(IgnoreReason::OtherShape), "{new}");
        }
        for new in [
            // More, fewer, null, empty; and another kind where nothing is read.
            r#"{"ship":{"hull":2,"max":9,"shield":4},"crew":[],"name":"y","log":[],"mail":{}}"#,
            r#"{"ship":{"hull":2},"crew":[{"name":"Bo","age":4}]}"#,
            r#"{"ship":null,"crew":null,"name":"x","log":[1]}"#,
            r#"{"ship":{"hull":0,"status":"destroyed"},"crew":[],"name":"x","log":"none"}"#,
            r#"{"ship":{"hull":1,"max":9,"error":null},"crew":[],"name":"x","log":{"message":"m"}}"#,
            r#"{"ship":{},"crew":[{"error":"lost"}],"name":"x","log":[1]}"#,
        ] {
            assert_eq!(after(new), None, "{new}");
        }
    });
}

#[test]
fn an_error_is_no_part_of_an_observation() {
    on_each_store(&policy(), |observations| {
        let put = |tool: &str, text: &str, at: u64| {
            let response = Response::text(text).unwrap();
            let call = ToolCall::of_account("Ada", tool, &response);
            observations.intercept(&call, tick(at)).unwrap()
        };
        put("look", r#"{"ship":{"hull":1,"max":9},"crew":[]}"#, 1);
        for part in [r#"{"ship":{"error":"busy"}}"#, r#"{"ship":[1]}"#, r#"{"ship":"busy"}"#] {
            let outcome = put("dock", part, 2);
            assert!(outcome.merged.is_empty(), "{part}: {outcome:?}");
        }
        assert_eq!(put("dock", r#"{"ship":{"hull":2}}"#, 2).merged, ["look"]);
    });
}

/// What is known of Ada after these answers, each a minute after the one before.
fn told(observations: &Observations, answers: &[&str]) -> (Option<IgnoreReason>, u64) {
    observations.clear("Ada", None).unwrap();
    let mut last = None;
    for (at, text) in answers.iter().enumerate() {
        let response = Response::text(text).unwrap();
        let call = ToolCall::of_account("Ada", "scan", &response);
        let now = wall(60 * at as u64);
        last = observations.intercept(&call, now).unwrap().ignored;
    }
    let known = observations.get("Ada", "scan").unwrap().unwrap().value().unwrap();
    (last, known.pointer("/n").unwrap().as_u64().unwrap())
}

#[test]
fn a_tick_is_a_whole_number_or_its_digits_and_else_the_clock_counts() {
    on_each_store(&policy(), |observations| {
        let older = Some(IgnoreReason::Older);
        for (tick, expected) in [
            ("90", (older, 1)),
            ("\"90\"", (older, 1)),
            ("90.0", (older, 1)),
            ("101", (None, 2)),
            // No ticks: the later answer counts.
            ("-1", (None, 2)),
            ("90.5", (None, 2)),
            ("\"soon\"", (None, 2)),
            ("\"\"", (None, 2)),
            ("\"+90\"", (None, 2)),
            ("null", (None, 2)),
            ("[90]", (None, 2)),
            ("18446744073709551615", (None, 2)),
            ("1e400", (None, 2)),
        ] {
            let new = format!("{{\"n\":2,\"tick\":{tick}}}");
            let known = r#"{"n":1,"tick":100}"#;
            assert_eq!(told(observations, &[known, new.as_str()]), expected, "{tick}");
        }
    });
}

#[test]
fn an_absurd_tick_does_not_block_later_answers() {
    on_each_store(&policy(), |observations| {
        // A time in milliseconds, in the place of a tick.
        let absurd = r#"{"n":1,"tick":1760000000000}"#;
        let good = [r#"{"n":2,"tick":100}"#, r#"{"n":3,"tick":101}"#, r#"{"n":4,"tick":100}"#];
        assert_eq!(told(observations, &[absurd, good[0]]), (None, 2));
        assert_eq!(
            told(observations, &[absurd, good[0], good[1], good[2]]),
            (Some(IgnoreReason::Older), 3)
        );
        // The clock of the account is right again too.
        let latest = || observations.accounts().unwrap()[0].latest.unwrap().tick;
        assert_eq!(latest(), Some(101));
        // One that is not absurd blocks until the answer is accepted.
        let ahead = r#"{"n":1,"tick":5000}"#;
        observations.clear("Ada", None).unwrap();
        assert_eq!(told(observations, &[ahead, good[0]]), (Some(IgnoreReason::Older), 1));
        observations.accept("Ada", "scan").unwrap().unwrap();
        assert_eq!(latest(), Some(100));
        let response = Response::text(good[1]).unwrap();
        let call = ToolCall::of_account("Ada", "scan", &response);
        assert_eq!(observations.intercept(&call, wall(600)).unwrap().ignored, None);
    });
}

#[test]
fn a_call_for_an_account_never_keeps_what_another_one_is_told() {
    let policy = Policy {
        usernames: vec![
            Pointer::parse("/players/0/name").unwrap(),
            Pointer::parse("/player/name").unwrap(),
            Pointer::parse("/name").unwrap(),
        ],
        failed: vec![Pointer::parse("/error").unwrap()],
        ..policy()
    };
    on_each_store(&policy, |observations| {
        let put = |account: &str, text: &str| {
            let response = Response::text(text).unwrap();
            let call = ToolCall::of_account(account, "scan", &response);
            observations.intercept(&call, tick(1))
        };
        for (account, answer) in [
            ("Ada", r#"{"name":"Bob"}"#),
            ("Ada", r#"{"player":{"name":"Bob"},"name":"Ada"}"#),
            ("Ada", r#"{"players":[{"name":"Bob"},{"name":"Ada"}]}"#),
            ("Ada", r#"{"jsonrpc":"2.0","name":"Bob","result":{"a":1}}"#),
            ("Ada", r#"{"error":"busy","name":"Bob"}"#),
            ("Ada", r#"{"name":42}"#),
            // Names are compared exactly.
            ("Ada", r#"{"name":"ada"}"#),
            ("Ada", r#"{"name":"Ada "}"#),
            ("Ada", r#"{"name":"Ad\u0000a"}"#),
            ("Zo\u{eb}", "{\"name\":\"Zoe\u{308}\"}"),
            ("../Ada", r#"{"name":"Ada"}"#),
        ] {
            let error = put(account, answer).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{answer}: {error}");
            assert!(observations.accounts().unwrap().is_empty(), "{answer}");
        }
        for (account, answer) in [
            ("42", r#"{"name":42}"#),
            ("../Ada", r#"{"name":"../Ada"}"#),
            // What is neither a text nor a number names nobody, and the next place counts.
            ("Ada", r#"{"player":{"name":["Bob"]},"name":"Ada"}"#),
            ("Ada", r#"{"player":{"name":null,"credits":1}}"#),
        ] {
            let outcome = put(account, answer).unwrap();
            assert_eq!(outcome.account.as_deref(), Some(account), "{answer}");
            let known = observations.get(account, "scan").unwrap().unwrap();
            assert_eq!(known.value().unwrap(), value(answer));
        }
    });
}

#[test]
fn an_answer_in_which_nothing_of_substance_is_left_is_empty() {
    on_each_store(&policy(), |observations| {
        let empty = Some(IgnoreReason::Empty);
        let known = r#"{"player":{"credits":5,"name":"Ada"},"ship":{"hull":1},"location":{"poi":"x"},"name":"Ada","tick":1}"#;
        let with = |value: &str, rest: &str| {
            format!(r#"{{"player":{value},"ship":{value},"location":{value}{rest}}}"#)
        };
        for value in ["null", "{}", "[]", "\"\"", "\"n/a\"", "[null]", "0", r#"{"hull":null}"#] {
            for rest in ["", r#","name":"Ada","tick":2"#, r#","name":null,"status":"ok""#] {
                let new = with(value, rest);
                assert_eq!(after(observations, "scan", known, &new), empty, "{new}");
            }
        }
        for (known, new) in [
            (r#"{"data":{"ship":{"hull":1},"tick":1}}"#, r#"{"data":{"ship":null,"tick":2}}"#),
            (r#"{"name":"Ada","title":"x"}"#, r#"{"name":"","title":"n/a"}"#),
            (r#"{"a":{"n":"x"},"b":[1]}"#, r#"{"a":{"n":""},"b":[]}"#),
            (r#"{"credits":5,"hull":3}"#, r#"{"credits":null,"hull":"n/a"}"#),
            (r#"[{"a":1}]"#, "[null]"),
        ] {
            assert_eq!(after(observations, "scan", known, new), empty, "{new}");
        }
    });
}

#[test]
fn an_answer_of_which_some_members_are_empty_now_replaces_what_is_known() {
    on_each_store(&policy(), |observations| {
        for (known, new) in [
            (r#"{"a":{"n":1},"b":{"n":1}}"#, r#"{"a":null,"b":{"n":1}}"#),
            (r#"{"a":{"n":"x"},"b":{"n":"y"}}"#, r#"{"a":{"n":"x"},"b":{}}"#),
            (r#"{"a":{"n":1},"credits":5}"#, r#"{"a":{},"credits":0}"#),
            // Nothing but lists was known, and there is nothing in them now.
            (r#"{"wrecks":[1],"near":[{"id":"a"}]}"#, r#"{"wrecks":[],"near":[]}"#),
            (r#"{"player":"Ada","cargo":[1]}"#, r#"{"player":"Ada","cargo":[]}"#),
            (r#"{"data":{"items":[1]}}"#, r#"{"data":{"items":[]}}"#),
            ("[1]", "[]"),
            // A text or a boolean tells what happened.
            (r#"{"mission":{"id":1},"state":"active"}"#, r#"{"mission":null,"state":"none"}"#),
            (r#"{"base":{"id":1},"docked":true}"#, r#"{"base":null,"docked":false}"#),
            // Something else took the place.
            (r#"{"ship":{"id":1}}"#, r#"{"ship":null,"pod":{"id":2}}"#),
            (r#"{"name":"Ada","note":"x"}"#, r#"{"name":"Ada","note":null}"#),
        ] {
            assert_eq!(after(observations, "scan", known, new), None, "{new}");
        }
    });
}

#[test]
fn a_first_answer_that_is_empty_or_an_error_is_no_observation() {
    on_each_store(&Policy::default(), |observations| {
        for (new, reason, said) in [
            ("", IgnoreReason::Empty, "the answer was empty"),
            ("null", IgnoreReason::Empty, "the answer was empty: null"),
            ("{}", IgnoreReason::Empty, "the answer was empty: {}"),
            (r#"{"a":null,"b":{}}"#, IgnoreReason::Empty, "the answer was empty"),
            (r#"{"error":"x"}"#, IgnoreReason::Failed, "the call failed: {\"error\":\"x\"}"),
            (r#"{"error":"x","id":"7"}"#, IgnoreReason::Failed, "the call failed"),
            (r#"{"data":{"error":"x"}}"#, IgnoreReason::Failed, "the call failed"),
            (r#"{"status":"error","message":"no"}"#, IgnoreReason::Failed, "the call failed"),
            (r#"{"code":503,"message":"no"}"#, IgnoreReason::Failed, "the call failed"),
            ("<html>502</html>", IgnoreReason::Failed, "the call failed: "),
            (
                "<!doctype html><title>example.org | 502: Bad gateway</title>",
                IgnoreReason::Failed,
                "the call failed",
            ),
        ] {
            observations.clear("Ada", None).unwrap();
            let response = Response::text(new).unwrap();
            let call = ToolCall::of_account("Ada", "scan", &response);
            let outcome = observations.intercept(&call, tick(1)).unwrap();
            assert_eq!(outcome.ignored, Some(reason), "{new}");
            assert_eq!(outcome.aside.as_deref(), Some("scan"), "{new}");
            assert!(observations.get("Ada", "scan").unwrap().is_none(), "{new}");
            let planned = PlannedCall::of_account("Ada", "scan");
            let freshness = observations.freshness(&planned, tick(1)).unwrap();
            let text = freshness.text();
            assert!(!freshness.is_fresh(), "{new}");
            assert!(text.starts_with("scan: there is no usable answer yet. Call it."), "{text}");
            let summary = observations.summary("Ada", tick(3), 500).unwrap();
            assert!(summary.text().contains("No usable answer yet"), "{}", summary.text());
            assert!(summary.text().contains(said), "{}", summary.text());
        }
    });
}

#[test]
fn a_first_answer_that_says_something_is_kept() {
    on_each_store(&Policy::default(), |observations| {
        for new in [
            "[]",
            r#"{"items":[]}"#,
            r#"{"status":"idle"}"#,
            r#"{"message":"hello"}"#,
            r#"{"error":null,"credits":0}"#,
            r#"{"success":false,"winner":"Bob"}"#,
            "<html><title>News</title><h1>502 is a number</h1></html>",
            "0",
        ] {
            observations.clear("Ada", None).unwrap();
            let response = Response::text(new).unwrap();
            let call = ToolCall::of_account("Ada", "scan", &response);
            let outcome = observations.intercept(&call, tick(1)).unwrap();
            assert_eq!(outcome.stored.as_deref(), Some("scan"), "{new}");
        }
    });
}
