//! Captures a history of frames of about 500 bytes, beside a plain loop over the same texts.
//!
//! `capture FILE [FRAMES]`: the file has texts with a NUL between them. The loop formats each text
//! into one string, counts it by four UTF-16 units a token, looks for `<`, and keeps the id of its
//! facet with its range. Without a second argument there are 10,000 frames.

use std::{hint::black_box, sync::Arc};

use afterimage::{
    hud::Hud,
    id::{FacetId, FacetType, Millis},
    tokens::{Chars4, TokenCounter},
    veil::{Facet, FacetOp, Frame, History, Source},
};
use rustix::time::{ClockId, clock_gettime};

/// The seconds that this thread had a core, whatever else the machine does.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn frames(texts: &[String]) -> Vec<Frame> {
    (0..)
        .zip(texts)
        .map(|(sequence, text)| {
            let (source, facet_type) = match sequence % 3 {
                0 => (Source::User, FacetType::EVENT),
                1 => (Source::Agent, FacetType::SPEECH),
                _ => (Source::Environment, FacetType::EVENT),
            };
            let facet = Facet::new(format!("facet-{sequence}"), facet_type, text.as_str());
            Frame::new(sequence, source).with(FacetOp::add(facet))
        })
        .collect()
}

#[inline(never)]
fn plain(texts: &[String], ids: &[FacetId]) -> (String, Vec<(FacetId, usize, usize, usize)>) {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for ((index, text), id) in texts.iter().enumerate().zip(ids) {
        let start = all.len();
        let is_agent = index % 3 == 1;
        all.push_str(if is_agent { "<my_turn>\n\n" } else { "" });
        match memchr::memchr(b'<', text.as_bytes()) {
            None => all.push_str(text),
            Some(_) => all.push_str(&text.replace('<', "&lt;")),
        }
        all.push_str(if is_agent { "\n\n</my_turn>" } else { "" });
        let tokens = all[start..].encode_utf16().count().div_ceil(4);
        kept.push((id.clone(), start, all.len(), tokens));
    }
    (all, kept)
}

#[inline(never)]
fn plain_vectorised(
    texts: &[String],
    ids: &[FacetId],
) -> (String, Vec<(FacetId, usize, usize, usize)>) {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for ((index, text), id) in texts.iter().enumerate().zip(ids) {
        let start = all.len();
        let is_agent = index % 3 == 1;
        all.push_str(if is_agent { "<my_turn>\n\n" } else { "" });
        match memchr::memchr(b'<', text.as_bytes()) {
            None => all.push_str(text),
            Some(_) => all.push_str(&text.replace('<', "&lt;")),
        }
        all.push_str(if is_agent { "\n\n</my_turn>" } else { "" });
        let tokens = Chars4.count(&all[start..]);
        kept.push((id.clone(), start, all.len(), tokens));
    }
    (all, kept)
}

#[inline(never)]
fn captured(frames: Vec<Frame>) -> History {
    let hud = Hud::new(Arc::new(Chars4));
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame, Millis::new(0)).expect("the frame is sound");
    }
    history
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let all = std::fs::read_to_string(arguments.next().expect("a file")).expect("text");
    let count = arguments.next().map_or(10_000, |count| count.parse().expect("a number"));
    let pairs: Vec<String> = all
        .split('\0')
        .filter(|text| text.len() < 4_000)
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| pair.join("\n"))
        .collect();
    let texts: Vec<String> = pairs.iter().cycle().take(count).cloned().collect();
    let ids: Vec<FacetId> = (0..count).map(|at| FacetId::from(format!("facet-{at}"))).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{count} frames of {} bytes", bytes / count);
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(9);
    let best = |name: &str, run: &mut dyn FnMut() -> f64| {
        let best = (0..rounds).map(|_| run()).fold(f64::MAX, f64::min);
        println!("{name:34} {:8.3} µs a frame", best * 1e6 / count as f64);
    };
    best("plain loop, one unit at a time", &mut || {
        let start = seconds();
        let made = black_box(plain(black_box(&texts), &ids));
        let time = seconds() - start;
        drop(made);
        time
    });
    best("plain loop, counted in blocks", &mut || {
        let start = seconds();
        let made = black_box(plain_vectorised(black_box(&texts), &ids));
        let time = seconds() - start;
        drop(made);
        time
    });
    best("capture", &mut || {
        let frames = frames(&texts);
        let start = seconds();
        let history = black_box(captured(frames));
        let time = seconds() - start;
        drop(history);
        time
    });
    best("capture, with its archive", &mut || {
        let frames = frames(&texts);
        let start = seconds();
        let archive = black_box(captured(frames).archive().expect("one tokenizer"));
        let time = seconds() - start;
        drop(archive);
        time
    });
}
