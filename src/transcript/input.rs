use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::{
    Decoder, Exchange, ImportReport, Record, TranscriptFormat,
    kimi_state::KimiState,
    lines::{Lines, is_blank},
    recent::Recent,
    sink::{REPEATED, Sink, is_identity},
    subagents,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, MAX_BYTES, Value},
};

/// How many lines, and how many bytes of them, are looked at to recognise the format.
const HEAD_LINES: usize = 256;
const HEAD_BYTES: usize = 8 << 20;

/// A transcript that is being read: an iterator of its records.
///
/// After an error it gives nothing more.
pub struct Transcript<R> {
    format: TranscriptFormat,
    decoder: Box<dyn Decoder>,
    /// Lines that were read to recognise the format.
    head: VecDeque<(u64, Vec<u8>)>,
    document: Option<Value>,
    lines: Lines<R>,
    sink: Sink,
    ended: bool,
    /// Where the input was opened, for errors.
    file: Option<PathBuf>,
    /// The files that are read after the input, and what opens them.
    more: VecDeque<PathBuf>,
    opens: Option<Opens<R>>,
    /// Whether such a file is read now.
    is_joined: bool,
    /// The lines that were read, of a format whose records have ids or times.
    seen: Recent<()>,
    /// The last line, where it is no JSON and has no end, and why: it may still be written.
    cut: Option<(u64, String, String)>,
}

type Opens<R> = fn(&Path) -> Result<R>;

impl Transcript<Box<dyn BufRead + Send>> {
    /// Opens a file and recognises its format. What is packed with gzip or zstd is unpacked, and
    /// UTF-16 is read by its mark ([`decoded`](super::decoded)). A database is read as
    /// [`Transcript::open_database`] reads it. After a session of Claude Code the
    /// files of its subagents are read ([`Transcript::join_subagents`]). Reads what
    /// [`Transcript::new`] reads, and lists the folder for files of subagents.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], and what [`Transcript::new`] refuses; these and the errors of reading on
    /// name the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if let Some(database) = Self::open_database(path, None)? {
            return Ok(database);
        }
        let named = |error: Error| error.in_file(path);
        let file = File::open(path).map_err(|error| named(Error::io(error, "cannot open")))?;
        let input = super::decoded(BufReader::with_capacity(1 << 16, file));
        let input = input.map_err(|error| named(Error::io(error, "cannot read")))?;
        let mut transcript = Self::new(input).map_err(named)?;
        transcript.file = Some(path.to_owned());
        transcript.name_session(path);
        transcript.join_subagents(path);
        Ok(transcript)
    }

    /// Opens a database in which a client keeps its sessions, as OpenCode does (with the feature
    /// `sqlite`): all of them, or the one of this id. `None` where the file is no database of SQLite. The
    /// client may write it meanwhile; what is read is as it was when it was opened.
    ///
    /// # Errors
    /// Those of [`database_sessions`](super::database_sessions), and [`ErrorKind::UnknownFormat`] where
    /// there is no such session.
    pub fn open_database(path: impl AsRef<Path>, session: Option<&str>) -> Result<Option<Self>> {
        let path = path.as_ref();
        let Some(lines) = super::database::open(path, session)? else { return Ok(None) };
        let transcript = Self::new(lines);
        let mut transcript = transcript.map_err(|error| error.in_file(path))?;
        transcript.file = Some(path.to_owned());
        Ok(Some(transcript))
    }

    /// Names the session that the file at `path` is of, where its client says it in another file beside,
    /// as Kimi Code does; else such a session is `1`. Reads that file.
    pub fn name_session(&mut self, path: impl AsRef<Path>) {
        if self.format != TranscriptFormat::Kimi {
            return;
        }
        let KimiState { session, folder } = KimiState::beside(path.as_ref()).unwrap_or_default();
        session.into_iter().for_each(|name| self.sink.session(&name));
        self.sink.report.folder = folder;
    }

    /// Reads the files of the subagents of the session that `path` holds after the input, each as
    /// sessions of their own ([`subagent_files`](super::subagent_files)); of other formats than Claude Code there are
    /// none. A file that cannot be read is a note. Lists two folders, and reads the first line of
    /// each file beside the session's.
    pub fn join_subagents(&mut self, path: impl AsRef<Path>) {
        if self.format == TranscriptFormat::ClaudeCode {
            self.join_subagent_files(subagents::subagent_files(path));
        }
    }

    /// As [`Transcript::join_subagents`], with the files that are known to belong to the session: to
    /// find them costs a listing of the folder, which many sessions may share.
    pub fn join_subagent_files(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        if self.format == TranscriptFormat::ClaudeCode {
            self.more = files.into_iter().collect();
            self.opens = Some(subagents::open);
        }
    }
}

impl Transcript<Box<dyn BufRead + Send>> {
    /// Opens a folder that is a recording: one of the wire (with the feature `record`), a trace bundle
    /// of Codex, or the raw bodies of Claude Code. `None` where it is none of them. Reads all
    /// bodies of the latter two, and compares the names of raw bodies in O(n²) time; of the wire
    /// the file is read once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where a file of it cannot be read. A payload that is missing is a note.
    pub fn open_folder(folder: impl AsRef<Path>) -> Result<Option<Self>> {
        let Some((format, reader)) = super::folder::open(folder.as_ref())? else { return Ok(None) };
        let nothing: Box<dyn BufRead + Send> = Box::new(std::io::empty());
        Ok(Some(Self {
            format,
            decoder: reader,
            head: VecDeque::new(),
            document: Some(Value::Null),
            lines: Lines::new(nothing),
            sink: Sink::default(),
            ended: false,
            more: VecDeque::new(),
            opens: None,
            is_joined: false,
            seen: Recent::default(),
            cut: None,
            file: Some(folder.as_ref().to_owned()),
        }))
    }
}

impl<R: BufRead> Transcript<R> {
    /// Recognises the format of `input` by its content. Reads its first 256 lines, or 8 MiB of
    /// them; a single document whole.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFormat`] for an empty input and for one of no known format,
    /// [`ErrorKind::Json`], [`ErrorKind::Utf8`] or [`ErrorKind::Limit`] where it is no JSON at
    /// all, [`ErrorKind::Io`].
    pub fn new(input: R) -> Result<Self> {
        Self::with_format(input, None)
    }

    /// Reads `input` as `format`; `None` recognises it. Reads what [`Transcript::new`] reads.
    ///
    /// # Errors
    /// As [`Transcript::new`].
    pub fn with_format(input: R, format: Option<TranscriptFormat>) -> Result<Self> {
        let mut lines = Lines::new(input);
        let mut head = Head::default();
        head.fill(&mut lines)?;
        let (found, document) = head.recognise(&mut lines, format)?;
        let (decoder, mut sink) = (found.decoder(), Sink::default());
        let document = document.map(|(document, mended)| {
            sink.report.mended_surrogates = mended;
            document
        });
        let head = if document.is_some() { VecDeque::new() } else { head.lines };
        Ok(Self {
            format: found,
            decoder,
            head,
            document,
            lines,
            sink,
            ended: false,
            file: None,
            more: VecDeque::new(),
            opens: None,
            is_joined: false,
            seen: Recent::default(),
            cut: None,
        })
    }

    /// The format that is being read.
    pub fn format(&self) -> TranscriptFormat {
        self.format
    }

    /// What was seen so far besides the frames.
    pub fn report(&self) -> &ImportReport {
        &self.sink.report
    }

    /// Keeps requests and responses too, whole, where the format holds any:
    /// [`Transcript::take_exchanges`] has them once everything was read.
    pub fn keep_exchanges(&mut self) {
        self.sink.keep_exchanges();
    }

    /// The exchanges since the last call, session by session, of a transcript that
    /// [keeps](Transcript::keep_exchanges) them. Those of recorded traffic come with the last
    /// frame.
    pub fn take_exchanges(&mut self) -> Vec<Exchange> {
        self.sink.take_exchanges()
    }

    /// Hands a record on, and keeps the request that it is.
    fn take(&mut self, value: Value, line: u64) {
        let first = self.sink.made();
        let is_kept = self.sink.keeps_exchanges();
        if self.sink.report.folder.is_none() && !self.is_joined {
            self.sink.report.folder = self.format.stated_folder(&value);
        }
        let mut request =
            if is_kept { Exchange::of_document(self.format, &value, line) } else { None };
        self.decoder.record(value, line, &mut self.sink);
        let frames = if is_kept { self.sink.frames_since(first) } else { Vec::new() };
        if let Some(mut exchange) = request.take() {
            exchange.place_frames(frames);
            self.sink.exchange(exchange);
        }
    }

    /// Whether a line with an id of its own stood in the file before.
    fn is_repeated(&mut self, value: &Value, line: &[u8]) -> bool {
        let mut ids = self.format.record_ids().iter().filter_map(|path| value.pointer(path));
        if !ids.any(|id| id.as_str().is_some_and(is_identity)) {
            return false;
        }
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        let is_known = self.seen.get(&line).is_some();
        self.seen.insert(&line, ());
        is_known
    }

    /// Goes on with the next file that belongs to the input; `false` where there is none.
    fn join_next(&mut self) -> bool {
        while let (Some(opens), Some(file)) = (self.opens, self.more.pop_front()) {
            let opened = opens(&file);
            self.sink.read_file(&file.file_name().unwrap_or_default().to_string_lossy());
            self.file = Some(file);
            self.is_joined = true;
            match opened {
                Ok(input) => {
                    self.lines = Lines::new(input);
                    return true;
                }
                Err(error) => self.note_joined(&error),
            }
        }
        false
    }

    /// Notes that a file of a subagent cannot be read to its end.
    fn note_joined(&mut self, error: &Error) {
        let name = self.file.as_deref().and_then(Path::file_name).unwrap_or_default();
        let text = format!("the subagent's file {}: {error}", name.to_string_lossy());
        self.sink.note(1, &text);
    }

    /// Reads on; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        if let Some(document) = self.document.take() {
            self.take(document, 1);
            return Ok(true);
        }
        let next = match self.head.pop_front() {
            Some(line) => Some(line),
            None => match self.lines.next() {
                Err(error) if self.is_joined => {
                    self.note_joined(&error);
                    None
                }
                next => next?,
            },
        };
        match next {
            None => {
                self.decoder.finish(&mut self.sink);
                // What stands before it keeps its frame when the line is whole.
                if let Some((number, reason, text)) = self.cut.take() {
                    self.sink.unread(number, reason, text);
                }
                if self.join_next() {
                    return Ok(true);
                }
                self.decoder.end(&mut self.sink);
                self.sink.finish();
                Ok(false)
            }
            Some((_, line)) if is_blank(&line) => Ok(true),
            Some((number, line)) => {
                match json::read_mended(&line) {
                    Ok((value, mended)) => {
                        self.sink.report.mended_surrogates += mended;
                        if self.is_repeated(&value, &line) {
                            self.sink.skip(REPEATED);
                        } else {
                            self.take(value, number);
                        }
                    }
                    Err(error) => {
                        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                        if line.ends_with(b"\n") {
                            self.sink.unread(number, error.message(), text);
                        } else {
                            self.cut = Some((number, error.message().to_owned(), text));
                        }
                    }
                }
                Ok(true)
            }
        }
    }
}

impl<R: BufRead> Iterator for Transcript<R> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.sink.ready.pop_front() {
                return Some(Ok(record));
            }
            if self.ended {
                return None;
            }
            match self.advance() {
                Ok(more) => self.ended = !more,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(match &self.file {
                        Some(file) => error.in_file(file),
                        None => error,
                    }));
                }
            }
        }
    }
}

/// The first lines of an input.
#[derive(Default)]
struct Head {
    lines: VecDeque<(u64, Vec<u8>)>,
    /// Whether the input ended within them.
    whole: bool,
}

impl Head {
    fn fill<R: BufRead>(&mut self, lines: &mut Lines<R>) -> Result<()> {
        let mut bytes = 0;
        while self.lines.len() < HEAD_LINES && bytes < HEAD_BYTES {
            let Some((number, line)) = lines.next()? else {
                self.whole = true;
                break;
            };
            bytes += line.len();
            self.lines.push_back((number, line));
        }
        // A long first line may be the whole document.
        if !self.whole && bytes >= HEAD_BYTES {
            match lines.next()? {
                Some(line) => self.lines.push_back(line),
                None => self.whole = true,
            }
        }
        if self.whole && self.lines.iter().all(|(_, line)| is_blank(line)) {
            return Err(Error::new(ErrorKind::UnknownFormat, "the input is empty"));
        }
        Ok(())
    }

    /// The format, and where the input is one document its value, with how many escapes of it were
    /// mended.
    fn recognise<R: BufRead>(
        &self,
        lines: &mut Lines<R>,
        forced: Option<TranscriptFormat>,
    ) -> Result<(TranscriptFormat, Option<(Value, u64)>)> {
        // Lines that each are a value come first: a document on one line is one of them, and the
        // lines of a document that is laid out over many are not values by themselves.
        let mut by_line = None;
        let mut values =
            self.lines.iter().filter(|(_, line)| !is_blank(line)).map(|(_, line)| line);
        let first = values.next().map_or(Ok((Value::Null, 0)), |line| json::read_mended(line));
        let is_single = self.whole && values.next().is_none();
        let may_be_unread = first.is_err() && forced.is_none();
        if let Some(found) = may_be_unread.then(|| self.unread()).flatten() {
            return Err(Self::unknown(found));
        }
        #[cfg(feature = "record")]
        if first.is_err() && self.is_cassette() {
            let bytes = self.rest(lines)?;
            let text = String::from_utf8_lossy(&bytes);
            let document = super::yaml::read(&text)?;
            return match forced.or_else(|| TranscriptFormat::of_document(&document)) {
                Some(format) => Ok((format, Some((document, 0)))),
                None => Err(Self::unknown_document(&document)),
            };
        }
        if !is_single {
            let read = |(_, line): &(u64, Vec<u8>)| json::read_mended(line).ok();
            by_line = self
                .lines
                .iter()
                .filter_map(read)
                .find_map(|(value, _)| TranscriptFormat::of_line(&value));
        }
        if let (Some(found), true) =
            (by_line, first.is_ok() || !self.whole || is_jsonl(&self.lines))
        {
            return Ok((forced.unwrap_or(found), None));
        }
        if let (Ok(_), false) = (&first, is_single) {
            // Values by line, in no format that is known.
            return forced
                .map(|format| (format, None))
                .ok_or_else(|| Self::unknown("lines of JSON"));
        }
        let (document, mended) = if is_single { first? } else { self.document(lines)? };
        let found = forced.or_else(|| TranscriptFormat::of_document(&document));
        match found.or_else(|| TranscriptFormat::of_line(&document)) {
            Some(format) => Ok((format, Some((document, mended)))),
            None => Err(Self::unknown_document(&document)),
        }
    }

    /// What the input is, if it is of a tool that is not read.
    fn unread(&self) -> Option<&'static str> {
        let head: Vec<u8> = self.lines.iter().flat_map(|(_, line)| line.iter().copied()).collect();
        super::unread::of_bytes(&head)
    }

    /// Whether it is a cassette in YAML.
    #[cfg(feature = "record")]
    fn is_cassette(&self) -> bool {
        let text: Vec<u8> =
            self.lines.iter().take(16).flat_map(|(_, line)| line.iter().copied()).collect();
        super::yaml::is_cassette(&String::from_utf8_lossy(&text))
    }

    fn document<R: BufRead>(&self, lines: &mut Lines<R>) -> Result<(Value, u64)> {
        Ok(json::read_mended(&self.rest(lines)?)?)
    }

    /// The whole input.
    fn rest<R: BufRead>(&self, lines: &mut Lines<R>) -> Result<Vec<u8>> {
        let mut bytes: Vec<u8> = Vec::new();
        for (_, line) in &self.lines {
            bytes.extend_from_slice(line);
        }
        while let Some((_, line)) = lines.next()? {
            bytes.extend_from_slice(&line);
            if bytes.len() > MAX_BYTES {
                let message = "a JSON document of more than 256 MiB; the limit is 256 MiB";
                return Err(Error::new(ErrorKind::Limit, message));
            }
        }
        Ok(bytes)
    }

    fn unknown_document(document: &Value) -> Error {
        match super::unread::of_document(document) {
            Some(found) => Self::unknown(found),
            None => Self::unknown(describe(document)),
        }
    }

    fn unknown(found: impl std::fmt::Display) -> Error {
        let message = format!("expected a transcript of a known format, found {found}");
        Error::new(ErrorKind::UnknownFormat, message)
    }
}

/// Whether most lines are values by themselves, although the first is not.
fn is_jsonl(lines: &VecDeque<(u64, Vec<u8>)>) -> bool {
    let values = lines.iter().filter(|(_, line)| json::read_mended(line).is_ok()).count();
    values * 2 > lines.len()
}

fn describe(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let keys: Vec<_> = object.keys().take(8).map(|key| format!("{key:?}")).collect();
            let more = if object.len() > keys.len() { ", …" } else { "" };
            match keys.as_slice() {
                [] => "an object without keys".to_owned(),
                keys => format!("an object with the keys {}{more}", keys.join(", ")),
            }
        }
        Value::Array(array) => match array.as_slice() {
            [] => "an empty array".to_owned(),
            [only] => format!("an array with {} alone", only.kind()),
            [first, ..] => {
                format!("an array of {} elements, the first of them {}", array.len(), first.kind())
            }
        },
        other => other.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_says_the_folder_at_its_own_place() {
        let check = |text: &str, folder: &str| {
            let mut transcript = Transcript::new(text.as_bytes()).unwrap();
            transcript.by_ref().for_each(|record| drop(record.unwrap()));
            assert_eq!(transcript.report().folder.as_deref(), Some(folder), "{text}");
        };
        for text in [
            r#"{"type":"user","sessionId":"s","cwd":"/w","message":{"role":"user","content":"x"}}"#,
            r#"{"timestamp":"2026-11-29T10:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w"}}"#,
            r#"{"type":"session.start","id":"1","data":{"sessionId":"s","context":{"cwd":"/w"}}}"#,
            "{\n  \"sessionId\": \"s\",\n  \"workspaceDirectory\": \"/w\",\n  \"history\": [\n    \
             {\"message\": {\"role\": \"user\", \"content\": \"x\"}}\n  ]\n}",
            "{\n  \"info\": {\n    \"id\": \"s\",\n    \"directory\": \"/w\"\n  },\n  \"messages\": [\n    \
             {\"info\": {\"role\": \"user\"}, \"parts\": [{\"type\": \"text\", \"text\": \"x\"}]}\n  ]\n}",
            r#"{"working_dir":"/w","message_count":0}"#,
        ] {
            check(text, "/w");
        }
        for (uri, folder) in [
            ("file:///w/tide%20%C3%A4%", "/w/tide ä%"),
            ("file:///c%3A/w", "c:/w"),
            ("vscode-remote://quay/w%20", "vscode-remote://quay/w%20"),
        ] {
            let history = r#"[{"message":{"role":"user","content":"x"}}]"#;
            let text =
                format!(r#"{{"sessionId":"s","workspaceDirectory":"{uri}","history":{history}}}"#);
            check(&text, folder);
        }
    }
}
