//! `afterimage stats --residency`: what each facet cost over the session.

use std::{io::Write, sync::Arc};

use afterimage::{
    bill::{Prices, Remainder, Residency, ResidencyLine, Share},
    id::{FacetId, FrameSeq},
    json::{Object, Value},
    transcript::Money,
    veil::ToolCall,
};

use crate::{
    failure::Outcome,
    input::Source,
    json::{object, or_null},
    labels::{self, Label, RecordingLabels},
    lens::Lens,
    output::Output,
    requests, style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, last_columns, percent, printable},
    usage::{Reported, money},
};

/// How many lines, tools and turns are named.
const MOST: usize = 20;
/// From how many columns on a table has room for all figures.
const WIDE: usize = 110;

/// Shows the residency of a file.
pub(super) fn show(
    source: &mut Source,
    lens: &Lens,
    prices: &Prices,
    is_json: bool,
    out: &mut Output,
) -> Outcome {
    let recording = requests::read(source, &lens.counter)?;
    let residency = Residency::priced(&recording, prices).map_err(|error| source.refuse(error))?;
    let reported = Reported::of(&recording.reported().collect::<Vec<_>>(), prices);
    let labels = RecordingLabels::new(&recording);
    let page = Page { residency: &residency, reported: &reported, labels };
    if is_json {
        let mut json = object! { "file": source.name(), "format": source.format().name() };
        lens.put(&mut json);
        reported.put(&mut json);
        json.insert("residency".to_owned(), page.to_json().into());
        return out.json(json);
    }
    let bold = out.paint.style(style::HEADING);
    writeln!(out, "{bold}{}{bold:#}  {}", printable(&source.name()), source.format())?;
    if residency.exchanges == 0 {
        return Ok(writeln!(out, "\n  No usage is reported.")?);
    }
    reported.block(out)?;
    page.print(source.sessions() > 1, lens.counter.id(), out)
}

/// The residency of a file, with the usage that it adds up to.
struct Page<'p> {
    residency: &'p Residency,
    reported: &'p Reported<'p>,
    labels: RecordingLabels<'p>,
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

    fn share_json(&self, share: &Share) -> Object {
        let mut json = share.to_json();
        json.insert("price".to_owned(), or_null(self.price(share)));
        json
    }

    /// Where a line stands in the file.
    fn label(&self, line: &ResidencyLine) -> Label {
        let facet = line.facet.as_ref().map(FacetId::as_str);
        line.frame.map_or_else(Label::default, |frame| self.labels.of(&line.session, frame, facet))
    }

    fn line_json(&self, line: &ResidencyLine) -> Object {
        let mut json = object! {
            "session": &*line.session,
            "facet": or_null(line.facet.as_ref().map(FacetId::as_str)),
            "sequence": or_null(line.frame.map(FrameSeq::get)),
            "type": or_null(line.chunk_type.as_deref()),
            "tool": or_null(line.tool.as_deref()),
            "definition": line.is_definition,
            "path": or_null(line.path.as_deref()),
            "subject": or_null(line.subject.as_deref()),
            "tokens": line.tokens,
            "requests": line.requests,
        };
        self.label(line).put_place(&mut json);
        json.extend(self.share_json(&line.share));
        json
    }

    fn to_json(&self) -> Object {
        let residency = self.residency;
        let lines = residency.largest(MOST);
        let (count, others) = self.others(&lines);
        let remainders = self.remainders().map(|(of, share)| (of.as_str(), share));
        let turns = by_turn(residency).into_iter().take(MOST).map(|((session, frame), share)| {
            let mut json = object! { "session": &**session, "sequence": frame.get() };
            self.labels.of(session, frame, None).put_place(&mut json);
            json.extend(self.share_json(&share));
            Value::from(json)
        });
        let (requests, tokens) = residency.overcounted;
        object! {
            "total": self.share_json(&residency.total()),
            "exchanges": residency.exchanges,
            "incomplete": residency.incomplete,
            "lines": lines.iter().map(|line| Value::from(self.line_json(line))).collect::<Value>(),
            "others": { let mut json = object! { "lines": count }; json.extend(self.share_json(&others)); json },
            "remainder": self.shares_json(remainders),
            "overcounted": object! { "requests": requests, "tokens": tokens },
            "byType": self.shares_json(residency.by(|line| Some(kind(line)))),
            "byTool": self.shares_json(residency.by(tool)),
            "byDefinition": self.shares_json(residency.by(definition)),
            "byPath": self.shares_json(residency.by(path).into_iter().take(MOST)),
            "byTurn": turns.collect::<Value>(),
        }
    }

    fn shares_json<'s>(&self, shares: impl IntoIterator<Item = (&'s str, Share)>) -> Object {
        let share =
            |(name, share): (&str, Share)| (name.to_owned(), Value::from(self.share_json(&share)));
        shares.into_iter().map(share).collect()
    }

    fn print(&self, has_sessions: bool, tokenizer: &str, out: &mut Output) -> Outcome {
        let residency = self.residency;
        let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
        let lines = residency.largest(MOST);
        let title =
            format!("THE {} THAT COST MOST", counted(lines.len() as u64, "FACET").to_uppercase());
        let says = format!("reported tokens, laid out over what requests held by {tokenizer}");
        writeln!(out, "\n  {bold}{title}{bold:#}\n  {dim}{says}{dim:#}")?;
        let mut columns = vec![Column::number("PRICE", 10), Column::number("HELD", 4)];
        columns.extend(figures(out));
        columns.extend(Label::columns());
        columns.extend((out.width >= WIDE).then(|| Column::number("FRAME", 5)));
        columns.push(Column::text(if has_sessions { "FACET (SESSION)" } else { "FACET" }, 0));
        let table = Table::new(columns);
        table.head(out)?;
        for line in &lines {
            let frame = line.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string());
            let mut row = vec![self.price_cell(&line.share), plain(grouped(line.requests))];
            row.extend(cells(&line.share, out));
            row.extend(self.label(line).cells());
            row.extend((out.width >= WIDE).then(|| plain(frame)));
            row.push(plain(name(line, has_sessions, table.rest(out))));
            table.row(out, row)?;
        }
        let (count, others) = self.others(&lines);
        let others = (count > 0).then(|| (format!("{} more", counted(count, "facet")), others));
        let remainders = self.remainders().map(|(of, share)| (says_of(of).to_owned(), share));
        let total = ("all that is reported".to_owned(), residency.total());
        for (name, share) in others.into_iter().chain(remainders).chain([total]) {
            let mut row = vec![self.price_cell(&share), plain("")];
            row.extend(cells(&share, out));
            row.extend([plain(""), plain("")]);
            row.extend((out.width >= WIDE).then(|| plain("")));
            row.push((name, style::DIM));
            table.row(out, row)?;
        }
        for (remainder, _) in self.remainders() {
            let (says, why) = (says_of(remainder), why(remainder));
            writeln!(out, "  {dim}{says}: {why}{dim:#}")?;
        }
        let (requests, tokens) = residency.overcounted;
        if requests > 0 {
            let of = counted(requests, "request");
            let says = format!(
                "{of} held {} tokens more by our count than are reported, and were scaled down",
                grouped(tokens)
            );
            writeln!(out, "  {dim}{says}{dim:#}")?;
        }
        if residency.incomplete > 0 {
            let of = counted(residency.incomplete, "exchange");
            writeln!(out, "  {dim}{of} without whole usage: what is missing is in no line{dim:#}")?;
        }
        self.groups("BY TYPE", residency.by(|line| Some(kind(line))), out)?;
        self.groups("BY TOOL: CALLS AND RESULTS", residency.by(tool), out)?;
        self.groups("BY TOOL: DEFINITIONS", residency.by(definition), out)?;
        // Of a path the end says most; the figures take the rest of the row.
        let columns = out.width.saturating_sub(if out.width < WIDE { 32 } else { 63 });
        let paths = residency.by(path).into_iter().take(MOST / 2);
        let paths = paths.map(|(path, share)| (last_columns(path, columns), share));
        self.groups("BY PATH", paths, out)?;
        let turns = by_turn(residency).into_iter().map(|((session, frame), share)| {
            let label = self.labels.of(session, frame, None).words();
            let comma = if label.is_empty() { "" } else { ", " };
            let name = format!("frame {frame}{comma}{label}");
            (if has_sessions { format!("{name} ({session})") } else { name }, share)
        });
        self.groups("BY TURN", turns.take(MOST / 2), out)
    }

    fn groups<S: AsRef<str>>(
        &self,
        title: &'static str,
        groups: impl IntoIterator<Item = (S, Share)>,
        out: &mut Output,
    ) -> Outcome {
        let mut groups = groups.into_iter().take(MOST).peekable();
        if groups.peek().is_none() {
            return Ok(());
        }
        writeln!(out)?;
        let whole = self.residency.total();
        let mut columns = vec![Column::number("PRICE", 12), Column::number("SHARE", 6)];
        columns.extend(figures(out));
        columns.push(Column::text(title, 0));
        let table = Table::new(columns);
        table.head(out)?;
        for (name, share) in groups {
            let part = percent(share.tokens(), whole.tokens());
            let mut row = vec![self.price_cell(&share), plain(part)];
            row.extend(cells(&share, out));
            row.push(plain(name.as_ref()));
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
    let call = line.tool.as_ref().map(|tool| ToolCall {
        tool: Arc::clone(tool),
        path: line.path.clone(),
        subject: line.subject.clone(),
    });
    let call = call.filter(|_| !line.is_definition);
    labels::named(call.as_ref(), kind(line), &format!("{id}{session}"), columns)
}

/// A remainder for people.
fn says_of(remainder: Remainder) -> &'static str {
    match remainder {
        Remainder::NotInTranscript => "not in the transcript",
        Remainder::NotCounted => "in no facet by our count",
        Remainder::OutputNotKept => "output that is not kept",
        Remainder::Unlisted => "in no list of requests",
        Remainder::BeyondInput => "beyond the input",
        _ => remainder.as_str(),
    }
}

/// What is in a remainder.
fn why(remainder: Remainder) -> &'static str {
    match remainder {
        Remainder::NotInTranscript => {
            "tools, system prompt, forms, images, and what the provider adds or counts more"
        }
        Remainder::NotCounted => "forms, images, and what the provider adds or counts more",
        Remainder::OutputNotKept => "reasoning, forms, and what the provider counts more",
        Remainder::Unlisted => "answers that show nothing, or whose request is nowhere",
        Remainder::BeyondInput => "cached tokens that are more than the input they are a part of",
        _ => "in no facet",
    }
}

fn kind(line: &ResidencyLine) -> &str {
    line.chunk_type.as_deref().unwrap_or("none")
}

fn tool(line: &ResidencyLine) -> Option<&str> {
    line.tool.as_deref().filter(|_| !line.is_definition)
}

fn definition(line: &ResidencyLine) -> Option<&str> {
    line.tool.as_deref().filter(|_| line.is_definition)
}

fn path(line: &ResidencyLine) -> Option<&str> {
    line.path.as_deref()
}

fn by_turn(residency: &Residency) -> impl IntoIterator<Item = ((&Arc<str>, FrameSeq), Share)> {
    residency.by(|line| Some((&line.session, line.frame?)))
}
