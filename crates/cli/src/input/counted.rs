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

/// Where the progress of reading a file is shown.
#[derive(Clone, Copy)]
pub(crate) enum Progress<'p> {
    /// Nowhere: text appears on the terminal meanwhile.
    Hidden,
    /// In a bar of its own.
    Shown,
    /// In the bar of several files, by bytes.
    PartOf(&'p ProgressBar),
}

impl Progress<'_> {
    pub(super) fn is_shown(self) -> bool {
        matches!(self, Self::Shown)
    }
}

/// A file, or standard input, with the progress of reading it.
pub(super) struct CountedFrame {
    input: Box<dyn Read + Send>,
    pub(super) bar: ProgressBar,
    /// The bar of several files.
    all: Option<ProgressBar>,
    /// Bytes that are still to be read before progress is shown; `None` once it is, or never is.
    hidden: Option<u64>,
}

impl CountedFrame {
    pub(super) fn open(path: &Path, progress: Progress<'_>) -> Outcome<Self> {
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
        bar.set_style(style(size));
        let is_worth_it =
            progress.is_shown() && output::shows_progress() && size.is_none_or(|size| size > LARGE);
        let after = if size.is_some() { 0 } else { LARGE };
        let all = match progress {
            Progress::PartOf(bar) => Some(bar.clone()),
            Progress::Hidden | Progress::Shown => None,
        };
        Ok(Self { input, bar, all, hidden: is_worth_it.then_some(after) })
    }
}

impl Read for CountedFrame {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            // Many that were read may wait to be shown, and a program may have few files open.
            self.input = Box::new(io::empty());
        }
        self.bar.inc(read as u64);
        if let Some(all) = &self.all {
            all.inc(read as u64);
        }
        if let Some(left) = self.hidden {
            self.hidden = left.checked_sub(read as u64);
            if self.hidden.is_none() {
                self.bar.set_draw_target(output::progress_target());
            }
        }
        Ok(read)
    }
}

/// The bar of several files, by bytes.
pub(super) fn bar_of_all<'p>(files: impl Iterator<Item = &'p Path>) -> ProgressBar {
    let sizes = files.filter_map(|path| Some(path.metadata().ok()?.len()));
    let size = sizes.sum();
    let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::hidden());
    bar.set_style(style(Some(size)));
    if size > LARGE && output::shows_progress() {
        bar.set_draw_target(output::progress_target());
    }
    bar
}

fn style(size: Option<u64>) -> ProgressStyle {
    let template = match size {
        Some(_) => "{bar:30.cyan/dim} {bytes:>10} of {total_bytes}, {eta} left",
        None => "{spinner:.cyan} {bytes} read",
    };
    let style = ProgressStyle::with_template(template);
    style.map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("━╸─"))
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
