//! The four strategies for snapshots (captured lazily, captured once they are old, dropped for what
//! is compressed, archived on disk) work with compression, windows and archives.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{self, native, small, turns};
use crate::support::histories;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use afterimage::{
    ErrorKind, Result,
    compress::{CompressionOptions, CompressionTransform, OutlineEngine, Passage},
    hud::{Canvas, CapturePolicy, Format, Hud, NativeFormat, RenderRequest},
    id::{FrameSeq, Millis, Role},
    session::{Fit, RequestFitter},
    tokens::Chars4,
    veil::{Facet, Frame, History},
    window::{Budget, ContextWindow},
};
use proptest::{collection::vec, prelude::*};

const NOW: Millis = Millis::new(0);

/// The format `native`, which counts the facets that it writes.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Format for Counting {
    fn id(&self) -> &str {
        NativeFormat.id()
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        NativeFormat.facet(facet, canvas)
    }

    fn turn(&self, role: Role) -> Option<(&str, &str)> {
        NativeFormat.turn(role)
    }

    fn separator(&self, role: Role) -> &str {
        NativeFormat.separator(role)
    }
}

fn hud(policy: CapturePolicy) -> (Hud, Arc<Counting>) {
    let format = Arc::new(Counting::default());
    let hud = Hud::builder(Arc::new(Chars4)).format(format.clone()).capture_policy(policy).build();
    (hud, format)
}

/// What each frame rendered to when it was captured as it came.
fn originals(frames: &[Frame]) -> Vec<(FrameSeq, String)> {
    let history = compressing::captured(&native(), frames);
    let snapshots = history.frames().map(|frame| (frame.sequence, frame.rendered_snapshot.clone()));
    let shown = snapshots.filter_map(|(at, snapshot)| Some((at, snapshot?)));
    let shown = shown.filter(|(_, snapshot)| !snapshot.is_empty());
    shown.map(|(at, snapshot)| (at, snapshot.text().to_owned())).collect()
}

fn texts(passages: &[Passage]) -> Vec<(FrameSeq, String)> {
    passages.iter().map(|of| (of.from, of.snapshot.text().to_owned())).collect()
}

fn within(all: &[(FrameSeq, String)], from: FrameSeq, to: FrameSeq) -> Vec<(FrameSeq, String)> {
    all.iter().filter(|(at, _)| (from..=to).contains(at)).cloned().collect()
}

fn options() -> CompressionOptions {
    CompressionOptions { protected_frames: 3, ..small() }
}

/// Everything of a context, and what its window did.
fn seen(window: &mut ContextWindow, history: &mut History) -> String {
    let request = RenderRequest::default();
    match window.render(history, &request, &OutlineEngine, NOW) {
        Ok(fitted) => {
            format!("{} {:?} {:?}", fitted.context.to_json(), fitted.epoch, fitted.dropped)
        }
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(48),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_window_seals_what_is_missing_once_and_makes_the_same_contexts(
        frames in histories::history(30),
        captured in vec(any::<bool>(), 30),
        renders in vec(prop::bool::weighted(0.3), 30),
        young in 0..9_usize,
        tokens in 60..600_u64,
    ) {
        let (lazy, written) = hud(CapturePolicy::OlderThan(young));
        let (eager, all) = hud(CapturePolicy::OnPush);
        let (mut mixed, mut full) = (History::new(), History::new());
        let budget = Budget::new(tokens);
        let mut window = ContextWindow::new(lazy.clone(), budget, options());
        let mut other = ContextWindow::new(eager.clone(), budget, options());
        let mut missing = Vec::new();
        for ((frame, is_captured), renders) in frames.iter().zip(&captured).zip(&renders) {
            eager.capture(&mut full, frame.clone(), NOW).unwrap();
            if *is_captured {
                let sealed = native().capture(&mut mixed, frame.clone(), NOW).unwrap();
                prop_assert!(sealed.rendered_snapshot.is_some());
            } else {
                lazy.capture(&mut mixed, frame.clone(), NOW).unwrap();
                missing.push(frame.sequence);
            }
            if *renders {
                let request = RenderRequest::default();
                let fitted = window.render(&mut mixed, &request, &OutlineEngine, NOW);
                let expected = other.render(&mut full, &request, &OutlineEngine, NOW);
                match (fitted, expected) {
                    (Ok(fitted), Ok(expected)) => {
                        prop_assert_eq!(fitted.context.to_json(), expected.context.to_json());
                        prop_assert_eq!(fitted.epoch, expected.epoch);
                        prop_assert_eq!(&fitted.sealed[..], &std::mem::take(&mut missing)[..]);
                        prop_assert!(expected.sealed.is_empty());
                    }
                    (Err(fitted), Err(expected)) => {
                        prop_assert_eq!(fitted.to_string(), expected.to_string());
                        prop_assert_eq!(fitted.kind(), ErrorKind::OverBudget);
                    }
                    (fitted, expected) => {
                        return Err(TestCaseError::fail(format!("{fitted:?} {expected:?}")));
                    }
                }
            }
        }
        prop_assert_eq!(seen(&mut window, &mut mixed), seen(&mut other, &mut full));
        for block in window.transform().blocks() {
            let expected = within(&originals(&frames), block.from, block.to);
            prop_assert_eq!(texts(&block.expand().unwrap()), expected);
        }
        // No frame was written twice, and none that had a snapshot: the rest are summaries.
        let (written, all) = (written.0.load(Ordering::Relaxed), all.0.load(Ordering::Relaxed));
        prop_assert!(written <= all, "{} of {}", written, all);
    }
}

#[test]
fn frames_that_are_captured_lazily_are_each_rendered_once_however_many_contexts_hold_them() {
    let (hud, written) = hud(CapturePolicy::OnFirstRender);
    let frames = turns(20);
    let mut history = History::new();
    let mut window = ContextWindow::new(hud.clone(), Budget::new(1_500), options());
    let mut sealed = Vec::new();
    for frame in &frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        let request = RenderRequest::default();
        let fitted = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
        assert_eq!(fitted.sealed.len(), 1);
        sealed.extend_from_slice(&fitted.sealed);
        let again = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
        assert!(again.sealed.is_empty());
    }
    assert!(sealed.iter().copied().eq(frames.iter().map(|frame| frame.sequence)));
    let facets: usize = frames.iter().map(|frame| frame.ops.len()).sum();
    let blocks = window.transform().ranges().count();
    let written = written.0.load(Ordering::Relaxed);
    assert!(blocks > 0 && (facets..=facets + blocks).contains(&written), "{written} of {facets}");
}

#[test]
fn a_plan_goes_as_far_as_old_frames_are_captured() {
    let (hud, written) = hud(CapturePolicy::OlderThan(6));
    let frames = turns(15);
    let (mut history, mut transform) = (History::new(), CompressionTransform::new(options()));
    for frame in &frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        hud.capture_missing(&mut history, NOW).unwrap();
        compressing::run(&native(), &mut transform, &history);
        let young = history.frames().len().saturating_sub(6);
        let first = history.frames().sequence(young);
        assert_eq!(transform.first_unsealed(&history), first);
        assert!(transform.blocks().all(|block| first.is_none_or(|first| block.to < first)));
    }
    assert!(history.frames().slice(54..60).all(|frame| frame.rendered_snapshot.is_none()));
    // The six young frames are the newest that are protected.
    let last = transform.blocks().map(|block| block.to).max().unwrap();
    assert!(last.get() >= 48, "{last}");
    for block in transform.blocks() {
        let expected = within(&originals(&frames), block.from, block.to);
        assert_eq!(texts(&block.expand().unwrap()), expected);
    }
    let facets: usize = frames.iter().take(54).map(|frame| frame.ops.len()).sum();
    assert_eq!(written.0.load(Ordering::Relaxed), facets);
    // The rest is sealed by whoever wants all of it planned.
    let render = |frame: &Frame, shown: &_| hud.render_frame(frame, shown, NOW);
    let planned = transform.plan_sealing(&mut history, render).unwrap();
    assert_eq!(planned.sealed, (54..60).map(FrameSeq::new).collect::<Vec<_>>());
    assert_eq!(transform.first_unsealed(&history), None);
}

#[test]
fn originals_that_are_forgotten_leave_their_block_and_its_context() {
    let (hud, _) = hud(CapturePolicy::OnFirstRender);
    let mut history = History::new();
    for frame in turns(20) {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    let mut window = ContextWindow::new(hud, Budget::new(1_500), options());
    let request = RenderRequest::default();
    let before = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let block = window.transform().blocks().next().unwrap().clone();
    let (id, range) = (Arc::clone(&block.id), block.from..=block.to);
    let snapshots: Vec<_> =
        block.expand().unwrap().iter().map(|of| Arc::downgrade(&of.snapshot)).collect();
    drop(block);
    let totals = window.forget(&mut history, &id).unwrap();
    assert_eq!(totals.frames, range.end().get() - range.start().get() + 1);
    assert!(totals.bytes > 0);
    assert!(snapshots.iter().all(|of| of.strong_count() == 0), "a snapshot is still held");
    assert!(history.frames().is_forgotten(range.start().get() as usize));
    assert_eq!(window.expand(&history, &id).unwrap_err().kind(), ErrorKind::Dropped);
    assert_eq!(window.undo(&history, &id).unwrap_err().kind(), ErrorKind::Dropped);
    let after = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(after.context.to_json(), before.context.to_json());
    assert!(after.epoch.is_none());
    let error = window.forget(&mut history, "block-x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[cfg(feature = "storage")]
#[test]
fn originals_that_are_archived_on_disk_expand_from_there() {
    use afterimage::{log::Holder, snapshot::SnapshotArchive};

    let (hud, _) = hud(CapturePolicy::OlderThan(4));
    let frames = turns(20);
    let mut history = History::new();
    for frame in &frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
    }
    let mut window = ContextWindow::new(hud.clone(), Budget::new(1_500), options());
    let request = RenderRequest::default();
    let before = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("archive");
    history.archive().unwrap().save(&directory, &Holder::new("test")).unwrap();
    let opened = SnapshotArchive::open(&directory).unwrap();
    let archive = opened.archive.reader();
    let block = window.transform().blocks().next().unwrap().clone();
    let snapshots: Vec<_> =
        block.expand().unwrap().iter().map(|of| Arc::downgrade(&of.snapshot)).collect();
    let (id, from, to) = (Arc::clone(&block.id), block.from, block.to);
    drop(block);
    let empty = SnapshotArchive::new();
    assert_eq!(window.spill(&mut history, &id, &empty).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(window.expand(&history, &id).is_ok() && !history.frames().is_forgotten(0));
    let totals = window.spill(&mut history, &id, &archive).unwrap();
    assert_eq!(totals.frames, to.get() - from.get() + 1);
    assert!(snapshots.iter().all(|of| of.strong_count() == 0), "a snapshot is still held");
    assert_eq!(window.expand(&history, &id).unwrap_err().kind(), ErrorKind::Stored);
    let expanded = window.expand_from(&history, &archive, &id).unwrap();
    assert_eq!(texts(&expanded), within(&originals(&frames), from, to));
    let after = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert_eq!(after.context.to_json(), before.context.to_json());
}

#[test]
fn a_fitter_says_which_frames_it_sealed() {
    let (hud, format) = hud(CapturePolicy::OnFirstRender);
    let frames = turns(6);
    let mut history = History::new();
    for (at, frame) in frames.iter().enumerate() {
        if at % 3 == 0 {
            native().capture(&mut history, frame.clone(), NOW).unwrap();
        } else {
            history.push(frame.clone()).unwrap();
        }
    }
    let missing: Vec<FrameSeq> = history
        .frames()
        .filter(|of| of.rendered_snapshot.is_none())
        .map(|of| of.sequence)
        .collect();
    assert!(!missing.is_empty());
    let fitter = RequestFitter::new(hud, Budget::once(2_000));
    let fitted = fitter.fit(&mut history, &OutlineEngine, NOW, |_| {}).unwrap();
    assert!(matches!(fitted.fit, Fit::Fits(_)));
    assert_eq!(fitted.sealed, missing);
    assert!(format.0.load(Ordering::Relaxed) > 0);
    let again = fitter.fit(&mut history, &OutlineEngine, NOW, |_| {}).unwrap();
    assert_eq!(again.sealed, []);
}

#[test]
fn another_history_is_refused_before_it_is_sealed() {
    let (hud, _) = hud(CapturePolicy::OnFirstRender);
    let (mut history, mut other) = (History::new(), History::new());
    for frame in turns(3) {
        history.push(frame.clone()).unwrap();
        other.push(Frame { sequence: (frame.sequence.get() + 100).into(), ..frame }).unwrap();
    }
    let mut window = ContextWindow::new(hud, Budget::new(4_000), options());
    let request = RenderRequest::default();
    window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    let error = window.render(&mut other, &request, &OutlineEngine, NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sequence);
    assert!(other.frames().all(|frame| frame.rendered_snapshot.is_none()));
}
