use super::{
    Damage, DamageReason, RecordFile, RecordInfo, ScanEntry, TornEnd, layout::FILE_HEADER,
};
use crate::Result;

/// What a record file holds, and where it ends: what a [`RecordWriter`](super::RecordWriter) goes on
/// from, and what its readers go by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The records whose headers are sound; of the last one the payload is too.
    pub records: Vec<RecordInfo>,
    /// Damage in the middle.
    pub damage: Vec<Damage>,
    /// What follows the last record: what a crash left of one, or what a writer has written of one.
    pub torn: Option<TornEnd>,
}

impl RecordFile {
    /// Reads the headers of all records, and the payloads of the last ones until one is sound: a
    /// crash may keep the header of a record, and not all of its payload.
    ///
    /// One read of 36 bytes for each record, and each byte of what is checked once.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where the last records were written for
    /// other places in the file, so that it is not safe to say where it ends;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn survey(&self) -> Result<Survey> {
        let length = self.length()?;
        let mut found = Survey::default();
        let mut reason = None;
        for entry in self.outline_to(length) {
            match entry? {
                ScanEntry::Record(record) => found.records.push(record),
                ScanEntry::Damage(stretch) => found.damage.push(stretch),
                ScanEntry::Torn(torn) => reason = Some(torn.reason),
            }
        }
        let (_, end) = after(found.records.last());
        let is_displaced = |stretch: &&Damage| {
            stretch.offset >= end && matches!(stretch.reason, DamageReason::Displaced { .. })
        };
        if let Some(displaced) = found.damage.iter().find(is_displaced) {
            return Err(displaced.to_error());
        }
        let mut block = Vec::new();
        while let Some(last) = found.records.last() {
            let failed = match self.header(last.position.offset(), length)? {
                Ok(header) => self.check(header, &mut block)?,
                Err(failed) => Some(failed),
            };
            if failed.is_none() {
                break;
            }
            reason = failed;
            found.records.pop();
        }
        let (record, offset) = after(found.records.last());
        // The tail is named after the check that its first record failed.
        let first =
            found.damage.iter().find(|stretch| stretch.offset == offset && stretch.length > 0);
        let reason = first.map(|stretch| stretch.reason).or(reason);
        found.damage.retain(|stretch| stretch.offset < offset);
        found.torn = reason.filter(|_| offset < length).map(|reason| TornEnd {
            record,
            offset,
            length: length - offset,
            reason,
        });
        Ok(found)
    }
}

/// The index and the offset of the record after `last`.
pub(super) fn after(last: Option<&RecordInfo>) -> (u64, u64) {
    last.map_or((0, FILE_HEADER), |last| (last.index.saturating_add(1), last.end()))
}
