//! `afterimage record`: a command whose requests go through the recorder.
#![cfg(all(unix, feature = "record"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use afterimage::record::{End, RecordingWriter, RequestBody, ResponseHead, Start};
use serde_json::Value;

use crate::support::{Run, afterimage, run};

const BASE: &str = "AFTERIMAGE_TEST_BASE";
const ANSWER: &str = r#"{"id":"r","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes"}]}],"usage":{"input_tokens":7,"output_tokens":1}}"#;

/// Reads the head of a message, and its body.
fn message(input: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let begin = head.len();
        if input.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[begin..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A provider that answers every request, and the bodies that it got.
fn provider() -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&received);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, all) = (stream.unwrap(), Arc::clone(&all));
            thread::spawn(move || {
                let mut input = BufReader::new(stream.try_clone().unwrap());
                while let Some((_, body)) = message(&mut input) {
                    all.lock().unwrap().push(body);
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", ANSWER.len());
                    stream.write_all(format!("{head}{ANSWER}").as_bytes()).unwrap();
                }
            });
        }
    });
    (address, received)
}

/// Posts a body to a base URL, as a client of the Responses API does. Gives what came back.
fn post(base: &str, body: &str) -> String {
    post_to(base, "responses", body)
}

/// Posts a body to what stands behind a base URL.
fn post_to(base: &str, to: &str, body: &str) -> String {
    let rest = base.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /{path}/{to}?key=planted HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer planted\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let (head, body) = message(&mut BufReader::new(stream)).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    String::from_utf8(body).unwrap()
}

fn body(turns: usize) -> String {
    let turn = |at| format!(r#"{{"role":"user","content":"turn {at}"}}"#);
    let input: Vec<String> = (0..turns).map(turn).collect();
    format!(r#"{{"model":"m","tools":[],"input":[{}]}}"#, input.join(","))
}

/// What a recorded command does: three calls, and an exit code of its own.
#[test]
fn child_calls_the_provider() {
    let Ok(variable) = std::env::var(BASE) else { return };
    let base = std::env::var(variable).unwrap();
    for turns in 1..=3 {
        assert_eq!(post(&base, &body(turns)), ANSWER);
    }
    println!("said by the command");
    std::process::exit(7);
}

/// Records the calls of this test's own program, which finds its base URL in `variable`.
fn record(folder: &Path, options: &[&str], variable: &str, env: &[(&str, &str)]) -> Run {
    let program = std::env::current_exe().unwrap();
    let mut args = vec!["record", "-o", folder.to_str().unwrap()];
    args.extend(options);
    args.extend([
        "--",
        program.to_str().unwrap(),
        "record::child_calls_the_provider",
        "--exact",
        "--nocapture",
    ]);
    let mut command = afterimage(&args);
    command.env_remove("OPENAI_BASE_URL").env_remove("ANTHROPIC_BASE_URL").env(BASE, variable);
    let output = command.envs(env.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_command_runs_as_it_would_and_its_requests_are_recorded() {
    let scratch = tempfile::tempdir().unwrap();
    for (variable, options, env) in [
        ("OPENAI_BASE_URL", [""].as_slice(), Some("OPENAI_BASE_URL")),
        ("OPENAI_BASE_URL", &["--upstream", "URL"], None),
        ("ANTHROPIC_BASE_URL", &["--upstream", "anthropic=URL"], None),
        ("OTHER_BASE", &["--env", "OTHER_BASE=URL"], None),
    ] {
        let (address, received) = provider();
        let url = format!("http://{address}/v1");
        let folder = scratch.path().join(address.port().to_string());
        let options: Vec<String> = options
            .iter()
            .filter(|option| !option.is_empty())
            .map(|option| option.replace("URL", &url))
            .collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let env: Vec<(&str, &str)> = env.map(|name| (name, url.as_str())).into_iter().collect();
        let run_of = record(&folder, &options, variable, &env);
        assert_eq!(run_of.code, Some(7), "{}", run_of.err);
        assert!(run_of.out.contains("said by the command"), "{}", run_of.out);
        let first = run_of.err.lines().next().unwrap();
        assert!(first.contains("bodies as they are, with any secret in them"), "{first}");
        assert!(
            run_of.err.contains("recorded 3 exchanges, 3 of them for a model"),
            "{}",
            run_of.err
        );

        let received = received.lock().unwrap().clone();
        assert_eq!(received, [1, 2, 3].map(|turns| body(turns).into_bytes()));
        let path = folder.to_str().unwrap();
        for (number, body) in (1..).zip(&received) {
            let printed = run(&["render", "--request", &number.to_string(), path]);
            assert_eq!(printed.out.as_bytes(), body, "{}", printed.err);
        }
        let listed = run(&["requests", "--json", path]).out;
        let lines: Vec<Value> =
            listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let requests: Vec<&Value> =
            lines.iter().filter(|line| line.get("request").is_some()).collect();
        assert_eq!(requests.len(), 3);
        for request in requests {
            assert_eq!(
                (&request["provenance"], &request["outcome"]),
                (&"sent".into(), &"answered".into())
            );
            assert_eq!(request["usage"]["input"], 7);
        }
        assert_eq!(run(&["stats", path]).code, Some(0));
        let wire = fs::read(folder.join("wire.rec")).unwrap();
        assert!(!wire.windows(7).any(|bytes| bytes == b"planted"));
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

/// What a command does that asks for more than answers of a model.
#[test]
fn child_asks_for_vectors_and_counts() {
    let Ok(variable) = std::env::var(BASE) else { return };
    let base = std::env::var(variable).unwrap();
    for to in ["responses", "embeddings", "responses/input_tokens", "responses"] {
        post_to(&base, to, &body(1));
    }
    // Of what is invoked the body says whether it can be read.
    let asked = r#"{"anthropic_version":"v","messages":[{"role":"user","content":"a"}]}"#;
    post_to(&base, "model/us.anthropic.claude-opus-4-6-v1/invoke", asked);
    post_to(&base, "v1beta/interactions", r#"{"model":"gemini-3-pro","input":"a"}"#);
}

#[test]
fn the_last_line_counts_as_many_requests_as_are_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let path = folder.to_str().unwrap();
    let (address, _) = provider();
    let url = format!("http://{address}/v1beta");
    let program = std::env::current_exe().unwrap();
    let child = [program.to_str().unwrap(), "record::child_asks_for_vectors_and_counts", "--exact"];
    let args = ["record", "-o", path, "--upstream", &url, "--"];
    let output = afterimage(&[&args[..], &child].concat())
        .env(BASE, "OPENAI_BASE_URL")
        .env_remove("OPENAI_BASE_URL")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("recorded 6 exchanges, 3 of them for a model"), "{err}");
    let listed = run(&["requests", "--json", path]);
    assert_eq!(listed.out.matches("\"request\":").count(), 3, "{}", listed.out);
    let unread = "1 request cannot be read: 1 to Gemini Interactions";
    assert!(listed.err.contains(unread), "{}", listed.err);
}

const TAKEN: &str = "AFTERIMAGE_TEST_TAKEN";
const EXIT: &str = "AFTERIMAGE_TEST_EXIT";

/// What a command does that removes the recording: then it ends, or calls on in a new one.
#[test]
fn child_takes_the_recording_away() {
    let (Ok(variable), Ok(folder)) = (std::env::var(BASE), std::env::var(TAKEN)) else { return };
    let (base, folder) = (std::env::var(variable).unwrap(), Path::new(&folder));
    (1..=5).for_each(|turns| drop(post(&base, &body(turns))));
    fs::remove_dir_all(folder).unwrap();
    let exit = std::env::var(EXIT).unwrap();
    if exit == "calls on" {
        let began = std::time::Instant::now();
        while !folder.join("wire.rec").exists() {
            assert!(began.elapsed().as_secs() < 60, "no new recording begins");
            thread::sleep(std::time::Duration::from_millis(20));
        }
        post(&base, &body(6));
    }
    std::process::exit(exit.parse().unwrap_or(0));
}

#[test]
fn a_recording_that_is_lost_is_a_failure_unless_the_command_has_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let (address, _) = provider();
    let url = format!("http://{address}/v1");
    let program = std::env::current_exe().unwrap();
    for (exit, code, counts) in [("0", 2, None), ("5", 5, None), ("calls on", 0, Some(1))] {
        let folder = scratch.path().join(exit);
        let path = folder.to_str().unwrap();
        let child =
            [program.to_str().unwrap(), "record::child_takes_the_recording_away", "--exact"];
        let args = ["record", "-o", path, "--upstream", &url, "--"];
        let mut command = afterimage(&[&args[..], &child].concat());
        command.env(BASE, "OPENAI_BASE_URL").env(TAKEN, path).env(EXIT, exit);
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.contains("wire.rec was removed, moved or replaced"), "{err}");
        let Some(count) = counts else {
            assert!(err.contains("no call is recorded there"), "{err}");
            assert!(!err.contains("lists those") && !folder.exists(), "{err}");
            continue;
        };
        assert!(err.contains("a new recording begins in "), "{err}");
        let says = format!("recorded {count} exchange, {count} of them for a model");
        assert!(err.contains(&says), "{err}");
        let listed = run(&["requests", "--json", path]).out;
        assert_eq!(listed.matches("\"request\":").count(), count, "{listed}");
    }
}

#[test]
fn a_run_that_redacts_says_that_earlier_bodies_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (address, _) = provider();
    let url = format!("http://{address}/v1");
    let earlier = "bodies of earlier runs stay there as they are";
    for (options, says) in
        [(&["--redact"][..], false), (&["--redact"], false), (&[], false), (&["--redact"], true)]
    {
        let run_of = record(&folder, options, "OPENAI_BASE_URL", &[("OPENAI_BASE_URL", &url)]);
        assert_eq!(run_of.code, Some(7), "{}", run_of.err);
        let first = run_of.err.lines().next().unwrap();
        assert_eq!(first.contains(earlier), says, "{first}");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused_before_anything_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let path = folder.to_str().unwrap();
    let touched = scratch.path().join("touched");
    let command = ["--", "touch", touched.to_str().unwrap()];
    for (options, says) in [
        (["--upstream", "http://api.openai.com/v1"], "is not https"),
        (["--upstream", "https://u:planted@host/v1"], "has a user or a password"),
        (["--upstream", "mistral=https://api.mistral.ai"], "there is no provider"),
        (["--env", "NAME"], "expected NAME=URL"),
        (["--env", "NAME=https://host/?key=planted"], "has parameters"),
        (["--listen", "0.0.0.0:0"], "expected an address of loopback"),
    ] {
        let refused = run(&[&["record", "-o", path], &options[..], &command].concat());
        assert_eq!(refused.code, Some(2), "{options:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{options:?}: {}", refused.err);
        assert!(!refused.err.contains("planted"), "{}", refused.err);
    }
    let other = scratch.path().to_str().unwrap();
    fs::write(scratch.path().join("notes.txt"), "mine").unwrap();
    let refused = run(&[&["record", "-o", other], &command[..]].concat());
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("notes.txt"), "{}", refused.err);
    // A file system that takes no file, whoever writes.
    if cfg!(target_os = "linux") {
        let refused = run(&[&["record", "-o", "/proc/recording"], &command[..]].concat());
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("/proc/recording"), "{}", refused.err);
    }
    // Nor is a folder made where a file is in its way.
    for below in ["notes.txt", "notes.txt/recording"] {
        let below = scratch.path().join(below);
        let refused = run(&[&["record", "-o", below.to_str().unwrap()], &command[..]].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("cannot create the directory"), "{}", refused.err);
    }
    assert!(!touched.exists());
    let missing = run(&["record", "-o", path, "--", "/no/such/program"]);
    assert_eq!(missing.code, Some(2));
    assert_eq!(missing.err, "error: cannot run /no/such/program: there is no such program\n");
    // One that cannot be started asked nobody.
    let notes = scratch.path().join("notes.txt");
    let refused = run(&["record", "-o", path, "--", notes.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("cannot run ") && !refused.err.contains("came through"),
        "{}",
        refused.err
    );
    // A command that a signal ends.
    let killed = run(&["record", "-o", path, "--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(killed.code, Some(128 + 9), "{}", killed.err);
}

/// A program of this name that prints what it was given.
fn stand_in(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn codex_gets_its_base_urls_as_arguments() {
    let scratch = tempfile::tempdir().unwrap();
    let codex = stand_in(scratch.path(), "codex", "printf '%s\\n' \"$@\"");
    let home = scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    let config = "[model_providers.local]\nbase_url = \"http://127.0.0.1:1/a\"\n[model_providers.far]\nbase_url = \"http://far/a\"\n";
    fs::write(home.join("config.toml"), config).unwrap();
    let folder = scratch.path().join("recording");
    let given = ["exec", "-c", "model_providers.other.base_url=\"http://127.0.0.1:2/b\"", "text=1"];
    let args = [&["record", "-o", folder.to_str().unwrap(), "--", &codex], &given[..]].concat();
    let output =
        afterimage(&args).env("CODEX_HOME", &home).env_remove("OPENAI_BASE_URL").output().unwrap();
    let (out, err) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let lines: Vec<&str> = out.lines().collect();
    let base = |line: &str, key: &str, end: &str| {
        let url = line
            .strip_prefix(&format!("{key}=\"http://127.0.0.1:"))
            .unwrap_or_else(|| panic!("{line}"));
        assert!(url.ends_with(&format!("{end}\"")), "{line}");
    };
    assert_eq!(
        (lines[0], lines[2], lines[4], lines[5], lines[7]),
        ("-c", "-c", "exec", "-c", "text=1"),
        "{out}{err}"
    );
    base(lines[1], "openai_base_url", "/openai/v1");
    base(lines[3], "model_providers.local.base_url", "/local/a");
    base(lines[6], "model_providers.other.base_url", "/other/b");
    assert!(err.contains("model_providers.far.base_url of Codex stays as it is"), "{err}");
    assert_eq!(fs::read_to_string(home.join("config.toml")).unwrap(), config);
}

#[test]
fn pi_gets_a_folder_with_other_base_urls() {
    let scratch = tempfile::tempdir().unwrap();
    let script = "cat \"$PI_CODING_AGENT_DIR/models.json\"; cat \"$PI_CODING_AGENT_DIR/auth.json\"; echo kept > \"$PI_CODING_AGENT_DIR/sessions/new\"";
    let pi = stand_in(scratch.path(), "pi", script);
    let home = scratch.path().join("home");
    fs::create_dir(&home).unwrap();
    let models = r#"{"providers":{"local":{"baseUrl":"http://127.0.0.1:1/v1","apiKey":"k","models":[{"id":"m","baseUrl":"http://127.0.0.1:2/w"}]},"deep":{"baseUrl":"https://api.deepseek.com/v1"},"own":{"baseUrl":"https://api.openai.com/v1"},"openai":{"apiKey":"o"}}}"#;
    fs::write(home.join("models.json"), models).unwrap();
    fs::write(home.join("auth.json"), "{\"auth\":1}").unwrap();
    let folder = scratch.path().join("recording");
    let args = ["record", "-o", folder.to_str().unwrap(), "--", &pi];
    let output = afterimage(&args)
        .env("PI_CODING_AGENT_DIR", &home)
        .env_remove("OPENAI_BASE_URL")
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let (found, rest) = out.split_at(out.rfind("{\"auth\"").unwrap());
    assert_eq!(rest, "{\"auth\":1}");
    let found: Value = serde_json::from_str(found).unwrap();
    let providers = &found["providers"];
    for (url, end) in [
        // pi chooses members of a request by the host in the base URL.
        (&providers["local"]["baseUrl"], "/127.0.0.1/v1"),
        (&providers["local"]["models"][0]["baseUrl"], "/127.0.0.1-2/w"),
        (&providers["deep"]["baseUrl"], "/api.deepseek.com/v1"),
        (&providers["own"]["baseUrl"], "/api.openai.com/v1"),
        (&providers["openai"]["baseUrl"], "/openai/v1"),
        (&providers["anthropic"]["baseUrl"], "/anthropic"),
    ] {
        let url = url.as_str().unwrap();
        assert!(url.starts_with("http://127.0.0.1:") && url.ends_with(end), "{url}");
    }
    assert_eq!(
        (&providers["local"]["apiKey"], &providers["openai"]["apiKey"]),
        (&"k".into(), &"o".into())
    );
    assert_eq!(fs::read_to_string(home.join("models.json")).unwrap(), models);
    assert_eq!(fs::read_to_string(home.join("sessions/new")).unwrap(), "kept\n");
}

/// A program that runs until the test ends it.
struct Running(Child);

impl Running {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
        command.args(args).envs(env.iter().copied()).env_remove("ANTHROPIC_BASE_URL");
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_grow_no_more_breaks_no_call() {
    let (address, received) = provider();
    let scratch = tempfile::tempdir().unwrap();
    let url = format!("http://{address}/v1");
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -f 40; exec \"$0\" \"$@\""])
        .arg(assert_cmd::cargo::cargo_bin!("afterimage"))
        .args(["record", "--listen", "127.0.0.1:0", "-o"])
        .arg(scratch.path().join("recording"))
        .env("OPENAI_BASE_URL", &url)
        .env_remove("ANTHROPIC_BASE_URL");
    let mut listener =
        Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(listener.0.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let base = line.strip_prefix("OPENAI_BASE_URL=").unwrap();
    // Words without a pattern do not pack: the third body is beyond the limit.
    let mut words = (1_u64..).map(|at| format!("{:x} ", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    for _ in 0..5 {
        let text: String = words.by_ref().take(1000).collect();
        assert_eq!(post(base, &format!(r#"{{"model":"m","input":"{text}"}}"#)), ANSWER);
    }
    assert_eq!(received.lock().unwrap().len(), 5);
    assert!(listener.0.try_wait().unwrap().is_none());
}

/// Makes a folder read-only while the test runs, whoever writes there.
#[cfg(target_os = "linux")]
struct ReadOnly(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl ReadOnly {
    /// `None` where the system does not let this process.
    fn mount(folder: &Path) -> Option<Self> {
        let mount = |options: &str| {
            let mut command = std::process::Command::new("mount");
            command.args(["-o", options]).args([folder, folder]).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !mount("bind") {
            return None;
        }
        let bound = Self(folder.to_owned());
        mount("remount,bind,ro").then_some(bound)
    }
}

#[cfg(target_os = "linux")]
impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_nothing_can_be_written_into_refuses_the_command_before_it_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(_bound) = ReadOnly::mount(scratch.path()) else {
        eprintln!("skipped: the system mounts no folder read-only");
        return;
    };
    let touched = std::env::temp_dir().join(format!("touched-{}", std::process::id()));
    for folder in [scratch.path().to_owned(), scratch.path().join("recording")] {
        let path = folder.to_str().unwrap();
        let refused = run(&["record", "-o", path, "--", "touch", touched.to_str().unwrap()]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("Read-only file system"), "{}", refused.err);
    }
    assert!(!touched.exists());
}

#[test]
fn a_listener_serves_until_it_is_ended_and_is_followed_meanwhile() {
    let (address, _) = provider();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let path = folder.to_str().unwrap();
    let url = format!("http://{address}/v1");
    let mut listener = Running::start(
        &["record", "-o", path, "--listen", "127.0.0.1:0"],
        &[("OPENAI_BASE_URL", &url)],
    );
    let mut lines = BufReader::new(listener.0.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let base = line.strip_prefix("OPENAI_BASE_URL=").unwrap();
    assert!(lines.next().unwrap().unwrap().starts_with("ANTHROPIC_BASE_URL=http://127.0.0.1:"));
    post(base, &body(1));
    let mut follower = Running::start(&["requests", "--follow", "--json", path], &[]);
    let mut followed = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    for turns in 1..=3 {
        let line: Value = serde_json::from_str(&followed.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["request"], turns);
        if turns < 3 {
            post(base, &body(turns + 1));
        }
    }
    drop(follower);
    let ended =
        std::process::Command::new("kill").arg(listener.0.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(listener.0.wait().unwrap().code(), Some(0));
    assert_eq!(
        run(&["requests", "--json", path]).out.matches("\"provenance\":\"sent\"").count(),
        3
    );
}

/// What a command does whose requests hold a secret.
#[test]
fn child_tells_a_secret() {
    let Ok(variable) = std::env::var(BASE) else { return };
    let base = std::env::var(variable).unwrap();
    post(&base, &format!(r#"{{"model":"m","input":"my key is {SECRET}"}}"#));
}

const SECRET: &str = "sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA";

#[test]
fn a_redacted_recording_holds_no_secret_and_the_provider_gets_it_all_the_same() {
    let (address, received) = provider();
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let path = folder.to_str().unwrap();
    let program = std::env::current_exe().unwrap();
    let url = format!("http://{address}/v1");
    let report = scratch.path().join("report.json");
    let of_report = ["--redact-report", report.to_str().unwrap()];
    let args = ["record", "--redact", "-o", path, "--upstream", &url];
    let args = [&args[..], &of_report, &["--"]].concat();
    let child = [program.to_str().unwrap(), "record::child_tells_a_secret", "--exact"];
    let record = || {
        let mut recorder = afterimage(&[&args[..], &child].concat());
        let recorder = recorder.env(BASE, "OPENAI_BASE_URL").env_remove("OPENAI_BASE_URL");
        let output = recorder.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        err
    };
    let err = record();
    let first = err.lines().next().unwrap();
    assert!(first.contains("bodies with placeholders for the secrets"), "{first}");
    assert!(err.contains("redacted 1 secret in 1 place: 1 "), "{err}");
    assert!(err.contains("  anthropic-key, first in "), "{err}");
    let report = fs::read_to_string(&report).unwrap();
    assert!(report.starts_with(r#"{"redaction":1,"found":[{"rule":"anthropic-key","#), "{report}");
    let received = received.lock().unwrap().clone();
    assert!(String::from_utf8(received[0].clone()).unwrap().contains(SECRET));
    let printed = run(&["render", "--request", "1", path]);
    assert!(
        printed.out.starts_with(r#"{"model":"m","input":"my key is [redacted:"#),
        "{}",
        printed.out
    );
    let listed = run(&["requests", "--json", path]).out;
    assert!(listed.contains(r#""provenance":"logged""#), "{listed}");
    for text in [printed.out, listed, run(&["render", "--response", "1", path]).out] {
        assert!(!text.contains(SECRET), "{text}");
    }
    // The next run does not know what the placeholders of this one stand for.
    assert!(run(&["render", "--request", "1", path]).out.contains("anthropic-key:1]"));
    record();
    assert!(run(&["render", "--request", "2", path]).out.contains("anthropic-key:2]"));
}

/// A recording of a WebSocket: a warm-up, a request that goes on from it, and one that goes on from
/// an answer that was not recorded.
fn socket(folder: &Path) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    for (number, more) in [
        (1, r#""generate":false,"input":[{"role":"user","content":"Open?"}]"#),
        (2, r#""previous_response_id":"r1","input":[]"#),
        (3, r#""previous_response_id":"r9","input":[{"role":"user","content":"Sure?"}]"#),
    ] {
        let request = format!(r#"{{"type":"response.create","model":"m",{more}}}"#);
        let output = r#"{"type":"message","role":"assistant","content":"Yes"}"#;
        let output = if number == 1 { "" } else { output };
        let response = format!(
            "data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r{number}\",\"output\":[{output}]}}}}\n\n"
        );
        let start = Start {
            path: "/responses".to_owned(),
            is_websocket: true,
            ..Start::now("GET", "openai")
        };
        let id = writer.start(&start).unwrap();
        writer.request(id, "openai", RequestBody::whole(request.as_bytes())).unwrap();
        writer.response(id, &ResponseHead { status: 101, ..ResponseHead::default() }).unwrap();
        writer.part(id, response.as_bytes()).unwrap();
        let bytes = response.len() as u64;
        writer.end(id, &End { bytes, stored: bytes, ..End::default() }).unwrap();
    }
}

#[test]
fn requests_of_a_websocket_are_shown_as_others_and_say_what_was_joined() {
    let scratch = tempfile::tempdir().unwrap();
    socket(scratch.path());
    let path = scratch.path().to_str().unwrap();
    let table = run(&["requests", path]).out;
    for words in ["warm-up; fir", "resolved; + ", "alone, witho"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let listed = run(&["requests", "--json", path]).out;
    let lines: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().map(|line| line[name].to_string()).collect::<Vec<_>>();
    assert_eq!(of("warmUp"), ["true", "null", "null"]);
    assert_eq!(of("provenance"), ["\"sent\"", "\"resolved\"", "\"resolved\""]);
    let joined =
        ["null", "{\"messages\":1,\"missing\":null}", "{\"messages\":0,\"missing\":\"r9\"}"];
    assert_eq!(of("resolved"), joined);
    let whole = run(&["render", "--request", "2", path]);
    assert!(whole.err.contains("resolved: 1 message of earlier requests"), "{}", whole.err);
    assert!(whole.out.contains("\"input\":[{\"role\":\"user\",\"content\":\"Open?\"}]"));
    let sent = run(&["render", "--request", "2", "--as-sent", path]);
    assert!(sent.out.ends_with("\"previous_response_id\":\"r1\",\"input\":[]}"), "{}", sent.out);
    let missing = run(&["render", "--request", "3", path]).err;
    let at_provider = "what leads to \"r9\" is not in the source: it lies at the provider";
    assert!(missing.contains(at_provider), "{missing}");
    let noted = run(&["requests", path]).err;
    let alone = "what leads to r9 lies at the provider: the figures of 1 request are without it";
    assert!(noted.contains(alone), "{noted}");
    let noted = run(&["stats", path]).err;
    assert!(noted.contains("2 requests go on from what a provider keeps"), "{noted}");
    let answer = run(&["render", "--response", "2", path]).out;
    assert!(answer.starts_with("data: {\"type\":\"response.completed\""), "{answer}");
    for command in [vec!["stats", path], vec!["diff", &format!("{path}@1"), &format!("{path}@2")]] {
        let run = run(&command);
        assert!(matches!(run.code, Some(0 | 1)), "{command:?}: {}", run.err);
    }
    let guarded = run(&["guard", path]);
    assert!(matches!(guarded.code, Some(0)), "{}", guarded.err);
}

/// What was recorded as a document, as a recording.
fn recording_of(document: &str, folder: &Path) {
    let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    for of in document["interactions"].as_array().unwrap() {
        let (request, response) = (of["request"].as_str().unwrap(), of["response"].to_string());
        let start = Start { path: "/v1/messages".to_owned(), ..Start::now("POST", "anthropic") };
        let id = writer.start(&start).unwrap();
        writer.request(id, "anthropic", RequestBody::whole(request.as_bytes())).unwrap();
        writer.response(id, &ResponseHead { status: 200, ..ResponseHead::default() }).unwrap();
        writer.part(id, response.as_bytes()).unwrap();
        let bytes = response.len() as u64;
        writer.end(id, &End { bytes, stored: bytes, ..End::default() }).unwrap();
    }
}

#[test]
fn a_guard_that_follows_ends_by_what_it_found() {
    let scratch = tempfile::tempdir().unwrap();
    recording_of(include_str!("../data/guarded.json"), scratch.path());
    let path = scratch.path().to_str().unwrap();
    for (most, code) in [("0.005", 1), ("1", 0)] {
        for follow in [&["--follow"][..], &[]] {
            let args = [&["guard", "--max-loss", most], follow, &[path]].concat();
            let guarded = run(&args);
            assert_eq!(guarded.code, Some(code), "{args:?}: {}{}", guarded.out, guarded.err);
        }
    }
}
