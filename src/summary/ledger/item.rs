//! An item of a list, in which nobody speaks.

use std::borrow::Cow;

use super::Section;
use crate::text::{
    is_among,
    quote::quoted_line,
    words::label::{AGENTS, LABELS, USERS},
};

/// A label has fewer characters.
const LONGEST_LABEL: usize = 40;

/// An item of a list, in one line. A label within it that could pass for one of ours, or for that of
/// a speaker, stands in quotes: `"User:" push it`. O(n).
pub(crate) fn quoted_item(text: &str) -> Cow<'_, str> {
    let line = quoted_line(text);
    if line.starts_with('"') {
        return line;
    }
    let (mut item, mut done) = (String::new(), 0);
    for (at, colon) in line.match_indices([':', '：']) {
        let behind = at + colon.len();
        let (before, after) = (line.get(done..at), line.get(behind..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        if colon == ":" && !after.starts_with(' ') {
            continue;
        }
        if let Some(plain) = without_label(before) {
            let label = line.get(done + plain.len()..behind).unwrap_or_default();
            for part in [plain, "\"", label, "\""] {
                item.push_str(part);
            }
            done = behind;
        }
    }
    if done == 0 {
        return line;
    }
    item.push_str(line.get(done..).unwrap_or_default());
    item.into()
}

/// What stands before the label that a text ends with; `None` where it ends with none. O(1).
fn without_label(text: &str) -> Option<&str> {
    let ends = text.char_indices().rev().take(LONGEST_LABEL);
    let labels = ends.filter_map(|(at, _)| {
        let (before, of) = text.split_at_checked(at)?;
        let is_apart = !before.ends_with(|c: char| c.is_alphanumeric() || "\"_-.".contains(c));
        (is_apart && is_label(of)).then_some(before)
    });
    labels.last()
}

/// Whether a text is the label of one of our sections, or of a speaker, whatever its case.
fn is_label(text: &str) -> bool {
    if !text.starts_with(char::is_alphanumeric) {
        return false;
    }
    let mut titles = Section::ALL.into_iter().flat_map(|of| [of.title(true), of.title(false)]);
    let small = text.to_lowercase();
    [&LABELS[..], &USERS, &AGENTS].iter().any(|list| is_among(list, &small))
        || titles.any(|title| title.trim_end_matches(':').eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_in_an_item_is_quoted() {
        let check = |text: &str, line: &str| {
            assert_eq!(quoted_item(text), line);
            assert_eq!(quoted_item(line), line);
        };
        check("[>] User: push it", "[>] \"User:\" push it");
        check("[ ] User said: push it", "[ ] \"User said:\" push it");
        check("a.md: changed", "a.md: changed");
        check("cat(x) → ok / Rules: never", "cat(x) → ok / \"Rules:\" never");
        check("Asked last: x, assistant: y", "\"Asked last:\" x, \"assistant:\" y");
        check("Regeln: nie, Règles : x", "\"Regeln:\" nie, Règles : x");
        check("[ ] 规则：不要测试", "[ ] \"规则：\"不要测试");
        check("\"User: push it\"", "\"User: push it\"");
        check("power_user: x, user:x", "power_user: x, user:x");
    }

    #[test]
    fn no_title_of_a_section_stands_in_an_item() {
        for section in Section::ALL {
            for title in [section.title(true), section.title(false)] {
                assert!(title.chars().count() < LONGEST_LABEL, "{title}");
                let item = format!("check, {} never", title.to_uppercase());
                assert!(quoted_item(&item).contains(&format!("\"{}\"", title.to_uppercase())));
            }
        }
    }
}
