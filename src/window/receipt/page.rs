use crate::{id::FrameSeq, snapshot::FrameSnapshot, text::TextRange, tokens::TokenCounter};

/// So many tokens of a frame are a page, where nothing else is asked for.
const PAGE: u64 = 1_000;

/// A part of what a frame rendered to.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePage {
    /// The frame.
    pub frame: FrameSeq,
    /// Where the part stands in what the frame rendered to.
    pub range: TextRange,
    /// The text, byte for byte.
    pub text: String,
    /// The exact count of it.
    pub tokens: u64,
    /// Whether it is all that the frame says.
    pub is_whole: bool,
}

impl FramePage {
    /// The tokens of a page where nothing else is asked for.
    pub const LIMIT: u64 = PAGE;

    /// At most `limit` tokens of a frame: all of it, or the part around `around`, which ends at
    /// white space where there is some near. What is at `around` is in it as far as it fits, from
    /// its beginning on. Counts the text as far as `limit`, and parts of it O(log n) times.
    pub fn of(
        frame: FrameSeq,
        snapshot: &FrameSnapshot,
        around: TextRange,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Self {
        let text = snapshot.text();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let count = |range: TextRange| counter.count_up_to(range.of(text), most);
        let whole = TextRange::at(0, text.len());
        let range = if count(whole).is_some() { whole } else { part(text, around, &count) };
        Self {
            frame,
            range,
            text: range.of(text).to_owned(),
            tokens: count(range).unwrap_or(0) as u64,
            is_whole: range == whole,
        }
    }
}

/// The largest part around a place that fits, or nearly so.
fn part(text: &str, around: TextRange, count: &impl Fn(TextRange) -> Option<usize>) -> TextRange {
    let start = border_before(text, around.start().min(text.len()));
    let end = border_after(text, around.end().clamp(start, text.len()));
    let (least, most) = match count(between(start, end)) {
        Some(_) => (between(start, end), text.len()),
        // The place itself is too long: its beginning.
        None => (between(start, start), end - start),
    };
    let is_cut = least.is_empty() && end > start;
    let wider = |more: usize| {
        if is_cut {
            return between(start, border_before(text, start + more));
        }
        // What is not there before the place stands after it, and the other way round.
        let (before, after) = (least.start(), text.len() - least.end());
        let right = (more / 2).max(more.saturating_sub(before)).min(after);
        let left = more.saturating_sub(right).min(before);
        between(border_after(text, least.start() - left), border_before(text, least.end() + right))
    };
    // What fits, and what does not.
    let (mut fits, mut exceeds) = (0, most + 1);
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        if count(wider(middle)).is_some() { fits = middle } else { exceeds = middle }
    }
    let widest = wider(fits);
    let neat = at_blanks(text, widest, least);
    if count(neat).is_some() { neat } else { widest }
}

/// A part of the text that begins and ends at white space, where there is some near.
fn at_blanks(text: &str, widest: TextRange, least: TextRange) -> TextRange {
    let before = text.get(widest.start()..least.start()).unwrap_or_default();
    let after = text.get(least.end()..widest.end()).unwrap_or_default();
    let near = widest.len() / 4;
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let begins = is_blank(text.get(..widest.start()).and_then(|text| text.chars().next_back()));
    let ends = is_blank(text.get(widest.end()..).and_then(|text| text.chars().next()));
    let start = match before.find(char::is_whitespace) {
        Some(at) if !begins && at <= near => {
            let blank = before.get(at..).and_then(|rest| rest.chars().next());
            widest.start() + at + blank.map_or(0, char::len_utf8)
        }
        _ => widest.start(),
    };
    let end = match after.rfind(char::is_whitespace) {
        Some(at) if !ends && after.len() - at <= near => least.end() + at,
        _ => widest.end(),
    };
    between(start, end)
}

fn between(start: usize, end: usize) -> TextRange {
    TextRange::at(start, end.saturating_sub(start))
}

/// The border of a character at a place, or the one before it.
fn border_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The border of a character at a place, or the one after it.
fn border_after(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        id::Millis,
        snapshot::{ChunkOptions, FrameSnapshotBuilder},
        tokens::Chars4,
    };

    fn page(text: &str, around: TextRange, limit: u64) -> FramePage {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content(text, ChunkOptions::new());
        let snapshot = builder.build(Millis::new(0));
        FramePage::of(FrameSeq::new(3), &snapshot, around, limit, &Chars4)
    }

    #[test]
    fn a_page_is_the_frame_or_the_part_around_a_place() {
        let text = "one two three four five six seven eight nine ten";
        let at = |word: &str| TextRange::at(text.find(word).unwrap(), word.len());
        let whole = page(text, at("five"), 12);
        assert!(whole.is_whole && whole.text == text && whole.tokens == 12);
        let part = page(text, at("five"), 6);
        assert_eq!(
            (part.text.as_str(), part.tokens, part.is_whole),
            ("four five six seven", 5, false)
        );
        assert_eq!(part.range.of(text), part.text);
        assert_eq!(page(text, at("one"), 4).text, "one two three");
        assert_eq!(page(text, at("ten"), 4).text, "eight nine ten");
        // A place that is too long is cut at its end.
        assert_eq!(page(text, TextRange::at(4, 30), 2).text, "two thre");
        assert_eq!(page(text, at("five"), 0).text, "");
    }

    #[test]
    fn no_character_is_cut_wherever_a_page_is_asked_for() {
        let text = "日本語のとても長い文章 🦪 und weiter 晨星号".repeat(3);
        for start in 0..text.len() + 4 {
            for (length, limit) in [(0, 5), (7, 2), (30, 9), (usize::MAX, 4)] {
                let found = page(&text, TextRange::at(start, length), limit);
                assert!(found.tokens <= limit && found.range.of(&text) == found.text);
                assert!(!found.text.is_empty(), "{start} {length}");
            }
        }
    }
}
