//! What the user said: the first message, the last instruction, what was said between, and rules.

use std::collections::HashSet;

use super::{ChunkType, PartRef, Passage, Role};

/// Words that make a sentence of the user a rule.
const RULE_WORDS: [&str; 12] = [
    "never",
    "must",
    "only",
    "don't",
    "do not",
    "always",
    "prefer",
    "avoid",
    "must not",
    "mustn't",
    "make sure",
    "should not",
];

/// What programs put into the user's messages begins with these.
const OF_PROGRAMS: [&str; 16] = [
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<returncode>",
    "<turn_aborted>",
    "<bash-input>",
    "<bash-stdout>",
    "<task-notification>",
    "<permissions",
    "# AGENTS.md",
    "Caveat: The messages below",
    "[Request interrupted",
];

/// What the user said in each of these messages, in order; empty texts are left out. O(text).
///
/// In a session where commands stand in what the agent says (`is_text_only`), what speaks as the user
/// after the agent's first word is what a program answered.
pub(crate) fn words(messages: &[Passage], is_text_only: bool) -> Vec<String> {
    let agent_spoke = |message: &Passage| message.role == Role::Assistant;
    let first_answer = messages.iter().position(agent_spoke).unwrap_or(messages.len());
    let end = if is_text_only { first_answer } else { messages.len() };
    let said = messages.get(..end).unwrap_or_default().iter();
    said.filter(|message| message.role == Role::User).filter_map(words_of).collect()
}

fn words_of(message: &Passage) -> Option<String> {
    let chunks = message.snapshot.chunks();
    let spoken = chunks.filter(|chunk| {
        matches!(chunk.part(), PartRef::Text)
            && chunk.chunk_type() == Some(ChunkType::EVENT.as_str())
            && chunk.role().unwrap_or(message.role) == Role::User
    });
    let texts: Vec<&str> = spoken.map(|chunk| chunk.content().trim()).collect();
    let is_of_user = |text: &&str| !text.is_empty() && !is_of_program(text);
    let texts: Vec<&str> = texts.into_iter().filter(is_of_user).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Whether a program said a text in the user's place: output of a command, a reminder, a notice.
pub(crate) fn is_of_program(text: &str) -> bool {
    OF_PROGRAMS.iter().any(|start| text.trim_start().starts_with(start))
}

/// The runs of one to five words of a text, for many questions about it.
#[derive(Debug)]
pub(crate) struct Runs([HashSet<String>; 5]);

impl Runs {
    /// The runs of a text. O(words).
    pub(crate) fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        Self(std::array::from_fn(|index| runs(&words, index + 1)))
    }

    /// How many of the runs of five words of `said` are among them, and how many there are. Of fewer
    /// words there is one run. O(words of `said`).
    pub(crate) fn found(&self, said: &str) -> (usize, usize) {
        let words: Vec<&str> = said.split_whitespace().collect();
        let size = words.len().min(5);
        let Some(there) = size.checked_sub(1).and_then(|index| self.0.get(index)) else {
            return (0, 0);
        };
        let wanted = runs(&words, size);
        (wanted.intersection(there).count(), wanted.len())
    }
}

fn runs(words: &[&str], size: usize) -> HashSet<String> {
    words.windows(size).map(|words| words.join(" ")).collect()
}

/// What tells that somebody does not know or have something, who asks for nothing.
const INABILITIES: [&str; 12] = [
    "i don't have",
    "i don't remember",
    "i don't recall",
    "i don't know",
    "i don't see",
    "i don't think",
    "i do not have",
    "i do not remember",
    "i do not know",
    "i still don't have",
    "i can't remember",
    "i can't find",
];

/// The sentences of the user's words that are rules: at most 300 bytes each, outside of code. What
/// asks is none, and neither is what tells that the user does not know or have something. Linear in
/// the texts, but for O(n²) comparisons of the rules that are found.
pub(crate) fn rules(said: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in said {
        let mut is_code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code || line.starts_with("    ") || line.starts_with('\t') {
                continue;
            }
            for sentence in sentences(line) {
                let lower = format!(" {} ", sentence.to_lowercase().replace('’', "'"));
                let is_word = |word: &str| {
                    lower.match_indices(word).any(|(at, _)| {
                        let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
                        let (before, after) = (lower.get(..at), lower.get(at + word.len()..));
                        ends(before.and_then(|before| before.chars().next_back()))
                            && ends(after.and_then(|after| after.chars().next()))
                    })
                };
                // What the user means to do.
                let is_promise = is_word("i'll make sure") || is_word("i will make sure");
                let asks_nothing = is_promise
                    || sentence.ends_with('?')
                    || INABILITIES.iter().any(|says| is_word(says));
                let is_rule = sentence.len() <= 300
                    && !asks_nothing
                    && sentence.split_whitespace().count() > 2
                    && RULE_WORDS.iter().any(|word| is_word(word));
                if is_rule && !found.contains(&sentence) {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

/// The sentences of a line, without marks of lists before them.
fn sentences(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches(['-', '*', '>', '#', ' ']);
    let mut found = Vec::new();
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let follows = line.get(end..).is_some_and(|rest| rest.starts_with(' '));
        if matches!(c, '.' | '!' | '?') && follows {
            found.push(line.get(from..end).unwrap_or_default().trim().to_owned());
            from = end;
        }
    }
    found.push(line.get(from..).unwrap_or_default().trim().to_owned());
    found.retain(|sentence| !sentence.is_empty());
    found
}
