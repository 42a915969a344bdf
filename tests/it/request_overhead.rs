//! Budgets that count the whole request: what is sent besides the messages takes room too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{collections::HashMap, sync::Arc};

use afterimage::{
    ErrorKind,
    compress::OutlineEngine,
    export::Form,
    hud::{Hud, NativeFormat, RenderRequest},
    id::Millis,
    json,
    request::{Request, RequestOverhead},
    session::{Fit, RequestFitter},
    tokens::{Bpe, Memo, TokenCounter},
    transcript::{Api, Transcript},
    veil::History,
    window::{Budget, ContextWindow},
};
use afterimage_testkit::data;
use serde_json::Value;

use crate::support::{exporting, sessions};

const NOW: Millis = Millis::new(0);

fn counter() -> Arc<dyn TokenCounter> {
    Arc::new(Memo::new(Bpe::o200k()))
}

fn hud(counter: &Arc<dyn TokenCounter>) -> Hud {
    Hud::builder(Arc::clone(counter)).format(Arc::new(NativeFormat)).build()
}

/// The tokens of what is said in a value: its strings, but for the words of the form and data.
fn said(value: &Value, counter: &dyn TokenCounter) -> u64 {
    const FORM: [&str; 5] = ["type", "role", "signature", "encrypted_content", "data"];
    match value {
        Value::String(text) if text.starts_with("data:") => 0,
        Value::String(text) => counter.count(text) as u64,
        Value::Array(list) => list.iter().map(|value| said(value, counter)).sum(),
        Value::Object(members) => {
            let said_in = |(key, value): (&String, &Value)| {
                if FORM.contains(&key.as_str()) { 0 } else { said(value, counter) }
            };
            members.iter().map(said_in).sum()
        }
        _ => 0,
    }
}

/// The tokens of a whole request: what its messages say, four for each, three for the reply, and the
/// JSON of its tools.
fn whole(exported: &Value, tools: &Value, counter: &dyn TokenCounter) -> u64 {
    let list = |value: &Value| value.as_array().map_or(0, Vec::len) as u64;
    let messages = list(exported).max(list(&exported["messages"])).max(list(&exported["input"]));
    let of = |tool: &Value| counter.count(&tool.to_string()) as u64;
    let tools: u64 = tools.as_array().into_iter().flatten().map(of).sum();
    said(exported, counter) + 4 * messages + 3 + tools
}

/// Fits a history into a budget in every form, and counts what would be sent; says how often it fits.
fn check(
    history: &mut History,
    (overhead, tools): (RequestOverhead, &Value),
    counter: &Arc<dyn TokenCounter>,
    place: &str,
) -> usize {
    let mut fits = 0;
    for most in [4_000, 8_000, 32_000] {
        for form in [Form::OpenaiChat, Form::Responses, Form::Anthropic] {
            let budget = Budget::once(most).taking(overhead.total());
            let fitter = RequestFitter::new(hud(counter), budget).form(form);
            let fitted = fitter.fit(history, &OutlineEngine, NOW, |_| {}).unwrap();
            match (fitted.fit, fitted.exported) {
                (Fit::Fits(_), Some(exported)) => {
                    let sent = whole(&exporting::json(&exported), tools, &**counter);
                    assert!(sent <= most, "{place}: {form:?} has {sent} of {most}");
                    assert!(fitted.tokens_after + overhead.total() <= most, "{place}");
                    fits += 1;
                }
                (Fit::Unfit(breakdown), _) => {
                    assert_eq!((breakdown.room, breakdown.tools), (most, overhead.total()));
                    assert!(breakdown.total() > most, "{place}: {breakdown}");
                }
                (Fit::Fits(_), None) => panic!("{place}: no request"),
            }
        }
    }
    fits
}

#[test]
fn requests_of_recordings_with_tools_stay_within_budgets_with_their_tools() {
    let Some(first) = data::recordings(sessions::GROUPS[0]) else { return };
    let counter = counter();
    let (mut with_tools, mut fits) = (0, 0);
    for path in data::files_under(first.parent().unwrap()) {
        let place = path.display().to_string();
        let is_traffic = sessions::GROUPS.iter().any(|group| place.contains(group));
        let Some(mut transcript) = is_traffic.then(|| Transcript::open(&path).unwrap()) else {
            continue;
        };
        transcript.keep_exchanges();
        let mut histories: HashMap<Arc<str>, History> = HashMap::new();
        for record in transcript.by_ref() {
            let record = record.unwrap();
            let history = histories.entry(record.session).or_default();
            hud(&counter).capture(history, record.frame, NOW).unwrap();
        }
        for exchange in transcript.take_exchanges() {
            let Ok(body) = serde_json::from_str::<Value>(&exchange.request) else { continue };
            if body["tools"].as_array().is_none_or(Vec::is_empty) {
                continue;
            }
            let overhead = Request::recorded(&exchange).overhead(&*counter);
            let history = histories.get_mut(&exchange.session).unwrap();
            with_tools += 1;
            fits += check(history, (overhead, &body["tools"]), &counter, &place);
        }
    }
    assert!(with_tools > 20 && fits > with_tools * 6, "{fits} fit of {with_tools} with tools");
}

/// The tools of a browser, as an agent was given them.
fn browser_tools() -> Option<Value> {
    let path = data::recording("A-openai-chat/inspect-ai/2025-05-12T20-27-36-04-00_browser.json")?;
    let log: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = log["samples"][0]["events"].as_array().unwrap();
    let tools = events.iter().map(|event| &event["tools"]);
    tools.filter(|tools| tools.is_array()).max_by_key(|tools| tools.to_string().len()).cloned()
}

#[test]
fn long_sessions_with_many_tools_stay_within_budgets_with_their_tools() {
    let Some(tools) = browser_tools() else { return };
    // As many as agents have: a few thousand tokens of them.
    let tools = Value::Array([tools.as_array().unwrap().as_slice(); 2].concat());
    let counter = counter();
    let values = json::read(tools.to_string().as_bytes()).unwrap();
    let values = values.as_array().unwrap();
    let root = data::recordings(sessions::GROUPS[0]).unwrap();
    let (mut looked_at, mut fits) = (0, 0);
    let sessions = sessions::sessions(root.parent().unwrap(), 60, 1);
    for session in sessions.iter().step_by(2) {
        let mut history = History::new();
        for frame in session.frames.iter().take(120).cloned() {
            hud(&counter).capture(&mut history, frame, NOW).unwrap();
        }
        let overhead = RequestOverhead::of(Api::Messages, values, None, &*counter);
        assert!(overhead.tools > 1_000, "{overhead:?}");
        looked_at += 1;
        fits += check(&mut history, (overhead, &tools), &counter, &session.name);
    }
    assert!(looked_at > 3 && fits >= looked_at * 6, "{fits} of {looked_at}");
}

fn request(document: &str) -> RequestOverhead {
    let mut transcript = Transcript::new(document.as_bytes()).unwrap();
    transcript.keep_exchanges();
    assert!(transcript.by_ref().all(|record| record.is_ok()));
    let exchanges = transcript.take_exchanges();
    Request::recorded(&exchanges[0]).overhead(&*counter())
}

#[test]
fn tools_functions_and_schemas_of_each_api_count_as_their_json() {
    let count = |text: &str| counter().count(text) as u64;
    let tool = r#"{"type":"function","function":{"name":"tide","parameters":{"type":"object"}}}"#;
    let user = r#"[{"role":"user","content":"Hi"}]"#;
    let schema = r#"{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}"#;
    let chat = |members: &str| request(&format!(r#"{{"model":"m",{members},"messages":{user}}}"#));
    let with = |tools, schemas| {
        let around = if tools > 0 { 12 } else { 0 };
        RequestOverhead { tools, around, schemas }
    };
    let tools = count(tool);
    assert_eq!(chat(&format!(r#""tools":[{tool}]"#)), with(tools, 0));
    let spaced = tool.replace(':', " : ");
    assert_eq!(chat(&format!(r#""tools":[{spaced}]"#)), with(tools, 0), "white space is not sent");
    assert_eq!(chat(&format!(r#""functions":[{tool}]"#)), with(tools, 0));
    assert_eq!(chat(&format!(r#""response_format":{schema}"#)), with(0, count(schema)));
    assert_eq!(chat(r#""response_format":{"type":"text"},"tools":[]"#), with(0, 0));
    let format = r#"{"type":"json_schema","schema":{"type":"object"}}"#;
    let responses = format!(r#"{{"model":"m","text":{{"format":{format}}},"input":{user}}}"#);
    assert_eq!(request(&responses), with(0, count(format)));
    let tool = r#"{"name":"tide","input_schema":{"type":"object"}}"#;
    let anthropic = format!(
        r#"{{"model":"claude-x","system":"s","max_tokens":9,"tools":[{tool}],"output_config":{{"format":{format}}},"messages":{user}}}"#
    );
    let expected = RequestOverhead { tools: count(tool), around: 606, schemas: count(format) };
    assert_eq!(request(&anthropic), expected);
}

#[test]
fn tools_that_leave_no_room_are_said_to_take_it() {
    let counter = counter();
    let document = r#"[{"role":"user","content":"Where is berth 7?"}]"#;
    let mut history = History::new();
    for record in Transcript::new(document.as_bytes()).unwrap() {
        hud(&counter).capture(&mut history, record.unwrap().frame, NOW).unwrap();
    }
    let budget = Budget::new(1_000).taking(1_200);
    let mut window = ContextWindow::new(hud(&counter), budget, budget.compression());
    let request = RenderRequest::default();
    let error = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget);
    assert!(error.message().contains("at most 1000 tokens"), "{error}");
    assert!(error.message().contains("(tools 1200, system prompt 0"), "{error}");
    let breakdown = window.last_breakdown().unwrap();
    assert_eq!((breakdown.room, breakdown.tools), (1_000, 1_200));
    assert_eq!(breakdown.total(), 1_200 + breakdown.recent + breakdown.framing);
}

#[test]
fn a_budget_that_takes_tools_is_saved_and_one_that_does_not_is_as_before() {
    let budget = Budget::new(8_000).taking(1_500);
    let text = serde_json::to_string(&budget).unwrap();
    assert_eq!(serde_json::from_str::<Budget>(&text).unwrap(), budget);
    assert!(!serde_json::to_string(&Budget::new(8_000)).unwrap().contains("tools"));
    let read: Budget = serde_json::from_str(r#"{"maxTokens":8000,"tools":1500}"#).unwrap();
    assert_eq!(read, budget);
    assert_eq!(Budget::new(8_000).taking(0), Budget::new(8_000));
}
