//! `afterimage export`: recordings in the forms of other programs.

pub(crate) mod args;

use std::{
    cell::Cell,
    io::{self, Write},
};

use afterimage::{
    Error,
    otlp::{self, OtlpReport, OtlpWriter, SpanMessages},
};

use crate::{
    args::{CounterChoice, Rendering, Tokenizer},
    failure::{Outcome, Stop},
    input::{self, Source},
    lens::{Counting, Lens},
    output::{self, Output},
    recorded,
    text::counted,
    visible::in_json,
};

pub(crate) fn run(args: &args::Export) -> Outcome {
    // Nothing that is written is counted.
    let rendering =
        Rendering { format: None, tokenizer: Some(CounterChoice::Tokenizer(Tokenizer::Chars4)) };
    let lens = Lens::new(&rendering, Counting::OnDemand)?;
    let mut out = Output::new(args.coloring.color);
    // An output that ends early is the reader's wish, which the library cannot know.
    let failed = Cell::new(None);
    let stop = |error: Error, source: Option<&Source>| match (failed.take(), source) {
        (Some(output), _) => Stop::from(output),
        (None, Some(source)) => source.refuse(error),
        (None, None) => error.into(),
    };
    let escaped = Escaped { out: &mut out, failed: &failed };
    let writer = if args.lines {
        OtlpWriter::by_line(escaped)
    } else {
        OtlpWriter::new(escaped).map_err(|error| stop(error, None))?
    };
    let mut writer = match args.messages {
        args::Messages::All => writer,
        args::Messages::New => writer.with_messages(SpanMessages::New),
    };
    let read = input::each(&args.input.of_all_sessions(), true, |source| {
        let recording = recorded::read(source, &lens.counter)?;
        let wanted = args.input.session.as_deref();
        let is_wanted = |session: &str| wanted.is_none_or(|wanted| wanted == session);
        if let Some(wanted) = wanted
            && recording.history(wanted).is_none()
            && !recording.reported().any(|reported| *reported.session == *wanted)
        {
            let failure = source.fail(format!("there is no session {wanted:?}"));
            return Err(failure.hint("`afterimage requests FILE` lists the sessions").into());
        }
        let added = writer.add(&recording, is_wanted, nanoseconds);
        added.map_err(|error| stop(error, Some(source)))
    });
    if let Err(Stop::ClosedPipe | Stop::Output(_)) = read {
        return read;
    }
    // What the other files gave is a whole document, though one of them was refused.
    let report = writer.finish().map_err(|error| stop(error, None))?;
    if read.is_ok() || report.sessions > 0 {
        say(&report);
    }
    out.flush()?;
    read
}

fn say(report: &OtlpReport) {
    output::note(&format!(
        "{} and {} of tools in {}, {}, by the conventions {}",
        counted(report.requests, "request"),
        counted(report.tools, "call"),
        counted(report.sessions, "session"),
        counted(report.bytes, "byte"),
        otlp::CONVENTIONS,
    ));
    if report.without_time > 0 {
        output::note(&format!(
            "{} without a time in the source: `afterimage.time` says what stands in its place",
            counted(report.without_time, "request")
        ));
    }
    if report.unlisted > 0 {
        output::note(&format!(
            "{} whose request is in no list: each is a span with its usage alone",
            counted(report.unlisted, "answer")
        ));
    }
}

/// A time as sources write it, in nanoseconds since 1970.
fn nanoseconds(text: &str) -> Option<u64> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(at.as_nanosecond()).ok();
    }
    let millis = crate::when::written(text)?;
    u64::try_from(millis).ok()?.checked_mul(1_000_000)
}

/// JSON on its way out: no control is in it but as an escape.
struct Escaped<'o> {
    out: &'o mut Output,
    /// Why nothing can be written any more.
    failed: &'o Cell<Option<io::Error>>,
}

impl Escaped<'_> {
    fn kept<T>(&self, written: io::Result<T>) -> io::Result<T> {
        written.map_err(|error| {
            let told = io::Error::from(error.kind());
            self.failed.set(Some(error));
            told
        })
    }
}

impl Write for Escaped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The library hands on whole texts; a line end in them stands between values.
        let text = String::from_utf8_lossy(bytes);
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            let written = self.out.write_all(in_json(line).as_bytes());
            let written = written.and_then(|()| self.out.write_all(end.as_bytes()));
            self.kept(written)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.kept(flushed)
    }
}
