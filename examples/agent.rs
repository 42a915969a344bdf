//! An agent that outlives its process: tools, a budget, summaries, Anthropic or OpenAI.
//!
//! `cargo run -p afterimage --features storage --example agent [anthropic|openai|responses]`: kill it,
//! run it again, and it goes on where it was. Its memory is the folder `agent` where it is started. The
//! model is scripted: a real one is sent `request.body`, and answers with the body of its response.

use afterimage::{
    Result, json,
    session::{Awaits, JournalStore, Model, Session, Tool, ToolCall},
    transcript::Api,
    veil::Source,
};

/// How many questions the user has.
const QUESTIONS: usize = 40;

fn main() -> Result<()> {
    let model = match std::env::args().nth(1).as_deref() {
        Some("openai") => Model::chat("gpt-5.2", 4_000),
        Some("responses") => Model::responses("gpt-5.2", 4_000),
        _ => Model::anthropic("claude-sonnet-4-6", 4_000),
    };
    let schema = json::read(br#"{"type": "object", "properties": {"day": {"type": "integer"}}}"#)?;
    let mut session = Session::open(JournalStore::open("agent")?)?;
    session.system("You are a harbour pilot. Be brief.")?;
    session.tools([Tool::new("tide", "When high water is.", schema)])?;
    loop {
        match session.awaits() {
            Awaits::Answer => {
                let request = session.request(&model)?;
                let answer = session.answer(ask(model.api, &request.body))?;
                let receipt = request.receipt;
                let (turn, total) = (receipt.turn, receipt.total);
                let cached = receipt.change.map_or(0, |change| change.prefix.cached);
                println!("turn {turn}: {total} tokens, {cached} cached, {} blocks", receipt.blocks);
                println!("{}", answer.text);
            }
            Awaits::Results(calls) => {
                for call in calls {
                    session.tool_result(&call.id, run(&call))?;
                }
            }
            Awaits::User => match question(&session) {
                Some(question) => session.user(question)?,
                None => return Ok(()),
            },
        }
    }
}

/// What the user asks next.
fn question(session: &Session) -> Option<String> {
    let frames = session.history().frames();
    let asked = (0..frames.len()).filter(|at| frames.source(*at) == Some(Source::User)).count();
    (asked < QUESTIONS).then(|| format!("When must I leave on day {}?", asked + 1))
}

/// The tool.
fn run(call: &ToolCall) -> String {
    let day = call.arguments.get("day").and_then(json::Value::as_u64).unwrap_or_default();
    let reading = format!("High water on day {day} is at {:02}:20, 3.1 m. ", 6 + day % 12);
    reading.repeat(8)
}

/// A model that knows its lines, in the place of a call to a provider: it asks for the tide, and then
/// says what that is.
fn ask(api: Api, body: &str) -> String {
    let is_told = body.rfind("High water on day ") > body.rfind("When must I leave");
    let day = body.rsplit("leave on day ").next().and_then(|rest| rest.split('?').next());
    let day = day.and_then(|day| day.parse::<u64>().ok()).unwrap_or_default();
    let text = format!("Leave at {:02}:00 on day {day}.", 5 + day % 12);
    match (api, is_told) {
        (Api::Messages, true) => {
            format!(r#"{{"content": [{{"type": "text", "text": "{text}"}}]}}"#)
        }
        (Api::Messages, false) => format!(
            r#"{{"content": [{{"type": "tool_use", "id": "t{day}", "name": "tide", "input": {{"day": {day}}}}}]}}"#
        ),
        (Api::Responses, true) => format!(
            r#"{{"output": [{{"type": "message", "role": "assistant", "content": [{{"type": "output_text", "text": "{text}"}}]}}]}}"#
        ),
        (Api::Responses, false) => format!(
            r#"{{"output": [{{"type": "function_call", "call_id": "t{day}", "name": "tide", "arguments": "{{\"day\": {day}}}"}}]}}"#
        ),
        (_, true) => format!(r#"{{"choices": [{{"message": {{"content": "{text}"}}}}]}}"#),
        (_, false) => format!(
            r#"{{"choices": [{{"message": {{"content": null, "tool_calls": [{{"id": "t{day}", "type": "function", "function": {{"name": "tide", "arguments": "{{\"day\": {day}}}"}}}}]}}}}]}}"#
        ),
    }
}
