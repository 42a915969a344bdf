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
    settings_text::{SettingsText, mark},
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
    let wrong = |what: &str, found: &Value| {
        let failure = Failure::new(format!("expected {what}, found {}", found.kind()));
        failure.file(&path).hint("pi reads its providers there: correct the file, or move it away")
    };
    let mut models = match models {
        Value::Object(models) => models,
        other => return Err(wrong("an object", &other).into()),
    };
    let mut providers = match models.shift_remove("providers") {
        Some(Value::Object(providers)) => providers,
        None | Some(Value::Null) => Object::new(),
        Some(other) => return Err(wrong("an object `providers`", &other).into()),
    };
    for (name, provider) in providers.iter_mut() {
        lead(name, provider, routes);
    }
    for name in [OPENAI, ANTHROPIC] {
        // What pi brings along has no place in the file until somebody changes it.
        let mut provider = match providers.shift_remove(name) {
            Some(Value::Object(provider)) => provider,
            _ => Object::new(),
        };
        if !provider.contains_key(BASE) {
            provider.put(BASE, mark(&routes.own(name)?, routes.own_url(name)));
        }
        providers.put(name, provider);
    }
    models.put("providers", providers);
    let settings = SettingsText::marked(&models.into(), &[BASE]);
    Ok(Overlay { client: &CLIENT, folder, settings })
}

/// Puts marks in the place of the base URLs of a provider, and of its models.
fn lead(provider: &str, of: &mut Value, routes: &mut Routes) {
    let Value::Object(of) = of else { return };
    let origin = format!("a base URL of {provider} in models.json of pi");
    let url = of.get(BASE).and_then(Value::as_str);
    let led = url.and_then(|url| Some(mark(&routes.lead_configured(&origin, provider, url)?, url)));
    if let Some(led) = led {
        of.put(BASE, led);
    }
    if let Some(Value::Array(models)) = of.get_mut("models") {
        models.iter_mut().for_each(|model| lead(provider, model, routes));
    }
}
