//! Writing the frames of a transcript.

use std::{io::Write, path::Path, sync::Arc};

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
    lines: Vec<u8>,
    frames: u32,
}

impl FramesWriter {
    /// Begins a file in this folder.
    pub(super) fn create(files: &LateSync, folder: &Path) -> Result<Self> {
        let (records, _) =
            RecordWriter::open(Arc::new(files.clone()), folder.join(FRAMES), FRAMES_KIND)?;
        Ok(Self { records, table: FrameTable::default(), lines: Vec::new(), frames: 0 })
    }

    /// Adds a frame.
    pub(super) fn push(&mut self, row: FrameRow, frame: &Value) -> Result<()> {
        let start = self.lines.len();
        // Writing to memory cannot fail.
        let _ = write!(self.lines, "{frame}");
        check(self.lines.get(start..).unwrap_or_default())
            .map_err(|error| error.in_file(self.records.records().path()))?;
        self.lines.push(b'\n');
        self.table.rows.push(row);
        self.frames += 1;
        if self.lines.len() >= BATCH_BYTES { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        if self.frames > 0 {
            let position = self.records.append(&pack(&self.lines))?;
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

/// Checks that a line is not larger or deeper than what is read back: a frame holds what its
/// transcript says at some depth of its own.
fn check(line: &[u8]) -> Result<()> {
    if line.len() <= json::MAX_BYTES && deepest(line) <= MAX_DEPTH {
        return Ok(());
    }
    json::read(line)?;
    Ok(())
}

/// How deep a JSON text is nested.
fn deepest(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' | b'[' if !is_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        for (text, depth) in
            [("1", 0), ("[]", 1), (r#"{"a":[{}],"b":"[[[\"[[","c":[]}"#, 3), (r#"["}}]]",[1]]"#, 2)]
        {
            assert_eq!(deepest(text.as_bytes()), depth, "{text}");
        }
    }

    #[test]
    fn a_line_that_would_not_be_read_back_is_refused() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for depth in [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1] {
            let line = nested(depth);
            assert_eq!(check(line.as_bytes()).is_ok(), json::read(line.as_bytes()).is_ok());
        }
        assert!(check(nested(MAX_DEPTH + 1).as_bytes()).is_err());
    }
}
