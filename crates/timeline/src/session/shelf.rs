//! The snapshots of a directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    layout::{MOST_DOCUMENT, SNAPSHOT_INDEX, SNAPSHOTS, snapshot_name, snapshot_turn},
    sealed,
};
use crate::{
    CompressedSnapshot, Data, Error, ErrorKind, Result, SnapshotInfo, SnapshotReason,
    SnapshotSource, StateSnapshot,
    json::{Object, ObjectExt, Value},
    log::{Files, OpenMode, pack_file, read_file, unpack_file, write_atomic},
};

/// How many snapshots stay in memory that were read.
const AT_HAND: usize = 4;

/// The snapshots of a directory, read when they are asked for.
#[derive(Debug)]
pub(super) struct Shelf {
    files: Arc<dyn Files>,
    directory: PathBuf,
    inner: Mutex<Inner>,
    /// Where the snapshots of the past are that a branch shares, and up to which turn.
    parent: Option<(Arc<Shelf>, u64)>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<u64, Entry>,
    /// The checksums of the turns' lines, from the first turn of the directory on.
    crcs: Vec<String>,
    first: u64,
    /// The snapshots that were read last, the latest at the end.
    read: Vec<StateSnapshot>,
    /// Those that the turns do not go on from, whatever their checksums say.
    drifted: BTreeSet<u64>,
}

/// What is known of a snapshot without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) reason: SnapshotReason,
    pub(super) bytes: u64,
    pub(super) base: Option<u64>,
    pub(super) depth: u64,
    pub(super) delta_count: u64,
}

impl Entry {
    pub(super) fn to_json(&self, turn: u64) -> Value {
        let mut object = Object::new();
        object.put("snapshotId", format!("snapshot-{turn}"));
        object.put("turnId", turn);
        object.put("file", self.file.as_str());
        object.put("reason", self.reason.as_str());
        object.put("bytes", self.bytes);
        object.put_some("baseSnapshot", self.base.map(|base| format!("snapshot-{base}")));
        object.put("depth", self.depth);
        object.put("deltaCount", self.delta_count);
        Value::Object(object)
    }
}

impl Entry {
    fn from_json(value: &Value) -> Option<(u64, Self)> {
        let base = match value.str_at("baseSnapshot") {
            Some(base) => Some(base.strip_prefix("snapshot-")?.parse().ok()?),
            None => None,
        };
        let entry = Self {
            file: value.str_at("file")?.to_owned(),
            reason: SnapshotReason::from_name(value.str_at("reason")?)?,
            bytes: value.get("bytes")?.as_u64()?,
            base,
            depth: value.get("depth")?.as_u64()?,
            delta_count: value.get("deltaCount")?.as_u64()?,
        };
        Some((value.get("turnId")?.as_u64()?, entry))
    }
}

/// A snapshot as it is stored.
enum Stored {
    Full(StateSnapshot, Object),
    Compressed(CompressedSnapshot),
}

impl Shelf {
    pub(super) fn new(
        files: Arc<dyn Files>,
        directory: &Path,
        (first, crcs): (u64, Vec<String>),
        parent: Option<(Arc<Shelf>, u64)>,
    ) -> Result<Self> {
        let shelf = Self {
            files,
            directory: directory.join(SNAPSHOTS),
            inner: Mutex::new(Inner { crcs, first, ..Inner::default() }),
            parent,
        };
        let mut known = shelf.known(directory);
        for name in sealed::names(&*shelf.files, &shelf.directory)? {
            let Some(turn) = snapshot_turn(&name) else { continue };
            let path = shelf.directory.join(&name);
            let opened = shelf.files.open(&path, OpenMode::Read).and_then(|file| file.length());
            let bytes = match opened {
                // A writer removed it meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| Error::io(error, "cannot open").in_file(&path))?,
            };
            let is_it = |entry: &Entry| entry.file == name && entry.bytes == bytes;
            if let Some(entry) = known.remove(&turn).filter(is_it) {
                shelf.inner().entries.insert(turn, entry);
                continue;
            }
            shelf.written(turn, name, bytes);
            // What cannot be read is found when it is asked for.
            if let Ok(stored) = shelf.stored(turn) {
                shelf.describe(turn, &stored);
            }
        }
        Ok(shelf)
    }

    /// What the index says of the snapshots; nothing where it cannot be read.
    fn known(&self, directory: &Path) -> BTreeMap<u64, Entry> {
        let read = sealed::read_if_there(&*self.files, &directory.join(SNAPSHOT_INDEX));
        let index = read.ok().flatten().and_then(|bytes| sealed::open(&bytes).ok());
        let entries = index.as_ref().and_then(|index| index.get("snapshots")?.as_array());
        entries.unwrap_or_default().iter().filter_map(Entry::from_json).collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, turn: u64, stored: &Stored) {
        if let Some(entry) = self.inner().entries.get_mut(&turn) {
            let (head, base, depth) = match stored {
                Stored::Full(snapshot, _) => (snapshot, None, 0),
                Stored::Compressed(snapshot) => {
                    (snapshot.head(), Some(snapshot.base_turn), snapshot.depth)
                }
            };
            entry.reason = head.reason;
            entry.delta_count = head.delta_range.delta_count;
            (entry.base, entry.depth) = (base, depth);
        }
    }

    /// The snapshots of the directory itself, by their turns.
    pub(super) fn entries(&self) -> BTreeMap<u64, Entry> {
        self.inner().entries.clone()
    }

    pub(super) fn infos(&self) -> Vec<SnapshotInfo> {
        let info = |(turn, entry): (&u64, &Entry)| SnapshotInfo {
            turn_id: *turn,
            reason: entry.reason,
            bytes: entry.bytes,
            base: entry.base,
        };
        self.inner().entries.iter().map(info).collect()
    }

    /// A turn's line was appended.
    pub(super) fn appended(&self, crc: String) {
        self.inner().crcs.push(crc);
    }

    /// The checksum of a turn's line.
    pub(super) fn crc(&self, turn: u64) -> Option<String> {
        let inner = self.inner();
        let index = turn.checked_sub(inner.first)?;
        inner.crcs.get(usize::try_from(index).ok()?).cloned()
    }

    pub(super) fn path(&self, turn: u64) -> Option<PathBuf> {
        self.inner().entries.get(&turn).map(|entry| self.directory.join(&entry.file))
    }

    fn stored(&self, turn: u64) -> Result<Stored> {
        let missing = || {
            let message = format!("there is no snapshot of turn {turn}");
            Error::new(ErrorKind::Base, message).in_file(&self.directory)
        };
        let path = self.path(turn).ok_or_else(missing)?;
        let bytes = read_file(&*self.files, &path, MOST_DOCUMENT)?;
        let read = || {
            let is_packed = path.extension().is_some_and(|extension| extension == "zst");
            let bytes = if is_packed {
                let (bytes, error) = unpack_file(&bytes, MOST_DOCUMENT);
                error.map_or(Ok(bytes), Err)?
            } else {
                bytes
            };
            let document: Data = sealed::open_as(&bytes)?;
            let stored = if document.get("baseSnapshot").is_some() {
                Stored::Compressed(CompressedSnapshot::from_json(document.to_json())?)
            } else {
                let (snapshot, checksums) = StateSnapshot::unchecked(document)?;
                Stored::Full(snapshot, checksums)
            };
            let found = match &stored {
                Stored::Full(snapshot, _) => snapshot.turn_id,
                Stored::Compressed(snapshot) => snapshot.turn_id(),
            };
            if found != turn {
                return Err(Error::expected(format_args!("turn {turn}"), found));
            }
            Ok(stored)
        };
        read().map_err(|error| error.in_file(&path))
    }

    /// Reads a snapshot, and those that it is based on, with every check.
    pub(super) fn load(&self, turn: u64) -> Result<StateSnapshot> {
        let snapshot = self.load_unbound(turn)?;
        let expected = self.crc(turn);
        if snapshot.turn_id > 0 && snapshot.turn_checksum != expected {
            let message = match expected {
                Some(_) => format!("the snapshot does not match turn {turn} in the log"),
                None => format!("the log has no turn {turn}, which the snapshot names"),
            };
            let file = self.path(turn).unwrap_or_default();
            return Err(Error::new(ErrorKind::Base, message).in_file(file));
        }
        Ok(snapshot)
    }

    /// The snapshot of a turn, here or in the past that a branch shares.
    pub(super) fn find(&self, turn: u64) -> Result<Option<StateSnapshot>> {
        if self.inner().entries.contains_key(&turn) {
            return self.load(turn).map(Some);
        }
        match &self.parent {
            Some((parent, last)) if turn <= *last => parent.find(turn),
            _ => Ok(None),
        }
    }

    /// As [`Shelf::load`], whatever the log says of the turn.
    pub(super) fn load_unbound(&self, turn: u64) -> Result<StateSnapshot> {
        if let Some(snapshot) = self.at_hand(turn) {
            return Ok(snapshot);
        }
        let (snapshot, checksums) = self.unchecked(turn)?;
        let checked = snapshot.check(&checksums);
        checked.map_err(|error| error.in_file(self.path(turn).unwrap_or_default()))?;
        let mut inner = self.inner();
        if inner.read.len() >= AT_HAND {
            inner.read.remove(0);
        }
        inner.read.push(snapshot.clone());
        Ok(snapshot)
    }

    fn at_hand(&self, turn: u64) -> Option<StateSnapshot> {
        self.inner().read.iter().find(|snapshot| snapshot.turn_id == turn).cloned()
    }

    /// A snapshot, and the checksums that are still to be compared: those of a whole chain are
    /// compared once, at its end.
    fn unchecked(&self, turn: u64) -> Result<(StateSnapshot, Object)> {
        let named = |error: Error| error.in_file(self.path(turn).unwrap_or_default());
        if let Some(snapshot) = self.at_hand(turn) {
            return Ok((snapshot, Object::new()));
        }
        match self.stored(turn)? {
            Stored::Full(snapshot, checksums) => Ok((snapshot, checksums)),
            Stored::Compressed(compressed) if compressed.base_turn < turn => {
                let (base, _) = self.unchecked(compressed.base_turn)?;
                let snapshot = compressed.expand_unchecked(&base).map_err(named)?;
                Ok((snapshot, compressed.checksums().clone()))
            }
            Stored::Compressed(compressed) => {
                let base = compressed.base_turn;
                let message =
                    format!("a snapshot of turn {turn} cannot be based on that of turn {base}");
                Err(named(Error::new(ErrorKind::Base, message)))
            }
        }
    }

    /// Writes a snapshot in full, in the place of one of the same turn.
    pub(super) fn write(&self, snapshot: &StateSnapshot) -> Result<()> {
        let turn_checksum = self.crc(snapshot.turn_id);
        let snapshot = StateSnapshot { turn_checksum, ..snapshot.clone() };
        let bytes = self.put(snapshot.turn_id, &snapshot.to_json())?;
        self.written(snapshot.turn_id, snapshot_name(snapshot.turn_id), bytes);
        self.describe(snapshot.turn_id, &Stored::Full(snapshot, Object::new()));
        Ok(())
    }

    /// Writes a snapshot as what differs from the one before it, where the chain of those lets it
    /// be; whether it did.
    pub(super) fn compress(&self, turn: u64, max_chain: u64) -> Result<bool> {
        let entries = self.entries();
        let Some((base, entry)) = entries.range(..turn).next_back() else { return Ok(false) };
        if entry.depth >= max_chain {
            return Ok(false);
        }
        let (snapshot, base) = (self.load(turn)?, self.load(*base)?);
        let Some(compressed) = CompressedSnapshot::of(&snapshot, &base, entry.depth)? else {
            return Ok(false);
        };
        // What cannot be expanded is not kept instead of what could.
        compressed.expand(&base)?;
        let bytes = self.put(turn, &compressed.to_json())?;
        self.written(turn, snapshot_name(turn), bytes);
        self.describe(turn, &Stored::Compressed(compressed));
        Ok(true)
    }

    fn put(&self, turn: u64, value: &Value) -> Result<u64> {
        let packed = pack_file(sealed::seal(value)?.as_bytes())?;
        write_atomic(&*self.files, self.directory.join(snapshot_name(turn)), &packed)?;
        Ok(packed.len() as u64)
    }

    fn written(&self, turn: u64, file: String, bytes: u64) {
        self.forget(turn);
        let (reason, base) = (SnapshotReason::Manual, None);
        let entry = Entry { file, reason, bytes, base, depth: 0, delta_count: 0 };
        self.inner().entries.insert(turn, entry);
    }

    fn forget(&self, turn: u64) {
        let mut inner = self.inner();
        inner.entries.remove(&turn);
        inner.drifted.remove(&turn);
        inner.read.retain(|snapshot| snapshot.turn_id != turn);
    }

    /// Does not give a snapshot any more when one is looked for.
    pub(super) fn pass_over(&self, turn: u64) {
        self.inner().drifted.insert(turn);
    }

    /// Removes a snapshot.
    pub(super) fn remove(&self, turn: u64) -> Result<()> {
        if let Some(path) = self.path(turn) {
            sealed::remove(&*self.files, &path)?;
            let synced = self.files.sync_dir(&self.directory);
            synced.map_err(|error| Error::io(error, "cannot remove").in_file(&path))?;
        }
        self.forget(turn);
        Ok(())
    }

    /// Sets a snapshot aside that is ahead of the log: its turn will be another.
    pub(super) fn set_aside(&self, turn: u64) -> Result<()> {
        if let Some(path) = self.path(turn) {
            let mut aside = path.clone().into_os_string();
            aside.push(".ahead");
            let renamed = self.files.rename(&path, Path::new(&aside));
            let renamed = renamed.and_then(|()| self.files.sync_dir(&self.directory));
            renamed.map_err(|error| Error::io(error, "cannot rename").in_file(&path))?;
        }
        self.forget(turn);
        Ok(())
    }

    /// What is left over in the directory: of writes that were broken off, and of no turn.
    pub(super) fn leftovers(&self) -> Result<Vec<PathBuf>> {
        let names = sealed::names(&*self.files, &self.directory)?;
        let is_left = |name: &String| snapshot_turn(name).is_none();
        Ok(names.into_iter().filter(is_left).map(|name| self.directory.join(name)).collect())
    }
}

impl SnapshotSource for Shelf {
    fn nearest(&self, turn: u64) -> Result<Option<Arc<StateSnapshot>>> {
        let turns: Vec<u64> = {
            let inner = self.inner();
            let known = inner.entries.range(..=turn).map(|(turn, _)| *turn);
            known.filter(|turn| !inner.drifted.contains(turn)).collect()
        };
        for turn in turns.into_iter().rev() {
            // A snapshot is a cache: one that is not sound is passed over.
            if let Ok(snapshot) = self.load(turn) {
                return Ok(Some(Arc::new(snapshot)));
            }
        }
        match &self.parent {
            Some((parent, last)) => parent.nearest(turn.min(*last)),
            None => Ok(None),
        }
    }
}
