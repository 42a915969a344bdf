use crate::{id::FacetType, veil::Frame};

/// What frames hold, counted from the frames alone.
///
/// ```
/// use afterimage::transcript::{Tally, Transcript};
///
/// let file = br#"[{"role": "user", "content": "Is it open?"}, {"role": "tool", "content": "Yes."}]"#;
/// let mut tally = Tally::default();
/// for record in Transcript::new(&file[..])? {
///     tally.add(&record?.frame);
/// }
/// assert_eq!((tally.messages, tally.tool_calls, tally.tool_results), (2, 0, 1));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages: frames that an import marked as one, and every frame that no import made.
    pub messages: u64,
    /// Tool calls that frames add.
    pub tool_calls: u64,
    /// Results of tool calls that frames add.
    pub tool_results: u64,
}

impl Tally {
    /// Counts a frame. O(facets of the frame).
    pub fn add(&mut self, frame: &Frame) {
        self.messages += u64::from(is_message(frame));
        for facet in frame.added() {
            self.tool_calls += u64::from(facet.call().is_some());
            self.tool_results += u64::from(facet.facet_type == FacetType::RESULT);
        }
    }
}

fn is_message(frame: &Frame) -> bool {
    frame.imported.as_ref().is_none_or(|imported| imported.is_message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json::Value,
        veil::{Facet, FacetOp, Imported, Source},
    };

    #[test]
    fn frames_of_other_makers_are_messages_and_only_what_they_add_is_counted() {
        let frame = |imported: Option<bool>| Frame {
            imported: imported
                .map(|is_message| Box::new(Imported { is_message, ..Imported::default() })),
            ..Frame::new(0, Source::Agent)
        };
        let call = Facet::tool_call("c", None, "open", Value::Null);
        let result = Facet::tool_result("r", None, None, "done");
        let nested = Facet::new("e", FacetType::EVENT, "").with_child(result.clone());
        let acting = frame(None)
            .with(FacetOp::add(call))
            .with(FacetOp::add(result))
            .with(FacetOp::add(nested))
            .with(FacetOp::remove("x"));
        let mut tally = Tally::default();
        tally.add(&acting);
        tally.add(&frame(None));
        tally.add(&frame(Some(false)));
        tally.add(&frame(Some(true)));
        assert_eq!(tally, Tally { messages: 3, tool_calls: 1, tool_results: 1 });
    }
}
