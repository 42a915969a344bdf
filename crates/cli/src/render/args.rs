//! What `afterimage render` takes.

use clap::{ArgGroup, Args, ValueEnum};

use crate::args::{Coloring, Input, Rendering};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderAs {
    /// The text. On a terminal it is coloured, and the margin names the facets. Elsewhere a line
    /// `[Session NAME]` stands where another session follows
    Text,
    /// One JSON object per session: messages, an owner for every byte, tokens
    Messages,
    /// One JSON object per frame: its snapshot in wire form
    Snapshots,
}

/// Print what the model reads: as text, as messages with an owner for every byte, or as snapshots
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage render session.jsonl --from 3 --to 5 --as messages")]
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
    /// End with this frame, by its sequence: the context is as it was after that frame
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) to: Option<u64>,
    /// Print this request, by its number in `afterimage requests`: the recorded body, uncompressed,
    /// or else its JSON
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with_all = ["what", "from", "to", "format", "whole"]
    )]
    pub(crate) request: Option<usize>,
    /// With --request: print only what was sent, not the earlier messages that the provider keeps
    #[arg(long, requires = "request")]
    pub(crate) as_sent: bool,
    /// Print the response to this request: the recorded bytes, or else the text of its frames
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
    /// Print the whole history, also frames that a summary replaced in the context
    #[arg(long)]
    pub(crate) whole: bool,
    /// Print JSON: `--as messages`, unless `--as` is given
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
