//! Lines of JSON that carry their own checksum, as their last member.

use crate::{Error, ErrorKind, Result};

const NAME: &str = "\"crc\":\"";

/// Adds the checksum to a JSON object of one line: `{"a":1}` becomes `{"a":1,"crc":"561bacaf"}`.
///
/// Runs in O(n) time. The object must not have a member `crc` itself; that is not looked for.
///
/// ```
/// use afterimage_log::line;
///
/// let sealed = line::seal("{\"a\":1}")?;
/// assert_eq!(line::open(&sealed)?, "{\"a\":1}");
/// assert!(line::open(&sealed.replace('1', "2")).is_err());
/// # Ok::<(), afterimage_log::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a text that does not begin with `{` and end with `}`, or is of several
/// lines.
pub fn seal(text: &str) -> Result<String> {
    let body = text.strip_suffix('}').filter(|_| text.starts_with('{') && !text.contains('\n'));
    let Some(body) = body else {
        return Err(Error::expected("a JSON object in one line", "another text"));
    };
    let comma = if is_empty(body) { "" } else { "," };
    Ok(format!("{body}{comma}{NAME}{:08x}\"}}", crc32fast::hash(text.as_bytes())))
}

/// Checks a sealed line, given without its line end, and gives the text that was sealed.
///
/// Runs in O(n) time, with one allocation.
///
/// # Errors
/// [`ErrorKind::Damaged`] where the line does not end with a checksum, or is not what was sealed.
pub fn open(line: &str) -> Result<String> {
    let damaged = |message: String| Error::new(ErrorKind::Damaged, message);
    let split =
        line.rsplit_once(NAME).and_then(|(body, rest)| Some((body, rest.strip_suffix("\"}")?)));
    let Some((body, stated)) = split else {
        return Err(damaged("the line does not end with a checksum".to_owned()));
    };
    let text =
        body.strip_suffix(',').filter(|body| !is_empty(body)).unwrap_or(body).to_owned() + "}";
    let found = format!("{:08x}", crc32fast::hash(text.as_bytes()));
    // Sealing again tells whether the comma is where it belongs, too.
    if found != stated || seal(&text).ok().as_deref() != Some(line) {
        let stated = stated.escape_debug();
        return Err(damaged(format!("the line fails its check: expected {stated}, found {found}")));
    }
    Ok(text)
}

/// Whether an object that begins like this has no member yet.
fn is_empty(body: &str) -> bool {
    body.trim_end_matches([' ', '\t']) == "{"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_sealed_line_is_found() {
        for text in
            ["{}", "{ }", "{\"a\":1}", "{\"name\":\"zoë\",\"list\":[1,2]}", "{\"crc\":\"0\"}"]
        {
            let sealed = seal(text).unwrap();
            assert_eq!(open(&sealed).unwrap(), text);
            for at in 0..sealed.len() {
                for bit in 0..8 {
                    let mut bytes = sealed.clone().into_bytes();
                    bytes[at] ^= 1 << bit;
                    let Ok(changed) = String::from_utf8(bytes) else { continue };
                    assert_eq!(open(&changed).unwrap_err().kind(), ErrorKind::Damaged, "{changed}");
                }
                if sealed.is_char_boundary(at) {
                    assert!(open(&sealed[..at]).is_err());
                }
            }
        }
    }

    #[test]
    fn a_sealed_line_is_json() {
        for text in ["{}", "{ }", "{\"a\":1}"] {
            crate::json::read(seal(text).unwrap().as_bytes()).unwrap();
        }
    }

    #[test]
    fn what_is_no_object_in_one_line_is_not_sealed() {
        for text in ["", "{", "}", "[]", "{\n}", "{} "] {
            assert_eq!(seal(text).unwrap_err().kind(), ErrorKind::Shape, "{text:?}");
        }
    }
}
