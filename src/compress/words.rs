use super::ledger::{Speaker, TextLog, is_of_program, may_be_words};
use crate::{
    id::Role,
    snapshot::{ChunkRef, FrameSnapshot, PartRef},
    veil::Source,
};

/// Where the user's words stand in a history: told by the frame's source and by its parts, not by
/// the role alone. Each frame is looked at once.
#[derive(Clone, Debug, Default)]
pub(super) struct WordPlaces {
    /// The indices of the frames with words of the user, in order.
    all: Vec<usize>,
    log: TextLog,
}

impl WordPlaces {
    /// Looks at the next frame; says whether it holds words of the user.
    pub(super) fn read(&mut self, index: usize, source: &Source, snapshot: &FrameSnapshot) -> bool {
        let mut is_words = false;
        for chunk in snapshot.chunks() {
            let role = chunk.role().unwrap_or(Role::User);
            match chunk.part() {
                PartRef::Call { .. } => self.log.sees_call(),
                PartRef::Text
                    if may_be_words(chunk.chunk_type()) && !chunk.content().trim().is_empty() =>
                {
                    let speaker = self.log.hears(role, chunk.content());
                    is_words |= speaker == Speaker::User && *source == Source::User;
                }
                _ => {}
            }
        }
        if is_words {
            self.all.push(index);
        }
        is_words
    }

    /// Whether a frame holds words of the user.
    pub(super) fn holds(&self, index: usize) -> bool {
        self.all.binary_search(&index).is_ok()
    }

    /// The frame of the user's first message.
    pub(super) fn first(&self) -> Option<usize> {
        self.all.first().copied()
    }

    /// The frame of the user's last instruction.
    pub(super) fn last(&self) -> Option<usize> {
        self.all.last().copied()
    }
}

/// The texts that the user says in a frame with words of theirs: what programs put beside them is
/// left out.
pub(crate) fn said_by_user(snapshot: &FrameSnapshot) -> impl Iterator<Item = &str> {
    let texts = snapshot.chunks().filter(|chunk| {
        let role = chunk.role().unwrap_or(Role::User);
        matches!(chunk.part(), PartRef::Text)
            && may_be_words(chunk.chunk_type())
            && role == Role::User
            && !is_of_program(chunk.content())
    });
    texts.map(ChunkRef::content)
}
