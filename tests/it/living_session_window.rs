//! Requests that fit the model as its provider counts, and not only as they are counted here.

use std::sync::Arc;

use afterimage::{
    json::{self, Value},
    session::{Awaits, MemoryStore, Model, Receipt, Session, SessionOptions},
    tokens::{Chars4, TokenCounter, default_counter},
    transcript::Api,
};

use super::living_session::{APIS, answer, tools};

/// What a provider counts: a fifth more than `counter`, over every text in the body.
fn counted(body: &Value, counter: &dyn TokenCounter) -> u64 {
    fn texts(value: &Value, counter: &dyn TokenCounter) -> usize {
        match value {
            Value::String(text) => counter.count(text),
            Value::Array(items) => items.iter().map(|item| texts(item, counter)).sum(),
            Value::Object(members) => members
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "type" | "role" | "cache_control"))
                .map(|(_, value)| texts(value, counter))
                .sum(),
            _ => 0,
        }
    }
    let messages = body.get("messages").or_else(|| body.get("input")).unwrap();
    let messages = messages.as_array().unwrap().len();
    (texts(body, counter) + 3 * messages) as u64 * 6 / 5
}

/// The answer, with the usage that the provider reports.
fn answered(api: Api, request: &str, input: u64) -> String {
    let mut answer: serde_json::Value = serde_json::from_str(&answer(api, request)).unwrap();
    let name = if api == Api::Chat { "prompt_tokens" } else { "input_tokens" };
    answer["usage"] = serde_json::json!({ name: input, "output_tokens": 3 });
    if api == Api::Messages {
        answer["usage"] = serde_json::json!({
            name: input / 3,
            "cache_read_input_tokens": input / 3,
            "cache_creation_input_tokens": input - input / 3 * 2,
            "output_tokens": 3,
        });
    }
    answer.to_string()
}

/// The bodies of so many requests; the session is opened again after each `every` of them.
fn bodies(model: &Model, options: &SessionOptions, turns: u64, every: u64) -> Vec<String> {
    let (store, mut bodies, mut fullest) = (MemoryStore::default(), Vec::new(), 0);
    let open = || Session::open_with(store.clone(), options.clone()).unwrap();
    let mut session = open();
    session.system("You are a harbour pilot.").unwrap();
    session.tools(tools()).unwrap();
    while session.turns() < turns {
        match session.awaits() {
            Awaits::Answer => {
                let request = session.request(model).unwrap();
                let body = json::read(request.body.as_bytes()).unwrap();
                let real = counted(&body, &*options.counter);
                let of = format!("{:?}, request {}: {real}", model.api, request.receipt.turn);
                assert!(real + model.output <= model.max_tokens, "{of}");
                assert!(request.receipt.expected <= request.receipt.room, "{of}");
                fullest = fullest.max(real);
                session.answer(answered(model.api, &request.body, real)).unwrap();
                bodies.push(request.body);
                if session.turns().is_multiple_of(every) {
                    session = open();
                }
            }
            Awaits::Results(calls) => {
                for call in calls {
                    let said = "High water at 06:10. ".repeat(1 + session.turns() as usize % 9 * 8);
                    session.tool_result(&call.id, format!("{said}{}", session.turns())).unwrap();
                }
            }
            Awaits::User => session.user(format!("And harbour {}?", session.turns())).unwrap(),
        }
    }
    // The budget is used, too.
    assert!(fullest * 10 > (model.max_tokens - model.output) * 8, "{fullest}");
    for turn in [1, turns / 2, turns] {
        assert_eq!(session.sent(turn).unwrap(), bodies[turn as usize - 1]);
    }
    bodies
}

#[test]
fn no_request_is_larger_than_its_model_takes_though_the_provider_counts_a_fifth_more() {
    let options = SessionOptions { counter: Arc::new(Chars4), ..SessionOptions::default() };
    for api in APIS {
        bodies(&Model::new(api, "m", 6_000).output(1_000), &options, 500, u64::MAX);
    }
}

#[test]
fn a_model_of_a_known_family_is_trusted_from_its_first_request_on() {
    let options = SessionOptions { counter: default_counter(), ..SessionOptions::default() };
    let model = Model::anthropic("claude-sonnet-4-5", 4_000).output(1_000);
    let mut session = Session::open_with(MemoryStore::default(), options).unwrap();
    session.user("Look up the tide tables. ".repeat(100)).unwrap();
    let receipt = session.request(&model).unwrap().receipt;
    let expected = receipt.total * 1_205 / 1_000;
    assert!(receipt.expected.abs_diff(expected) <= 6, "{} of {}", receipt.expected, receipt.total);
}

#[test]
fn a_session_that_is_opened_again_has_learned_the_same() {
    let options = SessionOptions { counter: Arc::new(Chars4), ..SessionOptions::default() };
    for api in APIS {
        let model = Model::new(api, "m", 6_000).output(1_000);
        assert_eq!(bodies(&model, &options, 90, u64::MAX), bodies(&model, &options, 90, 7));
    }
}

/// The last receipts of a session whose model says a text beside each of many calls.
fn parallel(name: &str, rounds: u64) -> Vec<Receipt> {
    let model = Model::anthropic(name, 100_000);
    let mut session = Session::open(MemoryStore::default()).unwrap();
    session.system(&"You are a harbour pilot. ".repeat(300)).unwrap();
    session.user("Which harbours are open?").unwrap();
    let mut receipts = Vec::new();
    for round in 0..rounds {
        let request = session.request(&model).unwrap();
        assert!(request.body.matches("cache_control").count() <= 4);
        receipts.push(request.receipt);
        let call = |of: u64| {
            format!(
                r#"{{"type":"text","text":"Harbour {of}."}},{{"type":"tool_use","id":"c{round}-{of}","name":"tide","input":{{}}}}"#
            )
        };
        let calls = (0..25).map(call).collect::<Vec<_>>().join(",");
        let said = format!(r#"{{"type":"message","role":"assistant","content":[{calls}]}}"#);
        for call in session.answer(said).unwrap().calls {
            session.tool_result(&call.id, "High water at 06:10. It is open.").unwrap();
        }
    }
    receipts
}

#[cfg(feature = "rules")]
#[test]
fn the_last_request_stays_within_the_reach_of_the_cache_after_many_calls() {
    for pair in parallel("claude-sonnet-4-5", 4).windows(2) {
        let [was, is] = pair else { panic!() };
        let cache = is.cache.as_ref().unwrap();
        assert_eq!((cache.unserved, cache.lost), (None, 0));
        let cached = is.change.as_ref().unwrap().prefix.cached;
        assert!(cached >= was.total - 8 && cached <= cache.read, "{cached} of {}", was.total);
    }
}

#[cfg(feature = "rules")]
#[test]
fn a_receipt_expects_nothing_of_a_cache_below_the_least_that_its_model_keeps() {
    let cached = |name| parallel(name, 2)[1].change.as_ref().unwrap().prefix.cached;
    assert!(cached("claude-sonnet-4-5") > 1_024);
    assert_eq!(cached("claude-opus-4-5"), 0);
}
