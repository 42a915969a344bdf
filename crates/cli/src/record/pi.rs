//! pi ignores the variables: it takes base URLs from `models.json` in its folder.
//!
//! The folder is laid over: a temporary one holds links to what is in it, and a `models.json` with
//! other base URLs.

use std::{fs, io};

use afterimage::json::{Object, ObjectExt, Value};

use super::{
    jsonc,
    overlay::{Client, Overlay},
    routes::{ANTHROPIC, OPENAI, Routes},
    settings_text::SettingsText,
};
use crate::failure::{Failure, Outcome};

const MODELS: &str = "models.json";
const BASE: &str = "baseUrl";

pub(super) const CLIENT: Client = Client {
    name: "pi",
    variable: "PI_CODING_AGENT_DIR",
    file: MODELS,
    // What is added to it is not the user's.
    is_kept: false,
    made: &["sessions"],
    named_in: &[],
};

/// What is laid over pi's folder.
pub(super) fn overlay(routes: &mut Routes) -> Outcome<Overlay> {
    let folder = CLIENT.folder(|| Some(std::env::home_dir()?.join(".pi/agent")));
    let path = folder.join(MODELS);
    let models = match fs::read(&path) {
        Ok(text) => jsonc::read(&text).map_err(|error| error.in_file(&path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Object::new().into(),
        Err(error) => return Err(Failure::cannot_open(&error).file(&path).into()),
    };
    let Value::Object(mut models) = models else {
        return Err(Failure::new("expected an object").file(&path).into());
    };
    let mut providers = match models.shift_remove("providers") {
        Some(Value::Object(providers)) => providers,
        _ => Object::new(),
    };
    let mut bases = Vec::new();
    for (name, provider) in &providers {
        for url in urls(provider) {
            let origin = format!("a base URL of {name} in models.json of pi");
            let route = routes.lead_configured(&origin, name, url);
            bases.extend(route.map(|route| (url.to_owned(), route)));
        }
    }
    for name in [OPENAI, ANTHROPIC] {
        // What pi brings along has no place in the file until somebody changes it.
        let mut provider = match providers.shift_remove(name) {
            Some(Value::Object(provider)) => provider,
            _ => Object::new(),
        };
        if !provider.contains_key(BASE) {
            provider.put(BASE, name);
            bases.push((name.to_owned(), routes.own(name)?));
        }
        providers.put(name, provider);
    }
    models.put("providers", providers);
    let route = |url: &str| bases.iter().find(|(known, _)| known == url).map(|(_, of)| of.clone());
    let settings = SettingsText::of(Value::from(models).to_string(), &[BASE], route);
    Ok(Overlay { client: &CLIENT, folder, settings })
}

/// The base URLs of a provider, and of its models.
fn urls(provider: &Value) -> impl Iterator<Item = &str> {
    let models = provider.get("models").and_then(Value::as_array).unwrap_or_default();
    std::iter::once(provider).chain(models).filter_map(|of| of.get(BASE)?.as_str())
}
