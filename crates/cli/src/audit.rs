//! `afterimage audit`: two recordings of one task, without and with a compressor.

pub(crate) mod args;

use std::{io::Write, path::Path, sync::Arc};

use afterimage::{
    bill::Prices,
    json::Value,
    replay::{AuditedName, LossAudit, NameFate},
    request::Recording,
};

use crate::{
    answer::answer,
    args::{Branches, CounterChoice, Input, Rendering, Tokenizer},
    failure::{Failure, Outcome},
    input,
    lens::{Counting, Lens},
    output::Output,
    recorded,
    requests::causes::BrokenCaches,
    style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, percent, printable},
    usage::{self, Reported},
};

pub(crate) fn run(args: &args::Audit) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    if input::is_stdin(&args.without) && input::is_stdin(&args.with) {
        return Err(Failure::new("standard input can be read once, and stands for A and B").into());
    }
    let prices = usage::prices(&args.pricing)?;
    // Only names are looked for: nothing is counted.
    let rendering =
        Rendering { format: None, tokenizer: Some(CounterChoice::Tokenizer(Tokenizer::Chars4)) };
    let lens = Lens::new(&rendering, Counting::OnDemand)?;
    let read = |path: &Path, session: Option<&str>| {
        Audited::read(path, session, &args.branches, &lens, &prices)
    };
    let without = read(&args.without, args.session_a.as_deref())?;
    let with = read(&args.with, args.session_b.as_deref())?;
    let losses =
        LossAudit::of((&without.recording, &without.session), (&with.recording, &with.session))?;
    let rewritten = LossAudit::rewritten(&without.recording, &without.session)?;
    if args.json {
        let (without, with) = (without.answer(rewritten), with.answer(losses.rewritten));
        out.answer(&AuditAnswer { without, with, losses: losses.to_json() })?;
    } else {
        bill(&without, &with, [rewritten, losses.rewritten], &mut out)?;
        names(&losses, args.names, &mut out)?;
    }
    Ok(out.flush()?)
}

answer! {
    /// What one recording lost against another.
    pub(crate) struct AuditAnswer<'a> {
        /// the first recording
        without: AuditedRecording<'a>,
        /// the second one
        with: AuditedRecording<'a>,
        /// of the names that the first session used: `used`, and of them `neverRead`, `kept`, `lost`,
        /// `readAgain`; `requests` and `rewritten` of the second session; `names`
        losses: Value,
    }

    /// A recording that was audited.
    pub(crate) struct AuditedRecording<'a> {
        /// its file
        file: &'a str,
        /// the session that is compared
        session: &'a str,
        /// what is reported of all its sessions: one of the [sums of usage](#sums-of-usage)
        usage: Value,
        /// what that costs, as in a [bill](#bill)
        price: Value,
        /// how many requests of all its sessions paid again for what a cache had held
        caches_lost: u64,
        /// for how many tokens they did
        tokens_lost: u64,
        /// how many requests of the session begin otherwise than the one before
        rewritten: u64,
    }
}

/// A recording with what it reports.
struct Audited<'p> {
    name: String,
    session: Arc<str>,
    recording: Recording,
    reported: Reported<'p>,
    /// How many requests paid again for what a cache had held.
    caches_lost: u64,
    /// For how many tokens they did.
    tokens_lost: u64,
}

impl<'p> Audited<'p> {
    fn read(
        path: &Path,
        session: Option<&str>,
        branches: &Branches,
        lens: &Lens,
        prices: &'p Prices,
    ) -> Outcome<Self> {
        let branches = branches.clone();
        let input = Input { branches, ..Input::of(vec![path.to_owned()]) };
        let mut read = None;
        input::read(&input.with_exchanges(), true, input::InputRefusal::Ends, |source| {
            if read.is_some() {
                let failure = Failure::new("expected one recording, found several").file(path);
                return Err(failure.hint("name one file of the folder").into());
            }
            let recording = recorded::read(source, &lens.counter)?;
            let Some(session) = chosen(&recording, session) else {
                let failure = source.fail("there is no such session with requests");
                let hint = "`afterimage requests FILE` lists the sessions";
                return Err(failure.hint(hint).into());
            };
            let broken = BrokenCaches::of(&recording).map_err(|error| source.refuse(error))?;
            read = Some(Self {
                name: source.name(),
                session,
                reported: Reported::of(recording.reported(), prices),
                caches_lost: broken.all().count() as u64,
                tokens_lost: broken.all().map(|broken| broken.lost).sum(),
                recording,
            });
            Ok(())
        })?;
        let nothing = || Failure::new("there is no recording").file(path);
        Ok(read.ok_or_else(nothing)?)
    }

    fn answer(&self, rewritten: u64) -> AuditedRecording<'_> {
        AuditedRecording {
            file: &self.name,
            session: &self.session,
            usage: self.reported.sums.total.to_json().into(),
            price: self.reported.bill.to_json().into(),
            caches_lost: self.caches_lost,
            tokens_lost: self.tokens_lost,
            rewritten,
        }
    }

    /// What it cost, as people read it.
    fn cost(&self) -> String {
        let bill = &self.reported.bill;
        if bill.priced == 0 {
            return "–".to_owned();
        }
        let sign = if bill.is_partial() { "≥ " } else { "" };
        format!("{sign}{}", usage::money(bill.total()))
    }
}

/// The session that is asked for, else the one with the most requests.
fn chosen(recording: &Recording, session: Option<&str>) -> Option<Arc<str>> {
    let requests = |name: &str| {
        recording.exchanges().iter().filter(|exchange| *exchange.session == *name).count()
    };
    let all = recording.sessions().map(|(name, _)| name);
    let named = all.filter(|name| session.is_none_or(|session| session == &***name));
    // Of several with as many the first.
    let most = named
        .map(|name| (requests(name), name))
        .reduce(|most, next| if next.0 > most.0 { next } else { most });
    most.filter(|(requests, _)| *requests > 0 || session.is_some())
        .map(|(_, name)| Arc::clone(name))
}

/// What both cost, side by side.
fn bill(
    without: &Audited<'_>,
    with: &Audited<'_>,
    rewritten: [u64; 2],
    out: &mut Output,
) -> Outcome {
    let heading = out.paint.style(style::HEADING);
    for (letter, of) in [("A", without), ("B", with)] {
        let (name, session) = (printable(&of.name), printable(&of.session));
        writeln!(out, "{heading}{letter}{heading:#}  {name} ({session})")?;
    }
    writeln!(out)?;
    let table = Table::new([
        Column::text("", 12),
        Column::number("A", 16),
        Column::number("B", 16),
        Column::text("B of A", 8),
    ]);
    table.head(out)?;
    let (a, b) = (&without.reported.sums.total, &with.reported.sums.total);
    let mut row = |name: &str, a: Option<u64>, b: Option<u64>| {
        let share = a.filter(|a| *a > 0).zip(b).map(|(a, b)| percent(b, a));
        let cells =
            [name.to_owned(), usage::amount(a), usage::amount(b), share.unwrap_or_default()];
        table.row(out, cells.into_iter().map(plain).collect())
    };
    row("requests", Some(a.with_usage), Some(b.with_usage))?;
    let (a, b) = (&a.tokens, &b.tokens);
    row("input", a.input, b.input)?;
    row("  read", a.cache_read, b.cache_read)?;
    row("  written", a.cache_write, b.cache_write)?;
    row("output", a.output, b.output)?;
    row("  reasoning", a.reasoning, b.reasoning)?;
    let (cost_a, cost_b) = (without.cost(), with.cost());
    let bills = [&without.reported.bill, &with.reported.bill];
    let [total_a, total_b] = bills.map(|bill| bill.total().pico());
    let share = |part: u128, whole: u128| {
        let scaled = |pico: u128| u64::try_from(pico / 1_000_000).unwrap_or(u64::MAX);
        if scaled(whole) == 0 { String::new() } else { percent(scaled(part), scaled(whole)) }
    };
    // Of a cost that is unknown or partial there is no share.
    let are_whole = bills.iter().all(|bill| bill.priced > 0 && !bill.is_partial());
    let of = if are_whole { share(total_b, total_a) } else { String::new() };
    let cells: Vec<Cell> = vec![plain("cost"), plain(cost_a), plain(cost_b), plain(of)];
    table.row(out, cells)?;
    let mut row = |name: &str, a: u64, b: u64| {
        table.row(out, vec![plain(name), plain(grouped(a)), plain(grouped(b)), plain("")])
    };
    row("caches lost", without.caches_lost, with.caches_lost)?;
    row("  tokens", without.tokens_lost, with.tokens_lost)?;
    row("rewritten", rewritten[0], rewritten[1])?;
    for (letter, of) in [("A", without), ("B", with)] {
        let missing = of.reported.sums.total.without_usage;
        if missing > 0 {
            let requests = counted(missing, "request");
            writeln!(out, " {requests} of {letter} report no usage and are in no sum")?;
        }
    }
    Ok(())
}

/// What happened to the names.
fn names(losses: &LossAudit, most: usize, out: &mut Output) -> Outcome {
    let heading = out.paint.style(style::HEADING);
    let used = losses.names.len() as u64;
    writeln!(out, "\n{heading}{} that A used{heading:#}", counted(used, "name"))?;
    let again = losses.names.iter().filter(|name| name.read_again > 0).count() as u64;
    for (what, of) in [
        ("kept", losses.kept().count() as u64),
        ("lost", losses.lost().count() as u64),
        ("read again", again),
        ("never read", losses.never_read().count() as u64),
    ] {
        let share = if used == 0 { String::new() } else { percent(of, used) };
        writeln!(out, " {what:<12}{:>6}  {share:>6}", grouped(of))?;
    }
    let mut lost: Vec<&AuditedName> = losses.lost().collect();
    lost.sort_by_key(|name| std::cmp::Reverse(name.uses));
    if lost.is_empty() || most == 0 {
        return Ok(());
    }
    writeln!(out)?;
    let table = Table::new([
        Column::number("USES", 5),
        Column::text("FRAMES", 11),
        Column::number("LAST", 5),
        Column::text("LOST", 0),
    ]);
    table.head(out)?;
    for name in lost.iter().take(most) {
        let last = match name.fate {
            NameFate::Lost { last } => grouped(last as u64),
            _ => "–".to_owned(),
        };
        let cells = vec![
            plain(grouped(name.uses)),
            plain(format!("{}–{}", name.first_use, name.last_use)),
            plain(last),
            plain(&*name.name),
        ];
        table.row(out, cells)?;
    }
    let rest = lost.len().saturating_sub(most) as u64;
    if rest > 0 {
        writeln!(out, " {} more; `--names {}` lists all", grouped(rest), lost.len())?;
    }
    Ok(())
}
