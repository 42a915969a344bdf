//! The calls of tools whose times a source tells.

use std::collections::HashMap;

use super::{
    span::{Attributes, SpanTimes},
    times::time_of,
};
use crate::{
    id::FrameSeq,
    json::Value,
    veil::{Facet, FacetChange, Frame, History, Pair, PartPlace},
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
        let execution = |pair: &Pair| {
            let end = time_of(history, pair.result.frame, moment).filter(|end| *end >= start)?;
            let (call, result) = (history.get(frame)?, history.get(pair.result.frame)?);
            let (call, result) = (part(&call, pair.call)?, part(&result, pair.result)?);
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
            let is_failed = result.is_failed();
            if is_failed {
                attributes.put("error.type", "tool_error");
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

/// The call, or the result, at a place.
fn part(frame: &Frame, place: PartPlace) -> Option<&Facet> {
    let added = frame.ops.iter().filter_map(|op| match &op.change {
        FacetChange::Add(facet) => Some(&**facet),
        _ => None,
    });
    let mut halves = added.flat_map(halves);
    halves.nth(place.number as usize)
}

/// The calls and results of a facet and of those within it, in order.
fn halves(facet: &Facet) -> Vec<&Facet> {
    let mut found = Vec::new();
    if facet.call().is_some() || facet.is_result() {
        found.push(facet);
    }
    facet.children.iter().for_each(|child| found.extend(halves(child)));
    found
}
