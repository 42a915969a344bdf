//! Clients that take base URLs from files of their own, and are led beside these.
#![cfg(all(unix, feature = "record"))]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;

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
