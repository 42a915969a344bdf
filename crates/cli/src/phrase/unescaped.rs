//! A text with the escapes of JSON read as what they stand for.

use afterimage::text::TextRange;

/// A text that was unescaped, and where each part of it comes from.
pub(super) struct Unescaped {
    text: String,
    /// Where runs of the text begin, here and in the text that it was made of.
    runs: Vec<(usize, usize)>,
}

impl Unescaped {
    /// Reads the escapes of `text`; `None` where it has none. It need not be JSON: what is no
    /// escape stays as it is.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut out = Self { text: String::new(), runs: vec![(0, 0)] };
        let mut done = 0;
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find('\\')).map(|at| from + at) {
            let Some((c, length)) = text.get(at..).and_then(escape) else {
                from = at + 1;
                continue;
            };
            out.text.push_str(text.get(done..at).unwrap_or_default());
            // A place that begins with the escape begins where the escape does.
            out.runs.push((out.text.len(), at));
            out.text.push(c);
            done = at + length;
            out.runs.push((out.text.len(), done));
            from = done;
        }
        if done == 0 {
            return None;
        }
        out.text.push_str(text.get(done..).unwrap_or_default());
        Some(out)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a place in it is in the text that it was made of.
    pub(super) fn outer(&self, range: TextRange) -> TextRange {
        let position = |at: usize| {
            let run = self.runs.partition_point(|(own, _)| *own <= at).checked_sub(1);
            run.and_then(|run| self.runs.get(run)).map_or(at, |(own, outer)| outer + (at - own))
        };
        let start = position(range.start());
        TextRange::at(start, position(range.end()).saturating_sub(start))
    }
}

/// The character that the escape at the beginning of `text` stands for, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let c = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((c, 2))
}

/// The character that `\uXXXX` stands for, or two of them that are one. Half of one is no
/// character.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.chars().all(|c| c.is_ascii_hexdigit()).then_some(())?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    let c = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((c, 12))
}
