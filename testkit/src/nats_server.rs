//! Real servers for tests: each with its own ports on loopback and its own store, stopped at the end.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    ops::Range,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// The server's program: the one that `AFTERIMAGE_NATS_SERVER` names, or the one on the path, if it
/// is 2.11 or newer. Without one the test that needs it passes with a note, unless
/// `AFTERIMAGE_REQUIRE_NATS` is set.
pub fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| {
        let named = env::var_os("AFTERIMAGE_NATS_SERVER").map(PathBuf::from);
        let program = named.unwrap_or_else(|| PathBuf::from("nats-server"));
        let output = Command::new(&program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.trim().rsplit_once('v')?.1;
        let mut numbers = version.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
        let version = (numbers.next()?, numbers.next()?);
        (version >= (2, 11)).then_some(program)
    });
    if found.is_none() {
        let reason = "no nats-server of version 2.11 or newer: ./scripts/test installs one";
        assert!(env::var_os("AFTERIMAGE_REQUIRE_NATS").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
    }
    found.as_deref()
}

/// A port that nobody has, below those that Linux gives to whoever asks for any. So nobody else is
/// likely to take it before its server does, or while that server is restarted. Processes begin to
/// look at different places.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let first = process::id().wrapping_mul(16);
    (0..PORTS.len())
        .find_map(|_| {
            let place = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
            let port = PORTS.start + u16::try_from(place % PORTS.len() as u32).ok()?;
            TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
        })
        .expect("a free port")
}

const PORTS: Range<u16> = 12_000..32_000;

pub struct Server {
    child: Option<Child>,
    pub port: u16,
    folder: tempfile::TempDir,
    /// The account on a server that others use too.
    account: Option<String>,
}

/// Of each account on a server that `scripts/with-nats` started.
const PASSWORD: &str = "test";

/// A port, and an account that no other test has: `scripts/with-nats` makes a file for each, and
/// whoever removes it has it.
fn shared_account() -> Option<(u16, String)> {
    let place = env::var("AFTERIMAGE_NATS_SHARED").ok()?;
    let (port, accounts) = place.split_once(':')?;
    let port = port.parse().ok()?;
    let free =
        fs::read_dir(accounts).ok()?.flatten().find(|file| fs::remove_file(file.path()).is_ok());
    Some((port, free?.file_name().to_str()?.to_owned()))
}

impl Server {
    /// An account of its own on the server that `scripts/with-nats` started, else a server by
    /// itself. For tests that neither stop their server nor stand between it and a client.
    pub fn shared() -> Self {
        let Some((port, account)) = shared_account() else { return Self::start() };
        Self { child: None, port, folder: tempfile::tempdir().unwrap(), account: Some(account) }
    }

    /// A server by itself.
    pub fn start() -> Self {
        Self::with("", "sync_interval: always", "")
    }

    /// A server whose storage is configured in some further way.
    pub fn with(name: &str, jetstream: &str, more: &str) -> Self {
        Self::inside(tempfile::tempdir().unwrap(), name, jetstream, more)
    }

    /// A server that keeps everything in this folder.
    pub fn inside(folder: tempfile::TempDir, name: &str, jetstream: &str, more: &str) -> Self {
        let port = free_port();
        let store = folder.path().join("store");
        let name = if name.is_empty() { "alone" } else { name };
        let config = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\"\n{jetstream} }}\n{more}\n",
            store.display()
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut server = Self { child: None, port, folder, account: None };
        server.restart();
        server
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The name and the password of a test on a server that others use too.
    pub fn user(&self) -> Option<(String, String)> {
        self.account.clone().map(|account| (account, PASSWORD.to_owned()))
    }

    /// Kills the server, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a server that was killed, with its store and its port.
    pub fn restart(&mut self) {
        assert!(self.account.is_none(), "others use this server");
        self.kill();
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let child = Command::new(program().expect("a server"))
            .arg("--config")
            .arg(self.folder.path().join("config"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        self.wait();
    }

    /// Waits until the server speaks.
    fn wait(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) && self.is_running() {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                let mut line = String::new();
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
                if BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO") {
                    return;
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("the server did not start: {log}");
    }

    fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Servers that keep everything three times.
pub fn cluster() -> Vec<Server> {
    let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
    let urls: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    (0..3)
        .map(|n| {
            let more = format!(
                "cluster {{ name: c\nlisten: \"127.0.0.1:{}\"\nroutes: {urls:?} }}",
                routes[n]
            );
            Server::with(&format!("n{n}"), "", &more)
        })
        .collect()
}
