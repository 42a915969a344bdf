use std::{borrow::Cow, ops::Range};

use unicode_segmentation::{GraphemeCursor, GraphemeIncomplete};

use super::{
    FrameSnapshot, SnapshotOptions,
    chunk::{Chunk, Part, Rare},
    frame_snapshot::OwnBody,
    split::split,
    tiling::{Nesting, Tiling},
};
use crate::{id::ChunkType, text::TextRange, tokens::TokenCounter};

/// What is left of a text at least.
const LEAST_TOKENS: u64 = 16;
/// About what a marker takes.
const MARKER_TOKENS: u64 = 24;

/// What is left out of a text: from where its beginning ends to where its end begins.
type Cut = (usize, usize);

/// A text whose middle is left out.
pub(crate) struct CutText<'t> {
    /// All of it.
    pub(crate) text: &'t str,
    /// The middle.
    pub(crate) range: Range<usize>,
    /// The tokens of the middle.
    pub(crate) tokens: u64,
    /// Whether somebody says it: it is no result of a tool.
    pub(crate) is_said: bool,
}

impl FrameSnapshot {
    /// The snapshot with the middle of its longest texts left out, so that it comes to about
    /// `limit` tokens; `None` where that makes it no shorter. Where text is missing stands what
    /// `marker` says of it, as formatting of the facet.
    ///
    /// Tags, tool calls, images and opaque blocks stay whole: half of a call's arguments is no
    /// call.
    pub(crate) fn shortened(
        &self,
        counter: &dyn TokenCounter,
        limit: u64,
        marker: impl Fn(&CutText<'_>) -> String,
    ) -> Option<Self> {
        let own = self.own();
        let OwnBody { text: whole, chunks } = &*own;
        let cuts = self.cuts(chunks, whole, counter, limit);
        if cuts.iter().all(Option::is_none) {
            return None;
        }
        let mut tiling =
            Tiling::with_capacity(SnapshotOptions::default(), chunks.len() + 2, whole.len());
        // Where the chunks of this snapshot begin in the new one.
        let mut places: Vec<usize> = Vec::with_capacity(cuts.len());
        for (chunk, cut) in chunks.iter().zip(cuts) {
            let nesting = nesting(chunk, &places);
            places.push(tiling.len());
            let text = chunk.range.of(whole);
            let plain = without_structure(chunk);
            let Some((head, tail)) = cut else {
                tiling.add_counted(text, plain, nesting);
                continue;
            };
            let range = head..tail;
            let (head, tail) = (text.get(..head)?, text.get(tail..)?);
            let counted = |text: &str| counter.count(text) as u64;
            let kept = [counted(head), counted(tail)];
            let tokens = chunk.tokens.saturating_sub(kept.iter().sum());
            let marker = marker(&CutText { text, range, tokens, is_said: is_said(chunk) });
            let said =
                Chunk { chunk_type: Some(ChunkType::FORMATTING), rare: None, ..plain.clone() };
            for (text, tokens, chunk) in [
                (head, kept[0], plain.clone()),
                (&*marker, counted(&marker), said),
                (tail, kept[1], plain),
            ] {
                tiling.add_counted(text, Chunk { tokens, ..chunk }, nesting);
            }
        }
        let exact = tiling.exact_tokens(counter);
        let shorter = tiling.build(self.captured_at, Some(exact), self.identity.clone());
        (shorter.total_tokens < self.total_tokens).then_some(shorter)
    }

    /// The snapshot with its texts as `write` writes them, where it changes any. It is told of each
    /// whether somebody says it.
    pub(crate) fn rewritten(
        &self,
        counter: &dyn TokenCounter,
        write: impl Fn(&str, bool) -> Cow<'_, str>,
    ) -> Option<Self> {
        let own = self.own();
        let OwnBody { text: whole, chunks } = &*own;
        let written = |chunk: &Chunk| {
            let text = chunk.range.of(whole);
            let is_own = matches!(chunk.part, Part::Call { .. })
                || chunk.chunk_type == Some(ChunkType::FORMATTING);
            if is_own { text.into() } else { write(text, is_said(chunk)) }
        };
        let texts: Vec<Cow<'_, str>> = chunks.iter().map(written).collect();
        if texts.iter().all(|text| matches!(text, Cow::Borrowed(_))) {
            return None;
        }
        let mut tiling =
            Tiling::with_capacity(SnapshotOptions::default(), chunks.len(), whole.len());
        let mut places: Vec<usize> = Vec::with_capacity(chunks.len());
        for (chunk, text) in chunks.iter().zip(texts) {
            let nesting = nesting(chunk, &places);
            places.push(tiling.len());
            let tokens = match text {
                Cow::Borrowed(_) => chunk.tokens,
                Cow::Owned(_) => counter.count(&text) as u64,
            };
            let plain = Chunk { tokens, ..without_structure(chunk) };
            tiling.add_counted(&text, plain, nesting);
        }
        let exact = tiling.exact_tokens(counter);
        Some(tiling.build(self.captured_at, Some(exact), self.identity.clone()))
    }

    /// Where to cut each chunk, the longest texts first, until about `limit` tokens are left.
    fn cuts(
        &self,
        chunks: &[Chunk],
        text: &str,
        counter: &dyn TokenCounter,
        limit: u64,
    ) -> Vec<Option<Cut>> {
        let mut excess = self.exact_tokens.unwrap_or(self.total_tokens).saturating_sub(limit);
        let mut cuts = vec![None; chunks.len()];
        let mut longest: Vec<(&Chunk, &mut Option<Cut>)> =
            chunks.iter().zip(&mut cuts).filter(|(chunk, _)| is_long_text(chunk)).collect();
        longest.sort_by_key(|(chunk, _)| u64::MAX - chunk.tokens);
        for (chunk, cut) in longest {
            if excess == 0 {
                break;
            }
            let keep = chunk.tokens.saturating_sub(excess + MARKER_TOKENS).max(LEAST_TOKENS);
            *cut = Some(ends(chunk.range.of(text), chunk.tokens, keep, counter));
            excess = excess.saturating_sub(chunk.tokens.saturating_sub(keep + MARKER_TOKENS));
        }
        cuts
    }
}

/// Whether somebody says the text of a chunk: it is no result of a tool.
fn is_said(chunk: &Chunk) -> bool {
    matches!(chunk.part, Part::Text)
}

/// Whether the middle of a chunk may be left out, and is worth a marker.
fn is_long_text(chunk: &Chunk) -> bool {
    matches!(chunk.part, Part::Text | Part::Result { .. } | Part::Reasoning)
        && chunk.chunk_type != Some(ChunkType::FORMATTING)
        && chunk.tokens > LEAST_TOKENS + MARKER_TOKENS
}

/// Where a chunk is nested, once those before it stand at `places`.
pub(super) fn nesting(chunk: &Chunk, places: &[usize]) -> Option<Nesting> {
    let structure = chunk.rare.as_ref()?.structure.as_ref()?;
    Some(Nesting { level: structure.level, parent: *places.get(structure.parent?)? })
}

/// The chunk without its place, which is another in the new snapshot.
pub(super) fn without_structure(chunk: &Chunk) -> Chunk {
    let rare = chunk.rare.clone().and_then(|rare| Rare { structure: None, ..*rare }.boxed());
    Chunk { rare, range: TextRange::default(), ..chunk.clone() }
}

/// Where the beginning of a text ends and its end begins, so that both together have at most
/// `keep` of its tokens; each cut at a good place.
fn ends(text: &str, tokens: u64, keep: u64, counter: &dyn TokenCounter) -> Cut {
    let mut bytes = (text.len() as u128 * u128::from(keep) / u128::from(tokens.max(1))) as usize;
    while bytes >= 8 {
        let head = beginning_of(text, bytes * 3 / 5);
        let tail = end_of(text, bytes * 2 / 5).max(head);
        let count = |piece: Option<&str>| counter.count(piece.unwrap_or_default()) as u64;
        let found = count(text.get(..head)) + count(text.get(tail..));
        if found <= keep {
            return (head, tail);
        }
        bytes = (bytes as u64 * keep / found) as usize * 15 / 16;
    }
    (0, text.len())
}

/// Where the first `bytes` of a text end, or what comes before a `<` that the text after them
/// kept from beginning a tag.
fn beginning_of(text: &str, bytes: usize) -> usize {
    let head = split(text, bytes).next().unwrap_or_default();
    let end = border(text, head.len(), GraphemeCursor::prev_boundary).unwrap_or(0);
    let head = text.get(..end).unwrap_or_default();
    let could_be_name =
        |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || !c.is_ascii();
    let could_precede = |c: char| c == '/' || c.is_whitespace() || c.is_control() || !c.is_ascii();
    let is_open = |after: &str| after.trim_start_matches(could_precede).chars().all(could_be_name);
    let open = head.rsplit_once('<').filter(|(_, after)| is_open(after));
    open.map_or(head, |(before, _)| before).len()
}

/// Where the last `bytes` of a text begin, or what follows the next white space in their first
/// third.
fn end_of(text: &str, bytes: usize) -> usize {
    let from = (text.len() - bytes.min(text.len())..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let rest = text.get(from..).unwrap_or_default();
    // Whole lines stay whole.
    let is_begun = text.get(..from).is_none_or(|before| before.ends_with('\n'));
    let mut spaces = rest.char_indices().take_while(|(at, _)| !is_begun && *at <= bytes / 3);
    let at =
        spaces.find(|(_, c)| c.is_whitespace()).map_or(from, |(at, c)| from + at + c.len_utf8());
    border(text, at, GraphemeCursor::next_boundary).unwrap_or(text.len())
}

/// The border of a character as a reader sees it that is at a place, or beside it.
fn border(
    text: &str,
    at: usize,
    beside: fn(&mut GraphemeCursor, &str, usize) -> Result<Option<usize>, GraphemeIncomplete>,
) -> Option<usize> {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => beside(&mut cursor, text, 0).ok().flatten(),
        _ => Some(at),
    }
}
