//! The words of a context, to be asked for.

use crate::{hud::RenderedContext, text::is_of_word};

/// Of longer texts so many bytes are compared in order; nothing that is looked for is longer.
const LONGEST: usize = 512;

/// The text of a context as it is sent, with the places where words may begin in the order of what
/// follows.
pub(in crate::window) struct ReadableText {
    text: String,
    starts: Vec<usize>,
}

impl ReadableText {
    pub(in crate::window) fn of(context: &RenderedContext) -> Self {
        let mut text = String::new();
        for message in context.messages() {
            push_flat(&mut text, &message.content());
            // Nothing that is looked for goes over the end of a message.
            text.push('\n');
        }
        Self::of_flat(text)
    }

    fn of_flat(text: String) -> Self {
        let mut starts: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| !c.is_whitespace() && begins(&text, *at))
            .map(|(at, _)| at)
            .collect();
        let key = |at: usize| bytes_from(&text, at, LONGEST);
        starts.sort_unstable_by(|one, other| key(*one).cmp(key(*other)));
        Self { text, starts }
    }

    /// Whether these words stand in the text, with no letter, digit or `_` beside them. Runs in time
    /// logarithmic in the text, but for the places where longer words begin in the same way.
    pub(in crate::window) fn says(&self, words: &str) -> bool {
        if words.contains(char::is_whitespace) {
            let mut flat = String::with_capacity(words.len());
            push_flat(&mut flat, words);
            return self.says_flat(&flat);
        }
        self.says_flat(words)
    }

    fn says_flat(&self, words: &str) -> bool {
        let length = words.len();
        let is_whole = |at: usize| ends(&self.text, at + length);
        if length > LONGEST {
            let mut places = self.text.match_indices(words).map(|(at, _)| at);
            return places.any(|at| begins(&self.text, at) && is_whole(at));
        }
        let from = |at: usize| bytes_from(&self.text, at, length);
        let first = self.starts.partition_point(|at| from(*at) < words.as_bytes());
        let places = self.starts.iter().skip(first);
        let mut places = places.take_while(|at| from(**at) == words.as_bytes());
        places.any(|at| is_whole(*at))
    }
}

fn bytes_from(text: &str, at: usize, most: usize) -> &[u8] {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    rest.get(..most).unwrap_or(rest)
}

/// Adds a text with each run of white space as one blank.
fn push_flat(out: &mut String, text: &str) {
    let mut is_blank = true;
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !is_blank {
            out.push(' ');
        }
        is_blank = c.is_whitespace();
    }
}

/// Whether a word may begin here.
fn begins(text: &str, at: usize) -> bool {
    let is_break = |c: Option<char>| matches!(c, Some('n' | 't' | 'r'));
    let mut before = text.get(..at).unwrap_or_default().chars();
    match before.next_back() {
        // Text inside of text: a letter after a backslash is an escaped break.
        Some('n' | 't' | 'r') => before.next_back() == Some('\\'),
        Some('\\') => !is_break(text.get(at..).and_then(|rest| rest.chars().next())),
        Some(c) => !is_of_word(c),
        None => true,
    }
}

/// Whether a word may end here.
fn ends(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|after| after.chars().next()).is_none_or(|c| !is_of_word(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_whole_wherever_they_stand() {
        let of = |text: &str| {
            let mut flat = String::new();
            push_flat(&mut flat, text);
            ReadableText::of_flat(flat)
        };
        let text = of(
            "see src/a.rs:12, (W1234567) and foo_bar_2;\n never  push\nto main! a\\nb_c 注文X99を",
        );
        for there in [
            "src/a.rs",
            "a.rs",
            "W1234567",
            "foo_bar_2",
            "never",
            "never push to main!",
            "never push to main",
            "b_c",
            "X99",
            "see",
        ] {
            assert!(text.says(there), "{there}");
        }
        for absent in ["foo_bar", "bar_2", "1234567", "/a.rs.", "nb_c", "X9", "ee", "rs:1"] {
            assert!(!text.says(absent), "{absent}");
        }
        // A longer path that begins or ends alike says the shorter one too; a longer word does not.
        assert!(of("/x/src/a.rs").says("src/a.rs") && !of("xsrc/a.rs").says("src/a.rs"));
        assert!(!of("").says("a") && of("a").says("a"));
        let long = "ab ".repeat(400);
        assert!(of(&long).says(long.trim()) && !of(&long).says(&"ab ".repeat(401)));
    }
}
