//! `llm` takes base URLs of further models from `extra-openai-models.yaml` in its folder, which is laid
//! over. Its other models take the variables.

use std::{fs, path::PathBuf};

use super::{
    overlay::{Client, Overlay},
    routes::{OPENAI, Routes},
    settings_text::SettingsText,
};

pub(super) const CLIENT: Client = Client {
    name: "llm",
    variable: "LLM_USER_PATH",
    file: "extra-openai-models.yaml",
    is_kept: true,
    made: &[],
    named_in: &[],
};
const KEYS: &[&str] = &["api_base"];

/// What is laid over the folder of `llm`, where its file names base URLs.
pub(super) fn overlay(routes: &mut Routes) -> Option<Overlay> {
    let folder = CLIENT.folder(|| Some(applications()?.join("io.datasette.llm")));
    let text = fs::read_to_string(folder.join(CLIENT.file)).ok()?;
    let origin = format!("api_base of {} of llm", CLIENT.file);
    let settings = SettingsText::of(text, KEYS, |url| routes.lead_configured(&origin, OPENAI, url));
    settings.is_led().then_some(Overlay { client: &CLIENT, folder, settings })
}

/// Where programs keep their settings.
fn applications() -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        return Some(std::env::home_dir()?.join("Library/Application Support"));
    }
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    named.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".config")))
}
