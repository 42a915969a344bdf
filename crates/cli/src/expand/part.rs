//! The part of the originals that is looked for.

use std::sync::Arc;

use afterimage::{
    Result, id::FrameSeq, snapshot::FrameSnapshot, text::TextRange, window::FramePage,
};

use super::args::Expand;
use crate::{
    failure::Failure,
    fitting::Session,
    text::{counted, grouped},
};

/// So many other frames are named.
const NAMED: usize = 8;

/// What is looked for.
pub(super) struct Part<'a> {
    text: Option<&'a str>,
    frame: Option<FrameSeq>,
    limit: u64,
}

/// A frame with the place of the text in it.
type Place = (FrameSeq, TextRange);

impl<'a> Part<'a> {
    /// `None` where all of a block is asked for.
    pub(super) fn of(args: &'a Expand) -> Option<Self> {
        let (text, frame) = (args.around.as_deref(), args.frame.map(FrameSeq::new));
        let limit = args.limit.unwrap_or(FramePage::LIMIT);
        (text.is_some() || frame.is_some()).then_some(Self { text, frame, limit })
    }

    /// The part in a session, or in a block of it, and where it stands.
    pub(super) fn find(
        &self,
        session: &Session<'_>,
        block: Option<&str>,
    ) -> Result<Option<(FramePage, Option<String>)>> {
        let places = self.places(session, block)?;
        let Some((first, others)) = places.split_first() else { return Ok(None) };
        let originals = session.window.originals(&session.history);
        let page = originals.page(first.0, first.1, self.limit)?;
        let mut said = Vec::new();
        if !page.is_whole {
            let tokens = counted(page.tokens, "token");
            let bytes = [page.range.start(), page.range.end()].map(|at| grouped(at as u64));
            said.push(format!(
                "frame {}, bytes {} to {}: {tokens}",
                page.frame, bytes[0], bytes[1]
            ));
        } else if self.frame.is_none() {
            said.push(format!("frame {}", page.frame));
        }
        if !others.is_empty() {
            let named: Vec<String> =
                others.iter().take(NAMED).map(|(frame, _)| frame.to_string()).collect();
            let more = others.len().saturating_sub(NAMED);
            let more = if more > 0 {
                format!(" and {} more", grouped(more as u64))
            } else {
                String::new()
            };
            let named = named.join(", ");
            said.push(format!("the text stands in frames {named}{more} too: `--frame` names one"));
        }
        Ok(Some((page, (!said.is_empty()).then(|| said.join("; ")))))
    }

    fn places(&self, session: &Session<'_>, block: Option<&str>) -> Result<Vec<Place>> {
        let is_wanted = |frame: FrameSeq| self.frame.is_none_or(|wanted| wanted == frame);
        if let Some(id) = block {
            let passages = session.window.expand(&session.history, id)?.into_iter();
            let passages = passages.filter(|passage| is_wanted(passage.from));
            let places = passages.map(|passage| (passage.from, passage.snapshot));
            return Ok(places.filter_map(|place| self.place(place)).collect());
        }
        match (self.frame, self.text) {
            (Some(frame), _) => {
                let snapshot = session.history.snapshot(frame).filter(|of| !of.is_empty());
                Ok(snapshot.and_then(|of| self.place((frame, of))).into_iter().collect())
            }
            (None, Some(text)) => {
                let found = session.window.originals(&session.history).search(text)?;
                Ok(found.into_iter().map(|found| (found.frame, found.range)).collect())
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Where the text stands in a frame; its beginning without one.
    fn place(&self, (frame, snapshot): (FrameSeq, Arc<FrameSnapshot>)) -> Option<Place> {
        let Some(text) = self.text else { return Some((frame, TextRange::default())) };
        let at = snapshot.text().find(text)?;
        Some((frame, TextRange::at(at, text.len())))
    }

    /// What is said where nobody has it.
    pub(super) fn missing(&self, block: Option<&str>) -> Failure {
        let frame = self.frame.map_or_else(String::new, |frame| frame.to_string());
        let Some(text) = self.text else {
            let place = block.map_or_else(String::new, |id| format!(" of {id}"));
            let failure =
                Failure::new(format!("frame {frame}{place} does not exist, or has no text"));
            return failure.hint("`afterimage frames` lists them");
        };
        let place = match (block, self.frame) {
            (_, Some(_)) => format!("frame {frame} does not contain"),
            (Some(id), None) => format!("the frames of {id} do not contain"),
            (None, None) => "no frame that was replaced in the context contains".to_owned(),
        };
        Failure::new(format!("{place} {text:?}"))
            .hint("`afterimage trace --text` searches the whole session")
    }
}
