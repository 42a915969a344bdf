//! The files that a script inside of a command writes: `open("tide.py", "w")` and the like.

use super::Touch;
use crate::text::first_bytes;

/// Longer commands are looked at in their beginning.
const LONGEST: usize = 20_000;

/// What is called to open or to write a file, with what it does where no mode is given.
const WRITERS: [(&str, Option<Touch>); 5] = [
    ("open(", None),
    ("Path(", None),
    ("writeFileSync(", Some(Touch::Written)),
    ("writeFile(", Some(Touch::Written)),
    ("appendFileSync(", Some(Touch::Changed)),
];

/// What a path is told to write.
const METHODS: [&str; 2] = ["write_text(", "write_bytes("];

/// The files that scripts in a command write, where their paths stand in it.
pub(crate) fn writes(command: &str) -> Vec<(Touch, String)> {
    let script = first_bytes(command, LONGEST);
    let mut found: Vec<(Touch, String)> = Vec::new();
    for (name, touch) in WRITERS {
        for (at, _) in script.match_indices(name) {
            let before = script.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let rest = script.get(at + name.len()..).unwrap_or_default();
            let written = path_of(rest, script)
                .and_then(|(path, rest)| Some((touch.or_else(|| touch_of(rest))?, path)));
            if let Some((touch, path)) = written
                && !path.is_empty()
                && !found.iter().any(|(_, known)| known == path)
            {
                found.push((touch, path.to_owned()));
            }
        }
    }
    found
}

/// The path that a call begins with, and what follows: a text, or what a variable was set to.
fn path_of<'s>(call: &'s str, script: &'s str) -> Option<(&'s str, &'s str)> {
    let call = call.trim_start();
    if let Some(quoted) = quoted(call) {
        return Some(quoted);
    }
    let end = call.find(|c: char| !c.is_alphanumeric() && c != '_').filter(|end| *end > 0)?;
    let (name, rest) = call.split_at_checked(end)?;
    let set = script.match_indices(name).find_map(|(at, _)| {
        let value = script.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
        let value = value.strip_prefix("Path(").unwrap_or(value);
        quoted(value).map(|(path, _)| path)
    });
    set.map(|path| (path, rest))
}

/// A text in quotes without white space, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches('\\');
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (inside, rest) = text.get(1..)?.split_once(quote)?;
    let inside = inside.trim_end_matches('\\');
    let is_path = inside.len() < 200 && !inside.contains(|c: char| c.is_whitespace() || c == '\\');
    is_path.then_some((inside, rest))
}

/// What is done to a path, by what follows it in a call: a mode, or a method.
fn touch_of(rest: &str) -> Option<Touch> {
    let rest = rest.trim_start();
    if let Some(mode) = rest.strip_prefix(',') {
        let mode = mode.trim_start();
        let mode =
            mode.strip_prefix("mode").map_or(mode, |mode| mode.trim_start_matches([' ', '=']));
        let (mode, _) = quoted(mode)?;
        return match mode.chars().next()? {
            'w' | 'x' => Some(Touch::Written),
            'a' => Some(Touch::Changed),
            'r' if mode.contains('+') => Some(Touch::Changed),
            _ => None,
        };
    }
    let method = rest.trim_start_matches([')', '.']);
    METHODS.iter().any(|name| method.starts_with(name)).then_some(Touch::Written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_scripts_write_are_found() {
        let check = |command: &str, expected: &[(Touch, &str)]| {
            let found = writes(command);
            let found: Vec<_> = found.iter().map(|(touch, path)| (*touch, path.as_str())).collect();
            assert_eq!(found, expected, "{command}");
        };
        let written = |path| [(Touch::Written, path)];
        check(
            "python - <<'EOF'\ns = open('a.py').read()\nopen('a.py', 'w').write(s)\nEOF",
            &written("a.py"),
        );
        check(
            "python3 -c \"with open(\\\"b.py\\\", \\\"w\\\") as f: f.write(x)\"",
            &written("b.py"),
        );
        check(
            "python3 -c 'p = \"c.py\"\nwith open(p, mode=\"a\") as f: pass'",
            &[(Touch::Changed, "c.py")],
        );
        check(
            "python -c 'from pathlib import Path; Path(\"d.py\").write_text(x)'",
            &written("d.py"),
        );
        check("node -e 'fs.writeFileSync(\"e.js\", x)'", &written("e.js"));
        check("python -c 'print(open(\"f.py\").read(), \"w\")'", &[]);
        check("sed -i 's/x/open(\"\\/g.py\", \"w\")/' f.py", &[]);
        check("python -c 'reopen(\"g.py\", \"w\")'", &[]);
    }
}
