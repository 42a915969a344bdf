//! `afterimage expand`: the original text of a block, or the part of it that is looked for.

pub(crate) mod args;
mod part;

use std::io::Write;

use afterimage::{compress::CompressionBlock, session::Fit};

use self::part::Part;
use crate::{
    args::Color,
    failure::{Failure, Outcome, Stop},
    fitting::{self, Session},
    output::{Output, note},
};

pub(crate) fn run(args: &args::Expand) -> Outcome {
    let mut found: Vec<Found> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut has_block = false;
    let asked = (&args.fitting, &args.selection);
    let fitted = fitting::each(&args.input, asked, args.what, &args.rendering, |session| {
        let ids = ids(&session);
        let is_here = |id: &String| ids.iter().any(|known| known == id);
        if args.block.as_ref().is_none_or(is_here) {
            has_block = true;
            found.extend(Found::in_session(args, &session)?);
        }
        known.extend(ids);
        Ok(())
    });
    match fitted {
        // Another session may not fit; the block is there all the same.
        Ok(()) | Err(Stop::Unfit) if !found.is_empty() => {}
        fitted => fitted?,
    }
    if let [first, second, ..] = found.as_slice() {
        let failure = Failure::new(match &args.block {
            Some(id) => format!("there are several blocks {id}"),
            None => "several sessions have it".to_owned(),
        });
        let failure = failure.at("file", &first.file).at("file", &second.file);
        return Err(failure.hint("name the one file that is meant").into());
    }
    let Some(found) = found.pop() else {
        return Err(not_found(args, has_block, &known).into());
    };
    let mut out = Output::new(Color::Never);
    out.write_all(&found.text)?;
    out.flush()?;
    if let Some(said) = found.said {
        note(&said);
    }
    Ok(())
}

/// What a session has of what is asked for.
struct Found {
    file: String,
    text: Vec<u8>,
    /// Where it stands, of a part.
    said: Option<String>,
}

impl Found {
    fn in_session(args: &args::Expand, session: &Session<'_>) -> Outcome<Option<Self>> {
        let file = session.source.name();
        let block = args.block.as_deref();
        if let Some(wanted) = Part::of(args) {
            let part = wanted.find(session, block).map_err(|error| session.source.refuse(error))?;
            let found = part.map(|(page, said)| Self { file, text: page.text.into(), said });
            return Ok(found);
        }
        let Some(id) = block else { return Ok(None) };
        let text = session.original(id).map_err(|error| session.source.refuse(error))?;
        Ok(Some(Self { file, text, said: None }))
    }
}

fn not_found(args: &args::Expand, has_block: bool, known: &[String]) -> Failure {
    if let (Some(part), true) = (Part::of(args), has_block) {
        return part.missing(args.block.as_deref());
    }
    let id = args.block.as_deref().unwrap_or_default();
    Failure::new(format!("there is no block {id:?}")).hint(if known.is_empty() {
        "no block was needed: the context fits the budget as it is".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    })
}

/// What can be expanded: blocks in effect and those in them, and what was shortened or left out.
fn ids(session: &Session<'_>) -> Vec<String> {
    fn with_inner(block: &CompressionBlock, ids: &mut Vec<String>) {
        ids.push(block.id.to_string());
        block.blocks().iter().for_each(|inner| with_inner(inner, ids));
    }
    let mut ids = Vec::new();
    // Those that were left out after all too.
    session.window.transform().blocks().for_each(|block| with_inner(block, &mut ids));
    if let Fit::Fits(fitted) = &session.fit {
        ids.extend(fitted.shortened.iter().map(|shortened| shortened.id.to_string()));
        ids.extend(fitted.dropped.iter().map(|dropped| dropped.id().to_string()));
    }
    ids
}
