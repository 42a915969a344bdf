//! The archive against the plain list of snapshots, for every question.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{captured, hud};

use std::{collections::BTreeMap, sync::Arc};

use afterimage::{
    ErrorKind,
    id::{FacetType, FrameSeq, Millis, Role},
    snapshot::{
        ArchiveOptions, ArchiveReader, ChunkInfo, ChunkOptions, ChunkRef, FrameSnapshot,
        FrameSnapshotBuilder, Part, SnapshotArchive, Totals, extract_snapshot_range,
        find_chunks_by_facet, get_snapshot_facets, group_chunks_by_role,
    },
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, Source},
};
use proptest::{collection::vec, option, prelude::*, sample::select};

const FACETS: [&str; 6] = ["a", "b", "état", "漢", "tool-1", "never-twice"];

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    facets: Option<Vec<usize>>,
    chunk_type: Option<&'static str>,
    role: Option<Role>,
    part: Part,
    nests: bool,
}

fn piece() -> impl Strategy<Value = Piece> {
    let text = prop_oneof![Just(String::new()), "[a-c\\n ]{1,12}", "[漢é😀]{1,9}", "[x-z]{70,90}"];
    let part = prop_oneof![
        4 => Just(Part::Text),
        1 => ("[cd]{1,2}", "[fg]").prop_map(|(id, name)| Part::Call { id: Some(id.into()), name: name.into() }),
        1 => option::of("[cd]{1,2}").prop_map(|id| Part::Result { id: id.map(Into::into) }),
        1 => Just(Part::Reasoning),
    ];
    (
        text,
        option::of(vec(0..FACETS.len(), 0..4)),
        option::of(select(vec!["event", "state", "formatting", "x"])),
        option::of(select(vec![Role::User, Role::Assistant, Role::System])),
        part,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(text, facets, chunk_type, role, part, nests)| Piece {
            text,
            facets,
            chunk_type,
            role,
            part,
            nests,
        })
}

fn snapshot(at: i64, pieces: &[Piece]) -> FrameSnapshot {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    for piece in pieces {
        let mut options = ChunkOptions::new().part(piece.part.clone());
        if let Some(facets) = &piece.facets {
            options = options.facets(facets.iter().map(|facet| FACETS[*facet].into()));
        }
        if let Some(chunk_type) = piece.chunk_type {
            options = options.chunk_type(chunk_type);
        }
        if let Some(role) = piece.role {
            options = options.role(role);
        }
        builder.add_content(&piece.text, options);
        if piece.nests {
            builder.nest();
        }
    }
    builder.build(Millis::new(at))
}

/// What is done to an archive.
#[derive(Clone, Debug)]
enum Step {
    Push {
        beyond: u64,
        pieces: Vec<Piece>,
    },
    Drop {
        from: u64,
        to: u64,
    },
    /// A reader is taken, and kept.
    Read,
    /// The archive is saved, and what is opened takes its place.
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (prop_oneof![5 => Just(1_u64), 1 => 2..9_u64], vec(piece(), 0..5))
        .prop_map(|(beyond, pieces)| Step::Push { beyond, pieces });
    let drop = (0..60_u64, 0..20_u64).prop_map(|(from, len)| Step::Drop { from, to: from + len });
    vec(prop_oneof![20 => push, 1 => drop, 2 => Just(Step::Read), 1 => Just(Step::Reopen)], 0..60)
}

fn options() -> impl Strategy<Value = ArchiveOptions> {
    (select(vec![1_usize, 64, 300]), select(vec![1_usize, 3, 256])).prop_map(
        |(segment_bytes, segment_frames)| ArchiveOptions { segment_bytes, segment_frames },
    )
}

/// Every question about every range, answered from the list and from the archive.
fn check(list: &BTreeMap<FrameSeq, FrameSnapshot>, dropped: &[FrameSeq], reader: &ArchiveReader) {
    reader.check().unwrap();
    let last = list.keys().next_back().map_or(3, |last| last.get() + 2);
    assert_eq!(reader.len(), list.len());
    let frames = || list.iter().map(|(sequence, snapshot)| (*sequence, snapshot));
    for from in (0..last).step_by(3) {
        for to in [from, from + 1, from + 7, last, u64::MAX] {
            let range = FrameSeq::new(from)..=FrameSeq::new(to);
            let expected = extract_snapshot_range(frames(), range.clone()).unwrap();
            let inside = || frames().filter(|(sequence, _)| range.contains(sequence));
            let totals = Totals {
                frames: inside().count() as u64,
                chunks: expected.chunks.len() as u64,
                bytes: expected.total_content.len() as u64,
                tokens: expected.total_tokens,
            };
            assert_eq!(reader.measure(range.clone()).unwrap(), totals);
            for facet in FACETS.iter().chain(&["nobody"]) {
                let found = reader.chunks_of_in(facet, range.clone()).unwrap();
                let found: Vec<_> = found
                    .iter()
                    .map(|c| (c.sequence(), c.index(), c.range(), c.tokens()))
                    .collect();
                let expected: Vec<_> = inside()
                    .flat_map(|(sequence, snapshot)| {
                        let chunks = find_chunks_by_facet(snapshot, facet).into_iter();
                        chunks.map(move |c| (Some(sequence), c.index(), c.range(), c.tokens()))
                    })
                    .collect();
                assert_eq!(found, expected);
            }
            let is_gone = |(sequence, snapshot): (FrameSeq, &FrameSnapshot)| {
                dropped.contains(&sequence) && !snapshot.text().is_empty()
            };
            if inside().any(is_gone) {
                let error = reader.range(range).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Dropped);
                continue;
            }
            let view = reader.range(range.clone()).unwrap();
            assert_eq!(view.totals(), totals);
            assert_eq!(view.text().join(), expected.total_content);
            assert_eq!(view.text().to_string(), expected.total_content);
            let chunks: Vec<_> = view.chunks().map(ChunkRef::to_owned).collect();
            assert_eq!(
                chunks,
                expected.chunks.iter().copied().map(ChunkRef::to_owned).collect::<Vec<_>>()
            );
            let snapshots: Vec<_> = view.snapshots().collect();
            assert_eq!(
                snapshots,
                inside().map(|(sequence, s)| (sequence, s.clone())).collect::<Vec<_>>()
            );
            let mut facets = indexmap::IndexSet::new();
            facets.extend(inside().flat_map(|(_, snapshot)| get_snapshot_facets(snapshot)));
            assert_eq!(get_snapshot_facets(&view), facets.into_iter().collect::<Vec<_>>());
            assert_eq!(get_snapshot_facets(&chunks), get_snapshot_facets(&view));
            for facet in FACETS {
                let found = find_chunks_by_facet(&view, facet).into_iter().map(ChunkRef::to_owned);
                let of_owned = find_chunks_by_facet(&chunks, facet).into_iter().cloned();
                assert!(found.eq(of_owned));
            }
            let extracted = extract_snapshot_range(view.frames(), range.clone()).unwrap();
            assert_eq!(extracted.total_content, expected.total_content);
            assert_eq!(extracted.total_tokens, expected.total_tokens);
            assert_eq!(
                extracted.chunks.into_iter().map(ChunkRef::to_owned).collect::<Vec<_>>(),
                chunks
            );
            let by_role = group_chunks_by_role(expected.chunks.iter().copied());
            let infos = view.chunks().map(ChunkInfo::from);
            let (found, of_owned) = (group_chunks_by_role(infos), group_chunks_by_role(&chunks));
            assert_eq!(found.iter().count(), by_role.iter().count());
            for (role, chunks) in by_role.iter() {
                assert_eq!(found.get(role).len(), chunks.len());
                assert_eq!(of_owned.get(role).len(), chunks.len());
            }
            assert_eq!(found.without_role.len(), by_role.without_role.len());
        }
    }
    for (sequence, _) in frames() {
        assert!(reader.contains(sequence).unwrap());
    }
}

/// The archive after it was saved and opened; itself in a build without storage.
#[cfg(feature = "storage")]
fn reopened(mut archive: SnapshotArchive) -> SnapshotArchive {
    use afterimage::log::{Holder, testing::MemoryFiles};
    let files = Arc::new(MemoryFiles::default());
    archive.save_on(files.clone(), "archive", &Holder::new("test")).unwrap();
    let opened = SnapshotArchive::open_on(files, "archive").unwrap();
    assert!(opened.problems.is_empty());
    opened.archive
}

#[cfg(not(feature = "storage"))]
fn reopened(archive: SnapshotArchive) -> SnapshotArchive {
    archive
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(64), ..ProptestConfig::default() })]

    #[test]
    fn an_archive_answers_as_the_list_does(options in options(), steps in steps()) {
        let mut archive = SnapshotArchive::with_options(options);
        let (mut list, mut dropped) = (BTreeMap::new(), Vec::new());
        let mut taken = Vec::new();
        let mut next = 0_u64;
        for step in &steps {
            match step {
                Step::Push { beyond, pieces } => {
                    let snapshot = snapshot(next.cast_signed(), pieces);
                    archive.push(next, &snapshot).unwrap();
                    list.insert(FrameSeq::new(next), snapshot);
                    next += beyond;
                }
                Step::Drop { from, to } => {
                    let range = FrameSeq::new(*from)..=FrameSeq::new(*to);
                    match archive.drop_text(range.clone()) {
                        Ok(_) => dropped.extend(list.range(range).map(|(sequence, _)| *sequence)),
                        // What is in a store stays there.
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Stored),
                    }
                }
                Step::Reopen => archive = reopened(archive),
                Step::Read => {
                    taken.push((archive.reader(), list.clone(), dropped.clone()));
                    if taken.len() % 2 == 0 {
                        archive.shrink_to_fit();
                    }
                }
            }
        }
        check(&list, &dropped, &archive);
        for (reader, list, dropped) in taken.iter().take(3) {
            check(list, dropped, reader);
        }
    }
}

#[test]
fn a_refused_push_leaves_the_archive_as_it_was() {
    let mut archive = SnapshotArchive::new();
    let of = |text: &str| {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content(text, ChunkOptions::new());
        builder.build(Millis::new(0))
    };
    archive.push(3, &of("three")).unwrap();
    for sequence in [3, 2, 0] {
        let error = archive.push(sequence, &of("again")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sequence);
        assert_eq!(error.place().frame, Some(sequence));
    }
    assert_eq!(archive.all().unwrap().text().join(), "three");
    let backwards = archive.range(FrameSeq::new(2)..=FrameSeq::new(1)).unwrap_err();
    assert_eq!(backwards.kind(), ErrorKind::OutOfRange);
    assert!(archive.range(FrameSeq::new(9)..=FrameSeq::new(12)).unwrap().is_empty());
    assert!(archive.get(4).unwrap().is_none());
}

#[test]
fn readers_beside_the_writer_never_see_half_a_frame() {
    let shared = Arc::new(std::sync::Mutex::new(ArchiveReader::default()));
    let mut archive =
        SnapshotArchive::with_options(ArchiveOptions { segment_bytes: 64, segment_frames: 7 });
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while !done.load(std::sync::atomic::Ordering::Acquire) || seen < 2_000 {
                    let reader = shared.lock().unwrap().clone();
                    assert!(reader.len() >= seen);
                    seen = reader.len();
                    let view = reader.all().unwrap();
                    assert_eq!(view.sequences().count(), seen);
                    assert_eq!(reader.chunks_of("a").unwrap().len(), seen);
                    let text: String = (0..seen).map(|n| format!("frame {n}\n")).collect();
                    assert!(view.text().pieces().flat_map(str::chars).eq(text.chars()));
                }
            });
        }
        for n in 0..2_000_u64 {
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            builder.add_content(&format!("frame {n}"), ChunkOptions::new().facet("a"));
            builder.add_content("\n", ChunkOptions::new());
            archive.push(n, &builder.build(Millis::new(0))).unwrap();
            *shared.lock().unwrap() = archive.reader();
        }
        done.store(true, std::sync::atomic::Ordering::Release);
    });
}

#[test]
fn each_of_the_first_questions_finds_its_facet_in_an_archive_of_a_history() {
    const FRAMES: u64 = 2_000;
    let frames: Vec<Frame> = (0..FRAMES)
        .map(|at| {
            let own =
                Facet::new(format!("own-{at}"), FacetType::EVENT, format!("text {at} ").repeat(60));
            let frame = Frame::new(at, Source::User).with(FacetOp::add(own));
            let tenth = Facet::new(format!("t-{}", at / 10), FacetType::EVENT, "tenth");
            if at % 10 == 0 { frame.with(FacetOp::add(tenth)) } else { frame }
        })
        .collect();
    let archive = captured(&hud(), &frames).archive().unwrap();
    // More questions than share the indexing, from one end to the other and back.
    for question in 0..40 {
        let at = if question % 2 == 0 { question * 50 } else { FRAMES - 1 - question * 50 };
        let found = archive.chunks_of(&format!("own-{at}")).unwrap();
        assert_eq!(found.len(), 1, "question {question}");
        assert_eq!(found[0].sequence(), Some(FrameSeq::new(at)), "question {question}");
        assert_eq!(archive.chunks_of(&format!("t-{}", at / 10)).unwrap().len(), 1);
        assert!(archive.chunks_of(&format!("own-{}", FRAMES + question)).unwrap().is_empty());
    }
}
