//! Rendering a transcript frame by frame, without keeping what was rendered.

use std::sync::Arc;

use afterimage::{
    Result,
    hud::{Hud, RenderRequest, format_by_name},
    id::{FacetType, Millis},
    snapshot::{ChunkRef, FrameSnapshot},
    tokens::{self, CountedText, Memo, TokenCounter},
    transcript::{Record, TranscriptFormat},
    veil::{FacetOp, Frame, Source, Veil},
};
use indexmap::IndexMap;

use crate::{
    args::Rendering,
    failure::{Failure, Outcome},
};

/// What renders and counts as the command line asks for.
pub(crate) struct Lens {
    pub(crate) hud: Hud,
    /// Counts what is asked for. A text that is counted again costs a look-up.
    pub(crate) counter: Arc<dyn TokenCounter>,
}

impl Lens {
    /// A lens that counts every chunk when it is rendered.
    pub(crate) fn counting(rendering: &Rendering) -> Outcome<Self> {
        let counter = counter(rendering)?;
        Ok(Self { hud: hud(rendering, Arc::clone(&counter))?, counter })
    }

    /// A lens that counts only what is asked for: where most text is only passed on, its counts
    /// would be most of the work.
    pub(crate) fn counting_on_demand(rendering: &Rendering) -> Outcome<Self> {
        Ok(Self { hud: hud(rendering, Arc::new(Uncounted))?, counter: counter(rendering)? })
    }
}

fn counter(rendering: &Rendering) -> Outcome<Arc<dyn TokenCounter>> {
    let name = rendering.tokenizer.name();
    let missing = || Failure::new(format!("this build has no tokenizer {name}"));
    Ok(Arc::new(Memo::new(tokens::by_name(name).ok_or_else(missing)?)))
}

fn hud(rendering: &Rendering, counter: Arc<dyn TokenCounter>) -> Outcome<Hud> {
    let name = rendering.format.name();
    let missing = || Failure::new(format!("this build has no format {name}"));
    Ok(Hud::builder(counter).format(format_by_name(name).ok_or_else(missing)?).build())
}

/// Counts nothing. Its snapshots say so by its id, and are not for output.
struct Uncounted;

impl TokenCounter for Uncounted {
    fn id(&self) -> &'static str {
        "uncounted"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count(&self, _text: &str) -> usize {
        0
    }

    fn count_joined(&self, _parts: &[CountedText<'_>]) -> usize {
        0
    }
}

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
    pub(crate) snapshot: FrameSnapshot,
    pub(crate) message: usize,
}

impl<'l> Viewer<'l> {
    pub(crate) fn new(lens: &'l Lens, format: TranscriptFormat) -> Self {
        let keeps_facets = format == TranscriptFormat::Frames;
        Self { lens, keeps_facets, sessions: IndexMap::new() }
    }

    /// Renders a frame, unless it brings what it rendered to.
    pub(crate) fn see(&mut self, record: Record) -> Result<Seen> {
        let Record { session: name, frame } = record;
        let session = self.sessions.entry(Arc::clone(&name)).or_default();
        let shown = session.veil.apply(&frame)?;
        let snapshot = match &frame.rendered_snapshot {
            Some(snapshot) => Arc::clone(snapshot),
            None => Arc::new(self.lens.hud.render_frame(&frame, &shown, moment(&frame))?),
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
        Ok(Seen { session: name, frame, snapshot, message })
    }

    /// The tokens of a chunk of this snapshot. What another tokenizer counted is counted again.
    pub(crate) fn tokens(&self, snapshot: &FrameSnapshot, chunk: ChunkRef<'_>) -> u64 {
        let made_by = snapshot.identity();
        if made_by.is_some_and(|made_by| made_by.tokenizer == self.lens.counter.id()) {
            chunk.tokens()
        } else {
            self.lens.counter.count(chunk.content()) as u64
        }
    }

    /// The tokens of all chunks of a snapshot, at most as many as 64 bits hold: a frame may declare
    /// any count for what it brings along.
    pub(crate) fn total_tokens(&self, snapshot: &FrameSnapshot) -> u64 {
        let counts = snapshot.chunks().map(|chunk| self.tokens(snapshot, chunk));
        counts.fold(0, u64::saturating_add)
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
