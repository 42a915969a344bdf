//! What a provider, or a client, reports of one exchange: its tokens, and what it cost.

mod money;
mod reading;

use std::collections::BTreeMap;

pub use money::{Currency, Money};

use crate::json::{Object, ObjectExt, Value};

/// The tokens, and the cost, that are reported for one exchange; `None` where nothing is.
///
/// The figures mean the same whoever reports them. Anthropic's and pi's `input` leaves out what the
/// cache served or took, and Gemini's `output` leaves out its thoughts: they are added up here.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens of the whole request, those that the cache served or took among them. Where there
    /// are [`iterations`](Self::iterations), this and the figures below are their sums.
    pub input: Option<u64>,
    /// Those of them that the cache served.
    pub cache_read: Option<u64>,
    /// Those of them that were written to the cache.
    pub cache_write: Option<u64>,
    /// Those of the written ones that stay for five minutes.
    pub cache_write_5m: Option<u64>,
    /// Those of the written ones that stay for an hour.
    pub cache_write_1h: Option<u64>,
    /// The tokens of the response, reasoning among them.
    pub output: Option<u64>,
    /// Those of them that were reasoning.
    pub reasoning: Option<u64>,
    /// What the source says that it cost.
    pub cost: Option<Money>,
    /// What the source states and nobody can read: negative, fractional, larger than 2^53, of a
    /// wrong type, or a part that is larger than its whole. These are missing, and not zero.
    pub unreadable: UsageMembers,
    /// What it is billed by besides its tokens, and how often: `speed=fast`, `inference_geo=us`,
    /// `service_tier=priority`, and what is counted: `web_search`, `audio_tokens`.
    pub terms: BTreeMap<String, u64>,
    /// What the model was run for, in order, where a provider compacted the request before it was
    /// answered: the compactions and the message, each without a cost. Empty where it ran once.
    pub iterations: Vec<Self>,
}

/// The term of a provider's own web searches, which have a price each.
pub(crate) const WEB_SEARCH: &str = "web_search";
/// The term of a model that a platform runs in a region, and not wherever there is room.
pub(crate) const REGIONAL: &str = "endpoint=regional";

/// A member of [`Usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Input,
    CacheRead,
    CacheWrite,
    CacheWrite5m,
    CacheWrite1h,
    Output,
    Reasoning,
    Cost,
}

/// The members, and their names on the wire.
const MEMBERS: [(Member, &str); 8] = [
    (Member::Input, "input"),
    (Member::CacheRead, "cacheRead"),
    (Member::CacheWrite, "cacheWrite"),
    (Member::CacheWrite5m, "cacheWrite5m"),
    (Member::CacheWrite1h, "cacheWrite1h"),
    (Member::Output, "output"),
    (Member::Reasoning, "reasoning"),
    (Member::Cost, "cost"),
];

/// Some members of [`Usage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageMembers(u8);

impl UsageMembers {
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a figure is among them that a price is made of.
    #[cfg(feature = "rules")]
    pub(crate) fn has_price(self) -> bool {
        let aside = [Member::Reasoning, Member::Cost];
        let mut priced = MEMBERS.into_iter().filter(|(member, _)| !aside.contains(member));
        priced.any(|(member, _)| self.has(member))
    }

    /// Their names on the wire, in the order of the fields of [`Usage`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MEMBERS.into_iter().filter(move |(member, _)| self.has(*member)).map(|(_, name)| name)
    }

    fn has(self, member: Member) -> bool {
        self.0 & (1 << member as u8) != 0
    }

    fn add(&mut self, member: Member) {
        self.0 |= 1 << member as u8;
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Usage {
    /// The usage that an object of one of the providers, or of a client, reports; `None` where it
    /// states none of the figures.
    ///
    /// Whose object it is shows in the names of its members. Those of several are read: Chat
    /// Completions, Messages, Responses, Codex, inspect, pi, Gemini CLI, Kimi, Copilot,
    /// SWE-agent. O(size).
    pub fn of(usage: &Value) -> Option<Self> {
        reading::read(usage)
    }

    /// The same beside an answer that says something: what was answered was asked, so an input or an
    /// output of zero is a place that nobody filled. `None` where no figure is left.
    pub(crate) fn beside_answer(mut self) -> Option<Self> {
        self.input = self.input.filter(|input| *input > 0);
        self.output = self.output.filter(|output| *output > 0);
        let Self { input, cache_read, cache_write, output, reasoning, .. } = self;
        let figures = [input, cache_read, cache_write, output, reasoning];
        if figures.into_iter().flatten().all(|figure| figure == 0) {
            let cost = self.cost.filter(|cost| cost.pico() > 0);
            let (unreadable, terms, iterations) = (self.unreadable, self.terms, self.iterations);
            self = Self { cost, unreadable, terms, iterations, ..Self::default() };
        }
        (self != Self::default()).then_some(self)
    }

    /// Reads the wire form back. O(size).
    pub fn from_json(value: &Value) -> Self {
        let mut unreadable = UsageMembers::default();
        for name in value.get("unreadable").and_then(Value::as_array).into_iter().flatten() {
            let known = MEMBERS.iter().find(|(_, own)| name.as_str() == Some(own));
            known.into_iter().for_each(|(member, _)| unreadable.add(*member));
        }
        let terms = value.get("terms").and_then(Value::as_object).into_iter().flatten();
        let terms = terms.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)));
        let iterations = value.get("iterations").and_then(Value::as_array);
        let cost = value.get("cost").and_then(Money::from_json);
        let mut usage = Self {
            cost,
            unreadable,
            terms: terms.collect(),
            iterations: iterations.into_iter().flatten().map(Self::from_json).collect(),
            ..Self::default()
        };
        for (figure, (_, name)) in usage.figures_mut().into_iter().zip(MEMBERS) {
            *figure = value.get(name).and_then(Value::as_u64);
        }
        usage
    }

    /// The wire form: the members that are known. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        for (figure, (_, name)) in self.figures().into_iter().zip(MEMBERS) {
            object.put_some(name, figure);
        }
        object.put_some("cost", self.cost);
        if !self.unreadable.is_empty() {
            object.put("unreadable", self.unreadable.names().collect::<Value>());
        }
        if !self.terms.is_empty() {
            let terms = self.terms.iter().map(|(name, count)| (name.clone(), (*count).into()));
            object.put("terms", terms.collect::<Object>());
        }
        if !self.iterations.is_empty() {
            object.put("iterations", self.iterations.iter().map(Self::to_json).collect::<Value>());
        }
        object.into()
    }
}

crate::json::serialize_through_json!(Usage);

impl serde::Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::from(*self).serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Usage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::from_json(&value))
    }
}

impl<'de> serde::Deserialize<'de> for Money {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let money = Self::from_json(&Value::deserialize(deserializer)?);
        money.ok_or_else(|| serde::de::Error::custom("expected an amount of money"))
    }
}

impl Usage {
    /// Whether the input and the output are known, and every figure that is stated can be read.
    pub fn is_whole(&self) -> bool {
        self.input.is_some() && self.output.is_some() && self.unreadable.is_empty()
    }

    /// The figures of tokens, in the order of [`MEMBERS`].
    fn figures(&self) -> [Option<u64>; 7] {
        let Self { input, cache_read, cache_write, output, reasoning, .. } = *self;
        let (short, long) = (self.cache_write_5m, self.cache_write_1h);
        [input, cache_read, cache_write, short, long, output, reasoning]
    }

    fn figures_mut(&mut self) -> [&mut Option<u64>; 7] {
        [
            &mut self.input,
            &mut self.cache_read,
            &mut self.cache_write,
            &mut self.cache_write_5m,
            &mut self.cache_write_1h,
            &mut self.output,
            &mut self.reasoning,
        ]
    }

    /// The figures of tokens by their names on the wire.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        MEMBERS.into_iter().zip(self.figures()).map(|((_, name), figure)| (name, figure))
    }

    /// Adds the tokens of another exchange, as far as they are known; nothing else is added up. A sum
    /// that outgrows 64 bits stays at their largest number.
    pub fn add(&mut self, other: &Self) {
        for (sum, figure) in self.figures_mut().into_iter().zip(other.figures()) {
            *sum = match (*sum, figure) {
                (one, None) => one,
                (one, Some(figure)) => Some(one.unwrap_or(0).saturating_add(figure)),
            };
        }
    }

    /// Takes the figures of another one off, as far as there are so many. A cost stays.
    pub(crate) fn take_off(&mut self, other: &Self) {
        for (left, figure) in self.figures_mut().into_iter().zip(other.figures()) {
            *left = left.map(|left| left.saturating_sub(figure.unwrap_or(0)));
        }
    }

    /// What the model was run for, in order: the iterations, or else all of it.
    pub fn runs(&self) -> &[Self] {
        if self.iterations.is_empty() { std::slice::from_ref(self) } else { &self.iterations }
    }
}

#[cfg(test)]
mod tests;
