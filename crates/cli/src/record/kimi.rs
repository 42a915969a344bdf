//! Kimi Code takes base URLs from `config.toml` in its folder, which is laid over.
//!
//! It writes the path of its folder beside its sessions, so that one is given back too. A provider with
//! a login stays as it is: Kimi Code does other things where the base URL is not that of the login.

use std::{fs, ops::Range};

use toml::de::DeTable;

use super::{
    overlay::{Client, Overlay},
    routes::{ANTHROPIC, OPENAI, Routes},
    settings_text::{Led, SettingsText},
};
use crate::output::note;

pub(super) const CLIENT: Client = Client {
    name: "kimi",
    variable: "KIMI_CODE_HOME",
    file: "config.toml",
    is_kept: true,
    made: &["sessions"],
    named_in: &["session_index.jsonl", "sessions/*/*/state.json"],
};
const BASE: &str = "base_url";
/// The variables with base URLs that a provider's own table of them may set.
const VARIABLES: [&str; 4] =
    ["KIMI_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"];

/// What is laid over the folder of Kimi Code, where its file names base URLs of models.
pub(super) fn overlay(routes: &mut Routes) -> Option<Overlay> {
    let folder = CLIENT.folder(|| Some(std::env::home_dir()?.join(".kimi-code")));
    // What cannot be read there is for Kimi Code to say.
    let text = fs::read_to_string(folder.join(CLIENT.file)).ok()?;
    let configuration = DeTable::parse(&text).ok()?;
    let tables = |key: &str| {
        let named = configuration.get_ref().get(key).and_then(|of| of.get_ref().as_table());
        let named = named.into_iter().flatten();
        named.filter_map(|(name, of)| Some((&**name.get_ref(), of.get_ref().as_table()?)))
    };
    let providers: Vec<(&str, &DeTable<'_>)> = tables("providers").collect();
    for (name, _) in providers.iter().filter(|(_, of)| of.contains_key("oauth")) {
        note(&format!("{name} of Kimi Code has a login: its calls are not recorded"));
    }
    let provider_of = |model: &DeTable<'_>| {
        let name = string(model, "provider")?;
        providers.iter().find(|(known, _)| *known == name).copied()
    };
    let of_models = tables("models").filter_map(|(_, model)| Some((provider_of(model)?, model)));
    let of_providers = providers.iter().map(|(name, of)| ((*name, *of), *of));
    let mut places = Vec::new();
    for ((name, provider), table) in of_providers.chain(of_models) {
        if provider.contains_key("oauth") {
            continue;
        }
        let api = match string(provider, "type") {
            Some("openai" | "openai_responses") => OPENAI,
            Some(ANTHROPIC) => ANTHROPIC,
            _ => name,
        };
        for (url, span) in bases(table) {
            let origin = format!("the base URL of {name} of Kimi Code");
            // One that is written with escapes does not stand there as it is.
            let at = text.get(span.clone()).and_then(|raw| raw.find(url));
            let Some(start) = at.map(|at| span.start + at).filter(|_| !url.is_empty()) else {
                continue;
            };
            let place = start..start + url.len();
            let route = routes.lead_configured(&origin, api, url);
            places.extend(route.map(|route| Led { place, url: url.to_owned(), route }));
        }
    }
    places.sort_by_key(|led| led.place.start);
    let settings = SettingsText::new(text.clone(), places);
    settings.is_led().then_some(Overlay { client: &CLIENT, folder, settings })
}

fn string<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

/// The base URLs of a provider or of a model, with their places.
fn bases<'t>(table: &'t DeTable<'_>) -> impl Iterator<Item = (&'t str, Range<usize>)> {
    let variables = table.get("env").and_then(|env| env.get_ref().as_table());
    let named = VARIABLES.iter().filter_map(move |key| variables?.get(*key));
    let values = table.get(BASE).into_iter().chain(named);
    values.filter_map(|value| Some((value.get_ref().as_str()?, value.span())))
}
