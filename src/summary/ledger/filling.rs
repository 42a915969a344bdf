//! How much of what there is to say fits.

use std::collections::HashSet;

use super::{
    item::quoted_item,
    left_out::LeftOut,
    section::{LedgerLine, Section, SectionLine},
};
use crate::{
    text::quote::{quoted, quoted_line},
    tokens::TokenCounter,
};

/// Takes the lines of one section out of these.
pub(crate) fn take(lines: &mut Vec<SectionLine>, section: Section) -> Vec<SectionLine> {
    let (of, others) = std::mem::take(lines).into_iter().partition(|line| line.section == section);
    *lines = others;
    of
}

/// How lines are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Whether each names its frame.
    pub(crate) with_frames: bool,
    /// Whether it is certain whose words stand in the user's place.
    pub(crate) is_certain: bool,
}

/// Lines that are chosen for a text of at most `limit` tokens.
pub(crate) struct Filling<'c> {
    chosen: Vec<SectionLine>,
    begun: HashSet<Section>,
    used: usize,
    limit: usize,
    form: Form,
    counter: &'c dyn TokenCounter,
}

impl<'c> Filling<'c> {
    pub(crate) fn new(limit: usize, form: Form, counter: &'c dyn TokenCounter) -> Self {
        let (chosen, begun) = (Vec::new(), HashSet::new());
        Self { chosen, begun, used: 0, limit, form, counter }
    }

    /// What is left, by the counts of the lines.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Chooses lines in order while they take at most `share` tokens, each in its longest form that
    /// fits and is not spare; gives back the others. Each line is counted by itself:
    /// [`Filling::settle`] counts the whole.
    pub(crate) fn fill(&mut self, lines: Vec<SectionLine>, share: usize) -> Vec<SectionLine> {
        let mut share = share.min(self.left());
        let mut others = Vec::new();
        for mut line in lines {
            let first = line.spare.min(line.shorter.len());
            let fitting = (first..=line.shorter.len()).find_map(|form| {
                let tokens = line.tokens.filter(|_| form == 0);
                Some((form, self.cost(line.section, line.form(form), tokens, share)?))
            });
            let Some((form, cost)) = fitting else {
                others.push(line);
                continue;
            };
            line.take_form(form);
            share -= cost;
            self.used += cost;
            self.begun.insert(line.section);
            self.chosen.push(line);
        }
        others
    }

    /// Gives chosen lines of a section longer forms while that takes at most `share` tokens more:
    /// each its next longer one, in the order in which they were chosen, and then all once more.
    pub(crate) fn lengthen(&mut self, section: Section, share: usize) {
        let mut share = share.min(self.left());
        let mut is_any = true;
        while std::mem::take(&mut is_any) {
            for line in self.chosen.iter_mut().filter(|line| line.section == section) {
                let Some(longer) = line.longer.pop() else { continue };
                let now = self.counter.count(&line.text);
                // What does not fit now does not fit later.
                let Some(tokens) = self.counter.count_up_to(&longer, now + share) else {
                    line.longer.clear();
                    continue;
                };
                let more = tokens.saturating_sub(now);
                (line.text, is_any) = (longer, true);
                share -= more;
                self.used += more;
            }
        }
    }

    /// Leaves out the chosen lines that are not to be kept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&SectionLine) -> bool) {
        self.chosen.retain(is_kept);
    }

    /// The tokens of a text.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.counter.count(text)
    }

    /// The tokens of all these lines of one section, with its title, where each is as short as it
    /// still says all: its last form but those that are cut.
    pub(crate) fn least(&self, lines: &[SectionLine]) -> usize {
        let last = lines.iter().map(SectionLine::whole_forms).max().unwrap_or_default();
        self.evenly(lines, last)
    }

    /// The tokens of these lines of one section, each in the form of that number.
    fn evenly(&self, lines: &[SectionLine], form: usize) -> usize {
        let Some(first) = lines.first() else { return 0 };
        let title = self.counter.count(first.section.title(self.form.is_certain)) + 1;
        let each = lines.iter().map(|line| {
            let text = line.form(form.min(line.whole_forms()));
            self.counter.count(text) + self.around(first.section)
        });
        each.sum::<usize>() + title
    }

    /// Chooses all of these lines of one section in the longest form in which they fit in `share`
    /// tokens; gives back them all where none fits.
    pub(crate) fn fill_evenly(
        &mut self,
        mut lines: Vec<SectionLine>,
        share: usize,
    ) -> Vec<SectionLine> {
        let last = lines.iter().map(SectionLine::whole_forms).max().unwrap_or_default();
        let fitting = (0..=last).map(|form| (form, self.evenly(&lines, form)));
        let Some((form, cost)) = fitting.into_iter().find(|(_, cost)| *cost <= share) else {
            return lines;
        };
        for line in &mut lines {
            line.take_form(form.min(line.whole_forms()));
        }
        self.used += cost;
        self.begun.extend(lines.iter().map(|line| line.section));
        self.chosen.append(&mut lines);
        lines
    }

    /// The tokens that stand around a line of a section.
    fn around(&self, section: Section) -> usize {
        let frame = if self.form.with_frames || section.names_frames() { 3 } else { 0 };
        let marks = match section {
            Section::Names => 0,
            section if section.is_text() => 1,
            _ => 2,
        };
        marks + frame
    }

    /// The tokens of a line with what stands around it, where these are at most `most`.
    fn cost(
        &self,
        section: Section,
        text: &str,
        tokens: Option<usize>,
        most: usize,
    ) -> Option<usize> {
        let is_begun = self.begun.contains(&section);
        let title = section.title(self.form.is_certain);
        let title = if is_begun { 0 } else { self.counter.count(title) + 1 };
        let left = most.checked_sub(title + self.around(section))?;
        let counted = tokens.or_else(|| self.counter.count_up_to(text, left))?;
        (counted <= left).then_some(most - left + counted)
    }

    /// The lines so far.
    pub(crate) fn chosen(&self) -> &[SectionLine] {
        &self.chosen
    }

    /// Counts the whole, and drops what was chosen last until it fits; what is left then may be
    /// filled. Gives back what was dropped.
    pub(crate) fn settle(&mut self) -> Vec<SectionLine> {
        let whole = |chosen: &[SectionLine], counter: &dyn TokenCounter| {
            counter.count_up_to(&write(chosen, self.form), self.limit)
        };
        if let Some(used) = whole(&self.chosen, self.counter) {
            self.used = used;
            return Vec::new();
        }
        let (mut fit, mut over) = (0, self.chosen.len());
        while fit + 1 < over {
            let middle = usize::midpoint(fit, over);
            let head = self.chosen.get(..middle).unwrap_or_default();
            if whole(head, self.counter).is_some() { fit = middle } else { over = middle }
        }
        let head = self.chosen.get(..fit).unwrap_or_default();
        self.used = whole(head, self.counter).unwrap_or(self.limit);
        self.chosen.split_off(fit)
    }

    /// What each list says of those of its lines that are among these, which did not fit.
    fn left_out(others: &[SectionLine]) -> impl Iterator<Item = (Section, LeftOut)> {
        Section::LISTS.into_iter().filter_map(|list| {
            let mut left = LeftOut::default();
            let of = others.iter().filter(|line| line.section == list);
            of.for_each(|line| left.add(line));
            (!left.is_empty()).then_some((list, left))
        })
    }

    /// The tokens by which each list says how many of its lines are among these, at most.
    pub(crate) fn more_tokens(&self, others: &[SectionLine]) -> usize {
        let each = Self::left_out(others).filter_map(|(list, left)| {
            let longest = left.forms().into_iter().next()?;
            self.cost(list, &longest, None, usize::MAX)
        });
        each.sum()
    }

    /// Says for each list how many of its lines did not fit, and their kinds, while there is room
    /// in `limit` tokens. `others` are the lines that did not fit.
    pub(crate) fn tell_more(&mut self, others: &[SectionLine], limit: usize) {
        self.limit = limit;
        for (list, left) in Self::left_out(others) {
            // That there were answers says nothing.
            if list.is_told_by_lines() && !self.begun.contains(&list) {
                continue;
            }
            let mut forms = left.forms().into_iter();
            let Some(text) = forms.next() else { continue };
            let mut line = SectionLine::new(list, None, text);
            line.shorter = forms.collect();
            self.fill(vec![line], limit);
        }
    }
}

/// The text of lines, in the order of their sections.
pub(crate) fn write(chosen: &[SectionLine], form: Form) -> String {
    let lines = written(chosen, form);
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    texts.join("\n")
}

/// The lines under their titles, each quoted: what somebody said cannot begin a line of ours.
pub(super) fn written(chosen: &[SectionLine], form: Form) -> Vec<LedgerLine> {
    let mut lines = Vec::new();
    for section in Section::ALL {
        let mut of: Vec<&SectionLine> =
            chosen.iter().filter(|line| line.section == section).collect();
        if of.is_empty() {
            continue;
        }
        if section == Section::Names {
            let names: Vec<&str> = of.iter().map(|line| line.text.as_str()).collect();
            let text = format!("{} {}", section.title(true), quoted_line(&names.join(" ")));
            lines.push(LedgerLine { frame: None, text });
            continue;
        }
        lines.push(LedgerLine { frame: None, text: section.title(form.is_certain).to_owned() });
        if section == Section::Told {
            of.sort_by_key(|line| line.frame);
        }
        // What is of most use is chosen first; it stands by its time.
        if section == Section::Calls {
            of.sort_by_key(|line| std::cmp::Reverse(line.frame));
        }
        lines.extend(of.into_iter().map(|line| {
            let text = if section.is_text() {
                quoted(&line.text)
            } else {
                format!("- {}", quoted_item(&line.text))
            };
            let frame = line.frame.filter(|_| form.with_frames || section.names_frames());
            let frame = frame.map(|frame| format!(" [{frame}]")).unwrap_or_default();
            LedgerLine { frame: line.frame, text: text + &frame }
        }));
    }
    lines
}
