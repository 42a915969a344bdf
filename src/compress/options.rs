/// When compression starts and stops, and how ranges are cut; fixed once the transform is made.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CompressionOptions {
    /// A range of fewer tokens is not worth a block. 500 by default.
    pub trigger_tokens: u64,
    /// The most tokens of a range; a larger frame is a range of its own. 2,000 by default.
    pub max_range_tokens: u64,
    /// Nothing is compressed before there are so many frames outside of the protected tail that
    /// may be. 10 by default.
    pub min_frames: usize,
    /// The most jobs that wait at a time, until more were answered: then as many as that. 5 by
    /// default.
    pub max_pending: usize,
    /// The most jobs that are under way at a time. 1 by default.
    pub max_active: usize,
    /// How often a job is tried before its range has failed. 2 by default.
    pub tries: u32,
    /// How long a job that failed waits, in milliseconds. 30,000 by default.
    pub retry_delay_ms: i64,
    /// A range that failed is tried again: after twice `retry_delay_ms`, and after twice as long
    /// each time that it fails again, up to so many milliseconds. When one of several fails again,
    /// the others wait as long, so that an engine which is down is asked once at a time; when a
    /// range is answered, the others are due. Where the clock stands still, frames are what passes.
    /// 600,000 by default; 0: never.
    pub retry_most_ms: i64,
    /// The newest frames that are never compressed. 8 by default. In a
    /// [`ContextWindow`](crate::window::ContextWindow) they are only as many as
    /// [`Budget::recent`](crate::window::Budget::recent) has room for.
    pub protected_frames: usize,
    /// A summary may have one token for so many of the original. 5 by default; at least 2. A summary of
    /// summaries may have half as many tokens again, and at most half of theirs.
    pub ratio: u64,
    /// The most tokens of a block, however large its range. No limit by default.
    pub max_block_tokens: u64,
    /// The least that a summary may have, however small its range: blocks of blocks would say nothing
    /// in the end. At most half of the range, so that it saves something. 64 by default.
    pub min_block_tokens: u64,
    /// Compression starts where frames and blocks come to more tokens than this; always, where
    /// there are ranges, by default.
    pub high_tokens: u64,
    /// Once started, it goes on until they come to no more than this. 0 by default.
    pub low_tokens: u64,
    /// Whether the user's first message and last instruction stay as they are: no block stands for
    /// them, for the instruction until another one follows. A
    /// [`ContextWindow`](crate::window::ContextWindow) always keeps them. `false` by default.
    pub keep_words: bool,
    /// The highest level of blocks: 1 compresses frames alone, 2 also blocks of frames. 3 by
    /// default.
    pub max_level: u32,
}

impl Default for CompressionOptions {
    fn default() -> Self {
        Self {
            trigger_tokens: 500,
            max_range_tokens: 2_000,
            min_frames: 10,
            max_pending: 5,
            max_active: 1,
            tries: 2,
            retry_delay_ms: 30_000,
            retry_most_ms: 600_000,
            protected_frames: 8,
            ratio: 5,
            max_block_tokens: u64::MAX,
            min_block_tokens: 64,
            high_tokens: 0,
            low_tokens: 0,
            keep_words: false,
            max_level: 3,
        }
    }
}

impl CompressionOptions {
    /// The most tokens of a summary of so many.
    pub(super) fn block_limit(&self, tokens: u64) -> u64 {
        self.bounded(tokens / self.ratio.max(2), tokens)
    }

    /// The most tokens of a summary of summaries, which say little that does not matter: half as many
    /// again as of frames, and at most half.
    pub(super) fn merged_limit(&self, tokens: u64) -> u64 {
        let share = u128::from(tokens) * 3 / (u128::from(self.ratio.max(2)) * 2);
        self.bounded(u64::try_from(share).unwrap_or(tokens).min(tokens / 2), tokens)
    }

    /// A share of so many tokens, not below the floor, nor above the ceiling.
    fn bounded(&self, share: u64, tokens: u64) -> u64 {
        share.max(self.min_block_tokens.min(tokens / 2)).min(self.max_block_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_a_share_of_its_range_and_a_floor_and_a_ceiling() {
        let options = CompressionOptions {
            ratio: 5,
            min_block_tokens: 64,
            max_block_tokens: 300,
            ..CompressionOptions::default()
        };
        let limits = [0, 10, 100, 320, 400, 2_000].map(|tokens| options.block_limit(tokens));
        assert_eq!(limits, [0, 5, 50, 64, 80, 300]);
        let merged = [0, 10, 400, 900, 2_000].map(|tokens| options.merged_limit(tokens));
        assert_eq!(merged, [0, 5, 120, 270, 300]);
        let least = CompressionOptions { ratio: 2, ..CompressionOptions::default() };
        assert_eq!(least.merged_limit(400), 200);
        let most = CompressionOptions { ratio: u64::MAX, ..CompressionOptions::default() };
        assert_eq!((most.block_limit(u64::MAX), most.merged_limit(u64::MAX)), (64, 64));
    }
}
