use std::{
    borrow::Cow,
    fmt,
    ops::{Deref, Range},
    sync::{Arc, OnceLock},
};

/// A text has no more pieces: one that would have more is copied whole.
const MOST_PIECES: usize = 64;
/// A piece that is shared with an earlier text has at least so many bytes.
const LEAST_SHARED: usize = 256;

/// The text of a body. It shares what it begins and ends with with the text of an earlier body, so
/// the requests of a conversation take little more memory than the last of them.
///
/// It reads as a `str`, which is put together when it is first asked for, and kept. A clone shares
/// the pieces alone.
///
/// ```
/// use afterimage::transcript::BodyText;
///
/// let text = BodyText::from("{\"messages\":[]}");
/// assert_eq!(text.len(), 15);
/// assert_eq!(text.part(2..10).as_deref(), Some("messages"));
/// assert!(text.starts_with('{'));
/// ```
#[derive(Default)]
pub struct BodyText {
    pieces: Vec<Piece>,
    len: usize,
    whole: OnceLock<Arc<str>>,
}

/// A range of a text, which is not empty and begins and ends between characters.
#[derive(Clone)]
struct Piece {
    text: Arc<str>,
    range: Range<usize>,
}

impl Piece {
    fn as_str(&self) -> &str {
        self.text.get(self.range.clone()).unwrap_or_default()
    }
}

impl BodyText {
    /// The text of these bytes, which shares with `earlier` what both begin and end with; `None`
    /// where they are no UTF-8. `start` is what [`BodyText::shared_with`] found.
    ///
    /// Copies what is new.
    pub(crate) fn after(earlier: &Self, start: usize, bytes: &[u8]) -> Option<Self> {
        let most = bytes.len().min(earlier.len);
        let start = earlier.boundary_at_most(start);
        let end =
            shared_end(earlier.chunks().rev(), [bytes].into_iter(), most.saturating_sub(start));
        // The end begins between characters.
        let end = earlier.len - earlier.boundary_at_least(earlier.len - end);
        let start = if start < LEAST_SHARED { 0 } else { start };
        let end = if end < LEAST_SHARED { 0 } else { end };
        // What shares little would keep an earlier text in memory for it.
        if (start + end).saturating_mul(2) < bytes.len() {
            return Self::of_bytes(bytes);
        }
        let own = std::str::from_utf8(bytes.get(start..bytes.len() - end)?).ok()?;
        let mut pieces = earlier.cut_out(0..start);
        if !own.is_empty() {
            pieces.push(Piece { text: own.into(), range: 0..own.len() });
        }
        pieces.extend(earlier.cut_out(earlier.len - end..earlier.len));
        if pieces.len() > MOST_PIECES {
            return Self::of_bytes(bytes);
        }
        Some(Self { pieces, len: bytes.len(), whole: OnceLock::new() })
    }

    /// The text of these bytes; `None` where they are no UTF-8.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(Self::from)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole text. Puts it together where it was not yet: linear in it.
    pub fn as_str(&self) -> &str {
        match self.pieces.as_slice() {
            [] => "",
            [piece] => piece.as_str(),
            _ => self.whole.get_or_init(|| self.joined()),
        }
    }

    /// The whole text, shared where it stands by itself, and else put together. Linear in the text
    /// then.
    pub fn to_shared(&self) -> Arc<str> {
        match self.pieces.as_slice() {
            [Piece { text, range }] if *range == (0..text.len()) => Arc::clone(text),
            _ => self.whole.get().map_or_else(|| self.joined(), Arc::clone),
        }
    }

    /// The text in a range of bytes; `None` past the end, and where the range cuts a character.
    /// Copies no more than the range, and that only where it is in several pieces.
    pub fn part(&self, range: Range<usize>) -> Option<Cow<'_, str>> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        let mut at = 0;
        let mut found: Option<Cow<'_, str>> = None;
        for piece in &self.pieces {
            let text = piece.as_str();
            let end = at + text.len();
            if end > range.start || (end == range.start && range.is_empty()) {
                let from = range.start.max(at) - at;
                let part = text.get(from..range.end.min(end) - at)?;
                found = Some(match found {
                    None => Cow::Borrowed(part),
                    Some(before) => Cow::Owned(before.into_owned() + part),
                });
            }
            if end >= range.end {
                break;
            }
            at = end;
        }
        Some(found.unwrap_or_default())
    }

    /// The byte at an offset.
    pub(crate) fn byte(&self, offset: usize) -> Option<u8> {
        let mut at = offset;
        for piece in &self.pieces {
            match piece.as_str().as_bytes().get(at) {
                Some(byte) => return Some(*byte),
                None => at -= piece.range.len(),
            }
        }
        None
    }

    /// How many bytes two texts begin with alike. What they share is not looked at.
    pub(crate) fn shared_start(&self, other: &Self) -> usize {
        shared_start(self.chunks(), other.chunks())
    }

    /// How many bytes two texts have alike from these offsets on. What they share is not looked at.
    pub(crate) fn shared_from(&self, from: usize, other: &Self, other_from: usize) -> usize {
        shared_start(self.chunks_from(from), other.chunks_from(other_from))
    }

    /// Whether the last bytes of two texts are the same, from these offsets on. What they share is
    /// not looked at.
    pub(crate) fn ends_alike(&self, from: usize, other: &Self, other_from: usize) -> bool {
        let (own, others) = (self.len.checked_sub(from), other.len.checked_sub(other_from));
        own.is_some_and(|most| {
            own == others && shared_end(self.chunks().rev(), other.chunks().rev(), most) == most
        })
    }

    /// How many bytes it begins with as these bytes do.
    pub(crate) fn shared_with(&self, bytes: &[u8]) -> usize {
        shared_start(self.chunks(), [bytes].into_iter())
    }

    /// The texts that its pieces are of.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pieces.iter().map(|piece| &piece.text)
    }

    fn chunks(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| piece.as_str().as_bytes())
    }

    fn chunks_from(&self, from: usize) -> impl Iterator<Item = &[u8]> {
        let mut left = from;
        self.chunks().map(move |chunk| {
            let skipped = left.min(chunk.len());
            left -= skipped;
            chunk.get(skipped..).unwrap_or_default()
        })
    }

    fn joined(&self) -> Arc<str> {
        let mut whole = String::with_capacity(self.len);
        self.pieces.iter().for_each(|piece| whole.push_str(piece.as_str()));
        whole.into()
    }

    /// The pieces of a range that cuts no character.
    fn cut_out(&self, range: Range<usize>) -> Vec<Piece> {
        let mut at = 0;
        let mut pieces = Vec::new();
        for Piece { text, range: own } in &self.pieces {
            let end = at + own.len();
            let (from, to) = (range.start.max(at), range.end.min(end));
            if from < to {
                let range = own.start + from - at..own.start + to - at;
                pieces.push(Piece { text: Arc::clone(text), range });
            }
            at = end;
        }
        pieces
    }

    /// The last place between characters that is not after `offset`.
    fn boundary_at_most(&self, offset: usize) -> usize {
        (0..=offset).rev().find(|at| self.is_boundary(*at)).unwrap_or_default()
    }

    /// The first place between characters that is not before `offset`.
    fn boundary_at_least(&self, offset: usize) -> usize {
        (offset..self.len).find(|at| self.is_boundary(*at)).unwrap_or(self.len)
    }

    fn is_boundary(&self, offset: usize) -> bool {
        // A byte that goes on in a character begins with the bits 10.
        self.byte(offset).is_none_or(|byte| byte & 0xc0 != 0x80)
    }
}

/// How many bytes two texts in chunks begin with alike. The same memory is not looked at.
fn shared_start<'c>(
    mut one: impl Iterator<Item = &'c [u8]>,
    mut other: impl Iterator<Item = &'c [u8]>,
) -> usize {
    let mut shared = 0;
    let (mut own, mut others): (&[u8], &[u8]) = (&[], &[]);
    loop {
        if own.is_empty() {
            let Some(next) = one.next() else { return shared };
            own = next;
            continue;
        }
        if others.is_empty() {
            let Some(next) = other.next() else { return shared };
            others = next;
            continue;
        }
        let both = own.len().min(others.len());
        let ((left, own_rest), (right, others_rest)) = (own.split_at(both), others.split_at(both));
        let same = if std::ptr::eq(left, right) { both } else { same_start(left, right) };
        shared += same;
        if same < both {
            return shared;
        }
        (own, others) = (own_rest, others_rest);
    }
}

/// How many bytes two texts end with alike, `most` at most. They give their chunks from the last on.
fn shared_end<'c>(
    mut one: impl Iterator<Item = &'c [u8]>,
    mut other: impl Iterator<Item = &'c [u8]>,
    most: usize,
) -> usize {
    let mut shared = 0;
    let (mut own, mut others): (&[u8], &[u8]) = (&[], &[]);
    while shared < most {
        if own.is_empty() {
            let Some(next) = one.next() else { return shared };
            own = next;
            continue;
        }
        if others.is_empty() {
            let Some(next) = other.next() else { return shared };
            others = next;
            continue;
        }
        let both = own.len().min(others.len()).min(most - shared);
        let ((own_rest, left), (others_rest, right)) =
            (own.split_at(own.len() - both), others.split_at(others.len() - both));
        let same = if std::ptr::eq(left, right) { both } else { same_end(left, right) };
        shared += same;
        if same < both {
            return shared;
        }
        (own, others) = (own_rest, others_rest);
    }
    shared
}

/// How much is compared at once.
const STEP: usize = 4096;

fn same_start(one: &[u8], other: &[u8]) -> usize {
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let same = STEP * steps.take_while(|(one, other)| one == other).count();
    let rest = |bytes| <[u8]>::get(bytes, same..).unwrap_or_default();
    same + rest(one).iter().zip(rest(other)).take_while(|(one, other)| one == other).count()
}

fn same_end(one: &[u8], other: &[u8]) -> usize {
    let steps = one.rchunks_exact(STEP).zip(other.rchunks_exact(STEP));
    let same = STEP * steps.take_while(|(one, other)| one == other).count();
    let rest = |bytes: &'_ [u8]| bytes.len().saturating_sub(same);
    let (left, right) = (one.get(..rest(one)), other.get(..rest(other)));
    let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
    let both = left.iter().rev().zip(right.iter().rev());
    same + both.take_while(|(one, other)| one == other).count()
}

impl Clone for BodyText {
    fn clone(&self) -> Self {
        Self { pieces: self.pieces.clone(), len: self.len, whole: OnceLock::new() }
    }
}

impl PartialEq for BodyText {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.shared_start(other) == self.len
    }
}

impl Eq for BodyText {}

impl fmt::Debug for BodyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_shared(), f)
    }
}

impl fmt::Display for BodyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| f.write_str(piece.as_str()))
    }
}

impl Deref for BodyText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<Arc<str>> for BodyText {
    fn from(text: Arc<str>) -> Self {
        let len = text.len();
        let piece = Piece { text, range: 0..len };
        let pieces = if len == 0 { Vec::new() } else { vec![piece] };
        Self { pieces, len, whole: OnceLock::new() }
    }
}

impl From<&str> for BodyText {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<String> for BodyText {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(earlier: &BodyText, bytes: &[u8]) -> Option<BodyText> {
        BodyText::after(earlier, earlier.shared_with(bytes), bytes)
    }

    #[test]
    fn a_growing_text_keeps_what_is_new_alone() {
        let mut items: Vec<String> = Vec::new();
        let tools = "t".repeat(1000);
        let body = |items: &[String]| format!("{{\"items\":[{}],{tools}}}", items.join(","));
        let mut text = BodyText::from(body(&items));
        let mut own = 0;
        for at in 0..50 {
            items.push(format!("\"{at}é{}\"", "x".repeat(300)));
            let next = after(&text, body(&items).as_bytes()).unwrap();
            assert!(next.shared_start(&text) > 0);
            let new = |piece: &&Piece| {
                !text.pieces.iter().any(|known| Arc::ptr_eq(&known.text, &piece.text))
            };
            own += next.pieces.iter().filter(new).map(|piece| piece.text.len()).sum::<usize>();
            text = next;
        }
        assert_eq!(text.as_str(), body(&items));
        assert!(own < 50 * 320, "{own}");
    }

    proptest! {
        #[test]
        fn a_text_after_any_other_is_its_bytes(
            texts in prop::collection::vec((0_usize..4, "[aé€]{0,9}", 0_usize..900, 0_usize..900), 1..90),
        ) {
            let mut text = BodyText::default();
            let mut whole = String::new();
            for (grows, new, start, end) in texts {
                let cut = |at: usize| whole.floor_char_boundary(at.min(whole.len()));
                whole = match grows {
                    0 => new.repeat(200),
                    _ => [&whole[..cut(whole.len() - cut(start))], &new, &whole[cut(whole.len() - cut(end))..]].concat(),
                };
                let next = after(&text, whole.as_bytes()).unwrap();
                prop_assert_eq!(next.len(), whole.len());
                let alike = whole.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
                prop_assert_eq!(next.shared_start(&text), alike);
                prop_assert_eq!(next.shared_with(text.as_bytes()), alike);
                for range in [0..start, start..start + end, start..whole.len()] {
                    let expected = whole.get(range.clone());
                    let part = next.part(range);
                    prop_assert_eq!(part.as_deref(), expected);
                }
                prop_assert_eq!(next.byte(start), whole.as_bytes().get(start).copied());
                let (from, other) = (whole.len().saturating_sub(end), text.len().saturating_sub(end));
                let is_alike = whole.as_bytes()[from..] == text.as_bytes()[other..];
                prop_assert_eq!(next.ends_alike(from, &text, other), is_alike);
                prop_assert_eq!(next == text, *whole == *text.as_str());
                prop_assert!(next.pieces.len() <= MOST_PIECES);
                prop_assert_eq!(&*next.to_shared(), &whole);
                let clone = next.clone();
                prop_assert_eq!(clone.as_str(), &whole);
                text = next;
            }
        }

        #[test]
        fn no_bytes_are_taken_for_a_text_that_are_none(
            start in "[aé€]{0,400}", middle in prop::collection::vec(any::<u8>(), 0..5), end in "[aé€]{0,400}",
            before in "[aé€]{0,3}",
        ) {
            let earlier = BodyText::from([&*start, &before, &end].concat());
            let bytes = [start.as_bytes(), &middle, end.as_bytes()].concat();
            let expected = std::str::from_utf8(&bytes).ok();
            let found = after(&earlier, &bytes);
            prop_assert_eq!(found.as_deref(), expected);
        }
    }
}
