use flate2::{Compress, Compression, FlushCompress};
use proptest::prelude::*;
use tungstenite::protocol::frame::{
    FrameHeader,
    coding::{Control, Data, OpCode},
};

use super::*;

/// A message that a side sends: what it holds, where it is cut into frames, and whether it is packed.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    cuts: Vec<u16>,
    is_packed: bool,
    /// Whether a ping stands before each frame but the first.
    has_pings: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let words = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..400),
        "(tide|harbour|\\{\"a\": 1\\}){0,90}".prop_map(String::into_bytes),
        // Longer than what a head of two bytes of length counts, and than the window.
        (any::<u8>(), 60_000_usize..80_000).prop_map(|(byte, length)| vec![byte; length]),
    ];
    (words, proptest::collection::vec(any::<u16>(), 0..4), any::<bool>(), any::<bool>())
        .prop_map(|(bytes, cuts, is_packed, has_pings)| Sent { bytes, cuts, is_packed, has_pings })
}

/// Packs a message as zlib does for a sender, and leaves the tail out.
fn packed(stream: &mut Compress, bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len() + 1024);
    let mut left = bytes;
    loop {
        let before = stream.total_in();
        all.reserve(1024);
        stream.compress_vec(left, &mut all, FlushCompress::Sync).unwrap();
        left = &left[usize::try_from(stream.total_in() - before).unwrap()..];
        if left.is_empty() && all.len() < all.capacity() {
            break;
        }
    }
    assert!(all.ends_with(&[0, 0, 0xff, 0xff]));
    all.truncate(all.len() - 4);
    all
}

/// A frame, as a library of WebSockets writes its head.
fn frame(
    opcode: OpCode,
    is_final: bool,
    rsv1: bool,
    mask: Option<[u8; 4]>,
    payload: &[u8],
) -> Vec<u8> {
    let header = FrameHeader { is_final, rsv1, rsv2: false, rsv3: false, opcode, mask };
    let mut bytes = Vec::new();
    header.format(payload.len() as u64, &mut bytes).unwrap();
    let mask = mask.unwrap_or_default();
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// What a side writes.
fn written(all: &[Sent], deflate: Deflate, mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut stream = Compress::new(Compression::default(), false);
    let mut bytes = Vec::new();
    for sent in all {
        if deflate.no_context_takeover {
            stream.reset();
        }
        let payload =
            if sent.is_packed { packed(&mut stream, &sent.bytes) } else { sent.bytes.clone() };
        let mut cuts: Vec<usize> =
            sent.cuts.iter().map(|cut| usize::from(*cut) % (payload.len() + 1)).collect();
        cuts.extend([0, payload.len()]);
        cuts.sort_unstable();
        for (at, ends) in cuts.windows(2).enumerate() {
            if sent.has_pings && at > 0 {
                bytes.extend(frame(OpCode::Control(Control::Ping), true, false, mask, b"here?"));
            }
            let opcode = OpCode::Data(if at == 0 { Data::Text } else { Data::Continue });
            let (is_last, rsv1) = (at + 2 == cuts.len(), sent.is_packed && at == 0);
            bytes.extend(frame(opcode, is_last, rsv1, mask, &payload[ends[0]..ends[1]]));
        }
    }
    bytes.extend(frame(OpCode::Control(Control::Close), true, false, mask, &[]));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_message_is_read_whatever_frames_masks_and_pieces_it_comes_in(
        all in proptest::collection::vec(sent(), 0..6),
        no_context_takeover: bool,
        mask: Option<[u8; 4]>,
        piece in 1_usize..3000,
        most in prop_oneof![Just(usize::MAX), 0_usize..100],
    ) {
        let deflate = Deflate { no_context_takeover };
        let bytes = written(&all, deflate, mask);
        let mut decoder = Decoder::new(Some(deflate), most);
        let mut found = Vec::new();
        for piece in bytes.chunks(piece) {
            decoder.push(piece, |message| found.push(message)).unwrap();
        }
        let expected: Vec<Message> = all
            .iter()
            .map(|sent| Message::Data {
                bytes: sent.bytes[..sent.bytes.len().min(most)].to_vec(),
                total: sent.bytes.len() as u64,
            })
            .chain([Message::Close])
            .collect();
        prop_assert!(found == expected);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        deflate: bool,
    ) {
        let mut decoder = Decoder::new(deflate.then(Deflate::default), 100);
        let _ = decoder.push(&bytes, drop);
    }
}

#[test]
fn what_is_no_frame_is_refused() {
    for (bytes, expected) in [
        (&[0x83, 0][..], "a known kind"),
        (&[0xa1, 0], "a frame of a WebSocket"),
        (&[0xc1, 0], "nothing else was agreed on"),
        (&[0x80, 0], "the first frame"),
        (&[0x01, 0, 0x01, 0], "the next frame"),
        (&[0x09, 0], "in one piece"),
        (&[0x89, 126, 0, 126], "in one piece"),
        (&[0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], "a frame of a WebSocket"),
    ] {
        let error = Decoder::new(None, 9).push(bytes, drop).unwrap_err();
        assert!(error.message().contains(expected), "{bytes:?}: {error}");
    }
    let error = Decoder::new(Some(Deflate::default()), 9).push(&[0xc1, 1, 0xff], drop).unwrap_err();
    assert!(error.message().contains("a packed message"), "{error}");
}

#[test]
fn a_message_that_unpacks_to_too_much_is_refused() {
    let mut stream = Compress::new(Compression::best(), false);
    let bomb = packed(&mut stream, &vec![0; (MOST_UNPACKED as usize) + 1]);
    assert!(bomb.len() < 1 << 20);
    let bytes = frame(OpCode::Data(Data::Binary), true, true, None, &bomb);
    let error = Decoder::new(Some(Deflate::default()), 9).push(&bytes, drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn a_block_that_says_it_is_the_last_one_ends_no_stream() {
    // The example of RFC 7692, 7.2.3.4, twice.
    let packed = [0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00];
    let bytes = frame(OpCode::Data(Data::Text), true, true, None, &packed).repeat(2);
    let mut found = Vec::new();
    let mut decoder = Decoder::new(Some(Deflate::default()), 9);
    decoder.push(&bytes, |message| found.push(message)).unwrap();
    let hello = Message::Data { bytes: b"Hello".to_vec(), total: 5 };
    assert_eq!(found, [hello.clone(), hello]);
}
