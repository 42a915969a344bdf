//! Where `afterimage record` leads a command: nowhere that it would not go.
#![cfg(all(unix, feature = "record"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    thread,
};

use crate::support::{Run, run};

/// A user with a folder of their own, in an environment of their own.
pub(crate) struct User {
    scratch: tempfile::TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for folder in ["home", "work/sub/.git", "bin"] {
            fs::create_dir_all(scratch.path().join(folder)).unwrap();
        }
        let user = Self { scratch };
        // Each prints the variables that it finds and the arguments that it gets.
        for name in ["aider", "qwen", "mini", "agent", "codex", "claude", "cline"] {
            user.program(name, "#!/usr/bin/env perl\nprint map {\"$_=$ENV{$_}\\n\"} sort grep {/BASE|ENDPOINT/i} keys %ENV; print \"$_\\n\" for @ARGV;\n");
        }
        user
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> &Self {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self
    }

    pub(crate) fn program(&self, name: &str, text: &str) {
        let path = format!("bin/{name}");
        self.put(&path, text);
        fs::set_permissions(self.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Records a command in the folder `work/sub`.
    pub(crate) fn record(&self, options: &[&str], env: &[(&str, &str)], command: &[&str]) -> Run {
        let output = self.recorder(options, env, command).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The recorder of a command, not started yet.
    pub(crate) fn recorder(
        &self,
        options: &[&str],
        env: &[(&str, &str)],
        command: &[&str],
    ) -> Command {
        let recording = self.path("recording");
        let args = [&["record", "-o", recording.to_str().unwrap()], options, &["--"], command];
        let path = std::env::var("PATH").unwrap();
        let mut recorder = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"));
        recorder
            .args(args.concat())
            .env_clear()
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .envs(env.iter().copied())
            .current_dir(self.path("work/sub"));
        recorder
    }

    /// The variables that a command finds, each with what stands behind the token of the recorder.
    fn variables(&self, options: &[&str], env: &[(&str, &str)], command: &[&str]) -> Vec<String> {
        let run = self.record(options, env, command);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out.lines().map(led).collect()
    }

    fn refusal(&self, options: &[&str], command: &[&str]) -> String {
        let run = self.record(options, &[], command);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command:?}: {}", run.err);
        run.err
    }
}

/// A line without address and token.
fn led(line: &str) -> String {
    let Some((before, rest)) = line.split_once("http://127.0.0.1:") else { return line.to_owned() };
    let parts: Vec<&str> = rest.splitn(3, '/').collect();
    match parts.get(1) {
        Some(token) if token.len() == 32 => format!("{before}{}", parts[2]),
        _ => line.to_owned(),
    }
}

const OWN: [&str; 2] = ["ANTHROPIC_BASE_URL=anthropic", "OPENAI_BASE_URL=openai/v1"];

#[test]
fn a_variable_that_is_set_is_replaced_alone_and_no_alias_is_added() {
    let user = User::new();
    assert_eq!(user.variables(&[], &[], &["agent"]), OWN);
    for (name, url, led) in [
        ("OPENAI_BASE_URL", "https://gw.example/v1", "openai/v1"),
        ("OPENAI_API_BASE", "https://gw.example/a/b/", "openai/a/b/"),
        ("openai_api_base", "https://gw.example/", "openai/"),
        ("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com", "azure"),
        ("OPENROUTER_API_BASE", "https://openrouter.ai/api/v1", "other/api/v1"),
        ("MY_OPENAI_BASE_URL", "http://127.0.0.1:9/x", "openai/x"),
    ] {
        let found = user.variables(&[], &[(name, url)], &["agent"]);
        let mut expected = [OWN[0].to_owned(), format!("{name}={led}")];
        expected.sort();
        assert_eq!(found, expected);
    }
    // Of two each leads where it led.
    let both =
        [("OPENAI_API_BASE", "https://a.example/a"), ("OPENAI_BASE_URL", "https://b.example/b")];
    let found = user.variables(&[], &both, &["agent"]);
    assert_eq!(found[1..], ["OPENAI_API_BASE=openai/a", "OPENAI_BASE_URL=openai-2/b"]);
    // One that is empty names nothing, and one that cannot be led stays.
    assert_eq!(user.variables(&[], &[("OPENAI_BASE_URL", " ")], &["agent"]), OWN);
    let run = user.record(&[], &[("OPENAI_API_BASE", "http://192.0.2.5/v1")], &["agent"]);
    assert!(run.out.contains("OPENAI_API_BASE=http://192.0.2.5/v1\n"), "{}", run.out);
    assert!(!run.out.contains("OPENAI_BASE_URL"), "{}", run.out);
    assert!(run.err.contains("calls there are not recorded"), "{}", run.err);
    // What is no provider's stays as well.
    let other = [("GITHUB_BASE_URL", "https://github.example")];
    assert_eq!(
        user.variables(&[], &other, &["agent"])[1],
        "GITHUB_BASE_URL=https://github.example"
    );
}

#[test]
fn variables_of_hosts_and_of_bedrock_lead_where_they_led() {
    let user = User::new();
    user.program(
        "hosts",
        "#!/usr/bin/env perl\nprint map {\"$_=$ENV{$_}\\n\"} grep {/^OLLAMA/} keys %ENV;\n",
    );
    let found = user.variables(&[], &[("OLLAMA_HOST", "127.0.0.1:11434")], &["hosts"]);
    assert_eq!(found, ["OLLAMA_HOST=local"]);
    for name in [
        "ANTHROPIC_BEDROCK_BASE_URL",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "AWS_BEDROCK_RUNTIME_ENDPOINT",
        "ANTHROPIC_VERTEX_BASE_URL",
    ] {
        let found = user.variables(&[], &[(name, "https://gw.example/b")], &["agent"]);
        let is_led = |line: &&String| line.starts_with(name) && line.ends_with("/b");
        assert_eq!(found.iter().filter(is_led).count(), 1, "{found:?}");
        assert!(!found.concat().contains("gw.example"), "{found:?}");
    }
    // What is signed for its host stays, unless a key says that it is not.
    let aws = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://bedrock-runtime.x.amazonaws.com");
    let run = user.record(&[], &[aws], &["agent"]);
    assert!(run.out.contains("=https://bedrock-runtime.x.amazonaws.com\n"), "{}", run.out);
    let says = "stays as it is, and calls there are not recorded: requests there are signed";
    assert!(run.err.contains(says), "{}", run.err);
    let found = user.variables(&[], &[aws, ("AWS_BEARER_TOKEN_BEDROCK", "planted")], &["agent"]);
    assert!(found.contains(&"AWS_ENDPOINT_URL_BEDROCK_RUNTIME=bedrock".to_owned()), "{found:?}");
}

#[test]
fn a_base_url_of_all_services_stays_and_is_said_to_lead_past_the_recorder() {
    let user = User::new();
    let shared = ("AWS_ENDPOINT_URL", "https://gw.example");
    let said = "AWS_ENDPOINT_URL is set: calls of bedrock go there, past the recorder";
    let run = user.record(&[], &[shared], &["agent"]);
    assert!(run.err.contains(said), "{}", run.err);
    assert!(run.out.contains("AWS_ENDPOINT_URL=https://gw.example\n"), "{}", run.out);
    let own = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://gw.example");
    assert!(!user.record(&[], &[shared, own], &["agent"]).err.contains(said));
    let named = ["--env", "AWS_ENDPOINT_URL=https://gw.example"];
    assert!(!user.record(&named, &[shared], &["agent"]).err.contains(said));
}

#[test]
fn what_the_command_line_names_suppresses_the_defaults_of_that_provider() {
    let user = User::new();
    let env = |text| user.variables(&["--env", text], &[], &["agent"]);
    assert_eq!(
        env("OPENAI_API_BASE=https://gw.example/v1"),
        [OWN[0], "OPENAI_API_BASE=openai-api-base/v1"]
    );
    let gemini = "GOOGLE_GEMINI_BASE_URL=https://gw.example";
    assert_eq!(env(gemini).len(), 3);
    // Nobody knows what a command prefers to a variable that nobody knows.
    assert_eq!(env("MY_BASE=https://gw.example"), ["MY_BASE=my-base"]);
    let upstream = |text| {
        user.variables(
            &["--upstream", text],
            &[("OPENAI_API_BASE", "https://a.example/a")],
            &["agent"],
        )
    };
    assert_eq!(
        upstream("openai=https://gw.example/v1"),
        [OWN[0], "OPENAI_API_BASE=openai/v1", "OPENAI_BASE_URL=openai/v1"]
    );
    assert_eq!(upstream("anthropic=https://gw.example/v1")[1], "OPENAI_API_BASE=openai/a");
}

#[test]
fn an_unknown_command_beside_a_file_that_names_a_base_url_is_refused() {
    let name = "OPENAI_API_BASE=http://127.0.0.1:9/planted\n";
    let long = format!("#{}\n{name}", "-".repeat(2 << 20));
    for (file, text) in [
        ("work/sub/.env", name),
        ("work/.env.local", "export OPENAI_BASE_URL = 'http://127.0.0.1:9/planted' # mine\r\n"),
        (".env", "AZURE_OPENAI_ENDPOINT: ${HOST}\n"),
        ("work/.env", "A=1\rOPENAI_API_BASE=http://127.0.0.1:9/planted\r"),
        ("work/.env", "O\0P\0E\0N\0A\0I\0_\0B\0A\0S\0E\0_\0U\0R\0L\0=\0planted\0"),
        ("work/.env", long.as_str()),
    ] {
        let user = User::new();
        user.put(file, text);
        for command in [&["agent"][..], &["sh", "-c", "cd . && aider"], &["python3", "-m", "agent"]]
        {
            let refusal = user.refusal(&[], command);
            assert!(refusal.contains(".env") && !refusal.contains("planted"), "{refusal}");
            assert!(refusal.contains("--env "), "{refusal}");
            assert!(
                text.starts_with("AZURE") || refusal.contains("--upstream openai=URL"),
                "{refusal}"
            );
        }
        // Where its calls go is named now.
        let run = user.record(&["--upstream", "anthropic=https://gw.example"], &[], &["agent"]);
        assert_eq!(run.code, Some(2), "{}", run.err);
    }
    let user = User::new();
    user.put("work/.env", name);
    let upstream = ["--upstream", "openai=https://gw.example/v1"];
    let led = [OWN[0], "OPENAI_API_BASE=openai/v1", OWN[1]];
    assert_eq!(user.variables(&upstream, &[], &["agent"]), led);
    let env = ["--env", "OPENAI_API_BASE=https://gw.example/v1"];
    assert_eq!(
        user.variables(&env, &[], &["agent"]),
        [OWN[0], "OPENAI_API_BASE=openai-api-base/v1"]
    );
    // Loaders do not override what is set.
    let set = [("OPENAI_API_BASE", "https://set.example/x")];
    assert_eq!(user.variables(&[], &set, &["agent"])[1], "OPENAI_API_BASE=openai/x");
}

#[test]
fn a_file_that_nobody_loads_refuses_nothing() {
    let user = User::new();
    let name = "OPENAI_BASE_URL=http://127.0.0.1:9/v1\n";
    user.put("work/.env.example", name).put("home/.qwen/.env", name).put("work/sub/.env/x", name);
    user.put("work/.env", "# OPENAI_BASE_URL=x\nOPENAI_API_KEY=k\nOPENAI_BASE_URL=\n");
    assert_eq!(user.variables(&[], &[], &["agent"]), OWN);
    assert_eq!(user.variables(&[], &[], &["agent", "a prompt about OPENAI_BASE_URL=x"])[..2], OWN);
}

#[test]
fn what_a_command_sets_for_itself_is_refused() {
    let user = User::new();
    user.put("work/other/.env", "OPENAI_API_BASE=http://127.0.0.1:9\n");
    user.put("work/sub/conf/prod.env", "OPENAI_API_BASE=http://127.0.0.1:9\n");
    user.put("work/sub/vars.sh", "export OPENAI_API_BASE=http://127.0.0.1:9\n");
    user.put("work/sub/deep/.env", "OPENAI_API_BASE=http://127.0.0.1:9\n");
    user.program(
        "wrapped",
        "#!/bin/sh\nexport OPENAI_API_BASE=http://127.0.0.1:9\nexec aider \"$@\"\n",
    );
    for command in [
        &["env", "OPENAI_API_BASE=http://127.0.0.1:9", "aider"][..],
        &["sh", "-c", "OPENAI_API_BASE=http://127.0.0.1:9 aider"],
        &["docker", "run", "-e", "OPENAI_API_BASE=http://127.0.0.1:9", "image"],
        &["env", "-S", "OPENAI_API_BASE=http://127.0.0.1:9 aider"],
        &["sh", "-c", ". ./vars.sh && aider"],
        &["python3", "-m", "deep.agent"],
        &["wrapped"],
        &["python3", "../other/agent.py", "../other"],
        &["uv", "run", "--env-file", "conf/prod.env", "agent"],
        &["uv", "run", "--env-file=conf/prod.env", "mini"],
    ] {
        let refusal = user.refusal(&[], command);
        assert!(refusal.contains("OPENAI_API_BASE"), "{command:?}: {refusal}");
    }
    // What a loader finds in files of its own forms, nobody knows.
    let refusal = user.refusal(&[], &["direnv", "exec", ".", "agent"]);
    assert!(refusal.contains("what direnv loads sets"), "{refusal}");
}

#[test]
fn what_a_task_finds_in_its_files_is_refused() {
    let sets = "OPENAI_API_BASE=http://127.0.0.1:9";
    let make = |text: &str| format!("{text}\nagent:\n\tagent\n");
    let script = format!(r#"{{"scripts": {{"ask": "{sets} agent"}}}}"#);
    let hatch = "[envs.default.env-vars]\nOPENAI_API_BASE = \"http://127.0.0.1:9\"\n";
    let task =
        "tasks:\n  ask:\n    env:\n      OPENAI_API_BASE: http://127.0.0.1:9\n    cmds: [agent]\n";
    let pdm =
        "[tool.pdm.scripts]\nask = {cmd = \"agent\", env = {OPENAI_API_BASE = \"http://h\"}}\n";
    let of_file = "[tool.pdm.scripts]\nask = {cmd = \"agent\", env_file = \"vars\"}\n";
    let workspace = r#"{"workspaces": ["packages/*"], "scripts": {"ask": "npm -w one run ask"}}"#;
    let long = format!("#{}\n{sets}\n", "-".repeat(2 << 20));
    let export = format!("export {sets}");
    for (files, env, command) in [
        (&[("other/Makefile", make(&export))][..], "", &["make", "-C", "../other", "agent"][..]),
        (&[("other/Makefile", make(&export))], "", &["make", "-sC../other", "agent"]),
        (&[("other/Makefile", make(&export))], "", &["agent", "-f", "make", "-C", "../other"]),
        (&[("other/Makefile", make(&export))], "", &["make", "--directory=../other"]),
        (&[("other/Makefile", make(&export))], "", &["sh", "-c", "cd ../other && make agent"]),
        (&[("sub/one.make", make(&export))], "", &["make", "-kf", "one.make", "codex"]),
        (&[("sub/vars", make(&export))], "MAKEFILES=vars", &["make", "agent"]),
        (
            &[("sub/Makefile", make("-include conf")), ("sub/conf", export.clone())],
            "",
            &["make", "agent"],
        ),
        (
            &[
                ("sub/Makefile", make("include a.mk")),
                ("sub/a.mk", "include b.mk".to_owned()),
                ("sub/b.mk", export.clone()),
            ],
            "",
            &["make", "agent"],
        ),
        (&[("sub/Makefile", make("include $(TOP)/a.mk"))], "", &["make", "agent"]),
        (&[("sub/Makefile", long)], "", &["make", "agent"]),
        (
            &[
                ("sub/Makefile", "all:\n\t$(MAKE) -C deep\n".to_owned()),
                ("sub/deep/Makefile", make(&export)),
            ],
            "",
            &["make"],
        ),
        (&[("package.json", script.clone())], "", &["npm", "run", "ask"]),
        (&[("package.json", script.clone())], "", &["yarn", "ask"]),
        (&[("package.json", script.clone())], "", &["pnpm", "exec", "codex"]),
        (
            &[("package.json", workspace.to_owned()), ("packages/one/package.json", script)],
            "",
            &["npm", "run", "ask"],
        ),
        (&[("pyproject.toml", pdm.to_owned())], "", &["pdm", "run", "ask"]),
        (
            &[("pyproject.toml", of_file.to_owned()), ("vars", sets.to_owned())],
            "",
            &["pdm", "run", "aider"],
        ),
        (&[("hatch.toml", hatch.to_owned())], "", &["hatch", "run", "ask"]),
        (&[("Taskfile.yml", task.to_owned())], "", &["task", "ask"]),
        (&[("other/vars", sets.to_owned())], "UV_ENV_FILE=../other/vars", &["uv", "run", "mini"]),
        (&[("other/.env", sets.to_owned())], "PYTHONPATH=../other", &["python3", "-m", "agent"]),
        (&[("sub/vars", export.clone())], "BASH_ENV=vars", &["bash", "-c", "aider"]),
        (&[("sub/.env.local", sets.to_owned())], "", &["bunx", "@qwen-code/qwen-code"]),
    ] {
        let user = User::new();
        for (name, text) in files {
            user.put(&format!("work/{name}"), text);
        }
        let run = user.record(&[], &Vec::from_iter(env.split_once('=')), command);
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{command:?}: {}", run.err);
        let is_told = ["OPENAI_API_BASE", "OPENAI_BASE_URL"].iter().any(|of| run.err.contains(of));
        assert!(is_told && run.err.contains("--upstream openai=URL"), "{command:?}: {}", run.err);
    }
}

#[test]
fn files_of_tasks_that_set_no_base_url_refuse_nothing() {
    let user = User::new();
    let make = "# OPENAI_BASE_URL=x\n-include $(DEPS)\nifdef OPENAI_BASE_URL\nendif\nagent:\n\t\
                @test \"$$OPENAI_BASE_URL\" = x || agent\n";
    let package = r#"{"main": "src/client.js", "scripts": {"env": "node src/client.js"}}"#;
    user.put("work/Makefile", make).put("work/package.json", package);
    user.put("work/src/client.js", "const base = {OPENAI_BASE_URL: 'x'}\n");
    user.put("work/pyproject.toml", "[project]\ndependencies = [\"openai>=1\"]\n");
    assert_eq!(user.variables(&[], &[], &["make", "-sC", ".."])[..2], OWN);
    user.program("npm", "#!/bin/sh\nexec agent\n");
    assert_eq!(user.variables(&[], &[], &["npm", "run", "env"]), OWN);
}

#[test]
fn hosts_that_are_reached_without_a_proxy_stay_so_in_either_case_of_letters() {
    let user = User::new();
    user.program("hosts", "#!/bin/sh\necho \"$NO_PROXY|$no_proxy\"\n");
    let both = "corp.test,127.0.0.1,localhost|corp.test,127.0.0.1,localhost\n";
    for name in ["NO_PROXY", "no_proxy"] {
        assert_eq!(user.record(&[], &[(name, "corp.test")], &["hosts"]).out, both);
    }
}

#[test]
fn a_proxy_and_certificates_that_are_none_are_refused_by_their_variables() {
    let user = User::new();
    let missing = user.path("missing.pem");
    for (variable, value, says) in [
        ("HTTPS_PROXY", "not planted", "HTTPS_PROXY names no proxy: expected http://HOST:PORT"),
        ("https_proxy", "http://:3128", "https_proxy names no proxy: expected http://HOST:PORT"),
        ("all_proxy", "planted", "all_proxy names no proxy: expected http://HOST:PORT"),
        ("SSL_CERT_FILE", missing.to_str().unwrap(), "missing.pem: No such file or directory"),
    ] {
        let run = user.record(&[], &[(variable, value)], &["agent"]);
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{}", run.err);
        let last = run.err.lines().last().unwrap();
        assert!(last.starts_with(&format!("error: {variable} ")), "{}", run.err);
        assert!(last.contains(says) && !run.err.contains("planted"), "{}", run.err);
    }
    // Where all is on loopback, nobody asks for either.
    let local = ["--upstream", "http://127.0.0.1:1/v1"];
    let run = user.record(&local, &[("HTTPS_PROXY", "not a proxy")], &["agent"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

#[test]
fn qwen_finds_the_base_url_of_the_file_that_it_loads_first() {
    let user = User::new();
    user.put("home/.qwen/.env", "OPENAI_BASE_URL=\"http://127.0.0.1:9/home\"\n");
    let qwen = |command: &[&str]| user.variables(&[], &[], command);
    for command in [&["qwen"][..], &["env", "A=b", "qwen"], &["sh", "-c", "exec qwen"]] {
        assert_eq!(qwen(command), ["OPENAI_BASE_URL=openai/home"]);
    }
    user.put("work/.env", "OPENAI_BASE_URL=http://127.0.0.1:9/work\n");
    assert_eq!(qwen(&["qwen"]), ["OPENAI_BASE_URL=openai/work"]);
    user.put("work/.qwen/.env", "OPENAI_API_KEY=k\n");
    assert!(qwen(&["qwen"]).is_empty());
    user.put("work/sub/.env", "OPENAI_BASE_URL=${HOST}/v1\n");
    assert!(user.refusal(&[], &["qwen"]).contains("sets OPENAI_BASE_URL"));
    let set = [("OPENAI_BASE_URL", "http://127.0.0.1:9/set")];
    assert_eq!(user.variables(&[], &set, &["qwen"]), ["OPENAI_BASE_URL=openai/set"]);
}

#[test]
fn mini_swe_agent_finds_the_base_url_of_its_own_file() {
    let user = User::new();
    user.put("work/.env", "OPENAI_API_BASE=http://127.0.0.1:9/nobody\n");
    assert_eq!(user.variables(&[], &[], &["mini"]), OWN);
    user.put("home/.config/mini-swe-agent/.env", "OPENAI_API_BASE='http://127.0.0.1:9/own'\n");
    let led = [OWN[0], "OPENAI_API_BASE=openai/own"];
    assert_eq!(user.variables(&[], &[], &["mini"]), led);
}

#[test]
fn aider_is_led_over_the_files_that_it_loads_over_its_environment() {
    let user = User::new();
    let aider =
        |env: &[(&str, &str)]| user.variables(&[], env, &["aider", "--no-git", "--", "f.py"]);
    assert_eq!(aider(&[]), [OWN[0], OWN[1], "--no-git", "--", "f.py"]);
    user.put("home/.env", "OPENAI_API_BASE=http://127.0.0.1:9/home\n");
    let led = |path: &str| {
        [
            OWN[0].to_owned(),
            "--no-git".into(),
            "--set-env".into(),
            format!("OPENAI_API_BASE=openai{path}"),
            "--".into(),
            "f.py".into(),
        ]
    };
    assert_eq!(aider(&[]), led("/home"));
    user.put("work/sub/.env", "export OPENAI_API_BASE='http://127.0.0.1:9/sub'\n");
    assert_eq!(aider(&[]), led("/sub"));
    // What is set is overridden by the file, and leads where it led nevertheless.
    let found = aider(&[("OPENAI_API_BASE", "http://127.0.0.1:9/set")]);
    assert_eq!(found[1], "OPENAI_API_BASE=openai-2/set");
    assert_eq!(found[4], "OPENAI_API_BASE=openai/sub");
    // The option wins over all.
    user.put(
        "work/sub/.aider.conf.yml",
        "model: m\nopenai-api-base: \"http://127.0.0.1:9/conf\" # own\n",
    );
    assert_eq!(aider(&[])[2..4], ["--openai-api-base", "openai/conf"]);
    let given = ["aider", "--openai-api-base=http://127.0.0.1:9/given"];
    let found = user.variables(&[], &[], &given);
    assert_eq!(found[2..4], ["--openai-api-base", "openai/given"]);
    // Beside settings of a configuration nothing can be set.
    user.put("home/.aider.conf.yml", "set-env:\n  - A=b\n");
    assert!(user.refusal(&[], &["aider"]).contains("sets OPENAI_API_BASE"));
    let upstream = ["--upstream", "openai=http://127.0.0.1:9/up"];
    assert_eq!(user.record(&upstream, &[], &["aider"]).code, Some(0));
}

#[test]
fn aider_behind_something_else_is_refused_where_its_files_name_a_base_url() {
    for file in ["home/.env", "home/.aider.conf.yml"] {
        let user = User::new();
        let name = if file.ends_with("yml") { "openai-api-base: " } else { "OPENAI_API_BASE=" };
        user.put(file, &format!("{name}http://127.0.0.1:9/v1\n"));
        for command in [
            &["sh", "-c", "exec aider"][..],
            &["sh", "-c", "exec \"$0\"", "aider"],
            &["sh", "-c", "cd . && aider"],
            &["xargs", "-n1", "aider"],
        ] {
            let refusal = user.refusal(&[], command);
            assert!(refusal.contains("sets OPENAI_API_BASE"), "{command:?}: {refusal}");
        }
        assert_eq!(user.variables(&[], &[], &["agent", "--model", "aider"])[..2], OWN);
    }
}

#[test]
fn codex_is_led_behind_what_starts_it() {
    let user = User::new();
    let found = user.variables(&[], &[], &["env", "A=b", "codex", "exec"]);
    assert_eq!(found[0], "-c");
    assert!(found[1].starts_with("openai_base_url=\"openai/v1"), "{found:?}");
    assert_eq!(found[2], "exec");
}

#[test]
fn where_each_provider_leads_is_said_before_the_start() {
    let user = User::new();
    let run = user.record(&[], &[("OPENAI_API_BASE", "https://gw.example/planted/v1")], &["agent"]);
    assert!(
        run.err.contains("OPENAI_API_BASE: calls go on to https://gw.example/*/v1\n"),
        "{}",
        run.err
    );
    let own = "ANTHROPIC_BASE_URL is set, and leads to its own https://api.anthropic.com;";
    assert!(run.err.contains(own), "{}", run.err);
    assert!(!run.err.contains("planted"), "{}", run.err);
}

#[test]
fn a_recording_of_nothing_says_how_the_client_is_led() {
    let user = User::new();
    user.program("agent", "#!/bin/sh\nexit 7\n");
    let run = user.record(&[], &[], &["agent"]);
    assert_eq!(run.code, Some(7));
    assert!(run.err.contains("nothing came through the recorder"), "{}", run.err);
    assert!(run.err.contains("--env NAME=URL") && !run.err.contains("recorded 0"), "{}", run.err);
    let run = user.record(&[], &[], &["cline"]);
    let hint = "cline: it goes to the base URL in providers.json";
    assert_eq!(run.err.matches(hint).count(), 2, "before and after: {}", run.err);
    assert_eq!(run.code, Some(0));
}

/// A provider that answers one request. Gives its address and what it got.
fn provider() -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let got = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = BufReader::new(stream.try_clone().unwrap());
        let mut first = String::new();
        input.read_line(&mut first).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        first
    });
    (base, got)
}

const BASE: &str = "AFTERIMAGE_TEST_ASK";

/// What a command does that asks with a key in a header: it prints what it is answered.
#[test]
fn child_asks_with_a_key() {
    let (Ok(header), Ok(variable)) =
        (std::env::var(BASE), std::env::var("AFTERIMAGE_TEST_VARIABLE"))
    else {
        return;
    };
    let base = std::env::var(variable).unwrap();
    let (address, path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /{path}/chat/completions HTTP/1.1\r\nHost: {address}\r\n{header}\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{{\"model\":1}}\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    println!("{answer}");
}

#[test]
fn a_route_that_nobody_named_refuses_the_key_of_another_issuer() {
    let key = "sk-ant-api03-planted0planted0planted0";
    let program = std::env::current_exe().unwrap();
    let child = [
        program.to_str().unwrap(),
        "record_routes::child_asks_with_a_key",
        "--exact",
        "--nocapture",
    ];
    let user = User::new();
    let headers =
        [format!("Cookie: theme=dark; session={key}"), format!("Authorization: Bearer {key}")];
    let [other, env] = headers
        .each_ref()
        .map(|header| [(BASE, header.as_str()), ("AFTERIMAGE_TEST_VARIABLE", "OPENAI_BASE_URL")]);
    let run_of = user.record(&[], &other, &child);
    assert!(run_of.out.contains("HTTP/1.1 401"), "{}{}", run_of.out, run_of.err);
    fs::remove_dir_all(user.path("recording")).unwrap();
    let run_of = user.record(&[], &env, &child);
    assert!(run_of.out.contains("HTTP/1.1 401"), "{}{}", run_of.out, run_of.err);
    assert!(run_of.out.contains("the key has the form of anthropic"), "{}", run_of.out);
    let said = "openai: the key has the form of anthropic, and nobody named openai as the upstream";
    assert!(run_of.err.contains(said), "{}", run_of.err);
    let recording = user.path("recording");
    let listed = run(&["requests", recording.to_str().unwrap()]);
    assert!(listed.out.contains("the key has the form of anthropic"), "{}", listed.out);
    let stored = fs::read(recording.join("wire.rec")).unwrap();
    assert!(!stored.windows(7).any(|bytes| bytes == b"planted"));
    // One that somebody named takes any.
    let (base, got) = provider();
    let upstream = ["--upstream", &format!("openai={base}/v1")];
    let run_of = user.record(&upstream, &env, &child);
    assert!(run_of.out.contains("HTTP/1.1 200"), "{}", run_of.out);
    assert!(got.join().unwrap().starts_with("POST /v1/chat/completions"));
}
