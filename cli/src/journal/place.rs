//! A journal wherever it is, for a program that waits.

use std::{collections::BTreeSet, env, ffi::OsString, path::Path};

use afterimage::{
    ErrorKind, Result,
    id::Millis,
    journal::{
        Appended, Credentials, Event, Expected, Journal, JournalOptions, Loaded, NatsJournal,
        NatsOptions, NewEvent, Replay, Retries, SessionName, SessionStatus, SnapshotInfo,
    },
    log::Holder,
};
use tokio::runtime::{Builder, Runtime};

use super::args::Place;
use crate::{
    failure::{Failure, Outcome, Stop},
    output::note,
    text::printable,
};

/// How often a request is made, which takes some six seconds.
const MOST_ATTEMPTS: u32 = 8;

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
        let notes: Vec<String> = seen.chain(cut).collect();
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

impl Opened {
    /// Opens a journal.
    pub(crate) fn open(place: &Place, access: Access) -> Outcome<Self> {
        if is_address(&place.journal) {
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
        let (journal, said) = (Box::new(journal), BTreeSet::new());
        Ok(Self::Directory(InDirectory { journal, said }))
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
        let credentials = credentials(place.creds.as_deref(), variable)?;
        let is_anonymous = matches!(credentials, Credentials::None);
        // Somebody waits in front of the screen.
        let retries = Retries { attempts: MOST_ATTEMPTS, ..Retries::default() };
        let options =
            options.with_credentials(credentials).with(JournalOptions::default().retrying(retries));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let connected = runtime.block_on(NatsJournal::connect(options));
        let journal = connected.map_err(|error| refused(error, is_anonymous))?;
        if matches!(access, Access::Write | Access::Create) {
            journal.warnings().iter().for_each(|warning| note(warning));
        }
        Ok(Self::Nats(runtime, Box::new(journal)))
    }

    /// What is to be said of where the journal is, and was not yet.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        match self {
            Self::Directory(directory) => directory.notes(),
            Self::Nats(..) => Vec::new(),
        }
    }

    pub(crate) fn sessions(&mut self) -> Result<Vec<SessionName>> {
        match self {
            Self::Directory(directory) => directory.journal.sessions(),
            Self::Nats(runtime, journal) => runtime.block_on(journal.sessions()),
        }
    }

    pub(crate) fn status(&mut self, session: &SessionName) -> Result<SessionStatus> {
        match self {
            Self::Directory(directory) => directory.journal.status(session),
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
            Self::Directory(directory) => directory.journal.read(session, first, most),
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
            Self::Directory(directory) => directory.journal.append(session, expected, event, now),
            Self::Nats(runtime, journal) => {
                runtime.block_on(journal.append(session, expected, event, now))
            }
        }
    }

    pub(crate) fn load<S: Replay>(&mut self, session: &SessionName) -> Result<Loaded<S>> {
        match self {
            Self::Directory(directory) => directory.journal.load(session),
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
            Self::Directory(directory) => {
                directory.journal.write_snapshot(session, state, after, now)
            }
            Self::Nats(runtime, journal) => {
                runtime.block_on(journal.write_snapshot(session, state, after, now))
            }
        }
    }

    pub(crate) fn delete(&mut self, session: &SessionName) -> Result<()> {
        match self {
            Self::Directory(directory) => directory.journal.delete(session),
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

/// Why there is no connection, with how to say who one is where that is the reason.
fn refused(error: afterimage::Error, is_anonymous: bool) -> Stop {
    let is_about_credentials = error.kind() == ErrorKind::Denied;
    match Stop::from(error).without_guess() {
        Stop::Failure(failure) if is_about_credentials => {
            let hint = if is_anonymous { MISSING } else { REFUSED };
            failure.hint(hint).into()
        }
        stop => stop,
    }
}

const MISSING: &str = "--creds names a creds file; AFTERIMAGE_NATS_CREDS, AFTERIMAGE_NATS_TOKEN, or AFTERIMAGE_NATS_USER with AFTERIMAGE_NATS_PASSWORD can stand for it";
const REFUSED: &str =
    "the credentials are those of --creds, or else of the AFTERIMAGE_NATS_ variables";

/// A variable of the environment; one that is empty is not set.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(format!("AFTERIMAGE_NATS_{name}")).filter(|value| !value.is_empty())
}

/// Who the program is: from a file, or else from the variables, which are to name one way.
fn credentials(
    file: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Outcome<Credentials> {
    if let Some(file) = file {
        return Ok(Credentials::File(file.to_owned()));
    }
    let failed = |sentence: &str| Err(Failure::new(sentence).into());
    let text = |name: &str, value: OsString| {
        value
            .into_string()
            .map_err(|_| Stop::from(Failure::new(format!("AFTERIMAGE_NATS_{name} is not UTF-8"))))
    };
    match [variable("CREDS"), variable("TOKEN"), variable("USER"), variable("PASSWORD")] {
        [None, None, None, None] => Ok(Credentials::None),
        [Some(file), None, None, None] => Ok(Credentials::File(file.into())),
        [None, Some(token), None, None] => Ok(Credentials::Token(text("TOKEN", token)?)),
        [None, None, Some(name), Some(password)] => Ok(Credentials::User {
            name: text("USER", name)?,
            password: text("PASSWORD", password)?,
        }),
        [None, None, Some(_), None] => {
            failed("AFTERIMAGE_NATS_USER is set, and AFTERIMAGE_NATS_PASSWORD is not")
        }
        [None, None, None, Some(_)] => {
            failed("AFTERIMAGE_NATS_PASSWORD is set, and AFTERIMAGE_NATS_USER is not")
        }
        _ => failed(
            "one way to say who the program is, not several: AFTERIMAGE_NATS_CREDS, AFTERIMAGE_NATS_TOKEN, or AFTERIMAGE_NATS_USER with AFTERIMAGE_NATS_PASSWORD",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the variables come to, or the sentence against them.
    fn with(set: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        match credentials(None, variable) {
            Ok(credentials) => Ok(format!("{credentials:?}")),
            Err(stop) => Err(format!("{stop:?}")),
        }
    }

    #[test]
    fn credentials_are_whole_and_of_one_kind() {
        assert_eq!(with(&[]).unwrap(), "None");
        assert_eq!(with(&[("TOKEN", "t")]).unwrap(), "Token(…)");
        assert!(with(&[("CREDS", "a.creds")]).unwrap().contains("a.creds"));
        assert!(with(&[("USER", "me"), ("PASSWORD", "p")]).unwrap().contains("me"));
        assert!(with(&[("USER", "me")]).unwrap_err().contains("PASSWORD is not"));
        assert!(with(&[("PASSWORD", "p")]).unwrap_err().contains("USER is not"));
        for set in [&[("TOKEN", "t"), ("USER", "me")][..], &[("CREDS", "c"), ("TOKEN", "t")]] {
            assert!(with(set).unwrap_err().contains("not several"), "{set:?}");
        }
        let file = credentials(Some(Path::new("a.creds")), |_| Some("t".into()));
        assert!(matches!(file, Ok(Credentials::File(_))));
    }
}
