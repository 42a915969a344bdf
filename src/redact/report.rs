use crate::json::{self, Value, object};

crate::json::serialize_through_json!(RedactionReport);

/// The version of the report as JSON.
const VERSION: u64 = 1;

/// What a [`Redactor`](super::Redactor) took out.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionReport {
    /// Each secret once, in the order in which they were found. After
    /// [`Redactor::start_second_pass`](super::Redactor::start_second_pass) one that was not found
    /// again has `times` 0.
    pub found: Vec<Redaction>,
}

/// A secret that was found. What it said is nowhere in it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Redaction {
    /// The id of the rule that found it first.
    pub rule: String,
    /// What stands in its place.
    pub placeholder: String,
    /// How often it was found.
    pub times: u64,
    /// Where it was found first.
    pub first: String,
}

impl RedactionReport {
    /// How often anything was found. O(findings).
    pub fn times(&self) -> u64 {
        self.found.iter().map(|redaction| redaction.times).sum()
    }

    /// How many secrets were found. O(findings).
    pub fn secrets(&self) -> u64 {
        self.found.iter().filter(|redaction| redaction.times > 0).count() as u64
    }

    /// How many secrets each rule found, and how often, in the order in which the rules first found
    /// one. O(findings).
    pub fn by_rule(&self) -> Vec<(&str, u64, u64)> {
        let mut rules: Vec<(&str, u64, u64)> = Vec::new();
        for redaction in self.found.iter().filter(|redaction| redaction.times > 0) {
            match rules.iter_mut().find(|(rule, ..)| *rule == redaction.rule) {
                Some((_, secrets, times)) => {
                    *secrets += 1;
                    *times += redaction.times;
                }
                None => rules.push((&redaction.rule, 1, redaction.times)),
            }
        }
        rules
    }

    /// The report as JSON, as `docs/FORMAT.md` says: its version, and of each secret `rule`,
    /// `placeholder`, `times` and `first`. O(size).
    pub fn to_json(&self) -> Value {
        let found = self.found.iter().filter(|redaction| redaction.times > 0);
        let found = json::to_value(&found.collect::<Vec<_>>()).unwrap_or_default();
        object! { "redaction": VERSION, "found": found }.into()
    }
}
