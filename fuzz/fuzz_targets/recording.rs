//! Any bytes are a recording or refused, and so are records of any content with sound checksums;
//! what opens is read without a panic, and no body is longer than what is stored of one.
#![no_main]

use std::{path::Path, sync::Arc};

use afterimage::{
    log::{FileKind, Files, OpenMode, RecordWriter, create_dirs, pack, testing::MemoryFiles},
    record::{MOST_STORED, Outcome, Recording, unpacked},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

const KIND: FileKind = FileKind::new(*b"aiwire\0\0", 1);
const FILE: &str = "r/wire.rec";

#[derive(Arbitrary, Debug)]
enum Input {
    File(Vec<u8>),
    /// The kind, the exchange, and the content, packed or not.
    Records(Vec<(u8, u8, bool, Vec<u8>)>),
    /// A sound exchange, and in the place of its request this content.
    Request(Vec<u8>),
    /// A body in these codings.
    Packed(u8, Vec<u8>),
}

const START: &str = r#"{"time":1,"method":"POST","path":"/responses","provider":"p","headers":[]}"#;
const HEAD: &str = r#"{"status":200,"ms":1,"headers":[]}"#;
const END: &str = r#"{"ms":2,"bytes":3,"stored":3}"#;
const CODINGS: [&str; 6] = ["gzip", "deflate", "br", "zstd", "br, gzip", "identity"];

fn record(kind: u8, exchange: u64, content: &[u8]) -> Vec<u8> {
    [&[kind], exchange.to_le_bytes().as_slice(), content].concat()
}

fn write(files: &MemoryFiles, payloads: &[Vec<u8>]) {
    let disk: Arc<dyn Files> = Arc::new(files.clone());
    let (mut writer, _) = RecordWriter::open(disk, FILE, KIND).expect("a disk");
    for payload in payloads {
        writer.append(payload).expect("a disk");
    }
    writer.sync().expect("a disk");
}

fuzz_target!(|input: Input| {
    let files = MemoryFiles::default();
    create_dirs(&files, Path::new("r")).expect("a disk");
    match input {
        Input::File(bytes) => {
            let file = files.open(Path::new(FILE), OpenMode::Append).expect("a disk");
            file.append(&bytes).expect("a disk");
        }
        Input::Records(records) => {
            let payloads = records.iter().map(|(kind, exchange, is_packed, content)| {
                let content = if *is_packed { pack(content) } else { content.clone() };
                record(kind % 8, u64::from(*exchange), &content)
            });
            write(&files, &payloads.collect::<Vec<_>>());
        }
        Input::Request(content) => write(
            &files,
            &[
                record(1, 0, START.as_bytes()),
                record(2, 0, &content),
                record(3, 0, HEAD.as_bytes()),
                record(4, 0, &pack(b"abc")),
                record(5, 0, END.as_bytes()),
            ],
        ),
        Input::Packed(codings, bytes) => {
            let codings = CODINGS[usize::from(codings) % CODINGS.len()];
            if let Ok(found) = unpacked(bytes, codings, 10_000) {
                assert!(found.len() <= 10_000);
            }
            return;
        }
    }
    let Ok(Some(recording)) = Recording::open_from(&files, "r") else { return };
    for exchange in recording.exchanges() {
        let request = recording.request(exchange);
        let response = recording.response(exchange).expect("a disk that reads");
        for body in request.ok().into_iter().chain([response.clone()]) {
            assert!(body.into_parts().0.len() as u64 <= MOST_STORED);
        }
        if let (Some(end), Some(body)) = (&exchange.end, response.whole()) {
            assert_eq!(end.stored, body.len() as u64);
            assert!(exchange.outcome() != Outcome::Running);
        }
    }
});
