//! What each command costs on a small file, start of the process and all, beside `--version`, which
//! does nothing but start, and beside `true`, which is what the system takes.
//!
//! `AFTERIMAGE_BENCH_PROGRAM` names another build of the program. With `AFTERIMAGE_BENCH_CALLGRIND`
//! there are no times: each command runs once in `valgrind`, which counts its instructions.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::Path,
    process::{Command, Output},
};

use criterion::{Criterion, criterion_group};

/// A session of about so many bytes, as text that no cache of counts knows.
fn session(bytes: usize) -> String {
    let mut messages = Vec::new();
    while messages.iter().map(String::len).sum::<usize>() < bytes {
        let number = messages.len();
        let role = ["user", "assistant"][number % 2];
        let said: Vec<String> =
            (0..12).map(|word| format!("sack {}", (number * 12 + word) * 7_919)).collect();
        messages.push(format!(r#"{{"role":"{role}","content":"Grind {}."}}"#, said.join(", ")));
    }
    format!("[{}]", messages.join(","))
}

/// The turns of a session of the timeline.
const TURNS: &str = r#"{"actor":"player","deltas":[{"target":"player","operation":"set","path":["hp"],"newValue":9,"cause":"rest","eventId":"nowhere"}]}"#;

/// Where a command writes to: a name of its own for each run.
const OUT: &str = "OUT";

/// The command lines: SMALL and LARGE are sessions of 1 kB and 16 kB, FOLDER is where they are,
/// HARBOUR has the frames of a session of 10 kB, and TRAFFIC has recorded requests.
const COMMANDS: &[&str] = &[
    "demo",
    "frames SMALL",
    "render SMALL",
    "render HARBOUR",
    "trace --text sack SMALL",
    "stats SMALL",
    "stats LARGE",
    "archive SMALL -o OUT",
    "compress --budget 1k LARGE",
    "expand --budget 1k --frame 3 LARGE",
    "replay --budget 1k LARGE",
    "audit HARBOUR HARBOUR",
    #[cfg(feature = "record")]
    "record -o OUT -- true",
    "requests TRAFFIC",
    "guard TRAFFIC",
    "export --otlp SMALL",
    "diff SMALL LARGE",
    "checkpoint diff CHECKPOINTS/one.md CHECKPOINTS/two.md",
    "observe replay HARBOUR",
    "session state WORLD",
    "journal ls JOURNAL",
    "sessions --no-index FOLDER",
    "formats",
    "completions bash",
    "man",
];

/// The program with what its commands read.
struct Bench {
    program: OsString,
    scratch: tempfile::TempDir,
    runs: usize,
}

impl Bench {
    fn new() -> Self {
        let program = std::env::var_os("AFTERIMAGE_BENCH_PROGRAM")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_afterimage").into());
        let bench = Self { program, scratch: tempfile::tempdir().unwrap(), runs: 0 };
        let folder = bench.scratch.path().join("FOLDER");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("small.json"), session(1_000)).unwrap();
        fs::write(folder.join("large.json"), session(16_000)).unwrap();
        let turns = bench.scratch.path().join("turns.jsonl");
        fs::write(turns, TURNS).unwrap();
        for line in [
            "session init WORLD",
            "session append WORLD TURNS",
            "session append tale --journal JOURNAL TURNS",
        ] {
            run(Command::new(&bench.program).args(bench.words(line)));
        }
        bench
    }

    /// The words of a command line, with paths for the names.
    fn words(&self, line: &str) -> Vec<OsString> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let scratch = self.scratch.path();
        let path = |word: &str| match word {
            "SMALL" => scratch.join("FOLDER/small.json"),
            "LARGE" => scratch.join("FOLDER/large.json"),
            "TURNS" => scratch.join("turns.jsonl"),
            "HARBOUR" => package.join("../../examples/sessions/harbour.jsonl"),
            "TRAFFIC" => package.join("tests/data/traffic.json"),
            OUT => scratch.join(format!("out-{}", self.runs)),
            _ => match word.strip_prefix("CHECKPOINTS") {
                Some(file) => package.join(format!("tests/data/checkpoints{file}")),
                None if matches!(word, "FOLDER" | "WORLD" | "JOURNAL") => scratch.join(word),
                None => word.into(),
            },
        };
        line.split(' ').map(|word| path(word).into_os_string()).collect()
    }

    fn command(&mut self, line: &str, inside: &[&OsStr]) -> Command {
        self.runs += 1;
        let words = self.words(line);
        let mut all =
            inside.iter().copied().chain([&*self.program]).chain(words.iter().map(|w| &**w));
        let mut command = Command::new(all.next().unwrap());
        command.args(all).current_dir(self.scratch.path());
        command
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

fn start(criterion: &mut Criterion) {
    let mut bench = Bench::new();
    let mut group = criterion.benchmark_group("start_up");
    if cfg!(unix) {
        group.bench_function("true", |b| b.iter(|| run(&mut Command::new("true"))));
    }
    for line in ["--version"].iter().chain(COMMANDS) {
        group.bench_function(*line, |b| b.iter(|| run(&mut bench.command(line, &[]))));
    }
    group.finish();
}

/// Prints the instructions of each command in millions.
fn count_instructions() {
    let mut bench = Bench::new();
    for line in ["--version"].iter().chain(COMMANDS) {
        let valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let output = run(&mut bench.command(line, &valgrind.map(OsStr::new)));
        let said = String::from_utf8_lossy(&output.stderr);
        let (_, count) = said.split_once("Collected :").unwrap();
        let count: f64 = count.split_whitespace().next().unwrap().parse().unwrap();
        println!("| `{line}` | {:.1} |", count / 1e6);
    }
}

criterion_group!(benches, start);

fn main() {
    if std::env::var_os("AFTERIMAGE_BENCH_CALLGRIND").is_some() {
        return count_instructions();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
