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
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        // An escaped byte is ASCII, so both ends are character borders.
        out.write_str(text.get(plain..at).unwrap_or_default())?;
        if escape.is_empty() { write!(out, "\\u{byte:04x}") } else { out.write_str(escape) }?;
        plain = at + 1;
    }
    out.write_str(text.get(plain..).unwrap_or_default())?;
    out.write_char('"')
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
