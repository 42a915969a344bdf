//! What a session does, as spans of `tracing`, by the names of OpenTelemetry's conventions for
//! generative AI.

use std::collections::HashMap;

use tracing::{
    Span,
    field::{Empty, debug},
    info, info_span,
};

use super::{Model, Receipt, SessionAnswer, ToolCall};
use crate::{
    Result,
    veil::{AnswerId, CallOutcome, History},
    window::ContextWindow,
};

/// The spans of a session that are open. They last as long as the process at most.
#[derive(Debug, Default)]
pub(super) struct Spans {
    /// The span of the request that waits for its answer.
    chat: Option<Span>,
    /// The spans of the calls of the last answer, by their ids.
    tools: HashMap<String, Span>,
}

impl Spans {
    /// A request was made: begins its span. The span of a request that was never answered ends.
    pub(super) fn asked(
        &mut self,
        model: &Model,
        receipt: &Receipt,
        window: Option<&ContextWindow>,
        conversation: Option<&str>,
    ) {
        let span = info_span!(
            target: "afterimage", "chat",
            otel.name = format_args!("chat {}", model.name),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = model.api.provider(),
            gen_ai.conversation.id = conversation,
            gen_ai.request.model = model.name,
            gen_ai.request.max_tokens = model.output,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            error.type = Empty,
        );
        let made = receipt.epoch.as_ref().map(|epoch| &*epoch.blocks).unwrap_or_default();
        if let (Some(window), false) = (window, made.is_empty()) {
            let blocks = window.transform().blocks().filter(|block| made.contains(&block.id));
            let (before, after) = blocks.fold((0, 0), |(before, after), block| {
                (before + block.original_tokens, after + block.tokens)
            });
            info!(
                name: "compression", target: "afterimage", parent: &span,
                blocks = made.len(), tokens.before = before, tokens.after = after, "compressed",
            );
        }
        self.chat = Some(span);
    }

    /// An answer came, or was refused: ends the span of its request, and begins one for each call.
    pub(super) fn answered(&mut self, answer: &Result<SessionAnswer>, history: &History) {
        let Some(span) = self.chat.take() else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                span.record("error.type", debug(error.kind()));
                return;
            }
        };
        let mut frames = answer.frames.iter().filter_map(|frame| history.get(*frame));
        if let Some(said) = frames.find_map(|frame| frame.imported.clone()?.answer) {
            span.record("gen_ai.response.model", said.model.as_deref());
            if let Some(AnswerId::Response(id)) = &said.id {
                span.record("gen_ai.response.id", &**id);
            }
        }
        if let Some(stop) = &answer.stop {
            span.record("gen_ai.response.finish_reasons", debug([stop]));
        }
        if let Some(usage) = &answer.usage {
            span.record("gen_ai.usage.input_tokens", usage.input);
            span.record("gen_ai.usage.output_tokens", usage.output);
            span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
            span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_write);
        }
        let tool = |call: &ToolCall| (call.id.clone(), tool_span(&call.name, &call.id));
        self.tools = answer.calls.iter().map(tool).collect();
    }

    /// A result came: ends the span of its call. The span of a call that another process was given
    /// begins here too.
    pub(super) fn ran(&mut self, name: &str, call: &str, outcome: CallOutcome) {
        let span = self.tools.remove(call).unwrap_or_else(|| tool_span(name, call));
        if outcome == CallOutcome::Failed {
            span.record("error.type", "tool_error");
        }
    }
}

fn tool_span(name: &str, call: &str) -> Span {
    info_span!(
        target: "afterimage", "execute_tool",
        otel.name = format_args!("execute_tool {name}"),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = call,
        error.type = Empty,
    )
}
