//! Incremental snapshots: taking what is new and expanding it gives back the full snapshot, alone,
//! over the wire, and in chains.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage::{
    Error, ErrorKind,
    id::{ChunkType, FrameSeq, Millis, Role},
    json::{self, Object, Value},
    snapshot::{
        ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, IncrementalChain, IncrementalSnapshot,
    },
    tokens::Chars4,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

/// A text with what may be known of it.
#[derive(Clone, Debug)]
struct Piece {
    text: String,
    facet: Option<&'static str>,
    role: Option<Role>,
    metadata: Option<Object>,
    nests: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    let metadata = Object::from_iter([("a", Value::Null), ("b", true.into())]);
    (
        prop_oneof!["[ab]{1,3}", "[é漢😀]{1,4}"],
        option::of(select(&["event-1", "speech-1", "état"][..])),
        option::of(select(&[Role::User, Role::Assistant][..])),
        option::weighted(0.3, Just(metadata)),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(text, facet, role, metadata, nests)| Piece {
            text,
            facet,
            role,
            metadata,
            nests,
        })
}

/// How a context comes of the one before: so many of its last pieces go, others come, and the
/// snapshot has unknown members.
type Step = (usize, Vec<Piece>, Option<Object>);

fn contexts() -> impl Strategy<Value = Vec<Step>> {
    let extra = Object::from_iter([("unknownField", Value::from("kept")), ("z", Value::Null)]);
    let gone = prop_oneof![3 => Just(0_usize), 1 => 0..4_usize];
    vec((gone, vec(piece(), 0..5), option::weighted(0.3, Just(extra))), 1..9)
}

fn snapshots(contexts: &[Step]) -> Vec<FrameSnapshot> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut snapshots = Vec::new();
    for (at, (gone, come, extra)) in contexts.iter().enumerate() {
        pieces.truncate(pieces.len().saturating_sub(*gone));
        pieces.extend(come.iter().cloned());
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        for piece in &pieces {
            let mut options = ChunkOptions::new().chunk_type(ChunkType::EVENT);
            options = piece.facet.map_or(options.clone(), |facet| options.facet(facet));
            options = piece.role.map_or(options.clone(), |role| options.role(role));
            let metadata = piece.metadata.clone();
            options = metadata.map_or(options.clone(), |metadata| options.metadata(metadata));
            builder.add_content(&piece.text, options);
            if piece.nests {
                builder.nest();
            }
        }
        let mut json = builder.build(Millis::new(i64::try_from(at).unwrap())).to_json();
        if let (Value::Object(object), Some(extra)) = (&mut json, extra) {
            object.insert("exactTokens".to_owned(), 7_u64.into());
            object.extend(extra.clone());
        }
        snapshots.push(FrameSnapshot::from_json(json).unwrap());
    }
    snapshots
}

/// The same after a trip over the wire.
fn sent(incremental: &IncrementalSnapshot) -> IncrementalSnapshot {
    let text = incremental.to_json().to_string();
    let back = IncrementalSnapshot::from_json(json::read(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(back, *incremental);
    assert_eq!(back.to_json().to_string(), text);
    back
}

/// Equal, and written alike.
fn assert_same(found: &FrameSnapshot, expected: &FrameSnapshot) {
    assert_eq!(found, expected);
    assert_eq!(found.to_json().to_string(), expected.to_json().to_string());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expanding_what_is_new_gives_back_the_full_snapshot(contexts in contexts()) {
        let snapshots = snapshots(&contexts);
        for full in &snapshots {
            assert_same(&sent(&full.to_incremental().unwrap()).expand(None).unwrap(), full);
            for base in &snapshots {
                let incremental = sent(&full.since(3, base).unwrap());
                assert_same(&incremental.expand(Some(base)).unwrap(), full);
                prop_assert_eq!(incremental.cumulative_tokens(), full.total_tokens());
                // Nothing that both begin with is held again.
                let kept = incremental.kept_chunks().unwrap_or(base.len());
                let next = (full.chunk(kept), base.chunk(kept));
                if let (Some(own), Some(of_base)) = next {
                    let written = |chunk: afterimage::snapshot::ChunkRef<'_>| chunk.to_owned().to_json().to_string();
                    prop_assert_ne!(written(own), written(of_base));
                }
                prop_assert_eq!(kept + incremental.delta().len(), full.len());
            }
        }
    }

    #[test]
    fn a_chain_expands_each_of_its_frames(contexts in contexts(), bases in vec(0..9_usize, 9)) {
        let snapshots = snapshots(&contexts);
        let sequence = |at: usize| FrameSeq::new(at as u64 * 2 + 1);
        let mut chain = IncrementalChain::new();
        for (at, full) in snapshots.iter().enumerate() {
            // The one before, or any other that came before it, or none.
            let incremental = match bases[at] {
                0 => full.to_incremental().unwrap(),
                back if back <= at => full.since(sequence(at - back), &snapshots[at - back]).unwrap(),
                _ if at > 0 => full.since(sequence(at - 1), &snapshots[at - 1]).unwrap(),
                _ => full.to_incremental().unwrap(),
            };
            chain.push(sequence(at), sent(&incremental)).unwrap();
            prop_assert_eq!(chain.get(sequence(at)), Some(&incremental));
        }
        prop_assert_eq!(chain.iter().len(), snapshots.len());
        for (at, full) in snapshots.iter().enumerate() {
            assert_same(&chain.expand(sequence(at)).unwrap().unwrap(), full);
        }
        prop_assert!(chain.expand(2).unwrap().is_none());
    }
}

/// An incremental snapshot of one chunk for each text, with these further members.
fn incremental(texts: &[&str], members: &str) -> Result<IncrementalSnapshot, Error> {
    let chunks: Vec<String> = texts
        .iter()
        .map(|text| format!(r#"{{"content":"{text}","tokens":{}}}"#, text.len()))
        .collect();
    let chunks = chunks.join(",");
    let text = format!(r#"{{"deltaChunks":[{chunks}],"capturedAt":0,{members}}}"#);
    IncrementalSnapshot::from_json(json::read(text.as_bytes()).unwrap())
}

/// A chain whose frames 1 and 2 hold `ab` and `abcd`, of two chunks each.
fn chain() -> IncrementalChain {
    let mut chain = IncrementalChain::new();
    chain.push(1, incremental(&["a", "b"], r#""cumulativeTokens":2"#).unwrap()).unwrap();
    let second = incremental(&["c", "d"], r#""cumulativeTokens":4,"basedOn":1"#).unwrap();
    chain.push(2, second).unwrap();
    chain
}

#[track_caller]
fn refused(sequence: u64, members: &str, kind: ErrorKind, message: &str) {
    let mut chain = chain();
    let error = chain.push(sequence, incremental(&["e"], members).unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.place().frame), (kind, Some(sequence)));
    assert_eq!(error.to_string(), message);
    assert_eq!(chain.len(), 2);
    assert_eq!(chain.expand(2).unwrap().unwrap().text(), "abcd");
}

#[test]
fn what_does_not_fit_its_base_is_refused_with_its_frame() {
    refused(
        3,
        r#""cumulativeTokens":5,"basedOn":3"#,
        ErrorKind::Base,
        "expected a frame before this one as the base, found frame 3 (frame 3, at /basedOn)",
    );
    refused(
        3,
        r#""cumulativeTokens":5,"basedOn":9"#,
        ErrorKind::Base,
        "expected a frame before this one as the base, found frame 9 (frame 3, at /basedOn)",
    );
    refused(
        3,
        r#""cumulativeTokens":5,"basedOn":0"#,
        ErrorKind::Base,
        "expected a frame of the chain as the base, found frame 0 (frame 3, at /basedOn)",
    );
    refused(
        3,
        r#""cumulativeTokens":5,"basedOn":2,"keptChunks":5"#,
        ErrorKind::Base,
        "expected at most the 4 chunks of frame 2 to be kept, found 5 (frame 3, at /keptChunks)",
    );
    for (members, sum) in [
        (r#""cumulativeTokens":6,"basedOn":2"#, 5),
        (r#""cumulativeTokens":6,"basedOn":2,"keptChunks":3"#, 4),
        (r#""cumulativeTokens":6,"basedOn":2,"keptChunks":2"#, 3),
        (r#""cumulativeTokens":6,"basedOn":2,"keptChunks":1"#, 2),
    ] {
        let message = format!(
            "the running total is not the sum of all chunks' tokens: expected {sum}, found 6 (frame 3, at /cumulativeTokens)"
        );
        refused(3, members, ErrorKind::Sum, &message);
    }
    refused(
        2,
        r#""cumulativeTokens":3,"basedOn":1"#,
        ErrorKind::Sequence,
        "sequences rise: expected one greater than 2, found 2 (frame 2)",
    );
}

#[test]
fn a_snapshot_may_keep_less_than_its_base_had() {
    let mut chain = chain();
    let third = incremental(&["e"], r#""cumulativeTokens":2,"basedOn":2,"keptChunks":1"#).unwrap();
    chain.push(3, third).unwrap();
    let fourth = incremental(&["f"], r#""cumulativeTokens":3,"basedOn":3"#).unwrap();
    chain.push(4, fourth).unwrap();
    let text = |sequence: u64| chain.expand(sequence).unwrap().unwrap().text().to_owned();
    assert_eq!([1, 2, 3, 4].map(text), ["ab", "abcd", "ae", "aef"]);
}

#[test]
fn a_form_that_contradicts_itself_is_refused() {
    for (members, kind, message) in [
        (
            r#""cumulativeTokens":2"#,
            ErrorKind::Sum,
            "the running total is not the sum of all chunks' tokens: expected 1, found 2 (at /cumulativeTokens)",
        ),
        (
            r#""cumulativeTokens":0,"basedOn":1"#,
            ErrorKind::Sum,
            "the new chunks' tokens exceed the running total: expected at most 0, found 1 (at /cumulativeTokens)",
        ),
        (
            r#""cumulativeTokens":1,"keptChunks":1"#,
            ErrorKind::Shape,
            "expected a frame that the snapshot is based on, since it keeps chunks, found nothing, and 1 to keep (at /basedOn)",
        ),
        (
            r#""cumulativeTokens":1,"totalContent":"e""#,
            ErrorKind::Shape,
            r#"expected no member of a full snapshot beside deltaChunks, found "totalContent" (at /totalContent)"#,
        ),
        (
            r#""basedOn":1"#,
            ErrorKind::Shape,
            "expected a token count, found nothing (at /cumulativeTokens)",
        ),
    ] {
        let error = incremental(&["e"], members).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
    }
}

#[test]
fn expanding_asks_for_the_base_that_it_names_and_checks_the_whole() {
    let whole = |texts: &[&str]| {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        texts.iter().for_each(|text| builder.add_content(text, ChunkOptions::new()));
        builder.build(Millis::new(0))
    };
    let kind = |members: &str, base: Option<&FrameSnapshot>| {
        incremental(&["e"], members).unwrap().expand(base).unwrap_err().kind()
    };
    let base = whole(&["one", "two"]);
    assert_eq!(kind(r#""cumulativeTokens":3,"basedOn":1"#, None), ErrorKind::Base);
    assert_eq!(kind(r#""cumulativeTokens":1"#, Some(&base)), ErrorKind::Base);
    let kept = r#""cumulativeTokens":4,"basedOn":1,"keptChunks":3"#;
    assert_eq!(kind(kept, Some(&base)), ErrorKind::Base);
    assert_eq!(kind(r#""cumulativeTokens":4,"basedOn":1"#, Some(&base)), ErrorKind::Sum);
    // What it says of its content is not obeyed.
    let claimed = r#""cumulativeTokens":3,"basedOn":1,"hasContent":false"#;
    let expanded = incremental(&["e"], claimed).unwrap().expand(Some(&base)).unwrap();
    assert!(expanded.has_content());
    // A chunk that is kept speaks of children that did not come along.
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    builder.add_content("parent", ChunkOptions::new());
    builder.nest();
    ["one", "two", "three"].iter().for_each(|text| builder.add_content(text, ChunkOptions::new()));
    let nested = builder.build(Millis::new(0));
    let tokens = nested.chunk(0).unwrap().tokens() + 1;
    let orphaned = format!(r#""cumulativeTokens":{tokens},"basedOn":1,"keptChunks":1"#);
    assert_eq!(kind(&orphaned, Some(&nested)), ErrorKind::Shape);
}

#[test]
fn a_snapshot_with_a_member_of_the_incremental_form_has_none() {
    let text = r#"{"chunks":[],"totalContent":"","totalTokens":0,"capturedAt":0,"basedOn":1}"#;
    let full = FrameSnapshot::from_json(json::read(text.as_bytes()).unwrap()).unwrap();
    let error = full.since(1, &full).unwrap_err();
    assert_eq!((error.kind(), error.place().path.as_deref()), (ErrorKind::Shape, Some("/basedOn")));
}

#[test]
fn chunks_that_are_written_differently_are_not_the_same() {
    let of = |metadata: Object| {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content("text", ChunkOptions::new().metadata(metadata));
        builder.build(Millis::new(0))
    };
    // Equal objects, whose members stand in another order.
    let [a, b] = [("a", Value::Null), ("b", true.into())];
    let base = of(Object::from_iter([a.clone(), b.clone()]));
    let full = of(Object::from_iter([b, a]));
    assert_same(&full.since(0, &base).unwrap().expand(Some(&base)).unwrap(), &full);
}
