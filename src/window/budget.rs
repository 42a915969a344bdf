use crate::compress::CompressionOptions;

/// What a turn adds to a context, more or less.
const ANOTHER_TURN: u64 = 1_000;

/// The tokens in which rules, errors, steps and files mostly have a line each.
const LEAST_LEDGER: u64 = 667;

/// A context of fewer tokens is not made smaller for the cache's sake.
const LEAST_LOW: u64 = 1_500;

/// The tokens of a short file.
const SHORT_RESULT: u64 = 500;

/// What a context may cost, in tokens: by the exact count of its messages with what the provider
/// adds around them. A request holds definitions of tools besides: [`Budget::taking`] leaves room
/// for them. An export holds names and ids of calls, and signatures: leave room for them where a
/// context goes out as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "BudgetFields", rename_all = "camelCase")]
pub struct Budget {
    /// The most tokens that the model takes, its answer included.
    pub max_tokens: u64,
    /// What is left for the answer.
    pub reserve_for_output: u64,
    /// What a request adds to its messages: definitions of tools, schemas of structured output.
    #[serde(skip_serializing_if = "is_zero")]
    pub tools: u64,
    /// A context of more tokens is compressed.
    pub high: u64,
    /// How far a compression plans to go; it ends where half the way from the high mark is done.
    pub low: u64,
    /// The newest frames are compressed last, where they have no more tokens than this.
    pub recent: u64,
    /// A tool's result of more than one and a half times this is shortened to this in its middle when
    /// it first comes, once all that was said has more than half of `high`. Before, there is no need.
    pub largest_result: u64,
    /// The user's first message stands whole where it has no more tokens than this, else its head,
    /// its rules and its end.
    pub first_words: u64,
    /// The same for the user's last instruction.
    pub last_words: u64,
    /// The most tokens of the ledger behind the last block: where things stand. Names of what the
    /// first context leaves out come besides, where there is room. Without any tokens there is no
    /// ledger, and each block says how things stood.
    pub ledger: u64,
}

/// What a budget is read from: the marks that are absent follow from the tokens.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BudgetFields {
    max_tokens: u64,
    #[serde(default)]
    reserve_for_output: u64,
    #[serde(default)]
    tools: u64,
    high: Option<u64>,
    low: Option<u64>,
    recent: Option<u64>,
    largest_result: Option<u64>,
    first_words: Option<u64>,
    last_words: Option<u64>,
    ledger: Option<u64>,
}

impl From<BudgetFields> for Budget {
    fn from(fields: BudgetFields) -> Self {
        let budget = Self::with_reserve(fields.max_tokens, fields.reserve_for_output);
        let budget = budget.taking(fields.tools);
        Self {
            high: fields.high.unwrap_or(budget.high),
            low: fields.low.unwrap_or(budget.low),
            recent: fields.recent.unwrap_or(budget.recent),
            largest_result: fields.largest_result.unwrap_or(budget.largest_result),
            first_words: fields.first_words.unwrap_or(budget.first_words),
            last_words: fields.last_words.unwrap_or(budget.last_words),
            ledger: fields.ledger.unwrap_or(budget.ledger),
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
        let share = room / 25 * 2;
        Self {
            max_tokens,
            reserve_for_output,
            tools: 0,
            high: room - if share < ANOTHER_TURN { share } else { ANOTHER_TURN },
            low: low_of(room),
            recent: room / 32,
            largest_result: largest_result_of(room),
            first_words: room / 4,
            last_words: room / 8,
            ledger: ledger_of(room),
        }
    }

    /// A budget for one context, after which none comes: it is filled, since there is no cache to
    /// keep and no next turn to leave room for.
    pub const fn once(max_tokens: u64) -> Self {
        Self {
            max_tokens,
            reserve_for_output: 0,
            tools: 0,
            high: max_tokens,
            low: max_tokens - max_tokens / 50,
            recent: max_tokens / 2,
            largest_result: max_tokens,
            first_words: max_tokens / 4,
            last_words: max_tokens / 8,
            ledger: max_tokens / 4,
        }
    }

    /// Takes these tokens off the room of contexts, and a part of each mark with them: what a
    /// request adds to its messages. A `RequestOverhead` of the module `request` counts the
    /// definitions of tools and the schemas of a request.
    ///
    /// Without room for anything else a [`ContextWindow`](super::ContextWindow) answers
    /// [`ErrorKind::OverBudget`](crate::ErrorKind::OverBudget).
    ///
    /// ```
    /// use afterimage::window::Budget;
    ///
    /// let budget = Budget::new(8_000).taking(3_000);
    /// assert_eq!((budget.max_tokens, budget.tools, budget.room()), (8_000, 3_000, 5_000));
    /// assert_eq!(budget.high, Budget::new(5_000).high);
    /// ```
    #[must_use]
    pub fn taking(self, tokens: u64) -> Self {
        let before = self.room();
        let budget = Self { tools: self.tools.saturating_add(tokens), ..self };
        let after = budget.room();
        let share = |mark: u64| {
            let share = u128::from(mark) * u128::from(after) / u128::from(before.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        Self {
            high: share(budget.high),
            low: share(budget.low),
            recent: share(budget.recent),
            largest_result: share(budget.largest_result),
            first_words: share(budget.first_words),
            last_words: share(budget.last_words),
            ledger: share(budget.ledger),
            ..budget
        }
    }

    /// The tokens that a context may have.
    pub fn room(&self) -> u64 {
        self.room_of_requests().saturating_sub(self.tools)
    }

    /// The tokens that a context may have with what its request adds.
    pub(super) fn room_of_requests(&self) -> u64 {
        self.max_tokens.saturating_sub(self.reserve_for_output)
    }

    /// How to compress for this budget: ranges as large as they come, since an engine that sees
    /// more at once knows better what to keep, and blocks of blocks for as long as a session goes.
    pub fn compression(&self) -> CompressionOptions {
        CompressionOptions {
            trigger_tokens: (self.room() / 16).clamp(100, 500),
            max_range_tokens: self.room().max(2_000),
            // In a small room there is little to a range, and less to an eighth of it.
            ratio: (self.room() / 1_600).clamp(4, 8),
            max_block_tokens: self.room() / 6,
            min_block_tokens: (self.room() / 32).min(128),
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

/// An eighth of the room, or what is read with ease, up to two fifths.
const fn low_of(room: u64) -> u64 {
    let (share, most) = (room / 8, room / 5 * 2);
    let least = if most < LEAST_LOW { most } else { LEAST_LOW };
    if share > least { share } else { least }
}

/// A twenty-fourth of the room, or what a short file takes, up to an eighth.
const fn largest_result_of(room: u64) -> u64 {
    let (share, most) = (room / 24, room / 8);
    let least = if most < SHORT_RESULT { most } else { SHORT_RESULT };
    if share > least { share } else { least }
}

/// A twelfth of the room, or what state takes at least, up to a sixth.
const fn ledger_of(room: u64) -> u64 {
    let (share, most) = (room / 12, room / 6);
    let least = if most < LEAST_LEDGER { most } else { LEAST_LEDGER };
    if share > least { share } else { least }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}
