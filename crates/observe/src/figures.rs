use crate::json::{Object, ObjectExt, Value};

crate::json::serialize_through_json!(Figures);

/// Declares the figures once: their fields, and their names for programs. Their order is that of the
/// arrays in databases.
macro_rules! figures {
    ($($(#[$doc:meta])+ $field:ident $name:literal,)+) => {
        /// What calls of a tool cost, and what summaries spared.
        ///
        /// Tokens are the estimate [`Chars4`](crate::tokens::Chars4): to count 190 KB exactly would
        /// take longer than everything else that is done with them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Figures {
            $($(#[$doc])+ pub $field: u64,)+
        }

        impl Figures {
            /// The figures with their names.
            fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field)),+].into_iter()
            }

            fn fields(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$field),+].into_iter()
            }
        }
    };
}

figures! {
    /// Calls.
    calls "calls",
    /// Those that failed.
    failed "failed",
    /// Those whose response was kept, as a whole or as a part.
    kept "kept",
    /// Those whose response changed nothing of what was known.
    unchanged "unchanged",
    /// Those that asked for what was there, not stale and not old.
    fresh_repeats "freshRepeats",
    /// The bytes of the responses.
    bytes_in "bytesIn",
    /// The tokens of the responses.
    tokens_in "tokensIn",
    /// The summaries in which the tool was shown.
    contexts "contexts",
    /// The bytes that it took in them.
    bytes_shown "bytesShown",
    /// The tokens that it took in them.
    tokens_shown "tokensShown",
    /// The bytes of the payloads that it stood for in them.
    bytes_stood_for "bytesStoodFor",
    /// The tokens of the payloads that it stood for in them.
    tokens_stood_for "tokensStoodFor",
    /// Those that were older than what was known, and were set aside.
    older "older",
    /// Those that were empty, and were set aside.
    empty "empty",
    /// Those of another shape, which were set aside.
    other_shape "otherShape",
    /// How often somebody asked before a call.
    checks "checks",
    /// How often the answer was that the call can be spared.
    spared "spared",
}

impl Figures {
    /// The figures as they stand in databases.
    #[cfg(feature = "sqlite")]
    pub(super) fn to_array(self) -> Value {
        self.named().map(|(_, figure)| Value::from(figure)).collect()
    }

    /// The figures of such an array; those that are missing at its end are 0.
    #[cfg(feature = "sqlite")]
    pub(super) fn from_array(array: &[Value]) -> Self {
        let mut figures = Self::default();
        for (figure, known) in figures.fields().zip(array) {
            *figure = known.as_u64().unwrap_or_default();
        }
        figures
    }

    /// The sum of two. Saturates.
    pub fn plus(mut self, other: Self) -> Self {
        for (sum, (_, other)) in self.fields().zip(other.named()) {
            *sum = sum.saturating_add(other);
        }
        self
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
        let named = self.named().map(|(name, figure)| (name, Value::from(figure)));
        let mut object: Object = named.collect();
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
