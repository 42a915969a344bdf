//! Requests that belong together, and where caches broke.

use afterimage_testkit::data::case;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::support::{afterimage, json as one, json_lines, out, run};

/// A HAR file of requests to this address, each with its response.
fn har(url: &str, exchanges: &[(Value, Value)]) -> NamedTempFile {
    let entry = |(at, (request, response)): (usize, &(Value, Value))| {
        let text = match response {
            Value::String(stream) => stream.clone(),
            response => response.to_string(),
        };
        json!({
            "startedDateTime": format!("2026-05-01T10:00:{at:02}.000Z"), "time": 5,
            "request": {"method": "POST", "url": url, "postData": {"text": request.to_string()}},
            "response": {"status": 200, "content": {"text": text}},
        })
    };
    let entries: Vec<Value> = exchanges.iter().enumerate().map(entry).collect();
    let file = NamedTempFile::with_suffix(".har").unwrap();
    std::fs::write(file.path(), json!({"log": {"entries": entries}}).to_string()).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

const MESSAGES: &str = "https://api.anthropic.com/v1/messages";
const CHAT: &str = "https://gate.example/v1/chat/completions";
const RESPONSES: &str = "https://gate.example/v1/responses";

fn marked(kind: &str, text: &str) -> Value {
    json!([{"type": kind, "text": text, "cache_control": {"type": "ephemeral"}}])
}

/// An answer of the Messages API with its usage: read, and written.
fn answer(text: &str, (read, written): (u64, u64)) -> Value {
    json!({
        "id": format!("msg {text}"), "type": "message", "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written},
    })
}

/// A table of a run on 80 columns.
fn on_80_columns(args: &[&str]) -> String {
    let output = afterimage(args).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let long = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None, "{args:?}");
    text
}

/// Requests that hold these messages, with an answer each.
fn holding(url: &str, lists: [Value; 2]) -> NamedTempFile {
    let exchange = |list: Value| match url {
        CHAT => (
            json!({"model": "m", "messages": list}),
            json!({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}),
        ),
        RESPONSES => (
            json!({"model": "m", "input": list}),
            json!({"output": [{"type": "message", "role": "assistant", "content": "ok"}]}),
        ),
        _ => (json!({"model": "m", "messages": list}), answer("ok", (0, 0))),
    };
    har(url, &lists.map(exchange))
}

#[test]
fn a_conversation_stays_one_whatever_the_form_of_its_messages() {
    let user = |content: Value| json!({"role": "user", "content": content});
    let of = |role: &str, content: Value| json!({"role": role, "content": content});
    let (high, ok, next) =
        (user(json!("High?")), of("assistant", json!("ok")), user(json!("And the ebb?")));
    let called = |content: Value| {
        json!({"role": "assistant", "content": content, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]})
    };
    let tool = |content: Value| json!({"role": "tool", "tool_call_id": "c", "content": content});
    let used = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
    let result = |content: Value| {
        user(json!([{"type": "tool_result", "tool_use_id": "t", "content": content}]))
    };
    let output =
        |output: Value| json!({"type": "function_call_output", "call_id": "c", "output": output});
    let empty = json!({"type": "text", "text": ""});
    for (url, was, is) in [
        // A mark moves on, or comes.
        (CHAT, json!([user(marked("text", "High?"))]), json!([high, ok, next])),
        (CHAT, json!([high]), json!([user(marked("text", "High?")), ok, next])),
        // The operator's, and several blocks.
        (
            CHAT,
            json!([of("system", marked("text", "Be kind.")), high]),
            json!([of("system", json!("Be kind.")), high, ok, next]),
        ),
        (
            CHAT,
            json!([user(
                json!([{"type": "text", "text": "High?"}, {"type": "text", "text": "Low?"}])
            )]),
            json!([user(json!("High?\nLow?")), ok, next]),
        ),
        // What an answer lacks may be null, empty or nothing, and clients trim it.
        (
            CHAT,
            json!([high, called(Value::Null), tool(json!("at four"))]),
            json!([high, called(json!("")), tool(marked("text", "at four")), ok, next]),
        ),
        (
            MESSAGES,
            json!([high, of("assistant", json!([empty, used])), result(json!("at four"))]),
            json!([
                high,
                of("assistant", json!([used])),
                result(marked("text", "at four\n")),
                ok,
                next
            ]),
        ),
        (
            RESPONSES,
            json!([high]),
            json!([
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "High?"}]},
                ok, next,
            ]),
        ),
        (
            RESPONSES,
            json!([output(json!("at four"))]),
            json!([output(json!([{"type": "input_text", "text": "at four"}])), next]),
        ),
    ] {
        let file = holding(url, [was.clone(), is]);
        let rows = json_lines(&["requests", "--json", path(&file)]);
        let sessions: Vec<&Value> = rows.iter().filter_map(|row| row.get("session")).collect();
        assert_eq!(sessions, ["1", "1"], "{was}");
        // The messages of the earlier request stand in frames.
        assert!(rows[0]["lastFrame"].is_u64(), "{was}");
    }
    let other = holding(CHAT, [json!([high]), json!([user(json!("Low?")), ok, next])]);
    let rows = json_lines(&["requests", "--json", path(&other)]);
    assert_eq!(rows.iter().filter(|row| row["session"] == "2").count(), 1);
}

/// A conversation in which the mark makes a list of a message, and the cache breaks each turn.
fn reshaped(url: &str) -> NamedTempFile {
    let text = "The tide of the harbour. ".repeat(300);
    let user = |content: Value| json!({"role": "user", "content": content});
    let said = json!({"role": "assistant", "content": "ok"});
    let usage = |input: u64, read: u64| {
        json!({"choices": [{"message": {"role": "assistant", "content": "ok"}}], "usage": {
            "prompt_tokens": input, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": input - read - 5},
        }})
    };
    let body =
        |messages: &[Value]| json!({"model": "anthropic/claude-sonnet-4.5", "messages": messages});
    har(
        url,
        &[
            (body(&[user(marked("text", &text))]), usage(3_005, 0)),
            (
                body(&[user(json!(text)), said.clone(), user(marked("text", "More?"))]),
                usage(3_105, 1_000),
            ),
        ],
    )
}

#[test]
fn a_message_that_changes_its_form_is_why_a_cache_broke_where_nothing_else_is() {
    let file = reshaped(CHAT);
    let rows = json_lines(&["requests", "--broken", "--json", path(&file)]);
    let words = "message 0 (user) changed its form from a list of blocks to a text";
    assert_eq!((rows.len(), &rows[0]["words"]), (1, &json!(words)));
    assert_eq!((&rows[0]["cause"], &rows[0]["lost"]), (&json!("reshaped"), &json!(2_000)));
    let guard = json_lines(&["guard", "--json", path(&file)]);
    assert_eq!(guard[1]["cause"], words);
    if let Some(file) = case("28-marked-message-changes-shape/busted-each-turn.har") {
        let rows = json_lines(&["requests", "--broken", "--json", file.to_str().unwrap()]);
        let said: Vec<_> = rows.iter().map(|row| (&row["lost"], &row["reshaped"])).collect();
        let expected = [(1_200, "message:1"), (3_000, "message:3"), (4_800, "message:5")];
        let expected = expected.map(|(lost, owner)| (json!(lost), json!(owner)));
        assert_eq!(said, expected.iter().map(|(lost, owner)| (lost, owner)).collect::<Vec<_>>());
    }
}

#[test]
fn broken_caches_give_their_reasons_whole_and_the_dearest_first() {
    let file = reshaped(CHAT);
    let table = on_80_columns(&["requests", "--broken", path(&file)]);
    assert!(
        table.contains("message 0 (user) changed its form from a list of blocks to a text\n"),
        "{table}"
    );
    let body = |day: u64| json!({"model": "claude-sonnet-4-5", "system": format!("{} Day {day}.", "Be kind. ".repeat(900)), "messages": [{"role": "user", "content": "Hi"}]});
    let all = har(
        MESSAGES,
        &[
            (body(1), answer("A", (0, 5_000))),
            (body(2), answer("B", (2_000, 3_000))),
            (body(3), answer("C", (0, 5_000))),
            (body(4), answer("D", (4_000, 1_000))),
        ],
    );
    let top = on_80_columns(&["requests", "--broken", "--top", "1", path(&all)]);
    let rows: Vec<&str> =
        top.lines().filter(|line| line.contains(" s ") || line.ends_with(" s")).collect();
    assert!(rows.len() == 1 && rows[0].trim_start().starts_with('3'), "{top}");
    assert!(top.contains(" and 2 broken caches, 4,000 tokens,"), "{top}");
    let rows = json_lines(&["requests", "--broken", "--top", "2", "--json", path(&all)]);
    assert_eq!((rows.len(), &rows[0]["request"], &rows[2]["others"]), (3, &json!(3), &json!(1)));
}

#[test]
fn a_read_of_what_an_older_request_had_left_is_named() {
    let turn = |count: usize| {
        let messages: Vec<Value> = (0..count).map(|at| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": format!("turn {at}")})).collect();
        json!({"model": "claude-sonnet-4-5", "messages": messages})
    };
    let file = har(
        MESSAGES,
        &[
            (turn(1), answer("A", (0, 2_000))),
            (turn(3), answer("B", (2_000, 500))),
            (turn(5), answer("C", (2_500, 500))),
            (turn(7), answer("D", (2_000, 1_500))),
            (turn(9), answer("E", (2_100, 1_900))),
        ],
    );
    let rows = json_lines(&["requests", "--broken", "--json", path(&file)]);
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row["request"].clone(), row["cause"].clone(), row["older"].clone()))
        .collect();
    assert_eq!(
        said,
        [(json!(4), json!("older"), json!(1)), (json!(5), json!("unknown"), Value::Null),]
    );
    assert!(
        rows[0]["words"].as_str().unwrap().starts_with("it read exactly what request 1 had left")
    );
}

/// Claude Code's requests with another code of its bill in each.
fn billed(url: &str, header: impl Fn(usize) -> Value, reads: [(u64, u64); 2]) -> NamedTempFile {
    let body = |at: usize| {
        json!({
            "model": "claude-sonnet-4-5",
            "system": [
                header(at),
                {"type": "text", "text": "Be kind to the harbour. ".repeat(600), "cache_control": {"type": "ephemeral"}},
            ],
            "messages": [{"role": "user", "content": "Hi"}],
        })
    };
    har(url, &[(body(0), answer("A", reads[0])), (body(1), answer("B", reads[1]))])
}

#[test]
fn anthropics_own_cache_passes_over_the_header_that_bills_and_no_other_does() {
    let bill = |at: usize| json!({"type": "text", "text": format!("x-anthropic-billing-header: cc_version=2.1; cch=a{at}f;")});
    let silent = [(0, 0); 2];
    for (url, header, is_served) in [
        (MESSAGES, &bill as &dyn Fn(usize) -> Value, true),
        ("https://API.anthropic.com:443/v1/messages?beta=true", &bill, true),
        ("http://127.0.0.1:4000/v1/messages", &bill, false),
        ("https://api.anthropic.com.gate.example/v1/messages", &bill, false),
        // Text that stands in one block with it is read.
        (
            MESSAGES,
            &|at| json!({"type": "text", "text": format!("x-anthropic-billing-header: cch={at};\nBe brief.")}),
            false,
        ),
        (MESSAGES, &|at| json!({"type": "text", "text": format!("Request {at}.")}), false),
    ] {
        let file = billed(url, header, silent);
        let guard = json_lines(&["guard", "--json", path(&file)]);
        assert_eq!(guard[1].get("cause").is_none(), is_served, "{url}: {}", guard[1]);
        let differs = &json_lines(&["requests", "--json", path(&file)])[1]["differs"]["at"];
        assert_eq!(differs.is_null(), is_served, "{url}");
    }
}

#[test]
fn where_a_request_has_its_report_that_decides_and_the_forecast_is_contradicted() {
    // A gateway takes the header out, and its cache is served.
    let gate = "https://gate.example/v1/messages";
    let nonce = |at: usize| json!({"type": "text", "text": format!("x-anthropic-billing-header: cch={at};")});
    let file = billed(gate, nonce, [(0, 3_000), (3_000, 10)]);
    let run = run(&["guard", "--json", "--max-loss", "0.0001", path(&file)]);
    let rows: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((run.code, &rows[1]["exceeds"]), (Some(0), &json!(false)), "{}", run.err);
    assert!(rows[1]["forecast"]["lost"].as_u64().unwrap() > 0);
    assert_eq!((&rows[1]["contradicted"], &rows[1]["reported"]["lost"]), (&json!(true), &json!(0)));
    let table = on_80_columns(&["guard", path(&file)]);
    assert!(table.contains("contradicted"), "{table}");
    assert!(table.contains(" 0 tokens lost, 0.00 USD of that"), "{table}");
    // The table of requests says nothing else.
    assert!(out(&["requests", path(&file)]).contains("; the cache served it"));
    // It broke, and the report says so: it counts.
    let file = billed(gate, nonce, [(0, 3_000), (1_000, 2_000)]);
    let run = crate::support::run(&["guard", "--max-loss", "0.0001", path(&file)]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("the system prompt changed at byte"), "{}", run.err);
    if let Some(file) = case("13-billing-header/a-cch-changes-anthropic.har") {
        let run = crate::support::run(&["guard", "--max-loss", "0.001", file.to_str().unwrap()]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    }
    if let Some(file) = case("13-billing-header/d-cch-changes-local.har") {
        let rows = json_lines(&["guard", "--json", file.to_str().unwrap()]);
        assert_eq!(rows[1]["cause"], "the system prompt changed at byte 75");
    }
}

/// A request with two results in one message, the first of which its provider cleared.
fn edited(as_stream: bool) -> NamedTempFile {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": format!("{id}.log")}});
    let result = |id: &str, word: &str| json!({"type": "tool_result", "tool_use_id": id, "content": format!("{word} ").repeat(800)});
    let kept = json!({"type": "tool_use", "id": "k", "name": "plan", "input": {}});
    let messages = json!([
        {"role": "user", "content": "Read."},
        {"role": "assistant", "content": [kept, call("a"), call("b")]},
        {"role": "user", "content": [result("k", "keeper"), result("a", "pelican"), result("b", "heron")]},
    ]);
    let body = |messages: &Value| {
        json!({
            "model": "claude-sonnet-4-5", "messages": messages,
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["plan"]}]},
        })
    };
    let mut longer = messages.as_array().unwrap().clone();
    longer.extend([
        json!({"role": "assistant", "content": "Both."}),
        json!({"role": "user", "content": "Again."}),
    ]);
    let edits = |cleared: u64| json!({"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": cleared, "cleared_input_tokens": 900 * cleared}]});
    let (mut second, mut third) =
        (answer("Done.", (1_000, 3_000)), answer("Once more.", (4_000, 100)));
    (second["context_management"], third["context_management"]) = (edits(1), edits(1));
    if as_stream {
        let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": second["usage"]}});
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}, "context_management": edits(1)});
        let events = [
            start,
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}}),
            end,
            json!({"type": "message_stop"}),
        ];
        second = events
            .iter()
            .map(|event| format!("event: x\ndata: {event}\n\n"))
            .collect::<String>()
            .into();
    }
    let mut last = longer.clone();
    last.extend([
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "user", "content": "And now?"}),
    ]);
    har(
        MESSAGES,
        &[
            (body(&messages), answer("Both.", (0, 5_000))),
            (body(&longer.into()), second),
            (body(&last.into()), third),
        ],
    )
}

#[test]
fn what_a_provider_cleared_broke_the_cache_once_and_is_read_and_charged_no_more() {
    for as_stream in [false, true] {
        let file = edited(as_stream);
        let rows = json_lines(&["requests", "--broken", "--json", path(&file)]);
        // The third request is edited in the same way, and its cache holds.
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["words"], "the provider cleared 1 tool result, 900 tokens");
        assert_eq!(
            rows[0]["edits"],
            json!([{"type": "clear_tool_uses_20250919", "cleared": 1, "tokens": 900}])
        );
        let guard = json_lines(&["guard", "--json", path(&file)]);
        assert_eq!(
            (&guard[1]["cause"], &guard[1]["contradicted"]),
            (&rows[0]["words"], &json!(true))
        );
    }
    let file = edited(false);
    let file = path(&file);
    let held = |needle: &str| {
        let report = one(&["stats", "--residency", "--json", file]);
        let lines = report["residency"]["lines"].as_array().unwrap().clone();
        let line =
            lines.iter().find(|line| line["facet"] == needle).unwrap_or_else(|| panic!("{report}"));
        line["requests"].as_u64().unwrap()
    };
    assert_eq!((held("result-2.0"), held("result-2.1"), held("result-2.2")), (3, 1, 3));
    let unread = |number: &str, text: &str| {
        let hits = one(&["trace", "--request", number, "--text", text, "--json", file]);
        hits[0]["read"] == false
    };
    assert!(unread("2", "pelican") && unread("3", "pelican"));
    assert!(!unread("1", "pelican") && !unread("2", "heron") && !unread("2", "keeper"));
    // An archive says the same.
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    out(&["archive", "--output", archive, file]);
    for source in [file, archive] {
        let hit = |text: &str| one(&["trace", "--text", text, "--json", source])[0].clone();
        let (pelican, heron) = (hit("pelican"), hit("heron"));
        assert_eq!((&pelican["leftAt"], &pelican["inContext"]), (&json!(5), &json!(false)));
        assert_eq!((heron.get("leftAt"), &heron["inContext"]), (None, &json!(true)));
        assert!(
            out(&["trace", "--text", "pelican", source]).contains("left the context at frame 5")
        );
        for command in [&["render"][..], &["compress", "--budget", "100000", "--as", "text"]] {
            let context = out(&[command, &[source]].concat());
            assert!(!context.contains("pelican") && context.contains("heron"), "{context}");
            assert!(context.contains("[tool result cleared by the provider]"), "{context}");
        }
    }
    let rows = json_lines(&["requests", "--broken", "--json", archive]);
    assert_eq!(rows[0]["words"], "the provider cleared 1 tool result, 900 tokens");
    if let Some(file) = case("22-context-editing/edited.har") {
        let rows = json_lines(&["requests", "--broken", "--json", file.to_str().unwrap()]);
        assert_eq!(rows[0]["words"], "the provider cleared 1 tool result, 5950 tokens");
    }
}

#[test]
fn recorded_requests_are_compared_as_they_were_sent() {
    let request = |description: &str| {
        (
            json!({
                "model": "m", "tools": [{"name": "look", "description": description, "input_schema": {"type": "object"}}],
                "messages": [{"role": "user", "content": "High?"}],
            }),
            answer("At four.", (0, 0)),
        )
    };
    let (before, after) =
        (har(MESSAGES, &[request("Looks.")]), har(MESSAGES, &[request("Looks far.")]));
    let (before, after) = (path(&before), path(&after));
    let diff = |was: &str, is: &str| {
        let run = run(&["diff", "--json", was, is]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    let numbered = diff(&format!("{before}@1"), &format!("{after}@1"));
    assert_eq!(
        (&numbered["same"], &numbered["divergence"]["tool"]),
        (&json!(false), &json!("look"))
    );
    assert_eq!(diff(before, after), numbered);
    assert_eq!(diff(&format!("{before}@1"), after), numbered);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    out(&["archive", "--output", archive, after]);
    assert_eq!(diff(before, archive)["divergence"], numbered["divergence"]);
    // Beside a context that was rendered it is one, and the note says how to get the request.
    let context = folder.path().join("context.json");
    std::fs::write(&context, out(&["render", "--as", "messages", before])).unwrap();
    let run = run(&["diff", context.to_str().unwrap(), after]);
    assert!(run.code == Some(0) && run.err.contains("`render --request N FILE`"), "{}", run.err);
}

#[test]
fn a_form_that_alone_differs_is_named_and_is_no_sameness() {
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    let user = |content: Value| json!({"role": "user", "content": content});
    let body = |system: Value, messages: &[Value]| json!({"model": "m", "system": system, "tools": [{"name": "look"}], "messages": messages});
    let plain = body(json!("Be kind."), &[user(json!("High?")), user(block("Low?"))]);
    let with = |pointer: &str, value: Value| {
        let mut changed = plain.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    let mark = json!({"name": "look", "cache_control": {"type": "ephemeral"}});
    let diff = |was: &Value, is: &Value, url: &str| {
        let [was, is] =
            [was, is].map(|body| har(url, &[(body.clone(), answer("At four.", (0, 0)))]));
        let of = one(&["diff", "--json", path(&was), path(&is)]);
        let page = on_80_columns(&["diff", path(&was), path(&is)]);
        let forms = of["forms"].as_array().unwrap().iter();
        let forms =
            forms.map(|form| format!("{} {}", form["owner"], form["change"]).replace('"', ""));
        (of["same"].clone(), forms.collect::<Vec<_>>().join(", "), page)
    };
    for (is, forms, words) in [
        (
            with("/messages/0/content", block("High?")),
            "message:0 blocks",
            "message 0 (user) changed its form from a text to a list",
        ),
        (with("/messages/1/content", json!("Low?")), "message:1 text", "counts forms"),
        (
            with("/messages/1/content", marked("text", "Low?")),
            "message:1 marked",
            "message 1 (user) has a mark for the cache, and had none",
        ),
        (
            with("/messages/0/content", marked("text", "High?")),
            "message:0 blocks, message:0 marked",
            "say the same in other forms",
        ),
        (with("/system", block("Be kind.")), "system blocks", "the system prompt changed its form"),
        (with("/tools/0", mark), "tool:look marked", "the tool look has a mark"),
    ] {
        let (same, found, page) = diff(&plain, &is, MESSAGES);
        assert_eq!((same, found.as_str()), (json!(false), forms));
        assert!(page.contains(words), "{page}");
    }
    let both = |ttl: &str| {
        with(
            "/messages/1/content",
            json!([{"type": "text", "text": "Low?", "cache_control": {"type": "ephemeral", "ttl": ttl}}]),
        )
    };
    assert_eq!(diff(&both("5m"), &both("1h"), MESSAGES).1, "message:1 remarked");
    assert_eq!(diff(&both("5m"), &plain, MESSAGES).1, "message:1 unmarked");
    let (same, forms, page) = diff(&plain, &plain, MESSAGES);
    assert_eq!((same, forms.as_str()), (json!(true), ""));
    assert!(page.contains("The two contexts are the same"), "{page}");
    // Beyond the first difference another message may stand at the same place.
    let other = body(json!("Be kind."), &[user(block("High?")), user(json!("Ebb?"))]);
    assert_eq!(diff(&plain, &other, MESSAGES).1, "message:0 blocks");
    let [text, list] = [json!("High?"), json!([user(json!("High?"))])]
        .map(|input| json!({"model": "m", "input": input}));
    assert_eq!(diff(&text, &list, RESPONSES).1, "message:0 blocks");
}

#[test]
fn a_text_is_found_wherever_a_recorded_request_holds_it() {
    let body = |system: &str, word: &str, turns: &[Value]| {
        json!({
            "model": "m", "system": system, "metadata": {"user": "skipper"},
            "tools": [{"name": "look", "description": "Looks.", "input_schema": {"properties": {"far": {"description": word}}}}],
            "messages": turns,
        })
    };
    let user = |text: &str| json!({"role": "user", "content": text});
    let said = json!({"role": "assistant", "content": "At four."});
    let file = har(
        MESSAGES,
        &[
            (
                body("Be kind to gulls.", "over the mole", &[user("High?")]),
                answer("At four.", (0, 0)),
            ),
            (
                body("Be kind.", "over the mole", &[user("High?"), said, user("Low?")]),
                answer("At ten.", (0, 0)),
            ),
        ],
    );
    let file = path(&file);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    out(&["archive", "--output", archive, file]);
    for (text, facet, request) in [
        ("over the mole", "tool:look", 1),
        ("gulls", "system", 1),
        ("skipper", "parameter:metadata", 1),
    ] {
        for source in [file, archive] {
            let hits = one(&["trace", "--text", text, "--json", source]);
            let hits = hits.as_array().unwrap();
            assert_eq!(hits.len(), 1, "{text}: {hits:?}");
            assert_eq!((&hits[0]["facet"], &hits[0]["request"]), (&json!(facet), &json!(request)));
        }
    }
    // What stands in a frame is found there, once.
    let hits = one(&["trace", "--text", "High?", "--json", file]);
    assert_eq!((hits.as_array().unwrap().len(), hits[0].get("request")), (1, None));
    on_80_columns(&["trace", "--text", "over the mole", file]);
    let table = on_80_columns(&["trace", "--request", "1", "--text", "over the mole", file]);
    assert!(table.contains("over the mole") && table.contains("tool:look  /tools/0"), "{table}");
}

/// The value with each string `§` replaced by a text of its own, of which there were `count` before.
fn numbered(value: &Value, count: &mut usize) -> Value {
    let text = value.to_string();
    let mut pieces = text.split('§');
    let first = pieces.next().unwrap().to_owned();
    let named = pieces.map(|piece| {
        *count += 1;
        format!("needle-{count:05}{piece}")
    });
    let text = first + &named.collect::<String>();
    serde_json::from_str(&text).unwrap()
}

fn events(events: &[Value]) -> Value {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into()
}

#[test]
fn every_string_of_a_recorded_exchange_is_found() {
    let cite = json!([{"type": "url_citation", "url": "§", "title": "§"}]);
    let call = json!([{"id": "§", "type": "function", "function": {"name": "f", "arguments": "{\"at\":\"§\"}"}}]);
    let choice = |index| json!({"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": "§", "refusal": "§", "reasoning_content": "§", "annotations": cite, "audio": {"id": "a", "transcript": "§"}, "tool_calls": call}});
    let delta = |index, delta| json!({"system_fingerprint": "§", "choices": [{"index": index, "delta": delta}]});
    let (needle, rest) = ("needle-12345".split_at(6), json!({"choices": [], "citations": ["§"]}));
    let asks = json!({"role": "user", "name": "§", "content": [{"type": "text", "text": "§"}, {"type": "file", "file": {"filename": "§"}}]});
    let items = json!([
        {"type": "additional_tools", "tools": [{"type": "function", "name": "g", "description": "§"}]},
        {"type": "mcp_list_tools", "server_label": "m", "tools": [{"name": "h", "description": "§"}]},
        {"type": "message", "id": "§", "role": "assistant", "content": [{"type": "output_text", "text": "§", "annotations": cite}, {"type": "output_audio", "transcript": "§"}]},
        {"type": "function_call", "call_id": "§", "name": "f", "arguments": "{\"at\":\"§\"}"},
    ]);
    let exchanges = [
        (
            CHAT,
            json!({"model": "m", "user": "§", "n": 3, "messages": [asks, choice(0)["message"]]}),
            json!({"id": "§", "choices": [choice(0), choice(1), choice(2)]}),
        ),
        (
            CHAT,
            json!({"model": "m", "n": 2, "messages": [{"role": "user", "content": "a"}]}),
            events(&[
                delta(0, json!({"content": "yes", "annotations": cite})),
                delta(1, json!({"content": needle.0})),
                delta(1, json!({"content": needle.1})),
                rest,
            ]),
        ),
        (
            RESPONSES,
            json!({"model": "m", "instructions": "§", "input": items}),
            json!({"id": "§", "output": items, "metadata": {"k": "§"}}),
        ),
        (
            RESPONSES,
            json!({"model": "m", "input": "§"}),
            events(&[
                json!({"type": "response.output_text.delta", "delta": "yes", "obfuscation": "§"}),
                json!({"type": "response.completed", "response": {"id": "r", "output": items}}),
            ]),
        ),
        (
            MESSAGES,
            json!({"model": "m", "messages": [
                {"role": "user", "content": [{"type": "document", "title": "§", "source": {"type": "text", "data": "§"}}, {"type": "text", "text": "a"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "§", "citations": [{"type": "char_location", "cited_text": "§"}]}]},
                {"role": "user", "content": [{"type": "search_result", "title": "§", "source": "§", "content": [{"type": "text", "text": "§"}]}]},
            ]}),
            json!({"type": "message", "id": "§", "role": "assistant", "content": [{"type": "thinking", "thinking": "§", "signature": "§"}, {"type": "text", "text": "§", "citations": [{"cited_text": "§", "url": "§"}]}]}),
        ),
        (
            MESSAGES,
            json!({"model": "m", "messages": [{"role": "user", "content": "b"}]}),
            json!({"type": "error", "error": {"message": "§"}}),
        ),
        (
            MESSAGES,
            json!({"model": "m", "messages": [{"role": "user", "content": "c"}]}),
            json!("<p>§</p>"),
        ),
    ];
    for (url, request, response) in exchanges {
        let mut count = 0;
        let pair = [request, response].map(|value| numbered(&value, &mut count));
        let mut expected: Vec<String> =
            (1..=count).map(|number| format!("needle-{number:05}")).collect();
        expected
            .extend(pair[1].to_string().contains("12345").then(|| needle.0.to_owned() + needle.1));
        let [request, response] = pair;
        let file = har(url, &[(request, response)]);
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive");
        run(&["archive", "--output", archive.to_str().unwrap(), path(&file)]);
        let pattern = ["trace", "--regex", "--text", r"needle-\d{5}"];
        for more in
            [&[path(&file)][..], &[archive.to_str().unwrap()], &["--request", "1", path(&file)]]
        {
            let table = on_80_columns(&[&pattern[..], more].concat());
            let lost: Vec<&String> =
                expected.iter().filter(|text| !table.contains(*text)).collect();
            assert_eq!(lost, [""; 0], "{more:?} of {url}\n{table}");
        }
    }
    // What a frame shows is found there alone; of an answer as of a message.
    let file = har(
        CHAT,
        &[(
            json!({"model": "m", "messages": [{"role": "user", "content": "a"}]}),
            json!({"choices": [choice(0)]}),
        )],
    );
    assert_eq!(run(&["trace", "--text", "assistant", path(&file)]).code, Some(1));
    let hits = one(&["trace", "--json", "--text", "§", path(&file)]);
    assert!(hits.as_array().unwrap().iter().all(|hit| hit.get("request").is_none()), "{hits}");
}

#[test]
fn a_replay_with_prices_fits_80_columns() {
    let file = "crates/cli/tests/data/traffic.json";
    for policies in [&["blocks"][..], &["blocks", "masking"]] {
        let mut args =
            vec!["replay", "--budget", "2000", "--model", "claude-sonnet-4-5", "--survival", file];
        policies.iter().for_each(|policy| args.extend(["--policy", policy]));
        on_80_columns(&args);
    }
}

/// A call of a HAR file: a method, a path, what was sent where something was, and the answer.
fn call(at: usize, (method, path, sent, answer): &(&str, &str, Value, Value)) -> Value {
    let mut request = json!({"method": method, "url": format!("https://api.openai.com/v1{path}")});
    if !sent.is_null() {
        request["postData"] = json!({"text": sent.to_string()});
    }
    json!({
        "startedDateTime": format!("2026-05-01T10:00:{at:02}.000Z"), "time": 5, "request": request,
        "response": {"status": 200, "content": {"text": answer.to_string()}},
    })
}

fn calls(all: &[(&str, &str, Value, Value)]) -> NamedTempFile {
    let entries: Vec<Value> = all.iter().enumerate().map(|(at, of)| call(at, of)).collect();
    let file = NamedTempFile::with_suffix(".har").unwrap();
    std::fs::write(file.path(), json!({"log": {"entries": entries}}).to_string()).unwrap();
    file
}

fn item(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

fn said(id: &str, text: &str) -> Value {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    json!({"id": id, "object": "response", "status": "completed",
        "output": [item("assistant", text)], "usage": usage})
}

fn list(items: &[Value], has_more: bool) -> Value {
    json!({"object": "list", "data": items, "has_more": has_more})
}

/// The texts of the messages of a request, and what says where they come from.
fn joined(file: &NamedTempFile, number: usize) -> (Vec<String>, Value) {
    let whole = run(&["render", "--request", &number.to_string(), path(file)]);
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    let body: Value = serde_json::from_str(&whole.out).unwrap();
    let items = body["input"].as_array().unwrap().iter();
    let texts = items.map(|item| item["content"].as_str().unwrap().to_owned()).collect();
    let rows = run(&["requests", "--json", path(file)]).out;
    let row: Value = serde_json::from_str(rows.lines().nth(number - 1).unwrap()).unwrap();
    (texts, row["resolved"].clone())
}

#[test]
fn what_a_conversation_kept_besides_answers_stands_before_a_request() {
    let asked = |text: &str| json!({"model": "m", "conversation": "conv_1", "input": text});
    let made = json!({"id": "conv_1", "object": "conversation"});
    let items = || vec![item("user", "one"), item("user", "two")];
    let mut all = vec![
        ("POST", "/conversations", json!({"items": items()}), made),
        ("POST", "/responses", asked("three"), said("r1", "A")),
        (
            "POST",
            "/conversations/conv_1/items",
            json!({"items": [item("user", "four")]}),
            list(&[item("user", "four")], false),
        ),
        ("POST", "/responses", asked("five"), said("r2", "B")),
        ("POST", "/responses", asked("six"), said("r3", "C")),
    ];
    let whole = |file: &NamedTempFile| {
        let before = [vec!["one", "two", "three"], vec!["A", "four", "five"], vec!["B", "six"]];
        for (number, messages) in [(1, 2), (2, 5), (3, 7)] {
            let expected = before[..number].concat();
            let (texts, resolved) = joined(file, number);
            assert_eq!(texts, expected);
            assert_eq!(resolved, json!({"messages": messages, "missing": null}));
        }
    };
    let file = calls(&all);
    whole(&file);
    let noted = run(&["requests", path(&file)]);
    assert!(!noted.err.contains("provider"), "{}", noted.err);
    let frames = out(&["render", path(&file)]);
    for text in ["one", "two", "three", "four", "A", "B", "C", "six"] {
        assert!(frames.contains(text), "{text}: {frames}");
    }
    // An archive knows it too.
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    out(&["archive", "-o", archive.to_str().unwrap(), path(&file)]);
    let request = |of: &str| run(&["render", "--request", "2", of]).out;
    assert_eq!(request(archive.to_str().unwrap()), request(path(&file)));

    // Where nobody made it, what it held before is not known, unless somebody asks for all of it.
    all.remove(0);
    let file = calls(&all);
    let (texts, resolved) = joined(&file, 1);
    assert_eq!(texts, ["three"]);
    assert_eq!(resolved, json!({"messages": 0, "missing": "conv_1"}));
    let (texts, resolved) = joined(&file, 2);
    assert_eq!(texts, ["three", "A", "four", "five"]);
    assert_eq!(resolved, json!({"messages": 3, "missing": "conv_1"}));
    let noted = run(&["requests", path(&file)]);
    let missing =
        "what leads to conv_1 lies at the provider: the figures of 3 requests are without it";
    assert!(noted.err.contains(missing), "{}", noted.err);

    let newest_first =
        ["/conversations/conv_1/items?limit=1", "/conversations/conv_1/items?limit=1&after=x"];
    let mut pages: Vec<_> = newest_first
        .iter()
        .zip(items().into_iter().rev())
        .map(|(path, item)| ("GET", *path, Value::Null, list(&[item], path.ends_with("=1"))))
        .collect();
    pages.append(&mut all);
    whole(&calls(&pages));
}

#[test]
fn responses_that_were_fetched_stand_before_a_request_that_names_them() {
    let asked = |previous: &str, text: &str| json!({"model": "m", "previous_response_id": previous, "input": text});
    let mut old = said("r1", "A");
    old["previous_response_id"] = Value::Null;
    let mut later = said("r2", "B");
    later["previous_response_id"] = "r1".into();
    let first = ("GET", "/responses/r1", Value::Null, old);
    let input = (
        "GET",
        "/responses/r1/input_items?order=asc",
        Value::Null,
        list(&[item("user", "one")], false),
    );
    let second = ("GET", "/responses/r2", Value::Null, later);
    let last = ("POST", "/responses", asked("r2", "three"), said("r3", "C"));
    let file = calls(&[first.clone(), second.clone(), last.clone()]);
    let (texts, resolved) = joined(&file, 1);
    assert_eq!(texts, ["A", "B", "three"]);
    assert_eq!(resolved["messages"], 2);
    assert!(resolved["missing"].is_string(), "{resolved}");
    let (texts, resolved) = joined(&calls(&[first, input, second, last]), 1);
    assert_eq!(texts, ["one", "A", "B", "three"]);
    assert_eq!(resolved, json!({"messages": 3, "missing": null}));
    // A response that was asked for in the background has its output later.
    let pending = json!({"id": "r1", "object": "response", "status": "queued", "output": []});
    let file = calls(&[
        ("POST", "/responses", json!({"model": "m", "input": "one", "background": true}), pending),
        ("GET", "/responses/r1", Value::Null, said("r1", "A")),
        ("POST", "/responses", asked("r1", "two"), said("r2", "B")),
        ("POST", "/responses/r2/cancel", Value::Null, said("r2", "B")),
    ]);
    let (texts, resolved) = joined(&file, 2);
    assert_eq!(texts, ["one", "A", "two"]);
    assert_eq!(resolved, json!({"messages": 2, "missing": null}));
    assert_eq!(json_lines(&["requests", "--json", path(&file)]).len(), 3);
}
