use std::{fmt, path::PathBuf, time::Duration};

use async_nats::ServerAddr;

use crate::{Error, ErrorKind, JournalOptions, Result};

/// Where a journal on JetStream is, and how it is kept.
///
/// ```
/// use afterimage_journal::{Credentials, NatsOptions};
///
/// let options = NatsOptions::new("nats://127.0.0.1:4222")
///     .named("harbour")
///     .replicated(3)
///     .with_credentials(Credentials::File("/etc/harbour.creds".into()));
/// assert_eq!(options.stream, "harbour_events");
/// assert_eq!(options.bucket, "harbour_snapshots");
/// ```
#[non_exhaustive]
#[derive(Clone)]
pub struct NatsOptions {
    /// The servers, as `nats://host:port`, or `tls://host:port` where the connection is to be
    /// encrypted whatever the server asks for, separated by commas. They hold no name and no password:
    /// addresses end up in errors and logs.
    pub servers: String,
    /// The stream of events: `afterimage_events` by default.
    pub stream: String,
    /// The bucket of snapshots, and the object store of large ones: `afterimage_snapshots` by
    /// default.
    pub bucket: String,
    /// How many servers keep each event, where the stream is not there yet: 1 by default. Three
    /// survive the loss of one.
    pub replicas: usize,
    /// How long events are kept, where the stream is not there yet: for ever by default.
    pub max_age: Option<Duration>,
    /// Whether what is not there is created: yes by default. Otherwise it is an error.
    pub creates: bool,
    /// Who this is.
    pub credentials: Credentials,
    /// How long one request may take: five seconds by default.
    pub timeout: Duration,
    /// What journals of all kinds have. At most 64 snapshots are kept: no bucket keeps more.
    pub journal: JournalOptions,
}

/// How many snapshots of a session a bucket can keep.
const MOST_KEPT: usize = 64;

impl NatsOptions {
    /// The defaults, for these servers.
    pub fn new(servers: impl Into<String>) -> Self {
        Self {
            servers: servers.into(),
            stream: "afterimage_events".to_owned(),
            bucket: "afterimage_snapshots".to_owned(),
            replicas: 1,
            max_age: None,
            creates: true,
            credentials: Credentials::None,
            timeout: Duration::from_secs(5),
            journal: JournalOptions::default(),
        }
    }

    /// Names stream and bucket `NAME_events` and `NAME_snapshots`.
    pub fn named(self, name: &str) -> Self {
        Self { stream: format!("{name}_events"), bucket: format!("{name}_snapshots"), ..self }
    }

    /// Creates what is not there with this many replicas.
    pub fn replicated(self, replicas: usize) -> Self {
        Self { replicas, ..self }
    }

    /// Creates what is not there so that events are dropped after so long.
    pub fn expiring(self, max_age: Duration) -> Self {
        Self { max_age: Some(max_age), ..self }
    }

    /// Opens what is there, and creates nothing.
    pub fn existing(self) -> Self {
        Self { creates: false, ..self }
    }

    /// Says who this is.
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Waits so long for the answer to a request.
    pub fn waiting(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets what journals of all kinds have.
    pub fn with(self, journal: JournalOptions) -> Self {
        Self { journal, ..self }
    }

    /// The servers.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where one has no host, or a scheme that is not spoken: its connection
    /// would be a plain one.
    pub(super) fn addresses(&self) -> Result<Vec<ServerAddr>> {
        let servers = self.servers.split(',').map(|server| {
            let server = server.trim();
            let refused = |reason: &str| {
                let message = format!(
                    "expected servers as nats://host:port or tls://host:port, found {server:?}{reason}"
                );
                Error::new(ErrorKind::Shape, message)
            };
            let address: ServerAddr =
                server.parse().map_err(|error| refused("").with_source(error))?;
            if !["nats", "tls"].contains(&address.scheme()) {
                return Err(refused(": there are no connections over WebSocket"));
            }
            if address.host().is_empty() {
                return Err(refused(", which names no host"));
            }
            Ok(address)
        });
        servers.collect()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.servers.contains('@') {
            let message = "expected nats://host:port, found an address with a name or a password: these are credentials";
            return Err(Error::new(ErrorKind::Shape, message));
        }
        self.addresses()?;
        let kept = self.journal.kept_snapshots;
        if kept > MOST_KEPT {
            let message = format!("{kept} snapshots of a session; a bucket keeps {MOST_KEPT}");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        for (what, name) in [("stream", &self.stream), ("bucket", &self.bucket)] {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || !name.chars().all(is_plain) {
                let message = format!(
                    "expected the name of a {what} (letters, digits, - and _), found {name:?}"
                );
                return Err(Error::new(ErrorKind::Shape, message));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for NatsOptions {
    /// Without what is secret, even where it was put into an address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            servers,
            stream,
            bucket,
            replicas,
            max_age,
            creates,
            credentials,
            timeout,
            journal,
        } = self;
        let servers: Vec<String> = servers.split(',').map(without_secrets).collect();
        f.debug_struct("NatsOptions")
            .field("servers", &servers.join(","))
            .field("stream", stream)
            .field("bucket", bucket)
            .field("replicas", replicas)
            .field("max_age", max_age)
            .field("creates", creates)
            .field("credentials", credentials)
            .field("timeout", timeout)
            .field("journal", journal)
            .finish()
    }
}

/// An address without what stands before its `@`.
fn without_secrets(server: &str) -> String {
    match server.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => server.to_owned(),
    }
}

/// How a journal shows who it is.
#[non_exhaustive]
#[derive(Clone, Default)]
pub enum Credentials {
    /// It does not.
    #[default]
    None,
    /// By a creds file.
    File(PathBuf),
    /// By a token.
    Token(String),
    /// By name and password.
    User {
        /// The name.
        name: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Credentials {
    /// Without what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Token(_) => f.write_str("Token(…)"),
            Self::User { name, .. } => f.debug_tuple("User").field(name).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_refused_and_never_shown() {
        for servers in ["nats://me:secret@host:1", "nats://a:1, nats://secret@b:2", "me:secret@h"] {
            let options = NatsOptions::new(servers);
            let error = options.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape);
            for text in [error.to_string(), format!("{error:?}"), format!("{options:?}")] {
                assert!(!text.contains("secret"), "{text}");
            }
        }
        let shown = format!("{:?}", NatsOptions::new("nats://a:1,nats://me:secret@b:2"));
        assert!(shown.contains("nats://a:1,…@b:2"), "{shown}");
    }

    #[test]
    fn an_address_has_a_host_and_a_scheme_that_is_spoken() {
        for servers in ["nats://a:1", "tls://a", "a", "a:4222, TLS://b", "nats://[::1]:4222"] {
            NatsOptions::new(servers).check().unwrap();
        }
        for servers in [
            "",
            " ",
            ",",
            "nats://",
            "nats://:4222",
            "tls:///x",
            "nats://a,",
            "a,,b",
            "ws://a:1",
            "wss://a:1",
            "nats://a,WSS://b:1",
            "http://a:1",
            "://a",
        ] {
            let error = NatsOptions::new(servers).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape, "{servers}");
            assert!(error.message().starts_with("expected servers as nats://"), "{error}");
        }
    }

    #[test]
    fn more_snapshots_than_a_bucket_keeps_are_refused() {
        let keeping =
            |kept| NatsOptions::new("nats://a:1").with(JournalOptions::default().keeping(kept));
        keeping(64).check().unwrap();
        let error = keeping(65).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().contains("65 snapshots"), "{error}");
    }
}
