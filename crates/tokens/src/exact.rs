//! Exact counts: from the counts of pieces to that of a text.

use super::{CountedText, cuts, merge, piece_cache::KeptCache, pieces::Pretokenizer};
use crate::vocabulary::Vocabulary;

/// No token of either vocabulary is longer, in bytes: a test looks at all of them.
pub(super) const LONGEST_TOKEN: usize = 128;

/// A splitter and a vocabulary.
pub(super) struct Tokenizer {
    pub(super) id: &'static str,
    pub(super) pretokenizer: Pretokenizer,
    pub(super) vocabulary: &'static Vocabulary,
}

pub(super) fn count(tokenizer: &Tokenizer, kept: &KeptCache, text: &str) -> usize {
    count_up_to(tokenizer, kept, text, usize::MAX).unwrap_or_default()
}

/// Stops at the piece that exceeds `limit`, and before one that is sure to.
///
/// A piece by itself splits into itself: the patterns look at what follows only after white space,
/// and at the end of a text they take no less of it. So a piece has one count wherever it stands.
pub(super) fn count_up_to(
    tokenizer: &Tokenizer,
    kept: &KeptCache,
    text: &str,
    limit: usize,
) -> Option<usize> {
    let at_least = |length: usize| length.div_ceil(LONGEST_TOKEN);
    if at_least(text.len()) > limit {
        return None;
    }
    let mut cache = kept.take();
    let mut pieces = tokenizer.pretokenizer.split(text);
    let mut left = Some(limit);
    loop {
        let rest = pieces.rest();
        let (Some(piece), Some(limit)) = (pieces.next(), left) else { break };
        left = if piece.len() > LONGEST_TOKEN && at_least(piece.len()) > limit {
            None
        } else {
            let count = |piece: &[u8]| merge::count(tokenizer.vocabulary, piece);
            limit.checked_sub(cache.count(rest, piece, count))
        };
    }
    kept.keep(cache);
    left.map(|left| limit - left)
}

/// Counts again only what lies around the borders of the parts.
///
/// A part with a safe cut is a head up to its first, a middle, and a tail from its last. The count
/// of the middle is that of the part less those of head and tail, whatever stands around it; so
/// only the windows that join a tail, parts without a cut and a head need counting. A border that
/// is a safe cut itself needs no window.
pub(super) fn count_joined(
    tokenizer: &Tokenizer,
    kept: &KeptCache,
    parts: &[CountedText<'_>],
) -> usize {
    let count = |text: &str| count(tokenizer, kept, text);
    let mut parts = parts.iter().filter(|part| !part.text.is_empty()).peekable();
    let mut added = 0_usize;
    // Apart from `added`, so that wrong counts of the caller give a wrong sum and no overflow.
    let mut removed = 0_usize;
    let mut window = String::new();
    let mut joins_before = false;
    while let Some(part) = parts.next() {
        let text = part.text;
        let joins_after = parts.peek().is_some_and(|next| {
            let border = text.chars().next_back().zip(next.text.chars().next());
            !border.is_some_and(|(before, after)| cuts::is_safe(before, after))
        });
        let first = if joins_before { cuts::first(text) } else { Some(0) };
        let last = if joins_after { cuts::last(text) } else { Some(text.len()) };
        if let (Some((head, _)), Some((_, tail))) = (
            first.and_then(|at| text.split_at_checked(at)),
            last.and_then(|at| text.split_at_checked(at)),
        ) {
            added = added.saturating_add(part.tokens);
            if joins_before {
                removed += count(head);
                window.push_str(head);
                added = added.saturating_add(count(&window));
                window.clear();
            }
            if joins_after {
                removed += count(tail);
                window.push_str(tail);
            }
        } else {
            window.push_str(text);
            if !joins_after {
                added = added.saturating_add(count(&window));
                window.clear();
            }
        }
        joins_before = joins_after;
    }
    added.saturating_sub(removed)
}
