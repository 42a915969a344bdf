//! What the part without IO asks for, done on JetStream.

use std::{
    collections::BTreeSet,
    fmt::Display,
    future::{Future, IntoFuture},
};

use async_nats::{
    Request as Outgoing, RequestErrorKind,
    jetstream::stream::{LastRawMessageErrorKind, PurgeResponse, Stream},
};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep, timeout};

use super::{
    NatsJournal,
    connect::unavailable,
    denials::Needs,
    ends,
    page::IncomingPage,
    wire::{self, Ack},
};
use crate::{
    Error, ErrorKind, Result, SessionName,
    json::{Value, object},
    request::{Append, Failure, Head, Page, Position, Request, Response, StoredSnapshot},
};

/// The most bytes of a page.
const PAGE_BYTES: u64 = 8 << 20;

/// What is said where an answer does not come.
const LATE: &str = "the server did not answer in time";

impl NatsJournal {
    /// Does one thing. What is rare or large is boxed, so that the future of an append is small.
    pub(super) async fn perform(&self, session: &SessionName, request: Request) -> Response {
        let result = match request {
            Request::Head => {
                let head = self.answered(self.head(session));
                let needs = self.needs_of_head();
                self.reading(Box::pin(self.allowed(&needs, head))).await.map(Response::Head)
            }
            Request::Events { from, most } => {
                let needs = self.needs_of_page();
                let page = self.allowed(&needs, self.page(session, from, most));
                self.reading(Box::pin(page)).await.map(Response::Events)
            }
            Request::Append(append) => self.publish(session, &append).await,
            Request::Snapshot { age } => self
                .reading(Box::pin(self.readable_snapshot(session, age)))
                .await
                .map(Response::Snapshot),
            Request::PutSnapshot { bytes, keep } => {
                let needs = self.needs_of_put();
                let put = self.allowed(&needs, self.put_snapshot(session, bytes, keep));
                let standing = self.reading(Box::pin(put)).await;
                standing.map(|standing| standing.map_or(Response::Done, Response::Stands))
            }
            Request::Ids { part } => Ok(Response::Ids(Box::pin(self.ids(session, part)).await)),
            Request::PutIds(part) => {
                Box::pin(self.put_ids(session, &part)).await;
                Ok(Response::Done)
            }
            Request::Delete => {
                let needs = self.needs_of_removal();
                self.writing(Box::pin(self.allowed(&needs, self.remove(session)))).await
            }
            Request::Wait(time) => {
                sleep(time).await;
                Ok(Response::Done)
            }
        };
        result.unwrap_or_else(Response::Failed)
    }

    /// A snapshot; one that this user may not read is passed over.
    async fn readable_snapshot(
        &self,
        session: &SessionName,
        age: usize,
    ) -> Result<Option<StoredSnapshot>> {
        let needs = self.needs_of_snapshot();
        match self.allowed(&needs, Box::pin(self.snapshot_bytes(session, age))).await {
            // Said once, for the newest.
            Err(error) if error.kind() == ErrorKind::Denied => {
                Ok((age == 0).then(|| StoredSnapshot::Unreadable(error)))
            }
            found => found,
        }
    }

    /// What fails here changes nothing, so that it may be tried again.
    pub(super) async fn reading<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        work.await.map_err(|error| match error.kind() {
            ErrorKind::Unavailable => Failure::Transient { error, took: begun.elapsed() },
            _ => Failure::Final(error),
        })
    }

    /// What fails here may be done twice.
    async fn writing(&self, work: impl Future<Output = Result<()>>) -> Result<Response, Failure> {
        self.reading(work).await.map(|()| Response::Done)
    }

    /// The answer to a request or two, which may have to wait for a connection first.
    pub(super) async fn answered<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.options.timeout.saturating_mul(2);
        timeout(limit, work).await.unwrap_or_else(|_| Err(unavailable(LATE)))
    }

    /// What the bucket answers; `failed` says what did not work.
    pub(super) async fn of_snapshots<T, E: Display>(
        &self,
        failed: &str,
        work: impl IntoFuture<Output = Result<T, E>>,
    ) -> Result<T> {
        let done = timeout(self.options.timeout, work).await;
        let done = done.map_err(|_| unavailable("the bucket did not answer in time"))?;
        done.map_err(|error| unavailable(format!("{failed}: {error}")))
    }

    async fn head(&self, session: &SessionName) -> Result<Head> {
        let filter = wire::filter(&self.options.stream, session);
        let stream = &self.connection.stream;
        // The leader answers both: other replicas may lag behind.
        let info = async {
            stream.get_info().await.map_err(|error| self.lost(&format!("no stream: {error}")))
        };
        let last = async {
            match stream.get_last_raw_message_by_subject(&filter).await {
                Ok(message) => wire::mark(message.sequence, &message.payload),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(unavailable(format!("no newest event: {error}"))),
            }
        };
        let (info, last) = futures_util::try_join!(info, last)?;
        let life = wire::life(info.created);
        let reached = match &last {
            Some(last) => last.sequence,
            None if ends::drops_events(&info.config) => self.end(session, &life).await?,
            None => 0,
        };
        Ok(Head {
            life,
            last,
            reached,
            floor: wire::first_position(info.state.first_sequence),
            ceiling: wire::last_position(info.state.last_sequence),
        })
    }

    fn lost(&self, message: &str) -> Error {
        unavailable(format!("{message} ({})", self.options.stream))
    }

    async fn page(&self, session: &SessionName, from: Position, most: usize) -> Result<Page> {
        let client = &self.connection.client;
        let inbox = client.new_inbox();
        let subscribed = async {
            client.subscribe(inbox.clone()).await.map_err(|error| unavailable(error.to_string()))
        };
        let mut answers = self.answered(subscribed).await?;
        let wanted = object! {
            "seq": wire::message_of(from).max(1),
            "next_by_subj": wire::filter(&self.options.stream, session),
            "batch": most as u64,
            "max_bytes": PAGE_BYTES,
        };
        let subject = format!("$JS.API.DIRECT.GET.{}", self.options.stream);
        let payload = Bytes::from(Value::from(wanted).to_string());
        let asked = async {
            let asked = client.publish_with_reply(subject, inbox, payload).await;
            asked.map_err(|error| unavailable(error.to_string()))
        };
        self.answered(asked).await?;
        let mut page = IncomingPage::new(&self.options.stream, from);
        loop {
            let answer = timeout(self.options.timeout, answers.next()).await;
            let answer = answer.map_err(|_| unavailable(LATE))?;
            let Some(answer) = answer else {
                return Err(unavailable("the connection was closed"));
            };
            if let Some(page) = page.take(&answer)? {
                return Ok(page);
            }
        }
    }

    async fn publish(&self, session: &SessionName, append: &Append) -> Result<Response, Failure> {
        let filter = wire::filter(&self.options.stream, session);
        let headers = wire::headers(append, session, &filter).map_err(Failure::Final)?;
        let kind = append.events.first().map_or("", |writing| &*writing.event.kind);
        let subject = wire::subject(&self.options.stream, session, kind);
        let request = Outgoing::new()
            .headers(headers)
            .payload(Bytes::from(wire::payload(append)))
            .timeout(Some(self.options.timeout));
        self.connection.check_server().map_err(Failure::Final)?;
        let begun = Instant::now();
        let sent = self.connection.client.send_request(subject.clone(), request);
        let (limit, needs) = (self.options.timeout.saturating_mul(2), Needs::of([subject.clone()]));
        let sent = timeout(limit, sent);
        let message = match self.allowed(&needs, async { Ok(sent.await) }).await {
            Ok(Ok(Ok(message))) => message,
            Ok(Ok(Err(error))) => return not_published(&error, begun),
            Err(denied) => return Ok(Response::Rejected(denied)),
            // It waits behind others for a connection, or is under way.
            Ok(Err(_)) => {
                let error = unavailable(format!("the event was not acknowledged: {LATE}"));
                return Err(Failure::Ambiguous { error, took: begun.elapsed() });
            }
        };
        // It may have gone to another server than the one that was checked.
        self.connection.check_server().map_err(Failure::Final)?;
        let took = begun.elapsed();
        match wire::ack(&message.payload) {
            Ack::Stored(message) => {
                Ok(Response::AppendReceipt { last: wire::last_position(message), life: None })
            }
            Ack::Refused => Ok(Response::Refused),
            Ack::Unsure(error) => Err(Failure::Ambiguous { error, took }),
            Ack::Rejected(error) => Ok(Response::Rejected(error)),
        }
    }

    /// Removes a session: its events last, so that nothing is left beside another log.
    async fn remove(&self, session: &SessionName) -> Result<()> {
        self.remove_snapshots(session).await?;
        self.remove_ids(session).await?;
        if self.keeps_ends() {
            self.remove_end(session).await?;
        }
        let filter = wire::filter(&self.options.stream, session);
        let purge = async {
            let purge = self.connection.stream.purge().filter(filter).await;
            purge.map_err(|error| unavailable(format!("events not removed: {error}")))
        };
        let purged: PurgeResponse = self.answered(purge).await?;
        // Where this is broken off before, the next removal finds them by their names.
        let objects = self.objects_of(session).await?;
        self.drop_objects(&objects).await?;
        tracing::debug!(%session, events = purged.purged, "removed");
        Ok(())
    }

    /// The subjects of a stream's messages, of those that `filter` names.
    pub(super) async fn subjects(&self, stream: &Stream, filter: String) -> Result<Vec<String>> {
        let failed = |error: &dyn Display| unavailable(format!("no subjects: {error}"));
        let asked =
            async { stream.info_with_subjects(filter).await.map_err(|error| failed(&error)) };
        let (mut subjects, mut found) = (self.answered(asked).await?, Vec::new());
        while let Some(subject) = self.answered(async { Ok(subjects.next().await) }).await? {
            found.push(subject.map_err(|error| failed(&error))?.0);
        }
        Ok(found)
    }

    /// The sessions that have events.
    pub(super) async fn list(&self) -> Result<Vec<SessionName>> {
        let name = &self.options.stream;
        let subjects = self.subjects(&self.connection.stream, format!("{name}.*.*")).await?;
        let tokens = subjects.iter().filter_map(|subject| wire::session_token(name, subject));
        let tokens: BTreeSet<&str> = tokens.collect();
        let mut sessions = Vec::with_capacity(tokens.len());
        for token in tokens {
            match crate::name::from_token(token) {
                Some(text) => sessions.push(SessionName::new(text)?),
                None => sessions.extend(self.unhashed(token).await?),
            }
        }
        sessions.sort();
        Ok(sessions)
    }

    /// The session of a token that does not spell it out; `None` where it was removed meanwhile.
    async fn unhashed(&self, token: &str) -> Result<Option<SessionName>> {
        let filter = format!("{}.{token}.*", self.options.stream);
        let newest = self.connection.stream.get_last_raw_message_by_subject(&filter);
        let newest = async {
            match newest.await {
                Ok(message) => match wire::session(message.sequence, &message.headers) {
                    Ok(session) => Ok(Some(session)),
                    Err(error) => {
                        tracing::warn!(token, %error, "passed over what no journal wrote");
                        Ok(None)
                    }
                },
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(unavailable(format!("no newest event: {error}"))),
            }
        };
        self.answered(newest).await
    }
}

fn not_published(error: &async_nats::RequestError, begun: Instant) -> Result<Response, Failure> {
    let took = begun.elapsed();
    let because = |kind| Error::new(kind, format!("the event was not acknowledged: {error}"));
    match error.kind() {
        RequestErrorKind::InvalidSubject => Ok(Response::Rejected(because(ErrorKind::Io))),
        RequestErrorKind::MaxPayloadExceeded => Ok(Response::Rejected(because(ErrorKind::Limit))),
        // Nobody was there to store it.
        RequestErrorKind::NoResponders => {
            Err(Failure::Transient { error: because(ErrorKind::Unavailable), took })
        }
        RequestErrorKind::TimedOut | RequestErrorKind::Other => {
            Err(Failure::Ambiguous { error: because(ErrorKind::Unavailable), took })
        }
    }
}
