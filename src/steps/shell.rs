//! Which files a command reads and writes, by the shape of the command line.

use super::Touch;
use crate::text::first_bytes;

/// Longer commands are scripts: their beginning is looked at.
const LONGEST: usize = 20_000;

/// The files that a command names, with what happens to each, in order.
pub(crate) fn touches(command: &str) -> Vec<(Touch, String)> {
    let mut found = Vec::new();
    let (lines, scripts) = documents(first_bytes(command, LONGEST));
    for line in lines {
        split(line).iter().for_each(|simple| simple_command(simple, &mut found));
    }
    // What a script of the shell makes is there once it has run.
    let mut made = Vec::new();
    for line in scripts.into_iter().flat_map(|script| documents(script).0) {
        split(line).iter().for_each(|simple| simple_command(simple, &mut made));
    }
    made.retain(|(touch, path)| {
        *touch == Touch::Written && !found.iter().any(|(_, known)| known == path)
    });
    found.extend(made);
    found
}

/// The lines of a command that are in no here-document, and the here-documents that it writes to
/// scripts of the shell.
fn documents(command: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut lines, mut scripts, mut at) = (Vec::new(), Vec::new(), 0);
    // Where the document begins, what ends it, and whether it is a script.
    let mut open: Option<(usize, String, bool)> = None;
    for line in command.split_inclusive('\n') {
        let from = at;
        at += line.len();
        match &open {
            Some((start, mark, is_script)) if line.trim() == mark => {
                scripts.extend(command.get(*start..from).filter(|_| *is_script));
                open = None;
            }
            Some(_) => {}
            None => {
                lines.push(line);
                open = mark_of(line).map(|mark| (at, mark, writes_script(line)));
            }
        }
    }
    (lines, scripts)
}

/// Whether a line writes a script of the shell.
fn writes_script(line: &str) -> bool {
    let mut found = Vec::new();
    split(line).iter().for_each(|simple| simple_command(simple, &mut found));
    let is_script = |path: &str| path.rsplit_once('.').is_some_and(|(_, ending)| ending == "sh");
    found.iter().any(|(touch, path)| *touch == Touch::Written && is_script(path))
}

/// What ends the here-document that a line begins.
fn mark_of(line: &str) -> Option<String> {
    let (_, after) = line.split_once("<<")?;
    let word = after.trim_start_matches(['-', '~', ' ']);
    let word = word.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or("");
    let word = word.trim_matches(['\'', '"', '\\']);
    (!word.is_empty() && !word.starts_with('<')).then(|| word.to_owned())
}

/// The program that a command runs, with its first word or module: `cargo test`, `python pytest`. What comes before the last
/// `&&` and sets the stage (`cd`, variables) is left out.
pub(crate) fn program(command: &str) -> String {
    let line = command.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let simple = split(line);
    let of = |words: &Vec<String>| {
        let mut words = words.iter().skip_while(|word| is_setting(word));
        let first = words.next()?.clone();
        (first != "cd" && first != "source" && first != "export").then(|| match words.next() {
            Some(flag) if flag == "-m" => match words.next() {
                Some(module) => format!("{first} {module}"),
                None => first,
            },
            Some(flag) if flag == "-c" => format!("{first} -c"),
            Some(second) if !second.starts_with('-') => format!("{first} {second}"),
            _ => first,
        })
    };
    simple.iter().find_map(of).unwrap_or_default()
}

fn is_setting(word: &str) -> bool {
    matches!(word, "sudo" | "time" | "env" | "nohup")
        || word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
}

/// The simple commands of a line as words; quotes keep words together.
pub(crate) fn split(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote: Option<char> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => word.extend(chars.next()),
            (None, '>') => {
                if !matches!(word.as_str(), "" | "1" | "2" | "&") {
                    words.push(std::mem::take(&mut word));
                }
                let is_error = word == "2";
                word.clear();
                let is_more = chars.next_if_eq(&'>').is_some();
                let is_copy = chars.next_if_eq(&'&').is_some();
                words.push(match (is_copy || is_error, is_more) {
                    (true, _) => "2>".to_owned(),
                    (false, true) => ">>".to_owned(),
                    (false, false) => ">".to_owned(),
                });
            }
            (None, '|' | ';' | '&') => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                all.push(std::mem::take(&mut words));
            }
            (None, c) if c.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            (_, c) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

fn simple_command(words: &[String], found: &mut Vec<(Touch, String)>) {
    let mut push = |touch, path: &str| {
        if is_path(path) {
            found.push((touch, path.to_owned()));
        }
    };
    let mut plain: Vec<&str> = Vec::new();
    let mut words = words.iter().map(String::as_str).skip_while(|word| is_setting(word));
    while let Some(word) = words.next() {
        match word {
            ">" => words.next().into_iter().for_each(|path| push(Touch::Written, path)),
            ">>" => words.next().into_iter().for_each(|path| push(Touch::Changed, path)),
            "2>" | "<<" | "<" | "<<<" => drop(words.next()),
            word if word.starts_with('<') => {}
            word => plain.push(word),
        }
    }
    let Some((program, mut rest)) = plain.split_first() else { return };
    let mut program = program.rsplit('/').next().unwrap_or(program);
    if program == "git" {
        // `git mv`, `git rm` do what these do.
        let Some((verb, others)) = rest.split_first() else { return };
        let is_of_files = matches!(*verb, "mv" | "rm" | "restore")
            || *verb == "checkout" && others.contains(&"--");
        if !is_of_files {
            return;
        }
        (program, rest) = (verb, others);
    }
    let arguments = || rest.iter().copied().filter(|word| !word.starts_with('-'));
    let has = |flag: &str| rest.iter().any(|word| word.starts_with(flag));
    match program {
        "cat" | "head" | "tail" | "less" | "more" | "nl" | "bat" | "wc" | "open" => {
            arguments().for_each(|path| push(Touch::Read, path));
        }
        "sed" | "perl" if has("-i") => {
            arguments().next_back().into_iter().for_each(|path| push(Touch::Changed, path));
        }
        "sed" | "awk" => arguments().skip(1).for_each(|path| push(Touch::Read, path)),
        "ed" | "ex" | "restore" | "checkout" => {
            arguments().for_each(|path| push(Touch::Changed, path));
        }
        "tee" | "touch" | "create" => arguments().for_each(|path| push(Touch::Written, path)),
        "rm" => arguments().for_each(|path| push(Touch::Deleted, path)),
        "mv" => moved(&arguments().collect::<Vec<_>>(), found),
        "cp" => {
            let paths: Vec<&str> = arguments().collect();
            found.extend(places(&paths).map(|(_, to)| (Touch::Written, to)));
        }
        _ => {}
    }
}

/// Where each of the first of these paths goes: to the last one, or into it.
fn places<'w>(paths: &[&'w str]) -> impl Iterator<Item = (&'w str, String)> {
    let (to, from) = paths.split_last().map_or(("", &[][..]), |(to, from)| (*to, from));
    let from: Vec<&str> = from.to_vec();
    let is_many = from.len() > 1;
    let to_of = move |path: &'w str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_folder = is_many || to.ends_with('/') || matches!(to, "." | "..");
        let to =
            if is_folder { format!("{}/{name}", to.trim_end_matches('/')) } else { to.to_owned() };
        (is_path(&to) && is_path(path)).then_some((path, to))
    };
    from.into_iter().filter_map(to_of)
}

fn moved(paths: &[&str], found: &mut Vec<(Touch, String)>) {
    for (from, to) in places(paths) {
        found.extend([(Touch::Moved, from.to_owned()), (Touch::MovedHere, to)]);
    }
}

/// Whether a command is that of an editor which changes lines of the file that is open: `edit 3:9`.
pub(crate) fn edits_open_file(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let is_range = |word: &str| {
        word.split_once(':').is_some_and(|(from, to)| {
            let is_number =
                |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
            is_number(from) && is_number(to)
        })
    };
    matches!(words.next(), Some("edit" | "replace" | "insert"))
        && words.next().is_some_and(is_range)
}

/// Whether a word is the path of a file: it has an extension or a directory, and no pattern.
fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=8).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && extension.chars().any(|c| c.is_ascii_alphabetic())
    });
    let is_clean = !word.contains([
        '*', '?', '$', '(', ')', '{', '}', '[', ']', '\'', '"', '`', '=', ',', ';', '^',
    ]);
    let is_place = word.starts_with("/dev/") || word.ends_with('/') || name.is_empty();
    is_clean
        && !is_place
        && word.len() < 200
        && (has_extension || word.contains('/'))
        && !word.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_commands_are_found_by_their_shape() {
        let check = |command: &str, expected: &[(Touch, &str)]| {
            let found = touches(command);
            let found: Vec<_> = found.iter().map(|(touch, path)| (*touch, path.as_str())).collect();
            assert_eq!(found, expected, "{command}");
        };
        check("cd /a && cat src/a.rs | head -5", &[(Touch::Read, "src/a.rs")]);
        check("nl -ba a.py | sed -n '3,9p'", &[(Touch::Read, "a.py")]);
        check("sed -i 's/a/b/' src/a.py", &[(Touch::Changed, "src/a.py")]);
        check(
            "cat > run.sh <<'EOF'\nrm -rf x.py\nEOF\nchmod +x run.sh",
            &[(Touch::Written, "run.sh")],
        );
        check(
            "cat <<'EOF' > run.sh\nmkdir -p q\ncat > q/a.py <<X\n> c.py\nX\ntouch q/b.py\nEOF\n",
            &[(Touch::Written, "run.sh"), (Touch::Written, "q/a.py"), (Touch::Written, "q/b.py")],
        );
        check("cat > a.md <<EOF\ncat > run.sh <<X\n> c.py\nX\nEOF\n", &[(Touch::Written, "a.md")]);
        check("bash run.sh <<EOF\n> c.py\nEOF\n", &[]);
        check("cat <<'EOF' > b.py\nx > y.py\nEOF", &[(Touch::Written, "b.py")]);
        check("echo x >> notes.md 2>/dev/null", &[(Touch::Changed, "notes.md")]);
        check("make 2>&1 | tee out.log", &[(Touch::Written, "out.log")]);
        check("rm old.rs", &[(Touch::Deleted, "old.rs")]);
        check("git rm -q old.rs", &[(Touch::Deleted, "old.rs")]);
        let moved = |from, to| [(Touch::Moved, from), (Touch::MovedHere, to)];
        check("mv tide.rs src/flood.rs", &moved("tide.rs", "src/flood.rs"));
        check("git mv tide.rs old/", &moved("tide.rs", "old/tide.rs"));
        check("git status src/a.rs", &[]);
        check("rg 'tide' src/quay tide.rs", &[]);
        check("grep -rn tide src/quay", &[]);
        check("ed src/tide.py <<EOF\n3d\nw\nEOF", &[(Touch::Changed, "src/tide.py")]);
        check("python -m pytest -k 'a > b'", &[]);
        check("ls *.rs", &[]);
        check("for f in a; do (sed 's|x|y|' $f > ../tide.rs) ; done", &[]);
    }

    #[test]
    fn an_editor_changes_the_lines_of_the_file_that_is_open() {
        assert!(edits_open_file("edit 3:9\nx = 1\nend_of_edit"));
        assert!(!edits_open_file("edit the tide") && !edits_open_file("open tide.py 3"));
    }

    #[test]
    fn a_command_is_known_by_its_program() {
        let check = |command: &str, expected: &str| assert_eq!(program(command), expected);
        check("cd /a && RUST_LOG=x cargo test -q", "cargo test");
        check("ls -la", "ls");
        check("", "");
    }
}
