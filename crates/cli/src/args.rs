//! What the command line says.

mod counted_by;
mod policy;
mod words;

use std::{borrow::Cow, ffi::OsStr, path::PathBuf};

use afterimage::{export::Form, replay::ReplayPolicy, transcript::TranscriptFormat};
use clap::{
    Arg, ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint,
    builder::{ArgPredicate, PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

pub(crate) use counted_by::{CountedBy, CountedByName};
use policy::PolicyParser;

use crate::{checkpoint, failure::Outcome, output};

/// See what an LLM agent actually saw.
///
/// afterimage reads the transcript of an agent, renders it frame by frame into the text that goes
/// to a model, and knows for every byte which facet wrote it and what it costs in tokens.
///
/// Data goes to standard output, everything else to standard error.
///
/// Control characters of a text or a name are shown, and not sent to a terminal. Text and Markdown
/// that go into a pipe or a file keep every byte; JSON holds controls as escapes.
#[derive(Debug, Parser)]
#[command(name = "afterimage", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Example: afterimage demo", after_long_help = words::PROGRAM)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the main job on a sample session: nothing to prepare, takes no file
    #[command(after_help = "Example: afterimage demo --tokenizer cl100k")]
    Demo(Demo),
    /// Print the frames of transcripts, as JSONL
    ///
    /// A frame is one step of a history: where it came from, and how it changed the facets. A
    /// terminal gets a table. A pipe or a file gets JSONL, one frame a line, which every command
    /// reads back.
    #[command(
        after_help = "Example: afterimage frames session.jsonl | afterimage stats -",
        after_long_help = words::FRAMES
    )]
    Frames(Frames),
    /// Print what the model reads: as text, as messages with an owner for every byte, or as snapshots
    #[command(
        after_help = "Example: afterimage render session.jsonl --from 3 --to 5 --as messages"
    )]
    Render(Render),
    /// Find who wrote a text or a byte, or where a facet stands
    ///
    /// The last line says what counted the tokens, and how far off calibrated counts are; in JSON each
    /// hit has `tokenizer`, `counts` and `error`.
    #[command(
        after_help = "Example: afterimage trace session.jsonl --text 'connection refused'",
        after_long_help = words::TRACE
    )]
    Trace(Trace),
    /// Count what a transcript holds and costs: messages, calls, chunks, tokens by role, type, facet
    #[command(
        after_help = "Example: afterimage stats --json session.jsonl",
        after_long_help = words::STATS
    )]
    Stats(Stats),
    /// Write transcripts and what they rendered to into a directory that every command reads
    ///
    /// The directory stands for its transcripts: every command reads it in their place and answers
    /// the same, without rendering and counting again. Another `--format` renders its frames again.
    /// An archive is written as a whole and never added to. It may be archived again, with others.
    #[command(
        after_help = "Example: afterimage archive session.jsonl -o session.archive",
        after_long_help = words::ARCHIVE
    )]
    Archive(Archive),
    /// Fit a session into a budget: summaries replace older frames, and the originals stay
    ///
    /// Prints the context after the last frame, as it fits. Blocks replace older frames. If that is
    /// not enough, `compress` leaves out what is worth least and shortens what is largest. `expand`
    /// gives back what a block stands for. Images and documents take room by their providers' rules,
    /// and so do the tools of a recorded request.
    /// A line below says what counted, and how far off calibrated counts are; in JSON `tokenizer`,
    /// `counts` and `error` do.
    #[command(
        after_help = "Example: afterimage compress session.jsonl --budget 8k --as openai",
        after_long_help = words::COMPRESS
    )]
    Compress(Compress),
    /// Print the original text of a block, byte for byte
    ///
    /// Takes the options of `compress`, plans the same, and prints the text of the frames that the
    /// block stands for, with nothing between them. With `--around` or `--frame` it prints the part
    /// that is looked for, in at most 1,000 tokens; a note says where it stands.
    #[command(
        after_help = "Example: afterimage expand session.jsonl --budget 8000 --block block-1-24\n\
                      Example: afterimage expand session.jsonl --budget 8000 --around src/main.rs"
    )]
    Expand(Expand),
    /// Simulate what the requests of a session would have cost, by policy
    ///
    /// Renders the context before each turn of the agent as a framework would have sent it. Adds up
    /// what was sent, and how much of it was an unchanged prefix of the request before (billed at a
    /// tenth). Says which names that the agent went on to use were still there, what counted, how
    /// far off calibrated counts are, and what was taken off the budget.
    #[command(
        after_help = "Example: afterimage replay session.jsonl --budget 32k --policy sliding,blocks",
        after_long_help = words::REPLAY
    )]
    Replay(Replay),
    /// Compare two recordings of one task, without and with a compressor: what each cost, and what
    /// the second lost
    ///
    /// Adds up the usage that both report. Looks for the names (ids, paths, numbers) that the agent of
    /// A used after it had read them in the requests of B: which ones B never read, which ones it
    /// still has at its end, and which ones it had and lost.
    #[command(
        after_help = "Example: afterimage audit without.jsonl with.jsonl",
        after_long_help = words::AUDIT
    )]
    Audit(Audit),
    /// Run an agent and record its requests as they are sent, with what comes back
    ///
    /// The agent talks to a listener on loopback, which passes each request on to the real provider over
    /// TLS and writes both down, byte for byte. `requests`, `render --request N`, `diff` and `stats`
    /// read the folder, also while it is written. The exit code is that of the command.
    /// Bodies are written with any secret that they hold. Of headers and URLs no secret is written.
    #[cfg(feature = "record")]
    #[command(
        after_help = "Example: afterimage record -o run -- codex exec 'fix the tests'",
        after_long_help = words::RECORD
    )]
    Record(crate::record::args::Record),
    /// List the requests of a session: what each held, how it grew, and where it first differs
    ///
    /// Recorded traffic and requests that a client logged are listed as they are. From a transcript
    /// each request is worked out: it is the context before an answer of the agent. What transcripts
    /// lack (the tools, the parameters) is said once.
    #[command(
        after_help = "Example: afterimage requests traffic.har",
        after_long_help = words::REQUESTS
    )]
    Requests(Requests),
    /// Say of each recorded request what the provider's cache would serve of it, and what breaks it
    ///
    /// Compares each request with the one before it in its session, in the order in which the
    /// provider's cache takes them. By the published rules it says what is read, what is written, what
    /// that costs, and the first thing that differs with who wrote it. Beside it stands what was
    /// reported. Requests that were worked out from a transcript have no forecast.
    #[command(
        after_help = "Example: afterimage guard traffic.har --max-loss 0.50",
        after_long_help = words::GUARD
    )]
    Guard(Guard),
    /// Write recordings in the form of another program: as spans of OpenTelemetry
    ///
    /// A session is a trace, with a span for each of its requests. Each span holds the whole request
    /// and what came back, by the semantic conventions for generative AI.
    #[command(
        after_help = "Example: afterimage export --otlp session.jsonl > spans.json",
        after_long_help = words::EXPORT
    )]
    Export(Export),
    /// Compare two contexts: where they first differ, who wrote that, and what is billed again
    ///
    /// A provider's cache serves what stands before the first difference; everything after it is
    /// billed again. A and B are contexts as `render --as messages` or `compress --as …` print
    /// them, or transcripts or archives, which are rendered first.
    #[command(
        after_help = "Example: afterimage diff before.json after.json --cache openai",
        after_long_help = words::DIFF
    )]
    Diff(Diff),
    /// Lint, draft and shrink checkpoints in Markdown; compute, apply and check their deltas
    #[command(after_help = "Example: afterimage checkpoint diff chk-001.md chk-002.md")]
    Checkpoint(checkpoint::args::Checkpoint),
    /// Keep what tools told an agent, for each account, and sum it up with the age of each fact
    ///
    /// A database holds the latest response of each tool for each account. A summary says in a few
    /// lines what is known, how old it is, and what an action has made stale.
    #[command(after_help = "Example: afterimage observe --db state.db summary --account Ada")]
    Observe(crate::observe::args::Observe),
    /// Keep a world's state as deltas and snapshots, in a directory that survives a power cut
    #[command(
        after_help = "Example: afterimage session init tale && afterimage session append tale turns.jsonl"
    )]
    Session(Session),
    /// Show what journals hold: sessions, the states that their events lead to, snapshots
    ///
    /// A journal is a directory, or nats://HOST:PORT/NAME on NATS JetStream. Credentials come from
    /// --creds, or from the environment: `AFTERIMAGE_NATS_CREDS` (a file), `AFTERIMAGE_NATS_TOKEN`, or
    /// `AFTERIMAGE_NATS_USER` with `AFTERIMAGE_NATS_PASSWORD`.
    #[command(after_help = "Example: afterimage journal ls nats://127.0.0.1:4222/afterimage")]
    Journal(crate::journal::Journal),
    /// List sessions, newest first: when, where, what it was about, requests, tokens
    ///
    /// Without FOLDER it looks where Claude Code, Codex, pi, Gemini and Kimi keep theirs. An index in
    /// the user's cache folder keeps what was read, so that a session is read again only where its
    /// file has changed. `AFTERIMAGE_CACHE` names another folder.
    #[command(
        after_help = "Example: afterimage sessions --since 3d --project harbour",
        after_long_help = crate::sessions::args::WORDS
    )]
    Sessions(crate::sessions::args::Sessions),
    /// List the formats of transcripts: what each is, and what it is recognised by
    ///
    /// afterimage recognises a file by its content, and never by its name. `--input-format NAME` of
    /// other commands overrules that.
    #[command(after_help = "Example: afterimage formats --json")]
    Formats(Formats),
    /// Print completions for a shell
    #[command(
        after_help = "Example: afterimage completions bash > ~/.local/share/bash-completion/completions/afterimage"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or of one command
    #[command(
        after_help = "Example: afterimage man > afterimage.1; afterimage man trace | man -l -"
    )]
    Man {
        /// The command; by default the program
        command: Option<String>,
    },
}

/// How things are rendered and counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rendering {
    /// How facets look in the text; by default xml, or the format of the archive
    #[arg(long, value_enum, help_heading = "Rendering")]
    pub(crate) format: Option<Format>,
    /// Which tokenizer counts; by default o200k, or the one of the archive
    #[arg(long, value_parser = CountedByName, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CountedBy>,
}

/// Which branches of a session that went back are read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Branches {
    /// Read only the branch that ends with this record: its `uuid`, or its `id` (pi, Gemini CLI, Kimi)
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) branch: Option<String>,
    /// Include abandoned branches in the context
    #[arg(long, conflicts_with = "branch")]
    pub(crate) all_branches: bool,
}

impl Branches {
    /// Whether they are others than those that the session was on.
    pub(crate) fn is_asked(&self) -> bool {
        self.branch.is_some() || self.all_branches
    }
}

/// Where transcripts come from.
#[derive(Clone, Debug, Args)]
pub(crate) struct Input {
    /// The transcripts, archives of some, or folders with some; `-` is standard input. Each is read
    /// by itself
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath, required_unless_present = "last")]
    pub(crate) files: Vec<PathBuf>,
    /// Read the session whose file changed last: of the folders, or of those that `afterimage
    /// sessions` looks in
    #[arg(long)]
    pub(crate) last: bool,
    /// Read the input as this format instead of recognising it; `afterimage formats` lists them
    #[arg(long, value_name = "NAME", value_parser = FormatName, hide_possible_values = true)]
    pub(crate) input_format: Option<TranscriptFormat>,
    /// Read only this session of files that hold several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) branches: Branches,
    #[command(flatten)]
    pub(crate) redaction: Redaction,
    /// Whether recorded requests are kept from the first frame on.
    #[arg(skip)]
    pub(crate) keeps_exchanges: bool,
    /// Whether nothing is said of what was odd, as where a file is read again and again.
    #[arg(skip)]
    pub(crate) is_silent: bool,
}

/// Whether secrets are taken out.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Redaction {
    /// Put placeholders in the place of keys, tokens, passwords, e-mail addresses and the names of
    /// home folders; what was found is said at the end
    #[arg(long)]
    pub(crate) redact: bool,
    /// Redact by the rules of this file too: TOML, in the form of gitleaks
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) redact_rules: Option<PathBuf>,
    /// Redact, and write what was found where to this file, as JSON; no secret is in it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) redact_report: Option<PathBuf>,
}

impl Redaction {
    /// Whether anything is redacted.
    pub(crate) fn is_on(&self) -> bool {
        self.redact || self.redact_rules.is_some() || self.redact_report.is_some()
    }
}

impl Input {
    /// These files, whole.
    pub(crate) fn of(files: Vec<PathBuf>) -> Self {
        let (last, input_format, session) = Default::default();
        let (branches, redaction, keeps_exchanges, is_silent) = Default::default();
        Self { files, last, input_format, session, branches, redaction, keeps_exchanges, is_silent }
    }

    /// The files that are read.
    pub(crate) fn chosen(&self) -> Outcome<Cow<'_, [PathBuf]>> {
        if !self.last {
            return Ok(Cow::Borrowed(&self.files));
        }
        let newest = crate::sessions::newest(&self.files)?;
        output::note(&format!("the newest session is {}", newest.display()));
        Ok(Cow::Owned(vec![newest]))
    }

    /// The same input with the requests that it holds.
    pub(crate) fn with_exchanges(&self) -> Self {
        Self { keeps_exchanges: true, ..self.clone() }
    }

    /// The same input with all sessions, for commands that choose among them.
    pub(crate) fn of_all_sessions(&self) -> Self {
        Self { session: None, ..self.clone() }
    }
}

/// Reads the name of a format.
#[derive(Clone)]
struct FormatName;

impl FormatName {
    fn names() -> impl Iterator<Item = PossibleValue> {
        TranscriptFormat::ALL.iter().map(|format| PossibleValue::new(format.name()))
    }
}

impl TypedValueParser for FormatName {
    type Value = TranscriptFormat;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<TranscriptFormat, clap::Error> {
        if value == "list" {
            let message = "there is no format `list`; the command `afterimage formats` lists them";
            return Err(command.clone().error(ErrorKind::InvalidValue, message));
        }
        let name = PossibleValuesParser::new(Self::names()).parse_ref(command, arg, value)?;
        TranscriptFormat::from_name(&name).ok_or_else(|| {
            command.clone().error(ErrorKind::InvalidValue, "there is no such format")
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names()))
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// Tags in the text
    #[default]
    Xml,
    /// Labels for people
    Plain,
    /// No marks: structure lives in the chunks' parts
    Native,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Plain => "plain",
            Self::Native => "native",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Tokenizer {
    /// Exact: GPT-4o and later
    #[default]
    O200k,
    /// Exact: GPT-4 and GPT-3.5
    Cl100k,
    /// An estimate: UTF-16 length by four
    Chars4,
}

impl Tokenizer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Chars4 => "chars4",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Enable colour on a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Enable colour, in a pipe or a file too
    Always,
    /// Disable colour
    Never,
}

/// What every command that prints takes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Coloring {
    /// When to use colour
    #[arg(long, value_enum, default_value_t)]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print the same as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Frames {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print JSONL on a terminal too
    #[arg(long, conflicts_with = "table")]
    pub(crate) json: bool,
    /// Print a table of the frames with roles, chunks and tokens, in a pipe too
    #[arg(long)]
    pub(crate) table: bool,
    /// Seal each frame with what it renders to (`renderedSnapshot`)
    #[arg(long, conflicts_with = "table")]
    pub(crate) capture: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderAs {
    /// The text: coloured and with the facets named on a terminal, nothing but the text elsewhere
    Text,
    /// One JSON object per session: messages, an owner for every byte, tokens
    Messages,
    /// One JSON object per frame: its snapshot in wire form
    Snapshots,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("exchange").args(["request", "response"]))]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// What to print; by default text, or messages with --json
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<RenderAs>,
    /// Begin with this frame, by its sequence
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) from: Option<u64>,
    /// End with this frame, by its sequence; the context is the one after it
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) to: Option<u64>,
    /// Print the request with this number, as `afterimage requests` lists it: the body that was
    /// sent where it was recorded, unpacked where it was packed, else its JSON
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with_all = ["what", "from", "to", "format", "whole"]
    )]
    pub(crate) request: Option<usize>,
    /// Print that request as it was sent, without the earlier requests and answers that it goes on from
    #[arg(long, requires = "request")]
    pub(crate) as_sent: bool,
    /// Print the response to the request with this number: the recorded bytes, or the text of its
    /// frames where none were recorded
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with_all = ["what", "from", "to", "format", "whole", "request"]
    )]
    pub(crate) response: Option<usize>,
    /// Print the body that `afterimage record` stored of that request or response, text or not, with
    /// its `content-encoding` undone
    #[arg(
        long,
        requires = "exchange",
        conflicts_with_all = ["as_sent", "json", "redact", "redact_rules", "redact_report"]
    )]
    pub(crate) raw: bool,
    /// Print every frame, those too that a summary replaced: the history, not the context
    #[arg(long)]
    pub(crate) whole: bool,
    /// Print JSON: `--as messages`, unless `--as` is given
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Search the request with this number, with its tools and parameters, for --text
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["facet", "at"])]
    pub(crate) request: Option<usize>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print the hits as a JSON list
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// What to trace: a facet, a text or a byte.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).multiple(false))]
#[group(skip)]
pub(crate) struct Target {
    /// Find every chunk of this facet
    #[arg(long, value_name = "ID", group = "target", allow_hyphen_values = true)]
    pub(crate) facet: Option<String>,
    /// Find this text in what the model read, with the escapes of JSON read as what they stand for
    #[arg(
        long,
        value_name = "STR",
        group = "target",
        allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) text: Option<String>,
    /// Find the owner of a byte of a message, both counted from zero, in the first session or in
    /// --session
    #[arg(long, value_name = "MESSAGE:BYTE", group = "target", value_parser = position)]
    pub(crate) at: Option<(usize, usize)>,
    /// Ignore upper and lower case in --text
    #[arg(short, long, conflicts_with_all = ["facet", "at"])]
    pub(crate) ignore_case: bool,
    /// Treat --text as a regular expression; `^` and `$` match at line ends
    #[arg(long, conflicts_with_all = ["facet", "at"])]
    pub(crate) regex: bool,
}

fn position(text: &str) -> Result<(usize, usize), String> {
    let parse = |part: &str| part.parse::<usize>().ok();
    text.split_once(':')
        .and_then(|(message, byte)| Some((parse(message)?, parse(byte)?)))
        .ok_or_else(|| "expected two numbers, as in 3:120".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Add up the context of the request with this number alone, as `afterimage requests` lists it
    #[arg(long, value_name = "NUMBER", conflicts_with = "format")]
    pub(crate) request: Option<usize>,
    /// Show which facets stood in the requests that were paid for, and what each cost
    #[arg(long, conflicts_with = "request")]
    pub(crate) residency: bool,
    /// Fit our counts to the usage that all files report, write the calibration to this file, and say
    /// what it is worth; `--tokenizer calibrated:FILE` counts by it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["request", "residency", "format", "tokenizer", "session", "json"])]
    pub(crate) calibrate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Print one JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// What tokens cost.
#[derive(Debug, Args)]
pub(crate) struct Pricing {
    /// The prices of models as TOML, in place of the table that comes along
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prices: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The directory to write: empty, or not there yet
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print what was written as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// A number of tokens: digits, apart by `_` or `,`, with `k` for thousands and `m` for millions.
fn tokens(text: &str) -> Result<u64, String> {
    let refused = || "expected a number of tokens, as in 8000, 32k or 1.5m".to_owned();
    let last = text.chars().next_back().map(|c| c.to_ascii_lowercase());
    let zeros = match last {
        Some('k') => 3,
        Some('m') => 6,
        _ => 0,
    };
    let number = if zeros > 0 { text.get(..text.len() - 1).unwrap_or_default() } else { text };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.replace(['_', ','], "");
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    let is_part = part.len() <= zeros && part.chars().all(|c| c.is_ascii_digit());
    if !is_number || !is_part || number.ends_with('.') {
        return Err(refused());
    }
    format!("{digits}{part:0<zeros$}").parse().map_err(|_| refused())
}

/// As [`tokens`], as a limit of what is held in memory.
pub(crate) fn token_limit(text: &str) -> Result<usize, String> {
    tokens(text)?.try_into().map_err(|_| "the number of tokens is too large".to_owned())
}

/// How a session is fitted into a budget.
#[derive(Clone, Debug, Args)]
pub(crate) struct Fitting {
    /// How many tokens a context may have, counted exactly with the provider's framing; 32k is
    /// 32000
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub(crate) budget: u64,
    /// How many of the newest frames are compressed last; by default eight, or fewer if they are
    /// large
    #[arg(long, value_name = "FRAMES")]
    pub(crate) keep_recent: Option<usize>,
    /// How many tokens of the budget each request takes for its tools, where the recording does not
    /// hold them
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub(crate) tools: Option<u64>,
    /// What writes the summaries: outline, which needs no model, or a command that reads a prompt
    #[arg(long, value_name = "outline|COMMAND", default_value = "outline")]
    pub(crate) engine: String,
    /// How many seconds a command may take for one summary
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) engine_timeout: u64,
}

/// Which frames are compressed whatever the budget, and which never are.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    /// Compress these frames, both ends included; without a budget nothing else is compressed
    #[arg(long, value_name = "FROM..TO", value_parser = frame_range)]
    pub(crate) range: Option<FrameRange>,
    /// Keep a frame as it is: by its number, by the id of a facet in it, or by a text that it
    /// holds; may be given several times
    #[arg(long, value_name = "FRAME|FACET|TEXT")]
    pub(crate) pin: Vec<String>,
}

/// Frames from the first to the second, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameRange {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Reads `100..150`, `100..=150` or `100`.
fn frame_range(text: &str) -> Result<FrameRange, String> {
    let refused = || "expected the first and the last frame, for example 100..150".to_owned();
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| refused());
    let (from, to) = (number(from)?, number(to.strip_prefix('=').unwrap_or(to))?);
    if from > to {
        return Err(format!("the range runs from {from} back to {to}"));
    }
    Ok(FrameRange { from, to })
}

/// A range needs no budget.
fn budget_or_range(budget: Arg) -> Arg {
    let none: &'static str = "18446744073709551615";
    let budget = budget.required(false);
    budget.default_value_if("range", ArgPredicate::IsPresent, Some(none)).hide_default_value(true)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressAs {
    /// The text: coloured and with the blocks named on a terminal, nothing but the text elsewhere
    Text,
    /// `messages` of OpenAI's Chat Completions
    Openai,
    /// `input` items of OpenAI's Responses
    Responses,
    /// `system` and `messages` of Anthropic's Messages
    Anthropic,
    /// The messages with an owner for every byte, and the blocks; on a terminal these alone
    Blocks,
}

impl CompressAs {
    /// Whether it is the form of a provider, whose structure lives in fields.
    pub(crate) fn is_export(self) -> bool {
        self.form().is_some()
    }

    /// The form of a provider.
    pub(crate) fn form(self) -> Option<Form> {
        match self {
            Self::Openai => Some(Form::OpenaiChat),
            Self::Responses => Some(Form::Responses),
            Self::Anthropic => Some(Form::Anthropic),
            Self::Text | Self::Blocks => None,
        }
    }
}

#[derive(Debug, Args)]
#[command(mut_arg("budget", budget_or_range))]
#[command(group(ArgGroup::new("aim").args(["budget", "range"]).required(true).multiple(true)))]
pub(crate) struct Compress {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Say what `--range` would do, and compress nothing
    #[arg(long, requires = "range", conflicts_with = "what")]
    pub(crate) preview: bool,
    /// Say what the context no longer says, in place of printing it: what stands for frames, and
    /// the rules, paths, names and numbers that can no longer be read; with --json beside the rest
    #[arg(long, conflicts_with = "preview")]
    pub(crate) receipt: bool,
    /// What to print; by default text
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print what was done, one JSON object per session; with `--as` the context is in it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
#[command(mut_arg("budget", budget_or_range))]
#[command(group(ArgGroup::new("aim").args(["budget", "range"]).required(true).multiple(true)))]
#[command(group(ArgGroup::new("part").args(["around", "frame"]).multiple(true)))]
pub(crate) struct Expand {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The id of the block, as `compress` prints it; without it --around and --frame look
    /// everywhere
    #[arg(
        long,
        value_name = "ID",
        allow_hyphen_values = true,
        required_unless_present_any = ["around", "frame"]
    )]
    pub(crate) block: Option<String>,
    /// Print the part of the frame that says this text first, and no more tokens than --limit
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) around: Option<String>,
    /// Print this frame alone, or the part of it with --around, and no more tokens than --limit
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) frame: Option<u64>,
    /// How many tokens --around and --frame print at most; by default 1000
    #[arg(long, value_name = "TOKENS", value_parser = tokens, requires = "part")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// The `--as` that `compress` was given: it plans exports over frames in the format native
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
}

/// How a model is asked for summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskedFor {
    /// Summaries cost nothing
    Free,
    /// With a prompt that holds what is summarised: nothing of it is in the cache
    Fresh,
    /// After the last request, which the cache holds
    Continued,
}

/// The requests of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequestForm {
    /// `messages` of OpenAI's Chat Completions
    Openai,
    /// `input` items of OpenAI's Responses
    Responses,
    /// `system` and `messages` of Anthropic's Messages
    Anthropic,
}

impl RequestForm {
    /// The form of the provider.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::Openai => Form::OpenaiChat,
            Self::Responses => Form::Responses,
            Self::Anthropic => Form::Anthropic,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    /// How contexts are kept within the budget, with figures behind colons; several are compared, with
    /// a comma between them
    #[arg(
        long = "policy",
        value_parser = PolicyParser,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "blocks"
    )]
    pub(crate) policies: Vec<ReplayPolicy>,
    /// How a model is asked for summaries, for the bill; by default fresh with a command as the
    /// engine, else free
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) summaries: Option<AskedFor>,
    /// The model whose prices the bill is by; without it, writes cost 1.25, reads 0.1, output 5
    #[arg(long, value_name = "NAME", help_heading = "Prices")]
    pub(crate) model: Option<String>,
    /// The prices of models as TOML, in place of the table that comes along
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "model",
        help_heading = "Prices"
    )]
    pub(crate) prices: Option<PathBuf>,
    /// Also say what requests still hold of the user's words, rules, errors, plans and files
    #[arg(long)]
    pub(crate) survival: bool,
    /// Make requests of a provider, which fit with the ids and names that they hold
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub(crate) form: Option<RequestForm>,
    /// Write every request to a file in this directory: empty, or not there yet
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "form")]
    pub(crate) emit: Option<PathBuf>,
    /// Which tokenizer counts; by default o200k
    #[arg(long, value_parser = CountedByName, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CountedBy>,
    /// Print the figures as JSON: of each policy, for each file and for all
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// The recording without a compressor
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) without: PathBuf,
    /// The recording with one
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) with: PathBuf,
    /// The session of A; by default the one with the most requests
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session_a: Option<String>,
    /// The session of B; by default the one with the most requests
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session_b: Option<String>,
    /// How many of the names that were lost are listed
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) names: usize,
    #[command(flatten)]
    pub(crate) branches: Branches,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Print one JSON object, with all names
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// When a provider's cache takes a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cache {
    /// Every token counts
    #[default]
    Exact,
    /// 1,024 tokens at least, in blocks of 128
    Openai,
    /// 1,024 tokens at least
    Anthropic,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The context that was sent before; `-` is standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) previous: PathBuf,
    /// The context that is sent next; `-` is standard input
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) next: PathBuf,
    /// Compare this session of files that hold several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) branches: Branches,
    /// The provider whose rules say what its cache takes of an unchanged beginning
    #[arg(long, value_enum, default_value_t)]
    pub(crate) cache: Cache,
    /// Print every line, also of messages that only one of the two has
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print the same as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Requests {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Go on printing requests as they come, until Ctrl-C: the file is looked at twice a second
    #[arg(long)]
    pub(crate) follow: bool,
    /// The provider whose rules say what its cache takes of an unchanged beginning
    #[arg(long, value_enum, default_value_t)]
    pub(crate) cache: Cache,
    /// Which tokenizer counts; by default o200k
    #[arg(long, value_parser = CountedByName, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CountedBy>,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// List the requests alone whose cache served less than the request before had left there, with
    /// what that cost and why
    #[arg(long, conflicts_with = "follow")]
    pub(crate) broken: bool,
    /// With --broken: list the N that cost most, the dearest first, and the others in one line
    #[arg(long, value_name = "N", requires = "broken")]
    pub(crate) top: Option<usize>,
    /// Print one JSON object per request
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Guard {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Go on printing requests as they come, until Ctrl-C: the file is looked at twice a second
    #[arg(long)]
    pub(crate) follow: bool,
    /// Warn of each request that pays more than this again for what was cached, in the currency of the
    /// prices; the exit code is then 1
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) max_loss: Option<String>,
    /// The rules of caches as TOML, in place of the table that comes along
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rules: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Which tokenizer counts; by default o200k
    #[arg(long, value_parser = CountedByName, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CountedBy>,
    /// Print one JSON object per request
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("form").required(true))]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Write OTLP JSON: one document, as collectors take it over HTTP
    #[arg(long, group = "form")]
    pub(crate) otlp: bool,
    /// Write a document for each span on a line of its own, as collectors write files
    #[arg(long)]
    pub(crate) lines: bool,
    /// What the span of a request holds of its messages
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub(crate) messages: Messages,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Messages {
    /// All of them, as the conventions have it: grows with the square of a session
    #[default]
    All,
    /// Those that the request before did not have
    New,
}

#[derive(Debug, Args)]
pub(crate) struct Formats {
    /// Print one JSON object per format
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Session {
    #[command(subcommand)]
    pub(crate) command: crate::session::args::Command,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_said_in_digits_thousands_or_millions() {
        for (text, expected) in [
            ("0", 0),
            ("8000", 8_000),
            ("32k", 32_000),
            ("32K", 32_000),
            ("1.5m", 1_500_000),
            ("0.125k", 125),
            ("32_000", 32_000),
            ("32,000", 32_000),
        ] {
            assert_eq!(tokens(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "1.5",
            "1.",
            "1.k",
            ".5k",
            "1.2345k",
            "32kb",
            "1e3",
            "32 k",
            "99999999999999999999",
        ] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
