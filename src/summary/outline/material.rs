//! What a task has to say: lines by section, and names by their worth.

use super::{
    entries::{entries, texts},
    merge::{self, of_summaries},
    select::Names,
};
use crate::{
    id::FrameSeq,
    snapshot::PartRef,
    steps::{Passage, holds_rule},
    summary::{
        Task,
        ledger::{Chronicle, Section, SectionLine, excerpt},
    },
    text::flat,
    tokens::TokenCounter,
};

/// The tokens of a request that is quoted whole in a small room too.
const SHORT: usize = 96;

/// What a task has to say.
pub(super) struct Material {
    /// Of each section the most valuable first.
    pub(super) lines: Vec<SectionLine>,
    /// The names with their tokens, the one that is most worth them first.
    pub(super) names: Vec<(String, usize)>,
    /// So many of the names are likely to be needed.
    pub(super) likely: usize,
    /// Whether a ledger stands beside the summary and says where things stand.
    pub(super) of_block: bool,
    /// Whether it is certain whose words stand in the user's place.
    pub(super) is_certain: bool,
}

impl Material {
    /// Reads a task. Runs in time linear in its text, but for the sort of the names.
    pub(super) fn of(task: &Task<'_>, counter: &dyn TokenCounter) -> Self {
        let (lines, is_certain) = if task.of_blocks {
            (of_summaries(task, counter), merge::is_certain(task))
        } else {
            of_frames(task, counter)
        };
        let entries = entries(task.passages, task.of_blocks);
        let of_block = task.ledger.is_some();
        let names = Names::of(&entries, texts(task.tail), of_block, counter);
        Self { lines, names: names.ranked(&entries), likely: names.likely, of_block, is_certain }
    }
}

/// The lines, and whether it is certain whose words stand in the user's place.
fn of_frames(task: &Task<'_>, counter: &dyn TokenCounter) -> (Vec<SectionLine>, bool) {
    // Who speaks, and which work goes on, is known from before.
    let before = task.before.filter(|_| task.ledger.is_some());
    let (mut ledger, mut chronicle) = (before.cloned().unwrap_or_default(), Chronicle::default());
    for passage in task.passages {
        ledger.read_into(passage, Some(&mut chronicle));
    }
    // A call behind the range tells of the session, too.
    let mut behind = task.tail.iter().flat_map(Passage::chunks);
    let has_call = behind.any(|(_, chunk)| matches!(chunk.part(), PartRef::Call { .. }));
    if has_call && !ledger.is_certain() {
        ledger.sees_call(task.to);
    }
    chronicle.expect(texts(task.tail).flat_map(super::identifiers));
    let limit = task.token_limit;
    if task.ledger.is_some() {
        // Where things stand is said behind the blocks.
        return (chronicle.candidates(None, limit, counter), ledger.is_certain());
    }
    // What the user said first and last may stand in the context besides the range.
    let words = chronicle.words();
    let stands = || task.words.iter().map(|words| words.from);
    let first = words.first().filter(|said| stands().all(|frame| frame >= said.0));
    let first = first.filter(|said| ledger.is_asked(said.0));
    let last = words.last().filter(|said| stands().all(|frame| frame <= said.0));
    let last = last.filter(|_| first.is_none() || words.len() > 1);
    let mut lines = Vec::new();
    let quote = |section, (frame, said): &(FrameSeq, String), share: usize, most: usize| {
        let text = excerpt(said, share.max(SHORT.min(most)), counter);
        let mut line = SectionLine::new(section, *frame, text);
        let shorter = (share < SHORT).then(|| excerpt(said, share, counter));
        line.shorter.extend(shorter.filter(|text| !text.is_empty()));
        line
    };
    lines.extend(first.map(|said| quote(Section::First, said, limit / 4, limit / 3)));
    lines.extend(last.map(|said| quote(Section::Last, said, limit / 8, limit / 4)));
    lines.retain(|line: &SectionLine| !line.text.is_empty());
    let quoted: Vec<String> = lines.iter().map(|line| flat(&line.text)).collect();
    let mut state = ledger.candidates(limit, counter);
    state.retain(|line| {
        // What another rule was replaced by stands as a rule too.
        let rule = line.text.trim_matches('"');
        line.section != Section::Rules || !quoted.iter().any(|text| holds_rule(text, rule))
    });
    lines.extend(state);
    let from = usize::from(first.is_some());
    let between = from..(words.len() - usize::from(last.is_some())).max(from);
    lines.extend(chronicle.candidates(Some(between), limit, counter));
    (lines, ledger.is_certain())
}
