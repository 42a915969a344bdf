//! Calls of models as LiteLLM logs them, and gateways like it: the messages and the parameters beside
//! the response, with the usage, the price and the times.

use super::{
    Api,
    body::Payload,
    interaction::{Interaction, milliseconds},
    times::rfc3339,
};
use crate::json::{Object, ObjectExt, Value, object};

/// What LiteLLM writes in the place of each text that it leaves out.
const LEFT_OUT: &str = "redacted-by-litellm";
/// What stands where it cut a list of messages, or an answer, off that it had made a text of.
const CUT: &str = "truncated by litellm";
/// What calls of other services have in the names of their kinds.
const OTHERS: [&str; 6] = ["embedding", "image", "speech", "transcription", "moderation", "rerank"];

impl Interaction {
    /// Whether a value has the shape of a call as gateways log it.
    pub(super) fn is_logged_call(value: &Value) -> bool {
        let has = |key: &str| value.get(key).is_some();
        let Some((messages, response)) = value.get("messages").zip(value.get("response")) else {
            return false;
        };
        match messages {
            Value::Array(_) => {
                let answers = ["choices", "output", "content"];
                has("call_type") || answers.iter().any(|key| response.get(key).is_some())
            }
            _ => has("call_type") && has("startTime"),
        }
    }

    /// A call as gateways log it; the value itself where it is none.
    pub(super) fn of_logged_call(value: Value, line: u64) -> Result<Self, Value> {
        if !Self::is_logged_call(&value) {
            return Err(value);
        }
        let Value::Object(mut call) = value else { return Err(value) };
        let response = call.shift_remove("response").unwrap_or_default();
        let text = |key: &str| call.str_at(key);
        let kind = text("call_type").unwrap_or_default();
        let is_completion = kind.contains("text_completion")
            || response.str_at("object") == Some("text_completion");
        let other = match () {
            () if is_completion => Some("/v1/completions".to_owned()),
            () => OTHERS.iter().any(|name| kind.contains(name)).then(|| format!("/{kind}")),
        };
        let api = match () {
            () if response.get("choices").is_some() => Api::Chat,
            () if response.get("output").is_some() || kind.ends_with("responses") => Api::Responses,
            () if response.get("content").is_some() || kind == "anthropic_messages" => {
                Api::Messages
            }
            () => Api::Chat,
        };
        let seconds = |key: &str| match call.get(key)? {
            Value::Number(seconds) => milliseconds(seconds.as_f64() * 1e3),
            _ => None,
        };
        let (start, end) = (seconds("startTime"), seconds("endTime"));
        let failed = text("status") == Some("failure");
        let failure = failed.then(|| text("error_str").unwrap_or("a failure").to_owned());
        let usage = usage_of(&call, &response);
        let started = text("startTime").map(str::to_owned);
        let started = started.or_else(|| Some(rfc3339(start?.saturating_mul(1_000_000))));
        let mut request = Object::new();
        request.put_some("model", call.shift_remove("model"));
        let parameters = ["model_parameters", "optional_params"];
        let parameters = parameters.iter().find_map(|key| match call.shift_remove(key) {
            Some(Value::Object(parameters)) => Some(parameters),
            _ => None,
        });
        request.put_unknown(&parameters.unwrap_or_default());
        for key in ["tools", "system", "instructions"] {
            request.put_some(key, call.shift_remove(key));
        }
        let mut messages = call.shift_remove("messages").unwrap_or_default();
        // The database of LiteLLM holds the body that its proxy was sent beside empty messages.
        if is_empty(&messages)
            && let Some(mut sent) = body_of_proxy(&mut call)
            && let Some(said) = sent.shift_remove(api.conversation_key())
        {
            messages = said;
            request.put_unknown(&sent);
        }
        let left_out = why_left_out(&messages);
        let messages = match messages {
            _ if other.is_some() => messages,
            // LiteLLM itself takes a text for a message of the user.
            Value::String(text) if api != Api::Responses => {
                let message = object! { "role": "user", "content": text };
                Value::Array(vec![message.into()])
            }
            messages => messages,
        };
        let key = other.as_ref().map_or(api.conversation_key(), |_| "input");
        request.put_some(key, left_out.is_none().then_some(messages));
        let path = match api {
            Api::Chat => "/chat/completions",
            Api::Messages => "/messages",
            Api::Responses => "/responses",
            _ => ":generateContent",
        };
        let cut = why_cut(&response).filter(|_| failure.is_none());
        let response = match response {
            Value::String(text) => Value::String(text),
            // Calls may be left of it.
            response if cut.is_some() => {
                let left = Some(without_marks(response)).filter(|of| api.says_something(of));
                left.unwrap_or_else(|| "".into())
            }
            response => response,
        };
        Ok(Self {
            uri: other.unwrap_or_else(|| path.to_owned()),
            request: Payload::Json(request.into()),
            is_cut_in_store: cut.is_some(),
            cut: cut.map(str::to_owned),
            response: Payload::of_value(response),
            left_out,
            started,
            duration_ms: end.zip(start).and_then(|(end, start)| end.checked_sub(start)),
            failure,
            usage: (!usage.is_empty()).then(|| usage.into()),
            line,
            is_logged: true,
            ..Self::default()
        })
    }
}

/// The usage of a call, in the response or beside it, with its price.
fn usage_of(call: &Object, response: &Value) -> Object {
    let mut usage = match response.get("usage").or_else(|| call.get("usage")) {
        Some(Value::Object(usage)) => usage.clone(),
        _ => call.iter().filter(|(key, _)| key.ends_with("_tokens")).fold(
            Object::new(),
            |mut usage, (key, count)| {
                usage.put(key, count.clone());
                usage
            },
        ),
    };
    if !usage.contains_key("cost") {
        let cost = ["response_cost", "spend"].iter().find_map(|key| call.get(key));
        usage.put_some("cost", cost.filter(|cost| !cost.is_null()).cloned());
    }
    // What the gateway's cache answered was asked of no provider, and the answer reports it again.
    let hit = call.get("cache_hit");
    let is_said = hit.and_then(Value::as_str).is_some_and(|hit| hit.eq_ignore_ascii_case("true"));
    if is_said || hit == Some(&Value::Bool(true)) {
        usage = object! { "prompt_tokens": 0_u64, "completion_tokens": 0_u64 };
    }
    usage
}

fn is_empty(messages: &Value) -> bool {
    match messages {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        messages => messages.is_null(),
    }
}

/// The body that LiteLLM's proxy was sent.
fn body_of_proxy(call: &mut Object) -> Option<Object> {
    let Value::Object(mut sent) = call.shift_remove("proxy_server_request")? else { return None };
    Some(match sent.shift_remove("body") {
        Some(Value::Object(body)) => body,
        _ => sent,
    })
}

/// Why the messages of a call are not known.
fn why_left_out(messages: &Value) -> Option<&'static str> {
    Some(match messages {
        messages if is_empty(messages) => "the log has no messages",
        Value::Object(_) => "the log has an object in the place of messages",
        messages if is_left_out(messages) => "LiteLLM left the messages out of its log",
        Value::String(text) if is_cut(text) => "LiteLLM cut the messages off in its log",
        _ => return None,
    })
}

/// Why an answer is not whole in the log.
fn why_cut(response: &Value) -> Option<&'static str> {
    match response {
        Value::Null => Some("the log has no answer"),
        Value::Object(members) if members.is_empty() => Some("the log has no answer"),
        response if is_left_out(response) => Some("LiteLLM left the answer out of its log"),
        Value::String(text) if is_cut(text) => Some("LiteLLM cut the answer off in its log"),
        _ => None,
    }
}

fn is_left_out(value: &Value) -> bool {
    match value {
        Value::String(text) => text == LEFT_OUT,
        Value::Array(items) => items.iter().any(is_left_out),
        Value::Object(members) => members.values().any(is_left_out),
        _ => false,
    }
}

/// What is left of an answer, with empty texts in the place of those that were left out.
fn without_marks(value: Value) -> Value {
    match value {
        Value::String(text) if text == LEFT_OUT => "".into(),
        Value::Array(items) => items.into_iter().map(without_marks).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| (key, without_marks(value)));
            members.collect::<Object>().into()
        }
        other => other,
    }
}

fn is_cut(text: &str) -> bool {
    text.get(text.len().saturating_sub(100)..).unwrap_or(text).contains(CUT)
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Exchange, ImportReport, Money, Transcript, testing};

    fn call(kind: &str, messages: &str, response: &str) -> String {
        let head = format!(r#""call_type":"{kind}","model":"m","startTime":1777629600.5"#);
        let sums = r#""prompt_tokens":100,"completion_tokens":10,"response_cost":0.0008"#;
        format!(r#"{{{head},"messages":{messages},"response":{response},{sums}}}"#)
    }

    fn read(input: &str) -> (Vec<Exchange>, ImportReport) {
        let mut transcript = Transcript::new(input.as_bytes()).unwrap();
        assert_eq!(transcript.format().name(), "wire");
        transcript.keep_exchanges();
        transcript.by_ref().for_each(|record| drop(record.unwrap()));
        (transcript.take_exchanges(), transcript.report().clone())
    }

    #[test]
    fn a_text_in_the_place_of_messages_is_one_of_the_user() {
        let chat = r#"{"choices":[{"message":{"role":"assistant","content":"A"}}]}"#;
        let items = r#"{"output":[{"type":"message","role":"assistant","content":"A"}]}"#;
        for (kind, response) in [("acompletion", chat), ("aresponses", items)] {
            let input = call(kind, r#""a""#, response);
            testing::check("wire", &input, "\n1/user*\n  event \"a\"\n1/agent*\n  speech \"A\"");
        }
    }

    #[test]
    fn a_row_of_the_database_has_its_request_and_its_price_beside_empty_messages() {
        let row = r#"{"request_id":"r","call_type":"acompletion","model":"gpt-4o","spend":0.0008,
            "startTime":"2026-11-01T08:00:00.000Z","prompt_tokens":100,"completion_tokens":10,
            "messages":{},"proxy_server_request":{"model":"alias","temperature":0,
            "messages":[{"role":"user","content":"a"}]},
            "response":{"choices":[{"message":{"role":"assistant","content":"A"}}]}}"#;
        let (exchanges, _) = read(&row.replace('\n', " "));
        let [exchange] = exchanges.as_slice() else { panic!("{exchanges:?}") };
        let said = r#""messages":[{"role":"user","content":"a"}]"#;
        assert_eq!(*exchange.request, format!(r#"{{"model":"gpt-4o","temperature":0,{said}}}"#));
        let usage = exchange.usage.as_ref().unwrap();
        assert_eq!((usage.input, usage.output), (Some(100), Some(10)));
        assert_eq!(usage.cost.map(Money::pico), Some(800_000_000));
        assert_eq!((exchange.unread.as_deref(), exchange.line), (None, Some(1)));
    }

    #[test]
    fn of_messages_that_the_log_left_out_a_request_is_listed_that_says_so() {
        let redacted =
            r#"{"choices":[{"message":{"role":"assistant","content":"redacted-by-litellm"}}]}"#;
        let short = r#"{"text":"redacted-by-litellm"}"#;
        let message = r#"[{"role":"user","content":"redacted-by-litellm"}]"#;
        let cut =
            r#""[{'role': 'user', 'content': 'a...truncated by litellm, this logger does not""#;
        let left_out = "LiteLLM left the messages out of its log";
        for (messages, response, reason) in [
            (message, redacted, left_out),
            (r#""redacted-by-litellm""#, short, left_out),
            (
                cut,
                r#""{'id': 1 ...truncated by litellm, this logger""#,
                "LiteLLM cut the messages off in its log",
            ),
            ("{}", "{}", "the log has no messages"),
            ("null", "null", "the log has no messages"),
            (r#"{"contents":[]}"#, "{}", "the log has an object in the place of messages"),
        ] {
            let input = call("acompletion", messages, response);
            testing::check("wire", &input, "");
            let (exchanges, report) = read(&input);
            let [exchange] = &exchanges[..] else { panic!("{messages}") };
            assert_eq!(exchange.unread.as_deref(), Some(reason));
            assert_eq!((exchange.model.as_deref(), report.unknown_records), (Some("m"), 0));
            let usage = exchange.usage.as_ref().unwrap();
            assert_eq!((usage.input, usage.output), (Some(100), Some(10)), "{messages}");
            assert!(usage.cost.is_some(), "{messages}");
            assert!(exchange.cut.is_some() && exchange.failure.is_none(), "{messages}");
        }
        // Its calls may be kept.
        let called = r#"{"choices":[{"message":{"role":"assistant","content":"redacted-by-litellm",
            "tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{\"at\":\"north quay seven\"}"}}]}}]}"#;
        let input = call("acompletion", r#"[{"role":"user","content":"a"}]"#, called);
        let (exchanges, report) = read(&input);
        assert!(exchanges[0].cut.is_some() && exchanges[0].failure.is_none(), "{:?}", exchanges[0]);
        assert_eq!(report.unknown_records, 0);
        assert!(
            exchanges[0].response.as_deref().unwrap().contains("north quay seven"),
            "{:?}",
            exchanges[0]
        );
        let answer = r#"{"choices":[{"message":{"role":"assistant","content":"it was \"redacted-by-litellm\""}}]}"#;
        let (exchanges, _) = read(&call("acompletion", r#""a""#, answer));
        assert!(exchanges[0].unread.is_none() && exchanges[0].cut.is_none());
    }

    #[test]
    fn what_a_cache_of_the_gateway_answered_used_nothing() {
        let answer = r#"{"choices":[{"message":{"role":"assistant","content":"A"}}],"usage":{"prompt_tokens":100,"completion_tokens":10}}"#;
        let asked = call("acompletion", r#""a""#, answer);
        let hit = |said: &str| asked.replacen('{', &format!(r#"{{"cache_hit":{said},"#), 1);
        let (exchanges, _) =
            read(&[&*asked, &hit("true"), &hit(r#""True""#), &hit(r#""False""#)].join("\n"));
        let inputs: Vec<_> = { exchanges.iter() }
            .map(|of| of.usage.as_ref().and_then(|usage| usage.input))
            .collect();
        assert_eq!(inputs, [Some(100), None, None, Some(100)]);
        assert!(exchanges.iter().all(|of| of.failure.is_none()));
    }

    #[test]
    fn calls_of_text_completions_and_of_other_services_are_none_of_a_chat() {
        let text = r#"{"object":"text_completion","choices":[{"text":"A"}]}"#;
        let input = [
            call("atext_completion", r#""a""#, text),
            call("acompletion", r#"[{"role":"user","content":"a"}]"#, text),
            call("aembedding", r#"[{"role":"user","content":"a"}]"#, r#"{"data":[]}"#),
        ];
        let (exchanges, report) = read(&input.join("\n"));
        assert!(exchanges.is_empty());
        assert_eq!(format!("{:?}", report.unread_requests), r#"{"OpenAI Completions": 2}"#);
        assert_eq!(report.unknown_records, 3);
    }
}
