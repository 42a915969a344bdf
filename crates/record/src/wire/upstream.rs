use std::{borrow::Cow, net::IpAddr};

use hyper::{Uri, http::uri::PathAndQuery};

use crate::{Error, ErrorKind, Result, allowed_path};

/// Where a provider is: the base URL that a client would be given without a recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    is_tls: bool,
    authority: String,
    path: String,
}

impl Upstream {
    /// Reads a base URL.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where it is none, where it is not https and not of loopback, and where it
    /// has a user, a password, parameters or a fragment. The message does not repeat them.
    ///
    /// ```
    /// use afterimage_record::wire::Upstream;
    ///
    /// assert!(Upstream::parse("https://api.anthropic.com").is_ok());
    /// assert!(Upstream::parse("http://127.0.0.1:8080/v1").is_ok());
    /// assert!(Upstream::parse("http://api.anthropic.com").is_err());
    /// ```
    pub fn parse(url: &str) -> Result<Self> {
        let refused =
            |message: &str| Error::new(ErrorKind::Shape, format!("the upstream {message}"));
        let uri: Uri = url.trim().parse().map_err(|_| refused("is no URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(refused("is no URL with a scheme and a host"));
        };
        if authority.as_str().contains('@') {
            return Err(refused("has a user or a password, which belong into a header"));
        }
        if uri.query().is_some() || url.contains('#') {
            return Err(refused("has parameters or a fragment, which no base URL has"));
        }
        let is_tls = match scheme {
            "https" => true,
            "http" if is_loopback(authority.host()) => false,
            "http" => return Err(refused("is not https, and not on loopback")),
            _ => return Err(refused("is neither https nor http")),
        };
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { is_tls, authority: authority.as_str().to_owned(), path })
    }

    /// Whether it is reached over TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The host, without its port.
    pub fn host(&self) -> &str {
        let end = match self.authority.rfind(':') {
            // Colons stand in an address of IPv6 too.
            Some(colon) if !self.authority.ends_with(']') => colon,
            _ => self.authority.len(),
        };
        self.authority.get(..end).unwrap_or_default()
    }

    /// The base URL as it may be shown: what may be a key in its path is not. O(length).
    pub fn shown(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, allowed_path(&self.path))
    }

    /// The path of the base URL, without a slash at its end.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The target of a request to a path there, with its parameters.
    pub(super) fn uri(&self, path: &str) -> Option<Uri> {
        let path: PathAndQuery = self.versioned(path).parse().ok()?;
        let scheme = if self.is_tls { "https" } else { "http" };
        let parts = Uri::builder().scheme(scheme).authority(self.authority.as_str());
        parts.path_and_query(path).build().ok()
    }
}

/// The API of Anthropic, whose base URL some clients give with its version and some without.
const ANTHROPIC: &str = "api.anthropic.com";

impl Upstream {
    /// A path as the provider has it: `/messages` becomes `/v1/messages` at Anthropic's own host. An
    /// upstream of anybody else stays as it was given.
    pub(super) fn versioned<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
        let lacks_version = path.strip_prefix("/messages").is_some_and(is_end);
        if lacks_version && self.path.is_empty() && self.host().eq_ignore_ascii_case(ANTHROPIC) {
            return format!("/v1{path}").into();
        }
        path.into()
    }
}

pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_https_or_loopback_and_holds_no_secret() {
        for url in [
            "https://api.openai.com/v1",
            "https://host:8443",
            "http://localhost:1234/a/b/",
            "http://[::1]:80/",
            "http://127.8.0.1",
        ] {
            assert!(Upstream::parse(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "api.openai.com/v1",
            "/v1",
            "http://api.openai.com",
            "http://127.0.0.1.example.com",
            "http://[::2]",
            "ftp://127.0.0.1",
            "https://user:planted@host/v1",
            "https://host/v1?key=planted",
            "https://host/v1#planted",
        ] {
            let error = Upstream::parse(url).unwrap_err();
            assert!(!error.to_string().contains("planted"), "{error}");
        }
    }

    #[test]
    fn messages_of_anthropic_get_their_version_and_those_of_others_stay() {
        for (base, path, expected) in [
            ("https://api.anthropic.com", "/messages", "/v1/messages"),
            ("https://API.anthropic.com:443/", "/messages?beta=true", "/v1/messages?beta=true"),
            ("https://api.anthropic.com", "/messages/count_tokens", "/v1/messages/count_tokens"),
            ("https://api.anthropic.com", "/v1/messages", "/v1/messages"),
            ("https://api.anthropic.com", "/messagesx", "/messagesx"),
            ("https://api.anthropic.com/v1", "/v1/messages", "/v1/messages"),
            ("https://gateway.example", "/messages", "/messages"),
            ("https://api.anthropic.com.example", "/messages", "/messages"),
            ("http://127.0.0.1:1", "/messages", "/messages"),
        ] {
            let uri = Upstream::parse(base).unwrap().uri(path).unwrap();
            assert_eq!(uri.path_and_query().unwrap().as_str(), expected, "{base}");
        }
    }

    #[test]
    fn what_may_be_a_key_in_a_base_url_is_not_shown() {
        let shown = |url: &str| Upstream::parse(url).unwrap().shown();
        assert_eq!(shown("https://api.openai.com/v1/"), "https://api.openai.com/v1");
        assert_eq!(shown("https://host:8443/planted/v1"), "https://host:8443/*/v1");
    }

    #[test]
    fn a_request_goes_to_the_host_of_the_base_url_alone() {
        let upstream = Upstream::parse("https://host:8443/base/").unwrap();
        assert_eq!(upstream.path(), "/base");
        let uri = upstream.uri("/base/messages?beta=true").unwrap();
        assert_eq!(uri.to_string(), "https://host:8443/base/messages?beta=true");
        for path in ["//other/x", "/@other/x", "/\\other"] {
            let host = upstream.uri(path).map(|uri| uri.host().unwrap_or_default().to_owned());
            assert!(host.is_none_or(|host| host == "host"), "{path}");
        }
    }
}
