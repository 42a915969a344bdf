use std::ops::Range;

/// The text of a segment, or what is left of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentText {
    text: String,
    /// The runs that are left, rising; `None` where nothing was dropped.
    kept: Option<Box<[KeptRun]>>,
}

/// A run of the segment's text that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptRun {
    /// Where it stands in the segment.
    pub(super) start: u32,
    pub(super) len: u32,
    /// Where it is kept.
    pub(super) at: u32,
}

impl SegmentText {
    /// What is left of a segment's text; `None` where the runs do not fit the text.
    pub(super) fn from_parts(text: String, kept: Option<Box<[KeptRun]>>) -> Option<Self> {
        let mut end = (0, 0);
        for kept in kept.iter().flatten() {
            let is_next = kept.at as usize == end.1 && kept.start as usize >= end.0;
            end = (kept.start as usize + kept.len as usize, end.1 + kept.len as usize);
            if !is_next || !text.is_char_boundary(end.1) {
                return None;
            }
        }
        (kept.is_none() || end.1 == text.len()).then_some(Self { text, kept })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.kept.is_none()
    }

    /// The bytes that are there, one after the other.
    pub(super) fn held(&self) -> &str {
        &self.text
    }

    pub(super) fn kept(&self) -> Option<&[KeptRun]> {
        self.kept.as_deref()
    }

    /// The text at a range of the segment; `None` where some of it was dropped. Runs in
    /// O(log(runs)) time.
    pub(super) fn get(&self, range: Range<u32>) -> Option<&str> {
        let (start, len) = (range.start, range.end.checked_sub(range.start)?);
        let start = match &self.kept {
            None => start,
            Some(_) if len == 0 => return Some(""),
            Some(kept) => {
                let after = kept.partition_point(|kept| kept.start <= start);
                let kept = kept.get(after.checked_sub(1)?)?;
                let inside = start - kept.start;
                if inside.checked_add(len)? > kept.len {
                    return None;
                }
                kept.at + inside
            }
        } as usize;
        self.text.get(start..start + len as usize)
    }

    /// Appends to a text that is whole. Grows by doubling, by a quarter of `most` at most, so that
    /// little is moved and little reserved.
    pub(super) fn push(&mut self, text: &str, most: usize) {
        let needed = self.text.len() + text.len();
        if needed > self.text.capacity() {
            let capacity = self.text.capacity();
            let room = (capacity * 2).min(capacity + most / 4);
            let room = room.clamp(most / 16, most).max(needed);
            self.text.reserve_exact(room - self.text.len());
        }
        self.text.push_str(text);
    }

    pub(super) fn reserve(&mut self, bytes: usize) {
        self.text.reserve_exact(bytes);
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
    }

    /// The text without this range of the segment, which is `len` bytes long. Copies what stays.
    pub(super) fn without(&self, len: u32, dropped: &Range<u32>) -> Self {
        let whole = [KeptRun { start: 0, len, at: 0 }];
        let mut runs: Vec<KeptRun> = Vec::new();
        let mut text = String::new();
        for kept in self.kept.as_deref().unwrap_or(&whole) {
            let (start, end) = (kept.start, kept.start + kept.len);
            let before = start..end.min(dropped.start).max(start);
            let after = start.max(dropped.end).min(end)..end;
            for range in [before, after].into_iter().filter(|range| !range.is_empty()) {
                let (start, len) = (range.start, range.end - range.start);
                match runs.last_mut().filter(|last| last.start + last.len == start) {
                    // Nothing was dropped between them.
                    Some(last) => last.len += len,
                    None => runs.push(KeptRun { start, len, at: text.len() as u32 }),
                }
                text.push_str(self.get(range).unwrap_or_default());
            }
        }
        text.shrink_to_fit();
        Self { text, kept: Some(runs.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_where_it_was_and_what_went_is_gone() {
        let mut text = SegmentText::default();
        text.push("0123456789", 64);
        let once = text.without(10, &(2..4)).without(10, &(4..4)).without(10, &(7..8));
        assert_eq!(once.held(), "0145689");
        assert_eq!(
            (once.get(0..2), once.get(4..7), once.get(8..10)),
            (Some("01"), Some("456"), Some("89"))
        );
        assert_eq!(
            (once.get(1..3), once.get(2..3), once.get(7..8), once.get(3..3)),
            (None, None, None, Some(""))
        );
        assert_eq!(once.without(10, &(5..5)).get(4..7), Some("456"));
        let twice = once.without(10, &(0..1)).without(10, &(3..6));
        assert_eq!(
            (twice.held(), twice.get(1..2), twice.get(6..7)),
            ("1689", Some("1"), Some("6"))
        );
        let all = twice.without(10, &(0..10));
        assert_eq!((all.held(), all.get(1..2)), ("", None));
        let kept = twice.kept().map(Box::from);
        assert_eq!(SegmentText::from_parts("1689".to_owned(), kept.clone()), Some(twice));
        assert_eq!(SegmentText::from_parts("168".to_owned(), kept), None);
    }
}
