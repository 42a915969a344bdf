//! Bodies that were packed to be sent: `content-encoding`.

use std::io::Read;

use crate::{Error, ErrorKind, Result};

/// A body has no more codings on top of each other.
const MOST_CODINGS: usize = 4;
/// The size of the pieces in which brotli reads.
const PIECE: usize = 4096;

/// The bytes of a body that was sent in these codings: the value of its `content-encoding`. Knows
/// `gzip`, `deflate`, `br`, `zstd` and `identity`.
///
/// Takes as much memory as the body and what it unpacks to, `most` bytes. O(bytes, and what they
/// hold up to `most`).
///
/// # Errors
/// [`ErrorKind::Shape`] where a coding is not known, or the bytes are not of it, or break off;
/// [`ErrorKind::Limit`] where they unpack to more than `most` bytes.
///
/// ```
/// use afterimage_record::unpacked;
///
/// // An empty block of brotli.
/// assert_eq!(unpacked(vec![0x3b], "identity, br", 100)?, b"");
/// assert!(unpacked(b"text".to_vec(), "gzip", 100).is_err());
/// # Ok::<(), afterimage_record::Error>(())
/// ```
pub fn unpacked(bytes: Vec<u8>, codings: &str, most: u64) -> Result<Vec<u8>> {
    match unpacked_start(bytes, codings, most)? {
        (bytes, None) => Ok(bytes),
        (_, Some(error)) => Err(error),
    }
}

/// As [`unpacked`], of bytes that may break off: as much as could be unpacked, and the error that
/// ended it. Clients close a connection behind the last event of a stream, and before the end of its
/// coding. O(bytes, and what they hold up to `most`).
///
/// # Errors
/// As [`unpacked`], but for bytes that break off or are not of the coding from some place on.
///
/// ```
/// use afterimage_record::unpacked_start;
///
/// let (found, error) = unpacked_start(b"text".to_vec(), "gzip", 100)?;
/// assert!(found.is_empty() && error.is_some());
/// # Ok::<(), afterimage_record::Error>(())
/// ```
pub fn unpacked_start(
    mut bytes: Vec<u8>,
    codings: &str,
    most: u64,
) -> Result<(Vec<u8>, Option<Error>)> {
    let codings: Vec<&str> = codings.split(',').map(str::trim).collect();
    if codings.len() > MOST_CODINGS {
        let message = format!("expected at most {MOST_CODINGS} codings of a body");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let mut broken = None;
    // The last one was applied last.
    for coding in codings.into_iter().rev() {
        let (unpacked, error) = unpacked_once(bytes, coding, most)?;
        (bytes, broken) = (unpacked, broken.or(error));
    }
    Ok((bytes, broken))
}

fn unpacked_once(bytes: Vec<u8>, coding: &str, most: u64) -> Result<(Vec<u8>, Option<Error>)> {
    let input = bytes.as_slice();
    match coding.to_ascii_lowercase().as_str() {
        "" | "identity" => Ok((bytes, None)),
        "gzip" | "x-gzip" => read(flate2::bufread::MultiGzDecoder::new(input), coding, most),
        "deflate" if is_zlib(input) => read(flate2::bufread::ZlibDecoder::new(input), coding, most),
        // Some send it without the frame of zlib that the standard asks for.
        "deflate" => read(flate2::bufread::DeflateDecoder::new(input), coding, most),
        "br" => read(brotli_decompressor::Decompressor::new(input, PIECE), coding, most),
        "zstd" => {
            let decoder = zstd::stream::read::Decoder::with_buffer(input);
            read(decoder.map_err(|error| unsound(coding, error))?, coding, most)
        }
        _ => {
            let message = format!("expected a body in a known coding, found {coding:?}");
            Err(Error::new(ErrorKind::Shape, message))
        }
    }
}

fn read(input: impl Read, coding: &str, most: u64) -> Result<(Vec<u8>, Option<Error>)> {
    let mut bytes = Vec::new();
    // A small body may unpack to any size.
    let mut input = input.take(most.saturating_add(1));
    // What came before an error is in `bytes`.
    let broken = input.read_to_end(&mut bytes).err().map(|error| unsound(coding, error));
    if bytes.len() as u64 > most {
        let message = format!("expected a body that unpacks to {most} bytes at most, found more");
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok((bytes, broken))
}

fn unsound(coding: &str, error: std::io::Error) -> Error {
    let message = format!("expected a whole body in the coding {coding}: {error}");
    Error::new(ErrorKind::Shape, message).with_source(error)
}

/// Whether bytes begin with a head of zlib.
fn is_zlib(bytes: &[u8]) -> bool {
    let [first, second, ..] = bytes else { return false };
    first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    use proptest::prelude::*;

    use super::*;

    /// `{"tide": "tide tide tide tide tide tide tide tide"}` as the reference encoder packs it.
    const BROTLI: &[u8] = include_bytes!("content/tide.br");

    fn packed(bytes: &[u8], coding: &str) -> Vec<u8> {
        fn all(mut encoder: impl Write, bytes: &[u8]) {
            encoder.write_all(bytes).unwrap();
            encoder.flush().unwrap();
        }
        let mut out = Vec::new();
        match coding {
            "gzip" => all(GzEncoder::new(&mut out, Compression::best()), bytes),
            "deflate" => all(ZlibEncoder::new(&mut out, Compression::best()), bytes),
            "raw" => all(DeflateEncoder::new(&mut out, Compression::best()), bytes),
            "zstd" => out = zstd::encode_all(bytes, 1).unwrap(),
            _ => out = bytes.to_vec(),
        }
        out
    }

    proptest! {
        #[test]
        fn a_body_comes_back_from_its_codings(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..600),
                "(tide|harbour){0,300}".prop_map(String::into_bytes),
            ],
            codings in proptest::collection::vec(
                prop_oneof![Just("gzip"), Just("deflate"), Just("zstd"), Just("identity")],
                0..=4,
            ),
        ) {
            let sent = codings.iter().fold(bytes.clone(), |bytes, coding| packed(&bytes, coding));
            let found = unpacked(sent, &codings.join(", "), 10_000).unwrap();
            prop_assert_eq!(&found, &bytes);
            let raw = packed(&bytes, "raw");
            if !is_zlib(&raw) {
                prop_assert_eq!(unpacked(raw, "deflate", 10_000).unwrap(), bytes);
            }
        }

        #[test]
        fn no_bytes_make_it_panic_or_unpack_to_too_much(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            for coding in ["gzip", "deflate", "br", "zstd"] {
                if let Ok(found) = unpacked(bytes.clone(), coding, 1000) {
                    prop_assert!(found.len() <= 1000);
                }
            }
        }
    }

    #[test]
    fn brotli_is_read() {
        let text = format!("{{\"tide\": \"{}\"}}", ["tide"; 8].join(" "));
        assert_eq!(unpacked(BROTLI.to_vec(), "br", 1000).unwrap(), text.as_bytes());
        let both = packed(BROTLI, "gzip");
        assert_eq!(unpacked(both, "br, gzip", 1000).unwrap(), text.as_bytes());
        for cut in 0..BROTLI.len() {
            assert!(unpacked(BROTLI[..cut].to_vec(), "br", 1000).is_err(), "{cut}");
        }
        assert_eq!(unpacked(BROTLI.to_vec(), "br", 9).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn of_a_body_that_breaks_off_all_is_given_that_came_before() {
        let event = "data: {\"tide\": \"high\"}\n\n";
        // Each event is sent at once, as of a stream, and the end of the coding never comes.
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut zstd = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        for _ in 0..3 {
            for encoder in [&mut gzip as &mut dyn Write, &mut deflate, &mut zstd] {
                encoder.write_all(event.as_bytes()).unwrap();
                encoder.flush().unwrap();
            }
        }
        let sent = [
            ("gzip", gzip.get_ref().clone()),
            ("deflate", deflate.get_ref().clone()),
            ("zstd", zstd.get_ref().clone()),
        ];
        for (coding, bytes) in sent {
            assert!(unpacked(bytes.clone(), coding, 1000).is_err(), "{coding}");
            let (found, error) = unpacked_start(bytes.clone(), coding, 1000).unwrap();
            assert_eq!(found, event.repeat(3).as_bytes(), "{coding}");
            assert_eq!(error.unwrap().kind(), ErrorKind::Shape);
            // One coding in another breaks off in both.
            let both = packed(&bytes, "zstd");
            let (found, error) = unpacked_start(both, &format!("{coding}, zstd"), 1000).unwrap();
            assert_eq!((found.len(), error.is_some()), (event.len() * 3, true), "{coding}");
        }
        let (found, error) = unpacked_start(BROTLI[..BROTLI.len() - 1].to_vec(), "br", 99).unwrap();
        assert!(found.len() < 60 && error.is_some());
        let (found, error) = unpacked_start(b"whole".to_vec(), "identity", 99).unwrap();
        assert!(found == b"whole" && error.is_none());
    }

    #[test]
    fn a_bomb_and_a_coding_that_is_not_known_are_refused() {
        for coding in ["gzip", "deflate", "zstd"] {
            let bomb = packed(&vec![0; 1 << 20], coding);
            assert!(bomb.len() < 1 << 12);
            assert_eq!(unpacked(bomb, coding, 1 << 16).unwrap_err().kind(), ErrorKind::Limit);
        }
        for codings in ["compress", "gzip, aes", "br,br,br,br,br"] {
            assert_eq!(unpacked(vec![7], codings, 9).unwrap_err().kind(), ErrorKind::Shape);
        }
    }
}
