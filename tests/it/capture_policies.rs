//! Whenever frames are sealed, they hold what was shown: every policy gives the bytes and chunks
//! of a capture on push.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::histories;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use afterimage::{
    Error, Result,
    hud::{
        Canvas, CapturePolicy, Format, Hud, RenderRequest, RenderedContext, XmlFormat,
        format_by_name,
    },
    id::{FacetType, FrameSeq, Millis},
    json::{Object, Value},
    snapshot::FrameSnapshot,
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
};
use histories::history;
use proptest::{collection::vec, option, prelude::*, sample::select};

const NOW: Millis = Millis::new(1_763_683_200_000);

fn hud(format: &str, policy: CapturePolicy) -> Hud {
    let format = format_by_name(format).unwrap();
    Hud::builder(Arc::new(Chars4)).format(format).capture_policy(policy).build()
}

/// Everything of a context that can be seen from outside.
fn seen(context: &RenderedContext) -> String {
    format!("{} {:?}", context.to_json(), context.tail())
}

fn policy() -> impl Strategy<Value = CapturePolicy> {
    prop_oneof![
        Just(CapturePolicy::OnPush),
        Just(CapturePolicy::OnFirstRender),
        (0..6_usize).prop_map(CapturePolicy::OlderThan),
    ]
}

/// What happens after a frame is pushed.
#[derive(Clone, Debug)]
enum Step {
    Nothing,
    CaptureMissing,
    /// A context of all frames, or of so many from a place on.
    Render(Option<(usize, usize)>),
    CaptureAndRender(Option<(usize, usize)>),
}

fn step() -> impl Strategy<Value = Step> {
    let range = || option::of((0..10_usize, 0..4_usize));
    prop_oneof![
        3 => Just(Step::Nothing),
        1 => Just(Step::CaptureMissing),
        1 => range().prop_map(Step::Render),
        2 => range().prop_map(Step::CaptureAndRender),
    ]
}

fn request(history: &History, range: Option<(usize, usize)>) -> RenderRequest {
    let frames = history.frames();
    let at = |index: usize| frames.sequence(index.min(frames.len() - 1)).unwrap();
    let frames = range.map(|(from, len)| at(from)..=at(from + len));
    RenderRequest { frames, ..RenderRequest::default() }
}

fn snapshot(history: &History, index: usize) -> Option<Arc<FrameSnapshot>> {
    history.frames().snapshot(index)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_gives_what_capture_on_push_gives(
        frames in history(10),
        format in select(&["xml", "plain", "native"][..]),
        policy in policy(),
        steps in vec((any::<bool>(), step()), 10),
    ) {
        let (eager, late) = (hud(format, CapturePolicy::OnPush), hud(format, policy));
        let (mut expected, mut history) = (History::new(), History::new());
        let mut sealed: Vec<Option<Arc<FrameSnapshot>>> = Vec::new();
        for (frame, (plain, step)) in frames.iter().zip(&steps) {
            eager.capture(&mut expected, frame.clone(), NOW).unwrap();
            if *plain {
                history.push(frame.clone()).unwrap();
            } else {
                late.capture(&mut history, frame.clone(), NOW).unwrap();
            }
            let without = || history.frames().filter(|frame| frame.rendered_snapshot.is_none()).count();
            match step {
                Step::Nothing => {}
                Step::CaptureMissing => {
                    let before = without();
                    let count = late.capture_missing(&mut history, NOW).unwrap();
                    prop_assert_eq!(count, before - history.frames().filter(|frame| frame.rendered_snapshot.is_none()).count());
                    let young = if let CapturePolicy::OlderThan(young) = policy { young } else { 0 };
                    for index in 0..history.frames().len().saturating_sub(young) {
                        prop_assert!(snapshot(&history, index).is_some());
                    }
                }
                Step::Render(range) => {
                    let request = request(&history, *range);
                    let context = late.render(&history, &request, NOW).unwrap();
                    prop_assert_eq!(seen(&context), seen(&eager.render(&expected, &request, NOW).unwrap()));
                }
                Step::CaptureAndRender(range) => {
                    let request = request(&history, *range);
                    let context = late.capture_and_render(&mut history, &request, NOW).unwrap();
                    prop_assert_eq!(seen(&context), seen(&eager.render(&expected, &request, NOW).unwrap()));
                }
            }
            // What is sealed is what was shown, and is never sealed again.
            sealed.resize(history.frames().len(), None);
            for (index, sealed) in sealed.iter_mut().enumerate() {
                if let Some(found) = snapshot(&history, index) {
                    prop_assert_eq!(&found, &snapshot(&expected, index).unwrap());
                    prop_assert!(Arc::ptr_eq(sealed.get_or_insert_with(|| Arc::clone(&found)), &found));
                } else {
                    prop_assert!(sealed.is_none());
                }
            }
        }
        hud(format, CapturePolicy::OnFirstRender).capture_missing(&mut history, NOW).unwrap();
        prop_assert!(history.frames().eq(expected.frames()));
    }
}

fn say(sequence: u64, content: &str) -> Frame {
    let facet = Facet::new(format!("event-{sequence}"), FacetType::EVENT, content);
    Frame::new(sequence, Source::User).with(FacetOp::add(facet))
}

fn texts(history: &History) -> Vec<Option<String>> {
    let frames = history.frames();
    frames.map(|frame| Some(frame.rendered_snapshot.as_ref()?.text().to_owned())).collect()
}

#[test]
fn a_late_capture_shows_what_was_rewritten_and_removed_since() {
    let hull = Facet::new("hull", FacetType::STATE, "Hull at 98 %");
    let changes = Object::from_iter([("content", Value::from("Hull at 12 %"))]);
    let mut history = History::new();
    let hud = hud("plain", CapturePolicy::OnFirstRender);
    for frame in [
        Frame::new(0, Source::Environment).with(FacetOp::add(hull)),
        Frame::new(1, Source::Environment).with(FacetOp::rewrite("hull", changes)),
        Frame::new(2, Source::Environment).with(FacetOp::remove("hull")),
    ] {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    assert_eq!(texts(&history), [None, None, None]);
    let taken = Arc::clone(&history.frames().get(0).unwrap());
    assert_eq!(hud.capture_missing(&mut history, NOW).unwrap(), 3);
    assert_eq!(
        texts(&history),
        ["Hull at 98 %", "Hull at 12 %", ""].map(|text| Some(text.to_owned()))
    );
    assert_eq!(hud.capture_missing(&mut history, NOW).unwrap(), 0);
    // A frame that somebody holds is not changed under them.
    assert!(taken.rendered_snapshot.is_none());
}

#[test]
fn young_frames_stay_without_a_snapshot_and_rendered_ranges_alone_are_sealed() {
    let push = |history: &mut History, hud: &Hud| {
        for sequence in 0..5 {
            hud.capture(history, say(sequence, "text"), NOW).unwrap();
        }
    };
    let is_sealed =
        |history: &History| texts(history).iter().map(Option::is_some).collect::<Vec<_>>();
    let (mut history, older) = (History::new(), hud("plain", CapturePolicy::OlderThan(2)));
    push(&mut history, &older);
    older.capture_and_render(&mut history, &RenderRequest::default(), NOW).unwrap();
    assert_eq!(is_sealed(&history), [true, true, true, false, false]);

    let (mut history, lazy) = (History::new(), hud("plain", CapturePolicy::OnFirstRender));
    push(&mut history, &lazy);
    let frames = Some(FrameSeq::new(1)..=FrameSeq::new(2));
    let request = RenderRequest { frames, ..RenderRequest::default() };
    lazy.capture_and_render(&mut history, &request, NOW).unwrap();
    assert_eq!(is_sealed(&history), [false, true, true, false, false]);
    assert_eq!(lazy.capture_missing(&mut history, NOW).unwrap(), 3);
}

#[test]
fn a_frame_that_brings_a_snapshot_keeps_it_and_an_answer_its_tail() {
    for policy in [CapturePolicy::OnPush, CapturePolicy::OnFirstRender, CapturePolicy::OlderThan(0)]
    {
        let (mut history, hud) = (History::new(), hud("plain", policy));
        let brought = hud
            .render_frame(&say(0, ""), &afterimage::veil::VisibleFacets::default(), NOW)
            .unwrap();
        let brought = Arc::new(brought);
        let frame = Frame { rendered_snapshot: Some(Arc::clone(&brought)), ..say(0, "text") };
        hud.capture(&mut history, frame, NOW).unwrap();
        let radar = Facet::new("radar", FacetType::AMBIENT, "One contact.");
        let frame = Frame::new(1, Source::Environment).with(FacetOp::add(radar));
        hud.capture(&mut history, frame, NOW).unwrap();
        let context = hud.capture_and_render(&mut history, &RenderRequest::default(), NOW).unwrap();
        hud.capture_answer(&mut history, Frame::new(2, Source::Agent), &context, NOW).unwrap();
        hud.capture_missing(&mut history, NOW).unwrap();
        assert!(Arc::ptr_eq(&snapshot(&history, 0).unwrap(), &brought));
        assert_eq!(history.frames().get(2).unwrap().rendered_tail.as_ref(), context.tail());
        assert!(context.tail().is_some());
    }
}

#[test]
fn a_range_that_ends_before_what_was_sealed_has_the_tail_of_its_own_end() {
    let (mut history, hud) = (History::new(), hud("plain", CapturePolicy::OnFirstRender));
    hud.capture(&mut history, say(0, "text"), NOW).unwrap();
    let radar = Facet::new("radar", FacetType::AMBIENT, "One contact.");
    let frame = Frame::new(1, Source::Environment).with(FacetOp::add(radar));
    hud.capture(&mut history, frame, NOW).unwrap();
    hud.capture_missing(&mut history, NOW).unwrap();
    let tail_at = |sequence: u64| {
        let frames = Some(FrameSeq::new(0)..=FrameSeq::new(sequence));
        let request = RenderRequest { frames, ..RenderRequest::default() };
        let context = hud.render(&history, &request, NOW).unwrap();
        context.tail().map(|tail| tail.text().to_owned())
    };
    assert_eq!([0, 1].map(tail_at), [None, Some("One contact.".to_owned())]);
}

/// Counts facets, and fails at those that say `fail` as long as it is told to.
#[derive(Default)]
struct Counting {
    facets: AtomicUsize,
    heals_after: AtomicUsize,
}

impl Format for Counting {
    fn id(&self) -> &'static str {
        "counting"
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        self.facets.fetch_add(1, Ordering::Relaxed);
        if facet.content == "fail" && self.heals_after.load(Ordering::Relaxed) > 0 {
            self.heals_after.fetch_sub(1, Ordering::Relaxed);
            // Any error will do.
            return Err(afterimage::json::read(b"").unwrap_err().into());
        }
        XmlFormat.facet(facet, canvas)
    }
}

#[test]
fn a_frame_is_rendered_once_however_many_contexts_hold_it() {
    let format = Arc::new(Counting::default());
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::clone(&format) as Arc<dyn Format>);
    let hud = hud.capture_policy(CapturePolicy::OnFirstRender).build();
    let mut history = History::new();
    for sequence in 0..20 {
        hud.capture(&mut history, say(sequence, "text"), NOW).unwrap();
        for _ in 0..sequence % 3 {
            hud.capture_and_render(&mut history, &RenderRequest::default(), NOW).unwrap();
        }
    }
    hud.capture_missing(&mut history, NOW).unwrap();
    assert_eq!(format.facets.load(Ordering::Relaxed), 20);
}

#[test]
fn a_format_that_fails_leaves_the_frames_before_sealed_and_the_rest_to_be_sealed_later() {
    let format = Arc::new(Counting::default());
    format.heals_after.store(1, Ordering::Relaxed);
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::clone(&format) as Arc<dyn Format>);
    let hud = hud.capture_policy(CapturePolicy::OnFirstRender).build();
    let mut history = History::new();
    for (sequence, content) in (0..).zip(["one", "two", "fail", "three"]) {
        hud.capture(&mut history, say(sequence, content), NOW).unwrap();
    }
    let error: Error = hud.capture_missing(&mut history, NOW).unwrap_err();
    assert_eq!((error.place().frame, error.place().facet.as_deref()), (Some(2), Some("event-2")));
    assert_eq!(
        texts(&history),
        [Some("one"), Some("two"), None, None].map(|text| text.map(str::to_owned))
    );
    assert_eq!(hud.capture_missing(&mut history, NOW).unwrap(), 2);
    assert_eq!(texts(&history), ["one", "two", "fail", "three"].map(|text| Some(text.to_owned())));
}
