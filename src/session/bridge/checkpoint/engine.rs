use std::fmt::Write as _;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    draft::{Draft, NOTHING},
    words::sentence,
};
use crate::{
    Error, ErrorKind, Result,
    checkpoint::{
        Block, BlockKind, Checkpoint, Document, MergeRule, Section, SectionKind,
        edit::{Edit, lines_of},
        shrink, table, timestamp,
    },
    compress::{CompressionJob, Engine, OutlineEngine, Passage},
    id::{FrameSeq, Millis, Role},
    snapshot::{ChunkOptions, FrameSnapshotBuilder},
    tokens::TokenCounter,
};

/// How many characters of a line of an answer without sections are kept.
const LINE: usize = 400;

/// The sections that an answer may change, which a model is shown.
const OPEN: [SectionKind; 5] = [
    SectionKind::Decisions,
    SectionKind::PlayByPlay,
    SectionKind::CurrentState,
    SectionKind::NextActions,
    SectionKind::UserRules,
];

/// An engine of compression that keeps one running checkpoint.
///
/// Each job is not summarised from nothing: what is new in it goes to another engine, together
/// with the sections that may change, and its answer is merged into the checkpoint by the rules of
/// the sections. Decisions and User Rules only grow, Play-By-Play is added to, Current State and
/// Next Actions are replaced, and files of the Artifact Trail are kept up to date from the calls
/// themselves. An answer without sections becomes the Current State.
///
/// A job that is tried again begins where it began the first time; frames that the checkpoint has
/// taken in are not sent again. The summary is the checkpoint without its header, made smaller by
/// the priorities of [`shrink`] where it must be. One engine serves one history.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     checkpoint::SectionKind, session::bridge::checkpoint::CheckpointEngine,
///     compress::{CompressionJob, Engine, FnEngine, Passage},
///     id::{FrameSeq, Millis, Role}, snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::{Chars4, TokenCounter},
/// };
///
/// let model = FnEngine::new("model", |_: &CompressionJob, _: &dyn TokenCounter| {
///     Ok::<_, std::io::Error>("### Decisions\n\n- SQLite\n\n### Current State\n\n- Tests pass\n".to_owned())
/// });
/// let engine = CheckpointEngine::new(Arc::new(model));
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Use SQLite.", ChunkOptions::new());
/// let (seq, snapshot) = (FrameSeq::new(1), Arc::new(builder.build(Millis::new(0))));
/// let passage = Passage::new(seq, seq, Role::User, snapshot);
/// let summary = engine.summarize(&CompressionJob::new(vec![passage], 200), &Chars4)?;
/// assert!(summary.contains("- Tests pass"));
/// assert_eq!(engine.checkpoint().unwrap().body(SectionKind::Decisions).unwrap(), "- SQLite");
/// # Ok::<(), afterimage::Error>(())
/// ```
pub struct CheckpointEngine {
    inner: Arc<dyn Engine>,
    /// Whether the open sections go to the inner engine as a passage, or as what is read after.
    shows_sections: bool,
    kept: Mutex<KeptSections>,
}

#[derive(Clone, Default)]
struct State {
    checkpoint: Option<Checkpoint>,
    /// The last frame that the checkpoint has taken in.
    covered: Option<FrameSeq>,
}

#[derive(Default)]
struct KeptSections {
    now: State,
    /// The last job with the state before it.
    last: Option<(Arc<str>, State)>,
}

impl CheckpointEngine {
    /// An engine that asks `model` for what is new. It is shown the sections that may change, as a
    /// first passage, and may answer with sections of its own or with plain text.
    pub fn new(model: Arc<dyn Engine>) -> Self {
        Self { inner: model, shows_sections: true, kept: Mutex::default() }
    }

    /// An engine without a model: the outline of what is new becomes the Current State.
    pub fn outline() -> Self {
        Self { shows_sections: false, ..Self::new(Arc::new(OutlineEngine)) }
    }

    /// The running checkpoint; `None` before the first job. Copies it: O(its text).
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.kept().now.checkpoint.clone()
    }

    fn kept(&self) -> MutexGuard<'_, KeptSections> {
        // What is kept is replaced as a whole, so it is whole whatever happened to another thread.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state that a job begins with.
    fn state_before(&self, job: &CompressionJob) -> State {
        let kept = self.kept();
        match &kept.last {
            Some((id, before)) if *id == job.id => before.clone(),
            _ => kept.now.clone(),
        }
    }
}

impl Engine for CheckpointEngine {
    fn id(&self) -> &'static str {
        "checkpoint"
    }

    /// # Errors
    /// What the inner engine fails with, and [`ErrorKind::Limit`] where the limit is too small for
    /// what a checkpoint never drops. The running checkpoint is then as it was.
    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let before = self.state_before(job);
        let base = match &before.checkpoint {
            Some(checkpoint) => checkpoint.clone(),
            None => Checkpoint::parse(skeleton(job))?,
        };
        let is_new = |passage: &&Passage| before.covered.is_none_or(|covered| passage.to > covered);
        let new: Vec<Passage> = job.passages.iter().filter(is_new).cloned().collect();
        let mut next = State { checkpoint: None, covered: before.covered.max(Some(job.to)) };
        let mut checkpoint = base.clone();
        if !new.is_empty() {
            let answer =
                self.inner.summarize(&self.inner_job(job, &new, &base, counter), counter)?;
            checkpoint = merged(&base, &answer)?;
            checkpoint = with_files(&checkpoint, &new)?;
        }
        let summary = summary(&checkpoint, job.token_limit, counter)?;
        next.checkpoint = Some(checkpoint);
        let mut kept = self.kept();
        kept.last = Some((job.id.clone(), before));
        kept.now = next;
        Ok(summary)
    }
}

impl CheckpointEngine {
    /// The job of summarising what is new in half of the tokens, with the sections that may change.
    fn inner_job(
        &self,
        job: &CompressionJob,
        new: &[Passage],
        base: &Checkpoint,
        counter: &dyn TokenCounter,
    ) -> CompressionJob {
        let mut passages = new.to_vec();
        let mut tail = job.tail.clone();
        if let Some(sections) = open_sections(base, job, counter) {
            if self.shows_sections {
                passages.insert(0, sections);
            } else {
                tail.insert(0, sections);
            }
        }
        let mut inner =
            CompressionJob::new(passages, (job.token_limit / 2).max(16)).with_tail(tail);
        inner.id = job.id.clone();
        (inner.from, inner.to) = (job.from, job.to);
        (inner.level, inner.attempt) = (job.level, job.attempt);
        inner.net_ops = job.net_ops.clone();
        // The checkpoint keeps rules and files itself, and an answer has sections.
        inner.unchecked()
    }
}

/// The sections that may change, as a passage; `None` where they say nothing yet.
fn open_sections(
    base: &Checkpoint,
    job: &CompressionJob,
    counter: &dyn TokenCounter,
) -> Option<Passage> {
    let mut text = String::from("The checkpoint so far:\n");
    for kind in OPEN {
        if let Some(body) = said(base, kind) {
            let _ = writeln!(text, "\n### {}\n\n{body}", kind.title());
        }
    }
    if !text.contains("###") {
        return None;
    }
    let mut builder = FrameSnapshotBuilder::new(counter);
    builder.add_content(&text, ChunkOptions::new());
    let first = job.passages.first()?;
    let snapshot = Arc::new(builder.build(first.snapshot.captured_at()));
    Some(Passage::new(job.from, job.from, Role::System, snapshot))
}

/// The text of a section that says something.
fn said(checkpoint: &Checkpoint, kind: SectionKind) -> Option<String> {
    let body = checkpoint.body(kind)?;
    let plain = body.trim().trim_start_matches("- ");
    let is_empty_table = || body.lines().count() == 2 && body.starts_with('|');
    (!plain.is_empty() && plain != NOTHING && !is_empty_table()).then_some(body)
}

/// A checkpoint that says nothing yet.
fn skeleton(job: &CompressionJob) -> String {
    let last = job.passages.last();
    let moment =
        timestamp(last.map_or(Millis::default(), |passage| passage.snapshot.captured_at()));
    let mut text = format!("---\ncheckpoint: {}\ncreated: {moment}\n---\n", job.id);
    for kind in SectionKind::ALL {
        let _ = writeln!(text, "\n{} {}", "#".repeat(kind.level().into()), kind.title());
        if let Some(columns) = kind.columns() {
            let _ = writeln!(text, "\n{}", table::head(&columns).join("\n"));
        } else if kind != SectionKind::EssentialInformation {
            let _ = writeln!(text, "\n- {NOTHING}");
        }
    }
    text
}

/// The checkpoint with an answer merged into it.
fn merged(base: &Checkpoint, answer: &str) -> Result<Checkpoint> {
    let answer = Document::parse(answer)?;
    let mut document = base.document().clone();
    let mut has_sections = false;
    for section in answer.sections() {
        let Some(kind) = section.kind() else { continue };
        has_sections = true;
        let body = answer.content_of(section);
        if !body.trim().is_empty() {
            let blocks: Vec<(&Block, String)> =
                content(&answer, section).map(|block| (block, answer.text_of(block))).collect();
            document = merge(&document, kind, &body, &blocks)?;
        }
    }
    if !has_sections {
        let lines = answer.text().lines().map(|line| sentence(line, LINE));
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        let body: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
        if !body.is_empty() {
            document = merge(&document, SectionKind::CurrentState, &body.join("\n"), &[])?;
        }
    }
    Ok(match base.id() {
        Some(id) => Checkpoint::from(document).named(id),
        None => Checkpoint::from(document),
    })
}

/// The blocks of a section, and of those inside of it that the format does not name, without their
/// headings.
fn content<'d>(document: &'d Document, section: &Section) -> impl Iterator<Item = &'d Block> {
    let lines = section.line()..=document.content_end(section);
    let is_heading = |block: &Block| matches!(block.kind, BlockKind::Heading { .. });
    let blocks = document.blocks().iter();
    blocks.filter(move |block| lines.contains(&block.line()) && !is_heading(block))
}

/// A document with a section's new text taken up by the section's rule.
fn merge(
    document: &Document,
    kind: SectionKind,
    body: &str,
    blocks: &[(&Block, String)],
) -> Result<Document> {
    let Some(section) = document.section(kind) else {
        let at = document.line_count();
        let edit = document.insert_section(at, kind.level(), kind.title(), body);
        return Ok(document.edited(vec![edit])?);
    };
    let says_nothing = said(&Checkpoint::from(document.clone()), kind).is_none();
    let replaced = || Ok(document.edited(vec![document.replace_content(section, lines_of(body))])?);
    match kind.merge_rule() {
        MergeRule::Replace => replaced(),
        MergeRule::Keep => {
            if says_nothing {
                replaced()
            } else {
                Ok(document.clone())
            }
        }
        MergeRule::Grow | MergeRule::Append if says_nothing => replaced(),
        MergeRule::Grow | MergeRule::Append => {
            let known: Vec<String> =
                content(document, section).map(|block| document.text_of(block)).collect();
            let new = blocks.iter().filter(|(_, text)| !known.contains(text));
            let mut document = document.clone();
            for (block, text) in new {
                let Some(section) = document.section(kind) else { break };
                let edit = match block.kind {
                    BlockKind::ListItem { .. } => {
                        document.append_items(section, std::slice::from_ref(text))
                    }
                    _ => document.append_block(section, lines_of(text)),
                };
                document = document.edited(vec![edit])?;
            }
            Ok(document)
        }
        MergeRule::Update => {
            let rows = blocks.iter().filter_map(|(block, text)| Some((block.kind.row()?, text)));
            let mut document = document.clone();
            let at = usize::from(kind == SectionKind::Breadcrumbs);
            for (cells, text) in rows {
                if cells.len() == 3 {
                    let key = cells.get(at).cloned().unwrap_or_default();
                    document = with_row(&document, kind, at, &key, text)?;
                }
            }
            Ok(document)
        }
    }
}

/// A document whose section has a row: in place of the one with its key, or at the end.
fn with_row(
    document: &Document,
    kind: SectionKind,
    column: usize,
    key: &str,
    row: &str,
) -> Result<Document> {
    let Some(section) = document.section(kind) else { return Ok(document.clone()) };
    let is_it = |block: &&Block| {
        block.kind.row().and_then(|cells| cells.get(column)).is_some_and(|cell| cell == key)
    };
    let edit = match document.blocks_of(section).iter().find(is_it) {
        Some(block) => {
            let lines = block.lines.clone();
            Some(Edit::replace(lines, vec![row.to_owned()]))
        }
        None => document.append_rows(section, vec![row.to_owned()]),
    };
    match edit {
        Some(edit) => Ok(document.edited(vec![edit])?),
        None => Ok(document.clone()),
    }
}

/// The checkpoint with the files that the calls in some passages wrote.
fn with_files(checkpoint: &Checkpoint, passages: &[Passage]) -> Result<Checkpoint> {
    let mut draft = Draft::new();
    passages.iter().for_each(|passage| draft.see_rendered(passage));
    let mut document = checkpoint.document().clone();
    for (path, row) in draft.rows() {
        document = with_row(&document, SectionKind::ArtifactTrail, 0, &path, &row)?;
    }
    Ok(match checkpoint.id() {
        Some(id) => Checkpoint::from(document).named(id),
        None => Checkpoint::from(document),
    })
}

/// The checkpoint as a summary: without its header and the sections that say nothing.
fn summary(checkpoint: &Checkpoint, limit: u64, counter: &dyn TokenCounter) -> Result<String> {
    let mut text = String::new();
    for section in checkpoint.document().sections() {
        let document = checkpoint.document();
        let body = document.body_of(section);
        let is_silent = section.kind().is_some_and(|kind| said(checkpoint, kind).is_none());
        if is_silent || section.level == 0 || document.content_of(section).trim().is_empty() {
            continue;
        }
        let mark = "#".repeat(section.level.into());
        let _ = writeln!(text, "{mark} {}\n\n{}\n", section.title, body.trim());
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let whole = Checkpoint::parse(text.trim_end())?;
    let shrunk = match shrink(&whole, limit, counter) {
        Ok(shrunk) => shrunk.checkpoint,
        Err(error) if error.kind() == crate::checkpoint::ErrorKind::Limit => {
            shorter(&whole, limit, counter)?
        }
        Err(error) => return Err(error.into()),
    };
    let text = shrunk.text().trim();
    if text.is_empty() {
        let message = "the checkpoint says nothing that could be a summary";
        return Err(Error::new(ErrorKind::Engine, message));
    }
    Ok(text.to_owned())
}

/// The checkpoint with the end of its Current State left out, as much as it takes to fit.
fn shorter(
    checkpoint: &Checkpoint,
    limit: usize,
    counter: &dyn TokenCounter,
) -> Result<Checkpoint> {
    let document = checkpoint.document();
    let blocks = document.section(SectionKind::CurrentState).map(|state| document.blocks_of(state));
    let blocks = blocks.unwrap_or_default();
    let without = |count: usize| -> Result<Checkpoint> {
        let gone =
            blocks.iter().rev().take(count).map(|block| document.remove_lines(block.lines.clone()));
        Ok(Checkpoint::from(document.edited(gone.collect())?))
    };
    let fits =
        |count: usize| -> Result<bool> { Ok(shrink(&without(count)?, limit, counter).is_ok()) };
    let (mut low, mut high) = (1, blocks.len());
    if high == 0 || !fits(high)? {
        return Ok(shrink(&without(high)?, limit, counter)?.checkpoint);
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        if fits(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(shrink(&without(low)?, limit, counter)?.checkpoint)
}

impl fmt::Debug for CheckpointEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointEngine").field("inner", &self.inner).finish_non_exhaustive()
    }
}
