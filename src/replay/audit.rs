use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use indexmap::IndexMap;
use serde::Serialize;

use crate::{
    Result,
    export::PrefixRules,
    id::FrameSeq,
    json::{self, Object, ObjectExt, Value},
    request::Recording,
    summary::identifiers,
    veil::Source,
};

crate::json::serialize_through_json!(LossAudit);

/// Members of a request that are no part of the conversation.
const APART: [&str; 2] = ["/model", "/tools"];

/// What one session lost of what another of the same task went on to use.
///
/// The first is the session without a compressor: the names (ids, paths, numbers) that its agent
/// used after it had read them are those that were needed. Each is looked for in the requests of the
/// second session, the one with a compressor.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossAudit {
    /// The names, in the order in which the first session used them.
    pub names: Vec<AuditedName>,
    /// The requests of the second session.
    pub requests: u64,
    /// Those of them that begin otherwise than the one before: something of it was taken away or
    /// rewritten.
    pub rewritten: u64,
}

/// A name that the first session used.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditedName {
    /// The name.
    pub name: Arc<str>,
    /// In how many frames the first session's agent used it.
    pub uses: u64,
    /// The first of these frames.
    pub first_use: FrameSeq,
    /// The last of them.
    pub last_use: FrameSeq,
    /// Whether the second session still has it.
    #[serde(flatten)]
    pub fate: NameFate,
    /// How often a request of the second session had it again after one that had not.
    pub read_again: u64,
}

/// Whether the requests of a session have a name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "camelCase")]
pub enum NameFate {
    /// No request had it: the agent went another way, or had not come so far.
    NeverRead,
    /// The last request has it.
    Kept,
    /// A request had it, and those after it have not.
    Lost {
        /// The number of the last request that had it.
        #[serde(rename = "lastRequest")]
        last: usize,
    },
}

impl LossAudit {
    /// Audits the session `with_name` of the recording `with`, beside the session `without_name` of
    /// `without`. A session that a recording has not is one without names or requests.
    ///
    /// Each text of a request is looked through once, however many requests hold it; each request is
    /// rendered or read once.
    ///
    /// # Errors
    /// Those of [`Recording::request`] and [`Recording::compare`].
    pub fn of(
        (without, without_name): (&Recording, &str),
        (with, with_name): (&Recording, &str),
    ) -> Result<Self> {
        let mut names = used(without, without_name);
        let mut readings = Readings { names: &mut names, known: HashMap::new() };
        let mut requests = 0;
        for number in numbers(with, with_name) {
            requests += 1;
            readings.read(with, number)?;
        }
        let rewritten = Self::rewritten(with, with_name)?;
        let names = names.into_iter().map(|(name, seen)| seen.audited(name)).collect();
        Ok(Self { names, requests, rewritten })
    }

    /// How many requests of a session begin otherwise than the one before. Costs a
    /// [`Recording::compare`] for each of them.
    ///
    /// # Errors
    /// Those of [`Recording::compare`].
    pub fn rewritten(recording: &Recording, session: &str) -> Result<u64> {
        let mut rewritten = 0;
        for number in numbers(recording, session) {
            let compared = recording.compare(number, PrefixRules::EXACT)?;
            rewritten += u64::from(compared.is_some_and(|diff| diff.prefix.divergence.is_some()));
        }
        Ok(rewritten)
    }

    /// The names that the last request of the second session has. O(n) for all of them.
    pub fn kept(&self) -> impl Iterator<Item = &AuditedName> {
        self.names.iter().filter(|name| name.fate == NameFate::Kept)
    }

    /// The names that a request of the second session had, and the last one has not. O(n) for all
    /// of them.
    pub fn lost(&self) -> impl Iterator<Item = &AuditedName> {
        self.names.iter().filter(|name| matches!(name.fate, NameFate::Lost { .. }))
    }

    /// The names that no request of the second session had. O(n) for all of them.
    pub fn never_read(&self) -> impl Iterator<Item = &AuditedName> {
        self.names.iter().filter(|name| name.fate == NameFate::NeverRead)
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("requests", self.requests);
        object.put("rewritten", self.rewritten);
        object.put("used", self.names.len() as u64);
        object.put("neverRead", self.never_read().count() as u64);
        object.put("kept", self.kept().count() as u64);
        object.put("lost", self.lost().count() as u64);
        let again = self.names.iter().filter(|name| name.read_again > 0).count();
        object.put("readAgain", again as u64);
        object.put("names", json::to_value(&self.names).unwrap_or_default());
        object.into()
    }
}

/// A name, and where it was seen.
#[derive(Debug)]
struct Seen {
    uses: u64,
    first_use: FrameSeq,
    last_use: FrameSeq,
    /// The last request that had it, and whether that is the last one of all so far.
    last: Option<usize>,
    is_there: bool,
    read_again: u64,
}

impl Seen {
    fn audited(self, name: Arc<str>) -> AuditedName {
        let Self { uses, first_use, last_use, last, is_there, read_again } = self;
        let fate = match last {
            None => NameFate::NeverRead,
            Some(_) if is_there => NameFate::Kept,
            Some(last) => NameFate::Lost { last },
        };
        AuditedName { name, uses, first_use, last_use, fate, read_again }
    }
}

/// The numbers of the requests of a session.
fn numbers(recording: &Recording, session: &str) -> impl Iterator<Item = usize> {
    let own = recording.exchanges().iter().filter(move |exchange| *exchange.session == *session);
    own.map(|exchange| exchange.number)
}

/// The names that the agent of a session used after somebody else had said them.
fn used(recording: &Recording, session: &str) -> IndexMap<Arc<str>, Seen> {
    let mut used: IndexMap<Arc<str>, Seen> = IndexMap::new();
    let mut said: HashSet<Arc<str>> = HashSet::new();
    let Some(history) = recording.history(session) else { return used };
    for frame in history.frames() {
        let Some(snapshot) = &frame.rendered_snapshot else { continue };
        let names: HashSet<&str> = identifiers(snapshot.text()).collect();
        if frame.source != Source::Agent {
            said.extend(names.into_iter().map(Arc::from));
            continue;
        }
        let mut names: Vec<&str> = names.into_iter().filter(|name| said.contains(*name)).collect();
        names.sort_unstable();
        for name in names {
            let seen = used.entry(name.into()).or_insert(Seen {
                uses: 0,
                first_use: frame.sequence,
                last_use: frame.sequence,
                last: None,
                is_there: false,
                read_again: 0,
            });
            seen.uses += 1;
            seen.last_use = frame.sequence;
        }
    }
    used
}

/// Looks for names in requests.
struct Readings<'n> {
    names: &'n mut IndexMap<Arc<str>, Seen>,
    /// The names in each text, by the text's hash.
    known: HashMap<[u8; 32], Arc<[usize]>>,
}

impl Readings<'_> {
    fn read(&mut self, recording: &Recording, number: usize) -> Result<()> {
        let mut there: HashSet<usize> = HashSet::new();
        if let Some(context) = recording.context(number)? {
            for message in context.messages() {
                there.extend(self.names_in(&message.content()).iter().copied());
            }
        } else {
            let request = recording.request(number)?.in_cache_order()?;
            for (path, text) in request.root().texts() {
                let path = path.to_string();
                if !APART.iter().any(|apart| path.starts_with(apart)) {
                    there.extend(self.names_in(text.as_str()).iter().copied());
                }
            }
        }
        for (index, seen) in self.names.values_mut().enumerate() {
            let is_there = there.contains(&index);
            seen.read_again += u64::from(is_there && !seen.is_there && seen.last.is_some());
            seen.is_there = is_there;
            if is_there {
                seen.last = Some(number);
            }
        }
        Ok(())
    }

    fn names_in(&mut self, text: &str) -> Arc<[usize]> {
        let names = &self.names;
        let found = || identifiers(text).filter_map(|name| names.get_index_of(name)).collect();
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        Arc::clone(self.known.entry(hash).or_insert_with(found))
    }
}
