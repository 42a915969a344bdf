//! What the tables of models have in common: they are TOML, they are of a day, and they name models.

use crate::{Error, ErrorKind, Result};

/// How a provider's models may be named besides their own names.
#[derive(Clone, Debug)]
pub(crate) struct ModelNames {
    /// What may stand before a name.
    pub(crate) prefixes: Vec<String>,
    /// What may stand behind it; `#` is a digit.
    pub(crate) suffixes: Vec<String>,
}

impl ModelNames {
    /// What a name may stand for: itself, without a prefix, without a suffix, without both.
    pub(crate) fn forms<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n str> {
        let stripped = self.prefixes.iter().filter_map(move |prefix| name.strip_prefix(&**prefix));
        std::iter::once(name).chain(stripped).flat_map(|name| {
            let shorter = self.suffixes.iter().filter_map(move |suffix| without(name, suffix));
            std::iter::once(name).chain(shorter)
        })
    }
}

/// A name without a suffix in which `#` stands for a digit; `None` where it ends otherwise.
fn without<'n>(name: &'n str, suffix: &str) -> Option<&'n str> {
    let (rest, end) = name.split_at_checked(name.len().checked_sub(suffix.len())?)?;
    let is_same = |(found, wanted): (u8, u8)| {
        if wanted == b'#' { found.is_ascii_digit() } else { found == wanted }
    };
    end.bytes().zip(suffix.bytes()).all(is_same).then_some(rest)
}

/// The day that a table is of: a text `YYYY-MM-DD`, or a date of TOML. `what` is what the table
/// holds.
pub(crate) fn day(value: &toml::Value, what: &str) -> Result<String> {
    day_of(value).ok_or_else(|| {
        let found = match value {
            toml::Value::String(text) => format!("{text:?}"),
            toml::Value::Datetime(time) => time.to_string(),
            other => other.type_str().to_owned(),
        };
        shape(format!("expected the day of the {what} as in \"2026-11-23\", found {found}"))
    })
}

fn day_of(value: &toml::Value) -> Option<String> {
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(day) if day.time.is_none() => day.to_string(),
        _ => return None,
    };
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let part = |range| text.get(range).and_then(|part: &str| part.parse::<u8>().ok());
    let is_day = has_form
        && part(5..7).is_some_and(|month| (1..=12).contains(&month))
        && part(8..10).is_some_and(|day| (1..=31).contains(&day));
    is_day.then_some(text)
}

/// Says the line of a byte of a table's text.
pub(crate) fn on_line(error: Error, text: &str, at: Option<usize>) -> Error {
    let before = at.and_then(|at| text.get(..at)).unwrap_or_default();
    error.on_line(before.matches('\n').count() as u64 + 1)
}

/// A table that is not as it must be.
pub(crate) fn shape(message: String) -> Error {
    Error::new(ErrorKind::Shape, message)
}
