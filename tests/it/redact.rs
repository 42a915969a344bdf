//! Secrets are taken out wherever they stand, and nothing else is.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use afterimage::{
    export::{Export, ExportOptions},
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, Millis},
    json::{self, Value},
    redact::{RedactionRules, Redactor},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
};
use afterimage_testkit::{
    data,
    secrets::{ALNUM, HIDDEN, KEY_LINES, Letters, SURROUNDINGS, issued, planted, text},
};
use proptest::prelude::*;

use crate::support::sessions;

pub(crate) fn redactor() -> Redactor {
    static RULES: LazyLock<RedactionRules> = LazyLock::new(|| RedactionRules::embedded().unwrap());
    Redactor::new(&RULES)
}

pub(crate) fn assert_none_of(planted: &[(String, String)], text: &str, place: &str) {
    for (secret, around) in planted {
        assert!(!text.contains(secret.as_str()), "{place}: {secret} of {around:?}");
        let escaped = json::Value::String(secret.clone()).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        assert!(!text.contains(escaped), "{place}: {escaped} of {around:?}");
    }
}

#[test]
fn two_hundred_planted_secrets_of_twenty_kinds_are_in_no_text() {
    let planted = planted(200);
    let mut redactor = redactor();
    for one in &planted {
        let said = text(one);
        let found = redactor.text(&said, "here");
        assert!(!found.contains(&one.0), "{found}");
        let twice = redactor.text(&found, "again").into_owned();
        assert_eq!(found, twice);
    }
    assert!(redactor.report().found.len() >= 200, "{}", redactor.report().found.len());
}

#[test]
fn planted_secrets_are_in_no_frame_context_or_export() {
    let planted = planted(200);
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let (mut redactor, mut history) = (redactor(), History::new());
    for (at, one) in planted.iter().enumerate() {
        let said = text(one);
        let facet = match at % 4 {
            0 => Facet::new(format!("f{at}"), FacetType::EVENT, said),
            1 => {
                let arguments = serde_json::json!({ "command": said, "deep": [{ "text": said }] });
                let arguments = json::read(arguments.to_string().as_bytes()).unwrap();
                Facet::tool_call(format!("f{at}"), Some("c"), "run", arguments)
            }
            2 => {
                let arguments = serde_json::json!({ "command": said }).to_string();
                Facet::tool_call(format!("f{at}"), Some("c"), "run", Value::String(arguments))
            }
            _ => Facet::tool_result(format!("f{at}"), Some("c"), None, said),
        };
        let source = if at % 4 == 1 || at % 4 == 2 { Source::Agent } else { Source::User };
        let mut frame = Frame::new(at as u64, source).with(FacetOp::add(facet));
        frame.events.push(Value::String(text(one)));
        let frame = redactor.frame(frame).unwrap();
        assert_none_of(&planted, &frame.to_json().to_string(), "a frame");
        hud.capture(&mut history, frame, Millis::new(0)).unwrap();
    }
    let context = hud.render(&history, &RenderRequest::default(), Millis::new(0)).unwrap();
    assert_none_of(&planted, &context.to_json().to_string(), "a context");
    let export = Export::of(&history, &context).unwrap();
    let options = ExportOptions::default();
    for exported in [export.openai_chat(&options), export.anthropic(&options)] {
        assert_none_of(&planted, &exported.value().to_string(), "an export");
    }
}

/// A stream in which a text is split after every `size` characters.
pub(crate) fn stream(said: &str, size: usize) -> String {
    let chars: Vec<char> = said.chars().collect();
    let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
    let event = |piece: String| {
        let data = serde_json::json!({
            "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": piece },
        });
        format!("event: content_block_delta\ndata: {data}\n\n")
    };
    pieces.map(event).collect()
}

fn said(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let event = |data: &str| serde_json::from_str::<serde_json::Value>(data).unwrap();
    data.map(|data| event(data)["delta"]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn secrets_that_are_split_over_events_are_found() {
    let planted = planted(60);
    for (at, one) in planted.iter().enumerate() {
        let whole = text(one);
        let mut redactor = redactor();
        let sent = stream(&whole, 1 + at % 7);
        let kept = redactor.body(&sent, "response 1").into_owned();
        assert_none_of(std::slice::from_ref(one), &said(&kept), "a stream");
        assert_eq!(said(&kept), redactor.text(&whole, "here"), "{whole}");
        assert_eq!(kept.lines().count(), sent.lines().count());
    }
}

#[test]
fn json_keeps_every_byte_that_is_of_no_secret() {
    let body = "{ \"model\":\"m\",\n  \"n\": 1e3, \"messages\": [ {\"content\" :\"\\u0061da@harbour.example\"} ],\
        \"max_tokens\": 5, \"password\": \"\", \"next_token\": null }";
    let mut redactor = redactor();
    let kept = redactor.body(body, "request 1").into_owned();
    assert_eq!(kept, body.replace("\\u0061da@harbour.example", "[redacted:email:1]"));
    assert_eq!(redactor.report().found[0].first, "request 1/messages/0/content");
}

#[test]
fn code_and_stand_ins_are_no_secrets() {
    let mut redactor = redactor();
    for text in [
        "password = get_password()",
        "def login(user: str, password: str) -> Token:",
        "self.token = token",
        "api_key=os.environ[\"OPENAI_API_KEY\"]",
        "api_key: ${API_KEY}",
        "export TOKEN=<your-token-here>",
        "password: \"********\"",
        "\"password\": \"Enter your password\"",
        "max_tokens: 4096, tokens=12345",
        "git@github.com:ada/tides.git",
        "https://ada@git.harbour.dev/tides.git",
        "token: xoxb-the-token\n  channel: tides",
        "import x from 'a@1.2.3'",
        "https://harbour.example/home/page",
        "src/home/components/App.ts, /api/Users/list",
        "PWD=/srv/t2/build OLDPWD=/srv/app1",
        "token = base64.b64encode(x)",
        "secret = hashlib.sha256(x)",
        "api_key = config.s3_api_key",
        "val x = this@MainActivity.context",
        "MAX_TOKEN=4096",
        "sk-learn and sk-short",
        "if password != confirm_password {",
        "secret: Option<String>,",
    ] {
        assert_eq!(redactor.text(text, ""), text);
    }
}

#[test]
fn a_credential_in_an_address_goes_without_its_host() {
    for (text, expected) in [
        (
            "https://ada:ghp_16C7e42F292c6912E7710c838347Ae178B4a@git.harbour.dev/t.git",
            "https://ada:[redacted:github-token:1]@git.harbour.dev/t.git",
        ),
        (
            "https://x-access-token:v1.1f699f1069f60aaa@git.harbour.dev/t",
            "https://x-access-token:[redacted:url-password:1]@git.harbour.dev/t",
        ),
        (
            "Ask ada@harbour.dev, see https://harbour.dev/?u=ada@harbour.dev",
            "Ask [redacted:email:1], see https://harbour.dev/?u=[redacted:email:1]",
        ),
        ("пароль: Снегирь_4471, порт 2222.", "пароль: [redacted:told-password:1], порт 2222."),
        (
            "postgres://app:7Tides-at-noon@db.harbour.dev:5432/tides",
            "postgres://app:[redacted:url-password:1]@db.harbour.dev:5432/tides",
        ),
    ] {
        assert_eq!(kept(text), expected);
    }
}

#[test]
fn headers_commands_and_the_environment_give_no_secret_away() {
    let long = "q7".repeat(400);
    for (body, secret) in [
        (r#"{"headers":{"Authorization":"Basic dXNlcjpwYXNzd29yZA=="}}"#, "dXNlcjpwYXNzd29yZA"),
        (r#"{"cookie":"sid=s3cr3t0; a=b"}"#, "s3cr3t0"),
        (r#"{"Set-Cookie":"sid=s3cr3t0; Path=/"}"#, "s3cr3t0"),
        ("Cookie: theme=dark; sid=s3cr3t0\nHost: a.example", "s3cr3t0"),
        (&format!("AWS_SESSION_TOKEN={long}"), &long),
        ("PGPASSWORD=swordfish psql", "swordfish"),
        ("MYSQL_PWD=12345678 mysql", "12345678"),
        ("curl -s -u ada:tide-7-calm https://a.example", "tide-7-calm"),
        ("mysql --password tide-7-calm", "tide-7-calm"),
        (r#"{"ada@harbour.example": {"/home/adalind/x.ts": 1}}"#, "ada@harbour"),
        (r#"{"/home/adalind/x.ts": 1}"#, "adalind"),
        ("/root/.claude/projects/-home-adalind-work/x.jsonl", "adalind"),
        ("password: \"ab'cd-TAIL9\"", "TAIL9"),
        (r#"{"arguments": "{\"password\": \"p@ss\\\"word-TAIL9\"}"}"#, "TAIL9"),
        (r#"ran with {\"password\": \"p@ss\\\"word-TAIL9\"} at"#, "TAIL9"),
        (r#"password = "p@ss\"word-TAIL9""#, "TAIL9"),
        (r#"{"pass\u0077ord": "tide-7"}"#, "tide-7"),
        (r#"{"password": 71828182, "port": 71828183}"#, "71828182"),
        (r#"{"text": "\ud83d PGPASSWORD=tide-7-calm"}"#, "tide-7-calm"),
        ("key xai-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sALq9vT2mX8cR4bN6p", "Lq9vT2mX8"),
        ("pplx-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA", "Lq9vT2mX8"),
        ("VAULT hvs.Lq9vT2mX8cR4bN6pW1kZ5yD7fH", "Lq9vT2mX8"),
        ("[info] password: tide7calm", "tide7calm"),
    ] {
        let mut redactor = redactor();
        let kept = redactor.body(body, "").into_owned();
        assert!(!kept.contains(secret) && kept.contains("[redacted:"), "{kept}");
        let again = redactor.body(&kept, "").into_owned();
        assert_eq!(again, kept);
    }
}

/// What is left of a text, which a second time changes nothing of.
fn kept(text: &str) -> String {
    let mut redactor = redactor();
    let kept = redactor.body(text, "").into_owned();
    assert_eq!(redactor.body(&kept, ""), kept, "{text}");
    kept
}

#[track_caller]
fn assert_taken_out(secret: &str, text: &str) {
    let kept = kept(text);
    assert!(!kept.contains(secret) && kept.contains("[redacted:"), "{secret} of {text}: {kept}");
}

#[test]
fn a_password_that_is_no_parameter_keeps_what_looks_like_the_next_one() {
    // No part of it is left.
    assert_taken_out("dor=3xQ9z", "password: Tr0ub4d&dor=3xQ9z");
    assert_taken_out("Long9Secret", "DB_PASSWORD=Ab1&xyz=Long9Secret");
    let address = "jdbc:mysql://db/t?user=app&password=7Tides4noon&useSSL=false";
    assert_eq!(kept(address), address.replace("7Tides4noon", "[redacted:told-password:1]"));
}

#[test]
fn a_password_in_quotes_ends_where_they_do() {
    for (secret, command) in [
        ("w|rd", "curl -u 'bob:pa$$;w|rd' https://a.example"),
        ("w<rd", "tool --password='pa<w<rd' x"),
        ("b;c", "tool --password 'a&b;c' x"),
        ("t7&x", "tool --db-password='p t7&x' x"),
        ("hunter2", "curl -H 'a: b; c' -u bob:hunter2 https://a.example"),
        ("hunter2", "curl -s \\\n  -u bob:hunter2 https://a.example"),
        ("sdf9", "curl -u bob:pa$$sdf9 https://a.example"),
        ("w|rd", "PGPASSWORD='pa$$;w|rd' psql"),
        ("w0rd9", "PGPASSWORD=pa$$w0rd9 psql"),
    ] {
        // In a string of JSON, and in one within a string; broken off before their ends, too.
        for quote in ['\'', '"'] {
            let command = command.replace('\'', &quote.to_string());
            let once = serde_json::json!({ "command": command }).to_string();
            let twice = serde_json::json!({ "arguments": once }).to_string();
            for text in [&command, &once, &twice] {
                assert_taken_out(secret, text);
                assert_taken_out(secret, &format!("It ran {}", text.trim_end_matches('}')));
            }
        }
    }
}

#[test]
fn passwords_of_known_programs_are_found() {
    for (secret, command) in [
        ("tides", "mysql -u root -ptides db"),
        ("ti des", "mysqldump -u root -p'ti des' db"),
        ("tide7", "mariadb -h db.example -ptide7"),
        ("s3cr3t", "docker login -p s3cr3t registry.example"),
        ("tidily", "podman login -u ada -p tidily"),
        ("ti|des", "helm registry login -u ada -p 'ti|des' a.example"),
        ("tides", "az login --service-principal -u ada -p tides"),
        ("tides", "redis-cli -h db.example -a tides ping"),
        ("ti;des", "redis-cli -a \"ti;des\" ping"),
        ("tides", "sshpass -p tides ssh a.example"),
        ("ti&d s", "sshpass -p 'ti&d s' ssh a.example"),
        ("tide7", "machine a.example login ada password tide7"),
        ("tides", "machine a.example\n  login ada\n  password tides\n"),
    ] {
        assert_taken_out(secret, command);
        assert_taken_out(secret, &serde_json::json!({ "command": command }).to_string());
    }
    for text in [
        "mysql -u root -p db",
        "mysql -u root -p$DB_PASS db",
        "mysql -u root -p\"$DB_PASS\" db",
        "mysql -u root < dump && mkdir -pv a",
        "docker run --name mysql -p3306:3306 mysql",
        "docker login --password-stdin",
        "docker login -u ada -p \"$PASS\"",
        "docker run -p 8080:80 a",
        "redis-cli -a $REDIS ping",
        "tool --no-password hostname1",
        "Give --password instead of it, or --token ACCESS_TOKEN.",
        "machine learning password reset",
    ] {
        assert_eq!(kept(text), text);
    }
}

#[test]
fn a_key_is_told_by_what_it_is_named_after() {
    let hex = "0f8b3c9d1e7a6b5c4d3e2f1a0b9c8d7e";
    for value in [hex, "q8Zr/3Kd+Wm4Tz8Lp5Vb3Nc6Hy1Js0GfA5Ub9Eo3P="] {
        for name in
            ["OPENAI_KEY", "datadog-key", "stabilityKey", "MY_TOKEN", "A_SECRET", "A_PASSWD"]
        {
            for text in [
                format!("{name}={value}"),
                format!("export {name}=\"{value}\""),
                format!("{name}: {value}"),
                format!("\"{name}\": \"{value}\""),
                format!("{{\"{name}\": \"{value}\"}}"),
            ] {
                assert_taken_out(&value[..12], &text);
            }
        }
        for name in
            ["key", "cache_key", "sortKey", "PRIMARY_KEY", "prompt_cache_key", "Sec-WebSocket-Key"]
        {
            for text in [
                format!("{name}={value}"),
                format!("{name}: {value}"),
                format!("{{\"{name}\": \"{value}\"}}"),
            ] {
                assert_eq!(kept(&text), text);
            }
        }
    }
    for text in [
        "primary_key=id",
        "sort_key: name",
        "openai_key: user_profile_settings_v2_main",
        "key=9c1185a5c5e9fc54612808977ee8f548b2258d31",
        "lib_key=/usr/lib/x86_64/libtides.so.12345",
        "tracking_key: 550e8400-e29b-41d4-a716-446655440000",
    ] {
        assert_eq!(kept(text), text);
    }
}

#[test]
fn a_token_of_three_parts_is_found() {
    let token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs";
    assert_eq!(kept(&format!("run('{token}')")), "run('[redacted:discord-token:1]')");
    let code = "some_long_module_identifier.helper.another_long_function_identifier_x";
    assert_eq!(kept(code), code);
}

#[test]
fn a_password_that_somebody_says_is_found() {
    for (secret, text) in [
        ("hunter22", "my password is hunter22!"),
        ("hunter22", "The password for the server is hunter22."),
        ("hunter22", "the password: hunter22!"),
        ("hunter22", "the password is **hunter22**"),
        ("swordfish", "my password is \"swordfish\""),
        ("swordfish", "the password is `swordfish`"),
        ("tr0ub4dor", "My pw is tr0ub4dor&3, ok?"),
        ("ti_de!x", "the passphrase is ti_de!x"),
    ] {
        assert_taken_out(secret, text);
        assert_taken_out(secret, &serde_json::json!({ "content": text }).to_string());
    }
    for text in [
        "the password is wrong",
        "the password is incorrect!",
        "password is \"required\"",
        "the password is case-sensitive",
        "the password is base64-encoded",
        "The password is at least 8 characters",
        "the password is $PASSWORD",
        "the password is stored in /etc/x1",
        "if password is None:",
        "password is <your password>",
        "Password is too short (8)",
    ] {
        assert_eq!(kept(text), text);
    }
}

#[test]
fn the_beginning_of_a_secret_at_the_end_of_a_cut_text_is_taken_out() {
    for (text, expected) in [
        ("The key is sk-ant-ap", "The key is [redacted:anthropic-key:1]"),
        ("id AKIAQZ7", "id [redacted:aws-key-id:1]"),
        ("x ghp_ab", "x [redacted:github-token:1]"),
        ("bot 123456789:AA9876", "bot [redacted:telegram-token:1]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII", "[redacted:private-key:1]"),
        ("{\"password\": \"hunt", "{\"password\": \"[redacted:password:1]"),
        ("{\\\"token\\\": \\\"tok3", "{\\\"token\\\": \\\"[redacted:token:1]"),
        ("tool --password \"a&b", "tool --password \"[redacted:command-password:1]"),
        ("postgres://ada:tide-7-c", "postgres://ada:[redacted:url-password:1]"),
        ("mail ada@harb", "mail [redacted:email:1]"),
        ("OPENAI_KEY=0f8b3c", "OPENAI_KEY=[redacted:key:1]"),
        // What is whole is found as ever.
        ("PGPASSWORD=tide-7-calm", "PGPASSWORD=[redacted:environment:1]"),
    ] {
        assert_eq!(redactor().cut_body(text, ""), expected);
        let body = format!("{{\"content\":[{{\"text\":\"{}", text.replace('\n', "\\n"));
        let kept = redactor().cut_body(&body, "").into_owned();
        assert!(kept.contains("[redacted:"), "{kept}");
        assert_eq!(redactor().cut_body(&kept, ""), kept);
    }
    for text in [
        "and then the harbour",
        "I will use s",
        "It costs 12345678",
        "see https://a.example/x",
        "Hello world.",
        "{\"password\": \"\"}",
        "a line\n-----",
        "a sum 0123456789abcdef",
    ] {
        assert_eq!(redactor().cut_body(text, ""), text);
    }
}

#[test]
fn a_cut_stream_says_no_beginning_of_a_secret_and_no_half_event() {
    let whole = stream("The key is sk-ant-api03-Lq", 4);
    let cut =
        format!("{whole}data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"9vT2");
    let kept = redactor().cut_body(&cut, "").into_owned();
    let (events, half) = kept.rsplit_once("\n\n").unwrap();
    assert_eq!(half, "data:");
    assert_eq!(said(&format!("{events}\n\n")), "The key is [redacted:anthropic-key:1]");
    let whole = stream("Nothing of this is a secret.", 4);
    assert_eq!(redactor().cut_body(&whole, ""), whole);
}

/// The forms in which a text comes: as it is, in JSON, and in JSON within JSON.
fn forms(text: &str) -> [String; 3] {
    let once = serde_json::json!({ "content": text }).to_string();
    let twice = serde_json::json!({ "arguments": once }).to_string();
    [text.to_owned(), once, twice]
}

#[test]
fn keys_of_every_issuer_are_found_in_every_surrounding() {
    let mut letters = Letters(11);
    for around in SURROUNDINGS {
        for key in issued(&mut letters) {
            for text in forms(&around.replace("{}", &key)) {
                assert_taken_out(&key, &text);
            }
        }
    }
}

#[test]
fn what_is_hidden_inside_of_a_key_does_not_hide_it() {
    let mut letters = Letters(12);
    for hidden in HIDDEN {
        for key in issued(&mut letters) {
            let (head, tail) = key.split_at(key.len() / 2);
            for text in forms(&format!("the key {head}{hidden}{tail} and more")) {
                assert_taken_out(head, &text);
                assert_taken_out(tail, &text);
            }
        }
    }
}

#[test]
fn a_key_whose_signs_are_escaped_is_found() {
    let mut letters = Letters(14);
    for key in issued(&mut letters) {
        for signs in [&['_'][..], &['-'], &['_', '-']] {
            let escaped = signs
                .iter()
                .fold(key.clone(), |key, sign| key.replace(*sign, &format!("\\{sign}")));
            let kept = kept(&format!("\\texttt{{{escaped}}} is it"));
            assert!(kept.starts_with("\\texttt{[redacted:") && kept.ends_with("} is it"), "{kept}");
            assert!(!kept.contains(&escaped[escaped.len() - 8..]), "{escaped}: {kept}");
        }
    }
}

#[test]
fn a_private_key_is_found_however_its_lines_stand() {
    let mut letters = Letters(13);
    let base64 = format!("{ALNUM}+/");
    let lines = |head: &str, prefix: &str, behind: &str, between: &str, lines: &[String]| {
        let lines = lines.iter().enumerate().map(|(at, line)| {
            format!("{}{line}{behind}", prefix.replace('#', &(at + 1).to_string()))
        });
        format!("{head}{}", lines.collect::<Vec<_>>().join(between))
    };
    for kind in ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "] {
        for (before, behind, between) in KEY_LINES {
            let body: Vec<String> = (0..6).map(|_| letters.of(&base64, 64)).collect();
            let mut key = vec![format!("-----BEGIN {kind}PRIVATE KEY-----")];
            key.extend(body.clone());
            key.extend([
                letters.of(&base64, 20) + "==",
                format!("-----END {kind}PRIVATE KEY-----"),
            ]);
            for (part, of) in
                [(&key[..], &body[..]), (&key[3..], &body[2..]), (&key[..4], &body[..3])]
            {
                for text in forms(&lines("$ cat key\n", before, behind, between, part)) {
                    of.iter().for_each(|line| assert_taken_out(line, &text));
                }
            }
        }
    }
    let body: Vec<String> = (0..4).map(|_| letters.of(&base64, 64)).collect();
    let putty = format!(
        "PuTTY-User-Key-File-3: ssh-rsa\nPublic-Lines: 1\n{}\nPrivate-Lines: 4\n{}\nPrivate-MAC: {}",
        letters.of(&base64, 64),
        body.join("\n"),
        letters.of("0123456789abcdef", 64)
    );
    body.iter().for_each(|line| assert_taken_out(line, &putty));
    // Marks without a key between them are none.
    for text in [
        "if text.contains(\"-----BEGIN PRIVATE KEY-----\") && text.contains(\"-----END PRIVATE KEY-----\") {}",
        "It begins with -----BEGIN RSA PRIVATE KEY----- and stays out of git; see docs/Keys2.md",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
    ] {
        assert_eq!(kept(text), text);
    }
}

#[test]
fn what_stands_beside_a_password_tells_it() {
    let token = "q8Zt3vLmNo1XwJalrXUtnFEMIK7MDENGbPxRfiCY";
    for (secret, text) in [
        ("swordfish", "spring.datasource.password=swordfish"),
        ("tide-7-calm", "<password>tide-7-calm</password>"),
        ("tide-7-calm", "<add key=\"DbPassword\" value=\"tide-7-calm\" />"),
        ("YWRhOlRpZGUtNDI", "{\"auths\":{\"a.example\":{\"auth\":\"YWRhOlRpZGUtNDI=\"}}}"),
        ("YWRhOlRpZGUtNDI", "//a.example/:_auth=YWRhOlRpZGUtNDI="),
        ("calm tide", "password = \"calm tide\""),
        (token, &format!("aws configure set aws_secret_access_key {token}")),
        ("swordfish", "[\"app\",\"--password\",\"swordfish\"]"),
        ("swordfish", "{\"command\":[\"mysql\",\"-pswordfish\"]}"),
        ("tide-7-calm", "subprocess.run(['curl', '-u', 'ada:tide-7-calm'])"),
        (token, &format!("[\"Authorization\",\"Token {token}\"]")),
        (token, &format!("{{\"name\":\"X-Api-Key\",\"value\":\"{token}\"}}")),
        ("tide-7-calm", "- name: DB_PASSWORD\n  value: tide-7-calm"),
        ("swordfish", "CREATE USER ada IDENTIFIED BY 'swordfish'"),
        ("tide7calm", "GRANT ALL ON harbour.* TO ada IDENTIFIED BY tide7calm;"),
        ("swordfish", "ALTER ROLE ada WITH PASSWORD 'swordfish'"),
        ("swordfish", "Secret(\"swordfish\")"),
        ("tide-7-calm", " user     | ada\n password | tide-7-calm\n"),
        ("swordfish", " id | password \n----+----------\n  1 | swordfish\n"),
        ("calm-8-tide", "user,password\nada,tide-7-calm\nbob,calm-8-tide\n"),
        (token, &format!("ENV API_TOKEN {token}")),
        (token, &format!("setx API_KEY {token}")),
        (token, &format!("set -x API_TOKEN {token}")),
        ("swordfish", "keytool -storepass swordfish -alias a"),
        ("swordfish", "htpasswd -b .htpasswd ada swordfish"),
        ("swordfish", "htpasswd -cb users ada swordfish"),
        ("swordfish", "htpasswd -B -b -C 10 users ada swordfish"),
        ("swordfish", "htpasswd -nbB ada swordfish"),
        ("swordfish", "htpasswd -n -b ada swordfish"),
        ("swordfish", "echo swordfish | docker login -u ada --password-stdin"),
        (token, &format!("https://discord.com/api/webhooks/123456789012345678/{token}")),
        (
            "NZWltIjo",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiIs\nNZWltIjoiYSJ9.q8Zt3vLmNo1XwJalrXUtnFEMIK7MDENG",
        ),
        ("q8Zt3vLmNo1X", "root:$6$saltsalt$q8Zt3vLmNo1XwJalrXUtnFEMIK7MDENG:19000:0:99999:7:::"),
        ("tide-7-calm", "password%3Dtide-7-calm%26user%3Dada"),
        ("tide-7-calm", "{\\u0022password\\u0022:\\u0022tide-7-calm\\u0022}"),
        ("tide-7-calm", "DB_\u{1b}[01;31mPASSWORD\u{1b}[m=tide-7-calm"),
        ("swordfish", "Server=db;User Id=sa;Password=swordfish;Encrypt=no"),
    ] {
        forms(text).iter().for_each(|text| assert_taken_out(secret, text));
    }
    for text in [
        "\"nextPageToken\": \"CAUQAAq8Zt3vLmNo1XwJalrX\"",
        "page_token = \"CAUQAAq8Zt3vLmNo1XwJalrX\"",
        "set-cookie: theme=dark",
        "Set-Cookie: lang=en-US; Path=/; SameSite=Lax",
        "# password: sha256 of the body",
        "// token: base64 encoded",
        "noreply@a.example and ada@example.com",
        "github_pat_XXXXXXXXXXXXXXXXXXXXXX and AKIAXXXXXXXXXXXXXXXX and ghp_****************",
        "required: [\"username\", \"password\", \"email1\"]",
        "[\"Authorization\",\"Content-Type\",\"X-Requested-With\"]",
        "[\"rg\",\"-n\",\"api_key\",\"src/config2.ts\"]",
        "| Field | Type |\n|---|---|\n| password | string |\n",
        "user,password,mail\nstring,string,string",
        "getSecret(\"db-password-1\")",
        "heroku app harbour, dyno id 0b5cb0b1-7e3d-4a5f-9f0a-2d5b7c1e9f11",
        "a task-0123456789abcdefghijklmnop",
        "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    ] {
        assert_eq!(kept(text), text);
    }
}

/// A table of texts: first what is secret in each, then those in which nothing is.
#[test]
fn what_stands_around_a_secret_tells_it_and_ordinary_text_stays() {
    let table = include_str!("../fixtures/surroundings-of-secrets.json");
    // Written apart, so that nobody takes them for keys.
    let table = table.replace("{AKIA}", "AKIA").replace("{KEY}", "PRIVATE KEY-----");
    let table = table.replace("{JWT}", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9");
    let table: serde_json::Value = serde_json::from_str(&table).unwrap();
    for row in table["secret"].as_array().unwrap() {
        let [text, secrets @ ..] = &row.as_array().unwrap()[..] else { panic!("{row}") };
        for secret in secrets {
            assert_taken_out(secret.as_str().unwrap(), text.as_str().unwrap());
        }
    }
    for text in table["ordinary"].as_array().unwrap() {
        assert_eq!(kept(text.as_str().unwrap()), text.as_str().unwrap());
    }
}

#[test]
fn events_with_other_line_ends_and_on_several_lines_are_joined() {
    let said = "The key is sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA.";
    let whole = stream(said, 5);
    let on_lines = whole.replace(",\"index\":0", ",\ndata: \"index\":0");
    assert!(on_lines != whole);
    for ends in ["\n", "\r", "\r\n"] {
        for stream in [&whole, &on_lines] {
            let stream = stream.replace('\n', ends);
            let kept = redactor().body(&stream, "").into_owned();
            assert_eq!(kept.matches("[redacted:anthropic-key:1]").count(), 1, "{kept:?}");
            assert!(
                !kept.contains("Lq9") && !kept.contains("sA.") && kept.contains("The"),
                "{kept:?}"
            );
            assert_eq!(kept.matches(ends).count(), stream.matches(ends).count());
        }
    }
}

#[test]
fn a_key_in_a_dump_of_hexadecimal_numbers_is_taken_out() {
    let key = format!("TOKEN=ghp_{}\n", "q8Zt3vLmNo1XwJalrXUtnFEMIK7MDENGbPxR");
    for lead in ["", "{\"name\":\"Jürgen\",\"berth\":7}\n"] {
        for behind in [": ", "\t"] {
            let bytes = format!("{lead}{key}").into_bytes();
            let lines = bytes.chunks(16).enumerate().map(|(line, bytes)| {
                let numbers: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{:08x}{behind}{}\n", line * 16, numbers.join(" "))
            });
            let dump = lines.collect::<String>();
            assert!(kept(&dump).contains("[redacted:"), "{dump}");
        }
    }
    let plain = "00000000: 54 68 65 20 74 69 64 65 20 69 73 20 6c 6f 77 2e\n";
    assert_eq!(kept(plain), plain);
}

#[test]
fn prose_that_identifies_something_is_no_password() {
    for text in [
        "Each record is identified by its number and a version.",
        "identified by node_index_v2 in the graph",
        "Users are identified as\nguests until they log in.",
    ] {
        assert_eq!(kept(text), text);
    }
}

#[test]
fn the_key_of_a_bot_is_found_in_its_address() {
    let key = "7140728390:AAXi5tfMGLNPlw7l8mtDEJGwqCsxUMyWCEq";
    for text in [
        format!("https://api.telegram.example/bot{key}/getMe"),
        format!("https://api.telegram.example/file/bot{key}/a.png"),
        format!("bot{key}"),
        format!("TOKEN_{key}"),
    ] {
        assert_taken_out(key, &text);
    }
}

#[test]
fn what_was_told_once_is_found_where_it_stands_bare() {
    let mut redactor = redactor();
    let texts =
        ["Use tide-7-calm for it.", "PGPASSWORD=tide-7-calm psql", "tide-7-calm did not work"];
    let kept: Vec<String> = texts.iter().map(|text| redactor.text(text, "").into_owned()).collect();
    assert_eq!(kept[0], texts[0]);
    assert_eq!(kept[2], "[redacted:environment:1] did not work");
    redactor.start_second_pass();
    for (at, text) in texts.iter().enumerate() {
        assert!(!redactor.text(text, &at.to_string()).contains("tide-7"), "{text}");
    }
    let found = &redactor.report().found[0];
    assert_eq!((found.times, found.first.as_str()), (3, "0"));
    // Of secrets that begin alike the longest is found, whichever was told first.
    for order in [["tide-7-calm", "tide-7-calm-prod-X"], ["tide-7-calm-prod-X", "tide-7-calm"]] {
        let mut redactor = self::redactor();
        order.iter().for_each(|secret| drop(redactor.text(&format!("PGPASSWORD={secret}"), "")));
        let kept = redactor.text("(tide-7-calm-prod-X)", "").into_owned();
        assert!(kept.starts_with("([redacted:") && kept.ends_with("])"), "{kept}");
    }
    // Words and addresses are no secrets where nothing tells them.
    let mut redactor = self::redactor();
    redactor.text("password: \"swordfish\", mail ada@harbour.example, /home/ada77xyz", "");
    for text in ["swordfish is a fish", "ada77xyz said"] {
        assert_eq!(redactor.text(text, ""), text);
    }
}

#[test]
fn pieces_of_written_json_give_no_secret_away() {
    let arguments = r#"{"command": "psql", "password": "p@ss\"word-TAIL9", "n": 5}"#;
    for size in 1..8 {
        let mut redactor = redactor();
        let kept = redactor.body(&stream(arguments, size), "response 1").into_owned();
        let kept = said(&kept);
        assert_eq!(kept, r#"{"command": "psql", "password": "[redacted:password:1]", "n": 5}"#);
    }
}

#[test]
fn rules_of_ones_own_say_what_is_wrong_with_them() {
    const ONE: &str = "rule \"a\": expected one of `regex`, `token`, `keys` and `members`";
    for (toml, expected) in [
        ("[[rules]]\nid = \"a\"\nregex = '('", "rule \"a\": its expression cannot be read"),
        ("[[rules]]\nid = \"a\"", ONE),
        ("[[rules]]\nid = \"a\"\nregex = \"b\"\ntoken = \"c\"", ONE),
        ("[[rules]]\nid = \"a\"\nkeys = [\"b\"]\nmembers = [\"c\"]", ONE),
        ("[[rules]]\nregex = 'a'", "missing field `id`"),
        ("rules = 5", "not rules of redaction"),
    ] {
        let error = RedactionRules::from_toml(toml).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Rules in the form that gitleaks gives its own, with what Go's expressions have and Rust's have not.
const OF_GITLEAKS: &str = r#"
title = "harbour config"
minVersion = "v8.25.0"

[allowlist]
description = "global allow lists"
paths = ['(?i)\.(?:png|svg)$']
regexes = [
    '^\$(?:\d+|{\d+})$',
    '^\${(?:[A-Z_]+|[a-z_]+)}$',
    '^\{\{[ \t]*[\w ().|]+[ \t]*}}$',
]
stopwords = ["harbourwords"]

[[rules]]
id = "berth-token"
description = "A token of a berth."
regex = '''\b(berth_[\w-]{40,1000})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 3
keywords = ["berth_"]

[[rules]]
id = "crane-key"
regex = '''(?i)[\w.-]{0,50}?(?:crane)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}([[:alnum:]]{14}\b|\${?[a-z_0-9]+}?)'''
secretGroup = 1
keywords = ["crane", "Schlüssel"]
[[rules.allowlists]]
regexTarget = "line"
regexes = ['''{{[^}]*}}''']

[[rules]]
id = "manifest"
path = '''(?i)\.ya?ml$'''
"#;

#[test]
fn rules_of_gitleaks_are_read_as_go_reads_them() {
    let rules = RedactionRules::from_toml(OF_GITLEAKS).unwrap();
    assert_eq!(rules.ids().collect::<Vec<_>>(), ["berth-token", "crane-key"]);
    let token = format!("berth_{}", Letters(3).of(ALNUM, 60));
    let words = format!("berth_harbourwords{}", Letters(3).of(ALNUM, 60));
    let mut redactor = Redactor::new(&rules);
    for (text, expected) in [
        (format!("TOKEN={token};"), "TOKEN=[redacted:berth-token:1];"),
        (format!("Crane = '{}'", "a7".repeat(7)), "Crane = '[redacted:crane-key:2]'"),
        // What stands for a value is none.
        ("crane: ${42}".to_owned(), "crane: ${42}"),
        ("crane: ${crane}".to_owned(), "crane: ${crane}"),
        (words.clone(), &words),
    ] {
        assert_eq!(redactor.text(&text, ""), expected, "{text}");
    }
}

#[test]
fn what_is_allowed_in_some_files_or_under_two_conditions_is_redacted_elsewhere() {
    let rules = |allowed: &str| {
        let toml = format!(
            "[[rules]]\nid = \"berth\"\nregex = 'B-[0-9a-z]{{4}}'\n[[rules.allowlists]]\n{allowed}"
        );
        Redactor::new(&RedactionRules::from_toml(&toml).unwrap())
    };
    for (allowed, text, is_redacted) in [
        ("regexes = ['00']", "B-0012", false),
        ("regexes = ['00']\npaths = ['docs']", "B-0012", false),
        ("regexes = ['00']\npaths = ['docs']\ncondition = \"AND\"", "B-0012", true),
        ("commits = ['1a']\nstopwords = ['00']\ncondition = \"&&\"", "B-0012", true),
        ("regexes = ['00']\nstopwords = ['cd']\ncondition = \"AND\"", "B-00cd", false),
        ("regexes = ['00']\nstopwords = ['cd']\ncondition = \"AND\"", "B-00ce", true),
        ("regexes = ['00']\nstopwords = ['cd']", "B-00ce", false),
    ] {
        let redacted = rules(allowed).text(text, "").contains("[redacted:berth:1]");
        assert_eq!(redacted, is_redacted, "{allowed}: {text}");
    }
}

#[test]
fn what_recordings_hold_is_found_and_the_rest_stays() {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return };
    let mut redactor = redactor();
    let (mut frames, mut changed) = (0, 0);
    for session in sessions::sessions(first.parent().unwrap(), 1, 1) {
        for frame in session.frames {
            let before = frame.to_json();
            let after = redactor.frame(frame).unwrap();
            frames += 1;
            changed += u32::from(after.to_json() != before);
        }
    }
    for (rule, secrets, times) in redactor.report().by_rule() {
        println!("{rule}: {secrets} in {times} places");
    }
    println!("{changed} of {frames} frames changed");
    let placeholders: BTreeSet<&str> =
        redactor.report().found.iter().map(|found| found.placeholder.as_str()).collect();
    assert_eq!(placeholders.len(), redactor.report().found.len());
}

/// A text that was redacted stays as it is when it is redacted again, and loses the same in JSON.
#[track_caller]
fn assert_settled(text: &str) {
    let mut redactor = redactor();
    let once = redactor.text(text, "").into_owned();
    assert_eq!(redactor.text(&once, ""), once);
    let body = serde_json::json!({ "a": [text] }).to_string();
    let kept: serde_json::Value = serde_json::from_str(&redactor.body(&body, "")).unwrap();
    assert_eq!(kept["a"][0].as_str().unwrap(), once);
}

#[test]
fn redacting_again_changes_nothing_where_a_sign_is_written_out_before_a_key() {
    let key = "sk-0A0aaAa0A0Aa00AAbbB0";
    assert_settled(&format!(
        " @password:\u{1df25}\\/home/passwordsk-Aaaaa0AaAaAA00Aa0aA0\u{11350}{key}"
    ));
    assert_settled(&format!("{key}:a@passwordsk-Aaaaa0AaAaAA00Aa0aA0\\password"));
}

#[test]
fn what_is_said_in_words_goes_and_what_stands_for_a_value_stays() {
    let words = "legal winner thank year wave sausage worth useful legal winner thank yellow";
    for (secret, text) in [
        ("Moor7Lantern", "In ~/.pgpass: a.example:5433:tides:pilot:Moor7Lantern there"),
        ("Moor7Lantern", "set the root password to Moor7Lantern! and restart"),
        ("otter lantern", "the passphrase is \"otter lantern seven moss\""),
        ("sausage", &format!("My seed phrase is {words}")),
        ("sausage", &format!("seed phrase:\n1. {}", words.replace(' ', "\n2. "))),
    ] {
        assert_taken_out(secret, text);
    }
    for text in [
        "tool [--from-literal=key1=value1]",
        "password: cGFzc3dvcmQ=",
        "{ token: 'tid=1;proxy-ep=proxy.local.example' }",
        "password: \"must be at least eight characters\"",
    ] {
        assert_eq!(kept(text), text);
    }
}

proptest! {
    #[test]
    fn redacting_again_changes_nothing(text in "([a-z@=:\" /\\\\.]|password|/home/|sk-[a-zA-Z0-9]{20}|\\PC){0,40}") {
        assert_settled(&text);
    }

    #[test]
    fn any_text_is_a_body(text in "\\PC{0,60}", json in "[\\[\\]{}:,\"a0 \\\\]{0,40}") {
        let mut redactor = redactor();
        for text in [text.as_str(), &json, &format!("data: {json}\n\n")] {
            if let Cow::Owned(kept) = redactor.body(text, "") {
                prop_assert!(kept.contains("[redacted:"), "{}", kept);
            }
        }
    }
}
