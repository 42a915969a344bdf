//! Orders that say how long they hold, or what they depend on: `From now on, …`, `Every time you …,
//! …`, `Remember: …`, `not without my consent`.

use super::{
    clause::{begins, behind, behind_any, states, without_idioms, without_openers},
    statement::{is_account, is_told_unspaced},
    words,
};
use crate::text::{
    has_foreign, holds,
    words::{
        clause::{FACTS, LASTS, PAST},
        rule::PERSONS,
        standing::{
            BINDING, BINDING_UNSPACED, EVERY, EVERY_UNSPACED, EVERY_VERB, FOR_EACH, LASTS_UNSPACED,
            LATER, MAYBES, NO_STOPS, NOBODY, ORDERING_UNSPACED, REMEMBER, STOPS, WISHES, YOURS,
        },
    },
};

/// Whether a sentence in small letters asks for something that holds from now on.
pub(super) fn is_standing(lower: &str) -> bool {
    let lower = without_idioms(lower);
    let rest = without_openers(&lower);
    if is_account(&lower) {
        return begins(rest, &BINDING) || begins(rest, &NOBODY) && binds(rest);
    }
    let is_long = words(rest).len() > 2;
    is_standing_unspaced(rest)
        || remembers(rest)
        || is_long && (lasts(rest) || repeats(rest) || stops(rest) || binds(rest))
}

/// `no new crates without my consent`
fn binds(rest: &str) -> bool {
    holds(rest, &BINDING) && !holds(rest, &PAST)
}

/// `from now on, answer in French`, `answer in French from now on`
fn lasts(rest: &str) -> bool {
    if !holds(rest, &LASTS) {
        return false;
    }
    let mut places = LASTS.iter().filter_map(|word| rest.split_once(word));
    places.any(|(before, after)| {
        let is_whole =
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        let asked = after.trim_start_matches(|c: char| !c.is_alphanumeric());
        let tells = |word: &&str| FACTS.contains(word) || PAST.contains(word);
        let is_fact = words(asked).first().is_some_and(tells) || holds(rest, &MAYBES);
        is_whole && !is_fact && (!before.is_empty() || !asked.is_empty())
    })
}

/// `remember: vendor/ is read-only for you`
fn remembers(rest: &str) -> bool {
    behind_any(rest, &REMEMBER).next().is_some_and(|(_, told)| {
        let told = told.trim_start();
        let is_marked = told.starts_with([':', '：', '，', '、', ',']);
        let told = told.trim_start_matches(|c: char| !c.is_alphanumeric());
        let first = words(told).first().copied().unwrap_or_default();
        !told.is_empty() && is_marked && !PERSONS.contains(&first)
    })
}

/// `every time you change a berth, draw it too`, `for every berth I want a chart`
fn repeats(rest: &str) -> bool {
    // Other languages say with the verb who does it.
    let is_second = |word: &&str| word.len() > 3 && word.ends_with(['s', 'i', 'r']);
    let speaks_to_you = |said: &&str| words(said).iter().take(2).any(|word| YOURS.contains(word));
    let after = |(_, said)| said;
    let of_you = behind_any(rest, &EVERY).chain(behind_any(rest, &EVERY_VERB)).map(after);
    let of_verb = behind_any(rest, &EVERY_VERB).map(after);
    let of_verb = of_verb.filter(|said| words(said).first().is_some_and(is_second));
    let order = of_you.filter(speaks_to_you).chain(of_verb).next();
    let order = order.and_then(|said| said.split_once(','));
    let is_order = order.is_some_and(|(_, order)| {
        let order = without_openers(order);
        let first = words(order).first().copied().unwrap_or_default();
        !states(order) && !PERSONS.contains(&first) && !FACTS.contains(&first)
    });
    let mut each = behind_any(rest, &FOR_EACH).take(1);
    is_order || each.any(|(_, said)| holds(said, &WISHES))
}

/// `stop using tabs`, and not `stop running it`
fn stops(rest: &str) -> bool {
    let what = behind_any(rest, &STOPS).next().map(|(_, what)| words(what)).unwrap_or_default();
    let is_english = behind(rest, "stop").is_some();
    what.first().is_some_and(|verb| {
        !NO_STOPS.contains(verb) && (!is_english || verb.len() > 4 && verb.ends_with("ing"))
    })
}

/// The same where words are not parted by spaces.
fn is_standing_unspaced(rest: &str) -> bool {
    if rest.is_ascii() {
        return false;
    }
    let contains = |list: &[&str]| has_foreign(rest, list);
    let clauses = rest.split(['，', ',', '、', '：', ' ']).chain([rest]);
    let begins = |clause: &str| LASTS_UNSPACED.iter().any(|word| clause.starts_with(word));
    let repeats = contains(&EVERY_UNSPACED) && contains(&ORDERING_UNSPACED);
    contains(&BINDING_UNSPACED)
        || (repeats || clauses.into_iter().any(begins))
            && !contains(&LATER)
            && !is_told_unspaced(rest)
}
