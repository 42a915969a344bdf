//! The examples of the snapshot specification, and what is refused of files that go by it.
//!
//! `fixtures/snapshots/loads` holds snapshots that load. They are written back as the same JSON
//! value, or as `NAME.written.json` where that lies beside them: the alias `chunkType` is written
//! as `type` (where both stand, `type` counts and `chunkType` stays an unknown field), a member
//! that is `null` is left out, `hasContent` is always written and says what the text says, and a structure that spells one of
//! its indices as a string spells all of them so.
//!
//! `fixtures/snapshots/refused` holds snapshots that do not load, each with the whole text of the
//! error in `NAME.txt`. `AFTERIMAGE_BLESS=1 cargo test --test snapshot_spec` writes the
//! texts anew, to be read before they are committed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    ErrorKind,
    hud::Hud,
    id::{ChunkType, FacetType, FrameSeq, Millis, Role},
    json::{self, Object, Value},
    snapshot::{
        ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, Part, RenderedChunk, SnapshotOptions,
        extract_snapshot_range, find_chunks_by_facet, find_chunks_by_type, get_snapshot_facets,
        group_chunks_by_role,
    },
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
};
use data::files_under;

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/snapshots").join(folder);
    let mut files = files_under(&folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    assert!(!files.is_empty());
    files
}

fn value(path: &Path) -> Value {
    json::read(&fs::read(path).unwrap()).unwrap()
}

fn load(name: &str) -> FrameSnapshot {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/snapshots/loads");
    FrameSnapshot::from_json(value(&folder.join(name).with_extension("json"))).unwrap()
}

#[test]
fn what_tiles_loads_and_is_written_back_unchanged() {
    for path in fixtures("loads") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.ends_with(".written") {
            continue;
        }
        let snapshot = FrameSnapshot::from_json(value(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let written = path.with_extension("written.json");
        let expected = value(if written.is_file() { &written } else { &path });
        assert_eq!(snapshot.to_json(), expected, "{name}");
        assert_eq!(FrameSnapshot::from_json(expected).unwrap(), snapshot, "{name}");

        // Inside of a frame, and through serde, it is the same.
        let mut frame = Frame::new(3, "environment".into());
        frame.rendered_snapshot = Some(snapshot.clone().into());
        assert_eq!(Frame::from_json(frame.to_json()).unwrap(), frame, "{name}");
        let serde = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<FrameSnapshot>(&serde).unwrap(), snapshot, "{name}");
    }
}

#[test]
fn what_is_off_is_refused_with_a_sentence_that_names_it() {
    let mut wrong = Vec::new();
    for path in fixtures("refused") {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = path.with_extension("txt");
        let Err(error) = FrameSnapshot::from_json(value(&path)) else {
            wrong.push(format!("{name} loads"));
            continue;
        };
        let found = format!("{:?}: {error}\n", error.kind());
        if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
            fs::write(&text, &found).unwrap();
        }
        let expected = fs::read_to_string(&text).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{name}:\n  expected {expected}  found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_gap_in_the_storage_size_example_is_named() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/snapshots/refused");
    let error = FrameSnapshot::from_json(value(&folder.join("storage_size.json"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tiling);
    assert_eq!(error.place().chunk, Some(1));
    assert!(error.message().contains("byte 11"), "{error}");
}

#[test]
fn a_refused_snapshot_names_its_frame_and_member() {
    let wire = br#"{"sequence": 7, "renderedSnapshot": {"chunks": [{"content": "x"}], "totalContent": "x"}}"#;
    let error = Frame::from_json(json::read(wire).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a token count, found nothing (frame 7, at /renderedSnapshot/chunks/0/tokens)"
    );
}

#[test]
fn frames_without_a_snapshot_still_load() {
    for wire in [r#"{"sequence": 7}"#, r#"{"sequence": 7, "renderedSnapshot": null}"#] {
        let frame = Frame::from_json(json::read(wire.as_bytes()).unwrap()).unwrap();
        assert_eq!(frame.rendered_snapshot, None);
    }
}

#[test]
fn the_builder_captures_what_the_specification_says() {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    assert!(builder.is_empty());
    let options = ChunkOptions::new().facet("event-1").chunk_type("event").role(Role::User);
    builder.add_content("User input", options);
    let snapshot = builder.build(Millis::new(5));

    assert_eq!(snapshot.len(), 1);
    assert_eq!(snapshot.text(), "User input");
    assert_eq!(snapshot.chunk(0).unwrap().facet_ids(), ["event-1"]);
    assert_eq!(snapshot.chunk(0).unwrap().chunk_type(), Some("event"));
    assert_eq!(snapshot.chunk(0).unwrap().role(), Some(Role::User));
    assert_eq!((snapshot.total_tokens(), snapshot.captured_at()), (3, Millis::new(5)));
    assert!(snapshot.has_content());
}

#[test]
fn an_unknown_field_never_takes_the_place_of_a_known_one() {
    let extra = Object::from_iter([("content", "b".into()), ("kind", "image".into())]);
    let part_extra = extra.clone();
    let part = Part::Reasoning;
    let chunk =
        RenderedChunk { content: "a".to_owned(), part, part_extra, extra, ..Default::default() };
    assert_eq!(
        chunk.to_json().to_string(),
        r#"{"content":"a","tokens":0,"part":{"kind":"reasoning","content":"b"},"kind":"image"}"#
    );
}

#[test]
fn nested_chunks_point_at_each_other() {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    builder.nest();
    builder.add_content("outside ", ChunkOptions::new());
    builder.nest();
    builder.add_content("inside ", ChunkOptions::new());
    builder.nest();
    builder.add_content("deep ", ChunkOptions::new());
    builder.unnest();
    builder.add_content("inside too", ChunkOptions::new());
    builder.unnest();
    builder.unnest();
    let snapshot = builder.build(Millis::new(0));
    let structure = |index: usize| {
        let structure = snapshot.chunk(index).unwrap().structure().unwrap();
        (structure.level, structure.parent, structure.children.clone())
    };
    assert_eq!(structure(0), (0, None, Some(vec![1, 3])));
    assert_eq!(structure(1), (1, Some(0), Some(vec![2])));
    assert_eq!(structure(2), (2, Some(1), None));
    assert_eq!(structure(3), (1, Some(0), None));
}

#[test]
fn an_added_chunk_keeps_its_count_and_unknown_fields() {
    let source = load("metadata_and_unknown_fields");
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    builder.add_chunk(source.chunk(0).unwrap().to_owned());
    let copy = builder.build(source.captured_at());
    assert_eq!(copy.chunk(0).unwrap().to_owned(), source.chunk(0).unwrap().to_owned());
    assert_eq!(copy.total_tokens(), 9);
}

#[test]
fn the_total_of_a_range_is_the_sum_over_its_chunks() {
    let [a, b, c] =
        ["preserves_the_original", "nothing", "mix_of_attributed_and_unattributed"].map(load);
    let frames = [(100, &a), (101, &b), (150, &c), (151, &a)].map(|(at, s)| (FrameSeq::new(at), s));
    let range = |from: u64, to: u64| {
        extract_snapshot_range(frames, FrameSeq::new(from)..=FrameSeq::new(to))
    };
    let found = range(100, 150).unwrap();
    assert_eq!(found.total_tokens, 14 + 12);
    assert_eq!(found.total_tokens, found.chunks.iter().map(|chunk| chunk.tokens()).sum::<u64>());
    assert_eq!(found.total_content, [a.text(), c.text()].concat());
    assert_eq!(found.chunks.len(), 5);
    assert!(range(102, 149).unwrap().chunks.is_empty());
    assert_eq!(range(0, u64::MAX).unwrap().total_tokens, 40);

    let error = range(150, 100).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert_eq!(error.to_string(), "the range runs from 150 back to 100");

    let none: [(FrameSeq, &FrameSnapshot); 0] = [];
    let nothing = extract_snapshot_range(none, FrameSeq::new(0)..=FrameSeq::new(9)).unwrap();
    assert_eq!(
        (nothing.chunks.len(), nothing.total_content.as_str(), nothing.total_tokens),
        (0, "", 0)
    );
}

#[test]
fn declared_totals_that_exceed_64_bits_saturate() {
    let huge = load("largest_counts");
    let frames = [(FrameSeq::new(0), &huge), (FrameSeq::new(1), &huge)];
    let found = extract_snapshot_range(frames, FrameSeq::new(0)..=FrameSeq::new(1)).unwrap();
    assert_eq!(found.total_tokens, u64::MAX);
}

#[test]
fn chunks_are_found_by_facet_and_by_type() {
    let mixed = load("mix_of_attributed_and_unattributed");
    let contents = |chunks: Vec<afterimage::snapshot::ChunkRef<'_>>| -> Vec<String> {
        chunks.into_iter().map(|chunk| chunk.content().to_owned()).collect()
    };
    assert_eq!(contents(find_chunks_by_facet(&mixed, "speech-1")), ["Hello!"]);
    assert_eq!(contents(find_chunks_by_facet(&mixed, "speech")), Vec::<String>::new());
    let formatting = find_chunks_by_type(&mixed, &ChunkType::FORMATTING);
    assert_eq!(contents(formatting), ["<my_turn>\n\n", "\n\n</my_turn>"]);

    let multi = load("multi_facet");
    for facet in ["state-counter", "transition-increment"] {
        assert_eq!(find_chunks_by_facet(&multi, facet).len(), 1);
    }
    assert_eq!(get_snapshot_facets(&multi), ["state-counter", "transition-increment"]);
    assert!(get_snapshot_facets(&load("nothing")).is_empty());
}

#[test]
fn groups_keep_their_order_and_say_what_had_no_role() {
    let (talk, mixed) =
        (load("preserves_the_original"), load("mix_of_attributed_and_unattributed"));
    let groups =
        group_chunks_by_role(mixed.chunks().take(1).chain(talk.chunks()).chain(talk.chunks()));
    let roles: Vec<_> = groups.iter().map(|(role, chunks)| (role, chunks.len())).collect();
    assert_eq!(roles, [(Role::User, 2), (Role::Assistant, 2)]);
    assert_eq!(groups.get(Role::Assistant)[1].content(), "The answer is 4");
    assert!(groups.get(Role::System).is_empty());
    let without: Vec<_> = groups.without_role.iter().map(|chunk| chunk.content()).collect();
    assert_eq!(without, ["<my_turn>\n\n"]);
    let empty = load("nothing");
    let nothing = group_chunks_by_role(&empty);
    assert_eq!((nothing.iter().count(), nothing.without_role.len()), (0, 0));
}

#[test]
fn text_that_is_not_blank_is_content_attributed_or_not() {
    for (name, has) in [
        ("nothing", false),
        ("empty_and_absent_facet_ids", true),
        ("attributed_without_text", true),
        ("multi_facet", true),
    ] {
        assert_eq!(load(name).has_content(), has, "{name}");
    }
    for (text, has) in [("", false), (" \n\t\u{3000}", false), ("</my_turn>", true), (" . ", true)]
    {
        for options in [ChunkOptions::new(), ChunkOptions::new().facet("event-1")] {
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            builder.add_content(text, options);
            let written = builder.build(Millis::new(0)).to_json();
            assert_eq!(written.get("hasContent"), Some(&has.into()), "{text:?}");
        }
    }
}

#[test]
fn a_hud_that_keeps_no_attribution_writes_that_there_is_content() {
    let options = SnapshotOptions { attribution: false, ..SnapshotOptions::default() };
    let hud = Hud::builder(Arc::new(Chars4)).snapshot_options(options).build();
    let mut history = History::new();
    let said = Facet::new("event-1", FacetType::EVENT, "Are we safe?");
    let frame = Frame::new(0, Source::User).with(FacetOp::add(said));
    let frame = hud.capture(&mut history, frame, Millis::new(0)).unwrap();
    let snapshot = frame.rendered_snapshot.as_ref().unwrap();
    assert!(get_snapshot_facets(&**snapshot).is_empty());
    assert_eq!(snapshot.to_json().get("hasContent"), Some(&true.into()));
}

#[test]
fn has_content_is_compared_on_reading_and_never_obeyed() {
    for (found, note) in [
        ("true", None),
        ("null", None),
        ("false", Some("false")),
        ("\"yes\"", Some("a string")),
        ("1", Some("a number")),
    ] {
        let wire = format!(
            r#"{{"sequence":7,"renderedSnapshot":{{"chunks":[{{"content":"x","tokens":1}}],"totalContent":"x","totalTokens":1,"capturedAt":0,"hasContent":{found}}}}}"#
        );
        let mut notes = Vec::new();
        let value = json::read(wire.as_bytes()).unwrap();
        let frame = Frame::from_json_with_notes(value, &mut notes).unwrap();
        let snapshot = frame.rendered_snapshot.unwrap();
        assert!(snapshot.has_content(), "{found}");
        assert_eq!(snapshot.to_json().get("hasContent"), Some(&true.into()), "{found}");
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let expected = note.map(|found| {
            format!("expected true, found {found} (frame 7, at /renderedSnapshot/hasContent)")
        });
        assert_eq!(notes, Vec::from_iter(expected));
    }
}
