use std::sync::Arc;

use indexmap::IndexMap;

use crate::{
    Result,
    hud::{Hud, RenderRequest},
    id::{FacetType, Millis},
    json::Value,
    snapshot::FrameSnapshot,
    transcript::{Record, TranscriptFormat},
    veil::{FacetChange, FacetOp, Frame, Source, Veil, VisibleFacets},
};

/// Renders the frames of a transcript as they come, session by session, and keeps none of them.
///
/// A [`History`](crate::veil::History) keeps every frame; this keeps what the next frame needs.
///
/// ```
/// use afterimage::{
///     hud::Hud, id::{FacetType, Millis}, session::Viewer, tokens::Chars4,
///     transcript::{Record, TranscriptFormat}, veil::{Facet, FacetOp, Frame, Source},
/// };
///
/// let hud = Hud::new(std::sync::Arc::new(Chars4));
/// let mut viewer = Viewer::new(&hud, TranscriptFormat::Frames);
/// let facet = Facet::new("tide", FacetType::EVENT, "high water at 06:10");
/// let frame = Frame::new(1, Source::Environment).with(FacetOp::add(facet));
/// let viewed = viewer.view(Record { session: "harbour".into(), frame }, None, Millis::new(0))?;
/// assert!(viewed.snapshot.text().contains("high water"));
/// assert_eq!(viewed.message, Some(0));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Debug)]
pub struct Viewer<'h> {
    hud: &'h Hud,
    /// Whether later frames may change the facets of earlier ones. Those of imports never do, so
    /// their facets are let go at once.
    keeps_facets: bool,
    sessions: IndexMap<Arc<str>, Session>,
}

#[derive(Debug, Default)]
struct Session {
    veil: Veil,
    messages: usize,
}

/// A frame with what it rendered to.
#[derive(Clone, Debug)]
pub struct ViewedFrame {
    /// The name of its session.
    pub session: Arc<str>,
    /// The frame.
    pub frame: Frame,
    /// What it rendered to.
    pub snapshot: Arc<FrameSnapshot>,
    /// The index of its message in the session's context; `None` where it shows nothing.
    pub message: Option<usize>,
}

/// What the model sees after the last frame of a session.
#[derive(Clone, Debug)]
pub struct ViewedTail {
    /// The name of the session.
    pub session: Arc<str>,
    /// What the ambient facets rendered to.
    pub snapshot: Arc<FrameSnapshot>,
    /// The index of its message in the session's context.
    pub message: usize,
}

impl<'h> Viewer<'h> {
    /// A viewer of a transcript in this format.
    pub fn new(hud: &'h Hud, format: TranscriptFormat) -> Self {
        let keeps_facets = format == TranscriptFormat::Frames;
        Self { hud, keeps_facets, sessions: IndexMap::new() }
    }

    /// Renders a frame at the moment `now`, unless it brings along what it rendered to, or
    /// `rendered` is that.
    ///
    /// # Errors
    /// What the veil has against the frame, and the format against what it shows.
    pub fn view(
        &mut self,
        record: Record,
        rendered: Option<&Arc<FrameSnapshot>>,
        now: Millis,
    ) -> Result<ViewedFrame> {
        let Record { session: name, frame } = record;
        let shown = self.follow(&name, &frame)?;
        let snapshot = match frame.rendered_snapshot.as_ref().or(rendered) {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(self.hud.render_frame(&frame, &shown, now)?),
        };
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        let message = (!snapshot.is_empty()).then_some(session.messages);
        session.messages += usize::from(message.is_some());
        Ok(ViewedFrame { session: name, frame, snapshot, message })
    }

    /// Applies a frame of a session, and renders nothing.
    ///
    /// # Errors
    /// What the veil has against the frame.
    pub fn follow(&mut self, session: &Arc<str>, frame: &Frame) -> Result<VisibleFacets> {
        let session = self.sessions.entry(Arc::clone(session)).or_default();
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
    pub fn has_tail(&self, session: &str) -> bool {
        let session = self.sessions.get(session);
        session.is_some_and(|session| session.veil.ambient().next().is_some())
    }

    /// The number of messages of a session so far, the tail aside.
    pub fn messages(&self, session: &str) -> Option<usize> {
        self.sessions.get(session).map(|session| session.messages)
    }

    /// What the model sees after the last frame of a session; `None` where that is nothing.
    ///
    /// # Errors
    /// What the format has against the ambient facets.
    pub fn tail(&self, session: &str) -> Result<Option<ViewedTail>> {
        let Some((_, name, Session { veil, messages })) = self.sessions.get_full(session) else {
            return Ok(None);
        };
        let tail = self.hud.render_tail(veil, &RenderRequest::default(), Millis::default())?;
        Ok(tail.map(|snapshot| ViewedTail {
            session: Arc::clone(name),
            snapshot: Arc::new(snapshot),
            message: *messages,
        }))
    }

    /// The sessions so far, in the order of their first frames.
    pub fn sessions(&self) -> Vec<Arc<str>> {
        self.sessions.keys().map(Arc::clone).collect()
    }
}

/// How many records of its transcript a frame keeps that the reader did not understand. Frames that
/// were written of a transcript keep them too.
pub fn unknown_records(frame: &Frame) -> u64 {
    let records = |op: &FacetOp| match &op.change {
        // A facet keeps one, or as many as it says.
        FacetChange::Add(facet) if facet.facet_type == FacetType::UNKNOWN => {
            Some(facet.attributes.get("records").and_then(Value::as_u64).unwrap_or(1))
        }
        _ => None,
    };
    frame.ops.iter().filter_map(records).fold(0, u64::saturating_add)
}
