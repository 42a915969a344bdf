//! Any bytes are a transcript or refused; its frames are captured, written and read again.
#![no_main]

use std::{collections::HashMap, sync::Arc};

use afterimage::{
    export::PrefixRules,
    hud::{Hud, RenderRequest},
    id::Millis,
    json,
    request::Recording,
    tokens::Chars4,
    transcript::{Transcript, decoded},
    veil::{Frame, History},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(transcript) = Transcript::new(bytes) else { return };
    let hud = Hud::new(Arc::new(Chars4));
    let mut sessions: HashMap<_, History> = HashMap::new();
    for record in transcript {
        let Ok(record) = record else { return };
        let frame = record.frame;
        let wire = frame.to_json().to_string();
        // Nesting may have grown past what is read.
        if let Ok(value) = json::read(wire.as_bytes()) {
            assert_eq!(Frame::from_json(value).expect("what was written is read"), frame);
        }
        let history = sessions.entry(record.session).or_default();
        let last = history.frames().last().map(|last| last.sequence);
        assert!(last.is_none_or(|last| last < frame.sequence), "sequences rise in a session");
        // Frames of the library's own format may hold ops that cannot be applied.
        let Ok(frame) = hud.capture(history, frame, Millis::new(0)) else { continue };
        let snapshot = frame.rendered_snapshot.as_deref().expect("a captured frame");
        let chunks: String = snapshot.chunks().map(|chunk| chunk.content()).collect();
        assert_eq!(chunks, snapshot.text());
    }
    for history in sessions.values() {
        let _ = hud.render(history, &RenderRequest::default(), Millis::new(0));
    }
    requests(bytes);
});

/// The requests of the same bytes, unpacked: their parts tile them.
fn requests(bytes: &[u8]) {
    let Ok(input) = decoded(bytes) else { return };
    let Ok(transcript) = Transcript::new(input) else { return };
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
    let Ok(recording) = recording else { return };
    for exchange in recording.exchanges() {
        let Ok(request) = recording.request(exchange.number) else { continue };
        let parts = request.parts();
        let end = parts.iter().try_fold(0, |end, part| {
            (part.range.start == end && part.range.end > end).then_some(part.range.end)
        });
        assert_eq!(end, Some(request.body().len()), "the parts tile the body");
        let _ = (request.in_cache_order(), request.tokens(&Chars4));
        let _ = recording.compare(exchange.number, PrefixRules::EXACT);
    }
}
