//! `afterimage observe`: what tools told an agent of its world, in a database.

pub(crate) mod args;
mod ledger;
mod replay;
mod responses;
mod tables;

use std::{
    io::{self, Read, Write},
    path::Path,
    time::SystemTime,
};

use afterimage::{
    id::Millis,
    json::{self, Object, Value},
    observe::{Interception, Moment, Observations, Pointer, Policy, Response, ToolCall},
    tokens,
};

use crate::{
    args::Tokenizer,
    failure::{Failure, Outcome, Stop},
    json::object,
    output::{Output, note},
    text::{counted, printable},
};
use args::{Action, Get, Observe, Put, Summary};

pub(crate) fn run(args: &Observe) -> Outcome {
    let policy = policy(&args.policy).map_err(Stop::without_guess)?;
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
            self::put(&observations, put, now, args, out)?;
        }
        Action::Summary(summary) => {
            let observations = opened(args, policy)?.counted_by(counter(summary.tokenizer)?);
            self::summary(&observations, summary, now, args.json, out)?;
        }
        Action::Get(get) => self::get(&opened(args, policy)?, get, args.json, out)?,
        Action::Stale(stale) => {
            let observations = opened(args, policy)?;
            let now = observations.now_of(&stale.account, at_tick(now, stale.tick))?;
            let found = observations.stale(&stale.account, now)?;
            tables::stale(&observations, &found, now, args.json, out)?;
        }
        Action::Accounts => tables::accounts(&opened(args, policy)?, args.json, out)?,
        Action::Clear(clear) => {
            let gone = opened(args, policy)?.clear(&clear.account, clear.tool.as_deref())?;
            if args.json {
                out.json(object! { "account": clear.account.as_str(), "forgotten": gone })?;
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

/// A database that is there.
fn opened(args: &Observe, policy: Policy) -> Outcome<Observations> {
    let path = db(args)?;
    if let Err(error) = std::fs::metadata(path) {
        return Err(Failure::cannot_open(&error).file(path).into());
    }
    Ok(Observations::open(path, policy)?)
}

fn policy(name: &str) -> Outcome<Policy> {
    match name {
        "spacemolt" => return Ok(Policy::spacemolt()),
        "all" => return Ok(Policy::default()),
        _ => {}
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = "`--policy` is `spacemolt`, `all`, or a file";
        Failure::cannot_open(&error).file(path).hint(hint)
    })?;
    let is_json = text.trim_start().starts_with('{');
    let policy = if is_json {
        json::read(text.as_bytes()).and_then(Policy::from_json)
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

fn put(
    observations: &Observations,
    put: &Put,
    now: Moment,
    args: &Observe,
    out: &mut Output,
) -> Outcome {
    let arguments = put.arguments.as_ref().map(|text| json::read(text.as_bytes()));
    let arguments = arguments.transpose().map_err(|error| error.in_file("--arguments"))?;
    let response = response()?;
    let mut call = ToolCall::of_account(&put.account, &put.tool, &response);
    if let Some(arguments) = &arguments {
        call = call.with_arguments(arguments);
    }
    let outcome = observations.intercept(&call, at_tick(now, put.tick))?;
    if args.json {
        return out.json(outcome.to_json());
    }
    for line in said(&outcome, &args.policy) {
        writeln!(out, "{}", printable(&line))?;
    }
    Ok(())
}

/// The response on standard input.
fn response() -> Outcome<Response> {
    let mut bytes = Vec::new();
    let most = Response::MAX_BYTES as u64 + 1;
    let read = io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    if bytes.len() > Response::MAX_BYTES {
        let message = "the response is longer than 64 MiB, which is the most that is kept";
        return Err(Failure::new(message).file(Path::new("standard input")).into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new("the response is not UTF-8").file(Path::new("standard input")).at("offset", at)
    })?;
    Ok(Response::text(&text).map_err(|error| error.in_file("standard input"))?)
}

/// What came of a response, a sentence a line.
fn said(outcome: &Interception, policy: &str) -> Vec<String> {
    let Interception { tool, session, stored, merged, stale, changed, ignored, .. } = outcome;
    let mut lines = Vec::new();
    if let Some(session) = session {
        lines.push(format!("{tool}: {}", session.as_str().replace('_', " ")));
    }
    let changes = match (outcome.was_known, changed) {
        (false, _) => "new".to_owned(),
        (true, 0) => "nothing changed".to_owned(),
        (true, changed) => format!("{} changed", counted(*changed as u64, "path")),
    };
    let kept = stored.iter().map(|name| format!("kept {name}: {changes}"));
    lines.extend(kept);
    lines.extend(merged.iter().map(|name| format!("merged into {name}: {changes}")));
    lines.extend(stale.iter().map(|target| format!("stale: {target}")));
    match ignored.map(afterimage::observe::Ignored::as_str) {
        None => {}
        Some("failed") => lines.push("not kept: the call failed".to_owned()),
        Some("not_observed") => {
            lines.push(format!("not kept: the policy {policy} says nothing of {tool}"));
        }
        Some(_) if session.is_some() => {}
        Some(_) => lines.push("not kept: it is not known whose it is".to_owned()),
    }
    if lines.is_empty() {
        lines.push(format!("{tool}: noted"));
    }
    lines
}

fn summary(
    observations: &Observations,
    args: &Summary,
    now: Moment,
    as_json: bool,
    out: &mut Output,
) -> Outcome {
    let summary = observations.summary(&args.account, at_tick(now, args.tick), args.tokens)?;
    if let Err(error) = observations.shown(&summary) {
        note(&format!("this summary is not counted: {error}"));
    }
    if as_json {
        return out.json(summary.to_json());
    }
    Ok(write!(out, "{}", summary.text())?)
}

fn get(observations: &Observations, args: &Get, as_json: bool, out: &mut Output) -> Outcome {
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
        return Ok(writeln!(out, "{part}")?);
    }
    let seen = observations.seen(&found, &pointer)?.unwrap_or(found.info.seen);
    let mut object = object! { "account": args.account.as_str() };
    if let Value::Object(info) = found.info.to_json() {
        object.extend(info);
    }
    object.insert("path".to_owned(), args.path.as_str().into());
    object.insert("seen".to_owned(), json_of(seen).into());
    object.insert("content".to_owned(), part.clone());
    out.json(object)
}

/// A moment for programs.
fn json_of(moment: Moment) -> Object {
    object! { "at": moment.at.get(), "tick": crate::json::or_null(moment.tick) }
}
