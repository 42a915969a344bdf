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
    request::{Exchange, Recording, RequestDiff, RequestTokens, ToolChange},
};

use super::args::Requests;
use super::{
    causes::BrokenCaches,
    counted::RequestCounts,
    follow::Printed,
    page::Shape,
    row::{
        ChangedTool, Copied, Difference, DifferencePlace, RequestRow, RequestTotals, Resolved,
        StartedBy,
    },
};
use crate::{
    failure::Outcome,
    input::Source,
    labels::{Label, RecordingLabels},
    output::Output,
    recorded,
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
        recorded::expect_session(self.source, self.recording, wanted)?;
        Ok(ready().filter(|exchange| &*exchange.session == wanted).collect())
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
            let (tokens, growth) = self.tokens(exchange, &mut totals)?;
            if !self.is_printed(exchange, &mut seen) {
                out.answer(&self.row(exchange, tokens, growth)?)?;
            }
        }
        let reported = self.reported();
        // A file that is followed has no end.
        let has_usage = reported.sums.total.with_usage > 0 || !reported.sums.copied.is_empty();
        if !has_usage || self.printed.is_some() {
            return Ok(());
        }
        out.answer(&RequestTotals { file: self.source.file(), reported: reported.answer() })
    }

    /// What is known of a request.
    fn row<'e>(
        &'e self,
        exchange: &'e Exchange,
        tokens: RequestTokens,
        growth: i128,
    ) -> Outcome<RequestRow<'e>> {
        let label = self.label(exchange);
        let differs = self.differences(exchange)?;
        Ok(RequestRow {
            file: self.source.file(),
            request: exchange.number,
            session: &exchange.session,
            api: exchange.api.as_str(),
            provenance: exchange.provenance.as_str(),
            lacks: exchange.provenance.lacks().iter().map(|lack| lack.as_str()).collect(),
            frame: exchange.answer(),
            last_frame: exchange.last_frame,
            time: exchange.time.as_deref(),
            line: label.line(),
            uuid: label.uuid().map(str::to_owned),
            calls: self.called(exchange),
            duration_ms: exchange.duration_ms,
            model: exchange.model.as_deref(),
            outcome: exchange.outcome().as_str(),
            retry: exchange.is_retry,
            warm_up: exchange.is_warm_up().then_some(true),
            resolved: Resolved::of(&exchange.provenance),
            subagent_file: label.file().map(str::to_owned),
            reason: exchange.failure.as_deref().or(exchange.cut.as_deref()),
            unread: exchange.unread.as_deref(),
            edits: (!exchange.edits.is_empty()).then(|| exchange.edits.iter().collect()),
            tokens,
            counted: self.counts.counted(exchange, &tokens),
            growth: i64::try_from(growth).unwrap_or(i64::MAX),
            lost: differs.is_some().then(|| self.broken.lost(exchange)).flatten(),
            differs: differs.map(|diff| self.difference(exchange, &diff)),
            usage: exchange.usage.as_ref(),
            price: self.prices.cost(exchange).ok(),
            copied: exchange.copied.as_ref().map(|copied| Copied {
                from: copied.from.as_deref(),
                usage: copied.usage.as_ref(),
            }),
            started_by: self.recording.started_by(&exchange.session).map(|start| StartedBy {
                session: start.session.as_str(),
                call: start.call.as_str(),
                frame: start.frame,
            }),
        })
    }

    /// The tools that the answer calls.
    pub(super) fn called(&self, exchange: &Exchange) -> Vec<String> {
        let frames = exchange.answer_frames.iter();
        frames.flat_map(|frame| self.labels.calls(&exchange.session, *frame)).collect()
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

    /// What differs from the request before.
    pub(super) fn difference(&self, exchange: &Exchange, diff: &RequestDiff) -> Difference {
        let at = diff.prefix.divergence.as_ref().map(|divergence| {
            let owner = diff.owner();
            let owner = owner.as_deref();
            let label = owner.and_then(|owner| self.labels.of_owner(&exchange.session, owner));
            DifferencePlace {
                path: divergence.path.to_string(),
                byte: divergence.offset,
                owner: owner.map(Owner::to_json),
                place: label.as_ref().map(Label::place),
                call: label.as_ref().and_then(Label::call_answer),
            }
        });
        let tool = |tool: &ToolChange| ChangedTool {
            name: tool.name.clone(),
            path: tool.path.to_string(),
        };
        Difference {
            at,
            unchanged: diff.prefix.unchanged,
            cached: diff.prefix.cached,
            billed_again: diff.prefix.billed_again(),
            tools: diff.tools.iter().map(tool).collect(),
            parameters: diff.parameters.iter().map(|change| change.name.clone()).collect(),
            breaks: diff.breaks.clone(),
        }
    }
}
