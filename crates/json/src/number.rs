use std::fmt;

/// A JSON number that keeps its digits exactly.
///
/// Equality is of the value for integers within 64 bits, and of the text for everything else:
/// `1.0`, `1.00` and `1` are three numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Number(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Unsigned(u64),
    /// Always below zero.
    Negative(i64),
    /// Fractions, exponents, minus zero, and what 64 bits cannot hold.
    Text(Box<str>),
}

impl Number {
    /// The number with this JSON text, which the caller has checked.
    pub(crate) fn from_json_text(text: &str) -> Self {
        // Rust parses forms that are not canonical JSON ("+1", "-0"); only a text that writes
        // back the same is kept as an integer.
        match text.as_bytes() {
            [b'-', b'1'..=b'9', ..] => text.parse().map(Repr::Negative),
            [b'0'] => Ok(Repr::Unsigned(0)),
            [b'1'..=b'9', ..] => text.parse().map(Repr::Unsigned),
            _ => return Self(Repr::Text(text.into())),
        }
        .map_or_else(|_| Self(Repr::Text(text.into())), Self)
    }

    /// The number with this value; `None` for NaN and the infinities, which JSON has not.
    pub fn from_f64(value: f64) -> Option<Self> {
        serde_json::Number::from_f64(value).map(|number| Self::from_json_text(&number.to_string()))
    }

    /// The value where it is an integer from zero to `u64::MAX`.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The value where it is an integer that `i64` holds.
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Unsigned(value) => i64::try_from(value).ok(),
            Repr::Negative(value) => Some(value),
            Repr::Text(_) => None,
        }
    }

    /// The nearest `f64`; infinite where the number is out of range.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Unsigned(value) => *value as f64,
            Repr::Negative(value) => *value as f64,
            // A JSON number is always a Rust float literal.
            Repr::Text(text) => text.parse().unwrap_or(f64::NAN),
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(Repr::Unsigned(value))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        u64::try_from(value).map_or(Self(Repr::Negative(value)), Self::from)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unsigned(value) => value.fmt(f),
            Repr::Negative(value) => value.fmt(f),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_kept() {
        for text in [
            "0",
            "-0",
            "7",
            "-7",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "1.0",
            "1e5",
            "1E+400",
            "9007199254740993",
            "0.1000",
        ] {
            assert_eq!(Number::from_json_text(text).to_string(), text);
        }
    }
}
