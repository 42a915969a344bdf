//! How each source words what it reports of an exchange.

use super::{Currency, MEMBERS, Member, Money, Usage, WEB_SEARCH};
use crate::json::Value;

/// The most tokens that are believed: a larger number is none that a double holds.
const MOST: u64 = 1 << 53;

/// Where Continue states what was written to the cache: Anthropic alone says it, whose input leaves out
/// what the cache served or took.
const OF_ANTHROPIC: &str = "promptTokensDetails/cacheWriteTokens";

/// The usage that an object reports; `None` where it states none of the figures.
pub(super) fn read(usage: &Value) -> Option<Usage> {
    let has = |key: &str| usage.get(key).is_some_and(|value| !value.is_null());
    let any = |keys: &[&str]| keys.iter().any(|key| has(key));
    let mut read = Reading { from: usage, usage: Usage::default() };
    if any(&["input_tokens_cache_read", "input_tokens_cache_write"]) {
        read.inspect();
    } else if any(&[
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "iterations",
        "cacheReadInputTokens",
        "cacheWriteInputTokens",
    ]) && !has("prompt_tokens")
    {
        read.messages();
    } else if any(&[
        "prompt_tokens",
        "completion_tokens",
        "input_tokens",
        "output_tokens",
        "inputTokens",
        "outputTokens",
        "promptTokens",
        "completionTokens",
        "tokens_sent",
        "tokens_received",
    ]) {
        read.openai();
    } else if any(&["promptTokenCount", "candidatesTokenCount", "totalTokenCount"]) {
        read.google();
    } else if any(&["prompt_eval_count", "eval_count"]) {
        read.usage.input = read.number(Member::Input, &["prompt_eval_count"]);
        read.usage.output = read.number(Member::Output, &["eval_count"]);
    } else if any(&["inputOther", "inputCacheRead", "inputCacheCreation"]) {
        read.kimi();
    } else if any(&["cached", "thoughts", "tool"]) {
        read.gemini();
    } else {
        read.pi();
    }
    read.cost();
    read.terms();
    read.settle();
    (read.usage != Usage::default()).then_some(read.usage)
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
        let number = whole(stated).filter(|number| *number <= MOST);
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
        self.usage.cache_read =
            self.number(Member::CacheRead, &["cache_read_input_tokens", "cacheReadInputTokens"]);
        self.usage.cache_write = self
            .number(Member::CacheWrite, &["cache_creation_input_tokens", "cacheWriteInputTokens"]);
        self.usage.cache_write_5m =
            self.number(Member::CacheWrite5m, &["cache_creation/ephemeral_5m_input_tokens"]);
        self.usage.cache_write_1h =
            self.number(Member::CacheWrite1h, &["cache_creation/ephemeral_1h_input_tokens"]);
        self.sum_of_lives();
        self.input_apart(&["input_tokens", "inputTokens"]);
        self.usage.output = self.number(Member::Output, &["output_tokens", "outputTokens"]);
        self.usage.reasoning =
            self.number(Member::Reasoning, &["output_tokens_details/thinking_tokens"]);
        self.iterations();
    }

    /// Where the request was compacted first: each run by itself, and their sums.
    fn iterations(&mut self) {
        let listed = self.from.get("iterations").and_then(Value::as_array).into_iter().flatten();
        let of_type = |of: &&Value, kind: &str| of.str_at("type") == Some(kind);
        let read = |from: &Value| {
            let mut read = Reading { from, usage: Usage::default() };
            read.messages();
            read.settle();
            read.usage
        };
        let mut runs = Vec::new();
        let mut messages = Vec::new();
        for of in listed {
            if of_type(&of, "compaction") {
                runs.push(read(of));
            } else if of_type(&of, "message") {
                messages.push((runs.len(), read(of)));
            }
        }
        if runs.is_empty() {
            return;
        }
        self.settle();
        let own = std::mem::take(&mut self.usage);
        let sum = messages.iter().fold(None, |sum: Option<Usage>, (_, of)| {
            Some(sum.map_or_else(|| of.clone(), |sum| sum.plus(of)))
        });
        let figures = |of: &Usage| (of.input, of.cache_read, of.cache_write, of.output);
        match sum {
            // The sums of the messages are stated, and so may each be.
            Some(sum) if messages.len() > 1 && figures(&sum) == figures(&own) => {
                for (before, message) in messages.into_iter().rev() {
                    runs.insert(before, message);
                }
            }
            _ => {
                let at = messages.last().map_or(runs.len(), |(before, _)| *before);
                runs.insert(at, own);
            }
        }
        let sum =
            runs.iter().skip(1).fold(runs.first().cloned(), |sum, of| sum.map(|sum| sum.plus(of)));
        self.usage = Usage { iterations: runs, ..sum.unwrap_or_default() };
    }

    /// OpenAI's, and everyone's who reports like them: the input holds what the cache served. The
    /// names of Anthropic's beside `prompt_tokens` are a translation, which holds them too. Proxies
    /// that state the names of both APIs leave those of Responses at zero in a chat.
    fn openai(&mut self) {
        self.usage.input = self.number(
            Member::Input,
            &["prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "tokens_sent"],
        );
        self.usage.cache_read = self.number(
            Member::CacheRead,
            &[
                "cached_input_tokens",
                "cachedInputTokens",
                "cacheReadTokens",
                "input_tokens_details/cached_tokens",
                "prompt_tokens_details/cached_tokens",
                "promptTokensDetails/cachedTokens",
                "cache_read_input_tokens",
                "prompt_cache_hit_tokens",
                "cached_tokens",
            ],
        );
        self.usage.cache_write = self.number(
            Member::CacheWrite,
            &[
                "cache_write_input_tokens",
                "cacheWriteTokens",
                "input_tokens_details/cache_write_tokens",
                "prompt_tokens_details/cache_write_tokens",
                OF_ANTHROPIC,
                "cache_creation_input_tokens",
            ],
        );
        self.usage.cache_write_5m =
            self.number(Member::CacheWrite5m, &["cache_creation/ephemeral_5m_input_tokens"]);
        self.usage.cache_write_1h =
            self.number(Member::CacheWrite1h, &["cache_creation/ephemeral_1h_input_tokens"]);
        self.usage.output = self.number(
            Member::Output,
            &[
                "completion_tokens",
                "output_tokens",
                "outputTokens",
                "completionTokens",
                "tokens_received",
            ],
        );
        self.usage.reasoning = self.number(
            Member::Reasoning,
            &[
                "reasoning_output_tokens",
                "output_tokens_details/reasoning_tokens",
                "output_tokens_details/thinking_tokens",
                "completion_tokens_details/reasoning_tokens",
                "completionTokensDetails/reasoningTokens",
                "reasoning_tokens",
                "reasoningTokens",
            ],
        );
        if at(self.from, OF_ANTHROPIC).is_some() {
            self.input_apart(&["promptTokens"]);
        }
        self.reasoning_apart(self.usage.input, &["total_tokens", "totalTokens"]);
    }

    /// Adds the reasoning to the output where the stated total holds it besides: what there is beside
    /// the output is `input`. Says whether it does.
    fn reasoning_apart(&mut self, input: Option<u64>, total: &[&str]) -> bool {
        let total = total.iter().find_map(|path| at(self.from, path)).and_then(whole);
        let Usage { output, reasoning, .. } = self.usage;
        let sum = |input: u64, output: u64, more: u64| input.checked_add(output)?.checked_add(more);
        let (Some(input), Some(output), Some(reasoning)) = (input, output, reasoning) else {
            return false;
        };
        let is_apart = reasoning > 0 && total.is_some() && total == sum(input, output, reasoning);
        if is_apart {
            self.usage.output = output.checked_add(reasoning);
        }
        is_apart
    }

    /// Those of Google's API. The thoughts are apart from the candidates, unless the total says that
    /// the candidates hold them; what tools said to the model is apart from the prompt.
    fn google(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["cachedContentTokenCount"]);
        self.usage.reasoning = self.number(Member::Reasoning, &["thoughtsTokenCount"]);
        let input = self.number(Member::Input, &["promptTokenCount"]);
        let tool = self.number(Member::Input, &["toolUsePromptTokenCount"]);
        self.usage.input = self.sum(Member::Input, input, &[(tool, Member::Input)]);
        self.usage.output = self.number(Member::Output, &["candidatesTokenCount"]);
        self.thoughts("totalTokenCount");
    }

    /// Adds the thoughts to the output, unless the total says that it holds them.
    fn thoughts(&mut self, total: &str) {
        let total = at(self.from, total).and_then(whole);
        let Usage { input, output, reasoning, .. } = self.usage;
        // An answer of thoughts alone states no other output.
        let output = output.or(reasoning.filter(|_| input.is_some()).map(|_| 0));
        let holds = input.zip(output).and_then(|(input, output)| input.checked_add(output));
        if total.is_none() || holds != total {
            let beside = [(reasoning, Member::Reasoning)];
            self.usage.output = self.sum(Member::Output, output, &beside);
        }
    }

    /// inspect's: whether the input holds what the cache served depends on the provider and on the
    /// version, and shows in the total.
    fn inspect(&mut self) {
        self.usage.cache_read = self.number(Member::CacheRead, &["input_tokens_cache_read"]);
        self.usage.cache_write = self.number(Member::CacheWrite, &["input_tokens_cache_write"]);
        self.usage.output = self.number(Member::Output, &["output_tokens"]);
        self.usage.reasoning = self.number(Member::Reasoning, &["reasoning_tokens"]);
        let total = at(self.from, "total_tokens").and_then(whole);
        let input = at(self.from, "input_tokens").and_then(whole);
        let plain =
            input.zip(self.usage.output).map(|(input, output)| input.saturating_add(output));
        let cached = self.usage.cache_read.unwrap_or(0);
        let cached = cached.saturating_add(self.usage.cache_write.unwrap_or(0));
        let is_apart = |(total, plain): (u64, u64)| total >= plain.saturating_add(cached);
        let lost = [Member::CacheRead, Member::CacheWrite];
        let is_lost = lost.into_iter().any(|of| self.usage.unreadable.has(of));
        // The total may hold the reasoning besides the output, too.
        let apart = input.and_then(|input| input.checked_add(cached));
        let apart = apart.filter(|_| cached > 0);
        if self.reasoning_apart(input, &["total_tokens"]) {
            self.usage.input = self.number(Member::Input, &["input_tokens"]);
            return;
        } else if self.reasoning_apart(apart, &["total_tokens"]) {
            return self.input_apart(&["input_tokens"]);
        }
        // What the input leaves out cannot be read.
        let is_missing = is_lost && total.zip(plain).is_some_and(|(total, plain)| total != plain);
        if is_missing || cached > 0 && total.zip(plain).is_some_and(is_apart) {
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
        self.usage.output = self.number(Member::Output, &["output"]);
        self.thoughts("total");
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
        self.reasoning_apart(self.usage.input, &["totalTokens"]);
    }

    /// What it is billed by besides its tokens: a mode, a place, a tier that is not the usual one, and
    /// what the provider's own tools did.
    fn terms(&mut self) {
        const FREE: [&str; 2] = ["web_search_requests", "web_fetch_requests"];
        const USUAL: [&str; 8] =
            ["", "standard", "default", "auto", "on_demand", "global", "not_available", "normal"];
        for (name, path) in [
            ("speed", "speed"),
            ("inference_geo", "inference_geo"),
            ("service_tier", "service_tier"),
            ("service_tier", "trafficType"),
        ] {
            let stated = at(self.from, path).and_then(Value::as_str).map(str::to_ascii_lowercase);
            if let Some(own) = stated.filter(|own| !USUAL.contains(&own.as_str())) {
                self.usage.terms.insert(format!("{name}={own}"), 1);
            }
        }
        // As we write them ourselves.
        let own = at(self.from, "terms").and_then(Value::as_object).into_iter().flatten();
        let own = own.filter_map(|(name, count)| Some((name.clone(), whole(count)?)));
        self.usage.terms.extend(own);
        let tools = at(self.from, "server_tool_use").and_then(Value::as_object);
        // What fetched a page costs nothing; what else the provider's own tools did may.
        let tools = tools.into_iter().flatten().filter(|(name, _)| !FREE.contains(&name.as_str()));
        let tools = tools.filter_map(|(name, count)| Some((name.clone(), whole(count)?)));
        self.usage.terms.extend(tools.filter(|(_, count)| *count > 0));
        for (name, paths) in [
            (WEB_SEARCH, ["server_tool_use/web_search_requests", "web_search_requests"]),
            ("search_sources", ["num_sources_used", "num_search_queries"]),
            (
                "audio_tokens",
                ["prompt_tokens_details/audio_tokens", "input_tokens_details/audio_tokens"],
            ),
            (
                "audio_tokens",
                ["completion_tokens_details/audio_tokens", "output_tokens_details/audio_tokens"],
            ),
        ] {
            let count = paths.iter().find_map(|path| whole(at(self.from, path)?));
            if let Some(count) = count.filter(|count| (1..=MOST).contains(count)) {
                let sum = self.usage.terms.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    /// What it cost: `cost` as a number, or its `total`, in dollars where no currency is named; xAI
    /// states 10^-10 dollars.
    fn cost(&mut self) {
        let ticks = at(self.from, "cost_in_usd_ticks").and_then(whole);
        if let Some(ticks) = ticks.filter(|ticks| *ticks <= MOST) {
            self.usage.cost = Some(Money::from_pico(u128::from(ticks) * 100, Currency::USD));
            return;
        }
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
        let lives = [Member::CacheWrite5m, Member::CacheWrite1h];
        if cache_write.is_some() || unreadable.has(Member::CacheWrite) {
            return;
        }
        if lives.into_iter().any(|of| unreadable.has(of)) {
            self.usage.unreadable.add(Member::CacheWrite);
        } else if has_lives {
            let lives = cache_write_5m.unwrap_or(0).saturating_add(cache_write_1h.unwrap_or(0));
            self.usage.cache_write = Some(lives);
        }
    }

    /// A part that is larger than its whole is none of it, and what is answered was asked: where
    /// there is an output, an input of zero is a place that nobody filled.
    fn settle(&mut self) {
        if self.usage.input == Some(0) && self.usage.output.is_some_and(|output| output > 0) {
            self.usage.input = None;
        }
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
    /// The figures of two together; a cost is not added up. A sum is unreadable where one of its
    /// terms is, and so is that of a whole (input, output) which only one of both states.
    fn plus(mut self, other: &Self) -> Self {
        let mut unreadable = self.unreadable.or(other.unreadable);
        let mut sum = |member: Member, one: Option<u64>, other: Option<u64>| {
            let is_whole = matches!(member, Member::Input | Member::Output);
            if is_whole && one.is_some() != other.is_some() {
                unreadable.add(member);
            }
            match (one, other) {
                _ if unreadable.has(member) => None,
                (None, None) => None,
                (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
            }
        };
        let figures = self.figures_mut().into_iter().zip(other.figures());
        for ((figure, more), (member, _)) in figures.zip(MEMBERS) {
            *figure = sum(member, *figure, more);
        }
        Self { unreadable, iterations: Vec::new(), ..self }
    }
}

/// A number without a fraction, also one that is written with a point: `100.0`.
#[expect(clippy::cast_sign_loss, reason = "what is below zero is none")]
fn whole(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else { return None };
    let float = number.as_f64();
    let is_whole = float.fract() == 0.0 && (0.0..=MOST as f64).contains(&float);
    value.as_u64().or_else(|| is_whole.then_some(float as u64))
}

/// What stands at a path of names, apart by `/`; `None` where it is null, too.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('/').try_fold(value, |value, name| value.get(name))?;
    (!found.is_null()).then_some(found)
}
