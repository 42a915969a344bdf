//! `afterimage formats`: what can be read.

pub(crate) mod args;

use std::io::Write;

use afterimage::transcript::TranscriptFormat;

use crate::{answer::answer, failure::Outcome, output::Output, style};

answer! {
    /// A format that can be read.
    pub(crate) struct FormatAnswer {
        /// its name, for `--input-format`
        name: &'static str,
        /// what it is
        description: &'static str,
        /// by which signs it is recognised
        recognised_by: &'static str,
    }
}

pub(crate) fn run(args: &args::Formats) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut formats = TranscriptFormat::ALL.to_vec();
    formats.sort_unstable_by_key(|format| format.name());
    let width = formats.iter().map(|format| format.name().len()).max().unwrap_or_default();
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    for format in formats {
        let (name, signs) = (format.name(), format.recognised_by());
        let description = format.description().trim_end_matches('.');
        if args.json {
            out.answer(&FormatAnswer { name, description, recognised_by: signs })?;
            continue;
        }
        writeln!(out, "{bold}{name:<width$}{bold:#}  {description}")?;
        writeln!(out, "{:<width$}  {dim}recognised by {signs}{dim:#}", "")?;
    }
    Ok(out.flush()?)
}
