//! Sessions on disks that are full, fail, or give back other bytes than were written.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use afterimage::{
    Error, ErrorKind, Result,
    id::Millis,
    journal::{Journal, JournalOptions, SessionName},
    json::{self, Value},
    log::{
        Holder,
        testing::{Fault, MemoryFiles, UnsyncedBytes},
    },
    session::{JournalStore, MemoryStore, Model, Session, SessionStore},
    transcript::Api,
};
use afterimage_testkit::small_disk::{fill, on_a_small_disk, small_disk};

use super::living_session::{TURNS, live, model, options, steps};

fn journal_store(disk: &MemoryFiles) -> Result<JournalStore> {
    let files = Arc::new(disk.clone());
    let journal = Journal::open_on(files, "s", &Holder::new("test"), JournalOptions::default())?;
    Ok(JournalStore::of(journal, SessionName::new("pilot")?))
}

fn open(disk: &MemoryFiles) -> Result<Session> {
    Session::open_with(journal_store(disk)?, options())
}

fn all_steps(mut store: impl SessionStore) -> Vec<Vec<u8>> {
    store.read(1, usize::MAX).unwrap()
}

/// Steps without their times, and without the windows: when one is kept depends on what was read.
fn timeless(steps: &[Vec<u8>]) -> Vec<Value> {
    let timeless = |step: &Vec<u8>| {
        let Value::Object(mut step) = json::read(step).unwrap() else { panic!("a step") };
        step.shift_remove("at");
        step.shift_remove("window");
        Value::Object(step)
    };
    steps.iter().map(timeless).collect()
}

/// A disk with a session that was lived for so many requests, and its steps.
fn lived(turns: u64) -> (MemoryFiles, Vec<Vec<u8>>) {
    let disk = MemoryFiles::new();
    live(&mut open(&disk).unwrap(), &model(Api::Messages), turns).unwrap();
    let steps = all_steps(journal_store(&disk).unwrap());
    (disk, steps)
}

/// The files of a disk, one of them with other bytes.
fn with_file(disk: &MemoryFiles, changed: &Path, bytes: &[u8]) -> MemoryFiles {
    let other = MemoryFiles::new();
    for path in disk.paths() {
        let bytes = if path == changed { bytes.to_vec() } else { disk.bytes(&path).unwrap() };
        other.put(&path, bytes);
    }
    other
}

/// Opens a session on a damaged disk: it has the first of its steps, as they were, or there is an error.
/// Gives the number of the steps, or the error's kind.
fn opened(disk: &MemoryFiles, whole: &[Vec<u8>]) -> Result<usize, ErrorKind> {
    let mut session = open(disk).map_err(|error| error.kind())?;
    let turns = session.turns();
    let sent: Vec<String> = (1..=turns).map(|turn| session.sent(turn).unwrap()).collect();
    drop(session);
    let found = all_steps(journal_store(disk).unwrap());
    assert_eq!(found, whole[..found.len()]);
    let requests = found.iter().filter(|step| has_request(step)).count();
    assert_eq!(sent.len(), requests);
    Ok(found.len())
}

fn has_request(step: &[u8]) -> bool {
    json::read(step).unwrap().get("request").is_some()
}

fn events_of(disk: &MemoryFiles) -> PathBuf {
    let is_events = |path: &PathBuf| path.to_string_lossy().ends_with(".events.rec");
    disk.paths().into_iter().find(is_events).unwrap()
}

#[test]
fn a_directory_that_is_cut_gives_the_steps_before_or_an_error() {
    let (disk, whole) = lived(5);
    let events = events_of(&disk);
    let bytes = disk.bytes(&events).unwrap();
    let last_two: usize = whole[whole.len() - 2..].iter().map(Vec::len).sum();
    let mut kinds = BTreeSet::new();
    let mut fewer: BTreeSet<usize> = BTreeSet::new();
    for end in bytes.len() - last_two - 400..bytes.len() {
        match opened(&with_file(&disk, &events, &bytes[..end]), &whole) {
            Ok(count) => fewer.insert(count),
            Err(kind) => kinds.insert(format!("{kind:?}")),
        };
    }
    eprintln!("cut: {fewer:?} {kinds:?}");
    // What was acknowledged is missing, and that is said.
    assert!(fewer.is_empty());
    for path in disk.paths() {
        let bytes = disk.bytes(&path).unwrap();
        for end in (0..bytes.len()).step_by(1 + bytes.len() / 60) {
            let _ = opened(&with_file(&disk, &path, &bytes[..end]), &whole);
        }
    }
}

#[test]
fn bits_that_flip_give_the_steps_before_or_an_error() {
    let (disk, whole) = lived(5);
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let mut results = std::collections::BTreeMap::new();
    for path in disk.paths() {
        let bytes = disk.bytes(&path).unwrap();
        for _ in 0..bytes.len().min(200) {
            let mut flipped = bytes.clone();
            flipped[next() % bytes.len()] ^= 1 << (next() % 8);
            let found = opened(&with_file(&disk, &path, &flipped), &whole);
            *results.entry(format!("{} {found:?}", path.display())).or_insert(0) += 1;
        }
    }
    eprintln!("{results:?}");
}

/// A store without checksums.
#[test]
fn steps_that_are_damaged_are_no_panic() {
    let whole = MemoryStore::default();
    let mut session = Session::open_with(whole.clone(), options()).unwrap();
    live(&mut session, &model(Api::Chat), 6).unwrap();
    let whole = steps(&whole);
    let (mut opened, mut refused) = (0, BTreeSet::new());
    for (number, step) in whole.iter().enumerate() {
        for at in (number % 7..step.len()).step_by(29) {
            for flip in [[b'"', b'9', b'}', 0xff][at % 4]] {
                let mut damaged = step.clone();
                damaged[at] = flip;
                let mut store = MemoryStore::default();
                for (at, step) in whole.iter().enumerate() {
                    let step = if at == number { &damaged } else { step };
                    store.append(at as u64 + 1, step, Millis::new(0)).unwrap();
                }
                match Session::open_with(store, options()) {
                    Ok(mut session) => {
                        opened += 1;
                        let _ = session.request(&model(Api::Chat));
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("step "), "{error}");
                        refused.insert(format!("{:?}", error.kind()));
                    }
                }
            }
        }
    }
    eprintln!("{opened} {refused:?}");
}

/// A store that fails at each `nth` append; every other time the step is there all the same. Reads
/// fail now and then too.
struct Failing {
    store: MemoryStore,
    nth: u64,
    appends: u64,
    reads: u64,
}

impl SessionStore for Failing {
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
        self.appends += 1;
        if !self.appends.is_multiple_of(self.nth) {
            return self.store.append(number, step, now);
        }
        if (self.appends / self.nth).is_multiple_of(2) {
            self.store.append(number, step, now)?;
        }
        Err(Error::new(ErrorKind::Io, "the disk went away"))
    }

    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        self.reads += 1;
        if self.reads.is_multiple_of(2 * self.nth + 1) {
            return Err(Error::new(ErrorKind::Io, "the disk went away"));
        }
        self.store.read(first, most)
    }
}

/// Goes on with a session until it made all of its requests, however often that fails. Says how often.
fn persist(session: &mut Session, model: &Model, mut repair: impl FnMut()) -> usize {
    for failures in 0..300 {
        match live(session, model, TURNS) {
            Ok(_) => return failures,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
        }
        repair();
    }
    panic!("the session does not go on");
}

#[test]
fn a_session_whose_store_fails_goes_on_as_if_it_had_not() {
    let whole = MemoryStore::default();
    let mut session = Session::open_with(whole.clone(), options()).unwrap();
    live(&mut session, &model(Api::Responses), TURNS).unwrap();
    let whole = timeless(&steps(&whole));
    for nth in [2, 3, 5, 11] {
        let store = MemoryStore::default();
        let failing = Failing { store: store.clone(), nth, appends: 0, reads: 0 };
        let mut session = Session::open_with(failing, options()).unwrap();
        let failures = persist(&mut session, &model(Api::Responses), || {});
        assert!(failures > 5, "{nth}: {failures}");
        let found = timeless(&steps(&store));
        for (number, (found, expected)) in found.iter().zip(&whole).enumerate() {
            assert_eq!(found, expected, "{nth}: step {}", number + 1);
        }
        assert_eq!(found.len(), whole.len(), "{nth}");
    }
}

#[test]
fn a_session_on_a_disk_that_fails_goes_on_as_if_it_had_not() {
    let (disk, whole) = lived(TURNS);
    let whole = timeless(&whole);
    let operations = disk.operations();
    // Full in the middle of any step, and then with room for some steps more.
    for more in [10_000, 23_333, 50_000] {
        let disk = MemoryFiles::new();
        let mut session = open(&disk).unwrap();
        disk.set_room(Some(more));
        let (mut is_full, mut more) = (false, more);
        let failures = persist(&mut session, &model(Api::Messages), || {
            is_full = !is_full;
            more += more / 3;
            disk.set_room(Some(if is_full { 99 } else { more }));
        });
        assert!(failures > 1, "{more}: {failures}");
        drop(session);
        assert_eq!(timeless(&all_steps(journal_store(&disk).unwrap())), whole, "{more}");
    }
    for fault in [Fault::Fail, Fault::Short] {
        let disk = MemoryFiles::new();
        let mut session = open(&disk).unwrap();
        for operation in (disk.operations() + 5..operations).step_by(17) {
            disk.fault_at(operation, fault);
        }
        let failures = persist(&mut session, &model(Api::Messages), || {});
        assert!(failures > 3, "{failures}");
        drop(session);
        let mut session = open(&disk).unwrap();
        persist(&mut session, &model(Api::Messages), || {});
        drop(session);
        assert_eq!(timeless(&all_steps(journal_store(&disk).unwrap())), whole, "{fault:?}");
    }
}

/// Counts the steps that a store has made durable.
struct Acknowledging(JournalStore, Arc<Mutex<BTreeMap<u64, Vec<u8>>>>);

impl SessionStore for Acknowledging {
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
        self.0.append(number, step, now)?;
        self.1.lock().unwrap().insert(number, step.to_vec());
        Ok(())
    }

    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        self.0.read(first, most)
    }
}

/// The system gives back what a failed sync did not write, and the power takes it.
#[test]
fn no_step_is_kept_behind_one_whose_sync_failed() {
    let operations = lived(2).0.operations();
    let (mut gone_on, mut stopped) = (0, 0);
    for operation in 0..operations {
        for is_cut in [true, false] {
            let (disk, acknowledged) = (MemoryFiles::new(), Arc::<Mutex<_>>::default());
            let store = Acknowledging(journal_store(&disk).unwrap(), Arc::clone(&acknowledged));
            let mut session = Session::open_with(store, options()).unwrap();
            if operation < disk.operations() {
                continue;
            }
            disk.fault_at(operation, Fault::Forget);
            if !is_cut {
                disk.fault_at(operation + 1, Fault::Fail);
            }
            let lived = (0..4).any(|_| live(&mut session, &model(Api::Chat), 2).is_ok());
            *(if lived { &mut gone_on } else { &mut stopped }) += 1;
            drop(session);
            for unsynced in [UnsyncedBytes::Lost, UnsyncedBytes::Zeroed, UnsyncedBytes::Kept] {
                let disk = disk.crash(unsynced, false);
                let found =
                    open(&disk).map(drop).map(|()| all_steps(journal_store(&disk).unwrap()));
                let found = found.unwrap_or_else(|error| panic!("{operation}, {is_cut}: {error}"));
                let acknowledged = acknowledged.lock().unwrap();
                // A step may be there though its append failed; one that was acknowledged is where it was.
                for (number, step) in acknowledged.iter() {
                    let at = usize::try_from(number - 1).unwrap();
                    assert!(found.get(at) == Some(step), "{operation}, {is_cut}: step {number}");
                }
            }
        }
    }
    assert!(gone_on > 20 && stopped > 5, "{gone_on}, {stopped}");
}

/// A file system of a megabyte, where one may be mounted.
#[test]
fn a_session_on_a_full_disk_goes_on_once_there_is_room() {
    on_a_small_disk(
        1024,
        "living_session_faults::child_fills_its_disk",
        "went on after the disk was full",
    );
}

/// What runs on the small disk.
#[test]
fn child_fills_its_disk() {
    let Some(disk) = small_disk() else { return };
    let (_, whole) = lived(TURNS);
    let (filler, path) = (disk.join("filler"), disk.join("agent"));
    let mut session = Session::open_with(JournalStore::open(&path).unwrap(), options()).unwrap();
    let model = model(Api::Messages);
    for turns in [2, 9, 20] {
        live(&mut session, &model, turns).unwrap();
        fill(&filler);
        let error = live(&mut session, &model, TURNS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let again = live(&mut session, &model, TURNS).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Io, "{again}");
        std::fs::remove_file(&filler).unwrap();
    }
    live(&mut session, &model, TURNS).unwrap();
    drop(session);
    let found = timeless(&all_steps(JournalStore::open(&path).unwrap()));
    assert_eq!(found, timeless(&whole));
    println!("went on after the disk was full: {} steps", found.len());
}
