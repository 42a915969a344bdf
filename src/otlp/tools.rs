//! The calls of tools whose times a source tells.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use super::{
    span::{Attributes, SpanTimes},
    times::time_of,
};
use crate::{
    id::FrameSeq,
    json::Value,
    veil::{CallOutcome, Facet, Frame, History, Pair, PartPlace, calls_and_results},
};

/// The pairs of calls and results of a session, by the frame of the call.
pub(super) struct CallPairs(HashMap<FrameSeq, Vec<Pair>>);

/// A call that was run.
pub(super) struct Execution {
    pub(super) name: String,
    pub(super) times: SpanTimes,
    pub(super) attributes: Attributes,
    pub(super) is_failed: bool,
}

impl CallPairs {
    pub(super) fn of(history: &History) -> Self {
        let mut pairs: HashMap<FrameSeq, Vec<Pair>> = HashMap::new();
        for pair in history.pairs().all() {
            pairs.entry(pair.call.frame).or_default().push(*pair);
        }
        Self(pairs)
    }

    /// The calls of a frame that have results, where both have a time.
    pub(super) fn executions(
        &self,
        history: &History,
        frame: FrameSeq,
        moment: &dyn Fn(&str) -> Option<u64>,
    ) -> Vec<Execution> {
        let pairs = self.0.get(&frame).map(Vec::as_slice).unwrap_or_default();
        let Some(start) = pairs.first().and_then(|_| time_of(history, frame, moment)) else {
            return Vec::new();
        };
        // Each frame is read once, however many calls and results it holds.
        let mut frames: HashMap<FrameSeq, Arc<Frame>> = HashMap::new();
        for sequence in pairs.iter().map(|pair| pair.result.frame).chain([frame]) {
            if let Entry::Vacant(vacant) = frames.entry(sequence)
                && let Some(frame) = history.get(sequence)
            {
                vacant.insert(frame);
            }
        }
        let ends = frames.keys().map(|frame| (*frame, time_of(history, *frame, moment)));
        let ends: HashMap<FrameSeq, Option<u64>> = ends.collect();
        let parts = frames.iter().map(|(sequence, frame)| (*sequence, parts(frame)));
        let parts: HashMap<FrameSeq, Vec<&Facet>> = parts.collect();
        let part = |place: PartPlace| parts.get(&place.frame)?.get(place.number as usize).copied();
        let execution = |pair: &Pair| {
            let end = ends.get(&pair.result.frame).copied().flatten();
            let end = end.filter(|end| *end >= start)?;
            let (call, result) = (part(pair.call)?, part(pair.result)?);
            let told = call.call()?;
            let mut attributes = Attributes::default();
            attributes.put("gen_ai.operation.name", "execute_tool");
            attributes.put("gen_ai.tool.name", told.name);
            attributes.put("gen_ai.tool.type", "function");
            attributes.put_some("gen_ai.tool.call.id", told.id);
            match (told.arguments, told.parameters) {
                (Some(written), _) => attributes.put("gen_ai.tool.call.arguments", written),
                (None, Some(parameters)) => {
                    attributes.put_json("gen_ai.tool.call.arguments", parameters);
                }
                (None, None) => {}
            }
            if !result.content.is_empty() {
                attributes.put("gen_ai.tool.call.result", Value::from(result.content.as_str()));
            }
            let is_failed = result.outcome().is_failure();
            match result.outcome() {
                CallOutcome::Failed => attributes.put("error.type", "tool_error"),
                outcome if is_failed => attributes.put("error.type", outcome.as_str()),
                _ => {}
            }
            Some(Execution {
                name: told.name.to_owned(),
                times: SpanTimes { start, end },
                attributes,
                is_failed,
            })
        };
        pairs.iter().filter_map(execution).collect()
    }
}

/// The calls and results that a frame shows, in order.
fn parts(frame: &Frame) -> Vec<&Facet> {
    calls_and_results(frame.added())
}
