//! Settings of a client, in which routes stand for base URLs.
//!
//! A copy of the user's settings differs in its base URLs alone. Each URL has a route of its own, so
//! what the client changes in the copy can be given back to the user.

use std::{io, ops::Range, path::Path};

use afterimage::{
    json::{self, Value},
    log::{DiskFiles, write_atomic},
};
use serde::{Deserialize, Serialize};

/// How a text begins that stands for a base URL, before its route and the URL.
const MARK: &str = "afterimage-route:";

/// The text that stands for a base URL in JSON, for [`SettingsText::marked`].
pub(super) fn mark(route: &str, url: &str) -> Value {
    format!("{MARK}{route} {}", url.replace(['"', '\\'], "")).into()
}

/// A text of settings, and the routes to its base URLs.
#[derive(Debug)]
pub(super) struct SettingsText {
    text: String,
    places: Vec<Led>,
}

/// A base URL in settings that a route stands for.
#[derive(Debug)]
pub(super) struct Led {
    pub(super) place: Range<usize>,
    pub(super) url: String,
    pub(super) route: String,
}

impl SettingsText {
    /// A text with these base URLs, in the order of their places.
    pub(super) fn new(text: String, places: Vec<Led>) -> Self {
        Self { text, places }
    }

    /// JSON, TOML or YAML: asks for the route of each base URL that stands behind one of the keys.
    pub(super) fn of(
        text: String,
        keys: &[&str],
        mut route: impl FnMut(&str) -> Option<String>,
    ) -> Self {
        let mut known: Vec<(String, Option<String>)> = Vec::new();
        let mut places = Vec::new();
        for place in values(&text, keys) {
            let url = text.get(place.clone()).unwrap_or_default();
            if url.is_empty() {
                continue;
            }
            let found = known.iter().position(|(known, _)| known == url);
            let at = found.unwrap_or(known.len());
            if found.is_none() {
                known.push((url.to_owned(), route(url)));
            }
            if let Some((url, Some(route))) = known.get(at).cloned() {
                places.push(Led { place, url, route });
            }
        }
        Self { text, places }
    }

    /// JSON with marks behind these keys.
    pub(super) fn marked(settings: &Value, keys: &[&str]) -> Self {
        let route = |value: &str| Some(value.strip_prefix(MARK)?.split_once(' ')?.0.to_owned());
        let mut settings = Self::of(settings.to_string(), keys, route);
        for led in &mut settings.places {
            led.url = led.url.split_once(' ').map(|(_, url)| url.to_owned()).unwrap_or_default();
        }
        settings
    }

    /// Whether there is a base URL that a route stands for.
    pub(super) fn is_led(&self) -> bool {
        !self.places.is_empty()
    }

    /// The text with the base URLs of the recorder, and what gives it back.
    pub(super) fn resolve(self, base: impl Fn(&str) -> Option<String>) -> Resolved {
        let (mut text, mut back, mut from) = (String::new(), Vec::new(), 0);
        for Led { place, url, route } in self.places {
            let Some(base) = base(&route) else { continue };
            text += self.text.get(from..place.start).unwrap_or_default();
            text += &base;
            from = place.end;
            let bare = url.strip_suffix('/');
            text += bare.map_or("", |_| "/");
            back.push((base, bare.unwrap_or(&url).to_owned()));
        }
        text += self.text.get(from..).unwrap_or_default();
        Resolved { text, back }
    }
}

/// Settings as a client gets them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Resolved {
    pub(super) text: String,
    /// The base URLs of the recorder, each with the user's. Neither has a slash at its end.
    back: Vec<(String, String)>,
}

impl Resolved {
    /// Writes it down for [`Resolved::read`].
    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        let text = json::to_value(self).map_err(io::Error::other)?.to_string();
        write_atomic(&DiskFiles, path, text.as_bytes()).map_err(io::Error::other)
    }

    pub(super) fn read(path: &Path) -> Option<Self> {
        json::from_value(json::read(&std::fs::read(path).ok()?).ok()?).ok()
    }

    /// What the client has written in their place, with the user's base URLs. `None` where something
    /// of the recorder would be left in it.
    pub(super) fn give_back(&self, written: &str) -> Option<String> {
        let (base, _) = self.back.first()?;
        let end = base.match_indices('/').nth(3).map_or(base.len(), |(at, _)| at + 1);
        let root = base.get(..end)?;
        let mut parts = written.split(root);
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (url, rest) = self.back.iter().find_map(|(base, url)| {
                let rest = part.strip_prefix(base.strip_prefix(root)?)?;
                let is_longer =
                    rest.starts_with(|c: char| c.is_alphanumeric() || "-._~%".contains(c));
                (!is_longer).then_some((url, rest))
            })?;
            text += url;
            text += rest;
        }
        // Its address, and its token.
        let mut own = root.split('/').skip(2).filter(|part| !part.is_empty());
        (!own.any(|part| text.contains(part))).then_some(text)
    }
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

    const BASE: &str = "http://127.0.0.1:9/token/a/v1";

    /// Settings with these base URLs, whose recorder has them behind names.
    fn led(urls: &[&str]) -> Resolved {
        let text: String = urls.iter().map(|url| format!("base: '{url}'\n")).collect();
        let settings = SettingsText::of(text, &["base"], |url| Some(url.to_owned()));
        let name = |url: &str| {
            let at = urls.iter().position(|known| *known == url)?;
            Some(format!("http://127.0.0.1:9/token/{}", ["a", "a.b", "a-2", "b/v1"].get(at)?))
        };
        settings.resolve(name)
    }

    #[test]
    fn each_base_url_comes_back_wherever_the_client_writes_it() {
        let urls = ["https://a.example", "https://a.example/", "https://A.example", "https://a/v1"];
        let resolved = led(&urls);
        let whole = resolved.give_back(&resolved.text).unwrap();
        assert_eq!(whole, urls.map(|url| format!("base: '{url}'\n")).concat());
        let root = "http://127.0.0.1:9/token/";
        for (written, back) in [
            // In another order, with other quotes, with more behind it, twice.
            ("x=\"Ra-2\" y=Ra", Some("x=\"https://A.example\" y=https://a.example")),
            (
                "Ra/v1/models?a Ra/v1\n",
                Some("https://a.example/v1/models?a https://a.example/v1\n"),
            ),
            ("Ra.b/x", Some("https://a.example/x")),
            ("Ra\u{e4}", None),
            ("nothing of it", Some("nothing of it")),
            ("", Some("")),
            // None of these is one of the user's.
            ("Ra.c", None),
            ("Raa", None),
            ("R", None),
            ("http://127.0.0.1:9/else", None),
            ("http://localhost:9/token/a", None),
        ] {
            let back = back.map(str::to_owned);
            assert_eq!(resolved.give_back(&written.replace('R', root)), back, "{written}");
        }
    }

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
            let is_led = settings.is_led();
            let resolved = settings.resolve(|_| Some(BASE.to_owned()));
            assert_eq!(resolved.text, led.replace('R', BASE));
            let written = resolved.text.replace("x = 1", "x = 2");
            let back = text.replace("x = 1", "x = 2");
            assert_eq!(resolved.give_back(&written), is_led.then_some(back));
        }
    }
}
