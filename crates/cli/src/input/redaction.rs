//! Secrets that are taken out of all that is read.

mod report;

use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use afterimage::{
    json::MAX_BYTES,
    redact::{RedactionRules, Redactor},
    transcript::{Exchange, ImportReport, Provenance, Record, TranscriptFormat},
};

use super::{
    counted::Progress,
    opening::{Opened, expanded},
    passed_over::PassedOver,
    regular,
};
use crate::{
    args::{self, Input},
    failure::{Failure, Outcome},
};
pub(crate) use report::RedactionReporter;

/// The redactor of all files of a command, so that one secret has one placeholder.
#[derive(Clone)]
pub(super) struct Redaction(Arc<Mutex<RedactionState>>);

struct RedactionState {
    redactor: Redactor,
    /// The names of sessions, each with the one that is shown. A name is one place, however many
    /// records have it.
    sessions: HashMap<Arc<str>, Arc<str>>,
    reporter: RedactionReporter,
}

impl Redaction {
    /// The redaction that is asked for, if any is.
    pub(super) fn of(input: &Input) -> Outcome<Option<Self>> {
        let redactor = redactor(&input.redaction)?;
        Ok(redactor.map(|(redactor, reporter)| {
            let sessions = HashMap::new();
            Self(Arc::new(Mutex::new(RedactionState { redactor, sessions, reporter })))
        }))
    }

    /// Reads what can be read twice, so that a secret is known wherever it stands, also before the
    /// place that tells it. What cannot be read says so when it is read again.
    pub(super) fn learn(&self, files: &[PathBuf], format: Option<TranscriptFormat>) {
        let is_kept = |path: &&PathBuf| path.is_file() || path.is_dir();
        let files: Vec<PathBuf> = files.iter().filter(is_kept).cloned().collect();
        for opening in expanded(&files, &mut PassedOver::default()).into_iter().flatten() {
            let Ok(Opened::Source(mut source)) = opening.open(Progress::Hidden, format) else {
                continue;
            };
            source.redact(self.clone());
            source.keep_exchanges();
            loop {
                let is_read = source.next().is_none_or(|record| record.is_err());
                drop(source.take_exchanges());
                if is_read {
                    break;
                }
            }
        }
        let mut state = self.state();
        state.redactor.start_second_pass();
        state.sessions.clear();
    }

    fn state(&self) -> MutexGuard<'_, RedactionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path as it is shown and archived.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let shown = path.display().to_string();
        self.state().redactor.text(&shown, "the path of a file").into_owned().into()
    }

    /// The name of a session as it is shown and archived.
    pub(super) fn session(&self, name: &Arc<str>) -> Arc<str> {
        let RedactionState { redactor, sessions, .. } = &mut *self.state();
        if let Some(shown) = sessions.get(name) {
            return Arc::clone(shown);
        }
        let shown: Arc<str> = match redactor.text(name, "the name of a session") {
            Cow::Owned(shown) => shown.into(),
            Cow::Borrowed(_) => Arc::clone(name),
        };
        sessions.insert(Arc::clone(name), Arc::clone(&shown));
        shown
    }

    pub(super) fn record(&self, record: Record) -> afterimage::Result<Record> {
        let Record { session, frame } = record;
        let session = self.session(&session);
        let frame = self.state().redactor.frame(frame)?;
        Ok(Record { session, frame })
    }

    /// An exchange, but for the name of its session.
    pub(super) fn exchange(&self, exchange: &mut Exchange) {
        let redactor = &mut self.state().redactor;
        let line = exchange.line.unwrap_or_default();
        let place = |what: &str| format!("exchange {line}, {what}");
        let request = redactor.body(&exchange.request, &place("request")).into_owned();
        exchange.replace_kept(|items| redactor.body(items, &place("kept items")).into_owned());
        let response = exchange.response.as_deref();
        // Of an answer that broke off half of a secret may be there.
        let is_cut = exchange.cut.is_some() || exchange.failure.is_some();
        let response = response.map(|body| {
            let place = place("response");
            let body =
                if is_cut { redactor.cut_body(body, &place) } else { redactor.body(body, &place) };
            body.into_owned()
        });
        let failure = exchange.failure.as_deref();
        let failure = failure.map(|text| redactor.body(text, &place("failure")).into_owned());
        let mut text = |text: Option<&str>, what: &str| {
            text.map(|text| redactor.text(text, &place(what)).into_owned())
        };
        exchange.model = text(exchange.model.as_deref(), "model").map(Arc::from);
        exchange.cut = text(exchange.cut.as_deref(), "cut");
        exchange.unread = text(exchange.unread.as_deref(), "unread");
        exchange.time = text(exchange.time.as_deref(), "started");
        if *request != *exchange.request {
            exchange.provenance = Provenance::Logged;
        }
        exchange.replace_request(request);
        exchange.response = response.map(Into::into);
        exchange.failure = failure;
    }

    /// What an import says of a file.
    pub(super) fn import_report(&self, report: &ImportReport) -> ImportReport {
        let redactor = &mut self.state().redactor;
        let mut text = |text: &str| redactor.text(text, "what was odd in a file").into_owned();
        let mut report = report.clone();
        for kinds in [&mut report.skipped, &mut report.unlisted, &mut report.unread_requests] {
            for (kind, count) in std::mem::take(kinds) {
                *kinds.entry(text(&kind)).or_default() += count;
            }
        }
        report.unknown.iter_mut().for_each(|unknown| unknown.reason = text(&unknown.reason));
        report.notes.iter_mut().for_each(|note| note.text = text(&note.text));
        report.folder.iter_mut().for_each(|folder| *folder = text(folder));
        report
    }

    /// Says what was found, unless that is to be silent, and writes it where that is asked for.
    pub(super) fn report(&self, is_silent: bool) -> Outcome {
        let RedactionState { redactor, reporter, .. } = &*self.state();
        if !is_silent {
            reporter.say(redactor.report());
        }
        reporter.write(redactor.report())
    }
}

/// The redactor that is asked for, if any is.
pub(crate) fn redactor(args: &args::Redaction) -> Outcome<Option<(Redactor, RedactionReporter)>> {
    if !args.is_on() {
        return Ok(None);
    }
    let reporter = RedactionReporter::new(args.redact_report.clone())?;
    let mut rules = RedactionRules::embedded()?;
    if let Some(path) = &args.redact_rules {
        rules = rules.with(&read_rules(path)?)?;
    }
    Ok(Some((Redactor::new(&rules), reporter)))
}

fn read_rules(path: &Path) -> Outcome<RedactionRules> {
    let bytes = regular(path, MAX_BYTES as u64)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("expected rules in UTF-8, found other bytes").file(path))?;
    Ok(RedactionRules::from_toml(&text).map_err(|error| error.in_file(path))?)
}
