//! What a line of a user's message is, where it is not the user's: data, a line of a log, what
//! somebody else says.

use std::ops::Range;

use crate::steps::sentence::words;
use crate::text::ends_sentence;
pub(super) use crate::text::is_among as has;
use crate::text::words::label::{AGENTS, USERS};
use crate::text::words::material::{
    ACCORDING, ACTING, ARTICLES, ASKING, AUTHORED, CONDITIONS, LABELS, LEVELS, MAIL, OF_THE_USER,
    PASSIVE, PLURALS, SELVES, SHOWING, SPEECH, UNSPACED, WANTED,
};

/// A longer line leads to nothing.
pub(super) const LONGEST_LEAD: usize = 400;

/// A name of a speaker or of a source has fewer bytes.
const LONGEST_NAME: usize = 60;

/// A line of more bytes is a text, in which nobody is looked for who says something.
const LONGEST_REPORT: usize = 8_000;

/// Whether a line reads like JSON, or sets a value.
pub(super) fn is_data(line: &str) -> bool {
    let second = line.chars().nth(1);
    let is_set = |(name, _): (&str, &str)| {
        !name.trim_end().is_empty() && !name.trim_end().contains(char::is_whitespace)
    };
    match line.chars().next() {
        Some('{' | '}' | ']') => true,
        Some('[') => second.is_none_or(|next| "{[\"]".contains(next)),
        Some('"') => line.contains("\":"),
        _ => line.split_once('=').is_some_and(is_set),
    }
}

/// Whether a line is one of a log or of a listing, or has the label of a program or of a speaker.
pub(super) fn is_logged(line: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|of| of.is_ascii_digit());
    let is_stamp = |word: &str| {
        let word = word.trim_matches(|c: char| "[](){}<>|:,;".contains(c));
        let parts: Vec<&str> = word.split(['-', ':', '/', 'T']).collect();
        let is_in_brackets = parts.len() > 1 && line.starts_with('[');
        let is_long = parts.len() > 2 || is_in_brackets;
        has(&LEVELS, word) || is_long && parts.iter().take(3).all(|part| is_digits(part))
    };
    let first = line.split_whitespace().next().unwrap_or_default();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len()
        && (number.starts_with(['\t', ':']) || number.trim_start().starts_with(['|', '→', '│']));
    // `a.md-12-`, `sql>`
    let is_found = first.contains(['.', '/']) && first.split(['-', ':']).skip(1).any(is_digits)
        || first.len() > 1 && first.ends_with('>') && !first.starts_with('<');
    if is_numbered || is_found || line.split_whitespace().take(4).any(is_stamp) {
        return true;
    }
    let Some((label, _)) = line.split_once([':', '：']).filter(|(_, said)| !said.is_empty())
    else {
        return false;
    };
    let label = label.to_lowercase();
    let last = label.rsplit(' ').next().unwrap_or_default();
    let last = last.trim_matches(['[', ']']);
    ["error", "exception", "warning", "err!", "failed"].iter().any(|end| last.ends_with(end))
        || !label.contains(' ') && (has(&LABELS, last) || label.contains(['/', '.']))
}

/// Whether a line has what programs print and people seldom write: numbers and signs.
fn is_printed(line: &str) -> bool {
    line.contains(|c: char| c.is_ascii_digit() || "=[]{}|/\\<>_".contains(c))
}

/// Whether a line is an item of a list: `- a`, `2. b`.
pub(super) fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•', '+'])
        || number.len() < line.len() && number.starts_with(['.', ')'])
}

/// Whether a line parts a text from the next: `---`.
pub(super) fn is_rule_off(line: &str) -> bool {
    let line = line.trim();
    line.len() > 2 && line.chars().all(|c| "-=_*~—–".contains(c))
}

/// Whether a sentence ends in a line, or what it says leads to more.
pub(super) fn has_sentence(line: &str) -> bool {
    let last = line.trim_end().chars().next_back();
    last.is_some_and(|c| matches!(c, ':' | '：') || ends_sentence(c, Some(' ')))
        || [". ", "! ", "? "].iter().any(|end| line.contains(end))
}

/// Whether a paragraph is output of a program: numbers or signs in each line, and neither sentences
/// nor items of a list.
pub(super) fn is_output(paragraph: &str) -> bool {
    let is_listed = |line: &str| is_item(line) || line.starts_with('#');
    let is_of_output = |line: &str| is_printed(line) && !has_sentence(line) && !is_listed(line);
    let is_long = paragraph.lines().nth(1).is_some() || !paragraph.starts_with(char::is_alphabetic);
    is_long && paragraph.lines().map(str::trim).all(is_of_output)
}

/// Whether a line below output is prose again.
pub(super) fn is_prose(line: &str) -> bool {
    let is_words = has_sentence(line) || !is_printed(line);
    line.starts_with(char::is_alphabetic) && is_words && !is_logged(line) && !is_data(line)
}

/// Whether a line leads to what somebody wrote, and not to what a program printed.
pub(super) fn is_authored(lead: &str) -> bool {
    let lower = lead.to_lowercase();
    words(&lower).iter().any(|word| has(&SPEECH, word) || has(&AUTHORED, word))
}

/// Whether a line is the name and the time that a chat shows above what somebody wrote:
/// `Bob  10:32 AM`, `Bob — Today at 10:32`.
pub(in crate::steps) fn is_chat_head(line: &str) -> bool {
    let plain = line.trim_end_matches(|c: char| c.is_ascii_alphabetic() || " .]".contains(c));
    let rest = line.get(plain.len()..).unwrap_or_default().to_lowercase();
    let half = rest.replace(['.', ' ', ']'], "");
    let is_half = matches!(&*half, "am" | "pm");
    let before = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    let minutes = plain.len() - before.len();
    let hours = before.strip_suffix(':').unwrap_or_default();
    let name = hours.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut words = line.split_whitespace();
    let is_ago = line.ends_with(" ago")
        && line.len() < LONGEST_LEAD
        && words.nth(1).is_some_and(|verb| has(&ACTING, verb));
    if is_ago || line.starts_with('@') && line.contains(" · ") {
        return true;
    }
    let is_time = minutes == 2 && name.len() < hours.len() && (is_half || half.is_empty());
    let is_parted = is_half || name.contains("  ") || name.contains(['—', '•', '·', '[']);
    is_time && is_parted && name.split_whitespace().count().wrapping_sub(1) < 6
}

/// Who speaks below a line of a log of a chat, by its head: `## User`, `[10:02] assistant: …`, `❯ …`.
/// The first bit says that the user does, the second that somebody else does.
pub(super) fn chat_turn(line: &str) -> u8 {
    let line = line.trim();
    match line.chars().next() {
        // What only terminals of agents print.
        Some('›' | '⏺' | '⎿') => return 3,
        Some('❯') => return 1,
        Some('●' | '✦') => return 2,
        _ if line.starts_with("- ") || line.starts_with("* ") => return 0,
        _ => {}
    }
    let stamp = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let stamp = stamp.filter(|(of, _)| of.starts_with(|c: char| c.is_ascii_digit()));
    let is_mark = |c: char| c.is_ascii_digit() || "#*[<|=:/-_ ".contains(c);
    let plain = stamp.map_or(line, |(_, rest)| rest).trim_start_matches(is_mark);
    let end = plain.find([':', '：', '(', '（', ']', '>', '*', '|']);
    let (name, rest) = plain.split_at_checked(end.unwrap_or(plain.len())).unwrap_or_default();
    // `User (admin) may …` is a sentence.
    let behind = rest.trim_start_matches('（').trim_start_matches('(');
    let behind = behind.split_once([')', '）']).filter(|_| behind.len() < rest.len());
    if name.len() > LONGEST_NAME
        || behind.is_some_and(|(_, of)| !of.is_empty() && !of.starts_with([':', '：', '*']))
    {
        return 0;
    }
    let name = name.trim_end_matches(['#', '=', '-', ' ']).to_lowercase();
    u8::from(has(&USERS, &name)) | u8::from(has(&AGENTS, &name)) << 1
}

/// Whether a line is one of the head of a mail.
pub(super) fn is_mail_head(line: &str) -> bool {
    let Some((label, said)) = line.split_once([':', '：']) else { return false };
    has(&MAIL, &label.trim().to_lowercase()) && !said.trim().is_empty()
}

/// Whether a line is what a terminal shows before a command, and the command.
pub(super) fn is_shell(line: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let first = line.split(' ').next().unwrap_or_default();
    let is_place = first.split_once('@').is_some_and(|(user, host)| {
        let host = host.split([':', '~']).next().unwrap_or_default();
        is_name(user) && is_name(host) && line.contains(['$', '#', '%', '>'])
    });
    let drive = first.as_bytes().get(1..3) == Some(b":\\");
    let is_cell = line.strip_prefix("In [").is_some_and(|rest| rest.contains("]:"));
    let is_power = line.strip_prefix("PS ").is_some_and(|rest| rest.contains('>'));
    is_place || (drive && line.contains('>')) || is_cell || is_power || line.starts_with("$ ")
}

/// How many columns a line of a table has, and what parts them.
pub(super) fn columns(line: &str) -> Option<(char, usize)> {
    let line = line.trim();
    let tabs = line.matches('\t').count();
    // Two blanks stand behind the sentences of some writers, and a comma in numbers.
    let parts = line.split("  ").filter(|part| !part.trim().is_empty());
    let before = line.rsplit_once("  ").map_or("", |(before, _)| before);
    let is_prose = before.split("  ").any(|part| part.trim_end().ends_with(['.', '!', '?', ':']));
    let gaps = if is_prose { 0 } else { parts.count() };
    let commas = line.matches(',').count();
    let is_csv = !line.contains(", ")
        && line.split_once(',').is_some_and(|(_, next)| next.starts_with(char::is_alphabetic));
    match () {
        () if tabs > 0 => Some(('\t', tabs)),
        () if is_csv => Some((',', commas)),
        () if gaps > 1 => Some((' ', gaps)),
        () => None,
    }
}

/// What a line of a listing begins with, by which the next line is one too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin<'l> {
    /// `✓ sinks (3 ms)`
    Sign(char),
    /// `3f2a9c1 Mend the crane`
    Hash,
    /// `TIDE-412: Mend the crane`
    Ticket,
    /// `remote: Mend the crane`; of a dialogue the names differ.
    Label(&'l str),
}

/// What a line begins with where it may be one of a listing, or of a dialogue.
pub(super) fn begin(line: &str) -> Option<Begin<'_>> {
    let first = line.split_once(' ')?.0;
    let mut chars = first.chars();
    if let (Some(sign), None) = (chars.next(), chars.next()) {
        let is_sign = !sign.is_ascii() && !sign.is_alphanumeric() && !"•–—·".contains(sign);
        return is_sign.then_some(Begin::Sign(sign));
    }
    let is_digit = |byte: u8| byte.is_ascii_digit();
    if first.len() > 6
        && first.bytes().all(|of| of.is_ascii_hexdigit())
        && first.bytes().any(is_digit)
    {
        return Some(Begin::Hash);
    }
    let name = first.strip_suffix([':', '：'])?;
    if let Some((key, number)) = name.split_once('-')
        && key.len() > 1
        && key.bytes().all(|byte| byte.is_ascii_uppercase())
        && number.bytes().all(is_digit)
    {
        return Some(Begin::Ticket);
    }
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "[]_.-".contains(c));
    let lower = name.to_lowercase();
    (is_name && !has(&WANTED, &lower) && !has(&ASKING, &lower)).then_some(Begin::Label(name))
}

/// Whether a line is a key of YAML whose text, or whose keys, are set in below it.
pub(super) fn is_block_of_yaml(line: &str, next: &str) -> bool {
    let is_key = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    let is_text = [": |", ": >", ": |-", ": >-"].iter().any(|end| line.ends_with(end));
    let is_map = line.strip_suffix(':').is_some_and(is_key)
        && next.trim_start().split_once(": ").is_some_and(|(key, _)| is_key(key));
    (is_text || is_map) && next.starts_with(' ')
}

/// Whether a line rules off the head of a table: `-----+-----`.
pub(super) fn is_ruled(line: &str) -> bool {
    line.contains("-+-") && line.chars().all(|c| matches!(c, '-' | '+' | '|' | ' '))
}

/// Whether a line is the time of a subtitle: `00:00:01,000 --> 00:00:03,000`.
pub(super) fn is_subtitle(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" --> ")
}

/// What parts files and parts of a text from each other: `=== notes.txt ===`, `--- BEGIN ---`.
pub(super) fn delimiter(line: &str) -> Option<char> {
    let mark = line.chars().next().filter(|c| matches!(c, '=' | '-'))?;
    let rest = line.trim_start_matches(mark);
    let is_run = line.len() - rest.len() >= 3;
    (is_run && rest.starts_with(' ') && rest.contains(char::is_alphanumeric)).then_some(mark)
}

/// What of a line somebody else says: `the README says …`, `my colleague wrote: …`.
pub(super) fn report(line: &str) -> Option<Range<usize>> {
    if line.len() > LONGEST_REPORT {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    let end_from = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        let ends = [". ", "! ", "? ", "。"].iter().filter_map(|end| rest.find(end));
        let end = ends.min().map_or(line.len(), |end| from + end + 1);
        // `…, but please use spaces`: there the user goes on.
        let rest = line.get(from..end).unwrap_or_default().to_lowercase();
        let turns = OF_THE_USER.iter().filter_map(|turn| rest.find(turn)).min();
        turns.map_or(end, |turn| from + turn)
    };
    let plain = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let head: String = plain.chars().take(16).flat_map(char::to_lowercase).collect();
    if ACCORDING.iter().any(|lead| head.starts_with(lead)) {
        let start = line.len() - plain.len();
        let colon = plain.find([':', '：']).filter(|colon| *colon < LONGEST_NAME);
        return Some(colon.map_or(start..end_from(start), |colon| start + colon..line.len()));
    }
    // The first word of the sentence, and the last two.
    let (mut first, mut last) = (String::new(), [String::new(), String::new()]);
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let end = at + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = line.get(at..end).unwrap_or_default().to_lowercase();
        let after = line.get(end..).unwrap_or_default();
        let has_colon = after.trim_start().starts_with([':', '：']);
        let is_said = has(&SPEECH, &word);
        let is_shown =
            has_colon && (has(&SHOWING, &word) || UNSPACED.iter().any(|verb| word.ends_with(verb)));
        let is_plural = has(&PLURALS, &word) && has(&ARTICLES, &last[0]);
        // What the user said, and what somebody may say, is the user's: `fix what Bob says`.
        let is_own = last.iter().any(|of| has(&SELVES, of) || of == "what")
            || word != "told" && has(&PASSIVE, &last[1]);
        if is_shown || (is_said || is_plural) && !is_own && (has_colon || !has(&CONDITIONS, &first))
        {
            return Some(end..if has_colon { line.len() } else { end_from(end) });
        }
        if after.starts_with(['.', '!', '?']) {
            (first, last) = Default::default();
        } else if !word.is_empty() {
            first = if first.is_empty() { word.clone() } else { first };
            last = [std::mem::take(&mut last[1]), word];
        }
        at = end + after.chars().next().map_or(0, char::len_utf8);
    }
    None
}
