//! The folder in which the user's programs keep what they can make again.

use std::path::PathBuf;

use crate::input::{home, variable};

/// The folder of this program; `None` where the user has no folder at all.
pub(super) fn folder() -> Option<PathBuf> {
    if let Some(folder) = variable("AFTERIMAGE_CACHE") {
        return Some(folder.into());
    }
    let of_system = if cfg!(target_os = "windows") {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Caches"))
    } else {
        // A relative path there means nothing.
        let named = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| home().map(|home| home.join(".cache")))
    };
    of_system.map(|folder| folder.join("afterimage"))
}
