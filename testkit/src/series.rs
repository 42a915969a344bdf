//! A series of checkpoints of one piece of work, each a small step after the one before.

use std::fmt::Write as _;

const PARTS: [&str; 12] = [
    "parser",
    "planner",
    "cache",
    "index",
    "journal",
    "renderer",
    "importer",
    "exporter",
    "scheduler",
    "tokenizer",
    "archive",
    "viewer",
];
const DEEDS: [&str; 8] = [
    "bounded its memory by the size of one segment",
    "refused input that nests deeper than the limit",
    "kept the order of keys that it reads",
    "measured it beside the naive baseline",
    "moved its tables behind one reference",
    "wrote down the format before the code",
    "made it stop at the first damaged record",
    "gave its errors a line and a column",
];

/// The checkpoint after `step` steps: about 2,000 tokens. Each step adds one to Play-By-Play and
/// says where things stand; every second moves the Next Actions on, every fourth drops the oldest
/// steps, adds a file and closes another; every sixth brings a decision.
pub fn checkpoint(step: usize) -> String {
    let part = |n: usize| PARTS[n % PARTS.len()];
    let deed = |n: usize| DEEDS[(n * 5 + n / 8) % DEEDS.len()];
    let mut text = format!(
        "---\ncheckpoint: work-{step:03}\ncreated: 2026-03-{:02}T{:02}:00:00Z\n---\n\n\
         ## Problem\n\nA store of sessions answers too slowly once it holds a million frames, and \
         nobody can say which part of it takes the time.\n\n\
         ## Session Intent\n\nFind what is slow, make it fast, and keep every figure beside the \
         code that it is about.\n\n## Essential Information\n\n### Decisions\n\n",
        1 + step / 12,
        8 + step % 12
    );
    for n in 0..12 + step / 6 {
        let _ = writeln!(text, "- **D{n}, {}**: it {}", part(n + 3), deed(n + 1));
    }
    text.push_str("\n### Technical Context\n\n- Rust 1.89, no unsafe code\n- Two cores, 8 GB\n- Criterion for figures\n\n");
    text.push_str("### Breadcrumbs\n\n| Type | Reference | Hint |\n|------|-----------|------|\n");
    for n in 0..8 {
        let _ = writeln!(
            text,
            "| file | `src/{}/mod.rs` | Where the {} begins; it {} |",
            part(n),
            part(n),
            deed(n)
        );
    }
    text.push_str("\n### Play-By-Play\n\n");
    for n in step / 4 * 4..step + 22 {
        let _ =
            writeln!(text, "- Step {n}: {} of round {} → {} → Complete", part(n), n / 12, deed(n));
    }
    text.push_str(
        "\n### Artifact Trail\n\n| File | Status | Key Change |\n|------|--------|------------|\n",
    );
    for n in 0..24 + step / 4 {
        let status = if n * 4 < step { "closed" } else { "modified" };
        let _ = writeln!(
            text,
            "| `src/{}/part_{n}.rs` | {status} | The {} {} |",
            part(n),
            part(n),
            deed(n + 2)
        );
    }
    let _ = writeln!(
        text,
        "\n### Current State\n\n- Step {} is done, step {} runs\n- {} tests pass\n- The build is clean\n- The slowest query takes {} ms",
        step + 21,
        step + 22,
        300 + step * 3,
        90 - step / 4
    );
    text.push_str("\n### Next Actions\n\n");
    let next = 22 + step / 2;
    for n in next..next + 6 {
        let _ =
            writeln!(text, "- Step {n}: look at the {} and see whether it {}", part(n), deed(n));
    }
    text.push_str(
        "\n## User Rules\n\n- No commits without approval\n- Figures that were measured, or none\n",
    );
    text
}
