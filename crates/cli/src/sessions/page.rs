//! The sessions as a table, as JSON, or as paths.

use std::io::Write;

use afterimage::transcript::{Currency, Money, Usage};
use anstyle::Style;

use super::{
    listing::Listed,
    summary::{CopiedSum, FirstMessage, ModelUsage, Summary},
};
use crate::{
    answer::answer,
    failure::Outcome,
    input::Place,
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

/// What is known of a session.
pub(super) fn answer(session: &Listed) -> SessionRow<'_> {
    let known = session.summary.as_ref();
    let time = |at: Option<i64>| at.and_then(when::rfc3339);
    SessionRow {
        path: session.path.display().to_string(),
        indexed: known.is_some(),
        size: session.stamp.size,
        modified: when::rfc3339(session.stamp.modified_millis()),
        format: known.map(|known| known.format.as_str()),
        session: known.and_then(|known| known.session.as_deref()),
        sessions: known.map(|known| known.sessions),
        project: known.and_then(|known| known.project.as_deref()),
        first: known.and_then(|known| known.first.as_ref()),
        started: known.and_then(|known| time(known.started)),
        ended: known.and_then(|known| time(known.ended)),
        requests: known.map(|known| known.requests),
        models: known.map(|known| &*known.models),
        copied: known.map(|known| &*known.copied),
        usage_partial: known.map(|known| known.is_usage_partial),
        counted_tokens: known.and_then(|known| known.counted),
        cost: known.and_then(|known| known.cost),
        cost_partial: known.map(|known| known.is_cost_partial),
        prices_of: known.map(|known| known.prices_of.as_str()),
        reported: known.map(Summary::reported),
        usage: known.and_then(Summary::usage),
    }
}

answer! {
    /// A file with sessions. Without an entry in the index all from `format` on is null.
    pub(crate) struct SessionRow<'s> {
        /// the file, or the folder that is a recording or an archive
        path: String,
        /// whether it is in the index; else all from `format` on is null
        indexed: bool,
        /// its bytes, as in the index
        size: u64,
        /// when it was last changed, in RFC 3339
        modified: Option<String>,
        /// the format, as `afterimage formats` names it
        format: Option<&'s str>,
        /// the name of the first session of the file
        session: Option<&'s str>,
        /// how many sessions the file holds
        sessions: Option<u64>,
        /// the folder that the session says it worked in
        project: Option<&'s str>,
        /// the first message of the user that no program put there
        first: Option<&'s FirstMessage>,
        /// when the first record was written, in RFC 3339
        started: Option<String>,
        /// when the last record was written, in RFC 3339
        ended: Option<String>,
        /// the requests to a model that are listed, copies of other sessions' aside
        requests: Option<u64>,
        /// the reported usage by model
        models: Option<&'s [ModelUsage]>,
        /// what copies of other sessions' answers report, which is in no other member
        copied: Option<&'s [CopiedSum]>,
        /// whether an answered request reports no input or no output, or a figure that cannot be read
        usage_partial: Option<bool>,
        /// where no usage was reported: the tokens of all requests as they are counted here
        counted_tokens: Option<u64>,
        /// what the answers with a price cost; null where none has one
        cost: Option<Money>,
        /// whether some answers have no price
        cost_partial: Option<bool>,
        /// the table of prices: its date, and of one that `--prices` names the first 16 digits of its
        /// SHA-256 behind it; a file in the index that was priced by another one is read again
        prices_of: Option<&'s str>,
        /// the answers whose usage was reported; among these may be one to which no request is listed
        reported: Option<u64>,
        /// the sum of the reported usage
        usage: Option<Usage>,
    }
}
