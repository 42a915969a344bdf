//! A frame that has less room in a context than it takes: its texts without their middle.

use std::{borrow::Cow, sync::Arc};

use super::change::{Change, shortened_id};
use crate::{
    id::FrameSeq,
    snapshot::{CutText, FrameSnapshot},
    steps::OwnWords,
    summary::worth_keeping,
    text::quote::{guarded, quoted},
    tokens::TokenCounter,
};

/// The lengths that are tried for a frame, in forty-eighths of what it may have.
const ASKED: [u64; 11] = [48, 47, 46, 45, 44, 52, 56, 60, 64, 68, 72];

/// A frame that is shortened, to one length or another.
pub(super) struct Shortening<'o> {
    frame: FrameSeq,
    original: &'o FrameSnapshot,
    /// The same where something in it could pass for a text of ours, or is pasted without an end.
    guarded: Option<FrameSnapshot>,
    counter: &'o dyn TokenCounter,
}

impl<'o> Shortening<'o> {
    /// The frame whose snapshot is `original`. O(its text).
    pub(super) fn of(
        frame: FrameSeq,
        original: &'o FrameSnapshot,
        counter: &'o dyn TokenCounter,
    ) -> Self {
        let guarded = original.rewritten(counter, |text, is_said| {
            let text = guarded(text);
            if !is_said {
                return text;
            }
            match OwnWords::of(&text).labelled() {
                Cow::Borrowed(_) => text,
                Cow::Owned(labelled) => labelled.into(),
            }
        });
        Self { frame, original, guarded, counter }
    }

    /// The frame in about `limit` tokens.
    pub(super) fn plain(&self, limit: u64) -> Option<Change> {
        self.shorten(limit, |_, _| String::new())
    }

    /// As [`Self::plain`], for the user's words: where their middle is left out, the rules in it
    /// stand, in at most a quarter of the tokens.
    pub(super) fn words(&self, limit: u64) -> Option<Change> {
        let share = limit / 3;
        let rules_of = |cut: &CutText<'_>, words: &OwnWords<'_>| {
            let mut left = usize::try_from(share).unwrap_or(usize::MAX);
            let mut said = String::new();
            let mut keep = |text: &str| {
                let cost = self.counter.count(text) + 2;
                let fits = cost <= left;
                if fits {
                    left -= cost;
                    said.extend([text, "\n"]);
                }
                fits
            };
            let (start, end) = (cut.range.start, cut.range.end);
            // What may be somebody's text stands with all that says so.
            let sure = words.sure();
            let lead = cut.text.get(sure.start.max(start)..sure.end.min(end)).map(str::trim);
            let lead = lead.filter(|lead| !words.is_sure() && !lead.is_empty());
            let is_kept = lead.is_some_and(&mut keep);
            for (_, rule) in words.rules().filter(|(at, _)| !is_kept && cut.range.contains(at)) {
                keep(rule);
            }
            said
        };
        self.shorten_keeping((limit, share), rules_of)
    }

    /// As [`Self::plain`], for results of tools: where their middle is left out, the lines in it
    /// that tell of failures stand, or a short row for each record of a list, in at most a quarter
    /// of the tokens.
    pub(super) fn results(&self, limit: u64) -> Option<Change> {
        let share = limit / 4;
        let most = usize::try_from(share).unwrap_or(usize::MAX);
        let kept = |cut: &CutText<'_>, _: &OwnWords<'_>| {
            let left_out = cut.text.get(cut.range.clone()).unwrap_or_default();
            let kept = worth_keeping(left_out, most.saturating_mul(3));
            // What somebody says may be what they quote.
            let kept = if cut.is_said { quoted(&kept) } else { kept };
            let fits = !kept.is_empty() && self.counter.count_up_to(&kept, most).is_some();
            if fits { format!("{kept}\n") } else { String::new() }
        };
        let change = self.shorten_keeping((limit, share), kept);
        let fits = |change: &Change| change.shortened().is_some_and(|of| of.tokens <= limit);
        change.filter(fits).or_else(|| self.plain(limit))
    }

    /// The longest of what `shorten` makes of a frame in at most `limit` tokens. It may make more or
    /// less than it is asked for: what is kept of the middle has a share that it seldom fills.
    pub(super) fn longest(
        &self,
        limit: u64,
        shorten: impl Fn(&Self, u64) -> Option<Change>,
    ) -> Option<Change> {
        let part = (limit / 48).max(1);
        let (mut longest, mut most) = (None, 0);
        for share in ASKED {
            let Some(change) = shorten(self, share * part) else { continue };
            let tokens = change.shortened().map_or(u64::MAX, |what| what.tokens);
            if tokens <= limit && tokens > most {
                (longest, most) = (Some(change), tokens);
            }
            if most + part * 2 > limit {
                break;
            }
        }
        longest
    }

    /// Shortens to `limit` tokens. What `kept` keeps of the text that is left out takes at most
    /// `share` of them.
    fn shorten_keeping(
        &self,
        (limit, share): (u64, u64),
        kept: impl Fn(&CutText<'_>, &OwnWords<'_>) -> String,
    ) -> Option<Change> {
        let shortened = |limit: u64| self.shorten(limit, &kept);
        let tokens = |change: &Change| change.shortened().map_or(u64::MAX, |of| of.tokens);
        let first = shortened(limit - share)?;
        // What is left of their share goes to the words around them.
        let left = limit.saturating_sub(tokens(&first));
        let fuller = Some(limit - share + left).filter(|_| left > 0).and_then(shortened);
        Some(fuller.filter(|change| tokens(change) <= limit).unwrap_or(first))
    }

    fn shorten(
        &self,
        limit: u64,
        of_left_out: impl Fn(&CutText<'_>, &OwnWords<'_>) -> String,
    ) -> Option<Change> {
        let id = shortened_id(self.frame);
        let marker = |cut: &CutText<'_>| {
            let words = if cut.is_said { OwnWords::of(cut.text) } else { OwnWords::all(cut.text) };
            let (from, to, tokens) = (cut.range.start, cut.range.end, cut.tokens);
            // Half a sentence must not read like a whole one.
            let is_line = |at: usize| cut.text.get(..at).is_none_or(|head| head.ends_with('\n'));
            let is_cut = |at: usize| cut.is_said && !is_line(at);
            let goes_on = |at: usize, mark: &'static str| if is_cut(at) { mark } else { "" };
            let ((close, _), (_, open)) = (words.marks(from), words.marks(to));
            format!(
                "{}{close}\n[… {tokens} tokens left out; expand {id} …]\n{}{open}{}",
                goes_on(from, " …"),
                of_left_out(cut, &words),
                goes_on(to, "… ")
            )
        };
        let original = self.guarded.as_ref().unwrap_or(self.original);
        let snapshot = original.shortened(self.counter, limit, marker)?;
        Some(Change::shorter(self.frame, Arc::clone(&id), original, snapshot))
    }
}
