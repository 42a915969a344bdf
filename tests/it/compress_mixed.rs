//! Frames without a snapshot are rendered as they were; those with one never again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing;
use crate::support::histories;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use afterimage::{
    Result,
    compress::CompressionTransform,
    hud::{Canvas, Format, Hud, XmlFormat},
    id::Role,
    tokens::Chars4,
    veil::{Facet, Frame, History},
};
use compressing::{NOW, hud, request, small};
use proptest::{collection::vec, prelude::*};

/// Counts how many frames' turns and facets are written.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Format for Counting {
    fn id(&self) -> &str {
        XmlFormat.id()
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        XmlFormat.facet(facet, canvas)
    }

    fn turn(&self, role: Role) -> Option<(&str, &str)> {
        XmlFormat.turn(role)
    }

    fn separator(&self, role: Role) -> &str {
        XmlFormat.separator(role)
    }
}

/// How many facets are written when these frames are captured.
fn written(frames: &[Frame]) -> Vec<usize> {
    let format = Arc::new(Counting::default());
    let hud = Hud::builder(Arc::new(Chars4)).format(format.clone()).build();
    let mut history = History::new();
    let capture = |frame: &Frame| {
        let before = format.0.load(Ordering::Relaxed);
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        format.0.load(Ordering::Relaxed) - before
    };
    frames.iter().map(capture).collect()
}

/// Everything that compression makes of a history.
fn compressed(history: &History) -> Vec<String> {
    let mut transform = CompressionTransform::new(small());
    let mut seen = Vec::new();
    transform.plan(history).unwrap();
    while let Some(job) = transform.next_job(history, NOW).unwrap() {
        let (text, ops, tail) = (job.text(), &job.net_ops, &job.tail);
        let tail: Vec<&str> = tail.iter().map(|passage| passage.snapshot.text()).collect();
        seen.push(format!("{} {text:?} {ops:?} {tail:?} {}", job.id, job.token_limit));
        if compressing::complete(&hud(), &mut transform, history, &job).is_err() {
            transform.fail(&job, "does not fit", NOW).unwrap();
        }
    }
    transform.apply();
    compressing::run(&hud(), &mut transform, history);
    seen.extend(
        transform.blocks().map(|block| format!("{} {:?}", block.to_json(), block.snapshot)),
    );
    let context = hud().render(history, &request(&transform), NOW).unwrap();
    seen.push(context.to_json().to_string());
    seen
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(64),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn mixed_histories_compress_to_the_same_bytes_as_full_ones(
        frames in histories::history(30),
        has_snapshot in vec(any::<bool>(), 30),
    ) {
        let format = Arc::new(Counting::default());
        let hud = Hud::builder(Arc::new(Chars4)).format(format.clone()).build();
        let full = compressing::captured(&hud, &frames);
        let mut mixed = History::new();
        for (frame, has_snapshot) in frames.iter().zip(&has_snapshot) {
            if *has_snapshot {
                hud.capture(&mut mixed, frame.clone(), NOW).unwrap();
            } else {
                mixed.push(frame.clone()).unwrap();
            }
        }
        let missing = has_snapshot.iter().take(frames.len()).filter(|has| !**has).count();
        // A plan goes as far as the frames are sealed.
        let first = has_snapshot.iter().take(frames.len()).position(|has| !has);
        let mut transform = CompressionTransform::new(small());
        transform.plan(&mixed).unwrap();
        let first = first.map(|at| frames[at].sequence);
        prop_assert_eq!(transform.first_unsealed(&mixed), first);
        let is_before = |to: u64| first.is_none_or(|first| to < first.get());
        let end = |facet: &Facet| facet.state.as_ref()?.pointer("/to")?.as_u64();
        let ends = transform.facets().iter().map(|facet| end(facet).unwrap()).max();
        prop_assert!(ends.is_none_or(is_before));
        let before = format.0.load(Ordering::Relaxed);
        prop_assert_eq!(hud.capture_missing(&mut mixed, NOW).unwrap(), missing);
        let rendered = format.0.load(Ordering::Relaxed) - before;
        // Those with a snapshot are not rendered again.
        let of_missing = written(&frames).into_iter().zip(&has_snapshot);
        let of_missing: usize = of_missing.filter(|(_, has)| !**has).map(|(count, _)| count).sum();
        prop_assert_eq!(rendered, of_missing);
        prop_assert_eq!(compressed(&mixed), compressed(&full));
    }
}
