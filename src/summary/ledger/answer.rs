//! What a result says, in a few words: a value where it is one, and not how long it is.

use super::json_row::{records_in, row, rows};
use crate::{
    json::{self, Value},
    steps::{Class, failing_lines, outcome_line, summarise_lines, unwrap_output},
    text::{first_bytes, flat, shortened},
};

/// Longer results are looked at as JSON in their beginning alone.
const LONGEST_JSON: usize = 1 << 16;

/// A line of at most so many bytes is told whole, whatever room there is.
const LINE: usize = 100;

/// So many short lines are told one behind the other.
const FEW: usize = 3;

/// In fewer bytes nothing is said of what lines hold.
const LEAST_HELD: usize = 40;

/// In so many of its last lines a program counts what came of it.
const END: usize = 6;

/// What stands between lines that are told in one.
const NEXT: &str = " / ";

/// What a total is told with, at the end of an output.
const TOTALS: [&str; 9] =
    ["passed", "failed", "finished", "success", "done", "error", "total", "found", "ok"];

/// A result in a few words: what failed, a short answer whole, the values of a JSON answer, else
/// how much there is. `said` is what the call says, which is not said again.
pub(crate) fn brief(text: &str, class: Class, said: &str, most: usize) -> String {
    Answer::of(text, class, said).brief(most)
}

/// A result that was read.
pub(super) struct Answer<'t> {
    text: &'t str,
    class: Class,
    said: &'t str,
    json: Option<Value>,
}

impl<'t> Answer<'t> {
    pub(super) fn of(text: &'t str, class: Class, said: &'t str) -> Self {
        let plain = unwrap_output(text);
        let json = if class.is_failure() { None } else { json_of(plain) };
        Self { text, class, said, json }
    }

    /// The answer in about `most` bytes.
    pub(super) fn brief(&self, most: usize) -> String {
        if let Some(verb) = self.class.verb() {
            let told = outcome_line(self.text, most);
            return if told.is_empty() { verb.to_owned() } else { format!("{verb}: {told}") };
        }
        let plain = unwrap_output(self.text);
        if let Some(value) = &self.json {
            let inner = output_of(value);
            if let Some(inner) = inner {
                return Answer::of(inner, Class::Done, self.said).brief(most);
            }
            if let Some(row) = row(value, self.said, most) {
                return row;
            }
        }
        of_lines(plain, self.said, most)
    }

    /// Whether it is worth more than that the call was made: it says something else than how much
    /// there was.
    pub(super) fn has_value(&self) -> bool {
        if self.class.is_failure() || self.json.is_some() {
            return true;
        }
        let mut lines = unwrap_output(self.text).lines().filter(|line| !line.trim().is_empty());
        lines.next().is_some() && lines.nth(FEW - 1).is_none()
    }

    /// Whether a form of it says nothing but how much there was.
    pub(super) fn is_size(form: &str) -> bool {
        let number = form.strip_suffix(" lines");
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

/// The object or array that a text is, or the records in its beginning where it is long.
fn json_of(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    if text.len() <= LONGEST_JSON {
        let value = json::read(text.as_bytes()).ok()?;
        return matches!(value, Value::Object(_) | Value::Array(_)).then_some(value);
    }
    let records = records_in(first_bytes(text, LONGEST_JSON));
    (records.len() > 1).then_some(Value::Array(records))
}

/// The output in an object that holds one beside what tells of its status.
fn output_of(value: &Value) -> Option<&str> {
    let has_status = ["exit_code", "exitCode", "metadata", "returncode"]
        .iter()
        .any(|key| value.get(key).is_some());
    let output = ["output", "stdout"].iter().find_map(|key| value.str_at(key))?;
    has_status.then_some(output)
}

fn of_lines(plain: &str, said: &str, most: usize) -> String {
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [] => "no output".to_owned(),
        [line] => shortened(&without_said(line, said), most.max(LINE)),
        few if few.len() <= FEW => {
            let joined =
                few.iter().map(|line| without_said(line, said)).collect::<Vec<_>>().join(NEXT);
            if joined.len() <= most { joined } else { shortened(&joined, most) }
        }
        _ if plain.len() <= most => flat(plain),
        many => {
            let is_short = |line: &&str| line.len() <= most.max(LINE);
            match total(many).filter(is_short) {
                Some(line) => flat(line.trim_matches(['=', '-', '*', ' '])),
                None => {
                    match many.first().copied().filter(|line| is_short(line) && is_sentence(line)) {
                        Some(first) => format!("{} ({} lines)", flat(first), many.len()),
                        None => sized(many, most),
                    }
                }
            }
        }
    }
}

/// How much there is, and what it holds where that fits: `71 lines: a.ts ×12, b.ts`.
fn sized(lines: &[&str], most: usize) -> String {
    let size = format!("{} lines", lines.len());
    let room = most.saturating_sub(size.len() + 2);
    let room = Some(room).filter(|room| *room >= LEAST_HELD);
    let names = room.and_then(|room| summarise_lines(lines, room));
    names.map_or_else(|| size.clone(), |names| format!("{size}: {names}"))
}

/// The line in which a program says last what came of it: so many passed, finished in so long.
fn total<'l>(lines: &[&'l str]) -> Option<&'l str> {
    let of_total = |line: &&str, is_word: fn(&str) -> bool| {
        let lower = line.to_ascii_lowercase();
        line.contains(char::is_whitespace)
            && lower.split(|c: char| !c.is_alphanumeric()).any(is_word)
    };
    let last = lines.iter().copied().rfind(|line| line.contains(char::is_alphanumeric));
    let counted = || {
        let end = lines.iter().rev().take(END).copied();
        end.into_iter().find(|line| {
            line.starts_with(|c: char| c.is_ascii_digit()) && of_total(line, is_counted)
        })
    };
    last.filter(|line| of_total(line, is_total_word)).or_else(counted)
}

/// What runners of tests count: `49 tests, 0 failures`.
fn is_counted(word: &str) -> bool {
    ["tests", "test", "failures", "errors", "warnings", "issues", "examples", "passed", "failed"]
        .contains(&word)
}

/// Whether a line says something by itself.
fn is_sentence(line: &str) -> bool {
    line.starts_with(char::is_uppercase)
        && line.ends_with(['.', '!'])
        && line.split_whitespace().nth(3).is_some()
}

/// `passed`, `successfully`; but no `okay`.
fn is_total_word(word: &str) -> bool {
    TOTALS.iter().any(|total| word == *total || total.len() > 5 && word.starts_with(total))
}

/// A line without a path that the call says already. What stands for it must be no name.
fn without_said(line: &str, said: &str) -> String {
    let is_said = |word: &&str| {
        let word = word.trim_end_matches(['.', ':', ',']);
        word.len() > 8 && word.contains('/') && said.contains(word)
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let kept: Vec<&str> = words.iter().map(|word| if is_said(word) { "…" } else { word }).collect();
    kept.join(" ")
}

/// What of a text that is left out must be read: lines that tell of failures, and the records of a
/// list, a short row each; in at most `most` bytes.
pub(crate) fn worth_keeping(text: &str, most: usize) -> String {
    let records = records_in(text);
    if records.len() > 1 {
        return rows(&records, "", most).filter(|row| row.contains(' ')).unwrap_or_default();
    }
    let mut said = String::new();
    for line in failing_lines(text) {
        let line = shortened(line, LINE * 2);
        if said.len() + line.len() < most && !said.contains(&line) {
            said.push_str(if said.is_empty() { "" } else { "\n" });
            said.push_str(&line);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::veil::CallOutcome;

    fn check(text: &str, said: &str, most: usize, expected: &str) {
        let class = Class::of(CallOutcome::Unstated, text, None);
        assert_eq!(brief(text, class, said, most), expected, "{text}");
    }

    #[test]
    fn a_brief_result_says_what_came_of_it() {
        let check = |text: &str, expected: &str| check(text, "", 40, expected);
        check("saved", "saved");
        check("<returncode>0</returncode>\n<output>\n</output>", "no output");
        check("[1, 2, 3]", "1; 2; 3");
        check("a\nb\nc\nlong long long\ntest result: 5 passed\n", "test result: 5 passed");
        check("a line\nb line\nc line\nd line and more words\ne", "5 lines");
        check("low\nhigh\n", "low / high");
        let tests =
            "Running\nmany\nlines of tests\n\n49 tests, 0 failures\n\nRandomized with seed 7";
        check(tests, "49 tests, 0 failures");
        let approved =
            "The pilot has agreed.\n## Course\n1. north north north\n2. south south south";
        check(approved, "The pilot has agreed. (4 lines)");
        check("1290\n(Open file: tide.py)\n(Current directory: /quay)\nbash-$", "1290");
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad",
            "failed: ValueError: bad (a.py:3)",
        );
        check("[Operation Cancelled] Reason: no", "cancelled: [Operation Cancelled] Reason: no");
        check(
            "Command: x\nOutput: error: berth 7 is closed\nwait\nError: (none)\nExit Code: 1",
            "failed: error: berth 7 is closed",
        );
        check("Lock failed for \"a\": [stderr]\nfatal: no lock a", "failed: fatal: no lock a");
        check(r#"{"output":"three boats\n","metadata":{"exit_code":0}}"#, "three boats");
    }

    #[test]
    fn a_path_that_the_call_says_is_not_said_again() {
        let said = "edit(/quay/north/tide.rs)";
        check("Changed /quay/north/tide.rs.", said, 60, "Changed …");
    }

    #[test]
    fn an_answer_of_records_is_a_row_each() {
        let berths = r#"[
            {"berth_id": "QB7", "quay": "north", "open": "13:00:00", "depth": 4, "note": null,
             "free": {"day": 0, "night": 3}, "price": {"day": 51, "night": 40}},
            {"berth_id": "QB9", "quay": "north", "open": "06:30:00", "depth": 6, "note": null,
             "free": {"day": 2, "night": 0}, "price": {"day": 71, "night": 60}}]"#;
        check(
            berths,
            "find(quay: north)",
            200,
            "QB7, 13:00, depth 4, free/price: day 0/51, night 3/40; \
             QB9, 06:30, depth 6, free/price: day 2/71, night 0/60",
        );
        check(berths, "", 60, "QB7, 13:00, depth 4; QB9, 06:30, depth 6");
        check("[]", "", 20, "[]");
    }

    #[test]
    fn ids_and_lists_of_ids_come_first() {
        let user = r#"{"name": {"first": "Mia", "last": "Li"}, "email": "mia7@example.com",
            "payment": {"card_11": {"source": "card", "id": "card_11"},
                "gift_22": {"source": "gift", "amount": 113, "id": "gift_22"}},
            "about": "She has sailed for thirty years and wants to be called in the morning.",
            "level": "gold", "bookings": ["QA1X", "QB2Y", "QC3Z"]}"#;
        check(user, "get(user: mia_li_1)", 30, "bookings: [QA1X, QB2Y, QC3Z]");
        check(
            user,
            "get(user: mia_li_1)",
            95,
            "payment: [card, card_11; gift, amount 113, gift_22], gold, bookings: [QA1X, QB2Y, QC3Z]",
        );
    }

    #[test]
    fn what_is_left_out_of_a_list_has_a_row_for_each_record() {
        let cut = r#"1, "free": {"day": 4}}, {"id": "QB7", "note": "x {", "depth": 4}, {"id": "QB8",
            "depth": 5}, {"id": "QB9", "de"#;
        assert_eq!(worth_keeping(cut, 100), "QB7, note: x {, depth 4; QB8, depth 5");
        let log = "compiling\nerror: the lock leaks\nmore\n";
        assert_eq!(worth_keeping(log, 100), "error: the lock leaks");
        assert_eq!(worth_keeping("calm\nsea", 100), "");
    }
}
