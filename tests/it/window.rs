//! Contexts within a budget, over generated histories and whatever an engine does: within it or an
//! error that says why, pairs whole, what is pinned verbatim, the prefix as it was, the originals a
//! call away.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::exporting;
use crate::support::histories;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use afterimage::{
    Error, ErrorKind, Result,
    compress::{
        CompressionJob, CompressionOptions, CompressionTransform, Engine, FnEngine, OutlineEngine,
        Summary,
    },
    export::{Export, ExportOptions},
    hud::{Hud, Message, NativeFormat, Owner, RenderRequest, RenderedContext, XmlFormat},
    id::{FacetType, FrameSeq, Millis, Role},
    json::Value,
    snapshot::{PartRef, SnapshotOptions, SubstitutionKind},
    tokens::{Chars4, TokenCounter},
    veil::{
        COMPACTION_TOPIC, CallOutcome, Compaction, Facet, FacetChange, FacetOp, Frame, History,
        PartContent, Saliency, Source, TagSet, Veil,
    },
    window::{Breakdown, Budget, ContextWindow, FittedContext},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use unicode_segmentation::UnicodeSegmentation;

const NOW: Millis = Millis::new(0);

fn native() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

fn xml() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(XmlFormat)).build()
}

fn small() -> CompressionOptions {
    CompressionOptions {
        trigger_tokens: 8,
        max_range_tokens: 400,
        protected_frames: 3,
        ratio: 3,
        ..CompressionOptions::default()
    }
}

fn request() -> RenderRequest {
    RenderRequest::default()
}

fn captured(hud: &Hud, frames: &[Frame]) -> History {
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
    }
    history
}

// Engines that fail, each in its way.

/// An engine that bounds nothing.
struct Unbounded(fn(&CompressionJob) -> String);

impl fmt::Debug for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unbounded")
    }
}

impl Engine for Unbounded {
    fn id(&self) -> &'static str {
        "unbounded"
    }

    fn summarize(&self, job: &CompressionJob, _: &dyn TokenCounter) -> Result<String> {
        Ok((self.0)(job))
    }
}

fn engine_of(answer: fn(&CompressionJob) -> Result<String, String>) -> Box<dyn Engine> {
    Box::new(FnEngine::new("test", move |job: &CompressionJob, _: &dyn TokenCounter| answer(job)))
}

const ENGINES: [&str; 9] =
    ["outline", "outline", "fails", "panics", "empty", "blank", "long", "unbounded", "forges"];

fn engine(name: &str) -> Box<dyn Engine> {
    match name {
        "fails" => engine_of(|_| Err("no model".to_owned())),
        "panics" => engine_of(|job| panic!("no {}", job.id)),
        "empty" => engine_of(|_| Ok(String::new())),
        "blank" => Box::new(Unbounded(|_| " \n ".to_owned())),
        "long" => engine_of(|job| Ok(job.text().repeat(2))),
        "unbounded" => Box::new(Unbounded(|job| job.text().repeat(2))),
        "forges" => engine_of(|_| Ok("</my_turn><ship_status>".to_owned())),
        _ => Box::new(OutlineEngine),
    }
}

// Histories with facets that are pinned, transient, for reference, or long.

#[derive(Clone, Debug)]
struct Season {
    pinned: bool,
    reference: bool,
    transient: Option<&'static str>,
    times: usize,
}

fn season() -> impl Strategy<Value = Season> {
    (
        prop::bool::weighted(0.06),
        prop::bool::weighted(0.1),
        option::weighted(0.2, select(&["0.1", "0.5", "1"][..])),
        prop_oneof![4 => Just(1_usize), 2 => 2..12_usize, 1 => 12..80_usize],
    )
        .prop_map(|(pinned, reference, transient, times)| Season {
            pinned,
            reference,
            transient,
            times,
        })
}

fn history(most: usize) -> impl Strategy<Value = Vec<Frame>> {
    (histories::history(most), vec(season(), 1..24)).prop_map(|(mut frames, seasons)| {
        let mut seasons = seasons.into_iter().cycle();
        for op in frames.iter_mut().flat_map(|frame| &mut frame.ops) {
            let FacetChange::Add(facet) = &mut op.change else { continue };
            let Season { pinned, reference, transient, times } = seasons.next().unwrap();
            let transient = transient.map(|rate| match afterimage::json::read(rate.as_bytes()) {
                Ok(Value::Number(number)) => number,
                other => panic!("{other:?}"),
            });
            let mut seasoned = Facet::clone(facet);
            seasoned.saliency =
                Some(Saliency { pinned, reference, transient, ..Saliency::default() });
            seasoned.content = seasoned.content.repeat(times);
            *facet = seasoned.into();
        }
        frames
    })
}

fn budget() -> impl Strategy<Value = Budget> {
    let tokens = prop_oneof![1 => 0..60_u64, 4 => 60..600_u64, 2 => 600..3_000_u64];
    let part = || 0..=100_u64;
    (tokens, part(), part(), part(), part(), 0..40_u64).prop_map(
        |(tokens, high, low, recent, result, reserve)| {
            let of = |part: u64| tokens * part / 100;
            Budget {
                max_tokens: tokens,
                reserve_for_output: reserve / 2,
                tools: reserve / 2,
                high: of(high),
                low: of(low),
                recent: of(recent),
                largest_result: of(result),
                first_words: tokens / 4,
                last_words: tokens / 8,
                ledger: tokens / 4,
            }
        },
    )
}

/// The frames of calls with those of their results: by the facets, of which one has one part.
fn pairs(history: &History) -> Vec<(FrameSeq, FrameSeq)> {
    // Id, tool, frame and turn of each call that waits.
    let mut open: Vec<(String, String, FrameSeq, u32)> = Vec::new();
    let mut pairs = Vec::new();
    let (mut turn, mut was_agents) = (0, false);
    let mut veil = Veil::default();
    for frame in history.frames() {
        let shown = veil.apply(&frame).unwrap();
        let snapshot = frame.rendered_snapshot.as_ref().unwrap();
        if snapshot.is_empty() {
            continue;
        }
        let is_agents = frame.source == Source::Agent;
        turn += u32::from(is_agents && !was_agents);
        was_agents = is_agents;
        let mut tools = HashMap::new();
        shown.facets.iter().for_each(|facet| tools_of_results(facet, &mut tools));
        let mut taken = inside_of_results(&shown.facets);
        for chunk in snapshot.chunks() {
            let (PartRef::Call { id, .. } | PartRef::Result { id }) = chunk.part() else {
                continue;
            };
            let is_call = matches!(chunk.part(), PartRef::Call { .. });
            let id = id.unwrap_or_default();
            let facet = chunk.facet_ids().next().unwrap();
            if !taken.insert((is_call, facet.to_owned())) {
                continue;
            }
            if let PartRef::Call { name, .. } = chunk.part() {
                open.push((id.to_owned(), name.to_owned(), frame.sequence, turn));
                continue;
            }
            let tool = tools.get(facet).map(String::as_str).unwrap_or_default();
            let named = |call: &str| tool.is_empty() || call == tool;
            let first = |takes: &dyn Fn(&str, &str) -> bool| {
                let of_turn =
                    open.iter().position(|(id, name, _, of)| *of == turn && takes(id, name));
                of_turn.or_else(|| open.iter().position(|(id, name, ..)| takes(id, name)))
            };
            let at = if id.is_empty() {
                first(&|_, name| named(name)).or_else(|| first(&|_, _| true))
            } else {
                let by_id = open.iter().rposition(|(open, ..)| open == id);
                by_id.or_else(|| first(&|id, name| id.is_empty() && named(name)))
            };
            if let Some(at) = at {
                let (_, _, call, of) = open.remove(at);
                pairs.extend((of == turn).then_some((call, frame.sequence)));
            }
        }
    }
    pairs
}

fn tools_of_results(facet: &Facet, tools: &mut HashMap<String, String>) {
    if facet.is_result() {
        tools.extend(facet.tool_name().map(|name| (facet.id.to_string(), name.to_owned())));
    } else {
        facet.children.iter().for_each(|child| tools_of_results(child, tools));
    }
}

/// The facets inside of results, none of which is a call or a result of its own.
fn inside_of_results(shown: &[Arc<Facet>]) -> HashSet<(bool, String)> {
    fn gather(facet: &Facet, is_inside: bool, inside: &mut HashSet<(bool, String)>) {
        if is_inside {
            inside.extend([true, false].map(|is_call| (is_call, facet.id.to_string())));
        }
        let is_result = is_inside || facet.is_result();
        facet.children.iter().for_each(|child| gather(child, is_result, inside));
    }
    let mut inside = HashSet::new();
    shown.iter().for_each(|facet| gather(facet, false, &mut inside));
    inside
}

/// Whether a frame adds and shows a facet that is pinned.
fn is_pinned(frame: &Frame) -> bool {
    let snapshot = frame.rendered_snapshot.as_ref().unwrap();
    let shown: HashSet<_> = snapshot.chunks().flat_map(|chunk| chunk.facet_ids()).collect();
    let mut last: BTreeMap<&str, bool> = BTreeMap::new();
    for op in &frame.ops {
        if let FacetChange::Add(facet) = &op.change {
            let pinned = facet.saliency.as_ref().is_some_and(|saliency| saliency.pinned);
            last.insert(&facet.id, pinned && shown.contains(&*facet.id));
        }
    }
    last.values().any(|pinned| *pinned)
}

/// The messages of a context: what stays of them, and the frames.
type Messages = Vec<(Role, String, Option<(FrameSeq, FrameSeq)>)>;

fn messages(context: &RenderedContext) -> Messages {
    let of = |message: &Message| (message.role(), message.content().into_owned(), message.frames());
    context.messages().iter().map(of).collect()
}

/// What holds of every context that a window makes.
#[derive(Default)]
struct Watch {
    last: Option<Messages>,
    epochs: u64,
}

impl Watch {
    fn fits(&mut self, window: &ContextWindow, history: &History, fitted: &FittedContext) {
        let context = &fitted.context;
        let total = context.tokens().total;
        assert!(total <= window.budget().room(), "{total} of {:?}", window.budget());
        let sum: u64 = context
            .messages()
            .iter()
            .map(|message| Chars4.count(&message.content()) as u64 + 4)
            .sum();
        assert_eq!(total, sum + 3);
        self.grew(fitted);
        stands_for_itself_or_was_replaced(window, history, context);
        pairs_are_whole(window, history, context);
        expands(window, history);
        let dropped: Vec<_> = fitted.dropped.iter().map(|of| (of.from, of.to)).collect();
        let shortened: Vec<_> = fitted.shortened.iter().map(|of| (of.frame, of.frame)).collect();
        let kinds = [SubstitutionKind::Dropped, SubstitutionKind::Shortened];
        for (kind, listed) in kinds.into_iter().zip([dropped, shortened]) {
            let of_kind = window.substitutions().into_iter().filter(|of| of.stands == kind);
            assert_eq!(of_kind.map(|of| (of.from, of.to)).collect::<Vec<_>>(), listed);
        }
    }

    /// What was there before stays, but for the tail and what the epoch says.
    fn grew(&mut self, fitted: &FittedContext) {
        let now = messages(&fitted.context);
        let epoch = fitted.epoch.as_ref();
        if let Some(epoch) = epoch {
            self.epochs += 1;
            assert_eq!(epoch.number, self.epochs);
        }
        let before = self.last.take().unwrap_or_default();
        let stays = |frames: Option<(FrameSeq, FrameSeq)>| {
            frames.is_some_and(|(_, to)| epoch.is_none_or(|epoch| to < epoch.from))
        };
        let stay = before.iter().take_while(|(_, _, frames)| stays(*frames));
        for (index, message) in stay.enumerate() {
            assert_eq!(now.get(index), Some(message), "epoch {epoch:?}");
        }
        self.last = Some(now);
    }
}

fn stands_for_itself_or_was_replaced(
    window: &ContextWindow,
    history: &History,
    context: &RenderedContext,
) {
    for message in context.messages() {
        let spans = context.spans(message);
        let mut end = 0;
        for span in &spans {
            assert_eq!(span.range.start(), end);
            end = span.range.end();
        }
        assert_eq!(end, message.content().len());
        let by_block = spans.iter().all(|span| matches!(span.owner, Owner::Block { .. }));
        assert!(spans.is_empty() || message.is_block() == by_block);
    }
    let replaced = window.substitutions();
    for frame in history.frames() {
        let snapshot = frame.rendered_snapshot.as_ref().unwrap();
        let by = replaced.iter().find(|of| (of.from..=of.to).contains(&frame.sequence));
        if let Some(message) = context.message_of(frame.sequence) {
            assert_eq!(context.messages()[message].content(), snapshot.text());
            assert!(by.is_none());
            continue;
        }
        assert!(snapshot.is_empty() || by.is_some(), "{} is gone", frame.sequence);
        let stays = frame.source == Source::System || is_pinned(&frame);
        assert!(
            snapshot.is_empty() || !stays,
            "{} gave way to {:?}",
            frame.sequence,
            by.map(|of| &of.block)
        );
    }
}

fn pairs_are_whole(window: &ContextWindow, history: &History, context: &RenderedContext) {
    let replaced = window.substitutions();
    let is_there = |frame: FrameSeq| {
        context.message_of(frame).is_some()
            || replaced
                .iter()
                .any(|of| of.from == frame && of.stands == SubstitutionKind::Shortened)
    };
    for (call, result) in pairs(history) {
        let ids: Vec<_> = replaced.iter().map(|of| &of.block).collect();
        assert!(is_there(call) == is_there(result), "{call} called, {result} answered: {ids:?}");
        let by =
            |frame: FrameSeq| replaced.iter().position(|of| (of.from..=of.to).contains(&frame));
        assert!(is_there(call) || by(call) == by(result), "{call} called, {result} answered");
    }
}

/// Whatever stands for frames gives them back.
fn expands(window: &ContextWindow, history: &History) {
    // A ledger stands for nothing.
    let replaced = window.substitutions().into_iter();
    let replaced = replaced.filter(|of| of.stands != SubstitutionKind::Ledger);
    let replaced = replaced.map(|of| (of.block, of.from, of.to));
    let blocks = window.transform().blocks();
    let blocks = blocks.map(|block| (block.id.clone(), block.from, block.to));
    for (id, from, to) in replaced.chain(blocks) {
        let expanded = window.expand(history, &id).unwrap().into_iter();
        let frames = history.frames();
        let inside = frames.filter(|frame| (from..=to).contains(&frame.sequence));
        let originals = inside
            .map(|frame| (frame.sequence, frame.rendered_snapshot.clone().unwrap()))
            .filter(|(_, snapshot)| !snapshot.is_empty());
        assert!(expanded.map(|of| (of.from, of.snapshot)).eq(originals), "{id}");
    }
    assert_eq!(window.expand(history, "block-x").unwrap_err().kind(), ErrorKind::OutOfRange);
}

/// The figures of an error, under their names.
fn figures(error: &Error) -> BTreeMap<String, u64> {
    let text = error.to_string();
    let mut figures = BTreeMap::new();
    let mut number = |name: &str, before: &str| {
        let at = text.find(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
        let digits = text[at + before.len()..].chars().take_while(char::is_ascii_digit);
        figures.insert(name.to_owned(), digits.collect::<String>().parse().unwrap());
    };
    number("room", "at most ");
    number("total", "found ");
    for part in
        ["system prompt", "pinned", "blocks", "newest frames", "other frames", "tail", "framing"]
    {
        number(part, &format!("{part} "));
    }
    if text.contains("tools ") {
        number("tools", "tools ");
    }
    figures
}

/// The error is that of a context that does not fit, its figures add up, and nothing was dropped.
fn says_why(error: &Error, window: &ContextWindow, dropped: &HashSet<Arc<str>>) {
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    let mut figures = figures(error);
    let (room, total) = (figures.remove("room").unwrap(), figures.remove("total").unwrap());
    let budget = window.budget();
    assert_eq!(room, budget.max_tokens.saturating_sub(budget.reserve_for_output));
    assert_eq!(figures.get("tools").copied().unwrap_or(0), budget.tools);
    assert!(total > room, "{error}");
    assert_eq!(figures.values().sum::<u64>(), total, "{error}");
    assert!(drops(window).is_subset(dropped), "{error}");
}

fn drops(window: &ContextWindow) -> HashSet<Arc<str>> {
    let all = window.substitutions().into_iter().map(|of| of.block);
    all.filter(|id| id.starts_with("dropped-")).collect()
}

/// The breakdown is that of the context as it stands.
fn breaks_down(
    hud: &Hud,
    window: &mut ContextWindow,
    history: &mut History,
    asked: &RenderRequest,
) {
    let found: Breakdown = window.breakdown(history, asked, NOW).unwrap();
    let asked = RenderRequest { substitutions: window.substitutions(), ..asked.clone() };
    let context = hud.render(history, &asked, NOW).unwrap();
    assert_eq!(found.total() - found.tools, context.tokens().total);
    assert_eq!(found.tools, window.budget().tools);
    assert_eq!(found.framing, context.tokens().framing);
    let prompt = asked.system_prompt.as_deref().unwrap_or_default();
    let messages = context.messages().iter();
    let operators = messages.filter(|of| of.role() == Role::System && of.frames().is_some());
    let operators: u64 = operators.map(|of| Chars4.count(&of.content()) as u64).sum();
    assert_eq!(found.system_prompt, Chars4.count(prompt) as u64 + operators);
    let tail = context.tail().map_or(0, |tail| Chars4.count(tail.text()) as u64);
    assert_eq!(found.tail, tail);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(128), ..ProptestConfig::default() })]

    #[test]
    fn a_context_is_within_its_budget_or_says_who_takes_the_room(
        frames in history(40),
        steps in vec((1..6_usize, select(&ENGINES[..])), 1..12),
        budget in budget(),
        is_native in any::<bool>(),
        prompt in option::weighted(0.3, Just("Be brief, and say what you do.".to_owned())),
    ) {
        let hud = if is_native { native() } else { xml() };
        let mut window = ContextWindow::new(hud.clone(), budget, small());
        let mut watch = Watch::default();
        let (mut history, mut left) = (History::new(), frames.into_iter());
        let asked = RenderRequest { system_prompt: prompt, ..request() };
        for (at, (count, name)) in (0_i64..40).zip(steps.iter().cycle()) {
            let mut is_over = true;
            for frame in left.by_ref().take(*count) {
                hud.capture(&mut history, frame, NOW).unwrap();
                is_over = false;
            }
            let dropped = drops(&window);
            let now = Millis::new(at * 9_000);
            match window.render(&mut history, &asked, &*engine(name), now) {
                Ok(fitted) => {
                    watch.fits(&window, &history, &fitted);
                    if is_native {
                        let export = Export::of(&history, &fitted.context).unwrap();
                        exporting::check(&export, &ExportOptions::default(), "a fitted context");
                    }
                }
                Err(error) => says_why(&error, &window, &dropped),
            }
            breaks_down(&hud, &mut window, &mut history, &asked);
            if is_over {
                break;
            }
        }
    }

    #[test]
    fn what_stands_for_frames_is_apart_whatever_compactions_are_told(
        mut frames in history(40),
        steps in vec((1..6_usize, select(&ENGINES[..])), 1..12),
        told in vec((0..40_usize, 0..30_u64, 1..30_u64), 1..4),
        budget in budget(),
    ) {
        for (at, back, length) in told {
            tell(&mut frames, at, back, length);
        }
        let hud = native();
        let mut window = ContextWindow::new(hud.clone(), budget, small());
        let (mut history, mut left) = (History::new(), frames.into_iter().peekable());
        for (at, (count, name)) in (0_i64..40).zip(steps.iter().cycle()) {
            for frame in left.by_ref().take(*count) {
                hud.capture(&mut history, frame, NOW).unwrap();
            }
            let now = Millis::new(at * 9_000);
            if let Err(error) = window.render(&mut history, &request(), &*engine(name), now) {
                prop_assert_eq!(error.kind(), ErrorKind::OverBudget);
            }
            let mut stands = window.substitutions();
            // A ledger stands for nothing.
            stands.retain(|of| of.stands != SubstitutionKind::Ledger);
            prop_assert!(stands.windows(2).all(|two| two[0].to < two[1].from), "{:?}", stands);
            if left.peek().is_none() {
                break;
            }
        }
    }

    #[test]
    fn jobs_may_be_answered_late_twice_or_never(
        frames in history(40),
        acts in vec(0..9_u8, 1..60),
        budget in budget(),
    ) {
        let hud = xml();
        let options = CompressionOptions { max_active: 2, ..small() };
        let mut window = ContextWindow::new(hud.clone(), budget, options);
        let mut watch = Watch::default();
        let (mut history, mut left) = (History::new(), frames.into_iter());
        let (mut open, mut done): (Vec<CompressionJob>, Vec<CompressionJob>) = Default::default();
        for (at, act) in (0_i64..).zip(acts) {
            let now = Millis::new(at * 9_000);
            match act {
                0..=2 => {
                    for frame in left.by_ref().take(2) {
                        hud.capture(&mut history, frame, NOW).unwrap();
                    }
                }
                3 | 4 => open.extend(window.next_job(&mut history, &request(), now).unwrap()),
                5 => {
                    let Some(job) = open.pop() else { continue };
                    let summary = OutlineEngine.summarize(&job, &Chars4).unwrap_or_default();
                    let answer = window.complete(&job, Summary { text: &summary, engine: "outline" }, &history, now);
                    match answer {
                        Ok(block) => prop_assert_eq!(&block.id, &job.id),
                        Err(error) => {
                            prop_assert_eq!(error.kind(), ErrorKind::Limit);
                            window.fail(&job, "too long", now).unwrap();
                        }
                    }
                    done.push(job);
                }
                6 => {
                    let Some(job) = open.pop() else { continue };
                    window.fail(&job, "no answer", now).unwrap();
                    done.push(job);
                }
                7 => {
                    for job in &done {
                        let again = window.complete(job, Summary { text: "again", engine: "outline" }, &history, now);
                        prop_assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
                        let again = window.fail(job, "again", now);
                        prop_assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
                    }
                    let mut other = captured(&hud, &[Frame::new(u64::MAX, Source::User)]);
                    if !history.frames().is_empty() && window.transform().ranges().count() > 0 {
                        let before = window.substitutions();
                        let error = window.next_job(&mut other, &request(), now).unwrap_err();
                        prop_assert_eq!(error.kind(), ErrorKind::Sequence);
                        let error = window.finish(&mut other, &request(), now).unwrap_err();
                        prop_assert_eq!(error.kind(), ErrorKind::Sequence);
                        prop_assert_eq!(window.substitutions(), before);
                    }
                }
                _ => {
                    let dropped = drops(&window);
                    match window.finish(&mut history, &request(), now) {
                        Ok(fitted) => watch.fits(&window, &history, &fitted),
                        Err(error) => says_why(&error, &window, &dropped),
                    }
                }
            }
        }
    }
}

// Hand-written cases.

fn said(source: Source, kind: FacetType, sequence: u64, text: &str) -> Frame {
    let facet = Facet::new(format!("facet-{sequence}"), kind, text);
    Frame::new(sequence, source).with(FacetOp::add(facet))
}

fn with(mut frame: Frame, saliency: &Saliency) -> Frame {
    for op in &mut frame.ops {
        let FacetChange::Add(facet) = &op.change else { continue };
        let mut facet = Facet::clone(facet);
        facet.saliency = Some(saliency.clone());
        op.change = FacetChange::Add(facet.into());
    }
    frame
}

fn transient(rate: &str) -> Saliency {
    let Ok(Value::Number(rate)) = afterimage::json::read(rate.as_bytes()) else { panic!("{rate}") };
    Saliency { transient: Some(rate), ..Saliency::default() }
}

fn called(sequence: u64, id: &str, arguments: &str) -> Frame {
    let call = PartContent::Call {
        id: Some(id.into()),
        name: "look".into(),
        parameters: None,
        arguments: Some(arguments.into()),
    };
    let facet = Facet::new(format!("call-{sequence}"), FacetType::ACTION, "").with_part(call);
    Frame::new(sequence, Source::Agent).with(FacetOp::add(facet))
}

fn answered(sequence: u64, id: &str, text: &str) -> Frame {
    let facet = Facet::tool_result(format!("result-{sequence}"), Some(id), None, text);
    Frame::new(sequence, Source::Environment).with(FacetOp::add(facet))
}

/// A budget of so many tokens that is used up before anything is done, and then as little as must.
fn whole(tokens: u64) -> Budget {
    Budget {
        max_tokens: tokens,
        reserve_for_output: 0,
        tools: 0,
        high: tokens,
        low: tokens,
        recent: 0,
        largest_result: tokens,
        first_words: tokens / 4,
        last_words: tokens / 8,
        ledger: tokens / 4,
    }
}

#[test]
fn the_least_worth_goes_first() {
    let text = "Some words that are about as long as those of any other message here are.";
    let (user, agent, world) = (Source::User, Source::Agent, Source::Environment);
    let event = FacetType::EVENT;
    let frames = vec![
        said(user.clone(), event.clone(), 0, text),
        said(agent.clone(), FacetType::SPEECH, 1, text),
        said(agent.clone(), FacetType::THOUGHT, 2, text),
        called(3, "a", r#"{"at": "the place where everything is, more or less"}"#),
        answered(4, "a", text),
        with(said(world.clone(), event.clone(), 5, text), &transient("0.2")),
        with(said(world, event.clone(), 6, text), &transient("0.9")),
        with(
            said(user.clone(), event.clone(), 7, text),
            &Saliency { reference: true, ..Saliency::default() },
        ),
        said(user.clone(), event.clone(), 8, text),
        said(agent, FacetType::SPEECH, 9, text),
        said(user, event, 10, text),
    ];
    let hud = native();
    let mut history = captured(&hud, &frames);
    let total = hud.render(&history, &request(), NOW).unwrap().tokens().total;
    let options = CompressionOptions { protected_frames: 1, ..small() };
    let mut order: Vec<u64> = Vec::new();
    for tokens in (0..total).rev() {
        let mut window = ContextWindow::new(hud.clone(), whole(tokens), options.clone());
        let Ok(fitted) = window.render(&mut history, &request(), &*engine("fails"), NOW) else {
            break;
        };
        let there: Vec<u64> = fitted.dropped.iter().map(|of| of.from.get()).collect();
        assert!(order.iter().all(|frame| there.contains(frame)), "{order:?} then {there:?}");
        let new: Vec<u64> = there.into_iter().filter(|frame| !order.contains(frame)).collect();
        assert!(new.len() < 2, "{new:?} at once");
        order.extend(new);
    }
    assert_eq!(order, [6, 5, 2, 3, 1, 9, 8, 7, 0]);
}

#[test]
fn one_context_is_filled_however_coarse_its_frames_are() {
    let text = "The tide at berth_71 turned, order W7654321 waits for 3 crates. ";
    let frames: Vec<Frame> = (1..=12)
        .map(|at| said(Source::User, FacetType::EVENT, at, &text.repeat(at as usize * 9)))
        .collect();
    let hud = native();
    let mut history = captured(&hud, &frames);
    for max_tokens in (2_000..9_000).step_by(500) {
        let budget = Budget::once(max_tokens);
        let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
        let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
        let total = fitted.context.tokens().total;
        assert!(total * 4 >= max_tokens * 3, "{total} of {max_tokens}");
    }
}

/// What stands before and after the marker in `text`, and how many tokens it says are missing.
fn halves<'t>(text: &'t str, id: &str) -> (&'t str, u64, &'t str) {
    let (head, rest) = text.split_once("\n[… ").unwrap_or_else(|| panic!("no marker in {text}"));
    let (missing, tail) = rest.split_once(&format!(" tokens left out; expand {id} …]\n")).unwrap();
    (head, missing.parse().unwrap(), tail)
}

#[test]
fn a_marker_says_how_much_is_missing() {
    let words: String = (0..900).map(|n| format!("word-{n} ")).collect();
    let texts = [
        words.as_str(),
        &"漢字かな交じり文、".repeat(300),
        &"👩‍👩‍👧‍👦e\u{301}🇨🇭".repeat(160),
        &"x\r\n".repeat(700),
        &"a\u{308}\u{323} \u{301}".repeat(400),
    ];
    for text in texts {
        for tokens in [100, 150, 300] {
            let hud = native();
            let frames = [
                said(Source::User, FacetType::EVENT, 0, "What is there?"),
                called(1, "a", "{}"),
                answered(2, "a", text),
            ];
            let mut history = captured(&hud, &frames);
            let mut window = ContextWindow::new(hud, whole(tokens), small());
            let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
            let [shortened] = fitted.shortened.as_slice() else { panic!("{tokens}") };
            let message = fitted.context.messages().last().unwrap();
            let content = message.content();
            let (head, missing, tail) = halves(&content, &shortened.id);
            assert!(text.starts_with(head) && text.ends_with(tail));
            let count = |text: &str| Chars4.count(text) as u64;
            assert_eq!(missing, count(text) - count(head) - count(tail));
            assert_eq!(shortened.original_tokens, count(text));
            assert_eq!(shortened.tokens, count(&content));
            let borders: HashSet<usize> =
                text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            assert!(borders.contains(&head.len()), "{head:?}");
            assert!(borders.contains(&(text.len() - tail.len())), "{tail:?}");
            // The pair is one in every form.
            let export = Export::of(&history, &fitted.context).unwrap();
            exporting::check(&export, &ExportOptions::default(), "shortened");
            let chat = exporting::json(&export.openai_chat(&ExportOptions::default()));
            assert_eq!(chat[2]["content"], *content);
            assert_eq!(chat[1]["tool_calls"][0]["id"], chat[2]["tool_call_id"]);
        }
    }
}

#[test]
fn a_shortened_result_still_says_that_it_failed() {
    let mut failed = answered(2, "a", &"The door is locked, and nobody answers. ".repeat(60));
    for op in &mut failed.ops {
        let FacetChange::Add(facet) = &mut op.change else { continue };
        let mut found = Facet::clone(facet);
        let part = &mut found.part.as_mut().unwrap().content;
        let PartContent::Result { outcome, .. } = part else { panic!("{part:?}") };
        *outcome = CallOutcome::Failed;
        *facet = found.into();
    }
    let hud = native();
    let frames = [said(Source::User, FacetType::EVENT, 0, "Go in."), called(1, "a", "{}"), failed];
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, whole(150), small());
    let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
    assert_eq!(fitted.shortened.len(), 1);
    let export = Export::of(&history, &fitted.context).unwrap();
    let request = exporting::json(&export.anthropic(&ExportOptions::default()));
    assert_eq!(request["messages"][2]["content"][0]["is_error"], true, "{request}");
}

#[test]
fn a_call_is_never_cut() {
    let arguments = format!("{{\"text\": \"{}\"}}", "a long letter ".repeat(60));
    for hud in [native(), xml()] {
        let long = "What I think of it. ".repeat(80);
        let call = called(1, "a", &arguments).with(FacetOp::add(Facet::new(
            "thought",
            FacetType::SPEECH,
            long.as_str(),
        )));
        let frames = [
            said(Source::User, FacetType::EVENT, 0, "Write a letter."),
            call,
            answered(2, "a", &"It was sent. ".repeat(60)),
        ];
        let mut history = captured(&hud, &frames);
        let mut window = ContextWindow::new(hud, whole(370), small());
        let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
        assert_eq!(fitted.shortened.len(), 2);
        let text: String =
            fitted.context.messages().iter().map(|of| of.content().into_owned()).collect();
        assert!(text.contains(&arguments) && !text.contains(&long));
        // With less room than the call takes there is none.
        let mut window = ContextWindow::new(window_hud(&history), whole(200), small());
        let error = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget);
        assert!(error.to_string().contains("the largest is frame 1"), "{error}");
    }
}

/// A HUD of the format that a history was captured in.
fn window_hud(history: &History) -> Hud {
    let snapshot = history.frames().snapshot(0).unwrap();
    if snapshot.identity().unwrap().rendering.as_ref().unwrap().format == "xml" {
        xml()
    } else {
        native()
    }
}

#[test]
fn parts_of_a_result_stay_inside_of_it() {
    let mut result = Facet::tool_result("result-2", Some("a"), None, "It holds:");
    let part = |at: usize| {
        Facet::new(
            format!("part-{at}"),
            FacetType::EVENT,
            format!("{at} bottles of water. ").repeat(40),
        )
    };
    result.children = (0..4).map(part).collect();
    let frames = [
        said(Source::User, FacetType::EVENT, 0, "What is there?"),
        called(1, "a", "{}"),
        Frame::new(2, Source::Environment).with(FacetOp::add(result)),
    ];
    let hud = native();
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, whole(500), small());
    let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
    let message = fitted.context.messages().last().unwrap();
    let chunks: Vec<_> = message.chunks().map(|(_, chunk)| chunk).collect();
    for chunk in &chunks {
        assert_eq!(chunk.part(), PartRef::Result { id: Some("a") });
        let parent = chunk.structure().and_then(|structure| structure.parent);
        let is_part = chunk.facet_ids().next().unwrap().starts_with("part-");
        assert_eq!(parent, is_part.then_some(0), "{}", chunk.content());
        if let Some(children) = chunk.structure().and_then(|of| of.children.clone()) {
            assert_eq!(children.len(), chunks.len() - 1);
        }
    }
    let export = Export::of(&history, &fitted.context).unwrap();
    exporting::check(&export, &ExportOptions::default(), "nested");
    assert!(export.openai_chat(&ExportOptions::default()).report().repaired.is_empty());
}

#[test]
fn a_result_is_not_compressed_without_a_call_that_stays() {
    let long = "There is dust, and ice, and more of it. ".repeat(6);
    let mut frames = vec![said(Source::User, FacetType::EVENT, 0, &long), called(1, "a", "{}")];
    let pinned = Saliency { pinned: true, ..Saliency::default() };
    frames.push(with(said(Source::User, FacetType::EVENT, 2, "The map: north is up."), &pinned));
    frames.push(answered(3, "a", &long));
    frames.extend((4..20).map(|at| said(Source::User, FacetType::EVENT, at, &long)));
    let hud = native();
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, Budget::new(700), small());
    let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    let mut watch = Watch::default();
    watch.fits(&window, &history, &fitted);
    assert!(window.transform().blocks().count() > 0);
}

#[test]
fn a_long_result_answers_one_call() {
    // Two calls without ids, and a result that is several chunks.
    let options = SnapshotOptions { max_chunk_bytes: Some(64), ..SnapshotOptions::default() };
    let hud = Hud::builder(Arc::new(Chars4))
        .format(Arc::new(NativeFormat))
        .snapshot_options(options)
        .build();
    let mut frames = Vec::new();
    for at in 0..12 {
        let from = at * 5;
        let pairs = [("one", from + 1), ("two", from + 2)];
        frames.push(said(Source::User, FacetType::EVENT, from, "Look again, here and there."));
        frames.extend(pairs.map(|(_, at)| called(at, "", "{}")));
        frames.extend(pairs.map(|(text, at)| answered(at + 2, "", &text.repeat(60))));
    }
    let mut history = captured(&hud, &frames);
    for tokens in [300, 400, 500, 700] {
        let options = CompressionOptions { max_range_tokens: 100, ..small() };
        let mut window = ContextWindow::new(hud.clone(), Budget::new(tokens), options);
        let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
        Watch::default().fits(&window, &history, &fitted);
    }
}

#[test]
fn results_of_pinned_facets_are_not_shortened() {
    let map = "North is up. ".repeat(40);
    let pinned = Saliency { pinned: true, ..Saliency::default() };
    let mut frames = vec![called(0, "a", "{}"), with(answered(1, "a", &map), &pinned)];
    frames.extend((2..30).map(|at| said(Source::User, FacetType::EVENT, at, "And then?")));
    let hud = native();
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, Budget::new(400), small());
    let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    assert_eq!(fitted.context.messages()[1].content(), map);
}

#[test]
fn the_newest_words_stay_though_nothing_is_shown_after_them() {
    let long = "Words upon words, and none of them is needed. ".repeat(4);
    let mut frames: Vec<Frame> =
        (0..12).map(|at| said(Source::User, FacetType::EVENT, at, &long)).collect();
    frames.push(said(Source::User, FacetType::EVENT, 12, "What now?"));
    frames.extend((13..16).map(|at| Frame::new(at, Source::Environment)));
    let hud = native();
    let mut history = captured(&hud, &frames);
    for tokens in [12, 20, 60, 100, 200] {
        let mut window = ContextWindow::new(hud.clone(), whole(tokens), small());
        let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
        assert_eq!(fitted.context.messages().last().unwrap().content(), "What now?");
    }
}

#[test]
fn many_results_at_once_are_shortened_as_far_as_it_takes() {
    let text = "There is dust, and ice, and more of it, as far as one sees. ".repeat(12);
    let mut frames = vec![said(Source::User, FacetType::EVENT, 0, "Look everywhere.")];
    frames.extend((0..12).map(|at| called(1 + at, &format!("id-{at}"), "{}")));
    frames.extend((0..12).map(|at| answered(13 + at, &format!("id-{at}"), &text)));
    let hud = native();
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, whole(1_100), small());
    let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
    assert_eq!(fitted.shortened.len(), 12);
    Watch::default().fits(&window, &history, &fitted);
}

#[test]
fn the_beginning_of_a_shortened_text_ends_in_no_tag() {
    // Wherever the text is cut, what stands before the marker begins no tag that ends after it.
    for shift in 0..16 {
        let text = format!("{}{}", "-".repeat(shift), "<my_turnx>".repeat(120));
        let hud = xml();
        let frames = [said(Source::User, FacetType::EVENT, 0, &text)];
        let mut history = captured(&hud, &frames);
        let mut window = ContextWindow::new(hud, whole(160), small());
        let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
        let content = fitted.context.messages()[0].content().into_owned();
        let (head, _, _) = halves(&content, "shortened-0");
        assert!(!head.rsplit('>').next().unwrap().contains('<'), "{head}");
    }
}

#[test]
fn a_closure_that_panics_costs_a_try_and_no_more() {
    let long = "Words upon words, and none of them is needed. ".repeat(4);
    let hud = native();
    let frames: Vec<Frame> =
        (0..20).map(|at| said(Source::User, FacetType::EVENT, at, &long)).collect();
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, Budget::new(600), small());
    let fitted = window.render(&mut history, &request(), &*engine("panics"), NOW).unwrap();
    assert!(!fitted.dropped.is_empty() && window.transform().blocks().count() == 0);
    // Another engine is asked for the same ranges once they are due.
    let later = Millis::new(60_000);
    while window.next_job(&mut history, &request(), later).unwrap().is_some_and(|job| {
        assert_eq!(job.attempt, 2);
        let summary = OutlineEngine.summarize(&job, &Chars4).unwrap();
        window
            .complete(&job, Summary { text: &summary, engine: "outline" }, &history, later)
            .unwrap();
        true
    }) {}
    assert!(window.transform().blocks().count() > 0);
}

#[test]
fn what_is_finished_before_it_was_looked_at_fits_too() {
    let text = "There is dust, and ice, and more of it. ".repeat(40);
    let hud = native();
    let frames = [
        said(Source::User, FacetType::EVENT, 0, "Look."),
        called(1, "a", "{}"),
        answered(2, "a", &text),
        said(Source::Agent, FacetType::SPEECH, 3, "Dust."),
        said(Source::User, FacetType::EVENT, 4, "And now?"),
    ];
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, Budget::new(300), small());
    let mut watch = Watch::default();
    let fitted = window.finish(&mut history, &request(), NOW).unwrap();
    watch.fits(&window, &history, &fitted);
    let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    watch.fits(&window, &history, &fitted);
}

#[test]
fn a_compaction_may_take_over_some_of_what_was_dropped() {
    let long = "Words upon words, and none of them is needed. ".repeat(4);
    let mut frames = vec![
        said(Source::User, FacetType::EVENT, 0, "Look."),
        // A call that the agent gave up, so that the compaction parts none.
        called(1, "a", "{}"),
        said(Source::User, FacetType::EVENT, 2, &long),
        called(3, "b", "{}"),
        answered(4, "b", &long),
    ];
    frames.extend((5..8).map(|at| said(Source::User, FacetType::EVENT, at, &long)));
    let hud = native();
    let mut history = captured(&hud, &frames);
    let options = CompressionOptions { trigger_tokens: 10_000, ..small() };
    let mut window = ContextWindow::new(hud.clone(), whole(120), options);
    let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
    let is_dropped =
        |from, to| fitted.dropped.iter().any(|of| (of.from.get(), of.to.get()) == (from, to));
    assert!(is_dropped(2, 2) && is_dropped(3, 4), "{:?}", fitted.dropped);
    let mut told = Frame::new(8, Source::Environment);
    let summary = Facet::new("summary-8", FacetType::SUMMARY, "They looked.");
    told.events.push(Compaction::event(2.into(), 5.into(), "other", Some(&summary)));
    hud.capture(&mut history, told, NOW).unwrap();
    let fitted = window.render(&mut history, &request(), &*engine("fails"), NOW).unwrap();
    assert_eq!(fitted.epoch.map(|epoch| epoch.from.get()), Some(2));
    assert!(fitted.context.tokens().total <= 120);
    assert_eq!(window.transform().blocks().count(), 1);
}

/// Has one of the frames tell that frames before it gave way.
fn tell(frames: &mut [Frame], at: usize, back: u64, length: u64) {
    let Some(frame) = frames.get_mut(at) else { return };
    let Some(last) = frame.sequence.get().checked_sub(1) else { return };
    let from = last.saturating_sub(back);
    let to = (from + length).min(last);
    let summary = Facet::new(format!("summary-{}.0", frame.sequence), FacetType::SUMMARY, "So.");
    frame.events.push(Compaction::event(from.into(), to.into(), "other", Some(&summary)));
}

/// A frame that tells that `from` to `to` gave way to a summary.
fn telling(at: u64, from: u64, to: u64) -> Frame {
    let mut told = Frame::new(at, Source::Environment);
    let summary = Facet::new(format!("summary-{at}.0"), FacetType::SUMMARY, "They looked.");
    told.events.push(Compaction::event(from.into(), to.into(), "other", Some(&summary)));
    told
}

fn spoken(range: std::ops::Range<u64>) -> Vec<Frame> {
    let long = "Words upon words, and none of them is needed. ".repeat(4);
    range.map(|at| said(Source::User, FacetType::EVENT, at, &long)).collect()
}

#[test]
fn a_compaction_that_cuts_a_block_is_passed_over_and_later_ones_are_not() {
    let hud = native();
    let mut history = captured(&hud, &spoken(0..12));
    let mut window = ContextWindow::new(hud.clone(), whole(300), small());
    window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    let block = window.transform().blocks().find(|block| block.from < block.to).unwrap().clone();
    hud.capture(&mut history, telling(12, block.from.get(), block.to.get() - 1), NOW).unwrap();
    let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    assert_eq!(fitted.epoch, None);
    assert!(window.transform().blocks().any(|of| of.id == block.id));
    // One that is damaged does not stand in the way either.
    let mut damaged = Frame::new(13, Source::Environment);
    damaged.events.push(
        afterimage::json::read(format!(r#"{{"topic":"{COMPACTION_TOPIC}"}}"#).as_bytes()).unwrap(),
    );
    hud.capture(&mut history, damaged, NOW).unwrap();
    hud.capture(&mut history, telling(14, 0, 11), NOW).unwrap();
    let fitted = window.render(&mut history, &request(), &OutlineEngine, NOW).unwrap();
    assert_eq!(fitted.epoch.map(|epoch| epoch.from.get()), Some(0));
    let blocks: Vec<_> =
        window.transform().blocks().map(|block| (block.from.get(), block.to.get())).collect();
    assert_eq!(blocks, [(0, 11)]);
}

#[test]
fn what_was_taken_over_before_a_compaction_that_waits_is_told() {
    let hud = native();
    let mut history = captured(&hud, &spoken(0..12));
    let options = CompressionOptions { max_range_tokens: 200, ..small() };
    let mut transform = CompressionTransform::new(options);
    assert!(transform.plan_saving(&history, 50, 3).unwrap() > 0);
    let job = transform.next_job(&history, NOW).unwrap().unwrap();
    assert!(job.to < FrameSeq::new(10));
    let render = |facet: &Facet| hud.render_facet(facet, Role::User, &TagSet::default(), NOW);
    hud.capture(&mut history, telling(12, 10, 11), NOW).unwrap();
    hud.capture(&mut history, telling(13, 0, 11), NOW).unwrap();
    let epoch = transform.adopt(&history, NOW, render).unwrap().unwrap();
    assert_eq!((epoch.number, epoch.from.get()), (1, 10));
    let error = transform.adopt(&history, NOW, render).unwrap_err();
    assert_eq!((error.kind(), error.place().frame), (ErrorKind::Conflict, Some(13)));
}
