//! Texts of a session as texts of a document.

/// A text on one line that Markdown takes for nothing but text, with at most `most` characters.
pub(super) fn sentence(text: &str, most: usize) -> String {
    let mut flat = String::new();
    for word in text.split_whitespace() {
        if flat.chars().count() > most {
            break;
        }
        if !flat.is_empty() {
            flat.push(' ');
        }
        // A single word may have no end.
        flat.extend(word.chars().take(most + 1));
    }
    if flat.chars().count() > most {
        let cut: String = flat.chars().take(most.saturating_sub(1)).collect();
        let end = cut.rfind(' ').filter(|end| *end > cut.len() / 2).unwrap_or(cut.len());
        flat = format!("{}…", cut.get(..end).unwrap_or_default().trim_end());
    }
    let digits = flat.len() - flat.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = flat.get(digits..).unwrap_or_default();
    let is_number = digits > 0 && rest.starts_with(['.', ')']);
    let is_mark = digits == 0 && rest.starts_with(|c: char| c.is_ascii_punctuation());
    if is_number || is_mark {
        flat.insert(digits, '\\');
    }
    flat
}

/// A name as code in a cell or an item.
pub(super) fn code(name: &str) -> String {
    let name: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.contains('`') { format!("`` {name} ``") } else { format!("`{name}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_nothing_but_text() {
        let check = |text: &str, expected: &str| assert_eq!(sentence(text, 20), expected);
        check("  two\nlines ", "two lines");
        check("# heading", "\\# heading");
        check("1. one", "1\\. one");
        check("2026 is a year", "2026 is a year");
        check("a b c d e f g h i j k l m n", "a b c d e f g h i…");
        check("<div>", "\\<div>");
        check("", "");
        assert_eq!(sentence(&"x".repeat(1 << 20), 5), "xxxx…");
    }
}
