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
mod project;
pub(crate) mod summary;
pub(crate) mod totals;

use std::{
    cmp::Reverse,
    collections::HashSet,
    io::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    failure::{Outcome, Stop},
    input::{Candidate, candidates, no_session, redactor},
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
    let (places, mut candidates) = candidates(&args.folders)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let since = args.since.map_or(i64::MIN, |when| when.millis(now));
    let until = args.until.map_or(i64::MAX, |when| when.millis(now));
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
            (reading.passed_over, reading.outcome) = (0, Ok(()));
        }
    }
    // Of totals the answers within it count.
    listed.retain(|session| args.by.is_some() || (since..=until).contains(&session.at()));
    if let Some(text) = &args.project {
        listed.retain(|session| session.project().contains(text.as_str()));
    }
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
        let (totals, all) = totals::totals(&listed, by, args.sort, &(since..=until));
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
    if let Some((redactor, reporter)) = &redaction {
        reporter.say(redactor.report());
        reporter.write(redactor.report())?;
    }
    // The agents keep other files too, of which nobody needs to hear.
    if places.is_empty() {
        passed_over(reading.passed_over, links);
    }
    if is_partial { Err(Stop::Reported) } else { reading.outcome }
}

fn passed_over(files: u64, links: u64) {
    let files = (files > 0).then(|| {
        format!(
            "{} {}",
            counted(files, "file"),
            if files == 1 { "that is no transcript" } else { "that are no transcripts" }
        )
    });
    let links = (links > 0).then(|| counted(links, "symbolic link"));
    let kinds: Vec<String> = files.into_iter().chain(links).collect();
    if !kinds.is_empty() {
        output::note(&format!("passed over {}", kinds.join(" and ")));
    }
}
