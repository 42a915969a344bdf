//! Packs the bodies of requests, each after the earlier one that is most like it.

use afterimage_log::Position;

use crate::{
    base::{BasePlan, Bases},
    coding::{self, Effort, MOST_STORED},
    entry::RequestBody,
};

/// A longer body stands for itself, and none comes after it: it would be kept in memory.
pub(crate) const MOST_BASE: usize = 16 << 20;

/// The bodies that later ones may come after.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bases: Bases,
}

/// A body as it is stored, before its place in the file is known.
#[derive(Debug)]
pub(crate) struct PackedBody {
    /// The content of its record.
    pub(crate) content: Vec<u8>,
    planned: Option<BasePlan>,
}

impl Packer {
    /// Packs a body, of which at most [`MOST_STORED`] bytes are stored.
    ///
    /// Reads it twice, and the earlier one once; with less effort once, or not at all.
    pub(crate) fn pack(&self, lane: &str, body: &RequestBody<'_>, effort: Effort) -> PackedBody {
        let most = usize::try_from(MOST_STORED).unwrap_or(usize::MAX);
        let bytes = body.bytes.get(..most).unwrap_or(body.bytes);
        let body = &RequestBody { bytes, total: body.total, ended: body.ended };
        if effort > Effort::Small || body.bytes.len() > MOST_BASE {
            let effort = effort.max(Effort::Quick);
            return PackedBody { content: coding::to_bytes(body, None, effort), planned: None };
        }
        let planned = self.bases.plan(lane, body.bytes);
        let base = planned.base.as_ref().map(|base| (base.position, &*base.body));
        let effort = if planned.begins_anew() { effort } else { Effort::Small };
        let content = coding::to_bytes(body, base, effort);
        let is_after = coding::describe(&content).is_ok_and(|stored| stored.base.is_some());
        PackedBody { content, planned: Some(planned.carried_out(is_after)) }
    }

    /// Remembers a body that was stored at this place.
    pub(crate) fn keep(&mut self, lane: &str, at: Position, bytes: &[u8], packed: PackedBody) {
        if let Some(planned) = packed.planned {
            self.bases.push(lane, at, bytes, planned);
        }
    }
}
