//! What was redacted: a few lines that say so, and a file that has all of it.

use std::{fs::File, io::Read, path::PathBuf};

use afterimage::{
    log::{DiskFiles, write_atomic},
    redact::RedactionReport,
};

use crate::{
    failure::{Failure, Outcome},
    input::is_stdin,
    output::note,
    text::counted,
};

/// So many secrets are told with the place where they stood first; the file has all.
const MOST_TOLD: usize = 20;

/// What a file of a report begins with.
const BEGINNING: &[u8] = b"{\"redaction\":";

/// Tells what was redacted.
pub(crate) struct RedactionReporter {
    /// The file that it is written to.
    file: Option<PathBuf>,
}

impl RedactionReporter {
    /// Refuses a file that is there and is no report of a redaction.
    pub(super) fn new(file: Option<PathBuf>) -> Outcome<Self> {
        let Some(path) = &file else { return Ok(Self { file }) };
        if is_stdin(path) {
            return Err(Failure::new("expected a file to write to, found `-`").into());
        }
        if !path.exists() {
            return Ok(Self { file });
        }
        let mut beginning = [0; BEGINNING.len()];
        let is_report = path.is_file() && {
            let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
            read.is_ok() && beginning == BEGINNING
        };
        if is_report {
            return Ok(Self { file });
        }
        let failure = Failure::new("the file is there, and is no report of a redaction");
        Err(failure.file(path).hint("name another file with `--redact-report`").into())
    }

    /// Says what was found, in a few lines.
    pub(crate) fn say(&self, report: &RedactionReport) {
        if report.secrets() == 0 {
            return note("redacted nothing: no secret was found");
        }
        let rules = report.by_rule().into_iter();
        let rules: Vec<String> =
            rules.map(|(rule, secrets, _)| format!("{secrets} {rule}")).collect();
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
            let hint = match &self.file {
                Some(file) => format!("{} has all", file.display()),
                None => "`--redact-report FILE` has all".to_owned(),
            };
            note(&format!("  … and {}: {hint}", counted(left as u64, "secret")));
        }
    }

    /// Writes what was found to the file, where one is asked for.
    pub(crate) fn write(&self, report: &RedactionReport) -> Outcome {
        if let Some(path) = &self.file {
            let text = report.to_json().to_string() + "\n";
            write_atomic(&DiskFiles, path, text.as_bytes())?;
        }
        Ok(())
    }
}
