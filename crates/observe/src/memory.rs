use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::{
    Account, Figures, Observation, ObservationInfo, ObservationStore, RejectedAnswer,
    RejectedAnswerInfo, StaleMark, StoreReader, StoreWriter,
};
use crate::Result;

/// Observations in memory, gone with the store.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<State>);

#[derive(Debug, Default)]
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

#[derive(Debug)]
enum Undo {
    Account(String, Option<Account>),
    Observation(String, String, Option<Box<Observation>>),
    RejectedAnswer(String, String, Option<Box<RejectedAnswer>>),
    Figures(String, Option<Figures>),
}

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
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Account(name, before) => self.set_account(&name, before),
                Undo::Observation(account, name, before) => {
                    self.set_observation(&account, &name, before.map(|before| *before));
                }
                Undo::RejectedAnswer(account, name, before) => {
                    self.set_aside(&account, &name, before.map(|before| *before));
                }
                Undo::Figures(tool, Some(before)) => drop(self.figures.insert(tool, before)),
                Undo::Figures(tool, None) => drop(self.figures.remove(&tool)),
            }
        }
        self.undo.clear();
    }

    fn set_account(&mut self, name: &str, account: Option<Account>) {
        if let Some(before) = self.accounts.remove(name)
            && let Some(agent) = before.agent
        {
            self.agents.remove(&agent);
        }
        if let Some(account) = account {
            if let Some(agent) = &account.agent {
                self.agents.insert(agent.clone(), name.to_owned());
            }
            self.accounts.insert(name.to_owned(), account);
        }
    }

    fn set_observation(&mut self, account: &str, name: &str, observation: Option<Observation>) {
        match observation {
            Some(observation) => {
                let of_account = self.observations.entry(account.to_owned()).or_default();
                of_account.insert(name.to_owned(), observation);
            }
            None => {
                if let Some(of_account) = self.observations.get_mut(account) {
                    of_account.remove(name);
                }
            }
        }
    }

    fn set_aside(&mut self, account: &str, name: &str, aside: Option<RejectedAnswer>) {
        let of_account = self.asides.entry(account.to_owned()).or_default();
        match aside {
            Some(aside) => drop(of_account.insert(name.to_owned(), aside)),
            None => drop(of_account.remove(name)),
        }
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
            && let Some(mut other) = self.accounts.get(&other).cloned()
        {
            self.undo.push(Undo::Account(other.name.clone(), Some(other.clone())));
            other.agent = None;
            self.set_account(&other.name.clone(), Some(other));
        }
        let before = self.accounts.get(&account.name).cloned();
        self.undo.push(Undo::Account(account.name.clone(), before));
        self.set_account(&account.name, Some(account.clone()));
        Ok(())
    }

    fn remove_account(&mut self, name: &str) -> Result<()> {
        self.remove_observations(name, None)?;
        self.remove_asides(name, None)?;
        self.undo.push(Undo::Account(name.to_owned(), self.accounts.get(name).cloned()));
        self.set_account(name, None);
        Ok(())
    }

    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()> {
        let name = &observation.info.name;
        let before = self.observation(account, name)?.map(Box::new);
        self.undo.push(Undo::Observation(account.to_owned(), name.clone(), before));
        self.set_observation(account, name, Some(observation.clone()));
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
            let before = self.observation(account, name)?.map(Box::new);
            self.undo.push(Undo::Observation(account.to_owned(), name.clone(), before));
            self.set_observation(account, name, None);
        }
        Ok(names.len() as u64)
    }

    fn put_aside(&mut self, account: &str, aside: &RejectedAnswer) -> Result<()> {
        let name = &aside.info.name;
        let before = self.aside(account, name)?.map(Box::new);
        self.undo.push(Undo::RejectedAnswer(account.to_owned(), name.clone(), before));
        self.set_aside(account, name, Some(aside.clone()));
        Ok(())
    }

    fn remove_asides(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let mut asides = self.asides(account)?;
        asides.retain(|aside| name.is_none_or(|name| name == aside.name));
        for RejectedAnswerInfo { name, .. } in &asides {
            let before = self.aside(account, name)?.map(Box::new);
            self.undo.push(Undo::RejectedAnswer(account.to_owned(), name.clone(), before));
            self.set_aside(account, name, None);
        }
        Ok(asides.len() as u64)
    }

    fn add_figures(&mut self, tool: &str, figures: &Figures) -> Result<()> {
        let before = self.figures.get(tool).copied();
        self.undo.push(Undo::Figures(tool.to_owned(), before));
        self.figures.insert(tool.to_owned(), before.unwrap_or_default().plus(*figures));
        Ok(())
    }
}
