//! `afterimage replay`: what the requests of a session would have cost, by policy.

pub(crate) mod args;
mod cost;
mod emit;
mod page;
mod policies;
pub(crate) mod session_budget;

use std::{collections::HashMap, io::Write, sync::Arc};

use afterimage::{
    bill::MediaItem,
    compress::Engine,
    json::{Object, Value, to_value},
    replay::{Replay, ReplayFigures, ReplayPolicy, SummaryCalls},
    tokens::Certainty,
    transcript::{Money, Record},
    veil::Frame,
    window::Budget,
};
use indexmap::{IndexMap, map::Entry};

use self::args::AskedFor;
use self::{
    cost::Pricing,
    emit::Emitter,
    page::{Page, Shown},
    session_budget::SessionBudget,
};
use crate::{
    args::{Fitting, Format, Rendering},
    failure::Outcome,
    fitting::{self, AskedModel, CommandInput},
    input::{self, Source},
    json::object,
    lens::{Counting, Counts, Lens},
    moment::moment,
    output::{Output, note},
    recorded,
    text::{counted, printable},
};

pub(crate) fn run(args: &args::Replay) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut player = Player::new(args)?;
    let shown = Shown {
        policy: player.policies.len() > 1,
        asked: player.calls != SummaryCalls::Free,
        cost: player.pricing.has_model(),
    };
    let page = Page::new(shown, &out);
    let mut files: IndexMap<String, Vec<Played>> = IndexMap::new();
    let mut said = None;
    let mut sessions: Vec<Value> = Vec::new();
    let mut counts: Option<Counts> = None;
    let outcome = input::each(&args.input.with_exchanges(), true, |source| {
        let FilePlayed { played, note, budgets } = player.play(source)?;
        said.get_or_insert(note);
        if args.json {
            let of_file = counts_of(&player.lens, &budgets);
            if counts.is_none() || of_file.certainty != Certainty::Estimated {
                counts = Some(of_file);
            }
            let name = source.name();
            for of in &budgets {
                sessions.push(to_value(&of.answer(&name))?);
            }
        } else {
            if files.is_empty() {
                player.head(&page, &counts_of(&player.lens, &budgets), &mut out)?;
            }
            player.print(&page, &source.name(), &played, &mut out)?;
            budgets.iter().try_for_each(|of| of.print(&mut out))?;
            out.flush()?;
        }
        let sums = files.entry(source.name()).or_insert_with(|| player.nothing());
        sums.iter_mut().zip(played).for_each(|(sum, of)| sum.add(of));
        Ok(())
    });
    if let Some(emitter) = player.emitter.take() {
        emitter.finish()?;
    }
    if files.is_empty() {
        return outcome;
    }
    let mut all = player.nothing();
    for played in files.values() {
        all.iter_mut().zip(played).for_each(|(sum, of)| sum.add(*of));
    }
    if args.json {
        let mut json = player.json(&files, &all);
        counts.unwrap_or_else(|| player.lens.own_counts()).put(&mut json);
        json.insert("sessions".to_owned(), sessions.into());
        out.json(json)?;
    } else {
        if files.len() > 1 {
            player.print(&page, "all", &all, &mut out)?;
        }
        if args.survival {
            let named = player.policies.iter().map(ToString::to_string);
            page::survival(named.zip(&all), &mut out)?;
        }
    }
    out.flush()?;
    if let Some(said) = said {
        note(&said);
    }
    outcome
}

/// What counted the sessions of a file: estimated, where it knows none of them.
fn counts_of(lens: &Lens, budgets: &[SessionBudget]) -> Counts {
    let is_estimated = budgets.iter().all(|of| of.counts.certainty == Certainty::Estimated);
    if is_estimated { lens.counts_as(Certainty::Estimated) } else { lens.own_counts() }
}

/// The figures of the policies in a file.
struct FilePlayed {
    played: Vec<Played>,
    /// What is to be said of its contexts.
    note: String,
    /// What its sessions had of the budget.
    budgets: Vec<SessionBudget>,
}

/// The figures of a policy, and its cost.
#[derive(Clone, Copy, Default)]
struct Played {
    figures: ReplayFigures,
    cost: Option<Money>,
}

impl Played {
    fn add(&mut self, other: Self) {
        self.figures += other.figures;
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => {
                Some(Money::from_pico(one.pico().saturating_add(two.pico()), one.currency()))
            }
            (one, two) => one.or(two),
        };
    }

    fn json(&self) -> Value {
        let mut json = self.figures.to_json();
        if let (Value::Object(object), Some(cost)) = (&mut json, self.cost) {
            object.insert("cost".to_owned(), cost.into());
        }
        json
    }
}

/// Replays files by some policies.
struct Player<'a> {
    args: &'a args::Replay,
    policies: Vec<ReplayPolicy>,
    budget: Budget,
    engine: Arc<dyn Engine>,
    calls: SummaryCalls,
    lens: Lens,
    pricing: Pricing,
    emitter: Option<Emitter>,
}

impl<'a> Player<'a> {
    fn new(args: &'a args::Replay) -> Outcome<Self> {
        let named = args.policies.iter().map(|policy| (policy.to_string(), policy.clone()));
        let policies = named.collect::<IndexMap<_, _>>().into_values().collect();
        let budget = fitting::budget(&args.fitting, Budget::new);
        let calls = match args.summaries {
            Some(AskedFor::Continued) => SummaryCalls::Continued,
            Some(AskedFor::Fresh) => SummaryCalls::Fresh,
            None if fitting::is_command(&args.fitting) => SummaryCalls::Fresh,
            Some(AskedFor::Free) | None => SummaryCalls::Free,
        };
        let input = match calls {
            SummaryCalls::Continued => CommandInput::Continued,
            SummaryCalls::Free | SummaryCalls::Fresh => CommandInput::Prompt,
        };
        let engine = Arc::from(fitting::engine(&args.fitting, input)?);
        let rendering =
            Rendering { format: Some(Format::Native), tokenizer: args.tokenizer.clone() };
        let lens = Lens::new(&rendering, Counting::Always)?;
        let pricing = Pricing::new(args)?;
        let emitter = match (&args.emit, args.form) {
            (Some(directory), Some(form)) => {
                Some(Emitter::create(directory, form.form(), &budget, &lens)?)
            }
            _ => None,
        };
        Ok(Self { args, policies, budget, engine, calls, lens, pricing, emitter })
    }

    /// No figures, for each policy.
    fn nothing(&self) -> Vec<Played> {
        vec![Played::default(); self.policies.len()]
    }

    /// The figures of a file by each policy, and what is to be said of its contexts: each session
    /// is replayed by itself.
    fn play(&mut self, source: &mut Source) -> Outcome<FilePlayed> {
        let (records, asked) = read(source, &self.lens)?;
        let client = source.format().name();
        let mut sessions: IndexMap<Arc<str>, Vec<Run>> = IndexMap::new();
        let mut budgets: IndexMap<Arc<str>, SessionBudget> = IndexMap::new();
        for record in records {
            let name = &record.session;
            let asked = asked.get(name);
            let answering = asked.and_then(|asked| asked.name.as_deref());
            let model = self.lens.model().or(answering);
            let of = match budgets.entry(Arc::clone(name)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let counts = self.lens.counts(name, client, answering);
                    let recorded = asked.map_or_else(Default::default, |asked| asked.overhead);
                    let overhead = fitting::overhead(&self.args.fitting, recorded, &counts);
                    let of = SessionBudget::new(name, counts, overhead, self.budget.max_tokens)?;
                    let number = self.emitter.as_mut().map_or(0, Emitter::next_session);
                    sessions.insert(Arc::clone(name), self.runs(&of, model, number));
                    new.insert(of)
                }
            };
            of.look(&record.frame, model);
            let now = moment(&record.frame);
            let Some(runs) = sessions.get_mut(&record.session) else { continue };
            for run in runs {
                let before = run.replay.figures();
                let turn = run.replay.push(record.frame.clone(), now);
                let turn = turn.map_err(|error| source.refuse(error))?;
                if let (Some(emitter), Some(turn)) = (&mut self.emitter, &turn) {
                    let place = emit::Place {
                        file: &source.name(),
                        session: &record.session,
                        number: run.number,
                        policy: &run.name,
                    };
                    emitter.write(&place, before.turns + 1, turn)?;
                }
                let after = run.replay.figures();
                run.cost.add(&self.pricing, &before, &after);
            }
        }
        let mut all = self.nothing();
        for (name, runs) in &sessions {
            for (sum, run) in all.iter_mut().zip(runs) {
                let cost = self.pricing.total(&run.cost, &run.replay.figures());
                sum.add(Played { figures: run.replay.figures(), cost });
                let failed = run.replay.failed();
                if let Some((id, reason)) = failed.last() {
                    let (ranges, name) = (counted(failed.len() as u64, "range"), printable(name));
                    source.note(&format!(
                        "{name}: {ranges} without a summary; the last, {id}: {}",
                        printable(reason)
                    ));
                }
            }
        }
        let histories = sessions.values().filter_map(|runs| Some(runs.first()?.replay.history()));
        let note = recorded::note_of(source.format(), histories);
        Ok(FilePlayed { played: all, note, budgets: budgets.into_values().collect() })
    }

    /// Replays that begin, of a session with this budget, whose images count by the rule of this
    /// model.
    fn runs(&self, of: &SessionBudget, model: Option<&str>, number: u64) -> Vec<Run> {
        let budget = if of.room == self.budget.max_tokens {
            self.budget
        } else {
            fitting::budget_of(&self.args.fitting, of.room, Budget::new)
        };
        let budget = fitting::taking(budget, of.overhead);
        let runs = self.policies.iter().map(|named| {
            let policy = policy(named, &self.args.fitting, &budget);
            let name = policy.to_string();
            // What fails for one policy is asked for the others all the same.
            let engine = Arc::new(fitting::patient(&self.engine));
            let replay = Replay::new(self.lens.hud.clone(), budget, policy, engine);
            let model = model.map(str::to_owned);
            let replay = replay.media(move |frame| media_tokens(frame, model.as_deref()));
            let mut replay = replay.framing(self.lens.framing()).summary_calls(self.calls);
            if let Some(form) = self.args.form {
                replay = replay.form(form.form());
            }
            if self.args.survival {
                replay = replay.measure_survival();
            }
            Run { name, number, replay, cost: cost::Running::default() }
        });
        runs.collect()
    }

    fn head(&self, page: &Page, counts: &Counts, out: &mut Output) -> Outcome {
        let room = counted(self.budget.room(), "token");
        let is_unlimited = self.policies == [ReplayPolicy::Unlimited];
        let title = match self.policies.as_slice() {
            [only] => described(only),
            _ => "by policy".to_owned(),
        };
        let relation = if is_unlimited { "beside" } else { "within" };
        page.head(&format!("{title} {relation} {room}"), counts, out)
    }

    fn print(&self, page: &Page, name: &str, played: &[Played], out: &mut Output) -> Outcome {
        page.file(name, out)?;
        for (policy, of) in self.policies.iter().zip(played) {
            let billed = of.figures.billed_at(self.pricing.rates());
            page.row(&policy.to_string(), name, of, billed, out)?;
        }
        Ok(())
    }

    fn json(&self, files: &IndexMap<String, Vec<Played>>, all: &[Played]) -> Object {
        let rates = self.pricing.rates();
        let of = |played: &Played| {
            let mut json = played.json();
            if let Value::Object(object) = &mut json {
                let billed = played.figures.billed_at(rates);
                object.insert("billedTokens".to_owned(), billed.into());
            }
            json
        };
        let by_policy = |index: usize| {
            let files = files.iter();
            let files = files.filter_map(|(name, of_file)| Some((name, of_file.get(index)?)));
            let files: Object = files.map(|(name, played)| (name.clone(), of(played))).collect();
            (files, all.get(index).map_or(Value::Null, of))
        };
        let policies = self.policies.iter().enumerate().map(|(index, policy)| {
            let (files, all) = by_policy(index);
            object! { "policy": policy.to_string(), "files": files, "all": all }
        });
        let (first_files, first) = by_policy(0);
        object! {
            "simulated": true,
            "files": first_files,
            "all": first,
            "policies": policies.collect::<Value>(),
            "rates": object! { "write": rates.write, "read": rates.read, "output": rates.output },
        }
    }
}

/// What the images, sounds and documents of a frame cost by the rule of a model, where that is
/// known.
fn media_tokens(frame: &Frame, model: Option<&str>) -> u64 {
    let items = MediaItem::of_frame(frame);
    let tokens = items.iter().filter_map(|item| item.tokens(model).ok());
    tokens.fold(0, |sum, (tokens, _)| sum.saturating_add(tokens))
}

/// What each session asks.
type Asked = HashMap<Arc<str>, AskedModel>;

/// The frames of a source, and what its sessions ask.
fn read(source: &mut Source, lens: &Lens) -> Outcome<(Vec<Record>, Asked)> {
    let mut asked = Asked::new();
    let mut records = Vec::new();
    source.keep_exchanges();
    for record in source.by_ref() {
        let record = record?;
        asked.entry(Arc::clone(&record.session)).or_default().see(&record.frame);
        records.push(record);
    }
    for exchange in source.take_exchanges()? {
        let of = asked.entry(Arc::clone(&exchange.session)).or_default();
        of.take(&exchange, &*lens.counter);
    }
    Ok((records, asked))
}

/// A session that is replayed by a policy.
struct Run {
    name: String,
    /// The number of the session among all.
    number: u64,
    replay: Replay,
    cost: cost::Running,
}

/// The policy with the options of the command line.
fn policy(policy: &ReplayPolicy, args: &Fitting, budget: &Budget) -> ReplayPolicy {
    match policy {
        ReplayPolicy::Blocks(_) => ReplayPolicy::Blocks(fitting::options(args, budget)),
        other => other.clone(),
    }
}

fn described(policy: &ReplayPolicy) -> String {
    let words = match policy {
        ReplayPolicy::Unlimited => "everything",
        ReplayPolicy::Sliding | ReplayPolicy::Newest { .. } => "a window that slides",
        ReplayPolicy::FirstAndLast => "the first message and a window that slides",
        ReplayPolicy::Masking { .. } => "old results masked",
        ReplayPolicy::KeepUser { .. } => "the user's words and a summary",
        ReplayPolicy::Forget { share } => {
            return format!("the newest {share} % whenever the room is full");
        }
        ReplayPolicy::Blocks(_) => "blocks",
        other => other.name(),
    };
    words.to_owned()
}
