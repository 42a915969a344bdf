//! The proxy that `HTTPS_PROXY` names: companies let nothing out but through theirs.

use std::{
    error::Error as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

use super::{client::BoxError, upstream::is_loopback};
use crate::{Error, ErrorKind, Result};

/// Connects to a provider, through the proxy of the environment where there is one. What is on
/// loopback, and what `NO_PROXY` names, is reached without.
#[derive(Clone, Debug)]
pub(super) struct ProxiedConnector {
    http: HttpConnector,
    proxies: Arc<Matcher>,
    /// The variable that names the proxy.
    name: &'static str,
}

/// Why a proxy leads nowhere.
#[derive(Debug)]
pub(super) struct ProxyError(pub(super) String);

impl std::fmt::Display for ProxyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProxyError {}

impl ProxiedConnector {
    /// With what `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in either case of letters. One that is
    /// empty says nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where it is used, and the first of them names no proxy. Its value is not repeated, since it
    /// may hold a password.
    pub(super) fn from_env(http: HttpConnector, is_used: bool) -> Result<Self> {
        let value = |name: &'static str| {
            let value = std::env::var_os(name)?.to_string_lossy().trim().to_owned();
            Some((name, value)).filter(|(_, value)| !value.is_empty())
        };
        let mut proxies = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter();
        let (name, proxy) = proxies.find_map(value).unwrap_or_default();
        let (_, no) = ["NO_PROXY", "no_proxy"].into_iter().find_map(value).unwrap_or_default();
        if is_used && !name.is_empty() && !names_proxy(&proxy) {
            let message = format!("{name} names no proxy: expected http://HOST:PORT");
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let proxies = Matcher::builder().https(proxy).no(no).build();
        Ok(Self { http, proxies: Arc::new(proxies), name })
    }

    #[cfg(test)]
    pub(super) fn with(http: HttpConnector, proxies: Matcher) -> Self {
        Self { http, proxies: Arc::new(proxies), name: "HTTPS_PROXY" }
    }
}

impl Service<Uri> for ProxiedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future =
        Pin<Box<dyn Future<Output = std::result::Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_away = uri.scheme_str() == Some("https") && !uri.host().is_some_and(is_loopback);
        let Some(proxy) = self.proxies.intercept(&uri).filter(|_| is_away) else {
            let connected = self.http.call(uri);
            return Box::pin(async move { Ok(connected.await?) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            // Its password would go out in clear.
            let refused = format!("the proxy of {} is not one of http://HOST:PORT", self.name);
            let refused = ProxyError(refused);
            return Box::pin(async move { Err(refused.into()) });
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), self.http.clone());
        let mut tunnel = match proxy.basic_auth() {
            Some(auth) => tunnel.with_auth(auth.clone()),
            None => tunnel,
        };
        let (connected, name) = (tunnel.call(uri), self.name);
        Box::pin(async move {
            connected.await.map_err(|error| {
                let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                ProxyError(format!("the proxy of {name} makes no connection: {why}")).into()
            })
        })
    }
}

/// Whether a value names a proxy, of whatever protocol: a host, with a port where it has no scheme.
fn names_proxy(value: &str) -> bool {
    let target = Uri::from_static("https://host");
    let is_known = Matcher::builder().https(value).build().intercept(&target).is_some();
    let Ok(uri) = value.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    let is_bare = uri.authority().is_some_and(|of| of.as_str().ends_with(host));
    let is_whole = uri.port_u16().is_some() || uri.scheme().is_some() && is_bare;
    is_known && is_whole && !host.is_empty()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        thread,
    };

    use tokio::runtime::Builder;

    use super::*;

    /// Asks for a connection through a proxy that answers so. Gives the error, and what it was asked.
    fn connect(target: &str, answer: &'static str) -> (Option<String>, Vec<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map(std::result::Result::unwrap);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(answer.as_bytes()).unwrap();
            head
        });
        let url = format!("http://user:planted@{address}");
        let proxies = Matcher::builder().https(url).no("direct.example").build();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let mut connector = ProxiedConnector::with(http, proxies);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let connected = runtime.block_on(connector.call(target.parse().unwrap()));
        let error = connected.err().map(|error| error.to_string());
        if error.as_ref().is_some_and(|error| !error.contains("proxy")) {
            // It was not asked.
            drop(std::net::TcpStream::connect(address));
        }
        (error, proxy.join().unwrap())
    }

    #[test]
    fn a_provider_is_reached_through_the_proxy_of_the_environment() {
        let (error, head) = connect("https://api.example/v1", "HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(error, None);
        assert_eq!(head[0], "CONNECT api.example:443 HTTP/1.1");
        assert!(
            head.iter().any(|line| line.to_lowercase().starts_with("proxy-authorization: basic "))
        );
    }

    #[test]
    fn a_proxy_that_refuses_is_named() {
        let (error, _) =
            connect("https://api.example", "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        let error = error.unwrap();
        assert!(error.contains("the proxy of HTTPS_PROXY makes no connection"), "{error}");
        assert!(!error.contains("planted"), "{error}");
    }

    #[test]
    fn what_names_no_proxy_is_told_from_what_does() {
        for (value, expected) in [
            ("http://proxy.example:3128", true),
            ("http://user:planted@proxy.example:3128/", true),
            ("HTTP://[::1]:8080", true),
            ("https://proxy.example", true),
            ("socks5://127.0.0.1:1080", true),
            ("localhost:3128", true),
            ("garbage", false),
            ("not a url", false),
            ("http://", false),
            ("http://:80", false),
            ("http://host:99999", false),
            ("http://host:port", false),
            ("ftp://host:1", false),
            ("/etc/proxy", false),
        ] {
            assert_eq!(names_proxy(value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_on_loopback_is_reached_without_a_proxy() {
        let (error, head) = connect("https://127.0.0.1:1/", "");
        assert!(error.is_some() && head.is_empty(), "{error:?} {head:?}");
    }
}
