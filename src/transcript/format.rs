use std::fmt;

use super::{
    Api, Decoder, anthropic, atif, bytes, chat, claude_code, claude_web, cline, codex,
    continue_dev, copilot, frames, gemini, goose, har, inspect, kimi, mini_swe_agent, opencode,
    openhands, otlp, pi, qwen_code, responses, swe_agent, tau_bench, toolbench, wire,
};
use crate::json::Value;

/// Declares the formats. A row has: a description, the variant, the name, the signs in words, how a
/// document is recognised, how a line is recognised, the decoder, and what the format implies. The
/// rows are tried in this order.
macro_rules! formats {
    ($(
        #[doc = $description:literal]
        $variant:ident $name:literal by $signs:literal:
            $document:expr, $line:expr, $decoder:expr, $traits:expr;
    )*) => {
        /// A format that transcripts come in. `docs/transcripts.md` describes each.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TranscriptFormat {
            $(#[doc = $description] $variant,)*
        }

        impl TranscriptFormat {
            /// Every format.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, as the command line spells it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What the format is, in one sentence.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description.trim_ascii()),* }
            }

            /// What a file of the format is recognised by, in a few words.
            pub const fn recognised_by(self) -> &'static str {
                match self { $(Self::$variant => $signs),* }
            }

            /// The format of a file that is one JSON value.
            pub(super) fn of_document(value: &Value) -> Option<Self> {
                $(
                    let is: fn(&Value) -> bool = $document;
                    if is(value) { return Some(Self::$variant); }
                )*
                None
            }

            /// The format of a file by line, from one of its records.
            pub(super) fn of_line(value: &Value) -> Option<Self> {
                $(
                    let is: fn(&Value) -> bool = $line;
                    if is(value) { return Some(Self::$variant); }
                )*
                None
            }

            pub(super) fn decoder(self) -> Box<dyn Decoder> {
                match self { $(Self::$variant => Box::new($decoder)),* }
            }

            const fn traits(self) -> Traits {
                match self { $(Self::$variant => $traits),* }
            }
        }
    };
}

/// For formats that do not come as a document, or not by line.
fn never(_: &Value) -> bool {
    false
}

/// What the sources of a format hold.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceContent {
    /// Frames, in which a facet may return.
    Frames,
    /// Requests and answers as they were recorded, by a recorder that may still run.
    Recording,
    /// Requests and answers as they were recorded.
    Requests,
    /// The messages of one request.
    Context,
    /// What a client wrote down of a session.
    Transcript,
}

/// What a format implies of each of its sources.
#[derive(Clone, Copy)]
struct Traits {
    holds: SourceContent,
    /// The form of requests that are worked out from a source, and of its tools.
    api: Api,
    /// The provider, where the API does not tell it, by its name in the conventions of OpenTelemetry.
    provider: Option<&'static str>,
    /// What the requests that its sources log lack of the wire, in words.
    logged_without: Option<&'static str>,
    /// Whether a record may tell that earlier ones are in the context no more.
    may_retract: bool,
    /// Whether a file may hold answers of another file again: forks, resumed sessions.
    may_hold_copies: bool,
    /// Where the records of a file by line may have an id, so that a line which stands in it twice
    /// is one record. Those of Codex have none: the same words may be said twice within a tick of
    /// its clock, and a fork stamps all copies with one time.
    record_ids: &'static [&'static str],
    /// Where a record, or the document, may say which folder the session worked in.
    folder: &'static [&'static str],
}

const TRANSCRIPT: Traits = Traits {
    holds: SourceContent::Transcript,
    api: Api::Chat,
    provider: None,
    logged_without: None,
    may_retract: true,
    may_hold_copies: false,
    record_ids: &[],
    folder: &["/cwd"],
};
const REQUESTS: Traits = Traits { holds: SourceContent::Requests, ..TRANSCRIPT };
/// A transcript that only grows.
const GROWING: Traits = Traits { may_retract: false, ..TRANSCRIPT };

formats! {
    /// Frames of afterimage, as JSONL or in a document.
    Frames "frames" by "records with `sequence` and a list `deltas`, or a list of them in `frames` or `frameHistory`":
        frames::FramesFileReader::is_document, frames::FramesFileReader::is_line, frames::FramesFileReader,
        Traits { holds: SourceContent::Frames, may_hold_copies: true, ..TRANSCRIPT };
    /// Recorded requests and responses of the APIs of models.
    Wire "wire" by "an object with a list `interactions` or `http_interactions`, or lines with `messages` and `response`":
        wire::WireReader::is_document, wire::WireReader::is_log, wire::WireReader::default(),
        REQUESTS;
    /// HTTP archives of browsers and proxies.
    Har "har" by "an object with a list `log.entries`":
        har::HarReader::is_document, never, har::HarReader::default(),
        REQUESTS;
    /// Spans and log records of OpenTelemetry, as OTLP writes them in JSON.
    Otlp "otlp" by "an object, or lines, with a list `resourceSpans` or `resourceLogs`":
        otlp::OtlpReader::is_one, otlp::OtlpReader::is_one, otlp::OtlpReader::default(),
        REQUESTS;
    /// Recordings of `afterimage record`.
    Recording "recording" by "a folder with `wire.rec`":
        never, never, wire::WireReader::default(),
        Traits { holds: SourceContent::Recording, ..TRANSCRIPT };
    /// Trace bundles of Codex.
    CodexTrace "codex-trace" by "a folder with `manifest.json` and `trace.jsonl`":
        never, never, wire::WireReader::default(),
        Traits { api: Api::Responses, ..REQUESTS };
    /// Raw bodies of Claude Code.
    ClaudeBodies "claude-bodies" by "a folder with files `*.request.json` and `*.response.json`":
        never, never, wire::WireReader::default(),
        Traits { api: Api::Messages, ..REQUESTS };
    /// Sessions of Claude Code on the web.
    ClaudeWeb "claude-web" by "an object with a list `loglines`":
        claude_web::ClaudeWebReader::is_document, never, claude_web::ClaudeWebReader::default(),
        Traits { api: Api::Messages, ..TRANSCRIPT };
    /// Rollouts of Codex.
    Codex "codex" by "lines with a `type` and an object `payload`, or a first line with `id`, `timestamp` and no `type`":
        never, codex::CodexReader::is_line, codex::CodexReader::default(),
        Traits { api: Api::Responses, folder: &["/payload/cwd"], ..TRANSCRIPT };
    /// Sessions of pi.
    Pi "pi" by "lines of type `session` with `cwd` and `id`, or of type `message` with an object `message`":
        never, pi::PiReader::is_line, pi::PiReader::default(),
        Traits {
            logged_without: Some("`stream`, `store` and the limit of its output; a summary may be sent as a list of one part, and the level of thinking in another form"),
            may_hold_copies: true,
            record_ids: &["/id"],
            ..TRANSCRIPT
        };
    /// Logs of inspect, the evaluation framework.
    Inspect "inspect" by "an object with `eval` and a list `samples`, or with `eval`, `version` and `plan`":
        inspect::InspectReader::is_document, never, inspect::InspectReader::default(),
        GROWING;
    /// Answers of ToolBench.
    ToolBench "toolbench" by "an object with a list `answer_generation.train_messages`":
        toolbench::ToolBenchReader::is_document, never, toolbench::ToolBenchReader,
        GROWING;
    /// Sessions of Continue.
    Continue "continue" by "an object with `sessionId` and a list `history` of objects with `message`":
        continue_dev::ContinueReader::is_document, never, continue_dev::ContinueReader,
        Traits { folder: &["/workspaceDirectory"], ..TRANSCRIPT };
    /// Trajectories of ATIF, the interchange format of Harbor.
    Atif "atif" by "an object with a list `steps` and a `schema_version` that begins with `ATIF`":
        atif::AtifReader::is_document, never, atif::AtifReader::default(),
        Traits { may_hold_copies: true, ..GROWING };
    /// Trajectories of SWE-agent.
    SweAgent "swe-agent" by "an object with a list `history` of messages":
        swe_agent::SweAgentReader::is_document, never, swe_agent::SweAgentReader,
        GROWING;
    /// Exports of OpenCode.
    OpenCode "opencode" by "an object with a list `messages` of objects with `info` and a list `parts`":
        opencode::OpenCodeReader::is_document, opencode::OpenCodeReader::is_document, opencode::OpenCodeReader,
        Traits { folder: &["/info/directory"], ..TRANSCRIPT };
    /// Trajectories of mini-swe-agent.
    MiniSweAgent "mini-swe-agent" by "an object with a list `messages`, and with `trajectory_format` or `info`":
        mini_swe_agent::MiniSweAgentReader::is_document, never, mini_swe_agent::MiniSweAgentReader,
        GROWING;
    /// Sessions of the Gemini CLI.
    Gemini "gemini" by "`messages` beside `projectHash`, `sessionId` beside `projectHash`, or messages of type `gemini`":
        gemini::GeminiReader::is_document, gemini::GeminiReader::is_line, gemini::GeminiReader::default(),
        Traits { provider: Some("gcp.gemini"), ..TRANSCRIPT };
    /// Sessions of Cline.
    Cline "cline" by "messages with `modelInfo` or `metrics`, or beside `system_prompt`":
        cline::ClineReader::is_document, never, cline::ClineReader,
        TRANSCRIPT;
    /// Results of tau-bench.
    TauBench "tau-bench" by "a list of objects with a list `traj`":
        tau_bench::TauBenchReader::is_document, never, tau_bench::TauBenchReader::default(),
        GROWING;
    /// Events of OpenHands, and the output of its resolver.
    OpenHands "openhands" by "a list of events with `source`, or lines with a list `history` and an `instruction`":
        openhands::OpenHandsReader::is_document, openhands::OpenHandsReader::is_line, openhands::OpenHandsReader::default(),
        GROWING;
    /// Events of the Copilot CLI.
    Copilot "copilot" by "lines with an object `data` and a dotted `type`, for example `session.start`":
        never, copilot::CopilotReader::is_line, copilot::CopilotReader::default(),
        Traits { folder: &["/data/cwd", "/data/context/cwd"], ..TRANSCRIPT };
    /// Wire logs of the Kimi CLI.
    Kimi "kimi" by "lines of type `metadata` with `protocol_version`, or of a type that begins `context.append_`":
        never, kimi::KimiReader::is_line, kimi::KimiReader::default(),
        Traits {
            // A result names the call that it answers.
            record_ids: &["/event/uuid", "/event/parentUuid", "/message/id"],
            provider: Some("moonshot_ai"),
            logged_without: Some("`stream`, `prompt_cache_key` and the limit of its output"),
            ..TRANSCRIPT
        };
    /// Sessions of Qwen Code.
    QwenCode "qwen-code" by "lines with `uuid` and `sessionId`, and with a list `message.parts`, `systemPayload` or `provenance`":
        never, qwen_code::QwenCodeReader::is_line, qwen_code::QwenCodeReader::default(),
        Traits { may_hold_copies: true, record_ids: &["/uuid"], ..TRANSCRIPT };
    /// Sessions of Claude Code.
    ClaudeCode "claude-code" by "lines of type `user` or `assistant` with `message`, or with `sessionId`, `uuid` or `leafUuid`":
        never, claude_code::ClaudeCodeReader::is_line, claude_code::ClaudeCodeReader::default(),
        Traits {
            api: Api::Messages,
            logged_without: Some("the line of billing in its system prompt, `metadata`, `stream`"),
            may_hold_copies: true,
            record_ids: &["/uuid"],
            ..TRANSCRIPT
        };
    /// Sessions of goose.
    Goose "goose" by "lines of messages with a number `created` and a list `content`, or an object with `working_dir` and such a list `conversation`":
        goose::GooseReader::is_document, goose::GooseReader::is_line, goose::GooseReader::default(),
        Traits { folder: &["/working_dir"], ..TRANSCRIPT };
    /// Items of the Responses API.
    Responses "openai-responses" by "a list of items, or an object with items in `input` or `output`":
        responses::ResponsesReader::is_document, responses::ResponsesReader::is_line, responses::ResponsesReader::default(),
        Traits { holds: SourceContent::Context, api: Api::Responses, ..TRANSCRIPT };
    /// Requests and message lists of Anthropic's Messages API.
    Anthropic "anthropic" by "messages with a `role`, beside `system` or with blocks that only this API has":
        anthropic::AnthropicReader::is_document, anthropic::AnthropicReader::is_line, anthropic::AnthropicReader::default(),
        Traits { holds: SourceContent::Context, api: Api::Messages, ..TRANSCRIPT };
    /// Chat lists of OpenAI and its relatives.
    Chat "openai-chat" by "messages with a `role`, in a list, in `messages` or by line":
        chat::ChatReader::is_document, chat::ChatReader::is_line, chat::ChatReader::default(),
        Traits { holds: SourceContent::Context, ..TRANSCRIPT };
}

impl TranscriptFormat {
    /// What its sources hold.
    pub const fn holds(self) -> SourceContent {
        self.traits().holds
    }

    /// Whether its sources are recorded requests.
    pub const fn holds_requests(self) -> bool {
        matches!(self.holds(), SourceContent::Requests | SourceContent::Recording)
    }

    /// Whether a file may hold answers of another file again, as forks and resumed sessions do.
    pub const fn may_hold_copies(self) -> bool {
        self.traits().may_hold_copies
    }

    /// What the requests that its sources log lack of what went over the wire, in words.
    pub const fn logged_without(self) -> Option<&'static str> {
        self.traits().logged_without
    }

    /// Whether a record may tell that earlier ones are in the context no more.
    pub(crate) const fn may_retract(self) -> bool {
        self.traits().may_retract
    }

    /// The form of requests that are worked out from its sources, and of its tools.
    pub(crate) const fn api(self) -> Api {
        self.traits().api
    }

    /// The provider, where the API does not tell it, by its name in the conventions of OpenTelemetry.
    pub(crate) const fn provider(self) -> Option<&'static str> {
        self.traits().provider
    }

    pub(super) const fn record_ids(self) -> &'static [&'static str] {
        self.traits().record_ids
    }

    /// The folder that a session worked in, where this record, or its document, says it.
    pub(super) fn stated_folder(self, record: &Value) -> Option<String> {
        let stated = self.traits().folder.iter().find_map(|at| record.pointer(at)?.as_str())?;
        // Editors state a URI, in which a slash stands before the drive of Windows.
        let uri = stated.strip_prefix("file://").filter(|path| path.starts_with('/'));
        let path = uri.map_or_else(|| stated.to_owned(), bytes::of_percent);
        let of_drive = path.strip_prefix('/').filter(|path| path.get(1..2) == Some(":"));
        Some(of_drive.map_or_else(|| path.clone(), str::to_owned))
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }
}

impl fmt::Display for TranscriptFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
