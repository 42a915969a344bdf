//! Claude Code takes its base URL from its settings, and from the environment where they name none.
//!
//! `--settings` outranks the files of a user and of a project, and the last one counts alone. So where
//! settings name a base URL, `--settings` names that of the recorder. Only the files that an
//! organisation manages outrank it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use afterimage::json::{self, Object, Value};

use super::{
    argument::{Argument, Piece},
    routes::{ANTHROPIC, ANTHROPIC_URL, Routes},
};
use crate::output::note;

/// The variable that names its folder.
const FOLDER: &str = "CLAUDE_CONFIG_DIR";
const BASE: &str = "ANTHROPIC_BASE_URL";
const SETTINGS: &str = "--settings";
/// Names the files of settings that are read: `user`, `project`, `local`.
const SOURCES: &str = "--setting-sources";
/// Another host that Claude Code asks where a switch is set.
struct Platform {
    switch: &'static str,
    name: &'static str,
    /// Holds its base URL, of which `example` is one.
    variable: &'static str,
    example: &'static str,
}
const PLATFORMS: [Platform; 3] = [
    Platform {
        switch: "CLAUDE_CODE_USE_BEDROCK",
        name: "Bedrock",
        variable: "ANTHROPIC_BEDROCK_BASE_URL",
        example: "https://bedrock-runtime.REGION.amazonaws.com, and a key in \
                  AWS_BEARER_TOKEN_BEDROCK: what is signed is signed for its host",
    },
    Platform {
        switch: "CLAUDE_CODE_USE_VERTEX",
        name: "Vertex AI",
        variable: "ANTHROPIC_VERTEX_BASE_URL",
        example: "https://REGION-aiplatform.googleapis.com/v1",
    },
    Platform {
        switch: "CLAUDE_CODE_USE_FOUNDRY",
        name: "Microsoft Foundry",
        variable: "ANTHROPIC_FOUNDRY_BASE_URL",
        example: "https://RESOURCE.services.ai.azure.com/anthropic",
    },
];
/// Where an organisation puts its settings.
const MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode"
} else if cfg!(windows) {
    "C:\\Program Files\\ClaudeCode"
} else {
    "/etc/claude-code"
};

/// The arguments of Claude Code, with a base URL of the recorder where settings name another.
pub(super) fn arguments(arguments: &[OsString], routes: &mut Routes) -> Vec<Argument> {
    let mut all: Vec<Argument> = arguments.iter().cloned().map(Argument::Plain).collect();
    for Platform { switch, name, variable, example } in PLATFORMS {
        // Its settings outrank the environment.
        let settings = |name| in_files(arguments, name);
        let of_environment = || std::env::var(switch).ok();
        let is_on = settings(switch).map(|(_, value)| value).or_else(of_environment);
        let is_on = is_on.is_some_and(|value| !matches!(&*value, "" | "0" | "false"));
        let is_set = std::env::var(variable).is_ok_and(|value| !value.trim().is_empty());
        let named = settings(variable);
        if is_on && (named.is_some() || !is_set && !routes.is_asked(variable)) {
            let and = named.map(|(file, _)| format!("take {variable} out of {file}, and "));
            note(&format!(
                "{switch} is set: Claude Code asks {name}, past the recorder. To record, {}give \
                 --env {variable}={example}",
                and.unwrap_or_default()
            ));
        }
    }
    if let Some(path) = managed(Path::new(MANAGED)) {
        note(&format!(
            "{} sets {BASE}, which outranks all that the recorder can set: requests go there, and \
             nothing is recorded. To record, take it out and name it with `--upstream`",
            path.display()
        ));
        routes.settle_by_client(ANTHROPIC);
        return all;
    }
    let given = last_option(arguments, SETTINGS);
    let settings = match given.as_ref().map(|option| read_value(option.value)) {
        // What cannot be read there is for Claude Code to say.
        Some(None) => return all,
        Some(Some(settings)) => settings,
        None => Object::new(),
    };
    let named = base_url(&settings).map(|url| (SETTINGS.to_owned(), url));
    let Some((origin, url)) = named.or_else(|| in_files(arguments, BASE)) else { return all };
    // A blank one leads to the provider's own host, whatever the environment says.
    let url = if url.trim().is_empty() { ANTHROPIC_URL } else { &url };
    let origin = format!("{BASE} of {origin}");
    routes.settle_by_client(ANTHROPIC);
    let Some(route) = routes.lead(&origin, ANTHROPIC, url) else { return all };
    let pieces = with_base(settings, route);
    let Some(OptionValue { at, before, value }) = given else {
        let options = [Argument::Plain(SETTINGS.into()), Argument::Pieces(pieces)];
        all.splice(0..0, options);
        return all;
    };
    let before = before.to_owned();
    let argument = if is_text(value) {
        Argument::Pieces([vec![Piece::Text(before)], pieces].concat())
    } else {
        // A file may hold keys, which every user of the machine could read in an argument.
        Argument::File { before, pieces }
    };
    all.splice(at..=at, [argument]);
    all
}

/// The value of an option.
pub(super) struct OptionValue<'a> {
    /// Which argument holds it.
    pub(super) at: usize,
    /// What stands before it in that argument.
    pub(super) before: &'a str,
    pub(super) value: &'a str,
}

/// The last option of this name.
pub(super) fn last_option<'a>(arguments: &'a [OsString], name: &str) -> Option<OptionValue<'a>> {
    let texts = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
    let (mut found, mut is_value) = (None, false);
    // Behind `--` stands a prompt.
    for (at, text) in texts.take_while(|text| *text != "--").enumerate() {
        let attached = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        if std::mem::take(&mut is_value) {
            found = Some(OptionValue { at, before: "", value: text });
        } else if let Some(value) = attached {
            let before = text.strip_suffix(value).unwrap_or_default();
            found = Some(OptionValue { at, before, value });
        } else {
            is_value = text == name;
        }
    }
    found
}

/// The settings that `--settings` gives: a text, or a file.
fn read_value(value: &str) -> Option<Object> {
    if is_text(value) { parse(value.as_bytes()) } else { read(Path::new(value)) }
}

fn is_text(value: &str) -> bool {
    value.trim_start().starts_with('{')
}

fn read(path: &Path) -> Option<Object> {
    parse(&fs::read(path).ok()?)
}

fn parse(text: &[u8]) -> Option<Object> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    match json::read(text).ok()? {
        Value::Object(settings) => Some(settings),
        _ => None,
    }
}

fn base_url(settings: &Object) -> Option<String> {
    variable(settings, BASE)
}

/// A variable that settings set.
fn variable(settings: &Object, name: &str) -> Option<String> {
    settings.get("env")?.str_at(name).map(str::to_owned)
}

/// A variable in the files of a user and of a project, with its file. That of a project outranks that
/// of the user.
fn in_files(arguments: &[OsString], name: &str) -> Option<(String, String)> {
    let sources = last_option(arguments, SOURCES).map(|option| option.value);
    let is_read = |source: &str| {
        sources.is_none_or(|sources| sources.split(',').any(|name| name.trim() == source))
    };
    let files = files().into_iter().filter(|(source, _)| is_read(source));
    let mut named = files.map(|(_, path)| (path.display().to_string(), read(&path)));
    named.find_map(|(path, settings)| Some((path, variable(&settings?, name)?)))
}

/// The files, with the names of their sources. The first one that sets a variable counts.
fn files() -> Vec<(&'static str, PathBuf)> {
    let here = std::env::current_dir().unwrap_or_default();
    let root = here.ancestors().find(|folder| folder.join(".git").exists());
    let mut projects = vec![here.as_path()];
    projects.extend(root.filter(|root| *root != here));
    let mut found = Vec::new();
    for (source, name) in [("local", "settings.local.json"), ("project", "settings.json")] {
        found.extend(projects.iter().map(|project| (source, project.join(".claude").join(name))));
    }
    let named = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
    let home = || Some(std::env::home_dir()?.join(".claude"));
    let user = named.map(PathBuf::from).or_else(home);
    found.extend(user.map(|folder| ("user", folder.join("settings.json"))));
    found
}

/// The managed settings that name a base URL.
fn managed(folder: &Path) -> Option<PathBuf> {
    let more = fs::read_dir(folder.join("managed-settings.d")).into_iter().flatten().flatten();
    let mut files = more
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .chain([folder.join("managed-settings.json")]);
    files.find(|path| read(path).is_some_and(|settings| base_url(&settings).is_some()))
}

/// Settings as JSON, with the base URL of the recorder.
fn with_base(mut settings: Object, route: String) -> Vec<Piece> {
    let mut env = match settings.shift_remove("env") {
        Some(Value::Object(env)) => env,
        _ => Object::new(),
    };
    env.shift_remove(BASE);
    let begin = format!("{{\"env\":{{\"{BASE}\":");
    let end = format!("{}}}{}}}", further_members(&env), further_members(&settings));
    vec![Piece::Text(begin), Piece::Base(route), Piece::Text(end)]
}

/// The members of an object, each behind a comma.
fn further_members(object: &Object) -> String {
    let member =
        |(name, value): (&String, &Value)| format!(",{}:{value}", Value::from(name.as_str()));
    object.iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn managed_settings_are_found_in_the_file_and_in_the_folder_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("managed-settings.json");
        let more = scratch.path().join("managed-settings.d");
        let names = r#"{"env":{"ANTHROPIC_BASE_URL":"https://gateway.example"}}"#;
        assert_eq!(managed(scratch.path()), None);
        fs::write(&file, r#"{"env":{"OTHER":"x"}}"#).unwrap();
        assert_eq!(managed(scratch.path()), None);
        fs::create_dir(&more).unwrap();
        fs::write(more.join("10-notes.txt"), names).unwrap();
        assert_eq!(managed(scratch.path()), None);
        fs::write(more.join("10-gateway.json"), names).unwrap();
        assert_eq!(managed(scratch.path()), Some(more.join("10-gateway.json")));
        fs::remove_dir_all(&more).unwrap();
        fs::write(&file, names).unwrap();
        assert_eq!(managed(scratch.path()), Some(file));
    }

    #[test]
    fn the_last_settings_before_a_prompt_count() {
        let of = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            last_option(&arguments, SETTINGS).map(|option| (option.at, option.value.to_owned()))
        };
        assert_eq!(of(&["-p", "--settings"]), None);
        assert_eq!(of(&["--settings-file=a"]), None);
        assert_eq!(of(&["--settings", "a", "--settings=b", "-p"]), Some((2, "b".to_owned())));
        assert_eq!(of(&["--settings=b", "--settings", "a"]), Some((2, "a".to_owned())));
        assert_eq!(of(&["--settings", "a", "--", "--settings=b"]), Some((1, "a".to_owned())));
    }
}
