//! What a context no longer says.

use std::io::Write;

use afterimage::{
    id::FrameSeq,
    window::{FittedContext, LossReceipt, LostKind},
};

use super::page;
use crate::{
    failure::Outcome,
    fitting::Session,
    output::Output,
    table::{Column, Table, plain},
    text::{counted, grouped, printable, width, wrapped},
    view,
};

/// So many lines are shown of each kind.
const LINES: usize = 12;

pub(super) fn of(session: &Session<'_>, fitted: &FittedContext) -> Outcome<LossReceipt> {
    let receipt = session.window.receipt(&session.history, fitted);
    receipt.map_err(|error| session.source.refuse(error))
}

/// For people: what it took, then what can no longer be read.
pub(super) fn page(session: &Session<'_>, fitted: &FittedContext, out: &mut Output) -> Outcome {
    let receipt = of(session, fitted)?;
    page::summary(session, fitted, out)?;
    if receipt.replaced.is_empty() {
        return Ok(());
    }
    if receipt.lost.is_empty() {
        writeln!(out, " Every rule, path, name and number can still be read.")?;
        return Ok(writeln!(out)?);
    }
    let counts = LostKind::ALL.map(|kind| (kind, receipt.of_kind(kind).count() as u64));
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(kind, count)| counted(*count, kind.as_str())).collect();
    writeln!(out, " Can no longer be read: {}", counts.join(", "))?;
    writeln!(out)?;
    let table =
        Table::new([Column::text("WHAT", 6), Column::number("FRAME", 6), Column::text("TEXT", 0)]);
    table.head(out)?;
    for kind in LostKind::ALL {
        rows(&receipt, kind, &table, out)?;
    }
    writeln!(out)?;
    view::note(
        out,
        1,
        "`expand` with the same options and `--around TEXT` prints where it stands.",
    )?;
    Ok(writeln!(out)?)
}

/// The lines of one kind: what each frame said first.
fn rows(receipt: &LossReceipt, kind: LostKind, table: &Table, out: &mut Output) -> Outcome {
    let columns = table.rest(out);
    let mut lines: Vec<Line> = Vec::new();
    for lost in receipt.of_kind(kind) {
        let text = printable(&lost.text);
        match lines.last_mut() {
            Some(line) if kind != LostKind::Rule && line.takes(lost.frame, &text, columns) => {
                line.text = format!("{}  {text}", line.text);
                line.texts += 1;
            }
            _ => lines.push(Line { frame: lost.frame, text: text.into_owned(), texts: 1 }),
        }
    }
    let mut last = None;
    for Line { frame, text, .. } in lines.iter().take(LINES) {
        for part in wrapped(text, columns) {
            let is_same = last.replace(*frame) == Some(*frame);
            let frame = if is_same { String::new() } else { frame.to_string() };
            table.row(out, [kind.as_str().to_owned(), frame, part].map(plain).into())?;
        }
    }
    let more: u64 = lines.iter().skip(LINES).map(|line| line.texts).sum();
    if more > 0 {
        let rest = format!("… {} more; --json has them all", grouped(more));
        table.row(out, [kind.as_str().to_owned(), String::new(), rest].map(plain).into())?;
    }
    Ok(())
}

/// Texts of one frame.
struct Line {
    frame: FrameSeq,
    text: String,
    texts: u64,
}

impl Line {
    /// Whether it has room for a text of a frame.
    fn takes(&self, frame: FrameSeq, text: &str, columns: usize) -> bool {
        self.frame == frame && width(&self.text) + 2 + width(text) <= columns
    }
}
