//! The expressions of rules. Authors write them for Go's `regexp`, as gitleaks has it; what that reads
//! otherwise, or what Rust's expressions do not have, is written anew.

use std::sync::OnceLock;

use regex_automata::{
    Input, Match,
    meta::{BuildError, Regex},
};

use crate::{Error, ErrorKind, Result};

/// No expression takes more memory once it is compiled, nor while it is: 64 MiB.
const MOST_OF_ONE: usize = 64 << 20;

/// All expressions of a set of rules take no more memory than this: 256 MiB.
const MOST_OF_ALL: usize = 256 << 20;

/// Compiles the expressions of one set of rules, within a bound.
pub(super) struct Compiler {
    /// How much memory what is kept may still take.
    left: usize,
    /// Whether they are compiled when they are first looked for: tests know that they can be.
    is_lazy: bool,
}

impl Compiler {
    pub(super) fn new() -> Self {
        Self { left: MOST_OF_ALL, is_lazy: false }
    }

    pub(super) fn lazy() -> Self {
        Self { left: MOST_OF_ALL, is_lazy: true }
    }

    /// Compiles an expression. `of` says in errors whose it is.
    pub(super) fn compile(&mut self, of: &str, written: &str) -> Result<Expression> {
        let expression = Expression { text: rust_form(written), regex: OnceLock::new() };
        if !self.is_lazy {
            let most = self.left.min(MOST_OF_ONE);
            let regex = build(of, &expression.text, most)?;
            self.left = self.left.saturating_sub(regex.memory_usage());
            let _ = expression.regex.set(Some(regex));
        }
        Ok(expression)
    }
}

fn build(of: &str, text: &str, most: usize) -> Result<Regex> {
    let config = Regex::config().nfa_size_limit(Some(most));
    let regex = Regex::builder().configure(config).build(text);
    regex.map_err(|error| unreadable(of, &error))
}

/// An expression as Rust reads it.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    regex: OnceLock<Option<Regex>>,
}

impl Expression {
    /// What looks for it; `None` where it cannot be read, which a compiler that is not lazy says.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| build("", &self.text, MOST_OF_ONE).ok()).as_ref()
    }

    pub(super) fn find_iter<'t>(
        &'t self,
        input: impl Into<Input<'t>>,
    ) -> impl Iterator<Item = Match> + 't {
        self.regex().map(|regex| regex.find_iter(input)).into_iter().flatten()
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

/// An expression that matches a text.
pub(super) fn literal(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        c if c.is_ascii_punctuation() && !matches!(c, '<' | '>') => format!("\\{c}"),
        c => c.to_string(),
    });
    escaped.collect()
}

/// All expressions at once.
pub(super) fn compile_all(expressions: &[&str]) -> Result<Regex> {
    let config = Regex::config().nfa_size_limit(Some(MOST_OF_ALL)).hybrid_cache_capacity(16 << 20);
    let regex = Regex::builder().configure(config).build_many(expressions);
    regex.map_err(|error| unreadable("all together", &error))
}

fn unreadable(of: &str, error: &BuildError) -> Error {
    let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = match error.size_limit() {
        Some(most) if most < MOST_OF_ONE => {
            format!("it and the rules before it take more than {} MiB", MOST_OF_ALL >> 20)
        }
        Some(most) => format!("it takes more than {} MiB", most >> 20),
        None => reason,
    };
    let message = format!("rule {of:?}: its expression cannot be read: {reason}");
    Error::new(ErrorKind::Shape, message)
}

/// An expression of Go's as Rust reads it: `\b`, `\d`, `\s` and `\w` are those of ASCII, which also can
/// be found fast and take little memory, a class holds no other, and a brace that begins no repetition
/// stands for itself.
fn rust_form(written: &str) -> String {
    let mut text = String::with_capacity(written.len() + 16);
    let mut rest = written;
    let mut is_in_class = false;
    while let Some(c) = rest.chars().next() {
        let copied = match c {
            '\\' if rest.starts_with(r"\Q") => {
                let quoted = rest.get(2..).unwrap_or_default();
                let (quoted, others) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
                text.push_str(&literal(quoted));
                rest = others;
                continue;
            }
            '\\' => {
                let escape = escape(rest);
                text.push_str(match escape {
                    r"\b" if !is_in_class => r"(?-u:\b)",
                    r"\B" if !is_in_class => r"(?-u:\B)",
                    r"\s" => r"[\t\n\f\r ]",
                    r"\S" => r"[^\t\n\f\r ]",
                    r"\d" => "[0-9]",
                    r"\D" => "[^0-9]",
                    r"\w" => "[0-9A-Za-z_]",
                    r"\W" => "[^0-9A-Za-z_]",
                    other => other,
                });
                rest = rest.get(escape.len()..).unwrap_or_default();
                continue;
            }
            '[' if is_in_class && rest.starts_with("[:") => {
                rest.find(":]").map_or(1, |end| end + 2)
            }
            // Rust would read classes within classes, and what two classes share.
            '[' | '&' | '~' if is_in_class => {
                text.push('\\');
                1
            }
            '[' => {
                is_in_class = true;
                class_start(rest)
            }
            ']' => {
                is_in_class = false;
                1
            }
            '{' if !is_in_class => repetition(rest).unwrap_or_else(|| {
                text.push('\\');
                1
            }),
            c => c.len_utf8(),
        };
        let (these, others) = rest.split_at_checked(copied).unwrap_or((rest, ""));
        text.push_str(these);
        rest = others;
    }
    text
}

/// What begins with a backslash and stands for one thing.
fn escape(text: &str) -> &str {
    let mut chars = text.char_indices().skip(1);
    let Some((at, c)) = chars.next() else { return text };
    let end = at + c.len_utf8();
    let has_name = matches!(c, 'x' | 'p' | 'P') && matches!(chars.next(), Some((_, '{')));
    let end = if has_name { text.find('}').map_or(end, |brace| brace + 1) } else { end };
    text.get(..end).unwrap_or(text)
}

/// The length of what begins a class: a `]` that stands first in it does not end it.
fn class_start(text: &str) -> usize {
    let start = if text.starts_with("[^") { 2 } else { 1 };
    let is_closed_later = text.get(start..).is_some_and(|text| text.starts_with(']'));
    start + usize::from(is_closed_later)
}

/// The length of a repetition: `{2}`, `{2,}` or `{2,3}`.
fn repetition(text: &str) -> Option<usize> {
    let end = text.find('}')?;
    let (least, most) = match text.get(1..end)?.split_once(',') {
        Some((least, most)) => (least, most),
        None => (text.get(1..end)?, ""),
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_of_go_is_written_as_rust_reads_it() {
        for (written, expected) in [
            (r"^\$(?:\d+|{\d+})$", r"^\$(?:[0-9]+|\{[0-9]+})$"),
            (r"^\${(?:[A-Z_]+)}$", r"^\$\{(?:[A-Z_]+)}$"),
            (r"a{2}b{2,}c{2,3}", r"a{2}b{2,}c{2,3}"),
            (r"a{,3}b{}c{x}d{2", r"a\{,3}b\{}c\{x}d\{2"),
            (r"\{\{[ \t]*}}", r"\{\{[ \t]*}}"),
            (r"[{}][^]{]{2}[[:alnum:]{]{", r"[{}][^]{]{2}[[:alnum:]{]\{"),
            (r"\x{41}\p{Greek}\P{L}\pL{", r"\x{41}\p{Greek}\P{L}\pL\{"),
            (r"\\{2}\\{", r"\\{2}\\\{"),
            (r"\b[\w.-]{2,5}\W\D", r"(?-u:\b)[[0-9A-Za-z_].-]{2,5}[^0-9A-Za-z_][^0-9]"),
            (r"\B[^[\]&&~]\s[a[b]c]", r"(?-u:\B)[^\[\]\&\&\~][\t\n\f\r ][a\[b]c]"),
            (r"a\Q[b].\E+", r"a\[b\]\.+"),
            ("ä{é\\", "ä\\{é\\"),
        ] {
            assert_eq!(rust_form(written), expected);
        }
    }

    #[test]
    fn an_expression_finds_what_it_finds_in_go() {
        for (written, found, not_found) in [
            (r"^[a[b]c]$", "[c]", "ac"),
            (r"^[^[\]]+$", "a&b", "a[b"),
            (r"^[&&a]+$", "&a", "b"),
            (r"^\s$", "\t", "\u{a0}"),
            (r"^\S$", "\u{a0}", " "),
            (r"^\Q(a)\E$", "(a)", "a"),
            (r"a\B", "ab", "a b"),
        ] {
            let expression = Compiler::new().compile("rule", written).unwrap();
            let finds = |text: &str| expression.is_match(text);
            assert_eq!((finds(found), finds(not_found)), (true, false), "{written}");
        }
    }

    #[test]
    fn an_expression_takes_a_bounded_room() {
        let mut compiler = Compiler::new();
        let large = r"\pL{1000}";
        assert!(Regex::new(large).is_err() && compiler.compile("a", large).is_ok());
        let error = compiler.compile("a", r"\pL{9000}").unwrap_err().to_string();
        assert!(error.contains("rule \"a\"") && error.contains("MiB"), "{error}");
        let mut compiler = Compiler { left: 1 << 20, ..Compiler::new() };
        let compiled: Vec<bool> =
            (0..200).map(|_| compiler.compile("a", "[a-z]{1000}").is_ok()).collect();
        assert!(compiled[0] && !compiled[199]);
    }
}
