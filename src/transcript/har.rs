//! HTTP archives of browsers and proxies. They hold what went through a WebSocket as a list of its
//! messages, in an entry of its own.

#[cfg(feature = "record")]
use super::times::rfc3339;
use super::{
    Api, api,
    body::Payload,
    bytes,
    interaction::{Interaction, milliseconds},
    kept::{self, KeptCall},
    sink::Sink,
    times::moment,
    wire::WireReader,
};
use crate::json::{self, ObjectExt, Value};

/// The members in which exporters keep the messages of a WebSocket.
const MESSAGES: [&str; 3] = ["_webSocketMessages", "_websocketMessages", "webSocketMessages"];
/// How text of these bytes, from 0x80 on, is shown by those who take UTF-8 for the code page of
/// Windows; in Latin-1 they stand for themselves.
const CODE_PAGE: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// Reads the entries of HAR archives.
#[derive(Default)]
pub(super) struct HarReader(WireReader);

impl HarReader {
    /// An object with a list `log.entries` of requests and responses.
    pub(super) fn is_document(value: &Value) -> bool {
        let entries = value.get("log").and_then(|log| log.get("entries"));
        let entries = entries.and_then(Value::as_array);
        // A log of nothing is one too; one odd entry is told of.
        entries.is_some_and(|list| list.is_empty() || list.iter().any(Interaction::is_har_entry))
    }
}

/// Sorts entries by their times, which exporters may write in another order, and in several zones.
/// Where one has none, or one of another form, they stay as they are.
fn in_order_of_time(interactions: &mut [Interaction]) {
    let time = |interaction: &Interaction| moment(interaction.started.as_deref()?);
    if interactions.iter().any(|interaction| time(interaction).is_none()) {
        return;
    }
    interactions.sort_by_cached_key(time);
    for (line, interaction) in (1..).zip(interactions) {
        interaction.line = line;
    }
}

impl super::Decoder for HarReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let entries = match value {
            Value::Object(mut object) => match object.shift_remove("log") {
                Some(Value::Object(mut log)) => log.shift_remove("entries"),
                _ => None,
            },
            _ => None,
        };
        let Some(Value::Array(entries)) = entries else {
            return sink.unread(line, "no `log.entries`", String::new());
        };
        let mut interactions = Vec::with_capacity(entries.len());
        let mut line = 0;
        for mut entry in entries {
            line += 1;
            let messages = socket_messages(&mut entry);
            let interaction = match Interaction::of_har(entry, line) {
                Ok(interaction) => interaction,
                Err(entry) => {
                    sink.unknown(line, "an entry without a request", entry);
                    continue;
                }
            };
            if let Some(messages) = messages {
                let calls = socket_calls(interaction, messages, sink);
                line += (calls.len() as u64).saturating_sub(1);
                interactions.extend(calls);
            } else if interaction.may_be_of_a_model()
                || interaction.unread_api().is_some()
                || KeptCall::of(&interaction).is_some()
                || kept::fetched_id(&interaction).is_some()
            {
                interactions.push(interaction);
            } else {
                // A page and its pictures are traffic too, and none of a model's.
                sink.skip("other traffic");
            }
        }
        in_order_of_time(&mut interactions);
        for interaction in interactions {
            if is_mistaken(&interaction.request) || is_mistaken(&interaction.response) {
                let note =
                    "a body that its exporter took for Latin-1: its UTF-8 is read as it stands";
                sink.note(interaction.line, note);
            }
            self.0.take(interaction, sink);
        }
        std::mem::take(&mut self.0).give(sink);
    }
}

/// Whether a body is UTF-8 that was taken for another code.
fn is_mistaken(body: &Payload) -> bool {
    let Payload::Text(text) = body else { return false };
    let text = text.as_str();
    let byte = |c: char| {
        let of_page = || u8::try_from(CODE_PAGE.chars().position(|known| known == c)? + 0x80).ok();
        u8::try_from(u32::from(c)).ok().or_else(of_page)
    };
    !text.is_ascii()
        && text
            .chars()
            .map(byte)
            .collect::<Option<Vec<u8>>>()
            .is_some_and(|bytes| std::str::from_utf8(&bytes).is_ok())
}

/// The messages of an entry that is a WebSocket, as far as they were kept; `None` where it is none.
fn socket_messages(entry: &mut Value) -> Option<Vec<Value>> {
    let is_socket = entry.pointer("/response/status").and_then(Value::as_u64) == Some(101)
        || entry.str_at("_resourceType") == Some("websocket")
        || entry.get("request")?.str_at("url")?.starts_with("ws");
    let Value::Object(entry) = entry else { return None };
    let mut messages = MESSAGES.iter().filter_map(|key| match entry.shift_remove(key)? {
        Value::Array(messages) if !messages.is_empty() => Some(messages),
        _ => None,
    });
    messages.next().or_else(|| is_socket.then(Vec::new))
}

/// The calls of a WebSocket, each as a request of its own. What cannot be read of it is told.
fn socket_calls(opened: Interaction, messages: Vec<Value>, sink: &mut Sink) -> Vec<Interaction> {
    let of_responses = Api::of_uri(&opened.uri) == Some(Api::Responses);
    if cfg!(feature = "record") && of_responses && !messages.is_empty() {
        return calls_of(&opened, &messages, sink);
    }
    let answers = answers_in(&messages);
    let unread = match Api::of_uri(&opened.uri) {
        Some(_) if messages.is_empty() => {
            Some("a WebSocket whose messages were not kept".to_owned())
        }
        Some(_) => Some("a model over a WebSocket".to_owned()),
        None => api::unread_api(&opened.uri, None)
            .or_else(|| (answers > 0).then(|| api::unknown_api(&opened.uri)))
            .map(|api| format!("{api} over a WebSocket")),
    };
    match unread {
        Some(api) => {
            let (reason, line) = (sink.unread_requests(&api, answers.max(1)), opened.line);
            let mut record = opened.into_json();
            if let Value::Object(record) = &mut record {
                record.put("messages", messages);
            }
            sink.unknown(line, reason, record);
        }
        None => sink.skip("other traffic"),
    }
    Vec::new()
}

/// How many answers of a model the messages of a WebSocket hold: as many as the provider began or
/// ended, or the client asked for.
fn answers_in(messages: &[Value]) -> u64 {
    let (mut asked, mut begun, mut ended) = (0, 0, 0);
    for SocketMessage { is_sent, bytes, .. } in messages.iter().filter_map(SocketMessage::of) {
        let Ok(message) = json::read(&bytes) else { continue };
        let is_turn = || message.pointer("/serverContent/turnComplete") == Some(&true.into());
        match message.str_at("type") {
            Some("response.create") if is_sent => asked += 1,
            Some("response.created") if !is_sent => begun += 1,
            Some("response.completed" | "response.done") if !is_sent => ended += 1,
            _ if !is_sent && is_turn() => ended += 1,
            _ => {}
        }
    }
    asked.max(begun).max(ended)
}

#[cfg(not(feature = "record"))]
fn calls_of(_opened: &Interaction, _messages: &[Value], _sink: &mut Sink) -> Vec<Interaction> {
    Vec::new()
}

/// The calls of a WebSocket of the Responses API.
#[cfg(feature = "record")]
fn calls_of(opened: &Interaction, messages: &[Value], sink: &mut Sink) -> Vec<Interaction> {
    use crate::record::SocketAnswers;
    let mut calls: Vec<(Interaction, Vec<u8>, Option<u64>)> = Vec::new();
    let mut answers = SocketAnswers::default();
    for message in messages {
        let Some(SocketMessage { is_sent, bytes, time_ms }) = SocketMessage::of(message) else {
            sink.skip("message of a WebSocket");
            continue;
        };
        if is_sent && SocketAnswers::is_asking(&bytes, true) {
            answers.ask(calls.len());
            let started = time_ms.map(|ms| rfc3339(ms.saturating_mul(1_000_000)));
            let call = Interaction {
                uri: opened.uri.clone(),
                request: Payload::of_bytes(bytes),
                started: started.or_else(|| opened.started.clone()),
                line: opened.line + calls.len() as u64,
                is_recorded: true,
                ..Interaction::default()
            };
            calls.push((call, Vec::new(), time_ms));
            continue;
        }
        let event = answers.place(&bytes).filter(|_| !is_sent);
        let at = event.and_then(|event| answers.get_mut(event.at).copied());
        let Some((event, (call, body, began))) = event.zip(at.and_then(|at| calls.get_mut(at)))
        else {
            sink.skip("message of a WebSocket");
            continue;
        };
        body.extend(SocketAnswers::as_event(&bytes));
        let duration = time_ms.zip(*began).and_then(|(now, began)| now.checked_sub(began));
        call.duration_ms = duration.or(call.duration_ms);
        if event.is_last {
            answers.remove(event.at);
        }
    }
    // Who exports what is there may come later than the first call.
    for _ in (calls.len() as u64)..answers_in(messages) {
        sink.unread_requests("a WebSocket whose first messages were not kept", 1);
    }
    let whole = |(call, body, _)| Interaction { response: Payload::of_bytes(body), ..call };
    calls.into_iter().map(whole).collect()
}

/// A message of a WebSocket as exporters write it.
struct SocketMessage {
    is_sent: bool,
    bytes: Vec<u8>,
    #[cfg_attr(not(feature = "record"), expect(dead_code, reason = "calls alone have times"))]
    time_ms: Option<u64>,
}

impl SocketMessage {
    fn of(message: &Value) -> Option<Self> {
        let direction = message.str_at("type").or_else(|| message.str_at("direction"))?;
        let is_sent = match direction.to_ascii_lowercase().as_str() {
            "send" | "sent" | "outgoing" | "request" | "client" => true,
            "receive" | "received" | "incoming" | "response" | "server" => false,
            _ => return None,
        };
        let data =
            ["data", "text", "payload", "content"].iter().find_map(|key| message.get(key))?;
        let bytes = match data {
            // Binary messages stand as base64, in some programs all of them.
            Value::String(text) if !text.trim_start().starts_with('{') => {
                bytes::of_base64(text).unwrap_or_else(|_| text.clone().into_bytes())
            }
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        let time_ms = match message.get("time").or_else(|| message.get("timestamp")) {
            // In seconds, or in milliseconds.
            Some(Value::Number(time)) => milliseconds(match time.as_f64() {
                seconds if seconds < 1e11 => seconds * 1e3,
                milliseconds => milliseconds,
            }),
            _ => None,
        };
        Some(Self { is_sent, bytes, time_ms })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        json::{ObjectExt, Value, object},
        transcript::{ImportReport, testing},
    };

    /// An entry that posts this body to an address.
    fn posted(url: &str, body: &str) -> Value {
        let mut request = object! { "method": "POST", "url": url };
        if !body.is_empty() {
            request.put("postData", object! { "text": body });
        }
        object! { "request": request, "response": object! { "status": 200_u64 } }.into()
    }

    #[track_caller]
    fn check(entries: Vec<Value>, expected: &str) -> ImportReport {
        let archive: Value = object! { "log": object! { "entries": Value::Array(entries) } }.into();
        testing::check("har", &archive.to_string(), expected)
    }

    #[test]
    fn requests_to_apis_that_are_not_read_are_counted_by_their_apis() {
        let asked = r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#;
        let google = "https://generativelanguage.googleapis.com/v1beta/models/g";
        let bedrock = "https://bedrock-runtime.x.amazonaws.com/model/anthropic.claude";
        let archive = [
            posted(&format!("{google}:countTokens"), r#"{"contents":[]}"#),
            posted(
                "https://cloudcode-pa.googleapis.com/v1internal:generateContent",
                r#"{"model":"g","request":{"contents":[]}}"#,
            ),
            posted(&format!("{bedrock}/invoke"), asked),
            posted(
                &format!("{}/interactions", google.replace("/models/g", "")),
                r#"{"input":"a"}"#,
            ),
            posted("https://example.com/api/v10/interactions", r#"{"input":"a"}"#),
            posted("https://api.mistral.ai/v1/conversations", r#"{"model":"m","inputs":"a"}"#),
            posted("https://api.replicate.com/v1/models/a/b/predictions", r#"{"input":{}}"#),
            posted("http://127.0.0.1:8080/completion", r#"{"prompt":"a","n_predict":9}"#),
            posted("https://example.com/v2/talk", asked),
            posted("https://example.com/v1/embeddings", r#"{"model":"m","input":"a"}"#),
            posted("https://example.com/form", r#"{"name":"a"}"#),
            posted("https://a.b/v1/chat/completions/c1", r#"{"metadata":{"k":"v"}}"#),
        ];
        let archive: Value =
            object! { "log": object! { "entries": Value::Array(archive.into()) } }.into();
        let (_, _, report) = testing::outline(&archive.to_string());
        assert_eq!(
            format!("{:?}", report.unread_requests),
            r#"{"Amazon Bedrock": 1, "Gemini Code Assist": 1, "Gemini Interactions": 1, "Mistral Agents": 1, "Replicate": 1, "an unknown API at /v2/talk": 1, "llama.cpp": 1}"#
        );
        assert_eq!((report.unknown_records, report.skipped["other traffic"]), (7, 5));
    }

    /// An entry of the Responses API with this answer, `seconds` after the first; without a body it fetches.
    fn of_responses(path: &str, body: &str, seconds: u64, answer: &str) -> Value {
        let mut entry = posted(&format!("https://a.b/v1/responses{path}"), body);
        if let Value::Object(entry) = &mut entry {
            let method = if body.is_empty() { "GET" } else { "POST" };
            if let Some(Value::Object(request)) = entry.get_mut("request") {
                request.put("method", method);
            }
            let content = object! { "text": answer };
            entry.put("response", object! { "status": 200_u64, "content": content });
            entry.put("startedDateTime", format!("2026-11-20T10:00:{seconds:02}Z"));
            entry.put("time", 250_u64);
        }
        entry
    }

    #[test]
    fn an_answer_in_the_background_is_that_which_is_fetched() {
        let asked = r#"{"model":"m","background":true,"input":"When is high water?"}"#;
        let answer = |id: &str, status: &str, said: &str| {
            format!(
                r#"{{"id":"{id}","object":"response","status":"{status}","output":[{said}]{}}}"#,
                if said.is_empty() {
                    ""
                } else {
                    r#","usage":{"input_tokens":40,"output_tokens":7}"#
                }
            )
        };
        let said = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"At four."}]}"#;
        let event = |kind: &str, response: &str| {
            format!("data: {{\"type\":\"response.{kind}\",\"response\":{response}}}\n\n")
        };
        let more = "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"At\"}\n\n";
        let done = event("completed", &answer("r2", "completed", said));
        let begun = event("created", &answer("r2", "queued", ""));
        let items = r#"{"object":"list","data":[{"role":"user","content":"other"}]}"#;
        let resumed = "?stream=true&starting_after=1";
        let entries = [
            of_responses("", asked, 1, &answer("r1", "queued", "")),
            of_responses("/r1?aborted", "", 2, ""),
            of_responses("/r1", "", 2, &answer("r1", "in_progress", "")),
            of_responses("/r1/input_items", "", 2, items),
            of_responses("/r1", "", 3, &answer("r1", "completed", said)),
            of_responses("", &asked.replace("high", "low"), 4, &begun),
            of_responses(&format!("/r2{resumed}"), "", 5, &format!("{more}{done}")),
            of_responses("", &asked.replace("high", "no"), 6, &answer("r3", "queued", "")),
            of_responses("/r3", "", 7, &answer("r3", "in_progress", "")),
            of_responses("/nobody", "", 7, &answer("nobody", "completed", said)),
            of_responses("/7", "", 7, "<p>Seven have answered.</p>"),
            of_responses("", &asked.replace("high", "slack"), 8, &answer("r4", "queued", "")),
            of_responses(&format!("/r4{resumed}"), "", 9, more),
            of_responses("/r4", "", 10, &answer("r4", "completed", said)),
            of_responses("", &asked.replace("high", "deep"), 11, &answer("r5", "queued", "")),
            of_responses(&format!("/r5{resumed}"), "", 12, more),
            of_responses("/r5", "", 13, &answer("r5", "in_progress", "")),
        ];
        let archive: Value =
            object! { "log": object! { "entries": Value::Array(entries.into()) } }.into();
        let [answered, aborted] =
            [200, 0].map(|status| format!(r#"/r1?aborted"}},"response":{{"status":{status}"#));
        let archive = archive.to_string().replace(&answered, &aborted);
        assert!(archive.contains(&aborted), "{archive}");
        let report = testing::check(
            "har",
            &archive,
            r#"
1/user*
  event "When is high water?"
1/agent*
  speech "At four."
2/user*
  event "When is low water?"
2/agent*
  speech "At four."
3/user*
  event "When is slack water?"
3/agent*
  speech "At four."
4/user*
  event "When is no water?"
5/user*
  event "When is deep water?"
5/agent*
  speech "At""#,
        );
        let skipped = r#"{"items that a provider keeps": 11, "other traffic": 1}"#;
        assert_eq!(format!("{:?}", report.skipped), skipped);
        let mut transcript = crate::transcript::Transcript::new(archive.as_bytes()).unwrap();
        transcript.keep_exchanges();
        transcript.by_ref().for_each(|record| drop(record.unwrap()));
        let exchanges = transcript.take_exchanges().into_iter();
        let told: Vec<_> = exchanges
            .map(|of| (of.usage.and_then(|usage| usage.output), of.failure, of.duration_ms))
            .collect();
        let cut = Some("broken off: the stream has no end".to_owned());
        let expected = [
            (Some(7), None, Some(2_250)),
            (Some(7), None, Some(1_250)),
            (Some(7), None, Some(2_250)),
            (None, None, Some(250)),
            (None, cut, Some(1_250)),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_a_provider_keeps_may_be_all_that_a_request_asks_with() {
        let said = r#"{"id":"r","model":"m2","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"At four."}]}]}"#;
        let kept =
            r#"{"items":[{"type":"message","role":"user","content":"When is high water?"}]}"#;
        let mut made = posted("https://a.b/v1/conversations", kept);
        if let Value::Object(made) = &mut made {
            let content = object! { "text": r#"{"id":"c","object":"conversation"}"# };
            made.put("response", object! { "status": 200_u64, "content": content });
        }
        let entries = vec![
            made,
            of_responses("", r#"{"model":"m","conversation":"c"}"#, 1, said),
            of_responses("", r#"{"prompt":{"id":"p","variables":{"port":"Brest"}}}"#, 2, said),
        ];
        let archive: Value = object! { "log": object! { "entries": Value::Array(entries) } }.into();
        let archive = archive.to_string();
        let mut transcript = crate::transcript::Transcript::new(archive.as_bytes()).unwrap();
        transcript.keep_exchanges();
        let texts: Vec<_> = transcript.by_ref().map(|record| record.unwrap().frame).collect();
        assert_eq!((texts.len(), transcript.report().unknown_records), (3, 0));
        let exchanges = transcript.take_exchanges();
        let told: Vec<_> =
            exchanges.iter().map(|of| (of.model.as_deref(), of.unread.as_deref())).collect();
        assert_eq!(told, [(Some("m"), None), (Some("m2"), None)]);
        assert!(exchanges[1].request.contains("Brest"));
    }

    #[test]
    fn models_of_anthropic_that_others_serve_are_read() {
        let body = r#"{"anthropic_version":"v","messages":[{"role":"user","content":"a"}]}"#;
        check(
            vec![
                posted("https://b.amazonaws.com/model/claude/invoke", body),
                posted(
                    "https://x-aiplatform/v1/publishers/anthropic/models/claude:rawPredict",
                    body,
                ),
            ],
            "\n1/user*\n  event \"a\"",
        );
    }

    #[test]
    fn a_text_that_was_taken_for_another_code_is_told() {
        let chat = |text: &str| {
            let body = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
            posted("https://a.b/v1/chat/completions", &body)
        };
        let noted =
            |text: &str| check(vec![chat(text)], &format!("1/user*\n  event \"{text}\"")).noted;
        // Latin-1, the code page of Windows, and texts that are meant so.
        assert_eq!(
            ["Ã\u{a9}t\u{c3}\u{a9}", "â€™", "été", "naïve 🌊", "a"].map(noted),
            [1, 1, 0, 0, 0]
        );
    }

    fn message(direction: &str, time: f64, data: &str) -> Value {
        let time = crate::json::read(time.to_string().as_bytes()).unwrap();
        object! { "type": direction, "time": time, "opcode": 1_u64, "data": data }.into()
    }

    /// A WebSocket to an address, with these messages.
    fn socket(url: &str, messages: Vec<Value>) -> Value {
        let mut entry = posted(url, "");
        let Value::Object(of) = &mut entry else { unreachable!() };
        of.put("_resourceType", "websocket");
        of.put("_webSocketMessages", messages);
        entry
    }

    #[test]
    fn requests_over_a_websocket_that_is_not_read_are_counted_one_by_one() {
        let asked = || message("send", 1.0, r#"{"type":"response.create"}"#);
        let begun =
            || message("receive", 1.0, r#"{"type":"response.created","response":{"id":"r"}}"#);
        let live = message("receive", 1.0, r#"{"serverContent":{"turnComplete":true}}"#);
        let google = "wss://generativelanguage.googleapis.com/ws/google.ai.GenerativeService";
        let other = || message("receive", 1.0, r#"{"type":"message","text":"hi"}"#);
        let archive = [
            // One was asked for by the client, and all were begun by the provider.
            socket(
                "wss://api.openai.com/v1/realtime?model=m",
                vec![asked(), begun(), other(), begun(), begun()],
            ),
            socket("wss://x.openai.azure.com/openai/realtime", vec![other()]),
            socket(&format!("{google}.BidiGenerateContent?key=k"), vec![live.clone(), live]),
            socket("wss://gateway.example/v2/talk?k=1", vec![asked(), begun()]),
            socket("wss://news.example/feed", vec![other(), other()]),
        ];
        let archive: Value =
            object! { "log": object! { "entries": Value::Array(archive.into()) } }.into();
        let (_, _, report) = testing::outline(&archive.to_string());
        assert_eq!(
            format!("{:?}", report.unread_requests),
            r#"{"Gemini Live over a WebSocket": 2, "OpenAI Realtime over a WebSocket": 4, "an unknown API at /v2/talk over a WebSocket": 1}"#
        );
        assert_eq!((report.unknown_records, report.skipped["other traffic"]), (4, 1));
    }

    #[cfg(feature = "record")]
    #[test]
    fn answers_of_a_websocket_whose_requests_were_not_kept_are_counted() {
        let ended = r#"{"type":"response.completed","response":{"id":"r1","output":[]}}"#;
        let entry = socket("wss://x.y/v1/responses", vec![message("receive", 1.0, ended)]);
        let report = check(vec![entry], "");
        assert_eq!(report.unread_requests["a WebSocket whose first messages were not kept"], 1);
    }

    #[cfg(feature = "record")]
    #[test]
    fn each_answer_of_a_websocket_is_a_request() {
        let asked = |more: &str, text: &str| {
            format!(
                r#"{{"type":"response.create","model":"m",{more}"input":[{{"role":"user","content":"{text}"}}]}}"#
            )
        };
        let ended = |id: &str, text: &str| {
            format!(
                r#"{{"type":"response.completed","response":{{"id":"{id}","output":[{{"type":"message","role":"assistant","content":"{text}"}}],"usage":{{"input_tokens":5,"output_tokens":1}}}}}}"#
            )
        };
        // In base64, as binary messages are written.
        let packed = "eyJ0eXBlIjoicmVzcG9uc2UuY3JlYXRlZCIsInJlc3BvbnNlIjp7ImlkIjoicjIifX0=";
        let messages = vec![
            message("receive", 1.0, r#"{"type":"session.created"}"#),
            message("send", 2.0, &asked("", "a")),
            message("receive", 2.5, r#"{"type":"response.created","response":{"id":"r1"}}"#),
            message("receive", 3.0, &ended("r1", "A")),
            message("send", 4.0, &asked(r#""previous_response_id":"r1","#, "b")),
            message("receive", 4.5, packed),
            message("receive", 5.0, &ended("r2", "B")),
        ];
        let url = "wss://x.y/backend-api/codex/responses";
        let (entry, kept_nothing) = (socket(url, messages), posted(url, ""));
        let report = check(
            vec![entry, kept_nothing],
            r#"
1/environment
  unknown "" {"uri":"wss://x.y/backend-api/codex/responses","status":200,"messages":[]}
1/user*
  event "a"
1/agent*
  speech "A"
1/user*
  event "b"
1/agent*
  speech "B""#,
        );
        assert_eq!(report.skipped["message of a WebSocket"], 1);
        assert_eq!(report.unread_requests["a WebSocket whose messages were not kept"], 1);
    }
}
