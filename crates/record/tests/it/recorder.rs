//! What the recorder does with bodies that are long, broken off, or late.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;

use afterimage_record::{
    Limits, Outcome, Recorder, Recording, RecordingWriter, RequestRecorder, ResponseRecorder,
};

use crate::support::start;

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
    recorder.finish();
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
