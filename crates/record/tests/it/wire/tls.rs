//! A provider with TLS and HTTP/2, whose certificate an authority of the test's own has signed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    convert::Infallible,
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    pin::Pin,
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    task::{Context, Poll, ready},
    thread,
    time::{Duration, Instant},
};

use afterimage_record::{Exchange, Outcome, Recording};
use bytes::Bytes;
use hyper::{
    Request, Response,
    body::{Body, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

use super::{
    kills::{FOLDER, UPSTREAM},
    support::Message,
};

/// The provider answers no more calls of a connection at a time.
const MOST_STREAMS: u32 = 40;
const CALLS: usize = 90;
/// The bytes of a header, which are more than most clients take.
const LONG: usize = 100_000;

/// An authority, and a configuration with a certificate of it for `localhost`.
fn authority() -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (issuer.pem(), config)
}

/// An answer: an event, another once every call has come so far, and its end.
struct Answer {
    number: u32,
    others: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.number += 1;
        if self.number == 2
            && let Some(others) = &mut self.others
        {
            if others.as_mut().poll(context).is_pending() {
                self.number -= 1;
                return Poll::Pending;
            }
            self.others = None;
        }
        let event = format!("data: {}\n\n", self.number);
        Poll::Ready((self.number <= 2).then(|| Ok(Frame::data(Bytes::from(event)))))
    }
}

/// Reads a request, and answers by its path.
async fn answer(
    request: Request<Incoming>,
    all: Arc<Barrier>,
) -> Result<Response<Answer>, Infallible> {
    let (head, mut body) = request.into_parts();
    std::future::poll_fn(|context| {
        while ready!(Pin::new(&mut body).poll_frame(context)).is_some() {}
        Poll::Ready(())
    })
    .await;
    let wait = async move {
        all.wait().await;
    };
    let others = head.uri.path().ends_with("/together").then(|| Box::pin(wait) as _);
    let response = Response::builder().header("x-version", format!("{:?}", head.version));
    let response = match head.uri.path() {
        "/v1/short" => response.header("content-length", 1000),
        "/v1/long-head" => response.header("x-long", "x".repeat(LONG)),
        _ => response,
    };
    Ok(response.body(Answer { number: 0, others }).unwrap())
}

fn provider(config: ServerConfig) -> SocketAddr {
    let (said, address) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            said.send(listener.local_addr().unwrap()).unwrap();
            let (acceptor, all) =
                (TlsAcceptor::from(Arc::new(config)), Arc::new(Barrier::new(CALLS)));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, all) = (acceptor.clone(), Arc::clone(&all));
                tokio::spawn(async move {
                    // A client that does not trust it goes away.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| answer(request, Arc::clone(&all)));
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .max_concurrent_streams(MOST_STREAMS)
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
    });
    address.recv().unwrap()
}

/// A wire in a process that trusts the authorities of a file alone.
struct Trusting {
    child: Child,
    base: String,
}

impl Trusting {
    fn start(folder: &Path, authorities: &Path, upstream: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["wire::kills::child_passes_requests_on_until_it_is_killed", "--exact"])
            .arg("--nocapture")
            .env(FOLDER, folder)
            .env(UPSTREAM, upstream)
            .env("SSL_CERT_FILE", authorities)
            .env_remove("SSL_CERT_DIR")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let base = lines.find_map(|line| Some(line.split_once("base ")?.1.to_owned())).unwrap();
        Self { child, base }
    }

    /// Calls a path; `None` where the connection breaks off before an answer.
    fn post(&self, path: &str) -> Option<Message> {
        let (address, base) = self.base.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "POST /{base}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        Message::read(&mut BufReader::new(stream))
    }
}

impl Drop for Trusting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The outcomes so far, when there are as many.
fn outcomes(folder: &Path, wanted: usize) -> Vec<Outcome> {
    let began = Instant::now();
    loop {
        let recording = Recording::open(folder).unwrap().unwrap();
        let outcomes: Vec<Outcome> = recording.exchanges().iter().map(Exchange::outcome).collect();
        if outcomes.len() == wanted && !outcomes.contains(&Outcome::Running) {
            return outcomes;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{outcomes:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_provider_with_tls_is_reached_in_http_2_where_its_certificate_is_sound() {
    let scratch = tempfile::tempdir().unwrap();
    let (trusted, config) = authority();
    let address = provider(config);
    let upstream = format!("https://localhost:{}/v1", address.port());
    let file = scratch.path().join("ca.pem");
    fs::write(&file, trusted).unwrap();
    let folder = scratch.path().join("recording");
    let wire = Trusting::start(&folder, &file, &upstream);
    let got = wire.post("/responses").unwrap();
    assert_eq!((got.status(), got.header("x-version")), (200, Some("HTTP/2.0")));
    assert_eq!(got.body, b"data: 1\n\ndata: 2\n\n");
    let got = wire.post("/long-head").unwrap();
    assert_eq!((got.status(), got.header("x-long").map(str::len)), (200, Some(LONG)));
    // An answer that is shorter than it says is not whole, and neither is the client's.
    assert!(wire.post("/short").is_none_or(|got| !got.is_whole));
    let cut = Outcome::Cut { reason: "the upstream broke off".to_owned() };
    assert_eq!(outcomes(&folder, 3), [Outcome::Complete, Outcome::Complete, cut]);
    drop(wire);

    fs::write(&file, authority().0).unwrap();
    let folder = scratch.path().join("another");
    let wire = Trusting::start(&folder, &file, &upstream);
    assert_eq!(wire.post("/responses").unwrap().status(), 502);
    let refused = |why: &str| {
        let reason = format!("the certificate of the upstream is refused: {why}");
        [Outcome::Cut { reason }]
    };
    let unknown = "nobody signed it whom this system trusts; SSL_CERT_FILE names a file of those \
                   who sign";
    assert_eq!(outcomes(&folder, 1), refused(unknown));
    drop(wire);

    let folder = scratch.path().join("other-host");
    let (trusted, config) = authority();
    let address = self::provider(config);
    fs::write(&file, trusted).unwrap();
    let wire = Trusting::start(&folder, &file, &format!("https://127.0.0.1:{}", address.port()));
    assert_eq!(wire.post("/responses").unwrap().status(), 502);
    assert_eq!(outcomes(&folder, 1), refused("it is for another host"));
}

#[test]
fn more_calls_run_at_once_than_a_connection_of_http_2_takes() {
    let scratch = tempfile::tempdir().unwrap();
    let (trusted, config) = authority();
    let address = provider(config);
    let file = scratch.path().join("ca.pem");
    fs::write(&file, trusted).unwrap();
    let upstream = format!("https://localhost:{}/v1", address.port());
    let wire = Trusting::start(&scratch.path().join("recording"), &file, &upstream);
    thread::scope(|scope| {
        for _ in 0..CALLS {
            // No answer ends before every call has one.
            scope.spawn(|| assert!(wire.post("/together").unwrap().is_whole));
        }
    });
}
