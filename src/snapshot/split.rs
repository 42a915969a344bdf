use unicode_segmentation::GraphemeCursor;

/// Splits `text` into pieces of at most `max` bytes, each cut at the best place in its last
/// two thirds: after a blank line, a line, a word, or else a character as a reader sees it.
///
/// A piece is longer than `max` only where a single character is. Runs in O(n) time.
pub(super) fn split(text: &str, max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at_checked(cut(rest, max)).unwrap_or((rest, ""));
        rest = tail;
        Some(piece)
    })
}

fn cut(text: &str, max: usize) -> usize {
    if text.len() <= max {
        return text.len();
    }
    let limit = border_at_or_before(text, max);
    // Only what lies between these two is looked at, so that a text without a good place to cut
    // costs no more than any other.
    let from = border_at_or_before(text, limit / 3);
    let window = text.get(from..limit).unwrap_or_default();
    let place = window
        .rfind("\n\n")
        .map(|at| at + 2)
        .or_else(|| window.rfind('\n').map(|at| at + 1))
        .or_else(|| {
            window.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8())
        });
    if let Some(place) = place {
        return from + place;
    }
    let seen = text.get(from..).unwrap_or_default();
    let mut cursor = GraphemeCursor::new(limit, text.len(), true);
    if limit > 0 && cursor.is_boundary(seen, from) == Ok(true) {
        return limit;
    }
    match cursor.prev_boundary(seen, from) {
        Ok(Some(border)) if border > from => border,
        // One character as a reader sees it is longer than a piece may be: cut inside of it, but
        // never inside a code point.
        _ if limit > 0 => limit,
        _ => text.chars().next().map_or(text.len(), char::len_utf8),
    }
}

fn border_at_or_before(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max: usize, expected: &[&str]) {
        assert_eq!(split(text, max).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_text_is_cut_at_the_best_place_in_reach() {
        check("", 4, &[]);
        check("short", 5, &["short"]);
        check("one\n\ntwo three", 8, &["one\n\n", "two ", "three"]);
        check("first\nsecond\nthird", 14, &["first\nsecond\n", "third"]);
        check("unbreakable", 4, &["unbr", "eaka", "ble"]);
    }

    #[test]
    fn no_character_is_cut() {
        check("ééééé", 3, &["é", "é", "é", "é", "é"]);
        check("e\u{301}e\u{301}", 4, &["e\u{301}", "e\u{301}"]);
        check("👩‍👩‍👧x", 12, &["👩‍👩", "\u{200d}👧x"]);
        check("漢字", 1, &["漢", "字"]);
        check(&"\u{301}".repeat(5), 5, &["\u{301}\u{301}", "\u{301}\u{301}", "\u{301}"]);
    }
}
