//! A file, or standard input, with the progress of reading it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    failure::{Failure, Outcome},
    output,
};

/// Progress is shown from this many bytes on.
const LARGE: u64 = 4 << 20;

/// A file, or standard input, with the progress of reading it.
pub(super) struct CountedFrame {
    input: Box<dyn Read + Send>,
    pub(super) bar: ProgressBar,
    /// Bytes that are still to be read before progress is shown; `None` once it is, or never is.
    hidden: Option<u64>,
}

impl CountedFrame {
    pub(super) fn open(path: &Path, shows: bool) -> Outcome<Self> {
        let cannot = |error: io::Error| Failure::cannot_open(&error).file(path);
        let (input, size): (Box<dyn Read + Send>, _) = if is_stdin(path) {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(cannot)?;
            let metadata = file.metadata().map_err(cannot)?;
            if metadata.is_dir() {
                let failure = Failure::new("expected a file, found a directory").file(path);
                return Err(failure.hint("name the files in it, as in DIR/*.jsonl").into());
            }
            (Box::new(file), Some(metadata.len()).filter(|_| metadata.is_file()))
        };
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
        let template = match size {
            Some(_) => "{bar:30.cyan/dim} {bytes:>10} of {total_bytes}, {eta} left",
            None => "{spinner:.cyan} {bytes} read",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let is_worth_it = shows && output::shows_progress() && size.is_none_or(|size| size > LARGE);
        let after = if size.is_some() { 0 } else { LARGE };
        Ok(Self { input, bar, hidden: is_worth_it.then_some(after) })
    }
}

impl Read for CountedFrame {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bar.inc(read as u64);
        if let Some(left) = self.hidden {
            self.hidden = left.checked_sub(read as u64);
            if self.hidden.is_none() {
                self.bar.set_draw_target(output::progress_target());
            }
        }
        Ok(read)
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
