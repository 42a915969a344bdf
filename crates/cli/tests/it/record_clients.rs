//! Clients that take base URLs from files of their own, and are led beside these.
#![cfg(all(unix, feature = "record"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{record_routes::User, support::run};

/// What a command printed, without addresses and tokens, and what the recorder said.
fn printed(
    user: &User,
    options: &[&str],
    env: &[(&str, &str)],
    command: &[&str],
) -> (String, String) {
    let run = user.record(options, env, command);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let mut parts = run.out.split("http://127.0.0.1:");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        let (_port, rest) = part.split_once('/').unwrap();
        let (token, rest) = rest.split_once('/').unwrap();
        assert_eq!(token.len(), 32, "{part}");
        text += rest;
    }
    (text, run.err)
}

#[test]
fn opencode_gets_the_base_urls_of_all_its_files_in_a_variable() {
    let user = User::new();
    user.program("opencode", "#!/bin/sh\nprintf '%s\\n' \"$OPENCODE_CONFIG_CONTENT\"\n");
    let (out, _) = printed(&user, &[], &[], &["opencode", "run", "hi"]);
    assert_eq!(out, "\n", "nothing is set where no file names a base URL");
    let global = r#"{ // mine
        "provider": {"a": {"npm": "x", "options": {"baseURL": "https://a.example/v1/", "apiKey": "k"}},
                     "b": {"api": "https://b.example", "models": {"m": {"provider": {"api": "https://m.example/v1"}}}},
                     "c": {"options": {"baseURL": "https://old.example"}},
                     "e": {"options": {"baseURL": "{env:E_BASE}/v1"}},
                     "lan": {"options": {"baseURL": "http://192.0.2.5/v1"}}}, }"#;
    user.put("home/.config/opencode/opencode.jsonc", global);
    user.put(
        "work/sub/opencode.json",
        r#"{"provider":{"c":{"options":{"baseURL":"https://c.example"}}}}"#,
    );
    // That is not of the repository.
    user.put(
        "work/opencode.json",
        r#"{"provider":{"c":{"options":{"baseURL":"https://no.example"}}}}"#,
    );
    let given = r#"{"model":"a/m","provider":{"a":{"options":{"timeout":9}}}}"#;
    let env = [("OPENCODE_CONFIG_CONTENT", given), ("E_BASE", "https://e.example")];
    let (out, err) = printed(&user, &[], &env, &["opencode", "run", "hi"]);
    let content: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({
        "model": "a/m",
        "provider": {
            "a": {"options": {"timeout": 9, "baseURL": "a.example/v1/"}},
            "b": {"api": "b.example", "models": {"m": {"provider": {"api": "m.example/v1"}}}},
            "c": {"options": {"baseURL": "c.example"}},
            "e": {"options": {"baseURL": "e.example/v1"}},
            "lan": {"options": {"baseURL": "http://192.0.2.5/v1"}},
        },
    });
    assert_eq!(content, expected, "{out}");
    assert!(err.contains("the base URL of lan of OpenCode stays as it is"), "{err}");
    // What is led by a variable stays led by that one, and a server has sessions of any folder.
    let asked = ["--env", "E_BASE=https://f.example"];
    let (out, _) = printed(&user, &asked, &[], &["opencode", "run", "hi"]);
    assert!(out.contains("{env:E_BASE}/v1"), "{out}");
    for server in [&["serve"][..], &["--log-level", "DEBUG", "web", "--port", "0"]] {
        let (out, _) = printed(&user, &[], &[], &[&["opencode"], server].concat());
        assert_eq!(out, "\n", "{server:?}");
    }
    // A task is no command, and no folder.
    user.put("home/serve/opencode.json", r#"{"provider":{"c":{"api":"https://no.example"}}}"#);
    for task in [&["run", "serve"][..], &["run", "../../home/serve"], &["--prompt", "serve"]] {
        let (out, _) = printed(&user, &[], &[], &[&["opencode"], task].concat());
        assert!(out.contains("c.example") && !out.contains("no.example"), "{task:?} {out}");
    }
    let (out, _) = printed(&user, &[], &[], &["opencode", "run", "--dir", "../../home/serve", "x"]);
    assert!(out.contains("no.example"), "{out}");
}

#[test]
fn claude_code_at_bedrock_is_said_to_go_past_the_recorder_unless_it_is_led() {
    let user = User::new();
    user.program("claude", "#!/bin/sh\nprintf '%s\\n' \"$ANTHROPIC_BEDROCK_BASE_URL\"\n");
    let said = "Claude Code asks Bedrock, past the recorder";
    let bedrock = "https://bedrock-runtime.us-east-1.amazonaws.com";
    let led = format!("ANTHROPIC_BEDROCK_BASE_URL={bedrock}");
    let led = ["--env", led.as_str()];
    for (on, options, is_said) in [("1", &[][..], true), ("0", &[], false), ("1", &led[..], false)]
    {
        let env = [("CLAUDE_CODE_USE_BEDROCK", on)];
        let (out, err) = printed(&user, options, &env, &["claude", "-p", "hi"]);
        assert_eq!(err.contains(said), is_said, "{on} {options:?} {err}");
        assert_eq!(out.trim().is_empty(), options.is_empty(), "{out}");
    }
    let vertex = ("CLAUDE_CODE_USE_VERTEX", "1");
    let gateway = ("ANTHROPIC_VERTEX_BASE_URL", "https://gw.example/v1");
    for (env, is_said) in [(&[vertex][..], true), (&[vertex, gateway], false)] {
        let (_, err) = printed(&user, &[], env, &["claude", "-p", "hi"]);
        assert_eq!(err.contains("Claude Code asks Vertex AI, past the recorder"), is_said, "{err}");
    }
    let foundry = ("CLAUDE_CODE_USE_FOUNDRY", "1");
    let led = ("ANTHROPIC_FOUNDRY_BASE_URL", "https://gw.example/anthropic");
    for (env, is_said) in [(&[foundry][..], true), (&[foundry, led], false)] {
        let (_, err) = printed(&user, &[], env, &["claude", "-p", "hi"]);
        let said = "Claude Code asks Microsoft Foundry, past the recorder";
        assert_eq!(err.contains(said), is_said, "{err}");
    }
    // Its settings say so too, and outrank the environment.
    let settings = r#"{"env":{"CLAUDE_CODE_USE_VERTEX":"1","ANTHROPIC_VERTEX_BASE_URL":"x"}}"#;
    user.put("home/.claude/settings.json", settings);
    let (_, err) = printed(&user, &[], &[gateway], &["claude", "-p", "hi"]);
    assert!(err.contains("take ANTHROPIC_VERTEX_BASE_URL out of"), "{err}");
}

#[test]
fn kimi_gets_another_configuration_and_keeps_what_it_writes() {
    let user = User::new();
    let script = "#!/bin/sh\ncd \"$KIMI_CODE_HOME\"; cat config.toml; \
                  sed -i 's/m1/m2/' config.toml; mkdir -p sessions/w/s; \
                  echo \"{\\\"dir\\\":\\\"$KIMI_CODE_HOME/sessions/w/s\\\"}\" | tee -a session_index.jsonl > sessions/w/s/state.json\n";
    user.program("kimi", script);
    let configuration = "default_model = \"m1\" # mine\n[providers.a]\ntype = \"openai\"\nbase_url = \"https://a.example/v1\"\n\
                         [providers.\"managed:kimi-code\"]\ntype = \"kimi\"\nbase_url = \"https://login.example/v1\"\n\
                         oauth = { storage = \"file\", key = \"x\" }\n\
                         [models.m1]\nprovider = \"a\"\nmodel = \"m1\"\nbase_url = \"https://m.example\"\n\
                         [services.moonshot_search]\nbase_url = \"https://search.example\"\n";
    user.put("home/.kimi-code/config.toml", configuration);
    user.put("home/.kimi-code/session_index.jsonl", "{\"dir\":\"old\"}\n");
    let (out, err) = printed(&user, &[], &[], &["kimi", "-p", "hi"]);
    let expected = configuration.replace("https://a", "a").replace("https://m.e", "m.e");
    assert_eq!(out, expected);
    assert!(err.contains("managed:kimi-code of Kimi Code has a login"), "{err}");
    let read = |name: &str| fs::read_to_string(user.path("home/.kimi-code").join(name)).unwrap();
    assert_eq!(
        read("config.toml"),
        configuration
            .replacen("m1", "m2", 1)
            .replace("[models.m1]", "[models.m2]")
            .replace("model = \"m1\"", "model = \"m2\"")
    );
    let own = user.path("home/.kimi-code/sessions/w/s");
    let line = format!("{{\"dir\":\"{}\"}}\n", own.display());
    assert_eq!(read("sessions/w/s/state.json"), line);
    assert_eq!(read("session_index.jsonl"), format!("{{\"dir\":\"old\"}}\n{line}"));
    // An upstream that is asked for outranks the configuration.
    let (out, _) = printed(&user, &["--upstream", "openai=https://o.example/v2"], &[], &["kimi"]);
    assert!(out.contains("base_url = \"openai/v2\""), "{out}");
}

#[test]
fn llm_gets_another_list_of_models_and_keeps_its_logs() {
    let user = User::new();
    user.program("llm", "#!/bin/sh\nprintf '%s\\n' \"$LLM_USER_PATH\"; cd \"$LLM_USER_PATH\" && cat extra-openai-models.yaml; echo log >> logs.db\n");
    let (out, _) = printed(&user, &[], &[("HOME", "/nowhere")], &["llm", "hi"]);
    assert!(out.starts_with('\n'), "no folder lies over one without the file: {out}");
    let models = "# mine\n- model_id: a\n  api_base: https://a.example/v1 # local\n- model_id: b\n  api_base: \"https://b.example/v1\"\n";
    user.put("home/.config/io.datasette.llm/extra-openai-models.yaml", models);
    let (out, _) = printed(&user, &[], &[], &["llm", "hi"]);
    let (over, text) = out.split_once('\n').unwrap();
    assert_eq!(text, models.replace("https://", ""));
    assert!(!fs::exists(over).unwrap());
    let read =
        |name: &str| fs::read_to_string(user.path("home/.config/io.datasette.llm").join(name));
    assert_eq!(read("logs.db").unwrap(), "log\n");
    assert_eq!(read("extra-openai-models.yaml").unwrap(), models);
}

#[test]
fn continue_gets_a_copy_of_its_configuration() {
    let user = User::new();
    user.program("cn", "#!/bin/sh\nfor argument; do case $argument in /*|--config=*) cat ${argument#--config=};; *) echo $argument;; esac; done\n");
    let (out, _) = printed(&user, &[], &[], &["cn", "-p", "hi"]);
    assert_eq!(out, "-p\nhi\n");
    let models = "models:\n  - name: a\n    apiBase: https://a.example/v1\n  - { name: b, apiBase: 'https://b.example/' }\n  - apiBase: https://api.openai.com/v1\n";
    user.put("home/.continue/config.yaml", models);
    let (out, err) = printed(&user, &[], &[], &["cn", "-p", "hi"]);
    let led = models.replace("https://a.e", "a.e").replace("https://b.e", "b.e");
    assert_eq!(out, format!("--config\n{led}-p\nhi\n"));
    assert!(err.contains("is OpenAI's own: it stays as it is"), "{err}");
    user.put("work/sub/other.yaml", "models:\n  - apiBase: https://c.example\n");
    let (out, _) = printed(&user, &[], &[], &["cn", "--config=other.yaml", "hi"]);
    assert_eq!(out, "models:\n  - apiBase: c.example\nhi\n");
    let near = "models:\n  - uses: ./models/a.yaml\n  - apiBase: https://c.example\n";
    user.put("work/sub/other.yaml", near);
    let (out, err) = printed(&user, &[], &[], &["cn", "--config=other.yaml", "hi"]);
    assert_eq!(out, format!("{near}hi\n"));
    assert!(err.contains("uses files beside it, so it stays as it is"), "{err}");
}

#[test]
fn the_clients_are_listed_with_what_leads_each() {
    let listed = run(&["record", "--list"]);
    assert_eq!(listed.code, Some(0));
    assert!(listed.out.contains("opencode      led by OPENCODE_CONFIG_CONTENT"), "{}", listed.out);
    assert!(listed.out.contains("cline         not led"), "{}", listed.out);
    let lines = run(&["record", "--list", "--json"]).out;
    let clients: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| clients.iter().find(|client| client["name"] == name).unwrap();
    assert_eq!(
        (&of("kimi")["led"], &of("cline")["led"], &of("cline")["by"]),
        (&json!(true), &json!(false), &Value::Null)
    );
    // What is not led says what leads it, or that nothing does.
    assert!(clients.iter().all(|client| client["led"] == true || client["hint"].is_string()));
    assert_eq!(run(&["record", "--list", "-o", "run"]).code, Some(2));
}

/// Kimi Code with these settings, which does this in its folder after it has shown them.
fn kimi(user: &User, settings: &str, script: &str) {
    let script = format!(
        "#!/bin/sh\nOWN=\"$HOME/.kimi-code/config.toml\"; cd \"$KIMI_CODE_HOME\" && cat config.toml\n{script}\n"
    );
    user.program("kimi", &script);
    user.put("home/.kimi-code/config.toml", settings);
}

/// A provider of Kimi Code.
fn provider(name: &str, kind: &str, url: &str) -> String {
    format!("[providers.{name}]\ntype = \"{kind}\"\nbase_url = \"{url}\"\n")
}

/// The files beside the settings of Kimi Code that a run has put there, in their order.
fn beside(user: &User) -> Vec<String> {
    let folder = user.path("home/.kimi-code");
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let is_beside = |path: &PathBuf| path.to_str().unwrap().contains("config.toml.");
    let mut files: Vec<PathBuf> = files.filter(is_beside).collect();
    files.sort();
    files
        .iter()
        .map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned())
        .collect()
}

fn own(user: &User) -> Option<String> {
    fs::read_to_string(user.path("home/.kimi-code/config.toml")).ok()
}

#[test]
fn each_base_url_comes_back_to_its_own_provider() {
    const ASKED: [&str; 2] = ["--upstream", "openai=https://o.example/v2"];
    for (options, urls) in [
        (&ASKED[..], &["https://a.example/v1", "https://b.example/v1"][..]),
        (&[], &["https://a.example/v1", "https://A.example/v1", "https://a.example:443/v1"]),
        (&[], &["https://a.example/v1", "https://a.example/v1/", "https://a.example/v1"]),
        (&ASKED, &["https://a.example", "https://a.example/v1", "https://a.example/v1/x/"]),
        (&[], &["https://a.example-2.com", "https://a.example", "https://a.example-2.com"]),
    ] {
        let user = User::new();
        let named = urls.iter().enumerate();
        let settings: String =
            named.map(|(at, url)| provider(&format!("p{at}"), "openai", url)).collect();
        // It writes all anew: in another order, with other quotes, and more.
        let rewrite =
            "tac config.toml | tr '\"' \"'\" > new; echo 'x = 1' >> new; mv new config.toml";
        kimi(&user, &settings, rewrite);
        let run = user.record(options, &[], &["kimi"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert!(!run.out.contains("https"), "{}", run.out);
        let lines: Vec<&str> = settings.lines().rev().chain(["x = 1"]).collect();
        assert_eq!(own(&user).unwrap(), lines.join("\n").replace('"', "'") + "\n");
        assert!(beside(&user).is_empty(), "{}", run.err);
    }
}

#[test]
fn a_base_url_leads_by_its_place_and_not_by_its_text() {
    let user = User::new();
    let url = "https://x.example/v1";
    let settings = format!(
        "{}{}[services.search]\nbase_url = \"{url}\"\n[providers.c]\ntype = \"kimi\"\noauth = {{}}\nbase_url = \"{url}\"\n",
        provider("a", "openai", url),
        provider("b", "kimi", url)
    );
    kimi(&user, &settings, "");
    let asked = ["--upstream", "openai=https://o.example/v2"];
    let (out, _) = printed(&user, &asked, &[], &["kimi"]);
    let expected = settings.replacen(url, "openai/v2", 1).replacen(url, "x.example/v1", 1);
    assert_eq!(out, expected);
    // A gateway of several providers, of which one is to be led elsewhere.
    let asked = ["--upstream", "anthropic=https://o.example/v2"];
    let providers = format!(
        r#"{{"openai":{{"baseUrl":"{url}"}},"anthropic":{{"baseUrl":"{url}"}},"z":{{"baseUrl":"{url}"}}}}"#
    );
    user.program("pi", "#!/bin/sh\ncat \"$PI_CODING_AGENT_DIR/models.json\"\n");
    user.put("home/.pi/agent/models.json", &format!(r#"{{"providers":{providers}}}"#));
    let (out, _) = printed(&user, &asked, &[], &["pi"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    let base = |name: &str| found["providers"][name]["baseUrl"].as_str().unwrap().to_owned();
    assert_eq!(
        ["openai", "anthropic", "z"].map(base),
        ["x.example/v1", "anthropic/v2", "x.example/v1"]
    );
    user.program("opencode", "#!/bin/sh\nprintf '%s\\n' \"$OPENCODE_CONFIG_CONTENT\"\n");
    let content = format!(
        r#"{{"mcp":{{"api":"{url}"}},"provider":{}}}"#,
        providers.replace("baseUrl", "baseURL")
    );
    let env = [("OPENCODE_CONFIG_CONTENT", content.as_str())];
    let (out, _) = printed(&user, &asked, &env, &["opencode", "run", "hi"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    let base = |name: &str| found["provider"][name]["baseURL"].as_str().unwrap().to_owned();
    assert_eq!(
        ["openai", "anthropic", "z"].map(base),
        ["x.example/v1", "anthropic/v2", "x.example/v1"]
    );
    assert_eq!(found["mcp"]["api"], url);
}

#[test]
fn a_variable_that_names_itself_is_read_once() {
    let user = User::new();
    user.program("opencode", "#!/bin/sh\nprintf '%s\\n' \"$OPENCODE_CONFIG_CONTENT\"\n");
    let provider = r#"{"provider":{"a":{"options":{"baseURL":"https://{env:A}/{env:B}/v1"}}}}"#;
    user.put("work/sub/opencode.json", provider);
    let env = [("A", "a.example"), ("B", "{env:B}")];
    let mut run = user.recorder(&[], &env, &["opencode", "run"]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_a_client_wrote_is_kept_beside_settings_that_cannot_take_it() {
    let before = provider("a", "openai", "https://a.example/v1");
    let more = format!("{before}x = 1\n");
    for (script, after, kept, why) in [
        // An address that nobody gave it, which another program may have tomorrow.
        (
            "sed -i s,/a.example/,/b.example/, config.toml",
            Some(&*before),
            Some("/b.example/v1"),
            "is none of the user's",
        ),
        (
            "sed -i 's,/[0-9a-f]*/a.example/v1,,' config.toml",
            Some(&before),
            Some("http://127.0.0.1:"),
            "is none of the user's",
        ),
        ("printf '\\377' >> config.toml", Some(&before), Some("\u{fffd}"), "is none of the user's"),
        // Nothing is taken for nothing to keep.
        ("rm config.toml", Some(&before), None, "has left nothing in its config.toml"),
        (": > config.toml", Some(&before), None, "has left nothing in its config.toml"),
        // The user writes in between.
        ("echo 'y = 2' >> \"$OWN\"", Some(&format!("{before}y = 2\n")), None, ""),
        ("rm \"$OWN\"", None, None, ""),
        ("echo 'x = 1' | tee -a \"$OWN\" >> config.toml", Some(&more), None, ""),
        (
            "echo 'y = 2' >> \"$OWN\"; echo 'x = 1' >> config.toml",
            Some(&format!("{before}y = 2\n")),
            Some(&more),
            "something else has changed it",
        ),
        (
            "rm \"$OWN\"; echo 'x = 1' >> config.toml",
            None,
            Some(&more),
            "something else has changed it",
        ),
        ("echo 'x = 1' >> config.toml", Some(&more), None, ""),
    ] {
        let user = User::new();
        kimi(&user, &before, script);
        let run = user.record(&[], &[], &["kimi"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(own(&user).as_deref(), after, "{script}: {}", run.err);
        let files = beside(&user);
        assert_eq!(files.len(), usize::from(kept.is_some()), "{script}: {}", run.err);
        assert!(files.iter().all(|file| file.contains(kept.unwrap())), "{script}: {files:?}");
        assert!(run.err.contains(why), "{script}: {}", run.err);
        let is_told = run.err.contains("kimi has ");
        assert_eq!(is_told, !why.is_empty(), "{script}: {}", run.err);
    }
}

#[test]
fn settings_keep_their_mode_and_their_link() {
    let user = User::new();
    let before = provider("a", "openai", "https://a.example/v1");
    kimi(
        &user,
        &before,
        "echo 'x = 1' >> config.toml; echo \"$KIMI_CODE_HOME/s\" >> session_index.jsonl",
    );
    for name in ["config.toml", "session_index.jsonl"] {
        let (path, dotfile) = (user.path("home/.kimi-code").join(name), user.path(name));
        fs::write(&dotfile, fs::read(&path).unwrap_or_default()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(&dotfile, &path).unwrap();
        fs::set_permissions(&dotfile, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let run = user.record(&[], &[], &["kimi"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for (name, text) in [
        ("config.toml", format!("{before}x = 1\n")),
        ("session_index.jsonl", format!("{}/s\n", user.path("home/.kimi-code").display())),
    ] {
        assert!(user.path("home/.kimi-code").join(name).is_symlink(), "{name}");
        assert_eq!(fs::read_to_string(user.path(name)).unwrap(), text);
        let mode = fs::metadata(user.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[test]
fn of_two_runs_at_once_each_keeps_what_it_wrote() {
    let user = User::new();
    let before = provider("a", "openai", "https://a.example/v1");
    // One starts another, which ends first.
    let script = format!(
        "echo \"x = $INNER\" >> config.toml\n\
         if [ -z \"$INNER\" ]; then unset KIMI_CODE_HOME; INNER=1 {} record -o ../inner -- kimi; fi",
        assert_cmd::cargo::cargo_bin!("afterimage").display()
    );
    kimi(&user, &before, &script);
    let run = user.record(&[], &[], &["kimi"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(own(&user).unwrap(), format!("{before}x = 1\n"), "{}", run.err);
    assert_eq!(beside(&user), [format!("{before}x = \n")], "{}", run.err);
}

#[test]
fn what_a_client_changed_is_there_after_a_recorder_that_was_killed() {
    let user = User::new();
    let before = provider("a", "openai", "https://a.example/v1");
    fs::create_dir(user.path("tmp")).unwrap();
    let (temporary, log) = (user.path("tmp"), user.path("log"));
    let env = [("TMPDIR", temporary.to_str().unwrap()), ("LOG", log.to_str().unwrap())];
    kimi(&user, &before, "echo 'x = 1' >> config.toml; echo $$ >> \"$LOG\"; exec sleep 600");
    let mut killed = user.recorder(&[], &env, &["kimi"]);
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let client = || fs::read_to_string(&log).unwrap_or_default();
    wait_for("the client to write", || client().ends_with('\n'));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let client = client().trim().to_owned();
    assert!(Command::new("kill").args(["-KILL", &client]).status().unwrap().success());
    let asked = || Command::new("kill").args(["-0", &client]).stderr(Stdio::null()).status();
    wait_for("the client to end", || !asked().unwrap().success());
    // The next one gets it already.
    user.program("kimi", "#!/bin/sh\ncat \"$KIMI_CODE_HOME/config.toml\"\n");
    let run = user.record(&[], &env, &["kimi"]);
    assert!(run.err.contains("what kimi wrote there is in"), "{}", run.err);
    assert_eq!(own(&user).unwrap(), format!("{before}x = 1\n"), "{}", run.err);
    assert!(run.out.ends_with("x = 1\n"), "{}", run.out);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn no_moment_to_be_killed_loses_or_leads_away_settings() {
    let user = User::new();
    let before = provider("a", "openai", "https://a.example/v1");
    fs::create_dir(user.path("tmp")).unwrap();
    let (temporary, log) = (user.path("tmp"), user.path("log"));
    let paths = [temporary.to_str().unwrap(), log.to_str().unwrap()];
    // Comments: what is no TOML is not laid over.
    kimi(&user, &before, "echo \"# $ROUND.\" >> config.toml; echo \"# $ROUND.\" >> \"$LOG\"");
    for round in 0..16_u64 {
        let of_round = round.to_string();
        let env = [("TMPDIR", paths[0]), ("LOG", paths[1]), ("ROUND", &*of_round)];
        let mut recorder = user.recorder(&[], &env, &["kimi"]);
        let mut killed = recorder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(5 * round));
        if round == 15 {
            wait_for("a client to write", || {
                fs::read_to_string(&log).unwrap_or_default().contains(&format!("{of_round}.\n"))
            });
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    user.program("kimi", "#!/bin/sh\n");
    wait_for("all that was left to be restored", || {
        let env = [("TMPDIR", paths[0])];
        assert_eq!(user.record(&[], &env, &["kimi"]).code, Some(0));
        let left = fs::read_dir(&temporary).unwrap().map(|of| of.unwrap().path());
        left.filter(|path| path.join(".afterimage-overlay").exists()).count() == 0
    });
    let all = [beside(&user), vec![own(&user).unwrap()]].concat();
    for text in &all {
        assert!(text.starts_with(&before) && !text.contains("127.0.0.1"), "{text}");
    }
    let all = all.concat();
    for line in fs::read_to_string(&log).unwrap().lines() {
        assert!(all.contains(line), "{line} is lost: {all}");
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_pi_changed_in_its_models_is_kept_beside_them() {
    let user = User::new();
    user.program(
        "pi",
        "#!/bin/sh\ncd \"$PI_CODING_AGENT_DIR\"; sed -i 's/\"m1\"/\"m2\"/' models.json\n",
    );
    let models = r#"{ // mine
        "providers": {"a": {"baseUrl": "https://a.example/v1", "models": [{"id": "m1"}]}}}"#;
    user.put("home/.pi/agent/models.json", models);
    let run = user.record(&[], &[], &["pi"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.contains("the recorder has put more into it than base URLs"), "{}", run.err);
    let read = |name: &str| fs::read_to_string(user.path("home/.pi/agent").join(name)).unwrap();
    assert_eq!(read("models.json"), models);
    let kept: Value = serde_json::from_str(&read("models.json.recorded-1")).unwrap();
    // Those that it brings along have the base URLs that they have there.
    let providers = json!({
        "a": {"baseUrl": "https://a.example/v1", "models": [{"id": "m2"}]},
        "openai": {"baseUrl": "https://api.openai.com/v1"},
        "anthropic": {"baseUrl": "https://api.anthropic.com"},
    });
    assert_eq!(kept, json!({ "providers": providers }));
}
