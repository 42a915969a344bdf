//! Reads a recording, also while it is written.

use std::{collections::HashMap, path::Path};

use afterimage_log::{
    Damage, DiskFiles, ErrorKind as LogKind, Files, OpenMode, Position, RecordFile, ScanEntry,
    TornEnd, borrowed_within, unpack,
};

use crate::{
    Error, ErrorKind, RequestBodies, Result,
    coding::{self, MOST_STORED, StoredBody},
    entry::{self, End, Entry, ResponseHead, Start},
    folder::{FILE_NAME, KIND},
};

/// A recording that is open for reading, as it was when it was opened.
#[derive(Debug)]
pub struct Recording {
    file: RecordFile,
    exchanges: Vec<Exchange>,
    damage: Vec<Damage>,
    torn: Option<TornEnd>,
    is_live: bool,
    bytes: u64,
}

/// An exchange of a recording.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Its number, which no other exchange of the recording has; later ones have greater numbers.
    pub number: u64,
    /// How it began.
    pub start: Start,
    /// What came before the body of the response; `None` where nothing came.
    pub response: Option<ResponseHead>,
    /// How it ended; `None` where it still runs, or nobody wrote its end.
    pub end: Option<End>,
    pub(crate) request: Option<(Position, StoredBody)>,
    /// The parts of a request that was too long to be held in memory.
    pub(crate) request_parts: Vec<Position>,
    parts: Vec<Position>,
    is_live: bool,
}

/// Whether an exchange came to its end: its request, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request and the response came to their ends, and all of both is stored.
    Complete,
    /// One of them did not, or not all of it is stored.
    Cut {
        /// What broke it off.
        reason: String,
    },
    /// Its end or its request is not there yet, and somebody is writing the recording.
    Running,
}

/// The stored bytes of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    bytes: Vec<u8>,
    cut: Option<String>,
}

impl Body {
    /// The body, unless it is a part of one.
    pub fn whole(&self) -> Option<&[u8]> {
        self.cut.is_none().then_some(self.bytes())
    }

    /// What is stored of the body.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Why the body is not whole; `None` where it is.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// What is stored of the body, with why that is not all of it.
    pub fn into_parts(self) -> (Vec<u8>, Option<String>) {
        (self.bytes, self.cut)
    }
}

impl Exchange {
    /// Whether it came to its end, by what its records say. Reading its bodies checks more.
    pub fn outcome(&self) -> Outcome {
        match (self.answer(), self.request_cut()) {
            // An answer may come to its end before its request does.
            (Outcome::Complete, Some(_)) if self.is_live && self.request.is_none() => {
                Outcome::Running
            }
            (Outcome::Complete, Some(reason)) => Outcome::Cut { reason: reason.to_owned() },
            (outcome, _) => outcome,
        }
    }

    /// How the stored bytes of the request are packed: its `content-encoding`. `None` where they
    /// are not packed, for a WebSocket, whose headers belong to its opening, and for a redacted body,
    /// which is stored as text.
    pub fn request_encoding(&self) -> Option<String> {
        self.start.content_encoding().filter(|_| !self.is_plain())
    }

    /// As [`Exchange::request_encoding`], of the response.
    pub fn response_encoding(&self) -> Option<String> {
        self.response.as_ref().filter(|_| !self.is_plain())?.content_encoding()
    }

    fn is_plain(&self) -> bool {
        self.start.is_websocket || self.start.is_redacted
    }

    /// Whether the response came to its end.
    fn answer(&self) -> Outcome {
        let cut = |reason: &str| Outcome::Cut { reason: reason.to_owned() };
        match (&self.end, &self.response) {
            (None, _) if self.is_live => Outcome::Running,
            (None, _) => cut(NO_END),
            (Some(End { cut: Some(reason), .. }), _) => cut(reason),
            (Some(_), None) => cut("no response was recorded"),
            (Some(end), _) if end.stored < end.bytes => cut(TOO_LONG),
            _ => Outcome::Complete,
        }
    }

    /// Why the request is not whole; `None` where it is.
    pub fn request_cut(&self) -> Option<&'static str> {
        match self.request {
            None if self.request_parts.is_empty() => Some("no request body was recorded"),
            None => Some(BROKE_OFF),
            Some((_, stored)) if !stored.ended => Some(BROKE_OFF),
            Some((_, stored)) if stored.stored < stored.total => {
                Some(if self.start.is_redacted { LEFT_OUT } else { TOO_LONG })
            }
            Some(_) => None,
        }
    }
}

const NO_END: &str = "its end is not recorded: the recorder was stopped, or could not write";
const LEFT_OUT: &str = "the request could not be redacted, and was left out";
const BROKE_OFF: &str = "the request broke off";
pub(crate) const TOO_LONG: &str = "the body is longer than what is stored of it";

impl Recording {
    /// Opens the recording in a folder; `None` where there is none.
    ///
    /// Reads the file once, and keeps no bodies. Damage and a torn tail are no errors:
    /// [`Recording::damage`] and [`Recording::torn`] tell of them.
    ///
    /// # Errors
    /// [`ErrorKind::Version`] for another version, [`ErrorKind::UnknownFormat`] and
    /// [`ErrorKind::Damaged`] where the file is none or its header is damaged, [`ErrorKind::Io`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Option<Self>> {
        Self::open_from(&DiskFiles, folder)
    }

    /// As [`Recording::open`], through these files. Reads the file once.
    ///
    /// # Errors
    /// Those of [`Recording::open`].
    pub fn open_from(files: &dyn Files, folder: impl AsRef<Path>) -> Result<Option<Self>> {
        let folder = folder.as_ref();
        let files = borrowed_within(files, folder);
        // Who holds the lock now may end what is read next, and not the other way round.
        let is_live = is_locked(&files, folder);
        let file = match RecordFile::open_unless_empty(&files, folder.join(FILE_NAME), KIND) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            Err(error) if is_missing(&files, folder) => {
                drop(error);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let bytes = file.length()?;
        let (exchanges, damage, torn) = Default::default();
        let mut recording = Self { file, exchanges, damage, torn, is_live, bytes };
        recording.read()?;
        Ok(Some(recording))
    }

    fn read(&mut self) -> Result<()> {
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut payload = Vec::new();
        for found in self.file.outline()? {
            let record = match found? {
                ScanEntry::Record(record) => record,
                ScanEntry::Damage(damage) => {
                    self.damage.push(damage);
                    continue;
                }
                ScanEntry::Torn(torn) => {
                    self.torn = Some(torn);
                    continue;
                }
            };
            // What was read a moment ago may be damaged now: then the payload is, or was cut.
            match self.file.read_into(record.position, &mut payload) {
                Ok(_) => {}
                Err(error) if error.kind() == LogKind::Damaged => continue,
                Err(error) => return Err(error.into()),
            }
            let Ok((number, entry)) = entry::of_bytes(&payload) else { continue };
            if entry == Entry::Run {
                self.exchanges.iter_mut().for_each(|exchange| exchange.is_live = false);
                continue;
            }
            if let Entry::Start(start) = entry {
                places.insert(number, self.exchanges.len());
                self.exchanges.push(Exchange {
                    number,
                    start,
                    response: None,
                    end: None,
                    request: None,
                    request_parts: Vec::new(),
                    parts: Vec::new(),
                    is_live: self.is_live,
                });
                continue;
            }
            let place = places.get(&number).and_then(|at| self.exchanges.get_mut(*at));
            // Without its start nothing is known of an exchange.
            let Some(exchange) = place else { continue };
            match entry {
                Entry::Start(_) | Entry::Run => {}
                Entry::Request(content) => {
                    let stored = coding::describe(content).ok();
                    exchange.request = stored.map(|stored| (record.position, stored));
                }
                Entry::RequestPart(_) => exchange.request_parts.push(record.position),
                Entry::Response(head) => exchange.response = Some(head),
                Entry::Part(_) => exchange.parts.push(record.position),
                Entry::End(end) => exchange.end = Some(end),
            }
        }
        Ok(())
    }

    /// The exchanges, in the order in which they began.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Whether somebody held the lock of the folder when it was opened.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Stretches of the file that hold no sound record, though others follow them.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// What follows the last sound record: of a recording that is written, what is not yet whole.
    pub fn torn(&self) -> Option<&TornEnd> {
        self.torn.as_ref()
    }

    /// The length of the file in bytes, when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The body of a request.
    ///
    /// Reads the record and those that it refers to, 16 at most; [`Recording::bodies`] reads one for
    /// each body, where they are read in order.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where a record is damaged or refers to none, [`ErrorKind::Io`].
    pub fn request(&self, exchange: &Exchange) -> Result<Body> {
        let bytes = self.bodies().request(exchange)?.to_vec();
        Ok(Body { bytes, cut: exchange.request_cut().map(str::to_owned) })
    }

    /// Reads the bodies of requests one after the other.
    pub fn bodies(&self) -> RequestBodies<'_> {
        RequestBodies::of(self)
    }

    pub(crate) fn file(&self) -> &RecordFile {
        &self.file
    }

    /// The body of a response, as far as it is stored.
    ///
    /// Reads each of its parts once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]. A part that is damaged is no error: the body is cut before it.
    pub fn response(&self, exchange: &Exchange) -> Result<Body> {
        let (bytes, lost) = self.joined(&exchange.parts)?;
        let stored = exchange.end.as_ref().map(|end| end.stored);
        let cut = match exchange.answer() {
            _ if lost.is_some() => lost,
            Outcome::Cut { reason } => Some(reason),
            Outcome::Running => Some("the exchange still runs".to_owned()),
            Outcome::Complete if stored != Some(bytes.len() as u64) => {
                Some("a part of the response is missing".to_owned())
            }
            Outcome::Complete => None,
        };
        Ok(Body { bytes, cut })
    }

    /// Parts one after the other, up to one that is damaged; what is said of that one.
    pub(crate) fn joined(&self, parts: &[Position]) -> Result<(Vec<u8>, Option<String>)> {
        let mut bytes = Vec::new();
        for part in parts {
            let room = MOST_STORED.saturating_sub(bytes.len() as u64);
            match self.part_at(*part, room) {
                Ok(part) => bytes.extend(part),
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => {
                    let lost = format!("a part is damaged: {}", error.message());
                    return Ok((bytes, Some(lost)));
                }
            }
        }
        Ok((bytes, None))
    }

    fn part_at(&self, position: Position, room: u64) -> Result<Vec<u8>> {
        let payload = self.file.read(position)?;
        match entry::of_bytes(&payload)? {
            (_, Entry::Part(packed) | Entry::RequestPart(packed)) => Ok(unpack(packed, room)?),
            _ => Err(self.damaged(position, "expected a part of a body")),
        }
    }

    pub(crate) fn damaged(&self, position: Position, message: &str) -> Error {
        let error = Error::new(ErrorKind::Damaged, message).in_file(self.file.path());
        error.at(|place| place.offset = Some(position.offset()))
    }
}

/// Whether somebody writes the recording in a folder now.
pub fn is_live(folder: impl AsRef<Path>) -> bool {
    let folder = folder.as_ref();
    is_locked(&borrowed_within(&DiskFiles, folder), folder)
}

/// Whether another holds the lock of a folder. It is taken for a moment to find out, where it is
/// there.
fn is_locked(files: &dyn Files, folder: &Path) -> bool {
    let Ok(lock) = files.open(&folder.join("lock"), OpenMode::Read) else { return false };
    matches!(lock.try_lock(), Ok(false))
}

fn is_missing(files: &dyn Files, folder: &Path) -> bool {
    let opened = files.open(&folder.join(FILE_NAME), OpenMode::Read);
    opened.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}
