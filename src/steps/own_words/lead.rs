//! Lines of a user's message that lead to what somebody else wrote.

use std::ops::Range;

use super::line_kind::{LONGEST_LEAD, has};
use crate::steps::sentence::{lower, rule, sentences, words};
use crate::text::{
    mentions,
    words::material::{
        ACTING, ARTICLES, ASKING, AUTHORED, COMPARING, COMPARING_UNSPACED, HANDLING, LABELS, LISTS,
        PASTED, PASTING, PLACES, PLURALS, POINTING, PRESENTING, RETELLING, SCOPES, SELVES, SHOWING,
        SOURCES, SPEECH, TALKS, WANTED, WISHING,
    },
};

/// A longer text below a line that asks for something may be pasted.
const LONGEST_OWN: usize = 300;

/// Whether a line points at what stands below it: `Summarise the following text.`
pub(super) fn points_below(line: &str) -> bool {
    let lower = line.to_lowercase();
    ["below", "following", "as follows"].iter().any(|word| lower.contains(word))
}

/// Whether a line says that a text below it is pasted: `Here is the summary of Bob. Take the names from
/// it.`
pub(super) fn presents(line: &str) -> bool {
    line.len() <= LONGEST_LEAD
        && sentences(line).map(lower).any(|sentence| {
            let is_shown = PRESENTING.iter().any(|start| sentence.starts_with(start));
            mentions(&sentence, &PASTING)
                || is_shown && is_source(&sentence) && !mentions(&sentence, &LISTS)
        })
}

/// What stands behind the label of something else in a line: `the wiki: …`.
pub(super) fn labelled(line: &str) -> Option<Range<usize>> {
    let colon = line.find(": ").or_else(|| line.find('：'))?;
    let label = line.get(..colon)?;
    let is_label = !label.contains("**") && leads_to_paste(&format!("{label}:"));
    is_label.then_some(colon..line.len())
}

/// Whether a line leads to what is pasted below it: `here is what Bob sent:`, `the log:`.
pub(super) fn leads_to_paste(line: &str) -> bool {
    if line.len() > LONGEST_LEAD {
        return false;
    }
    let lower = line.rsplit(". ").next().unwrap_or(line).to_lowercase();
    let words = words(&lower);
    let speaks_of = |list: &[&str]| words.iter().any(|word| has(list, word));
    let last = words.last().copied().unwrap_or_default();
    let is_noun = words.len() == 1 || speaks_of(&ARTICLES);
    let is_pasted = is_noun && (has(&PASTED, last) || has(&LABELS, last));
    let points = line.ends_with([':', '：']) && speaks_of(&POINTING) && speaks_of(&HANDLING);
    let is_scope = words.first().is_some_and(|first| has(&SCOPES, first));
    let presents = PRESENTING.iter().any(|start| lower.starts_with(start));
    !speaks_of(&WANTED) && !is_scope && (is_pasted || points || presents) || names_source(&lower)
}

/// Whether the last phrase of a line in small letters says where what is below is from, whatever the
/// line asks for: `add it like on this page:`, `mend it with what Bob sent:`. What the user lists is
/// the user's: `work according to these rules:`.
fn names_source(lower: &str) -> bool {
    let Some(line) = lower.trim_end().strip_suffix([':', '：']) else { return false };
    let clause = line.rsplit([',', ';', '，', '、']).next().unwrap_or(line);
    let is_source = |phrase: &str| is_source(phrase) && !mentions(phrase, &LISTS);
    if COMPARING_UNSPACED.iter().any(|word| clause.contains(word)) {
        return is_source(clause);
    }
    let words = words(clause);
    // `the flag that she describes on this site`
    let is_retold = |word: &&str| has(&RETELLING, word) && word.ends_with(['s', 'd']);
    if words.iter().skip(1).any(is_retold) && is_source(clause) {
        return true;
    }
    words.iter().enumerate().filter(|(_, word)| has(&COMPARING, word)).any(|(at, _)| {
        let phrase = words.get(at + 1..).unwrap_or_default();
        // `as shown on the page`
        let is_done = |word: &&str| ["ed", "wn", "en"].iter().any(|end| word.ends_with(end));
        let place = phrase.iter().position(|word| !is_done(word));
        let place = place.filter(|place| *place < 2).and_then(|place| phrase.get(place));
        let is_place = place.is_some_and(|word| has(&PLACES, word)) && phrase.len() > 1;
        let is_told = phrase.len() > 1
            && phrase.iter().any(|word| tells(word))
            && !phrase.iter().any(|word| has(&SELVES, word) || *word == "you");
        // `I would like the app to …`
        let before = at.checked_sub(1).and_then(|before| words.get(before)).copied();
        let is_wish = before.is_some_and(|word| has(&SELVES, word) || has(&WISHING, word));
        let text = phrase.join(" ");
        !is_wish
            && !mentions(&text, &LISTS)
            && (is_place || is_told || phrase.len() > 1 && is_source(&text))
    })
}

/// Whether a text in small letters speaks of a text that somebody else wrote.
pub(super) fn is_source(lower: &str) -> bool {
    [&SOURCES[..], &TALKS, &PASTED, &AUTHORED].iter().any(|list| mentions(lower, list))
}

/// Whether somebody else speaks or writes by a verb.
fn tells(word: &str) -> bool {
    [&SPEECH[..], &SHOWING, &PLURALS, &ACTING].iter().any(|list| has(list, word))
}

/// Whether what stands below a line that asks for something may be pasted, though nothing says so:
/// a text, and no list. The user's own text is seldom longer.
pub(super) fn may_ask(line: &str, below: &str) -> bool {
    let text = below.trim();
    let first = text.lines().next().unwrap_or_default();
    let is_listed = first.starts_with(|c: char| "-*•+#<>|`".contains(c) || c.is_ascii_digit());
    let lower = line.to_lowercase();
    line.len() <= LONGEST_LEAD
        && line.ends_with([':', '：'])
        && below.lines().next().is_some_and(|line| line.trim().is_empty())
        && text.len() > LONGEST_OWN
        && !is_listed
        && (mentions(&lower, &WANTED) || mentions(&lower, &ASKING))
        && !mentions(&lower, &LISTS)
        && !rule::is_rule(first)
}

/// Whether what stands below a line may be somebody else's, though no word of it says so: `The wiki
/// lists these:`, `notes.txt:`. The rules of most users stand in a list, and a text that is pasted
/// does not.
pub(super) fn may_lead(line: &str, next: &str) -> bool {
    if line.len() > LONGEST_LEAD || !line.ends_with([':', '：']) {
        return false;
    }
    // `Leave the rest alone. Ticket:`
    let before = line.rfind(". ").map_or(0, |end| end + 2);
    let line = line.get(before..).unwrap_or(line);
    let lower = line.to_lowercase();
    let words = words(&lower);
    let first = words.first().copied().unwrap_or_default();
    let is_label = before > 0 && words.len() < 3 && !mentions(&lower, &LISTS);
    let is_wanted =
        |word: &str| if word.is_ascii() { words.contains(&word) } else { lower.contains(word) };
    let is_file = !line.contains(' ') && line.contains('.') || line.ends_with("::");
    let is_item = next.trim_start().starts_with(|c: char| "-*•+".contains(c) || c.is_ascii_digit());
    let is_name = words.len() > 1 || !line.is_ascii();
    let is_weak = has(&ARTICLES, first) || is_file || (is_name || is_label) && !is_item;
    is_weak
        && !WANTED.into_iter().any(is_wanted)
        && !has(&SCOPES, first)
        && !has(&ASKING, first)
        && !rule::is_rule(line)
}
