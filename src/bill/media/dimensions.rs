//! The size of an image from the beginning of its file: PNG, JPEG, GIF and WebP.

/// The width and the height of an image in pixels; `None` where the bytes are of no known format,
/// or end too early. Reads headers alone, and never more than is there.
///
/// ```
/// use afterimage::bill::image_size;
///
/// assert_eq!(image_size(b"GIF89a\x20\x03\x58\x02"), Some((800, 600)));
/// assert_eq!(image_size(b"no image"), None);
/// ```
pub fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png(bytes),
        [0xff, 0xd8, ..] => jpeg(bytes),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => {
            Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?))
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(bytes),
        _ => None,
    };
    size.filter(|(width, height)| *width > 0 && *height > 0)
}

/// The header is the first chunk: 4 bytes of length, its name, and the two sizes.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let is_header = bytes.get(12..16)? == b"IHDR";
    is_header.then_some((big(bytes, 16, 4)?, big(bytes, 20, 4)?))
}

/// Walks the segments up to the start of a frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // A mark may be filled up with these.
            0xff => at += 1,
            // Marks without a length.
            0x01 | 0xd0..=0xd8 => at += 2,
            // A frame starts here. The markers in between (C4, C8, CC) start tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            // The data begins, or the image ends.
            0xd9 | 0xda => return None,
            _ => at = at.checked_add(2 + usize::try_from(big(bytes, at + 2, 2)?).ok()?)?,
        }
    }
}

/// Lossy, lossless, or extended.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            let is_key = bytes.get(23..26)? == [0x9d, 0x01, 0x2a];
            let side = |at| Some(little(bytes, at, 2)? & 0x3fff);
            is_key.then_some((side(26)?, side(28)?))
        }
        b"VP8L" => {
            let bits = (*bytes.get(20)? == 0x2f).then_some(little(bytes, 21, 4)?)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(count)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The first bytes of base64, as many as `most`, rounded down to threes; white space is passed
/// over. `None` where something else stands in it.
pub(super) fn base64_beginning(text: &str, most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most.min(text.len() / 4 * 3));
    let (mut held, mut digits) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        held = held << 6 | u32::from(digit);
        digits += 1;
        if digits == 4 {
            let [_, first, second, third] = held.to_be_bytes();
            bytes.extend([first, second, third]);
            (held, digits) = (0, 0);
        }
        if bytes.len() + 3 > most {
            return Some(bytes);
        }
    }
    // What is left of a last group: two digits are a byte, three are two.
    let rest = match digits {
        2 => (held << 20, 1),
        3 => (held << 14, 2),
        _ => (0, 0),
    };
    let [first, second, ..] = rest.0.to_be_bytes();
    bytes.extend([first, second].into_iter().take(rest.1));
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_read_from_the_headers_of_each_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x03\0";
        assert_eq!(image_size(png), Some((1_024, 768)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xdb\0\x03a\xff\xc2\0\x0b\x08\x02\x58\x03\x20";
        assert_eq!(image_size(jpeg), Some((800, 600)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x43\x58\x02";
        assert_eq!(image_size(lossy), Some((800, 600)));
        let [width, height] = [799_u32, 599 << 14];
        let bits = (width + height).to_le_bytes();
        let lossless = [&b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f"[..], &bits].concat();
        assert_eq!(image_size(&lossless), Some((800, 600)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(image_size(extended), Some((800, 600)));
        for bytes in [&png[..], jpeg, lossy, &lossless, extended] {
            for end in 0..bytes.len() {
                let found = image_size(&bytes[..end]);
                assert!(found.is_none(), "{end} {found:?}");
            }
        }
        assert_eq!(image_size(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\x03\0"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(start in 0_usize..5, bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            let starts: [&[u8]; 5] = [b"", b"\xff\xd8", b"RIFF\0\0\0\0WEBPVP8X", b"GIF89a", b"\x89PNG\r\n\x1a\n"];
            let _ = image_size(&[starts[start], &bytes].concat());
        }

        #[test]
        fn the_beginning_of_base64_is_that_of_its_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..90), most in 0_usize..120
        ) {
            let found = base64_beginning(&STANDARD.encode(&bytes), most).unwrap();
            prop_assert!(bytes.starts_with(&found));
            prop_assert!(found.len() >= most.saturating_sub(2).min(bytes.len()), "{} {most}", found.len());
        }
    }
}
