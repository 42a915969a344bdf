//! Any JSON is a snapshot, a frame, or refused. What loads keeps its promises and is written back.
#![no_main]

use std::sync::Arc;

use afterimage::{
    hud::{Hud, Merge, RenderRequest},
    id::{FrameSeq, Millis},
    json,
    snapshot::{FrameSnapshot, extract_snapshot_range, group_chunks_by_role},
    tokens::Chars4,
    veil::{Frame, History},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = json::read(bytes) else { return };
    if let Ok(snapshot) = FrameSnapshot::from_json(value.clone()) {
        check(&snapshot);
    }
    let Ok(frame) = Frame::from_json(value) else { return };
    assert_eq!(Frame::from_json(frame.to_json()).expect("what was written is read"), frame);
    let mut history = History::new();
    for _ in 0..2 {
        let sequence = history.next_sequence().expect("a short history");
        if history.push(Frame { sequence, ..frame.clone() }).is_err() {
            return;
        }
    }
    let hud = Hud::new(Arc::new(Chars4));
    let request = RenderRequest { merge: Merge::AdjacentRoles, ..RenderRequest::default() };
    let context = hud.render(&history, &request, Millis::new(0)).expect("built-in formats");
    for message in context.messages() {
        let bytes: usize = context.spans(message).iter().map(|span| span.range.len()).sum();
        assert_eq!(bytes, message.content().len());
    }
});

fn check(snapshot: &FrameSnapshot) {
    let again = FrameSnapshot::from_json(snapshot.to_json()).expect("what was written is read");
    assert_eq!(&again, snapshot);
    let chunks: String = snapshot.chunks().map(|chunk| chunk.content()).collect();
    assert_eq!(chunks, snapshot.text());
    let sum = snapshot.chunks().fold(0_u64, |sum, chunk| sum + chunk.tokens());
    assert_eq!(sum, snapshot.total_tokens());
    for offset in 0..snapshot.text().len() {
        assert!(snapshot.chunk_at(offset).expect("a byte of the text").range().contains(offset));
    }
    let frames = [0, 1].map(|at| (FrameSeq::new(at), snapshot));
    let range = extract_snapshot_range(frames, FrameSeq::new(0)..=FrameSeq::new(1));
    assert_eq!(range.expect("a range").chunks.len(), 2 * snapshot.len());
    group_chunks_by_role(snapshot);
}
