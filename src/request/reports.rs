use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use indexmap::IndexMap;

use super::{
    Exchange, ExchangeOutcome,
    answers::{Answer, Answers},
};
use crate::{
    json::Value,
    transcript::{RecordedExchange, Usage},
    veil::{Frame, Source},
};

/// What a source reports of one exchange.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedExchange {
    /// The session that it belongs to.
    pub session: Arc<str>,
    /// The model, where the source names it.
    pub model: Option<Arc<str>>,
    /// The usage as reported.
    pub usage: Option<Usage>,
    /// Whether it failed.
    pub is_failed: bool,
    /// Whether `requests` lists it. An answer that shows nothing, or whose request is nowhere, is
    /// in no list, and is paid for. So are the sums of a session, where a source states nothing else.
    pub is_listed: bool,
}

impl ReportedExchange {
    /// One of this session, of which nothing is reported yet.
    pub fn new(session: Arc<str>) -> Self {
        Self { session, model: None, usage: None, is_failed: false, is_listed: true }
    }
}

impl From<&Exchange> for ReportedExchange {
    fn from(exchange: &Exchange) -> Self {
        Self {
            model: exchange.model.as_deref().map(Arc::from),
            usage: exchange.usage,
            is_failed: matches!(exchange.outcome, ExchangeOutcome::Failed { .. }),
            ..Self::new(Arc::clone(&exchange.session))
        }
    }
}

impl From<&RecordedExchange> for ReportedExchange {
    fn from(exchange: &RecordedExchange) -> Self {
        Self {
            model: exchange.model.as_deref().map(Arc::from),
            usage: exchange.usage,
            is_failed: exchange.failure.is_some(),
            is_listed: exchange.is_listed,
            ..Self::new(Arc::clone(&exchange.session))
        }
    }
}

/// What a frame says of the answer that it is a part of, besides its content.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) failure: Option<String>,
    /// The provider's id of the response, which a client repeats with each part of it.
    response: Option<String>,
}

/// Where formats keep what a response says of itself: its usage, and in the same place its model
/// and its id.
const PLACES: [(&str, &str); 4] = [
    ("", "usage"),
    ("", "tokens"),
    ("extra/response", "usage"),
    ("tool_call_metadata/model_response", "usage"),
];

impl Report {
    pub(super) fn of(frame: &Frame) -> Self {
        let imported = frame.imported.as_ref();
        let at = |path: &str| {
            let mut names = path.split('/').filter(|name| !name.is_empty());
            let first = imported?.get(names.next()?)?;
            names.try_fold(first, |value, name| value.get(name))
        };
        let text = |path: &str| at(path).and_then(Value::as_str).map(str::to_owned);
        let join = |place: &str, name: &str| format!("{place}/{name}");
        let found = PLACES
            .iter()
            .find_map(|(place, name)| Some((*place, Usage::of(at(&join(place, name))?)?)));
        // Copilot's event says it beside the content.
        let is_copilot = at("data/outputTokens").is_some();
        let usage = match found {
            Some((_, usage)) => Some(usage),
            None if is_copilot => at("data").and_then(Usage::of),
            None => None,
        };
        let place = found.map(|(place, _)| place);
        let response = place.and_then(|place| text(&join(place, "id"))).filter(|id| !id.is_empty());
        let model = text("model").or_else(|| text(&join(place?, "model")));
        Self {
            model: model.or_else(|| text("data/model").filter(|_| is_copilot)),
            usage,
            failure: text("stopReason")
                .filter(|reason| matches!(reason.as_str(), "error" | "aborted")),
            response,
        }
    }
}

/// What a frame says of the whole session.
fn of_session(frame: &Frame) -> Option<Usage> {
    Usage::of(frame.imported.as_ref()?.get("sessionUsage")?)
}

/// What is reported of the exchanges of a transcript, as its frames come. An answer that a client
/// wrote down several times, or in several parts, counts once.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    exchanges: Vec<ReportedExchange>,
    /// The exchange of each response.
    responses: HashMap<String, usize>,
    /// Answers that show nothing, or whose request is nowhere.
    unlisted: Vec<ReportedExchange>,
    /// In each session the last of them and its response, while the next frame may show that it is
    /// a part of an answer.
    waiting: IndexMap<Arc<str>, (ReportedExchange, Option<String>)>,
    models: Models,
}

/// What a frame is to the exchanges of a transcript.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) answer: Answer,
    /// The index of the exchange that it answers.
    pub(super) exchange: Option<usize>,
    pub(super) report: Report,
}

impl Reports {
    /// What a frame says of its answer, the exchange of that answer where it is known, and whether
    /// that is one of this session.
    fn report(&self, session: &Arc<str>, frame: &Frame) -> (Report, Option<usize>, bool) {
        let is_agents = frame.source == Source::Agent;
        let mut report = if is_agents { Report::of(frame) } else { Report::default() };
        let known = report.response.as_ref().and_then(|id| self.responses.get(id)).copied();
        let of = known.and_then(|index| self.exchanges.get(index));
        let is_own = of.is_some_and(|exchange| exchange.session == *session);
        if known.is_some() && !is_own {
            // A copy of another session's.
            report.usage = None;
        }
        (report, known, is_own)
    }

    /// Whether the next frame of a session begins an answer, if it shows something.
    pub(crate) fn would_begin(&self, session: &Arc<str>, answers: &Answers, frame: &Frame) -> bool {
        let (report, _, is_own) = self.report(session, frame);
        frame.source == Source::Agent && !is_own && answers.would_begin(report.usage)
    }

    /// Takes the next frame of a session.
    pub(crate) fn push(
        &mut self,
        session: &Arc<str>,
        answers: &mut Answers,
        frame: &Frame,
        shows: bool,
    ) -> Reported {
        if let Some(usage) = of_session(frame) {
            let session = ReportedExchange::new(Arc::clone(session));
            self.unlisted.push(ReportedExchange {
                usage: Some(usage),
                is_listed: false,
                ..session
            });
        }
        let is_agents = frame.source == Source::Agent;
        let (report, known, is_own) = self.report(session, frame);
        if shows {
            self.settle(session, &report);
        } else if is_agents && known.is_none() {
            self.wait(session, answers, &report);
        }
        let answer = answers.push(frame, &report, shows, is_own);
        if answer == Answer::None && shows && is_agents && known.is_none() {
            // An excerpt may begin with an answer.
            self.wait(session, answers, &report);
        }
        let exchange = match answer {
            Answer::Begins(_) => {
                answers.exchange = Some(self.begin(session, &report));
                answers.exchange
            }
            _ if is_own => known,
            Answer::GoesOn => answers.exchange,
            Answer::None => None,
        };
        if let Some(exchange) = exchange.and_then(|index| self.exchanges.get_mut(index)) {
            // What a client wrote last of a response is what that came to.
            let (was, is) = (exchange.usage, report.usage);
            exchange.usage = if is_own { is.or(was) } else { was.or(is) };
            exchange.model = exchange.model.take().or_else(|| self.models.intern(&report));
        }
        if let (Some(id), Some(index)) = (&report.response, exchange) {
            self.responses.entry(id.clone()).or_insert(index);
        }
        Reported { answer, exchange, report }
    }

    /// Those of a recording that are in no list.
    pub(super) fn unlisted(exchanges: impl Iterator<Item = ReportedExchange>) -> Self {
        let unlisted = exchanges.filter(|exchange| !exchange.is_listed).collect();
        Self { unlisted, ..Self::default() }
    }

    /// The exchanges that are listed, in their order.
    pub(super) fn listed(&self) -> &[ReportedExchange] {
        &self.exchanges
    }

    /// All exchanges: those that are listed, and then the others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ReportedExchange> {
        let waiting = self.waiting.values().map(|(exchange, _)| exchange);
        self.exchanges.iter().chain(&self.unlisted).chain(waiting)
    }

    fn begin(&mut self, session: &Arc<str>, report: &Report) -> usize {
        let exchange = self.reported(session, report);
        self.exchanges.push(exchange);
        self.exchanges.len() - 1
    }

    fn reported(&mut self, session: &Arc<str>, report: &Report) -> ReportedExchange {
        ReportedExchange {
            model: self.models.intern(report),
            usage: report.usage,
            is_failed: report.failure.is_some(),
            ..ReportedExchange::new(Arc::clone(session))
        }
    }

    /// Takes an answer that shows nothing, or that answers no request, unless it is a part of the one before it.
    fn wait(&mut self, session: &Arc<str>, answers: &Answers, report: &Report) {
        let current = answers.exchange.and_then(|index| self.exchanges.get(index));
        let is_part = current.is_some_and(|exchange| exchange.usage == report.usage);
        if report.usage.is_none() || is_part {
            return;
        }
        self.settle(session, report);
        let exchange = ReportedExchange { is_listed: false, ..self.reported(session, report) };
        self.waiting.insert(Arc::clone(session), (exchange, report.response.clone()));
    }

    /// What waits is an answer by itself, unless this is of the same one.
    fn settle(&mut self, session: &Arc<str>, next: &Report) {
        let Some((exchange, response)) = self.waiting.swap_remove(session) else { return };
        let is_same = response.is_some() && response == next.response;
        if !is_same && exchange.usage != next.usage {
            self.unlisted.push(exchange);
        }
    }
}

/// The names of models, each kept once.
#[derive(Debug, Default)]
struct Models(HashSet<Arc<str>>);

impl Models {
    fn intern(&mut self, report: &Report) -> Option<Arc<str>> {
        let name = report.model.as_deref()?;
        if let Some(known) = self.0.get(name) {
            return Some(Arc::clone(known));
        }
        let name: Arc<str> = name.into();
        self.0.insert(Arc::clone(&name));
        Some(name)
    }
}
