//! Reading segments from the files of an archive.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{
    super::{
        directory::Totals, sealed_tables::SealedTables, state::Store, tables::Tables,
        text::SegmentText,
    },
    Places, codec,
};
use crate::{
    Error, Result,
    log::{FileKind, Files, Position, RecordFile},
};

pub(super) const SEGMENTS: (&str, FileKind) = ("segments.rec", FileKind::new(*b"aisegmt\0", 1));
pub(super) const TEXTS: (&str, FileKind) = ("texts.rec", FileKind::new(*b"aitexts\0", 1));
pub(super) const TABLES: (&str, FileKind) = ("tables.rec", FileKind::new(*b"aitable\0", 1));

/// The bytes of text that stay in memory after they were read; more where one segment has more.
const KEPT_BYTES: usize = 8 << 20;

/// The files of an archive, open for reading.
#[derive(Debug)]
pub(in super::super) struct StoreFiles {
    pub(super) files: Arc<dyn Files>,
    pub(super) directory: PathBuf,
    texts: OnceLock<RecordFile>,
    tables: OnceLock<RecordFile>,
    /// The texts that were read last, the newest at the end.
    recent: Mutex<VecDeque<(Position, Arc<SegmentText>)>>,
}

impl StoreFiles {
    pub(super) fn new(files: Arc<dyn Files>, directory: &Path) -> Self {
        let (texts, tables, recent) = Default::default();
        Self { files, directory: directory.to_owned(), texts, tables, recent }
    }

    pub(super) fn path(&self, (name, _): (&str, FileKind)) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads a record and makes something of its payload.
    fn read<T>(
        &self,
        cell: &OnceLock<RecordFile>,
        file: (&str, FileKind),
        position: Position,
        make: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let records = if let Some(records) = cell.get() {
            records
        } else {
            let records = RecordFile::open(&*self.files, self.path(file), file.1)?;
            cell.get_or_init(|| records)
        };
        let payload = records.read(position)?;
        make(&payload).map_err(|error: Error| {
            error.in_file(records.path()).at(|place| place.offset = Some(position.offset()))
        })
    }
}

impl Store for StoreFiles {
    fn tables(&self, places: Places, own: Totals) -> Result<Arc<SealedTables>> {
        self.read(&self.tables, TABLES, places.tables, |payload| {
            codec::unpack_tables(payload, own).map(Arc::new)
        })
    }

    fn text(&self, places: Places, tables: &Tables) -> Result<Arc<SegmentText>> {
        let lock = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = lock().iter().find(|(at, _)| *at == places.text) {
            return Ok(Arc::clone(text));
        }
        let text = self.read(&self.texts, TEXTS, places.text, |payload| {
            codec::unpack_text(payload, tables).map(Arc::new)
        })?;
        let mut recent = lock();
        recent.push_back((places.text, Arc::clone(&text)));
        let mut bytes: usize = recent.iter().map(|(_, text)| text.held().len()).sum();
        while bytes > KEPT_BYTES && recent.len() > 1 {
            bytes -= recent.pop_front().map_or(0, |(_, text)| text.held().len());
        }
        Ok(text)
    }
}
