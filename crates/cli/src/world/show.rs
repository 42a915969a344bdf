//! What a session says of itself.

use std::{borrow::Borrow, io::Write, ops::RangeInclusive};

use afterimage::{
    json::{Object, Value},
    timeline::{self, Data, Delta, TurnRecord},
};

use super::{Reading, args::Target, pointer};
use crate::{
    answer::answer,
    failure::{Failure, Outcome},
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{grouped, printable, truncated},
};

pub(super) fn state(
    target: &Target,
    turn: Option<u64>,
    path: Option<&str>,
    out: &mut Output,
) -> Outcome {
    let reading = Reading::open(&target.directory)?;
    let timeline = reading.timeline();
    let turn = turn.unwrap_or_else(|| timeline.last_turn());
    let place = ("file", target.directory.display().to_string());
    part(place, &timeline.state_at(turn)?, turn, path, out)
}

/// A state, or a part of it; `place` is where the session is.
pub(super) fn part(
    place: (&'static str, String),
    state: &Data,
    turn: u64,
    path: Option<&str>,
    out: &mut Output,
) -> Outcome {
    let Some(path) = path else { return out.json(state) };
    let path = pointer(path)?;
    if let Some(value) = state.at(path.elements()) {
        return out.json(value);
    }
    let failure = Failure::new(format!("there is nothing at {path} after turn {turn}"));
    Err(failure.at(place.0, place.1).into())
}

/// The turns of a range, out of some.
pub(super) fn log<T: Borrow<TurnRecord>>(
    target: &Target,
    turns: impl Iterator<Item = timeline::Result<T>>,
    range: &RangeInclusive<u64>,
    out: &mut Output,
) -> Outcome {
    let is_in = |turn: &timeline::Result<T>| {
        turn.as_ref().map_or(true, |turn| range.contains(&turn.borrow().turn_id))
    };
    let turns = turns.filter(is_in);
    if target.json {
        for turn in turns {
            out.json(turn?.borrow().to_json())?;
        }
        return Ok(());
    }
    let table = Table::new([
        Column::number("TURN", 6),
        Column::text("ACTOR", 12),
        Column::number("DELTAS", 6),
        Column::text("CHANGES", 0),
    ]);
    table.head(out)?;
    for turn in turns {
        let turn = turn?;
        let record: &TurnRecord = turn.borrow();
        let changes = record.summary.significant_changes.join("; ");
        let cells = [
            grouped(record.turn_id),
            record.actor.clone(),
            grouped(record.deltas.len() as u64),
            changes,
        ];
        table.row(out, cells.into_iter().map(plain).collect())?;
    }
    Ok(())
}

pub(super) fn diff(target: &Target, from: u64, to: u64, out: &mut Output) -> Outcome {
    let reading = Reading::open(&target.directory)?;
    let deltas = reading.timeline().diff(from, to)?;
    if target.json {
        return out.json(deltas.iter().map(change).collect::<Value>());
    }
    for delta in &deltas {
        said(delta, out)?;
    }
    Ok(())
}

/// What a delta changes, without the ids that a difference has not.
fn change(delta: &Delta) -> Value {
    let json = delta.to_json();
    let known = ["target", "operation", "path", "previousValue", "newValue", "previousLength"];
    let members = known.into_iter().filter_map(|key| Some((key, json.get(key)?.clone())));
    Value::Object(members.collect::<Object>())
}

fn said(delta: &Delta, out: &mut Output) -> Outcome {
    let width = out.width;
    let (dim, bold) = (out.paint.style(style::DIM), out.paint.style(style::HEADING));
    let shown = |value: &Option<Data>| {
        let text = value.as_ref().map_or_else(|| "nothing".to_owned(), Data::to_string);
        truncated(&printable(&text), width).into_owned()
    };
    let path = delta.path.to_string();
    writeln!(
        out,
        "{dim}{} {}{dim:#} {bold}{}{bold:#}",
        delta.operation.as_str(),
        delta.target,
        printable(&path)
    )?;
    writeln!(out, "  - {}", shown(&delta.previous_value))?;
    Ok(writeln!(out, "  + {}", shown(&delta.new_value))?)
}

pub(super) fn blame(target: &Target, path: &str, turn: Option<u64>, out: &mut Output) -> Outcome {
    let reading = Reading::open(&target.directory)?;
    let timeline = reading.timeline();
    let turn = turn.unwrap_or_else(|| timeline.last_turn());
    let path = pointer(path)?;
    let value = timeline.state_at(turn)?.at(path.elements()).cloned();
    let blame = timeline.blame(&path, turn)?;
    if target.json {
        let blame = blame.as_ref();
        return out.answer(&Blamed {
            path: path.to_string(),
            value: value.as_ref().map(Data::to_json),
            turn_id: blame.map_or(0, |blame| blame.turn_id),
            actor: blame.map(|blame| blame.actor.as_str()),
            cause: blame.map(|blame| blame.delta.cause.as_str()),
            event_id: blame.map(|blame| blame.delta.event_id.as_str()),
            delta: blame.map(|blame| blame.delta.to_json()),
            event: blame.and_then(|blame| Some(blame.event.as_ref()?.to_json())),
        });
    }
    let Some(blame) = blame else {
        return Ok(writeln!(out, "{path} is as it was in the beginning")?);
    };
    let cause = if blame.delta.cause.is_empty() { "no cause" } else { blame.delta.cause.as_str() };
    let event = match blame.delta.event_id.as_str() {
        "" => String::new(),
        id => format!(", event {id}"),
    };
    let line = format!("turn {}: {cause} by {:?}{event}", blame.turn_id, blame.actor);
    writeln!(out, "{}", printable(&line))?;
    said(&blame.delta, out)
}

answer! {
    /// Who wrote a value of a world last.
    pub(crate) struct Blamed<'b> {
        /// where the value is, a JSON pointer
        path: String,
        /// the value; null where nothing is there
        value: Option<Value>,
        /// the turn that wrote it; 0: it is as in the beginning
        turn_id: u64,
        /// who did that turn; this and what follows are null where no turn wrote it
        actor: Option<&'b str>,
        /// why, as the delta says
        cause: Option<&'b str>,
        /// the id of the event that caused it
        event_id: Option<&'b str>,
        /// the delta, as in a session directory
        delta: Option<Value>,
        /// the event; null where the turn has none
        event: Option<Value>,
    }
}
