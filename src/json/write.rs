use std::fmt::{self, Write};

use super::Value;

/// Writes the value as compact JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(flag) => flag.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::String(text) => write_string(f, text),
            Value::Array(array) => {
                f.write_char('[')?;
                for (index, value) in array.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    value.fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Object(object) => {
                f.write_char('{')?;
                for (index, (key, value)) in object.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    write_string(f, key)?;
                    f.write_char(':')?;
                    value.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

/// Writes `text` as a JSON string: what must be escaped is, everything else stands as it is.
fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest.bytes().position(must_be_escaped) {
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
