//! Sessions of Claude Code: one record a line, several records to a message.

use super::{
    chat,
    joining::{Joining, Part},
    parts::{self, Arguments, take_text, with_origin},
    recent::Recent,
    sink::{CompactionRecord, FrameDraft, Sink},
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::Source,
};

/// Of how many records the line, and of how many of sidechains the chain, is remembered.
const RECORDS: usize = 1 << 16;

/// Records that are known and that the model never saw.
const METADATA: [&str; 20] = [
    "summary",
    "progress",
    "attachment",
    "file-history-snapshot",
    "queue-operation",
    "permission-mode",
    "mode",
    "agent-name",
    "custom-title",
    "ai-title",
    "last-prompt",
    "frame-link",
    "pr-link",
    "started",
    "result",
    "relocated",
    "worktree-state",
    "bridge-session",
    "atis-latch",
    "tag",
];

/// Reads the records of a session and of the subagents whose messages stand among its own.
pub(super) struct ClaudeCodeReader {
    /// The name of the session: the first `sessionId` of the file. Others come from a resume.
    name: Option<String>,
    joining: Joining,
    /// The number of the sidechain that a record belongs to, by uuid.
    chains: Recent<u64>,
    sidechains: u64,
    /// The line of a record, by uuid.
    lines: Recent<u64>,
    /// The line of the first message that the last compaction kept, with its session.
    kept: Option<(String, u64)>,
}

impl Default for ClaudeCodeReader {
    fn default() -> Self {
        let (name, joining, sidechains, kept) = Default::default();
        let (chains, lines) = (Recent::new(RECORDS), Recent::new(RECORDS));
        Self { name, joining, chains, sidechains, lines, kept }
    }
}

impl ClaudeCodeReader {
    /// A record that only Claude Code writes.
    pub(super) fn is_line(value: &Value) -> bool {
        let Some(kind) = value.str_at("type") else { return false };
        let is_message = matches!(kind, "user" | "assistant") && value.get("message").is_some();
        is_message || ["sessionId", "uuid", "leafUuid"].iter().any(|key| value.get(key).is_some())
    }

    /// The session of a record: the file's, or that of a subagent.
    fn session_of(&mut self, record: &Object) -> String {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        if let (None, Some(id)) = (&self.name, text("sessionId")) {
            self.name = Some(id.to_owned());
        }
        let name = self.name.as_deref().unwrap_or("1");
        if let Some(agent) = text("agentId") {
            return format!("{name}/{agent}");
        }
        if record.get("isSidechain").and_then(Value::as_bool) != Some(true) {
            return name.to_owned();
        }
        let chain = text("parentUuid").and_then(|parent| self.chains.get(parent));
        let chain = chain.unwrap_or_else(|| {
            self.sidechains += 1;
            self.sidechains
        });
        if let Some(uuid) = text("uuid") {
            self.chains.insert(uuid, chain);
        }
        format!("{name}/sidechain-{chain}")
    }

    fn message(
        &mut self,
        mut record: Object,
        kind: &str,
        session: String,
        line: u64,
        sink: &mut Sink,
    ) {
        let Some(Value::Object(mut message)) = record.shift_remove("message") else { return };
        if message.get("role").and_then(Value::as_str).is_none() {
            message.put("role", kind);
        }
        let id = message
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty())
            .map(str::to_owned);
        let mut draft = chat::message(message, line);
        let flag = |key: &str| record.get(key).and_then(Value::as_bool) == Some(true);
        if flag("isCompactSummary") {
            for facet in
                draft.facets.iter_mut().filter(|facet| facet.facet_type == FacetType::EVENT)
            {
                facet.facet_type = FacetType::SUMMARY;
            }
            let kept = self.kept.take().filter(|(of, _)| *of == session);
            let kept_from = kept.map(|(_, line)| line);
            draft.compacted =
                Some(CompactionRecord { engine: "claude-code", kept_from, summary: None });
        }
        let has_result = draft.facets.iter().any(|facet| facet.facet_type == FacetType::RESULT);
        let part = match id {
            Some(id) if kind == "assistant" => Part::Of(id),
            // What the harness says between the parts of a message follows it, like its results.
            _ if kind == "user" && (has_result || flag("isMeta")) => Part::Between,
            _ => Part::Whole,
        };
        stand_in_for_ids(&mut draft, &record);
        describe(&mut draft, record);
        self.joining.take(session, draft, part, sink);
    }

    /// A boundary says which of the messages before it were kept beside the summary.
    fn boundary(&mut self, record: &Object, session: String) {
        let metadata = record.get("compactMetadata");
        let mut paths = ["/preservedSegment/headUuid", "/preservedMessages/uuids/0"].into_iter();
        let first = paths.find_map(|path| metadata?.pointer(path)?.as_str());
        let line = first.and_then(|uuid| self.lines.get(uuid));
        self.kept = line.map(|line| (session, line));
    }
}

/// The id that the record names stands in where a result has none.
fn stand_in_for_ids(draft: &mut FrameDraft, record: &Object) {
    let Some(id) = record.get("sourceToolUseID").and_then(Value::as_str) else { return };
    for facet in draft.facets.iter_mut().filter(|facet| facet.facet_type == FacetType::RESULT) {
        if facet.is_result() && facet.call_id().is_none() {
            parts::complete_result(facet, Some(id), None, false);
            facet.part_mut().source.id_from = Some("sourceToolUseID".into());
        }
    }
}

/// What the record says of the message: its time and its id, and the rest in the payload. The
/// result in another form (`toolUseResult`) is not kept twice.
fn describe(draft: &mut FrameDraft, mut record: Object) {
    draft.timestamp = take_text(&mut record, "timestamp");
    draft.uuid = take_text(&mut record, "uuid");
    record.shift_remove("toolUseResult");
    if !record.is_empty() {
        draft.payload.put("record", record);
    }
}

/// Calls and results that are records of their own, in old files.
fn bare_block(mut record: Object, kind: &str, line: u64) -> FrameDraft {
    let id = take_text(&mut record, "id").or_else(|| take_text(&mut record, "tool_use_id"));
    let name = take_text(&mut record, "name");
    let (source, facet) = if kind == "tool_use" {
        let arguments = match record.shift_remove("input") {
            None | Some(Value::Null) => Arguments::None,
            Some(input) => Arguments::Json(input),
        };
        (Source::Agent, parts::call(id.as_deref(), &name.unwrap_or_default(), arguments))
    } else {
        let failed = record.get("is_error").and_then(Value::as_bool) == Some(true);
        let result = |text: String| parts::result(id.as_deref(), name.as_deref(), text, failed);
        let facet = match record.shift_remove("output") {
            Some(Value::String(text)) => result(text),
            None | Some(Value::Null) => result(String::new()),
            Some(other) => {
                let mut origin = Object::new();
                origin.put("form", "json");
                with_origin(result(other.to_string()), origin.into())
            }
        };
        (Source::Environment, facet)
    };
    let mut draft = FrameDraft { facets: vec![facet], ..FrameDraft::record(source, line) };
    describe(&mut draft, record);
    draft
}

impl super::Decoder for ClaudeCodeReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Value::Object(record) = value else {
            return sink.unknown(line, format!("{} is no record", value.kind()), value);
        };
        let session = self.session_of(&record);
        if let Some(uuid) = record.get("uuid").and_then(Value::as_str) {
            self.lines.insert(uuid, line);
        }
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let has_message =
            record.get("message").is_some_and(|message| message.as_object().is_some());
        match kind.as_str() {
            "user" | "assistant" if has_message => self.message(record, &kind, session, line, sink),
            "user" | "assistant" => {
                sink.unknown(line, "a message that is no object", record.into());
            }
            "tool_use" | "tool_result" => {
                self.joining.take(session, bare_block(record, &kind, line), Part::Whole, sink);
            }
            "system" => match record.get("subtype").and_then(Value::as_str) {
                Some(subtype) => {
                    if subtype == "compact_boundary" {
                        self.boundary(&record, session);
                    }
                    sink.skip(&format!("system/{subtype}"));
                }
                None => sink.skip("system"),
            },
            kind if METADATA.contains(&kind) => sink.skip(kind),
            "" => sink.unknown(line, "a record without a type", record.into()),
            kind => sink.unknown(line, format!("a record of type {kind}"), record.into()),
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.joining.finish(sink);
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::check;

    #[test]
    fn records_of_one_message_are_joined_and_results_between_them_follow() {
        check(
            "claude-code",
            r#"
{"type":"user","sessionId":"s","uuid":"u1","message":{"role":"user","content":"go"}}
{"type":"assistant","sessionId":"s","uuid":"a1","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}
{"type":"progress","sessionId":"s","uuid":"p1","data":{"message":{"type":"assistant"}}}
{"type":"user","sessionId":"s","uuid":"r1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},"toolUseResult":{"stdout":"x"}}
{"type":"assistant","sessionId":"s","uuid":"a2","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}
{"type":"user","sessionId":"other","uuid":"r2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"y"}]}}
{"type":"assistant","sessionId":"s","uuid":"a3","message":{"id":"n","role":"assistant","content":[]}}"#,
            r#"
s/user*
  event "go"
s/agent*
  action "" {"toolName":"Bash","toolCallId":"t1","parameters":{}}
  action "" {"toolName":"Read","toolCallId":"t2","parameters":{}}
s/user*
  result "x" {"toolName":"Bash","toolCallId":"t1"}
s/user*
  result "y" {"toolName":"Read","toolCallId":"t2"}
s/agent*"#,
        );
    }

    #[test]
    fn a_part_that_comes_after_another_message_is_no_message_of_its_own() {
        check(
            "claude-code",
            r#"
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"a"}}
{"type":"user","sessionId":"s","message":{"content":"b"}}
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"c"}}
{"type":"assistant","sessionId":"s","message":{"id":"m","content":"d"}}
{"type":"assistant","sessionId":"s","message":{"content":"e"}}
{"type":"assistant","sessionId":"s","message":{"content":"f"}}"#,
            r#"
s/agent*
  speech "a"
s/user*
  event "b"
s/agent
  speech "c"
  speech "d"
s/agent*
  speech "e"
s/agent*
  speech "f""#,
        );
    }

    #[test]
    fn sidechains_are_sessions_found_through_the_chain() {
        let report = check(
            "claude-code",
            r#"
{"type":"assistant","sessionId":"s","uuid":"a1","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Task","input":{}}]}}
{"type":"user","sessionId":"s","uuid":"b1","parentUuid":null,"isSidechain":true,"message":{"content":"one"}}
{"type":"user","sessionId":"s","uuid":"c1","parentUuid":"a1","isSidechain":true,"message":{"content":"two"}}
{"type":"progress","sessionId":"s","uuid":"b2","parentUuid":"b1","isSidechain":true}
{"type":"assistant","sessionId":"s","uuid":"b3","parentUuid":"b2","isSidechain":true,"message":{"id":"n","content":"one!"}}
{"type":"assistant","sessionId":"s","uuid":"c2","parentUuid":"c1","isSidechain":true,"message":{"id":"o","content":"two!"}}
{"type":"user","sessionId":"s","uuid":"d1","isSidechain":true,"agentId":"ag","message":{"content":"three"}}
{"type":"assistant","sessionId":"s","uuid":"a2","parentUuid":"a1","message":{"id":"m","content":"more"}}"#,
            r#"
s/sidechain-1/user*
  event "one"
s/sidechain-2/user*
  event "two"
s/ag/user*
  event "three"
s/agent*
  action "" {"toolName":"Task","toolCallId":"t","parameters":{}}
  speech "more"
s/sidechain-1/agent*
  speech "one!"
s/sidechain-2/agent*
  speech "two!""#,
        );
        assert_eq!(report.sessions, 4);
    }

    #[test]
    fn a_summary_stands_in_for_what_was_compacted() {
        let report = check(
            "claude-code",
            r#"
{"type":"user","sessionId":"s","message":{"content":"a"}}
{"type":"system","subtype":"compact_boundary","sessionId":"s","parentUuid":null,"logicalParentUuid":"x"}
{"type":"user","sessionId":"s","isCompactSummary":true,"message":{"content":"so far"}}"#,
            r#"
s/user*
  event "a"
s/user*
  summary "so far""#,
        );
        assert_eq!(format!("{:?}", report.skipped), r#"{"system/compact_boundary": 1}"#);
    }

    #[test]
    fn damaged_records_are_unknown_or_empty_messages() {
        let report = check(
            "claude-code",
            r#"
"massive error"
{"type":"user","uuid":"x","message":"error"}
{"type":"user","uuid":"x","sessionId":"s","message":{"role":"user","contenst":[]}}
{"silly":"this"}
not json
{"type":"user","message":{"content":["wow"]}}
{"type":"novel"}"#,
            r#"
s/environment
  unknown "" "massive error"
s/environment
  unknown "" {"type":"user","uuid":"x","message":"error"}
s/user*
s/environment
  unknown "" {"silly":"this"}
s/environment
  unknown "" "not json"
s/user*
  event "wow"
s/environment
  unknown "" {"type":"novel"}"#,
        );
        assert_eq!(report.sessions, 1);
    }

    #[test]
    fn old_calls_and_results_are_records_that_pair_by_position() {
        check(
            "claude-code",
            r#"
{"type":"user","sessionId":"s","message":{"content":"a"}}
{"type":"tool_use","sessionId":"s","name":"bash","input":{"command":"ls"}}
{"type":"tool_result","sessionId":"s","output":"f\n"}
{"type":"assistant","sessionId":"s","message":{"content":[{"type":"tool_use","name":"cat","input":{}}]}}
{"type":"user","sessionId":"s","sourceToolUseID":"z","message":{"content":[{"type":"tool_result","content":"g"}]}}"#,
            r#"
s/user*
  event "a"
s/agent
  action "" {"toolName":"bash","parameters":{"command":"ls"}}
s/environment
  result "f\n" {"toolName":"bash"}
s/agent*
  action "" {"toolName":"cat","parameters":{}}
s/user*
  result "g" {"toolName":"cat","toolCallId":"z"}"#,
        );
    }
}
