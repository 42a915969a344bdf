//! `--tokenizer calibrated:FILE`, and `stats --calibrate`: counts that were fitted to usage.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    path::Path,
    sync::Arc,
};

use afterimage::{
    bill::{CalibratedCount, Calibration, CalibrationBuilder, ModelCalibration, UncalibratedModel},
    log::{DiskFiles, write_atomic},
    request::Recording,
    tokens::{self, Memo, TokenCounter},
};

use crate::{
    answer::answer,
    args::{Input, Tokenizer},
    failure::{Failure, Outcome},
    input,
    output::Output,
    recorded, style,
    text::{counted, grouped, percent, printable},
};

/// The largest calibration that is read, in bytes; more is taken for a session.
const MOST: u64 = 32 << 20;
/// What a calibration begins with, white space aside, and how many bytes of a file show that.
const BEGINNING: &[u8] = b"{\"calibration\":";
const SHOWING: u64 = 256;

/// How many sessions are listed.
const MOST_SESSIONS: usize = 20;

/// A calibration and the model that counts by it.
#[derive(Debug)]
pub(crate) struct Calibrated {
    calibration: Calibration,
    model: Arc<str>,
    /// The name of the counter.
    pub(crate) tokenizer: String,
}

impl Calibrated {
    /// What `calibrated:OF` names: a file, with a model behind it where `OF` is no file.
    pub(crate) fn find(of: &str) -> Outcome<Arc<Self>> {
        let (path, model) = match of.rsplit_once('@') {
            Some((path, model)) if !Path::new(of).exists() => (path, Some(model)),
            _ => (of, None),
        };
        let path = Path::new(path);
        let calibration = read(path)?;
        let found = match model {
            Some(name) => calibration.model(name),
            None => calibration.models().first(),
        };
        let Some(found) = found else {
            return Err(estimated(&calibration, model).file(path).into());
        };
        let model = Arc::clone(&found.model);
        let missing = || {
            let base = calibration.base();
            Failure::new(format!("this build has no tokenizer {base}")).file(path)
        };
        let counter = calibration.counter(&model).ok_or_else(missing)?;
        let tokenizer = counter.id().to_owned();
        Ok(Arc::new(Self { calibration, model, tokenizer }))
    }

    /// The input of each request of a recording, where the one before it reports its own.
    pub(crate) fn counts(
        &self,
        recording: &Recording,
    ) -> afterimage::Result<Vec<Option<CalibratedCount>>> {
        self.calibration.counts(recording)
    }

    /// Whether it counts for this model.
    pub(crate) fn is_of(&self, model: &str) -> bool {
        *self.model == *model
    }

    fn of_model(&self) -> Option<&ModelCalibration> {
        self.calibration.model(&self.model)
    }

    /// What a request of the session holds that its transcript lacks; by other sessions of its
    /// client where the calibration does not know it, and `None` where there are none, or another
    /// model answers in it.
    pub(crate) fn lacks(
        &self,
        session: &str,
        client: &str,
        answering: Option<&str>,
    ) -> Option<Lacking> {
        let whole = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
        if let Some(own) = self.calibration.intercept(session, &self.model) {
            return Some(Lacking { tokens: whole(own), others: None });
        }
        if answering.is_some_and(|answering| !self.is_of(answering)) {
            return None;
        }
        let is_subagent = session.contains('/');
        let usual = self.calibration.usual_lack((client, &self.model), is_subagent, None)?;
        let others = Some((usual.sessions, usual.interval));
        Some(Lacking { tokens: whole(usual.tokens), others })
    }

    /// How far off its counts are.
    pub(crate) fn error(&self) -> Option<CountError> {
        let of = self.of_model()?;
        let ModelCalibration { interval, checked, held, median_error, .. } = *of;
        let model = Arc::clone(&of.model);
        let interval_compressed = None;
        Some(CountError { model, interval, median_error, checked, held, interval_compressed })
    }

    /// The half-width of the interval of a request after a reported one, of whose context so many
    /// tokens are gone since.
    pub(crate) fn interval_without(&self, gone: u64) -> Option<u64> {
        Some(self.of_model()?.interval_after(1, gone))
    }

    /// The model that it counts for.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// What a message costs besides its text.
    pub(crate) fn per_message(&self) -> u64 {
        self.of_model().map_or(0, ModelCalibration::tokens_per_message)
    }
}

/// What a request holds that its transcript lacks, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lacking {
    pub(crate) tokens: u64,
    /// How many other sessions of the client say so, where the session itself did not report, and the
    /// half-width of the interval that holds one more session nine times in ten.
    pub(crate) others: Option<(u64, u64)>,
}

impl Lacking {
    /// The budget that is left for what the transcript holds.
    ///
    /// # Errors
    /// Who takes all of it.
    pub(crate) fn room(self, budget: u64, session: &str) -> Result<u64, Failure> {
        if budget == u64::MAX {
            // No budget.
            return Ok(budget);
        }
        if let Some(room) = budget.checked_sub(self.tokens).filter(|room| *room > 0) {
            return Ok(room);
        }
        let (lacks, budget) = (counted(self.tokens, "token"), grouped(budget));
        let sentence = format!("what the transcript lacks takes {lacks}, the budget is {budget}");
        let failure = Failure::new(sentence).at("session", printable(session));
        Err(failure.hint("a larger `--budget` has room for it"))
    }

    /// Whose reports say so, for people; empty for the session's own.
    pub(crate) fn from(self) -> String {
        self.others.map_or_else(String::new, |(sessions, interval)| {
            let (sessions, interval) = (counted(sessions, "other session"), grouped(interval));
            format!(" (± {interval}, calibrated from {sessions})")
        })
    }
}

answer! {
    /// How far off calibrated counts are, by exchanges that were held out.
    #[derive(Clone, Debug)]
    pub(crate) struct CountError {
        /// the model that they are calibrated for
        model: Arc<str>,
        /// the half-width, in tokens, of the interval that holds nine in ten requests that follow a
        /// reported one
        interval: u64,
        /// the median error, in millionths of what was reported
        median_error: u64,
        /// how many exchanges were held out to check the interval
        checked: u64,
        /// how many of these it held
        held: u64,
        /// the half-width of that interval for a context that was compressed since the last report
        interval_compressed?: u64,
    }
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, median) = (grouped(self.interval), self.median_error as f64 / 1e4);
        let (held, checked) = (grouped(self.held), grouped(self.checked));
        write!(
            f,
            "off by {median:.2} % in the median, the next request within ± {interval} tokens in \
             {held} of {checked} held-out exchanges"
        )?;
        match self.interval_compressed {
            Some(compressed) => write!(f, ", and ± {} once compressed", grouped(compressed)),
            None => Ok(()),
        }
    }
}

/// The calibration that a file holds, or that its session leads to.
fn read(path: &Path) -> Outcome<Calibration> {
    if !input::is_stdin(path) && path.is_file() && is_calibration(path)? {
        let bytes = input::regular(path, MOST)?;
        return Ok(Calibration::from_json(&bytes).map_err(|error| error.in_file(path))?);
    }
    let silent = Input { is_silent: true, ..Input::of(vec![path.to_owned()]) };
    match fit(&silent)? {
        (_, 0) => Err(Failure::new("there is no session to calibrate by").file(path).into()),
        (calibration, _) => Ok(calibration),
    }
}

/// Fits counts to what all files report together; says how many there are.
fn fit(input: &Input) -> Outcome<(Calibration, u64)> {
    let (mut builder, mut files) = (CalibrationBuilder::default(), 0);
    input::each(input, true, |source| {
        let recording = recorded::read(source, &base()?)?;
        files += 1;
        builder.add(&recording).map_err(|error| source.refuse(error))
    })?;
    Ok((builder.build(), files))
}

/// Whether a file begins as a calibration does.
fn is_calibration(path: &Path) -> Outcome<bool> {
    let cannot = |error: io::Error| Failure::cannot_open(&error).file(path);
    let file = File::open(path).map_err(cannot)?;
    let mut beginning = Vec::new();
    file.take(SHOWING).read_to_end(&mut beginning).map_err(cannot)?;
    // It may have been laid out over lines since.
    beginning.retain(|byte| !byte.is_ascii_whitespace());
    Ok(beginning.starts_with(BEGINNING))
}

/// What counts before anything is fitted.
pub(crate) fn base() -> Outcome<Arc<dyn TokenCounter>> {
    let name = Tokenizer::default().name();
    let counter = tokens::by_name(name);
    let missing = || Failure::new(format!("this build has no tokenizer {name}"));
    Ok(Arc::new(Memo::new(counter.ok_or_else(missing)?)))
}

/// Why counts stay estimated.
fn estimated(calibration: &Calibration, model: Option<&str>) -> Failure {
    let refused = calibration.refused();
    let of = |refused: &UncalibratedModel| {
        let UncalibratedModel { model, exchanges, reason, .. } = refused;
        let exchanges = counted(*exchanges, "exchange");
        format!("{}: {exchanges} with usage, {reason}", printable(model))
    };
    let named = refused.iter().filter(|refused| model.is_none_or(|model| model == &*refused.model));
    let named: Vec<String> = named.map(of).collect();
    let sentence = match (named.as_slice(), model) {
        ([], Some(model)) => format!("no exchange with {} reports usage", printable(model)),
        ([], None) => "no exchange with a named model reports usage".to_owned(),
        (named, _) => named.join("; "),
    };
    let failure = Failure::new(format!("the counts cannot be calibrated: {sentence}"));
    failure.hint("`--tokenizer o200k` counts by an exact tokenizer: an estimate for other models")
}

/// Writes the calibration of the files, and says what it is worth.
pub(crate) fn write(input: &Input, path: &Path, out: &mut Output) -> Outcome {
    if input::is_stdin(path) {
        return Err(Failure::new("expected a file to write to, found `-`").into());
    }
    let (calibration, _) = fit(input)?;
    if calibration.models().is_empty() {
        let failure = estimated(&calibration, None);
        let name = input.files.first().filter(|_| input.files.len() == 1);
        let name = name.map(|name| name.display().to_string());
        return Err(match name {
            Some(name) => failure.at("file", name),
            None => failure,
        }
        .into());
    }
    let mut bytes = calibration.to_json().to_string().into_bytes();
    bytes.push(b'\n');
    if path.exists() && !is_calibration(path)? {
        let failure = Failure::new("expected a calibration or no file in its place, found another");
        return Err(failure.file(path).hint("`--calibrate` writes to another file").into());
    }
    write_atomic(&DiskFiles, path, &bytes)?;
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    for model in calibration.models() {
        writeln!(out, "\n  {bold}{}{bold:#}", printable(&model.model))?;
        let kinds = afterimage::bill::TextKind::ALL.into_iter().zip(model.kinds);
        let kinds = kinds.map(|(kind, of)| format!("{} {:.3}", kind.as_str(), of as f64 / 1e6));
        let kinds: Vec<String> = kinds.collect();
        let per_message = format!("{:.1}", model.per_message as f64 / 1e6);
        let held = percent(model.held, model.checked);
        let error = format!("{:.2} %", model.median_error as f64 / 1e4);
        let rows = [
            (
                "slope",
                format!("{:.3}", f64::from(model.slope.millionths()) / 1e6),
                kinds.join(", "),
            ),
            ("per message", per_message, "tokens besides its text".to_owned()),
            (
                "interval",
                format!("± {}", grouped(model.interval)),
                "tokens of the next request, nine times in ten".to_owned(),
            ),
            (
                "held",
                held,
                format!("{} of {} held-out exchanges", grouped(model.held), grouped(model.checked)),
            ),
            ("error", error, "the median of held-out exchanges".to_owned()),
        ];
        let distant = model.distant.iter().map(|of| {
            let too_few = if of.held * 100 < of.checked * 85 { ", too few" } else { "" };
            let says = format!(
                "{} exchanges after the last report; {} of {} held{too_few}",
                grouped(of.exchanges),
                grouped(of.held),
                grouped(of.checked)
            );
            ("", format!("± {}", grouped(of.interval)), says)
        });
        let rows = rows.into_iter().chain(distant);
        for (name, figure, says) in rows {
            writeln!(out, "  {name:<14}{figure:>12}  {dim}{says}{dim:#}")?;
        }
    }
    let all = calibration.sessions().len();
    let sessions = calibration.sessions().iter().take(MOST_SESSIONS);
    let lacks =
        sessions.filter_map(|of| Some((of, calibration.intercept(&of.session, &of.model)?)));
    writeln!(out, "\n  {bold}WHAT TRANSCRIPTS LACK{bold:#}")?;
    for (of, tokens) in lacks {
        let says = format!("{}, at request {}", printable(&of.session), of.last.request);
        let sign = if tokens < 0 { "-" } else { "" };
        let tokens = format!("{sign}{}", grouped(tokens.unsigned_abs()));
        writeln!(out, "  {:<14}{tokens:>12}  {dim}{says}{dim:#}", "tokens")?;
    }
    if all > MOST_SESSIONS {
        let more = counted((all - MOST_SESSIONS) as u64, "more session");
        writeln!(out, "  {dim}and {more}{dim:#}")?;
    }
    for refused in calibration.refused() {
        let of = counted(refused.exchanges, "exchange");
        let model = printable(&refused.model);
        writeln!(
            out,
            "  {dim}{model} stays estimated: {of} with usage, {}{dim:#}",
            refused.reason
        )?;
    }
    Ok(())
}
