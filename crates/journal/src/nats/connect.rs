//! Connecting, and having what a journal needs on the server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{
    Client, ConnectOptions,
    jetstream::{
        self,
        context::{CreateStreamErrorKind, GetStreamErrorKind},
        kv,
        object_store::ObjectStore,
        stream,
    },
};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Credentials, NatsOptions,
    denials::{Denials, Needs},
};
use crate::{Error, ErrorKind, Result, Retries};

/// The oldest server whose conditions hold for several subjects at once.
const OLDEST: (u64, u64) = (2, 11);

/// What a journal works with.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) stream: stream::Stream,
    pub(super) snapshots: kv::Store,
    pub(super) objects: ObjectStore,
    /// What the object store is kept in.
    pub(super) object_stream: stream::Stream,
    checked: Arc<CheckedServer>,
    /// What the server does not let this user do.
    pub(super) denials: Denials,
    /// In which way less is promised than could be.
    pub(super) warnings: Vec<String>,
}

/// Which server was found to be new enough.
struct CheckedServer {
    /// How often the client had connected.
    connects: AtomicU64,
    /// Which of the server's clients it was.
    client: AtomicU64,
}

impl Connection {
    /// That the server is new enough, which may be another one than before: a client goes from one to
    /// the next by itself. Looks no further while the connection is the one that was looked at.
    pub(super) fn check_server(&self) -> Result<()> {
        let connects = self.client.statistics().connects.load(Ordering::Relaxed);
        if connects == self.checked.connects.load(Ordering::Relaxed) {
            return Ok(());
        }
        let info = self.client.server_info();
        check_version(&info.version)?;
        // A new connection is counted a moment before it is known whose it is.
        if self.checked.client.swap(info.client_id, Ordering::Relaxed) != info.client_id {
            self.checked.connects.store(connects, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Connects, checks the server, and creates what is not there.
pub(super) async fn connect(options: &NatsOptions) -> Result<Connection> {
    options.check()?;
    let denials = Denials::new();
    let client = reach(options, &denials).await?;
    let connects = client.statistics().connects.load(Ordering::Relaxed);
    let server = client.server_info();
    check_version(&server.version)?;
    let checked = CheckedServer { connects: connects.into(), client: server.client_id.into() };
    let mut context = jetstream::new(client.clone());
    context.set_timeout(options.timeout);
    let needs = Needs::anything();
    let provisioned = trying(&options.journal.retries, "prepare the stream", options, || {
        denials.allowing(&needs, Box::pin(provision(&context, options)))
    });
    let ProvisionedStores { stream, snapshots, objects, object_stream } = provisioned.await?;
    let mut warnings = warnings(&stream.cached_info().config);
    for kept in [&snapshots.stream, &object_stream] {
        let more = warnings_of_snapshots(&kept.cached_info().config);
        warnings.extend(
            more.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>(),
        );
    }
    for warning in &warnings {
        tracing::warn!(stream = %options.stream, "{warning}");
    }
    check_stream(&stream.cached_info().config, options)?;
    let checked = Arc::new(checked);
    Ok(Connection { client, stream, snapshots, objects, object_stream, checked, denials, warnings })
}

/// Tries until it works, or the time is over.
async fn trying<T, F: Future<Output = Result<T>>>(
    retries: &Retries,
    doing: &str,
    options: &NatsOptions,
    attempt: impl Fn() -> F,
) -> Result<T> {
    let begun = Instant::now();
    let mut wait = retries.first_wait;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
            Err(error) => error,
        };
        if attempts >= retries.attempts.max(1) || begun.elapsed() + wait > retries.within {
            let message = format!(
                "cannot {doing} at {}: gave up after {attempts} attempts in {:.1} s; at last {}",
                options.servers,
                begun.elapsed().as_secs_f64(),
                error.message(),
            );
            return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
        }
        tracing::warn!(%error, attempts, "cannot {doing} yet");
        sleep(wait).await;
        wait = wait.saturating_mul(2).min(retries.longest_wait);
    }
}

async fn reach(options: &NatsOptions, denials: &Denials) -> Result<Client> {
    let servers = options.addresses()?;
    let denials = denials.clone();
    let credentials = with_credentials(options).await?.event_callback(move |event| {
        denials.note(&event);
        std::future::ready(())
    });
    let attempt = || async {
        let connecting = credentials.clone().connect(servers.clone());
        match timeout(options.timeout, connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(unreachable(&error).with_source(error)),
            Err(_) => Err(unavailable("the server did not answer in time")),
        }
    };
    trying(&options.journal.retries, "connect", options, attempt).await
}

fn unreachable(error: &async_nats::ConnectError) -> Error {
    use async_nats::ConnectErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Authentication | Kind::AuthorizationViolation => ErrorKind::Denied,
        Kind::ServerParse | Kind::Tls => ErrorKind::Io,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, error.to_string())
}

async fn with_credentials(options: &NatsOptions) -> Result<ConnectOptions> {
    let is_first = AtomicBool::new(true);
    let plain = ConnectOptions::new()
        .name("afterimage")
        .connection_timeout(options.timeout)
        .request_timeout(Some(options.timeout))
        .reconnect_delay_callback(move |attempt| {
            // The very first attempt is no second one. A connection that broke is given a moment:
            // what was on its way to it is not to arrive half at the next one.
            if is_first.swap(false, Ordering::Relaxed) {
                return Duration::ZERO;
            }
            Duration::from_millis(50).saturating_mul(1 << attempt.min(5))
        });
    Ok(match &options.credentials {
        Credentials::None => plain,
        Credentials::File(path) => plain
            .credentials_file(path)
            .await
            .map_err(|error| Error::io(error, "cannot read the credentials").in_file(path))?,
        Credentials::Token(token) => plain.token(token.clone()),
        Credentials::User { name, password } => {
            plain.user_and_password(name.clone(), password.clone())
        }
    })
}

/// That a server is new enough.
fn check_version(version: &str) -> Result<()> {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u64>().ok());
    let found = (numbers.next().flatten(), numbers.next().flatten());
    if let (Some(major), Some(minor)) = found
        && (major, minor) >= OLDEST
    {
        return Ok(());
    }
    let message = format!(
        "expected a NATS server of version 2.11 or newer, found {version}; an older server ignores the condition on the newest event, so two writers could both succeed"
    );
    Err(Error::new(ErrorKind::Version, message))
}

/// What is there on the server.
struct ProvisionedStores {
    stream: stream::Stream,
    snapshots: kv::Store,
    objects: ObjectStore,
    object_stream: stream::Stream,
}

async fn provision(
    context: &jetstream::Context,
    options: &NatsOptions,
) -> Result<ProvisionedStores> {
    let stream = if options.creates {
        let stream = context.get_or_create_stream(stream_config(options)).await;
        stream.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(reason) if is_final(&reason) => {
                Error::new(ErrorKind::Io, no_stream(options, &error))
            }
            _ => unavailable(no_stream(options, &error)),
        })?
    } else {
        let stream = context.get_stream(&options.stream).await;
        stream.map_err(|error| match error.kind() {
            GetStreamErrorKind::JetStream(reason) if reason.code() == 404 => {
                Error::new(ErrorKind::Io, no_stream(options, &error))
            }
            _ => unavailable(no_stream(options, &error)),
        })?
    };
    let snapshots = bucket(context, options).await?;
    let no_objects = |error: &dyn std::fmt::Display| {
        unavailable(format!("no object store {:?}: {error}", options.bucket))
    };
    let objects = match context.get_object_store(&options.bucket).await {
        Ok(objects) => objects,
        Err(error) if !options.creates => {
            return Err(no_objects(&error));
        }
        Err(_) => context
            .create_object_store(jetstream::object_store::Config {
                bucket: options.bucket.clone(),
                description: Some("Large snapshots of afterimage journals".to_owned()),
                num_replicas: options.replicas,
                ..Default::default()
            })
            .await
            .map_err(|error| no_objects(&error))?,
    };
    let object_stream = context.get_stream(format!("OBJ_{}", options.bucket)).await;
    let object_stream = object_stream.map_err(|error| no_objects(&error))?;
    Ok(ProvisionedStores { stream, snapshots, objects, object_stream })
}

/// The bucket of snapshots, which keeps at least as many as asked.
async fn bucket(context: &jetstream::Context, options: &NatsOptions) -> Result<kv::Store> {
    let history = i64::try_from(options.journal.kept_snapshots.max(1)).unwrap_or(i64::MAX);
    let config = kv::Config {
        bucket: options.bucket.clone(),
        description: "Snapshots of afterimage journals".to_owned(),
        history,
        num_replicas: options.replicas,
        ..Default::default()
    };
    let failed = |error: &dyn std::fmt::Display| {
        unavailable(format!("no bucket {:?}: {error}", options.bucket))
    };
    let snapshots = match context.get_key_value(&options.bucket).await {
        Ok(snapshots) => snapshots,
        Err(error) if !options.creates => return Err(failed(&error)),
        Err(_) => return context.create_key_value(config).await.map_err(|error| failed(&error)),
    };
    let kept = snapshots.stream.cached_info().config.max_messages_per_subject;
    // None or less is no limit.
    if kept <= 0 || kept >= history || !options.creates {
        return Ok(snapshots);
    }
    keep_more(context, &snapshots.stream_name, history).await.map_err(|error| failed(&error))?;
    context.get_key_value(&options.bucket).await.map_err(|error| failed(&error))
}

/// Has a bucket keep so many values of a key, and leaves whatever else it was told as it is, whether
/// this program knows it or not.
async fn keep_more(context: &jetstream::Context, stream: &str, history: i64) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        unavailable(format!("it cannot be made to keep {history} snapshots: {error}"))
    };
    let answer = async |verb: &str, question: &Value| -> Result<Value> {
        let answer = context.request(format!("STREAM.{verb}.{stream}"), question).await;
        let answer: Value = answer.map_err(|error| failed(&error))?;
        match answer.get("error") {
            Some(error) => Err(failed(error)),
            None => Ok(answer),
        }
    };
    let mut info = answer("INFO", &Value::Null).await?;
    let mut config = info.get_mut("config").map(Value::take).unwrap_or_default();
    if let Some(config) = config.as_object_mut() {
        config.insert("max_msgs_per_subject".to_owned(), history.into());
    }
    answer("UPDATE", &config).await.map(|_| ())
}

/// Why a stream is never created, however often one tries: its subjects or its name are taken, it has
/// more replicas than there are servers, or what is asked for makes no sense.
const NEVER: [u64; 4] = [10_052, 10_058, 10_065, 10_074];

fn is_final(reason: &jetstream::Error) -> bool {
    NEVER.contains(&reason.error_code().0)
}

fn no_stream(options: &NatsOptions, error: &dyn std::fmt::Display) -> String {
    format!("no stream {:?}: {error}", options.stream)
}

fn stream_config(options: &NatsOptions) -> stream::Config {
    stream::Config {
        name: options.stream.clone(),
        description: Some("Events of afterimage journals".to_owned()),
        subjects: vec![format!("{}.*.*", options.stream)],
        num_replicas: options.replicas,
        max_age: options.max_age.unwrap_or_default(),
        storage: stream::StorageType::File,
        allow_direct: true,
        // A stream that is full refuses events. It never drops those that are there.
        discard: stream::DiscardPolicy::New,
        ..Default::default()
    }
}

/// That a stream that was there takes events and hands them out.
fn check_stream(config: &stream::Config, options: &NatsOptions) -> Result<()> {
    let wanted = format!("{}.*.*", options.stream);
    let reason = if !config.subjects.contains(&wanted) {
        format!("takes {:?}, expected {wanted:?}", config.subjects)
    } else if !config.allow_direct {
        "does not allow direct gets".to_owned()
    } else if config.no_ack {
        "acknowledges nothing".to_owned()
    } else if config.retention != stream::RetentionPolicy::Limits {
        "drops what was read".to_owned()
    } else {
        return Ok(());
    };
    let message = format!("the stream {:?} is there and {reason}", options.stream);
    Err(Error::new(ErrorKind::Conflict, message))
}

/// In which way a stream promises less than it could.
fn warnings(config: &stream::Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    if config.num_replicas < 3 {
        warn(
            "fewer than three replicas: the loss of one server loses events, and so does a power cut unless the server syncs each write (`sync_interval: always`)",
        );
    }
    if config.storage == stream::StorageType::Memory {
        warn("events are kept in memory: a restart of the servers loses them");
    }
    if !config.max_age.is_zero() {
        warn("events expire: a session whose snapshot is older cannot be loaded any more");
    }
    let has_limit =
        config.max_bytes > 0 || config.max_messages > 0 || config.max_messages_per_subject > 0;
    if has_limit && config.discard != stream::DiscardPolicy::New {
        warn("the stream is limited and drops its oldest events when it is full");
    }
    warnings
}

/// In which way what keeps snapshots promises less than it could.
fn warnings_of_snapshots(config: &stream::Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(format!("snapshots {text}"));
    if config.num_replicas < 3 {
        warn("have fewer than three replicas: the loss of one server loses them");
    }
    if config.storage == stream::StorageType::Memory {
        warn("are kept in memory: a restart of the servers loses them");
    }
    if !config.max_age.is_zero() {
        warn("expire: after that a session is loaded from all of its events, if they are there");
    }
    if config.max_bytes > 0 && config.discard != stream::DiscardPolicy::New {
        warn("are limited, and the oldest are dropped when there is no more room");
    }
    warnings
}

pub(super) fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_2_11_are_refused_with_the_reason() {
        for version in ["2.11.0", "2.11.3-RC.1", "2.15.1", "3.0.0", "2.100.0"] {
            assert!(check_version(version).is_ok(), "{version}");
        }
        for version in ["2.10.29", "2.9.10", "1.99.0", "", "x", "2"] {
            let error = check_version(version).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Version, "{version}");
            assert!(error.message().contains("two writers could both succeed"));
        }
    }
}
