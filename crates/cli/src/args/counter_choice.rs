//! The value of `--tokenizer`: a tokenizer, or a calibration of one.

use std::ffi::OsStr;

use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

use super::Tokenizer;

/// A tokenizer, or a calibration of one.
#[derive(Clone, Debug)]
pub(crate) enum CounterChoice {
    Tokenizer(Tokenizer),
    /// `FILE` or `FILE@MODEL`: a calibration, or a session that reports usage.
    Calibrated(String),
}

impl From<Tokenizer> for CounterChoice {
    fn from(tokenizer: Tokenizer) -> Self {
        Self::Tokenizer(tokenizer)
    }
}

/// The prefix of the name of a file.
const PREFIX: &str = "calibrated:";

/// Parses a [`CounterChoice`].
#[derive(Clone)]
pub(crate) struct CounterChoiceParser;

impl CounterChoiceParser {
    fn values() -> impl Iterator<Item = PossibleValue> {
        let says = "Count as a calibration does: FILE is one that `stats --calibrate` wrote, or a \
                    session that reports usage. FILE@MODEL chooses the model";
        let calibrated = PossibleValue::new("calibrated:FILE").help(says);
        let tokenizers = Tokenizer::value_variants().iter();
        tokenizers.filter_map(ValueEnum::to_possible_value).chain([calibrated])
    }
}

impl TypedValueParser for CounterChoiceParser {
    type Value = CounterChoice;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<CounterChoice, clap::Error> {
        let refused = |message: &str| command.clone().error(ErrorKind::InvalidValue, message);
        let Some(of) = value.to_str().and_then(|value| value.strip_prefix(PREFIX)) else {
            let parser = PossibleValuesParser::new(Self::values());
            let name = parser.parse_ref(command, arg, value)?;
            let found = Tokenizer::from_str(&name, false);
            return found.map(CounterChoice::Tokenizer).map_err(|message| refused(&message));
        };
        if of.is_empty() {
            return Err(refused("`calibrated:` names no file: write `calibrated:FILE`"));
        }
        Ok(CounterChoice::Calibrated(of.to_owned()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::values()))
    }
}
