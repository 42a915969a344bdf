//! The user's own words below a text that is pasted without an end.

use super::{
    line_kind::{chat_turn, has, is_chat_head, is_mail_head, is_prose, is_rule_off, report},
    page::is_page_end,
};
use crate::steps::sentence::{lower, rule, sentences, words};
use crate::text::{
    ends_sentence, holds, mentions,
    words::{
        correction::REVOKING,
        material::{
            ABOVE, ARTICLES, BACK_UNSPACED, COMPARING, FAR, FOOTERS, HERE, NEAR, OTHERS, OURS,
            PLACES, PLURALS, RETELLING, SELVES, SOURCES, SPEECH, TALKS, THEIRS, WHATS,
        },
        replies::CLOSINGS,
        rule::ONLYS,
    },
};

/// Longer paragraphs are a text.
const LONGEST: usize = 1_000;

/// The user says so many paragraphs at most behind a text.
const MOST: usize = 2;

/// A log of a chat that is pasted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// The user leads to it: a last paragraph that is no rule is the user's.
    Led,
    First,
}

/// Where the user's own words begin behind a text that is pasted, if they do: the last paragraphs of
/// prose that speak of the text, or that follow what ends it. What the text itself ends with does
/// neither: `Let me know. Anna`. O(n).
pub(super) fn closing(pasted: &str, log: Option<Log>) -> Option<usize> {
    let (mut from, mut end) = (None, pasted.len());
    for place in 0..MOST {
        let rest = pasted.get(..end).unwrap_or_default();
        let Some((start, before)) = last_paragraph(rest) else { break };
        let paragraph = rest.get(start..).unwrap_or_default().trim();
        let last = before.trim_end().lines().next_back().unwrap_or_default();
        let is_ruled = is_rule_off(last) && mentions(&lower(paragraph), &OURS);
        if !is_plain_prose(paragraph) {
            break;
        }
        let is_of_log = || {
            log == Some(Log::Led)
                && place == 0
                && goes_on(paragraph)
                && !sentences(paragraph).any(rule::is_rule)
        };
        if is_ruled || is_page_end(last) || points_back(paragraph, log) || is_of_log() {
            from = Some(start);
        } else if !goes_on(paragraph) {
            break;
        }
        end = before.len();
    }
    from
}

/// Where the last paragraph of a text begins, and what stands before it; `None` where nothing does.
fn last_paragraph(text: &str) -> Option<(usize, &str)> {
    let text = text.trim_end();
    let mut at = text.len();
    for line in text.split_inclusive('\n').rev() {
        let is_end = line.trim().is_empty() || is_rule_off(line) || is_page_end(line);
        if is_end && at < text.len() {
            return text.get(..at).map(|before| (at, before));
        }
        at -= line.len();
    }
    None
}

/// Whether a paragraph is prose that nobody logged or listed.
fn is_plain_prose(paragraph: &str) -> bool {
    let is_line = |line: &str| {
        let is_listed = line.starts_with(['-', '*', '#', '>', '|', '<']);
        !is_listed && chat_turn(line) == 0 && !is_mail_head(line) && !is_chat_head(line)
    };
    paragraph.len() <= LONGEST
        && paragraph.lines().next().is_some_and(is_prose)
        && paragraph.lines().map(str::trim).all(is_line)
        && !mentions(&lower(paragraph), &FOOTERS)
}

/// Whether a paragraph may stand behind one of the user's: its sentences end, and it does not close a
/// letter.
fn goes_on(paragraph: &str) -> bool {
    paragraph.chars().next_back().is_some_and(|c| ends_sentence(c, Some(' ')))
        && !holds(&lower(paragraph), &CLOSINGS)
}

/// Whether a paragraph speaks of the text above it: `That mail came today`, `ignore its plan`, `what
/// they talk about`.
fn points_back(paragraph: &str, log: Option<Log>) -> bool {
    sentences(paragraph).map(lower).any(|sentence| {
        let words = words(&sentence);
        let pairs = |first: &[&str], is_next: &dyn Fn(&str) -> bool| {
            let mut pairs = words.windows(2).filter_map(|pair| pair.split_first());
            pairs.any(|(word, next)| has(first, word) && next.iter().any(|next| is_next(next)))
        };
        // `that mail`, `that long mail`
        let names = |first: &[&str], nouns: &[&[&str]]| {
            let is_named = |at: usize| {
                let named = words.get(at + 1..words.len().min(at + 3)).unwrap_or_default();
                nouns.iter().any(|list| mentions(&named.join(" "), list))
            };
            (0..words.len())
                .any(|at| words.get(at).is_some_and(|of| has(first, of)) && is_named(at))
        };
        // `That was a long mail`
        let begins = |first: &[&str], nouns: &[&[&str]]| {
            let begin = words.get(1..words.len().min(6)).unwrap_or_default().join(" ");
            words.first().is_some_and(|of| has(first, of))
                && nouns.iter().any(|list| mentions(&begin, list))
        };
        // `from the mail`: in a log anyone may say so.
        let is_in_it = || {
            log.is_none()
                && words.windows(3).any(|of| {
                    let &[from, the, noun] = of else { return false };
                    (has(&COMPARING, from) || has(&PLACES, from))
                        && (has(&ARTICLES, the) && mentions(noun, &TALKS)
                            || !from.is_ascii() && mentions(the, &TALKS))
                })
        };
        let is_set_aside = || {
            holds(&sentence, &REVOKING)
                && (mentions(&sentence, &TALKS) || mentions(&sentence, &SOURCES))
        };
        // `what Bob asks for`
        let is_wanted = || {
            words.windows(3).any(|of| {
                let &[what, who, verb] = of else { return false };
                has(&WHATS, what) && !has(&SELVES, who) && who != "you" && says(verb)
            })
        };
        let is_shown = || report(&sentence).is_some() && names(&ARTICLES, &[&SOURCES, &TALKS]);
        let is_here =
            || HERE.iter().any(|here| behind(&sentence, here)) && holds(&sentence, &ONLYS);
        !holds(&sentence, &CLOSINGS)
            && (mentions(&sentence, &ABOVE)
                || BACK_UNSPACED.iter().any(|word| sentence.contains(word))
                || pairs(&OTHERS, &says)
                || pairs(&REVOKING, &|word| has(&THEIRS, word))
                || names(&FAR, &[&SOURCES, &TALKS])
                || names(&NEAR, &[&TALKS])
                || begins(&FAR, &[&SOURCES, &TALKS])
                || begins(&NEAR, &[&TALKS])
                || is_in_it()
                || is_set_aside()
                || is_wanted()
                || is_shown()
                || is_here())
    })
}

/// Whether somebody else says or wants something by a verb.
fn says(word: &str) -> bool {
    [&SPEECH[..], &PLURALS, &RETELLING].iter().any(|list| has(list, word))
}

fn behind(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}
