//! What `stats --residency --json` says.

use afterimage::{bill::Share, id::FrameSeq, transcript::Money};

use crate::{
    answer::{ByName, answer},
    labels::Place,
    lens::CountsAnswer,
    usage::ReportedAnswer,
};

answer! {
    /// What the facets of a file cost.
    pub(crate) struct ResidencyRow<'l> {
        /// the file
        file: String,
        /// the name of the input format
        format: &'static str,
        ..counts: CountsAnswer<'l>,
        ..reported: ReportedAnswer,
        /// what each facet cost ([bill.md](bill.md#residency))
        residency: ResidencyAnswer<'l>,
    }

    /// What facets cost.
    pub(crate) struct ResidencyAnswer<'l> {
        /// all lines and remainders: what is reported
        total: ShareAnswer,
        /// exchanges that report usage
        exchanges: u64,
        /// those of them without input or output, or with a figure that cannot be read
        incomplete: u64,
        /// the 20 facets that cost most, by price and then by tokens
        lines: Vec<LineAnswer<'l>>,
        /// the facets that are not in `lines`
        others: OtherLines,
        /// what no facet holds, and why: of `notInTranscript`, `notCounted`, `outputNotKept`,
        /// `unlisted`, `beyondInput` and `providerTools` those that are not empty
        remainder: ByName<'l, ShareAnswer>,
        /// requests that hold more by our count than they report; they are scaled down
        overcounted: Overcounted,
        /// the images, sounds and documents whose cost nobody knows: their input is among the
        /// remainders
        unknown_media: u64,
        /// by type of chunk; those that cost most first, as in the next three
        by_type: ByName<'l, ShareAnswer>,
        /// by tool, its calls and their results
        by_tool: ByName<'l, ShareAnswer>,
        /// by tool, its definition
        by_definition: ByName<'l, ShareAnswer>,
        /// the 20 paths that cost most: calls that name them, and their results
        by_path: ByName<'l, ShareAnswer>,
        /// the 20 turns that cost most; a turn begins with a user's message, and with the next one that
        /// follows words of the agent, results of calls aside
        by_turn: Vec<TurnAnswer<'l>>,
        /// what these groups do not list
        rest: RestOfGroups,
    }

    /// What a facet cost.
    pub(crate) struct LineAnswer<'l> {
        /// its session
        session: &'l str,
        /// its id, of the definition of a tool `tool:NAME`; null of text that no facet wrote
        facet: Option<&'l str>,
        /// the first frame that holds it; null where none does
        sequence: Option<FrameSeq>,
        /// its type; `media` of an image, a sound or a document
        r#type: Option<&'l str>,
        /// the tool of its call, or that it defines
        tool: Option<&'l str>,
        /// whether it is the definition of the tool
        definition: bool,
        /// whether it is an image, a sound or a document, by its provider's rule
        media: bool,
        /// the file or folder that the call names
        path: Option<&'l str>,
        /// the path, command or query of the call, in one line
        subject: Option<&'l str>,
        /// the most tokens that it had in one request, by our count
        tokens: u64,
        /// how many requests held it
        requests: u64,
        ..place: Place,
        ..share: ShareAnswer,
    }

    /// What the other facets cost.
    pub(crate) struct OtherLines {
        /// how many there are
        lines: u64,
        ..share: ShareAnswer,
    }

    /// Requests that hold more by our count than they report.
    pub(crate) struct Overcounted {
        /// how many there are
        requests: u64,
        /// how many tokens more they hold
        tokens: u64,
    }

    /// What a turn cost.
    pub(crate) struct TurnAnswer<'l> {
        /// its session
        session: &'l str,
        /// the frame of the message
        sequence: FrameSeq,
        /// the first words of the message
        text: String,
        ..place: Place,
        ..share: ShareAnswer,
    }

    /// What groups do not list.
    pub(crate) struct RestOfGroups {
        /// of `byType`
        by_type: RestAnswer,
        /// of `byTool`
        by_tool: RestAnswer,
        /// of `byDefinition`
        by_definition: RestAnswer,
        /// of `byPath`
        by_path: RestAnswer,
        /// of `byTurn`
        by_turn: RestAnswer,
    }

    /// What groups of one kind do not list.
    pub(crate) struct RestAnswer as "rest" {
        /// the groups that are not listed
        others: OtherGroups,
        /// facets that are in no group
        ungrouped: ShareAnswer,
        /// what no facet holds, the sum of `remainder`
        outside: ShareAnswer,
    }

    /// Groups that are not listed.
    pub(crate) struct OtherGroups {
        /// how many there are
        groups: u64,
        ..share: ShareAnswer,
    }

    /// A share of what is reported.
    pub(crate) struct ShareAnswer as "share" {
        /// the tokens of requests, cached ones among them
        input: u64,
        /// those of them that a cache served
        cache_read: u64,
        /// those of them that were written to a cache
        cache_write: u64,
        /// those of the written ones that stay for an hour
        cache_write_1h: u64,
        /// the input that is neither read nor written
        uncached: u64,
        /// the tokens of responses
        output: u64,
        /// what it cost; null where no exchange has a price
        price: Option<Money>,
    }
}

impl ShareAnswer {
    pub(super) fn of(share: &Share, price: Option<Money>) -> Self {
        let Share { input, cache_read, cache_write, cache_write_1h, output, .. } = *share;
        let uncached = share.uncached();
        Self { input, cache_read, cache_write, cache_write_1h, uncached, output, price }
    }
}
