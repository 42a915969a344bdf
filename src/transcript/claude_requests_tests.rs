use std::sync::Arc;

use super::*;
use crate::{
    id::Millis,
    request::{Exchange, Recording},
    tokens::Chars4,
    transcript::Transcript,
};

const SHAPE: &str = r#"{"system":[{"type":"text","text":"Guide ships."}],"tools":[{"name":"tide","input_schema":{}}]}"#;

fn value(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap()
}

fn record(kind: &str, members: &str) -> String {
    format!(r#"{{"type":"{kind}","sessionId":"s","timestamp":"2026-11-29T10:00:00Z",{members}}}"#)
}

fn shape() -> String {
    let hash = hash_of(&value(SHAPE));
    record("api-request-shape", &format!(r#""shapeHash":"{hash}","shape":{SHAPE}"#))
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn blob(message: &str) -> String {
    let hash = hash_of_message(&value(message));
    record("api-request-blob", &format!(r#""hash":"{hash}","message":{message}"#))
}

fn said(text: &str) -> String {
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    record("user", &format!(r#""uuid":"{text}","message":{message}"#))
}

fn answer_message(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn answer(text: &str, of: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    let usage = r#"{"input_tokens":7,"output_tokens":2}"#;
    let message = format!(
        r#"{{"role":"assistant","id":"m-{text}","model":"m","content":{content},"usage":{usage}}}"#
    );
    record("assistant", &format!(r#""uuid":"a-{text}",{of}"message":{message}"#))
}

/// A request with the first messages of another one, and these.
fn request(id: &str, base: Option<&str>, keep: usize, tail: &[&str], marked: usize) -> String {
    let tail: Vec<_> =
        tail.iter().map(|of| format!("\"{}\"", hash_of_message(&value(of)))).collect();
    let base = base.map_or(String::new(), |base| format!(r#""base":"{base}","#));
    let (hash, tail) = (hash_of(&value(SHAPE)), tail.join(","));
    let mark = format!(r#"{{"path":["messages",{marked},"content",0],"value":{{"type":"e"}}}}"#);
    record(
        "api-request",
        &format!(
            r#""id":"{id}",{base}"keep":{keep},"tail":[{tail}],"shapeHash":"{hash}","cacheControl":[{mark}],"params":{{"model":"m","betas":["b"],"max_tokens":9}}"#
        ),
    )
}

/// A session: a request, one that fails, its retry.
fn session() -> Vec<String> {
    let (first, second) = (user("How deep?"), user("And now?"));
    vec![
        said("How deep?"),
        shape(),
        blob(&first),
        request("r1", None, 0, &[&first], 0),
        answer("Six.", r#""requestRef":"r1","#),
        said("And now?"),
        blob(&second),
        request("r2", Some("r1"), 1, &[&answer_message("Six."), &second], 2),
        record("system", r#""uuid":"e","subtype":"api_error","error":{"status":529}"#),
        request("r3", Some("r2"), 3, &[], 2),
        answer("Seven.", r#""requestRef":"r3","#),
    ]
}

fn read(lines: &[String]) -> (Recording, Vec<String>) {
    let text = lines.join("\n");
    let mut transcript = Transcript::new(text.as_bytes()).unwrap();
    transcript.keep_exchanges();
    let mut recording = Recording::new(transcript.format(), Arc::new(Chars4));
    for record in transcript.by_ref() {
        recording.push(record.unwrap(), Millis::new(0)).unwrap();
    }
    recording.finish(transcript.take_exchanges());
    let notes = transcript.report().notes.iter().map(|note| note.text.clone()).collect();
    (recording, notes)
}

/// Of each request where it comes from, what came of it, and its first and last frame.
fn rows(recording: &Recording) -> Vec<String> {
    let row = |of: &Exchange| {
        let frame = |frame: Option<FrameSeq>| frame.map_or("-".to_owned(), |of| of.to_string());
        let (first, last) = (of.frames.first().copied().flatten(), of.frames.last().copied());
        let output = of.usage.as_ref().and_then(|usage| usage.output);
        format!(
            "{} {} {:?} {}..{} -> {} {:?}",
            of.number,
            of.provenance.as_str(),
            of.outcome(),
            frame(first),
            frame(last.flatten()),
            frame(of.answer()),
            output
        )
    };
    recording.exchanges().iter().map(row).collect()
}

#[test]
fn requests_are_as_they_were_sent_with_the_answers_of_the_frames() {
    let (recording, notes) = read(&session());
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        rows(&recording),
        [
            "1 logged Answered 0..0 -> 2 Some(2)",
            "2 logged Failed 0..3 -> - None",
            "3 logged Answered 0..3 -> 4 Some(2)",
        ]
    );
    let [_, failed, retry] = recording.exchanges() else { panic!() };
    assert_eq!((failed.failure.as_deref(), retry.is_retry), (Some("status 529"), true));
    let head = &SHAPE[1..SHAPE.len() - 1];
    let marked = user("And now?").replace("?\"", "?\",\"cache_control\":{\"type\":\"e\"}");
    let messages = [user("How deep?"), answer_message("Six."), marked].join(",");
    let body = format!(r#"{{"model":"m","messages":[{messages}],{head},"max_tokens":9}}"#);
    assert_eq!(recording.request(3).unwrap().body(), body);
}

#[test]
fn an_answer_without_a_request_in_the_file_is_worked_out() {
    let mut lines = session();
    lines.splice(0..0, [said("Who?"), answer("I.", "")]);
    let (recording, _) = read(&lines);
    let rows = rows(&recording);
    assert_eq!(rows[0], "1 reconstructed Answered -..- -> 1 Some(2)");
    assert_eq!(rows[3], "4 logged Answered 2..5 -> 6 Some(2)");
    assert!(recording.request(1).unwrap().body().contains("Who?"));
}

#[test]
fn a_request_that_the_file_holds_a_part_of_is_worked_out_or_says_what_is_missing() {
    for (left_out, lacks) in [
        (1, "its system prompt and tools are not in the file, or too far back"),
        (2, "a message of it is not in the file, or too far back"),
        (3, "the request that it goes on from is not in the file, or too far back"),
    ] {
        let mut lines = session();
        lines.remove(left_out);
        let (recording, notes) = read(&lines);
        let note = format!("cannot put a request together: {lacks}");
        assert!(notes.contains(&note), "{notes:?}");
        let all = recording.exchanges();
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].unread.as_deref(), Some(lacks));
        assert_eq!(all[2].provenance.as_str(), "reconstructed");
        assert_eq!(all[2].usage.as_ref().unwrap().output, Some(2));
    }
    // The list of its messages has no hash that would tell that it is damaged.
    for (member, damaged) in [("keep", r#""keep":"two""#), ("tail", r#""tail":[7]"#)] {
        let is_of = |line: &&mut String| line.contains(&format!("\"{member}\":"));
        let mut lines = session();
        let line = lines.iter_mut().rfind(is_of).unwrap();
        let at = line.find(&format!("\"{member}\":")).unwrap();
        let end = at + line[at..].find([',', '}']).unwrap();
        line.replace_range(at..end, damaged);
        let (_, notes) = read(&lines);
        assert!(
            notes.iter().any(|note| note.starts_with("cannot read `keep` or `tail`")),
            "{notes:?}"
        );
    }
}

#[test]
fn what_the_client_left_out_or_wrote_down_for_nothing_is_said() {
    let mut lines = session();
    let with = |line: &str, more: &str| line.replacen('{', &format!("{{{more},"), 1);
    lines[3] = with(&lines[3], r#""withheld":["top_k","thread"]"#);
    lines[9] = with(&lines[9], r#""cut":{"kind":"k","cuts":1},"withheld":["top_k"]"#);
    lines.push(blob(&user("Unasked.")));
    let (_, notes) = read(&lines);
    assert_eq!(
        notes,
        [
            "placeholders stand in the messages of 1 of the requests",
            "requests lack parameters: thread, top_k",
            "no request has 1 of the messages that were logged",
        ]
    );
}

#[test]
fn a_request_that_failed_last_stands_behind_what_came_before_it() {
    // One whose messages are no frames, and one that goes back before the last answer.
    for keep in [0, 3] {
        let mut lines = session();
        let (base, text) = (Some("r3").filter(|_| keep > 0), user("Unsaid."));
        lines.extend([blob(&text), request("r4", base, keep, &[&text], 0)]);
        lines.push(record("system", r#""uuid":"f","subtype":"api_error","error":{"status":529}"#));
        let (recording, _) = read(&lines);
        let all = recording.exchanges();
        let lines: Vec<_> = all.iter().map(|of| (of.line, of.previous)).collect();
        let expected = [(4, None), (8, Some(1)), (10, Some(2)), (13, Some(3))];
        assert_eq!(lines, expected.map(|(line, previous)| (Some(line), previous)));
    }
}

#[test]
fn what_does_not_have_its_hash_is_not_used() {
    let mut lines = session();
    lines[2] = lines[2].replace("How deep?", "How wide?");
    let (recording, notes) = read(&lines);
    assert_eq!(notes[0], "a message of a request does not have the hash that is stated");
    assert!(recording.exchanges().iter().all(|of| !of.request.contains("wide")));
    assert_eq!(recording.exchanges()[0].provenance.as_str(), "reconstructed");
}

#[test]
fn hashes_are_those_that_the_client_writes() {
    // The first is from a session of version 2.1.332, the others are what `sha256sum` says.
    for (message, hash) in [
        (
            r#"{"role":"assistant","content":[{"type":"text","text":"ANS-7 done"}]}"#,
            "0165f6979a42d51cfd9b9b7c9f6ffd0452343ea7d7f7835573b16ff3b7c648f3",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"6 m\n\"deep\"","é":1.5,"is_error":false,"Z":[10,null]}]}"#,
            "e3d608135258faeda5a164254ad0791f0158faf68fd826f23c4231a07def15bb",
        ),
        (
            r#"{"role":"user","content":"How deep?"}"#,
            "9b299320381aba5fd7e6bcece1d4022c030b42fd8f73f86fde6b142c937cddab",
        ),
    ] {
        assert_eq!(hash_of_message(&value(message)), hash, "{message}");
    }
}

#[test]
fn no_order_of_the_records_is_a_danger() {
    let lines = session();
    for from in 0..lines.len() {
        for to in 0..lines.len() {
            let mut lines = lines.clone();
            let moved = lines.remove(from);
            lines.insert(to, moved.clone());
            lines.push(moved);
            read(&lines);
        }
    }
}

fn cost(input: u64, read: u64, output: u64) -> String {
    let figures =
        format!(r#""inputTokens":{input},"cacheReadInputTokens":{read},"outputTokens":{output}"#);
    record("cost-state", &format!(r#""modelUsage":{{"m":{{{figures}}}}}"#))
}

fn boundary(id: &str) -> String {
    let members = r#""subtype":"compact_boundary","compactMetadata":{"durationMs":40}"#;
    record("system", &format!(r#""uuid":"{id}",{members}"#))
}

fn sums(recording: &Recording) -> (u64, u64) {
    let usages = recording.reported().filter_map(|of| of.usage.as_ref());
    usages.fold((0, 0), |(input, output), usage| {
        (input + usage.input.unwrap_or(0), output + usage.output.unwrap_or(0))
    })
}

#[test]
fn a_compaction_is_a_row_and_the_sum_is_what_the_client_states() {
    let mut lines = session();
    lines.push(cost(14, 0, 4));
    lines.extend([boundary("b1"), said("In short."), cost(44, 10, 9)]);
    let (recording, _) = read(&lines);
    let last = recording.exchanges().last().unwrap();
    assert_eq!((last.number, last.duration_ms), (4, Some(40)));
    assert_eq!(last.unread.as_deref(), Some("the client logs no request of a compaction"));
    assert_eq!(last.usage.as_ref().unwrap().cache_read, Some(10));
    assert_eq!(sums(&recording), (54, 9));
    // A run that counted anew is added, and what is stated twice counts once.
    lines.extend([said("More?"), answer("Eight.", ""), cost(7, 0, 2), cost(7, 0, 2)]);
    assert_eq!(sums(&read(&lines).0), (61, 11));
    // Of two compactions nobody knows what each cost.
    lines.extend([boundary("b2"), boundary("b3"), cost(20, 0, 6)]);
    let (recording, _) = read(&lines);
    assert_eq!(sums(&recording), (74, 15));
    let unlisted: Vec<_> = recording.reported().filter(|of| of.is_unlisted).collect();
    assert_eq!(unlisted.len(), 1);
    // What a later one cost is known again, and the sum stays what is stated.
    lines.extend([boundary("b4"), cost(25, 0, 8)]);
    let (recording, _) = read(&lines);
    assert_eq!(sums(&recording), (79, 17));
    let calls = recording.exchanges().iter().filter(|of| of.unread.is_some());
    let inputs = calls.map(|of| of.usage.as_ref().and_then(|usage| usage.input));
    assert_eq!(inputs.collect::<Vec<_>>(), [Some(40), None, None, Some(5)]);
    // Without a statement nothing is made up.
    let stated = |line: &String| line.contains("cost-state");
    lines.retain(|line| !stated(line));
    assert_eq!(sums(&read(&lines).0), (21, 6));
}

#[test]
fn a_model_counts_once_however_its_name_is_written() {
    for (answered, stated) in [
        ("claude-opus-5-5", "claude-opus-5-5[1m]"),
        ("claude-opus-5-5-20261101", "claude-opus-5-5"),
        ("claude-opus-5-5-20261101", "us.anthropic.claude-opus-5-5-20261101-v1:0"),
        ("claude-opus-5-5", "claude-opus-5-5@20261101"),
        ("tide-4", "tide-4[1m]"),
    ] {
        let of_model = |line: String| {
            let line = line.replace(r#""model":"m""#, &format!(r#""model":"{answered}""#));
            line.replace(r#""modelUsage":{"m""#, &format!(r#""modelUsage":{{"{stated}""#))
        };
        let mut lines: Vec<_> = session().into_iter().chain([cost(14, 0, 4)]).collect();
        lines.extend([boundary("b1"), cost(44, 0, 9)]);
        let lines: Vec<_> = lines.into_iter().map(of_model).collect();
        let (recording, notes) = read(&lines);
        assert_eq!((sums(&recording), notes), ((44, 9), Vec::new()), "{stated}");
        let mut compactions = recording.exchanges().iter().filter(|of| of.unread.is_some());
        let compaction = compactions.next().unwrap();
        assert_eq!(compaction.usage.as_ref().unwrap().input, Some(30));
        assert_eq!(compaction.model.as_deref(), Some(answered));
    }
}

#[test]
fn a_stated_model_that_may_be_that_of_answers_is_a_note() {
    let profile = |line: String| line.replace(r#"{"m":{"#, r#"{"arn:tide/1":{"#);
    let mut lines = session();
    lines.extend([boundary("b1"), profile(cost(14, 0, 4))]);
    let (recording, notes) = read(&lines);
    assert_eq!(sums(&recording), (14, 4));
    let expected = "the session states tokens of arn:tide/1, but no answer is of that model: they \
                    are not counted";
    assert_eq!(notes, [expected]);
    // One that was asked besides.
    let both = cost(14, 0, 4).replace(r#"{"m":{"#, r#"{"helper":{"inputTokens":5},"m":{"#);
    let mut lines = session();
    lines.push(both);
    let (recording, notes) = read(&lines);
    assert_eq!((sums(&recording), notes.len()), ((19, 4), 0));
}

#[test]
fn answers_that_no_statement_holds_count_beside_it() {
    let mut lines = session();
    lines.extend([cost(30, 0, 9), said("More?"), answer("Eight.", "")]);
    assert_eq!(sums(&read(&lines).0), (37, 11));
    // The statement holds the answers of subagents up to it, wherever they stand.
    let of_subagent =
        |minute: &str, text: &str| answer(text, r#""agentId":"a","#).replace("10:00", minute);
    lines = lines.into_iter().map(|line| line.replace("T10:00", "T10:02")).collect();
    lines.push(of_subagent("10:01", "Five."));
    assert_eq!(sums(&read(&lines).0), (37, 11));
    lines.push(of_subagent("10:03", "Nine."));
    assert_eq!(sums(&read(&lines).0), (44, 13));
    // What a branch copied stands in none of its statements.
    let mut lines = session();
    let copied = answer("I.", r#""forkedFrom":{"sessionId":"o"},"#);
    lines.splice(0..0, [said("Who?"), copied]);
    lines.push(cost(20, 0, 5));
    assert_eq!(sums(&read(&lines).0), (20, 5));
}

#[test]
fn what_a_fork_copied_counts_where_it_was_asked() {
    let mut lines = session();
    lines.splice(0..0, [said("Who?"), answer("I.", r#""requestRef":"r0","#)]);
    // 7 and 2 of the copied answer, and 40 and 5 of others before it.
    lines.extend([cost(51, 10, 11), boundary("b1"), cost(61, 10, 14)]);
    let (recording, _) = read(&lines);
    assert_eq!(sums(&recording), (24, 7));
    let copied = recording.reported().filter_map(|of| of.copied.as_ref()?.usage.as_ref()?.input);
    assert_eq!(copied.collect::<Vec<_>>(), [7, 40]);
}

#[test]
fn what_a_client_put_before_a_prompt_comes_before_it_as_it_was_sent() {
    let sent = "Rules.\\n\\nContents of /w/CLAUDE.md:\\n\\nMetres.\\n\\nContents of /w/knots.md:\\n\\nKnots.";
    let files = r#"[{"path":"/w/CLAUDE.md","content":"Metres."},{"path":"/w/knots.md","content":"Knots."}]"#;
    let attachment = |uuid: &str, attachment: &str, sent: &str| {
        let rendered = format!(r#""rendered":[{{"content":"{sent}"}}],"renderedRole":"user""#);
        record("attachment", &format!(r#""uuid":"{uuid}","attachment":{attachment},{rendered}"#))
    };
    let instructions = format!(r#"{{"type":"instructions","files":{files}}}"#);
    let (first, call) = (user(sent), r#"{"type":"tool_use","id":"c","name":"tide","input":{}}"#);
    let prompt = said("How deep?").replace("\"uuid\"", "\"rowSource\":\"local\",\"uuid\"");
    let result = r#"{"type":"tool_result","tool_use_id":"c","content":"Six."}"#;
    let lines = [
        prompt,
        attachment("i", &instructions, sent),
        attachment("d", r#"{"type":"date","date":"today"}"#, "It is today."),
        shape(),
        blob(&first),
        request("r1", None, 0, &[&first], 0),
        record(
            "assistant",
            &format!(
                r#""uuid":"c","requestRef":"r1","message":{{"role":"assistant","id":"m","content":[{call}]}}"#
            ),
        ),
        record(
            "user",
            &format!(
                r#""uuid":"r","rowSource":"x","message":{{"role":"user","content":[{result}]}}"#
            ),
        ),
        attachment("d2", r#"{"type":"date","date":"later"}"#, "It is later."),
    ];
    let (_, outline, _) = crate::transcript::testing::outline(&lines.join("\n"));
    let expected = r#"s/system
  system "Guide ships."
s/environment
  event "Rules.\n\n"
  event "Contents of /w/CLAUDE.md:\n\nMetres.\n\n"
  event "Contents of /w/knots.md:\n\nKnots."
s/environment
  event "It is today."
s/user*
  event "How deep?"
s/agent*
  action "" {"toolName":"tide","toolCallId":"c","parameters":{}}
s/user*
  result "Six." {"toolName":"tide","toolCallId":"c"}
s/environment
  event "It is later."
"#;
    assert_eq!(outline, expected);
    let (recording, _) = read(&lines);
    let frames = recording.history("s").unwrap();
    let instructions = frames.get(FrameSeq::new(1)).unwrap();
    let names: Vec<_> = instructions.added().map(|facet| facet.id.as_str().to_owned()).collect();
    assert_eq!(
        names,
        ["event-1.0:instructions", "event-1.1:/w/CLAUDE.md", "event-1.2:/w/knots.md"]
    );
    let request = &recording.exchanges()[0];
    assert_eq!((request.system_frame, request.frames[0]), (Some(0.into()), Some(1.into())));
    assert_eq!(recording.frames_of_message(request, 0), Some(1.into()..=3.into()));
    assert_eq!(
        recording.facet_of(request, 1.into(), "It is today.").unwrap().as_str(),
        "event-2.0:date"
    );
}

#[test]
fn a_message_ends_before_what_the_agent_says() {
    let (first, second) = (user("How deep?"), user("And now?"));
    let lines = [
        said("How deep?"),
        answer("Overloaded.", "").replace(r#""model":"m""#, r#""model":"<synthetic>""#),
        said("And now?"),
        shape(),
        blob(&first),
        blob(&second),
        request("r1", None, 0, &[&first, &second], 0),
        answer("Six.", r#""requestRef":"r1","#),
    ];
    let (recording, _) = read(&lines);
    let logged = recording.exchanges().last().unwrap();
    assert_eq!(logged.frames, [Some(0.into()), Some(2.into())]);
    assert_eq!(recording.frames_of_message(logged, 0), Some(0.into()..=0.into()));
    assert_eq!(recording.facet_of(logged, 0.into(), "And now?"), None);
}

#[test]
fn no_text_of_an_attachment_is_lost_where_another_was_sent() {
    let rendered = r#"[{"content":"Sent."},{"type":"text","text":"Beside."}]"#;
    let attachment = r#"{"type":"date","content":"Own."}"#;
    let members = format!(
        r#""uuid":"d","attachment":{attachment},"rendered":{rendered},"renderedRole":"user""#
    );
    let (_, outline, _) = crate::transcript::testing::outline(&record("attachment", &members));
    assert_eq!(outline, "s/environment\n  event \"Sent.\"\n  event \"Beside.\"\n");
    let is_kept = |members: &str| {
        let (recording, _) = read(&[record("attachment", members)]);
        let frame = recording.history("s").unwrap().get(0.into()).unwrap();
        format!("{:?}", frame.imported).contains("\"content\": String")
    };
    assert!(is_kept(&members));
    // What was sent says this one.
    assert!(!is_kept(&members.replace("Own.", "Sent")));
}

#[test]
fn sessions_in_turn_share_the_bodies_of_their_own_requests() {
    let [own, other] = ["x", "y"].map(|text| user(&text.repeat(50_000)));
    let of_agent = |line: String| line.replace(r#""sessionId""#, r#""agentId":"a","sessionId""#);
    let mut lines = vec![said("How deep?"), shape(), blob(&own), of_agent(blob(&other))];
    for number in 0..20 {
        for (name, message) in [("o", &own), ("a", &other)] {
            let id = format!("{name}{number}");
            let base = (number > 0).then(|| format!("{name}{}", number - 1));
            let line = match &base {
                Some(base) => request(&id, Some(base), 1, &[], 0),
                None => request(&id, None, 0, &[message], 0),
            };
            lines.push(if name == "a" { of_agent(line) } else { line });
        }
    }
    let (recording, notes) = read(&lines);
    assert_eq!((recording.exchanges().len(), notes.len()), (40, 0), "{notes:?}");
    let mut texts: Vec<_> =
        recording.exchanges().iter().flat_map(|of| of.request.texts()).collect();
    texts.sort_by_key(|text| Arc::as_ptr(text).cast::<u8>());
    texts.dedup_by(|one, other| Arc::ptr_eq(one, other));
    let held: usize = texts.iter().map(|text| text.len()).sum();
    assert!(held < 150_000, "{held}");
}

#[test]
fn a_request_that_adds_nothing_is_none_to_pass() {
    let (mut requests, mut sink) = (LoggedRequests::default(), Sink::default());
    sink.keep_exchanges();
    let first = user("How deep?");
    let mut take = |line: String| {
        let Value::Object(record) = value(&line) else { panic!() };
        requests.request(record, "s", 1, &mut sink);
    };
    take(request("r0", None, 0, &[&first], 0));
    for number in 1..9 {
        let base = format!("r{}", number - 1);
        take(request(&format!("r{number}"), Some(&base), 1, &[], 0));
    }
    assert!(requests.requests.values().skip(1).all(|link| link.base == Some(0)));
    assert_eq!(requests.hashes("r8").unwrap(), [&hash_of_message(&value(&first))]);
}
