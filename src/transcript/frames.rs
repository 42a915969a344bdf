//! afterimage's own frames, and those of the specification: by line, or in a document.

use super::{answer, sink::Sink, take};
use crate::{
    json::Value,
    veil::{Frame, ModelAnswer, Source},
};

/// Reads frames, one a line or as a list. They are kept as they are.
pub(super) struct FramesFileReader;

/// The members under which a document may hold frames.
const LISTS: [&str; 2] = ["frames", "frameHistory"];

impl FramesFileReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let of_object = || LISTS.iter().find_map(|key| value.get(key)?.as_array());
        value.as_array().or_else(of_object).is_some_and(|frames| frames.iter().any(Self::is_line))
    }

    /// A frame.
    pub(super) fn is_line(value: &Value) -> bool {
        let is_numbered = value.get("sequence").is_some_and(|sequence| sequence.as_u64().is_some());
        is_numbered && value.get("deltas").is_some_and(|deltas| deltas.as_array().is_some())
    }

    fn frame(value: Value, line: u64, sink: &mut Sink) {
        // Loading takes the value apart, and what does not load is kept as it was. The session is
        // not part of the frame.
        let mut notes = Vec::new();
        let (session, frame) = match value.clone() {
            Value::Object(mut object) => {
                let session = take::text(&mut object, "session");
                (session, Frame::from_json_with_notes(object.into(), &mut notes))
            }
            other => (None, Frame::from_json(other)),
        };
        if let Some(session) = session {
            sink.session(&session);
        }
        match frame {
            Ok(mut frame) => {
                read_answer(&mut frame);
                notes.iter().for_each(|note| sink.note(line, &note.to_string()));
                sink.push_own(frame);
            }
            Err(error) => sink.unknown(line, error.to_string(), value),
        }
    }
}

/// A frame whose maker left what it says of its answer among the members is read by the names of the
/// APIs.
fn read_answer(frame: &mut Frame) {
    let is_agents = frame.source == Source::Agent;
    let Some(imported) = frame.imported.as_deref_mut().filter(|_| is_agents) else { return };
    let said = answer::of_message(&imported.members);
    if imported.answer.is_none() && said != ModelAnswer::default() {
        imported.answer = Some(Box::new(said));
    }
}

impl super::Decoder for FramesFileReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        match value {
            Value::Array(frames) => {
                for frame in frames {
                    Self::frame(frame, line, sink);
                }
            }
            Value::Object(mut object) if !object.contains_key("sequence") => {
                let list = LISTS.iter().find_map(|key| take::list(&mut object, key));
                let Some(frames) = list else {
                    return Self::frame(object.into(), line, sink);
                };
                if let Some(session) = take::text(&mut object, "session") {
                    sink.session(&session);
                }
                for key in object.keys() {
                    sink.skip(key);
                }
                for frame in frames {
                    Self::frame(frame, line, sink);
                }
            }
            other => Self::frame(other, line, sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write, sync::Arc};

    use super::{super::Tally, super::Transcript, *};
    use crate::{
        json::{self, Object, ObjectExt},
        snapshot::FrameSnapshot,
        veil::{Facet, FacetOp, Source},
    };

    fn read(input: &str) -> (Vec<(Arc<str>, Frame)>, Vec<String>) {
        let mut transcript = Transcript::new(input.as_bytes()).unwrap();
        assert_eq!(transcript.format().name(), "frames");
        let records: Vec<_> = transcript.by_ref().map(Result::unwrap).collect();
        let reasons =
            transcript.report().unknown.iter().map(|unknown| unknown.reason.clone()).collect();
        (records.into_iter().map(|record| (record.session, record.frame)).collect(), reasons)
    }

    fn sequences(frames: &[(Arc<str>, Frame)]) -> Vec<u64> {
        frames.iter().map(|(_, frame)| frame.sequence.get()).collect()
    }

    #[test]
    fn frames_that_are_written_by_line_are_read_back_equal() {
        let snapshot = r#"{"chunks":[{"content":"a","tokens":1,"facetIds":["e"]}],"totalContent":"a","totalTokens":1,"capturedAt":5,"hasContent":true,"x":1}"#;
        let snapshot = FrameSnapshot::from_json(json::read(snapshot.as_bytes()).unwrap()).unwrap();
        let mut first = Frame::new(7, Source::Agent)
            .with(FacetOp::add(Facet::tool_call("c", Some("1"), "open", Value::Null)))
            .with(FacetOp::remove("x"));
        first.rendered_snapshot = Some(Arc::new(snapshot));
        first.active_stream = Some(Value::Null);
        first.uuid = Some("u".to_owned());
        first.events = vec![Value::from("any"), Value::Object(Object::new())];
        first.extra.put("session", Value::from(5_u64));
        let second = Frame::new(8, Source::Other("radio".into()));
        let frames = [first, second];
        let mut file = String::new();
        for frame in &frames {
            writeln!(file, "{}", frame.to_json()).unwrap();
        }
        let (read, reasons) = read(&file);
        assert_eq!(read.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>(), frames);
        assert!(reasons.is_empty());
    }

    #[test]
    fn sessions_interleave_and_sequences_are_kept_where_they_rise_in_their_session() {
        let (frames, _) = read(
            r#"{"session":"a","sequence":3,"deltas":[]}
{"session":"b","sequence":1,"deltas":[]}
{"session":"a","sequence":5,"deltas":[]}
{"sequence":9,"deltas":[]}
{"session":"b","sequence":1,"deltas":[]}
{"session":"a","sequence":20,"deltas":[]}"#,
        );
        assert_eq!(
            frames.iter().map(|(session, _)| &**session).collect::<Vec<_>>(),
            ["a", "b", "a", "a", "b", "a"]
        );
        assert_eq!(sequences(&frames), [3, 1, 5, 9, 2, 20]);
    }

    #[test]
    fn sequences_rise_after_an_unknown_record_too() {
        let (frames, _) = read(
            r#"{"session":"a","sequence":1,"deltas":[{}]}
{"session":"a","sequence":0,"deltas":[]}
{"session":"a","sequence":7,"deltas":[]}"#,
        );
        assert_eq!(sequences(&frames), [0, 1, 7]);
    }

    #[test]
    fn what_does_not_load_is_reported_with_what_is_off_and_keeps_its_place() {
        let (frames, reasons) = read(
            r#"{"sequence":1,"deltas":[]}
{"sequence":2,"deltas":[],"timestamp":7}
{"sequence":3,"deltas":[{"type":"addFacet"}]}
{"sequence":4,"deltas":[]}
7"#,
        );
        assert_eq!(sequences(&frames), [1, 2, 3, 4, 5]);
        assert_eq!(frames.iter().filter(|(_, frame)| frame.ops.is_empty()).count(), 2);
        assert_eq!(
            reasons,
            [
                "expected a string, found 7 (frame 2, at /timestamp)",
                "expected a facet, found nothing (frame 3, op 0, at /facet)",
                "expected a frame (an object), found a number",
            ]
        );
    }

    #[test]
    fn a_frame_whose_snapshot_is_not_understood_keeps_its_ops_with_a_note() {
        let op = r#"[{"type":"addFacet","facet":{"id":"q","type":"event","content":"High?"}}]"#;
        for (snapshot, wrong) in [
            (r#"{"deltaChunks":[],"cumulativeTokens":5}"#, "expected an array, found nothing"),
            (r#"{"chunks":[],"totalContent":"","capturedAt":0}"#, "expected a token count"),
            (r#"{"chunks":[{"content":"a"}],"totalContent":"a"}"#, "expected a token count"),
            (r#"{"chunks":[],"totalContent":"a","totalTokens":0,"capturedAt":0}"#, "do not tile"),
            (r#""High?""#, "found a string"),
            ("[]", "found an array"),
            ("7", "found a number"),
        ] {
            for key in ["renderedSnapshot", "renderedTail"] {
                let line = format!(r#"{{"sequence":1,"deltas":{op},"{key}":{snapshot}}}"#);
                let mut transcript = Transcript::new(line.as_bytes()).unwrap();
                let frame = transcript.next().unwrap().unwrap().frame;
                let plain = format!(r#"{{"sequence":1,"deltas":{op}}}"#);
                assert_eq!(frame, Frame::from_json(json::read(plain.as_bytes()).unwrap()).unwrap());
                let notes = format!("{:?}", transcript.report().notes);
                let says = notes.contains("the snapshot is left out: ") && notes.contains(wrong);
                assert!(says && notes.contains("frame 1") && notes.contains(key), "{notes}");
                assert!(Frame::from_json(json::read(line.as_bytes()).unwrap()).is_err());
            }
        }
    }

    #[test]
    fn a_document_holds_frames_under_three_forms() {
        let frame =
            r#"{"sequence":4,"deltas":[{"type":"addFacet","facet":{"id":"r","type":"result"}}]}"#;
        for document in [
            format!("[{frame}]"),
            format!(r#"{{"frames":[{frame}]}}"#),
            format!("{{\"facets\":{{}},\n\"frameHistory\":[{frame}]}}"),
            format!("\n{frame}"),
        ] {
            let (frames, reasons) = read(&document);
            assert_eq!((sequences(&frames), reasons.len()), (vec![4], 0), "{document}");
            let mut tally = Tally::default();
            frames.iter().for_each(|(_, frame)| tally.add(frame));
            assert_eq!(tally, Tally { messages: 1, tool_calls: 0, tool_results: 1 });
        }
    }

    #[test]
    fn a_first_sequence_at_the_end_of_the_range_is_not_kept() {
        let last = u64::MAX;
        let (frames, _) = read(&format!(
            "{{\"sequence\":{last},\"deltas\":[]}}\n{{\"sequence\":{last},\"deltas\":[]}}"
        ));
        assert_eq!(sequences(&frames), [0, 1]);
    }
}
