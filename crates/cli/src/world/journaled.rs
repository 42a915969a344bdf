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
    change::{DurableTurn, Lines, odd, turn},
    line_ids::{LineDigest, LineIds},
    now, show,
};
use crate::{
    failure::{Failure, Outcome},
    journal::{
        args::Place,
        place::{Access, Opened, is_nothing, no_session},
    },
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

/// What can be read of a past.
#[derive(Default)]
struct Past {
    turns: Vec<TurnRecord>,
    /// How many of them come before the first gap.
    before_gap: Option<usize>,
    /// What is missing: a sentence for each gap.
    missing: Vec<String>,
}

impl Past {
    /// The turns before the first gap.
    fn begun(&self) -> Option<&[TurnRecord]> {
        self.turns.get(..self.before_gap?)
    }
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

    /// What can be read of the past, where events are missing between others or before them.
    fn past(&mut self, mut note: impl FnMut(&Event)) -> Outcome<Past> {
        let last = self.journal.status(&self.session)?.last_sequence;
        let mut past = Past::default();
        let (mut next, mut most) = (1, PAGE);
        while next <= last {
            match self.journal.read(&self.session, next, most) {
                Ok(events) if events.is_empty() => break,
                Ok(events) => {
                    most = PAGE;
                    next += events.len() as u64;
                    for event in &events {
                        note(event);
                        past.turns.push(ReplayedTimeline::turn(event)?);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Gap => {
                    // What is missing at the end of a log that lost it is said besides.
                    if !self.journal.lost_ends().is_empty() {
                        break;
                    }
                    let first = error.place().event.unwrap_or(next);
                    if first > next {
                        most = usize::try_from(first - next).unwrap_or(PAGE).min(PAGE);
                        continue;
                    }
                    past.before_gap.get_or_insert(past.turns.len());
                    past.missing.push(error.message().to_owned());
                    next = self.after_gap(next, last)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(past)
    }

    /// The first event after a gap that begins with this one.
    fn after_gap(&mut self, first: u64, last: u64) -> Outcome<u64> {
        let (mut missing, mut there, mut step) = (first, last + 1, 1);
        while there - missing > 1 {
            // As far again as the gap is known to reach; then half of what is left.
            let middle = missing + (there - missing) / 2;
            let probed = middle.min(missing.saturating_add(step));
            match self.journal.read(&self.session, probed, 1) {
                Err(error) if error.kind() == ErrorKind::Gap => missing = probed,
                found => {
                    found?;
                    there = probed;
                }
            }
            step = step.saturating_mul(2);
        }
        Ok(there)
    }

    /// The turns that can be read; what is missing is said.
    pub(super) fn log(&mut self) -> Outcome<Vec<TurnRecord>> {
        let Past { turns, missing, .. } = self.past(|_| ())?;
        missing.iter().for_each(|text| note(text));
        Ok(turns)
    }

    fn load(&mut self) -> Outcome<LoadedState<ReplayedTimeline>> {
        let loaded = self.journal.load::<ReplayedTimeline>(&self.session)?;
        loaded.report.skipped_snapshots.iter().for_each(|passed| note(&passed.to_string()));
        Ok(loaded)
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
            let past = self.past(|_| ())?;
            let name = self.session.as_str();
            let state = match past.missing.first() {
                None => ReplayedTimeline::timeline(name, past.turns, false)?.state_at(turn)?,
                Some(_) if past.begun().is_some_and(|begun| turn <= begun.len() as u64) => {
                    let begun = past.begun().unwrap_or_default().to_vec();
                    ReplayedTimeline::timeline(name, begun, false)?.state_at(turn)?
                }
                Some(missing) => {
                    let loaded = self.load()?.state;
                    if loaded.last_turn() != turn {
                        let failure = Failure::new(missing).at(place.0, place.1).at("turn", turn);
                        let hint = "the state after the last turn is there, without `--turn`";
                        return Err(failure.hint(hint).into());
                    }
                    loaded.state().clone()
                }
            };
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
        let past = self.past(|_| ())?;
        if !past.missing.is_empty() {
            // What comes before the gap fits itself.
            let begun = past.begun().unwrap_or_default().to_vec();
            ReplayedTimeline::timeline(self.session.as_str(), begun, false)?;
            let state = "the state is that of a snapshot and the turns after it";
            let notes = past.missing.iter().map(|gone| format!("{gone}: {state}"));
            return Ok(DirVerification {
                valid: true,
                turns: loaded.state.last_turn(),
                notes: notes.collect(),
                ..DirVerification::default()
            });
        }
        let timeline = ReplayedTimeline::timeline(self.session.as_str(), past.turns, false)?;
        let (turn, state) = (loaded.state.last_turn(), loaded.state.state());
        let found = timeline.verify_state(turn, state)?;
        let torn: Vec<String> = self.journal.torn_tail(&self.session).into_iter().collect();
        let skipped_snapshots = loaded.report.skipped_snapshots.iter().map(ToString::to_string);
        let notes = skipped_snapshots.chain(self.journal.notes());
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
                out.answer(&DurableTurn { turn_id: turn })?;
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

    /// The whole past, with note taken of its events. Where some of it is gone, what the newest
    /// snapshot and the turns after it lead to.
    fn noted(&mut self, appending: &mut Appending) -> Outcome<Timeline> {
        let past = self.past(|event| appending.note(event))?;
        if !past.missing.is_empty() {
            return self.resumed(appending);
        }
        Ok(ReplayedTimeline::timeline(self.session.as_str(), past.turns, appending.lenient)?)
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
        appending.newest = None;
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
