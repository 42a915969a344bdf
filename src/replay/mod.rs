//! What a session would have cost: its contexts, rendered again before each turn of the agent.
//!
//! A [`Replay`] takes the frames of a session one by one. Before each turn of the agent it makes
//! the context that a framework would have sent, by a [`ReplayPolicy`], and adds up what was sent, how
//! much of it was an unchanged prefix of the request before, and what went missing
//! ([`ReplayFigures`]).
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     compress::OutlineEngine, hud::{Hud, NativeFormat}, id::{FacetType, Millis},
//!     replay::{ReplayPolicy, Replay}, tokens::Chars4, veil::{Facet, FacetOp, Frame, Source},
//!     window::Budget,
//! };
//!
//! let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
//! let budget = Budget::new(400);
//! let policy = ReplayPolicy::Blocks(budget.compression());
//! let mut replay = Replay::new(hud, budget, policy, Arc::new(OutlineEngine));
//! for n in 0..60_u64 {
//!     let (source, kind) = [(Source::User, FacetType::EVENT), (Source::Agent, FacetType::SPEECH)]
//!         [n as usize % 2].clone();
//!     let facet = Facet::new(format!("said-{n}"), kind, format!("Message {n} of many words."));
//!     replay.push(Frame::new(n, source).with(FacetOp::add(facet)), Millis::new(0))?;
//! }
//! let figures = replay.figures();
//! assert_eq!((figures.turns, figures.over_budget, figures.orphans), (30, 0, 0));
//! assert!(figures.cached_ratio() > 0.8);
//! # Ok::<(), afterimage::Error>(())
//! ```

mod asked;
mod audit;
mod dropping;
mod figures;
mod keep_user;
mod keeper;
mod masking;
mod measuring;
mod media;
mod needs;
mod player;
mod policy;
mod rates;
pub(crate) mod survival;

pub use asked::SummaryCalls;
pub use audit::{AuditedName, LossAudit, NameFate};
pub use figures::ReplayFigures;
pub use player::{Replay, ReplayedTurn};
pub use policy::ReplayPolicy;
pub use rates::ReplayRates;
#[doc(inline)]
pub use survival::{Survival, SurvivingShare};
