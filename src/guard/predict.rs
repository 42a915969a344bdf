use std::{fmt, sync::Arc};

use super::{
    CacheForecast, CacheRules, Lifetime, NoForecast, Prediction,
    comparison::Comparison,
    lookup::{entries, in_steps, written},
    rules::{Breakpoints, ModelRules, PARTS, Section},
};
use crate::{
    Error, Result,
    bill::Prices,
    export::PrefixCounts,
    id::Millis,
    json::Value,
    request::Request,
    tokens::{Certainty, TokenCounter},
    transcript::{Money, Usage},
};

/// Says of a request, before it is sent, what the provider's cache will serve of it.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     guard::{CacheRules, Guard, SentRequest}, id::Millis, request::Recording, tokens::Chars4,
///     transcript::Transcript,
/// };
///
/// let body = |day: u32| format!(
///     r#"{{"model":"claude-opus-5","system":[{{"type":"text","text":"{} Today is 2026-11-{day}.",
///     "cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hi"}}]}}"#,
///     "Be kind. ".repeat(300),
/// );
/// let exchange = |day| format!(
///     r#"{{"uri":"https://api.example/v1/messages","status":200,"request":{},"response":{{}}}}"#,
///     body(day),
/// );
/// let traffic = format!(r#"{{"interactions":[{},{}]}}"#, exchange(23), exchange(24));
/// let transcript = Transcript::new(traffic.as_bytes())?;
/// let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
/// let (was, is) = (recording.request(1)?, recording.request(2)?);
///
/// let guard = Guard::new(CacheRules::embedded()?, Arc::new(Chars4));
/// let prediction = guard.predict(Some(&SentRequest::new(&was)), &SentRequest::new(&is))?;
/// let forecast = prediction.cache.as_ref().unwrap();
/// assert_eq!((forecast.read, forecast.lost), (0, 681));
/// assert_eq!(prediction.cause().unwrap(), "the system prompt changed at byte 2719: it holds a date");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone)]
pub struct Guard {
    rules: CacheRules,
    counter: Arc<dyn TokenCounter>,
    prices: Option<Prices>,
    max_loss: Option<Money>,
}

/// A request, and what is known of it besides.
#[derive(Clone, Copy, Debug)]
pub struct SentRequest<'r> {
    pub(super) request: &'r Request,
    pub(super) time: Option<Millis>,
    pub(super) usage: Option<&'r Usage>,
}

impl<'r> SentRequest<'r> {
    /// A request without its time and its usage.
    pub fn new(request: &'r Request) -> Self {
        Self { request, time: None, usage: None }
    }

    /// When it was, or is, sent.
    #[must_use]
    pub fn at(self, time: Millis) -> Self {
        Self { time: Some(time), ..self }
    }

    /// What was reported of it. Counts of the next request are fitted to it.
    #[must_use]
    pub fn reported(self, usage: &'r Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }
}

/// Why a request is not to be sent.
#[non_exhaustive]
#[derive(Debug)]
pub enum RefusedRequest {
    /// It pays more than is allowed for what a cache had held.
    ExcessLoss {
        /// What it pays for that.
        loss: Money,
        /// The most that is allowed.
        most: Money,
        /// What will happen to it.
        prediction: Box<Prediction>,
    },
    /// It cannot be read.
    Unreadable(Error),
}

impl fmt::Display for RefusedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExcessLoss { loss, most, prediction } => {
                write!(
                    f,
                    "the request pays {loss} again for what was cached, and {most} is allowed"
                )?;
                match prediction.cause() {
                    Some(cause) => write!(f, ": {cause}"),
                    None => Ok(()),
                }
            }
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RefusedRequest {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ExcessLoss { .. } => None,
            Self::Unreadable(error) => Some(error),
        }
    }
}

impl From<Error> for RefusedRequest {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.date();
        let max_loss = self.max_loss;
        f.debug_struct("Guard")
            .field("rules", &rules)
            .field("max_loss", &max_loss)
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard by these rules, that knows no prices and refuses nothing.
    pub fn new(rules: CacheRules, counter: Arc<dyn TokenCounter>) -> Self {
        Self { rules, counter, prices: None, max_loss: None }
    }

    /// With prices.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices: Some(prices), ..self }
    }

    /// A guard that [`admit`](Self::admit)s no request that pays more than this for what a cache had
    /// held. In another currency than that of the prices it refuses nothing.
    #[must_use]
    pub fn with_max_loss(self, most: Money) -> Self {
        Self { max_loss: Some(most), ..self }
    }

    /// The rules.
    pub fn rules(&self) -> &CacheRules {
        &self.rules
    }

    /// What the cache will serve of `next`, after `previous` of the same session. Parses both, counts
    /// what they share once and the rest of each.
    ///
    /// # Errors
    /// As [`Request::in_cache_order`], for a body that is no object of JSON.
    pub fn predict(
        &self,
        previous: Option<&SentRequest<'_>>,
        next: &SentRequest<'_>,
    ) -> Result<Prediction> {
        let model = next.request.model();
        let rules = model.and_then(|model| self.rules.of(model));
        let order =
            rules.map_or([Section::Tools, Section::System, Section::Messages], |of| of.order);
        let comparison = Comparison::of(previous, next, order, &*self.counter)?;
        let lifetime = match rules {
            Some(rules) => comparison.lifetime(rules, previous, next),
            None => Lifetime::Unknown,
        };
        let cache = match (rules, model) {
            (Some(rules), Some(model)) => match reason_against(rules, next.request)? {
                Some(reason) => Err(reason),
                None => self.forecast(rules, model, &comparison, (previous, next), lifetime),
            },
            (None, Some(model)) => Err(NoForecast::UnknownModel(model.to_owned())),
            (_, None) => Err(NoForecast::NoModel),
        };
        let Comparison { counts, difference, breaks, .. } = comparison;
        let PrefixCounts { report: prefix, bytes: shared_bytes, .. } = counts;
        Ok(Prediction { prefix, shared_bytes, difference, breaks, lifetime, cache })
    }

    /// As [`predict`](Self::predict), and refuses a request that pays too much again. Costs what
    /// that does.
    ///
    /// # Errors
    /// [`RefusedRequest::ExcessLoss`] where the loss has a price and that is more than is allowed, and
    /// [`RefusedRequest::Unreadable`] with the errors of [`predict`](Self::predict).
    pub fn admit(
        &self,
        previous: Option<&SentRequest<'_>>,
        next: &SentRequest<'_>,
    ) -> Result<Prediction, RefusedRequest> {
        let prediction = self.predict(previous, next)?;
        let loss = prediction.cache.as_ref().ok().and_then(|forecast| forecast.loss);
        match (loss, self.max_loss) {
            (Some(loss), Some(most))
                if loss.currency() == most.currency() && loss.pico() > most.pico() =>
            {
                let prediction = Box::new(prediction);
                Err(RefusedRequest::ExcessLoss { loss, most, prediction })
            }
            _ => Ok(prediction),
        }
    }

    fn forecast(
        &self,
        rules: &ModelRules,
        model: &str,
        comparison: &Comparison,
        (previous, next): (Option<&SentRequest<'_>>, &SentRequest<'_>),
        lifetime: Lifetime,
    ) -> Result<CacheForecast, NoForecast> {
        if let Breakpoints::Marks { most, .. } = rules.breakpoints {
            let found = comparison.next.marked().count();
            if found > most {
                return Err(NoForecast::TooManyMarks { found, most });
            }
        }
        // What the one before left there is by the rules of its own model.
        let before = previous.and_then(|of| of.request.model()).map(|model| self.rules.of(model));
        let (scale, left) = comparison.left(before.flatten().unwrap_or(rules), previous);
        let left = if before == Some(None) { 0 } else { left };
        let input = scale.of(comparison.next.tokens);
        let limit = comparison.limit(rules.order);
        let (read, read_least) = match rules.breakpoints {
            _ if lifetime == Lifetime::Expired => (0, Some(0)),
            Breakpoints::Steps { step, interval } => {
                let tokens = comparison.counts.report.unchanged.min(limit.tokens);
                in_steps(scale.of(tokens), rules.minimum, (step, interval))
            }
            _ => {
                let read = comparison.read(rules, &scale, limit.leaves, (previous, next));
                (read, Some(read))
            }
        };
        let unserved = comparison.unserved(rules, &scale, limit.leaves, (previous, next));
        let (write, write_long) = if rules.bills_writes() {
            let entries = entries(&comparison.next, rules, &scale);
            let (short, long) = written(&entries, read, &scale);
            (short + long, long)
        } else {
            (0, 0)
        };
        let lost = left.min(input).saturating_sub(read);
        let lost = match rules.breakpoints {
            Breakpoints::Steps { step, interval } if lost < interval.unwrap_or(step) => 0,
            _ => lost,
        };
        let extra = |tokens: u64, factor: u64| tokens * factor.saturating_sub(PARTS);
        let surcharge =
            extra(write - write_long, rules.write) + extra(write_long, rules.write_long);
        let usage = Usage {
            input: Some(input),
            output: Some(0),
            cache_read: Some(read),
            cache_write: Some(write),
            cache_write_1h: Some(write_long),
            ..Usage::default()
        };
        let price = self.prices.as_ref().and_then(|prices| Some((prices.of(model)?, prices)));
        let money = |pico, prices: &Prices| Money::from_pico(pico, prices.currency());
        Ok(CacheForecast {
            input,
            read,
            read_least,
            write,
            write_long,
            write_surcharge: surcharge / PARTS,
            lost,
            unserved,
            certainty: if scale.is_fitted() { Certainty::Calibrated } else { Certainty::Estimated },
            price: price.and_then(|(price, prices)| Some(money(price.of(&usage)?, prices))),
            loss: price.map(|(price, prices)| money(price.lost(lost, &usage), prices)),
        })
    }
}

/// Why the rules say nothing of a request.
fn reason_against(rules: &ModelRules, request: &Request) -> Result<Option<NoForecast>> {
    if !request.provenance().lacks().is_empty() {
        return Ok(Some(NoForecast::Reconstructed));
    }
    if !rules.apis.contains(&request.api()) {
        return Ok(Some(NoForecast::OtherApi));
    }
    let body = request.value()?;
    let goes_on = ["previous_response_id", "conversation"];
    let goes_on = goes_on.into_iter().any(|key| body.get(key).is_some_and(|of| *of != Value::Null));
    Ok(goes_on.then_some(NoForecast::NotWhole))
}
