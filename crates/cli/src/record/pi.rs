//! pi ignores the variables: it takes base URLs from `models.json` in its folder.
//!
//! The folder is laid over: a temporary one holds links to what is in it, and a `models.json` with
//! other base URLs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use afterimage::{
    json::{self, Object, ObjectExt, Value},
    log::{DiskFiles, write_atomic},
};

use super::{
    overlay,
    routes::{ANTHROPIC, OPENAI, Routes},
    stale,
};
use crate::{
    failure::{Failure, Outcome},
    output::note,
};

/// The variable that names pi's folder.
pub(super) const VARIABLE: &str = "PI_CODING_AGENT_DIR";
const MODELS: &str = "models.json";
const BASE: &str = "baseUrl";

/// What is laid over pi's folder.
#[derive(Debug)]
pub(super) struct Overlay {
    folder: PathBuf,
    models: Object,
    /// The base URLs in it, and the routes to them.
    bases: Vec<(String, String)>,
}

impl Overlay {
    /// Reads the folder of pi.
    pub(super) fn of(routes: &mut Routes) -> Outcome<Self> {
        let named = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
        let home = || Some(std::env::home_dir()?.join(".pi/agent"));
        let folder = named.map(PathBuf::from).or_else(home).unwrap_or_default();
        let path = folder.join(MODELS);
        let models = match fs::read(&path) {
            // pi takes comments, and commas before a bracket that closes.
            Ok(text) => json::read(&text)
                .or_else(|_| json::read(&without_comments(&text)))
                .map_err(|error| error.in_file(&path))?,
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
                let given = routes.is_given(name).then(|| routes.own(name)).transpose()?;
                if let Some(route) = given.or_else(|| routes.add_by_host_if_possible(&origin, url))
                {
                    bases.push((url.to_owned(), route));
                }
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
        Ok(Self { folder, models, bases })
    }

    /// Makes the temporary folder, with the base URLs of the routes.
    pub(super) fn create(self, base: impl Fn(&str) -> Option<String>) -> Outcome<OverlayFolder> {
        stale::restore_all(&std::env::temp_dir());
        let Self { folder, mut models, bases } = self;
        let bases: Vec<(String, String)> =
            bases.into_iter().filter_map(|(url, route)| Some((url, base(&route)?))).collect();
        if let Some(Value::Object(providers)) = models.get_mut("providers") {
            providers.values_mut().for_each(|provider| replace(provider, &bases));
        }
        let failed = |error: io::Error| {
            Failure::new(format!("cannot lay a folder over that of pi: {error}")).file(&folder)
        };
        // Of its owner alone, as `models.json` may hold keys.
        let mut builder = tempfile::Builder::new();
        builder.prefix(stale::PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let over = builder.tempdir().map_err(failed)?;
        overlay::link_all(&folder, over.path(), MODELS).map_err(failed)?;
        let text = Value::from(models).to_string();
        write_atomic(&DiskFiles, over.path().join(MODELS), text.as_bytes())?;
        let over = OverlayFolder { over, folder };
        over.note_user(std::process::id());
        Ok(over)
    }
}

/// A folder that lies over that of pi.
#[derive(Debug)]
pub(super) struct OverlayFolder {
    over: tempfile::TempDir,
    folder: PathBuf,
}

impl OverlayFolder {
    pub(super) fn path(&self) -> &Path {
        self.over.path()
    }

    /// Writes down that this process uses the folder, so that a later run can tell whether it is left
    /// behind.
    pub(super) fn note_user(&self, process: u32) {
        // Without it the folder stays where it is.
        let _ = stale::note(self.over.path(), &self.folder, process);
    }

    /// Moves what pi has written into pi's own folder, and removes this one. What cannot be moved
    /// stays, and it is said where.
    pub(super) fn restore(self) {
        let Self { over, folder } = self;
        if let Err(error) = move_back(over.path(), &folder) {
            let kept = over.keep();
            note(&format!(
                "cannot move what pi has written to {}: {error}; it is in {}",
                folder.display(),
                kept.display()
            ));
        }
    }
}

/// Moves what pi has written into its own folder.
pub(super) fn move_back(over: &Path, folder: &Path) -> io::Result<()> {
    // `models.json` may hold keys, and its base URLs are of no use any more.
    for name in [MODELS, stale::NOTE] {
        match fs::remove_file(over.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    overlay::move_back(over, folder)
}

/// The base URLs of a provider, and of its models.
fn urls(provider: &Value) -> impl Iterator<Item = &str> {
    let models = provider.get("models").and_then(Value::as_array).unwrap_or_default();
    std::iter::once(provider).chain(models).filter_map(|of| of.get(BASE)?.as_str())
}

fn replace(of: &mut Value, bases: &[(String, String)]) {
    let Value::Object(object) = of else { return };
    let url = object.str_at(BASE);
    let found = url.and_then(|url| bases.iter().find(|(known, _)| known == url));
    if let Some((_, base)) = found {
        object.put(BASE, base.as_str());
    }
    if let Some(Value::Array(models)) = object.get_mut("models") {
        models.iter_mut().for_each(|model| replace(model, bases));
    }
}

/// JSON without comments, and without commas before a bracket that closes.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut is_string = false;
    while let Some((byte, after)) = rest.split_first() {
        if !is_string && rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            rest = rest.get(end..).unwrap_or_default();
            continue;
        }
        if !is_string && rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|two| two == b"*/");
            rest = end.and_then(|end| rest.get(end + 4..)).unwrap_or_default();
            continue;
        }
        rest = after;
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => {
                kept.push(*byte);
                let Some((escaped, after)) = rest.split_first() else { break };
                kept.push(*escaped);
                rest = after;
                continue;
            }
            b'}' | b']' if !is_string => {
                let end = kept.trim_ascii_end().len();
                if kept.get(..end).is_some_and(|kept| kept.ends_with(b",")) {
                    kept.truncate(end - 1);
                }
            }
            _ => {}
        }
        kept.push(*byte);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_passed_over() {
        let text = br#"{ // a "comment"
            "a": "http://x/*y*/", /* and
            another */ "b": [1, 2, ], "c\"//": {},
        }"#;
        let value = json::read(&without_comments(text)).unwrap();
        assert_eq!(value.to_string(), r#"{"a":"http://x/*y*/","b":[1,2],"c\"//":{}}"#);
        for text in ["", "/*", "//", "\"\\", "\"a", "/* *", ",}"] {
            let _ = without_comments(text.as_bytes());
        }
    }
}
