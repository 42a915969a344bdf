//! Where agents keep their sessions. `docs/sessions.md` lists the same.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// A folder in which an agent keeps its sessions, or a database of them.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) agent: &'static str,
    pub(crate) folder: PathBuf,
}

impl Place {
    /// What is read of it: of agents that keep other things there too, the chats of each project, or
    /// the databases.
    pub(crate) fn sources(&self) -> Vec<PathBuf> {
        if self.folder.is_file() {
            return vec![self.folder.clone()];
        }
        let is_source: fn(&PathBuf) -> bool = match self.agent {
            GEMINI | QWEN => |chats| chats.is_dir(),
            OPENCODE => |file| file.extension().is_some_and(|end| end == "db"),
            _ => return vec![self.folder.clone()],
        };
        let within = |path: PathBuf| match self.agent {
            OPENCODE => path,
            _ => path.join("chats"),
        };
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(within(entry.ok()?.path())));
        let mut sources: Vec<PathBuf> = paths.filter(is_source).collect();
        sources.sort();
        sources
    }

    /// The folder as people write it.
    pub(crate) fn shown(&self) -> String {
        let below = home().and_then(|home| Some(self.folder.strip_prefix(home).ok()?.to_owned()));
        below.map_or_else(
            || self.folder.display().to_string(),
            |below| Path::new("~").join(below).display().to_string(),
        )
    }
}

const GEMINI: &str = "Gemini";
const QWEN: &str = "Qwen Code";
const OPENCODE: &str = "OpenCode";
const MINI: &str = "mini-swe-agent";
/// Where editors keep what the extension of Cline writes, below the folder of their settings.
const OF_EDITOR: &str = "Code/User/globalStorage/saoudrizwan.claude-dev/tasks";

/// All places, whether they exist or not, each once.
pub(crate) fn all() -> Vec<Place> {
    let mut places = Places { home: home(), all: Vec::new() };
    // Of several folders, apart by commas.
    let claude = variable("CLAUDE_CONFIG_DIR").unwrap_or_default();
    for folder in claude.to_string_lossy().split(',').filter(|folder| !folder.is_empty()) {
        places.add("Claude Code", Path::new(folder).join("projects"));
    }
    places.add_home("Claude Code", ".claude/projects");
    places.add_xdg("Claude Code", ("XDG_CONFIG_HOME", ".config"), "claude/projects");
    for sessions in ["sessions", "archived_sessions"] {
        places.add_variable("Codex", "CODEX_HOME", sessions);
        places.add_home("Codex", &format!(".codex/{sessions}"));
    }
    places.add_variable("pi", "PI_CODING_AGENT_DIR", "sessions");
    places.add_home("pi", ".pi/agent/sessions");
    places.add_variable(GEMINI, "GEMINI_CLI_HOME", ".gemini/tmp");
    places.add_home(GEMINI, ".gemini/tmp");
    places.add_variable("Kimi", "KIMI_SHARE_DIR", "sessions");
    places.add_home("Kimi", ".kimi/sessions");
    places.add_variable("Kimi", "KIMI_CODE_HOME", "sessions");
    places.add_home("Kimi", ".kimi-code/sessions");
    places.add_variable(QWEN, "QWEN_RUNTIME_DIR", "projects");
    places.add_variable(QWEN, "QWEN_HOME", "projects");
    places.add_home(QWEN, ".qwen/projects");
    places.add_variable("Copilot", "COPILOT_HOME", "session-state");
    places.add_home("Copilot", ".copilot/session-state");
    places.add_home("Cline", ".cline/data/sessions");
    if cfg!(target_os = "windows") {
        places.add_variable("Cline", "APPDATA", OF_EDITOR);
    } else if cfg!(target_os = "macos") {
        places.add_home("Cline", &format!("Library/Application Support/{OF_EDITOR}"));
    } else {
        places.add_xdg("Cline", ("XDG_CONFIG_HOME", ".config"), OF_EDITOR);
    }
    places.add_xdg(OPENCODE, ("XDG_DATA_HOME", ".local/share"), "opencode");
    // A name without a folder is one in the folder above.
    if let Some(file) = variable("OPENCODE_DB").map(PathBuf::from).filter(|of| of.is_absolute()) {
        let is_listed = |of: &Place| file.parent() == Some(of.folder.as_path());
        if !places.all.iter().any(is_listed) {
            places.add(OPENCODE, file);
        }
    }
    places.add_variable("Continue", "CONTINUE_GLOBAL_DIR", "sessions");
    places.add_home("Continue", ".continue/sessions");
    places.add_xdg("goose", ("XDG_DATA_HOME", ".local/share"), "goose/sessions");
    // The last run.
    if let Some(folder) = variable("MSWEA_GLOBAL_CONFIG_DIR") {
        places.add(MINI, folder.into());
    }
    if cfg!(target_os = "macos") {
        places.add_home(MINI, &format!("Library/Application Support/{MINI}"));
    } else {
        places.add_xdg(MINI, ("XDG_CONFIG_HOME", ".config"), MINI);
    }
    places.all
}

struct Places {
    home: Option<PathBuf>,
    all: Vec<Place>,
}

impl Places {
    fn add(&mut self, agent: &'static str, folder: PathBuf) {
        let same = |other: &Place| {
            other.folder == folder
                || other
                    .folder
                    .canonicalize()
                    .is_ok_and(|other| folder.canonicalize().is_ok_and(|folder| folder == other))
        };
        if !self.all.iter().any(same) {
            self.all.push(Place { agent, folder });
        }
    }

    fn add_home(&mut self, agent: &'static str, below: &str) {
        if let Some(home) = &self.home {
            self.add(agent, home.join(below));
        }
    }

    /// Below the folder of a variable, else of its default in the user's folder.
    fn add_xdg(&mut self, agent: &'static str, (name, default): (&str, &str), below: &str) {
        match variable(name) {
            Some(folder) => self.add(agent, Path::new(&folder).join(below)),
            None => self.add_home(agent, &format!("{default}/{below}")),
        }
    }

    fn add_variable(&mut self, agent: &'static str, name: &str, below: &str) {
        if let Some(folder) = variable(name) {
            self.add(agent, Path::new(&folder).join(below));
        }
    }
}

/// The user's folder.
pub(crate) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// A variable of the environment that is not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
