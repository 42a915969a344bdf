//! Making many small files durable: each file and folder by itself, 8 and 32 at a time, beside the sync
//! of the file system ([`WholeSync`]), and beside that with each file and folder after it.
//!
//! Two files a folder are written anew for each measurement, in the folder for temporary files: `TMPDIR`
//! says on which disk. `AFTERIMAGE_BENCH_FOLDERS` says how many folders: 200 without it. Where the file
//! system cannot be synced as a whole, only the first two are measured. What other programs write to it
//! meanwhile is in the figures of the others.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use afterimage_log::WholeSync;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

/// Files and folders that are not on the disk yet.
struct Unsynced {
    scratch: tempfile::TempDir,
    whole: Option<WholeSync>,
    paths: Vec<PathBuf>,
}

impl Unsynced {
    fn write(folders: usize) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let whole = WholeSync::of(scratch.path());
        let mut paths = vec![scratch.path().to_owned()];
        for folder in 0..folders {
            let folder = scratch.path().join(folder.to_string());
            fs::create_dir(&folder).unwrap();
            for name in ["texts.rec", "tables.rec"] {
                let file = folder.join(name);
                fs::write(&file, [b'x'; 4_000]).unwrap();
                paths.push(file);
            }
            paths.push(folder);
        }
        Self { scratch, whole, paths }
    }

    fn sync_each(self, at_a_time: usize) -> tempfile::TempDir {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..at_a_time {
                scope.spawn(|| {
                    while let Some(path) = self.paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                        File::open(path).unwrap().sync_all().unwrap();
                    }
                });
            }
        });
        self.scratch
    }

    fn sync_whole(self) -> Self {
        self.whole.iter().for_each(|whole| whole.sync().unwrap());
        self
    }
}

fn whole_sync(criterion: &mut Criterion) {
    let folders = std::env::var("AFTERIMAGE_BENCH_FOLDERS")
        .map_or(200, |folders| folders.parse().expect("a number"));
    let mut group = criterion.benchmark_group("whole_sync");
    group.sample_size(10);
    let mut measure = |name: &str, sync: &dyn Fn(Unsynced) -> tempfile::TempDir| {
        group.bench_function(BenchmarkId::new(name, folders), |bench| {
            bench.iter_batched(|| Unsynced::write(folders), sync, BatchSize::PerIteration);
        });
    };
    measure("each, 8 at a time", &|files| files.sync_each(8));
    measure("each, 32 at a time", &|files| files.sync_each(32));
    if Unsynced::write(1).whole.is_some() {
        measure("the file system", &|files| files.sync_whole().scratch);
        measure("the file system, then each, 8 at a time", &|files| {
            files.sync_whole().sync_each(8)
        });
    } else {
        println!("whole_sync: the file system cannot be synced as a whole here");
    }
    group.finish();
}

criterion_group!(benches, whole_sync);
criterion_main!(benches);
