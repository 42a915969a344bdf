//! The smallest use: build a snapshot by hand and ask who wrote what.
//!
//! `cargo run -p afterimage --example snapshot`

use afterimage::{
    id::{Millis, Role},
    snapshot::{ChunkOptions, FrameSnapshotBuilder, find_chunks_by_facet},
    tokens::Bpe,
};

fn main() {
    let counter = Bpe::o200k();
    let mut builder = FrameSnapshotBuilder::new(&counter);
    let formatting = || ChunkOptions::new().chunk_type("formatting").role(Role::Assistant);
    let speech = ChunkOptions::new().facet("speech-1").chunk_type("speech").role(Role::Assistant);
    builder.add_content("<my_turn>\n\n", formatting());
    builder.add_content("The energy signature repeats every 127 seconds.", speech);
    builder.add_content("\n\n</my_turn>", formatting());
    let snapshot = builder.build(Millis::from(std::time::SystemTime::now()));

    for chunk in snapshot.chunks() {
        println!("{:>3} tokens  {:?}  {:?}", chunk.tokens(), chunk.facet_ids(), chunk.content());
    }
    println!("{} tokens in {} chunks", snapshot.total_tokens(), snapshot.len());
    let [chunk] = find_chunks_by_facet(&snapshot, "speech-1")[..] else { unreachable!() };
    assert_eq!(chunk.content(), "The energy signature repeats every 127 seconds.");
}
