//! A proxy before a server, which loses what it is told to lose, and may pass it off as another one.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// What is to be lost next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    /// What the server says for a moment after it was last spoken to.
    Answers,
    /// The same, and then the connection.
    AnswersAndConnection,
    /// The connection, once the server has said so many bytes more.
    ConnectionAfter(usize),
    /// Everything that the server says, until told otherwise.
    Everything,
}

pub struct Proxy {
    port: u16,
    loss: Arc<Mutex<Loss>>,
    losses: Arc<AtomicU64>,
    version: Arc<Mutex<Option<String>>>,
}

impl Proxy {
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (loss, losses) = (Arc::new(Mutex::new(Loss::Nothing)), Arc::new(AtomicU64::new(0)));
        let version = Arc::new(Mutex::new(None));
        let (of_threads, count) = (Arc::clone(&loss), Arc::clone(&losses));
        let of_connections = Arc::clone(&version);
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let version: Option<String> = of_connections.lock().unwrap().clone();
                if let Some(version) = version {
                    introduce(&mut server, &client, &version);
                }
                let (client_in, server_in) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || forward(client_in, server_in));
                let (loss, count) = (Arc::clone(&of_threads), Arc::clone(&count));
                thread::spawn(move || answer(server, client, &loss, &count));
            }
        });
        Self { port, loss, losses, version }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn lose(&self, what: Loss) {
        *self.loss.lock().unwrap() = what;
    }

    /// Lets the server be of this version, for connections from now on.
    pub fn pretend(&self, version: Option<&str>) {
        *self.version.lock().unwrap() = version.map(str::to_owned);
    }

    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }
}

/// Hands on what a server says of itself, but for its version.
fn introduce(server: &mut TcpStream, mut client: &TcpStream, version: &str) {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        if server.read_exact(&mut byte).is_err() {
            return;
        }
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    let (before, rest) = line.split_once("\"version\":\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let _ = write!(client, "{before}\"version\":\"{version}\"{after}");
}

fn forward(mut client: TcpStream, mut server: TcpStream) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}

fn answer(mut server: TcpStream, mut client: TcpStream, loss: &Mutex<Loss>, losses: &AtomicU64) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = server.read(&mut buffer) {
        let mut now = loss.lock().unwrap();
        let what = *now;
        match what {
            Loss::Nothing => {}
            Loss::ConnectionAfter(left) if left > read => {
                *now = Loss::ConnectionAfter(left - read);
            }
            Loss::Everything => {
                losses.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            Loss::Answers => {
                losses.fetch_add(1, Ordering::Relaxed);
                *now = Loss::Nothing;
                // A part of a message would break the connection: all that comes at once is lost.
                drop(now);
                server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                while let Ok(1..) = server.read(&mut buffer) {}
                server.set_read_timeout(None).unwrap();
                continue;
            }
            Loss::AnswersAndConnection | Loss::ConnectionAfter(_) => {
                losses.fetch_add(1, Ordering::Relaxed);
                *now = Loss::Nothing;
                break;
            }
        }
        drop(now);
        if client.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}
