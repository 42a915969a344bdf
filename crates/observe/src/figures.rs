use crate::json::{Object, ObjectExt, Value};

crate::json::serialize_through_json!(Figures);

/// What calls of a tool cost, and what summaries spared.
///
/// Tokens are the estimate [`Chars4`](crate::tokens::Chars4): to count 190 KB exactly would take
/// longer than everything else that is done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Calls.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those whose response was kept, as a whole or as a part.
    pub kept: u64,
    /// Those whose response changed nothing of what was known.
    pub unchanged: u64,
    /// Those that asked for what was there, not stale and not old.
    pub fresh_repeats: u64,
    /// The bytes of the responses.
    pub bytes_in: u64,
    /// The tokens of the responses.
    pub tokens_in: u64,
    /// The summaries in which the tool was shown.
    pub contexts: u64,
    /// The bytes that it took in them.
    pub bytes_shown: u64,
    /// The tokens that it took in them.
    pub tokens_shown: u64,
    /// The bytes of the payloads that it stood for in them.
    pub bytes_stood_for: u64,
    /// The tokens of the payloads that it stood for in them.
    pub tokens_stood_for: u64,
    /// Those that were older than what was known, and were set aside.
    pub older: u64,
    /// Those that were empty, and were set aside.
    pub empty: u64,
    /// Those of another shape, which were set aside.
    pub other_shape: u64,
    /// How often somebody asked before a call.
    pub checks: u64,
    /// How often the answer was that the call can be spared.
    pub spared: u64,
}

impl Figures {
    /// How many figures there are.
    pub(super) const COUNT: usize = 17;

    /// The names of the figures, in the order of [`Figures::to_array`].
    pub(super) const NAMES: [&str; Self::COUNT] = [
        "calls",
        "failed",
        "kept",
        "unchanged",
        "freshRepeats",
        "bytesIn",
        "tokensIn",
        "contexts",
        "bytesShown",
        "tokensShown",
        "bytesStoodFor",
        "tokensStoodFor",
        "older",
        "empty",
        "otherShape",
        "checks",
        "spared",
    ];

    pub(super) fn to_array(self) -> [u64; Self::COUNT] {
        [
            self.calls,
            self.failed,
            self.kept,
            self.unchanged,
            self.fresh_repeats,
            self.bytes_in,
            self.tokens_in,
            self.contexts,
            self.bytes_shown,
            self.tokens_shown,
            self.bytes_stood_for,
            self.tokens_stood_for,
            self.older,
            self.empty,
            self.other_shape,
            self.checks,
            self.spared,
        ]
    }

    pub(super) fn from_array(figures: [u64; Self::COUNT]) -> Self {
        let [
            calls,
            failed,
            kept,
            unchanged,
            fresh_repeats,
            bytes_in,
            tokens_in,
            contexts,
            bytes_shown,
            tokens_shown,
            bytes_stood_for,
            tokens_stood_for,
            older,
            empty,
            other_shape,
            checks,
            spared,
        ] = figures;
        Self {
            calls,
            failed,
            kept,
            unchanged,
            fresh_repeats,
            bytes_in,
            tokens_in,
            contexts,
            bytes_shown,
            tokens_shown,
            bytes_stood_for,
            tokens_stood_for,
            older,
            empty,
            other_shape,
            checks,
            spared,
        }
    }

    /// The sum of two. Saturates.
    pub fn plus(self, other: Self) -> Self {
        let (mut sums, others) = (self.to_array(), other.to_array());
        sums.iter_mut().zip(others).for_each(|(sum, other)| *sum = sum.saturating_add(other));
        Self::from_array(sums)
    }

    /// The tokens that summaries did not cost.
    pub fn tokens_saved(&self) -> u64 {
        self.tokens_stood_for.saturating_sub(self.tokens_shown)
    }

    /// The calls whose answers were set aside, besides those that failed.
    pub fn set_aside(&self) -> u64 {
        self.older.saturating_add(self.empty).saturating_add(self.other_shape)
    }

    /// The figures by name, with `tokensSaved`. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        for (name, figure) in Self::NAMES.iter().zip(self.to_array()) {
            object.put(name, figure);
        }
        object.put("tokensSaved", self.tokens_saved());
        object.into()
    }
}

/// What can be read off the figures of all tools: the measures of success that the specification
/// names, as far as a cache can know them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Calls of observing tools for each context that a summary stood in.
    pub calls_per_context: f64,
    /// The share of calls that asked for what was there and fresh.
    pub repeated_share: f64,
    /// The share of the checks before a call that found what was fresh.
    pub spared_share: f64,
    /// The bytes that a context held on average, had it held the payloads.
    pub context_bytes_without: f64,
    /// The bytes of its summary.
    pub context_bytes_with: f64,
}

impl Metrics {
    /// Reads them off the figures of a store; see [`StoreReader::figures`](super::StoreReader::figures).
    /// O(tools).
    pub fn of(figures: &[(String, Figures)]) -> Self {
        let is_whole = |(name, _): &&(String, Figures)| name.is_empty();
        let tools = figures.iter().filter(|figures| !is_whole(figures));
        let tools = tools.fold(Figures::default(), |sum, (_, figures)| sum.plus(*figures));
        let whole = figures.iter().find(is_whole).map(|(_, figures)| *figures).unwrap_or_default();
        let share = |part: u64, whole: u64| {
            if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
        };
        Self {
            calls_per_context: share(tools.calls, whole.contexts),
            repeated_share: share(tools.fresh_repeats, tools.calls),
            spared_share: share(tools.spared, tools.checks),
            context_bytes_without: share(whole.bytes_stood_for, whole.contexts),
            context_bytes_with: share(whole.bytes_shown, whole.contexts),
        }
    }
}
