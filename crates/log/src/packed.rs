//! Bytes that are compressed where that helps.

use std::io::Read;

use crate::{Error, ErrorKind, Result};

/// The level of zstd: about as fast as a disk writes.
const LEVEL: i32 = 1;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// The most that is reserved before bytes come.
const RESERVED: u64 = 1 << 20;

/// How many bytes each packed byte may stand for, beyond the first [`FREE`]. What somebody made of a
/// few kilobytes would else take all memory, and minutes. What is written here keeps to it.
const MOST_RATIO: u64 = 1024;
/// Up to so many bytes any ratio is taken.
const FREE: u64 = if cfg!(test) { 1 << 16 } else { 64 << 20 };
/// The frame that fills a file up to where its ratio is taken: a reader passes over it.
const FILL_MAGIC: [u8; 4] = [0x51, 0x2a, 0x4d, 0x18];

/// The most bytes that these packed ones may unpack to, where `limit` is what their place allows.
fn most(packed: &[u8], limit: u64) -> u64 {
    limit.min(FREE.max((packed.len() as u64).saturating_mul(MOST_RATIO)))
}

/// Fills up what is packed so well that [`most`] would not let it be unpacked.
fn fill(packed: &mut Vec<u8>, unpacked: usize) {
    let unpacked = unpacked as u64;
    let least = if unpacked <= FREE { 0 } else { unpacked.div_ceil(MOST_RATIO) };
    let Ok(length) = u32::try_from(least.saturating_sub(packed.len() as u64)) else { return };
    if length > 0 {
        packed.extend(FILL_MAGIC);
        packed.extend(length.to_le_bytes());
        packed.resize(packed.len() + length as usize, 0);
    }
}

/// Refuses a frame that says it holds more than that, before anything of it is unpacked.
fn check_claim(frame: &[u8], most: u64) -> Result<()> {
    match zstd::zstd_safe::get_frame_content_size(frame) {
        Ok(Some(claimed)) if claimed > most => Err(too_long(most)),
        _ => Ok(()),
    }
}

fn too_long(most: u64) -> Error {
    Error::new(ErrorKind::Limit, format!("it unpacks to more than {most} bytes"))
}

/// The bytes with a first byte that says how they are kept: as they are, or compressed with zstd
/// where that is shorter. O(bytes).
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = zstd::bulk::compress(bytes, LEVEL).unwrap_or_default();
    fill(&mut packed, bytes.len());
    if packed.is_empty() || packed.len() >= bytes.len() {
        packed.clear();
        packed.push(PLAIN);
        packed.extend(bytes);
    } else {
        packed.insert(0, ZSTD);
    }
    packed
}

/// The bytes that were packed; `limit` bytes at most, however many the packed ones claim to be. More
/// than 64 MiB are unpacked only where each packed byte stands for no more than 1,024. O(what it
/// holds).
///
/// # Errors
/// [`ErrorKind::Damaged`] where they are neither plain nor a zstd frame, [`ErrorKind::Limit`] where
/// there are more than that.
pub fn unpack(packed: &[u8], limit: u64) -> Result<Vec<u8>> {
    let most = most(packed, limit);
    match packed.split_first() {
        Some((&PLAIN, bytes)) if bytes.len() as u64 > limit => Err(too_long(limit)),
        Some((&PLAIN, bytes)) => Ok(bytes.to_vec()),
        Some((&ZSTD, bytes)) => {
            let damaged = |error: std::io::Error| {
                Error::new(ErrorKind::Damaged, "no zstd frame").with_source(error)
            };
            check_claim(bytes, most)?;
            let decoder = zstd::Decoder::with_buffer(bytes).map_err(damaged)?;
            let mut unpacked = Vec::with_capacity(most.min(RESERVED) as usize);
            decoder.take(most.saturating_add(1)).read_to_end(&mut unpacked).map_err(damaged)?;
            if unpacked.len() as u64 > most { Err(too_long(most)) } else { Ok(unpacked) }
        }
        Some((codec, _)) => {
            let message = format!("expected plain bytes (0) or zstd (1), found {codec}");
            Err(Error::new(ErrorKind::Damaged, message))
        }
        None => Err(Error::new(ErrorKind::Damaged, "expected packed bytes, found none")),
    }
}

/// The frame that a reader of zstd passes over: here it holds the checksum of what is before it.
const CHECK_MAGIC: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0];
/// The level of what is written once and kept.
const FILE_LEVEL: i32 = 6;

/// A whole file in zstd, with a checksum of its bytes at the end: in a frame that other programs
/// pass over. O(bytes).
///
/// # Errors
/// [`ErrorKind::Io`] where zstd cannot compress, which takes memory alone.
pub fn pack_file(bytes: &[u8]) -> Result<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, FILE_LEVEL);
    let mut packed = packed.map_err(|error| Error::io(error, "cannot compress"))?;
    fill(&mut packed, bytes.len());
    let check = crc32fast::hash(&packed);
    packed.extend(CHECK_MAGIC);
    packed.extend(check.to_le_bytes());
    Ok(packed)
}

/// What [`pack_file`] packed, or another program in zstd, `limit` bytes at most: as much of it as
/// can be read, and why not all. More than 64 MiB are unpacked only where each packed byte stands for
/// no more than 1,024; of a file that says it holds more nothing is. O(what it holds).
pub fn unpack_file(packed: &[u8], limit: u64) -> (Vec<u8>, Option<Error>) {
    let damaged = |message: &str| Error::new(ErrorKind::Damaged, message);
    let checked = packed.split_last_chunk::<4>().and_then(|(rest, check)| {
        let (body, magic) = rest.split_last_chunk::<8>()?;
        // Sixteen magic numbers are passed over: another one is ours with a flipped bit.
        let (passed_over, own) = (u64::from_le_bytes(*magic), u64::from_le_bytes(CHECK_MAGIC));
        (passed_over | 0xf == own | 0xf)
            .then(|| passed_over == own && crc32fast::hash(body) == u32::from_le_bytes(*check))
    });
    let most = most(packed, limit);
    if let Err(error) = check_claim(packed, most) {
        return (Vec::new(), Some(error));
    }
    let mut unpacked = Vec::new();
    let read = zstd::Decoder::with_buffer(packed)
        .and_then(|decoder| decoder.take(most.saturating_add(1)).read_to_end(&mut unpacked));
    let error = match (checked, read) {
        (_, Err(error)) => Some(damaged("no zstd frame").with_source(error)),
        (Some(false), Ok(_)) => Some(damaged("the compressed file fails its check")),
        (_, Ok(_)) if packed.is_empty() => Some(damaged("expected a zstd frame, found nothing")),
        (_, Ok(_)) if unpacked.len() as u64 > most => {
            // Nothing of it is to be trusted, or looked through.
            unpacked = Vec::new();
            Some(too_long(most))
        }
        _ => None,
    };
    (unpacked, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_a_claim_is_not_believed() {
        let many = b"again and ".repeat(1_000);
        for bytes in [&b""[..], b"a", b"\x00\xff", &many] {
            let packed = pack(bytes);
            assert!(packed.len() <= bytes.len() + 1);
            assert_eq!(unpack(&packed, bytes.len() as u64).unwrap(), bytes);
            if let Some(less) = (bytes.len() as u64).checked_sub(1) {
                assert_eq!(unpack(&packed, less).unwrap_err().kind(), ErrorKind::Limit);
            }
        }
        let packed = pack(&many);
        assert!(packed.len() < 100);
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end], 1 << 20).unwrap_err().kind(), ErrorKind::Damaged);
        }
        assert_eq!(unpack(&[7, 1], 9).unwrap_err().kind(), ErrorKind::Damaged);
    }

    #[test]
    fn writers_pad_what_packs_too_well_and_readers_refuse_it() {
        let many = vec![b'a'; 8 << 20];
        assert_eq!(unpack(&pack(&many), u64::MAX).unwrap(), many);
        let (bytes, error) = unpack_file(&pack_file(&many).unwrap(), u64::MAX);
        assert!(bytes == many && error.is_none());
        assert!(pack(&many).len() < many.len() / 200);
        // Another program's, which says how much it holds, and one that does not.
        let said = zstd::bulk::compress(&many, LEVEL).unwrap();
        let unsaid = zstd::encode_all(&*many, LEVEL).unwrap();
        for packed in [said, unsaid] {
            assert!((packed.len() as u64) < many.len() as u64 / MOST_RATIO);
            let (bytes, error) = unpack_file(&packed, u64::MAX);
            assert_eq!(error.unwrap().kind(), ErrorKind::Limit);
            assert!((bytes.len() as u64) <= most(&packed, u64::MAX) + 1);
            let error = unpack(&[&[ZSTD][..], &packed].concat(), u64::MAX).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit);
        }
    }

    #[test]
    fn every_flipped_bit_of_a_packed_file_is_found() {
        let packed = pack_file(b"a line\nanother line\n").unwrap();
        let (bytes, error) = unpack_file(&packed, 1 << 20);
        assert!(bytes == b"a line\nanother line\n" && error.is_none());
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut flipped = packed.clone();
                flipped[at] ^= 1 << bit;
                assert!(unpack_file(&flipped, 1 << 20).1.is_some(), "byte {at}, bit {bit}");
            }
        }
    }
}
