//! Contexts that share messages are what a rendering from nothing gives.

use std::{ops::RangeInclusive, sync::Arc};

use proptest::prelude::*;

use super::{Hud, Merge, RenderRequest, RenderedContext, assemble::tests::looked};
use crate::{
    id::{FacetType, FrameSeq, Millis, Role},
    snapshot::{ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, Substitution, SubstitutionKind},
    tokens::{Chars4, TokenCounter},
    veil::{Facet, FacetOp, Frame, History, Source},
};

const NOW: Millis = Millis::new(0);

/// Pushes a frame of one of four kinds: of the user, of the agent, of the world, or an empty one.
fn push(hud: &Hud, history: &mut History, kind: u64) {
    let sequence = history.next_sequence().unwrap();
    let source = [Source::User, Source::Agent, Source::Environment][kind as usize % 3].clone();
    let frame = Frame::new(sequence, source);
    let said =
        Facet::new(format!("said-{sequence}"), FacetType::EVENT, format!("Said {sequence}."));
    let frame = if kind % 4 == 3 { frame } else { frame.with(FacetOp::add(said)) };
    hud.capture(history, frame, NOW).unwrap();
}

fn substitution(from: u64, to: u64, text: &str) -> Substitution {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    builder.add_content(text, ChunkOptions::new().role(Role::User));
    Substitution {
        block: format!("block-{from}").into(),
        stands: if text.is_empty() { SubstitutionKind::Dropped } else { SubstitutionKind::Block },
        from: from.into(),
        to: to.into(),
        snapshot: Arc::new(builder.build(NOW)),
    }
}

/// A message as the naive rendering puts it together.
#[derive(Debug, PartialEq)]
struct Plain {
    role: Role,
    frames: (FrameSeq, FrameSeq),
    is_block: bool,
    text: String,
    shown: Vec<FrameSeq>,
}

/// Frame by frame, with nothing shared.
fn naive(hud: &Hud, history: &History, request: &RenderRequest) -> Vec<Plain> {
    let frames = history.frames();
    let mut blocks = request.substitutions.iter().peekable();
    let mut messages: Vec<Plain> = Vec::new();
    let block = |messages: &mut Vec<Plain>, block: &Substitution| {
        let (text, frames) = (block.snapshot.text().to_owned(), (block.from, block.to));
        if !text.is_empty() {
            messages.push(Plain { role: Role::User, frames, is_block: true, text, shown: vec![] });
        }
    };
    for index in 0..frames.len() {
        let sequence = frames.sequence(index).unwrap();
        if request.frames.as_ref().is_some_and(|range| !range.contains(&sequence)) {
            continue;
        }
        while let Some(next) = blocks.next_if(|next| next.to < sequence) {
            block(&mut messages, next);
        }
        let snapshot: Arc<FrameSnapshot> = frames.snapshot(index).unwrap();
        let is_replaced = blocks.peek().is_some_and(|next| next.from <= sequence);
        if is_replaced || snapshot.is_empty() {
            continue;
        }
        let role = hud.role_of(&frames.source(index).unwrap());
        let merges = request.merge == Merge::AdjacentRoles;
        match messages.last_mut() {
            Some(last) if merges && last.role == role && !last.is_block => {
                last.frames.1 = sequence;
                last.text.push_str(hud.frame_separator());
                last.text.push_str(snapshot.text());
                last.shown.push(sequence);
            }
            _ => messages.push(Plain {
                role,
                frames: (sequence, sequence),
                is_block: false,
                text: snapshot.text().to_owned(),
                shown: vec![sequence],
            }),
        }
    }
    blocks.for_each(|next| block(&mut messages, next));
    messages
}

fn check(hud: &Hud, history: &History, request: &RenderRequest) -> RenderedContext {
    let context = hud.render(history, request, NOW).unwrap();
    let expected = naive(hud, history, request);
    assert_eq!(context.messages().len(), expected.len());
    let mut exact = 0;
    for (index, (message, plain)) in context.messages().iter().zip(&expected).enumerate() {
        assert_eq!(
            (message.role(), message.frames(), message.is_block(), &*message.content()),
            (plain.role, Some(plain.frames), plain.is_block, &*plain.text)
        );
        assert_eq!(message.tokens(), Chars4.count(&plain.text) as u64);
        exact += message.tokens();
        assert_eq!(context.messages()[index].content(), plain.text);
        for frame in &plain.shown {
            assert_eq!(context.message_of(*frame), Some(index));
        }
        let spans = context.spans(message);
        assert_eq!(spans.iter().map(|span| span.range.len()).sum::<usize>(), message.len());
    }
    assert_eq!(context.tokens().exact, exact);
    let chunks = context.messages().iter().flat_map(|message| context.runs(message));
    let chunks: u64 = chunks.map(|run| Chars4.count(run.text) as u64).sum();
    assert_eq!(context.tokens().chunks, chunks);
    let shown = expected.iter().map(|plain| plain.shown.len()).sum::<usize>();
    assert_eq!(context.frame_to_message().count(), shown);
    for sequence in (0..history.frames().len() as u64).map(FrameSeq::new) {
        let is_shown = expected.iter().any(|plain| plain.shown.contains(&sequence));
        assert_eq!(context.message_of(sequence).is_some(), is_shown);
    }
    assert!(context.messages().iter().rev().eq_by_address(&context));
    context
}

/// Backwards is forwards, turned round.
trait EqByAddress {
    fn eq_by_address(self, context: &RenderedContext) -> bool;
}

impl<'m, I: Iterator<Item = &'m super::Message>> EqByAddress for I {
    fn eq_by_address(self, context: &RenderedContext) -> bool {
        let mut forwards: Vec<_> = context.messages().iter().collect();
        forwards.reverse();
        self.zip(&forwards).all(|(one, other)| std::ptr::eq(one, *other))
    }
}

/// What is done to a history next.
#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u64>),
    /// A rendering of the frames from a share of the history to another, in thousandths, with blocks
    /// there.
    Render {
        merges: bool,
        range: (u64, u64),
        blocks: Vec<(u64, u64, bool)>,
        keeps: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Long runs of one kind, so that messages go over the borders of batches.
    let kinds = prop::collection::vec((0..12_u64, 1..80_usize), 1..6);
    let push = kinds.prop_map(|runs| {
        Step::Push(
            runs.into_iter()
                .flat_map(|(kind, count)| {
                    (0..count).map(move |at| if kind < 4 { kind } else { kind + at as u64 })
                })
                .collect(),
        )
    });
    let share = 0..1_000_u64;
    let range = prop_oneof![4 => Just((0, 1_000)), 1 => (share.clone(), share.clone())];
    let blocks = prop::collection::vec((share.clone(), 0..300_u64, any::<bool>()), 0..4);
    let blocks = prop_oneof![2 => Just(Vec::new()), 1 => blocks];
    let render = (any::<bool>(), range, blocks, prop::bool::weighted(0.8));
    let render = render.prop_map(|(merges, range, blocks, keeps)| Step::Render {
        merges,
        range,
        blocks,
        keeps,
    });
    prop::collection::vec(prop_oneof![push, render], 2..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn one_context_whatever_was_rendered_before(steps in steps()) {
        let hud = Hud::new(Arc::new(Chars4));
        let (mut history, mut held) = (History::new(), Vec::new());
        for step in steps {
            match step {
                Step::Push(kinds) => {
                    kinds.into_iter().for_each(|kind| push(&hud, &mut history, kind));
                }
                Step::Render { merges, range, blocks, keeps } => {
                    let len = history.frames().len() as u64;
                    let at = |share: u64| share * len / 1_000;
                    let frames: Option<RangeInclusive<FrameSeq>> = (range != (0, 1_000))
                        .then(|| at(range.0.min(range.1)).into()..=at(range.0.max(range.1)).into());
                    let mut free = frames.as_ref().map_or(0, |range| range.start().get());
                    let end = frames.as_ref().map_or(len, |range| range.end().get() + 1).min(len);
                    let mut substitutions = Vec::new();
                    let mut blocks = blocks;
                    blocks.sort_unstable();
                    for (from, length, is_empty) in blocks {
                        let (from, to) = (at(from).max(free), at(from).max(free) + at(length));
                        if to < end {
                            let text = if is_empty { "" } else { "A summary." };
                            substitutions.push(substitution(from, to, text));
                            free = to + 1;
                        }
                    }
                    let merge = if merges { Merge::AdjacentRoles } else { Merge::PerFrame };
                    let request = RenderRequest { frames, merge, substitutions, ..RenderRequest::default() };
                    let context = check(&hud, &history, &request);
                    if keeps {
                        held.push(context);
                    } else {
                        held.clear();
                    }
                }
            }
        }
    }
}

/// How many frames are looked at for the next context of a history of so many.
fn looked_again(frames: u64, merge: Merge) -> usize {
    let hud = Hud::new(Arc::new(Chars4));
    let mut history = History::new();
    (0..frames).for_each(|at| push(&hud, &mut history, at % 3));
    let request = RenderRequest { merge, ..RenderRequest::default() };
    let before = hud.render(&history, &request, NOW).unwrap();
    push(&hud, &mut history, 0);
    let start = looked();
    let after = hud.render(&history, &request, NOW).unwrap();
    assert_eq!(after.frame_to_message().count(), before.frame_to_message().count() + 1);
    looked() - start
}

#[test]
fn the_next_context_looks_at_new_frames_alone_however_long_the_history_is() {
    for merge in [Merge::PerFrame, Merge::AdjacentRoles] {
        let looked: Vec<usize> =
            [1_000, 10_000, 20_000].map(|frames| looked_again(frames, merge)).into();
        assert!(looked.iter().all(|looked| *looked < 260), "{merge:?}: {looked:?}");
    }
}

#[test]
fn contexts_that_are_gone_leave_nothing_and_others_are_not_mixed_in() {
    let (one, other) = (Hud::new(Arc::new(Chars4)), Hud::builder(Arc::new(Chars4)));
    let other = other.roles(|_| Role::System).viewer("judge").build();
    let mut history = History::new();
    (0..400).for_each(|at| push(&one, &mut history, at % 3));
    let request = RenderRequest::default();
    let first = check(&one, &history, &request);
    // Roles are those of the chunks, whoever renders them; but each renders anew.
    let start = looked();
    other.render(&history, &request, NOW).unwrap();
    assert!(looked() - start >= 400);
    drop(first);
    let start = looked();
    let first = check(&one, &history, &request);
    assert!(looked() - start >= 400);
    // What is forgotten is in no context that is rendered later.
    history.forget(10.into()..=20.into()).unwrap();
    assert!(one.render(&history, &request, NOW).is_err());
    let substitutions = vec![substitution(8, 30, "Some frames.")];
    let request = RenderRequest { substitutions, ..RenderRequest::default() };
    let context = one.render(&history, &request, NOW).unwrap();
    assert_eq!(context.messages()[8].content(), "Some frames.");
    assert_eq!(first.messages()[15].content(), "Said 15.");
}
