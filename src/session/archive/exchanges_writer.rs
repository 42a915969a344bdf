//! Writes the exchanges of a transcript.

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
    /// Creates the file in this folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub(super) fn create(files: &LateSync, folder: &Path) -> Result<Self> {
        let path = folder.join(EXCHANGES);
        let records = RecordWriter::create(Arc::new(files.clone()), path, EXCHANGES_KIND)?;
        Ok(Self { records, count: 0, before: BodyText::default(), bytes: 0 })
    }

    /// Adds an exchange. O(its bodies).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] where the bodies have more bytes than a file of this length may hold;
    /// [`ErrorKind::Io`].
    pub(super) fn push(&mut self, exchange: &Exchange) -> Result<()> {
        let bytes = record::to_bytes(self.count, exchange, self.before.as_bytes());
        self.records.append(&pack(&bytes))?;
        self.bytes = self.bytes.saturating_add(record::body_bytes(exchange));
        let (file, most) = (self.records.end(), record::most_bytes(self.records.end()));
        if self.bytes > most {
            let (number, bytes) = (self.count + 1, self.bytes);
            let message = format!(
                "exchange {number}: the bodies up to it have {bytes} bytes, and a file of {file} \
                 bytes may hold {most}"
            );
            let path = self.records.records().path();
            return Err(Error::new(ErrorKind::Limit, message).in_file(path));
        }
        self.before = exchange.request.clone();
        self.count += 1;
        Ok(())
    }

    /// Syncs the file. Returns the number of exchanges.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub(super) fn finish(mut self) -> Result<u64> {
        self.records.sync()?;
        Ok(self.count)
    }
}
