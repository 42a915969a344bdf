//! Broken caches of recordings are those that were told by hand.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path, sync::Arc};

use afterimage::{
    bill::broken_caches, id::Millis, request::Recording, tokens::Chars4, transcript::Transcript,
};
use afterimage_testkit::data;

/// A recording, the list that was made of it by hand, and by how much less may be found to be lost:
/// who caches by itself does not say in which steps.
const LISTS: [(&str, &str, &str, u64); 3] = [
    ("B-anthropic", "claude-code/codemie/session-624a4a58.jsonl", "claude-code.tsv", 0),
    ("B-anthropic", "pi/before-compaction.jsonl", "pi.tsv", 0),
    ("C-codex-responses", "rollout/codemie-rollout-2026-05-11T11-26-55.jsonl", "codex.tsv", 511),
];

/// The milliseconds since midnight of a time as RFC 3339 writes it; the recordings end on the day on
/// which they begin, or their pauses at midnight are short.
fn time(text: &str) -> Option<Millis> {
    let (date, time) = text.trim_end_matches('Z').split_once('T')?;
    let day: f64 = date.rsplit('-').next()?.parse().ok()?;
    let seconds = time
        .split(':')
        .try_fold(0.0, |sum, part| part.parse::<f64>().ok().map(|part| sum * 60.0 + part))?;
    Some(Millis::new(((day * 86_400.0 + seconds) * 1000.0).round() as i64))
}

#[test]
fn broken_caches_of_recordings_are_those_that_were_told_by_hand() {
    for (group, file, list, less) in LISTS {
        let Some(folder) = data::recordings(group) else { return };
        let transcript = Transcript::open(folder.join(file)).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let found: Vec<(usize, u64, String)> = broken_caches(&recording, time)
            .unwrap()
            .into_iter()
            .map(|of| (of.request, of.lost, of.cause.as_str().to_owned()))
            .collect();
        let list =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken-caches").join(list);
        let expected: Vec<(usize, u64, String)> = fs::read_to_string(list)
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let mut cells = line.split('\t');
                let mut cell = || cells.next().unwrap();
                (cell().parse().unwrap(), cell().parse().unwrap(), cell().to_owned())
            })
            .collect();
        assert!(expected.len() >= 12, "{file}");
        let requests = |of: &[(usize, u64, String)]| -> Vec<(usize, String)> {
            of.iter().map(|(request, _, cause)| (*request, cause.clone())).collect()
        };
        assert_eq!(requests(&found), requests(&expected), "{file}");
        for ((request, found, _), (_, expected, _)) in found.iter().zip(&expected) {
            let is_within = found <= expected && expected - found <= less;
            assert!(is_within, "{file}: request {request} lost {expected}, found {found}");
        }
    }
}
