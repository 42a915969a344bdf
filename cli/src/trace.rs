//! `afterimage trace`: who wrote it.

use std::{cell::Cell, io::Write, sync::Arc};

use afterimage::{
    json::Value,
    snapshot::{ChunkRef, FrameSnapshot, find_chunks_by_facet},
    text::TextRange,
};

use crate::{
    args,
    failure::Outcome,
    hit::Hit,
    input::{self, Source},
    output::Output,
    style,
    table::Table,
    text::counted,
    view,
    viewer::{Lens, Viewer},
};

pub(crate) fn run(args: &args::Trace) -> Outcome {
    let mut out = Output::new(args.color);
    let lens = Lens::counting_on_demand(&args.rendering)?;
    let mut hits = Hits::new(args.json, &mut out)?;
    let outcome = input::each(&args.input, args.json || !out.is_terminal, |source| {
        let mut viewer = Viewer::new(&lens, source.format());
        hits.begin(source);
        if let Some((message, byte)) = args.target.at {
            owner_of(source, &mut viewer, message, byte, args, &mut hits, &mut out)?;
        } else {
            search(source, &mut viewer, args, &mut hits, &mut out)?;
        }
        if hits.in_file == 0 {
            source.note("no hit");
        }
        Ok(out.flush()?)
    });
    hits.end(&mut out)?;
    outcome
}

/// Writes hits as they are found.
struct Hits {
    is_json: bool,
    table: Table,
    file: Option<String>,
    session: Option<Arc<str>>,
    all: u64,
    in_file: u64,
}

impl Hits {
    fn new(is_json: bool, out: &mut Output) -> Outcome<Self> {
        if is_json {
            write!(out, "[")?;
        }
        let (file, session) = (None, None);
        Ok(Self { is_json, table: Hit::table(), file, session, all: 0, in_file: 0 })
    }

    fn begin(&mut self, source: &Source) {
        self.file = source.is_one_of_several.then(|| source.name());
        (self.in_file, self.session) = (0, None);
    }

    fn found(&mut self, hit: &Hit<'_>, out: &mut Output) -> Outcome {
        if self.is_json {
            let mut json = hit.to_json();
            if let Some(file) = &self.file {
                json.shift_insert(0, "file".to_owned(), file.as_str().into());
            }
            let before = if self.all == 0 { "" } else { ",\n " };
            write!(out, "{before}{}", Value::from(json))?;
        } else {
            if self.in_file == 0
                && let Some(file) = &self.file
            {
                view::rule(out, file, style::HEADING, "")?;
            }
            let is_first = self.in_file == 0 && (self.all == 0 || self.file.is_some());
            let is_other = self.session.as_ref().is_some_and(|session| session != hit.session);
            if is_other || (is_first && &**hit.session != "1") {
                view::rule(out, &format!("session {}", hit.session), style::HEADING, "")?;
            }
            if is_first {
                self.table.head(out)?;
            }
            self.session = Some(Arc::clone(hit.session));
            hit.print(&self.table, out)?;
        }
        self.all += 1;
        self.in_file += 1;
        Ok(out.flush_if_terminal()?)
    }

    fn end(&self, out: &mut Output) -> Outcome {
        if self.is_json {
            writeln!(out, "]")?;
        }
        Ok(out.flush()?)
    }
}

fn search(
    source: &mut Source,
    viewer: &mut Viewer<'_>,
    args: &args::Trace,
    hits: &mut Hits,
    out: &mut Output,
) -> Outcome {
    let is_wanted = |session: &str| args.session.as_ref().is_none_or(|wanted| wanted == session);
    while let Some(record) = source.next() {
        let seen = viewer.see(record?).map_err(|error| source.refuse(error))?;
        if !is_wanted(&seen.session) {
            continue;
        }
        let of = (&seen.session, Some(seen.frame.sequence.get()), seen.message);
        search_in(&seen.snapshot, of, viewer, args, hits, out)?;
    }
    for tail in viewer.tails() {
        let tail = tail.map_err(|error| source.refuse(error))?;
        if !is_wanted(&tail.session) {
            continue;
        }
        let of = (&tail.session, None, Some(tail.message));
        search_in(&tail.snapshot, of, viewer, args, hits, out)?;
    }
    Ok(())
}

fn search_in(
    snapshot: &FrameSnapshot,
    of: (&Arc<str>, Option<u64>, Option<usize>),
    viewer: &Viewer<'_>,
    args: &args::Trace,
    hits: &mut Hits,
    out: &mut Output,
) -> Outcome {
    // A long chunk may hold many hits; it is counted once.
    let counted = Cell::new(None);
    let tokens = |chunk: ChunkRef<'_>| match counted.get() {
        Some((index, tokens)) if index == chunk.index() => tokens,
        _ => {
            let tokens = viewer.tokens(snapshot, chunk);
            counted.set(Some((chunk.index(), tokens)));
            tokens
        }
    };
    if let Some(facet) = &args.target.facet {
        for chunk in find_chunks_by_facet(snapshot, facet) {
            hits.found(&Hit::of_chunk(of, snapshot, chunk, tokens), out)?;
        }
    }
    if let Some(wanted) = &args.target.text {
        for range in occurrences(snapshot.text(), wanted) {
            if let Some(hit) = Hit::at(of, snapshot, range, tokens) {
                hits.found(&hit, out)?;
            }
        }
    }
    Ok(())
}

/// Every place of `wanted` in `text`, overlapping ones included.
pub(crate) fn occurrences(text: &str, wanted: &str) -> Vec<TextRange> {
    let mut found = Vec::new();
    let (mut from, step) = (0, wanted.chars().next().map_or(1, char::len_utf8));
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(wanted)) {
        found.push(TextRange::at(from + at, wanted.len()));
        from += at + step;
    }
    found
}

fn owner_of(
    source: &mut Source,
    viewer: &mut Viewer<'_>,
    message: usize,
    byte: usize,
    args: &args::Trace,
    hits: &mut Hits,
    out: &mut Output,
) -> Outcome {
    let mut session = args.session.as_deref().map(Arc::from);
    let outside = |source: &Source, snapshot: &FrameSnapshot| {
        let length = snapshot.text().len();
        source.fail(format!("message {message} has {length} bytes; there is no byte {byte} in it"))
    };
    while let Some(record) = source.next() {
        let seen = viewer.see(record?).map_err(|error| source.refuse(error))?;
        let wanted = session.get_or_insert_with(|| Arc::clone(&seen.session));
        if *wanted != seen.session || seen.message != Some(message) {
            continue;
        }
        let chunk = seen.snapshot.chunk_at(byte).ok_or_else(|| outside(source, &seen.snapshot))?;
        let of = (&seen.session, Some(seen.frame.sequence.get()), seen.message);
        let tokens = |chunk: ChunkRef<'_>| viewer.tokens(&seen.snapshot, chunk);
        let hit = Hit::of_chunk(of, &seen.snapshot, chunk, tokens);
        return hits.found(&hit.marking_byte(byte), out);
    }
    let Some(session) = session else { return Ok(()) };
    let Some(count) = viewer.messages(&session) else {
        return Err(source.fail(format!("there is no session {session:?}")).into());
    };
    let tail = viewer.tail(&session).map_err(|error| source.refuse(error))?;
    match &tail {
        Some(tail) if tail.message == message => {
            let chunk =
                tail.snapshot.chunk_at(byte).ok_or_else(|| outside(source, &tail.snapshot))?;
            let of = (&tail.session, None, Some(message));
            let tokens = |chunk: ChunkRef<'_>| viewer.tokens(&tail.snapshot, chunk);
            let hit = Hit::of_chunk(of, &tail.snapshot, chunk, tokens);
            hits.found(&hit.marking_byte(byte), out)
        }
        _ => {
            let count = counted((count + usize::from(tail.is_some())) as u64, "message");
            let sentence = format!("session {session} has {count}; there is no message {message}");
            Err(source.fail(sentence).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_places_are_all_found() {
        let starts = |text: &str, wanted: &str| -> Vec<usize> {
            occurrences(text, wanted).into_iter().map(TextRange::start).collect()
        };
        assert_eq!(starts("aaaa", "aa"), [0, 1, 2]);
        assert_eq!(starts("ééé", "éé"), [0, 2]);
        assert_eq!(starts("abc", "d"), [0_usize; 0]);
    }
}
