//! A range of one's own is compressed as the preview says, and undone byte for byte.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{self, captured, native, render_with, small, turns};
use crate::support::histories;

use afterimage::{
    ErrorKind,
    compress::{
        CompressionBlock, CompressionOptions, CompressionTransform, Engine, OutlineEngine,
        StayReason, Summary,
    },
    hud::{Hud, RenderRequest},
    id::{FacetType, FrameSeq, Millis},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Saliency, Source},
    window::{Budget, ContextWindow},
};
use proptest::{prelude::*, sample::Index};

const NOW: Millis = Millis::new(0);

fn answered(hud: &Hud, transform: &mut CompressionTransform, history: &History) {
    while let Some(job) = transform.next_job(history, NOW).unwrap() {
        let done = OutlineEngine.summarize(&job, &Chars4).and_then(|text| {
            let summary = Summary { text: &text, engine: "outline" };
            transform.complete(&job, summary, NOW, render_with(hud, history))
        });
        if let Err(error) = done {
            transform.fail(&job, error.to_string(), NOW).unwrap();
        }
    }
}

fn context(hud: &Hud, transform: &CompressionTransform, history: &History) -> String {
    let request = compressing::request(transform);
    hud.render(history, &request, NOW).unwrap().to_json().to_string()
}

/// The ids of a block and of those inside of it.
fn gather(block: &CompressionBlock, all: &mut Vec<String>) {
    all.push(block.id.to_string());
    block.blocks().iter().for_each(|inner| gather(inner, all));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(96),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_range_is_compressed_as_previewed_and_undone_byte_for_byte(
        frames in prop_oneof![histories::history(40), (1..14_u64).prop_map(turns)],
        is_planned in any::<bool>(),
        ends in any::<(Index, Index)>(),
    ) {
        prop_assume!(!frames.is_empty());
        let hud = native();
        let history = captured(&hud, &frames);
        let mut transform = CompressionTransform::new(small());
        if is_planned {
            transform.plan(&history).unwrap();
            answered(&hud, &mut transform, &history);
            transform.apply();
        }
        let before = context(&hud, &transform, &history);
        let (a, b) = (ends.0.index(frames.len()), ends.1.index(frames.len()));
        let range = frames[a.min(b)].sequence..=frames[a.max(b)].sequence;
        let preview = transform.preview_range(&history, range.clone()).unwrap();
        let live = transform.live_tokens();
        prop_assert_eq!(context(&hud, &transform, &history), before.clone());
        let planned = transform.compress_range(&history, range.clone());
        let Ok(planned) = planned else {
            let error = planned.unwrap_err();
            prop_assert_eq!(error.kind(), ErrorKind::Conflict);
            prop_assert!(preview.goes.is_empty());
            let told = preview.stays.iter().all(|of| error.message().contains(&of.to_string()));
            prop_assert!(told, "{}", error);
            return Ok(());
        };
        prop_assert_eq!(&planned, &preview);
        // Each frame that shows something goes or stays, once.
        for frame in history.frames() {
            let snapshot = frame.rendered_snapshot.as_ref().unwrap();
            let at = frame.sequence;
            let goes = planned.goes.iter().filter(|run| run.contains(&at)).count();
            let stays = planned.stays.iter().filter(|of| (of.from..=of.to).contains(&at)).count();
            if !range.contains(&at) {
                prop_assert_eq!((goes, stays), (0, 0));
            } else if !snapshot.is_empty() {
                prop_assert_eq!(goes + stays, 1, "{}: {:?}", at, planned);
            }
        }
        for pair in history.pairs().all().iter().filter(|pair| pair.in_time) {
            for run in &planned.goes {
                prop_assert_eq!(run.contains(&pair.call.frame), run.contains(&pair.result.frame));
            }
        }
        // It is planned once.
        let again = transform.preview_range(&history, range.clone()).unwrap();
        prop_assert!(again.goes.is_empty());
        answered(&hud, &mut transform, &history);
        let Some(epoch) = transform.apply() else { return Ok(()) };
        for id in &epoch.blocks {
            let block = transform.block(id).unwrap();
            let (held, expanded) = compressing::originals(&history, block);
            prop_assert_eq!(held, expanded);
        }
        for id in epoch.blocks.iter().rev() {
            transform.undo(&history, id).unwrap();
        }
        prop_assert_eq!(context(&hud, &transform, &history), before);
        prop_assert_eq!(transform.live_tokens(), live);
        // No plan takes the frames again; whoever wants it asks.
        let goes = planned.goes.clone();
        transform.plan(&history).unwrap();
        let again = transform.preview_range(&history, range).unwrap();
        let all_of_them = goes.iter().all(|run| {
            again.goes.contains(run) || again.stays.iter().any(|of| {
                matches!(of.reason, StayReason::Planned(_)) && of.from <= *run.end()
            })
        });
        prop_assert!(all_of_them, "{:?} {:?}", goes, again);
    }

    #[test]
    fn any_block_is_undone_and_the_state_is_what_it_was(
        count in 8..30_u64,
        which in any::<Index>(),
    ) {
        let hud = native();
        let history = captured(&hud, &turns(count));
        let mut transform = CompressionTransform::new(small());
        let mut contexts = vec![context(&hud, &transform, &history)];
        loop {
            transform.plan(&history).unwrap();
            answered(&hud, &mut transform, &history);
            if transform.apply().is_none() {
                break;
            }
            contexts.push(context(&hud, &transform, &history));
        }
        let mut all = Vec::new();
        transform.blocks().for_each(|block| gather(block, &mut all));
        let id = &all[which.index(all.len())];
        let held = compressing::state_by_blocks(&history, &transform);
        transform.undo(&history, id).unwrap();
        prop_assert!(transform.block(id).is_none());
        prop_assert_eq!(compressing::state_by_blocks(&history, &transform), held);
        // Undone from the outside in, all of them lead to the context without blocks.
        loop {
            let first = transform.blocks().next().map(|block| block.id.clone());
            let Some(id) = first else { break };
            transform.undo(&history, &id).unwrap();
        }
        prop_assert_eq!(&context(&hud, &transform, &history), &contexts[0]);
        prop_assert_eq!(transform.undo(&history, id).unwrap_err().kind(), ErrorKind::Conflict);
    }
}

fn long(n: u64, source: Source, words: usize) -> Frame {
    let text = format!("Reading {n} of sensor S-{}: {}", 1000 + n, "calm and clear ".repeat(words));
    let facet = Facet::new(format!("reading-{n}"), FacetType::EVENT, text);
    Frame::new(n, source).with(FacetOp::add(facet))
}

#[test]
fn undo_gives_back_the_blocks_of_an_engine_whatever_its_name() {
    let hud = native();
    let frames: Vec<Frame> = (0..8).map(|n| long(n, Source::User, 100)).collect();
    let history = captured(&hud, &frames);
    let options = CompressionOptions { protected_frames: 2, trigger_tokens: 1, ..small() };
    let mut transform = CompressionTransform::new(options);
    for at in [2_u64, 3] {
        transform.compress_range(&history, at.into()..=at.into()).unwrap();
    }
    let answer = |transform: &mut CompressionTransform| {
        while let Some(job) = transform.next_job(&history, NOW).unwrap() {
            let text = if job.level > 1 { "So." } else { "Calm and clear over all of the sea." };
            let summary = Summary { text, engine: "verbatim" };
            transform.complete(&job, summary, NOW, render_with(&hud, &history)).unwrap();
        }
        transform.apply().unwrap();
    };
    answer(&mut transform);
    let before: Vec<_> = transform.blocks().map(|block| block.id.clone()).collect();
    assert_eq!(before.len(), 2);
    // All frames are protected: what is left to plan is a block of these blocks.
    assert_eq!(transform.plan_saving(&history, 1, 8).unwrap(), 1);
    answer(&mut transform);
    let outer = transform.blocks().next().unwrap().clone();
    assert_eq!((outer.blocks().len(), transform.blocks().count()), (2, 1));
    transform.undo(&history, &outer.id).unwrap();
    assert_eq!(transform.blocks().map(|block| block.id.clone()).collect::<Vec<_>>(), before);
}

#[test]
fn a_preview_says_what_goes_what_stays_and_what_the_cache_loses() {
    let hud = native();
    let mut frames: Vec<Frame> = (0..20).map(|n| long(n, Source::User, 10)).collect();
    let mut pinned = Facet::new("rule", FacetType::EVENT, "Never sail at night.");
    pinned.saliency = Some(Saliency { pinned: true, ..Saliency::default() });
    frames[9] = Frame::new(9, Source::User).with(FacetOp::add(pinned));
    let mut history = captured(&hud, &frames);
    let budget = Budget::new(10_000);
    let mut window = ContextWindow::new(hud, budget, budget.compression());
    let request = RenderRequest::default();
    let before = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let range = FrameSeq::new(4)..=FrameSeq::new(14);
    let preview = window.preview_range(&mut history, &request, range.clone(), NOW).unwrap();
    assert_eq!(preview.plan.goes, [4.into()..=8.into(), 10.into()..=14.into()]);
    assert_eq!(preview.plan.stays.len(), 1);
    assert_eq!(preview.plan.stays[0].to_string(), "9 (the operator's words or a pinned facet)");
    assert_eq!(preview.tokens_before, before.context.tokens().total);
    window.compress_range(&mut history, range, NOW).unwrap();
    let after = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let epoch = after.epoch.as_ref().unwrap();
    assert_eq!((epoch.from.get(), epoch.blocks.len()), (4, 2));
    let total = after.context.tokens().total;
    assert!(total <= preview.tokens_after && total < preview.tokens_before, "{total} {preview:?}");
    let four = before.context.messages().iter().take(4);
    let unchanged: u64 = four.map(|of| of.tokens() + request.framing.per_message).sum();
    assert_eq!(preview.tokens_unchanged, unchanged);
    assert_eq!(preview.lost_from_cache(), preview.tokens_before - unchanged);
    assert_eq!(preview.written_anew(), preview.tokens_after - unchanged);
    // Undone, the context is what it was.
    for id in ["block-4-8", "block-10-14"] {
        window.undo(&history, id).unwrap();
    }
    let undone = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(undone.context.to_json(), before.context.to_json());
    assert_eq!(undone.epoch.as_ref().unwrap().from.get(), 4);
    assert!(window.undo(&history, "block-4-8").is_err());
}

#[test]
fn a_range_that_holds_nothing_to_compress_says_which_frames_stay_and_why() {
    let hud = native();
    let mut history = captured(&hud, &turns(4));
    let mut window = ContextWindow::new(hud, Budget::new(50_000), small());
    // The calls without their results.
    let error = window.compress_range(&mut history, 1.into()..=2.into(), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(
        error.message(),
        "no frame from 1 to 2 can be compressed: 1 to 2 (a call whose result is outside, or the other way round)"
    );
    let error = window.compress_range(&mut history, 90.into()..=95.into(), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    let error = window.compress_range(&mut history, 5.into()..=2.into(), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    // With them they go; and then a block stands for them.
    window.compress_range(&mut history, 1.into()..=3.into(), NOW).unwrap();
    let error = window.compress_range(&mut history, 1.into()..=3.into(), NOW).unwrap_err();
    assert!(error.message().ends_with("1 to 3 (the range block-1-3 waits for its summary)"));
    window.render(&mut history, &RenderRequest::default(), &OutlineEngine, NOW).unwrap();
    let error = window.compress_range(&mut history, 1.into()..=3.into(), NOW).unwrap_err();
    assert!(error.message().ends_with("1 to 3 (the block block-1-3 stands for them)"));
}

#[test]
fn what_was_shortened_and_left_out_under_a_block_comes_back_with_its_frames() {
    let hud = native();
    let mut frames: Vec<Frame> = (0..12).map(|n| long(n, Source::User, 6)).collect();
    let result = Facet::tool_result("result", Some("a"), None, "line after line\n".repeat(400));
    let call = Facet::tool_call("call", Some("a"), "read", "x".into());
    frames[3] = Frame::new(3, Source::Agent).with(FacetOp::add(call));
    frames[4] = Frame::new(4, Source::Environment).with(FacetOp::add(result));
    let mut history = captured(&hud, &frames);
    let budget = Budget::new(3_000);
    let mut window = ContextWindow::new(hud, budget, budget.compression());
    let request = RenderRequest::default();
    let before = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(before.shortened.len(), 1);
    window.compress_range(&mut history, 2.into()..=6.into(), NOW).unwrap();
    let after = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert!(after.shortened.is_empty() && after.epoch.is_some());
    let saved = window.to_json();
    window.undo(&history, "block-2-6").unwrap();
    let undone = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(undone.context.to_json(), before.context.to_json());
    assert_eq!(undone.shortened, before.shortened);
    // After a restart too.
    let mut loaded = ContextWindow::from_json(saved, native(), &mut history, NOW).unwrap();
    loaded.undo(&history, "block-2-6").unwrap();
    let undone = loaded.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(undone.context.to_json(), before.context.to_json());
}

#[test]
fn words_in_a_range_are_no_first_words_where_those_stand_before_it() {
    // Without a ledger each block says how things stand.
    let budget = Budget { ledger: 0, ..Budget::new(100_000) };
    let mut window = ContextWindow::new(native(), budget, budget.compression());
    let mut history = captured(&native(), &turns(12));
    let range = FrameSeq::new(8)..=FrameSeq::new(31);
    window.compress_range(&mut history, range, NOW).unwrap();
    let request = RenderRequest::default();
    window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let block = window.transform().blocks().next().unwrap();
    let text = block.snapshot.text();
    assert!(text.contains("User, newest first:"), "{text}");
    assert!(!text.contains("Asked first:") && !text.contains("Asked last:"), "{text}");
}
