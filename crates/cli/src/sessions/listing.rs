//! Finding the sessions of folders, and what each comes to.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use afterimage::{redact::Redactor, session::archive::ArchivedTranscript};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    index::{Index, Known},
    summary::Summary,
};
use crate::{
    args::{Format, Rendering},
    copies::{Copies, SessionAnswers},
    failure::{Outcome, Stop},
    input::{Candidate, Candidates, Stamp},
    input::{
        Found, FoundKind, NoTranscript, Opened, Opening, Progress, folder_of, is_named_database,
    },
    lens::{Counting, Lens},
    output, store,
    usage::PriceTable,
};

/// How often the index is written while sessions are read, so that who interrupts loses little.
const SAVED: Duration = Duration::from_secs(2);

/// A session, and what is known of it.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    found: Found,
    /// How the index names it.
    pub(super) key: Option<String>,
    pub(super) stamp: Stamp,
    /// `None` where it is not in the index yet.
    pub(super) summary: Option<Summary>,
}

impl Listed {
    fn of(candidate: Candidate, summary: Option<Summary>) -> Self {
        let Candidate { found, stamp, key, .. } = candidate;
        Self { path: found.path.clone(), found, key, stamp, summary }
    }

    /// When it ended; where it says no time, when its file changed last.
    pub(super) fn at(&self) -> i64 {
        let ended = self.summary.as_ref().and_then(|summary| summary.ended);
        ended.unwrap_or_else(|| self.stamp.modified_millis())
    }

    /// Takes the secrets out of what is shown of it.
    pub(super) fn redact(&mut self, redactor: &mut Redactor) {
        let path = self.path.display().to_string();
        self.path = redactor.text(&path, "the path of a file").into_owned().into();
        let Some(summary) = &mut self.summary else { return };
        let cells = summary.cells.iter_mut();
        let of_cells = cells.flat_map(|of| of.model.iter_mut().chain([&mut of.tools]));
        let names = [&mut summary.project, &mut summary.session, &mut summary.file];
        for name in names.into_iter().flatten().chain(of_cells) {
            let what = "the name of a session, a file, a project, a model or a tool";
            *name = redactor.text(name, what).into_owned();
        }
        if let Some(first) = &mut summary.first {
            // Words that were cut may end within a secret.
            first.text = match first.text.strip_suffix('…') {
                Some(cut) => redactor.cut_body(cut, "first words").into_owned() + "…",
                None => redactor.text(&first.text, "first words").into_owned(),
            };
        }
    }

    /// The folder that it worked in, else the one that its file is in, or was when it was archived.
    pub(super) fn project(&self) -> String {
        let summary = self.summary.as_ref();
        let said = summary.and_then(|summary| summary.project.clone());
        let archived = summary.and_then(|summary| summary.file.as_deref()).map(Path::new);
        said.unwrap_or_else(|| folder_of(archived.unwrap_or(&self.path)))
    }
}

/// Reads what the index does not know.
pub(super) struct Reading {
    index: Index,
    lens: [Lens; 2],
    pub(super) prices: PriceTable,
    bar: ProgressBar,
    saved: Instant,
    copies: Copies,
    /// The files that are no transcripts.
    pub(super) passed_over: Vec<PathBuf>,
    pub(super) outcome: Outcome,
}

impl Reading {
    /// A reading that prices sessions by this table.
    pub(super) fn new(index: Index, prices: PriceTable) -> Outcome<Self> {
        let rendering = Rendering { format: Some(Format::Native), tokenizer: None };
        let lens = |counting| Lens::new(&rendering, counting);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Ok(Self {
            index,
            lens: [lens(Counting::OnDemand)?, lens(Counting::Always)?],
            prices,
            bar,
            saved: Instant::now(),
            copies: Copies::default(),
            passed_over: Vec::new(),
            outcome: Ok(()),
        })
    }

    /// The sessions. Reads those that the index does not know, unless it is to be `quick`.
    pub(super) fn listed(&mut self, candidates: Candidates, quick: bool) -> Outcome<Vec<Listed>> {
        let mut listed = Vec::with_capacity(candidates.all.len());
        let mut unknown = Vec::new();
        for candidate in candidates.all {
            let known =
                candidate.key.as_deref().and_then(|key| self.index.get(key, candidate.stamp));
            // What was priced by another table is priced anew.
            let is_priced = |known: &&Known| {
                known.as_ref().is_none_or(|summary| summary.prices_of == self.prices.id)
            };
            match known.filter(is_priced).cloned() {
                Some(known) => self.take(candidate, known, &mut listed),
                None if quick => {
                    listed.push(Listed::of(candidate, None));
                }
                None => unknown.push(candidate),
            }
        }
        self.show_progress(unknown.iter().map(|candidate| candidate.stamp.size).sum());
        let mut done = 0;
        for mut candidate in unknown {
            done += candidate.stamp.size;
            let known = match candidate.archived.take() {
                Some(file) => self.read_archived(*file, &Copies::default()),
                None => self.read(&candidate.found, &Copies::default()),
            };
            match known {
                Ok(known) => {
                    // What a database is that is not read is said each time.
                    let is_said = known.is_none() && is_named_database(candidate.path());
                    if let Some(key) = candidate.key.clone().filter(|_| !is_said) {
                        self.index.put(key, candidate.stamp, known.clone());
                    }
                    self.take(candidate, known, &mut listed);
                }
                Err(Stop::Failure(failure)) => {
                    self.bar.suspend(|| crate::output::report(&failure));
                    self.outcome = Err(Stop::Reported);
                }
                Err(stop) => return Err(stop),
            }
            self.bar.set_position(done);
            if self.saved.elapsed() > SAVED {
                self.save();
                self.saved = Instant::now();
            }
        }
        if !quick {
            self.settle(&mut listed)?;
        }
        self.bar.finish_and_clear();
        if self.index.forget_gone() {
            self.save();
        }
        Ok(listed)
    }

    /// Reads sessions again that share answers with others: each answer counts once.
    fn settle(&mut self, listed: &mut [Listed]) -> Outcome {
        let of = |of: &Listed| {
            let summary = of.summary.as_ref()?;
            let (session, answers) = (summary.session.as_deref()?.into(), summary.answers.clone());
            Some(SessionAnswers { session, ended: summary.ended, answers })
        };
        let copies = Copies::among(listed.iter().filter_map(of).collect());
        for of in listed {
            let Some(summary) = &of.summary else { continue };
            let own = (summary.session.as_deref().unwrap_or_default(), summary.answers.len());
            if copies.print(&summary.answers, own) == summary.elsewhere {
                continue;
            }
            let known = if of.found.kind == FoundKind::Archive {
                let files = store::open(&of.found.path)?.into_iter().flatten();
                let is_it = |file: &ArchivedTranscript| {
                    let folder = file.folder().canonicalize().ok();
                    folder.as_deref().and_then(Path::to_str) == of.key.as_deref()
                };
                let mut files = files.filter(is_it);
                files.next().map(|file| self.read_archived(file, &copies)).transpose()?.flatten()
            } else {
                self.read(&of.found, &copies)?
            };
            if let Some(summary) = known {
                if let Some(key) = of.key.clone() {
                    self.index.put(key, of.stamp, Some(summary.clone()));
                }
                of.summary = Some(summary);
            }
        }
        self.copies = copies;
        Ok(())
    }

    /// As [`Copies::note`], of the sessions that are listed.
    pub(super) fn note_copies(&self, listed: &[Listed]) {
        let summaries = listed.iter().filter_map(|of| of.summary.as_ref());
        let names: HashSet<&str> = summaries.filter_map(|of| of.session.as_deref()).collect();
        self.copies.note(|session| names.contains(session));
    }

    fn take(&mut self, candidate: Candidate, known: Known, listed: &mut Vec<Listed>) {
        match known {
            Some(summary) => listed.push(Listed::of(candidate, Some(summary))),
            None => self.passed_over.push(candidate.path().to_owned()),
        }
    }

    fn show_progress(&mut self, bytes: u64) {
        /// Less is read before anybody wonders.
        const LARGE: u64 = 4 << 20;
        self.bar.set_length(bytes);
        let template = "{bar:30.cyan/dim} {bytes:>10} of {total_bytes} of sessions, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸─"));
        }
        if bytes > LARGE && output::shows_progress() {
            self.bar.set_draw_target(output::progress_target());
        }
    }

    /// What a file comes to. It is counted only where no usage was reported, since counting is most
    /// of the work: then it is read again.
    fn read(&self, found: &Found, copies: &Copies) -> Outcome<Known> {
        let [uncounted, counted] = &self.lens;
        let of = |lens, counts, progress| {
            let mut source = match Opening::Found(found.clone()).open(progress, None)? {
                Opened::Source(source) => source,
                Opened::NoTranscript(path, NoTranscript(why)) => {
                    if is_named_database(&path) {
                        let note = format!("{}: {why}", path.display());
                        self.bar.suspend(|| output::note(&note));
                    }
                    return Ok(None);
                }
            };
            let mut summary = Summary::of(&mut source, lens, (&self.prices, copies), counts)?;
            summary.project = source.project();
            // A file of nothing but metadata is none.
            Ok::<_, Stop>(summary.session.is_some().then_some(summary))
        };
        match of(uncounted, false, Progress::PartOf(&self.bar))? {
            Some(summary) if summary.is_to_be_counted() => of(counted, true, Progress::Hidden),
            summary => Ok(summary),
        }
    }

    /// As [`Reading::read`], of a file in an archive: its frames are rendered and counted as those of a
    /// file are.
    fn read_archived(&self, file: ArchivedTranscript, copies: &Copies) -> Outcome<Known> {
        let [uncounted, counted] = &self.lens;
        let opened = Opening::Archived(Box::new(file)).open(Progress::Hidden, None)?;
        let Opened::Source(mut source) = opened else { return Ok(None) };
        source.render_anew();
        let of = (&self.prices, copies);
        let mut summary = Summary::of(&mut source, uncounted, of, false)?;
        if summary.is_to_be_counted() {
            source.rewind();
            summary = Summary::of(&mut source, counted, of, true)?;
        }
        summary.project = source.project();
        summary.file = Some(source.name());
        Ok(summary.session.is_some().then_some(summary))
    }

    fn save(&mut self) {
        if let Err(error) = self.index.save() {
            let text = format!("the index cannot be written: {error}; --no-index goes without it");
            self.bar.suspend(|| output::note(&text));
            // Once is enough.
            self.index = Index::default();
        }
    }
}
