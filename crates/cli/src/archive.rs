//! `afterimage archive`: transcripts and what they rendered to, in a directory.

pub(crate) mod args;

use std::{
    io::Write,
    path::Path,
    sync::{Mutex, PoisonError},
};

use afterimage::{
    session::archive::{
        ArchiveBuilder, ArchiveSummary, TranscriptSource, TranscriptWriter, WrittenTranscript,
    },
    snapshot::Totals,
};

use crate::{
    answer::answer,
    args::Input,
    failure::Outcome,
    input::{self, InputRefusal, Source},
    lens::{Counting, Counts, CountsAnswer, Lens, Lenses},
    moment::moment,
    output::Output,
    store, style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, last_columns, percent, printable},
};

pub(crate) fn run(args: &args::Archive) -> Outcome {
    let directory = &args.output;
    let mut out = Output::new(args.coloring.color);
    let builder = store::create(directory)?;
    let lenses = Mutex::new(Lenses::new(&args.rendering, Counting::Always));
    let read = |source: &mut Source| {
        // What is behind the lock is whole whenever it is let go.
        let lens = lenses.lock().unwrap_or_else(PoisonError::into_inner).of(source)?;
        Ok((written(source, &lens, &builder)?, lens.own_counts()))
    };
    let mut counts = Vec::new();
    // Each session of a database is found by itself, and so it is in the archive.
    let input = Input { by_session: true, ..args.input.with_exchanges() };
    // An archive of a part of what was named would be taken for one of all.
    input::each_at_once(&input, InputRefusal::Ends, read, |_, (transcript, of)| {
        counts.push(of);
        Ok(builder.add(transcript)?)
    })?;
    let summary = builder.finish()?;
    if args.json {
        out.answer(&archived(directory, &summary, &counts))?;
    } else {
        page(directory, &summary, counts.first(), &mut out)?;
    }
    Ok(out.flush()?)
}

/// Writes what a file holds.
fn written(
    source: &mut Source,
    lens: &Lens,
    builder: &ArchiveBuilder,
) -> Outcome<WrittenTranscript> {
    let from = TranscriptSource {
        file: source.name(),
        input_format: source.format(),
        format: lens.format.clone(),
    };
    let mut transcript = builder.transcript(from, &lens.hud, &lens.counter)?;
    while let Some(record) = source.next() {
        let (record, rendered) = source.with_rendered(record?)?;
        let now = moment(&record.frame);
        transcript.push(record, rendered.as_ref(), now).map_err(|error| source.refuse(error))?;
        push_exchanges(source, &mut transcript)?;
    }
    push_exchanges(source, &mut transcript)?;
    let mut report = source.report().into_owned();
    (report.sessions, report.folder) = (source.sessions(), source.project());
    transcript.finish(&report).map_err(|error| source.refuse(error))
}

/// Archives the exchanges that were read since the last call.
fn push_exchanges(source: &mut Source, transcript: &mut TranscriptWriter<'_>) -> Outcome {
    for exchange in source.take_exchanges()? {
        transcript.push_exchange(&exchange).map_err(|error| source.refuse(error))?;
    }
    Ok(())
}

fn archived<'a>(
    directory: &Path,
    summary: &'a ArchiveSummary,
    counts: &'a [Counts],
) -> ArchiveAnswer<'a> {
    let files = summary.transcripts.iter().zip(counts).map(|(file, counts)| ArchivedFile {
        file: &file.file,
        format: file.input_format.name(),
        counts: counts.answer(),
        sessions: file.sessions.len(),
        sums: file.totals().into(),
    });
    ArchiveAnswer {
        directory: directory.display().to_string(),
        files: files.collect(),
        sums: summary.totals().into(),
        stored_bytes: summary.stored_bytes,
    }
}

answer! {
    /// What was archived.
    pub(crate) struct ArchiveAnswer<'a> {
        /// the directory, as it was given
        directory: String,
        /// the files that were archived
        files: Vec<ArchivedFile<'a>>,
        ..sums: ArchivedSums,
        /// the sizes of the files that were written
        stored_bytes: u64,
    }

    /// A file that was archived.
    pub(crate) struct ArchivedFile<'a> {
        /// the file
        file: &'a str,
        /// its input format
        format: &'static str,
        ..counts: CountsAnswer<'a>,
        /// its sessions with frames, each of them an archive directory
        sessions: usize,
        ..sums: ArchivedSums,
    }

    /// Sums of what was archived.
    pub(crate) struct ArchivedSums {
        /// how many frames there are
        frames: u64,
        /// chunks of these frames
        chunks: u64,
        /// bytes of these chunks
        bytes: u64,
        /// tokens of these chunks
        tokens: u64,
    }
}

impl From<Totals> for ArchivedSums {
    fn from(Totals { frames, chunks, bytes, tokens }: Totals) -> Self {
        Self { frames, chunks, bytes, tokens }
    }
}

fn page(
    directory: &Path,
    summary: &ArchiveSummary,
    counts: Option<&Counts>,
    out: &mut Output,
) -> Outcome {
    let table = Table::new([
        Column::number("SESSIONS", 8),
        Column::number("FRAMES", 7),
        Column::number("CHUNKS", 8),
        Column::number("BYTES", 11),
        Column::number("TOKENS", 10),
        Column::text("FILE", 0),
    ]);
    table.head(out)?;
    let sessions = summary.transcripts.iter().map(|file| file.sessions.len()).sum();
    for file in &summary.transcripts {
        // Of a long path the end tells more than the beginning.
        let name = plain(last_columns(&printable(&file.file), table.rest(out)));
        table.row(out, cells(file.sessions.len(), file.totals(), name))?;
    }
    if summary.transcripts.len() > 1 {
        let all = (format!("{} files", grouped(summary.transcripts.len() as u64)), style::HEADING);
        table.row(out, cells(sessions, summary.totals(), all))?;
    }
    let stored = summary.stored_bytes;
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    if let Some(counts) = counts {
        writeln!(out, "{dim}Counted by {counts}{dim:#}")?;
    }
    let name = directory.display().to_string();
    let (name, text) = (printable(&name), summary.totals().bytes);
    write!(out, "\n{bold}{name}{bold:#}  {} on disk", counted(stored, "byte"))?;
    if stored < text {
        write!(out, "{dim}, {} of the text{dim:#}", percent(stored, text))?;
    }
    Ok(writeln!(out)?)
}

fn cells(sessions: usize, totals: Totals, name: Cell) -> Vec<Cell> {
    let Totals { frames, chunks, bytes, tokens } = totals;
    let numbers = [sessions as u64, frames, chunks, bytes, tokens].map(grouped);
    numbers.into_iter().map(plain).chain([name]).collect()
}
