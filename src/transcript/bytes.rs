//! Bytes that are packed or encoded: gzip and zstd by their first bytes, UTF-16 by its mark, base64.

use std::{
    io::{self, BufRead, BufReader, Cursor, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::json::most_unpacked;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// How often an input may be packed.
const LEVELS: usize = 4;

/// An input may unpack to so many bytes, and to so many for each of its own.
const FREE: u64 = 16 << 20;
const MOST_RATIO: u64 = 128;

/// Why a build without the feature `record` does not read something.
#[cfg(not(feature = "record"))]
const MISSING: &str = "this build reads no packed recordings: the feature `record` is off";

/// An input as its text: unpacked where it is packed with gzip or zstd, as UTF-8 where a mark says
/// that it is UTF-16. What is neither is passed on as it is. Reads as much as it is asked for.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for what is packed more than four times: a file can unpack to
/// itself; and for what unpacks to more than 16 MiB and 128 times the bytes that were read of it.
/// [`io::ErrorKind::Unsupported`] for a packed input in a build without the feature
/// `traffic`. Those of the input.
pub fn decoded<'r>(input: impl BufRead + Send + 'r) -> io::Result<Box<dyn BufRead + Send + 'r>> {
    let read = Arc::new(AtomicU64::new(0));
    decoded_within(Counted { input, read: Arc::clone(&read) }, LEVELS, &read)
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.read.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Refuses an input that unpacks to too much for what was read of it.
struct Bounded<R> {
    input: R,
    given: u64,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.given += count as u64;
        let read = self.read.load(Ordering::Relaxed);
        if self.given > FREE.saturating_add(read.saturating_mul(MOST_RATIO)) {
            let message = format!(
                "{read} packed bytes hold more than {MOST_RATIO} times as many and 16 MiB: if that \
                 is right, unpack the file and read what comes of it"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

fn decoded_within<'r>(
    mut input: impl BufRead + Send + 'r,
    levels: usize,
    read: &Arc<AtomicU64>,
) -> io::Result<Box<dyn BufRead + Send + 'r>> {
    let mut head = Vec::new();
    // A pipe may give one byte at a time.
    while head.len() < ZSTD.len() {
        let had = head.len();
        input.by_ref().take((ZSTD.len() - had) as u64).read_to_end(&mut head)?;
        if head.len() == had {
            break;
        }
    }
    let (is_packed, order) = (is_packed(&head), ByteOrder::of(&head));
    let whole = Cursor::new(head).chain(input);
    if is_packed {
        let Some(levels) = levels.checked_sub(1) else {
            let message = "expected an input that is packed at most four times, found more";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        };
        // What was packed may have a mark too.
        let input = Bounded { input: unpacking(whole)?, given: 0, read: Arc::clone(read) };
        return decoded_within(BufReader::new(input), levels, read);
    }
    Ok(match order {
        Some(order) => {
            Box::new(BufReader::new(Utf16 { input: whole, order, high: None, ready: Vec::new() }))
        }
        None => Box::new(whole),
    })
}

pub(super) fn is_packed(head: &[u8]) -> bool {
    head.starts_with(GZIP) || head.starts_with(ZSTD)
}

#[cfg(feature = "record")]
fn unpacking<'r>(mut input: impl BufRead + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
    let is_gzip = input.fill_buf()?.starts_with(GZIP.get(..1).unwrap_or_default());
    Ok(if is_gzip {
        Box::new(flate2::bufread::MultiGzDecoder::new(input))
    } else {
        Box::new(zstd::stream::read::Decoder::with_buffer(input)?)
    })
}

#[cfg(not(feature = "record"))]
fn unpacking<'r>(_input: impl BufRead + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, MISSING))
}

/// The bytes of a body, unpacked where they are packed; else why they cannot be. The body was sent
/// in so many bytes.
pub(super) fn unpacked(bytes: Vec<u8>, sent: usize) -> Result<Vec<u8>, String> {
    if !is_packed(&bytes) {
        return Ok(bytes);
    }
    let mut whole = Vec::new();
    let input = unpacking(bytes.as_slice()).map_err(|error| error.to_string())?;
    // A small body may unpack to any size.
    let most = most_unpacked(sent);
    let read = input.take(most as u64 + 1).read_to_end(&mut whole);
    match read {
        Ok(read) if read > most => {
            Err(format!("a body of {sent} bytes that unpacks to more than {most}"))
        }
        Ok(_) => Ok(whole),
        Err(error) => Err(format!("a packed body that cannot be unpacked: {error}")),
    }
}

/// The bytes that base64 stands for; else why it stands for none.
#[cfg(feature = "record")]
pub(super) fn of_base64(text: &str) -> Result<Vec<u8>, String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(text).map_err(|error| format!("a body that is no base64: {error}"))
}

#[cfg(not(feature = "record"))]
pub(super) fn of_base64(_text: &str) -> Result<Vec<u8>, String> {
    Err(MISSING.to_owned())
}

/// The text of a part of an address, in which a byte may be written as `%20`.
pub(super) fn of_percent(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let is_hex = |(of, _): &(&str, &str)| of.bytes().all(|digit| digit.is_ascii_hexdigit());
        let escaped = piece.split_at_checked(2).filter(is_hex);
        let byte = escaped.and_then(|(of, rest)| Some((u8::from_str_radix(of, 16).ok()?, rest)));
        let (byte, rest) = byte.unwrap_or((b'%', piece));
        bytes.push(byte);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The order of the bytes of UTF-16.
#[derive(Clone, Copy, Debug)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            _ => None,
        }
    }
}

/// Reads UTF-16 as UTF-8. What is no character becomes U+FFFD.
struct Utf16<R> {
    input: R,
    order: ByteOrder,
    /// The first half of a pair, whose second has not come.
    high: Option<u16>,
    /// Bytes that were made and not read.
    ready: Vec<u8>,
}

impl<R: BufRead> Utf16<R> {
    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(1 << 15);
        self.input.by_ref().take(1 << 15).read_to_end(&mut bytes)?;
        let is_end = bytes.is_empty();
        let units = bytes.chunks(2).map(|unit| match (self.order, unit) {
            (ByteOrder::Little, &[low, high]) => u16::from_le_bytes([low, high]),
            (ByteOrder::Big, &[high, low]) => u16::from_be_bytes([high, low]),
            // Half a unit at the end.
            _ => 0xfffd,
        });
        let mut units: Vec<u16> = self.high.take().into_iter().chain(units).collect();
        if !is_end && units.last().is_some_and(|unit| matches!(unit, 0xd800..=0xdbff)) {
            self.high = units.pop();
        }
        let text: String = char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .filter(|c| *c != '\u{feff}')
            .collect();
        self.ready = text.into_bytes();
        // The mark alone is no end.
        if self.ready.is_empty() && !is_end { self.fill() } else { Ok(()) }
    }
}

impl<R: BufRead> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() {
            self.fill()?;
        }
        let count = into.len().min(self.ready.len());
        for (to, from) in into.iter_mut().zip(self.ready.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        // One byte at a time, as a slow pipe gives them.
        let input = BufReader::with_capacity(1, bytes);
        let mut text = String::new();
        decoded(input).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_is_no_byte_in_an_address_stays() {
        for (text, plain) in [
            ("/w/my%20quay", "/w/my quay"),
            ("%C3%A9t%c3%a9", "été"),
            ("100%", "100%"),
            ("%+5%zz%4", "%+5%zz%4"),
        ] {
            assert_eq!(of_percent(text), plain);
        }
    }

    #[test]
    fn utf_16_is_read_by_its_mark_across_blocks() {
        let text = format!("{}😀 é", "x".repeat((1 << 14) - 2));
        for (mark, bytes) in [
            ([0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
            ([0xfe, 0xff], text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ] {
            assert!(read(&[mark.as_slice(), &bytes].concat()) == text);
        }
        assert_eq!(read(b"\xff\xfea\0\x3d\xd8"), "a\u{fffd}");
        assert_eq!(read(b"\xff\xfea\0b"), "a\u{fffd}");
        assert_eq!(read(b"\xff\xfe"), "");
    }

    #[test]
    fn other_inputs_are_passed_on() {
        for text in ["", "a", "{}", "longer than the head"] {
            assert_eq!(read(text.as_bytes()), text);
        }
    }

    #[cfg(feature = "record")]
    #[test]
    fn packed_inputs_are_unpacked_by_their_first_bytes() {
        use std::io::Write;
        let text = "text ".repeat(10_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for packed in [&gzip, &zstd] {
            assert!(read(packed) == text);
            let half = packed.get(..packed.len() / 2).unwrap();
            let cut = decoded(half).and_then(|mut input| input.read_to_string(&mut String::new()));
            assert!(cut.is_err());
            assert!(unpacked(half.to_vec(), half.len()).is_err());
        }
        let mut nested = zstd::encode_all(gzip.as_slice(), 1).unwrap();
        for _ in 2..LEVELS {
            nested = zstd::encode_all(nested.as_slice(), 1).unwrap();
        }
        assert!(read(&nested) == text);
        // A small input may hold any size.
        let zeros = vec![b' '; 64 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&zeros).unwrap();
        let gzip = gzip.finish().unwrap();
        for bomb in [zstd::encode_all(gzip.as_slice(), 1).unwrap(), gzip] {
            let error = decoded(bomb.as_slice()).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("128 times as many and 16 MiB"), "{error}");
            let sent = bomb.len();
            let error = unpacked(bomb, sent).err();
            assert!(error.is_none_or(|error| error.contains("unpacks to more than")));
        }
        let deeper = zstd::encode_all(nested.as_slice(), 1).unwrap();
        let error = decoded(deeper.as_slice()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
