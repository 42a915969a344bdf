//! What the guard says, as a table.

use std::io::Write;

use afterimage::{guard::Lifetime, transcript::Money};

use super::{Watched, Watching};
use crate::{
    failure::Outcome,
    input::Source,
    moment::clock,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped},
    usage::money,
    view,
};

/// From how many columns on a table has room for all figures.
const WIDE: usize = 120;

/// Prints a table of requests. It has a head where it is the first of the file.
pub(super) fn print(
    watching: &Watching<'_>,
    source: &Source,
    watched: &[Watched<'_>],
    is_first: bool,
    out: &mut Output,
) -> Outcome {
    let is_wide = out.width >= WIDE;
    let columns = [
        (true, Column::number("#", 4)),
        (is_wide, Column::text("TIME", 8)),
        (true, Column::number("READ", 9)),
        (true, Column::number("REPORTED", 9)),
        (is_wide, Column::number("WRITE", 8)),
        (is_wide, Column::number("REPORTED", 8)),
        (is_wide, Column::number("PRICE", 11)),
        (is_wide, Column::number("LOST", 8)),
        (true, Column::number("LOSS", 11)),
        (true, Column::text("WHY", 0)),
    ];
    let shown: Vec<bool> = columns.iter().map(|(is_shown, _)| *is_shown).collect();
    let columns = columns.into_iter().filter(|(is_shown, _)| *is_shown);
    let table = Table::new(columns.map(|(_, column)| column));
    if is_first {
        view::rule(out, &source.name(), style::HEADING, source.format().name())?;
        if watched.is_empty() {
            return Ok(writeln!(out, " There is no recorded request in it.")?);
        }
        let date = watching.guard.rules().date();
        view::note(
            out,
            1,
            &format!("rules of {date}; tokens are the provider's, fitted to its reports"),
        )?;
        table.head(out)?;
    }
    for of in watched {
        let figure = |figure: Option<u64>| plain(figure.map_or_else(|| "–".to_owned(), grouped));
        let forecast = of.forecast();
        let (read, written) = of.reported();
        let time = of.exchange.time.as_deref().map_or_else(|| "–".to_owned(), clock);
        let (lost, loss) = of.lost();
        let price = forecast.and_then(|of| of.price);
        let price = price.map_or_else(|| "–".to_owned(), money);
        let look = if of.is_excess { style::REMOVED } else { anstyle::Style::new() };
        let cells = [
            plain(of.exchange.number.to_string()),
            plain(time),
            figure(forecast.map(|of| of.read)),
            figure(read),
            figure(forecast.map(|of| of.write)),
            figure(written),
            plain(price),
            figure(lost),
            (loss.map_or_else(|| "–".to_owned(), money), look),
            (why(of), if of.is_excess { style::REMOVED } else { style::DIM }),
        ];
        let cells = cells.into_iter().zip(&shown).filter(|(_, is_shown)| **is_shown);
        table.row_in_full(out, cells.map(|(cell, _)| cell).collect())?;
        out.flush_if_terminal()?;
    }
    if watching.args.follow { Ok(()) } else { sums(watching, watched, out) }
}

/// Why the cache serves what it does, in a few words.
fn why(of: &Watched<'_>) -> String {
    let prediction = &of.prediction;
    let mut why = match (&prediction.cache, of.cause(), of.previous) {
        (Err(reason), None, _) => reason.to_string(),
        (Err(reason), Some(cause), _) => format!("{cause}; {reason}"),
        (Ok(_), _, None) => "first".to_owned(),
        (Ok(_), Some(cause), _) => cause,
        (Ok(_), None, _) => "+".to_owned(),
    };
    match &of.verdict {
        Some(verdict) if verdict.is_contradiction && verdict.lost > 0 => {
            why.push_str("; the forecast was contradicted: less was read");
        }
        Some(verdict) if verdict.is_contradiction => {
            why.push_str("; the forecast was contradicted: the cache served it");
        }
        _ => {}
    }
    if prediction.lifetime == Lifetime::Uncertain {
        why.push_str("; may have expired");
    }
    if of.is_unpaid {
        why.push_str("; it failed");
    }
    if let Some(said) = &of.diagnostics {
        let reason = if said.reason == "none" { "no difference" } else { &said.reason };
        why.push_str(" (");
        why.push_str(reason);
        why.push(')');
    }
    why
}

/// What was lost, and how the forecasts stand beside the reports.
fn sums(watching: &Watching<'_>, watched: &[Watched<'_>], out: &mut Output) -> Outcome {
    let paid = || watched.iter().filter(|of| !of.is_unpaid);
    let forecasts = || paid().filter_map(|of| Some((of, of.forecast()?)));
    let (count, requests) = (forecasts().count() as u64, paid().count() as u64);
    let sum = |figures: &mut dyn Iterator<Item = u64>| figures.fold(0, u64::saturating_add);
    let lost = sum(&mut paid().filter_map(|of| of.lost().0));
    let in_sum = |amounts: Vec<Money>| {
        let pico = amounts.iter().map(|amount| amount.pico()).fold(0, u128::saturating_add);
        amounts.first().map(|first| money(Money::from_pico(pico, first.currency())))
    };
    let price = in_sum(forecasts().filter_map(|(_, of)| of.price).collect());
    let price = price.map(|price| format!("{price} of input; ")).unwrap_or_default();
    let loss = in_sum(paid().filter_map(|of| of.lost().1).collect());
    let of = if price.is_empty() { "" } else { " of that" };
    let loss = loss.map(|loss| format!(", {loss}{of}")).unwrap_or_default();
    let all = match counted(count, "forecast") {
        forecasts if count == requests => forecasts,
        forecasts => format!("{}, {forecasts}", counted(requests, "request")),
    };
    writeln!(out, " {all}: {price}{} tokens lost{loss}", grouped(lost))?;
    if let Some(most) = watching.most {
        let over = watched.iter().filter(|of| of.is_excess).count() as u64;
        writeln!(out, " {} lost more than {}", counted(over, "request"), money(most))?;
    }
    let reported = || forecasts().filter_map(|(of, forecast)| Some((forecast, of.reported().0?)));
    if reported().next().is_some() {
        let read = sum(&mut reported().map(|(forecast, _)| forecast.read));
        let said = sum(&mut reported().map(|(_, said)| said));
        let beside = counted(reported().count() as u64, "report");
        writeln!(
            out,
            " beside {beside}: {} read by the rules, {} reported",
            grouped(read),
            grouped(said)
        )?;
    }
    let is_contradicted =
        |of: &&Watched<'_>| of.verdict.as_ref().is_some_and(|of| of.is_contradiction);
    let contradicted = watched.iter().filter(is_contradicted).count() as u64;
    if contradicted > 0 {
        let forecasts = counted(contradicted, "forecast");
        let were = if contradicted == 1 { "was" } else { "were" };
        writeln!(out, " {forecasts} {were} contradicted by the report, which decides")?;
    }
    Ok(())
}
