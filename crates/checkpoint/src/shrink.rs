use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

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

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StandIn {
    Steps,
    Files { columns: usize, status: Option<usize> },
}

impl StandIn {
    /// The line that stands for so many.
    fn line(self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        let Self::Files { columns, status } = self else {
            return format!("- {count} earlier step{plural} → summarised");
        };
        let cell = |at| match at {
            0 => format!("{count} file{plural}"),
            at if Some(at) == status => "summarised".to_owned(),
            _ => String::new(),
        };
        table::row((0..columns).map(cell))
    }
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
        checkpoint: Checkpoint::called(document, checkpoint.id()),
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
    let takes = sections.collect::<Vec<_>>().join(", ");
    let (all, least) = (counter.count(before.text()), counter.count(smallest.text()));
    let message = format!(
        "the checkpoint has {all} tokens and cannot be made smaller than {least}, which is more \
         than {tokens}: {takes}"
    );
    Error::new(ErrorKind::Limit, message)
}

/// What may go, the first to go first.
fn candidates(document: &Document) -> Vec<Candidate> {
    let mut found = Vec::new();
    let blocks = |kind: SectionKind,
                  is_wanted: fn(&BlockKind) -> bool|
     -> Vec<(&Section, &Block)> {
        let own = sections_of(document, kind);
        let of = |section| document.blocks_of(section).iter().map(move |block| (section, block));
        own.flat_map(of).filter(|(_, block)| is_wanted(&block.kind)).collect()
    };
    let is_row = |kind: &BlockKind| kind.row().is_some();
    let steps = blocks(SectionKind::PlayByPlay, |kind| matches!(kind, BlockKind::ListItem { .. }));
    let rows = blocks(SectionKind::ArtifactTrail, is_row);
    let crumbs = blocks(SectionKind::Breadcrumbs, is_row);
    let files = rows.first().map(|(_, row)| files_under(document, row));
    let older = steps.len().saturating_sub(NEWEST_STEPS);
    let but_last = steps.len().saturating_sub(1);
    add(&mut found, steps.iter().take(older), Some(StandIn::Steps));
    add(&mut found, rows.iter().filter(|(_, row)| is_finished(document, row)), files);
    add(&mut found, crumbs.iter(), None);
    found.extend(sections_to_drop(document));
    add(&mut found, steps.iter().take(but_last), Some(StandIn::Steps));
    add(&mut found, rows.iter(), files);
    for kind in [SectionKind::TechnicalContext, SectionKind::UserRules] {
        found.extend(parts_of(document, kind).into_iter().rev());
    }
    found
}

/// The sections of a kind with those inside of them that the format does not name, but for those of
/// inline deltas.
fn sections_of(document: &Document, kind: SectionKind) -> impl Iterator<Item = &Section> {
    let sections = document.sections().iter().enumerate();
    let own = sections.filter(move |(index, _)| {
        document.kind_around(*index) == Some(kind) && !is_inline(document, *index)
    });
    own.map(|(_, section)| section)
}

/// Whether a section is an inline delta, or inside of one.
fn is_inline(document: &Document, index: usize) -> bool {
    document.around(index).any(|section| inline_time(section).is_some())
}

/// The blocks of a section, and the sections inside of it that the format does not name.
fn parts_of(document: &Document, kind: SectionKind) -> Vec<Candidate> {
    let mut parts = Vec::new();
    for section in sections_of(document, kind) {
        if section.kind().is_some() {
            let blocks = document.blocks_of(section).iter();
            parts.extend(blocks.map(|block| whole(document, section, block.lines.clone())));
        } else {
            parts.push(whole(document, section, section.lines.clone()));
        }
    }
    parts
}

/// Adds the blocks that are not there yet.
fn add<'d>(
    found: &mut Vec<Candidate>,
    blocks: impl Iterator<Item = &'d (&'d Section, &'d Block)>,
    stand_in: Option<StandIn>,
) {
    let taken: HashSet<usize> = found.iter().map(|candidate| candidate.lines.start).collect();
    let open = blocks.filter(|(_, block)| !taken.contains(&block.lines.start));
    found.extend(open.map(|(section, block)| Candidate {
        section: section.title.clone(),
        lines: block.lines.clone(),
        stand_in,
    }));
}

/// The inline deltas, then the sections that the format does not name, without what is inside of
/// them and is named.
fn sections_to_drop(document: &Document) -> Vec<Candidate> {
    let (mut deltas, mut others) = (Vec::new(), Vec::new());
    for (index, section) in document.sections().iter().enumerate() {
        let first = document.blocks_of(section).first().map(|block| block.lines.start);
        let start = if section.level == 0 { first } else { Some(section.lines.start) };
        if is_inline(document, index) {
            if inline_time(section).is_some() {
                deltas.push(whole(document, section, section.lines.start..section.end));
            }
        } else if let Some(start) = start
            && document.kind_around(index).is_none()
            && section.level != 1
        {
            others.push(whole(document, section, start..section.lines.end));
        }
    }
    deltas.append(&mut others);
    deltas
}

/// Lines that go without a stand-in, and without the empty ones at their end.
fn whole(document: &Document, section: &Section, lines: Range<usize>) -> Candidate {
    let lines = without_blank_end(document, lines);
    Candidate { section: section.title.clone(), lines, stand_in: None }
}

fn without_blank_end(document: &Document, mut lines: Range<usize>) -> Range<usize> {
    while lines.end > lines.start + 1 && document.lines.get(lines.end - 1).trim().is_empty() {
        lines.end -= 1;
    }
    lines
}

/// What stands in for rows of a table.
fn files_under(document: &Document, row: &Block) -> StandIn {
    let titles = document.titles_over(row);
    StandIn::Files {
        columns: titles.len(),
        status: titles.iter().position(|title| is_status(title)),
    }
}

/// Whether nothing more happens to what a row is about.
fn is_finished(document: &Document, row: &Block) -> bool {
    let status = document.titles_over(row).iter().position(|title| is_status(title));
    let state = status.and_then(|status| row.kind.row()?.get(status)).map(|state| normal(state));
    let ends =
        ["closed", "done", "complete", "deleted", "removed", "moved", "resolved", "finished"];
    state.is_some_and(|state| ends.iter().any(|end| state.contains(end)))
}

/// The edits that take candidates away.
fn edits(candidates: &[Candidate]) -> Vec<Edit> {
    // How many of a section one line stands for, and where the first of them is.
    let mut counts: HashMap<(&str, StandIn), (usize, usize)> = HashMap::new();
    for Candidate { section, lines, stand_in } in candidates {
        if let Some(stand_in) = *stand_in {
            let (count, first) = counts.entry((section, stand_in)).or_insert((0, lines.start));
            (*count, *first) = (*count + 1, lines.start.min(*first));
        }
    }
    let line = |((_, stand_in), (count, first)): ((&str, StandIn), (usize, usize))| {
        (first, stand_in.line(count))
    };
    let mut stand_ins: HashMap<usize, String> = counts.into_iter().map(line).collect();
    let edit = |candidate: &Candidate| {
        let line = stand_ins.remove(&candidate.lines.start);
        Edit::replace(candidate.lines.clone(), line.into_iter().collect())
    };
    candidates.iter().map(edit).collect()
}
