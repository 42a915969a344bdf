//! `afterimage requests`: the requests of a session, one a line.

pub(crate) mod args;
pub(crate) mod broken;
pub(crate) mod causes;
pub(crate) mod counted;
mod follow;
mod listing;
mod page;
pub(crate) mod row;

use std::{io::Write, sync::Arc};

use afterimage::{
    guard::{CacheRules, Guard},
    request::Provenance,
};
use indexmap::IndexSet;

use self::{counted::RequestCounts, listing::Listing};
use crate::{
    args::Rendering,
    copies::Copies,
    failure::Outcome,
    input::{self, Source},
    lens::{Counting, Lens},
    output::Output,
    recorded,
    text::{counted, grouped},
    usage,
};

pub(crate) fn run(args: &args::Requests) -> Outcome {
    let rendering = Rendering { format: None, tokenizer: args.tokenizer.clone() };
    let lens = Lens::new(&rendering, Counting::Always)?;
    let prices = usage::prices(&args.pricing)?;
    let mut out = Output::new(args.coloring.color);
    if args.follow {
        return follow::run(args, &lens, &prices, &mut out);
    }
    let input = args.input.of_all_sessions();
    let copies = Copies::of_files(&input)?;
    input::each(&input, true, |source| {
        let mut recording = recorded::read(source, &lens.counter)?;
        recording.mark_copies(|reported| copies.mark(reported));
        let counts = RequestCounts::of(args, &lens, &recording);
        let counts = counts.map_err(|error| source.refuse(error))?;
        let listing = Listing::new(args, source, (&recording, counts), &prices, None)?;
        if args.broken {
            let guard = Guard::new(CacheRules::embedded()?, Arc::clone(&lens.counter));
            broken::list(&listing, &guard, &mut out)?;
        } else if args.json {
            listing.json(&mut out)?;
        } else {
            listing.table(&mut out)?;
        }
        out.flush()?;
        let notes = [unlisted(source), unread(source), at_provider(&listing)?];
        for note in notes.into_iter().flatten() {
            source.note(&note);
        }
        Ok(())
    })
}

/// What a recording has besides requests to models, which no row tells of.
fn unlisted(source: &Source) -> Option<String> {
    let report = source.report();
    let targets = report.unlisted.iter();
    let named: Vec<String> =
        targets.map(|(target, count)| format!("{} of {target}", grouped(*count))).collect();
    let of = "not listed, since no model is known to read them";
    (!named.is_empty()).then(|| format!("{of}: {}", named.join(", ")))
}

/// The requests to models that are not read: no row tells of them.
fn unread(source: &Source) -> Option<String> {
    let report = source.report();
    let all: u64 = report.unread_requests.values().sum();
    let named = report.unread_requests.iter();
    let named: Vec<String> =
        named.map(|(api, count)| format!("{} to {api}", grouped(*count))).collect();
    (all > 0).then(|| format!("{} cannot be read: {}", counted(all, "request"), named.join(", ")))
}

/// What the requests go on from that is not in the source.
fn at_provider(listing: &Listing<'_>) -> Outcome<Option<String>> {
    let exchanges = listing.exchanges()?;
    let missing = exchanges.iter().filter_map(|exchange| match &exchange.provenance {
        Provenance::Resolved { missing: Some(id), wrong: None, .. } => Some(&**id),
        _ => None,
    });
    let all = missing.clone().count() as u64;
    let ids: Vec<&str> = missing.collect::<IndexSet<_>>().into_iter().collect();
    let Some((first, others)) = ids.split_first() else { return Ok(None) };
    let others = match others.len() as u64 {
        0 => String::new(),
        more => format!(" and to {} more", grouped(more)),
    };
    let of = counted(all, "request");
    Ok(Some(format!(
        "what leads to {first}{others} lies at the provider: the figures of {of} are without it"
    )))
}
