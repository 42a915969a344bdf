//! Who wrote what, where, and what it cost: the archive against plain loops over the list of
//! snapshots, generated and recorded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::Arc,
};

use afterimage::{
    ErrorKind, Result,
    hud::{Hud, format_by_name},
    id::{FrameSeq, Millis},
    snapshot::{
        ArchiveOptions, ArchiveReader, ChunkOptions, FrameSnapshot, FrameSnapshotBuilder,
        PhraseMatch, SnapshotArchive, find_chunks_by_facet,
    },
    tokens::Chars4,
    transcript::Transcript,
    veil::History,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

const FACETS: [&str; 5] = ["a", "b", "état", "漢", "tool-1"];
const TYPES: [&str; 3] = ["event", "state", "formatting"];

type List = BTreeMap<FrameSeq, FrameSnapshot>;

fn all() -> RangeInclusive<FrameSeq> {
    FrameSeq::new(0)..=FrameSeq::new(u64::MAX)
}

/// A text with the numbers of its facets and its type.
type Piece = (String, Option<Vec<usize>>, Option<&'static str>);

/// Texts that come again, cross chunks and overlap themselves.
fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let text = prop_oneof!["[ab]{1,4}", "[aé漢]{1,3}", Just("a long result".to_owned())];
    vec((text, option::of(vec(0..FACETS.len(), 0..4)), option::of(select(&TYPES[..]))), 0..5)
}

fn options() -> impl Strategy<Value = ArchiveOptions> {
    (select(vec![1_usize, 24, 300]), select(vec![1_usize, 3, 256])).prop_map(
        |(segment_bytes, segment_frames)| ArchiveOptions { segment_bytes, segment_frames },
    )
}

/// Every place of `wanted` in `text`, by trying each.
fn places(text: &str, wanted: &str) -> Vec<usize> {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.filter(|at| !wanted.is_empty() && text[*at..].starts_with(wanted)).collect()
}

/// The facets of the chunks that share a byte with the range or lie in it, each once.
fn owners(snapshot: &FrameSnapshot, from: usize, to: usize) -> (usize, Vec<&str>) {
    let touched = snapshot.chunks().filter(|chunk| {
        let (start, end) = (chunk.range().start(), chunk.range().end());
        start < to && end > from || start == end && from < start && start < to
    });
    let mut ids: Vec<&str> = Vec::new();
    let mut first = None;
    for chunk in touched {
        first.get_or_insert(chunk.index());
        for id in chunk.facet_ids() {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    (first.unwrap(), ids)
}

type Found<'a> = (FrameSeq, usize, usize, usize, Vec<&'a str>);

/// The places of a phrase, and the frames that could hold it and were dropped.
fn found<'a>(
    list: &'a List,
    gone: &BTreeSet<FrameSeq>,
    range: &RangeInclusive<FrameSeq>,
    phrase: &str,
) -> Vec<Result<Found<'a>, FrameSeq>> {
    let mut found = Vec::new();
    for (sequence, snapshot) in list.range(range.clone()) {
        if gone.contains(sequence) {
            if !phrase.is_empty() && snapshot.text().len() >= phrase.len() {
                found.push(Err(*sequence));
            }
            continue;
        }
        for at in places(snapshot.text(), phrase) {
            let end = at + phrase.len();
            let (chunk, facets) = owners(snapshot, at, end);
            found.push(Ok((*sequence, at, end, chunk, facets)));
        }
    }
    found
}

fn check_find(
    list: &List,
    gone: &BTreeSet<FrameSeq>,
    reader: &ArchiveReader,
    range: RangeInclusive<FrameSeq>,
    phrase: &str,
) {
    let expected = found(list, gone, &range, phrase);
    let matches: Vec<_> = reader
        .find_in(phrase, range)
        .unwrap()
        .map(|found| match found {
            Ok(found) => {
                let range = found.range();
                assert_eq!(found.chunk().sequence(), Some(found.sequence()));
                let chunk = found.chunk().index();
                Ok((found.sequence(), range.start(), range.end(), chunk, found.facet_ids()))
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Dropped);
                Err(FrameSeq::new(error.place().frame.unwrap()))
            }
        })
        .collect();
    assert_eq!(matches, expected, "{phrase:?}");
}

fn check_text_of(
    list: &List,
    gone: &BTreeSet<FrameSeq>,
    reader: &ArchiveReader,
    range: RangeInclusive<FrameSeq>,
    facet: &str,
) {
    let expected = list.range(range.clone()).flat_map(|(sequence, snapshot)| {
        find_chunks_by_facet(snapshot, facet).into_iter().map(|chunk| {
            let place = (*sequence, chunk.index());
            // Nothing of an empty text can be dropped.
            let is_gone = gone.contains(sequence) && !chunk.content().is_empty();
            if is_gone { Err(place) } else { Ok((place, chunk.content().to_owned())) }
        })
    });
    let texts = reader.text_of_in(facet, range).unwrap().map(|text| match text {
        Ok((chunk, text)) => Ok(((chunk.sequence().unwrap(), chunk.index()), text.into_owned())),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Dropped);
            let place = error.place();
            Err((FrameSeq::new(place.frame.unwrap()), place.chunk.unwrap()))
        }
    });
    assert_eq!(texts.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{facet:?}");
}

fn check_costs(list: &List, reader: &ArchiveReader, range: &RangeInclusive<FrameSeq>) {
    let mut order: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, (u64, u64, u64, FrameSeq, Option<&str>)> = BTreeMap::new();
    for (sequence, snapshot) in list.range(range.clone()) {
        for chunk in snapshot.chunks() {
            for facet in chunk.facet_ids().collect::<BTreeSet<_>>() {
                let sum = sums.entry(facet).or_insert((0, 0, 0, *sequence, None));
                *sum = (
                    sum.0 + chunk.tokens(),
                    sum.1 + chunk.content().len() as u64,
                    sum.2 + 1,
                    sum.3,
                    sum.4,
                );
                if sum.4.is_none_or(|kind| kind == "formatting") {
                    sum.4 = chunk.chunk_type();
                }
            }
            for facet in chunk.facet_ids() {
                if !order.contains(&facet) {
                    order.push(facet);
                }
            }
        }
    }
    // Sorting keeps the order of what is equal.
    order.sort_by_key(|facet| std::cmp::Reverse((sums[facet].0, sums[facet].1)));
    let expected: Vec<_> = order.into_iter().map(|facet| (facet, sums[facet])).collect();
    for most in [0, 1, 2, 3, usize::MAX] {
        let costs = reader.costliest_facets(range.clone(), most).unwrap();
        let costs = costs.iter().map(|cost| {
            (cost.facet, (cost.tokens, cost.bytes, cost.chunks, cost.first, cost.chunk_type))
        });
        let expected: Vec<_> = expected.iter().take(most).copied().collect();
        assert_eq!(costs.collect::<Vec<_>>(), expected);
    }
}

fn check_repeats(
    list: &List,
    reader: &ArchiveReader,
    range: &RangeInclusive<FrameSeq>,
    least: usize,
) {
    let mut order: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, (u64, u64, u64, FrameSeq, usize)> = BTreeMap::new();
    for (sequence, snapshot) in list.range(range.clone()) {
        for chunk in snapshot.chunks() {
            let text = chunk.content();
            if text.is_empty() || text.len() < least {
                continue;
            }
            if let Some((count, tokens, bytes, ..)) = sums.get_mut(text) {
                *count += 1;
                *tokens += chunk.tokens();
                *bytes += text.len() as u64;
            } else {
                sums.insert(text, (1, 0, 0, *sequence, chunk.index()));
                order.push(text);
            }
        }
    }
    order.retain(|text| sums[text].0 > 1);
    order.sort_by_key(|text| std::cmp::Reverse((sums[text].1, sums[text].2)));
    let view = reader.range(range.clone()).unwrap();
    let repeats = view.repeated_text(least).into_iter().map(|text| {
        let first = text.first;
        (
            text.content(),
            (text.count, text.tokens, text.bytes, first.sequence().unwrap(), first.index()),
        )
    });
    let expected: Vec<_> = order.into_iter().map(|text| (text, sums[text])).collect();
    assert_eq!(repeats.collect::<Vec<_>>(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(128), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_archive_attributes_as_the_list_does(
        options in options(),
        frames in vec((1..4_u64, pieces()), 0..12),
        drops in vec((0..20_u64, 0..5_u64), 0..2),
        (from, len) in (0..20_u64, 0..30_u64),
        phrase in prop_oneof!["[ab]{0,3}", "[aé漢]{1,2}", "[ab]{5,9}", Just("result".to_owned())],
        least in 0..6_usize,
    ) {
        let mut archive = SnapshotArchive::with_options(options);
        let (mut list, mut next) = (List::new(), 0);
        for (step, pieces) in &frames {
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            for (text, facets, chunk_type) in pieces {
                let mut options = ChunkOptions::new();
                if let Some(facets) = facets {
                    options = options.facets(facets.iter().map(|facet| FACETS[*facet].into()));
                }
                if let Some(chunk_type) = chunk_type {
                    options = options.chunk_type(*chunk_type);
                }
                builder.add_content(text, options);
            }
            let snapshot = builder.build(Millis::new(0));
            archive.push(next, &snapshot).unwrap();
            list.insert(FrameSeq::new(next), snapshot);
            next += step;
        }
        let range = FrameSeq::new(from)..=FrameSeq::new(from + len);
        let here = BTreeSet::new();
        for range in [&range, &all()] {
            check_repeats(&list, &archive, range, least);
        }
        let before = archive.reader();
        let mut gone = BTreeSet::new();
        for (from, len) in drops {
            let range = FrameSeq::new(from)..=FrameSeq::new(from + len);
            archive.drop_text(range.clone()).unwrap();
            gone.extend(list.range(range).map(|(sequence, _)| *sequence));
        }
        for (reader, gone) in [(&before, &here), (&archive, &gone)] {
            for range in [&range, &all()] {
                check_find(&list, gone, reader, range.clone(), &phrase);
                check_costs(&list, reader, range);
                for facet in FACETS.iter().chain(&["nobody"]) {
                    check_text_of(&list, gone, reader, range.clone(), facet);
                }
            }
        }
    }
}

/// The recordings, each rendered into an archive of small segments and a plain list.
fn recorded(format: &str) -> impl Iterator<Item = (String, SnapshotArchive, List)> {
    let hud = Hud::builder(Arc::new(Chars4)).format(format_by_name(format).unwrap()).build();
    let groups = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
    let folders = groups.into_iter().filter_map(data::recordings);
    let files = folders.flat_map(|folder| data::files_under(&folder));
    files.flat_map(move |path| {
        let mut sessions: BTreeMap<Arc<str>, (SnapshotArchive, List, History)> = BTreeMap::new();
        for record in Transcript::open(&path).unwrap() {
            let record = record.unwrap();
            let (archive, list, history) = sessions.entry(record.session).or_insert_with(|| {
                let options = ArchiveOptions { segment_bytes: 16 << 10, segment_frames: 16 };
                (SnapshotArchive::with_options(options), List::new(), History::new())
            });
            let frame = hud.capture(history, record.frame, Millis::new(0)).unwrap();
            let snapshot = frame.rendered_snapshot.as_deref().unwrap();
            archive.push(frame.sequence, snapshot).unwrap();
            list.insert(frame.sequence, snapshot.clone());
        }
        let name = path.display().to_string();
        sessions
            .into_iter()
            .map(|(session, (archive, list, _))| (format!("{name}: {session}"), archive, list))
            .collect::<Vec<_>>()
    })
}

#[test]
fn phrases_of_recordings_are_where_the_list_has_them() {
    let nowhere = BTreeSet::new();
    for (name, archive, list) in recorded("xml") {
        for phrase in ["\n", "error", "</tool_call>\n<tool_call", "  ", "é", "nowhere to be found"]
        {
            check_find(&list, &nowhere, &archive, all(), phrase);
            let first = archive.find(phrase).next().transpose().unwrap();
            let expected = list
                .iter()
                .find(|(_, snapshot)| snapshot.text().contains(phrase))
                .map(|(at, _)| *at);
            assert_eq!(first.map(PhraseMatch::sequence), expected, "{name}: {phrase:?}");
        }
    }
}

#[test]
fn costs_repeats_and_texts_of_recordings_are_those_of_the_list() {
    let nowhere = BTreeSet::new();
    for format in ["xml", "native"] {
        for (_, archive, list) in recorded(format) {
            let middle = list.keys().nth(list.len() / 2).copied().unwrap_or_default();
            for range in [all(), middle..=FrameSeq::new(middle.get() + 20)] {
                check_costs(&list, &archive, &range);
                check_repeats(&list, &archive, &range, 1);
                check_repeats(&list, &archive, &range, 200);
            }
            let facets = archive.costliest_facets(all(), 20).unwrap();
            for facet in facets.iter().map(|cost| cost.facet) {
                check_text_of(&list, &nowhere, &archive, all(), facet);
            }
        }
    }
}

#[test]
fn a_tool_result_that_was_rendered_forty_times_says_so() {
    let mut archive = SnapshotArchive::new();
    let result = "the listing of a large folder\n".repeat(8);
    for sequence in 0..40_u64 {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        let options = ChunkOptions::new().facet(format!("result-{sequence}"));
        builder.add_content(&result, options.chunk_type("result"));
        builder.add_content("\n", ChunkOptions::new().chunk_type("formatting"));
        archive.push(sequence, &builder.build(Millis::new(0))).unwrap();
    }
    let view = archive.all().unwrap();
    let repeats = view.repeated_text(32);
    assert_eq!(repeats.len(), 1);
    assert_eq!((repeats[0].content(), repeats[0].count), (result.as_str(), 40));
    assert_eq!(repeats[0].bytes, 39 * result.len() as u64);
    assert_eq!(repeats[0].tokens, 39 * repeats[0].first.tokens());
    assert_eq!(repeats[0].first.facet_ids().collect::<Vec<_>>(), ["result-0"]);
}

#[test]
fn ranges_that_run_backwards_are_refused() {
    let archive = SnapshotArchive::new();
    let backwards = || FrameSeq::new(2)..=FrameSeq::new(1);
    let kinds = [
        archive.find_in("a", backwards()).unwrap_err().kind(),
        archive.text_of_in("a", backwards()).unwrap_err().kind(),
        archive.costliest_facets(backwards(), 1).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::OutOfRange; 3]);
}
