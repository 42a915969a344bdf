//! What a job has to say: lines by section, and names by their worth.

use std::collections::HashSet;

use super::{
    entries::{entries, texts},
    select::Names,
};
use crate::{
    compress::{
        CompressionJob,
        ledger::{Chronicle, Section, SectionLine, excerpt},
    },
    id::FrameSeq,
    text::flat,
    tokens::TokenCounter,
};

/// The tokens of a request that is quoted whole in a small room too.
const SHORT: usize = 24;

/// So many blanks stand in what of a rule leads to its command.
const LEADING: usize = 3;

/// What a job has to say.
pub(super) struct Material {
    /// Of each section the most valuable first.
    pub(super) lines: Vec<SectionLine>,
    /// The names with their tokens, the one that is most worth them first.
    pub(super) names: Vec<(String, usize)>,
    /// So many of the names are likely to be needed.
    pub(super) likely: usize,
}

impl Material {
    /// Reads a job. Runs in time linear in its text, but for the sort of the names.
    pub(super) fn of(job: &CompressionJob, counter: &dyn TokenCounter) -> Self {
        let lines = if job.level > 1 { of_summaries(job) } else { of_frames(job, counter) };
        let entries = entries(job);
        let names = Names::of(&entries, texts(&job.tail), counter);
        Self { lines, names: names.ranked(&entries), likely: names.likely }
    }
}

fn of_frames(job: &CompressionJob, counter: &dyn TokenCounter) -> Vec<SectionLine> {
    // Who speaks, and which work goes on, is known from before.
    let before = job.before.as_deref().filter(|_| job.ledger.is_some());
    let (mut ledger, mut chronicle) = (before.cloned().unwrap_or_default(), Chronicle::default());
    for passage in &job.passages {
        ledger.read_into(passage, Some(&mut chronicle));
    }
    chronicle.expect(texts(&job.tail).flat_map(super::identifiers));
    if job.ledger.is_some() {
        // Where things stand is said behind the blocks.
        return chronicle.candidates(false);
    }
    let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
    let words = chronicle.words();
    let mut lines = Vec::new();
    let quote = |section, (frame, said): &(FrameSeq, String), share: usize, most: usize| {
        let text = excerpt(said, share.max(SHORT.min(most)), counter);
        let mut line = SectionLine::new(section, *frame, text);
        let shorter = (share < SHORT).then(|| excerpt(said, share, counter));
        line.shorter.extend(shorter.filter(|text| !text.is_empty()));
        line
    };
    lines.extend(words.first().map(|said| quote(Section::First, said, limit / 4, limit / 3)));
    let last = words.last().filter(|_| words.len() > 1);
    lines.extend(last.map(|said| quote(Section::Last, said, limit / 8, limit / 4)));
    lines.retain(|line: &SectionLine| !line.text.is_empty());
    let quoted: Vec<String> = lines.iter().map(|line| flat(&line.text)).collect();
    let mut state = ledger.candidates(limit, counter);
    state.retain(|line| {
        // What another rule was replaced by stands as a rule too.
        let rule = line.text.trim_matches('"');
        line.section != Section::Rules || !quoted.iter().any(|text| says(text, rule))
    });
    lines.extend(state);
    lines.extend(chronicle.candidates(true));
    lines
}

/// Whether a text holds a rule: as it is, or its command with the words that lead to it.
fn says(text: &str, rule: &str) -> bool {
    let command = rule.find("```").and_then(|at| {
        let lead = rule.get(..at)?.trim_end();
        let from = lead.rmatch_indices(' ').nth(LEADING).map_or(0, |(at, _)| at + 1);
        rule.get(from..)
    });
    text.contains(rule) || command.is_some_and(|command| text.contains(command))
}

/// The lines of summaries. State is carried on as it stands in the newest; what somebody else wrote
/// stays as it is.
fn of_summaries(job: &CompressionJob) -> Vec<SectionLine> {
    let mut lines: Vec<SectionLine> = Vec::new();
    let mut seen: HashSet<(Section, String)> = HashSet::new();
    let mut settled: HashSet<Section> = HashSet::new();
    let mut first: Option<SectionLine> = None;
    for passage in job.passages.iter().rev() {
        let of = of_summary(passage.snapshot.text());
        let sections: HashSet<Section> = of.iter().map(|(section, _)| *section).collect();
        let mut firsts = Vec::new();
        for (section, text) in of {
            match section {
                Section::First => {
                    firsts.push(text);
                    continue;
                }
                // What was asked last before is one of the things that the user said.
                Section::Last if settled.contains(&section) => {
                    said(&mut lines, passage.from, &text);
                    continue;
                }
                // Only the newest tells how things stand.
                Section::LastError | Section::Plan | Section::Speech
                    if settled.contains(&section) =>
                {
                    continue;
                }
                _ => {}
            }
            // A file stands once, with what happened to it last.
            let key = match section {
                Section::Changed | Section::Read => {
                    text.split(": ").next().unwrap_or_default().to_owned()
                }
                _ => text.clone(),
            };
            if seen.insert((section, key)) {
                lines.push(SectionLine::new(section, passage.from, text));
            }
        }
        settled.extend(sections);
        if !firsts.is_empty() {
            let older = SectionLine::new(Section::First, passage.from, firsts.join("\n"));
            if let Some(SectionLine { frame: Some(frame), text, .. }) = first.replace(older) {
                said(&mut lines, frame, &text);
            }
        }
    }
    lines.extend(first);
    lines
}

/// Adds something that the user said.
fn said(lines: &mut Vec<SectionLine>, frame: FrameSeq, text: &str) {
    let text: Vec<&str> = text.split_whitespace().collect();
    lines.push(SectionLine::new(Section::Words, frame, format!("\"{}\"", text.join(" "))));
}

/// The lines of a summary by their sections. Names are read elsewhere.
fn of_summary(text: &str) -> Vec<(Section, String)> {
    let mut section = Section::Told;
    let mut found: Vec<(Section, String)> = Vec::new();
    let mut is_begun = false;
    for line in text.lines() {
        let plain = line.trim_end();
        if let Some(begun) = Section::of_title(plain) {
            (section, is_begun) = (begun, true);
            continue;
        }
        if plain.starts_with(Section::Names.title()) || is_tag(plain) {
            continue;
        }
        let item = plain.strip_prefix("- ").filter(|_| !section.is_text());
        match (item, found.last_mut()) {
            (Some(item), _) => found.push((section, item.to_owned())),
            // The lines of a text stay together.
            (None, Some((last, text)))
                if !is_begun && *last == section && section != Section::Told =>
            {
                text.push('\n');
                text.push_str(plain);
            }
            _ if plain.is_empty() => {}
            _ => found.push((section, plain.to_owned())),
        }
        is_begun = false;
    }
    found
}

/// Whether a line is the tag that a format puts around a summary.
fn is_tag(line: &str) -> bool {
    line.starts_with('<') && line.ends_with('>') && !line.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_whose_command_is_quoted_is_not_said_again() {
        let rule = "When all is done, end with exactly this command: ```sh make tide ```";
        assert!(says("x […] end with exactly this command: ```sh make tide ``` […]", rule));
        assert!(!says("x […] end with exactly this command: ```sh make flood ```", rule));
        assert!(!says("make tide", rule));
        assert!(says("Yes. Never push. No.", "Never push."));
    }
}
