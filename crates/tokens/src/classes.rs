//! The classes of characters that the patterns of the tokenizers name.
//!
//! Each character is of one class, and a class is a bit, so that a set of classes is a byte.

/// None of the classes below.
pub(crate) const MARK: u8 = 1;
/// `\p{Lu}` and `\p{Lt}`.
pub(crate) const UPPER: u8 = 2;
/// `\p{Ll}`.
pub(crate) const LOWER: u8 = 4;
/// `\p{Lm}` and `\p{Lo}`: letters that stand with those of upper and of lower case.
pub(crate) const CASELESS: u8 = 8;
/// `\p{M}`, which no letter is.
pub(crate) const COMBINING: u8 = 16;
/// `\p{N}`.
pub(crate) const NUMBER: u8 = 32;
/// `\r` and `\n`.
pub(crate) const LINE_BREAK: u8 = 64;
/// `\s` otherwise.
pub(crate) const BLANK: u8 = 128;

/// The block of each 256 characters, and the blocks.
static NUMBERS: &[u8; 0x1100] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.numbers"));
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.blocks"));

/// The class of each byte that is a character; zero for bytes of longer ones.
static ASCII: [u8; 256] = ascii();

const fn ascii() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut rest: &mut [u8] = &mut classes;
    let mut byte = 0_u8;
    while let Some((class, after)) = rest.split_first_mut() {
        *class = match byte {
            b'\r' | b'\n' => LINE_BREAK,
            b'\t' | 0x0b | 0x0c | b' ' => BLANK,
            b'0'..=b'9' => NUMBER,
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            0x80.. => 0,
            _ => MARK,
        };
        byte = byte.wrapping_add(1);
        rest = after;
    }
    classes
}

fn of_char(char: u32) -> u8 {
    let number = NUMBERS.get(char as usize >> 8).map_or(0, |number| usize::from(*number));
    BLOCKS.get(number << 8 | (char as usize & 0xff)).copied().unwrap_or(MARK)
}

/// The class of a byte that is a character by itself; zero for any other.
#[inline]
pub(crate) fn of_byte(byte: u8) -> u8 {
    ASCII.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The class of the character at `at`, and its length in bytes; zero twice at the end of the text.
#[inline]
pub(crate) fn at(text: &[u8], at: usize) -> (u8, usize) {
    match text.get(at) {
        None => (0, 0),
        Some(byte) if byte.is_ascii() => (of_byte(*byte), 1),
        Some(_) => {
            let (char, length) = longer(text, at);
            (of_char(char), length)
        }
    }
}

/// A character of several bytes and its length; `text` is UTF-8.
#[inline]
pub(crate) fn longer(text: &[u8], at: usize) -> (u32, usize) {
    let byte = |after: usize| u32::from(text.get(at + after).copied().unwrap_or_default());
    let bits = |after: usize| byte(after) & 0x3f;
    match byte(0) {
        lead @ 0..0xe0 => ((lead & 0x1f) << 6 | bits(1), 2),
        lead @ 0xe0..0xf0 => ((lead & 0x0f) << 12 | bits(1) << 6 | bits(2), 3),
        lead => ((lead & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3), 4),
    }
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;

    use super::*;

    /// The classes as the expressions of tiktoken know them.
    fn expected() -> Vec<u8> {
        let sets = [
            (UPPER, r"^[\p{Lu}\p{Lt}]$"),
            (LOWER, r"^\p{Ll}$"),
            (CASELESS, r"^[\p{Lm}\p{Lo}]$"),
            (COMBINING, r"^\p{M}$"),
            (NUMBER, r"^\p{N}$"),
            (LINE_BREAK, r"^[\r\n]$"),
            (BLANK, r"^[\s&&[^\r\n]]$"),
            (MARK, r"^[^\s\p{L}\p{N}\p{M}]$"),
        ]
        .map(|(class, pattern)| (class, Regex::new(pattern).unwrap()));
        let mut buffer = [0; 4];
        (0..0x11_0000)
            .map(|char| {
                // Surrogates are no characters; any class will do.
                let Some(char) = char::from_u32(char) else { return MARK };
                let text = char.encode_utf8(&mut buffer);
                let classes: Vec<u8> = sets
                    .iter()
                    .filter(|(_, set)| set.is_match(&*text))
                    .map(|(class, _)| *class)
                    .collect();
                assert_eq!(classes.len(), 1, "{char:?} is of {classes:?}");
                classes[0]
            })
            .collect()
    }

    /// With `AFTERIMAGE_BLESS` set, the file is written anew.
    #[test]
    fn each_character_is_of_the_class_that_the_expressions_say() {
        let expected = expected();
        if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
            let runs: Vec<u8> = expected
                .chunk_by(|a, b| a == b)
                .flat_map(|run| {
                    let [low, middle, high, _] = u32::try_from(run.len()).unwrap().to_le_bytes();
                    [run[0], low, middle, high]
                })
                .collect();
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabularies/classes.runs");
            std::fs::write(path, runs).unwrap();
            return;
        }
        let mut buffer = [0; 4];
        for char in '\0'..=char::MAX {
            let text = char.encode_utf8(&mut buffer);
            let found = at(text.as_bytes(), 0);
            assert_eq!(found, (expected[char as usize], char.len_utf8()), "{char:?}");
        }
        assert_eq!(at(b"", 0), (0, 0));
    }
}
