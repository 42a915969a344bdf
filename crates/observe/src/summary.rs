use serde::Serialize;

use crate::json::{Value, object, to_value};

crate::json::serialize_through_json!(Summary);

/// What a model is told of an account: a few lines within a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub(super) text: String,
    pub(super) tokens: u64,
    pub(super) account: Option<String>,
    pub(super) sections: Vec<SummarySection>,
}

/// What a summary shows of one observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummarySection {
    /// What the observation is called.
    pub name: String,
    /// Its tool.
    pub tool: String,
    /// The bytes of the section.
    pub bytes: u64,
    /// The bytes of the payload that it stands for.
    pub stands_for: u64,
    /// Whether some of it is marked stale.
    #[serde(rename = "stale")]
    pub is_stale: bool,
    /// Whether it is older than the policy wants it.
    #[serde(rename = "old")]
    pub is_old: bool,
    /// Whether it cannot be read, since the store is damaged.
    #[serde(rename = "damaged")]
    pub is_damaged: bool,
}

impl Summary {
    /// The text. Empty where not even its first lines fit the limit.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tokens of the text, as the counter of the observations counts the whole of it. Never
    /// more than the limit.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Whose it is; `None` where there is no account.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// The observations that it shows, in order.
    pub fn sections(&self) -> &[SummarySection] {
        &self.sections
    }

    /// The bytes of the payloads that it stands for. O(sections).
    pub fn stands_for(&self) -> u64 {
        self.sections.iter().map(|section| section.stands_for).fold(0, u64::saturating_add)
    }

    /// The summary for programs: `account`, `text`, `tokens`, `bytes`, `standsFor`, and for each of
    /// `observations` `name`, `tool`, `bytes`, `standsFor`, `stale`, `old`,
    /// `damaged`. O(size).
    pub fn to_json(&self) -> Value {
        let object = object! {
            "account": self.account.as_deref(),
            "text": self.text.as_str(),
            "tokens": self.tokens,
            "bytes": self.text.len() as u64,
            "standsFor": self.stands_for(),
            "observations": to_value(&self.sections).unwrap_or_default(),
        };
        object.into()
    }
}
