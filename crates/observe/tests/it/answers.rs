//! Which answers replace what is known.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use afterimage_observe::{
    ErrorKind, IgnoreReason, LineRule, Observations, PartialRule, Pointer, Policy, Response,
    ToolCall, ToolRule,
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
            ("Ada", r#"{"player":{"name":null}}"#),
        ] {
            let outcome = put(account, answer).unwrap();
            assert_eq!(outcome.account.as_deref(), Some(account), "{answer}");
            let known = observations.get(account, "scan").unwrap().unwrap();
            assert_eq!(known.value().unwrap(), value(answer));
        }
    });
}
