//! Writing the exchanges of a transcript.

use std::{path::Path, sync::Arc};

use super::{EXCHANGES, EXCHANGES_KIND, exchange_record as record, late_sync::LateSync};
use crate::{
    Error, ErrorKind, Result,
    log::{RecordWriter, pack},
    transcript::{BodyText, Exchange},
};

pub(super) struct ExchangesWriter {
    records: RecordWriter,
    count: u64,
    /// The request of the last record.
    before: BodyText,
    /// The bytes of all bodies.
    bytes: u64,
}

impl ExchangesWriter {
    /// Begins a file in this folder.
    pub(super) fn create(files: &LateSync, folder: &Path) -> Result<Self> {
        let path = folder.join(EXCHANGES);
        let records = RecordWriter::create(Arc::new(files.clone()), path, EXCHANGES_KIND)?;
        Ok(Self { records, count: 0, before: BodyText::default(), bytes: 0 })
    }

    /// Adds an exchange.
    pub(super) fn push(&mut self, exchange: &Exchange) -> Result<()> {
        let bytes = record::to_bytes(self.count, exchange, self.before.as_bytes());
        self.records.append(&pack(&bytes))?;
        self.bytes = self.bytes.saturating_add(record::body_bytes(exchange));
        if self.bytes > record::most_bytes(self.records.end()) {
            let message = "the requests repeat more than an archive holds";
            let path = self.records.records().path();
            return Err(Error::new(ErrorKind::Limit, message).in_file(path));
        }
        self.before = exchange.request.clone();
        self.count += 1;
        Ok(())
    }

    /// Writes the rest, and tells how many there are.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.records.sync()?;
        Ok(self.count)
    }
}
