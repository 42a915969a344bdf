//! Histories that are captured and compressed without a model.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::{path::Path, sync::Arc};

use afterimage::{
    Result,
    compress::{
        CompressionBlock, CompressionJob, CompressionOptions, CompressionTransform, Summary,
    },
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, FrameSeq, Millis, Role},
    json::Value,
    snapshot::FrameSnapshot,
    tokens::{Chars4, TokenCounter},
    transcript::Transcript,
    veil::{Facet, FacetOp, Frame, History, Source, Veil},
    window::{ContextWindow, FittedContext},
};

pub(crate) const NOW: Millis = Millis::new(0);

pub(crate) fn hud() -> Hud {
    Hud::new(Arc::new(Chars4))
}

pub(crate) fn native() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

pub(crate) fn small() -> CompressionOptions {
    CompressionOptions {
        trigger_tokens: 4,
        max_range_tokens: 60,
        min_frames: 2,
        protected_frames: 2,
        ratio: 2,
        ..CompressionOptions::default()
    }
}

/// As [`small`], for recordings.
pub(crate) fn larger() -> CompressionOptions {
    CompressionOptions { trigger_tokens: 50, max_range_tokens: 1_500, ratio: 5, ..small() }
}

pub(crate) fn captured(hud: &Hud, frames: &[Frame]) -> History {
    let mut history = History::new();
    for (number, frame) in frames.iter().enumerate() {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        // Some frames are packed and some are not.
        if number % 7 == 3 {
            history.shrink_to_fit();
        }
    }
    history
}

/// The sessions of a recording with their frames, in the order in which they begin.
pub(crate) fn sessions(path: &Path) -> Vec<(String, Vec<Frame>)> {
    let mut sessions: Vec<(String, Vec<Frame>)> = Vec::new();
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        match sessions.iter_mut().find(|(name, _)| **name == *record.session) {
            Some((_, frames)) => frames.push(record.frame),
            None => sessions.push((record.session.to_string(), vec![record.frame])),
        }
    }
    sessions
}

/// A summary that fits: the beginning of the text.
pub(crate) fn beginning(job: &CompressionJob) -> String {
    let most = usize::try_from(job.token_limit).unwrap_or(usize::MAX).saturating_mul(4);
    let words = job.text();
    let words = words.chars().filter(|c| c.is_alphanumeric() || *c == ' ').take(most);
    let mut text: String = words.collect();
    while !text.is_empty() && Chars4.count(&text) as u64 + 2 > job.token_limit {
        text.pop();
    }
    text
}

pub(crate) fn render_with<'h>(
    hud: &'h Hud,
    history: &'h History,
) -> impl Fn(&Facet) -> Result<FrameSnapshot> + 'h {
    move |facet| hud.render_facet(facet, Role::User, history.veil().tags(), NOW)
}

pub(crate) fn complete(
    hud: &Hud,
    transform: &mut CompressionTransform,
    history: &History,
    job: &CompressionJob,
) -> Result<()> {
    let render = render_with(hud, history);
    transform
        .complete(job, Summary { text: &beginning(job), engine: "beginning" }, NOW, render)
        .map(drop)
}

/// Plans and completes until nothing is left to do; says how many blocks took effect.
pub(crate) fn run(hud: &Hud, transform: &mut CompressionTransform, history: &History) -> usize {
    let mut applied = 0;
    loop {
        transform.plan(history).unwrap();
        let Some(job) = transform.next_job(history, Millis::new(i64::MAX)).unwrap() else {
            match transform.apply() {
                Some(epoch) => applied += epoch.blocks.len(),
                None => return applied,
            }
            continue;
        };
        if complete(hud, transform, history, &job).is_err() {
            transform.fail(&job, "does not fit", NOW).unwrap();
        }
    }
}

pub(crate) fn request(transform: &CompressionTransform) -> RenderRequest {
    RenderRequest { substitutions: transform.substitutions(), ..RenderRequest::default() }
}

/// Follows the history with each block's net effect in place of its frames.
pub(crate) fn state_by_blocks(
    history: &History,
    transform: &CompressionTransform,
) -> Vec<Arc<Facet>> {
    let mut veil = Veil::default();
    let mut blocks = transform.blocks().peekable();
    for frame in history.frames() {
        while let Some(block) = blocks.next_if(|block| block.from <= frame.sequence) {
            let mut net = Frame::new(block.from, Source::System);
            net.ops = block.net_ops.read();
            veil.apply(&net).unwrap();
        }
        let is_replaced = transform.blocks().any(|of| (of.from..=of.to).contains(&frame.sequence));
        if !is_replaced {
            veil.apply(&frame).unwrap();
        }
    }
    veil.facets()
}

pub(crate) fn state(history: &History) -> Vec<Arc<Facet>> {
    history.veil().facets()
}

/// What the history holds of the frames that a block stands for, and what the block gives back.
pub(crate) type Snapshots = Vec<(FrameSeq, Arc<FrameSnapshot>)>;

pub(crate) fn originals(history: &History, block: &CompressionBlock) -> (Snapshots, Snapshots) {
    let within = |frame: &Arc<Frame>| (block.from..=block.to).contains(&frame.sequence);
    let frames = history.frames().filter(within);
    let frames = frames.map(|frame| (frame.sequence, frame.rendered_snapshot.clone().unwrap()));
    let held = frames.filter(|(_, snapshot)| !snapshot.is_empty()).collect();
    let expanded = block.expand().unwrap().into_iter().map(|of| (of.from, of.snapshot)).collect();
    (held, expanded)
}

/// The frames that a context shows as one line for each result.
pub(crate) fn masked(fitted: &FittedContext) -> Vec<u64> {
    let masked = fitted.shortened.iter().filter(|what| what.is_masked());
    masked.map(|what| what.frame.get()).collect()
}

/// The frames that a context shows as one line for each result, or without the middle of results.
pub(crate) fn shortened(fitted: &FittedContext) -> Vec<u64> {
    fitted.shortened.iter().map(|what| what.frame.get()).collect()
}

/// What a context says.
pub(crate) fn text_of(fitted: &FittedContext) -> String {
    let texts = fitted.context.messages().iter().map(|message| message.content().into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

/// Checks that all that a context shortens expands to what the history holds.
#[track_caller]
pub(crate) fn expands(window: &ContextWindow, history: &History, fitted: &FittedContext) {
    for what in fitted.shortened.iter() {
        let original = window.expand(history, &what.id).unwrap();
        let snapshot = history.snapshot(what.frame).unwrap();
        assert_eq!(original.len(), 1, "{}", what.id);
        assert_eq!(original[0].snapshot.to_json(), snapshot.to_json(), "{}", what.id);
    }
}

/// A session of turns: a request, two calls, their results.
pub(crate) fn turns(turns: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    for turn in 0..turns {
        let ask =
            format!("Please look into sector {turn} and tell what is there, in full sentences.");
        let call = |name: &str, id, tool| {
            Facet::tool_call(format!("c-{turn}-{name}"), id, tool, Value::from(turn))
        };
        let result = |name: &str, id, text: &str| {
            vec![Facet::tool_result(format!("r-{turn}-{name}"), id, None, text.repeat(20))]
        };
        let ops = [
            (Source::User, vec![Facet::new(format!("ask-{turn}"), FacetType::EVENT, ask)]),
            (Source::Agent, vec![call("a", Some("same"), "look"), call("b", None, "scan")]),
            (Source::Environment, result("a", Some("same"), "dust ")),
            (Source::Environment, result("b", None, "ice ")),
        ];
        for (source, facets) in ops {
            let mut frame = Frame::new(frames.len() as u64, source);
            frame.ops = facets.into_iter().map(FacetOp::add).collect();
            frames.push(frame);
        }
    }
    frames
}
