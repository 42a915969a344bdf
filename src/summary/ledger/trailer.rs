//! What stands behind every output of a tool: a prompt, where it is, which file is open.

use crate::steps::is_note;

/// A trailer has so many lines at most.
const MOST_LINES: usize = 4;

/// What stands behind so many outputs of one tool, and of each of them, is its trailer.
const OFTEN: u32 = 3;

/// The last lines that the outputs of a tool have in common.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Trailer {
    /// Their shapes, the last line first.
    lines: Vec<String>,
    /// So many outputs had them, each behind another text.
    seen: u32,
    /// The last line before them, of the output that was seen last.
    before: String,
}

impl Trailer {
    /// Looks at the next output; gives it back without the trailer, where one is known.
    pub(super) fn take_off<'t>(&mut self, text: &'t str) -> &'t str {
        let last: Vec<String> =
            lines(text).take(MOST_LINES + 1).map(|(_, line)| shape(line)).collect();
        if self.seen == 0 {
            (self.lines, self.seen) = (last.iter().take(MOST_LINES).cloned().collect(), 1);
            self.before = last.get(MOST_LINES).cloned().unwrap_or_default();
            return text;
        }
        let is_alike = |(one, other): &(&String, &String)| one == other && !closes(one);
        let alike = self.lines.iter().zip(&last).take_while(is_alike).count();
        if alike == 0 {
            *self = Self::default();
            return text;
        }
        // What was in common before and is not now was text, not a trailer.
        let shown = self.lines.get(alike).cloned();
        let before = shown.unwrap_or_else(|| std::mem::take(&mut self.before));
        self.lines.truncate(alike);
        let this = last.get(alike).cloned().unwrap_or_default();
        if this != before && !this.is_empty() {
            self.seen = self.seen.saturating_add(1);
        }
        self.before = this;
        if self.seen < OFTEN {
            return text;
        }
        let at = lines(text).nth(alike - 1).map_or(text.len(), |(at, _)| at);
        text.get(..at).unwrap_or(text).trim_end()
    }
}

/// The lines of a text that are not blank, the last first, each with its place.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = text.len();
    let lines = text.split_inclusive('\n').rev().map(move |line| {
        at -= line.len();
        (at, line.trim())
    });
    lines.filter(|(_, line)| !line.is_empty())
}

/// Whether a line closes what stands around the output: `</output>`.
fn closes(line: &str) -> bool {
    line.starts_with("</") && line.ends_with('>')
}

/// A line as it is but for what changes in a note, `(Name: value)`.
fn shape(line: &str) -> String {
    let name = line.split_once(": ").filter(|_| is_note(line));
    name.map_or_else(|| line.to_owned(), |(name, _)| format!("{name}:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_every_output_is_taken_off() {
        let mut trailer = Trailer::default();
        let of = |text: &str, place: &str| format!("{text}\n[At: {place}]\nready");
        let outputs = [("low", "quay"), ("high", "pier"), ("ebb", "pier"), ("a\nb", "lock")];
        let taken: Vec<String> = outputs
            .iter()
            .map(|(text, place)| trailer.take_off(&of(text, place)).to_owned())
            .collect();
        assert_eq!(taken, [of("low", "quay"), of("high", "pier"), "ebb".into(), "a\nb".into()]);
        assert_eq!(trailer.take_off("[At: sea]\nready"), "");
        assert_eq!(trailer.take_off("gone"), "gone");
    }

    #[test]
    fn an_output_that_is_always_the_same_is_no_trailer() {
        let mut trailer = Trailer::default();
        for _ in 0..6 {
            assert_eq!(trailer.take_off("moored\nok"), "moored\nok");
        }
        let mut trailer = Trailer::default();
        for text in ["<out>\na\n</out>", "<out>\nb\n</out>", "<out>\nc\n</out>"] {
            assert_eq!(trailer.take_off(text), text);
        }
        let mut trailer = Trailer::default();
        for text in ["a\n1 passed", "b\n2 passed", "c\n3 passed", "d\n4 passed"] {
            assert_eq!(trailer.take_off(text), text);
        }
    }
}
