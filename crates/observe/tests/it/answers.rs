//! Which answers replace what is known.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use afterimage_observe::{
    Ignored, LineRule, Observations, PartialRule, Pointer, Policy, Response, ToolCall, ToolRule,
};

use crate::support::observing::{on_each_store, tick, value};

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
fn after(observations: &Observations, tool: &str, known: &str, new: &str) -> Option<Ignored> {
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
            assert_eq!(after(known, new), Some(Ignored::OtherShape), "{new}");
        }
        let wrapped = r#"{"data":{"player":{"credits":5},"tick":1}}"#;
        for new in [
            r#"{"data":{"error":"timeout","tick":2}}"#,
            r#"{"data":{"player":{"error":"timeout"},"tick":2}}"#,
            r#"{"data":null,"errors":[{"message":"timeout"}]}"#,
        ] {
            assert_eq!(after(wrapped, new), Some(Ignored::OtherShape), "{new}");
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
            assert_eq!(after(new), Some(Ignored::OtherShape), "{new}");
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
