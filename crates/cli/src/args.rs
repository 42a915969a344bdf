//! What several commands take.

mod counter_choice;

use std::{
    ffi::OsStr,
    ops::RangeInclusive,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use afterimage::{
    export::{Form, PrefixRules},
    transcript::TranscriptFormat,
};
use clap::{
    Arg, Args, ValueEnum, ValueHint,
    builder::{ArgPredicate, PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};

pub(crate) use counter_choice::{CounterChoice, CounterChoiceParser};

use crate::when::When;

/// How things are rendered and counted.
#[derive(Clone, Debug, Args)]
pub(crate) struct Rendering {
    /// How facets look in the text; by default xml, or the format of the archive
    #[arg(long, value_enum, help_heading = "Rendering")]
    pub(crate) format: Option<Format>,
    /// Which tokenizer counts; by default o200k, or the one of the archive
    #[arg(long, value_parser = CounterChoiceParser, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CounterChoice>,
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
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(crate) struct Input {
    /// The transcripts, archives of some, or folders with some. `-` is standard input. The id of a
    /// session, or the beginning of it, is the file that an agent keeps it in. Each is read by itself
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath, required_unless_present = "last")]
    pub(crate) files: Vec<PathBuf>,
    /// Read the session whose file changed last: of the folders, or of those that `afterimage
    /// sessions` looks in. What else is asked for, it must fulfil
    #[arg(long)]
    pub(crate) last: bool,
    /// Read the input as this format instead of recognising it; `afterimage formats` lists them
    #[arg(long, value_name = "NAME", value_parser = FormatName, hide_possible_values = true)]
    pub(crate) input_format: Option<TranscriptFormat>,
    /// Read only this session of files that hold several
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) filter: SessionFilter,
    #[command(flatten)]
    pub(crate) branches: Branches,
    #[command(flatten)]
    pub(crate) redaction: Redaction,
    /// Whether recorded requests are kept from the first frame on.
    #[arg(skip)]
    pub(crate) keeps_exchanges: bool,
    /// Whether each session of a database is read by itself.
    #[arg(skip)]
    pub(crate) by_session: bool,
    /// Whether nothing is said of what was odd, as where a file is read again and again.
    #[arg(skip)]
    pub(crate) is_silent: bool,
}

/// Which sessions are read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SessionFilter {
    /// Only sessions that ended at this time or later: 2026-11-01, 2026-11-01T08:00:00Z, or how long
    /// ago (45m, 12h, 3d, 2w)
    #[arg(long, value_name = "TIME", value_parser = When::since, allow_hyphen_values = true)]
    pub(crate) since: Option<When>,
    /// Only sessions that ended by this time; a day ends with its last moment
    #[arg(long, value_name = "TIME", value_parser = When::until, allow_hyphen_values = true)]
    pub(crate) until: Option<When>,
    /// Only sessions of projects whose path holds this text, letter by letter
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
}

impl SessionFilter {
    /// Whether some are left out.
    pub(crate) fn is_asked(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.project.is_some()
    }

    /// The times within which a session is to have ended, in milliseconds since the epoch.
    pub(crate) fn times(&self) -> RangeInclusive<i64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let since = self.since.map_or(i64::MIN, |when| when.millis(now));
        since..=self.until.map_or(i64::MAX, |when| when.millis(now))
    }

    /// Whether sessions of the project with this path are meant.
    pub(crate) fn has_project(&self, path: &str) -> bool {
        self.project.as_deref().is_none_or(|text| path.contains(text))
    }
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
        let (filter, branches, redaction) = Default::default();
        let (keeps_exchanges, by_session, is_silent) = Default::default();
        Self {
            files,
            last,
            input_format,
            session,
            filter,
            branches,
            redaction,
            keeps_exchanges,
            by_session,
            is_silent,
        }
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

/// What tokens cost.
#[derive(Debug, Args)]
pub(crate) struct Pricing {
    /// The prices of models as TOML, in place of the table that comes along
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) prices: Option<PathBuf>,
}

/// A number of tokens: digits, apart by `_` or `,`, with `k` for thousands and `m` for millions.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
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
pub(crate) fn budget_or_range(budget: Arg) -> Arg {
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
    /// `systemInstruction` and `contents` of Gemini
    Gemini,
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
            Self::Gemini => Some(Form::Gemini),
            Self::Text | Self::Blocks => None,
        }
    }
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

impl Cache {
    /// What a cache of the provider takes.
    pub(crate) fn rules(self) -> PrefixRules {
        match self {
            Self::Exact => PrefixRules::EXACT,
            Self::Openai => PrefixRules::OPENAI,
            Self::Anthropic => PrefixRules::ANTHROPIC,
        }
    }
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
