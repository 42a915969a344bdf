//! The guard: forecasts are those of the published rules, and the first difference is the right one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod cases;
mod owners;

use std::sync::Arc;

use afterimage::{
    bill::Prices,
    guard::{CacheRules, Guard, Lifetime, NoForecast, RefusedRequest, SentRequest, UnservedEntry},
    id::Millis,
    json,
    request::{Recording, Request},
    tokens::TokenCounter,
    transcript::{Currency, Money, Transcript, Usage},
};
use serde_json::{Value, json as object};

/// Counts words.
struct Words;

impl TokenCounter for Words {
    fn id(&self) -> &'static str {
        "words"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// The requests of traffic with these bodies.
fn recorded(api: &str, bodies: &[Value]) -> Vec<Request> {
    let path = match api {
        "messages" => "messages",
        "chat" => "chat/completions",
        "responses" => "responses",
        other => panic!("{other}"),
    };
    let interaction = |body: &Value| {
        object!({ "uri": format!("https://api.example/v1/{path}"), "status": 200,
                "request": body.to_string(), "response": {} })
    };
    let interactions: Vec<Value> = bodies.iter().map(interaction).collect();
    let text = object!({ "interactions": interactions }).to_string();
    let transcript = Transcript::new(text.as_bytes()).unwrap();
    let recording = Recording::read(transcript, Arc::new(Words), |_| Millis::new(0)).unwrap();
    let requests = (1..=bodies.len()).map(|number| recording.request(number).unwrap());
    requests.collect()
}

fn guard() -> Guard {
    Guard::new(CacheRules::embedded().unwrap(), Arc::new(Words))
}

/// A request of Claude Opus 5 with so many words in its system prompt.
fn marked(words: usize, end: &str) -> Value {
    object!({ "model": "claude-opus-5", "max_tokens": 9,
            "system": [{ "type": "text", "text": format!("{} {end}", "word ".repeat(words)),
                         "cache_control": { "type": "ephemeral" } }],
            "messages": [{ "role": "user", "content": "Go on" }] })
}

#[test]
fn what_is_lost_has_a_price_and_may_be_refused() {
    let requests =
        recorded("messages", &[marked(100_000, "2026-11-23"), marked(100_000, "2026-11-24")]);
    let (was, is) = (SentRequest::new(&requests[0]), SentRequest::new(&requests[1]));
    let priced = guard().with_prices(Prices::embedded().unwrap());
    let prediction = priced.predict(Some(&was), &is).unwrap();
    let forecast = prediction.cache.as_ref().unwrap();
    assert_eq!((forecast.read, forecast.write, forecast.lost), (0, 100_001, 100_001));
    assert_eq!(forecast.write_surcharge, 25_000);
    // A million tokens cost 6.25 dollars to write, and 0.50 to read.
    assert_eq!(forecast.loss.unwrap().to_string(), "0.57500575 USD");
    assert_eq!(
        prediction.cause().unwrap(),
        "the system prompt changed at byte 500010: it holds a date"
    );
    let dollars = |text: &str| Money::from_decimal(text, Currency::USD).unwrap();
    let allowed = priced.clone().with_max_loss(dollars("0.58"));
    assert_eq!(allowed.admit(Some(&was), &is).unwrap(), prediction);
    let refusing = priced.with_max_loss(dollars("0.20"));
    let refused = refusing.admit(Some(&was), &is).unwrap_err();
    let RefusedRequest::ExcessLoss { most, prediction: said, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!((*most, &**said), (dollars("0.20"), &prediction));
    assert!(refused.to_string().contains("it holds a date"), "{refused}");
    // Nobody refuses in another currency, or what has no price.
    let euros = Money::from_decimal("0.01", Currency::from_name("EUR").unwrap()).unwrap();
    assert!(refusing.clone().with_max_loss(euros).admit(Some(&was), &is).is_ok());
    assert!(guard().with_max_loss(dollars("0")).admit(Some(&was), &is).is_ok());
    assert!(refusing.admit(None, &is).is_ok());
}

#[test]
fn a_session_goes_on_though_its_system_message_tells_the_time() {
    let body = |minute: usize, turns: usize| {
        let mut messages = vec![
            object!({ "role": "system", "content": format!("Be brief. It is 10:0{minute}.") }),
        ];
        for turn in 0..=turns {
            messages.push(object!({ "role": "user", "content": format!("Question {turn}") }));
            messages.push(object!({ "role": "assistant", "content": "Yes" }));
        }
        messages.pop();
        object!({ "model": "gpt-4o", "messages": messages })
    };
    let interactions: Vec<Value> = (0..3)
        .map(|turn| {
            object!({ "uri": "https://api.example/v1/chat/completions", "status": 200,
                    "request": body(turn, turn).to_string(),
                    "response": { "choices": [{ "message": { "role": "assistant", "content": "Yes" } }] } })
        })
        .collect();
    let text = object!({ "interactions": interactions }).to_string();
    let transcript = Transcript::new(text.as_bytes()).unwrap();
    let recording = Recording::read(transcript, Arc::new(Words), |_| Millis::new(0)).unwrap();
    for number in 2..=3 {
        assert_eq!(recording.previous(number), Some(number - 1));
        let (was, is) =
            (recording.request(number - 1).unwrap(), recording.request(number).unwrap());
        let (was, is) = (SentRequest::new(&was), SentRequest::new(&is));
        let prediction = guard().predict(Some(&was), &is).unwrap();
        let cause = "message 0 (system) changed at byte 20: it holds a time";
        assert_eq!(prediction.cause().unwrap(), cause);
    }
}

#[test]
fn counts_are_fitted_to_what_was_reported_of_the_request_before() {
    let mut grown = marked(1_000, "end");
    grown["messages"] = object!([
        { "role": "user", "content": "Go on" },
        { "role": "assistant", "content": "Gone" },
        { "role": "user", "content": [{ "type": "text", "text": "And",
                                        "cache_control": { "type": "ephemeral" } }] },
    ]);
    let requests = recorded("messages", &[marked(1_000, "end"), grown]);
    // 1,001 words to the mark, and 6 tokens behind it.
    let usage = object!({ "input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0,
                        "cache_creation_input_tokens": 2_002 });
    let usage = Usage::of(&json::read(usage.to_string().as_bytes()).unwrap()).unwrap();
    let (was, is) = (SentRequest::new(&requests[0]), SentRequest::new(&requests[1]));
    let prediction = guard().predict(Some(&was.reported(&usage)), &is).unwrap();
    let forecast = prediction.cache.unwrap();
    assert_eq!((forecast.read, forecast.lost), (2_002, 0));
    assert_eq!(forecast.certainty.as_str(), "calibrated");
    assert_eq!(forecast.input, forecast.read + forecast.write);
}

#[test]
fn a_lifetime_needs_both_times_and_a_rule() {
    let requests = recorded("messages", &[marked(1_000, "end"), marked(1_000, "end")]);
    let (was, is) = (SentRequest::new(&requests[0]), SentRequest::new(&requests[1]));
    let at = |second: i64| Millis::new(second * 1_000);
    let lifetime = |was, is| guard().predict(Some(&was), &is).unwrap().lifetime;
    assert_eq!(lifetime(was, is), Lifetime::Unknown);
    assert_eq!(lifetime(was.at(at(0)), is), Lifetime::Unknown);
    assert_eq!(lifetime(was.at(at(0)), is.at(at(300))), Lifetime::Kept);
    assert_eq!(lifetime(was.at(at(0)), is.at(at(301))), Lifetime::Expired);
    // A clock that runs backwards says nothing.
    assert_eq!(lifetime(was.at(at(9)), is.at(at(0))), Lifetime::Unknown);
    let gone = guard().predict(Some(&was.at(at(0))), &is.at(at(301))).unwrap();
    assert_eq!(gone.cause().unwrap(), "the cache keeps nothing for so long");
}

/// A request of Claude Opus 5 with a mark that lasts an hour on its system prompt, and with this many
/// blocks of a message, of which these are marked.
fn blocks(count: usize, marked: &[usize]) -> Value {
    let block = |at: usize| {
        let text = format!("{at} {}", "word ".repeat(300));
        let mut block = object!({ "type": "text", "text": text });
        if marked.contains(&at) {
            block["cache_control"] = object!({ "type": "ephemeral" });
        }
        block
    };
    let content: Vec<Value> = (0..count).map(block).collect();
    object!({ "model": "claude-opus-5", "max_tokens": 9,
            "system": [{ "type": "text", "text": "word ".repeat(2_000),
                         "cache_control": { "type": "ephemeral", "ttl": "1h" } }],
            "messages": [{ "role": "user", "content": content }] })
}

#[test]
fn why_an_entry_is_not_served_is_told_apart() {
    let at = |minute: i64| Millis::new(minute * 60_000);
    for (was, is, minutes, expected) in [
        // The system prompt is kept for an hour, and the message for five minutes.
        ((9, [8]), (10, &[9][..]), 10, Some(UnservedEntry::Expired)),
        ((9, [8]), (10, &[9]), 4, None),
        ((9, [8]), (40, &[39]), 4, Some(UnservedEntry::OutOfReach)),
        ((9, [8]), (28, &[27]), 4, None),
        ((9, [8]), (10, &[]), 4, Some(UnservedEntry::NotAskedFor)),
    ] {
        let bodies = [blocks(was.0, &was.1), blocks(is.0, is.1)];
        let requests = recorded("messages", &bodies);
        let (was, is) = (SentRequest::new(&requests[0]), SentRequest::new(&requests[1]));
        let prediction = guard().predict(Some(&was.at(at(0))), &is.at(at(minutes))).unwrap();
        assert_eq!((prediction.difference.as_ref(), prediction.breaks.len()), (None, 0));
        let forecast = prediction.cache.as_ref().unwrap();
        assert_eq!(forecast.unserved, expected, "{is:?}");
        assert_eq!(forecast.lost > 0, expected.is_some());
        assert_eq!(prediction.cause().is_some(), expected.is_some());
    }
}

#[test]
fn what_is_no_object_is_an_error_and_what_names_no_model_has_no_forecast() {
    let requests =
        recorded("messages", &[object!({ "messages": [{ "role": "user", "content": "Hi" }] })]);
    let prediction = guard().predict(None, &SentRequest::new(&requests[0])).unwrap();
    assert_eq!(prediction.cache, Err(NoForecast::NoModel));
    assert_eq!(prediction.to_json().get("noForecast").unwrap().as_str(), Some("noModel"));
}
