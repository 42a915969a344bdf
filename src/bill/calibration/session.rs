//! What the transcripts of sessions lack: by their own reports, or by those of others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Calibration, CountBasis, KindCounts, ModelCalibration, rounded, wire::WrittenRequest};

/// What was reported of a request, and what we counted of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "WrittenRequest", into = "WrittenRequest")]
pub struct ReportedRequest {
    /// The number of the request in its recording.
    pub request: u64,
    /// The input that was reported.
    pub reported: u64,
    /// What was counted.
    pub counts: KindCounts,
}

/// The first and the last reported exchange of a session with a model: what the transcript lacks
/// follows from them.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionReport {
    /// The session.
    pub session: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// The client that wrote the transcript, by the name of its format.
    pub client: Arc<str>,
    /// Whether another session started it: subagents have other tools and another system prompt.
    #[serde(rename = "subagent")]
    pub is_subagent: bool,
    /// The first one.
    pub first: ReportedRequest,
    /// The last one.
    pub last: ReportedRequest,
}

/// What transcripts of a client lack in the first requests of sessions with a model.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualLack {
    /// The median, in tokens. It may be negative, where transcripts hold more than is sent.
    pub tokens: i64,
    /// The half-width of the interval that holds another session nine times in ten.
    pub interval: u64,
    /// How many sessions say so.
    pub sessions: u64,
}

impl UsualLack {
    /// The basis of a count by it.
    pub fn basis(&self) -> CountBasis {
        CountBasis::Sessions { count: self.sessions }
    }
}

/// The 95th percentile of Student's t by degrees of freedom, from one on; the last stands for all
/// above. Nine in ten are within it on both sides.
const STUDENT: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
];

impl Calibration {
    /// What a request of a session holds besides the text of its transcript, in tokens, by the slope
    /// over all text: tools, system prompt, forms; images and documents are not in it. `None` where
    /// no exchange of the session with the model is known, or several sessions have this name.
    /// Linear in the models and the sessions.
    pub fn intercept(&self, session: &str, model: &str) -> Option<i64> {
        let of = self.model(model)?;
        let is_wanted = |of: &&SessionReport| &*of.session == session && &*of.model == model;
        let mut found = self.sessions.iter().filter(is_wanted);
        let last = found.next().filter(|_| found.next().is_none())?.last;
        let counted = i128::from(last.counts.total()) * i128::from(of.slope.millionths())
            + i128::from(last.counts.messages) * i128::from(of.per_message);
        let texts = i128::from(last.reported) - i128::from(last.counts.media);
        i64::try_from(texts - rounded(counted)).ok()
    }

    /// What transcripts of a client lack in the first request of a session with this model, by the
    /// sessions that the calibration knows; of subagents or of all others. Those that begin as
    /// `except` are left out: a session says nothing of itself that it did not report yet. `None`
    /// where none is left.
    ///
    /// Linear in the sessions.
    pub fn usual_lack(
        &self,
        (client, model): (&str, &str),
        is_subagent: bool,
        except: Option<&ReportedRequest>,
    ) -> Option<UsualLack> {
        let of = self.model(model)?;
        let is_like = |report: &&SessionReport| {
            let is_other = except.is_none_or(|except| {
                (except.reported, except.counts) != (report.first.reported, report.first.counts)
            });
            is_other
                && report.is_subagent == is_subagent
                && (&*report.client, &*report.model) == (client, model)
        };
        let sessions = self.sessions.iter().filter(is_like);
        let lacks = sessions.map(|report| of.lacking(report.first.reported, &report.first.counts));
        usual(lacks.collect(), of)
    }
}

/// The median with the interval that another one falls into, by Student's t. Of one alone nothing
/// is known of the spread: the interval is as wide as it is large.
fn usual(mut lacks: Vec<i64>, of: &ModelCalibration) -> Option<UsualLack> {
    lacks.sort_unstable();
    let count = lacks.len();
    let upper = *lacks.get(count / 2)?;
    let lower = *lacks.get(count.checked_sub(1)? / 2)?;
    let tokens = i64::midpoint(lower, upper);
    let spread = if count == 1 {
        tokens.unsigned_abs()
    } else {
        let squares = lacks.iter().map(|lack| (*lack as f64 - tokens as f64).powi(2));
        let freedom = count - 1;
        let deviation = (squares.sum::<f64>() / freedom as f64).sqrt();
        let student = STUDENT.get(freedom - 1).or(STUDENT.last()).copied().unwrap_or(2.0);
        super::whole((student * deviation * (1.0 + 1.0 / count as f64).sqrt()).ceil())
    };
    let interval = spread.saturating_add(of.interval);
    Some(UsualLack { tokens, interval, sessions: count as u64 })
}
