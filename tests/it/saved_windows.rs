//! What a window saved goes on as if the process had never stopped; a state that is older than the
//! last context loses no word; and a state that is not what was written is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{self, captured, native, small, turns};
use afterimage_testkit::data;

use afterimage::{
    Error, ErrorKind, Result,
    compress::{
        CompressionJob, CompressionOptions, CompressionTransform, Engine, Ledger, OutlineEngine,
        RangeState,
    },
    hud::{Hud, RenderRequest},
    id::Millis,
    json::{self, Value},
    steps::WORDS,
    tokens::TokenCounter,
    veil::{Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};
use proptest::{prelude::*, sample::Index};
use std::sync::Arc;

/// Fails for every third range, by its first frame.
#[derive(Debug)]
struct Moody;

impl Engine for Moody {
    fn id(&self) -> &'static str {
        "moody"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        if job.from.get() % 3 == 2 && job.attempt < 4 {
            return Err(Error::new(ErrorKind::Engine, "not now"));
        }
        OutlineEngine.summarize(job, counter)
    }
}

/// Everything of a context, and what its window did.
fn seen(fitted: &Result<FittedContext>) -> String {
    match fitted {
        Ok(of) => {
            format!("{} {:?} {:?} {:?}", of.context.to_json(), of.epoch, of.dropped, of.shortened)
        }
        Err(error) => error.to_string(),
    }
}

/// Saves and loads, through text, beside a history that is captured anew.
fn again(
    window: &ContextWindow,
    hud: &Hud,
    frames: &[Frame],
    now: Millis,
) -> (ContextWindow, History) {
    let saved = window.to_json().to_string();
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame.clone(), now).unwrap();
    }
    let loaded = json::read(saved.as_bytes()).unwrap();
    let loaded = ContextWindow::from_json(loaded, hud.clone(), &mut history, now).unwrap();
    assert_eq!(loaded.to_json().to_string(), saved);
    (loaded, history)
}

/// A session turn by turn, a context before each turn of the agent. At the turns that `cuts` says
/// the window is saved and loaded beside a history of its own.
fn replays_the_same(
    name: &str,
    frames: &[Frame],
    budget: Budget,
    mut cuts: impl FnMut(usize) -> bool,
) -> (usize, usize) {
    let hud = native();
    let options = CompressionOptions { retry_delay_ms: 2_000, ..budget.compression() };
    let mut window = ContextWindow::new(hud.clone(), budget, options);
    let (mut history, request) = (History::new(), RenderRequest::default());
    let mut other: Option<(ContextWindow, History)> = None;
    let (mut saves, mut epochs) = (0, 0);
    for (at, frame) in frames.iter().enumerate() {
        let now = Millis::new(i64::try_from(at).unwrap() * 1_000);
        if frame.source == Source::Agent {
            let fitted = window.render(&mut history, &request, &Moody, now);
            epochs += usize::from(fitted.as_ref().is_ok_and(|of| of.epoch.is_some()));
            if let Some((window, history)) = &mut other {
                let loaded = window.render(history, &request, &Moody, now);
                assert!(seen(&loaded) == seen(&fitted), "{name}: frame {at} differs");
            }
            if cuts(at) {
                saves += 1;
                other = Some(again(&window, &hud, &frames[..at], Millis::new(0)));
            }
        }
        hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
        if let Some((_, history)) = &mut other {
            hud.capture(history, frame.clone(), Millis::new(0)).unwrap();
        }
    }
    (saves, epochs)
}

#[test]
fn a_window_that_is_loaded_goes_on_byte_for_byte_over_recordings() {
    let groups = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
    let folders = groups.iter().filter_map(|group| data::recordings(group));
    let mut seed = 7_u64;
    let (mut sessions, mut saves, mut epochs) = (0, 0, 0);
    for path in folders.flat_map(|folder| data::files_under(&folder)) {
        for (number, (name, mut frames)) in compressing::sessions(&path).into_iter().enumerate() {
            // In debug builds the beginning of some sessions.
            if frames.len() < 20 || (cfg!(debug_assertions) && number % 9 != 0) {
                continue;
            }
            frames.truncate(if cfg!(debug_assertions) { 160 } else { 2_000 });
            let tokens = [2_000, 4_000, 8_000][sessions % 3];
            let cuts = |_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33).is_multiple_of(9)
            };
            let (saved, began) = replays_the_same(&name, &frames, Budget::new(tokens), cuts);
            (sessions, saves, epochs) = (sessions + 1, saves + saved, epochs + began);
        }
    }
    if data::recordings(groups[0]).is_some() {
        println!("{sessions} sessions, {epochs} epochs, saved {saves} times");
        assert!(sessions > 20 && epochs > 40 && saves > 40, "{sessions} {epochs} {saves}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(24),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_window_that_is_loaded_at_any_turn_goes_on_byte_for_byte(
        cut in any::<Index>(),
        tokens in 300..1_500_u64,
    ) {
        let frames = turns(24);
        let cut = cut.index(24) * 4 + 1;
        let (saves, epochs) = replays_the_same("turns", &frames, Budget::new(tokens), |at| at == cut);
        prop_assert!(saves == 1 && epochs > 0);
    }

    #[test]
    fn a_state_that_is_older_than_the_last_context_loses_no_word(
        saved_at in 4..60_usize,
        killed_after in 1..40_usize,
        tokens in 400..1_200_u64,
    ) {
        let (hud, frames) = (native(), turns(25));
        let mut window = ContextWindow::new(hud.clone(), Budget::new(tokens), small());
        let (mut history, request) = (History::new(), RenderRequest::default());
        let mut saved = None;
        for (at, frame) in frames.iter().take(saved_at + killed_after).enumerate() {
            hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
            window.render(&mut history, &request, &OutlineEngine, Millis::new(0)).unwrap();
            if at + 1 == saved_at {
                saved = Some(window.to_json());
            }
        }
        // The process is gone, and with it every epoch since.
        let frames = &frames[..saved_at + killed_after];
        let mut history = captured(&hud, frames);
        let saved = saved.unwrap();
        let mut loaded =
            ContextWindow::from_json(saved, hud.clone(), &mut history, Millis::new(0)).unwrap();
        let fitted =
            loaded.render(&mut history, &request, &OutlineEngine, Millis::new(0)).unwrap();
        prop_assert!(fitted.context.tokens().total <= tokens);
        let stands = loaded.substitutions();
        for frame in history.frames() {
            let text = frame.rendered_snapshot.as_ref().unwrap().text();
            let by = stands.iter().find(|of| (of.from..=of.to).contains(&frame.sequence));
            match by {
                None => {
                    let at = fitted.context.message_of(frame.sequence).unwrap();
                    prop_assert!(fitted.context.messages()[at].content().contains(text));
                }
                Some(by) => {
                    let expanded = loaded.expand(&history, &by.block).unwrap();
                    let found = expanded.iter().find(|of| of.from == frame.sequence).unwrap();
                    prop_assert_eq!(found.snapshot.text(), text);
                }
            }
        }
    }
}

#[test]
fn a_ledger_that_was_read_with_other_words_is_read_again_or_refused() {
    let (hud, frames, now) = (native(), turns(25), Millis::new(0));
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud.clone(), Budget::new(600), small());
    window.render(&mut history, &RenderRequest::default(), &OutlineEngine, now).unwrap();
    let saved = window.to_json().to_string();
    let words = format!("\"words\":\"{WORDS}\"");
    let (before, after) = saved.split_once(&words).unwrap();
    let other = format!("{before}\"words\":\"of others\"{after}");
    let load = |history: &mut History| {
        let other = json::read(other.as_bytes()).unwrap();
        ContextWindow::from_json(other, hud.clone(), history, now)
    };
    assert_eq!(load(&mut history).unwrap().to_json().to_string(), saved);
    let block = window.transform().blocks().next().unwrap();
    history.forget(block.from..=block.to).unwrap();
    let error = load(&mut history).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version, "{error}");
    let ledger = json::read(br#"{"words":"of others"}"#).unwrap();
    let error = json::from_value::<Ledger>(ledger).unwrap_err();
    assert!(error.to_string().contains("expected what was read with the words"), "{error}");
}

/// A transform with a block of blocks, a block, a range that failed and one whose job is under way.
fn busy(hud: &Hud, history: &History) -> (CompressionTransform, CompressionJob) {
    let mut transform = CompressionTransform::new(small());
    compressing::run(hud, &mut transform, history);
    assert!(transform.blocks().any(|block| block.level > 1));
    let mut block = Arc::clone(transform.blocks().last().unwrap());
    while let Some(inner) = block.blocks().last().cloned() {
        block = inner;
    }
    transform.undo(history, &block.id).unwrap();
    assert!(transform.ranges().any(|(_, state)| *state == RangeState::Undone));
    let (from, to) = (block.from.get(), block.to.get());
    transform.compress_range(history, from.into()..=to.into()).unwrap();
    for _ in 0..2 {
        let job = transform.next_job(history, Millis::new(i64::MAX / 2)).unwrap().unwrap();
        transform.fail(&job, "down", Millis::new(7)).unwrap();
    }
    transform.compress_range(history, from.into()..=to.into()).unwrap();
    let job = transform.next_job(history, Millis::new(8)).unwrap().unwrap();
    (transform, job)
}

#[test]
fn a_transform_is_loaded_with_all_that_it_knew() {
    let (hud, frames) = (native(), turns(30));
    let history = captured(&hud, &frames);
    let (transform, job) = busy(&hud, &history);
    let saved = transform.to_json().to_string();
    let other = captured(&hud, &frames);
    let mut loaded =
        CompressionTransform::from_json(json::read(saved.as_bytes()).unwrap(), &other).unwrap();
    assert_eq!(loaded.to_json().to_string(), saved);
    assert_eq!(loaded.options(), transform.options());
    assert_eq!(loaded.substitutions(), transform.substitutions());
    assert_eq!(loaded.live_tokens(), transform.live_tokens());
    for (one, two) in transform.blocks().zip(loaded.blocks()) {
        assert_eq!(one.to_json(), two.to_json());
        assert_eq!(one.facet, two.facet);
        assert_eq!(one.net_ops.read(), two.net_ops.read());
        assert_eq!(compressing::originals(&history, one), compressing::originals(&other, two));
    }
    // Nobody has the job any more; the range is handed out again.
    let again = loaded.next_job(&other, Millis::new(9)).unwrap().unwrap();
    assert_eq!((again.id, again.attempt), (job.id, job.attempt + 1));
}

#[test]
fn what_was_forgotten_or_spilled_stays_so() {
    let (hud, frames) = (native(), turns(30));
    let mut history = captured(&hud, &frames);
    let archive = captured(&hud, &frames).archive().unwrap();
    let mut transform = CompressionTransform::new(small());
    compressing::run(&hud, &mut transform, &history);
    let ids: Vec<Arc<str>> = transform.blocks().map(|block| Arc::clone(&block.id)).collect();
    let expanded: Vec<_> =
        transform.block(&ids[0]).unwrap().expand().unwrap().iter().map(|of| of.from).collect();
    transform.spill(&mut history, &ids[0], &archive).unwrap();
    transform.forget(&mut history, &ids[1]).unwrap();
    let saved = transform.to_json();
    // Beside the history that forgot, and beside one that was read again.
    for history in [&history, &captured(&hud, &frames)] {
        let loaded = CompressionTransform::from_json(saved.clone(), history).unwrap();
        assert_eq!(loaded.to_json(), saved);
        let (spilled, forgotten) = (loaded.block(&ids[0]).unwrap(), loaded.block(&ids[1]).unwrap());
        assert_eq!(spilled.expand().unwrap_err().kind(), ErrorKind::Stored);
        let from_archive = spilled.expand_from(&archive).unwrap();
        assert_eq!(from_archive.iter().map(|of| of.from).collect::<Vec<_>>(), expanded);
        assert_eq!(forgotten.expand().unwrap_err().kind(), ErrorKind::Dropped);
    }
}

#[test]
fn a_window_whose_originals_were_forgotten_still_says_where_things_stand() {
    let (hud, frames) = (native(), turns(40));
    let (begun, rest) = frames.split_at(frames.len() / 2);
    let mut history = captured(&hud, begun);
    let mut window = ContextWindow::new(hud.clone(), Budget::new(1_500), small());
    let (request, now) = (RenderRequest::default(), Millis::new(0));
    window.render(&mut history, &request, &OutlineEngine, now).unwrap();
    let first = Arc::clone(&window.transform().blocks().next().unwrap().id);
    window.forget(&mut history, &first).unwrap();
    let saved = json::read(window.to_json().to_string().as_bytes()).unwrap();
    let mut loaded = ContextWindow::from_json(saved, hud.clone(), &mut history, now).unwrap();
    let mut epochs = 0;
    for frame in rest {
        hud.capture(&mut history, frame.clone(), now).unwrap();
        let [one, other] = [&mut window, &mut loaded]
            .map(|of| of.render(&mut history, &request, &OutlineEngine, now));
        epochs += u32::from(one.as_ref().is_ok_and(|fitted| fitted.epoch.is_some()));
        assert_eq!(seen(&one), seen(&other));
    }
    assert!(epochs > 0);
    assert!(!window.transform().blocks().any(|block| block.id == first));
}

#[test]
fn a_state_that_is_not_what_was_written_is_refused() {
    let (hud, frames) = (native(), turns(12));
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud.clone(), Budget::new(700), small());
    let request = RenderRequest::default();
    window.render(&mut history, &request, &Moody, Millis::new(0)).unwrap();
    let saved = window.to_json();
    let load = |saved: Value, hud: &Hud, frames: &[Frame]| {
        let mut history = captured(hud, frames);
        ContextWindow::from_json(saved, hud.clone(), &mut history, Millis::new(0))
    };
    let refused = |saved: Value| load(saved, &hud, &frames).unwrap_err();
    let with = |path: &str, value: Value| {
        let mut changed = saved.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let mut at = &mut changed;
        for key in parent.split('/').skip(1) {
            let Value::Object(object) = at else { panic!("{parent}") };
            at = object.get_mut(key).unwrap();
        }
        let Value::Object(object) = at else { panic!("{parent}") };
        object.insert(key.to_owned(), value);
        changed
    };
    assert!(load(saved.clone(), &hud, &frames).is_ok());
    let kinds = [
        (with("/window", 2_u64.into()), ErrorKind::Version),
        (with("/transform/compression", 9_u64.into()), ErrorKind::Version),
        (with("/more", true.into()), ErrorKind::Shape),
        (with("/transform/more", true.into()), ErrorKind::Shape),
        (with("/transform/front", 10_000_u64.into()), ErrorKind::Shape),
        (with("/transform/liveTokens", 1_u64.into()), ErrorKind::Conflict),
        (with("/transform/last", 5_u64.into()), ErrorKind::Sequence),
        (with("/lookedAt", 1_000_u64.into()), ErrorKind::Shape),
        (with("/budget", true.into()), ErrorKind::Shape),
        (with("/ledger/more", true.into()), ErrorKind::Shape),
        (with("/ledger/read/more", true.into()), ErrorKind::Shape),
        (with("/ledger/read", Value::Object(json::Object::new())), ErrorKind::Shape),
    ];
    for (changed, kind) in kinds {
        let error = refused(changed);
        assert_eq!(error.kind(), kind, "{error}");
    }
    // Another history, a shorter one, and another HUD.
    let mut longer = turns(13);
    longer.remove(0);
    for frames in [&frames[..frames.len() - 1], &longer] {
        assert_eq!(load(saved.clone(), &hud, frames).unwrap_err().kind(), ErrorKind::Sequence);
    }
    let error = load(saved.clone(), &compressing::hud(), &frames).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    // One word is another one.
    let mut forged = json::read(saved.to_string().as_bytes()).unwrap();
    let text = forged.to_string();
    let hash = text.find("\"contentHash\":\"").unwrap() + 15;
    let flipped = if text.as_bytes()[hash] == b'0' { "1" } else { "0" };
    let text = format!("{}{flipped}{}", &text[..hash], &text[hash + 1..]);
    forged = json::read(text.as_bytes()).unwrap();
    let error = refused(forged);
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

/// Every place of a document, by its path.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    found.push(path.clone());
    let mut go = |key: String, value: &Value| {
        path.push(key);
        places(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| go(key.clone(), value)),
        Value::Array(array) => {
            array.iter().enumerate().for_each(|(at, value)| go(at.to_string(), value));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_state_that_is_damaged_anywhere_panics_nowhere(at in any::<Index>(), with in 0..6_usize) {
        let (hud, frames) = (native(), turns(12));
        let mut history = captured(&hud, &frames);
        let mut window = ContextWindow::new(hud.clone(), Budget::new(700), small());
        let request = RenderRequest::default();
        window.render(&mut history, &request, &Moody, Millis::new(0)).unwrap();
        let mut saved = window.to_json();
        let mut found = Vec::new();
        places(&saved, &mut Vec::new(), &mut found);
        let path = &found[at.index(found.len())];
        let mut place = &mut saved;
        for key in path {
            place = match place {
                Value::Object(object) => object.get_mut(key).unwrap(),
                Value::Array(array) => &mut array[key.parse::<usize>().unwrap()],
                _ => unreachable!(),
            };
        }
        *place = [
            Value::Null,
            Value::from(0_u64),
            Value::from(u64::MAX),
            Value::from("x"),
            Value::Array(Vec::new()),
            Value::Object(json::Object::new()),
        ][with].clone();
        let mut history = captured(&hud, &frames);
        if let Ok(mut loaded) =
            ContextWindow::from_json(saved, hud, &mut history, Millis::new(0))
        {
            // What passes is used, and goes wrong in no other way than by an error.
            let _ = loaded.render(&mut history, &request, &OutlineEngine, Millis::new(0));
        }
    }
}

#[test]
fn recorded_compactions_and_branches_are_loaded_as_they_were() {
    let groups = ["B-anthropic", "C-codex-responses"];
    let folders = groups.iter().filter_map(|group| data::recordings(group));
    let (hud, now) = (native(), Millis::new(0));
    let (mut adopted, mut nested) = (0, 0);
    for path in folders.flat_map(|folder| data::files_under(&folder)) {
        for (name, frames) in compressing::sessions(&path) {
            let history = captured(&hud, &frames);
            let mut transform = CompressionTransform::new(compressing::larger());
            let render = || compressing::render_with(&hud, &history);
            while let Ok(Some(_)) = transform.adopt(&history, now, render()) {}
            if transform.blocks().next().is_none() {
                continue;
            }
            let saved = transform.to_json().to_string();
            let read = || json::read(saved.as_bytes()).unwrap();
            let mut loaded = CompressionTransform::from_json(read(), &history).unwrap();
            assert_eq!(loaded.to_json().to_string(), saved, "{name}");
            assert_eq!(loaded.substitutions(), transform.substitutions(), "{name}");
            for (one, two) in transform.blocks().zip(loaded.blocks()) {
                assert_eq!(one.expand().unwrap().len(), two.expand().unwrap().len());
                assert_eq!(one.net_ops.read(), two.net_ops.read(), "{name}");
                nested += one.blocks().len();
            }
            // Nothing is taken over twice, and what is planned next is the same.
            assert!(loaded.adopt(&history, now, render()).unwrap().is_none(), "{name}");
            compressing::run(&hud, &mut transform, &history);
            compressing::run(&hud, &mut loaded, &history);
            assert_eq!(loaded.to_json(), transform.to_json(), "{name}");
            adopted += 1;
        }
    }
    if data::recordings(groups[0]).is_some() {
        assert!(adopted >= 6 && nested > 0, "{adopted} {nested}");
    }
}
