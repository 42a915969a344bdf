//! Reading the frames of an archived transcript, one after the other or at any place.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use super::{
    FRAMES, FRAMES_KIND, damaged,
    frame_table::{Batch, FrameRow, FrameTable},
};
use crate::{
    Error, Result, json,
    log::{self, Files, Position, RecordFile},
    veil::Frame,
};

pub(super) struct FramesReader {
    records: RecordFile,
    pub(super) rows: Vec<FrameRow>,
    /// Each batch with the index of its first frame.
    batches: Vec<(usize, Batch)>,
    /// The batch that was read last.
    open: Mutex<Lines>,
}

/// The lines of a batch.
#[derive(Default)]
struct Lines {
    /// The index of the batch; `None` where none was read.
    batch: Option<usize>,
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl FramesReader {
    /// Opens the file in this folder, whose table begins there and lists so many frames.
    pub(super) fn open(files: &dyn Files, folder: &Path, table: u64, frames: u64) -> Result<Self> {
        let path = folder.join(FRAMES);
        let records = RecordFile::open(files, &path, FRAMES_KIND)?;
        let packed = records.read(Position::new(table))?;
        let bytes = log::unpack(&packed, FrameTable::most_bytes(frames))
            .map_err(|error| error.in_file(&path))?;
        let table = FrameTable::from_bytes(&bytes);
        let table = table.filter(|table| table.rows.len() as u64 == frames);
        let Some(FrameTable { batches, rows }) = table else {
            return Err(damaged(&path, "the frame table is damaged; make the archive again"));
        };
        let mut first = 0;
        let batches = batches.into_iter().map(|batch| {
            let at = first;
            first += batch.frames as usize;
            (at, batch)
        });
        Ok(Self { records, rows, batches: batches.collect(), open: Mutex::default() })
    }

    /// Reads a frame.
    pub(super) fn frame(&self, index: usize) -> Result<Frame> {
        let path = self.records.path();
        let batch = self.batches.partition_point(|(first, _)| *first <= index).checked_sub(1);
        let found = batch.and_then(|batch| Some((batch, self.batches.get(batch)?)));
        let Some((batch, (first, of))) = found else {
            return Err(damaged(path, "the frame does not exist"));
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.batch != Some(batch) {
            *open = Lines::default();
            let packed = self.records.read(of.position)?;
            let text = log::unpack(&packed, of.bytes).map_err(|error| error.in_file(path))?;
            let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            *open = Lines { batch: Some(batch), ends: ends.map(|(at, _)| at).collect(), text };
        }
        let line = open.line(index - first);
        let line = line.ok_or_else(|| damaged(path, "a frame is missing"))?;
        let named = |error: Error| error.in_file(path);
        let frame =
            json::read(line).map_err(Error::from).and_then(Frame::from_json).map_err(named)?;
        match self.rows.get(index) {
            Some(row) if row.sequence == frame.sequence => Ok(frame),
            _ => Err(damaged(path, "a frame is not the one that belongs there")),
        }
    }
}

impl Lines {
    fn line(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before)? + 1,
            None => 0,
        };
        self.text.get(start..end)
    }
}
