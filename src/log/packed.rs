//! Bytes that are compressed where that helps.

use std::io::Read;

use crate::{Error, ErrorKind, Result};

/// The level of zstd: about as fast as a disk writes.
const LEVEL: i32 = 1;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// The most that is reserved before bytes come.
const RESERVED: u64 = 1 << 20;

/// The bytes with a first byte that says how they are kept: as they are, or compressed with zstd
/// where that is shorter.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = zstd::bulk::compress(bytes, LEVEL).unwrap_or_default();
    if packed.is_empty() || packed.len() >= bytes.len() {
        packed.clear();
        packed.push(PLAIN);
        packed.extend(bytes);
    } else {
        packed.insert(0, ZSTD);
    }
    packed
}

/// The bytes that were packed; `limit` bytes at most, however many the packed ones claim to be.
///
/// # Errors
/// [`ErrorKind::Damaged`] where they are neither plain nor a zstd frame, [`ErrorKind::Limit`] where
/// there are more than `limit`.
pub fn unpack(packed: &[u8], limit: u64) -> Result<Vec<u8>> {
    let too_long = || Error::new(ErrorKind::Limit, format!("expected at most {limit} bytes"));
    match packed.split_first() {
        Some((&PLAIN, bytes)) if bytes.len() as u64 > limit => Err(too_long()),
        Some((&PLAIN, bytes)) => Ok(bytes.to_vec()),
        Some((&ZSTD, bytes)) => {
            let damaged = |error: std::io::Error| {
                Error::new(ErrorKind::Damaged, "no zstd frame").caused_by(error)
            };
            let decoder = zstd::Decoder::with_buffer(bytes).map_err(damaged)?;
            let mut unpacked = Vec::with_capacity(limit.min(RESERVED) as usize);
            decoder.take(limit.saturating_add(1)).read_to_end(&mut unpacked).map_err(damaged)?;
            if unpacked.len() as u64 > limit { Err(too_long()) } else { Ok(unpacked) }
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
/// pass over.
///
/// # Errors
/// [`ErrorKind::Io`] where zstd cannot compress, which takes memory alone.
pub fn pack_file(bytes: &[u8]) -> Result<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, FILE_LEVEL);
    let mut packed = packed.map_err(|error| Error::io(error, "cannot compress"))?;
    let check = crc32fast::hash(&packed);
    packed.extend(CHECK_MAGIC);
    packed.extend(check.to_le_bytes());
    Ok(packed)
}

/// What [`pack_file`] packed, or another program in zstd, `limit` bytes at most: as much of it as
/// can be read, and why not all.
pub fn unpack_file(packed: &[u8], limit: u64) -> (Vec<u8>, Option<Error>) {
    let damaged = |message: &str| Error::new(ErrorKind::Damaged, message);
    let checked = packed.split_last_chunk::<4>().and_then(|(rest, check)| {
        let (body, magic) = rest.split_last_chunk::<8>()?;
        // Sixteen magic numbers are passed over: another one is ours with a flipped bit.
        let (passed_over, own) = (u64::from_le_bytes(*magic), u64::from_le_bytes(CHECK_MAGIC));
        (passed_over | 0xf == own | 0xf)
            .then(|| passed_over == own && crc32fast::hash(body) == u32::from_le_bytes(*check))
    });
    let mut unpacked = Vec::new();
    let read = zstd::Decoder::with_buffer(packed)
        .and_then(|decoder| decoder.take(limit.saturating_add(1)).read_to_end(&mut unpacked));
    let error = match (checked, read) {
        (_, Err(error)) => Some(damaged("no zstd frame").caused_by(error)),
        (Some(false), Ok(_)) => Some(damaged("the compressed file fails its check")),
        (_, Ok(_)) if packed.is_empty() => Some(damaged("expected a zstd frame, found nothing")),
        (_, Ok(_)) if unpacked.len() as u64 > limit => {
            Some(Error::new(ErrorKind::Limit, format!("expected at most {limit} bytes")))
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
