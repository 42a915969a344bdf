//! The coloured view of rendered text: every chunk in the colour of its type, and the facet that
//! wrote it in the margin.

use std::{borrow::Cow, io::Write};

use afterimage::{
    id::Role,
    snapshot::{ChunkRef, FrameSnapshot},
};
use anstyle::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::{
    failure::Outcome,
    output::Output,
    style,
    text::{printable, shortened, width, wrapped},
};

/// What the margin says of text that no facet wrote.
const UNATTRIBUTED: &str = "(formatting)";
/// What stands for a chunk without text.
const EMPTY: &str = "∅";
/// The columns between two tab stops.
const TAB: usize = 4;

/// Something that takes columns on a line: a character as people see it.
struct Glyph<'t> {
    text: Cow<'t, str>,
    columns: usize,
    /// The index of its chunk among those that are shown.
    chunk: usize,
}

/// Writes a rule with a title at its beginning and `after` at its end, as wide as the terminal.
pub(crate) fn rule(out: &mut Output, title: &str, style: Style, after: &str) -> Outcome {
    let (dim, style) = (out.paint.style(style::DIM), out.paint.style(style));
    let after = printable(after);
    let after = shortened(&after, out.width / 2);
    // A name that is too long loses its middle.
    let columns = out.width.saturating_sub(width(&after) + 11).max(16);
    let title = printable(title);
    let title = shortened(&title, columns);
    let after = if after.is_empty() { String::new() } else { format!(" {after} ──") };
    let rest = out.width.saturating_sub(3 + width(&title) + 1 + width(&after)).max(3);
    let rest = "─".repeat(rest);
    Ok(writeln!(out, "{dim}──{dim:#} {style}{title}{style:#} {dim}{rest}{after}{dim:#}")?)
}

/// Writes the name of a file and its format. A name that is too long loses its middle.
pub(crate) fn file(out: &mut Output, name: &str, format: &str) -> Outcome {
    let bold = out.paint.style(style::HEADING);
    let columns = out.width.saturating_sub(width(format) + 2).max(16);
    let name = printable(name);
    Ok(writeln!(out, "{bold}{}{bold:#}  {format}", shortened(&name, columns))?)
}

/// Writes a note in lines as wide as the terminal, so many columns from its edge.
pub(crate) fn note(out: &mut Output, indent: usize, text: &str) -> Outcome {
    let dim = out.paint.style(style::DIM);
    for line in wrapped(&printable(text), out.width.saturating_sub(indent)) {
        writeln!(out, "{:indent$}{dim}{line}{dim:#}", "")?;
    }
    Ok(())
}

/// The heading of a message.
pub(crate) fn heading(
    out: &mut Output,
    message: usize,
    role: Option<Role>,
    after: &str,
) -> Outcome {
    let title = format!("{message} {}", role.map_or("message", Role::as_str));
    rule(out, &title, style::of_role(role), after)
}

/// Writes the text of a snapshot, wrapped to the terminal's width.
pub(crate) fn body(out: &mut Output, snapshot: &FrameSnapshot) -> Outcome {
    let chunks: Vec<ChunkRef<'_>> = snapshot.chunks().collect();
    body_of(out, &chunks)
}

/// Writes the text of chunks, wrapped to the terminal's width.
pub(crate) fn body_of(out: &mut Output, chunks: &[ChunkRef<'_>]) -> Outcome {
    let labels = chunks.iter().map(|chunk| width(&label(*chunk))).max().unwrap_or(0);
    let margin = labels.clamp(10, 22).min(out.width / 3);
    let view = View { chunks, margin, columns: out.width.saturating_sub(margin + 3).max(10) };
    let mut line: Vec<Glyph<'_>> = Vec::new();
    // The facets that the margin named last.
    let mut named = None;
    for (index, chunk) in chunks.iter().enumerate() {
        if chunk.range().is_empty() {
            line.push(Glyph { text: EMPTY.into(), columns: 1, chunk: index });
        }
        for grapheme in chunk.content().graphemes(true) {
            if grapheme == "\n" || grapheme == "\r\n" {
                view.line(out, &line, &mut named)?;
                line.clear();
            } else {
                line.push(glyph(grapheme, index, &line));
            }
        }
    }
    if !line.is_empty() {
        view.line(out, &line, &mut named)?;
    }
    Ok(())
}

fn glyph<'t>(grapheme: &'t str, chunk: usize, line: &[Glyph<'_>]) -> Glyph<'t> {
    if grapheme == "\t" {
        let before: usize = line.iter().map(|glyph| glyph.columns).sum();
        let columns = TAB - before % TAB;
        return Glyph { text: " ".repeat(columns).into(), columns, chunk };
    }
    let text = printable(grapheme);
    Glyph { columns: text.width(), text, chunk }
}

/// Who wrote a chunk, for the margin.
fn label(chunk: ChunkRef<'_>) -> Cow<'_, str> {
    let mut ids = chunk.facet_ids();
    match (ids.next(), ids.len()) {
        (None, _) => UNATTRIBUTED.into(),
        (Some(id), 0) => printable(id),
        (Some(id), more) => format!("{}+{more}", printable(id)).into(),
    }
}

struct View<'v, 's> {
    chunks: &'v [ChunkRef<'s>],
    margin: usize,
    columns: usize,
}

impl<'s> View<'_, 's> {
    /// Writes a line of the text, as several where it is too long.
    fn line(
        &self,
        out: &mut Output,
        mut line: &[Glyph<'_>],
        named: &mut Option<Cow<'s, str>>,
    ) -> Outcome {
        loop {
            let (row, rest) = self.split(line);
            self.row(out, row, named)?;
            if rest.is_empty() {
                return Ok(());
            }
            line = rest;
        }
    }

    /// What fits on a row, and what is left: broken after a blank where there is one.
    fn split<'g, 't>(&self, line: &'g [Glyph<'t>]) -> (&'g [Glyph<'t>], &'g [Glyph<'t>]) {
        let mut used = 0;
        let fits = line.iter().take_while(|glyph| {
            used += glyph.columns;
            used <= self.columns
        });
        let fits = fits.count().max(1);
        if fits >= line.len() {
            return (line, &[]);
        }
        let blank = line.iter().take(fits).rposition(|glyph| glyph.text.as_ref() == " ");
        let at = blank.map(|at| at + 1).filter(|at| *at > fits / 2).unwrap_or(fits);
        line.split_at(at)
    }

    fn row(
        &self,
        out: &mut Output,
        row: &[Glyph<'_>],
        named: &mut Option<Cow<'s, str>>,
    ) -> Outcome {
        let chunk_of = |glyph: &Glyph<'_>| self.chunks.get(glyph.chunk).copied();
        let kind = |chunk: Option<ChunkRef<'s>>| {
            chunk.and_then(|chunk| chunk.chunk_type()).map_or(Style::new(), style::of_type)
        };
        // The writers that begin on this row. Text of several facets on one row names the first,
        // and how many more there are.
        let mut begin: Vec<(Cow<'s, str>, Style)> = Vec::new();
        for chunk in row.iter().filter_map(chunk_of) {
            let label = label(chunk);
            if named.as_ref() == Some(&label) {
                continue;
            }
            *named = Some(label.clone());
            let own = self.chunks.iter().copied().find(|other| {
                other.facet_ids() == chunk.facet_ids()
                    && other.chunk_type().is_none_or(|kind| kind != "formatting")
            });
            begin.push((label, kind(own.or(Some(chunk)))));
        }
        let (text, style) = match begin.as_slice() {
            [] => (String::new(), Style::new()),
            [(label, style)] => (shortened(label, self.margin).into_owned(), *style),
            [(label, style), rest @ ..] => {
                let more = format!(" +{}", rest.len());
                let label = shortened(label, self.margin.saturating_sub(more.len()));
                (format!("{label}{more}"), *style)
            }
        };
        let blanks = self.margin.saturating_sub(width(&text));
        let (style, dim) = (out.paint.style(style), out.paint.style(style::DIM));
        write!(out, "{:blanks$}{style}{text}{style:#} {dim}│{dim:#}", "")?;
        let mut before = " ";
        let mut rest = row;
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|glyph| glyph.chunk == first.chunk).count();
            let (glyphs, after) = rest.split_at(run);
            let style = out.paint.style(kind(chunk_of(first)));
            write!(out, "{before}{style}")?;
            for glyph in glyphs {
                write!(out, "{}", glyph.text)?;
            }
            write!(out, "{style:#}")?;
            (before, rest) = ("", after);
        }
        Ok(writeln!(out)?)
    }
}
