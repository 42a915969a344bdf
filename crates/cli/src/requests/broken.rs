//! `afterimage requests --broken`: the requests whose caches served less than they could.

use std::io::Write;

use afterimage::{
    bill::{BreakCause, BrokenCache, broken_caches},
    id::Millis,
    json::ObjectExt,
    request::{Exchange, RequestDiff},
    transcript::Money,
};

use super::listing::Listing;
use crate::{
    failure::Outcome,
    json::{object, or_null},
    labels::Label,
    moment::clock,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped},
    usage::money,
    view,
};

/// Lists the broken caches of a recording.
pub(super) fn list(listing: &Listing<'_>, out: &mut Output) -> Outcome {
    let time = |text: &str| {
        let stamp = text.parse::<jiff::Timestamp>().ok();
        let millis = stamp.map(jiff::Timestamp::as_millisecond).or_else(|| text.parse().ok());
        millis.map(Millis::new)
    };
    let found = broken_caches(listing.recording, time);
    let found = found.map_err(|error| listing.source.refuse(error))?;
    let exchanges = listing.exchanges()?;
    let mut broken = Vec::new();
    for of in &found {
        if let Some(exchange) = exchanges.iter().find(|exchange| exchange.number == of.request) {
            broken.push((of, *exchange, price(listing, of, exchange)));
        }
    }
    if listing.args.json {
        return broken.into_iter().try_for_each(|(of, exchange, price)| {
            let label = listing.label(exchange);
            let mut json = object! {
                "file": listing.source.name(),
                "request": of.request as u64,
                "previous": of.previous as u64,
                "session": &*exchange.session,
                "time": or_null(exchange.time.as_deref()),
                "line": or_null(label.line()),
                "uuid": or_null(label.uuid()),
                "calls": listing.calls_json(exchange),
                "lost": of.lost,
                "price": or_null(price),
                "afterMs": or_null(of.after_ms),
                "cause": of.cause.as_str(),
                "differs": or_null(difference(of).map(|diff| listing.difference_json(exchange, diff))),
            };
            json.put_some("subagentFile", label.file());
            out.json(json)
        });
    }
    view::rule(out, &listing.source.name(), style::HEADING, listing.source.format().name())?;
    if broken.is_empty() {
        return Ok(writeln!(out, " No cache is reported to have broken.")?);
    }
    let [time, line] = Label::columns();
    let table = Table::new([
        Column::number("#", 5),
        time,
        line,
        Column::number("LOST", 9),
        Column::number("PRICE", 10),
        Column::number("AFTER", 9),
        Column::text("WHY", 0),
    ]);
    table.head(out)?;
    for (of, exchange, price) in &broken {
        let [_, line] = listing.label(exchange).cells();
        table.row(
            out,
            vec![
                plain(of.request.to_string()),
                plain(exchange.time.as_deref().map_or_else(|| "–".to_owned(), clock)),
                line,
                plain(grouped(of.lost)),
                plain(price.map_or_else(|| "–".to_owned(), money)),
                plain(of.after_ms.map_or_else(|| "–".to_owned(), seconds)),
                plain(why(listing, of, exchange)),
            ],
        )?;
    }
    let lost = broken.iter().fold(0_u64, |sum, (of, ..)| sum.saturating_add(of.lost));
    let priced: Vec<Money> = broken.iter().filter_map(|(.., price)| *price).collect();
    let pico = priced.iter().map(|price| price.pico()).fold(0, u128::saturating_add);
    let total = money(Money::from_pico(pico, listing.prices.currency()));
    let total = match priced.len() {
        0 => "no price is known".to_owned(),
        known if known < broken.len() => format!("≥{total}"),
        _ => total,
    };
    let broken = counted(broken.len() as u64, "broken cache");
    Ok(writeln!(out, " {broken}, {} tokens, {total}", grouped(lost))?)
}

/// What it cost; `None` where the model has no price.
fn price(listing: &Listing<'_>, of: &BrokenCache, exchange: &Exchange) -> Option<Money> {
    let price = listing.prices.of(exchange.model.as_deref()?)?;
    let lost = price.lost(of.lost, exchange.usage.as_ref()?);
    Some(Money::from_pico(lost, listing.prices.currency()))
}

fn difference(of: &BrokenCache) -> Option<&RequestDiff> {
    match &of.cause {
        BreakCause::Changed(diff) => Some(diff),
        _ => None,
    }
}

fn why(listing: &Listing<'_>, of: &BrokenCache, exchange: &Exchange) -> String {
    let diff = match &of.cause {
        BreakCause::Changed(diff) => diff,
        BreakCause::Expired => return "time to live".to_owned(),
        _ => return "unknown".to_owned(),
    };
    if let Some(divergence) = &diff.prefix.divergence {
        return listing.place(exchange, divergence, diff);
    }
    let causes: Vec<&str> = diff.breaks.iter().map(|of| of.cause.as_str()).collect();
    format!("other {}", causes.join(", "))
}

fn seconds(millis: u64) -> String {
    match millis / 1000 {
        short @ 0..600 => format!("{short} s"),
        long => format!("{} min", grouped(long / 60)),
    }
}
