#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use afterimage_record::{
    Limits, Outcome, Recorder, Recording, RecordingWriter, Redact,
    wire::{Route, Upstream, Wire},
};

/// A provider: what it received of each connection, and what it does with each request.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Message>>>,
}

/// A message of HTTP as it came: its first line and headers, and its body with any chunks joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(crate) is_whole: bool,
}

impl Message {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        self.line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Reads a message; `None` at the end of the connection.
    pub(crate) fn read(input: &mut impl BufRead) -> Option<Self> {
        let mut message = Self::default();
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        line.trim_end().clone_into(&mut message.line);
        loop {
            line.clear();
            input.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            message.headers.push((name.to_owned(), value.to_owned()));
        }
        message.is_whole = message.read_body(input).is_some();
        Some(message)
    }

    fn read_body(&mut self, input: &mut impl BufRead) -> Option<()> {
        let length = self.header("content-length").map(|length| length.parse().unwrap());
        if self.header("transfer-encoding").is_none() {
            return self.take(input, length.unwrap_or(0));
        }
        let mut line = String::new();
        loop {
            line.clear();
            input.read_line(&mut line).ok()?;
            let length = u64::from_str_radix(line.trim_end(), 16).ok()?;
            self.take(input, length)?;
            input.read_exact(&mut [0; 2]).ok()?;
            if length == 0 {
                return Some(());
            }
        }
    }

    /// Takes so many bytes.
    fn take(&mut self, input: &mut impl BufRead, length: u64) -> Option<()> {
        let before = self.body.len() as u64;
        let read = input.take(length).read_to_end(&mut self.body);
        (read.is_ok() && self.body.len() as u64 - before == length).then_some(())
    }
}

impl Provider {
    /// Answers each request by `answer`, which writes to the connection.
    pub(crate) fn start(answer: impl Fn(&Message, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (answer, all) = (Arc::new(answer), Arc::clone(&received));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, answer, all) =
                    (stream.unwrap(), Arc::clone(&answer), Arc::clone(&all));
                thread::spawn(move || {
                    let mut input = BufReader::new(stream.try_clone().unwrap());
                    while let Some(message) = Message::read(&mut input) {
                        all.lock().unwrap().push(message.clone());
                        if message.is_whole {
                            answer(&message, &mut stream);
                        }
                    }
                });
            }
        });
        Self { address, received }
    }

    /// Answers every request with the same bytes.
    pub(crate) fn saying(answer: &'static str) -> Self {
        Self::start(move |_, stream| stream.write_all(answer.as_bytes()).unwrap())
    }

    pub(crate) fn received(&self) -> Vec<Message> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/base", self.address)
    }
}

/// A wire to one provider, and its recording.
pub(crate) struct Recorded {
    pub(crate) wire: Option<Wire>,
    pub(crate) folder: PathBuf,
    _scratch: tempfile::TempDir,
}

impl Recorded {
    pub(crate) fn of(provider: &Provider) -> Self {
        Self::with(&provider.url(), Limits::default())
    }

    pub(crate) fn with(url: &str, limits: Limits) -> Self {
        Self::by(url, |folder| {
            let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
            Recorder::start(limits, open, |said| panic!("{said}")).unwrap()
        })
    }

    /// A recording without secrets.
    pub(crate) fn redacting(provider: &Provider, by: impl Redact + 'static) -> Self {
        Self::by(&provider.url(), |folder| {
            let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
            let tell = |said: &str| panic!("{said}");
            Recorder::start_redacting(Limits::default(), Box::new(by), open, tell).unwrap()
        })
    }

    pub(crate) fn by(url: &str, start: impl FnOnce(PathBuf) -> Recorder) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("recording");
        let recorder = start(folder.clone());
        let route = Route::new("p", Upstream::parse(url).unwrap());
        let wire = Wire::start("127.0.0.1:0".parse().unwrap(), vec![route], recorder).unwrap();
        Self { wire: Some(wire), folder, _scratch: scratch }
    }

    /// A wire whose recording is elsewhere.
    pub(crate) fn around(wire: Wire) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        Self { wire: Some(wire), folder: PathBuf::new(), _scratch: scratch }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.wire.as_ref().unwrap().address()
    }

    /// The path of the base URL.
    pub(crate) fn path(&self) -> String {
        let url = self.wire.as_ref().unwrap().base_url("p").unwrap();
        url.strip_prefix(&format!("http://{}", self.address())).unwrap().to_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The head of a request to `rest` behind the base URL, without its end.
    pub(crate) fn head(&self, method: &str, rest: &str) -> String {
        format!("{method} {}{rest} HTTP/1.1\r\nHost: {}\r\n", self.path(), self.address())
    }

    /// Sends a body to a path, and reads the answer.
    pub(crate) fn post(&self, rest: &str, more: &str, body: &[u8]) -> Message {
        let mut stream = self.connect();
        let head = self.head("POST", rest);
        let head = format!("{head}{more}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut input = BufReader::new(stream);
        // A client that asks may be told to go on.
        let first = Message::read(&mut input).unwrap();
        if first.status() == 100 { Message::read(&mut input).unwrap() } else { first }
    }

    /// Sends bytes as they are, and reads the answer.
    pub(crate) fn raw(&self, bytes: &str) -> Message {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        Message::read(&mut BufReader::new(stream)).unwrap_or_default()
    }

    /// Stops the wire, and reads what it recorded.
    pub(crate) fn stop(&mut self) -> Recording {
        if let Some(mut wire) = self.wire.take() {
            wire.stop().unwrap();
        }
        open(&self.folder)
    }

    /// Waits until the recording is as wanted.
    pub(crate) fn wait(&self, what: &str, is: impl Fn(&Recording) -> bool) -> Recording {
        let began = Instant::now();
        loop {
            let recording = open(&self.folder);
            if is(&recording) {
                return recording;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{what}: {recording:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the one exchange is cut, and gives why.
    pub(crate) fn wait_for_cut(&self) -> String {
        let reason = |recording: &Recording| match recording.exchanges() {
            [exchange] => match exchange.outcome() {
                Outcome::Cut { reason } => Some(reason),
                _ => None,
            },
            _ => None,
        };
        reason(&self.wait("a cut exchange", |recording| reason(recording).is_some())).unwrap()
    }
}

fn open(folder: &Path) -> Recording {
    Recording::open(folder).unwrap().unwrap()
}
