use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use super::{
    Account, Figures, Observation, ObservationInfo, ObservationStore, RejectedAnswer,
    RejectedAnswerInfo, StaleMark, StoreReader, StoreWriter,
};
use crate::Result;

/// Observations in memory, gone with the store.
#[derive(Default)]
pub struct MemoryStore(Mutex<State>);

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    accounts: BTreeMap<String, Account>,
    /// The account of each agent.
    agents: BTreeMap<String, String>,
    observations: BTreeMap<String, BTreeMap<String, Observation>>,
    asides: BTreeMap<String, BTreeMap<String, RejectedAnswer>>,
    figures: BTreeMap<String, Figures>,
    /// What takes back the job that is running, the last change first.
    undo: Vec<Undo>,
}

type Undo = Box<dyn FnOnce(&mut State) + Send>;

impl ObservationStore for MemoryStore {
    fn read(&self, job: &mut dyn FnMut(&dyn StoreReader) -> Result<()>) -> Result<()> {
        job(&*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, job: &mut dyn FnMut(&mut dyn StoreWriter) -> Result<()>) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.take_back();
        let done = job(&mut *state);
        match done {
            Ok(()) => state.undo.clear(),
            Err(_) => state.take_back(),
        }
        done
    }
}

impl State {
    /// Takes back what is not done: of a job that failed, or of one that panicked.
    fn take_back(&mut self) {
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            undo(self);
        }
        // Each undo noted how to undo itself.
        self.undo.clear();
    }

    fn set_account(&mut self, name: &str, account: Option<Account>) {
        let before = set(&mut self.accounts, name, account.clone());
        if let Some(agent) = before.as_ref().and_then(|before| before.agent.as_ref()) {
            self.agents.remove(agent);
        }
        if let Some(agent) = account.and_then(|account| account.agent) {
            self.agents.insert(agent, name.to_owned());
        }
        let name = name.to_owned();
        self.undo.push(Box::new(move |state| state.set_account(&name, before)));
    }

    fn set_observation(&mut self, account: &str, name: &str, observation: Option<Observation>) {
        let of_account = self.observations.entry(account.to_owned()).or_default();
        let before = set(of_account, name, observation);
        let (account, name) = (account.to_owned(), name.to_owned());
        self.undo.push(Box::new(move |state| state.set_observation(&account, &name, before)));
    }

    fn set_aside(&mut self, account: &str, name: &str, aside: Option<RejectedAnswer>) {
        let before = set(self.asides.entry(account.to_owned()).or_default(), name, aside);
        let (account, name) = (account.to_owned(), name.to_owned());
        self.undo.push(Box::new(move |state| state.set_aside(&account, &name, before)));
    }

    fn set_figures(&mut self, tool: &str, figures: Option<Figures>) {
        let before = set(&mut self.figures, tool, figures);
        let tool = tool.to_owned();
        self.undo.push(Box::new(move |state| state.set_figures(&tool, before)));
    }
}

/// Puts a value in the place of the one with its key, or takes that out; gives back the one before.
fn set<T>(map: &mut BTreeMap<String, T>, key: &str, value: Option<T>) -> Option<T> {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    }
}

impl StoreReader for State {
    fn account(&self, name: &str) -> Result<Option<Account>> {
        Ok(self.accounts.get(name).cloned())
    }

    fn account_of(&self, agent: &str) -> Result<Option<Account>> {
        Ok(self.agents.get(agent).and_then(|name| self.accounts.get(name)).cloned())
    }

    fn accounts(&self) -> Result<Vec<Account>> {
        Ok(self.accounts.values().cloned().collect())
    }

    fn observation(&self, account: &str, name: &str) -> Result<Option<Observation>> {
        Ok(self.observations.get(account).and_then(|of_account| of_account.get(name)).cloned())
    }

    fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>> {
        let observations = self.observations.get(account).into_iter().flat_map(BTreeMap::values);
        Ok(observations.map(|observation| observation.info.clone()).collect())
    }

    fn asides(&self, account: &str) -> Result<Vec<RejectedAnswerInfo>> {
        let asides = self.asides.get(account).into_iter().flat_map(BTreeMap::values);
        Ok(asides.map(|aside| aside.info.clone()).collect())
    }

    fn aside(&self, account: &str, name: &str) -> Result<Option<RejectedAnswer>> {
        Ok(self.asides.get(account).and_then(|of_account| of_account.get(name)).cloned())
    }

    fn figures(&self) -> Result<Vec<(String, Figures)>> {
        Ok(self.figures.iter().map(|(tool, figures)| (tool.clone(), *figures)).collect())
    }
}

impl StoreWriter for State {
    fn put_account(&mut self, account: &Account) -> Result<()> {
        let other = account.agent.as_ref().and_then(|agent| self.agents.get(agent)).cloned();
        if let Some(other) = other.filter(|other| *other != account.name)
            && let Some(known) = self.accounts.get(&other).cloned()
        {
            self.set_account(&other, Some(Account { agent: None, ..known }));
        }
        self.set_account(&account.name, Some(account.clone()));
        Ok(())
    }

    fn remove_account(&mut self, name: &str) -> Result<()> {
        self.remove_observations(name, None)?;
        self.remove_asides(name, None)?;
        self.set_account(name, None);
        Ok(())
    }

    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()> {
        self.set_observation(account, &observation.info.name, Some(observation.clone()));
        Ok(())
    }

    fn put_stale(&mut self, account: &str, name: &str, stale: &[StaleMark]) -> Result<()> {
        if let Some(mut observation) = self.observation(account, name)? {
            stale.clone_into(&mut observation.info.stale);
            self.put_observation(account, &observation)?;
        }
        Ok(())
    }

    fn remove_observations(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let names = self.observations.get(account).into_iter().flat_map(BTreeMap::keys);
        let is_meant = |found: &&String| name.is_none_or(|name| name == *found);
        let names: Vec<String> = names.filter(is_meant).cloned().collect();
        for name in &names {
            self.set_observation(account, name, None);
        }
        Ok(names.len() as u64)
    }

    fn put_aside(&mut self, account: &str, aside: &RejectedAnswer) -> Result<()> {
        self.set_aside(account, &aside.info.name, Some(aside.clone()));
        Ok(())
    }

    fn remove_asides(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let mut asides = self.asides(account)?;
        asides.retain(|aside| name.is_none_or(|name| name == aside.name));
        for RejectedAnswerInfo { name, .. } in &asides {
            self.set_aside(account, name, None);
        }
        Ok(asides.len() as u64)
    }

    fn add_figures(&mut self, tool: &str, figures: &Figures) -> Result<()> {
        let before = self.figures.get(tool).copied().unwrap_or_default();
        self.set_figures(tool, Some(before.plus(*figures)));
        Ok(())
    }
}
