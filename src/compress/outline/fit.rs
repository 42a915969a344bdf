//! How much a working summary can say within its limit.

use std::collections::HashSet;

use super::{identifiers::identifiers, material::Material};
use crate::{
    Error, ErrorKind, Result,
    compress::ledger::{Filling, LEFT_OUT, Ledger, Section, SectionLine, take, write},
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
pub(super) fn fit(material: Material, limit: u64, counter: &dyn TokenCounter) -> Result<String> {
    let Material { mut lines, names, likely } = material;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut filling = Filling::new(limit, false, counter);
    let fallback: Vec<SectionLine> = lines.clone();
    let mut others = Vec::new();
    let fill = |filling: &mut Filling<'_>,
                lines: &mut Vec<SectionLine>,
                others: &mut Vec<SectionLine>,
                section: Section,
                share: usize| {
        others.extend(filling.fill(take(lines, section), share));
    };
    let title = 8;
    if limit <= SMALL {
        essentials(&mut filling, &mut lines, limit);
    }
    // What must stay has its share, a title aside: rules, files, the last error, the user's words.
    fill(&mut filling, &mut lines, &mut others, Section::Rules, limit / 4 + title);
    fill(&mut filling, &mut lines, &mut others, Section::Changed, limit / 8 + title);
    fill(&mut filling, &mut lines, &mut others, Section::LastError, limit / 4 + title);
    fill(&mut filling, &mut lines, &mut others, Section::Plan, limit / 4 + title);
    let but_last = filling.left().saturating_sub(limit / 8 + title);
    fill(&mut filling, &mut lines, &mut others, Section::First, (limit / 2).min(but_last));
    fill(&mut filling, &mut lines, &mut others, Section::Last, limit / 3);
    for section in Ledger::WORTH {
        let share = match section {
            Section::OpenErrors => limit / 24,
            Section::Speech => limit / 20,
            _ => 0,
        };
        fill(&mut filling, &mut lines, &mut others, section, share);
    }
    // State comes before what happened.
    let more = [
        (Section::First, limit / 4 + title),
        (Section::Last, limit / 8 + title),
        (Section::LastError, limit / 2),
        (Section::Plan, limit / 2),
        (Section::Changed, limit / 4),
        (Section::Rules, limit / 2),
    ];
    for (section, share) in more {
        let rest = filling.fill(take(&mut others, section), share);
        others.extend(rest);
    }
    // What was done, and the names that will be needed.
    let rest = filling.left();
    fill(&mut filling, &mut lines, &mut others, Section::Told, rest / 3);
    fill(&mut filling, &mut lines, &mut others, Section::Words, rest / 6);
    let before = filling.left();
    fill(&mut filling, &mut lines, &mut others, Section::Calls, rest / 3);
    // A long line is better than none.
    if before == filling.left()
        && let Some(at) = others.iter().position(|line| line.section == Section::Calls)
    {
        let line = others.remove(at);
        others.extend(filling.fill(vec![line], rest * 2 / 3));
    }
    fill(&mut filling, &mut lines, &mut others, Section::Decisions, rest / 32);
    let mut names = unshown(names, filling.chosen());
    let unlikely = names.split_off(likely.min(names.len()));
    // Names alone say nothing: what is told around them comes first.
    let more = filling.fill(names, limit);
    filling.settle();
    // What is left, for what is worth most.
    let order = [
        Section::Words,
        Section::Calls,
        Section::Told,
        Section::Changed,
        Section::Decisions,
        Section::OpenErrors,
        Section::Speech,
        Section::Read,
    ];
    for section in order {
        filling.fill(take(&mut others, section), limit);
    }
    filling.settle();
    filling.fill(more, limit / 4);
    filling.fill(unlikely, limit / 16);
    filling.settle();
    let text = write(filling.chosen(), false);
    if !text.is_empty() {
        return Ok(text);
    }
    shortest(&fallback, limit, counter)
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
fn unshown(names: Vec<(String, usize)>, lines: &[SectionLine]) -> Vec<SectionLine> {
    let text = write(lines, false);
    let shown: HashSet<&str> = identifiers(&text).map(|(range, _)| range.of(&text)).collect();
    let names = names.into_iter().filter(|(name, _)| !shown.contains(name.as_str()));
    let line = |(text, tokens)| SectionLine {
        section: Section::Names,
        frame: None,
        text,
        tokens: Some(tokens),
        shorter: Vec::new(),
        whole: 0,
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
        let material = || Material { lines: lines.clone(), names: Vec::new(), likely: 0 };
        let wide = fit(material(), 60, &Chars4).unwrap();
        assert!(steps.iter().all(|step| wide.contains(&format!("- [ ] {step}"))), "{wide}");
        let tight = fit(material(), 38, &Chars4).unwrap();
        assert!(steps.iter().all(|step| tight.contains(&format!("- {step}"))), "{tight}");
        assert!(tight.starts_with("Asked first:\nHey\nAsked last:\nGo on\n"), "{tight}");
        assert!(Chars4.count(&tight) <= 38, "{tight}");
    }
}
