//! Continue takes base URLs from `config.yaml`, and a file of another place as `--config FILE`.
//!
//! It does other things at OpenAI's own base URL, so that one stays as it is.

use std::{ffi::OsString, fs, path::PathBuf};

use super::{argument::Argument, claude::last_option, routes::Routes, settings_text::SettingsText};
use crate::output::note;

const CONFIG: &str = "--config";
/// The variable that names its folder.
const FOLDER: &str = "CONTINUE_GLOBAL_DIR";
const OWN_HOST: &str = "https://api.openai.com/";

/// The arguments of Continue, with a copy of its configuration where that names base URLs.
pub(super) fn arguments(arguments: &[OsString], routes: &mut Routes) -> Vec<Argument> {
    let mut all: Vec<Argument> = arguments.iter().cloned().map(Argument::Plain).collect();
    let given = last_option(arguments, CONFIG);
    let path = match &given {
        Some(option) => option.value.into(),
        None => folder().unwrap_or_default().join("config.yaml"),
    };
    // What is no file is the name of a configuration that Continue keeps for others.
    let Ok(text) = fs::read_to_string(&path) else { return all };
    let mut is_near = false;
    // Files that it names beside itself are looked for beside the copy.
    SettingsText::of(text.clone(), &["uses"], |place| {
        is_near |= place.starts_with('.') || place.starts_with("file:");
        None
    });
    if is_near {
        let path = path.display();
        note(&format!(
            "{path} uses files beside it, so it stays as it is, and its calls are not recorded"
        ));
        return all;
    }
    let settings = SettingsText::of(text, &["apiBase"], |url| {
        let origin = format!("apiBase of {}", path.display());
        if url.starts_with(OWN_HOST) {
            note(&format!(
                "{origin} is OpenAI's own: it stays as it is, and calls there are not recorded"
            ));
            return None;
        }
        routes.lead_configured(&origin, "", url)
    });
    if !settings.is_led() {
        return all;
    }
    let copy = |before: &str| Argument::Settings { before: before.to_owned(), settings };
    match given {
        Some(option) => {
            let argument = copy(option.before);
            all.splice(option.at..=option.at, [argument]);
        }
        None => {
            all.splice(0..0, [Argument::Plain(CONFIG.into()), copy("")]);
        }
    }
    all
}

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
    named.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".continue")))
}
