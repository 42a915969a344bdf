//! Reading the exchanges of an archived transcript.

use std::path::Path;

use super::{EXCHANGES, EXCHANGES_KIND, damaged, exchange_record as record};
use crate::{
    Error, Result,
    log::{Files, RecordFile, ScanEntry, unpack},
    transcript::{BodyText, Exchange},
};

/// The most bytes of one exchange.
const MOST_BYTES: u64 = 4 << 30;
/// What a record may hold besides bodies.
const BESIDE_BODIES: u64 = 16 << 20;

/// Reads the exchanges in this folder, which are so many.
pub(super) fn read(files: &dyn Files, folder: &Path, count: u64) -> Result<Vec<Exchange>> {
    let path = folder.join(EXCHANGES);
    let records = RecordFile::open(files, &path, EXCHANGES_KIND)?;
    let most = record::most_bytes(records.length()?);
    let wrong = |index: u64, what: &dyn std::fmt::Display| -> Error {
        damaged(&path, what).at(|place| place.record = Some(index))
    };
    let (mut exchanges, mut before, mut bytes) = (Vec::new(), BodyText::default(), 0_u64);
    for entry in records.outline()? {
        let index = exchanges.len() as u64;
        let found = match entry? {
            ScanEntry::Record(found) if found.index == index && index < count => found,
            ScanEntry::Record(found) => {
                let what = format!("expected {count} exchanges, found record {}", found.index);
                return Err(wrong(index, &what));
            }
            ScanEntry::Damage(damage) => return Err(wrong(index, &damage)),
            ScanEntry::Torn(torn) => return Err(wrong(torn.record, &torn)),
        };
        let at = |error: Error| error.in_file(&path).at(|place| place.record = Some(index));
        let packed = records.read(found.position)?;
        let room = most.saturating_sub(bytes).saturating_add(BESIDE_BODIES).min(MOST_BYTES);
        let unpacked = unpack(&packed, room).map_err(|error| at(error.into()))?;
        let exchange = record::from_bytes(index, &unpacked, before.as_bytes())
            .ok_or_else(|| wrong(index, &"the record holds no exchange"))?;
        bytes = bytes.saturating_add(record::body_bytes(&exchange));
        if bytes > most {
            return Err(wrong(index, &format!("its exchanges hold more than {most} bytes")));
        }
        before = exchange.request.clone();
        exchanges.push(exchange);
    }
    let found = exchanges.len() as u64;
    if found < count {
        return Err(wrong(found, &format!("expected {count} exchanges, found {found}")));
    }
    Ok(exchanges)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        log::DiskFiles,
        session::archive::{
            exchange_record::tests::exchange, exchanges_writer::ExchangesWriter,
            late_sync::LateSync,
        },
    };

    /// Writes so many exchanges. Each repeats the one before it.
    fn written(folder: &Path, count: usize) -> Vec<Exchange> {
        let mut writer = ExchangesWriter::create(&LateSync::default(), folder).unwrap();
        let list = |length: usize| format!("{{\"messages\":[{}]}}", "\"é\",".repeat(length));
        let exchanges: Vec<_> =
            (0..count).map(|length| exchange(&list(length), length % 2 == 1)).collect();
        exchanges.iter().for_each(|exchange| writer.push(exchange).unwrap());
        assert_eq!(writer.finish().unwrap(), count as u64);
        exchanges
    }

    #[test]
    fn exchanges_come_back_as_they_were() {
        let scratch = tempfile::tempdir().unwrap();
        let exchanges = written(scratch.path(), 40);
        assert_eq!(read(&DiskFiles, scratch.path(), 40).unwrap(), exchanges);
        // The list of the archive says how many there are.
        for other in [39, 41] {
            let error = read(&DiskFiles, scratch.path(), other).unwrap_err();
            assert_eq!(error.place().record, Some(other.min(40)), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_anywhere_is_an_error_with_its_record() {
        let scratch = tempfile::tempdir().unwrap();
        let exchanges = written(scratch.path(), 3);
        let path = scratch.path().join(EXCHANGES);
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = read(&DiskFiles, scratch.path(), 3).unwrap_err();
            assert_eq!(error.place().file.as_deref(), Some(&*path), "{error}");
            error
        };
        for end in 0..whole.len() {
            let error = refused(&whole[..end]);
            assert_eq!(error.place().record.is_some(), end >= 32, "{end}: {error}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let error = refused(&bytes);
            assert_eq!(error.place().record.is_some(), at >= 32, "{at}: {error}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(read(&DiskFiles, scratch.path(), 3).unwrap(), exchanges);
    }
}
