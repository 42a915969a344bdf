use std::collections::HashSet;

use super::{
    full_state::Checkpoint,
    lines::Lines,
    matching::patch_between,
    names::{SectionKind, normal},
};
use crate::tokens::TokenCounter;

/// When a delta is to be made.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, Occasion, Trigger, TriggerPolicy, tokens::Chars4};
///
/// let policy = TriggerPolicy::default();
/// let a = Checkpoint::parse("## Decisions\n\n- SQLite\n\n## Notes\n\nSome words.\n")?;
/// let b = Checkpoint::parse("## Decisions\n\n- SQLite\n\n## Notes\n\nOther words.\n")?;
/// assert_eq!(policy.due(&a, &a, Occasion::Work, &Chars4), None);
/// assert_eq!(policy.due(&a, &b, Occasion::Checkpoint, &Chars4), Some(Trigger::CheckpointMade));
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerPolicy {
    /// The share of the tokens that may change, from 0 to 1: those of the lines that went or came,
    /// of those of the checkpoint before. A quarter by default.
    pub token_share: f64,
    /// The share of the sections that may change, from 0 to 1. A half by default.
    pub section_share: f64,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Work went on.
    Work,
    /// A checkpoint was made.
    Checkpoint,
    /// Someone asked what happened between the two.
    Audit,
}

/// Why a delta is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A checkpoint was made.
    CheckpointMade,
    /// Problem, Session Intent or Decisions changed.
    DirectionChanged,
    /// More of the tokens or sections changed than the policy lets pass.
    SignificantChange,
    /// Someone asked what happened.
    AuditRequired,
}

impl Default for TriggerPolicy {
    fn default() -> Self {
        Self { token_share: 0.25, section_share: 0.5 }
    }
}

impl TriggerPolicy {
    /// Sets the shares of tokens and of sections from which on a change is significant.
    pub fn with_shares(mut self, token_share: f64, section_share: f64) -> Self {
        (self.token_share, self.section_share) = (token_share, section_share);
        self
    }

    /// Whether a delta is due from the checkpoint that the last one led to, and why. Counts the
    /// tokens of `last` and of the lines that changed.
    pub fn due(
        &self,
        last: &Checkpoint,
        now: &Checkpoint,
        occasion: Occasion,
        counter: &dyn TokenCounter,
    ) -> Option<Trigger> {
        match occasion {
            Occasion::Audit => return Some(Trigger::AuditRequired),
            Occasion::Checkpoint => return Some(Trigger::CheckpointMade),
            Occasion::Work => {}
        }
        let direction = [SectionKind::Problem, SectionKind::SessionIntent, SectionKind::Decisions];
        if direction.iter().any(|kind| last.body(*kind) != now.body(*kind)) {
            return Some(Trigger::DirectionChanged);
        }
        let (old, new) = (&last.document().lines, &now.document().lines);
        if old == new {
            return None;
        }
        let is_significant = share(changed_tokens(old, new, counter), counter.count(old.text()))
            >= self.token_share
            || changed_sections(last, now) >= self.section_share;
        is_significant.then_some(Trigger::SignificantChange)
    }
}

/// The share of the sections that changed or came.
fn changed_sections(last: &Checkpoint, now: &Checkpoint) -> f64 {
    let bodies = |checkpoint: &Checkpoint| -> HashSet<(String, String)> {
        let document = checkpoint.document();
        let sections = document.sections().iter().enumerate();
        let body = |(at, section)| (normal(&document.path_of(at)), document.body_of(section));
        sections.map(body).collect()
    };
    let (old, new) = (bodies(last), bodies(now));
    let changed = old.difference(&new).count();
    let known: HashSet<&String> = old.iter().map(|(path, _)| path).collect();
    let come = new.iter().filter(|(path, _)| !known.contains(path)).count();
    share(changed + come, old.len() + come)
}

/// The tokens of the lines that went, or of those that came where these are more.
fn changed_tokens(old: &Lines, new: &Lines, counter: &dyn TokenCounter) -> usize {
    let patch = patch_between(old, new);
    let tokens = |lines: &mut dyn Iterator<Item = &String>| -> usize {
        lines.map(|line| counter.count(line)).sum()
    };
    let back = patch.inverted();
    tokens(&mut patch.removed.values()).max(tokens(&mut back.removed.values()))
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { f64::from(u8::from(part > 0)) } else { part as f64 / whole as f64 }
}
