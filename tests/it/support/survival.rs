//! What survives a compression: the measurement of `docs/compression.md`.
//!
//! It shares no code with the engines that it measures: what is looked for is found by the plain
//! rules of `replay::survival`.

#![allow(dead_code, reason = "each user takes what it needs")]

#[path = "survival/extract.rs"]
pub(crate) mod extract;
#[path = "survival/identifiers.rs"]
mod identifiers;
#[path = "../../../src/replay/survival/words.rs"]
pub(crate) mod words;
#[path = "../../../src/replay/survival/work.rs"]
pub(crate) mod work;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::identifiers::identifiers;
use afterimage::{
    compress::{CompressionJob, CompressionOptions, OutlineEngine, Passage},
    hud::{Hud, NativeFormat, RenderRequest},
    id::{ChunkType, Millis, Role},
    json::{self, Value},
    snapshot::PartRef,
    tokens::TokenCounter,
    transcript::Transcript,
    veil::{Branch, Compaction, Frame, History},
    window::{Budget, ContextWindow},
};

/// The groups of recordings that are measured.
pub(crate) const GROUPS: [&str; 4] =
    ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

/// How many of the last messages a compression leaves alone.
const PROTECTED: usize = 6;

/// After which parts of a session's messages it is compressed.
const MOMENTS: [(usize, usize); 3] = [(1, 4), (1, 2), (3, 4)];

/// Sessions with fewer messages are not measured.
const FEWEST_MESSAGES: usize = 20;

/// Fewer tokens are not worth a compression.
const FEWEST_TOKENS: u64 = 500;

/// A session of a recording: what each message rendered to, but for the system prompt, which no
/// compression touches.
pub(crate) struct Session {
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) messages: Vec<Passage>,
    frames: Vec<Frame>,
}

impl Session {
    /// The first `count` messages, rendered in a history that holds nothing after them.
    pub(crate) fn recaptured(&self, count: usize, counter: &Arc<dyn TokenCounter>) -> Vec<Passage> {
        let last = self.messages[count - 1].to;
        let frames = self.frames.iter().take_while(|frame| frame.sequence <= last);
        capture(&hud(counter), frames.cloned())
    }
}

fn hud(counter: &Arc<dyn TokenCounter>) -> Hud {
    Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build()
}

/// The recordings in `root`, each with its group.
pub(crate) fn files(root: &Path) -> Vec<(&'static str, PathBuf)> {
    let of = |group| files_under(&root.join(group)).into_iter().map(move |path| (group, path));
    GROUPS.into_iter().flat_map(of).collect()
}

/// The sessions of recordings with at least [`FEWEST_MESSAGES`] messages, rendered as they are
/// asked for.
pub(crate) fn sessions(
    files: Vec<(&'static str, PathBuf)>,
    counter: &Arc<dyn TokenCounter>,
) -> impl Iterator<Item = Session> {
    let hud = hud(counter);
    let recorded = files.into_iter().flat_map(|(group, path)| {
        let mut sessions: Vec<(Arc<str>, Vec<Frame>)> = Vec::new();
        for record in Transcript::open(&path).unwrap() {
            let record = record.unwrap();
            match sessions.iter_mut().find(|(session, _)| *session == record.session) {
                Some((_, frames)) => frames.push(record.frame),
                None => sessions.push((record.session, vec![record.frame])),
            }
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sessions
            .into_iter()
            .filter(|(_, frames)| frames.len() >= FEWEST_MESSAGES)
            .map(move |(session, frames)| (group, format!("{group} {file} {session}"), frames))
    });
    recorded.filter_map(move |(group, name, frames)| {
        let messages = capture(&hud, frames.iter().cloned());
        let is_long = messages.len() >= FEWEST_MESSAGES;
        is_long.then_some(Session { group, name, messages, frames })
    })
}

fn capture(hud: &Hud, frames: impl IntoIterator<Item = Frame>) -> Vec<Passage> {
    let mut history = History::new();
    let mut messages = Vec::new();
    for frame in frames {
        let role = hud.role_of(&frame.source);
        let source = Some(frame.source.clone());
        let frame = hud.capture(&mut history, frame, Millis::new(0)).unwrap();
        let snapshot = frame.rendered_snapshot.clone().unwrap();
        if role != Role::System && snapshot.has_content() {
            let (from, to) = (frame.sequence, frame.sequence);
            messages.push(Passage { source, ..Passage::new(from, to, role, snapshot) });
        }
    }
    messages
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_under(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// A compression in the middle of a session, and what came after it.
pub(crate) struct Moment<'a> {
    pub(crate) session: &'a Session,
    /// The messages before the protected tail.
    pub(crate) compressed: &'a [Passage],
    /// The protected tail.
    pub(crate) tail: &'a [Passage],
    /// Those after it, up to the session's end.
    pub(crate) future: &'a [Passage],
}

/// What is measured of each session.
pub(crate) fn moments(session: &Session) -> impl Iterator<Item = Moment<'_>> {
    MOMENTS.into_iter().filter_map(move |(part, of)| {
        let (past, future) = session.messages.split_at(session.messages.len() * part / of);
        let (compressed, tail) = past.split_at(past.len().saturating_sub(PROTECTED));
        let tokens: u64 = compressed.iter().map(|message| message.snapshot.total_tokens()).sum();
        (tokens >= FEWEST_TOKENS).then_some(Moment { session, compressed, tail, future })
    })
}

impl Moment<'_> {
    /// The job at one token for `ratio` tokens of the original.
    pub(crate) fn job(&self, ratio: u64) -> CompressionJob {
        let mut job =
            CompressionJob::new(self.compressed.to_vec(), 0).with_tail(self.tail.to_vec());
        job.token_limit = job.original_tokens / ratio;
        job
    }

    /// What a window says in place of the compressed messages where that, its words, ledger and
    /// blocks together, may have one token for `ratio` tokens of the original. Empty where it does
    /// not fit; `None` where the recording tells of a compaction or a branch, whose summary a window
    /// takes over.
    pub(crate) fn window(&self, ratio: u64, counter: &Arc<dyn TokenCounter>) -> Option<String> {
        let hud = hud(counter);
        let last = self.tail.last().or(self.compressed.last()).unwrap().to;
        let mut history = History::new();
        for frame in self.session.frames.iter().take_while(|frame| frame.sequence <= last) {
            if Compaction::of(frame).unwrap().is_some() || Branch::of(frame).unwrap().is_some() {
                return None;
            }
            hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
        }
        let request = RenderRequest::default();
        let whole = hud.render(&history, &request, Millis::new(0)).unwrap().tokens().total;
        let original = self.job(ratio).original_tokens;
        let limit = original / ratio;
        let budget =
            Budget { recent: u64::MAX, ..Budget::once(whole.saturating_sub(original) + limit) };
        let options = CompressionOptions { protected_frames: PROTECTED, ..budget.compression() };
        let mut window = ContextWindow::new(hud, budget, options);
        let fitted = window.render(&mut history, &request, &OutlineEngine, Millis::new(0));
        let Ok(fitted) = fitted else { return Some(String::new()) };
        let of_tail: HashSet<usize> =
            self.tail.iter().filter_map(|of| fitted.context.message_of(of.from)).collect();
        let messages = fitted.context.messages().iter().enumerate();
        let stands = messages
            .filter(|(at, message)| message.role() != Role::System && !of_tail.contains(at));
        let texts: Vec<String> =
            stands.map(|(_, message)| message.content().into_owned()).collect();
        Some(texts.join("\n"))
    }

    /// Whether commands stand in what the agent says, and their output in the user's messages.
    pub(crate) fn is_text_only(&self) -> bool {
        work::has_commands_in_text(&self.session.messages)
    }

    /// What the user said in the compressed messages, in order.
    pub(crate) fn words(&self) -> Vec<String> {
        words::words(self.compressed, self.is_text_only())
    }

    /// The identifiers of the compressed messages that the session names again afterwards, and
    /// that the protected tail does not show anyway.
    pub(crate) fn needed(&self) -> BTreeSet<String> {
        let mut needed = self.used_again();
        for shown in identifiers_of(self.tail) {
            needed.remove(&shown);
        }
        needed
    }

    /// As [`needed`](Self::needed), with those that the protected tail shows.
    pub(crate) fn used_again(&self) -> BTreeSet<String> {
        let after: HashSet<String> = identifiers_of(self.future).into_iter().collect();
        identifiers_of(self.compressed).into_iter().filter(|found| after.contains(found)).collect()
    }
}

/// How many of `needed` stand in `summary` as whole words.
pub(crate) fn kept(needed: &BTreeSet<String>, summary: &str) -> usize {
    let found: HashSet<String> = identifiers(summary).into_iter().collect();
    needed.iter().filter(|identifier| found.contains(*identifier)).count()
}

/// A bare list of identifiers, ordered by where they stood: in the user's words, in the arguments
/// of tools, twice anywhere, elsewhere. The simplest thing that does not forget much.
pub(crate) fn bare_list(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    let names = names_by_place(job);
    longest(names.len(), job.token_limit, counter, |count| names[..count].join(" "))
}

fn names_by_place(job: &CompressionJob) -> Vec<String> {
    let mut places: HashMap<String, (u8, usize)> = HashMap::new();
    for (role, chunk) in job.chunks() {
        let place = match (chunk.part(), role) {
            (PartRef::Call { .. }, _) => 1,
            (PartRef::Text, Role::User) => 0,
            _ => 3,
        };
        for identifier in identifiers(chunk.content()) {
            let next = places.len();
            match places.get_mut(&identifier) {
                Some((best, _)) => *best = place.min(*best).min(2),
                None => _ = places.insert(identifier, (place, next)),
            }
        }
    }
    let mut ordered: Vec<_> = places.into_iter().map(|(name, place)| (place, name)).collect();
    ordered.sort();
    ordered.into_iter().map(|(_, name)| name).collect()
}

/// The last messages at the size of the summary, the first of them cut where it must be.
pub(crate) fn last_messages(job: &CompressionJob, counter: &dyn TokenCounter) -> String {
    let text = job.text();
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    longest(words.len(), job.token_limit, counter, |count| words[words.len() - count..].concat())
}

/// The longest of the texts of 0 to `most` parts that fits.
fn longest(
    most: usize,
    limit: u64,
    counter: &dyn TokenCounter,
    text: impl Fn(usize) -> String,
) -> String {
    let (mut fits, mut exceeds) = (0, most + 1);
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        let fitting = counter.count_up_to(&text(middle), limit as usize);
        if fitting.is_some() { fits = middle } else { exceeds = middle }
    }
    text(fits)
}

fn identifiers_of(messages: &[Passage]) -> BTreeSet<String> {
    let chunks = messages.iter().flat_map(|message| message.snapshot.chunks());
    chunks.flat_map(|chunk| identifiers(chunk.content())).collect()
}

/// How many of the runs of five words of `said` stand in `text`, and how many there are. Of fewer
/// words there is one run.
pub(crate) fn five_grams(said: &str, text: &str) -> (usize, usize) {
    words::Runs::of(text).found(said)
}

/// Whether a text stands in another, white space aside. O(both texts).
pub(crate) fn stands_in(wanted: &str, text: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat(text).contains(&flat(wanted))
}
