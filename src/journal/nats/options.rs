use std::{fmt, path::PathBuf, time::Duration};

use crate::{Error, ErrorKind, Result, journal::JournalOptions};

/// Where a journal on JetStream is, and how it is kept.
///
/// ```
/// use afterimage::journal::{Credentials, NatsOptions};
///
/// let options = NatsOptions::new("nats://127.0.0.1:4222")
///     .named("harbour")
///     .replicated(3)
///     .with_credentials(Credentials::File("/etc/harbour.creds".into()));
/// assert_eq!(options.stream, "harbour_events");
/// assert_eq!(options.bucket, "harbour_snapshots");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The servers, as `nats://host:port`, separated by commas.
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
    /// What journals of all kinds have.
    pub journal: JournalOptions,
}

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

    /// Creates what is not there with so many replicas.
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

    pub(super) fn check(&self) -> Result<()> {
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
