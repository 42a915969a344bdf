use std::sync::Arc;

use super::{
    Account, Figures, MemoryStore, Metrics, Moment, Observation, ObservationInfo, ObservationStore,
    Outline, Pointer, Policy, RejectedAnswerInfo, StoreReader, Summary, ToolRule,
    compose::Composer,
};
use crate::{ErrorKind, Result, tokens::TokenCounter};

/// The version of what is made of a policy and a payload. It rises when the same two would give
/// other lines.
const OUTLINE_VERSION: u32 = 1;

/// What agents know of the world, for each account. See [the crate](crate).
///
/// All of its functions take `&self`; several threads, and with a database file several
/// processes, may use it at once.
pub struct Observations {
    store: Box<dyn ObservationStore>,
    policy: Policy,
    counter: Arc<dyn TokenCounter>,
    fingerprint: String,
}

/// An account, and what is known of it.
struct FoundObservation {
    account: Account,
    infos: Vec<ObservationInfo>,
    asides: Vec<RejectedAnswerInfo>,
}

impl std::fmt::Debug for Observations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observations")
            .field("policy", &self.policy)
            .field("counter", &self.counter.id())
            .finish_non_exhaustive()
    }
}

impl Observations {
    /// Observations in this store. Summaries are counted exactly where a feature has a counter,
    /// else estimated; see [`Observations::counted_by`]. Writes the policy as JSON, to hash it:
    /// O(its size).
    pub fn new(store: impl ObservationStore + 'static, policy: Policy) -> Self {
        let text = format!("{OUTLINE_VERSION} {}", policy.to_json());
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let fingerprint = hash.get(..16).unwrap_or_default().to_owned();
        let counter = crate::tokens::default_counter();
        Self { store: Box::new(store), policy, counter, fingerprint }
    }

    /// Observations in memory, gone with the value. O(size of the policy).
    ///
    /// # Errors
    /// None; the same shape as opening a file.
    pub fn in_memory(policy: Policy) -> Result<Self> {
        Ok(Self::new(MemoryStore::default(), policy))
    }

    /// Observations in a database file, which is made where it is not there. Several processes may
    /// use one file. Costs what [`SqliteStore::open`](super::SqliteStore::open) does.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`](super::SqliteStore::open).
    #[cfg(feature = "sqlite")]
    pub fn open(path: impl AsRef<std::path::Path>, policy: Policy) -> Result<Self> {
        Ok(Self::new(super::SqliteStore::open(path)?, policy))
    }

    /// Observations in a database file that is only read: as on media that cannot be written. A
    /// file of the specification's table alone is read into memory. O(1) else.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`](super::SqliteStore::open).
    #[cfg(feature = "sqlite")]
    pub fn open_read_only(path: impl AsRef<std::path::Path>, policy: Policy) -> Result<Self> {
        let options = super::SqliteOptions { read_only: true, ..super::SqliteOptions::default() };
        Ok(Self::new(super::SqliteStore::open_with(path, options)?, policy))
    }

    /// Counts the tokens of summaries with `counter`.
    pub fn counted_by(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, ..self }
    }

    /// What counts as an observation.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn store(&self) -> &dyn ObservationStore {
        &*self.store
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Asks the store one thing.
    pub(super) fn ask<T>(&self, job: impl Fn(&dyn StoreReader) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.store.read(&mut |store| {
            answer = Some(job(store)?);
            Ok(())
        })?;
        // A store that runs no job has nothing to say; none here does that.
        answer.ok_or_else(|| {
            crate::Error::new(
                crate::ErrorKind::Io,
                "the store returned without running the job; `ObservationStore::read` must call it",
            )
        })
    }

    /// What is known of an account, in so many tokens at most: a text that depends on its inputs
    /// alone. Where there is no such account, the text says so.
    ///
    /// `now` is the time, and the tick where it is known; the latest tick that was seen for the
    /// account counts where it is not. The text takes at most `tokens` as the counter counts the
    /// whole of it, and at most four bytes for each of them. The more useful comes first: what the
    /// last response changed, what the policy marks, small values, counts.
    ///
    /// Runs in O(size of the account's payloads), however many accounts there are: each payload is
    /// compared with its checksum, and none is parsed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn summary(&self, account: &str, now: Moment, tokens: usize) -> Result<Summary> {
        let found = self.ask(|store| self.found(store, store.account(account)?))?;
        Ok(self.summary_of(found, now, tokens))
    }

    /// As [`Observations::summary`], of the account that an agent has. Costs what that does.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn summary_of_agent(&self, agent: &str, now: Moment, tokens: usize) -> Result<Summary> {
        let found = self.ask(|store| self.found(store, store.account_of(agent)?))?;
        Ok(self.summary_of(found, now, tokens))
    }

    /// What a summary of an account is made of.
    fn found(
        &self,
        store: &dyn StoreReader,
        account: Option<Account>,
    ) -> Result<Option<FoundObservation>> {
        let Some(account) = account else { return Ok(None) };
        let infos = self.infos_of(store, &account.name)?;
        Ok(Some(FoundObservation { asides: store.asides(&account.name)?, infos, account }))
    }

    fn summary_of(&self, found: Option<FoundObservation>, now: Moment, limit: usize) -> Summary {
        let Some(FoundObservation { infos, asides, account }) = found else {
            let text = format!("{}\n", self.policy.signed_out);
            let tokens = self.counter.count_up_to(&text, limit);
            return tokens.map_or_else(Summary::default, |tokens| Summary {
                text,
                tokens: tokens as u64,
                ..Summary::default()
            });
        };
        let composer = Composer {
            policy: &self.policy,
            counter: &*self.counter,
            account: &account,
            asides: &asides,
            now: account.now(now),
            limit,
        };
        composer.compose(&infos)
    }

    /// The observations of an account without payloads, with outlines of this policy.
    fn infos_of(&self, store: &dyn StoreReader, account: &str) -> Result<Vec<ObservationInfo>> {
        let mut infos = store.infos(account)?;
        for info in &mut infos {
            if info.damage.is_some() {
                continue;
            }
            if info.outline.made_by == self.fingerprint {
                note_damaged_payload(store, account, info)?;
            } else {
                // Another policy made it, or it is damaged.
                self.remake(store, account, info)?;
            }
        }
        Ok(infos)
    }

    /// Makes an outline anew from the payload. What is damaged there is told in its place.
    fn remake(
        &self,
        store: &dyn StoreReader,
        account: &str,
        info: &mut ObservationInfo,
    ) -> Result<()> {
        let found = store.observation(account, &info.name).and_then(|found| {
            let Some(mut observation) = found else { return Ok(None) };
            let value = observation.value()?;
            let plain = ToolRule::new(info.tool.as_str());
            let rule = self.policy.rule_of(&info.tool).unwrap_or(&plain);
            self.outline(&mut observation, &value, rule);
            Ok(Some(observation.info))
        });
        match found {
            Ok(found) => *info = found.unwrap_or_else(|| info.clone()),
            Err(error) if error.kind() == ErrorKind::Damaged => damage(info, &error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Counts a summary as shown to a model: see [`Figures`]. O(lines of the summary).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn record_shown(&self, summary: &Summary) -> Result<()> {
        let of = |bytes: u64, stands_for: u64| Figures {
            contexts: 1,
            bytes_shown: bytes,
            tokens_shown: bytes.div_ceil(4),
            bytes_stood_for: stands_for,
            tokens_stood_for: stands_for.div_ceil(4),
            ..Figures::default()
        };
        self.store.write(&mut |store| {
            for section in summary.sections() {
                store.add_figures(&section.tool, &of(section.bytes, section.stands_for))?;
            }
            store.add_figures("", &of(summary.text().len() as u64, summary.stands_for()))
        })
    }

    /// The observation of this name, with its payload. Reads the payload: O(its length); a database
    /// that has none looks through all of its rows.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn get(&self, account: &str, name: &str) -> Result<Option<Observation>> {
        self.ask(|store| store.observation(account, name))
    }

    /// The observations of an account without their payloads, by name. Reads each payload all the
    /// same, to check it: O(size of the payloads).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>> {
        self.ask(|store| self.infos_of(store, account))
    }

    /// When the value at `pointer` of an observation was last seen: when the last response came
    /// that named it, or the oldest part of it. Parses the payload: O(its length).
    ///
    /// # Errors
    /// Those of [`Observation::value`].
    pub fn seen(&self, observation: &Observation, pointer: &Pointer) -> Result<Option<Moment>> {
        let value = observation.value()?;
        if pointer.of_value(&value).is_none() {
            return Ok(None);
        }
        let rule = self.policy.rule_of(&observation.info.tool);
        let keys = |path: &[String]| rule.and_then(|rule| rule.key_of(path));
        Ok(Some(observation.ages.of(observation.info.seen, pointer, &value, &keys)))
    }

    /// What is out of date of an account: marked so by an action, older than the policy wants it at
    /// `now`, or damaged. Costs what [`Observations::infos`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn stale(&self, account: &str, now: Moment) -> Result<Vec<ObservationInfo>> {
        let found = self.ask(|store| {
            let Some(account) = store.account(account)? else { return Ok(None) };
            Ok(Some((self.infos_of(store, &account.name)?, account)))
        })?;
        let Some((mut infos, account)) = found else { return Ok(Vec::new()) };
        infos.retain(|info| {
            info.damage.is_some()
                || !info.stale.is_empty()
                || self.policy.is_old(info, account.now(now))
        });
        Ok(infos)
    }

    /// Whether an observation is older at `now` than the policy wants it.
    pub fn is_old(&self, info: &ObservationInfo, now: Moment) -> bool {
        self.policy.is_old(info, now)
    }

    /// `now`, on the latest tick that was seen for an account where it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn now_of(&self, account: &str, now: Moment) -> Result<Moment> {
        let account = self.ask(|store| store.account(account))?;
        Ok(account.map_or(now, |account| account.now(now)))
    }

    /// The figures of all tools, by name. Those of whole summaries have the empty name. O(tools).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn figures(&self) -> Result<Vec<(String, Figures)>> {
        self.ask(|store| store.figures())
    }

    /// What can be read off the figures. O(tools).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see [`ObservationStore`].
    pub fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::of(&self.figures()?))
    }
}

/// Tells in `info` where the payload of an observation cannot be read.
pub(super) fn note_damaged_payload(
    store: &dyn StoreReader,
    account: &str,
    info: &mut ObservationInfo,
) -> Result<()> {
    match store.observation(account, &info.name) {
        Err(error) if error.kind() == ErrorKind::Damaged => {
            damage(info, &error);
            Ok(())
        }
        found => found.map(drop),
    }
}

/// Shows nothing of an observation but that it is damaged.
fn damage(info: &mut ObservationInfo, error: &crate::Error) {
    info.damage = Some(error.message().to_owned());
    info.outline = Outline::default();
}
