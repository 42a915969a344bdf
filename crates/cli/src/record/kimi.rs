//! Kimi Code takes base URLs from `config.toml` in its folder, which is laid over.
//!
//! It writes the path of its folder beside its sessions, so that one is given back too. A provider with
//! a login stays as it is: Kimi Code does other things where the base URL is not that of the login.

use std::fs;

use super::{
    overlay::{Client, Overlay},
    routes::{ANTHROPIC, OPENAI, Routes},
    settings_text::SettingsText,
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
/// The key of a base URL, and the variables that a provider's own table of them may set.
const KEYS: &[&str] =
    &[BASE, "KIMI_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"];

/// What is laid over the folder of Kimi Code, where its file names base URLs of models.
pub(super) fn overlay(routes: &mut Routes) -> Option<Overlay> {
    let folder = CLIENT.folder(|| Some(std::env::home_dir()?.join(".kimi-code")));
    // What cannot be read there is for Kimi Code to say.
    let text = fs::read_to_string(folder.join(CLIENT.file)).ok()?;
    let configuration = text.parse::<toml::Table>().ok()?;
    let tables = |key: &str| {
        let named = configuration.get(key).and_then(toml::Value::as_table).into_iter().flatten();
        named.filter_map(|(name, of)| Some((name.as_str(), of.as_table()?))).collect::<Vec<_>>()
    };
    let (providers, models) = (tables("providers"), tables("models"));
    let provider_of = |url: &str| {
        let provider = providers.iter().find(|(_, of)| names(of, url));
        let of_model = || {
            let (_, model) = models.iter().find(|(_, of)| names(of, url))?;
            let name = model.get("provider")?.as_str()?;
            providers.iter().find(|(known, _)| *known == name)
        };
        provider.or_else(of_model)
    };
    for (name, _) in providers.iter().filter(|(_, of)| of.contains_key("oauth")) {
        note(&format!("{name} of Kimi Code has a login: its calls are not recorded"));
    }
    let settings = SettingsText::of(text.clone(), KEYS, |url| {
        // Another table has the base URL of a service that is no model.
        let (name, provider) = provider_of(url)?;
        let has_login = |(_, of): &(&str, &toml::Table)| of.contains_key("oauth") && names(of, url);
        if provider.contains_key("oauth") || providers.iter().any(has_login) {
            return None;
        }
        let kind = provider.get("type").and_then(toml::Value::as_str).unwrap_or_default();
        let api = match kind {
            "openai" | "openai_responses" => OPENAI,
            ANTHROPIC => ANTHROPIC,
            _ => name,
        };
        routes.lead_configured(&format!("the base URL of {name} of Kimi Code"), api, url)
    });
    settings.is_led().then_some(Overlay { client: &CLIENT, folder, settings })
}

/// Whether a table of a provider or of a model has this base URL.
fn names(table: &toml::Table, url: &str) -> bool {
    let is_it = |value: &toml::Value| value.as_str() == Some(url);
    let variables = table.get("env").and_then(toml::Value::as_table);
    table.get(BASE).is_some_and(is_it)
        || variables.is_some_and(|variables| variables.values().any(is_it))
}
