use super::{
    Account, Figures, IgnoreReason, Interception, LoginChange, Moment, Observations, StaleMark,
    StoreWriter, ToolCall,
    account::check_name,
    accounts::{AccountClaim, forget, take},
    moment::tick_of,
    pointer::id_text,
    shown::short,
};
use crate::{Error, ErrorKind, Result};

/// A tool call, with what its response says of itself.
pub(super) struct ReportedCall<'a> {
    pub(super) call: &'a ToolCall<'a>,
    pub(super) tool: String,
    /// What the observation is called that the response is, or would be.
    pub(super) name: String,
    /// When it was seen: on the tick that it names, else on the caller's.
    pub(super) seen: Moment,
    pub(super) username: Option<String>,
    /// Whether the policy says anything of the tool.
    pub(super) is_named: bool,
    /// Whether the response names the tick.
    pub(super) has_tick: bool,
    /// Whether it replaces what is known, whatever it is.
    pub(super) is_accepted: bool,
}

impl ReportedCall<'_> {
    /// Refuses a response that says that it is of another account than the one that was named.
    fn check_account(&self) -> Result<()> {
        let (Some(named), Some(said)) = (self.call.account, &self.username) else { return Ok(()) };
        if named == said {
            return Ok(());
        }
        let message = format!(
            "the answer of {} names the account {:?}, the call names {:?}: nothing was kept; \
             name the right account",
            self.tool,
            short(said),
            short(named),
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The account that the caller names or that the agent has, where it is known.
    fn known_account(&self, store: &dyn StoreWriter) -> Result<Option<Account>> {
        match (self.call.account, self.call.agent) {
            (Some(name), _) => store.account(name),
            (None, Some(agent)) => store.account_of(agent),
            (None, None) => Ok(None),
        }
    }
}

impl Observations {
    /// Looks at a tool call on its way back: keeps its response where the policy wants it, marks
    /// what it made stale, and follows the agent from account to account. `now` is the time, and
    /// the tick where the response does not name one.
    ///
    /// An answer that failed, is empty, of another shape than what is known, or older, replaces
    /// nothing. It is counted, kept beside the observation ([`Observations::asides`]), and told in
    /// summaries, until the next one replaces it or [`Observations::accept`] does. So is a first
    /// answer that failed or is empty: nothing is known then. Costs the
    /// writing of the payload, the comparison with the one before, and one commit of the store. Of
    /// a tool that the policy says nothing of no more than the tick is noted, where the response
    /// names it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the account belongs to another agent, or the response says
    /// that it is of another account than the one that the call names; [`ErrorKind::Shape`] and
    /// [`ErrorKind::Limit`] for an account whose name is empty or too long, `Limit` for a payload
    /// that is nested deeper than 128 levels; [`ErrorKind::Io`], [`ErrorKind::Damaged`]: see
    /// [`ObservationStore`](super::ObservationStore). Nothing has changed then.
    pub fn intercept(&self, call: &ToolCall<'_>, now: Moment) -> Result<Interception> {
        for (name, of) in [(call.agent, "an agent"), (call.account, "an account")] {
            name.map_or(Ok(()), |name| check_name(name, of))?;
        }
        let reported = self.reported(call, now);
        let mut outcome = Interception { tool: reported.tool.clone(), ..Interception::default() };
        let is_failure = self.policy().is_failure(call.response);
        if !reported.is_named && (is_failure || !reported.has_tick) {
            let ignored = if is_failure { IgnoreReason::Failed } else { IgnoreReason::NotObserved };
            outcome.ignored = Some(ignored);
            return Ok(outcome);
        }
        let size = call.response.size();
        self.store().write(&mut |store| {
            outcome = Interception { tool: reported.tool.clone(), ..Interception::default() };
            let mut figures = Figures {
                calls: 1,
                bytes_in: size.bytes,
                tokens_in: size.tokens,
                ..Figures::default()
            };
            if is_failure {
                figures.failed = 1;
                if reported.is_named {
                    reported.check_account()?;
                }
                outcome.ignored = Some(IgnoreReason::Failed);
                if let Some(account) = self.account_of_failure(store, &reported)? {
                    self.set_aside(
                        store,
                        &account.name,
                        &reported,
                        IgnoreReason::Failed,
                        &mut outcome,
                    )?;
                }
            } else {
                self.follow(store, &reported, &mut outcome)?;
                let is_kept = outcome.stored.is_some() || !outcome.merged.is_empty();
                figures.kept = u64::from(is_kept);
                figures.unchanged = u64::from(is_kept && outcome.changed == 0 && outcome.was_known);
                figures.fresh_repeats = u64::from(outcome.was_fresh);
                let is_aside = |reason| u64::from(outcome.ignored == Some(reason));
                figures.older = is_aside(IgnoreReason::Older);
                figures.failed = is_aside(IgnoreReason::Failed);
                figures.empty = is_aside(IgnoreReason::Empty);
                figures.other_shape = is_aside(IgnoreReason::OtherShape);
            }
            if reported.is_named {
                store.add_figures(&reported.tool, &figures)?;
            }
            Ok(())
        })?;
        Ok(outcome)
    }

    fn reported<'a>(&self, call: &'a ToolCall<'a>, now: Moment) -> ReportedCall<'a> {
        let policy = self.policy();
        let tick = call.response.find(&policy.ticks, tick_of);
        let tool = policy.tool_of(call.tool, call.arguments);
        let is_named = policy.names(&tool);
        let said = call.response.find(&policy.usernames, id_text);
        // A login says it in its text, or in its arguments alone.
        let username = said.or_else(|| {
            policy.is_of_session(&tool).then_some(())?;
            let text = call.response.payload().as_str();
            let argument = || {
                let arguments = call.arguments?;
                let found = policy.username_arguments.iter();
                found.filter_map(|pointer| pointer.of_value(arguments)).find_map(id_text)
            };
            text.and_then(|text| policy.name_in(text)).or_else(argument)
        });
        ReportedCall {
            call,
            is_named,
            name: policy.name_of(&tool, call.arguments),
            is_accepted: false,
            tool,
            seen: Moment { tick: tick.or(now.tick), ..now },
            username,
            has_tick: tick.is_some(),
        }
    }

    /// The account beside whose observations a failure is kept. One that the call names is made
    /// where it is not there, so that it is known that there is no usable answer yet.
    fn account_of_failure(
        &self,
        store: &mut dyn StoreWriter,
        reported: &ReportedCall<'_>,
    ) -> Result<Option<Account>> {
        let known = reported.known_account(store)?;
        let policy = self.policy();
        let is_observed = policy.observes(&reported.tool) && !policy.is_of_session(&reported.tool);
        match reported.call.account.filter(|_| known.is_none() && is_observed) {
            Some(name) => {
                let agent = reported.call.agent;
                let claim = AccountClaim::default();
                Ok(Some(take(store, agent, name, claim, reported.seen)?.0))
            }
            None => Ok(known),
        }
    }

    /// Does what a call that succeeded asks for.
    fn follow(
        &self,
        store: &mut dyn StoreWriter,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let Some(mut account) = self.account_of(store, reported, outcome)? else {
            let is_named = reported.is_named;
            let ignored =
                if is_named { IgnoreReason::NoAccount } else { IgnoreReason::NotObserved };
            outcome.ignored.get_or_insert(ignored);
            return Ok(());
        };
        account.note(reported.seen);
        store.put_account(&account)?;
        outcome.account = Some(account.name.clone());
        self.mark_stale(store, &account.name, reported, outcome)?;
        self.keep(store, &account.name, reported, outcome)?;
        if !reported.is_named {
            outcome.ignored = Some(IgnoreReason::NotObserved);
        }
        Ok(())
    }

    /// The account that a call is about, after it logged in or out.
    fn account_of(
        &self,
        store: &mut dyn StoreWriter,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<Option<Account>> {
        let policy = self.policy();
        let is_one_of = |names: &[String]| names.contains(&reported.tool);
        if reported.is_named {
            reported.check_account()?;
        }
        let (is_login, is_new) = (is_one_of(&policy.login), is_one_of(&policy.register));
        if is_one_of(&policy.logout) {
            if let Some(account) = reported.known_account(store)? {
                forget(store, &account.name, None)?;
                store.put_account(&Account { agent: None, ..account.clone() })?;
                outcome.account = Some(account.name);
                outcome.session = Some(LoginChange::LoggedOut);
            }
            return Ok(None);
        }
        if is_login || is_new {
            let given = reported.call.account.map(str::to_owned);
            let Some(name) = given.or_else(|| reported.username.clone()) else {
                if let Some(agent) = reported.call.agent
                    && let Some(account) = store.account_of(agent)?
                {
                    store.put_account(&Account { agent: None, ..account })?;
                }
                outcome.session = Some(LoginChange::Released);
                return Ok(None);
            };
            outcome.session =
                Some(if is_new { LoginChange::Registered } else { LoginChange::LoggedIn });
            let claim = AccountClaim { is_new, takes_over: reported.call.takes_over };
            let (account, from) = take(store, reported.call.agent, &name, claim, reported.seen)?;
            outcome.taken_from = from;
            return Ok(Some(account));
        }
        if !reported.is_named {
            return reported.known_account(store);
        }
        let taken = |store: &mut dyn StoreWriter, name: &str| {
            let taken =
                take(store, reported.call.agent, name, AccountClaim::default(), reported.seen);
            taken.map(|(account, _)| Some(account))
        };
        if let Some(name) = reported.call.account {
            return taken(store, name);
        }
        let current = reported.known_account(store)?;
        // A response that says whose it is says so whatever was known before.
        let is_observed = policy.observes(&reported.tool);
        match reported.username.as_deref().filter(|_| is_observed) {
            Some(name) if current.as_ref().is_none_or(|current| current.name != name) => {
                taken(store, name)
            }
            _ => Ok(current),
        }
    }

    fn mark_stale(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        reported: &ReportedCall<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let rules = self.policy().actions.iter().filter(|rule| rule.tool == reported.tool);
        let targets: Vec<_> = rules.flat_map(|rule| &rule.stale).collect();
        if targets.is_empty() {
            return Ok(());
        }
        for info in store.infos(account)? {
            // Who looked after the action has seen what it did.
            if info.damage.is_some() || reported.seen.is_before(info.seen) {
                continue;
            }
            let mut stale = info.stale.clone();
            for target in targets.iter().filter(|target| target.tool == info.tool) {
                // Since the first action that made it so, as long as nobody looked.
                if !stale.iter().any(|mark| mark.path == target.path || mark.path.is_root()) {
                    if target.path.is_root() {
                        stale.clear();
                    }
                    let (path, by) = (target.path.clone(), reported.tool.clone());
                    stale.push(StaleMark { path, by, since: reported.seen });
                }
                let path = Some(&target.path).filter(|path| !path.is_root());
                let path = path.map(|path| format!("#{path}")).unwrap_or_default();
                outcome.stale.push(format!("{}{path}", info.name));
            }
            if stale != info.stale {
                store.put_stale(account, &info.name, &stale)?;
            }
        }
        Ok(())
    }
}
