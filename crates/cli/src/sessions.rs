//! `afterimage sessions`: the sessions that there are, newest first.
//!
//! [`crate::input`] finds the files, [`listing`] asks the [`index`] for what is
//! known of each; what it does not know is read once, into a [`summary`].

pub(crate) mod args;
mod cache;
mod figures;
mod index;
mod listing;
pub(crate) mod page;
pub(crate) mod summary;
pub(crate) mod totals;

use std::{cmp::Reverse, collections::HashSet, io::Write, path::PathBuf};

use crate::{
    failure::{Failure, Outcome, Stop},
    input::{Candidate, candidates, is_stdin, no_session, redactor, with_ids},
    output::{self, Output},
    text::counted,
    usage,
};
use index::Index;
use listing::{Listed, Reading};
use summary::Summary;
use totals::Sort;

pub(crate) fn run(args: &args::Sessions) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    if let Some(path) = args.folders.iter().find(|path| is_stdin(path)) {
        let failure = Failure::new("expected a folder or a file, found standard input");
        return Err(failure
            .file(path)
            .hint("`afterimage stats -` reads it; `./-` is a file")
            .into());
    }
    let (places, mut candidates) = candidates(&with_ids(&args.folders)?)?;
    let times = args.filter.times();
    let newest = args.last.then(|| candidates.newest().map(Candidate::place)).flatten();
    if args.last {
        let (path, _) = newest.as_ref().ok_or_else(|| no_session(&args.folders))?;
        // It may hold copies of the answers of those beside it.
        candidates.all.retain(|of| of.path().parent() == path.parent());
        (candidates.links, candidates.is_partial) = (0, false);
    }
    let index = cache::folder().filter(|_| !args.no_index).map(Index::open).unwrap_or_default();
    let (links, is_partial) = (candidates.links, candidates.is_partial);
    let mut reading = Reading::new(index, usage::table(&args.pricing)?)?;
    let mut listed = reading.listed(candidates, args.quick)?;
    if let Some((path, key)) = &newest {
        listed.retain(|session| (&session.path, &session.key) == (path, key));
        if !listed.is_empty() {
            (reading.passed_over, reading.outcome) = (Vec::new(), Ok(()));
        }
    }
    let found = listed.len() as u64;
    // Of totals the answers within it count.
    listed.retain(|session| args.by.is_some() || times.contains(&session.at()));
    listed.retain(|session| args.filter.has_project(&session.project()));
    listed.sort_by(|one, other| (other.at(), &one.path).cmp(&(one.at(), &other.path)));
    let total = |session: &Listed| session.summary.as_ref().map(Summary::total).unwrap_or_default();
    match args.sort.unwrap_or(Sort::Time) {
        Sort::Time => {}
        Sort::Cost => listed.sort_by_cached_key(|session| Reverse(total(session).weight())),
        Sort::Tokens => listed.sort_by_cached_key(|session| Reverse(total(session).tokens())),
    }
    reading.note_copies(&listed);
    let mut redaction = redactor(&args.redaction)?;
    if let Some((redactor, _)) = &mut redaction {
        // What one session tells is found in the others too.
        listed.clone().iter_mut().for_each(|session| session.redact(redactor));
        redactor.start_second_pass();
        listed.iter_mut().for_each(|session| session.redact(redactor));
    }
    if args.paths {
        let mut seen = HashSet::new();
        for session in listed.iter().filter(|session| seen.insert(&session.path)) {
            // As bytes: a program is to find the file by it.
            out.write_all(session.path.as_os_str().as_encoded_bytes())?;
            out.write_all(b"\n")?;
        }
    } else if let Some(by) = args.by {
        let (totals, all) = totals::totals(&listed, by, args.sort, &times);
        if args.json {
            totals.iter().try_for_each(|total| out.answer(&total.answer(&reading.prices.id)))?;
        } else {
            totals::table(&totals, &all, by, &mut out)?;
        }
    } else if args.json {
        for session in &listed {
            out.answer(&page::answer(session))?;
        }
    } else {
        if !places.is_empty() {
            page::places(&places, &mut out)?;
        }
        page::table(&listed, &mut out)?;
    }
    out.flush()?;
    if listed.is_empty() && found > 0 {
        output::note(&format!("of {} none is asked for", counted(found, "session")));
    }
    not_understood(&listed);
    if let Some((redactor, reporter)) = &redaction {
        reporter.say(redactor.report());
        if redactor.report().secrets() == 0 {
            output::note("that is of what is listed: the sessions may hold secrets");
        }
        reporter.write(redactor.report())?;
    }
    // The agents keep other files too, of which nobody needs to hear.
    if places.is_empty() {
        passed_over(&reading.passed_over, links, redaction.is_none());
    }
    if is_partial { Err(Stop::Reported) } else { reading.outcome }
}

/// Says which of the listed sessions hold records that were not understood.
fn not_understood(listed: &[Listed]) {
    let records = |of: &&Listed| of.summary.as_ref().map_or(0, |of| of.unknown_records);
    let sessions: Vec<&Listed> = listed.iter().filter(|of| records(of) > 0).collect();
    let Some(first) = sessions.first() else { return };
    let count = sessions.iter().map(records).fold(0, u64::saturating_add);
    let (of, were) = (counted(count, "record"), if count == 1 { "was" } else { "were" });
    let path = first.path.display();
    let place = match sessions.len() as u64 {
        1 => format!("in {path}"),
        many => format!("in {}, the first of them {path}", counted(many, "session")),
    };
    output::note(&format!("{of} {were} not understood, {place}: `afterimage stats` says why"));
}

fn passed_over(files: &[PathBuf], links: u64, is_first_named: bool) {
    let files = files.first().map(|first| {
        let of = counted(files.len() as u64, "file");
        match files {
            [_] if !is_first_named => format!("{of} that is no transcript"),
            _ if !is_first_named => format!("{of} that are no transcripts"),
            [only] => format!("{of} that is no transcript, {}", only.display()),
            _ => format!("{of} that are no transcripts, {} first", first.display()),
        }
    });
    let links = (links > 0).then(|| counted(links, "symbolic link"));
    let kinds: Vec<String> = files.into_iter().chain(links).collect();
    if !kinds.is_empty() {
        output::note(&format!("passed over {}", kinds.join(" and ")));
    }
}
