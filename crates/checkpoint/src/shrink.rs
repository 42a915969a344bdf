use std::{collections::HashSet, ops::Range};

use super::{
    blocks::{Block, BlockKind},
    document::{Document, Section},
    edit::Edit,
    full_state::{Checkpoint, inline_time},
    names::{SectionKind, is_status, normal},
    table,
};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// How many of the newest steps of Play-By-Play are kept longer than the others.
const NEWEST_STEPS: usize = 3;

/// A checkpoint that was made smaller.
#[derive(Clone, Debug)]
pub struct ShrunkCheckpoint {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Its tokens.
    pub tokens: usize,
    /// What went, in the order in which it did.
    pub gone: Vec<RemovedText>,
}

/// Something that went when a checkpoint was made smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedText {
    /// The section that it was in.
    pub section: String,
    /// The line in the checkpoint before, from one.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// Whether a line stands in its place that says how many there were.
    pub is_summarised: bool,
}

/// What may go.
struct Candidate {
    section: String,
    lines: Range<usize>,
    /// What stands in for it, and for others of its section.
    stand_in: Option<StandIn>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StandIn {
    Steps,
    Files { columns: usize, status: Option<usize> },
}

/// The checkpoint in at most `tokens` tokens by `counter`.
///
/// What goes first: older steps of Play-By-Play, which one line then stands for; files of the
/// Artifact Trail that are finished, likewise; Breadcrumbs; deltas that were written into the
/// checkpoint; sections that the format does not name; the other steps but the last, and the other
/// files; Technical Context; User Rules. The header, Problem, Session Intent, Decisions, Current
/// State and Next Actions never go. A checkpoint that fits is left as it is.
///
/// Counts the whole text about log n times for n entries.
///
/// # Errors
/// [`ErrorKind::Limit`] where it does not fit with all of that gone, with what the sections take.
pub fn shrink(
    checkpoint: &Checkpoint,
    tokens: usize,
    counter: &dyn TokenCounter,
) -> Result<ShrunkCheckpoint> {
    let document = checkpoint.document();
    let candidates = candidates(document);
    let text_of = |count: usize| -> Result<Document> {
        document.edited(edits(candidates.get(..count).unwrap_or_default()))
    };
    let fits = |count: usize| -> Result<bool> {
        Ok(counter.count_up_to(text_of(count)?.text(), tokens).is_some())
    };
    let (mut low, mut high) = (0, candidates.len());
    if !fits(high)? {
        return Err(too_large(document, &text_of(high)?, tokens, counter));
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        if fits(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // A stand-in may be longer than the little that it stands for.
    while !fits(low)? {
        low += 1;
    }
    let document = text_of(low)?;
    let gone = candidates.iter().take(low).map(|candidate| RemovedText {
        section: candidate.section.clone(),
        line: candidate.lines.start + 1,
        text: checkpoint.document().lines.joined(candidate.lines.clone()),
        is_summarised: candidate.stand_in.is_some(),
    });
    Ok(ShrunkCheckpoint {
        tokens: counter.count(document.text()),
        gone: gone.collect(),
        checkpoint: match checkpoint.id() {
            Some(id) => Checkpoint::from(document).named(id),
            None => Checkpoint::from(document),
        },
    })
}

fn too_large(
    before: &Document,
    smallest: &Document,
    tokens: usize,
    counter: &dyn TokenCounter,
) -> Error {
    let sections = smallest.sections().iter().filter_map(|section| {
        let body = smallest.body_of(section);
        let tokens = counter.count(&body);
        (tokens > 0).then(|| format!("{} {tokens}", section.title))
    });
    let takes: Vec<String> = sections.collect();
    let message = format!(
        "the checkpoint has {} tokens and cannot be made smaller than {}, which is more than \
         {tokens}: {}",
        counter.count(before.text()),
        counter.count(smallest.text()),
        takes.join(", ")
    );
    Error::new(ErrorKind::Limit, message)
}

/// What may go, the first to go first.
fn candidates(document: &Document) -> Vec<Candidate> {
    let mut found = Vec::new();
    let blocks = |kind: SectionKind| -> Vec<(&Section, &Block)> {
        let sections = document.sections().iter().enumerate();
        let own = sections.filter(|(index, _)| {
            document.kind_around(*index) == Some(kind) && inline_of(document, *index).is_none()
        });
        let of =
            |(_, section)| document.blocks_of(section).iter().map(move |block| (section, block));
        own.flat_map(of).collect()
    };
    let is_item =
        |(_, block): &&(&Section, &Block)| matches!(block.kind, BlockKind::ListItem { .. });
    let steps: Vec<_> = blocks(SectionKind::PlayByPlay).iter().filter(is_item).copied().collect();
    let older = steps.len().saturating_sub(NEWEST_STEPS);
    add(&mut found, steps.get(..older).unwrap_or_default(), Some(StandIn::Steps));
    let files = blocks(SectionKind::ArtifactTrail);
    let rows: Vec<_> =
        files.iter().filter(|(_, block)| block.kind.row().is_some()).copied().collect();
    let stand_in = rows.first().and_then(|(_, block)| row_stand_in(document, block));
    let finished: Vec<_> =
        rows.iter().filter(|(_, row)| is_finished(document, row)).copied().collect();
    add(&mut found, &finished, stand_in);
    let crumbs = blocks(SectionKind::Breadcrumbs);
    let crumbs: Vec<_> =
        crumbs.into_iter().filter(|(_, block)| block.kind.row().is_some()).collect();
    add(&mut found, &crumbs, None);
    found.extend(sections_to_drop(document));
    add(
        &mut found,
        steps.get(..steps.len().saturating_sub(1)).unwrap_or_default(),
        Some(StandIn::Steps),
    );
    add(&mut found, &rows, stand_in);
    for kind in [SectionKind::TechnicalContext, SectionKind::UserRules] {
        found.extend(parts_of(document, kind).into_iter().rev());
    }
    found
}

/// The blocks of a section, and the sections inside of it that the format does not name.
fn parts_of(document: &Document, kind: SectionKind) -> Vec<Candidate> {
    let mut parts = Vec::new();
    for (index, section) in document.sections().iter().enumerate() {
        if document.kind_around(index) != Some(kind) || inline_of(document, index).is_some() {
            continue;
        }
        let part = |lines: Range<usize>| Candidate {
            section: section.title.clone(),
            lines: without_blank_end(document, lines),
            stand_in: None,
        };
        if section.kind().is_some() {
            let blocks = document.blocks_of(section).iter();
            parts.extend(blocks.map(|block| part(block.lines.clone())));
        } else {
            parts.push(part(section.lines.clone()));
        }
    }
    parts
}

/// Adds the blocks that are not there yet.
fn add(found: &mut Vec<Candidate>, blocks: &[(&Section, &Block)], stand_in: Option<StandIn>) {
    let taken: HashSet<usize> = found.iter().map(|candidate| candidate.lines.start).collect();
    let open = blocks.iter().filter(|(_, block)| !taken.contains(&block.lines.start));
    found.extend(open.map(|(section, block)| Candidate {
        section: section.title.clone(),
        lines: block.lines.clone(),
        stand_in,
    }));
}

/// The inline delta that a section belongs to.
fn inline_of(document: &Document, index: usize) -> Option<usize> {
    let mut at = Some(index);
    while let Some((index, section)) =
        at.and_then(|index| Some((index, document.sections().get(index)?)))
    {
        if inline_time(section).is_some() {
            return Some(index);
        }
        at = section.parent;
    }
    None
}

/// The inline deltas, then the sections that the format does not name, without what is inside of
/// them and is named.
fn sections_to_drop(document: &Document) -> Vec<Candidate> {
    let sections = document.sections().iter().enumerate();
    let (mut deltas, mut others) = (Vec::new(), Vec::new());
    for (index, section) in sections {
        let candidate = |lines: Range<usize>| Candidate {
            section: section.title.clone(),
            lines: without_blank_end(document, lines),
            stand_in: None,
        };
        match inline_of(document, index) {
            Some(delta) if delta == index => {
                deltas.push(candidate(section.lines.start..section.end));
            }
            None if document.kind_around(index).is_none() && section.level != 1 => {
                let first = document.blocks_of(section).first().map(|block| block.lines.start);
                let start = if section.level == 0 { first } else { Some(section.lines.start) };
                others.extend(start.map(|start| candidate(start..section.lines.end)));
            }
            _ => {}
        }
    }
    deltas.append(&mut others);
    deltas
}

fn without_blank_end(document: &Document, mut lines: Range<usize>) -> Range<usize> {
    while lines.end > lines.start + 1 && document.lines.get(lines.end - 1).trim().is_empty() {
        lines.end -= 1;
    }
    lines
}

fn row_stand_in(document: &Document, row: &Block) -> Option<StandIn> {
    let BlockKind::TableRow { head, .. } = row.kind else { return None };
    let BlockKind::TableHead { cells } = &document.blocks().get(head)?.kind else { return None };
    let status = cells.iter().position(|title| is_status(title));
    Some(StandIn::Files { columns: cells.len(), status })
}

/// Whether nothing more happens to what a row is about.
fn is_finished(document: &Document, row: &Block) -> bool {
    let Some(StandIn::Files { status: Some(status), .. }) = row_stand_in(document, row) else {
        return false;
    };
    let state = row.kind.row().and_then(|cells| cells.get(status)).map(|state| normal(state));
    let ends =
        ["closed", "done", "complete", "deleted", "removed", "moved", "resolved", "finished"];
    state.is_some_and(|state| ends.iter().any(|end| state.contains(end)))
}

/// The edits that take candidates away.
fn edits(candidates: &[Candidate]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut counts: Vec<(StandIn, &str, usize, usize)> = Vec::new();
    for candidate in candidates {
        if let Some(stand_in) = candidate.stand_in {
            let known = counts
                .iter_mut()
                .find(|(kind, section, ..)| *kind == stand_in && *section == candidate.section);
            match known {
                Some((_, _, count, first)) => {
                    *count += 1;
                    *first = (*first).min(candidate.lines.start);
                }
                None => counts.push((stand_in, &candidate.section, 1, candidate.lines.start)),
            }
        }
        edits.push(Edit::remove(candidate.lines.clone()));
    }
    for (stand_in, _, count, first) in counts {
        let line = match stand_in {
            StandIn::Steps => {
                format!("- {count} earlier {} → summarised", plural(count, "step"))
            }
            StandIn::Files { columns, status } => {
                let mut cells = vec![String::new(); columns];
                if let Some(status) = status.and_then(|at| cells.get_mut(at)) {
                    "summarised".clone_into(status);
                }
                if let Some(name) = cells.first_mut() {
                    *name = format!("{count} {}", plural(count, "file"));
                }
                table::row(cells)
            }
        };
        if let Some(edit) = edits.iter_mut().find(|edit| edit.at.start == first) {
            edit.lines = vec![line];
        }
    }
    edits
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}
