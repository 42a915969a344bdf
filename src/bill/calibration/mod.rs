//! Counts that were fitted to what providers report.
//!
//! No provider but OpenAI publishes its tokenizer, and a transcript lacks tools and most of the
//! system prompt. But it reports the input of each request. A [`Calibration`] says, of each model of
//! a recording, how many tokens are reported for one that we count, and of each session what its
//! transcript lacks.
//!
//! ```text
//! reported = what the transcript lacks          of a session: from its last reported exchange
//!          + slope of a kind of text × count    of a model: fitted to differences between exchanges
//!          + a constant × messages
//! ```
//!
//! See `docs/counts.md` for the reasons and for figures over recorded sessions.

mod builder;
mod distance;
mod figures;
mod held_out;
mod model;
mod refusal;
mod regression;
mod sample;
mod session;
mod wire;

use std::{collections::HashMap, sync::Arc};

use self::sample::{HeldCounts, reported_input};
use crate::{
    Error, ErrorKind, Result,
    request::{Exchange, Recording},
    tokens::{Calibrated, Certainty, Memo, TokenCounter as _, by_name},
};

pub use builder::CalibrationBuilder;
pub use distance::DistantInterval;
pub use model::{CalibratedCount, CountBasis, ModelCalibration};
pub use refusal::{RefusalReason, UncalibratedModel};
pub use sample::KindCounts;
pub use session::{ReportedRequest, SessionReport, UsualLack};

const MILLION: i128 = 1_000_000;

crate::json::name_enum! {
    /// A kind of text, by what it is in a conversation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TextKind {
        /// What people, agents and operators say.
        Prose = "prose",
        /// The arguments of tool calls, and definitions of tools: JSON.
        Calls = "calls",
        /// What tools answer: code, logs, pages.
        Results = "results",
        /// Reasoning.
        Reasoning = "reasoning",
    }
}

impl TextKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Prose, Self::Calls, Self::Results, Self::Reasoning];

    /// The kind of a chunk of this type.
    pub fn of_chunk(chunk_type: Option<&str>) -> Self {
        match chunk_type {
            Some("action") => Self::Calls,
            Some("result") => Self::Results,
            Some("thought") => Self::Reasoning,
            _ => Self::Prose,
        }
    }
}

/// What reported tokens are to counted ones, by model, and what the transcripts of sessions lack.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     bill::Calibration, id::Millis, request::Recording, tokens::Chars4, transcript::Transcript,
/// };
///
/// // Each answer says four words, for which the provider counts five tokens and four for a message.
/// let mut session = r#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}"#.to_owned();
/// for n in 0..40 {
///     let words = "four ".repeat(4 + n * 7 % 60);
///     let user = format!(r#"{{"role":"user","content":"{words}"}}"#);
///     # let total: usize = (0..=n).map(|n| ((4 + n * 7 % 60) * 5).div_ceil(4) * 5 / 4 + 10).sum();
///     let answer = format!(r#"{{"role":"assistant","model":"m","content":"Yes.","usage":{{"input":{}}}}}"#, total + 900);
///     for message in [user, answer] {
///         session.push_str(&format!("\n{{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{message}}}"));
///     }
/// }
/// let transcript = Transcript::new(session.as_bytes())?;
/// let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
/// let calibration = Calibration::of(&recording)?;
/// let model = calibration.model("m").unwrap();
/// assert!((1_200_000..1_300_000).contains(&model.slope.millionths()));
/// assert!(model.held * 100 >= model.checked * 85);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    base: Arc<str>,
    models: Vec<ModelCalibration>,
    refused: Vec<UncalibratedModel>,
    sessions: Vec<SessionReport>,
    /// Exchanges that name no model, and such that report no input that can be read.
    unnamed: u64,
    unreported: u64,
}

impl Calibration {
    /// Fits what a recording reports. A model with too little data is refused, with the reason:
    /// that is no error.
    ///
    /// Costs a walk over the chunks and 31 fits, each linear in the exchanges. The same
    /// recording gives the same calibration.
    ///
    /// # Errors
    /// Those of [`Recording::request`].
    pub fn of(recording: &Recording) -> Result<Self> {
        let mut builder = CalibrationBuilder::default();
        builder.add(recording)?;
        Ok(builder.build())
    }

    /// The tokenizer that counted.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The models that were fitted, those of most exchanges first.
    pub fn models(&self) -> &[ModelCalibration] {
        &self.models
    }

    /// The models whose counts stay estimated.
    pub fn refused(&self) -> &[UncalibratedModel] {
        &self.refused
    }

    /// How many exchanges name no model, or one that a client put in for itself (`<synthetic>`).
    pub fn unnamed(&self) -> u64 {
        self.unnamed
    }

    /// How many exchanges report no input, or one that cannot be read, or none of no tokens.
    pub fn unreported(&self) -> u64 {
        self.unreported
    }

    /// The model with this name. Linear in the models.
    pub fn model(&self, name: &str) -> Option<&ModelCalibration> {
        self.models.iter().find(|of| &*of.model == name)
    }

    /// The first and the last reported exchange of each session with each fitted model.
    pub fn sessions(&self) -> &[SessionReport] {
        &self.sessions
    }

    /// A counter of texts by the slope of a model over all text. `None` where the model is not
    /// fitted, this build lacks the tokenizer that counted, or a calibrated one did. Linear in the
    /// models.
    pub fn counter(&self, model: &str) -> Option<Calibrated> {
        let base = by_name(&self.base)?;
        let is_calibrated = base.certainty() == Certainty::Calibrated;
        let base = Some(base).filter(|_| !is_calibrated)?;
        Some(Calibrated::new(base, self.model(model)?.slope))
    }

    /// The input of each exchange of a recording, worked out from the reported exchange before it in
    /// its session with the same model. The first of these follows from the first requests of other
    /// sessions of the client ([`Calibration::usual_lack`]). `None` where there are none either, and
    /// for models that are not fitted: such counts are estimates.
    ///
    /// Costs a walk over the chunks, whose texts are counted where another tokenizer than
    /// [`Calibration::base`] did before, then O(log n) for each exchange and block.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] where this build lacks the tokenizer, and those of
    /// [`Recording::request`].
    pub fn counts(&self, recording: &Recording) -> Result<Vec<Option<CalibratedCount>>> {
        self.counts_after(recording, 1)
    }

    /// As [`Calibration::counts`], from the reported exchange so many before, as for a program that
    /// heard nothing since. An exchange that has none so far before it is `None`, but for the first
    /// of a session. Costs what that does.
    ///
    /// # Errors
    /// As [`Calibration::counts`].
    pub fn counts_after(
        &self,
        recording: &Recording,
        exchanges: usize,
    ) -> Result<Vec<Option<CalibratedCount>>> {
        let missing = || {
            let message = format!("this build has no tokenizer {}", self.base);
            Error::new(ErrorKind::Tokenizer, message)
        };
        let counter = Memo::new(by_name(&self.base).ok_or_else(missing)?);
        let mut requests = HeldCounts::new(recording, &counter);
        let mut reports: HashMap<(&str, &str), Vec<ReportedRequest>> = HashMap::new();
        let mut counts = Vec::with_capacity(recording.exchanges().len());
        for exchange in recording.exchanges() {
            let of = exchange.model.as_deref().and_then(|model| self.model(model));
            let Some(of) = of else {
                counts.push(None);
                continue;
            };
            let held = requests.of(exchange)?;
            let request = exchange.number as u64;
            let reported = reported_input(exchange);
            let own = reported.map(|reported| ReportedRequest { request, reported, counts: held });
            let known = reports.entry((&exchange.session, &of.model)).or_default();
            let before = known.len().checked_sub(exchanges.max(1)).and_then(|at| known.get(at));
            counts.push(match before {
                Some(ReportedRequest { reported, counts, .. }) => {
                    Some(of.after(*reported, counts, &held, exchanges.max(1) as u64))
                }
                None if known.is_empty() => {
                    self.first_count(recording, exchange, of, &held, own.as_ref())
                }
                None => None,
            });
            known.extend(own);
        }
        Ok(counts)
    }

    /// The input of the first request of a session, by what other sessions of its client tell.
    fn first_count(
        &self,
        recording: &Recording,
        exchange: &Exchange,
        of: &ModelCalibration,
        held: &KindCounts,
        own: Option<&ReportedRequest>,
    ) -> Option<CalibratedCount> {
        let client = recording.format().name();
        let is_subagent = builder::is_subagent(recording, &exchange.session);
        let usual = self.usual_lack((client, &of.model), is_subagent, own)?;
        Some(of.with_lacking(held, usual.tokens, usual.interval, usual.basis()))
    }
}

/// Millionths as whole tokens, rounded to the nearest.
fn rounded(millionths: i128) -> i128 {
    (millionths + MILLION / 2).div_euclid(MILLION)
}

/// A coefficient in millionths; 0, which is no slope, where it is no number or too large.
fn millionths(value: f64) -> i64 {
    let scaled = (value * 1e6).round();
    #[expect(clippy::cast_possible_truncation, reason = "it is checked to be small")]
    if scaled.abs() < 1e15 { scaled as i64 } else { 0 }
}

/// A count that is not negative.
fn whole(value: f64) -> u64 {
    u64::try_from(millionths(value / 1e6)).unwrap_or(0)
}
