//! A session whose turns are the events of a journal.

use std::{io::Write, path::Path};

use afterimage::{
    ErrorKind,
    journal::{Expected, Loaded, NewEvent, Replay, SessionName, refused},
    session::bridge::ReplayedTimeline,
    timeline::{Pushed, Timeline, TurnRecord, session::DirVerification},
};

use super::{
    args::{InJournal, Target},
    change::{Lines, odd, turn},
    now, show,
};
use crate::{
    failure::{Failure, Outcome},
    journal::{
        args::Place,
        place::{Access, Opened},
    },
    json::object,
    output::{Output, note},
};

/// How many turns are read at a time.
const PAGE: usize = 1_000;

/// How often a turn is worked out anew since another writer's came first.
const MOST_RACES: u32 = 1_000;

pub(super) struct Journaled {
    journal: Opened,
    session: SessionName,
}

impl Journaled {
    /// The session in its journal; nothing where it is in a directory of its own.
    pub(super) fn open(target: &Target, place: &InJournal) -> Outcome<Option<Self>> {
        let Some(mut found) = Self::of(target, place, Access::Read)? else { return Ok(None) };
        if found.journal.status(&found.session)?.last_sequence == 0 {
            return Err(Failure::new("the journal has no such session")
                .at("session", &found.session)
                .hint("`afterimage journal ls JOURNAL` names those that it has")
                .into());
        }
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

    /// The turns after one of them.
    fn turns(&mut self, after: u64) -> Outcome<Vec<TurnRecord>> {
        let mut turns = Vec::new();
        loop {
            let first = after + turns.len() as u64 + 1;
            let events = self.journal.read(&self.session, first, PAGE)?;
            if events.is_empty() {
                return Ok(turns);
            }
            for event in &events {
                turns.push(ReplayedTimeline::turn(event)?);
            }
        }
    }

    /// The whole past.
    pub(super) fn timeline(&mut self, lenient: bool) -> Outcome<Timeline> {
        let turns = self.turns(0)?;
        Ok(ReplayedTimeline::timeline(self.session.as_str(), turns, lenient)?)
    }

    fn load(&mut self) -> Outcome<Loaded<ReplayedTimeline>> {
        let loaded = self.journal.load::<ReplayedTimeline>(&self.session)?;
        loaded.report.passed_over.iter().for_each(|passed| note(&passed.to_string()));
        Ok(loaded)
    }

    /// The newest state is loaded, an earlier one is worked out from all turns.
    pub(super) fn state(
        mut self,
        target: &Target,
        turn: Option<u64>,
        path: Option<&str>,
        out: &mut Output,
    ) -> Outcome {
        if let Some(turn) = turn {
            let state = self.timeline(false)?.state_at(turn)?;
            return show::part(target, &state, turn, path, out);
        }
        let loaded = self.load()?.state;
        show::part(target, loaded.state(), loaded.last_turn(), path, out)
    }

    /// The state that loads, against the one that all turns come to.
    pub(super) fn verify(mut self) -> Outcome<DirVerification> {
        let loaded = self.load()?;
        let timeline = self.timeline(false)?;
        let (turn, state) = (loaded.state.last_turn(), loaded.state.state());
        let found = timeline.verify_state(turn, state)?;
        let notes = loaded.report.passed_over.iter().map(ToString::to_string);
        Ok(DirVerification {
            valid: found.valid,
            turns: timeline.last_turn(),
            differences: found.differences.into_iter().map(|found| (turn, found)).collect(),
            suggestion: found.suggestion.map(str::to_owned),
            notes: notes.collect(),
            ..DirVerification::default()
        })
    }

    pub(super) fn append(
        mut self,
        target: &Target,
        file: &Path,
        lenient: bool,
        out: &mut Output,
    ) -> Outcome {
        let mut lines = Lines::open(file)?;
        let mut timeline = self.timeline(lenient)?;
        while let Some(line) = lines.next()? {
            let read = turn(line).map_err(|error| lines.refused(error))?;
            let pushed = self.push(&mut timeline, &read, lenient, &lines)?;
            odd(&pushed);
            let turn = pushed.record.turn_id;
            if target.json {
                out.json(object! { "turnId": turn })?;
            } else {
                writeln!(out, "turn {turn}")?;
            }
            out.flush()?;
            if pushed.snapshot.is_some() {
                self.snapshot(&timeline);
            }
        }
        Ok(())
    }

    /// Appends a turn; after those of others, where they came first.
    fn push(
        &mut self,
        timeline: &mut Timeline,
        turn: &TurnRecord,
        lenient: bool,
        lines: &Lines,
    ) -> Outcome<Pushed> {
        let mut races = 0;
        loop {
            let mut next = timeline.clone();
            let pushed = next.push(turn.clone()).map_err(|error| lines.refused(error))?;
            if let Some(drift) = pushed.drift.first().filter(|_| !lenient) {
                return Err(lines.refused(refused(drift)));
            }
            let body = pushed.record.to_json().to_string().into_bytes();
            let id = ReplayedTimeline::event_id(&pushed.record)?;
            let event = NewEvent::new(id, ReplayedTimeline::kind(&pushed.record), body)?;
            let expected = Expected::Last(timeline.last_turn());
            match self.journal.append(&self.session, expected, event, now()) {
                Ok(_) => {
                    *timeline = next;
                    return Ok(pushed);
                }
                Err(error) if error.kind() == ErrorKind::Conflict && races < MOST_RACES => {
                    races += 1;
                    for turn in self.turns(timeline.last_turn())? {
                        timeline.push(turn)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
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
