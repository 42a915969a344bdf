//! What a conversation looks like in each form: imported from one, exported to the others.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use afterimage::{
    export::{
        Breakpoints, Export, ExportOptions, ExportedRequest, Orphans, PrefixRules, UnansweredCalls,
        prefix_report,
    },
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, FrameSeq, Millis, Role},
    json::{self, Value},
    snapshot::{SnapshotOptions, Substitution, SubstitutionKind},
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, History, TagSet},
};

/// The history of a transcript in which a line is a record, or the whole is one document.
fn history(transcript: &str) -> History {
    let options = SnapshotOptions { max_chunk_bytes: Some(64), ..SnapshotOptions::default() };
    let hud = hud().snapshot_options(options).build();
    let mut history = History::new();
    for record in Transcript::new(transcript.as_bytes()).unwrap() {
        hud.capture(&mut history, record.unwrap().frame, Millis::new(0)).unwrap();
    }
    history
}

fn hud() -> afterimage::hud::HudBuilder {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat))
}

fn export(
    transcript: &str,
    request: &RenderRequest,
    form: impl Fn(&Export<'_>) -> ExportedRequest,
) -> ExportedRequest {
    let history = history(transcript);
    let context = hud().build().render(&history, request, Millis::new(0)).unwrap();
    form(&Export::of(&history, &context).unwrap())
}

fn unmarked() -> ExportOptions {
    ExportOptions { breakpoints: Breakpoints::None, ..ExportOptions::default() }
}

/// One line for each message or item, then the report.
fn lines(exported: &ExportedRequest) -> String {
    let value = exported.value();
    let of = |keys: [&str; 2]| keys.into_iter().find_map(|key| value.get(key));
    let list = of(["messages", "contents"]).unwrap_or(&value).as_array().unwrap();
    let system = of(["system", "systemInstruction"]).map(|system| format!("system {system}"));
    let report = exported.report().to_json();
    let report = report.as_object().unwrap().iter().filter_map(|(key, value)| {
        let is_empty = value.as_array().is_some_and(<[Value]>::is_empty)
            || value.as_object().is_some_and(afterimage::json::Object::is_empty);
        (!is_empty).then(|| format!("{key} {value}"))
    });
    system
        .into_iter()
        .chain(list.iter().map(Value::to_string))
        .chain(report)
        .collect::<Vec<_>>()
        .join("\n")
}

#[track_caller]
fn check(transcript: &str, form: impl Fn(&Export<'_>) -> ExportedRequest, expected: &str) {
    let found = lines(&export(transcript, &RenderRequest::default(), form));
    assert_eq!(found, expected.trim(), "\nfound:\n{found}\n");
}

const CHAT: &str = r#"[
{"role":"system","content":"Be brief."},
{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
{"role":"assistant","content":null,"tool_calls":[
  {"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\": \"it\"}"}},
  {"id":"c2","type":"function","function":{"name":"functions.ask","arguments":"who?"}}]},
{"role":"tool","tool_call_id":"c2","content":"nobody"},
{"role":"user","content":"Well?"},
{"role":"tool","tool_call_id":"c1","content":""},
{"role":"assistant","content":"A door. "}]"#;

#[test]
fn a_chat_list_as_contents_of_gemini() {
    check(
        CHAT,
        |export| export.gemini(&unmarked()),
        r#"
system {"parts":[{"text":"Be brief."}]}
{"role":"user","parts":[{"text":"What is this?"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}
{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{"at":"it"}}},{"functionCall":{"id":"c2","name":"functions_ask","args":{"arguments":"who?"}}}]}
{"role":"user","parts":[{"functionResponse":{"id":"c2","name":"functions_ask","response":{"output":"nobody"}}},{"functionResponse":{"id":"c1","name":"look","response":{"output":""}}}]}
{"role":"user","parts":[{"text":"Well?"}]}
{"role":"model","parts":[{"text":"A door. "}]}
normalised {"arguments_wrapped":1,"result_moved":1,"results_joined":1,"tool_name":1}"#,
    );
}

#[test]
fn a_chat_list_as_anthropic_messages() {
    check(
        CHAT,
        |export| export.anthropic(&unmarked()),
        r#"
system "Be brief."
{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}
{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{"at":"it"}},{"type":"tool_use","id":"c2","name":"functions_ask","input":{"arguments":"who?"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"nobody"},{"type":"tool_result","tool_use_id":"c1","content":""},{"type":"text","text":"Well?"}]}
{"role":"assistant","content":"A door."}
normalised {"arguments_wrapped":1,"messages_joined":1,"result_moved":1,"results_joined":1,"tool_name":1,"white_space_at_end":1}"#,
    );
}

#[test]
fn a_chat_list_as_responses_items() {
    check(
        CHAT,
        |export| export.responses(&unmarked()),
        r#"
{"type":"message","role":"system","content":"Be brief."}
{"type":"message","role":"user","content":[{"type":"input_text","text":"What is this?"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}
{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": \"it\"}"}
{"type":"function_call","call_id":"c2","name":"functions_ask","arguments":"who?"}
{"type":"function_call_output","call_id":"c2","output":"nobody"}
{"type":"function_call_output","call_id":"c1","output":""}
{"type":"message","role":"user","content":"Well?"}
{"type":"message","role":"assistant","content":"A door. "}
normalised {"result_moved":1,"tool_name":1}"#,
    );
}

#[test]
fn a_context_as_plain_text() {
    let plain = export(CHAT, &RenderRequest::default(), |export| export.plain(&unmarked()));
    assert_eq!(
        plain.value().as_str().unwrap(),
        "system:\nBe brief.\n\nuser:\nWhat is this?\n[image/png, 3 bytes]\n\n\
         assistant:\n[call look] {\"at\": \"it\"}\n[call functions.ask] who?\n\n\
         result:\nnobody\n\nresult:\n\nuser:\nWell?\n\nassistant:\nA door. "
    );
}

const ANTHROPIC: &str = r#"{"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[
{"role":"user","content":"Look."},
{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"I look."},
  {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"door"}},
  {"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"Doors","encrypted_content":"e"}]},
  {"type":"text","text":"And there."},
  {"type":"tool_use","id":"t1","name":"look","input":{"at":"door"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"dark"},{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}]}]}]}"#;

#[test]
fn anthropic_messages_as_a_chat_list() {
    check(
        ANTHROPIC,
        |export| export.openai_chat(&unmarked()),
        r#"
{"role":"system","content":[{"type":"text","text":"Be brief."}]}
{"role":"user","content":"Look."}
{"role":"assistant","content":[{"type":"text","text":"I look."}],"tool_calls":[{"id":"s1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"door\"}"}}]}
{"role":"tool","tool_call_id":"s1","content":[{"type":"text","text":"{\"type\":\"web_search_result\",\"title\":\"Doors\"}"},{"type":"text","text":"[encrypted_content, 25 bytes]"}]}
{"role":"assistant","content":"And there.","tool_calls":[{"id":"t1","type":"function","function":{"name":"look","arguments":"{\"at\":\"door\"}"}}]}
{"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"dark"},{"type":"text","text":"[image: https://a.b/c.png]"}]}
normalised {"part_as_its_text":2}
dropped {"reasoning":1}"#,
    );
}

const CODEX: &str = r#"
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"Plan."}],"encrypted_content":"e"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}}
{"timestamp":"t","type":"response_item","payload":{"type":"web_search_call","id":"ws1","status":"completed","action":{"type":"search","query":"q"}}}
{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"done"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.txt"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c9","output":"whose?"}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"f"}}"#;

#[test]
fn a_rollout_comes_back_as_items() {
    check(
        CODEX,
        |export| export.responses(&unmarked()),
        r#"
{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"Plan."}],"encrypted_content":"e"}
{"type":"function_call","call_id":"c1","name":"shell","arguments":"{\"cmd\":\"ls\"}"}
{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** Begin"}
{"type":"web_search_call","id":"ws1","status":"completed","action":{"type":"search","query":"q"}}
{"type":"custom_tool_call_output","call_id":"c2","output":"done"}
{"type":"function_call_output","call_id":"c1","output":"a.txt"}
{"type":"message","role":"user","content":"[result of an earlier call]\nwhose?"}
repaired [{"frame":7,"call":"c9","kind":"result_as_text"}]
dropped {"reasoning":1}"#,
    );
}

#[test]
fn the_calls_of_a_run_are_one_chat_message() {
    let options = ExportOptions {
        unanswered: UnansweredCalls::Drop,
        orphans: Orphans::Drop,
        keep_open: true,
        breakpoints: Breakpoints::None,
    };
    check(
        CODEX,
        |export| export.openai_chat(&options),
        r#"
{"role":"user","content":[{"type":"text","text":"go"}]}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\"cmd\":\"ls\"}"}},{"id":"c2","type":"function","function":{"name":"apply_patch","arguments":"*** Begin"}}]}
{"role":"tool","tool_call_id":"c2","content":"done"}
{"role":"tool","tool_call_id":"c1","content":"a.txt"}
repaired [{"frame":7,"call":"c9","kind":"result_dropped"},{"frame":4,"call":"ws1","tool":"web_search","kind":"call_dropped"}]
normalised {"messages_joined":1}
dropped {"reasoning":3}"#,
    );
}

#[test]
fn breakpoints_stand_at_blocks_that_stay() {
    let pending =
        RenderRequest { pending_activations: vec!["timer".to_owned()], ..RenderRequest::default() };
    let marks = |frames: &[u64], request: &RenderRequest| {
        let frames = frames.iter().map(|frame| (*frame).into()).collect();
        let options =
            ExportOptions { breakpoints: Breakpoints::Stable(frames), ..ExportOptions::default() };
        let exported = export(CHAT, request, |export| export.anthropic(&options));
        let texts = exported.root().texts().into_iter();
        let marks = texts.filter_map(|(path, _)| {
            let path = path.to_string();
            path.strip_suffix("/cache_control/type").map(str::to_owned)
        });
        marks.collect::<Vec<_>>()
    };
    assert_eq!(marks(&[], &RenderRequest::default()), ["/system/0", "/messages/3/content/0"]);
    // The tail is the user's, and stands apart from what is stable.
    assert_eq!(marks(&[], &pending), ["/system/0", "/messages/3/content/0"]);
    assert_eq!(
        marks(&[1, 2, 3, 4], &pending),
        ["/system/0", "/messages/2/content/0", "/messages/2/content/2", "/messages/3/content/0"]
    );
}

/// A text that stands for frames, as a compression's does.
fn stand_in(id: &str, from: u64, to: u64, content: &str) -> Substitution {
    let facet = Facet::new(id, FacetType::SUMMARY, content);
    let (hud, now) = (hud().build(), Millis::new(0));
    let snapshot = hud.render_facet(&facet, Role::User, &TagSet::default(), now).unwrap();
    let (from, to) = (FrameSeq::new(from), FrameSeq::new(to));
    let stands = SubstitutionKind::Block;
    Substitution { block: id.into(), stands, from, to, snapshot: Arc::new(snapshot) }
}

#[test]
fn breakpoints_stand_after_blocks_that_stand_for_frames() {
    let roles = ["user", "assistant"];
    let said = |n: u64| format!(r#"{{"role":"{}","content":"Line {n}."}}"#, roles[n as usize % 2]);
    let lines: Vec<String> = (0..12).map(said).collect();
    let list = format!(r#"[{{"role":"system","content":"Be brief."}},{}]"#, lines.join(","));
    let block = |from: u64, to: u64| {
        let id = format!("block-{from}-{to}");
        stand_in(&id, from, to, &format!("What {from} to {to} said."))
    };
    let marked = |substitutions: Vec<Substitution>, breakpoints: Breakpoints| {
        let request = RenderRequest { substitutions, ..RenderRequest::default() };
        let options = ExportOptions { breakpoints, ..ExportOptions::default() };
        let exported = export(&list, &request, |export| export.anthropic(&options));
        let texts = exported.root().texts().into_iter();
        let marks: Vec<String> = texts
            .filter_map(|(path, _)| {
                let path = path.to_string();
                let block = path.strip_suffix("/cache_control/type")?;
                let text = exported.root().pointer(&format!("{block}/text")).unwrap();
                Some(text.as_text().unwrap().as_str().to_owned())
            })
            .collect();
        marks
    };
    // Frame 0 is the system prompt.
    let one = marked(vec![block(1, 4)], Breakpoints::Blocks);
    assert_eq!(one, ["Be brief.", "What 1 to 4 said.", "Line 11."]);
    let three = vec![block(1, 2), block(3, 4), block(7, 8)];
    // The ends of runs go first: 3 to 4, 7 to 8, and no room is left for 1 to 2.
    assert_eq!(
        marked(three.clone(), Breakpoints::Blocks),
        ["Be brief.", "What 3 to 4 said.", "What 7 to 8 said.", "Line 11."]
    );
    let two = vec![block(1, 2), block(3, 4)];
    assert_eq!(
        marked(two, Breakpoints::Blocks),
        ["Be brief.", "What 1 to 2 said.", "What 3 to 4 said.", "Line 11."]
    );
    // By frame: after what stands in for it.
    assert_eq!(
        marked(three, Breakpoints::Stable(vec![FrameSeq::new(2)])),
        ["Be brief.", "What 1 to 2 said.", "Line 11."]
    );
    // A frame that was shortened is no block.
    let shortened = Substitution {
        block: "shortened-3".into(),
        stands: SubstitutionKind::Shortened,
        ..block(3, 3)
    };
    assert_eq!(marked(vec![shortened], Breakpoints::Blocks), ["Be brief.", "Line 11."]);
}

#[test]
fn a_mark_changes_nothing_but_itself() {
    let unmark = |value: &Value| {
        let text = value.to_string();
        let text = text.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        json::read(text.as_bytes()).unwrap()
    };
    let request = RenderRequest {
        substitutions: vec![stand_in("block-1-2", 1, 2, "What was said.")],
        ..RenderRequest::default()
    };
    let [marked, bare] = [Breakpoints::Blocks, Breakpoints::None].map(|breakpoints| {
        let options = ExportOptions { breakpoints, ..ExportOptions::default() };
        export(CHAT, &request, |export| export.anthropic(&options))
    });
    let report = prefix_report(&bare, &marked, &Chars4, PrefixRules::EXACT);
    assert_eq!((report.divergence, report.tokens), (None, report.unchanged));
    let texts = |value: &Value| {
        let export = ExportedRequest::from_json(unmark(value), None).unwrap();
        let texts = export.root().texts();
        texts.into_iter().map(|(_, text)| text.as_str().to_owned()).collect::<Vec<_>>()
    };
    let blank = |texts: Vec<String>| -> Vec<String> {
        texts.into_iter().filter(|text| text != "text").collect()
    };
    assert_eq!(blank(texts(&marked.value())), blank(texts(&bare.value())));
}

#[test]
fn marks_of_the_source_are_kept_where_they_are_asked_for() {
    let marks = |list: &str| {
        let options =
            ExportOptions { breakpoints: Breakpoints::Recorded, ..ExportOptions::default() };
        let exported = export(list, &RenderRequest::default(), |export| export.anthropic(&options));
        let marks = exported.value().to_string().matches("cache_control").count();
        (marks, exported.report().dropped.get("breakpoint").copied())
    };
    assert_eq!(marks(ANTHROPIC), (1, None));
    let block = r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#;
    let list = format!(
        r#"{{"system":"s","messages":[{{"role":"user","content":[{}]}}]}}"#,
        [block; 6].join(",")
    );
    assert_eq!(marks(&list), (4, Some(2)));
}

#[test]
fn the_prompt_of_the_request_and_the_prefill_have_their_places() {
    let request = RenderRequest {
        context_id: "now".to_owned(),
        system_prompt: Some("Be kind.".to_owned()),
        prefill: Some("The answer ".to_owned()),
        ..RenderRequest::default()
    };
    let exported = export(
        r#"[{"role":"user","content":"Look."},{"role":"system","content":"Be quick."}]"#,
        &request,
        |export| export.anthropic(&unmarked()),
    );
    assert_eq!(
        exported.value().to_string(),
        r#"{"system":"Be kind.","messages":[{"role":"user","content":[{"type":"text","text":"Look."},{"type":"text","text":"Be quick."}]},{"role":"assistant","content":"The answer"}]}"#
    );
    let owner =
        |pointer: &str| format!("{:?}", exported.root().pointer(pointer).unwrap().spans()[0].owner);
    assert_eq!(owner("/system"), "Framing(\"system_prompt\")");
    assert_eq!(owner("/messages/1/content"), "Tail { context: \"now\", index: 0, facet_ids: [] }");
}

#[test]
fn strings_of_parsed_arguments_and_data_belong_to_their_chunk() {
    let exported = export(ANTHROPIC, &RenderRequest::default(), |export| {
        export.anthropic(&ExportOptions::default())
    });
    let owner =
        |pointer: &str| format!("{:?}", exported.root().pointer(pointer).unwrap().spans()[0].owner);
    let chunk = |chunk: usize, facet: &str| {
        format!("Chunk {{ frame: FrameSeq(2), chunk: {chunk}, facet_ids: [\"{facet}\"] }}")
    };
    assert_eq!(owner("/messages/1/content/0/signature"), chunk(0, "thought-2.0"));
    assert_eq!(owner("/messages/1/content/2/input/query"), chunk(2, "action-2.2"));
    assert_eq!(owner("/messages/1/content/3/content/0/title"), chunk(4, "result-2.3.0"));
    assert_eq!(
        owner("/messages/1/content/3/content/0/encrypted_content"),
        chunk(5, "result-2.3.0.0")
    );
    assert_eq!(owner("/messages/1/role"), "Framing(\"form\")");
}

#[test]
fn a_long_text_of_several_chunks_is_one_string_of_several_spans() {
    let text = "漢字 and words, ".repeat(20);
    let list = format!(r#"[{{"role":"user","content":"{text}"}}]"#);
    let exported =
        export(&list, &RenderRequest::default(), |export| export.openai_chat(&unmarked()));
    let content = exported.root().pointer("/0/content").unwrap();
    assert_eq!(content.as_text().unwrap().as_str(), text);
    assert!(content.spans().len() > 3);
}

#[test]
fn a_prefix_report_names_the_first_byte_that_differs_and_who_wrote_it() {
    let chat = |text: &str| {
        let list =
            format!(r#"[{{"role":"user","content":"{text}"}},{{"role":"user","content":"Go."}}]"#);
        export(&list, &RenderRequest::default(), |export| export.openai_chat(&unmarked()))
    };
    let (previous, next) = (chat("It is né"), chat("It is nè"));
    let report = prefix_report(&previous, &next, &Chars4, PrefixRules::EXACT);
    let divergence = report.divergence.unwrap();
    assert_eq!(divergence.path.to_string(), "/0/content/0/text");
    assert_eq!(divergence.offset, Some(7));
    assert_eq!(
        format!("{:?}", divergence.owner.unwrap()),
        "Chunk { frame: FrameSeq(0), chunk: 0, facet_ids: [\"event-0.0\"] }"
    );
    // Four for each message; the texts count 2 and 1 tokens, of which the first is alike.
    assert_eq!((report.tokens, report.unchanged), (11, 5));

    let same = prefix_report(&next, &next, &Chars4, PrefixRules::OPENAI);
    assert_eq!((same.tokens, same.unchanged, same.cached), (11, 11, 0));
    assert_eq!(same.divergence, None);
    assert_eq!(
        [1_023, 1_024, 1_151, 1_152].map(|n| PrefixRules::OPENAI.cached(n)),
        [0, 1_024, 1_024, 1_152]
    );
}

#[test]
fn a_mark_that_moves_changes_no_prefix() {
    let half = json::read(CHAT.as_bytes()).unwrap().as_array().unwrap()[..2].to_vec();
    let half = Value::Array(half).to_string();
    let options = ExportOptions::default();
    let [previous, next] = [half.as_str(), CHAT]
        .map(|list| export(list, &RenderRequest::default(), |export| export.anthropic(&options)));
    assert_ne!(previous.value().pointer("/messages/0"), next.value().pointer("/messages/0"));
    let report = prefix_report(&previous, &next, &Chars4, PrefixRules::ANTHROPIC);
    assert_eq!(report.divergence, None);
}

#[test]
fn an_export_never_writes_an_empty_encrypted_content() {
    let compaction = r#"
{"timestamp":"t","type":"response_item","payload":{"type":"compaction","encrypted_content":""}}
{"timestamp":"t","type":"response_item","payload":{"type":"web_search_call","id":"ws2","status":"completed","encrypted_content":"","action":{"type":"search","query":"q"}}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}"#;
    let rollout = format!("{CODEX}{compaction}");
    for transcript in [rollout.as_str(), ANTHROPIC] {
        let emptied = ["e", "f"].iter().fold(transcript.to_owned(), |text, content| {
            let full = format!(r#""encrypted_content":"{content}""#);
            text.replace(&full, r#""encrypted_content":"""#)
        });
        assert!(emptied.matches(r#""encrypted_content":"""#).count() > 0);
        let forms: [fn(&Export<'_>) -> ExportedRequest; 3] = [
            |export| export.responses(&unmarked()),
            |export| export.anthropic(&unmarked()),
            |export| export.openai_chat(&unmarked()),
        ];
        for form in forms {
            let exported = export(&emptied, &RenderRequest::default(), form);
            let written = lines(&exported);
            assert!(!written.contains(r#""encrypted_content":"""#), "{written}");
            assert!(!written.contains(r#""type":"compaction""#), "{written}");
        }
    }
}

#[test]
fn a_providers_own_call_does_not_stay_open_before_a_placeholder() {
    check(
        r#"{"messages":[{"role":"user","content":"Look."},{"role":"assistant","content":[
{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},
{"type":"tool_use","id":"t1","name":"look","input":{}}]}]}"#,
        |export| export.anthropic(&unmarked()),
        r#"
{"role":"user","content":"Look."}
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"look","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[no result was recorded for this call]"}]}
repaired [{"frame":1,"call":"s1","tool":"web_search","kind":"call_dropped"},{"frame":1,"call":"t1","tool":"look","kind":"placeholder"}]"#,
    );
}
