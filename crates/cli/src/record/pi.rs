//! pi ignores the variables: it takes base URLs from `models.json` in its folder.
//!
//! The folder is laid over: a temporary one holds links to what is in it, and a `models.json` with
//! other base URLs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use afterimage::json::{self, Object, ObjectExt, Value};

use super::routes::{ANTHROPIC, OPENAI, Routes};
use crate::failure::{Failure, Outcome};

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
            Ok(text) => json::read(&text).map_err(|error| error.in_file(&path))?,
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
                bases.push((url.to_owned(), routes.add(name, url)?));
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
                bases.push((name.to_owned(), name.to_owned()));
            }
            providers.put(name, provider);
        }
        models.put("providers", providers);
        Ok(Self { folder, models, bases })
    }

    /// Makes the temporary folder, with the base URLs of the routes.
    pub(super) fn lay(self, base: impl Fn(&str) -> Option<String>) -> Outcome<tempfile::TempDir> {
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
        let over = tempfile::Builder::new().prefix("afterimage-pi-").tempdir().map_err(failed)?;
        link_all(&folder, over.path()).map_err(failed)?;
        let text = Value::from(models).to_string();
        fs::write(over.path().join(MODELS), text).map_err(failed)?;
        Ok(over)
    }
}

/// The base URLs of a provider, and of its models.
fn urls(provider: &Value) -> impl Iterator<Item = &str> {
    let models = provider.get("models").and_then(Value::as_array).unwrap_or_default();
    std::iter::once(provider).chain(models).filter_map(|of| of.get(BASE)?.as_str())
}

fn replace(of: &mut Value, bases: &[(String, String)]) {
    let Value::Object(object) = of else { return };
    let url = object.get(BASE).and_then(Value::as_str);
    let found = url.and_then(|url| bases.iter().find(|(known, _)| known == url));
    if let Some((_, base)) = found {
        object.put(BASE, base.as_str());
    }
    if let Some(Value::Array(models)) = object.get_mut("models") {
        models.iter_mut().for_each(|model| replace(model, bases));
    }
}

/// Links to what is in a folder. Sessions that pi begins lie in the folder itself.
fn link_all(folder: &Path, over: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("sessions"))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != MODELS {
            link(&fs::canonicalize(entry.path())?, &over.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(to: &Path, from: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, from)
}

#[cfg(windows)]
fn link(to: &Path, from: &Path) -> io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    if to.is_dir() { symlink_dir(to, from) } else { symlink_file(to, from) }
}
