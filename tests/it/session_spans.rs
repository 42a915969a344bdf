//! What a session tells of itself through `tracing`.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use afterimage::{
    json,
    log::Holder,
    session::{Awaits, JournalStore, MemoryStore, Model, Session, Tool},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

/// The fields of a span or an event, with its name as `name`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// A subscriber that keeps what it is told.
#[derive(Clone, Debug, Default)]
struct Kept {
    next: Arc<AtomicU64>,
    open: Arc<Mutex<BTreeMap<u64, Fields>>>,
    /// Spans in the order in which they ended.
    ended: Arc<Mutex<Vec<Fields>>>,
    /// Events, with `in`, the name of the span that they are in.
    events: Arc<Mutex<Vec<Fields>>>,
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "afterimage"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        fields.0.insert("name", span.metadata().name().to_owned());
        self.open.lock().unwrap().insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(self.open.lock().unwrap().get_mut(&span.into_u64()).unwrap());
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        fields.0.insert("name", event.metadata().name().to_owned());
        if let Some(parent) = event.parent() {
            let parent = self.open.lock().unwrap()[&parent.into_u64()].clone();
            fields.0.insert("in", parent.0["name"].clone());
        }
        self.events.lock().unwrap().push(fields);
    }

    fn try_close(&self, span: Id) -> bool {
        let ended = self.open.lock().unwrap().remove(&span.into_u64());
        self.ended.lock().unwrap().extend(ended);
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Kept {
    fn ended(&self) -> Vec<Fields> {
        std::mem::take(&mut self.ended.lock().unwrap())
    }

    fn open(&self) -> usize {
        self.open.lock().unwrap().len()
    }
}

const CALL: &str = r#"{"type": "message", "id": "msg_1", "model": "claude-sonnet-4-6-1", "role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "tide", "input": {}}, {"type": "tool_use", "id": "c2", "name": "wind", "input": {}}], "stop_reason": "tool_use", "usage": {"input_tokens": 41, "output_tokens": 9, "cache_read_input_tokens": 12}}"#;
const SAID: &str = r#"{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "At five."}], "stop_reason": "end_turn"}"#;
const REFUSED: &str =
    r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#;

fn model() -> Model {
    Model::anthropic("claude-sonnet-4-6", 4_000)
}

#[test]
fn a_request_and_its_answer_are_a_span_and_so_is_each_call_of_a_tool() {
    let kept = Kept::default();
    let folder = tempfile::tempdir().unwrap();
    with_default(kept.clone(), || {
        let mut session = Session::open(JournalStore::open(folder.path()).unwrap()).unwrap();
        let schema = json::read(br#"{"type": "object"}"#).unwrap();
        session.tools([Tool::new("tide", "When high water is.", schema)]).unwrap();
        session.user("When must I leave?").unwrap();
        session.request(&model()).unwrap();
        assert!(kept.ended().is_empty(), "the request waits");
        session.answer(CALL).unwrap();
        let [chat] = &kept.ended()[..] else { panic!("the span of the request alone has ended") };
        let expected = [
            ("name", "chat"),
            ("otel.name", "chat claude-sonnet-4-6"),
            ("otel.kind", "client"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.request.model", "claude-sonnet-4-6"),
            ("gen_ai.request.max_tokens", "1000"),
            ("gen_ai.response.id", "msg_1"),
            ("gen_ai.response.model", "claude-sonnet-4-6-1"),
            ("gen_ai.response.finish_reasons", r#"["tool_use"]"#),
            ("gen_ai.usage.input_tokens", "53"),
            ("gen_ai.usage.output_tokens", "9"),
            ("gen_ai.usage.cache_read.input_tokens", "12"),
        ];
        let expected = expected.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(chat.0, BTreeMap::from(expected));

        assert_eq!(kept.open(), 2, "both tools run");
        session.tool_result("c1", "06:20").unwrap();
        session.tool_error("c2", "no wind gauge").unwrap();
        let [tide, wind] = &kept.ended()[..] else { panic!("a span for each call") };
        assert_eq!(tide.get("otel.name"), Some("execute_tool tide"));
        assert_eq!(tide.get("gen_ai.operation.name"), Some("execute_tool"));
        assert_eq!(tide.get("gen_ai.tool.name"), Some("tide"));
        assert_eq!(tide.get("gen_ai.tool.call.id"), Some("c1"));
        assert_eq!((tide.get("error.type"), wind.get("error.type")), (None, Some("tool_error")));

        // One that the provider refused, and the same again.
        session.request(&model()).unwrap();
        session.answer(REFUSED).unwrap_err();
        assert_eq!(kept.ended()[0].get("error.type"), Some("Provider"));
        session.request(&model()).unwrap();
        session.answer(SAID).unwrap();
        assert_eq!(kept.ended()[0].get("gen_ai.response.finish_reasons"), Some(r#"["end_turn"]"#));
    });
    assert_eq!(kept.open(), 0);
}

#[test]
fn a_session_that_was_opened_again_has_no_span_of_what_was_asked_before() {
    let kept = Kept::default();
    let store = MemoryStore::default();
    with_default(kept.clone(), || {
        let mut session = Session::open(store.clone()).unwrap();
        session.user("When must I leave?").unwrap();
        session.request(&model()).unwrap();
        drop(session);
        assert_eq!(kept.ended()[0].get("gen_ai.response.finish_reasons"), None);
        let mut session = Session::open(store.clone()).unwrap();
        session.answer(CALL).unwrap();
        assert!(kept.ended().is_empty());
        // The calls are known: their spans begin with their results.
        session.tool_result("c1", "06:20").unwrap();
        assert_eq!(kept.ended()[0].get("gen_ai.tool.name"), Some("tide"));
    });
}

#[test]
fn a_compression_is_an_event_in_the_span_of_its_request() {
    let kept = Kept::default();
    with_default(kept.clone(), || {
        let mut session = Session::open(MemoryStore::default()).unwrap();
        while kept.events.lock().unwrap().is_empty() && session.turns() < 60 {
            assert_eq!(session.awaits(), Awaits::User);
            session.user("The tide is rising in the harbour. ".repeat(20)).unwrap();
            session.request(&model()).unwrap();
            session.answer(SAID).unwrap();
        }
    });
    let events = kept.events.lock().unwrap();
    let [event] = &events[..] else { panic!("no compression") };
    let number = |name| event.get(name).unwrap().parse::<u64>().unwrap();
    assert_eq!((event.get("name"), event.get("in")), (Some("compression"), Some("chat")));
    assert!(number("blocks") > 0 && number("tokens.before") > number("tokens.after"));
}

#[test]
fn the_name_of_a_session_of_a_journal_is_its_conversation() {
    use afterimage::journal::{Journal, JournalOptions, SessionName};

    let kept = Kept::default();
    let folder = tempfile::tempdir().unwrap();
    with_default(kept.clone(), || {
        let holder = Holder::new("test");
        let journal = Journal::open(folder.path(), &holder, JournalOptions::default()).unwrap();
        let store = JournalStore::of(journal, SessionName::new("pilot").unwrap());
        let mut session = Session::open(store).unwrap();
        session.user("When must I leave?").unwrap();
        session.request(&model()).unwrap();
    });
    assert_eq!(kept.ended()[0].get("gen_ai.conversation.id"), Some("pilot"));
}
