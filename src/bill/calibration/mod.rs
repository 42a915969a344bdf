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

mod held_out;
mod refusal;
mod regression;
mod sample;
mod wire;

use std::sync::Arc;

use indexmap::IndexMap;

use self::{
    held_out::Coefficients,
    sample::{HeldCounts, Sample, reported_input, samples},
};
use crate::{
    Error, ErrorKind, Result,
    request::Recording,
    tokens::{Calibrated, Certainty, Memo, Slope, TokenCounter as _, by_name},
};

pub use refusal::{RefusalReason, Refused};
pub use sample::KindCounts;

/// How many exchanges of a model must be reported before its counts are calibrated.
const NEEDED: u64 = 20;
/// An interval of more than this part of the usual input says nothing: one in so many.
const WIDEST: f64 = 4.0;
/// Of a hundred held-out exchanges the interval must hold so many, of the ninety that it promises.
const LEAST_HELD: u64 = 85;
const MILLION: i128 = 1_000_000;

/// A kind of text, by what it is in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// What people, agents and operators say.
    Prose,
    /// The arguments of tool calls, and definitions of tools: JSON.
    Calls,
    /// What tools answer: code, logs, pages.
    Results,
    /// Reasoning.
    Reasoning,
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

    /// The name on the wire: `prose`, `calls`, `results`, `reasoning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Calls => "calls",
            Self::Results => "results",
            Self::Reasoning => "reasoning",
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
    refused: Vec<Refused>,
    sessions: Vec<LastReport>,
    /// Exchanges that name no model, and such that report no input that can be read.
    unnamed: u64,
    unreported: u64,
}

/// What reported tokens are to counted ones of one model.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCalibration {
    /// The model, as the source names it.
    pub model: Arc<str>,
    /// Reported tokens for one that is counted, over all text.
    pub slope: Slope,
    /// Tokens for each message besides, in millionths: marks, names, ids. It may be negative, where
    /// a message is counted as more than the provider sees.
    pub per_message: i64,
    /// As `slope` for each kind of text, in millionths, in the order of [`TextKind::ALL`].
    pub kinds: [i64; TextKind::ALL.len()],
    /// As `per_message`, beside these.
    pub per_message_of_kinds: i64,
    /// How many exchanges were fitted.
    pub exchanges: u64,
    /// How far nine in ten of the held-out exchanges were at most from what was predicted for them,
    /// in tokens.
    pub interval: u64,
    /// How many exchanges were held out to check such an interval.
    pub checked: u64,
    /// How many of these it held.
    pub held: u64,
    /// The median error of held-out exchanges, in millionths of what was reported.
    pub median_error: u64,
}

/// The last exchange of a session with a model: what the transcript lacks follows from it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastReport {
    /// The session.
    pub session: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// The number of the request in its recording.
    pub request: u64,
    /// What was reported.
    pub reported: u64,
    /// What was counted.
    pub counts: KindCounts,
}

/// A count with its interval: nine in ten of held-out exchanges were inside of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalibratedCount {
    /// The count.
    pub tokens: u64,
    /// The least of the interval.
    pub low: u64,
    /// The most.
    pub high: u64,
}

impl Calibration {
    /// Fits what a recording reports. Models of which too little is known are refused, with the
    /// reason: that is no error.
    ///
    /// Costs a walk over the chunks and some thirty fits, each linear in the exchanges. The same
    /// recording gives the same calibration.
    ///
    /// # Errors
    /// Those of [`Recording::request`].
    pub fn of(recording: &Recording) -> Result<Self> {
        let (samples, left_out) = samples(recording)?;
        let mut by_model: IndexMap<Arc<str>, Vec<Sample>> = IndexMap::new();
        let mut sessions: IndexMap<(Arc<str>, Arc<str>), LastReport> = IndexMap::new();
        for sample in samples {
            let Sample { session, model, request, counts, reported } = sample.clone();
            let last = LastReport { session, model, request, reported, counts };
            sessions.insert((Arc::clone(&last.session), Arc::clone(&last.model)), last);
            by_model.entry(Arc::clone(&sample.model)).or_default().push(sample);
        }
        let (mut models, mut refused) = (Vec::new(), Vec::new());
        for (model, samples) in by_model {
            let exchanges = samples.len() as u64;
            match ModelCalibration::of(&model, &samples) {
                Ok(fitted) => models.push(fitted),
                Err(reason) => refused.push(Refused { model, exchanges, reason }),
            }
        }
        // The model that a session speaks with most comes first.
        models.sort_by_key(|model| std::cmp::Reverse(model.exchanges));
        let is_fitted = |last: &LastReport| models.iter().any(|of| of.model == last.model);
        let sessions = sessions.into_values().filter(is_fitted).collect();
        let base = recording.hud().counter().id().into();
        let (unnamed, unreported) = (left_out.unnamed, left_out.unreported);
        Ok(Self { base, models, refused, sessions, unnamed, unreported })
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
    pub fn refused(&self) -> &[Refused] {
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

    /// The last reported exchange of each session with each fitted model.
    pub fn sessions(&self) -> &[LastReport] {
        &self.sessions
    }

    /// What a request of a session holds besides the text of its transcript, in tokens, by the slope
    /// over all text: tools, system prompt, forms, images and documents. A budget has less room by
    /// it. `None` where no exchange of the session with the model is known.
    pub fn intercept(&self, session: &str, model: &str) -> Option<i64> {
        let of = self.model(model)?;
        let is_wanted = |last: &&LastReport| &*last.session == session && &*last.model == model;
        let last = self.sessions.iter().find(is_wanted)?;
        let counted = i128::from(last.counts.total()) * i128::from(of.slope.millionths())
            + i128::from(last.counts.messages) * i128::from(of.per_message);
        i64::try_from(i128::from(last.reported) - rounded(counted)).ok()
    }

    /// A counter of texts by the slope of a model over all text. `None` where the model is not
    /// fitted, this build lacks the tokenizer that counted, or a calibrated one did.
    pub fn counter(&self, model: &str) -> Option<Calibrated> {
        let base = by_name(&self.base)?;
        let is_calibrated = base.certainty() == Certainty::Calibrated;
        let base = Some(base).filter(|_| !is_calibrated)?;
        Some(Calibrated::new(base, self.model(model)?.slope))
    }

    /// The input of each exchange of a recording, worked out from the reported exchange before it in
    /// its session with the same model. `None` for the first of these, and for models that are not
    /// fitted: such counts are estimates.
    ///
    /// Costs a walk over the chunks, whose texts are counted where another tokenizer than
    /// [`Calibration::base`] did before, then O(log n) for each exchange and block.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] where this build lacks the tokenizer, and those of
    /// [`Recording::request`].
    pub fn counts(&self, recording: &Recording) -> Result<Vec<Option<CalibratedCount>>> {
        let missing = || {
            let message = format!("this build has no tokenizer {}", self.base);
            Error::new(ErrorKind::Tokenizer, message)
        };
        let counter = Memo::new(by_name(&self.base).ok_or_else(missing)?);
        let mut requests = HeldCounts::new(recording, &counter);
        let mut last = IndexMap::new();
        let mut counts = Vec::with_capacity(recording.exchanges().len());
        for exchange in recording.exchanges() {
            let of = exchange.model.as_deref().and_then(|model| self.model(model));
            let Some(of) = of else {
                counts.push(None);
                continue;
            };
            let held = requests.of(exchange)?;
            let key = (Arc::clone(&exchange.session), Arc::clone(&of.model));
            let before: Option<&(u64, KindCounts)> = last.get(&key);
            counts.push(before.map(|(reported, before)| of.after(*reported, before, &held)));
            if let Some(input) = reported_input(exchange) {
                last.insert(key, (input, held));
            }
        }
        Ok(counts)
    }
}

impl ModelCalibration {
    fn of(model: &Arc<str>, samples: &[Sample]) -> Result<Self, RefusalReason> {
        let too_few = RefusalReason::TooFew { needed: NEEDED };
        if (samples.len() as u64) < NEEDED {
            return Err(too_few);
        }
        let worth = held_out::worth(samples).ok_or(too_few)?;
        let Coefficients { slope, per_message, kinds } = held_out::fit(samples, |_| true);
        let millionths = millionths(slope);
        let fitted = u32::try_from(millionths).ok().and_then(Slope::from_millionths);
        let slope = fitted.ok_or(RefusalReason::Slope { millionths })?;
        let interval = whole(worth.interval.ceil());
        if worth.interval * WIDEST > worth.median_reported {
            let reported = whole(worth.median_reported);
            return Err(RefusalReason::Scattered { interval, reported });
        }
        let (held, checked) = (worth.held, worth.checked);
        if held.saturating_mul(100) < checked.saturating_mul(LEAST_HELD) {
            return Err(RefusalReason::Uncovered { held, checked });
        }
        let [prose, calls, results, reasoning, per_message_of_kinds] = kinds.map(self::millionths);
        Ok(Self {
            model: Arc::clone(model),
            slope,
            per_message: self::millionths(per_message),
            kinds: [prose, calls, results, reasoning],
            per_message_of_kinds,
            exchanges: samples.len() as u64,
            interval,
            checked: worth.checked,
            held: worth.held,
            median_error: whole((worth.median_error * 1e6).round()),
        })
    }

    /// The input of a request that holds `held`, after one that held `before` was reported as
    /// `reported` tokens.
    pub fn after(&self, reported: u64, before: &KindCounts, held: &KindCounts) -> CalibratedCount {
        let of = |counts: &KindCounts| {
            let tokens = counts.tokens.iter().zip(self.kinds);
            let tokens = tokens.map(|(tokens, slope)| i128::from(*tokens) * i128::from(slope));
            let messages = i128::from(counts.messages) * i128::from(self.per_message_of_kinds);
            tokens.sum::<i128>() + messages + i128::from(counts.media) * MILLION
        };
        let tokens = i128::from(reported) + rounded(of(held) - of(before));
        let tokens = u64::try_from(tokens.max(0)).unwrap_or(u64::MAX);
        CalibratedCount {
            tokens,
            low: tokens.saturating_sub(self.interval),
            high: tokens.saturating_add(self.interval),
        }
    }

    /// What a context's messages cost besides their texts, in whole tokens.
    pub fn tokens_per_message(&self) -> u64 {
        u64::try_from(rounded(i128::from(self.per_message))).unwrap_or(0)
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
