use std::time::Duration;

use super::{
    Retries, SessionName,
    request::{Failure, Machine, Request, Response, Step},
    retry::Budget,
};
use crate::Result;

/// What an operation decides. It knows neither time nor failure: [`RetriedRequest`] puts it on its feet.
pub(super) trait Logic {
    type Output;

    /// What is to be asked now, or what came out.
    ///
    /// # Errors
    /// Why nothing can come out.
    fn want(&mut self) -> Result<Step<Self::Output>>;

    /// Takes the answer to what was asked.
    ///
    /// # Errors
    /// Why the answer is of no use.
    fn got(&mut self, response: Response) -> Result<(), Failure>;

    /// Hears that the request failed, or that its answer was of no use. What
    /// [`Logic::want`] then asks is the next attempt.
    fn failed(&mut self, failure: &Failure) {
        let _ = failure;
    }

    /// Whether nothing that was tried can still take effect.
    fn is_settled(&self) -> bool {
        true
    }
}

impl<L: Logic> Logic for &mut L {
    type Output = L::Output;

    fn want(&mut self) -> Result<Step<Self::Output>> {
        (**self).want()
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        (**self).got(response)
    }

    fn failed(&mut self, failure: &Failure) {
        (**self).failed(failure);
    }

    fn is_settled(&self) -> bool {
        (**self).is_settled()
    }
}

/// A [`Logic`] with attempts and waits.
pub(super) struct RetriedRequest<L: Logic> {
    logic: L,
    session: SessionName,
    budget: Budget,
    wait: Option<Duration>,
    is_waiting: bool,
    over: Option<crate::Error>,
}

impl<L: Logic> RetriedRequest<L> {
    pub(super) fn new(
        logic: L,
        session: &SessionName,
        retries: Retries,
        doing: &'static str,
    ) -> Self {
        let budget = Budget::new(retries, doing);
        Self { logic, session: session.clone(), budget, wait: None, is_waiting: false, over: None }
    }

    fn failed(&mut self, failure: Failure) {
        self.logic.failed(&failure);
        match self.budget.next(failure) {
            Ok(wait) => self.wait = Some(wait),
            Err(error) => self.over = Some(error.in_session(self.session.as_str())),
        }
    }
}

impl<L: Logic> Machine for RetriedRequest<L> {
    type Output = Result<L::Output>;

    fn step(&mut self) -> Step<Self::Output> {
        if let Some(error) = self.over.take() {
            return Step::Done(Err(error));
        }
        if let Some(wait) = self.wait.take() {
            self.is_waiting = true;
            return Step::Do(Request::Wait(wait));
        }
        match self.logic.want() {
            Ok(Step::Do(request)) => Step::Do(request),
            Ok(Step::Done(output)) => Step::Done(Ok(output)),
            Err(error) => Step::Done(Err(error.in_session(self.session.as_str()))),
        }
    }

    fn take(&mut self, response: Response) {
        if std::mem::take(&mut self.is_waiting) {
            return;
        }
        let result = match response {
            Response::Failed(failure) => Err(failure),
            response => self.logic.got(response),
        };
        if let Err(failure) = result {
            self.failed(failure);
        } else if self.logic.is_settled() {
            // A look at what became of an attempt is no success of the attempt.
            self.budget.worked();
        }
    }
}
