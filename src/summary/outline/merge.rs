//! What summaries say, taken together, with the frames that stand between them.

use std::collections::HashSet;

use crate::{
    id::FrameSeq,
    steps::Passage,
    summary::{
        Task,
        ledger::{
            Chronicle, Ledger, LeftOut, Section, SectionLine, excerpts_of_summary, quoted,
            with_paragraphs,
        },
    },
    text::quote::{OF_SUMMARY, unquoted},
    tokens::TokenCounter,
};

/// The tokens of a summary that somebody else wrote, where there is less room.
const TOLD: [usize; 7] = [2_000, 1_000, 500, 250, 125, 62, 31];

/// The lines of summaries. State is carried on as it stands in the newest; what somebody else wrote
/// stays as it is.
pub(super) fn of_summaries(task: &Task<'_>, counter: &dyn TokenCounter) -> Vec<SectionLine> {
    let limit = task.token_limit;
    let mut lines: Vec<SectionLine> = Vec::new();
    let mut seen: HashSet<(Section, String)> = HashSet::new();
    let mut settled: HashSet<Section> = HashSet::new();
    let mut first: Option<SectionLine> = None;
    // Frames that stand between the summaries are one run.
    let is_frame = |passage: &Passage| passage.source.is_some();
    let runs = task.passages.chunk_by(|one, other| is_frame(one) && is_frame(other));
    for run in runs.rev() {
        let Some(passage) = run.first() else { continue };
        if is_frame(passage) {
            lines.extend(of_frames_between(task, run, counter));
            continue;
        }
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
                    lines.push(quoted(passage.from, &text, limit, counter));
                    continue;
                }
                Section::Words => {
                    let (frame, said) = framed(&text).unwrap_or((passage.from, &text));
                    let said = said.strip_prefix('"').and_then(|said| said.strip_suffix('"'));
                    let said = with_paragraphs(said.unwrap_or(&text));
                    let line = quoted(frame, &said, limit, counter);
                    if LeftOut::of_text(&text).is_some() {
                        lines.push(SectionLine::new(section, frame, text));
                    } else if seen.insert((section, line.text.clone())) {
                        lines.push(line);
                    }
                    continue;
                }
                Section::Told => {
                    let mut line = SectionLine::new(section, passage.from, &text);
                    line.shorter = excerpts_of_summary(&text, TOLD, counter).to_vec();
                    line.shorter.retain(|form| form.len() < text.len());
                    lines.push(line);
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
            let is_count = LeftOut::of_text(&text).is_some();
            if is_count || seen.insert((section, key)) {
                let (frame, text) = match framed(&text).filter(|_| section.names_frames()) {
                    Some((frame, said)) => (frame, said.to_owned()),
                    None => (passage.from, text),
                };
                lines.push(SectionLine::new(section, frame, text));
            }
        }
        settled.extend(sections);
        if !firsts.is_empty() {
            let older = SectionLine::new(Section::First, passage.from, firsts.join("\n"));
            if let Some(SectionLine { frame: Some(frame), text, .. }) = first.replace(older) {
                lines.push(quoted(frame, &text, limit, counter));
            }
        }
    }
    lines.extend(first);
    lines
}

/// What frames say that stand between summaries.
fn of_frames_between(
    task: &Task<'_>,
    run: &[Passage],
    counter: &dyn TokenCounter,
) -> Vec<SectionLine> {
    let limit = task.token_limit;
    // Who speaks is known from the rest of the history.
    let known = task.before.or(task.ledger);
    let (mut ledger, mut chronicle) = (known.cloned().unwrap_or_default(), Chronicle::default());
    run.iter().for_each(|passage| ledger.read_into(passage, Some(&mut chronicle)));
    chronicle.candidates(None, limit, counter)
}

/// A line with the frame that stands at its end: `said [12]`.
fn framed(line: &str) -> Option<(FrameSeq, &str)> {
    let (said, frame) = line.strip_suffix(']')?.rsplit_once(" [")?;
    Some((FrameSeq::new(frame.parse().ok()?), said))
}

/// Whether it is certain whose words stand in the user's place, in these summaries and in what was
/// said so far.
pub(super) fn is_certain(task: &Task<'_>) -> bool {
    let known = task.before.or(task.ledger);
    let mut lines = task.passages.iter().flat_map(|passage| passage.snapshot.text().lines());
    known.is_none_or(Ledger::is_certain) && !lines.any(Section::is_uncertain)
}

/// The lines of a summary by their sections. Names are read elsewhere. What a model wrote has none: its
/// lines are quoted, all of them.
fn of_summary(text: &str) -> Vec<(Section, String)> {
    let mut section = Section::Told;
    let mut found: Vec<(Section, String)> = Vec::new();
    let mut is_begun = false;
    let is_ours = text.lines().any(|line| line == OF_SUMMARY);
    for line in text.lines().filter(|line| *line != OF_SUMMARY) {
        let plain = line.trim_end();
        if let Some(begun) = Section::of_title(plain).filter(|_| is_ours) {
            (section, is_begun) = (begun, true);
            continue;
        }
        let plain = if section.is_text() { unquoted(plain) } else { plain };
        if is_ours && line.starts_with(Section::Names.title(true)) || is_tag(line.trim_end()) {
            continue;
        }
        let item = plain.strip_prefix("- ").filter(|_| !section.is_text());
        match (item, found.last_mut()) {
            (Some(item), _) => found.push((section, item.to_owned())),
            // The lines of a text stay together.
            (None, Some((last, text))) if !is_begun && *last == section => {
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
