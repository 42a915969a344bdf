//! What `afterimage replay` takes.

use std::path::PathBuf;

use afterimage::export::Form;
use afterimage::replay::ReplayPolicy;
use clap::{Args, ValueEnum, ValueHint};

use crate::args::{Coloring, CounterChoice, CounterChoiceParser, Fitting, Input};

use super::policies::PolicyParser;

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
    /// `systemInstruction` and `contents` of Gemini
    Gemini,
}

impl RequestForm {
    /// The form of the provider.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::Openai => Form::OpenaiChat,
            Self::Responses => Form::Responses,
            Self::Anthropic => Form::Anthropic,
            Self::Gemini => Form::Gemini,
        }
    }
}

const HELP: &str = "\
Example: afterimage replay session.jsonl --budget 32k --policy none,sliding,blocks
Example: afterimage replay session.jsonl --budget 32k --as anthropic --emit requests/

Columns of the table:
  turns   the turns of the agent, each with one request
  sent    the tokens of all requests
  cached  the share of them that was an unchanged prefix of the request before
  billed  requests and summaries in tokens of plain input: by default one that is written to the
          cache costs 1.25, one that is read from it 0.1, one that a summary is written in 5
  asked   where summaries cost, the tokens that a model was asked and answered for them
  used    how much of the room requests used once the whole session no longer fitted
  blocks  how often older frames were compressed
  names   how many of the names that the turns needed were still in their requests: names
          (paths, ids) of frames that the request no longer held whole; – if there are none
  faults  requests over the budget, requests that could not be made, and calls or results that
          lost their other half; each kind has a line of its own
  cost    with --model, what all of it cost, with what the agent answered

Columns that --survival adds in a table of its own: what one in eight of the requests that hold less
than the whole session still says of it.
  first   the user's first message, and  later  what the user said after it, by runs of five words
  rules   sentences of the user with words such as never, must, only, don't
  error   the line of the last result that tells of an error
  todo    the open items of the last plan that a call wrote down
  files   the names of the files that calls changed

The figures are those of a simulation: requests are made of the frames, and the usage that a
provider reported is not read.";

/// Simulate what the requests of a session would have cost, by policy
///
/// Renders the context before each turn of the agent as a framework would have sent it. Adds up
/// what was sent, and how much of it was an unchanged prefix of the request before (billed at a
/// tenth). Says which names that the agent went on to use were still there, what counted, how
/// far off calibrated counts are, and what was taken off the budget.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage replay session.jsonl --budget 32k --policy sliding,blocks",
    after_long_help = HELP
)]
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
    #[arg(long, value_parser = CounterChoiceParser, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CounterChoice>,
    /// Print the figures as JSON: of each policy, for each file and for all
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
