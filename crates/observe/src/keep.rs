//! What becomes of a response: it replaces an observation, is merged into one, or is set aside.

use super::{
    Account, Ages, IgnoreReason, Interception, Observation, ObservationInfo, Observations, Outline,
    PartialRule, Pointer, Policy, RejectedAnswer, RejectedAnswerInfo, Response, StoreWriter,
    ToolCall, ToolRule,
    aside::excerpt,
    changes::Changes,
    intercept::ReportedCall,
    merge::Merging,
    nested::is_other_part,
    outline::Subject,
    policy::ReplacementRule,
    response::check_depth,
    shape,
    shown::{self, LABEL_CHARS},
    substance::first_refusal,
    written::SerializedPayload,
};
use crate::{
    ErrorKind, Result,
    json::{Object, Value},
};

impl Observations {
    /// The answers that were set aside of an account, by observation. Linear in these.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn asides(&self, account: &str) -> Result<Vec<RejectedAnswerInfo>> {
        self.ask(|store| store.asides(account))
    }

    /// The answer that is kept beside an observation, with its payload. Reads its payload: O(its
    /// length).
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn aside(&self, account: &str, name: &str) -> Result<Option<RejectedAnswer>> {
        self.ask(|store| store.aside(account, name))
    }

    /// Takes the answer that was set aside for the observation after all, whatever it is: as when
    /// a tool answers in another form from now on, or the world began anew at tick 0. `None` where
    /// nothing is kept beside it. Costs what [`Observations::intercept`] does for it.
    ///
    /// # Errors
    /// Those of [`RejectedAnswer::value`]; [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore).
    pub fn accept(&self, account: &str, name: &str) -> Result<Option<Interception>> {
        let Some(aside) = self.aside(account, name)? else { return Ok(None) };
        let response = Response::bare(aside.value()?);
        let RejectedAnswer { info, .. } = aside;
        let call = ToolCall::of_account(account, &info.tool, &response);
        let reported = ReportedCall {
            call: &call,
            tool: info.tool.clone(),
            name: info.name.clone(),
            seen: info.seen,
            username: None,
            is_named: true,
            has_tick: false,
            is_accepted: true,
        };
        let mut outcome = Interception::default();
        self.store().write(&mut |store| {
            outcome = Interception { tool: reported.tool.clone(), ..Interception::default() };
            // The tick that was taken for the latest was none.
            if info.reason == IgnoreReason::Older
                && let Some(known) = store.account(account)?
            {
                let latest =
                    Some(reported.seen).filter(|seen| seen.tick.is_some()).or(known.latest);
                store.put_account(&Account { latest, ..known })?;
            }
            outcome.account = Some(account.to_owned());
            self.keep(store, account, &reported, &mut outcome)?;
            if outcome.stored.is_none() && outcome.merged.is_empty() {
                outcome.ignored = Some(IgnoreReason::NotObserved);
                return Ok(());
            }
            store.remove_asides(account, Some(&reported.name)).map(drop)
        })?;
        Ok(Some(outcome))
    }

    /// Keeps a response of which something is observed.
    pub(super) fn keep(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let mut refused = None;
        for rule in self.policy().partials.iter().filter(|rule| rule.tool == reported.tool) {
            refused = self.merge(store, account, rule, reported, outcome)?.or(refused);
        }
        if let Some(rule) = self.policy().rule_of(&reported.tool) {
            refused = self.replace(store, account, rule, reported, outcome)?.or(refused);
        }
        if let Some(reason) = refused {
            self.set_aside(store, account, reported, reason, outcome)?;
        }
        Ok(())
    }

    /// Keeps a response beside the observation that it does not replace.
    pub(super) fn set_aside(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        reported: &ReportedCall<'_>,
        reason: IgnoreReason,
        outcome: &mut Interception,
    ) -> Result<()> {
        if outcome.stored.is_none() && outcome.merged.is_empty() {
            outcome.ignored = Some(reason);
        }
        outcome.was_known |= store.infos(account)?.iter().any(|known| known.name == reported.name);
        let value = reported.call.response.payload();
        let is_kept = shape::fits(value) && self.policy().observes(&reported.tool);
        if !is_kept || reported.name.is_empty() {
            return Ok(());
        }
        let before = store.asides(account)?.into_iter().find(|before| before.name == reported.name);
        let info = RejectedAnswerInfo {
            name: reported.name.clone(),
            tool: reported.tool.clone(),
            seen: reported.seen,
            reason,
            count: before.map_or(0, |before| before.count).saturating_add(1),
            excerpt: excerpt(value),
        };
        store.put_aside(account, &RejectedAnswer { info, content: value.to_string().into() })?;
        outcome.aside = Some(reported.name.clone());
        Ok(())
    }

    /// The observation of this name. One that is damaged is none: an answer may replace it.
    fn readable(store: &dyn StoreWriter, account: &str, name: &str) -> Result<Option<Observation>> {
        match store.observation(account, name) {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(None),
            found => found,
        }
    }

    /// Why a full response may not take the place of what is known.
    fn refusal(
        &self,
        known: &Observation,
        rule: &ToolRule,
        reported: &ReportedCall<'_>,
    ) -> Option<IgnoreReason> {
        if reported.is_accepted {
            return None;
        }
        if reported.seen.is_before(known.info.updated) {
            return Some(IgnoreReason::Older);
        }
        match rule.accepts {
            ReplacementRule::Any => None,
            ReplacementRule::SameShape => {
                shape::refusal(self.policy(), rule, known, reported.call.response.payload())
            }
        }
    }

    /// A full response takes the place of what was there, or is refused.
    fn replace(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        rule: &ToolRule,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<Option<IgnoreReason>> {
        let value = reported.call.response.payload();
        check_depth(value, 0)?;
        let written = SerializedPayload::of(value, reported.call.response.size_hint());
        let known = Self::readable(store, account, &reported.name)?;
        let mut changes = Changes::default();
        let mut since = reported.seen;
        if let Some(known) = &known {
            outcome.was_known = true;
            outcome.was_fresh = known.info.stale.is_empty()
                && !known.info.is_partial
                && !self.policy().is_old(&known.info, reported.seen);
            if let Some(reason) = self.refusal(known, rule, reported) {
                return Ok(Some(reason));
            }
            if *known.content != *written.text() {
                changes.between(&known.content, value, &written);
            }
        } else if !reported.is_accepted
            && rule.accepts == ReplacementRule::SameShape
            && let Some(reason) = first_refusal(self.policy(), value)
        {
            return Ok(Some(reason));
        }
        let changed = self.without_ticks(changes);
        if let Some(known) = known.filter(|known| changed.is_empty() && !known.info.is_partial) {
            since = known.info.since;
            outcome.unchanged_since = Some(since);
        }
        let info = ObservationInfo {
            since,
            bytes: written.text().len() as u64,
            changed,
            ..ObservationInfo::new(&reported.name, &reported.tool, reported.seen)
        };
        outcome.changed += info.changed.len();
        let mut observation =
            Observation { info, content: written.text().into(), ages: Ages::default() };
        self.outline(&mut observation, value, rule);
        store.put_observation(account, &observation)?;
        store.remove_asides(account, Some(&reported.name))?;
        outcome.missing.clone_from(&observation.info.outline.missing);
        outcome.stored = Some(reported.name.clone());
        Ok(None)
    }

    /// A partial response goes into what was there, or is refused.
    fn merge(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        partial: &PartialRule,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<Option<IgnoreReason>> {
        // Where nothing stands, nothing is said: it would wipe out what is known.
        let part = partial.from.of_value(reported.call.response.payload());
        let Some(part) = part.filter(|part| !part.is_null()) else { return Ok(None) };
        check_depth(part, partial.to.segments().len())?;
        let plain = ToolRule::new(partial.into.as_str());
        let rule = self.policy().rule_of(&partial.into).unwrap_or(&plain);
        let known = store.observation(account, &partial.into)?;
        let is_new = known.is_none();
        outcome.was_known |= !is_new;
        let mut observation = known.unwrap_or_else(|| nothing_yet(&partial.into, reported));
        let mut value = observation.value()?;
        if !reported.is_accepted && !is_new {
            if reported.seen.is_before(observation.info.updated) {
                return Ok(Some(IgnoreReason::Older));
            }
            // What stands in the place of an object or a list is no part of it.
            let known = partial.to.of_value(&value);
            let is_other = known.is_some_and(|known| {
                is_other_part((self.policy(), rule), &partial.to, known, part)
            });
            if is_other && rule.accepts == ReplacementRule::SameShape {
                return Ok(Some(IgnoreReason::OtherShape));
            }
        }
        let keys = |path: &[String]| rule.key_of(path);
        let info = &mut observation.info;
        let watched = info.stale.iter().map(|mark| (mark.path.clone(), false)).collect();
        let mut merging =
            Merging { keys: &keys, seen: reported.seen, changes: Changes::default(), watched };
        let part = partial.to.segments().iter().rev().fold(part.clone(), |part, segment| {
            Value::Object(Object::from_iter([(segment.clone(), part)]))
        });
        let is_whole = merging.merge(&mut value, part, &mut observation.ages);
        let Merging { changes, watched, .. } = merging;
        info.changed = if is_new { Vec::new() } else { self.without_ticks(changes) };
        outcome.changed += info.changed.len();
        let mut named = watched.into_iter().map(|(_, is_named)| is_named);
        info.stale.retain(|_| !named.next().unwrap_or_default());
        info.updated = reported.seen;
        if is_new || !info.changed.is_empty() {
            info.since = reported.seen;
        }
        if is_whole {
            info.seen = reported.seen;
            observation.ages = Ages::default();
        }
        observation.content = value.to_string().into();
        observation.info.bytes = observation.content.len() as u64;
        self.outline(&mut observation, &value, rule);
        store.put_observation(account, &observation)?;
        outcome.merged.push(partial.into.clone());
        Ok(None)
    }

    /// The changes that say more than that time goes by.
    fn without_ticks(&self, changes: Changes) -> Vec<Pointer> {
        let mut paths = changes.into_paths();
        paths.retain(|path| !self.policy().ticks.contains(path));
        paths
    }

    /// Works out what a summary may show of an observation.
    pub(super) fn outline(&self, observation: &mut Observation, value: &Value, rule: &ToolRule) {
        let Observation { info, ages, .. } = observation;
        let Policy { ticks, usernames, account_notes, .. } = self.policy();
        let told: [&[Pointer]; 3] = [ticks, usernames, account_notes];
        let subject =
            Subject { value, rule, changed: &info.changed, ages, seen: info.seen, told: &told };
        let note = account_notes.iter();
        let note = { note }.find_map(|pointer| pointer.of_value(value)?.as_str());
        let note = note.map(|note| shown::clean(note, LABEL_CHARS).into_owned());
        let note = note.filter(|note| !note.is_empty());
        info.outline = Outline::of(&subject, note, self.fingerprint());
    }
}

/// An observation of which only parts are going to be known.
fn nothing_yet(tool: &str, reported: &ReportedCall<'_>) -> Observation {
    let info =
        ObservationInfo { is_partial: true, ..ObservationInfo::new(tool, tool, reported.seen) };
    Observation { info, content: "null".into(), ages: Ages::default() }
}
