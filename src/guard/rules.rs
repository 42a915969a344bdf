use std::collections::HashSet;

use serde::Deserialize;

use crate::{
    Result,
    bill::dated_table::{ModelTable, Provider, day, on_line, read, shape},
    transcript::{Api, HostedName},
};

/// The table that comes along, which says its date and its sources itself.
const EMBEDDED: &str = include_str!("rules.toml");
/// Parts of a token of plain input that costs are given in.
pub(super) const PARTS: u64 = 1000;

/// What the caches of providers keep and serve: a table that is data, and says its date.
///
/// A model has rules where the table names it, as in [`Prices`](crate::bill::Prices): exactly, or
/// with one of its provider's prefixes before, and one of its suffixes behind the name.
///
/// ```
/// use afterimage::guard::{Basis, CacheRules, Setting};
///
/// let rules = CacheRules::embedded()?;
/// let opus = rules.of("claude-opus-4-5-20251101").unwrap();
/// assert_eq!((opus.minimum(), opus.ttl_seconds()), (4_096, Some(300)));
/// assert_eq!(opus.basis(Setting::Minimum), Basis::Documented);
/// assert!(rules.of("claude-opus-4-5-mini").is_none());
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CacheRules {
    date: String,
    models: ModelTable<ModelRules>,
}

/// The rules of the cache that serves a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRules {
    pub(super) apis: Vec<Api>,
    pub(super) order: [Section; 3],
    pub(super) minimum: u64,
    pub(super) breakpoints: Breakpoints,
    pub(super) ttl: Option<u64>,
    pub(super) ttl_most: Option<u64>,
    pub(super) ttl_long: Option<u64>,
    /// In parts of a token of plain input.
    pub(super) write: u64,
    pub(super) write_long: u64,
    measured: Vec<Setting>,
    unknown: Vec<Setting>,
}

/// Who says where an entry of the cache ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breakpoints {
    /// The request marks blocks.
    Marks { most: usize, look_back: usize },
    /// The end of the latest message, and blocks that the request marks.
    Messages { most: usize, look_back: usize },
    /// The provider, after each so many tokens.
    Steps { step: u64, interval: Option<u64> },
}

/// A part of a request, as a cache takes them one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Section {
    Tools,
    System,
    Messages,
}

/// A setting of a family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Setting {
    /// The fewest tokens of a prefix that is kept.
    Minimum,
    /// How far apart the ends of what is kept lie.
    Interval,
    /// For how long an entry is kept at least.
    Ttl,
    /// For how long an entry may be kept at most.
    TtlMost,
}

crate::json::name_enum! {
    /// Where the value of a setting comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Basis {
        /// The provider publishes it.
        Documented = "documented",
        /// Recorded requests show it.
        Measured = "measured",
        /// Nobody says it.
        Unknown = "unknown",
    }
}

impl CacheRules {
    /// The table that comes along. Parses it each time: O(its text).
    ///
    /// # Errors
    /// None in a build whose tests pass: [`ErrorKind::Shape`](crate::ErrorKind::Shape).
    pub fn embedded() -> Result<Self> {
        Self::from_toml(EMBEDDED)
    }

    /// Reads a table that is written as TOML. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) with the line, where the text is not TOML or has
    /// another shape. The same for a date that is no day, and for a model that is named twice or not at
    /// all. A family needs each setting of its kind of cache, and says of each whether it is
    /// documented, measured or unknown; else that is the error.
    pub fn from_toml(text: &str) -> Result<Self> {
        let TomlRules { date, provider } = read(text, "rules of caches")?;
        let date = day(&date, "rules")?;
        let mut providers = Vec::new();
        let mut seen = HashSet::new();
        for provider in provider {
            let mut models = Vec::new();
            for family in &provider.family {
                let names = family.names.get_ref();
                let at = Some(family.names.span().start);
                let wrong = |error: String| {
                    on_line(shape(format!("{}: {error}", names.join(", "))), text, at)
                };
                if names.is_empty() || names.iter().any(String::is_empty) {
                    return Err(wrong("a family names a model without a name".to_owned()));
                }
                if let Some(twice) = names.iter().find(|name| !seen.insert((*name).clone())) {
                    return Err(wrong(format!("the model {twice:?} has two families")));
                }
                let of = provider.rules(family).map_err(wrong)?;
                models.push((names.clone(), of));
            }
            let TomlProvider { name, source, prefixes, suffixes, .. } = provider;
            providers.push(Provider { name, source, prefixes, suffixes, models });
        }
        let models = ModelTable { providers };
        if models.is_empty() {
            return Err(shape("expected the rules of a family of models, found none".to_owned()));
        }
        Ok(Self { date, models })
    }

    /// The day on which the rules were as they are here.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The providers, and where their rules come from. O(providers) for all of them.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.models.sources()
    }

    /// The rules for a model; `None` where the table does not name it. A model of Anthropic's that
    /// Bedrock or Vertex AI serves has those of its own name. O(names in the table) for each form of the
    /// name.
    pub fn of(&self, model: &str) -> Option<&ModelRules> {
        self.models.of(model).or_else(|| self.models.of(&HostedName::of(model)?.model))
    }
}

impl ModelRules {
    /// The fewest tokens of a prefix that is kept.
    pub fn minimum(&self) -> u64 {
        self.minimum
    }

    /// For how many seconds an entry is kept at least, where that is known.
    pub fn ttl_seconds(&self) -> Option<u64> {
        self.ttl
    }

    /// Whether a token that is written costs more than one of plain input.
    pub fn bills_writes(&self) -> bool {
        self.write > PARTS
    }

    /// Where the value of a setting comes from.
    pub fn basis(&self, setting: Setting) -> Basis {
        if self.unknown.contains(&setting) {
            Basis::Unknown
        } else if self.measured.contains(&setting) {
            Basis::Measured
        } else {
            Basis::Documented
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlRules {
    date: toml::Value,
    #[serde(default)]
    provider: Vec<TomlProvider>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlProvider {
    name: String,
    source: String,
    apis: Vec<TomlApi>,
    order: [Section; 3],
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    suffixes: Vec<String>,
    breakpoints: TomlBreakpoints,
    most: Option<usize>,
    look_back: Option<usize>,
    step: Option<u64>,
    ttl: Option<u64>,
    ttl_long: Option<u64>,
    write: f64,
    write_long: Option<f64>,
    #[serde(default)]
    family: Vec<TomlFamily>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlFamily {
    names: toml::Spanned<Vec<String>>,
    minimum: Option<u64>,
    interval: Option<u64>,
    ttl: Option<u64>,
    ttl_most: Option<u64>,
    #[serde(default)]
    documented: Vec<Setting>,
    #[serde(default)]
    measured: Vec<Setting>,
    #[serde(default)]
    unknown: Vec<Setting>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TomlApi {
    Messages,
    Chat,
    Responses,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TomlBreakpoints {
    Marks,
    Messages,
    Steps,
}

impl TomlProvider {
    fn rules(&self, family: &TomlFamily) -> Result<ModelRules, String> {
        family.check()?;
        let [first, second, third] = self.order;
        if first == second || second == third || first == third {
            return Err("the order names a part of a request twice".to_owned());
        }
        let missing = |name: &str| format!("expected the setting `{name}`, found none");
        let marked = || {
            let most = self.most.filter(|most| *most > 0).ok_or_else(|| missing("most"))?;
            let look_back = self.look_back.ok_or_else(|| missing("look_back"))?;
            Ok::<_, String>((most, look_back))
        };
        let breakpoints = match self.breakpoints {
            TomlBreakpoints::Marks => {
                let (most, look_back) = marked()?;
                Breakpoints::Marks { most, look_back }
            }
            TomlBreakpoints::Messages => {
                let (most, look_back) = marked()?;
                Breakpoints::Messages { most, look_back }
            }
            TomlBreakpoints::Steps => {
                let step = self.step.filter(|step| *step > 0).ok_or_else(|| missing("step"))?;
                Breakpoints::Steps { step, interval: family.interval }
            }
        };
        let api = |api: &TomlApi| match api {
            TomlApi::Messages => Api::Messages,
            TomlApi::Chat => Api::Chat,
            TomlApi::Responses => Api::Responses,
        };
        let write = parts(self.write)?;
        Ok(ModelRules {
            apis: self.apis.iter().map(api).collect(),
            order: self.order,
            minimum: family.minimum.ok_or_else(|| missing("minimum"))?,
            breakpoints,
            ttl: family.ttl.or(self.ttl),
            ttl_most: family.ttl_most,
            ttl_long: self.ttl_long,
            write,
            write_long: self.write_long.map_or(Ok(write), parts)?,
            measured: family.measured.clone(),
            unknown: family.unknown.clone(),
        })
    }
}

impl TomlFamily {
    /// Each setting that is there is said to be documented or measured, and no other.
    fn check(&self) -> Result<(), String> {
        let settings = [
            (Setting::Minimum, "minimum", self.minimum.is_some()),
            (Setting::Interval, "interval", self.interval.is_some()),
            (Setting::Ttl, "ttl", self.ttl.is_some()),
            (Setting::TtlMost, "ttl_most", self.ttl_most.is_some()),
        ];
        for (setting, name, is_there) in settings {
            let among = |list: &[Setting]| list.iter().filter(|of| **of == setting).count();
            let said = among(&self.documented) + among(&self.measured);
            match (is_there, said, among(&self.unknown)) {
                (true, 1, 0) | (false, 0, 0 | 1) => {}
                (true, 0, 0) => {
                    return Err(format!("`{name}` is said to be neither documented nor measured"));
                }
                (false, ..) => {
                    return Err(format!("`{name}` is said to be known, and has no value"));
                }
                _ => return Err(format!("it is said twice where `{name}` comes from")),
            }
        }
        Ok(())
    }
}

/// A factor in parts of one.
fn parts(factor: f64) -> Result<u64, String> {
    let parts = (factor * PARTS as f64).round();
    if !(1.0..=1e6).contains(&parts) {
        return Err(format!("expected what a write costs as a factor, found {factor}"));
    }
    #[expect(clippy::cast_sign_loss, reason = "it is at least one")]
    let parts = parts as u64;
    Ok(parts)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
