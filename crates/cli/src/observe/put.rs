//! `afterimage observe put`: a response on its way into a database.

use std::{
    io::{self, Read, Write},
    path::Path,
};

use afterimage::{
    json::{self, Value},
    observe::{IgnoreReason, Interception, Moment, Observations, Response, ToolCall},
};

use super::{
    args::{Observe, Put},
    at_tick,
};
use crate::{
    failure::{Failure, Outcome},
    output::{Output, note},
    text::{counted, printable},
};

pub(super) fn put(
    observations: &Observations,
    put: &Put,
    now: Moment,
    args: &Observe,
    out: &mut Output,
) -> Outcome {
    let arguments = arguments(put.arguments.as_deref())?;
    let response = response()?;
    let mut call = ToolCall::of_account(&put.account, &put.tool, &response);
    if let Some(arguments) = &arguments {
        call = call.with_arguments(arguments);
    }
    let outcome = observations.intercept(&call, at_tick(now, put.tick))?;
    if response.mended() > 0 {
        note(&format!("standard input: {}", json::mended_note(response.mended())));
    }
    if args.json {
        return out.json(json::to_value(&outcome)?);
    }
    for line in said(&outcome) {
        writeln!(out, "{}", printable(&line))?;
    }
    Ok(())
}

/// The arguments of a call.
pub(super) fn arguments(text: Option<&str>) -> Outcome<Option<Value>> {
    let arguments = text.map(|text| json::read(text.as_bytes())).transpose();
    Ok(arguments.map_err(|error| error.in_file("--arguments"))?)
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
pub(super) fn said(outcome: &Interception) -> Vec<String> {
    let Interception { tool, session, stored, merged, stale, changed, ignored, .. } = outcome;
    let mut lines = Vec::new();
    if let Some(session) = session {
        lines.push(format!("{tool}: {}", session.as_str().replace('_', " ")));
    }
    let changes = match (outcome.was_known, changed, outcome.unchanged_since) {
        (false, ..) => "new".to_owned(),
        (true, 0, Some(since)) => match since.tick {
            Some(tick) => format!("unchanged since tick {tick}"),
            None => format!("unchanged since {}", time(since)),
        },
        (true, 0, None) => "nothing changed".to_owned(),
        (true, changed, _) => format!("{} changed", counted(*changed as u64, "path")),
    };
    let kept = stored.iter().map(|name| format!("kept {name}: {changes}"));
    lines.extend(kept);
    lines.extend(merged.iter().map(|name| format!("merged into {name}: {changes}")));
    lines.extend(outcome.missing.iter().map(|what| format!("missing in {tool}: {what}")));
    lines.extend(stale.iter().map(|target| format!("stale: {target}")));
    let why = match ignored {
        None if outcome.aside.is_some() => {
            Some("a part of the answer was refused; see get --aside".to_owned())
        }
        None => None,
        Some(IgnoreReason::Failed) => Some("the call failed".to_owned()),
        Some(IgnoreReason::Older) => Some(
            "the answer is older than what is known; where the known tick is wrong, `afterimage \
             observe accept` takes the answer"
                .to_owned(),
        ),
        Some(IgnoreReason::Empty) => Some("the answer is empty".to_owned()),
        Some(IgnoreReason::OtherShape) => {
            Some("the answer has another shape than what is known".to_owned())
        }
        Some(IgnoreReason::NoAccount) if session.is_some() => None,
        Some(IgnoreReason::NoAccount) => {
            Some("the account is unknown: log in first, or give --account".to_owned())
        }
        Some(_) => Some(format!("the policy says nothing of {tool}")),
    };
    let why = why.map(|why| match &outcome.aside {
        Some(name) if !outcome.was_known => {
            format!("set aside, and nothing is known of {name} yet: {why}")
        }
        Some(name) => format!("set aside, and {name} stays as it was: {why}"),
        None => format!("not kept: {why}"),
    });
    lines.extend(why);
    if lines.is_empty() {
        lines.push(format!("{tool}: noted"));
    }
    lines
}

/// A moment by the clock.
fn time(moment: Moment) -> String {
    let stamp = jiff::Timestamp::from_millisecond(moment.at.get());
    stamp.map_or_else(|_| format!("{} ms", moment.at.get()), |stamp| stamp.to_string())
}
