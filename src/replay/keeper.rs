//! One policy at work: the next request of a session.

use std::sync::Arc;

use super::{ReplayPolicy, dropping::Dropping, keep_user::KeepUser, masking::Masking};
use crate::{
    ErrorKind, Result,
    compress::{CompressionTransform, Engine, Epoch, RangeState},
    export::ExportedRequest,
    hud::{Hud, RenderRequest, RenderedContext},
    id::Millis,
    snapshot::Substitution,
    veil::History,
    window::{
        Budget, ContextWindow, DroppedFrames, FittedContext, RecordedCompactions, ShortenedFrame,
    },
};

/// Half of the room, in percent: what masking leaves filled where it is not enough.
const HALF: u64 = 50;

/// What a request is made of.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) hud: &'a Hud,
    pub(super) history: &'a History,
    pub(super) request: &'a RenderRequest,
    pub(super) room: u64,
    pub(super) now: Millis,
}

impl Asking<'_> {
    /// The context with these in the place of frames.
    pub(super) fn render(&self, instead: &[Substitution]) -> Result<RenderedContext> {
        self.hud.render_with(self.history, self.request, (instead, None), self.now)
    }
}

/// A request that was made, or could not be.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) context: Option<RenderedContext>,
    pub(super) exported: Option<ExportedRequest>,
    /// The tokens of that, if it was written.
    pub(super) tokens: u64,
    /// What was set aside of the room, for what the context's count has not.
    pub(super) aside: u64,
    /// The tokens of the whole history before it.
    pub(super) whole: u64,
    pub(super) epoch: Option<Epoch>,
    /// Whether a summary took effect that is no block of an epoch.
    pub(super) is_compressed: bool,
    pub(super) dropped: Arc<Vec<DroppedFrames>>,
    pub(super) shortened: Arc<Vec<ShortenedFrame>>,
}

impl Request {
    fn of(context: Option<RenderedContext>) -> Self {
        Self { context, ..Self::default() }
    }
}

#[derive(Debug)]
pub(super) enum Keeper {
    Blocks(Box<ContextWindow>),
    /// The transform finds out which frames go together.
    Dropping(Dropping, Box<CompressionTransform>),
    Masking(Masking, Dropping, Box<CompressionTransform>),
    KeepUser(KeepUser, Box<CompressionTransform>),
    Unlimited(Box<RecordedCompactions>),
}

impl Keeper {
    pub(super) fn new(hud: &Hud, budget: Budget, policy: ReplayPolicy) -> Self {
        let dropping =
            |keeps_first, share| Self::Dropping(Dropping::new(keeps_first, share), Box::default());
        match policy {
            ReplayPolicy::Blocks(options) => {
                Self::Blocks(Box::new(ContextWindow::new(hud.clone(), budget, options)))
            }
            ReplayPolicy::Sliding => dropping(false, 100),
            ReplayPolicy::Newest { units } => {
                Self::Dropping(Dropping::new(false, 100).of_newest(units), Box::default())
            }
            ReplayPolicy::FirstAndLast => dropping(true, 100),
            ReplayPolicy::Forget { share } => dropping(false, share),
            ReplayPolicy::Masking { turns, batch } => {
                let (masking, rest) = (Masking::new(turns, batch), Dropping::new(false, HALF));
                Self::Masking(masking, rest, Box::default())
            }
            ReplayPolicy::KeepUser { most } => Self::KeepUser(KeepUser::new(most), Box::default()),
            ReplayPolicy::Unlimited => Self::Unlimited(Box::default()),
        }
    }

    /// Whether requests are as large as they come.
    pub(super) fn is_unlimited(&self) -> bool {
        matches!(self, Self::Unlimited(_))
    }

    /// What could not be summarised, each with why the last time.
    pub(super) fn failed(&self) -> Vec<(Arc<str>, String)> {
        match self {
            Self::Blocks(window) => {
                let ranges = window.transform().ranges();
                let failed = ranges.filter_map(|(id, state)| match state {
                    RangeState::Failed { reason } => Some((Arc::clone(id), reason.clone())),
                    _ => None,
                });
                failed.collect()
            }
            Self::KeepUser(keep, _) => keep.failed().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Another turn begins.
    pub(super) fn begin_turn(&mut self, asking: &Asking<'_>) -> Result<()> {
        if let Self::Masking(masking, _, transform) = self {
            transform.look(asking.history)?;
            masking.follow(asking, transform);
        }
        Ok(())
    }

    /// The request that is sent now.
    pub(super) fn request(
        &mut self,
        hud: &Hud,
        history: &mut History,
        (request, room): (&RenderRequest, u64),
        engine: &dyn Engine,
        now: Millis,
    ) -> Result<Request> {
        match self {
            Self::Blocks(window) => fitted(window.render(history, request, engine, now)),
            Self::Unlimited(compactions) => {
                compactions.follow(hud, history, now)?;
                let asking = Asking { hud, history, request, room, now };
                Ok(Request::of(Some(asking.render(compactions.blocks())?)))
            }
            Self::Dropping(dropping, transform) => {
                transform.look(history)?;
                let asking = Asking { hud, history, request, room, now };
                let context = dropping.render(&asking, transform, &[])?;
                Ok(Request { dropped: dropping.dropped(), ..Request::of(context) })
            }
            Self::Masking(masking, rest, transform) => {
                let asking = Asking { hud, history, request, room, now };
                let context = rest.render(&asking, transform, masking.masks())?;
                let dropped = rest.dropped();
                let shortened = masking.shortened(&dropped);
                Ok(Request { dropped, shortened, ..Request::of(context) })
            }
            Self::KeepUser(keep, transform) => {
                transform.look(history)?;
                let asking = Asking { hud, history, request, room, now };
                let made = keep.render(&asking, transform, engine)?;
                let (context, is_compressed) = made.unzip();
                let is_compressed = is_compressed == Some(true);
                Ok(Request { is_compressed, dropped: keep.dropped(), ..Request::of(context) })
            }
        }
    }
}

/// What a window made.
fn fitted(made: Result<FittedContext>) -> Result<Request> {
    match made {
        Ok(fitted) => Ok(Request {
            epoch: fitted.epoch,
            dropped: fitted.dropped,
            shortened: fitted.shortened,
            ..Request::of(Some(fitted.context))
        }),
        Err(error) if error.kind() == ErrorKind::OverBudget => Ok(Request::default()),
        Err(error) => Err(error),
    }
}
