//! The connection to a journal on NATS, and who the program is there.

use std::{env, ffi::OsString, path::Path};

use afterimage::journal::{
    self, Credentials, ErrorKind, JournalOptions, NatsJournal, NatsOptions, Retries,
};
use tokio::runtime::Builder;

use super::{
    args::Place,
    place::{Access, Opened},
};
use crate::{
    failure::{Failure, Outcome, Stop},
    output::note,
};

/// How often a request is made, which takes some six seconds.
const MOST_ATTEMPTS: u32 = 8;

/// Connects to the servers that an address names.
pub(super) fn connect(place: &Place, access: Access) -> Outcome<Opened> {
    let (scheme, rest) = place.journal.split_once("://").unwrap_or_default();
    if rest.contains('@') {
        let failure = Failure::new("credentials on the command line can be read by others");
        return Err(failure
            .hint("--creds names a file; `afterimage help journal` names the variables")
            .into());
    }
    let (hosts, name) = rest.split_once('/').unwrap_or((rest, ""));
    let servers: Vec<String> = hosts.split(',').map(|host| format!("{scheme}://{host}")).collect();
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
    Ok(Opened::Nats(runtime, Box::new(journal)))
}

/// Why there is no connection, with how to say who one is where that is the reason.
fn refused(error: journal::Error, is_anonymous: bool) -> Stop {
    // What a user may not do is said with its subject, and is no matter of who the user is.
    let is_about_rights = error.message().starts_with(NOT_ALLOWED);
    let is_about_credentials = error.kind() == ErrorKind::Denied && !is_about_rights;
    match Stop::from(error).without_guess() {
        Stop::Failure(failure) if is_about_credentials => {
            let hint = if is_anonymous { MISSING } else { REFUSED };
            failure.hint(hint).into()
        }
        stop => stop,
    }
}

const NOT_ALLOWED: &str = "the server does not allow it";
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
