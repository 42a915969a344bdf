//! Which files a session read and wrote.

use std::collections::{BTreeSet, HashMap};

use crate::{id::FrameSeq, steps::Touch, summary::Ledger};

/// What calls did with files, in their order. A call that failed is forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTouches(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    touch: Touch,
    path: String,
    tool: String,
    frame: FrameSeq,
    /// The request that it belongs to, by its index.
    step: Option<usize>,
    call: usize,
}

/// The files of a session.
#[derive(Debug, Default)]
pub(super) struct Files<'t> {
    /// Those that were written, in the order in which they were first.
    pub(super) written: Vec<File<'t>>,
    at: HashMap<&'t str, usize>,
    read: HashMap<&'t str, u64>,
    by_step: HashMap<usize, BTreeSet<usize>>,
}

/// A file that a call wrote.
#[derive(Debug)]
pub(super) struct File<'t> {
    pub(super) path: &'t str,
    pub(super) status: &'static str,
    /// The tools with how often each touched it.
    pub(super) by: Vec<(&'t str, u64)>,
    pub(super) last: FrameSeq,
}

impl FileTouches {
    pub(super) fn push(
        &mut self,
        (touch, path): (Touch, String),
        tool: &str,
        frame: FrameSeq,
        step: Option<usize>,
        call: usize,
    ) {
        self.0.push(Entry { touch, path, tool: tool.to_owned(), frame, step, call });
    }

    /// Forgets what a call touched that failed. Linear in what came after the call.
    pub(super) fn forget(&mut self, call: usize) {
        let start = self.0.partition_point(|entry| entry.call < call);
        let end = self.0.partition_point(|entry| entry.call <= call);
        self.0.drain(start..end);
    }

    /// The files, each with what became of it by the ledger, which knows of calls that were answered.
    /// What others did is not confirmed. Linear in the touches.
    pub(super) fn files<'t>(&'t self, ledger: &Ledger) -> Files<'t> {
        let mut files = Files::default();
        self.0.iter().for_each(|entry| files.take(entry, ledger));
        files
    }
}

impl<'t> Files<'t> {
    fn take(&mut self, entry: &'t Entry, ledger: &Ledger) {
        let path = entry.path.as_str();
        if entry.touch == Touch::Read {
            *self.read.entry(path).or_default() += 1;
            return;
        }
        let index = *self.at.entry(path).or_insert_with(|| {
            let status = ledger.fate_of(path).unwrap_or("unconfirmed");
            self.written.push(File { path, status, by: Vec::new(), last: entry.frame });
            self.written.len() - 1
        });
        let Some(file) = self.written.get_mut(index) else { return };
        file.last = entry.frame;
        match file.by.iter_mut().find(|(name, _)| *name == entry.tool) {
            Some((_, count)) => *count += 1,
            None => file.by.push((&entry.tool, 1)),
        }
        if let Some(step) = entry.step {
            self.by_step.entry(step).or_default().insert(index);
        }
    }

    /// The files that were read and never written, with how often.
    pub(super) fn only_read(&self) -> Vec<(&'t str, u64)> {
        let read = self.read.iter().map(|(path, count)| (*path, *count));
        read.filter(|(path, _)| !self.at.contains_key(path)).collect()
    }

    /// How many files a request led to.
    pub(super) fn written_in(&self, step: usize) -> usize {
        self.by_step.get(&step).map_or(0, BTreeSet::len)
    }
}
