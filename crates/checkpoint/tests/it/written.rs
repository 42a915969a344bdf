//! Deltas that people write: what they declare, the sentences that direct it, what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::{lint_against, lint_delta};

use std::{fs, path::Path};

use afterimage_checkpoint::{
    Category, Checkpoint, CheckpointDelta, ErrorKind, History, ProblemKind, SectionKind, apply,
    preview,
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

/// The example's checkpoint afterwards, but for the four entries of New Functionality.
fn after_example(delta: &CheckpointDelta, phases: &[String], before: &Checkpoint) -> String {
    let rows = delta.text().lines().filter(|line| line.starts_with("| `src/"));
    let rows: Vec<String> =
        rows.map(|row| format!("\n{}", row.replacen("` | ", "` | created | ", 1))).collect();
    assert_eq!(rows.len(), 6);
    let trail = "| `src/pictures.rs` | created | Pictures with three tries |";
    before
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
        // What Modified says of Play-By-Play, and no instruction does.
        .replace("Phases 1-2 complete", "Phases 1-3 complete")
        // And it is the checkpoint that the delta leads to.
        .replace("checkpoint: chk-002", "checkpoint: chk-003")
        .replace("parent: chk-001", "parent: chk-002")
        .replace("created: 2025-12-14T12:00:00Z", "created: 2025-12-14T16:00:00Z")
}

#[test]
fn the_example_of_the_specification_is_carried_out_whole() {
    let Some(text) = example() else { return };
    let delta = CheckpointDelta::parse(text).unwrap();
    assert_eq!(lint_delta(delta.document()), []);
    assert_eq!(delta.categories(), [Category::Value, Category::Artifact, Category::Progress]);
    let (phases, before) = before_example(&delta);
    assert_eq!(lint_against(&delta, &before), []);
    let after = apply(&before, &delta).unwrap();
    // The bullets under New Functionality become entries of the section of that name.
    let bullets: Vec<&str> = delta.text().lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(bullets.len(), 4);
    let expected = after_example(&delta, &phases, &before);
    let section = format!("\n## New Functionality\n\n{}\n", bullets.join("\n"));
    assert_eq!(after.text(), format!("{expected}{section}"));
    // In a history the two follow each other, and only the parent of the first is not there.
    let files = [before.document(), after.document(), delta.document()];
    let files = files.into_iter().enumerate().map(|(at, file)| (format!("{at}.md"), file.clone()));
    let history = History::new(files);
    assert_eq!(history.order(), ["chk-001", "chk-002", "chk-003"]);
    let kinds: Vec<ProblemKind> = history.problems().iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::Gap]);
    // Where the checkpoint has that section, they go to its end.
    let base = format!("{}\n### New functionality\n\n- Pictures\n", before.text());
    let after = apply(&Checkpoint::parse(base).unwrap(), &delta).unwrap();
    assert!(after.text().ends_with(&format!("\n\n- Pictures\n{}\n", bullets.join("\n"))));
    // And an instruction may name another place.
    let other = format!("{}6. Append new functionality to Decisions\n", delta.text());
    let after = apply(&before, &CheckpointDelta::parse(other).unwrap()).unwrap();
    let penalty = "- Penalty: five seconds for each wrong field";
    let placed = expected.replace(penalty, &format!("{penalty}\n{}", bullets.join("\n")));
    assert_eq!(after.text(), placed);
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
fn each_sentence_of_the_format_has_its_effect() {
    check("Append \"Queue: none\" to Decisions", &[], &["- Queue: none"]);
    check("**Add** \"lines of code\" to **Decisions**", &[], &["- lines of code"]);
    check("Add \"Phase 3\" to Current State as Ready", &[], &["- Phase 3 → Ready"]);
    check("Replace Next Actions with \"Ship it\"", &["- Measure"], &["- Ship it"]);
    check(
        "Replace the Problem section with\n   \"A slow start\".",
        &["A slow *query*."],
        &["A slow start"],
    );
    check("Replace Problem with \"\"", &["A slow *query*.", ""], &[]);
}

#[test]
fn instructions_of_other_forms_are_refused_with_their_line_and_never_guessed_at() {
    for order in [
        "Remove Cache from Decisions",
        "Mark Phase 2 as Done",
        "Set anchor to two",
        "Rename section Problem to Question",
        "Move Measure to Decisions",
        "Replace \"SQLite\" with \"LMDB\" in Decisions",
        "Update row `b.rs` in Artifact Trail: Status to closed",
        "Add section Risks",
        "Insert \"x\" into Decisions",
        "Append to Decisions:\n   - Queue: none",
        "Make it so",
    ] {
        let body = format!("## Merge Instructions\n\n1. {order}\n2. Append \"y\" to Decisions\n");
        let found = refusals(&body);
        let [found] = found.as_slice() else { panic!("{order}: {found:#?}") };
        assert!(found.starts_with("14: "), "{order}: {found}");
        // The rest is carried out where someone asks for that.
        let (after, left) =
            preview(&Checkpoint::parse(BASE).unwrap(), &delta(&body)).into_partial().unwrap();
        assert!(after.text().contains("- Cache: none\n- y\n"), "{}", after.text());
        assert_eq!((left.len(), left[0].place().line), (1, Some(14)), "{order}");
    }
}

#[test]
fn what_can_be_carried_out_is_and_the_rest_is_listed_with_its_lines() {
    let body = "## Changes\n\n### Added\n\n**Risks:**\n- None yet\n\n### Modified\n\n\
                | Section | Before | After |\n|---|---|---|\n| Next Actions | Measure | Ship |\n\
                | Decisions / Store | LMDB | x |\n\n### Removed\n\n- Cache\n- Pool\n\n\
                ## Elsewhere\n\nProse.\n\n## Merge Instructions\n\n1. Append risks to Nowhere\n";
    let said = preview(&Checkpoint::parse(BASE).unwrap(), &delta(body));
    assert!(apply(&Checkpoint::parse(BASE).unwrap(), &delta(body)).is_err());
    let (after, left) = said.into_partial().unwrap();
    let lines: Vec<u64> = left.iter().filter_map(|error| error.place().line).collect();
    assert_eq!(lines, [24, 29, 31, 37]);
    let expected = BASE
        .replace("checkpoint: a\n", "checkpoint: b\n")
        .replace(
            "2026-01-05T10:00:00Z\nanchor: one\n",
            "2026-01-06T10:00:00Z\nanchor: one\nparent: a\n",
        )
        .replace("- Cache: none\n", "")
        .replace("- Measure", "- Ship");
    assert_eq!(after.text(), expected);
    // What replaces a section and is refused leaves the section as it was.
    let cut = "### Added\n\n**Tasks:**\n- Ship and…\n\n**Decisions:**\n- Queue: none";
    let orders = "1. Replace Next Actions with tasks\n2. Replace Current State with decisions";
    let said = preview(&Checkpoint::parse(BASE).unwrap(), &delta(&told(cut, orders)));
    let (after, left) = said.into_partial().unwrap();
    assert!(after.text().ends_with("- Phase 2 → Open\n\n### Next Actions\n\n- Measure\n"));
    assert_eq!(left.len(), 2);
    // Nothing is carried out of what is from another checkpoint, or fits none.
    let other = Checkpoint::parse(BASE.replace("checkpoint: a", "checkpoint: z")).unwrap();
    assert_eq!(preview(&other, &delta(body)).into_partial().unwrap_err()[0].place().line, Some(4));
    let exact = "## Merge Instructions\n\n1. Remove line 15: `x`\n2. Add after line 16: `- y`\n";
    let said = preview(&Checkpoint::parse(BASE).unwrap(), &delta(exact));
    assert_eq!(said.into_partial().unwrap_err()[0].place().line, Some(14));
}

#[test]
fn entries_take_the_form_of_where_they_go() {
    let numbered = BASE.replace("- Measure", "Soon:\n\n  8) Measure\n  9) Ship");
    let body = "## Changes\n\n### Added\n\n**More steps:**\n- Rest\n- Look\n\n\
                ## Merge Instructions\n\n1. Append \"Play\" to Next Actions\n\
                2. Append more steps to Next Actions\n";
    let after = made(&numbered, body).unwrap();
    assert!(after.ends_with("  9) Ship\n  10) Play\n  11) Rest\n  12) Look\n"), "{after}");
    // A text is no row of files.
    let text = "## Changes\n\n### Added\n\n**New files:**\n- `c.rs`: Queue\n\n\
                ## Merge Instructions\n\n1. Append new files to Artifact Trail\n";
    refuses(text, &[(17, "a row of a table for \"Artifact Trail\": File, Status, Key Change")]);
    // Without Artifact Trail, a table of files makes it.
    let trail = BASE.find("### Artifact Trail").unwrap()..BASE.find("### Current State").unwrap();
    let base = format!("{}{}", &BASE[..trail.start], &BASE[trail.end..]);
    let body = "## Changes\n\n### Added\n\n**New files:**\n| File | Purpose |\n|---|---|\n\
                | `c.rs` | Queue |\n";
    let after = made(&base, body).unwrap();
    let end = "\n### Artifact Trail\n\n| File | Purpose |\n|---|---|\n| `c.rs` | Queue |\n";
    assert!(after.ends_with(end), "{after}");
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
        format!("## Merge Instructions\n\n1. Append \"x\" to Decisions\n2. {second}\n")
    };
    refused(&two("Append \"x\" to Risks"), 15, "no section \"risks\"; it has Problem");
    refused(&two("Make it so"), 15, "expected `Append WORDS to SECTION`");
    refused(&two("Update the status table"), 15, "Status Transitions about \"status\", found none");
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
    refused(broken, 16, "expected a row of a table");
    let states = "## Changes\n\n### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n| Phase 1 | Open | Done |\n";
    refused(states, 18, "expected \"Phase 1\" to be \"Open\", found \"Done\"");
    let modified = "## Changes\n\n### Modified\n\n| Section | Before | After |\n|---|---|---|\n| Decisions / Store | LMDB | x |\n";
    refused(modified, 18, "to be or to have once \"LMDB\"");
    refused(
        "## Changes\n\n### Added\n\n- x\n",
        16,
        "expected the name of a section over what is added, found entries without a label",
    );
    refused("## Changes\n", 1, "expected Merge Instructions");
    let other = BASE.replace("checkpoint: a", "checkpoint: z");
    let error =
        apply(&Checkpoint::parse(other).unwrap(), &delta(&two("Append \"y\" to Decisions")))
            .unwrap_err();
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
    let many = |count: usize| -> String {
        (0..count).map(|at| format!("1. Append \"{at}\" to Decisions\n")).collect()
    };
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
    assert!(expected.starts_with("`Append WORDS to SECTION`"), "{expected}");
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
fn an_instruction_directs_declared_changes_and_makes_none_twice() {
    let changes = "### Added\n\n**Decisions:**\n- Queue: none\n\n**New files:**\n\
                   | File | Purpose |\n|---|---|\n| `c.rs` | Queue |\n\n### Modified\n\n\
                   | Section | Before | After |\n|---|---|---|\n\
                   | Next Actions | Measure | Ship |\n| anchor | one | two |\n\n\
                   ### Status Transitions\n\n\
                   | Item | Before | After |\n|---|---|---|\n| Phase 2 | Open | Done |";
    let orders = "1. Append \"Queue: none\" to Decisions\n2. Append `c.rs` to Artifact Trail\n\
                  3. Replace Next Actions with what comes next\n4. Update Next Actions\n\
                  5. Update Current State\n6. Update phase status table";
    let (gone, come) = effect(&delta(&told(changes, orders)));
    assert_eq!(gone, ["anchor: one", "- Phase 2 → Open", "- Measure"]);
    let expected = [
        "anchor: two",
        "- Queue: none",
        "| `c.rs` | created | Queue |",
        "- Phase 2 → Done",
        "- Ship",
    ];
    assert_eq!(come, expected);
}

#[test]
fn words_that_name_nothing_the_delta_declares_are_refused_and_never_written() {
    let none = |order: &str, part: &str| {
        refuses(&format!("## Merge Instructions\n\n1. {order}\n"), &[(14, part)]);
    };
    let quoted = "expected words in quotation marks, or the label or an entry of Added, found";
    none("Add the new files to the artifact trail.", quoted);
    none("Replace Decisions with the new decisions", quoted);
    none("Append \"\" to Decisions", quoted);
    none("Update Next Actions to point to Phase 4.", "about \"next actions to point to phase 4\"");
    none("Update everything", "expected a row of Modified or Status Transitions about");
    none("Update Next Actions", "expected a row of Modified or Status Transitions about");
    none("Update the status table", "Status Transitions about \"status\", found none");
}

#[test]
fn words_mean_the_one_label_that_has_all_of_them() {
    let added = "### Added\n\n**New Files Created:**\n| File |\n|---|\n| `c.rs` |\n\n\
                 **New Functions:**\n- f";
    let orders =
        "1. Add the new files to the artifact trail.\n2. Append all functions to Decisions";
    let (_, come) = effect(&delta(&told(added, orders)));
    assert_eq!(come, ["- f", "| `c.rs` | created |  |"]);
    refuses(
        &told(added, "1. Append new to Decisions\n2. Append the latest to Decisions"),
        &[(26, "or an entry of Added, found \"new\""), (27, "found \"the latest\"")],
    );
    let two = added.replace("Functions", "Files Read");
    refuses(
        &told(&two, "1. Append files to Decisions"),
        &[(26, "\"files\", which fits new files created and new files read")],
    );
    refuses(&told(added, "1. Append functions to Nowhere"), &[(26, "no section \"nowhere\"")]);
}

#[test]
fn what_nothing_reads_is_refused_with_its_line() {
    let order = "1. Append \"two\" to Decisions";
    refuses(
        &told("### Added\n\n- x", &format!("First this:\n\n{order}\n\nThen remove the cache.")),
        &[
            (16, "found entries without a label"),
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
    let whole = delta("## Merge Instructions\n\n1. Append \"two\" to Decisions\n");
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
fn a_row_of_modified_that_says_another_target_than_the_header_is_refused() {
    let row = |to: &str| {
        format!(
            "### Modified\n\n| Field | Before | After |\n|---|---|---|\n| checkpoint | a | {to} |"
        )
    };
    refuses(&format!("## Changes\n\n{}\n", row("c")), &[(5, "expected `checkpoint` to be \"b\"")]);
    let (gone, come) = effect(&delta(&format!("## Changes\n\n{}\n", row("b"))));
    assert_eq!((gone.len(), come.len()), (0, 0));
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
    refuses(
        &told(&added("File | Owner | Change", "`c.rs` | Ada | Queue"), order),
        &[(19, "expected one of the columns File, Status, Key Change, found \"Owner\"")],
    );
    let by = "1. Append files to Artifact Trail as deleted";
    refuses(
        &told(&added("File | Action | Description", "`c.rs` | moved | Queue"), by),
        &[(19, "expected the state in the row, found `as deleted` for a row of a table")],
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
            "16 Decisions -1 +0",
            "20 Current State -0 +1",
            "5 front matter -1 +1",
            "3 front matter -1 +1",
            "4 front matter -0 +1"
        ]
    );
    assert_eq!(said.into_result().unwrap().text(), apply(&before, &delta).unwrap().text());
}

#[test]
fn a_header_of_the_delta_that_is_not_read_whole_is_refused() {
    let before = Checkpoint::parse(BASE).unwrap();
    let text = delta("## Merge Instructions\n\n1. Append \"two\" to Decisions\n").text().to_owned();
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
fn what_is_removed_goes_before_anything_comes() {
    // The new entry of that name takes the place of the old one.
    let added = "### Added\n\n**Decisions:**\n- Cache: in memory\n\n### Removed\n\n- Cache";
    let (gone, come) = effect(&delta(&told(added, "1. Append Cache to Decisions")));
    assert_eq!((gone[0].as_str(), come[0].as_str()), ("- Cache: none", "- Cache: in memory"));
    let base = format!("{BASE}- Cache: later\n");
    let removed = "## Changes\n\n### Removed\n\n- Cache\n";
    assert!(
        made(&base, removed).unwrap_err().contains("more than one entry is \"Cache\": at line")
    );
    // Under the label of its section it is one.
    let labelled = removed.replace("- Cache", "**Next Actions:**\n- Cache");
    assert_eq!(made(&base, &labelled).unwrap().matches("Cache").count(), 1);
}

#[test]
fn a_change_that_an_instruction_adds_beside_what_was_before_is_refused() {
    let states = "### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n\
                  | b.rs | modified | closed |";
    // A list of what happened is another section: the state itself still changes.
    let (gone, come) = effect(&delta(&told(states, "1. Add \"b.rs\" to Current State as closed")));
    assert_eq!(gone, ["| `b.rs` | modified | Tests |"]);
    assert_eq!(come, ["| `b.rs` | closed | Tests |", "- b.rs → closed"]);
    let rows = "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                | Decisions | Cache: none | Cache: memory |";
    refuses(
        &told(rows, "1. Append \"Cache: memory\" to Decisions"),
        &[(22, "expected what \"Decisions\" does not have yet")],
    );
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
    let part = "expected all of \"Decisions\" in Before or in Removed: it is replaced \
                as a whole, found \"- Store: SQLite";
    refuses(&told(&row("Decisions", "Cache: none", "Cache: memory"), order), &[(18, part)]);
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
    refuses(&told(added, order), &[(17, "as a whole, found \"- Store: SQLite")]);
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
    let whole = "### Removed\n\n- Pool\n  - Size: 10";
    assert!(!made(&base, &format!("## Changes\n\n{whole}\n")).unwrap().contains("Pool"));
    // A second line of the item's own text goes with it.
    let wrapped = made(&base, "## Changes\n\n### Removed\n\n- Cache\n").unwrap();
    assert!(!wrapped.contains("for now"), "{wrapped}");
}

#[test]
fn an_entry_of_added_goes_to_one_place_and_never_past_its_label() {
    let added = "### Added\n\n**Decisions:**\n- Queue: none";
    let twice = "1. Append Queue to Decisions\n2. Append \"Queue: none\" to Decisions";
    refuses(&told(added, twice), &[(22, "expected what \"Decisions\" does not have yet")]);
    let twice = "1. Append decisions to Decisions\n2. Append decisions to Decisions";
    refuses(&told(added, twice), &[(22, "or the label or an entry of Added, found \"decisions\"")]);
    refuses(
        &told(added, "1. Append Queue to Next Actions"),
        &[(21, "expected \"Decisions\", the label over line 17, found \"Next Actions\"")],
    );
}

#[test]
fn a_name_in_quotes_means_the_entry_of_added_that_it_names() {
    let added = "### Added\n\n**New files:**\n| File | Purpose |\n|---|---|\n| `c.rs` | Queue |";
    let (_, come) = effect(&delta(&told(added, "1. Append `c.rs` to Artifact Trail")));
    assert_eq!(come, ["| `c.rs` | created | Queue |"]);
    let added = "### Added\n\n**News:**\n- Queue: none\n  until Phase 3\n- Pool";
    let (_, come) = effect(&delta(&told(added, "1. Append \"Queue\" to Decisions")));
    assert_eq!(come, ["- Queue: none", "  until Phase 3", "", "## News", "", "- Pool"]);
}

#[test]
fn a_state_is_no_name() {
    refuses("## Changes\n\n### Removed\n\n- modified\n", &[(16, "has no entry \"modified\"")]);
    let states = |item: &str, before: &str| {
        format!(
            "## Changes\n\n### Status Transitions\n\n| Item | Before | After |\n|---|---|---|\n\
             | {item} | {before} | closed |\n"
        )
    };
    refuses(
        &states("modified", "modified"),
        &[(18, "no table or list has the state of \"modified\"")],
    );
    assert_eq!(effect(&delta(&states("Store", "SQLite"))).1, ["- Store: closed"]);
}

#[test]
fn a_sentence_that_goes_on_with_another_instruction_is_refused() {
    let changes = "### Modified\n\n| Section | Before | After |\n|---|---|---|\n\
                   | Next Actions | Measure | Ship |";
    for order in [
        "Replace Next Actions with Phase 4 tasks and remove Cache from Decisions",
        "Replace Next Actions with Phase 4 tasks; update the status table",
        "Replace Next Actions with Phase 4 tasks, then move Measure to Decisions",
        "Append \"x\" to Decisions. Add \"y\" to Decisions",
    ] {
        refuses(&told(changes, &format!("1. {order}")), &[(22, "one in each item")]);
    }
    let value = "Append \"Search, then replace it\" to Decisions";
    check(value, &[], &["- Search, then replace it"]);
}

#[test]
fn comments_declare_nothing() {
    let added = "### Added\n\n<!-- a -->\n\n**Decisions:**\n- Queue: none\n\n<!-- b\n\n- c -->\n\n\
                 ### Modified\n\n<!-- none -->";
    let orders = "<!-- in order -->\n\n1. Append Queue to Decisions\n\n<!--\n2. Remove Cache\n-->";
    let (gone, come) = effect(&delta(&told(added, orders)));
    assert_eq!((gone.len(), come), (0, vec!["- Queue: none".to_owned()]));
    refuses(
        &told("### Modified\n\n<!-- a --> Store is LMDB", "1. Append \"two\" to Decisions"),
        &[(16, "expected a row of a table")],
    );
}

#[test]
fn rows_that_say_nothing_change_nothing_and_rows_that_empty_an_entry_are_refused() {
    let row = |row: &str| {
        format!("### Modified\n\n| Section | Before | After |\n|---|---|---|\n| {row} |")
    };
    let order = "1. Append \"two\" to Decisions";
    for nothing in ["None | - | -", "- | - | -", "N/A | | "] {
        let (gone, come) = effect(&delta(&told(&row(nothing), order)));
        assert_eq!((gone.len(), come.join(" ").as_str()), (0, "- two"));
    }
    refuses(&told(&row("... | ... | ..."), order), &[(18, "has no entry \"...\"")]);
    refuses(
        &told(&row("Decisions | Cache: none | "), order),
        &[(18, "expected the text in After, or the entry in Removed")],
    );
}

#[test]
fn text_below_a_title_and_a_heading_over_nothing_are_refused() {
    let body = "## Merge Instructions\n\n1. Append \"two\" to Decisions\n";
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
    let text = delta("## Merge Instructions\n\n1. Append \"two\" to Decisions\n").text().to_owned();
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
    refuses(&told(&format!("### Added\n\n{files}"), order), &[(19, there)]);
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
