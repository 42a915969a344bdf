//! Any payload with a sound checksum is a segment or refused; what opens answers without a panic.
#![no_main]

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use afterimage::{
    id::{FrameSeq, Millis, Role},
    json::Object,
    log::{
        FileKind, Files, Holder, RecordFile, RecordWriter, create_dirs, pack, testing::MemoryFiles,
        unpack,
    },
    snapshot::{ArchiveOptions, ChunkOptions, FrameSnapshotBuilder, Part, SnapshotArchive},
    tokens::Chars4,
};
use libfuzzer_sys::fuzz_target;

const FILES: [(&str, FileKind); 3] = [
    ("segments.rec", FileKind::new(*b"aisegmt\0", 1)),
    ("texts.rec", FileKind::new(*b"aitexts\0", 1)),
    ("tables.rec", FileKind::new(*b"aitable\0", 1)),
];

/// The payloads of a sound archive, file by file.
static SOUND: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| {
    let files = MemoryFiles::default();
    let mut archive =
        SnapshotArchive::with_options(ArchiveOptions { segment_bytes: 64, segment_frames: 4 });
    for n in 0..12_u64 {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        let part = Part::Call { id: Some("c".into()), name: "f".into() };
        let of = ChunkOptions::new().facet("a").facet(format!("f-{n}")).role(Role::User).part(part);
        builder.add_content(&format!("frame {n} 漢"), of.metadata(Object::new()));
        builder.nest();
        builder.add_content("\n", ChunkOptions::new().chunk_type("formatting"));
        archive.push(n * 2, &builder.build(Millis::new(5))).expect("a sound frame");
    }
    let range = FrameSeq::new(3)..=FrameSeq::new(4);
    archive.drop_text(range).expect("a range");
    archive.check().expect("sound tables");
    let disk = Arc::new(files.clone());
    archive.save_on(disk, "a", &Holder::new("fuzz")).expect("a disk");
    let payloads = |(name, kind): &(&str, FileKind)| {
        let records = RecordFile::open(&files, Path::new("a").join(name), *kind).expect("a file");
        let scan = records.outline().expect("records");
        let read = |entry| match entry {
            Ok(afterimage::log::ScanEntry::Record(record)) => {
                records.read(record.position).expect("a record")
            }
            other => panic!("{other:?}"),
        };
        scan.map(read).collect()
    };
    FILES.iter().map(payloads).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let [which, how, rest @ ..] = bytes else { return };
    let which = usize::from(*which) % FILES.len();
    let mut payloads = SOUND.clone();
    let last = payloads[which].last_mut().expect("a record");
    let is_packed = which > 0;
    let sound = if is_packed { unpack(last, 1 << 20).expect("sound") } else { last.clone() };
    let payload = if how % 2 == 0 {
        rest.to_vec()
    } else {
        // A few bytes changed, and the end cut.
        let mut payload = sound;
        for edit in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % payload.len();
            payload[at] = edit[2];
        }
        let cut = usize::from(how / 16);
        payload.truncate(payload.len() - cut.min(payload.len()));
        payload
    };
    *last = match how / 2 % 4 {
        0 if is_packed => pack(&payload),
        _ if is_packed => [&[0], payload.as_slice()].concat(),
        _ => payload,
    };
    let disk = Arc::new(MemoryFiles::default());
    create_dirs(&*disk, "a").expect("a disk");
    for ((name, kind), payloads) in FILES.iter().zip(&payloads) {
        let path: PathBuf = Path::new("a").join(name);
        let (mut writer, _) =
            RecordWriter::open(Arc::clone(&disk) as Arc<dyn Files>, path, *kind).expect("a disk");
        for payload in payloads {
            writer.append(payload).expect("a disk");
        }
        writer.sync().expect("a disk");
    }
    let Ok(opened) = SnapshotArchive::open_on(disk, "a") else { return };
    let archive = opened.archive;
    for facet in ["a", "f-0", "f-11", "nobody"] {
        if let Ok(chunks) = archive.chunks_of(facet) {
            assert!(chunks.iter().all(|chunk| chunk.facet_ids().any(|id| id == facet)));
        }
    }
    for sequence in 0..30 {
        let Ok(Some(view)) = archive.get(sequence) else { continue };
        let text = view.text().join();
        let chunks: String = view.chunks().map(|chunk| chunk.content()).collect();
        assert_eq!(chunks, text);
        for (_, snapshot) in view.snapshots() {
            assert_eq!(snapshot.text(), text);
            let sum = snapshot.chunks().fold(0_u64, |sum, chunk| sum + chunk.tokens());
            assert_eq!(sum, snapshot.total_tokens());
        }
    }
});
