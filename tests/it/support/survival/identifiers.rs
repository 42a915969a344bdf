//! Ids, numbers, dates, paths, and words that look like code.

/// The identifiers of a text in order: ids, numbers of four or more digits, dates, paths, and
/// words that look like code. The numbers of lines in a listing are none, and neither is a number
/// with a unit or a fraction: nobody asks for them by name. O(text).
pub(crate) fn identifiers(text: &str) -> Vec<String> {
    // Arguments and many results are JSON: an escaped line break ends a word like a line break. The
    // slash of a closing tag begins no path.
    let mut plain = text.to_owned();
    for escape in ["\\n", "\\t", "\\r", "\\\"", "</"] {
        plain = plain.replace(escape, " ");
    }
    let plain: Vec<&str> = plain.lines().map(without_line_number).collect();
    let plain = plain.join("\n");
    let mut found = Vec::new();
    // Text without spaces, such as Japanese, ends a word too.
    let is_part = |c: char| c.is_alphanumeric() && c < '\u{2e80}' || "_-./@:~".contains(c);
    for word in plain.split(|c: char| !is_part(c)) {
        for word in at_colons(word) {
            let word = word.trim_start_matches(['.', '-', ':', '@'].as_slice());
            let word = word.trim_end_matches(['.', '-', ':', '@', '/', '~'].as_slice());
            if is_identifier(word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}

/// A line of a listing without its number: `12→x`, `12: x`, `12\tx`.
fn without_line_number(line: &str) -> &str {
    let start = line.trim_start();
    let rest = start.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < start.len() && rest.starts_with([':', '\t', '|', '→']);
    if is_numbered { rest } else { line }
}

/// Splits at colons, but for those of times (`12:30`) and of addresses (`https://`).
fn at_colons(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in word.match_indices(':') {
        let of_time = at > 0 && digit(at - 1) && digit(at + 1);
        let is_address = word.get(at..).is_some_and(|rest| rest.starts_with("://"));
        if !of_time && !is_address {
            parts.extend(word.get(from..at));
            from = at + 1;
        }
    }
    parts.extend(word.get(from..));
    parts
}

fn is_identifier(word: &str) -> bool {
    let length = word.chars().count();
    if !(3..=200).contains(&length) {
        return false;
    }
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let unit = word.len() - number.len();
    let is_measure = is_number && (unit > 0 || number.matches('.').count() == 1) && unit < 4;
    if is_measure && word.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    let parts = |separator: char| word.split(separator).filter(|part| !part.is_empty()).count();
    let number_or_date = letters == 0 && digits >= 4;
    let id = letters > 0 && digits > 0 && length >= 4;
    let address = word.contains("://") || word.contains('@') && letters > 2;
    let path = letters > 1 && (word.starts_with('/') || word.starts_with("~/") || parts('/') > 2)
        || parts('/') > 1 && word.contains('.');
    let snake = letters > 1 && parts('_') > 1;
    let dotted = parts('.') > 1 && word.split('.').all(|part| part.len() > 1) && letters > 3;
    let is_hump =
        |pair: &[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let camel = word.as_bytes().windows(2).any(is_hump);
    number_or_date || id || address || path || snake || dotted || camel
}
