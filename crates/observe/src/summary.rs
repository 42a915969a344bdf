use crate::json::{Object, ObjectExt, Value};

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub is_stale: bool,
    /// Whether it cannot be read, since the store is damaged.
    pub is_damaged: bool,
    /// Whether it is older than the policy wants it.
    pub is_old: bool,
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
        let mut object = Object::new();
        object.put("account", self.account.as_deref().map_or(Value::Null, Value::from));
        object.put("text", self.text.as_str());
        object.put("tokens", self.tokens);
        object.put("bytes", self.text.len() as u64);
        object.put("standsFor", self.stands_for());
        let sections = self.sections.iter().map(|section| {
            let mut object = Object::new();
            object.put("name", section.name.as_str());
            object.put("tool", section.tool.as_str());
            object.put("bytes", section.bytes);
            object.put("standsFor", section.stands_for);
            object.put("stale", section.is_stale);
            object.put("old", section.is_old);
            object.put("damaged", section.is_damaged);
            object
        });
        object.put("observations", sections.collect::<Value>());
        object.into()
    }
}
