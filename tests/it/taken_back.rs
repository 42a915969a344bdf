//! What programs take back, replace or compact by records of their own is in no context from there
//! on: Gemini CLI, Kimi, Codex, and the compactions of the APIs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use afterimage::{
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, Millis},
    request::Recording,
    transcript::Transcript,
    veil::{Branch, Compaction, Facet, FacetOp, Frame, History, Source},
    window::RecordedCompactions,
};

const NOW: Millis = Millis::new(0);

/// What an import gave.
struct Import {
    frames: Vec<Frame>,
    notes: Vec<(u64, String)>,
    skipped: String,
}

fn read(input: &str) -> Import {
    let mut transcript = Transcript::new(input.as_bytes()).unwrap();
    let frames = transcript.by_ref().map(|record| record.unwrap().frame).collect();
    let report = transcript.report();
    let notes = report.notes.iter().map(|note| (note.line, note.text.clone())).collect();
    Import { frames, notes, skipped: format!("{:?}", report.skipped) }
}

/// The texts of the messages of the context after these frames.
fn context(frames: &[Frame]) -> String {
    let hud =
        Hud::builder(Arc::new(afterimage::tokens::Chars4)).format(Arc::new(NativeFormat)).build();
    let (mut history, mut compactions) = (History::new(), RecordedCompactions::default());
    for frame in frames {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        compactions.follow(&hud, &history, NOW).unwrap();
    }
    let once = compactions.blocks().to_vec();
    let mut again = RecordedCompactions::default();
    again.follow(&hud, &history, NOW).unwrap();
    let request = RenderRequest { substitutions: once, ..RenderRequest::default() };
    let show = |request: &RenderRequest| {
        let context = hud.render(&history, request, NOW).unwrap();
        let texts = context.messages().iter().map(|message| message.content().to_string());
        texts.collect::<Vec<_>>().join(" | ")
    };
    let shown = show(&request);
    let substitutions = again.blocks().to_vec();
    assert_eq!(show(&RenderRequest { substitutions, ..request }), shown);
    shown
}

#[track_caller]
fn check(input: &str, expected: &str) {
    let import = read(input);
    assert_eq!(context(&import.frames), expected, "{}", import.skipped);
    assert_eq!(import.notes, []);
}

#[track_caller]
fn check_noted(input: &str, expected: &str, notes: &[(u64, &str)]) {
    let import = read(input);
    assert_eq!(context(&import.frames), expected, "{}", import.skipped);
    let found: Vec<_> = import.notes.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(found, notes);
}

/// A log of Gemini CLI: `u:a` is what the user said, with its id; `g:b` the answer; the rest is JSON.
fn gemini(lines: &[&str]) -> String {
    let message = |line: &&str| match line.split_once(':') {
        Some((kind @ ("u" | "g"), id)) => {
            let kind = if kind == "u" { "user" } else { "gemini" };
            format!(r#"{{"id":"{id}","type":"{kind}","content":"{id}"}}"#)
        }
        _ => (*line).to_owned(),
    };
    let head = r#"{"sessionId":"s","projectHash":"h"}"#.to_owned();
    std::iter::once(head).chain(lines.iter().map(message)).collect::<Vec<_>>().join("\n")
}

#[test]
fn gemini_goes_back_before_a_message() {
    let once = ["u:a", "g:b", "u:c", "g:d", r#"{"$rewindTo":"c"}"#];
    check(&gemini(&once), "a | b");
    let twice = [&once[..], &["u:e", "g:f", r#"{"$rewindTo":"e"}"#, "u:x", "g:y"]].concat();
    check(&gemini(&twice), "a | b | x | y");
    let to_the_start = [&twice[..], &[r#"{"$rewindTo":"a"}"#, "u:z"]].concat();
    check(&gemini(&to_the_start), "z");
    // An id that was taken back is free again.
    check(&gemini(&["u:a", "g:b", "u:c", r#"{"$rewindTo":"c"}"#, "u:c", "g:d"]), "a | b | c | d");
}

#[test]
fn gemini_goes_back_to_nothing_that_its_context_does_not_hold() {
    let wrong = "goes back to a message that the context does not hold";
    let gone = ["u:a", "g:b", r#"{"$rewindTo":"nowhere"}"#, "u:c"];
    check_noted(&gemini(&gone), "a | b | c", &[(4, wrong)]);
    let twice = ["u:a", "u:b", r#"{"$rewindTo":"b"}"#, r#"{"$rewindTo":"b"}"#, "u:c"];
    check_noted(&gemini(&twice), "a | c", &[(5, wrong)]);
    check_noted(&gemini(&["u:a", r#"{"$rewindTo":7}"#]), "a", &[(3, wrong)]);
    let before = [r#"{"$rewindTo":"a"}"#, "u:a"];
    check_noted(&gemini(&before), "a", &[(2, wrong)]);
}

/// A context that Gemini CLI writes anew.
fn set(messages: &[&str]) -> String {
    let list = gemini(messages);
    let list: Vec<_> = list.lines().skip(1).collect();
    format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","))
}

const SUMMARY: &str =
    r#"{"id":"s","type":"user","content":[{"text":"<state_snapshot>S</state_snapshot>"}]}"#;

#[test]
fn gemini_compresses_what_it_said_and_the_summary_stands_for_it() {
    let all_new = set(&[SUMMARY, "g:ok", "u:c2"]);
    let lines = ["u:a", "g:b", "u:c", &all_new, "g:d"];
    check(&gemini(&lines), "<state_snapshot>S</state_snapshot> | ok | c2 | d");
    let told: Vec<_> =
        read(&gemini(&lines)).frames.iter().filter_map(|of| Compaction::of(of).unwrap()).collect();
    assert_eq!((told.len(), told[0].from.get(), told[0].to.get()), (1, 0, 2));
    // Messages that were kept by their ids stay after it.
    let kept = set(&[SUMMARY, "u:c"]);
    check(
        &gemini(&["u:a", "g:b", "u:c", &kept, "g:d"]),
        "<state_snapshot>S</state_snapshot> | c | d",
    );
    // To go back before the summary brings nothing back.
    let lines = ["u:a", "g:b", &set(&[SUMMARY, "g:ok"]), r#"{"$rewindTo":"s"}"#, "u:c"];
    check(&gemini(&lines), "c");
}

#[test]
fn gemini_goes_back_to_messages_that_a_compression_kept_after_its_summary() {
    let shown = "<state_snapshot>S</state_snapshot>";
    let kept = set(&[SUMMARY, "u:c"]);
    let said = ["u:a", "g:b", "u:c", &kept];
    let after = |lines: &[&str]| gemini(&[&said[..], lines].concat());
    check(&after(&[r#"{"$rewindTo":"c"}"#, "u:d"]), &format!("{shown} | d"));
    check(&after(&[r#"{"$rewindTo":"s"}"#, "u:d"]), "d");
    check(&after(&["u:d", &set(&[SUMMARY]), "u:e"]), &format!("{shown} | e"));
    check(&after(&["u:d", r#"{"$rewindTo":"d"}"#, "u:e"]), &format!("{shown} | c | e"));
    // The next summary replaces this one, and what is kept stays.
    let again = set(&[&SUMMARY.replace(r#""s""#, r#""s2""#).replace(">S<", ">S2<"), "u:c"]);
    let second = "<state_snapshot>S2</state_snapshot>";
    check(&after(&[&again, "u:d"]), &format!("{second} | c | d"));
    check(&after(&[&again, r#"{"$rewindTo":"c"}"#, "u:d"]), &format!("{second} | d"));
}

#[test]
fn a_summary_of_gemini_replaces_nothing_where_all_was_kept() {
    let all = set(&[SUMMARY, "u:a"]);
    check(&gemini(&["u:a", &all, "u:d"]), "a | <state_snapshot>S</state_snapshot> | d");
}

#[test]
fn gemini_replaces_a_message_until_the_conversation_is_taken_back() {
    let new = r#"{"id":"b","type":"gemini","content":"new"}"#;
    let unknown = r#"{"$rewindTo":"nowhere"}"#;
    let wrong = "goes back to a message that the context does not hold";
    check_noted(&gemini(&["u:a", "g:b", unknown, new]), "a | new", &[(4, wrong)]);
    let wrong = "messages left the context before others that stayed in it";
    let middle = gemini(&["u:a", "g:b", "u:c", &set(&["u:a", "u:c"]), new]);
    check_noted(&middle, "a | new | c", &[(5, wrong)]);
    let late = gemini(&["u:a", "g:b", "u:c", r#"{"$rewindTo":"c"}"#, new]);
    let mut transcript = Transcript::new(late.as_bytes()).unwrap();
    assert_eq!(transcript.by_ref().count(), 5);
    let unknown = &transcript.report().unknown;
    assert_eq!(unknown[0].reason, "replaces a message that was given out already");
}

#[test]
fn gemini_writes_its_context_anew_without_a_summary() {
    // A turn that was broken off is taken back.
    check(&gemini(&["u:a", "g:b", "u:c", &set(&["u:a", "g:b"]), "u:d"]), "a | b | d");
    check(&gemini(&["u:a", "g:b", &set(&[]), "u:d"]), "d");
    // A session that was resumed lists its messages under new ids.
    check(&gemini(&["u:a", "g:b", &set(&["u:a2", "g:b2"]), "u:d"]), "a2 | b2 | d");
    // What is there already changes nothing.
    check(&gemini(&["u:a", "g:b", &set(&["u:a", "g:b"]), "u:d"]), "a | b | d");
    let wrong = "messages left the context before others that stayed in it";
    let middle = ["u:a", "g:b", "u:c", &set(&["u:a", "u:c"]), "u:d"];
    check_noted(&gemini(&middle), "a | b | c | d", &[(5, wrong)]);
}

/// A wire log of Kimi: `u:a` is what the user said, `i:a` what the program put before it, `g:b` a step;
/// the rest is JSON.
fn kimi(lines: &[&str]) -> String {
    let message = |line: &&str| match line.split_once(':') {
        Some((kind @ ("u" | "i"), text)) => {
            let kind = if kind == "u" { "user" } else { "injection" };
            format!(
                r#"{{"type":"context.append_message","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"toolCalls":[],"origin":{{"kind":"{kind}"}}}}}}"#
            )
        }
        Some(("g", text)) => format!(
            r#"{{"type":"context.append_loop_event","event":{{"type":"content.part","stepUuid":"{text}","part":{{"type":"text","text":"{text}"}}}}}}"#
        ),
        _ => (*line).to_owned(),
    };
    let head = r#"{"type":"metadata","protocol_version":"1.4"}"#.to_owned();
    let system = r#"{"type":"config.update","systemPrompt":"SYSTEM"}"#.to_owned();
    [head, system].into_iter().chain(lines.iter().map(message)).collect::<Vec<_>>().join("\n")
}

const UNDO: &str = r#"{"type":"context.undo","count":1}"#;
const CLEAR: &str = r#"{"type":"context.clear"}"#;

#[test]
fn kimi_takes_prompts_back_and_what_followed_them() {
    let said = ["u:a", "g:b", "i:note", "u:c", "g:d", "i:later"];
    check(&kimi(&[&said[..], &[UNDO]].concat()), "SYSTEM | a | b | note");
    let twice = r#"{"type":"context.undo","count":2}"#;
    check(&kimi(&[&said[..], &[twice, "u:e"]].concat()), "SYSTEM | e");
    check(&kimi(&[&said[..], &[UNDO, UNDO, "u:e", "g:f"]].concat()), "SYSTEM | e | f");
    let wrong = "takes back more prompts than the context holds";
    let more = r#"{"type":"context.undo","count":3}"#;
    check_noted(&kimi(&["u:a", "g:b", more, "u:c"]), "SYSTEM | a | b | c", &[(5, wrong)]);
    let wrong = "takes prompts back and does not say how many";
    let none = r#"{"type":"context.undo"}"#;
    check_noted(&kimi(&["u:a", none, "u:c"]), "SYSTEM | a | c", &[(4, wrong)]);
}

#[test]
fn kimi_clears_its_context_and_keeps_the_system_prompt() {
    check(&kimi(&["u:a", "g:b", CLEAR]), "SYSTEM");
    check(&kimi(&["u:a", "g:b", CLEAR, "u:c", CLEAR, "u:d"]), "SYSTEM | d");
    check(&kimi(&[CLEAR, "u:d"]), "SYSTEM | d");
    let changed = r#"{"type":"config.update","systemPrompt":"OTHER"}"#;
    check(&kimi(&["u:a", changed, "g:b", CLEAR, "u:d"]), "OTHER | d");
}

#[test]
fn a_summary_of_kimi_stands_for_the_first_messages() {
    let of = |count: &str| {
        format!(r#"{{"type":"context.apply_compaction","summary":"SUM","compactedCount":{count}}}"#)
    };
    let said = ["u:a", "g:b", "u:c", "g:d"];
    let after = |record: &str| kimi(&[&said[..], &[record, "u:e"]].concat());
    check(&after(&of("2")), "SYSTEM | SUM | c | d | e");
    check(&after(&of("4")), "SYSTEM | SUM | e");
    check(&after(&of("0")), "SYSTEM | a | b | c | d | SUM | e");
    let wrong = "does not say how many messages it replaced, or more than there are";
    check_noted(&after(&of("9")), "SYSTEM | SUM | e", &[(7, wrong)]);
    // The next one counts the summary as a message, and what is undone leaves it.
    let again = r#"{"type":"context.apply_compaction","summary":"SUM2","compactedCount":2}"#;
    let twice = kimi(&[&said[..], &[&of("2"), "u:e", again]].concat());
    check(&twice, "SYSTEM | SUM2 | d | e");
    let undone = kimi(&[&said[..], &[&of("2"), "u:e", "g:f", UNDO]].concat());
    check(&undone, "SYSTEM | SUM | c | d");
    let undone = kimi(&[&said[..], &[&of("2"), "u:e", "g:f", UNDO, UNDO, "u:x"]].concat());
    check(&undone, "SYSTEM | SUM | x");
    // Nothing is taken back that a summary replaced.
    let wrong = "takes back more prompts than the context holds";
    let over = kimi(&[&said[..], &[&of("4"), UNDO]].concat());
    check_noted(&over, "SYSTEM | SUM", &[(8, wrong)]);
    check(&kimi(&[&said[..], &[&of("2"), CLEAR, "u:x"]].concat()), "SYSTEM | x");
}

#[test]
fn a_summary_of_kimi_that_replaces_no_frame_stays_at_its_place() {
    // A step of which nothing is said is a message, and has no frame.
    let begun =
        r#"{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"none"}}"#;
    let one = r#"{"type":"context.apply_compaction","summary":"SUM","compactedCount":1}"#;
    let lines = kimi(&[begun, "u:AAA", "u:CCC", one, "u:DDD"]);
    check(&lines, "SYSTEM | AAA | CCC | SUM | DDD");
    let lines: Vec<_> = lines.lines().filter(|line| !line.contains("SYSTEM")).collect();
    check(&lines.join("\n"), "AAA | CCC | SUM | DDD");
}

#[test]
fn records_that_were_not_understood_move_no_frame_that_kimi_takes_back() {
    let lines = kimi(&["u:a", CLEAR, "u:d"]);
    check(&format!("{{\"x\":1}}\n{lines}"), "SYSTEM | d");
    let two = r#"{"type":"context.apply_compaction","summary":"SUM","keptUserMessageCount":2}"#;
    let lines = kimi(&["u:AAA", "u:CCC", two, "u:DDD"]);
    let lines: Vec<_> = lines.lines().filter(|line| !line.contains("SYSTEM")).collect();
    let lines = lines.join("\n");
    check(&format!("garbage\n{lines}"), "AAA | CCC | SUM | DDD");
}

#[test]
fn a_later_summary_of_kimi_stands_after_the_prompts_that_it_kept() {
    let of = |kept: &str| {
        format!(
            r#"{{"type":"context.apply_compaction","summary":"raw","contextSummary":"SUM","compactedCount":9,{kept}}}"#
        )
    };
    let said = ["u:a", "g:b", "i:note", "u:c", "g:d", "u:e", "g:f"];
    let after = |record: &str| kimi(&[&said[..], &[record, "u:x", "g:y"]].concat());
    check(&after(&of(r#""keptUserMessageCount":3"#)), "SYSTEM | a | c | e | SUM | x | y");
    check(&after(&of(r#""keptUserMessageCount":1"#)), "SYSTEM | e | SUM | x | y");
    let ends = of(r#""keptUserMessageCount":2,"keptHeadUserMessageCount":1"#);
    check(&after(&ends), "SYSTEM | a | e | SUM | x | y");
    let again = format!("{}\n{}", after(&ends), of(r#""keptUserMessageCount":3"#));
    check(&again, "SYSTEM | a | e | x | SUM");
    check(&format!("{}\n{UNDO}", after(&ends)), "SYSTEM | a | e | SUM");
    let wrong = "keeps more prompts than the context holds";
    let more = of(r#""keptUserMessageCount":9"#);
    check_noted(&after(&more), "SYSTEM | a | c | e | SUM | x | y", &[(10, wrong)]);
}

/// A rollout of Codex: `u:a` is what the user said, `d:a` the operator, `g:b` the answer; the rest is
/// JSON.
fn codex(lines: &[&str]) -> String {
    let message = |line: &&str| {
        let (role, kind, text) = match line.split_once(':') {
            Some(("u", text)) => ("user", "input_text", text),
            Some(("d", text)) => ("developer", "input_text", text),
            Some(("g", text)) => ("assistant", "output_text", text),
            _ => return (*line).to_owned(),
        };
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
        )
    };
    let head = r#"{"type":"session_meta","payload":{"id":"s"}}"#.to_owned();
    std::iter::once(head).chain(lines.iter().map(message)).collect::<Vec<_>>().join("\n")
}

fn rolled_back(turns: &str) -> String {
    format!(
        r#"{{"timestamp":"t","type":"event_msg","payload":{{"type":"thread_rolled_back","num_turns":{turns}}}}}"#
    )
}

#[test]
fn codex_takes_turns_back_with_what_stood_before_their_prompts() {
    let env = "u:<environment_context>E</environment_context>";
    let said = ["d:rules", env, "u:a", "g:b", "d:<model_switch>m", env, "u:c", "g:d"];
    let start = "rules | <environment_context>E</environment_context>";
    let one = rolled_back("1");
    check(&codex(&[&said[..], &[&one]].concat()), &format!("{start} | a | b"));
    check(
        &codex(&[&said[..], &[&one, "u:e", "g:f"]].concat()),
        &format!("{start} | a | b | e | f"),
    );
    check(&codex(&[&said[..], &[&rolled_back("2"), "u:e"]].concat()), &format!("{start} | e"));
    check(&codex(&[&said[..], &[&one, &one, "u:e"]].concat()), &format!("{start} | e"));
    check(&codex(&["u:a", "g:b", &rolled_back("0")]), "a | b");
    let wrong = "takes back more turns than there are";
    let more = codex(&[&said[..], &[&rolled_back("5"), "u:e"]].concat());
    check_noted(&more, &format!("{start} | e"), &[(10, wrong)]);
    check_noted(&codex(&["g:b", &one]), "b", &[(3, wrong)]);
    let wrong = "takes turns back and does not say how many";
    check_noted(&codex(&["u:a", &rolled_back("null")]), "a", &[(3, wrong)]);
}

#[test]
fn codex_takes_a_compaction_back_with_its_turn() {
    let compacted = r#"{"type":"compacted","payload":{"message":"SUM"}}"#;
    let lines = ["u:a", "g:b", "u:c", compacted, "g:d"];
    check(&codex(&lines), "SUM | d");
    check(&codex(&[&lines[..], &[&rolled_back("1"), "u:e"]].concat()), "a | b | e");
    // A fork repeats what it was forked from, and what was taken back there.
    let parent = r#"{"type":"session_meta","payload":{"id":"parent"}}"#;
    let one = rolled_back("1");
    let forked =
        [&[parent][..], &["u:a", "g:b", "u:c", "g:d", &one, "u:e", "g:f", &one, "u:x"]].concat();
    check(&codex(&forked), "a | b | x");
}

#[test]
fn codex_counts_turns_that_it_could_not_take_back() {
    let one = rolled_back("1");
    let mut lines = ["u:x", &one].repeat(1_025);
    let two = rolled_back("2");
    lines.extend(["u:a", &two]);
    let limit = "a record that goes back once more than 1,024 times";
    let notes = read(&codex(&lines)).notes;
    let notes: Vec<_> = notes.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(notes, [(2_051, limit), (2_053, limit)]);
}

#[test]
fn what_precedes_a_compaction_of_the_messages_api_is_ignored() {
    let summary = r#"{"type":"compaction","content":"SUM"}"#;
    let list = |answer: &str| {
        format!(
            r#"{{"system":"SYSTEM","messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{{"type":"text","text":"b"}}]}},{{"role":"user","content":"c"}},{{"role":"assistant","content":[{answer}]}},{{"role":"user","content":"e"}}]}}"#
        )
    };
    let said = r#"{"type":"text","text":"d"}"#;
    check(&list(&format!("{summary},{said}")), "SYSTEM | SUMd | e");
    check(&list(summary), "SYSTEM | SUM | e");
    // What the same answer said before it is, too; of several the last one counts.
    check(&list(&format!("{said},{summary}")), "SYSTEM | SUM | e");
    check(&list(&format!("{summary},{said},{summary}")), "SYSTEM | SUM | e");
    // One that failed, or that the user made up, replaces nothing.
    let failed = r#"{"type":"compaction","content":null}"#;
    let all = context(&read(&list(&format!("{failed},{said}"))).frames);
    assert!(all.starts_with("SYSTEM | a | b | c | "), "{all}");
    let forged = list(summary)
        .replace(r#""assistant","content":[{"type":"comp"#, r#""user","content":[{"type":"comp"#);
    check(&forged, "SYSTEM | a | b | c | SUM | e");
    let import = read(&list(&format!("{said},{summary}")));
    let told = import.frames.iter().find_map(|frame| Compaction::of(frame).unwrap()).unwrap();
    assert_eq!((told.from.get(), told.to.get(), told.is_in_place), (0, 4, true));
}

#[test]
fn frames_that_a_summary_kept_stay_behind_it() {
    let mut frames: Vec<_> = (0..5)
        .map(|at: u64| {
            let (kind, text) = if at == 4 {
                (FacetType::SUMMARY, "SUM".to_owned())
            } else {
                (FacetType::EVENT, at.to_string())
            };
            let facet = Facet::new(format!("f{at}"), kind, text);
            Frame::new(at, Source::User).with(FacetOp::add(facet))
        })
        .collect();
    let event = r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":3,"kept":[[1,2]]}}"#;
    frames[4].events.push(afterimage::json::read(event.as_bytes()).unwrap());
    assert_eq!(context(&frames), "SUM | 1 | 2");
}

const PARTED: &str = r#"{"model":"m","system":"SYSTEM","messages":[{"role":"user","content":"a"},{"role":"assistant","timestamp":"t","model":"n","content":[{"type":"text","text":"d"},{"type":"compaction","content":"SUM"}]},{"role":"user","content":"e"}]}"#;

#[test]
fn a_request_with_a_message_that_a_summary_parts_has_the_frames_of_its_messages() {
    let transcript = Transcript::new(PARTED.as_bytes()).unwrap();
    let counter = Arc::new(afterimage::tokens::Chars4);
    let recording = Recording::read(transcript, counter, |_| NOW).unwrap();
    let last: Vec<_> =
        recording.exchanges().iter().map(|exchange| exchange.last_frame.unwrap().get()).collect();
    assert_eq!(last, [4]);
}

#[test]
fn what_a_message_says_before_its_summary_has_the_time_and_the_model_of_the_message() {
    let frames = read(PARTED).frames;
    assert_eq!(frames.len(), 5);
    for frame in &frames[2..4] {
        assert_eq!(frame.timestamp.as_deref(), Some("t"));
        let answer = frame.imported.as_ref().unwrap().answer.as_ref().unwrap();
        assert_eq!(answer.model.as_deref(), Some("n"));
    }
    assert!(!frames[2].imported.as_ref().unwrap().is_message);
}

#[test]
fn what_precedes_a_compaction_item_of_the_responses_api_is_ignored() {
    for kind in ["compaction", "compaction_summary"] {
        let list = format!(
            r#"{{"instructions":"SYSTEM","input":[{{"role":"user","content":"a"}},{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"b"}}]}},{{"type":"{kind}","encrypted_content":"AAAA"}},{{"role":"user","content":"c"}}]}}"#
        );
        let expected = match kind {
            "compaction" => "SYSTEM | [compaction, 48 bytes] | c",
            _ => "SYSTEM | [compaction_summary, 56 bytes] | c",
        };
        check(&list, expected);
    }
}

#[test]
fn what_is_taken_back_stays_in_the_history_and_the_record_with_it() {
    let import = read(&gemini(&["u:a", "g:b", "u:c", r#"{"$rewindTo":"c"}"#, "u:d"]));
    let texts: Vec<_> = import.frames.iter().map(|frame| frame.ops.len()).collect();
    assert_eq!(texts, [1, 1, 1, 0, 1]);
    let record = import.frames[3].imported.as_ref().unwrap().get("record").unwrap();
    assert_eq!(record.to_string(), r#"{"$rewindTo":"c"}"#);
    let branch = Branch::of(&import.frames[3]).unwrap().unwrap();
    assert_eq!(branch.outside, [2.into()..=2.into()]);
}
