//! Any bytes of a WebSocket are decoded or refused, the same in whatever pieces they come.
#![no_main]

use afterimage::record::wire::websocket::{Decoder, Deflate, Message};
use libfuzzer_sys::fuzz_target;

/// The most that is kept of a message.
const MOST: usize = 1000;

fn read(deflate: Option<Deflate>, bytes: &[u8], piece: usize) -> (Vec<Message>, bool) {
    let (mut decoder, mut messages) = (Decoder::new(deflate, MOST), Vec::new());
    let mut pieces = bytes.chunks(piece);
    let is_sound = pieces.all(|piece| decoder.push(piece, |of| messages.push(of)).is_ok());
    (messages, is_sound)
}

fuzz_target!(|input: (Option<bool>, u8, Vec<u8>)| {
    let (packing, piece, bytes) = input;
    let deflate = packing.map(|no_context_takeover| Deflate { no_context_takeover });
    let whole = read(deflate, &bytes, bytes.len().max(1));
    assert_eq!(read(deflate, &bytes, usize::from(piece).max(1)), whole);
    for message in whole.0 {
        if let Message::Data { bytes, total } = message {
            assert_eq!(bytes.len() as u64, total.min(MOST as u64));
        }
    }
});
