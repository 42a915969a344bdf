//! Settings of a client, in which routes stand for base URLs.
//!
//! JSON, TOML and YAML write a key and a text behind it alike. So a copy of the user's settings differs
//! in its base URLs alone, and what the client changes in the copy can be given back to the user.

use std::ops::Range;

/// A text of settings, the keys that name base URLs, and the routes to these.
#[derive(Debug)]
pub(super) struct SettingsText {
    text: String,
    keys: &'static [&'static str],
    /// Each base URL as it stands in the text, and the name of its route.
    bases: Vec<(String, String)>,
}

impl SettingsText {
    /// Asks for the route of each base URL that stands behind one of the keys.
    pub(super) fn of(
        text: String,
        keys: &'static [&'static str],
        mut route: impl FnMut(&str) -> Option<String>,
    ) -> Self {
        let mut bases: Vec<(String, String)> = Vec::new();
        let mut seen = Vec::new();
        for range in values(&text, keys) {
            let value = text.get(range).unwrap_or_default();
            if !value.is_empty() && !seen.contains(&value) {
                seen.push(value);
                bases.extend(route(value).map(|route| (value.to_owned(), route)));
            }
        }
        Self { text, keys, bases }
    }

    /// Whether there is a base URL that a route stands for.
    pub(super) fn is_led(&self) -> bool {
        !self.bases.is_empty()
    }

    /// The text with the base URLs of the recorder, and what gives it back.
    pub(super) fn resolve(self, base: impl Fn(&str) -> Option<String>) -> Resolved {
        let Self { text, keys, bases } = self;
        let bases = bases.into_iter().filter_map(|(url, route)| {
            let end = if url.ends_with('/') { "/" } else { "" };
            Some((url, base(&route)? + end))
        });
        let bases: Vec<(String, String)> = bases.collect();
        let text = replace(&text, keys, &bases);
        let back = bases.into_iter().map(|(url, base)| (base, url)).collect();
        Resolved { text, keys, back }
    }
}

/// Settings as a client gets them.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) text: String,
    keys: &'static [&'static str],
    back: Vec<(String, String)>,
}

impl Resolved {
    /// What the client has written in their place, with the user's base URLs.
    pub(super) fn give_back(&self, written: &str) -> String {
        replace(written, self.keys, &self.back)
    }
}

fn replace(text: &str, keys: &[&str], by: &[(String, String)]) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut from = 0;
    for range in values(text, keys) {
        let value = text.get(range.clone()).unwrap_or_default();
        let Some((_, other)) = by.iter().find(|(known, _)| known == value) else { continue };
        replaced += text.get(from..range.start).unwrap_or_default();
        replaced += other;
        from = range.end;
    }
    replaced + text.get(from..).unwrap_or_default()
}

/// Where the texts behind these keys stand, in their order. A line that begins as a comment has none.
fn values(text: &str, keys: &[&str]) -> Vec<Range<usize>> {
    let found = |key: &&str| {
        let places = text.match_indices(*key).map(|(at, key)| (at, at + key.len()));
        places.filter_map(|(from, to)| value(text, from, to)).collect::<Vec<_>>()
    };
    let mut all: Vec<Range<usize>> = keys.iter().flat_map(found).collect();
    all.sort_by_key(|range| range.start);
    all.dedup();
    all
}

/// Where the text behind a key stands that has this place.
fn value(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    let (before, behind) = (text.get(..from)?, text.get(to..)?);
    let line = before.rsplit('\n').next()?.trim_start();
    if line.starts_with('#') || line.starts_with("//") {
        return None;
    }
    let quote = before.chars().next_back().filter(|last| matches!(last, '"' | '\''));
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
    let behind = match quote {
        Some(quote) => behind.strip_prefix(quote)?,
        None if before.ends_with(is_of_word) => return None,
        None => behind,
    };
    let behind = behind.trim_start_matches([' ', '\t']).strip_prefix([':', '='])?;
    let behind = behind.trim_start_matches([' ', '\t']);
    let quote = behind.chars().next().filter(|first| matches!(first, '"' | '\''));
    let (value, ends) = match quote {
        Some(quote) => (behind.get(1..)?, behind.get(1..)?.find(quote)?),
        None => {
            (behind, behind.find([' ', '\t', '\r', '\n', ',', '}', ']']).unwrap_or(behind.len()))
        }
    };
    let at = text.len() - value.len();
    Some(at..at + ends)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn base_urls_alone_change_and_come_back() {
        let keys = &["baseUrl", "base_url", "apiBase"];
        for (text, led) in [
            (
                r#"{"a":{"baseUrl":"https://h/v1","other":"https://h/v1"}}"#,
                r#"{"a":{"baseUrl":"R","other":"https://h/v1"}}"#,
            ),
            ("base_url = \"https://h/v1\"  # mine\nx = 1\n", "base_url = \"R\"  # mine\nx = 1\n"),
            (
                "- apiBase: https://h/v1\r\n  # apiBase: https://h/v1\n",
                "- apiBase: R\r\n  # apiBase: https://h/v1\n",
            ),
            ("{ apiBase: 'https://h/v1/', model: m }", "{ apiBase: 'R/', model: m }"),
            ("my_base_url = \"https://h/v1\"", "my_base_url = \"https://h/v1\""),
            ("apiBase: *anchor\nbaseUrl:", "apiBase: *anchor\nbaseUrl:"),
        ] {
            let settings = SettingsText::of(text.to_owned(), keys, |value| {
                value.starts_with("https").then(|| "route".to_owned())
            });
            let resolved = settings.resolve(|_| Some("R".to_owned()));
            assert_eq!(resolved.text, led);
            let written = resolved.text.replace("x = 1", "x = 2");
            assert_eq!(resolved.give_back(&written), text.replace("x = 1", "x = 2"));
        }
    }
}
