//! `archive.json`: the list of what is in a directory of archived transcripts.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::{self, Object, ObjectExt, Value, object},
    log::{DiskFiles, line, read_file, write_atomic},
    snapshot::{FrameSnapshot, Totals},
    transcript::{ImportReport, RecordNote, TranscriptFormat, UnknownRecord},
};

use super::MANIFEST;

const KIND: &str = "afterimage archive";
const VERSION: u64 = 1;
/// The most bytes of the list: as JSON a longer one would not be read, and its seal is short.
const MOST_BYTES: u64 = json::MAX_BYTES as u64 + 64;

/// What is known of an archived transcript besides its frames.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// The name of the session.
    pub session: Arc<str>,
    /// The sums of its frames.
    pub totals: Totals,
    /// The first frame with a system prompt.
    pub(super) system_from: Option<FrameSeq>,
    /// What the model sees after the last frame.
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

    fn to_json(&self) -> Object {
        let counts = |kinds: &BTreeMap<String, u64>| -> Object {
            kinds.iter().map(|(kind, count)| (kind.clone(), Value::from(*count))).collect()
        };
        let mut object = object! {
            "file": self.file.as_str(),
            "inputFormat": self.input_format.name(),
            "format": self.format.as_str(),
            "tokenizer": self.tokenizer.as_str(),
            "sessionsSeen": self.report.sessions,
            "skipped": counts(&self.report.skipped),
        };
        if !self.report.unread_requests.is_empty() {
            object.put("unreadRequests", counts(&self.report.unread_requests));
        }
        if let Some(first) = self.report.unknown.first() {
            let first = object! {
                "records": self.report.unknown_records,
                "line": first.line,
                "reason": first.reason.as_str(),
            };
            object.insert("notUnderstood".to_owned(), first.into());
        }
        if let Some(first) = self.report.notes.first() {
            let first = object! {
                "count": self.report.noted,
                "line": first.line,
                "text": first.text.as_str(),
            };
            object.insert("noted".to_owned(), first.into());
        }
        object.put("contextFrames", self.context_frames);
        if self.exchanges > 0 {
            object.insert("exchanges".to_owned(), self.exchanges.into());
        }
        object.insert("frameTable".to_owned(), self.frame_table.into());
        let sessions = self.sessions.iter().map(SessionEntry::to_json).collect::<Value>();
        object.insert("sessions".to_owned(), sessions);
        object
    }

    fn from_json(value: &Value) -> Result<Self, ManifestFault> {
        let mut report =
            ImportReport { sessions: number(value, "sessionsSeen")?, ..ImportReport::default() };
        let counts = |key: &'static str, kinds: &Value| {
            let kinds = kinds.as_object().into_iter().flat_map(Object::iter);
            let counted = kinds.map(|(kind, count)| Some((kind.clone(), count.as_u64()?)));
            counted.collect::<Option<BTreeMap<_, _>>>().ok_or(ManifestFault::Member(key))
        };
        let skipped = value.get("skipped").filter(|kinds| kinds.as_object().is_some());
        let skipped = skipped.ok_or(ManifestFault::Member("skipped"))?;
        report.skipped = counts("skipped", skipped)?;
        if let Some(unread) = value.get("unreadRequests") {
            report.unread_requests = counts("unreadRequests", unread)?;
        }
        if let Some(first) = value.get("notUnderstood") {
            report.unknown_records = number(first, "records")?;
            let reason = text(first, "reason")?.to_owned();
            report.unknown = vec![UnknownRecord { line: number(first, "line")?, reason }];
        }
        if let Some(first) = value.get("noted") {
            report.noted = number(first, "count")?;
            let text = text(first, "text")?.to_owned();
            report.notes = vec![RecordNote { line: number(first, "line")?, text }];
        }
        let input_format = TranscriptFormat::from_name(text(value, "inputFormat")?);
        let sessions = array(value, "sessions")?;
        Ok(Self {
            file: text(value, "file")?.to_owned(),
            input_format: input_format.ok_or(ManifestFault::Member("inputFormat"))?,
            format: text(value, "format")?.to_owned(),
            tokenizer: text(value, "tokenizer")?.to_owned(),
            report,
            context_frames: number(value, "contextFrames")?,
            exchanges: optional(value, "exchanges")?,
            frame_table: number(value, "frameTable")?,
            sessions: sessions.iter().map(SessionEntry::from_json).collect::<Result<_, _>>()?,
        })
    }
}

impl SessionEntry {
    fn to_json(&self) -> Object {
        let Totals { frames, chunks, bytes, tokens } = self.totals;
        let mut object = object! {
            "session": &*self.session,
            "frames": frames,
            "chunks": chunks,
            "bytes": bytes,
            "tokens": tokens,
        };
        if let Some(frame) = self.system_from {
            object.insert("systemFrom".to_owned(), frame.get().into());
        }
        if let Some(tail) = &self.tail {
            object.insert("tail".to_owned(), tail.to_json());
        }
        object
    }

    fn from_json(value: &Value) -> Result<Self, ManifestFault> {
        let tail = value.get("tail").cloned().map(FrameSnapshot::from_json).transpose();
        let totals = Totals {
            frames: number(value, "frames")?,
            chunks: number(value, "chunks")?,
            bytes: number(value, "bytes")?,
            tokens: number(value, "tokens")?,
        };
        let tail = tail.map_err(ManifestFault::Error)?.map(Arc::new);
        let system_from = value.get("systemFrom").and_then(Value::as_u64).map(FrameSeq::new);
        Ok(Self { session: text(value, "session")?.into(), totals, system_from, tail })
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
    let manifest = object! {
        "kind": KIND,
        "version": VERSION,
        "files": files.iter().map(TranscriptEntry::to_json).collect::<Value>(),
    };
    let line = line::seal(&Value::from(manifest).to_string())?;
    write_atomic(&DiskFiles, directory.join(MANIFEST), format!("{line}\n").as_bytes())?;
    Ok(())
}

/// Reads the list of a directory.
pub(super) fn read(directory: &Path) -> Result<Vec<TranscriptEntry>> {
    let path = directory.join(MANIFEST);
    let bytes = read_file(&DiskFiles, &path, MOST_BYTES)?;
    parse(&bytes).map_err(|wrong| {
        let error = match wrong {
            ManifestFault::Error(error) => error,
            ManifestFault::Member(name) => Error::new(
                ErrorKind::Shape,
                format!("the manifest of the archive has a wrong `{name}`; make the archive again"),
            ),
            ManifestFault::Version(found) => Error::new(
                ErrorKind::Version,
                format!(
                    "the archive is of version {found}, and this program reads version {VERSION}"
                ),
            ),
        };
        error.in_file(&path)
    })
}

enum ManifestFault {
    Error(Error),
    Member(&'static str),
    Version(u64),
}

fn parse(bytes: &[u8]) -> Result<Vec<TranscriptEntry>, ManifestFault> {
    // What is not UTF-8 fails the check, too.
    let text = String::from_utf8_lossy(bytes);
    let line = line::open(text.strip_suffix('\n').unwrap_or(&text))
        .map_err(|error| ManifestFault::Error(error.into()))?;
    let manifest =
        json::read(line.as_bytes()).map_err(|error| ManifestFault::Error(error.into()))?;
    if manifest.str_at("kind") != Some(KIND) {
        return Err(ManifestFault::Member("kind"));
    }
    match number(&manifest, "version")? {
        VERSION => array(&manifest, "files")?.iter().map(TranscriptEntry::from_json).collect(),
        version => Err(ManifestFault::Version(version)),
    }
}

fn number(value: &Value, key: &'static str) -> Result<u64, ManifestFault> {
    value.get(key).and_then(Value::as_u64).ok_or(ManifestFault::Member(key))
}

/// A number that is 0 where it is missing.
fn optional(value: &Value, key: &'static str) -> Result<u64, ManifestFault> {
    if value.get(key).is_none() { Ok(0) } else { number(value, key) }
}

fn text<'v>(value: &'v Value, key: &'static str) -> Result<&'v str, ManifestFault> {
    value.str_at(key).ok_or(ManifestFault::Member(key))
}

fn array<'v>(value: &'v Value, key: &'static str) -> Result<&'v [Value], ManifestFault> {
    value.get(key).and_then(Value::as_array).ok_or(ManifestFault::Member(key))
}
