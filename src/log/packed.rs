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
}
