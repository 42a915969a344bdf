//! No string of a message vanishes: whatever a message holds is in the frames that it becomes, or the
//! import says that it was not understood.
//!
//! [`ROWS`] has a small file of each format. Each string, object and list of its messages is changed
//! in turn: strings give way to another, objects get a member that nobody knows, lists a part and a
//! text. A format is added as a row.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use afterimage::transcript::{ImportReport, Transcript};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What says in a pattern how the value before it is written.
const CODINGS: [char; 3] = ['=', '|', '~'];

/// What must not vanish.
const NEEDLE: &str = "the-needle-in-a-message";

struct Row {
    format: &'static str,
    /// A document, or records by line.
    sample: &'static str,
    /// Where messages stand in a record: `*` is any element. What is before a `=` is written as JSON in a
    /// string, what is before a `|` as the events of a stream, and what is before a `~` as the frames of
    /// Amazon's.
    messages: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        format: "openai-chat",
        sample: r#"[{"role":"system","content":"s"},{"role":"user","name":"n","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://a.b/c"}},{"type":"input_audio","input_audio":{"data":"d","format":"wav"}}]},{"role":"assistant","content":"x","reasoning_content":"hm","refusal":"no","annotations":[{"type":"url_citation","url":"u"}],"audio":{"id":"i","transcript":"t"},"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"extra_content":{"google":{"thought_signature":"S"}}},{"id":"d","type":"custom","custom":{"name":"g","input":"free"}}]},{"role":"tool","tool_call_id":"c","content":"T"},{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"U"}]},{"role":"assistant","content":null,"function_call":{"name":"h","arguments":"{}"}},{"role":"function","name":"h","content":"V"}]"#,
        messages: &["/*"],
    },
    Row {
        format: "openai-chat",
        sample: r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"file","mediaType":"image/png","data":"AAAA"},{"type":"image","image":"https://a.b/c"}]},{"role":"assistant","content":[{"type":"reasoning","text":"r","providerOptions":{"p":{"signature":"S"}}},{"type":"text","text":"x"},{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"p":"v"}},{"type":"tool-approval-request","approvalId":"i","toolCallId":"c"}]},{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"i","approved":true},{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"content","value":[{"type":"text","text":"T"}]}}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "openai-chat",
        sample: r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"a"}]},{"id":"2","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"r"},{"type":"tool-tide","toolCallId":"c","state":"output-available","input":{"day":"d"},"output":{"type":"content","value":[{"type":"text","text":"T"}]}},{"type":"file","mediaType":"image/png","url":"https://a.b/c"},{"type":"text","text":"x","state":"done"}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "openai-chat",
        sample: r#"[{"id":"1","role":"user","content":"a","parts":[{"type":"text","text":"a"}],"experimental_attachments":[{"name":"n","contentType":"image/png","url":"data:image/png;base64,AAAA"}]},{"id":"2","role":"assistant","content":"x","reasoning":"r","toolInvocations":[{"state":"result","toolCallId":"c","toolName":"f","args":{"p":"v"},"result":{"o":"T"}}],"parts":[{"type":"reasoning","reasoning":"r","details":[{"type":"text","text":"r","signature":"S"}]},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"f","args":{"p":"v"},"result":{"o":"T"}}},{"type":"text","text":"x"}]},{"id":"3","role":"assistant","content":"y","toolInvocations":[{"state":"call","toolCallId":"d","toolName":"f","args":{}}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "goose",
        sample: r#"{"role":"user","created":1,"content":[{"type":"text","text":"a"}],"metadata":{"userVisible":true}}
{"role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{"command":"tide"}}}}]}
{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"T"},{"type":"resource","resource":{"uri":"u","text":"R"}}],"isError":false}}}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"text","text":"x"}]}"#,
        messages: &[""],
    },
    Row {
        format: "anthropic",
        sample: r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"text","data":"d"},"title":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"redacted_thinking","data":"R"},{"type":"text","text":"x","citations":[{"cited_text":"q"}]},{"type":"tool_use","id":"c","name":"f","input":{"p":"v"}},{"type":"server_tool_use","id":"w","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"w","content":[{"type":"web_search_result","title":"T","encrypted_content":"E"}]}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"T"}]}]}]}"#,
        messages: &["/system/*", "/messages/*"],
    },
    Row {
        format: "openai-responses",
        sample: r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://a.b/c"}]},{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"h"}],"encrypted_content":"E"},{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"c","output":"T"},{"type":"custom_tool_call","call_id":"d","name":"g","input":"free"},{"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"U"}]},{"type":"mcp_call","id":"m","name":"k","arguments":"{}","output":"O"},{"type":"web_search_call","id":"w","action":{"type":"search","query":"q"}},{"type":"item_reference","id":"x"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"y","annotations":[{"title":"t"}]},{"type":"refusal","refusal":"no"}]}]"#,
        messages: &["/*"],
    },
    Row {
        format: "wire",
        sample: r#"{"interactions":[{"uri":"https://a.b/v1/chat/completions","status":200,"request":{"model":"m","messages":[{"role":"user","content":"a"}]},"response":{"choices":[{"index":0,"message":{"role":"assistant","content":"x"}},{"index":1,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}},{"index":2,"message":{"role":"assistant","content":"another"}}]}},{"uri":"https://a.b/v1/messages","status":200,"request":{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}]}},{"uri":"https://a.b/v1/responses","status":200,"request":{"model":"m","input":[{"role":"user","content":"a"}]},"response":{"id":"r","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}}]}"#,
        messages: &[
            "/interactions/*/request/messages/*",
            "/interactions/*/request/input/*",
            "/interactions/*/response/choices/*/message",
            "/interactions/*/response/content/*",
            "/interactions/*/response/output/*",
        ],
    },
    Row {
        format: "wire",
        sample: r#"{"call_type":"acompletion","model":"m","messages":[{"role":"user","content":"a"}],"response":{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"b"}}]}}
{"call_type":"acompletion","model":"m","messages":[{"role":"user","content":"c"}],"response":{"id":"y","choices":[{"index":0,"message":{"role":"assistant","content":"d"}}]}}"#,
        messages: &["/messages/*", "/response/choices/*/message"],
    },
    Row {
        format: "wire",
        sample: r#"{"interactions":[{"uri":"https://generativelanguage.googleapis.com/v1beta/models/m:generateContent","status":200,"request":{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"application/pdf","fileUri":"u"}}]},{"role":"model","parts":[{"text":"h","thought":true},{"functionCall":{"id":"c","name":"f","args":{"p":"v"}},"thoughtSignature":"S"}]},{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"T"}}}]}]},"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"x"},{"executableCode":{"language":"PYTHON","code":"1"}}]},"finishReason":"STOP"}]}},{"uri":"https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/m:generateContent","status":200,"request":{"contents":[{"role":"user","parts":[{"text":"a"}]}]},"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]}}]}},{"uri":"https://l-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict","status":200,"request":{"anthropic_version":"vertex-2023-10-16","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}]}}]}"#,
        messages: &[
            "/interactions/*/request/systemInstruction/parts/*",
            "/interactions/*/request/contents/*",
            "/interactions/*/request/messages/*",
            "/interactions/*/response/candidates/*/content",
            "/interactions/*/response/content/*",
        ],
    },
    Row {
        format: "wire",
        sample: r#"{"interactions":[{"uri":"https://bedrock-runtime.x.amazonaws.com/model/m/converse","status":200,"request":{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"a"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]},{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"h","signature":"S"}}},{"toolUse":{"toolUseId":"c","name":"f","input":{"p":"v"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"T"},{"json":{"lux":"L"}}]}}]}]},"response":{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}},{"uri":"https://bedrock-runtime.x.amazonaws.com/model/m/invoke","status":200,"request":{"anthropic_version":"bedrock-2023-05-31","system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]},"response":{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}]}}]}"#,
        messages: &[
            "/interactions/*/request/system",
            "/interactions/*/request/messages/*",
            "/interactions/*/response/output/message",
            "/interactions/*/response/content/*",
        ],
    },
    Row {
        format: "wire",
        sample: r#"{"interactions":[{"uri":"http://127.0.0.1:11434/api/chat","status":200,"request":{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a","images":["AAAA"]},{"role":"assistant","content":"x","thinking":"h","tool_calls":[{"function":{"name":"f","arguments":{"p":"v"}}}]},{"role":"tool","tool_name":"f","content":"T"}]},"response":{"model":"m","message":{"role":"assistant","content":"x","thinking":"h"},"done":true}},{"uri":"http://127.0.0.1:11434/api/generate","status":200,"request":{"model":"m","system":"s","prompt":"a"},"response":{"response":"x","done":true}}]}"#,
        messages: &[
            "/interactions/*/request/messages/*",
            "/interactions/*/request/system",
            "/interactions/*/request/prompt",
            "/interactions/*/response/message",
            "/interactions/*/response/response",
        ],
    },
    Row {
        format: "mini-swe-agent",
        sample: r#"{"info":{},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x","extra":{"response":{"choices":[{"message":{"reasoning":"h"}}]}}},{"role":"exit","content":"done"}]}"#,
        messages: &["/messages/*"],
    },
    Row {
        format: "swe-agent",
        sample: r#"{"history":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"x","thought":"t","action":"ls","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","content":"T","tool_call_ids":["c"]}]}"#,
        messages: &["/history/*"],
    },
    Row {
        format: "tau-bench",
        sample: r#"[{"task_id":1,"trial":0,"reward":1.0,"traj":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"T"}]}]"#,
        messages: &["/*/traj/*"],
    },
    Row {
        format: "codex",
        sample: r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"h"}]}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"f"}}"#,
        messages: &["/payload"],
    },
    Row {
        format: "claude-code",
        sample: r#"{"type":"user","uuid":"u1","sessionId":"s","message":{"role":"user","content":"a"}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"T"}]}}"#,
        messages: &["/message"],
    },
    Row {
        format: "pi",
        sample: r#"{"type":"session","id":"s","timestamp":"t","cwd":"/"}
{"type":"message","id":"a","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"a"}]}}
{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"x"},{"type":"toolCall","id":"c","name":"f","arguments":{"p":"v"}}],"model":"m"}}
{"type":"message","id":"d","parentId":"b","timestamp":"t","message":{"role":"toolResult","toolCallId":"c","toolName":"f","content":[{"type":"text","text":"T"}]}}"#,
        messages: &["/message"],
    },
    Row {
        format: "gemini",
        sample: r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA","displayName":"the quay"}},{"fileData":{"mimeType":"application/pdf","fileUri":"u"}}]},{"id":"2","type":"gemini","content":"x","thoughts":[{"subject":"S","description":"D","timestamp":"t"}],"toolCalls":[{"id":"c","name":"f","args":{"p":"v"},"status":"success","result":[{"functionResponse":{"id":"c","name":"f","response":{"output":"T"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}],"resultDisplay":"d"},{"id":"d","name":"g","args":{},"status":"error","result":"late"}]},{"id":"3","type":"user","content":{"text":"b"}},{"id":"4","type":"gemini","content":[{"text":"h","thought":true},{"functionCall":{"id":"e","name":"g","args":{"p":"v"}},"thoughtSignature":"S"},{"executableCode":{"language":"PYTHON","code":"1"}}]},{"id":"5","type":"user","content":[{"functionResponse":{"id":"e","name":"g","response":{"error":"no"}}}]}]}"#,
        messages: &["/messages/*"],
    },
    Row {
        format: "qwen-code",
        sample: r#"{"uuid":"a","parentUuid":null,"sessionId":"s","type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AAAA","displayName":"n"}}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"h","thought":true},{"text":"x"},{"functionCall":{"id":"c","name":"f","args":{"p":"v"}},"thoughtSignature":"S"}]}}
{"uuid":"c","parentUuid":"b","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":[{"text":"T"}]}}}]}}
{"uuid":"d","parentUuid":"c","sessionId":"s","type":"system","subtype":"chat_compression","systemPayload":{"compressedHistory":[{"role":"user","parts":[{"text":"so far"},{"functionCall":{"name":"f","args":{}}}]}]}}
{"uuid":"e","parentUuid":null,"sessionId":"s","agentId":"g","type":"system","subtype":"agent_bootstrap","systemPayload":{"kind":"fork","systemInstruction":{"parts":[{"text":"i"}]},"history":[{"role":"user","parts":[{"text":"h"}]}]}}"#,
        messages: &[
            "/message",
            "/systemPayload/compressedHistory/*",
            "/systemPayload/history/*",
            "/systemPayload/systemInstruction",
        ],
    },
    Row {
        format: "kimi",
        sample: r#"{"type":"metadata","protocol_version":"1"}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","imageUrl":{"url":"https://a.b/c","id":"i"}}],"toolCalls":[],"origin":{"kind":"user"}},"time":1}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"think","think":"h","encrypted":"E"}}}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"x"}}}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s","toolCallId":"c","name":"f","args":{"p":"v"}}}
{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"c","result":{"output":[{"type":"text","text":"T"}],"isError":false}}}
{"type":"context.append_message","message":{"role":"assistant","content":"y","toolCalls":[{"type":"function","id":"d","name":"g","arguments":"{}"}]}}
{"type":"context.append_message","message":{"role":"tool","content":"U","toolCallId":"d"}}
{"type":"context.apply_compaction","summary":{"role":"assistant","content":[{"type":"text","text":"so far"}]},"compactedCount":2}"#,
        messages: &["/message", "/event", "/summary"],
    },
    Row {
        format: "copilot",
        sample: r#"{"type":"system.message","data":{"content":"s","role":"system"},"id":"e2"}
{"type":"user.message","data":{"content":"a","transformedContent":"b","attachments":[{"type":"file","path":"p","displayName":"n"}]},"id":"e3"}
{"type":"assistant.message","data":{"content":"x","reasoningText":"h","reasoningOpaque":"o","toolRequests":[{"toolCallId":"c","name":"f","arguments":{"p":"v"}},{"toolCallId":"d","name":"f","arguments":"free"}]},"id":"e4"}
{"type":"tool.execution_complete","data":{"toolCallId":"c","success":true,"result":{"content":"T","contents":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}},"id":"e5"}
{"type":"tool.execution_complete","data":{"toolCallId":"d","success":false,"error":{"message":"late","code":"x"}},"id":"e6"}
{"type":"assistant.reasoning","data":{"content":"r"},"id":"e7"}"#,
        messages: &["/data"],
    },
    Row {
        format: "openhands",
        sample: r#"[{"id":0,"timestamp":"t","source":"user","message":"m","action":"message","args":{"content":"a","image_urls":["https://a.b/c"]}},{"id":1,"source":"agent","action":"run","args":{"command":"ls","thought":"h"},"tool_call_metadata":{"tool_call_id":"c","function_name":"bash","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"x","reasoning_content":"R","tool_calls":[{"id":"c","type":"function","function":{"name":"bash","arguments":"{}"}},{"id":"d","type":"function","function":{"name":"read","arguments":"{}"}}]}}]}}},{"id":2,"source":"agent","action":"read","args":{"path":"p"},"tool_call_metadata":{"tool_call_id":"d","function_name":"read","model_response":{"id":"r","choices":[{"message":{"role":"assistant","content":"x"}}]}}},{"id":3,"source":"agent","observation":"run","cause":1,"message":"m","content":"T","extras":{"metadata":{"exit":"E"}},"tool_call_metadata":{"tool_call_id":"c","function_name":"bash"}},{"id":4,"source":"agent","observation":"read","cause":2,"content":["U"]},{"id":5,"source":"agent","action":"think","args":{"thought":"t"}},{"id":6,"source":"environment","observation":"error","content":"no"}]"#,
        messages: &["/*"],
    },
    Row {
        format: "inspect",
        sample: r#"{"version":2,"eval":{},"samples":[{"id":1,"epoch":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","image":"https://a.b/c","detail":"d"},{"type":"audio","audio":"A","format":"wav"},{"type":"document","document":"D","filename":"f"}]},{"role":"assistant","content":[{"type":"reasoning","reasoning":"h","signature":"S"},{"type":"text","text":"x","refusal":false,"citations":[{"type":"url","url":"u"}]},{"type":"tool_use","tool_type":"web_search","id":"w","name":"search","arguments":"{}","result":"R","error":null}],"tool_calls":[{"id":"c","function":"go","arguments":{"p":"v"},"type":"function"}]},{"role":"tool","content":"T","tool_call_id":"c","function":"go","error":{"type":"timeout","message":"late"}}]}]}"#,
        messages: &["/samples/*/messages/*"],
    },
    Row {
        format: "toolbench",
        sample: r#"{"answer_generation":{"train_messages":[[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"x","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"T"}]]}}"#,
        messages: &["/answer_generation/train_messages/*/*"],
    },
    Row {
        format: "opencode",
        sample: r#"{"info":{"id":"s"},"messages":[{"info":{"role":"user","id":"m1","time":{"created":5},"system":"s","summary":{"title":"t"}},"parts":[{"type":"text","text":"a"},{"type":"file","mime":"image/png","filename":"n","url":"data:image/png;base64,AAAA"},{"type":"file","mime":"text/plain","url":"u","source":{"text":{"value":"w"}}}]},{"info":{"role":"assistant","modelID":"q","error":{"name":"E"}},"parts":[{"type":"reasoning","text":"h"},{"type":"text","text":"x"},{"type":"tool","tool":"f","callID":"c","state":{"status":"completed","input":{"p":"v"},"output":"T","title":"i","attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"}]}},{"type":"tool","tool":"f","callID":"d","state":{"status":"error","input":{},"error":"no"}},{"type":"tool","tool":"f","callID":"e","state":{"status":"running","input":{}}}]},{"info":{"role":"assistant","summary":true},"parts":[{"type":"text","text":"so far"}]}]}"#,
        messages: &["/messages/*"],
    },
    Row {
        format: "cline",
        sample: r#"{"sessionId":"s","system_prompt":"s","messages":[{"id":"m1","role":"user","content":"a","ts":1},{"id":"m2","role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"run","input":{"p":"v"}}],"ts":2,"modelInfo":{"id":"q","provider":"p"},"metrics":{"inputTokens":5}},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"query":"ls","result":"T","success":true}]},{"type":"tool_result","tool_use_id":"d","content":[{"type":"text","text":"T"}]}]}]}"#,
        messages: &["/messages/*"],
    },
    Row {
        format: "continue",
        sample: r#"{"sessionId":"s","history":[{"message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"imageUrl","imageUrl":{"url":"https://a.b/c"}}]},"contextItems":[{"content":"f","name":"n","id":{"itemId":"i"}}],"editorState":"a"},{"message":{"role":"thinking","content":"h","signature":"S"},"contextItems":[]},{"message":{"role":"assistant","content":"x","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}],"usage":{"prompt_tokens":3,"model":"m"}},"contextItems":[],"reasoning":{"text":"r","active":false},"toolCallStates":[{"toolCallId":"c","toolCall":{"id":"c","function":{"name":"f"}},"status":"done","parsedArgs":{"a":1},"output":[{"content":"T","name":"R"},{"content":"U"}]},{"toolCallId":"d","status":"calling"}]},{"message":{"role":"tool","toolCallId":"d","content":"V"},"contextItems":[]},{"message":{"role":"assistant","content":"y"},"contextItems":[],"conversationSummary":"so far"}]}"#,
        messages: &["/history/*"],
    },
    Row {
        format: "atif",
        sample: r#"{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"n","model_name":"m"},"steps":[{"step_id":1,"source":"system","message":"s"},{"step_id":2,"timestamp":"t","source":"user","message":[{"type":"text","text":"a"},{"type":"image","source":{"media_type":"image/png","path":"p"}}]},{"step_id":3,"source":"agent","message":"x","reasoning_content":"h","tool_calls":[{"tool_call_id":"c","function_name":"f","arguments":{"p":"v"}}],"observation":{"results":[{"source_call_id":"c","content":[{"type":"text","text":"T"}],"subagent_trajectory_ref":[{"session_id":"u"}]}]},"metrics":{"prompt_tokens":3,"extra":{"e":"E"}}},{"step_id":4,"source":"agent","message":"y","observation":{"results":[{"content":"U"}]}}],"subagent_trajectories":[{"steps":[{"source":"agent","message":"z"}]}]}"#,
        messages: &["/steps/*", "/subagent_trajectories/*/steps/*"],
    },
    Row {
        format: "claude-web",
        sample: r#"{"loglines":[{"type":"user","message":{"role":"user","content":"a"}},{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"f","input":{"p":"v"}}]}},{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}}]}"#,
        messages: &["/loglines/*/message"],
    },
    Row {
        format: "har",
        sample: r#"{"log":{"entries":[{"request":{"method":"POST","url":"https://a.b/v1/messages","postData":{"text":{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}}},"response":{"status":200,"content":{"text":{"type":"message","role":"assistant","content":[{"type":"text","text":"x","citations":[{"cited_text":"q","document_title":"t"}]}]}}}}]}}"#,
        messages: &[
            "/log/entries/*/request/postData/text=/messages/*",
            "/log/entries/*/response/content/text=/content/*",
        ],
    },
    #[cfg(feature = "record")]
    Row {
        format: "har",
        sample: r#"{"log":{"entries":[{"request":{"method":"POST","url":"https://bedrock-runtime.x.amazonaws.com/model/m/converse-stream","postData":{"text":{"messages":[{"role":"user","content":[{"text":"a"}]}]}}},"response":{"status":200,"content":{"encoding":"base64","text":[{"messageStart":{"role":"assistant"}},{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"h"}}}},{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"S"}}}},{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"text":"x"}}},{"contentBlockStart":{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"c","name":"f"}}}},{"contentBlockDelta":{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{}"}}}},{"messageStop":{"stopReason":"tool_use"}}]}}},{"request":{"method":"POST","url":"https://bedrock-runtime.x.amazonaws.com/model/m/invoke-with-response-stream","postData":{"text":{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}}},"response":{"status":200,"content":{"encoding":"base64","text":[{"chunk":{"bytes":{"type":"message_start","message":{"type":"message","role":"assistant","content":[]}}}},{"chunk":{"bytes":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}},{"chunk":{"bytes":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}},{"chunk":{"bytes":{"type":"content_block_stop","index":0}}},{"chunk":{"bytes":{"type":"message_delta","delta":{"stop_reason":"end_turn"}}}},{"chunk":{"bytes":{"type":"message_stop"}}}]}}}]}}"#,
        messages: &[
            "/log/entries/*/request/postData/text=/messages/*",
            "/log/entries/*/response/content/text~/*/contentBlockStart/start",
            "/log/entries/*/response/content/text~/*/contentBlockDelta/delta",
            "/log/entries/*/response/content/text~/*/chunk/bytes/content_block",
            "/log/entries/*/response/content/text~/2/chunk/bytes/delta/text",
        ],
    },
    Row {
        format: "har",
        sample: r#"{"log":{"entries":[{"request":{"method":"POST","url":"https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse","postData":{"text":{"contents":[{"role":"user","parts":[{"text":"a"}]}]}}},"response":{"status":200,"content":{"text":[{"candidates":[{"content":{"role":"model","parts":[{"text":"h","thought":true},{"text":"x"}]}}]},{"candidates":[{"content":{"role":"model","parts":[{"text":"y"},{"functionCall":{"id":"c","name":"f","args":{"p":"v"}},"thoughtSignature":"S"}]},"finishReason":"STOP"}]}]}}},{"request":{"method":"POST","url":"https://a.b/v1/messages","postData":{"text":{"messages":[{"role":"user","content":"a"}]}}},"response":{"status":200,"content":{"text":[{"type":"message_start","message":{"type":"message","role":"assistant","content":[]}},{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}},{"type":"content_block_stop","index":0},{"type":"message_delta","delta":{"stop_reason":"end_turn"}},{"type":"message_stop"}]}}},{"request":{"method":"POST","url":"https://a.b/v1/chat/completions","postData":{"text":{"messages":[{"role":"user","content":"a"}]}}},"response":{"status":200,"content":{"text":[{"choices":[{"index":0,"delta":{"role":"assistant","content":"x","reasoning_content":"h"}}]},{"choices":[{"index":0,"delta":{"content":"y","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]},{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}]}}},{"request":{"method":"POST","url":"https://a.b/v1/responses","postData":{"text":{"input":[{"role":"user","content":"a"}]}}},"response":{"status":200,"content":{"text":[{"type":"response.created","response":{"id":"r","output":[]}},{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}},{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}]}}}]}}"#,
        messages: &[
            "/log/entries/*/request/postData/text=/contents/*",
            "/log/entries/*/response/content/text|/*/candidates/*/content/parts",
            "/log/entries/*/response/content/text|/*/content_block",
            "/log/entries/1/response/content/text|/2/delta/text",
            "/log/entries/*/response/content/text|/*/choices/*/delta",
            "/log/entries/*/response/content/text|/*/item",
        ],
    },
    Row {
        format: "otlp",
        sample: r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"0000000000000001","name":"chat m","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.system_instructions","value":{"stringValue":[{"type":"text","content":"s"}]}},{"key":"gen_ai.input.messages","value":{"stringValue":[{"role":"user","name":"n","parts":[{"type":"text","content":"a"},{"type":"blob","modality":"image","mime_type":"image/png","content":"AAAA"},{"type":"uri","modality":"audio","uri":"u"}]},{"role":"assistant","parts":[{"type":"reasoning","content":"h"},{"type":"tool_call","id":"c","name":"f","arguments":{"p":"v"}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"T"}]},{"role":"assistant","content":"z","tool_calls":[{"id":"d","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"d","content":"U"}]}},{"key":"gen_ai.output.messages","value":{"stringValue":[{"role":"assistant","parts":[{"type":"text","content":"x"},{"type":"server_tool_call","id":"w","name":"search","server_tool_call":{"type":"q"}},{"type":"server_tool_call_response","id":"w","server_tool_call_response":{"type":"R"}}]}]}}]}]}]}]}"#,
        messages: &[
            "/resourceSpans/*/scopeSpans/*/spans/*/attributes/1/value/stringValue=/*",
            "/resourceSpans/*/scopeSpans/*/spans/*/attributes/2/value/stringValue=/*",
            "/resourceSpans/*/scopeSpans/*/spans/*/attributes/3/value/stringValue=/*",
        ],
    },
];

/// The frames as JSON, and what was said; `None` where the file is refused.
fn read(input: &str) -> Option<(String, String, ImportReport)> {
    let mut transcript = Transcript::new(input.as_bytes()).ok()?;
    let format = transcript.format().name().to_owned();
    let frames = transcript.by_ref().map(|record| record.unwrap().frame.to_json().to_string());
    let frames = frames.collect();
    Some((format, frames, transcript.report().clone()))
}

/// The places in a value that a pattern names.
fn matching(value: &Value, pattern: &[&str], at: &str, found: &mut Vec<String>) {
    let Some((first, rest)) = pattern.split_first() else { return found.push(at.to_owned()) };
    match (value, *first) {
        (Value::Array(list), "*") => {
            for (index, element) in list.iter().enumerate() {
                matching(element, rest, &format!("{at}/{index}"), found);
            }
        }
        (Value::Array(list), index) => {
            if let Some(element) = index.parse().ok().and_then(|index: usize| list.get(index)) {
                matching(element, rest, &format!("{at}/{index}"), found);
            }
        }
        (Value::Object(object), key) => {
            if let Some(member) = object.get(key) {
                matching(member, rest, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// The places in a record that are of a pattern.
fn places(record: &Value, pattern: &str) -> Vec<String> {
    let mut found = Vec::new();
    let pattern = pattern.replace(CODINGS, "");
    matching(record, &pattern.split('/').skip(1).collect::<Vec<_>>(), "", &mut found);
    found
}

/// The record as it stands in a file.
fn written(mut record: Value, row: &Row) -> String {
    for pattern in row.messages {
        let Some(coded) = pattern.find(CODINGS) else { continue };
        let (inside, coding) = pattern.split_at(coded);
        for at in places(&record, inside) {
            let document = record.pointer_mut(&at).unwrap();
            *document = match (&*document, coding.as_bytes()[0]) {
                // It is written as another pattern says that begins so.
                (Value::String(_), _) => continue,
                (Value::Array(events), b'|') => events
                    .iter()
                    .map(|event| format!("data: {event}\n\n"))
                    .collect::<String>()
                    .into(),
                (Value::Array(events), b'~') => STANDARD
                    .encode(events.iter().flat_map(amazons_frame).collect::<Vec<u8>>())
                    .into(),
                (document, _) => document.to_string().into(),
            };
        }
    }
    record.to_string()
}

/// An event as a frame of Amazon's: its name is a header, and `bytes` are in base64.
fn amazons_frame(event: &Value) -> Vec<u8> {
    let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
    let mut payload = payload.clone();
    if let Some(bytes) = payload.get_mut("bytes") {
        *bytes = STANDARD.encode(bytes.to_string()).into();
    }
    let mut headers = vec![11];
    headers.extend(b":event-type\x07");
    headers.extend((name.len() as u16).to_be_bytes());
    headers.extend(name.as_bytes());
    let payload = payload.to_string();
    let mut frame = ((16 + headers.len() + payload.len()) as u32).to_be_bytes().to_vec();
    frame.extend((headers.len() as u32).to_be_bytes());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame.extend([&headers, payload.as_bytes()].concat());
    frame.extend(crc32fast::hash(&frame).to_be_bytes());
    frame
}

/// The record, changed at each place below `at` in turn, with what was done.
fn changed(record: &Value, at: &str, all: &mut Vec<(String, Value)>) {
    let mut with = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut record = record.clone();
        change(record.pointer_mut(at).unwrap());
        all.push((format!("{what} at {at}"), record));
    };
    match record.pointer(at).unwrap() {
        Value::String(_) => {
            with("another string", &|value| *value = NEEDLE.into());
            with("no string", &|value| *value = json!({ "novel": [NEEDLE] }));
        }
        Value::Array(list) => {
            let part = json!({ "type": "novel_part", "text": NEEDLE });
            with("a part", &|value| value.as_array_mut().unwrap().push(part.clone()));
            with("a text", &|value| value.as_array_mut().unwrap().push(NEEDLE.into()));
            for index in 0..list.len() {
                changed(record, &format!("{at}/{index}"), all);
            }
        }
        Value::Object(object) => {
            with("a member", &|value| value["novelMember"] = json!({ "in": [NEEDLE] }));
            for key in object.keys() {
                changed(record, &format!("{at}/{key}"), all);
            }
        }
        _ => with("a string", &|value| *value = NEEDLE.into()),
    }
}

#[test]
fn no_string_of_a_message_vanishes() {
    let mut vanished = Vec::new();
    for row in ROWS {
        let lines: Vec<Value> =
            row.sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let lines_of = |records: &[Value]| {
            let lines = records.iter().map(|record| written(record.clone(), row));
            lines.collect::<Vec<String>>().join("\n")
        };
        let (format, _, as_it_is) = read(&lines_of(&lines)).unwrap();
        assert_eq!(format, row.format, "{}", row.sample);
        assert_eq!(as_it_is.unknown_records, 0, "{}: {:?}", row.format, as_it_is.unknown);
        for (number, record) in lines.iter().enumerate() {
            let found = row.messages.iter().flat_map(|pattern| places(record, pattern));
            let mut all = Vec::new();
            found.for_each(|at| changed(record, &at, &mut all));
            for (what, record) in all {
                let mut lines = lines.clone();
                lines[number] = record;
                // A file that is refused is told of.
                let Some((_, frames, report)) = read(&lines_of(&lines)) else { continue };
                let is_told = report.unknown_records > as_it_is.unknown_records
                    || report.noted > as_it_is.noted;
                if !frames.contains(NEEDLE) && !is_told {
                    vanished.push(format!("{} line {}: {what}", row.format, number + 1));
                }
            }
        }
    }
    assert!(vanished.is_empty(), "{} vanished:\n{}", vanished.len(), vanished.join("\n"));
}

/// A session of Claude Code with a request: its system prompt, its tools and a message, by their hashes.
fn logged(shape: &Value, message: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(object) => {
                let members: BTreeMap<&String, &Value> = object.iter().collect();
                members.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
            }
            Value::Array(list) => list.iter().map(sorted).collect(),
            value => value.clone(),
        }
    }
    let hash = |value: &Value| -> String {
        let digest = Sha256::digest(sorted(value).to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let (shape_hash, hash) = (hash(shape), hash(message));
    let records = [
        json!({"type":"user","uuid":"u1","message":{"role":"user","content":"a"}}),
        json!({"type":"api-request-shape","shapeHash":shape_hash,"shape":shape}),
        json!({"type":"api-request-blob","hash":hash,"message":message}),
        json!({"type":"api-request","id":"r1","keep":0,"tail":[hash],"shapeHash":shape_hash,"params":{"model":"m"}}),
        json!({"type":"assistant","uuid":"u2","parentUuid":"u1","requestRef":"r1","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"x"}]}}),
    ];
    let of_session = |mut record: Value| {
        record["sessionId"] = "s".into();
        record.to_string()
    };
    records.map(of_session).join("\n")
}

/// What is of no frame is found in the requests.
#[test]
fn no_string_of_a_logged_request_vanishes() {
    let read = |shape: &Value, message: &Value| {
        let text = logged(shape, message);
        let mut transcript = Transcript::new(text.as_bytes()).unwrap();
        transcript.keep_exchanges();
        let mut held: String =
            transcript.by_ref().map(|record| record.unwrap().frame.to_json().to_string()).collect();
        for exchange in transcript.take_exchanges() {
            held += &exchange.request.to_string();
        }
        (held, transcript.report().noted)
    };
    let shape = json!({"system":[{"type":"text","text":"s"}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]});
    let message = json!({"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"T"}]}]});
    let (held, noted) = read(&shape, &message);
    assert!(held.contains(r#""tool_use_id":"c""#), "{held}");
    let (mut shapes, mut messages) = (Vec::new(), Vec::new());
    changed(&shape, "", &mut shapes);
    changed(&message, "", &mut messages);
    let shapes = shapes.into_iter().map(|(what, of)| (what, read(&of, &message)));
    let messages = messages.into_iter().map(|(what, of)| (what, read(&shape, &of)));
    let lost =
        shapes.chain(messages).filter(|(_, (held, now))| !held.contains(NEEDLE) && *now == noted);
    assert_eq!(lost.map(|(what, _)| what).collect::<Vec<_>>(), [""; 0]);
}
