//! What `afterimage expand` takes.

use clap::{ArgGroup, Args};

use crate::args::{CompressAs, Fitting, Input, Rendering, Selection, budget_or_range, tokens};

/// Print the original text of a block, byte for byte
///
/// Takes the options of `compress`, plans the same, and prints the text of the frames that the
/// block stands for, with nothing between them. With `--around` or `--frame` it prints the part
/// that is looked for, in at most 1,000 tokens; a note says where it stands.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: afterimage expand session.jsonl --budget 8000 --block block-1-24\n\
                  Example: afterimage expand session.jsonl --budget 8000 --around src/main.rs"
)]
#[command(mut_arg("budget", budget_or_range))]
#[command(group(ArgGroup::new("aim").args(["budget", "range"]).required(true).multiple(true)))]
#[command(group(ArgGroup::new("part").args(["around", "frame"]).multiple(true)))]
pub(crate) struct Expand {
    #[command(flatten)]
    pub(crate) input: Input,
    /// The id of the block, as `compress` prints it; without it --around and --frame look
    /// everywhere
    #[arg(
        long,
        value_name = "ID",
        allow_hyphen_values = true,
        required_unless_present_any = ["around", "frame"]
    )]
    pub(crate) block: Option<String>,
    /// Print the part of the frame that says this text first, and no more tokens than --limit
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) around: Option<String>,
    /// Print this frame alone, or the part of it with --around, and no more tokens than --limit
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) frame: Option<u64>,
    /// How many tokens --around and --frame print at most; by default 1000
    #[arg(long, value_name = "TOKENS", value_parser = tokens, requires = "part")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) fitting: Fitting,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// The `--as` that `compress` was given: it plans exports over frames in the format native
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    pub(crate) what: Option<CompressAs>,
    #[command(flatten)]
    pub(crate) rendering: Rendering,
}
