//! Where Anthropic's cache begins: up to four marks, each on a content block.

use super::{
    Breakpoints,
    anthropic::{Block, Message},
    anthropic_block::is_thinking,
    owned::Owned,
    report::ExportReport,
};

/// How many marks a request may have.
const MOST: usize = 4;

pub(super) fn set(
    mut system: Option<&mut Message>,
    messages: &mut [Message],
    breakpoints: &Breakpoints,
    report: &mut ExportReport,
) {
    match breakpoints {
        Breakpoints::None => {}
        Breakpoints::Recorded => {
            let blocks = system.into_iter().flat_map(|system| &mut system.blocks);
            let blocks = blocks.chain(messages.iter_mut().flat_map(|message| &mut message.blocks));
            let marked = blocks.filter(|block| block.value.get("cache_control").is_some());
            let mut marked: Vec<&mut Block> = marked.collect();
            let excess = marked.len().saturating_sub(MOST);
            for block in marked.iter_mut().take(excess) {
                block.value.remove("cache_control");
                report.drop("breakpoint");
            }
        }
        Breakpoints::Stable(frames) => {
            let mut left = MOST;
            if let Some(block) = system.as_mut().and_then(|system| system.blocks.last_mut()) {
                mark(block);
                left -= 1;
            }
            let mut blocks: Vec<&mut Block> = messages
                .iter_mut()
                .flat_map(|message| &mut message.blocks)
                .filter(|block| !block.in_tail && !is_thinking(&block.value))
                .collect();
            let mut chosen: Vec<usize> = blocks.len().checked_sub(1).into_iter().collect();
            let mut frames = frames.clone();
            frames.sort_unstable();
            for frame in frames.into_iter().rev() {
                let is_within = |block: &&mut Block| block.frame.is_some_and(|own| own <= frame);
                let at = blocks.iter().rposition(is_within);
                if chosen.len() < left
                    && let Some(at) = at.filter(|at| !chosen.contains(at))
                {
                    chosen.push(at);
                }
            }
            for at in chosen {
                blocks.get_mut(at).into_iter().for_each(|block| mark(block));
            }
        }
    }
}

fn mark(block: &mut Block) {
    block.value.put("cache_control", Owned::map([("type", Owned::form("ephemeral"))]));
}
