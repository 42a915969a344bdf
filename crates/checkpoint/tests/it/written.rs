//! Deltas that people write: the grammar of instructions, tables alone, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{fs, path::Path};

use afterimage_checkpoint::{
    Category, Checkpoint, CheckpointDelta, ErrorKind, History, ProblemKind, SectionKind, apply,
    lint_against, lint_delta, preview,
};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The example of the specification, taken from the specification itself; `None` without it.
fn example() -> Option<String> {
    let path = afterimage_testkit::data::beside("specs/checkpoint-delta-format.md");
    let Ok(text) = fs::read_to_string(&path) else {
        assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none(), "no {}", path.display());
        eprintln!("skipped: no {}", path.display());
        return None;
    };
    let example = text.split("\n## Example\n").nth(1)?.split("```markdown\n").nth(1)?;
    Some(format!("{}\n", example.split("\n```").next()?))
}

/// The project's checkpoint before the example, with the phases by the names that it gives them.
fn before_example(delta: &CheckpointDelta) -> (Vec<String>, Checkpoint) {
    let phases: Vec<String> = delta.transitions().into_iter().map(|change| change.item).collect();
    let text = phases.iter().enumerate().fold(fixture("before-example.md"), |text, (at, name)| {
        text.replace(&format!("PHASE-{}", at + 3), name)
    });
    (phases, Checkpoint::parse(text).unwrap())
}

#[test]
fn the_example_of_the_specification_is_refused_for_the_one_part_that_it_says_no_place_for() {
    let Some(text) = example() else { return };
    let delta = CheckpointDelta::parse(text).unwrap();
    assert_eq!(lint_delta(delta.document()), []);
    assert_eq!(delta.categories(), [Category::Value, Category::Artifact, Category::Progress]);
    let (_, before) = before_example(&delta);
    let found = lint_against(&delta, &before);
    let [found] = found.as_slice() else { panic!("{found:#?}") };
    assert!(delta.document().line(found.line).starts_with("- 3 game modes"), "{found}");
    assert_eq!(found.message, "found 4 entries under \"New Functionality\"");
    let expected = "an instruction such as `Append new functionality to SECTION`, or the name of a \
                    section over what is added";
    assert_eq!(found.expected, expected);
    let error = apply(&before, &delta).unwrap_err();
    assert_eq!(error.place().line, Some(found.line as u64));
}

#[test]
fn the_specifications_example_applies_once_every_entry_has_a_place() {
    let Some(text) = example() else { return };
    let text = format!("{text}6. Append new functionality to Decisions\n");
    let delta = CheckpointDelta::parse(text).unwrap();
    let (phases, before) = before_example(&delta);
    let after = apply(&before, &delta).unwrap();
    let rows = delta.text().lines().filter(|line| line.starts_with("| `src/"));
    let rows: Vec<String> =
        rows.map(|row| format!("\n{}", row.replacen("` | ", "` | created | ", 1))).collect();
    assert_eq!(rows.len(), 6);
    let bullets: Vec<&str> = delta.text().lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(bullets.len(), 4);
    let trail = "| `src/pictures.rs` | created | Pictures with three tries |";
    let penalty = "- Penalty: five seconds for each wrong field";
    let expected = before
        .text()
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
        // 6. Append new functionality to Decisions
        .replace(penalty, &format!("{penalty}\n{}", bullets.join("\n")))
        // What Modified says of Play-By-Play, and no instruction does.
        .replace("Phases 1-2 complete", "Phases 1-3 complete")
        // And it is the checkpoint that the delta leads to.
        .replace("checkpoint: chk-002", "checkpoint: chk-003")
        .replace("parent: chk-001", "parent: chk-002")
        .replace("created: 2025-12-14T12:00:00Z", "created: 2025-12-14T16:00:00Z");
    assert_eq!(after.text(), expected);
    // In a history the two follow each other, and only the parent of the first is not there.
    let files = [before.document(), after.document(), delta.document()];
    let files = files.into_iter().enumerate().map(|(at, file)| (format!("{at}.md"), file.clone()));
    let history = History::new(files);
    assert_eq!(history.order(), ["chk-001", "chk-002", "chk-003"]);
    let kinds: Vec<ProblemKind> = history.problems().iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::Gap]);
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
    assert_eq!(after.parent(), Some("a"));
    let is_other = |line: &&str| !line.starts_with("parent: ");
    let lines = |text: &str| -> Vec<String> {
        text.lines().skip(3).filter(is_other).map(str::to_owned).collect()
    };
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
    check("Append to Decisions: \"Queue: none\"", &[], &["- Queue: none"]);
    check("Add \"Phase 3\" to Current State as Ready", &[], &["- Phase 3 → Ready"]);
    check("Append to Decisions:\n   - One\n     - Two", &[], &["- One", "  - Two"]);
    check(
        "Append to Artifact Trail:\n   | `c.rs` | created | New |",
        &[],
        &["| `c.rs` | created | New |"],
    );
    check("Replace Next Actions with \"Ship it\"", &["- Measure"], &["- Ship it"]);
    check(
        "Replace the Problem section with \"A slow start\"",
        &["A slow *query*."],
        &["A slow start"],
    );
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
    check("Move Measure from Next Actions to Decisions", &[""], &[]);
    check("Mark Phase 2 as Done", &["- Phase 2 → Open"], &["- Phase 2 → Done"]);
    check(
        "Mark `b.rs` in Artifact Trail as closed",
        &["| `b.rs` | modified | Tests |"],
        &["| `b.rs` | closed | Tests |"],
    );
    check("Set anchor to two", &["anchor: one"], &["anchor: two"]);
    check("Set `branch` to main", &[], &["branch: main"]);
}

#[test]
fn words_take_the_form_of_where_they_go() {
    check("Append \"c.rs\" to Artifact Trail", &[], &["| c.rs |  |  |"]);
    check(
        "Append \"`c.rs`: Queue\" to Artifact Trail as created",
        &[],
        &["| `c.rs` | created | Queue |"],
    );
    check("Replace Problem with \"\"", &["A slow *query*."], &[]);
    check("Add \"lines of code\" to Decisions", &[], &["- lines of code"]);
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
        17,
        "or the name of a section over what is added, found 1 entry under \"Elsewhere\"",
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

/// Everything that a delta with this body is refused for: its lines and messages.
fn refusals(body: &str) -> Vec<String> {
    let before = Checkpoint::parse(BASE).unwrap();
    let delta = delta(body);
    let said = preview(&before, &delta);
    let found: Vec<String> = said
        .refusals()
        .iter()
        .map(|error| format!("{}: {}", error.place().line.unwrap(), error.message()))
        .collect();
    // What lint says beforehand is what apply refuses.
    let lint = lint_against(&delta, &before);
    let lines: Vec<u64> = lint.iter().map(|found| found.line as u64).collect();
    let refused: Vec<u64> = said.refusals().iter().map(|e| e.place().line.unwrap()).collect();
    assert_eq!(lines, refused);
    assert_eq!(apply(&before, &delta).is_err(), !found.is_empty());
    if let Err(error) = apply(&before, &delta) {
        assert_eq!(error.place().line, Some(lines[0]));
    }
    found
}

#[track_caller]
fn refuses(body: &str, expected: &[(u64, &str)]) {
    let found = refusals(body);
    let is_right = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, (line, part))| {
            found.starts_with(&format!("{line}: ")) && found.contains(part)
        });
    assert!(is_right, "{body}\nexpected {expected:#?}, found {found:#?}");
}

#[test]
fn a_finding_quotes_the_delta_whole_whatever_words_it_holds() {
    let before = Checkpoint::parse(BASE).unwrap();
    let found = |body: &str| {
        let found = lint_against(&delta(body), &before).into_iter().next().unwrap();
        (found.message, found.expected)
    };
    let sentence = "Keep what was expected here, found in haste";
    let (message, expected) = found(&format!("## Merge Instructions\n\n1. {sentence}\n"));
    assert_eq!(message, format!("found {sentence:?}"));
    assert!(
        expected.starts_with("an instruction such as `Append CONTENT to SECTION`"),
        "{expected}"
    );
    let (message, expected) = found("## Changes\n\n### Removed\n\n- a: expected b, found c\n");
    assert_eq!(message, "the checkpoint has no entry \"a: expected b, found c\"");
    assert_eq!(expected, "");
}

/// A body with these changes and these instructions; the changes begin at line 14.
fn told(changes: &str, instructions: &str) -> String {
    format!("## Changes\n\n{changes}\n\n## Merge Instructions\n\n{instructions}\n")
}

#[test]
fn a_declared_change_that_no_instruction_names_is_carried_out_too() {
    let changes = "### Added\n\n**Decisions:**\n- Queue: none\n\n### Modified\n\n\
                   | Section | Before | After |\n|---|---|---|\n| Decisions / Store | SQLite | LMDB |\n\n\
                   ### Removed\n\n- Cache: none\n\n### Status Transitions\n\n\
                   | Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |";
    let (gone, come) = effect(&delta(&told(changes, "1. Replace Next Actions with \"Ship\"")));
    assert_eq!(gone, ["- Store: SQLite", "- Cache: none", "- Phase 2 → Open", "- Measure"]);
    assert_eq!(come, ["- Store: LMDB", "- Queue: none", "- Phase 2 → Done", "- Ship"]);
}

#[test]
fn a_declared_change_that_an_instruction_has_made_is_not_made_twice() {
    let changes = "### Added\n\n**Decisions:**\n- Queue: none\n\n**New files:**\n\
                   | File | Purpose |\n|---|---|\n| `c.rs` | Queue |\n\n### Modified\n\n\
                   | Section | Before | After |\n|---|---|---|\n\
                   | Next Actions | Measure | Measure twice |\n| anchor | one | two |\n\n\
                   ### Removed\n\n- Cache: none\n\n### Status Transitions\n\n\
                   | Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |";
    let orders = "1. Append \"Queue: none\" to Decisions\n\
                  2. Append to Artifact Trail:\n   | `c.rs` | created | Queue |\n\
                  3. Replace \"Measure\" with \"Measure twice\" in Next Actions\n\
                  4. Remove Cache from Decisions\n5. Mark Phase 2 as Done\n6. Set anchor to two";
    let (gone, come) = effect(&delta(&told(changes, orders)));
    assert_eq!(gone, ["anchor: one", "- Cache: none", "- Phase 2 → Open", "- Measure"]);
    assert_eq!(
        come,
        [
            "anchor: two",
            "- Queue: none",
            "| `c.rs` | created | Queue |",
            "- Phase 2 → Done",
            "- Measure twice"
        ]
    );
}

#[test]
fn words_that_name_nothing_the_delta_declares_are_refused_and_never_written() {
    let none = |order: &str, part: &str| {
        refuses(&format!("## Merge Instructions\n\n1. {order}\n"), &[(14, part)]);
    };
    let quoted = "expected words in quotation marks, or the label or an entry of Added, found";
    none("Add the new files to the artifact trail.", quoted);
    none("Append to Artifact Trail: the new files", quoted);
    none("Replace Decisions with the new decisions", quoted);
    none("Replace Next Actions: the tasks of Phase 4", quoted);
    none("Update Next Actions to point to Phase 4.", "expected an instruction such as");
    none("Update everything", "expected `Update status table`, or the name of a section");
    none("Update Next Actions", "expected `Replace Next Actions with CONTENT`");
    none("Update the status table", "the delta has no Status Transitions");
    none("Set Phase3 to Done", "expected a field of the front matter");
    none("Replace \"SQLite\" with LMDB in Decisions", "expected an instruction such as");
    none("Add section Risks to Decisions", "expected an instruction such as");
    none("Remove Cache from Decisions\n   - and Store", "expected an instruction such as");
    none("Append \"x\" to Decisions:\n   - y", "expected one content");
    none("Append \"| `c.rs` | new | x |\" to Artifact Trail as created", "the state in the row");
}

#[test]
fn articles_and_new_are_no_part_of_the_label_that_words_mean() {
    let added = "### Added\n\n**New Files Created:**\n- `c.rs`: Queue\n\n**New Functions:**\n- f";
    let orders =
        "1. Add the new files to the artifact trail.\n2. Append the functions to Decisions";
    let (_, come) = effect(&delta(&told(added, orders)));
    assert_eq!(come, ["- f", "| `c.rs` | created | Queue |"]);
    let orders = "1. Append the new to Decisions\n2. Append functions to Decisions";
    refuses(
        &told(added, orders),
        &[(17, "`Append new files"), (24, "or an entry of Added, found \"the new\"")],
    );
    let both = added.replace("Functions", "Files Read");
    refuses(
        &told(&both, "1. Append new files to Decisions"),
        &[
            (17, "found 1 entry under"),
            (20, "found 1 entry under"),
            (24, "\"new files\", which fits new files created and new files read"),
        ],
    );
}

#[test]
fn update_and_a_section_carry_out_the_rows_about_that_section() {
    let changes = "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                   | Next Actions | Measure | Ship |\n\n### Status Transitions\n\n\
                   | Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |";
    let (gone, come) =
        effect(&delta(&told(changes, "1. Update Next Actions\n2. Update phase status table")));
    assert_eq!(gone, ["- Phase 2 → Open", "- Measure"]);
    assert_eq!(come, ["- Phase 2 → Done", "- Ship"]);
}

#[test]
fn what_nothing_reads_is_refused_with_its_line() {
    let order = "1. Set anchor to two";
    refuses(
        &told("### Added\n\n- x", &format!("First this:\n\n{order}\n\nThen remove the cache.")),
        &[
            (16, "found 1 entry without a label"),
            (20, "expected an item of the list of instructions, found \"First this:\""),
            (24, "expected an item of the list of instructions, found \"Then remove the cache.\""),
        ],
    );
    refuses(&told("- Cache: none goes", order), &[(14, "`### Removed` or `### Status")]);
    refuses(
        &told("### Modified\n\nThe store is LMDB now.", order),
        &[(16, "expected a row of a table with Before and After")],
    );
    refuses(
        &told(
            "### Modified\n\n| Section | After | Before |\n|---|---|---|\n| anchor | one | two |",
            order,
        ),
        &[(16, "expected the columns Section/Field")],
    );
    refuses(
        &told(
            "### Removed\n\nNone.\n\n#### Status Transitions\n\n| Item | Before |\n|---|---|\n| x | y |",
            order,
        ),
        &[(20, "expected the columns"), (22, "expected three cells"), (22, "no table or list")],
    );
    refuses(
        &format!("{}\n## New Items\n\n- Queue: none\n", told("### Removed\n\n- Cache", order)),
        &[(22, "`### Added` inside of `## Changes`, found \"New Items\"")],
    );
    refuses(
        &format!("{}\n### Removed\n\n- Store\n", told("### Removed\n\n- Cache", order)),
        &[(22, "expected one section Removed, found a second one")],
    );
    refuses(
        &told("### Added\n\n**Decisions:**", order),
        &[(16, "expected entries below \"Decisions\"")],
    );
    // What says that there is nothing declares nothing.
    let nothing = "### Added\n\nNone.\n\n### Modified\n\nNo changes.\n\n### Removed\n\n- (none)";
    assert_eq!(refusals(&told(nothing, order)), Vec::<String>::new());
}

#[test]
fn a_header_that_is_not_at_the_beginning_is_found_and_refused() {
    let before = Checkpoint::parse(BASE).unwrap();
    let whole = delta("## Merge Instructions\n\n1. Set anchor to two\n");
    let sentence = format!("Here is the delta:\n\n{}", whole.text());
    let fenced = format!("Sure.\n\n```markdown\n{}```\n", whole.text());
    for (text, line, part) in [
        (sentence, 3, "the front matter of the delta is not at its beginning"),
        (fenced, 3, "the delta stands in a code block, behind the fence \"```markdown\""),
    ] {
        let delta = CheckpointDelta::parse(text).unwrap();
        let error = apply(&before, &delta).unwrap_err();
        assert_eq!(error.place().line, Some(line), "{error}");
        assert!(error.message().starts_with(part), "{error}");
        let found = lint_delta(delta.document());
        assert!(found.iter().any(|f| f.code == "front-matter-place" && f.line == 3), "{found:#?}");
    }
    let late = Checkpoint::parse(format!("\n{BASE}")).unwrap();
    let error = apply(&late, &whole).unwrap_err();
    assert_eq!(error.place().line, Some(4));
    assert!(error.message().contains("line 2 of the checkpoint"), "{error}");
}

#[test]
fn an_instruction_that_says_another_target_than_the_header_is_refused() {
    refuses(
        "## Merge Instructions\n\n1. Set checkpoint to c\n",
        &[(5, "expected `checkpoint` to be \"b\"")],
    );
    check("Set checkpoint to b", &[], &[]);
}

#[test]
fn columns_of_files_fit_by_what_the_format_calls_them_and_others_are_refused() {
    let added = |head: &str, row: &str| {
        format!("### Added\n\n**Touched files:**\n| {head} |\n|---|---|---|\n| {row} |")
    };
    let order = "1. Append files to Artifact Trail";
    let (_, come) = effect(&delta(&told(
        &added("File | Action | Description", "`c.rs` | moved | Queue"),
        order,
    )));
    assert_eq!(come, ["| `c.rs` | moved | Queue |"]);
    let by = "1. Append files to Artifact Trail as deleted";
    let (_, come) = effect(&delta(&told(&added("File | Owner | Why", "`c.rs` |  | Queue"), by)));
    assert_eq!(come, ["| `c.rs` | deleted | Queue |"]);
    refuses(
        &told(&added("File | Owner | Why", "`c.rs` | Ada | Queue"), order),
        &[(23, "found \"Owner\"")],
    );
    refuses(
        &told(&added("File | Action | Description", "`c.rs` | moved | Queue"), by),
        &[(23, "expected one state, found \"moved\" in the row and `as deleted`")],
    );
}

#[test]
fn a_row_that_is_removed_must_say_what_the_checkpoint_says() {
    let removed = |row: &str| {
        format!(
            "## Changes\n\n### Removed\n\n| File | Status | Reason |\n|---|---|---|\n| {row} |\n"
        )
    };
    let (gone, _) = effect(&delta(&removed("`b.rs` | modified | merged")));
    assert_eq!(gone, ["| `b.rs` | modified | Tests |"]);
    refuses(&removed("`b.rs` | created | merged"), &[(18, "expected \"Status\" of \"`b.rs`\"")]);
}

#[test]
fn a_section_comes_or_goes_where_its_label_says_so() {
    let body = "## Changes\n\n### Added\n\n**Risks (new section):**\n- None yet\n\n### Removed\n\n\
                **Next Actions (section removed):**\n- Measure\n";
    let (gone, come) = effect(&delta(body));
    assert_eq!(gone, ["### Next Actions", "- Measure"]);
    assert_eq!(come, ["## Risks", "- None yet"]);
    let body = "## Changes\n\n### Removed\n\n**Decisions (section removed):**\n- Cache: none\n";
    refuses(body, &[(16, "found line 15 of the checkpoint, which Removed does not name")]);
}

#[test]
fn effects_say_the_line_of_the_delta_and_the_section_that_changes() {
    let before = Checkpoint::parse(BASE).unwrap();
    let body = told("### Removed\n\n- Cache: none", "1. Append \"x\" to Current State");
    let delta = delta(&body);
    let said = preview(&before, &delta);
    let effects: Vec<String> = said
        .effects()
        .iter()
        .map(|effect| {
            format!("{} {} -{} +{}", effect.line, effect.section, effect.gone, effect.come)
        })
        .collect();
    assert_eq!(
        effects,
        [
            "20 Current State -0 +1",
            "16 Decisions -1 +0",
            "5 front matter -1 +1",
            "3 front matter -1 +1",
            "4 front matter -0 +1"
        ]
    );
    assert_eq!(said.into_result().unwrap().text(), apply(&before, &delta).unwrap().text());
}

#[test]
fn a_text_that_replaces_another_is_not_added_a_second_time() {
    let changes = "### Added\n\n**Decisions:**\n- Cache: in memory\n\n### Removed\n\n- Cache: none";
    let order = "1. Replace \"Cache: none\" with \"Cache: in memory\" in Decisions";
    let (gone, come) = effect(&delta(&told(changes, order)));
    assert_eq!(
        (gone, come),
        (vec!["- Cache: none".to_owned()], vec!["- Cache: in memory".to_owned()])
    );
}

#[test]
fn a_header_of_the_delta_that_is_not_read_whole_is_refused() {
    let before = Checkpoint::parse(BASE).unwrap();
    let text = delta("## Merge Instructions\n\n1. Set anchor to two\n").text().to_owned();
    for (from, to, line) in [
        ("from: a\n", "from = a\n", 4),
        ("from: a\n", "from: a\nfrom: z\n", 5),
        ("\n---\n\n", "\n\n", 1),
        ("from: a\n", "from: z\n", 4),
    ] {
        let delta = CheckpointDelta::parse(text.replacen(from, to, 1)).unwrap();
        let error = apply(&before, &delta).unwrap_err();
        assert_eq!(error.place().line, Some(line), "{error}");
    }
}

#[test]
fn prose_and_labels_in_added_keep_their_own_place() {
    let added = "### Added\n\n**New files:**\n| File | Purpose |\n|---|---|\n| `c.rs` | Queue |\n\n\
                 **Decisions:** Queue: none\n\n**Next Actions:**\n- Ship\n\nRest.";
    let (_, come) = effect(&delta(&told(added, "1. Append new files to Artifact Trail")));
    assert_eq!(come, ["- Queue: none", "| `c.rs` | created | Queue |", "- Ship", "- Rest."]);
}

#[test]
fn what_modified_says_was_before_is_never_found_inside_of_a_longer_word() {
    let row = |before: &str, after: &str| {
        format!(
            "## Changes\n\n### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                 | Decisions | {before} | {after} |\n"
        )
    };
    refuses(&row("SQL", "X"), &[(18, "expected \"Decisions\" to be or to have once \"SQL\"")]);
    let (gone, come) = effect(&delta(&row("SQLite", "LMDB")));
    assert_eq!((gone[0].as_str(), come[0].as_str()), ("- Store: SQLite", "- Store: LMDB"));
}

#[test]
fn a_removal_counts_as_made_only_where_the_entry_is_gone() {
    let removed = |entry: &str| format!("### Removed\n\n- {entry}");
    let ambiguous = "more than one entry is \"Cache\"";
    // An instruction put a second entry of that name there; the first one still stands.
    let added = format!("### Added\n\n**Decisions:**\n- Cache: in memory\n\n{}", removed("Cache"));
    refuses(&told(&added, "1. Append Cache to Decisions"), &[(21, ambiguous)]);
    refuses(
        &told(&removed("Cache"), "1. Append \"Cache\" to Next Actions"),
        &[(16, "more than one entry is \"Cache\": at line")],
    );
    // It was moved on, and not removed.
    let row = "### Removed\n\n| File | Status |\n|---|---|\n| `b.rs` | modified |";
    refuses(
        &told(row, "1. Mark `b.rs` as closed"),
        &[(18, "expected \"Status\" of \"`b.rs`\" to be \"modified\", found \"closed\"")],
    );
    // What an instruction put in the place of the entry is no entry of the checkpoint.
    let orders = "1. Remove Cache from Decisions\n2. Append \"Cache: in memory\" to Decisions";
    refuses(
        &told(&removed("Cache"), orders),
        &[(16, "expected the whole text of the entry that goes, found \"Cache\"")],
    );
    let (gone, come) = effect(&delta(&told(&removed("Cache: none"), orders)));
    assert_eq!((gone[0].as_str(), come[0].as_str()), ("- Cache: none", "- Cache: in memory"));
    // A section that is gone took its entries along, and those of others stay.
    let body =
        told("### Removed\n\n**Next Actions:**\n- Measure", "1. Remove section Next Actions");
    let (gone, come) = effect(&delta(&body));
    assert_eq!((gone.join(" "), come.len()), (" ### Next Actions  - Measure".to_owned(), 0));
}

#[test]
fn a_change_counts_as_made_only_where_the_state_before_is_gone() {
    let states = "### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n\
                  | b.rs | modified | closed |";
    refuses(
        &told(states, "1. Append to Artifact Trail:\n   | `b.rs` | closed | Tests |"),
        &[(18, "expected \"closed\" in the place of \"modified\", found an instruction")],
    );
    // A list of what happened is another section: the state itself still changes.
    let (gone, come) = effect(&delta(&told(states, "1. Add \"b.rs\" to Current State as closed")));
    assert_eq!(gone, ["| `b.rs` | modified | Tests |"]);
    assert_eq!(come, ["| `b.rs` | closed | Tests |", "- b.rs → closed"]);
    let rows = "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                | Decisions | Cache: none | Cache: memory |";
    refuses(
        &told(rows, "1. Append \"Cache: memory\" to Decisions"),
        &[(18, "expected \"Cache: memory\" in the place of \"Cache: none\"")],
    );
}

#[test]
fn a_row_whose_change_fails_is_not_passed_over_for_the_states_of_a_section() {
    let base = BASE.replace("### Current State", "### Phase status");
    let changes = "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                   | Phase status | Phase 9 | Phase 8 |\n\n### Status Transitions\n\n\
                   | Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |";
    let delta = delta(&told(changes, "1. Update phase status"));
    let error = apply(&Checkpoint::parse(base).unwrap(), &delta).unwrap_err();
    assert!(error.message().contains("to be or to have once \"Phase 9\""), "{error}");
}

#[test]
fn words_replace_a_section_only_where_before_is_all_of_it() {
    let row = |section: &str, before: &str, after: &str| {
        format!(
            "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
             | {section} | {before} | {after} |"
        )
    };
    let order = "1. Replace Decisions with the new decisions";
    let part = "expected all of \"Decisions\" in Before, and all that is new in After, or an \
                instruction that names the entry, found \"- Store: SQLite\" at line 15";
    refuses(&told(&row("Decisions", "Cache: none", "Cache: memory"), order), &[(22, part)]);
    let (gone, come) =
        effect(&delta(&told(&row("Decisions", "Store: SQLite Cache: none", "Store: LMDB"), order)));
    assert_eq!(gone, ["- Store: SQLite", "- Cache: none"]);
    assert_eq!(come, ["- Store: LMDB"]);
    let (gone, come) = effect(&delta(&told(
        &row("Next Actions", "Measure", "Ship"),
        "1. Replace Next Actions with Phase 3 tasks",
    )));
    assert_eq!((gone[0].as_str(), come[0].as_str()), ("- Measure", "- Ship"));
    // A table behind the items is a part of the section too.
    let base = format!("{BASE}\n| Phase | Status |\n|---|---|\n| Phase 1 | Done |\n");
    let body =
        told(&row("Next Actions", "Measure", "Ship"), "1. Replace Next Actions with Phase 3 tasks");
    let error = apply(&Checkpoint::parse(base).unwrap(), &delta(&body)).unwrap_err();
    assert!(error.message().contains("found \"| Phase | Status |\""), "{error}");
}

#[test]
fn entries_of_added_replace_a_section_that_grows_only_where_removed_says_what_goes() {
    let order = "1. Replace Decisions with the new decisions";
    let added = "### Added\n\n**Decisions:**\n- Store: LMDB";
    refuses(&told(added, order), &[(21, "found \"- Store: SQLite\" at line 15 of the checkpoint")]);
    let removed = format!("{added}\n\n### Removed\n\n- Store: SQLite\n- Cache");
    let (gone, come) = effect(&delta(&told(&removed, order)));
    assert_eq!(gone, ["- Store: SQLite", "- Cache: none"]);
    assert_eq!(come, ["- Store: LMDB"]);
    // Where things stand, and what comes next, is replaced by its nature.
    let tasks = "### Added\n\n**Tasks of phase 3:**\n- Ship\n- Rest";
    let (gone, come) =
        effect(&delta(&told(tasks, "1. Replace Next Actions with tasks of phase 3")));
    assert_eq!((gone.join(" "), come.join(" ")), ("- Measure".into(), "- Ship - Rest".into()));
}

#[test]
fn a_quote_that_is_only_the_first_line_of_an_entry_is_refused() {
    let added = "### Added\n\n**Decisions:**\n- Queue: none\n  until Phase 3";
    let part = "expected all of the entry of Added at line 17, found only its first line";
    refuses(&told(added, "1. Append \"Queue: none\" to Decisions"), &[(22, part)]);
    refuses(&told(added, "1. Append to Decisions:\n   - Queue: none"), &[(22, part)]);
    let (_, come) = effect(&delta(&told(added, "1. Append Queue to Decisions")));
    assert_eq!(come, ["- Queue: none", "  until Phase 3"]);
    let whole = "1. Append to Decisions:\n   - Queue: none\n     until Phase 3";
    let (_, come) = effect(&delta(&told(added, whole)));
    assert_eq!(come, ["- Queue: none", "  until Phase 3"]);
}

/// What a delta with this body makes of another checkpoint than the usual one, as text.
fn made(base: &str, body: &str) -> Result<String, String> {
    let base = Checkpoint::parse(base).unwrap();
    let delta = delta(body);
    let refused = !lint_against(&delta, &base).is_empty();
    let made = apply(&base, &delta);
    assert_eq!(refused, made.is_err(), "lint and apply agree");
    made.map(|after| after.text().to_owned()).map_err(|error| error.message().to_owned())
}

#[test]
fn an_exact_delta_from_another_checkpoint_is_refused_with_and_without_fingerprints() {
    let body =
        "## Merge Instructions\n\n1. Replace line 9: `A slow *query*.` with `A slow start.`\n";
    assert!(apply(&Checkpoint::parse(BASE).unwrap(), &delta(body)).is_ok());
    let other = BASE.replace("checkpoint: a", "checkpoint: z");
    let error = made(&other, body).unwrap_err();
    assert!(error.contains("expected the checkpoint \"a\", found \"z\""), "{error}");
    let text = delta(body).text().to_owned();
    let base = Checkpoint::parse(BASE).unwrap();
    for (text, line) in [
        (format!("Here it is:\n\n{text}"), 3),
        (text.replacen("from: a\n", "from: a\nfrom: z\n", 1), 5),
    ] {
        let delta = CheckpointDelta::parse(text).unwrap();
        assert_eq!(lint_against(&delta, &base).first().map(|found| found.line), Some(line));
        assert!(apply(&base, &delta).is_err());
    }
}

#[test]
fn an_item_goes_only_where_all_that_stands_below_it_is_said_too() {
    let base = BASE.replace("- Cache: none\n", "- Cache: none\n  for now\n- Pool\n  - Size: 10\n");
    let part = "found \"- Size: 10\" at line 19 of the checkpoint";
    let alone = made(&base, "## Changes\n\n### Removed\n\n- Pool\n").unwrap_err();
    assert!(alone.contains(part), "{alone}");
    let order = "## Merge Instructions\n\n1. Remove Pool from Decisions\n";
    assert!(made(&base, order).unwrap_err().contains(part));
    let whole = "### Removed\n\n- Pool\n  - Size: 10";
    assert!(!made(&base, &format!("## Changes\n\n{whole}\n")).unwrap().contains("Pool"));
    let both = told(whole, "1. Remove Pool from Decisions");
    assert!(!made(&base, &both).unwrap().contains("Pool"));
    // A second line of the item's own text goes with it.
    let wrapped = made(&base, "## Changes\n\n### Removed\n\n- Cache\n").unwrap();
    assert!(!wrapped.contains("for now"), "{wrapped}");
}

#[test]
fn an_entry_of_added_goes_once_to_a_section_and_never_past_its_label() {
    let added = "### Added\n\n**Decisions:**\n- Queue: none";
    let again = "expected another entry of Added, found the one at line 17";
    let twice = "1. Append Queue to Decisions\n2. Append \"Queue: none\" to Decisions";
    refuses(&told(added, twice), &[(22, again)]);
    let twice = "1. Append decisions to Decisions\n2. Append decisions to Decisions";
    refuses(&told(added, twice), &[(22, again)]);
    refuses(
        &told(added, "1. Append Queue to Next Actions"),
        &[(21, "expected \"Decisions\", which is the label over line 17")],
    );
    let new = added.replace("Decisions", "News");
    let two = "1. Append Queue to Decisions\n2. Append Queue to Next Actions";
    let (_, come) = effect(&delta(&told(&new, two)));
    assert_eq!(come, ["- Queue: none", "- Queue: none"]);
}

#[test]
fn a_name_in_quotes_means_the_entry_of_added_that_it_names() {
    let added = "### Added\n\n**New files:**\n| File | Purpose |\n|---|---|\n| `c.rs` | Queue |";
    let (_, come) = effect(&delta(&told(added, "1. Append `c.rs` to Artifact Trail")));
    assert_eq!(come, ["| `c.rs` | created | Queue |"]);
    let added = "### Added\n\n**News:**\n- Queue: none";
    let (_, come) = effect(&delta(&told(added, "1. Append \"Queue\" to Decisions")));
    assert_eq!(come, ["- Queue: none"]);
    // What belongs elsewhere is not meant: the words stand for themselves.
    let added = "### Added\n\n**Decisions:**\n- Queue: none";
    let (_, come) = effect(&delta(&told(added, "1. Append \"Queue\" to Next Actions")));
    assert_eq!(come, ["- Queue: none", "- Queue"]);
}

#[test]
fn what_moves_takes_the_form_of_its_new_place() {
    let numbered = BASE.replace("- Measure", "1. Measure\n2. Ship");
    let order = |order: &str| format!("## Merge Instructions\n\n1. {order}\n");
    let text = made(&numbered, &order("Move Measure to Decisions")).unwrap();
    assert!(text.contains("- Cache: none\n- Measure\n"), "{text}");
    let text = made(&numbered, &order("Move Cache to Next Actions")).unwrap();
    assert!(text.ends_with("2. Ship\n3. Cache: none\n"), "{text}");
    let text = made(BASE, &order("Move Cache to Artifact Trail")).unwrap();
    assert!(text.contains("| Tests |\n| Cache |  | none |\n"), "{text}");
    let table = "\n## Links\n\n| Type | Reference | Hint |\n|---|---|---|\n";
    let error = made(&format!("{BASE}{table}"), &order("Move `b.rs` to Links")).unwrap_err();
    assert!(error.contains("expected one of the columns Type, Reference, Hint"), "{error}");
    let table = table.replace("Type | Reference | Hint", "Status | File | Key Change");
    let text = made(&format!("{BASE}{table}"), &order("Move `b.rs` to Links")).unwrap();
    assert!(text.ends_with("|---|---|---|\n| modified | `b.rs` | Tests |\n"), "{text}");
}

#[test]
fn a_state_is_no_name_and_what_a_colon_parts_is_a_state_only_where_the_delta_says_so() {
    refuses("## Changes\n\n### Removed\n\n- modified\n", &[(16, "has no entry \"modified\"")]);
    refuses("## Merge Instructions\n\n1. Mark modified as closed\n", &[(14, "the state of")]);
    let order = "1. Mark Store as deprecated";
    refuses(
        &format!("## Merge Instructions\n\n{order}\n"),
        &[(14, "or a row of Status Transitions with it, found \"SQLite\" at line 15")],
    );
    let states = "### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n\
                  | Store | SQLite | deprecated |";
    let (_, come) = effect(&delta(&told(states, order)));
    assert_eq!(come, ["- Store: deprecated"]);
}

#[test]
fn a_sentence_that_goes_on_with_another_instruction_is_refused() {
    let part = "expected one instruction in each item of the list";
    for order in [
        "Mark Phase 2 as Done and remove Cache from Decisions",
        "Rename Problem to Question, then move Measure to Decisions",
        "Change Status of b.rs in Artifact Trail to closed; update the status table",
        "Set anchor to two. Add \"x\" to Decisions",
        "Add section Risks and append the risks",
    ] {
        refuses(&format!("## Merge Instructions\n\n1. {order}\n"), &[(14, part)]);
    }
    let two = "## Merge Instructions\n\n1. Set anchor to two and parent to a\n";
    refuses(two, &[(14, "expected an instruction such as")]);
    let value = "\"Search and replace text\"";
    check(
        &format!("Change Key Change of b.rs in Artifact Trail to {value}"),
        &["| `b.rs` | modified | Tests |"],
        &["| `b.rs` | modified | Search and replace text |"],
    );
}

#[test]
fn sentences_that_people_write_for_the_rules_of_the_grammar_are_read() {
    check("Replace Next Actions with:\n   - Ship", &["- Measure"], &["- Ship"]);
    check("Remove the Next Actions section", &["", "### Next Actions", "", "- Measure"], &[]);
    check("**Append** \"Queue: none\" to **Decisions**", &[], &["- Queue: none"]);
    check("Add a new section called Risks:\n   - None", &[], &["", "## Risks", "", "- None"]);
    refuses("## Merge Instructions\n\n1. Add a new section for risks\n", &[(14, "such as")]);
}

#[test]
fn comments_declare_nothing() {
    let added = "### Added\n\n<!-- a -->\n\n**Decisions:**\n- Queue: none\n\n<!-- b\n\n- c -->\n\n\
                 ### Modified\n\n<!-- none -->";
    let orders = "<!-- in order -->\n\n1. Append Queue to Decisions\n\n<!--\n2. Remove Cache\n-->";
    let (gone, come) = effect(&delta(&told(added, orders)));
    assert_eq!((gone.len(), come), (0, vec!["- Queue: none".to_owned()]));
    refuses(
        &told("### Modified\n\n<!-- a --> Store is LMDB", "1. Set anchor to two"),
        &[(16, "expected a row of a table")],
    );
}

#[test]
fn rows_that_say_nothing_change_nothing_and_rows_that_empty_an_entry_are_refused() {
    let row = |row: &str| {
        format!("### Modified\n\n| Section | Before | After |\n|---|---|---|\n| {row} |")
    };
    let order = "1. Set anchor to two";
    for nothing in ["None | - | -", "- | - | -", "N/A | | "] {
        let (gone, come) = effect(&delta(&told(&row(nothing), order)));
        assert_eq!((gone.join(" "), come.join(" ")), ("anchor: one".into(), "anchor: two".into()));
    }
    refuses(&told(&row("... | ... | ..."), order), &[(18, "has no entry \"...\"")]);
    refuses(
        &told(&row("Decisions | Cache: none | "), order),
        &[(18, "expected the text in After, or the entry in Removed")],
    );
}

#[test]
fn text_below_a_title_and_a_heading_over_nothing_are_refused() {
    let body = "## Merge Instructions\n\n1. Set anchor to two\n";
    let titled = delta(&format!("# The delta\n\nRemove the cache, too.\n\n{body}"));
    let base = Checkpoint::parse(BASE).unwrap();
    let error = apply(&base, &titled).unwrap_err();
    assert!(error.message().contains("found \"Remove the cache, too.\""), "{error}");
    refuses(&format!("{body}\n## Remove Cache from Decisions\n"), &[(16, "found \"Remove Cache")]);
    let set_in = CheckpointDelta::parse(format!(" {}", delta(body).text())).unwrap();
    let error = apply(&base, &set_in).unwrap_err();
    assert!(error.message().contains("the front matter of the delta is not at"), "{error}");
}

#[test]
fn the_header_of_the_result_gets_no_time_that_is_none_and_the_parent_as_it_is_called() {
    let text = delta("## Merge Instructions\n\n1. Set anchor to two\n").text().to_owned();
    let base = Checkpoint::parse(BASE).unwrap();
    let vague = text.replace("2026-01-06T10:00:00Z", "yesterday");
    let error = apply(&base, &CheckpointDelta::parse(vague).unwrap()).unwrap_err();
    assert_eq!(error.place().line, Some(3));
    let upper = CheckpointDelta::parse(text.replace("from: a\n", "from: A\n")).unwrap();
    assert_eq!(apply(&base, &upper).unwrap().parent(), Some("a"));
}

#[test]
fn what_the_checkpoint_has_already_is_not_added_a_second_time() {
    let row = "**Artifact Trail:**\n| File | Status | Key Change |\n|---|---|---|\n\
               | b.rs | modified | More tests |";
    let there = "expected what \"Artifact Trail\" does not have yet, or a row of Modified for what it \
                 has, found \"| `b.rs` | modified | Tests |\"";
    refuses(&format!("## Changes\n\n### Added\n\n{row}\n"), &[(19, there)]);
    let files = row.replace("Artifact Trail", "New files");
    let order = "1. Append new files to Artifact Trail";
    refuses(&told(&format!("### Added\n\n{files}"), order), &[(23, there)]);
    // Where the row before goes, the new one takes its place.
    let both = format!("## Changes\n\n### Added\n\n{row}\n\n### Removed\n\n- `b.rs`\n");
    assert_eq!(effect(&delta(&both)).1, ["| b.rs | modified | More tests |"]);
    refuses(
        "## Changes\n\n### Added\n\n**Decisions:**\n- Cache: none\n",
        &[(17, "found \"- Cache: none\" at line 16 of the checkpoint")],
    );
    // The same may happen again.
    let base = BASE.replace("### Current State", "### Play-By-Play");
    let body = "## Changes\n\n### Added\n\n**Play-By-Play:**\n- Phase 1 → Done\n";
    assert_eq!(made(&base, body).unwrap().matches("- Phase 1 → Done").count(), 2);
}

#[test]
fn a_section_gets_no_name_that_another_one_has() {
    let order = "## Merge Instructions\n\n1. Rename Decisions to Current State\n";
    refuses(order, &[(14, "the section \"Current State\" is there already")]);
    check("Rename Decisions to DECISIONS", &["### Decisions"], &["### DECISIONS"]);
}

#[test]
fn a_label_that_runs_into_the_text_above_it_is_refused_with_its_line() {
    for (entries, line) in [
        ("**Decisions:**\n- A: b\n**User Rules:**\n- y\n", 18),
        ("**Decisions:**\n- A: b\n- C: d\nUser Rules:\n- y\n", 19),
        ("**Next Actions:** z\n**User Rules:** y\n", 17),
        (
            "**Artifact Trail:**\n\n| File | Status | Key Change |\n|---|---|---|\n\
          | c.rs | created | C |\n**User Rules:**\n- y\n",
            21,
        ),
    ] {
        let text = delta(&format!("## Changes\n\n### Added\n\n{entries}"));
        let base = Checkpoint::parse(BASE).unwrap();
        let error = apply(&base, &text).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("an empty line before the label"), "{entries}: {shown}");
        assert_eq!(error.place().line, Some(line), "{entries}: {shown}");
    }
    let inside = "## Changes\n\n### Added\n\n**Decisions:**\n- A: b\n  **Why:** c\n";
    assert!(effect(&delta(inside)).1.join("\n").contains("**Why:** c"));
}
