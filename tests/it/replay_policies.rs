//! Policies of a replay beside each other: none over its budget, no pair cut, every request accepted
//! in the form of its provider, and bills that can be added up by hand.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::sessions;

use afterimage_testkit::{data, validators};

use std::sync::{Arc, LazyLock, Mutex};

use afterimage::{
    Result,
    compress::{CompressionJob, Engine, OutlineEngine},
    export::Form,
    hud::{Hud, Message, NativeFormat},
    id::{FacetType, Millis},
    json,
    replay::{Replay, ReplayFigures, ReplayPolicy, ReplayRates, SummaryCalls},
    tokens::{Bpe, Chars4, Memo, TokenCounter},
    veil::{Facet, FacetOp, Frame, Source},
    window::Budget,
};
use sessions::Session;

const NOW: Millis = Millis::new(0);

/// Every fifth session of at least 20 messages.
static SESSIONS: LazyLock<Vec<Session>> = LazyLock::new(|| {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return Vec::new() };
    let all = sessions::sessions(first.parent().unwrap(), 20, 1);
    all.into_iter().step_by(5).collect()
});

static COUNTER: LazyLock<Arc<dyn TokenCounter>> =
    LazyLock::new(|| Arc::new(Memo::new(Bpe::o200k())));

fn hud(counter: Arc<dyn TokenCounter>) -> Hud {
    Hud::builder(counter).format(Arc::new(NativeFormat)).build()
}

#[test]
fn every_policy_keeps_its_budget_and_its_pairs_in_every_form() {
    if std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_some() {
        assert!(SESSIONS.len() > 5, "{}", SESSIONS.len());
    }
    let budget = Budget::new(6_000);
    let forms = [Form::OpenaiChat, Form::Responses, Form::Anthropic];
    for name in ReplayPolicy::NAMES {
        let mut all = ReplayFigures::default();
        for (index, session) in SESSIONS.iter().enumerate() {
            let form = forms[index % forms.len()];
            let policy = ReplayPolicy::by_name(name, &budget).unwrap();
            let replay = Replay::new(hud(COUNTER.clone()), budget, policy, Arc::new(OutlineEngine));
            let mut replay = replay.form(form);
            let mut requests = 0;
            for frame in &session.frames {
                let Some(turn) = replay.push(frame.clone(), NOW).unwrap() else { continue };
                let Some(exported) = &turn.exported else { continue };
                requests += 1;
                let place = format!("{name}: {} request {requests}", session.name);
                assert_eq!(exported.form(), form, "{place}");
                if name != "none" {
                    assert!(turn.exported_tokens <= budget.room(), "{place}");
                }
                if requests % 5 == 1 {
                    let value = serde_json::from_str(&exported.value().to_string()).unwrap();
                    let verdict = match form {
                        Form::OpenaiChat => validators::chat(&value),
                        Form::Responses => validators::responses(&value),
                        _ => validators::anthropic(&value),
                    };
                    assert_eq!(verdict, Ok(()), "{place}");
                }
            }
            let figures = replay.figures();
            assert_eq!(requests, figures.turns - figures.unfit, "{name}: {}", session.name);
            all += figures;
        }
        assert_eq!(all.orphans, 0, "{name}");
        assert!(name == "none" || all.over_budget == 0, "{name}");
    }
}

/// A session of 24 turns: the user asks, the agent calls, the tool answers at length.
fn talk() -> Vec<Frame> {
    let mut frames = Vec::new();
    for turn in 0..24_u64 {
        let asked = Facet::new(
            format!("ask-{turn}"),
            FacetType::EVENT,
            format!("Question {turn} of the user about pier-{turn}."),
        );
        let call = Facet::tool_call(
            &*format!("call-{turn}"),
            Some(&*format!("c{turn}")),
            "look",
            json::read(br#"{"at": "pier"}"#).unwrap(),
        );
        let text = format!("reading {turn} ").repeat(40);
        let result =
            Facet::tool_result(&*format!("seen-{turn}"), Some(&*format!("c{turn}")), None, text);
        let answer =
            Facet::new(format!("said-{turn}"), FacetType::SPEECH, format!("Answer {turn}."));
        for (at, (source, facet)) in [
            (Source::User, asked),
            (Source::Agent, call),
            (Source::Environment, result),
            (Source::Agent, answer),
        ]
        .into_iter()
        .enumerate()
        {
            frames.push(Frame::new(turn * 4 + at as u64, source).with(FacetOp::add(facet)));
        }
    }
    frames
}

/// The requests of a talk within 1,000 tokens, each as its messages.
fn requests(policy: ReplayPolicy) -> (Vec<Vec<String>>, ReplayFigures) {
    requests_of(talk(), policy)
}

fn requests_of(frames: Vec<Frame>, policy: ReplayPolicy) -> (Vec<Vec<String>>, ReplayFigures) {
    let budget = Budget::new(1_000);
    let mut replay = Replay::new(hud(Arc::new(Chars4)), budget, policy, Arc::new(OutlineEngine));
    let mut requests = Vec::new();
    for frame in frames {
        if let Some(turn) = replay.push(frame, NOW).unwrap() {
            let messages = turn.context.unwrap().messages();
            requests.push(messages.iter().map(|said| said.content().into_owned()).collect());
        }
    }
    (requests, replay.figures())
}

const FIRST: &str = "Question 0 of the user about pier-0.";

#[test]
fn the_first_message_stays_where_that_is_the_policy() {
    let (kept, figures) = requests(ReplayPolicy::FirstAndLast);
    let (slid, _) = requests(ReplayPolicy::Sliding);
    assert_eq!((figures.turns, figures.unfit), (48, 0));
    assert!(kept.iter().all(|request| request[0] == FIRST));
    assert!(slid.last().unwrap().iter().all(|said| said != FIRST));
    // What is newest stays in both.
    assert!(kept.last().unwrap().iter().any(|said| said.starts_with("reading 23 ")));
}

#[test]
fn what_a_program_says_first_is_not_the_first_message() {
    let notice = "<session_context>\nThe quay is at low water.\n</session_context>";
    let notice = Facet::new("notice", FacetType::EVENT, notice);
    let mut frames = vec![Frame::new(0, Source::User).with(FacetOp::add(notice))];
    frames.extend(talk().into_iter().map(|mut frame| {
        frame.sequence = (frame.sequence.get() + 1).into();
        frame
    }));
    let (kept, _) = requests_of(frames, ReplayPolicy::FirstAndLast);
    assert_eq!(kept.last().unwrap()[0], FIRST);
}

#[test]
fn masking_leaves_a_line_of_old_results_and_changes_in_batches() {
    let policy = ReplayPolicy::Masking { turns: 4, batch: 6 };
    let (masked, figures) = requests(policy);
    let lines = |request: &Vec<String>| {
        let is_line = |said: &&String| said.starts_with("[…") && said.ends_with("left out …]");
        request.iter().filter(is_line).count()
    };
    assert_eq!(lines(&masked[9]), 0);
    let most = masked.iter().map(lines).max().unwrap();
    assert!(most >= 3, "{most}");
    // The newest results of four turns of the agent are whole in every request.
    for request in &masked {
        let newest: Vec<&String> = request.iter().rev().take(3).collect();
        assert!(newest.iter().all(|said| !said.starts_with("[…")), "{newest:?}");
    }
    assert_eq!((figures.over_budget, figures.orphans), (0, 0));
}

#[test]
fn the_users_words_stay_beside_a_summary() {
    let (kept, figures) = requests(ReplayPolicy::KeepUser { most: 20_000 });
    assert!(figures.compressions > 1);
    let last = kept.last().unwrap();
    let questions = last.iter().filter(|said| said.starts_with("Question ")).count();
    assert!(questions >= 20, "{last:#?}");
    // Half of the room, and the newest first.
    let (few, _) = requests(ReplayPolicy::KeepUser { most: 60 });
    let last = few.last().unwrap();
    let questions: Vec<&String> =
        last.iter().filter(|said| said.starts_with("Question ")).collect();
    assert!(questions.len() < 10 && *questions[0] != FIRST, "{last:#?}");
}

#[test]
fn forgetting_leaves_half_of_the_room_and_then_grows() {
    let (forgot, _) = requests(ReplayPolicy::Forget { share: 50 });
    let size =
        |request: &Vec<String>| request.iter().map(|said| said.len() as u64 / 4).sum::<u64>();
    let sizes: Vec<u64> = forgot.iter().map(size).collect();
    let drops: Vec<_> = sizes.windows(2).filter(|pair| pair[1] < pair[0]).collect();
    assert!(drops.len() >= 3, "{sizes:?}");
    assert!(drops.iter().all(|pair| pair[1] <= 500), "{drops:?}");
    assert!(sizes.iter().max() > Some(&700), "{sizes:?}");
}

#[test]
fn a_bill_adds_up() {
    let rates = ReplayRates { write: 1_000, read: 0, output: 3_000 };
    let (requests, figures) = requests(ReplayPolicy::Unlimited);
    // What is written is what is new: of a session that only grows, the last request.
    let tokens = |said: &String| Chars4.count(said) as u64 + 4;
    let last: u64 = requests.last().unwrap().iter().map(tokens).sum();
    let written = figures.tokens_sent - figures.tokens_cached;
    // Each request ends with what begins the answer, which is no prefix.
    assert_eq!(written, last + 3 * figures.turns);
    assert_eq!(figures.billed_at(rates), written);
    assert_eq!(figures.billed_at(ReplayRates { read: 1_000, ..rates }), figures.tokens_sent);
    assert_eq!(figures.room_used().map(|used| used > 1.0), Some(true));
}

/// Notes what it is asked.
#[derive(Debug, Default)]
struct Listening(Mutex<Vec<(u64, u64)>>);

impl Engine for Listening {
    fn id(&self) -> &'static str {
        "listening"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let prompt = afterimage::compress::prompt(job, counter);
        let answer = "They looked at piers.".to_owned();
        let (asked, answered) = (counter.count(&prompt) as u64, counter.count(&answer) as u64);
        self.0.lock().unwrap().push((asked, answered));
        Ok(answer)
    }
}

#[test]
fn what_a_summary_costs_is_in_the_bill() {
    let budget = Budget::new(700);
    let play = |calls| {
        let engine = Arc::new(Listening::default());
        let policy = ReplayPolicy::Blocks(budget.compression());
        let replay = Replay::new(hud(Arc::new(Chars4)), budget, policy, engine.clone());
        let mut replay = replay.summary_calls(calls);
        talk().into_iter().for_each(|frame| drop(replay.push(frame, NOW).unwrap()));
        let asked = engine.0.lock().unwrap().clone();
        (replay.figures(), asked)
    };
    let (free, _) = play(SummaryCalls::Free);
    let (fresh, asked) = play(SummaryCalls::Fresh);
    let (continued, _) = play(SummaryCalls::Continued);
    assert!(asked.len() > 2);
    let [input, output] =
        [asked.iter().map(|call| call.0).sum(), asked.iter().map(|call| call.1).sum()];
    assert_eq!((fresh.summary_input, fresh.summary_output), (input, output));
    assert_eq!((fresh.summary_calls, fresh.summary_cached), (asked.len() as u64, 0));
    assert_eq!((free.summary_calls, free.summary_input), (0, 0));
    assert_eq!(fresh.billed_tokens() - free.billed_tokens(), input + 5 * output);
    // All of the last request is read from the cache, the instructions are not.
    assert!(continued.summary_cached > 0 && continued.summary_cached < continued.summary_input);
    assert_eq!(continued.tokens_sent, free.tokens_sent);
    assert!(continued.billed_tokens() > free.billed_tokens());
}

#[test]
fn requests_are_of_the_messages_that_a_context_has() {
    let budget = Budget::new(1_000);
    let policy = ReplayPolicy::by_name("sliding", &budget).unwrap();
    let replay = Replay::new(hud(Arc::new(Chars4)), budget, policy, Arc::new(OutlineEngine));
    let mut replay = replay.form(Form::OpenaiChat);
    for frame in talk() {
        let Some(turn) = replay.push(frame, NOW).unwrap() else { continue };
        let said: Vec<String> =
            turn.context.unwrap().messages().iter().map(Message::content).map(Into::into).collect();
        let exported: serde_json::Value =
            serde_json::from_str(&turn.exported.unwrap().value().to_string()).unwrap();
        assert_eq!(exported.as_array().unwrap().len(), said.len());
    }
}

#[test]
fn a_policy_has_the_figures_that_stand_behind_its_name() {
    let budget = Budget::new(8_000);
    let of = |name: &str| ReplayPolicy::by_name(name, &budget);
    for (name, policy) in [
        ("sliding:3", ReplayPolicy::Newest { units: 3 }),
        ("masking:20", ReplayPolicy::Masking { turns: 20, batch: 10 }),
        ("masking:20:5", ReplayPolicy::Masking { turns: 20, batch: 5 }),
        ("keep-user:8000", ReplayPolicy::KeepUser { most: 8_000 }),
        ("forget:0.30", ReplayPolicy::Forget { share: 30 }),
        ("forget:1.00", ReplayPolicy::Forget { share: 100 }),
    ] {
        assert_eq!(of(name).unwrap(), policy, "{name}");
        assert_eq!(policy.to_string(), name);
    }
    assert_eq!(of("keep-user:8k").unwrap(), of("keep-user:8000").unwrap());
    assert_eq!(of("forget:0.5").unwrap(), of("forget").unwrap());
    for name in [
        "",
        "maskin",
        "Masking",
        "none:1",
        "blocks:2",
        "first-and-last:3",
        "sliding:",
        "sliding:0",
        "sliding:3:4",
        "masking:x",
        "masking:1:2:3",
        "keep-user:-1",
        "keep-user:99999999999999999999",
        "forget:50",
        "forget:1.01",
        "forget:.5",
        "forget:0.555",
        "forget:+1",
    ] {
        let error = of(name).unwrap_err();
        assert_eq!(error.kind(), afterimage::ErrorKind::Shape, "{name}");
        assert!(error.message().contains("`masking[:TURNS[:BATCH]]`"), "{error}");
        assert!(error.message().ends_with(&format!("found {name:?}")), "{error}");
    }
}

#[test]
fn a_window_of_so_many_messages_holds_no_more_where_there_is_room() {
    let budget = Budget::new(100_000);
    let policy = ReplayPolicy::by_name("sliding:3", &budget).unwrap();
    let mut replay = Replay::new(hud(Arc::new(Chars4)), budget, policy, Arc::new(OutlineEngine));
    let (mut most, mut dropped) = (0, 0);
    for frame in talk() {
        let Some(turn) = replay.push(frame, NOW).unwrap() else { continue };
        most = most.max(turn.context.unwrap().frame_to_message().count());
        dropped = turn.dropped.len();
    }
    // Three messages, one of them a call with its result.
    assert!(most == 4 && dropped > 60, "{most} {dropped}");
}
