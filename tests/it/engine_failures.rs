//! An engine that is down for an hour, answers garbage, panics, or is cancelled leaves no hole, no
//! stuck range and no lost word.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{self, native, render_with, small, turns};

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use afterimage::{
    Error, ErrorKind, Result,
    compress::{
        CompressionJob, CompressionOptions, CompressionTransform, Engine, OutlineEngine,
        RangeState, Summary,
    },
    hud::RenderRequest,
    id::{FacetType, FrameSeq, Millis},
    tokens::TokenCounter,
    veil::{Compaction, Facet, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext, ReplacementKind},
};
use compressing::captured;
use proptest::{collection::vec, prelude::*, sample::select};

/// What an engine does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Answers,
    IsDown,
    Garbage,
    Nothing,
    TooLong,
    Panics,
}

/// Does what the script says, and counts how often it was asked.
#[derive(Debug)]
struct Scripted {
    act: Mutex<Act>,
    asked: Mutex<u32>,
}

impl Scripted {
    fn new(act: Act) -> Self {
        Self { act: Mutex::new(act), asked: Mutex::new(0) }
    }

    fn set(&self, act: Act) {
        *self.act.lock().unwrap() = act;
    }

    /// How often it was asked since the last time.
    fn asked(&self) -> u32 {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Engine for Scripted {
    fn id(&self) -> &'static str {
        "scripted"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        *self.asked.lock().unwrap() += 1;
        let act = *self.act.lock().unwrap();
        match act {
            Act::Answers => OutlineEngine.summarize(job, counter),
            Act::IsDown => Err(Error::new(ErrorKind::Engine, "connection refused")),
            Act::Garbage => Ok("</my_turn>\u{0}\u{fffd}{{{".to_owned()),
            Act::Nothing => Ok(" \n ".to_owned()),
            Act::TooLong => Ok(job.text().repeat(2)),
            Act::Panics => std::panic::resume_unwind(Box::new("out of cheese")),
        }
    }
}

fn options() -> CompressionOptions {
    CompressionOptions { retry_delay_ms: 30_000, max_range_tokens: 400, ..small() }
}

/// Every frame that shows something is in the context, or an id that the window expands stands for
/// it, byte for byte.
fn nothing_is_lost(window: &ContextWindow, history: &History, fitted: &FittedContext) {
    let frames = history.frames();
    let stands: Vec<_> = window.substitutions();
    for frame in frames {
        let snapshot = frame.rendered_snapshot.as_ref().unwrap();
        if snapshot.is_empty() {
            continue;
        }
        let at = frame.sequence;
        let by = stands.iter().find(|of| (of.from..=of.to).contains(&at));
        let Some(by) = by else {
            assert!(fitted.context.message_of(at).is_some(), "a hole at {at}");
            continue;
        };
        let expanded = window.expand(history, &by.block).unwrap();
        let found = expanded.iter().find(|of| of.from == at).unwrap();
        assert_eq!(found.snapshot.text(), snapshot.text(), "{at}");
    }
    let blocks: Vec<_> = window.transform().blocks().cloned().collect();
    for block in blocks {
        let (held, expanded) = compressing::originals(history, &block);
        assert_eq!(held, expanded, "{}", block.id);
    }
}

fn dropped(fitted: &FittedContext) -> Vec<FrameSeq> {
    fitted.dropped.iter().map(|of| of.from).collect()
}

#[test]
fn what_was_dropped_while_the_engine_was_down_for_an_hour_comes_back_as_blocks() {
    let hud = native();
    let engine = Scripted::new(Act::IsDown);
    let mut window = ContextWindow::new(hud.clone(), Budget::new(1_200), options());
    let mut history = History::new();
    let (minute, mut now) = (60_000, 0);
    let mut frames = turns(60).into_iter();
    let mut turn = |history: &mut History, window: &mut ContextWindow, now: i64| {
        for frame in frames.by_ref().take(2) {
            hud.capture(history, frame, Millis::new(now)).unwrap();
        }
        let request = RenderRequest::default();
        let fitted = window.render(history, &request, &engine, Millis::new(now)).unwrap();
        assert!(fitted.context.tokens().total <= 1_200);
        nothing_is_lost(window, history, &fitted);
        fitted
    };
    // A turn each minute.
    let mut most = 0;
    let mut last = None;
    while now < 60 * minute {
        last = Some(turn(&mut history, &mut window, now));
        most = most.max(engine.asked());
        now += minute;
    }
    let last = last.unwrap();
    assert!(!dropped(&last).is_empty() && window.transform().blocks().count() == 0);
    // A turn asks for what is new, and once for what failed before.
    assert!(most <= 4, "{most} times in one turn");
    let due = window.transform().next_retry().unwrap();
    assert!(due.get() <= now + 10 * minute, "{due:?} at {now}");
    engine.set(Act::Answers);
    let fitted = turn(&mut history, &mut window, due.get());
    assert!(window.transform().blocks().count() > 0 && engine.asked() > 0);
    assert!(fitted.epoch.is_some());
    for block in window.transform().blocks() {
        assert!(!dropped(&fitted).contains(&block.from), "{} is dropped", block.id);
    }
    let is_stuck = |state: &RangeState| !matches!(state, RangeState::Ready);
    let stuck: Vec<_> = window.transform().ranges().filter(|(_, state)| is_stuck(state)).collect();
    assert!(stuck.is_empty(), "{stuck:?}");
    assert!(dropped(&last).iter().all(|from| {
        window.transform().blocks().any(|block| (block.from..=block.to).contains(from))
    }));
}

#[test]
fn a_job_that_is_dropped_gives_its_range_back() {
    let hud = native();
    let history = captured(&hud, &turns(6));
    let mut transform = CompressionTransform::new(options());
    transform.plan(&history).unwrap();
    let now = Millis::new(5);
    let job = transform.next_job(&history, now).unwrap().unwrap();
    assert!(transform.next_job(&history, now).unwrap().is_none());
    // A copy elsewhere may still answer.
    let copy = job.clone();
    drop(job);
    assert!(transform.next_job(&history, now).unwrap().is_none());
    let (id, attempt) = (Arc::clone(&copy.id), copy.attempt);
    drop(copy);
    let again = transform.next_job(&history, now).unwrap().unwrap();
    assert_eq!((&again.id, again.attempt), (&id, attempt + 1));
    compressing::complete(&hud, &mut transform, &history, &again).unwrap();
    drop(again);
    assert!(transform.apply().is_some_and(|epoch| epoch.blocks == [id]));
}

async fn ask(_job: CompressionJob) -> String {
    std::future::pending().await
}

#[test]
fn a_future_that_is_cancelled_gives_its_range_back() {
    let hud = native();
    let mut history = captured(&hud, &turns(20));
    let mut window = ContextWindow::new(hud, Budget::new(900), options());
    let request = RenderRequest::default();
    let now = Millis::new(0);
    let job = window.next_job(&mut history, &request, now).unwrap().unwrap();
    let id = Arc::clone(&job.id);
    {
        let mut asked = pin!(ask(job));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context) == Poll::Pending);
        assert!(window.next_job(&mut history, &request, now).unwrap().is_none());
    }
    let job = window.next_job(&mut history, &request, now).unwrap().unwrap();
    assert_eq!(job.id, id);
    drop(job);
    let fitted = window.render(&mut history, &request, &OutlineEngine, now).unwrap();
    nothing_is_lost(&window, &history, &fitted);
}

#[test]
fn ranges_that_fail_are_tried_again_after_twice_as_long_each_time() {
    let hud = native();
    let history = captured(&hud, &turns(3));
    let options = CompressionOptions {
        retry_delay_ms: 1_000,
        retry_most_ms: 10_000,
        tries: 1,
        max_range_tokens: 5_000,
        ..options()
    };
    let mut transform = CompressionTransform::new(options.clone());
    transform.plan(&history).unwrap();
    let mut now = 0;
    for wait in [2_000, 4_000, 8_000, 10_000, 10_000] {
        let job = transform.next_job(&history, Millis::new(now)).unwrap().unwrap();
        transform.fail(&job, "down", Millis::new(now)).unwrap();
        assert_eq!(transform.next_retry(), Some(Millis::new(now + wait)));
        assert!(transform.next_job(&history, Millis::new(now + wait - 1)).unwrap().is_none());
        now += wait;
    }
    let job = transform.next_job(&history, Millis::new(now)).unwrap().unwrap();
    assert_eq!(job.attempt, 6);
    compressing::complete(&hud, &mut transform, &history, &job).unwrap();
    assert!(transform.apply().is_some() && transform.next_retry().is_none());
    // Who wants it can have it as it was.
    let mut never = CompressionTransform::new(CompressionOptions { retry_most_ms: 0, ..options });
    never.plan(&history).unwrap();
    let job = never.next_job(&history, Millis::new(0)).unwrap().unwrap();
    never.fail(&job, "down", Millis::new(0)).unwrap();
    assert_eq!(never.next_retry(), None);
    assert!(never.next_job(&history, Millis::new(i64::MAX)).unwrap().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(32),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_an_engine_does_no_word_is_lost_and_no_range_is_stuck(
        steps in vec(
            (
                select(&[
                    Act::Answers, Act::IsDown, Act::Garbage, Act::Nothing, Act::TooLong,
                    Act::Panics,
                ][..]),
                1..6_usize,
                0..400_000_i64,
                prop::bool::weighted(0.2),
            ),
            1..16,
        ),
        tokens in 400..2_000_u64,
    ) {
        let hud = native();
        let engine = Scripted::new(Act::Answers);
        let mut window = ContextWindow::new(hud.clone(), Budget::new(tokens), options());
        let (mut history, mut now) = (History::new(), 0);
        let mut frames = turns(20).into_iter();
        let request = RenderRequest::default();
        for (act, count, wait, drops_a_job) in steps {
            now += wait;
            for frame in frames.by_ref().take(count) {
                hud.capture(&mut history, frame, Millis::new(now)).unwrap();
            }
            if drops_a_job {
                drop(window.next_job(&mut history, &request, Millis::new(now)).unwrap());
            }
            engine.set(act);
            let rendered = catch_unwind(AssertUnwindSafe(|| {
                window.render(&mut history, &request, &engine, Millis::new(now))
            }));
            let Ok(fitted) = rendered else {
                prop_assert_eq!(act, Act::Panics);
                continue;
            };
            let fitted = fitted.unwrap();
            prop_assert!(fitted.context.tokens().total <= tokens);
            nothing_is_lost(&window, &history, &fitted);
        }
        // Once it answers again, everything that was to be summarised is.
        engine.set(Act::Answers);
        for _ in 0..40 {
            now += 700_000;
            let fitted =
                window.render(&mut history, &request, &engine, Millis::new(now)).unwrap();
            nothing_is_lost(&window, &history, &fitted);
        }
        let waits = |state: &RangeState| {
            matches!(state, RangeState::Pending { .. } | RangeState::InProgress { .. })
        };
        let stuck: Vec<_> =
            window.transform().ranges().filter(|(_, state)| waits(state)).collect();
        prop_assert!(stuck.is_empty(), "{:?}", stuck);
    }
}

#[test]
fn summaries_are_taken_of_a_job_that_was_dropped_by_nobody_else() {
    let hud = native();
    let history = captured(&hud, &turns(6));
    let mut transform = CompressionTransform::new(options());
    transform.plan(&history).unwrap();
    let job = transform.next_job(&history, Millis::new(0)).unwrap().unwrap();
    // Made by hand, it is no job of this plan.
    let mut other = CompressionJob::new(job.passages.clone(), job.token_limit);
    other.attempt = 9;
    let summary = Summary { text: "words", engine: "test" };
    let refused = transform.complete(&other, summary, Millis::new(0), render_with(&hud, &history));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(transform.complete(&job, summary, Millis::new(0), render_with(&hud, &history)).is_ok());
}

#[test]
fn a_failed_range_whose_frames_another_program_replaced_is_not_tried_again() {
    let hud = native();
    let mut history = captured(&hud, &turns(4));
    let options = CompressionOptions { tries: 1, max_range_tokens: 5_000, ..options() };
    let mut transform = CompressionTransform::new(options);
    transform.plan(&history).unwrap();
    let job = transform.next_job(&history, Millis::new(0)).unwrap().unwrap();
    transform.fail(&job, "down", Millis::new(0)).unwrap();
    assert!(transform.next_retry().is_some());
    let summary = Facet::new("summary", FacetType::SUMMARY, "All was dust and ice.");
    let mut told = Frame::new(16, Source::Environment);
    told.events.push(Compaction::event(0.into(), 11.into(), "pi", Some(&summary)));
    hud.capture(&mut history, told, Millis::new(0)).unwrap();
    let entered = transform.adopt(&history, Millis::new(0), render_with(&hud, &history)).unwrap();
    assert!(entered.is_some());
    assert_eq!(transform.next_retry(), None);
    let late = Millis::new(i64::MAX / 2);
    let next = transform.next_job(&history, late).unwrap();
    assert!(next.is_none_or(|job| job.from.get() > 11));
    // What it put there was sent: it is not undone.
    let id = transform.blocks().next().unwrap().id.clone();
    let error = transform.undo(&history, &id).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Conflict, "block-0-11 is what pi put in place of the frames",)
    );
}

/// Fails for so many calls, then answers.
#[derive(Debug)]
struct Outage(Mutex<u32>);

impl Engine for Outage {
    fn id(&self) -> &'static str {
        "outage"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let mut left = self.0.lock().unwrap();
        if *left == 0 {
            return OutlineEngine.summarize(job, counter);
        }
        *left -= 1;
        Err(Error::new(ErrorKind::Engine, "rate limit"))
    }
}

/// A context begins as the one before it, up to the first frame that an epoch changes.
fn begins_as_before(before: &FittedContext, after: &FittedContext) {
    let until = after.epoch.as_ref().map(|epoch| epoch.from);
    let stays = |at: (FrameSeq, FrameSeq)| until.is_none_or(|until| at.1 < until);
    let old = before.context.messages().iter();
    let old = old.take_while(|message| message.frames().is_some_and(stays));
    for (one, other) in old.zip(after.context.messages()) {
        assert!(other.content().starts_with(&*one.content()), "{:?}", one.frames());
    }
}

/// A session of so many turns within a budget, whose engine fails for `fails` calls; the window is
/// saved and loaded after every so many turns, if any. Gives the contexts, the window and what was
/// dropped in the end of the outage.
fn outage(
    (tokens, fails): (u64, u32),
    (turns_of, reload): (u64, usize),
    clock: i64,
) -> (Vec<FittedContext>, ContextWindow, History, Vec<FrameSeq>) {
    let (hud, engine, budget) = (native(), Outage(Mutex::new(fails)), Budget::new(tokens));
    let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    let (mut history, request) = (History::new(), RenderRequest::default());
    let (mut contexts, mut lost): (Vec<FittedContext>, _) = (Vec::new(), Vec::new());
    for (number, turn) in turns(turns_of).chunks(4).enumerate() {
        let now = Millis::new(clock * i64::try_from(number).unwrap());
        for frame in turn {
            hud.capture(&mut history, frame.clone(), now).unwrap();
        }
        let was_down = *engine.0.lock().unwrap() > 0;
        let fitted = window.render(&mut history, &request, &engine, now).unwrap();
        assert!(fitted.context.tokens().total <= tokens);
        if reload > 0 && number % reload == 0 {
            let saved = afterimage::json::read(window.to_json().to_string().as_bytes()).unwrap();
            window = ContextWindow::from_json(saved, hud.clone(), &mut history, now).unwrap();
        }
        if number % 10 == 0 {
            nothing_is_lost(&window, &history, &fitted);
        }
        if let Some(before) = contexts.last() {
            begins_as_before(before, &fitted);
            let back = dropped(before).into_iter().find(|from| !dropped(&fitted).contains(from));
            let is_told = |from| fitted.epoch.as_ref().is_some_and(|epoch| epoch.from <= from);
            assert!(back.is_none_or(is_told), "{back:?} came back without an epoch");
        }
        if was_down && !fitted.dropped.is_empty() {
            lost = dropped(&fitted);
        }
        contexts.push(fitted);
    }
    assert_eq!(*engine.0.lock().unwrap(), 0, "the engine was asked until it answered");
    (contexts, window, history, lost)
}

#[test]
fn frames_that_an_outage_dropped_come_back_as_blocks_once_the_engine_answers() {
    for (tokens, fails) in [(1_200, 3), (1_200, 12), (1_200, 40), (4_000, 14)] {
        for clock in [0, 60_000] {
            let (contexts, window, history, lost) = outage((tokens, fails), (110, 0), clock);
            let case = format!("{tokens} tokens, {fails} failures, {clock} ms a turn");
            assert!(!lost.is_empty(), "{case}: the outage dropped nothing");
            let last = contexts.last().unwrap();
            assert!(dropped(last).is_empty(), "{case}: {:?}", dropped(last));
            let receipt = window.receipt(&history, last).unwrap();
            for from in &lost {
                let block = receipt.replaced.iter().find(|of| (of.from..=of.to).contains(from));
                let kind = block.map(|of| of.kind);
                assert_eq!(kind, Some(ReplacementKind::Summarised), "{case}: {from}");
            }
        }
    }
}

#[test]
fn blocks_of_a_long_outage_are_merged_as_any_others() {
    let (contexts, window, ..) = outage((1_200, 60), (200, 0), 60_000);
    assert!(dropped(contexts.last().unwrap()).is_empty());
    assert!(window.transform().blocks().any(|block| block.level > 1));
}

#[test]
fn a_window_that_was_saved_in_an_outage_brings_back_the_same() {
    for clock in [0, 60_000] {
        let (whole, ..) = outage((1_200, 12), (100, 0), clock);
        for reload in [1, 7] {
            let (reloaded, ..) = outage((1_200, 12), (100, reload), clock);
            for (turn, (one, other)) in whole.iter().zip(&reloaded).enumerate() {
                assert_eq!(one.context.to_json(), other.context.to_json(), "turn {turn}");
                assert_eq!((&one.epoch, &one.dropped), (&other.epoch, &other.dropped));
            }
        }
    }
}

#[test]
fn a_range_that_fails_by_itself_is_asked_for_seldom_while_others_are_answered() {
    #[derive(Debug)]
    struct Refuses(Mutex<u32>);
    impl Engine for Refuses {
        fn id(&self) -> &'static str {
            "refuses"
        }

        fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
            if job.from.get() == 1 {
                *self.0.lock().unwrap() += 1;
                return Err(Error::new(ErrorKind::Engine, "content policy"));
            }
            OutlineEngine.summarize(job, counter)
        }
    }
    let (hud, engine, budget) = (native(), Refuses(Mutex::default()), Budget::new(1_200));
    let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    let (mut history, request, now) = (History::new(), RenderRequest::default(), Millis::new(0));
    for turn in turns(150).chunks(4) {
        for frame in turn {
            hud.capture(&mut history, frame.clone(), now).unwrap();
        }
        window.render(&mut history, &request, &engine, now).unwrap();
    }
    let asked = *engine.0.lock().unwrap();
    assert!((2..20).contains(&asked), "{asked} times");
}
