//! What `afterimage record` does for the command that it starts, and leaves as it was.
#![cfg(all(unix, feature = "record"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use serde_json::Value;

use crate::support::afterimage;

/// A program of this name that runs a script.
fn stand_in(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Records a command, in this environment alone. Gives what it and the recorder said.
fn record(folder: &Path, command: &[&str], env: &[(&str, &str)]) -> (String, String) {
    record_with(&[], folder, command, env)
}

fn record_with(
    options: &[&str],
    folder: &Path,
    command: &[&str],
    env: &[(&str, &str)],
) -> (String, String) {
    let recording = folder.join("recording");
    let args = ["record", "-o", recording.to_str().unwrap()];
    let args = [&args, options, &["--"], command].concat();
    let mut recorder = afterimage(&args);
    recorder.env_remove("OPENAI_BASE_URL").env_remove("ANTHROPIC_BASE_URL");
    let output = recorder.envs(env.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    (out, err)
}

#[test]
fn a_base_url_that_is_not_taken_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let lan = "http://192.0.2.5:11434/v1";
    let script = "echo $OPENAI_BASE_URL; echo $ANTHROPIC_BASE_URL";
    let (out, err) = record(scratch.path(), &["sh", "-c", script], &[("OPENAI_BASE_URL", lan)]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], lan);
    assert!(lines[1].starts_with("http://127.0.0.1:"), "{out}");
    assert!(err.contains("OPENAI_BASE_URL stays as it is"), "{err}");
}

#[test]
fn codex_with_a_login_of_chatgpt_goes_where_it_would() {
    let scratch = tempfile::tempdir().unwrap();
    let codex = stand_in(scratch.path(), "codex", "printf '%s\\n' \"$@\"");
    let home = scratch.path().to_str().unwrap();
    let chatgpt = "/chatgpt/backend-api/codex\"";
    let own = "openai_base_url=\"http://127.0.0.1:1/x\"";
    let attached = format!("-c{own}");
    for (auth, given, ends) in [
        (r#"{"OPENAI_API_KEY":null,"tokens":{"id_token":"x"}}"#, None, chatgpt),
        (r#"{"auth_mode":"ChatGPT","OPENAI_API_KEY":"k"}"#, None, chatgpt),
        (r#"{"OPENAI_API_KEY":"k","tokens":null}"#, None, "/openai/v1\""),
        (r#"{"OPENAI_API_KEY":"k","tokens":{}}"#, None, "/openai/v1\""),
        ("no JSON", None, "/openai/v1\""),
        (r#"{"tokens":{}}"#, Some(&attached), "/openai/x\""),
    ] {
        fs::write(scratch.path().join("auth.json"), auth).unwrap();
        let command: Vec<&str> =
            std::iter::once(codex.as_str()).chain(given.map(String::as_str)).collect();
        let (out, _) = record(scratch.path(), &command, &[("CODEX_HOME", home)]);
        let bases: Vec<&str> =
            out.lines().filter(|line| line.contains("openai_base_url=")).collect();
        assert_eq!(bases.len(), 1, "{auth}: {out}");
        assert!(bases[0].ends_with(ends), "{auth}: {out}");
    }
    // Behind `--` stands a prompt.
    let (out, _) = record(scratch.path(), &[&codex, "--", "-c", own], &[("CODEX_HOME", home)]);
    assert!(out.ends_with(&format!("--\n-c\n{own}\n")), "{out}");
}

#[test]
fn what_pi_writes_for_the_first_time_is_in_its_own_folder_afterwards() {
    let scratch = tempfile::tempdir().unwrap();
    let over = "cd \"$PI_CODING_AGENT_DIR\"";
    let script = format!(
        "{over}; echo new > auth.json; mkdir -p cache/a; echo c > cache/a/b; echo s > settings.tmp; \
         mv settings.tmp settings.json; echo kept >> history; pwd; cat models.json; ls -a; \
         stat -c 'mode %a' . models.json"
    );
    let pi = stand_in(scratch.path(), "pi", &script);
    let home = scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    let models = "{ // mine\n \"providers\": {\"lan\": {\"baseUrl\": \"http://192.0.2.5/v1\"},} }";
    fs::write(home.join("models.json"), models).unwrap();
    fs::write(scratch.path().join("dotfiles-settings"), "old").unwrap();
    symlink(scratch.path().join("dotfiles-settings"), home.join("settings.json")).unwrap();
    fs::write(home.join("history"), "first\n").unwrap();
    symlink("/no/such/place", home.join("nowhere")).unwrap();
    let env = [("PI_CODING_AGENT_DIR", home.to_str().unwrap())];
    let (out, err) = record(scratch.path(), &[&pi], &env);
    assert!(err.contains("a base URL of lan in models.json of pi stays as it is"), "{err}");
    assert!(out.contains("http://192.0.2.5/v1") && out.contains("/anthropic"), "{out}");
    // It may hold keys.
    assert!(out.ends_with("mode 700\nmode 600\n"), "{out}");
    let read = |name: &str| fs::read_to_string(home.join(name)).unwrap();
    assert_eq!(
        [read("auth.json"), read("cache/a/b"), read("settings.json"), read("history")],
        ["new\n", "c\n", "s\n", "first\nkept\n"]
    );
    assert_eq!(read("models.json"), models);
    // The user's own link leads to what was written.
    assert!(home.join("settings.json").is_symlink());
    let temporary = Path::new(out.lines().next().unwrap());
    assert!(temporary.is_absolute() && !temporary.exists(), "{out}");
}

#[test]
fn more_calls_pass_than_the_usual_limit_of_open_files_lets() {
    let scratch = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut input = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while input.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";
                stream.write_all(head).unwrap();
                // The answer goes on until the client is gone.
                let _ = input.read_line(&mut line);
            });
        }
    });
    let program = assert_cmd::cargo::cargo_bin!("afterimage");
    let script = format!(
        "ulimit -Sn 64; exec {} record -o {} --upstream {upstream} --listen 127.0.0.1:0 -- \
         sh -c 'ulimit -Sn; echo $OPENAI_BASE_URL; read line'",
        program.display(),
        scratch.path().join("recording").display()
    );
    let mut recorder = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "64", "the command keeps its limit");
    let base = lines.next().unwrap();
    let (address, path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut calls = Vec::new();
    for _ in 0..80 {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("GET /{path}/models HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        input.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n", "call {}", calls.len());
        calls.push(input);
    }
    drop(calls);
    recorder.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(recorder.wait().unwrap().success());
}

#[test]
fn what_a_killed_recorder_left_is_restored_by_the_next_one() {
    let scratch = tempfile::tempdir().unwrap();
    let [home, temporary] = ["home", "tmp"].map(|name| {
        let path = scratch.path().join(name);
        fs::create_dir(&path).unwrap();
        path
    });
    // The first run is killed, and so is its command, which has written a file.
    let first = stand_in(
        scratch.path(),
        "pi",
        "cd \"$PI_CODING_AGENT_DIR\"; echo new > auth.json; echo $$; exec sleep 600",
    );
    let recording = scratch.path().join("recording");
    let recorder = |program: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
        command.args(["record", "-o", recording.to_str().unwrap(), "--", program]);
        command.env("PI_CODING_AGENT_DIR", &home).env("TMPDIR", &temporary);
        command.env_remove("OPENAI_BASE_URL").env_remove("ANTHROPIC_BASE_URL");
        command
    };
    let mut killed = recorder(&first).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(killed.stdout.take().unwrap()).lines();
    let process = said.next().unwrap().unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let overlays = || fs::read_dir(&temporary).unwrap().count();
    assert_eq!(overlays(), 1);
    // While its command runs, the folder stays.
    fs::create_dir(scratch.path().join("second")).unwrap();
    let second = stand_in(&scratch.path().join("second"), "pi", "true");
    assert!(recorder(&second).output().unwrap().status.success());
    assert_eq!((overlays(), home.join("auth.json").exists()), (1, false));
    assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
    // Until the system has taken it away.
    let runs = || {
        let asked = Command::new("kill").args(["-0", &process]).stderr(Stdio::null()).status();
        asked.unwrap().success()
    };
    wait_for("the system to reap the command", || !runs());
    let third = recorder(&second).output().unwrap();
    let err = String::from_utf8(third.stderr).unwrap();
    assert!(err.contains("a run that was killed left"), "{err}");
    assert_eq!(overlays(), 0, "{err}");
    assert_eq!(fs::read_to_string(home.join("auth.json")).unwrap(), "new\n");
    assert!(!home.join("models.json").exists() && !home.join(".afterimage-overlay").exists());
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "waited for {what}");
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// What a stand-in for Claude Code is given as its base URL: by `--settings`, else by the variable.
fn base_of_claude(out: &str) -> (Option<Value>, String) {
    let mut lines = out.lines();
    let variable = lines.next().unwrap().to_owned();
    let all: Vec<&str> = lines.collect();
    let at = all.iter().rposition(|line| *line == "--settings");
    // A file is printed behind its mode.
    let text = at.map(|at| all[at..].iter().find(|line| line.starts_with('{')).unwrap());
    let settings = text.map(|text| serde_json::from_str(text).unwrap());
    (settings, variable)
}

/// Claude Code in a folder of its own, with the settings of a user and of a project.
struct ClaudeHome {
    scratch: tempfile::TempDir,
    program: String,
}

impl ClaudeHome {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let script = "echo $ANTHROPIC_BASE_URL; for argument; do if [ -f \"$argument\" ]; then \
                      ls -l \"$argument\"; cat \"$argument\"; echo; else echo \"$argument\"; fi; done";
        let program = stand_in(scratch.path(), "claude", script);
        for folder in ["home", "project/.git", "project/.claude", "project/src"] {
            fs::create_dir_all(scratch.path().join(folder)).unwrap();
        }
        Self { scratch, program }
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.scratch.path().join(path), text).unwrap();
    }

    /// Records it in a folder of the project.
    fn run(&self, options: &[&str], arguments: &[&str]) -> (Option<Value>, String, String) {
        let recording = self.scratch.path().join("recording");
        let args = ["record", "-o", recording.to_str().unwrap()];
        let args = [&args, options, &["--", &self.program], arguments].concat();
        let mut recorder = afterimage(&args);
        recorder.env_remove("OPENAI_BASE_URL").env_remove("ANTHROPIC_BASE_URL");
        recorder.env("CLAUDE_CONFIG_DIR", self.scratch.path().join("home"));
        recorder.current_dir(self.scratch.path().join("project/src"));
        let output = recorder.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        let (settings, variable) = base_of_claude(&out);
        (settings, variable, err)
    }
}

fn names(url: &str) -> String {
    format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"{url}"}}}}"#)
}

fn base_in(settings: Option<&Value>) -> &str {
    settings.unwrap()["env"]["ANTHROPIC_BASE_URL"].as_str().unwrap()
}

#[test]
fn a_base_url_in_settings_of_claude_code_is_the_upstream() {
    let claude = ClaudeHome::new();
    // Nothing names one: the variable is enough.
    let (settings, variable, _) = claude.run(&[], &["-p", "hi"]);
    assert!(settings.is_none() && variable.ends_with("/anthropic"), "{variable}");
    // Each of these outranks those before it.
    for (path, url, ends) in [
        ("home/settings.json", "https://gateway.example/user", "/anthropic/user"),
        ("project/.claude/settings.json", "https://gateway.example/team", "/anthropic/team"),
        ("project/.claude/settings.local.json", "https://gateway.example/own", "/anthropic/own"),
        // A blank one leads to the provider's own host.
        ("project/.claude/settings.local.json", "", "/anthropic"),
    ] {
        claude.put(path, &names(url));
        let (settings, variable, err) = claude.run(&[], &["-p", "hi"]);
        let base = base_in(settings.as_ref());
        assert!(base.starts_with("http://127.0.0.1:") && base.ends_with(ends), "{base}: {err}");
        // Settings outrank the variable, which would lead programs of Claude Code elsewhere.
        assert_eq!(variable, "", "{variable}");
    }
    // Where only those of the user are read, they count.
    let (settings, ..) = claude.run(&[], &["--setting-sources", "user", "-p", "hi"]);
    assert!(base_in(settings.as_ref()).ends_with("/anthropic/user"), "{settings:?}");
    let upstream = ["--upstream", "anthropic=https://gateway.example/asked"];
    let (settings, ..) = claude.run(&upstream, &[]);
    assert!(base_in(settings.as_ref()).ends_with("/anthropic/asked"), "{settings:?}");
    let read = |path: &str| fs::read_to_string(claude.scratch.path().join(path)).unwrap();
    assert_eq!(read("home/settings.json"), names("https://gateway.example/user"));
}

#[test]
fn settings_on_the_command_line_of_claude_code_are_kept() {
    let claude = ClaudeHome::new();
    claude.put("home/settings.json", &names("https://gateway.example/user"));
    claude.put("more.json", r#"{"model":"m","env":{"A":"1"}}"#);
    let more = claude.scratch.path().join("more.json");
    let given = r#"{"env":{"ANTHROPIC_BASE_URL":"https://gateway.example/given","B":"2"},"n":1.0}"#;
    for (value, ends, kept) in [
        (more.to_str().unwrap(), "/anthropic/user", r#"{"env":{"A":"1"},"model":"m"}"#),
        (given, "/anthropic/given", r#"{"env":{"B":"2"},"n":1.0}"#),
    ] {
        let arguments = ["--settings", "{}", "--settings", value, "-p", "hi"];
        let (settings, _, err) = claude.run(&[], &arguments);
        let mut settings = settings.unwrap();
        assert!(base_in(Some(&settings)).ends_with(ends), "{settings}: {err}");
        settings["env"].as_object_mut().unwrap().remove("ANTHROPIC_BASE_URL");
        assert_eq!(settings, serde_json::from_str::<Value>(kept).unwrap());
    }
}

#[test]
fn what_a_file_of_settings_of_claude_code_holds_is_in_no_argument() {
    let claude = ClaudeHome::new();
    claude.put("home/settings.json", &names("https://gateway.example/user"));
    // Longer than an argument may be, too.
    let long = "x".repeat(200_000);
    claude.put("more.json", &format!(r#"{{"env":{{"ANTHROPIC_AUTH_TOKEN":"{long}"}}}}"#));
    let more = claude.scratch.path().join("more.json");
    let option = format!("--settings={}", more.display());
    for arguments in [&["--settings", more.to_str().unwrap()][..], &[&option]] {
        let recording = claude.scratch.path().join("recording");
        let args = ["record", "-o", recording.to_str().unwrap(), "--", &claude.program];
        let mut recorder = afterimage(&[&args[..], arguments].concat());
        recorder.env("CLAUDE_CONFIG_DIR", claude.scratch.path().join("home"));
        let output = recorder.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let out = String::from_utf8(output.stdout).unwrap();
        let path = out.lines().find_map(|line| Some(line.split_once("afterimage-")?.1));
        let name = format!("afterimage-{}", path.unwrap());
        if arguments.len() == 2 {
            assert!(out.contains("-rw-------") && out.contains(&long), "{}", out.len());
        } else {
            assert!(out.contains("--settings=/") && !out.contains(&long), "{}", out.len());
        }
        assert!(!std::env::temp_dir().join(name).exists());
    }
}

#[test]
fn settings_of_claude_code_that_lead_elsewhere_are_told_of() {
    let claude = ClaudeHome::new();
    claude.put("home/settings.json", &names("http://192.0.2.5/v1"));
    let (settings, _, err) = claude.run(&[], &["-p"]);
    assert!(settings.is_none(), "{settings:?}");
    assert!(
        err.contains("settings.json stays as it is, and calls there are not recorded"),
        "{err}"
    );
    // What is done with bodies is said before all else.
    assert!(err.lines().next().unwrap().contains("bodies as they are"), "{err}");
    // What cannot be read is for Claude Code to say.
    for text in
        [r#"{"env":{"ANTHROPIC_BASE_URL":7}}"#, r#"{"env":["ANTHROPIC_BASE_URL"]}"#, "{", ""]
    {
        claude.put("home/settings.json", text);
        let (settings, variable, err) = claude.run(&[], &["-p"]);
        assert!(settings.is_none() && variable.starts_with("http://127.0.0.1:"), "{text}: {err}");
        assert!(!err.contains("stays as it is"), "{text}: {err}");
    }
}

#[test]
fn codex_and_pi_are_led_to_their_providers_and_not_to_what_variables_name() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().to_str().unwrap();
    let variables = "echo $OPENAI_BASE_URL; echo $ANTHROPIC_BASE_URL";
    let codex = stand_in(scratch.path(), "codex", &format!("{variables}; printf '%s\\n' \"$@\""));
    let models = "cat \"$PI_CODING_AGENT_DIR/models.json\"";
    let pi = stand_in(scratch.path(), "pi", &format!("{variables}; {models}"));
    let env = [
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/others"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/theirs"),
        ("CODEX_HOME", home),
        ("PI_CODING_AGENT_DIR", home),
    ];
    let check_variables = |out: &str| {
        // What the client starts calls what it would call.
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].ends_with("/others"), "{out}");
        assert!(lines[1].ends_with("/theirs"), "{out}");
        lines[2..].join("\n")
    };
    let (out, _) = record(scratch.path(), &[&codex], &env);
    let arguments = check_variables(&out);
    assert!(arguments.contains("openai_base_url=\"http://127.0.0.1:"), "{arguments}");
    assert!(arguments.ends_with("/openai/v1\""), "{arguments}");
    // Its own configuration says otherwise, for itself alone.
    let own = "openai_base_url=\"http://127.0.0.1:1/own\"";
    fs::write(scratch.path().join("config.toml"), own).unwrap();
    let (out, _) = record(scratch.path(), &[&codex], &env);
    assert!(check_variables(&out).ends_with("/openai/own\""), "{out}");
    let (out, _) = record(scratch.path(), &[&codex], &env[2..]);
    // What it starts goes where it would.
    assert!(out.starts_with("\n\n-c\n"), "{out}");

    let (out, _) = record(scratch.path(), &[&pi], &env);
    let models: Value = serde_json::from_str(&check_variables(&out)).unwrap();
    for (provider, ends) in [("openai", "/openai/v1"), ("anthropic", "/anthropic")] {
        let base = models["providers"][provider]["baseUrl"].as_str().unwrap();
        assert!(base.ends_with(ends), "{base}");
    }
}

#[test]
fn a_base_url_of_codex_that_is_not_taken_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().to_str().unwrap();
    let codex = stand_in(scratch.path(), "codex", "printf '%s\\n' \"$@\"");
    let lan = "http://192.0.2.5:11434/v1";
    for (configuration, given) in [
        (format!("openai_base_url = \"{lan}\""), None),
        (format!("model_providers.box.base_url = \"{lan}\""), None),
        (String::new(), Some(format!("openai_base_url={lan}"))),
        (String::new(), Some(format!("model_providers.box.base_url=\"{lan}\""))),
        (String::new(), Some(format!("model_providers.box={{base_url=\"{lan}\",name=\"b\"}}"))),
        (String::new(), Some(format!("model_providers={{box={{base_url=\"{lan}\"}}}}"))),
    ] {
        fs::write(scratch.path().join("config.toml"), configuration).unwrap();
        let given = given.as_deref();
        let command = [&[codex.as_str()][..], given.map_or(&[], |_| &["-c"]), given.as_slice()];
        let (out, err) = record(scratch.path(), &command.concat(), &[("CODEX_HOME", home)]);
        assert!(err.contains("of Codex stays as it is, and calls there are not recorded"), "{err}");
        assert!(!out.contains("openai_base_url=\"http://127.0.0.1") || !err.contains("openai_"));
        assert!(given.is_none() || out.contains(lan), "{out}");
    }
}

#[test]
fn an_upstream_outranks_the_configuration_of_the_provider_that_it_names() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().to_str().unwrap();
    let codex = stand_in(scratch.path(), "codex", "printf '%s\\n' \"$@\"");
    let pi = stand_in(scratch.path(), "pi", "cat \"$PI_CODING_AGENT_DIR/models.json\"");
    let own = "openai_base_url=\"http://127.0.0.1:1/own\"";
    fs::write(scratch.path().join("config.toml"), own).unwrap();
    let models = r#"{"providers":{"openai":{"baseUrl":"http://127.0.0.1:1/own"}}}"#;
    fs::write(scratch.path().join("models.json"), models).unwrap();
    let env = [("CODEX_HOME", home), ("PI_CODING_AGENT_DIR", home)];
    for (upstream, ends) in [
        ("http://127.0.0.1:1/asked", "/openai/asked"),
        ("openai=http://127.0.0.1:1/asked", "/openai/asked"),
        ("anthropic=http://127.0.0.1:1/asked", "/own"),
    ] {
        let options = ["--upstream", upstream];
        let (out, _) = record_with(&options, scratch.path(), &[&codex], &env);
        assert!(out.ends_with(&format!("{ends}\"\n")), "{upstream}: {out}");
        let (out, _) = record_with(&options, scratch.path(), &[&pi], &env);
        let models: Value = serde_json::from_str(&out).unwrap();
        let base = models["providers"]["openai"]["baseUrl"].as_str().unwrap();
        assert!(base.ends_with(ends), "{upstream}: {base}");
    }
}

/// The settings that a stand-in for Codex was given, one laid over the other as Codex does.
fn settings_of_codex(out: &str) -> toml::Table {
    let mut all = toml::Table::new();
    let lines: Vec<&str> = out.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[0] == "-c") {
        let (key, value) = pair[1].split_once('=').unwrap();
        let mut parsed: toml::Table = format!("value={value}").parse().unwrap();
        let mut table = &mut all;
        let (parts, last) = key.trim().rsplit_once('.').map_or(("", key.trim()), |both| both);
        for part in parts.split('.').filter(|part| !part.is_empty()) {
            let inner = table.entry(part).or_insert(toml::Value::Table(toml::Table::new()));
            table = inner.as_table_mut().unwrap();
        }
        table.insert(last.to_owned(), parsed.remove("value").unwrap());
    }
    all
}

#[test]
fn providers_of_codex_are_recorded_however_they_are_written() {
    let scratch = tempfile::tempdir().unwrap();
    let home = scratch.path().to_str().unwrap();
    let codex = stand_in(scratch.path(), "codex", "printf '%s\\n' \"$@\"");
    let config = "[model_providers.\"my.local\"]\nbase_url = \"http://127.0.0.1:1/dots\"\n\
                  [model_providers.plain]\nbase_url = \"http://127.0.0.1:1/plain\"\n";
    fs::write(scratch.path().join("config.toml"), config).unwrap();
    let run = |arguments: &[&str]| {
        let command = [&[codex.as_str()], arguments].concat();
        let (out, _) = record(scratch.path(), &command, &[("CODEX_HOME", home)]);
        let settings = settings_of_codex(&out);
        settings["model_providers"].as_table().unwrap().clone()
    };
    let check = |providers: &toml::Table, name: &str, ends: &str| {
        let base = providers[name]["base_url"].as_str().unwrap();
        assert!(base.starts_with("http://127.0.0.1:") && base.ends_with(ends), "{name}: {base}");
    };
    let inline =
        "model_providers.loc = {name=\"a \\\"b\\\"\", base_url=\"http://127.0.0.1:1/in\", n=[1]}";
    let providers = run(&["exec", "-c", inline]);
    check(&providers, "my.local", "/my-local/dots");
    check(&providers, "plain", "/plain/plain");
    check(&providers, "loc", "/loc/in");
    assert_eq!(providers["loc"]["name"].as_str(), Some("a \"b\""));
    assert_eq!(providers["loc"]["n"].as_array().unwrap().len(), 1);
    // A table takes the place of what was set before, and is laid over the configuration.
    let providers = run(&["-c", "model_providers.plain={name=\"p\"}"]);
    check(&providers, "plain", "/plain/plain");
    let providers = run(&["-c", "model_providers={loc={base_url=\"http://127.0.0.1:1/all\"}}"]);
    check(&providers, "loc", "/loc/all");
    check(&providers, "my.local", "/my-local/dots");
    check(&providers, "plain", "/plain/plain");
    // An empty one takes the configured providers away.
    assert!(run(&["-c", "model_providers={}"]).is_empty());
    assert_eq!(fs::read_to_string(scratch.path().join("config.toml")).unwrap(), config);
}
