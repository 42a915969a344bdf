//! `--tokenizer calibrated:FILE`, and `stats --calibrate`: counts that were fitted to usage.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
    rc::Rc,
    sync::Arc,
};

use afterimage::{
    bill::{CalibratedCount, Calibration, ModelCalibration, Refused},
    log::{DiskFiles, write_atomic},
    request::Recording,
    tokens::{self, Memo, TokenCounter},
};

use crate::{
    args::{Input, Tokenizer},
    failure::{Failure, Outcome},
    input::{self, Source},
    output::Output,
    requests, style,
    text::{counted, grouped, percent, printable},
};

/// The largest calibration that is read, in bytes; more is taken for a session.
const MOST: u64 = 32 << 20;
/// What a calibration begins with, white space aside, and how many bytes of a file show that.
const BEGINNING: &[u8] = b"{\"calibration\":";
const SHOWING: u64 = 256;

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
    pub(crate) fn find(of: &str) -> Outcome<Rc<Self>> {
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
        Ok(Rc::new(Self { calibration, model, tokenizer }))
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

    /// What a request of the session holds that its transcript lacks, in tokens; `None` where the
    /// calibration does not know the session.
    pub(crate) fn lacks(&self, session: &str) -> Option<u64> {
        let lacks = self.calibration.intercept(session, &self.model)?;
        Some(u64::try_from(lacks).unwrap_or(0))
    }

    /// What a message costs besides its text.
    pub(crate) fn per_message(&self) -> u64 {
        self.of_model().map_or(0, ModelCalibration::tokens_per_message)
    }

    /// The budget that is left for what the transcript holds.
    ///
    /// # Errors
    /// Who takes all of it.
    pub(crate) fn room(&self, budget: u64, session: &str) -> Result<u64, Failure> {
        let lacks = self.lacks(session).unwrap_or(0);
        if let Some(room) = budget.checked_sub(lacks).filter(|room| *room > 0) {
            return Ok(room);
        }
        let (lacks, budget) = (counted(lacks, "token"), grouped(budget));
        let sentence = format!("what the transcript lacks takes {lacks}, the budget is {budget}");
        let failure = Failure::new(sentence).at("session", printable(session));
        Err(failure.hint("a larger `--budget` has room for it"))
    }
}

/// The calibration that a file holds, or that its session leads to.
fn read(path: &Path) -> Outcome<Calibration> {
    if !input::is_stdin(path) && path.is_file() && is_calibration(path)? {
        let bytes = input::regular(path, MOST)?;
        return Ok(Calibration::from_json(&bytes).map_err(|error| error.in_file(path))?);
    }
    let mut found = None;
    let silent = Input { is_silent: true, ..Input::of(vec![path.to_owned()]) };
    input::each(&silent, true, |source| {
        let recording = requests::read(source, &base()?)?;
        let of = Calibration::of(&recording).map_err(|error| source.refuse(error))?;
        if found.replace(of).is_some() {
            let failure = Failure::new("expected one session to calibrate by, found several files");
            return Err(failure.file(path).into());
        }
        Ok(())
    })?;
    found.ok_or_else(|| Failure::new("there is no session to calibrate by").file(path).into())
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
    let of = |refused: &Refused| {
        let Refused { model, exchanges, reason, .. } = refused;
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

/// Writes the calibration of a recording, and says what it is worth.
pub(crate) fn write(
    source: &Source,
    recording: &Recording,
    path: &Path,
    out: &mut Output,
) -> Outcome {
    if input::is_stdin(path) {
        return Err(Failure::new("expected a file to write to, found `-`").into());
    }
    let calibration = Calibration::of(recording).map_err(|error| source.refuse(error))?;
    if calibration.models().is_empty() {
        return Err(estimated(&calibration, None).at("file", source.name()).into());
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
        for (name, figure, says) in rows {
            writeln!(out, "  {name:<14}{figure:>12}  {dim}{says}{dim:#}")?;
        }
    }
    let sessions = calibration.sessions().iter();
    let lacks =
        sessions.filter_map(|of| Some((of, calibration.intercept(&of.session, &of.model)?)));
    writeln!(out, "\n  {bold}WHAT TRANSCRIPTS LACK{bold:#}")?;
    for (of, tokens) in lacks {
        let says = format!("{}, at request {}", printable(&of.session), of.request);
        let sign = if tokens < 0 { "-" } else { "" };
        let tokens = format!("{sign}{}", grouped(tokens.unsigned_abs()));
        writeln!(out, "  {:<14}{tokens:>12}  {dim}{says}{dim:#}", "tokens")?;
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
