//! What the server does not let a user do. It says so beside the requests, whose answers then never
//! come: so whoever waits for an answer listens here too.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use async_nats::{Event, ServerError};
use futures_util::future::{Either, select};
use tokio::sync::watch;

use crate::{Error, ErrorKind, Result};

/// How many violations are remembered for those that wait.
const MOST: usize = 64;

/// What clients receive their answers by.
const INBOX: &str = "_INBOX.";

/// The permissions violations of a connection.
#[derive(Clone)]
pub(super) struct Denials(Arc<Inner>);

struct Inner {
    recent: Mutex<VecDeque<Denial>>,
    /// How many there were.
    count: watch::Sender<u64>,
}

#[derive(Clone, Debug)]
struct Denial {
    number: u64,
    subject: String,
    text: String,
}

/// The subjects that some work needs, by how they begin.
#[derive(Clone, Debug)]
pub(super) struct Needs(Vec<String>);

impl Needs {
    pub(super) fn of(prefixes: impl IntoIterator<Item = String>) -> Self {
        Self(prefixes.into_iter().collect())
    }

    /// Whatever the client does.
    pub(super) fn anything() -> Self {
        Self(vec![String::new()])
    }

    fn has(&self, subject: &str) -> bool {
        subject.starts_with(INBOX) || self.0.iter().any(|prefix| subject.starts_with(prefix))
    }
}

impl Denials {
    pub(super) fn new() -> Self {
        let (recent, count) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { recent, count }))
    }

    /// Takes note of what a client was told.
    pub(super) fn note(&self, event: &Event) {
        let Event::ServerError(ServerError::Other(text)) = event else { return };
        let Some(subject) = subject(text) else { return };
        let mut recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.count.send_modify(|count| {
            *count += 1;
            let (number, subject, text) = (*count, subject.to_owned(), text.clone());
            recent.push_back(Denial { number, subject, text });
            if recent.len() > MOST {
                recent.pop_front();
            }
        });
    }

    /// Does some work, unless the server does not allow what it needs.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`], as soon as the server says so.
    pub(super) async fn allowing<T>(
        &self,
        needs: &Needs,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut count = self.0.count.subscribe();
        let before = *count.borrow_and_update();
        let denied = pin!(async {
            loop {
                if count.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                if let Some(error) = self.since(before, needs) {
                    return error;
                }
            }
        });
        match select(pin!(work), denied).await {
            // What failed since it was denied may say so in other words.
            Either::Left((result, _)) => {
                result.map_err(|error| self.since(before, needs).unwrap_or(error))
            }
            Either::Right((error, _)) => Err(error),
        }
    }

    fn since(&self, before: u64, needs: &Needs) -> Option<Error> {
        let recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let denial =
            recent.iter().find(|denial| denial.number > before && needs.has(&denial.subject))?;
        let message = format!(
            "the server does not allow it: {}; docs/journal.md lists the subjects that a user of a journal needs",
            denial.text
        );
        Some(Error::new(ErrorKind::Denied, message))
    }
}

/// The subject of a permissions violation.
fn subject(text: &str) -> Option<&str> {
    let is_violation = text.to_ascii_lowercase().starts_with("permissions violation");
    text.split('"').nth(1).filter(|_| is_violation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_violation_is_read_whatever_it_is_about() {
        let texts = [
            (r#"Permissions Violation for Publish to "$KV.a.b""#, Some("$KV.a.b")),
            (r#"Permissions Violation for Subscription to "_INBOX.x.*""#, Some("_INBOX.x.*")),
            (r#"permissions violation for subscription to "a" using queue "q""#, Some("a")),
            ("Permissions Violation", None),
            (r#"Invalid Subject "a""#, None),
        ];
        for (text, expected) in texts {
            assert_eq!(subject(text), expected, "{text}");
        }
    }
}
