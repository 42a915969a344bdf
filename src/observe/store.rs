use super::{Account, Figures, Observation, ObservationInfo, StaleMark};
use crate::Result;

/// Where observations are kept. What a job does in one call of [`ObservationStore::write`] happens
/// whole or not at all, and nobody else sees a part of it.
pub trait ObservationStore: Send + Sync {
    /// Runs a job that only reads, on one state of the store.
    ///
    /// # Errors
    /// Those of the job and of the store.
    fn read(&self, job: &mut dyn FnMut(&dyn StoreReader) -> Result<()>) -> Result<()>;

    /// Runs a job that reads and writes. Where it answers `Ok`, what it wrote is durable as far as
    /// the store is; where it fails, nothing has changed.
    ///
    /// # Errors
    /// Those of the job and of the store.
    fn write(&self, job: &mut dyn FnMut(&mut dyn StoreWriter) -> Result<()>) -> Result<()>;
}

/// What a job may ask a store.
pub trait StoreReader {
    /// The account with this name.
    ///
    /// # Errors
    /// Those of the store, as of every function here.
    fn account(&self, name: &str) -> Result<Option<Account>>;

    /// The account that an agent has.
    ///
    /// # Errors
    /// Those of the store.
    fn account_of(&self, agent: &str) -> Result<Option<Account>>;

    /// All accounts, by name.
    ///
    /// # Errors
    /// Those of the store.
    fn accounts(&self) -> Result<Vec<Account>>;

    /// The observation of this name of an account, with its payload.
    ///
    /// # Errors
    /// Those of the store.
    fn observation(&self, account: &str, name: &str) -> Result<Option<Observation>>;

    /// The observations of an account without their payloads, by name. Does not depend on how many
    /// other accounts there are, nor on the size of the payloads.
    ///
    /// # Errors
    /// Those of the store.
    fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>>;

    /// The figures of all tools, by name. Those of whole summaries have the empty name.
    ///
    /// # Errors
    /// Those of the store.
    fn figures(&self) -> Result<Vec<(String, Figures)>>;
}

/// What a job may change.
pub trait StoreWriter: StoreReader {
    /// Keeps an account in place of the one of its name. The agent is taken from any other.
    ///
    /// # Errors
    /// Those of the store, as of every function here.
    fn put_account(&mut self, account: &Account) -> Result<()>;

    /// Forgets an account and its observations.
    ///
    /// # Errors
    /// Those of the store.
    fn remove_account(&mut self, name: &str) -> Result<()>;

    /// Keeps an observation in place of the one of its name.
    ///
    /// # Errors
    /// Those of the store.
    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()>;

    /// Sets what of an observation is stale.
    ///
    /// # Errors
    /// Those of the store.
    fn put_stale(&mut self, account: &str, name: &str, stale: &[StaleMark]) -> Result<()>;

    /// Forgets the observations of an account: that of this name, or all. Says how many there were.
    ///
    /// # Errors
    /// Those of the store.
    fn remove_observations(&mut self, account: &str, name: Option<&str>) -> Result<u64>;

    /// Adds to the figures of a tool.
    ///
    /// # Errors
    /// Those of the store.
    fn add_figures(&mut self, tool: &str, figures: &Figures) -> Result<()>;
}
