//! Which files a session read and wrote.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::touch::{Touch, TouchKind};
use crate::id::FrameSeq;

/// What calls did with files, in their order. A call that failed is forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTouches(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    touch: Touch,
    tool: String,
    frame: FrameSeq,
    /// The request that it belongs to, by its index.
    step: Option<usize>,
    call: u64,
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
        touch: Touch,
        tool: &str,
        frame: FrameSeq,
        step: Option<usize>,
        call: u64,
    ) {
        self.0.push(Entry { touch, tool: tool.to_owned(), frame, step, call });
    }

    /// Whether a call touched a file. Linear in what came after the call.
    pub(super) fn has(&self, call: u64) -> bool {
        self.0.iter().rev().take_while(|entry| entry.call >= call).any(|entry| entry.call == call)
    }

    /// Forgets what a call did. Linear in what came after the call.
    pub(super) fn forget(&mut self, call: u64) {
        let start = self.0.partition_point(|entry| entry.call < call);
        let end = self.0.partition_point(|entry| entry.call <= call);
        self.0.drain(start..end);
    }

    /// What became of the files. What a call without a result did is not confirmed. Linear in the
    /// touches.
    pub(super) fn files(&self, unanswered: &HashSet<u64>) -> Files<'_> {
        let mut files = Files::default();
        self.0.iter().for_each(|entry| files.take(entry, !unanswered.contains(&entry.call)));
        files
    }
}

impl<'t> Files<'t> {
    fn take(&mut self, entry: &'t Entry, is_confirmed: bool) {
        let path = entry.touch.path.as_str();
        let status = match entry.touch.kind {
            TouchKind::Read => {
                *self.read.entry(path).or_default() += 1;
                return;
            }
            _ if !is_confirmed => "unconfirmed",
            TouchKind::Deleted => "deleted",
            TouchKind::Edited => "modified",
            // What was read before it was written was there.
            TouchKind::Written if self.read.contains_key(path) => "modified",
            TouchKind::Written => "created",
        };
        let index = *self.at.entry(path).or_insert_with(|| {
            self.written.push(File { path, status, by: Vec::new(), last: entry.frame });
            self.written.len() - 1
        });
        let Some(file) = self.written.get_mut(index) else { return };
        file.last = entry.frame;
        // A file that was made here stays one, however often it is edited after.
        file.status = match (file.status, status) {
            ("created", "modified") => "created",
            // What is known stays known.
            (known, "unconfirmed") => known,
            (_, status) => status,
        };
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
