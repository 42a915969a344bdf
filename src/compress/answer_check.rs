//! What a model's summary must not lose, asked for once more and then appended.

use std::collections::HashSet;

use super::CompressionJob;
use crate::{
    summary::{ContextTexts, Ledger, Section, identifiers},
    text::{flat, has_word},
    tokens::TokenCounter,
};

/// The tokens of a ledger in which numbers and names are looked for.
const READ: u64 = 2_000;

/// What stands before the lines that are appended.
const APPENDED: &str = "Kept from the original:";

/// What a format may write around a summary, in tokens, at most.
const AROUND: usize = 16;

/// What a summary must not lose, the most important first.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EssentialKind {
    /// A sentence of the user that says what must be, or must not.
    Rule,
    /// A file or an address.
    Path,
    /// A number, a date, or an id with digits.
    Number,
    /// Another word that looks like code.
    Name,
}

/// Something that a summary must not lose, letter by letter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Essential {
    /// What it is.
    pub kind: EssentialKind,
    /// The text.
    pub text: String,
}

/// A summary that lost something, to be written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The summary.
    pub answer: String,
    /// What it lost, the most important first: no more than half of the job's limit has room for.
    pub lost: Vec<Essential>,
}

/// Checks the summaries of a job: the rules, paths, numbers and names of its
/// [`Ledger`](super::Ledger) that stand nowhere else in the context must be in them. Else is in the
/// user's words that stay, and, but for paths, in the ledger of the context.
///
/// [`FnEngine`](super::FnEngine) and `CommandEngine` check by themselves, and
/// [`CheckedEngine`](super::CheckedEngine) adds it to any other engine. Whoever calls a model without an engine
/// asks [`AnswerCheck::revise`] whether to ask once more, and takes [`AnswerCheck::complete`].
///
/// ```
/// use std::sync::Arc;
///
/// use afterimage::{
///     compress::{AnswerCheck, CompressionJob, Passage},
///     id::{FrameSeq, Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Move berth 7. Never call the harbour at night.", ChunkOptions::new());
/// let (seq, snapshot) = (FrameSeq::new(3), Arc::new(builder.build(Millis::new(0))));
/// let passage = Passage::new(seq, seq, Role::User, snapshot);
/// let job = CompressionJob::new(vec![passage], 100);
///
/// let check = AnswerCheck::of(&job, &Chars4);
/// let again = check.revise(&job, "Berth 7 is to be moved.", &Chars4).unwrap();
/// assert_eq!(again.revision.unwrap().lost[0].text, "Never call the harbour at night.");
/// assert_eq!(
///     check.complete(&job, "Berth 7 is to be moved.".to_owned(), &Chars4),
///     "Berth 7 is to be moved.\n\nKept from the original:\n- \"Never call the harbour at night.\""
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct AnswerCheck {
    wanted: Vec<Essential>,
}

impl AnswerCheck {
    /// What a summary of this job must not lose. Reads its passages; runs in time linear in them, and
    /// in what the ledger holds.
    pub fn of(job: &CompressionJob, counter: &dyn TokenCounter) -> Self {
        if !job.is_checked {
            return Self::default();
        }
        let mut own = Ledger::new();
        job.passages.iter().for_each(|passage| own.read(passage));
        let mut wanted = essentials(&own, counter);
        if let Some(ledger) = job.ledger.as_ref().filter(|_| job.level > 1) {
            // What blocks say of a ledger was read from other frames.
            let said = searched(&job.text());
            wanted.extend(essentials(ledger, counter).into_iter().filter(|of| of.stands_in(&said)));
        }
        let [words, ledger] =
            [job.said_words(), job.said_ledger(counter)].map(|text| searched(&text));
        let mut known = HashSet::new();
        wanted.retain(|of| {
            // Of files the ledger says the last ones: these give way to later ones.
            let may_stay = of.kind != EssentialKind::Path;
            let is_said = of.stands_in(&words) || may_stay && of.stands_in(&ledger);
            known.insert(of.clone()) && !is_said
        });
        wanted.sort_by_key(|of| of.kind);
        Self { wanted }
    }

    /// What must not be lost, the most important first.
    pub fn wanted(&self) -> &[Essential] {
        &self.wanted
    }

    /// What a summary lost of it.
    ///
    /// Cost: O(the answer) for each of what must not be lost.
    pub fn lost(&self, answer: &str) -> Vec<&Essential> {
        let said = searched(answer);
        self.wanted.iter().filter(|of| !of.stands_in(&said)).collect()
    }

    /// The job of writing a summary again that lost something; `None` where it lost nothing, and for
    /// a job that asks for that already. O(answer and what it stands for).
    pub fn revise(
        &self,
        job: &CompressionJob,
        answer: &str,
        counter: &dyn TokenCounter,
    ) -> Option<CompressionJob> {
        if job.revision.is_some() {
            return None;
        }
        let limit = usize::try_from(job.token_limit / 2).unwrap_or(usize::MAX);
        let lost = fitting(self.lost(answer), limit, counter);
        let lost: Vec<Essential> = lost.into_iter().cloned().collect();
        (!lost.is_empty()).then(|| job.clone().revising(answer, lost))
    }

    /// The better of a summary and the one that was asked for because of what it lost: the second
    /// where it lost less, is within the limit, and is no mere addition. Cost: as [`Self::lost`]
    /// for both, and counts the second.
    pub fn better(
        &self,
        job: &CompressionJob,
        first: String,
        second: String,
        counter: &dyn TokenCounter,
    ) -> String {
        let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
        let is_whole = second.trim().len() >= first.trim().len() / 2;
        let is_better = || weight(&self.lost(&second)) < weight(&self.lost(&first));
        let fits = || counter.count_up_to(&second, limit).is_some();
        if is_whole && is_better() && fits() { second } else { first }
    }

    /// A summary with what it lost at its end: the most important first, as much as the limit has
    /// room for.
    ///
    /// Cost: as [`Self::lost`], and counts the answer.
    pub fn complete(
        &self,
        job: &CompressionJob,
        answer: String,
        counter: &dyn TokenCounter,
    ) -> String {
        let lost = self.lost(&answer);
        let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
        let limit = limit - AROUND.min(limit / 8);
        if lost.is_empty() || answer.trim().is_empty() {
            return answer;
        }
        let Some(used) = counter.count_up_to(&answer, limit) else { return answer };
        let mut kept = fitting(lost, limit.saturating_sub(used + 8), counter);
        // Each was counted by itself: the whole decides.
        while !kept.is_empty() {
            let whole = format!("{}\n\n{}", answer.trim_end(), appended(&kept));
            if counter.count_up_to(&whole, limit).is_some() {
                return whole;
            }
            kept.truncate(kept.len() - 1 - kept.len() / 16);
        }
        answer
    }
}

impl Essential {
    fn new(kind: EssentialKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Whether it stands in a text that was [`searched`]: letter by letter, but for white space and,
    /// of rules, capitals.
    fn stands_in(&self, said: &Searched) -> bool {
        match self.kind {
            EssentialKind::Rule => said.lower.contains(&flat(&self.text).to_lowercase()),
            _ => has_word(&said.text, &self.text),
        }
    }
}

/// A text with white space that is the same everywhere.
struct Searched {
    text: String,
    lower: String,
}

impl Searched {
    fn add(&mut self, text: &str) {
        let text = flat(text);
        self.lower.push('\n');
        self.lower.push_str(&text.to_lowercase());
        self.text.push('\n');
        self.text.push_str(&text);
    }
}

fn searched(text: &str) -> Searched {
    let text = flat(text);
    Searched { lower: text.to_lowercase(), text }
}

/// What a ledger holds, the most important of each kind first.
fn essentials(ledger: &Ledger, counter: &dyn TokenCounter) -> Vec<Essential> {
    let rules: Vec<&str> = ledger.demanded().collect();
    let mut all: Vec<Essential> =
        rules.iter().rev().map(|rule| Essential::new(EssentialKind::Rule, *rule)).collect();
    all.extend(ledger.files().map(|(_, path)| Essential::new(EssentialKind::Path, path)));
    let mut section = None;
    for line in ledger.lines(READ, &ContextTexts::default(), counter) {
        if let Some(of) = line.frame.is_none().then(|| Section::of_title(&line.text)) {
            section = of;
            continue;
        }
        if matches!(section, Some(Section::Rules | Section::Changed | Section::Read)) {
            continue;
        }
        let mark = line.frame.map(|frame| format!(" [{frame}]")).unwrap_or_default();
        let text = line.text.strip_suffix(&mark).unwrap_or(&line.text);
        all.extend(named(text));
    }
    // Where the user answered it, the ledger does not tell it.
    all.extend(ledger.said_last().into_iter().flat_map(named));
    all
}

fn named(text: &str) -> impl Iterator<Item = Essential> {
    let names = text.lines().flat_map(|line| identifiers(without_number(line)));
    names.map(|name| Essential::new(kind_of(name), name))
}

/// A line without its number, in a listing.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.trim_start_matches(' ').starts_with([':', '|', '\t', '→']) { rest } else { line }
}

fn kind_of(name: &str) -> EssentialKind {
    if name.contains('/') && name.contains(char::is_alphabetic) {
        EssentialKind::Path
    } else if name.contains(|c: char| c.is_ascii_digit()) {
        EssentialKind::Number
    } else {
        EssentialKind::Name
    }
}

/// Those that fit `limit` tokens, in order, but for those that stand in one before.
fn fitting<'e>(
    lost: Vec<&'e Essential>,
    mut limit: usize,
    counter: &dyn TokenCounter,
) -> Vec<&'e Essential> {
    let mut said = searched("");
    let mut fits = |of: &&Essential| {
        let tokens = counter.count(&of.text) + 3;
        if tokens > limit || of.stands_in(&said) {
            return false;
        }
        limit -= tokens;
        said.add(&of.text);
        true
    };
    lost.into_iter().filter(|of| fits(of)).collect()
}

/// How much was lost.
fn weight(lost: &[&Essential]) -> usize {
    let of = |lost: &&Essential| match lost.kind {
        EssentialKind::Rule => 8,
        EssentialKind::Path => 4,
        EssentialKind::Number => 2,
        EssentialKind::Name => 1,
    };
    lost.iter().map(of).sum()
}

/// The lines that are appended.
fn appended(lost: &[&Essential]) -> String {
    let mut lines = vec![APPENDED.to_owned()];
    let (rules, others): (Vec<&&Essential>, Vec<_>) =
        lost.iter().partition(|of| of.kind == EssentialKind::Rule);
    lines.extend(rules.iter().map(|rule| format!("- \"{}\"", rule.text)));
    if !others.is_empty() {
        let others: Vec<&str> = others.iter().map(|of| of.text.as_str()).collect();
        lines.push(format!("- {}", others.join(", ")));
    }
    lines.join("\n")
}
