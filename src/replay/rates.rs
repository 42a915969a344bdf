/// What tokens cost beside one of input that no cache has anything to do with, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplayRates {
    /// One that is written to the cache.
    pub write: u64,
    /// One that is read from the cache.
    pub read: u64,
    /// One of the answer.
    pub output: u64,
}

impl ReplayRates {
    /// Those of Anthropic's models: writes for five minutes at 1.25, reads at a tenth, output at 5.
    pub const ANTHROPIC: Self = Self { write: 1250, read: 100, output: 5000 };
}

impl Default for ReplayRates {
    /// [`ReplayRates::ANTHROPIC`].
    fn default() -> Self {
        Self::ANTHROPIC
    }
}
