//! A context from a file: as JSON, as text, or rendered of a transcript.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    export::{ExportedRequest, Form},
    hud::RenderRequest,
    id::Millis,
    json::{self, Value},
    request::{Recording, Request},
    transcript::{Api, SourceContent, TranscriptFormat},
    veil::History,
    window::RecordedCompactions,
};
use indexmap::IndexMap;

use super::{ComparedContext, args::Diff};
use crate::{
    args::Input,
    failure::{Failure, Outcome, Stop},
    fitting::histories,
    input::{self, Source},
    labels::{RecordingLabels, SessionLabels},
    lens::{Counting, Lens, Lenses, uncounted},
    output::note,
    recorded, store,
};

/// A context with where it comes from.
pub(super) struct LoadedContext {
    pub(super) name: String,
    pub(super) session: Option<String>,
    pub(super) exported: ExportedRequest,
    /// Of a request that was recorded, or worked out: itself.
    pub(super) request: Option<Request>,
    /// What is known of its frames; nothing of a context that was written down.
    pub(super) labels: SessionLabels,
    /// Says that the context was worked out from a transcript.
    note: Option<String>,
}

impl LoadedContext {
    /// The form of its messages: some APIs have the roles of Chat Completions, and are not that.
    pub(super) fn form(&self) -> &'static str {
        let form = self.exported.form();
        let api = self.request.as_ref().map(Request::api);
        match api.filter(|api| form == Form::OpenaiChat && *api != Api::Chat) {
            Some(api) => api.as_str(),
            None => form.as_str(),
        }
    }

    fn of_request(
        (name, session): (String, &str),
        request: Request,
        labels: &RecordingLabels<'_>,
    ) -> afterimage::Result<Self> {
        let exported = request.in_cache_order()?;
        let (session, labels) = (Some(session.to_owned()), labels.session(session));
        Ok(Self { name, session, exported, request: Some(request), labels, note: None })
    }

    /// The last requests of the sessions of a recording, as they were sent; none where it holds no
    /// whole requests.
    fn last_requests(
        name: impl Fn(usize) -> String,
        recording: &Recording,
    ) -> afterimage::Result<Vec<Self>> {
        let exchanges = recording.exchanges().iter().filter(|of| of.has_whole_request());
        let last: IndexMap<&str, usize> =
            exchanges.map(|exchange| (&*exchange.session, exchange.number)).collect();
        let labels = RecordingLabels::new(recording);
        let request = |(session, number): (&str, usize)| {
            Self::of_request((name(number), session), recording.request(number)?, &labels)
        };
        last.into_iter().map(request).collect()
    }

    pub(super) fn answer(&self) -> ComparedContext<'_> {
        let of_request = self.request.as_ref().map(|request| request.provenance().as_str());
        // What is said of a context is that it was worked out.
        let provenance = of_request.or(self.note.as_ref().map(|_| "reconstructed"));
        ComparedContext { file: &self.name, session: self.session.as_deref(), provenance }
    }
}

const WHAT: &str = "a context is what `render --as messages` or `compress --as …` prints";

/// Loads both contexts.
pub(super) fn load_both(args: &Diff) -> Outcome<(LoadedContext, LoadedContext)> {
    if input::is_stdin(&args.previous) && input::is_stdin(&args.next) {
        return Err(Failure::new("standard input can be read once, and stands for A and B").into());
    }
    let numbers = numbered(&args.previous).zip(numbered(&args.next));
    if let Some(((file, was), (other, is))) = numbers
        && file == other
    {
        let paths = [(was, &*args.previous), (is, &*args.next)];
        if let Ok([previous, next]) = <[_; 2]>::try_from(requests_of(&file, &paths, args)?) {
            note_both(&previous, &next);
            return Ok((previous, next));
        }
    }
    let load = |path: &Path, as_context: bool| {
        if let Some((file, number)) = numbered(path) {
            let mut loaded = requests_of(&file, &[(number, path)], args)?;
            let nothing = || Failure::new(format!("the file has no request {number}")).file(&file);
            return loaded.pop().ok_or_else(|| nothing().into());
        }
        let contexts = Reading { path, args, as_context }.contexts()?;
        chosen(contexts, args.session.as_deref(), path)
    };
    let (mut previous, mut next) = (load(&args.previous, false)?, load(&args.next, false)?);
    // A request is compared with a context as what the model read of it, where no form is asked for.
    let is_context = |of: &LoadedContext, other: &LoadedContext| {
        other.request.is_none() && of.exported.form() != other.exported.form()
    };
    let may_reload = |path: &Path| !input::is_stdin(path) && numbered(path).is_none();
    if may_reload(&args.previous) && previous.request.is_some() && is_context(&previous, &next) {
        previous = load(&args.previous, true)?;
    } else if may_reload(&args.next) && next.request.is_some() && is_context(&next, &previous) {
        next = load(&args.next, true)?;
    }
    note_both(&previous, &next);
    Ok((previous, next))
}

/// Says what both are. What is true of both is said once.
fn note_both(previous: &LoadedContext, next: &LoadedContext) {
    match (&previous.note, &next.note) {
        (Some(was), Some(is)) if was != is => {
            note(&format!("of {}: {was}", previous.name));
            note(&format!("of {}: {is}", next.name));
        }
        (was, is) => was.iter().chain(is.iter()).take(1).for_each(|said| note(said)),
    }
}

/// The file and the number of `FILE@NUMBER`, where there is no file of that whole name.
fn numbered(path: &Path) -> Option<(PathBuf, usize)> {
    let (file, number) = path.to_str()?.rsplit_once('@')?;
    let number = number.parse().ok()?;
    (!path.exists() && !file.is_empty()).then(|| (PathBuf::from(file), number))
}

/// Requests of a recording, by their numbers, each with what it is called. Reads the file once.
fn requests_of(
    file: &Path,
    numbers: &[(usize, &Path)],
    args: &Diff,
) -> Outcome<Vec<LoadedContext>> {
    let branches = args.branches.clone();
    let input = Input { branches, ..Input::of(vec![file.to_owned()]) };
    recorded::of_one_file(&input)?;
    let mut loaded = Vec::new();
    input::read(&input, true, input::InputRefusal::Ends, |source| {
        // The texts are counted when they are compared.
        let recording = recorded::read(source, &uncounted())?;
        let labels = RecordingLabels::new(&recording);
        for (number, path) in numbers {
            let session = args.session.as_deref();
            let request = recorded::numbered(source, &recording, *number, session)?;
            if let Some(note) = recorded::provenance_note(source.format(), request.provenance()) {
                source.note(&format!("request {number} is {note}"));
            }
            let session =
                recording.exchange(*number).map(|exchange| &*exchange.session).unwrap_or_default();
            let of = (path.display().to_string(), session);
            let request = LoadedContext::of_request(of, request, &labels);
            loaded.push(request.map_err(|error| source.refuse(error))?);
        }
        Ok(())
    })?;
    Ok(loaded)
}

/// The context of the session that is asked for, or the only one.
fn chosen(
    contexts: Vec<LoadedContext>,
    session: Option<&str>,
    path: &Path,
) -> Outcome<LoadedContext> {
    let names: Vec<&str> =
        contexts.iter().map(|context| context.session.as_deref().unwrap_or("(none)")).collect();
    let names = names.join(", ");
    let several = contexts.len() > 1;
    let mut fitting = contexts
        .into_iter()
        .filter(|context| session.is_none_or(|name| context.session.as_deref() == Some(name)));
    let (first, second) = (fitting.next(), fitting.next());
    match (first, second) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => {
            let failure = Failure::new("there are several contexts").file(&input::name(path));
            Err(failure.hint(format!("`--session NAME` takes one of {names}")).into())
        }
        (None, _) => {
            let what = session.unwrap_or_default();
            let failure =
                Failure::new(format!("there is no session {what:?}")).file(&input::name(path));
            let hint = if several { "the sessions are" } else { "the session is" };
            Err(failure.hint(format!("{hint} {names}")).into())
        }
    }
}

/// A context as it was written.
struct WrittenContext {
    /// `None` of a report that has none.
    context: Option<Value>,
    owners: Option<Value>,
    session: Option<String>,
}

impl WrittenContext {
    /// The context that is this JSON, or that stands in it.
    fn of(mut value: Value) -> afterimage::Result<Self> {
        let session = value.str_at("session").map(str::to_owned);
        // A report of `compress --json`.
        if let Value::Object(object) = &mut value
            && object.contains_key("budget")
            && object.contains_key("tokensBefore")
        {
            let mut take = |key: &str| object.shift_remove(key);
            return Ok(Self { context: take("context"), owners: take("owners"), session });
        }
        Form::of(&value)?;
        Ok(Self { context: Some(value), owners: None, session })
    }
}

struct Reading<'r> {
    path: &'r Path,
    args: &'r Diff,
    /// Whether the context is asked for of a file that holds requests.
    as_context: bool,
}

impl Reading<'_> {
    fn fail(&self, sentence: impl Into<String>) -> Failure {
        Failure::new(sentence).file(&input::name(self.path))
    }

    fn refuse(&self, error: afterimage::Error) -> Stop {
        match error.in_file(input::name(self.path)).into() {
            Stop::Failure(failure) => failure.hint(WHAT).into(),
            stop => stop,
        }
    }

    /// The contexts of the file: at least one.
    fn contexts(&self) -> Outcome<Vec<LoadedContext>> {
        if !input::is_stdin(self.path) && self.path.is_dir() {
            if store::open(self.path)?.is_some() || !input::is_folder_of_files(self.path) {
                return self.of_input();
            }
            let failure = self.fail("expected a file, found a directory");
            return Err(failure.hint(WHAT).into());
        }
        let bytes = input::whole(self.path)?;
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            None => Err(self.fail("expected a context, found an empty input").hint(WHAT).into()),
            Some(b'{' | b'[' | b'"') => self.of_json(&bytes),
            Some(_) => Ok(vec![self.of_text(bytes)?]),
        }
    }

    fn of_text(&self, bytes: Vec<u8>) -> Outcome<LoadedContext> {
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        let Some(text) = text else {
            return Err(self
                .fail("expected a context, found neither JSON nor text")
                .hint(WHAT)
                .into());
        };
        // A text that was printed ends its last line.
        let text = text.strip_suffix('\n').map(str::to_owned).unwrap_or(text);
        self.loaded(WrittenContext { context: Some(text.into()), owners: None, session: None })
    }

    fn of_json(&self, bytes: &[u8]) -> Outcome<Vec<LoadedContext>> {
        // A document, or one a line.
        let read = json::read(bytes).map(|value| vec![value]);
        let written = read.or_else(|error| Self::by_line(bytes).map_err(|_| error));
        let written = written.map_err(afterimage::Error::from).and_then(|values| {
            values
                .into_iter()
                .map(WrittenContext::of)
                .collect::<afterimage::Result<Vec<WrittenContext>>>()
        });
        let refused = match written {
            Ok(written) => return written.into_iter().map(|of| self.loaded(of)).collect(),
            Err(error) => error,
        };
        match self.of_transcript(bytes)? {
            Some(contexts) => Ok(contexts),
            // A text may begin as JSON does: `[thought] …`.
            None if !is_object(bytes) => Ok(vec![self.of_text(bytes.to_vec())?]),
            None => Err(self.refuse(refused)),
        }
    }

    /// The values of JSON by line.
    fn by_line(bytes: &[u8]) -> afterimage::Result<Vec<Value>> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| Ok(json::read(line)?)).collect()
    }

    fn loaded(&self, written: WrittenContext) -> Outcome<LoadedContext> {
        let WrittenContext { context, owners, session } = written;
        let Some(context) = context else {
            let failure = self.fail("expected a context, found a report without one");
            return Err(failure.hint("`compress --json --as …` puts it in").into());
        };
        let exported = ExportedRequest::from_json(context, owners);
        let exported = exported.map_err(|error| self.refuse(error))?;
        let name = self.path.display().to_string();
        let labels = SessionLabels::default();
        Ok(LoadedContext { name, session, exported, request: None, labels, note: None })
    }

    /// The requests that a source holds, with their tools and parameters: the last of each session.
    fn requests_of(&self, source: &mut Source) -> Outcome<Vec<LoadedContext>> {
        let recording = recorded::read(source, &uncounted())?;
        let is_document = recording.format().holds() == SourceContent::Context;
        // A document that holds an answer too is a session, whose whole context is compared.
        let is_request = matches!(recording.exchanges(), [only] if only.answer().is_none());
        let is_context = if is_document { !is_request } else { self.as_context };
        if is_context {
            return Ok(Vec::new());
        }
        let name = |number: usize| {
            let name = source.name();
            if is_document { name } else { format!("{name}@{number}") }
        };
        let requests = LoadedContext::last_requests(name, &recording);
        requests.map_err(|error| source.refuse(error))
    }

    /// The contexts of a transcript that was read whole; `None` where it is none.
    fn of_transcript(&self, bytes: &[u8]) -> Outcome<Option<Vec<LoadedContext>>> {
        let open = || Source::of_bytes(self.path, bytes.to_vec());
        if open().is_none() {
            return Ok(None);
        }
        if self.args.branches.is_asked() {
            if input::is_stdin(self.path) {
                let failure = self.fail("expected a file whose branches can be read");
                return Err(failure.hint("standard input can be read once").into());
            }
            return self.of_input().map(Some);
        }
        let contexts = self.of_sources(|take| open().as_mut().map_or(Ok(()), take))?;
        Ok((!contexts.is_empty()).then_some(contexts))
    }

    /// The contexts of the transcripts in an archive, of a recording, or of a transcript that is read
    /// by branches.
    fn of_input(&self) -> Outcome<Vec<LoadedContext>> {
        let branches = self.args.branches.clone();
        let input = Input { branches, ..Input::of(vec![self.path.to_owned()]) };
        let contexts =
            self.of_sources(|take| input::read(&input, true, input::InputRefusal::Ends, take))?;
        if contexts.is_empty() {
            return Err(self.fail("expected a context, found an empty archive").hint(WHAT).into());
        }
        Ok(contexts)
    }

    /// The last requests, or else the contexts after the last frames, of sources that can be read
    /// twice.
    fn of_sources(
        &self,
        mut each: impl FnMut(&mut dyn FnMut(&mut Source) -> Outcome) -> Outcome,
    ) -> Outcome<Vec<LoadedContext>> {
        let mut contexts = Vec::new();
        each(&mut |source| {
            contexts.extend(self.requests_of(source)?);
            Ok(())
        })?;
        if !contexts.is_empty() {
            return Ok(contexts);
        }
        let mut lenses = Lenses::new(&self.args.rendering, Counting::Always);
        each(&mut |source| {
            let lens = lenses.of(source)?;
            let histories = histories(source, &lens)?;
            let rendered = rendered(&source.name(), source.format(), histories, &lens);
            contexts.extend(rendered.map_err(|error| source.refuse(error))?);
            Ok(())
        })?;
        Ok(contexts)
    }
}

/// The contexts of sessions, after their last frames.
fn rendered(
    name: &str,
    format: TranscriptFormat,
    histories: IndexMap<Arc<str>, History>,
    lens: &Lens,
) -> afterimage::Result<Vec<LoadedContext>> {
    let contexts = histories.into_iter().map(|(session, history)| {
        let mut compactions = RecordedCompactions::default();
        compactions.follow(&lens.hud, &history, Millis::default())?;
        let request = RenderRequest {
            substitutions: compactions.blocks().to_vec(),
            ..RenderRequest::default()
        };
        let context = lens.hud.render(&history, &request, Millis::default())?;
        Ok(LoadedContext {
            name: name.to_owned(),
            session: Some(session.to_string()),
            exported: ExportedRequest::of_context(&context),
            request: None,
            labels: SessionLabels::of_history(&history),
            note: Some(recorded::note_of(format, std::iter::once(&history))),
        })
    });
    contexts.collect()
}

/// Whether a text begins as JSON objects do, or is JSON: what is wrong with it is then worth
/// saying.
fn is_object(bytes: &[u8]) -> bool {
    let shown = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    let start: Vec<u8> = shown.take(2).collect();
    matches!(start.as_slice(), b"{\"" | b"[{") || json::read(bytes).is_ok()
}
