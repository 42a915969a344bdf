//! Recordings that are folders: recordings of the wire, trace bundles of Codex, and the raw bodies of
//! Claude Code.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use indexmap::IndexMap;

use super::{
    Decoder, TranscriptFormat, body::Payload, interaction::Interaction, shards::Shards, sink::Sink,
    wire::WireReader,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, MAX_BYTES, Object, ObjectExt, Value},
};

/// The file that makes a folder a recording of the wire.
const WIRE: &str = "wire.rec";
/// The files that make a folder a trace bundle.
const MANIFEST: &str = "manifest.json";
const EVENTS: &str = "trace.jsonl";
/// The folder of their payloads.
const PAYLOADS: &str = "payloads";
/// The versions of trace bundles that are known.
const SCHEMAS: [u64; 3] = [1, 2, 3];
/// The ends of the names of the files of raw bodies.
const REQUEST: &str = ".request.json";
const RESPONSE: &str = ".response.json";
/// The file that says which of them belong together.
const INDEX: &str = "index.jsonl";

/// A folder that was read: its exchanges in order, and what was odd.
#[derive(Debug, Default)]
pub(super) struct FolderReader {
    interactions: Vec<Interaction>,
    notes: Vec<(u64, String)>,
}

/// Reads a folder; `None` where it is no recording.
///
/// # Errors
/// [`ErrorKind::Io`], and [`ErrorKind::Json`] where the list of events or the manifest is damaged
/// so that nothing can be read.
pub(super) fn open(folder: &Path) -> Result<Option<(TranscriptFormat, Box<dyn Decoder>)>> {
    if folder.join(WIRE).is_file() {
        return wire(folder);
    }
    if folder.join(EVENTS).is_file() && folder.join(MANIFEST).is_file() {
        return Ok(Some((TranscriptFormat::CodexTrace, Box::new(bundle(folder)?))));
    }
    let names =
        fs::read_dir(folder).map_err(|error| Error::io(error, "cannot list").in_file(folder))?;
    let mut files = Vec::new();
    for entry in names {
        let entry = entry.map_err(|error| Error::io(error, "cannot list").in_file(folder))?;
        if let Ok(name) = entry.file_name().into_string()
            && (name.ends_with(REQUEST) || name.ends_with(RESPONSE) || name == INDEX)
        {
            let changed = entry.metadata().and_then(|data| data.modified());
            files.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), name));
        }
    }
    let names: Vec<&str> = files.iter().map(|(_, name)| name.as_str()).collect();
    if !is_recording_folder(&names) {
        return Ok(None);
    }
    files.retain(|(_, name)| name != INDEX);
    files.sort();
    let names: Vec<String> = files.into_iter().map(|(_, name)| name).collect();
    Ok(Some((TranscriptFormat::ClaudeBodies, Box::new(bodies(folder, &names)?))))
}

#[cfg(feature = "record")]
fn wire(folder: &Path) -> Result<Option<(TranscriptFormat, Box<dyn Decoder>)>> {
    super::flight::open(folder)
}

#[cfg(not(feature = "record"))]
fn wire(folder: &Path) -> Result<Option<(TranscriptFormat, Box<dyn Decoder>)>> {
    let message = "a recording of the wire is read with the feature `record` alone";
    Err(Error::new(ErrorKind::UnknownFormat, message).in_file(folder))
}

/// Whether a folder that holds files with these names is a recording: one of the wire, a trace bundle
/// of Codex, or the raw bodies of Claude Code. Of those alone whose requests have no response yet, and that no index
/// names, the requests are named by UUIDs. O(names).
///
/// ```
/// use afterimage::transcript::is_recording_folder;
///
/// assert!(is_recording_folder(&["trace.jsonl", "manifest.json"]));
/// assert!(is_recording_folder(&["lock", "wire.rec"]));
/// assert!(is_recording_folder(&["1.request.json", "1.response.json"]));
/// assert!(!is_recording_folder(&["notes.request.json", "session.jsonl"]));
/// ```
pub fn is_recording_folder(names: &[&str]) -> bool {
    let has = |name: &str| names.contains(&name);
    let ends = |end: &str| names.iter().any(|name| name.ends_with(end));
    let is_uuid = |stem: &str| {
        let groups: Vec<&str> = stem.split('-').collect();
        let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        lengths == [8, 4, 4, 4, 12] && groups.iter().all(is_hex)
    };
    let mut stems = names.iter().filter_map(|name| name.strip_suffix(REQUEST));
    has(WIRE)
        || has(EVENTS) && has(MANIFEST)
        || ends(REQUEST) && (ends(RESPONSE) || has(INDEX) || stems.any(is_uuid))
}

/// How long a file is, if it is one.
fn length(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    // A pipe would be waited for.
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(metadata.len())
}

/// Opens a file as it is unpacked.
fn opened(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    length(path)?;
    super::decoded(BufReader::new(File::open(path)?))
}

/// The text of a file, if it is no longer than a document may be.
fn text(path: &Path) -> Result<String> {
    let read = || -> io::Result<Vec<u8>> {
        if length(path)? > MAX_BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 256 MiB"));
        }
        fs::read(path)
    };
    let bytes = read().map_err(|error| Error::io(error, "cannot read").in_file(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An inference of a bundle.
#[derive(Default)]
struct Inference {
    line: u64,
    started: Option<u64>,
    ended: Option<u64>,
    request: Option<PayloadPlace>,
    response: Option<PayloadPlace>,
    failure: Option<String>,
}

/// Where a payload of a bundle stands.
enum PayloadPlace {
    /// In a file of its own.
    File(String),
    /// In a shard, under an id.
    Shard(u64, String),
    /// What a shard held.
    Read(Result<String>),
}

impl PayloadPlace {
    /// What a reference to a payload says.
    fn of(reference: &Value) -> Option<Self> {
        if let Some(path) = reference.str_at("path") {
            return Some(Self::File(path.to_owned()));
        }
        let id = reference.str_at("raw_payload_id")?;
        Some(Self::Shard(reference.get("shard")?.as_u64()?, id.to_owned()))
    }
}

/// Refuses a manifest, or an event, of a version that is not known.
fn check_schema(of: &Value, file: &Path) -> Result<()> {
    match of.get("schema_version") {
        Some(version) if !SCHEMAS.iter().any(|known| version.as_u64() == Some(*known)) => {
            let message =
                format!("expected a trace bundle of schema_version 1, 2 or 3, found {version}");
            Err(Error::new(ErrorKind::Version, message).in_file(file))
        }
        _ => Ok(()),
    }
}

/// Reads the payloads in shards, each shard once.
fn read_shards(shards: &mut Shards, mut places: Vec<&mut PayloadPlace>) {
    places.sort_by_key(|place| match place {
        PayloadPlace::Shard(number, _) => *number,
        _ => 0,
    });
    for place in places {
        if let PayloadPlace::Shard(number, id) = place {
            *place = PayloadPlace::Read(shards.payload(*number, id));
        }
    }
}

fn bundle(folder: &Path) -> Result<FolderReader> {
    let mut reader = FolderReader::default();
    let manifest = folder.join(MANIFEST);
    match json::read_mended(text(&manifest)?.as_bytes()) {
        Ok((of, _)) => check_schema(&of, &manifest)?,
        Err(error) => {
            reader.note(0, format!("a manifest that cannot be read: {}", error.message()));
        }
    }
    let log = folder.join(EVENTS);
    let events = text(&log)?;
    let mut inferences: IndexMap<String, Inference> = IndexMap::new();
    for (line, text) in (1..).zip(events.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let event = match json::read_mended(text.as_bytes()) {
            Ok((event, _)) => event,
            Err(error) => {
                reader.note(line, format!("an event that cannot be read: {}", error.message()));
                continue;
            }
        };
        check_schema(&event, &log)?;
        let Some(payload) = event.get("payload") else { continue };
        let Some(id) = payload.str_at("inference_call_id") else { continue };
        let inference = inferences.entry(id.to_owned()).or_default();
        let time = event.get("wall_time_unix_ms").and_then(Value::as_u64);
        let place = |key: &str| payload.get(key).and_then(PayloadPlace::of);
        match payload.str_at("type") {
            Some("inference_started") => {
                (inference.line, inference.started) = (line, time);
                inference.request = place("request_payload");
            }
            Some(kind) => {
                inference.ended = time;
                inference.response =
                    place("response_payload").or_else(|| place("partial_response_payload"));
                if kind != "inference_completed" {
                    let outcome = kind.strip_prefix("inference_").unwrap_or(kind);
                    let error = payload.str_at("error").or_else(|| payload.str_at("reason"));
                    let error = error
                        .map_or_else(|| outcome.to_owned(), |error| format!("{outcome}: {error}"));
                    inference.failure = Some(error);
                }
            }
            None => {}
        }
    }
    let places = inferences.values_mut().flat_map(|of| [&mut of.request, &mut of.response]);
    let mut shards = Shards::of(folder.join(PAYLOADS), opened);
    read_shards(&mut shards, places.flatten().collect());
    for inference in inferences.into_values() {
        let mut text = |place: PayloadPlace| match place {
            PayloadPlace::File(path) => inner(folder, &path).and_then(|path| text(&path)),
            PayloadPlace::Shard(number, id) => shards.payload(number, &id),
            PayloadPlace::Read(payload) => payload,
        };
        reader.inference(inference, &mut text);
    }
    Ok(reader)
}

impl FolderReader {
    fn note(&mut self, line: u64, text: impl Into<String>) {
        self.notes.push((line, text.into()));
    }

    fn inference(
        &mut self,
        inference: Inference,
        payload: &mut impl FnMut(PayloadPlace) -> Result<String>,
    ) {
        let Inference { line, started, ended, request, response, failure } = inference;
        let request = match request.map(&mut *payload) {
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                return self.note(line, format!("a request whose payload is missing: {error}"));
            }
            None => return self.note(line, "an inference whose start was not recorded"),
        };
        let response = match response.map(payload) {
            Some(Ok(text)) => of_bundle(&text),
            Some(Err(error)) => {
                self.note(line, format!("a response whose payload is missing: {error}"));
                Payload::Absent
            }
            None => Payload::Absent,
        };
        self.interactions.push(Interaction {
            uri: "/responses".to_owned(),
            request: Payload::Text(request.into()),
            response,
            started: started.map(|time| time.to_string()),
            duration_ms: started.zip(ended).and_then(|(start, end)| end.checked_sub(start)),
            failure,
            line,
            is_logged: true,
            ..Interaction::default()
        });
    }
}

/// The response of a bundle in the form of the Responses API.
fn of_bundle(text: &str) -> Payload {
    let Ok((Value::Object(mut recorded), _)) = json::read_mended(text.as_bytes()) else {
        return Payload::Unreadable("a response that is no object".to_owned());
    };
    let mut response = Object::new();
    for (own, theirs) in
        [("id", "response_id"), ("output", "output_items"), ("usage", "token_usage")]
    {
        response.put_some(own, recorded.shift_remove(theirs).filter(|value| *value != Value::Null));
    }
    Payload::Json(response.into())
}

/// A path that a file of the folder names, if it stays inside of it.
fn inner(folder: &Path, path: &str) -> Result<PathBuf> {
    let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        let message = format!("expected a path inside of the folder, found {path:?}");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    Ok(folder.join(path))
}

fn bodies(folder: &Path, names: &[String]) -> Result<FolderReader> {
    let mut reader = FolderReader::default();
    // A request with the response to it, in the order in which they came.
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    let index = folder.join(INDEX);
    if index.is_file() {
        for line in text(&index)?.lines() {
            let Ok(line) = json::read(line.as_bytes()) else { continue };
            let (request, response) = (named(&line, REQUEST, names), named(&line, RESPONSE, names));
            let known = |name: &String| pairs.iter().position(|(request, _)| request == name);
            let Some(request) = request else { continue };
            match known(&request).and_then(|at| pairs.get_mut(at)) {
                Some((_, answered)) => *answered = response.or_else(|| answered.take()),
                None => pairs.push((request, response)),
            }
        }
    }
    // Those that no index names: a response answers the last request before it that waits.
    let is_listed = |name: &String| {
        pairs.iter().any(|(request, response)| request == name || response.as_ref() == Some(name))
    };
    let rest: Vec<String> = names.iter().filter(|name| !is_listed(name)).cloned().collect();
    for name in rest {
        if name.ends_with(REQUEST) {
            pairs.push((name, None));
        } else if let Some((_, answer)) =
            pairs.iter_mut().rev().find(|(_, answer)| answer.is_none())
        {
            *answer = Some(name);
        } else {
            reader.note(0, format!("a response without a request: {name}"));
        }
    }
    for (line, (request, response)) in (1..).zip(pairs) {
        let body = |name: &str| text(&folder.join(name)).map(|text| Payload::Text(text.into()));
        let response = match response.map(|name| body(&name)) {
            Some(Ok(response)) => response,
            Some(Err(error)) => Payload::Unreadable(error.to_string()),
            None => Payload::Absent,
        };
        reader.interactions.push(Interaction {
            uri: "/messages".to_owned(),
            request: body(&request)?,
            response,
            line,
            is_logged: true,
            ..Interaction::default()
        });
    }
    Ok(reader)
}

/// The file with this ending that a line of the index names, whole or without the ending.
fn named(line: &Value, ending: &str, names: &[String]) -> Option<String> {
    let mut texts = line.as_object()?.values().filter_map(Value::as_str);
    let file = |text: &str| {
        let text = text.rsplit(['/', '\\']).next().unwrap_or(text);
        let name = if text.ends_with(ending) { text.to_owned() } else { format!("{text}{ending}") };
        names.contains(&name).then_some(name)
    };
    texts.find_map(file)
}

impl Decoder for FolderReader {
    fn record(&mut self, _value: Value, _line: u64, sink: &mut Sink) {
        for (line, note) in std::mem::take(&mut self.notes) {
            sink.note(line, &note);
        }
        let mut traffic = WireReader::default();
        for interaction in std::mem::take(&mut self.interactions) {
            traffic.take(interaction, sink);
        }
        traffic.give(sink);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static OPENED: Cell<usize> = const { Cell::new(0) };
    }

    /// A shard with one payload.
    #[expect(clippy::unnecessary_wraps, reason = "another one fails")]
    fn opens(_: &Path) -> io::Result<Box<dyn BufRead + Send>> {
        OPENED.set(OPENED.get() + 1);
        let shard = [&1_u16.to_le_bytes()[..], &2_u64.to_le_bytes(), b"p", b"{}"].concat();
        Ok(Box::new(io::Cursor::new(shard)))
    }

    #[test]
    fn each_shard_is_read_once_in_whatever_order_payloads_stand() {
        let mut shards = Shards::of(PathBuf::new(), opens);
        let mut places: Vec<_> =
            (0..9).map(|number| PayloadPlace::Shard(number % 3, "p".to_owned())).collect();
        read_shards(&mut shards, places.iter_mut().collect());
        let is_read =
            |place: &PayloadPlace| matches!(place, PayloadPlace::Read(Ok(text)) if text == "{}");
        assert!(places.iter().all(is_read));
        assert_eq!(OPENED.get(), 3);
    }
}
