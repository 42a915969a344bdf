use std::sync::Arc;

use crate::{id::Millis, request::Recording, tokens::Chars4, transcript::Transcript};

/// The outputs of the exchanges of a session of Claude Code, those in no list behind a bar. Its
/// records: a user's word, or the id of a response, its output and its text.
#[track_caller]
fn check(records: &[&str], expected: &str) {
    let line = |(at, record): (usize, &&str)| {
        let words: Vec<_> = record.split(' ').collect();
        let [id, output, text @ ..] = words.as_slice() else {
            return format!(
                r#"{{"type":"user","uuid":"u{at}","sessionId":"s","message":{{"role":"user","content":"{record}"}}}}"#
            );
        };
        let id = if *id == "-" { String::new() } else { format!(r#""id":"{id}","#) };
        let content = match text {
            [] => String::new(),
            text => format!(r#"{{"type":"text","text":"{}"}}"#, text.join(" ")),
        };
        format!(
            r#"{{"type":"assistant","uuid":"a{at}","sessionId":"s","message":{{{id}"role":"assistant","model":"m","content":[{content}],"usage":{{"input_tokens":3,"cache_read_input_tokens":0,"output_tokens":{output}}}}}}}"#
        )
    };
    let text: Vec<String> = records.iter().enumerate().map(line).collect();
    let text = text.join("\n");
    let transcript = Transcript::new(text.as_bytes()).unwrap();
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
    let outputs = |is_listed: bool| -> String {
        let of = recording.reported().filter(|exchange| exchange.is_unlisted != is_listed);
        let outputs = of.map(|exchange| exchange.usage.as_ref().and_then(|usage| usage.output));
        outputs.map(|output| format!("{} ", output.unwrap_or(0))).collect()
    };
    assert_eq!(format!("{}| {}", outputs(true), outputs(false)).trim_end(), expected);
}

#[test]
fn an_answer_that_shows_nothing_and_comes_again_with_text_counts_once() {
    check(&["Go", "one 5", "On", "one 7 Here."], "7 |");
    check(&["Go", "one 5", "two 6 Other.", "one 7 Here."], "6 7 |");
    // It comes again, and still shows nothing.
    check(&["Go", "one 5", "On", "one 8", "And", "two 6 Other."], "6 | 8");
    check(&["Go", "one 5", "On", "one 8", "And", "one 9 Here."], "9 |");
    // An excerpt begins with it.
    check(&["one 5 Here.", "one 6 there.", "Go", "two 9 Yes."], "9 | 6");
}

#[test]
fn adjacent_answers_that_cost_the_same_are_one_only_by_their_response() {
    check(&["Go", "one 5 First.", "one 5 And.", "two 5 Second."], "5 5 |");
    check(&["Go", "one 5 First.", "two 5"], "5 | 5");
    check(&["Go", "one 5", "two 5 Second."], "5 | 5");
    // Without an id, usage tells answers apart.
    check(&["Go", "- 5 First.", "- 5 Second.", "- 6 Third."], "5 6 |");
    check(&["Go", "- 5", "- 5 Second."], "5 |");
}

#[test]
fn items_with_ids_of_their_own_are_one_answer_whether_or_not_its_usage_names_a_cache() {
    for cached in ["", r#""cached_input_tokens":4,"#] {
        let text = format!(
            r#"{{"type":"session_meta","payload":{{"id":"s"}}}}
{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"Go"}}]}}}}
{{"type":"response_item","payload":{{"type":"reasoning","id":"i1","summary":[{{"type":"summary_text","text":"Hm"}}]}}}}
{{"type":"response_item","payload":{{"type":"message","id":"i2","role":"assistant","content":[{{"type":"output_text","text":"Yes"}}]}}}}
{{"type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":9,{cached}"output_tokens":2}}}}}}}}"#
        );
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let inputs = recording.reported().map(|of| of.usage.as_ref().and_then(|usage| usage.input));
        assert_eq!(inputs.collect::<Vec<_>>(), [Some(9)], "{cached}");
    }
}
