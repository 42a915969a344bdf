//! The folder that a session worked in.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
};

use afterimage::{
    json,
    transcript::{TranscriptFormat, decoded},
};

/// How much of a file is looked at, and how many lines.
const HEAD: u64 = 2 << 20;
const LINES: usize = 64;
/// The file in which Gemini says which folder a project is.
const PROJECT_ROOT: &str = ".project_root";
/// The file in which Kimi says that of a session, beside the folder of its agents.
const STATE: &str = "state.json";
/// The end of the name of Cline's messages.
const CLINE: &str = ".messages.json";

/// The folder that a session says it worked in: `cwd` in one of the first records.
pub(super) fn project(file: &Path) -> Option<String> {
    of_head(file).or_else(|| of_gemini(file)).or_else(|| of_kimi(file)).or_else(|| of_cline(file))
}

fn of_head(file: &Path) -> Option<String> {
    let mut input = decoded(BufReader::new(File::open(file).ok()?)).ok()?.take(HEAD);
    let mut line = Vec::new();
    for _ in 0..LINES {
        line.clear();
        if input.read_until(b'\n', &mut line).ok()? == 0 {
            break;
        }
        if let Some(folder) = of_record(&line).or_else(|| of_member(&line)) {
            return Some(folder);
        }
    }
    None
}

/// What a record, or a document on one line, says.
fn of_record(text: &[u8]) -> Option<String> {
    let (record, _) = json::read_mended(text).ok()?;
    TranscriptFormat::stated_folder(&record).map(str::to_owned)
}

/// What a document says that is laid out one member a line, as Continue does it.
fn of_member(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    let member = line.strip_suffix(b",").unwrap_or(line);
    of_record(&[b"{", member, b"}"].concat())
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

/// Kimi writes the log of an agent into a folder of its own, two below that of the session.
fn of_kimi(file: &Path) -> Option<String> {
    let folders = file.ancestors().skip(1).take(3);
    let text = folders.into_iter().find_map(|folder| text_of(&folder.join(STATE), HEAD))?;
    Some(json::read(text.as_bytes()).ok()?.str_at("cwd")?.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_says_the_folder_at_its_own_place() {
        for record in [
            r#"{"type":"user","cwd":"/w"}"#,
            r#"{"type":"session_meta","payload":{"cwd":"/w"}}"#,
            r#"{"type":"session.start","data":{"context":{"cwd":"/w"}}}"#,
            r#"{"sessionId":"s","workspaceDirectory":"/w","history":[]}"#,
            r#"{"working_dir":"/w","message_count":0}"#,
            r#"{"info":{"directory":"/w"},"messages":[]}"#,
        ] {
            assert_eq!(of_record(record.as_bytes()).as_deref(), Some("/w"), "{record}");
        }
        assert_eq!(of_member(b"  \"workspaceDirectory\": \"/w\",\n").as_deref(), Some("/w"));
        assert_eq!(of_record(b"\"cwd\""), None);
    }
}
