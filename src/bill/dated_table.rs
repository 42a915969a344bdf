//! What the tables of models have in common: they are TOML, they are of a day, and they name models.

use crate::{Error, ErrorKind, Result};

/// What a table says of models, by provider.
#[derive(Clone, Debug)]
pub(crate) struct ModelTable<T> {
    pub(crate) providers: Vec<Provider<T>>,
}

/// What a table says of the models of a provider. A name may have one of `prefixes` before it
/// (`vertex/`), and one of `suffixes` behind it (`-####`, where `#` is a digit).
#[derive(Clone, Debug)]
pub(crate) struct Provider<T> {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) prefixes: Vec<String>,
    pub(crate) suffixes: Vec<String>,
    pub(crate) models: Vec<(Vec<String>, T)>,
}

impl<T> ModelTable<T> {
    /// What the table says of a model. A provider that lists the whole name wins over one that
    /// lists it without a prefix or a suffix.
    pub(crate) fn of(&self, model: &str) -> Option<&T> {
        let exact = self.providers.iter().find_map(|provider| provider.named(model));
        exact.or_else(|| {
            let mut providers = self.providers.iter();
            providers.find_map(|of| of.forms(model).find_map(|name| of.named(name)))
        })
    }

    /// The providers, and where what is said of their models comes from.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.providers.iter().map(|provider| (&*provider.name, &*provider.source))
    }

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.providers.iter().all(|provider| provider.models.is_empty())
    }
}

impl<T> Provider<T> {
    fn named(&self, name: &str) -> Option<&T> {
        let found = self.models.iter().find(|(names, _)| names.iter().any(|own| own == name));
        found.map(|(_, said)| said)
    }

    /// The name, and what is left of it without a prefix, a suffix, or both.
    fn forms<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n str> {
        let stripped = self.prefixes.iter().filter_map(move |prefix| name.strip_prefix(&**prefix));
        std::iter::once(name).chain(stripped).flat_map(|name| {
            let shorter = self.suffixes.iter().filter_map(move |suffix| without(name, suffix));
            std::iter::once(name).chain(shorter)
        })
    }
}

/// Reads a table from TOML; an error names its line.
pub(crate) fn read<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let said = shape(format!("not a table of {what}: {}", error.message()));
        on_line(said, text, error.span().map(|span| span.start))
    })
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
