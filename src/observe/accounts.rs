//! Who plays what: each account belongs to one agent at a time, each agent has one account.

use super::{Account, Moment, Observations, StoreWriter, account::check_name};
use crate::{Error, ErrorKind, Result};

impl Observations {
    /// Gives an agent this account, which is made where it is not there. What was known of the
    /// account is known again; the account that the agent had before is left, with what is known
    /// of it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where another agent has the account, [`ErrorKind::Shape`] and
    /// [`ErrorKind::Limit`] for an empty or too long name, and those of the store.
    pub fn login(&self, agent: &str, account: &str, now: Moment) -> Result<()> {
        check_name(agent, "an agent")?;
        self.store().write(&mut |store| take(store, Some(agent), account, false, now).map(drop))
    }

    /// As [`Observations::login`], for an account that is new: what was known of one of this name
    /// is gone.
    ///
    /// # Errors
    /// Those of [`Observations::login`].
    pub fn register(&self, agent: &str, account: &str, now: Moment) -> Result<()> {
        check_name(agent, "an agent")?;
        self.store().write(&mut |store| take(store, Some(agent), account, true, now).map(drop))
    }

    /// Takes the account from an agent and forgets what was known of it. The account stays, for
    /// whoever logs in next. Says whether the agent had one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn logout(&self, agent: &str) -> Result<bool> {
        self.leave(agent, true)
    }

    /// Takes the account from an agent and keeps what is known of it, for whoever takes it up
    /// again. Says whether the agent had one.
    ///
    /// # Errors
    /// Those of the store.
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
                store.remove_observations(&account.name, None)?;
            }
            store.put_account(&Account { agent: None, ..account })
        })?;
        Ok(had)
    }

    /// The account that an agent has.
    ///
    /// # Errors
    /// Those of the store.
    pub fn account_of_agent(&self, agent: &str) -> Result<Option<Account>> {
        self.ask(|store| store.account_of(agent))
    }

    /// All accounts, by name.
    ///
    /// # Errors
    /// Those of the store.
    pub fn accounts(&self) -> Result<Vec<Account>> {
        self.ask(|store| store.accounts())
    }

    /// Forgets what is known of an account: the observation of this name, or all. Says how many
    /// observations there were.
    ///
    /// # Errors
    /// Those of the store.
    pub fn clear(&self, account: &str, name: Option<&str>) -> Result<u64> {
        let mut gone = 0;
        self.store().write(&mut |store| {
            gone = store.remove_observations(account, name)?;
            Ok(())
        })?;
        Ok(gone)
    }
}

/// Gives an agent an account, or makes sure that there is one where nobody takes it.
pub(super) fn take(
    store: &mut dyn StoreWriter,
    agent: Option<&str>,
    name: &str,
    is_new: bool,
    now: Moment,
) -> Result<Account> {
    check_name(name, "an account")?;
    let known = store.account(name)?;
    let holder = known.as_ref().and_then(|known| known.agent.as_deref());
    if let (Some(agent), Some(holder)) = (agent, holder)
        && holder != agent
    {
        let shown: String = name.chars().take(64).collect();
        let message =
            format!("the account {shown:?} belongs to another agent, which has to leave it first");
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    if is_new {
        store.remove_account(name)?;
    }
    let known = known.filter(|_| !is_new);
    let mut account = known.unwrap_or_else(|| Account::new(name, now));
    account.agent = agent.map(str::to_owned).or(account.agent);
    store.put_account(&account)?;
    Ok(account)
}
