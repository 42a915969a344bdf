//! The request that one goes on from though it begins otherwise: a message was edited, or the first
//! ones were dropped. For a transcript that is a new session, and for a cache it is a loss.

use std::{collections::HashSet, rc::Rc};

use afterimage::{
    json::{Object, Value},
    request::{Exchange, Recording, Request},
};

/// A shorter answer may be said in any conversation.
const LEAST_ANSWER: usize = 16;

/// Which of the earlier requests `next` goes on from: one whose answer it holds, or most of whose
/// messages; of several the one with the most, the latest of these. O(their bodies).
pub(super) fn find_continued<'r>(
    recording: &Recording,
    earlier: &[(&'r Exchange, Rc<Request>)],
    next: &Request,
) -> Option<&'r Exchange> {
    let messages: HashSet<String> = messages(next).into_iter().map(without_marks).collect();
    let mut texts = HashSet::new();
    next.value().into_iter().for_each(|body| add_texts(body, &mut texts));
    let shared = |(exchange, request): &(&'r Exchange, Rc<Request>)| {
        let before = self::messages(request);
        let (count, before) = (before.len(), before.into_iter().map(without_marks));
        let shared = before.filter(|message| messages.contains(message)).count();
        let goes_on = shared * 2 > count || has_answer(recording, exchange, &texts);
        (goes_on && request.api() == next.api()).then_some((shared, *exchange))
    };
    let alike = earlier.iter().filter_map(shared);
    alike.max_by_key(|(shared, exchange)| (*shared, exchange.number)).map(|(_, exchange)| exchange)
}

fn messages(request: &Request) -> Vec<&Value> {
    let Ok(body) = request.value() else { return Vec::new() };
    let list = body.get(request.api().conversation_key()).and_then(Value::as_array);
    list.unwrap_or_default().iter().collect()
}

/// Whether an answer stands among these texts.
fn has_answer(recording: &Recording, exchange: &Exchange, texts: &HashSet<&str>) -> bool {
    let Some(history) = recording.history(&exchange.session) else { return false };
    let frames = exchange.answer_frames.iter();
    frames.filter_map(|frame| history.snapshot(*frame)).any(|snapshot| {
        snapshot
            .chunks()
            .any(|chunk| chunk.content().len() >= LEAST_ANSWER && texts.contains(chunk.content()))
    })
}

fn add_texts<'v>(value: &'v Value, texts: &mut HashSet<&'v str>) {
    match value {
        Value::String(text) => _ = texts.insert(text),
        Value::Array(list) => list.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(members) => members.values().for_each(|value| add_texts(value, texts)),
        _ => {}
    }
}

/// A message as text, without its marks for the cache, which move.
fn without_marks(message: &Value) -> String {
    fn plain(value: &Value) -> Value {
        match value {
            Value::Array(list) => list.iter().map(plain).collect(),
            Value::Object(members) => {
                let members = members.iter().filter(|(key, _)| *key != "cache_control");
                members.map(|(key, value)| (key.clone(), plain(value))).collect::<Object>().into()
            }
            value => value.clone(),
        }
    }
    plain(message).to_string()
}
