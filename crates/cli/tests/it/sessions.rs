//! `afterimage sessions`, its index, and folders in place of files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use afterimage_testkit::data;
use serde_json::Value;
use support::{Run, run};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const TRAFFIC: &str = "crates/cli/tests/data/traffic.json";

/// A user's folder with sessions of several agents, and nothing of the machine that runs the test.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home with a session of each agent.
    fn full() -> Self {
        let home = Self::new();
        home.write(
            ".claude/projects/-w-harbour/birch.jsonl",
            &claude("birch", 3, "Where is the berth?"),
        );
        home.write(".codex/sessions/2026/11/02/rollout-1.jsonl", &codex(2));
        home.write(".pi/agent/sessions/--w-mill--/1.jsonl", &pi(1));
        home.write(".gemini/tmp/tide/chats/session-1.json", &gemini(4));
        home.write(".gemini/tmp/tide/.project_root", "/w/tide\n");
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut command = support::afterimage(args);
        for variable in [
            "CLAUDE_CONFIG_DIR",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "CODEX_HOME",
            "PI_CODING_AGENT_DIR",
            "GEMINI_CLI_HOME",
            "KIMI_SHARE_DIR",
            "KIMI_CODE_HOME",
            "XDG_DATA_HOME",
            "CONTINUE_GLOBAL_DIR",
        ] {
            command.env_remove(variable);
        }
        command.env("HOME", self.path()).env("AFTERIMAGE_CACHE", self.path().join("cache"));
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(!err.contains("panicked"), "{args:?}: {err}");
        Run { code: output.status.code(), out, err }
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Vec<Value> {
        let run = self.run(&[&["sessions", "--json"], args].concat());
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args:?}");
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The first words of the sessions that are listed.
    #[track_caller]
    fn words(&self, args: &[&str]) -> Vec<String> {
        let words = |session: &Value| session["first"]["text"].as_str().unwrap_or("–").to_owned();
        self.json(args).iter().map(words).collect()
    }

    fn index(&self) -> PathBuf {
        self.path().join("cache/sessions-1.jsonl")
    }
}

/// A session of Claude Code on the given day, with two requests of which the usage is known.
fn claude(session: &str, day: u32, words: &str) -> String {
    let at = |minute: u32| format!("2026-11-{day:02}T08:{minute:02}:00.000Z");
    let line = |minute: u32, uuid: &str, rest: &str| {
        format!(
            r#"{{"sessionId":"{session}","uuid":"{session}-{uuid}","parentUuid":null,"cwd":"/w/harbour","timestamp":"{}",{rest}}}"#,
            at(minute)
        )
    };
    let usage = r#""usage":{"input_tokens":10,"cache_read_input_tokens":90,"cache_creation_input_tokens":0,"output_tokens":5}"#;
    let said = |id: &str, content: &str| {
        format!(
            r#""type":"assistant","message":{{"id":"{id}","role":"assistant","model":"claude-x","content":[{content}],{usage}}}"#
        )
    };
    let lines = [
        line(
            0,
            "a",
            r#""type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>"}"#,
        ),
        line(1, "b", &format!(r#""type":"user","message":{{"role":"user","content":"{words}"}}"#)),
        line(2, "c", &said("m1", r#"{"type":"tool_use","id":"t1","name":"look","input":{}}"#)),
        line(
            3,
            "d",
            r#""type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"berth 4"}]}"#,
        ),
        line(4, "e", &said("m2", r#"{"type":"text","text":"Berth 4."}"#)),
    ];
    lines.join("\n") + "\n"
}

/// A file of a subagent of a session of Claude Code.
fn subagent(session: &str) -> String {
    claude(session, 3, "Look at the berth.")
        .replace("{\"sessionId\"", "{\"isSidechain\":true,\"agentId\":\"a1\",\"sessionId\"")
        .replace(r#""id":"m"#, r#""id":"s"#)
}

fn codex(day: u32) -> String {
    let at = format!("2026-11-{day:02}T09:00:00.000Z");
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"{at}","type":"{kind}","payload":{payload}}}"#)
    };
    let said = |role: &str, kind: &str, text: &str| {
        line(
            "response_item",
            &format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
            ),
        )
    };
    [
        line("session_meta", r#"{"id":"oak","cwd":"/w/oak"}"#),
        said("user", "input_text", "<environment_context>x</environment_context>"),
        said("user", "input_text", "Fell the oak."),
        said("assistant", "output_text", "It is felled."),
    ]
    .join("\n")
        + "\n"
}

fn pi(day: u32) -> String {
    let at = format!("2026-11-{day:02}T10:00:00.000Z");
    [
        format!(r#"{{"type":"session","version":3,"id":"mill","timestamp":"{at}","cwd":"/w/mill"}}"#),
        format!(r#"{{"type":"message","id":"1","parentId":null,"timestamp":"{at}","message":{{"role":"user","content":"Grind."}}}}"#),
    ]
    .join("\n")
        + "\n"
}

fn gemini(day: u32) -> String {
    format!(
        r#"{{"sessionId":"tide","projectHash":"ab","messages":[{{"id":"1","timestamp":"2026-11-{day:02}T11:00:00.000Z","type":"user","content":"When is high water?"}}]}}"#
    )
}

/// Sets the time of a file, in seconds since the epoch.
fn touch(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn the_sessions_of_all_agents_are_listed_newest_first() {
    let home = Home::full();
    let run = home.run(&["sessions"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let expected = concat!(
        " Claude Code ~/.claude/projects · Codex ~/.codex/sessions · pi ~/.pi/agent/sessions · Gemini ~/.gemini/tmp\n",
        " TIME              PROJECT       SESSION                               MODEL               REQUESTS       TOKENS     COST  FIRST WORDS\n",
        " 2026-11-04 11:00  tide          tide                                  –                          0            –        –  When is high water?\n",
        " 2026-11-03 08:04  harbour       birch                                 claude-x                   2          210        –  Where is the berth?\n",
        " 2026-11-02 09:00  oak           oak                                   –                          1          ~13        –  Fell the oak.\n",
        " 2026-11-01 10:00  mill          mill                                  –                          0            –        –  Grind.\n",
    );
    assert_eq!(run.out, expected);
    // From the index it is the same.
    assert_eq!(home.run(&["sessions"]).out, expected);
    assert_eq!(home.run(&["sessions", "--no-index"]).out, expected);
}

#[test]
fn each_agent_is_looked_for_where_it_keeps_its_sessions() {
    let home = Home::new();
    let quail = r#"{"uuid":"q1","parentUuid":null,"sessionId":"quail","timestamp":"2026-11-06T08:00:00Z","type":"user","cwd":"/w/bay","message":{"role":"user","parts":[{"text":"Sound the bay."}]}}"#;
    home.write(".qwen/projects/-w-bay/chats/quail.jsonl", &format!("{quail}\n"));
    let kiln = [
        r#"{"type":"metadata","protocol_version":"1.4","created_at":1794000000000}"#,
        r#"{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"Fire the kiln."}],"toolCalls":[]},"time":1794000000000}"#,
    ];
    home.write(".kimi-code/sessions/wd_k/session_k/agents/main/wire.jsonl", &kiln.join("\n"));
    home.write(
        ".kimi-code/sessions/wd_k/session_k/state.json",
        r#"{"id":"session_k","version":2,"cwd":"/w/kiln"}"#,
    );
    let cove = [
        r#"{"type":"session.start","id":"1","timestamp":"2026-11-06T09:00:00Z","parentId":null,"data":{"sessionId":"cove","context":{"cwd":"/w/cove"}}}"#,
        r#"{"type":"user.message","id":"2","timestamp":"2026-11-06T09:00:01Z","parentId":"1","data":{"content":"Chart the cove."}}"#,
    ];
    home.write(".copilot/session-state/cove/events.jsonl", &cove.join("\n"));
    let rig = r#"{"version":1,"sessionId":"rig","messages":[{"role":"user","content":[{"type":"text","text":"Rig the mast."}],"ts":1794000000000},
        {"role":"assistant","content":[{"type":"text","text":"Rigged."}],"modelInfo":{"id":"m"},"ts":1794000001000}]}"#;
    home.write(".cline/data/sessions/1/1.messages.json", rig);
    home.write(".cline/data/sessions/1/1.json", "{\n  \"cwd\": \"/w/rig\"\n}");
    for folder in [".continue/sessions", ".local/share/goose/sessions"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let run = home.run(&["sessions"]);
    let places = " Kimi ~/.kimi-code/sessions · Qwen Code ~/.qwen/projects · Copilot ~/.copilot/session-state \
                  · Cline ~/.cline/data/sessions · Continue ~/.continue/sessions \
                  · goose ~/.local/share/goose/sessions";
    assert_eq!(run.out.lines().next(), Some(places), "{}", run.err);
    let known: Vec<_> = home
        .json(&[])
        .iter()
        .map(|of| {
            let members = [&of["session"], &of["project"], &of["first"]["text"]];
            members.map(|of| of.as_str().unwrap().to_owned())
        })
        .collect();
    for row in [
        ["quail", "/w/bay", "Sound the bay."],
        ["session_k", "/w/kiln", "Fire the kiln."],
        ["cove", "/w/cove", "Chart the cove."],
        ["rig", "/w/rig", "Rig the mast."],
    ] {
        assert!(known.contains(&row.map(str::to_owned)), "{known:?}");
    }
}

#[test]
fn agents_are_looked_for_where_their_variables_say() {
    let home = Home::new();
    let cove = r#"{"type":"user.message","id":"2","timestamp":"2026-11-06T09:00:01Z","data":{"content":"Chart the cove."}}"#;
    let quail = r#"{"uuid":"q1","parentUuid":null,"sessionId":"quail","type":"user","message":{"role":"user","parts":[{"text":"Sound the bay."}]}}"#;
    home.write("cp/session-state/cove/events.jsonl", cove);
    home.write("q1/projects/-w/chats/quail.jsonl", quail);
    home.write("q2/projects/-w/chats/quail.jsonl", &quail.replace("bay", "sound"));
    let mut command = support::afterimage(&["sessions", "--json", "--no-index"]);
    command.env("HOME", home.path());
    for (name, folder) in [("COPILOT_HOME", "cp"), ("QWEN_RUNTIME_DIR", "q1"), ("QWEN_HOME", "q2")]
    {
        command.env(name, home.path().join(folder));
    }
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    for words in ["Chart the cove.", "Sound the bay.", "Sound the sound."] {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn answers_without_a_time_are_of_no_day() {
    let home = Home::new();
    let told = r#"{"sessionId":"ebb","history":[{"message":{"role":"user","content":"When?"}},{"message":{"role":"assistant","content":"At noon.","usage":{"promptTokens":30,"completionTokens":4}}}]}"#;
    home.write(".continue/sessions/ebb.json", told);
    home.write(".claude/projects/-w/ash.jsonl", &claude("ash", 3, "Mind the ash."));
    let days = home.run(&["sessions", "--by", "day"]).out;
    let names: Vec<&str> = days.lines().filter_map(|row| Some(row.rsplit_once("  ")?.1)).collect();
    assert_eq!(names, ["DAY", "2026-11-03", "no time", "total"], "{days}");
    assert_eq!(totals(&home, &["--by", "week"]).last().unwrap().split(' ').next(), Some("–:"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_extension_of_an_editor_writes_is_found_too() {
    let home = Home::new();
    let dock = r#"[{"role":"user","content":[{"type":"text","text":"Dock her."}]},{"role":"assistant","content":[{"type":"text","text":"Docked."}]}]"#;
    let tasks = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks";
    home.write(&format!("{tasks}/7/api_conversation_history.json"), dock);
    home.write(&format!("{tasks}/7/task_metadata.json"), r#"{"files_in_context":[]}"#);
    assert_eq!(home.words(&[]), ["Dock her."]);
}

#[test]
fn json_says_all_that_is_known_of_a_session() {
    let home = Home::full();
    let sessions = home.json(&["--project", "harbour"]);
    let [session] = sessions.as_slice() else { panic!("{sessions:?}") };
    let path = home.path().join(".claude/projects/-w-harbour/birch.jsonl");
    assert_eq!(session["path"], path.to_str().unwrap());
    assert_eq!(session["size"], fs::metadata(&path).unwrap().len());
    assert_eq!(session["format"], "claude-code");
    assert_eq!((&session["session"], &session["sessions"]), (&"birch".into(), &1.into()));
    assert_eq!(session["project"], "/w/harbour");
    assert_eq!(
        session["first"],
        serde_json::json!({ "line": 2, "uuid": "birch-b", "text": "Where is the berth?" })
    );
    assert_eq!(session["started"], "2026-11-03T08:00:00Z");
    assert_eq!(session["ended"], "2026-11-03T08:04:00Z");
    assert_eq!((&session["requests"], &session["reported"]), (&2.into(), &2.into()));
    let usage =
        serde_json::json!({ "input": 200, "cacheRead": 180, "cacheWrite": 0, "output": 10 });
    assert_eq!(session["usage"], usage);
    assert_eq!(
        session["models"],
        serde_json::json!([{ "model": "claude-x", "requests": 2, "usage": usage }])
    );
    assert_eq!((&session["countedTokens"], &session["cost"]), (&Value::Null, &Value::Null));
    assert_eq!(session["costPartial"], true);
    // What no provider reported is counted as `stats` counts it.
    let oak = home.path().join(".codex/sessions/2026/11/02/rollout-1.jsonl");
    let stats = support::json(&["stats", "--json", "--format", "native", oak.to_str().unwrap()]);
    assert_eq!(
        home.json(&["--project", "/w/oak"])[0]["countedTokens"],
        stats["requests"]["tokens"]
    );
}

#[test]
fn the_requests_and_the_usage_of_recordings_are_those_that_requests_lists() {
    let data = support::root().join("../shared/data");
    if support::files_of(&["A-openai-chat", "C-codex-responses"]).is_empty() {
        return;
    }
    for group in ["A-openai-chat", "C-codex-responses"] {
        let group = data.join(group);
        let run = run(&["sessions", "--json", "--no-index", group.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        for line in run.out.lines() {
            let session: Value = serde_json::from_str(line).unwrap();
            let path = session["path"].as_str().unwrap();
            let requests = support::run(&["requests", "--json", path]);
            let requests = requests.out.lines().map(|line| serde_json::from_str(line).unwrap());
            let (requests, sums): (Vec<Value>, Vec<Value>) =
                requests.partition(|request: &Value| request.get("request").is_some());
            let own = requests.iter().filter(|request| request.get("copied").is_none()).count();
            assert_eq!(session["requests"], own, "{path}");
            for member in ["input", "cacheRead", "output"] {
                let reported = requests.iter().filter_map(|request| request["usage"].get(member));
                let listed: u64 = reported.filter_map(Value::as_u64).sum();
                // What no list has is in the sums, too.
                let all = sums.first().and_then(|sums| sums["usage"]["total"][member].as_u64());
                let all = all.unwrap_or(0);
                let is_all = sums.iter().all(|sums| sums["usage"]["total"]["unlisted"] == 0);
                assert!(listed == all || listed < all && !is_all, "{path} {member}");
                assert_eq!(session["usage"][member].as_u64().unwrap_or(0), all, "{path} {member}");
            }
            let stats = support::run(&["stats", "--json", path]);
            let stats: Value = serde_json::from_str(&stats.out).unwrap();
            let price = stats.get("price").filter(|price| price["priced"] != 0);
            let total = price.map_or(&Value::Null, |price| &price["total"]);
            assert_eq!(&session["cost"], total, "{path}");
        }
    }
}

/// A rollout of Codex with two answers, the first to nothing that is there, and what it says of its windows.
fn limited(session: &str, hour: u32, used: [u64; 2]) -> String {
    let reset = 1_793_883_600 + u64::from(hour / 13) * 18_000;
    let mut lines = vec![
        format!(r#"{{"type":"session_meta","payload":{{"id":"{session}","cwd":"/w/oak"}}}}"#),
        r#"{"type":"turn_context","payload":{"model":"gpt-5.5"}}"#.to_owned(),
    ];
    for (index, used) in used.into_iter().enumerate() {
        let at = format!(r#"{{"timestamp":"2026-11-05T{hour:02}:{:02}:00.000Z","#, index * 10);
        let said = r#""type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Felled."}]}}"#;
        let usage =
            format!(r#"{{"input_tokens":{used}00,"cached_input_tokens":0,"output_tokens":10}}"#);
        lines.push(format!("{at}{said}"));
        lines.push(format!(
            r#"{at}"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{usage},"total_token_usage":{{"total_tokens":{used}}}}},"rate_limits":{{"primary":{{"used_percent":{used}.5,"window_minutes":300,"resets_at":{reset}}},"secondary":null}}}}}}"#
        ));
    }
    lines.join("\n") + "\n"
}

/// A home whose sessions were forked, copied and have subagents.
fn home_of_totals() -> Home {
    let home = Home::new();
    let session =
        |name: &str, day| claude(name, day, "Berth?").replace("claude-x", "claude-sonnet-4-5");
    let file = ".claude/projects/-w-harbour/birch.jsonl";
    let birch = session("birch", 3);
    home.write(file, &birch);
    // A fork holds the same answers, and one of its own.
    let own = session("elm", 4).lines().last().unwrap().replace(r#""id":"m2""#, r#""id":"m3""#);
    let fork = birch.replace(r#""sessionId":"birch""#, r#""sessionId":"elm""#) + &own + "\n";
    home.write(".claude/projects/-w-harbour/elm.jsonl", &fork);
    // Somebody has copied the folder.
    home.write(".config/claude/projects/-w-harbour/birch.jsonl", &birch);
    let agent = subagent("birch").replace("claude-x", "claude-haiku-4-5");
    for folder in [".claude", ".config/claude"] {
        home.write(&format!("{folder}/projects/-w-harbour/birch/subagents/agent-a1.jsonl"), &agent);
    }
    home.write(".codex/sessions/2026/11/05/rollout-1.jsonl", &limited("oak", 10, [3, 7]));
    home.write(".codex/sessions/2026/11/05/rollout-2.jsonl", &limited("ash", 14, [1, 2]));
    home
}

/// The name, the requests and the cost of each total.
#[track_caller]
fn totals(home: &Home, args: &[&str]) -> Vec<String> {
    let run = home.run(&[&["sessions", "--json"], args].concat());
    let row = |row: &str| {
        let row: Value = serde_json::from_str(row).unwrap();
        let name = row["name"].as_str().unwrap_or("–");
        let cost = row["cost"]["amount"].as_str().unwrap_or("–");
        format!(
            "{name}: {} of {}, {} {cost}",
            row["requests"], row["sessions"], row["usage"]["input"]
        )
    };
    run.out.lines().map(row).collect()
}

#[test]
fn each_answer_counts_once_in_the_totals() {
    let home = home_of_totals();
    let run = home.run(&["sessions", "--by", "model"]);
    let expected = concat!(
        " SESSIONS  REQUESTS    INPUT   CACHED  OUTPUT       COST  MODEL\n",
        "        2         2    1,300        0      40    $0.0077  gpt-5.5\n",
        "        2         3      300      270      15   $0.00040  claude-sonnet-4-5\n",
        "        1         2      200      180      10  $0.000088  claude-haiku-4-5\n",
        "        4         7    1,800      450      65    $0.0082  total\n",
    );
    assert_eq!(run.out, expected, "{}", run.err);
    // From the index it is the same.
    assert_eq!(home.run(&["sessions", "--by", "model"]).out, expected);
    let days = [
        "2026-11-05: 2 of 2, 1300 0.0077",
        "2026-11-04: 1 of 1, 100 0.000132",
        "2026-11-03: 4 of 1, 400 0.000352",
    ];
    assert_eq!(totals(&home, &["--by", "day"]), days);
    assert_eq!(totals(&home, &["--by", "week"]), ["2026-W45: 7 of 4, 1800 0.008184"]);
    let projects = ["/w/oak: 2 of 2, 1300 0.0077", "/w/harbour: 5 of 2, 500 0.000484"];
    assert_eq!(totals(&home, &["--by", "project", "--sort", "time"]), projects);
    let clients = ["codex: 2 of 2, 1300 0.0077", "claude-code: 5 of 2, 500 0.000484"];
    assert_eq!(totals(&home, &["--by", "client"]), clients);
    let tools = ["–: 5 of 4, 1600 0.008008", "look: 2 of 1, 200 0.000176"];
    assert_eq!(totals(&home, &["--by", "tool"]), tools);
    let of_a_day = ["--by", "tool", "--since", "2026-11-04", "--until", "2026-11-04"];
    assert_eq!(totals(&home, &of_a_day), ["–: 1 of 1, 100 0.000132"]);
}

#[test]
fn what_fell_into_a_window_of_a_rate_limit_is_added_up() {
    let home = home_of_totals();
    let run = home.run(&["sessions", "--by", "window"]);
    let expected = concat!(
        " SESSIONS  REQUESTS    INPUT   CACHED  OUTPUT      COST  USED  WINDOW\n",
        "        1         1      300        0      20   $0.0021    2%  codex, 5 h until 2026-11-05 18:00\n",
        "        1         1    1,000        0      20   $0.0056    7%  codex, 5 h until 2026-11-05 13:00\n",
        "        2         5      500      450      25  $0.00048     –  claude-code\n",
        "        4         7    1,800      450      65   $0.0082     –  total\n",
    );
    assert_eq!(run.out, expected, "{}", run.err);
    let run = home.run(&["sessions", "--by", "window", "--json"]);
    let first: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    let window = serde_json::json!({
        "minutes": 300, "begins": "2026-11-05T13:00:00Z", "resets": "2026-11-05T18:00:00Z", "used": 2
    });
    assert_eq!(first["window"], window);
    // An archive keeps them.
    let path = |name: &str| home.path().join(name).into_os_string().into_string().unwrap();
    let (from, archive) = (path(".codex/sessions/2026/11/05/rollout-2.jsonl"), path("oak.archive"));
    let made = home.run(&["archive", &from, "-o", &archive]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let run = home.run(&["sessions", "--by", "window", "--json", &archive]);
    let first: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["window"], window);
}

/// What `ccusage` 20.0.24 says that the recordings of Claude Code cost together, in dollars (`claude
/// session --offline --mode calculate`).
#[test]
fn the_totals_of_recordings_are_those_that_another_program_computes() {
    let Some(folder) = data::recording("B-anthropic/claude-code") else { return };
    let run = run(&["sessions", "--by", "model", "--json", "--no-index", folder.to_str().unwrap()]);
    let rows: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (model, cost) in [
        ("claude-opus-4-6", "11.7514945"),
        ("claude-sonnet-4-5-20250929", "10.205835"),
        ("claude-haiku-4-5-20251001", "0.0573157"),
    ] {
        let row = rows.iter().find(|row| row["name"] == model).unwrap();
        assert_eq!(row["cost"]["amount"], cost, "{model}");
    }
}

#[test]
fn the_sessions_that_cost_most_come_first() {
    let home = home_of_totals();
    let names = |order: &str| {
        let run = home.run(&["sessions", "--json", "--sort", order]);
        let name = |line: &str| {
            let session: Value = serde_json::from_str(line).unwrap();
            session["session"].as_str().unwrap().to_owned()
        };
        run.out.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("cost"), ["oak", "ash", "birch", "birch", "elm"]);
    assert_eq!(names("tokens"), ["oak", "birch", "birch", "ash", "elm"]);
}

#[test]
fn sessions_are_chosen_by_time_and_project() {
    let home = Home::full();
    let (tide, berth) = ("When is high water?", "Where is the berth?");
    assert_eq!(home.words(&["--since", "2026-11-03"]), [tide, berth]);
    assert_eq!(home.words(&["--since", "2026-11-03T08:04:00Z", "--until", "2026-11-03"]), [berth]);
    assert_eq!(home.words(&["--until", "2026-11-02"]), ["Fell the oak.", "Grind."]);
    assert_eq!(home.words(&["--project", "/w/t"]), [tide]);
    let none = home.run(&["sessions", "--json", "--project", "nowhere"]);
    let said = (none.code, none.out.as_str(), none.err.as_str());
    assert_eq!(said, (Some(0), "", "note: of 4 sessions none is asked for\n"));
    let run = home.run(&["sessions", "--since", "yesterday"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("2026-11-01T08:00:00Z (with Z"), "{}", run.err);
    // The time of the last record counts, whatever that of the file is.
    let path = home.path().join(".gemini/tmp/tide/chats/session-1.json");
    touch(&path, 1_000);
    assert_eq!(home.words(&["--since", "2026-11-04"]), [tide]);
}

#[test]
fn the_id_of_a_session_stands_in_place_of_a_file() {
    let home = Home::new();
    let [first, second] =
        ["8463c716-0d5e-4b1e-9c3a-5f1f0a2b7c11", "8463c799-1111-4222-8333-444455556666"];
    let file = home
        .write(&format!(".claude/projects/-w-harbour/{first}.jsonl"), &claude(first, 3, "Berth?"));
    let rollout = format!(".codex/sessions/2026/11/02/rollout-2026-11-02T08-00-00-{second}.jsonl");
    home.write(&rollout, &codex(2));
    for id in [first, "8463c716", "8463c7-", "8463c71"] {
        let run = home.run(&["stats", "--json", id]);
        if id == "8463c7-" {
            assert!(run.err.contains("cannot open the file"), "{}", run.err);
            continue;
        }
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(run.err, format!("note: the session {id} is {}\n", file.display()));
    }
    let run = home.run(&["requests", "8463c799"]);
    assert!(run.err.contains(&rollout), "{}", run.err);
    // Both begin so, and no id is as short.
    let run = home.run(&["stats", "8463c7"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("several sessions have an id that begins with 8463c7"), "{}", run.err);
    assert!(run.err.contains(first) && run.err.contains(second), "{}", run.err);
    for no_id in ["8463c", "8463c716-9", "harbour"] {
        let run = home.run(&["stats", no_id]);
        assert!(run.err.contains("cannot open the file"), "{}", run.err);
    }
}

#[test]
fn the_newest_session_stands_in_place_of_a_file() {
    let home = Home::full();
    let newest = home.path().join(".pi/agent/sessions/--w-mill--/1.jsonl");
    touch(&newest, 4_000_000_000);
    // What changed later and is no transcript is passed over.
    touch(&home.write(".claude/projects/-w-harbour/memory.md", "- remember"), 4_000_000_100);
    assert_eq!(home.words(&["--last"]), ["Grind."]);
    let run = home.run(&["stats", "--json", "--last"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.err, format!("note: the newest session is {}\n", newest.display()));
    let stats: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(stats["file"], newest.to_str().unwrap());
    let claude = home.path().join(".claude");
    let run = home.run(&["requests", "--last", claude.to_str().unwrap()]);
    assert!(run.err.contains("birch.jsonl"), "{}", run.err);
    assert!(
        home.run(&["render", "--last", "--request", "1", claude.to_str().unwrap()])
            .out
            .contains("berth")
    );
    let paths = home.run(&["sessions", "--paths", "--last"]).out;
    assert_eq!(paths, format!("{}\n", newest.display()));
}

#[test]
fn what_is_missing_is_said() {
    let home = Home::new();
    let run = home.run(&["sessions"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(
        run.err.starts_with("error: no agent keeps its sessions in one of the usual folders\n")
    );
    for place in [
        "~/.claude/projects",
        "~/.codex/sessions",
        "~/.pi/agent/sessions",
        "~/.gemini/tmp",
        "~/.kimi/sessions",
        "afterimage sessions FOLDER",
    ] {
        assert!(run.err.contains(place), "{place}: {}", run.err);
    }
    let run = home.run(&["stats", "--last", home.path().to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("error: there is no session\n"), "{}", run.err);
    let run = home.run(&["sessions", "no-such-folder"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    fs::create_dir_all(home.path().join(".claude/projects")).unwrap();
    assert_eq!(
        home.run(&["sessions"]).out,
        " Claude Code ~/.claude/projects\n There is no session in it.\n"
    );
}

#[test]
fn a_file_is_read_again_only_where_it_has_changed() {
    let home = Home::new();
    let path =
        home.write(".claude/projects/w/birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    touch(&path, 1_000);
    assert_eq!(home.words(&[]), ["Where is the berth?"]);
    fs::write(&path, claude("birch", 3, "Where was the berth")).unwrap();
    touch(&path, 1_000);
    assert_eq!(home.words(&[]), ["Where is the berth?"]);
    assert_eq!(home.words(&["--no-index"]), ["Where was the berth"]);
    touch(&path, 1_001);
    assert_eq!(home.words(&["--quick"]), ["–"]);
    assert_eq!(home.words(&[]), ["Where was the berth"]);
    assert_eq!(home.words(&["--quick"]), ["Where was the berth"]);
    // A new file of a subagent is a change of its session.
    home.write(".claude/projects/w/birch/subagents/agent-1.jsonl", &subagent("birch"));
    let sessions = home.json(&[]);
    assert_eq!((sessions.len(), &sessions[0]["sessions"]), (1, &2.into()));
    assert_eq!(sessions[0]["requests"], 4);
    // The same through another name of the folder, and by its own name.
    for other in [home.path().join(".claude/../.claude"), path.clone()] {
        assert_eq!(home.json(&["--quick", other.to_str().unwrap()])[0]["sessions"], 2);
    }
}

#[test]
fn sessions_are_priced_by_the_table_that_is_asked_for() {
    let home = Home::new();
    home.write(".claude/projects/w/birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    let table = |output: u64| {
        let text = format!(
            "date = 2026-11-23\ncurrency = \"EUR\"\n[[provider]]\nname = \"x\"\nsource = \"y\"\n[[provider.model]]\nnames = [\"claude-x\"]\ninput = 1\ncache_read = 0\noutput = {output}\n"
        );
        home.write(&format!("{output}.toml"), &text).to_str().unwrap().to_owned()
    };
    assert_eq!(home.json(&[])[0]["cost"], Value::Null);
    let (two, four) = (table(2), table(4));
    for _ in 0..2 {
        // Of the same day, and not the same table: two answers of 10 tokens and 5.
        for (path, amount) in [(&two, "0.00004"), (&four, "0.00006")] {
            let session = &home.json(&["--prices", path])[0];
            assert_eq!(session["cost"]["amount"], amount);
            assert_eq!(session["cost"]["currency"], "EUR");
        }
        assert_eq!(home.json(&[])[0]["cost"], Value::Null);
    }
    let stats = home.run(&["stats", "--json", "--last"]);
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    assert_eq!(stats["price"]["total"], Value::Null);
    let wrong = home.write("wrong.toml", "date = 1\n");
    let run = home.run(&["sessions", "--prices", wrong.to_str().unwrap()]);
    assert!(run.code != Some(0) && run.err.contains("wrong.toml"), "{}", run.err);
}

#[test]
fn what_is_not_indexed_is_shown_with_dashes() {
    let home = Home::full();
    let run = home.run(&["sessions", "--quick"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let line = run.out.lines().find(|line| line.contains("-w-harbour")).unwrap();
    assert!(
        line.starts_with(" –                 -w-harbour    –  ")
            && line.contains("         –            –        –  "),
        "{line:?}"
    );
    assert!(!home.index().exists());
    let session = &home.json(&["--quick"])[0];
    assert_eq!((&session["indexed"], &session["requests"]), (&false.into(), &Value::Null));
}

#[test]
fn entries_of_files_that_are_gone_are_dropped() {
    let home = Home::full();
    home.run(&["sessions"]);
    assert!(fs::read_to_string(home.index()).unwrap().contains("rollout-1.jsonl"));
    fs::remove_file(home.path().join(".codex/sessions/2026/11/02/rollout-1.jsonl")).unwrap();
    home.run(&["sessions"]);
    let index = fs::read_to_string(home.index()).unwrap();
    assert!(!index.contains("rollout-1.jsonl") && index.contains("birch.jsonl"));
}

#[test]
fn an_index_that_was_made_with_other_words_is_made_anew() {
    let home = Home::full();
    let expected = home.run(&["sessions"]).out;
    let whole = fs::read_to_string(home.index()).unwrap();
    let (_, entries) = whole.split_once('\n').unwrap();
    let head = r#"{"index":"sessions of afterimage","version":1,"words":"of others"}"#;
    let head = afterimage::log::line::seal(head).unwrap();
    fs::write(home.index(), format!("{head}\n{entries}")).unwrap();
    let run = home.run(&["sessions"]);
    assert!(run.out == expected && !run.err.contains("damaged"), "{}", run.err);
    assert_eq!(fs::read_to_string(home.index()).unwrap(), whole);
}

#[test]
fn a_damaged_index_is_made_anew_with_a_note() {
    let home = Home::full();
    let expected = home.run(&["sessions"]).out;
    let whole = fs::read(home.index()).unwrap();
    let newline = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let mut damaged = vec![b"not an index".to_vec(), Vec::new(), whole[..whole.len() - 7].to_vec()];
    for at in [3, newline + 30, whole.len() / 2] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        damaged.push(changed);
    }
    for bytes in damaged {
        fs::write(home.index(), &bytes).unwrap();
        let run = home.run(&["sessions"]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), expected.as_str()));
        assert!(run.err.starts_with("note: the index is damaged and is made anew"), "{}", run.err);
        assert_eq!(fs::read(home.index()).unwrap(), whole);
        assert_eq!(home.run(&["sessions"]).err, "");
    }
}

#[test]
fn programs_at_the_same_time_lose_nothing_of_each_other() {
    let home = Home::new();
    let folders: Vec<PathBuf> =
        (0..6).map(|number| home.path().join(format!("f{number}"))).collect();
    for (number, folder) in folders.iter().enumerate() {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("s.jsonl"), claude(&format!("s{number}"), 3, "Go.")).unwrap();
    }
    std::thread::scope(|scope| {
        for folder in &folders {
            scope.spawn(|| assert_eq!(home.json(&[folder.to_str().unwrap()]).len(), 1));
        }
    });
    for folder in &folders {
        assert_eq!(home.json(&["--quick", folder.to_str().unwrap()])[0]["indexed"], true);
    }
}

#[cfg(unix)]
#[test]
fn the_index_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::full();
    home.run(&["sessions"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path().join("cache")), 0o700);
    for file in fs::read_dir(home.path().join("cache")).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    // Where it cannot be written, the answer is the same.
    let expected = home.run(&["sessions"]).out;
    fs::remove_dir_all(home.path().join("cache")).unwrap();
    home.write("cache", "a file");
    let run = home.run(&["sessions"]);
    assert_eq!((run.code, run.out), (Some(0), expected));
    assert!(run.err.starts_with("note: the index"), "{}", run.err);
}

/// A folder with transcripts, and with what is none.
fn folder() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let root = support::root();
    let put = |name: &str, from: &str| {
        let path = scratch.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root.join(from), path).unwrap();
    };
    put("b/chat.json", CHAT);
    put("a.json", TRAFFIC);
    put("b/notes.md", "README.md");
    put(".hidden/chat.json", CHAT);
    fs::write(scratch.path().join("picture"), b"\x89PNG\0\0\0").unwrap();
    fs::write(scratch.path().join("empty"), b"").unwrap();
    scratch
}

#[test]
fn a_folder_is_read_as_the_files_in_it() {
    let scratch = folder();
    let name = scratch.path().to_str().unwrap();
    let file = |below: &str| scratch.path().join(below).to_str().unwrap().to_owned();
    for words in [
        &["stats", "--json"][..],
        &["frames"],
        &["requests", "--json"],
        &["trace", "--json", "--text", "a"],
    ] {
        let found = run(&[words, &[name]].concat());
        let expected = run(&[words, &[&file("a.json"), &file("b/chat.json")]].concat());
        assert_eq!(found.code, expected.code, "{words:?}: {}", found.err);
        assert_eq!(found.out, expected.out, "{words:?}");
        assert!(
            found.err.contains("note: passed over 3 files that are no transcripts; the first is "),
            "{}",
            found.err
        );
    }
    // What is named is not passed over, whatever is in the folders.
    let run = run(&["stats", "--json", name, &file("b/notes.md")]);
    assert_eq!((run.code, run.out.lines().count()), (Some(2), 2), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_not_followed() {
    let scratch = folder();
    std::os::unix::fs::symlink(scratch.path(), scratch.path().join("b/again")).unwrap();
    std::os::unix::fs::symlink(support::root().join(CHAT), scratch.path().join("linked.json"))
        .unwrap();
    let run = run(&["stats", "--json", scratch.path().to_str().unwrap()]);
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 2));
    assert!(run.err.contains("are no transcripts and 2 symbolic links"), "{}", run.err);
}

#[test]
fn subagents_are_read_with_their_session_in_a_folder_too() {
    let home = Home::new();
    home.write("p/birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    home.write("p/birch/subagents/agent-1.jsonl", &subagent("birch"));
    home.write("p/agent-2.jsonl", &subagent("birch").replace("a1", "a2"));
    let other = subagent("elsewhere").replace(r#""id":"s"#, r#""id":"o"#);
    home.write("p/agent-3.jsonl", &other);
    let name = home.path().join("p");
    let lines = support::json_lines(&["stats", "--json", name.to_str().unwrap()]);
    let files: Vec<&str> = lines.iter().map(|line| line["file"].as_str().unwrap()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files[0].ends_with("agent-3.jsonl") && files[1].ends_with("birch.jsonl"), "{files:?}");
    assert_eq!(lines[1]["sessions"], 3);
    // A folder of subagents alone is read as what it is.
    let alone = support::json_lines(&["stats", "--json", name.join("birch").to_str().unwrap()]);
    assert_eq!(alone.len(), 1);
    assert_eq!(home.json(&[name.to_str().unwrap()]).len(), 2);
}

#[test]
fn what_a_subagent_started_itself_is_read_by_itself() {
    let home = Home::new();
    home.write("p/birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    home.write("p/birch/subagents/agent-1.jsonl", &subagent("birch"));
    home.write("p/birch/subagents/agent-1/subagents/agent-2.jsonl", &subagent("birch"));
    let name = home.path().join("p");
    let lines = support::json_lines(&["stats", "--json", name.to_str().unwrap()]);
    let sessions: Vec<_> = lines.iter().map(|line| line["sessions"].as_u64().unwrap()).collect();
    assert_eq!(sessions.iter().sum::<u64>(), 3, "{sessions:?}");
}

#[test]
fn one_file_that_is_named_like_a_request_makes_no_recording_of_its_folder() {
    let home = Home::new();
    home.write("p/birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    home.write(
        "p/notes.request.json",
        r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#,
    );
    let name = home.path().to_str().unwrap();
    let lines = support::json_lines(&["stats", "--json", name]);
    let formats: Vec<_> = lines.iter().map(|line| line["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["claude-code", "openai-chat"]);
    // One that Claude Code named is a recording, though nothing came back yet.
    fs::rename(
        home.path().join("p/notes.request.json"),
        home.write("q/0a1b2c3d-0000-4000-8000-0123456789ab.request.json", ""),
    )
    .unwrap();
    let lines = support::json_lines(&["stats", "--json", name]);
    let formats: Vec<_> = lines.iter().map(|line| line["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["claude-code", "claude-bodies"]);
}

#[test]
fn an_archive_is_read_once_and_found_as_the_last_session() {
    let home = Home::new();
    let file = home.write("birch.jsonl", &claude("birch", 3, "Where is the berth?"));
    let archive = home.path().join("kept/a.archive");
    fs::create_dir_all(home.path().join("kept")).unwrap();
    let made = run(&["archive", file.to_str().unwrap(), "-o", archive.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let kept = home.path().join("kept");
    let kept = kept.to_str().unwrap();
    // What is not in the index is not read.
    let quick = home.json(&["--quick", kept]);
    assert_eq!((quick.len(), &quick[0]["indexed"]), (1, &Value::Bool(false)));
    let read = home.json(&[kept]);
    assert_eq!(read[0]["requests"], 2);
    assert_eq!(home.json(&["--quick", kept]), read);
    let last = home.run(&["stats", "--json", "--last", kept]);
    assert_eq!(last.code, Some(0), "{}", last.err);
    let last: Value = serde_json::from_str(&last.out).unwrap();
    assert_eq!(last["usage"]["total"]["exchanges"], 2);
}

#[test]
fn a_sum_in_which_a_request_is_missing_is_marked() {
    let home = Home::new();
    let whole = claude("birch", 3, "Where is the berth?");
    let row = |text: &str| {
        home.write("s.jsonl", text);
        let file = home.path().join("s.jsonl");
        home.run(&["sessions", file.to_str().unwrap()]).out
    };
    assert!(row(&whole).contains(" 210 "), "{}", row(&whole));
    // The last answer reports no output.
    let (before, last) = whole.rsplit_once(",\"output_tokens\":5").unwrap();
    assert!(row(&format!("{before}{last}")).contains(" ≥205 "));
}

#[test]
fn archives_and_recordings_in_a_folder_stand_for_themselves() {
    let scratch = folder();
    let name = scratch.path().to_str().unwrap();
    let bodies = scratch.path().join("bodies");
    fs::create_dir(&bodies).unwrap();
    fs::write(
        bodies.join("1.request.json"),
        r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#,
    )
    .unwrap();
    fs::write(bodies.join("1.response.json"), r#"{"role":"assistant","content":[{"type":"text","text":"Hello."}],"usage":{"input_tokens":3,"output_tokens":2}}"#).unwrap();
    // Into the folder itself: what is being made is not read.
    let archive = scratch.path().join("c.archive");
    let made = run(&["archive", name, "-o", archive.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let archived = support::json_lines(&["stats", "--json", archive.to_str().unwrap()]);
    assert_eq!(archived.len(), 3);
    let all = run(&["stats", "--json", name]);
    assert_eq!((all.code, all.out.lines().count()), (Some(0), 6), "{}", all.err);
    let home = Home::new();
    let listed = home.run(&["sessions", "--json", name]);
    let lines: Vec<Value> =
        listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6, "{}", listed.out);
    let bodies =
        lines.iter().find(|line| line["path"].as_str().unwrap().ends_with("bodies")).unwrap();
    assert_eq!(bodies["usage"], serde_json::json!({ "input": 3, "output": 2 }));
    let first = scratch.path().join("b/notes.md");
    let note = format!("passed over 3 files that are no transcripts, {} first", first.display());
    assert_eq!(listed.err, format!("note: {note}\n"));
}

#[test]
fn a_folder_without_a_transcript_is_refused_and_so_is_one_for_a_single_request() {
    let scratch = tempfile::tempdir().unwrap();
    let name = scratch.path().to_str().unwrap();
    let refused = |args: &[&str], sentence: &str| {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.err.starts_with(&format!("error: {sentence}")), "{args:?}: {}", run.err);
    };
    refused(&["stats", name], "there is no transcript in the folder\n");
    fs::write(scratch.path().join("notes.md"), "# Notes").unwrap();
    let run = run(&["stats", name]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.starts_with("note: passed over 1 file that is no transcript; the first is "));
    assert!(run.err.contains("\nerror: there is no transcript in the folder\n"), "{}", run.err);
    refused(
        &["render", "--request", "1", name],
        "a request is asked for by its number in one file",
    );
    refused(
        &["diff", &format!("{name}@1"), CHAT],
        "a request is asked for by its number in one file",
    );
    refused(&["diff", name, CHAT], "expected a file, found a directory");
}

/// A program that follows a file, and the lines that it has printed.
struct Following {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Following {
    fn start(path: &Path) -> Self {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("afterimage"))
            .args(["requests", "--follow", "--json"])
            .arg(path)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        let more = send.clone();
        std::thread::spawn(move || out.lines().try_for_each(|line| send.send(line.unwrap())));
        std::thread::spawn(move || err.lines().try_for_each(|line| more.send(line.unwrap())));
        Self { child, lines }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(60)).expect("a line in a minute")
    }

    /// The frame of the next request.
    #[track_caller]
    fn frame(&self) -> u64 {
        frame_of(&self.line())
    }
}

#[track_caller]
fn frame_of(line: &str) -> u64 {
    let json: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    json["frame"].as_u64().unwrap()
}

impl Drop for Following {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_session_is_followed_as_it_grows_and_when_it_is_replaced() {
    let home = Home::new();
    let whole = claude("birch", 3, "Where is the berth?");
    let lines: Vec<&str> = whole.lines().collect();
    let path = home.write("s.jsonl", "");
    let following = Following::start(&path);
    // A line that is not whole yet is no request.
    fs::write(&path, format!("{}\n{}", lines[..2].join("\n"), &lines[2][..40])).unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    fs::write(&path, format!("{}\n", lines[..3].join("\n"))).unwrap();
    assert_eq!(following.frame(), 2);
    fs::write(&path, &whole).unwrap();
    assert_eq!(following.frame(), 4);
    // Another session takes its place.
    fs::write(&path, claude("oak", 5, "Fell the oak.")).unwrap();
    // Its requests and the note come from two streams, so either may come first.
    let lines = [following.line(), following.line(), following.line()];
    let (notes, requests): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|line| line.contains("the file was replaced or cut"));
    assert_eq!(notes.len(), 1, "{lines:?}");
    let frames: Vec<u64> = requests.into_iter().map(|line| frame_of(line)).collect();
    assert_eq!(frames, [2, 4]);
}

#[test]
fn an_answer_that_is_still_written_is_followed_to_its_end() {
    let home = Home::new();
    let whole = claude("birch", 3, "Where is the berth?");
    let lines: Vec<&str> = whole.lines().collect();
    let path = home.write("s.jsonl", &(lines[..3].join("\n") + "\n"));
    let following = Following::start(&path);
    std::thread::sleep(Duration::from_millis(600));
    // The same response, as far as it came later.
    let more = lines[2]
        .replace("birch-c", "birch-d")
        .replace("\"output_tokens\":5", "\"output_tokens\":70");
    let more = more.replace("\"id\":\"t1\",", "\"id\":\"t2\",");
    fs::write(&path, lines[..3].join("\n") + "\n" + &more + "\n").unwrap();
    let line: Value = serde_json::from_str(&following.line()).unwrap();
    assert_eq!(line["usage"]["output"], 70, "{line}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let home = Home::full();
    let refused = |args: &[&str], sentence: &str| {
        let run = home.run(&[&["requests", "--follow"], args].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.err.starts_with(&format!("error: {sentence}")), "{args:?}: {}", run.err);
    };
    refused(&["no-such-file"], "cannot open the file");
    refused(&["-"], "expected a file to follow");
    refused(&[home.path().to_str().unwrap()], "expected a file to follow");
    refused(&[CHAT, TRAFFIC], "expected one file to follow, found several");
    // An archive of several files is no file, and nobody writes it.
    let archive = home.path().join("all.archive");
    let archive = archive.to_str().unwrap();
    let made = home.run(&["archive", "-o", archive, CHAT, TRAFFIC]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    refused(&[archive], "expected a file to follow");
}

#[test]
fn a_request_that_was_printed_is_printed_again_only_with_more_of_its_answer() {
    let home = Home::new();
    let whole = claude("birch", 3, "Where is the berth?");
    let path = home.write("s.jsonl", &whole);
    let following = Following::start(&path);
    assert_eq!([following.frame(), following.frame()], [2, 4]);
    // The last answer may go on, but has not: it is held back, and is the same when all is quiet.
    let summary = "{\"type\":\"summary\",\"summary\":\"Berths\",\"leafUuid\":\"birch-e\"}\n";
    fs::write(&path, format!("{whole}{summary}")).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let later = claude("birch", 4, "And the tide?").replace("birch-", "late-");
    let later = later.replace("\"m1\"", "\"m8\"").replace("\"m2\"", "\"m9\"");
    fs::write(&path, format!("{whole}{summary}{}", later.replace("\"t1\"", "\"t9\""))).unwrap();
    let line: Value = serde_json::from_str(&following.line()).unwrap();
    assert_eq!(line["request"], 3, "{line}");
}

#[test]
fn every_command_reads_the_sessions_that_sessions_lists() {
    let home = Home::full();
    let folders = [".claude", ".codex", ".pi", ".gemini"];
    let folders = folders.map(|name| home.path().join(name).to_str().unwrap().to_owned());
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let archive = home.path().join("all.archive");
    let archive = archive.to_str().unwrap();
    let made = home.run(&[&["archive", "-o", archive][..], &folders].concat());
    assert_eq!(made.code, Some(0), "{}", made.err);
    let sessions = |lines: &str, key: &str| -> BTreeSet<String> {
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line[key].as_str().unwrap().to_owned()).collect()
    };
    for (asked, count) in [
        (&["--since", "2026-11-03"][..], 2),
        (&["--until", "2026-11-02"], 2),
        (&["--project", "/w/t"], 1),
        (&["--since", "2026-11-02", "--until", "2026-11-03", "--project", "harbour"], 1),
    ] {
        let listed = home.run(&[&["sessions", "--json"], asked, &folders].concat());
        let listed = sessions(&listed.out, "path");
        assert_eq!(listed.len(), count, "{asked:?}");
        for of in [&folders[..], &[archive]] {
            let read = home.run(&[&["stats", "--json"], asked, of].concat());
            assert_eq!(read.code, Some(0), "{}", read.err);
            assert_eq!(sessions(&read.out, "file"), listed, "{asked:?}");
            let note = format!("note: {count} of 4 sessions are asked for\n");
            assert!(read.err.contains(&note), "{}", read.err);
        }
    }
    let none = home.run(&[&["requests", "--since", "2027-01-01"][..], &folders].concat());
    assert_eq!((none.code, none.out.as_str()), (Some(2), ""));
    assert!(none.err.starts_with("error: of 4 sessions none is asked for\n"), "{}", none.err);
    let piped = home.run(&["stats", "--project", "w", "-"]);
    assert!(piped.err.starts_with("error: standard input is read once"), "{}", piped.err);
    let listed = home.run(&["sessions", "-"]);
    assert_eq!(listed.code, Some(2));
    assert!(listed.err.contains("expected a folder or a file"), "{}", listed.err);
}

#[test]
fn a_session_is_known_alike_from_its_file_and_from_an_archive() {
    let home = Home::full();
    let agents = [".claude", ".codex", ".pi", ".gemini"].map(|name| home.path().join(name));
    // Some of these report no usage: their tokens are counted.
    let recorded = ["A-openai-chat", "C-codex-responses", "D-swe-agent"].map(data::recordings);
    let is_recorded = recorded.iter().all(Option::is_some);
    let files: Vec<PathBuf> = agents.into_iter().chain(recorded.into_iter().flatten()).collect();
    let files: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let archive = home.path().join("all.archive");
    let archive = archive.to_str().unwrap();
    let made = home.run(&[&["archive", "-o", archive][..], &files].concat());
    assert_eq!(made.code, Some(0), "{}", made.err);
    let known = |of: &[&str], path: &str| -> BTreeMap<String, Value> {
        let run = home.run(&[&["sessions", "--json"], of].concat());
        let of = run.out.lines().map(|line| {
            let mut session: Value = serde_json::from_str(line).unwrap();
            let of = session.as_object_mut().unwrap();
            let file = of.remove(path).unwrap().as_str().unwrap().to_owned();
            ["path", "file", "size", "modified"].iter().for_each(|key| drop(of.remove(*key)));
            (file, session)
        });
        of.collect()
    };
    let of_files = known(&files, "path");
    assert!(of_files.len() >= 4);
    let is_counted = of_files.values().any(|of| of["countedTokens"].as_u64() > Some(30_000));
    assert_eq!(is_counted, is_recorded);
    let archived = known(&[archive], "file");
    for (file, of) in &of_files {
        assert_eq!(archived.get(file), Some(of), "{file}");
    }
    assert_eq!(archived.len(), of_files.len());
}

#[test]
fn records_that_were_not_understood_are_told_of_the_sessions_too() {
    let home = Home::new();
    let whole = claude("birch", 3, "Where is the berth?");
    home.write("a.jsonl", &whole);
    let cut = home.write("b.jsonl", &whole[..whole.len() - 40]);
    home.write("c.json", "{\"info\":{");
    let run = home.run(&["sessions", "--json", home.path().to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let unknown =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["unknownRecords"].clone();
    let unknown: Vec<Value> = run.out.lines().map(unknown).collect();
    assert!(unknown.contains(&0.into()) && unknown.contains(&1.into()), "{unknown:?}");
    let note = format!("1 record was not understood, in {}", cut.display());
    assert!(run.err.contains(&note), "{}", run.err);
    assert!(run.err.contains("passed over 1 file that is no transcript, "), "{}", run.err);
    assert!(run.err.contains("c.json\n"), "{}", run.err);
    // The names of files may hold what is to be taken out.
    let redacted = home.run(&["sessions", "--redact", home.path().to_str().unwrap()]);
    let is_named = redacted.err.contains("c.json") || redacted.err.contains(" first\n");
    assert!(redacted.err.contains("passed over ") && !is_named, "{}", redacted.err);
}
