//! Sessions that an agent's loop lives.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use afterimage::{
    Error, ErrorKind, Result,
    compress::{CompressionJob, Engine, OutlineEngine},
    export::Form,
    hud::{Hud, NativeFormat},
    id::Millis,
    json::{self, Object, ObjectExt, Value},
    session::{
        Awaits, MemoryStore, Model, RequestFitter, Session, SessionAnswer, SessionOptions,
        SessionStore, Tool,
    },
    tokens::{Chars4, TokenCounter},
    transcript::{Api, Record, Transcript},
    veil::{Branch, FacetOp, Frame, History, Source},
    window::Budget,
};
use afterimage_testkit::validators;
use serde_json::json;

use super::living_session_recordings::conversation;

/// How many requests a session makes.
pub(super) const TURNS: u64 = 30;

pub(super) const APIS: [Api; 3] = [Api::Chat, Api::Messages, Api::Responses];

/// A model that knows its lines: each answer follows from the request alone.
pub(super) fn answer(api: Api, request: &str) -> String {
    let seed = request.len() % 7;
    let calls = request.matches("call-").count();
    let id = format!("call-{calls}");
    let text = format!("Looked {calls} times. {}", "The tide is rising. ".repeat(seed));
    let arguments = format!(r#"{{"harbour": {seed}}}"#);
    let goes_on = calls < 2 || seed > 1;
    match (api, goes_on) {
        (Api::Chat, true) => format!(
            r#"{{"id":"r","model":"m","choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"role":"assistant","content":"{text}","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"tide","arguments":"{}"}}}}]}}}}],"usage":{{"prompt_tokens":9,"completion_tokens":3}}}}"#,
            arguments.replace('"', "\\\"")
        ),
        (Api::Chat, false) => format!(
            r#"{{"id":"r","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"{text}"}}}}]}}"#
        ),
        (Api::Messages, true) => format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"thinking","thinking":"hm","signature":"s"}},{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"{id}","name":"tide","input":{arguments}}}],"stop_reason":"tool_use","usage":{{"input_tokens":9,"output_tokens":3}}}}"#
        ),
        (Api::Messages, false) => format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn"}}"#
        ),
        (_, true) => format!(
            r#"{{"id":"r","output":[{{"type":"reasoning","id":"i","summary":[],"encrypted_content":"gAAA"}},{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}},{{"type":"function_call","id":"f","call_id":"{id}","name":"tide","arguments":"{}"}}],"usage":{{"input_tokens":9,"output_tokens":3}}}}"#,
            arguments.replace('"', "\\\"")
        ),
        (_, false) => format!(
            r#"{{"id":"r","output":[{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}]}}"#
        ),
    }
}

pub(super) fn options() -> SessionOptions {
    SessionOptions { counter: Arc::new(Chars4), ..SessionOptions::default() }
}

pub(super) fn model(api: Api) -> Model {
    Model::new(api, "m", 2_500).output(500)
}

pub(super) fn tools() -> [Tool; 1] {
    let schema = json::read(br#"{"type": "object"}"#).unwrap();
    [Tool::new("tide", "When high water is.", schema)]
}

/// Lives a session for so many requests, from wherever it stands. Gives the bodies.
pub(super) fn live(session: &mut Session, model: &Model, turns: u64) -> Result<Vec<String>> {
    let mut bodies = Vec::new();
    session.system("You are a harbour pilot.")?;
    session.tools(tools())?;
    while session.turns() < turns || session.unanswered().is_some() {
        match session.awaits() {
            Awaits::Answer => {
                let frames = session.history().frames();
                let is_agents = |at: &usize| frames.source(*at) == Some(Source::Agent);
                let said = (0..frames.len()).filter(is_agents).count();
                session.ambient("clock", format!("{said} frames ago it was noon."))?;
                let request = session.request(model)?;
                bodies.push(request.body.clone());
                session.answer(answer(model.api, &request.body))?;
            }
            Awaits::Results(calls) => {
                for call in calls {
                    let said = "High water at 06:10. ".repeat(1 + session.turns() as usize % 9 * 6);
                    session.tool_result(&call.id, format!("{said} [{}]", session.turns()))?;
                }
            }
            Awaits::User => {
                session.user(format!("And harbour {}?", session.history().frames().len()))?;
            }
        }
    }
    Ok(bodies)
}

/// A store that fails once it has so many steps: the process is dead from there on.
struct Dying {
    store: MemoryStore,
    most: u64,
}

impl SessionStore for Dying {
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
        if number > self.most {
            return Err(Error::new(ErrorKind::Io, "no space is left"));
        }
        self.store.append(number, step, now)
    }

    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        self.store.read(first, most)
    }
}

/// A store whose appends fail while it is away.
struct Away {
    store: MemoryStore,
    is_away: Arc<AtomicBool>,
}

impl SessionStore for Away {
    fn append(&mut self, number: u64, step: &[u8], now: Millis) -> Result<()> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "the store is away"));
        }
        self.store.append(number, step, now)
    }

    fn read(&mut self, first: u64, most: usize) -> Result<Vec<Vec<u8>>> {
        self.store.read(first, most)
    }
}

#[test]
fn an_answer_that_comes_again_is_not_that_to_the_request_of_others() {
    let (store, is_away) = (MemoryStore::default(), Arc::new(AtomicBool::new(false)));
    let away = Away { store: store.clone(), is_away: Arc::clone(&is_away) };
    let mut one = Session::open_with(away, options()).unwrap();
    one.user("Is it open?").unwrap();
    one.request(&model(Api::Chat)).unwrap();
    let mut other = Session::open_with(store, options()).unwrap();
    let said = |text: &str| {
        format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{text}"}}}}]}}"#)
    };
    other.answer(said("Yes.")).unwrap();
    other.user("And tomorrow?").unwrap();
    other.request(&model(Api::Chat)).unwrap();
    is_away.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        assert_eq!(one.answer(said("No.")).unwrap_err().kind(), ErrorKind::Io);
    }
    is_away.store(false, Ordering::Relaxed);
    assert_eq!(one.answer(said("No.")).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((one.unanswered(), one.paid_beside().len()), (Some(2), 1));
    assert_eq!(one.paid_beside()[0].turn, 1);
}

pub(super) fn steps(store: &MemoryStore) -> Vec<Vec<u8>> {
    store.clone().read(1, usize::MAX).unwrap()
}

#[test]
fn a_session_that_dies_after_any_step_goes_on_as_if_it_had_not() {
    for api in APIS {
        let whole = MemoryStore::default();
        let mut session = Session::open_with(whole.clone(), options()).unwrap();
        let bodies = live(&mut session, &model(api), TURNS).unwrap();
        let epochs = session.window().unwrap().transform().blocks().count();
        assert!(
            bodies.len() as u64 == TURNS && epochs > 0,
            "{api}: {} bodies, {epochs}",
            bodies.len()
        );

        // Every other step dies once, over all the APIs.
        let first = APIS.iter().position(|other| *other == api).unwrap();
        for most in (0..steps(&whole).len() as u64).skip(first).step_by(2 * APIS.len()) {
            let store = MemoryStore::default();
            let dying = Dying { store: store.clone(), most };
            let first = Session::open_with(dying, options());
            let first = first.and_then(|mut session| live(&mut session, &model(api), TURNS));
            assert_eq!(first.unwrap_err().kind(), ErrorKind::Io);
            let mut session = Session::open_with(store.clone(), options()).unwrap();
            let rest = live(&mut session, &model(api), TURNS).unwrap();
            let missing = bodies.len() - rest.len();
            assert_eq!(rest, bodies[missing..], "{api}: after {most}");
            assert_eq!(session.turns(), TURNS);
            assert_eq!(steps(&store).len(), steps(&whole).len(), "{api}: after {most}");
        }
    }
}

/// An engine that answers once another request was made, or after so many looks.
#[derive(Debug)]
struct Late(Arc<AtomicU64>);

impl Engine for Late {
    fn id(&self) -> &'static str {
        "late"
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let asked = self.0.load(Ordering::SeqCst);
        for _ in 0..2_000 {
            if self.0.load(Ordering::SeqCst) > asked + 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        OutlineEngine.summarize(job, counter)
    }
}

/// Opens what was kept up to each request, or every so many of them: asked again, it is that request.
fn asks_the_same(store: &MemoryStore, model: &Model, every: usize) {
    let steps = steps(store);
    let mut session = Session::open_with(store.clone(), options()).unwrap();
    let is_request = |step: &Vec<u8>| json::read(step).unwrap().get("request").is_some();
    let requests = steps.iter().enumerate().filter(|(_, step)| is_request(step)).zip(1..);
    for ((at, _), turn) in requests.step_by(every) {
        let mut until = MemoryStore::default();
        for (number, step) in (1..).zip(&steps[..=at]) {
            until.append(number, step, Millis::new(0)).unwrap();
        }
        let mut again = Session::open_with(until, options()).unwrap();
        assert_eq!(again.unanswered(), Some(turn));
        let request = again.request(model).unwrap();
        assert_eq!(request.body, session.sent(turn).unwrap(), "request {turn}");
    }
}

#[test]
fn a_summary_that_comes_late_takes_effect_at_a_later_request() {
    let (store, asked) = (MemoryStore::default(), Arc::new(AtomicU64::new(0)));
    let engine = Arc::new(Late(Arc::clone(&asked)));
    let late = SessionOptions { engine, beside: true, ..options() };
    let mut session = Session::open_with(store.clone(), late).unwrap();
    let model = Model::new(Api::Messages, "m", 6_000).output(1_000);
    let (mut late, mut blocks) = (0, 0);
    while asked.load(Ordering::SeqCst) < 60 {
        let turns = asked.fetch_add(1, Ordering::SeqCst) + 1;
        live(&mut session, &model, turns).unwrap();
        let last = steps(&store);
        let mut requests = last.iter().rev().map(|step| json::read(step).unwrap());
        let request = requests.find_map(|step| step.get("request").cloned()).unwrap();
        late += usize::from(request.to_string().contains("\"later\""));
        blocks = session.window().unwrap().transform().blocks().count();
    }
    assert!(late > 2 && blocks > 0, "{late} requests went without a summary, {blocks} blocks");
    asks_the_same(&store, &model, 1);
}

#[test]
fn a_session_opens_with_the_last_window_that_was_kept() {
    let store = MemoryStore::default();
    let mut session = Session::open_with(store.clone(), options()).unwrap();
    live(&mut session, &model(Api::Chat), 240).unwrap();
    let windows = steps(&store);
    let windows = windows.iter().filter(|step| json::read(step).unwrap().get("window").is_some());
    assert!(windows.count() > 1);
    asks_the_same(&store, &model(Api::Chat), 13);
}

#[test]
fn a_request_that_waits_is_the_same_request_again() {
    let store = MemoryStore::default();
    let mut session = Session::open_with(store.clone(), options()).unwrap();
    session.user("Is it open?").unwrap();
    let first = session.request(&model(Api::Chat)).unwrap();
    let again = session.request(&model(Api::Chat)).unwrap();
    assert_eq!(
        (first.body.as_str(), first.receipt.turn),
        (again.body.as_str(), again.receipt.turn)
    );
    drop(session);
    let mut session = Session::open_with(store, options()).unwrap();
    assert_eq!(session.awaits(), Awaits::Answer);
    let again = session.request(&model(Api::Chat)).unwrap();
    assert_eq!((again.body, again.receipt.turn, session.turns()), (first.body, 1, 1));
}

#[test]
fn the_members_of_a_request_are_those_of_its_api() {
    for (api, expected) in [
        (
            Api::Chat,
            r#"{"model":"m","max_completion_tokens":500,"temperature":0,"tools":[{"type":"function","function":{"name":"tide","description":"When high water is.","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}]}"#,
        ),
        (
            Api::Messages,
            r#"{"model":"m","max_tokens":500,"temperature":0,"tools":[{"name":"tide","description":"When high water is.","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}"#,
        ),
        (
            Api::Responses,
            r#"{"model":"m","max_output_tokens":500,"temperature":0,"tools":[{"type":"function","name":"tide","description":"When high water is.","parameters":{"type":"object"},"strict":false}],"input":[{"type":"message","role":"system","content":"Be brief."},{"type":"message","role":"user","content":"Hi"}]}"#,
        ),
    ] {
        let mut session = Session::open_with(MemoryStore::default(), options()).unwrap();
        session.system("Be brief.").unwrap();
        session.tools(tools()).unwrap();
        session.user("Hi").unwrap();
        let request = session.request(&model(api).with("temperature", 0)).unwrap();
        assert_eq!(request.body, expected);
        assert!(request.receipt.change.is_none());
    }
}

#[test]
fn an_answer_says_its_text_and_its_calls() {
    for api in APIS {
        let mut session = Session::open_with(MemoryStore::default(), options()).unwrap();
        session.user("Hi").unwrap();
        let request = session.request(&model(api)).unwrap();
        let said = session.answer(answer(api, &request.body)).unwrap();
        let SessionAnswer { text, calls, usage, cut, .. } = said;
        assert!(text.starts_with("Looked 0 times."), "{text}");
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].id.as_str(), calls[0].name.as_str()), ("call-0", "tide"));
        assert!(calls[0].arguments.get("harbour").and_then(Value::as_u64).is_some());
        assert_eq!((usage.unwrap().input, cut), (Some(9), None));
        assert_eq!(session.awaits(), Awaits::Results(calls));
        let wrong = session.tool_result("call-7", "?").unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::OutOfRange);
        session.tool_result("call-0", "06:10").unwrap();
        assert_eq!(session.awaits(), Awaits::Answer);
        let next = session.request(&model(api)).unwrap();
        let change = next.receipt.change.unwrap();
        assert!(change.prefix.divergence.is_none(), "{api}: {:?}", change.prefix);
    }
}

#[test]
fn what_is_no_answer_leaves_the_request_waiting() {
    let mut session = Session::open_with(MemoryStore::default(), options()).unwrap();
    assert_eq!(session.answer("{}").unwrap_err().kind(), ErrorKind::Other);
    session.user("Hi").unwrap();
    let request = session.request(&model(Api::Messages)).unwrap();
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let error = session.answer(overloaded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Provider);
    assert_eq!(
        error.to_string(),
        "the provider answered with an error: overloaded_error: Overloaded"
    );
    for (body, kind) in [
        (&b"<html>bad gateway</html>"[..], ErrorKind::Shape),
        (b"", ErrorKind::Shape),
        (b"[1]", ErrorKind::Shape),
        (b"{\"a\":1}", ErrorKind::Shape),
        (b"\xff", ErrorKind::Utf8),
    ] {
        assert_eq!(session.answer(body).unwrap_err().kind(), kind, "{body:?}");
    }
    assert_eq!(session.awaits(), Awaits::Answer);
    assert_eq!(session.request(&model(Api::Messages)).unwrap().body, request.body);
}

#[test]
fn what_is_said_while_an_answer_is_awaited_comes_behind_it() {
    let store = MemoryStore::default();
    let mut session = Session::open_with(store.clone(), options()).unwrap();
    session.user("Hi").unwrap();
    session.request(&model(Api::Chat)).unwrap();
    session.user("And tomorrow?").unwrap();
    let hello = r#"{"choices":[{"message":{"role":"assistant","content":"Hello."}}]}"#;
    session.answer(hello).unwrap();
    assert_eq!(session.awaits(), Awaits::Answer);
    let body = session.request(&model(Api::Chat)).unwrap().body;
    let at = |text: &str| body.find(text).unwrap();
    assert!(at("Hi") < at("Hello.") && at("Hello.") < at("And tomorrow?"), "{body}");
    let mut opened = Session::open_with(store, options()).unwrap();
    assert_eq!(opened.request(&model(Api::Chat)).unwrap().body, body);
}

#[test]
fn a_session_that_goes_back_makes_the_request_of_then() {
    for api in APIS {
        let store = MemoryStore::default();
        let mut session = Session::open_with(store.clone(), options()).unwrap();
        let large = Model::new(api, "m", 1_000_000);
        let bodies = live(&mut session, &large, 8).unwrap();
        for turn in [6, 3, 3] {
            session.rewind(turn).unwrap();
            assert_eq!(session.awaits(), Awaits::Answer);
            let body = session.request(&large).unwrap().body;
            // The clock stands last, and says another time.
            let then = bodies[turn as usize - 1].split("frames ago").next().unwrap();
            let (then, _) = then.rsplit_once(',').unwrap();
            assert!(body.starts_with(then), "{api} {turn}: {then}\n{body}");
            session.answer(answer(api, &body)).unwrap();
            let mut again = Session::open_with(store.clone(), options()).unwrap();
            assert_eq!(again.awaits(), session.awaits(), "{api} {turn}");
            if let Awaits::Results(calls) = again.awaits() {
                session.tool_result(&calls[0].id, "06:10").unwrap();
                assert_eq!(again.catch_up().unwrap(), 1);
                assert_eq!(again.awaits(), session.awaits(), "{api} {turn}");
            }
        }
        assert_eq!(session.rewind(7).unwrap_err().kind(), ErrorKind::OutOfRange, "left behind");
        assert_eq!(session.rewind(99).unwrap_err().kind(), ErrorKind::OutOfRange);
        assert_eq!(session.rewind(0).unwrap_err().kind(), ErrorKind::OutOfRange);

        let mut branch = session.branch(3, MemoryStore::default()).unwrap();
        assert_eq!((branch.turns(), branch.awaits()), (2, Awaits::Answer));
        assert_eq!(branch.sent(2).unwrap(), bodies[1]);
        let full = session.branch(3, store.clone()).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Conflict);
    }
}

#[test]
fn what_cannot_take_effect_is_refused_before_it_is_kept() {
    let store = MemoryStore::default();
    let mut session = Session::open_with(store.clone(), options()).unwrap();
    let gone = || Frame::new(0, Source::Environment).with(FacetOp::remove("nobody"));
    let mut ahead = Frame::new(0, Source::Environment);
    ahead.events.push(Branch::event([(7, 9)]));
    for _ in 0..2 {
        assert_eq!(session.push(gone()).unwrap_err().kind(), ErrorKind::UnknownFacet);
        assert_eq!(session.push(ahead.clone()).unwrap_err().kind(), ErrorKind::OutOfRange);
        // Once more while an answer is awaited.
        session.user("Hi").unwrap();
        session.request(&model(Api::Chat)).unwrap();
    }
    assert_eq!(steps(&store).len(), 4);
    let again = Session::open_with(store, options()).unwrap();
    assert_eq!(again.unanswered(), session.unanswered());
}

#[test]
fn another_model_goes_on_with_the_same_session() {
    let mut session = Session::open_with(MemoryStore::default(), options()).unwrap();
    live(&mut session, &model(Api::Chat), 10).unwrap();
    let small = Model::new(Api::Messages, "n", 1_500).output(200);
    let request = session.request(&small).unwrap();
    assert!(request.receipt.epoch.is_some() || request.receipt.blocks > 0);
    assert_eq!(request.receipt.room, 1_300);
    assert!(request.receipt.tokens.total() <= 1_300, "{:?}", request.receipt.tokens);
    let parsed = json::read(request.body.as_bytes()).unwrap();
    assert_eq!(parsed.str_at("model"), Some("n"));
    let mut object = Object::new();
    object.put("type", "ephemeral");
    assert!(request.body.contains(&Value::from(object).to_string()));
}

/// The bodies of answers in the recorded wires: the API, and the body.
fn recorded_answers() -> Vec<(String, Api, String)> {
    let mut found = Vec::new();
    for folder in ["A-openai-chat", "B-anthropic", "C-codex-responses"] {
        let Some(folder) = afterimage_testkit::data::recordings(folder) else { continue };
        for path in afterimage_testkit::data::files_under(&folder) {
            let bytes = std::fs::read(&path).unwrap();
            let Ok(whole) = json::read(&bytes) else { continue };
            let interactions = whole.get("interactions").and_then(Value::as_array);
            for interaction in interactions.unwrap_or_default() {
                let status = interaction.pointer("/status/code").and_then(Value::as_u64);
                let is_whole = status == Some(200);
                // Sessions write these alone.
                let api = Api::of_uri(interaction.str_at("uri").unwrap_or_default())
                    .filter(|api| matches!(api, Api::Chat | Api::Messages | Api::Responses));
                if let (Some(api), true, Some(body)) = (api, is_whole, interaction.get("response"))
                {
                    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                    found.push((path.display().to_string(), api, body));
                }
            }
        }
    }
    found
}

fn asked(api: Api) -> Session {
    let mut session = Session::open_with(MemoryStore::default(), options()).unwrap();
    session.user("Go on.").unwrap();
    session.request(&Model::new(api, "m", 10_000_000)).unwrap();
    session
}

#[allow(clippy::too_many_lines, reason = "one stream after the other")]
/// The events in which a provider would have streamed an answer, each with the words that it says.
fn events_of(api: Api, response: &serde_json::Value) -> Vec<(String, String)> {
    let mut events = Vec::new();
    let mut push = |data: serde_json::Value, said: &str| {
        events.push((format!("data: {data}\n\n"), said.to_owned()));
    };
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    match api {
        Api::Chat => {
            let message = &response["choices"][0]["message"];
            let piece =
                |delta: serde_json::Value| json!({"choices": [{"index": 0, "delta": delta}]});
            push(piece(json!({"role": "assistant"})), "");
            for key in ["reasoning_content", "content"] {
                for text in pieces(message[key].as_str().unwrap_or_default()) {
                    push(piece(json!({ key: text })), text);
                }
            }
            for (index, call) in list(&message["tool_calls"]).into_iter().enumerate() {
                let mut begun = call.clone();
                begun["index"] = index.into();
                begun["function"]["arguments"] = "".into();
                push(piece(json!({"tool_calls": [begun]})), "");
                for text in pieces(call["function"]["arguments"].as_str().unwrap_or_default()) {
                    let call = json!({"index": index, "function": {"arguments": text}});
                    push(piece(json!({"tool_calls": [call]})), text);
                }
            }
            push(json!({"choices": [], "usage": response["usage"]}), "");
        }
        Api::Messages => {
            let mut begun = response.clone();
            begun["content"] = json!([]);
            push(json!({"type": "message_start", "message": begun}), "");
            for (index, block) in list(&response["content"]).into_iter().enumerate() {
                let mut begun = block.clone();
                let (key, delta) = match block["type"].as_str().unwrap() {
                    "text" => ("text", "text_delta"),
                    "thinking" => ("thinking", "thinking_delta"),
                    "tool_use" | "server_tool_use" => ("input", "input_json_delta"),
                    _ => ("", ""),
                };
                let text = match &block[key] {
                    serde_json::Value::String(text) => text.clone(),
                    input => input.to_string(),
                };
                if !key.is_empty() {
                    begun[key] = if key == "input" { json!({}) } else { "".into() };
                }
                push(
                    json!({"type": "content_block_start", "index": index, "content_block": begun}),
                    "",
                );
                let member = if key == "input" { "partial_json" } else { key };
                for text in pieces(&text).filter(|_| !key.is_empty()) {
                    let delta = json!({"type": delta, member: text});
                    push(
                        json!({"type": "content_block_delta", "index": index, "delta": delta}),
                        text,
                    );
                }
                push(json!({"type": "content_block_stop", "index": index}), "");
            }
            push(json!({"type": "message_delta", "delta": {}, "usage": response["usage"]}), "");
            push(json!({"type": "message_stop"}), "");
        }
        _ => {
            push(json!({"type": "response.created", "response": {"id": response["id"]}}), "");
            for (index, item) in list(&response["output"]).into_iter().enumerate() {
                let mut begun = item.clone();
                let event = |name: &str| json!({"type": name, "output_index": index, "content_index": 0, "summary_index": 0});
                let (text, name) = match item["type"].as_str().unwrap() {
                    "message" => {
                        begun["content"] = json!([]);
                        (item["content"][0]["text"].clone(), "response.output_text.delta")
                    }
                    "function_call" => {
                        begun["arguments"] = "".into();
                        (item["arguments"].clone(), "response.function_call_arguments.delta")
                    }
                    "reasoning" => {
                        begun["summary"] = json!([]);
                        (
                            item["summary"][0]["text"].clone(),
                            "response.reasoning_summary_text.delta",
                        )
                    }
                    _ => (serde_json::Value::Null, ""),
                };
                let mut added = event("response.output_item.added");
                added["item"] = begun;
                push(added, "");
                for text in pieces(text.as_str().unwrap_or_default()) {
                    let mut piece = event(name);
                    piece["delta"] = text.into();
                    push(piece, text);
                }
                let mut done = event("response.output_item.done");
                done["item"] = item;
                push(done, "");
            }
            push(json!({"type": "response.completed", "response": response}), "");
        }
    }
    if api == Api::Chat {
        events.push(("data: [DONE]\n\n".to_owned(), String::new()));
    }
    events
}

/// A text in pieces of some characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(40).map_or(rest.len(), |(at, _)| at);
        let (piece, left) = rest.split_at(end);
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

#[test]
fn recorded_answers_are_taken_and_stand_in_the_next_request() {
    let answers = recorded_answers();
    let mut taken = 0;
    for (path, api, body) in &answers {
        let mut session = asked(*api);
        let answer = session.answer(body).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(answer.cut, None, "{path}");
        for call in &answer.calls {
            session.tool_result(&call.id, "done").unwrap();
        }
        session.user("And then?").unwrap();
        let request = session.request(&Model::new(*api, "m", 10_000_000)).unwrap();
        let change = request.receipt.change.unwrap();
        assert!(change.prefix.divergence.is_none(), "{path}: {:?}", change.prefix.divergence);
        let mut value: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        let verdict = match api {
            Api::Chat => validators::chat(&value["messages"]),
            Api::Messages => {
                let members = value.as_object_mut().unwrap();
                members.retain(|key, _| matches!(key.as_str(), "system" | "messages"));
                validators::anthropic(&value)
            }
            _ => validators::responses(&value["input"]),
        };
        assert!(verdict.is_ok(), "{path}: {verdict:?}");
        taken += 1;
    }
    eprintln!("{taken} recorded answers");
    assert!(taken > 30 || answers.is_empty(), "{taken}");
}

#[test]
fn an_answer_that_is_cut_at_any_event_loses_no_word() {
    let mut cuts = 0;
    for (path, api, body) in recorded_answers() {
        let whole = asked(api).answer(&body).unwrap();
        let events = events_of(api, &serde_json::from_str(&body).unwrap());
        let mut streamed = asked(api);
        let mut stream = streamed.answer_stream();
        let mut shown = String::new();
        for (event, _) in &events {
            for piece in event.as_bytes().chunks(7) {
                shown.push_str(&stream.push(piece).text);
            }
        }
        let SessionAnswer { text, calls, cut, .. } = stream.end().unwrap();
        let bare = |text: &str| text.replace(['\n', ' '], "");
        assert_eq!(bare(&shown), bare(&text), "{path}");
        assert_eq!((text, calls, cut), (whole.text, whole.calls, None), "{path}");

        let mut said: Vec<&str> = Vec::new();
        // Whole pages of what a provider's tools found have nothing to cut.
        for at in 1..events.len().min(200) {
            said.push(&events[at - 1].1);
            let mut session = asked(api);
            let mut stream = session.answer_stream();
            events[..at].iter().for_each(|(event, _)| drop(stream.push(event)));
            match stream.cut("the connection was reset") {
                Ok(answer) => {
                    cuts += 1;
                    assert_eq!(answer.cut.as_deref(), Some("the connection was reset"));
                    assert!(answer.calls.is_empty());
                    let frames = session.history().frames();
                    let cut = |at| frames.get(at)?.imported.as_ref()?.answer.as_ref()?.cut.clone();
                    let marked: Vec<_> = (0..frames.len()).filter_map(cut).collect();
                    assert_eq!(marked, ["the connection was reset".into()], "{path}: {at}");
                    let kept: String = (0..frames.len())
                        .filter(|at| frames.source(*at) == Some(Source::Agent))
                        .filter_map(|at| Some(frames.snapshot(at)?.text().to_owned()))
                        .collect();
                    // Arguments that came whole are written anew.
                    let bare = |text: &str| text.replace(['\\', '"', '\n', ' '], "");
                    let bare_kept = bare(&kept);
                    for said in &said {
                        assert!(bare_kept.contains(&bare(said)), "{path}: {said:?} in {kept:?}");
                    }
                    assert_eq!(session.awaits(), Awaits::User);
                }
                Err(error) => assert!(said.concat().is_empty(), "{path}: {at}: {error}"),
            }
        }
    }
    eprintln!("{cuts} cuts");
}

#[test]
fn bytes_that_are_no_text_lose_no_word_of_a_stream() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let streamed = |pieces: &[&[u8]]| {
        let mut session = asked(Api::Chat);
        let mut stream = session.answer_stream();
        pieces.iter().for_each(|piece| drop(stream.push(piece)));
        stream.end().unwrap()
    };
    let (first, second) = (event("High water"), event(" at five."));
    let answer = streamed(&[first.as_bytes(), second.as_bytes(), end.as_bytes(), b"\xff\n"]);
    assert_eq!((answer.text.as_str(), answer.cut), ("High water at five.", None));

    let broken = second.replace(" at ", " \u{1} ").into_bytes();
    let broken: Vec<u8> = broken.iter().map(|of| if *of == 1 { 0xff } else { *of }).collect();
    let answer = streamed(&[first.as_bytes(), &broken, end.as_bytes()]);
    assert_eq!(answer.text, "High water \u{fffd} five.");
    assert!(answer.cut.unwrap().contains("UTF-8"));
}

/// The example is killed, goes on, and has sent byte for byte what it would have sent otherwise. Cargo
/// builds the example with the tests, but not with this file alone.
#[cfg(feature = "storage")]
#[test]
fn the_example_sends_the_same_wherever_it_was_killed() {
    use std::{path::Path, process::Command, process::Stdio, time::Duration};

    use afterimage::session::JournalStore;

    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    program.push(format!("agent{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        eprintln!("skipped: the example is not built");
        return;
    }
    let kills = std::env::var("AFTERIMAGE_KILLS").ok().and_then(|text| text.parse().ok());
    let scratch = tempfile::tempdir().unwrap();
    let run = |folder: &Path, provider: &str| {
        std::fs::create_dir_all(folder).unwrap();
        let mut command = Command::new(&program);
        command.arg(provider).current_dir(folder).stdout(Stdio::null()).spawn().unwrap()
    };
    let bodies = |folder: &Path| {
        let mut session = Session::open(JournalStore::open(folder.join("agent")).unwrap()).unwrap();
        let turns = session.turns();
        (1..=turns).map(|turn| session.sent(turn).unwrap()).collect::<Vec<_>>()
    };
    for provider in ["anthropic", "openai", "responses"] {
        let whole = scratch.path().join(provider).join("whole");
        assert!(run(&whole, provider).wait().unwrap().success());
        let expected = bodies(&whole);
        assert!(expected.len() == 80 && expected.iter().any(|body| body.contains("[Summary;")));
        // A session that came to its end in spite of the kills is compared, and another one begun.
        let (kills, mut dead, mut round) = (kills.unwrap_or(30_u64).div_ceil(3), 0, 0);
        for session in 0.. {
            let killed = scratch.path().join(provider).join(format!("killed-{session}"));
            let is_whole = loop {
                let mut child = run(&killed, provider);
                if dead == kills {
                    break child.wait().unwrap().success();
                }
                std::thread::sleep(Duration::from_micros(7_919 * (round % 97) % 400_000));
                round += 1;
                child.kill().unwrap();
                if child.wait().unwrap().success() {
                    break true;
                }
                dead += 1;
            };
            assert!(is_whole, "{provider}: after {dead} kills");
            let found = bodies(&killed);
            for (turn, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(
                    found,
                    expected,
                    "{provider}: request {}, {dead} times killed",
                    turn + 1
                );
            }
            assert_eq!(found.len(), expected.len(), "{provider}: {dead} times killed");
            if dead == kills {
                break;
            }
        }
        eprintln!("{provider}: {dead} times killed in {round} runs");
    }
}

#[cfg(all(feature = "rules", feature = "bpe"))]
#[test]
fn a_receipt_says_what_a_cache_will_serve_and_what_that_costs() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    let model = Model::anthropic("claude-sonnet-4-5", 200_000);
    session.system(&"Answer in one line, in the words of the harbour. ".repeat(400)).unwrap();
    session.user("Is it open?").unwrap();
    let first = session.request(&model).unwrap().receipt.cache.unwrap();
    assert_eq!(first.read, 0);
    assert!(first.write > 3_000 && first.price.is_some(), "{first:?}");
    let usage = format!(
        r#"{{"input_tokens":3,"cache_creation_input_tokens":{},"output_tokens":2}}"#,
        first.write
    );
    let yes = format!(r#"{{"content":[{{"type":"text","text":"Yes."}}],"usage":{usage}}}"#);
    session.answer(yes).unwrap();
    session.user("Until when?").unwrap();
    let second = session.request(&model).unwrap().receipt;
    let owners: Vec<&str> = second.owners.keys().map(String::as_str).collect();
    assert_eq!(owners, ["event", "speech", "system"]);
    assert_eq!(second.owners.values().sum::<u64>(), second.tokens.system + second.tokens.messages);
    let second = second.cache.unwrap();
    assert!(second.read >= first.write - 10 && second.write < 100, "{second:?}");
    let other = Model::anthropic("nobody-knows-this", 200_000);
    assert!(session.request(&other).unwrap().receipt.cache.is_err());
}

#[test]
fn a_session_that_was_read_asks_with_the_context_that_it_had() {
    let mut read = 0;
    for folder in ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"] {
        let Some(folder) = afterimage_testkit::data::recordings(folder) else { continue };
        for path in afterimage_testkit::data::files_under(&folder) {
            // What is longer takes too long here.
            let is_short = std::fs::metadata(&path).unwrap().len() < 400_000;
            let Some(transcript) = Transcript::open(&path).ok().filter(|_| is_short) else {
                continue;
            };
            let records: Vec<Record> = transcript.filter_map(Result::ok).collect();
            let Some(name) = records.first().map(|record| record.session.clone()) else { continue };
            let records: Vec<Record> =
                records.into_iter().filter(|record| record.session == name).collect();

            let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
            let mut history = History::new();
            for record in &records {
                hud.capture(&mut history, record.frame.clone(), Millis::new(0)).unwrap();
            }
            for (api, form) in
                APIS.into_iter().zip([Form::OpenaiChat, Form::Anthropic, Form::Responses])
            {
                let fitter = RequestFitter::new(hud.clone(), Budget::once(u64::MAX / 8)).form(form);
                let fitted = fitter.fit(&mut history, &OutlineEngine, Millis::new(0), |_| {});
                let expected = fitted.unwrap().exported.unwrap().value();
                let store = MemoryStore::default();
                let mut session = Session::open_with(store.clone(), options()).unwrap();
                session.read(records.iter().cloned().map(Ok)).unwrap();
                let model = Model::new(api, "m", u64::MAX / 8);
                let list = expected.get("messages").unwrap_or(&expected);
                if list.as_array().is_some_and(<[_]>::is_empty) {
                    // A recording without a message, or with the system prompt alone.
                    assert_eq!(session.request(&model).unwrap_err().kind(), ErrorKind::Other);
                    continue;
                }
                let body = session.request(&model).unwrap().body;
                let value = json::read(body.as_bytes()).unwrap();
                // A session marks the end of the last request too.
                let (found, expected) = if api == Api::Messages {
                    (conversation(&body), conversation(&expected.to_string()))
                } else {
                    let list = value.get(api.conversation_key()).unwrap().to_string();
                    let of = |list: &str| conversation(&format!(r#"{{"input":{list}}}"#));
                    (of(&list), of(&expected.to_string()))
                };
                assert_eq!(found, expected, "{} {api}", path.display());
                let mut again = Session::open_with(store, options()).unwrap();
                assert_eq!(again.request(&model).unwrap().body, body, "{} {api}", path.display());
                read += 1;
            }
        }
    }
    eprintln!("{read} sessions were read");
}
