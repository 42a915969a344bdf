//! What a provider, or a client, reports of one exchange.

use super::{Currency, Money};
use crate::json::{Object, ObjectExt, Value};

/// The most tokens that are believed: a larger number is none that a double holds.
const MOST: u64 = 1 << 53;

/// The tokens, and the cost, that are reported for one exchange; `None` where nothing is.
///
/// The figures mean the same whoever reports them. Anthropic's and pi's `input` leaves out what the
/// cache served or took, and Gemini's `output` leaves out its thoughts: they are added up here.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens of the whole request, those that the cache served or took among them.
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
}

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
    #[cfg(feature = "prices")]
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
}

impl Usage {
    /// The usage that an object of one of the providers, or of a client, reports; `None` where it
    /// states none of the figures.
    ///
    /// Whose object it is shows in the names of its members. Those of several are read: Chat
    /// Completions, Messages, Responses, Codex, inspect, pi, Gemini CLI, Kimi, Copilot,
    /// SWE-agent.
    pub fn of(usage: &Value) -> Option<Self> {
        let has = |key: &str| usage.get(key).is_some_and(|value| !value.is_null());
        let any = |keys: &[&str]| keys.iter().any(|key| has(key));
        let mut read = Reading { from: usage, usage: Self::default() };
        if any(&["input_tokens_cache_read", "input_tokens_cache_write"]) {
            read.inspect();
        } else if any(&["cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"])
            && !has("prompt_tokens")
        {
            read.messages();
        } else if any(&[
            "prompt_tokens",
            "completion_tokens",
            "input_tokens",
            "output_tokens",
            "outputTokens",
            "tokens_sent",
            "tokens_received",
        ]) {
            read.openai();
        } else if any(&["inputOther", "inputCacheRead", "inputCacheCreation"]) {
            read.kimi();
        } else if any(&["cached", "thoughts", "tool"]) {
            read.gemini();
        } else {
            read.pi();
        }
        read.cost();
        read.settle();
        (read.usage != Self::default()).then_some(read.usage)
    }

    /// Reads the wire form back.
    pub fn from_json(value: &Value) -> Self {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let mut unreadable = UsageMembers::default();
        for name in value.get("unreadable").and_then(Value::as_array).into_iter().flatten() {
            let known = MEMBERS.iter().find(|(_, own)| name.as_str() == Some(own));
            known.into_iter().for_each(|(member, _)| unreadable.add(*member));
        }
        let cost = value.get("cost").and_then(|cost| {
            let currency = Currency::from_name(cost.get("currency")?.as_str()?)?;
            Money::from_decimal(cost.get("amount")?.as_str()?, currency)
        });
        Self {
            input: number("input"),
            cache_read: number("cacheRead"),
            cache_write: number("cacheWrite"),
            cache_write_5m: number("cacheWrite5m"),
            cache_write_1h: number("cacheWrite1h"),
            output: number("output"),
            reasoning: number("reasoning"),
            cost,
            unreadable,
        }
    }

    /// The wire form: the members that are known.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put_some("input", self.input);
        object.put_some("cacheRead", self.cache_read);
        object.put_some("cacheWrite", self.cache_write);
        object.put_some("cacheWrite5m", self.cache_write_5m);
        object.put_some("cacheWrite1h", self.cache_write_1h);
        object.put_some("output", self.output);
        object.put_some("reasoning", self.reasoning);
        object.put_some("cost", self.cost);
        if !self.unreadable.is_empty() {
            object.put("unreadable", self.unreadable.names().collect::<Value>());
        }
        object.into()
    }
}

/// An object that is read, and what was found in it.
struct Reading<'u> {
    from: &'u Value,
    usage: Usage,
}

impl Reading<'_> {
    /// The first number that is stated at one of these paths. One that cannot be read is told.
    fn number(&mut self, member: Member, paths: &[&str]) -> Option<u64> {
        let stated = paths.iter().find_map(|path| at(self.from, path))?;
        let number = stated.as_u64().filter(|number| *number <= MOST);
        if number.is_none() {
            self.usage.unreadable.add(member);
        }
        number
    }

    /// The sum of a figure and of those that it leaves out; missing where one cannot be read.
    fn sum(
        &mut self,
        member: Member,
        own: Option<u64>,
        beside: &[(Option<u64>, Member)],
    ) -> Option<u64> {
        let is_unreadable = |(_, of): &(_, Member)| self.usage.unreadable.has(*of);
        if own.is_some() && beside.iter().any(is_unreadable) {
            self.usage.unreadable.add(member);
            return None;
        }
        let parts = beside.iter().filter_map(|(part, _)| *part);
        own.map(|own| parts.fold(own, u64::saturating_add))
    }

    /// Takes what the cache served and took out of the input, where `input` leaves them out.
    fn input_apart(&mut self, paths: &[&str]) {
        let own = self.number(Member::Input, paths);
        let beside = [
            (self.usage.cache_read, Member::CacheRead),
            (self.usage.cache_write, Member::CacheWrite),
        ];
        self.usage.input = self.sum(Member::Input, own, &beside);
    }

    /// Anthropic's: the input leaves out what the cache served or took. What a compaction on the
    /// server cost is in none of the sums, but listed.
    fn messages(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["cache_read_input_tokens"]);
        self.usage.cache_write = self.number(Member::CacheWrite, &["cache_creation_input_tokens"]);
        self.usage.cache_write_5m =
            self.number(Member::CacheWrite5m, &["cache_creation/ephemeral_5m_input_tokens"]);
        self.usage.cache_write_1h =
            self.number(Member::CacheWrite1h, &["cache_creation/ephemeral_1h_input_tokens"]);
        self.sum_of_lives();
        self.input_apart(&["input_tokens"]);
        self.usage.output = self.number(Member::Output, &["output_tokens"]);
        self.usage.reasoning =
            self.number(Member::Reasoning, &["output_tokens_details/thinking_tokens"]);
        let iterations =
            self.from.get("iterations").and_then(Value::as_array).into_iter().flatten();
        let compactions =
            iterations.filter(|of| of.get("type").and_then(Value::as_str) == Some("compaction"));
        for compaction in compactions {
            let mut read = Reading { from: compaction, usage: Usage::default() };
            read.messages();
            self.usage = self.usage.plus(read.usage);
        }
    }

    /// OpenAI's, and everyone's who reports like them: the input holds what the cache served. The
    /// names of Anthropic's beside `prompt_tokens` are a translation, which holds them too.
    fn openai(&mut self) {
        self.usage.input =
            self.number(Member::Input, &["input_tokens", "prompt_tokens", "tokens_sent"]);
        self.usage.cache_read = self.number(
            Member::CacheRead,
            &[
                "cached_input_tokens",
                "input_tokens_details/cached_tokens",
                "prompt_tokens_details/cached_tokens",
                "cache_read_input_tokens",
                "prompt_cache_hit_tokens",
                "cached_tokens",
            ],
        );
        self.usage.cache_write = self.number(
            Member::CacheWrite,
            &[
                "cache_write_input_tokens",
                "input_tokens_details/cache_write_tokens",
                "prompt_tokens_details/cache_write_tokens",
                "cache_creation_input_tokens",
            ],
        );
        self.usage.cache_write_5m =
            self.number(Member::CacheWrite5m, &["cache_creation/ephemeral_5m_input_tokens"]);
        self.usage.cache_write_1h =
            self.number(Member::CacheWrite1h, &["cache_creation/ephemeral_1h_input_tokens"]);
        self.usage.output = self.number(
            Member::Output,
            &["output_tokens", "completion_tokens", "outputTokens", "tokens_received"],
        );
        self.usage.reasoning = self.number(
            Member::Reasoning,
            &[
                "reasoning_output_tokens",
                "output_tokens_details/reasoning_tokens",
                "output_tokens_details/thinking_tokens",
                "completion_tokens_details/reasoning_tokens",
                "reasoning_tokens",
            ],
        );
    }

    /// inspect's: whether the input holds what the cache served depends on the provider and on the
    /// version, and shows in the total.
    fn inspect(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["input_tokens_cache_read"]);
        self.usage.cache_write = self.number(Member::CacheWrite, &["input_tokens_cache_write"]);
        self.usage.output = self.number(Member::Output, &["output_tokens"]);
        self.usage.reasoning = self.number(Member::Reasoning, &["reasoning_tokens"]);
        let total = at(self.from, "total_tokens").and_then(Value::as_u64);
        let input = at(self.from, "input_tokens").and_then(Value::as_u64);
        let plain =
            input.zip(self.usage.output).map(|(input, output)| input.saturating_add(output));
        let cached = self.usage.cache_read.unwrap_or(0);
        let cached = cached.saturating_add(self.usage.cache_write.unwrap_or(0));
        let is_apart = |(total, plain): (u64, u64)| total >= plain.saturating_add(cached);
        if cached > 0 && total.zip(plain).is_some_and(is_apart) {
            self.input_apart(&["input_tokens"]);
        } else {
            self.usage.input = self.number(Member::Input, &["input_tokens"]);
        }
    }

    /// Kimi's: the input in three parts.
    fn kimi(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["inputCacheRead"]);
        self.usage.cache_write = self.number(Member::CacheWrite, &["inputCacheCreation"]);
        self.input_apart(&["inputOther"]);
        self.usage.output = self.number(Member::Output, &["output"]);
    }

    /// Those of Gemini CLI: the output leaves out the thoughts, the input what tools said to the
    /// model within the answer.
    fn gemini(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["cached"]);
        self.usage.reasoning = self.number(Member::Reasoning, &["thoughts"]);
        let input = self.number(Member::Input, &["input"]);
        let tool = self.number(Member::Input, &["tool"]);
        self.usage.input = self.sum(Member::Input, input, &[(tool, Member::Input)]);
        let output = self.number(Member::Output, &["output"]);
        let beside = [(self.usage.reasoning, Member::Reasoning)];
        self.usage.output = self.sum(Member::Output, output, &beside);
    }

    /// pi's: the input leaves out what the cache served or took.
    fn pi(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["cacheRead"]);
        self.usage.cache_write = self.number(Member::CacheWrite, &["cacheWrite"]);
        self.usage.cache_write_1h = self.number(Member::CacheWrite1h, &["cacheWrite1h"]);
        self.sum_of_lives();
        self.input_apart(&["input"]);
        self.usage.output = self.number(Member::Output, &["output"]);
        self.usage.reasoning = self.number(Member::Reasoning, &["reasoning"]);
    }

    /// What it cost: `cost` as a number, or its `total`, in dollars where no currency is named.
    fn cost(&mut self) {
        let paths = ["cost/total", "cost/amount", "cost", "instance_cost"];
        let Some(stated) = paths.iter().find_map(|path| at(self.from, path)) else { return };
        let named = ["currency", "cost/currency"].iter().find_map(|path| at(self.from, path));
        let currency = match named {
            Some(name) => name.as_str().and_then(Currency::from_name),
            None => Some(Currency::USD),
        };
        self.usage.cost = match stated {
            Value::Number(number) => {
                currency.and_then(|currency| Money::from_decimal(&number.to_string(), currency))
            }
            _ => None,
        };
        if self.usage.cost.is_none() {
            self.usage.unreadable.add(Member::Cost);
        }
    }

    /// What was written, where an answer says only for how long: the sum is missing in some, and its
    /// parts are not.
    fn sum_of_lives(&mut self) {
        let Usage { cache_write, cache_write_5m, cache_write_1h, unreadable, .. } = self.usage;
        let has_lives = cache_write_5m.is_some() || cache_write_1h.is_some();
        if cache_write.is_none() && has_lives && !unreadable.has(Member::CacheWrite) {
            let lives = cache_write_5m.unwrap_or(0).saturating_add(cache_write_1h.unwrap_or(0));
            self.usage.cache_write = Some(lives);
        }
    }

    /// A part that is larger than its whole is none of it.
    fn settle(&mut self) {
        let Usage { input, cache_read, cache_write, output, reasoning, .. } = self.usage;
        let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        if input.is_some_and(|input| cached > input) {
            for (member, part) in [
                (Member::CacheRead, &mut self.usage.cache_read),
                (Member::CacheWrite, &mut self.usage.cache_write),
            ] {
                if part.take().is_some() {
                    self.usage.unreadable.add(member);
                }
            }
        }
        if output.zip(reasoning).is_some_and(|(output, reasoning)| reasoning > output) {
            self.usage.reasoning = None;
            self.usage.unreadable.add(Member::Reasoning);
        }
        let Usage { cache_write_5m, cache_write_1h, .. } = self.usage;
        let lives = cache_write_5m.unwrap_or(0).saturating_add(cache_write_1h.unwrap_or(0));
        let has_lives = cache_write_5m.is_some() || cache_write_1h.is_some();
        if has_lives && self.usage.cache_write.is_none_or(|written| lives > written) {
            for (member, part) in [
                (Member::CacheWrite5m, &mut self.usage.cache_write_5m),
                (Member::CacheWrite1h, &mut self.usage.cache_write_1h),
            ] {
                if part.take().is_some() {
                    self.usage.unreadable.add(member);
                }
            }
        }
    }
}

impl Usage {
    /// The figures of two together; a cost is not added up.
    fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            cache_write_5m: sum(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: sum(self.cache_write_1h, other.cache_write_1h),
            output: sum(self.output, other.output),
            reasoning: sum(self.reasoning, other.reasoning),
            cost: self.cost,
            unreadable: UsageMembers(self.unreadable.0 | other.unreadable.0),
        }
    }
}

/// What stands at a path of names, apart by `/`; `None` where it is null, too.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('/').try_fold(value, |value, name| value.get(name))?;
    (!found.is_null()).then_some(found)
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
