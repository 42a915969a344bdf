//! The rules, numbers, paths and names of frames that a context does not say.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use super::{
    LostKind, LostText, WindowOriginals,
    originals::{Original, Replaced},
    readable::ReadableText,
};
use crate::{
    hud::{Message, RenderedContext},
    id::{ChunkType, FrameSeq},
    steps::{OwnWords, said_by_user},
    summary::identifiers,
    window::FittedContext,
};

/// Looks for what a context does not say.
pub(super) struct LostTexts<'t> {
    now: ReadableText,
    before: Option<Before>,
    known: HashMap<(bool, &'t str), Known>,
    lost: Vec<LostText>,
    /// The last frame that was found to say each of them.
    last: Vec<FrameSeq>,
}

/// A context before: what it did not say either is none of the loss.
struct Before {
    text: ReadableText,
    last: Option<FrameSeq>,
}

/// What is known of a text that was met.
#[derive(Clone, Copy)]
enum Known {
    Readable,
    /// It could not be read before either.
    Old,
    Lost(usize),
}

impl<'t> LostTexts<'t> {
    pub(super) fn of(context: &RenderedContext) -> Self {
        let (known, lost, last) = (HashMap::new(), Vec::new(), Vec::new());
        Self { now: ReadableText::of(context), before: None, known, lost, last }
    }

    /// Leaves out what could not be read in `before` either, but for frames that came later.
    pub(super) fn since(self, before: &FittedContext) -> Self {
        let (text, last) = (ReadableText::of(&before.context), last_frame_of(before));
        Self { before: Some(Before { text, last }), ..self }
    }

    /// What these frames say and the context does not.
    pub(super) fn read(
        mut self,
        originals: &WindowOriginals<'_>,
        replaced: &'t [Replaced],
    ) -> Vec<LostText> {
        for original in replaced.iter().flat_map(|replaced| &replaced.originals) {
            let snapshot = &*original.passage.snapshot;
            if originals.is_words(original.passage.from) {
                for text in said_by_user(snapshot) {
                    for (_, rule) in OwnWords::of(text).rules() {
                        self.note(LostKind::Rule, rule, original);
                    }
                }
            }
            for chunk in snapshot.chunks() {
                if chunk.chunk_type() != Some(ChunkType::FORMATTING.as_str()) {
                    for name in identifiers(chunk.content()) {
                        self.note(kind_of(name), name, original);
                    }
                }
            }
        }
        self.lost.sort_by_key(|lost| lost.kind);
        self.lost
    }

    fn note(&mut self, kind: LostKind, text: &'t str, original: &Original) {
        let frame = original.passage.from;
        let known = match self.known.entry((kind == LostKind::Rule, text)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(if self.now.says(text) { Known::Readable } else { Known::Old })
            }
        };
        match *known {
            Known::Readable => {}
            Known::Lost(at) => {
                if let (Some(lost), Some(last)) = (self.lost.get_mut(at), self.last.get_mut(at)) {
                    lost.frames += u64::from(*last != frame);
                    *last = frame;
                }
            }
            Known::Old => {
                let is_new = self.before.as_ref().is_none_or(|before| {
                    before.last.is_none_or(|last| frame > last) || before.text.says(text)
                });
                if is_new {
                    *known = Known::Lost(self.lost.len());
                    let (text, id) = (text.to_owned(), Arc::clone(&original.id));
                    self.lost.push(LostText { kind, text, frame, frames: 1, id });
                    self.last.push(frame);
                }
            }
        }
    }
}

/// The last frame that a context holds, or that something in it stands for.
pub(super) fn last_frame_of(fitted: &FittedContext) -> Option<FrameSeq> {
    let messages = fitted.context.messages().iter().filter_map(Message::frames);
    let shown = messages.map(|(_, last)| last);
    let dropped = fitted.dropped.iter().map(|dropped| dropped.to);
    shown.chain(dropped).max()
}

fn kind_of(name: &str) -> LostKind {
    let is_numeral = |c: char| !c.is_alphabetic() || matches!(c, 'T' | 'Z');
    if name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_numeral) {
        LostKind::Number
    } else if name.contains('/') && !name.contains("://") {
        LostKind::Path
    } else {
        LostKind::Name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_apart_by_their_letters() {
        for (name, kind) in [
            ("20417", LostKind::Number),
            ("2026-03-24", LostKind::Number),
            ("2026-03-24T02:10:00Z", LostKind::Number),
            ("src/a.rs", LostKind::Path),
            ("/tmp/2026", LostKind::Path),
            ("https://a.org/b", LostKind::Name),
            ("mia_li_3668", LostKind::Name),
            ("4f2a", LostKind::Name),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
