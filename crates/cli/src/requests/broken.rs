//! `afterimage requests --broken`: the requests whose caches served less than they could.

use std::{cmp::Reverse, io::Write};

use afterimage::{
    bill::{BreakCause, BrokenCache},
    guard::Guard,
    request::Exchange,
    transcript::{AppliedEdit, Money},
};

use super::{causes::price_lost, listing::Listing, row::Difference};
use crate::{
    answer::answer,
    failure::Outcome,
    labels::Label,
    moment::clock,
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{counted, grouped},
    usage::money,
    view,
};

/// A broken cache with its request, what it cost, and why it broke.
struct Row<'l> {
    of: &'l BrokenCache,
    exchange: &'l Exchange,
    price: Option<Money>,
    cause: String,
}

/// Lists the broken caches of a recording: all of them in their order, or those that cost most.
pub(super) fn list(listing: &Listing<'_>, guard: &Guard, out: &mut Output) -> Outcome {
    let exchanges = listing.exchanges()?;
    let mut rows = Vec::new();
    for of in listing.broken.all() {
        let found = exchanges.iter().find(|exchange| exchange.number == of.request);
        rows.extend(
            found.map(|exchange| (of, *exchange, price_lost(listing.prices, of.lost, exchange))),
        );
    }
    let mut rest = Vec::new();
    if let Some(top) = listing.args.top {
        let cost = |(of, _, price): &(&BrokenCache, _, Option<Money>)| {
            Reverse((price.map(Money::pico), of.lost))
        };
        rows.sort_by_key(cost);
        rest = rows.split_off(top.min(rows.len()));
    }
    let all: Vec<_> = rows.iter().chain(&rest).map(|(of, _, price)| (of.lost, *price)).collect();
    let rest: Vec<_> = rest.iter().map(|(of, _, price)| (of.lost, *price)).collect();
    let row = |(of, exchange, price)| -> Outcome<Row<'_>> {
        let cause = guard.explain(listing.recording, of);
        let cause = cause.map_err(|error| listing.source.refuse(error))?;
        Ok(Row { of, exchange, price, cause })
    };
    let rows = rows.into_iter().map(row).collect::<Outcome<Vec<_>>>()?;
    if listing.args.json {
        rows.iter().try_for_each(|row| out.answer(&row.answer(listing)))?;
        if rest.is_empty() {
            return Ok(());
        }
        let Sum { count, lost, price, .. } = Sum::of(&rest, listing);
        let file = listing.source.name();
        return out.answer(&OtherBroken { file, others: count, lost, price });
    }
    view::rule(out, &listing.source.name(), style::HEADING, listing.source.format().name())?;
    if rows.is_empty() && rest.is_empty() {
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
    for Row { of, exchange, price, mut cause } in rows {
        // Who wrote what differs, where that is in a frame or stands for frames.
        if let BreakCause::Changed(diff) = &of.cause
            && let Some(divergence) = &diff.prefix.divergence
            && let place = listing.place(exchange, divergence, diff)
            && (place.contains("frame ") || place.starts_with("block "))
        {
            cause = format!("{cause}: {place}");
        }
        let [_, line] = listing.label(exchange).cells();
        let cells = vec![
            plain(of.request.to_string()),
            plain(exchange.time.as_deref().map_or_else(|| "–".to_owned(), clock)),
            line,
            plain(grouped(of.lost)),
            plain(price.map_or_else(|| "–".to_owned(), money)),
            plain(of.after_ms.map_or_else(|| "–".to_owned(), seconds)),
            (cause, style::DIM),
        ];
        table.row_in_full(out, cells)?;
    }
    if !rest.is_empty() {
        writeln!(out, " and {}", Sum::of(&rest, listing).words())?;
    }
    Ok(writeln!(out, " {}", Sum::of(&all, listing).words())?)
}

/// What some broken caches come to.
struct Sum {
    count: u64,
    lost: u64,
    /// What is known of the price, and whether it is all of it; `None` where nothing is.
    price: Option<Money>,
    is_partial: bool,
}

impl Sum {
    fn of(broken: &[(u64, Option<Money>)], listing: &Listing<'_>) -> Self {
        let priced: Vec<Money> = broken.iter().filter_map(|(_, price)| *price).collect();
        let pico = priced.iter().map(|price| price.pico()).fold(0, u128::saturating_add);
        let price = Money::from_pico(pico, listing.prices.currency());
        Self {
            count: broken.len() as u64,
            lost: broken.iter().fold(0, |sum, (lost, _)| sum.saturating_add(*lost)),
            price: (!priced.is_empty()).then_some(price),
            is_partial: priced.len() < broken.len(),
        }
    }

    fn words(&self) -> String {
        let price = match self.price.map(money) {
            None => "no price is known".to_owned(),
            Some(price) if self.is_partial => format!("≥{price}"),
            Some(price) => price,
        };
        format!("{}, {} tokens, {price}", counted(self.count, "broken cache"), grouped(self.lost))
    }
}

impl Row<'_> {
    fn answer(&self, listing: &Listing<'_>) -> BrokenRow<'_> {
        let Self { of, exchange, price, cause } = self;
        let label = listing.label(exchange);
        let (mut differs, mut edits, mut older, mut reshaped) = (None, None, None, None);
        match &of.cause {
            BreakCause::Changed(diff) => differs = Some(listing.difference(exchange, diff)),
            BreakCause::Edited(of) => edits = Some(of.iter().collect()),
            BreakCause::Older(number) => older = Some(*number),
            BreakCause::Reshaped(content) => reshaped = Some(content.owner.as_str()),
            _ => {}
        }
        BrokenRow {
            file: listing.source.name(),
            request: of.request,
            previous: of.previous,
            session: &exchange.session,
            time: exchange.time.as_deref(),
            line: label.line(),
            uuid: label.uuid().map(str::to_owned),
            calls: listing.called(exchange),
            lost: of.lost,
            price: *price,
            after_ms: of.after_ms,
            cause: of.cause.as_str(),
            words: cause,
            differs,
            edits,
            older,
            reshaped,
            subagent_file: label.file().map(str::to_owned),
        }
    }
}

answer! {
    /// A broken cache.
    pub(crate) struct BrokenRow<'l> {
        /// the file
        file: String,
        /// the number of the request whose cache served less than it could
        request: usize,
        /// the number of the request that left more in the cache
        previous: usize,
        /// the session of both
        session: &'l str,
        /// when the request went out; of a transcript, when the answer came
        time: Option<&'l str>,
        /// the record of the source with which the answer begins; of recorded traffic that of the
        /// exchange
        line: Option<u64>,
        /// the id of that record; null of recorded traffic
        uuid: Option<String>,
        /// the tools that the answer calls
        calls: Vec<String>,
        /// the tokens that were paid again
        lost: u64,
        /// what they cost; null where no price is known
        price: Option<Money>,
        /// the milliseconds since the request that left more; null where a time is not known
        after_ms: Option<u64>,
        /// `changed`, `edited`, `reshaped`, `expired`, `older` or `unknown`
        /// ([bill.md](bill.md#broken-caches))
        cause: &'static str,
        /// the same in a sentence, as `cause` of `guard --json` says it
        words: &'l str,
        /// what differs from the request before, where that is why; else null
        differs: Option<Difference>,
        /// what the provider cleared, where that is why: `type`, `cleared` (tool uses, or turns with
        /// reasoning), `tokens`
        edits?: Vec<&'l AppliedEdit>,
        /// the number of the request that had left what was read, where that is an older one
        older?: usize,
        /// what changed its form, where that is why: `message:INDEX` or `system`
        reshaped?: &'l str,
        /// the name of the file that `line` is of, where that is a subagent's
        subagent_file?: String,
    }

    /// What the broken caches that `--top` leaves out come to.
    pub(crate) struct OtherBroken {
        /// the file
        file: String,
        /// how many other broken caches there are
        others: u64,
        /// their tokens together
        lost: u64,
        /// what is known of their price; null where nothing is
        price: Option<Money>,
    }
}

fn seconds(millis: u64) -> String {
    match millis / 1000 {
        short @ 0..600 => format!("{short} s"),
        long => format!("{} min", grouped(long / 60)),
    }
}
