use std::{cell::RefCell, collections::HashMap, sync::Arc};

use afterimage::{
    hud::Owner,
    id::{FacetId, FrameSeq},
    request::Recording,
    steps::FacetCalls,
    veil::{Facet, History},
};

use super::{FrameLabels, Label};
use crate::text::first_words;

/// The labels of the frames of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionLabels(Arc<HashMap<FrameSeq, FrameLabels>>);

impl SessionLabels {
    /// Of all frames that show something.
    pub(crate) fn of_history(history: &History) -> Self {
        let frames = history.frames();
        let mut calls = FacetCalls::default();
        let labelled = (0..frames.len()).filter_map(|index| {
            frames.snapshot(index).filter(|snapshot| !snapshot.is_empty())?;
            let frame = frames.get(index)?;
            Some((frame.sequence, FrameLabels::new(&frame, &mut calls)))
        });
        Self(Arc::new(labelled.collect()))
    }

    /// The label of a facet; where the frame does not have it, or none is named, that of the frame.
    pub(crate) fn of(&self, frame: FrameSeq, facet: Option<&str>) -> Label {
        let Some(labels) = self.0.get(&frame) else { return Label::default() };
        facet.map_or_else(|| labels.frame(), |facet| labels.of(facet)).clone()
    }

    /// The label of a frame, with the first call that it makes or answers.
    pub(crate) fn of_frame(&self, frame: FrameSeq) -> Label {
        self.0.get(&frame).map_or_else(Label::default, FrameLabels::frame_with_call)
    }

    /// The label of what an owner names; `None` where that is in no frame.
    pub(crate) fn of_owner(&self, owner: &Owner) -> Option<Label> {
        let (frame, facet) = match owner {
            Owner::Recorded { facet, frame } => ((*frame)?, Some(facet.as_str())),
            Owner::Chunk { frame, facet_ids, .. } => {
                (*frame, facet_ids.first().map(FacetId::as_str))
            }
            _ => return None,
        };
        Some(self.of(frame, facet))
    }
}

/// Labels facets of a recording.
pub(crate) struct RecordingLabels<'r> {
    recording: &'r Recording,
    /// Of the sessions that were asked for.
    sessions: RefCell<HashMap<Arc<str>, SessionLabels>>,
}

impl<'r> RecordingLabels<'r> {
    pub(crate) fn new(recording: &'r Recording) -> Self {
        Self { recording, sessions: RefCell::default() }
    }

    /// As [`SessionLabels::of`].
    pub(crate) fn of(&self, session: &str, frame: FrameSeq, facet: Option<&str>) -> Label {
        self.session(session).of(frame, facet)
    }

    /// As [`SessionLabels::of_owner`].
    pub(crate) fn of_owner(&self, session: &str, owner: &Owner) -> Option<Label> {
        self.session(session).of_owner(owner)
    }

    /// The first words that a frame says.
    pub(crate) fn words(&self, session: &str, frame: FrameSeq, columns: usize) -> String {
        let frame = self.recording.history(session).and_then(|history| history.get(frame));
        let added = frame.iter().flat_map(|frame| frame.added());
        let mut texts = added.map(|facet| first_words(&facet.content, columns));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The names of the tools that a frame calls.
    pub(crate) fn calls(&self, session: &str, frame: FrameSeq) -> Vec<String> {
        let frame = self.recording.history(session).and_then(|history| history.get(frame));
        let calls = frame.iter().flat_map(|frame| frame.added()).filter_map(Facet::call);
        calls.map(|call| call.name.to_owned()).collect()
    }

    /// The labels of a session, worked out once.
    pub(crate) fn session(&self, name: &str) -> SessionLabels {
        if let Some(known) = self.sessions.borrow().get(name) {
            return known.clone();
        }
        let history = self.recording.history(name);
        let labels = history.map_or_else(SessionLabels::default, SessionLabels::of_history);
        self.sessions.borrow_mut().insert(name.into(), labels.clone());
        labels
    }
}
