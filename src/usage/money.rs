//! Amounts of money, exact.

use std::{fmt, str::FromStr};

use crate::json::Value;

/// How many digits an amount has after the point.
const DIGITS: u8 = 12;
/// One unit of a currency, in 10^-12 of it.
const UNIT: u128 = 1_000_000_000_000;
/// The most units that a source may state: beyond that it states no amount.
const MOST_UNITS: u128 = 1 << 53;

/// A currency: three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The dollar of the United States: the currency of sources that name none.
    pub const USD: Self = Self(*b"USD");

    /// The three letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }

    /// The currency with these three letters; `None` for anything else.
    pub fn from_name(name: &str) -> Option<Self> {
        let letters: [u8; 3] = name.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_uppercase).then_some(Self(letters))
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An amount of a currency, in whole 10^-12 of its unit. No sum of amounts is rounded.
///
/// ```
/// use afterimage::transcript::{Currency, Money};
///
/// let cost = Money::from_decimal("0.013875000000000002", Currency::USD).unwrap();
/// assert_eq!(cost.to_string(), "0.013875 USD");
/// assert_eq!(cost.rounded(), "0.014");
/// assert_eq!(Money::from_decimal("-1", Currency::USD), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    pico: u128,
    currency: Currency,
}

impl Money {
    /// So many 10^-12 of the unit of a currency.
    pub const fn from_pico(pico: u128, currency: Currency) -> Self {
        Self { pico, currency }
    }

    /// The amount that a decimal number states, as JSON and TOML write it (`0.25`, `5e-06`), rounded
    /// to 10^-12. `None` where it is negative, larger than 2^53, or no number. O(text).
    pub fn from_decimal(text: &str, currency: Currency) -> Option<Self> {
        pico(text).map(|pico| Self { pico, currency })
    }

    /// The wire form, read back; `None` where it is none.
    pub fn from_json(value: &Value) -> Option<Self> {
        let currency = Currency::from_name(value.str_at("currency")?)?;
        Self::from_decimal(value.str_at("amount")?, currency)
    }

    /// How many 10^-12 of the unit it is.
    pub const fn pico(self) -> u128 {
        self.pico
    }

    /// Its currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// The decimal number, with every digit that is not a zero at its end.
    pub fn decimal(self) -> String {
        let (whole, rest) = (self.pico / UNIT, self.pico % UNIT);
        let rest = format!("{rest:012}");
        match rest.trim_end_matches('0') {
            "" => whole.to_string(),
            rest => format!("{whole}.{rest}"),
        }
    }

    /// The number rounded for people: to the cent from ten cents on, else to two digits that count.
    pub fn rounded(self) -> String {
        let mut places = 2;
        let mut least = UNIT / 10;
        while self.pico > 0 && self.pico < least && places < DIGITS {
            places += 1;
            least /= 10;
        }
        let step = 10_u128.pow(u32::from(DIGITS - places));
        let rounded = self.pico.saturating_add(step / 2) / step;
        let parts = 10_u128.pow(u32::from(places));
        let places = usize::from(places);
        format!("{}.{:0places$}", rounded / parts, rounded % parts)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.decimal(), self.currency)
    }
}

impl From<Money> for Value {
    /// `{"amount": "0.0174", "currency": "USD"}`: a JSON number would be rounded by most readers.
    fn from(money: Money) -> Self {
        let mut object = crate::json::Object::new();
        object.insert("amount".to_owned(), money.decimal().into());
        object.insert("currency".to_owned(), money.currency.as_str().into());
        object.into()
    }
}

/// A decimal number in 10^-12, rounded half up.
fn pico(text: &str) -> Option<u128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, i64::from_str(exponent).ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // The place of the last digit that counts, from the first.
    let length = i64::try_from(digits.len()).ok()?;
    let fraction = i64::try_from(fraction.len()).ok()?;
    let kept =
        length.checked_sub(fraction)?.checked_add(exponent)?.checked_add(i64::from(DIGITS))?;
    if kept > 38 {
        return None;
    }
    let Ok(kept) = usize::try_from(kept) else { return Some(0) };
    let (taken, rest) = digits.split_at_checked(kept).unwrap_or((digits, ""));
    let zeros = kept.saturating_sub(digits.len()) as u32;
    let taken: u128 = if taken.is_empty() { 0 } else { taken.parse().ok()? };
    let up = u128::from(rest.bytes().next().is_some_and(|digit| digit >= b'5'));
    let pico = taken.checked_mul(10_u128.checked_pow(zeros)?)?.checked_add(up)?;
    (pico <= MOST_UNITS * UNIT).then_some(pico)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let money = Money::from_decimal(text, Currency::USD);
        let found = money.map_or_else(|| "none".to_owned(), Money::decimal);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_decimal_is_exact_to_twelve_digits_and_what_is_none_is_none() {
        check("0.017400000000000002", "0.0174");
        check("5e-06", "0.000005");
        check("1.5E2", "150");
        check("12", "12");
        check("0.0000000000005", "0.000000000001");
        check("0.0000000000004", "0");
        check("4e-13", "0");
        check("5e-13", "0.000000000001");
        check("0", "0");
        check("9007199254740992", "9007199254740992");
        for none in [
            "9007199254740993",
            "1e400",
            "1e99999999999999999999",
            "-1",
            "-0",
            "",
            ".",
            "NaN",
            "1.2.3",
            "0x1",
        ] {
            check(none, "none");
        }
    }

    #[test]
    fn it_is_shown_to_the_cent_and_finer_where_it_is_less() {
        let shown = |text: &str| Money::from_decimal(text, Currency::USD).unwrap().rounded();
        assert_eq!(shown("12.345"), "12.35");
        assert_eq!(shown("0.1"), "0.10");
        assert_eq!(shown("0.0174"), "0.017");
        assert_eq!(shown("0.000004999"), "0.0000050");
        assert_eq!(shown("0"), "0.00");
    }
}
