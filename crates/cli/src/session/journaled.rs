//! A session whose turns are the events of a journal.

use std::{io::Write, path::Path};

use afterimage::{
    journal::{
        ErrorKind, Event, EventId, Expected, LoadedState, NewEvent, Replay, SessionName, refused,
    },
    session::bridge::ReplayedTimeline,
    timeline::{PushReport, Timeline, TimelineConfig, TurnRecord, session::DirVerification},
};

use super::{
    MendedEscapes,
    args::{InJournal, Target},
    change::{Lines, odd, turn},
    line_ids::{LineDigest, LineIds},
    now, show,
};
use crate::{
    failure::{Failure, Outcome},
    journal::{
        args::Place,
        place::{Access, Opened, is_nothing, no_session},
    },
    json::object,
    output::{Output, note},
    text::{counted, printable},
};

/// How many turns are read at a time.
const PAGE: usize = 1_000;

/// How often a turn is worked out anew since another writer's came first.
const MOST_RACES: u32 = 1_000;

/// What is known while lines are appended.
struct Appending {
    ids: LineIds,
    /// The event of the newest turn.
    newest: Option<EventId>,
    lenient: bool,
}

impl Appending {
    fn note(&mut self, event: &Event) {
        self.ids.note(event);
        self.newest = Some(event.id.clone());
    }
}

/// What became of a line.
enum LineOutcome {
    New(PushReport),
    /// It was there, as this turn.
    Before(u64),
}

pub(super) struct Journaled {
    journal: Opened,
    session: SessionName,
}

impl Journaled {
    /// As [`Journaled::open`], to be checked: where no whole turn is left, a torn tail may be.
    pub(super) fn open_torn(target: &Target, place: &InJournal) -> Outcome<Option<Self>> {
        let Some(mut found) = Self::of(target, place, Access::Read)? else { return Ok(None) };
        let status = found.journal.status(&found.session)?;
        if is_nothing(&status) && found.journal.torn_tail(&found.session).is_none() {
            return Err(no_session(&found.session).into());
        }
        Ok(Some(found))
    }

    /// The session in its journal; nothing where it is in a directory of its own.
    pub(super) fn open(target: &Target, place: &InJournal) -> Outcome<Option<Self>> {
        let Some(mut found) = Self::of(target, place, Access::Read)? else { return Ok(None) };
        found.journal.there(&found.session)?;
        Ok(Some(found))
    }

    /// As [`Journaled::open`], to be written; it need not be there.
    pub(super) fn create(target: &Target, place: &InJournal) -> Outcome<Option<Self>> {
        Self::of(target, place, Access::Create)
    }

    fn of(target: &Target, place: &InJournal, access: Access) -> Outcome<Option<Self>> {
        let Some(journal) = place.journal.clone() else { return Ok(None) };
        let name = target.directory.to_str().ok_or_else(|| {
            Failure::new("the name of a session is UTF-8").file(&target.directory)
        })?;
        let session = SessionName::new(name)?;
        let place = Place { journal, creds: place.creds.clone() };
        Ok(Some(Self { journal: Opened::open(&place, access)?, session }))
    }

    /// The turns from one on; `note` gets each as the event that it is.
    fn turns(&mut self, first: u64, mut note: impl FnMut(&Event)) -> Outcome<Vec<TurnRecord>> {
        let mut turns = Vec::new();
        loop {
            let next = first + turns.len() as u64;
            let events = match self.journal.read(&self.session, next, PAGE) {
                // What is missing at the end of a log that lost it is said besides.
                Err(error)
                    if error.kind() == ErrorKind::Gap && !self.journal.lost_ends().is_empty() =>
                {
                    Vec::new()
                }
                events => events?,
            };
            if events.is_empty() {
                return Ok(turns);
            }
            for event in &events {
                note(event);
                turns.push(ReplayedTimeline::turn(event)?);
            }
        }
    }

    /// The whole past.
    pub(super) fn timeline(&mut self) -> Outcome<Timeline> {
        let turns = self.turns(1, |_| ())?;
        Ok(ReplayedTimeline::timeline(self.session.as_str(), turns, false)?)
    }

    fn load(&mut self) -> Outcome<LoadedState<ReplayedTimeline>> {
        let loaded = self.journal.load::<ReplayedTimeline>(&self.session)?;
        loaded.report.passed_over.iter().for_each(|passed| note(&passed.to_string()));
        Ok(loaded)
    }

    /// What is said of the first turns where they are gone.
    fn gone(&mut self) -> Outcome<Option<String>> {
        match self.journal.read(&self.session, 1, 1) {
            Err(error) if error.kind() == ErrorKind::Gap => Ok(Some(error.message().to_owned())),
            first => Ok(first.map(|_| None)?),
        }
    }

    /// The newest state is loaded, an earlier one is worked out from all turns.
    pub(super) fn state(
        mut self,
        turn: Option<u64>,
        path: Option<&str>,
        out: &mut Output,
    ) -> Outcome {
        let place = ("session", self.session.to_string());
        if let Some(turn) = turn {
            let state = self.timeline()?.state_at(turn)?;
            return show::part(place, &state, turn, path, out);
        }
        let loaded = self.load()?.state;
        show::part(place, loaded.state(), loaded.last_turn(), path, out)
    }

    /// The state that loads, against the one that all turns come to.
    pub(super) fn verify(mut self) -> Outcome<DirVerification> {
        self.journal.status(&self.session)?;
        let problems = self.journal.lost_ends();
        if !problems.is_empty() {
            let turns = self.turns(1, |_| ())?.len() as u64;
            let mut notes = self.journal.notes();
            let torn: Vec<String> = self.journal.torn_tail(&self.session).into_iter().collect();
            notes.retain(|note| !problems.contains(note) && !torn.contains(note));
            return Ok(DirVerification {
                turns,
                problems,
                notes,
                torn,
                ..DirVerification::default()
            });
        }
        let loaded = self.load()?;
        if let Some(gone) = self.gone()? {
            let note = format!("{gone}: the state is that of a snapshot and the turns after it");
            return Ok(DirVerification {
                valid: true,
                turns: loaded.state.last_turn(),
                notes: vec![note],
                ..DirVerification::default()
            });
        }
        let timeline = self.timeline()?;
        let (turn, state) = (loaded.state.last_turn(), loaded.state.state());
        let found = timeline.verify_state(turn, state)?;
        let torn: Vec<String> = self.journal.torn_tail(&self.session).into_iter().collect();
        let passed_over = loaded.report.passed_over.iter().map(ToString::to_string);
        let notes = passed_over.chain(self.journal.notes());
        Ok(DirVerification {
            valid: found.valid,
            turns: timeline.last_turn(),
            differences: found.differences.into_iter().map(|found| (turn, found)).collect(),
            suggestion: found.suggestion.map(str::to_owned),
            notes: notes.filter(|text| !torn.contains(text)).collect(),
            torn,
            ..DirVerification::default()
        })
    }

    pub(super) fn append(
        mut self,
        target: &Target,
        file: &Path,
        lenient: bool,
        id: Option<&str>,
        out: &mut Output,
    ) -> Outcome {
        let mut lines = Lines::open(file)?;
        let mut appending = Appending { ids: LineIds::new(id), newest: None, lenient };
        let mut timeline = self.noted(&mut appending)?;
        self.journal.notes().iter().for_each(|text| note(&printable(text)));
        let (mut were_there, mut mended) = (0, MendedEscapes::default());
        while let Some(line) = lines.next()? {
            let (digested, read) = (LineDigest::of(line), turn(line, &mut mended));
            let read = read.map_err(|error| lines.refused(error))?;
            let id = appending.ids.id(lines.number(), digested)?;
            let came = self.push(&mut timeline, &read, &id, &mut appending, &lines)?;
            let turn = match &came {
                LineOutcome::New(pushed) => {
                    odd(pushed);
                    pushed.record.turn_id
                }
                LineOutcome::Before(turn) => {
                    were_there += 1;
                    *turn
                }
            };
            if target.json {
                out.json(object! { "turnId": turn })?;
            } else {
                writeln!(out, "turn {turn}")?;
            }
            out.flush()?;
            if let LineOutcome::New(PushReport { snapshot: Some(_), .. }) = came {
                self.snapshot(&timeline);
            }
        }
        if were_there > 0 {
            note(&format!(
                "there already, and not appended again: {}",
                counted(were_there, "line")
            ));
        }
        Ok(())
    }

    /// The whole past, with note taken of its events. Where its beginning is gone, what the newest
    /// snapshot and the turns after it lead to.
    fn noted(&mut self, appending: &mut Appending) -> Outcome<Timeline> {
        if self.gone()?.is_some() {
            return self.resumed(appending);
        }
        let turns = self.turns(1, |event| appending.note(event))?;
        Ok(ReplayedTimeline::timeline(self.session.as_str(), turns, appending.lenient)?)
    }

    /// A timeline that goes on from the state that loads. Its turns up to there are empty: they are
    /// there for their numbers alone.
    fn resumed(&mut self, appending: &mut Appending) -> Outcome<Timeline> {
        let loaded = self.load()?;
        let config = TimelineConfig { lenient: appending.lenient, ..TimelineConfig::default() };
        let state = loaded.state.state().clone();
        let mut timeline =
            Timeline::builder(self.session.as_str(), state).config(config).build()?;
        for _ in 0..loaded.sequence {
            timeline.push(TurnRecord::new(""))?;
        }
        match self.journal.read(&self.session, loaded.sequence, 1) {
            Err(error) if error.kind() == ErrorKind::Gap => {}
            newest => newest?.iter().for_each(|event| appending.note(event)),
        }
        Ok(timeline)
    }

    /// Appends a turn; after those of others, where they came first.
    fn push(
        &mut self,
        timeline: &mut Timeline,
        turn: &TurnRecord,
        id: &EventId,
        appending: &mut Appending,
        lines: &Lines,
    ) -> Outcome<LineOutcome> {
        let mut races = 0;
        loop {
            if let Some(turn) = appending.ids.turn(id) {
                return Ok(LineOutcome::Before(turn));
            }
            let mut next = timeline.clone();
            let pushed = next.push(turn.clone()).map_err(|error| lines.refused(error.into()))?;
            if let Some(drift) = pushed.drift.first().filter(|_| !appending.lenient) {
                return Err(lines.refused(refused(drift).into()));
            }
            let body = pushed.record.to_json().to_string().into_bytes();
            let event = NewEvent::new(id.clone(), ReplayedTimeline::kind(&pushed.record), body)?;
            let expected = Expected::Last(timeline.last_turn());
            match self.journal.append(&self.session, expected, event, now()) {
                Ok(appended) if !appended.was_there => {
                    *timeline = next;
                    appending.newest = Some(id.clone());
                    return Ok(LineOutcome::New(pushed));
                }
                Err(error) if error.kind() != ErrorKind::Conflict || races >= MOST_RACES => {
                    return Err(error.into());
                }
                // It was there before the turns that are at hand.
                Ok(appended) if appended.sequence <= timeline.last_turn() => {
                    return Ok(LineOutcome::Before(appended.sequence));
                }
                // Others came first; or the same lines, from another run.
                Ok(_) | Err(_) => self.catch_up(timeline, appending)?,
            }
            races += 1;
        }
    }

    /// Takes the turns of others, which come after the newest one that is known.
    fn catch_up(&mut self, timeline: &mut Timeline, appending: &mut Appending) -> Outcome {
        let (last, known) = (timeline.last_turn(), appending.newest.take());
        let mut found = None;
        let first = if known.is_some() { last.max(1) } else { last + 1 };
        let mut turns = self.turns(first, |event| {
            found.get_or_insert_with(|| event.id.clone());
            appending.note(event);
        })?;
        let is_same = known.is_none() || known == found;
        turns.drain(..turns.len().min(usize::from(known.is_some())));
        if !is_same || turns.is_empty() {
            let sentence = "the session is another one now: it was removed, or has lost turns";
            return Err(Failure::new(sentence)
                .at("session", &self.session)
                .at("turn", last)
                .hint("what was appended before is said above; the rest can be appended anew")
                .into());
        }
        if turns.iter().any(|turn| turn.lenient) && !timeline.config().lenient {
            // A strict timeline takes none of these: from here on it is one that does.
            *timeline = self.noted(appending)?;
            return Ok(());
        }
        Ok(ReplayedTimeline::follow(timeline, turns)?)
    }

    /// Takes a snapshot; without one nothing is lost.
    fn snapshot(&mut self, timeline: &Timeline) {
        let state = ReplayedTimeline::of(timeline);
        let after = state.last_turn();
        if let Err(error) = self.journal.write_snapshot(&self.session, &state, after, now()) {
            note(&format!("no snapshot of turn {after}: {error}"));
        }
    }
}
