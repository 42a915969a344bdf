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
    // In a small room what is open comes before all else: the last error, then the plan.
    if limit <= SMALL {
        let share = limit * 3 / 4;
        fill(&mut filling, &mut lines, &mut others, Section::LastError, share);
        fill(&mut filling, &mut lines, &mut others, Section::Plan, limit);
        fill(&mut filling, &mut lines, &mut others, Section::Rules, limit / 4 + title);
        // A request that is whole in its share stays whole.
        for (section, share) in [(Section::First, limit / 4), (Section::Last, limit / 8)] {
            let whole =
                |line: &SectionLine| line.section == section && !line.text.contains(LEFT_OUT);
            if let Some(at) = lines.iter().position(whole) {
                let mut line = lines.remove(at);
                let shorter = std::mem::take(&mut line.shorter);
                let rest = filling.fill(vec![line], share + title).into_iter();
                lines.extend(rest.map(|line| SectionLine { shorter: shorter.clone(), ..line }));
            }
        }
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
            Section::Speech => limit / 10,
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
        (Section::Rules, limit / 4),
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
    fill(&mut filling, &mut lines, &mut others, Section::Decisions, rest / 20);
    let mut names = unshown(names, filling.chosen());
    let unlikely = names.split_off(likely.min(names.len()));
    // Names alone say nothing: what is told around them comes first.
    let more = filling.fill(names, limit / 2);
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
