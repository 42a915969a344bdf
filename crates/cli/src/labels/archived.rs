use std::collections::HashMap;

use afterimage::{
    session::archive::{ArchivedTranscript, FrameRow},
    steps::FacetCalls,
    veil::Source,
};

use super::{FrameLabels, Labels};
use crate::failure::Outcome;

/// Labels frames of an archived file without reading all of it.
#[derive(Debug, Default)]
pub(crate) struct ArchivedLabels {
    /// The labels of all frames, by their indices: once a result answers no call nearby.
    whole: Option<HashMap<usize, FrameLabels>>,
}

impl ArchivedLabels {
    /// The labels of the frame with this index. Reads the frame and, where it holds a result, those
    /// before it up to the beginning of the agent's last turn.
    pub(crate) fn of(
        &mut self,
        archived: &ArchivedTranscript,
        index: usize,
    ) -> Outcome<FrameLabels> {
        if self.whole.is_none() {
            let labels = nearby(archived, index)?;
            if labels.is_paired {
                return Ok(labels);
            }
        }
        let whole = match self.whole.take() {
            Some(whole) => whole,
            None => all(archived)?,
        };
        Ok(self.whole.insert(whole).get(&index).cloned().unwrap_or_default())
    }
}

/// The labels of a frame, as far as the agent's last turn tells.
fn nearby(archived: &ArchivedTranscript, index: usize) -> Outcome<FrameLabels> {
    let rows = archived.rows()?;
    let frame = archived.frame(index)?;
    let mut calls = FacetCalls::default();
    let labels = FrameLabels::new(&frame, &mut calls);
    let Some(row) = rows.get(index).filter(|_| !labels.is_paired) else { return Ok(labels) };
    let mut turn = Vec::new();
    let before = rows.iter().enumerate().take(index).rev();
    for (index, _) in before
        .filter(|(_, of): &(usize, &FrameRow)| of.session == row.session && of.message.is_some())
    {
        let frame = archived.frame(index)?;
        let is_before = |last: &afterimage::veil::Frame| {
            last.source == Source::Agent && frame.source != Source::Agent
        };
        if turn.last().is_some_and(is_before) {
            break;
        }
        turn.push(frame);
    }
    let mut calls = FacetCalls::default();
    for frame in turn.iter().rev() {
        calls.push(frame);
    }
    Ok(FrameLabels::new(&frame, &mut calls))
}

fn all(archived: &ArchivedTranscript) -> Outcome<HashMap<usize, FrameLabels>> {
    let mut labels = Labels::default();
    let mut all = HashMap::new();
    for (index, row) in archived.rows()?.iter().enumerate() {
        if row.message.is_some() {
            let frame = archived.frame(index)?;
            all.insert(index, labels.next(&archived.session_name(*row), &frame));
        }
    }
    Ok(all)
}
