//! Texts of a session as texts of a document.

use crate::{summary::quoted_item, text::quote::quoted_line};

/// A text on one line with at most `most` characters, cut between words.
pub(super) fn flat(text: &str, most: usize) -> String {
    let mut flat = String::new();
    for word in text.split_whitespace() {
        if flat.chars().count() > most {
            break;
        }
        if !flat.is_empty() {
            flat.push(' ');
        }
        // A single word may have no end, and no document holds a NUL.
        let shown = word.chars().map(|c| if c == '\0' { '\u{2400}' } else { c });
        flat.push_str(&quoted_line(&shown.take(most.saturating_add(1)).collect::<String>()));
    }
    if flat.chars().count() > most {
        let cut: String = flat.chars().take(most.saturating_sub(1)).collect();
        let end = cut.rfind(' ').filter(|end| *end > cut.len() / 2).unwrap_or(cut.len());
        flat = format!("{}…", cut.get(..end).unwrap_or_default().trim_end());
    }
    flat
}

/// As [`sentence`], of what is an item of a list in contexts, too: no label of a speaker or a section
/// stands in it without quotes.
pub(super) fn item(text: &str, most: usize) -> String {
    sentence(&quoted_item(&flat(text, most)), usize::MAX)
}

/// A text on one line that Markdown takes for nothing but text and code, with at most `most`
/// characters before what is escaped: it begins no block, and holds no HTML, link or image.
pub(super) fn sentence(text: &str, most: usize) -> String {
    let mut text = inert(&flat(text, most));
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = text.get(digits..).unwrap_or_default();
    let is_number = digits > 0 && rest.starts_with(['.', ')']);
    // What is escaped already, and code between backticks, begins no block.
    let is_mark =
        digits == 0 && rest.starts_with(|c: char| c.is_ascii_punctuation() && !"\\`".contains(c));
    if is_number || is_mark {
        text.insert(digits, '\\');
    }
    text
}

/// A line in which code stays code, and nothing else is more than text.
fn inert(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let width = if c == '`' { rest.len() - rest.trim_start_matches('`').len() } else { 0 };
        if width > 0 {
            let (mark, behind) = rest.split_at_checked(width).unwrap_or((rest, ""));
            if let Some(end) = run_of(behind, width) {
                let span = rest.get(..width + end + width).unwrap_or(rest);
                text.push_str(span);
                rest = rest.get(span.len()..).unwrap_or_default();
            } else {
                mark.chars().for_each(|tick| text.extend(['\\', tick]));
                rest = behind;
            }
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let escapes = c == '\\' && rest.starts_with(|c: char| c.is_ascii_punctuation());
        if escapes || matches!(c, '<' | '[') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Where the next run of exactly so many backticks begins.
fn run_of(text: &str, width: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text.get(at..)?.find('`').map(|start| at + start) {
        let run = text.get(start..)?;
        let length = run.len() - run.trim_start_matches('`').len();
        if length == width {
            return Some(start);
        }
        at = start + length;
    }
    None
}

/// A name as code in a cell or an item.
pub(super) fn code(name: &str) -> String {
    let name = name.replace('\0', "\u{2400}");
    let name: String = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    match longest {
        0 if name.is_empty() => "(no name)".to_owned(),
        0 => format!("`{name}`"),
        longest => {
            let mark = "`".repeat(longest + 1);
            format!("{mark} {name} {mark}")
        }
    }
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag};

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
        check("a `b[0]` c", "a `b[0]` c");
        check("`a < b`", "`a < b`");
        check("a ` b", "a \\` b");
        check("", "");
        assert_eq!(sentence(&"x".repeat(1 << 20), 5), "xxxx…");
    }

    #[test]
    fn html_links_and_images_are_inert() {
        let texts = [
            "see <script>alert(1)</script> and <img src=x onerror=y>",
            "[click](javascript:alert(1)) ![shot](https://example.org/x.png)",
            "![a][b] [a]: javascript:x",
            "<javascript:alert(1)> <https://example.org>",
            "\\<script> \\\\<b> \\[x](y) \\",
            "`` ` <b> `` then ` <i> and ``` <u>",
            "<!-- hidden --> <?php ?> <![CDATA[x]]>",
            "**bold** &lt;b&gt; \\![x](y)",
        ];
        for text in texts {
            for shown in [
                sentence(text, 200),
                format!("- Frame 1: {} → done ` x", sentence(text, 200)),
                format!("| a |\n|---|\n| {} {} |", code(text), sentence(text, 200)),
            ] {
                for event in Parser::new_ext(&shown, Options::ENABLE_TABLES) {
                    let is_inert = !matches!(
                        event,
                        Event::Html(_)
                            | Event::InlineHtml(_)
                            | Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
                    );
                    assert!(is_inert, "{text:?} as {shown:?} has {event:?}");
                }
            }
        }
    }
}
