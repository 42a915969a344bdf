//! What `afterimage requests` takes.

use clap::Args;

use crate::args::{Cache, Coloring, CounterChoice, CounterChoiceParser, Input, Pricing};

const HELP: &str = "\
Example: afterimage requests traffic.har

Columns of the table:
  #         the number of the request, for `render --request` and `diff FILE@NUMBER`
  FRAME     the first frame of the answer; – where there is none
  TIME      when the request went out; of a transcript, when the answer came
  LINE      where it stands in the file; of a transcript, where its answer does
  TOOLS     the tokens of the tool definitions, where the source holds them
  SYSTEM    the tokens of the system prompt and of the operator's messages
  MESSAGES  the tokens of the other messages
  GROWTH    how many tokens more than the request before it in the session
  INPUT     the tokens of the request, as the provider reported them
  CACHED    those of them that its cache served
  OUTPUT    the tokens of the answer
  THEN      why it failed; else the first place that differs from the request before: everything
            after it is billed again. + is a request that only adds to the one before,
            or differs in parameters that no cache looks at; what is billed again of that,
            the cache lost. ~ is what is counted here, where no report tells. → names the
            tools that the answer calls

A column that no request has anything for is left out, and on a narrow terminal SYSTEM, MESSAGES
and GROWTH are beside what is reported. Their tokens, and those of TOOLS, are counted here: those of
each text as it is written, an estimate of what a provider makes of it.";

/// List the requests of a session: what each held, how it grew, and where it first differs
///
/// Recorded traffic and requests that a client logged are listed as they are. From a transcript
/// each request is worked out: it is the context before an answer of the agent. What transcripts
/// lack (the tools, the parameters) is said once.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage requests traffic.har",
    after_long_help = HELP
)]
pub(crate) struct Requests {
    #[command(flatten)]
    pub(crate) input: Input,
    /// Go on printing requests as they come, until Ctrl-C: the file is looked at twice a second
    #[arg(long, conflicts_with_all = ["since", "until", "project"])]
    pub(crate) follow: bool,
    /// The provider whose rules say what its cache takes of an unchanged beginning
    #[arg(long, value_enum, default_value_t)]
    pub(crate) cache: Cache,
    /// Which tokenizer counts; by default o200k
    #[arg(long, value_parser = CounterChoiceParser, help_heading = "Rendering")]
    pub(crate) tokenizer: Option<CounterChoice>,
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
