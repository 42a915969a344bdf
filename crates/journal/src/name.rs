use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use afterimage_log::escape;

use crate::{Error, ErrorKind, Result};

/// The longest name of a session, in characters.
pub const MAX_SESSION_NAME: usize = 1024;

/// The longest token that spells a name out, in bytes.
const MAX_SPELLED: usize = 128;

/// The name of a session: any text of 1 to 1,024 characters.
///
/// Names are data. Where one has to become a file name, a subject or a key, its
/// [token](SessionName::token) does.
///
/// ```
/// use afterimage_journal::SessionName;
///
/// let name = SessionName::new("../x")?;
/// assert_eq!(name.as_str(), "../x");
/// assert_eq!(name.token(), "=2E=2E=2Fx");
/// # Ok::<(), afterimage_journal::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(Arc<Names>);

/// A name with its token, which is asked for with every request, and which the name decides; but
/// where a token stands for a name that is not known.
struct Names {
    name: Box<str>,
    token: Box<str>,
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.token) == (&other.name, &other.token)
    }
}

impl Eq for Names {}

impl PartialOrd for Names {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Names {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.name, &self.token).cmp(&(&other.name, &other.token))
    }
}

impl Hash for Names {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl SessionName {
    /// A name. O(its length): reads it, and makes its token.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for the empty text, [`ErrorKind::Limit`] past [`MAX_SESSION_NAME`].
    pub fn new(name: impl Into<Box<str>>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() {
            return Err(Error::expected("the name of a session", "the empty text"));
        }
        let characters = name.chars().count();
        if characters > MAX_SESSION_NAME {
            let message = format!(
                "a session's name of {characters} characters; the limit is {MAX_SESSION_NAME}"
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let token = token(&name).into();
        Ok(Self(Arc::new(Names { name, token })))
    }

    /// The session with a token that does not say its name, which then stands for it.
    pub(super) fn of_token(token: &str) -> Self {
        Self(Arc::new(Names { name: token.into(), token: token.into() }))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0.name
    }

    /// The name in lower-case letters, digits, `-`, `_` and `=` alone, at most 128 bytes: another
    /// one for each name, on systems that do not tell capitals apart too.
    ///
    /// Those characters stand for themselves, but for `=`; every other byte of the name is `=` and
    /// two hexadecimal digits. What would be longer is `=h` and a hash of 160 bits.
    pub fn token(&self) -> &str {
        &self.0.token
    }

    /// Whether the token does not spell the name out.
    #[cfg(feature = "nats")]
    pub(super) fn is_hashed(&self) -> bool {
        // No byte is escaped with a letter in lower case.
        self.0.token.starts_with(HASHED)
    }
}

/// How a token that is a hash begins.
const HASHED: &str = "=h";

/// See [`SessionName::token`].
pub(super) fn token(text: &str) -> String {
    let token = escape(text, '=', |_, byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
    });
    if token.len() <= MAX_SPELLED {
        return token;
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{HASHED}{}", hash.get(..40).unwrap_or_default())
}

/// The text that a spelled-out token stands for; `None` for a hash and for what is no token.
pub(super) fn from_token(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'=' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2)?;
        let digit = |byte: &u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'A'..=b'F' => Some(byte - b'A' + 10),
            _ => None,
        };
        bytes.push((digit(digits.first()?)? << 4) | digit(digits.get(1)?)?);
        rest = rest.get(2..)?;
    }
    let text = String::from_utf8(bytes).ok()?;
    (self::token(&text) == token).then_some(text)
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_are_plain_and_apart() {
        let long: String = "x".repeat(1_000);
        let other = format!("{}y", "x".repeat(999));
        let names = [
            "a.b",
            "a*",
            ">",
            " ",
            "ü",
            "..",
            "../x",
            &long,
            &other,
            "Name",
            "name",
            "=4Eame",
            "=h",
            "\0",
            "a\nb",
            "con",
            "日本語",
            "🛰️",
        ];
        let mut tokens = HashSet::new();
        for name in names {
            let session = SessionName::new(name).unwrap();
            let token = session.token();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=".contains(c);
            assert!(token.len() <= MAX_SPELLED && token.chars().all(is_plain), "{name:?}: {token}");
            if name.len() < 40 {
                assert_eq!(from_token(token).as_deref(), Some(name));
            } else {
                assert_eq!(from_token(token), None);
            }
            assert!(tokens.insert(token.to_lowercase()), "{name:?} has the token of another name");
        }
        for token in ["=", "=4", "=g0", "A", "=61", "=ff", "a.b", "=FF"] {
            assert_eq!(from_token(token), None, "{token}");
        }
    }

    #[test]
    fn a_name_has_1_to_1024_characters() {
        assert_eq!(SessionName::new("").unwrap_err().kind(), ErrorKind::Shape);
        assert!(SessionName::new("ü".repeat(1_024)).is_ok());
        assert_eq!(SessionName::new("ü".repeat(1_025)).unwrap_err().kind(), ErrorKind::Limit);
    }
}
