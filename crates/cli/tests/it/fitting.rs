//! Sessions within a budget, what gave way, and how contexts differ: what the commands say of one
//! another must hold.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;
use afterimage_testkit::validators;

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use support::{json_lines, out, run, run_with};

const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const BUDGET: [&str; 4] = ["--budget", "900", "--keep-recent", "4"];

fn compressed(args: &[&str]) -> Value {
    json_lines(&[&["compress", HARBOUR, "--json"], args].concat()).pop().unwrap()
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The strings and numbers of a request that are no words of its form, but for marks of the cache.
fn said(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(list) => list.iter().flat_map(said).collect(),
        Value::Object(members) => {
            let is_form = |key: &str| matches!(key, "role" | "type" | "cache_control");
            let members = members.iter().filter(|(key, _)| !is_form(key));
            members.flat_map(|(_, value)| said(value)).collect()
        }
        _ => Vec::new(),
    }
}

/// The original text of the frames, from what `render` says they rendered to.
fn original(file: &str, session: &str, from: &Value, to: &Value, options: &[&str]) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    let args = ["render", "--as", "snapshots", "--from", &from, "--to", &to, file];
    let lines = json_lines(&[&args, options].concat());
    let lines = lines.iter().filter(|line| line["session"] == session);
    lines.map(|line| line["snapshot"]["totalContent"].as_str().unwrap()).collect()
}

#[test]
fn the_budget_is_kept_and_what_gave_way_comes_back_byte_for_byte() {
    for budget in ["900", "500", "300", "200"] {
        for format in ["xml", "plain", "native"] {
            let options = ["--budget", budget, "--format", format];
            let report = compressed(&options);
            assert!(report["tokensAfter"].as_u64() <= budget.parse().ok(), "{report}");
            assert!(report["tokensBefore"].as_u64() > report["tokensAfter"].as_u64());
            assert_eq!(report["budget"].to_string(), budget);
            let blocks = report["blocks"].as_array().unwrap();
            let others = [&report["dropped"], &report["shortened"]];
            let others = others.map(|list| list.as_array().unwrap().iter()).into_iter().flatten();
            for gone in blocks.iter().chain(others) {
                let id = gone["id"].as_str().unwrap();
                let args = [&["expand", HARBOUR, "--block", id][..], &options].concat();
                let text = out(&args);
                let (from, to) = match gone.get("frame") {
                    Some(frame) => (frame, frame),
                    None => (&gone["from"], &gone["to"]),
                };
                let format = ["--format", format];
                assert_eq!(text, original(HARBOUR, "night-watch", from, to, &format), "{id}");
                if let Some(expected) = gone.get("sha256") {
                    assert_eq!(&hash(&text), expected, "{id}");
                }
            }
        }
    }
}

#[test]
fn every_export_is_accepted_by_its_provider() {
    let validate = [
        ("openai", validators::chat as fn(&Value) -> validators::Verdict),
        ("responses", validators::responses),
        ("anthropic", validators::anthropic),
    ];
    for (form, accepts) in validate {
        for budget in ["5000", "900", "400"] {
            let options = ["--budget", budget, "--as", form];
            let printed: Value =
                serde_json::from_str(&out(&[&["compress", HARBOUR][..], &options].concat()))
                    .unwrap();
            assert_eq!(accepts(&printed), Ok(()), "{form} {budget}");
            let report = compressed(&options);
            assert_eq!(report["context"], printed);
            assert!(!report["owners"].as_array().unwrap().is_empty());
            // Names, ids and keys of a request are counted, not only what its frames say.
            let after = report["tokensAfter"].as_u64().unwrap();
            assert!(after <= budget.parse().unwrap(), "{form} {budget}: {after}");
            let counter = afterimage::tokens::by_name("o200k").unwrap();
            let said = said(&printed).iter().map(|text| counter.count(text) as u64).sum::<u64>();
            let messages = printed.get("messages").unwrap_or(&printed).as_array().unwrap().len();
            assert!(after >= said, "{form} {budget}: {after} for {said}");
            // A system prompt and each message or item are framed, and so is the answer.
            assert!(after <= said + 4 * messages as u64 + 3, "{form} {budget}: {after} for {said}");
        }
    }
}

#[test]
fn marks_for_the_cache_stand_after_the_last_block() {
    let printed = out(&[&["compress", HARBOUR, "--as", "anthropic"][..], &BUDGET].concat());
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let blocks = printed["messages"][0]["content"].as_array().unwrap();
    let options = [&["compress", HARBOUR, "--as", "blocks", "--format", "native"][..], &BUDGET];
    let context = json_lines(&options.concat()).pop().unwrap();
    // The user's first message stands before the block.
    let is_last = |of: &&Value| of["text"] == context["blocks"][0]["summary"];
    let last = blocks.iter().find(is_last).unwrap();
    assert_eq!(last["cache_control"]["type"], "ephemeral");
    // The system prompt, what stands before the block, the block and the newest message.
    assert_eq!(printed.to_string().matches("cache_control").count(), 3);
}

/// Where two contexts differ first, and by how much, worked out from their JSON alone.
#[test]
fn a_comparison_names_the_first_byte_that_differs() {
    let before = out(&["render", "--as", "messages", HARBOUR]);
    let previous: Value = serde_json::from_str(&before).unwrap();
    for (what, with) in [
        ("Mirela", "Miranda"),
        ("no pilot needed", "ask the pilot"),
        ("Bernard. He", "Bernárd. He"),
        ("Go back to sleep", "Go back to bed"),
    ] {
        let session = std::fs::read_to_string(support::root().join(HARBOUR)).unwrap();
        let after = run_with(&["render", "--as", "messages", "-"], session.replacen(what, with, 1));
        let next: Value = serde_json::from_str(&after.out).unwrap();
        let content = |context: &Value, at: usize| {
            context["messages"][at]["content"].as_str().unwrap().to_owned()
        };
        let count = previous["messages"].as_array().unwrap().len();
        let message = (0..count).find(|at| content(&previous, *at) != content(&next, *at)).unwrap();
        let (was, is) = (content(&previous, message), content(&next, message));
        let pairs = was.char_indices().zip(is.chars());
        let byte = pairs.clone().find(|((_, a), b)| a != b).unwrap().0.0;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("before.json");
        std::fs::write(&path, &before).unwrap();
        let run = run_with(&["diff", "--json", path.to_str().unwrap(), "-"], after.out);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let said: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(said["same"], false);
        assert_eq!(said["divergence"]["message"], message);
        assert_eq!(said["divergence"]["byte"], byte);
        // Both owners are those of the spans that hold the byte.
        let owner = |context: &Value| {
            let spans = context["messages"][message]["spans"].as_array().unwrap();
            let holds = |span: &&Value| {
                let place = |key: &str| usize::try_from(span[key].as_u64().unwrap()).unwrap();
                (place("start")..place("end")).contains(&byte)
            };
            spans.iter().find(holds).unwrap()["owner"].clone()
        };
        assert_eq!(said["divergence"]["previousOwner"], owner(&previous));
        assert_eq!(said["divergence"]["owner"], owner(&next));
        let tokens = |key: &str| said["tokens"][key].as_u64().unwrap();
        assert_eq!(tokens("billedAgain"), tokens("next") - tokens("cached"));
        // What the request to come costs is in no message.
        assert_eq!(tokens("previous") + 3, previous["tokens"]["total"].as_u64().unwrap());
        let changes = said["changes"].as_array().unwrap();
        assert_eq!((changes.len(), &changes[0]["message"]), (1, &Value::from(message)));
    }
}

#[test]
fn whatever_compress_prints_can_be_compared() {
    for form in ["text", "openai", "responses", "anthropic", "blocks"] {
        let options = [&["compress", HARBOUR, "--as", form][..], &BUDGET].concat();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("printed");
        std::fs::write(&path, out(&options)).unwrap();
        let path = path.to_str().unwrap();
        // With owners beside it the context is the same.
        let report = run(&[&options[..], &["--json"]].concat()).out;
        for other in [std::fs::read_to_string(path).unwrap(), report] {
            let run = run_with(&["diff", "--json", path, "-"], other);
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{form}");
            let said: Value = serde_json::from_str(&run.out).unwrap();
            assert_eq!((&said["same"], &said["divergence"]), (&Value::Bool(true), &Value::Null));
            assert_eq!(said["tokens"]["billedAgain"], 0);
        }
    }
}

#[test]
fn what_is_only_added_is_not_billed_again() {
    let earlier = out(&["render", "--as", "messages", "--format", "native", "--to", "9", HARBOUR]);
    let earlier: Value = serde_json::from_str(&earlier).unwrap();
    // The tail is no part of what stays.
    let mut messages = earlier["messages"].as_array().unwrap().clone();
    messages.pop();
    let earlier = serde_json::json!({"messages": messages, "frameToMessage": {}});
    let args = ["diff", "--json", "--format", "native", "-", HARBOUR];
    let run = run_with(&args, earlier.to_string());
    let said: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(said["divergence"], Value::Null);
    assert_eq!(said["tokens"]["unchanged"], said["tokens"]["previous"]);
    assert_eq!((&said["tokens"]["billedAgain"], &said["same"]), (&0.into(), &false.into()));
    assert!(said["changes"].as_array().unwrap().iter().all(|change| change["change"] == "added"));
}

#[test]
fn sessions_are_fitted_one_by_one() {
    let names = |reports: &[Value]| -> Vec<String> {
        reports.iter().map(|report| report["session"].as_str().unwrap().to_owned()).collect()
    };
    let reports = json_lines(&["compress", SESSIONS, "--budget", "100", "--json"]);
    assert_eq!(names(&reports), ["ash", "birch"]);
    // The call in the first is open, so it and what follows it stay; the second fits.
    let run = run(&["compress", SESSIONS, CHAT, "--budget", "40", "--json"]);
    assert_eq!(run.code, Some(3));
    let reports: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(names(&reports), ["ash", "birch", "1"]);
    assert_eq!((&reports[0]["file"], &reports[2]["file"]), (&SESSIONS.into(), &CHAT.into()));
    assert_eq!(run.err.matches("what must stay of the context takes").count(), 1, "{}", run.err);
    let parts = reports[0]["breakdown"].as_object().unwrap();
    let named = ["system", "pinned", "blocks", "recent", "others", "tail", "framing"];
    let sum: u64 = named.iter().map(|part| parts[*part].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), parts["total"].as_u64());
    assert!(sum > 40);
    assert!(reports[1]["tokensAfter"].as_u64().unwrap() <= 40);
    // A block is as small as the room asks for, and is expanded all the same.
    assert!(reports[2]["tokensAfter"].as_u64().unwrap() <= 40);
    let small = json_lines(&["compress", CHAT, "--budget", "70", "--json"]).pop().unwrap();
    let id = small["blocks"][0]["id"].as_str().unwrap();
    assert!(!out(&["expand", CHAT, "--budget", "70", "--block", id]).is_empty());
    let compared = support::run(&["diff", SESSIONS, SESSIONS, "--session", "birch"]);
    assert_eq!(compared.code, Some(0));
}

/// Over recordings: the budget is kept, and every block comes back.
#[test]
fn a_request_that_the_provider_refuses_is_told_of() {
    let session = r#"{"messages":[{"role":"system","content":"Only this."}]}"#;
    let as_of = |provider| {
        run_with(&["compress", "--budget", "900", "--as", provider, "-"], session.to_owned())
    };
    let refused = as_of("anthropic");
    assert_eq!(refused.said(), "note: 1: no messages, which the provider refuses\n");
    assert_eq!((refused.code, as_of("openai").said().as_str()), (Some(0), ""));
}

#[test]
fn recordings_keep_the_budget_and_come_back() {
    let files: Vec<PathBuf> =
        support::recordings().into_iter().filter(|path| is_small(path)).step_by(9).collect();
    for path in files {
        let file = path.to_str().unwrap();
        let options = ["--budget", "4000", "--tokenizer", "chars4"];
        let run = run(&[&["compress", file, "--json"][..], &options].concat());
        assert!(matches!(run.code, Some(0 | 3)), "{file}: {}", run.err);
        for line in run.out.lines() {
            let report: Value = serde_json::from_str(line).unwrap();
            let Some(after) = report["tokensAfter"].as_u64() else {
                assert!(report["breakdown"]["total"].as_u64() > Some(4_000), "{file}: {line}");
                continue;
            };
            assert!(after <= 4_000, "{file}: {after}");
            for block in report["blocks"].as_array().unwrap() {
                let id = block["id"].as_str().unwrap();
                let args = [&["expand", file, "--block", id][..], &options].concat();
                let text = support::run(&args).out;
                assert_eq!(block["sha256"], hash(&text), "{file}: {id}");
                let session = report["session"].as_str().unwrap();
                let (from, to) = (&block["from"], &block["to"]);
                let tokenizer = ["--tokenizer", "chars4"];
                assert_eq!(text, original(file, session, from, to, &tokenizer), "{file}: {id}");
            }
        }
    }
}

fn is_small(path: &std::path::Path) -> bool {
    std::fs::metadata(path).unwrap().len() < 300_000
}

/// Calls with ids in one message, then results that carry none: each answers one, whoever is asked.
#[test]
fn results_without_ids_answer_calls_whoever_is_asked() {
    let calls: Vec<Value> = (0..30)
        .map(|number| {
            let arguments = json!({"path": format!("src/file_{number}.rs")}).to_string();
            let function = json!({"name": "read", "arguments": arguments});
            json!({"id": format!("call_{number}"), "type": "function", "function": function})
        })
        .collect();
    let mut messages = vec![
        json!({"role": "user", "content": "Read all of it."}),
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
    ];
    messages.extend((0..30).map(|number| {
        let content = format!("file {number} holds some lines of code. ").repeat(6);
        json!({"role": "tool", "content": content})
    }));
    messages.push(json!({"role": "assistant", "content": "I have read it."}));
    messages.push(json!({"role": "user", "content": "Then write the summary."}));
    let session = Value::from(messages).to_string();
    for (provider, kind) in [
        ("openai", "tool_call_id"),
        ("responses", "function_call_output"),
        ("anthropic", "tool_result"),
    ] {
        let args = ["compress", "--json", "--budget", "100k", "--as", provider, "-"];
        let whole = run_with(&args, session.clone());
        assert_eq!((whole.code, whole.said().as_str()), (Some(0), ""));
        let report: Value = serde_json::from_str(&whole.out).unwrap();
        assert_eq!(report["repaired"], json!([]), "{provider}");
        assert_eq!(report["context"].to_string().matches(kind).count(), 30, "{provider}");
        // In the room where every result had to stay.
        let args = ["compress", "--json", "--budget", "1200", "--as", provider, "-"];
        let fitted = run_with(&args, session.clone());
        assert_eq!(fitted.code, Some(0), "{provider}: {}", fitted.err);
        let report: Value = serde_json::from_str(&fitted.out).unwrap();
        assert_eq!(report["repaired"], json!([]), "{provider}");
    }
    let replayed = run_with(&["replay", "--json", "--budget", "1200", "-"], session);
    let replayed: Value = serde_json::from_str(&replayed.out).unwrap();
    assert_eq!((&replayed["all"]["orphans"], &replayed["all"]["unfit"]), (&json!(0), &json!(0)));
}

/// Both are worked out from transcripts, and it is said once.
#[test]
fn a_comparison_of_transcripts_says_that_they_were_worked_out() {
    let run = support::run(&["diff", HARBOUR, HARBOUR]);
    assert_eq!((run.code, run.said().as_str()), (Some(0), ""));
    assert!(run.err.starts_with("note: the context is reconstructed"), "{}", run.err);
    // A context that was printed before is text as it stands.
    let printed = out(&["render", "--as", "messages", HARBOUR]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("printed.json");
    std::fs::write(&path, &printed).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(support::run(&["diff", path, path]).err, "");
}

#[test]
fn a_request_of_another_session_is_not_compared() {
    let chat =
        r#"{"messages":[{"role":"user","content":"Look."},{"role":"assistant","content":"So."}]}"#;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chat.json");
    std::fs::write(&path, chat).unwrap();
    let first = format!("{}@1", path.display());
    assert_eq!(support::run(&["diff", &first, &first]).code, Some(0));
    let run = support::run(&["diff", "--session", "another", &first, &first]);
    assert_ne!(run.code, Some(0));
    assert!(run.err.contains("request 1 is of the session"), "{}", run.err);
}

#[test]
fn tools_of_a_recorded_request_take_room_of_the_budget() {
    let harbour = std::fs::read_to_string(support::root().join(HARBOUR)).unwrap();
    let said = |line: &str| format!(r#"{{"role":"user","content":{}}}"#, json!(line));
    let messages: Vec<String> = harbour.lines().map(said).collect();
    let words = "the berth of a ship and the time of its tide ".repeat(20);
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "description": words } });
    let request = |tools: &[Value]| {
        let (tools, messages) = (json!(tools), messages.join(","));
        format!(r#"{{"model":"gpt-4o","tools":{tools},"messages":[{messages}]}}"#)
    };
    let compress = |input: String, budget: &str, more: &[&str]| {
        run_with(&[&["compress", "-", "--budget", budget], more].concat(), input)
    };
    let report = |input: String, budget: &str| -> Value {
        serde_json::from_str(&compress(input, budget, &["--json", "--as", "openai"]).out).unwrap()
    };
    let without = report(request(&[]), "2000");
    assert_eq!(without["tools"], Value::Null);
    let with = report(request(&[tool("berth"), tool("tide")]), "2000");
    let tools = with["tools"].as_u64().unwrap();
    assert!((400..600).contains(&tools), "{tools}");
    assert_eq!(with["budget"], 2000);
    assert!(with["tokensAfter"].as_u64().unwrap() + tools <= 2000, "{with}");
    assert!(with["tokensAfter"].as_u64() < without["tokensAfter"].as_u64());
    // The same where its session is asked for by name.
    let chosen = ["--json", "--as", "openai", "--session", with["session"].as_str().unwrap()];
    let chosen = compress(request(&[tool("berth"), tool("tide")]), "2000", &chosen);
    assert_eq!(serde_json::from_str::<Value>(&chosen.out).unwrap(), with);

    let unfit = compress(request(&[tool("berth"), tool("tide")]), "400", &["--json"]);
    assert_eq!(unfit.code, Some(3));
    let report: Value = serde_json::from_str(&unfit.out).unwrap();
    assert_eq!((&report["budget"], &report["breakdown"]["tools"]), (&json!(400), &json!(tools)));
    assert!(unfit.said().contains(&format!("tools   {tools}")), "{}", unfit.said());

    let asked = compress(request(&[]), "2000", &["--tools", "1.2k", "--json"]);
    let asked: Value = serde_json::from_str(&asked.out).unwrap();
    assert_eq!(asked["tools"], 1200);
    assert!(asked["tokensAfter"].as_u64().unwrap() <= 800, "{asked}");

    // A session of its own is replayed: someone answers.
    let answered = request(&[tool("berth"), tool("tide")]).replace(
        r#""messages":["#,
        r#""messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},"#,
    );
    let replayed = run_with(&["replay", "-", "--budget", "2000", "--json"], answered.clone());
    let replayed: Value = serde_json::from_str(&replayed.out).unwrap();
    let session = &replayed["sessions"][0];
    assert_eq!((&session["budget"], &session["tools"]), (&json!(2000), &json!(tools)));
    let page = run_with(&["replay", "-", "--budget", "2000"], answered).out;
    assert!(page.contains(&format!("{tools} tokens of the budget are for tools")), "{page}");
}
