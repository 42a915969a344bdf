//! What the command line says.

mod words;

use std::{ffi::OsStr, path::PathBuf};

use afterimage::{export::Form, transcript::TranscriptFormat};
use clap::{
    ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

use crate::checkpoint;

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
    /// The frames of transcripts, as JSONL
    ///
    /// A frame is one step of a history: where it came from, and how it changed the facets. On a
    /// terminal a table is shown; into a pipe or a file goes JSONL, one frame a line, which every
    /// command reads back.
    #[command(
        after_help = "Example: afterimage frames session.jsonl | afterimage stats -",
        after_long_help = words::FRAMES
    )]
    Frames(Frames),
    /// What the model reads: as text, as messages with an owner for every byte, or as snapshots
    #[command(
        after_help = "Example: afterimage render session.jsonl --from 3 --to 5 --as messages"
    )]
    Render(Render),
    /// Who wrote it: the facet behind a text, a byte, or the places of a facet
    #[command(
        after_help = "Example: afterimage trace session.jsonl --text 'connection refused'",
        after_long_help = words::TRACE
    )]
    Trace(Trace),
    /// What a transcript holds and costs: messages, calls, chunks, tokens by role, type and facet
    #[command(
        after_help = "Example: afterimage stats --json session.jsonl",
        after_long_help = words::STATS
    )]
    Stats(Stats),
    /// Archive transcripts: frames and what they rendered to, for every command to read
    ///
    /// The directory stands for the transcripts that it was made of: every command reads it in
    /// their place, and answers the same, without rendering and counting again. With another
    /// `--format` its frames are rendered again. It is written as a
    /// whole, and not added to; an archive may be archived again, with others.
    #[command(
        after_help = "Example: afterimage archive session.jsonl -o session.archive",
        after_long_help = words::ARCHIVE
    )]
    Archive(Archive),
    /// Fit a session into a budget: older frames give way to summaries, and the original stays
    ///
    /// Prints the context after the last frame, as it fits: older frames are compressed into
    /// blocks, and where that is not enough, what is worth least is left out and what is largest is
    /// shortened. `expand` gives back what a block stands for.
    #[command(
        after_help = "Example: afterimage compress session.jsonl --budget 8k --as openai",
        after_long_help = words::COMPRESS
    )]
    Compress(Compress),
    /// The original text of a block, byte for byte
    ///
    /// Takes the options of `compress`, plans the same, and prints the text of the frames that the
    /// block stands for, with nothing between them.
    #[command(
        after_help = "Example: afterimage expand session.jsonl --budget 8000 --block block-1-24"
    )]
    Expand(Expand),
    /// What the requests of a session would have cost, by policy
    ///
    /// Renders the context before each turn of the agent as a framework would have sent it, and
    /// adds up what was sent, how much of it was an unchanged prefix of the request before (billed
    /// at a tenth), and which of the names that the agent went on to use were still there.
    #[command(
        after_help = "Example: afterimage replay session.jsonl --budget 32k --policy sliding",
        after_long_help = words::REPLAY
    )]
    Replay(Replay),
    /// Compare two contexts: where they part, who wrote that, and what is billed again
    ///
    /// A provider's cache serves what stands before the first difference; everything after it is
    /// billed again. A and B are contexts as `render --as messages` or `compress --as …` print
    /// them, or transcripts or archives, which are rendered first.
    #[command(
        after_help = "Example: afterimage diff before.json after.json --cache openai",
        after_long_help = words::DIFF
    )]
    Diff(Diff),
    /// Checkpoints in Markdown: lint them, compute, apply and check deltas, draft, shrink
    #[command(after_help = "Example: afterimage checkpoint diff chk-001.md chk-002.md")]
    Checkpoint(checkpoint::args::Checkpoint),
    /// What tools told an agent of its world: kept for each account, summed up with its age
    ///
    /// A database holds the latest response of each tool for each account. A summary says in a few
    /// lines what is known, how old it is, and what an action has made stale.
    #[command(after_help = "Example: afterimage observe --db state.db summary --account Ada")]
    Observe(crate::observe::args::Observe),
    /// World state as deltas and snapshots, in a directory that survives the power cut
    #[command(
        after_help = "Example: afterimage session init tale && afterimage session append tale turns.jsonl"
    )]
    Session(Session),
    /// What journals hold: sessions, the states that their events lead to, snapshots
    ///
    /// A journal is a directory, or nats://HOST:PORT/NAME on NATS JetStream. Credentials come from
    /// --creds, or from the environment: `AFTERIMAGE_NATS_CREDS` (a file), `AFTERIMAGE_NATS_TOKEN`, or
    /// `AFTERIMAGE_NATS_USER` with `AFTERIMAGE_NATS_PASSWORD`.
    #[command(after_help = "Example: afterimage journal ls nats://127.0.0.1:4222/afterimage")]
    Journal(crate::journal::Journal),
    /// The formats of transcripts: what each is, and what it is recognised by
    ///
    /// afterimage recognises a file by its content, and never by its name. `--input-format NAME` of
    /// other commands overrules that.
    #[command(after_help = "Example: afterimage formats --json")]
    Formats(Formats),
    /// Completions for a shell
    #[command(
        after_help = "Example: afterimage completions bash > ~/.local/share/bash-completion/completions/afterimage"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual page, of the program or of one command
    #[command(
        after_help = "Example: afterimage man > afterimage.1; afterimage man trace | man -l -"
    )]
    Man {
        /// The command; without it the page of the program
        command: Option<String>,
    },
}

/// How things are rendered and counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rendering {
    /// How facets look in the text: xml by default, or the format of an archive
    #[arg(long, value_enum, help_heading = "Rendering")]
    pub(crate) format: Option<Format>,
    /// Who counts the tokens: o200k by default, or who counted those of an archive
    #[arg(long, value_enum, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<Tokenizer>,
}

/// Where transcripts come from.
#[derive(Clone, Debug, Args)]
pub(crate) struct Input {
    /// The transcripts, or archives of some; `-` is standard input. Each is read by itself
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath, required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Read the input as this format instead of recognising it; `afterimage formats` lists them
    #[arg(long, value_name = "NAME", value_parser = FormatName, hide_possible_values = true)]
    pub(crate) input_format: Option<TranscriptFormat>,
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
    /// On a terminal, unless `NO_COLOR` is set
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
    /// The same as one JSON object
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
    /// JSONL on a terminal too
    #[arg(long, conflicts_with = "table")]
    pub(crate) json: bool,
    /// A table of the frames with roles, chunks and tokens, into a pipe too
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

#[derive(Debug, Args)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// What to print; text, or with --json messages
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<RenderAs>,
    /// The first frame, by sequence
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) from: Option<u64>,
    /// The last frame, by sequence; the context is then the one after this frame
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) to: Option<u64>,
    /// For machines: `--as messages` where nothing else is said
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
    /// Only this session
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// The hits as a JSON list
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
    /// Every chunk of this facet
    #[arg(long, value_name = "ID", group = "target", allow_hyphen_values = true)]
    pub(crate) facet: Option<String>,
    /// Find this text in what the model read. JSON escapes in arguments and results are decoded
    /// first
    #[arg(
        long,
        value_name = "STR",
        group = "target",
        allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) text: Option<String>,
    /// The owner of a byte of a message, both counted from zero, in the first session
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
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// One JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The directory to write: one that is empty, or not there yet
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// What was written, as one JSON object
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
    /// The tokens that a context may have, by the exact count with the provider's framing; 32k is
    /// 32000
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub(crate) budget: u64,
    /// The newest frames that are compressed last: eight by default, or fewer where they are large
    #[arg(long, value_name = "FRAMES")]
    pub(crate) keep_recent: Option<usize>,
    /// What writes the summaries: outline, which needs no model, or a command that reads a prompt
    #[arg(long, value_name = "outline|COMMAND", default_value = "outline")]
    pub(crate) engine: String,
    /// How long a command may take for one summary
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) engine_timeout: u64,
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
pub(crate) struct Compress {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    /// What to print; text where nothing is said
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// What was done, as one JSON object per session; with `--as` the context is in it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Expand {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The block: its id, as `compress` gives it
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) block: String,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    /// The `--as` of `compress`: exports are planned over frames in the format native
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
}

/// How contexts are kept within the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayPolicy {
    /// Blocks stand for older frames, as `compress` does it
    #[default]
    Blocks,
    /// The oldest frames are left out
    Sliding,
    /// Not at all
    None,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    /// How contexts are kept within the budget
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: ReplayPolicy,
    /// Who counts the tokens: o200k by default
    #[arg(long, value_enum, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<Tokenizer>,
    /// The figures as JSON: of each file, and of all
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
    /// Of files with several sessions, this one
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    /// Whose rules say what of an unchanged beginning is not billed again
    #[arg(long, value_enum, default_value_t)]
    pub(crate) cache: Cache,
    /// Every line, also of messages that only one of the two has
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// The same as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

#[derive(Debug, Args)]
pub(crate) struct Formats {
    /// One JSON object per format
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
