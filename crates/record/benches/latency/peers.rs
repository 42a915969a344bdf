//! The provider, and what stands before it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use afterimage_record::{
    Limits, Outcome, Recording, RecordingWriter,
    wire::{Route, Upstream, Wire},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

const FOLDER: &str = "AFTERIMAGE_LATENCY_FOLDER";
const UPSTREAM: &str = "AFTERIMAGE_LATENCY_UPSTREAM";
/// So many events an answer has, one after the other after so long.
const EVENTS: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Streams events to whoever asks.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let (said, listening) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
                // As many as nginx and the wire take.
                let listener = socket.listen(1024).unwrap();
                said.send(listener.local_addr().unwrap()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream));
                }
            });
        });
        Self { address: listening.recv().unwrap() }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers the requests of a connection; `None` at its end.
async fn serve(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = tokio::io::BufReader::with_capacity(32 << 10, stream);
    loop {
        let (mut line, mut length, mut is_flood) = (String::new(), 0, false);
        loop {
            line.clear();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            is_flood |= line.contains("/flood ");
            let lower = line.trim_end().to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
            if lower.is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).await.ok()?;
        if is_flood { flood(&mut stream).await? } else { answer(&mut stream).await? }
    }
}

async fn answer(stream: &mut (impl AsyncWriteExt + Unpin)) -> Option<()> {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    for number in 0..EVENTS {
        let event =
            format!("data: {{\"number\": {number:03}, \"delta\": \"a few words more\"}}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let begin = if number == 0 { head } else { "" };
        stream.write_all(format!("{begin}{chunk}").as_bytes()).await.ok()?;
        tokio::time::sleep(PAUSE).await;
    }
    stream.write_all(b"0\r\n\r\n").await.ok()
}

/// Writes until nobody reads any more.
async fn flood(stream: &mut (impl AsyncWriteExt + Unpin)) -> Option<()> {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head).await.ok()?;
    let chunk = [b"8000\r\n".as_slice(), &vec![b'x'; 0x8000], b"\r\n"].concat();
    loop {
        stream.write_all(&chunk).await.ok()?;
    }
}

/// The wire, in a process of its own, as nginx is.
pub(crate) struct Recorder {
    child: Child,
    stdin: ChildStdin,
    pub(crate) base: String,
    folder: tempfile::TempDir,
}

impl Recorder {
    pub(crate) fn start(provider: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(FOLDER, folder.path().join("recording"))
            .env(UPSTREAM, format!("http://{provider}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut base = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Self { child, stdin, base: base.trim_end().to_owned(), folder }
    }

    /// Ends it, and says what it recorded.
    pub(crate) fn stop(mut self) -> String {
        let memory = peak(self.child.id());
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
        let recording = Recording::open(self.folder.path().join("recording")).unwrap().unwrap();
        let is_answer = |of: &&afterimage_record::Exchange| of.start.path == "/responses";
        let (mut all, mut whole) = (0, 0);
        for exchange in recording.exchanges().iter().filter(is_answer) {
            all += 1;
            whole += usize::from(exchange.outcome() == Outcome::Complete);
        }
        assert_eq!(all, whole, "of the exchanges some are cut");
        format!("{whole} exchanges are recorded whole; {memory}")
    }
}

/// The most memory that a process had, where the system tells.
fn peak(process: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    // Hundredths of seconds, as Linux counts them.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks: f64 = stat.split(' ').skip(13).take(2).filter_map(|of| of.parse::<f64>().ok()).sum();
    line.map_or_else(String::new, |peak| {
        format!("at most {} of memory, {:.1} s of CPU", peak.trim(), ticks / 100.0)
    })
}

/// What the process of a recorder does; false where this is none.
pub(crate) fn child() -> bool {
    let (Ok(folder), Ok(upstream)) = (std::env::var(FOLDER), std::env::var(UPSTREAM)) else {
        return false;
    };
    let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
    let recorder =
        afterimage_record::Recorder::start(Limits::default(), open, |said| panic!("{said}"));
    let route = Route::new("p", Upstream::parse(&upstream).unwrap());
    let mut wire =
        Wire::start("127.0.0.1:0".parse().unwrap(), vec![route], recorder.unwrap()).unwrap();
    println!("{}", wire.base_url("p").unwrap());
    let _ = std::io::stdin().read(&mut [0]);
    wire.stop().unwrap();
    true
}

/// nginx, with a folder and a port of its own.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) base: String,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// `None` where it is not installed.
    pub(crate) fn start(provider: SocketAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.path().display();
        let own = Command::new("id").arg("-un").output().ok()?;
        let own = String::from_utf8(own.stdout).ok()?;
        let user = if own.trim() == "root" { "user root;" } else { "" };
        let text = format!(
            "daemon off; {user} worker_processes 2; pid {path}/pid; error_log {path}/error.log;
            events {{ worker_connections 8192; }}
            http {{
                access_log off;
                client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;
                fastcgi_temp_path {path}/a; uwsgi_temp_path {path}/b; scgi_temp_path {path}/c;
                upstream provider {{ server {provider}; keepalive 2048; }}
                server {{
                    listen 127.0.0.1:{port} backlog=1024; keepalive_requests 1000000;
                    location / {{
                        proxy_pass http://provider; proxy_http_version 1.1;
                        proxy_set_header Connection \"\";
                        proxy_buffering off; proxy_request_buffering off;
                    }}
                }}
            }}"
        );
        fs::write(folder.path().join("nginx.conf"), text).unwrap();
        let child = ["nginx", "/usr/sbin/nginx"].iter().find_map(|program| {
            let mut command = Command::new(program);
            command.arg("-p").arg(folder.path()).arg("-c").arg("nginx.conf");
            command.stderr(Stdio::null()).spawn().ok()
        })?;
        let nginx = Self { child, base: format!("http://127.0.0.1:{port}"), _folder: folder };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(nginx);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it, where it is asked to.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
