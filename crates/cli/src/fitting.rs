//! Sessions within a budget: what `compress` prints, and `expand` gives back.

mod captured;
mod pins;
mod progress;

use std::{collections::HashSet, ops::RangeInclusive, sync::Arc, time::Duration};

pub(crate) use self::captured::{AskedModel, histories};
use self::{captured::Captured, pins::Pins, progress::Progress};
use crate::{
    args::{self, CompressAs, Format, Input, Rendering},
    failure::{Failure, Outcome, Stop},
    input::{self, Source},
    lens::{Counting, Counts, Lens, Lenses},
    moment::moment,
    text::{counted, grouped},
};
use afterimage::{
    bill::MediaCount,
    compress::{
        CommandEngine, CompressionBlock, CompressionOptions, Engine, FailureLimit, OutlineEngine,
        RangeState,
    },
    export::ExportedRequest,
    id::{FrameSeq, Millis},
    request::RequestOverhead,
    session::{Fit, FittedRequest, FittingStep, RequestFitter},
    veil::History,
    window::{Breakdown, Budget, ContextWindow, RangePreview},
};

/// An engine that failed so often in a row is asked more rarely: a command that hangs would take its
/// whole time for each of many ranges.
const FAILURES: u32 = 4;

/// A session, and what it came to.
pub(crate) struct Session<'s> {
    pub(crate) source: &'s Source,
    pub(crate) name: Arc<str>,
    pub(crate) history: History,
    /// The tokens of its context, or of the request of a provider, without a budget.
    pub(crate) tokens_before: u64,
    pub(crate) window: ContextWindow,
    pub(crate) fit: Fit,
    /// The context as the request of a provider, where one is asked for and it fits.
    pub(crate) exported: Option<ExportedRequest>,
    /// The tokens of what fits.
    pub(crate) tokens_after: u64,
    /// What counted, and what is not counted.
    pub(crate) counts: Counts,
    /// What its requests add to their messages, which takes room in the budget.
    pub(crate) overhead: RequestOverhead,
    /// The images and documents of its context without a budget, and of what fits.
    pub(crate) media: [MediaCount; 2],
}

/// Fits each session of each file, and hands it to `take`. Where one does not fit it is reported,
/// the others are still fitted, and the outcome says so.
pub(crate) fn each(
    input: &Input,
    (fitting, selection): (&args::Fitting, &args::Selection),
    what: Option<CompressAs>,
    rendering: &Rendering,
    mut take: impl FnMut(Session<'_>) -> Outcome,
) -> Outcome {
    let fitter = Fitter::new(fitting)?;
    let mut pins = Pins::new(&selection.pin);
    let mut has_range = selection.range.is_none();
    let rendering = rendering_for(what, rendering)?;
    let mut lenses = Lenses::new(&rendering, Counting::Always);
    let mut is_unfit = false;
    // A session is looked for before its frames are read: the requests are to be kept by then.
    input::each(&input.with_exchanges(), true, |source| {
        let lens = lenses.of(source)?;
        for (name, captured) in captured::sessions(source, &lens, &mut pins)? {
            let range = range_within(selection, &captured.history);
            has_range |= range.is_some();
            let counts = lens.counts(&name, source.format().name(), captured.asked.name.as_deref());
            let room = match counts.room(fitting.budget, &name) {
                Ok(room) => room,
                Err(failure) => {
                    is_unfit = true;
                    crate::output::report(&failure);
                    continue;
                }
            };
            let session =
                fitter.fit(source, (name, captured, counts), &lens, (room, what, range))?;
            if let Fit::Unfit(breakdown) = &session.fit {
                is_unfit = true;
                crate::output::report(&unfit(&session, breakdown));
            }
            take(session)?;
        }
        Ok(())
    })?;
    expect_range(selection, has_range)?;
    pins.expect_found()?;
    if is_unfit { Err(Stop::Unfit) } else { Ok(()) }
}

/// What compression of a range would do to a session.
pub(crate) struct Previewed<'s> {
    pub(crate) source: &'s Source,
    pub(crate) name: Arc<str>,
    pub(crate) preview: RangePreview,
}

/// Hands to `take` what `--range` would do to each session that has frames in it.
pub(crate) fn preview_each(
    input: &Input,
    (fitting, selection): (&args::Fitting, &args::Selection),
    rendering: &Rendering,
    mut take: impl FnMut(&Previewed<'_>) -> Outcome,
) -> Outcome {
    let fitter = Fitter::new(fitting)?;
    let mut pins = Pins::new(&selection.pin);
    let mut lenses = Lenses::new(rendering, Counting::Always);
    let mut has_range = false;
    input::each(&input.with_exchanges(), true, |source| {
        let lens = lenses.of(source)?;
        for (name, captured) in captured::sessions(source, &lens, &mut pins)? {
            let Captured { mut history, asked } = captured;
            let Some(range) = range_within(selection, &history) else { continue };
            has_range = true;
            let counts = lens.counts(&name, source.format().name(), asked.name.as_deref());
            let room = counts.room(fitting.budget, &name)?;
            let overhead = overhead(fitting, asked.overhead, &counts);
            let now = last_moment(&history);
            let fitter = fitter.fitter(&lens, room, overhead);
            let preview = fitter.preview_range(&mut history, range, now);
            let preview = preview.map_err(|error| source.refuse(error))?;
            take(&Previewed { source, name, preview })?;
        }
        Ok(())
    })?;
    expect_range(selection, has_range)?;
    pins.expect_found()
}

/// The range that is asked for, where the session has a frame in it.
fn range_within(
    selection: &args::Selection,
    history: &History,
) -> Option<RangeInclusive<FrameSeq>> {
    let args::FrameRange { from, to } = selection.range?;
    let (from, to) = (FrameSeq::new(from), FrameSeq::new(to));
    let frames = history.frames();
    (frames.first_from(from) < frames.first_after(to)).then_some(from..=to)
}

fn expect_range(selection: &args::Selection, has_range: bool) -> Outcome {
    match selection.range {
        Some(args::FrameRange { from, to }) if !has_range => {
            let failure = Failure::new(format!("no session has a frame from {from} to {to}"));
            Err(failure.hint("`afterimage frames` lists them").into())
        }
        _ => Ok(()),
    }
}

fn last_moment(history: &History) -> Millis {
    history.frames().last().map_or(Millis::new(0), |frame| moment(&frame))
}

/// The rendering that is asked for; exports of providers imply `native`.
fn rendering_for(what: Option<CompressAs>, rendering: &Rendering) -> Outcome<Rendering> {
    let mut rendering = rendering.clone();
    if what.is_some_and(CompressAs::is_export) {
        if let Some(other @ (Format::Xml | Format::Plain)) = rendering.format {
            let failure = Failure::new(format!(
                "an export has no tags in it: it takes the format native, not {}",
                other.name()
            ));
            return Err(failure.hint("leave `--format` away").into());
        }
        rendering.format = Some(Format::Native);
    }
    Ok(rendering)
}

/// The name of the engine that needs no model.
const OUTLINE: &str = "outline";

/// The budget with the number of frames to keep that is asked for: whoever says it means so many,
/// whatever their size.
pub(crate) fn budget(args: &args::Fitting, budget: impl Fn(u64) -> Budget) -> Budget {
    budget_of(args, args.budget, budget)
}

/// As [`budget`], of so many tokens.
pub(crate) fn budget_of(
    args: &args::Fitting,
    tokens: u64,
    budget: impl Fn(u64) -> Budget,
) -> Budget {
    let budget = budget(tokens);
    let recent = args.keep_recent.map_or(budget.recent, |_| budget.room());
    // Without a budget each block says how things stood: a ledger would have no bound.
    let ledger = if budget.room() == u64::MAX { 0 } else { budget.ledger };
    Budget { recent, ledger, ..budget }
}

/// A budget of which requests take so much for tools and schemas. No budget stays none.
pub(crate) fn taking(budget: Budget, overhead: RequestOverhead) -> Budget {
    if budget.room() == u64::MAX { budget } else { budget.taking(overhead.total()) }
}

/// What requests of a session add to their messages: what is asked for, else what was recorded. A
/// calibration knows what is not in the definitions of tools.
pub(crate) fn overhead(
    args: &args::Fitting,
    recorded: RequestOverhead,
    counts: &Counts,
) -> RequestOverhead {
    match args.tools {
        Some(tools) => RequestOverhead { tools, ..RequestOverhead::default() },
        None if counts.lacks.is_some() => RequestOverhead { around: 0, schemas: 0, ..recorded },
        None => recorded,
    }
}

/// How to compress for it.
pub(crate) fn options(args: &args::Fitting, budget: &Budget) -> CompressionOptions {
    let options = budget.compression();
    let protected_frames = args.keep_recent.unwrap_or(options.protected_frames);
    CompressionOptions { protected_frames, ..options }
}

/// Whether a command writes the summaries.
pub(crate) fn is_command(args: &args::Fitting) -> bool {
    args.engine.trim() != OUTLINE
}

/// How a command is asked for summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandInput {
    /// With a prompt of its own.
    Prompt,
    /// With the session's last request, as JSON.
    Continued,
}

/// What writes the summaries.
pub(crate) fn engine(args: &args::Fitting, input: CommandInput) -> Outcome<Box<dyn Engine>> {
    let line = args.engine.trim();
    if line.is_empty() {
        let failure = Failure::new("expected an engine, found an empty command");
        return Err(failure.hint("`--engine outline` needs no model").into());
    }
    if line == OUTLINE {
        return Ok(Box::new(OutlineEngine));
    }
    let limit = Duration::from_secs(args.engine_timeout);
    let engine = CommandEngine::shell(line).time_limit(limit);
    Ok(Box::new(if input == CommandInput::Continued { engine.continued() } else { engine }))
}

/// An engine that is asked seldom once it failed so often in a row.
pub(crate) fn patient(engine: &Arc<dyn Engine>) -> FailureLimit<Arc<dyn Engine>> {
    FailureLimit::new(Arc::clone(engine), FAILURES)
}

/// Fits sessions, one after the other.
struct Fitter<'a> {
    args: &'a args::Fitting,
    engine: Box<dyn Engine>,
    is_command: bool,
}

impl<'a> Fitter<'a> {
    fn new(args: &'a args::Fitting) -> Outcome<Self> {
        let is_command = is_command(args);
        Ok(Self { args, engine: engine(args, CommandInput::Prompt)?, is_command })
    }

    /// The budget of so many tokens, and how to compress for it.
    fn budget(&self, tokens: u64, overhead: RequestOverhead) -> (Budget, CompressionOptions) {
        let budget = taking(budget_of(self.args, tokens, Budget::once), overhead);
        let options = CompressionOptions {
            // Whoever waits at the command line wants the next try now.
            retry_delay_ms: 0,
            // One context has room for more of each.
            ratio: 5,
            ..options(self.args, &budget)
        };
        (budget, options)
    }

    fn fitter(&self, lens: &Lens, room: u64, overhead: RequestOverhead) -> RequestFitter {
        let (budget, options) = self.budget(room, overhead);
        let fitter = RequestFitter::new(lens.hud.clone(), budget).options(options);
        fitter.framing(lens.framing())
    }

    fn fit<'s>(
        &self,
        source: &'s Source,
        (name, captured, counts): (Arc<str>, Captured, Counts),
        lens: &Lens,
        (room, what, range): (u64, Option<CompressAs>, Option<RangeInclusive<FrameSeq>>),
    ) -> Outcome<Session<'s>> {
        let Captured { mut history, asked } = captured;
        let overhead = overhead(self.args, asked.overhead, &counts);
        let model = lens.model().map(str::to_owned).or(asked.name);
        let mut fitter = self.fitter(lens, room, overhead).model(model);
        if let Some(range) = range {
            fitter = fitter.range(range);
        }
        if let Some(form) = what.and_then(CompressAs::form) {
            fitter = fitter.form(form);
        }
        let now = last_moment(&history);
        let mut progress: Option<Progress> = None;
        let fitted = fitter.fit(&mut history, &*self.engine, now, |step| match step {
            FittingStep::Measured(tokens) => {
                progress = Some(Progress::new(self.is_command, tokens));
            }
            FittingStep::Asking(job) => {
                if let Some(progress) = &mut progress {
                    progress.begin(job);
                }
            }
        });
        if let Some(progress) = progress {
            progress.end();
        }
        let FittedRequest {
            tokens_before,
            window,
            fit,
            exported,
            tokens_after,
            media_before,
            media_after,
            // Every frame was captured as it was read.
            sealed: _,
        } = fitted.map_err(|error| source.refuse(error))?;
        let mut counts = counts;
        if matches!(fit, Fit::Fits(_)) {
            lens.note_compressed(&mut counts, tokens_before.saturating_sub(tokens_after));
        }
        Ok(Session {
            source,
            name,
            history,
            tokens_before,
            window,
            fit,
            exported,
            tokens_after,
            counts,
            overhead,
            media: [media_before, media_after],
        })
    }
}

/// What a session gets that does not fit: who takes the room.
fn unfit(session: &Session<'_>, breakdown: &Breakdown) -> Failure {
    let (needed, room) = (breakdown.total(), breakdown.room);
    let sentence = format!(
        "what must stay of the context takes {}, the budget is {}",
        counted(needed, "token"),
        grouped(room)
    );
    let place = session.source.fail(sentence).at("session", &session.name);
    let [MediaCount { tokens: media, .. }, _] = session.media;
    let parts = parts(breakdown).into_iter().chain([("images", media)]);
    let parts = parts.filter(|(_, tokens)| *tokens > 0);
    let place = parts.fold(place, |place, (name, tokens)| place.at(name, grouped(tokens)));
    let largest: Vec<String> = breakdown
        .largest
        .iter()
        .map(|(frame, tokens)| format!("frame {frame} with {}", grouped(*tokens)))
        .collect();
    let place = if largest.is_empty() { place } else { place.at("largest", largest.join(", ")) };
    place.hint(
        "a larger `--budget` has room for it; pinned facets and the newest message always stay",
    )
}

/// Who takes the room, by name.
pub(crate) fn parts(breakdown: &Breakdown) -> [(&'static str, u64); 8] {
    [
        ("tools", breakdown.tools),
        ("system", breakdown.system_prompt),
        ("pinned", breakdown.pinned),
        ("blocks", breakdown.blocks),
        ("recent", breakdown.recent),
        ("others", breakdown.others),
        ("tail", breakdown.tail),
        ("framing", breakdown.framing),
    ]
}

impl Session<'_> {
    /// The blocks that the context holds, in order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Arc<CompressionBlock>> {
        let dropped: HashSet<&str> = match &self.fit {
            Fit::Fits(fitted) => {
                fitted.dropped.iter().filter_map(|of| of.block.as_deref()).collect()
            }
            Fit::Unfit(_) => HashSet::new(),
        };
        self.window.transform().blocks().filter(move |block| !dropped.contains(&*block.id))
    }

    /// The ranges that no engine could summarise, with why.
    pub(crate) fn failed(&self) -> Vec<(Arc<str>, String)> {
        let ranges = self.window.transform().ranges();
        let failed = ranges.filter_map(|(id, state)| match state {
            RangeState::Failed { reason } => Some((Arc::clone(id), reason.clone())),
            _ => None,
        });
        failed.collect()
    }

    /// The original text of a block, or of what was shortened or left out: the frames without
    /// anything between them.
    pub(crate) fn original(&self, id: &str) -> afterimage::Result<Vec<u8>> {
        let passages = self.window.expand(&self.history, id)?;
        let texts = passages.iter().flat_map(|passage| passage.snapshot.text().as_bytes());
        Ok(texts.copied().collect())
    }
}
