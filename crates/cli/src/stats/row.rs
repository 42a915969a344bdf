//! What `stats --json` says.

use afterimage::bill::MediaCount;

use super::{
    context::{ContextHeld, RequestsHeld},
    frames::FrameSums,
    ledger::SumsAnswer,
    media::MediaAnswer,
};
use crate::{answer::answer, lens::CountsAnswer, usage::ReportedAnswer};

answer! {
    /// What a file holds and costs.
    pub(crate) struct FileRow<'l> {
        /// the file
        file: String,
        /// the name of the input format
        format: &'static str,
        /// how many sessions there are
        sessions: u64,
        ..frames: FrameSums,
        ..sums: SumsAnswer<'l>,
        ..counts: CountsAnswer<'l>,
        /// the requests of the file
        requests: RequestsHeld,
        /// what the last request holds, of several sessions those of all together
        context: ContextHeld,
        /// where these requests come from, as in `requests --json`; `logged` where some of them are
        provenance: &'static str,
        /// what they are without, as in `requests --json`
        lacks: Vec<&'static str>,
        /// images, sounds and documents of the file by their providers' rules, which are in no other sum
        media: MediaAnswer<'l>,
        ..reported: ReportedAnswer,
    }

    /// What one request holds.
    pub(crate) struct RequestRow<'l> {
        /// the file
        file: String,
        /// the name of the input format
        format: &'static str,
        /// the number of the request
        request: usize,
        /// where it comes from, as in `requests --json`
        provenance: &'static str,
        /// what it is without, as in `requests --json`
        lacks: Vec<&'static str>,
        /// what it holds
        context: ContextHeld,
        /// images, sounds and documents in it, by their providers' rules, which are in no other sum
        media: MediaCount,
        ..sums: SumsAnswer<'l>,
        ..counts: CountsAnswer<'l>,
    }
}
