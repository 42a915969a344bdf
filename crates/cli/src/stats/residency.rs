//! `afterimage stats --residency`: what each facet cost over the session.

mod groups;
pub(crate) mod row;

use std::{io::Write, sync::Arc};

use afterimage::{
    bill::{Prices, Remainder, Residency, ResidencyLine, Share},
    id::{FacetId, FrameSeq},
    transcript::Money,
};

use self::{
    groups::Groups,
    row::{
        LineAnswer, OtherLines, Overcounted, ResidencyAnswer, ResidencyRow, RestOfGroups,
        ShareAnswer, TurnAnswer,
    },
};
use crate::{
    answer::ByName,
    copies::Copies,
    failure::Outcome,
    input::Source,
    labels::{self, Label, RecordingLabels},
    lens::Lens,
    output::Output,
    recorded, style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, last_columns, percent, shortened},
    usage::{Reported, money},
    view,
};

/// How many lines, tools and turns are named.
const MOST: usize = 20;
/// From how many columns on a table has room for all figures.
const WIDE: usize = 110;
/// How many columns of a turn's first words are shown.
const TURN_WORDS: usize = 120;
/// What the last row of a table is called.
const TOTAL: &str = "all that is reported";

/// Shows the residency of a file.
pub(super) fn show(
    source: &mut Source,
    lens: &Lens,
    (prices, copies): (&Prices, &Copies),
    is_json: bool,
    out: &mut Output,
) -> Outcome {
    let mut recording = recorded::read(source, &lens.counter)?;
    recording.mark_copies(|reported| copies.mark(reported));
    let residency = Residency::priced(&recording, prices).map_err(|error| source.refuse(error))?;
    let reported = Reported::of(recording.reported(), prices);
    let labels = RecordingLabels::new(&recording);
    let lacks = recording.exchanges().iter().map(|of| of.provenance.lacks());
    let mut advices = lacks.filter_map(|lacks| recorded::advice(source.format(), lacks));
    let advice = advices.next();
    let page = Page { residency: &residency, reported: &reported, labels, advice };
    if is_json {
        return out.answer(&ResidencyRow {
            file: source.name(),
            format: source.format().name(),
            counts: lens.own_counts().answer(),
            reported: reported.answer(),
            residency: page.answer(),
        });
    }
    view::file(out, &source.name(), source.format().name())?;
    reported.block(out)?;
    if residency.exchanges == 0 && !reported.sums.copied.is_empty() {
        return Ok(());
    }
    if residency.exchanges == 0 {
        return Ok(writeln!(out, "\n  No usage is reported.")?);
    }
    page.print(source.sessions() > 1, &lens.own_counts().to_string(), out)
}

/// The residency of a file, with the usage that it adds up to.
struct Page<'p> {
    residency: &'p Residency,
    reported: &'p Reported<'p>,
    labels: RecordingLabels<'p>,
    /// What to do where the transcript lacks parts of its requests.
    advice: Option<&'static str>,
}

impl Page<'_> {
    /// The price of a share; `None` where no exchange has one.
    fn price(&self, share: &Share) -> Option<Money> {
        let bill = &self.reported.bill;
        let is_priced = bill.priced > 0;
        is_priced.then(|| Money::from_pico(share.pico, bill.prices().currency()))
    }

    /// What the lines that are not listed cost, and how many these are.
    fn others(&self, listed: &[&ResidencyLine]) -> (u64, Share) {
        let lines = self.residency.lines.iter().filter(|line| !line.share.is_empty());
        let others = lines.filter(|line| !listed.iter().any(|listed| std::ptr::eq(*listed, *line)));
        others.fold((0, Share::default()), |(count, sum), line| (count + 1, sum.plus(line.share)))
    }

    /// The remainders that are not empty.
    fn remainders(&self) -> impl Iterator<Item = (Remainder, Share)> {
        let all = Remainder::ALL.into_iter().map(|of| (of, self.residency.remainder(of)));
        all.filter(|(_, share)| !share.is_empty())
    }

    fn share(&self, share: &Share) -> ShareAnswer {
        ShareAnswer::of(share, self.price(share))
    }

    /// Where a line stands in the file.
    fn label(&self, line: &ResidencyLine) -> Label {
        let facet = line.facet.as_ref().map(FacetId::as_str);
        line.frame.map_or_else(Label::default, |frame| self.labels.of(&line.session, frame, facet))
    }

    fn line<'l>(&'l self, line: &'l ResidencyLine) -> LineAnswer<'l> {
        LineAnswer {
            session: &line.session,
            facet: line.facet.as_ref().map(FacetId::as_str),
            sequence: line.frame,
            r#type: line.chunk_type.as_deref(),
            tool: line.call.as_ref().map(|call| &*call.tool),
            definition: line.is_definition,
            media: line.is_media,
            path: path(line),
            subject: line.call.as_ref().and_then(|call| call.subject.as_deref()),
            tokens: line.tokens,
            requests: line.requests,
            place: self.label(line).place(),
            share: self.share(&line.share),
        }
    }

    fn answer(&self) -> ResidencyAnswer<'_> {
        let residency = self.residency;
        let lines = residency.largest(MOST);
        let (count, others) = self.others(&lines);
        let share = |share: &Share| self.share(share);
        let remainders = self.remainders().map(|(of, share)| (of.as_str(), share));
        let types = Groups::of(residency, usize::MAX, |line| Some(kind(line)));
        let tools = Groups::of(residency, usize::MAX, tool);
        let definitions = Groups::of(residency, usize::MAX, definition);
        let paths = Groups::of(residency, MOST, path);
        let turns = Groups::of(residency, MOST, turn);
        let rest = RestOfGroups {
            by_type: types.rest(share),
            by_tool: tools.rest(share),
            by_definition: definitions.rest(share),
            by_path: paths.rest(share),
            by_turn: turns.rest(share),
        };
        let turns = turns.shares.into_iter().map(|((session, sequence), share)| TurnAnswer {
            session,
            sequence,
            text: self.labels.words(session, sequence, TURN_WORDS),
            place: self.labels.of(session, sequence, None).place(),
            share: self.share(&share),
        });
        let (requests, tokens) = residency.overcounted;
        ResidencyAnswer {
            total: self.share(&residency.total()),
            exchanges: residency.exchanges,
            incomplete: residency.incomplete,
            lines: lines.iter().map(|line| self.line(line)).collect(),
            others: OtherLines { lines: count, share: self.share(&others) },
            remainder: self.by_name(remainders),
            overcounted: Overcounted { requests, tokens },
            unknown_media: residency.unknown_media,
            by_type: self.by_name(types.shares),
            by_tool: self.by_name(tools.shares),
            by_definition: self.by_name(definitions.shares),
            by_path: self.by_name(paths.shares),
            by_turn: turns.collect(),
            rest,
        }
    }

    fn by_name<'s>(
        &self,
        shares: impl IntoIterator<Item = (&'s str, Share)>,
    ) -> ByName<'s, ShareAnswer> {
        ByName(shares.into_iter().map(|(name, share)| (name, self.share(&share))).collect())
    }

    fn print(&self, has_sessions: bool, counts: &str, out: &mut Output) -> Outcome {
        let residency = self.residency;
        let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
        let lines = residency.largest(MOST);
        let title =
            format!("THE {} THAT COST MOST", counted(lines.len() as u64, "FACET").to_uppercase());
        let says = format!("reported tokens, laid out over what requests held by {counts}");
        writeln!(out, "\n  {bold}{title}{bold:#}\n  {dim}{says}{dim:#}")?;
        let mut columns = vec![Column::number("PRICE", 10), Column::number("HELD", 4)];
        columns.extend(figures(out));
        columns.extend(Label::columns());
        columns.extend((out.width >= WIDE).then(|| Column::number("FRAME", 5)));
        columns.push(Column::text(if has_sessions { "FACET (SESSION)" } else { "FACET" }, 0));
        let (count, others) = self.others(&lines);
        let others = (count > 0).then(|| (format!("{} more", counted(count, "facet")), others));
        let remainders = self.remainders().map(|(of, share)| (says_of(of).to_owned(), share));
        let total = (TOTAL.to_owned(), residency.total());
        let sums: Vec<_> = others.into_iter().chain(remainders).chain([total]).collect();
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for line in &lines {
            let frame = line.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string());
            let mut row = vec![self.price_cell(&line.share), plain(grouped(line.requests))];
            row.extend(cells(&line.share, out));
            row.extend(self.label(line).cells());
            row.extend((out.width >= WIDE).then(|| plain(frame)));
            rows.push(row);
        }
        for (_, share) in &sums {
            let mut row = vec![self.price_cell(share), plain("")];
            row.extend(cells(share, out));
            row.extend([plain(""), plain("")]);
            row.extend((out.width >= WIDE).then(|| plain("")));
            rows.push(row);
        }
        let table = Table::new(columns).fitted(&rows);
        let columns = table.rest(out);
        let facets = lines.iter().map(|line| plain(name(line, has_sessions, columns)));
        let sums = sums.into_iter().map(|(name, _)| (name, style::DIM));
        table.head(out)?;
        for (mut row, name) in rows.into_iter().zip(facets.chain(sums)) {
            row.push(name);
            table.row(out, row)?;
        }
        for (remainder, _) in self.remainders() {
            let advice = self.advice.filter(|_| remainder == Remainder::NotInTranscript);
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            let says = format!("{}: {}{advice}", says_of(remainder), why(remainder));
            view::note(out, 2, &says)?;
        }
        let (requests, tokens) = residency.overcounted;
        if requests > 0 {
            let of = counted(requests, "request");
            let tokens = counted(tokens, "token");
            let says = format!(
                "{of} held {tokens} more by our count than reported, which was scaled down"
            );
            view::note(out, 2, &says)?;
        }
        if residency.unknown_media > 0 {
            let of = counted(residency.unknown_media, "media item");
            writeln!(out, "  {dim}{of} of unknown cost: no published rule, or no size{dim:#}")?;
        }
        if residency.incomplete > 0 {
            let of = counted(residency.incomplete, "exchange");
            let says = format!("{of} without whole usage: what is missing is in no line");
            view::note(out, 2, &says)?;
        }
        let types = Groups::of(residency, MOST, |line| Some(kind(line)));
        self.groups(
            "BY TYPE",
            ["type", "of no type"],
            types.named(|name, _| name.to_owned()),
            out,
        )?;
        let tools = Groups::of(residency, MOST, tool).named(|name, _| name.to_owned());
        self.groups("BY TOOL: CALLS AND RESULTS", ["tool", "of no tool"], tools, out)?;
        let definitions = Groups::of(residency, MOST, definition).named(|name, _| name.to_owned());
        self.groups("BY TOOL: DEFINITIONS", ["definition", "no definition"], definitions, out)?;
        // Of a path the end says most; the figures take the rest of the row.
        let columns = out.width.saturating_sub(if out.width < WIDE { 32 } else { 63 });
        let paths = Groups::of(residency, MOST / 2, path);
        let paths = paths.named(|path, _| last_columns(path, columns));
        self.groups("BY PATH", ["path", "of no path"], paths, out)?;
        let turns = Groups::of(residency, MOST / 2, turn).named(|(session, frame), _| {
            let label = self.labels.of(session, frame, None);
            let place = label
                .line()
                .map_or_else(|| format!("frame {frame}"), |line| format!("line {line}"));
            let words = self.labels.words(session, frame, TURN_WORDS);
            let name = format!("{place}  {words}");
            if has_sessions { format!("{name} ({session})") } else { name }
        });
        self.groups("BY TURN", ["turn", "in no turn"], turns, out)
    }

    /// Writes groups that add up to what is reported: `nouns` are what one is, and what lines are
    /// that are in none.
    fn groups(
        &self,
        title: &'static str,
        [noun, ungrouped]: [&str; 2],
        groups: Groups<String>,
        out: &mut Output,
    ) -> Outcome {
        if groups.shares.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let whole = self.residency.total();
        let (more, others) = groups.others;
        let sums = [
            (format!("{} more", counted(more, noun)), others),
            (ungrouped.to_owned(), groups.ungrouped),
            ("in no facet".to_owned(), groups.outside),
            (TOTAL.to_owned(), whole),
        ];
        let named = groups.shares.into_iter().map(|(name, share)| (plain(name), share));
        let sums = sums.into_iter().filter(|(_, share)| !share.is_empty());
        let sums = sums.map(|(name, share)| ((name, style::DIM), share));
        let (names, rows): (Vec<Cell>, Vec<Vec<Cell>>) = named
            .chain(sums)
            .map(|(name, share)| {
                let part = percent(share.tokens(), whole.tokens());
                let mut row = vec![self.price_cell(&share), plain(part)];
                row.extend(cells(&share, out));
                (name, row)
            })
            .unzip();
        let mut columns = vec![Column::number("PRICE", 10), Column::number("SHARE", 7)];
        columns.extend(figures(out));
        columns.push(Column::text(title, 0));
        let table = Table::new(columns).fitted(&rows);
        let columns = table.rest(out);
        table.head(out)?;
        for (mut row, (name, look)) in rows.into_iter().zip(names) {
            row.push((shortened(&name, columns).into_owned(), look));
            table.row(out, row)?;
        }
        Ok(())
    }

    fn price_cell(&self, share: &Share) -> Cell {
        plain(self.price(share).map_or_else(|| "–".to_owned(), money))
    }
}

/// The columns of a share; a narrow terminal has room for the input alone, with its reads and writes.
fn figures(out: &Output) -> Vec<Column> {
    if out.width < WIDE {
        return vec![Column::number("INPUT", 10)];
    }
    vec![
        Column::number("READ", 10),
        Column::number("WRITTEN", 9),
        Column::number("UNCACHED", 9),
        Column::number("OUTPUT", 7),
    ]
}

fn cells(share: &Share, out: &Output) -> Vec<Cell> {
    let figures = if out.width < WIDE {
        vec![share.input]
    } else {
        vec![share.cache_read, share.cache_write, share.uncached(), share.output]
    };
    figures.into_iter().map(|tokens| plain(grouped(tokens))).collect()
}

/// What a line is called: its tool or type, what the call is about, and its id.
fn name(line: &ResidencyLine, has_sessions: bool, columns: usize) -> String {
    let id = line.facet.as_ref().map_or("no facet", |facet| facet.as_str());
    let session = if has_sessions { format!(" ({})", line.session) } else { String::new() };
    let call = line.call.as_ref().filter(|_| !line.is_definition);
    labels::named(call, kind(line), &format!("{id}{session}"), columns)
}

/// A remainder for people.
fn says_of(remainder: Remainder) -> &'static str {
    match remainder {
        Remainder::NotInTranscript => "not in the transcript",
        Remainder::NotCounted => "in no facet by our count",
        Remainder::OutputNotKept => "output that is not kept",
        Remainder::Unlisted => "in no list of requests",
        Remainder::BeyondInput => "beyond the input",
        Remainder::ProviderTools => "the provider's own tools",
        _ => remainder.as_str(),
    }
}

/// What is in a remainder.
fn why(remainder: Remainder) -> &'static str {
    match remainder {
        Remainder::NotInTranscript => {
            "tools, system prompt, forms, media of unknown cost, and what the provider adds or counts \
             more"
        }
        Remainder::NotCounted => {
            "forms, media of unknown cost, and what the provider adds or counts more"
        }
        Remainder::OutputNotKept => "reasoning, forms, and what the provider counts more",
        Remainder::Unlisted => "answers that show nothing, or whose request is nowhere",
        Remainder::BeyondInput => "cached tokens that are more than the input they are a part of",
        Remainder::ProviderTools => "web searches, which cost something besides their tokens",
        _ => "in no facet",
    }
}

fn kind(line: &ResidencyLine) -> &str {
    line.chunk_type.as_deref().unwrap_or("none")
}

fn tool(line: &ResidencyLine) -> Option<&str> {
    line.call.as_ref().filter(|_| !line.is_definition).map(|call| &*call.tool)
}

fn definition(line: &ResidencyLine) -> Option<&str> {
    line.call.as_ref().filter(|_| line.is_definition).map(|call| &*call.tool)
}

fn path(line: &ResidencyLine) -> Option<&str> {
    let of_call = line.call.as_ref().and_then(|call| call.path.as_deref());
    of_call.or(line.path.as_deref())
}

/// The turn that brought a line: its session, and the message that began it.
fn turn(line: &ResidencyLine) -> Option<(&Arc<str>, FrameSeq)> {
    Some((&line.session, line.turn?))
}
