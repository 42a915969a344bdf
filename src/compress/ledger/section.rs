//! What a summary without a model says, section by section, and how much of it fits.

use std::collections::HashSet;

use super::{
    Chronicle, Ledger,
    excerpt::{LEFT_OUT, excerpt},
    outcome::{shortened, telling_line},
    plan::Status,
    sentence,
};
use crate::{id::FrameSeq, tokens::TokenCounter};

/// A line of a ledger, with the frame that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The frame; `None` for headings.
    pub frame: Option<FrameSeq>,
    /// The line, as it stands in the text.
    pub text: String,
}

/// A section, in the order in which they stand in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::compress) enum Section {
    First,
    Last,
    Rules,
    LastError,
    OpenErrors,
    Plan,
    Changed,
    Read,
    Speech,
    Told,
    Words,
    Decisions,
    Calls,
    Names,
}

impl Section {
    pub(in crate::compress) const ALL: [Self; 14] = [
        Self::First,
        Self::Last,
        Self::Rules,
        Self::LastError,
        Self::OpenErrors,
        Self::Plan,
        Self::Changed,
        Self::Read,
        Self::Speech,
        Self::Told,
        Self::Words,
        Self::Decisions,
        Self::Calls,
        Self::Names,
    ];

    pub(in crate::compress) fn title(self) -> &'static str {
        match self {
            Self::First => "Asked first by the user:",
            Self::Last => "Asked last by the user:",
            Self::Rules => "Rules of the user:",
            Self::LastError => "Last error:",
            Self::OpenErrors => "Failed and not done since:",
            Self::Plan => "Plan:",
            Self::Changed => "Files changed:",
            Self::Read => "Files read:",
            Self::Speech => "Said last by the agent:",
            Self::Told => "Summary of before:",
            Self::Words => "The user also said, newest first:",
            Self::Decisions => "Reasons, newest first:",
            Self::Calls => "Done, newest first:",
            Self::Names => "Names:",
        }
    }

    pub(in crate::compress) fn of_title(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.title() == line)
    }

    /// Whether its lines stand as they are, and not as a list.
    pub(in crate::compress) fn is_text(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::LastError | Self::Speech | Self::Told)
    }
}

/// A line that may stand in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compress) struct SectionLine {
    pub(in crate::compress) section: Section,
    pub(in crate::compress) frame: Option<FrameSeq>,
    pub(in crate::compress) text: String,
    /// The tokens of the text, where they are known.
    pub(in crate::compress) tokens: Option<usize>,
    /// What is said where there is no room for the text.
    pub(in crate::compress) shorter: Option<String>,
}

impl SectionLine {
    pub(in crate::compress) fn new(
        section: Section,
        frame: FrameSeq,
        text: impl Into<String>,
    ) -> Self {
        Self { section, frame: Some(frame), text: text.into(), tokens: None, shorter: None }
    }
}

/// The bytes of a file's or a step's line, and of what the agent said.
const LINE: usize = 400;

impl Ledger {
    /// The sections of a ledger by their worth.
    pub(in crate::compress) const WORTH: [Section; 7] = [
        Section::Rules,
        Section::LastError,
        Section::Plan,
        Section::Changed,
        Section::OpenErrors,
        Section::Speech,
        Section::Read,
    ];

    /// What there is to say in at most `limit` tokens, by its worth: rules, the last error, open
    /// steps, files that were changed, what the agent said last, and files that were read. `None`
    /// where nothing is known or nothing fits.
    pub fn text(&self, limit: u64, counter: &dyn TokenCounter) -> Option<String> {
        let lines = self.lines(limit, &HashSet::new(), counter);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// The lines of [`Ledger::text`], without the rules of frames that are `shown` anyway.
    pub(crate) fn lines(
        &self,
        limit: u64,
        shown: &HashSet<FrameSeq>,
        counter: &dyn TokenCounter,
    ) -> Vec<LedgerLine> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut filling = Filling::new(limit, true, counter);
        let mut lines = self.candidates(limit.saturating_mul(2), counter);
        lines.retain(|line| {
            let is_shown = line.frame.is_some_and(|frame| shown.contains(&frame));
            line.section != Section::Rules || !is_shown
        });
        let mut others = Vec::new();
        for section in Self::WORTH {
            let share = if section == Section::Rules { limit / 2 } else { limit / 4 };
            others.extend(filling.fill(take(&mut lines, section), share));
        }
        // What was only read is the least of it.
        others.retain(|line| line.section != Section::Read);
        filling.fill(others, limit);
        filling.settle();
        written(filling.chosen(), true)
    }

    /// What there is to say, section by section, the most valuable line of each first. `room` are
    /// the tokens of the whole.
    pub(in crate::compress) fn candidates(
        &self,
        room: usize,
        counter: &dyn TokenCounter,
    ) -> Vec<SectionLine> {
        let mut lines = Vec::new();
        let rule = |text: &str| format!("\"{text}\"");
        let mut rules: Vec<_> = self.rules.iter().collect();
        // A command goes first; what tells of the user is the least of it.
        rules.sort_by_key(|of| {
            let gives_command = of.text.contains("```");
            (sentence::is_statement(&of.text), !gives_command, std::cmp::Reverse(of.frame))
        });
        let rules = rules.into_iter();
        lines.extend(rules.map(|of| SectionLine::new(Section::Rules, of.frame, rule(&of.text))));
        if let Some(last) = &self.last_error {
            let is_open = self.errors.last() == Some(last);
            let over = if is_open { "" } else { " (done since)" };
            let call = shortened(&last.call, (room / 4).clamp(16, 160));
            let text = format!("{call}{over}:\n{}", error(&last.text, room / 6, counter));
            let mut line = SectionLine::new(Section::LastError, last.frame, text);
            let told = shortened(telling_line(&last.text), LINE);
            line.shorter = Some(if is_open { told } else { format!("{told}{over}") });
            lines.push(line);
        }
        let others =
            self.errors.iter().rev().filter(|error| Some(*error) != self.last_error.as_ref());
        lines.extend(others.map(|error| {
            let told = shortened(telling_line(&error.text), 160);
            let text = format!("{}: {told}", error.call);
            SectionLine::new(Section::OpenErrors, error.frame, text)
        }));
        if let Some(frame) = self.plan_at {
            let of_status = |status: Status| {
                let items = self.plan.iter().filter(move |item| item.status == status);
                items.map(move |item| {
                    let text = format!("{}{}", item.status.mark(), item.text);
                    SectionLine::new(Section::Plan, frame, text)
                })
            };
            let steps = [Status::InProgress, Status::Open].into_iter().flat_map(of_status);
            lines.extend(steps);
            let done = self.plan.iter().filter(|item| item.status == Status::Done).count();
            // A list that is all done may be a part of the plan: that no step is left would mislead.
            if done > 0 && done < self.plan.len() {
                let text = format!("{done} of {} steps done", self.plan.len());
                lines.push(SectionLine::new(Section::Plan, frame, text));
            }
        }
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| std::cmp::Reverse(file.order));
        for (path, file) in &files {
            let mut did = Vec::new();
            if file.is_deleted {
                did.push("deleted".to_owned());
            }
            if file.is_created {
                did.push("created".to_owned());
            }
            let times = |what: &str, count: u32| match count {
                1 => what.to_owned(),
                count => format!("{what} ×{count}"),
            };
            if file.changed > 0 {
                did.push(times("changed", file.changed));
            }
            let section = if file.is_changed() { Section::Changed } else { Section::Read };
            let text = if section == Section::Changed {
                format!("{path}: {}", did.join(", "))
            } else {
                times(path, file.read)
            };
            lines.push(SectionLine::new(section, file.last, text));
        }
        if let Some(said) = &self.said {
            let text = shortened(&said.text, LINE.min(room));
            let mut line = SectionLine::new(Section::Speech, said.frame, text);
            line.shorter = Some(sentences_in(&said.text, (room / 4).clamp(80, LINE).min(room)));
            lines.push(line);
        }
        lines
    }
}

impl Chronicle {
    /// What the user said, in order.
    pub(in crate::compress) fn words(&self) -> &[(FrameSeq, String)] {
        &self.words
    }

    /// What happened, section by section, newest first; `but_ends` leaves out what the user said
    /// first and last.
    pub(in crate::compress) fn candidates(&self, but_ends: bool) -> Vec<SectionLine> {
        let mut lines = Vec::new();
        let ends = usize::from(but_ends);
        let between = ends..self.words.len().saturating_sub(ends).max(ends);
        let words = self.words.get(between).unwrap_or_default().iter().rev();
        lines.extend(words.map(|(frame, said)| {
            let said = format!("\"{}\"", shortened(said, 1_200));
            SectionLine::new(Section::Words, *frame, said)
        }));
        let mut told = HashSet::new();
        let reasons = self.decisions.iter().rev().filter(|(_, said)| told.insert(said.as_str()));
        lines.extend(
            reasons
                .map(|(frame, said)| SectionLine::new(Section::Decisions, *frame, said.as_str())),
        );
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by_key(|act| std::cmp::Reverse(act.order));
        lines.extend(
            calls.iter().map(|act| SectionLine::new(Section::Calls, act.frame, act.line())),
        );
        lines
    }
}

/// The first sentences of a text in at most about `most` bytes; of a longer one, its first words.
fn sentences_in(text: &str, most: usize) -> String {
    let cut = shortened(text, most);
    let end = cut.rfind(". ").filter(|end| cut.ends_with('…') && *end > most / 3);
    match end.and_then(|end| cut.get(..=end)) {
        Some(whole) => format!("{whole} …"),
        None => cut,
    }
}

/// What failed, verbatim where it takes at most `room` tokens; else its beginning and the line that
/// tells what failed.
fn error(text: &str, room: usize, counter: &dyn TokenCounter) -> String {
    if counter.count_up_to(text, room).is_some() {
        return text.to_owned();
    }
    let telling = shortened(telling_line(text), LINE);
    let left = room.saturating_sub(counter.count(&telling) + 4);
    if left < 24 {
        return telling;
    }
    let head = excerpt(text, left, counter);
    if head.contains(&telling) { head } else { format!("{head}\n{LEFT_OUT}\n{telling}") }
}

/// Takes the lines of one section out of these.
pub(in crate::compress) fn take(
    lines: &mut Vec<SectionLine>,
    section: Section,
) -> Vec<SectionLine> {
    let (of, others) = std::mem::take(lines).into_iter().partition(|line| line.section == section);
    *lines = others;
    of
}

/// Lines that are chosen for a text of at most `limit` tokens.
pub(in crate::compress) struct Filling<'c> {
    chosen: Vec<SectionLine>,
    begun: HashSet<Section>,
    used: usize,
    limit: usize,
    with_frames: bool,
    counter: &'c dyn TokenCounter,
}

impl<'c> Filling<'c> {
    pub(in crate::compress) fn new(
        limit: usize,
        with_frames: bool,
        counter: &'c dyn TokenCounter,
    ) -> Self {
        let (chosen, begun) = (Vec::new(), HashSet::new());
        Self { chosen, begun, used: 0, limit, with_frames, counter }
    }

    /// What is left, by the counts of the lines.
    pub(in crate::compress) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Chooses lines in order while they take at most `share` tokens; gives back the others. Each
    /// line is counted by itself: [`Filling::finish`] counts the whole.
    pub(in crate::compress) fn fill(
        &mut self,
        lines: Vec<SectionLine>,
        share: usize,
    ) -> Vec<SectionLine> {
        let mut share = share.min(self.left());
        let mut others = Vec::new();
        for mut line in lines {
            let mut cost = self.cost(&line, share);
            if cost > share
                && let Some(text) = line.shorter.clone()
            {
                let shorter = SectionLine { text, shorter: None, ..line.clone() };
                cost = self.cost(&shorter, share);
                if cost <= share {
                    line = shorter;
                }
            }
            if cost > share {
                others.push(line);
                continue;
            }
            share -= cost;
            self.used += cost;
            self.begun.insert(line.section);
            self.chosen.push(line);
        }
        others
    }

    /// The tokens of a line with what stands around it, or more than `most`.
    fn cost(&self, line: &SectionLine, most: usize) -> usize {
        let title = if self.begun.contains(&line.section) { 0 } else { 6 };
        let around = match line.section {
            Section::Names => 0,
            section if section.is_text() => 1,
            _ => 2,
        };
        let frame = if self.with_frames { 3 } else { 0 };
        if title + around + frame >= most {
            return usize::MAX;
        }
        let counted = match line.tokens {
            Some(tokens) => Some(tokens),
            None => self.counter.count_up_to(&line.text, most),
        };
        counted.map_or(usize::MAX, |tokens| tokens + title + around + frame)
    }

    /// The lines so far.
    pub(in crate::compress) fn chosen(&self) -> &[SectionLine] {
        &self.chosen
    }

    /// Counts the whole, and drops what was chosen last until it fits; what is left then may be
    /// filled.
    pub(in crate::compress) fn settle(&mut self) {
        let whole = |chosen: &[SectionLine], counter: &dyn TokenCounter| {
            counter.count_up_to(&write(chosen, self.with_frames), self.limit)
        };
        if let Some(used) = whole(&self.chosen, self.counter) {
            self.used = used;
            return;
        }
        let (mut fit, mut over) = (0, self.chosen.len());
        while fit + 1 < over {
            let middle = usize::midpoint(fit, over);
            let head = self.chosen.get(..middle).unwrap_or_default();
            if whole(head, self.counter).is_some() { fit = middle } else { over = middle }
        }
        let head = self.chosen.get(..fit).unwrap_or_default();
        self.used = whole(head, self.counter).unwrap_or(self.limit);
        self.chosen.truncate(fit);
    }
}

/// The text of lines, in the order of their sections.
pub(in crate::compress) fn write(chosen: &[SectionLine], with_frames: bool) -> String {
    let lines = written(chosen, with_frames);
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    texts.join("\n")
}

fn written(chosen: &[SectionLine], with_frames: bool) -> Vec<LedgerLine> {
    let mut lines = Vec::new();
    for section in Section::ALL {
        let mut of: Vec<&SectionLine> =
            chosen.iter().filter(|line| line.section == section).collect();
        if of.is_empty() {
            continue;
        }
        if section == Section::Names {
            let names: Vec<&str> = of.iter().map(|line| line.text.as_str()).collect();
            let text = format!("{} {}", section.title(), names.join(" "));
            lines.push(LedgerLine { frame: None, text });
            continue;
        }
        lines.push(LedgerLine { frame: None, text: section.title().to_owned() });
        if section == Section::Told {
            of.sort_by_key(|line| line.frame);
        }
        lines.extend(of.into_iter().map(|line| {
            let mark = if section.is_text() { "" } else { "- " };
            let frame = line.frame.filter(|_| with_frames);
            let frame = frame.map(|frame| format!(" [{frame}]")).unwrap_or_default();
            LedgerLine { frame: line.frame, text: format!("{mark}{}{frame}", line.text) }
        }));
    }
    lines
}
