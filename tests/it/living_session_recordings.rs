//! What the requests of recordings hold, and those of sessions that got the same frames.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use afterimage::{
    id::{FrameSeq, Millis},
    request::{Provenance, Recording},
    session::{MemoryStore, Model, Session},
    tokens::Chars4,
    transcript::{Api, Record, Transcript},
};
use afterimage_testkit::data;
use serde_json::json;

use super::living_session::options;

/// How many requests of a recording are compared; all with `AFTERIMAGE_REQUESTS=all`.
const REQUESTS: usize = 12;

/// And how many frames they have together, about.
const FRAMES: usize = 2_000;

/// What came of the requests, by what was compared.
type Found = BTreeMap<String, usize>;

/// What a body says, in one way of writing: marks for caches are set anew, and a text that has one is a
/// list; members have no order; a message of Responses need not say that it is one,
/// and its instructions may stand apart.
pub(super) fn conversation(body: &str) -> Vec<(String, serde_json::Value)> {
    fn plain(value: &mut serde_json::Value) {
        if let Some(members) = value.as_object_mut() {
            members.remove("cache_control");
            if members.contains_key("role") && members.contains_key("content") {
                members.remove("type");
                as_list(&mut members["content"]);
            }
        }
        match value {
            serde_json::Value::Object(members) => members.values_mut().for_each(plain),
            serde_json::Value::Array(list) => list.iter_mut().for_each(plain),
            _ => {}
        }
    }
    fn as_list(value: &mut serde_json::Value) {
        if let Some(text) = value.as_str() {
            *value = json!([{"type": "text", "text": text}]);
        }
    }
    let body: serde_json::Map<_, _> = serde_json::from_str(body).unwrap_or_default();
    let mut said: Vec<(String, serde_json::Value)> = Vec::new();
    for key in ["system", "messages", "input"] {
        let Some(mut value) = body.get(key).cloned() else { continue };
        plain(&mut value);
        if key == "system" {
            as_list(&mut value);
        }
        if let (Some(instructions), Some(list)) = (body.get("instructions"), value.as_array_mut()) {
            let content = json!([{"type": "text", "text": instructions}]);
            list.insert(0, json!({"role": "system", "content": content}));
        }
        said.push((key.to_owned(), value));
    }
    said
}

fn holds_item(of: &[(String, serde_json::Value)], kind: &str) -> bool {
    let mut items = of.iter().filter_map(|(_, list)| list.as_array()).flatten();
    items.any(|item| item["type"] == kind)
}

/// A session that gets the frames of a recorded one.
struct Lived<'r> {
    store: MemoryStore,
    session: Session,
    frames: std::iter::Peekable<std::slice::Iter<'r, Record>>,
    sent: Vec<String>,
}

impl<'r> Lived<'r> {
    fn new(records: &'r [Record]) -> Self {
        let store = MemoryStore::default();
        let session = Session::open_with(store.clone(), options()).unwrap();
        Self { store, session, frames: records.iter().peekable(), sent: Vec::new() }
    }

    /// The request after the frames before this one.
    fn request(&mut self, api: Api, end: FrameSeq) -> String {
        while let Some(record) = self.frames.next_if(|record| record.frame.sequence < end) {
            self.session.push(record.frame.clone()).unwrap();
        }
        let model = Model::new(api, "m", u64::MAX / 8);
        let body = self.session.request(&model).unwrap().body;
        self.sent.push(body.clone());
        body
    }

    /// The session is closed and opened again.
    fn restart(&mut self) {
        self.session = Session::open_with(self.store.clone(), options()).unwrap();
    }
}

fn compare(path: &Path, found: &mut Found) {
    let Ok(transcript) = Transcript::open(path) else { return };
    let records: Vec<Record> = transcript.filter_map(Result::ok).collect();
    let transcript = Transcript::open(path).unwrap();
    let Ok(recording) = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)) else {
        *found.entry("recordings that are not whole".to_owned()).or_default() += 1;
        return;
    };
    let all = std::env::var("AFTERIMAGE_REQUESTS").is_ok_and(|which| which == "all");
    let exchanges = recording.exchanges();
    // Each is rendered twice.
    let requests = (FRAMES / records.len().max(1)).clamp(2, REQUESTS);
    let every = if all { 1 } else { exchanges.len().div_ceil(requests).max(1) };
    let mut of_session: BTreeMap<&str, Vec<Record>> = BTreeMap::new();
    for record in &records {
        let exchange = exchanges.iter().find(|exchange| exchange.session == record.session);
        let Some(exchange) = exchange else { continue };
        of_session.entry(&exchange.session).or_default().push(record.clone());
    }
    for (name, records) in &of_session {
        let mut lived = Lived::new(records);
        let own = exchanges.iter().filter(|exchange| *exchange.session == **name);
        let own: Vec<_> = own.collect();
        // The last one is among them.
        let last = own.len() - 1;
        for (index, exchange) in own.iter().enumerate() {
            // Sessions write requests of three APIs.
            let is_written = matches!(exchange.api, Api::Chat | Api::Messages | Api::Responses);
            if (last - index) % every != 0 || !is_written {
                continue;
            }
            let is_worked_out = matches!(exchange.provenance, Provenance::Reconstructed { .. });
            let end = match exchange.answer() {
                Some(answer) => answer,
                None => match exchange.last_frame {
                    Some(frame) => FrameSeq::new(frame.get() + 1),
                    None => continue,
                },
            };
            let body = lived.request(exchange.api, end);
            let is_middle = index >= last / 2 && index < last / 2 + every;
            if is_middle {
                lived.restart();
                let again = lived.session.request(&Model::new(exchange.api, "m", u64::MAX / 8));
                assert_eq!(again.unwrap().body, body, "{}", path.display());
            }
            let expected = recording.request(exchange.number).unwrap();
            let (is, was) = (conversation(&body), conversation(expected.body()));
            let how = if is_worked_out { "worked out" } else { "recorded" };
            // A request that goes on from an earlier response is joined with all that the client ever sent.
            // What the provider compacted since then is in no context.
            let is_compacted = path.ends_with("test_openai_responses_compact_stateful_mode.json")
                && exchange.number == 4;
            let outcome = match is == was {
                true => "equal",
                false if is_compacted => "compacted by the provider",
                // An export says what a tool of the provider's did as a call and its result, where the
                // answer told neither.
                false
                    if ["mcp_call", "web_search_call"]
                        .iter()
                        .any(|kind| holds_item(&was, kind)) =>
                {
                    "with calls that the provider answered"
                }
                false => "other",
            };
            *found.entry(format!("{how}: {outcome}")).or_default() += 1;
            if outcome == "other" {
                let items = |of: &[(String, serde_json::Value)]| -> Vec<serde_json::Value> {
                    of.iter()
                        .flat_map(|(_, list)| list.as_array().cloned().unwrap_or_default())
                        .collect()
                };
                let (is, was) = (items(&is), items(&was));
                let differ = is.iter().zip(&was).find(|(is, was)| is != was);
                let path = path.display();
                panic!(
                    "{path} {}: {} and {} items, {differ:?}",
                    exchange.number,
                    is.len(),
                    was.len()
                );
            }
        }
        let mut again = Session::open_with(lived.store.clone(), options()).unwrap();
        for (turn, body) in (1..).zip(&lived.sent) {
            assert_eq!(again.sent(turn).unwrap(), *body, "{} {turn}", path.display());
        }
    }
}

/// Compares the requests of the recordings in a folder, and says how many.
fn compare_folder(folder: &str) {
    let Some(folder) = data::recordings(folder) else { return };
    let mut found = Found::new();
    for path in data::files_under(&folder) {
        compare(&path, &mut found);
    }
    eprintln!("{found:?}");
}

#[test]
fn a_session_with_the_frames_of_a_chat_makes_its_requests() {
    compare_folder("A-openai-chat");
}

#[test]
fn a_session_with_the_frames_of_messages_makes_its_requests() {
    compare_folder("B-anthropic");
}

#[test]
fn a_session_with_the_frames_of_responses_makes_its_requests() {
    compare_folder("C-codex-responses");
}

#[test]
fn a_session_with_the_frames_of_a_text_log_makes_its_requests() {
    compare_folder("D-swe-agent");
}
