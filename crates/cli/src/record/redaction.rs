//! Secrets that are taken out before anything is written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afterimage::{record::Redact, redact::Redactor};

use crate::{
    args,
    failure::Outcome,
    input::{RedactionReporter, redactor},
};

/// The redactor of a recording. The recorder uses it on a thread of its own.
#[derive(Clone)]
pub(super) struct Redaction {
    redactor: Arc<Mutex<Redactor>>,
    reporter: Arc<RedactionReporter>,
}

impl Redaction {
    /// The redaction that is asked for, if any is.
    pub(super) fn of(args: &args::Redaction) -> Outcome<Option<Self>> {
        Ok(redactor(args)?.map(|(redactor, reporter)| Self {
            redactor: Arc::new(Mutex::new(redactor)),
            reporter: Arc::new(reporter),
        }))
    }

    fn redactor(&self) -> MutexGuard<'_, Redactor> {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what was found, and writes it where that is asked for.
    pub(super) fn report(&self) -> Outcome {
        let redactor = self.redactor();
        self.reporter.say(redactor.report());
        self.reporter.write(redactor.report())
    }
}

impl Redact for Redaction {
    fn line(&mut self, text: &str) -> String {
        self.redactor().text(text, "a header").into_owned()
    }

    fn body(&mut self, text: &str, place: &str) -> String {
        self.redactor().body(text, place).into_owned()
    }

    fn broken(&mut self, text: &str, place: &str) -> Option<String> {
        self.redactor().broken_body(text, place)
    }
}
