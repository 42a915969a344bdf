use std::ops::AddAssign;

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
    /// How often blocks took effect.
    pub compressions: u64,
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
}

impl ReplayFigures {
    /// The share of the tokens that were an unchanged prefix; zero where nothing was sent.
    pub fn cached_ratio(&self) -> f64 {
        if self.tokens_sent == 0 {
            return 0.0;
        }
        self.tokens_cached as f64 / self.tokens_sent as f64
    }

    /// The tokens that are paid for where one from the cache costs a tenth; rounded up.
    pub fn billed_tokens(&self) -> u64 {
        self.tokens_sent.saturating_sub(self.tokens_cached) + self.tokens_cached.div_ceil(10)
    }

    /// The figures under their wire names.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("turns", self.turns);
        object.put("tokensSent", self.tokens_sent);
        object.put("tokensCached", self.tokens_cached);
        object.put_some("cachedRatio", Number::from_f64(self.cached_ratio()).map(Value::Number));
        object.put("billedTokens", self.billed_tokens());
        object.put("compressions", self.compressions);
        object.put("overBudget", self.over_budget);
        object.put("unfit", self.unfit);
        object.put("orphans", self.orphans);
        object.put("identifiersNeeded", self.identifiers_needed);
        object.put("identifiersKept", self.identifiers_kept);
        object.into()
    }
}

impl AddAssign for ReplayFigures {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.tokens_sent += other.tokens_sent;
        self.tokens_cached += other.tokens_cached;
        self.compressions += other.compressions;
        self.over_budget += other.over_budget;
        self.unfit += other.unfit;
        self.orphans += other.orphans;
        self.identifiers_needed += other.identifiers_needed;
        self.identifiers_kept += other.identifiers_kept;
    }
}
