//! The sentences of Merge Instructions that name sections: the verbs of the format's own example.

use super::{delta::nested_at, names::normal};
use crate::{Error, Result};

/// An instruction by names: where something goes that the delta declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// `Append WORDS to SECTION`, `Add WORDS to SECTION as STATE`.
    Append { what: Words, section: String, state: Option<String> },
    /// `Replace SECTION with WORDS`.
    Replace { section: String, what: Words },
    /// `Update SECTION`, `Update status table`.
    Update { what: String },
}

/// What an instruction adds, or puts in the place of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The words, without quotation marks.
    pub(super) text: String,
    /// Whether they stood in quotation marks, and so stand for themselves.
    pub(super) is_quoted: bool,
}

/// What an instruction must be, for whoever wrote another.
pub(super) const EXPECTED: &str = "`Append WORDS to SECTION`, `Add WORDS to SECTION as STATE`, \
`Replace SECTION with WORDS` or `Update SECTION`, one in each item; Changes declares the rest";

/// Reads an instruction that somebody wrote.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where it is no sentence of the format.
pub(super) fn order(text: &str, line: usize) -> Result<Order> {
    let refused = || {
        let first = text.lines().next().unwrap_or_default();
        Error::unmet(line, EXPECTED, format_args!("{:?}", first.trim()))
    };
    if nested_at(text).is_some() {
        return Err(refused());
    }
    let sentence: Vec<&str> = text.split('\n').map(str::trim).collect();
    read(sentence.join(" ").trim().trim_end_matches('.')).ok_or_else(refused)
}

fn read(sentence: &str) -> Option<Order> {
    if goes_on(sentence) {
        return None;
    }
    let (verb, rest) = sentence.split_once(' ')?;
    match normal(verb).as_str() {
        "append" | "add" => {
            let (what, place) = split(rest, places(rest, " to ").pop()?, " to ")?;
            let (place, state) = match places(place, " as ").pop() {
                Some(at) => split(place, at, " as ").map(|(place, state)| (place, Some(state)))?,
                None => (place, None),
            };
            let state = state.map(|state| words(state).text);
            Some(Order::Append { what: words(what), section: name(place), state })
        }
        "replace" => {
            let (place, what) = split(rest, *places(rest, " with ").first()?, " with ")?;
            Some(Order::Replace { section: name(place), what: words(what) })
        }
        "update" => Some(Order::Update { what: name(rest) }),
        _ => None,
    }
}

fn split<'t>(text: &'t str, at: usize, mark: &str) -> Option<(&'t str, &'t str)> {
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}

/// The name of a section as it is looked up.
fn name(name: &str) -> String {
    let name = normal(name);
    let name = name.strip_prefix("the ").unwrap_or(&name);
    let ends = [" section", " table", " list"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).trim().to_owned()
}

const QUOTES: [(char, char); 3] = [('"', '"'), ('`', '`'), ('“', '”')];

fn words(text: &str) -> Words {
    let text = text.trim();
    let quoted = QUOTES.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inner.contains([*open, *close])).then_some(inner)
    });
    Words { text: quoted.unwrap_or(text).to_owned(), is_quoted: quoted.is_some() }
}

/// Where a mark stands outside of quotation marks.
fn places(text: &str, mark: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut quote: Option<char> = None;
    for (index, c) in text.char_indices() {
        if quote.is_none() && text.get(index..).is_some_and(|rest| rest.starts_with(mark)) {
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

/// Whether a sentence goes on with another instruction, which nobody would carry out.
fn goes_on(sentence: &str) -> bool {
    [" and ", " then ", ", ", "; ", ". "].iter().any(|joint| {
        places(sentence, joint).into_iter().any(|at| {
            let rest = sentence.get(at + joint.len()..).unwrap_or_default();
            let verb = rest.split_whitespace().next().map(normal).unwrap_or_default();
            VERBS.split(' ').any(|known| known == verb)
        })
    })
}

/// What a second instruction would begin with, one that nobody carries out too.
const VERBS: &str = "append add replace update remove delete drop move set mark rename";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Words {
        Words { text: text.to_owned(), is_quoted: false }
    }

    #[test]
    fn sentences_of_the_format_are_read() {
        let check = |sentence: &str, expected: Order| {
            assert_eq!(order(sentence, 1).unwrap(), expected, "{sentence}");
        };
        let append = |what, section: &str, state: Option<&str>| Order::Append {
            what,
            section: section.to_owned(),
            state: state.map(str::to_owned),
        };
        check(
            "Append new files to Artifact Trail",
            append(words("new files"), "artifact trail", None),
        );
        check(
            "Add Phase 3 to\n  Play-By-Play as completed.",
            append(words("Phase 3"), "play by play", Some("completed")),
        );
        let quoted = Words { text: "a to b".to_owned(), is_quoted: true };
        check("**Add** \"a to b\" to **Decisions**", append(quoted, "decisions", None));
        check(
            "Replace the Current State section with Phase 3 complete",
            Order::Replace { section: "current state".to_owned(), what: words("Phase 3 complete") },
        );
        check("Update phase status table", Order::Update { what: "phase status".to_owned() });
    }

    #[test]
    fn other_sentences_are_refused_with_their_line() {
        for sentence in [
            "Do the needful",
            "Append",
            "Rename Risks",
            "",
            "Ünicode",
            "Replace Decisions",
            "Remove Cache from Decisions",
            "Mark Phase 2 as Done",
            "Set anchor to two",
            "Append \"x\" to Decisions:\n  - y",
            "Update status table and remove Cache from Decisions",
            "Replace Next Actions with Phase 4 tasks; move Measure to Decisions",
        ] {
            let error = order(sentence, 7).unwrap_err();
            assert_eq!(
                (error.kind(), error.place().line),
                (crate::ErrorKind::Instruction, Some(7)),
                "{sentence}"
            );
        }
    }
}
