//! What to ask before a call: whether it can be spared.

use std::fmt::Write;

use serde::Serialize;

use super::{
    Account, Age, Figures, Moment, ObservationInfo, Observations, RejectedAnswerInfo, StoreReader,
    account::check_name, observation::LOST, observations::note_damaged_payload, shown,
};
use crate::{
    Result,
    json::{ObjectExt, Value, object, to_value},
};

crate::json::serialize_through_json!(Freshness);

/// The most characters of a name in a sentence.
const NAME_CHARS: usize = 64;

/// A call that an agent is about to make.
#[derive(Clone, Copy, Debug)]
pub struct PlannedCall<'a> {
    agent: Option<&'a str>,
    account: Option<&'a str>,
    tool: &'a str,
    arguments: Option<&'a Value>,
    within: Option<u64>,
}

impl<'a> PlannedCall<'a> {
    /// A call by an agent.
    pub fn new(agent: &'a str, tool: &'a str) -> Self {
        Self { agent: Some(agent), account: None, tool, arguments: None, within: None }
    }

    /// A call for an account, whoever makes it.
    pub fn of_account(account: &'a str, tool: &'a str) -> Self {
        Self { agent: None, account: Some(account), ..Self::new("", tool) }
    }

    /// Adds the arguments.
    pub fn with_arguments(self, arguments: &'a Value) -> Self {
        Self { arguments: Some(arguments), ..self }
    }

    /// As fresh enough counts what is younger than this many ticks, whatever the policy says.
    pub fn within(self, ticks: u64) -> Self {
        Self { within: Some(ticks), ..self }
    }
}

/// What is known of what a call would tell, and whether that is fresh enough to spare the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Freshness {
    /// The tool, as the policy knows it.
    pub tool: String,
    /// What its observation is called.
    pub name: String,
    /// Whose it is.
    pub account: Option<String>,
    /// Whether the call can be spared, or why not.
    pub verdict: Verdict,
    /// How old what is known is.
    pub age: Option<Age>,
    /// From how many ticks on it counts as old.
    pub limit: Option<u64>,
    /// The observation.
    pub info: Option<ObservationInfo>,
    /// The answer that did not replace it.
    pub aside: Option<RejectedAnswerInfo>,
    now: Moment,
}

/// Whether a call can be spared, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What it would tell is known, not stale, and not old: it can be spared.
    Fresh,
    /// It is known, and older than it is wanted.
    Old,
    /// An action made some of it stale.
    Stale,
    /// Only parts of it were ever seen.
    Partial,
    /// It is known, and cannot be read.
    Damaged,
    /// Nothing is known of it.
    Unknown,
    /// It is not known whose world it would tell of.
    NoAccount,
    /// The policy says nothing of the tool.
    NotObserved,
}

impl Observations {
    /// What to ask before a call: whether what it would tell is known, how old that is, and
    /// whether it is fresh enough to spare the call. Fresh enough is what no action made stale and
    /// what is younger than the policy's limit, or the call's own.
    ///
    /// Reads what a summary reads of one observation, and writes nothing; [`Observations::record_check`] counts it.
    /// Linear in the observations of the account, and in the payload of that one.
    ///
    /// ```
    /// use afterimage_observe::{Millis, Moment, Observations, PlannedCall, Policy, Response, ToolCall};
    ///
    /// let observations = Observations::in_memory(Policy::default())?;
    /// let at = |tick| Moment::at(Millis::new(0)).on(tick);
    /// let map = Response::text("{\"systems\":[{\"id\":\"sol\"}]}")?;
    /// observations.intercept(&ToolCall::of_account("Ada", "get_map", &map), at(40))?;
    ///
    /// let freshness = observations.freshness(&PlannedCall::of_account("Ada", "get_map"), at(43))?;
    /// assert!(freshness.is_fresh());
    /// assert_eq!(freshness.text(), "get_map: known, 3 ticks old, fresh enough.");
    /// # Ok::<(), afterimage_observe::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) and
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for an empty or too long name;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`](super::ObservationStore).
    pub fn freshness(&self, call: &PlannedCall<'_>, now: Moment) -> Result<Freshness> {
        for (name, of) in [(call.agent, "an agent"), (call.account, "an account")] {
            name.map_or(Ok(()), |name| check_name(name, of))?;
        }
        let policy = self.policy();
        let tool = policy.tool_of(call.tool, call.arguments);
        let name = policy.name_of(&tool, call.arguments);
        let limit = policy.rule_of(&tool).and_then(|rule| rule.stale_after_ticks);
        let mut freshness = Freshness {
            verdict: Verdict::NotObserved,
            account: None,
            age: None,
            limit: call.within.or(limit),
            info: None,
            aside: None,
            now,
            tool,
            name,
        };
        if policy.rule_of(&freshness.tool).is_none() {
            return Ok(freshness);
        }
        let found = self.ask(|store| {
            let account = match (call.account, call.agent) {
                (Some(account), _) => store.account(account)?,
                (None, agent) => agent.map_or(Ok(None), |agent| store.account_of(agent))?,
            };
            account.map(|account| found(store, account, &freshness.name)).transpose()
        })?;
        let Some((account, info, aside)) = found else {
            let is_named = call.account.is_some();
            freshness.verdict = if is_named { Verdict::Unknown } else { Verdict::NoAccount };
            freshness.account = call.account.map(str::to_owned);
            return Ok(freshness);
        };
        freshness.now = account.now(now);
        freshness.account = Some(account.name);
        freshness.aside = aside;
        freshness.verdict = match &info {
            None => Verdict::Unknown,
            Some(info) if info.damage.is_some() => Verdict::Damaged,
            Some(info) => {
                let age = info.seen.age(freshness.now);
                freshness.age = Some(age);
                let ticks = age.ticks(policy.millis_per_tick);
                let is_old = freshness.limit.zip(ticks).is_some_and(|(limit, age)| age >= limit);
                match info {
                    _ if !info.stale.is_empty() => Verdict::Stale,
                    _ if info.is_partial => Verdict::Partial,
                    _ if is_old => Verdict::Old,
                    _ => Verdict::Fresh,
                }
            }
        };
        freshness.info = info;
        Ok(freshness)
    }

    /// Counts this check in the figures ([`Figures::checks`], [`Figures::spared`]). Costs one
    /// commit of the store.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::Damaged`](crate::ErrorKind::Damaged):
    /// see [`ObservationStore`](super::ObservationStore).
    pub fn record_check(&self, freshness: &Freshness) -> Result<()> {
        if freshness.verdict == Verdict::NotObserved {
            return Ok(());
        }
        let spared = u64::from(freshness.is_fresh());
        let figures = Figures { checks: 1, spared, ..Figures::default() };
        self.store().write(&mut |store| store.add_figures(&freshness.tool, &figures))
    }
}

/// What is known of one observation of an account.
fn found(
    store: &dyn StoreReader,
    account: Account,
    name: &str,
) -> Result<(Account, Option<ObservationInfo>, Option<RejectedAnswerInfo>)> {
    let infos = store.infos(&account.name)?;
    // Where a row was lost, it may be the one that is asked for.
    let is_lost = |info: &&ObservationInfo| info.name == LOST && info.damage.is_some();
    let info = infos.iter().find(|info| info.name == name).or_else(|| infos.iter().find(is_lost));
    let mut info = info.cloned();
    if let Some(info) = info.as_mut().filter(|info| info.damage.is_none()) {
        note_damaged_payload(store, &account.name, info)?;
    }
    let aside = store.asides(&account.name)?.into_iter().find(|aside| aside.name == name);
    Ok((account, info, aside))
}

impl Freshness {
    /// Whether the call can be spared.
    pub fn is_fresh(&self) -> bool {
        self.verdict == Verdict::Fresh
    }

    /// What is known, and what to do, in a sentence or two. O(text).
    pub fn text(&self) -> String {
        let name = shown::clean(&self.name, NAME_CHARS);
        let age = self.age.map(Age::bare).unwrap_or_default();
        let known = format!("{name}: known, {age} old");
        let mut text = match self.verdict {
            Verdict::Fresh => format!("{known}, fresh enough."),
            Verdict::Old => {
                let limit = self.limit.unwrap_or_default();
                let ticks = if limit == 1 { "tick" } else { "ticks" };
                format!("{known}; it counts as old from {limit} {ticks} on. Call it.")
            }
            Verdict::Stale => format!("{known}, but stale{}. Call it.", self.stale()),
            Verdict::Partial => format!("{name}: known in part, {age} old. Call it for the rest."),
            Verdict::Damaged => format!("{name}: known, but damaged. Call it."),
            Verdict::Unknown if self.aside.is_some() => {
                format!("{name}: there is no usable answer yet. Call it.")
            }
            Verdict::Unknown => format!("{name}: not known. Call it."),
            Verdict::NoAccount => format!("{name}: the agent has no account. Log in first."),
            Verdict::NotObserved => format!("{name}: not observed. Call it."),
        };
        if let Some(aside) = &self.aside {
            let age = aside.seen.age(self.now).short();
            // Writing to a text cannot fail.
            let _ = write!(text, " Its last answer was set aside ({age}): {}.", aside.what());
        }
        text
    }

    /// Since which actions what is stale.
    fn stale(&self) -> String {
        let marks = self.info.iter().flat_map(|info| &info.stale);
        let marks = marks.map(|mark| {
            let path = shown::label(mark.path.segments()).to_lowercase();
            let path = if path.is_empty() { "all of it".to_owned() } else { path };
            let age = mark.since.age(self.now).short();
            format!("{path} since {} ({age})", shown::clean(&mark.by, NAME_CHARS))
        });
        format!(": {}", marks.collect::<Vec<_>>().join(", "))
    }

    /// The freshness for programs: `tool`, `name`, `account` (or null), `fresh`, `verdict`, `text`,
    /// `observation` (as in a database, or null), `aside` (optional). O(size).
    pub fn to_json(&self) -> Value {
        let mut object = object! {
            "tool": self.tool.as_str(),
            "name": self.name.as_str(),
            "account": self.account.as_deref(),
            "fresh": self.is_fresh(),
            "verdict": to_value(&self.verdict).unwrap_or_default(),
            "text": self.text(),
            "observation": self.info.as_ref().map(ObservationInfo::to_json),
        };
        object.put_some("aside", self.aside.as_ref().and_then(|aside| to_value(aside).ok()));
        object.into()
    }
}
