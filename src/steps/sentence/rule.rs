//! Rules of the user: what the agent is to do or not to do, and what the user prefers.

use super::{constraint::is_constraint, convention::is_convention, is_question, lower, words};
use crate::text::{
    holds,
    words::rule::{
        DENIALS, INTERJECTIONS, IRREGULAR_PAST, OPINIONS, PERSONS, RULES, STATES, UNSPACED, WEAK,
    },
};

/// A longer block of code is no part of a rule.
const LONGEST_CODE: usize = 200;

const THINGS: [&str; 3] = ["it", "this", "that"];

/// Whether a sentence of the user is a rule.
pub(in crate::steps) fn is_rule(sentence: &str) -> bool {
    let is_asking = is_headed(sentence) || is_constraint(sentence) || is_convention(sentence);
    is_asking && !is_question(sentence) && !is_statement(sentence)
}

/// Whether a sentence holds the word of a rule.
pub(crate) fn is_headed(sentence: &str) -> bool {
    let is_worded = sentence.split_whitespace().nth(2).is_some() && holds(&lower(sentence), &RULES);
    is_worded || UNSPACED.iter().any(|word| sentence.contains(word))
}

/// Whether a sentence with the word of a rule tells of something, and asks for nothing: `I don't
/// know my number`, `It never came`, `There are only two`.
fn is_statement(rule: &str) -> bool {
    let lower = lower(rule);
    let words = words(&lower);
    is_denied(&words) || is_past(&words) || is_opinion(&lower, &words) || is_report(&words)
}

fn is_denied(words: &[&str]) -> bool {
    let of_subject = words.iter().enumerate().any(|(at, word)| {
        let said = words.get(at + 1..(at + 6).min(words.len())).unwrap_or_default();
        let denial = said.iter().position(|word| DENIALS.contains(word));
        let is_state = |word: &&str| STATES.contains(word);
        // In German the verb stands before what denies it.
        let is_told = |denial: usize| {
            said.get(denial + 1..).unwrap_or_default().iter().take(3).any(is_state)
                || *word == "ich" && said.first().is_some_and(is_state)
        };
        PERSONS.contains(word) && denial.is_some_and(is_told)
    });
    let mut bare = words.iter().skip_while(|word| INTERJECTIONS.contains(word));
    let denies = |word: &&str| DENIALS.contains(word) && !matches!(*word, "never" | "not");
    of_subject
        || bare.next().is_some_and(denies)
            && bare.next().is_some_and(|word| {
                matches!(*word, "know" | "remember" | "recall" | "have" | "understand")
            })
}

/// `It never came`, `I only got one`, `I must have lost it`.
fn is_past(words: &[&str]) -> bool {
    let past = |word: &str| {
        IRREGULAR_PAST.contains(&word)
            || word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed") && word != "embed"
    };
    let is_subject = |word: &&str| PERSONS.contains(word) || THINGS.contains(word);
    words.windows(3).any(|of| {
        let &[before, word, after] = of else { return false };
        match word {
            "never" => past(after) && !matches!(before, "and" | "or" | "but" | "then"),
            "only" | "always" => past(after) && is_subject(&before),
            _ => false,
        }
    }) || words.windows(4).any(|of| {
        let &[who, modal, have, done] = of else { return false };
        (modal, have) == ("must", "have") && past(done) && is_subject(&who)
    }) || words.windows(2).any(|of| {
        let &[before, word] = of else { return false };
        word == "never" && (before.ends_with("'ve") || matches!(before, "have" | "has" | "had"))
    })
}

/// `I read that there shouldn't be a fee`, `I was told that I must not pay`: what somebody else says.
fn is_report(words: &[&str]) -> bool {
    let asks = || words.iter().any(|word| matches!(*word, "please" | "never" | "don't"));
    let is_told = matches!(
        words,
        ["i" | "we", "read" | "heard" | "understood", "that" | "on" | "in", ..]
            | ["i" | "we", "was" | "were", "told" | "informed" | "under", ..]
            | ["my", "understanding", ..]
    );
    is_told && !asks()
}

/// What is thought or found to be so, in words that describe as often as they ask.
fn is_opinion(lower: &str, words: &[&str]) -> bool {
    let begins = match words {
        ["i" | "we", verb, ..] => OPINIONS.contains(verb),
        ["there", "is" | "are" | "was" | "were", ..] => true,
        [first, ..] => matches!(*first, "there's" | "it's" | "that's"),
        [] => false,
    };
    let strong = |word: &&&str| !WEAK.contains(*word);
    let is_strong = || RULES.iter().filter(strong).any(|word| holds(lower, &[word]));
    begins && !holds(lower, &["allowed", "permitted"]) && !is_strong()
}

/// A rule with the block of code that it ends with: `issue exactly this command:` and the command.
/// `rule` is a part of `text`.
pub(in crate::steps) fn with_code(text: &str, rule: &str) -> String {
    let whole = || {
        let from = (rule.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let after = text.get(from + rule.len()..)?;
        let block = after.trim_start().strip_prefix("```")?;
        let length = block.find("```").filter(|length| *length <= LONGEST_CODE)?;
        let end = text.len() - block.len() + length + 3;
        text.get(from..end)
    };
    let whole = rule.ends_with(':').then(whole).flatten();
    whole.unwrap_or(rule).to_owned()
}

/// So many blanks stand in what of a rule leads to its command.
const LEADING: usize = 3;

/// Whether a text holds a rule: as it is, or its command with the words that lead to it.
pub(crate) fn is_said(text: &str, rule: &str) -> bool {
    let command = rule.find("```").and_then(|at| {
        let lead = rule.get(..at)?.trim_end();
        let from = lead.rmatch_indices(' ').nth(LEADING).map_or(0, |(at, _)| at + 1);
        rule.get(from..)
    });
    text.contains(rule) || command.is_some_and(|command| text.contains(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::OwnWords;

    fn rules(text: &str) -> Vec<&str> {
        OwnWords::of(text).rules().map(|(_, rule)| rule).collect()
    }

    #[test]
    fn rules_are_whole_sentences_outside_of_code() {
        let found = rules;
        assert_eq!(
            found("Move it. Never push to main! Thanks.\n- Always run `make test` first"),
            ["Never push to main!", "Always run `make test` first"]
        );
        assert_eq!(found("```\nyou must not see this\n```\n    must be code here"), [""; 0]);
        assert_eq!(found("Bitte niemals direkt pushen."), ["Bitte niemals direkt pushen."]);
        assert_eq!(
            found("mainには絶対にpushしないでください。次へ"),
            ["mainには絶対にpushしないでください。"]
        );
        assert_eq!(found("The mustard is nice here."), [""; 0]);
        assert_eq!(
            found("When it is done and you\nmust stop, say so.\nNever wait for it"),
            ["When it is done and you\nmust stop, say so.", "Never wait for it"]
        );
    }

    #[test]
    fn what_tells_of_the_user_and_what_asks_is_no_rule() {
        for text in [
            "Sorry, I don’t have the number with me.",
            "I'm Ines, and I do not remember the berth.",
            "I can't find my booking anywhere.",
            "Don't know the number, sorry.",
            "It never came to the harbour.",
            "I've never moored there before.",
            "I only got two of the ropes.",
            "I must have lost the ticket.",
            "I read that there shouldn't be any fee for it.",
            "I was told that I must not pay for the pilot.",
            "There are only two berths left.",
            "I think this is exactly the same quay.",
            "Must I pay for the night?",
            "Ich weiß die Nummer leider nicht.",
        ] {
            assert!(!is_rule(text), "{text}");
        }
        for text in [
            "I don't want insurance.",
            "I don't need a pilot.",
            "Don't book it.",
            "I can't pay more than 200.",
            "I only moor at night.",
            "I think we should never push to main.",
            "Use only signed papers.",
            "There must be two ropes.",
            "Ich möchte keine Nachtfahrt.",
        ] {
            assert!(is_rule(text), "{text}");
        }
    }

    #[test]
    fn a_rule_keeps_the_code_that_it_ends_with() {
        let text = "Done? Run exactly this command:\n\n```sh\nmake tide\n```\nThen stop.";
        let rule = rules(text)[0];
        assert_eq!(rule, "Run exactly this command:");
        assert_eq!(with_code(text, rule), "Run exactly this command:\n\n```sh\nmake tide\n```");
        let other = "Never do this: x.\n```sh\nmake\n```";
        assert_eq!(with_code(other, rules(other)[0]), "Never do this: x.");
    }

    #[test]
    fn a_rule_whose_command_is_quoted_is_not_said_again() {
        let rule = "When all is done, end with exactly this command: ```sh make tide ```";
        assert!(is_said("x […] end with exactly this command: ```sh make tide ``` […]", rule));
        assert!(!is_said("x […] end with exactly this command: ```sh make flood ```", rule));
        assert!(!is_said("make tide", rule));
        assert!(is_said("Yes. Never push. No.", "Never push."));
    }
}
