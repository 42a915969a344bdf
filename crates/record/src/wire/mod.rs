//! A listener on loopback that passes requests on to a provider, and records both ways.
//!
//! ```no_run
//! use afterimage_record::{
//!     Limits, Recorder, RecordingWriter,
//!     wire::{Route, Upstream, Wire},
//! };
//!
//! let open = || Ok(RecordingWriter::open_private("recording")?.0);
//! let recorder = Recorder::start(Limits::default(), open, |said| eprintln!("{said}"))?;
//! let openai = Route::new("openai", Upstream::parse("https://api.openai.com/v1")?);
//! let mut wire = Wire::start("127.0.0.1:0".parse().unwrap(), vec![openai], recorder)?;
//! // What an agent is given in place of `https://api.openai.com/v1`.
//! println!("OPENAI_BASE_URL={}", wire.base_url("openai").unwrap());
//! wire.stop()?;
//! # Ok::<(), afterimage_record::Error>(())
//! ```
//!
//! It is a wire and not a party: bodies and answers pass byte for byte, as they come. Headers pass
//! but for those of one connection (`connection`, `transfer-encoding` and their like); names are
//! written in lower case. Clients speak HTTP/1.1, the provider HTTP/2 or HTTP/1.1, as it prefers.
//! Redirects are passed on and not followed.
//!
//! A [WebSocket](websocket) is copied both ways. What a client asks for in it, with what it is
//! answered, is an exchange.
//!
//! A client reaches a provider through a path of its own that holds a random token of 128 bits. A
//! request with a foreign `Host`, with an `Origin`, with a target in absolute form, with two lengths,
//! or that asks for a tunnel, is refused.

mod client;
mod forward;
mod guard;
mod interrupt;
mod lingering;
mod passing;
mod proxy;
mod unanswered;
mod upstream;
mod watched;
pub mod websocket;

use std::{
    collections::HashSet,
    fmt,
    fmt::Write as _,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
};

use self::{client::Clients, passing::Patience, watched::WatchedStream};
pub use self::{interrupt::Interrupt, upstream::Upstream};
use crate::{Error, ErrorKind, Recorder, Result};

/// So many threads pass bytes on.
const THREADS: usize = 2;
/// So many connections may wait to be taken. With fewer, a client of a burst tries again a second later.
const BACKLOG: u32 = 1024;
/// What still runs when the wire is stopped has so long to end.
const LAST: Duration = Duration::from_millis(200);
/// After an error of accepting, as where no file can be opened, the next try waits so long.
const PAUSE: Duration = Duration::from_millis(20);
/// A head has no more headers.
const MOST_HEADERS: usize = 1_000;

/// A provider that is reached through the wire.
#[derive(Clone, Debug)]
pub struct Route {
    name: String,
    upstream: Upstream,
    check: Option<KeyCheck>,
}

/// Says of a request why the key in it must not go to a provider, if it must not.
#[derive(Clone)]
pub struct KeyCheck(Arc<CheckKey>);

type CheckKey = dyn Fn(&str) -> Option<String> + Send + Sync;

impl KeyCheck {
    /// A check by a function: the reason, where there is one. It is called for each request, with what
    /// may hold a key: the path with its parameters and the value of each header, on a line each.
    pub fn new(check: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for KeyCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCheck")
    }
}

impl Route {
    /// A provider under a name, which stands in the path and in the recording. Of the name only
    /// letters, digits, `-` and `.` are kept. O(length of the name).
    pub fn new(name: &str, upstream: Upstream) -> Self {
        let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let name: String = name.chars().filter(is_kept).collect();
        // A client would take `..` for a way up.
        Self { name: name.trim_matches('.').to_owned(), upstream, check: None }
    }

    /// The route with a check of the keys of its requests: one that is refused is answered with 401
    /// and the reason, which is recorded and told; the key is neither passed on nor written down.
    pub fn with_key_check(self, check: KeyCheck) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Whether the keys of its requests are checked.
    pub fn is_guarded(&self) -> bool {
        self.check.is_some()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A listener that is running. It stops when it is dropped.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    routes: Vec<(String, String)>,
    recorder: Arc<Recorder>,
    runtime: Option<Runtime>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    token: String,
    routes: Vec<Route>,
    clients: Clients,
    patience: Patience,
    recorder: Arc<Recorder>,
    /// What was said once.
    said: Mutex<HashSet<String>>,
}

impl Shared {
    /// Tells why there is no answer, where that is not the provider's own affair.
    fn tell_unanswered(&self, route: &str, reason: &str) {
        if unanswered::is_told(reason) {
            self.tell(route, reason);
        }
    }

    /// Tells what went wrong with a route, once.
    fn tell(&self, route: &str, what: &str) {
        let text = format!("{route}: {what}");
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(text.clone()) {
            self.recorder.tell(text);
        }
    }
}

impl Wire {
    /// Starts to listen at an address of loopback; port 0 takes a free one.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an address that is not of loopback, for two routes of one name, and
    /// where `HTTPS_PROXY` or `ALL_PROXY` names no proxy,
    /// [`ErrorKind::Io`] where the system refuses the address, or has no certificates that an upstream
    /// with https could be checked by.
    pub fn start(listen: SocketAddr, routes: Vec<Route>, recorder: Recorder) -> Result<Self> {
        if !listen.ip().is_loopback() {
            let message = format!("expected an address of loopback, found {}", listen.ip());
            return Err(Error::new(ErrorKind::Shape, message));
        }
        check_names(&routes)?;
        let failed = |error| Error::io(error, format!("cannot listen at {listen}"));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("wire")
            .enable_all()
            .build()
            .map_err(|error| Error::io(error, "cannot start threads"))?;
        let inside = runtime.enter();
        let listener = bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let clients = Clients::new(routes.iter().any(|route| route.upstream.is_tls()))?;
        let token = token()?;
        let base = |route: &Route| {
            let Route { name, upstream, .. } = route;
            (name.clone(), format!("http://{address}/{token}/{name}{}", upstream.path()))
        };
        let bases = routes.iter().map(base).collect();
        let recorder = Arc::new(recorder);
        let patience = Patience::default();
        let (said, of_shared) = (Mutex::default(), Arc::clone(&recorder));
        let shared =
            Shared { address, token, routes, clients, patience, recorder: of_shared, said };
        runtime.spawn(accept(listener, Arc::new(shared)));
        drop(inside);
        Ok(Self { address, routes: bases, recorder, runtime: Some(runtime) })
    }

    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL that an agent is given in place of that of the provider with this name.
    /// O(routes).
    pub fn base_url(&self, route: &str) -> Option<&str> {
        let found = self.routes.iter().find(|(name, _)| name == route);
        found.map(|(_, url)| url.as_str())
    }

    /// How many exchanges are in the recording: see [`Recorder::exchanges`].
    pub fn exchanges(&self) -> u64 {
        self.recorder.exchanges()
    }

    /// How many of them asked a model: see
    /// [`RecorderOptions::is_for_model`](crate::RecorderOptions::is_for_model).
    pub fn exchanges_for_model(&self) -> u64 {
        self.recorder.exchanges_for_model()
    }

    /// Calls `act` for each signal that asks the process to end, which does not end it any more.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the system does not hand over signals.
    pub fn on_interrupt(&self, act: impl Fn(Interrupt) + Send + Sync + 'static) -> Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let _inside = runtime.enter();
        let act: interrupt::Act = Arc::new(act);
        interrupt::listen(&act).map_err(|error| Error::io(error, "cannot listen for signals"))
    }

    /// Stops listening, cuts what still runs after a moment, and writes what is to be recorded.
    /// Dropping does the same. Does nothing the second time.
    ///
    /// # Errors
    /// Those of [`Recorder::finish`].
    pub fn stop(&mut self) -> Result<()> {
        let Some(runtime) = self.runtime.take() else { return Ok(()) };
        // An answer whose client has all of it ends by itself.
        std::thread::sleep(LAST);
        // Looking up a name cannot be ended, and is not waited for.
        runtime.shutdown_timeout(LAST);
        self.recorder.finish()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Listens, inside of a runtime.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Elsewhere it would let two programs listen at one port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn check_names(routes: &[Route]) -> Result<()> {
    for (at, route) in routes.iter().enumerate() {
        let is_other = |other: &Route| other.name == route.name;
        if route.name.is_empty() || routes.iter().take(at).any(is_other) {
            let message =
                format!("expected a name of its own for each route, found {:?}", route.name);
            return Err(Error::new(ErrorKind::Shape, message));
        }
    }
    Ok(())
}

/// 128 random bits.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::getrandom(&mut bytes).map_err(|error| {
        Error::new(ErrorKind::Io, format!("the system has no random bytes: {error}"))
    })?;
    let mut token = String::with_capacity(32);
    for byte in bytes {
        let _ = write!(token, "{byte:02x}");
    }
    Ok(token)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Small events go out at once.
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let (stream, watch) = WatchedStream::new(stream);
    let service =
        service_fn(move |request| forward::answer(Arc::clone(&shared), watch.clone(), request));
    // What goes wrong with a connection, its client sees.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}
