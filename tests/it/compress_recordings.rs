//! What holds of compressed histories holds over the recordings too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing;
use crate::support::exporting;
use afterimage_testkit::data;

use std::{collections::HashMap, sync::Arc};

use afterimage::{
    compress::{CompressionBlock, CompressionTransform, Engine, OutlineEngine, Summary},
    export::{Export, ExportOptions, ExportedRequest, PrefixRules, prefix_report},
    hud::{Message, RenderedContext},
    id::{FrameSeq, Millis},
    tokens::Chars4,
    veil::{Frame, History, Source},
};
use compressing::{NOW, captured, larger, native, render_with, request};

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

/// The recorded sessions of at least so many frames, each with its name.
fn sessions(least: usize) -> Vec<(String, Vec<Frame>)> {
    let folders = GROUPS.iter().filter_map(|group| data::recordings(group));
    let files = folders.flat_map(|folder| data::files_under(&folder));
    let named = files.flat_map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let sessions = compressing::sessions(&path).into_iter();
        sessions.map(move |(session, frames)| (format!("{name} {session}"), frames))
    });
    named.filter(|(_, frames)| frames.len() >= least).collect()
}

fn has_recordings() -> bool {
    data::recordings(GROUPS[0]).is_some()
}

/// Compresses with the engine that needs no model, as far as it goes.
fn outline(transform: &mut CompressionTransform, history: &History) {
    let hud = native();
    loop {
        transform.plan(history).unwrap();
        while let Some(job) = transform.next_job(history, Millis::new(i64::MAX)).unwrap() {
            let summary = OutlineEngine.summarize(&job, &Chars4);
            let done = summary.and_then(|summary| {
                let render = render_with(&hud, history);
                transform
                    .complete(&job, Summary { text: &summary, engine: "outline" }, NOW, render)
                    .map(drop)
            });
            if let Err(error) = done {
                transform.fail(&job, error.to_string(), NOW).unwrap();
            }
        }
        if transform.apply().is_none() {
            return;
        }
    }
}

/// A block and those inside of it.
fn all(block: &Arc<CompressionBlock>) -> Vec<Arc<CompressionBlock>> {
    let inner = block.blocks().iter().flat_map(all);
    std::iter::once(Arc::clone(block)).chain(inner).collect()
}

#[test]
fn lossless_block_and_same_state_over_recordings() {
    let mut blocks = 0;
    for (name, frames) in sessions(4) {
        // First a part of the session, then the rest of it.
        let mut transform = CompressionTransform::new(larger());
        outline(&mut transform, &captured(&native(), &frames[..frames.len() / 2]));
        let history = captured(&native(), &frames);
        outline(&mut transform, &history);
        for block in transform.blocks().flat_map(all) {
            let (originals, expanded) = compressing::originals(&history, &block);
            assert_eq!(expanded, originals, "{name}: {}", block.id);
            // A frame that goes into a block of blocks as it is costs what it costs.
            let is_shorter = block.tokens < block.original_tokens || block.engine == "verbatim";
            assert!(is_shorter, "{name}: {}", block.id);
            blocks += usize::from(block.engine != "verbatim");
        }
        let state = compressing::state_by_blocks(&history, &transform);
        assert_eq!(state, compressing::state(&history), "{name}");
    }
    assert!(blocks > 500 || !has_recordings(), "{blocks}");
}

type Form = fn(&Export<'_>, &ExportOptions) -> ExportedRequest;
const FORMS: [Form; 3] = [
    |export, options| export.openai_chat(options),
    |export, options| export.responses(options),
    |export, options| export.anthropic(options),
];

/// How often each frame was repaired.
fn repaired(history: &History, context: &RenderedContext, form: Form) -> HashMap<String, usize> {
    let exported = form(&Export::of(history, context).unwrap(), &ExportOptions::default());
    let mut repaired = HashMap::new();
    for repair in &exported.report().repaired {
        *repaired.entry(format!("{:?} {:?}", repair.frame, repair.kind)).or_default() += 1;
    }
    repaired
}

#[test]
fn whole_pairs_over_recordings() {
    for (name, frames) in sessions(4) {
        let history = captured(&native(), &frames);
        let plain = CompressionTransform::default();
        let plain = native().render(&history, &request(&plain), NOW).unwrap();
        let mut transform = CompressionTransform::new(larger());
        outline(&mut transform, &history);
        let context = native().render(&history, &request(&transform), NOW).unwrap();
        let export = Export::of(&history, &context).unwrap();
        exporting::check(&export, &ExportOptions::default(), &name);
        for form in FORMS {
            // Compression tears no pair that was whole.
            let before = repaired(&history, &plain, form);
            for (repair, count) in repaired(&history, &context, form) {
                assert!(before.get(&repair).is_some_and(|of| count <= *of), "{name}: {repair}");
            }
        }
    }
}

#[test]
fn stable_prefix_over_recordings() {
    let mut epochs = 0;
    for (name, frames) in sessions(20).into_iter().step_by(3) {
        let options = afterimage::compress::CompressionOptions {
            high_tokens: 4_000,
            low_tokens: 2_000,
            ..larger()
        };
        let mut transform = CompressionTransform::new(options);
        let (hud, mut history) = (native(), History::new());
        let mut before: Option<(RenderedContext, History)> = None;
        let step = frames.len().div_ceil(24);
        for (at, frame) in frames.iter().enumerate() {
            // A request is sent where the agent speaks next.
            let is_sent = frame.source == Source::Agent
                && at > 0
                && frames[at - 1].source != Source::Agent
                && at.is_multiple_of(step);
            if is_sent {
                transform.plan(&history).unwrap();
                while let Some(job) = transform.next_job(&history, NOW).unwrap() {
                    compressing::complete(&hud, &mut transform, &history, &job).unwrap();
                }
                let epoch = transform.apply();
                let context = hud.render(&history, &request(&transform), NOW).unwrap();
                if let Some((before, early)) = &before {
                    epochs += usize::from(epoch.is_some());
                    let changed = epoch.map(|epoch| epoch.from);
                    assert_stable(before, &context, changed, &name);
                    if changed.is_none() {
                        assert_appended((early, before), (&history, &context), &name);
                    }
                }
                before = Some((context, history.clone()));
            }
            hud.capture(&mut history, frame.clone(), NOW).unwrap();
        }
    }
    assert!(epochs > 10 || !has_recordings(), "{epochs}");
}

/// Everything before the first frame that changed stays; all of it, where none did.
fn assert_stable(
    before: &RenderedContext,
    after: &RenderedContext,
    changed: Option<FrameSeq>,
    name: &str,
) {
    let stays = |message: &&Message| {
        message.frames().is_none_or(|(_, to)| changed.is_none_or(|from| to < from))
    };
    let texts = |context: &RenderedContext| {
        let messages = context.messages().iter().take_while(stays);
        messages.map(|message| message.content().into_owned()).collect::<Vec<_>>()
    };
    let (before, after) = (texts(before), texts(after));
    assert!(after.starts_with(&before), "{name}: changed from {changed:?}");
}

/// A request within an epoch begins with the whole of the one before it.
fn assert_appended(
    before: (&History, &RenderedContext),
    after: (&History, &RenderedContext),
    name: &str,
) {
    let options = ExportOptions::default();
    for form in FORMS {
        let request = |(history, context): (&History, &RenderedContext)| {
            form(&Export::of(history, context).unwrap(), &options)
        };
        let report = prefix_report(&request(before), &request(after), &Chars4, PrefixRules::EXACT);
        assert_eq!(report.divergence, None, "{name}");
    }
}

#[test]
fn mixed_histories_of_recordings_compress_to_the_same_bytes() {
    for (at, (name, frames)) in sessions(4).into_iter().step_by(2).enumerate() {
        let full = captured(&native(), &frames);
        let mut mixed = History::new();
        for (index, frame) in frames.iter().enumerate() {
            // Some frames and not others, in no order.
            if (index * 7 + at) % 5 < 2 {
                native().capture(&mut mixed, frame.clone(), NOW).unwrap();
            } else {
                mixed.push(frame.clone()).unwrap();
            }
        }
        native().capture_missing(&mut mixed, NOW).unwrap();
        let compressed = |history: &History| {
            let mut transform = CompressionTransform::new(larger());
            compressing::run(&native(), &mut transform, history);
            let blocks: Vec<String> =
                transform.blocks().map(|block| block.to_json().to_string()).collect();
            let context = native().render(history, &request(&transform), NOW).unwrap();
            (blocks, context.to_json().to_string())
        };
        assert_eq!(compressed(&mixed), compressed(&full), "{name}");
    }
}

#[test]
fn jobs_of_a_session_that_is_cut_at_the_compression_are_those_of_the_whole() {
    let mut jobs = 0;
    for (name, frames) in sessions(20).into_iter().step_by(3) {
        let cut = frames.len() * 2 / 3;
        let (early, whole) = (captured(&native(), &frames[..cut]), captured(&native(), &frames));
        let answers = |history: &History| {
            let mut transform = CompressionTransform::new(larger());
            transform.plan(&early).unwrap();
            let mut answers = Vec::new();
            // What comes after the plan is there, where the history goes on, and is not seen.
            while let Some(job) = transform.next_job(history, NOW).unwrap() {
                answers.push((format!("{job:?}"), OutlineEngine.summarize(&job, &Chars4).ok()));
                compressing::complete(&native(), &mut transform, history, &job).unwrap();
            }
            answers
        };
        let answered = answers(&early);
        jobs += answered.len();
        assert_eq!(answered, answers(&whole), "{name}");
    }
    assert!(jobs > 50 || !has_recordings(), "{jobs}");
}
