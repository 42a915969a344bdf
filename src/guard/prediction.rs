use std::fmt;

use super::FirstDifference;
use crate::{
    bill::EXPIRED,
    export::PrefixReport,
    json::{self, Object, ObjectExt},
    request::CacheBreak,
    tokens::Certainty,
    transcript::Money,
};

crate::json::serialize_through_json!(Prediction);

/// What the provider's cache will make of a request, said before it is sent.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// What it shares with the request before, by counts of ours. Empty for the first one.
    pub prefix: PrefixReport,
    /// The bytes of the strings that it shares, up to the first byte that differs.
    pub shared_bytes: u64,
    /// Where it first differs; `None` where it begins with the whole of the request before.
    pub difference: Option<FirstDifference>,
    /// What takes the cache from text that is the same.
    pub breaks: Vec<CacheBreak>,
    /// Whether what the request before left can still be there.
    pub lifetime: Lifetime,
    /// What the cache serves and takes; an error where the rules do not say it.
    pub cache: Result<CacheForecast, NoForecast>,
}

/// What a cache will serve of a request, and what it will take, in the provider's tokens.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheForecast {
    /// The tokens of the whole request.
    pub input: u64,
    /// Those of them that the cache serves.
    pub read: u64,
    /// How few it may serve, where it keeps steps whose beginning is hidden; `None` where that is not
    /// known. The same as `read` where the rules are exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_least: Option<u64>,
    /// The tokens that are billed as written, those that stay longer among them.
    pub write: u64,
    /// Those of them that stay longer.
    pub write_long: u64,
    /// What the write costs beyond plain input, in tokens of plain input.
    pub write_surcharge: u64,
    /// The tokens that the request before left in the cache and that are not served.
    pub lost: u64,
    /// Why the longest entry that the request before left is not served, where its text is the same.
    #[serde(skip)]
    pub unserved: Option<UnservedEntry>,
    /// How the tokens were counted: [`Certainty::Calibrated`] where they were fitted to what was
    /// reported of the request before.
    #[serde(rename = "counts", serialize_with = "json::as_text")]
    pub certainty: Certainty,
    /// What the input costs; `None` where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
    /// What of that is paid because of what was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Money>,
}

/// Why an entry of the cache is not served to a request that begins with its text.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnservedEntry {
    /// Its time has passed.
    Expired,
    /// The places at which the request asks for entries are too far behind it.
    OutOfReach,
    /// The request asks for no entry there or behind it.
    NotAskedFor,
}

impl UnservedEntry {
    /// For people.
    const fn words(self) -> &'static str {
        match self {
            Self::Expired => EXPIRED,
            Self::OutOfReach => "what it adds is longer than the cache looks back for an entry",
            Self::NotAskedFor => "its marks for the cache are others",
        }
    }
}

crate::json::name_enum! {
    /// Whether an entry of the cache can still be there.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lifetime {
        /// A time or a rule is missing.
        Unknown = "unknown",
        /// It is kept for so long.
        Kept = "kept",
        /// It is kept for so long at the most, and not always.
        Uncertain = "uncertain",
        /// Its time has passed.
        Expired = "expired",
    }
}

/// Why there is no forecast.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoForecast {
    /// The request names no model.
    NoModel,
    /// The table of rules does not name the model.
    UnknownModel(String),
    /// The rules are for another API than the one that the request speaks.
    OtherApi,
    /// The request was worked out from a transcript, which lacks tools, parameters and marks.
    Reconstructed,
    /// The request goes on with a response that the provider holds, and is not whole.
    NotWhole,
    /// The request marks more blocks than the provider takes.
    TooManyMarks {
        /// How many it marks.
        found: usize,
        /// How many the provider takes.
        most: usize,
    },
}

impl NoForecast {
    /// The name on the wire: `noModel`, `unknownModel`, `otherApi`, `reconstructed`, `notWhole`,
    /// `tooManyMarks`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NoModel => "noModel",
            Self::UnknownModel(_) => "unknownModel",
            Self::OtherApi => "otherApi",
            Self::Reconstructed => "reconstructed",
            Self::NotWhole => "notWhole",
            Self::TooManyMarks { .. } => "tooManyMarks",
        }
    }
}

impl fmt::Display for NoForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoModel => f.write_str("the request names no model"),
            Self::UnknownModel(model) => write!(f, "no rules are known for the model {model:?}"),
            Self::OtherApi => f.write_str("the rules of the model are for another API"),
            Self::Reconstructed => {
                f.write_str("the request was worked out from a transcript, and is not whole")
            }
            Self::NotWhole => {
                f.write_str("the request goes on with a response that it does not hold")
            }
            Self::TooManyMarks { found, most } => {
                write!(f, "the request marks {found} blocks, and the provider takes {most}")
            }
        }
    }
}

impl Prediction {
    /// Why the cache serves less than the request before left there, in a few words; `None` where it
    /// serves all of it. O(length of the words).
    pub fn cause(&self) -> Option<String> {
        if let Some(difference) = &self.difference {
            return Some(difference.words());
        }
        if let Some(of) = self.breaks.first() {
            return Some(format!("`{}` changed: {}", of.cause, of.from.billed()));
        }
        match (self.lifetime, &self.cache) {
            (Lifetime::Expired, _) => Some(UnservedEntry::Expired.words().to_owned()),
            (_, Ok(forecast)) if forecast.lost > 0 => {
                forecast.unserved.map(|unserved| unserved.words().to_owned())
            }
            _ => None,
        }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Object {
        let mut object = Object::new();
        let mut shared = Object::new();
        shared.put("bytes", self.shared_bytes);
        shared.put("tokens", self.prefix.unchanged);
        shared.put("of", self.prefix.tokens);
        object.put("shared", shared);
        object.put_some("difference", self.difference.as_ref().map(FirstDifference::to_json));
        object.put("breaks", json::to_value(&self.breaks).unwrap_or_default());
        object.put("lifetime", self.lifetime.as_str());
        match &self.cache {
            Ok(forecast) => object.put("forecast", json::to_value(forecast).unwrap_or_default()),
            Err(reason) => object.put("noForecast", reason.as_str()),
        }
        object
    }
}
