use super::{
    Account, Ages, Figures, Ignored, Interception, Moment, Observation, ObservationInfo,
    Observations, Outline, PartialRule, Pointer, Policy, SessionChange, StaleMark, StoreWriter,
    ToolCall, ToolRule,
    account::check_name,
    changes::Changes,
    merge::Merging,
    outline::Subject,
    pointer::id_text,
    response::check_depth,
    shown::{self, LABEL_CHARS},
    written::Written,
};
use crate::{
    Result,
    json::{Object, Value},
};

/// The longest name of an observation before its arguments are cut, in bytes.
const LONGEST_NAME: usize = 200;

/// What a response says of itself.
struct Told<'a> {
    call: &'a ToolCall<'a>,
    tool: String,
    /// When it was seen: on the tick that it names, else on the caller's.
    seen: Moment,
    username: Option<String>,
    /// Whether the policy says anything of the tool.
    is_named: bool,
    /// Whether the response names the tick.
    has_tick: bool,
}

impl Told<'_> {
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
    /// A call that failed changes nothing but the figures. Costs the writing of the payload, the
    /// comparison with the one before, and one commit of the store. Of a tool that the policy says
    /// nothing of no more than the tick is noted, where the response names it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) where the account belongs to another
    /// agent, [`ErrorKind::Shape`](crate::ErrorKind::Shape) and
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for an account whose name is empty or too
    /// long, `Limit` for a payload that is nested deeper than 128 levels, and those of the store.
    /// Nothing has changed then.
    pub fn intercept(&self, call: &ToolCall<'_>, now: Moment) -> Result<Interception> {
        for (name, of) in [(call.agent, "an agent"), (call.account, "an account")] {
            name.map_or(Ok(()), |name| check_name(name, of))?;
        }
        let told = self.told(call, now);
        let mut outcome = Interception { tool: told.tool.clone(), ..Interception::default() };
        let is_failure = self.policy().is_failure(call.response);
        if !told.is_named && (is_failure || !told.has_tick) {
            let ignored = if is_failure { Ignored::Failed } else { Ignored::NotObserved };
            outcome.ignored = Some(ignored);
            return Ok(outcome);
        }
        let size = call.response.size();
        self.store().write(&mut |store| {
            outcome = Interception { tool: told.tool.clone(), ..Interception::default() };
            let mut figures = Figures {
                calls: 1,
                bytes_in: size.bytes,
                tokens_in: size.tokens,
                ..Figures::default()
            };
            if is_failure {
                figures.failed = 1;
                outcome.ignored = Some(Ignored::Failed);
            } else {
                self.follow(store, &told, &mut outcome)?;
                let is_kept = outcome.stored.is_some() || !outcome.merged.is_empty();
                figures.kept = u64::from(is_kept);
                figures.unchanged = u64::from(is_kept && outcome.changed == 0 && outcome.was_known);
                figures.fresh_repeats = u64::from(outcome.was_fresh);
            }
            if told.is_named {
                store.add_figures(&told.tool, &figures)?;
            }
            Ok(())
        })?;
        Ok(outcome)
    }

    fn told<'a>(&self, call: &'a ToolCall<'a>, now: Moment) -> Told<'a> {
        let policy = self.policy();
        let is_tick = |tick: &u64| i64::try_from(*tick).is_ok();
        let tick = call.response.find(&policy.ticks, |value| value.as_u64().filter(is_tick));
        let username = call.response.find(&policy.usernames, id_text);
        let tool = policy.tool_of(call.tool, call.arguments);
        Told {
            call,
            is_named: policy.names(&tool),
            tool,
            seen: Moment { tick: tick.or(now.tick), ..now },
            username,
            has_tick: tick.is_some(),
        }
    }

    /// Does what a call that succeeded asks for.
    fn follow(
        &self,
        store: &mut dyn StoreWriter,
        told: &Told<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let Some(mut account) = self.account_of(store, told, outcome)? else {
            let is_named = told.is_named;
            let ignored = if is_named { Ignored::NoAccount } else { Ignored::NotObserved };
            outcome.ignored.get_or_insert(ignored);
            return Ok(());
        };
        account.note(told.seen);
        store.put_account(&account)?;
        outcome.account = Some(account.name.clone());
        self.mark_stale(store, &account.name, told, outcome)?;
        for rule in self.policy().partials.iter().filter(|rule| rule.tool == told.tool) {
            self.merge(store, &account.name, rule, told, outcome)?;
        }
        if let Some(rule) = self.policy().rule_of(&told.tool) {
            self.replace(store, &account.name, rule, told, outcome)?;
        }
        if !told.is_named {
            outcome.ignored = Some(Ignored::NotObserved);
        }
        Ok(())
    }

    /// The account that a call is about, after it logged in or out.
    fn account_of(
        &self,
        store: &mut dyn StoreWriter,
        told: &Told<'_>,
        outcome: &mut Interception,
    ) -> Result<Option<Account>> {
        let policy = self.policy();
        let is_one_of = |names: &[String]| names.contains(&told.tool);
        let (is_login, is_new) = (is_one_of(&policy.login), is_one_of(&policy.register));
        if is_one_of(&policy.logout) {
            if let Some(account) = told.known_account(store)? {
                store.remove_observations(&account.name, None)?;
                store.put_account(&Account { agent: None, ..account.clone() })?;
                outcome.account = Some(account.name);
                outcome.session = Some(SessionChange::LoggedOut);
            }
            return Ok(None);
        }
        if is_login || is_new {
            let argument = || {
                let arguments = told.call.arguments?;
                let found = policy.username_arguments.iter();
                found.filter_map(|pointer| pointer.of_value(arguments)).find_map(id_text)
            };
            let given = told.call.account.map(str::to_owned);
            let said = || policy.name_in(told.call.response.payload().as_str()?);
            let told_name = given.or_else(|| told.username.clone()).or_else(said);
            let Some(name) = told_name.or_else(argument) else {
                if let Some(agent) = told.call.agent
                    && let Some(account) = store.account_of(agent)?
                {
                    store.put_account(&Account { agent: None, ..account })?;
                }
                outcome.session = Some(SessionChange::Released);
                return Ok(None);
            };
            outcome.session =
                Some(if is_new { SessionChange::Registered } else { SessionChange::LoggedIn });
            return super::accounts::take(store, told.call.agent, &name, is_new, told.seen)
                .map(Some);
        }
        if !told.is_named {
            return told.known_account(store);
        }
        if let Some(name) = told.call.account {
            return super::accounts::take(store, told.call.agent, name, false, told.seen).map(Some);
        }
        let Some(agent) = told.call.agent else { return Ok(None) };
        let current = store.account_of(agent)?;
        // A response that says whose it is says so whatever was known before.
        let is_observed = policy.observes(&told.tool);
        match told.username.as_deref().filter(|_| is_observed) {
            Some(name) if current.as_ref().is_none_or(|current| current.name != name) => {
                super::accounts::take(store, Some(agent), name, false, told.seen).map(Some)
            }
            _ => Ok(current),
        }
    }

    fn mark_stale(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        told: &Told<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let rules = self.policy().actions.iter().filter(|rule| rule.tool == told.tool);
        let targets: Vec<_> = rules.flat_map(|rule| &rule.stale).collect();
        if targets.is_empty() {
            return Ok(());
        }
        for info in store.infos(account)? {
            let mut stale = info.stale.clone();
            for target in targets.iter().filter(|target| target.tool == info.tool) {
                // Since the first action that made it so, as long as nobody looked.
                if !stale.iter().any(|mark| mark.path == target.path || mark.path.is_root()) {
                    if target.path.is_root() {
                        stale.clear();
                    }
                    let (path, by) = (target.path.clone(), told.tool.clone());
                    stale.push(StaleMark { path, by, since: told.seen });
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

    /// A full response takes the place of what was there.
    fn replace(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        rule: &ToolRule,
        told: &Told<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        let name = name_of(&told.tool, told.call.arguments.filter(|_| rule.by_arguments));
        let value = told.call.response.payload();
        check_depth(value, 0)?;
        let written = Written::of(value, told.call.response.size_hint());
        let known = store.observation(account, &name)?;
        let mut changes = Changes::default();
        if let Some(known) = &known {
            outcome.was_known = true;
            outcome.was_fresh = known.info.stale.is_empty()
                && !known.info.is_partial
                && !self.policy().is_old(&known.info, told.seen);
            if *known.content != *written.text() {
                changes.between(&known.content, value, &written);
            }
        }
        let info = ObservationInfo {
            name: name.clone(),
            tool: told.tool.clone(),
            seen: told.seen,
            updated: told.seen,
            is_partial: false,
            bytes: written.text().len() as u64,
            changed: self.without_ticks(changes),
            stale: Vec::new(),
            outline: Outline::default(),
        };
        outcome.changed += info.changed.len();
        let mut observation =
            Observation { info, content: written.text().into(), ages: Ages::default() };
        self.outline(&mut observation, value, rule);
        store.put_observation(account, &observation)?;
        outcome.stored = Some(name);
        Ok(())
    }

    /// A partial response goes into what was there.
    fn merge(
        &self,
        store: &mut dyn StoreWriter,
        account: &str,
        partial: &PartialRule,
        told: &Told<'_>,
        outcome: &mut Interception,
    ) -> Result<()> {
        // Where nothing stands, nothing is said: it would wipe out what is known.
        let part = partial.from.of_value(told.call.response.payload());
        let Some(part) = part.filter(|part| !part.is_null()) else { return Ok(()) };
        check_depth(part, partial.to.segments().len())?;
        let plain = ToolRule::new(partial.into.as_str());
        let rule = self.policy().rule_of(&partial.into).unwrap_or(&plain);
        let known = store.observation(account, &partial.into)?;
        let is_new = known.is_none();
        outcome.was_known |= !is_new;
        let mut observation = known.unwrap_or_else(|| nothing_yet(&partial.into, told.seen));
        let mut value = observation.value()?;
        let keys = |path: &[String]| rule.key_of(path);
        let info = &mut observation.info;
        let watched = info.stale.iter().map(|mark| (mark.path.clone(), false)).collect();
        let mut merging =
            Merging { keys: &keys, seen: told.seen, changes: Changes::default(), watched };
        let part = partial.to.segments().iter().rev().fold(part.clone(), |part, segment| {
            Value::Object(Object::from_iter([(segment.clone(), part)]))
        });
        let is_whole = merging.merge(&mut value, part, &mut observation.ages);
        let Merging { changes, watched, .. } = merging;
        info.changed = if is_new { Vec::new() } else { self.without_ticks(changes) };
        outcome.changed += info.changed.len();
        let mut named = watched.into_iter().map(|(_, is_named)| is_named);
        info.stale.retain(|_| !named.next().unwrap_or_default());
        info.updated = told.seen;
        if is_whole {
            info.seen = told.seen;
            observation.ages = Ages::default();
        }
        observation.content = value.to_string().into();
        observation.info.bytes = observation.content.len() as u64;
        self.outline(&mut observation, &value, rule);
        store.put_observation(account, &observation)?;
        outcome.merged.push(partial.into.clone());
        Ok(())
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
fn nothing_yet(tool: &str, seen: Moment) -> Observation {
    let info = ObservationInfo {
        name: tool.to_owned(),
        tool: tool.to_owned(),
        seen,
        updated: seen,
        is_partial: true,
        bytes: 0,
        changed: Vec::new(),
        stale: Vec::new(),
        outline: Outline::default(),
    };
    Observation { info, content: "null".into(), ages: Ages::default() }
}

/// What an observation is called.
fn name_of(tool: &str, arguments: Option<&Value>) -> String {
    let arguments = arguments.filter(|arguments| match arguments {
        Value::Null => false,
        Value::Object(object) => !object.is_empty(),
        _ => true,
    });
    let Some(arguments) = arguments else { return tool.to_owned() };
    let name = format!("{tool} {arguments}");
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let end = (0..=LONGEST_NAME - 40).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let (head, hash) = (name.get(..end).unwrap_or_default(), hash.get(..16).unwrap_or_default());
    format!("{head}… {hash}")
}
