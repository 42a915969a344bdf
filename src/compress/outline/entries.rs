//! A job's passages as what was said, called and answered.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::identifiers::identifiers;
use crate::{
    compress::{CompressionJob, Passage, job::chunks},
    id::{ChunkType, Role},
    json::{self, Value},
    snapshot::Part,
};

/// Longer texts are not looked at as JSON: to parse them costs several times their size.
const LONGEST_JSON: usize = 1 << 20;

/// A message of at most this many bytes is somebody's words; longer ones are mostly what a program
/// said, whoever speaks it.
const WORDS: usize = 1_200;

/// A result of at most this many bytes is an outcome: it says whether something worked.
const OUTCOME: usize = 80;

/// A longer key is text, not the name of what stands under it.
const LONGEST_KEY: usize = 64;

/// One thing that happened, in order.
#[derive(Debug)]
pub(super) struct Entry<'j> {
    pub(super) speaker: Speaker<'j>,
    /// The index of its passage.
    pub(super) passage: usize,
    /// What it says: one text, or the fields of a JSON value.
    pub(super) fields: Vec<Field<'j>>,
    /// The entries that answer it: of a call, its results.
    pub(super) answers: Vec<usize>,
    /// Whether it stands in the answers of another.
    pub(super) is_answer: bool,
    /// The bytes of its text.
    pub(super) size: usize,
    /// Whether it is the first of the user's: most often it says what all the rest is for.
    pub(super) is_task: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker<'j> {
    User,
    Agent,
    System,
    Call(&'j str),
    Result,
}

/// A text with the key that it stands under.
#[derive(Debug)]
pub(super) struct Field<'j> {
    pub(super) key: Option<Arc<str>>,
    pub(super) text: Cow<'j, str>,
}

impl Entry<'_> {
    /// Whether it is what somebody said to the agent.
    pub(super) fn is_words(&self) -> bool {
        self.speaker == Speaker::User && self.size <= WORDS
    }

    /// What an outline says first: 0 for the user's words, 1 for what the agent did and for answers
    /// in a word, 2 for other results and for what speaks as the user at the length of a program.
    pub(super) fn order(&self) -> usize {
        match self.speaker {
            Speaker::User if self.is_task || self.is_words() => 0,
            Speaker::Agent | Speaker::Call(_) => 1,
            Speaker::Result if self.size <= OUTCOME => 1,
            _ => 2,
        }
    }
}

/// The entries of a job, results beside their calls.
pub(super) fn entries(job: &CompressionJob) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut open = Open::default();
    let mut has_task = false;
    for (index, passage) in job.passages.iter().enumerate() {
        for (role, chunk) in chunks(std::slice::from_ref(passage)) {
            let text = chunk.content();
            let is_blank = text.trim().is_empty();
            if chunk.chunk_type() == Some(&ChunkType::FORMATTING) {
                continue;
            }
            let (speaker, fields) = match chunk.part() {
                Part::Call { name, .. } => (Speaker::Call(name), fields_of(text)),
                // What has no text says nothing of use about itself.
                Part::Opaque => continue,
                _ if is_blank => continue,
                Part::Result { .. } => (Speaker::Result, fields_of(text)),
                _ => (speaker_of(role), vec![Field { key: None, text: text.into() }]),
            };
            let at = entries.len();
            let mut entry = Entry {
                speaker,
                passage: index,
                fields,
                answers: Vec::new(),
                is_answer: false,
                size: text.len(),
                is_task: speaker == Speaker::User && !has_task,
            };
            has_task |= entry.is_task;
            match chunk.part() {
                Part::Call { id, .. } => open.call(id.as_deref(), at),
                Part::Result { id } => {
                    let call: Option<&mut Entry<'_>> =
                        open.answered(id.as_deref()).and_then(|call| entries.get_mut(call));
                    if let Some(call) = call {
                        call.answers.push(at);
                        entry.is_answer = true;
                    }
                }
                _ => {}
            }
            entries.push(entry);
        }
    }
    entries
}

/// The texts of the protected tail.
pub(super) fn texts(passages: &[Passage]) -> impl Iterator<Item = &str> {
    chunks(passages).map(|(_, chunk)| chunk.content())
}

fn speaker_of(role: Role) -> Speaker<'static> {
    match role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Agent,
        Role::System => Speaker::System,
    }
}

/// The last call of each id that has no result yet; ids repeat in real transcripts.
#[derive(Default)]
struct Open<'j> {
    calls: HashMap<&'j str, VecDeque<usize>>,
    last_answered: Option<(&'j str, usize)>,
}

impl<'j> Open<'j> {
    fn call(&mut self, id: Option<&'j str>, at: usize) {
        self.calls.entry(id.unwrap_or_default()).or_default().push_back(at);
    }

    /// The call that a result answers. A result of several chunks answers the same one.
    fn answered(&mut self, id: Option<&'j str>) -> Option<usize> {
        let id = id.unwrap_or_default();
        if let Some(call) = self.calls.get_mut(id).and_then(VecDeque::pop_front) {
            self.last_answered = Some((id, call));
            return Some(call);
        }
        self.last_answered.filter(|(last, _)| *last == id).map(|(_, call)| call)
    }
}

/// The leaves of a JSON value under their keys, or the text as it is.
fn fields_of(text: &str) -> Vec<Field<'_>> {
    let trimmed = text.trim();
    if trimmed.len() <= LONGEST_JSON
        && trimmed.starts_with(['{', '['])
        && let Ok(value) = json::read(trimmed.as_bytes())
    {
        let mut fields = Vec::new();
        leaves(None, value, &mut fields);
        return fields;
    }
    vec![Field { key: None, text: text.into() }]
}

fn leaves(key: Option<&Arc<str>>, value: Value, fields: &mut Vec<Field<'_>>) {
    let owned = || key.cloned();
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                // An object by the name of an id (`"W123": {…}`): its leaves alone would lose it.
                let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
                let is_long = name.len() > LONGEST_KEY;
                if is_long || is_nested && identifiers(&name).next().is_some() {
                    fields.push(Field { key: owned(), text: name.clone().into() });
                }
                let name = (!is_long).then(|| Arc::from(name));
                leaves(name.as_ref(), value, fields);
            }
        }
        Value::Array(items) => {
            items.into_iter().for_each(|item| leaves(key, item, fields));
        }
        Value::String(text) => fields.push(Field { key: owned(), text: text.into() }),
        value => fields.push(Field { key: owned(), text: value.to_string().into() }),
    }
}
