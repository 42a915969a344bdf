//! Observations for tests: every store there is, calls in one line, and generated payloads.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::fmt::Write;

use afterimage_json as json;
use afterimage_json::Millis;
use afterimage_json::Value;
use afterimage_observe::{Interception, Moment, Observations, Policy, Response, Result, ToolCall};
use afterimage_tokens::Chars4;

/// The moment of a tick, ten seconds each.
pub(crate) fn tick(tick: u64) -> Moment {
    wall(tick * 10).on(tick)
}

/// So many seconds after the tests began, on no known tick.
pub(crate) fn wall(seconds: u64) -> Moment {
    Moment::at(Millis::new(1_760_000_000_000 + i64::try_from(seconds).unwrap() * 1_000))
}

pub(crate) fn value(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap()
}

/// The policy for the game of the recordings.
pub(crate) fn spacemolt() -> Policy {
    Policy::from_json(afterimage_testkit::policies::spacemolt().into()).unwrap()
}

/// Runs a test on each store. Tokens are estimated, so that a test is the same with any features.
pub(crate) fn on_each_store(policy: &Policy, test: impl Fn(&Observations)) {
    let counter = std::sync::Arc::new(Chars4);
    test(&Observations::in_memory(policy.clone()).unwrap().counted_by(counter.clone()));
    #[cfg(feature = "sqlite")]
    {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state.db");
        test(&Observations::open(path, policy.clone()).unwrap().counted_by(counter));
    }
}

/// What an agent's tools answer, one line for each call.
pub(crate) struct Agent<'o> {
    pub(crate) observations: &'o Observations,
    pub(crate) name: &'static str,
}

impl Agent<'_> {
    pub(crate) fn calls(&self, tool: &str, response: &str, now: Moment) -> Interception {
        self.tries(tool, "null", response, now).unwrap()
    }

    pub(crate) fn tries(
        &self,
        tool: &str,
        arguments: &str,
        response: &str,
        now: Moment,
    ) -> Result<Interception> {
        let response = Response::text(response)?;
        let arguments = value(arguments);
        let call = ToolCall::new(self.name, tool, &response).with_arguments(&arguments);
        self.observations.intercept(&call, now)
    }

    pub(crate) fn sees(&self, now: Moment) -> String {
        let summary = self.observations.summary_of_agent(self.name, now, 500).unwrap();
        summary.text().to_owned()
    }
}

/// A galaxy of so many systems with their connections: 487 of them are 190 KB.
pub(crate) fn galaxy(systems: usize, tick: u64) -> String {
    let mut text = format!("{{\"current_tick\":{tick},\"systems\":[");
    for at in 0..systems {
        let comma = if at > 0 { "," } else { "" };
        let (x, y) = ((at * 7_919) % 1_000, (at * 104_729) % 1_000);
        write!(
            text,
            "{comma}{{\"id\":\"sys_{at:03}\",\"name\":\"System {at}\",\"empire\":\"{}\",\
             \"security\":\"{}\",\"police_level\":{},\"is_stronghold\":false,\"position\":{{\"x\":{x}.5,\"y\":-{y}.25}},\
             \"visited\":{},\"connections\":[",
            ["solarian", "voidborn", "crimson", "nebula", "outerrim"][at % 5],
            ["High Security (active police patrols)", "Lawless (no police protection)"][at % 2],
            at % 6,
            at % 3 == 0,
        )
        .unwrap();
        for (index, step) in [1, 7, 43].into_iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let other = (at + step) % systems;
            let distance = 100 + (at * step) % 400;
            write!(
                text,
                "{comma}{{\"system_id\":\"sys_{other:03}\",\"name\":\"System {other}\",\"distance\":{distance}.5}}"
            )
            .unwrap();
        }
        text.push_str("]}");
    }
    text.push_str("]}");
    text
}

/// The status of a player, in the form in which the game's own client gets it.
pub(crate) fn status(name: &str, tick: u64, credits: u64) -> String {
    format!(
        "{{\"current_tick\":{tick},\"player\":{{\"username\":\"{name}\",\"empire\":\"Solarian Empire\",\
         \"credits\":{credits},\"home_base\":\"earth_station\",\"is_cloaked\":false}},\
         \"location\":{{\"system_name\":\"Sol System\",\"poi_name\":\"Asteroid Belt Alpha\",\"docked_at\":null}},\
         \"ship\":{{\"class_name\":\"Cargo Hauler\",\"hull\":85,\"max_hull\":100,\"fuel\":60,\"max_fuel\":100,\
         \"cargo_used\":45,\"cargo_capacity\":100}},\
         \"cargo\":[{{\"item_id\":\"iron_ore\",\"item_name\":\"Iron Ore\",\"quantity\":30}},\
         {{\"item_id\":\"copper_ore\",\"item_name\":\"Copper Ore\",\"quantity\":15}}]}}"
    )
}

pub(crate) fn ship(tick: u64) -> String {
    format!(
        "{{\"current_tick\":{tick},\"ship\":{{\"hull\":85,\"max_hull\":100,\"shield\":50,\"max_shield\":50,\
         \"fuel\":60,\"max_fuel\":100,\"cargo_used\":45,\"cargo_capacity\":100}},\
         \"cargo\":[{{\"item_id\":\"iron_ore\",\"name\":\"Iron Ore\",\"quantity\":30}},\
         {{\"item_id\":\"copper_ore\",\"name\":\"Copper Ore\",\"quantity\":15}}]}}"
    )
}

pub(crate) fn system(tick: u64) -> String {
    format!(
        "{{\"current_tick\":{tick},\"system\":{{\"id\":\"sol\",\"name\":\"Sol System\",\"empire\":\"Solarian Empire\",\
         \"pois\":[{{\"id\":\"earth\",\"name\":\"Earth\"}},{{\"id\":\"mars\",\"name\":\"Mars\"}},\
         {{\"id\":\"belt_alpha\",\"name\":\"Asteroid Belt Alpha\"}},{{\"id\":\"station\",\"name\":\"Station Alpha\"}}],\
         \"connections\":[{{\"system_id\":\"alpha\",\"name\":\"Alpha Centauri\"}},\
         {{\"system_id\":\"barnard\",\"name\":\"Barnard's Star\"}}]}}}}"
    )
}
