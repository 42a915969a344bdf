//! A journal wherever it is, for a program that waits.

use std::{collections::BTreeSet, path::Path};

#[cfg(feature = "nats")]
use afterimage::journal::NatsJournal;
use afterimage::{
    id::Millis,
    journal::{
        self, AppendReceipt, ErrorKind, Event, Expected, Journal, JournalOptions, LoadedState,
        NewEvent, Replay, Result, SessionName, SessionStatus, Snapshot, SnapshotInfo,
    },
    log::{Holder, LostEnd},
};
#[cfg(feature = "nats")]
use tokio::runtime::Runtime;

use super::args::Place;
#[cfg(feature = "nats")]
use super::server;
use crate::{
    failure::{Failure, Outcome, Stop},
    output::note,
    text::printable,
};

const LOST: &str =
    "`afterimage journal accept-loss JOURNAL SESSION` accepts that the events are lost";
const SHORT: &str = "`afterimage journal repair JOURNAL SESSION` accepts the loss; new events follow the last one that is left";

/// What a journal is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Writing of which nothing need last.
    Remove,
    /// Writing, and what is not there is made.
    Create,
}

pub(crate) enum Opened {
    Directory(InDirectory),
    #[cfg(feature = "nats")]
    Nats(Runtime, Box<NatsJournal>),
}

/// What its files were found to end with is said by whoever asks for it, and else when the journal is
/// let go: no command passes it over without a word.
pub(crate) struct InDirectory {
    journal: Box<Journal>,
    said: BTreeSet<String>,
}

impl InDirectory {
    /// What is to be said of the files, and was not yet.
    fn notes(&mut self) -> Vec<String> {
        let seen = self.journal.torn_tails().iter().map(ToString::to_string);
        let cut = self.journal.cut_tails().iter().map(ToString::to_string);
        let lost = self.journal.lost_ends().iter().map(lost_end);
        let notes: Vec<String> = seen.chain(cut).chain(lost).collect();
        notes.into_iter().filter(|text| self.said.insert(text.clone())).collect()
    }
}

impl Drop for InDirectory {
    fn drop(&mut self) {
        self.notes().iter().for_each(|text| note(&printable(text)));
    }
}

/// Whether a journal is named by an address, of whatever kind: no directory is made of it.
fn is_address(journal: &str) -> bool {
    let scheme = journal.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Asks the journal, and waits for the answer.
macro_rules! ask {
    ($opened:ident.$method:ident($($with:expr),*)) => {
        match $opened {
            Opened::Directory(directory) => directory.journal.$method($($with),*),
            #[cfg(feature = "nats")]
            Opened::Nats(runtime, journal) => runtime.block_on(journal.$method($($with),*)),
        }
    };
}

impl Opened {
    /// Opens a journal.
    pub(crate) fn open(place: &Place, access: Access) -> Outcome<Self> {
        if is_address(&place.journal) {
            #[cfg(feature = "nats")]
            return server::connect(place, access);
            #[cfg(not(feature = "nats"))]
            return Err(Failure::new("this program was built without journals on NATS")
                .at("journal", &place.journal)
                .hint("build it with `--features nats`")
                .into());
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
        let (journal, said) = (Box::new(journal), BTreeSet::new());
        Ok(Self::Directory(InDirectory { journal, said }))
    }

    pub(crate) fn is_on_a_server(&self) -> bool {
        !matches!(self, Self::Directory(_))
    }

    /// What is to be said of where the journal is, and was not yet.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        match self {
            Self::Directory(directory) => directory.notes(),
            #[cfg(feature = "nats")]
            Self::Nats(..) => Vec::new(),
        }
    }

    /// What the file of a session was seen to end with.
    pub(crate) fn torn_tail(&self, session: &SessionName) -> Option<String> {
        let directory = match self {
            Self::Directory(directory) => directory,
            #[cfg(feature = "nats")]
            Self::Nats(..) => return None,
        };
        let name = format!("s-{}.events.rec", session.token());
        let is_of_session = |file: &Path| file.file_name().is_some_and(|found| *found == *name);
        let tails = directory.journal.torn_tails().iter();
        tails.filter(|tail| is_of_session(&tail.file)).map(ToString::to_string).next()
    }

    pub(crate) fn sessions(&mut self) -> Result<Vec<SessionName>> {
        ask!(self.sessions())
    }

    pub(crate) fn status(&mut self, session: &SessionName) -> Result<SessionStatus> {
        ask!(self.status(session))
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
        ask!(self.read(session, first, most))
    }

    pub(crate) fn append(
        &mut self,
        session: &SessionName,
        expected: Expected,
        event: NewEvent,
        now: Millis,
    ) -> Result<AppendReceipt> {
        ask!(self.append(session, expected, event, now))
    }

    pub(crate) fn load<S: Replay>(&mut self, session: &SessionName) -> Outcome<LoadedState<S>> {
        ask!(self.load(session)).map_err(|error| self.advised(session, error))
    }

    /// Whether the log of a session was seen to have lost its end.
    pub(crate) fn has_lost_end(&self, session: &SessionName) -> bool {
        matches!(self, Self::Directory(directory) if directory.journal.lost_end(session).is_some())
    }

    /// An error with the way on, where events are missing.
    pub(crate) fn advised(&self, session: &SessionName, error: journal::Error) -> Stop {
        let is_about_loss = error.kind() == ErrorKind::Gap;
        let hint = if self.has_lost_end(session) { SHORT } else { LOST };
        match Stop::from(error) {
            Stop::Failure(failure) if is_about_loss => failure.hint(hint).into(),
            stop => stop,
        }
    }

    pub(crate) fn accept_loss<S: Replay>(
        &mut self,
        session: &SessionName,
        now: Millis,
    ) -> Result<LoadedState<S>> {
        ask!(self.accept_loss(session, now))
    }

    pub(crate) fn read_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
    ) -> Result<Option<Snapshot<S>>> {
        ask!(self.read_snapshot(session))
    }

    pub(crate) fn write_snapshot<S: Replay>(
        &mut self,
        session: &SessionName,
        state: &S,
        after: u64,
        now: Millis,
    ) -> Result<SnapshotInfo> {
        ask!(self.write_snapshot(session, state, after, now))
    }

    /// Goes on with a session that lost its end; what that was, if it did.
    pub(crate) fn repair(&mut self, session: &SessionName) -> Outcome<Option<LostEnd>> {
        match self {
            Self::Directory(directory) => Ok(directory.journal.repair(session)?),
            #[cfg(feature = "nats")]
            Self::Nats(..) => {
                let failure = Failure::new("only a journal in a directory is repaired");
                Err(failure.at("session", session).into())
            }
        }
    }

    /// What is wrong with the ends of logs in a directory.
    pub(crate) fn lost_ends(&self) -> Vec<String> {
        match self {
            Self::Directory(directory) => {
                directory.journal.lost_ends().iter().map(lost_end).collect()
            }
            #[cfg(feature = "nats")]
            Self::Nats(..) => Vec::new(),
        }
    }

    pub(crate) fn delete(&mut self, session: &SessionName) -> Result<()> {
        ask!(self.delete(session))
    }
}

fn lost_end(lost: &LostEnd) -> String {
    format!("{}: {lost}; `afterimage journal repair` accepts the loss", lost.file.display())
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
