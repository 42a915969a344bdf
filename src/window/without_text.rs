//! Frames without their texts: what decides which frames a context holds, and no more.

use std::sync::Arc;

use crate::{
    json::Value,
    snapshot::FrameSnapshot,
    veil::{Facet, FacetChange, FacetOp, FacetPart, Frame, PartContent},
};

/// The beginning of the topics by which frames tell of the context.
const OWN_TOPIC: &str = "afterimage:";

/// Whether a frame tells something of the context besides what it shows.
#[cfg(feature = "storage")]
pub(crate) fn tells_of_context(frame: &Frame) -> bool {
    frame.events.iter().any(is_told)
}

fn is_told(event: &Value) -> bool {
    event.str_at("topic").is_some_and(|topic| topic.starts_with(OWN_TOPIC))
}

/// The frame, captured, without its texts. One that tells of the context keeps what it adds, since
/// that may be a summary.
pub(crate) fn without_text(frame: &Frame, shown: &FrameSnapshot) -> Frame {
    let events: Vec<Value> = frame.events.iter().filter(|event| is_told(event)).cloned().collect();
    let ops =
        if events.is_empty() { frame.ops.iter().map(op).collect() } else { frame.ops.clone() };
    Frame {
        sequence: frame.sequence,
        source: frame.source.clone(),
        events,
        ops,
        rendered_snapshot: Some(Arc::new(shown.without_text())),
        ..Frame::default()
    }
}

fn op(op: &FacetOp) -> FacetOp {
    match &op.change {
        FacetChange::Add(added) => FacetOp::add(facet(added)),
        FacetChange::Rewrite { id, changes, unset } => {
            let is_large = |key: &str| matches!(key, "content" | "state" | "attributes");
            let changes = changes.iter().filter(|(key, _)| !is_large(key));
            let changes = changes.map(|(key, value)| (key.clone(), value.clone())).collect();
            FacetChange::Rewrite { id: id.clone(), changes, unset: unset.clone() }.into()
        }
        FacetChange::Remove(id) => FacetOp::remove(id.clone()),
    }
}

fn facet(full: &Facet) -> Facet {
    // Of a call what pairs it: the arguments may be the longest text of all.
    let part = full.part.as_deref().map(|part| match &part.content {
        PartContent::Call { id, name, .. } => PartContent::Call {
            id: id.clone(),
            name: name.clone(),
            parameters: None,
            arguments: None,
        },
        content => content.clone(),
    });
    Facet {
        part: part.map(|content| Box::new(FacetPart::new(content))),
        display_name: full.display_name.clone(),
        children: full.children.iter().map(facet).collect(),
        ephemeral: full.ephemeral,
        saliency: full.saliency.clone(),
        ..Facet::new(full.id.clone(), full.facet_type.clone(), "")
    }
}
