//! Passages as what was said, called and answered.

use std::{borrow::Cow, sync::Arc};

use super::{identifiers::identifiers, line::Line};
use crate::{
    id::{ChunkType, Role},
    json::{self, Value},
    snapshot::PartRef,
    steps::{Passage, arguments},
    text::quote::uncoloured,
    veil::OpenCalls,
};

/// Longer texts are not looked at as JSON: to parse them costs several times their size.
const LONGEST_JSON: usize = 1 << 20;

/// A message of at most this many bytes is about what it names; a longer one names much besides.
const WORDS: usize = 1_200;

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker<'j> {
    User,
    Agent,
    System,
    Call(&'j str),
    Result,
    /// Whoever wrote what an earlier block says.
    Summary,
}

impl Speaker<'static> {
    /// What a line begins with that tells what somebody said.
    pub(super) const LABELS: [(&'static str, Self); 4] = [
        ("User: ", Self::User),
        ("Agent: ", Self::Agent),
        ("System: ", Self::System),
        ("Result: ", Self::Result),
    ];
}

/// A text with the key that it stands under.
#[derive(Debug)]
pub(super) struct Field<'j> {
    pub(super) key: Option<Arc<str>>,
    pub(super) text: Cow<'j, str>,
}

impl<'j> Field<'j> {
    fn plain(text: &'j str) -> Self {
        Self { key: None, text: uncoloured(text) }
    }
}

impl Entry<'_> {
    /// Whether it is what somebody said to the agent.
    pub(super) fn is_words(&self) -> bool {
        self.speaker == Speaker::User && self.size <= WORDS
    }
}

/// The entries of passages, results beside their calls; `of_blocks` where they are summaries.
pub(super) fn entries(passages: &[Passage], of_blocks: bool) -> Vec<Entry<'_>> {
    let mut said = EntryCollector::default();
    for (passage, of) in passages.iter().enumerate() {
        for (role, chunk) in of.chunks() {
            let text = chunk.content();
            if chunk.chunk_type() == Some(ChunkType::FORMATTING.as_str()) {
                continue;
            }
            match chunk.part() {
                PartRef::Call { id, name } => said.call(passage, id, name, text),
                // What has no text says nothing of use about itself.
                PartRef::Opaque | PartRef::Audio | PartRef::Document => {}
                _ if text.trim().is_empty() => {}
                PartRef::Result { id } => said.result(passage, id, chunk.facet_ids().next(), text),
                // The passages of a block of blocks are what the blocks say.
                _ if of_blocks => said.lines(passage, text),
                _ => said.push(passage, speaker_of(role), vec![Field::plain(text)]),
            }
        }
    }
    said.entries
}

/// The entries so far.
#[derive(Default)]
struct EntryCollector<'j> {
    entries: Vec<Entry<'j>>,
    open: Open<'j>,
}

impl<'j> EntryCollector<'j> {
    fn push(&mut self, passage: usize, speaker: Speaker<'j>, fields: Vec<Field<'j>>) {
        self.entries.push(Entry {
            speaker,
            passage,
            size: fields.iter().map(|field| field.text.len()).sum(),
            fields,
            answers: Vec::new(),
            is_answer: false,
        });
    }

    fn call(&mut self, passage: usize, id: Option<&'j str>, name: &'j str, arguments: &'j str) {
        self.open.calls.call(id, name, self.entries.len());
        self.push(passage, Speaker::Call(name), arguments_of(arguments));
    }

    fn result(
        &mut self,
        passage: usize,
        id: Option<&'j str>,
        facet: Option<&'j str>,
        text: &'j str,
    ) {
        let call = self.open.answered(id, facet);
        self.push(passage, Speaker::Result, fields_of(text));
        call.into_iter().for_each(|call| self.answer(call));
    }

    /// What was pushed last answers the entry `call`.
    fn answer(&mut self, call: usize) {
        let at = self.entries.len().saturating_sub(1);
        if let Some(call) = self.entries.get_mut(call) {
            call.answers.push(at);
            self.entries.last_mut().into_iter().for_each(|answer| answer.is_answer = true);
        }
    }

    /// A summary, line by line: an outline is taken in as what it tells of.
    fn lines(&mut self, passage: usize, summary: &'j str) {
        for line in summary.lines().filter_map(Line::of) {
            let at = self.entries.len();
            self.push(passage, line.speaker, vec![Field::plain(line.text)]);
            if let Some(answer) = line.answer {
                self.push(passage, Speaker::Result, vec![Field::plain(answer)]);
                self.answer(at);
            }
        }
    }
}

/// The texts of the protected tail.
pub(super) fn texts(passages: &[Passage]) -> impl Iterator<Item = &str> {
    passages.iter().flat_map(Passage::chunks).map(|(_, chunk)| chunk.content())
}

fn speaker_of(role: Role) -> Speaker<'static> {
    match role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Agent,
        Role::System => Speaker::System,
    }
}

/// The calls that have no result yet, by their entries.
#[derive(Default)]
struct Open<'j> {
    calls: OpenCalls<usize>,
    /// The facet of the last result, and the call that it answered.
    last: Option<(&'j str, Option<usize>)>,
}

impl<'j> Open<'j> {
    /// The call that a result answers. A result of several chunks answers one.
    fn answered(&mut self, id: Option<&str>, facet: Option<&'j str>) -> Option<usize> {
        match self.last {
            Some((last, call)) if facet == Some(last) => call,
            _ => {
                let call = self.calls.answer(id, None).map(|answered| answered.call);
                self.last = facet.map(|facet| (facet, call));
                call
            }
        }
    }
}

/// The parameters of a call, as JSON or as the markup of a context.
fn arguments_of(text: &str) -> Vec<Field<'_>> {
    leaves_of(arguments(text)).unwrap_or_else(|| vec![Field::plain(text)])
}

/// The leaves of a JSON value under their keys, or the text as it is.
fn fields_of(text: &str) -> Vec<Field<'_>> {
    leaves_of(json_of(text)).unwrap_or_else(|| vec![Field::plain(text)])
}

fn leaves_of(value: Option<Value>) -> Option<Vec<Field<'static>>> {
    let mut fields = Vec::new();
    leaves(None, value?, &mut fields);
    Some(fields)
}

/// The object or array that a text is.
fn json_of(text: &str) -> Option<Value> {
    let text = text.trim();
    let may_be = text.len() <= LONGEST_JSON && text.starts_with(['{', '[']);
    may_be.then(|| json::read(text.as_bytes()).ok()).flatten()
}

fn leaves(key: Option<&Arc<str>>, value: Value, fields: &mut Vec<Field<'_>>) {
    let owned = || key.cloned();
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                // An object by the name of an id (`"W123": {…}`): its leaves alone would lose it.
                let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
                let is_long = name.len() > LONGEST_KEY;
                let has_name = || is_nested && identifiers(&name).next().is_some();
                if is_long {
                    fields.push(Field { key: owned(), text: name.clone().into() });
                } else if has_name() {
                    fields.push(Field { key: Some(Arc::from(&*name)), text: "".into() });
                }
                let name = (!is_long).then(|| Arc::from(name));
                leaves(name.as_ref(), value, fields);
            }
        }
        Value::Array(items) => {
            items.into_iter().for_each(|item| leaves(key, item, fields));
        }
        Value::String(text) => {
            let text = uncoloured(&text).into_owned().into();
            fields.push(Field { key: owned(), text });
        }
        value => fields.push(Field { key: owned(), text: value.to_string().into() }),
    }
}
