use std::{collections::VecDeque, fmt};

use memchr::memmem::Finder;

use super::{
    Damage, DamageReason, RecordFile, RecordInfo,
    layout::{FILE_HEADER, RECORD_HEADER_SIZE, RECORD_MAGIC, RecordHeader},
};
use crate::Result;

/// How many bytes are searched at a time for the next record. More than a header has.
const WINDOW: usize = if cfg!(test) { 48 } else { 1 << 20 };

/// One thing that a [`Scan`] finds. Together the entries cover the file from its header to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEntry {
    /// A record that passes the checks.
    Record(RecordInfo),
    /// Damage that is no torn tail: a record follows it, or once did.
    Damage(Damage),
    /// The end of the file holds no record: what a crash leaves of writes that were not synced.
    Torn(TornEnd),
}

/// The end of a file, in which no record passes its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// The index of the first record that it cut.
    pub record: u64,
    /// Where it begins: after the last sound record.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Which check its first record failed.
    pub reason: DamageReason,
}

impl TornEnd {
    /// Whether the file ends before the record does: so an append that did not come to its end leaves
    /// it. Otherwise the bytes are there and fail their check. A loss of power can do that to what
    /// was not synced; so can a disk that changes what was.
    pub fn is_cut(&self) -> bool {
        matches!(self.reason, DamageReason::Cut { .. })
    }

    /// What may have come to pass, for people.
    pub(super) fn cause(&self) -> &'static str {
        cause(self.is_cut())
    }
}

/// What leaves a torn tail, for people.
pub(super) fn cause(is_cut: bool) -> &'static str {
    if is_cut {
        "as an append leaves it that did not come to its end"
    } else {
        "as a loss of power leaves an append that was not acknowledged, or a disk that changed one that was"
    }
}

impl fmt::Display for TornEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, offset, length, reason } = self;
        write!(f, "torn tail of {length} bytes: {reason} (record {record}, offset {offset})")
    }
}

/// What is checked of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Headers,
    Payloads,
}

/// The entries of a record file, in order; see [`RecordFile::scan`].
///
/// The file is read up to the length that it had when the scan began. After damage the next record
/// is where the damaged one ends, if its header is sound, and else where the next header is that
/// passes its check and was written for the place where it stands: a header inside of a payload is
/// passed over. The search reads what it looks through once for each record that fails its check.
///
/// After an error it gives nothing more.
#[derive(Debug)]
pub struct Scan<'f> {
    file: &'f RecordFile,
    depth: Depth,
    at: u64,
    end: u64,
    /// The index of the record that is expected next, and whether records before it may be lost.
    next: u64,
    lost: bool,
    /// Damage after which no sound record has been found yet.
    pending: Vec<Damage>,
    /// The first record that was written for another place, if none in its place follows.
    displaced: Option<Damage>,
    ready: VecDeque<ScanEntry>,
    done: bool,
    block: Vec<u8>,
}

impl<'f> Scan<'f> {
    pub(super) fn new(file: &'f RecordFile, end: u64, depth: Depth) -> Self {
        Self {
            file,
            depth,
            at: FILE_HEADER,
            end,
            next: 0,
            lost: false,
            pending: Vec::new(),
            displaced: None,
            ready: VecDeque::new(),
            done: false,
            block: Vec::new(),
        }
    }

    /// Looks at what is at the current offset.
    fn step(&mut self) -> Result<()> {
        if self.at >= self.end {
            self.finish();
            return Ok(());
        }
        let header = match self.file.header(self.at, self.end)? {
            Ok(header) => header,
            Err(reason) => return self.pass_over(None, reason),
        };
        let record = match header.fitting(self.end) {
            Ok(record) => record,
            Err(reason) => return self.pass_over(Some(header), reason),
        };
        if self.depth == Depth::Payloads
            && let Some(reason) = self.file.check(header, &mut self.block)?
        {
            return self.pass_over(Some(header), reason);
        }
        self.found(record);
        Ok(())
    }

    fn found(&mut self, record: RecordInfo) {
        self.displaced = None;
        self.ready.extend(self.pending.drain(..).map(ScanEntry::Damage));
        let in_order =
            if self.lost { record.index >= self.next } else { record.index == self.next };
        if !in_order {
            let reason = DamageReason::Index { expected: self.next, found: record.index };
            let damage = self.file.damage(record.index, self.at, 0, reason);
            self.ready.push_back(ScanEntry::Damage(damage));
        }
        self.ready.push_back(ScanEntry::Record(record));
        self.lost = false;
        self.next = record.index.saturating_add(1);
        self.at = record.end();
    }

    /// Notes the damage at the current offset and goes to the next record.
    fn pass_over(&mut self, header: Option<RecordHeader>, reason: DamageReason) -> Result<()> {
        let index = header.map_or(self.next, |header| header.index);
        // Up to where the header, if it is sound, says what the bytes are.
        let covered = header.map_or(self.at, |header| header.end().unwrap_or(u64::MAX));
        let next = match header.and_then(RecordHeader::end) {
            // The header says where the next one is.
            Some(next) if next <= self.end && self.file.header(next, self.end)?.is_ok() => next,
            _ => {
                if matches!(reason, DamageReason::Displaced { .. }) {
                    self.displace(self.at, reason);
                }
                self.search(self.at + 1, covered)?.unwrap_or(self.end)
            }
        };
        self.pending.push(self.file.damage(index, self.at, next - self.at, reason));
        self.lost |= header.is_none();
        self.next = index.saturating_add(u64::from(header.is_some()));
        self.at = next;
        Ok(())
    }

    fn displace(&mut self, at: u64, reason: DamageReason) {
        if self.displaced.is_none() {
            self.displaced = Some(self.file.damage(self.next, at, 0, reason));
        }
    }

    /// The first header from `from` on that was written for its place. Of those that were not, the
    /// ones before `covered` are the content of a payload.
    fn search(&mut self, mut from: u64, covered: u64) -> Result<Option<u64>> {
        let finder = Finder::new(&RECORD_MAGIC);
        let left = self.end.saturating_sub(from);
        let mut window = vec![0; usize::try_from(left).unwrap_or(WINDOW).min(WINDOW)];
        while from < self.end {
            // No header is in a hole, however long it is.
            let Some(data) = self.file.next_data(from)?.filter(|data| *data < self.end) else {
                break;
            };
            from = data;
            let read = self.file.fill(&mut window, from)?;
            let bytes = window.get(..read).unwrap_or_default();
            for start in finder.find_iter(bytes) {
                let at = from + start as u64;
                let Some(header) = bytes
                    .get(start..)
                    .and_then(|bytes| RecordHeader::read(bytes.get(..RECORD_HEADER_SIZE)?))
                else {
                    continue;
                };
                if header.offset == at {
                    return Ok(Some(at));
                }
                if at >= covered {
                    self.displace(at, DamageReason::Displaced { from: header.offset });
                }
            }
            if read < WINDOW {
                break;
            }
            // A header may lie across the end of the window.
            from += (WINDOW - (RECORD_HEADER_SIZE - 1)) as u64;
        }
        Ok(None)
    }

    /// Nothing sound follows what is pending.
    fn finish(&mut self) {
        self.done = true;
        if let Some(displaced) = self.displaced.take() {
            let is_named = self.pending.iter().any(|damage| damage.offset == displaced.offset);
            self.ready.extend(self.pending.drain(..).map(ScanEntry::Damage));
            self.ready.extend((!is_named).then_some(ScanEntry::Damage(displaced)));
        } else if let Some(first) = self.pending.drain(..).next() {
            self.ready.push_back(ScanEntry::Torn(TornEnd {
                record: first.record,
                offset: first.offset,
                length: self.end - first.offset,
                reason: first.reason,
            }));
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<ScanEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.done {
            if let Err(error) = self.step() {
                self.done = true;
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl std::iter::FusedIterator for Scan<'_> {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::*, *};

    const KIND: FileKind = FileKind::new(*b"test\0\0\0\0", 1);

    #[test]
    fn the_next_record_is_found_wherever_the_borders_of_windows_fall() {
        for length in 0..4 * WINDOW {
            let files = testing::MemoryFiles::new();
            let (mut writer, _) = RecordWriter::open(Arc::new(files.clone()), "a", KIND).unwrap();
            // Full of what looks like the beginning of a record.
            let mut payload = RECORD_MAGIC.repeat(length / RECORD_MAGIC.len() + 1);
            payload.truncate(length);
            let first = writer.append(&payload).unwrap();
            let second = writer.append(b"second").unwrap();
            let mut bytes = files.bytes("a").unwrap();
            bytes[first.offset() as usize] ^= 1;
            files.put("a", bytes);

            let file = RecordFile::open(&files, "a", KIND).unwrap();
            let entries: Vec<ScanEntry> = file.scan().unwrap().map(Result::unwrap).collect();
            let length = second.offset() - first.offset();
            let damage = file.damage(0, first.offset(), length, DamageReason::Header);
            let record = RecordInfo { index: 1, position: second, length: 6 };
            assert_eq!(entries, [ScanEntry::Damage(damage), ScanEntry::Record(record)]);
        }
    }

    #[test]
    fn records_that_were_appended_to_a_torn_one_are_found() {
        let files = testing::MemoryFiles::new();
        let mut bytes = KIND.header();
        let mut write = |index, length, payload: &[u8]| {
            let offset = bytes.len() as u64;
            RecordHeader { index, offset, length, crc: crc32fast::hash(payload) }.write(&mut bytes);
            bytes.extend(payload);
            offset
        };
        // The first says that it goes on to the middle of the last.
        let torn = write(0, 40, b"half");
        let next = write(1, 2, b"ab");
        write(2, 2, b"cd");
        files.put("a", bytes);
        let file = RecordFile::open(&files, "a", KIND).unwrap();
        let entries: Vec<ScanEntry> = file.scan().unwrap().map(Result::unwrap).collect();
        assert!(
            matches!(
                &entries[..],
                [ScanEntry::Damage(damage), ScanEntry::Record(second), ScanEntry::Record(_)]
                    if damage.offset == torn && second.position.offset() == next
            ),
            "{entries:?}"
        );
    }

    #[test]
    fn a_record_that_repeats_an_index_is_named_and_given() {
        let files = testing::MemoryFiles::new();
        let mut bytes = KIND.header();
        for index in [0, 1, 1, 5] {
            let offset = bytes.len() as u64;
            RecordHeader { index, offset, length: 0, crc: 0 }.write(&mut bytes);
        }
        files.put("a", bytes);
        let file = RecordFile::open(&files, "a", KIND).unwrap();
        let mut found = Vec::new();
        for entry in file.scan().unwrap() {
            found.push(match entry.unwrap() {
                ScanEntry::Record(record) => format!("{}", record.index),
                ScanEntry::Damage(damage) => damage.reason.to_string(),
                ScanEntry::Torn(torn) => torn.to_string(),
            });
        }
        let expected = [
            "0",
            "1",
            "expected record 2, found record 1",
            "1",
            "expected record 2, found record 5",
            "5",
        ];
        assert_eq!(found, expected);
    }
}
