//! Deltas that people write: the grammar of instructions, tables alone, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{fs, path::Path};

use afterimage::{
    ErrorKind,
    checkpoint::{Category, Checkpoint, CheckpointDelta, SectionKind, apply, lint_delta},
};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The example of the specification, taken from the specification itself; `None` without it.
fn example() -> Option<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/specs/checkpoint-delta-format.md");
    let Ok(text) = fs::read_to_string(&path) else {
        assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none(), "no {}", path.display());
        eprintln!("skipped: no {}", path.display());
        return None;
    };
    let example = text.split("\n## Example\n").nth(1)?.split("```markdown\n").nth(1)?;
    Some(format!("{}\n", example.split("\n```").next()?))
}

#[test]
fn the_example_of_the_specification_lints_clean_and_has_the_five_effects_that_it_names() {
    let Some(text) = example() else { return };
    let delta = CheckpointDelta::parse(text).unwrap();
    assert_eq!(lint_delta(delta.document()), []);
    assert_eq!(delta.categories(), [Category::Value, Category::Artifact, Category::Progress]);
    // The project's checkpoint has the phases by the names that the example gives them.
    let named = |text: String, phases: &[String]| {
        phases
            .iter()
            .enumerate()
            .fold(text, |text, (at, name)| text.replace(&format!("PHASE-{}", at + 3), name))
    };
    let phases: Vec<String> = delta.transitions().into_iter().map(|change| change.item).collect();
    let text = named(fixture("before-example.md"), &phases);
    let before = Checkpoint::parse(text.clone()).unwrap();
    let after = apply(&before, &delta).unwrap();
    let rows = delta.text().lines().filter(|line| line.starts_with("| `src/"));
    let rows: Vec<String> =
        rows.map(|row| format!("\n{}", row.replacen("` | ", "` | created | ", 1))).collect();
    assert_eq!(rows.len(), 6);
    let trail = "| `src/pictures.rs` | created | Pictures with three tries |";
    let expected = text
        // 1. Append new files to Artifact Trail
        .replace(trail, &format!("{trail}{}", rows.concat()))
        // 2. Add Phase 3 to Play-By-Play as completed
        .replace("- Phase 2 → completed", "- Phase 2 → completed\n- Phase 3 → completed")
        // 3. Replace Current State with Phase 3 complete: what the table says of it
        .replace("Phase 2 done, Phase 3 next", "Phase 3 done, Phase 4 next")
        // 4. Replace Next Actions with Phase 4 tasks: likewise
        .replace("1. Implement game mechanics", "1. Implement levels and progression")
        // 5. Update phase status table
        .replace(&format!("{} | Ready |", phases[0]), &format!("{} | Closed |", phases[0]))
        .replace(&format!("{} | Blocked |", phases[1]), &format!("{} | Ready |", phases[1]))
        // And it is the checkpoint that the delta leads to.
        .replace("checkpoint: chk-002", "checkpoint: chk-003")
        .replace("created: 2025-12-14T12:00:00Z", "created: 2025-12-14T16:00:00Z");
    assert_eq!(after.text(), expected);
}

const BASE: &str = "\
---
checkpoint: a
created: 2026-01-05T10:00:00Z
anchor: one
---

## Problem

A slow *query*.

## Essential Information

### Decisions

- Store: SQLite
- Cache: none

### Artifact Trail

| File | Status | Key Change |
|------|--------|------------|
| `a.rs` | created | The `x \\| y` parser |
| `b.rs` | modified | Tests |

### Current State

- Phase 1 → Done
- Phase 2 → Open

### Next Actions

- Measure
";

/// A delta from `a` to `b` with this body.
fn delta(body: &str) -> CheckpointDelta {
    let head = "---\ndelta: a-to-b\ncreated: 2026-01-06T10:00:00Z\nfrom: a\nto: b\n---\n\n## Summary\n\nX.\n\n";
    CheckpointDelta::parse(format!("{head}{body}")).unwrap()
}

/// The lines that go and those that come, but for the header's.
fn effect(delta: &CheckpointDelta) -> (Vec<String>, Vec<String>) {
    let before = Checkpoint::parse(BASE).unwrap();
    let after = apply(&before, delta).unwrap();
    assert_eq!((after.id(), after.created()), (Some("b"), Some("2026-01-06T10:00:00Z")));
    let lines = |text: &str| -> Vec<String> { text.lines().skip(3).map(str::to_owned).collect() };
    let (old, new) = (lines(before.text()), lines(after.text()));
    let only = |of: &[String], other: &[String]| {
        let mut other = other.to_vec();
        let mut only = Vec::new();
        for line in of {
            match other.iter().position(|known| known == line) {
                Some(at) => drop(other.remove(at)),
                None => only.push(line.clone()),
            }
        }
        only
    };
    (only(&old, &new), only(&new, &old))
}

#[track_caller]
fn check(instruction: &str, gone: &[&str], come: &[&str]) {
    let found = effect(&delta(&format!("## Merge Instructions\n\n1. {instruction}\n")));
    assert_eq!(
        found,
        (
            gone.iter().map(|l| (*l).to_owned()).collect(),
            come.iter().map(|l| (*l).to_owned()).collect()
        ),
        "{instruction}"
    );
}

#[test]
fn each_rule_of_the_grammar_has_its_effect() {
    check("Append \"Queue: none\" to Decisions", &[], &["- Queue: none"]);
    check("Append to Decisions: Queue: none", &[], &["- Queue: none"]);
    check("Add Phase 3 to Current State as Ready", &[], &["- Phase 3 → Ready"]);
    check("Append to Decisions:\n   - One\n     - Two", &[], &["- One", "  - Two"]);
    check(
        "Append to Artifact Trail:\n   | `c.rs` | created | New |",
        &[],
        &["| `c.rs` | created | New |"],
    );
    check("Replace Next Actions with \"Ship it\"", &["- Measure"], &["- Ship it"]);
    check("Replace the Problem section with A slow start", &["A slow *query*."], &["A slow start"]);
    check(
        "Replace \"SQLite\" with \"LMDB\" in Decisions",
        &["- Store: SQLite"],
        &["- Store: LMDB"],
    );
    check(
        "Update row `b.rs` in Artifact Trail: Status to closed",
        &["| `b.rs` | modified | Tests |"],
        &["| `b.rs` | closed | Tests |"],
    );
    check(
        "Change Key Change of a.rs in Artifact Trail to \"a | b\"",
        &["| `a.rs` | created | The `x \\| y` parser |"],
        &["| `a.rs` | created | a \\| b |"],
    );
    check("Remove Cache from Decisions", &["- Cache: none"], &[]);
    check("Remove `b.rs` from Artifact Trail", &["| `b.rs` | modified | Tests |"], &[]);
    check("Remove section Next Actions", &["", "### Next Actions", "", "- Measure"], &[]);
    check("Add section Risks:\n   - None", &[], &["", "## Risks", "", "- None"]);
    check("Add section Risks after Decisions:\n   - None", &[], &["### Risks", "- None", "", ""]);
    check("Rename section Problem to The Problem", &["## Problem"], &["## The Problem"]);
    check("Move \"Measure\" to Decisions", &[""], &[]);
    check("Set anchor to two", &["anchor: one"], &["anchor: two"]);
}

#[test]
fn words_take_the_form_of_where_they_go() {
    check("Append \"c.rs\" to Artifact Trail", &[], &["| c.rs |  |  |"]);
    check(
        "Append `c.rs`: Queue to Artifact Trail as created",
        &[],
        &["| `c.rs` | created | Queue |"],
    );
    check("Replace Problem with \"\"", &["A slow *query*."], &[]);
    check("Add lines of code to Decisions", &[], &["- lines of code"]);
    let added = "## Changes\n\n### Added\n\n**New files:**\n- `c.rs`: Queue\n- `d.rs`\n\n\
                 ## Merge Instructions\n\n1. Append new files to Artifact Trail\n";
    let (_, come) = effect(&delta(added));
    assert_eq!(come, ["| `c.rs` | created | Queue |", "| `d.rs` | created |  |"]);
    let numbered = BASE.replace("- Measure", "Soon:\n\n  8) Measure\n  9) Ship");
    let body = "## Changes\n\n### Added\n\n**More steps:**\n- Rest\n- Look\n\n\
                ## Merge Instructions\n\n1. Append \"Play\" to Next Actions\n\
                2. Append more steps to Next Actions\n";
    let after = apply(&Checkpoint::parse(numbered).unwrap(), &delta(body)).unwrap();
    let end = "  9) Ship\n  10) Play\n  11) Rest\n  12) Look\n";
    assert!(after.text().ends_with(end), "{}", after.text());
}

#[test]
fn states_change_in_tables_and_in_lists() {
    let body = "## Changes\n\n### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n\
                | Phase 2 | Open | Done |\n| b.rs | modified | closed |\n\n\
                ## Merge Instructions\n\n1. Update the status table\n";
    let (gone, come) = effect(&delta(body));
    assert_eq!(gone, ["| `b.rs` | modified | Tests |", "- Phase 2 → Open"]);
    assert_eq!(come, ["| `b.rs` | closed | Tests |", "- Phase 2 → Done"]);
}

#[test]
fn a_delta_without_instructions_is_applied_from_its_tables() {
    let body = "## Changes\n\n### Added\n\n**Decisions:**\n- Queue: none\n\n**New Files Created:**\n\
                | File | Purpose |\n|---|---|\n| `c.rs` | Queue |\n\n### Modified\n\n\
                | Section/Field | Before | After |\n|---|---|---|\n\
                | Next Actions | Measure | Ship |\n\
                | Decisions / Store | SQLite | LMDB |\n\
                | Artifact Trail / `b.rs` / Key Change | Tests | More tests |\n\
                | anchor | one | two |\n\n### Removed\n\n- Cache\n\n\
                ### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |\n";
    let delta = delta(body);
    let found = lint_delta(delta.document());
    let found: Vec<(&str, usize)> = found.iter().map(|found| (found.code, found.line)).collect();
    assert_eq!(found, [("decision-gone", 29)]);
    let (gone, come) = effect(&delta);
    assert_eq!(
        gone,
        [
            "anchor: one",
            "- Store: SQLite",
            "- Cache: none",
            "| `b.rs` | modified | Tests |",
            "- Phase 2 → Open",
            "- Measure",
        ]
    );
    assert_eq!(
        come,
        [
            "anchor: two",
            "- Store: LMDB",
            "- Queue: none",
            "| `b.rs` | modified | More tests |",
            "| `c.rs` | created | Queue |",
            "- Phase 2 → Done",
            "- Ship",
        ]
    );
}

#[test]
fn what_cannot_be_applied_is_refused_with_its_line_and_changes_nothing() {
    let refused = |body: &str, line: u64, reason: &str| {
        let before = Checkpoint::parse(BASE).unwrap();
        let error = apply(&before, &delta(body)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Instruction);
        assert_eq!(error.place().line, Some(line), "{error}");
        assert!(error.message().contains(reason), "{error}");
    };
    let two = |second: &str| {
        format!("## Merge Instructions\n\n1. Remove Cache from Decisions\n2. {second}\n")
    };
    refused(&two("Append \"x\" to Risks"), 15, "no section \"risks\"; it has Problem");
    refused(&two("Remove Cache from Decisions"), 15, "\"Decisions\" has no entry \"Cache\"");
    refused(&two("Update row z.rs in Artifact Trail: Status to x"), 15, "no entry \"z.rs\"");
    refused(&two("Update row a.rs in Artifact Trail: Owner to x"), 15, "no column \"Owner\"");
    refused(&two("Make it so"), 15, "expected an instruction such as");
    refused(&two("Update the status table"), 15, "no Status Transitions");
    refused(&two("Add section Decisions"), 15, "is there already");
    refused(&two("Set a b to c"), 15, "\"a b\" is no name of a field");
    refused(&two("Rename section Problem to \" \""), 15, "expected a name for the section");
    refused(
        &two("Replace line 99 (Decisions):\n   ```diff\n   -x\n   +y\n   ```"),
        14,
        "names lines",
    );
    let exact = |text: &str| format!("## Merge Instructions\n\n{text}\n");
    refused(
        &exact("1. Replace line 9 (Problem):\n   ```diff\n   -A fast query.\n   +x\n   ```"),
        14,
        "expected line 9 of the checkpoint to be \"A fast query.\"",
    );
    refused(&exact("1. Replace line 9:\n   - no fence"), 15, "fences");
    refused(&exact("1. Replace line 9:\n   ```diff\n   *x\n   ```"), 16, "lines with `-`");
    refused(&exact("1. Remove line 999:\n   ```diff\n   -x\n   ```"), 14, "the checkpoint has");
    refused(&exact("9 lines `00` become 9 `00`."), 14, "a checkpoint of 9 lines");
    let begun = "9 lines `00` become 1Move.\n\n1. Add after line 3: `x`";
    refused(&exact(begun), 14, "N lines `HASH` become M `HASH`.");
    let broken =
        "## Changes\n\n### Modified\n\n| Section | Before | After---|---|\n| Problem | x | y |\n";
    refused(broken, 16, "expected a table");
    let states = "## Changes\n\n### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n| Phase 1 | Open | Done |\n";
    refused(states, 18, "expected \"Phase 1\" to be \"Open\", found \"Done\"");
    let modified = "## Changes\n\n### Modified\n\n| Section | Before | After |\n|---|---|---|\n| Decisions / Store | LMDB | x |\n";
    refused(modified, 18, "expected \"Store\" to have \"LMDB\" once");
    refused(
        "## Changes\n\n### Added\n\n**Elsewhere:**\n- x\n",
        16,
        "expected the name of a section",
    );
    refused("## Changes\n", 1, "expected Merge Instructions");
    let other = BASE.replace("checkpoint: a", "checkpoint: z");
    let error =
        apply(&Checkpoint::parse(other).unwrap(), &delta(&two("Set anchor to x"))).unwrap_err();
    assert_eq!(error.place().line, Some(4));
}

#[test]
fn exact_instructions_that_were_edited_by_hand_need_no_fingerprint() {
    let body = "## Merge Instructions\n\n1. Replace line 9 (Problem):\n   ```diff\n   -A slow *query*.\n   +A slow start.\n   ```\n2. Add after line 16:\n   ```diff\n   +- Queue: none\n   ```\n3. Remove line 35:\n   ```diff\n   -- Measure\n   ```\n";
    let before = Checkpoint::parse(BASE).unwrap();
    let line = |text: &str| 1 + BASE.lines().position(|line| line == text).unwrap();
    let body = body.replace("line 35", &format!("line {}", line("- Measure")));
    let body = body.replace("line 16", &format!("line {}", line("- Cache: none")));
    let after = apply(&before, &delta(&body)).unwrap();
    let expected = BASE
        .replace("A slow *query*.", "A slow start.")
        .replace("- Measure\n", "")
        .replace("none\n", "none\n- Queue: none\n");
    assert_eq!(after.text(), expected);
    assert_eq!(after.body(SectionKind::NextActions).as_deref(), Some(""));
}

#[test]
fn more_work_than_a_delta_by_name_may_take_is_refused() {
    let before = Checkpoint::parse(BASE).unwrap();
    let many = |count: usize| "1. Set anchor to two\n".repeat(count);
    let body = format!("## Merge Instructions\n\n{}", many(20_000));
    assert_eq!(apply(&before, &delta(&body)).unwrap_err().kind(), ErrorKind::Limit);
    let body = format!("## Changes\n\n### Removed\n\n{}", "- x\n".repeat(20_000));
    assert_eq!(apply(&before, &delta(&body)).unwrap_err().kind(), ErrorKind::Limit);
    let body = format!("## Merge Instructions\n\n{}", many(20));
    assert!(apply(&before, &delta(&body)).is_ok());
}
