//! The window as steps keep it: in parts, so that no step waits for all of it.

use std::{
    collections::{BTreeMap, HashMap},
    thread::{self, JoinHandle},
    vec,
};

use serde::{Deserialize, Serialize};

use super::step::hash_of;
use crate::{
    json::{self, Value},
    text::first_bytes,
    window::ContextWindow,
};

/// How many bytes of a window a step takes, where it has few parts.
const PART: usize = 32 << 10;
/// The most parts of a window: a process that ends before the last one has kept none.
const MOST_PARTS: usize = 4;
/// The windows that are put together at once: those of processes side by side.
const MOST_BEGUN: usize = 8;

/// A part of a window that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowPart {
    /// The number of the request that the window is as after.
    turn: u64,
    /// From one.
    part: u64,
    parts: u64,
    /// Blake3 of the window, in hexadecimal digits.
    hash: String,
    text: String,
}

/// A window that is written down in a thread of its own, since one that stands for many frames takes
/// long, and then kept a part at a time.
#[derive(Debug)]
pub(super) struct WindowWriting {
    thread: Option<JoinHandle<(usize, Vec<String>)>>,
    parts: vec::IntoIter<String>,
    bytes: usize,
}

impl WindowWriting {
    /// Begins to write the window after the request with this number; `None` where there is no thread
    /// for it.
    pub(super) fn start(turn: u64, window: ContextWindow) -> Option<Self> {
        let write = move || {
            let text = window.to_json().to_string();
            // One that could not be read again is not kept.
            let is_sound = json::read(text.as_bytes()).is_ok();
            let parts = if is_sound { parts_of(turn, &text) } else { Vec::new() };
            (text.len(), parts)
        };
        let thread = thread::Builder::new().name("window".to_owned()).spawn(write).ok()?;
        Some(Self { thread: Some(thread), parts: Vec::new().into_iter(), bytes: 0 })
    }

    /// The next part, as an object with the member of a step; `None` while there is none.
    pub(super) fn next_part(&mut self) -> Option<String> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            let (bytes, parts) = thread.join().unwrap_or_default();
            (self.bytes, self.parts) = (bytes, parts.into_iter());
        }
        self.parts.next()
    }

    /// The bytes of the window, once there are no more parts of it.
    pub(super) fn bytes_written(&self) -> Option<usize> {
        (self.thread.is_none() && self.parts.len() == 0).then_some(self.bytes)
    }
}

fn parts_of(turn: u64, text: &str) -> Vec<String> {
    // A character is not parted.
    let most = PART.max(text.len().div_ceil(MOST_PARTS) + 3);
    let (mut rest, mut texts) = (text, Vec::new());
    while !rest.is_empty() {
        let part = first_bytes(rest, most);
        texts.push(part.to_owned());
        rest = rest.get(part.len()..).unwrap_or_default();
    }
    let (hash, parts) = (hash_of(text), texts.len() as u64);
    let member = |(part, text)| {
        let part = WindowPart { turn, part, parts, hash: hash.clone(), text };
        let part = json::to_value(&part).ok()?;
        Some(format!(r#"{{"window":{part}}}"#))
    };
    (1..).zip(texts).map_while(member).collect()
}

/// The last window that steps hold.
#[derive(Debug)]
pub(super) struct KeptWindow {
    /// The number of the request that it is as after.
    pub(super) turn: u64,
    pub(super) bytes: usize,
    pub(super) state: Value,
}

/// Puts together the last window that is whole. Several processes may have kept theirs side by side,
/// and one that was killed leaves it without its end.
#[derive(Debug, Default)]
pub(super) struct WindowParts {
    /// By the hash of a window its turn, and its parts.
    begun: HashMap<String, (u64, BTreeMap<u64, String>)>,
    last: Option<(u64, String)>,
}

impl WindowParts {
    pub(super) fn take(&mut self, part: WindowPart) {
        let WindowPart { turn, part, parts, hash, text } = part;
        let oldest = self.begun.iter().min_by_key(|(_, (begun, _))| *begun);
        if self.begun.len() >= MOST_BEGUN && !self.begun.contains_key(&hash) {
            let oldest = oldest.map(|(hash, _)| hash.clone());
            oldest.map(|oldest| self.begun.remove(&oldest));
        }
        let (_, known) = self.begun.entry(hash.clone()).or_insert((turn, BTreeMap::new()));
        known.insert(part, text);
        if known.len() as u64 != parts {
            return;
        }
        let whole: String = std::mem::take(known).into_values().collect();
        self.begun.remove(&hash);
        let is_later = self.last.as_ref().is_none_or(|(last, _)| *last <= turn);
        if is_later && hash_of(&whole) == hash {
            self.begun.retain(|_, (begun, _)| *begun > turn);
            self.last = Some((turn, whole));
        }
    }

    pub(super) fn last(self) -> Option<KeptWindow> {
        let (turn, text) = self.last?;
        let state = json::read(text.as_bytes()).ok()?;
        Some(KeptWindow { turn, bytes: text.len(), state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a window of so many bytes.
    fn parts(turn: u64, bytes: usize) -> (String, Vec<WindowPart>) {
        let text = Value::from("é".repeat(bytes / 2)).to_string();
        let parts = parts_of(turn, &text).into_iter().map(|member| {
            let member = json::read(member.as_bytes()).unwrap();
            json::from_value(member.get("window").unwrap().clone()).unwrap()
        });
        let parts = parts.collect();
        (text, parts)
    }

    fn last(parts: impl IntoIterator<Item = WindowPart>) -> Option<(u64, String)> {
        let mut known = WindowParts::default();
        parts.into_iter().for_each(|part| known.take(part));
        known.last().map(|kept| (kept.turn, kept.state.to_string()))
    }

    #[test]
    fn a_window_is_that_of_its_parts() {
        for bytes in [2, PART - 3, PART - 2, PART - 1, PART, 3 * PART + 1, 9 * PART + 1] {
            let (text, parts) = parts(7, bytes);
            assert_eq!(parts.len(), text.len().div_ceil(PART).min(MOST_PARTS), "{bytes}");
            assert_eq!(last(parts), Some((7, text)), "{bytes}");
        }
    }

    #[test]
    fn a_window_without_its_end_is_none_and_the_one_before_it_counts() {
        let ((text, whole), (_, mut cut)) = (parts(7, 2 * PART), parts(9, 4 * PART));
        cut.pop();
        assert_eq!(last(cut.clone()), None);
        assert_eq!(last(whole.into_iter().chain(cut)), Some((7, text)));
    }

    #[test]
    fn windows_without_their_end_are_bounded() {
        let mut known = WindowParts::default();
        for turn in 1..100 {
            let (_, mut parts) = parts(turn, 2 * PART + 2 * usize::try_from(turn).unwrap());
            known.take(parts.swap_remove(0));
        }
        assert_eq!(known.begun.len(), MOST_BEGUN);
        assert!(known.begun.values().all(|(turn, _)| *turn > 90));
    }

    #[test]
    fn windows_of_two_processes_stand_side_by_side() {
        let ((_, early), (text, late)) = (parts(7, 3 * PART), parts(9, 4 * PART));
        let between = early.iter().zip(&late).flat_map(|(early, late)| [late, early]).cloned();
        let rest = late.last().cloned();
        assert_eq!(last(between.chain(rest.clone())), Some((9, text.clone())));
        // The later one is whole first.
        let first = late.into_iter().chain(early);
        assert_eq!(last(first), Some((9, text)));
    }

    #[test]
    fn parts_that_are_not_those_of_their_hash_are_no_window() {
        let (_, mut changed) = parts(7, 2 * PART);
        changed[1].text.push('x');
        assert_eq!(last(changed), None);
    }
}
