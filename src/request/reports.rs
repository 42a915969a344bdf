use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::answers::{Answer, Answers};
use crate::{
    id::FrameSeq,
    transcript::{Api, Exchange, Provenance},
    veil::{AnswerId, CopyOf, Frame, ModelAnswer, Source},
};

/// What a frame says of the answer that it is a part of, besides its content.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) said: ModelAnswer,
    /// What tells the answer from those of other files.
    answer: Option<u64>,
    /// When it came, as the source has it.
    time: Option<String>,
}

impl Report {
    pub(super) fn of(frame: &Frame) -> Self {
        let said = frame.imported.as_ref().and_then(|imported| imported.answer.as_deref());
        let time = frame.timestamp.clone();
        let mut report = Self { said: said.cloned().unwrap_or_default(), answer: None, time };
        let (id, request) = (report.response(), report.said.request.as_deref());
        // A request's id beside that of its response; else the time of the record.
        let texts = id
            .zip(request)
            .or_else(|| id.or(frame.uuid.as_deref()).zip(frame.timestamp.as_deref()));
        let texts = texts.filter(|_| report.said.usage.is_some());
        report.answer = texts.map(|(id, other)| print(&[id, other]));
        report
    }

    /// Whether a frame that shows nothing stands for a request that failed.
    pub(super) fn is_attempt(&self) -> bool {
        let is_clients = self.said.model.as_deref().is_some_and(|model| model.starts_with('<'));
        self.said.failure().is_some() && !is_clients
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
    /// The API that the source's program speaks.
    api: Api,
    exchanges: Vec<Exchange>,
    /// Answers that show nothing, or whose request is nowhere; `None` where one turned out to be a
    /// part of another.
    unlisted: Vec<Option<Exchange>>,
    /// The exchange of each response.
    responses: HashMap<String, Place>,
    /// In each session the last of the unlisted and its response, while the next frame may show
    /// that it is a part of an answer.
    waiting: HashMap<Arc<str>, (usize, Option<String>)>,
    /// Requests that the source logged and that no frame answers.
    logged: Vec<Exchange>,
    models: Models,
}

/// Where the exchange of a response is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Listed(usize),
    Unlisted(usize),
}

/// What a frame says of its answer, and what is known of the response.
struct Said {
    report: Report,
    known: Option<Place>,
    /// Whether the exchange that is known is one of this session.
    is_own: bool,
}

impl Reports {
    /// Those of a source whose program speaks this API.
    pub(crate) fn of(api: Api) -> Self {
        Self { api, ..Self::default() }
    }

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
    ) -> Answer {
        let imported = frame.imported.as_deref();
        let copied = imported.and_then(|imported| imported.copied_before.as_ref());
        if let Some(CopyOf { session: from }) = copied {
            let from = from.as_deref().map(Arc::from);
            self.all_mut()
                .filter(|exchange| exchange.session == *session)
                .for_each(|exchange| exchange.count_in(from.clone()));
        }
        for said in imported.iter().flat_map(|imported| &imported.session_usage) {
            let exchange = Exchange {
                session: Arc::clone(session),
                api: self.api,
                model: said.model.as_deref().and_then(|model| self.models.intern(model)),
                usage: said.usage.clone(),
                time: frame.timestamp.clone(),
                is_unlisted: true,
                ..Exchange::default()
            };
            self.unlisted.push(Some(exchange));
        }
        let is_agents = frame.source == Source::Agent;
        let said = self.report(session, frame);
        let listed = said.listed();
        let answer = answers.push(frame, &said.report, shows, listed.is_some());
        if shows || answer != Answer::None {
            self.settle(session, &said.report);
        }
        if answer == Answer::None && is_agents {
            // It shows nothing, or an excerpt begins with it.
            self.hear(session, answers, &said, frame.sequence);
        }
        let Said { report, known, is_own } = said;
        let exchange = match answer {
            Answer::Begins(to) => {
                let before = answers.exchange.and_then(|index| self.exchanges.get(index));
                let is_again =
                    |before: &Exchange| before.failure.is_some() && before.last_frame == Some(to);
                let lacks = answers.lacks(report.said.parameters.is_some());
                let exchange = Exchange {
                    number: self.exchanges.len() + 1,
                    previous: before.map(|before| before.number),
                    provenance: Provenance::Reconstructed { lacks },
                    is_retry: before.is_some_and(is_again),
                    last_frame: Some(to),
                    ..self.reported(session, &report)
                };
                self.exchanges.push(exchange);
                answers.exchange = Some(self.exchanges.len() - 1);
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
            exchange.print = exchange.print.or(report.answer);
            exchange.answer_frames.extend(shows.then_some(frame.sequence));
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
        answer
    }

    /// Those of a source that holds its exchanges.
    pub(crate) fn recorded(exchanges: Vec<Exchange>) -> Self {
        let (unlisted, exchanges) =
            exchanges.into_iter().partition::<Vec<_>, _>(|exchange| exchange.is_unlisted);
        let unlisted = unlisted.into_iter().map(Some).collect();
        Self { exchanges, unlisted, ..Self::default() }
    }

    /// Gives the exchange of an answer the request that the source logged. What the frames tell of the
    /// answer stays. Without such an answer it is an exchange by itself. O(log n); where the answer is
    /// in no list O(those that are in none).
    pub(crate) fn join(&mut self, mut logged: Exchange) {
        let answer = logged.answer();
        let own = answer.and_then(|answer| self.with_answer(answer));
        let own = own.and_then(|at| self.exchanges.get_mut(at));
        let Some(own) = own else {
            // It may show nothing.
            let is_own = |known: &&mut Option<Exchange>| {
                known.as_ref().is_some_and(|known| known.answer() == answer)
            };
            let hidden = self.unlisted.iter_mut().rev().find(is_own).filter(|_| answer.is_some());
            logged.take_answer(hidden.and_then(Option::take).unwrap_or_default());
            return self.logged.push(logged);
        };
        logged.take_answer(std::mem::take(own));
        *own = logged;
    }

    /// Whether a listed answer begins with this frame. O(log n).
    pub(crate) fn begins_with(&self, frame: FrameSeq) -> bool {
        self.with_answer(frame).is_some()
    }

    /// The index of the listed exchange whose answer begins with this frame.
    fn with_answer(&self, frame: FrameSeq) -> Option<usize> {
        // What failed stands behind its last frame.
        let place = |of: &Exchange| (of.answer().or(of.last_frame), of.answer().is_none());
        self.exchanges.binary_search_by_key(&(Some(frame), false), place).ok()
    }

    /// Lists the requests that no frame answers where they were sent, and numbers all. `of` is what is
    /// known of each that is listed so far, which goes with it. O(n log n).
    pub(super) fn settle_logged<T>(&mut self, of: Vec<T>) -> Vec<Option<T>> {
        let logged = std::mem::take(&mut self.logged).into_iter().map(|exchange| (exchange, None));
        let listed = std::mem::take(&mut self.exchanges).into_iter().zip(of.into_iter().map(Some));
        let (mut all, unlisted): (Vec<_>, Vec<_>) =
            listed.chain(logged).partition(|(exchange, _)| !exchange.is_unlisted);
        self.unlisted.extend(unlisted.into_iter().map(|(exchange, _)| Some(exchange)));
        all.sort_by_key(|(exchange, _)| exchange.place());
        let (exchanges, of) = all.into_iter().unzip();
        self.exchanges = exchanges;
        (1..).zip(&mut self.exchanges).for_each(|(number, exchange)| exchange.number = number);
        of
    }

    /// All exchanges, to be changed.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        let unlisted = self.unlisted.iter_mut().flatten();
        self.exchanges.iter_mut().chain(unlisted).chain(&mut self.logged)
    }

    /// The exchanges that are listed, in their order.
    pub(crate) fn listed(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// The same, to be changed.
    pub(super) fn listed_mut(&mut self) -> &mut [Exchange] {
        &mut self.exchanges
    }

    /// All exchanges: those that are listed, and then the others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Exchange> + Clone {
        self.exchanges.iter().chain(self.unlisted.iter().flatten()).chain(&self.logged)
    }

    fn reported(&mut self, session: &Arc<str>, report: &Report) -> Exchange {
        let mut exchange = Exchange {
            session: Arc::clone(session),
            api: self.api,
            model: report.said.model.as_deref().and_then(|model| self.models.intern(model)),
            usage: report.said.usage.clone(),
            print: report.answer,
            failure: report.said.failure().map(str::to_owned),
            time: report.time.clone(),
            ..Exchange::default()
        };
        if let Some(CopyOf { session: from }) = &report.said.copied {
            exchange.count_in(from.as_deref().map(Arc::from));
        }
        exchange
    }

    /// Takes an answer that shows nothing, or that answers no request, unless it is a part of the
    /// one before it.
    fn hear(&mut self, session: &Arc<str>, answers: &Answers, said: &Said, frame: FrameSeq) {
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
        let answer_frames = vec![frame];
        let exchange =
            Exchange { is_unlisted: true, answer_frames, ..self.reported(session, report) };
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
