//! `afterimage expand`: the original text of a block.

use std::io::Write;

use afterimage::{compress::CompressionBlock, session::Fit};

use crate::{
    args::{self, Color},
    failure::{Failure, Outcome, Stop},
    fitting::{self, Session},
    output::Output,
};

pub(crate) fn run(args: &args::Expand) -> Outcome {
    let id = args.block.as_str();
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let fitted = fitting::each(&args.input, &args.fitting, args.what, &args.rendering, |session| {
        let ids = ids(&session);
        if ids.iter().any(|known| known == id) {
            let text = session.original(id).map_err(|error| session.source.refuse(error))?;
            found.push((session.source.name(), text));
        }
        known.extend(ids);
        Ok(())
    });
    match fitted {
        // Another session may not fit; the block is there all the same.
        Ok(()) | Err(Stop::Unfit) if !found.is_empty() => {}
        fitted => fitted?,
    }
    if let [(first, _), (second, _), ..] = found.as_slice() {
        let failure = Failure::new(format!("there are several blocks {id}"));
        let failure = failure.at("file", first).at("file", second);
        return Err(failure.hint("name the one file that is meant").into());
    }
    let Some((_, text)) = found.pop() else {
        let failure = Failure::new(format!("there is no block {id:?}"));
        let hint = if known.is_empty() {
            "no block was needed: the context fits the budget as it is".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        return Err(failure.hint(hint).into());
    };
    let mut out = Output::new(Color::Never);
    out.write_all(&text)?;
    Ok(out.flush()?)
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
