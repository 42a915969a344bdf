//! How much of a request its provider has seen before.

use super::{
    ExportedRequest,
    owned::{OwnedJson, OwnedText},
};
use crate::{
    hud::{Owner, ProviderFraming},
    json::{Path, PathElement},
    text::common_prefix,
    tokens::TokenCounter,
    veil::is_cache_mark,
};

/// When a provider's cache takes a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRules {
    /// The fewest tokens that a prefix must have.
    pub minimum: u64,
    /// A prefix counts in blocks of so many tokens; 1 where each token counts.
    pub block: u64,
    /// What the provider adds for each message.
    pub per_message: u64,
    /// Whether the cache serves only what a request asked it to keep, by `cache_control`.
    pub needs_marks: bool,
}

impl PrefixRules {
    /// Every token counts.
    pub const EXACT: Self = Self {
        minimum: 0,
        block: 1,
        per_message: ProviderFraming::CHAT.per_message,
        needs_marks: false,
    };
    /// OpenAI: 1,024 tokens at least, in blocks of 128.
    pub const OPENAI: Self = Self { minimum: 1_024, block: 128, ..Self::EXACT };
    /// Anthropic: 1,024 tokens at least for most models, and nothing of a request without a mark.
    pub const ANTHROPIC: Self = Self { minimum: 1_024, needs_marks: true, ..Self::EXACT };

    /// How many of `tokens` that are the same the cache serves.
    pub fn cached(self, tokens: u64) -> u64 {
        if tokens < self.minimum { 0 } else { tokens - tokens % self.block.max(1) }
    }
}

/// How much of a request is an unchanged prefix of the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct PrefixReport {
    /// The tokens of the next request.
    pub tokens: u64,
    /// Those of them that stand before the first difference.
    pub unchanged: u64,
    /// Those that the cache serves by the provider's rules.
    pub cached: u64,
    /// Where the requests first differ; `None` where the next one begins with the whole of the
    /// previous one.
    pub divergence: Option<Divergence>,
}

impl PrefixReport {
    /// The tokens that were sent before and are billed as new ones: what stands after the first
    /// difference, and what of the same beginning the cache does not serve. What is only added at
    /// the end is billed for the first time.
    pub fn billed_again(&self) -> u64 {
        let sent = if self.divergence.is_some() { self.tokens } else { self.unchanged };
        sent.saturating_sub(self.cached)
    }
}

/// Where two requests first differ.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// The value in the next request, or the one that it lacks. On the wire a JSON pointer.
    #[serde(serialize_with = "crate::json::as_text")]
    pub path: Path,
    /// The first byte that differs, in the string at the path; `None` where it is no string.
    #[serde(rename = "byte")]
    pub offset: Option<usize>,
    /// Who wrote that byte in the next request: a chunk with its frame and facets, or framing.
    /// Where the string ends there, who wrote its end; `None` where there is no such string.
    pub owner: Option<Owner>,
    /// Who wrote it in the previous one.
    pub previous_owner: Option<Owner>,
}

/// Compares a request with the one before it.
///
/// Values are compared in the order in which the export writes them, marks for the cache aside: one
/// that moves changes nothing that the model reads. Tokens are counted for each string by
/// itself, but for those of the form (roles, types), which `per_message` stands for, and data that
/// no tokenizer reads (of images and files, signatures, encrypted reasoning), for which providers
/// have rules of their own; a string that begins alike counts with the tokens of what is alike.
///
/// Reads both in linear time and counts each string of `next` once, and the one that differs again.
pub fn prefix_report(
    previous: &ExportedRequest,
    next: &ExportedRequest,
    counter: &dyn TokenCounter,
    rules: PrefixRules,
) -> PrefixReport {
    let (before, after) = (leaves(previous.root()), leaves(next.root()));
    let counts: Vec<u64> = after.iter().map(|leaf| leaf.tokens(counter, rules)).collect();
    report_of((&before, &after), &counts, counter, rules).0
}

fn report_of(
    (before, after): (&[Leaf<'_>], &[Leaf<'_>]),
    counts: &[u64],
    counter: &dyn TokenCounter,
    rules: PrefixRules,
) -> (PrefixReport, usize) {
    let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let mut unchanged: u64 = counts.iter().take(same).sum();
    let divergence = before.get(same).map(|was| {
        let is = after.get(same);
        let both = is.filter(|is| is.path == was.path).and_then(|is| is.text().zip(was.text()));
        let offset = both.map(|(is, was)| common_prefix(is.as_str(), was.as_str()));
        let is_data = is.is_some_and(Leaf::is_data);
        if let (Some((is, was)), Some(offset), false) = (both, offset, is_data) {
            unchanged += shared(is.as_str(), was.as_str(), offset, counter);
        }
        let owner = |leaf: Option<&Leaf<'_>>| leaf?.owner_at(offset.unwrap_or(0)).cloned();
        Divergence {
            path: is.unwrap_or(was).path.iter().cloned().collect(),
            offset,
            owner: owner(is),
            previous_owner: owner(Some(was)),
        }
    });
    let tokens = counts.iter().sum();
    let report = PrefixReport { tokens, unchanged, cached: rules.cached(unchanged), divergence };
    (report, same)
}

/// What a comparison finds, value by value: what a cache that keeps the ends of blocks is asked for.
#[cfg(feature = "rules")]
pub(crate) struct PrefixCounts {
    pub(crate) report: PrefixReport,
    /// How many values at the beginning are the same in both.
    pub(crate) same: usize,
    /// The bytes of the strings before the first byte that differs.
    pub(crate) bytes: u64,
    pub(crate) previous: Vec<CountedLeaf>,
    pub(crate) next: Vec<CountedLeaf>,
}

/// A value without parts: where it stands, and its tokens.
#[cfg(feature = "rules")]
pub(crate) struct CountedLeaf {
    pub(crate) path: Vec<PathElement>,
    pub(crate) tokens: u64,
    pub(crate) text: Option<String>,
}

/// As [`prefix_report`], with the tokens of each value. Counts what is the same once. The texts of
/// the two values that differ first stand with them.
#[cfg(feature = "rules")]
pub(crate) fn prefix_counts(
    previous: &ExportedRequest,
    next: &ExportedRequest,
    counter: &dyn TokenCounter,
    rules: PrefixRules,
) -> PrefixCounts {
    let (before, after) = (leaves(previous.root()), leaves(next.root()));
    let counts: Vec<u64> = after.iter().map(|leaf| leaf.tokens(counter, rules)).collect();
    let (report, same) = report_of((&before, &after), &counts, counter, rules);
    let len = |leaf: &Leaf<'_>| leaf.str().map_or(0, str::len) as u64;
    let offset = report.divergence.as_ref().and_then(|divergence| divergence.offset);
    let bytes = after.iter().take(same).map(len).sum::<u64>() + offset.unwrap_or(0) as u64;
    let text = |at: usize, leaf: &Leaf<'_>| {
        let is_first = at == same && report.divergence.is_some();
        leaf.str().filter(|_| is_first).map(str::to_owned)
    };
    let counted = |at: usize, leaf: &Leaf<'_>, tokens: u64| CountedLeaf {
        path: leaf.path.clone(),
        tokens,
        text: text(at, leaf),
    };
    let tokens_before = |at: usize, leaf: &Leaf<'_>| match counts.get(at) {
        Some(count) if at < same => *count,
        _ => leaf.tokens(counter, rules),
    };
    let previous = before.iter().enumerate();
    let previous = previous.map(|(at, leaf)| counted(at, leaf, tokens_before(at, leaf))).collect();
    let next = after.iter().zip(&counts).enumerate();
    let next = next.map(|(at, (leaf, tokens))| counted(at, leaf, *tokens)).collect();
    PrefixCounts { report, same, bytes, previous, next }
}

/// The tokens of the beginning that two strings share, up to `offset`. A token that reaches over
/// its end is another one.
fn shared(is: &str, was: &str, offset: usize, counter: &dyn TokenCounter) -> u64 {
    let count = |text: &str| counter.count(text) as u64;
    let same = count(is.get(..offset).unwrap_or_default());
    let is_cut = |text: &str| {
        let rest = text.get(offset..).unwrap_or_default();
        !rest.is_empty() && same.saturating_add(count(rest)) > count(text)
    };
    same.saturating_sub(u64::from(is_cut(is) || is_cut(was)))
}

/// A value without parts, with where it stands.
struct Leaf<'a> {
    path: Vec<PathElement>,
    value: LeafValue<'a>,
}

#[derive(PartialEq)]
enum LeafValue<'a> {
    Text(&'a OwnedText),
    /// A type that the form would have if a text stood as a block.
    Implied(&'static str),
    Other(&'a OwnedJson),
}

/// Who wrote it does not matter to a cache.
impl PartialEq for Leaf<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
            && match (self.str(), other.str()) {
                (None, None) => self.value == other.value,
                (one, other) => one == other,
            }
    }
}

impl<'a> Leaf<'a> {
    fn text(&self) -> Option<&'a OwnedText> {
        match self.value {
            LeafValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn str(&self) -> Option<&'a str> {
        match self.value {
            LeafValue::Implied(text) => Some(text),
            _ => self.text().map(OwnedText::as_str),
        }
    }

    fn owner_at(&self, offset: usize) -> Option<&'a Owner> {
        let text = self.text()?;
        text.owner_of(offset).or_else(|| Some(&text.spans().last()?.owner))
    }

    /// Whether it is data that no tokenizer reads: that of an image, a signature, what is encrypted.
    fn is_data(&self) -> bool {
        match self.path.last() {
            Some(PathElement::Key(key)) => match key.as_str() {
                "data" | "file_data" | "signature" | "thoughtSignature" | "encrypted_content" => {
                    true
                }
                "url" | "image_url" => self.str().is_some_and(|text| text.starts_with("data:")),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it is a role, a word of the form.
    fn is_role(&self) -> bool {
        let is_last = matches!(self.path.last(), Some(PathElement::Key(key)) if key == "role");
        is_last && self.text().is_some_and(is_form)
    }

    fn tokens(&self, counter: &dyn TokenCounter, rules: PrefixRules) -> u64 {
        match &self.value {
            LeafValue::Text(text) => match (is_form(text), self.is_role()) {
                (true, true) => rules.per_message,
                (true, false) => 0,
                (false, _) if self.is_data() || is_parameter(text) => 0,
                (false, _) => counter.count(text.as_str()) as u64,
            },
            LeafValue::Other(OwnedJson::Number(number)) => {
                counter.count(&number.to_string()) as u64
            }
            LeafValue::Implied(_) | LeafValue::Other(_) => 0,
        }
    }
}

/// Whether a text is a word of the form.
fn is_form(text: &OwnedText) -> bool {
    text.spans().iter().all(|span| span.owner == Owner::Framing("form"))
}

/// Whether a text is a parameter of a request, which the model does not read.
fn is_parameter(text: &OwnedText) -> bool {
    text.spans().iter().all(|span| match &span.owner {
        Owner::Recorded { facet, .. } => facet.as_str().starts_with("parameter:"),
        _ => false,
    })
}

impl OwnedJson {
    /// The tokens of the strings, each by itself, but for words of the form and data that no
    /// tokenizer reads.
    pub(crate) fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        let rules = PrefixRules { per_message: 0, ..PrefixRules::EXACT };
        leaves(self).iter().map(|leaf| leaf.tokens(counter, rules)).sum()
    }
}

/// What a comparison sees of a value that stands in a request, wherever that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafPrint {
    /// The tokens of its strings.
    pub(crate) tokens: u64,
    /// How many roles it has. Each costs what a message does.
    pub(crate) roles: u64,
    /// How many values without parts.
    pub(crate) leaves: usize,
    /// What tells these from others, and where they stand in it.
    pub(crate) hash: [u8; 32],
}

impl OwnedJson {
    /// What a comparison sees of it. Two values with one hash are the same to it.
    pub(crate) fn leaf_print(&self, counter: &dyn TokenCounter) -> LeafPrint {
        let rules = |per_message| PrefixRules { per_message, ..PrefixRules::EXACT };
        let leaves = leaves(self);
        let mut hasher = blake3::Hasher::new();
        let mut feed = |kind: u8, bytes: &[u8]| {
            hasher.update(&[kind]);
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        let (mut tokens, mut roles) = (0_u64, 0_u64);
        for leaf in &leaves {
            for element in &leaf.path {
                match element {
                    PathElement::Key(key) => feed(0, key.as_bytes()),
                    PathElement::Index(index) => feed(1, &(*index as u64).to_le_bytes()),
                }
            }
            match (leaf.str(), &leaf.value) {
                (Some(text), _) => feed(2, text.as_bytes()),
                (None, LeafValue::Other(OwnedJson::Number(number))) => {
                    feed(3, number.to_string().as_bytes());
                }
                (None, LeafValue::Other(OwnedJson::Bool(flag))) => feed(4, &[u8::from(*flag)]),
                (None, LeafValue::Other(OwnedJson::Null)) => feed(5, &[]),
                // An object without members is the only other one.
                (None, _) => feed(6, &[]),
            }
            let own = leaf.tokens(counter, rules(0));
            tokens = tokens.saturating_add(own);
            // Counting a role costs nothing.
            let is_role = own == 0 && leaf.is_role();
            roles += u64::from(is_role);
        }
        LeafPrint { tokens, roles, leaves: leaves.len(), hash: *hasher.finalize().as_bytes() }
    }
}

/// The values without parts, in order. A content that is a text stands as its only block, since
/// a mark makes a block of it.
fn leaves(root: &OwnedJson) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    gather(root, &mut Vec::new(), &mut leaves);
    leaves
}

fn gather<'a>(value: &'a OwnedJson, path: &mut Vec<PathElement>, leaves: &mut Vec<Leaf<'a>>) {
    let key = |key: &str| PathElement::Key(key.to_owned());
    match value {
        // A list without elements is one that may begin to grow.
        OwnedJson::List(list) => {
            for (index, value) in list.iter().enumerate() {
                path.push(PathElement::Index(index));
                gather(value, path, leaves);
                path.pop();
            }
        }
        OwnedJson::Map(members) if !members.is_empty() => {
            // A block of text has its type first, however it is written: a text that stands alone has.
            let has = |wanted: &str| members.iter().any(|(name, _)| name == wanted);
            let is_first = |name: &str| name == "type" && has("text");
            let read = || members.iter().filter(|(name, _)| !is_cache_mark(name));
            let first = read().filter(|(name, _)| is_first(name));
            for (name, value) in first.chain(read().filter(|(name, _)| !is_first(name))) {
                path.push(key(name));
                gather(value, path, leaves);
                path.pop();
            }
        }
        OwnedJson::Text(text) => {
            let last = path.last();
            if last == Some(&key("content")) || last == Some(&key("system")) {
                path.push(PathElement::Index(0));
                for (name, value) in
                    [("type", LeafValue::Implied("text")), ("text", LeafValue::Text(text))]
                {
                    let path = path.iter().cloned().chain([key(name)]).collect();
                    leaves.push(Leaf { path, value });
                }
                path.pop();
            } else {
                leaves.push(Leaf { path: path.clone(), value: LeafValue::Text(text) });
            }
        }
        other => leaves.push(Leaf { path: path.clone(), value: LeafValue::Other(other) }),
    }
}
