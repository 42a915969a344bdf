//! `afterimage checkpoint draft`: a checkpoint from a transcript.

use std::io::Write;

use afterimage::{
    ErrorKind,
    checkpoint::{self, DiffOptions, ShrunkCheckpoint},
    session::bridge::checkpoint::{Draft, DraftOptions},
    tokens::{self, TokenCounter},
};

use super::{args, json, now, read};
use crate::{
    failure::{Failure, Outcome},
    input::{self, Span},
    output::{Output, note},
    when::rfc3339,
};

pub(super) fn run(args: &args::Draft) -> Outcome {
    let counter = tokens::by_name(args.tokenizer.name())
        .ok_or_else(|| Failure::new("this build has no such tokenizer"))?;
    let mut out = Output::new(args.common.coloring.color);
    input::each(&args.input, !out.is_terminal, |source| {
        let since = args.delta_since.as_deref().map(frame_of).transpose()?;
        let mut session = args.input.session.clone();
        let (mut draft, mut earlier, mut others) = (Draft::new(), None, 0_u64);
        let mut span = Span::default();
        for record in source.by_ref() {
            let record = record?;
            if *session.get_or_insert_with(|| record.session.to_string()) != *record.session {
                others += 1;
                continue;
            }
            if since.is_some_and(|since| record.frame.sequence.get() > since) && earlier.is_none() {
                earlier = Some(draft.clone());
            }
            span.take(record.frame.timestamp.as_deref());
            draft.see(&record.frame);
        }
        if others > 0 && args.input.session.is_none() {
            let name = session.unwrap_or_default();
            source.note(&format!("drafted from session {name}; {others} frames are of others"));
        }
        if let (Some(since), Some(last)) = (since, draft.last_frame())
            && since > last.get()
        {
            let failure = source.fail(format!("there is no frame {since}"));
            return Err(failure.hint(format!("the last is {last}")).into());
        }
        let name = source.name();
        let stem = read::stem(std::path::Path::new(&name));
        let last = span.last.and_then(rfc3339);
        let made = |draft: &Draft| made(draft, (&stem, last.as_deref()), args, &counter);
        let now = made(&draft)?;
        if since.is_some() {
            let earlier = made(&earlier.unwrap_or_else(|| draft.clone()))?;
            let options =
                args.created.as_ref().map_or_else(DiffOptions::default, DiffOptions::created);
            let delta = super::between(&earlier.checkpoint, &now.checkpoint, &options)?;
            if args.common.json {
                out.answer(&json::delta(&delta))?;
            } else {
                out.write_all(delta.text().as_bytes())?;
            }
            return Ok(out.flush()?);
        }
        for gone in now.gone.iter().filter(|_| !args.common.json) {
            note(&format!("left out of {}: {}", gone.section, super::gone_in_short(gone)));
        }
        if args.common.json {
            out.answer(&json::shrunk(&now))?;
        } else {
            out.write_all(now.checkpoint.text().as_bytes())?;
        }
        Ok(out.flush()?)
    })
}

/// The draft as a checkpoint: at the time that was asked for, of its last frame, or now.
fn made(
    draft: &Draft,
    (stem, last): (&str, Option<&str>),
    args: &args::Draft,
    counter: &dyn TokenCounter,
) -> Outcome<ShrunkCheckpoint> {
    let id = match draft.last_frame() {
        Some(frame) => format!("{stem}-{frame}"),
        None => stem.to_owned(),
    };
    let mut options = DraftOptions::new(id).token_limit(args.tokens);
    options.created.clone_from(&args.created);
    match draft.checkpoint(&options, counter) {
        Err(error) if error.kind() == ErrorKind::Checkpoint(checkpoint::ErrorKind::Markdown) => {
            // Some clients write times as numbers.
            let last = last.map_or_else(now, str::to_owned);
            Ok(draft.checkpoint(&options.created(last), counter)?)
        }
        made => Ok(made?),
    }
}

/// The frame that an id names: its number, or what it ends with.
fn frame_of(id: &str) -> Outcome<u64> {
    let number = id.rsplit('-').next().and_then(|number| number.parse().ok());
    number.ok_or_else(|| {
        let failure = Failure::new(format!("{id:?} names no frame"));
        failure.hint("the id of a draft ends with its last frame, as in session-120").into()
    })
}
