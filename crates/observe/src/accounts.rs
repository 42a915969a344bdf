//! Who plays what: each account belongs to one agent at a time, each agent has one account.

use super::{Account, Moment, Observations, StoreWriter, account::check_name, shown::short};
use crate::{Error, ErrorKind, Result};

impl Observations {
    /// Gives an agent this account, which is made where it is not there. What was known of the
    /// account is known again; the account that the agent had before is left, with what is known
    /// of it. Costs one commit of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where another agent has the account, [`ErrorKind::Shape`] and
    /// [`ErrorKind::Limit`] for an empty or too long name; [`ErrorKind::Io`],
    /// [`ErrorKind::Damaged`]: see [`ObservationStore`](super::ObservationStore).
    pub fn login(&self, agent: &str, account: &str, now: Moment) -> Result<()> {
        check_name(agent, "an agent")?;
        self.store().write(&mut |store| {
            take(store, Some(agent), account, AccountClaim::default(), now).map(drop)
        })
    }

    /// As [`Observations::login`], for an account that is new: what was known of one of this name
    /// is gone. Costs one commit of the store, and is linear in what it forgets.
    ///
    /// # Errors
    /// Those of [`Observations::login`].
    pub fn register(&self, agent: &str, account: &str, now: Moment) -> Result<()> {
        check_name(agent, "an agent")?;
        let claim = AccountClaim { is_new: true, takes_over: false };
        self.store().write(&mut |store| take(store, Some(agent), account, claim, now).map(drop))
    }

    /// As [`Observations::login`], and where another agent has the account, it is taken from that
    /// one: as after a restart under another id. Says from whom. Costs one commit of the store.
    ///
    /// # Errors
    /// Those of [`Observations::login`], but for the conflict.
    pub fn take_over(&self, agent: &str, account: &str, now: Moment) -> Result<Option<String>> {
        check_name(agent, "an agent")?;
        let claim = AccountClaim { is_new: false, takes_over: true };
        let mut from = None;
        self.store().write(&mut |store| {
            (_, from) = take(store, Some(agent), account, claim, now)?;
            Ok(())
        })?;
        Ok(from)
    }

    /// Takes the account from an agent and forgets what was known of it. The account stays, for
    /// whoever logs in next. Says whether the agent had one. Costs one commit of the store, and is
    /// linear in what it forgets.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn logout(&self, agent: &str) -> Result<bool> {
        self.leave(agent, true)
    }

    /// Takes the account from an agent and keeps what is known of it, for whoever takes it up
    /// again. Says whether the agent had one. Costs one commit of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn release(&self, agent: &str) -> Result<bool> {
        self.leave(agent, false)
    }

    fn leave(&self, agent: &str, forgets: bool) -> Result<bool> {
        let mut had = false;
        self.store().write(&mut |store| {
            let account = store.account_of(agent)?;
            had = account.is_some();
            let Some(account) = account else { return Ok(()) };
            if forgets {
                forget(store, &account.name, None)?;
            }
            store.put_account(&Account { agent: None, ..account })
        })?;
        Ok(had)
    }

    /// Takes an account from whoever has it and keeps what is known of it: for an agent that will
    /// not come back. Says which agent had it. Costs one commit of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where there is no such account; [`ErrorKind::Io`],
    /// [`ErrorKind::Damaged`]: see [`ObservationStore`](super::ObservationStore).
    pub fn release_account(&self, account: &str) -> Result<Option<String>> {
        let mut from = None;
        self.store().write(&mut |store| {
            let known = store.account(account)?.ok_or_else(|| {
                Error::expected("an account that is known", format!("{:?}", short(account)))
            })?;
            from.clone_from(&known.agent);
            store.put_account(&Account { agent: None, ..known })
        })?;
        Ok(from)
    }

    /// The account that an agent has. O(log n); a database looks through all accounts where the
    /// agent has none.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn account_of_agent(&self, agent: &str) -> Result<Option<Account>> {
        self.ask(|store| store.account_of(agent))
    }

    /// All accounts, by name. O(accounts).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn accounts(&self) -> Result<Vec<Account>> {
        self.ask(|store| store.accounts())
    }

    /// Forgets what is known of an account: the observation of this name, or all. Says how many
    /// observations there were. Costs one commit of the store, and is linear in what it forgets.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn clear(&self, account: &str, name: Option<&str>) -> Result<u64> {
        let mut gone = 0;
        self.store().write(&mut |store| {
            gone = forget(store, account, name)?;
            Ok(())
        })?;
        Ok(gone)
    }
}

/// Forgets observations, and what is kept beside them. Says how many observations there were.
pub(super) fn forget(
    store: &mut dyn StoreWriter,
    account: &str,
    name: Option<&str>,
) -> Result<u64> {
    store.remove_asides(account, name)?;
    store.remove_observations(account, name)
}

/// How an account is taken.
#[derive(Clone, Copy, Default)]
pub(super) struct AccountClaim {
    /// Whether what was known of it is gone.
    pub(super) is_new: bool,
    /// Whether it may be taken from another agent.
    pub(super) takes_over: bool,
}

/// Gives an agent an account, or makes sure that there is one where nobody takes it. Says from
/// which agent it was taken.
pub(super) fn take(
    store: &mut dyn StoreWriter,
    agent: Option<&str>,
    name: &str,
    claim: AccountClaim,
    now: Moment,
) -> Result<(Account, Option<String>)> {
    check_name(name, "an account")?;
    let known = store.account(name)?;
    let holder = known.as_ref().and_then(|known| known.agent.clone());
    let other = holder.filter(|holder| agent.is_some_and(|agent| agent != holder));
    if let Some(other) = other.as_ref().filter(|_| !claim.takes_over) {
        let message = format!(
            "the account {:?} belongs to the agent {:?}: release it (`afterimage observe release`), \
             or log in with `taking_over`",
            short(name),
            short(other),
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    if claim.is_new {
        store.remove_account(name)?;
    }
    let known = known.filter(|_| !claim.is_new);
    let mut account = known.unwrap_or_else(|| Account::new(name, now));
    account.agent = agent.map(str::to_owned).or(account.agent);
    store.put_account(&account)?;
    Ok((account, other))
}
