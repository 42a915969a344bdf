//! A veil that replays from a journal is the veil that the frames led to.
#![allow(clippy::unwrap_used)]

use afterimage_testkit::data;

use std::collections::BTreeMap;

use afterimage::{
    id::Millis,
    journal::{
        self, EventId, Expected, Journal, JournalOptions, Memory, NewEvent, SessionName,
        SnapshotPolicy,
    },
    session::bridge::ReplayedVeil,
    transcript::Transcript,
    veil::{Facet, FacetOp, Frame, Source, Veil},
};
use data::{files_under, recordings};

const NOW: Millis = Millis::new(0);

/// Everything that a veil shows of itself.
fn shown(veil: &Veil) -> (Vec<String>, Vec<String>, Vec<String>) {
    let text = |facet: &Facet| facet.to_json().to_string();
    let mut tags: Vec<String> = veil.tags().iter().map(str::to_owned).collect();
    tags.sort();
    let facets = veil.facets().into_iter().map(|facet| text(&facet)).collect();
    (facets, veil.ambient().map(|facet| text(&facet)).collect(), tags)
}

#[test]
fn recorded_frames_lead_to_the_same_veil_by_a_snapshot_and_without() {
    let mut frames = 0;
    for group in ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"] {
        let Some(folder) = recordings(group) else { return };
        for path in files_under(&folder).into_iter().take(4) {
            let Ok(transcript) = Transcript::open(&path) else { continue };
            let mut sessions: BTreeMap<String, Vec<Frame>> = BTreeMap::new();
            for record in transcript.take(300) {
                let record = record.unwrap();
                sessions.entry(record.session.to_string()).or_default().push(record.frame);
            }
            let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
            for (name, of) in &sessions {
                let session = SessionName::new(name.as_str()).unwrap();
                let mut veil = Veil::default();
                for (n, frame) in of.iter().enumerate() {
                    veil.apply(frame).unwrap();
                    let body = serde_json::to_vec(frame).unwrap();
                    let id = EventId::new(n.to_string()).unwrap();
                    let new = NewEvent::new(id, "frame", body).unwrap();
                    journal.append(&session, Expected::Last(n as u64), new, NOW).unwrap();
                    if n == of.len() / 2 {
                        let half = journal.load::<ReplayedVeil>(&session).unwrap();
                        let after = half.sequence;
                        journal.write_snapshot(&session, &half.state, after, NOW).unwrap();
                    }
                }
                let loaded = journal.load::<ReplayedVeil>(&session).unwrap();
                assert!(loaded.report.snapshot.is_some());
                assert_eq!(shown(loaded.state.veil()), shown(&veil), "{}", path.display());
                assert_eq!(loaded.state.last(), of.last().map(|frame| frame.sequence));
                frames += of.len();
            }
        }
    }
    eprintln!("{frames} frames");
}

#[test]
fn a_frame_that_does_not_apply_is_not_appended() {
    let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
    let session = SessionName::new("a").unwrap();
    let policy = SnapshotPolicy::OnRequest;
    let (mut live, _) = journal.live::<ReplayedVeil>(&session, policy).unwrap();
    let id = |text: &str| EventId::new(text).unwrap();
    let strange = Frame::new(3, Source::Agent).with(FacetOp::remove("nobody"));
    let error = journal.record(&mut live, id("1"), &strange, NOW).unwrap_err();
    assert_eq!(error.kind(), journal::ErrorKind::Refused);
    journal.record(&mut live, id("2"), &Frame::new(3, Source::Agent), NOW).unwrap();
    let error = journal.record(&mut live, id("3"), &Frame::new(3, Source::Agent), NOW);
    assert_eq!(error.unwrap_err().kind(), journal::ErrorKind::Sequence);
    assert_eq!(journal.read(&session, 1, 9).unwrap().len(), 1);
}
