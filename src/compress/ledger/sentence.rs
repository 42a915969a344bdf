//! Sentences of what was said: rules and decisions among them.

/// A longer sentence is a text.
const LONGEST: usize = 300;

/// A longer block of code is no part of a rule.
const LONGEST_CODE: usize = 200;

/// Words that make a sentence of the user a rule or a preference, in several languages.
const RULES: [&str; 59] = [
    "never",
    "must",
    "mustn't",
    "only",
    "don't",
    "do not",
    "dont",
    "always",
    "prefer",
    "avoid",
    "make sure",
    "exactly",
    "ensure",
    "should not",
    "shouldn't",
    "cannot",
    "can't",
    "instead of",
    "no more than",
    "at most",
    "at least",
    "stick to",
    "required",
    "forbidden",
    "not allowed",
    // German
    "nie",
    "niemals",
    "immer",
    "nur",
    "muss",
    "müssen",
    "nicht",
    "kein",
    "keine",
    "bitte kein",
    // French
    "jamais",
    "toujours",
    "seulement",
    "uniquement",
    "doit",
    "ne pas",
    "évite",
    // Spanish, Portuguese, Italian
    "nunca",
    "siempre",
    "solo",
    "sólo",
    "debe",
    "evita",
    "sempre",
    "somente",
    "mai",
    "deve",
    // Dutch, Polish, Russian
    "nooit",
    "altijd",
    "nigdy",
    "zawsze",
    "никогда",
    "всегда",
    "только",
];

/// The same where words are not parted by spaces.
const UNSPACED: [&str; 10] =
    ["必ず", "決して", "ないで", "だけ", "しないこと", "不要", "必须", "只能", "总是", "禁止"];

/// Words by which an agent tells what it decided and why.
const DECISIONS: [&str; 20] = [
    "decided",
    "decision",
    "instead",
    "because",
    "root cause",
    "the problem is",
    "the issue is",
    "turns out",
    "therefore",
    "chose",
    "choose",
    "i'll use",
    "i will use",
    "going with",
    "the fix",
    "conclude",
    "rather than",
    "approach",
    "the reason",
    "means that",
];

/// The sentences of a text that are rules, in order. Code is none, and neither is a question.
pub(crate) fn rules(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).filter(|sentence| {
        sentence.split_whitespace().nth(2).is_some() && holds(sentence, &RULES)
            || UNSPACED.iter().any(|word| sentence.contains(word))
    })
}

/// The sentences of a text that tell of a decision, in order.
pub(super) fn decisions(text: &str) -> impl Iterator<Item = &str> {
    sentences(text).filter(|sentence| {
        sentence.split_whitespace().nth(3).is_some() && holds(sentence, &DECISIONS)
    })
}

/// The sentences of a text outside of code, each at most [`LONGEST`] bytes.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = paragraphs(text).filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ") && !line.starts_with('\t')
    });
    prose.flat_map(sentences_of_line)
}

/// The lines of a text; a line that goes on in the next one is one with it, up to [`LONGEST`].
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.find('\n').unwrap_or(rest.len());
        while let (Some(line), Some(after)) = (rest.get(..end), rest.get(end + 1..)) {
            let next = after.find('\n').map_or(rest.len(), |at| end + 1 + at);
            if next > LONGEST || !goes_on(line, after) {
                break;
            }
            end = next;
        }
        let (paragraph, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after.strip_prefix('\n').unwrap_or(after);
        Some(paragraph)
    })
}

/// Whether a sentence that begins in `line` ends in the next one, by a small letter there.
fn goes_on(line: &str, next: &str) -> bool {
    let is_open =
        line.trim_end().ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ')'));
    is_open && !line.contains("```") && next.starts_with(char::is_lowercase)
}

fn sentences_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = without_mark(line);
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of_sentence(rest);
            let (sentence, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            rest = after.trim_start();
            let sentence = sentence.trim();
            if !sentence.is_empty() && sentence.len() <= LONGEST {
                return Some(sentence);
            }
        }
        None
    })
}

/// A line without the mark of a list, a heading or a quote.
fn without_mark(line: &str) -> &str {
    line.trim().trim_start_matches(['-', '*', '>', '#', ' ', '•'])
}

fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = matches!(c, '.' | '!' | '?') && next.is_some_and(char::is_whitespace)
            || matches!(c, '。' | '！' | '？');
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Whether one of the words stands in the text, whole.
fn holds(text: &str, words: &[&str]) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    words.iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let is_border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            is_border(lower.get(..at).and_then(|before| before.chars().next_back()))
                && is_border(lower.get(at + word.len()..).and_then(|after| after.chars().next()))
        })
    })
}

/// Words after "I don't" that tell of the user, and ask for nothing.
const STATES: [&str; 12] = [
    "have",
    "know",
    "remember",
    "recall",
    "see",
    "think",
    "believe",
    "understand",
    "mean",
    "mind",
    "need",
    "find",
];

/// Whether a sentence with the word of a rule tells of the user: `I don't know my number`.
pub(super) fn is_statement(rule: &str) -> bool {
    let lower = rule.to_lowercase().replace('’', "'");
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let said = words.get(at + 1..(at + 5).min(words.len())).unwrap_or_default();
        let denies =
            said.iter().any(|w| matches!(*w, "don't" | "dont" | "not" | "can't" | "cannot"));
        *word == "i" && denies && said.iter().any(|word| STATES.contains(word))
    })
}

/// A rule with the block of code that it ends with: `issue exactly this command:` and the command.
/// `rule` is a part of `text`.
pub(super) fn with_code(text: &str, rule: &str) -> String {
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

/// The words and numbers that say what a rule asks for.
fn orders(rule: &str) -> Vec<String> {
    let lower = rule.to_lowercase().replace('’', "'");
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let of_orders = words.filter(|word| {
        RULES.contains(word)
            || matches!(*word, "not" | "no")
            || word.contains(|c: char| c.is_ascii_digit())
    });
    let mut found: Vec<String> = of_orders.map(str::to_owned).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a later rule replaces an earlier one: both speak of the same, which is most of the
/// earlier one's words, and they ask for something else. What says the same again, or tells of the
/// user, replaces nothing.
pub(super) fn replaces(later: &str, earlier: &str) -> bool {
    if is_statement(later) || is_statement(earlier) || orders(later) == orders(earlier) {
        return false;
    }
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
        let telling = words.filter(|word| word.chars().count() > 3 && !RULES.contains(word));
        telling.map(str::to_owned).collect()
    };
    let (new, old) = (words(later), words(earlier));
    let shared = old.iter().filter(|word| new.contains(word)).count();
    old.len() > 1 && shared * 4 >= old.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_whole_sentences_outside_of_code() {
        let found = |text| rules(text).collect::<Vec<_>>();
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
    fn a_rule_about_the_same_replaces_the_earlier_one() {
        assert!(replaces("Always push to branch main.", "Never push to branch main."));
        assert!(replaces("Book at most 3 berths a day.", "Book at most 5 berths a day."));
        assert!(!replaces("Never use tabs in code.", "Never push to branch main."));
        assert!(!replaces("I don't know the number.", "I don't know the number yet."));
    }

    #[test]
    fn a_rule_keeps_the_code_that_it_ends_with() {
        let text = "Done? Run exactly this command:\n\n```sh\nmake tide\n```\nThen stop.";
        let rule = rules(text).next().unwrap();
        assert_eq!(rule, "Run exactly this command:");
        assert_eq!(with_code(text, rule), "Run exactly this command:\n\n```sh\nmake tide\n```");
        let other = "Never do this: x.\n```sh\nmake\n```";
        assert_eq!(with_code(other, rules(other).next().unwrap()), "Never do this: x.");
    }

    #[test]
    fn what_tells_of_the_user_is_told_from_rules() {
        assert!(is_statement("Sorry, I don’t have the number with me."));
        assert!(is_statement("I'm Ines, and I do not remember the berth."));
        assert!(!is_statement("I don't want insurance."));
        assert!(!is_statement("Don't book it."));
    }
}
