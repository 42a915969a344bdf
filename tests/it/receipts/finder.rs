//! What an independent reader finds: names in originals, and whether they stand in a context. It
//! shares no code with the library, and follows the rules in `docs/compression.md`.

/// The names of a text: what is between blanks and marks, without the punctuation around it.
pub(super) fn names(text: &str) -> Vec<String> {
    let text = text.replace("\\n", "  ").replace("\\t", "  ").replace("\\r", "  ");
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        while at < chars.len() && belongs(&chars, start, at) {
            at += 1;
        }
        if at == start {
            at += 1;
            continue;
        }
        let is_tag = start > 0 && chars[start - 1] == '<'
            || start > 3 && chars[start - 4..start] == ['&', 'l', 't', ';'];
        let run: String = chars[start..at].iter().collect();
        let name = without_marks(&run, is_tag);
        let after: String =
            chars[at - (run.len() - run.trim_end_matches(END).len())..].iter().take(40).collect();
        if is_name(name) && !is_end_of_sentence(name, &after) {
            found.push(name.to_owned());
        }
    }
    found
}

const END: [char; 6] = ['.', '-', '@', '/', '~', ':'];

fn is_unspaced(c: char) -> bool {
    let c = c as u32;
    (0xe00..=0xeff).contains(&c)
        || (0x1000..=0x109f).contains(&c)
        || (0x1780..=0x17ff).contains(&c)
        || c >= 0x2e80
}

/// Whether the character at `at` goes on with a run that began at `start`.
fn belongs(chars: &[char], start: usize, at: usize) -> bool {
    let next = |by: usize| chars.get(at + by).copied().unwrap_or(' ');
    match chars[at] {
        ':' if at == start => false,
        ':' if next(1).is_ascii_digit() => {
            let run: String = chars[start..at].iter().collect();
            chars[at - 1].is_ascii_digit() || run.contains("://")
        }
        ':' => next(1) == '/' && next(2) == '/',
        c => "_-./@~".contains(c) || c.is_alphanumeric() && !is_unspaced(c),
    }
}

fn without_marks(run: &str, is_tag: bool) -> &str {
    let mut name = run.trim_start_matches(['-', '@']);
    if is_tag {
        name = name.trim_start_matches('/');
    }
    let undotted = name.trim_start_matches('.');
    if name.starts_with("..") && !undotted.starts_with('/') {
        name = undotted;
    }
    name.trim_end_matches(END)
}

fn is_name(name: &str) -> bool {
    if !(3..=200).contains(&name.len()) {
        return false;
    }
    let pairs: Vec<(char, char)> = name.chars().zip(name.chars().skip(1)).collect();
    let letters = name.chars().filter(|c| c.is_alphabetic()).count();
    let digits = name.chars().filter(char::is_ascii_digit).count();
    let after_letter = |mark: char| pairs.iter().any(|(a, b)| a.is_alphanumeric() && *b == mark);
    let (dots, underscores) = (after_letter('.'), after_letter('_'));
    let slashes = pairs.iter().filter(|(a, b)| *a != '/' && *b == '/').count()
        + usize::from(name.starts_with('/'));
    let has_hump = pairs.iter().any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    if letters == 0 {
        return digits >= 4;
    }
    let is_rooted = name.starts_with('/') || name.starts_with("~/");
    name.contains("://")
        || letters > 2 && name.contains('@')
        || letters > 1 && (is_rooted || slashes > 1 || slashes > 0 && dots)
        || slashes == 0 && underscores && letters > 1
        || has_hump
        || digits > 0 && name.chars().count() >= 4
        || dots && letters > 3 && name.split('.').all(|part| part.len() > 1)
        || slashes > 0 && underscores
}

/// `back.The` of `came back.The tide`: no name.
fn is_end_of_sentence(name: &str, after: &str) -> bool {
    let Some((last, first)) = name.split_once('.') else { return false };
    let mut letters = first.chars();
    last.chars().all(char::is_lowercase)
        && letters.next().is_some_and(char::is_uppercase)
        && letters.all(char::is_lowercase)
        && after
            .trim_start_matches([',', '\'', '’'])
            .trim_start_matches(' ')
            .starts_with(char::is_lowercase)
}

/// The text of a context, white space aside, with escaped breaks as blanks.
pub(super) fn flat(text: &str) -> String {
    let text = text.replace("\\n", " \\ ").replace("\\t", " \\ ").replace("\\r", " \\ ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text stands in a flat one, with no letter, digit or `_` beside it.
pub(super) fn stands(wanted: &str, flat: &str) -> bool {
    let wanted = self::flat(wanted);
    let is_word = |c: char| c == '_' || c.is_alphanumeric() && !is_unspaced(c);
    flat.match_indices(&wanted).any(|(at, _)| {
        !flat[..at].chars().next_back().is_some_and(is_word)
            && !flat[at + wanted.len()..].chars().next().is_some_and(is_word)
    })
}
