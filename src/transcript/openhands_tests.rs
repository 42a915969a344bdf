use super::super::sample::check;

#[test]
fn messages_calls_and_results() {
    check(
        r#"[
        {"id": 0, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
        {"id": 1, "source": "environment", "action": "change_agent_state", "args": {"thought": ""}},
        {"id": 2, "source": "environment", "observation": "null", "cause": 1, "content": ""},
        {"id": 3, "source": "agent", "action": "system", "args": {"content": "Be kind."}},
        {"id": 4, "timestamp": "t4", "source": "user", "message": "caption", "action": "message", "args": {"content": "Look", "image_urls": ["http://x/y"]}},
        {"id": 5, "source": "agent", "message": "Running command: ls", "action": "run", "args": {"command": "ls", "thought": "Let me."},
         "tool_call_metadata": {"function_name": "bash", "tool_call_id": "c1", "model_response": {"id": "r", "choices": [{"message":
           {"reasoning_content": "Hm.", "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}]}}]}}},
        {"id": 6, "source": "agent", "observation": "run", "cause": 5, "content": "a.txt", "success": false,
         "tool_call_metadata": {"function_name": "bash", "tool_call_id": "c1", "model_response": {"id": "r"}}},
        {"id": 7, "source": "agent", "action": "read", "args": {"path": "a", "thought": ""}},
        {"id": 8, "source": "environment", "observation": "read", "cause": 7, "content": "text"},
        {"id": 9, "source": "environment", "observation": "error", "content": "broken"},
        {"id": 10, "source": "agent", "action": "finish", "args": {"outputs": {}, "thought": "Done."}},
        {"id": 11, "source": "agent", "observation": "null", "cause": 10},
        {"id": 12, "source": "agent"}, 5]"#,
        r#"
        openhands
        # 1
        system message {"id":3,"source":"agent","action":"system","args":{}}
          system "Be kind."
        user message t4 {"id":4,"source":"user","message":"caption","action":"message","args":{"image_urls":[]}}
          event "Look"
          image "[image: http://x/y]" <- "http://x/y"
        agent - {"id":5,"source":"agent","message":"Running command: ls","action":"run","args":{"command":"ls"},"tool_call_metadata":{"function_name":"bash","tool_call_id":"c1","model_response":{"id":"r","choices":[{"message":{"reasoning_content":"Hm.","tool_calls":[{"id":"c1","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}]}}]}}}
          thought "Hm." <- {"field":"tool_call_metadata.model_response.choices.0.message.reasoning_content"}
          speech "Let me." <- {"field":"args.thought"}
          call bash c1 {"command":"ls"}
        environment - {"id":6,"source":"agent","observation":"run","cause":5,"success":false,"tool_call_metadata":{"function_name":"bash","tool_call_id":"c1"}}
          result bash c1 failed "a.txt"
        agent - {"id":7,"source":"agent","action":"read","args":{"path":"a","thought":""}}
          call read - {"path":"a"}
        environment - {"id":8,"source":"environment","observation":"read","cause":7}
          result read - "text"
        environment - {"id":9,"source":"environment","observation":"error"}
          event "broken"
        agent - {"id":10,"source":"agent"}
          speech "Done." <- {"field":"args.thought"}
          opaque "[finish, 41 bytes]" <- {"action":"finish","args":{"outputs":{}}}
        environment -
          unknown (neither an action nor an observation) {"id":12,"source":"agent"}
        environment -
          unknown (neither an action nor an observation) 5
        messages 2, calls 2, results 2, sessions 1, unknown 2, skipped {"agent_state_changed": 1, "change_agent_state": 1, "null observation": 2}
        "#,
    );
}

#[test]
fn a_line_of_the_resolver_is_a_session() {
    check(
        r#"{"issue":{"number":7},"instruction":"Fix it","git_patch":"p","history":[{"id":1,"source":"user","action":"message","args":{"content":"Fix"}}]}
{"instruction":"","instance_id":"a","history":[[{"id":1,"source":"agent","action":"run","args":{"command":"ls"}},{"source":"agent","observation":"run","cause":1,"content":"x"}]]}
{"instruction":"","history":5}"#,
        r#"
        openhands
        # 7
        environment - {"issue":{"number":7},"instruction":"Fix it","git_patch":"p"}
        user message {"id":1,"source":"user","action":"message","args":{}}
          event "Fix"
        # a
        environment - {"instruction":"","instance_id":"a"}
        agent - {"id":1,"source":"agent","action":"run","args":{"command":"ls"}}
          call run - {"command":"ls"}
        environment - {"source":"agent","observation":"run","cause":1}
          result run - "x"
        environment -
          unknown (no list `history`) {"instruction":"","history":5}
        messages 1, calls 1, results 1, sessions 2, unknown 1, skipped {}
        "#,
    );
}
