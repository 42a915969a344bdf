//! What a ledger says, by its worth.

use super::{
    ContextTexts, Ledger, LedgerLine, LeftOut, Section, SectionLine,
    excerpt::{ends, excerpt_of_output},
    filling::{Filling, Form, take, written},
    open_call::Failure,
};
use crate::{
    steps::{Demand, Item, Status, forbids, single_line, telling_line, unwrap_output},
    text::{quote::LEFT_OUT, shortened},
    tokens::TokenCounter,
};

/// The bytes of what the agent said last, where there is room and where there is less.
const SPEECH: usize = 900;
const LINE: usize = 400;

/// The bytes of the line that tells what failed, in a small room.
const TOLD: usize = 120;

/// Of a plan with more open steps only those near to the work are told.
const LONG_PLAN: usize = 16;

/// The tokens that a list takes to say that there is more of it.
const MORE: usize = 6;

impl Ledger {
    /// The sections of a ledger by their worth.
    pub(crate) const WORTH: [Section; 9] = [
        Section::Rules,
        Section::LastError,
        Section::Plan,
        Section::Changed,
        Section::OpenErrors,
        Section::Decisions,
        Section::Speech,
        Section::Read,
        Section::Solved,
    ];

    /// What there is to say in at most `limit` tokens, by its worth: rules, the last error, open
    /// steps, files that were changed, what the agent said last, and files that were read. `None`
    /// where nothing is known or nothing fits. O(n log n) in what is known; lines are counted as
    /// far as they may fit.
    pub fn text(&self, limit: u64, counter: &dyn TokenCounter) -> Option<String> {
        let lines = self.lines(limit, &ContextTexts::default(), counter);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    /// The lines of [`Ledger::text`], without what the context says `elsewhere`.
    pub(crate) fn lines(
        &self,
        limit: u64,
        elsewhere: &ContextTexts<'_>,
        counter: &dyn TokenCounter,
    ) -> Vec<LedgerLine> {
        let whole = usize::try_from(limit).unwrap_or(usize::MAX);
        // Each list of state may have to say that there is more of it.
        let limit = whole - (whole / 16).min(Section::LISTS.len() * MORE);
        let form = Form { with_frames: true, is_certain: self.is_certain() };
        let mut filling = Filling::new(limit, form, counter);
        let mut lines = self.candidates(limit.saturating_mul(2), counter);
        lines.extend(self.decision_lines());
        lines.retain(|line| !elsewhere.says(line));
        // Lines that tell how many are left out are told with those that do not fit.
        let (before, mut lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| LeftOut::of_text(&line.text).is_some());
        let mut others = Vec::new();
        for section in Self::WORTH {
            let share = match section {
                Section::Rules => limit / 2,
                Section::Decisions => limit / 6,
                _ => limit / 4,
            };
            others.extend(filling.fill(take(&mut lines, section), share));
        }
        // What was only read is the least of it.
        let read = take(&mut others, Section::Read);
        // Older decisions are left out, and not counted as more.
        others.retain(|line| line.section != Section::Decisions);
        let mut others = filling.fill(others, limit);
        others.extend(read.into_iter().chain(before));
        others.extend(filling.settle());
        filling.tell_more(&others, whole);
        written(filling.chosen(), form)
    }

    /// What the agent said last, also where the user spoke since.
    pub(crate) fn said_last(&self) -> Option<&str> {
        self.said.as_ref().map(|said| said.text.as_str())
    }

    /// What there is to say, section by section, the most valuable line of each first. `room` are
    /// the tokens of the whole.
    pub(crate) fn candidates(&self, room: usize, counter: &dyn TokenCounter) -> Vec<SectionLine> {
        let mut lines = self.rule_lines();
        lines.extend(self.obstacles.iter().rev().map(|found| {
            let text = format!("the agent found: {}", found.text);
            SectionLine::new(Section::Decisions, found.frame, text)
        }));
        lines.extend(self.error_lines(room, counter));
        lines.extend(self.plan_lines());
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
        // What the user answered is no open question.
        let is_last = |at| self.last_words.is_none_or(|words| words <= at);
        if let Some(said) = self.said.as_ref().filter(|said| is_last(said.frame)) {
            let text = ends(&said.text, (room / 2).clamp(LINE, SPEECH));
            let mut line = SectionLine::new(Section::Speech, said.frame, text);
            line.shorter = [LINE, LINE / 2, LINE / 4].map(|most| ends(&said.text, most)).to_vec();
            lines.push(line);
        }
        lines
    }

    /// What the agent decided or found, the newest first.
    fn decision_lines(&self) -> impl Iterator<Item = SectionLine> {
        let decisions = self.decisions.newest_first();
        decisions.map(|of| SectionLine::new(Section::Decisions, of.frame, &*of.text))
    }

    /// The steps that are not done: those in work, and then the others, of a long plan those near
    /// to where the work is; and how many are done.
    fn plan_lines(&self) -> Vec<SectionLine> {
        let certain = self.plan_at.filter(|_| self.is_certain());
        let Some(frame) = certain else { return Vec::new() };
        let is_open = |item: &&Item| item.status != Status::Done;
        let open: Vec<&Item> = self.plan.iter().filter(is_open).collect();
        let is_long = open.len() > LONG_PLAN;
        let mut shown: Vec<&Item> = if is_long { self.near_steps() } else { open.clone() };
        if !is_long {
            shown.sort_by_key(|item| item.status == Status::Open);
        }
        let mut lines = Vec::new();
        let mut heading = "";
        for item in &shown {
            let of = item.heading.as_deref().unwrap_or_default();
            let below =
                if of.is_empty() || of == heading { String::new() } else { format!(" ({of})") };
            heading = of;
            let text = |most| format!("{}{}", item.status.mark(), shortened(&item.text, most));
            let mut line = SectionLine::new(Section::Plan, frame, text(LINE) + &below);
            line.shorter = vec![text(LINE), shortened(&item.text, LINE), text(40), text(20)];
            line.whole = 2;
            lines.push(line);
        }
        let left = open.len() - shown.len();
        if left > 0 {
            let text = format!("… {left} more: open ×{left}");
            lines.push(SectionLine::new(Section::Plan, None, text));
        }
        let done = self.plan.len() - open.len();
        // A list that is all done may be a part of the plan: that no step is left would mislead.
        if done > 0 && !open.is_empty() {
            let text = format!("{done} of {} steps done", self.plan.len());
            lines.push(SectionLine::new(Section::Plan, frame, text));
        }
        lines
    }

    /// The open steps from where the work is: the one in work, or the first behind the last that is
    /// done; where too few follow, those before it too.
    fn near_steps(&self) -> Vec<&Item> {
        let is = |status: Status| move |item: &Item| item.status == status;
        let current = self.plan.iter().position(is(Status::InProgress));
        let behind = || self.plan.iter().rposition(is(Status::Done)).map(|done| done + 1);
        let from = current.or_else(behind).unwrap_or_default();
        let (before, after) = self.plan.split_at_checked(from).unwrap_or((&self.plan, &[]));
        let open =
            |items: &'_ [Item]| items.iter().filter(|item| item.status != Status::Done).count();
        let missing = LONG_PLAN.saturating_sub(open(after));
        let skipped = open(before).saturating_sub(missing);
        let is_open = |item: &&Item| item.status != Status::Done;
        let near = before.iter().filter(is_open).skip(skipped);
        near.chain(after.iter().filter(is_open)).take(LONG_PLAN).collect()
    }

    /// The rules: those with a command first, then what is forbidden, then the newest; of one message
    /// the shortest, since more of them fit.
    fn rule_lines(&self) -> Vec<SectionLine> {
        let mut rules: Vec<_> = self.demands().iter().collect();
        rules.sort_by_key(|of| {
            (
                !of.text.contains("```"),
                !forbids(&of.text),
                std::cmp::Reverse(of.frame),
                of.text.len(),
            )
        });
        let line = |of: &Demand| {
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
            let old = self.age_of(last);
            let call = |most: usize| format!("{}{old}", shortened(&last.call, most));
            let telling = last.telling();
            // What is over is told in a line.
            let section = if is_open { Section::LastError } else { Section::Solved };
            let text = if is_open {
                let said = error(last, room / 12, counter);
                format!("{}:\n{said}", call((room / 4).clamp(16, 160)))
            } else {
                format!("{}: {telling}", call((room / 4).clamp(16, 80)))
            };
            let mut line = SectionLine::new(section, last.frame, text);
            line.shorter = vec![
                format!("{}: {telling}", call(80)),
                format!("{}: {telling}", call(32)),
                format!("{}: {}", call(32), shortened(telling, TOLD)),
                shortened(telling, TOLD),
                shortened(telling, TOLD / 2),
            ];
            line.whole = line.shorter.len() - 1;
            lines.push(line);
        }
        // The user has gone on from what failed before the last change and before the last words.
        let is_past = |error: &Failure| {
            self.changed_at.is_some_and(|changed| changed > error.frame)
                && self.last_words.is_some_and(|words| words > error.frame)
        };
        let others = self.errors.iter().rev();
        let others =
            others.filter(|error| Some(*error) != self.last_error.as_ref() && !is_past(error));
        lines.extend(others.map(|error| {
            let (call, old) = (&error.call, self.age_of(error));
            let telling = |most: usize| shortened(error.telling(), most);
            let text = format!("{call}{old}: {}", telling(160));
            let mut line = SectionLine::new(Section::OpenErrors, error.frame, text);
            line.shorter = vec![
                format!("{}{old}: {}", shortened(call, 80), telling(TOLD)),
                format!("{}{old}: {}", shortened(call, 32), telling(TOLD / 2)),
            ];
            line
        }));
        lines
    }

    /// What is said of a failure after which files were changed: it may be over.
    fn age_of(&self, error: &Failure) -> &'static str {
        let is_old = self.changed_at.is_some_and(|changed| changed > error.frame);
        if is_old { " (before the last change)" } else { "" }
    }
}

impl Failure {
    fn telling(&self) -> &str {
        if self.told.is_empty() { telling_line(&self.text) } else { &self.told }
    }
}

/// What failed, verbatim where it takes at most `room` tokens; else the line that tells what
/// failed, and what stands around it.
fn error(failure: &Failure, room: usize, counter: &dyn TokenCounter) -> String {
    let plain = single_line(&failure.text).unwrap_or_else(|| unwrap_output(&failure.text));
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
    let excerpt = excerpt_of_output(plain, left, counter);
    if excerpt.contains(telling) { excerpt } else { format!("{telling}\n{LEFT_OUT}\n{excerpt}") }
}
