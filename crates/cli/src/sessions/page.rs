//! The sessions as a table, as JSON, or as paths.

use std::io::Write;

use afterimage::{
    json::{Object, ObjectExt, Value},
    transcript::Currency,
};
use anstyle::Style;

use super::{listing::Listed, summary::Summary};
use crate::{
    failure::Outcome,
    input::Place,
    json::or_null,
    moment::minute,
    output::Output,
    style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, printable},
    when,
};

const UNKNOWN: &str = "–";

/// Writes the places that were looked in.
pub(super) fn places(places: &[Place], out: &mut Output) -> Outcome {
    let shown: Vec<String> =
        places.iter().map(|place| format!("{} {}", place.agent, place.shown())).collect();
    let dim = out.paint.style(style::DIM);
    Ok(writeln!(out, " {dim}{}{dim:#}", printable(&shown.join(" · ")))?)
}

pub(super) fn table(listed: &[Listed], out: &mut Output) -> Outcome {
    if listed.is_empty() {
        return Ok(writeln!(out, " There is no session in it.")?);
    }
    let table = Table::new([
        Column::text("TIME", 16),
        Column::text("PROJECT", 12),
        Column::number("REQUESTS", 8),
        Column::number("TOKENS", 11),
        Column::number("COST", 7),
        Column::text("FIRST WORDS", 0),
    ]);
    table.head(out)?;
    for session in listed {
        table.row(out, row(session))?;
    }
    Ok(())
}

fn row(session: &Listed) -> Vec<Cell> {
    let project = session.project();
    let name = project.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(&project);
    let dim = |text: &str| (text.to_owned(), style::DIM);
    let Some(summary) = &session.summary else {
        let path = session.path.display().to_string();
        let dashes = [UNKNOWN; 3].map(plain);
        let cells = [plain(UNKNOWN), plain(name)].into_iter().chain(dashes);
        return cells.chain([dim(&path)]).collect();
    };
    let (tokens, look) = tokens(summary);
    let words = match &summary.first {
        Some(first) => plain(first.text.as_str()),
        None => dim(UNKNOWN),
    };
    let copied = summary.copied.iter().map(|of| of.requests).sum::<u64>();
    let words = if copied > 0 {
        (format!("(+{} copied) {}", grouped(copied), words.0), words.1)
    } else {
        words
    };
    let words = if summary.sessions > 1 {
        (format!("({}) {}", counted(summary.sessions, "session"), words.0), words.1)
    } else {
        words
    };
    vec![
        plain(summary.ended.map_or_else(|| UNKNOWN.to_owned(), minute)),
        plain(name),
        plain(grouped(summary.requests)),
        (tokens, look),
        plain(cost(summary)),
        words,
    ]
}

/// The tokens of a session, and how sure they are.
fn tokens(summary: &Summary) -> (String, Style) {
    let usage = summary.usage().filter(|usage| usage.input.is_some() || usage.output.is_some());
    match (usage, summary.counted) {
        (Some(usage), _) => {
            let sum = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
            let mark = if summary.is_usage_partial { "≥" } else { "" };
            (format!("{mark}{}", grouped(sum)), Style::new())
        }
        (None, Some(counted)) if summary.requests > 0 => {
            (format!("~{}", grouped(counted)), style::DIM)
        }
        _ => (UNKNOWN.to_owned(), style::DIM),
    }
}

/// What a session cost, to the cent; `≥` where some of its answers have no price.
fn cost(summary: &Summary) -> String {
    let Some(cost) = summary.cost else { return UNKNOWN.to_owned() };
    let mark = if summary.is_cost_partial { "≥" } else { "" };
    match cost.currency() {
        Currency::USD => format!("{mark}${}", cost.rounded()),
        currency => format!("{mark}{} {currency}", cost.rounded()),
    }
}

/// A session as an object.
pub(super) fn json(session: &Listed) -> Object {
    let mut json = Object::new();
    json.put("path", session.path.display().to_string());
    json.put("indexed", session.summary.is_some());
    json.put("size", session.stamp.size);
    json.put("modified", or_null(when::rfc3339(session.stamp.modified_millis())));
    let known = session.summary.clone().unwrap_or_default();
    let mut members = known.to_json();
    for (key, at) in [("started", known.started), ("ended", known.ended)] {
        members.put(key, or_null(at.and_then(when::rfc3339)));
    }
    members.put("reported", known.reported());
    members.put("usage", or_null(known.usage().map(|usage| usage.to_json())));
    for (key, value) in members {
        let value = if session.summary.is_some() { value } else { Value::Null };
        json.put(&key, value);
    }
    json
}
