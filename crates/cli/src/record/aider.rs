//! aider loads `.env` files over its environment, and takes `--openai-api-base` over both.
//!
//! So where a file names a base URL, `--set-env` names that of the recorder, and where an option or
//! `.aider.conf.yml` does, `--openai-api-base` does.

use std::{ffi::OsString, path::PathBuf};

use super::{
    argument::{Argument, Piece},
    claude::last_option,
    dotenv::{NamedBase, home, in_env_file},
    facts::Facts,
    routes::Routes,
    scene::{here, read},
};
use crate::failure::Outcome;

const API_BASE: &str = "--openai-api-base";
const SET: &str = "--set-env";
const ENV_FILE: &str = "--env-file";
const VARIABLE: &str = "OPENAI_API_BASE";
/// The variable of that option, which a `.env` file may set too.
const OPTION_VARIABLE: &str = "AIDER_OPENAI_API_BASE";

/// The arguments of aider, with base URLs of the recorder.
///
/// # Errors
/// A failure where a base URL is named in a way that nobody can follow, and the command line names
/// none.
pub(super) fn arguments(
    facts: &Facts,
    arguments: &[OsString],
    routes: &mut Routes,
) -> Outcome<Vec<Argument>> {
    let configuration = folders().into_iter().rev().map(|folder| folder.join(".aider.conf.yml"));
    let configuration: Vec<(PathBuf, String)> =
        configuration.filter_map(|path| Some((path.clone(), read(&path)?))).collect();
    let setting = |option: &str| {
        let given = last_option(arguments, option);
        let given = given.map(|of| (option.to_owned(), of.value.to_owned()));
        let variable = format!("AIDER{}", option.trim_start_matches('-').replace('-', "_"));
        let variable = variable.replace("AIDER", "AIDER_").to_uppercase();
        let set = || Some((variable.clone(), std::env::var(&variable).ok()?));
        given.or_else(set).or_else(|| in_configuration(&configuration, option))
    };
    let mut files: Vec<PathBuf> =
        home().map(|home| home.join(".aider/oauth-keys.env")).into_iter().collect();
    files.extend(folders().into_iter().map(|folder| folder.join(".env")));
    files.extend(setting(ENV_FILE).map(|(_, path)| here().join(path)));
    let texts = files.iter().filter_map(|path| Some((path, read(path)?)));
    let named: Vec<NamedBase> =
        texts.flat_map(|(path, text)| in_env_file(facts, path, &text)).collect();
    let is_set = configuration.iter().any(|(_, text)| text.contains("set-env"))
        || arguments.iter().any(|word| word.to_string_lossy().starts_with(SET));

    let mut added = Vec::new();
    let of_option = named.iter().rfind(|of| of.variable == OPTION_VARIABLE);
    let of_option = of_option.and_then(|of| Some((of.origin.clone(), of.value.clone()?)));
    let option =
        last_option(arguments, API_BASE).map(|of| (API_BASE.to_owned(), of.value.to_owned()));
    if let Some((origin, url)) = option.or(of_option).or_else(|| setting(API_BASE)) {
        let route = routes.lead_variable(facts, VARIABLE, &format!("{API_BASE} of {origin}"), &url);
        if let Some(route) = route {
            added.extend([Argument::Plain(API_BASE.into()), plain_base("", &route)]);
        }
    }
    // Of two files the later one wins.
    let names: std::collections::BTreeSet<&str> =
        named.iter().map(|of| of.variable.as_str()).collect();
    for name in names.into_iter().filter(|name| *name != OPTION_VARIABLE) {
        let Some(of) = named.iter().rfind(|of| of.variable == name) else { continue };
        // Those of a configuration would be lost beside others on the command line.
        let value = of.value.as_deref().filter(|_| !is_set);
        let Some(url) = value else {
            routes.refuse_unless_named(facts, of)?;
            continue;
        };
        if let Some(route) = routes.lead_variable(facts, name, &of.origin, url) {
            added.extend([Argument::Plain(SET.into()), plain_base(&format!("{name}="), &route)]);
        }
    }
    // The last option of a name counts; behind `--` stand files.
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let (options, files) = arguments.split_at_checked(end).unwrap_or((arguments, &[]));
    let plain = |words: &[OsString]| words.iter().cloned().map(Argument::Plain).collect::<Vec<_>>();
    Ok([plain(options), added, plain(files)].into_iter().flatten().collect())
}

/// The base URLs that its files name, where nobody knows its arguments.
pub(super) fn named(facts: &Facts) -> Vec<NamedBase> {
    let mut named = Vec::new();
    for folder in folders() {
        let path = folder.join(".env");
        named.extend(read(&path).iter().flat_map(|text| in_env_file(facts, &path, text)));
        let path = folder.join(".aider.conf.yml");
        let text = read(&path).unwrap_or_default();
        if text.contains("openai-api-base") || text.contains("set-env") {
            let (variable, origin) = (VARIABLE.to_owned(), path.display().to_string());
            named.push(NamedBase { variable, value: None, origin, is_forced: true });
        }
    }
    named.iter_mut().for_each(|of| of.is_forced = true);
    named
}

fn plain_base(before: &str, route: &str) -> Argument {
    Argument::Pieces(vec![Piece::Text(before.to_owned()), Piece::PlainBase(route.to_owned())])
}

/// The folders of its files: of the user, of the repository, and this one. The later one wins.
fn folders() -> Vec<PathBuf> {
    let here = here();
    let root = here.ancestors().find(|folder| folder.join(".git").exists());
    let root = root.map(std::path::Path::to_owned);
    home().into_iter().chain(root).chain([here.clone()]).collect()
}

fn in_configuration(files: &[(PathBuf, String)], option: &str) -> Option<(String, String)> {
    let key = option.trim_start_matches('-');
    files.iter().find_map(|(path, text)| {
        let value = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix(':'))?;
        let value = value.split(" #").next().unwrap_or_default().trim();
        Some((path.display().to_string(), value.trim_matches(['"', '\'']).to_owned()))
    })
}
