use std::ops::Range;

/// A text as lines: what stands in each, and how it ends.
///
/// A line ends with `\n`, `\r\n` or `\r`, as in `CommonMark`. Two texts whose lines say the same
/// are the same document, whatever ends their lines and whether the last one is ended.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    text: String,
    /// Where the first line begins: after byte order marks, so that no first line begins with one.
    start: usize,
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    /// Where the next line begins.
    next: usize,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// How a line may end, with what that is called.
const ENDS: [(&str, &str); 4] = [("\n", "LF"), ("\r\n", "CRLF"), ("\r", "CR"), ("", "none")];

fn name_of(end: &str) -> &'static str {
    ENDS.iter().find_map(|(known, name)| (*known == end).then_some(*name)).unwrap_or("none")
}

impl Lines {
    /// Linear in the text.
    pub(super) fn new(text: String) -> Self {
        let first = text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len();
        let mut spans = Vec::new();
        let mut start = first;
        let bytes = text.as_bytes();
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes).filter(|at| *at >= first);
        for end in ends {
            if end < start {
                // The `\n` of a `\r\n`.
                continue;
            }
            let is_pair = bytes.get(end) == Some(&b'\r') && bytes.get(end + 1) == Some(&b'\n');
            let next = end + if is_pair { 2 } else { 1 };
            spans.push(Span { start, end, next });
            start = next;
        }
        if start < text.len() {
            spans.push(Span { start, end: text.len(), next: text.len() });
        }
        Self { text, start: first, spans }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The line at `index`, from zero, without its end; empty past the last.
    pub(super) fn get(&self, index: usize) -> &str {
        let span = self.spans.get(index);
        span.and_then(|span| self.text.get(span.start..span.end)).unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.spans.iter().map(|span| self.text.get(span.start..span.end).unwrap_or_default())
    }

    /// The lines of a range, parted by `\n`.
    pub(super) fn joined(&self, range: Range<usize>) -> String {
        let lines: Vec<&str> = range.map(|index| self.get(index)).collect();
        lines.join("\n")
    }

    /// Where the line at `index` begins; the end of the text past the last.
    pub(super) fn offset(&self, index: usize) -> usize {
        self.spans.get(index).map_or(self.text.len(), |span| span.start)
    }

    /// The line that holds the byte at `offset`. Runs in O(log n).
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.spans.partition_point(|span| span.next <= offset)
    }

    /// How the line at `index` ends; nothing where it is the last and is not ended.
    fn end(&self, index: usize) -> &str {
        let span = self.spans.get(index);
        span.and_then(|span| self.text.get(span.end..span.next)).unwrap_or_default()
    }

    /// How lines end here: as the first does.
    fn usual_end(&self) -> &str {
        match self.end(0) {
            "" => "\n",
            end => end,
        }
    }

    /// The line at `index` with its end, and with byte order marks where it is the first.
    pub(super) fn whole(&self, index: usize) -> Option<&str> {
        let span = self.spans.get(index)?;
        self.text.get(if index == 0 { 0 } else { span.start }..span.next)
    }

    /// How the lines end, in words: `CRLF, 9 none`. First `BOM` for each byte order mark, then how
    /// lines end, then the numbers of those that end otherwise.
    pub(super) fn ends(&self) -> String {
        let usual = self.usual_end();
        let marks = self.start / BYTE_ORDER_MARK.len_utf8();
        let mut words = vec!["BOM".to_owned(); marks];
        words.push(name_of(usual).to_owned());
        let mut at = 0;
        while at < self.len() {
            let (first, end) = (at, self.end(at));
            while at < self.len() && self.end(at) == end {
                at += 1;
            }
            if end != usual {
                let last = if at > first + 1 { format!("-{at}") } else { String::new() };
                words.push(format!("{}{last} {}", first + 1, name_of(end)));
            }
        }
        words.join(", ")
    }

    /// The text with its lines ended as [`Lines::ends`] says of another; `None` where the words say
    /// no such thing. Linear in both.
    pub(super) fn ended(&self, words: &str) -> Option<String> {
        let (mut text, mut usual, mut at) = (String::new(), "", 0);
        for word in words.split(", ") {
            let (lines, name) = word.rsplit_once(' ').unwrap_or(("", word));
            if word == "BOM" {
                text.push(BYTE_ORDER_MARK);
                continue;
            }
            let end = ENDS.iter().find_map(|(end, known)| (*known == name).then_some(*end))?;
            if lines.is_empty() {
                usual = end;
                continue;
            }
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
            if first <= at || last < first || last > self.len() {
                return None;
            }
            (at..first - 1).for_each(|line| text.extend([self.get(line), usual]));
            (first - 1..last).for_each(|line| text.extend([self.get(line), end]));
            at = last;
        }
        (at..self.len()).for_each(|line| text.extend([self.get(line), usual]));
        Some(text)
    }

    /// A fingerprint of what the lines say: the beginning of a BLAKE3 hash.
    pub(super) fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for line in self.iter() {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        hasher.finalize().to_hex().chars().take(8).collect()
    }

    /// The text with the lines that `edited` names. Lines that are kept keep their bytes, new ones
    /// end as lines usually do here.
    pub(super) fn rewritten(&self, edited: &[EditedLine]) -> String {
        let mut text = String::with_capacity(self.text.len());
        text.push_str(self.text.get(..self.start).unwrap_or_default());
        let last = edited.len().saturating_sub(1);
        for (at, line) in edited.iter().enumerate() {
            let (content, end) = match line {
                EditedLine::Kept(index) => match self.end(*index) {
                    "" if at < last => (self.get(*index), self.usual_end()),
                    end => (self.get(*index), end),
                },
                EditedLine::New(content) => (content.as_str(), self.usual_end()),
            };
            if content.is_empty() && end == "\n" && text.ends_with('\r') {
                // The two would be read as the end of one line.
                text.push('\n');
            }
            text.push_str(content);
            text.push_str(end);
        }
        text
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

/// A line of a text that is written anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditedLine {
    /// The line at this index of the text before.
    Kept(usize),
    /// A line without its end.
    New(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(range: Range<usize>) -> Vec<EditedLine> {
        range.map(EditedLine::Kept).collect()
    }

    #[test]
    fn lines_that_are_kept_keep_their_bytes() {
        for text in ["", "\n", "a", "a\r\nb\rc\n\n", "\u{feff}a\nb", "\r\n\r\n", "a\r\r\n"] {
            let lines = Lines::new(text.to_owned());
            assert_eq!(lines.rewritten(&kept(0..lines.len())), text, "{text:?}");
        }
    }

    #[test]
    fn ends_of_lines_never_melt_into_one() {
        let lines = Lines::new("a\rX\n\nb".to_owned());
        assert_eq!(lines.iter().collect::<Vec<_>>(), ["a", "X", "", "b"]);
        let edited = [EditedLine::Kept(0), EditedLine::Kept(2), EditedLine::Kept(3)];
        let text = lines.rewritten(&edited);
        assert_eq!(Lines::new(text).iter().collect::<Vec<_>>(), ["a", "", "b"]);
    }

    #[test]
    fn ends_of_lines_come_back_from_their_words() {
        let texts =
            ["", "\n", "a\r\nb\rc\n\n", "\u{feff}\u{feff}a\nb", "a\rb\r\n\r\nc\rd", "\u{feff}"];
        for text in texts {
            let lines = Lines::new(text.to_owned());
            let plain: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
            assert_eq!(Lines::new(plain).ended(&lines.ends()).as_deref(), Some(text), "{text:?}");
        }
        let lines = Lines::new("a\nb\n".to_owned());
        assert_eq!(Lines::new("a\r\nb".to_owned()).ends(), "CRLF, 2 none");
        for words in ["", "LFCR", "LF, 3 CR", "LF, 2 CR, 1 CR", "LF, 2-1 CR", "LF, x CR"] {
            assert_eq!(lines.ended(words), None, "{words}");
        }
    }

    #[test]
    fn a_line_after_one_that_was_not_ended_is_a_line_of_its_own() {
        let lines = Lines::new("a\r\nb".to_owned());
        let edited = [EditedLine::Kept(1), EditedLine::New("x".to_owned()), EditedLine::Kept(0)];
        assert_eq!(lines.rewritten(&edited), "b\r\nx\r\na\r\n");
    }
}
