//! The requests of a recording, and what is known of each, as JSON.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use afterimage::{
    bill::Prices,
    export::Divergence,
    hud::Owner,
    id::FrameSeq,
    json::{Object, ObjectExt, Value},
    request::{Exchange, Recording, RequestDiff, RequestTokens},
    transcript::AppliedEdit,
};

use super::args::Requests;
use super::{causes::BrokenCaches, counted::RequestCounts, follow::Printed, page::Shape};
use crate::{
    failure::Outcome,
    input::Source,
    json::{object, or_null},
    labels::{Label, RecordingLabels},
    output::Output,
    recorded::breaks_json,
    usage::Reported,
};

/// The requests of a source that are asked for, and how they are shown.
pub(super) struct Listing<'l> {
    pub(super) args: &'l Requests,
    pub(super) source: &'l Source,
    pub(super) recording: &'l Recording,
    counts: RequestCounts,
    pub(super) prices: &'l Prices,
    /// Those that were printed already, where a file is followed.
    pub(super) printed: Option<&'l Printed>,
    /// The numbers of those that are not to be printed yet.
    pub(super) held: HashSet<usize>,
    /// The columns of the table that was printed.
    pub(super) shape: Cell<Option<Shape>>,
    pub(super) labels: RecordingLabels<'l>,
    pub(super) broken: BrokenCaches,
}

impl<'l> Listing<'l> {
    pub(super) fn new(
        args: &'l Requests,
        source: &'l Source,
        (recording, counts): (&'l Recording, RequestCounts),
        prices: &'l Prices,
        printed: Option<&'l Printed>,
    ) -> Outcome<Self> {
        let labels = RecordingLabels::new(recording);
        let (held, shape) = Default::default();
        let broken = BrokenCaches::of(recording).map_err(|error| source.refuse(error))?;
        Ok(Self { args, source, recording, counts, prices, printed, held, shape, labels, broken })
    }

    /// Where a recorded request stands in the file, or else the answer of one that was worked out.
    pub(super) fn label(&self, exchange: &Exchange) -> Label {
        let of = |frame| self.labels.of(&exchange.session, frame, None);
        let label = exchange.answer().map_or_else(Label::default, of);
        match exchange.line {
            // The frames of a conversation stand where its last request does.
            Some(line) => Label::of_line(line),
            None => label,
        }
    }

    /// What is reported of the exchanges that are asked for, and of answers that are in no list.
    pub(super) fn reported(&self) -> Reported<'_> {
        let wanted = self.args.input.session.as_deref();
        let reported = self.recording.reported();
        let of = reported.filter(|of| wanted.is_none_or(|wanted| wanted == &*of.session));
        Reported::of(of, self.prices)
    }

    /// The exchanges that are asked for.
    pub(super) fn exchanges(&self) -> Outcome<Vec<&Exchange>> {
        let all = self.recording.exchanges();
        let ready = || all.iter().filter(|exchange| !self.held.contains(&exchange.number));
        let Some(wanted) = self.args.input.session.as_deref() else {
            return Ok(ready().collect());
        };
        let found: Vec<_> = ready().filter(|exchange| &*exchange.session == wanted).collect();
        if found.is_empty() {
            let mut names: Vec<&str> = all.iter().map(|exchange| &*exchange.session).collect();
            names.dedup();
            names.truncate(8);
            let failure =
                self.source.fail(format!("there is no session {wanted:?} with a request"));
            return Err(if names.is_empty() {
                failure.into()
            } else {
                failure.hint(format!("the sessions are {}", names.join(", "))).into()
            });
        }
        Ok(found)
    }

    /// Whether a request was printed already; `seen` counts those of each session.
    pub(super) fn is_printed(
        &self,
        exchange: &Exchange,
        seen: &mut HashMap<Arc<str>, usize>,
    ) -> bool {
        self.printed.is_some_and(|printed| printed.has(exchange, seen))
    }

    pub(super) fn differences(&self, exchange: &Exchange) -> Outcome<Option<RequestDiff>> {
        let found = self.recording.compare(exchange.number, self.args.cache.rules());
        found.map_err(|error| self.source.refuse(error))
    }

    /// The tokens of a request, and how many more they are than those of the one before it.
    pub(super) fn tokens(
        &self,
        exchange: &Exchange,
        totals: &mut HashMap<Arc<str>, u64>,
    ) -> Outcome<(RequestTokens, i128)> {
        let tokens = self.recording.tokens(exchange.number);
        let tokens = tokens.map_err(|error| self.source.refuse(error))?;
        let before = totals.insert(Arc::clone(&exchange.session), tokens.total()).unwrap_or(0);
        Ok((tokens, i128::from(tokens.total()) - i128::from(before)))
    }

    pub(super) fn json(&self, out: &mut Output) -> Outcome {
        let (mut totals, mut seen) = (HashMap::new(), HashMap::new());
        for exchange in self.exchanges()? {
            if self.is_printed(exchange, &mut seen) {
                self.tokens(exchange, &mut totals)?;
                continue;
            }
            let label = self.label(exchange);
            let mut line = object! {
                "request": exchange.number as u64,
                "session": &*exchange.session,
                "api": exchange.api.as_str(),
                "provenance": exchange.provenance.as_str(),
                "lacks": exchange.provenance.lacks().iter().map(|lack| lack.as_str()).collect::<Value>(),
                "frame": or_null(exchange.answer().map(FrameSeq::get)),
                "lastFrame": or_null(exchange.last_frame.map(FrameSeq::get)),
                "time": or_null(exchange.time.as_deref()),
                "line": or_null(label.line()),
                "uuid": or_null(label.uuid()),
                "calls": self.calls_json(exchange),
                "durationMs": or_null(exchange.duration_ms),
                "model": or_null(exchange.model.as_deref()),
                "outcome": exchange.outcome().as_str(),
                "retry": exchange.is_retry,
            };
            line.put_some("warmUp", exchange.is_warm_up().then_some(true));
            line.put_some("resolved", exchange.provenance.resolved_json());
            line.put_some("subagentFile", label.file());
            line.put_some("reason", exchange.failure.as_ref().or(exchange.cut.as_ref()));
            line.put_some("unread", exchange.unread.as_deref());
            if !exchange.edits.is_empty() {
                line.put(
                    "edits",
                    exchange.edits.iter().map(AppliedEdit::to_json).collect::<Value>(),
                );
            }
            let (tokens, growth) = self.tokens(exchange, &mut totals)?;
            line.put(
                "tokens",
                object! { "tools": tokens.tools, "system": tokens.system, "messages": tokens.messages },
            );
            line.put("counted", self.counts.counted(exchange, &tokens));
            line.put("growth", i64::try_from(growth).unwrap_or(i64::MAX));
            let differs = self.differences(exchange)?;
            line.put(
                "differs",
                or_null(differs.as_ref().map(|diff| self.difference_json(exchange, diff))),
            );
            line.put(
                "usage",
                or_null(exchange.usage.as_ref().map(afterimage::transcript::Usage::to_json)),
            );
            let price = self.prices.cost(exchange);
            line.put("price", or_null(price.ok()));
            if let Some(copied) = &exchange.copied {
                let usage = copied.usage.as_ref().map(afterimage::transcript::Usage::to_json);
                let from = or_null(copied.from.as_deref());
                line.put("copied", object! { "from": from, "usage": or_null(usage) });
            }
            if let Some(start) = self.recording.started_by(&exchange.session) {
                line.put(
                    "startedBy",
                    object! {
                        "session": start.session.as_str(),
                        "call": start.call.as_str(),
                        "frame": or_null(start.frame.map(FrameSeq::get)),
                    },
                );
            }
            if self.source.is_one_of_several {
                line.shift_insert(0, "file".to_owned(), self.source.name().into());
            }
            out.json(line)?;
        }
        let reported = self.reported();
        // A file that is followed has no end.
        let has_usage = reported.sums.total.with_usage > 0 || !reported.sums.copied.is_empty();
        if !has_usage || self.printed.is_some() {
            return Ok(());
        }
        let mut sums = Object::new();
        reported.put(&mut sums);
        if self.source.is_one_of_several {
            sums.shift_insert(0, "file".to_owned(), self.source.name().into());
        }
        out.json(sums)
    }

    /// The tools that the answer calls.
    pub(super) fn called(&self, exchange: &Exchange) -> Vec<String> {
        let frames = exchange.answer_frames.iter();
        frames.flat_map(|frame| self.labels.calls(&exchange.session, *frame)).collect()
    }

    pub(super) fn calls_json(&self, exchange: &Exchange) -> Value {
        self.called(exchange).into_iter().map(Value::from).collect()
    }

    /// Where two requests first differ, in a few words.
    pub(super) fn place(
        &self,
        exchange: &Exchange,
        divergence: &Divergence,
        diff: &RequestDiff,
    ) -> String {
        let owner = diff.owner();
        let owner = owner.as_deref();
        let label = owner.and_then(|owner| self.labels.of_owner(&exchange.session, owner));
        let named = |frame: &FrameSeq| match label.as_ref().map(Label::words) {
            Some(words) if !words.is_empty() => format!("frame {frame}, {words}"),
            _ => format!("frame {frame}"),
        };
        match owner {
            Some(Owner::Recorded { facet, frame }) => {
                let name = facet.as_str();
                let within = name.strip_prefix("tool:").and_then(|tool| {
                    let change = diff.tools.iter().find(|change| change.name == tool)?;
                    let is_within = !change.path.elements().is_empty();
                    let is_gone = change.next.is_none().then(|| "is gone".to_owned());
                    is_gone.or_else(|| is_within.then(|| format!("at {}", change.path)))
                });
                match (within, frame) {
                    (Some(within), _) => format!("{name} {within}"),
                    (None, Some(frame)) => format!("{name}, {}", named(frame)),
                    (None, None) => name.to_owned(),
                }
            }
            Some(Owner::Chunk { frame, facet_ids, .. }) => match facet_ids.first() {
                Some(facet) => format!("{facet}, {}", named(frame)),
                None => named(frame),
            },
            Some(Owner::Block { block, .. }) => format!("block {block}"),
            _ => divergence.path.to_string(),
        }
    }

    /// What differs from the request before, as JSON.
    pub(super) fn difference_json(&self, exchange: &Exchange, diff: &RequestDiff) -> Object {
        let divergence = diff.prefix.divergence.as_ref().map(|divergence| {
            let owner = diff.owner();
            let owner = owner.as_deref();
            let mut json = object! {
                "path": divergence.path.to_string(),
                "byte": or_null(divergence.offset.map(|offset| offset as u64)),
                "owner": or_null(owner.map(Owner::to_json)),
            };
            let label = owner.and_then(|owner| self.labels.of_owner(&exchange.session, owner));
            if let Some(label) = label {
                label.put(&mut json);
            }
            json
        });
        let again = match diff.prefix.divergence {
            Some(_) => diff.prefix.tokens.saturating_sub(diff.prefix.cached),
            None => diff.prefix.unchanged.saturating_sub(diff.prefix.cached),
        };
        object! {
            "at": or_null(divergence),
            "unchanged": diff.prefix.unchanged,
            "cached": diff.prefix.cached,
            "billedAgain": again,
            "tools": diff.tools.iter().map(|tool| {
                Value::from(object! { "name": tool.name.as_str(), "path": tool.path.to_string() })
            }).collect::<Value>(),
            "parameters": diff.parameters.iter().map(|change| Value::from(change.name.as_str())).collect::<Value>(),
            "breaks": breaks_json(&diff.breaks),
        }
    }
}
