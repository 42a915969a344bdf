//! How much a working summary can say within its limit.

use std::collections::HashSet;

use super::{identifiers::identifiers, material::Material};
use crate::{
    Error, ErrorKind, Result,
    summary::ledger::{Filling, Form, Ledger, LeftOut, Section, SectionLine, take, write},
    text::quote::{LEFT_OUT, quoted},
    tokens::TokenCounter,
};

/// A room of at most so many tokens is small.
const SMALL: usize = 80;

/// What a small room holds first where it takes at most a part of the room: one in so many.
const ESSENTIALS: [(Section, usize); 6] = [
    (Section::LastError, 1),
    (Section::Plan, 1),
    (Section::First, 4),
    (Section::Last, 8),
    (Section::Changed, 8),
    (Section::Rules, 4),
];

/// What is said of what nobody can read.
const NOTHING: &str = "Nothing to outline.";

/// The summary that says the most within the limit.
pub(super) fn fit(material: Material, limit: usize, counter: &dyn TokenCounter) -> Result<String> {
    let Material { lines, names, likely, of_block, is_certain } = material;
    let form = Form { with_frames: false, is_certain };
    let fallback: Vec<SectionLine> = lines.clone();
    // Lines that tell how many were left out before are told anew.
    let (before, lines): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| LeftOut::of_text(&line.text).is_some());
    let filling = Filling::new(limit, form, counter);
    let mut room = Room { filling, lines, others: before, limit, of_block, form };
    if limit <= SMALL {
        essentials(&mut room.filling, &mut room.lines, limit);
    }
    room.state();
    room.deeds();
    let mut names = unshown(names, room.filling.chosen(), form);
    let unlikely = names.split_off(likely.min(names.len()));
    room.rest(names, unlikely);
    let filling = room.filling;
    let text = write(filling.chosen(), form);
    if !text.is_empty() {
        return Ok(text);
    }
    shortest(&fallback, limit, counter)
}

/// A summary while it is filled.
struct Room<'c> {
    filling: Filling<'c>,
    /// What was not looked at yet.
    lines: Vec<SectionLine>,
    /// What did not fit so far.
    others: Vec<SectionLine>,
    limit: usize,
    of_block: bool,
    form: Form,
}

/// About the tokens of a title.
const TITLE: usize = 8;

impl Room<'_> {
    /// Chooses lines of a section in at most `share` tokens.
    fn fill(&mut self, section: Section, share: usize) {
        let rest = self.filling.fill(take(&mut self.lines, section), share);
        self.others.extend(rest);
    }

    /// Chooses lines of a section that did not fit before.
    fn fill_more(&mut self, section: Section, share: usize) {
        let lines = take(&mut self.others, section);
        let (before, lines): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| LeftOut::of_text(&line.text).is_some());
        let rest = self.filling.fill(lines, share);
        self.others.extend(before.into_iter().chain(rest));
    }

    /// What must stay has its share, a title aside: rules, files, the last error, what the user
    /// asked. State comes before what happened.
    fn state(&mut self) {
        let limit = self.limit;
        self.fill(Section::Rules, limit / 4 + TITLE);
        self.fill(Section::Changed, limit / 8 + TITLE);
        self.fill(Section::LastError, limit / 4 + TITLE);
        self.fill(Section::Plan, limit / 4 + TITLE);
        let but_last = self.filling.left().saturating_sub(limit / 8 + TITLE);
        self.fill(Section::First, (limit / 2).min(but_last));
        self.fill(Section::Last, limit / 3);
        // What happened is told later.
        let is_state = |of: &Section| !matches!(of, Section::Solved | Section::Decisions);
        for section in Ledger::WORTH.into_iter().filter(is_state) {
            let share = match section {
                Section::OpenErrors => limit / 24,
                Section::Speech => limit / 20,
                _ => 0,
            };
            self.fill(section, share);
        }
        let more = [
            (Section::First, limit / 4 + TITLE),
            (Section::Last, limit / 8 + TITLE),
            (Section::LastError, limit / 2),
            (Section::Plan, limit / 2),
            (Section::Changed, limit / 4),
            (Section::Rules, limit / 2),
        ];
        for (section, share) in more {
            self.fill_more(section, share);
        }
    }

    /// The other words of the user: all of them, each as long as the others allow; else the newest.
    fn words(&mut self, share: usize) {
        let words = take(&mut self.lines, Section::Words);
        let rest = self.filling.fill_evenly(words, share);
        let rest = self.filling.fill(rest, share);
        self.others.extend(rest);
    }

    /// What was said, done, answered and found. In a block the words of the user go before all else.
    fn deeds(&mut self) {
        if self.of_block {
            self.words(self.filling.left());
        }
        let rest = self.filling.left();
        self.fill(Section::Told, if self.of_block { rest * 2 / 3 } else { rest / 3 });
        self.fill_more(Section::Solved, rest / 4);
        self.fill(Section::Solved, rest / 4);
        self.words(rest / 6);
        let (answers, calls, decisions) = if self.of_block {
            (rest / 5, rest / 2, rest / 8)
        } else {
            (rest / 32, rest / 3, rest / 32)
        };
        self.fill(Section::Answers, answers);
        let before = self.filling.left();
        self.fill(Section::Calls, calls);
        // A long line is better than none.
        let is_call = |line: &SectionLine| {
            line.section == Section::Calls && LeftOut::of_text(&line.text).is_none()
        };
        if before == self.filling.left()
            && let Some(at) = self.others.iter().position(is_call)
        {
            let line = self.others.remove(at);
            self.others.extend(self.filling.fill(vec![line], rest * 2 / 3));
        }
        self.fill(Section::Decisions, decisions);
    }

    /// The tokens that are kept for what each list lacks.
    fn told_later(&self) -> usize {
        let most = self.limit / if self.of_block { 8 } else { 64 };
        self.filling.more_tokens(&self.others).min(most)
    }

    /// The names that will be needed, what else fits, and what each list lacks.
    fn rest(&mut self, names: Vec<SectionLine>, unlikely: Vec<SectionLine>) {
        let limit = self.limit;
        // Names alone say nothing: what is told around them comes first.
        let left = self.filling.left().saturating_sub(self.told_later());
        // A block is read for what was done: that is told at length before names.
        let share = if self.of_block { left / 16 } else { left };
        let names = self.filling.fill(names, share);
        self.others.extend(self.filling.settle());
        let order = [
            Section::Words,
            Section::Calls,
            Section::Answers,
            Section::Told,
            Section::Changed,
            Section::Decisions,
            Section::OpenErrors,
            Section::Speech,
            Section::Read,
        ];
        for section in order {
            let told = self.told_later();
            self.fill_more(section, self.filling.left().saturating_sub(told));
        }
        self.others.extend(self.filling.settle());
        for section in [Section::Answers, Section::Calls] {
            let told = self.told_later();
            self.filling.lengthen(section, self.filling.left().saturating_sub(told));
        }
        self.others.extend(self.filling.settle());
        // A name that a longer line shows need not stand by itself.
        let is_name = |line: &SectionLine| line.section == Section::Names;
        let others = self.filling.chosen().iter().filter(|line| !is_name(line));
        let text = write(&others.cloned().collect::<Vec<_>>(), self.form);
        let shown: HashSet<&str> = identifiers(&text).map(|(range, _)| range.of(&text)).collect();
        self.filling.retain(|line| !is_name(line) || !shown.contains(line.text.as_str()));
        let names: Vec<SectionLine> =
            names.into_iter().filter(|line| !shown.contains(line.text.as_str())).collect();
        self.others.extend(self.filling.settle());
        self.filling.tell_more(&self.others, limit);
        let share = if self.of_block { limit / 3 } else { limit / 4 };
        let names = self.filling.fill(names, share);
        let rest = self.filling.fill(unlikely, limit / 16);
        self.filling.tell_more(&names, limit);
        drop(rest);
        self.filling.settle();
    }
}

/// In a small room: what is open before all else, the last error and then the plan; then what fits
/// its share as a whole. Each is as long as what the others need allows.
fn essentials(filling: &mut Filling<'_>, lines: &mut Vec<SectionLine>, limit: usize) {
    let is_cut = |line: &SectionLine| line.text.contains(LEFT_OUT) || line.text.ends_with('…');
    let mut left = limit;
    let mut groups = Vec::new();
    for (section, part) in ESSENTIALS {
        let group = take(lines, section);
        let is_request = matches!(section, Section::First | Section::Last);
        let tokens: usize = group.iter().map(|line| filling.count(&line.text)).sum();
        let is_asked =
            part == 1 || tokens <= limit / part && !(is_request && group.iter().any(is_cut));
        let least = filling.least(&group);
        if group.is_empty() || !is_asked || least > left {
            lines.extend(group);
            continue;
        }
        left -= least;
        groups.push((group, least));
    }
    let mut needed: usize = groups.iter().map(|(_, least)| least).sum();
    for (group, least) in groups {
        needed -= least;
        lines.extend(filling.fill_evenly(group, filling.left().saturating_sub(needed)));
    }
}

/// The names that the lines do not show.
fn unshown(names: Vec<(String, usize)>, lines: &[SectionLine], form: Form) -> Vec<SectionLine> {
    let text = write(lines, form);
    let shown: HashSet<&str> = identifiers(&text).map(|(range, _)| range.of(&text)).collect();
    let names = names.into_iter().filter(|(name, _)| !shown.contains(name.as_str()));
    let line = |(text, tokens)| {
        let mut line = SectionLine::new(Section::Names, None, text);
        line.tokens = Some(tokens);
        line
    };
    names.map(line).collect()
}

/// The beginning of the first line, where no line fits.
fn shortest(lines: &[SectionLine], limit: usize, counter: &dyn TokenCounter) -> Result<String> {
    let first = lines.iter().map(|line| line.text.trim()).find(|text| !text.is_empty());
    let text = first.unwrap_or(NOTHING);
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).take(200).collect();
    ends.push(text.len().min(2_000));
    let fitting = ends.iter().rev().find_map(|end| {
        let head = text.get(..*end)?.trim_end();
        let said = if *end < text.len() { format!("{head}…") } else { head.to_owned() };
        let said = quoted(&said);
        counter.count_up_to(&said, limit).map(|_| said)
    });
    fitting.filter(|said| said.chars().any(char::is_alphanumeric)).ok_or_else(|| {
        let message = format!("{limit} tokens are too few to outline anything");
        Error::new(ErrorKind::Limit, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::FrameSeq, tokens::Chars4};

    #[test]
    fn what_was_done_is_told_briefly_before_anything_is_told_at_length() {
        let call = |at: u64, brief: &str, long: &str| {
            let mut line = SectionLine::new(Section::Calls, FrameSeq::new(at), long);
            (line.shorter, line.spare) = (vec![brief.to_owned()], 1);
            line
        };
        let long = [
            "look → QB7 and much that is to be known of it",
            "sound → QB8, 4 m, sand and stones, and a wreck at its northern end",
        ];
        let lines = vec![call(2, "look → QB7", long[0]), call(1, "sound → QB8", long[1])];
        let material = || Material {
            lines: lines.clone(),
            names: Vec::new(),
            likely: 0,
            of_block: true,
            is_certain: true,
        };
        let tight = fit(material(), 18, &Chars4).unwrap();
        assert_eq!(tight, "Done, newest first:\n- look → QB7\n- sound → QB8");
        let wide = fit(material(), 60, &Chars4).unwrap();
        assert_eq!(wide, format!("Done, newest first:\n- {}\n- {}", long[0], long[1]));
    }

    #[test]
    fn a_small_room_has_a_place_for_each_of_the_essentials() {
        let line = |section, text: &str| SectionLine::new(section, FrameSeq::new(1), text);
        let step = |text: &str| {
            let mut step = line(Section::Plan, &format!("[ ] {text}"));
            (step.shorter, step.whole) = (vec![text.to_owned(), "…".to_owned()], 1);
            step
        };
        let steps = ["Look at the berths", "Ask the pilot about it", "Book the berth"];
        let mut lines = vec![line(Section::First, "Hey"), line(Section::Last, "Go on")];
        lines.extend(steps.map(step));
        let material = || Material {
            lines: lines.clone(),
            names: Vec::new(),
            likely: 0,
            of_block: false,
            is_certain: true,
        };
        let wide = fit(material(), 60, &Chars4).unwrap();
        assert!(steps.iter().all(|step| wide.contains(&format!("- [ ] {step}"))), "{wide}");
        let tight = fit(material(), 38, &Chars4).unwrap();
        assert!(steps.iter().all(|step| tight.contains(&format!("- {step}"))), "{tight}");
        assert!(tight.starts_with("Asked first:\n Hey\nAsked last:\n Go on\n"), "{tight}");
        assert!(Chars4.count(&tight) <= 38, "{tight}");
    }
}
