//! The text that is looked for, and where it is.

mod unescaped;

use afterimage::text::TextRange;
use regex_automata::{Anchored, Input, meta::Regex, util::syntax};

use self::unescaped::Unescaped;

/// How often a text is unescaped: JSON in a string of JSON in a string of JSON.
const DEPTH: usize = 3;

/// A text as a reader looks for it.
pub(crate) struct Phrase {
    kind: Kind,
}

enum Kind {
    /// These bytes.
    Plain(String),
    /// These letters, large or small.
    AnyCase(Regex),
    Pattern(Regex),
}

impl Phrase {
    /// A text, or a regular expression.
    ///
    /// # Errors
    /// What is wrong with a regular expression, in one line.
    pub(crate) fn of(text: &str, is_regex: bool, ignores_case: bool) -> Result<Self, String> {
        let kind = if is_regex {
            Kind::Pattern(regex(text, ignores_case)?)
        } else if ignores_case {
            Kind::AnyCase(regex(&literal(text), true)?)
        } else {
            Kind::Plain(text.to_owned())
        };
        Ok(Self { kind })
    }

    /// Every place in `text`, in order: as the text stands, and with the escapes of JSON read as
    /// what they stand for, as deep as strings of JSON are nested. A place that is found both ways
    /// is there once.
    pub(crate) fn places(&self, text: &str) -> Vec<TextRange> {
        let mut levels: Vec<Unescaped> = Vec::new();
        while levels.len() < DEPTH
            && let Some(inner) = Unescaped::of(levels.last().map_or(text, Unescaped::text))
        {
            levels.push(inner);
        }
        let places_at = |depth: usize| {
            let of = levels.get(..depth).unwrap_or_default();
            let places = self.places_as_it_stands(of.last().map_or(text, Unescaped::text));
            places
                .into_iter()
                .map(|place| of.iter().rev().fold(place, |place, of| of.outer(place)))
                .collect::<Vec<_>>()
        };
        // A pattern sees lines, and only the deepest reading has them all: where it is read as it
        // stands, one match may run over escaped ends of lines and hide others.
        let mut depths: Vec<usize> = (0..=levels.len()).collect();
        if matches!(self.kind, Kind::Pattern(_)) {
            depths.reverse();
        }
        let mut found: Vec<TextRange> = Vec::new();
        for depth in depths {
            let is_new = |place: &TextRange| {
                let at = found.partition_point(|other| other.end() <= place.start());
                found.get(at).is_none_or(|other| other.start() >= place.end())
            };
            // Places of one reading may overlap each other.
            let new: Vec<TextRange> = places_at(depth).into_iter().filter(is_new).collect();
            found.extend(new);
            found.sort_by_key(|place| (place.start(), place.end()));
        }
        found
    }

    /// What tells a place from others of the same phrase: of a pattern the text there.
    pub(crate) fn found<'t>(&self, text: &'t str, place: TextRange) -> &'t str {
        if matches!(self.kind, Kind::Pattern(_)) { place.of(text) } else { "" }
    }

    fn places_as_it_stands(&self, text: &str) -> Vec<TextRange> {
        match &self.kind {
            Kind::Plain(wanted) => occurrences(text, wanted),
            Kind::AnyCase(regex) => overlapping(regex, text),
            Kind::Pattern(regex) => {
                let found = regex.find_iter(text).filter(|found| !found.is_empty());
                found.map(|found| TextRange::at(found.start(), found.len())).collect()
            }
        }
    }
}

fn regex(pattern: &str, ignores_case: bool) -> Result<Regex, String> {
    let syntax = syntax::Config::new().case_insensitive(ignores_case).multi_line(true);
    Regex::builder().syntax(syntax).build(pattern).map_err(|error| {
        let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
        let reason = reason.lines().last().unwrap_or_default();
        reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
    })
}

/// The regular expression for this very text.
fn literal(text: &str) -> String {
    text.chars().map(|c| format!("\\x{{{:X}}}", u32::from(c))).collect()
}

/// Every place of a pattern, overlapping ones included.
fn overlapping(regex: &Regex, text: &str) -> Vec<TextRange> {
    let mut found = Vec::new();
    let mut from = 0;
    let input = Input::new(text).anchored(Anchored::No);
    while let Some(place) = regex.find(input.clone().range(from..)) {
        found.push(TextRange::at(place.start(), place.len()));
        let first = text.get(place.start()..).and_then(|rest| rest.chars().next());
        from = place.start() + first.map_or(1, char::len_utf8);
    }
    found
}

/// Every place of `wanted` in `text`, overlapping ones included.
pub(crate) fn occurrences(text: &str, wanted: &str) -> Vec<TextRange> {
    let mut found = Vec::new();
    let (mut from, step) = (0, wanted.chars().next().map_or(1, char::len_utf8));
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(wanted)) {
        found.push(TextRange::at(from + at, wanted.len()));
        from += at + step;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrase(text: &str, ignore_case: bool, regex: bool) -> Phrase {
        Phrase::of(text, regex, ignore_case).unwrap()
    }

    fn found<'t>(phrase: &Phrase, text: &'t str) -> Vec<&'t str> {
        phrase.places(text).into_iter().map(|range| range.of(text)).collect()
    }

    #[test]
    fn overlapping_places_are_all_found() {
        let starts = |text: &str, wanted: &str, ignore_case: bool| -> Vec<usize> {
            let phrase = phrase(wanted, ignore_case, false);
            phrase.places(text).into_iter().map(TextRange::start).collect()
        };
        assert_eq!(starts("aaaa", "aa", false), [0, 1, 2]);
        assert_eq!(starts("aAaa", "Aa", true), [0, 1, 2]);
        assert_eq!(starts("ééé", "éé", false), [0, 2]);
        assert_eq!(starts("abc", "d", false), [0_usize; 0]);
    }

    #[test]
    fn escapes_of_json_are_read_as_what_they_stand_for() {
        let call = r#"{"cmd":"grep -n \"two words\" a.rs\n\tnext\u00e9 \ud83d\ude00"}"#;
        assert_eq!(
            found(&phrase("grep -n \"two words\"", false, false), call),
            [r#"grep -n \"two words\""#]
        );
        assert_eq!(found(&phrase("a.rs\n\tnexté 😀", false, false), call).len(), 1);
        // As it stands, and once.
        assert_eq!(found(&phrase(r#"\"two"#, false, false), call), [r#"\"two"#]);
        assert_eq!(found(&phrase("words", false, false), call), ["words"]);
        // JSON in a string of JSON.
        let deep = serde_json::json!({ "arguments": call }).to_string();
        assert_eq!(found(&phrase("-n \"two words\" a.rs\n", false, false), &deep).len(), 1);
        // What is no escape stays as it is.
        assert_eq!(found(&phrase(r"C:\x", false, false), r"C:\x \ud800"), [r"C:\x"]);
        assert_eq!(found(&phrase("\\", false, false), "a\\"), ["\\"]);
    }

    #[test]
    fn letters_and_patterns_are_found_on_lines_as_a_reader_sees_them() {
        assert_eq!(found(&phrase("grüße", true, false), "GRÜSSE GRÜßE"), ["GRÜßE"]);
        assert_eq!(found(&phrase("a.c", true, false), "ABC A.C"), ["A.C"]);
        assert_eq!(found(&phrase(r"^\w+ two$", false, true), "one two\nx"), ["one two"]);
        assert_eq!(found(&phrase("^two", false, true), r#""one\ntwo\nthree""#), ["two"]);
        assert_eq!(found(&phrase("x*", false, true), "axxb"), ["xx"]);
        let result = r#"{"stdout":"let a = 1;\nlet b = 2;\n"}"#;
        assert_eq!(found(&phrase("let .*$", false, true), result), ["let a = 1;", "let b = 2;"]);
        assert_eq!(found(&phrase(r"1;\\n", false, true), result), [r"1;\n"]);
        assert_eq!(Phrase::of("(", true, false).err().unwrap(), "unclosed group");
    }
}
