use super::{Guard, SentRequest};
use crate::{Result, bill::BrokenCache, request::Recording};

impl Guard {
    /// Why a cache broke, in a sentence without the stop at its end: what [`Prediction::cause`] says of
    /// a difference, what the provider itself did, or what the report shows. Where two requests differ
    /// it costs what [`Guard::predict`] does.
    ///
    /// # Errors
    /// As [`Recording::request`] and [`Guard::predict`].
    ///
    /// [`Prediction::cause`]: super::Prediction::cause
    pub fn explain(&self, recording: &Recording, broken: &BrokenCache) -> Result<String> {
        if let Some(words) = broken.cause.words() {
            return Ok(words);
        }
        let was = recording.request(broken.previous)?;
        let is = recording.request(broken.request)?;
        let said = self.predict(Some(&SentRequest::new(&was)), &SentRequest::new(&is))?;
        Ok(said.cause().unwrap_or_else(|| "a request between the two differs".to_owned()))
    }
}
