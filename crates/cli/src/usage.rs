//! Usage as it was reported: the blocks and cells that show it.

use std::{io::Write, path::Path};

use afterimage::{
    bill::{Bill, Prices, UsageSum, UsageSums},
    json::Value,
    request::Exchange,
    transcript::{Money, Usage},
};
use sha2::{Digest, Sha256};

use crate::{
    answer::answer,
    args,
    failure::{Failure, Outcome},
    input,
    output::Output,
    style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, percent, printable, shortened, width, wrapped},
    view,
};

/// How many columns of the name of a model a note shows.
const MODEL: usize = 32;
/// The largest table of prices, or of rules, that is read, in bytes.
const MOST_OF_TABLE: u64 = 1 << 20;

/// A table of prices, and what tells it from others.
pub(crate) struct PriceTable {
    pub(crate) prices: Prices,
    /// The day of the table; of one that did not come along with the beginning of its SHA-256.
    pub(crate) id: String,
}

/// The prices that are asked for: those of a file, or of the table that comes along.
pub(crate) fn prices(args: &args::Pricing) -> Outcome<Prices> {
    Ok(table(args)?.prices)
}

/// As [`prices`], with the id of the table.
pub(crate) fn table(args: &args::Pricing) -> Outcome<PriceTable> {
    let Some(path) = args.prices.as_deref() else {
        let prices = Prices::embedded()?;
        return Ok(PriceTable { id: prices.date().to_owned(), prices });
    };
    let text = text_of_table(path, "prices")?;
    let prices = Prices::from_toml(&text).map_err(|error| error.in_file(path))?;
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(PriceTable { id: format!("{} {hash}", prices.date()), prices })
}

/// The text of a table that a user named; `what` is what it holds.
pub(crate) fn text_of_table(path: &Path, what: &str) -> Outcome<String> {
    let text = String::from_utf8(input::regular(path, MOST_OF_TABLE)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!("the table of {what} is not UTF-8")).file(path).at("offset", at)
    })?;
    Ok(text)
}

/// What a file reports, and what that costs.
pub(crate) struct Reported<'p> {
    pub(crate) sums: UsageSums,
    pub(crate) bill: Bill<'p>,
}

impl<'p> Reported<'p> {
    pub(crate) fn of<'e>(
        exchanges: impl Iterator<Item = &'e Exchange> + Clone,
        prices: &'p Prices,
    ) -> Self {
        Self { sums: exchanges.clone().collect(), bill: Bill::of(prices, exchanges) }
    }

    /// Its sums and its bill.
    pub(crate) fn answer(&self) -> ReportedAnswer {
        ReportedAnswer { usage: self.sums.to_json().into(), price: self.bill.to_json().into() }
    }

    /// The block "Usage as reported"; nothing where nothing is.
    pub(crate) fn block(&self, out: &mut Output) -> Outcome {
        block(&self.sums, &self.bill, out)
    }
}

answer! {
    /// What is reported, and what that costs.
    pub(crate) struct ReportedAnswer {
        /// what is reported of the exchanges, added up: the members of [sums of usage](#sums-of-usage)
        usage: Value,
        /// what they cost by the table of prices: the members of a [bill](#bill)
        price: Value,
    }
}

/// What a bill comes to, and what is not in it.
fn price(bill: &Bill<'_>, out: &mut Output) -> Outcome {
    let models = bill.unpriced.keys().map(|model| model.as_deref().unwrap_or("no name"));
    let models: Vec<String> =
        models.map(|model| shortened(&printable(model), MODEL).into_owned()).collect();
    let mut lacks: Vec<String> = bill
        .unpriced_terms
        .iter()
        .map(|(term, count)| format!("no price for {term} ({})", counted(*count, "exchange")))
        .collect();
    if !models.is_empty() {
        let of = counted(bill.unpriced.values().sum(), "exchange");
        lacks.push(format!("no price for {} ({of})", models.join(", ")));
    }
    if bill.incomplete > 0 {
        lacks.push(format!("{} without whole usage", counted(bill.incomplete, "exchange")));
    }
    let partial = if bill.is_partial() { "; partial: " } else { "" };
    let says = format!("by prices of {}{partial}{}", bill.prices().date(), lacks.join(", "));
    let least = if bill.is_partial() { "≥" } else { "" };
    // At least nothing is no price.
    let has_price = bill.priced > 0 && !(bill.is_partial() && bill.total().pico() == 0);
    let total =
        if has_price { format!("{least}{}", money(bill.total())) } else { "–".to_owned() };
    figure(("price", &total), &says, out)
}

/// A figure with its name and what is said of it, on as many lines as it takes.
pub(crate) fn figure((name, figure): (&str, &str), says: &str, out: &mut Output) -> Outcome {
    let dim = out.paint.style(style::DIM);
    let head = format!("  {name:<14}{figure:>12}  ");
    let indent = width(&head);
    write!(out, "{head}")?;
    for (at, line) in wrapped(says, out.width.saturating_sub(indent).max(24)).iter().enumerate() {
        let indent = if at > 0 { indent } else { 0 };
        writeln!(out, "{:indent$}{dim}{line}{dim:#}", "")?;
    }
    Ok(())
}

fn block(sums: &UsageSums, bill: &Bill<'_>, out: &mut Output) -> Outcome {
    let UsageSums { total, by_model, by_session, copied } = sums;
    if total.with_usage == 0 && copied.is_empty() {
        return Ok(());
    }
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    writeln!(out, "\n  {bold}USAGE AS REPORTED{bold:#}\n  {dim}{}{dim:#}", said(total))?;
    for (from, sum) in copied {
        let from = from.as_deref().unwrap_or("a session that the source does not name");
        let are = if sum.exchanges() == 1 {
            "is a copy, which counts"
        } else {
            "are copies, which count"
        };
        let [input, output] = [sum.tokens.input, sum.tokens.output].map(amount);
        let exchanges = counted(sum.exchanges(), "more exchange");
        let says = format!("{exchanges} {are} in {from}: {input} input, {output} output");
        view::note(out, 2, &says)?;
    }
    if total.with_usage == 0 {
        return Ok(());
    }
    let tokens = &total.tokens;
    let some = |figure: Option<u64>| figure.filter(|figure| *figure > 0);
    let read = tokens.cache_read.zip(tokens.input).map(|(read, input)| percent(read, input));
    let mut figures = vec![
        ("input", tokens.input, String::new()),
        ("cache read", tokens.cache_read, read.unwrap_or_default()),
    ];
    if some(tokens.cache_write).is_some() {
        let hour = some(tokens.cache_write_1h);
        let hour = hour.map(|hour| format!("{} for an hour", grouped(hour)));
        figures.push(("cache written", tokens.cache_write, hour.unwrap_or_default()));
    }
    figures.push(("output", tokens.output, String::new()));
    if some(tokens.reasoning).is_some() {
        figures.push(("reasoning", tokens.reasoning, "of the output".to_owned()));
    }
    for (name, figure, says) in figures {
        write!(out, "  {name:<14}{:>12}", amount(figure))?;
        if !says.is_empty() {
            write!(out, "  {dim}{says}{dim:#}")?;
        }
        writeln!(out)?;
    }
    for cost in total.cost() {
        let of = of_some(total.with_cost_in(cost.currency()), total.with_usage);
        writeln!(out, "  {:<14}{:>12}  {dim}as the source says{of}{dim:#}", "cost", money(cost))?;
    }
    price(bill, out)?;
    let named = by_model.iter().map(|(model, sum)| (model.as_deref().unwrap_or("–"), sum));
    parts("MODEL", named.collect(), out)?;
    parts("SESSION", by_session.iter().map(|(session, sum)| (&**session, sum)).collect(), out)
}

/// The columns of a request's usage: input, what of it the cache served, output.
pub(crate) fn columns() -> [Column; 3] {
    [Column::number("INPUT", 7), Column::number("CACHED", 7), Column::number("OUTPUT", 6)]
}

/// The cells of these columns.
pub(crate) fn cells(usage: Option<&Usage>) -> [Cell; 3] {
    let cell = |figure: fn(&Usage) -> Option<u64>| plain(amount(usage.and_then(figure)));
    [cell(|usage| usage.input), cell(|usage| usage.cache_read), cell(|usage| usage.output)]
}

/// A figure, or a dash where nobody states it.
pub(crate) fn amount(figure: Option<u64>) -> String {
    figure.map_or_else(|| "–".to_owned(), grouped)
}

/// How many of the exchanges report usage, and what else is true of some of them, in a line.
pub(crate) fn said(total: &UsageSum) -> String {
    let all = counted(total.exchanges(), "exchange");
    let by = if total.without_usage == 0 {
        all
    } else {
        format!("{} of {all}", grouped(total.with_usage))
    };
    let others = [
        (total.failed, "failed"),
        (total.unlisted, "in no list of requests"),
        (total.incomplete, "without input or output"),
        (total.unreadable, "with a figure that cannot be read"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others: Vec<String> =
        others.map(|(count, says)| format!("{} {says}", grouped(count))).collect();
    let part = if others.is_empty() { "" } else { "; " };
    format!("by {by}{part}{}", others.join(", "))
}

fn of_some(some: u64, all: u64) -> String {
    if some == all { String::new() } else { format!(", of {}", counted(some, "exchange")) }
}

/// An amount as people read it.
pub(crate) fn money(money: Money) -> String {
    format!("{} {}", money.rounded(), money.currency())
}

/// The figures of the parts of a whole, where there are several.
fn parts(title: &'static str, parts: Vec<(&str, &UsageSum)>, out: &mut Output) -> Outcome {
    if parts.len() < 2 {
        return Ok(());
    }
    writeln!(out)?;
    let figures = |sum: &UsageSum| {
        let Usage { input, cache_read, output, .. } = sum.tokens;
        [Some(sum.exchanges()), input, cache_read, output]
    };
    let rows: Vec<Vec<Cell>> = parts
        .iter()
        .map(|(_, sum)| figures(sum).map(|figure| plain(amount(figure))).into())
        .collect();
    let table = Table::new([
        Column::number("EXCHANGES", 9),
        Column::number("INPUT", 11),
        Column::number("CACHE READ", 11),
        Column::number("OUTPUT", 9),
        Column::text(title, 0),
    ]);
    let table = table.fitted(&rows);
    let columns = table.rest(out);
    table.head(out)?;
    for ((name, _), mut row) in parts.into_iter().zip(rows) {
        row.push(plain(shortened(&printable(name), columns).into_owned()));
        table.row(out, row)?;
    }
    Ok(())
}
