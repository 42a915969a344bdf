//! One agent loop with a scripted model: render, send, capture the answer, run the tool, repeat.
//!
//! `cargo run -p afterimage --example agent_loop`

use std::{sync::Arc, time::SystemTime};

use afterimage::{
    Result,
    hud::{Hud, RenderRequest, RenderedContext},
    id::{FacetType, Millis},
    json::{Object, Value},
    tokens::{Bpe, Memo},
    veil::{Facet, FacetOp, Frame, History, Source},
};

/// What a model answers.
enum Answer {
    Call { thought: &'static str, tool: &'static str, city: &'static str },
    Say(&'static str),
}

/// A model that knows its lines. A real one would be sent the messages of `context`.
fn model(context: &RenderedContext, turn: usize) -> Answer {
    println!(
        "→ turn {turn}: {} messages, {} tokens",
        context.messages().len(),
        context.tokens().total
    );
    match turn {
        0 => Answer::Call { thought: "I should look it up.", tool: "get_tide", city: "Cuxhaven" },
        _ => Answer::Say("High water in Cuxhaven is at 14:20, so leave by one o'clock."),
    }
}

fn get_tide(city: &str) -> String {
    format!("{{\"city\": \"{city}\", \"high_water\": \"14:20\", \"height_m\": 3.1}}")
}

struct Session {
    hud: Hud,
    history: History,
}

impl Session {
    fn now() -> Millis {
        SystemTime::now().into()
    }

    fn frame(&self, source: Source) -> Frame {
        let next = self.history.next_sequence().expect("fewer than 2^64 frames");
        Frame::new(next, source)
    }

    fn capture(&mut self, source: Source, facet: Facet) -> Result<()> {
        let frame = self.frame(source).with(FacetOp::add(facet));
        self.hud.capture(&mut self.history, frame, Self::now()).map(drop)
    }
}

fn main() -> Result<()> {
    let hud = Hud::new(Arc::new(Memo::new(Bpe::o200k())));
    let mut session = Session { hud, history: History::new() };
    let system = Facet::new("rules", FacetType::SYSTEM, "You are a harbour pilot. Be brief.");
    session.capture(Source::System, system)?;
    let clock = Facet::new("clock", FacetType::AMBIENT, "It is 11:40.").named("clock");
    session.capture(Source::Environment, clock)?;
    let ask = Facet::new("ask-1", FacetType::EVENT, "When must I leave Cuxhaven?");
    session.capture(Source::User, ask)?;

    for turn in 0.. {
        let context =
            session.hud.render(&session.history, &RenderRequest::default(), Session::now())?;
        let frame = session.frame(Source::Agent);
        match model(&context, turn) {
            Answer::Call { thought, tool, city } => {
                let parameters = Object::from_iter([("city".to_owned(), Value::from(city))]);
                let call = Facet::tool_call("call-1", Some("c1"), tool, parameters.into());
                let thought = Facet::new("thought-1", FacetType::THOUGHT, thought);
                let frame = frame.with(FacetOp::add(thought)).with(FacetOp::add(call));
                // The tail (the clock) is sealed with the frame that answers it.
                session.hud.capture_answer(
                    &mut session.history,
                    frame,
                    &context,
                    Session::now(),
                )?;
                let result = Facet::tool_result("result-1", Some("c1"), Some(tool), get_tide(city));
                session.capture(Source::Environment, result)?;
            }
            Answer::Say(text) => {
                let frame =
                    frame.with(FacetOp::add(Facet::new("speech-1", FacetType::SPEECH, text)));
                session.hud.capture_answer(
                    &mut session.history,
                    frame,
                    &context,
                    Session::now(),
                )?;
                break;
            }
        }
    }

    for frame in session.history.frames() {
        let snapshot = frame.rendered_snapshot.as_deref();
        println!("\n[{} {}]", frame.sequence, frame.source.as_str());
        println!("{}", snapshot.map_or("", |snapshot| snapshot.text()));
    }
    Ok(())
}
