//! The policy for the game of the specification.

use std::collections::BTreeMap;

use super::{ActionRule, LineRule, PartialRule, Pointer, Policy, Target, Template, ToolRule};

impl Policy {
    /// The policy for SpaceMolt, a game for agents: its observing tools, its actions and what
    /// they make stale, and where its responses say whose they are and which tick it is.
    pub fn spacemolt() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            heading: "Current Game State".to_owned(),
            millis_per_tick: Some(10_000),
            ticks: places(&[
                "/current_tick",
                "/data/current_tick",
                "/result/tick",
                "/tick",
                "/game_tick",
                "/player/current_tick",
            ]),
            usernames: places(&["/player/username", "/username", "/account/username"]),
            username_texts: texts(&["Welcome back, {}!"]),
            account_notes: places(&["/player/empire", "/empire"]),
            failed: places(&["/error"]),
            failed_texts: texts(&["Error:"]),
            prefixes: texts(&["mcp__spacemolt__", "spacemolt/", "spacemolt_market/"]),
            dispatch: ["spacemolt", "spacemolt_auth", "spacemolt_market"]
                .map(|tool| (tool.to_owned(), place("/action")))
                .into(),
            login: texts(&["login"]),
            logout: texts(&["logout"]),
            register: texts(&["register"]),
            username_arguments: places(&["/username"]),
            tools: tools(),
            partials: partials(),
            actions: actions(),
            notes: texts(&["Call get_notifications to see events since last update."]),
            ..Self::default()
        }
    }
}

fn tools() -> Vec<ToolRule> {
    let status = ToolRule {
        stale_after_ticks: Some(20),
        lines: vec![
            line("Credits", "{/player/credits|/credits}"),
            line(
                "Location",
                "{/location/system_name|/location/system|/system} > {/location/poi_name|/location/poi|/poi}",
            ),
            line("Ship", "{/ship/class_name|/ship/name|/ship_name}"),
            line("Docked", "{/location/docked_at|/docked}"),
            line("Hull", "{/ship/hull}/{/ship/max_hull}"),
            line("Fuel", "{/ship/fuel}/{/ship/max_fuel}"),
            cargo("{/ship/cargo_used}/{/ship/cargo_capacity}", "/cargo"),
        ],
        arrays: BTreeMap::from([key("/cargo", "item_id"), key("/modules", "module_id")]),
        ..rule("get_status")
    };
    let ship = ToolRule {
        stale_after_ticks: Some(20),
        lines: vec![
            line("Hull", "{/ship/hull|/hull}/{/ship/max_hull|/max_hull}"),
            line("Shield", "{/ship/shield|/shield}/{/ship/max_shield|/max_shield}"),
            line("Fuel", "{/ship/fuel|/fuel}/{/ship/max_fuel|/max_fuel}"),
            cargo(
                "{/ship/cargo_used|/cargo_used}/{/ship/cargo_capacity|/cargo_capacity}",
                "/cargo",
            ),
        ],
        arrays: BTreeMap::from([key("/cargo", "item_id"), key("/modules", "module_id")]),
        ..rule("get_ship")
    };
    let system = ToolRule {
        stale_after_ticks: Some(50),
        lines: vec![
            line(
                "",
                "{/system/name|/name} ({/system/empire|/empire|/system/security_status|/security_status})",
            ),
            list("POIs", "/system/pois", "{/name}"),
            list("POIs", "/pois", "{/name}"),
            list("Connections", "/system/connections", "{/name}"),
            list("Connections", "/connections", "{/name}"),
        ],
        arrays: BTreeMap::from([key("/system/pois", "id"), key("/pois", "id")]),
        ..rule("get_system")
    };
    let map = ToolRule {
        stale_after_ticks: Some(50),
        stale_note: "consider refreshing if planning long journey".to_owned(),
        hint: "Use {tool} to refresh full galaxy data".to_owned(),
        lines: vec![line("", "{#/systems|/data/systems} systems cached")],
        arrays: BTreeMap::from([key("/systems", "id")]),
        only_marked: true,
        ..rule("get_map")
    };
    let market = ToolRule { stale_after_ticks: Some(5), ..rule("view_market") };
    let others = [
        "get_cargo",
        "get_location",
        "get_poi",
        "get_nearby",
        "get_skills",
        "get_missions",
        "get_active_missions",
        "get_achievements",
        "get_base",
        "get_wrecks",
    ];
    [status, ship, system, map, market].into_iter().chain(others.map(rule)).collect()
}

/// What other responses bring along of a status, and of the cargo.
fn partials() -> Vec<PartialRule> {
    [
        ("get_notifications", "/state", "get_status", ""),
        ("get_notifications", "/player", "get_status", "/player"),
        ("get_location", "/location", "get_status", "/location"),
        ("get_cargo", "/cargo", "get_status", "/cargo"),
    ]
    .map(|(tool, from, into, to)| PartialRule {
        tool: tool.to_owned(),
        from: place(from),
        into: into.to_owned(),
        to: place(to),
    })
    .into()
}

fn actions() -> Vec<ActionRule> {
    let moved: &[&str] =
        &["get_status#/location", "get_ship#/ship/fuel", "get_location", "get_poi", "get_nearby"];
    let jumped: &[&str] = &[
        "get_status#/location",
        "get_ship#/ship/fuel",
        "get_location",
        "get_poi",
        "get_nearby",
        "get_system",
    ];
    let loaded: &[&str] = &["get_ship#/cargo", "get_status#/cargo", "get_cargo"];
    let traded: &[&str] = &[
        "get_status#/player/credits",
        "get_status#/cargo",
        "get_ship#/cargo",
        "get_cargo",
        "view_market",
    ];
    let fought: &[&str] = &["get_ship#/ship", "get_status#/ship", "get_nearby"];
    let served: &[&str] = &["get_status#/player/credits", "get_ship#/ship", "get_status#/ship"];
    let docked: &[&str] = &["get_status#/location", "get_location"];
    let missions: &[&str] = &["get_missions", "get_active_missions", "get_status#/missions"];
    [
        ("travel", moved),
        ("jump", jumped),
        ("dock", docked),
        ("undock", docked),
        ("mine", loaded),
        ("jettison", loaded),
        ("craft", loaded),
        ("buy", traded),
        ("sell", traded),
        ("attack", fought),
        ("repair", served),
        ("refuel", served),
        ("accept_mission", missions),
        ("complete_mission", missions),
    ]
    .map(|(tool, stale)| ActionRule {
        tool: tool.to_owned(),
        stale: stale.iter().filter_map(|target| Target::parse(target).ok()).collect(),
    })
    .into()
}

fn rule(name: &str) -> ToolRule {
    ToolRule::new(name)
}

fn cargo(value: &str, each: &str) -> LineRule {
    LineRule {
        each: Some(place(each)),
        item: Template::parse("{/item_name|/name|/item_id} x{/quantity}").ok(),
        ..line("Cargo", value)
    }
}

fn line(label: &str, value: &str) -> LineRule {
    LineRule {
        label: label.to_owned(),
        value: Template::parse(value).ok(),
        each: None,
        item: None,
        is_inline: false,
    }
}

fn list(label: &str, each: &str, item: &str) -> LineRule {
    LineRule {
        label: label.to_owned(),
        value: None,
        each: Some(place(each)),
        item: Template::parse(item).ok(),
        is_inline: true,
    }
}

fn key(at: &str, key: &str) -> (Pointer, String) {
    (place(at), key.to_owned())
}

/// A place that is written here; a test holds them all against the policy file of the examples.
fn place(text: &str) -> Pointer {
    Pointer::parse(text).unwrap_or_default()
}

fn places(texts: &[&str]) -> Vec<Pointer> {
    texts.iter().map(|text| place(text)).collect()
}
