use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use indexmap::IndexMap;

use super::{
    Calibration, ModelCalibration, ReportedRequest, SessionReport, UncalibratedModel,
    sample::{KindCounts, LeftOut, Sample, samples},
};
use crate::{Error, ErrorKind, Result, request::Recording};

/// Fits one calibration to several recordings, which need not be there together.
///
/// Sessions of a model are fitted together, whatever recording they are of. A session that two
/// recordings hold, as where one is a copy of the other's beginning, counts once. So does an answer
/// that a fork copied.
#[derive(Debug, Default)]
pub struct CalibrationBuilder {
    base: Option<Arc<str>>,
    recordings: usize,
    samples: Vec<Sample>,
    sessions: IndexMap<(usize, Arc<str>, Arc<str>), SessionReport>,
    /// The sessions so far, by how they begin, with the recording that they were first seen in.
    known: HashMap<Beginning, usize>,
    /// The samples so far, with whether one is a copy: the answer may be there in its own session.
    taken: HashMap<(Arc<str>, u64, KindCounts), bool>,
    left_out: LeftOut,
}

/// How a session begins with a model: its name and its first two reports. One alone is the same
/// wherever a task is given twice.
type Beginning = (Arc<str>, Arc<str>, [ReportedRequest; 2]);

/// Whether a session was started by another, or stands beside another in its file.
pub(super) fn is_subagent(recording: &Recording, session: &str) -> bool {
    recording.started_by(session).is_some() || session.contains('/')
}

impl CalibrationBuilder {
    /// Takes what a recording reports. Costs a walk over its chunks.
    ///
    /// # Errors
    /// [`ErrorKind::Tokenizer`] where another tokenizer counted the recordings before, and those of
    /// [`Recording::request`].
    pub fn add(&mut self, recording: &Recording) -> Result<()> {
        let base = recording.hud().counter().id();
        if let Some(known) = self.base.as_deref().filter(|known| *known != base) {
            let message = format!("expected a recording that {known} counted, found {base}");
            return Err(Error::new(ErrorKind::Tokenizer, message));
        }
        self.base.get_or_insert_with(|| base.into());
        let number = self.recordings;
        self.recordings += 1;
        let (samples, left_out) = samples(recording, number)?;
        self.left_out.unnamed += left_out.unnamed;
        self.left_out.unreported += left_out.unreported;
        let client: Arc<str> = recording.format().name().into();
        let report_of = |sample: &Sample| ReportedRequest {
            request: sample.request,
            reported: sample.reported,
            counts: sample.counts,
        };
        let mut begins: IndexMap<(Arc<str>, Arc<str>), Vec<ReportedRequest>> = IndexMap::new();
        for sample in &samples {
            let key = (Arc::clone(&sample.session), Arc::clone(&sample.model));
            let reports = begins.entry(key).or_default();
            if reports.len() < 2 {
                reports.push(report_of(sample));
            }
        }
        // The recording in which each session was seen first.
        let seen = begins.into_iter().map(|((session, model), reports)| {
            let first = <[ReportedRequest; 2]>::try_from(reports).map_or(number, |reports| {
                let beginning = (Arc::clone(&session), Arc::clone(&model), reports);
                *self.known.entry(beginning).or_insert(number)
            });
            ((session, model), first)
        });
        let seen: HashMap<(Arc<str>, Arc<str>), usize> = seen.collect();
        for mut sample in samples {
            let Sample { session, model, request, .. } = sample.clone();
            let report = report_of(&sample);
            let key = (Arc::clone(&session), Arc::clone(&model));
            let first = seen.get(&key).copied().unwrap_or(number);
            sample.recording = first;
            let key = (first, Arc::clone(&session), Arc::clone(&model));
            let new = || SessionReport {
                is_subagent: is_subagent(recording, &session),
                session: Arc::clone(&session),
                model: Arc::clone(&model),
                client: Arc::clone(&client),
                first: report,
                last: report,
            };
            let of = self.sessions.entry(key).or_insert_with(new);
            // What a copy repeats is known.
            if first == number || request > of.last.request {
                of.last = report;
                let is_known = match self.taken.entry((model, report.reported, report.counts)) {
                    Entry::Occupied(of) => *of.get() || sample.is_copy,
                    Entry::Vacant(of) => {
                        of.insert(sample.is_copy);
                        false
                    }
                };
                if !is_known {
                    self.samples.push(sample);
                }
            }
        }
        Ok(())
    }

    /// Fits what was taken. A model with too little data is refused, with the reason: that is no
    /// error. Costs 31 fits for each model, each linear in its exchanges.
    pub fn build(self) -> Calibration {
        let mut by_model: IndexMap<Arc<str>, Vec<Sample>> = IndexMap::new();
        for sample in self.samples {
            by_model.entry(Arc::clone(&sample.model)).or_default().push(sample);
        }
        let (mut models, mut refused) = (Vec::new(), Vec::new());
        for (model, samples) in by_model {
            let exchanges = samples.len() as u64;
            match ModelCalibration::of(&model, &samples) {
                Ok(fitted) => models.push(fitted),
                Err(reason) => refused.push(UncalibratedModel { model, exchanges, reason }),
            }
        }
        // The model that a session speaks with most comes first.
        models.sort_by_key(|model| std::cmp::Reverse(model.exchanges));
        let is_fitted = |of: &SessionReport| models.iter().any(|model| model.model == of.model);
        let sessions = self.sessions.into_values().filter(is_fitted).collect();
        let base = self.base.unwrap_or_else(|| "".into());
        let LeftOut { unnamed, unreported } = self.left_out;
        Calibration { base, models, refused, sessions, unnamed, unreported }
    }
}
