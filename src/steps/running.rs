//! Work that goes on after its call was answered, and the ids by which later calls ask for it.

use super::envelope::unwrap_output;
use crate::{
    json::{self, Value},
    text::{
        first_bytes,
        words::running::{ENDED, GOES_ON, LEADS},
    },
};

/// The bytes at the beginning of a result that say whether it goes on.
const HEAD: usize = 400;

/// The ids that are remembered of one call.
const MOST_IDS: usize = 4;

/// The ids of work that goes on after this result; empty where it is over.
pub(crate) fn ids(text: &str) -> Vec<String> {
    let start = text.trim_start();
    if start.starts_with('{') {
        return json::read(start.trim_end().as_bytes())
            .map(|value| of_json(&value))
            .unwrap_or_default();
    }
    // What a program printed stands behind the lines that tell of it.
    let printed = unwrap_output(start);
    let head = start.strip_suffix(printed).filter(|head| !head.trim().is_empty()).unwrap_or(start);
    let end = first_bytes(head, HEAD);
    let says = |line: &str, words: &[&str]| {
        let lower = line.to_lowercase();
        words.iter().any(|word| lower.contains(word))
    };
    // The line that says so names the id too.
    let line = end.lines().find(|line| says(line, &GOES_ON));
    let Some(line) = line.filter(|_| !says(end, &ENDED)) else { return Vec::new() };
    let mut found = Vec::new();
    let mut is_led = false;
    for word in line.split(|c: char| c.is_whitespace() || matches!(c, ':' | '#' | '=' | '(' | ')'))
    {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if word.is_empty() {
            continue;
        }
        if is_led && is_id(word) && found.len() < MOST_IDS {
            found.push(word.to_owned());
        }
        is_led = LEADS.iter().any(|lead| word.eq_ignore_ascii_case(lead));
    }
    found
}

fn of_json(value: &Value) -> Vec<String> {
    let state = ["status", "state"].iter().find_map(|key| value.str_at(key)).unwrap_or_default();
    let state = state.to_lowercase().replace(['_', '-'], " ");
    if !GOES_ON.contains(&state.as_str()) && state != "processing" {
        return Vec::new();
    }
    handles(value)
}

/// The ids that the members of an object name: of a session, a process, a job.
pub(crate) fn handles(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        if !is_handle(key) {
            continue;
        }
        let id = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if is_id(&id) && found.len() < MOST_IDS {
            found.push(id);
        }
    }
    found
}

/// Whether a member holds the id of work: `session_id`, `pid`. That of an order is none.
fn is_handle(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let name = key.strip_suffix("id").filter(|name| !name.ends_with('p')).unwrap_or(&key);
    let name = name.trim_end_matches(['_', '-']);
    name.is_empty() || LEADS.contains(&name)
}

fn is_id(word: &str) -> bool {
    word.len() <= 80
        && word.contains(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether a call says something besides the id that it asks for: input for a program.
pub(crate) fn has_input(value: &Value) -> bool {
    let mut members = value.as_object().into_iter().flatten();
    members.any(|(key, value)| {
        !is_handle(key) && value.as_str().is_some_and(|text| text.contains(char::is_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_is_known_by_its_id() {
        let check = |text: &str, expected: &[&str]| assert_eq!(ids(text), expected, "{text}");
        check(
            "Chunk: e4\nProcess running with session ID 47596\nOutput:\nTask 9 exited",
            &["47596"],
        );
        check(
            "Command running in background with ID: bae407b. Output goes to a file.",
            &["bae407b"],
        );
        check("Server started (pid 1234)", &["1234"]);
        check(r#"{"status": "in_progress", "job_id": 17, "n": 3}"#, &["17"]);
        check(r#"{"status": "done", "job_id": 17}"#, &[]);
        check(r#"{"status": "pending", "order_id": "W17"}"#, &[]);
        check("Process exited with code 0\nOutput:\nrunning session 12", &[]);
        check("Task 7 finished; it was running since noon", &[]);
        check("The tide is running.", &[]);
        check("The result of running it:\n316 the task 321 is open", &[]);
    }

    #[test]
    fn a_call_that_only_asks_has_no_input() {
        let has = |text: &str| has_input(&json::read(text.as_bytes()).unwrap());
        assert!(!has(r#"{"session_id": 7, "chars": "\u0003", "wait": 100}"#));
        assert!(has(r#"{"session_id": 7, "chars": "yes\n"}"#));
    }
}
