//! `afterimage compress`: a session within a budget.

pub(crate) mod args;
mod page;
mod places;
pub(crate) mod preview;
mod receipt;
pub(crate) mod report;

use std::{io::Write, sync::Arc};

use afterimage::{
    compress::CompressionBlock,
    export::{ExportReport, ExportedRequest, Repair},
    id::Role,
    json::Value,
    session::Fit,
    window::{DroppedFrames, FittedContext, ShortenedFrame},
};
use sha2::{Digest, Sha256};

use self::{
    places::Places,
    report::{
        BlockAnswer, BreakdownAnswer, CompressAnswer, ContextWithBlocks, DroppedAnswer,
        FailedRange, FittedAnswer, MediaOfContexts, ShortenedAnswer,
    },
};
use crate::{
    args::CompressAs,
    failure::Outcome,
    fitting::{self, Session},
    output::{Output, note},
    recorded,
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
            return out.answer(&self.report(session)?);
        }
        let Fit::Fits(fitted) = &session.fit else { return Ok(()) };
        self.say(session, fitted);
        if self.args.receipt {
            return receipt::page(session, fitted, out);
        }
        match self.args.what.unwrap_or(CompressAs::Text) {
            CompressAs::Text if self.is_view => page::text(session, fitted, out),
            CompressAs::Text => {
                for (at, message) in fitted.context.messages().iter().enumerate() {
                    let other = (at == 0).then_some(&*session.name);
                    out.part_texts(std::mem::replace(&mut self.wrote, true), other)?;
                    out.write_all(message.content().as_bytes())?;
                }
                Ok(())
            }
            CompressAs::Blocks if self.is_view => page::blocks(session, fitted, out),
            CompressAs::Blocks => out.answer(&with_blocks(session, fitted)?),
            CompressAs::Openai
            | CompressAs::Responses
            | CompressAs::Anthropic
            | CompressAs::Gemini => {
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

    fn report<'s>(&self, session: &'s Session<'_>) -> Outcome<CompressAnswer<'s>> {
        let [before, after] = session.media;
        let places = Places::of(&session.history);
        let report = CompressAnswer {
            file: session.source.file(),
            session: &session.name,
            counts: session.counts.answer(),
            lacks: session.counts.lacks_answer(),
            overhead: session.overhead.into(),
            budget: None,
            tokens_before: session.tokens_before,
            tokens_after: None,
            media: MediaOfContexts { before, after: None },
            breakdown: None,
            fitted: None,
            receipt: None,
            context: None,
            owners: None,
        };
        let fitted = match &session.fit {
            Fit::Fits(fitted) => fitted,
            Fit::Unfit(breakdown) => {
                let budget = Some(breakdown.room);
                let breakdown = Some(BreakdownAnswer::of(breakdown, &places));
                return Ok(CompressAnswer { budget, breakdown, ..report });
            }
        };
        let exported = session.exported.as_ref();
        let failed = |(id, reason): (_, _)| FailedRange { id, reason };
        let blocks = session.blocks().map(|block| block_answer(session, block, &places));
        let receipt = self.args.receipt.then(|| receipt::of(session, fitted)).transpose()?;
        let context = match (self.args.what, exported) {
            (Some(CompressAs::Text), _) => {
                let texts = fitted.context.messages().iter().map(|message| message.content());
                Some(texts.collect::<Vec<_>>().join("\n\n").into())
            }
            (Some(CompressAs::Blocks), _) => Some(fitted.context.to_json()),
            (_, exported) => exported.map(ExportedRequest::value),
        };
        let has_owners = !matches!(self.args.what, Some(CompressAs::Text | CompressAs::Blocks));
        Ok(CompressAnswer {
            budget: Some(session.window.budget().max_tokens).filter(|room| *room < u64::MAX),
            tokens_after: Some(session.tokens_after),
            media: MediaOfContexts { after: Some(after), ..report.media },
            fitted: Some(FittedAnswer {
                blocks: blocks.collect::<Outcome<_>>()?,
                dropped: fitted.dropped.iter().map(|of| dropped_answer(of, &places)).collect(),
                shortened: fitted
                    .shortened
                    .iter()
                    .map(|of| shortened_answer(of, &places))
                    .collect(),
                repaired: exported.map(ExportedRequest::report).map(repaired).unwrap_or_default(),
                failed: session.failed().into_iter().map(failed).collect(),
            }),
            receipt: receipt.map(|receipt| receipt.to_json()),
            context,
            owners: exported.filter(|_| has_owners).map(ExportedRequest::owners),
            ..report
        })
    }
}

fn repaired(report: &ExportReport) -> Vec<Value> {
    report.repaired.iter().map(Repair::to_json).collect()
}

/// A block with the SHA-256 of its original text, which is what `expand` prints.
fn block_answer(
    session: &Session<'_>,
    block: &CompressionBlock,
    places: &Places<'_>,
) -> Outcome<BlockAnswer> {
    let text = session.original(&block.id).map_err(|error| session.source.refuse(error))?;
    let hash: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(BlockAnswer {
        id: Arc::clone(&block.id),
        from: block.from,
        to: block.to,
        level: block.level,
        original_tokens: block.original_tokens,
        tokens: block.tokens,
        source_facets: block.source_facets.clone(),
        sha256: hash,
        place: places.of_frames(block.from, block.to).answer(),
        engine: None,
        summary: None,
    })
}

fn dropped_answer(dropped: &DroppedFrames, places: &Places<'_>) -> DroppedAnswer {
    DroppedAnswer {
        id: dropped.id(),
        from: dropped.from,
        to: dropped.to,
        tokens: dropped.tokens,
        block: dropped.block.clone(),
        place: places.of_frames(dropped.from, dropped.to).answer(),
    }
}

fn shortened_answer(shortened: &ShortenedFrame, places: &Places<'_>) -> ShortenedAnswer {
    ShortenedAnswer {
        id: Arc::clone(&shortened.id),
        kind: shortened.kind(),
        frame: shortened.frame,
        original_tokens: shortened.original_tokens,
        tokens: shortened.tokens,
        place: places.of_frame(shortened.frame).first.placed_call(),
    }
}

/// The context with its blocks and what they say.
fn with_blocks<'s>(
    session: &'s Session<'_>,
    fitted: &FittedContext,
) -> Outcome<ContextWithBlocks<'s>> {
    let places = Places::of(&session.history);
    let block = |block: &Arc<CompressionBlock>| {
        Ok(BlockAnswer {
            engine: Some(block.engine.clone()),
            summary: Some(block.facet.content.clone()),
            ..block_answer(session, block, &places)?
        })
    };
    Ok(ContextWithBlocks {
        file: session.source.file(),
        session: &session.name,
        context: fitted.context.to_json(),
        blocks: session.blocks().map(block).collect::<Outcome<_>>()?,
    })
}
