//! Calibrations as JSON (`docs/FORMAT.md`), read strictly: a factor that is wrong makes every count
//! wrong, and nobody sees it.

use std::{collections::HashSet, sync::Arc};

use super::{
    Calibration, DistantInterval, KindCounts, ModelCalibration, RefusalReason, ReportedRequest,
    SessionReport, TextKind, UncalibratedModel, figures,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, Fields, FromJson, Number, Object, ObjectExt, Value},
    tokens::Slope,
};

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;
/// The largest file that is read, in bytes: that is some hundred thousand sessions.
pub(super) const MOST: usize = 32 << 20;

impl Calibration {
    /// The wire form. `refused` is a report, which is not read back. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("calibration", VERSION);
        object.put("tokenizer", &*self.base);
        object.put("models", self.models.iter().map(model_to_json).collect::<Value>());
        object.put("sessions", self.sessions.iter().map(session_to_json).collect::<Value>());
        object.put("refused", self.refused.iter().map(refused_to_json).collect::<Value>());
        object.into()
    }

    /// Reads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Json`] for what is no JSON, [`ErrorKind::Limit`] for more than 32 MiB,
    /// [`ErrorKind::Version`] for a version that is not 2, and [`ErrorKind::Shape`] for everything
    /// else that is not as `docs/FORMAT.md` says, with the path, what is expected and what was found:
    /// members that are missing, not known or there twice, slopes outside of 0.6 to 1.8, figures
    /// that contradict each other or that no fit gives, models that come twice, sessions of models
    /// that are not there.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MOST {
            let message = format!("expected at most {MOST} bytes, found {}", bytes.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let mut fields = Fields::of(read_once(bytes)?, "a calibration")?;
        let version = Fields::required(fields.u64("calibration")?, "calibration", "a version")?;
        if version != VERSION {
            let message = format!(
                "expected version {VERSION} of a calibration, found {version}: fit it again"
            );
            return Err(Error::new(ErrorKind::Version, message));
        }
        let base = text(&mut fields, "tokenizer")?;
        if base.is_empty() || base.starts_with("calibrated:") {
            let error = Error::expected("a tokenizer", format_args!("{base:?}"));
            return Err(error.under("tokenizer"));
        }
        let models: Vec<ModelCalibration> = list(&mut fields, "models", model_from_json)?;
        let sessions: Vec<SessionReport> = list(&mut fields, "sessions", session_from_json)?;
        fields.take("refused");
        finish(fields)?;
        let mut names = HashSet::new();
        for (index, model) in models.iter().enumerate() {
            if !names.insert(&*model.model) {
                let error =
                    Error::expected("a model once", format_args!("{:?} twice", model.model));
                return Err(error.under(index).under("models"));
            }
        }
        let mut known = HashSet::new();
        for (index, session) in sessions.iter().enumerate() {
            if !known.insert((&session.session, &session.model, session.first)) {
                let found = format_args!("{:?} twice", session.session);
                let error = Error::expected("a session once for each model", found);
                return Err(error.under(index).under("sessions"));
            }
            if !names.contains(&*session.model) {
                let found = format_args!("{:?}", session.model);
                let error = Error::expected("a model of the calibration", found);
                return Err(error.under("model").under(index).under("sessions"));
            }
        }
        let (refused, unnamed, unreported) = Default::default();
        Ok(Self { base, models, refused, sessions, unnamed, unreported })
    }
}

/// A value, with the path of a member that some object in it has twice: the last element first.
struct Once(Value, Option<Vec<String>>);

/// Reads JSON whose objects have each member once: of two, nobody knows which is meant.
fn read_once(bytes: &[u8]) -> Result<Value> {
    let Once(value, doubled) = json::read_as(bytes)?;
    let Some(path) = doubled else { return Ok(value) };
    let error = Error::expected("each member once", "one that is there twice");
    Err(path.into_iter().fold(error, Error::under))
}

impl FromJson for Once {
    type Members = (Object, Option<Vec<String>>);

    fn null() -> Self {
        Self(Value::Null, None)
    }

    fn bool(flag: bool) -> Self {
        Self(Value::Bool(flag), None)
    }

    fn number(number: Number) -> Self {
        Self(Value::Number(number), None)
    }

    fn string(text: &str) -> Self {
        Self(text.into(), None)
    }

    fn array(elements: Vec<Self>) -> Self {
        let mut doubled = None;
        let values = elements.into_iter().enumerate().map(|(index, Self(value, path))| {
            doubled = doubled.take().or(path.map(|mut path| {
                path.push(index.to_string());
                path
            }));
            value
        });
        let values = values.collect();
        Self(Value::Array(values), doubled)
    }

    fn object((members, doubled): Self::Members) -> Self {
        Self(Value::Object(members), doubled)
    }

    fn put((members, doubled): &mut Self::Members, key: String, Self(value, path): Self) {
        if doubled.is_none() {
            *doubled = match path {
                Some(mut path) => {
                    path.push(key.clone());
                    Some(path)
                }
                None => members.contains_key(&key).then(|| vec![key.clone()]),
            };
        }
        members.insert(key, value);
    }
}

fn model_to_json(of: &ModelCalibration) -> Value {
    let mut object = Object::new();
    object.put("model", &*of.model);
    object.put("slope", u64::from(of.slope.millionths()));
    object.put("perMessage", of.per_message);
    object.put("kinds", by_kind(of.kinds));
    object.put("kindsPerMessage", of.per_message_of_kinds);
    object.put("exchanges", of.exchanges);
    object.put("interval", of.interval);
    object.put("checked", of.checked);
    object.put("held", of.held);
    object.put("medianError", of.median_error);
    object.put("usualStep", of.usual_step);
    object.put("distant", of.distant.iter().map(distant_to_json).collect::<Value>());
    object.into()
}

fn distant_to_json(of: &DistantInterval) -> Value {
    let mut object = Object::new();
    object.put("exchanges", of.exchanges);
    object.put("interval", of.interval);
    object.put("checked", of.checked);
    object.put("held", of.held);
    object.into()
}

fn distant_from_json(value: Value) -> Result<DistantInterval> {
    let mut fields = Fields::of(value, "a distant interval")?;
    let of = DistantInterval {
        exchanges: number(&mut fields, "exchanges")?,
        interval: number(&mut fields, "interval")?,
        checked: number(&mut fields, "checked")?,
        held: number(&mut fields, "held")?,
    };
    finish(fields).map(|()| of)
}

fn model_from_json(value: Value) -> Result<ModelCalibration> {
    let mut fields = Fields::of(value, "a model")?;
    let model = text(&mut fields, "model")?;
    let slope = number(&mut fields, "slope")?;
    let fitted = u32::try_from(slope).ok().and_then(Slope::from_millionths);
    let bounds =
        format!("millionths from {} to {}", Slope::LEAST.millionths(), Slope::MOST.millionths());
    let slope = fitted.ok_or_else(|| Error::expected(&bounds, slope).under("slope"))?;
    let signed = |fields: &mut Fields, key: &str| -> Result<i64> {
        Ok(Fields::required(fields.i64(key)?, key, "millionths")?)
    };
    let per_message = signed(&mut fields, "perMessage")?;
    let kinds = fields.nested("kinds", |value| -> Result<_> {
        let mut fields = Fields::of(value, "slopes by kind")?;
        let mut kinds = [0; TextKind::ALL.len()];
        for (own, kind) in kinds.iter_mut().zip(TextKind::ALL) {
            *own = signed(&mut fields, kind.as_str())?;
        }
        finish(fields).map(|()| kinds)
    })?;
    let of = ModelCalibration {
        model,
        slope,
        per_message,
        kinds: Fields::required(kinds, "kinds", "slopes by kind")?,
        per_message_of_kinds: signed(&mut fields, "kindsPerMessage")?,
        exchanges: number(&mut fields, "exchanges")?,
        interval: number(&mut fields, "interval")?,
        checked: number(&mut fields, "checked")?,
        held: number(&mut fields, "held")?,
        median_error: number(&mut fields, "medianError")?,
        usual_step: number(&mut fields, "usualStep")?,
        distant: list(&mut fields, "distant", distant_from_json)?,
    };
    finish(fields)?;
    figures::check(&of).map(|()| of)
}

fn session_to_json(of: &SessionReport) -> Value {
    let mut object = Object::new();
    object.put("session", &*of.session);
    object.put("model", &*of.model);
    object.put("client", &*of.client);
    object.put("subagent", of.is_subagent);
    object.put("first", report_to_json(&of.first));
    object.put("last", report_to_json(&of.last));
    object.into()
}

fn report_to_json(of: &ReportedRequest) -> Value {
    let mut object = Object::new();
    object.put("request", of.request);
    object.put("reported", of.reported);
    object.put("tokens", by_kind(of.counts.tokens));
    object.put("messages", of.counts.messages);
    object.put("media", of.counts.media);
    object.into()
}

fn session_from_json(value: Value) -> Result<SessionReport> {
    let mut fields = Fields::of(value, "a session")?;
    let mut report = |key: &str| -> Result<ReportedRequest> {
        let found = fields.nested(key, report_from_json)?;
        Ok(Fields::required(found, key, "a reported request")?)
    };
    let (first, last) = (report("first")?, report("last")?);
    if last.request < first.request {
        let expected = format!("at least {}, the first request", first.request);
        return Err(Error::expected(expected, last.request).under("request").under("last"));
    }
    let of = SessionReport {
        session: text(&mut fields, "session")?,
        model: text(&mut fields, "model")?,
        client: text(&mut fields, "client")?,
        is_subagent: Fields::required(fields.bool("subagent")?, "subagent", "a boolean")?,
        first,
        last,
    };
    finish(fields).map(|()| of)
}

fn report_from_json(value: Value) -> Result<ReportedRequest> {
    let mut fields = Fields::of(value, "a reported request")?;
    let tokens = fields.nested("tokens", |value| -> Result<_> {
        let mut fields = Fields::of(value, "tokens by kind")?;
        let mut tokens = [0; TextKind::ALL.len()];
        for (own, kind) in tokens.iter_mut().zip(TextKind::ALL) {
            *own = number(&mut fields, kind.as_str())?;
        }
        finish(fields).map(|()| tokens)
    })?;
    let of = ReportedRequest {
        request: number(&mut fields, "request")?,
        reported: number(&mut fields, "reported")?,
        counts: KindCounts {
            tokens: Fields::required(tokens, "tokens", "tokens by kind")?,
            messages: number(&mut fields, "messages")?,
            media: number(&mut fields, "media")?,
        },
    };
    if of.reported == 0 {
        return Err(Error::expected("at least one token", 0).under("reported"));
    }
    finish(fields).map(|()| of)
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

fn by_kind<T: Into<Value>>(values: [T; TextKind::ALL.len()]) -> Value {
    let mut object = Object::new();
    for (kind, value) in TextKind::ALL.into_iter().zip(values) {
        object.put(kind.as_str(), value);
    }
    object.into()
}

fn text(fields: &mut Fields, key: &str) -> Result<Arc<str>> {
    Ok(Fields::required(fields.string(key)?, key, "a string")?.into())
}

/// A count of at most 2^53: no provider reports more.
fn number(fields: &mut Fields, key: &str) -> Result<u64> {
    let expected = "an integer from 0 to 2^53";
    let found = Fields::required(fields.u64(key)?, key, expected)?;
    if found > 1 << 53 {
        return Err(Error::expected(expected, found).under(key));
    }
    Ok(found)
}

fn list<T>(fields: &mut Fields, key: &str, load: impl Fn(Value) -> Result<T>) -> Result<Vec<T>> {
    let values = Fields::required(fields.array(key)?, key, "a list")?;
    let loaded = values.into_iter().enumerate();
    loaded
        .map(|(index, value)| load(value).map_err(|error| error.under(index).under(key)))
        .collect()
}

fn finish(fields: Fields) -> Result<()> {
    match fields.rest().keys().next() {
        None => Ok(()),
        Some(key) => Err(Error::expected("no other member", format_args!("{key:?}"))),
    }
}
