mod builder;
mod layout;
mod media;
mod scaled;
mod share;

use std::{hash::Hash, sync::Arc};

use indexmap::IndexMap;

pub use share::Share;
#[cfg(feature = "rules")]
pub(super) use share::TokenRates;

#[cfg(feature = "rules")]
use super::Prices;
#[cfg(feature = "rules")]
use crate::request::Exchange;
use crate::{
    Result,
    id::{FacetId, FrameSeq},
    request::Recording,
    steps::ToolCall,
};
use builder::Builder;

/// What each facet cost over a session: its tokens in every request that held it.
///
/// The reported input of a request is laid out over what the request holds, in the order in which
/// providers take it: tools, system prompt, messages. The first tokens of this layout are those that
/// the cache served, the next are those that it took. Counts are larger or smaller than the
/// provider's: what is left of the reported input stands at the beginning, as a [`Remainder`]; counts
/// that are too large are scaled down. The output goes to the facets of the answer.
///
/// The lines and the remainders add up to the reported usage exactly.
///
/// ```
/// # use std::sync::Arc;
/// # use afterimage::{
/// #     bill::{Remainder, Residency}, id::Millis, request::Recording, tokens::Chars4,
/// #     transcript::Transcript,
/// # };
/// # let session = br#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}
/// # {"type":"message","timestamp":"t","message":{"role":"user","content":"find the old harbour"}}
/// # {"type":"message","timestamp":"t","message":{"role":"assistant","model":"m","content":"found","usage":{"input":25,"output":9,"cacheRead":75,"cacheWrite":0}}}"#;
/// # let transcript = Transcript::new(&session[..])?;
/// # let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
/// let residency = Residency::of(&recording)?;
/// assert_eq!((residency.total().input, residency.total().output), (100, 9));
/// let asked = &residency.lines[0];
/// assert_eq!((asked.requests, asked.share.input, asked.share.uncached()), (1, 5, 5));
/// // The transcript holds no tools and no system prompt.
/// assert_eq!(residency.remainder(Remainder::NotInTranscript).cache_read, 75);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Residency {
    /// What the facets cost, in the order in which they first appeared.
    pub lines: Vec<ResidencyLine>,
    /// The exchanges that report usage.
    pub exchanges: u64,
    /// Those of them that report no input or no output, or a figure that nobody can read: what is
    /// missing is in no share.
    pub incomplete: u64,
    /// The requests that hold more tokens by our count than are reported, and how many more. These
    /// are scaled down to what is reported.
    pub overcounted: (u64, u64),
    /// The images, sounds and documents whose cost no published rule tells: their input is among
    /// the remainders.
    pub unknown_media: u64,
    remainders: [Share; Remainder::ALL.len()],
}

/// What a facet cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResidencyLine {
    /// The session that it belongs to.
    pub session: Arc<str>,
    /// The facet; that of a tool definition is `tool:NAME`. `None` for text that no facet wrote.
    pub facet: Option<FacetId>,
    /// The first frame that holds it; `None` for what is in no frame.
    pub frame: Option<FrameSeq>,
    /// The turn that brought it, by the user's message that began the turn. `None` for what is in no
    /// frame, and for what stands before the first message.
    ///
    /// A turn begins with a user's message, and with the next one that follows words of the agent. A
    /// message that holds the result of a call begins none.
    pub turn: Option<FrameSeq>,
    /// The type of its chunks.
    pub chunk_type: Option<Arc<str>>,
    /// The call that it is, or answers; of a definition nothing but the tool.
    pub call: Option<ToolCall>,
    /// The file that it is of, where a client put one before the model by itself: instructions, say.
    pub path: Option<Arc<str>>,
    /// Whether it is the definition of a tool.
    pub is_definition: bool,
    /// Whether it is an image, a sound or a document, counted by the rule of its provider. The text
    /// that stands for it in the transcript has a line of its own.
    pub is_media: bool,
    /// The tokens that it has in a request, by our count; the most that it had in one.
    pub tokens: u64,
    /// How many requests with usage held it.
    pub requests: u64,
    /// What it cost.
    pub share: Share,
}

crate::json::name_enum! {
    /// Reported tokens that belong to no facet, and why.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Remainder {
        /// Input that a transcript does not hold: tools, system prompt, and what forms, other
        /// counts and media of unknown cost add.
        NotInTranscript = "notInTranscript",
        /// Input that the request does not hold by our count: forms, other counts, media of
        /// unknown cost.
        NotCounted = "notCounted",
        /// Output that is not kept: reasoning, forms, other counts.
        OutputNotKept = "outputNotKept",
        /// Exchanges that no list of requests has.
        Unlisted = "unlisted",
        /// Parts of the input that do not fit into it.
        BeyondInput = "beyondInput",
        /// What the provider's own tools cost besides tokens: its web searches.
        ProviderTools = "providerTools",
    }
}

impl Remainder {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NotInTranscript,
        Self::NotCounted,
        Self::OutputNotKept,
        Self::Unlisted,
        Self::BeyondInput,
        Self::ProviderTools,
    ];
}

impl Residency {
    /// What the facets of a recording cost, without prices. Of a transcript it is linear in its
    /// frames; a request that holds other blocks than the one before it costs as much as it holds. Of
    /// recorded traffic it is linear in the requests.
    ///
    /// # Errors
    /// Those of [`Recording::request`].
    pub fn of(recording: &Recording) -> Result<Self> {
        Builder::new(recording).build(&|_| Vec::new())
    }

    /// The same with what it cost by these prices: each exchange at its own. Takes as long as
    /// [`Residency::of`], and a look-up in the table for each exchange.
    ///
    /// # Errors
    /// Those of [`Recording::request`].
    #[cfg(feature = "rules")]
    pub fn priced(recording: &Recording, prices: &Prices) -> Result<Self> {
        let priced = |exchange: &Exchange| {
            let price = exchange.model.as_deref().and_then(|model| prices.of(model));
            price.zip(exchange.usage.clone())
        };
        let rates = |exchange: &Exchange| {
            priced(exchange).map_or_else(Vec::new, |(price, usage)| price.token_rates(&usage))
        };
        let mut residency = Builder::new(recording).build(&rates)?;
        for (price, usage) in recording.reported().filter_map(priced) {
            let pico = price.of(&usage).and_then(|_| price.use_cost(&usage)).unwrap_or(0);
            residency.add_remainder(Remainder::ProviderTools, Share { pico, ..Share::default() });
        }
        Ok(residency)
    }

    /// The reported tokens that belong to no facet for this reason.
    pub fn remainder(&self, remainder: Remainder) -> Share {
        self.remainders.get(remainder as usize).copied().unwrap_or_default()
    }

    /// All lines and remainders together: what is reported. O(rows).
    pub fn total(&self) -> Share {
        let lines = self.lines.iter().map(|line| &line.share);
        lines.chain(&self.remainders).fold(Share::default(), |sum, share| sum.plus(*share))
    }

    /// The lines that cost most: by their price, then by their tokens; the first among equals.
    /// Sorts the lines: O(n log n).
    pub fn largest(&self, most: usize) -> Vec<&ResidencyLine> {
        let mut lines: Vec<_> = self.lines.iter().filter(|line| !line.share.is_empty()).collect();
        lines.sort_by_key(|line| std::cmp::Reverse((line.share.pico, line.share.tokens())));
        lines.truncate(most);
        lines
    }

    /// The reported tokens that belong to no facet, for whatever reason. O(rows).
    pub fn remainders(&self) -> Share {
        self.remainders.iter().fold(Share::default(), |sum, share| sum.plus(*share))
    }

    /// The shares of the lines of each key, those that cost most first. A line without a key is in
    /// none: what these have, and the [`remainders`](Self::remainders), is what the sum of all keys
    /// lacks of the [`total`](Self::total). O(lines), and a sort of the keys.
    pub fn by<'r, K: Hash + Eq>(
        &'r self,
        key: impl Fn(&'r ResidencyLine) -> Option<K>,
    ) -> IndexMap<K, Share> {
        let mut shares: IndexMap<K, Share> = IndexMap::new();
        for line in self.lines.iter().filter(|line| !line.share.is_empty()) {
            if let Some(key) = key(line) {
                let share = shares.entry(key).or_default();
                *share = share.plus(line.share);
            }
        }
        shares.sort_by(|_, a, _, b| (b.pico, b.tokens()).cmp(&(a.pico, a.tokens())));
        shares
    }

    fn add_remainder(&mut self, remainder: Remainder, share: Share) {
        if let Some(sum) = self.remainders.get_mut(remainder as usize) {
            *sum = sum.plus(share);
        }
    }
}
