//! Exchanges that tests write and expect.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afterimage_record::{
    End, ExchangeId, Outcome, Recording, RecordingWriter, RequestBody, ResponseHead, Result, Start,
};

/// When processes are killed: after how many answers, and how long after the last of them.
///
/// `AFTERIMAGE_KILLS` says how many there are. Each run draws other moments, and prints its seed;
/// `AFTERIMAGE_KILLS_SEED` draws those of an earlier one again.
pub(crate) struct Kills {
    left: u64,
    random: u64,
}

impl Kills {
    pub(crate) fn new(usual: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let random = number("AFTERIMAGE_KILLS_SEED").unwrap_or_else(now);
        println!("AFTERIMAGE_KILLS_SEED={random}");
        Self { left: number("AFTERIMAGE_KILLS").unwrap_or(usual), random }
    }

    /// The next moment: so many answers, at most `most`, and up to 30 ms more.
    pub(crate) fn next(&mut self, most: u64) -> Option<(u64, Duration)> {
        self.left = self.left.checked_sub(1)?;
        Some((1 + self.draw() % most, Duration::from_micros(self.draw() % 30_000)))
    }

    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }
}

/// The request and the answer with this number of a conversation that grows.
pub(crate) fn bodies(number: u64) -> (Vec<u8>, Vec<u8>) {
    let messages: Vec<String> = (0..=number)
        .map(|at| format!("{{\"role\":\"user\",\"content\":\"turn {at} of it\"}}"))
        .collect();
    let request = format!("{{\"messages\":[{}],\"tools\":[]}}", messages.join(","));
    let answer = format!("data: {{\"answer\":{number}}}\n\n").repeat(1 + number as usize % 40);
    (request.into_bytes(), answer.into_bytes())
}

pub(crate) fn head() -> ResponseHead {
    ResponseHead { status: 200, ..ResponseHead::default() }
}

pub(crate) fn end(bytes: &[u8]) -> End {
    let bytes = bytes.len() as u64;
    End { bytes, stored: bytes, ..End::default() }
}

/// Writes the exchange with this number. The id is that of the last record that was appended.
pub(crate) fn write(writer: &mut RecordingWriter, number: u64) -> Result<ExchangeId> {
    let (request, answer) = bodies(number);
    let id = writer.start(&start(number))?;
    writer.request(id, "p", RequestBody::whole(&request))?;
    writer.response(id, &head())?;
    for part in answer.chunks(700) {
        writer.part(id, part)?;
    }
    writer.end(id, &end(&answer))?;
    Ok(id)
}

/// A start that says which exchange it is.
pub(crate) fn start(number: u64) -> Start {
    Start { time_ms: number, path: "/responses".to_owned(), ..Start::now("POST", "p") }
}

/// How many exchanges are whole. Asserts that these are what was written, and that what any other
/// has is the beginning of it.
pub(crate) fn check(recording: &Recording) -> Vec<u64> {
    let mut whole = Vec::new();
    for exchange in recording.exchanges() {
        let number = exchange.start.time_ms;
        let (request, answer) = bodies(number);
        let (found, response) =
            (recording.request(exchange), recording.response(exchange).unwrap());
        if let Ok(Some(found)) = found.as_ref().map(|found| found.whole().map(<[u8]>::to_vec)) {
            assert_eq!(found, request, "request {number}");
        }
        let is_complete = exchange.outcome() == Outcome::Complete;
        match response.whole() {
            Some(found) => {
                assert_eq!(found, answer, "answer {number}");
                let is_whole = found_whole(found_request(recording, exchange).as_deref(), &request);
                // The outcome tells of the request too; a body before it may be damaged all the same.
                assert!(is_complete || !is_whole, "outcome {number}");
                if is_whole {
                    whole.push(number);
                }
            }
            None => assert!(answer.starts_with(&response.into_parts().0), "answer {number}"),
        }
    }
    whole
}

fn found_request(recording: &Recording, exchange: &afterimage_record::Exchange) -> Option<Vec<u8>> {
    Some(recording.request(exchange).ok()?.whole()?.to_vec())
}

fn found_whole(found: Option<&[u8]>, expected: &[u8]) -> bool {
    found == Some(expected)
}

#[test]
fn kills_of_one_seed_come_at_the_same_moments_and_those_of_another_at_others() {
    let moments = |random| {
        let mut kills = Kills { left: 20, random };
        std::iter::from_fn(|| kills.next(40)).collect::<Vec<_>>()
    };
    assert_eq!(moments(1), moments(1));
    assert_ne!(moments(1), moments(2));
    let all = moments(3);
    assert_eq!(all.len(), 20);
    assert!(all.iter().all(|(count, after)| (1..=40).contains(count) && after.as_millis() < 30));
    let delays: std::collections::HashSet<Duration> = all.iter().map(|(_, after)| *after).collect();
    assert!(delays.len() > 15, "{delays:?}");
}
