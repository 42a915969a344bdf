//! Captures a history of frames of about 500 bytes, beside a plain loop over the same texts.
//!
//! `capture FILE [FRAMES]`: the file has texts with a NUL between them. The loop formats each text
//! into one string, counts it by four UTF-16 units a token, looks for `<`, and keeps the id of its
//! facet with its range. A second loop does the same with the frames that a capture gets, and drops
//! each when it is done with it. Without a second argument there are 10,000 frames.
//!
//! Both run in processes of their own first, where all that is kept takes pages from the system.
//! Then they run again and again in one process, which uses its memory again. `ONLY=fresh` ends
//! before that. After it the whole context is rendered, and again after one push, beside joining
//! the same texts; and all chunks are grouped by role, beside a plain loop over a list of roles.
//!
//! `profile` as a third argument does each once and reads no clock, for callgrind.

#[path = "../../../benches/support/loops.rs"]
mod loops;

use std::{hint::black_box, sync::Arc};

use afterimage::{
    hud::{Hud, Merge, RenderRequest},
    id::{FacetId, FacetType, Millis, Role},
    snapshot::{RangeView, group_chunks_by_role},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History},
};
use loops::{captured, frames, ids, plain_loop, plain_loop_over_frames};
use rustix::time::{ClockId, clock_gettime};

/// How often the system gave this process a page of memory.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(7).and_then(|count| count.parse().ok()).unwrap_or_default()
}

/// What `make` takes, and how many pages the system gave for it.
fn once<T>(make: impl FnOnce() -> T) {
    let (before, start) = (faults(), seconds());
    let made = black_box(make());
    let (time, pages) = (seconds() - start, faults() - before);
    drop(made);
    println!("{time} {pages}");
}

const FRESH: [&str; 4] =
    ["plain loop", "plain loop over frames", "capture", "capture, with its archive"];

/// Measures each in processes of its own, one after the other in each round: whatever is kept is
/// then kept in memory that the process did not have before.
fn fresh(file: &str, count: usize, rounds: u32) {
    let program = std::env::current_exe().expect("this program");
    let mut best = [(f64::MAX, 0); FRESH.len()];
    for _ in 0..rounds {
        for (name, best) in FRESH.iter().zip(&mut best) {
            let mut command = std::process::Command::new(&program);
            let output = command.args([file, &count.to_string(), name]).output().expect("a run");
            let said = String::from_utf8(output.stdout).expect("text");
            let mut words = said.lines().last().unwrap_or_default().split(' ');
            let time: f64 = words.next().and_then(|time| time.parse().ok()).expect("seconds");
            let pages: u64 = words.next().and_then(|pages| pages.parse().ok()).expect("pages");
            if time < best.0 {
                *best = (time, pages);
            }
        }
    }
    println!("in processes of their own, which have no memory to use again:");
    for (name, (time, pages)) in FRESH.iter().zip(best) {
        let (time, pages) = (time * 1e6 / count as f64, pages as f64 / count as f64);
        println!("{name:34} {time:8.3} µs a frame, {pages:.3} pages of memory");
    }
    println!("in one process:");
}

/// The seconds that this thread had a core, whatever else the machine does.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
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
fn context(hud: &Hud, history: &History, merge: Merge) -> usize {
    let request = RenderRequest { merge, ..RenderRequest::default() };
    hud.render(history, &request, Millis::new(0)).expect("a context").messages().len()
}

#[inline(never)]
fn by_role(view: &RangeView<'_>) -> usize {
    view.by_role().count(Role::User)
}

/// Does everything once, for a tool that counts what each function takes.
fn profile(texts: &[String], ids: &[FacetId]) {
    black_box(plain_loop(black_box(texts), ids));
    black_box(plain_loop_over_frames(frames(texts)));
    let history = black_box(captured(frames(texts)));
    black_box(context(&Hud::new(Arc::new(Chars4)), &history, Merge::PerFrame));
    let archive = history.archive().expect("one tokenizer");
    black_box(by_role(&archive.range(0.into()..=u64::MAX.into()).expect("a range")));
}

/// What is asked of a history that is there.
fn asked(texts: &[String], best: &mut dyn FnMut(&str, &mut dyn FnMut() -> f64)) {
    let now = Millis::new(0);
    let hud = Hud::new(Arc::new(Chars4));
    let mut history = captured(frames(texts));
    let mut timed = |name: &str, run: &mut dyn FnMut() -> usize| {
        best(name, &mut || {
            let start = seconds();
            black_box(run());
            seconds() - start
        });
    };
    let all = history.frames();
    timed("join all texts", &mut || {
        let snapshots = (0..all.len()).filter_map(|index| all.snapshot(index));
        snapshots.fold(String::new(), |text, snapshot| text + snapshot.text()).len()
    });
    let archive = history.archive().expect("one tokenizer");
    let view = archive.range(0.into()..=u64::MAX.into()).expect("a range");
    timed("join all texts of the archive", &mut || view.text().join().len());
    timed("list all chunks", &mut || view.chunks().collect::<Vec<_>>().len());
    timed("group a list of chunks by role", &mut || {
        group_chunks_by_role(view.chunks()).get(Role::User).len()
    });
    timed("group all chunks by role", &mut || by_role(&view));
    let roles: Vec<Option<Role>> = view.chunks().map(|chunk| chunk.role()).collect();
    println!("{} chunks", roles.len());
    timed("plain loop over a list of roles", &mut || {
        let mut groups: [Vec<u32>; 4] = Default::default();
        for (chunk, role) in (0..).zip(black_box(&roles)) {
            groups[role.map_or(3, |role| role as usize)].push(chunk);
        }
        groups[0].len()
    });
    for merge in [Merge::PerFrame, Merge::AdjacentRoles] {
        timed(&format!("whole context, {merge:?}"), &mut || context(&hud, &history, merge));
    }
    let request = RenderRequest::default();
    let mut context = hud.render(&history, &request, now).expect("a context");
    best("context after one push (per push)", &mut || {
        let next = frames(&texts[..1]).remove(0);
        let sequence = history.next_sequence().expect("a number");
        let id = FacetId::from(format!("facet-{sequence}"));
        let facet = Facet::new(id, FacetType::EVENT, texts[0].as_str());
        let frame = Frame::new(sequence, next.source).with(FacetOp::add(facet));
        hud.capture(&mut history, frame, now).expect("the frame is sound");
        let start = seconds();
        context = hud.render(&history, &request, now).expect("a context");
        (seconds() - start) * texts.len() as f64
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file");
    let all = std::fs::read_to_string(&file).expect("text");
    let count = arguments.next().map_or(10_000, |count| count.parse().expect("a number"));
    let pairs: Vec<String> = all
        .split('\0')
        .filter(|text| text.len() < 4_000)
        .collect::<Vec<_>>()
        .chunks(2)
        .map(|pair| pair.join("\n"))
        .collect();
    let texts: Vec<String> = pairs.iter().cycle().take(count).cloned().collect();
    let ids = ids(&texts);
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{count} frames of {} bytes", bytes / count);
    match arguments.next().as_deref() {
        None => {}
        Some("profile") => return profile(&texts, &ids),
        Some("plain loop") => return once(|| plain_loop(black_box(&texts), &ids)),
        Some("plain loop over frames") => {
            let frames = frames(&texts);
            return once(|| plain_loop_over_frames(frames));
        }
        Some("capture") => {
            let frames = frames(&texts);
            return once(|| captured(frames));
        }
        Some(_) => {
            let frames = frames(&texts);
            return once(|| captured(frames).archive().expect("one tokenizer"));
        }
    }
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(9);
    fresh(&file, count, rounds);
    if std::env::var("ONLY").is_ok_and(|only| only == "fresh") {
        return;
    }
    let mut best = |name: &str, run: &mut dyn FnMut() -> f64| {
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
        let made = black_box(plain_loop(black_box(&texts), &ids));
        let time = seconds() - start;
        drop(made);
        time
    });
    best("plain loop over frames", &mut || {
        let frames = frames(&texts);
        let start = seconds();
        let made = black_box(plain_loop_over_frames(frames));
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
    asked(&texts, &mut best);
}
