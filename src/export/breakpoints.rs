//! Where Anthropic's cache begins: up to four marks, each on a content block.

use super::{
    Breakpoints,
    anthropic::{Block, Message},
    anthropic_block::is_thinking,
    owned::OwnedJson,
    report::ExportReport,
};
use crate::id::FrameSeq;

/// How many marks a request may have.
const MOST: usize = 4;

pub(super) fn set(
    system: Option<&mut Message>,
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
        Breakpoints::Blocks => stable(system, messages, |blocks| {
            let is_block = |at: usize| blocks.get(at).is_some_and(|block| block.is_block);
            let ends = (0..blocks.len()).rev().filter(|at| is_block(*at));
            // Where frames follow, a summary that is added next begins.
            let (inside, runs): (Vec<usize>, Vec<usize>) = ends.partition(|at| is_block(at + 1));
            runs.into_iter().chain(inside).collect()
        }),
        Breakpoints::Stable(frames) => stable(system, messages, |blocks| {
            let mut frames = frames.clone();
            frames.sort_unstable();
            let at = |frame: FrameSeq| {
                blocks.iter().rposition(|block| block.frame.is_some_and(|own| own <= frame))
            };
            frames.into_iter().rev().filter_map(at).collect()
        }),
    }
}

/// Marks the end of the system prompt, the last content block that stays, and as many as are left of
/// those that `choose` names by their index, the most important first.
fn stable(
    system: Option<&mut Message>,
    messages: &mut [Message],
    choose: impl FnOnce(&[&mut Block]) -> Vec<usize>,
) {
    let mut left = MOST;
    if let Some(block) = system.and_then(|system| system.blocks.last_mut()) {
        mark(block);
        left -= 1;
    }
    let mut blocks: Vec<&mut Block> = messages
        .iter_mut()
        .flat_map(|message| &mut message.blocks)
        .filter(|block| !block.in_tail && !is_thinking(&block.value))
        .collect();
    let mut chosen: Vec<usize> = blocks.len().checked_sub(1).into_iter().collect();
    for at in choose(&blocks) {
        if chosen.len() < left && !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    for at in chosen {
        blocks.get_mut(at).into_iter().for_each(|block| mark(block));
    }
}

fn mark(block: &mut Block) {
    block.value.put("cache_control", OwnedJson::map([("type", OwnedJson::form("ephemeral"))]));
}
