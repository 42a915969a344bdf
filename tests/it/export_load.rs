//! Contexts that were written down are read back, and what is no context is refused with its place.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use afterimage::{
    ErrorKind,
    export::{Export, ExportOptions, ExportedRequest, Form, PrefixRules, prefix_report},
    hud::{Hud, NativeFormat, Owner, RenderRequest, RenderedContext},
    id::{FacetType, Millis},
    json::{self, Value},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
};

fn read(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap()
}

fn load(text: &str) -> afterimage::Result<ExportedRequest> {
    ExportedRequest::from_json(read(text), None)
}

/// A history of a question and an answer with a call, and its context.
fn sample(words: &str) -> (History, RenderedContext) {
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut history = History::new();
    let arguments = read(r#"{"type": "buoy", "role": "north", "n": [1, true, null]}"#);
    let facets = [
        (Source::System, Facet::new("orders", FacetType::SYSTEM, "Count the buoys.")),
        (Source::User, Facet::new("ask", FacetType::EVENT, words)),
        (Source::Agent, Facet::tool_call("look", Some("c1"), "look", arguments)),
        (Source::Environment, Facet::tool_result("seen", Some("c1"), None, "three 🛟")),
    ];
    for (sequence, (source, facet)) in facets.into_iter().enumerate() {
        let frame = Frame::new(sequence as u64, source).with(FacetOp::add(facet));
        hud.capture(&mut history, frame, Millis::new(0)).unwrap();
    }
    let context = hud.render(&history, &RenderRequest::default(), Millis::new(0)).unwrap();
    (history, context)
}

#[test]
fn every_form_is_recognised() {
    for (form, text) in [
        (Form::Plain, r#""user:\nHello.""#),
        (Form::OpenaiChat, "[]"),
        (Form::OpenaiChat, r#"[{"role":"user","content":"Hello."}]"#),
        (Form::OpenaiChat, r#"{"messages":[{"role":"system","content":"Be brief."}]}"#),
        (Form::OpenaiChat, r#"{"messages":[{"role":"tool","tool_call_id":"a","content":""}]}"#),
        (Form::Responses, r#"[{"type":"message","role":"user","content":"Hello."}]"#),
        (Form::Responses, r#"[{"type":"function_call","call_id":"a","name":"f","arguments":""}]"#),
        (Form::Anthropic, r#"{"messages":[{"role":"user","content":"Hello."}]}"#),
        (Form::Anthropic, r#"{"system":"Be brief.","messages":[]}"#),
        (Form::Messages, r#"{"messages":[],"frameToMessage":{}}"#),
        (
            Form::Messages,
            r#"{"session":"a","messages":[{"role":"user","content":"é","spans":[{"start":0,"end":2,"owner":{"framing":"separator"}}]}]}"#,
        ),
    ] {
        assert_eq!(load(text).unwrap().form(), form, "{text}");
    }
}

#[test]
fn what_is_no_context_is_refused_with_its_place() {
    let message = |spans: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":"aé","spans":[{spans}]}}]}}"#)
    };
    let span = |start: u64, end: u64, owner: &str| {
        format!(r#"{{"start":{start},"end":{end},"owner":{owner}}}"#)
    };
    let framing = r#"{"framing":"form"}"#;
    for (text, kind, path, words) in [
        ("1".to_owned(), ErrorKind::Shape, None, "expected a context, found a number"),
        ("null".to_owned(), ErrorKind::Shape, None, "expected a context, found null"),
        ("{}".to_owned(), ErrorKind::Shape, None, "an object without `messages`"),
        (r#"{"messages":{}}"#.to_owned(), ErrorKind::Shape, None, "without `messages`"),
        ("[1]".to_owned(), ErrorKind::Shape, Some("/0"), "found a number"),
        (r#"[{"type":"session"}]"#.to_owned(), ErrorKind::Shape, Some("/0"), "found an object"),
        (r#"[{"role":"model"}]"#.to_owned(), ErrorKind::Shape, Some("/0"), "found an object"),
        (r#"{"messages":[1]}"#.to_owned(), ErrorKind::Shape, Some("/messages/0"), "`role`"),
        (r#"{"messages":[],"model":"m"}"#.to_owned(), ErrorKind::Shape, None, "found `model`"),
        (message(""), ErrorKind::Tiling, Some("/messages/0/spans"), "found 0"),
        (message(&span(0, 1, framing)), ErrorKind::Tiling, Some("/messages/0/spans"), "3 bytes"),
        (
            message(&span(1, 3, framing)),
            ErrorKind::Tiling,
            Some("/messages/0/spans/0"),
            "from byte 0 on",
        ),
        // Inside of a character, and past the end.
        (message(&span(0, 2, framing)), ErrorKind::Tiling, Some("/messages/0/spans/0"), "0 to 2"),
        (message(&span(0, 9, framing)), ErrorKind::Tiling, Some("/messages/0/spans/0"), "0 to 9"),
        (message(&span(2, 1, framing)), ErrorKind::Shape, Some("/messages/0/spans/0/end"), "2 at"),
        (
            message(&span(0, 3, r#"{"framing":"mine"}"#)),
            ErrorKind::Shape,
            Some("/messages/0/spans/0/owner/framing"),
            "system_prompt",
        ),
        (
            message(&span(0, 3, r#"{"frame":1}"#)),
            ErrorKind::Shape,
            Some("/messages/0/spans/0/owner/chunk"),
            "an integer from zero",
        ),
        (message(&span(0, 3, "{}")), ErrorKind::Shape, Some("/messages/0/spans/0/owner"), "tail"),
    ] {
        let error = load(&text).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert_eq!(error.place().path.as_deref(), path, "{text}: {error}");
        assert!(error.message().contains(words), "{text}: {error}");
    }
}

#[test]
fn owners_beside_the_json_must_fit_it() {
    let chat = r#"[{"role":"user","content":"ab"}]"#;
    let spans =
        r#"[{"start":0,"end":2,"owner":{"block":"block-1-2","chunk":0,"facetIds":["block-1-2"]}}]"#;
    let owned = |owners: &str| ExportedRequest::from_json(read(chat), Some(read(owners)));
    let loaded = owned(&format!(r#"[{{"path":"/0/content","spans":{spans}}}]"#)).unwrap();
    let owner = &loaded.root().pointer("/0/content").unwrap().spans()[0].owner;
    assert!(matches!(owner, Owner::Block { block, .. } if &**block == "block-1-2"));
    for (owners, path) in [
        ("{}".to_owned(), "/owners"),
        (format!(r#"[{{"path":"/1/content","spans":{spans}}}]"#), "/owners/0"),
        (format!(r#"[{{"path":"/0","spans":{spans}}}]"#), "/owners/0"),
        (r#"[{"path":"/0/content","spans":[]}]"#.to_owned(), "/owners/0"),
        (r#"[{"spans":[]}]"#.to_owned(), "/owners/0/path"),
    ] {
        let error = owned(&owners).unwrap_err();
        assert_eq!(error.place().path.as_deref(), Some(path), "{owners}: {error}");
    }
}

#[test]
fn data_that_no_tokenizer_reads_costs_nothing() {
    let data = "a".repeat(4_000);
    let tokens = |text: &str| {
        let of = load(text).unwrap();
        prefix_report(&of, &of, &Chars4, PrefixRules::EXACT).tokens
    };
    let image = |url: &str| {
        format!(
            r#"[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]"#
        )
    };
    assert_eq!(tokens(&image(&format!("data:image/png;base64,{data}"))), 4);
    assert_eq!(tokens(&image("http://port.example/a.png")), 4 + 7);
    let signed = format!(
        r#"{{"messages":[{{"role":"assistant","content":[{{"type":"thinking","thinking":"Tide.","signature":"{data}"}}]}}]}}"#
    );
    assert_eq!(tokens(&signed), 4 + 2);
}

/// What a cache makes of two requests does not depend on whether they were written down.
#[test]
fn a_prefix_report_is_the_same_of_what_was_loaded() {
    let [one, other] = ["How many buoys?", "How many boats?"].map(sample);
    let options = ExportOptions::default();
    let forms: [fn(&Export<'_>, &ExportOptions) -> ExportedRequest; 4] = [
        |of, by| of.openai_chat(by),
        |of, by| of.responses(by),
        |of, by| of.anthropic(by),
        |of, by| of.plain(by),
    ];
    for form in forms {
        let export =
            |of: &(History, RenderedContext)| form(&Export::of(&of.0, &of.1).unwrap(), &options);
        let (was, is) = (export(&one), export(&other));
        let load = |of: &ExportedRequest, owners: bool| {
            let owners = owners.then(|| read(&of.owners().to_string()));
            ExportedRequest::from_json(read(&of.value().to_string()), owners).unwrap()
        };
        let report = prefix_report(&was, &is, &Chars4, PrefixRules::EXACT);
        assert!(report.divergence.is_some());
        let loaded = [load(&was, true), load(&is, true)];
        assert_eq!(prefix_report(&loaded[0], &loaded[1], &Chars4, PrefixRules::EXACT), report);
        let bare = [load(&was, false), load(&is, false)];
        let bare = prefix_report(&bare[0], &bare[1], &Chars4, PrefixRules::EXACT);
        assert_eq!(
            (bare.tokens, bare.unchanged),
            (report.tokens, report.unchanged),
            "{}",
            was.form()
        );
        let divergence = bare.divergence.unwrap();
        assert_eq!(divergence.path, report.divergence.unwrap().path);
        assert_eq!(divergence.owner, Some(Owner::Framing(Owner::UNRECORDED)));
    }
    let contexts = [&one, &other].map(|(_, context)| ExportedRequest::of_context(context));
    let report = prefix_report(&contexts[0], &contexts[1], &Chars4, PrefixRules::EXACT);
    let divergence = report.divergence.unwrap();
    assert_eq!(divergence.path.to_string(), "/1/content/0/text");
    assert_eq!(divergence.offset, Some("How many b".len()));
    assert!(
        matches!(divergence.owner, Some(Owner::Chunk { facet_ids, .. }) if facet_ids[0] == "ask")
    );
}
