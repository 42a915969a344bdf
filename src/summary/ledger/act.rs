//! Calls with what came of them, as lines: what is of use first, repeats counted, calls of one tool
//! side by side.

use std::collections::{HashMap, HashSet};

use super::{
    answer::Answer,
    section::{Section, SectionLine},
};
use crate::{
    id::FrameSeq,
    steps::{Action, CallKind, Class, Touch},
    text::{common_prefix, shortened},
};

/// The bytes of what came of a call, in each of its forms.
const FORMS: [usize; 4] = [480, 220, USUAL, 40];

/// The bytes of what came of a call where others want to be told, too.
const USUAL: usize = 100;

/// The bytes of what came of each of many calls, in each of their forms.
const EACH: [usize; 4] = [300, 160, 90, 40];

/// The number of the form in [`EACH`] where others want to be told, too.
const USUAL_EACH: usize = 2;

/// So many calls of one tool stand in a line of their own.
const FEW: usize = 2;

/// So many calls stand side by side in one line.
const MOST: usize = 4;

/// What stands between the values of an outcome.
const CELL: &str = ", ";

/// The bytes of what one of many calls is about.
const SHORT: usize = 160;

/// A folder of so many bytes is told once.
const LONG_FOLDER: usize = 12;

/// So many of the last calls may have begun what goes on.
const NEWEST: usize = 2;

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSubject<'s> {
    pub(super) kind: CallKind,
    pub(super) text: &'s str,
    /// The values of its arguments alone.
    pub(super) values: &'s str,
    /// The files that it touches.
    pub(super) files: &'s [(Touch, String)],
}

impl<'s> CallSubject<'s> {
    pub(super) fn of(action: &'s Action) -> Self {
        let (text, values, files) = (&action.subject, &action.values, &action.touches);
        Self { kind: action.kind(), text, values, files }
    }
}

/// A call with what came of it.
#[derive(Clone, Debug)]
pub(super) struct Act {
    frame: FrameSeq,
    tool: String,
    text: String,
    values: String,
    kind: CallKind,
    outcome: Option<Outcome>,
    count: u32,
}

#[derive(Clone, Debug)]
struct Outcome {
    class: Class,
    /// The longest first, in the sizes of [`FORMS`].
    forms: Vec<String>,
    /// So many of them are longer than usual.
    spare: usize,
    /// In the sizes of [`EACH`].
    each: Vec<String>,
    has_value: bool,
    is_empty: bool,
}

impl Act {
    pub(super) fn new(frame: FrameSeq, tool: &str, of: CallSubject<'_>) -> Self {
        Self {
            frame,
            tool: tool.to_owned(),
            text: format!("{tool}({})", of.text),
            values: shortened(of.values, SHORT),
            kind: of.kind,
            outcome: None,
            count: 1,
        }
    }

    pub(super) fn take_outcome(&mut self, text: &str, class: Class, ids: &[String]) {
        let outcome = if class == Class::Running {
            let running = vec![format!("running: {}", ids.join(" "))];
            Outcome {
                class,
                each: vec![running.first().cloned().unwrap_or_default(); EACH.len()],
                forms: running,
                spare: 0,
                has_value: true,
                is_empty: false,
            }
        } else {
            let answer = Answer::of(text, class, &self.text);
            let mut forms = FORMS.map(|most| answer.brief(most)).to_vec();
            forms.dedup();
            let usual = answer.brief(USUAL);
            let spare = forms.iter().position(|form| *form == usual).unwrap_or_default();
            let each = EACH.map(|most| answer.brief(most)).to_vec();
            let is_empty = forms.first().is_some_and(|form| form == "no output");
            Outcome { class, forms, spare, each, has_value: answer.has_value(), is_empty }
        };
        self.outcome = Some(outcome);
    }

    fn class(&self) -> Option<Class> {
        self.outcome.as_ref().map(|outcome| outcome.class)
    }

    /// Whether nothing came of it but that it was made: a thought, an empty plan.
    fn is_idle(&self) -> bool {
        let is_empty = self.outcome.as_ref().is_some_and(|outcome| outcome.is_empty);
        match self.kind {
            CallKind::Plan => !self.class().is_some_and(Class::is_failure),
            CallKind::Other => is_empty,
            CallKind::Command | CallKind::File => false,
        }
    }

    fn count(&self) -> String {
        if self.count > 1 { format!(" ×{}", self.count) } else { String::new() }
    }

    /// The line in its forms, the longest first.
    fn line(&self) -> SectionLine {
        let head = format!("{}{}", self.text, self.count());
        let forms = self.outcome.iter().flat_map(|outcome| &outcome.forms);
        let mut forms = forms.map(|form| format!("{head} → {form}"));
        let first = forms.next();
        let mut line =
            SectionLine::new(Section::Calls, self.frame, first.unwrap_or_else(|| head.clone()));
        line.shorter = forms.collect();
        line.spare = self.outcome.as_ref().map_or(0, |outcome| outcome.spare);
        line
    }

    /// What came of it in the form of that number, to stand beside others of its tool.
    fn outcome_beside(&self, form: usize) -> Option<&str> {
        let outcome = self.outcome.as_ref().filter(|of| !of.is_empty)?;
        let each = outcome.each.get(form).map(String::as_str);
        each.filter(|text| outcome.has_value || !Answer::is_size(text))
    }

    /// What stands for it beside others of its tool, without what they all came to.
    fn beside(&self, form: usize, common: &[&str]) -> String {
        let head = format!("{}{}", self.values, self.count());
        let Some(outcome) = self.outcome_beside(form) else { return head };
        let cells = outcome.split(CELL).filter(|cell| !common.contains(cell));
        let own = cells.collect::<Vec<_>>().join(CELL);
        if own.is_empty() { format!("{head} → {outcome}") } else { format!("{head} → {own}") }
    }

    fn names(&self, used: &HashSet<String>) -> bool {
        let texts = [Some(&self.text), self.outcome.as_ref().and_then(|of| of.forms.first())];
        texts.into_iter().flatten().flat_map(|text| words(text)).any(|word| used.contains(word))
    }

    fn may_stand_beside(&self) -> bool {
        matches!(self.kind, CallKind::File | CallKind::Other)
            && !self.values.is_empty()
            && self.class().is_none_or(|class| class == Class::Done)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | ',' | ';');
    text.split(is_around).map(|word| word.trim_matches([':', '.', '"', '\'', '`']))
}

/// The calls as lines. Calls that concern a name in `used` come first, idle calls last; within each
/// group the newest come first.
pub(super) fn lines(calls: &[Act], used: &HashSet<String>) -> Vec<SectionLine> {
    let acts = counted(calls);
    let mut of_tool: HashMap<&str, Vec<&Act>> = HashMap::new();
    for act in acts.iter().filter(|act| act.may_stand_beside() && !act.is_idle()) {
        of_tool.entry(&act.tool).or_default().push(act);
    }
    of_tool.retain(|_, acts| acts.len() > FEW);
    let mut lines: Vec<(u8, SectionLine)> = Vec::new();
    for act in &acts {
        let is_single = !act.may_stand_beside() || !of_tool.contains_key(act.tool.as_str());
        if is_single || act.is_idle() {
            let rank = if act.is_idle() { 2 } else { u8::from(!act.names(used)) };
            lines.push((rank, act.line()));
        } else if let Some(first) = of_tool.get(act.tool.as_str())
            && first.first().is_some_and(|first| std::ptr::eq(*first, act))
        {
            for some in first.chunks(MOST) {
                let is_used = some.iter().any(|act| act.names(used));
                lines.extend(beside(some).map(|line| (u8::from(!is_used), line)));
            }
        }
    }
    lines.sort_by_key(|(rank, line)| (*rank, std::cmp::Reverse(line.frame)));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The acts, newest first. Calls with the same text and class are counted as one. A call that
/// begins a mode is kept only among the newest two.
fn counted(calls: &[Act]) -> Vec<Act> {
    let mut acts: Vec<Act> = Vec::new();
    let mut by_text: HashMap<(&str, Option<Class>), usize> = HashMap::new();
    for (age, act) in calls.iter().rev().enumerate() {
        if age >= NEWEST && begins_mode(act) {
            continue;
        }
        let next = acts.len();
        let at = *by_text.entry((&act.text, act.class())).or_insert(next);
        match acts.get_mut(at) {
            Some(acts) => acts.count += 1,
            None => acts.push(act.clone()),
        }
    }
    acts
}

/// Whether a call begins what another one ends, and says nothing else: `enter_dry_dock()`.
fn begins_mode(act: &Act) -> bool {
    act.values.is_empty() && act.tool.to_ascii_lowercase().starts_with("enter")
}

/// The parts of the outcomes that stand in each of them, where there are three at least.
fn common_cells<'a>(acts: &[&'a Act], form: usize) -> Vec<&'a str> {
    let outcomes: Vec<&str> = acts.iter().filter_map(|act| act.outcome_beside(form)).collect();
    let [first, others @ ..] = outcomes.as_slice() else { return Vec::new() };
    let is_common = |cell: &&str| others.iter().all(|of| of.split(CELL).any(|one| one == *cell));
    if others.len() < FEW { Vec::new() } else { first.split(CELL).filter(is_common).collect() }
}

/// The folder with its last slash that all the files are in, where that is long.
fn common_folder<'a>(acts: &[&'a Act]) -> Option<&'a str> {
    let mut paths = acts.iter().map(|act| act.values.rsplit(' ').next().unwrap_or_default());
    let first = paths.next()?;
    let same = paths.try_fold(first.len(), |same, path| {
        let same = first.get(..same)?;
        Some(common_prefix(same, path))
    })?;
    let folder = first.get(..first.get(..same)?.rfind('/')? + 1)?;
    (folder.len() >= LONG_FOLDER).then_some(folder)
}

/// Calls of one tool in one line, in its forms.
fn beside(acts: &[&Act]) -> Option<SectionLine> {
    let first = acts.first()?;
    let count: u32 = acts.iter().map(|act| act.count).sum();
    let folder = common_folder(acts);
    let place = folder.map(|folder| format!(" in {folder}")).unwrap_or_default();
    let head = format!("{} ×{count}{place}", first.tool);
    let without =
        |text: String| folder.map_or_else(|| text.clone(), |folder| text.replace(folder, ""));
    let with = |form: usize| {
        let common = common_cells(acts, form);
        let each: Vec<String> = acts.iter().map(|act| without(act.beside(form, &common))).collect();
        format!("{head}: {}", each.join("; "))
    };
    let mut line = SectionLine::new(Section::Calls, first.frame, with(0));
    let each: Vec<String> =
        acts.iter().map(|act| without(format!("{}{}", act.values, act.count()))).collect();
    let usual = with(USUAL_EACH);
    line.shorter = vec![with(1), usual.clone(), with(3), format!("{head}: {}", each.join("; "))];
    line.shorter.dedup();
    line.shorter.retain(|form| *form != line.text);
    let shorter = line.shorter.iter().position(|form| *form == usual);
    line.spare = shorter.map_or(0, |at| at + 1);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(at: u64, tool: &str, subject: &str, values: &str, outcome: &str) -> Act {
        let kind = CallKind::Other;
        let of = CallSubject { kind, text: subject, values, files: &[] };
        let mut act = Act::new(FrameSeq::new(at), tool, of);
        act.take_outcome(outcome, Class::Done, &[]);
        act
    }

    fn texts(calls: &[Act], used: &[&str]) -> Vec<String> {
        let used = used.iter().map(|name| (*name).to_owned()).collect();
        lines(calls, &used).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn calls_of_one_tool_stand_side_by_side_with_what_tells_them_apart() {
        let find =
            |at, quay: &str, found: &str| act(at, "find", &format!("quay: {quay}"), quay, found);
        let calls = [
            find(1, "north", r#"[{"id":"QB7","depth":4}]"#),
            find(2, "south", r#"[{"id":"QB8","depth":5}]"#),
            find(3, "east", "[]"),
        ];
        let line = lines(&calls, &HashSet::new()).remove(0);
        assert_eq!(line.text, "find ×3: east → []; south → QB8, depth 5; north → QB7, depth 4");
        assert_eq!(line.shorter.last().map(String::as_str), Some("find ×3: east; south; north"));
        assert_eq!(texts(&calls[..2], &[]).len(), 2);
    }

    #[test]
    fn the_folder_of_files_is_told_once() {
        let read = |at, name: &str| {
            let path = format!("/quay/north/{name}");
            act(at, "read", &path, &path, &"the tide is low, and the gate is shut\n".repeat(20))
        };
        let calls = [read(1, "a.rs"), read(2, "lock/b.rs"), read(3, "a.rs"), read(4, "c.rs")];
        assert_eq!(texts(&calls, &[]), ["read ×4 in /quay/north/: c.rs; a.rs ×2; lock/b.rs"]);
    }

    #[test]
    fn what_the_newest_messages_use_comes_first_and_thoughts_last() {
        let calls = [
            act(1, "book", "berth: QB7", "QB7", "booked"),
            act(2, "think", "thought: it is late", "it is late", ""),
            act(3, "look", "at: sea", "sea", "calm"),
        ];
        let said = texts(&calls, &["QB7"]);
        assert_eq!(
            said,
            [
                "book(berth: QB7) → booked",
                "look(at: sea) → calm",
                "think(thought: it is late) → no output"
            ]
        );
    }

    #[test]
    fn that_a_mode_began_is_told_while_it_may_go_on() {
        let enter = || act(1, "EnterDock", "", "", "a\nb\nc\nd");
        let look = |at| act(at, "look", "at: sea", "sea", "calm");
        assert_eq!(texts(&[enter()], &[]), ["EnterDock() → a b c d"]);
        assert_eq!(texts(&[enter(), look(2), look(3)], &[]), ["look(at: sea) ×2 → calm"]);
    }
}
