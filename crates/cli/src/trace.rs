//! `afterimage trace`: who wrote it.

pub(crate) mod args;
mod candidates;
pub(crate) mod request;

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap, HashSet},
    io::Write,
    sync::Arc,
};

use afterimage::{
    id::{FrameSeq, Role},
    json::{Value, object, to_value},
    request::Exchange,
    session::archive::ArchivedTranscript,
    snapshot::{ChunkRef, FrameSnapshot, Substitution, SubstitutionKind, find_chunks_by_facet},
    text::TextRange,
    window::{ContextItem, FormerBlock, LeftAt},
};
use indexmap::IndexSet;
use serde::Serialize;

use self::request::{RequestHit, RequestHitAnswer, Shown};
use crate::{
    failure::{Failure, Outcome, Stop},
    hit::Hit,
    input::{self, Source},
    labels::FrameLabels,
    lens::{Counting, Counts, Lens, Lenses},
    output::{Json, Output, note},
    pages::{Page, Pages},
    phrase::Phrase,
    recorded, style,
    table::Table,
    text::{counted, grouped},
    view,
    wanted::FrameFilter,
};

pub(crate) fn run(args: &args::Trace) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut lenses = Lenses::new(&args.rendering, Counting::OnDemand);
    let phrase = args.target.phrase().map_err(Failure::new)?;
    if let Some(number) = args.request {
        return request::run(args, number, phrase.as_ref(), &mut out);
    }
    let mut hits = Hits::new(args.json, &mut out)?;
    // What is said of a session that the file has not.
    let mut missing = None;
    let outcome =
        input::each(&args.input.of_all_sessions(), args.json || !out.is_terminal, |source| {
            let lens = lenses.of(source)?;
            if phrase.is_some() {
                source.keep_exchanges();
            }
            hits.begin(source, &lens);
            missing = args.input.session.as_deref().map(|session| source.fail(no_session(session)));
            // What an archive knows of its frames tells which of them there is reason to look at.
            let promising = match source.archived() {
                Some(archived) => candidates::of(archived, args)?,
                None => Vec::new(),
            };
            let first =
                source.archived().map(ArchivedTranscript::first_session).transpose()?.flatten();
            let pages = Pages::only(promising, source, &lens)?.holding(phrase.as_ref()).labelled();
            let tracing = Tracing { args, phrase: phrase.as_ref(), lens: &lens };
            if let Some((message, byte)) = args.target.at {
                tracing.owner_of(pages, (message, byte), first, &mut hits, &mut out)?;
            } else {
                tracing.search(pages, &mut hits, &mut out)?;
            }
            Ok(out.flush()?)
        });
    hits.end(&mut out)?;
    outcome?;
    if hits.all > 0 {
        if let Some(text) = &hits.note {
            note(text);
        }
        return Ok(());
    }
    if let Some(session) =
        args.input.session.as_deref().filter(|name| !hits.sessions.contains(*name))
    {
        let failure = missing.filter(|_| hits.files == 1);
        let failure = failure.unwrap_or_else(|| Failure::new(no_session(session)));
        return Err(with_known(failure, &hits.sessions).into());
    }
    // One line, however many files there are: whoever searches a folder wants no list of it.
    match hits.files {
        1 => {
            note("no hit");
            hits.lacking.iter().for_each(|text| note(text));
        }
        files => note(&format!("no hit in {} files", grouped(files))),
    }
    Err(Stop::Negative)
}

fn no_session(name: &str) -> String {
    format!("there is no session {name:?}")
}

/// Names the sessions that there are.
fn with_known(failure: Failure, known: &IndexSet<Arc<str>>) -> Failure {
    let named: Vec<&str> = known.iter().take(NAMED).map(AsRef::as_ref).collect();
    let named = named.join(", ");
    match known.len() {
        0 => failure,
        1 => failure.hint(format!("the only session is {named}")),
        count if count > NAMED => {
            let more = grouped((count - NAMED) as u64);
            failure.hint(format!("the sessions are {named} and {more} more"))
        }
        _ => failure.hint(format!("the sessions are {named}")),
    }
}

/// A request with the tools that a frame tells of, and without a number.
fn request_with(tools: Vec<Value>, page: &Page) -> Exchange {
    let mut exchange = Exchange::default();
    exchange.session = Arc::clone(&page.session);
    exchange.line = page.labels.frame().line();
    exchange.replace_request(Value::from(object! { "tools": tools }).to_string());
    exchange
}

/// Writes hits as they are found.
struct Hits {
    is_json: bool,
    table: Table,
    file: Option<String>,
    session: Option<Arc<str>>,
    /// All sessions of the files so far.
    sessions: IndexSet<Arc<str>>,
    all: u64,
    in_file: u64,
    files: u64,
    /// What is to be said of the first context with a hit.
    note: Option<String>,
    /// What is to be said of a file without one.
    lacking: Option<String>,
    /// What counted the tokens of the file's hits.
    counts: Option<Counts>,
    /// Whether the last hit of the file stands in a request alone.
    is_in_requests: bool,
}

/// How many sessions are named where one is missing.
const NAMED: usize = 8;

impl Hits {
    fn new(is_json: bool, out: &mut Output) -> Outcome<Self> {
        if is_json {
            write!(out, "[")?;
        }
        Ok(Self {
            is_json,
            table: Hit::table(out),
            file: None,
            session: None,
            sessions: IndexSet::new(),
            all: 0,
            in_file: 0,
            files: 0,
            note: None,
            lacking: None,
            counts: None,
            is_in_requests: false,
        })
    }

    fn begin(&mut self, source: &Source, lens: &Lens) {
        self.counts = Some(lens.own_counts());
        self.file = source.is_one_of_several.then(|| source.name());
        (self.in_file, self.session, self.is_in_requests) = (0, None, false);
        self.files += 1;
    }

    fn found(&mut self, hit: &Hit<'_>, out: &mut Output) -> Outcome {
        if self.is_json {
            let counts = self.counts.as_ref().map(Counts::answer);
            self.write(&hit.answer(self.file.as_deref(), counts), out)?;
        } else {
            if self.in_file == 0
                && let Some(file) = &self.file
            {
                view::rule(out, file, style::HEADING, "")?;
            }
            let is_first = self.in_file == 0 && (self.all == 0 || self.file.is_some());
            let is_other = self.session.as_ref().is_some_and(|session| session != hit.session);
            if is_other || (is_first && &**hit.session != "1") {
                view::rule(out, &format!("session {}", hit.session), style::HEADING, "")?;
            }
            if is_first {
                self.table.head(out)?;
            }
            self.session = Some(Arc::clone(hit.session));
            hit.print(&self.table, out)?;
        }
        self.counted(out)
    }

    fn counted(&mut self, out: &mut Output) -> Outcome {
        self.all += 1;
        self.in_file += 1;
        Ok(out.flush_if_terminal()?)
    }

    /// Writes an element of the array.
    fn write(&self, hit: &impl Serialize, out: &mut Output) -> Outcome {
        let before = if self.all == 0 { "" } else { ",\n " };
        Ok(write!(out, "{before}{}", Json(&to_value(hit)?))?)
    }

    /// A place in the request of an exchange, which stands in no frame.
    fn found_in_request(
        &mut self,
        exchange: &Exchange,
        hit: &RequestHit,
        out: &mut Output,
    ) -> Outcome {
        if self.is_json {
            let session = Some(&*exchange.session);
            let request = Some(exchange.number).filter(|number| *number > 0);
            let file = self.file.as_deref();
            self.write(&RequestHitAnswer { file, session, request, ..hit.answer() }, out)?;
        } else {
            let table = RequestHit::table(true);
            if !std::mem::replace(&mut self.is_in_requests, true) {
                if let Some(file) = self.file.as_ref().filter(|_| self.in_file == 0) {
                    view::rule(out, file, style::HEADING, "")?;
                }
                view::rule(out, "in requests and answers, and in no frame", style::HEADING, "")?;
                table.head(out)?;
            }
            hit.print(&table, Some(exchange.number), out)?;
        }
        self.counted(out)
    }

    fn end(&self, out: &mut Output) -> Outcome {
        if self.is_json {
            writeln!(out, "]")?;
        } else if let Some(counts) = self.counts.as_ref().filter(|_| self.all > 0) {
            let dim = out.paint.style(style::DIM);
            writeln!(out, "{dim}Counted by {counts}{dim:#}")?;
        }
        Ok(out.flush()?)
    }
}

/// What is looked for, and who counts.
struct Tracing<'a> {
    args: &'a args::Trace,
    phrase: Option<&'a Phrase>,
    lens: &'a Lens,
}

/// What became of a frame after it was written.
#[derive(Clone, Copy, Default)]
struct Fate<'c> {
    left: Option<LeftAt>,
    /// What stands in its place.
    block: Option<&'c Substitution>,
}

impl Fate<'_> {
    fn mark(self, hit: Hit<'_>) -> Hit<'_> {
        let is_held = self.block.is_some_and(|block| hit.is_in(&block.snapshot));
        hit.left(self.left.filter(|_| !is_held))
    }
}

impl Tracing<'_> {
    fn search(&self, mut pages: Pages<'_, '_>, hits: &mut Hits, out: &mut Output) -> Outcome {
        let wanted = self.args.input.session.as_deref();
        let is_wanted = |session: &str| wanted.is_none_or(|wanted| wanted == session);
        let (mut held, mut found, mut tools) = (Vec::new(), BTreeMap::new(), Vec::new());
        while let Some(mut page) = pages.next(&mut FrameFilter::default())? {
            if !is_wanted(&page.session) {
                continue;
            }
            page.places = page.places.take().or_else(|| self.places(&page));
            tools.extend(page.tools.take().map(|told| request_with(told, &page)));
            if let Some(shown) = self.shown(&page) {
                found.insert((Arc::clone(&page.session), page.sequence), shown);
            }
            if pages.may_replace() {
                // Whether the context holds it is known after the last frame.
                let has_facet =
                    self.args.target.facet.as_ref().is_some_and(|facet| {
                        !find_chunks_by_facet(&*page.snapshot, facet).is_empty()
                    });
                let is_hit = has_facet || page.places.as_ref().is_some_and(|of| !of.is_empty());
                held.extend((is_hit || page.changes_context).then_some(page));
            } else {
                let of = (&page.session, Some(page.sequence.get()), page.message);
                self.search_in(
                    (&page.snapshot, &page.labels),
                    page.places,
                    of,
                    Fate::default(),
                    hits,
                    out,
                )?;
            }
        }
        let mut exchanges = Exchange::numbered(pages.exchanges()?);
        exchanges.truncate(exchanges.partition_point(|exchange| !exchange.is_unlisted));
        // Requests that are worked out have the tools that frames tell of.
        let whole = exchanges.iter().filter(|of| of.has_whole_request());
        let logged: HashSet<_> = whole.map(|of| Arc::clone(&of.session)).collect();
        exchanges.extend(tools.into_iter().filter(|of| !logged.contains(&of.session)));
        for page in held {
            let sequence = Some(page.sequence.get());
            let shown = (&*page.snapshot, &page.labels);
            let Some(context) = pages.context(&page.session) else {
                let of = (&page.session, sequence, page.message);
                self.search_in(shown, page.places, of, Fate::default(), hits, out)?;
                continue;
            };
            let (left, block) = (context.left_at(page.sequence), context.block_of(page.sequence));
            let fate = Fate { left, block };
            // A summary is read in the place of the frames that it replaced.
            for block in context.told_at(page.sequence) {
                let message = Some(context.messages_before(block.from));
                let of = (&page.session, sequence, message);
                let told = (&*block.snapshot, &page.labels);
                self.search_in(told, None, of, Fate::default(), hits, out)?;
            }
            // A summary or edit that another one replaced is in no frame, unless its frame shows it.
            let is_shown = |of: &FormerBlock| {
                of.block.stands == SubstitutionKind::Block && !shown.0.is_empty()
            };
            let former = context.former_at(page.sequence).iter();
            for former in former.filter(|former| !is_shown(former)) {
                let of = (&page.session, sequence, None);
                let fate = Fate { left: Some(former.left), block: None };
                let told = (&*former.block.snapshot, &page.labels);
                self.search_in(told, None, of, fate, hits, out)?;
            }
            if fate.left.is_none_or(|left| left.at != page.sequence) {
                let of = (&page.session, sequence, context.message_of(page.sequence));
                self.search_in(shown, page.places, of, fate, hits, out)?;
            }
        }
        let format = pages.source().format();
        if hits.in_file > 0 && hits.note.is_none() {
            hits.note = Some(recorded::context_note(format, &pages.lacks()?));
        } else if hits.in_file == 0 && pages.source().archived().is_none() {
            hits.lacking = recorded::no_hit_note(format, &pages.lacks()?);
        }
        let sessions = pages.sessions();
        hits.sessions.extend(sessions.iter().cloned());
        let sessions = sessions.into_iter().filter(|session| is_wanted(session));
        pages.each_tail(sessions, |tail| {
            let of = (&tail.session, None, Some(tail.message));
            self.search_in(
                (&tail.snapshot, &FrameLabels::default()),
                None,
                of,
                Fate::default(),
                hits,
                out,
            )
        })?;
        let Some(phrase) = self.phrase else { return Ok(()) };
        request::search_all(&exchanges, &found, phrase, |exchange, hit| {
            if !is_wanted(&exchange.session) {
                return Ok(());
            }
            hits.found_in_request(exchange, &hit, out)
        })
    }

    /// What a page shows of the phrase, where it is in it.
    fn shown(&self, page: &Page) -> Option<Shown> {
        let (phrase, places) = (self.phrase?, page.places.as_ref()?);
        let text = |place: &TextRange| phrase.found(page.snapshot.text(), *place).to_owned();
        let role = page.snapshot.chunk(0).and_then(|chunk| chunk.role());
        let texts: HashSet<_> = places.iter().map(text).collect();
        let is_agents = role == Some(Role::Assistant);
        (!texts.is_empty()).then_some(Shown { is_agents, texts })
    }

    /// Where the phrase is in a page, where one is looked for.
    fn places(&self, page: &Page) -> Option<Vec<TextRange>> {
        Some(self.phrase?.places(page.snapshot.text()))
    }

    /// Searches a snapshot, unless it is known where in it the text is.
    fn search_in(
        &self,
        (snapshot, labels): (&FrameSnapshot, &FrameLabels),
        places: Option<Vec<TextRange>>,
        of: (&Arc<str>, Option<u64>, Option<usize>),
        fate: Fate<'_>,
        hits: &mut Hits,
        out: &mut Output,
    ) -> Outcome {
        // A long chunk may hold many hits; it is counted once.
        let counted = Cell::new(None);
        let tokens = |chunk: ChunkRef<'_>| match counted.get() {
            Some((index, tokens)) if index == chunk.index() => tokens,
            _ => {
                let tokens = self.lens.tokens(snapshot, chunk);
                counted.set(Some((chunk.index(), tokens)));
                tokens
            }
        };
        if let Some(facet) = &self.args.target.facet {
            for chunk in find_chunks_by_facet(snapshot, facet) {
                let hit = Hit::of_chunk(of, snapshot, chunk, tokens).labelled(labels);
                hits.found(&fate.mark(hit), out)?;
            }
        }
        if let Some(phrase) = self.phrase {
            for range in places.unwrap_or_else(|| phrase.places(snapshot.text())) {
                if let Some(hit) = Hit::at(of, snapshot, range, tokens) {
                    hits.found(&fate.mark(hit.labelled(labels)), out)?;
                }
            }
        }
        Ok(())
    }

    /// Finds the owner of a byte of a message: in the session that is named, else in the first.
    fn owner_of(
        &self,
        mut pages: Pages<'_, '_>,
        (message, byte): (usize, usize),
        first: Option<Arc<str>>,
        hits: &mut Hits,
        out: &mut Output,
    ) -> Outcome {
        let mut session = self.args.input.session.as_deref().map(Arc::from).or(first);
        let mut hit = |of: (&Arc<str>, Option<u64>),
                       (snapshot, labels): (&FrameSnapshot, &FrameLabels),
                       pages: &Pages<'_, '_>| {
            if hits.note.is_none() {
                let format = pages.source().format();
                hits.note = Some(recorded::context_note(format, &pages.lacks()?));
            }
            let chunk = snapshot.chunk_at(byte).ok_or_else(|| {
                let length = snapshot.text().len();
                pages.source().fail(format!(
                    "message {message} has {length} bytes; there is no byte {byte} in it"
                ))
            })?;
            let tokens = |chunk: ChunkRef<'_>| self.lens.tokens(snapshot, chunk);
            let hit = Hit::of_chunk((of.0, of.1, Some(message)), snapshot, chunk, tokens);
            hits.found(&hit.marking_byte(byte).labelled(labels), out)
        };
        let mut held = HashMap::new();
        while let Some(page) = pages.next(&mut FrameFilter::default())? {
            let wanted = session.get_or_insert_with(|| Arc::clone(&page.session));
            if *wanted != page.session {
                continue;
            }
            if pages.may_replace() {
                held.insert(page.sequence, (page.snapshot, page.labels));
            } else if page.message == Some(message) {
                let of = (&page.session, Some(page.sequence.get()));
                return hit(of, (&page.snapshot, &page.labels), &pages);
            }
        }
        let Some(session) = session else { return Ok(()) };
        let context = pages.context(&session);
        match context.and_then(|context| Some((context, context.items().nth(message)?))) {
            Some((_, ContextItem::Frame(frame))) => {
                if let Some((snapshot, labels)) = held.get(&frame) {
                    return hit((&session, Some(frame.get())), (snapshot, labels), &pages);
                }
            }
            Some((context, ContextItem::Block(block))) => {
                let told = context.teller_of(block);
                let labels = told.and_then(|told| held.get(&told)).map(|(_, labels)| labels);
                let labels = labels.cloned().unwrap_or_default();
                let of = (&session, told.map(FrameSeq::get));
                return hit(of, (&block.snapshot, &labels), &pages);
            }
            None => {}
        }
        let Some(count) = pages.messages(&session)? else {
            // Another of the files may have it.
            hits.sessions.extend(pages.sessions());
            return Ok(());
        };
        let mut tail = None;
        pages.each_tail([&session], |of| {
            tail = Some(of);
            Ok(())
        })?;
        match &tail {
            Some(tail) if tail.message == message => {
                hit((&tail.session, None), (&tail.snapshot, &FrameLabels::default()), &pages)
            }
            _ => {
                let count = counted((count + usize::from(tail.is_some())) as u64, "message");
                let sentence =
                    format!("session {session} has {count}; there is no message {message}");
                Err(pages.source().fail(sentence).into())
            }
        }
    }
}
