//! What the command line says.

use std::path::PathBuf;

use afterimage::transcript::TranscriptFormat;
use clap::{
    Args, Parser, Subcommand, ValueEnum, ValueHint,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

/// See what an LLM agent actually saw.
///
/// afterimage reads the transcript of an agent, renders it frame by frame into the text that goes
/// to a model, and knows for every byte which facet wrote it and what it costs in tokens.
///
/// Data goes to standard output, everything else to standard error. The exit code is 0 when the
/// input was read (also where single records were not understood), 1 when it was refused, 2 when
/// the command line was wrong.
#[derive(Debug, Parser)]
#[command(name = "afterimage", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Example: afterimage demo")]
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
        override_usage = "afterimage frames [OPTIONS] <FILE>..."
    )]
    Frames(Frames),
    /// What the model reads: as text, as messages with an owner for every byte, or as snapshots
    #[command(
        after_help = "Example: afterimage render session.jsonl --from 3 --to 5 --as messages",
        override_usage = "afterimage render [OPTIONS] <FILE>..."
    )]
    Render(Render),
    /// Who wrote it: the facet behind a text, a byte, or the places of a facet
    #[command(
        after_help = "Example: afterimage trace session.jsonl --text 'connection refused'",
        override_usage = "afterimage trace [OPTIONS] <--facet ID|--text STR|--at MESSAGE:BYTE> <FILE>..."
    )]
    Trace(Trace),
    /// What a transcript holds and costs: messages, calls, chunks, tokens by role, type and facet
    #[command(
        after_help = "Example: afterimage stats --json session.jsonl",
        override_usage = "afterimage stats [OPTIONS] <FILE>..."
    )]
    Stats(Stats),
    /// Archive transcripts: frames and what they rendered to, for every command to read
    ///
    /// The directory stands for the transcripts that it was made of: every command reads it in
    /// their place, and answers the same, without rendering and counting again. It is written as a
    /// whole, and not added to; an archive may be archived again, with others.
    #[command(
        after_help = "Example: afterimage archive session.jsonl -o session.archive",
        override_usage = "afterimage archive [OPTIONS] --output <DIR> <FILE>..."
    )]
    Archive(Archive),
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
    /// How facets look in the text: xml by default. An archive keeps what it has
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
    #[arg(
        value_name = "FILE",
        value_hint = ValueHint::AnyPath,
        required_unless_present = "input_format"
    )]
    pub(crate) files: Vec<PathBuf>,
    /// Read the input as this format instead of recognising it; `list` names them all
    #[arg(long, value_name = "NAME", value_parser = input_format(), hide_possible_values = true)]
    pub(crate) input_format: Option<InputFormat>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum InputFormat {
    List,
    Of(TranscriptFormat),
}

fn input_format() -> impl TypedValueParser<Value = InputFormat> {
    let names = TranscriptFormat::ALL.iter().map(|format| PossibleValue::new(format.name()));
    PossibleValuesParser::new(names.chain([PossibleValue::new("list")]))
        .map(|name| TranscriptFormat::from_name(&name).map_or(InputFormat::List, InputFormat::Of))
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
    /// Into a pipe or a file too
    Always,
    /// On a terminal neither
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
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// The hits as a JSON list
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

/// What to trace: exactly one of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Every chunk of this facet
    #[arg(long, value_name = "ID")]
    pub(crate) facet: Option<String>,
    /// Every place of this text in what the model read
    #[arg(long, value_name = "STR", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) text: Option<String>,
    /// The owner of a byte of a message, both counted from zero, in the first session
    #[arg(long, value_name = "MESSAGE:BYTE", value_parser = position)]
    pub(crate) at: Option<(usize, usize)>,
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
    #[arg(
        short,
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        required_unless_present = "input_format"
    )]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// What was written, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}

impl Command {
    /// What the command reads, where it reads anything.
    pub(crate) fn input(&self) -> Option<&Input> {
        match self {
            Self::Frames(args) => Some(&args.input),
            Self::Render(args) => Some(&args.input),
            Self::Trace(args) => Some(&args.input),
            Self::Stats(args) => Some(&args.input),
            Self::Archive(args) => Some(&args.input),
            Self::Demo(_) | Self::Completions { .. } | Self::Man { .. } => None,
        }
    }
}
