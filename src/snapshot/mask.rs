use super::{
    FrameSnapshot, SnapshotOptions,
    chunk::{Chunk, Part},
    frame_snapshot::OwnBody,
    shorten::{nesting, without_structure},
    tiling::Tiling,
};
use crate::{
    id::{ChunkType, FacetId},
    tokens::TokenCounter,
};

/// What a tool gave, as a snapshot shows it.
pub(crate) struct ToolOutput<'a> {
    /// The facet of the result.
    pub(crate) facet: Option<&'a str>,
    /// Its text.
    pub(crate) text: &'a str,
    /// The tokens of all of it.
    pub(crate) tokens: u64,
}

impl FrameSnapshot {
    /// The snapshot with one line in place of each result and what is inside of it. Without
    /// results, one line stands for all but the tags of the format. `line` writes that line. `None`
    /// where the snapshot gets no shorter.
    ///
    /// A line belongs to the result's facet and is its part, so that it still answers its call.
    pub(crate) fn masked(
        &self,
        counter: &dyn TokenCounter,
        line: impl Fn(ToolOutput<'_>) -> String,
    ) -> Option<Self> {
        let own = self.own();
        let OwnBody { text: whole, chunks } = &*own;
        let has_results = chunks.iter().any(is_result);
        let mut tiling = Tiling::with_capacity(SnapshotOptions::default(), chunks.len(), 0);
        // Where the chunks begin in the new snapshot; and whether they are output.
        let mut places: Vec<usize> = Vec::with_capacity(chunks.len());
        let mut outputs: Vec<bool> = Vec::with_capacity(chunks.len());
        let mut open: Option<OpenOutput<'_>> = None;
        for chunk in chunks {
            let structure = chunk.rare.as_ref().and_then(|rare| rare.structure.as_ref());
            let parent = structure.and_then(|structure| structure.parent);
            let is_inside = parent.is_some_and(|parent| outputs.get(parent) == Some(&true));
            let is_output = is_inside
                || match chunk.range.of(whole).trim() {
                    _ if has_results => is_result(chunk),
                    // White space between two outputs goes with them; it begins none.
                    "" => open.is_some(),
                    _ => chunk.chunk_type != Some(ChunkType::FORMATTING),
                };
            let goes_on = is_inside || !has_results;
            open = match open {
                // A result may be several chunks in a row.
                Some(output) if is_output && (goes_on || output.first.facets == chunk.facets) => {
                    let (end, tokens) = (chunk.range.end(), output.tokens + chunk.tokens);
                    Some(OpenOutput { end, tokens, ..output })
                }
                before => {
                    before
                        .into_iter()
                        .for_each(|output| write(&mut tiling, whole, output, &line, counter));
                    let (first, end, tokens) = (chunk, chunk.range.end(), chunk.tokens);
                    is_output.then_some(OpenOutput { first, end, tokens })
                }
            };
            places.push(tiling.len());
            outputs.push(is_output);
            if !is_output {
                let nested = nesting(chunk, &places);
                tiling.add_counted(chunk.range.of(whole), without_structure(chunk), nested);
            }
        }
        open.into_iter().for_each(|output| write(&mut tiling, whole, output, &line, counter));
        let exact = tiling.exact_tokens(counter);
        let masked = tiling.build(self.captured_at, Some(exact), self.identity.clone());
        (masked.total_tokens < self.total_tokens).then_some(masked)
    }
}

fn is_result(chunk: &Chunk) -> bool {
    matches!(chunk.part, Part::Result { .. })
}

/// An output, as far as its chunks were looked at.
struct OpenOutput<'a> {
    first: &'a Chunk,
    /// Where it ends in the text.
    end: usize,
    tokens: u64,
}

/// Writes the line that stands for an output.
fn write(
    tiling: &mut Tiling,
    whole: &str,
    OpenOutput { first, end, tokens }: OpenOutput<'_>,
    line: impl Fn(ToolOutput<'_>) -> String,
    counter: &dyn TokenCounter,
) {
    let facets = first.facets.as_slice().unwrap_or_default();
    let facet = facets.first().map(FacetId::as_str);
    let text = whole.get(first.range.start()..end).unwrap_or_default();
    let text = line(ToolOutput { facet, text, tokens });
    let chunk = Chunk { tokens: counter.count(&text) as u64, ..without_structure(first) };
    tiling.add_counted(&text, chunk, None);
}

#[cfg(test)]
mod tests {
    use super::ToolOutput;
    use crate::{
        id::{ChunkType, Millis},
        snapshot::{ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, Part, PartRef},
        tokens::Chars4,
    };

    fn snapshot(pieces: &[(&str, Option<&str>)]) -> FrameSnapshot {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        for (text, call) in pieces {
            let part = call.map_or(Part::Text, |id| Part::Result { id: Some(id.into()) });
            let facet = call.unwrap_or("said");
            builder.add_content(text, ChunkOptions::new().facet(facet).part(part));
        }
        builder.build(Millis::new(0))
    }

    fn masked(pieces: &[(&str, Option<&str>)]) -> Option<FrameSnapshot> {
        snapshot(pieces).masked(&Chars4, |output| format!("[{}]", output.tokens))
    }

    #[test]
    fn results_have_one_line_each_and_still_answer_their_calls() {
        let long = "much ".repeat(20);
        let all = [(&*long, Some("a")), (&*long, Some("a")), ("so\n", None), (&*long, Some("b"))];
        let masked = masked(&all).unwrap();
        assert_eq!(masked.text(), "[50]so\n[25]");
        let ids = masked.chunks().filter_map(|chunk| match chunk.part() {
            PartRef::Result { id } => id.map(str::to_owned),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_frame_without_results_is_one_line_and_short_ones_stay() {
        let long = "much ".repeat(20);
        assert_eq!(masked(&[(&*long, None), (&*long, None)]).unwrap().text(), "[50]");
        assert!(masked(&[("ok", Some("a"))]).is_none());
    }

    #[test]
    fn tags_around_an_output_stay_and_white_space_in_it_goes() {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        let long = "much ".repeat(20);
        let formatting = || ChunkOptions::new().chunk_type(ChunkType::FORMATTING);
        builder.add_content("<said>", formatting());
        builder.add_content(&long, ChunkOptions::new().facet("said"));
        builder.add_content("\n", formatting());
        builder.add_content(&long, ChunkOptions::new().facet("more"));
        builder.add_content("</said>", formatting());
        let snapshot = builder.build(Millis::new(0));
        let masked = snapshot.masked(&Chars4, |output| format!("[{}]", output.tokens)).unwrap();
        assert_eq!(masked.text(), "<said>[51]</said>");
    }

    #[test]
    fn white_space_begins_no_output() {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        let long = "much ".repeat(20);
        let formatting = || ChunkOptions::new().chunk_type(ChunkType::FORMATTING);
        builder.add_content("<said>", formatting());
        builder.add_content(&long, ChunkOptions::new().facet("said"));
        builder.add_content("</said>", formatting());
        builder.add_content("\n", formatting());
        builder.add_content(&long, ChunkOptions::new().facet("more"));
        let snapshot = builder.build(Millis::new(0));
        let line = |output: ToolOutput<'_>| format!("[{}]", output.facet.unwrap_or("none"));
        let masked = snapshot.masked(&Chars4, line).unwrap();
        assert_eq!(masked.text(), "<said>[said]</said>\n[more]");
        let last = masked.chunks().next_back().unwrap();
        assert_eq!(last.chunk_type(), None);
        assert!(last.facet_ids().eq(["more"]));
    }
}
