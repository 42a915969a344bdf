//! Which names the agent used that stand in what it was not sent.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    hud::{Message, RenderedContext},
    id::FrameSeq,
    snapshot::FrameSnapshot,
    summary::identifiers,
};

/// The names of a session, each with the frames that it stands in.
#[derive(Debug, Default)]
pub(super) struct Names {
    frames: HashMap<Arc<str>, Vec<FrameSeq>>,
}

impl Names {
    pub(super) fn push(&mut self, frame: FrameSeq, snapshot: &FrameSnapshot) {
        for name in names_of(snapshot) {
            match self.frames.get_mut(name) {
                Some(frames) => frames.push(frame),
                None => drop(self.frames.insert(name.into(), vec![frame])),
            }
        }
    }

    /// How many names of `said` stand in frames that the context does not hold as they are; and
    /// how many of those stand in the context.
    pub(super) fn needed(
        &self,
        said: &FrameSnapshot,
        context: &RenderedContext,
        is_there: impl Fn(FrameSeq) -> bool,
    ) -> (u64, u64) {
        let is_needed = |name: &&str| {
            let frames = self.frames.get(*name);
            frames.is_some_and(|frames| frames.iter().any(|frame| !is_there(*frame)))
        };
        let needed: Vec<&str> = names_of(said).into_iter().filter(is_needed).collect();
        if needed.is_empty() {
            return (0, 0);
        }
        let texts: Vec<_> = context.messages().iter().map(Message::content).collect();
        let held: HashSet<&str> = texts.iter().flat_map(|text| identifiers(text)).collect();
        (needed.len() as u64, needed.iter().filter(|name| held.contains(**name)).count() as u64)
    }
}

/// The distinct names of a text.
fn names_of(snapshot: &FrameSnapshot) -> HashSet<&str> {
    identifiers(snapshot.text()).collect()
}
