//! TOML in one line, with base URLs of the recorder in it.

use afterimage::json;

use super::argument::{Argument, Piece};

/// A text that grows by values.
#[derive(Debug)]
pub(super) struct TomlText {
    pieces: Vec<Piece>,
    text: String,
}

impl TomlText {
    /// The text that stands before the first value.
    pub(super) fn new(before: impl Into<String>) -> Self {
        Self { pieces: Vec::new(), text: before.into() }
    }

    /// The base URL of a route.
    pub(super) fn base(&mut self, route: &str) {
        self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        self.pieces.push(Piece::Base(route.to_owned()));
    }

    /// A table, each of whose members `write` writes.
    pub(super) fn table<'k, T>(
        &mut self,
        members: impl IntoIterator<Item = (&'k str, T)>,
        write: impl Fn(&mut Self, T),
    ) {
        let mut separator = '{';
        for (key, member) in members {
            self.text.push(std::mem::replace(&mut separator, ','));
            self.text.push_str(&quoted(key));
            self.text.push('=');
            write(self, member);
        }
        self.text.push_str(if separator == '{' { "{}" } else { "}" });
    }

    pub(super) fn value(&mut self, value: &toml::Value) {
        match value {
            toml::Value::String(text) => self.text.push_str(&quoted(text)),
            toml::Value::Integer(number) => self.text.push_str(&number.to_string()),
            // With a dot or an exponent, which tells it from an integer.
            toml::Value::Float(number) => self.text.push_str(&format!("{number:?}").to_lowercase()),
            toml::Value::Boolean(is) => self.text.push_str(&is.to_string()),
            toml::Value::Datetime(time) => self.text.push_str(&time.to_string()),
            toml::Value::Array(values) => {
                let mut separator = '[';
                for value in values {
                    self.text.push(std::mem::replace(&mut separator, ','));
                    self.value(value);
                }
                self.text.push_str(if separator == '[' { "[]" } else { "]" });
            }
            toml::Value::Table(table) => {
                let members = table.iter().map(|(key, value)| (key.as_str(), value));
                self.table(members, Self::value);
            }
        }
    }

    pub(super) fn into_argument(mut self) -> Argument {
        self.pieces.push(Piece::Text(self.text));
        Argument::Pieces(self.pieces)
    }
}

/// A text in quotes. Those of JSON are read as TOML, but for one character.
fn quoted(text: &str) -> String {
    json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    #[test]
    fn a_table_in_one_line_is_read_as_what_it_was() {
        let table: toml::Table = r#"
            text = "a \"quoted\" \\ line\n\u007f\u0001 ä"
            numbers = [1, -2.0, 1e300, inf, nan, true, []]
            time = 2026-01-02T03:04:05.678Z
            "a key.with = dots" = { inner = {}, "" = [{ deep = 1 }] }
        "#
        .parse()
        .unwrap();
        let mut text = TomlText::new("value = ");
        text.value(&toml::Value::Table(table.clone()));
        let written = text.into_argument().resolve(|_| None).unwrap().0.into_string().unwrap();
        assert!(!written.contains('\n'), "{written}");
        let read: toml::Table = written.parse().unwrap();
        // One that is no number equals nothing.
        assert_eq!(
            format!("{:?}", read.get("value").unwrap()),
            format!("{:?}", toml::Value::Table(table))
        );
    }
}
