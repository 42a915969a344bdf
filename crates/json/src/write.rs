use std::fmt::{self, Write};

use super::Value;

/// Writes the value as compact JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl Value {
    /// As `Display`, to any writer: into a string this takes less than through a formatter.
    /// O(text).
    ///
    /// # Errors
    /// That of `out`, which a string never has.
    pub fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Value::Null => out.write_str("null"),
            Value::Bool(flag) => out.write_str(if *flag { "true" } else { "false" }),
            Value::Number(number) => write!(out, "{number}"),
            Value::String(text) => write_string(out, text),
            Value::Array(array) => write_array(out, array, |out, value| value.write(out)),
            Value::Object(object) => write_object(
                out,
                object.iter().map(|(key, value)| (key.as_str(), value)),
                |out, value| value.write(out),
            ),
        }
    }
}

/// Writes a JSON array, each element as `write` does. O(text).
///
/// # Errors
/// Those of `out` and of `write`.
pub fn write_array<W: Write, T>(
    out: &mut W,
    elements: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    out.write_char('[')?;
    for (index, element) in elements.into_iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write(out, element)?;
    }
    out.write_char(']')
}

/// Writes a JSON object, each value as `write` does. O(text).
///
/// # Errors
/// Those of `out` and of `write`.
pub fn write_object<'k, W: Write, T>(
    out: &mut W,
    members: impl IntoIterator<Item = (&'k str, T)>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    out.write_char('{')?;
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_string(out, key)?;
        out.write_char(':')?;
        write(out, value)?;
    }
    out.write_char('}')
}

/// Writes `text` as a JSON string: what must be escaped is, everything else stands as it is.
/// O(text).
///
/// # Errors
/// That of `out`, which a string never has.
pub fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = first_to_escape(rest.as_bytes()) {
        // An escaped byte is ASCII, so both of its ends are character borders.
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.write_str(plain)?;
        match tail.bytes().next() {
            Some(b'"') => out.write_str("\\\"")?,
            Some(b'\\') => out.write_str("\\\\")?,
            Some(b'\n') => out.write_str("\\n")?,
            Some(b'\r') => out.write_str("\\r")?,
            Some(b'\t') => out.write_str("\\t")?,
            Some(0x08) => out.write_str("\\b")?,
            Some(0x0c) => out.write_str("\\f")?,
            Some(byte) => write!(out, "\\u{byte:04x}")?,
            None => {}
        }
        rest = tail.get(1..).unwrap_or_default();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

/// Where the first byte stands that must be escaped. Looks at sixteen bytes at a time, which the
/// compiler turns into a few instructions: most text has nothing to escape for long stretches.
#[allow(clippy::inline_always, reason = "keys are short: the call would cost as much as the look")]
#[inline(always)]
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    const STRIDE: usize = 16;
    let clean = |block: &&[u8]| !block.iter().fold(false, |any, byte| any | must_be_escaped(*byte));
    let skipped = bytes.chunks_exact(STRIDE).take_while(clean).count() * STRIDE;
    let rest = bytes.get(skipped..).unwrap_or_default();
    rest.iter().position(|byte| must_be_escaped(*byte)).map(|at| skipped + at)
}

fn must_be_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_written_as_serde_json_writes_them() {
        let text: String =
            (0..0x180).filter_map(char::from_u32).chain("\u{2028}😀".chars()).collect();
        assert_eq!(Value::from(text.as_str()).to_string(), serde_json::to_string(&text).unwrap());
    }
}
