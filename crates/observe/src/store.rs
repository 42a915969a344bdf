use super::{
    Account, Figures, Observation, ObservationInfo, RejectedAnswer, RejectedAnswerInfo, StaleMark,
};
use crate::Result;

/// Where observations are kept. What a job does in one call of [`ObservationStore::write`] happens
/// whole or not at all, and nobody else sees a part of it.
///
/// # Errors of a store
/// A store in memory has none. A database file has these, and all of them name the file but
/// `Limit`:
/// - [`ErrorKind::Io`](crate::ErrorKind::Io): the system refused, the disk or the size that was
///   allowed is full, or the file cannot be written.
/// - [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): what is stored is not what was written.
/// - [`ErrorKind::Locked`](crate::ErrorKind::Locked): others kept the file busy all the time.
/// - [`ErrorKind::Limit`](crate::ErrorKind::Limit): a payload is too large for the database.
/// - [`ErrorKind::UnknownFormat`](crate::ErrorKind::UnknownFormat): the file is no database any
///   more.
pub trait ObservationStore: Send + Sync {
    /// Runs a job that only reads, on one state of the store.
    ///
    /// # Errors
    /// Those of the job; [`ErrorKind::Io`](crate::ErrorKind::Io),
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): see [`ObservationStore`].
    fn read(&self, job: &mut dyn FnMut(&dyn StoreReader) -> Result<()>) -> Result<()>;

    /// Runs a job that reads and writes. Where it answers `Ok`, what it wrote is durable as far as
    /// the store is; where it fails, nothing has changed.
    ///
    /// # Errors
    /// Those of the job; [`ErrorKind::Io`](crate::ErrorKind::Io),
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged): see [`ObservationStore`].
    fn write(&self, job: &mut dyn FnMut(&mut dyn StoreWriter) -> Result<()>) -> Result<()>;
}

/// What a job may ask a store.
pub trait StoreReader {
    /// The account with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn account(&self, name: &str) -> Result<Option<Account>>;

    /// The account that an agent has.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn account_of(&self, agent: &str) -> Result<Option<Account>>;

    /// All accounts, by name. O(accounts · log).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn accounts(&self) -> Result<Vec<Account>>;

    /// The observation of this name of an account, with its payload.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn observation(&self, account: &str, name: &str) -> Result<Option<Observation>>;

    /// The observations of an account without their payloads, by name. Does not depend on how many
    /// other accounts there are, nor on the size of the payloads. One that is damaged has nothing
    /// but its name and [`ObservationInfo::damage`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>>;

    /// The answers that are kept beside observations of an account, without their payloads, by
    /// name. Reads the rows of that account.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn asides(&self, account: &str) -> Result<Vec<RejectedAnswerInfo>>;

    /// The answer that is kept beside the observation of this name, with its payload.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn aside(&self, account: &str, name: &str) -> Result<Option<RejectedAnswer>>;

    /// The figures of all tools, by name. Those of whole summaries have the empty name. O(tools).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn figures(&self) -> Result<Vec<(String, Figures)>>;
}

/// What a job may change.
pub trait StoreWriter: StoreReader {
    /// Keeps an account in place of the one of its name. The agent is taken from any other.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn put_account(&mut self, account: &Account) -> Result<()>;

    /// Forgets an account, its observations and what is kept beside them.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn remove_account(&mut self, name: &str) -> Result<()>;

    /// Keeps an observation in place of the one of its name.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()>;

    /// Sets what of an observation is stale.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn put_stale(&mut self, account: &str, name: &str, stale: &[StaleMark]) -> Result<()>;

    /// Forgets the observations of an account: that of this name, or all. Says how many there were:
    /// O(these).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn remove_observations(&mut self, account: &str, name: Option<&str>) -> Result<u64>;

    /// Keeps an answer beside the observation of its name, in place of the one before.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn put_aside(&mut self, account: &str, aside: &RejectedAnswer) -> Result<()>;

    /// Forgets what is kept beside the observation of this name, or beside all of an account. Says
    /// how many answers there were: O(these).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn remove_asides(&mut self, account: &str, name: Option<&str>) -> Result<u64>;

    /// Adds to the figures of a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`].
    fn add_figures(&mut self, tool: &str, figures: &Figures) -> Result<()>;
}
