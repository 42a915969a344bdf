//! Snapshots, checks, repairs.

use std::{collections::BTreeMap, io::Write, sync::Arc};

use afterimage::{
    json::Value,
    log::DiskFiles,
    timeline::{
        Data, Difference, Drift, ErrorKind, SnapshotReason, Timeline,
        session::{DirVerification, PruneReport, SessionDir, TargetSum, repair as repaired},
    },
};

use super::{Reading, args::Target, close, now, open, options};
use crate::{
    answer::answer,
    failure::{Outcome, Stop},
    json::object,
    output::Output,
    text::{counted, grouped, printable},
};

pub(super) fn snapshot(target: &Target, reason: SnapshotReason, out: &mut Output) -> Outcome {
    let mut session = open(&target.directory, options())?;
    session.snapshot(reason, now())?;
    let turn = session.timeline().last_turn();
    close(session)?;
    if target.json {
        let id = format!("snapshot-{turn}");
        let reason = reason.as_str();
        return out.answer(&WrittenSnapshot { snapshot_id: id, turn_id: turn, reason });
    }
    Ok(writeln!(out, "snapshot of turn {turn}, {reason}")?)
}

pub(super) fn verify(target: &Target, recover: bool) -> Outcome<DirVerification> {
    let verified = || SessionDir::verify(Arc::new(DiskFiles), &target.directory, &options());
    let mut found = match verified() {
        Err(error) if error.kind() == ErrorKind::UnknownFormat => {
            recorded(&Reading::open(&target.directory)?)
        }
        found => found?,
    };
    if recover && found.problems.is_empty() && !found.differences.is_empty() {
        let notes = recovered(target)?;
        found = verified()?;
        found.notes.extend(notes);
    }
    Ok(found)
}

/// Says what was found; a failure where that is anything.
pub(super) fn verdict(target: &Target, found: &DirVerification, out: &mut Output) -> Outcome {
    if target.json {
        out.answer(found)?;
    } else {
        page(found, out)?;
    }
    out.flush()?;
    if found.valid { Ok(()) } else { Err(Stop::Negative) }
}

/// Rebuilds what has drifted; what that was, in sentences.
fn recovered(target: &Target) -> Outcome<Vec<String>> {
    let mut session = open(&target.directory, options())?;
    let done = session.recover(now())?;
    close(session)?;
    let differences = done.differences.iter();
    let mut notes: Vec<String> =
        differences.map(|found| format!("was rebuilt: {}", differing(found))).collect();
    let kept = done.kept.iter().map(|path| format!("the snapshot before is {}", path.display()));
    notes.extend(kept);
    notes.push(format!("the recovery snapshot is that of turn {}", done.turn_id));
    Ok(notes)
}

fn differing((turn, difference): &(u64, Difference)) -> String {
    let shown = |value: &Option<Data>| {
        value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    let (expected, found) = (shown(&difference.expected), shown(&difference.found));
    format!("turn {turn}, at {}: expected {expected}, found {found}", difference.path)
}

/// What is wrong with what another program wrote: each break of a chain, and where a state that it
/// kept is not what the turns come to.
fn recorded(reading: &Reading) -> DirVerification {
    DirVerification {
        valid: reading.breaks().is_empty() && reading.differences().is_empty(),
        differences: reading.differences().to_vec(),
        turns: reading.timeline().last_turn(),
        problems: reading.breaks().iter().map(Drift::to_string).collect(),
        ..DirVerification::default()
    }
}

fn page(found: &DirVerification, out: &mut Output) -> Outcome {
    let verdict = if found.valid { "valid" } else { "not valid" };
    let torn = if found.torn.is_empty() { "" } else { ", and then a torn tail" };
    writeln!(out, "{verdict}: {}{torn}", counted(found.turns, "turn"))?;
    for problem in &found.problems {
        writeln!(out, "  problem: {}", printable(problem))?;
    }
    for text in &found.follows {
        writeln!(out, "  follows: {}", printable(text))?;
    }
    for difference in &found.differences {
        writeln!(out, "  difference: {}", printable(&differing(difference)))?;
    }
    for text in &found.torn {
        writeln!(out, "  torn tail: {}", printable(text))?;
    }
    for text in &found.notes {
        writeln!(out, "  note: {}", printable(text))?;
    }
    if let Some(suggestion) = &found.suggestion {
        writeln!(out, "  {suggestion}")?;
    }
    Ok(())
}

pub(super) fn repair(target: &Target, out: &mut Output) -> Outcome {
    let files: Arc<dyn afterimage::log::Files> = Arc::new(DiskFiles);
    let done = repaired(&files, &target.directory, &options())?;
    if target.json {
        return out.answer(&done);
    }
    writeln!(out, "{}, {} lost", counted(done.turns, "turn"), grouped(done.lost_turns()))?;
    if let Some((first, last)) = done.accepted {
        let (filled, at_end) = (done.lost.len() as u64, (last + 1).saturating_sub(first));
        writeln!(
            out,
            "  {} filled in, {} accepted as lost at the end",
            grouped(filled),
            grouped(at_end)
        )?;
    }
    for text in &done.notes {
        writeln!(out, "  {}", printable(text))?;
    }
    for path in &done.kept {
        writeln!(out, "  kept: {}", path.display())?;
    }
    Ok(())
}

pub(super) fn prune(target: &Target, dry_run: bool, out: &mut Output) -> Outcome {
    let pruned = if dry_run {
        SessionDir::open_read(Arc::new(DiskFiles), &target.directory, options())?.prune_plan()?
    } else {
        let mut session = open(&target.directory, options())?;
        let pruned = session.prune()?;
        close(session)?;
        pruned
    };
    if target.json {
        return out.answer(&pruned_answer(&pruned, dry_run));
    }
    let verb = if dry_run { "would remove" } else { "removed" };
    let plan = &pruned.plan;
    writeln!(
        out,
        "{verb} {} of {}, rewriting {}",
        counted(plan.remove.len() as u64, "snapshot"),
        grouped((plan.remove.len() + plan.keep.len()) as u64),
        grouped(plan.rewrite.len() as u64)
    )?;
    for turn in &plan.remove {
        writeln!(out, "  snapshot-{turn}")?;
    }
    for path in &pruned.leftovers {
        writeln!(out, "  {}", path.display())?;
    }
    for text in &plan.over {
        writeln!(out, "  note: {text}")?;
    }
    Ok(())
}

fn pruned_answer(pruned: &PruneReport, dry_run: bool) -> PrunedTurns<'_> {
    let leftovers = pruned.leftovers.iter().map(|path| path.display().to_string());
    PrunedTurns {
        dry_run,
        keep: &pruned.plan.keep,
        remove: &pruned.plan.remove,
        rewrite: &pruned.plan.rewrite,
        leftovers: leftovers.collect(),
        over: &pruned.plan.over,
    }
}

answer! {
    /// A snapshot that was written.
    pub(crate) struct WrittenSnapshot {
        /// its id
        snapshot_id: String,
        /// the turn after which this is the state
        turn_id: u64,
        /// why it was written: `initial`, `interval`, `scene_end`, `conflict_end`, `milestone`,
        /// `manual` or `session_end`
        reason: &'static str,
    }

    /// Snapshots that are pruned.
    pub(crate) struct PrunedTurns<'p> {
        /// whether this is only what would be done
        dry_run: bool,
        /// the turns whose snapshots stay
        keep: &'p [u64],
        /// those whose snapshots go
        remove: &'p [u64],
        /// those whose snapshots are written anew, since what they build on goes
        rewrite: &'p [u64],
        /// files that an earlier run left behind, and that go
        leftovers: Vec<String>,
        /// what a limit would have and cannot get, in sentences
        over: &'p [String],
    }

    /// What a world holds.
    pub(crate) struct WorldStats<'w> {
        /// the id of its session
        session_id: &'w str,
        /// how many turns it has
        turns: u64,
        /// how many deltas they have
        deltas: u64,
        /// how many snapshots there are
        snapshots: u64,
        /// how many of them are based on another one
        compressed_snapshots: u64,
        /// the bytes of its state
        state_bytes: u64,
        /// the bytes of the files of turns; null of a journal
        turn_bytes: Option<u64>,
        /// the bytes of the files of snapshots; null of a journal
        snapshot_bytes: Option<u64>,
        /// the bytes of the indexes; null of a journal
        index_bytes: Option<u64>,
        /// for each target of deltas `count`, how many there are, and `turnRange`, the first and
        /// the last turn that has some
        by_target: Value,
    }
}

/// What a session directory has an index of, counted.
fn counted_targets(timeline: &Timeline) -> Outcome<Vec<TargetSum>> {
    let mut sums: BTreeMap<String, (u64, (u64, u64))> = BTreeMap::new();
    for turn in 1..=timeline.last_turn() {
        for delta in &timeline.turn(turn)?.deltas {
            let sum = sums.entry(delta.target.to_string()).or_insert((0, (turn, turn)));
            sum.0 += 1;
            sum.1.1 = turn;
        }
    }
    Ok(sums.into_iter().map(|(target, (count, range))| (target, count, range)).collect())
}

pub(super) fn stats(target: &Target, out: &mut Output) -> Outcome {
    let mut reading = Reading::open(&target.directory)?;
    let (mut bytes, mut targets, mut snapshots) = (None, Vec::new(), None);
    if let Reading::Own(session) = &mut reading {
        bytes = Some(session.stored_bytes()?);
        targets = session.targets()?;
        snapshots = Some(session.stored_snapshots());
    }
    let timeline = reading.timeline();
    if bytes.is_none() {
        targets = counted_targets(timeline)?;
    }
    let state = timeline.state().to_string().len() as u64;
    let count = snapshots.as_ref().map_or(timeline.snapshots().count(), Vec::len) as u64;
    let compressed = snapshots.iter().flatten().filter(|(.., base)| base.is_some()).count() as u64;
    let deltas: u64 = targets.iter().map(|(_, count, _)| count).sum();
    if target.json {
        let of_target = targets.into_iter().map(|(target, count, (from, to))| {
            let range: Value = [from, to].into_iter().collect();
            (target, Value::Object(object! { "count": count, "turnRange": range }))
        });
        return out.answer(&WorldStats {
            session_id: timeline.session_id(),
            turns: timeline.last_turn(),
            deltas,
            snapshots: count,
            compressed_snapshots: compressed,
            state_bytes: state,
            turn_bytes: bytes.map(|bytes| bytes[0]),
            snapshot_bytes: bytes.map(|bytes| bytes[1]),
            index_bytes: bytes.map(|bytes| bytes[2]),
            by_target: Value::Object(of_target.collect()),
        });
    }
    writeln!(out, "session {:?}", timeline.session_id())?;
    writeln!(out, "  {}, {}", counted(timeline.last_turn(), "turn"), counted(deltas, "delta"))?;
    writeln!(out, "  {}, {} compressed", counted(count, "snapshot"), grouped(compressed))?;
    writeln!(out, "  {} of state", counted(state, "byte"))?;
    if let Some([turns, snapshots, indexes]) = bytes {
        let stored = turns + snapshots + indexes;
        writeln!(
            out,
            "  {} stored: {} turns, {} snapshots, {} indexes",
            counted(stored, "byte"),
            grouped(turns),
            grouped(snapshots),
            grouped(indexes)
        )?;
    }
    for (target, count, (from, to)) in targets {
        writeln!(out, "  {target:<14}{:>8}  turns {from} to {to}", grouped(count))?;
    }
    Ok(())
}
