//! What pages of the web begin and end with where somebody pastes them whole.

use std::ops::Range;

use crate::steps::sentence::lower;
use crate::text::words::material::{PAGE_ENDS, PAGE_HEADS};

/// A longer line is none of a page's frame.
const LONGEST: usize = 200;

/// So many parts of a line are at least a bar.
const PARTS: usize = 4;

/// A part of a bar has so many words at most.
const MOST_WORDS: usize = 4;

/// A shorter text above a line that pages end with is no page.
const SHORTEST: usize = 200;

/// Whether a page begins with a line: `Docs | Home | Pricing | Sign in`, `Skip to content`.
pub(super) fn is_page_head(line: &str) -> bool {
    let plain = line.trim();
    let is_label = |part: &str| {
        let words = part.split_whitespace().count();
        (1..=MOST_WORDS).contains(&words) && !part.ends_with(['.', ':', '?', ',', ';'])
    };
    let is_bar = |mark: char| {
        let mut parts = plain.split(mark).map(str::trim);
        plain.matches(mark).count() + 1 >= PARTS && parts.all(is_label)
    };
    let lower = lower(plain);
    plain.len() < LONGEST
        && (['|', '·', '•'].into_iter().any(is_bar)
            || PAGE_HEADS.iter().any(|head| lower.trim_end_matches('.') == *head))
}

/// Whether a page ends with a line: `© 2031 Quay Ltd.`
pub(super) fn is_page_end(line: &str) -> bool {
    let line = line.trim();
    let lower = if line.len() < LONGEST { lower(line) } else { String::new() };
    let plain = lower.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    PAGE_ENDS.iter().any(|end| plain.starts_with(end))
}

/// Where a page stands that only its end shows, up to the last line that pages end with. It begins
/// below the user's first words, if they are a sentence, and below a list that they lead to. What
/// stands in fences or tags is marked.
pub(super) fn page(text: &str) -> Option<Range<usize>> {
    let (mut at, mut end, mut is_marked) = (0, None, text.contains("\n</"));
    for line in text.split_inclusive('\n') {
        at += line.len();
        is_marked ^= ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
        if !is_marked && is_page_head(line) {
            return None;
        }
        end = if !is_marked && is_page_end(line) { Some(at) } else { end };
    }
    let mut begin = 0;
    for paragraph in text.split_inclusive("\n\n") {
        let is_lead = text.get(..begin).is_some_and(|of| of.trim_end().ends_with([':', '：']));
        let is_list = paragraph.trim_start().starts_with(['-', '*', '•', '1']);
        let is_said = paragraph.trim_end().ends_with(['.', '!', '?', ':', '。', '！', '？', '：']);
        if !(is_lead && is_list || begin == 0 && is_said) {
            break;
        }
        begin += paragraph.len();
    }
    end.filter(|end| *end > begin + SHORTEST).map(|end| begin..end)
}
