//! Sessions of Claude Code: one record a line, several records to a message.

use std::collections::BTreeMap;

use super::{
    LimitWindow, answer, attachments,
    branches::{Branches, Parent},
    chat,
    claude_costs::ClaudeCosts,
    claude_requests::LoggedRequests,
    draft::{CompactionRecord, FrameDraft, Replaced},
    joining::{Joining, Part},
    parts::{self, Arguments, with_origin},
    recent::Recent,
    sink::{REPEATED, Sink, is_identity},
    starts::Starts,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, ModelAnswer, Source},
};

/// How many records with results are remembered.
const RECORDS: usize = 1 << 16;

/// Marks what the client says in the place of an answer, where the request failed.
const API_ERROR: &str = "isApiErrorMessage";

/// Records that are known and that no frame holds.
const METADATA: [&str; 20] = [
    "summary",
    "progress",
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
    "tools-used",
];

/// Reads the records of a session and of the subagents whose messages stand among its own.
#[derive(Default)]
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
    /// The branches of the file's own session.
    branches: Branches,
    /// The id of the answer that they are at: its records are one message.
    answer: Option<String>,
    starts: Starts,
    /// What was said, by session, id and parent of the record.
    said: Recent<()>,
    /// The records that hold results, by line, without their texts where they hold nothing else; and
    /// the line of each result, by session and id of the call.
    results: BTreeMap<u64, Vec<Facet>>,
    answered: Recent<u64>,
    /// Sessions, and lines in them, where the client says that a request failed: words that it shows
    /// alone.
    failed: Vec<(String, u64)>,
    requests: LoggedRequests,
    costs: ClaudeCosts,
}

/// The id of a call, and what is read in the place of its result; nothing where it is cleared.
type EditedResult = (String, Option<String>);

impl ClaudeCodeReader {
    /// A record that only Claude Code writes.
    pub(super) fn is_line(value: &Value) -> bool {
        let Some(kind) = value.str_at("type") else { return false };
        let is_message = matches!(kind, "user" | "assistant") && value.get("message").is_some();
        is_message || ["sessionId", "uuid", "leafUuid"].iter().any(|key| value.get(key).is_some())
    }

    /// The session of a record: the file's, or that of a subagent.
    fn session_of(&mut self, record: &Object) -> String {
        let text = |key: &str| record.str_at(key);
        if let (None, Some(id)) = (&self.name, text("sessionId")) {
            self.name = Some(id.to_owned());
        }
        let name = self.name.as_deref().unwrap_or("1");
        if let Some(agent) = text("agentId") {
            return format!("{name}/{agent}");
        }
        if !is_marked(record, "isSidechain") {
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
        if kind == "assistant" {
            if let Some(draft) = self.requests.begins(&record, &session, sink) {
                self.joining.begin_with(&session, draft, sink);
            }
            self.requests.answer(&record, &session, line);
        }
        let Some(Value::Object(mut message)) = record.shift_remove("message") else { return };
        take::default_role(&mut message, kind);
        let id = message.str_at("id").filter(|id| !id.is_empty()).map(str::to_owned);
        let mut draft = chat::message(message, line);
        stand_in_for_ids(&mut draft, &record);
        if is_marked(&record, "isCompactSummary") {
            self.summarise(&mut draft, &session);
        }
        let has_result = draft.facets.iter().any(|facet| facet.facet_type == FacetType::RESULT);
        let role = match kind {
            "assistant" => Role::Answer(id),
            _ if has_result => Role::Result,
            _ if is_marked(&record, "isMeta") => Role::Other,
            _ => Role::Prompt,
        };
        // Versions that say so write down what was sent with a prompt behind it.
        let is_led = matches!(role, Role::Prompt) && record.contains_key("rowSource");
        // What the harness says in the user's place is none of the user's words.
        let is_in_place = matches!(role, Role::Prompt | Role::Other);
        if is_in_place && (!attachments::is_users(&record) || is_of_harness(&draft)) {
            draft.source = Source::Environment;
        }
        if matches!(role, Role::Answer(_)) {
            self.starts.calls(&draft, record.str_at("uuid"), &session);
        }
        if sink.keeps_exchanges() && !matches!(role, Role::Answer(_)) {
            self.note(&draft, &session, line);
        }
        if self.name.as_deref() != Some(&*session) {
            draft.started = self.starts.of_first(&draft, &record, &session);
        }
        if has_result {
            self.remember(&draft, &session, line);
        }
        let part = if is_led { Part::Led } else { role.part() };
        draft.outside = self.place(&record, role, &session, line, sink);
        let is_copy = kind == "assistant" && self.requests.is_copy(&record, line);
        if is_marked(&record, API_ERROR) {
            self.failed.push((session.clone(), line));
        } else {
            self.leave_failed(&mut draft, &session, sink);
        }
        describe(&mut draft, record);
        if is_copy {
            draft.add_answer(ModelAnswer { copied: Some(CopyOf::default()), ..Default::default() });
        }
        if kind == "assistant" {
            self.costs.add_answer(&draft, &session);
        }
        self.joining.take(session, draft, part, sink);
    }

    /// What the client said of failed requests is in no context from here on.
    fn leave_failed(&mut self, draft: &mut FrameDraft, session: &str, sink: &mut Sink) {
        for (_, at) in self.failed.extract_if(.., |(of, _)| of == session) {
            // All that came before has its frame then.
            self.joining.end(session, sink);
            draft.edits.extend(sink.frame_at(session, at).map(|frame| (frame, Vec::new())));
        }
    }

    /// Makes a message the summary of a compaction: of what the boundary before it did not keep.
    fn summarise(&mut self, draft: &mut FrameDraft, session: &str) {
        for facet in &mut draft.facets {
            if facet.facet_type == FacetType::EVENT {
                facet.facet_type = FacetType::SUMMARY;
            }
        }
        let kept = self.kept.take().filter(|(of, _)| of == session);
        let replaced = kept.map_or(Replaced::All, |(_, line)| Replaced::BeforeLine(line));
        draft.compacted =
            Some(CompactionRecord { replaced, ..CompactionRecord::of("claude-code") });
    }

    /// Takes note of where a record of the file's own session stands. Gives the frames that are
    /// outside of the context from it on, where it goes on from an earlier record.
    fn place(
        &mut self,
        record: &Object,
        role: Role,
        session: &str,
        line: u64,
        sink: &mut Sink,
    ) -> Option<Vec<(u64, u64)>> {
        if self.name.as_deref().unwrap_or("1") != session {
            return None;
        }
        let text = |key: &str| record.str_at(key);
        let (id, parent) = (text("uuid"), Parent::from(text("parentUuid")));
        let taken = match role {
            Role::Answer(message) => {
                let is_new = message.is_none() || message != self.answer;
                self.answer = message;
                self.branches.follow(id, line, is_new);
                return None;
            }
            Role::Result => {
                self.branches.follow(id, line, false);
                return None;
            }
            Role::Other => {
                self.branches.pass(id, parent, line);
                return None;
            }
            Role::Prompt => self.branches.take(id, parent, line),
        };
        let begun = taken.and_then(|fork| {
            let Some(fork) = fork else { return Ok(None) };
            // All that came before has its frame then.
            self.joining.end(session, sink);
            sink.begin_branch(session, &mut self.branches, fork)
        });
        begun.unwrap_or_else(|wrong| {
            sink.note(line, wrong);
            None
        })
    }

    /// A boundary says which of the messages before it were kept beside the summary.
    fn boundary(&mut self, record: &Object, session: String) {
        let metadata = record.get("compactMetadata");
        let mut paths = ["/preservedSegment/headUuid", "/preservedMessages/uuids/0"].into_iter();
        let first = paths.find_map(|path| metadata?.pointer(path)?.as_str());
        let line = first.and_then(|uuid| self.lines.get(uuid));
        self.kept = line.map(|line| (session, line));
    }

    /// Whether the message of this record stood in the session before, under the same id and parent.
    fn is_repeated(&mut self, record: &Object, session: &str) -> bool {
        let id = record.str_at("uuid").filter(|id| is_identity(id));
        let Some((id, message)) = id.zip(record.get("message")) else { return false };
        let parent = record.str_at("parentUuid").unwrap_or_default();
        let said = format!("{session}\0{id}\0{parent}\0{message}");
        let is_known = self.said.get(&said).is_some();
        self.said.insert(&said, ());
        is_known
    }

    /// Takes note of what a record says, by which it is found in requests.
    fn note(&mut self, draft: &FrameDraft, session: &str, line: u64) {
        for facet in &draft.facets {
            self.requests.note(session, facet.call_id().unwrap_or(&facet.content), line);
        }
    }

    /// Remembers a record with results, which the client may clear later.
    fn remember(&mut self, draft: &FrameDraft, session: &str, line: u64) {
        let facets = match draft.facets.as_slice() {
            [only] => vec![parts::result(only.call_id(), None, "", only.outcome())],
            facets => facets.to_vec(),
        };
        for id in facets.iter().filter_map(Facet::call_id) {
            self.answered.insert(&format!("{session}\0{id}"), line);
        }
        self.results.insert(line, facets);
        if self.results.len() > RECORDS {
            self.results.pop_first();
        }
    }

    /// Takes a boundary from which on results are cleared, and attachments are not sent any more.
    fn clear(&mut self, record: Object, session: String, line: u64, sink: &mut Sink) {
        let metadata = record.get("microcompactMetadata");
        let ids = |key: &str| -> Vec<String> {
            let list = metadata.and_then(|metadata| metadata.get(key)?.as_array());
            let list = list.unwrap_or_default().iter().filter_map(Value::as_str);
            list.map(str::to_owned).collect()
        };
        let results = ids("compactedToolIds").into_iter().map(|id| (id, None)).collect();
        let attachments = ids("clearedAttachmentUUIDs");
        self.edit(("clears", results, attachments), record, session, line, sink);
    }

    /// Takes the texts that are sent in the place of large results.
    fn replace(&mut self, mut record: Object, session: String, line: u64, sink: &mut Sink) {
        let mut results = Vec::new();
        for of in take::list(&mut record, "replacements").unwrap_or_default() {
            match (of.str_at("toolUseId"), of.str_at("replacement")) {
                (Some(id), Some(text)) => results.push((id.to_owned(), Some(text.to_owned()))),
                _ => sink.unknown(line, "a replacement of no result", of),
            }
        }
        self.edit(("replaces", results, Vec::new()), record, session, line, sink);
    }

    /// Gives out what is read from here on of results, by the ids of their calls, and that attachments
    /// are not read any more.
    fn edit(
        &mut self,
        (verb, results, attachments): (&str, Vec<EditedResult>, Vec<String>),
        record: Object,
        session: String,
        line: u64,
        sink: &mut Sink,
    ) {
        // All that came before has its frame then.
        self.joining.end(&session, sink);
        let (mut edits, mut missing) = (BTreeMap::new(), 0);
        for (id, text) in results {
            let at = self.answered.get(&format!("{session}\0{id}"));
            let found = at.and_then(|at| Some((sink.frame_at(&session, at)?, at)));
            let found = found.and_then(|(frame, at)| Some((frame, self.results.get_mut(&at)?)));
            let Some((frame, facets)) = found else {
                missing += 1;
                continue;
            };
            for facet in facets.iter_mut().filter(|facet| facet.call_id() == Some(&*id)) {
                parts::replace(facet, text.as_deref().unwrap_or(parts::CLEARED));
            }
            edits.insert(frame, facets.clone());
        }
        for id in attachments {
            match self.lines.get(&id).and_then(|at| sink.frame_at(&session, at)) {
                Some(frame) => drop(edits.insert(frame, Vec::new())),
                None => missing += 1,
            }
        }
        if missing > 0 {
            sink.note(
                line,
                &format!("{verb} {missing} of the results that the file does not hold"),
            );
        }
        if edits.is_empty() {
            let kind = record.str_at("type").unwrap_or_default();
            let subtype = record.str_at("subtype").map(|subtype| format!("/{subtype}"));
            return sink.skip(&format!("{kind}{}", subtype.unwrap_or_default()));
        }
        let timestamp = record.str_at("timestamp").map(str::to_owned);
        let edits = edits.into_iter().collect();
        let draft = FrameDraft { edits, ..FrameDraft::of_record(line, timestamp, record) };
        self.joining.take(session, draft, Part::Whole, sink);
    }
}

/// What the harness writes in the user's place, from end to end.
const OF_HARNESS: [(&str, &str); 7] = [
    ("<system-reminder>", "</system-reminder>"),
    ("<local-command-caveat>", "</local-command-caveat>"),
    ("<local-command-stdout>", "</local-command-stdout>"),
    ("<local-command-stderr>", "</local-command-stderr>"),
    ("<bash-stdout>", "</bash-stderr>"),
    ("<task-notification>", "</task-notification>"),
    ("[Request interrupted by user", "]"),
];

/// Whether a message holds nothing but what the harness writes.
fn is_of_harness(draft: &FrameDraft) -> bool {
    let is_whole = |facet: &Facet| {
        let text = facet.content.trim();
        OF_HARNESS.iter().any(|(start, end)| {
            let inside = text.strip_prefix(start).and_then(|text| text.strip_suffix(end));
            inside.is_some_and(|inside| !inside.contains(end))
        })
    };
    !draft.facets.is_empty() && draft.facets.iter().all(is_whole)
}

/// What a record is in the tree of records.
enum Role {
    /// A part of the answer with this id.
    Answer(Option<String>),
    /// The result of a call.
    Result,
    /// What the user said: the one place where a session goes on from an earlier record.
    Prompt,
    /// What the harness wrote.
    Other,
}

impl Role {
    /// How a record joins the messages beside it. What the harness says between the parts of an
    /// answer follows it, like its results.
    fn part(&self) -> Part {
        match self {
            Self::Answer(Some(id)) => Part::Of(id.clone()),
            Self::Answer(None) | Self::Prompt => Part::Whole,
            Self::Result | Self::Other => Part::Between,
        }
    }
}

fn is_marked(record: &Object, key: &str) -> bool {
    record.get(key).and_then(Value::as_bool) == Some(true)
}

/// The id that the record names stands in where a result has none.
fn stand_in_for_ids(draft: &mut FrameDraft, record: &Object) {
    let Some(id) = record.str_at("sourceToolUseID") else { return };
    for facet in draft.facets.iter_mut().filter(|facet| facet.facet_type == FacetType::RESULT) {
        if facet.is_result() && facet.call_id().is_none() {
            parts::complete_result(facet, Some(id), None, CallOutcome::Unstated);
            facet.part_mut().source.id_from = Some("sourceToolUseID".into());
        }
    }
}

/// What the record says of the message: its time and its id, and the rest in the payload. The
/// result in another form (`toolUseResult`) is not kept twice.
fn describe(draft: &mut FrameDraft, mut record: Object) {
    draft.timestamp = take::text(&mut record, "timestamp");
    draft.uuid = take::text(&mut record, "uuid");
    if let (Some(answer), true) = (&mut draft.answer, is_marked(&record, API_ERROR)) {
        answer.stop = Some("error".into());
    }
    draft.add_answer(ModelAnswer {
        request: record.str_at("requestId").map(Box::from),
        copied: answer::copied(&record),
        ..ModelAnswer::default()
    });
    if let (Some(told), [facet]) = (record.shift_remove("toolUseResult"), &mut *draft.facets) {
        parts::complete_result(facet, None, None, outcome_told(&told, facet));
    }
    if !record.is_empty() {
        draft.payload.put("record", record);
    }
}

/// What the client notes of a call for itself: that the user refused or interrupted it.
fn outcome_told(told: &Value, facet: &Facet) -> CallOutcome {
    match told {
        Value::String(text) => facet.outcome().said_as(text),
        told if told.get("interrupted").and_then(Value::as_bool) == Some(true) => {
            CallOutcome::Cancelled
        }
        _ => CallOutcome::Unstated,
    }
}

/// Calls and results that are records of their own, in old files.
fn bare_block(mut record: Object, kind: &str, line: u64) -> FrameDraft {
    let id = take::text(&mut record, "id").or_else(|| take::text(&mut record, "tool_use_id"));
    let name = take::text(&mut record, "name");
    let (source, facet) = if kind == "tool_use" {
        let arguments = match record.shift_remove("input") {
            None | Some(Value::Null) => Arguments::None,
            Some(input) => Arguments::Json(input),
        };
        (Source::Agent, parts::call(id.as_deref(), &name.unwrap_or_default(), arguments))
    } else {
        let stated = CallOutcome::of_error_mark(record.get("is_error"));
        let result = |text: String| parts::result(id.as_deref(), name.as_deref(), text, stated);
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
        let Value::Object(mut record) = value else {
            return sink.unknown(line, format!("{} is no record", value.kind()), value);
        };
        let session = self.session_of(&record);
        if self.is_repeated(&record, &session) {
            return sink.skip(REPEATED);
        }
        if let Some(uuid) = record.str_at("uuid") {
            self.lines.insert(uuid, line);
        }
        let kind = record.str_at("type").unwrap_or_default().to_owned();
        let has_message =
            record.get("message").is_some_and(|message| message.as_object().is_some());
        self.costs.note_resumption(&record, &session);
        if self.starts.read_start(&record, &session) {
            self.costs.note_subagent();
        }
        if !(has_message && matches!(kind.as_str(), "user" | "assistant")) {
            self.place(&record, Role::Other, &session, line, sink);
        }
        match kind.as_str() {
            "api-request-shape" | "api-request-blob" | "api-request" => {
                sink.skip(&kind);
                match kind.as_str() {
                    "api-request-shape" => self.requests.shape(record, line, sink),
                    "api-request-blob" => self.requests.blob(record, &session, line, sink),
                    _ => self.requests.request(record, &session, line, sink),
                }
            }
            "user" | "assistant" if has_message => self.message(record, &kind, session, line, sink),
            "user" | "assistant" => {
                sink.unknown(line, "a message that is no object", record.into());
            }
            "tool_use" | "tool_result" => {
                self.joining.take(session, bare_block(record, &kind, line), Part::Whole, sink);
            }
            "system" => match record.str_at("subtype") {
                Some("microcompact_boundary") => self.clear(record, session, line, sink),
                // What a command of the client printed is sent with the next prompt.
                Some("local_command") if record.str_at("content").is_some() => {
                    let text = take::text(&mut record, "content").unwrap_or_default();
                    let mut draft = FrameDraft::record(Source::Environment, line);
                    draft.facets.push(parts::text(FacetType::EVENT, text));
                    if sink.keeps_exchanges() {
                        self.note(&draft, &session, line);
                    }
                    describe(&mut draft, record);
                    self.joining.take(session, draft, Part::Between, sink);
                }
                Some(subtype) => {
                    match subtype {
                        "compact_boundary" => {
                            let call = self.requests.compacted(&record, line);
                            self.costs.add_compaction(&session, call);
                            self.boundary(&record, session);
                        }
                        "api_error" => self.requests.failed(&record, &session),
                        _ => {}
                    }
                    let limit = record.get("error").and_then(LimitWindow::of_claude);
                    limit.iter().for_each(|window| sink.limit(window));
                    sink.skip(&format!("system/{subtype}"));
                }
                None => sink.skip("system"),
            },
            "attachment" => match attachments::draft(&mut record, line) {
                Ok(mut draft) => {
                    if sink.keeps_exchanges() {
                        self.note(&draft, &session, line);
                        // A request has the text in one.
                        let text: String =
                            draft.facets.iter().map(|facet| &*facet.content).collect();
                        self.requests.note(&session, &text, line);
                    }
                    let is_sent = record.contains_key("renderedRole");
                    describe(&mut draft, record);
                    let part = if is_sent { Part::Before } else { Part::Between };
                    self.joining.take(session, draft, part, sink);
                }
                Err(kind) if kind.is_empty() => sink.skip("attachment"),
                Err(kind) => sink.skip(&format!("attachment/{kind}")),
            },
            "content-replacement" => self.replace(record, session, line, sink),
            "cost-state" => {
                self.costs.read_statement(&record, &session, line, sink);
                sink.skip(&kind);
            }
            kind if METADATA.contains(&kind) => sink.skip(kind),
            "" => sink.unknown(line, "a record without a type", record.into()),
            kind => sink.unknown(line, format!("a record of type {kind}"), record.into()),
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.joining.finish(sink);
        self.requests.give(true, sink);
    }

    fn end(&mut self, sink: &mut Sink) {
        self.costs.finish(sink);
    }
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
