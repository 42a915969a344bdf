//! What else a session remembers, and what it refuses.

use std::collections::BTreeMap;

use afterimage::{
    ErrorKind, json,
    observe::{Pointer, Policy},
    session::{Awaits, MemoryStore, Model, Session, Tool, bridge::checkpoint::DraftOptions},
    timeline::{Data, Event, TurnRecord},
    transcript::Api,
};

const CALL: &str = r#"{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"get_map","input":{"zone":1}}],"stop_reason":"tool_use"}"#;
const SAID: &str = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Leave at five."}],"stop_reason":"end_turn"}"#;

fn model() -> Model {
    Model::anthropic("m", 8_000)
}

fn schema() -> json::Value {
    json::read(br#"{"type": "object"}"#).unwrap()
}

fn item(name: &str) -> TurnRecord {
    let data = Data::from_iter([("item", Data::from(name))]);
    TurnRecord::new("player").with_event(Event::new("item_gain", data))
}

#[test]
fn what_tools_told_is_in_the_next_request_and_after_a_restart() {
    let store = MemoryStore::default();
    let mut session = Session::open(store.clone()).unwrap();
    session.observe(Policy::default()).unwrap();
    session.tools([Tool::new("get_map", "The map.", schema())]).unwrap();
    session.user("Where is Sol?").unwrap();
    session.request(&model()).unwrap();
    let answer = session.answer(CALL).unwrap();
    session.tool_result("c1", r#"{"systems": [{"id": "sol"}]}"#).unwrap();
    let request = session.request(&model()).unwrap();
    assert!(request.body.contains("Systems: 1 entries"), "{}", request.body);

    let arguments = answer.calls[0].arguments.clone();
    let mut again = Session::open(store).unwrap();
    assert_eq!(again.request(&model()).unwrap().body, request.body);
    for session in [&mut session, &mut again] {
        let known = session.freshness("get_map", &arguments).unwrap().unwrap();
        assert!(known.is_fresh(), "{}", known.text());
        assert!(session.observations().is_some());
    }
}

#[test]
fn what_another_policy_forgets_is_shown_no_more() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.observe(Policy::default()).unwrap();
    session.tools([Tool::new("get_map", "The map.", schema())]).unwrap();
    session.user("Where is Sol?").unwrap();
    session.request(&model()).unwrap();
    session.answer(CALL).unwrap();
    session.tool_result("c1", r#"{"systems": [{"id": "sol"}]}"#).unwrap();
    assert!(session.request(&model()).unwrap().body.contains("Systems: 1 entries"));
    session.answer(SAID).unwrap();
    let other = Policy { signed_out: "Nothing is known.".to_owned(), ..Policy::default() };
    session.observe(other).unwrap();
    session.user("And now?").unwrap();
    assert!(!session.request(&model()).unwrap().body.contains("Systems: 1 entries"));
}

#[test]
fn a_result_whose_account_has_no_name_that_can_be_is_read_and_not_observed() {
    for name in [String::new(), "x".repeat(10_000)] {
        let store = MemoryStore::default();
        let mut session = Session::open(store.clone()).unwrap();
        let usernames = vec![Pointer::parse("/username").unwrap()];
        session.observe(Policy { usernames, ..Policy::default() }).unwrap();
        session.tools([Tool::new("get_map", "The map.", schema())]).unwrap();
        session.user("Where is Sol?").unwrap();
        session.request(&model()).unwrap();
        session.answer(CALL).unwrap();
        let result = format!(r#"{{"username": "{name}", "systems": [{{"id": "sol"}}]}}"#);
        session.tool_result("c1", result).unwrap();
        assert_eq!(session.awaits(), Awaits::Answer);
        let body = session.request(&model()).unwrap().body;
        assert!(body.contains("sol") && !body.contains("Systems: 1 entries"), "{body}");
        assert_eq!(Session::open(store).unwrap().request(&model()).unwrap().body, body);
    }
}

#[test]
fn what_holds_again_is_said_again_though_something_else_waits() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.ambient("clock", "noon").unwrap();
    session.user("Is it open?").unwrap();
    session.request(&model()).unwrap();
    session.ambient("clock", "one").unwrap();
    session.ambient("clock", "noon").unwrap();
    session.answer(SAID).unwrap();
    session.user("Until when?").unwrap();
    let body = session.request(&model()).unwrap().body;
    assert!(body.contains("noon") && !body.contains("one\""), "{body}");
}

#[test]
fn other_tools_make_another_request_and_the_same_after_a_restart() {
    let store = MemoryStore::default();
    let mut session = Session::open(store.clone()).unwrap();
    session.tools([Tool::new("get_map", "The map.", schema())]).unwrap();
    session.user("Is it open?").unwrap();
    session.request(&model()).unwrap();
    session.ambient("clock", "noon").unwrap();
    session.tools([Tool::new("get_tide", "The tide.", schema())]).unwrap();
    let body = session.request(&model()).unwrap().body;
    assert!(body.contains("get_tide") && body.contains("noon"));
    session.answer(SAID).unwrap();
    session.user("Until when?").unwrap();
    let last = session.request(&model()).unwrap().body;
    let mut again = Session::open(store).unwrap();
    assert_eq!(again.request(&model()).unwrap().body, last);
    assert_eq!((again.turns(), again.sent(2).unwrap()), (3, body));
}

#[test]
fn of_many_answers_the_last_are_known() {
    let store = MemoryStore::default();
    let mut session = Session::open(store.clone()).unwrap();
    session.observe(Policy::default()).unwrap();
    session.tools([Tool::new("get_map", "The map.", schema())]).unwrap();
    session.user("Where is Sol?").unwrap();
    for zone in 0..300 {
        session.request(&model()).unwrap();
        session
            .answer(CALL.replace("1}", &format!("{zone}}}")).replace("c1", &format!("c{zone}")))
            .unwrap();
        session.tool_result(&format!("c{zone}"), format!(r#"{{"zone": {zone}}}"#)).unwrap();
    }
    let mut again = Session::open(store).unwrap();
    for session in [&mut session, &mut again] {
        let mut knows = |zone: u64| {
            let arguments = json::read(format!(r#"{{"zone":{zone}}}"#).as_bytes()).unwrap();
            session.freshness("get_map", &arguments).unwrap().unwrap().is_fresh()
        };
        let known: Vec<u64> = (0..300).filter(|zone| knows(*zone)).collect();
        assert_eq!(known, (44..300).collect::<Vec<_>>());
    }
}

#[test]
fn a_world_goes_back_with_its_session() {
    let store = MemoryStore::default();
    let mut session = Session::open(store.clone()).unwrap();
    let began = Data::from_iter([("player", Data::object())]);
    assert_eq!(session.turn(item("rope")).unwrap_err().kind(), ErrorKind::Other);
    session.begin_world(began.clone()).unwrap();
    session.begin_world(began).unwrap();
    session.user("Take the rope.").unwrap();
    session.turn(item("rope")).unwrap();
    session.request(&model()).unwrap();
    session.answer(SAID).unwrap();
    session.user("And the lamp.").unwrap();
    session.turn(item("lamp")).unwrap();
    session.request(&model()).unwrap();
    session.answer(SAID).unwrap();
    let state = |session: &Session| session.world().unwrap().state().to_string();
    assert_eq!(state(&session), r#"{"player":{"inventory":["rope","lamp"]}}"#);

    session.rewind(1).unwrap();
    assert_eq!(state(&session), r#"{"player":{"inventory":["rope"]}}"#);
    assert_eq!(session.world().unwrap().last_turn(), 3);
    let again = Session::open(store).unwrap();
    assert_eq!(state(&again), state(&session));
    assert_eq!(again.world().unwrap().last_turn(), 3);
}

#[test]
fn a_checkpoint_says_what_is_in_force() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.user("Write the tide tables for Cuxhaven.").unwrap();
    session.request(&model()).unwrap();
    session.answer(SAID).unwrap();
    let options = DraftOptions::new("chk-1").created("2026-01-05T10:00:00Z");
    let checkpoint = session.checkpoint(&options).unwrap();
    assert!(checkpoint.checkpoint.text().contains("Write the tide tables for Cuxhaven."));
}

#[test]
fn what_no_provider_takes_is_refused_before_it_is_asked() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    assert_eq!(session.request(&model()).unwrap_err().kind(), ErrorKind::Other);
    assert_eq!(session.user(" ").unwrap_err().kind(), ErrorKind::Shape);
    let tool = |name: &str| Tool::new(name, "", schema());
    for tools in [
        vec![tool("a"), tool("a")],
        vec![tool("")],
        vec![tool("has space")],
        vec![tool("ü")],
        vec![tool(&"a".repeat(129))],
        vec![Tool::new("a", "", true.into())],
    ] {
        assert_eq!(session.tools(tools.clone()).unwrap_err().kind(), ErrorKind::Shape, "{tools:?}");
    }
    session.user("Is it open?").unwrap();
    for key in ["messages", "tools", "system", "model", "max_tokens"] {
        let error = session.request(&model().with(key, 5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape, "{key}");
    }
    session.request(&model()).unwrap();
    let of_user = SAID.replace("assistant", "user");
    assert_eq!(session.answer(of_user).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(session.unanswered(), Some(1));
}

#[test]
fn an_answer_says_why_it_stopped_in_each_api() {
    for (model, body, stop) in [
        (
            Model::chat("m", 8_000),
            r#"{"choices":[{"finish_reason":"length","message":{"role":"assistant","content":"a"}}]}"#,
            "length",
        ),
        (
            Model::responses("m", 8_000),
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}"#,
            "max_output_tokens",
        ),
        (
            Model::anthropic("m", 8_000),
            r#"{"role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"pause_turn"}"#,
            "pause_turn",
        ),
    ] {
        let mut session = Session::open(MemoryStore::default()).unwrap();
        session.user("Go").unwrap();
        session.request(&model).unwrap();
        assert_eq!(session.answer(body).unwrap().stop.as_deref(), Some(stop));
        let goes_on = stop == "pause_turn";
        assert_eq!(session.awaits() == Awaits::Answer, goes_on, "{stop}");
    }
}

#[test]
fn a_response_that_fails_behind_its_first_words_is_cut() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.user("Go").unwrap();
    session.request(&Model::responses("m", 8_000)).unwrap();
    let failed = r#"{"status":"failed","error":{"code":"server_error","message":"oops"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"The tide"}]}]}"#;
    let answer = session.answer(failed).unwrap();
    assert_eq!(answer.text, "The tide");
    assert_eq!(answer.cut.as_deref(), Some("the answer ended with server_error: oops"));
}

#[test]
fn what_holds_now_waits_for_the_answer_and_goes_with_a_branch() {
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.user("Is it open?").unwrap();
    session.ambient("clock", "It is 11:40.").unwrap();
    let request = session.request(&model()).unwrap();
    session.ambient("clock", "It is 11:41.").unwrap();
    assert_eq!(session.request(&model()).unwrap().body, request.body);
    let mut branch = session.branch(1, MemoryStore::default()).unwrap();
    assert_eq!(branch.request(&model()).unwrap().body, request.body);
    session.answer(SAID).unwrap();
    session.user("And now?").unwrap();
    let next = session.request(&model()).unwrap();
    assert!(next.body.contains("11:41") && !next.body.contains("11:40"));
    assert!(request.receipt.total > 0);
}

#[test]
fn results_of_calls_with_one_id_go_to_them_in_order() {
    let calls = |call: &dyn Fn(u8) -> String| [1, 2, 3].map(call).join(",");
    let chat = calls(&|n| {
        format!(
            r#"{{"id":"c","type":"function","function":{{"name":"t","arguments":"{{\"n\":{n}}}"}}}}"#
        )
    });
    let messages =
        calls(&|n| format!(r#"{{"type":"tool_use","id":"c","name":"t","input":{{"n":{n}}}}}"#));
    let responses = calls(&|n| {
        format!(
            r#"{{"type":"function_call","id":"f{n}","call_id":"c","name":"t","arguments":"{{\"n\":{n}}}"}}"#
        )
    });
    for (api, answer) in [
        (
            Api::Chat,
            format!(
                r#"{{"choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{chat}]}}}}]}}"#
            ),
        ),
        (
            Api::Messages,
            format!(r#"{{"type":"message","role":"assistant","content":[{messages}]}}"#),
        ),
        (Api::Responses, format!(r#"{{"output":[{responses}]}}"#)),
    ] {
        let store = MemoryStore::default();
        let model = Model::new(api, "m", 8_000);
        let mut session = Session::open(store.clone()).unwrap();
        session.user("Go.").unwrap();
        session.request(&model).unwrap();
        let calls = session.answer(answer).unwrap().calls;
        let mut session = Session::open(store).unwrap();
        assert_eq!(session.awaits(), Awaits::Results(calls.clone()));
        for call in &calls {
            session.tool_result(&call.id, format!("result of {}", call.arguments)).unwrap();
        }
        let body = json::read(session.request(&model).unwrap().body.as_bytes()).unwrap();
        // What a provider pairs by the ids.
        let (mut asked, mut answered) = (BTreeMap::new(), BTreeMap::new());
        pair(&body, &mut asked, &mut answered);
        assert_eq!(asked.len(), 3, "{api:?}: {body}");
        for (id, arguments) in asked {
            assert_eq!(answered[&id], format!("result of {arguments}"), "{api:?}: {body}");
        }
    }
}

/// The arguments of each call in a body, and the text of each result, by their ids.
fn pair(
    value: &json::Value,
    asked: &mut BTreeMap<String, String>,
    answered: &mut BTreeMap<String, String>,
) {
    match value {
        json::Value::Array(items) => items.iter().for_each(|item| pair(item, asked, answered)),
        json::Value::Object(members) => {
            let text = |key: &str| value.str_at(key).map(str::to_owned);
            let arguments = value.get("function").unwrap_or(value);
            let arguments = arguments.str_at("arguments").map(str::to_owned);
            let input = || value.get("input").map(ToString::to_string);
            let call = text("call_id").or_else(|| text("id"));
            let said = value.get("content").or_else(|| value.get("output"));
            let said = said.map(|said| match said.as_array().and_then(<[_]>::first) {
                Some(block) => block.str_at("text").unwrap_or_default().to_owned(),
                None => said.as_str().unwrap_or_default().to_owned(),
            });
            match (text("type").or_else(|| text("role")).as_deref(), call) {
                (Some("function" | "function_call" | "tool_use"), Some(id)) => {
                    asked.insert(id, arguments.or_else(input).unwrap());
                }
                (Some("function_call_output"), Some(id)) => {
                    answered.insert(id, said.unwrap());
                }
                (Some("tool_result"), _) => {
                    answered.insert(text("tool_use_id").unwrap(), said.unwrap());
                }
                (Some("tool"), _) => {
                    answered.insert(text("tool_call_id").unwrap(), said.unwrap());
                }
                _ => members.iter().for_each(|(_, member)| pair(member, asked, answered)),
            }
        }
        _ => {}
    }
}
