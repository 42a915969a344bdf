//! Writing the frames of a transcript.

use std::{path::Path, sync::Arc};

use crate::{
    Result,
    json::{self, MAX_DEPTH, Value},
    log::{RecordWriter, pack},
};

use super::{
    FRAMES, FRAMES_KIND,
    frame_table::{Batch, FrameRow, FrameTable},
    late_sync::LateSync,
};

/// Frames are packed together until they have this many bytes.
const BATCH_BYTES: usize = 256 << 10;

pub(super) struct FramesWriter {
    records: RecordWriter,
    table: FrameTable,
    /// The lines of the batch that is open, and how many they are.
    lines: String,
    frames: u32,
}

impl FramesWriter {
    /// Begins a file in this folder.
    pub(super) fn create(files: &LateSync, folder: &Path) -> Result<Self> {
        let path = folder.join(FRAMES);
        let records = RecordWriter::create(Arc::new(files.clone()), path, FRAMES_KIND)?;
        Ok(Self { records, table: FrameTable::default(), lines: String::new(), frames: 0 })
    }

    /// Adds a frame.
    pub(super) fn push(&mut self, row: FrameRow, frame: &Value) -> Result<()> {
        let start = self.lines.len();
        // Writing to memory cannot fail.
        let _ = frame.write(&mut self.lines);
        check(frame, self.lines.get(start..).unwrap_or_default())
            .map_err(|error| error.in_file(self.records.records().path()))?;
        self.lines.push('\n');
        self.table.rows.push(row);
        self.frames += 1;
        if self.lines.len() >= BATCH_BYTES { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        if self.frames > 0 {
            let position = self.records.append(&pack(self.lines.as_bytes()))?;
            let bytes = self.lines.len() as u64;
            self.table.batches.push(Batch { position, bytes, frames: self.frames });
            self.lines.clear();
            self.frames = 0;
        }
        Ok(())
    }

    /// Writes the rest, and tells where the table of the frames is.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.end_batch()?;
        let position = self.records.append(&pack(&self.table.to_bytes()))?;
        self.records.sync()?;
        Ok(position.offset())
    }
}

/// Checks that the line of a frame is not larger or deeper than what is read back: a frame holds what
/// its transcript says at some depth of its own.
fn check(frame: &Value, line: &str) -> Result<()> {
    if line.len() <= json::MAX_BYTES && is_within(frame, MAX_DEPTH) {
        return Ok(());
    }
    json::read(line.as_bytes())?;
    Ok(())
}

/// Whether a value is nested no deeper than so many levels.
fn is_within(value: &Value, levels: usize) -> bool {
    let levels = levels.checked_sub(1);
    let is_inside = |value: &Value| levels.is_some_and(|levels| is_within(value, levels));
    match value {
        Value::Array(array) => levels.is_some() && array.iter().all(is_inside),
        Value::Object(object) => levels.is_some() && object.values().all(is_inside),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_would_not_be_read_back_is_refused() {
        let nested = |depth: usize| {
            (0..depth).fold(Value::Null, |inside, level| match level % 2 {
                0 => Value::Array(vec![inside]),
                _ => Value::Object([("a".to_owned(), inside)].into_iter().collect()),
            })
        };
        for depth in [0, 1, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1] {
            let (frame, line) = (nested(depth), nested(depth).to_string());
            let is_read = json::read(line.as_bytes()).is_ok();
            assert_eq!(is_within(&frame, MAX_DEPTH), is_read, "{depth}");
            assert_eq!(check(&frame, &line).is_ok(), is_read, "{depth}");
        }
        assert!(check(&nested(MAX_DEPTH + 1), &nested(MAX_DEPTH + 1).to_string()).is_err());
    }
}
