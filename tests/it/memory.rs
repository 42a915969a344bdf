//! How much a history, its archive and its blocks hold, counted by the allocator.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{path::PathBuf, sync::Arc};

use crate::support::compressing;
use afterimage::{
    compress::{CompressionOptions, CompressionTransform, OutlineEngine},
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, FrameSeq, Millis},
    json::Value,
    snapshot::SnapshotArchive,
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow},
};
use afterimage_testkit::data;
use allocation_counter::{measure, opt_out};

const NOW: Millis = Millis::new(0);
const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

/// What `make` leaves held, and what it made.
fn held<T>(make: impl FnOnce() -> T) -> (i64, T) {
    let mut made = None;
    let info = measure(|| made = Some(make()));
    (info.bytes_current, made.unwrap())
}

fn text_of(history: &History) -> usize {
    let frames = history.frames();
    (0..frames.len()).map(|index| frames.snapshot(index).unwrap().text().len()).sum()
}

/// The histories of the sessions of a file, finished, each with its archive; and how many bytes they
/// hold.
fn recorded(path: &PathBuf) -> (i64, Vec<(History, SnapshotArchive)>) {
    let hud = hud();
    held(|| {
        let mut sessions: Vec<(Arc<str>, History)> = Vec::new();
        for record in Transcript::open(path).unwrap() {
            let record = record.unwrap();
            let at = sessions.iter().position(|(name, _)| *name == record.session);
            let at = at.unwrap_or_else(|| {
                sessions.push((record.session, History::new()));
                sessions.len() - 1
            });
            hud.capture(&mut sessions[at].1, record.frame, NOW).unwrap();
        }
        let finished = |(_, mut history): (Arc<str>, History)| {
            history.shrink_to_fit();
            let archive = history.archive().unwrap();
            (history, archive)
        };
        sessions.into_iter().map(finished).collect()
    })
}

#[test]
fn recordings_hold_at_most_2_2_times_their_text() {
    let (mut all_held, mut all_text) = (0, 0);
    for group in GROUPS {
        let Some(folder) = data::recordings(group) else { return };
        let (mut group_held, mut group_text) = (0, 0);
        for path in data::files_under(&folder) {
            let (held, histories) = recorded(&path);
            let text: usize = histories.iter().map(|(history, _)| text_of(history)).sum();
            if text > 100_000 {
                let name = path.file_name().unwrap().to_string_lossy();
                println!("{name}: {text} bytes of text, {:.2}", held as f64 / text as f64);
            }
            group_held += held;
            group_text += text;
        }
        println!("{group}: {group_text}, {:.2}", group_held as f64 / group_text as f64);
        all_held += group_held;
        all_text += group_text;
    }
    let ratio = all_held as f64 / all_text as f64;
    println!("all: {all_text}, {ratio:.2}");
    assert!(ratio <= 2.2, "{ratio}");
}

/// A frame of about so many bytes: words of a user, of the agent, a call, a result.
fn frame(number: u64, bytes: usize) -> Frame {
    let text: String = (0..bytes / 10)
        .map(|word| format!("word-{:04} ", (number as usize * 7 + word) % 9_973))
        .collect();
    let (source, facet) = match number % 4 {
        0 => (Source::User, Facet::new(format!("said-{number}"), FacetType::EVENT, text)),
        1 => (Source::Agent, Facet::new(format!("said-{number}"), FacetType::SPEECH, text)),
        2 => {
            let mut arguments = afterimage::json::Object::new();
            arguments.insert("text".to_owned(), Value::from(text));
            let id = format!("call_{number}");
            (
                Source::Agent,
                Facet::tool_call(format!("call-{number}"), Some(&id), "write", arguments.into()),
            )
        }
        _ => {
            let id = format!("call_{}", number - 1);
            (
                Source::Environment,
                Facet::tool_result(format!("result-{number}"), Some(&id), Some("write"), text),
            )
        }
    };
    Frame::new(number, source).with(FacetOp::add(facet))
}

const FRAMES: u64 = 4_000;

fn long_history(bytes: usize) -> History {
    let (hud, mut history) = (hud(), History::new());
    for number in 0..FRAMES {
        hud.capture(&mut history, frame(number, bytes), NOW).unwrap();
    }
    history
}

#[test]
fn a_history_with_its_archive_and_blocks_holds_at_most_1_8_times_its_text() {
    for bytes in [520, 2_000] {
        let (held, (history, _archive, window)) = held(|| {
            let mut history = long_history(bytes);
            let archive = history.archive().unwrap();
            let room = Budget::once(40_000);
            let mut window = ContextWindow::new(hud(), room, CompressionOptions::default());
            let request = RenderRequest::default();
            opt_out(|| drop(window.render(&mut history, &request, &OutlineEngine, NOW)));
            let fitted = window.render(&mut history, &request, &OutlineEngine, NOW);
            drop(fitted.unwrap());
            (history, archive, window)
        });
        let text = text_of(&history);
        assert!(window.transform().blocks().count() > 0);
        let ratio = held as f64 / text as f64;
        println!("{} bytes a frame: {ratio:.2}", text as u64 / FRAMES);
        assert!(ratio <= 1.8, "{bytes}: {ratio}");
    }
}

#[test]
fn forgetting_half_gives_back_its_share() {
    let (all, mut history) = held(|| {
        let mut history = long_history(520);
        history.shrink_to_fit();
        history
    });
    let info = measure(|| {
        let half = FrameSeq::new(0)..=FrameSeq::new(FRAMES / 2 - 1);
        assert_eq!(history.forget(half).unwrap().frames, FRAMES / 2);
    });
    let back = -info.bytes_current as f64 / (all as f64 / 2.0);
    println!("forgetting half gives back {back:.3} of its share");
    assert!(back >= 0.9, "{back}");
}

#[test]
fn recorded_frames_are_the_same_after_they_are_packed() {
    for folder in GROUPS.iter().filter_map(|group| data::recordings(group)) {
        for path in data::files_under(&folder) {
            let hud = hud();
            let mut sessions: Vec<(Arc<str>, History, Vec<Arc<Frame>>)> = Vec::new();
            for record in Transcript::open(&path).unwrap() {
                let record = record.unwrap();
                let at = sessions.iter().position(|(name, ..)| *name == record.session);
                let at = at.unwrap_or_else(|| {
                    sessions.push((record.session.clone(), History::new(), Vec::new()));
                    sessions.len() - 1
                });
                let (_, history, frames) = &mut sessions[at];
                frames.push(hud.capture(history, record.frame, NOW).unwrap());
            }
            for (_, mut history, frames) in sessions {
                let facets = history.veil().facets();
                let context = hud.render(&history, &RenderRequest::default(), NOW).unwrap();
                history.shrink_to_fit();
                assert!(history.frames().eq(frames.iter().cloned()), "{}", path.display());
                assert_eq!(history.veil().facets(), facets, "{}", path.display());
                let again = hud.render(&history, &RenderRequest::default(), NOW).unwrap();
                assert_eq!(again.to_json(), context.to_json(), "{}", path.display());
            }
        }
    }
}

#[test]
fn what_is_forgotten_is_refused_and_the_rest_is_as_it_was() {
    let mut history = long_history(40);
    let texts = |history: &History| -> Vec<Option<String>> {
        let frames = history.frames();
        (0..frames.len()).map(|at| Some(frames.snapshot(at)?.text().to_owned())).collect()
    };
    let before = texts(&history);
    let range = FrameSeq::new(100)..=FrameSeq::new(899);
    assert_eq!(history.forget(range.clone()).unwrap().frames, 800);
    assert_eq!(history.forget(range).unwrap().frames, 0);
    for (at, (before, after)) in before.into_iter().zip(texts(&history)).enumerate() {
        let is_gone = (100..900).contains(&at);
        assert_eq!(history.frames().is_forgotten(at), is_gone);
        assert_eq!(after, before.filter(|_| !is_gone), "{at}");
    }
    assert_eq!(history.frames().len(), FRAMES as usize);
    assert!(history.veil().get("said-100").is_none() && history.veil().get("said-96").is_some());
    let error = hud().render(&history, &RenderRequest::default(), NOW).unwrap_err();
    assert_eq!((error.kind(), error.place().frame), (afterimage::ErrorKind::Dropped, Some(100)));
    let frames = Some(FrameSeq::new(900)..=FrameSeq::new(FRAMES - 1));
    let request = RenderRequest { frames, ..RenderRequest::default() };
    hud().render(&history, &request, NOW).unwrap();
    let archive = history.archive().unwrap();
    assert!(archive.range(900.into()..=950.into()).is_ok());
    let error = archive.range(90.into()..=110.into()).map(drop).unwrap_err();
    assert_eq!(error.kind(), afterimage::ErrorKind::Dropped);
}

#[test]
fn blocks_that_spill_or_forget_give_back_what_the_history_forgot() {
    for spills in [false, true] {
        let hud = compressing::native();
        let mut history = long_history(520);
        history.shrink_to_fit();
        let text = text_of(&history);
        // The same text elsewhere, as a directory would hold it.
        let mut elsewhere = SnapshotArchive::new();
        for frame in history.frames() {
            elsewhere.push(frame.sequence, frame.rendered_snapshot.as_ref().unwrap()).unwrap();
        }
        let mut transform = CompressionTransform::new(compressing::larger());
        compressing::run(&hud, &mut transform, &history);
        let blocks: Vec<_> = transform.blocks().map(|of| (of.id.clone(), of.from, of.to)).collect();
        let frames: u64 = blocks.iter().map(|(_, from, to)| to.get() - from.get() + 1).sum();
        assert!(frames > FRAMES / 2, "{frames}");
        let info = measure(|| {
            for (id, from, to) in &blocks {
                let totals = if spills {
                    transform.spill(&mut history, id, &elsewhere).unwrap()
                } else {
                    transform.forget(&mut history, id).unwrap()
                };
                assert_eq!(totals.frames, to.get() - from.get() + 1);
            }
        });
        let share = text as f64 * frames as f64 / FRAMES as f64;
        let back = -info.bytes_current as f64 / share;
        println!("{frames} frames in blocks, spilled: {spills}: {back:.2} of their text is back");
        assert!(back >= 0.9, "{back}");
        // What stands in their place is still read, and what was spilled is elsewhere.
        hud.render(&history, &compressing::request(&transform), NOW).unwrap();
        for (id, ..) in &blocks {
            let expanded = transform.block(id).unwrap().expand_from(&elsewhere);
            assert_eq!(expanded.is_ok(), spills);
        }
    }
}

#[test]
fn states_outlive_the_frames_that_were_forgotten() {
    let (hud, mut history) = (hud(), History::new());
    let state = Facet::new("hull", FacetType::STATE, "98 %");
    let rewrite = |text: &str| {
        let mut changes = afterimage::json::Object::new();
        changes.insert("content".to_owned(), Value::from(text));
        FacetOp::rewrite("hull", changes)
    };
    let mut frames = vec![Frame::new(0, Source::System).with(FacetOp::add(state))];
    frames.extend((1..5).map(|number| frame(number, 40)));
    frames.push(Frame::new(5, Source::Environment).with(rewrite("50 %")));
    frames.push(frame(6, 40));
    for frame in frames {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    history.forget(0.into()..=3.into()).unwrap();
    let hull = |veil: &afterimage::veil::Veil| veil.get("hull").map(|facet| facet.content.clone());
    assert_eq!(hull(history.veil()).as_deref(), Some("50 %"));
    assert_eq!(hull(&history.veil_at(4).unwrap()).as_deref(), Some("98 %"));
    assert_eq!(hull(&history.veil_at(5).unwrap()).as_deref(), Some("50 %"));
    let error = history.veil_at(2).unwrap_err();
    assert_eq!((error.kind(), error.place().frame), (afterimage::ErrorKind::Dropped, Some(0)));
    hud.capture(&mut history, Frame::new(7, Source::Environment).with(rewrite("10 %")), NOW)
        .unwrap();
    history.push(Frame::new(8, Source::Environment).with(rewrite("5 %"))).unwrap();
    let request = RenderRequest { frames: Some(4.into()..=8.into()), ..RenderRequest::default() };
    let context = hud.render(&history, &request, NOW).unwrap();
    assert_eq!(context.messages().last().unwrap().content(), "5 %");
    hud.capture_missing(&mut history, NOW).unwrap();
    history.forget(4.into()..=8.into()).unwrap();
    assert_eq!(hull(history.veil()).as_deref(), Some("5 %"));
}

#[test]
fn numbers_and_orders_of_members_outlive_the_packing() {
    use afterimage::veil::{Media, PartContent};

    let (hud, mut history) = (hud(), History::new());
    let media = Media { bytes: Some(u64::MAX), tokens: Some(0), ..Media::default() };
    let image =
        Facet::new("image", FacetType::IMAGE, "[image]").with_part(PartContent::Image(media));
    let call = Facet::new("call", FacetType::ACTION, "").with_part(PartContent::Call {
        id: None,
        name: "look".into(),
        parameters: Some(afterimage::json::read(br#"{"b":1,"a":2}"#).unwrap()),
        arguments: Some(r#"{"a": 2, "b": 1}"#.into()),
    });
    let frame = Frame::new(0, Source::Agent).with(FacetOp::add(image)).with(FacetOp::add(call));
    let frame = hud.capture(&mut history, frame, NOW).unwrap();
    history.shrink_to_fit();
    let packed = history.frames().get(0).unwrap();
    assert_eq!(packed.to_json().to_string(), frame.to_json().to_string());
}
