//! What `afterimage export` takes.

use clap::{ArgGroup, Args, ValueEnum};

use crate::args::{Coloring, Input};

const HELP: &str = "\
Example: afterimage export --otlp session.jsonl > spans.json
         curl -H 'Content-Type: application/json' -d @spans.json http://localhost:4318/v1/traces

Spans:
  invoke_agent       the session; its trace holds the others
  chat MODEL         a request: messages, tools, parameters, the answer, usage, the error
  execute_tool NAME  a call of a tool, where the source has times of call and result

A span repeats the whole conversation so far, as each request does: a long session becomes a large
document. `docs/exports.md` lists the attributes.";

/// Write recordings in the form of another program: as spans of OpenTelemetry
///
/// A session is a trace, with a span for each of its requests. Each span holds the whole request
/// and what came back, by the semantic conventions for generative AI.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage export --otlp session.jsonl > spans.json",
    after_long_help = HELP
)]
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
