use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    Exchange, ExchangeOutcome,
    answers::{Answer, Answers},
};
use crate::{
    transcript::{RecordedExchange, Usage},
    veil::{AnswerId, CopyOf, Frame, ModelAnswer, Source},
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
    /// Where the answer is a copy of one of another session, what it reports, which counts there.
    pub copied: Option<CopiedUsage>,
    /// What tells the answer from others, in whatever file it stands; `None` where nothing does.
    pub answer: Option<u64>,
    /// Whether it failed.
    pub is_failed: bool,
    /// Whether `requests` lists it. An answer that shows nothing, or whose request is nowhere, is
    /// in no list, and is paid for. So are the sums of a session, where a source states nothing else.
    pub is_listed: bool,
}

/// What a copy of an answer reports: a session that was forked, or resumed into another file, holds
/// the answers of the first one again.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopiedUsage {
    /// The session that it was copied from, where the source names it.
    pub from: Option<Arc<str>>,
    /// The usage as reported.
    pub usage: Option<Usage>,
}

impl ReportedExchange {
    /// One of this session, of which nothing is reported yet.
    pub fn new(session: Arc<str>) -> Self {
        let (model, usage, copied, answer) = Default::default();
        Self { session, model, usage, copied, answer, is_failed: false, is_listed: true }
    }

    /// The usage as reported, wherever it counts.
    pub fn figures(&self) -> Option<&Usage> {
        self.copied.as_ref().map_or(self.usage.as_ref(), |copied| copied.usage.as_ref())
    }

    /// Says that it is a copy of an answer of this session, unless it is known to be one.
    pub fn count_in(&mut self, session: Option<Arc<str>>) {
        if self.copied.is_none() {
            self.copied = Some(CopiedUsage { from: session, usage: self.usage.take() });
        }
    }

    fn figures_mut(&mut self) -> &mut Option<Usage> {
        self.copied.as_mut().map_or(&mut self.usage, |copied| &mut copied.usage)
    }
}

impl From<&Exchange> for ReportedExchange {
    fn from(exchange: &Exchange) -> Self {
        Self {
            model: exchange.model.as_deref().filter(|model| !model.is_empty()).map(Arc::from),
            usage: exchange.usage.clone(),
            copied: exchange.copied.clone(),
            is_failed: matches!(exchange.outcome, ExchangeOutcome::Failed { .. }),
            ..Self::new(Arc::clone(&exchange.session))
        }
    }
}

impl From<&RecordedExchange> for ReportedExchange {
    fn from(exchange: &RecordedExchange) -> Self {
        Self {
            model: exchange.model.as_deref().filter(|model| !model.is_empty()).map(Arc::from),
            usage: exchange.usage.clone(),
            is_failed: exchange.failure.is_some(),
            is_listed: exchange.is_listed,
            ..Self::new(Arc::clone(&exchange.session))
        }
    }
}

/// What a frame says of the answer that it is a part of, besides its content.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) said: ModelAnswer,
    /// What tells the answer from those of other files.
    answer: Option<u64>,
}

impl Report {
    pub(super) fn of(frame: &Frame) -> Self {
        let said = frame.imported.as_ref().and_then(|imported| imported.answer.as_deref());
        let mut report = Self { said: said.cloned().unwrap_or_default(), answer: None };
        let (id, request) = (report.response(), report.said.request.as_deref());
        // A request's id beside that of its response; else the time of the record.
        let texts = id
            .zip(request)
            .or_else(|| id.or(frame.uuid.as_deref()).zip(frame.timestamp.as_deref()));
        let texts = texts.filter(|_| report.said.usage.is_some());
        report.answer = texts.map(|(id, other)| print(&[id, other]));
        report
    }

    /// The provider's id of the whole response.
    pub(super) fn response(&self) -> Option<&str> {
        match &self.said.id {
            Some(AnswerId::Response(id)) => Some(id),
            _ => None,
        }
    }

    /// The provider's id of the response, which a client repeats with each part of it; or else of
    /// this part alone.
    fn id(&self) -> Option<&str> {
        match &self.said.id {
            Some(AnswerId::Response(id) | AnswerId::Part(id)) => Some(id),
            None => None,
        }
    }
}

/// A print of some texts that is the same wherever it is made: 53 bits of FNV-1a, as JSON holds them.
fn print(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let print = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |print, byte| {
        (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    print >> 11
}

/// The model that answered with a frame, where its source says so; a name that a client put in for
/// itself, as `<synthetic>`, is none. O(events of the frame).
pub fn answering_model(frame: &Frame) -> Option<String> {
    let said =
        frame.imported.as_ref().filter(|_| frame.source == Source::Agent)?.answer.as_ref()?;
    let model = said.model.as_deref().filter(|model| !model.is_empty() && !model.starts_with('<'));
    model.map(str::to_owned)
}

/// What is reported of the exchanges of a transcript, as its frames come. An answer that a client
/// wrote down several times, or in several parts, counts once.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    exchanges: Vec<ReportedExchange>,
    /// Answers that show nothing, or whose request is nowhere; `None` where one turned out to be a
    /// part of another.
    unlisted: Vec<Option<ReportedExchange>>,
    /// The exchange of each response.
    responses: HashMap<String, Place>,
    /// In each session the last of the unlisted and its response, while the next frame may show
    /// that it is a part of an answer.
    waiting: HashMap<Arc<str>, (usize, Option<String>)>,
    models: Models,
}

/// Where the exchange of a response is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Listed(usize),
    Unlisted(usize),
}

/// What a frame is to the exchanges of a transcript.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) answer: Answer,
    /// The index of the exchange that it answers.
    pub(super) exchange: Option<usize>,
    pub(super) report: Report,
    /// Whether it says that the answers before it are copies.
    pub(super) are_copies: bool,
}

/// What a frame says of its answer, and what is known of the response.
struct Said {
    report: Report,
    known: Option<Place>,
    /// Whether the exchange that is known is one of this session.
    is_own: bool,
}

impl Reports {
    fn report(&self, session: &Arc<str>, frame: &Frame) -> Said {
        let is_agents = frame.source == Source::Agent;
        let mut report = if is_agents { Report::of(frame) } else { Report::default() };
        let known = report.id().and_then(|id| self.responses.get(id)).copied();
        let of = match known {
            Some(Place::Listed(index)) => self.exchanges.get(index),
            Some(Place::Unlisted(index)) => self.unlisted.get(index).and_then(Option::as_ref),
            None => None,
        };
        let is_own = of.is_some_and(|exchange| exchange.session == *session);
        if let Some(of) = of.filter(|_| !is_own && report.said.copied.is_none()) {
            report.said.copied = Some(CopyOf { session: Some(of.session.as_ref().into()) });
        }
        Said { report, known, is_own }
    }

    /// Whether the next frame of a session begins an answer, if it shows something.
    pub(crate) fn would_begin(&self, session: &Arc<str>, answers: &Answers, frame: &Frame) -> bool {
        let said = self.report(session, frame);
        frame.source == Source::Agent
            && said.listed().is_none()
            && answers.would_begin(&said.report)
    }

    /// Takes the next frame of a session.
    pub(crate) fn push(
        &mut self,
        session: &Arc<str>,
        answers: &mut Answers,
        frame: &Frame,
        shows: bool,
    ) -> Reported {
        let imported = frame.imported.as_deref();
        let copied = imported.and_then(|imported| imported.copied_before.as_ref());
        if let Some(CopyOf { session: from }) = copied {
            let from = from.as_deref().map(Arc::from);
            self.all_mut()
                .filter(|exchange| exchange.session == *session)
                .for_each(|exchange| exchange.count_in(from.clone()));
        }
        for said in imported.iter().flat_map(|imported| &imported.session_usage) {
            let exchange = ReportedExchange {
                model: said.model.as_deref().and_then(|model| self.models.intern(model)),
                usage: said.usage.clone(),
                is_listed: false,
                ..ReportedExchange::new(Arc::clone(session))
            };
            self.unlisted.push(Some(exchange));
        }
        let is_agents = frame.source == Source::Agent;
        let said = self.report(session, frame);
        if shows {
            self.settle(session, &said.report);
        } else if is_agents {
            self.hear(session, answers, &said);
        }
        let listed = said.listed();
        let answer = answers.push(frame, &said.report, shows, listed.is_some());
        if answer == Answer::None && shows && is_agents {
            // An excerpt may begin with an answer.
            self.hear(session, answers, &said);
        }
        let Said { report, known, is_own } = said;
        let exchange = match answer {
            Answer::Begins(_) => {
                answers.exchange = Some(self.begin(session, &report));
                answers.exchange
            }
            _ if listed.is_some() => listed,
            Answer::GoesOn => answers.exchange,
            Answer::None => None,
        };
        if let Some(exchange) = exchange.and_then(|index| self.exchanges.get_mut(index)) {
            // What a client wrote last of a response is what that came to.
            let (was, is) = (exchange.figures_mut().take(), report.said.usage.clone());
            *exchange.figures_mut() = if listed.is_some() { is.or(was) } else { was.or(is) };
            exchange.answer = exchange.answer.or(report.answer);
            let model = exchange.model.take();
            exchange.model = model.or_else(|| self.models.intern(report.said.model.as_deref()?));
        }
        if let (Some(id), Some(index)) = (report.id(), exchange) {
            match known {
                // It showed nothing so far.
                Some(Place::Unlisted(unlisted)) if is_own => {
                    self.drop_unlisted(unlisted);
                    self.responses.insert(id.to_owned(), Place::Listed(index));
                }
                Some(_) => {}
                None => {
                    self.responses.insert(id.to_owned(), Place::Listed(index));
                }
            }
        }
        Reported { answer, exchange, report, are_copies: copied.is_some() }
    }

    /// Those of a recording that are in no list.
    pub(super) fn unlisted(exchanges: impl Iterator<Item = ReportedExchange>) -> Self {
        let unlisted = exchanges.filter(|exchange| !exchange.is_listed).map(Some).collect();
        Self { unlisted, ..Self::default() }
    }

    /// All exchanges, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ReportedExchange> {
        self.exchanges.iter_mut().chain(self.unlisted.iter_mut().flatten())
    }

    /// The exchanges that are listed, in their order.
    pub(super) fn listed(&self) -> &[ReportedExchange] {
        &self.exchanges
    }

    /// All exchanges: those that are listed, and then the others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &ReportedExchange> {
        self.exchanges.iter().chain(self.unlisted.iter().flatten())
    }

    fn begin(&mut self, session: &Arc<str>, report: &Report) -> usize {
        let exchange = self.reported(session, report);
        self.exchanges.push(exchange);
        self.exchanges.len() - 1
    }

    fn reported(&mut self, session: &Arc<str>, report: &Report) -> ReportedExchange {
        let mut exchange = ReportedExchange {
            model: report.said.model.as_deref().and_then(|model| self.models.intern(model)),
            usage: report.said.usage.clone(),
            answer: report.answer,
            is_failed: report.said.failure().is_some(),
            ..ReportedExchange::new(Arc::clone(session))
        };
        if let Some(CopyOf { session: from }) = &report.said.copied {
            exchange.count_in(from.as_deref().map(Arc::from));
        }
        exchange
    }

    /// Takes an answer that shows nothing, or that answers no request, unless it is a part of the
    /// one before it.
    fn hear(&mut self, session: &Arc<str>, answers: &Answers, said: &Said) {
        let report = &said.report;
        match said.known {
            // It comes again: what a client wrote last is what it came to.
            Some(Place::Unlisted(index)) if said.is_own => {
                if let Some(Some(exchange)) = self.unlisted.get_mut(index) {
                    let figures = exchange.figures_mut();
                    *figures = report.said.usage.clone().or_else(|| figures.take());
                }
                return;
            }
            Some(_) => return,
            None => {}
        }
        if report.said.usage.is_none() || self.is_part(answers, report) {
            return;
        }
        self.settle(session, report);
        let exchange = ReportedExchange { is_listed: false, ..self.reported(session, report) };
        let index = self.unlisted.len();
        self.unlisted.push(Some(exchange));
        if let Some(id) = report.id() {
            self.responses.insert(id.to_owned(), Place::Unlisted(index));
        }
        self.waiting.insert(Arc::clone(session), (index, report.response().map(str::to_owned)));
    }

    /// Whether this is a part of the answer that goes on.
    fn is_part(&self, answers: &Answers, report: &Report) -> bool {
        let current = answers.exchange.and_then(|index| self.exchanges.get(index));
        let is_other = answers.is_other_response(report);
        !is_other
            && current.is_some_and(|exchange| exchange.figures() == report.said.usage.as_ref())
    }

    /// What waits is an answer by itself, unless this is of the same one.
    fn settle(&mut self, session: &Arc<str>, next: &Report) {
        let Some((index, response)) = self.waiting.remove(session) else { return };
        // A response that has an id is found by it.
        let is_named = response.is_some() && next.response().is_some();
        let waiting = self.unlisted.get(index).and_then(Option::as_ref);
        let is_same =
            waiting.is_some_and(|exchange| exchange.figures() == next.said.usage.as_ref());
        if !is_named && is_same {
            self.drop_unlisted(index);
            if let Some(id) = response {
                self.responses.remove(&id);
            }
        }
    }

    fn drop_unlisted(&mut self, index: usize) {
        if let Some(exchange) = self.unlisted.get_mut(index) {
            *exchange = None;
        }
    }
}

impl Said {
    /// The exchange of this session that the response is known to be, where it is listed.
    fn listed(&self) -> Option<usize> {
        match self.known {
            Some(Place::Listed(index)) if self.is_own => Some(index),
            _ => None,
        }
    }
}

/// The names of models, each kept once.
#[derive(Debug, Default)]
struct Models(HashSet<Arc<str>>);

impl Models {
    /// The name; `None` for an empty one.
    fn intern(&mut self, name: &str) -> Option<Arc<str>> {
        if name.is_empty() {
            return None;
        }
        if let Some(known) = self.0.get(name) {
            return Some(Arc::clone(known));
        }
        let name: Arc<str> = name.into();
        self.0.insert(Arc::clone(&name));
        Some(name)
    }
}

#[cfg(test)]
#[path = "reports_tests.rs"]
mod tests;
