//! `afterimage observe`: what tools told an agent of its world, in a database.

pub(crate) mod args;
pub(crate) mod ledger;
mod put;
pub(crate) mod replay;
mod responses;
pub(crate) mod tables;

use std::{io::Write, path::Path, time::SystemTime};

use afterimage::{
    id::Millis,
    json::{self, Value},
    observe::{ErrorKind, Moment, Observations, PlannedCall, Pointer, Policy},
    tokens,
};

use crate::{
    answer::answer,
    args::Tokenizer,
    failure::{Failure, Outcome, Stop},
    input,
    output::{Output, note},
    text::{counted, printable},
};
use args::{Action, Fresh, Get, Observe, Release, Summary};

/// The most bytes of a policy.
const MOST_OF_POLICY: u64 = 16 << 20;

pub(crate) fn run(args: &Observe) -> Outcome {
    let policy = policy(args.policy.as_deref()).map_err(Stop::without_guess)?;
    let mut out = Output::new(args.coloring.color);
    if let Action::Replay(replay) = &args.action {
        return replay::run(replay, &policy, args.json, &mut out);
    }
    on_database(args, policy, &mut out).map_err(Stop::without_guess)?;
    Ok(out.flush()?)
}

fn on_database(args: &Observe, policy: Policy, out: &mut Output) -> Outcome {
    let now = now(args);
    match &args.action {
        // It needs no database.
        Action::Replay(_) => {}
        Action::Put(put) => {
            let observations = Observations::open(db(args)?, policy)?;
            put::put(&observations, put, now, args, out)?;
        }
        Action::Summary(summary) => {
            let observations = opened(args, policy)?.counted_by(counter(summary.tokenizer)?);
            self::summary(&observations, summary, now, args.json, out)?;
        }
        Action::Fresh(fresh) => self::fresh(&opened(args, policy)?, fresh, now, args.json, out)?,
        Action::Accept(accept) => {
            let accepted = opened(args, policy)?.accept(&accept.account, &accept.tool)?;
            let nothing = || nothing_set_aside(&accept.account, &accept.tool);
            let outcome = accepted.ok_or_else(nothing)?;
            if args.json {
                return out.json(json::to_value(&outcome)?);
            }
            for line in put::said(&outcome) {
                writeln!(out, "{}", printable(&line))?;
            }
        }
        Action::Release(release) => self::release(&opened(args, policy)?, release, args.json, out)?,
        Action::Get(get) => self::get(&opened(args, policy)?, get, args.json, out)?,
        Action::Stale(stale) => {
            let observations = opened(args, policy)?;
            let now = observations.now_of(&stale.account, at_tick(now, stale.tick))?;
            tables::stale(&observations, &stale.account, now, args.json, out)?;
        }
        Action::Accounts => tables::accounts(&opened(args, policy)?, args.json, out)?,
        Action::Clear(clear) => {
            let gone = opened(args, policy)?.clear(&clear.account, clear.tool.as_deref())?;
            if args.json {
                out.answer(&ClearedAccount { account: &clear.account, forgotten: gone })?;
            } else {
                writeln!(out, "forgot {}", counted(gone, "observation"))?;
            }
        }
        Action::Stats => tables::stats(&opened(args, policy)?, args.json, out)?,
    }
    Ok(())
}

/// The database that was named.
fn db(args: &Observe) -> Outcome<&Path> {
    let missing = || Failure::new("no database was named").hint("`--db FILE` is the database");
    Ok(args.db.as_deref().ok_or_else(missing)?)
}

/// A database that is there. One that cannot be written is only read.
fn opened(args: &Observe, policy: Policy) -> Outcome<Observations> {
    let path = db(args)?;
    if let Err(error) = std::fs::metadata(path) {
        return Err(Failure::cannot_open(&error).file(path).into());
    }
    match Observations::open(path, policy.clone()) {
        Err(error) if error.kind() == ErrorKind::Io => {
            Ok(Observations::open_read_only(path, policy)?)
        }
        opened => Ok(opened?),
    }
}

fn policy(path: Option<&Path>) -> Outcome<Policy> {
    let Some(path) = path else { return Ok(Policy::default()) };
    let bytes = input::regular(path, MOST_OF_POLICY).map_err(|stop| match stop {
        Stop::Failure(failure) => {
            failure.hint("`--policy` is a file; without it every tool is observed").into()
        }
        stop => stop,
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new("the policy is not UTF-8").file(path).at("offset", at)
    })?;
    let is_json = text.trim_start().starts_with('{');
    let policy = if is_json {
        json::read(text.as_bytes())
            .map_err(afterimage::observe::Error::from)
            .and_then(Policy::from_json)
    } else {
        Policy::from_toml(&text)
    };
    Ok(policy.map_err(|error| error.in_file(path))?)
}

fn counter(tokenizer: Tokenizer) -> Outcome<std::sync::Arc<dyn tokens::TokenCounter>> {
    let name = tokenizer.name();
    let missing = || Failure::new(format!("this build has no tokenizer {name}"));
    Ok(tokens::by_name(name).ok_or_else(missing)?)
}

fn now(args: &Observe) -> Moment {
    Moment::at(args.now.map_or_else(|| SystemTime::now().into(), Millis::new))
}

fn at_tick(now: Moment, tick: Option<u64>) -> Moment {
    tick.map_or(now, |tick| now.on(tick))
}

fn summary(
    observations: &Observations,
    args: &Summary,
    now: Moment,
    as_json: bool,
    out: &mut Output,
) -> Outcome {
    let summary = observations.summary(&args.account, at_tick(now, args.tick), args.tokens)?;
    if let Err(error) = observations.record_shown(&summary) {
        note(&format!("the summary could not be counted: {error}"));
    }
    if as_json {
        return out.json(summary.to_json());
    }
    Ok(out.write_all(summary.text().as_bytes())?)
}

fn fresh(
    observations: &Observations,
    args: &Fresh,
    now: Moment,
    as_json: bool,
    out: &mut Output,
) -> Outcome {
    let arguments = put::arguments(args.arguments.as_deref())?;
    let mut call = PlannedCall::of_account(&args.account, &args.tool);
    if let Some(arguments) = &arguments {
        call = call.with_arguments(arguments);
    }
    if let Some(within) = args.within {
        call = call.within(within);
    }
    let freshness = observations.freshness(&call, at_tick(now, args.tick))?;
    if let Err(error) = observations.record_check(&freshness) {
        note(&format!("the check could not be counted: {error}"));
    }
    if as_json {
        out.json(freshness.to_json())?;
    } else {
        writeln!(out, "{}", printable(&freshness.text()))?;
    }
    if freshness.is_fresh() {
        return Ok(());
    }
    out.flush()?;
    Err(Stop::Negative)
}

fn release(
    observations: &Observations,
    args: &Release,
    as_json: bool,
    out: &mut Output,
) -> Outcome {
    let (account, agent) = match (&args.account, &args.agent) {
        (Some(account), _) => (Some(account.clone()), observations.release_account(account)?),
        (None, agent) => {
            let agent = agent.as_deref().unwrap_or_default();
            let account = observations.account_of_agent(agent)?.map(|account| account.name);
            let had = observations.release(agent)?;
            (account, had.then(|| agent.to_owned()))
        }
    };
    if as_json {
        return out.answer(&ReleasedAccount { account, agent });
    }
    let line = match (account, agent) {
        (Some(account), Some(agent)) => format!("released {account} from {agent}"),
        (Some(account), None) => format!("nobody has {account}"),
        (None, _) => "the agent has no account".to_owned(),
    };
    Ok(writeln!(out, "{}", printable(&line))?)
}

fn nothing_set_aside(account: &str, tool: &str) -> Failure {
    Failure::new(format!("no answer was set aside for {tool:?}")).at("account", account)
}

fn aside(observations: &Observations, args: &Get, as_json: bool, out: &mut Output) -> Outcome {
    let nothing = || nothing_set_aside(&args.account, &args.tool);
    let found = observations.aside(&args.account, &args.tool)?.ok_or_else(nothing)?;
    let value = found.value()?;
    if !as_json {
        return Ok(writeln!(out, "{value}")?);
    }
    let info = json::to_value(&found.info)?;
    out.answer(&AsideAnswer { account: &args.account, info, content: value })
}

fn get(observations: &Observations, args: &Get, as_json: bool, out: &mut Output) -> Outcome {
    if args.aside {
        return aside(observations, args, as_json, out);
    }
    let nothing = || {
        let message = format!("nothing is known of {:?}", args.tool);
        Failure::new(message).at("account", &args.account)
    };
    let found = observations.get(&args.account, &args.tool)?.ok_or_else(nothing)?;
    let pointer = Pointer::parse(&args.path).map_err(|error| error.in_file("--path"))?;
    let value = found.value()?;
    let part = pointer.of_value(&value).ok_or_else(|| {
        Failure::new(format!("{:?} has nothing there", args.tool)).at("at", &args.path)
    })?;
    if !as_json {
        return out.json(part.clone());
    }
    let seen = observations.seen(&found, &pointer)?.unwrap_or(found.info.seen);
    out.answer(&FoundObservation {
        account: &args.account,
        info: found.info.to_json(),
        path: &args.path,
        seen: seen.into(),
        content: part,
    })
}

answer! {
    /// A moment: the clock's, and the tick of the world.
    pub(crate) struct MomentAnswer {
        /// the milliseconds since the Unix epoch
        at: Millis,
        /// the tick of the world, where it is known
        tick: Option<u64>,
    }

    /// What an account's agent was told.
    pub(crate) struct FoundObservation<'o> {
        /// the account
        account: &'o str,
        /// the members of an observation
        ..info: Value,
        /// the part that was asked for, a JSON pointer
        path: &'o str,
        /// when that part was seen
        seen: MomentAnswer,
        /// that part
        content: &'o Value,
    }

    /// An answer that is kept beside an observation.
    pub(crate) struct AsideAnswer<'o> {
        /// the account
        account: &'o str,
        /// the members of an `aside`
        ..info: Value,
        /// the answer that was set aside
        content: Value,
    }

    /// Observations that were forgotten.
    pub(crate) struct ClearedAccount<'o> {
        /// the account
        account: &'o str,
        /// how many observations were forgotten
        forgotten: u64,
    }

    /// An account that its agent no longer has.
    pub(crate) struct ReleasedAccount {
        /// the account; null where the agent had none
        account: Option<String>,
        /// the agent that had it; null where none had
        agent: Option<String>,
    }
}

impl From<Moment> for MomentAnswer {
    fn from(Moment { at, tick }: Moment) -> Self {
        Self { at, tick }
    }
}
