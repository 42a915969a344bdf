use std::fmt::Write;

use crate::{Error, Result};

/// The most characters of a name.
const MOST: usize = 1024;
/// The most bytes of a file's name that is made of one; file systems take 255.
const LONGEST: usize = 200;
/// What Windows does not let a file be called, whatever follows a dot.
const RESERVED: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

/// A file name for any name: a path, a dot or a reserved word in it means nothing any more.
/// O(name).
///
/// ASCII letters, digits, `_`, `-` and inner dots stay; every other byte becomes `%` and two
/// hexadecimal digits. A name that would be too long ends with a hash of the whole.
///
/// ```
/// use afterimage_log::file_name;
///
/// assert_eq!(file_name("tale-7")?, "tale-7");
/// assert_eq!(file_name("../x")?, "%2E.%2Fx");
/// assert_eq!(file_name("NUL.txt")?, "%4EUL.txt");
/// # Ok::<(), afterimage_log::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a name that is empty or has more than 1,024
/// characters.
pub fn file_name(name: &str) -> Result<String> {
    let length = name.chars().count();
    if length == 0 || length > MOST {
        let expected = format!("a name of 1 to {MOST} characters");
        return Err(Error::expected(expected, format_args!("{length} characters")));
    }
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_reserved = RESERVED.contains(&stem.trim_end());
    let last = name.len() - 1;
    let mut encoded = escape(name, '%', |at, byte| match byte {
        b'.' => at != 0 && at != last,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => !(is_reserved && at == 0),
        _ => false,
    });
    if encoded.len() > LONGEST {
        let hash: String = blake3::hash(name.as_bytes()).to_hex().chars().take(32).collect();
        // All of it is ASCII.
        encoded.truncate(LONGEST - hash.len() - 1);
        encoded = format!("{encoded}~{hash}");
    }
    Ok(encoded)
}

/// A text in which each byte stays that `stays` lets stay, and each other one is `mark` with two
/// hexadecimal digits. Only ASCII may stay. O(text).
///
/// ```
/// use afterimage_log::escape;
///
/// assert_eq!(escape("a B", '=', |_, byte| byte.is_ascii_lowercase()), "a=20=42");
/// ```
pub fn escape(text: &str, mark: char, stays: impl Fn(usize, u8) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii() && stays(at, byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "{mark}{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_data_and_no_paths() {
        let check = |name: &str, expected: &str| assert_eq!(file_name(name).unwrap(), expected);
        check("a b", "a%20b");
        check("/etc/passwd", "%2Fetc%2Fpasswd");
        check("..", "%2E%2E");
        check(".", "%2E");
        check("C:\\x", "C%3A%5Cx");
        check("con", "%63on");
        check("Com1 .x", "%43om1%20.x");
        check("ä\0", "%C3%A4%00");
        let long = file_name(&"x".repeat(1024)).unwrap();
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, file_name(&format!("{}y", "x".repeat(1023))).unwrap());
        assert!(file_name("").is_err());
        let error = file_name(&"x".repeat(10_000)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a name of 1 to 1024 characters, found 10000 characters"
        );
    }
}
