//! Clients that ask again and again, and take the time.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// So many bytes a request has.
const BODY: usize = 20_000;
const BLOCK: usize = 64 << 10;

/// So many streams at once, for so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) streams: usize,
    pub(crate) time: Duration,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Milliseconds to the first bytes of the answers.
    first_bytes: Vec<f64>,
    /// Milliseconds that the answers took.
    answers: Vec<f64>,
    events: usize,
    seconds: f64,
}

impl Figures {
    /// The milliseconds to the first byte of a body: for so many of a hundred answers no more.
    pub(crate) fn first_byte(&self, percent: usize) -> f64 {
        at(&self.first_bytes, percent)
    }

    /// Takes those of another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.first_bytes.extend(other.first_bytes);
        self.answers.extend(other.answers);
        self.events += other.events;
        self.seconds += other.seconds;
    }

    /// The milliseconds that half of the answers took at most.
    pub(crate) fn whole_answer(&self) -> f64 {
        at(&self.answers, 50)
    }

    pub(crate) fn answers(&self) -> usize {
        self.first_bytes.len()
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

/// The figure that so many of a hundred are not above.
fn at(figures: &[f64], percent: usize) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[(figures.len() * percent / 100).min(figures.len() - 1)]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Load {
    /// Asks a base URL for streams of events.
    pub(crate) fn run(self, base: &str) -> Figures {
        runtime().block_on(async {
            let began = Instant::now();
            let mut clients = JoinSet::new();
            for number in 0..self.streams {
                let client = Client::connect(base).await;
                // They do not ask all at once.
                let wait = Duration::from_millis((number * 7919 % 1000) as u64);
                clients.spawn(client.ask_until(began + self.time, wait, number));
            }
            let mut all = Figures::default();
            while let Some(figures) = clients.join_next().await {
                all.add(figures.unwrap());
            }
            all.seconds = began.elapsed().as_secs_f64();
            all
        })
    }
}

/// How many megabytes a second come, in so many streams.
pub(crate) fn throughput(base: &str, streams: usize, time: Duration) -> f64 {
    runtime().block_on(async {
        let began = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..streams {
            let mut client = Client::connect(base).await;
            clients.spawn(async move {
                client.send("/flood", b"{}").await;
                let (mut block, mut bytes) = (vec![0; BLOCK], 0);
                while began.elapsed() < time {
                    let read = client.stream.read(&mut block).await.unwrap();
                    assert!(read > 0, "the answer broke off");
                    bytes += read;
                }
                bytes
            });
        }
        let mut bytes = 0;
        while let Some(read) = clients.join_next().await {
            bytes += read.unwrap();
        }
        bytes as f64 / began.elapsed().as_secs_f64() / 1e6
    })
}

/// A connection that stays.
struct Client {
    stream: TcpStream,
    address: String,
    path: String,
}

impl Client {
    async fn connect(base: &str) -> Self {
        let rest = base.strip_prefix("http://").unwrap();
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, address: address.to_owned(), path: path.to_owned() }
    }

    async fn send(&mut self, path: &str, body: &[u8]) {
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            self.path,
            self.address,
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    }

    async fn ask_until(mut self, end: Instant, wait: Duration, number: usize) -> Figures {
        tokio::time::sleep(wait.min(end - Instant::now())).await;
        let mut figures = Figures::default();
        let mut turn = 0;
        while turn == 0 || Instant::now() < end {
            turn += 1;
            self.ask(&format!("{number} {turn} "), &mut figures).await;
        }
        figures
    }

    /// Asks once, and reads the answer to its end.
    async fn ask(&mut self, own: &str, figures: &mut Figures) {
        let mut body = own.repeat(1 + BODY / own.len()).into_bytes();
        body.truncate(BODY);
        let began = Instant::now();
        self.send("/responses", &body).await;
        let mut seen: Vec<u8> = Vec::new();
        let mut head = None;
        loop {
            let read = self.stream.read_buf(&mut seen).await.unwrap();
            assert!(read > 0, "the answer broke off after {} bytes", seen.len());
            if head.is_none() {
                head = seen.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            }
            // The first byte behind the head.
            if head.is_some_and(|head| seen.len() > head) {
                break;
            }
        }
        assert!(seen.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&seen));
        figures.first_bytes.push(began.elapsed().as_secs_f64() * 1000.0);
        seen.drain(..head.unwrap());
        while !seen.ends_with(b"0\r\n\r\n") {
            let read = self.stream.read_buf(&mut seen).await.unwrap();
            assert!(read > 0, "the answer broke off after {} bytes", seen.len());
        }
        figures.answers.push(began.elapsed().as_secs_f64() * 1000.0);
        figures.events += seen.windows(6).filter(|six| six == b"data: ").count();
    }
}
