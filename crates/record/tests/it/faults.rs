//! A disk that fails at any operation, and one that is full.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
};

use afterimage_log::{
    Files,
    testing::{Fault, MemoryFiles},
};
use afterimage_record::{Limits, Outcome, Recorder, Recording, RecordingWriter};

use crate::support::{bodies, check, start};

/// Records six exchanges, and gives what was told. Every end must be answered.
fn record(files: &MemoryFiles) -> Vec<String> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let (disk, heard) = (files.clone(), Arc::clone(&told));
    let open = move || {
        let files: Arc<dyn Files> = Arc::new(disk.clone());
        Ok(RecordingWriter::open(files, Path::new("r"))?.0)
    };
    let tell = move |said: &str| heard.lock().unwrap().push(said.to_owned());
    let recorder = match Recorder::start(Limits::default(), open, tell) {
        Ok(recorder) => recorder,
        Err(error) => return vec![error.to_string()],
    };
    for number in 0..6 {
        let (body, answer) = bodies(number);
        let (mut request, mut response) = recorder.exchange(start(number));
        request.push(&body);
        request.end();
        response.head(200, Vec::new());
        response.push(&answer);
        let (done, wait) = mpsc::channel();
        response.end(None, move || done.send(()).unwrap());
        wait.recv().unwrap();
    }
    recorder.finish().unwrap();
    Arc::try_unwrap(told).unwrap().into_inner().unwrap()
}

#[test]
fn whichever_operation_fails_it_is_told_and_what_is_kept_is_sound() {
    let clean = MemoryFiles::new();
    assert_eq!(record(&clean), Vec::<String>::new());
    let mut cut = 0;
    for operation in 0..clean.operations() {
        for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
            let files = MemoryFiles::new();
            files.fault_at(operation, fault);
            let told = record(&files);
            assert!(!told.is_empty(), "{fault:?} at operation {operation}");
            files.survive();
            let Ok(Some(recording)) = Recording::open_from(&files, "r") else { continue };
            let whole = check(&recording).len();
            cut += recording.exchanges().len() - whole;
            let is_cut = |outcome| matches!(outcome, Outcome::Cut { .. });
            let marked = recording.exchanges().iter().filter(|of| is_cut(of.outcome())).count();
            assert!(whole + marked >= recording.exchanges().len(), "{fault:?} at {operation}");
        }
    }
    assert!(cut > 0);
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_calls() {
    let files = MemoryFiles::new();
    files.set_room(Some(1500));
    let told = record(&files);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("calls go on"), "{told:?}");
    let recording = Recording::open_from(&files, "r").unwrap().unwrap();
    let whole = check(&recording);
    assert!(!whole.is_empty() && whole.len() < 6, "{whole:?}");
}

#[test]
fn a_disk_that_becomes_read_only_ends_the_recording_and_not_the_calls() {
    let clean = MemoryFiles::new();
    assert_eq!(record(&clean), Vec::<String>::new());
    let files = MemoryFiles::new();
    (clean.operations() / 2..1_000).for_each(|operation| files.fault_at(operation, Fault::Fail));
    let told = record(&files);
    assert!(matches!(told.as_slice(), [one] if one.contains("calls go on")), "{told:?}");
    let recording = Recording::open_from(&files, "r").unwrap().unwrap();
    let whole = check(&recording);
    assert!(!whole.is_empty() && whole.len() < 6, "{whole:?}");
}

#[test]
fn a_disk_that_is_read_only_from_the_start_is_an_error() {
    let files = MemoryFiles::new();
    (0..1_000).for_each(|operation| files.fault_at(operation, Fault::Fail));
    let told = record(&files);
    assert!(matches!(told.as_slice(), [one] if one.contains("cannot create")), "{told:?}");
    assert_eq!(files.paths(), Vec::<std::path::PathBuf>::new());
}
