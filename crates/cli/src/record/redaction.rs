//! Secrets that are taken out before anything is written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afterimage::{record::Redact, redact::Redactor};

use crate::{
    args,
    failure::Outcome,
    input::{redactor, report_redaction},
};

/// The redactor of a recording. The recorder uses it on a thread of its own.
#[derive(Clone)]
pub(super) struct Redaction(Arc<Mutex<Redactor>>);

impl Redaction {
    /// The redaction that is asked for, if any is.
    pub(super) fn of(args: &args::Redaction) -> Outcome<Option<Self>> {
        Ok(redactor(args)?.map(|redactor| Self(Arc::new(Mutex::new(redactor)))))
    }

    fn redactor(&self) -> MutexGuard<'_, Redactor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what was found.
    pub(super) fn report(&self) {
        report_redaction(&self.redactor());
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
