//! Results that the model has not seen yet stand whole while there is room for them: what is older
//! loses text for their sake.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::sessions;

use afterimage_testkit::data;

use std::{collections::HashSet, sync::Arc};

use afterimage::{
    compress::OutlineEngine,
    hud::{Hud, NativeFormat},
    id::{FrameSeq, Millis},
    replay::{Replay, ReplayPolicy},
    session::{MemoryStore, Model, Session, SessionRequest},
    snapshot::PartRef,
    tokens::{Bpe, Memo},
    veil::Source,
    window::Budget,
};

/// An agent that reads files of so many lines each.
struct Reader {
    session: Session,
    model: Model,
    turns: usize,
}

impl Reader {
    fn new(tokens: u64) -> Self {
        let mut session = Session::open(MemoryStore::default()).unwrap();
        session.user("Read all files, and compare them.").unwrap();
        Self { session, model: Model::anthropic("m", tokens), turns: 0 }
    }

    /// The lines of a file of this turn.
    fn lines(&self, file: usize, lines: usize) -> Vec<String> {
        let turn = self.turns;
        (0..lines)
            .map(|n| format!("t{turn}f{file}-{n}: pilot {n} of the harbour reads\n"))
            .collect()
    }

    /// Reads files of so many lines in one answer. Gives the request that brings them, and how many
    /// lines of each it shows.
    fn read(&mut self, files: &[usize]) -> (SessionRequest, Vec<usize>) {
        self.session.request(&self.model).unwrap();
        self.turns += 1;
        let turn = self.turns;
        let call = |file| {
            let path = format!("t{turn}f{file}");
            serde_json::json!({"type": "tool_use", "id": path, "name": "read_file",
                "input": {"path": path}})
        };
        let calls: Vec<_> = (0..files.len()).map(call).collect();
        let answer = serde_json::json!({"type": "message", "role": "assistant", "content": calls});
        self.session.answer(answer.to_string()).unwrap();
        for (file, lines) in files.iter().enumerate() {
            let text = self.lines(file, *lines).concat();
            self.session.tool_result(&format!("t{turn}f{file}"), text).unwrap();
        }
        self.ask(files)
    }

    /// The request, and how many lines of each of the last files it shows.
    fn ask(&mut self, files: &[usize]) -> (SessionRequest, Vec<usize>) {
        let request = self.session.request(&self.model).unwrap();
        let is_shown = |line: &&String| request.body.contains(line.trim_end());
        let shown = |(file, lines): (usize, &usize)| {
            self.lines(file, *lines).iter().filter(is_shown).count()
        };
        let shown = files.iter().enumerate().map(shown).collect();
        (request, shown)
    }
}

#[test]
fn unseen_results_stand_whole_while_what_is_older_can_give_way() {
    for (tokens, files, turns) in
        [(8_000, [45; 1].as_slice(), 16), (8_000, &[45; 4], 8), (200_000, &[300; 6], 9)]
    {
        let mut reader = Reader::new(tokens);
        let mut epochs = 0;
        for turn in 0..turns {
            let (request, shown) = reader.read(files);
            epochs += usize::from(request.receipt.epoch.is_some());
            assert_eq!(shown, files, "{tokens}: turn {turn}, {:?}", request.receipt);
        }
        assert!(epochs > 0, "{tokens}: {epochs}");
    }
}

/// The answer breaks off, and the session goes back to ask for it again while more holds.
#[test]
fn results_are_as_unseen_as_before_once_the_session_went_back() {
    let (mut reader, files, mut epochs) = (Reader::new(8_000), [40; 4], 0);
    for turn in 0..6 {
        reader.session.ambient("chart", "A calm sea.").unwrap();
        assert_eq!(reader.read(&files).1, files, "{turn}");
        let Reader { session, .. } = &mut reader;
        let mut stream = session.answer_stream();
        for event in [
            r#"{"type":"message_start","message":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"All"}}"#,
        ] {
            stream.push(format!("data: {event}\n\n"));
        }
        stream.cut("the connection was reset").unwrap();
        session.rewind(session.turns()).unwrap();
        session.ambient("chart", "Mind the tide, the wind and the pilot. ".repeat(150)).unwrap();
        let (request, shown) = reader.ask(&files);
        epochs += usize::from(request.receipt.epoch.is_some());
        assert_eq!(shown, files, "{turn}: {:?}", request.receipt);
    }
    assert!(epochs > 0);
}

#[test]
fn unseen_results_that_exceed_the_room_fill_it_evenly() {
    let mut reader = Reader::new(8_000);
    let mut files = [45; 12];
    files[0] = 12;
    let (request, shown) = reader.read(&files);
    assert_eq!(shown[0], 12);
    let (least, most) = (shown[1..].iter().min().unwrap(), shown[1..].iter().max().unwrap());
    assert!(*least * 4 > *most * 3, "{shown:?}");
    let receipt = request.receipt;
    assert!(receipt.expected * 10 > receipt.room * 8, "{receipt:?}");
}

/// The results of recorded sessions that stood whole in the request after they came.
#[test]
fn most_results_of_recordings_are_read_whole() {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return };
    let counter = Arc::new(Memo::new(Bpe::o200k()));
    let sessions = sessions::sessions(first.parent().unwrap(), 20, 1);
    let budget = Budget::new(8_000);
    let (mut all, mut whole) = (0, 0);
    for session in &sessions {
        let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
        let policy = ReplayPolicy::Blocks(budget.compression());
        let mut replay = Replay::new(hud, budget, policy, Arc::new(OutlineEngine));
        let mut new: Vec<FrameSeq> = Vec::new();
        for frame in &session.frames {
            let sequence = frame.sequence;
            let is_agents = frame.source == Source::Agent;
            if let Some(turn) = replay.push(frame.clone(), Millis::new(0)).unwrap() {
                let held = turn.context.iter().flat_map(|of| of.frame_to_message());
                let mut held: HashSet<FrameSeq> = held.map(|(frame, _)| frame).collect();
                for what in turn.shortened.iter() {
                    held.remove(&what.frame);
                }
                let snapshot = |frame: &FrameSeq| turn.history.snapshot(*frame);
                let is_result = |frame: &FrameSeq| {
                    let snapshot = snapshot(frame).unwrap();
                    snapshot.chunks().any(|of| matches!(of.part(), PartRef::Result { .. }))
                };
                let results = new.iter().filter(|frame| is_result(frame));
                all += results.clone().count();
                whole += results.filter(|frame| held.contains(frame)).count();
                new.clear();
            }
            if !is_agents {
                new.push(sequence);
            }
        }
    }
    assert!(whole >= 1_217, "{whole} of {all} results");
}
