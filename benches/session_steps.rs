//! What the steps of a living session cost as it grows: an agent with tools, images, observations and
//! a budget of 16,000 tokens, in a directory, in 100,000 steps (`AFTERIMAGE_BENCH_STEPS` for fewer).
//!
//! Time is that of the thread on its core, so that syncs of the disk are not in it. The first 1,000
//! steps are the baseline. At the end the session is opened again, and must make the same request.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, time::Duration};

use afterimage::{
    id::FacetType,
    json,
    observe::Policy,
    session::{Awaits, JournalStore, Model, Session, Tool},
    veil::{Facet, FacetOp, FacetPart, Frame, Media, PartContent, PartSource, Source},
};

const IMAGE: &str = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}"#;

fn main() {
    let steps = std::env::var("AFTERIMAGE_BENCH_STEPS").map_or(100_000, |of| of.parse().unwrap());
    let model = Model::anthropic("claude-sonnet-4-5", 16_000);
    let folder = tempfile::tempdir().unwrap();
    let mut session = open(folder.path());
    session.observe(Policy::default()).unwrap();
    session.system("You are a harbour pilot. Be brief.").unwrap();
    let schema = json::read(br#"{"type": "object"}"#).unwrap();
    session.tools([Tool::new("get_tide", "When the water is high.", schema)]).unwrap();

    println!(
        "{:>8} {:>8} {:>9} {:>11} {:>10} {:>12} {:>12}",
        "steps", "frames", "mean ms", "slowest ms", "epochs", "memory MB", "said MB"
    );
    let (mut said, mut part) = (0, Part::default());
    for step in 1..=steps {
        let begun = on_core();
        let (bytes, is_epoch) = make_step(&mut session, &model);
        said += bytes;
        part.take(on_core().saturating_sub(begun), is_epoch);
        if step == 1_000 || step % (steps / 10).max(1) == 0 {
            let frames = session.history().frames().len();
            let Part { count, time, slowest, epochs } = std::mem::take(&mut part);
            println!(
                "{step:>8} {frames:>8} {:>9.2} {:>11.1} {epochs:>10} {:>12.1} {:>12.1}",
                ms(time) / f64::from(count),
                ms(slowest),
                resident() as f64 / 1e6,
                said as f64 / 1e6,
            );
        }
    }
    while session.awaits() != Awaits::Answer {
        make_step(&mut session, &model);
    }
    let last = session.request(&model).unwrap().body;
    drop(session);
    let mut again = open(folder.path());
    assert_eq!(again.request(&model).unwrap().body, last, "a session that is opened again");
    assert_eq!(again.sent(again.turns()).unwrap(), last, "what was sent");
    println!("opened again, it makes the same request");
}

/// Steps of a part of the life of a session.
#[derive(Default)]
struct Part {
    count: u32,
    time: Duration,
    slowest: Duration,
    epochs: u32,
}

impl Part {
    fn take(&mut self, time: Duration, is_epoch: bool) {
        self.count += 1;
        self.time += time;
        self.slowest = self.slowest.max(time);
        self.epochs += u32::from(is_epoch);
    }
}

fn open(folder: &std::path::Path) -> Session {
    Session::open(JournalStore::open(folder).unwrap()).unwrap()
}

/// The next step, whatever it is: how many bytes it said, and whether blocks changed for it.
fn make_step(session: &mut Session, model: &Model) -> (usize, bool) {
    let turn = session.turns();
    match session.awaits() {
        Awaits::Answer if session.unanswered().is_none() => {
            let is_epoch = session.request(model).unwrap().receipt.epoch.is_some();
            (0, is_epoch)
        }
        Awaits::Answer => {
            let content = if turn.is_multiple_of(5) {
                let text = "The tide is rising. ".repeat(10);
                format!(r#"{{"type":"text","text":"Leave on day {turn}. {text}"}}"#)
            } else {
                format!(
                    r#"{{"type":"tool_use","id":"t{turn}","name":"get_tide","input":{{"day":{turn}}}}}"#
                )
            };
            let answer =
                format!(r#"{{"type":"message","role":"assistant","content":[{content}]}}"#);
            session.answer(answer.as_str()).unwrap();
            (content.len(), false)
        }
        Awaits::Results(calls) => {
            let mut bytes = 0;
            for call in calls {
                let file = turn % 37;
                let text = "calm at sea, ".repeat(usize::try_from(turn % 40).unwrap());
                let text =
                    format!(r#"{{"day": {turn}, "file": "src/a{file}.rs", "sea": "{text}"}}"#);
                bytes += text.len();
                session.tool_result(&call.id, text).unwrap();
            }
            (bytes, false)
        }
        Awaits::User => {
            let text = format!("When must I leave on day {turn}?");
            let bytes = text.len();
            if turn.is_multiple_of(10) {
                session.push(with_image(turn, text)).unwrap();
            } else {
                session.user(text).unwrap();
            }
            (bytes, false)
        }
    }
}

fn with_image(turn: u64, text: String) -> Frame {
    let mut image = Facet::new(format!("image-{turn}"), FacetType::EVENT, "[image/png, 70 bytes]");
    let media = Media { media_type: Some("image/png".into()), bytes: Some(70), tokens: Some(100) };
    let source = PartSource::of_block(json::read(IMAGE.as_bytes()).unwrap());
    image.part = Some(Box::new(FacetPart { source, ..FacetPart::new(PartContent::Image(media)) }));
    let asked = Facet::new(format!("asked-{turn}"), FacetType::EVENT, text);
    Frame::new(0, Source::User).with(FacetOp::add(asked)).with(FacetOp::add(image))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The time of this thread on its core.
fn on_core() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// The bytes of this process that are in memory.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    4096 * text.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}
