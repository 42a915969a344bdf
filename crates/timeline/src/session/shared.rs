use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{
    dir::{Pending, SessionDir},
    options::Durability,
};
use crate::{Error, ErrorKind, PushReport, Result, TurnRecord};

/// A session that many threads write to: turns that come while the disk is busy are synced
/// together.
///
/// [`SharedSession::push`] returns when its turn is durable, as with one sync for each turn; with
/// many writers there are fewer syncs than turns.
#[derive(Debug)]
pub struct SharedSession {
    session: Mutex<SessionDir>,
    group: Mutex<Group>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Group {
    is_syncing: bool,
    durable: u64,
    failed: bool,
}

impl SharedSession {
    /// Shares a session. Its own durability no longer counts.
    pub fn new(mut session: SessionDir) -> Self {
        session.durability = Durability::Deferred;
        let group = Group { durable: session.durable_turn(), ..Group::default() };
        Self { session: Mutex::new(session), group: Mutex::new(group), changed: Condvar::new() }
    }

    /// Adds a turn, as [`SessionDir::push`], and returns when it is durable. Its number is given to
    /// it here: turns of several threads come in any order. Costs what [`SessionDir::push`] does;
    /// turns of several threads share a sync.
    ///
    /// # Errors
    /// Those of [`SessionDir::push`].
    pub fn push(&self, turn: TurnRecord) -> Result<PushReport> {
        let pushed = locked(&self.session).push(turn)?;
        self.wait(pushed.record.turn_id)?;
        Ok(pushed)
    }

    /// Works with the session itself, between the turns of others: waits for those that run.
    pub fn with<T>(&self, work: impl FnOnce(&mut SessionDir) -> T) -> T {
        work(&mut locked(&self.session))
    }

    /// The session, for one writer again.
    pub fn into_inner(self) -> SessionDir {
        self.session.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a turn is durable: one of those who wait syncs for all.
    fn wait(&self, turn: u64) -> Result<()> {
        let mut group = locked(&self.group);
        loop {
            if group.durable >= turn {
                return Ok(());
            }
            if group.failed {
                let message = "a sync failed, so it is unknown which turns are durable until the session is opened anew";
                return Err(Error::new(ErrorKind::Poisoned, message));
            }
            if group.is_syncing {
                group = self.changed.wait(group).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            group.is_syncing = true;
            drop(group);
            let synced = self.sync();
            group = locked(&self.group);
            group.is_syncing = false;
            match synced {
                Ok(durable) => group.durable = group.durable.max(durable),
                Err(error) => {
                    group.failed = true;
                    self.changed.notify_all();
                    return Err(error);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Syncs what is written, while others go on writing; the last turn that is durable then.
    fn sync(&self) -> Result<u64> {
        let pending = locked(&self.session).pending();
        let Some(Pending { file, mark, last }) = pending else {
            // The file was closed when it was full, and synced before.
            return Ok(locked(&self.session).durable_turn());
        };
        let mut outcome = file.sync();
        if let (Ok(()), Some(mark)) = (&outcome, mark) {
            outcome = mark.raise(last).map_err(std::io::Error::other);
        }
        let mut session = locked(&self.session);
        session.synced(last.last, outcome)?;
        Ok(session.durable_turn().max(last.last))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
