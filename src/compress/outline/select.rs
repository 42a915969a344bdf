//! Which identifiers are likely to be needed again, and where each is best kept.

use std::collections::{HashMap, HashSet};

use super::{
    entries::{Entry, Field, Speaker},
    identifiers::{Kind, identifiers},
};
use crate::{text::TextRange, tokens::TokenCounter};

/// Tokens of the words or the key that an identifier stands beside, on average.
const CONTEXT_TOKENS: f64 = 1.5;

/// How often names are ranked.
const ROUNDS: usize = 4;

/// The part of all that is likely to be needed that goes before prose.
const LIKELY: f64 = 0.97;

/// A place where an identifier stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    /// The index of the name.
    pub(super) name: usize,
    pub(super) field: usize,
    /// Where it stands in the field's text; `None` where it is the field's key.
    pub(super) range: Option<TextRange>,
    /// Whether it is the number of a line there.
    pub(super) is_line: bool,
}

/// One identifier, wherever it stands.
#[derive(Debug)]
pub(super) struct Name {
    /// The entry at which it is kept, where nothing else shows it.
    pub(super) home: usize,
    /// Its place when names are ordered from the one that is most worth its tokens.
    pub(super) rank: usize,
    /// How likely it is to be needed.
    worth: f64,
    tokens: f64,
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
    home: usize,
    home_score: u8,
    passages: usize,
    last_passage: usize,
    in_words: bool,
    in_arguments: bool,
}

impl Names {
    /// Finds them, and ranks them. Runs in time linear in the text, but for the sort.
    pub(super) fn of<'t>(
        entries: &[Entry<'_>],
        tail: impl Iterator<Item = &'t str>,
        limit: u64,
        counter: &dyn TokenCounter,
    ) -> Self {
        let mut by_text: HashMap<&str, usize> = HashMap::new();
        let mut known: Vec<KnownName<'_>> = Vec::new();
        let mut mentions: Vec<Vec<Mention>> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let mut here = Vec::new();
            for (field, (text, range, kind)) in named(entry) {
                let name = *by_text.entry(text).or_insert(known.len());
                if name == known.len() {
                    known.push(KnownName::new(text, kind));
                }
                if let Some(known) = known.get_mut(name) {
                    known.see(at, entry, kind);
                }
                here.push(Mention { name, field, range, is_line: kind == Kind::Line });
            }
            mentions.push(here);
        }
        let mut in_tail: HashSet<usize> = HashSet::new();
        for text in tail {
            let names =
                identifiers(text).filter_map(|(range, _)| by_text.get(range.of(text)).copied());
            in_tail.extend(names);
        }
        let last = entries.last().map_or(0, |entry| entry.passage);
        let names = known.iter().enumerate().map(|(name, known)| Name {
            home: known.home,
            rank: 0,
            worth: known.worth(in_tail.contains(&name), last),
            tokens: counter.count(known.text) as f64,
        });
        let mut names = Self { names: names.collect(), mentions, likely: 0 };
        names.rank(entries, limit as f64, counter);
        names
    }

    /// The names that are likely to be needed, in the order of their ranks.
    pub(super) fn likely(&self, entries: &[Entry<'_>]) -> Vec<String> {
        let mut texts = vec![None; self.likely];
        for (entry, mentions) in entries.iter().zip(&self.mentions) {
            for mention in mentions {
                let rank = self.names.get(mention.name).map(|name| name.rank);
                let place = rank.and_then(|rank| texts.get_mut(rank));
                let field = entry.fields.get(mention.field);
                if let (Some(place @ None), Some(field)) = (place, field) {
                    *place = Some(match mention.range {
                        Some(range) => range.of(&field.text).to_owned(),
                        None => field.key.as_deref().unwrap_or_default().to_owned(),
                    });
                }
            }
        }
        texts.into_iter().flatten().collect()
    }

    /// Ranks the names by what they are worth for a token. What stands beside a name (the key, the
    /// beginning of its line) is shared with the names that are kept there too, so the order of
    /// each round tells the next what the names cost.
    fn rank(&mut self, entries: &[Entry<'_>], limit: f64, counter: &dyn TokenCounter) {
        let homes = self.homes(entries, counter);
        let total: f64 = self.names.iter().map(|name| name.worth).sum();
        let mut in_group: Vec<f64> = vec![0.0; homes.group_tokens.len()];
        let mut in_entry: Vec<f64> = vec![0.0; entries.len()];
        for round in 0..ROUNDS {
            let cost = |index: usize, name: &Name| {
                let group = homes.group_of.get(index).copied().unwrap_or_default();
                let shared = |tokens: Option<&f64>, among: Option<&f64>| {
                    tokens.copied().unwrap_or_default() / among.copied().unwrap_or(1.0).max(1.0)
                };
                let group = shared(homes.group_tokens.get(group), in_group.get(group));
                let entry = shared(homes.entry_tokens.get(name.home), in_entry.get(name.home));
                name.tokens + if round == 0 { CONTEXT_TOKENS } else { group + entry }
            };
            let mut ranked: Vec<(usize, f64, f64)> = self
                .names
                .iter()
                .enumerate()
                .map(|(index, name)| {
                    let cost = cost(index, name);
                    (index, name.worth / cost, cost)
                })
                .collect();
            ranked.sort_by(|(a, left, _), (b, right, _)| right.total_cmp(left).then(a.cmp(b)));
            in_group.fill(0.0);
            in_entry.fill(0.0);
            let (mut used, mut worth) = (0.0, 0.0);
            for (rank, (index, _, cost)) in ranked.into_iter().enumerate() {
                let Some(name) = self.names.get_mut(index) else { continue };
                name.rank = rank;
                used += cost;
                if worth < LIKELY * total {
                    self.likely = rank + 1;
                }
                worth += name.worth;
                if used <= limit {
                    let group = homes.group_of.get(index).filter(|group| **group > 0);
                    let group = group.and_then(|group| in_group.get_mut(*group));
                    group.into_iter().for_each(|count| *count += 1.0);
                    in_entry.get_mut(name.home).into_iter().for_each(|count| *count += 1.0);
                }
            }
        }
    }

    /// What stands around each name where it is kept, in tokens.
    fn homes(&self, entries: &[Entry<'_>], counter: &dyn TokenCounter) -> NameGroups {
        let mut homes = NameGroups {
            group_of: vec![0; self.names.len()],
            group_tokens: vec![CONTEXT_TOKENS],
            entry_tokens: Vec::new(),
        };
        let mut tokens_of: HashMap<&str, f64> = HashMap::new();
        for (at, (entry, mentions)) in entries.iter().zip(&self.mentions).enumerate() {
            let line = match entry.speaker {
                Speaker::Call(name) => counter.count(name) as f64 + 3.0,
                Speaker::Result => 4.0,
                _ => 3.0,
            };
            homes.entry_tokens.push(line);
            let mut groups: HashMap<&str, usize> = HashMap::new();
            for mention in mentions.iter().rev() {
                if self.names.get(mention.name).is_none_or(|name| name.home != at) {
                    continue;
                }
                let field = entry.fields.get(mention.field);
                let key = field.and_then(|field| field.key.as_deref());
                let group = match key.filter(|_| mention.range.is_some()) {
                    None => 0,
                    Some(key) => *groups.entry(key).or_insert_with(|| {
                        let tokens = tokens_of.entry(key);
                        let tokens = tokens.or_insert_with(|| counter.count(key) as f64 + 2.0);
                        homes.group_tokens.push(*tokens);
                        homes.group_tokens.len() - 1
                    }),
                };
                homes.group_of.get_mut(mention.name).into_iter().for_each(|of| *of = group);
            }
        }
        homes
    }
}

/// What stands around names.
struct NameGroups {
    /// The group of each name: the names under one key of one entry. Group 0 is those without key,
    /// each of which has words of its own.
    group_of: Vec<usize>,
    group_tokens: Vec<f64>,
    entry_tokens: Vec<f64>,
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
            .map(move |(_, kind)| (key, None, kind));
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
    let is_id = || ["id", "Id", "ID"].iter().any(|end| key.ends_with(end));
    let is_constant = || matches!(text, "true" | "false" | "null");
    is_word
        && (matches!(entry.speaker, Speaker::Call(_)) || is_id())
        && !is_constant()
        && identifiers(text).next().is_none()
}

impl<'e> KnownName<'e> {
    fn new(text: &'e str, kind: Kind) -> Self {
        Self {
            text,
            kind,
            home: 0,
            home_score: 0,
            passages: 0,
            last_passage: 0,
            in_words: false,
            in_arguments: false,
        }
    }

    fn see(&mut self, at: usize, entry: &Entry<'_>, kind: Kind) {
        if self.kind == Kind::Line {
            self.kind = kind;
        }
        if self.passages == 0 || self.last_passage != entry.passage {
            self.passages += 1;
            self.last_passage = entry.passage;
        }
        let is_words = entry.is_words();
        let score = match entry.speaker {
            Speaker::Call(_) => 4,
            Speaker::User if is_words => 3,
            _ => 1,
        };
        self.in_words |= is_words;
        self.in_arguments |= matches!(entry.speaker, Speaker::Call(_));
        if score > self.home_score {
            self.home_score = score;
            self.home = at;
        }
    }

    /// How likely it is that the identifier is needed again, as counted over recorded sessions:
    /// what was used twice is used again, and so is what somebody asked for by name.
    fn worth(&self, in_tail: bool, last_passage: usize) -> f64 {
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
            Kind::Number | Kind::Code if once => 0.6,
            Kind::Date | Kind::Word if once => 1.4,
            Kind::Address => 0.6,
            _ => 1.0,
        };
        let age = (last_passage - self.last_passage.min(last_passage)) as f64
            / (last_passage.max(1)) as f64;
        let worth = often * place * kind * (1.25 - 0.6 * age);
        if in_tail { worth.max(0.4) } else { worth }
    }
}
