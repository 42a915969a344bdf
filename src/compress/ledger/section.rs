//! What a summary without a model says, section by section, and how much of it fits.

use std::collections::HashSet;

use super::{
    Chronicle, Ledger,
    envelope::unwrapped,
    excerpt::{LEFT_OUT, ends, excerpt},
    filling::{Filling, take, written},
    open_call::Failure,
    outcome::{shortened, single_line, telling_line},
    plan::Status,
    state::Noted,
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
            Self::First => "Asked first:",
            Self::Last => "Asked last:",
            Self::Rules => "Rules:",
            Self::LastError => "Last error:",
            Self::OpenErrors => "Failed and not done since:",
            Self::Plan => "Plan:",
            Self::Changed => "Files changed:",
            Self::Read => "Files read:",
            Self::Speech => "Said last:",
            Self::Told => "Summary of before:",
            Self::Words => "The user also said, newest first:",
            Self::Decisions => "Reasons, newest first:",
            Self::Calls => "Done, newest first:",
            Self::Names => "Names:",
        }
    }

    /// The titles of summaries that were written before.
    const FORMER: [(&'static str, Self); 4] = [
        ("Asked first by the user:", Self::First),
        ("Asked last by the user:", Self::Last),
        ("Rules of the user:", Self::Rules),
        ("Said last by the agent:", Self::Speech),
    ];

    pub(in crate::compress) fn of_title(line: &str) -> Option<Self> {
        let former = || Self::FORMER.into_iter().find(|(title, _)| *title == line);
        let now = Self::ALL.into_iter().find(|section| section.title() == line);
        now.or_else(|| former().map(|(_, section)| section))
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
    /// What is said where there is no room for the text, the longest first.
    pub(in crate::compress) shorter: Vec<String>,
    /// So many of the shorter forms still say all that matters.
    pub(in crate::compress) whole: usize,
}

impl SectionLine {
    pub(in crate::compress) fn new(
        section: Section,
        frame: FrameSeq,
        text: impl Into<String>,
    ) -> Self {
        Self {
            section,
            frame: Some(frame),
            text: text.into(),
            tokens: None,
            shorter: Vec::new(),
            whole: 0,
        }
    }

    /// The number of the last form that says all that matters; 0 is the text.
    pub(in crate::compress) fn whole_forms(&self) -> usize {
        self.whole.min(self.shorter.len())
    }

    /// The form of that number.
    pub(in crate::compress) fn form(&self, number: usize) -> &str {
        let shorter = number.checked_sub(1).and_then(|at| self.shorter.get(at));
        shorter.unwrap_or(&self.text)
    }
}

/// The bytes of what the agent said last, where there is room and where there is less.
const SPEECH: usize = 900;
const LINE: usize = 400;

/// The bytes of the line that tells what failed, in a small room.
const TOLD: usize = 120;

/// The tokens that a list takes to say that there is more of it.
const MORE: usize = 6;

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

    /// The sections of which a part alone would read as all.
    const LISTS: [Section; 4] =
        [Section::Rules, Section::Plan, Section::Changed, Section::OpenErrors];

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
        let whole = usize::try_from(limit).unwrap_or(usize::MAX);
        // Each list of state may have to say that there is more of it.
        let limit = whole - (whole / 16).min(Self::LISTS.len() * MORE);
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
        let mut others = filling.fill(others, limit);
        others.extend(filling.settle());
        filling.tell_more(&others, &Self::LISTS, whole);
        written(filling.chosen(), true)
    }

    /// What there is to say, section by section, the most valuable line of each first. `room` are
    /// the tokens of the whole.
    pub(in crate::compress) fn candidates(
        &self,
        room: usize,
        counter: &dyn TokenCounter,
    ) -> Vec<SectionLine> {
        let mut lines = self.rule_lines();
        lines.extend(self.error_lines(room, counter));
        if let Some(frame) = self.plan_at {
            let of_status = |status: Status| {
                let items = self.plan.iter().filter(move |item| item.status == status);
                items.map(move |item| {
                    let text =
                        |most| format!("{}{}", item.status.mark(), shortened(&item.text, most));
                    let mut line = SectionLine::new(Section::Plan, frame, text(LINE));
                    line.shorter = vec![shortened(&item.text, LINE), text(40), text(20)];
                    line.whole = 1;
                    line
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
            let times = |what: &str, count: u32| match count {
                1 => what.to_owned(),
                count => format!("{what} ×{count}"),
            };
            let section = if file.is_changed() { Section::Changed } else { Section::Read };
            let text = if section == Section::Changed {
                format!("{path}: {}", file.history())
            } else {
                times(path, file.read)
            };
            let mut line = SectionLine::new(section, file.changed_at.unwrap_or(file.last), text);
            line.shorter.extend((section == Section::Changed).then(|| (*path).clone()));
            line.whole = 1;
            lines.push(line);
        }
        if let Some(said) = &self.said {
            let text = ends(&said.text, (room / 2).clamp(LINE, SPEECH));
            let mut line = SectionLine::new(Section::Speech, said.frame, text);
            line.shorter = [LINE, LINE / 2, LINE / 4].map(|most| ends(&said.text, most)).to_vec();
            lines.push(line);
        }
        lines
    }

    /// The rules: those with a command first, then the newest; of one message the shortest, since
    /// more of them fit.
    fn rule_lines(&self) -> Vec<SectionLine> {
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_by_key(|of| {
            (!of.text.contains("```"), std::cmp::Reverse(of.frame), of.text.len())
        });
        let line = |of: &Noted| {
            let plain = format!("\"{}\"", of.text);
            let mut line = SectionLine::new(Section::Rules, of.frame, &plain);
            if let Some(replaced) = &of.replaces {
                line.text = format!("{plain}, no longer \"{replaced}\"");
                line.shorter.push(plain);
            }
            line
        };
        rules.into_iter().map(line).collect()
    }

    /// What failed last, and what failed before and was not done since.
    fn error_lines(&self, room: usize, counter: &dyn TokenCounter) -> Vec<SectionLine> {
        let mut lines = Vec::new();
        if let Some(last) = &self.last_error {
            let is_open = self.errors.last() == Some(last);
            let over = if is_open { "" } else { " (done since)" };
            let call = |most: usize| format!("{}{over}", shortened(&last.call, most));
            let telling = last.telling();
            // What is over is told in a line.
            let text = if is_open {
                let said = error(last, room / 12, counter);
                format!("{}:\n{said}", call((room / 4).clamp(16, 160)))
            } else {
                format!("{}: {telling}", call((room / 4).clamp(16, 80)))
            };
            let mut line = SectionLine::new(Section::LastError, last.frame, text);
            line.shorter = vec![
                format!("{}: {telling}", call(80)),
                format!("{}: {telling}", call(32)),
                format!("{}: {}", call(32), shortened(telling, TOLD)),
                format!("{}{over}", shortened(telling, TOLD)),
                format!("{}{over}", shortened(telling, TOLD / 2)),
            ];
            line.whole = line.shorter.len() - 1;
            lines.push(line);
        }
        let others =
            self.errors.iter().rev().filter(|error| Some(*error) != self.last_error.as_ref());
        lines.extend(others.map(|error| {
            let text = format!("{}: {}", error.call, shortened(error.telling(), 160));
            SectionLine::new(Section::OpenErrors, error.frame, text)
        }));
        lines
    }
}

impl Failure {
    fn telling(&self) -> &str {
        if self.told.is_empty() { telling_line(&self.text) } else { &self.told }
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
        lines.extend(self.acts());
        lines
    }
}

/// What failed, verbatim where it takes at most `room` tokens; else the line that tells what
/// failed, and what stands around it.
fn error(failure: &Failure, room: usize, counter: &dyn TokenCounter) -> String {
    let plain = single_line(&failure.text).unwrap_or_else(|| unwrapped(&failure.text));
    if plain.is_empty() {
        return failure.told.clone();
    }
    if counter.count_up_to(plain, room).is_some() {
        return plain.to_owned();
    }
    let telling = failure.telling();
    let left = room.saturating_sub(counter.count(telling) + 4);
    if left < 24 {
        return telling.to_owned();
    }
    let excerpt = excerpt(plain, left, counter);
    if excerpt.contains(telling) { excerpt } else { format!("{telling}\n{LEFT_OUT}\n{excerpt}") }
}
