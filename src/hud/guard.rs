//! Keeping content from forging structure.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::{text::RESERVED_TAGS as RESERVED, veil::TagSet};

/// `text` with every `<` that begins the opening or the closing of a reserved tag, or of one of
/// `tags`, as `&lt;`. Case, blanks and what cannot be seen do not hide a tag: models read
/// `</ MY_TURN>` as one. A `<` with nothing but blanks and a slash up to the end counts as such a
/// beginning too: what is rendered next could complete it.
///
/// Runs in O(n) time, and copies nothing where there is nothing to neutralise.
pub(super) fn neutralised<'t>(text: &'t str, tags: &TagSet) -> Cow<'t, str> {
    if forged(text, tags).next().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    push_neutralised(&mut out, text, tags);
    Cow::Owned(out)
}

/// Appends the [`neutralised`] form of `text` to `out`.
pub(super) fn push_neutralised(out: &mut String, text: &str, tags: &TagSet) {
    let mut from = 0;
    for at in forged(text, tags) {
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str("&lt;");
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
}

/// Where the tags begin that `text` must not contain.
fn forged(text: &str, tags: &TagSet) -> impl Iterator<Item = usize> {
    let longest = RESERVED.iter().map(|tag| tag.len()).fold(tags.longest(), usize::max);
    memchr_iter(b'<', text.as_bytes())
        .filter(move |at| begins_tag(text.get(at + 1..).unwrap_or_default(), tags, longest))
}

/// Whether what follows a `<` makes it a tag that means something here.
///
/// Blanks may stand before and after the slash, and what cannot be seen anywhere. Reads `after` up
/// to the end of one name, or to what cannot stand in a tag.
fn begins_tag(after: &str, tags: &TagSet, longest: usize) -> bool {
    let mut rest = without_blanks(after);
    if let Some(closing) = rest.strip_prefix('/') {
        rest = without_blanks(closing);
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
    if is_tag(name, tags) {
        return true;
    }
    // What cannot be seen does not end a name for every reader.
    let next = rest.get(len..).and_then(|rest| rest.chars().next());
    if !next.is_some_and(is_hidden) {
        return false;
    }
    let mut name = String::with_capacity(longest + 1);
    for c in rest.chars().filter(|c| !is_hidden(*c)) {
        if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            break;
        }
        if name.len() == longest {
            return false;
        }
        name.push(c);
    }
    is_tag(&name, tags)
}

fn is_tag(name: &str, tags: &TagSet) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
        || !tags.is_empty() && (tags.contains(name) || tags.contains(&name.to_ascii_lowercase()))
}

/// `text` from its first sign on that is not blank. Mostly that is the very first.
fn without_blanks(text: &str) -> &str {
    if text.as_bytes().first().is_some_and(u8::is_ascii_graphic) {
        return text;
    }
    text.trim_start_matches(is_blank)
}

/// What a reader may pass over between the signs of a tag: white space, controls, and what cannot
/// be seen.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || is_invisible(c)
}

/// What a reader may pass over within a name: what cannot be seen, and controls that are no white
/// space.
fn is_hidden(c: char) -> bool {
    is_invisible(c) || c.is_control() && !c.is_whitespace()
}

/// Whether `c` is of Unicode's category Cf or ignorable by default (`Default_Ignorable_Code_Point`,
/// Unicode 17), what is unassigned of the latter included; or no character at all; or one that
/// shows nothing by itself although it is neither: a blank of Braille, of Egyptian or of musical
/// writing, the filler of Khitan and the joiner of Tifinagh.
fn is_invisible(c: char) -> bool {
    // The last two of each plane, and a run of its own, are noncharacters.
    u32::from(c) & 0xfffe == 0xfffe
        || matches!(c, '\u{fdd0}'..='\u{fdef}')
        || matches!(
            c,
            '\u{2800}' | '\u{2d7f}' | '\u{13440}'..='\u{13442}' | '\u{16fe4}' | '\u{1d159}'
        )
        || matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
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

    #[test]
    fn what_cannot_be_seen_hides_no_tag() {
        check("</\u{200e}my_turn>", "&lt;/\u{200e}my_turn>");
        check("<my\u{200b}_turn>", "&lt;my\u{200b}_turn>");
        check(
            "<my\u{e0041}_\u{fe0f}\u{3164}turn\u{ad}>",
            "&lt;my\u{e0041}_\u{fe0f}\u{3164}turn\u{ad}>",
        );
        check("<\u{180e}ship\u{34f}_status", "&lt;\u{180e}ship\u{34f}_status");
        check("<my_turn\u{200b}s>", "&lt;my_turn\u{200b}s>");
        check("<my_turn漢 <b\u{200b}> <my_漢turn>", "&lt;my_turn漢 <b\u{200b}> <my_漢turn>");
        check("<a\u{200b}b\u{200b}c>", "&lt;a\u{200b}b\u{200b}c>");
    }

    #[test]
    fn blanks_fillers_noncharacters_and_controls_hide_no_tag() {
        for hidden in [
            '\u{2800}',
            '\u{2d7f}',
            '\u{13440}',
            '\u{13441}',
            '\u{16fe4}',
            '\u{1d159}',
            '\u{fdd0}',
            '\u{fdef}',
            '\u{ffff}',
            '\u{1fffe}',
            '\u{10ffff}',
            '\u{0}',
            '\u{8}',
            '\u{1b}',
            '\u{7f}',
            '\u{80}',
            '\u{9f}',
        ] {
            check(&format!("<my{hidden}_turn>"), &format!("&lt;my{hidden}_turn>"));
            check(
                &format!("<{hidden}/{hidden}my_turn>"),
                &format!("&lt;{hidden}/{hidden}my_turn>"),
            );
            check(&format!("<my_turn{hidden}s>"), &format!("&lt;my_turn{hidden}s>"));
        }
        // White space ends a name for every reader.
        check("<my\n_turn> <my\t_turn> <my\u{85}_turn>", "<my\n_turn> <my\t_turn> <my\u{85}_turn>");
    }
}
