//! The lines of images, sounds and documents.

use std::{collections::HashMap, sync::Arc};

use super::{
    ResidencyLine,
    builder::{Builder, Counts, Session},
};
use crate::{
    bill::media::MediaItem,
    id::{FacetId, FrameSeq},
    steps::ToolCall,
    veil::Frame,
};

/// The type of their lines.
const MEDIA: &str = "media";

impl<'r> Builder<'r> {
    /// Gives each image, sound and document of a frame its line.
    pub(super) fn count_media(
        &mut self,
        name: &Arc<str>,
        session: &mut Session<'r>,
        frame: &Frame,
        calls: &HashMap<FacetId, ToolCall>,
    ) {
        let media = MediaItem::of_frame(frame).into_iter().map(|item| {
            let call = item.facet.as_ref().and_then(|facet| calls.get(facet));
            let of = (name, Some(frame.sequence), call);
            (self.line_of_media(session, item.facet.clone(), of), item)
        });
        let media: Vec<_> = media.collect();
        if !media.is_empty() {
            session.media.insert(frame.sequence, media);
        }
    }

    pub(super) fn line_of_media(
        &mut self,
        session: &mut Session<'r>,
        facet: Option<FacetId>,
        (name, frame, call): (&Arc<str>, Option<FrameSeq>, Option<&ToolCall>),
    ) -> usize {
        let turn = frame.and_then(|frame| session.turn_of(frame));
        self.line(session, (facet, true), || ResidencyLine {
            session: Arc::clone(name),
            frame,
            turn,
            chunk_type: Some(MEDIA.into()),
            call: call.cloned(),
            ..ResidencyLine::default()
        })
    }

    /// The images and documents of a frame by the rule of a model; one whose cost is unknown has no
    /// tokens, and is noted.
    pub(super) fn media_of_frame(
        &mut self,
        session: &Session<'r>,
        frame: FrameSeq,
        model: Option<&str>,
    ) -> Counts {
        let media = session.media.get(&frame).map(Vec::as_slice).unwrap_or_default();
        media.iter().map(|(line, item)| (*line, self.tokens_of(*line, item, model))).collect()
    }

    pub(super) fn tokens_of(&mut self, line: usize, item: &MediaItem, model: Option<&str>) -> u64 {
        let tokens = item.tokens(model).ok();
        if tokens.is_none() && self.unknown.insert(line) {
            self.residency.unknown_media += 1;
        }
        tokens.map_or(0, |(tokens, _)| tokens)
    }
}
