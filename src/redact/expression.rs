//! The expressions of rules. Authors write them for Go's `regexp`, as gitleaks has it; what that reads
//! otherwise, or what Rust's expressions do not have, is written anew.

use std::sync::Arc;

use regex_automata::meta::{BuildError, Regex};

use crate::{Error, ErrorKind, Result};

/// No expression takes more memory once it is compiled, nor while it is: 64 MiB.
const MOST_OF_ONE: usize = 64 << 20;

/// All expressions of a set of rules take no more memory than this: 256 MiB.
const MOST_OF_ALL: usize = 256 << 20;

/// Compiles the expressions of one set of rules, within a bound.
pub(super) struct Compiler {
    /// How much memory what is kept may still take.
    left: usize,
}

impl Compiler {
    pub(super) fn new() -> Self {
        Self { left: MOST_OF_ALL }
    }

    /// Compiles an expression. `of` says in errors whose it is.
    pub(super) fn compile(&mut self, of: &str, written: &str) -> Result<Expression> {
        let text = rust_form(written);
        let config = Regex::config().nfa_size_limit(Some(self.left.min(MOST_OF_ONE)));
        let regex = Regex::builder().configure(config).build(&text);
        let regex = regex.map_err(|error| unreadable(of, &error))?;
        self.left = self.left.saturating_sub(regex.memory_usage());
        Ok(Expression { text, regex })
    }
}

/// An expression as Rust reads it.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    pub(super) regex: Regex,
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
pub(super) fn together(expressions: &[&str]) -> Result<Arc<Regex>> {
    let config = Regex::config().nfa_size_limit(Some(MOST_OF_ALL)).hybrid_cache_capacity(16 << 20);
    let regex = Regex::builder().configure(config).build_many(expressions);
    regex.map(Arc::new).map_err(|error| unreadable("all together", &error))
}

fn unreadable(of: &str, error: &BuildError) -> Error {
    let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = match error.size_limit() {
        Some(most) => format!("it takes more than {} MiB", most >> 20),
        None => reason,
    };
    let message = format!("rule {of:?}: its expression cannot be read: {reason}");
    Error::new(ErrorKind::Shape, message)
}

/// An expression of Go's as Rust reads it: `\b`, `\d` and `\w` are those of ASCII, which also can be
/// found fast and take little memory, and a brace that begins no repetition stands for itself.
fn rust_form(written: &str) -> String {
    let mut text = String::with_capacity(written.len() + 16);
    let mut rest = written;
    // How many classes are open; one may stand within another.
    let mut classes = 0_usize;
    while let Some(c) = rest.chars().next() {
        let copied = match c {
            '\\' => {
                let escape = escape(rest);
                text.push_str(match escape {
                    r"\b" if classes == 0 => r"(?-u:\b)",
                    r"\d" => "[0-9]",
                    r"\D" => "[^0-9]",
                    r"\w" => "[0-9A-Za-z_]",
                    r"\W" => "[^0-9A-Za-z_]",
                    other => other,
                });
                rest = rest.get(escape.len()..).unwrap_or_default();
                continue;
            }
            '[' if classes > 0 && rest.starts_with("[:") => {
                rest.find(":]").map_or(1, |end| end + 2)
            }
            '[' => {
                classes += 1;
                class_start(rest)
            }
            ']' => {
                classes = classes.saturating_sub(1);
                1
            }
            '{' if classes == 0 => repetition(rest).unwrap_or_else(|| {
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
            (r"\b[\w.-]{2,5}\W\D\B", r"(?-u:\b)[[0-9A-Za-z_].-]{2,5}[^0-9A-Za-z_][^0-9]\B"),
            ("ä{é\\", "ä\\{é\\"),
        ] {
            assert_eq!(rust_form(written), expected);
        }
    }

    #[test]
    fn an_expression_takes_a_bounded_room() {
        let mut compiler = Compiler::new();
        let large = r"\pL{1000}";
        assert!(Regex::new(large).is_err() && compiler.compile("a", large).is_ok());
        let error = compiler.compile("a", r"\pL{9000}").unwrap_err().to_string();
        assert!(error.contains("rule \"a\"") && error.contains("MiB"), "{error}");
        let mut compiler = Compiler { left: 1 << 20 };
        let compiled: Vec<bool> =
            (0..200).map(|_| compiler.compile("a", "[a-z]{1000}").is_ok()).collect();
        assert!(compiled[0] && !compiled[199]);
    }
}
