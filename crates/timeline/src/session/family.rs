//! Where a branch finds the session that it came from.

use std::path::{Component, Path, PathBuf, absolute};

use super::meta::{Parent, SessionMeta};
use crate::{Error, ErrorKind, Result, log::Files};

/// How many sessions a branch may share its past with, one after the other.
pub(super) const MOST_GENERATIONS: usize = 64;

/// The parent of a branch in `directory`, which is there, named as seen from it: so that both can
/// move together. Where the file system does not lead there, as across symbolic links, its absolute
/// path.
///
/// # Errors
/// `Shape` for a path that is no UTF-8, `Io`.
pub(super) fn seen_from(files: &dyn Files, directory: &Path, parent: Parent) -> Result<Parent> {
    let [from, to] = [directory, &*parent.directory].map(|path| absolute(path).ok());
    let relative = way(directory, &parent.directory)
        .or_else(|| way(from.as_deref()?, to.as_deref()?))
        .map(|directory| Parent { directory, ..parent.clone() });
    let in_full = Parent { directory: to.unwrap_or(parent.directory.clone()), ..parent };
    let candidates = || relative.iter().chain([&in_full]);
    for place in [joined, cleaned] {
        for candidate in candidates() {
            let found = SessionMeta::read(files, &place(directory, &candidate.directory))?;
            if found.is_some_and(|meta| meta.session_id == candidate.session_id) {
                return utf8(candidate.clone());
            }
        }
    }
    utf8(relative.unwrap_or(in_full))
}

fn utf8(parent: Parent) -> Result<Parent> {
    if parent.directory.to_str().is_some() {
        return Ok(parent);
    }
    let message = "a branch cannot name this directory: its path is not UTF-8";
    Err(Error::new(ErrorKind::Shape, message).in_file(parent.directory))
}

/// Where the parent of a branch may be, the likeliest place first.
pub(super) fn places(directory: &Path, parent: &Parent) -> Vec<PathBuf> {
    let named = &parent.directory;
    let mut places = vec![joined(directory, named), cleaned(directory, named)];
    // Both may have moved together.
    places.extend(named.file_name().map(|name| directory.join("..").join(name)));
    places
}

fn joined(directory: &Path, named: &Path) -> PathBuf {
    directory.join(named)
}

/// As [`joined`], with each `..` taken from the names before it.
fn cleaned(directory: &Path, named: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for part in directory.join(named).components() {
        let is_name = matches!(path.components().next_back(), Some(Component::Normal(_)));
        if part == Component::ParentDir && is_name {
            path.pop();
        } else {
            path.push(part);
        }
    }
    path
}

/// The way from one directory to another by their names; `None` where these do not tell.
fn way(from: &Path, to: &Path) -> Option<PathBuf> {
    let [from, to] = [from, to].map(|path| {
        path.components().filter(|part| *part != Component::CurDir).collect::<Vec<_>>()
    });
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (up, down) = (from.get(common..)?, to.get(common..)?);
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
    if !up.iter().all(is_name)
        || !down.iter().all(|part| is_name(part) || *part == Component::ParentDir)
    {
        return None;
    }
    let down = down.iter().map(|part| part.as_os_str().to_str());
    let names: Option<Vec<&str>> = up.iter().map(|_| Some("..")).chain(down).collect();
    Some(names?.join("/").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_one_directory_to_another_is_told_by_their_names() {
        let check = |from: &str, to: &str, expected: Option<&str>| {
            assert_eq!(
                way(from.as_ref(), to.as_ref()).as_deref(),
                expected.map(Path::new),
                "{from}"
            );
        };
        check("side", "tale", Some("../tale"));
        check("./side", "tale", Some("../tale"));
        check("/a/b/side", "/a/tale", Some("../../tale"));
        check("/a/tale/side", "/a/tale", Some(".."));
        check("/a/tale", "/a/tale/side", Some("side"));
        check("../x/side", "../x/tale", Some("../tale"));
        check("side", "../tale", Some("../../tale"));
        check("../side", "tale", None);
        check("/side", "tale", None);
        check("side", "/tale", None);
    }

    #[test]
    fn parents_are_taken_from_the_names_before_them() {
        let check = |directory: &str, named: &str, expected: &str| {
            assert_eq!(cleaned(directory.as_ref(), named.as_ref()), Path::new(expected));
        };
        check("side", "../tale", "tale");
        check("/a/b/side", "../../tale", "/a/tale");
        check("../side", "../../tale", "../../tale");
        check("side", "/tale", "/tale");
    }
}
