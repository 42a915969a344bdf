//! Whether everything in a directory is what was written, and comes to the same.

use std::{ops::RangeInclusive, path::Path, sync::Arc};

use serde::{Serialize, Serializer};

use super::{
    blocks,
    derived::documents,
    dir::SessionDir,
    end::SessionMark,
    layout::{ACKNOWLEDGED, CURRENT},
    opening,
    options::SessionOptions,
    sealed,
    shelf::Shelf,
};
use crate::{
    Data, Difference, Error, ErrorKind, Result, SnapshotSource, Timeline, Verification,
    json::Value,
    log::{Files, within},
};

/// What checking a directory found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirVerification {
    /// Whether there is neither a difference nor a problem.
    pub valid: bool,
    /// How many turns there are, those that a branch shares included.
    pub turns: u64,
    /// Where a state that is kept is not what the turns come to, with the turn.
    #[serde(serialize_with = "with_turns")]
    pub differences: Vec<(u64, Difference)>,
    /// What to do about it.
    pub suggestion: Option<String>,
    /// What is damaged.
    pub problems: Vec<String>,
    /// What follows from what is damaged, in sentences: it is no damage of its own.
    pub follows: Vec<String>,
    /// The torn tails: what follows the last whole turn, and was passed over. Each says whether the
    /// file merely ends early, as an append leaves it that did not come to its end, or holds bytes
    /// that fail their check.
    pub torn: Vec<String>,
    /// What is odd and does no harm: an index that is ahead, a copy of what was cut before.
    pub notes: Vec<String>,
}

/// Writes each difference with its turn.
fn with_turns<S: Serializer>(
    differences: &[(u64, Difference)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct OfTurn<'d> {
        #[serde(rename = "turnId")]
        turn_id: u64,
        #[serde(flatten)]
        difference: &'d Difference,
    }
    let differences = differences.iter();
    serializer.collect_seq(
        differences.map(|(turn_id, difference)| OfTurn { turn_id: *turn_id, difference }),
    )
}

impl DirVerification {
    fn compare(&mut self, verification: Verification) {
        let Verification { turn_id, differences, suggestion, .. } = verification;
        self.differences.extend(differences.into_iter().map(|difference| (turn_id, difference)));
        self.suggestion = self.suggestion.take().or(suggestion.map(str::to_owned));
    }

    fn concluded(mut self) -> Self {
        self.valid = self.problems.is_empty() && self.differences.is_empty();
        if !self.problems.is_empty() {
            let suggestion = "`repair` brings back what is intact, and accepts what is lost.";
            self.suggestion = Some(suggestion.to_owned());
        }
        self
    }
}

impl SessionDir {
    /// Checks everything in a directory, and changes nothing: every line and document against its
    /// checksum, and every state that is kept against the one that the turns come to, replayed from
    /// the beginning. Reads the whole directory, and applies all turns.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFormat`] and [`ErrorKind::Version`] for what is no session of this
    /// version, [`ErrorKind::Io`]. Damage is no error here: it is what was asked for.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "as for opening: whoever has the disk shares it"
    )]
    pub fn verify(
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        options: &SessionOptions,
    ) -> Result<DirVerification> {
        let directory = directory.as_ref();
        let files = within(files, directory);
        let mut found = DirVerification::default();
        let meta = match opening::meta(&*files, directory, options) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                found.problems.push(error.to_string());
                return Ok(found.concluded());
            }
            meta => meta?,
        };
        let past = match opening::past(&files, directory, &meta, 0) {
            Ok(past) => past,
            Err(error) => {
                found.problems.push(error.to_string());
                return Ok(found.concluded());
            }
        };
        let first = past.slots.len() as u64 + 1;
        let remembered = SessionMark::read(&*files, directory);
        let turns = blocks::read(&*files, directory, first)?;
        let lost = remembered.lost_end(directory, first, &turns);
        found.turns = (past.slots.len() + turns.slots.len()) as u64;
        found.problems.extend(turns.problems.iter().map(Error::to_string));
        found.torn = opening::torn_tail(&turns).into_iter().collect();
        found.notes = opening::end_notes(&turns);
        found.lost(&turns.lost);
        let crcs = (first, turns.crcs);
        let shelf = Arc::new(Shelf::new(Arc::clone(&files), directory, crcs, past.shelf)?);
        if found.problems.is_empty() {
            let config = meta.config.clone();
            let slots = past.slots.into_iter().chain(turns.slots).collect();
            match opening::timeline(&meta, config, options.mappers.clone(), slots, &shelf) {
                Ok((timeline, _)) => found.replayed(&timeline, &shelf, first),
                Err(error) => {
                    found.shelved(&shelf);
                    let is_cause = found.problems.is_empty();
                    let texts = if is_cause { &mut found.problems } else { &mut found.follows };
                    texts.push(error.to_string());
                }
            }
        } else {
            found.shelved(&shelf);
        }
        if remembered.is_torn() {
            let note = "a write to it was broken off, and the one before it counts";
            found.notes.push(format!("{ACKNOWLEDGED}: {note}"));
        }
        found.problems.extend(lost.map(|lost| lost.to_error().to_string()));
        found.documents(&*files, directory, &shelf)?;
        Ok(found.concluded())
    }
}

impl DirVerification {
    /// Replays every turn, and compares every snapshot on the way.
    fn replayed(&mut self, timeline: &Timeline, shelf: &Shelf, first: u64) {
        let last = timeline.last_turn();
        let mut state: Option<Data> = None;
        let entries = shelf.entries();
        if !entries.contains_key(&0) && first == 1 {
            self.problems.push("the initial snapshot is missing".to_owned());
        }
        for (turn, _) in entries.range(last + 1..) {
            self.notes.push(format!(
                "the snapshot of turn {turn} is ahead of the log, which ends with turn {last}"
            ));
        }
        let mut at = first - 1;
        if first > 1 {
            match shelf.nearest(at).and_then(|base| {
                base.map_or(timeline.state_at(at), |base| timeline.replay(&base, at))
            }) {
                Ok(shared) => state = Some(shared),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        for turn in entries.range(..=last).map(|(turn, _)| *turn) {
            let snapshot = match shelf.load(turn) {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    self.unsound(turn, &error);
                    continue;
                }
            };
            match &mut state {
                Some(state) => {
                    if self.walk(timeline, state, at, turn) {
                        self.compare(Verification::of(turn, state, &snapshot.state));
                    } else {
                        // What comes after a turn that cannot be applied is replayed from here.
                        state.clone_from(&snapshot.state);
                    }
                }
                None => state = Some(snapshot.state.clone()),
            }
            at = turn;
        }
        if let Some(mut state) = state
            && self.walk(timeline, &mut state, at, last)
        {
            self.compare(Verification::of(last, &state, timeline.state()));
        }
    }

    /// Applies the turns after `from` up to `to`; whether that went well.
    fn walk(&mut self, timeline: &Timeline, state: &mut Data, from: u64, to: u64) -> bool {
        let walked = timeline.each_turn(from + 1, to, |record| {
            timeline.applier(record.lenient).apply_all(state, &record.deltas).map(drop)
        });
        if let Err(error) = &walked {
            self.problems.push(error.to_string());
        }
        walked.is_ok()
    }

    /// Says which turns are lost, and which others cannot be reached without them.
    fn lost(&mut self, lost: &[RangeInclusive<u64>]) {
        let sum = |sum: u64, turns: &RangeInclusive<u64>| {
            sum.saturating_add(turns.end() - turns.start()).saturating_add(1)
        };
        let last = lost.iter().fold(self.turns, sum);
        for (index, turns) in lost.iter().enumerate() {
            let (from, to) = (*turns.start(), *turns.end());
            let (which, them) = if from == to {
                (format!("turn {from} is lost"), "it")
            } else {
                (format!("turns {from} to {to} are lost"), "them")
            };
            self.follows.push(if index == 0 && to < last {
                format!("{which}, and without {them} the turns up to {last} cannot be replayed")
            } else {
                which
            });
        }
    }

    /// A snapshot that cannot be read: for itself, or for one that it is based on.
    fn unsound(&mut self, turn: u64, error: &Error) {
        let text = error.to_string();
        if !self.problems.contains(&text) {
            return self.problems.push(text);
        }
        let base = error.place().file.as_deref().and_then(Path::file_name).unwrap_or_default();
        let base = base.to_string_lossy();
        self.follows.push(format!("the snapshot of turn {turn} is based on {base}"));
    }

    /// Checks the snapshots by themselves.
    fn shelved(&mut self, shelf: &Shelf) {
        for (turn, _) in shelf.entries() {
            match shelf.load(turn) {
                // What the log does not have any more is said of the log.
                Err(error) if error.kind() != ErrorKind::Base => self.unsound(turn, &error),
                _ => {}
            }
        }
    }

    /// Checks what is derived.
    fn documents(&mut self, files: &dyn Files, directory: &Path, shelf: &Shelf) -> Result<()> {
        for name in documents(files, directory)? {
            let path = directory.join(&name);
            let Some(bytes) = sealed::read_if_there(files, &path)? else {
                self.notes.push(format!("{name} is missing, and will be made anew"));
                continue;
            };
            let value = match sealed::open(&bytes) {
                Ok(value) => value,
                Err(error) => {
                    self.problems.push(error.in_file(&path).to_string());
                    continue;
                }
            };
            let turn = value.get("lastTurn").and_then(Value::as_u64).unwrap_or_default();
            if turn > self.turns && self.problems.is_empty() {
                self.notes.push(format!("{name} is ahead of the log: it knows turn {turn}, and the log ends with turn {}", self.turns));
            }
            let is_current = turn == self.turns
                && value.str_at("lastTurnChecksum") == shelf.crc(turn).as_deref();
            if name == CURRENT && is_current && self.problems.is_empty() {
                let state = value.get("state").cloned().map(Data::from).unwrap_or_default();
                if Some(state.checksum().as_str()) != value.str_at("checksum") {
                    self.problems
                        .push(format!("{name} is not the state that it has the checksum of"));
                }
            }
        }
        Ok(())
    }
}
