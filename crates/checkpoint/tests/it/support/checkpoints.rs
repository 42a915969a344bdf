//! Checkpoints for properties: documents that are made of hostile pieces.

#![allow(dead_code, reason = "each test takes what it needs")]

use proptest::prelude::*;

/// A line of text with what Markdown may take for something.
fn phrase() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "alpha",
        "beta",
        "Phase 2",
        "`a|b`",
        "x \\| y",
        "**bold**",
        "→",
        "Done",
        "größe",
        "漢字",
        "🛰️",
        "a: b",
        "- ",
        "> ",
        "#",
        "##",
        "```",
        "~~~",
        "|",
        "1.",
        "<div>",
        "<!--",
        "-->",
        "[x]: /u",
        "\t",
        "…",
        "\\",
        "---",
        "e\u{301}",
        "    ",
        "`",
        "``",
        "&amp;",
        "\u{a0}",
        "\u{2028}",
        "\u{b}",
        "\u{c}",
        "\u{feff}",
        "after line 7",
        "before line 1",
        "<pre>",
        "<?",
        "Open",
        "\"",
        "'",
        "line 3",
    ]);
    prop::collection::vec(words, 1..4).prop_map(|words| words.join(" "))
}

/// A whole block, with the lines in it parted by `\n`.
fn block() -> impl Strategy<Value = String> {
    let row = (phrase(), phrase(), phrase()).prop_map(|(a, b, c)| format!("| {a} | {b} | {c} |"));
    let table = prop::collection::vec(row, 0..4).prop_map(|rows| {
        let head = "| File | Status | Key Change |\n|---|---|---|".to_owned();
        [vec![head], rows].concat().join("\n")
    });
    let items = prop::collection::vec(phrase(), 1..5).prop_map(|items| {
        items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
    });
    let nested = (phrase(), phrase(), phrase())
        .prop_map(|(a, b, c)| format!("1. {a}\n   - {b}\n\n     {c}\n2. {a}"));
    let code = (phrase(), phrase()).prop_map(|(a, b)| format!("```text\n## {a}\n\n| {b} |\n```"));
    let open_code = phrase().prop_map(|text| format!("````\n{text}\n```"));
    let quote = phrase().prop_map(|text| format!("> {text}\n> > - {text}"));
    let heading =
        (2..5_usize, phrase()).prop_map(|(level, text)| format!("{} {text}", "#".repeat(level)));
    let known = prop::sample::select(vec![
        "## Problem",
        "## Session Intent",
        "## Essential Information",
        "### Decisions",
        "### Play-By-Play",
        "### Artifact Trail",
        "### Current State",
        "### Next Actions",
        "## User Rules",
        "## Delta: 2026-01-05T10:00:00Z",
        "## Merge Instructions",
        "### Added",
    ])
    .prop_map(str::to_owned);
    prop_oneof![
        3 => known,
        1 => heading,
        2 => table,
        3 => items,
        1 => nested,
        1 => code,
        1 => open_code,
        1 => quote,
        2 => phrase(),
    ]
}

/// Blocks, each with what stands behind it.
pub(crate) type Blocks = Vec<(String, String)>;

/// Blocks with what stands between them.
pub(crate) fn blocks() -> impl Strategy<Value = Blocks> {
    let between = prop::sample::select(vec!["\n\n", "\n", "\n\n\n", "\n\n", "\n \n"]);
    prop::collection::vec((block(), between.prop_map(str::to_owned)), 0..14)
}

/// How a document is written: its header, the ends of its lines, its last one.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    header: usize,
    end: &'static str,
    is_ended: bool,
    has_mark: bool,
}

pub(crate) fn form() -> impl Strategy<Value = Form> {
    let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r"]);
    (0..4_usize, end, any::<bool>(), prop::bool::weighted(0.1))
        .prop_map(|(header, end, is_ended, has_mark)| Form { header, end, is_ended, has_mark })
}

const HEADERS: [&str; 4] = [
    "---\ncheckpoint: chk-1\ncreated: 2026-01-05T10:00:00Z\n---\n\n",
    "---\ncheckpoint: chk-2\ncreated: 2026-01-06T10:00:00Z\nanchor: x\n---\n",
    "",
    "---\nno end\n\n",
];

/// The document that blocks make.
pub(crate) fn document(blocks: &[(String, String)], form: &Form) -> String {
    let mut text = HEADERS[form.header].to_owned();
    for (block, between) in blocks {
        text.push_str(block);
        text.push_str(between);
    }
    let text = text.trim_end_matches('\n');
    let end = if form.is_ended && !text.is_empty() { "\n" } else { "" };
    let mark = if form.has_mark { "\u{feff}" } else { "" };
    format!("{mark}{}", format!("{text}{end}").replace('\n', form.end))
}

/// A document in canonical form.
pub(crate) fn canonical(blocks: &[(String, String)], header: usize) -> String {
    let text = document(blocks, &Form { header, end: "\n", is_ended: true, has_mark: false });
    text.trim_start_matches('\u{feff}').to_owned()
}

/// A second document that was made of the first by changes, or of nothing in common with it.
pub(crate) fn pair() -> impl Strategy<Value = (Blocks, Blocks)> {
    let change = (0..6_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), blocks());
    let changed = (blocks(), prop::collection::vec(change, 0..5)).prop_map(|(old, changes)| {
        let mut new = old.clone();
        for (kind, at, other, blocks) in changes {
            let Some(last) = new.len().checked_sub(1) else {
                new.extend(blocks);
                continue;
            };
            let (at, other) = (at.index(last + 1), other.index(last + 1));
            match kind {
                0 => drop(new.remove(at)),
                1 => {
                    new.splice(at..at, blocks.into_iter().take(2));
                }
                2 => {
                    let moved = new.remove(at);
                    new.insert(other.min(new.len()), moved);
                }
                3 => new[at].0.push_str(" x"),
                4 => new[at].0 = new[at].0.replace("Done", "Open").replace("alpha", "beta"),
                _ => {
                    let twice = new[at].clone();
                    new.insert(other, twice);
                }
            }
        }
        (old, new)
    });
    prop_oneof![3 => changed, 1 => (blocks(), blocks())]
}
