//! The invariants of the design, each a property over generated histories that bears its name.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::histories;
use crate::support::veil_model;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use afterimage::{
    ErrorKind,
    hud::{
        Format, Hud, Merge, Owner, ProviderFraming, RenderRequest, RenderedContext, format_by_name,
    },
    id::{FrameSeq, Millis, Role},
    json::{self, Object, Value},
    snapshot::{ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, SnapshotOptions},
    tokens::TokenCounter,
    veil::{Facet, FacetChange, FacetOp, Frame, History, PartContent, Source, Veil},
};
use histories::{history, text};
use proptest::{collection::vec, option, prelude::*, sample::select};
use veil_model::VeilModel;

const NOW: Millis = Millis::new(1_763_683_200_000);

/// The usual number of cases, or `PROPTEST_CASES`, divided by `by`.
fn config(by: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.div_ceil(by), failure_persistence: None, ..usual }
}

/// Counts words: every run without white space is a token, so that joining texts matters.
struct Words;

impl TokenCounter for Words {
    fn id(&self) -> &'static str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// What a [`Hud`] is made of.
#[derive(Clone, Debug)]
struct Setup {
    format: &'static str,
    options: SnapshotOptions,
}

impl Setup {
    fn hud(&self) -> Hud {
        self.counting(Arc::new(Words))
    }

    fn counting(&self, counter: Arc<dyn TokenCounter>) -> Hud {
        Hud::builder(counter)
            .format(format_by_name(self.format).unwrap())
            .snapshot_options(self.options.clone())
            .build()
    }
}

fn setup() -> impl Strategy<Value = Setup> {
    let longest = prop_oneof![3 => Just(None), 1 => select(&[1, 5, 16][..]).prop_map(Some)];
    let (attribution, metadata) = (prop::bool::weighted(0.9), prop::bool::weighted(0.9));
    (select(&["xml", "plain", "native"][..]), longest, attribution, metadata).prop_map(
        |(format, max_chunk_bytes, attribution, metadata)| {
            let options = SnapshotOptions { max_chunk_bytes, attribution, metadata };
            Setup { format, options }
        },
    )
}

fn request() -> impl Strategy<Value = RenderRequest> {
    let pending = vec(select(&["radar", "</pending_activations>", ""][..]), 0..3);
    let merge = select(&[Merge::PerFrame, Merge::AdjacentRoles][..]);
    (option::of(text()), merge, pending, option::of(text()), 0..9_u64, 0..9_u64).prop_map(
        |(system_prompt, merge, pending, prefill, per_message, per_reply)| RenderRequest {
            context_id: "context-1".into(),
            system_prompt,
            merge,
            pending_activations: pending.into_iter().map(str::to_owned).collect(),
            prefill,
            framing: ProviderFraming { per_message, per_reply },
            ..RenderRequest::default()
        },
    )
}

fn capture(hud: &Hud, frames: &[Frame]) -> History {
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

fn snapshots(history: &History) -> Vec<Arc<FrameSnapshot>> {
    history.frames().map(|frame| frame.rendered_snapshot.clone().unwrap()).collect()
}

/// A history of the same frames in which those that `loses` picks have lost their snapshots.
fn without_snapshots(history: &History, loses: impl Fn(usize) -> bool) -> History {
    let mut again = History::new();
    for (index, frame) in history.frames().enumerate() {
        let mut frame = Frame::clone(&frame);
        if loses(index) {
            frame.rendered_snapshot = None;
        }
        again.push(frame).unwrap();
    }
    again
}

/// Everything of a context that can be seen from outside.
fn seen(context: &RenderedContext) -> String {
    format!("{} {:?}", context.to_json(), context.tail())
}

fn check_tiling(snapshot: &FrameSnapshot) {
    let mut end = 0;
    for chunk in snapshot.chunks() {
        let range = chunk.range();
        assert_eq!(range.start(), end);
        assert!(snapshot.text().is_char_boundary(range.end()));
        assert_eq!(chunk.content(), &snapshot.text()[range.start()..range.end()]);
        end = range.end();
    }
    assert_eq!(end, snapshot.text().len());
}

fn check_owned_bytes(context: &RenderedContext, request: &RenderRequest) {
    let mut framed = Vec::new();
    let mut tail = BTreeMap::new();
    for (index, message) in context.messages().iter().enumerate() {
        let content = message.content();
        assert_eq!(message.len(), content.len());
        let mut end = 0;
        for span in context.spans(message) {
            assert_eq!(span.range.start(), end);
            assert!(!span.range.is_empty(), "an empty span in message {index}");
            assert!(content.is_char_boundary(span.range.end()));
            end = span.range.end();
            for byte in span.range.start()..end {
                assert_eq!(
                    context.owner_of(index, byte).as_ref(),
                    Some(&span.owner),
                    "byte {byte}"
                );
            }
            if let Owner::Framing(name) = span.owner {
                framed.push((name, span.range.of(&content).to_owned()));
            }
        }
        assert_eq!(end, content.len());
        assert_eq!(context.owner_of(index, end), None);
        for (frame, chunk) in message.chunks() {
            match frame {
                Some(frame) => assert_eq!(context.message_of(frame), Some(index)),
                None => *tail.entry(chunk.index()).or_insert(0) += 1,
            }
        }
    }
    assert_eq!(context.owner_of(context.messages().len(), 0), None);
    let prompt = request.system_prompt.as_deref().filter(|prompt| !prompt.is_empty());
    let prompts: Vec<_> = framed.iter().filter(|(name, _)| *name == "system_prompt").collect();
    assert_eq!(prompts.first().map(|(_, text)| text.as_str()), prompt);
    assert!(framed.iter().all(|(name, _)| ["system_prompt", "separator"].contains(name)));
    // A tail without text is no message.
    let chunks = context.tail().filter(|tail| !tail.text().is_empty()).map_or(0, |tail| tail.len());
    assert_eq!(
        tail.into_iter().collect::<Vec<_>>(),
        (0..chunks).map(|at| (at, 1)).collect::<Vec<_>>()
    );
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn tiling(frames in history(6), setup in setup(), request in request()) {
        let hud = setup.hud();
        let history = capture(&hud, &frames);
        snapshots(&history).iter().for_each(|snapshot| check_tiling(snapshot));
        if let Some(tail) = hud.render(&history, &request, NOW).unwrap().tail() {
            check_tiling(tail);
        }
        if let Some(longest) = setup.options.max_chunk_bytes {
            let all = snapshots(&history);
            let chunks = all.iter().flat_map(|snapshot| snapshot.chunks());
            for chunk in chunks.filter(|chunk| chunk.range().len() > longest) {
                prop_assert_eq!(chunk.content().chars().count(), 1);
            }
        }
    }

    #[test]
    fn one_renderer(
        frames in history(6),
        setup in setup(),
        request in request(),
        lost in any::<u64>(),
    ) {
        let hud = setup.hud();
        let history = capture(&hud, &frames);
        let mut veil = Veil::default();
        for frame in history.frames() {
            let shown = veil.apply(&frame).unwrap();
            let rendered = hud.render_frame(&frame, &shown, NOW).unwrap();
            prop_assert_eq!(frame.rendered_snapshot.as_deref(), Some(&rendered));
        }
        let captured = seen(&hud.render(&history, &request, NOW).unwrap());
        for loses in [u64::MAX, lost] {
            let again = without_snapshots(&history, |index| loses >> index & 1 == 1);
            let rendered = hud.render(&again, &request, NOW).unwrap();
            prop_assert_eq!(&seen(&rendered), &captured);
        }
    }

    #[test]
    fn frozen_past(frames in history(8), cut in 0..8_usize, setup in setup(), request in request()) {
        let hud = setup.hud();
        let cut = cut.min(frames.len());
        let mut history = capture(&hud, &frames[..cut]);
        let json = |history: &History| -> Vec<String> {
            history.frames().take(cut).map(|frame| frame.to_json().to_string()).collect()
        };
        let before = json(&history);
        let context = hud.render(&history, &request, NOW).unwrap();
        let seen_before = seen(&context);
        for frame in &frames[cut..] {
            hud.capture_answer(&mut history, frame.clone(), &context, NOW).unwrap();
            hud.render(&history, &request, NOW).unwrap();
        }
        prop_assert_eq!(json(&history), before);
        prop_assert_eq!(seen(&context), seen_before);
        for frame in history.frames().skip(cut) {
            prop_assert_eq!(&frame.rendered_tail, &context.tail().cloned());
        }
    }

    #[test]
    fn packed_frames_are_what_they_were(frames in history(12), setup in setup(), kept in option::of(0..12_usize)) {
        let hud = setup.hud();
        let mut history = History::new();
        let mut expected = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            expected.push(hud.capture(&mut history, frame.clone(), NOW).unwrap());
            if Some(index) == kept {
                history.shrink_to_fit();
            }
        }
        let facets = history.veil().facets();
        history.shrink_to_fit();
        prop_assert!(history.frames().eq(expected.iter().cloned()));
        prop_assert_eq!(history.veil().facets(), facets);
        let found = history.frames();
        for (index, frame) in expected.iter().enumerate() {
            prop_assert_eq!(found.sequence(index), Some(frame.sequence));
            prop_assert_eq!(found.source(index), Some(frame.source.clone()));
            let (packed, owned) = (found.snapshot(index).unwrap(), frame.rendered_snapshot.as_ref().unwrap());
            prop_assert_eq!(packed.to_json(), owned.to_json());
            for at in 0..=owned.text().len() {
                let of = |snapshot: &FrameSnapshot| snapshot.chunk_at(at).map(|chunk| (chunk.index(), chunk.range()));
                prop_assert_eq!(of(&packed), of(owned));
            }
        }
    }

    #[test]
    fn owned_bytes(
        frames in history(6),
        setup in setup(),
        request in request(),
        range in option::weighted(0.2, (0..6_u64, 0..6_u64)),
    ) {
        let hud = setup.hud();
        let history = capture(&hud, &frames);
        let first = history.frames().first().map_or(0, |frame| frame.sequence.get());
        let wanted = range.map(|(a, b)| FrameSeq::new(first + a)..=FrameSeq::new(first + b));
        let request = RenderRequest { frames: wanted.clone(), ..request };
        let context = hud.render(&history, &request, NOW);
        if wanted.is_some_and(|range| range.is_empty()) {
            prop_assert_eq!(context.unwrap_err().kind(), ErrorKind::OutOfRange);
            return Ok(());
        }
        let context = context.unwrap();
        check_owned_bytes(&context, &request);
        // Without a separator a context is the concatenation of what was captured, and nothing else.
        if request.merge == Merge::PerFrame {
            let frames = history.frames().filter(|frame| {
                request.frames.as_ref().is_none_or(|range| range.contains(&frame.sequence))
            });
            let text: String = frames
                .filter_map(|frame| frame.rendered_snapshot.clone())
                .chain(context.tail().cloned())
                .map(|snapshot| snapshot.text().to_owned())
                .collect();
            let found: String = context.messages().iter().map(|message| message.content().into_owned()).collect();
            prop_assert_eq!(found, request.system_prompt.clone().unwrap_or_default() + &text);
        }
    }

    #[test]
    fn deterministic(frames in history(6), setup in setup(), request in request()) {
        let hud = setup.hud();
        let history = capture(&hud, &frames);
        let once = seen(&hud.render(&history, &request, NOW).unwrap());
        let again = capture(&setup.hud(), &frames);
        prop_assert_eq!(&seen(&setup.hud().render(&again, &request, NOW).unwrap()), &once);

        let mut loaded = History::new();
        for frame in history.frames() {
            let wire = frame.to_json().to_string();
            let read = Frame::from_json(json::read(wire.as_bytes()).unwrap()).unwrap();
            prop_assert_eq!(&read, &*frame);
            prop_assert_eq!(read.to_json().to_string(), wire);
            loaded.push(read).unwrap();
        }
        prop_assert_eq!(&seen(&hud.render(&loaded, &request, NOW).unwrap()), &once);
        let unrendered = without_snapshots(&loaded, |_| true);
        prop_assert_eq!(&seen(&hud.render(&unrendered, &request, NOW).unwrap()), &once);
    }

    #[test]
    fn atomic_frames(
        frames in history(5),
        more in history(1),
        bad in bad_op(),
        at in 0..8_usize,
    ) {
        let hud = Hud::new(Arc::new(Words));
        let mut history = capture(&hud, &frames);
        let next = history.next_sequence().unwrap();
        let mut frame = Frame { sequence: next, ..Frame::default() };
        // Ops of a history of its own are good after removing nothing: they begin with additions.
        frame.ops = more.into_iter().flat_map(|frame| frame.ops).collect();
        let at = at.min(frame.ops.len());
        let (ops, kind) = bad;
        let (bad, id) = (at + ops.len() - 1, ops.last().unwrap().facet_id().to_string());
        frame.ops.splice(at..at, ops);

        let state = |history: &History| {
            let veil = history.veil();
            let facets: Vec<Value> = veil.facets().into_iter().map(|facet| facet.to_json()).collect();
            let ambient: Vec<_> = veil.ambient().map(|facet| facet.id.clone()).collect();
            (history.frames().len(), facets, ambient, veil.tags().iter().map(str::to_owned).collect::<BTreeSet<_>>())
        };
        let before = state(&history);
        let mut veil = history.veil().clone();
        let errors = [
            veil.apply(&frame).unwrap_err(),
            history.clone().push(frame.clone()).unwrap_err(),
            hud.capture(&mut history, frame.clone(), NOW).unwrap_err(),
            history.push(frame).unwrap_err(),
        ];
        for error in errors {
            prop_assert_eq!(error.kind(), kind, "{}", error);
            let place = error.place();
            prop_assert_eq!(
                (place.frame, place.op, place.facet.as_deref()),
                (Some(next.get()), Some(bad), Some(id.as_str())),
                "{}", error
            );
            let text = error.to_string();
            for part in [format!("frame {next}"), format!("op {bad}"), format!("facet {id:?}")] {
                prop_assert!(text.contains(&part), "{} lacks {}", text, part);
            }
        }
        prop_assert_eq!(state(&history), before);
        let facets: Vec<Value> = veil.facets().into_iter().map(|facet| facet.to_json()).collect();
        prop_assert_eq!(facets, state(&history).1);
    }

    #[test]
    fn shown_rules(frames in history(10)) {
        let (mut veil, mut model) = (Veil::default(), VeilModel::default());
        for frame in frames {
            let shown = veil.apply(&frame).unwrap();
            let expected = model.apply(&frame);
            let found: Vec<&Facet> = shown.facets.iter().map(AsRef::as_ref).collect();
            prop_assert_eq!(found, expected.iter().collect::<Vec<_>>(), "frame {}", frame.to_json());
            let holding = veil.facets();
            let holding: Vec<&Facet> = holding.iter().map(AsRef::as_ref).collect();
            prop_assert_eq!(holding, model.facets(), "after frame {}", frame.to_json());
            let ambient: Vec<_> = veil.ambient().collect();
            let ambient: Vec<&Facet> = ambient.iter().map(AsRef::as_ref).collect();
            let expected = model.facets().into_iter().filter(|facet| facet.facet_type == "ambient");
            prop_assert_eq!(ambient, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn snapshot_wire(frames in history(3), setup in setup(), damage in damage(), at in any::<prop::sample::Index>()) {
        let hud = setup.hud();
        for snapshot in snapshots(&capture(&hud, &frames)) {
            let wire = snapshot.to_json().to_string();
            let read = FrameSnapshot::from_json(json::read(wire.as_bytes()).unwrap()).unwrap();
            prop_assert_eq!(&read, &*snapshot);
            prop_assert_eq!(read.to_json().to_string(), wire.clone());

            let mut value = json::read(wire.as_bytes()).unwrap();
            if let Some(kind) = damage.apply(&mut value, at) {
                let found = FrameSnapshot::from_json(value.clone());
                prop_assert_eq!(found.map_err(|error| error.kind()), Err(kind), "{:?}: {}", damage, value);
            }
        }
    }
}

#[cfg(feature = "bpe")]
proptest! {
    // A real tokenizer takes its time in a debug build.
    #![proptest_config(config(3))]

    #[test]
    fn counted(frames in history(5), setup in setup(), request in request(), lost in any::<u64>()) {
        let counter = afterimage::tokens::default_counter();
        let count = |text: &str| counter.count(text) as u64;
        let hud = setup.counting(Arc::clone(&counter));
        let history = without_snapshots(&capture(&hud, &frames), |index| lost >> index & 1 == 1);
        let context = hud.render(&history, &request, NOW).unwrap();
        let captured = history.frames().filter_map(|frame| frame.rendered_snapshot.clone());
        for snapshot in captured.chain(context.tail().cloned()) {
            for chunk in snapshot.chunks() {
                prop_assert_eq!(chunk.tokens(), count(chunk.content()), "{:?}", chunk);
            }
            let sum: u64 = snapshot.chunks().map(|chunk| chunk.tokens()).sum();
            prop_assert_eq!(snapshot.total_tokens(), sum);
            prop_assert_eq!(snapshot.exact_tokens(), Some(count(snapshot.text())));
        }
        check_figures(&context, &request, &count);
        // Counts by another tokenizer are not this one's: everything is counted again.
        let other = setup.hud().render(&capture(&hud, &frames), &request, NOW).unwrap();
        check_figures(&other, &request, &|text| Words.count(text) as u64);
    }
}

#[cfg(feature = "bpe")]
fn check_figures(context: &RenderedContext, request: &RenderRequest, count: &dyn Fn(&str) -> u64) {
    let (mut chunks, mut exact) = (0, 0);
    for message in context.messages() {
        assert_eq!(message.tokens(), count(&message.content()), "{:?}", message.content());
        exact += message.tokens();
        chunks += message.chunks().map(|(_, chunk)| count(chunk.content())).sum::<u64>();
        let framing = context.spans(message).into_iter();
        let framing = framing.filter(|span| matches!(span.owner, Owner::Framing(_)));
        chunks += framing.map(|span| count(span.range.of(&message.content()))).sum::<u64>();
    }
    let ProviderFraming { per_message, per_reply } = request.framing;
    let framing = per_message * context.messages().len() as u64 + per_reply;
    let tokens = context.tokens();
    assert_eq!((tokens.chunks, tokens.exact), (chunks, exact));
    assert_eq!((tokens.framing, tokens.total), (framing, exact + framing));
}

#[test]
fn a_sequence_that_does_not_rise_is_refused_and_changes_nothing() {
    let hud = Hud::new(Arc::new(Words));
    let add = |sequence: u64, id: &str| {
        Frame::new(sequence, Source::User).with(FacetOp::add(Facet::new(id, "event", id)))
    };
    let mut history = capture(&hud, &[add(4, "a"), add(7, "b")]);
    for wrong in [0, 4, 5, 7] {
        let error = hud.capture(&mut history, add(wrong, "c"), NOW).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sequence);
        let expected =
            format!("sequences rise: expected one greater than 7, found {wrong} (frame {wrong})");
        assert_eq!(error.to_string(), expected);
        assert!(history.push(add(wrong, "c")).is_err());
    }
    assert_eq!((history.frames().len(), history.veil().len()), (2, 2));

    let mut last = capture(&hud, &[add(u64::MAX, "a")]);
    assert_eq!(last.next_sequence(), None);
    assert!(hud.capture(&mut last, add(0, "b"), NOW).is_err());
}

/// Ops whose last one cannot be applied, with the kind of error that it gives.
fn bad_op() -> impl Strategy<Value = (Vec<FacetOp>, ErrorKind)> {
    let facet = Facet::new("fresh", "state", "x");
    let rewrite = |key: &str, value: Value| {
        FacetOp::rewrite("fresh", Object::from_iter([(key.to_owned(), value)]))
    };
    let unset = |key: &str| {
        let unset = vec![json::Path::of_keys([key])];
        FacetOp::from(FacetChange::Rewrite { id: "fresh".into(), changes: Object::new(), unset })
    };
    let five = || Value::from(5_u64);
    let unknown = [
        vec![FacetOp::remove("nobody")],
        vec![FacetOp::rewrite("nobody", Object::new())],
        vec![FacetOp::add(facet.clone()), FacetOp::remove("fresh"), FacetOp::remove("fresh")],
        vec![FacetOp::add(facet.clone()), FacetOp::remove("fresh"), rewrite("state", five())],
        // A child cannot be named by ops of its own.
        vec![
            FacetOp::add(facet.clone().with_child(Facet::new("child", "event", "y"))),
            FacetOp::remove("child"),
        ],
    ];
    let shapes = [
        rewrite("id", "other".into()),
        rewrite("id", Value::Null),
        rewrite("type", Value::Null),
        rewrite("type", five()),
        rewrite("content", five()),
        rewrite("children", five()),
        rewrite("children", vec![five()].into()),
        rewrite("saliency", five()),
        unset("id"),
        unset("type"),
    ];
    let shapes = shapes.into_iter().map(|op| vec![FacetOp::add(facet.clone()), op]);
    let all: Vec<_> = unknown
        .into_iter()
        .map(|ops| (ops, ErrorKind::UnknownFacet))
        .chain(shapes.map(|ops| (ops, ErrorKind::Shape)))
        .collect();
    select(all)
}

/// A way to damage the JSON of a snapshot.
#[derive(Clone, Debug)]
enum Damage {
    DropChunk,
    SwapChunks,
    CutText,
    GrowText,
    ChangeContent,
    ChangeTokens,
    ChangeTotal,
    Member(&'static str, Value),
    ChunkMember(&'static str, Value),
}

fn damage() -> impl Strategy<Value = Damage> {
    let wrong = || {
        let texts = ["\"x\"", "-1", "1.5", "1e2", "18446744073709551616", "[]", "{}", "true"];
        texts.map(|text| json::read(text.as_bytes()).unwrap())
    };
    let is_wrong = |key: &str, value: &Value| match key {
        "totalContent" | "content" | "type" => value.as_str().is_none(),
        "chunks" | "facetIds" => value.as_array().is_none(),
        "metadata" => value.as_object().is_none(),
        "capturedAt" => value.to_string() != "-1",
        _ => true,
    };
    let members = ["chunks", "totalContent", "totalTokens", "capturedAt", "exactTokens", "madeBy"];
    let of_chunk =
        ["content", "tokens", "facetIds", "type", "role", "structure", "metadata", "part"];
    let pairs = |keys: Vec<&'static str>| -> Vec<(&'static str, Value)> {
        keys.into_iter()
            .flat_map(|key| wrong().map(|value| (key, value)))
            .filter(|(key, value)| is_wrong(key, value))
            .collect()
    };
    prop_oneof![
        select(vec![Damage::DropChunk, Damage::SwapChunks, Damage::CutText, Damage::GrowText]),
        select(vec![Damage::ChangeContent, Damage::ChangeTokens, Damage::ChangeTotal]),
        select(pairs(members.to_vec())).prop_map(|(key, value)| Damage::Member(key, value)),
        select(pairs(of_chunk.to_vec())).prop_map(|(key, value)| Damage::ChunkMember(key, value)),
    ]
}

impl Damage {
    /// Damages `value` and says what kind of error that is; `None` where there is nothing to damage.
    fn apply(&self, value: &mut Value, at: prop::sample::Index) -> Option<ErrorKind> {
        let Value::Object(object) = value else { unreachable!("a snapshot is an object") };
        let more = |value: &Value| Value::from(value.as_u64().unwrap() + 1);
        let Some(Value::Array(chunks)) = object.get_mut("chunks") else { unreachable!() };
        let index = (!chunks.is_empty()).then(|| at.index(chunks.len()));
        match self {
            Self::DropChunk => {
                let removed = chunks.remove(index?);
                // What is left still tiles where the chunk said nothing; then its tokens are missing.
                let said = removed.str_at("content") != Some("");
                // Chunks may point at one that is no more.
                let pointed = chunks.iter().any(|chunk| chunk.get("structure").is_some());
                return (said && !pointed).then_some(ErrorKind::Tiling);
            }
            Self::SwapChunks => {
                let next = index? + 1;
                let pair = [
                    chunks.get(next - 1)?.str_at("content")?,
                    chunks.get(next)?.str_at("content")?,
                ];
                if pair.concat() == [pair[1], pair[0]].concat() {
                    return None;
                }
                chunks.swap(next - 1, next);
            }
            Self::ChangeContent => {
                let Value::Object(chunk) = chunks.get_mut(index?)? else { unreachable!() };
                let content = format!("{}?", chunk["content"].as_str()?);
                chunk.insert("content".into(), content.into());
            }
            Self::ChangeTokens => {
                let Value::Object(chunk) = chunks.get_mut(index?)? else { unreachable!() };
                let tokens = more(&chunk["tokens"]);
                chunk.insert("tokens".into(), tokens);
                return Some(ErrorKind::Sum);
            }
            Self::ChunkMember(key, wrong) => {
                let Value::Object(chunk) = chunks.get_mut(index?)? else { unreachable!() };
                chunk.insert((*key).to_owned(), wrong.clone());
                return Some(ErrorKind::Shape);
            }
            Self::CutText => {
                let mut text = object["totalContent"].as_str()?.to_owned();
                text.pop()?;
                object.insert("totalContent".into(), text.into());
            }
            Self::GrowText => {
                let text = object["totalContent"].as_str()?.to_owned() + "x";
                object.insert("totalContent".into(), text.into());
            }
            Self::ChangeTotal => {
                let total = more(&object["totalTokens"]);
                object.insert("totalTokens".into(), total);
                return Some(ErrorKind::Sum);
            }
            Self::Member(key, wrong) => {
                object.insert((*key).to_owned(), wrong.clone());
                return Some(ErrorKind::Shape);
            }
        }
        Some(ErrorKind::Tiling)
    }
}

#[test]
fn a_state_that_becomes_an_event_is_not_shown_for_it() {
    let mut veil = Veil::default();
    let op = |key: &str, text: &str| FacetOp::rewrite("a", Object::from_iter([(key, text.into())]));
    veil.apply(&Frame::new(0, Source::User).with(FacetOp::add(Facet::new("a", "state", "x"))))
        .unwrap();
    let frame = Frame::new(1, Source::User).with(op("content", "y")).with(op("type", "event"));
    assert!(veil.apply(&frame).unwrap().facets.is_empty());
}

#[test]
fn facets_that_hold_are_ordered_by_their_additions_alone() {
    let add = |id: &str| FacetOp::add(Facet::new(id, "ambient", id));
    let ids = |frames: &[Vec<FacetOp>]| -> Vec<String> {
        let mut veil = Veil::default();
        for (sequence, ops) in frames.iter().enumerate() {
            let frame = Frame { ops: ops.clone(), ..Frame::new(sequence as u64, Source::User) };
            veil.apply(&frame).unwrap();
        }
        veil.ambient().map(|facet| facet.id.to_string()).collect()
    };
    assert_eq!(ids(&[vec![add("a"), add("b"), FacetOp::remove("a"), add("a")]]), ["b", "a"]);
    assert_eq!(ids(&[vec![add("a")], vec![add("b")], vec![add("a")]]), ["b", "a"]);
}

#[test]
fn a_part_without_text_where_the_tail_is_cut_is_in_one_message() {
    let hud = Setup { format: "native", options: SnapshotOptions::default() }.hud();
    let ambient =
        Facet::new("a", "ambient", "now").with_child(Facet::new("b", "action", "").with_part(
            PartContent::Call { id: None, name: "f".into(), parameters: None, arguments: None },
        ));
    let ambient = ambient.with_child(Facet::tool_result("c", None, None, ""));
    let history = capture(&hud, &[Frame::new(0, Source::User).with(FacetOp::add(ambient))]);
    let prefill = Some("I".to_owned());
    let request = RenderRequest { prefill, ..RenderRequest::default() };
    let context = hud.render(&history, &request, NOW).unwrap();
    let chunks: Vec<_> =
        context.messages().iter().map(|message| message.chunks().count()).collect();
    assert_eq!(chunks, [3, 1]);
    check_owned_bytes(&context, &request);
}

/// The formats that write children, with templates for `box` and `leaf` in the last.
fn formats() -> Vec<Arc<dyn Format>> {
    let built_in = ["xml", "plain", "native"].map(|name| format_by_name(name).unwrap());
    #[cfg(feature = "templates")]
    let built_in = {
        let format = afterimage::hud::TemplateFormat::new("t", built_in[0].clone());
        let format = format.template("box", "{{ content }}").unwrap();
        let format = format.template("leaf", "* {{ content }}").unwrap();
        built_in.into_iter().chain([Arc::new(format) as Arc<dyn Format>])
    };
    built_in.into_iter().collect()
}

fn rendered(format: &Arc<dyn Format>, facets: Vec<Facet>) -> Arc<FrameSnapshot> {
    let hud = Hud::builder(Arc::new(Words)).format(Arc::clone(format)).build();
    let frame = Frame::new(0, Source::User);
    let frame = facets.into_iter().fold(frame, |frame, facet| frame.with(FacetOp::add(facet)));
    capture(&hud, &[frame]).frames().get(0).unwrap().rendered_snapshot.clone().unwrap()
}

#[test]
fn children_are_nested_in_the_first_chunk_of_their_parent() {
    let leaf = |id: &str| Facet::new(id, "leaf", id);
    let middle = Facet::new("middle", "box", "m").with_child(leaf("middle.1"));
    let middle = middle.with_child(leaf("middle.2"));
    let outer = Facet::new("outer", "box", "o").with_child(leaf("outer.1"));
    let outer = outer.with_child(middle).with_child(leaf("outer.3"));
    // It has no chunk to nest in where nothing is written of it.
    let bare = Facet::new("bare", "box", "").with_child(leaf("bare.1")).with_child(leaf("bare.2"));
    let call = Facet::tool_call("call", None, "f", Value::from(1_u64)).with_child(leaf("call.1"));
    let call = call.with_child(leaf("call.2"));
    for format in formats() {
        let facets = vec![leaf("before"), outer.clone(), bare.clone(), call.clone()];
        let snapshot = rendered(&format, facets);
        let first =
            |id: &str| snapshot.chunks().find(|chunk| chunk.facet_ids() == [id]).unwrap().index();
        for chunk in snapshot.chunks() {
            assert!(chunk.facet_ids().len() <= 1, "{chunk:?}");
            let (level, parent) = match chunk.facet_ids().next().unwrap_or_default() {
                "middle.1" | "middle.2" => (2, Some(first("middle"))),
                "bare.1" | "bare.2" => (0, None),
                id if id.contains('.') => (1, Some(first(id.split('.').next().unwrap()))),
                "middle" => (1, Some(first("outer"))),
                _ => (0, None),
            };
            let structure = chunk.structure().unwrap_or_default().into_owned();
            assert_eq!(
                (structure.level, structure.parent),
                (level, parent),
                "{} {chunk:?}",
                format.id()
            );
            let children = snapshot.chunks().filter(|other| {
                other.structure().and_then(|structure| structure.parent) == Some(chunk.index())
            });
            let children: Vec<usize> = children.map(|chunk| chunk.index()).collect();
            assert_eq!(structure.children.unwrap_or_default(), children, "{}", format.id());
        }
        let text = snapshot.text();
        let expected = match format.id() {
            "xml" => {
                "before\no\nouter.1\nm\nmiddle.1\nmiddle.2\nouter.3\nbare.1\nbare.2\n\
                 <tool_call name=\"f\">\n1\ncall.1\ncall.2\n</tool_call>"
            }
            "plain" => {
                "before\no\nouter.1\nm\nmiddle.1\nmiddle.2\nouter.3\nbare.1\nbare.2\n\
                 [call f] 1\ncall.1\ncall.2"
            }
            "native" => "beforeoouter.1mmiddle.1middle.2outer.3bare.1bare.21call.1call.2",
            _ => {
                "* before\no\n* outer.1\nm\n* middle.1\n* middle.2\n* outer.3\n* bare.1\n* bare.2\n\
                 <tool_call name=\"f\">\n1\ncall.1\ncall.2\n</tool_call>"
            }
        };
        assert_eq!(text, expected, "{}", format.id());
    }
}

#[test]
fn children_that_are_not_shown_leave_no_trace() {
    let hidden = ["unknown", "ambient"].map(|of| Facet::new(of, of, "x").named("tag"));
    let empty = Facet::new("empty", "event", "").named("tag");
    let hidden = hidden.into_iter().chain([empty]);
    let around = |facet: Facet| hidden.clone().fold(facet, Facet::with_child);
    for format in formats() {
        let hollow = around(Facet::new("hollow", "event", "").named("box"));
        let nested =
            around(Facet::new("nested", "event", "").named("box").with_child(hollow.clone()));
        let thought = around(Facet::new("thought", "thought", ""));
        let facets = vec![hollow.clone(), nested, thought];
        assert!(rendered(&format, facets).is_empty(), "{}", format.id());

        let said = Facet::new("said", "event", "a").named("box");
        let with = around(around(said.clone()).with_child(Facet::new("b", "event", "b")));
        let without = said.with_child(Facet::new("b", "event", "b"));
        let (with, without) = (rendered(&format, vec![with]), rendered(&format, vec![without]));
        assert_eq!(with, without, "{}", format.id());
    }
}

#[test]
fn the_tail_of_a_range_is_what_held_after_it() {
    let hud = Hud::new(Arc::new(Words));
    let time = |text: &str| FacetOp::rewrite("time", Object::from_iter([("content", text.into())]));
    let frame = |sequence: u64| Frame::new(sequence, Source::User);
    let history = capture(
        &hud,
        &[
            frame(2).with(FacetOp::add(Facet::new("a", "event", "a"))),
            frame(4).with(FacetOp::add(Facet::new("time", "ambient", "four"))),
            frame(6).with(time("six")),
            frame(8).with(FacetOp::remove("time")),
        ],
    );
    for history in [history.clone(), without_snapshots(&history, |_| true)] {
        for (start, end, expected) in [
            (0, 1, None),
            (0, 3, None),
            (0, 4, Some("four")),
            (5, 5, Some("four")),
            (6, 7, Some("six")),
            (0, 8, None),
            (9, 20, None),
        ] {
            let frames = Some(FrameSeq::new(start)..=FrameSeq::new(end));
            let request = RenderRequest { frames, ..RenderRequest::default() };
            let context = hud.render(&history, &request, NOW).unwrap();
            let found = context.tail().map(|tail| tail.text());
            assert_eq!(found, expected, "{start}..={end}");
        }
    }
}

#[test]
fn a_snapshot_keeps_the_role_in_which_its_chunks_agree() {
    let message = |roles: &[Option<Role>]| {
        let mut builder = FrameSnapshotBuilder::new(&Words);
        for role in roles {
            let options = ChunkOptions::new().facet("a");
            let options = role.map_or(options.clone(), |role| options.role(role));
            builder.add_content("x", options);
        }
        let mut frame = Frame::new(0, Source::Environment);
        frame.rendered_snapshot = Some(Arc::new(builder.build(NOW)));
        let mut history = History::new();
        history.push(frame).unwrap();
        let hud = Hud::new(Arc::new(Words));
        hud.render(&history, &RenderRequest::default(), NOW).unwrap().messages()[0].role()
    };
    let (user, assistant) = (Some(Role::User), Some(Role::Assistant));
    assert_eq!(message(&[assistant, assistant]), Role::Assistant);
    assert_eq!(message(&[None, assistant, None]), Role::Assistant);
    assert_eq!(message(&[Some(Role::System)]), Role::System);
    assert_eq!(message(&[assistant, user]), Role::User);
    assert_eq!(message(&[user, assistant]), Role::User);
    assert_eq!(message(&[Some(Role::System), assistant]), Role::User);
    assert_eq!(message(&[None]), Role::User);
}

#[test]
fn environment_and_user_speak_as_user_and_the_agent_as_assistant() {
    let hud = Hud::new(Arc::new(Words));
    for (source, role) in [
        ("user", Role::User),
        ("environment", Role::User),
        ("radar", Role::User),
        ("agent", Role::Assistant),
        ("system", Role::System),
    ] {
        let frame = Frame::new(0, source.into()).with(FacetOp::add(Facet::new("a", "event", "x")));
        let history = capture(&hud, &[frame]);
        assert!(
            snapshots(&history)[0].chunks().all(|chunk| chunk.role() == Some(role)),
            "{source}"
        );
        let context = hud.render(&history, &RenderRequest::default(), NOW).unwrap();
        assert_eq!(context.messages()[0].role(), role);
    }
}
