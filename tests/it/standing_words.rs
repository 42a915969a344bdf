//! What stands outside of blocks in a window: the user's first message and last instruction, and
//! the ledger behind the last block.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{native, turns};

use std::{collections::BTreeSet, sync::Arc};

use afterimage::{
    compress::{CompressionBlock, CompressionJob, FnEngine, OutlineEngine},
    hud::RenderRequest,
    id::{FacetType, FrameSeq, Millis},
    tokens::TokenCounter,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};

const NOW: Millis = Millis::new(0);

fn text_of(history: &History, frame: FrameSeq) -> String {
    history.snapshot(frame).unwrap().text().to_owned()
}

/// The user speaks in every twelfth turn alone, and says a rule.
fn long_turns(number: u64) -> Vec<Frame> {
    let is_kept =
        |frame: &Frame| frame.source != Source::User || frame.sequence.get().is_multiple_of(48);
    let mut frames: Vec<Frame> = turns(number).into_iter().filter(is_kept).collect();
    for (at, frame) in frames.iter_mut().enumerate() {
        if frame.source == Source::User {
            let rule = format!("You must never touch the core of sector {at}.");
            let rule = Facet::new(format!("rule-{at}"), FacetType::EVENT, rule);
            // What stands beside the first words of a message may be a file.
            frame.ops.insert(0, FacetOp::add(rule));
        }
        frame.sequence = FrameSeq::new(at as u64);
    }
    frames
}

fn window(budget: Budget) -> ContextWindow {
    ContextWindow::new(native(), budget, budget.compression())
}

/// A context after each frame; `look` sees each of them.
fn followed(
    window: &mut ContextWindow,
    frames: &[Frame],
    mut look: impl FnMut(&mut ContextWindow, &History, &FittedContext),
) -> History {
    let (hud, mut history) = (native(), History::new());
    for frame in frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        let fitted =
            window.render(&mut history, &RenderRequest::default(), &OutlineEngine, NOW).unwrap();
        look(window, &history, &fitted);
    }
    history
}

#[test]
fn a_ledger_stands_in_the_context_and_its_lines_name_their_frames() {
    let mut seen = 0;
    followed(&mut window(Budget::new(1_600)), &long_turns(90), |window, history, fitted| {
        let Some(block) = window.transform().blocks().last() else {
            assert!(fitted.ledger.is_empty());
            return;
        };
        if fitted.ledger.is_empty() {
            return;
        }
        seen += 1;
        let texts: Vec<&str> = fitted.ledger.iter().map(|line| line.text.as_str()).collect();
        let text = texts.join("\n");
        let of = |message: &&afterimage::hud::Message| message.content().contains(&text);
        assert_eq!(fitted.context.messages().iter().filter(of).count(), 1, "{text}");
        let named: BTreeSet<FrameSeq> = fitted.ledger.iter().filter_map(|of| of.frame).collect();
        assert!(!named.is_empty() && named.iter().all(|frame| *frame <= block.to), "{named:?}");
        let expanded = window.expand(history, "ledger").unwrap();
        let frames: BTreeSet<FrameSeq> = expanded.iter().map(|passage| passage.from).collect();
        assert_eq!(frames, named);
        for passage in expanded {
            assert_eq!(passage.snapshot.text(), text_of(history, passage.from));
        }
    });
    assert!(seen > 20, "{seen}");
}

#[test]
fn the_first_message_and_the_last_instruction_stand_word_for_word_while_they_fit() {
    let mut with_blocks = 0;
    followed(&mut window(Budget::new(1_600)), &turns(90), |window, history, fitted| {
        with_blocks += usize::from(window.transform().blocks().next().is_some());
        // A turn is four frames, of which the first asks.
        let last = history.frames().len().saturating_sub(1) as u64;
        for frame in [0, last - last % 4].map(FrameSeq::new) {
            let message = fitted.context.message_of(frame).unwrap();
            let message = &fitted.context.messages()[message];
            assert!(message.content().contains(&text_of(history, frame)), "{frame}");
            assert!(!message.is_block());
        }
    });
    assert!(with_blocks > 50, "{with_blocks}");
}

#[test]
fn an_instruction_that_another_followed_goes_into_blocks_of_blocks_and_comes_back() {
    fn is_verbatim(block: &Arc<CompressionBlock>) -> bool {
        block.from == block.to && block.engine == "verbatim"
    }
    let mut came_back = 0;
    followed(&mut window(Budget::new(1_600)), &long_turns(160), |window, history, _| {
        let blocks = window.transform().blocks();
        let mut of_blocks = blocks.filter(|block| block.blocks().iter().any(is_verbatim));
        let Some(outer) = of_blocks.next().cloned() else { return };
        let inside = outer.blocks().iter().filter(|block| is_verbatim(block));
        let lapsed: Vec<FrameSeq> = inside.map(|block| block.from).collect();
        let expanded = outer.expand().unwrap();
        for frame in &lapsed {
            assert!(text_of(history, *frame).contains("Please look into sector"), "{frame}");
            let found = expanded.iter().find(|passage| passage.from == *frame).unwrap();
            assert_eq!(found.snapshot.text(), text_of(history, *frame));
        }
        let mut other = window.clone_by_saving(history);
        other.undo(history, &outer.id).unwrap();
        let stands = other.substitutions();
        for frame in lapsed {
            let covers = stands
                .iter()
                .any(|of| (of.from..=of.to).contains(&frame) && &*of.block != "ledger");
            assert!(!covers, "{frame} does not stand for itself");
            came_back += 1;
        }
    });
    assert!(came_back > 0, "{came_back}");
}

/// A turn in which the agent decides, and a hundred in which it does not.
fn decided(turn: u64) -> Vec<Frame> {
    let mut frames = long_turns(100);
    let of_agent = |frame: &&mut Frame| frame.source == Source::Agent;
    let frame = frames.iter_mut().filter(of_agent).nth(turn as usize).unwrap();
    let text = "The root cause is the tide table of 2019.";
    frame.ops.insert(0, FacetOp::add(Facet::new("decided", FacetType::EVENT, text)));
    frames
}

#[test]
fn a_decision_that_no_block_says_any_more_stands_in_the_ledger() {
    let decision = "The root cause is the tide table of 2019.";
    // An engine that drops what was decided, and one that tells it.
    for tells in [false, true] {
        let said = if tells { decision } else { "Sectors were looked into." };
        let summarise = |_: &CompressionJob, _: &dyn TokenCounter| Ok::<_, String>(said.to_owned());
        let engine = FnEngine::new("short", summarise).unchecked();
        let (hud, mut history) = (native(), History::new());
        let mut window = window(Budget::new(1_600));
        let mut with_blocks = 0;
        for frame in decided(3) {
            hud.capture(&mut history, frame, NOW).unwrap();
            let fitted =
                window.render(&mut history, &RenderRequest::default(), &engine, NOW).unwrap();
            let messages = fitted.context.messages().iter();
            let text: Vec<_> = messages.map(|message| message.content()).collect();
            let is_covered = window.transform().blocks().any(|block| {
                let originals = block.expand().unwrap();
                originals.iter().any(|passage| passage.snapshot.text().contains(decision))
            });
            let in_ledger = fitted.ledger.iter().any(|line| line.text.contains(decision));
            let in_blocks =
                window.transform().blocks().any(|of| of.snapshot.text().contains(decision));
            if is_covered {
                with_blocks += 1;
                assert!(text.join("\n").contains(decision));
                assert_eq!(in_ledger, !in_blocks);
            }
        }
        assert!(with_blocks > 50, "{with_blocks}");
    }
}

/// A window like another one, to try things on.
trait CloneBySaving {
    fn clone_by_saving(&self, history: &History) -> ContextWindow;
}

impl CloneBySaving for ContextWindow {
    fn clone_by_saving(&self, history: &History) -> ContextWindow {
        let (hud, mut other) = (native(), History::new());
        for frame in history.frames() {
            hud.capture(&mut other, Frame::clone(&frame), NOW).unwrap();
        }
        ContextWindow::from_json(self.to_json(), hud, &mut other, NOW).unwrap()
    }
}
