use std::ops::AddAssign;

use super::{ReplayRates, asked::Spent, survival::Survival};
use crate::json::{Number, Object, ObjectExt, Value};

crate::json::serialize_through_json!(ReplayFigures);

/// What a replay came to. Figures of several add up.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayFigures {
    /// The turns of the agent.
    pub turns: u64,
    /// The tokens of all requests, by the exact count of their messages with the provider's
    /// framing.
    pub tokens_sent: u64,
    /// Those of them that were an unchanged prefix of the request before.
    pub tokens_cached: u64,
    /// The tokens of the images and documents of all requests, by the rules of their providers.
    /// They are in no other figure of tokens, and take room in the budget.
    pub media_tokens: u64,
    /// The tokens of what the agent said, which every policy pays for.
    pub tokens_answered: u64,
    /// How often summaries took effect.
    pub compressions: u64,
    /// How often a model was asked for a summary; see [`SummaryCalls`](super::SummaryCalls).
    pub summary_calls: u64,
    /// What it was asked, in tokens.
    pub summary_input: u64,
    /// What of that the cache had.
    pub summary_cached: u64,
    /// What it answered, in tokens.
    pub summary_output: u64,
    /// The tokens of the requests before which the whole history no longer fitted.
    pub full_sent: u64,
    /// The room that those requests had.
    pub full_room: u64,
    /// The requests of more tokens than the budget.
    pub over_budget: u64,
    /// The turns for which no request could be made, since what must stay does not fit. They are
    /// in no other figure but `turns`.
    pub unfit: u64,
    /// Calls without their result, and results without their call, where the history has both.
    pub orphans: u64,
    /// Names that the agent used in a turn and that stand in frames which the request did not
    /// hold; each once a turn.
    pub identifiers_needed: u64,
    /// Those of them that stood in the request all the same.
    pub identifiers_kept: u64,
    /// What requests still said of what the session had said, where that was asked for
    /// ([`Replay::measure_survival`](super::Replay::measure_survival)).
    pub survival: Survival,
}

impl ReplayFigures {
    /// The share of the tokens that were an unchanged prefix; zero where nothing was sent.
    pub fn cached_ratio(&self) -> f64 {
        share(self.tokens_cached, self.tokens_sent).unwrap_or(0.0)
    }

    /// How much of the room the requests used once the whole history no longer fitted; `None` where
    /// it always did.
    pub fn room_used(&self) -> Option<f64> {
        share(self.full_sent, self.full_room)
    }

    /// [`ReplayFigures::billed_at`] the prices of Anthropic.
    pub fn billed_tokens(&self) -> u64 {
        self.billed_at(ReplayRates::ANTHROPIC)
    }

    /// What the requests and the summaries cost, in tokens of input that no cache has anything to do
    /// with; rounded up. What is not read from the cache is written to it, but for what a model was
    /// asked besides for summaries. What the agent answered is not in it: it is the same whatever the
    /// policy.
    pub fn billed_at(&self, rates: ReplayRates) -> u64 {
        let of = |tokens: u64, rate: u64| u128::from(tokens) * u128::from(rate);
        let written = self.tokens_sent.saturating_sub(self.tokens_cached);
        let asked = self.summary_input.saturating_sub(self.summary_cached);
        let cost = of(written, rates.write)
            + of(self.tokens_cached.saturating_add(self.summary_cached), rates.read)
            + of(asked, 1000)
            + of(self.summary_output, rates.output);
        u64::try_from(cost.div_ceil(1000)).unwrap_or(u64::MAX)
    }

    pub(super) fn add_spent(&mut self, spent: Spent) {
        self.summary_calls += spent.calls;
        self.summary_input += spent.input;
        self.summary_cached += spent.cached;
        self.summary_output += spent.output;
    }

    /// The figures under their wire names. O(size).
    pub fn to_json(&self) -> Value {
        let number = |number: f64| Number::from_f64(number).map(Value::Number);
        let mut object = Object::new();
        object.put("turns", self.turns);
        object.put("tokensSent", self.tokens_sent);
        object.put("tokensCached", self.tokens_cached);
        object.put_some("cachedRatio", number(self.cached_ratio()));
        object.put("tokensAnswered", self.tokens_answered);
        object.put("billedTokens", self.billed_tokens());
        object.put("mediaTokens", self.media_tokens);
        object.put("compressions", self.compressions);
        object.put("summaryCalls", self.summary_calls);
        object.put("summaryInput", self.summary_input);
        object.put("summaryCached", self.summary_cached);
        object.put("summaryOutput", self.summary_output);
        object.put_some("roomUsed", self.room_used().and_then(number));
        object.put("overBudget", self.over_budget);
        object.put("unfit", self.unfit);
        object.put("orphans", self.orphans);
        object.put("identifiersNeeded", self.identifiers_needed);
        object.put("identifiersKept", self.identifiers_kept);
        if self.survival.texts > 0 {
            object.put("survival", self.survival.to_json());
        }
        object.into()
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl AddAssign for ReplayFigures {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.tokens_sent += other.tokens_sent;
        self.tokens_cached += other.tokens_cached;
        self.media_tokens += other.media_tokens;
        self.tokens_answered += other.tokens_answered;
        self.compressions += other.compressions;
        self.summary_calls += other.summary_calls;
        self.summary_input += other.summary_input;
        self.summary_cached += other.summary_cached;
        self.summary_output += other.summary_output;
        self.full_sent += other.full_sent;
        self.full_room += other.full_room;
        self.over_budget += other.over_budget;
        self.unfit += other.unfit;
        self.orphans += other.orphans;
        self.identifiers_needed += other.identifiers_needed;
        self.identifiers_kept += other.identifiers_kept;
        self.survival += other.survival;
    }
}
