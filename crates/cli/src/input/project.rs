//! The folder that a session worked in, where another file says it.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use afterimage::json;

/// How much of a file is looked at.
const HEAD: u64 = 2 << 20;
/// The file in which Gemini says which folder a project is.
const PROJECT_ROOT: &str = ".project_root";
/// The end of the name of Cline's messages.
const CLINE: &str = ".messages.json";

/// The folder that a session worked in, where its client says it in a file beside.
pub(super) fn beside(file: &Path) -> Option<String> {
    of_gemini(file).or_else(|| of_cline(file))
}

/// Cline writes what is known of a session into a file beside that of its messages.
fn of_cline(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?.strip_suffix(CLINE)?;
    let text = text_of(&file.with_file_name(format!("{name}.json")), HEAD)?;
    Some(json::read(text.as_bytes()).ok()?.str_at("cwd")?.to_owned())
}

/// Gemini names it in a file beside the folder of the chats.
fn of_gemini(file: &Path) -> Option<String> {
    let text = text_of(&file.parent()?.parent()?.join(PROJECT_ROOT), 4096)?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The text of a file of at most so many bytes.
fn text_of(file: &Path, most: u64) -> Option<String> {
    let mut text = String::new();
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    File::open(file).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}
