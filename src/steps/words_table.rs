use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text::words::HASH;

/// The hash of the tables of words that steps are read with. What was read with other tables has to
/// be read again.
pub const WORDS: &str = HASH;

/// The hash in saved state. Loading refuses state with another hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WordsTable;

impl Serialize for WordsTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(WORDS)
    }
}

impl<'de> Deserialize<'de> for WordsTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        let other = || format!("expected what was read with the words {WORDS}, found {found}");
        if found == WORDS { Ok(Self) } else { Err(de::Error::custom(other())) }
    }
}
