//! What `afterimage demo` takes.

use clap::Args;

use crate::args::{Coloring, Rendering};

/// Show the main job on a sample session: nothing to prepare, takes no file
#[derive(Debug, Args)]
#[command(after_help = "Example: afterimage demo --tokenizer cl100k")]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) rendering: Rendering,
    /// Print the same as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) coloring: Coloring,
}
