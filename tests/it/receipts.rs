//! A loss receipt says what an independent comparison of the originals with the context finds, and
//! everything that it names is found again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod finder;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, LazyLock},
};

use afterimage::{
    ErrorKind,
    compress::OutlineEngine,
    hud::{Hud, Message, NativeFormat, RenderRequest},
    id::{FacetType, FrameSeq, Millis},
    json,
    text::TextRange,
    tokens::{Bpe, Memo, TokenCounter},
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{
        Budget, ContextWindow, FittedContext, FramePage, LossReceipt, LostKind, OriginalsState,
        ReplacementKind,
    },
};
use afterimage_testkit::data;

use crate::support::{compressing::turns, sessions, survival::words};

const NOW: Millis = Millis::new(0);

static COUNTER: LazyLock<Arc<dyn TokenCounter>> =
    LazyLock::new(|| Arc::new(Memo::new(Bpe::o200k())));

fn hud() -> Hud {
    Hud::builder(COUNTER.clone()).format(Arc::new(NativeFormat)).build()
}

fn rendered(window: &mut ContextWindow, history: &mut History) -> FittedContext {
    window.render(history, &RenderRequest::default(), &OutlineEngine, NOW).unwrap()
}

/// What an independent reader finds in the originals.
struct Names {
    /// The frames that say each name.
    by_name: BTreeMap<String, Vec<FrameSeq>>,
    rules: Vec<(FrameSeq, String)>,
}

impl Names {
    fn new() -> Self {
        Self { by_name: BTreeMap::new(), rules: Vec::new() }
    }

    fn read(&mut self, history: &History, frame: FrameSeq, source: &Source, is_text_only: bool) {
        let snapshot = history.snapshot(frame).unwrap();
        for chunk in snapshot.chunks().filter(|chunk| chunk.chunk_type() != Some("formatting")) {
            for name in finder::names(chunk.content()) {
                let frames = self.by_name.entry(name).or_default();
                if frames.last() != Some(&frame) {
                    frames.push(frame);
                }
            }
        }
        // In a log that is text only, what comes later may be what a program answered.
        if *source == Source::User && !(is_text_only && frame.get() > 2) {
            let said = snapshot.chunks().filter(|chunk| chunk.chunk_type() == Some("event"));
            let said = said.map(|chunk| chunk.content().to_owned());
            let said: Vec<String> = said.filter(|text| !words::is_of_program(text)).collect();
            self.rules.extend(words::rules(&said).into_iter().map(|rule| (frame, rule)));
        }
    }

    /// The names that stand in none of these texts, each with the first frame that says it.
    fn lost(&self, now: &str, before: Option<(&str, FrameSeq)>) -> BTreeSet<(String, FrameSeq)> {
        let wanted = |name: &String, frame: &FrameSeq| {
            before.is_none_or(|(text, last)| *frame > last || finder::stands(name, text))
        };
        let lost = self.by_name.iter().filter_map(|(name, frames)| {
            let frame = frames.iter().find(|frame| wanted(name, frame))?;
            (!finder::stands(name, now)).then(|| (name.clone(), *frame))
        });
        lost.collect()
    }
}

fn text_of(fitted: &FittedContext) -> String {
    let texts = fitted.context.messages().iter().map(|message| finder::flat(&message.content()));
    texts.collect::<Vec<_>>().join("\n")
}

fn named(receipt: &LossReceipt) -> BTreeSet<(String, FrameSeq)> {
    let names = receipt.lost.iter().filter(|lost| lost.kind != LostKind::Rule);
    names.map(|lost| (lost.text.clone(), lost.frame)).collect()
}

/// Each of some lost texts is found, and a page of 1,000 tokens holds it.
fn reach(window: &ContextWindow, history: &History, receipt: &LossReceipt, most: usize) -> usize {
    let originals = window.originals(history);
    let every = receipt.lost.len().div_ceil(most).max(1);
    let mut reached = 0;
    for lost in receipt.lost.iter().step_by(every) {
        let found = originals.search(&lost.text).unwrap();
        let there = found.iter().find(|found| found.frame == lost.frame);
        let there = there.unwrap_or_else(|| panic!("{lost:?} is not found in {found:?}"));
        assert_eq!(there.id, lost.id);
        let page = originals.page(there.frame, there.range, FramePage::LIMIT).unwrap();
        assert!(page.text.contains(&lost.text), "{lost:?}: {page:?}");
        assert!(COUNTER.count(&page.text) <= 1_000);
        assert_eq!(COUNTER.count(&page.text) as u64, page.tokens);
        let expanded = window.expand(history, &lost.id).unwrap();
        let frame = expanded.iter().find(|passage| passage.from == lost.frame).unwrap();
        assert_eq!(page.range.of(frame.snapshot.text()), page.text);
        reached += 1;
    }
    reached
}

#[test]
fn a_receipt_equals_an_independent_comparison_over_recordings() {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return };
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let (mut lost_names, mut rules_seen, mut reached) = (0, 0, 0);
    let mut all = sessions::sessions(first.parent().unwrap(), 20, 1);
    // Some of each group: the long ones among them are cut.
    let mut of_group: HashMap<usize, usize> = HashMap::new();
    all.retain(|session| {
        let number = of_group.entry(session.group).or_default();
        *number += 1;
        *number % SAMPLED[session.group] == 1 % SAMPLED[session.group]
    });
    for (number, session) in all.iter().enumerate() {
        let tokens = [4_000, 8_000][number % 2];
        let is_text_only = session.group == 3;
        let budget = Budget::new(tokens);
        let hud = hud();
        let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
        let (mut history, mut names) = (History::new(), Names::new());
        let mut before: Option<FittedContext> = None;
        let (mut since, mut epochs) = (0, 0);
        for frame in session.frames.iter().take(LONGEST) {
            let (sequence, source) = (frame.sequence, frame.source.clone());
            hud.capture(&mut history, frame.clone(), NOW).unwrap();
            names.read(&history, sequence, &source, is_text_only);
            since += 1;
            if since % 4 != 0 {
                continue;
            }
            let Ok(fitted) =
                window.render(&mut history, &RenderRequest::default(), &OutlineEngine, NOW)
            else {
                // What must stay does not fit.
                before = None;
                continue;
            };
            let has_branch = window.transform().blocks().any(|of| of.id.starts_with("branch-"));
            if (fitted.epoch.is_some() || since % 60 == 0) && !has_branch {
                epochs += 1;
                if epochs % EPOCHS[session.group] == 1 % EPOCHS[session.group] {
                    let now = text_of(&fitted);
                    let receipt = window.receipt(&history, &fitted).unwrap();
                    let (found, expected) = (named(&receipt), names.lost(&now, None));
                    let more: Vec<_> = found.difference(&expected).take(9).collect();
                    let less: Vec<_> = expected.difference(&found).take(9).collect();
                    assert!(
                        more.is_empty() && less.is_empty(),
                        "{} at {sequence}: more {more:?}, less {less:?}",
                        session.name
                    );
                    lost_names += found.len();
                    *seen.entry(session.group).or_default() += 1;
                    rules_seen += check_rules(&receipt, &names, &now, &history);
                    check_kinds(&receipt);
                    reached += reach(&window, &history, &receipt, 6);
                    if let Some(before) = &before {
                        let receipt =
                            window.originals(&history).receipt_since(before, &fitted).unwrap();
                        let newest = shown_last(before);
                        let expected = names.lost(&now, Some((&text_of(before), newest)));
                        assert_eq!(named(&receipt), expected, "{} at {sequence}", session.name);
                        assert_eq!(receipt.epoch, fitted.epoch);
                        let has_epoch = fitted.epoch.is_some();
                        assert!(!has_epoch || !receipt.replaced.is_empty());
                    }
                }
            }
            before = Some(fitted);
        }
    }
    println!(
        "{seen:?} receipts by group, {lost_names} names, {rules_seen} rules seen, {reached} reached"
    );
    assert!(seen.len() == 4 && seen.values().all(|seen| *seen > 3), "{seen:?}");
    let found = format!("{lost_names} names, {rules_seen} rules seen, {reached} reached");
    assert!(lost_names > 10_000 && rules_seen > 5 && reached > 150, "{found}");
}

/// Every so many sessions of each group are looked at, and so many frames of each session.
const SAMPLED: [usize; 4] = [3, 2, 1, 2];
/// A receipt of every so many epochs.
const EPOCHS: [usize; 4] = [1, 4, 1, 2];
const LONGEST: usize = 300;

/// The last frame that a context shows, or that something stands for.
fn shown_last(fitted: &FittedContext) -> FrameSeq {
    let messages = fitted.context.messages().iter().filter_map(Message::frames);
    let dropped = fitted.dropped.iter().map(|dropped| dropped.to);
    messages.map(|(_, last)| last).chain(dropped).max().unwrap()
}

/// The rules that hold the words of the other finder are those that it finds; each stands in a
/// message of the user, and not in the context.
fn check_rules(receipt: &LossReceipt, names: &Names, now: &str, history: &History) -> usize {
    let rules: Vec<_> = receipt.of_kind(LostKind::Rule).collect();
    for rule in &rules {
        assert!(!finder::stands(&rule.text, now), "{rule:?}");
        assert!(history.snapshot(rule.frame).unwrap().text().contains(&rule.text), "{rule:?}");
        assert_eq!(history.get(rule.frame).unwrap().source, Source::User);
    }
    for (frame, rule) in &names.rules {
        let is_named = rules.iter().any(|lost| finder::flat(&lost.text) == finder::flat(rule));
        assert_eq!(is_named, !finder::stands(rule, now), "frame {frame}: {rule}");
    }
    names.rules.len()
}

fn check_kinds(receipt: &LossReceipt) {
    let kinds: Vec<LostKind> = receipt.lost.iter().map(|lost| lost.kind).collect();
    assert!(kinds.is_sorted());
    for lost in receipt.lost.iter().filter(|lost| lost.kind != LostKind::Rule) {
        let has_letter = lost.text.chars().any(|c| c.is_alphabetic() && !matches!(c, 'T' | 'Z'));
        match lost.kind {
            LostKind::Path => assert!(lost.text.contains('/') && !lost.text.contains("://")),
            LostKind::Number => assert!(!has_letter, "{lost:?}"),
            _ => assert!(!lost.text.contains('/') || lost.text.contains("://"), "{lost:?}"),
        }
    }
}

/// Turns whose tasks name ids.
fn tasks(number: u64) -> Vec<Frame> {
    let mut frames = turns(number);
    for frame in frames.iter_mut().filter(|frame| frame.source == Source::User) {
        let at = frame.sequence;
        let text = format!("Please look into sector S-{at}. Never touch probe_{at} there.");
        let task = Facet::new(format!("ask-id-{at}"), FacetType::EVENT, text);
        frame.ops.push(FacetOp::add(task));
    }
    frames
}

fn long_session() -> History {
    let (hud, mut history) = (hud(), History::new());
    for frame in tasks(60) {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    history
}

fn fitted_window(history: &mut History) -> (ContextWindow, FittedContext) {
    let budget = Budget::new(1_200);
    let mut window = ContextWindow::new(hud(), budget, budget.compression());
    let fitted = rendered(&mut window, history);
    (window, fitted)
}

#[test]
fn what_was_forgotten_is_said_and_cannot_be_reached() {
    let mut history = long_session();
    let (mut window, fitted) = fitted_window(&mut history);
    let receipt = window.receipt(&history, &fitted).unwrap();
    let block = receipt.replaced.iter().find(|of| of.kind == ReplacementKind::Summarised).unwrap();
    let lost: Vec<_> = receipt.lost.iter().filter(|lost| lost.id == block.id).cloned().collect();
    assert!(lost.len() > 10 && lost.iter().any(|lost| lost.kind == LostKind::Rule));
    let (id, frame) = (block.id.clone(), lost[0].frame);
    window.forget(&mut history, &id).unwrap();
    let fitted = rendered(&mut window, &mut history);
    let after = window.receipt(&history, &fitted).unwrap();
    let entry = after.replaced.iter().find(|of| of.id == id).unwrap();
    assert_eq!(entry.originals, OriginalsState::Forgotten);
    assert!(after.lost.iter().all(|lost| lost.id != id));
    assert!(
        after.to_string().contains(&format!("{id}: ")) && after.to_string().contains("forgotten")
    );
    let originals = window.originals(&history);
    for lost in &lost {
        let found = originals.search(&lost.text).unwrap();
        assert!(found.iter().all(|found| found.id != id), "{found:?}");
    }
    let error = originals.page(frame, TextRange::at(0, 1), 1_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dropped);
}

#[test]
fn of_a_block_of_blocks_what_was_not_forgotten_is_reached_by_the_blocks_inside() {
    let (hud, mut history) = (hud(), History::new());
    let budget = Budget::new(1_200);
    let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    let mut forgotten: Option<Arc<str>> = None;
    let mut checked = 0;
    for frame in tasks(200) {
        hud.capture(&mut history, frame, NOW).unwrap();
        let fitted = rendered(&mut window, &mut history);
        let blocks: Vec<_> = window.transform().blocks().cloned().collect();
        let Some(id) = &forgotten else {
            if let [block, _, ..] = blocks.as_slice() {
                window.forget(&mut history, &block.id).unwrap();
                forgotten = Some(block.id.clone());
            }
            continue;
        };
        let holds = |id: &str| {
            blocks.iter().find(|block| block.blocks().iter().any(|inner| *inner.id == *id))
        };
        let Some(outer) = holds(id) else { continue };
        let receipt = window.receipt(&history, &fitted).unwrap();
        let entry = receipt.replaced.iter().find(|of| of.id == outer.id).unwrap();
        assert_eq!(entry.originals, OriginalsState::Forgotten);
        let inside: BTreeSet<&str> = outer.blocks().iter().map(|inner| &*inner.id).collect();
        let lost = receipt.lost.iter().filter(|lost| inside.contains(&*lost.id)).count();
        assert!(lost > 0 && receipt.lost.iter().all(|lost| lost.id != *id), "{receipt}");
        assert!(reach(&window, &history, &receipt, 1_000) > 0);
        checked += 1;
        if checked == 5 {
            break;
        }
    }
    assert_eq!(checked, 5);
}

#[test]
fn what_was_spilled_is_reached_through_the_archive() {
    let mut history = long_session();
    let (mut window, fitted) = fitted_window(&mut history);
    let before = window.receipt(&history, &fitted).unwrap();
    let reader = history.archive().unwrap().reader();
    let blocks: Vec<_> = window.transform().blocks().map(|block| block.id.clone()).collect();
    for id in &blocks {
        window.spill(&mut history, id, &reader).unwrap();
    }
    let without = window.receipt(&history, &fitted).unwrap();
    let of_blocks = |receipt: &LossReceipt| {
        receipt.replaced.iter().filter(|of| blocks.contains(&of.id)).cloned().collect::<Vec<_>>()
    };
    assert!(of_blocks(&without).iter().all(|of| of.originals == OriginalsState::Archived));
    assert!(without.lost.iter().all(|lost| !blocks.contains(&lost.id)));
    let originals = window.originals(&history);
    let lost = before.lost.iter().find(|lost| blocks.contains(&lost.id)).unwrap();
    assert!(originals.search(&lost.text).unwrap().iter().all(|of| !blocks.contains(&of.id)));
    let error = originals.page(lost.frame, TextRange::at(0, 1), 1_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stored);
    let originals = originals.archive(&reader);
    let with = originals.receipt(&fitted).unwrap();
    assert_eq!(named(&with), named(&before));
    let found = originals.search(&lost.text).unwrap();
    let page = originals.page(lost.frame, found[0].range, 1_000).unwrap();
    assert!(page.text.contains(&lost.text));
}

#[test]
fn what_undo_brings_back_is_no_loss_any_more() {
    let mut history = long_session();
    let budget = Budget::once(1_000_000);
    let mut window = ContextWindow::new(hud(), budget, budget.compression());
    let whole = rendered(&mut window, &mut history);
    let receipt = window.receipt(&history, &whole).unwrap();
    assert!(
        receipt.replaced.is_empty() && receipt.lost.is_empty() && receipt.to_string().is_empty()
    );
    let range = FrameSeq::new(4)..=FrameSeq::new(120);
    window.compress_range(&mut history, range, NOW).unwrap();
    let fitted = rendered(&mut window, &mut history);
    let receipt = window.originals(&history).receipt_since(&whole, &fitted).unwrap();
    assert_eq!(receipt.replaced.len(), 1);
    assert_eq!(receipt.epoch.as_ref().unwrap().blocks, [receipt.replaced[0].id.clone()]);
    assert!(receipt.lost.len() > 4, "{receipt}");
    // All of it went with this epoch.
    assert_eq!(receipt.lost, window.receipt(&history, &fitted).unwrap().lost);
    assert_eq!(reach(&window, &history, &receipt, 1_000), receipt.lost.len());
    window.undo(&history, &receipt.replaced[0].id).unwrap();
    let back = rendered(&mut window, &mut history);
    let after = window.receipt(&history, &back).unwrap();
    assert!(after.replaced.is_empty() && after.lost.is_empty(), "{after}");
    let since = window.originals(&history).receipt_since(&fitted, &back).unwrap();
    assert!(since.replaced.is_empty() && since.lost.is_empty(), "{since}");
}

#[test]
fn a_receipt_is_json_and_text() {
    let mut history = long_session();
    let (window, fitted) = fitted_window(&mut history);
    let receipt = window.receipt(&history, &fitted).unwrap();
    let json = json::read(serde_json::to_string(&receipt).unwrap().as_bytes()).unwrap();
    assert_eq!(json, receipt.to_json());
    let lists = ["replaced", "lost"].map(|name| json.get(name).unwrap().as_array().unwrap().len());
    assert_eq!(lists, [receipt.replaced.len(), receipt.lost.len()]);
    let text = receipt.to_string();
    for lost in &receipt.lost {
        assert!(text.contains(&lost.text), "{lost:?}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
