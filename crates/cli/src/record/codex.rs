//! Codex ignores the variables: it takes base URLs in its configuration, or as `-c KEY=VALUE`.

use std::{ffi::OsString, fs, path::PathBuf};

use afterimage::json::{self, Value};

use super::{
    args::Record,
    launch::Argument,
    routes::{OPENAI, Routes},
};
use crate::failure::Outcome;

const OPENAI_KEY: &str = "openai_base_url";
/// Where Codex goes with the login of a `ChatGPT` account.
const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The arguments of Codex with base URLs of the recorder.
pub(super) fn arguments(
    args: &Record,
    arguments: &[OsString],
    routes: &mut Routes,
) -> Outcome<Vec<Argument>> {
    let mut found = Vec::new();
    let mut keys = Vec::new();
    // What the command line sets wins over the configuration.
    let (mut is_value, mut is_over) = (false, false);
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        is_over |= text == "--" && !is_value;
        let attached = || text.strip_prefix("--config=").or_else(|| text.strip_prefix("-c"));
        let setting = if is_value { Some(text) } else { attached() };
        let setting = setting.filter(|_| !is_over).and_then(|setting| setting.split_once('='));
        is_value = matches!(text, "-c" | "--config") && !is_value && !is_over;
        let base = setting.and_then(|(key, value)| Some((is_base(key)?, key, value)));
        let Some((name, key, value)) = base else {
            found.push(Argument::Plain(argument.clone()));
            continue;
        };
        let route = route(args, routes, &name, value.trim_matches(['"', '\'']))?;
        keys.push(key.to_owned());
        let before = text.strip_suffix(value).unwrap_or_default().to_owned();
        found.push(Argument::Base { before, route });
    }
    let mut first = Vec::new();
    let mut set = |key: &str, route: String| {
        if !keys.iter().any(|known| known == key) {
            first.push(Argument::Plain("-c".into()));
            first.push(Argument::Base { before: format!("{key}="), route });
        }
    };
    let configured = configured();
    let own = configured.iter().find(|(key, ..)| key == OPENAI_KEY);
    let openai = match own {
        Some((_, name, url)) => route(args, routes, name, url)?,
        // Only where nothing names another: that of its login is what it takes by itself.
        None if args.upstream.is_empty() && has_chatgpt_login() => {
            routes.add("chatgpt", CHATGPT)?
        }
        None => OPENAI.to_owned(),
    };
    set(OPENAI_KEY, openai);
    for (key, name, url) in configured.iter().filter(|(key, ..)| key != OPENAI_KEY) {
        if let Some(route) = routes.add_if_possible(&format!("{key} of Codex"), name, url) {
            set(key, route);
        }
    }
    first.extend(found);
    Ok(first)
}

/// The name of the provider that a key of the configuration is the base URL of.
fn is_base(key: &str) -> Option<String> {
    if key == OPENAI_KEY {
        return Some(OPENAI.to_owned());
    }
    let name = key.strip_prefix("model_providers.")?.strip_suffix(".base_url")?;
    Some(name.trim_matches('"').to_owned())
}

/// The route to a base URL that Codex has for a provider.
fn route(args: &Record, routes: &mut Routes, name: &str, url: &str) -> Outcome<String> {
    if name != OPENAI {
        return routes.add(name, url);
    }
    // `--upstream` is asked for now, and the configuration was written at some time.
    if args.upstream.is_empty() {
        routes.redirect(OPENAI, url)?;
    }
    Ok(OPENAI.to_owned())
}

/// Whether Codex was logged in to by a `ChatGPT` account, and not by a key.
fn has_chatgpt_login() -> bool {
    let text = home().and_then(|home| fs::read(home.join("auth.json")).ok());
    let Some(auth) = text.and_then(|text| json::read(&text).ok()) else { return false };
    let is_there = |key: &str| auth.get(key).is_some_and(|value| *value != Value::Null);
    match auth.get("auth_mode").and_then(Value::as_str) {
        Some(mode) => mode.eq_ignore_ascii_case("chatgpt"),
        None => is_there("tokens") && !is_there("OPENAI_API_KEY"),
    }
}

fn home() -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    home.or_else(|| Some(std::env::home_dir()?.join(".codex")))
}

/// The base URLs in the configuration: the key, the provider's name, the URL.
fn configured() -> Vec<(String, String, String)> {
    let text = home().and_then(|home| fs::read_to_string(home.join("config.toml")).ok());
    let table = text.and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
    let url = |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(str::to_owned);
    let mut found = Vec::new();
    if let Some(url) = url(table.get(OPENAI_KEY)) {
        found.push((OPENAI_KEY.to_owned(), OPENAI.to_owned(), url));
    }
    let providers = table.get("model_providers").and_then(toml::Value::as_table);
    for (name, provider) in providers.into_iter().flatten() {
        // A key with other characters cannot be written without quotes.
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if let Some(url) = url(provider.get("base_url")).filter(|_| is_plain) {
            found.push((format!("model_providers.{name}.base_url"), name.clone(), url));
        }
    }
    found
}
