use crate::{compress::CompressionOptions, window::Budget};

/// How contexts are kept within the budget.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayPolicy {
    /// By a [`ContextWindow`](crate::window::ContextWindow): blocks stand for older frames.
    Blocks(CompressionOptions),
    /// The oldest frames are left out, as many as it takes, calls with their results.
    Sliding,
    /// As [`Sliding`](Self::Sliding), but the user's first message stays.
    FirstAndLast,
    /// When the room is full, the oldest frames are left out until so many percent of it are filled.
    Forget {
        /// The percent.
        share: u64,
    },
    /// Results of tools get one line each once they are old. Where that is not enough, the oldest
    /// frames are left out until half of the room is filled.
    Masking {
        /// A result is old when the agent took so many turns after it.
        turns: u64,
        /// So many turns become old before their results get their lines together: what was sent
        /// stays the same meanwhile, and the cache with it.
        batch: u64,
    },
    /// When the room is full, a summary stands for everything but what the user said, as Codex
    /// does it.
    KeepUser {
        /// The most tokens of the user's words that stay, and at most half of the room; the newest
        /// go first.
        most: u64,
    },
    /// Not at all, but for the compactions that the recording tells of.
    Unlimited,
}

impl ReplayPolicy {
    /// The names of all policies, as [`by_name`](Self::by_name) takes them.
    pub const NAMES: [&'static str; 7] =
        ["none", "sliding", "first-and-last", "masking", "keep-user", "forget", "blocks"];

    /// The policy of a name, with the figures that it comes with: masking of results older than ten
    /// turns, ten turns at a time; 20,000 tokens of the user's words; forgetting down to half of the
    /// room; blocks as the budget compresses.
    ///
    /// ```
    /// use afterimage::{replay::ReplayPolicy, window::Budget};
    ///
    /// let budget = Budget::new(8_000);
    /// for name in ReplayPolicy::NAMES {
    ///     assert_eq!(ReplayPolicy::by_name(name, &budget).unwrap().name(), name);
    /// }
    /// ```
    pub fn by_name(name: &str, budget: &Budget) -> Option<Self> {
        Some(match name {
            "none" => Self::Unlimited,
            "sliding" => Self::Sliding,
            "first-and-last" => Self::FirstAndLast,
            "masking" => Self::Masking { turns: 10, batch: 10 },
            "keep-user" => Self::KeepUser { most: 20_000 },
            "forget" => Self::Forget { share: 50 },
            "blocks" => Self::Blocks(budget.compression()),
            _ => return None,
        })
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unlimited => "none",
            Self::Sliding => "sliding",
            Self::FirstAndLast => "first-and-last",
            Self::Masking { .. } => "masking",
            Self::KeepUser { .. } => "keep-user",
            Self::Forget { .. } => "forget",
            Self::Blocks(_) => "blocks",
        }
    }
}
