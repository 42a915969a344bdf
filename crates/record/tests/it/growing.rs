//! The requests of a session that grows, made of a recording.

use std::fs;

use afterimage_testkit::data;

use super::json::{self, Value};

pub(super) const REQUESTS: usize = 200;

/// The requests of an agent: each holds the messages so far, then the tools. With the answers.
pub(super) fn session(path: &str) -> Option<Vec<(String, String)>> {
    let text = fs::read_to_string(data::recording(path)?).unwrap();
    let items: Vec<Value> = text
        .lines()
        .filter_map(|line| {
            let line = json::read(line.as_bytes()).ok()?;
            let item = line.get("payload").or_else(|| line.get("message"))?.clone();
            (item.get("role").is_some() || item.get("call_id").is_some()).then_some(item)
        })
        .collect();
    let tools =
        "{\"name\":\"exec\",\"description\":\"Runs a command and gives back what it said.\"}";
    let tools = vec![tools; 40].join(",");
    let mut input = String::new();
    let mut requests = Vec::new();
    assert!(items.len() >= REQUESTS, "{path}: {} items", items.len());
    for number in 0..REQUESTS {
        let place = |number| items.len() * number / REQUESTS;
        let turn = &items[place(number)..place(number + 1)];
        for item in turn {
            input.push_str(if input.is_empty() { "" } else { "," });
            input.push_str(&item.to_string());
        }
        let request = format!("{{\"model\":\"m\",\"input\":[{input}],\"tools\":[{tools}]}}");
        let answer = format!("{{\"output\":[{}]}}", turn.last().unwrap());
        requests.push((request, answer));
    }
    Some(requests)
}
