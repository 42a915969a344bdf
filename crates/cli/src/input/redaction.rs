//! Secrets that are taken out of all that is read.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use afterimage::{
    json::MAX_BYTES,
    redact::{RedactionRules, Redactor},
    transcript::{Record, RecordedExchange, TranscriptFormat},
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
    output::note,
    text::counted,
};

/// So many secrets are told with the place where they stood first.
const MOST_TOLD: usize = 20;

/// The redactor of all files of a command, so that one secret has one placeholder.
#[derive(Clone)]
pub(super) struct Redaction(Arc<Mutex<Redactor>>);

impl Redaction {
    /// The redaction that is asked for, if any is.
    pub(super) fn of(input: &Input) -> Outcome<Option<Self>> {
        let redactor = redactor(&input.redaction)?;
        Ok(redactor.map(|redactor| Self(Arc::new(Mutex::new(redactor)))))
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
        self.redactor().start_second_pass();
    }

    fn redactor(&self) -> MutexGuard<'_, Redactor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A path as it is shown and archived.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let shown = path.display().to_string();
        self.redactor().text(&shown, "the path of a file").into_owned().into()
    }

    pub(super) fn record(&self, record: Record) -> afterimage::Result<Record> {
        let Record { session, frame } = record;
        let frame = self.redactor().frame(frame)?;
        Ok(Record { session, frame })
    }

    pub(super) fn exchange(&self, exchange: &mut RecordedExchange) {
        let mut redactor = self.redactor();
        let mut redact = |body: &str, what: &str| {
            let place = format!("exchange {}, {what}", exchange.line);
            redactor.body(body, &place).into_owned()
        };
        let request = redact(&exchange.request, "request");
        let response = exchange.response.as_deref().map(|body| redact(body, "response"));
        let failure = exchange.failure.as_deref().map(|text| redact(text, "failure"));
        exchange.is_as_sent &= *request == *exchange.request;
        exchange.replace_request(request);
        exchange.response = response.map(Into::into);
        exchange.failure = failure;
    }

    /// Says what was found.
    pub(super) fn report(&self) {
        report(&self.redactor());
    }
}

/// The redactor that is asked for, if any is.
pub(crate) fn redactor(args: &args::Redaction) -> Outcome<Option<Redactor>> {
    if !args.redact && args.redact_rules.is_none() {
        return Ok(None);
    }
    let mut rules = RedactionRules::embedded()?;
    if let Some(path) = &args.redact_rules {
        rules = rules.with(&read_rules(path)?)?;
    }
    Ok(Some(Redactor::new(&rules)))
}

/// Says what a redactor found.
pub(crate) fn report(redactor: &Redactor) {
    let report = redactor.report();
    if report.secrets() == 0 {
        return note("redacted nothing: no secret was found");
    }
    let rules = report.by_rule().into_iter();
    let rules: Vec<String> = rules.map(|(rule, secrets, _)| format!("{secrets} {rule}")).collect();
    let secrets = counted(report.secrets(), "secret");
    let places = counted(report.times(), "place");
    note(&format!("redacted {secrets} in {places}: {}", rules.join(", ")));
    let found: Vec<_> = report.found.iter().filter(|of| of.times > 0).collect();
    for of in found.iter().take(MOST_TOLD) {
        let times = if of.times > 1 { format!(" ×{}", of.times) } else { String::new() };
        note(&format!("  {}{times}, first in {}", of.rule, of.first));
    }
    let left = found.len().saturating_sub(MOST_TOLD);
    if left > 0 {
        note(&format!("  … and {}", counted(left as u64, "secret")));
    }
}

fn read_rules(path: &Path) -> Outcome<RedactionRules> {
    let bytes = regular(path, MAX_BYTES as u64)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("expected rules in UTF-8, found other bytes").file(path))?;
    Ok(RedactionRules::from_toml(&text).map_err(|error| error.in_file(path))?)
}
