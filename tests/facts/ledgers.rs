//! What a ledger says of a session, frame by frame.

use afterimage_testkit::facts::{hash_of_all, short_hash};

use crate::{
    steps::{Class, Passage, Touch},
    summary::{Chronicle, Happened, Ledger},
    veil::Frame,
};

/// A ledger that reads a session, with what it said last.
#[derive(Default)]
pub(super) struct LedgerRoom {
    ledger: Ledger,
    calls: usize,
    rules: Vec<String>,
    plan: String,
    error: String,
    /// The files of each call that waits for its answer, by its number.
    waiting: Vec<(usize, Vec<(&'static str, String)>)>,
    /// The files that were changed.
    pub(super) changed: std::collections::BTreeSet<String>,
}

/// What a ledger said of a frame.
#[derive(Default)]
pub(super) struct Said {
    /// The hash of each text that the user said.
    pub(super) words: Vec<String>,
    /// Of each call its tool and files.
    pub(super) calls: Vec<(String, Vec<(&'static str, String)>)>,
    /// Of each answer what became of its call.
    pub(super) outcomes: Vec<Class>,
    /// What changed of the user's rules: `+` or `-`, and the hash.
    pub(super) rules: String,
    /// The open steps of the plan, where they changed.
    pub(super) plan: Option<String>,
    /// The error that is open, where that changed.
    pub(super) error: Option<String>,
}

impl LedgerRoom {
    /// Reads a frame as a draft does: by its facets.
    pub(super) fn read_frame(&mut self, frame: &Frame) -> Said {
        self.read(|ledger, chronicle| ledger.read_frame_into(frame, Some(chronicle)))
    }

    /// Reads a frame as a compression does: by what was rendered.
    pub(super) fn read_passage(&mut self, passage: &Passage) -> Said {
        self.read(|ledger, chronicle| ledger.read_into(passage, Some(chronicle)))
    }

    fn read(&mut self, read: impl FnOnce(&mut Ledger, &mut Chronicle)) -> Said {
        let ledger = &mut self.ledger;
        let (calls, happened) = Chronicle::events(self.calls, |chronicle| read(ledger, chronicle));
        self.calls = calls;
        let mut said = Said::default();
        for event in happened {
            match event {
                Happened::Asked(text) if text.is_empty() => {}
                Happened::Asked(text) => said.words.push(short_hash(&text)),
                Happened::Replied(_) => {}
                Happened::Called { call, tool, files } => {
                    let files: Vec<_> =
                        files.into_iter().map(|(touch, path)| (name_of(touch), path)).collect();
                    self.waiting.push((call, files.clone()));
                    said.calls.push((tool, files));
                }
                Happened::Answered { call, class } => {
                    said.outcomes.push(class);
                    let is_failed = class.is_failure();
                    let files = self.waiting.iter().filter(|(of, _)| *of == call && !is_failed);
                    let changed =
                        files.flat_map(|(_, files)| files).filter(|(of, _)| *of != "read");
                    self.changed.extend(changed.map(|(_, path)| path.clone()));
                }
            }
        }
        self.say_changes(&mut said);
        said
    }

    fn say_changes(&mut self, said: &mut Said) {
        let rules: Vec<String> = self.ledger.rules().map(|(_, rule)| short_hash(rule)).collect();
        let new = rules.iter().filter(|rule| !self.rules.contains(rule)).map(|rule| ('+', rule));
        let gone = self.rules.iter().filter(|rule| !rules.contains(rule)).map(|rule| ('-', rule));
        let changes: Vec<String> =
            new.chain(gone).map(|(mark, of)| format!("{mark}{of}")).collect();
        said.rules = changes.join(" ");
        self.rules = rules;
        let steps: Vec<&str> = self.ledger.open_steps().map(|(_, step)| step).collect();
        said.plan = replaced(&mut self.plan, hash_of_all(&steps));
        let error = self.ledger.open_error();
        let error = error.map_or_else(
            || "none".to_owned(),
            |(_, call, text)| format!("{} {}", short_hash(call), short_hash(text)),
        );
        said.error = replaced(&mut self.error, error);
    }
}

/// The new value, where it is another one.
fn replaced(known: &mut String, new: String) -> Option<String> {
    let is_new = *known != new && !(known.is_empty() && matches!(&*new, "none" | "-"));
    known.clone_from(&new);
    is_new.then_some(new)
}

pub(super) fn name_of(touch: Touch) -> &'static str {
    match touch {
        Touch::Read => "read",
        Touch::Changed => "changed",
        Touch::Written => "written",
        Touch::Deleted => "deleted",
        Touch::Moved => "moved",
        Touch::MovedHere => "moved-here",
    }
}
