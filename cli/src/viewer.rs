//! Rendering a transcript frame by frame, without keeping what was rendered.

use std::sync::Arc;

use afterimage::{
    Result,
    hud::RenderRequest,
    id::{FacetType, Millis},
    snapshot::FrameSnapshot,
    transcript::{Record, TranscriptFormat},
    veil::{FacetChange, FacetOp, Frame, Shown, Source, Veil},
};
use indexmap::IndexMap;

use crate::lens::Lens;

/// Renders the frames of one file, session by session, as they come.
pub(crate) struct Viewer<'l> {
    lens: &'l Lens,
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
}

/// What the model sees after the last frame of a session.
pub(crate) struct Tail {
    pub(crate) session: Arc<str>,
    pub(crate) snapshot: Arc<FrameSnapshot>,
    pub(crate) message: usize,
}

impl<'l> Viewer<'l> {
    pub(crate) fn new(lens: &'l Lens, format: TranscriptFormat) -> Self {
        let keeps_facets = format == TranscriptFormat::Frames;
        Self { lens, keeps_facets, sessions: IndexMap::new() }
    }

    /// Renders a frame, unless it brings what it rendered to, or `rendered` is that.
    pub(crate) fn see(
        &mut self,
        record: Record,
        rendered: Option<&Arc<FrameSnapshot>>,
    ) -> Result<Seen> {
        let Record { session: name, frame } = record;
        let shown = self.follow(&name, &frame)?;
        let snapshot = match frame.rendered_snapshot.as_ref().or(rendered) {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(self.lens.hud.render_frame(&frame, &shown, moment(&frame))?),
        };
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        let message = (!snapshot.is_empty()).then_some(session.messages);
        session.messages += usize::from(message.is_some());
        Ok(Seen { session: name, frame, snapshot, message })
    }

    /// Applies a frame, and renders nothing.
    pub(crate) fn follow(&mut self, name: &Arc<str>, frame: &Frame) -> Result<Shown> {
        let session = self.sessions.entry(Arc::clone(name)).or_default();
        let shown = session.veil.apply(frame)?;
        if !self.keeps_facets {
            let gone = session.veil.facets();
            let gone = gone.iter().filter(|facet| facet.facet_type != FacetType::AMBIENT);
            let forget = gone.fold(Frame::new(frame.sequence, Source::System), |forget, facet| {
                forget.with(FacetOp::remove(facet.id.clone()))
            });
            session.veil.apply(&forget)?;
        }
        Ok(shown)
    }

    /// Whether ambient facets hold in a session.
    pub(crate) fn has_tail(&self, session: &str) -> bool {
        let session = self.sessions.get(session);
        session.is_some_and(|session| session.veil.ambient().next().is_some())
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
        let tail = self.lens.hud.render_tail(veil, &RenderRequest::default(), Millis::default())?;
        Ok(tail.map(|snapshot| Tail {
            session: Arc::clone(name),
            snapshot: Arc::new(snapshot),
            message: *messages,
        }))
    }

    /// The sessions so far.
    pub(crate) fn sessions(&self) -> Vec<Arc<str>> {
        self.sessions.keys().map(Arc::clone).collect()
    }
}

/// How many facets a frame adds that keep a record that was not understood. Frames that were written
/// of a transcript keep them too.
pub(crate) fn unknown_records(frame: &Frame) -> u64 {
    let is_unknown = |op: &&FacetOp| matches!(&op.change, FacetChange::Add(facet) if facet.facet_type == FacetType::UNKNOWN);
    frame.ops.iter().filter(is_unknown).count() as u64
}

/// The moment of a frame: its timestamp, so that the same input gives the same snapshots on every
/// run. The epoch where it has none.
pub(crate) fn moment(frame: &Frame) -> Millis {
    let timestamp =
        frame.timestamp.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Millis::new(timestamp.map_or(0, jiff::Timestamp::as_millisecond))
}
