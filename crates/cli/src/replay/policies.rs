//! Policies of a replay, as the command line names them.

use std::ffi::OsStr;

use afterimage::{replay::ReplayPolicy, window::Budget};
use clap::{
    builder::{PossibleValue, TypedValueParser},
    error::ErrorKind,
};

/// Each policy with what it does.
const POLICIES: [(&str, &str); 7] = [
    ("none", "Nothing is left out, whatever the budget"),
    ("sliding", "The oldest frames are left out; `sliding:20` keeps no more than 20 messages"),
    ("first-and-last", "The oldest frames are left out, but for the user's first message"),
    (
        "masking",
        "Results older than ten turns get one line each, ten turns at a time: `masking:10:10`",
    ),
    (
        "keep-user",
        "A summary stands for everything but what the user said, up to `keep-user:20k` tokens",
    ),
    ("forget", "The oldest frames are left out down to `forget:0.5` when the room is full"),
    ("blocks", "Blocks stand for older frames, as `compress` does it"),
];

/// Reads the name of a policy and its figures.
#[derive(Clone)]
pub(crate) struct PolicyParser;

impl TypedValueParser for PolicyParser {
    type Value = ReplayPolicy;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ReplayPolicy, clap::Error> {
        let name = value.to_string_lossy();
        // How blocks are made is known once the budget is.
        ReplayPolicy::by_name(&name, &Budget::new(u64::MAX)).map_err(|error| {
            command.clone().error(ErrorKind::InvalidValue, format!("--policy: {error}"))
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = POLICIES.iter().map(|(name, says)| PossibleValue::new(*name).help(*says));
        Some(Box::new(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_of_the_library_is_listed() {
        assert_eq!(POLICIES.map(|(name, _)| name), ReplayPolicy::NAMES);
    }
}
