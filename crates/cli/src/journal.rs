//! `afterimage journal`: what journals hold.

mod anything;
pub(crate) mod args;
pub(crate) mod place;
#[cfg(feature = "nats")]
mod server;

use std::{io::Write, time::SystemTime};

use afterimage::{
    id::Millis,
    journal::{
        ErrorKind, LoadReport, LoadedState, LostEvents, Replay, SessionName, SessionStatus,
        SkippedSnapshot, SnapshotInfo,
    },
    json::Value,
    log::{EndProblem, LostEnd},
    session::bridge::{ReplayedTimeline, ReplayedVeil},
};

use self::{
    anything::Anything,
    args::{JournalCommand, Ls, OfSession},
    place::{Access, Opened, is_nothing, no_session},
};
use crate::{
    answer::answer,
    failure::{Failure, Outcome, Stop},
    output::{Json, Output},
    style,
    table::{Column, Table, plain},
    text::{counted, grouped, printable},
};

pub(crate) use args::Journal;

/// What the events of a session of frames are called, and those of one of turns.
const FRAME: &str = "frame";
const TURN: &str = "turn";

pub(crate) fn run(args: &Journal) -> Outcome {
    let done = match &args.command {
        JournalCommand::Ls(args) => ls(args),
        JournalCommand::Load(args) => load(args),
        JournalCommand::Snapshot(args) => snapshot(args),
        JournalCommand::AcceptLoss(args) => accept_loss(args),
        JournalCommand::Repair(args) => repair(args),
        JournalCommand::Rm(args) => rm(args),
    };
    done.map_err(Stop::without_guess)
}

fn ls(args: &Ls) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Read)?;
    let sessions = journal.sessions()?;
    let columns = [
        Column::number("event", 8),
        Column::number("snapshot", 8),
        Column::number("bytes", 10),
        Column::text("taken", 20),
        Column::text("session", 20),
    ];
    let table = Table::new(columns);
    if !args.json {
        table.head(&mut out)?;
    }
    let mut is_whole = true;
    for session in &sessions {
        let status = match journal.status(session) {
            Ok(status) => status,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error.into()),
            // It hides none of the others.
            Err(error) => {
                is_whole = false;
                if let Stop::Failure(failure) = Stop::from(error).without_guess() {
                    crate::output::report(&failure);
                }
                continue;
            }
        };
        let SessionStatus { last_sequence, snapshot, skipped_snapshot, .. } = status;
        if args.json {
            out.answer(&JournaledSession {
                session: session.as_str(),
                last_sequence,
                snapshot: snapshot.as_ref().map(SnapshotAnswer::of),
                passed_over: skipped_snapshot.as_ref().map(PassedOver::of),
            })?;
            continue;
        }
        let of = |show: &dyn Fn(&SnapshotInfo) -> String| {
            snapshot.as_ref().map_or_else(|| "-".to_owned(), show)
        };
        table.row(
            &mut out,
            vec![
                plain(grouped(last_sequence)),
                plain(of(&|snapshot| grouped(snapshot.after_sequence))),
                plain(of(&|snapshot| grouped(snapshot.stored_bytes))),
                plain(of(&|snapshot| moment(snapshot.created_at))),
                plain(session.as_str()),
            ],
        )?;
        if let Some(passed) = skipped_snapshot {
            writeln!(out, "  not used: {}", printable(&passed.to_string()))?;
        }
    }
    out.flush()?;
    if is_whole { Ok(()) } else { Err(Stop::Reported) }
}

fn load(args: &OfSession) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Read)?;
    let session = SessionName::new(args.session.as_str())?;
    let kind = newest_kind(&mut journal, &session)?;
    let (sequence, state, events, report) = if kind.as_deref() == Some(FRAME) {
        let LoadedState { state, sequence, report } = journal.load::<ReplayedVeil>(&session)?;
        (sequence, Some(state.to_json()), None, report)
    } else if kind.as_deref() == Some(TURN) {
        let LoadedState { state, sequence, report } = journal.load::<ReplayedTimeline>(&session)?;
        (sequence, Some(state.state().to_json()), None, report)
    } else {
        let LoadedState { state, sequence, report } = journal.load::<Anything>(&session)?;
        (sequence, state.snapshot, Some(state.events), report)
    };
    if args.json {
        let (session, report) = (session.as_str(), LoadAnswer::of(&report));
        out.answer(&LoadedSession { session, sequence, state, events, report })?;
    } else {
        page(&mut out, sequence, (state, events), &report)?;
    }
    Ok(out.flush()?)
}

/// The kind of the newest event; none where all have expired, and a snapshot is what is left.
fn newest_kind(journal: &mut Opened, session: &SessionName) -> Outcome<Option<String>> {
    let last = journal.there(session)?.last_sequence;
    match journal.read(session, last.max(1), 1) {
        Err(error) if error.kind() == ErrorKind::Gap => {
            if journal.has_lost_end(session) {
                return Err(journal.advised(session, error));
            }
            Ok(None)
        }
        newest => Ok(newest?.first().map(|event| event.kind.to_string())),
    }
}

fn page(
    out: &mut Output,
    sequence: u64,
    (state, events): (Option<Value>, Option<Vec<Value>>),
    report: &LoadReport,
) -> Outcome {
    let heading = out.paint.style(style::HEADING);
    let mut line =
        |name: &str, text: &str| writeln!(out, "{heading}{name:<9}{heading:#} {}", printable(text));
    line("event", &grouped(sequence))?;
    let snapshot = report.snapshot.as_ref().map_or_else(
        || "none".to_owned(),
        |snapshot| {
            format!(
                "after event {}, taken {}, {} bytes",
                grouped(snapshot.after_sequence),
                moment(snapshot.created_at),
                grouped(snapshot.stored_bytes),
            )
        },
    );
    line("snapshot", &snapshot)?;
    for passed in &report.skipped_snapshots {
        line("not used", &passed.to_string())?;
    }
    line("replayed", &counted(report.events, "event"))?;
    let events = events.map(|events| ("events", Value::Array(events)));
    for (name, value) in [("state", state.unwrap_or_default())].into_iter().chain(events) {
        writeln!(out, "{heading}{name}{heading:#}")?;
        match value.as_array() {
            Some(events) => {
                for event in events {
                    writeln!(out, "{}", Json(event))?;
                }
            }
            None => writeln!(out, "{}", Json(&value))?,
        }
    }
    Ok(())
}

fn snapshot(args: &OfSession) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Write)?;
    let session = SessionName::new(args.session.as_str())?;
    let kind = newest_kind(&mut journal, &session)?;
    let info = match kind.as_deref() {
        Some(FRAME) => snapshot_of::<ReplayedVeil>(&mut journal, &session)?,
        Some(TURN) => snapshot_of::<ReplayedTimeline>(&mut journal, &session)?,
        None => {
            return Err(Failure::new("the events have expired, and a snapshot is what is left")
                .at("session", &session)
                .into());
        }
        Some(kind) => {
            return Err(Failure::new("only sessions of frames or turns can be applied here")
                .at("session", &session)
                .at("kind", kind)
                .hint("the program that knows these events takes its snapshots")
                .into());
        }
    };
    if args.json {
        let (session, snapshot) = (session.as_str(), SnapshotAnswer::of(&info));
        out.answer(&TakenSnapshot { session, snapshot })?;
    } else {
        let (after, bytes) = (grouped(info.after_sequence), grouped(info.stored_bytes));
        writeln!(out, "a snapshot after event {after}, {bytes} bytes")?;
    }
    Ok(out.flush()?)
}

fn snapshot_of<S: Replay>(journal: &mut Opened, session: &SessionName) -> Outcome<SnapshotInfo> {
    let LoadedState { state, sequence, .. } = journal.load::<S>(session)?;
    Ok(journal.write_snapshot(session, &state, sequence, Millis::from(SystemTime::now()))?)
}

fn accept_loss(args: &OfSession) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Write)?;
    let session = SessionName::new(args.session.as_str())?;
    let kind = match newest_kind(&mut journal, &session)? {
        // All events have expired: the snapshot says what they were.
        None => kind_of_snapshot(&mut journal, &session)?.map(str::to_owned),
        kind => kind,
    };
    let (sequence, report) = match kind.as_deref() {
        Some(FRAME) => accepted::<ReplayedVeil>(&mut journal, &session)?,
        Some(TURN) => accepted::<ReplayedTimeline>(&mut journal, &session)?,
        kind => {
            let failure = Failure::new("only sessions of frames or turns can be applied here");
            let hint =
                "the program that knows these events accepts their loss: `Journal::accept_loss`";
            let failure = failure.at("session", &session).hint(hint);
            return Err(match kind {
                Some(kind) => failure.at("kind", kind).into(),
                None => failure.into(),
            });
        }
    };
    if args.json {
        let (session, report) = (session.as_str(), LoadAnswer::of(&report));
        out.answer(&AcceptedLoss { session, sequence, report })?;
    } else if report.lost.is_empty() {
        writeln!(out, "nothing is missing up to event {}", grouped(sequence))?;
    } else {
        for lost in &report.lost {
            writeln!(out, "{}", printable(&lost.to_string()))?;
        }
        writeln!(out, "a snapshot after event {} goes on without them", grouped(sequence))?;
    }
    Ok(out.flush()?)
}

fn repair(args: &OfSession) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Write)?;
    let session = listed(&mut journal, &args.session)?;
    let accepted = journal.repair(&session)?;
    let last = journal.status(&session)?.last_sequence;
    if args.json {
        let lost = accepted.as_ref().and_then(|lost| lost_after(lost, last));
        out.answer(&RepairedSession {
            session: session.as_str(),
            accepted: accepted.as_ref().map(ToString::to_string),
            lost: lost.map(Into::into),
            last_sequence: last,
        })?;
    } else {
        let name = printable(session.as_str());
        match accepted {
            Some(lost) => {
                writeln!(out, "accepted as lost: {}", printable(&lost.to_string()))?;
                if let EndProblem::Lost { last: end, .. } = lost.problem
                    && last > end
                {
                    let (first, last) = (grouped(end + 1), grouped(last));
                    let kept = "a snapshot has what they changed, and only their records are gone";
                    writeln!(out, "events {first} to {last}: {kept}")?;
                }
                if let Some((first, last)) = lost_after(&lost, last) {
                    let events = counted(last + 1 - first, "event");
                    writeln!(out, "{events} lost, from event {} on", grouped(first))?;
                }
            }
            None => writeln!(out, "{name} ends where it was acknowledged")?,
        }
        writeln!(out, "{name} goes on after event {}", grouped(last))?;
    }
    Ok(out.flush()?)
}

/// The first and the last event whose changes are lost with the end of a log that goes on after
/// event `last`.
fn lost_after(lost: &LostEnd, last: u64) -> Option<(u64, u64)> {
    match lost.problem {
        EndProblem::Lost { acknowledged, .. } => {
            (last < acknowledged).then_some((last + 1, acknowledged))
        }
        _ => None,
    }
}

fn accepted<S: Replay>(journal: &mut Opened, session: &SessionName) -> Outcome<(u64, LoadReport)> {
    let LoadedState { sequence, report, .. } =
        journal.accept_loss::<S>(session, Millis::from(SystemTime::now()))?;
    Ok((sequence, report))
}

/// What the newest snapshot is the state of, going by its members.
fn kind_of_snapshot(journal: &mut Opened, session: &SessionName) -> Outcome<Option<&'static str>> {
    let state = journal.read_snapshot::<Anything>(session)?.and_then(|found| found.state.snapshot);
    Ok(state.and_then(|state| {
        let has = |member| state.get(member).is_some();
        has("lastTurn").then_some(TURN).or(has("facets").then_some(FRAME))
    }))
}

fn rm(args: &OfSession) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let mut journal = Opened::open(&args.place, Access::Remove)?;
    let session = listed(&mut journal, &args.session)?;
    // What cannot be read can be removed.
    let status = match journal.status(&session) {
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error.into()),
        status => status,
    };
    journal.delete(&session)?;
    if status.as_ref().is_ok_and(is_nothing) {
        return Err(no_session(&session).into());
    }
    let last = status.ok().map(|status| status.last_sequence);
    if args.json {
        out.answer(&RemovedSession { session: session.as_str(), last_sequence: last })?;
    } else {
        let name = printable(session.as_str());
        let events = last.map_or_else(|| "its events".to_owned(), |last| counted(last, "event"));
        writeln!(out, "{name} is gone: {events} and what came of them")?;
    }
    Ok(out.flush()?)
}

/// The session that is listed so: where its name cannot be read, a token stands for it.
fn listed(journal: &mut Opened, name: &str) -> Outcome<SessionName> {
    if journal.is_on_a_server() {
        return Ok(SessionName::new(name)?);
    }
    let found = journal.sessions()?.into_iter().find(|session| session.as_str() == name);
    Ok(found.map_or_else(|| SessionName::new(name), Ok)?)
}

answer! {
    /// A session that has events.
    pub(crate) struct JournaledSession<'s> {
        /// its name
        session: &'s str,
        /// the sequence of its newest event
        last_sequence: u64,
        /// its newest snapshot; null where there is none, or it does not say what it is
        snapshot: Option<SnapshotAnswer>,
        /// what is wrong with that snapshot, so that a load passes it over; null where nothing is
        passed_over: Option<PassedOver>,
    }

    /// A snapshot of a journal.
    pub(crate) struct SnapshotAnswer {
        /// the newest event that is in it
        after_sequence: u64,
        /// when it was taken, in milliseconds since the Unix epoch
        created_at: Millis,
        /// the version of the state's form
        schema: u32,
        /// the bytes that it takes
        stored_bytes: u64,
    }

    /// A snapshot that is not used.
    pub(crate) struct PassedOver {
        /// the newest event that is in it; null where it does not say so
        after_sequence: Option<u64>,
        /// what is wrong with it
        reason: String,
    }

    /// What a journal holds of a session.
    pub(crate) struct LoadedSession<'s> {
        /// its name
        session: &'s str,
        /// the newest event that is in what follows
        sequence: u64,
        /// of a session of frames the veil: `version`, `facets`, `tags` (those that content must not
        /// forge), `lastFrame`; of one of turns the state of the world; of any other, and of one whose
        /// events have all expired, the state of its newest snapshot as it is
        state: Option<Value>,
        /// not of a session of frames or turns: the events after that snapshot, each with `sequence` and
        /// `event`
        events?: Vec<Value>,
        /// how it was loaded
        report: LoadAnswer,
    }

    /// How a session was loaded.
    pub(crate) struct LoadAnswer as "report of a load" {
        /// the snapshot that was used; null where none was
        snapshot: Option<SnapshotAnswer>,
        /// the snapshots that were passed over
        passed_over: Vec<PassedOver>,
        /// how many events were replayed
        events: u64,
        /// the bytes of their bodies
        bytes: u64,
        /// of `accept-loss`: the events that are accepted as lost
        lost: Vec<LostAnswer>,
        /// how many requests to the store failed and were tried again
        retries: u32,
    }

    /// Events that are lost.
    pub(crate) struct LostAnswer {
        /// the sequence of the first
        first: u64,
        /// the sequence of the last
        last: u64,
        /// what the state has against the event, where it is there and was refused; else null
        refusal: Option<String>,
    }

    /// A snapshot that was taken.
    pub(crate) struct TakenSnapshot<'s> {
        /// the session
        session: &'s str,
        ..snapshot: SnapshotAnswer,
    }

    /// A session whose losses are accepted.
    pub(crate) struct AcceptedLoss<'s> {
        /// its name
        session: &'s str,
        /// the newest event that is in its state
        sequence: u64,
        /// how it was loaded, and what is lost
        report: LoadAnswer,
    }

    /// A session that was repaired.
    pub(crate) struct RepairedSession<'s> {
        /// its name
        session: &'s str,
        /// what is accepted as lost, in a sentence; null where nothing is
        accepted: Option<String>,
        /// the first and the last event whose changes no snapshot has; null where there are none
        lost: Option<[u64; 2]>,
        /// the event after which it goes on
        last_sequence: u64,
    }

    /// A session that was removed.
    pub(crate) struct RemovedSession<'s> {
        /// its name
        session: &'s str,
        /// the sequence of the newest event that was removed; null where that could not be read
        last_sequence: Option<u64>,
    }
}

impl SnapshotAnswer {
    fn of(info: &SnapshotInfo) -> Self {
        let SnapshotInfo { after_sequence, created_at, schema, stored_bytes, .. } = *info;
        Self { after_sequence, created_at, schema, stored_bytes }
    }
}

impl PassedOver {
    fn of(passed: &SkippedSnapshot) -> Self {
        Self { after_sequence: passed.after_sequence, reason: passed.reason.to_string() }
    }
}

impl LoadAnswer {
    fn of(report: &LoadReport) -> Self {
        let lost = |lost: &LostEvents| LostAnswer {
            first: lost.first,
            last: lost.last,
            refusal: lost.refusal.clone(),
        };
        Self {
            snapshot: report.snapshot.as_ref().map(SnapshotAnswer::of),
            passed_over: report.skipped_snapshots.iter().map(PassedOver::of).collect(),
            events: report.events,
            bytes: report.bytes,
            lost: report.lost.iter().map(lost).collect(),
            retries: report.retries,
        }
    }
}

/// A moment as people write it.
fn moment(at: Millis) -> String {
    match jiff::Timestamp::from_millisecond(at.get()) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at.get().to_string(),
    }
}
