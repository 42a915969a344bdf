//! Secrets that are taken out before anything is written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afterimage::{
    record::{Recording, Redact},
    redact::Redactor,
};

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
    /// The redaction that is asked for, if any is. Its placeholders are others than those that are in
    /// the recording already.
    pub(super) fn of(args: &args::Redaction, before: Option<&Recording>) -> Outcome<Option<Self>> {
        Ok(redactor(args)?.map(|(mut redactor, reporter)| {
            if let Some(recording) = before {
                count_behind(&mut redactor, recording);
            }
            Self { redactor: Arc::new(Mutex::new(redactor)), reporter: Arc::new(reporter) }
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

fn count_behind(redactor: &mut Redactor, recording: &Recording) {
    let mut requests = recording.bodies();
    for exchange in recording.exchanges().iter().filter(|exchange| exchange.start.is_redacted) {
        let response = exchange.response.as_ref().map(|head| &head.headers);
        let headers = exchange.start.headers.iter().chain(response.into_iter().flatten());
        headers.for_each(|(_, value)| redactor.count_behind(value));
        redactor.count_behind(&exchange.start.path);
        // What cannot be read has no placeholder that anybody reads.
        if let Ok(body) = requests.request(exchange) {
            redactor.count_behind(&String::from_utf8_lossy(body));
        }
        if let Ok(body) = recording.response(exchange) {
            redactor.count_behind(&String::from_utf8_lossy(body.bytes()));
        }
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
