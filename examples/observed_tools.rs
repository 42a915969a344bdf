//! Interception around the tool calls of an MCP-style client: the first context holds what a tool
//! returned, every later one a line in its place and a summary with ages.
//!
//! `cargo run -p afterimage --features toml --example observed_tools`

use std::{fmt::Write, sync::Arc};

use afterimage::{
    Result,
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FrameSeq, Millis},
    json::{self, Value},
    observe::{Moment, Observations, PlannedCall, Policy, Response, ToolCall},
    session::bridge::observed::{Backlog, PayloadReferences, Repeats, reference, summary_op},
    tokens::{Bpe, Memo, TokenCounter},
    veil::{Facet, FacetOp, Frame, History, Source},
};

/// What counts as an observation, and how a summary shows it.
const POLICY: &str = include_str!("policies/spacemolt.toml");

/// What a summary may take, in tokens.
const SUMMARY: usize = 500;

/// A server of tools: what `tools/call` would answer.
struct Server {
    tick: u64,
}

impl Server {
    fn call(&mut self, tool: &str) -> Value {
        self.tick += 1;
        let payload = match tool {
            "login" => "{\"username\":\"Ada\"}".to_owned(),
            "get_map" => {
                let mut systems = String::new();
                for at in 0..400 {
                    let comma = if at > 0 { "," } else { "" };
                    let _ = write!(systems, "{comma}{{\"id\":\"s{at}\",\"name\":\"System {at}\"}}");
                }
                format!("{{\"current_tick\":{},\"systems\":[{systems}]}}", self.tick)
            }
            "travel" => "{\"arriving\":true}".to_owned(),
            _ => format!(
                "{{\"current_tick\":{},\"player\":{{\"username\":\"Ada\",\"credits\":5000}},\
                 \"location\":{{\"system_name\":\"Sol\",\"poi_name\":\"Earth\"}}}}",
                self.tick
            ),
        };
        let text =
            json::Object::from_iter([("type", Value::from("text")), ("text", payload.into())]);
        json::Object::from_iter([("content", Value::Array(vec![text.into()]))]).into()
    }
}

/// The wrapper: every call goes through interception, whatever client makes it.
struct Observed {
    server: Server,
    observations: Observations,
    /// What the model has read in this session.
    repeats: Repeats,
}

impl Observed {
    fn now(&self) -> Moment {
        // A program takes the time from its clock, and the tick from what the server says.
        Moment::at(Millis::new(1_760_000_000_000)).on(self.server.tick)
    }

    fn call(&mut self, tool: &str) -> Result<String> {
        // An agent that asks first can spare the call.
        let freshness =
            self.observations.freshness(&PlannedCall::new("agent-1", tool), self.now())?;
        println!("  {}", freshness.text());
        let answer = self.server.call(tool);
        let response = Response::json(answer);
        let outcome =
            self.observations.intercept(&ToolCall::new("agent-1", tool, &response), self.now())?;
        println!("  {tool}: kept {:?}, stale {:?}", outcome.stored, outcome.stale);
        // A payload that says what the model has read already comes as a line.
        let line = self.repeats.line(&self.observations, &outcome)?;
        Ok(line.unwrap_or_else(|| response.payload().to_string()))
    }
}

fn main() -> Result<()> {
    let counter = Arc::new(Memo::new(Bpe::o200k()));
    let hud = Hud::builder(counter.clone()).format(Arc::new(NativeFormat)).build();
    let observations =
        Observations::in_memory(Policy::from_toml(POLICY)?)?.counted_by(counter.clone());
    let server = Server { tick: 40 };
    let mut tools = Observed { server, observations, repeats: Repeats::new() };
    let mut history = History::new();
    let mut references = PayloadReferences::new();
    // What was shown, and what is shown for the first time.
    let mut backlog: Backlog<FrameSeq> = Backlog::new(SUMMARY);
    let mut fresh: Option<(FrameSeq, u64)> = None;

    for (turn, tool) in
        ["login", "get_map", "get_status", "travel", "get_status", "get_map"].iter().enumerate()
    {
        let at = 2 * turn as u64;
        let id = format!("call-{turn}");
        let call = Facet::tool_call(format!("action-{turn}"), Some(&id), tool, Value::default());
        let now = tools.now().at;
        hud.capture(&mut history, Frame::new(at, Source::Agent).with(FacetOp::add(call)), now)?;

        // What was shown once gives way to a line, as soon as that saves more than it costs.
        let infos = tools.observations.infos("Ada")?;
        let line = |facet: &Facet| {
            infos.iter().find(|info| Some(&*info.tool) == facet.tool_name()).map(reference)
        };
        if let Some((frame, tokens)) = fresh.take() {
            backlog.add(frame, tokens, 40);
        }
        for frame in backlog.due() {
            references.replace(&hud, &history, frame, line, now)?;
        }

        let text = tools.call(tool)?;
        fresh = Some(((at + 1).into(), counter.count(&text) as u64));
        let result = Facet::tool_result(format!("result-{turn}"), Some(&id), Some(tool), text);
        let mut frame = Frame::new(at + 1, Source::Environment).with(FacetOp::add(result));
        if backlog.is_open() {
            let summary = tools.observations.summary_of_agent("agent-1", tools.now(), SUMMARY)?;
            frame = frame.with(summary_op(&summary));
        }
        hud.capture(&mut history, frame, now)?;

        let substitutions = references.substitutions().to_vec();
        let request = RenderRequest { substitutions, ..RenderRequest::default() };
        let context = hud.render(&history, &request, now)?;
        println!("turn {turn}: {} tokens", context.tokens().total);
        if turn == 5 {
            let tail = context.messages().last().map(|message| message.content().into_owned());
            println!("\n{}", tail.unwrap_or_default());
        }
    }
    Ok(())
}
