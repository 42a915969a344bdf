//! Where a text names something that may be needed again, letter by letter.

use crate::text::{TextRange, is_unspaced};

/// Longer runs are data, not names.
const LONGEST: usize = 200;

/// What kind of name it is: some kinds are used again more often than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    /// The number of a line, in a listing.
    Line,
    /// A measure or a figure of a table: `1.5rem`, `0.0037`, speeds of a download.
    Quantity,
    /// A hash, a signature, text in base64; what begins like a comment.
    Data,
    /// Most likely the end of a sentence and the beginning of the next.
    Glued,
    Date,
    /// Letters and digits: an order, a hash, a version.
    Code,
    Path,
    Address,
    /// The key of a member of a JSON object.
    Key,
    /// What a tag of a format is called: `<tool_result>`.
    Tag,
    /// A variable that a program named: `local_18`, `uVar3`.
    Generated,
    /// A word of a program: `snake_case`, `camelCase`, `a.b`.
    Word,
}

/// The identifiers of a text in order: ids, numbers of four digits and more, dates, paths,
/// addresses, and words that look like code. Runs in time linear in the text.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = (TextRange, Kind)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        while rest < text.len() {
            let (from, to) = next_run(text, rest);
            rest = to;
            let run = trimmed(text, from, to);
            match kind_of(run.of(text)) {
                Some(Kind::Number) if is_line_number(text, run) => return Some((run, Kind::Line)),
                Some(Kind::Number) if is_figure(text, run) => return Some((run, Kind::Quantity)),
                Some(Kind::Word) if is_tag(text, run) => return Some((run, Kind::Tag)),
                Some(Kind::Word | Kind::Code) if is_generated(run.of(text)) => {
                    return Some((run, Kind::Generated));
                }
                Some(Kind::Word) if is_two_sentences(text, run) => {}
                Some(Kind::Word) if may_be_two_sentences(text, run) => {
                    return Some((run, Kind::Glued));
                }
                Some(kind) => return Some((run, kind)),
                None => {}
            }
        }
        None
    })
}

/// Whether a word of small letters is what a tag is called.
fn is_tag(text: &str, run: TextRange) -> bool {
    let before = text.get(..run.start()).unwrap_or_default();
    let before = before.strip_suffix('/').unwrap_or(before);
    (before.ends_with('<') || before.ends_with("&lt;"))
        && !run.of(text).contains(char::is_uppercase)
}

/// What programs begin the names of variables with that had none: those of decompilers.
const GENERATED: [&str; 8] = ["param_", "local_", "var_", "arg_", "tmp_", "FUN_", "DAT_", "LAB_"];

/// Whether a program named a variable by a number: `param_1`, `local_18`, `iVar3`.
fn is_generated(run: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_hexdigit());
    let led = GENERATED.iter().find_map(|start| run.strip_prefix(start));
    let is_var = || {
        run.split_once("Var").is_some_and(|(kind, number)| {
            kind.len() < 4
                && kind.chars().all(|c| c.is_ascii_lowercase())
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    led.is_some_and(is_number) || is_var()
}

/// Whether a number begins its line, and is parted from the rest like those of `cat -n`.
fn is_line_number(text: &str, run: TextRange) -> bool {
    let before = text.get(..run.start()).unwrap_or_default().trim_end_matches([' ', '\t']);
    let after = text.get(run.end()..).unwrap_or_default().trim_start_matches(' ');
    (before.is_empty() || before.ends_with('\n')) && after.starts_with([':', '\t', '|', '→'])
}

/// The bytes around a number that are looked at for others.
const AROUND: usize = 100;

/// Whether a short number stands in a line of numbers: a row of a table, a count of progress.
fn is_figure(text: &str, run: TextRange) -> bool {
    if run.len() >= 8 {
        return false;
    }
    let from =
        (run.start().saturating_sub(AROUND)..=run.start()).find_map(|at| text.get(at..run.start()));
    let to = (run.end()..=(run.end() + AROUND).min(text.len()))
        .rev()
        .find_map(|at| text.get(run.end()..at));
    let before = from.unwrap_or_default().rsplit('\n').next().unwrap_or_default();
    let after = to.unwrap_or_default().split('\n').next().unwrap_or_default();
    let (mut count, mut plain) = (0, 0);
    for field in before.split_whitespace().chain(after.split_whitespace()) {
        count += 1;
        plain += usize::from(is_plain(field));
    }
    plain >= 3.max(count * 3 / 4)
}

/// Whether a word has a digit or a colon, and at most one letter.
fn is_plain(field: &str) -> bool {
    let mut has_digit = false;
    let letters = if field.is_ascii() {
        let letters = |byte: &u8| {
            has_digit |= byte.is_ascii_digit() || *byte == b':';
            byte.is_ascii_alphabetic()
        };
        field.as_bytes().iter().copied().filter(letters).count()
    } else {
        has_digit = field.contains(|c: char| c.is_ascii_digit() || c == ':');
        field.chars().filter(|c| c.is_alphabetic()).count()
    };
    has_digit && letters < 2
}

/// Whether a word is data that nobody spells: a part of it is long, and letters and digits alternate,
/// or it is a long number of base 16.
fn is_data(run: &str) -> bool {
    run.len() >= 24
        && run.split(['/', '.', '-', '_', ':']).any(|part| {
            let count = |of: fn(&char) -> bool| part.chars().filter(of).count();
            let turns = part.as_bytes().windows(2).filter(
                |pair| matches!(pair, [a, b] if a.is_ascii_digit() && b.is_ascii_alphabetic()),
            );
            let digits = count(char::is_ascii_digit);
            let is_hex =
                part.len() >= 32 && digits > 3 && count(char::is_ascii_hexdigit) == part.len();
            is_hex
                || part.len() >= 24
                    && turns.count() > 1
                    && count(char::is_ascii_uppercase) > 3
                    && count(char::is_ascii_lowercase) > 3
        })
}

/// Whether a word is a number with a unit, or with a fraction.
fn is_quantity(run: &str) -> bool {
    let number = run.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.')
        && number.matches('.').count() < 2;
    is_number && run.len() - number.len() < 4 && (run.len() > number.len() || number.contains('.'))
}

/// Whether a dotted word is the end of a sentence and the beginning of the next, without a blank
/// between them: `came back.The tide`.
fn is_two_sentences(text: &str, run: TextRange) -> bool {
    let Some((last, first)) = run.of(text).split_once('.') else { return false };
    let is_lower = |word: &str| word.chars().all(char::is_lowercase);
    let mut letters = first.chars();
    let goes_on = text.get(run.end()..).unwrap_or_default().trim_start_matches([',', '\'', '’']);
    is_lower(last)
        && letters.next().is_some_and(char::is_uppercase)
        && letters.all(char::is_lowercase)
        && goes_on.trim_start_matches(' ').starts_with(char::is_lowercase)
}

/// As [`is_two_sentences`], by less: what follows is a word, too.
fn may_be_two_sentences(text: &str, run: TextRange) -> bool {
    let Some((last, first)) = run.of(text).split_once('.') else { return false };
    let mut letters = first.chars();
    let goes_on = text.get(run.end()..).unwrap_or_default();
    let goes_on = goes_on.strip_prefix(',').unwrap_or(goes_on);
    last.chars().all(char::is_lowercase)
        && letters.next().is_some_and(char::is_uppercase)
        && letters.all(char::is_lowercase)
        && (goes_on.starts_with(['\'', '’'])
            || goes_on.starts_with(' ') && goes_on.trim_start().starts_with(char::is_alphabetic))
}

/// The next run of characters that names are made of, from `at` on.
fn next_run(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut from = at;
    let rest = text.get(at..).unwrap_or_default();
    let mut inside = false;
    for (offset, c) in rest.char_indices() {
        let here = at + offset;
        let belongs = match c {
            '_' | '-' | '.' | '/' | '@' | '~' => true,
            // Of a time or an address, but not between a file and its line.
            ':' if byte(here + 1).is_ascii_digit() => {
                let is_address = || text.get(from..here).is_some_and(|run| run.contains("://"));
                inside && (byte(here.wrapping_sub(1)).is_ascii_digit() || is_address())
            }
            ':' => inside && byte(here + 1) == b'/' && byte(here + 2) == b'/',
            // Text inside of text: the letter after a backslash is an escaped break.
            'n' | 't' | 'r' if !inside && here > 0 && byte(here - 1) == b'\\' => false,
            c => c.is_alphanumeric() && !is_unspaced(c),
        };
        if belongs && !inside {
            from = here;
            inside = true;
        } else if !belongs && inside {
            return (from, here);
        }
    }
    if inside { (from, text.len()) } else { (text.len(), text.len()) }
}

/// A run without the punctuation of the sentence around it.
fn trimmed(text: &str, from: usize, to: usize) -> TextRange {
    let run = text.get(from..to).unwrap_or_default();
    let before = text.get(..from).unwrap_or_default();
    let is_tag = before.ends_with('<') || before.ends_with("&lt;");
    let mut left = run.trim_start_matches(['-', '@']);
    if is_tag {
        left = left.trim_start_matches('/');
    }
    // A dot begins a file's name or a relative path; several end a sentence.
    let undotted = left.trim_start_matches('.');
    if left.len() - undotted.len() > 1 && !undotted.starts_with('/') {
        left = undotted;
    }
    let inner = left.trim_end_matches(['.', '-', '@', '/', '~', ':']);
    TextRange::at(from + run.len() - left.len(), inner.len())
}

fn kind_of(run: &str) -> Option<Kind> {
    let kind = kind_by_shape(run)?;
    let is_plain = matches!(kind, Kind::Number | Kind::Code | Kind::Date);
    Some(match kind {
        _ if is_plain && is_quantity(run) => Kind::Quantity,
        _ if is_data(run) || run.starts_with("//") => Kind::Data,
        kind => kind,
    })
}

fn kind_by_shape(run: &str) -> Option<Kind> {
    if run.len() < 3 || run.len() > LONGEST {
        return None;
    }

    let (mut letters, mut digits, mut others) = (0_usize, 0_usize, 0_usize);
    let (mut slashes, mut underscores, mut dots, mut humps) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut last = ' ';
    for c in run.chars() {
        match c {
            '0'..='9' => digits += 1,
            '/' if last != '/' => slashes += 1,
            '_' if last.is_alphanumeric() => underscores += 1,
            '.' if last.is_alphanumeric() => dots += 1,
            c if c.is_alphabetic() => {
                letters += 1;
                humps += usize::from(c.is_uppercase() && last.is_lowercase());
            }
            _ => others += 1,
        }
        last = c;
    }
    if letters == 0 {
        let date = digits >= 6 && others >= 2;
        return (digits >= 4).then_some(if date { Kind::Date } else { Kind::Number });
    }
    if run.contains("://") || letters > 2 && run.contains('@') {
        return Some(Kind::Address);
    }
    let rooted = run.starts_with('/') || run.starts_with("~/");
    if letters > 1 && (rooted || slashes > 1 || slashes > 0 && dots > 0) {
        return Some(Kind::Path);
    }
    if slashes == 0 && underscores > 0 && letters > 1 || humps > 0 {
        return Some(Kind::Word);
    }
    if digits > 0 && run.chars().count() >= 4 {
        return Some(if is_date(run) { Kind::Date } else { Kind::Code });
    }
    let dotted = dots > 0 && letters > 3 && run.split('.').all(|part| part.len() > 1);
    (dotted || slashes > 0 && underscores > 0).then_some(Kind::Word)
}

/// `2024-05-16T08:30:00Z`
fn is_date(run: &str) -> bool {
    let mut parts = run.splitn(3, '-');
    let digits = |part: Option<&str>, count: usize| {
        part.is_some_and(|part| part.len() == count && part.bytes().all(|b| b.is_ascii_digit()))
    };
    digits(parts.next(), 4)
        && digits(parts.next(), 2)
        && parts.next().is_some_and(|rest| rest.bytes().take(2).all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = identifiers(text).map(|(range, _)| range.of(text)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn names_are_found_whole_and_without_the_sentence_around_them() {
        check("Cancel order W1234567, please (user mia_li_3668).", &["W1234567", "mia_li_3668"]);
        check("in src/a.rs:120, at 12:30 on 2024-05-16.", &["src/a.rs", "12:30", "2024-05-16"]);
        check(
            "<output_head>x</output_head> .env_local ../up/x",
            &["output_head", "output_head", ".env_local", "../up/x"],
        );
        check("see https://a.org/b/c.", &["https://a.org/b/c"]);
        check("at http://a.org:8000/b: x", &["http://a.org:8000/b"]);
        check("cd /testbed/x && ./run.sh ~/yz", &["/testbed/x", "./run.sh", "~/yz"]);
        check("&lt;/tool_call>", &["tool_call"]);
        check("self.fooBar(baz_qux)", &["self.fooBar", "baz_qux"]);
        check(r"a\nfoo_bar\tb1234", &["foo_bar", "b1234"]);
        check("and/or 123 12,345 3rd one. Two e.g. i.e. ...", &[]);
        check("注文W1234567を確認", &["W1234567"]);
        check("größe_max für naïveCase", &["größe_max", "naïveCase"]);
    }

    #[test]
    fn numbers_of_lines_are_told_from_others_and_ends_of_sentences_are_no_names() {
        let kinds = |text| identifiers(text).map(|(_, kind)| kind).collect::<Vec<_>>();
        let line = Kind::Line;
        assert_eq!(kinds("1474: a\n  1475\tb\n1476→c\n1477 d"), [line, line, line, Kind::Number]);
        check(
            "It came back.The tide, as fmt.Print(x) and tide.Table say.We'll see",
            &["fmt.Print"],
        );
    }

    #[test]
    fn measures_and_data_are_told_from_names() {
        let kinds = |text| identifiers(text).map(|(_, kind)| kind).collect::<Vec<_>>();
        let (quantity, data) = (Kind::Quantity, Kind::Data);
        assert_eq!(kinds("1.5rem 100vh 0.0037 320p"), [quantity; 4]);
        assert_eq!(kinds("100 1012 0 587 100 425 6029 4365 --:--"), [quantity; 3]);
        assert_eq!(kinds("d7a8fbb307d7809469ca9abcb0082e4f8d5651e4"), [data]);
        assert_eq!(kinds("eyJhbGciOi1NiJ9abcQ3kZxT9pL2"), [data]);
        assert_eq!(kinds("HAT218 W7654321 b9288c2 v1.2.3"), [Kind::Code; 4]);
        assert_eq!(kinds("order 6029 of 2026"), [Kind::Number; 2]);
        assert_eq!(kinds("5a430368-9e91-4564-be20-989803bf4da2"), [Kind::Code]);
        assert_eq!(kinds("//Comment-a1 here"), [data]);
        assert_eq!(
            kinds("<lock_result>x</lock_result> lock_all"),
            [Kind::Tag, Kind::Tag, Kind::Word]
        );
        assert_eq!(kinds("param_1 = uVar2 + local_18"), [Kind::Generated; 3]);
        assert_eq!(kinds("local_file envVars"), [Kind::Word; 2]);
        assert_eq!(kinds("It came back.Then We go, in fmt.Print(x)"), [Kind::Glued, Kind::Word]);
    }

    #[test]
    fn a_run_without_end_is_no_name() {
        check(&"a1".repeat(1_000_000), &[]);
    }
}
