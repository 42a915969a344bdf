//! Recordings that are large or damaged, each with a decided answer; `requests.rs` has those that are
//! cut, packed and encoded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use afterimage::{id::Millis, request::Recording, tokens::Chars4, transcript::Transcript};

/// How long a file of 60 MB may take without optimisation on a machine that does other work too.
const LONG: Duration = Duration::from_secs(60);

fn read(input: &str) -> Recording {
    let transcript = Transcript::new(input.as_bytes()).unwrap();
    Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap()
}

#[test]
fn an_archive_of_sixty_megabytes_on_one_line_is_read_in_bounded_time() {
    let text = "word ".repeat(3 << 20);
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    let body = format!(r#"{{"messages":[{}]}}"#, [message.as_str(); 4].join(","));
    let quoted = body.replace('"', r#"\""#);
    let archive = format!(
        r#"{{"log":{{"entries":[{{"request":{{"url":"https://x.example/v1/messages","postData":{{"text":"{quoted}"}}}},"response":{{"status":200,"content":{{"text":"{{}}"}}}}}}]}}}}"#
    );
    assert!(archive.len() > 60_000_000 && !archive.contains('\n'));
    let began = Instant::now();
    let recording = read(&archive);
    let took = began.elapsed();
    assert_eq!(recording.exchanges().len(), 1);
    assert!(recording.request(1).unwrap().body() == body);
    assert!(took < LONG, "{took:?}");
}

#[test]
fn damaged_parents_leave_the_order_of_the_file_in_every_request() {
    let said = |id: &str, parent: &str, kind: &str| {
        format!(
            r#"{{"type":"{kind}","sessionId":"s","uuid":"{id}","parentUuid":"{parent}","message":{{"role":"{kind}","id":"m-{id}-{parent}","content":"{id}<{parent}"}}}}"#
        )
    };
    let circle = "a record whose parents go in a circle, or are out of order";
    let own = "a record that is its own parent";
    let several = "a record whose parent is the id of several records";
    let damaged = [
        (
            [("a", "c"), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e")],
            vec![(3, circle)],
        ),
        (
            [("a", "a"), ("b", "a"), ("c", "c"), ("d", "c"), ("e", "d"), ("f", "e")],
            vec![(1, own), (3, own)],
        ),
        (
            [("a", "x"), ("b", "a"), ("a", "b"), ("c", "a"), ("d", "a"), ("e", "d")],
            vec![(5, several)],
        ),
    ];
    for (records, notes) in damaged {
        let kinds = ["user", "assistant"].into_iter().cycle();
        let lines: Vec<_> =
            records.iter().zip(kinds).map(|((id, parent), kind)| said(id, parent, kind)).collect();
        let lines = lines.join("\n");
        let recording = read(&lines);
        assert_eq!(recording.exchanges().len(), 3, "{records:?}");
        for (at, exchange) in recording.exchanges().iter().enumerate() {
            let context = recording.context(exchange.number).unwrap().unwrap();
            let texts: Vec<_> =
                context.messages().iter().map(|message| message.content().to_string()).collect();
            let before = records.iter().take(2 * at + 1);
            let expected: Vec<_> = before.map(|(id, parent)| format!("{id}<{parent}")).collect();
            assert_eq!(texts, expected, "{records:?}");
        }
        let mut transcript = Transcript::new(lines.as_bytes()).unwrap();
        assert_eq!(transcript.by_ref().count(), 6);
        let found = transcript.report().notes.iter();
        let found: Vec<_> = found.map(|note| (note.line, note.text.as_str())).collect();
        assert_eq!(found, notes, "{records:?}");
    }
}
