//! Orders about the way of work that no word like *never* heads: `Use tabs, not spaces`, `No force
//! pushes, ever`, `Tests have to stay offline`.

use super::{
    clause::{begins, behind_any, without_openers},
    topic::names,
    words,
};
use crate::text::{
    holds,
    words::{
        convention::{
            ALLS, ASKING, BEING, DEEDS, GATES, LASTING, NEEDS, NONES, OBLIGES, ONES, PEOPLE, SIDES,
            STAYS, TELLING, TOLD, USES,
        },
        standing::BINDING,
    },
};

/// Whether a sentence of the user in small letters says how work is done here. Questions are told apart
/// elsewhere.
pub(super) fn is_convention(lower: &str) -> bool {
    let rest = without_openers(lower);
    // `For the whole task: every …`
    let bound = behind_any(rest, &BINDING).next().map(|(_, rest)| without_openers(rest));
    let rest = bound.unwrap_or(rest);
    chooses(rest) || forbids(rest) || obliges(rest) || asks_first(lower)
}

/// `before deleting a file, ask me`
fn asks_first(lower: &str) -> bool {
    let parts = behind_any(lower, &GATES).next().and_then(|(_, of)| of.split_once(','));
    parts.is_some_and(|(_, order)| begins(order.trim(), &ASKING) && words(order).len() < 5)
}

/// `use tabs, not spaces`
fn chooses(rest: &str) -> bool {
    let used = behind_any(rest, &USES).next().map(|(_, used)| used);
    // `Write it over the old one` and `Write it to a.txt, not b.txt` are said of one thing.
    let is_one = |other: &str| words(other).first().is_some_and(|word| ONES.contains(word));
    let names_file = |used: &str| names(used).iter().any(|name| name.contains('.'));
    used.filter(|used| !names_file(used)).is_some_and(|used| {
        let mut others = SIDES.iter().filter_map(|side| Some((side, used.split_once(side)?.1)));
        others.any(|(side, other)| !is_one(other) || *side != " over " && !is_one(used))
    })
}

/// `no force pushes, ever`
fn forbids(rest: &str) -> bool {
    let Some((_, what)) = behind_any(rest, &NONES).next() else { return false };
    // `No, …` is an answer, and so is `No please wait`.
    let Some((_, lasting)) = what.trim_start_matches('\'').trim_start().split_once(' ') else {
        return false;
    };
    let all = words(what);
    let is_told = all.first().is_some_and(|noun| TOLD.contains(noun));
    let mut others = all.iter().filter(|word| !LASTING.contains(*word)).take(4).skip(1);
    let tells = |word: &&str| TELLING.contains(word) || word.len() > 4 && word.ends_with("ed");
    // `No force pushes.`
    let is_deed = all.last().is_some_and(|of| DEEDS.iter().any(|end| of.ends_with(end)))
        && all.len() < 4
        && !all.iter().any(|word| TOLD.contains(word));
    let is_lasting = what.starts_with([' ', '\'']) && (holds(lasting, &LASTING) || is_deed);
    is_lasting && !is_told && !others.any(tells)
}

/// `tests have to stay offline`, `every function needs a test`
fn obliges(rest: &str) -> bool {
    let all = words(rest);
    let subject = all.first().copied().unwrap_or_default();
    if ALLS.contains(&subject) {
        return all.get(2..6).or(all.get(2..)).is_some_and(|said| holds(&said.join(" "), &NEEDS));
    }
    let text = all.join(" ");
    if !holds(&text, &OBLIGES) {
        return false;
    }
    let (before, asked) =
        OBLIGES.iter().find_map(|word| text.split_once(&format!(" {word} "))).unwrap_or_default();
    let is_one = ONES.contains(&subject);
    let stays = behind_any(asked, &STAYS).next().map(|(word, _)| word);
    // What has to be done once is a task: `tests have to be updated`.
    let is_done = words(asked).iter().skip(1).take(2).any(|word| word.ends_with("ed"));
    stays.is_some_and(|word| {
        if BEING.contains(&word) {
            !PEOPLE.contains(&subject) && words(before).len() < 5
        } else {
            !is_one && !is_done && words(before).len() < 4
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::steps::OwnWords;

    fn is_rule(text: &str) -> bool {
        OwnWords::of(text).rules().next().is_some()
    }

    #[test]
    fn what_holds_for_all_work_is_a_rule() {
        let missed: Vec<_> = RULES.lines().filter(|text| !is_rule(text)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn tasks_questions_reports_and_feedback_are_none() {
        let taken: Vec<_> = OTHERS.lines().filter(|text| is_rule(text)).collect();
        assert!(taken.is_empty(), "{taken:#?}");
    }

    const RULES: &str = include_str!("../../../tests/fixtures/standing-rules.txt");
    const OTHERS: &str = include_str!("../../../tests/fixtures/no-standing-rules.txt");
}
