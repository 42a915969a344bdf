use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};

use super::{Number, Object, Value};
use crate::{Error, ErrorKind, Result};

/// The deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 128;

/// The longest text that is read as one JSON value, in bytes: 256 MiB.
pub const MAX_BYTES: usize = 256 << 20;

/// The most bytes that so many packed ones may unpack to: 64 KiB and 128 times as many, and at most
/// [`MAX_BYTES`]. What people and models write packs to a tenth or a thirtieth.
pub fn most_unpacked(packed: usize) -> usize {
    packed.saturating_mul(128).saturating_add(64 << 10).min(MAX_BYTES)
}

/// Reads one JSON value and nothing else.
///
/// Runs in O(n) time and allocates the value alone.
///
/// # Errors
/// [`ErrorKind::Json`] and [`ErrorKind::Utf8`] with line and column, [`ErrorKind::Limit`] past
/// [`MAX_DEPTH`] or [`MAX_BYTES`].
pub fn read(bytes: &[u8]) -> Result<Value> {
    read_as(bytes)
}

/// As [`read`], with U+FFFD in the place of each escape that is half of a surrogate pair; answers
/// with how many there were. Programs that cut strings between the halves of an emoji write such
/// JSON.
///
/// ```
/// use afterimage_json as json;
///
/// let (value, mended) = json::read_mended(br#"["cut: \ud83d", "\ud83d\ude00"]"#)?;
/// assert_eq!((value.to_string().as_str(), mended), ("[\"cut: \u{fffd}\",\"\u{1f600}\"]", 1));
/// # Ok::<(), json::Error>(())
/// ```
///
/// Costs what [`read`] does, and twice that where something is mended.
///
/// # Errors
/// Those of [`read`], but for lone surrogates.
pub fn read_mended(bytes: &[u8]) -> Result<(Value, u64)> {
    match read(bytes) {
        Ok(value) => Ok((value, 0)),
        Err(error) if error.kind() == ErrorKind::Limit => Err(error),
        Err(error) => match mended(bytes) {
            Some((mended, count)) => Ok((read(&mended)?, count)),
            None => Err(error),
        },
    }
}

/// The sentence for people where [`read_mended`] mended so many escapes.
///
/// ```
/// let note = afterimage_json::mended_note(2);
/// assert_eq!(note, "2 escapes are half of a surrogate pair, read as U+FFFD");
/// ```
pub fn mended_note(count: u64) -> String {
    let escapes = if count == 1 { "escape is" } else { "escapes are" };
    format!("{count} {escapes} half of a surrogate pair, read as U+FFFD")
}

/// The text with `\ufffd` in the place of each lone surrogate, and how many there were; `None`
/// where there is none. Every byte keeps its place.
fn mended(bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let mut lone = Vec::new();
    let mut at = 0;
    // Escapes stand in strings alone: outside of them a backslash is no JSON anyway.
    while let Some(next) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        at += next;
        at += match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                lone.push(at);
                6
            }
            Some(_) => 6,
            None => 2,
        };
    }
    if lone.is_empty() {
        return None;
    }
    let mut mended = bytes.to_vec();
    for at in &lone {
        mended.get_mut(*at..at + 6)?.copy_from_slice(b"\\ufffd");
    }
    Some((mended, lone.len() as u64))
}

/// What a JSON text can be read as.
pub trait FromJson: Sized {
    /// The members of an object that is being read.
    type Members: Default;

    /// `null`.
    fn null() -> Self;
    /// A boolean.
    fn bool(flag: bool) -> Self;
    /// A number.
    fn number(number: Number) -> Self;
    /// A string.
    fn string(text: &str) -> Self;
    /// An array.
    fn array(elements: Vec<Self>) -> Self;
    /// An object of these members.
    fn object(members: Self::Members) -> Self;
    /// Takes the next member; of members with the same key the last counts.
    fn put(members: &mut Self::Members, key: String, value: Self);
}

impl FromJson for Value {
    type Members = Object;

    fn null() -> Self {
        Self::Null
    }

    fn bool(flag: bool) -> Self {
        Self::Bool(flag)
    }

    fn number(number: Number) -> Self {
        Self::Number(number)
    }

    fn string(text: &str) -> Self {
        Self::from(text)
    }

    fn array(mut elements: Vec<Self>) -> Self {
        elements.shrink_to_fit();
        Self::Array(elements)
    }

    fn object(mut members: Object) -> Self {
        members.shrink_to_fit();
        Self::Object(members)
    }

    fn put(members: &mut Object, key: String, value: Self) {
        members.insert(key, value);
    }
}

/// As [`read`], straight into another form of values. O(bytes).
///
/// # Errors
/// Those of [`read`].
pub fn read_as<T: FromJson>(bytes: &[u8]) -> Result<T> {
    if bytes.len() > MAX_BYTES {
        let message = format!("{} bytes of JSON; the limit is {MAX_BYTES} (256 MiB)", bytes.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let mut reader = Reader { jiter: Jiter::new(bytes) };
    let peek = reader.jiter.peek().map_err(|error| reader.error(&error))?;
    let value = reader.value(peek, 0)?;
    reader.jiter.finish().map_err(|error| reader.error(&error))?;
    Ok(value)
}

struct Reader<'a> {
    jiter: Jiter<'a>,
}

impl Reader<'_> {
    fn value<T: FromJson>(&mut self, peek: Peek, depth: usize) -> Result<T> {
        match peek {
            Peek::Null => self.jiter.known_null().map(|()| T::null()),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(T::bool),
            Peek::String => self.jiter.known_str().map(T::string),
            Peek::Array => return self.array(depth),
            Peek::Object => return self.object(depth),
            peek => match self.jiter.known_number_bytes(peek) {
                // The bytes of a number are ASCII.
                Ok(bytes) => std::str::from_utf8(bytes)
                    .map(|text| T::number(Number::from_json_text(text)))
                    .map_err(return_utf8),
                Err(error) => Err(error),
            },
        }
        .map_err(|error| self.error(&error))
    }

    fn array<T: FromJson>(&mut self, depth: usize) -> Result<T> {
        self.enter(depth)?;
        let mut array = Vec::new();
        let mut next = self.jiter.known_array();
        loop {
            match next {
                Ok(Some(peek)) => array.push(self.value(peek, depth + 1)?),
                Ok(None) => return Ok(T::array(array)),
                Err(error) => return Err(self.error(&error)),
            }
            next = self.jiter.array_step();
        }
    }

    fn object<T: FromJson>(&mut self, depth: usize) -> Result<T> {
        self.enter(depth)?;
        let mut members = T::Members::default();
        let mut next = self.jiter.known_object().map(|key| key.map(str::to_owned));
        loop {
            match next {
                Ok(Some(key)) => {
                    let peek = self.jiter.peek().map_err(|error| self.error(&error))?;
                    let value = self.value(peek, depth + 1)?;
                    T::put(&mut members, key, value);
                }
                Ok(None) => return Ok(T::object(members)),
                Err(error) => return Err(self.error(&error)),
            }
            next = self.jiter.next_key().map(|key| key.map(str::to_owned));
        }
    }

    fn enter(&self, depth: usize) -> Result<()> {
        if depth < MAX_DEPTH {
            return Ok(());
        }
        let position = self.jiter.current_position();
        let message = format!("nesting deeper than {MAX_DEPTH} levels");
        Err(Error::new(ErrorKind::Limit, message).at(|place| {
            place.line = Some(position.line as u64);
            place.column = Some(position.column as u64);
        }))
    }

    fn error(&self, error: &JiterError) -> Error {
        let position = error.get_position(&self.jiter);
        let kind = match error.error_type {
            JiterErrorType::JsonError(JsonErrorType::InvalidUnicodeCodePoint) => ErrorKind::Utf8,
            _ => ErrorKind::Json,
        };
        Error::new(kind, format!("not JSON: {}", error.error_type)).at(|place| {
            place.line = Some(position.line as u64);
            place.column = Some(position.column as u64);
        })
    }
}

fn return_utf8(error: std::str::Utf8Error) -> JiterError {
    JiterError {
        error_type: JiterErrorType::JsonError(JsonErrorType::InvalidUnicodeCodePoint),
        index: error.valid_up_to(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_digits_and_the_last_of_a_doubled_key_are_kept() {
        let value = read(br#"{"z":1,"a":{"y":1.10},"z":[2,"\u00e9"]}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"z":[2,"é"],"a":{"y":1.10}}"#);
    }

    #[test]
    fn nesting_of_128_is_read_and_of_129_is_refused() {
        let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
        assert_eq!(read(&nested(128)).unwrap().to_string().as_bytes(), nested(128));
        assert_eq!(read(&nested(129)).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(read(&b"[".repeat(100_000)).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_lone_surrogate_is_mended_and_nothing_else() {
        let check = |text: &str, expected: &str, count: u64| {
            let (value, mended) = read_mended(text.as_bytes()).unwrap();
            assert_eq!((value.to_string().as_str(), mended), (expected, count), "{text}");
        };
        check(r#""\ud83d""#, "\"\u{fffd}\"", 1);
        check(r#""\uDE00 \ud83d\ude00""#, "\"\u{fffd} \u{1f600}\"", 1);
        check(r#""\ud83d\ud83d\ude00\ude00""#, "\"\u{fffd}\u{1f600}\u{fffd}\"", 2);
        check(r#"{"\ud800":"\\ud800"}"#, "{\"\u{fffd}\":\"\\\\ud800\"}", 1);
        check(r#""\u0000\ud83dx""#, "\"\\u0000\u{fffd}x\"", 1);
        check(r#""\ud83d\n""#, "\"\u{fffd}\\n\"", 1);
        check(r#""\u0000 fine""#, "\"\\u0000 fine\"", 0);
        for text in [r#""\ud83d"#, r#""\ud8""#, r#""\ud83d"]"#, "[1,]"] {
            assert!(read_mended(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "01",
            "+1",
            "NaN",
            "nul",
            "\"\\ud800\"",
            "1 2",
            "{\"a\" 1}",
            "\u{feff}1",
            "\"\t\"",
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Json, "{text:?}: {error}");
            assert_eq!(error.place().line, Some(1), "{text:?}");
        }
        assert_eq!(read(b"\"a\xffb\"").unwrap_err().kind(), ErrorKind::Utf8);
    }
}
