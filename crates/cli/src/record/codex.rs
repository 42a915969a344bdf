//! Codex ignores the variables: it takes base URLs in its configuration, or as `-c KEY=VALUE`.
//!
//! It takes `-c` settings in their order and then lays them over its configuration, key by key. The
//! parts of a key are what stands between dots, also within quotes. So a provider with a dot in its
//! name is set by a table of all providers.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf};

use afterimage::json::{self, Value};

use super::{
    argument::Argument,
    routes::{OPENAI, Routes},
    toml_text::TomlText,
};
use crate::failure::Outcome;

const OPENAI_KEY: &str = "openai_base_url";
const PROVIDERS: &str = "model_providers";
const BASE: &str = "base_url";
/// Where Codex goes with the login of a `ChatGPT` account.
const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The arguments of Codex with base URLs of the recorder.
///
/// # Errors
/// None that a user can cause.
pub(super) fn arguments(arguments: &[OsString], routes: &mut Routes) -> Outcome<Vec<Argument>> {
    let configuration = Configuration::read();
    let settings: Vec<Option<Setting<'_>>> = settings(arguments);
    // What the command line sets wins over the configuration.
    let is_set = |key: &str| settings.iter().flatten().any(|setting| setting.key == key);
    let mut first = Vec::new();
    let openai = match &configuration.openai {
        _ if is_set(OPENAI_KEY) => None,
        Some(url) => route(routes, OPENAI_KEY, OPENAI, url),
        // Only where nothing names another: that of its login is what it takes by itself.
        None if !routes.is_given(OPENAI) && has_chatgpt_login() => {
            routes.add_if_possible("the login", "chatgpt", CHATGPT)
        }
        None => Some(routes.own(OPENAI)?),
    };
    let mut set = |before: String, route: &str| {
        first.push(Argument::Plain("-c".into()));
        first.push(Argument::base(before, route));
    };
    if let Some(openai) = openai {
        set(format!("{OPENAI_KEY}="), &openai);
    }
    let mut configured = BTreeMap::new();
    for (name, url) in &configuration.providers {
        let key = format!("{PROVIDERS}.{name}.{BASE}");
        if is_set(&key) {
            continue;
        }
        if let Some(route) = routes.add_if_possible(&of_codex(&key), name, url) {
            if can_be_in_key(name) {
                set(format!("{key}="), &route);
            }
            configured.insert(name.clone(), route);
        }
    }
    let in_no_key = configured.iter().filter(|(name, _)| !can_be_in_key(name));
    let in_no_key: Vec<(&str, &str)> =
        in_no_key.map(|(name, route)| (name.as_str(), route.as_str())).collect();
    if !in_no_key.is_empty() {
        // Before all others: what follows goes into the table, and this would take its place.
        let mut text = TomlText::new(format!("{PROVIDERS}="));
        text.table(in_no_key, |text, route| {
            text.table([(BASE, route)], TomlText::base);
        });
        first.splice(0..0, [Argument::Plain("-c".into()), text.into_argument()]);
    }
    for (argument, setting) in arguments.iter().zip(settings) {
        let redirected = setting.and_then(|setting| setting.redirect(routes, &configured));
        first.push(redirected.unwrap_or_else(|| Argument::Plain(argument.clone())));
    }
    Ok(first)
}

/// Whether a provider can be named in a key.
fn can_be_in_key(name: &str) -> bool {
    !name.contains(['.', '='])
}

/// A setting on the command line.
struct Setting<'a> {
    /// The argument up to the value.
    before: &'a str,
    key: &'a str,
    value: &'a str,
}

/// For each argument the setting that it holds.
fn settings(arguments: &[OsString]) -> Vec<Option<Setting<'_>>> {
    let (mut is_value, mut is_over) = (false, false);
    let mut all = Vec::new();
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        is_over |= text == "--" && !is_value;
        let short = || text.strip_prefix("-c").map(|rest| rest.strip_prefix('=').unwrap_or(rest));
        let attached = || text.strip_prefix("--config=").or_else(short);
        let setting = if is_value { Some(text) } else { attached() };
        is_value = matches!(text, "-c" | "--config") && !is_value && !is_over;
        let setting = setting.filter(|_| !is_over).and_then(|setting| setting.split_once('='));
        all.push(setting.map(|(key, value)| {
            let before = text.strip_suffix(value).unwrap_or_default();
            Setting { before, key: key.trim(), value: value.trim() }
        }));
    }
    all
}

impl Setting<'_> {
    /// The argument with base URLs of the recorder; `None` where it holds none, or one that the
    /// recorder does not take.
    fn redirect(
        &self,
        routes: &mut Routes,
        configured: &BTreeMap<String, String>,
    ) -> Option<Argument> {
        let parts: Vec<&str> = self.key.split('.').collect();
        let base = |routes: &mut Routes, name: &str| {
            let route = route(routes, self.key, name, self.value.trim_matches(['"', '\'']))?;
            Some(Argument::base(self.before, route))
        };
        match parts.as_slice() {
            [OPENAI_KEY] => base(routes, OPENAI),
            [PROVIDERS, name, BASE] => base(routes, name.trim_matches('"')),
            [PROVIDERS, name] => {
                let table = self.table()?;
                let base = base_of(routes, configured, name, &table);
                let mut text = TomlText::new(self.before);
                provider(&mut text, &table, base.as_deref());
                Some(text.into_argument())
            }
            [PROVIDERS] => Some(self.redirect_all(routes, configured, &self.table()?)),
            _ => None,
        }
    }

    /// A table of all providers takes the place of what was set before, so it gets the base URLs of
    /// the configured ones too.
    fn redirect_all(
        &self,
        routes: &mut Routes,
        configured: &BTreeMap<String, String>,
        providers: &toml::Table,
    ) -> Argument {
        let mut all = Vec::new();
        for (name, value) in providers {
            let table = value.as_table().filter(|table| !table.is_empty());
            let base = table.and_then(|table| base_of(routes, configured, name, table));
            all.push((name.as_str(), (Some(value), base)));
        }
        let others = configured.iter().filter(|(name, _)| !providers.contains_key(*name));
        all.extend(others.map(|(name, route)| (name.as_str(), (None, Some(route.clone())))));
        let mut text = TomlText::new(self.before);
        text.table(all, |text, (value, base)| match value {
            Some(toml::Value::Table(table)) => provider(text, table, base.as_deref()),
            Some(other) => text.value(other),
            None => provider(text, &toml::Table::new(), base.as_deref()),
        });
        text.into_argument()
    }

    /// The value as a table. An empty one takes away what is configured, and is left.
    fn table(&self) -> Option<toml::Table> {
        let mut parsed = format!("value = {}", self.value).parse::<toml::Table>().ok()?;
        match parsed.remove("value")? {
            toml::Value::Table(table) if !table.is_empty() => Some(table),
            _ => None,
        }
    }
}

/// The route to the base URL of a provider: its own, or that of the configuration, over which the
/// table is laid.
fn base_of(
    routes: &mut Routes,
    configured: &BTreeMap<String, String>,
    name: &str,
    table: &toml::Table,
) -> Option<String> {
    match table.get(BASE).and_then(toml::Value::as_str) {
        Some(url) => route(routes, &format!("{PROVIDERS}.{name}.{BASE}"), name, url),
        None => configured.get(name).cloned(),
    }
}

/// Writes the table of a provider, with the base URL of a route.
fn provider(text: &mut TomlText, table: &toml::Table, base: Option<&str>) {
    let others = table.iter().filter(|(key, _)| base.is_none() || *key != BASE);
    let others = others.map(|(key, value)| (key.as_str(), Err(value)));
    let all = base.map(|route| (BASE, Ok(route))).into_iter().chain(others);
    text.table(all, |text, member| match member {
        Ok(route) => text.base(route),
        Err(value) => text.value(value),
    });
}

/// The route to a base URL that Codex has for a provider, under this key; `None` where the recorder
/// does not take it.
fn route(routes: &mut Routes, key: &str, name: &str, url: &str) -> Option<String> {
    if name != OPENAI {
        return routes.add_if_possible(&of_codex(key), name, url);
    }
    routes.lead(&of_codex(key), OPENAI, url)
}

fn of_codex(key: &str) -> String {
    format!("{key} of Codex")
}

/// Whether Codex was logged in to by a `ChatGPT` account, and not by a key.
fn has_chatgpt_login() -> bool {
    let text = home().and_then(|home| fs::read(home.join("auth.json")).ok());
    let Some(auth) = text.and_then(|text| json::read(&text).ok()) else { return false };
    let is_there = |key: &str| auth.get(key).is_some_and(|value| *value != Value::Null);
    match auth.str_at("auth_mode") {
        Some(mode) => mode.eq_ignore_ascii_case("chatgpt"),
        None => is_there("tokens") && !is_there("OPENAI_API_KEY"),
    }
}

fn home() -> Option<PathBuf> {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    home.or_else(|| Some(std::env::home_dir()?.join(".codex")))
}

/// The base URLs in the configuration.
#[derive(Default)]
struct Configuration {
    openai: Option<String>,
    /// The names of other providers, with their base URLs.
    providers: Vec<(String, String)>,
}

impl Configuration {
    /// What cannot be read there is for Codex to say.
    fn read() -> Self {
        let text = home().and_then(|home| fs::read_to_string(home.join("config.toml")).ok());
        let table = text.and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
        let url =
            |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(str::to_owned);
        let providers = table.get(PROVIDERS).and_then(toml::Value::as_table);
        let named = providers.into_iter().flatten();
        let providers =
            named.filter_map(|(name, provider)| Some((name.clone(), url(provider.get(BASE))?)));
        Self { openai: url(table.get(OPENAI_KEY)), providers: providers.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_each_form_that_codex_takes() {
        let arguments = ["-c", "a.b = 1", "-cc=2", "-c=d=3", "--config=e=x=y", "--config", "f=5"];
        let more = ["exec", "-c", "--", "-c", "g=6", "--", "-c", "h=7"];
        let arguments: Vec<OsString> = arguments.iter().chain(&more).map(OsString::from).collect();
        let found = settings(&arguments);
        let found: Vec<(&str, &str, &str)> =
            found.iter().flatten().map(|of| (of.before, of.key, of.value)).collect();
        assert_eq!(
            found,
            [
                ("a.b =", "a.b", "1"),
                ("-cc=", "c", "2"),
                ("-c=d=", "d", "3"),
                ("--config=e=", "e", "x=y"),
                ("f=", "f", "5"),
                ("g=", "g", "6"),
            ]
        );
    }
}
