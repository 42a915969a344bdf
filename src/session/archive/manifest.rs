//! `archive.json`: the list of what is in a directory of archived transcripts.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::{self, Fields, Value, object},
    log::{DiskFiles, line, read_file, write_atomic},
    snapshot::{FrameSnapshot, Totals},
    transcript::{ImportReport, LimitWindow, RecordNote, TranscriptFormat, UnknownRecord},
};

use super::MANIFEST;

const KIND: &str = "afterimage archive";
const VERSION: u64 = 1;
/// The most bytes of the list: as JSON a longer one would not be read, and its seal is short.
const MOST_BYTES: u64 = json::MAX_BYTES as u64 + 64;

/// What is known of an archived transcript besides its frames.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "WrittenEntry", into = "WrittenEntry")]
pub struct TranscriptEntry {
    /// The path as it was given.
    pub file: String,
    /// The format of the file.
    pub input_format: TranscriptFormat,
    /// The name of the format that rendered the frames.
    pub format: String,
    /// The id of what counted the tokens.
    pub tokenizer: String,
    /// What reading the transcript said; of the records that were not understood the first.
    pub report: ImportReport,
    /// The frames that tell something of the context.
    pub(super) context_frames: u64,
    /// How many exchanges are kept.
    pub exchanges: u64,
    /// Where the table of the frames begins.
    pub(super) frame_table: u64,
    /// Its sessions, in the order of their first frames.
    pub sessions: Vec<SessionEntry>,
}

/// What is known of a session in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The name of the session.
    pub session: Arc<str>,
    /// The sums of its frames.
    #[serde(flatten)]
    pub totals: Totals,
    /// The first frame with a system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_from: Option<FrameSeq>,
    /// What the model sees after the last frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tail: Option<Arc<FrameSnapshot>>,
}

impl TranscriptEntry {
    /// The sums of its sessions. O(sessions).
    pub fn totals(&self) -> Totals {
        sum(self.sessions.iter().map(|session| session.totals))
    }

    /// Whether frames may have left the context: what holds it then is known when all were read.
    pub fn may_replace(&self) -> bool {
        self.context_frames > 0
    }
}

/// The wire form of an entry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenEntry {
    file: String,
    input_format: String,
    format: String,
    tokenizer: String,
    sessions_seen: u64,
    skipped: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unread_requests: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitWindow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_understood: Option<WrittenUnknown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noted: Option<WrittenNote>,
    context_frames: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    exchanges: u64,
    frame_table: u64,
    sessions: Vec<SessionEntry>,
}

/// How many records were not understood, and the first of them.
#[derive(Serialize, Deserialize)]
struct WrittenUnknown {
    records: u64,
    line: u64,
    reason: String,
}

/// How many things were noted, and the first of them.
#[derive(Serialize, Deserialize)]
struct WrittenNote {
    count: u64,
    line: u64,
    text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<TranscriptEntry> for WrittenEntry {
    fn from(of: TranscriptEntry) -> Self {
        let (records, count) = (of.report.unknown_records, of.report.noted);
        let ImportReport {
            sessions, skipped, unread_requests, limits, folder, unknown, notes, ..
        } = of.report;
        let unknown = unknown.into_iter().next();
        let note = notes.into_iter().next();
        Self {
            file: of.file,
            input_format: of.input_format.name().to_owned(),
            format: of.format,
            tokenizer: of.tokenizer,
            sessions_seen: sessions,
            skipped,
            unread_requests,
            limits,
            folder,
            not_understood: unknown.map(|UnknownRecord { line, reason }| WrittenUnknown {
                records,
                line,
                reason,
            }),
            noted: note.map(|RecordNote { line, text }| WrittenNote { count, line, text }),
            context_frames: of.context_frames,
            exchanges: of.exchanges,
            frame_table: of.frame_table,
            sessions: of.sessions,
        }
    }
}

impl TryFrom<WrittenEntry> for TranscriptEntry {
    type Error = String;

    fn try_from(of: WrittenEntry) -> Result<Self, String> {
        let mut report = ImportReport {
            sessions: of.sessions_seen,
            skipped: of.skipped,
            unread_requests: of.unread_requests,
            limits: of.limits,
            folder: of.folder,
            ..ImportReport::default()
        };
        if let Some(WrittenUnknown { records, line, reason }) = of.not_understood {
            report.unknown_records = records;
            report.unknown = vec![UnknownRecord { line, reason }];
        }
        if let Some(WrittenNote { count, line, text }) = of.noted {
            report.noted = count;
            report.notes = vec![RecordNote { line, text }];
        }
        let expected =
            || format!("expected an `inputFormat` that is known, found {:?}", of.input_format);
        Ok(Self {
            file: of.file,
            input_format: TranscriptFormat::from_name(&of.input_format).ok_or_else(expected)?,
            format: of.format,
            tokenizer: of.tokenizer,
            report,
            context_frames: of.context_frames,
            exchanges: of.exchanges,
            frame_table: of.frame_table,
            sessions: of.sessions,
        })
    }
}

/// Adds totals up; a sum that outgrows 64 bits stays at their largest number.
pub(super) fn sum(all: impl Iterator<Item = Totals>) -> Totals {
    all.fold(Totals::default(), |sum, of| Totals {
        frames: sum.frames.saturating_add(of.frames),
        chunks: sum.chunks.saturating_add(of.chunks),
        bytes: sum.bytes.saturating_add(of.bytes),
        tokens: sum.tokens.saturating_add(of.tokens),
    })
}

/// Writes the list of a directory, which makes it one.
pub(super) fn write(directory: &Path, files: &[TranscriptEntry]) -> Result<()> {
    let files = json::to_value(files)?;
    let manifest = object! { "kind": KIND, "version": VERSION, "files": files };
    let line = line::seal(&Value::from(manifest).to_string())?;
    write_atomic(&DiskFiles, directory.join(MANIFEST), format!("{line}\n").as_bytes())?;
    Ok(())
}

/// Reads the list of a directory.
pub(super) fn read(directory: &Path) -> Result<Vec<TranscriptEntry>> {
    let path = directory.join(MANIFEST);
    let bytes = read_file(&DiskFiles, &path, MOST_BYTES)?;
    parse(&bytes).map_err(|error| {
        let error = match error.kind() {
            ErrorKind::Shape => Error::new(
                ErrorKind::Shape,
                format!("the manifest of the archive is wrong: {error}; make the archive again"),
            ),
            _ => error,
        };
        error.in_file(&path)
    })
}

fn parse(bytes: &[u8]) -> Result<Vec<TranscriptEntry>> {
    // What is not UTF-8 fails the check, too.
    let text = String::from_utf8_lossy(bytes);
    let line = line::open(text.strip_suffix('\n').unwrap_or(&text))?;
    let mut manifest = Fields::of(json::read(line.as_bytes())?, "a list of an archive")?;
    if manifest.string("kind")?.as_deref() != Some(KIND) {
        return Err(Error::expected(format_args!("{KIND:?}"), "another kind").under("kind"));
    }
    let version = Fields::required(manifest.u64("version")?, "version", "a version")?;
    if version != VERSION {
        let message = format!(
            "the archive is of version {version}, and this program reads version {VERSION}"
        );
        return Err(Error::new(ErrorKind::Version, message));
    }
    let files = Fields::required(manifest.take("files"), "files", "an array")?;
    Ok(json::from_value(files).map_err(|error| error.under("files"))?)
}
