//! Recorded API traffic: requests, each of which repeats the conversation so far, and responses.
//!
//! A conversation is its last request and the response to it, and becomes a session.

use std::collections::HashMap;

use super::{
    chat,
    exchange::{self, Api, Exchange},
    items, responses,
    sink::Sink,
};
use crate::json::{Object, Value};

/// Reads `{"interactions": [{uri, request, status, response}]}`.
#[derive(Default)]
pub(super) struct Reader {
    conversations: Vec<Conversation>,
    /// Calls of a provider's tools with their outcome, by the id of the item.
    outcomes: HashMap<String, Value>,
}

/// What the last request of a conversation holds, and the response to it.
struct Conversation {
    api: Api,
    /// Where the last exchange stands in the file, from one.
    line: u64,
    /// The system prompt in a field of its own.
    system: Option<Value>,
    messages: Vec<Value>,
    /// Messages or items of the response; none if it failed.
    reply: Vec<Value>,
    reply_id: Option<String>,
    /// The response that the last request builds on, and how many of the messages came with it.
    base: Option<(String, usize)>,
}

impl Reader {
    /// An object with `interactions`, each of them a request to somewhere.
    pub(super) fn is_document(value: &Value) -> bool {
        let is_exchange =
            |value: &Value| value.get("request").is_some() && value.get("uri").is_some();
        value
            .get("interactions")
            .and_then(Value::as_array)
            .is_some_and(|list| list.iter().any(is_exchange))
    }

    fn take(&mut self, exchange: Exchange, sink: &mut Sink) {
        let Exchange { api, line, system, mut messages, reply, reply_id, previous } = exchange;
        if reply.is_none() {
            sink.skip("failed response");
        }
        let reply = reply.unwrap_or_default();
        for item in reply.iter().filter(|item| items::has_outcome(item)) {
            if let Some(id) = item.str_at("id") {
                self.outcomes.insert(id.to_owned(), item.clone());
            }
        }
        let mut base = None;
        if let Some(previous) = previous
            && let Some(earlier) = self.before(&previous)
        {
            base = Some((previous, earlier.len()));
            messages.splice(..0, earlier);
        }
        let next = Conversation { api, line, system, messages, reply, reply_id, base };
        let continued = self.conversations.iter_mut().filter(|earlier| next.continues(earlier));
        // `max_by_key` gives the last, and so the most recent, of several that are longest.
        match continued.max_by_key(|earlier| earlier.messages.len()) {
            Some(earlier) => {
                sink.skip("superseded request");
                *earlier = next;
            }
            None => self.conversations.push(next),
        }
    }

    /// The messages up to and with the response `id`, if it is the last of a conversation, or if
    /// the last request of one builds on it too: then this one is a retry or a fork.
    fn before(&self, id: &str) -> Option<Vec<Value>> {
        let last =
            self.conversations.iter().find(|earlier| earlier.reply_id.as_deref() == Some(id));
        if let Some(last) = last {
            return Some(last.messages.iter().chain(&last.reply).cloned().collect());
        }
        self.conversations.iter().find_map(|earlier| {
            let (base, length) = earlier.base.as_ref()?;
            (base == id).then(|| earlier.messages.iter().take(*length).cloned().collect())
        })
    }

    fn give(self, sink: &mut Sink) {
        let Self { conversations, outcomes } = self;
        for (index, conversation) in conversations.into_iter().enumerate() {
            let line = conversation.line;
            sink.session(&(index + 1).to_string());
            if let Some(system) = conversation.system {
                chat::system_prompt(system, line, sink);
            }
            for message in conversation.messages.into_iter().chain(conversation.reply) {
                match conversation.api {
                    Api::Chat | Api::Messages => chat::message_or_unknown(message, line, sink),
                    Api::Responses => {
                        responses::push(with_outcome(message, &outcomes), line, None, sink);
                    }
                }
            }
        }
    }
}

/// The item, from the response that gave it where the client dropped its outcome.
fn with_outcome(item: Value, outcomes: &HashMap<String, Value>) -> Value {
    let is_bare = item.str_at("type").is_some_and(|kind| kind.ends_with("_call"))
        && !items::has_outcome(&item);
    let whole = item.str_at("id").filter(|_| is_bare).and_then(|id| outcomes.get(id));
    whole.filter(|whole| whole.get("type") == item.get("type")).cloned().unwrap_or(item)
}

impl Conversation {
    fn continues(&self, earlier: &Conversation) -> bool {
        self.api == earlier.api
            && !earlier.messages.is_empty()
            && self.messages.len() >= earlier.messages.len()
            && earlier.messages.iter().zip(&self.messages).all(|(a, b)| is_same(a, b))
    }
}

/// Whether two messages are the same, but for the cache markers, which move from turn to turn.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let size =
                |object: &Object| object.len() - usize::from(object.contains_key("cache_control"));
            let mut members = a.iter().filter(|(key, _)| *key != "cache_control");
            size(a) == size(b)
                && members.all(|(key, value)| b.get(key).is_some_and(|other| is_same(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (a, b) => a == b,
    }
}

impl super::Decoder for Reader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let interactions = match value {
            Value::Object(mut object) => match object.shift_remove("interactions") {
                Some(Value::Array(list)) => list,
                _ => return sink.unknown(line, "no interactions", object.into()),
            },
            other => {
                return sink.unknown(line, format!("{} has no interactions", other.kind()), other);
            }
        };
        for (index, interaction) in interactions.into_iter().enumerate() {
            let line = index as u64 + 1;
            match exchange::read(interaction, line) {
                Ok(exchange) => self.take(exchange, sink),
                Err((reason, interaction)) => sink.unknown(line, reason, interaction),
            }
        }
        std::mem::take(self).give(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Report, testing};

    /// `exchanges` are pieces of JSON `uri | request | status | response`.
    #[track_caller]
    fn check(exchanges: &[(&str, &str, &str, &str)], expected: &str) -> Report {
        let list: Vec<_> = exchanges
            .iter()
            .map(|(uri, request, status, response)| {
                format!(r#"{{"uri":"{uri}","request":{request},"status":{status},"response":{response}}}"#)
            })
            .collect();
        testing::check("wire", &format!(r#"{{"interactions":[{}]}}"#, list.join(",")), expected)
    }

    const CHAT: &str = "https://a.b/v1/chat/completions";
    const MESSAGES: &str = "https://a.b/v1/messages?beta=true";
    const RESPONSES: &str = "https://a.b/v1/responses";

    #[test]
    fn a_conversation_is_its_last_request_and_the_response() {
        let report = check(
            &[
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"a"}]}"#,
                    "200",
                    r#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                ),
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":""}]}"#,
                    "{\"code\":200}",
                    r#"{"choices":[{"message":{"role":"assistant","content":"b"}},{"message":{"role":"assistant","content":"c"}}]}"#,
                ),
                ("https://a.b/v1/embeddings", r#"{"input":"a"}"#, "200", "{}"),
                (
                    CHAT,
                    r#"{"messages":[{"role":"user","content":"other"}]}"#,
                    "400",
                    r#"{"error":{"code":"tool_use_failed"}}"#,
                ),
            ],
            r#"
1/environment
  unknown "" {"uri":"https://a.b/v1/embeddings","request":{"input":"a"},"status":200,"response":{}}
1/user*
  event "a"
1/agent*
  action "" {"toolName":"f","toolCallId":"x","parameters":{}}
1/environment*
  result "" {"toolName":"f","toolCallId":"x"}
1/agent*
  speech "b"
2/user*
  event "other""#,
        );
        assert_eq!((report.sessions, report.unknown_records), (2, 1));
        assert_eq!(
            format!("{:?}", report.skipped),
            r#"{"failed response": 1, "superseded request": 1}"#
        );
    }

    #[test]
    fn a_paused_turn_goes_on_in_the_response_and_the_cache_marker_moves() {
        check(
            &[
                (
                    MESSAGES,
                    r#"{"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}"#,
                    "200",
                    r#"{"type":"message","role":"assistant","content":[],"stop_reason":"pause_turn"}"#,
                ),
                (
                    MESSAGES,
                    r#"{"system":"S2","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}]}"#,
                    "200",
                    r#"{"type":"message","role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}"#,
                ),
            ],
            r#"
1/system
  system "S2"
1/user*
  event "a"
1/agent*
  action "" {"toolName":"web_search","toolCallId":"s","parameters":{}}
1/agent*
  result "" {"toolName":"web_search","toolCallId":"s"}"#,
        );
    }

    #[test]
    fn an_outcome_that_the_client_dropped_is_taken_from_the_response() {
        check(
            &[
                (
                    RESPONSES,
                    r#"{"input":"a"}"#,
                    "200",
                    r#"{"id":"r1","output":[{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","output":"A."}]}"#,
                ),
                (
                    RESPONSES,
                    r#"{"input":[{"role":"user","content":"a"},{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","output":null}]}"#,
                    "200",
                    r#"{"id":"r2","output":[]}"#,
                ),
            ],
            r#"
1/user*
  event "a"
1/agent
  action "" {"toolName":"ask","toolCallId":"m","parameters":{}}
  result "A." {"toolName":"ask","toolCallId":"m"}"#,
        );
    }

    #[test]
    fn a_request_builds_on_the_response_that_it_names_also_when_it_is_retried() {
        let reply = |id: &str, text: &str| {
            format!(
                r#"{{"id":"{id}","error":null,"output":[{{"type":"message","role":"assistant","content":"{text}"}}]}}"#
            )
        };
        let again = r#"{"previous_response_id":"r1","input":"b"}"#;
        check(
            &[
                (RESPONSES, r#"{"input":"a"}"#, "200", &reply("r1", "A")),
                (RESPONSES, again, "500", r#"{"error":{}}"#),
                (RESPONSES, again, "200", &reply("r2", "B")),
                (
                    RESPONSES,
                    r#"{"previous_response_id":"r2","input":"c"}"#,
                    "200",
                    &reply("r3", "C"),
                ),
            ],
            r#"
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "B"
1/user*
  event "c"
1/agent*
  speech "C""#,
        );
    }

    #[test]
    fn streams_are_joined() {
        check(
            &[
                (
                    CHAT,
                    r#"{"messages":[]}"#,
                    "200",
                    r#""data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]""#,
                ),
                (
                    MESSAGES,
                    r#"{"messages":[]}"#,
                    "200",
                    r#""data: {\"type\":\"error\",\"error\":{}}\n\n""#,
                ),
                (
                    RESPONSES,
                    r#"{"input":[]}"#,
                    "200",
                    r#""data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"c\"}]}}\n""#,
                ),
            ],
            r#"
1/agent*
  speech "a"
3/agent*
  speech "c""#,
        );
    }
}
