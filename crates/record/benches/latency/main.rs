//! What the wire adds to the first byte of an answer, and how much passes, beside nginx.
//!
//! ```text
//! cargo bench --package afterimage-record --features wire --bench latency
//! ```
//!
//! A provider on loopback streams events to clients that come directly, through the wire, and through
//! nginx (with `proxy_buffering off`; left out where it is not installed), in turn. Three environment
//! variables change the run: `AFTERIMAGE_LATENCY_SECONDS`, how long each measurement takes,
//! `AFTERIMAGE_LATENCY_STREAMS`, how many streams at once, as `1,100,1000`, and
//! `AFTERIMAGE_LATENCY_ROUNDS`, how often. Any error ends it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::print_stdout)]

mod load;
mod peers;

use std::time::Duration;

use self::{
    load::{Figures, Load},
    peers::{Nginx, Provider, Recorder},
};

fn main() {
    if peers::child() {
        return;
    }
    let text = |name: &str, other: &str| std::env::var(name).unwrap_or_else(|_| other.to_owned());
    let number = |name: &str| text(name, "1").parse().unwrap();
    let time = Duration::from_secs(number("AFTERIMAGE_LATENCY_SECONDS"));
    let rounds = number("AFTERIMAGE_LATENCY_ROUNDS");
    let streams = text("AFTERIMAGE_LATENCY_STREAMS", "1,20");
    let provider = Provider::start();
    let nginx = Nginx::start(provider.address);
    if nginx.is_none() {
        println!("nginx is not installed: there is nothing to compare with");
    }
    for streams in streams.split(',').map(|number| number.parse().unwrap()) {
        let load = Load { streams, time };
        let recorder = Recorder::start(provider.address);
        let paths = [
            ("direct", Some(provider.base())),
            ("afterimage", Some(recorder.base.clone())),
            ("nginx", nginx.as_ref().map(|nginx| nginx.base.clone())),
        ];
        let paths: Vec<(&str, String)> =
            paths.into_iter().filter_map(|(name, base)| Some((name, base?))).collect();
        let mut figures = vec![Figures::default(); paths.len()];
        // In turn, so that what else the machine does meets all of them.
        for _ in 0..rounds {
            for ((_, base), figures) in paths.iter().zip(&mut figures) {
                figures.add(load.run(base));
            }
        }
        for ((name, _), of) in paths.iter().zip(&figures) {
            println!("{streams:>5} streams, {name:<10} {}", of.beside(&figures[0]));
        }
        for (name, base) in &paths {
            let time = time.min(Duration::from_secs(5));
            let rate = load::throughput(base, streams.min(8), time);
            println!("{streams:>5} streams, {name:<10} {rate:>6.0} MB/s at full speed");
        }
        println!("{streams:>5} streams, {}", recorder.stop());
    }
}

impl Figures {
    fn beside(&self, direct: &Self) -> String {
        let added = |at: usize| self.first_byte(at) - direct.first_byte(at);
        format!(
            "first byte {:.2} ms (99 of 100: {:.2} ms), added {:.2} ms ({:.2} ms), to the last byte \
             {:.2} ms; {} answers, {:.1} thousand events/s, no error",
            self.first_byte(50),
            self.first_byte(99),
            added(50),
            added(99),
            self.whole_answer() - direct.whole_answer(),
            self.answers(),
            self.events_per_second() / 1000.0,
        )
    }
}
