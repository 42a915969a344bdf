//! Durable appends of 500 bytes, one at a time: to a journal and a timeline in directories, beside
//! the disk's own write and sync, SQLite and redb.
//!
//! `appends FOLDER [APPENDS]`: the folder says which disk. Each store is made anew in it, and all
//! of them take turns, a tenth of their appends at a time. What is printed is the time of an
//! append on the clock, which is mostly that of the disk, and on the core.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::Instant,
};

use afterimage_journal::{
    EventId, Expected, Journal, JournalOptions, Millis, NewEvent, SessionName,
};
use afterimage_log::{DiskFiles, Holder};
use afterimage_timeline::{
    Data, Event, TimelineConfig, TurnRecord,
    session::{SessionDir, SessionOptions},
};
use redb::{Database, TableDefinition};
use rusqlite::Connection;
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 500;
const TURNS: u64 = 10;

/// The seconds that this thread had a core, whatever else the machine does.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Appends what has this number, durably.
type Append = Box<dyn FnMut(u64)>;

fn raw(folder: &Path) -> Append {
    let mut options = OpenOptions::new();
    let mut file: File =
        options.append(true).create(true).open(folder.join("raw")).expect("a file");
    let bytes = vec![b'x'; BYTES];
    Box::new(move |_| {
        file.write_all(&bytes).expect("room on the disk");
        file.sync_data().expect("a disk that syncs");
    })
}

fn journal(folder: &Path) -> Append {
    let mut journal =
        Journal::open(folder.join("journal"), &Holder::new("appends"), JournalOptions::default())
            .expect("a journal");
    let session = SessionName::new("appends").expect("a name");
    Box::new(move |number| {
        let id = EventId::new(number.to_string()).expect("an id");
        let event = NewEvent::new(id, "change", vec![b'x'; BYTES]).expect("an event");
        let now = Millis::new(0);
        journal.append(&session, Expected::Last(number), event, now).expect("an append");
    })
}

fn timeline(folder: &Path) -> Append {
    let config = TimelineConfig {
        snapshot_interval: 0,
        verify_every_n_turns: 0,
        ..TimelineConfig::default()
    };
    let state = Data::from_iter([("player", Data::from_iter([("location", Data::object())]))]);
    let options = SessionOptions::new("appends").config(config);
    let mut session =
        SessionDir::create(Arc::new(DiskFiles), folder.join("timeline"), options, state)
            .expect("a session");
    let text = "x".repeat(BYTES - 100);
    Box::new(move |number| {
        let zone = Data::from(format!("zone {number} {text}").as_str());
        let event = Event::new("move", Data::from_iter([("zone", zone)]));
        session.push(TurnRecord::new("player").with_event(event)).expect("a push");
    })
}

fn sqlite(folder: &Path) -> Append {
    let database = Connection::open(folder.join("sqlite")).expect("a database");
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE events (session TEXT, sequence INTEGER, id TEXT, body BLOB,
                                  PRIMARY KEY (session, sequence)) WITHOUT ROWID;",
        )
        .expect("a table");
    let body = vec![b'x'; BYTES];
    Box::new(move |number| {
        let mut insert = database
            .prepare_cached("INSERT INTO events VALUES ('appends', ?1, ?2, ?3)")
            .expect("a statement");
        let number = number.cast_signed();
        insert.execute((number, number.to_string(), &body)).expect("an insert");
    })
}

fn redb(folder: &Path) -> Append {
    const EVENTS: TableDefinition<(&str, u64), &[u8]> = TableDefinition::new("events");
    let database = Database::create(folder.join("redb")).expect("a database");
    let body = vec![b'x'; BYTES];
    Box::new(move |number| {
        let write = database.begin_write().expect("a transaction");
        {
            let mut table = write.open_table(EVENTS).expect("a table");
            table.insert(("appends", number), body.as_slice()).expect("an insert");
        }
        write.commit().expect("a commit");
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let appends: u64 = arguments.next().map_or(1_000, |count| count.parse().expect("a number"));
    let folder = Path::new(&folder).join(format!("appends-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let stores: [(&str, fn(&Path) -> Append); 5] = [
        ("the disk's own write and sync", raw),
        ("journal in a directory", journal),
        ("timeline in a directory", timeline),
        ("SQLite, WAL, synchronous = FULL", sqlite),
        ("redb, a commit each", redb),
    ];
    let mut stores = stores.map(|(name, open)| (name, open(&folder), f64::MAX, f64::MAX));
    let share = appends.div_ceil(TURNS);
    for turn in 0..TURNS {
        for (_, append, clock, core) in &mut stores {
            let (start, from) = (Instant::now(), seconds());
            (turn * share..(turn + 1) * share).for_each(&mut *append);
            *core = core.min((seconds() - from) / share as f64);
            *clock = clock.min(start.elapsed().as_secs_f64() / share as f64);
        }
    }
    println!("the best of {TURNS} turns of {share} appends of about {BYTES} bytes");
    for (name, _, clock, core) in &stores {
        println!("{name:34} {:8.1} µs, {:6.1} on the core", clock * 1e6, core * 1e6);
    }
    drop(stores);
    let _ = std::fs::remove_dir_all(&folder);
}
