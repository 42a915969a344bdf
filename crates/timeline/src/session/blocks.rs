//! The turns of a directory.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    layout::{Block, MOST_BYTES, TURNS, block},
    sealed,
};
use crate::{
    Error, ErrorKind, Result,
    log::{Files, LineDamage, LineScan, read_file, scan_at_most, scan_file, unpack_file},
    slot::{Line, Slot},
};

/// The turns of a directory, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) slots: Vec<Slot>,
    /// The checksum of each turn's line.
    pub(super) crcs: Vec<String>,
    /// The last turn that is there, whatever is missing before it; one less than the first where none
    /// is.
    pub(super) last: u64,
    /// The files, in order. Of two for the same turns, the one that was read.
    pub(super) blocks: Vec<Block>,
    /// Files that another one stands in for: what closing a file left behind.
    pub(super) spare: Vec<PathBuf>,
    pub(super) problems: Vec<Error>,
    /// The turns that went with what is damaged.
    pub(super) lost: Vec<RangeInclusive<u64>>,
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
    if !block.is_packed {
        return Ok((scan_file(files, &block.path, MOST_BYTES)?.1, None));
    }
    let bytes = read_file(files, &block.path, MOST_BYTES)?;
    let (bytes, error) = unpack_file(&bytes, MOST_BYTES);
    // One more than belongs there tells that there are too many.
    let whole = block.last.map(|last| last.saturating_add(1).saturating_sub(block.first));
    let whole = whole.filter(|whole| *whole <= MOST_TURNS).unwrap_or(u64::MAX - 1);
    let scan = scan_at_most(&bytes, usize::try_from(whole + 1).unwrap_or(usize::MAX));
    let line = scan.lines.len() as u64 + 1;
    Ok((scan, error.map(|error| error.in_file(&block.path).on_line(line).into())))
}

/// The most turns that a packed file is taken to have by its name; here it has fifty.
const MOST_TURNS: u64 = 10_000;

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
    let mut turns = Turns { last: first - 1, ..Turns::default() };
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
        let whole = block.last.filter(|_| !is_last).map(|last| last.saturating_add(1));
        expected = whole.unwrap_or(block.first.saturating_add(lines)).max(block.first);
        turns.blocks.push(block);
    }
    Ok(turns)
}

/// The number of the turn in a line.
fn turn_of(text: &str) -> Option<u64> {
    let number = text.strip_prefix("{\"turnId\":")?;
    number.get(..number.find(',')?)?.parse().ok()
}

impl Turns {
    fn take(&mut self, block: &Block, scan: LineScan, error: Option<Error>, is_last: bool) {
        let file: Arc<Path> = block.path.as_path().into();
        let torn_is_damage = !is_last || block.is_packed;
        let is_damaged =
            error.is_some() || !scan.damage.is_empty() || (torn_is_damage && scan.torn.is_some());
        if let Some(error) = error {
            // What cannot be unpacked shows as damaged lines too.
            self.problems.push(error);
        } else {
            let torn = scan.torn.iter().filter(|_| torn_is_damage);
            let damage = scan.damage.iter().chain(torn);
            self.problems.extend(damage.map(|damage| damage.to_error(&*file).into()));
        }
        match scan.torn {
            Some(torn) if !torn_is_damage => self.torn = Some((block.path.clone(), torn)),
            None if is_last && !scan.is_ended => self.unended = Some(block.path.clone()),
            _ => {}
        }
        let (mut expected, count) = (block.first, scan.lines.len() as u64);
        self.last = scan.lines.last().and_then(|line| turn_of(&line.text)).unwrap_or(self.last);
        let mut damage = scan.damage.iter().peekable();
        for (index, line) in scan.lines.into_iter().enumerate() {
            let is_after_damage =
                std::iter::from_fn(|| damage.next_if(|damage| damage.before <= index)).count() > 0;
            let found = turn_of(&line.text);
            match found {
                Some(found) if found == expected => {}
                Some(found) if is_after_damage && found > expected => {
                    self.lost.push(expected..=found - 1);
                }
                _ => {
                    let found: String = line.text.chars().take(20).collect();
                    let message = format!("expected turn {expected}, found {found:?}");
                    let error = Error::new(ErrorKind::Damaged, message);
                    self.problems.push(error.in_file(&*file).on_line(line.number));
                }
            }
            // What is missing is said once.
            expected = found.unwrap_or(expected).saturating_add(1);
            self.crcs.push(line.crc);
            let line = Line { text: line.text, file: Arc::clone(&file), number: line.number };
            self.slots.push(Slot::Line(Arc::new(line)));
        }
        let Some(last) = block.last else { return };
        let whole = last.saturating_add(1).saturating_sub(block.first);
        if is_damaged && expected <= last && torn_is_damage {
            self.lost.push(expected..=last);
        } else if !is_damaged && count != whole && (torn_is_damage || count > whole) {
            let message = format!("expected {whole} turns, found {count}");
            let error = Error::new(ErrorKind::Damaged, message).in_file(&*file);
            self.problems.push(error.on_line(count + 1));
        }
    }
}
