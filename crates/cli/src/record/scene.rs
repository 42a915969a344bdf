//! What a command runs in the end, and which texts may set variables for it.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs, iter,
    path::{Path, PathBuf},
};

use super::facts::{ClientFacts, Facts, Wrapper, stem};

/// A file that is longer is none that people write.
const MOST_TEXT: u64 = 1 << 20;
/// So many files name one another.
const MOST_FILES: usize = 500;
/// So many programs start one another.
const MOST_DEPTH: usize = 8;

/// A command, looked at before it runs.
#[derive(Debug, Default)]
pub(super) struct Scene {
    /// The client that it runs, and nothing else.
    pub(super) client: Option<&'static ClientFacts>,
    /// Where the arguments of that client begin in the command; `None` where a shell starts it.
    pub(super) arguments_at: Option<usize>,
    /// The clients that it may run.
    pub(super) clients: Vec<&'static ClientFacts>,
    /// What may set variables: where it is, and its text.
    pub(super) texts: Vec<(String, String)>,
    /// The folders and files that it names, and its programs.
    pub(super) places: Vec<PathBuf>,
    /// Whether something on the way loads variables of its own.
    is_loaded: bool,
    /// The program on the way that loads variables from files of its own forms.
    pub(super) loader: Option<String>,
}

impl Scene {
    pub(super) fn of(facts: &'static Facts, command: &[OsString]) -> Self {
        let words: Vec<String> =
            command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut scene = Self::default();
        let found = scene.follow(facts, &words, MOST_DEPTH);
        // What it finds in its environment then is not what it finds alone.
        let is_told = |client: &ClientFacts, at: Option<usize>| {
            let is_followed = !scene.is_loaded && (at.is_some() || !client.is_led_by_arguments());
            is_followed || client.takes_no_variable()
        };
        if let Some((client, at)) = found.filter(|(client, at)| is_told(client, *at)) {
            (scene.client, scene.arguments_at) = (Some(client), at);
        }
        scene
    }

    /// Follows the words of a simple command. Gives the client that they run, with the place of its
    /// arguments where these are among the words.
    fn follow(
        &mut self,
        facts: &'static Facts,
        words: &[String],
        depth: usize,
    ) -> Option<(&'static ClientFacts, Option<usize>)> {
        let mut at = words.iter().position(|word| !is_assignment(word))?;
        self.set_by(words.get(..at).unwrap_or_default());
        for _ in 0..depth {
            let program = words.get(at)?;
            let path = which(program);
            let real = path.as_deref().and_then(|path| fs::canonicalize(path).ok());
            let is_there = facts.client(program);
            let by_path = || facts.client(real.as_deref()?.to_str()?);
            if let Some(client) = is_there.or_else(by_path) {
                self.places.extend(path);
                self.places.extend(real);
                self.clients.push(client);
                return Some((client, Some(at + 1)));
            }
            let rest = words.get(at + 1..).unwrap_or_default();
            if let Some(wrapper) = facts.wrapper(program) {
                if wrapper.loads {
                    self.load(program.clone());
                }
                let (given, from) = (self.places.len(), self.texts.len());
                let behind = self.behind(wrapper, rest);
                self.read(facts, wrapper, given);
                let Some(behind) = behind.filter(|_| !wrapper.tasks) else {
                    // `env -S` holds all of its words in one, and a task is in the files.
                    self.set_by(rest);
                    let texts = self.texts.get(from..).unwrap_or_default();
                    let words: Vec<String> = texts
                        .iter()
                        .flat_map(|(_, text)| words_of(text))
                        .map(str::to_owned)
                        .collect();
                    self.mention(facts, &words);
                    return None;
                };
                self.set_by(words.get(at..at + 1 + behind).unwrap_or_default());
                at += 1 + behind;
                continue;
            }
            self.set_by(rest);
            // A module of Python lies in folders of its names.
            let module = PathBuf::from(program.replace('.', "/"));
            self.places.extend(module.parent().map(Path::to_owned));
            self.places.push(module);
            self.mention(facts, rest);
            // It may start one that reads files, as `xargs` and `strace` do.
            let reads = |word: &String| {
                facts.wrapper(word).is_some_and(|of| !of.reads.is_empty()) && which(word).is_some()
            };
            if let Some(behind) = rest.iter().position(reads).filter(|_| depth > 1) {
                self.follow(facts, rest.get(behind..).unwrap_or_default(), depth - 1);
            }
            self.places.extend(real);
            self.places.extend(path.clone());
            let text = shell_text(program, path.as_deref(), rest)?;
            return self.follow_shell(facts, text, depth - 1);
        }
        None
    }

    /// Follows what a shell is given: where that is one command, it is that command.
    fn follow_shell(
        &mut self,
        facts: &'static Facts,
        text: (String, String),
        depth: usize,
    ) -> Option<(&'static ClientFacts, Option<usize>)> {
        let commands: Vec<Vec<String>> = simple_commands(&text.1);
        self.texts.push(text);
        for file in ["BASH_ENV", "ENV"].iter().filter_map(std::env::var_os) {
            let text = read(Path::new(&file));
            self.texts.extend(text.map(|text| (file.to_string_lossy().into_owned(), text)));
        }
        for words in &commands {
            if let [word, file, ..] = words.as_slice()
                && matches!(word.as_str(), "." | "source")
            {
                self.texts.extend(read(Path::new(file)).map(|text| (file.clone(), text)));
            }
        }
        if depth == 0 {
            return None;
        }
        let found: Vec<_> = commands.iter().map(|words| self.follow(facts, words, depth)).collect();
        match found.as_slice() {
            [Some((client, _))] => Some((client, None)),
            _ => None,
        }
    }

    /// Takes the clients among the words of a program that may start them. A word behind a long option
    /// is its value.
    fn mention(&mut self, facts: &'static Facts, words: &[String]) {
        let mut is_value = false;
        for word in words {
            let is_there = |path: PathBuf| path.is_file();
            let client =
                facts.client(word).filter(|_| !is_value && which(word).is_some_and(is_there));
            self.clients.extend(client);
            is_value = word.starts_with("--") && word.len() > 2 && !word.contains('=');
        }
    }

    /// How many words stand before the program that a wrapper starts.
    fn behind(&mut self, wrapper: &Wrapper, words: &[String]) -> Option<usize> {
        let mut plain = wrapper.plain;
        let mut at = 0;
        loop {
            let word = words.get(at)?;
            at += 1;
            if wrapper.module.as_ref() == Some(word) || word == "--" {
                return Some(at);
            }
            self.is_loaded |= word.starts_with("--env-file");
            if wrapper.scripts.contains(word) {
                return None;
            } else if let Some(value) = wrapper.value_in(word) {
                let next = words.get(at).filter(|_| value.is_empty()).map(String::as_str);
                self.places.push(next.unwrap_or(value).into());
                at += usize::from(value.is_empty());
            } else if let Some((_, value)) =
                word.strip_prefix('-').and_then(|of| of.split_once('='))
            {
                self.places.push(value.into());
            } else if word.starts_with('-') || is_assignment(word) || wrapper.words.contains(word) {
            } else if plain > 0 {
                plain -= 1;
            } else {
                return Some(at - 1);
            }
        }
    }

    /// Reads the files by which a wrapper knows what it starts: in the folder, above it and in places
    /// that it is given, which begin at `given`; those that its variables name; and what these name in
    /// turn.
    fn read(&mut self, facts: &Facts, wrapper: &Wrapper, given: usize) {
        let here = here();
        let variables = wrapper.variables.iter().filter_map(|name| std::env::var(name).ok());
        let named = variables.collect::<Vec<_>>().join(" ");
        self.places.extend(words_of(&named).map(PathBuf::from));
        let places = || self.places.iter().map(|place| here.join(place));
        let folders = places().chain([here.clone()]).filter(|place| place.is_dir());
        let folders: Vec<PathBuf> = folders
            .flat_map(|folder| folder.ancestors().map(Path::to_owned).collect::<Vec<_>>())
            .collect();
        let within =
            |folder: &Path| wrapper.reads.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
        let mut open: Vec<PathBuf> = places().skip(given).filter(|place| place.is_file()).collect();
        open.extend(folders.iter().flat_map(|folder| within(folder)));
        let mut seen = HashSet::new();
        while let Some(path) = open.pop().filter(|_| seen.len() < MOST_FILES) {
            if !path.is_file() || !seen.insert(path.clone()) {
                continue;
            }
            let Some(text) = read(&path) else {
                self.load(path.display().to_string());
                continue;
            };
            if text.lines().any(includes_unknown) {
                self.load(path.display().to_string());
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for (word, is_told) in named_in(&text) {
                let target = folder.join(word.trim_end_matches(['*', '/']));
                if word.ends_with('*') {
                    let children = fs::read_dir(&target).into_iter().flatten().flatten();
                    open.extend(children.flat_map(|child| within(&child.path())));
                } else if target.is_dir() {
                    open.extend(within(&target));
                } else if facts.is_settings(word, is_told) {
                    open.push(target);
                }
            }
            self.texts.push((path.display().to_string(), text));
        }
    }

    /// Notes that nobody knows what this sets.
    fn load(&mut self, origin: String) {
        self.is_loaded = true;
        self.loader = Some(origin);
    }

    /// Takes words that may be assignments, or places.
    fn set_by(&mut self, words: &[String]) {
        for word in words {
            if word.split_once('=').is_some_and(|(name, _)| !name.contains(char::is_whitespace)) {
                self.texts.push(("the command line".to_owned(), word.clone()));
            }
            let value = word.rsplit('=').next().unwrap_or_default();
            self.places.extend([word.into(), PathBuf::from(value)]);
        }
    }
}

/// The words of a text that may be names of files.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || "._-/~*@+".contains(c);
    text.split(move |c| !is_of_name(c)).filter(|word| (1..256).contains(&word.len()))
}

/// The words of a text, each once, and whether the line that a word stands on loads a file.
fn named_in(text: &str) -> HashSet<(&str, bool)> {
    const LOADS: [&str; 6] = ["env", "include", "source", "import", "extends", ". "];
    let words = text.lines().flat_map(|line| {
        let is_told = LOADS.iter().any(|word| line.contains(word));
        words_of(line).map(move |word| (word, is_told))
    });
    words.collect()
}

/// Whether a line of a make file includes files that it does not name. What it includes of a compiler
/// sets nothing.
fn includes_unknown(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_include = matches!(words.next(), Some("include" | "-include" | "sinclude"));
    let of_compiler = |word: &str| word.to_ascii_lowercase().contains("dep") || word.contains(".d");
    is_include && words.any(|word| word.contains(['$', '*', '?', '[']) && !of_compiler(word))
}

/// Whether a word is `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A file of text as any loader may take it: with bytes that are no UTF-8, in UTF-16, and with carriage
/// returns as the only ends of lines.
pub(super) fn read(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    let is_text = about.is_file() && about.len() <= MOST_TEXT;
    let text = is_text.then(|| fs::read(path).ok()).flatten()?;
    let text = String::from_utf8_lossy(&text).replace('\0', "");
    Some(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The folder that the command runs in.
pub(super) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// The path of a program.
pub(super) fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a shell is given: as a text behind `-c`, or as a file.
fn shell_text(program: &str, path: Option<&Path>, words: &[String]) -> Option<(String, String)> {
    if !matches!(stem(program), "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "ash") {
        let text = read(path?)?;
        let first = text.lines().next().unwrap_or_default();
        let is_script = first.starts_with("#!") && first.trim_end().ends_with("sh");
        return is_script.then(|| (program.to_owned(), text));
    }
    let is_option = |word: &&String| word.starts_with(['-', '+']);
    let options = words.iter().take_while(is_option).count();
    let operand = words.get(options)?;
    let is_text = |word: &String| !word.starts_with("--") && word.contains('c');
    if words.iter().take(options).any(is_text) {
        return Some(("the command line".to_owned(), operand.clone()));
    }
    Some((operand.clone(), read(Path::new(operand))?))
}

/// Words of a shell before a command.
const KEYWORDS: [&str; 12] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done"];

/// The simple commands of a shell's text, word by word. What a shell would put in place of a variable
/// stays.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    let mut is_word = false;
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None | Some('"'), '\\') => {
                let escaped = chars.next();
                word.extend(escaped.filter(|escaped| *escaped != '\n'));
            }
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(char), true),
            (None, '#') if word.is_empty() && !is_word => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
            }
            (None, ';' | '&' | '|' | '(' | ')' | '`' | '\n' | ' ' | '\t' | '\r') => {
                let words =
                    iter::once(std::mem::take(&mut word)).filter(|of| is_word || !of.is_empty());
                if let Some(command) = commands.last_mut() {
                    command.extend(words);
                }
                is_word = false;
                if !char.is_whitespace() || char == '\n' {
                    commands.push(Vec::new());
                }
            }
            _ => word.push(char),
        }
    }
    if let Some(command) = commands.last_mut().filter(|_| is_word || !word.is_empty()) {
        command.push(word);
    }
    for command in &mut commands {
        let keywords = command.iter().take_while(|word| KEYWORDS.contains(&word.as_str())).count();
        command.drain(..keywords);
    }
    // Options of the shell itself start nothing.
    commands.retain(|command| command.first().is_some_and(|word| word != "set"));
    commands
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails")]

    use super::*;

    fn client(command: &[&str]) -> (Option<&'static str>, Option<usize>) {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let scene = Scene::of(Facts::get().unwrap(), &command);
        (scene.client.map(|client| client.name.as_str()), scene.arguments_at)
    }

    #[test]
    fn a_client_is_found_behind_what_starts_it() {
        for (command, name, at) in [
            (&["aider", "--message", "hi"][..], Some("aider"), Some(1)),
            (&["/opt/x/qwen"], Some("qwen"), Some(1)),
            (&["env", "-u", "A", "B=c", "qwen"], Some("qwen"), Some(5)),
            (&["timeout", "-s", "KILL", "60", "codex", "exec"], Some("codex"), Some(5)),
            (&["uv", "run", "--with", "x", "aider"], Some("aider"), Some(5)),
            (&["uvx", "--from", "aider-chat", "aider"], Some("aider"), Some(4)),
            (&["npx", "-y", "@qwen-code/qwen-code@latest", "-p"], Some("qwen"), Some(3)),
            (&["python3.12", "-m", "aider"], Some("aider"), Some(3)),
            (&["npm", "exec", "--", "@openai/codex"], Some("codex"), Some(4)),
            (&["nohup", "nice", "-n", "5", "gemini"], Some("gemini"), Some(5)),
            (&["sh", "-c", "exec qwen \"$@\""], Some("qwen"), None),
            (&["bash", "-lc", "# note\nset -e\nuv run mini"], Some("mini"), None),
            (&["sh", "-c", "A=b qwen -p 'a; b'"], Some("qwen"), None),
            // Its files win over variables, and a shell takes no arguments for it.
            (&["sh", "-c", "exec aider \"$@\""], None, None),
            // What else runs there would take what is meant for the client.
            (&["sh", "-c", "cd x && qwen"], None, None),
            (&["python", "agent.py", "--model", "qwen"], None, None),
            (&["agent", "qwen"], None, None),
            (&["env"], None, None),
        ] {
            assert_eq!(client(command), (name, at), "{command:?}");
        }
    }

    #[test]
    fn what_sets_a_variable_is_seen() {
        for (command, seen) in [
            (&["env", "A_B=c", "agent"][..], "A_B=c"),
            (&["docker", "run", "-e", "A_B=c", "image"], "A_B=c"),
            (&["sh", "-c", "A_B=c agent"], "A_B=c agent"),
        ] {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            let scene = Scene::of(Facts::get().unwrap(), &command);
            assert!(scene.texts.iter().any(|(_, text)| text == seen), "{:?}", scene.texts);
        }
    }
}
