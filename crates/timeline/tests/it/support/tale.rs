//! A session that moves from zone to zone, on a disk in memory.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::Arc;

use afterimage_json as json;
use afterimage_json::Millis;
use afterimage_log::{HighWater, LogMark, testing::MemoryFiles};
use afterimage_timeline::{
    Data, Event, TimelineConfig, TurnRecord,
    session::{DirVerification, SessionDir, SessionOptions},
};

pub(crate) const DIR: &str = "tale";

pub(crate) fn data(text: &str) -> Data {
    Data::from(json::read(text.as_bytes()).unwrap())
}

pub(crate) fn options() -> SessionOptions {
    let config = TimelineConfig {
        snapshot_interval: 7,
        compress_snapshots_older_than: 20,
        ..TimelineConfig::default()
    };
    SessionOptions::new("tale").config(config)
}

pub(crate) fn turn(n: u64) -> TurnRecord {
    let data = Data::from_iter([("zone", Data::from(format!("zone {n} ä").as_str()))]);
    let turn = TurnRecord::new("player").at(Millis::new(i64::try_from(n).unwrap()));
    let mut turn = turn.with_event(Event::new("move", data));
    turn.scene_id = format!("scene {}", n / 10);
    turn
}

pub(crate) fn create(files: &MemoryFiles) -> SessionDir {
    let state = data(r#"{"player":{"location":{"zone":""}},"npcs":{},"scene":{}}"#);
    SessionDir::create(Arc::new(files.clone()), DIR, options(), state).unwrap()
}

pub(crate) fn open(files: &MemoryFiles) -> Result<SessionDir, afterimage_timeline::Error> {
    SessionDir::open(Arc::new(files.clone()), DIR, options())
}

/// A session of so many turns, closed.
pub(crate) fn session(turns: u64) -> MemoryFiles {
    let files = MemoryFiles::new();
    let mut session = create(&files);
    for n in 1..=turns {
        session.push(turn(n)).unwrap();
    }
    assert_eq!(session.close().unwrap(), [""; 0]);
    files
}

pub(crate) fn verify(files: &MemoryFiles) -> DirVerification {
    SessionDir::verify(Arc::new(files.clone()), DIR, &options()).unwrap()
}

pub(crate) fn zone(state: &Data) -> String {
    let zone = state.get("player").unwrap().get("location").unwrap().get("zone").unwrap();
    zone.as_str().unwrap().to_owned()
}

pub(crate) const MARK: &str = "tale/acknowledged";
pub(crate) const META: &str = "tale/session.meta.json";

/// As if nothing of the session had been acknowledged: its log may be cut without a loss.
pub(crate) fn forget(files: &MemoryFiles) {
    HighWater::create(files, MARK, LogMark::default()).unwrap();
}

/// Every file but the lock.
pub(crate) fn names(files: &MemoryFiles) -> Vec<String> {
    let names = files.paths().into_iter().map(|path| path.to_str().unwrap().to_owned());
    names.filter(|name| !name.ends_with("lock")).collect()
}
