//! A database of OpenCode whose bytes are flipped or cut is read or refused.
#![no_main]

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use afterimage::{
    id::Millis,
    request::Recording,
    tokens::Chars4,
    transcript::{Transcript, database_sessions},
};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rusqlite::{Connection, params};

/// Small pages, so that each flip is likely to be read.
const SCHEMA: &str = "PRAGMA page_size = 512;
    CREATE TABLE session (id text PRIMARY KEY, directory text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE INDEX part_of ON part (message_id);";

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("afterimage-{}.db", std::process::id())));

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let _ = fs::remove_file(&*PATH);
    let owner = Connection::open(&*PATH).expect("a database");
    owner.execute_batch(SCHEMA).expect("its tables");
    for session in ["a", "b"] {
        let row = params![session, "/w", 10];
        owner.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?3)", row).expect("a row");
        for number in 0..4_u8 {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let (id, data) =
                (format!("{session}{number}"), format!(r#"{{"role":"{role}","modelID":"m"}}"#));
            let row = params![id, session, number, data];
            owner.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", row).expect("a row");
            let part = format!(
                r#"{{"type":"text","text":"{}"}}"#,
                "tide ".repeat(usize::from(number) * 60)
            );
            let row = params![format!("p{id}"), id, session, number, part];
            owner.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)", row).expect("a row");
        }
    }
    drop(owner);
    fs::read(&*PATH).expect("the database")
});

#[derive(Arbitrary, Debug)]
struct Damage {
    flips: Vec<(u16, u8)>,
    cut: Option<u16>,
}

fuzz_target!(|damage: Damage| {
    let mut bytes = WHOLE.clone();
    for (at, flip) in damage.flips {
        let at = usize::from(at) % bytes.len();
        bytes[at] ^= flip;
    }
    if let Some(cut) = damage.cut {
        bytes.truncate(usize::from(cut));
    }
    fs::write(&*PATH, bytes).expect("a disk");
    let _ = database_sessions(&*PATH);
    let Ok(mut transcript) = Transcript::open(&*PATH) else { return };
    transcript.keep_exchanges();
    let _ = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0));
});
