//! How the body of a request is stored: as it is, in zstd, or in zstd with an earlier body before it.

use std::io::{self, Read, Write};

use afterimage_log::Position;
use zstd::zstd_safe;

use crate::{Error, ErrorKind, Result, entry::RequestBody};

/// The most bytes of a body that are stored: 64 MiB. A longer one is stored cut, and marked.
pub const MOST_STORED: u64 = 64 << 20;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const AFTER: u8 = 2;
const IN_PARTS: u8 = 3;
/// The level of a body that begins a conversation.
const LEVEL: i32 = 9;
/// That of one that begins its chain anew: one of sixteen, and most of what a recording takes.
const LEVEL_ANEW: i32 = 17;
/// That of a long one.
const LEVEL_LONG: i32 = 3;
/// That of one that repeats an earlier one.
const LEVEL_AFTER: i32 = 3;
/// That of one for which an answer waits.
const LEVEL_QUICK: i32 = 1;
/// A body from this length on is long: of a shorter one the highest level takes a quarter of a second.
const LONG: usize = 1 << 20;
/// The largest window: a decoder of zstd takes no larger one by itself.
const MOST_WINDOW: u32 = 27;
const LEAST_WINDOW: u32 = 17;
/// The most that is reserved before bytes come.
const RESERVED: u64 = 1 << 20;

/// The record of a request body, unpacked as far as its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBody {
    pub(crate) total: u64,
    pub(crate) stored: u64,
    pub(crate) ended: bool,
    /// The record of the body that this one comes after.
    pub(crate) base: Option<Position>,
    /// Whether its bytes stand in records of their own, before this one.
    pub(crate) is_in_parts: bool,
}

/// How much is done to make a body small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// The most, where no answer waits: of what begins a chain anew.
    Smallest,
    /// What it takes.
    Small,
    /// A little, since an answer waits.
    Quick,
    /// Nothing, since an answer has waited.
    AsIs,
}

/// The content of the record of a body; `base` is the position and the bytes of an earlier one.
pub(crate) fn to_bytes(
    body: &RequestBody<'_>,
    base: Option<(Position, &[u8])>,
    effort: Effort,
) -> Vec<u8> {
    let level = match effort {
        Effort::Smallest if body.bytes.len() < LONG => LEVEL_ANEW,
        Effort::Small if body.bytes.len() < LONG => LEVEL,
        Effort::Smallest | Effort::Small => LEVEL_LONG,
        Effort::Quick | Effort::AsIs => LEVEL_QUICK,
    };
    let after =
        base.and_then(|(at, base)| Some((at, compress(body.bytes, Some(base), LEVEL_AFTER).ok()?)));
    let (at, packed) = match after {
        Some((at, packed)) => (Some(at), Some(packed)),
        None if effort == Effort::AsIs => (None, None),
        None => (None, compress(body.bytes, None, level).ok()),
    };
    let packed = packed.filter(|packed| packed.len() < body.bytes.len());
    let coding = match (&packed, at) {
        (None, _) => PLAIN,
        (Some(_), None) => ZSTD,
        (Some(_), Some(_)) => AFTER,
    };
    let content = packed.as_deref().unwrap_or(body.bytes);
    let mut bytes = Vec::with_capacity(26 + content.len());
    put_head(&mut bytes, body.ended, body.total, body.bytes.len() as u64, coding);
    if let (AFTER, Some(at)) = (coding, at) {
        bytes.extend(at.offset().to_le_bytes());
    }
    bytes.extend(content);
    bytes
}

/// The content of the record that ends a body whose bytes stand in records of their own.
pub(crate) fn in_parts(total: u64, stored: u64, ended: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_head(&mut bytes, ended, total, stored, IN_PARTS);
    bytes
}

fn put_head(bytes: &mut Vec<u8>, ended: bool, total: u64, stored: u64, coding: u8) {
    bytes.push(u8::from(ended));
    bytes.extend(total.to_le_bytes());
    bytes.extend(stored.to_le_bytes());
    bytes.push(coding);
}

/// What a record of a body says of it, its coding and the packed bytes.
fn head(bytes: &[u8]) -> Option<(StoredBody, u8, &[u8])> {
    let (ended, rest) = bytes.split_first()?;
    let (total, rest) = rest.split_first_chunk::<8>()?;
    let (stored, rest) = rest.split_first_chunk::<8>()?;
    let (coding, rest) = rest.split_first()?;
    let (base, content) = match *coding {
        AFTER => {
            let (base, content) = rest.split_first_chunk::<8>()?;
            (Some(Position::new(u64::from_le_bytes(*base))), content)
        }
        PLAIN | ZSTD | IN_PARTS => (None, rest),
        _ => return None,
    };
    let (total, stored) = (u64::from_le_bytes(*total), u64::from_le_bytes(*stored));
    let is_sound = *ended <= 1 && stored <= total && stored <= MOST_STORED;
    let is_in_parts = *coding == IN_PARTS;
    let body = StoredBody { total, stored, ended: *ended == 1, base, is_in_parts };
    is_sound.then_some((body, *coding, content))
}

/// What the record of a body says of it.
pub(crate) fn describe(bytes: &[u8]) -> Result<StoredBody> {
    Ok(head(bytes).ok_or_else(no_body)?.0)
}

/// Fills `room` with the stored bytes; `base` are those of the body that it comes after.
///
/// # Errors
/// [`ErrorKind::Damaged`] where they are not what the record says.
pub(crate) fn of_bytes(bytes: &[u8], base: Option<&[u8]>, room: &mut Vec<u8>) -> Result<()> {
    let (body, coding, content) = head(bytes).ok_or_else(no_body)?;
    match coding {
        PLAIN => {
            room.clear();
            room.extend_from_slice(content);
        }
        IN_PARTS => return Err(no_body()),
        _ => {
            decompress(content, base.unwrap_or_default(), body.stored, room).map_err(|error| {
                Error::new(ErrorKind::Damaged, "a request body that is no zstd frame")
                    .with_source(error)
            })?;
        }
    }
    if room.len() as u64 != body.stored {
        let message = format!(
            "expected a request body of {} bytes, found {} or more",
            body.stored,
            room.len()
        );
        return Err(Error::new(ErrorKind::Damaged, message));
    }
    Ok(())
}

fn no_body() -> Error {
    Error::new(ErrorKind::Damaged, "expected the body of a request")
}

/// The exponent of a window that reaches over so many bytes.
fn window(bytes: usize) -> u32 {
    let exponent = usize::BITS - bytes.leading_zeros();
    exponent.clamp(LEAST_WINDOW, MOST_WINDOW)
}

fn compress(bytes: &[u8], base: Option<&[u8]>, level: i32) -> io::Result<Vec<u8>> {
    let mut encoder = match base {
        Some(base) => zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), level, base)?,
        None => zstd::stream::write::Encoder::new(Vec::new(), level)?,
    };
    // A whole conversation lies between a message and the same one in the body before.
    encoder.window_log(window(bytes.len() + base.map_or(0, <[u8]>::len)))?;
    encoder.long_distance_matching(true)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Unpacks a frame that says its length at once: nothing is copied through a window. What was in
/// `bytes` goes.
fn decompress(content: &[u8], base: &[u8], stored: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    let said = zstd_safe::get_frame_content_size(content).ok().flatten();
    let length = usize::try_from(stored).ok();
    let Some(length) = length.filter(|_| said == Some(stored) && stored <= MOST_STORED) else {
        return decompress_stream(content, base, stored, bytes);
    };
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    bytes.reserve(length);
    let mut decoder = zstd_safe::DCtx::create();
    decoder.ref_prefix(base).map_err(failed)?;
    decoder.decompress(bytes, content).map_err(failed)?;
    Ok(())
}

fn decompress_stream(
    content: &[u8],
    base: &[u8],
    stored: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(content, base)?;
    decoder.window_log_max(MOST_WINDOW)?;
    bytes.reserve(stored.min(RESERVED) as usize);
    decoder.take(stored.saturating_add(1)).read_to_end(bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_body_comes_back_after_any_other(
            base in proptest::collection::vec(any::<u8>(), 0..4000),
            edits in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..9),
            more in "[a-z]{0,400}",
            ended: bool,
        ) {
            let mut bytes = base.clone();
            for (at, byte) in edits {
                if let Some(place) = bytes.get_mut(usize::from(at)) { *place = byte; }
            }
            bytes.extend(more.as_bytes());
            let body = RequestBody { bytes: &bytes, total: bytes.len() as u64 + 3, ended };
            for (base, effort) in [
                (None, Effort::Small),
                (None, Effort::Quick),
                (None, Effort::AsIs),
                (Some((Position::new(77), base.as_slice())), Effort::Small),
            ] {
                let record = to_bytes(&body, base, effort);
                let found = describe(&record).unwrap();
                prop_assert_eq!((found.total, found.ended), (body.total, ended));
                let base = found.base.and(base).map(|(_, base)| base);
                let mut room = vec![1];
                of_bytes(&record, base, &mut room).unwrap();
                prop_assert_eq!(&room, &bytes);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = of_bytes(&bytes, None, &mut Vec::new());
            let mut record = to_bytes(&RequestBody::whole(&[7; 300]), None, Effort::Small);
            record.splice(18.., bytes);
            let _ = of_bytes(&record, Some(b"base"), &mut Vec::new());
        }
    }

    #[test]
    fn a_body_that_repeats_one_of_megabytes_takes_few_bytes() {
        let mut state = 1_u64;
        let noise = |length: usize, state: &mut u64| -> Vec<u8> {
            let mut next = || {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (*state >> 56) as u8
            };
            (0..length).map(|_| next()).collect()
        };
        let (input, tools) = (noise(5 << 20, &mut state), noise(1 << 16, &mut state));
        let base = [input.as_slice(), &tools].concat();
        let body = [input.as_slice(), b"a new message", &tools].concat();
        let base_of = Some((Position::new(9), base.as_slice()));
        let record = to_bytes(&RequestBody::whole(&body), base_of, Effort::Small);
        assert!(record.len() < 2000, "{} bytes", record.len());
        let mut room = Vec::new();
        of_bytes(&record, Some(&base), &mut room).unwrap();
        assert!(room == body);
        // Another base gives no body, or not this one.
        assert!(of_bytes(&record, Some(&input), &mut room).is_err() || room != body);
    }

    #[test]
    fn a_frame_that_holds_more_than_it_says_is_damage() {
        let mut record = to_bytes(&RequestBody::whole(&[7; 3000]), None, Effort::Small);
        record[9..17].copy_from_slice(&2000_u64.to_le_bytes());
        assert_eq!(
            of_bytes(&record, None, &mut Vec::new()).unwrap_err().kind(),
            ErrorKind::Damaged
        );
    }
}
