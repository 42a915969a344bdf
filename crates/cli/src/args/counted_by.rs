//! What counts, as the command line names it.

use std::ffi::OsStr;

use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

use super::Tokenizer;

/// A tokenizer, or a calibration of one.
#[derive(Clone, Debug)]
pub(crate) enum CountedBy {
    Tokenizer(Tokenizer),
    /// A file of a calibration, or a session that reports usage; a model may stand behind it.
    Calibrated(String),
}

impl From<Tokenizer> for CountedBy {
    fn from(tokenizer: Tokenizer) -> Self {
        Self::Tokenizer(tokenizer)
    }
}

/// What stands before the name of the file.
const PREFIX: &str = "calibrated:";

/// Reads the name of what counts.
#[derive(Clone)]
pub(crate) struct CountedByName;

impl CountedByName {
    fn values() -> impl Iterator<Item = PossibleValue> {
        let says = "Fitted to reported usage: that of a session, or a calibration that `stats \
                    --calibrate` wrote; `@MODEL` behind it chooses a model";
        let calibrated = PossibleValue::new("calibrated:FILE").help(says);
        let tokenizers = Tokenizer::value_variants().iter();
        tokenizers.filter_map(ValueEnum::to_possible_value).chain([calibrated])
    }
}

impl TypedValueParser for CountedByName {
    type Value = CountedBy;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<CountedBy, clap::Error> {
        let refused = |message: &str| command.clone().error(ErrorKind::InvalidValue, message);
        let Some(of) = value.to_str().and_then(|value| value.strip_prefix(PREFIX)) else {
            let parser = PossibleValuesParser::new(Self::values());
            let name = parser.parse_ref(command, arg, value)?;
            let found = Tokenizer::from_str(&name, false);
            return found.map(CountedBy::Tokenizer).map_err(|message| refused(&message));
        };
        if of.is_empty() {
            return Err(refused("expected a file behind `calibrated:`, found nothing"));
        }
        Ok(CountedBy::Calibrated(of.to_owned()))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::values()))
    }
}
