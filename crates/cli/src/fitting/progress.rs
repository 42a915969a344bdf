//! How far compression is.

use std::time::Duration;

use afterimage::compress::CompressionJob;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{output, text::counted};

/// The engine that needs no model is waited for from this many tokens on.
const LARGE: u64 = 200_000;

/// Says on a terminal what is being summarised.
pub(super) struct Progress {
    bar: ProgressBar,
    jobs: u64,
}

impl Progress {
    /// Of a session of so many tokens; a command is always waited for.
    pub(super) fn new(is_command: bool, tokens: u64) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if (is_command || tokens > LARGE) && output::shows_progress() {
            if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg}, {elapsed}") {
                bar.set_style(style);
            }
            bar.set_draw_target(output::progress_target());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar.set_message("planning");
        }
        Self { bar, jobs: 0 }
    }

    pub(super) fn begin(&mut self, job: &CompressionJob) {
        self.jobs += 1;
        let (number, tokens) = (self.jobs, counted(job.original_tokens, "token"));
        let again = if job.attempt > 1 { ", again" } else { "" };
        self.bar.set_message(format!("summary {number}: {tokens} of {}{again}", job.id));
    }

    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}
