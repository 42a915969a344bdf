//! Rules of the user: what the agent is to do or not to do, and what the user prefers.

use super::{
    clause::{around, clauses, is_third_person, obliges, states, without_idioms, without_openers},
    constraint::is_constraint,
    convention::is_convention,
    is_question, lower,
    standing::is_standing,
    statement::{
        is_account, is_contrasted, is_fact, is_guess, is_statement, is_task, is_told_unspaced,
    },
};
use crate::text::{
    has_foreign, holds,
    words::{
        clause::{AHEAD, FACTS, OBLIGING, RELATIVES, WHYS},
        rule::{ADVERBS, AUXILIARIES, FIRST, ONLYS, PERSONS, RULES, UNABLE, UNSPACED, WEAK},
        standing::JOINS,
    },
};

/// A longer block of code is no part of a rule.
const LONGEST_CODE: usize = 200;

/// Whether a sentence of the user is a rule.
pub(in crate::steps) fn is_rule(sentence: &str) -> bool {
    let lower = &lower(sentence);
    let is_shaped = || {
        (is_constraint(sentence, lower) || is_convention(lower))
            && !is_statement(lower)
            && !is_account(lower)
            || is_standing(lower)
    };
    (is_headed(lower) || is_shaped()) && !is_question(sentence)
}

/// Whether a clause of a sentence in small letters demands something with the word of a rule.
fn is_headed(lower: &str) -> bool {
    if has_foreign(lower, &UNSPACED) {
        let lower = without_idioms(lower);
        let holds = has_foreign(&lower, &UNSPACED);
        return holds && !states(&lower) && !is_told_unspaced(&lower);
    }
    // Most sentences hold no such word.
    holds(lower, &RULES)
        && lower.split_whitespace().nth(2).is_some()
        && !is_contrasted(lower)
        && !is_guess(lower)
        && clauses(lower).iter().any(|clause| demands(clause) && !is_statement(clause))
}

/// Whether the word of a rule demands something where it stands in a clause: `Never push`, `files
/// must stay`. It tells of something else: `the build always fails`, `a loop that never ends`.
fn demands(whole: &str) -> bool {
    let whole = whole.trim_start();
    let clause = without_openers(whole);
    RULES.iter().filter_map(|word| Some((word, around(clause, word)?))).any(|(word, of)| {
        let (before, after) = of;
        let is_obliging = OBLIGING.contains(word) || obliges(&before.join(" "));
        let is = |word: Option<&&str>, list: &[&str]| word.is_some_and(|word| list.contains(word));
        let (last, next) = (before.last(), after.first());
        let is_person = |word: Option<&&str>| is(word, &PERSONS) || is(word, &["you"]);
        let is_ahead = holds(&before.join(" "), &AHEAD);
        let is_finite = is(next, &AUXILIARIES) || next.is_some_and(|next| is_third_person(next));
        // `We cannot use it` demands, and `Cannot open it` does not.
        let is_bare = whole.starts_with(clause);
        match () {
            () if is(last, &RELATIVES) || before.iter().any(|word| WHYS.contains(word)) => false,
            () if is_task(word, &before, &after) => false,
            () if ONLYS.contains(word) && is(last, &FACTS) => false,
            // `Ya no falla nunca`
            () if before.len() < 4 && !is_ahead && before.iter().any(|of| FACTS.contains(of)) => {
                is_obliging
            }
            () if before.is_empty() && is(next, &JOINS) && !ONLYS.contains(word) => false,
            () if ADVERBS.contains(word) && is_finite => is_obliging,
            () if before.is_empty() => !(WEAK.contains(word) && is_bare || is_fact(word, &after)),
            () if is(last, &["to"]) && !is_ahead => is_obliging,
            () if UNABLE.contains(word) => is_person(last),
            () if FIRST.contains(word) => {
                is_obliging || is_ahead || is_person(last) || is_person(before.first())
            }
            () if is(last, &AUXILIARIES) => is_obliging || is(next, &AHEAD) || before.len() > 2,
            () => true,
        }
    })
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
pub(crate) fn holds_rule(text: &str, rule: &str) -> bool {
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
    fn what_is_asked_for_once_is_no_rule() {
        for text in [
            "Write only the gate for now.",
            "With this chart in mind, write only the gate.",
            "Avec ce plan en tête, écris seulement la porte.",
            "Ajoute uniquement la lampe.",
            "Schreib jetzt nur das Tor.",
            "Escribe solo la puerta ahora.",
            "Scrivi solo la porta.",
            "Напиши только ворота.",
        ] {
            assert!(!is_rule(text), "{text}");
        }
        for text in [
            "Utilise seulement la corde neuve.",
            "Schreib nur auf Deutsch.",
            "Пиши только на русском.",
        ] {
            assert!(is_rule(text), "{text}");
        }
    }

    #[test]
    fn rules_are_known_in_the_languages_of_the_lists() {
        for text in [
            "لا تعدل أبدا ملفات المرفأ.",
            "شغّل دائما الاختبارات قبل الإرسال.",
            "Liman dosyalarını asla değiştirme.",
            "Göndermeden önce her zaman testleri çalıştır.",
            "Không bao giờ sửa bến tàu.",
            "Luôn chạy kiểm thử trước khi gửi.",
            "Ніколи не змінюй причал без мене.",
            "Завжди запускай тести перед комітом.",
            "घाट की फ़ाइलें कभी मत बदलो।",
            "भेजने से पहले हमेशा टेस्ट चलाओ।",
            "提交之前一定要运行测试。",
        ] {
            assert!(is_rule(text), "{text}");
        }
        assert_eq!(rules("घाट ठीक करो। नाव को कभी मत छुओ। धन्यवाद।"), ["नाव को कभी मत छुओ।"]);
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
        assert!(holds_rule("x […] end with exactly this command: ```sh make tide ``` […]", rule));
        assert!(!holds_rule("x […] end with exactly this command: ```sh make flood ```", rule));
        assert!(!holds_rule("make tide", rule));
        assert!(holds_rule("Yes. Never push. No.", "Never push."));
    }
}
