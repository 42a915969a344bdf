//! Requests for summaries that begin with what the session sent last.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use afterimage::{
    compress::{CompressionJob, Essential, EssentialKind, OutlineEngine, Passage},
    hud::{Hud, NativeFormat, RenderRequest, RenderedContext},
    id::{FacetType, Millis},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, CONTINUED_TEMPLATE, ContextWindow, ContinuedPrompt},
};

const NOW: Millis = Millis::new(0);

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

fn history(texts: &[&str]) -> History {
    let mut history = History::new();
    for (n, text) in (0..).zip(texts) {
        let source = if n % 2 == 0 { Source::User } else { Source::Agent };
        let facet = Facet::new(format!("said-{n}"), FacetType::EVENT, *text);
        hud().capture(&mut history, Frame::new(n, source).with(FacetOp::add(facet)), NOW).unwrap();
    }
    history
}

fn passages(history: &History, range: std::ops::Range<usize>) -> Vec<Passage> {
    let frames = history.frames();
    let passage = |at| {
        let frame = frames.get(at).unwrap();
        let snapshot = frame.rendered_snapshot.clone().unwrap();
        let (from, role) = (frame.sequence, hud().role_of(&frame.source));
        Passage { from, to: from, role, source: None, snapshot }
    };
    range.map(passage).collect()
}

fn context(history: &History) -> RenderedContext {
    hud().render(history, &RenderRequest::default(), NOW).unwrap()
}

const TEXTS: [&str; 4] = [
    "Move berth 7 to slot S-3392.",
    "Slot S-3392 is free,\nand so is S-3393.",
    "Take S-3393 for order W1234567.",
    "Done: berth_move 4471 is in the book.",
];

const GOLDEN: &str = "This message is from the program that runs you, and not from the user. Do not go on with the work, and call no tool: write a summary.

What you write replaces messages 1 to 2 of this conversation (from \"Move berth 7 to slot S-3392.\" to \"Slot S-3392 is free, and so is S-3393.\") in your context; you read it and go on working. The original can be looked up, but only by someone who knows what to look for.

Write at most 60 tokens. Use prose and lists; no introduction, no closing remark, no tags.

Keep, in this order of importance:
1. What the user asked for, decided and ruled out, in the user's own words where they matter.
2. What was done, in order: each tool call that changed or found something, with its arguments, and what came of it. Errors and how they were solved.
3. What is still open, and what was to happen next.
4. Every identifier, number, date, path and URL that may be needed again, exactly as it is spelled and beside what it names.

Add nothing that was not said. Say where things stand after the history: the agent reads it nowhere else.

Likely to be needed again: S-3392, S-3393
";

#[test]
fn the_instruction_names_the_messages_by_their_places_and_how_they_begin() {
    let history = history(&TEXTS);
    let sent = context(&history);
    let job = CompressionJob::new(passages(&history, 0..2), 60);
    let prompt = ContinuedPrompt::of(&job, &sent, &Chars4);
    assert_eq!(prompt.messages, 4);
    assert_eq!(prompt.instruction, GOLDEN);
    let one = CompressionJob::new(passages(&history, 2..3), 60);
    let one = ContinuedPrompt::of(&one, &sent, &Chars4).instruction;
    let expected =
        "replaces message 3 of this conversation (\"Take S-3393 for order W1234567.\") in";
    assert!(one.contains(expected), "{one}");
    assert!(CONTINUED_TEMPLATE.contains("replaces {range} in your context"));
}

#[test]
fn what_came_since_and_what_was_lost_stand_in_the_instruction() {
    let all = history(&TEXTS);
    let sent = context(&history(&TEXTS[..3]));
    let job = CompressionJob::new(passages(&all, 1..4), 60);
    let prompt = ContinuedPrompt::of(&job, &sent, &Chars4);
    let mark = prompt.instruction.lines().last().unwrap();
    assert!(mark.starts_with("history-"), "{prompt:?}");
    let since = format!(
        "\nWhat came since stands between the two lines {mark}.\n\n{mark}\n[agent]\nDone: berth_move 4471 is in the book.\n{mark}\n"
    );
    assert!(prompt.instruction.ends_with(&since), "{}", prompt.instruction);
    assert!(prompt.instruction.contains("messages 2 to 3 of this conversation"));
    assert!(prompt.instruction.contains("\") and what came since in your context"));

    let only = CompressionJob::new(passages(&all, 3..4), 60);
    let only = ContinuedPrompt::of(&only, &sent, &Chars4).instruction;
    assert!(only.contains("replaces what came since the last message in your context"), "{only}");

    let lost = Essential { kind: EssentialKind::Number, text: "S-3393".to_owned() };
    let again = job.revising("They moved a berth.", vec![lost]);
    let again = ContinuedPrompt::of(&again, &sent, &Chars4).instruction;
    assert!(
        again.contains("\nThey moved a berth.\n") && again.ends_with("\n- S-3393\n"),
        "{again}"
    );
    assert!(again.contains("within 60 tokens"));
}

#[test]
fn the_messages_before_it_are_those_that_were_sent_but_for_a_begun_answer() {
    let history = history(&TEXTS);
    let request = RenderRequest { prefill: Some("I".to_owned()), ..RenderRequest::default() };
    let sent = hud().render(&history, &request, NOW).unwrap();
    let job = CompressionJob::new(passages(&history, 0..1), 60);
    let prompt = ContinuedPrompt::of(&job, &sent, &Chars4);
    assert_eq!((prompt.messages, sent.messages().len()), (4, 5));
}

#[test]
fn blocks_of_a_session_are_found_where_they_stand() {
    let texts: Vec<String> =
        (0..500).map(|n| format!("Step {n}: berth_{n} has {}", "a calm sea ".repeat(9))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let budget = Budget::new(900);
    let mut window = ContextWindow::new(hud(), budget, budget.compression());
    let (mut history, mut sent) = (History::new(), None::<RenderedContext>);
    let (mut levels, mut found) = (0, 0);
    for (n, text) in (0..).zip(texts) {
        let facet = Facet::new(format!("said-{n}"), FacetType::SPEECH, text);
        let frame = Frame::new(n, Source::Agent).with(FacetOp::add(facet));
        hud().capture(&mut history, frame, NOW).unwrap();
        let request = RenderRequest::default();
        while let Some(job) = window.next_job(&mut history, &request, NOW).unwrap() {
            if let Some(sent) = &sent {
                let prompt = ContinuedPrompt::of(&job, sent, &Chars4);
                assert_eq!(prompt.messages, sent.messages().len());
                let first = job.passages[0].snapshot.text().split_whitespace().collect::<Vec<_>>();
                let first: String = first.join(" ").chars().take(80).collect();
                levels = levels.max(job.level);
                found += u64::from(prompt.instruction.contains(&format!("{first:?}")));
            }
            window.run(&job, &history, &OutlineEngine, NOW).unwrap();
        }
        sent = Some(window.finish(&mut history, &request, NOW).unwrap().context);
    }
    assert!(levels > 1 && found > 3, "{levels} {found}");
}
