//! An extract in sections: a peer that is simple enough to be written in an afternoon.

use afterimage::{compress::CompressionJob, snapshot::PartRef, tokens::TokenCounter};

use super::{Moment, identifiers, words, work};

/// The sections in the order of their worth. Each takes what is left of the room, up to its share;
/// the names take the rest.
pub(crate) fn extract(
    moment: &Moment<'_>,
    job: &CompressionJob,
    counter: &dyn TokenCounter,
) -> String {
    let text_only = moment.is_text_only();
    let said = moment.words();
    let limit = job.token_limit as usize;
    let files: Vec<String> = work::files_changed(moment.compressed).into_iter().collect();
    let first = said.first().cloned().unwrap_or_default();
    let later: Vec<String> = said.iter().skip(1).rev().cloned().collect();
    let calls = job.chunks().filter_map(|(_, chunk)| match chunk.part() {
        PartRef::Call { name, .. } => {
            Some(format!("{name} {}", chunk.content().chars().take(120).collect::<String>()))
        }
        _ => None,
    });
    let mut calls: Vec<String> = calls.collect();
    calls.reverse();
    let sections = [
        ("Task", first, 4),
        ("Last", later.first().cloned().unwrap_or_default(), 8),
        ("Rules", words::rules(&said).join("\n"), 8),
        ("Error", work::last_error(moment.compressed, text_only).unwrap_or_default(), 8),
        ("Open", work::open_items(moment.compressed).join("\n"), 8),
        ("Changed", files.join("\n"), 8),
        ("Said", later.iter().skip(1).cloned().collect::<Vec<_>>().join("\n"), 16),
        ("Calls", calls.join("\n"), 6),
    ];
    let mut out = String::new();
    for (title, text, share) in sections {
        if text.is_empty() {
            continue;
        }
        let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
        let body =
            super::longest(words.len(), (limit / share) as u64, counter, |n| words[..n].concat());
        let with = format!("{out}{title}:\n{}\n", body.trim_end());
        if counter.count(&with) <= limit {
            out = with;
        }
    }
    let known: std::collections::HashSet<String> = identifiers(&out).into_iter().collect();
    let names: Vec<String> =
        super::names_by_place(job).into_iter().filter(|name| !known.contains(name)).collect();
    super::longest(names.len(), limit as u64, counter, |n| format!("{out}{}", names[..n].join(" ")))
}
