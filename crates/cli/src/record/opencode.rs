//! `OpenCode` lays the configuration in a variable over those of its files, key by key.
//!
//! So that variable gets the base URLs of all providers which its files name. Only the files that an
//! organisation manages outrank it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use afterimage::json::{Object, ObjectExt, Value};

use super::{
    claude::last_option,
    jsonc,
    routes::Routes,
    scene::here,
    settings_text::{SettingsText, mark},
};
use crate::output::note;

/// The variable.
pub(super) const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
const KEYS: &[&str] = &["baseURL", "api"];
const PROVIDER: &str = "provider";
/// Where an organisation puts its configuration.
const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/opencode"
} else if cfg!(windows) {
    "C:\\ProgramData\\opencode"
} else {
    "/etc/opencode"
};
/// What serves sessions of any folder, whose files nobody knows before.
const SERVERS: [&str; 4] = ["serve", "web", "acp", "attach"];
/// The options of each command that take no value: a word behind any other one is its value.
const FLAGS: [&str; 6] = ["--print-logs", "--pure", "-h", "--help", "-v", "--version"];
/// The option that names the folder of a command.
const FOLDER: &str = "--dir";

/// What the variable holds, where a configuration names base URLs.
pub(super) fn content(arguments: &[OsString], routes: &mut Routes) -> Option<SettingsText> {
    if command(arguments).is_some_and(|command| SERVERS.contains(&command)) {
        return None;
    }
    let mut providers = Object::new();
    for path in files(&folder(arguments)) {
        lay(&mut providers, read(&path).as_ref().and_then(|of| of.get(PROVIDER)));
    }
    let given = std::env::var(CONTENT).unwrap_or_default();
    let mut content = match jsonc::read(given.as_bytes()) {
        Ok(Value::Object(content)) => content,
        Err(_) if given.trim().is_empty() => Object::new(),
        _ => return None,
    };
    lay(&mut providers, content.get(PROVIDER));
    for path in in_folder(Path::new(MANAGED)) {
        let managed = read(&path);
        let named = managed.as_ref().and_then(|of| of.get(PROVIDER)?.as_object());
        for (name, _) in named.into_iter().flatten() {
            if providers.shift_remove(name).is_some() {
                let path = path.display();
                note(&format!(
                    "{path} outranks all that the recorder can set: calls of {name} may not be recorded"
                ));
            }
        }
    }
    for (name, provider) in providers.iter_mut() {
        keep_bases(provider, &mut |url| {
            let origin = format!("the base URL of {name} of OpenCode");
            let resolved = resolved(url, routes)?;
            Some(mark(&routes.lead_configured(&origin, name, &resolved)?, url))
        });
    }
    let mut all = match content.shift_remove(PROVIDER) {
        Some(Value::Object(all)) => all,
        _ => Object::new(),
    };
    lay(&mut all, Some(&Value::from(providers)));
    content.put(PROVIDER, all);
    let settings = SettingsText::marked(&content.into(), KEYS);
    settings.is_led().then_some(settings)
}

/// Lays one object over another, key by key.
fn lay(below: &mut Object, over: Option<&Value>) {
    for (key, value) in over.and_then(Value::as_object).into_iter().flatten() {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(_)) => lay(below, Some(value)),
            _ => {
                below.put(key.as_str(), value.clone());
            }
        }
    }
}

/// Leaves the base URLs alone, with marks in their place.
fn keep_bases(value: &mut Value, lead: &mut impl FnMut(&str) -> Option<Value>) {
    let Value::Object(object) = value else { return };
    object.retain(|key, value| match value {
        Value::String(url) if KEYS.contains(&key.as_str()) => {
            if let Some(led) = lead(url) {
                *value = led;
            }
            true
        }
        Value::Object(_) => {
            keep_bases(value, lead);
            value.as_object().is_some_and(|object| !object.is_empty())
        }
        _ => false,
    });
}

/// A base URL with what variables hold, as OpenCode reads it: what they hold is not read again. `None`
/// where `--env` leads one of them already.
fn resolved(url: &str, routes: &Routes) -> Option<String> {
    let mut parts = url.split("{env:");
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (name, behind) = part.split_once('}')?;
        if routes.is_asked(name) {
            return None;
        }
        text += &std::env::var(name).unwrap_or_default();
        text += behind;
    }
    Some(text)
}

/// The command, or the folder that stands in its place: the first word that is no option's.
fn command(arguments: &[OsString]) -> Option<&str> {
    let words = arguments.iter().map(|word| word.to_str().unwrap_or_default());
    let is_option = |word: &&str| word.starts_with('-');
    let mut words = words.take_while(|word| *word != "--").peekable();
    while let Some(option) = words.next_if(is_option) {
        if !option.contains('=') && !FLAGS.contains(&option) {
            words.next_if(|word| !is_option(word));
        }
    }
    words.next()
}

/// The folder that `OpenCode` works in.
fn folder(arguments: &[OsString]) -> PathBuf {
    let named = last_option(arguments, FOLDER).map(|option| option.value);
    let folder = named.or_else(|| command(arguments)).map(|path| here().join(path));
    folder.filter(|path| path.is_dir()).unwrap_or_else(here)
}

/// The files of configuration; a later one is laid over the earlier ones.
fn files(folder: &Path) -> Vec<PathBuf> {
    let named = |variable: &str| {
        std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    let home = std::env::home_dir().unwrap_or_default();
    let own = named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("opencode");
    let mut files = vec![own.join("config.json")];
    files.extend(in_folder(&own));
    files.extend(named("OPENCODE_CONFIG"));
    let is_off = |value: PathBuf| value.as_os_str() == "1" || value.as_os_str() == "true";
    let mut projects: Vec<&Path> = Vec::new();
    if !named("OPENCODE_DISABLE_PROJECT_CONFIG").is_some_and(is_off) {
        projects.extend(folder.ancestors());
        let root = projects.iter().position(|folder| folder.join(".git").exists());
        projects.truncate(root.map_or(projects.len(), |root| root + 1));
    }
    files.extend(projects.iter().rev().flat_map(|folder| in_folder(folder)));
    let mut further: Vec<PathBuf> =
        projects.iter().map(|folder| folder.join(".opencode")).collect();
    further.push(home.join(".opencode"));
    further.extend(named("OPENCODE_CONFIG_DIR"));
    files.extend(further.iter().flat_map(|folder| in_folder(folder)));
    files
}

fn in_folder(folder: &Path) -> [PathBuf; 2] {
    ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name))
}

/// What cannot be read is for `OpenCode` to say.
fn read(path: &Path) -> Option<Object> {
    match jsonc::read(&fs::read(path).ok()?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_first_word_that_is_no_value_of_an_option() {
        for (arguments, expected) in [
            (&["run", "serve"][..], Some("run")),
            (&["run", "--model", "m", "web"], Some("run")),
            (&["--prompt", "serve"], None),
            (&["--prompt=x", "serve"], Some("serve")),
            (&["--print-logs", "--log-level", "DEBUG", "serve"], Some("serve")),
            (&["-c", "--print-logs", "acp"], Some("acp")),
            (&["--", "serve"], None),
            (&[], None),
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(command(&arguments), expected, "{arguments:?}");
        }
    }
}
