//! Rendering a transcript frame by frame, without keeping what was rendered.

use std::sync::Arc;

use afterimage::{
    Result,
    hud::{Hud, RenderRequest, format_by_name},
    id::{FacetType, Millis},
    snapshot::{ChunkRef, FrameSnapshot},
    tokens::{self, Memo, TokenCounter},
    transcript::{Record, TranscriptFormat},
    veil::{FacetOp, Frame, Source, Veil},
};
use indexmap::IndexMap;

use crate::{
    args::Rendering,
    failure::{Failure, Outcome},
};

/// The HUD that the command line asks for. A text that is counted again costs a look-up.
pub(crate) fn hud(rendering: &Rendering) -> Outcome<Hud> {
    let missing = |what: &str| Failure::new(format!("this build has no {what}"));
    let (format, tokenizer) = (rendering.format.name(), rendering.tokenizer.name());
    let counter = tokens::by_name(tokenizer).ok_or_else(|| missing(tokenizer))?;
    let format = format_by_name(format).ok_or_else(|| missing(format))?;
    Ok(Hud::builder(Arc::new(Memo::new(counter))).format(format).build())
}

/// Renders the frames of one file, session by session, as they come.
pub(crate) struct Viewer<'h> {
    hud: &'h Hud,
    /// Whether later frames may change the facets of earlier ones. Those of imports never do, so
    /// their facets are let go at once.
    keeps_facets: bool,
    sessions: IndexMap<Arc<str>, Session>,
}

#[derive(Default)]
struct Session {
    veil: Veil,
    messages: usize,
}

/// A frame with what it rendered to.
pub(crate) struct Seen {
    pub(crate) session: Arc<str>,
    pub(crate) frame: Frame,
    pub(crate) snapshot: Arc<FrameSnapshot>,
    /// The index of its message in the session's context; `None` where it shows nothing.
    pub(crate) message: Option<usize>,
    is_counted: bool,
}

/// What the model sees after the last frame of a session.
pub(crate) struct Tail {
    pub(crate) session: Arc<str>,
    pub(crate) snapshot: FrameSnapshot,
    pub(crate) message: usize,
}

impl<'h> Viewer<'h> {
    pub(crate) fn new(hud: &'h Hud, format: TranscriptFormat) -> Self {
        let keeps_facets = format == TranscriptFormat::Frames;
        Self { hud, keeps_facets, sessions: IndexMap::new() }
    }

    /// Renders a frame, unless it brings what it rendered to.
    pub(crate) fn see(&mut self, record: Record) -> Result<Seen> {
        let Record { session: name, frame } = record;
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        let shown = session.veil.apply(&frame)?;
        let snapshot = match &frame.rendered_snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(self.hud.render_frame(&frame, &shown, moment(&frame))?),
        };
        if !self.keeps_facets {
            let gone = session.veil.facets();
            let gone = gone.iter().filter(|facet| facet.facet_type != FacetType::AMBIENT);
            let forget = gone.fold(Frame::new(frame.sequence, Source::System), |forget, facet| {
                forget.with(FacetOp::remove(facet.id.clone()))
            });
            session.veil.apply(&forget)?;
        }
        let message = (!snapshot.is_empty()).then_some(session.messages);
        session.messages += usize::from(message.is_some());
        let made_by = snapshot.identity();
        let is_counted =
            made_by.is_some_and(|made_by| made_by.tokenizer == self.hud.counter().id());
        Ok(Seen { session: name, frame, snapshot, message, is_counted })
    }

    /// The tokens of a chunk. What another tokenizer counted is counted again.
    pub(crate) fn tokens(&self, seen: &Seen, chunk: ChunkRef<'_>) -> u64 {
        if seen.is_counted {
            chunk.tokens()
        } else {
            self.hud.counter().count(chunk.content()) as u64
        }
    }

    /// The tokens of all chunks of a frame.
    pub(crate) fn total_tokens(&self, seen: &Seen) -> u64 {
        seen.snapshot.chunks().map(|chunk| self.tokens(seen, chunk)).sum()
    }

    /// The number of messages of a session so far, the tail aside.
    pub(crate) fn messages(&self, session: &str) -> Option<usize> {
        self.sessions.get(session).map(|session| session.messages)
    }

    /// What the model sees after the last frame of a session; `None` where that is nothing.
    pub(crate) fn tail(&self, session: &str) -> Result<Option<Tail>> {
        let Some((_, name, Session { veil, messages })) = self.sessions.get_full(session) else {
            return Ok(None);
        };
        let tail = self.hud.render_tail(veil, &RenderRequest::default(), Millis::default())?;
        Ok(tail.map(|snapshot| Tail { session: Arc::clone(name), snapshot, message: *messages }))
    }

    /// The tails of all sessions.
    pub(crate) fn tails(&self) -> impl Iterator<Item = Result<Tail>> {
        self.sessions.keys().filter_map(|session| self.tail(session).transpose())
    }
}

/// The moment of a frame: its timestamp, so that the same input gives the same snapshots on every
/// run. The epoch where it has none.
pub(crate) fn moment(frame: &Frame) -> Millis {
    let timestamp =
        frame.timestamp.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Millis::new(timestamp.map_or(0, jiff::Timestamp::as_millisecond))
}
