//! What the recorder does with bodies that are long, broken off, or late.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    ffi::OsString,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use afterimage_log::{Files, OpenFile, OpenMode, testing::MemoryFiles};
use afterimage_record::{
    ErrorKind, Exchange, Limits, Outcome, Recorder, RecorderOptions, Recording, RecordingWriter,
    RequestRecorder, ResponseRecorder, Start,
};

use crate::support::{bodies, check, start};

fn record(
    limits: Limits,
    folder: &Path,
    exchange: impl FnOnce(&mut RequestRecorder, &mut ResponseRecorder),
) -> Recording {
    let path = folder.to_owned();
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let recorder = Recorder::start(limits, open, |said| panic!("{said}")).unwrap();
    let (mut request, mut response) = recorder.exchange(start(0));
    exchange(&mut request, &mut response);
    drop((request, response));
    recorder.finish().unwrap();
    Recording::open(folder).unwrap().unwrap()
}

#[test]
fn a_body_beyond_the_limit_is_stored_cut_and_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let limits = Limits { request: 10, response: 100_000 };
    let recording = record(limits, scratch.path(), |request, response| {
        request.push(b"0123456");
        request.push(b"789abc");
        request.end();
        response.head(200, Vec::new());
        (0..30).for_each(|_| response.push(&[b'x'; 10_000]));
        response.end(None, || {});
    });
    let [exchange] = recording.exchanges() else { panic!() };
    let (bytes, cut) = recording.request(exchange).unwrap().into_parts();
    assert_eq!((bytes.as_slice(), cut.is_some()), (b"0123456789".as_slice(), true));
    let (bytes, cut) = recording.response(exchange).unwrap().into_parts();
    assert_eq!((bytes.len(), cut.is_some()), (100_000, true));
    assert_eq!(exchange.end.as_ref().unwrap().bytes, 300_000);
    assert!(matches!(exchange.outcome(), Outcome::Cut { .. }));
}

#[test]
fn an_exchange_that_nobody_ends_is_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let recording = record(Limits::default(), scratch.path(), |request, response| {
        request.push(b"half");
        response.head(200, Vec::new());
        response.push(b"data: 1\n\n");
    });
    let [exchange] = recording.exchanges() else { panic!() };
    let (bytes, cut) = recording.request(exchange).unwrap().into_parts();
    assert_eq!(
        (bytes.as_slice(), cut.as_deref()),
        (b"half".as_slice(), Some("the request broke off"))
    );
    let (bytes, cut) = recording.response(exchange).unwrap().into_parts();
    let reason = "the client went away";
    assert_eq!((bytes.as_slice(), cut.as_deref()), (b"data: 1\n\n".as_slice(), Some(reason)));
}

#[test]
fn an_outcome_tells_of_the_request_too() {
    let scratch = tempfile::tempdir().unwrap();
    for (limit, ends, reason) in [
        (100, false, "the request broke off"),
        (3, true, "the body is longer than what is stored of it"),
    ] {
        let limits = Limits { request: limit, ..Limits::default() };
        let folder = scratch.path().join(limit.to_string());
        let recording = record(limits, &folder, |request, response| {
            request.push(b"half");
            response.head(413, Vec::new());
            response.push(b"{}");
            response.end(None, || {});
            if ends {
                request.end();
            }
        });
        let [exchange] = recording.exchanges() else { panic!() };
        assert_eq!(exchange.outcome(), Outcome::Cut { reason: reason.to_owned() });
        assert_eq!(recording.response(exchange).unwrap().whole(), Some(b"{}".as_slice()));
    }
}

#[test]
fn what_an_earlier_run_did_not_end_does_not_run() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut first, _) = RecordingWriter::open_private(scratch.path().join("r")).unwrap();
    first.start(&start(0)).unwrap();
    drop(first);
    let (mut second, _) = RecordingWriter::open_private(scratch.path().join("r")).unwrap();
    second.start(&start(1)).unwrap();
    let recording = Recording::open(scratch.path().join("r")).unwrap().unwrap();
    let outcomes: Vec<Outcome> = recording.exchanges().iter().map(Exchange::outcome).collect();
    let reason = "its end is not recorded: the recorder was stopped, or could not write".to_owned();
    assert_eq!(outcomes, [Outcome::Cut { reason }, Outcome::Running]);
}

#[test]
fn a_request_that_ended_is_stored_before_its_answer_is_done() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("r");
    let path = folder.clone();
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let recorder = Recorder::start(Limits::default(), open, |said| panic!("{said}")).unwrap();
    // What takes longest to pack: words without a pattern.
    let words = (0..400_000_u64).map(|at| format!("{:x} ", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let body = words.collect::<String>().into_bytes();
    for number in 0..6 {
        let (mut request, mut response) = recorder.exchange(start(number));
        request.push(&body);
        request.end();
        response.head(200, Vec::new());
        let (done, wait) = std::sync::mpsc::channel();
        response.end(None, move || done.send(()).unwrap());
        wait.recv().unwrap();
        let recording = Recording::open(&folder).unwrap().unwrap();
        let last = recording.exchanges().last().unwrap();
        assert_eq!(last.outcome(), Outcome::Complete);
        assert!(recording.request(last).unwrap().whole() == Some(&body));
    }
}

/// A body that packs well, and is the same at each call.
fn long(length: usize) -> Vec<u8> {
    (0..length).map(|at| b"abcdefgh"[(at / 7) % 8]).collect()
}

#[test]
fn a_long_request_is_written_while_it_comes() {
    let scratch = tempfile::tempdir().unwrap();
    let body = long(20 << 20);
    let folder = scratch.path().join("r");
    let recording = record(Limits::default(), &folder, |request, response| {
        for piece in body.chunks(100_000) {
            request.push(piece);
        }
        // Before its end, most of it is written already.
        let began = Instant::now();
        loop {
            let recording = Recording::open(&folder).unwrap().unwrap();
            let (found, cut) = recording.request(&recording.exchanges()[0]).unwrap().into_parts();
            assert_eq!(cut.as_deref(), Some("the request broke off"));
            if found.len() > 19 << 20 {
                assert!(body.starts_with(&found));
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{} bytes", found.len());
            thread::sleep(Duration::from_millis(5));
        }
        request.end();
        response.head(200, Vec::new());
        response.end(None, || {});
    });
    let [exchange] = recording.exchanges() else { panic!() };
    assert_eq!(exchange.outcome(), Outcome::Complete);
    assert!(recording.request(exchange).unwrap().whole() == Some(&body));
}

#[test]
fn a_long_request_that_breaks_off_or_is_too_long_is_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let body = long(18 << 20);
    for (limit, ends, stored, reason) in [
        (64 << 20, false, 18 << 20, "the request broke off"),
        (17 << 20, true, 17 << 20, "the body is longer than what is stored of it"),
    ] {
        let limits = Limits { request: limit, ..Limits::default() };
        let folder = scratch.path().join(limit.to_string());
        let recording = record(limits, &folder, |request, response| {
            body.chunks(1 << 20).for_each(|piece| request.push(piece));
            if ends {
                request.end();
            }
            response.head(200, Vec::new());
            response.end(None, || {});
        });
        let [exchange] = recording.exchanges() else { panic!() };
        assert_eq!(exchange.outcome(), Outcome::Cut { reason: reason.to_owned() });
        let (found, cut) = recording.request(exchange).unwrap().into_parts();
        assert_eq!((found.len(), cut.as_deref()), (stored, Some(reason)));
        assert!(body.starts_with(&found));
    }
}

/// Files whose disk hangs when it is told to, or panics in the thread that syncs alone.
#[derive(Clone, Debug)]
struct Hanging {
    files: MemoryFiles,
    hangs: Arc<AtomicBool>,
    panics: bool,
}

#[derive(Debug)]
struct HangingFile(Box<dyn OpenFile>, Hanging);

impl HangingFile {
    fn wait(&self) {
        while self.1.hangs.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl OpenFile for HangingFile {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.wait();
        self.0.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.wait();
        let is_syncing_alone = thread::current().name() == Some("recorder-sync");
        assert!(!self.1.panics || !is_syncing_alone, "the disk panics");
        self.0.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

impl Files for Hanging {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(HangingFile(self.files.open(path, mode)?, self.clone())))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.files.truncate(path, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.files.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.files.sync_dir(directory)
    }
}

#[test]
fn a_disk_that_hangs_keeps_neither_the_recorder_nor_more_memory_than_is_allowed() {
    let hangs = Arc::new(AtomicBool::new(false));
    let files = Hanging { files: MemoryFiles::new(), hangs: Arc::clone(&hangs), panics: false };
    let disk: Arc<dyn Files> = Arc::new(files.clone());
    let open = move || Ok(RecordingWriter::open(Arc::clone(&disk), Path::new("r"))?.0);
    let recorder = Recorder::start(Limits::default(), open, |said| panic!("{said}")).unwrap();
    hangs.store(true, Ordering::SeqCst);
    let body = vec![b'x'; 60 << 20];
    for number in 0..5 {
        let (mut request, mut response) = recorder.exchange(start(number));
        request.push(&body);
        request.end();
        response.head(200, Vec::new());
        response.end(None, || {});
    }
    let error = recorder.finish().unwrap_err();
    assert!(error.message().contains("longer than"), "{error}");
    hangs.store(false, Ordering::SeqCst);
    drop(recorder);
    // It goes on in the background; what was too much for it is marked.
    let began = std::time::Instant::now();
    let outcomes = loop {
        let recording = Recording::open_from(&files, "r").unwrap().unwrap();
        if !recording.is_live() && recording.exchanges().len() == 5 {
            break recording.exchanges().iter().map(Exchange::outcome).collect::<Vec<_>>();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{recording:?}");
        thread::sleep(Duration::from_millis(50));
    };
    let reason = "the body is longer than what is stored of it".to_owned();
    assert_eq!(outcomes[..4], vec![Outcome::Complete; 4]);
    assert_eq!(outcomes[4], Outcome::Cut { reason });
}

#[test]
fn a_request_may_end_after_its_answer() {
    let scratch = tempfile::tempdir().unwrap();
    let recording = record(Limits::default(), scratch.path(), |request, response| {
        response.head(413, Vec::new());
        response.end(None, || {});
        request.push(b"late");
        request.end();
    });
    let [exchange] = recording.exchanges() else { panic!() };
    assert_eq!(exchange.outcome(), Outcome::Complete);
    assert_eq!(recording.request(exchange).unwrap().whole(), Some(b"late".as_slice()));
    assert_eq!(recording.response(exchange).unwrap().whole(), Some(b"".as_slice()));
}

#[test]
fn durable_without_the_thread_that_syncs_the_writer_does_and_it_is_said() {
    let (files, told) = (MemoryFiles::new(), Arc::new(Mutex::new(Vec::new())));
    let (hangs, heard) = (Arc::default(), Arc::clone(&told));
    let disk = Hanging { files: files.clone(), hangs, panics: true };
    let open = move || {
        let disk: Arc<dyn Files> = Arc::new(disk.clone());
        Ok(RecordingWriter::open(disk, Path::new("r"))?.0)
    };
    let tell = move |said: &str| heard.lock().unwrap().push(said.to_owned());
    let recorder = Recorder::start(Limits::default(), open, tell).unwrap();
    let began = Instant::now();
    let mut number = 0;
    while told.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was said");
        let (mut request, mut response) = recorder.exchange(start(number));
        request.push(&bodies(number).0);
        request.end();
        response.head(200, Vec::new());
        response.push(&bodies(number).1);
        response.end(None, || {});
        number += 1;
        thread::sleep(Duration::from_millis(20));
    }
    let said = told.lock().unwrap()[0].clone();
    assert!(said.contains("the thread that syncs the recording failed"), "{said}");
    // A loss of power at this moment takes nothing that came more than a second ago.
    files.survive();
    let recording = Recording::open_from(&files, "r").unwrap().unwrap();
    assert!(!check(&recording).is_empty());
    drop(recorder);
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[test]
fn transparent_a_recording_that_is_removed_is_told_of_and_begun_anew() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("r");
    let (path, told) = (folder.clone(), Arc::new(Mutex::new(Vec::new())));
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let heard = Arc::clone(&told);
    let tell = move |said: &str| heard.lock().unwrap().push(said.to_owned());
    let recorder = Recorder::start(Limits::default(), open, tell).unwrap();
    let record = |number: u64| {
        let (mut request, mut response) = recorder.exchange(start(number));
        request.push(&bodies(number).0);
        request.end();
        response.head(200, Vec::new());
        response.push(&bodies(number).1);
        let (done, wait) = std::sync::mpsc::channel();
        response.end(None, move || done.send(()).unwrap());
        wait.recv().unwrap();
    };
    // The first exchange of the old file ends in the new one, whose first has the same number.
    let (mut request, mut response) = recorder.exchange(start(0));
    record(1);
    std::fs::remove_dir_all(&folder).unwrap();
    let (began, mut number) = (Instant::now(), 2);
    while told.lock().unwrap().len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(30), "{told:?}");
        record(number);
        number += 1;
        thread::sleep(Duration::from_millis(20));
    }
    let said = told.lock().unwrap().clone();
    assert!(said[0].contains("wire.rec was removed, moved or replaced"), "{said:?}");
    assert!(said[1].starts_with("a new recording begins in "), "{said:?}");
    assert!(said[1].ends_with("wire.rec; calls before this are not in it"), "{said:?}");
    record(number);
    request.push(&bodies(0).0);
    request.end();
    response.head(200, Vec::new());
    let (done, wait) = std::sync::mpsc::channel();
    response.end(Some("the client went away"), move || done.send(()).unwrap());
    wait.recv().unwrap();
    record(number + 1);
    recorder.finish().unwrap();
    let recording = Recording::open(&folder).unwrap().unwrap();
    let whole = check(&recording);
    assert!(whole.ends_with(&[number, number + 1]) && !whole.contains(&0), "{whole:?}");
    assert_eq!(whole.len(), recording.exchanges().len());
    assert_eq!(recorder.exchanges(), whole.len() as u64);
}

#[test]
fn a_recording_that_is_gone_at_the_end_is_an_error_and_not_begun_anew() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("r");
    let path = folder.clone();
    let open = move || Ok(RecordingWriter::open_private(&path)?.0);
    let recorder = Recorder::start(Limits::default(), open, |said| panic!("{said}")).unwrap();
    drop(recorder.exchange(start(0)));
    std::fs::remove_dir_all(&folder).unwrap();
    let error = recorder.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Removed);
    assert!(error.message().contains("wire.rec was removed, moved or replaced"), "{error}");
    assert_eq!((recorder.exchanges(), recorder.exchanges_for_model()), (0, 0));
    assert!(!folder.exists());
}

#[test]
fn an_exchange_is_a_model_request_where_the_options_say_so() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("r");
    let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
    let is_for_model = |start: &Start| start.time_ms >= 2;
    let options = RecorderOptions { is_for_model, ..RecorderOptions::default() };
    let recorder = Recorder::start_with(options, open, |said| panic!("{said}")).unwrap();
    (0..5).for_each(|number| drop(recorder.exchange(start(number))));
    recorder.finish().unwrap();
    assert_eq!((recorder.exchanges(), recorder.exchanges_for_model()), (5, 3));
}
