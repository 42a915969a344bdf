//! Accounts, figures and what is stale, for people and for programs.

use std::io::Write;

use afterimage::{
    json::{self, Value},
    observe::{Figures, Moment, ObservationInfo, Observations},
};

use super::MomentAnswer;
use crate::{
    answer::answer,
    failure::{Outcome, Stop},
    output::{Output, note},
    style,
    table::{Column, Table, plain},
    text::{grouped, percent, printable},
};

/// The accounts, with what of each can be read. What is damaged is noted, and makes the exit code 1.
pub(super) fn accounts(observations: &Observations, as_json: bool, out: &mut Output) -> Outcome {
    let accounts = observations.accounts()?;
    let table = Table::new([
        Column::text("ACCOUNT", 24),
        Column::text("AGENT", 20),
        Column::number("TICK", 8),
        Column::number("KNOWN", 5),
        Column::number("BYTES", 11),
    ]);
    if !as_json {
        table.head(out)?;
    }
    let mut is_damaged = false;
    for account in accounts {
        let infos = observations.infos(&account.name)?;
        let readable = || infos.iter().filter(|info| info.damage.is_none());
        let bytes: u64 = readable().map(|info| info.bytes).sum();
        for info in &infos {
            let Some(damage) = &info.damage else { continue };
            is_damaged = true;
            // A row that was lost took its name along.
            let of = match info.name.as_str() {
                "?" => String::new(),
                name => format!(", {name}"),
            };
            note(&printable(&format!("{}{of}: {damage}", account.name)));
        }
        if as_json {
            out.answer(&AccountAnswer {
                account: &account.name,
                agent: account.agent.as_deref(),
                created: account.created.into(),
                latest: account.latest.map(Into::into),
                observations: infos.iter().map(ObservationInfo::to_json).collect(),
                bytes,
                damaged: infos.iter().any(|info| info.damage.is_some()),
            })?;
            continue;
        }
        let tick = account.latest.and_then(|latest| latest.tick);
        table.row(
            out,
            vec![
                plain(account.name),
                plain(account.agent.unwrap_or_else(|| "–".to_owned())),
                plain(tick.map_or_else(|| "–".to_owned(), |tick| tick.to_string())),
                plain(readable().count().to_string()),
                plain(grouped(bytes)),
            ],
        )?;
    }
    if !is_damaged {
        return Ok(());
    }
    out.flush()?;
    Err(Stop::Negative)
}

pub(super) fn stale(
    observations: &Observations,
    account: &str,
    now: Moment,
    as_json: bool,
    out: &mut Output,
) -> Outcome {
    let asides = observations.asides(account)?;
    let stale = observations.stale(account, now)?;
    let mut found = observations.infos(account)?;
    found.retain(|info| {
        stale.iter().any(|stale| stale.name == info.name)
            || asides.iter().any(|aside| aside.name == info.name)
    });
    let table = Table::new([
        Column::text("OBSERVATION", 24),
        Column::text("AGE", 16),
        Column::text("WHY", 0),
    ]);
    if !as_json && !found.is_empty() {
        table.head(out)?;
    }
    for info in &found {
        let is_old = observations.is_old(info, now);
        let aside = asides.iter().find(|aside| aside.name == info.name);
        if as_json {
            let Value::Object(mut object) = info.to_json() else { continue };
            object.insert("old".to_owned(), is_old.into());
            if let Some(aside) = aside {
                object.insert("aside".to_owned(), json::to_value(aside)?);
            }
            out.json(object)?;
            continue;
        }
        let mut why: Vec<String> = Vec::new();
        for mark in &info.stale {
            let what = mark.path.to_string();
            let what = if what.is_empty() { "all of it".to_owned() } else { what };
            why.push(format!("{what} since {} ({})", mark.by, mark.since.age(now).short()));
        }
        if is_old {
            why.push("old".to_owned());
        }
        if let Some(aside) = aside {
            let age = aside.seen.age(now).short();
            why.push(format!("not updated ({age}): {}", aside.what()));
        }
        why.extend(info.damage.clone());
        let age = match info.damage {
            Some(_) => "–".to_owned(),
            None => info.seen.age(now).short(),
        };
        table.row(out, vec![plain(info.name.as_str()), plain(age), plain(why.join("; "))])?;
    }
    if !as_json && found.is_empty() {
        writeln!(out, "nothing is stale")?;
    }
    Ok(())
}

pub(super) fn stats(observations: &Observations, as_json: bool, out: &mut Output) -> Outcome {
    let figures = observations.figures()?;
    let metrics = observations.metrics()?;
    let (whole, tools): (Vec<_>, Vec<_>) = figures.iter().partition(|(tool, _)| tool.is_empty());
    let whole = whole.first().map(|(_, figures)| *figures).unwrap_or_default();
    if as_json {
        let by_tool = |(tool, figures): &&(String, Figures)| ToolFigures {
            tool: tool.clone(),
            figures: figures.to_json(),
        };
        return out.answer(&ObservedFigures {
            tools: tools.iter().map(by_tool).collect(),
            summaries: whole.to_json(),
            metrics: ObservedMetrics {
                calls_per_context: metrics.calls_per_context,
                repeated_share: metrics.repeated_share,
                spared_share: metrics.spared_share,
                context_bytes_without: metrics.context_bytes_without,
                context_bytes_with: metrics.context_bytes_with,
            },
        });
    }
    let table = Table::new([
        Column::text("TOOL", 24),
        Column::number("CALLS", 6),
        Column::number("FAILED", 6),
        Column::number("ASIDE", 6),
        Column::number("FRESH", 6),
        Column::number("BYTES IN", 11),
        Column::number("SHOWN", 9),
        Column::number("TOKENS SAVED", 12),
    ]);
    table.head(out)?;
    for (tool, figures) in &tools {
        table.row(out, row(tool, figures))?;
    }
    let asked = tools.iter().fold(Figures::default(), |sum, (_, figures)| sum.plus(*figures));
    if asked.checks > 0 {
        writeln!(
            out,
            "\n{} of {} calls that were asked about could be spared",
            grouped(asked.spared),
            grouped(asked.checks),
        )?;
    }
    if whole.contexts > 0 {
        let (bold, bytes) = (out.paint.style(style::HEADING), whole.bytes_shown);
        writeln!(
            out,
            "\n{bold}{} summaries{bold:#}  {} bytes in place of {}: {}",
            grouped(whole.contexts),
            grouped(bytes),
            grouped(whole.bytes_stood_for),
            percent(bytes, whole.bytes_stood_for),
        )?;
        writeln!(
            out,
            "{:.1} calls for each, {:.1} % of all calls for what was there and fresh",
            metrics.calls_per_context,
            metrics.repeated_share * 100.0,
        )?;
    }
    Ok(())
}

fn row(tool: &str, figures: &Figures) -> Vec<crate::table::Cell> {
    let numbers = [
        figures.calls,
        figures.failed,
        figures.set_aside(),
        figures.fresh_repeats,
        figures.bytes_in,
        figures.bytes_shown,
        figures.tokens_saved(),
    ];
    [plain(tool)].into_iter().chain(numbers.map(|number| plain(grouped(number)))).collect()
}

answer! {
    /// What is known of an account.
    pub(crate) struct AccountAnswer<'a> {
        /// its name
        account: &'a str,
        /// the agent that has it; null where none has
        agent: Option<&'a str>,
        /// when it was first seen
        created: MomentAnswer,
        /// when the response with the highest tick came; null where none told one
        latest: Option<MomentAnswer>,
        /// its observations, each with the members of an observation
        observations: Vec<Value>,
        /// the bytes of the payloads that can be read
        bytes: u64,
        /// whether some of them cannot be read
        damaged: bool,
    }

    /// The figures of a database.
    pub(crate) struct ObservedFigures {
        /// the figures of each tool
        tools: Vec<ToolFigures>,
        /// the figures of whole summaries, by name
        summaries: Value,
        /// what follows from these figures
        metrics: ObservedMetrics,
    }

    /// The figures of a tool.
    pub(crate) struct ToolFigures {
        /// its name
        tool: String,
        ..figures: Value,
    }

    /// What follows from figures.
    pub(crate) struct ObservedMetrics {
        /// the calls for each context that a summary stood in
        calls_per_context: f64,
        /// the share of calls that asked for what was there and fresh
        repeated_share: f64,
        /// the share of the checks before a call that found what was fresh
        spared_share: f64,
        /// the bytes that a context held on average, had it held the payloads
        context_bytes_without: f64,
        /// the bytes of its summary on average
        context_bytes_with: f64,
    }
}
