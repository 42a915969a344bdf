use super::super::sample::check;

#[test]
fn the_events_of_a_step_are_one_message_and_its_results_follow_it() {
    check(
        r#"{"type":"metadata","protocol_version":"1.4","created_at":1}
{"type":"config.update","systemPrompt":"Be kind.","time":2}
{"type":"config.update","systemPrompt":"Be kind.","modelAlias":"k"}
{"type":"turn.prompt","input":[{"type":"text","text":"List"}]}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"List"}],"toolCalls":[],"origin":{"kind":"user"}},"time":3}
{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1"}}
{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p1","stepUuid":"s1","part":{"type":"think","think":"Hm.","encrypted":"x"}},"time":4}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s1","toolCallId":"c1","name":"LS","args":{"p":1}}}
{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"u","toolCallId":"c1","result":{"output":"a.txt"}},"time":5}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s1","toolCallId":"c2","name":"LS","args":"{}"}}
{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s1"}}
{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"c2","result":{"output":[{"type":"text","text":"no"}],"isError":true}}}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s1","part":{"type":"text","text":"late"}}}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s2","part":{"type":"text","text":"Done"}}}
{"type":"usage.record"}
{"type":"odd"}
{}"#,
        r#"
        kimi
        # 1
        system -
          system "Be kind."
        user message 3 {"origin":{"kind":"user"}}
          event "List" <- {"type":"text"}
        agent message s1 4
          thought "Hm." <- {"type":"think","encrypted":"x"}
          call LS c1 {"p":1} <- {"type":"tool.call","stepUuid":"s1"}
          call LS c2 {} <- {"type":"tool.call","stepUuid":"s1"}
        environment - 5 {"type":"tool.result","parentUuid":"u"}
          result LS c1 "a.txt"
        environment - {"type":"tool.result"}
          result LS c2 failed "" <- {"isError":true}
            result - - "no" <- {"type":"text"}
        agent - s1
          speech "late" <- {"type":"text"}
        environment -
          unknown (a record of type "odd") {"type":"odd"}
        environment -
          unknown (a record without a type) {}
        agent message s2
          speech "Done" <- {"type":"text"}
        messages 3, calls 2, results 2, sessions 1, unknown 2, skipped {"config.update": 2, "metadata": 1, "step.begin": 1, "step.end": 1, "turn.prompt": 1, "usage.record": 1}
        "#,
    );
}

#[test]
fn messages_may_hold_calls_and_results_and_a_compaction_leaves_a_summary() {
    check(
        r#"{"type":"context.append_message","message":{"role":"assistant","content":[{"type":"think","think":"Hm."},{"type":"image_url","imageUrl":{"url":"http://x/y"}}],"toolCalls":[{"type":"function","id":"c1","name":"LS","arguments":"{}"}]}}
{"type":"context.append_message","message":{"role":"tool","content":"out","toolCallId":"c1","isError":true}}
{"type":"context.apply_compaction","summary":"All done.","compactedCount":2,"time":9}
{"type":"context.append_message","message":{"role":"user","content":"Go"}}
{"type":"context.append_message","message":{"role":"user","content":"Go"}}
{"type":"context.append_loop_event","event":{"type":"content.part","part":{"type":"text","text":"A"}}}
{"type":"context.append_loop_event","event":{"type":"content.part","part":{"type":"text","text":"B"}}}
{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s"}}
{"type":"context.append_loop_event","event":{"type":"content.part","part":{"type":"text","text":"C"}}}
{"type":"context.append_message","message":"x"}
{"type":"context.append_loop_event"}"#,
        r#"
        kimi
        # 1
        agent message
          thought "Hm." <- {"type":"think"}
          image "[image: http://x/y]" <- {"type":"image_url","imageUrl":{"url":"http://x/y"}}
          call LS c1 {}
        environment message {"isError":true}
          result LS c1 failed "out"
        environment - 9 {"type":"context.apply_compaction","compactedCount":2,"time":9}
          summary "All done." <- {"field":"summary"}
        user message
          event "Go"
        user message
          event "Go"
        agent message
          speech "A" <- {"type":"text"}
          speech "B" <- {"type":"text"}
        agent message
          speech "C" <- {"type":"text"}
        environment -
          unknown (no message with a role) {"type":"context.append_message","message":"x"}
        environment -
          unknown (a loop event without an object `event`) {"type":"context.append_loop_event"}
        messages 6, calls 1, results 1, sessions 1, unknown 2, skipped {"step.end": 1}
        "#,
    );
}

#[test]
fn a_step_without_an_end_is_given_out_in_bounded_records_and_counted_once() {
    let part = r#"{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"a"}}}"#;
    let input = format!(
        "{{\"type\":\"metadata\",\"protocol_version\":\"1\"}}\n{}",
        format!("{part}\n").repeat(2_500)
    );
    let transcript = crate::transcript::Transcript::new(input.as_bytes()).unwrap();
    let mut tally = crate::transcript::Tally::default();
    let sizes: Vec<_> = transcript
        .map(|record| {
            let frame = record.unwrap().frame;
            tally.add(&frame);
            frame.ops.len()
        })
        .collect();
    assert_eq!(sizes, [1_024, 1_024, 452]);
    assert_eq!(tally.messages, 1);
}

#[test]
fn the_answers_before_a_fork_are_copies_and_so_are_those_that_failed() {
    check(
        r#"{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1"},"time":1}
{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s1","finishReason":"error"},"time":2}
{"type":"forked","agentId":"main","time":9}"#,
        r#"
        kimi
        # 1
        agent - 2 {"answer":{"stop":"error"}}
        environment - 9 {"copiedBefore":{}}
        messages 0, calls 0, results 0, sessions 1, unknown 0, skipped {"step.begin": 1, "step.end": 1}
        "#,
    );
}
