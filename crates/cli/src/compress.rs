//! `afterimage compress`: a session within a budget.

pub(crate) mod args;
mod page;
mod places;
pub(crate) mod preview;
mod receipt;

use std::{fmt::Write as _, io::Write};

use afterimage::{
    compress::CompressionBlock,
    export::{ExportReport, ExportedRequest, Repair},
    id::{FacetId, Role},
    json::{Object, Value},
    request::RequestOverhead,
    session::Fit,
    window::{DroppedFrames, FittedContext, ShortenedFrame},
};
use sha2::{Digest, Sha256};

use self::places::Places;
use crate::{
    args::CompressAs,
    failure::Outcome,
    fitting::{self, Session},
    json::object,
    output::{Output, note},
    recorded,
    stats::media_json,
    text::{counted, printable},
};

pub(crate) fn run(args: &args::Compress) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    if args.preview {
        return fitting::preview_each(
            &args.input,
            (&args.fitting, &args.selection),
            &args.rendering,
            |previewed| {
                if args.json {
                    out.answer(&preview::answer(previewed))
                } else {
                    preview::page(previewed, &mut out)
                }
            },
        );
    }
    let mut printer = Printer { args, is_view: out.paint.is_on(), wrote: false };
    let mut said = None;
    let outcome = fitting::each(
        &args.input,
        (&args.fitting, &args.selection),
        args.what,
        &args.rendering,
        |session| {
            // Of a session that does not fit no context is printed.
            if said.is_none() && matches!(session.fit, Fit::Fits(_)) {
                let histories = std::iter::once(&session.history);
                said = Some(recorded::note_of(session.source.format(), histories));
            }
            printer.session(&session, &mut out)?;
            Ok(out.flush()?)
        },
    );
    if printer.wrote && !printer.is_view {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    if let Some(said) = said {
        note(&said);
    }
    outcome
}

/// Prints sessions one after the other.
struct Printer<'a> {
    args: &'a args::Compress,
    /// Coloured and with headings, or nothing but the data.
    is_view: bool,
    /// Whether text was written that is still to be ended.
    wrote: bool,
}

impl Printer<'_> {
    fn session(&mut self, session: &Session<'_>, out: &mut Output) -> Outcome {
        if self.args.json {
            return out.json(self.report(session)?);
        }
        let Fit::Fits(fitted) = &session.fit else { return Ok(()) };
        self.say(session, fitted);
        if self.args.receipt {
            return receipt::page(session, fitted, out);
        }
        match self.args.what.unwrap_or(CompressAs::Text) {
            CompressAs::Text if self.is_view => page::text(session, fitted, out),
            CompressAs::Text => {
                for message in fitted.context.messages() {
                    if std::mem::replace(&mut self.wrote, true) {
                        out.write_all(b"\n\n")?;
                    }
                    out.write_all(message.content().as_bytes())?;
                }
                Ok(())
            }
            CompressAs::Blocks if self.is_view => page::blocks(session, fitted, out),
            CompressAs::Blocks => out.json(with_blocks(session, fitted)?),
            CompressAs::Openai | CompressAs::Responses | CompressAs::Anthropic => {
                out.json(session.exported.as_ref().map_or(Value::Null, ExportedRequest::value))
            }
        }
    }

    /// Says on standard error what nobody would expect of a summary.
    fn say(&self, session: &Session<'_>, fitted: &FittedContext) {
        let name = printable(&session.name).into_owned();
        if self.args.what == Some(CompressAs::Anthropic)
            && fitted.context.messages().iter().all(|message| message.role() == Role::System)
        {
            session.source.note(&format!("{name}: no messages, which the provider refuses"));
        }
        for (id, reason) in session.failed() {
            session.source.note(&format!("{name}: no summary of {id}: {}", printable(&reason)));
        }
        if self.is_view || self.args.receipt {
            return;
        }
        let mut what = Vec::new();
        if !fitted.dropped.is_empty() {
            let tokens = fitted.dropped.iter().map(|dropped| dropped.tokens).sum();
            let (ranges, tokens) =
                (counted(fitted.dropped.len() as u64, "range"), counted(tokens, "token"));
            what.push(format!("{ranges} of frames left out ({tokens})"));
        }
        let count = |kind: &str| fitted.shortened.iter().filter(|of| of.kind() == kind).count();
        let (masked, shortened) = (count("masked"), count("shortened"));
        if masked > 0 {
            what.push(format!("{} masked", counted(masked as u64, "frame")));
        }
        if shortened > 0 {
            what.push(format!("{} shortened", counted(shortened as u64, "frame")));
        }
        if !what.is_empty() {
            session.source.note(&format!("{name}: {}", what.join(", ")));
        }
    }

    fn report(&self, session: &Session<'_>) -> Outcome<Object> {
        let mut report = object! { "session": &*session.name };
        if session.source.is_one_of_several {
            report.shift_insert(0, "file".to_owned(), session.source.name().into());
        }
        session.counts.put(&mut report);
        put_overhead(&mut report, session.overhead);
        let [before, after] = session.media;
        let fitted = match &session.fit {
            Fit::Fits(fitted) => fitted,
            Fit::Unfit(breakdown) => {
                let parts = fitting::parts(breakdown).into_iter();
                let mut of: Object =
                    parts.map(|(name, tokens)| (name.to_owned(), Value::from(tokens))).collect();
                of.insert("total".to_owned(), breakdown.total().into());
                let places = Places::of(&session.history);
                let largest = breakdown.largest.iter().map(|(frame, tokens)| {
                    let mut json = object! { "frame": frame.get(), "tokens": *tokens };
                    places.of_frame(*frame).first.put(&mut json);
                    json
                });
                of.insert("largest".to_owned(), largest.collect());
                report.extend(object! {
                    "budget": breakdown.room,
                    "tokensBefore": session.tokens_before,
                    "media": object! { "before": media_json(before) },
                    "breakdown": of,
                });
                return Ok(report);
            }
        };
        let what = self.args.what;
        let exported = session.exported.as_ref();
        let repaired = exported.map(ExportedRequest::report).map(repaired).unwrap_or_default();
        let failed = session.failed().into_iter().map(|(id, reason)| {
            object! { "id": &*id, "reason": reason }
        });
        let places = Places::of(&session.history);
        let blocks = session.blocks().map(|block| block_json(session, block, &places));
        report.extend(object! {
            "budget": Some(session.window.budget().max_tokens).filter(|room| *room < u64::MAX),
            "tokensBefore": session.tokens_before,
            "tokensAfter": session.tokens_after,
            "media": object! {
                "before": media_json(before),
                "after": media_json(after),
            },
            "blocks": blocks.collect::<Outcome<Vec<Value>>>()?,
            "dropped": fitted.dropped.iter().map(|of| dropped_json(of, &places)).collect::<Value>(),
            "shortened": fitted.shortened.iter().map(|of| shortened_json(of, &places)).collect::<Value>(),
            "repaired": repaired,
            "failed": failed.collect::<Value>(),
        });
        if self.args.receipt {
            report.insert("receipt".to_owned(), receipt::of(session, fitted)?.to_json());
        }
        match (what, exported) {
            (Some(CompressAs::Text), _) => {
                let mut text = String::new();
                for (index, message) in fitted.context.messages().iter().enumerate() {
                    // Writing to a string cannot fail.
                    let _ = write!(
                        text,
                        "{}{}",
                        if index > 0 { "\n\n" } else { "" },
                        message.content()
                    );
                }
                report.insert("context".to_owned(), text.into());
            }
            (Some(CompressAs::Blocks), _) => {
                report.insert("context".to_owned(), fitted.context.to_json());
            }
            (_, Some(exported)) => {
                report.insert("context".to_owned(), exported.value());
                report.insert("owners".to_owned(), exported.owners());
            }
            (_, None) => {}
        }
        Ok(report)
    }
}

/// Adds the members `tools` and `schemas`, where requests have some.
pub(crate) fn put_overhead(json: &mut Object, overhead: RequestOverhead) {
    let RequestOverhead { tools, around, schemas, .. } = overhead;
    for (name, tokens) in [("tools", tools.saturating_add(around)), ("schemas", schemas)] {
        if tokens > 0 {
            json.insert(name.to_owned(), tokens.into());
        }
    }
}

fn repaired(report: &ExportReport) -> Vec<Value> {
    report.repaired.iter().map(Repair::to_json).collect()
}

/// A block with the SHA-256 of its original text, which is what `expand` prints.
fn block_json(
    session: &Session<'_>,
    block: &CompressionBlock,
    places: &Places<'_>,
) -> Outcome<Value> {
    let text = session.original(&block.id).map_err(|error| session.source.refuse(error))?;
    let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    let facets = block.source_facets.iter().map(FacetId::as_str);
    let mut json = object! {
        "id": &*block.id,
        "from": block.from.get(),
        "to": block.to.get(),
        "level": u64::from(block.level),
        "originalTokens": block.original_tokens,
        "tokens": block.tokens,
        "sourceFacets": facets.collect::<Value>(),
        "sha256": hash,
    };
    places.of_frames(block.from, block.to).put_range(&mut json);
    Ok(json.into())
}

fn dropped_json(dropped: &DroppedFrames, places: &Places<'_>) -> Object {
    let mut object = object! {
        "id": &*dropped.id(),
        "from": dropped.from.get(),
        "to": dropped.to.get(),
        "tokens": dropped.tokens,
    };
    if let Some(block) = &dropped.block {
        object.insert("block".to_owned(), (&**block).into());
    }
    places.of_frames(dropped.from, dropped.to).put_range(&mut object);
    object
}

fn shortened_json(shortened: &ShortenedFrame, places: &Places<'_>) -> Object {
    let mut json = object! {
        "id": &*shortened.id,
        "kind": shortened.kind(),
        "frame": shortened.frame.get(),
        "originalTokens": shortened.original_tokens,
        "tokens": shortened.tokens,
    };
    places.of_frame(shortened.frame).first.put(&mut json);
    json
}

/// The context with its blocks and what they say.
fn with_blocks(session: &Session<'_>, fitted: &FittedContext) -> Outcome<Object> {
    let mut line = object! { "session": &*session.name };
    if session.source.is_one_of_several {
        line.shift_insert(0, "file".to_owned(), session.source.name().into());
    }
    if let Value::Object(context) = fitted.context.to_json() {
        line.extend(context);
    }
    let places = Places::of(&session.history);
    let blocks = session.blocks().map(|block| {
        let mut value = block_json(session, block, &places)?;
        if let Value::Object(object) = &mut value {
            object.insert("engine".to_owned(), block.engine.as_str().into());
            object.insert("summary".to_owned(), block.facet.content.as_str().into());
        }
        Ok(value)
    });
    line.insert("blocks".to_owned(), blocks.collect::<Outcome<Vec<Value>>>()?.into());
    Ok(line)
}
