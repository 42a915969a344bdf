//! Which frames of an archive there is reason to look at.

use afterimage::{
    session::archive::{ArchivedTranscript, FrameRow},
    snapshot::ChunkInfo,
};

use std::collections::HashSet;

use super::args::Trace;
use crate::failure::Outcome;

/// The indices of the frames that may hold what is looked for, in order.
pub(super) fn of(archived: &ArchivedTranscript, args: &Trace) -> Outcome<Vec<usize>> {
    let rows = archived.rows()?;
    let session = match &args.input.session {
        Some(name) => match archived.session_index(name) {
            Some(index) => Some(index),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    let of_session = |row: &FrameRow| session.is_none_or(|session| session == row.session);
    let target = &args.target;
    if let Some((message, _)) = target.at {
        // Without a name it is the first session.
        let session = session.or_else(|| rows.first().map(|row| row.session));
        let is = |row: &FrameRow| {
            Some(row.session) == session && row.message.is_some_and(|of| of as usize == message)
        };
        return Ok(rows.iter().position(is).into_iter().collect());
    }
    if let Some(facet) = &target.facet {
        let holding = holding(archived, facet, session)?;
        let is = |row: &FrameRow| holding.contains(&(row.session, row.sequence.get()));
        return Ok(indices(rows, is));
    }
    // Text is looked for frame by frame, as the pages are read.
    Ok(indices(rows, |row| row.message.is_some() && of_session(row)))
}

fn indices(rows: &[FrameRow], is: impl Fn(&FrameRow) -> bool) -> Vec<usize> {
    rows.iter().enumerate().filter(|(_, row)| is(row)).map(|(index, _)| index).collect()
}

/// Session and sequence of the frames in which a facet is.
fn holding(
    archived: &ArchivedTranscript,
    facet: &str,
    session: Option<u32>,
) -> Outcome<HashSet<(u32, u64)>> {
    let sessions = 0..archived.entry().sessions.len() as u32;
    let mut holding = HashSet::new();
    for index in sessions.filter(|index| session.is_none_or(|session| session == *index)) {
        let session = archived.whole_session(index)?;
        let chunks = session.chunks_of(facet)?;
        let frames = chunks.into_iter().filter_map(ChunkInfo::sequence);
        holding.extend(frames.map(|sequence| (index, sequence.get())));
    }
    Ok(holding)
}
