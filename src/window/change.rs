//! What stands in a context in place of a frame, besides blocks.

use std::{borrow::Cow, sync::Arc};

use crate::{
    id::FrameSeq,
    snapshot::{CutText, FrameSnapshot, Substitution, SubstitutionKind, ToolOutput},
    steps::OwnWords,
    summary::worth_keeping,
    text::quote::{guarded, quoted},
    tokens::TokenCounter,
};

/// Frames that a context leaves out; they stay in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedFrames {
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// What a context has less without them: the tokens that stood for them, exact, and those that
    /// the provider adds for each message.
    pub tokens: u64,
    /// The block that stood for them, where it was a block that was dropped.
    pub block: Option<Arc<str>>,
}

impl DroppedFrames {
    /// The id under which they are found: `dropped-FROM-TO`.
    pub fn id(&self) -> Arc<str> {
        format!("dropped-{}-{}", self.from, self.to).into()
    }
}

/// A frame of whose texts the middle is left out, or whose results of tools are one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedFrame {
    /// The frame.
    pub frame: FrameSeq,
    /// The id that its marker names: `shortened-FRAME`, or `masked-FRAME` where its results are one
    /// line each.
    pub id: Arc<str>,
    /// The tokens of the frame: the exact count of its text.
    pub original_tokens: u64,
    /// What is left of them.
    pub tokens: u64,
}

impl ShortenedFrame {
    /// Whether each result of a tool in it is one line.
    pub fn is_masked(&self) -> bool {
        self.kind() == "masked"
    }

    /// What was done to it: `masked`, `shortened`, or `edited` where the recording says that it was
    /// read otherwise.
    pub fn kind(&self) -> &'static str {
        let kind = self.id.split_once('-').map_or("", |(kind, _)| kind);
        ["masked", "edited"].into_iter().find(|known| *known == kind).unwrap_or("shortened")
    }
}

/// The id of a frame of whose texts the middle is left out.
pub(super) fn shortened_id(frame: FrameSeq) -> Arc<str> {
    format!("shortened-{frame}").into()
}

/// The id of a frame whose results are one line each.
pub(super) fn masked_id(frame: FrameSeq) -> Arc<str> {
    format!("masked-{frame}").into()
}

/// The lengths that are tried for a frame, in forty-eighths of what it may have.
const ASKED: [u64; 11] = [48, 47, 46, 45, 44, 52, 56, 60, 64, 68, 72];

/// What replaces a range of frames.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Dropped(DroppedFrames),
    Shortened { what: ShortenedFrame, snapshot: Arc<FrameSnapshot> },
}

impl Change {
    pub(super) fn from(&self) -> FrameSeq {
        match self {
            Self::Dropped(dropped) => dropped.from,
            Self::Shortened { what, .. } => what.frame,
        }
    }

    pub(super) fn to(&self) -> FrameSeq {
        match self {
            Self::Dropped(dropped) => dropped.to,
            Self::Shortened { what, .. } => what.frame,
        }
    }

    pub(super) fn dropped(&self) -> Option<&DroppedFrames> {
        match self {
            Self::Dropped(dropped) => Some(dropped),
            Self::Shortened { .. } => None,
        }
    }

    pub(super) fn shortened(&self) -> Option<&ShortenedFrame> {
        match self {
            Self::Shortened { what, .. } => Some(what),
            Self::Dropped(_) => None,
        }
    }

    /// What is left of a frame; `None` of frames that are left out.
    pub(super) fn snapshot(&self) -> Option<&Arc<FrameSnapshot>> {
        match self {
            Self::Shortened { snapshot, .. } => Some(snapshot),
            Self::Dropped(_) => None,
        }
    }

    /// The id that stands in contexts.
    pub(super) fn id(&self) -> Arc<str> {
        match self {
            Self::Dropped(dropped) => dropped.id(),
            Self::Shortened { what, .. } => Arc::clone(&what.id),
        }
    }

    /// What a renderer puts in place of the frames.
    /// `nothing` is a snapshot without text.
    pub(super) fn substitution(&self, nothing: &Arc<FrameSnapshot>) -> Substitution {
        let snapshot = Arc::clone(self.snapshot().unwrap_or(nothing));
        let stands = if snapshot.is_empty() {
            SubstitutionKind::Dropped
        } else {
            SubstitutionKind::Shortened
        };
        Substitution { block: self.id(), stands, from: self.from(), to: self.to(), snapshot }
    }

    /// The frame whose snapshot is `original`, shortened to about `limit` tokens.
    pub(super) fn shorten(
        frame: FrameSeq,
        original: &FrameSnapshot,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Option<Self> {
        Self::shorten_with(frame, original, limit, counter, |_, _| String::new())
    }

    /// As [`Change::shorten`], for the user's words: where their middle is left out, the rules in it
    /// stand, in at most a quarter of the tokens.
    pub(super) fn shorten_words(
        frame: FrameSeq,
        original: &FrameSnapshot,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Option<Self> {
        let share = limit / 3;
        let rules_of = |cut: &CutText<'_>, words: &OwnWords<'_>| {
            let mut left = usize::try_from(share).unwrap_or(usize::MAX);
            let mut said = String::new();
            for (_, rule) in words.rules().filter(|(start, _)| cut.range.contains(start)) {
                let cost = counter.count(rule) + 2;
                if cost <= left {
                    left -= cost;
                    said.push_str(rule);
                    said.push('\n');
                }
            }
            said
        };
        Self::shorten_keeping(frame, original, (limit, share), counter, rules_of)
    }

    /// As [`Change::shorten`], for results of tools: where their middle is left out, the lines in it
    /// that tell of failures stand, or a short row for each record of a list, in at most a quarter
    /// of the tokens.
    pub(super) fn shorten_results(
        frame: FrameSeq,
        original: &FrameSnapshot,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Option<Self> {
        let share = limit / 4;
        let most = usize::try_from(share).unwrap_or(usize::MAX);
        let kept = |cut: &CutText<'_>, _: &OwnWords<'_>| {
            let left_out = cut.text.get(cut.range.clone()).unwrap_or_default();
            let kept = worth_keeping(left_out, most.saturating_mul(3));
            // What somebody says may be what they quote.
            let kept = if cut.is_said { quoted(&kept) } else { kept };
            let fits = !kept.is_empty() && counter.count_up_to(&kept, most).is_some();
            if fits { format!("{kept}\n") } else { String::new() }
        };
        let change = Self::shorten_keeping(frame, original, (limit, share), counter, kept);
        let fits = |change: &Self| change.shortened().is_some_and(|of| of.tokens <= limit);
        change.filter(fits).or_else(|| Self::shorten(frame, original, limit, counter))
    }

    /// The longest of what `shorten` makes of a frame in at most `limit` tokens. It may make more or
    /// less than it is asked for: what is kept of the middle has a share that it seldom fills.
    pub(super) fn longest(limit: u64, shorten: impl Fn(u64) -> Option<Self>) -> Option<Self> {
        let part = (limit / 48).max(1);
        let (mut longest, mut most) = (None, 0);
        for share in ASKED {
            let Some(change) = shorten(share * part) else { continue };
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

    /// Shortens to `limit` tokens, of which what `kept` keeps of the text that is left out takes at
    /// most `share`.
    fn shorten_keeping(
        frame: FrameSeq,
        original: &FrameSnapshot,
        (limit, share): (u64, u64),
        counter: &dyn TokenCounter,
        kept: impl Fn(&CutText<'_>, &OwnWords<'_>) -> String,
    ) -> Option<Self> {
        let shortened = |limit: u64| Self::shorten_with(frame, original, limit, counter, &kept);
        let tokens = |change: &Self| change.shortened().map_or(u64::MAX, |of| of.tokens);
        let first = shortened(limit - share)?;
        // What is left of their share goes to the words around them.
        let left = limit.saturating_sub(tokens(&first));
        let fuller = Some(limit - share + left).filter(|_| left > 0).and_then(shortened);
        Some(fuller.filter(|change| tokens(change) <= limit).unwrap_or(first))
    }

    fn shorten_with(
        frame: FrameSeq,
        original: &FrameSnapshot,
        limit: u64,
        counter: &dyn TokenCounter,
        of_left_out: impl Fn(&CutText<'_>, &OwnWords<'_>) -> String,
    ) -> Option<Self> {
        let id = shortened_id(frame);
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
        let original = guarded.as_ref().unwrap_or(original);
        let snapshot = original.shortened(counter, limit, marker)?;
        Some(Self::shorter(frame, Arc::clone(&id), original, snapshot))
    }

    /// The frame whose snapshot is `original`, with the line that `line` makes of the id and of each
    /// result in its place. `None` where that is no shorter.
    pub(super) fn mask(
        frame: FrameSeq,
        original: &FrameSnapshot,
        counter: &dyn TokenCounter,
        line: impl Fn(&str, ToolOutput<'_>) -> String,
    ) -> Option<Self> {
        let id = masked_id(frame);
        let snapshot = original.masked(counter, |output| line(&id, output))?;
        Some(Self::shorter(frame, Arc::clone(&id), original, snapshot))
    }

    fn shorter(
        frame: FrameSeq,
        id: Arc<str>,
        original: &FrameSnapshot,
        snapshot: FrameSnapshot,
    ) -> Self {
        let tokens = |of: &FrameSnapshot| of.exact_tokens().unwrap_or(of.total_tokens());
        let (original_tokens, tokens) = (tokens(original), tokens(&snapshot));
        let what = ShortenedFrame { frame, id, original_tokens, tokens };
        Self::Shortened { what, snapshot: Arc::new(snapshot) }
    }
}
