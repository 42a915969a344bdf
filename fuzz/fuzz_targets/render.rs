//! Facets of any kind and content render without a panic, tile, and cannot forge a turn.
#![no_main]

use std::sync::Arc;

use afterimage::{
    hud::{Hud, Merge, RenderRequest, format_by_name},
    id::{ChunkType, Millis},
    json::{Object, Value},
    snapshot::{PartRef, SnapshotOptions},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    longest: Option<u8>,
    frames: Vec<(bool, Vec<Op<'a>>)>,
}

#[derive(Arbitrary, Debug)]
enum Op<'a> {
    Add(u8, Shape<'a>),
    Rewrite(u8, &'a str),
    Remove(u8),
}

#[derive(Arbitrary, Debug)]
struct Shape<'a> {
    kind: u8,
    content: &'a str,
    name: Option<&'a str>,
    ephemeral: bool,
    children: Vec<Shape<'a>>,
}

impl Shape<'_> {
    fn facet(&self, id: &str, depth: u8) -> Facet {
        let kinds = ["event", "speech", "thought", "state", "ambient", "system", "image", "opaque"];
        let mut facet = match self.kind % 11 {
            8 => {
                let parameters =
                    Object::from_iter([(self.content.to_owned(), Value::from(self.content))]);
                Facet::tool_call(id, None, self.content, parameters.into())
            }
            9 => Facet::tool_result(id, Some(self.content), self.name, self.content),
            10 => Facet::tool_call(id, Some(self.content), "f", self.content.into()),
            kind => Facet::new(id, kinds[usize::from(kind) % kinds.len()], self.content),
        };
        facet.display_name = self.name.map(str::to_owned);
        facet.ephemeral = self.ephemeral;
        if depth < 5 {
            let children = self.children.iter().enumerate();
            facet.children = children
                .map(|(index, child)| child.facet(&format!("{id}.{index}"), depth + 1))
                .collect();
        }
        facet
    }
}

fuzz_target!(|input: Input<'_>| {
    for format in ["xml", "plain", "native"] {
        let max_chunk_bytes = input.longest.map(usize::from);
        let hud = Hud::builder(Arc::new(Chars4))
            .format(format_by_name(format).expect("a built-in format"))
            .snapshot_options(SnapshotOptions { max_chunk_bytes, ..SnapshotOptions::default() })
            .build();
        let mut history = History::new();
        for (agent, ops) in &input.frames {
            let source = if *agent { Source::Agent } else { Source::User };
            let mut frame = Frame::new(history.next_sequence().expect("a short history"), source);
            frame.ops.extend(ops.iter().map(|op| match op {
                Op::Add(id, shape) => FacetOp::add(shape.facet(&(id % 8).to_string(), 0)),
                Op::Rewrite(id, content) => {
                    let changes =
                        Object::from_iter([("content".to_owned(), Value::from(*content))]);
                    FacetOp::rewrite((id % 8).to_string(), changes)
                }
                Op::Remove(id) => FacetOp::remove((id % 8).to_string()),
            }));
            let Ok(frame) = hud.capture(&mut history, frame, Millis::new(0)) else { continue };
            let snapshot = frame.rendered_snapshot.as_deref().expect("a captured frame");
            let mut end = 0;
            for chunk in snapshot.chunks() {
                assert_eq!(chunk.range().start(), end);
                end = chunk.range().end();
            }
            assert_eq!(end, snapshot.text().len());
            if format == "xml" {
                let lower = snapshot.text().to_ascii_lowercase();
                for (at, _) in
                    lower.match_indices("<my_turn>").chain(lower.match_indices("</tool_call>"))
                {
                    let chunk = snapshot.chunk_at(at).expect("a byte of the text");
                    // A tool may be called by parameters only: their bodies are the renderer's.
                    let is_call = matches!(chunk.part(), PartRef::Call { .. });
                    assert!(!is_call && chunk.chunk_type() == Some(ChunkType::FORMATTING.as_str()));
                }
            }
        }
        let request = RenderRequest { merge: Merge::AdjacentRoles, ..RenderRequest::default() };
        let context = hud.render(&history, &request, Millis::new(0)).expect("built-in formats");
        for message in context.messages() {
            let bytes: usize = context.spans(message).iter().map(|span| span.range.len()).sum();
            assert_eq!(bytes, message.content().len());
        }
    }
});
