//! What `afterimage trace` takes.

use clap::{ArgGroup, Args};

use crate::args::{Coloring, Input, Rendering};
use crate::phrase::Phrase;

const HELP: &str = "\
Example: afterimage trace session.jsonl --text 'connection refused'

Columns of the table:
  FRAME   the sequence of the frame; – after the last one
  MSG     the message of the session's context, counted from zero
  CHUNK   the piece of the frame's text in which the hit begins
  BYTES   where the hit begins and ends in the message
  ROLE    the role of the message
  TYPE    the type of the chunk; formatting is tags and separators
  TOKENS  what the whole chunk costs
  FACET   who wrote it; (formatting) where no facet did

The exit code is 0 if there is a hit, 1 if there is none, and 2 if a file or the session that was
named could not be searched.";

/// Find who wrote a text or a byte, or where a facet stands
///
/// The last line says what counted the tokens, and how far off calibrated counts are; in JSON each
/// hit has `tokenizer`, `counts` and `error`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage trace session.jsonl --text 'connection refused'",
    after_long_help = HELP
)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Search the request with this number, with its tools and parameters, and its answer for --text
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

impl Target {
    /// The text that is looked for; `None` where something else is.
    ///
    /// # Errors
    /// What is wrong with a regular expression, in one line.
    pub(crate) fn phrase(&self) -> Result<Option<Phrase>, String> {
        let phrase = |text: &String| Phrase::of(text, self.regex, self.ignore_case);
        self.text.as_ref().map(phrase).transpose()
    }
}

fn position(text: &str) -> Result<(usize, usize), String> {
    let parse = |part: &str| part.parse::<usize>().ok();
    text.split_once(':')
        .and_then(|(message, byte)| Some((parse(message)?, parse(byte)?)))
        .ok_or_else(|| "expected two numbers, as in 3:120".to_owned())
}
