//! Exports of generated histories: whatever the frames say, providers accept what is sent, and
//! every byte of it has its owner.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::exporting;
use crate::support::histories;
use afterimage_testkit::validators;

use std::sync::Arc;

use afterimage::{
    export::{
        Breakpoints, Export, ExportOptions, ExportedRequest, Orphans, PrefixRules, RepairKind,
        UnansweredCalls, prefix_report,
    },
    hud::{Hud, Merge, NativeFormat, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    json,
    snapshot::{PartRef, SnapshotOptions},
    tokens::Chars4,
    veil::{
        CallOutcome, ContentForm, Facet, FacetOp, FacetPart, Frame, History, Imported, Media,
        PartContent, PartSource, Source,
    },
};
use proptest::{collection::vec, prelude::*, sample::select};

fn hud(max_chunk_bytes: Option<usize>) -> Hud {
    let options = SnapshotOptions { max_chunk_bytes, ..SnapshotOptions::default() };
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).snapshot_options(options).build()
}

fn capture(hud: &Hud, frames: Vec<Frame>) -> History {
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame, Millis::new(0)).unwrap();
    }
    history
}

fn options() -> impl Strategy<Value = ExportOptions> {
    let unanswered = prop_oneof![Just(UnansweredCalls::default()), Just(UnansweredCalls::Drop)];
    let orphans = prop_oneof![Just(Orphans::Text), Just(Orphans::Drop)];
    let frames = vec((0..40_u64).prop_map(FrameSeq::from), 0..6);
    let breakpoints = prop_oneof![
        Just(Breakpoints::None),
        Just(Breakpoints::Recorded),
        Just(Breakpoints::Blocks),
        frames.prop_map(Breakpoints::Stable)
    ];
    (unanswered, orphans, any::<bool>(), breakpoints).prop_map(
        |(unanswered, orphans, keep_open, breakpoints)| ExportOptions {
            unanswered,
            orphans,
            keep_open,
            breakpoints,
        },
    )
}

fn request() -> impl Strategy<Value = RenderRequest> {
    let text = || proptest::option::of("[a-zé ]{0,9}");
    (text(), text(), any::<bool>(), any::<bool>()).prop_map(
        |(system_prompt, prefill, merges, waits)| RenderRequest {
            context_id: "c".to_owned(),
            system_prompt,
            prefill,
            merge: if merges { Merge::AdjacentRoles } else { Merge::PerFrame },
            pending_activations: if waits { vec!["timer".to_owned()] } else { Vec::new() },
            ..RenderRequest::default()
        },
    )
}

/// What happens to tools: calls and results with ids that repeat, are missing, or meet nothing.
fn tools(most: usize) -> impl Strategy<Value = Vec<Frame>> {
    let id = || {
        prop_oneof![
            3 => "[abc]".prop_map(Some),
            1 => Just(Some(String::new())),
            1 => Just(None),
            1 => Just(Some("an id/with é and more than sixty-four characters, which no provider takes at all".to_owned())),
        ]
    };
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("[1]".to_owned()),
        Just("\"漢字\"".to_owned()),
        "[a-z]{1,9}".prop_map(|word| format!("{{\"word\": \"{word} {word}\"}}")),
    ];
    let name = prop_oneof![Just("look"), Just("web.run"), Just("")];
    let call = (id(), name, arguments).prop_map(|(id, name, arguments)| {
        let arguments = json::read(arguments.as_bytes()).unwrap();
        Facet::tool_call("", id.as_deref(), name, arguments)
    });
    let result = (id(), "[a-z \n]{0,12}")
        .prop_map(|(id, text)| Facet::tool_result("", id.as_deref(), None, text));
    let said = "[a-z \n]{0,12}".prop_map(|text| Facet::new("", "speech", text));
    let facet = prop_oneof![3 => call, 3 => result, 2 => said];
    let source = prop_oneof![
        4 => Just(Source::Agent), 3 => Just(Source::Environment), 1 => Just(Source::User),
        1 => Just(Source::System),
    ];
    vec((source, vec(facet, 0..4)), 0..=most).prop_map(|frames| {
        let frame = |(sequence, (source, facets)): (usize, (Source, Vec<Facet>))| {
            let mut frame = Frame::new(sequence as u64, source);
            for (index, mut facet) in facets.into_iter().enumerate() {
                facet.id = format!("f{sequence}.{index}").as_str().into();
                frame = frame.with(FacetOp::add(facet));
            }
            frame
        };
        frames.into_iter().enumerate().map(frame).collect()
    })
}

/// What recordings have besides texts, at its right place and at wrong ones.
const ORIGINS: [&str; 30] = [
    r#"{"type":"text","cache_control":{"type":"ephemeral"}}"#,
    r#"{"type":"text","citations":null,"annotations":7}"#,
    r#"{"type":"tool_use","caller":{"type":"direct"}}"#,
    r#"{"type":"server_tool_use"}"#,
    r#"{"type":"web_search_tool_result","form":"json"}"#,
    r#"{"type":"web_search_tool_result","form":"parts"}"#,
    r#"{"type":"mcp_tool_result","is_error":"yes"}"#,
    r#"{"type":"thinking","signature":"s"}"#,
    r#"{"type":"thinking","signature":""}"#,
    r#"{"type":"redacted_thinking","data":"d"}"#,
    r#"{"type":"redacted_thinking"}"#,
    r#"{"type":"compaction","content":"c"}"#,
    r#"{"type":"compaction","encrypted_content":"e"}"#,
    r#"{"encrypted_content":"e"}"#,
    r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
    r#"{"type":"image","source":{"type":"file"}}"#,
    r#"{"type":"image_url","image_url":{"url":"https://a.b/c.png","detail":"high"}}"#,
    r#"{"type":"image_url","image_url":"no address","detail":"best"}"#,
    r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}"#,
    r#"{"type":"file","file":5}"#,
    r#"{"type":"document","source":{"type":"text","data":"d"}}"#,
    r#"{"type":"tool_addition","tool":{}}"#,
    r#"{"type":"refusal"}"#,
    r#"{"type":"custom"}"#,
    r#"{"field":"refusal"}"#,
    r#"{"field":"reasoning_content"}"#,
    r#"{"field":"function_call"}"#,
    r#"{"field":"summary","type":"summary_text"}"#,
    r#"{"form":"parts","is_error":false}"#,
    r"[1]",
];

/// And of whole messages.
const PAYLOADS: [&str; 14] = [
    r#"{"form":"parts","role":"developer"}"#,
    r#"{"form":"null"}"#,
    r#"{"form":"absent","name":"ada"}"#,
    r#"{"form":"empty","name":5}"#,
    r#"{"name":null,"refusal":null,"annotations":[]}"#,
    r#"{"refusal":7,"audio":null,"reasoning_content":""}"#,
    r#"{"type":"reasoning","id":"r","summary":[]}"#,
    r#"{"type":"reasoning","id":7,"encrypted_content":"e"}"#,
    r#"{"type":"custom_tool_call"}"#,
    r#"{"type":"custom_tool_call_output"}"#,
    r#"{"type":"web_search_call","status":"completed"}"#,
    r#"{"type":"message","status":"completed","id":"m"}"#,
    r#"{"content":"forged","tool_calls":[],"function_call":null}"#,
    r#"{"tool_call_id":"forged","reasoning_details":[{}]}"#,
];

fn object(text: &str) -> json::Object {
    match json::read(text.as_bytes()).unwrap() {
        json::Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

/// What a reader makes of a block: `field` and `form` say where and how it stood.
fn source_of(origin: &str) -> PartSource {
    let mut block = json::read(origin.as_bytes()).unwrap();
    let (mut field, mut form) = (None, None);
    if let json::Value::Object(block) = &mut block {
        let mut take = |key: &str| Some(block.shift_remove(key)?.as_str()?.to_owned());
        field = take("field").map(Into::into);
        form = take("form")
            .map(|form| if form == "json" { ContentForm::Json } else { ContentForm::Parts });
    }
    PartSource { field, form, ..PartSource::of_block(block) }
}

/// Histories whose facets and frames have what importers keep of recordings.
fn recorded() -> impl Strategy<Value = Vec<Frame>> {
    let kind = select(
        &["speech", "event", "thought", "image", "opaque", "system", "action", "result"][..],
    );
    let facet = (kind, select(&ORIGINS[..]), "[ab]", "[a-z \n]{0,6}").prop_map(
        |(kind, origin, id, text)| {
            let content = match kind {
                "action" => {
                    let (id, name) = (Some(id.into()), "look".into());
                    let parameters = Some(json::Value::Null);
                    PartContent::Call { id, name, parameters, arguments: None }
                }
                "result" => PartContent::Result {
                    answers: Some(id.into()),
                    tool: None,
                    outcome: CallOutcome::Unstated,
                },
                "thought" => PartContent::Reasoning,
                "image" => PartContent::Image(Media::default()),
                "opaque" => PartContent::Opaque,
                _ => PartContent::Text,
            };
            let text = if kind == "action" { String::new() } else { text };
            let mut facet = Facet::new("", kind, text);
            let source = source_of(origin);
            facet.part = Some(Box::new(FacetPart { source, ..FacetPart::new(content) }));
            facet
        },
    );
    let facet = (facet.clone(), vec(facet, 0..3)).prop_map(|(mut facet, children)| {
        if facet.is_result() {
            facet.children = children;
        }
        facet
    });
    let source = prop_oneof![
        5 => Just(Source::Agent), 3 => Just(Source::User), 1 => Just(Source::System),
    ];
    let frame = (source, vec(facet, 0..4), proptest::option::of(select(&PAYLOADS[..])));
    vec(frame, 0..8).prop_map(|frames| {
        let frame =
            |(sequence, (source, facets, payload)): (usize, (Source, Vec<Facet>, Option<&str>))| {
                let mut frame = Frame::new(sequence as u64, source);
                for (index, mut facet) in facets.into_iter().enumerate() {
                    facet.id = format!("f{sequence}.{index}").as_str().into();
                    for (nth, child) in facet.children.iter_mut().enumerate() {
                        child.id = format!("f{sequence}.{index}.{nth}").as_str().into();
                    }
                    frame = frame.with(FacetOp::add(facet));
                }
                let is_message = payload.is_some();
                let payload = payload.map_or_else(json::Object::new, object);
                frame.imported = Some(Box::new(Imported::of_members(0, is_message, payload)));
                frame
            };
        frames.into_iter().enumerate().map(frame).collect()
    })
}

fn render(hud: &Hud, history: &History, request: &RenderRequest) -> RenderedContext {
    hud.render(history, request, Millis::new(0)).unwrap()
}

proptest! {
    #[test]
    fn owned_bytes_and_whole_pairs_over_any_history(
        frames in histories::history(12),
        options in options(),
        request in request(),
        limit in prop_oneof![Just(None), Just(Some(8))],
    ) {
        let hud = hud(limit);
        let history = capture(&hud, frames);
        let context = render(&hud, &history, &request);
        exporting::check(&Export::of(&history, &context).unwrap(), &options, "generated");
        let exported = ExportedRequest::of_context(&context);
        exporting::assert_owned(&exported, "context");
        let written = json::read(context.to_json().to_string().as_bytes()).unwrap();
        prop_assert_eq!(ExportedRequest::from_json(written, None).unwrap(), exported);
    }

    #[test]
    fn owned_bytes_and_whole_pairs_over_any_use_of_tools(
        frames in tools(14),
        options in options(),
        request in request(),
        limit in prop_oneof![Just(None), Just(Some(8))],
    ) {
        let hud = hud(limit);
        let history = capture(&hud, frames);
        let context = render(&hud, &history, &request);
        exporting::check(&Export::of(&history, &context).unwrap(), &options, "generated");
    }

    #[test]
    fn owned_bytes_and_whole_pairs_over_whatever_a_source_kept(
        frames in recorded(),
        options in options(),
        request in request(),
    ) {
        let hud = hud(None);
        let history = capture(&hud, frames);
        let context = render(&hud, &history, &request);
        exporting::check(&Export::of(&history, &context).unwrap(), &options, "generated");
    }

    #[test]
    fn stable_prefix_over_any_use_of_tools(frames in tools(14)) {
        let hud = hud(None);
        let history = capture(&hud, frames);
        let options = ExportOptions::default();
        // A request is sent where the agent begins to speak.
        let mut sent = Vec::new();
        let mut agents_turn = true;
        for (at, frame) in history.frames().enumerate() {
            let Some(snapshot) = &frame.rendered_snapshot else { continue };
            let said = |part: PartRef<'_>| !matches!(part, PartRef::Result { .. });
            let Some(first) = snapshot.chunk(0) else { continue };
            let is_agent = frame.source == Source::Agent;
            if is_agent && !agents_turn && said(first.part()) {
                sent.push(at);
            }
            let speaks = snapshot.chunks().any(|chunk| said(chunk.part()));
            agents_turn = is_agent && (speaks || agents_turn);
        }
        let contexts: Vec<RenderedContext> = sent.iter().map(|at| {
            let end = history.frames().get(at - 1).unwrap().sequence;
            let frames = Some(FrameSeq::from(0)..=end);
            render(&hud, &history, &RenderRequest { frames, ..RenderRequest::default() })
        }).collect();
        for form in [Export::openai_chat, Export::responses, Export::anthropic] {
            let export = |context| form(&Export::of(&history, context).unwrap(), &options);
            for pair in contexts.windows(2) {
                let (one, next) = (export(&pair[0]), export(&pair[1]));
                // Anthropic takes no white space at the end of agent's words that a request ends in.
                if one.report().normalised.contains_key("white_space_at_end") {
                    continue;
                }
                let report = prefix_report(&one, &next, &Chars4, PrefixRules::EXACT);
                prop_assert_eq!(report.divergence, None, "{}\n{}", one.value(), next.value());
            }
        }
    }

    #[test]
    fn an_export_does_not_depend_on_how_frames_merge_or_split(frames in tools(14), options in options()) {
        let (whole, split) = (hud(None), hud(Some(8)));
        let one = capture(&whole, frames.clone());
        let other = capture(&split, frames);
        let merged = RenderRequest { merge: Merge::AdjacentRoles, ..RenderRequest::default() };
        let context = render(&whole, &one, &RenderRequest::default());
        let again = render(&split, &other, &merged);
        let (one, other) = (Export::of(&one, &context).unwrap(), Export::of(&other, &again).unwrap());
        prop_assert_eq!(one.openai_chat(&options).value(), other.openai_chat(&options).value());
        prop_assert_eq!(one.anthropic(&options).value(), other.anthropic(&options).value());
        prop_assert_eq!(one.responses(&options).value(), other.responses(&options).value());
        prop_assert_eq!(one.plain(&options).value(), other.plain(&options).value());
    }
}

#[test]
fn tags_are_never_sent_as_if_the_agent_had_written_them() {
    let hud = Hud::new(Arc::new(Chars4));
    let frame = Frame::new(0, Source::User).with(FacetOp::add(Facet::new("a", "event", "Hi")));
    let history = capture(&hud, vec![frame]);
    let context = render(&hud, &history, &RenderRequest::default());
    let error = Export::of(&history, &context).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an export is made of chunks in the format `native`, found `xml`"
    );
}

#[test]
fn a_call_stays_open_only_where_that_is_asked_for_and_nothing_follows_it() {
    let hud = hud(None);
    let call = Facet::tool_call("c", Some("c1"), "look", json::read(b"{}").unwrap());
    let ask = Facet::new("a", "event", "Well?");
    let frames = vec![
        Frame::new(0, Source::User).with(FacetOp::add(Facet::new("u", "event", "Look."))),
        Frame::new(1, Source::Agent).with(FacetOp::add(call)),
        Frame::new(2, Source::User).with(FacetOp::add(ask)),
    ];
    let history = capture(&hud, frames);
    let mut repairs = Vec::new();
    for (end, keep_open) in [(1_u64, true), (1, false), (2, true)] {
        let range = Some(FrameSeq::from(0)..=FrameSeq::from(end));
        let context =
            render(&hud, &history, &RenderRequest { frames: range, ..RenderRequest::default() });
        let options = ExportOptions { keep_open, ..ExportOptions::default() };
        let chat = Export::of(&history, &context).unwrap().openai_chat(&options);
        repairs.push(chat.report().repaired.iter().map(|repair| repair.kind).collect::<Vec<_>>());
    }
    let placeholder = || vec![RepairKind::Placeholder];
    assert_eq!(repairs, [vec![], placeholder(), placeholder()]);
}

#[test]
fn the_validators_refuse_what_the_providers_refuse() {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let call = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"a","content":""}"#;
    let user = r#"{"role":"user","content":"u"}"#;
    assert_eq!(validators::chat(&read(&format!("[{user},{call},{result},{user}]"))), Ok(()));
    for bad in [
        format!("[{call},{user},{result}]"),
        format!("[{call},{user}]"),
        format!("[{result}]"),
        format!("[{call},{result},{result}]"),
        r#"[{"role":"user","content":""}]"#.to_owned(),
        r#"[{"role":"assistant","content":null}]"#.to_owned(),
        r#"[{"role":"assistant","content":"a","usage":{}}]"#.to_owned(),
        r#"[{"role":"model","content":"a"}]"#.to_owned(),
        format!("[{}]", call.replace(r#""id":"a""#, &format!(r#""id":"{}""#, "a".repeat(41)))),
    ] {
        assert!(validators::chat(&read(&bad)).is_err(), "{bad}");
    }

    let call = r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#;
    let result = r#"{"type":"function_call_output","call_id":"a","output":""}"#;
    let user = r#"{"type":"message","role":"user","content":"u"}"#;
    assert_eq!(validators::responses(&read(&format!("[{user},{call},{result},{user}]"))), Ok(()));
    for bad in [
        format!("[{call},{user}]"),
        format!("[{result}]"),
        format!("[{call},{call}]"),
        format!(r#"[{{"type":"reasoning","summary":[],"encrypted_content":"e"}},{user}]"#),
        r#"[{"type":"message","role":"user","content":[{"type":"output_text","text":"a"}]}]"#
            .to_owned(),
        r#"[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]}]"#
            .to_owned(),
    ] {
        assert!(validators::responses(&read(&bad)).is_err(), "{bad}");
    }

    let user = r#"{"role":"user","content":"u"}"#;
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
    let result =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]}"#;
    let request = |messages: &str| format!(r#"{{"messages":[{messages}]}}"#);
    let good = request(&format!("{user},{call},{result},{call}").replacen("\"a\"", "\"b\"", 2));
    assert_eq!(validators::anthropic(&read(&good)), Ok(()));
    let mark = r#"{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}"#;
    for bad in [
        request(call),
        request(&format!("{user},{user}")),
        request(&format!("{user},{call},{user}")),
        request(&format!("{user},{call},{result},{call}")),
        request(&format!("{user},{}", call.replace("\"a\"", "\"a.b\""))),
        request(&format!("{user},{}", call.replace("{}", "\"x\""))),
        request(r#"{"role":"user","content":" "}"#),
        request(r#"{"role":"user","content":[{"type":"text","text":""}]}"#),
        request(&format!(r#"{user},{{"role":"assistant","content":"a "}}"#)),
        request(&format!(
            r#"{user},{{"role":"assistant","content":[{{"type":"thinking","thinking":"t","signature":"s"}}]}}"#
        )),
        request(&format!(r#"{{"role":"user","content":[{}]}}"#, [mark; 5].join(","))),
    ] {
        assert!(validators::anthropic(&read(&bad)).is_err(), "{bad}");
    }
}
