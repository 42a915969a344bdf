//! The connections to providers.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use hyper::{Request, Response, Uri, body::Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tower_service::Service;

use super::{MOST_HEADERS, passing::RequestBody, proxy::ProxiedConnector, websocket};
use crate::{Error, ErrorKind, Result};

/// How long a connection to a provider may take, its certificate checked: clients wait this long for
/// their own.
const CONNECT: Duration = Duration::from_secs(15);
/// After so long without a word a connection is asked whether it is still there.
const ALIVE: Duration = Duration::from_secs(15);
/// So many calls share a connection of HTTP/2. A provider answers no more than its limit at a time,
/// which is 100 for most, and the next would wait for the end of another answer.
const MOST_CALLS: usize = 32;
/// What a call may send ahead, and all of a connection together: a client that stops reading does not
/// stop the others.
const WINDOW: u32 = 2 << 20;
const WINDOW_OF_ALL: u32 = WINDOW * MOST_CALLS as u32;

/// What all headers of an answer in HTTP/2 may take.
const MOST_HEADER_BYTES: u32 = 1 << 20;

type Client = legacy::Client<Connector, RequestBody>;
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(super) type Connector = ConnectTimeout<HttpsConnector<ProxiedConnector>>;

/// Speaks HTTP/2 and HTTP/1.1, and checks certificates by those of the system.
pub(super) struct Clients {
    connector: Connector,
    /// Opens WebSockets.
    pub(super) sockets: websocket::Client,
    pools: Mutex<Vec<Arc<Pool>>>,
}

/// Some connections, of which each provider with HTTP/2 has one.
struct Pool {
    client: Client,
    calls: AtomicUsize,
}

/// A call on its way. Its place is free again when it is dropped.
pub(super) struct Call(Arc<Pool>);

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl Clients {
    /// # Errors
    /// [`ErrorKind::Io`] where there are no certificates, and an upstream needs some;
    /// [`ErrorKind::Shape`] where the environment names no proxy with what should name one.
    pub(super) fn new(is_tls: bool) -> Result<Self> {
        Self::within(is_tls, CONNECT)
    }

    /// As [`Clients::new`], with so long for a connection.
    fn within(is_tls: bool, connect: Duration) -> Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(connect));
        http.set_keepalive(Some(ALIVE));
        let http = ProxiedConnector::from_env(http, is_tls)?;
        let config = config(is_tls)?;
        let https = || HttpsConnectorBuilder::new().with_tls_config(config.clone()).https_or_http();
        let sockets = https().enable_http1().wrap_connector(http.clone());
        let sockets = ConnectTimeout { connector: sockets, limit: connect };
        let connector = https().enable_all_versions().wrap_connector(http);
        let connector = ConnectTimeout { connector, limit: connect };
        let sockets = websocket::client(sockets);
        Ok(Self { connector, sockets, pools: Mutex::default() })
    }

    /// A place for a call.
    pub(super) fn call(&self) -> Call {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |pool: &&Arc<Pool>| pool.calls.load(Ordering::Relaxed) < MOST_CALLS;
        let free = pools.iter().find(is_free).map(Arc::clone);
        let pool = free.unwrap_or_else(|| {
            let pool = Arc::new(Pool { client: self.client(), calls: AtomicUsize::new(0) });
            pools.push(Arc::clone(&pool));
            pool
        });
        pool.calls.fetch_add(1, Ordering::Relaxed);
        Call(pool)
    }

    fn client(&self) -> Client {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        // A connection that died silently, as after a change of network, is not used again.
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http1_max_headers(MOST_HEADERS)
            .http2_max_header_list_size(MOST_HEADER_BYTES)
            .http2_keep_alive_interval(ALIVE)
            .http2_keep_alive_timeout(ALIVE)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW_OF_ALL);
        builder.build(self.connector.clone())
    }
}

impl Call {
    /// Sends a request.
    ///
    /// # Errors
    /// Those of the client.
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> std::result::Result<Response<Incoming>, legacy::Error> {
        self.0.client.request(request).await
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

fn config(is_tls: bool) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if is_tls {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if let Some(why) = missing_file(&found.errors) {
            return Err(Error::new(ErrorKind::Io, why));
        }
        if roots.is_empty() {
            let message = "there is no certificate to check an upstream by: install those of the \
                           system, or name a file with some in SSL_CERT_FILE";
            return Err(Error::new(ErrorKind::Io, message));
        }
    }
    Ok(ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Other, error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// What is wrong with the file that `SSL_CERT_FILE` names, where it cannot be read: other certificates
/// than those that it asks for would be no answer to that.
fn missing_file(errors: &[rustls_native_certs::Error]) -> Option<String> {
    let named = std::env::var_os("SSL_CERT_FILE")?;
    errors.iter().find_map(|error| match &error.kind {
        rustls_native_certs::ErrorKind::Io { inner, path } if path.as_os_str() == named => Some(
            format!("SSL_CERT_FILE names a file that cannot be read: {}: {inner}", path.display()),
        ),
        _ => None,
    })
}

/// A connector that gives up: one that waits for a certificate would wait as long as its client.
#[derive(Clone)]
pub(super) struct ConnectTimeout<C> {
    connector: C,
    limit: Duration,
}

impl<C> Service<Uri> for ConnectTimeout<C>
where
    C: Service<Uri, Error = BoxError>,
    C::Future: Send + 'static,
    C::Response: 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<std::result::Result<(), Self::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = tokio::time::timeout(self.limit, self.connector.call(uri));
        Box::pin(async move {
            match connected.await {
                Ok(connected) => connected,
                Err(late) => Err(late.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::{
        runtime::Builder,
        time::{error::Elapsed, timeout},
    };

    use super::*;

    #[test]
    fn a_provider_that_takes_a_connection_and_says_nothing_is_given_up() {
        // The system takes the connection, and nobody speaks TLS.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri: Uri = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clients = Clients::within(false, Duration::from_millis(50)).unwrap();
            let connected = clients.connector.clone().call(uri);
            let connected = timeout(Duration::from_secs(60), connected).await.unwrap();
            assert!(connected.err().unwrap().is::<Elapsed>());
        });
    }
}
