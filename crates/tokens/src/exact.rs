//! What the exact counters share: from the count of a piece to that of a text.

use super::{CountedText, cuts, pieces::Pretokenizer};

/// No token of either vocabulary is longer, in bytes: a test looks at all of them.
pub(super) const LONGEST_TOKEN: usize = 128;

/// A tokenizer as its pieces and their counts.
pub(super) trait PieceCounter {
    fn pretokenizer(&self) -> &'static Pretokenizer;

    /// The tokens of one piece, which byte-pair merges stay inside.
    fn count_piece(&self, piece: &str) -> usize;
}

pub(super) fn count(counter: &impl PieceCounter, text: &str) -> usize {
    counter.pretokenizer().split(text).map(|piece| counter.count_piece(piece)).sum()
}

/// Stops at the piece that exceeds `limit`, and before one that is sure to.
pub(super) fn count_up_to(counter: &impl PieceCounter, text: &str, limit: usize) -> Option<usize> {
    let at_least = |text: &str| text.len().div_ceil(LONGEST_TOKEN);
    if at_least(text) > limit {
        return None;
    }
    counter.pretokenizer().split(text).try_fold(0, |count: usize, piece| {
        if count + at_least(piece) > limit {
            return None;
        }
        let count = count + counter.count_piece(piece);
        (count <= limit).then_some(count)
    })
}

/// Counts again only what lies around the borders of the parts.
///
/// A part with a safe cut is a head up to its first, a middle, and a tail from its last. The count
/// of the middle is that of the part less those of head and tail, whatever stands around it; so
/// only the windows that join a tail, parts without a cut and a head need counting. A border that
/// is a safe cut itself needs no window.
pub(super) fn count_joined(counter: &impl PieceCounter, parts: &[CountedText<'_>]) -> usize {
    let count = |text: &str| count(counter, text);
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
