//! The turns of a directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    layout::{Block, MOST_BYTES, TURNS, block},
    sealed,
};
use crate::{
    Error, ErrorKind, Result,
    log::{Files, LineDamage, LineScan, read_file, scan_lines, unpack_file},
    timeline::slot::{Line, Slot},
};

/// The turns of a directory, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) slots: Vec<Slot>,
    /// The checksum of each turn's line.
    pub(super) crcs: Vec<String>,
    /// The files, in order. Of two for the same turns, the one that was read.
    pub(super) blocks: Vec<Block>,
    /// Files that another one stands in for: what closing a file left behind.
    pub(super) spare: Vec<PathBuf>,
    pub(super) problems: Vec<Error>,
    /// The torn tail of the last file.
    pub(super) torn: Option<(PathBuf, LineDamage)>,
    /// The last file, where its last line lacks its end and nothing else.
    pub(super) unended: Option<PathBuf>,
    /// Copies of torn tails that were cut.
    pub(super) copies: Vec<String>,
}

/// The files of turns, the packed one first where there are two for the same turns.
pub(super) fn blocks(files: &dyn Files, directory: &Path) -> Result<Vec<Block>> {
    let names = sealed::names(files, &directory.join(TURNS))?;
    let mut blocks: Vec<Block> = names.iter().filter_map(|name| block(directory, name)).collect();
    blocks.sort_by_key(|block| (block.first, !block.is_packed));
    Ok(blocks)
}

/// The lines of a file, and why they are not all.
pub(super) fn scan(files: &dyn Files, block: &Block) -> Result<(LineScan, Option<Error>)> {
    let bytes = read_file(files, &block.path)?;
    if !block.is_packed {
        return Ok((scan_lines(&bytes), None));
    }
    let (bytes, error) = unpack_file(&bytes, MOST_BYTES);
    let scan = scan_lines(&bytes);
    let line = scan.lines.len() as u64 + 1;
    Ok((scan, error.map(|error| error.in_file(&block.path).at_line(line))))
}

/// How often a directory is listed anew whose files went while they were read.
const MOST_LISTED: usize = 32;

/// Reads all turns from `first` on. Whoever reads without the lock may find that a file was packed
/// between its name and its bytes; then all are listed anew.
pub(super) fn read(files: &dyn Files, directory: &Path, first: u64) -> Result<Turns> {
    for _ in 1..MOST_LISTED {
        match read_listed(files, directory, first) {
            Err(error) if sealed::is_gone(&error) => {}
            outcome => return outcome,
        }
    }
    read_listed(files, directory, first)
}

fn read_listed(files: &dyn Files, directory: &Path, first: u64) -> Result<Turns> {
    let mut turns = Turns::default();
    let names = sealed::names(files, &directory.join(TURNS))?;
    turns.copies = names.into_iter().filter(|name| name.contains(".torn-")).collect();
    let mut found = blocks(files, directory)?.into_iter().peekable();
    let mut expected = first;
    while let Some(block) = found.next() {
        if block.first < expected
            && turns.blocks.last().is_some_and(|last| last.first == block.first)
        {
            turns.spare.push(block.path);
            continue;
        }
        if block.first != expected {
            let message = format!(
                "expected a file with turn {expected}, found one with turn {}",
                block.first
            );
            turns.problems.push(Error::new(ErrorKind::Damaged, message).in_file(&block.path));
        }
        let (scan, error) = scan(files, &block)?;
        let other = found.peek().filter(|other| other.first == block.first).cloned();
        if (error.is_some() || !scan.damage.is_empty() || scan.torn.is_some()) && other.is_some() {
            // The plain file is still there: packing it was broken off, or went wrong.
            turns.spare.push(block.path);
            continue;
        }
        let is_last = found.peek().is_none_or(|next| next.first == block.first);
        let lines = scan.lines.len() as u64;
        turns.take(&block, scan, error, is_last);
        // What is missing here was said, and is not missing from the next file again.
        let whole = block.last.filter(|_| !is_last).map(|last| last + 1);
        expected = whole.unwrap_or(block.first + lines).max(block.first);
        turns.blocks.push(block);
    }
    Ok(turns)
}

impl Turns {
    fn take(&mut self, block: &Block, scan: LineScan, error: Option<Error>, is_last: bool) {
        let file: Arc<Path> = block.path.as_path().into();
        self.problems.extend(scan.damage.iter().map(|damage| damage.to_error(&*file)));
        self.problems.extend(error);
        match scan.torn {
            Some(torn) if is_last && !block.is_packed => {
                self.torn = Some((block.path.clone(), torn));
            }
            Some(torn) => self.problems.push(torn.to_error(&*file)),
            None if is_last && !scan.is_ended => self.unended = Some(block.path.clone()),
            None => {}
        }
        let (mut expected, count) = (block.first, scan.lines.len() as u64);
        for line in scan.lines {
            let named = |error: Error| error.in_file(&*file).at_line(line.number);
            if !line.text.starts_with(&format!("{{\"turnId\":{expected},")) {
                let found: String = line.text.chars().take(20).collect();
                let message = format!("expected turn {expected}, found {found:?}");
                self.problems.push(named(Error::new(ErrorKind::Damaged, message)));
            }
            expected += 1;
            self.crcs.push(line.crc);
            let line = Line { text: line.text, file: Arc::clone(&file), number: line.number };
            self.slots.push(Slot::Line(Arc::new(line)));
        }
        let whole = block.last.map(|last| (last + 1).saturating_sub(block.first));
        if let Some(whole) =
            whole.filter(|whole| count != *whole && (!is_last || block.is_packed || count > *whole))
        {
            let message = format!("expected {whole} turns, found {count}");
            let error = Error::new(ErrorKind::Damaged, message).in_file(&*file);
            self.problems.push(error.at_line(count + 1));
        }
    }
}
