//! A journal wherever it is, for a program that waits.

use std::env;

use afterimage::{
    Result,
    id::Millis,
    journal::{
        Appended, Credentials, Event, Expected, Journal, JournalOptions, Loaded, NatsJournal,
        NatsOptions, NewEvent, Replay, SessionName, SessionStatus, SnapshotInfo,
    },
    log::Holder,
};
use tokio::runtime::{Builder, Runtime};

use super::args::Place;
use crate::{
    failure::{Failure, Outcome},
    output::note,
};

/// What a journal is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Writing, and what is not there is made.
    Create,
}

pub(crate) enum Opened {
    Directory(Box<Journal>),
    Nats(Runtime, Box<NatsJournal>),
}

impl Opened {
    /// Opens a journal.
    pub(crate) fn open(place: &Place, access: Access) -> Outcome<Self> {
        let is_url = |scheme: &&str| place.journal.starts_with(*scheme);
        if ["nats://", "tls://"].iter().any(is_url) {
            return Self::connect(place, access);
        }
        if place.creds.is_some() {
            let failure = Failure::new("--creds is for a journal on NATS");
            return Err(failure.at("journal", &place.journal).into());
        }
        // A directory that is not there is not to be made by looking at it.
        let options = JournalOptions::default();
        let journal = match access {
            Access::Create => None,
            _ => Some(Journal::open_read_only(&place.journal, options.clone())?),
        };
        let journal = match journal {
            Some(journal) if access == Access::Read => journal,
            _ => Journal::open(&place.journal, &Holder::new("afterimage journal"), options)?,
        };
        Ok(Self::Directory(Box::new(journal)))
    }

    fn connect(place: &Place, access: Access) -> Outcome<Self> {
        let (scheme, rest) = place.journal.split_once("://").unwrap_or_default();
        if rest.contains('@') {
            let failure = Failure::new("credentials on the command line can be read by others");
            return Err(failure
                .hint("--creds names a file; `afterimage help journal` names the variables")
                .into());
        }
        let (hosts, name) = rest.split_once('/').unwrap_or((rest, ""));
        let servers: Vec<String> =
            hosts.split(',').map(|host| format!("{scheme}://{host}")).collect();
        let mut options = NatsOptions::new(servers.join(","));
        if access != Access::Create {
            options = options.existing();
        }
        if !name.is_empty() {
            options = options.named(name);
        }
        let options = options.with_credentials(credentials(place));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let journal = runtime.block_on(NatsJournal::connect(options))?;
        for warning in journal.warnings() {
            note(warning);
        }
        Ok(Self::Nats(runtime, Box::new(journal)))
    }

    pub(crate) fn sessions(&mut self) -> Result<Vec<SessionName>> {
        match self {
            Self::Directory(journal) => journal.sessions(),
            Self::Nats(runtime, journal) => runtime.block_on(journal.sessions()),
        }
    }

    pub(crate) fn status(&mut self, session: &SessionName) -> Result<SessionStatus> {
        match self {
            Self::Directory(journal) => journal.status(session),
            Self::Nats(runtime, journal) => runtime.block_on(journal.status(session)),
        }
    }

    /// What there is of a session.
    pub(crate) fn there(&mut self, session: &SessionName) -> Outcome<SessionStatus> {
        let status = self.status(session)?;
        if is_nothing(&status) { Err(no_session(session).into()) } else { Ok(status) }
    }

    pub(crate) fn read(
        &mut self,
        session: &SessionName,
        first: u64,
        most: usize,
    ) -> Result<Vec<Event>> {
        match self {
            Self::Directory(journal) => journal.read(session, first, most),
            Self::Nats(runtime, journal) => runtime.block_on(journal.read(session, first, most)),
        }
    }

    pub(crate) fn append(
        &mut self,
        session: &SessionName,
        expected: Expected,
        event: NewEvent,
        now: Millis,
    ) -> Result<Appended> {
        match self {
            Self::Directory(journal) => journal.append(session, expected, event, now),
            Self::Nats(runtime, journal) => {
                runtime.block_on(journal.append(session, expected, event, now))
            }
        }
    }

    pub(crate) fn load<S: Replay>(&mut self, session: &SessionName) -> Result<Loaded<S>> {
        match self {
            Self::Directory(journal) => journal.load(session),
            Self::Nats(runtime, journal) => runtime.block_on(journal.load(session)),
        }
    }

    pub(crate) fn write_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
        state: &S,
        after: u64,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        match self {
            Self::Directory(journal) => journal.write_snapshot(session, state, after, now),
            Self::Nats(runtime, journal) => {
                runtime.block_on(journal.write_snapshot(session, state, after, now))
            }
        }
    }

    pub(crate) fn delete(&mut self, session: &SessionName) -> Result<()> {
        match self {
            Self::Directory(journal) => journal.delete(session),
            Self::Nats(runtime, journal) => runtime.block_on(journal.delete(session)),
        }
    }
}

/// Whether there is no such session. Of one whose events have all expired a snapshot is left.
pub(crate) fn is_nothing(status: &SessionStatus) -> bool {
    status.last_sequence == 0 && status.snapshot.is_none()
}

pub(crate) fn no_session(session: &SessionName) -> Failure {
    Failure::new("the journal has no such session")
        .at("session", session)
        .hint("`afterimage journal ls JOURNAL` names those that it has")
}

/// Who the program is: from a file or the environment.
fn credentials(place: &Place) -> Credentials {
    let variable = |name: &str| env::var(format!("AFTERIMAGE_NATS_{name}")).ok();
    if let Some(file) = place.creds.clone().or_else(|| variable("CREDS").map(Into::into)) {
        return Credentials::File(file);
    }
    if let Some(token) = variable("TOKEN") {
        return Credentials::Token(token);
    }
    match (variable("USER"), variable("PASSWORD")) {
        (Some(name), Some(password)) => Credentials::User { name, password },
        _ => Credentials::None,
    }
}
