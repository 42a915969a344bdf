//! Which identifiers are likely to be needed again.

use std::collections::{HashMap, HashSet};

use super::{
    entries::{Entry, Field, Speaker},
    identifiers::{Kind, identifiers},
};
use crate::{text::TextRange, tokens::TokenCounter};

/// The part of all that is likely to be needed that goes before prose.
const LIKELY: f64 = 0.97;

/// What a name is worth that the protected tail shows, beside one that it does not.
const SHOWN_BEHIND: f64 = 0.2;

/// What a name gains that stands in one text with names that the protected tail shows: what the
/// agent works on is what it goes on with.
const NEAR_TAIL: f64 = 0.5;

/// What a name gains that stands under the key of an id.
const OF_ID: f64 = 1.3;

/// A place where an identifier stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    /// The index of the name.
    pub(super) name: usize,
    pub(super) field: usize,
    /// Where it stands in the field's text; `None` where it is the field's key.
    pub(super) range: Option<TextRange>,
}

/// One identifier, wherever it stands.
#[derive(Debug)]
pub(super) struct Name {
    /// Its place when names are ordered from the one that is most worth its tokens.
    pub(super) rank: usize,
    /// How likely it is to be needed.
    worth: f64,
    /// With the blank before it.
    tokens: usize,
}

/// All identifiers of a job.
pub(super) struct Names {
    pub(super) names: Vec<Name>,
    /// Of each entry, in order.
    pub(super) mentions: Vec<Vec<Mention>>,
    /// So many names from the first rank on hold nearly all that is likely to be needed.
    pub(super) likely: usize,
}

/// What is known of an identifier when the job is planned.
struct KnownName<'e> {
    text: &'e str,
    kind: Kind,
    passages: usize,
    last_passage: usize,
    in_words: bool,
    in_arguments: bool,
    key: KeyKind,
}

/// What key a name stood under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum KeyKind {
    #[default]
    None,
    Other,
    /// That of an id.
    Id,
}

impl Names {
    /// Finds them, and ranks them; `of_block` where a ledger stands beside the summary. Runs in time
    /// linear in the text, but for the sort.
    pub(super) fn of<'t>(
        entries: &[Entry<'_>],
        tail: impl Iterator<Item = &'t str>,
        of_block: bool,
        counter: &dyn TokenCounter,
    ) -> Self {
        let mut by_text: HashMap<&str, usize> = HashMap::new();
        let mut known: Vec<KnownName<'_>> = Vec::new();
        let mut mentions: Vec<Vec<Mention>> = Vec::new();
        for entry in entries {
            let mut here = Vec::new();
            for (field, (text, range, kind)) in named(entry) {
                let name = *by_text.entry(text).or_insert(known.len());
                if name == known.len() {
                    known.push(KnownName::new(text, kind));
                }
                if let Some(known) = known.get_mut(name) {
                    known.see(entry, field, kind);
                }
                here.push(Mention { name, field, range });
            }
            mentions.push(here);
        }
        let mut in_tail: HashSet<usize> = HashSet::new();
        for text in tail {
            let names =
                identifiers(text).filter_map(|(range, _)| by_text.get(range.of(text)).copied());
            in_tail.extend(names);
        }
        let near = near_tail(&mentions, &in_tail, known.len());
        let last = entries.last().map_or(0, |entry| entry.passage);
        let names = known.iter().enumerate().map(|(name, known)| {
            let near = near.get(name).copied().unwrap_or_default();
            let worth =
                known.worth(in_tail.contains(&name), last, of_block) * (1.0 + NEAR_TAIL * near);
            Name { rank: 0, worth, tokens: counter.count(&format!(" {}", known.text)) }
        });
        let mut names = Self { names: names.collect(), mentions, likely: 0 };
        names.rank();
        names
    }

    /// The names in the order of their ranks, each with its tokens.
    pub(super) fn ranked(&self, entries: &[Entry<'_>]) -> Vec<(String, usize)> {
        let mut texts = vec![None; self.names.len()];
        let is_of_use = |name: &&Name| name.worth > 0.0;
        for (entry, mentions) in entries.iter().zip(&self.mentions) {
            for mention in mentions {
                let name = self.names.get(mention.name).filter(is_of_use);
                let place = name.and_then(|name| texts.get_mut(name.rank));
                let field = entry.fields.get(mention.field);
                if let (Some(place @ None), Some(field), Some(name)) = (place, field, name) {
                    let text = match mention.range {
                        Some(range) => range.of(&field.text),
                        None => field.key.as_deref().unwrap_or_default(),
                    };
                    *place = Some((text.to_owned(), name.tokens));
                }
            }
        }
        texts.into_iter().flatten().collect()
    }

    /// Ranks the names by what they are worth for a token.
    fn rank(&mut self) {
        let total: f64 = self.names.iter().map(|name| name.worth).sum();
        let each = self.names.iter().enumerate();
        let mut ranked: Vec<(usize, f64, f64)> = each
            .map(|(index, name)| {
                let cost = name.tokens.max(1) as f64;
                (index, name.worth / cost, name.worth)
            })
            .collect();
        ranked.sort_by(|(a, left, _), (b, right, _)| right.total_cmp(left).then(a.cmp(b)));
        let mut worth = 0.0;
        for (rank, (index, _, of)) in ranked.into_iter().enumerate() {
            if worth < LIKELY * total {
                self.likely = rank + 1;
            }
            worth += of;
            self.names.get_mut(index).into_iter().for_each(|name| name.rank = rank);
        }
    }
}

/// How much each name stands beside names that the protected tail shows: over the entries that hold
/// it, the most of these for the root of the entry's names.
fn near_tail(mentions: &[Vec<Mention>], in_tail: &HashSet<usize>, count: usize) -> Vec<f64> {
    let mut near = vec![0.0_f64; count];
    for mentions in mentions {
        let names: HashSet<usize> = mentions.iter().map(|mention| mention.name).collect();
        let shown = names.intersection(in_tail).count();
        let root = (names.len().max(1) as f64).sqrt();
        for name in &names {
            let others = shown - usize::from(in_tail.contains(name));
            near.get_mut(*name).into_iter().for_each(|near| *near = near.max(others as f64 / root));
        }
    }
    near
}

/// The identifiers of an entry with the index of their field: keys before what stands under them.
fn named<'e>(
    entry: &'e Entry<'_>,
) -> impl Iterator<Item = (usize, (&'e str, Option<TextRange>, Kind))> {
    entry.fields.iter().enumerate().flat_map(|(index, field)| {
        let key = field.key.as_deref().unwrap_or_default();
        // The key is written whole or not at all.
        let key = identifiers(key)
            .filter(move |(range, _)| range.len() == key.len())
            .map(move |(_, kind)| (key, None, if kind == Kind::Word { Kind::Key } else { kind }));
        let text = field.text.as_ref();
        let whole = is_name(entry, field).then(|| TextRange::at(0, text.len()));
        let values = identifiers(text).filter(move |_| whole.is_none());
        let values = values.chain(whole.map(|range| (range, Kind::Code)));
        let values = values.map(move |(range, kind)| (range.of(text), Some(range), kind));
        key.chain(values).map(move |found| (index, found))
    })
}

/// Whether a value is a name though it does not look like one: a word that a tool was given, or
/// that stands under a key like `order_id`.
fn is_name(entry: &Entry<'_>, field: &Field<'_>) -> bool {
    let Some(key) = &field.key else { return false };
    let text = field.text.as_ref();
    let is_word = (2..=64).contains(&text.len()) && !text.contains(char::is_whitespace);
    let is_id = || is_key_of_id(key);
    let is_constant = || matches!(text, "true" | "false" | "null");
    is_word
        && (matches!(entry.speaker, Speaker::Call(_)) || is_id())
        && !is_constant()
        && identifiers(text).next().is_none()
}

/// `order_id`, `orderIds`
fn is_key_of_id(key: &str) -> bool {
    ["id", "Id", "ID", "ids", "Ids", "IDs"].iter().any(|end| key.ends_with(end))
}

impl<'e> KnownName<'e> {
    fn new(text: &'e str, kind: Kind) -> Self {
        Self {
            text,
            kind,
            passages: 0,
            last_passage: 0,
            in_words: false,
            in_arguments: false,
            key: KeyKind::None,
        }
    }

    fn see(&mut self, entry: &Entry<'_>, field: usize, kind: Kind) {
        if matches!(self.kind, Kind::Line | Kind::Quantity | Kind::Glued | Kind::Tag | Kind::Key) {
            self.kind = kind;
        }
        if self.passages == 0 || self.last_passage != entry.passage {
            self.passages += 1;
            self.last_passage = entry.passage;
        }
        let key = entry.fields.get(field).and_then(|field| field.key.as_deref());
        let of_key = |key| if is_key_of_id(key) { KeyKind::Id } else { KeyKind::Other };
        self.key = self.key.max(key.map_or(KeyKind::None, of_key));
        self.in_words |= entry.is_words();
        self.in_arguments |= matches!(entry.speaker, Speaker::Call(_));
    }

    /// Whether nobody would search for it: nobody named it, and it is a number of a line, a measure,
    /// or data that stood once.
    fn is_noise(&self, of_block: bool) -> bool {
        let is_named = self.in_words || self.in_arguments;
        if of_block && self.is_noise_of_block(is_named) {
            return true;
        }
        match self.kind {
            Kind::Line => !is_named,
            Kind::Quantity => !self.in_words,
            Kind::Glued => self.passages < 3,
            Kind::Data => !is_named && self.passages < 2,
            _ => false,
        }
    }

    /// The same in a block, beside which the ledger says where things stand: keys, tags and bare
    /// numbers say nothing there.
    fn is_noise_of_block(&self, is_named: bool) -> bool {
        match self.kind {
            Kind::Key => true,
            Kind::Tag => !is_named,
            Kind::Generated => !self.in_words,
            // A number in a text, with nothing that says what it is.
            Kind::Number => !is_named && self.key == KeyKind::None && self.passages < 2,
            _ => false,
        }
    }

    /// How likely it is that the identifier is needed again, as counted over recorded sessions:
    /// what was used twice is used again, and so is what somebody asked for by name.
    fn worth(&self, in_tail: bool, last_passage: usize, of_block: bool) -> f64 {
        if self.is_noise(of_block) {
            return 0.0;
        }
        let often = match self.passages {
            0 | 1 => 0.2,
            2 => 0.42,
            3 => 0.5,
            4 => 0.6,
            5 => 0.65,
            _ => 0.72,
        };
        let once = self.passages <= 1;
        let place = match (self.in_words, self.in_arguments, once) {
            (true, _, true) | (_, true, true) => 1.8,
            (true, _, false) | (_, true, false) => 1.1,
            (_, _, true) => 1.0,
            (_, _, false) => 0.9,
        };
        let kind = match self.kind {
            Kind::Line => 0.4,
            Kind::Number | Kind::Code | Kind::Generated if once => 0.6,
            Kind::Date | Kind::Word | Kind::Key | Kind::Tag if once => 1.4,
            Kind::Address => 0.6,
            // `/clear`, `/div`: mostly no path.
            Kind::Path if once && is_single(self.text) => 0.5,
            _ => 1.0,
        };
        let age = (last_passage - self.last_passage.min(last_passage)) as f64
            / (last_passage.max(1)) as f64;
        let id = if self.key == KeyKind::Id && of_block { OF_ID } else { 1.0 };
        let worth = often * place * kind * id * (1.25 - 0.6 * age);
        // What the model reads after the range need not stand in the summary too.
        if in_tail { worth * SHOWN_BEHIND } else { worth }
    }
}

/// Whether a path is one word behind a slash.
fn is_single(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|name| !name.contains(['/', '.']))
}
