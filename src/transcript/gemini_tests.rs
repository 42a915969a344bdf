use super::super::sample::check;

#[test]
fn a_document_holds_messages_and_notices() {
    check(
        r#"{"sessionId": "s", "projectHash": "h", "messages": [
             {"id": "m1", "timestamp": "t1", "type": "user", "content": [{"text": "Look"}, "at", {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"fileData": {}}]},
             {"id": "m2", "type": "gemini", "content": "", "model": "g", "thoughts": [{"subject": "A", "description": "b"}],
              "toolCalls": [
                {"id": "c1", "name": "ls", "args": {"p": 1}, "status": "success", "resultDisplay": "x",
                 "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "out"}}}]},
                {"id": "c2", "name": "ls", "args": {}, "status": "cancelled",
                 "result": [{"functionResponse": {"response": {"error": "no"}}}]},
                {"id": "c3", "name": "ls", "args": {}, "status": "error", "result": []},
                {"id": "c4", "name": "ls", "result": [{"functionResponse": {"response": {"n": 1}}}]}]},
             {"id": "m3", "type": "info", "content": "Update available"},
             {"id": "m4", "type": "other"}, 5]}"#,
        r#"
        gemini
        # s
        user message m1 t1 {"form":"parts","type":"user"}
          event "Look"
          event "at" <- {"form":"string"}
          image "[image/png, 3 bytes]" <- {"inlineData":{"mimeType":"image/png","data":"AAAA"}}
          opaque "[fileData, 15 bytes]" <- {"fileData":{}}
        agent message m2 {"form":"empty","type":"gemini","answer":{"model":"g"},"model":"g"}
          thought "A\nb" <- {"subject":"A","description":"b"}
          call ls c1 {"p":1} <- {"status":"success","resultDisplay":"x"}
          call ls c2 {} <- {"status":"cancelled"}
          call ls c3 {} <- {"status":"error"}
          call ls c4
        environment -
          result ls c1 done "out" <- [{"functionResponse":{"id":"c1","name":"ls","response":{"output":"out"}}}]
          result ls c2 cancelled "no" <- [{"functionResponse":{"response":{"error":"no"}}}]
          result ls c4 "{\"n\":1}" <- [{"functionResponse":{"response":{"n":1}}}]
        environment -
          unknown (a message of type "other") {"id":"m4","type":"other"}
        environment -
          unknown (a number is no message) 5
        messages 2, calls 4, results 3, sessions 1, unknown 2, skipped {"header": 1, "info": 1}
        "#,
    );
}

#[test]
fn by_line_a_later_line_replaces_a_message_in_its_place() {
    check(
        r#"{"sessionId":"s","projectHash":"h","messages":[]}
{"id":"a","type":"user","content":"Go"}
{"id":"b","type":"gemini","content":"","toolCalls":[{"id":"c","name":"ls","args":{}}]}
{"id":"d","type":"user","content":"Stop"}
{"$set":{"lastUpdated":"t"}}
{"id":"b","type":"gemini","content":"","toolCalls":[{"id":"c","name":"ls","args":{},"result":[{"text":"out"}]}]}
{"$rewindTo":"d"}
{"$set":{"messages":[{"id":"a","type":"user","content":"[masked]"},{"id":"e","type":"user","content":"Summary"}]}}
{"x":1}"#,
        r#"
        gemini
        # s
        user message a {"type":"user"}
          event "Go"
        agent message b {"form":"empty","type":"gemini"}
          call ls c {}
        environment -
          result ls c "out" <- [{"text":"out"}]
        user message d {"type":"user"}
          event "Stop"
        environment - {"record":{"$rewindTo":"d"}}
        environment - {"record":{"$set":{}}}
        user message e {"type":"user"}
          event "Summary"
        environment -
          unknown (a record without a type) {"x":1}
        messages 4, calls 1, results 1, sessions 1, unknown 1, skipped {"$set": 1, "header": 1, "replaced message": 1}
        "#,
    );
}

#[test]
fn a_message_is_held_for_a_while_only() {
    let line = |id: &str| format!(r#"{{"id":"{id}","type":"user","content":"{id}"}}"#);
    let lines: Vec<_> = ["a", "b", "c", "d", "e", "a"].iter().map(|id| line(id)).collect();
    let found = super::super::sample::outline(
        format!("{}\n{}", r#"{"sessionId":"s","projectHash":"h"}"#, lines.join("\n")).as_bytes(),
    );
    assert!(found.contains("unknown (replaces a message that was given out already)"), "{found}");
    assert!(found.contains("messages 5, calls 0, results 0, sessions 1, unknown 1"), "{found}");
}
