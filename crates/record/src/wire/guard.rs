//! Which requests are refused before anything of them is passed on.

use std::{
    iter,
    net::{IpAddr, SocketAddr},
};

use hyper::{
    HeaderMap, Method, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, ORIGIN, UPGRADE},
};

use super::websocket;

/// Why a request is refused.
pub(super) type Refusal = (StatusCode, &'static str);

/// Where a request goes: the name of the route, and the path behind it with its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'u> {
    pub(super) route: &'u str,
    pub(super) path: &'u str,
}

/// Checks what any page of a browser, or a confused client, could send.
pub(super) fn check(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    listener: SocketAddr,
) -> Result<(), Refusal> {
    if *method == Method::CONNECT {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "it makes no tunnels"));
    }
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err((StatusCode::BAD_REQUEST, "the target is in absolute form"));
    }
    let mut hosts = headers.get_all(HOST).iter();
    let is_own = hosts.next().is_some_and(|host| is_own_host(host.as_bytes(), listener));
    if !is_own || hosts.next().is_some() {
        return Err((StatusCode::FORBIDDEN, "the host is not this listener"));
    }
    if headers.contains_key(ORIGIN) {
        return Err((StatusCode::FORBIDDEN, "a page of a browser sent it"));
    }
    if headers.contains_key(UPGRADE) && !websocket::is_handshake(method, headers) {
        return Err((
            StatusCode::UPGRADE_REQUIRED,
            "no protocol but that of WebSockets is passed on",
        ));
    }
    Ok(())
}

/// Whether a host is that of the listener. At port 80 clients leave the port out.
fn is_own_host(host: &[u8], listener: SocketAddr) -> bool {
    let address = match listener.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let is = |name: &str| host.eq_ignore_ascii_case(name.as_bytes());
    let names = ["127.0.0.1", "localhost", "[::1]", &address];
    names
        .iter()
        .any(|name| is(&format!("{name}:{}", listener.port())) || listener.port() == 80 && is(name))
}

/// Takes a target apart; `None` where its first part is not the token.
pub(super) fn target<'u>(uri: &'u Uri, token: &str) -> Option<Target<'u>> {
    let whole = uri.path_and_query()?.as_str();
    let (found, rest) = whole.strip_prefix('/')?.split_once('/')?;
    if !is_same(found.as_bytes(), token.as_bytes()) {
        return None;
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (route, path) = rest.split_at_checked(end)?;
    Some(Target { route, path })
}

/// What of a request may hold a key besides its body: its path, its parameters and the value of each
/// header, on a line each.
pub(super) fn carriers(path: &str, headers: &HeaderMap) -> String {
    let values = headers.values().map(|value| String::from_utf8_lossy(value.as_bytes()));
    iter::once(path.into()).chain(values).collect::<Vec<_>>().join("\n")
}

/// Whether a request is signed for its host, as those of AWS are: by a header, or by its parameters.
pub(super) fn is_signed(uri: &Uri, headers: &HeaderMap) -> bool {
    let header = headers.get(AUTHORIZATION).map(hyper::http::HeaderValue::as_bytes);
    header.is_some_and(|value| value.starts_with(b"AWS4-"))
        || uri.query().is_some_and(|query| query.contains("X-Amz-Signature="))
}

/// Compares in a time that does not tell how much is the same.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_for_its_host_is_known() {
        let signed = |uri: &str, key: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, key.parse().unwrap());
            is_signed(&uri.parse().unwrap(), &headers)
        };
        assert!(signed("/model/m/converse", "AWS4-HMAC-SHA256 Credential=planted"));
        assert!(signed("/model/m/converse?X-Amz-Signature=planted", "x"));
        assert!(!signed("/model/m/converse", "Bearer bedrock-api-key-planted"));
    }

    fn refused(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let (method, uri) = (method.parse().unwrap(), uri.parse().unwrap());
        check(&method, &uri, &map, ([127, 0, 0, 1], 7).into())
            .err()
            .map(|(status, _)| status.as_u16())
    }

    #[test]
    fn what_is_no_request_of_an_own_client_is_refused() {
        let own = ("host", "127.0.0.1:7");
        assert_eq!(refused("POST", "/t/p/x", &[own]), None);
        assert_eq!(refused("GET", "/t/p/x", &[("host", "LOCALHOST:7")]), None);
        assert_eq!(refused("CONNECT", "example.com:443", &[own]), Some(405));
        assert_eq!(refused("GET", "http://127.0.0.1:7/t/p/x", &[own]), Some(400));
        for host in ["example.com", "127.0.0.1", "127.0.0.1:70", "127.0.0.1:7.example.com", ""] {
            assert_eq!(refused("GET", "/t/p/x", &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(refused("GET", "/t/p/x", &[]), Some(403));
        assert_eq!(refused("GET", "/t/p/x", &[own, own]), Some(403));
        assert_eq!(refused("GET", "/t/p/x", &[own, ("origin", "http://127.0.0.1:7")]), Some(403));
        assert_eq!(refused("GET", "/t/p/x", &[own, ("upgrade", "WebSocket")]), None);
        assert_eq!(refused("POST", "/t/p/x", &[own, ("upgrade", "websocket")]), Some(426));
        assert_eq!(refused("GET", "/t/p/x", &[own, ("upgrade", "h2c")]), Some(426));
        let both = [own, ("upgrade", "websocket"), ("upgrade", "h2c")];
        assert_eq!(refused("GET", "/t/p/x", &both), Some(426));
    }

    #[test]
    fn a_listener_is_known_by_its_own_address() {
        for (listener, host, expected) in [
            ("127.0.0.2:7", "127.0.0.2:7", true),
            ("127.0.0.2:7", "127.0.0.3:7", false),
            ("[::1]:7", "[::1]:7", true),
            ("127.0.0.1:80", "127.0.0.1", true),
            ("127.0.0.1:80", "LocalHost", true),
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("[::1]:80", "[::1]", true),
            ("127.0.0.1:80", "example.com", false),
            ("127.0.0.1:8080", "127.0.0.1", false),
        ] {
            let found = is_own_host(host.as_bytes(), listener.parse().unwrap());
            assert_eq!(found, expected, "{listener} {host}");
        }
    }

    #[test]
    fn the_token_comes_before_the_route() {
        let found = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            target(&uri, "secret").map(|of| (of.route.to_owned(), of.path.to_owned()))
        };
        let pair = |route: &str, path: &str| Some((route.to_owned(), path.to_owned()));
        assert_eq!(found("/secret/openai/v1/responses?a=b"), pair("openai", "/v1/responses?a=b"));
        assert_eq!(found("/secret/openai"), pair("openai", ""));
        assert_eq!(found("/secret/openai?a"), pair("openai", "?a"));
        for uri in
            ["/", "/secret", "/secre/openai/x", "/secrets/openai/x", "/SECRET/openai", "//secret/o"]
        {
            assert_eq!(found(uri), None, "{uri}");
        }
    }
}
