//! What `requests --json` says.

use afterimage::{
    id::FrameSeq,
    json::Value,
    request::{CacheBreak, Provenance, RequestTokens},
    transcript::{AppliedEdit, Money, Usage},
};

use super::counted::Counted;
use crate::{
    answer::answer,
    labels::{CallAnswer, Place},
    usage::ReportedAnswer,
};

answer! {
    /// A request of a listing.
    pub(crate) struct RequestRow<'e> {
        /// the file, where several are named
        file?: String,
        /// its number, from 1, for `render --request` and `diff FILE@NUMBER`
        request: usize,
        /// the session that it belongs to
        session: &'e str,
        /// `chat`, `messages` or `responses`
        api: &'static str,
        /// `sent`: the bytes of the wire; `logged`: the JSON that a client wrote down; `resolved`: one of
        /// these, joined with the recorded messages that it goes on from; `reconstructed`: worked out
        /// from a transcript
        provenance: &'static str,
        /// what a request that was worked out is without: `tools`, `system`, `parameters`
        lacks: Vec<&'static str>,
        /// the first frame of its answer; null where it has none
        frame: Option<FrameSeq>,
        /// the last frame that is in it; null where there is none
        last_frame: Option<FrameSeq>,
        /// when it went out, as the source has it; of a transcript, when the answer came
        time: Option<&'e str>,
        /// the record of the source with which the answer begins; of recorded traffic that of the
        /// exchange
        line: Option<u64>,
        /// the id of that record; null of recorded traffic
        uuid: Option<String>,
        /// the tools that the answer calls
        calls: Vec<String>,
        /// how long it took, in milliseconds
        duration_ms: Option<u64>,
        /// the model, where the source names it
        model: Option<&'e str>,
        /// `answered`; `superseded` where the session went on without the answer; `failed`
        outcome: &'static str,
        /// whether it is the same as the one before it in the session, which failed
        retry: bool,
        /// true where the provider was told to read it and to generate nothing (`generate`: false)
        warm_up?: bool,
        /// of a request that names an earlier response, what stands before its own messages
        resolved?: Resolved<'e>,
        /// the name of the file that `line` is of, where that is a subagent's
        subagent_file?: String,
        /// why it failed, or was cut
        reason?: &'e str,
        /// why its body is not known
        unread?: &'e str,
        /// what the provider cleared before the model read it, as its answer says: `type`, `cleared` (tool
        /// uses, or turns with reasoning), `tokens`
        edits?: Vec<&'e AppliedEdit>,
        /// its tokens, each text counted as it is written
        tokens: RequestTokens,
        /// its whole input by the best count that there is
        counted: Counted,
        /// how many tokens more than the request before it in its session
        growth: i64,
        /// where its report says that its cache served something, or not what the one before it had left
        /// there: the tokens that were billed again, which decides. `differs.billedAgain` is what this
        /// program counts; why, says `--broken`
        lost?: u64,
        /// what differs from the request before it in its session; null of the first
        differs: Option<Difference>,
        /// what was reported of it; null where nothing was
        usage: Option<&'e Usage>,
        /// what it cost by the table of prices; null where that is not known
        price: Option<Money>,
        /// of a copy of another session's answer, where it counts; `usage` and `price` are null
        copied?: Copied<'e>,
        /// of a subagent's session, what started it
        started_by?: StartedBy<'e>,
    }

    /// The last line of a listing whose requests report usage.
    pub(crate) struct RequestTotals {
        /// the file, where several are named
        file?: String,
        ..reported: ReportedAnswer,
    }

    /// How a request was joined to what it refers to.
    pub(crate) struct Resolved<'e> {
        /// how many messages of earlier requests and answers stand before its own
        messages: usize,
        /// the id of the response up to which something is missing; null where nothing is
        missing: Option<&'e str>,
        /// why it could not be joined
        wrong?: &'e str,
    }

    /// What differs from the request before.
    pub(crate) struct Difference as "difference" {
        /// the first place that differs; null where it only adds to the one before
        at: Option<DifferencePlace>,
        /// the tokens before that place
        unchanged: u64,
        /// those of them that the cache may serve
        cached: u64,
        /// its tokens that the cache does not serve, as they are counted here; where it only adds to the
        /// one before, those of `unchanged`
        billed_again: u64,
        /// definitions of tools that differ
        tools: Vec<ChangedTool>,
        /// the names of parameters that differ
        parameters: Vec<String>,
        /// what takes the cache from text that is the same, as in `diff --json`
        breaks: Vec<CacheBreak>,
    }

    /// Where two requests first differ.
    pub(crate) struct DifferencePlace {
        /// its path in the body
        path: String,
        /// the first byte that differs in the string there; null where one of the two has none
        byte: Option<usize>,
        /// who wrote it, as in a [rendered context](#rendered-context); of the request before where
        /// this one lacks it, as a tool that is gone
        owner: Option<Value>,
        ..place: Option<Place>,
        /// where it is in a frame: the call that it is or answers
        call?: CallAnswer,
    }

    /// A definition of a tool that differs.
    pub(crate) struct ChangedTool {
        /// its name
        name: String,
        /// where it differs, a path in the definition
        path: String,
    }

    /// Where a copied answer counts.
    pub(crate) struct Copied<'e> {
        /// the session; null where the source does not name it
        from: Option<&'e str>,
        /// what is reported there
        usage: Option<&'e Usage>,
    }

    /// What started a subagent.
    pub(crate) struct StartedBy<'e> {
        /// the session of the call
        session: &'e str,
        /// the id of the call
        call: &'e str,
        /// the frame of the call
        frame: Option<FrameSeq>,
    }
}

impl<'e> Resolved<'e> {
    pub(super) fn of(provenance: &'e Provenance) -> Option<Self> {
        let Provenance::Resolved { messages, missing, wrong } = provenance else { return None };
        let [missing, wrong] = [missing, wrong].map(Option::as_deref);
        Some(Self { messages: *messages, missing, wrong })
    }
}
