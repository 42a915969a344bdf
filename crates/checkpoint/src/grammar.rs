//! The instructions that people write: one sentence each, by the grammar of `docs/checkpoints.md`.

use super::names::normal;
use crate::{Error, Result};

/// An instruction by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Append { content: Content, section: String, state: Option<String> },
    AddSection { name: String, after: Option<String>, body: String },
    Replace { section: String, content: Content },
    ReplaceText { old: String, new: String, section: Option<String> },
    SetCell { row: String, section: String, column: String, value: String },
    SetState { item: String, section: Option<String>, state: String },
    SetField { key: String, value: String, is_literal: bool },
    Update { what: String },
    Remove { content: Content, section: Option<String> },
    RemoveSection { name: String },
    RenameSection { from: String, to: String },
    MoveTo { content: Content, from: Option<String>, section: String },
}

impl Order {
    /// The section that something in goes from.
    pub(super) fn takes_from(&self) -> Option<&str> {
        match self {
            Self::Replace { section, .. } => Some(section),
            Self::ReplaceText { section, .. } | Self::Remove { section, .. } => section.as_deref(),
            Self::RemoveSection { name } | Self::RenameSection { from: name, .. } => Some(name),
            _ => None,
        }
    }
}

/// What an instruction adds, removes or moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The words, without quotation marks.
    pub(super) text: String,
    /// Whether they stood in quotation marks, and so mean nothing but themselves.
    pub(super) is_literal: bool,
    /// What stands below the sentence.
    pub(super) block: String,
}

/// What an instruction must be, for whoever wrote another.
pub(super) const EXPECTED: &str = "an instruction such as `Append CONTENT to SECTION`, \
`Replace SECTION with CONTENT`, `Remove ENTRY from SECTION`, `Update row ROW in SECTION: COLUMN \
to VALUE`, `Mark ITEM as STATE`, `Add section NAME`, `Set FIELD to VALUE` or `Update status table`";

/// What an instruction that goes on with another one must be.
const ONE: &str = "one instruction in each item of the list; a value that reads like another \
instruction stands in quotation marks";

/// Reads an instruction that somebody wrote: a sentence, and what it adds below it.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where the sentence follows no rule of the grammar.
pub(super) fn order(text: &str, line: usize) -> Result<Order> {
    let (sentence, block) = text.split_once('\n').unwrap_or((text, ""));
    let expected = if goes_on(sentence) { ONE } else { EXPECTED };
    let refused = || Error::unmet(line, expected, format_args!("{:?}", sentence.trim()));
    read(sentence.trim(), dedented(block)).ok_or_else(refused)
}

fn read(sentence: &str, block: String) -> Option<Order> {
    let (verb, rest) = split_word(sentence);
    let verb = verb.trim_matches('*');
    let end: &[char] = if block.is_empty() { &['.'] } else { &['.', ':'] };
    let rest = rest.trim().trim_end_matches(end);
    if rest.is_empty() {
        return None;
    }
    let order = match verb.to_lowercase().as_str() {
        "append" | "add" | "insert" | "put" => {
            return match section_named(rest) {
                Some(name) => add_section(name, block),
                None => append(rest, &block),
            };
        }
        "replace" => return replace(rest, block),
        "move" => return move_to(rest, block),
        "set" if cut(rest, " in ").is_some_and(|(_, place)| place.contains(" to ")) => {
            update(rest)?
        }
        "set" => {
            let (key, value) = cut(rest, " to ")?;
            let (is_literal, key) = (is_quoted(key), unquoted(key).to_owned());
            let value = state_of(value)?;
            Order::SetField { key, value, is_literal }
        }
        "update" | "change" | "mark" => update(rest)?,
        "remove" | "delete" | "drop" => remove(rest),
        "rename" => {
            let (from, to) = cut(section_named(rest).unwrap_or(rest), " to ")?;
            Order::RenameSection { from: section(from), to: state_of(to)? }
        }
        _ => return None,
    };
    // Nothing would read what stands below these.
    block.is_empty().then_some(order)
}

/// `NAME [after SECTION]`, with what the section holds below or behind a colon.
fn add_section(rest: &str, block: String) -> Option<Order> {
    let (rest, inline) = cut(rest, ": ").unwrap_or((rest, ""));
    let (name, after) = cut(rest, " after ").unwrap_or((rest, ""));
    // What else says where it goes is no part of its name.
    let places =
        [" to ", " in ", " into ", " under ", " below ", " before ", " with ", " for ", " that "];
    let called = ["called ", "named ", "titled "];
    let name = called.iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name);
    if !is_quoted(name) && places.iter().any(|word| format!(" {name}").contains(word)) {
        return None;
    }
    let after = (!after.is_empty()).then(|| section(after));
    let body = match (is_quoted(inline), inline.is_empty(), block.is_empty()) {
        (true, _, true) => unquoted(inline).to_owned(),
        (_, true, _) => block,
        _ => return None,
    };
    Some(Order::AddSection { name: value_of(name)?, after, body })
}

/// `ENTRY [from SECTION] to SECTION`.
fn move_to(rest: &str, block: String) -> Option<Order> {
    let (what, place) = rcut(rest, " to ")?;
    let (what, from) = match cut(what, " from ") {
        Some((what, from)) => (what, Some(section(from))),
        None => (what, None),
    };
    let content = content(what, block);
    content.block.is_empty().then(|| Order::MoveTo { content, from, section: section(place) })
}

/// `CONTENT to SECTION [as STATE]`, or `to SECTION: CONTENT`.
fn append(rest: &str, block: &str) -> Option<Order> {
    if let Some(inner) = rest.strip_prefix("to ") {
        let (place, what) = cut(inner, ": ").unwrap_or((inner, ""));
        let content = content(what, block.to_owned());
        return (content.text.is_empty() != content.block.is_empty()).then(|| Order::Append {
            content,
            section: section(place),
            state: None,
        });
    }
    let (what, place) = rcut(rest, " to ")?;
    let (place, state) = match rcut(place, " as ") {
        Some((place, state)) => (place, Some(state_of(state)?)),
        None => (place, None),
    };
    let (place, inline) = cut(place, ": ").unwrap_or((place, ""));
    if !inline.is_empty() && !block.is_empty() {
        return None;
    }
    let what = if inline.is_empty() { what } else { inline };
    Some(Order::Append { content: content(what, block.to_owned()), section: section(place), state })
}

/// `section SECTION`, or `ENTRY [from SECTION]`.
fn remove(rest: &str) -> Order {
    if let Some(name) = section_named(rest) {
        return Order::RemoveSection { name: section(name) };
    }
    if let Some(name) = rest.strip_suffix(" section").filter(|_| places(rest, " from ").is_empty())
    {
        return Order::RemoveSection { name: section(name) };
    }
    let (what, place) = match rcut(rest, " from ") {
        Some((what, place)) => (what, Some(section(place))),
        None => (rest, None),
    };
    Order::Remove { content: content(what, String::new()), section: place }
}

/// `SECTION with CONTENT`, or `"OLD" with "NEW" [in SECTION]`.
fn replace(rest: &str, block: String) -> Option<Order> {
    // The content may stand below, behind `with:`.
    let rest = rest.strip_suffix(" with").filter(|_| !block.is_empty()).unwrap_or(rest);
    let Some((what, new)) = cut(rest, " with ") else {
        let (place, inline) = cut(rest, ": ").unwrap_or((rest, ""));
        let content = content(inline, block);
        let is_told = content.text.is_empty() != content.block.is_empty();
        return is_told.then(|| Order::Replace { section: section(place), content });
    };
    if is_quoted(what) {
        let (new, place) = rcut(new, " in ")
            .filter(|(new, _)| is_quoted(new))
            .map_or((new, None), |(new, place)| (new, Some(section(place))));
        if !is_quoted(new) || !block.is_empty() {
            return None;
        }
        let (old, new) = (unquoted(what).to_owned(), unquoted(new).to_owned());
        return Some(Order::ReplaceText { old, new, section: place });
    }
    Some(Order::Replace { section: section(what), content: content(new, block) })
}

/// `row ROW in SECTION: COLUMN to VALUE`, `COLUMN of ROW in SECTION to VALUE`,
/// `ITEM [in SECTION] as STATE`, or the name of what the delta's own rows change.
fn update(rest: &str) -> Option<Order> {
    let rest = rest.strip_prefix("the ").unwrap_or(rest);
    let of = |row: &str, place: &str, column: &str, value: &str| {
        Some(Order::SetCell {
            row: unquoted(row).to_owned(),
            section: section(place),
            column: unquoted(column).to_owned(),
            value: value_of(value)?,
        })
    };
    if let Some((head, tail)) = cut(rest, ": ")
        && let Some((row, place)) = rcut(head.strip_prefix("row ").unwrap_or(head), " in ")
    {
        let (column, value) = cut(tail, " to ")?;
        return of(row, place, column, value);
    }
    if let Some((head, value)) = cut(rest, " to ") {
        let (cell, place) = rcut(head, " in ")?;
        let (column, row) = cut(cell, " of ")?;
        return of(row, place, column, value);
    }
    if let Some((item, state)) = rcut(rest, " as ") {
        let (item, place) =
            rcut(item, " in ").map_or((item, None), |(item, place)| (item, Some(section(place))));
        let (item, state) = (unquoted(item).to_owned(), state_of(state)?);
        return Some(Order::SetState { item, section: place, state });
    }
    let is_name = cut(rest, ": ").is_none() && cut(rest, " with ").is_none();
    is_name.then(|| Order::Update { what: section(rest) })
}

/// The name behind `section`, or before it.
fn section_named(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("the ").or_else(|| rest.strip_prefix("a new ")).unwrap_or(rest);
    let rest = rest.strip_prefix("new ").unwrap_or(rest);
    let (word, name) = split_word(rest);
    word.eq_ignore_ascii_case("section").then_some(name.trim()).filter(|name| !name.is_empty())
}

/// The name of a section as it is looked up.
fn section(name: &str) -> String {
    let name = normal(name);
    let name = name.strip_prefix("the ").unwrap_or(&name);
    let ends = [" section", " table", " list"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).trim().to_owned()
}

fn content(text: &str, block: String) -> Content {
    Content { text: unquoted(text).to_owned(), is_literal: is_quoted(text), block }
}

const QUOTES: [(char, char); 3] = [('"', '"'), ('`', '`'), ('“', '”')];

fn is_quoted(text: &str) -> bool {
    let text = text.trim();
    let in_quotes = |(open, close): &(char, char)| {
        let inner = text.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close));
        inner.is_some_and(|inner| !inner.contains([*open, *close]))
    };
    QUOTES.iter().any(in_quotes)
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    if !is_quoted(text) {
        return text;
    }
    let mut chars = text.chars();
    chars.next();
    chars.next_back();
    chars.as_str()
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// Splits at the first `at` outside of quotation marks.
fn cut<'t>(text: &'t str, at: &str) -> Option<(&'t str, &'t str)> {
    let place = places(text, at).into_iter().next()?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

/// Splits at the last `at` outside of quotation marks.
fn rcut<'t>(text: &'t str, at: &str) -> Option<(&'t str, &'t str)> {
    let place = places(text, at).pop()?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

/// Where `at` stands outside of quotation marks.
fn places(text: &str, at: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut quote: Option<char> = None;
    for (index, c) in text.char_indices() {
        if quote.is_none() && text.get(index..).is_some_and(|rest| rest.starts_with(at)) {
            places.push(index);
        }
        quote = match quote {
            Some(close) if c == close => None,
            None => QUOTES.iter().find(|(open, _)| *open == c).map(|(_, close)| *close),
            open => open,
        };
    }
    places
}

/// A value that an instruction writes as it stands; `None` where a sentence goes on behind it.
fn value_of(text: &str) -> Option<String> {
    (is_quoted(text) || !goes_on(text)).then(|| unquoted(text).to_owned())
}

/// A state, a name or the value of a field, which is no prose: `done and b to c` are two.
fn state_of(text: &str) -> Option<String> {
    let again = |at: &usize| {
        [" to ", " as "].iter().any(|word| places(text, word).iter().any(|to| to > at))
    };
    let is_two = !is_quoted(text) && places(text, " and ").iter().any(again);
    value_of(text).filter(|_| !is_two)
}

/// Whether a sentence goes on with another instruction outside of quotation marks.
fn goes_on(sentence: &str) -> bool {
    let joints = [" and ", " then ", ", ", "; ", ". "];
    joints.iter().any(|joint| {
        places(sentence, joint).into_iter().any(|at| {
            let rest = sentence.get(at + joint.len()..).unwrap_or_default();
            let (word, behind) = split_word(rest.trim_start());
            let word = word.trim_matches('*').to_lowercase();
            VERBS.contains(&word.as_str()) && !behind.is_empty()
        })
    })
}

/// The words that an instruction begins with.
const VERBS: [&str; 14] = [
    "append", "add", "insert", "put", "replace", "move", "set", "update", "change", "mark",
    "remove", "delete", "drop", "rename",
];

/// A text with the blanks that all its lines begin with taken away.
fn dedented(text: &str) -> String {
    let blanks = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let indent = filled.map(blanks).min().unwrap_or(0);
    let lines: Vec<&str> =
        text.lines().map(|line| line.get(indent.min(blanks(line))..).unwrap_or_default()).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Content {
        Content { text: text.to_owned(), is_literal: false, block: String::new() }
    }

    #[test]
    fn sentences_of_the_grammar_are_read() {
        let check = |sentence: &str, expected: Order| {
            assert_eq!(order(sentence, 1).unwrap(), expected, "{sentence}");
        };
        check(
            "Append new files to Artifact Trail",
            Order::Append {
                content: words("new files"),
                section: "artifact trail".to_owned(),
                state: None,
            },
        );
        check(
            "Add Phase 3 to Play-By-Play as completed.",
            Order::Append {
                content: words("Phase 3"),
                section: "play by play".to_owned(),
                state: Some("completed".to_owned()),
            },
        );
        check(
            "Replace the Current State section with Phase 3 complete",
            Order::Replace {
                section: "current state".to_owned(),
                content: words("Phase 3 complete"),
            },
        );
        check(
            "replace \"to be\" with \"with it\" in Decisions",
            Order::ReplaceText {
                old: "to be".to_owned(),
                new: "with it".to_owned(),
                section: Some("decisions".to_owned()),
            },
        );
        check("Update phase status table", Order::Update { what: "phase status".to_owned() });
        check(
            "Mark Phase 3 as Done",
            Order::SetState { item: "Phase 3".to_owned(), section: None, state: "Done".to_owned() },
        );
        check(
            "Update row `a.rs` in Artifact Trail: Status to modified",
            Order::SetCell {
                row: "a.rs".to_owned(),
                section: "artifact trail".to_owned(),
                column: "Status".to_owned(),
                value: "modified".to_owned(),
            },
        );
        check(
            "Add section Risks after Next Actions:\n\n  - None",
            Order::AddSection {
                name: "Risks".to_owned(),
                after: Some("next actions".to_owned()),
                body: "- None".to_owned(),
            },
        );
        check(
            "Set anchor to end-of-phase-2",
            Order::SetField {
                key: "anchor".to_owned(),
                value: "end-of-phase-2".to_owned(),
                is_literal: false,
            },
        );
    }

    #[test]
    fn other_sentences_are_refused_with_their_line() {
        for sentence in [
            "Do the needful",
            "Append",
            "Rename Risks",
            "",
            "Ünicode",
            "Update Next Actions to point to Phase 4.",
            "Replace \"a\" with b in Decisions",
            "Add section Risks to Decisions",
            "Remove Cache from Decisions\n  - and the rest",
        ] {
            let error = order(sentence, 7).unwrap_err();
            assert_eq!(
                (error.kind(), error.place().line),
                (crate::ErrorKind::Instruction, Some(7))
            );
        }
    }
}
