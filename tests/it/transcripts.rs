//! Every recorded transcript reads, counts as an independent counter counts it, and holds the
//! invariants in every format.

use afterimage_testkit::data;
use afterimage_testkit::recount;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use afterimage::{
    Result,
    hud::{Hud, Merge, Owner, RenderRequest, format_by_name},
    id::{FrameSeq, Millis},
    json::Object,
    snapshot::FrameSnapshot,
    tokens::{Bpe, Memo, TokenCounter},
    transcript::{Record, Tally, Transcript},
    veil::{FacetOp, Frame, History, Source},
};

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn files() -> Vec<PathBuf> {
    GROUPS
        .iter()
        .filter_map(|group| data::recordings(group))
        .flat_map(|folder| data::files_under(&folder))
        .collect()
}

fn records(path: &PathBuf) -> Vec<Record> {
    let transcript = Transcript::open(path).unwrap_or_else(|error| panic!("{error}"));
    transcript.collect::<Result<_>>().unwrap_or_else(|error| panic!("{error}"))
}

/// The frames of each session.
fn sessions(path: &PathBuf) -> BTreeMap<Arc<str>, Vec<Frame>> {
    let mut sessions: BTreeMap<_, Vec<Frame>> = BTreeMap::new();
    for record in records(path) {
        sessions.entry(record.session).or_default().push(record.frame);
    }
    sessions
}

fn capture(hud: &Hud, frames: &[Frame]) -> History {
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
    }
    history
}

fn snapshots(history: &History) -> impl Iterator<Item = (FrameSeq, Arc<FrameSnapshot>)> {
    history.frames().map(|frame| (frame.sequence, frame.rendered_snapshot.clone().unwrap()))
}

#[test]
fn messages_calls_and_results_are_those_of_an_independent_counter() {
    for path in files() {
        // The files of subagents are read with that of their session.
        let mut expected = recount::recount(&path);
        for file in afterimage::transcript::subagent_files(&path) {
            let subagent = recount::recount(&file);
            expected.messages += subagent.messages;
            expected.tool_calls += subagent.tool_calls;
            expected.tool_results += subagent.tool_results;
        }
        let mut tally = Tally::default();
        records(&path).iter().for_each(|record| tally.add(&record.frame));
        let found = (tally.messages, tally.tool_calls, tally.tool_results);
        let expected = (expected.messages, expected.tool_calls, expected.tool_results);
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn sequences_rise_by_one_over_a_file_and_facets_have_ids_of_their_own() {
    for path in files() {
        let mut ids = std::collections::HashSet::new();
        for (index, record) in records(&path).iter().enumerate() {
            assert_eq!(record.frame.sequence.get(), index as u64, "{}", path.display());
            for op in &record.frame.ops {
                assert!(ids.insert(op.facet_id().clone()), "{}: {}", path.display(), op.facet_id());
            }
        }
    }
}

#[test]
fn a_line_that_is_still_written_moves_no_frame_before_it() {
    /// So many lines of each file are looked at.
    const LINES: usize = 12;
    let read = |bytes: &[u8]| -> Option<Vec<Record>> {
        Transcript::new(bytes).ok()?.collect::<Result<_>>().ok()
    };
    let mut cuts = 0;
    for path in files() {
        let bytes = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = bytes
            .iter()
            .enumerate()
            .filter(|(_, of)| **of == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        for pair in ends.windows(2).step_by((ends.len() / LINES).max(1)) {
            let [start, end] = *pair else { unreachable!() };
            let half = start + (end - start) / 2;
            let (Some(before), Some(with)) = (read(&bytes[..start]), read(&bytes[..half])) else {
                continue;
            };
            let (whole, last) = with.split_at(before.len().min(with.len()));
            assert!(whole == before, "{} at {start}", path.display());
            assert!(last.len() <= 1, "{} at {start}", path.display());
            cuts += last.len();
        }
    }
    assert!(cuts > 100 || data::recordings("A-openai-chat").is_none(), "{cuts}");
}

#[test]
fn frames_written_as_json_lines_read_back_equal() {
    for path in files() {
        let records = records(&path);
        let mut lines = String::new();
        for record in &records {
            let mut line = afterimage::json::Object::new();
            line.insert("session".to_owned(), (&*record.session).into());
            let afterimage::json::Value::Object(frame) = record.frame.to_json() else { panic!() };
            line.extend(frame);
            lines.push_str(&afterimage::json::Value::Object(line).to_string());
            lines.push('\n');
        }
        if records.is_empty() {
            continue;
        }
        let back: Vec<Record> =
            Transcript::new(lines.as_bytes()).unwrap().collect::<Result<_>>().unwrap();
        assert!(back == records, "{}", path.display());
    }
}

#[test]
fn tiling_one_renderer_and_deterministic_over_recordings() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    for format in ["xml", "plain", "native"] {
        let hud = Hud::builder(counter.clone()).format(format_by_name(format).unwrap()).build();
        for path in files() {
            for (session, frames) in sessions(&path) {
                let (history, again) = (capture(&hud, &frames), capture(&hud, &frames));
                // The same frames without their snapshots, rendered from the veil of each frame.
                let mut bare = History::new();
                for frame in &frames {
                    bare.push(frame.clone()).unwrap();
                }
                let request = RenderRequest::default();
                let sealed = hud.render(&history, &request, Millis::new(0)).unwrap();
                let rendered = hud.render(&bare, &request, Millis::new(0)).unwrap();
                assert!(sealed.to_json() == rendered.to_json(), "{}: {session}", path.display());
                for ((sequence, snapshot), (_, other)) in snapshots(&history).zip(snapshots(&again))
                {
                    let place = format!("{}: frame {sequence}, {format}", path.display());
                    assert!(snapshot == other, "{place}");
                    let joined: String =
                        snapshot.chunks().map(afterimage::snapshot::ChunkRef::content).collect();
                    assert!(joined == snapshot.text(), "{place}");
                    let back = FrameSnapshot::from_json(snapshot.to_json()).unwrap();
                    assert!(back == *snapshot, "{place}");
                }
            }
        }
    }
}

#[test]
fn owned_bytes_over_recordings() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    for (format, merge) in
        [("xml", Merge::PerFrame), ("xml", Merge::AdjacentRoles), ("native", Merge::AdjacentRoles)]
    {
        let hud = Hud::builder(counter.clone()).format(format_by_name(format).unwrap()).build();
        let request = RenderRequest { merge, ..RenderRequest::default() };
        for path in files() {
            for (_, frames) in sessions(&path) {
                let history = capture(&hud, &frames);
                let context = hud.render(&history, &request, Millis::new(0)).unwrap();
                for (index, message) in context.messages().iter().enumerate() {
                    let content = message.content();
                    let mut end = 0;
                    for span in context.spans(message) {
                        assert_eq!(span.range.start(), end, "{}", path.display());
                        assert!(content.is_char_boundary(span.range.end()), "{}", path.display());
                        assert_eq!(context.owner_of(index, end).as_ref(), Some(&span.owner));
                        if let Owner::Chunk { frame, chunk, .. } = &span.owner {
                            let frame = history.get(*frame).unwrap();
                            let chunk =
                                frame.rendered_snapshot.as_ref().unwrap().chunk(*chunk).unwrap();
                            assert_eq!(chunk.content(), span.range.of(&content));
                        }
                        end = span.range.end();
                    }
                    assert_eq!(end, content.len(), "{}", path.display());
                }
            }
        }
    }
}

#[test]
fn frozen_past_over_recordings() {
    let hud = Hud::new(Arc::new(Memo::new(afterimage::tokens::Chars4)));
    for path in files() {
        for (session, frames) in sessions(&path) {
            let half = frames.len() / 2;
            let mut history = capture(&hud, &frames[..half]);
            let before: Vec<String> =
                snapshots(&history).map(|(_, snapshot)| snapshot.to_json().to_string()).collect();
            // What comes later rewrites and removes everything that the first half added.
            let mut next = history.next_sequence().unwrap();
            for op in frames[..half].iter().flat_map(|frame| &frame.ops) {
                let id = op.facet_id().clone();
                if history.veil().get(&id).is_none() {
                    continue;
                }
                let changes = Object::from_iter([("content", "rewritten".into())]);
                let frame = Frame::new(next, Source::Environment)
                    .with(FacetOp::rewrite(id.clone(), changes))
                    .with(FacetOp::remove(id));
                hud.capture(&mut history, frame, Millis::new(0)).unwrap();
                next = next.next().unwrap();
            }
            let after =
                snapshots(&history).take(half).map(|(_, snapshot)| snapshot.to_json().to_string());
            assert!(after.eq(before), "{}: {session}", path.display());
        }
    }
}

#[test]
fn counted_over_recordings() {
    check_counts(&tiktoken_rs::o200k_base().unwrap(), Bpe::o200k(), &["xml", "plain", "native"]);
    check_counts(&tiktoken_rs::cl100k_base().unwrap(), Bpe::cl100k(), &["xml"]);
}

/// Every chunk's count, and every frame's, is the reference's own.
fn check_counts(reference: &tiktoken_rs::CoreBPE, counter: Bpe, formats: &[&str]) {
    let mut known: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
    let mut count = |text: &str| {
        if let Some(count) = known.get(text) {
            return *count;
        }
        let count = reference.encode_ordinary(text).len() as u64;
        known.insert(text.to_owned(), count);
        count
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(counter));
    for format in formats {
        let hud = Hud::builder(counter.clone()).format(format_by_name(format).unwrap()).build();
        for path in files() {
            for (_, frames) in sessions(&path) {
                let history = capture(&hud, &frames);
                for (sequence, snapshot) in snapshots(&history) {
                    let place = format!("{}: frame {sequence}, {format}", path.display());
                    let mut sum = 0;
                    for chunk in snapshot.chunks() {
                        assert_eq!(chunk.tokens(), count(chunk.content()), "{place}");
                        sum += chunk.tokens();
                    }
                    assert_eq!(snapshot.total_tokens(), sum, "{place}");
                    assert_eq!(snapshot.exact_tokens(), Some(count(snapshot.text())), "{place}");
                }
            }
        }
    }
}

/// Counts how often it is asked.
struct Asked<C>(C, std::sync::atomic::AtomicU64);

impl<C: TokenCounter> TokenCounter for Asked<C> {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn is_exact(&self) -> bool {
        self.0.is_exact()
    }

    fn count(&self, text: &str) -> usize {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.count(text)
    }
}

#[test]
fn rendering_a_sealed_history_again_counts_nothing() {
    let counter = Arc::new(Asked(afterimage::tokens::Chars4, 0.into()));
    let hud = Hud::new(counter.clone());
    for path in files() {
        for (_, frames) in sessions(&path) {
            let history = capture(&hud, &frames);
            counter.1.store(0, std::sync::atomic::Ordering::Relaxed);
            hud.render(&history, &RenderRequest::default(), Millis::new(0)).unwrap();
            assert_eq!(
                counter.1.load(std::sync::atomic::Ordering::Relaxed),
                0,
                "{}",
                path.display()
            );
        }
    }
}
