//! What the model read, frame by frame: from the archive where there is one, else rendered.

use std::{sync::Arc, vec};

use afterimage::{
    id::FrameSeq,
    json::Value,
    request::Lack,
    session::{
        ViewedTail, Viewer,
        archive::{ArchivedTranscript, FrameRow},
    },
    snapshot::FrameSnapshot,
    text::TextRange,
    transcript::Exchange,
    window::ContextInForce,
};
use indexmap::IndexMap;

use crate::{
    failure::Outcome,
    input::Source,
    labels::{ArchivedLabels, FrameLabels, Labels},
    lens::Lens,
    phrase::Phrase,
    wanted::{FrameFilter, Place},
};

/// What a frame rendered to.
pub(crate) struct Page {
    pub(crate) session: Arc<str>,
    pub(crate) sequence: FrameSeq,
    /// The index of its message among the frames that show something; `None` where it shows
    /// nothing.
    pub(crate) message: Option<usize>,
    /// Whether it tells that frames left the context, or came back to it.
    pub(crate) changes_context: bool,
    pub(crate) snapshot: Arc<FrameSnapshot>,
    /// Of an archive, where the phrase is that was asked for.
    pub(crate) places: Option<Vec<TextRange>>,
    /// Empty where they were not asked for.
    pub(crate) labels: FrameLabels,
    /// The tools of the requests from here on, where it tells of such and labels were asked for.
    pub(crate) tools: Option<Vec<Value>>,
}

/// The pages of a source. Of an archive only what is looked at is read.
pub(crate) struct Pages<'s, 'l> {
    source: &'s mut Source,
    lens: &'l Lens,
    viewer: Viewer<'l>,
    /// Of an archive, the indices of the frames that are still to be looked at.
    rows: vec::IntoIter<usize>,
    /// Of an archive, what a page must hold.
    phrase: Option<&'l Phrase>,
    /// Of an archive, the index of the first frame after those that were wanted.
    end: usize,
    /// Of everything else, the frames of each session that show something.
    shown: IndexMap<Arc<str>, usize>,
    /// Where facets are to be labelled, what labels them.
    labels: Option<(Labels, ArchivedLabels)>,
}

/// Where a session stands after the frames that were wanted.
#[derive(Clone, Copy, Default)]
struct SessionEnd {
    messages: usize,
    has_tail: bool,
    /// Whether frames follow.
    goes_on: bool,
}

impl<'s, 'l> Pages<'s, 'l> {
    /// All pages.
    pub(crate) fn new(source: &'s mut Source, lens: &'l Lens) -> Outcome<Self> {
        let rows = match source.archived() {
            Some(archived) => (0..archived.rows()?.len()).collect(),
            None => Vec::new(),
        };
        Self::only(rows, source, lens)
    }

    /// Of an archive the pages with these indices, of everything else all.
    pub(crate) fn only(rows: Vec<usize>, source: &'s mut Source, lens: &'l Lens) -> Outcome<Self> {
        let end = match source.archived() {
            Some(archived) => archived.rows()?.len(),
            None => 0,
        };
        let viewer = Viewer::new(&lens.hud, source.format());
        Ok(Self {
            source,
            lens,
            viewer,
            rows: rows.into_iter(),
            phrase: None,
            end,
            shown: IndexMap::new(),
            labels: None,
        })
    }

    /// With the labels of the facets of each page.
    pub(crate) fn labelled(self) -> Self {
        Self { labels: Some(Default::default()), ..self }
    }

    /// Of an archive only the pages that hold this phrase, with its places. What else there is has
    /// to be rendered before it is known what it holds.
    pub(crate) fn holding(self, phrase: Option<&'l Phrase>) -> Self {
        Self { phrase, ..self }
    }

    pub(crate) fn source(&self) -> &Source {
        self.source
    }

    /// The exchanges of the source, where it keeps them, once all pages were taken.
    pub(crate) fn exchanges(&mut self) -> Outcome<Vec<Exchange>> {
        self.source.take_all_exchanges()
    }

    /// Whether a page may tell that others are in the context no more. Where none may, each is what
    /// it is as it comes.
    pub(crate) fn may_replace(&self) -> bool {
        self.source.archived().is_none() && self.viewer.may_replace()
    }

    /// The context in force of a session; `None` where none of its frames ever leaves it.
    pub(crate) fn context(&self, session: &str) -> Option<&ContextInForce> {
        self.viewer.context(session).filter(|_| self.may_replace())
    }

    /// How many frames of a session show something, of those that were wanted.
    pub(crate) fn shown(&self, session: &str) -> Option<usize> {
        self.shown.get(session).copied()
    }

    /// What requests lack that are worked out from the source.
    pub(crate) fn lacks(&self) -> Outcome<Vec<Lack>> {
        Ok(match self.source.archived() {
            Some(archived) => archived.lacks(self.end)?,
            None => self.viewer.lacks(),
        })
    }

    /// The next page that is wanted.
    pub(crate) fn next(&mut self, wanted: &mut FrameFilter) -> Outcome<Option<Page>> {
        if self.source.archived().is_some() {
            return self.next_archived(wanted);
        }
        while let Some(record) = self.source.next() {
            let record = record?;
            let place = wanted.place(record.frame.sequence);
            if place == Place::After {
                break;
            }
            let seen = self.source.see(&mut self.viewer, record)?;
            let shown = self.shown.entry(Arc::clone(&seen.session)).or_default();
            let labels = self.labels.as_mut().map(|(labels, _)| labels.of_seen(&seen));
            let message = seen.message.map(|_| *shown);
            *shown += usize::from(message.is_some());
            if place == Place::Inside {
                let told = seen.frame.imported.as_ref().filter(|_| labels.is_some());
                let tools = told.and_then(|told| told.tools()).map(<[Value]>::to_vec);
                return Ok(Some(Page {
                    tools,
                    session: seen.session,
                    sequence: seen.frame.sequence,
                    message,
                    changes_context: seen.changes_context,
                    snapshot: seen.snapshot,
                    places: None,
                    labels: labels.unwrap_or_default(),
                }));
            }
        }
        Ok(None)
    }

    fn next_archived(&mut self, wanted: &mut FrameFilter) -> Outcome<Option<Page>> {
        let Some(archived) = self.source.archived() else { return Ok(None) };
        let rows = archived.rows()?;
        for index in self.rows.by_ref() {
            let Some(row) = rows.get(index).copied() else { continue };
            match wanted.place(row.sequence) {
                Place::Before => {}
                Place::After => {
                    self.end = index;
                    break;
                }
                Place::Inside => {
                    let places = self.phrase.map(|phrase| {
                        archived.view(row, |view| phrase.places(&view.text().join()))
                    });
                    let places = places.transpose()?;
                    if places.as_ref().is_some_and(Vec::is_empty) {
                        continue;
                    }
                    let labels = self.labels.as_mut().map(|(_, of)| of.of(archived, index));
                    return Ok(Some(Page {
                        tools: None,
                        session: archived.session_name(row),
                        sequence: row.sequence,
                        message: row.message.map(|message| message as usize),
                        changes_context: false,
                        snapshot: archived.snapshot(index, row)?,
                        places,
                        labels: labels.transpose()?.unwrap_or_default(),
                    }));
                }
            }
        }
        self.rows = Vec::new().into_iter();
        Ok(None)
    }

    /// How many messages a session has in the frames that were wanted, the tail aside; `None`
    /// where there is no such session.
    pub(crate) fn messages(&self, session: &str) -> Outcome<Option<usize>> {
        let Some(archived) = self.source.archived() else {
            return Ok(self.viewer.messages(session));
        };
        let ended = self.ended(archived)?;
        let index = archived.session_index(session);
        Ok(index.and_then(|index| ended.get(index as usize)).map(|ended| ended.messages))
    }

    /// Hands out what the model sees after the last frame that was wanted, for each of these
    /// sessions where that is something.
    pub(crate) fn each_tail<N: AsRef<str>>(
        &self,
        sessions: impl IntoIterator<Item = N>,
        mut take: impl FnMut(ViewedTail) -> Outcome,
    ) -> Outcome {
        let Some(archived) = self.source.archived() else {
            for session in sessions {
                let tail = self.viewer.tail(session.as_ref());
                if let Some(tail) = tail.map_err(|error| self.source.refuse(error))? {
                    take(tail)?;
                }
            }
            return Ok(());
        };
        let ended = self.ended(archived)?;
        for session in sessions {
            let Some(index) = archived.session_index(session.as_ref()) else { continue };
            let Some(SessionEnd { messages, has_tail: true, goes_on }) =
                ended.get(index as usize).copied()
            else {
                continue;
            };
            let snapshot =
                if goes_on { self.replayed_tail(archived, index)? } else { archived.tail(index) };
            if let Some(snapshot) = snapshot {
                let session = archived.entry().sessions.get(index as usize);
                let session = session.map_or_else(|| "".into(), |of| Arc::clone(&of.session));
                take(ViewedTail { session, snapshot, message: messages })?;
            }
        }
        Ok(())
    }

    /// All sessions so far, in the order in which they appear.
    pub(crate) fn sessions(&self) -> Vec<Arc<str>> {
        match self.source.archived() {
            Some(archived) => {
                archived.entry().sessions.iter().map(|entry| Arc::clone(&entry.session)).collect()
            }
            None => self.viewer.sessions(),
        }
    }

    fn ended(&self, archived: &ArchivedTranscript) -> Outcome<Vec<SessionEnd>> {
        let mut ended = vec![SessionEnd::default(); archived.entry().sessions.len()];
        for (index, row) in archived.rows()?.iter().enumerate() {
            let Some(of) = ended.get_mut(row.session as usize) else { continue };
            if index >= self.end {
                of.goes_on = true;
            } else {
                of.messages += usize::from(row.message.is_some());
                of.has_tail = row.has_tail;
            }
        }
        Ok(ended)
    }

    /// The tail of a session in its midst: its frames are followed up to there.
    fn replayed_tail(
        &self,
        archived: &ArchivedTranscript,
        session: u32,
    ) -> Outcome<Option<Arc<FrameSnapshot>>> {
        let refused = |error| self.source.refuse(error);
        let mut viewer = Viewer::new(&self.lens.hud, self.source.format());
        let rows = archived.rows()?.iter().take(self.end).enumerate();
        for (index, row) in rows.filter(|(_, row): &(usize, &FrameRow)| row.session == session) {
            let frame = archived.frame(index)?;
            viewer.follow(&archived.session_name(*row), &frame).map_err(refused)?;
        }
        let Some(name) = archived.entry().sessions.get(session as usize) else { return Ok(None) };
        let tail = viewer.tail(&name.session).map_err(refused)?;
        Ok(tail.map(|tail| tail.snapshot))
    }
}
