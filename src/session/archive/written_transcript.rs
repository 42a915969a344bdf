use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use super::{TranscriptEntry, late_sync::LateSync};
use crate::{Error, ErrorKind, Result};

/// A transcript that is written, and has no place in its archive yet:
/// [`ArchiveBuilder::add`](super::ArchiveBuilder::add) gives it one. Its files are removed when it is
/// dropped before.
#[derive(Debug)]
#[must_use = "a transcript that is not given to `ArchiveBuilder::add` is not in the archive"]
pub struct WrittenTranscript {
    entry: TranscriptEntry,
    folder: FolderInMaking,
    /// What of it is not yet durable.
    files: LateSync,
}

impl WrittenTranscript {
    pub(super) fn new(entry: TranscriptEntry, folder: FolderInMaking, files: LateSync) -> Self {
        Self { entry, folder, files }
    }

    /// What the list of the archive will say of it.
    pub fn entry(&self) -> &TranscriptEntry {
        &self.entry
    }

    /// Moves it to its place in the archive that is known by `of`; `written` is to make it durable
    /// there.
    pub(super) fn place(
        self,
        of: &Arc<()>,
        place: &Path,
        written: &LateSync,
    ) -> Result<TranscriptEntry> {
        let folder = self.folder.path();
        if !self.folder.of.upgrade().is_some_and(|own| Arc::ptr_eq(&own, of)) {
            let message = "the transcript was written for another archive";
            return Err(Error::new(ErrorKind::Conflict, message).in_file(folder));
        }
        fs::rename(folder, place)
            .map_err(|error| Error::io(error, "move the folder").in_file(folder))?;
        written.take_moved(&self.files, folder, place);
        self.folder.keep();
        Ok(self.entry)
    }
}

/// A folder of an archive in the making. It is removed when it is dropped before it is kept; where
/// the archive is given up, that has removed it.
#[derive(Debug)]
pub(super) struct FolderInMaking {
    path: PathBuf,
    /// What the archive is known by.
    of: Weak<()>,
    is_kept: bool,
}

impl FolderInMaking {
    pub(super) fn new(path: PathBuf, of: &Arc<()>) -> Self {
        Self { path, of: Arc::downgrade(of), is_kept: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for FolderInMaking {
    fn drop(&mut self) {
        if !self.is_kept && self.of.strong_count() > 0 {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hud::Hud,
        id::{FacetType, Millis},
        session::archive::{ArchiveBuilder, TranscriptSource, open},
        tokens::Chars4,
        transcript::{ImportReport, Record, TranscriptFormat},
        veil::{Facet, FacetOp, Frame, Source},
    };

    fn source() -> TranscriptSource {
        TranscriptSource {
            file: "harbour".to_owned(),
            input_format: TranscriptFormat::Frames,
            format: "xml".to_owned(),
        }
    }

    fn written(builder: &ArchiveBuilder) -> WrittenTranscript {
        let hud = Hud::new(Arc::new(Chars4));
        let transcript = builder.transcript(source(), &hud, hud.counter()).unwrap();
        transcript.finish(&ImportReport::default()).unwrap()
    }

    #[test]
    fn a_transcript_of_which_something_could_not_be_written_is_not_finished() {
        let scratch = tempfile::tempdir().unwrap();
        let builder = ArchiveBuilder::create(scratch.path().join("archive")).unwrap();
        let hud = Hud::new(Arc::new(Chars4));
        let mut transcript = builder.transcript(source(), &hud, hud.counter()).unwrap();
        let mut push = |op: FacetOp| {
            let frame = Frame::new(1, Source::Environment).with(op);
            let record = Record { session: "harbour".into(), frame };
            transcript.push(record, None, Millis::new(0)).map_err(|error| error.kind())
        };
        assert!(push(FacetOp::remove("not there")).is_err());
        let facet = Facet::new("tide", FacetType::EVENT, "high water at 06:10");
        assert_eq!(push(FacetOp::add(facet)), Err(ErrorKind::Conflict));
        let refused = transcript.finish(&ImportReport::default()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(builder.finish().unwrap().transcripts.is_empty());
    }

    #[test]
    fn a_transcript_belongs_to_the_archive_that_it_was_written_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("archive");
        let given_up = ArchiveBuilder::create(&path).unwrap();
        let (early, dropped) = (written(&given_up), written(&given_up));
        drop(given_up);
        let builder = ArchiveBuilder::create(&path).unwrap();
        let own = [written(&builder), written(&builder)];
        assert_eq!(builder.add(early).unwrap_err().kind(), ErrorKind::Conflict);
        drop(dropped);
        own.into_iter().for_each(|own| builder.add(own).unwrap());
        drop(written(&builder));
        assert_eq!(builder.finish().unwrap().transcripts.len(), 2);
        assert_eq!(open(&path).unwrap().len(), 2);
        assert!(!path.join("making").exists());
    }
}
