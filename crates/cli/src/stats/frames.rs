//! Sums over the frames of a file.

use afterimage::{session::unknown_records, transcript::Tally, veil::Frame};

use crate::{answer::answer, text::counted};

answer! {
    /// Sums over the frames of a file.
    #[derive(Clone, Copy, Default)]
    pub(crate) struct FrameSums {
        /// how many frames there are
        frames: u64,
        /// messages: frames that an import marked as one, and every frame that no import made
        messages: u64,
        /// tool calls that frames add
        tool_calls: u64,
        /// results of tool calls that frames add
        tool_results: u64,
        /// those of them whose source states that the call failed, or that it was cancelled or denied
        failed_results: u64,
        /// records that were not understood, and were kept
        unknown_records: u64,
    }
}

impl FrameSums {
    pub(super) fn add(&mut self, frame: &Frame) {
        let mut tally = Tally::default();
        tally.add(frame);
        let failed = frame.added().filter(|facet| facet.outcome().is_failure()).count();
        self.frames += 1;
        self.messages += tally.messages;
        self.tool_calls += tally.tool_calls;
        self.tool_results += tally.tool_results;
        self.failed_results += failed as u64;
        // Frames that were written of a transcript say how many they keep, so this may be any number.
        self.unknown_records = self.unknown_records.saturating_add(unknown_records(frame));
    }

    /// The sums for people.
    pub(super) fn held(&self) -> Vec<String> {
        let failed = match self.failed_results {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        vec![
            counted(self.frames, "frame"),
            counted(self.messages, "message"),
            counted(self.tool_calls, "tool call"),
            counted(self.tool_results, "tool result") + &failed,
        ]
    }
}
