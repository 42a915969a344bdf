//! Files that set variables for programs, and who loads which.

use std::path::{Path, PathBuf};

use super::{
    aider,
    facts::{ClientFacts, EnvFiles, Facts},
    scene::{Scene, here, read},
};

/// A variable that a file or a text sets.
#[derive(Debug)]
pub(super) struct NamedBase {
    pub(super) variable: String,
    /// `None` where it cannot be told without running anything.
    pub(super) value: Option<String>,
    /// Where it is set.
    pub(super) origin: String,
    /// Whether it wins over a variable that is set.
    pub(super) is_forced: bool,
}

/// The base URLs that the `.env` files of a client name. Of two files the earlier one wins, as loaders
/// never override.
pub(super) fn of_client(facts: &Facts, client: &ClientFacts, scene: &Scene) -> Vec<NamedBase> {
    let mut found = Vec::new();
    for files in &client.files {
        let Some((path, text)) = first_file(files, scene) else { continue };
        found.extend(in_env_file(facts, &path, &text));
        if !client.all {
            break;
        }
    }
    found
}

/// The files of settings of a client that name a base URL.
pub(super) fn settings(client: &ClientFacts) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = here().ancestors().map(Path::to_owned).collect();
    let paths = client.settings.iter().flat_map(|name| match name.strip_prefix("~/") {
        Some(rest) => home().map(|home| home.join(rest)).into_iter().collect::<Vec<_>>(),
        None => folders.iter().map(|folder| folder.join(name)).collect(),
    });
    let names_base = |path: &PathBuf| {
        let text = read(path).unwrap_or_default().to_ascii_lowercase();
        ["\"baseurl\"", "base_url\""].iter().any(|word| text.contains(word))
    };
    paths.filter(names_base).collect()
}

/// The base URLs that any program could find: in `.env` files of its folder, of what it is given and
/// of its own place, and of the folders above; in scripts and on the command line.
pub(super) fn of_any(facts: &Facts, scene: &Scene) -> Vec<NamedBase> {
    let here = here();
    let mut folders: Vec<PathBuf> = here.ancestors().map(Path::to_owned).collect();
    let mut files = Vec::new();
    // Loaders look beside the module that calls them.
    let modules = std::env::var_os("PYTHONPATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&modules).map(|folder| here.join(folder)));
    for place in scene.places.iter().map(|place| here.join(place)) {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if place.is_dir() {
            folders.extend(place.ancestors().map(Path::to_owned));
        } else if place.is_file() {
            folders.extend(place.ancestors().skip(1).map(Path::to_owned));
            // A file of any name, as that of `--env-file`.
            files.extend(name.contains("env").then_some(place));
        }
    }
    folders.sort();
    folders.dedup();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| facts.is_env_file(name)));
        files.extend(names.map(|entry| entry.path()));
    }
    files.sort();
    files.dedup();
    let unknown = |origin: String| {
        ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"].map(|variable| NamedBase {
            variable: variable.to_owned(),
            value: None,
            origin: origin.clone(),
            is_forced: true,
        })
    };
    let in_file = |path: PathBuf| match read(&path) {
        Some(text) => in_env_file(facts, &path, &text),
        // Loaders pass over a folder.
        None if path.is_dir() => Vec::new(),
        None => unknown(format!("{}, which cannot be read here,", path.display())).into(),
    };
    let mut found: Vec<NamedBase> = files.into_iter().flat_map(in_file).collect();
    let loader = scene.loader.as_ref();
    found.extend(loader.into_iter().flat_map(|loader| unknown(format!("what {loader} loads"))));
    found.extend(in_texts(facts, scene));
    for client in &scene.clients {
        found.extend(of_client(facts, client, scene));
        if client.is_led_by_arguments() {
            found.extend(aider::named(facts));
        }
    }
    found
}

/// The base URLs that scripts, files of settings and the command line set.
pub(super) fn in_texts(facts: &Facts, scene: &Scene) -> Vec<NamedBase> {
    let mut found = Vec::new();
    for (origin, text) in &scene.texts {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let variables = lines.flat_map(assigned).filter(|name| facts.provider_of(name).is_some());
        found.extend(variables.map(|variable| {
            let (variable, origin) = (variable.to_owned(), origin.clone());
            NamedBase { variable, value: None, origin, is_forced: true }
        }));
    }
    found
}

/// The names in a line that something is assigned to.
fn assigned(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(['=', ':']).filter_map(move |(at, sign)| {
        let (before, behind) = line.split_at_checked(at)?;
        // A make file has `:=`, `?=` and blanks before them; JSON and YAML have blanks or quotes
        // behind the sign.
        let next = behind.chars().nth(1).unwrap_or(' ');
        let is_set = if sign == "=" { next != '=' } else { " \t\"'".contains(next) };
        let before = before.trim_end_matches([' ', '\t', ':', '?', '+', '"', '\'', ']']);
        let variable = before.rsplit(|c| !is_word(c)).next()?;
        let rest = before.strip_suffix(variable)?;
        let is_read = rest.ends_with('$') || rest.ends_with("${");
        (is_set && !is_read).then_some(variable)
    })
}

/// The base URLs that a `.env` file names.
pub(super) fn in_env_file(facts: &Facts, path: &Path, text: &str) -> Vec<NamedBase> {
    // Some loaders pass over the mark at its beginning.
    let lines = text.lines().map(|line| line.trim_start_matches('\u{feff}').trim());
    let named = lines.filter_map(|line| {
        let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
        let line = exported.unwrap_or(line).trim_start();
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let (variable, rest) = line.split_at_checked(end)?;
        facts.provider_of(variable)?;
        let rest = rest.trim_start();
        let value = rest.strip_prefix('=').or_else(|| rest.strip_prefix(':'))?;
        let value = value_of(value.trim())?;
        let origin = path.display().to_string();
        Some(NamedBase { variable: variable.to_owned(), value, origin, is_forced: false })
    });
    named.collect()
}

/// The value behind `=`: `None` where it is empty, and none inside where it depends on what is run.
#[allow(clippy::option_option, reason = "no value, and one that nobody knows")]
fn value_of(text: &str) -> Option<Option<String>> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'));
    let value = match quote {
        Some(quote) => {
            let rest = text.get(1..).unwrap_or_default();
            match rest.find(quote) {
                Some(end) => rest.get(..end).unwrap_or_default(),
                // It goes on in another line.
                None => return Some(None),
            }
        }
        None if text.starts_with('#') => "",
        None => text.split(" #").next().unwrap_or_default().split("\t#").next().unwrap_or_default(),
    };
    let value = value.trim();
    let is_told = quote == Some('\'') || !value.contains(['$', '\\', '`']);
    (!value.is_empty()).then(|| is_told.then(|| value.to_owned()))
}

/// The first file that is there, of those that a client looks for.
fn first_file(files: &EnvFiles, scene: &Scene) -> Option<(PathBuf, String)> {
    let folders: Vec<PathBuf> = match files.from.as_str() {
        "up" => here().ancestors().map(Path::to_owned).collect(),
        "program" => {
            scene.places.iter().flat_map(|path| path.ancestors()).map(Path::to_owned).collect()
        }
        from => from.split('|').find_map(place).into_iter().collect(),
    };
    let paths =
        folders.iter().flat_map(|folder| files.names.iter().map(move |name| folder.join(name)));
    paths.filter(|path| path.is_file()).find_map(|path| Some((path.clone(), read(&path)?)))
}

/// A place that begins with `~` or with a variable; `None` where that is not set.
fn place(text: &str) -> Option<PathBuf> {
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    let folder = match first.strip_prefix('$') {
        Some(variable) => {
            std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
        }
        None => home(),
    };
    Some(folder?.join(rest))
}

pub(super) fn home() -> Option<PathBuf> {
    std::env::home_dir()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn a_line_of_an_env_file_is_read_as_loaders_read_it() {
        let facts = Facts::get().unwrap();
        for (line, value) in [
            ("OPENAI_API_BASE=http://h/v1", Some(Some("http://h/v1"))),
            ("export OPENAI_API_BASE='http://h/v1' # note\r", Some(Some("http://h/v1"))),
            ("\u{feff}  OPENAI_BASE_URL = \"http://h/v1\"", Some(Some("http://h/v1"))),
            ("export\tOPENAI_BASE_URL=http://h/v1 # note", Some(Some("http://h/v1"))),
            ("ANTHROPIC_BASE_URL: http://h#a", Some(Some("http://h#a"))),
            ("OPENAI_BASE_URL=${HOST}/v1", Some(None)),
            ("OPENAI_BASE_URL='${HOST}/v1'", Some(Some("${HOST}/v1"))),
            ("OPENAI_BASE_URL=\"http://h/", Some(None)),
            ("# OPENAI_BASE_URL=http://h", None),
            ("OPENAI_BASE_URL=", None),
            ("OPENAI_BASE_URL= # later", None),
            ("OPENAI_BASE_URL=''", None),
            ("OPENAI_API_KEY=sk-1", None),
            ("exported OPENAI_BASE_URL=http://h", None),
        ] {
            let text = format!("A=1\n{line}\nB=2\n");
            let found = in_env_file(facts, Path::new(".env"), &text);
            let found = found.first().map(|of| of.value.as_deref());
            assert_eq!(found, value, "{line:?}");
        }
    }

    #[test]
    fn templates_of_env_files_are_loaded_by_nobody() {
        let facts = Facts::get().unwrap();
        for (name, is_one) in [
            (".env", true),
            (".env.local", true),
            (".env.production.local", true),
            (".env.example", false),
            (".env.local.sample", false),
            (".environment", false),
            ("env", false),
        ] {
            assert_eq!(facts.is_env_file(name), is_one, "{name}");
        }
    }
}
