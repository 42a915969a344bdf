use crate::compress::CompressionOptions;

/// What a turn adds to a context, more or less.
const ANOTHER_TURN: u64 = 2_400;

/// What a context may cost, in tokens: by the exact count of its messages with what the provider
/// adds around them. An export holds names and ids of tools besides, and signatures: leave room for
/// them where a context goes out as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "BudgetFields", rename_all = "camelCase")]
pub struct Budget {
    /// The most tokens that the model takes, its answer included.
    pub max_tokens: u64,
    /// What is left for the answer.
    pub reserve_for_output: u64,
    /// A context of more tokens is compressed.
    pub high: u64,
    /// How far a compression plans to go; it ends where half the way from the high mark is done.
    pub low: u64,
    /// The newest frames are compressed last, where they have no more tokens than this.
    pub recent: u64,
    /// A result of a tool of more tokens is shortened in its middle when it first comes.
    pub largest_result: u64,
}

/// What a budget is read from: the marks that are absent follow from the tokens.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BudgetFields {
    max_tokens: u64,
    #[serde(default)]
    reserve_for_output: u64,
    high: Option<u64>,
    low: Option<u64>,
    recent: Option<u64>,
    largest_result: Option<u64>,
}

impl From<BudgetFields> for Budget {
    fn from(fields: BudgetFields) -> Self {
        let budget = Self::with_reserve(fields.max_tokens, fields.reserve_for_output);
        Self {
            high: fields.high.unwrap_or(budget.high),
            low: fields.low.unwrap_or(budget.low),
            recent: fields.recent.unwrap_or(budget.recent),
            largest_result: fields.largest_result.unwrap_or(budget.largest_result),
            ..budget
        }
    }
}

impl Budget {
    /// A budget of so many tokens with nothing reserved, with the marks that served best over
    /// recorded sessions (`docs/compression.md`): a context is compressed when there is no room
    /// for another turn, and then as far as it goes. Seldom and in large steps is what a
    /// provider's cache likes best.
    pub const fn new(max_tokens: u64) -> Self {
        Self::with_reserve(max_tokens, 0)
    }

    /// As [`Budget::new`], with so many of the tokens left for the answer.
    pub const fn with_reserve(max_tokens: u64, reserve_for_output: u64) -> Self {
        let room = max_tokens.saturating_sub(reserve_for_output);
        let share = room / 10 * 3;
        Self {
            max_tokens,
            reserve_for_output,
            high: room - if share < ANOTHER_TURN { share } else { ANOTHER_TURN },
            low: room / 20 * 3,
            recent: room / 16,
            largest_result: room / 16,
        }
    }

    /// A budget for one context, after which none comes: it is filled, since there is no cache to
    /// keep and no next turn to leave room for.
    pub const fn once(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            reserve_for_output: 0,
            high: max_tokens,
            low: max_tokens / 10 * 9,
            recent: max_tokens / 2,
            largest_result: max_tokens,
        }
    }

    /// The tokens that a context may have.
    pub fn room(&self) -> u64 {
        self.max_tokens.saturating_sub(self.reserve_for_output)
    }

    /// How to compress for this budget: ranges as large as they come, since an engine that sees
    /// more at once knows better what to keep, and blocks of blocks for as long as a session goes.
    pub fn compression(&self) -> CompressionOptions {
        CompressionOptions {
            trigger_tokens: (self.room() / 16).clamp(100, 500),
            max_range_tokens: self.room().max(2_000),
            ratio: 8,
            max_block_tokens: self.room() / 6,
            max_level: 16,
            ..CompressionOptions::default()
        }
    }

    /// Above how many tokens a context is compressed: the high mark, and no more than the room.
    pub(super) fn trigger(&self) -> u64 {
        self.high.min(self.room())
    }

    /// Down to how many tokens it is compressed.
    pub(super) fn target(&self) -> u64 {
        self.low.min(self.trigger())
    }
}
