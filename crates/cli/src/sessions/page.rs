//! The sessions as a table, as JSON, or as paths.

use std::io::Write;

use afterimage::transcript::{Currency, Money, Usage};

use super::{
    figures::Figures,
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

pub(super) const UNKNOWN: &str = "–";
/// So many columns a terminal has that has room for all of the table.
const WIDE: usize = 110;

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
    // Of a narrow terminal the first words take the room.
    let is_wide = !out.is_bounded || out.width >= WIDE;
    let mut columns = vec![Column::text("TIME", 16), Column::text("PROJECT", 12)];
    if is_wide {
        let room = if out.is_bounded { 8 } else { 36 };
        columns.extend([Column::text("SESSION", room), Column::text("MODEL", 18)]);
    }
    columns.extend([
        Column::number("REQUESTS", 8),
        Column::number("TOKENS", 11),
        Column::number("COST", 7),
        Column::text("FIRST WORDS", 0),
    ]);
    let table = Table::new(columns);
    table.head(out)?;
    for session in listed {
        table.row(out, row(session, is_wide))?;
    }
    Ok(())
}

fn row(session: &Listed, is_wide: bool) -> Vec<Cell> {
    let project = session.project();
    let name = project.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(&project);
    let dim = |text: &str| (text.to_owned(), style::DIM);
    let Some(summary) = &session.summary else {
        let path = session.path.display().to_string();
        let dashes = vec![plain(UNKNOWN); if is_wide { 5 } else { 3 }];
        let cells = [plain(UNKNOWN), plain(name)].into_iter().chain(dashes);
        return cells.chain([dim(&path)]).collect();
    };
    let total = summary.total();
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
    let mut row =
        vec![plain(summary.ended.map_or_else(|| UNKNOWN.to_owned(), minute)), plain(name)];
    if is_wide {
        let id = summary.session.as_deref().unwrap_or(UNKNOWN);
        row.extend([plain(id), plain(model(summary))]);
    }
    let tokens = tokens(&total, summary.counted);
    row.extend([plain(grouped(total.requests)), tokens, plain(cost(&total)), words]);
    row
}

/// The tokens of a session, and how sure they are.
fn tokens(total: &Figures, counted: Option<u64>) -> Cell {
    match (total.tokens(), counted) {
        (Some(tokens), _) => {
            let mark = if total.is_usage_partial { "≥" } else { "" };
            plain(format!("{mark}{}", grouped(tokens)))
        }
        (None, Some(counted)) if total.requests > 0 => {
            (format!("~{}", grouped(counted)), style::DIM)
        }
        _ => (UNKNOWN.to_owned(), style::DIM),
    }
}

/// What answers cost, to the cent; `≥` where some of them have no price.
pub(super) fn cost(figures: &Figures) -> String {
    let Some(cost) = figures.cost else { return UNKNOWN.to_owned() };
    let mark = if figures.is_cost_partial { "≥" } else { "" };
    match cost.currency() {
        Currency::USD => format!("{mark}${}", cost.rounded()),
        currency => format!("{mark}{} {currency}", cost.rounded()),
    }
}

/// The model of most answers, and how many others there are.
fn model(summary: &Summary) -> String {
    let models = summary.models();
    let most = models.iter().max_by_key(|of| of.requests).and_then(|of| of.model.as_deref());
    let name = most.unwrap_or(UNKNOWN);
    if models.len() > 1 { format!("{name} +{}", models.len() - 1) } else { name.to_owned() }
}

/// What is known of a session.
pub(super) fn answer(session: &Listed) -> SessionRow<'_> {
    let known = session.summary.as_ref();
    let total = known.map(Summary::total);
    let time = |at: Option<i64>| at.and_then(when::rfc3339);
    SessionRow {
        path: session.path.display().to_string(),
        indexed: known.is_some(),
        size: session.stamp.size,
        modified: when::rfc3339(session.stamp.modified_millis()),
        format: known.map(|known| known.format.as_str()),
        file: known.and_then(|known| known.file.as_deref()),
        session: known.and_then(|known| known.session.as_deref()),
        sessions: known.map(|known| known.sessions),
        project: known.and_then(|known| known.project.as_deref()),
        first: known.and_then(|known| known.first.as_ref()),
        started: known.and_then(|known| time(known.started)),
        ended: known.and_then(|known| time(known.ended)),
        requests: total.as_ref().map(|total| total.requests),
        models: known.map(Summary::models),
        copied: known.map(|known| &*known.copied),
        usage_partial: total.as_ref().map(|total| total.is_usage_partial),
        counted_tokens: known.and_then(|known| known.counted),
        unknown_records: known.map(|known| known.unknown_records),
        cost: total.as_ref().and_then(|total| total.cost),
        cost_partial: total.as_ref().map(|total| total.is_cost_partial),
        prices_of: known.map(|known| known.prices_of.as_str()),
        reported: total.as_ref().map(|total| total.reported),
        usage: total.and_then(|total| total.reported_usage().cloned()),
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
        /// of one in an archive: the path with which it was archived
        file?: &'s str,
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
        models: Option<Vec<ModelUsage>>,
        /// what copies of other sessions' answers report, which is in no other member
        copied: Option<&'s [CopiedSum]>,
        /// whether an answered request reports no input or no output, or a figure that cannot be read
        usage_partial: Option<bool>,
        /// where no usage was reported: the tokens of all requests as they are counted here
        counted_tokens: Option<u64>,
        /// how many records were not understood
        unknown_records: Option<u64>,
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
