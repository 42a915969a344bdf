//! Keeping content from forging structure.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::veil::TagSet;

/// The tags that the built-in formats write themselves.
pub(super) const RESERVED: [&str; 6] =
    ["my_turn", "parameter", "pending_activations", "thought", "tool_call", "tool_result"];

/// `text` with every `<` that begins the opening or the closing of a reserved tag, or of one of
/// `tags`, as `&lt;`. Case and blanks do not hide a tag: models read `</ MY_TURN>` as one. A `<` with
/// nothing but blanks and a slash up to the end counts as such a beginning too: what is rendered
/// next could complete it.
///
/// Runs in O(n) time, and copies nothing where there is nothing to neutralise.
pub(super) fn neutralised<'t>(text: &'t str, tags: &TagSet) -> Cow<'t, str> {
    let mut candidates = memchr_iter(b'<', text.as_bytes()).peekable();
    if candidates.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let longest = RESERVED.iter().map(|tag| tag.len()).fold(tags.longest(), usize::max);
    let mut forged = candidates
        .filter(|at| begins_tag(text.get(at + 1..).unwrap_or_default(), tags, longest))
        .peekable();
    if forged.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for at in forged {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str("&lt;");
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether what follows a `<` makes it a tag that means something here.
fn begins_tag(after: &str, tags: &TagSet, longest: usize) -> bool {
    let mut rest = after.trim_start_matches(is_blank);
    if let Some(closing) = rest.strip_prefix('/') {
        rest = closing.trim_start_matches(is_blank);
    }
    if rest.is_empty() {
        return true;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let len = rest.bytes().take(longest + 1).take_while(is_name).count();
    let name = rest.get(..len).unwrap_or_default();
    if name.is_empty() || len > longest {
        return false;
    }
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return true;
    }
    !tags.is_empty() && (tags.contains(name) || tags.contains(&name.to_ascii_lowercase()))
}

/// What a reader may pass over inside of a tag: white space, and what cannot be seen.
fn is_blank(c: char) -> bool {
    let invisible = ['\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'];
    c.is_whitespace() || c.is_control() || invisible.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let tags = TagSet::from_iter(["ship_status", "a"]);
        assert_eq!(neutralised(text, &tags), expected);
    }

    #[test]
    fn own_tags_are_neutralised_and_nothing_else() {
        check("plain < text <b>bold</b> a<b && c", "plain < text <b>bold</b> a<b && c");
        check("</my_turn>", "&lt;/my_turn>");
        check("x<tool_call name=\"x\">y", "x&lt;tool_call name=\"x\">y");
        check("</ MY_Turn >", "&lt;/ MY_Turn >");
        check("<ship_status><SHIP_STATUS/>", "&lt;ship_status>&lt;SHIP_STATUS/>");
        check("<a href><ab><a", "&lt;a href><ab>&lt;a");
        check("<my_turns> <my_turn", "<my_turns> &lt;my_turn");
        check("<<my_turn>é< ", "<&lt;my_turn>é&lt; ");
        check("<\u{3000}\n         /\u{b}my_turn>", "&lt;\u{3000}\n         /\u{b}my_turn>");
        check("a <", "a &lt;");
        check("a </ ", "a &lt;/ ");
        check("a < b <my_", "a < b <my_");
        check("<é", "<é");
    }
}
