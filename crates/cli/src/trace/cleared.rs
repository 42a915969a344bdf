//! Which blocks of recorded requests a provider cleared before the model read them.

use std::{collections::HashMap, sync::Arc};

use afterimage::{id::FrameSeq, request::Request};

use super::request::Numbered;
use crate::hit::{Hit, UnreadBy};

/// The number of a request, and the index of a block in it that its model did not read.
type ClearedBlock = (usize, usize);

/// The requests whose model did not read a block, by frame.
#[derive(Default)]
pub(super) struct Cleared {
    blocks: HashMap<(Arc<str>, FrameSeq), Vec<ClearedBlock>>,
    /// The last request of each session.
    last: HashMap<Arc<str>, usize>,
}

impl Cleared {
    pub(super) fn of(exchanges: &Numbered<'_>) -> Self {
        let mut cleared = Self::default();
        for (number, exchange) in exchanges {
            cleared.last.insert(Arc::clone(&exchange.session), *number);
            let edits = exchange.applied_edits();
            if edits.is_empty() {
                continue;
            }
            // A body that cannot be read was told of when it was read.
            for of in Request::recorded(exchange).cleared(&edits, None).unwrap_or_default() {
                let Some(frame) = of.frame else { continue };
                let blocks = cleared.blocks.entry((Arc::clone(&exchange.session), frame));
                blocks.or_default().push((*number, of.block));
            }
        }
        cleared
    }

    /// The requests that held what was found, and whose model did not read it.
    pub(super) fn unread_by(&self, frame: FrameSeq, hit: &Hit<'_>) -> UnreadBy {
        let Some(cleared) = self.blocks.get(&(Arc::clone(hit.session), frame)) else {
            return UnreadBy::default();
        };
        // The facets of a message are its blocks: `result-3.1` is the second of frame 3.
        let index = hit.facet().and_then(|facet| facet.split_once('.'));
        let index = index.and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok());
        let of = cleared.iter().filter(|(_, block)| Some(*block) == index);
        let requests: Vec<usize> = of.map(|(request, _)| *request).collect();
        let is_last = requests.last().is_some_and(|last| self.last.get(hit.session) == Some(last));
        UnreadBy { requests, is_last }
    }
}
