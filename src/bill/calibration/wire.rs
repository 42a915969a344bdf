//! Calibrations as JSON (`docs/FORMAT.md`), read strictly: a factor that is wrong makes every count
//! wrong, and nobody sees it.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Calibration, KindCounts, ModelCalibration, RefusalReason, ReportedRequest, SessionReport,
    TextKind, UncalibratedModel, figures,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, Fields, FromJson, Number, Object, ObjectExt, Value, object},
};

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;
/// The largest file that is read, in bytes: that is some hundred thousand sessions.
pub(super) const MOST: usize = 32 << 20;
/// The largest count that is read: no provider reports more.
const MOST_TOKENS: u64 = 1 << 53;

/// What a calibration says besides its version and its report of refusals.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tokenizer: Arc<str>,
    models: Vec<ModelCalibration>,
    sessions: Vec<SessionReport>,
}

impl Calibration {
    /// The wire form. `refused` is a report, which is not read back. O(size).
    pub fn to_json(&self) -> Value {
        let list = |of: Result<Value, json::Error>| of.unwrap_or_default();
        Value::from(object! {
            "calibration": VERSION,
            "tokenizer": &*self.base,
            "models": list(json::to_value(&self.models)),
            "sessions": list(json::to_value(&self.sessions)),
            "refused": self.refused.iter().map(refused_to_json).collect::<Value>(),
        })
    }

    /// Reads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Json`] for what is no JSON, [`ErrorKind::Limit`] for more than 32 MiB,
    /// [`ErrorKind::Version`] for a version that is not 1, and [`ErrorKind::Shape`] for everything
    /// else that is not as `docs/FORMAT.md` says, with the path, what is expected and what was found:
    /// members that are missing, not known or there twice, slopes outside of 0.6 to 1.8, figures
    /// that contradict each other or that no fit gives, models that come twice, sessions of models
    /// that are not there.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MOST {
            let message = format!("expected at most {MOST} bytes, found {}", bytes.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let Checked(value, wrong) = json::read_as(bytes)?;
        let mut fields = Fields::of(value, "a calibration")?;
        let version = Fields::required(fields.u64("calibration")?, "calibration", "a version")?;
        if version != VERSION {
            let message = format!(
                "expected version {VERSION} of a calibration, found {version}: fit it again"
            );
            return Err(Error::new(ErrorKind::Version, message));
        }
        wrong.map_or(Ok(()), Err)?;
        fields.take("refused");
        let Written { tokenizer, models, sessions } = json::from_value(fields.rest().into())?;
        if tokenizer.is_empty() || tokenizer.starts_with("calibrated:") {
            let error = Error::expected("a tokenizer", format_args!("{tokenizer:?}"));
            return Err(error.under("tokenizer"));
        }
        let mut names = HashSet::new();
        for (index, model) in models.iter().enumerate() {
            let known = if names.insert(&*model.model) {
                figures::check(model)
            } else {
                let found = format_args!("{:?} twice", model.model);
                Err(Error::expected("a model once", found))
            };
            known.map_err(|error| error.under(index).under("models"))?;
        }
        let mut known = HashSet::new();
        for (index, session) in sessions.iter().enumerate() {
            let is_new = known.insert((&session.session, &session.model, session.first));
            check_session(session, is_new, names.contains(&*session.model))
                .map_err(|error| error.under(index).under("sessions"))?;
        }
        let (refused, unnamed, unreported) = Default::default();
        Ok(Self { base: tokenizer, models, refused, sessions, unnamed, unreported })
    }
}

/// Refuses reports that contradict each other, or the rest of the calibration.
fn check_session(of: &SessionReport, is_new: bool, is_known_model: bool) -> Result<()> {
    let (first, last) = (&of.first, &of.last);
    for (name, report) in [("first", first), ("last", last)] {
        if report.reported == 0 {
            return Err(Error::expected("at least one token", 0).under("reported").under(name));
        }
    }
    if last.request < first.request {
        let expected = format!("at least {}, the first request", first.request);
        return Err(Error::expected(expected, last.request).under("request").under("last"));
    }
    if !is_new {
        let found = format_args!("{:?} twice", of.session);
        return Err(Error::expected("a session once for each model", found));
    }
    if !is_known_model {
        let found = format_args!("{:?}", of.model);
        return Err(Error::expected("a model of the calibration", found).under("model"));
    }
    Ok(())
}

/// A value, and what is wrong in it: a member that some object has twice, since of two nobody knows
/// which is meant, or a number that is no count.
struct Checked(Value, Option<Error>);

impl FromJson for Checked {
    type Members = (Object, Option<Error>);

    fn null() -> Self {
        Self(Value::Null, None)
    }

    fn bool(flag: bool) -> Self {
        Self(Value::Bool(flag), None)
    }

    fn number(number: Number) -> Self {
        let wrong = number.as_u64().filter(|number| *number > MOST_TOKENS);
        let wrong = wrong.map(|number| Error::expected("an integer from 0 to 2^53", number));
        Self(Value::Number(number), wrong)
    }

    fn string(text: &str) -> Self {
        Self(text.into(), None)
    }

    fn array(elements: Vec<Self>) -> Self {
        let mut wrong = None;
        let values = elements.into_iter().enumerate().map(|(index, Self(value, inner))| {
            wrong = wrong.take().or(inner.map(|error| error.under(index)));
            value
        });
        let values = values.collect();
        Self(Value::Array(values), wrong)
    }

    fn object((members, wrong): Self::Members) -> Self {
        Self(Value::Object(members), wrong)
    }

    fn put((members, wrong): &mut Self::Members, key: String, Self(value, inner): Self) {
        let is_doubled = members.contains_key(&key);
        let twice = || Error::expected("each member once", "one that is there twice");
        let inner = inner.or_else(|| is_doubled.then(twice));
        *wrong = wrong.take().or(inner.map(|error| error.under(&*key)));
        members.insert(key, value);
    }
}

/// A reported request, with what was counted beside what was reported.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRequest {
    request: u64,
    reported: u64,
    #[serde(with = "by_kind")]
    tokens: [u64; TextKind::ALL.len()],
    messages: u64,
    media: u64,
}

impl From<ReportedRequest> for WrittenRequest {
    fn from(ReportedRequest { request, reported, counts }: ReportedRequest) -> Self {
        let KindCounts { tokens, messages, media } = counts;
        Self { request, reported, tokens, messages, media }
    }
}

impl From<WrittenRequest> for ReportedRequest {
    fn from(of: WrittenRequest) -> Self {
        let WrittenRequest { request, reported, tokens, messages, media } = of;
        Self { request, reported, counts: KindCounts { tokens, messages, media } }
    }
}

fn refused_to_json(of: &UncalibratedModel) -> Value {
    let mut object = Object::new();
    object.put("model", &*of.model);
    object.put("exchanges", of.exchanges);
    let name = match of.reason {
        RefusalReason::TooFew { .. } => "tooFew",
        RefusalReason::Slope { .. } => "slope",
        RefusalReason::Scattered { .. } => "scattered",
        RefusalReason::Uncovered { .. } => "uncovered",
    };
    object.put("reason", name);
    object.put("message", of.reason.to_string());
    object.into()
}

/// A slope in millionths.
pub(super) mod slope {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::tokens::Slope;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(in super::super) fn serialize<S: Serializer>(of: &Slope, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(of.millionths())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Slope, D::Error> {
        let found = u32::deserialize(from)?;
        Slope::from_millionths(found).ok_or_else(|| {
            let (least, most) = (Slope::LEAST.millionths(), Slope::MOST.millionths());
            let message = format!("expected millionths from {least} to {most}, found {found}");
            D::Error::custom(message)
        })
    }
}

/// Figures by kind of text, as an object.
pub(super) mod by_kind {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::TextKind;

    type ByKind<T> = [T; TextKind::ALL.len()];

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Kinds<T> {
        prose: T,
        calls: T,
        results: T,
        reasoning: T,
    }

    pub(in super::super) fn serialize<T: Serialize, S: Serializer>(
        of: &ByKind<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(TextKind::ALL.map(TextKind::as_str).into_iter().zip(of))
    }

    pub(in super::super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<ByKind<T>, D::Error> {
        let Kinds { prose, calls, results, reasoning } = Kinds::deserialize(from)?;
        Ok([prose, calls, results, reasoning])
    }
}
