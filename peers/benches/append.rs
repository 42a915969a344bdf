//! Appends of batches that are durable when they return: our log, SQLite, redb, and a plain file.
//!
//! Each batch is 16 records of 512 bytes and ends in one sync of the disk. SQLite keeps a
//! write-ahead log that it syncs with each transaction.

use std::{fs::File, hint::black_box, io::Write as _, sync::Arc, time::Duration};

use afterimage_log::{DiskFiles, FileKind, RecordWriter};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use redb::{Database, Durability, TableDefinition};
use rusqlite::Connection;

const RECORDS: usize = 16;
const BYTES: usize = 512;
const KIND: FileKind = FileKind::new(*b"peers\0\0\0", 1);
const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// Records that no two batches share.
fn batch(number: u64) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let first = number * RECORDS as u64;
    (first..).take(RECORDS).map(|key| (key, key.to_le_bytes().repeat(BYTES / 8)))
}

fn append(c: &mut Criterion) {
    // On the disk of this folder: a temporary one may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut group = c.benchmark_group("append_batch");
    group.throughput(Throughput::Bytes((RECORDS * BYTES) as u64));
    let id = |name| BenchmarkId::new(name, format!("{RECORDS} x {BYTES}"));

    let path = folder.path().join("records.rec");
    let (mut writer, _) = RecordWriter::open(Arc::new(DiskFiles), &path, KIND).expect("a log");
    let mut number = 0;
    group.bench_function(id("log"), |b| {
        b.iter(|| {
            batch(number).for_each(|(_, record)| {
                black_box(writer.append(&record).expect("it is appended"));
            });
            writer.sync().expect("it is synced");
            number += 1;
        });
    });

    let mut file = File::create(folder.path().join("plain")).expect("a file");
    group.bench_function(id("write and fdatasync"), |b| {
        b.iter(|| {
            let records: Vec<u8> = batch(number).flat_map(|(_, record)| record).collect();
            file.write_all(&records).expect("it is written");
            file.sync_data().expect("it is synced");
            number += 1;
        });
    });

    let mut sqlite = Connection::open(folder.path().join("records.sqlite")).expect("a database");
    sqlite
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE records (key INTEGER PRIMARY KEY, record BLOB NOT NULL);",
        )
        .expect("a table");
    group.bench_function(id("SQLite"), |b| {
        b.iter(|| {
            let transaction = sqlite.transaction().expect("a transaction");
            {
                let mut insert = transaction
                    .prepare("INSERT INTO records VALUES (?1, ?2)")
                    .expect("a statement");
                batch(number).for_each(|(key, record)| {
                    insert.execute((key.cast_signed(), record)).expect("it is inserted");
                });
            }
            transaction.commit().expect("it is committed");
            number += 1;
        });
    });

    let redb = Database::create(folder.path().join("records.redb")).expect("a database");
    group.bench_function(id("redb"), |b| {
        b.iter(|| {
            let mut transaction = redb.begin_write().expect("a transaction");
            transaction.set_durability(Durability::Immediate).expect("it may be durable");
            {
                let mut table = transaction.open_table(TABLE).expect("a table");
                batch(number).for_each(|(key, record)| {
                    table.insert(key, &*record).expect("it is inserted");
                });
            }
            transaction.commit().expect("it is committed");
            number += 1;
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = append
}
criterion_main!(benches);
