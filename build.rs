//! Writes the lists of words in `src/text/words` as constants: a module for each section, in which
//! a list holds the words of all languages. Nothing is parsed at run time.
//!
//! The files are TOML of sections with lists of strings, and nothing else. No crate is needed to
//! read that, so a build without features stays small.

use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, path::Path};

const FOLDER: &str = "src/text/words";

/// The sections whose lists are names that programs are asked for, the first that is there.
const IN_ORDER: [&str; 4] = ["action", "contents", "envelope", "plan"];

/// The lists of each section, as literals of strings: those of TOML are those of Rust.
type Sections = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={FOLDER}");
    if let Err(error) = write_words() {
        println!("cargo::error=cannot write the words: {error}");
    }
}

fn write_words() -> Result<(), Box<dyn Error>> {
    let files = fs::read_dir(FOLDER)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    files.sort();
    let mut sections = Sections::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|of| of == "toml")) {
        read(&fs::read_to_string(file)?, &mut sections).map_err(|line| {
            format!("{}:{line}: expected [section] or name = [\"word\", …]", file.display())
        })?;
    }
    // By their first bytes, by which words are looked for: literals begin with the same mark.
    let found = sections.iter_mut().filter(|(section, _)| !IN_ORDER.contains(&section.as_str()));
    for words in found.flat_map(|(_, lists)| lists.values_mut()) {
        words.sort_by_key(|word| word.as_bytes().get(1).copied());
    }
    let mut code = String::new();
    for (section, lists) in &sections {
        writeln!(code, "pub(crate) mod {section} {{")?;
        for (name, words) in lists {
            let (name, count, words) = (name.to_uppercase(), words.len(), words.join(", "));
            writeln!(code, "pub(crate) const {name}: [&str; {count}] = [{words}];")?;
        }
        writeln!(code, "}}")?;
    }
    let hash = fnv(code.as_bytes());
    writeln!(
        code,
        "/// The hash of these tables.\npub(crate) const HASH: &str = \"{hash:016x}\";"
    )?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("words.rs"), code)?;
    Ok(())
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Reads a file; fails with the number of the line that is none of it.
fn read(text: &str, sections: &mut Sections) -> Result<(), usize> {
    let mut section = String::new();
    let mut open: Option<String> = None;
    for (number, line) in (1_usize..).zip(text.lines()) {
        let mut rest = line.trim();
        if open.is_none() {
            if rest.is_empty() || rest.starts_with('#') {
                continue;
            }
            if let Some(name) = rest.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
                name.clone_into(&mut section);
                continue;
            }
            let (name, words) = rest.split_once(" = [").ok_or(number)?;
            (open, rest) = (Some(name.to_owned()), words);
        }
        while let Some(name) = &open {
            rest = rest.trim_start_matches([' ', ',']);
            if rest == "]" {
                open = None;
            } else if rest.is_empty() {
                break;
            } else {
                let (word, after) = literal(rest).ok_or(number)?;
                let lists = sections.entry(section.clone()).or_default();
                lists.entry(name.clone()).or_default().push(word.to_owned());
                rest = after;
            }
        }
    }
    if open.is_some() { Err(text.lines().count()) } else { Ok(()) }
}

/// The literal of a string that a text begins with, and what follows it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let end = text.strip_prefix('"')?.find(|c| {
        let closes = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        closes
    })?;
    text.split_at_checked(end + 2)
}
