//! What `afterimage formats` takes.

use clap::Args;

use crate::args::Coloring;

/// List the formats of transcripts: what each is, and what it is recognised by
///
/// afterimage recognises a file by its content, and never by its name. `--input-format NAME` of
/// other commands overrules that.
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage formats --json")]
pub(crate) struct Formats {
    /// Print one JSON object per format
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
