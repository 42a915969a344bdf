use std::sync::Arc;

use foldhash::HashMap;

use super::{CompressionTransform, Epoch, range::Covers};
use crate::{
    Error, ErrorKind, Result,
    compress::{CompressionBlock, block::Originals},
    snapshot::{ArchiveReader, Substitution, Totals},
    veil::History,
};

/// How many blocks an error names.
const NAMED: usize = 8;

impl CompressionTransform {
    /// Lets all blocks that are ready take effect. `None` where there are none. O(log n) for each,
    /// and for each block that it replaces.
    pub fn apply(&mut self) -> Option<Epoch> {
        let ready = std::mem::take(&mut self.ready);
        let from = ready.values().map(|block| block.from).min()?;
        self.is_settled = false;
        let mut blocks = Vec::new();
        for (number, block) in ready {
            let before = self.ranges.get(number).map_or(0, |range| range.tokens);
            self.live_tokens = self.live_tokens.saturating_sub(before).saturating_add(block.tokens);
            for replaced in block.blocks() {
                self.applied.remove(&replaced.from);
            }
            // The block has the blocks that it stands for; held here too, they could not be let go.
            let frames = self.walk.within(block.from, block.to);
            if let Some(range) = self.ranges.get_mut(number) {
                range.covers = Covers::Frames(frames);
            }
            blocks.push(Arc::clone(&block.id));
            self.applied.insert(block.from, block);
        }
        self.epoch += 1;
        Some(Epoch { number: self.epoch, from, blocks })
    }

    /// The blocks in effect as a renderer takes them, in order. O(blocks).
    pub fn substitutions(&self) -> Vec<Substitution> {
        self.applied.values().map(|block| block.substitution()).collect()
    }

    /// The blocks in effect, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Arc<CompressionBlock>> {
        self.applied.values()
    }

    /// The block with this id, in effect or inside of one that is. Linear in the blocks.
    pub fn block(&self, id: &str) -> Option<&Arc<CompressionBlock>> {
        fn find<'b>(
            block: &'b Arc<CompressionBlock>,
            id: &str,
        ) -> Option<&'b Arc<CompressionBlock>> {
            if *block.id == *id {
                return Some(block);
            }
            block.blocks().iter().find_map(|inner| find(inner, id))
        }
        let in_effect = self.applied.values().find(|block| *block.id == *id);
        in_effect.or_else(|| self.applied.values().find_map(|block| find(block, id)))
    }

    /// All blocks by their ids, in effect or inside of one that is: for whoever looks up many.
    /// O(blocks).
    pub(crate) fn blocks_by_id(&self) -> HashMap<&str, &Arc<CompressionBlock>> {
        fn gather<'b>(
            block: &'b Arc<CompressionBlock>,
            found: &mut HashMap<&'b str, &'b Arc<CompressionBlock>>,
        ) {
            found.entry(&*block.id).or_insert(block);
            block.blocks().iter().for_each(|inner| gather(inner, found));
        }
        let in_effect = self.applied.values().map(|block| (&*block.id, block));
        let mut found: HashMap<_, _> = in_effect.collect();
        self.applied.values().for_each(|block| gather(block, &mut found));
        found
    }

    /// Gives back the memory of the originals of a block in effect, once `archive` holds the same
    /// text: they expand from there. The history forgets the frames too
    /// ([`History::forget`]): contexts show the block, and an op that names a facet of theirs is
    /// refused. Answers with what the history gave back. Reads the originals from `archive` to
    /// compare them, and costs what [`CompressionTransform::forget`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where no block in effect has this id, and those of
    /// [`CompressionBlock::expand_from`] and [`History::forget`]: the originals are then held as
    /// before.
    pub fn spill(
        &mut self,
        history: &mut History,
        id: &str,
        archive: &ArchiveReader,
    ) -> Result<Totals> {
        self.in_effect(id)?.expand_from(archive)?;
        self.let_go(history, id, &Originals::Spilled)
    }

    /// Gives up the originals of a block in effect, and of the blocks inside of it; the history
    /// forgets the frames too, as in [`CompressionTransform::spill`]. Costs what
    /// [`History::forget`] does, and is linear in the blocks and ranges.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where no block in effect has this id, and those of
    /// [`History::forget`]. Nothing is forgotten then.
    pub fn forget(&mut self, history: &mut History, id: &str) -> Result<Totals> {
        self.let_go(history, id, &Originals::Forgotten)
    }

    fn let_go(&mut self, history: &mut History, id: &str, kept: &Originals) -> Result<Totals> {
        let block = self.in_effect(id)?;
        let (from, range) = (block.from, block.from..=block.to);
        let totals = history.forget(range)?;
        let Some(block) = self.applied.get_mut(&from) else { return Err(self.not_in_effect(id)) };
        Arc::make_mut(block).let_go(kept.clone());
        let block = Arc::clone(block);
        // A range that is planned with it would hold what it had.
        for range in &mut self.ranges {
            if let Covers::Blocks(of) = &mut range.covers {
                of.iter_mut().filter(|of| of.id == block.id).for_each(|of| *of = block.clone());
            }
        }
        // What the walk knows of these facets is let go too.
        self.look(history)?;
        Ok(totals)
    }

    fn in_effect(&self, id: &str) -> Result<&Arc<CompressionBlock>> {
        let block = self.applied.values().find(|block| *block.id == *id);
        block.ok_or_else(|| self.not_in_effect(id))
    }

    /// The error for an id that no block in effect has.
    pub(super) fn not_in_effect(&self, id: &str) -> Error {
        let ids: Vec<&str> = self.applied.values().map(|block| &*block.id).collect();
        let known = match (ids.get(..NAMED.min(ids.len())), ids.len().saturating_sub(NAMED)) {
            (None | Some([]), _) => "none is".to_owned(),
            (Some(named), 0) => format!("expected one of {}", named.join(", ")),
            (Some(named), more) => {
                format!("expected one of {} and {more} more", named.join(", "))
            }
        };
        Error::new(ErrorKind::Conflict, format!("no block {id} is in effect: {known}"))
    }
}
