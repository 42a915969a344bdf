//! `afterimage replay`: what the requests of a session would have cost, by policy.

use std::{io::Write, sync::Arc};

use afterimage::{
    compress::Engine,
    json::Object,
    replay::{Replay, ReplayFigures, ReplayPolicy},
    window::Budget,
};
use indexmap::IndexMap;

use crate::{
    args::{self, Format, PolicyName},
    failure::Outcome,
    fitting,
    input::{self, Source},
    json::object,
    lens::{Counting, Lens},
    moment::moment,
    output::{Output, note},
    requests, style,
    table::{Column, Table, plain},
    text::{counted, grouped, last_columns, percent, printable},
};

/// What the figures are, and are not.
const SIMULATED: &str =
    "What requests made of these frames would have cost; the usage that was reported is not read.";

pub(crate) fn run(args: &args::Replay) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let player = Player::new(args)?;
    let table = table();
    let mut files: IndexMap<String, ReplayFigures> = IndexMap::new();
    let mut said = None;
    let outcome = input::each(&args.input, true, |source| {
        let (figures, note) = player.play(source)?;
        said.get_or_insert(note);
        if !args.json {
            if files.is_empty() {
                player.head(&mut out)?;
                table.head(&mut out)?;
            }
            print(&source.name(), figures, &table, &mut out)?;
            out.flush()?;
        }
        *files.entry(source.name()).or_default() += figures;
        Ok(())
    });
    if files.is_empty() {
        return outcome;
    }
    let mut all = ReplayFigures::default();
    files.values().for_each(|figures| all += *figures);
    if args.json {
        let files: Object =
            files.into_iter().map(|(name, figures)| (name, figures.to_json())).collect();
        let mut json = object! { "simulated": true, "files": files, "all": all.to_json() };
        player.lens.put(&mut json);
        out.json(json)?;
    } else if files.len() > 1 {
        print("all", all, &table, &mut out)?;
    }
    out.flush()?;
    if let Some(said) = said {
        note(&said);
    }
    outcome
}

/// Replays files by one policy.
struct Player<'a> {
    fitting: &'a args::Fitting,
    policy: ReplayPolicy,
    name: &'static str,
    budget: Budget,
    engine: Arc<dyn Engine>,
    lens: Lens,
}

impl<'a> Player<'a> {
    fn new(args: &'a args::Replay) -> Outcome<Self> {
        let budget = fitting::budget(&args.fitting, Budget::new);
        let (policy, name) = match args.policy {
            PolicyName::Blocks => {
                (ReplayPolicy::Blocks(fitting::options(&args.fitting, &budget)), "blocks")
            }
            PolicyName::Sliding => (ReplayPolicy::Sliding, "a window that slides"),
            PolicyName::None => (ReplayPolicy::Unlimited, "everything"),
        };
        let engine: Arc<dyn Engine> = Arc::new(fitting::patient_engine(&args.fitting)?);
        let rendering =
            args::Rendering { format: Some(Format::Native), tokenizer: args.tokenizer.clone() };
        let lens = Lens::new(&rendering, Counting::Always)?;
        let fitting = &args.fitting;
        Ok(Self { fitting, policy, name, budget, engine, lens })
    }

    /// The figures of a file, and what is to be said of its contexts: each session is replayed by
    /// itself.
    fn play(&self, source: &mut Source) -> Outcome<(ReplayFigures, String)> {
        let mut sessions: IndexMap<Arc<str>, Replay> = IndexMap::new();
        while let Some(record) = source.next() {
            let record = record?;
            let budget = self.budget(&record.session)?;
            let replay = sessions.entry(record.session).or_insert_with(|| {
                let (hud, engine) = (self.lens.hud.clone(), Arc::clone(&self.engine));
                Replay::new(hud, budget, self.policy.clone(), engine).framing(self.lens.framing())
            });
            let now = moment(&record.frame);
            replay.push(record.frame, now).map_err(|error| source.refuse(error))?;
        }
        let mut all = ReplayFigures::default();
        for (name, replay) in &sessions {
            all += replay.figures();
            let failed = replay.failed();
            if let Some((id, reason)) = failed.last() {
                let (ranges, name) = (counted(failed.len() as u64, "range"), printable(name));
                source.note(&format!(
                    "{name}: {ranges} without a summary; the last, {id}: {}",
                    printable(reason)
                ));
            }
        }
        let histories = sessions.values().map(Replay::history);
        Ok((all, requests::note_of(source.format(), histories)))
    }

    /// The budget of a session: what its transcript lacks takes of it.
    fn budget(&self, session: &str) -> Outcome<Budget> {
        let Budget { max_tokens, .. } = self.budget;
        let room = self.lens.room(max_tokens, session)?;
        Ok(if room == max_tokens {
            self.budget
        } else {
            fitting::budget_of(self.fitting, room, Budget::new)
        })
    }

    fn head(&self, out: &mut Output) -> Outcome {
        let heading = out.paint.style(style::HEADING);
        let room = counted(self.budget.room(), "token");
        let relation = if self.policy == ReplayPolicy::Unlimited { "beside" } else { "within" };
        let dim = out.paint.style(style::DIM);
        writeln!(out, "{heading}{} {relation} {room}, simulated{heading:#}", self.name)?;
        Ok(writeln!(out, "{dim}{SIMULATED}{dim:#}\n")?)
    }
}

fn table() -> Table {
    Table::new([
        Column::number("turns", 5),
        Column::number("sent", 11),
        Column::number("cached", 6),
        Column::number("billed", 11),
        Column::number("blocks", 6),
        Column::number("names", 6),
        Column::number("faults", 6),
        Column::text("file", 40),
    ])
}

/// Prints a file's figures, and what should not be among them.
fn print(name: &str, of: ReplayFigures, table: &Table, out: &mut Output) -> Outcome {
    let kept = if of.identifiers_needed == 0 {
        "–".to_owned()
    } else {
        percent(of.identifiers_kept, of.identifiers_needed)
    };
    let faults = [
        (of.over_budget, "over the budget"),
        (of.unfit, "without room for what must stay"),
        (of.orphans, "pairs of call and result cut"),
    ];
    let count: u64 = faults.iter().map(|(count, _)| count).sum();
    let style = if count > 0 { style::REMOVED } else { anstyle::Style::new() };
    let cells = vec![
        plain(grouped(of.turns)),
        plain(grouped(of.tokens_sent)),
        plain(percent(of.tokens_cached, of.tokens_sent)),
        plain(grouped(of.billed_tokens())),
        plain(grouped(of.compressions)),
        plain(kept),
        (grouped(count), style),
        plain(last_columns(&printable(name), table.rest(out))),
    ];
    table.row(out, cells)?;
    let style = out.paint.style(style);
    for (count, what) in faults.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "        {style}{} {what}{style:#}", grouped(count))?;
    }
    Ok(())
}
