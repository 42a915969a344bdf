//! The first difference of recorded requests, beside a comparison that shares no code with the guard.

use std::{path::Path, sync::Arc};

use afterimage::{
    guard::SentRequest,
    id::Millis,
    request::{Exchange, Recording, Request},
    tokens::Chars4,
    transcript::{Api, Transcript},
};
use afterimage_testkit::data;
use serde_json::Value;

use super::{guard, recorded};

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

/// A value without what only marks it for the cache, and with texts as the blocks that they stand for.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Object(members) => {
            let members = members.iter().filter(|(key, _)| {
                !matches!(key.as_str(), "cache_control" | "prompt_cache_breakpoint")
            });
            let member = |(key, value): (&String, &Value)| {
                let value = match value {
                    Value::String(text) if key == "content" || key == "system" => {
                        serde_json::json!([{ "type": "text", "text": text }])
                    }
                    other => plain(other),
                };
                (key.clone(), value)
            };
            Value::Object(members.map(member).collect())
        }
        other => other.clone(),
    }
}

/// Values with their names, in order.
type Named = Vec<(String, Value)>;

/// What a request is made of in the order of caches, each part with its name.
fn parts(api: Api, request: &Value) -> (Named, Named, Vec<Value>) {
    let request = &plain(request);
    let (system_key, key) = match api {
        Api::Responses => ("instructions", "input"),
        _ => ("system", "messages"),
    };
    let mut system = Vec::new();
    match &request[system_key] {
        Value::Null => {}
        Value::Array(blocks) => {
            system.extend(blocks.iter().map(|block| ("system".to_owned(), block.clone())));
        }
        other => system.push(("system".to_owned(), other.clone())),
    }
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let tools = tools.into_iter().map(|tool| {
        let names =
            [&tool["function"]["name"], &tool["name"], &tool["custom"]["name"], &tool["type"]];
        let name = names.iter().find_map(|name| name.as_str()).unwrap_or("unnamed");
        (format!("tool:{name}"), tool.clone())
    });
    let messages = match &request[key] {
        Value::Array(list) => list.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    };
    (tools.collect(), system, messages)
}

/// Who the first difference belongs to; `None` where the second request begins with the whole first.
fn first_owner(api: Api, was: &Value, is: &Value) -> Option<String> {
    if was["model"] != is["model"] {
        return Some("parameter:model".to_owned());
    }
    let ((tools, system, messages), (tools_now, system_now, messages_now)) =
        (parts(api, was), parts(api, is));
    let has = |tools: &[(String, Value)], name: &str| tools.iter().any(|(own, _)| own == name);
    for index in 0..tools.len().max(tools_now.len()) {
        let (was, is) = (tools.get(index), tools_now.get(index));
        if was == is {
            continue;
        }
        return Some(match (was, is) {
            (Some((was, _)), Some((is, _))) if was == is => is.clone(),
            (Some((was, _)), _) if !has(&tools_now, was) => was.clone(),
            (_, Some((is, _))) => is.clone(),
            (was, None) => was.unwrap().0.clone(),
        });
    }
    if system != system_now {
        return Some("system".to_owned());
    }
    for (index, was) in messages.iter().enumerate() {
        let owner = Some(format!("message:{index}"));
        let Some(is) = messages_now.get(index) else { return owner };
        let is_last = index + 1 == messages.len();
        if was != is && !(is_last && goes_on(was, is)) {
            return owner;
        }
    }
    None
}

/// Whether a message is the same with more blocks at its end.
fn goes_on(was: &Value, is: &Value) -> bool {
    let (Some(before), Some(after)) = (was["content"].as_array(), is["content"].as_array()) else {
        return false;
    };
    let without = |message: &Value| {
        let mut message = message.clone();
        message["content"] = Value::Null;
        message
    };
    without(was) == without(is) && after.starts_with(before)
}

fn each_recording(mut check: impl FnMut(&Path, Recording)) {
    for group in GROUPS {
        let Some(folder) = data::recordings(group) else { return };
        for path in data::files_under(&folder) {
            let Ok(transcript) = Transcript::open(&path) else { continue };
            let counter = Arc::new(Chars4);
            check(&path, Recording::read(transcript, counter, |_| Millis::new(0)).unwrap());
        }
    }
}

fn each_pair(mut check: impl FnMut(&Path, usize, &Request, &Request)) {
    each_recording(|path, recording| {
        let is_recorded = |number: usize| {
            let of = number.checked_sub(1).and_then(|at| recording.exchanges().get(at));
            of.is_some_and(|exchange| exchange.provenance.lacks().is_empty())
        };
        for exchange in recording.exchanges().iter().filter(|of| is_recorded(of.number)) {
            // The one before it in its session, and the one before it in the file.
            let mut previous: Vec<usize> =
                recording.previous(exchange.number).into_iter().collect();
            previous.extend(exchange.number.checked_sub(1).filter(|number| is_recorded(*number)));
            previous.dedup();
            let is = recording.request(exchange.number).unwrap();
            for previous in previous {
                let was = recording.request(previous).unwrap();
                if was.api() == is.api() {
                    check(path, exchange.number, &was, &is);
                }
            }
        }
    });
}

#[test]
fn the_first_differing_owner_is_right_on_every_pair_of_recorded_requests() {
    let (mut pairs, mut differing, mut wrong) = (0, 0, Vec::new());
    let guard = guard();
    each_pair(|path, number, was, is| {
        let values = [was, is].map(|of| serde_json::from_str::<Value>(of.body()));
        let [Ok(before), Ok(after)] = values else { return };
        let expected = first_owner(is.api(), &before, &after);
        let prediction =
            guard.predict(Some(&SentRequest::new(was)), &SentRequest::new(is)).unwrap();
        let found = prediction.difference.as_ref().map(|of| of.owner.as_str().to_owned());
        if found != expected {
            wrong.push(format!(
                "{}@{number}: expected {expected:?}, found {found:?}",
                path.display()
            ));
        }
        if let Some(difference) = &prediction.difference {
            assert!(!difference.words().is_empty());
        }
        pairs += 1;
        differing += usize::from(expected.is_some());
    });
    assert!(wrong.is_empty(), "{} of {pairs} pairs:\n{}", wrong.len(), wrong.join("\n"));
    if data::recordings(GROUPS[0]).is_some() {
        println!("{pairs} pairs, {differing} differ");
        assert!(pairs > 15 && differing > 1, "{pairs} pairs, {differing} differ");
    }
}

/// Appends to the last string of a value that is none of its form.
fn change(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            text.push('!');
            true
        }
        Value::Array(list) => list.iter_mut().rev().any(change),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter_mut().collect();
            members.reverse();
            let is_form = |key: &str| {
                matches!(key, "type" | "role" | "name" | "cache_control" | "function" | "custom")
            };
            members.into_iter().any(|(key, value)| {
                // The name of a tool is in these.
                let of_tool = matches!(key.as_str(), "function" | "custom");
                (of_tool || !is_form(key)) && change(value)
            })
        }
        _ => false,
    }
}

/// The same request with one of its parts changed, and whose that is.
fn changed(api: Api, request: &Value) -> Vec<(String, Value)> {
    let (system_key, key) = match api {
        Api::Responses => ("instructions", "input"),
        _ => ("system", "messages"),
    };
    let count = |key: &str| request[key].as_array().map_or(0, Vec::len);
    let (tools, system, messages) = parts(api, request);
    let mut found = Vec::new();
    let mut with = |owner: String, change: &mut dyn FnMut(&mut Value) -> bool| {
        let mut request = request.clone();
        if change(&mut request) {
            found.push((owner, request));
        }
    };
    for (index, (owner, _)) in tools.iter().enumerate() {
        with(owner.clone(), &mut |request| change(&mut request["tools"][index]));
        with(owner.clone(), &mut |request| {
            let tools = request["tools"].as_array_mut().unwrap();
            tools.remove(index);
            !tools.is_empty()
        });
    }
    if !system.is_empty() {
        with("system".to_owned(), &mut |request| change(&mut request[system_key]));
    }
    // Enough of a long conversation.
    let step = (messages.len() / 6).max(1);
    for index in (0..count(key)).step_by(step) {
        let owner = format!("message:{index}");
        with(owner.clone(), &mut |request| change(&mut request[key][index]));
        if index + 1 == count(key) {
            with(owner, &mut |request| {
                request[key].as_array_mut().unwrap().remove(index);
                index > 0
            });
        }
    }
    found
}

#[test]
fn whatever_part_of_a_recorded_request_changes_is_the_first_that_differs() {
    let (mut pairs, mut wrong) = (0, Vec::new());
    let guard = guard();
    each_recording(|path, recording| {
        let is_recorded = |of: &&Exchange| of.provenance.lacks().is_empty();
        // A session's last request holds the others.
        let last = recording.exchanges().iter().rfind(is_recorded).map(|of| of.number);
        let Some(is) = last.map(|number| recording.request(number).unwrap()) else { return };
        let Ok(body) = serde_json::from_str::<Value>(is.body()) else { return };
        for (owner, changed) in changed(is.api(), &body) {
            let name = match is.api() {
                Api::Chat => "chat",
                Api::Messages => "messages",
                _ => "responses",
            };
            let was = &recorded(name, std::slice::from_ref(&changed))[0];
            // What the second one adds at its end differs in nothing that was there.
            let goes_on = first_owner(is.api(), &changed, &body).is_none();
            for (was, is, goes_on) in [(was, &is, goes_on), (&is, was, false)] {
                let prediction =
                    guard.predict(Some(&SentRequest::new(was)), &SentRequest::new(is)).unwrap();
                let found = prediction.difference.map(|of| of.owner.as_str().to_owned());
                if found.as_ref() != Some(&owner).filter(|_| !goes_on) {
                    wrong.push(format!("{}: changed {owner}, found {found:?}", path.display()));
                }
                pairs += 1;
            }
        }
    });
    assert!(wrong.is_empty(), "{} of {pairs} pairs:\n{}", wrong.len(), wrong.join("\n"));
    if data::recordings(GROUPS[0]).is_some() {
        println!("{pairs} pairs");
        assert!(pairs > 200, "{pairs}");
    }
}
