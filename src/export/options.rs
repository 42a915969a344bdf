use crate::id::FrameSeq;

/// How an export repairs what the history lacks, and where the cache is to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ExportOptions {
    /// What becomes of a call that was never answered.
    pub unanswered: UnansweredCalls,
    /// What becomes of a result whose call the context does not hold.
    pub orphans: Orphans,
    /// Whether calls after which nothing comes stay open: for a context that is looked at, and not
    /// sent. Providers refuse them. Otherwise they are calls that were never answered.
    pub keep_open: bool,
    /// Where `cache_control` stands. Read by the Anthropic export alone.
    pub breakpoints: Breakpoints,
}

/// What becomes of a call that was never answered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum UnansweredCalls {
    /// A result with this text, which is framing, answers it. Calls of a provider's own tools are
    /// left out all the same: nobody else can write their results.
    Placeholder(String),
    /// The call is left out.
    Drop,
}

impl Default for UnansweredCalls {
    fn default() -> Self {
        Self::Placeholder("[no result was recorded for this call]".to_owned())
    }
}

/// What becomes of a result whose call the context does not hold, or that comes after the agent
/// went on without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Orphans {
    /// It is text of the user, after a line of framing that says what it is.
    #[default]
    Text,
    /// It is left out.
    Drop,
}

/// Where the Anthropic export sets `cache_control`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Breakpoints {
    /// After the system prompt, after blocks that stand for frames, and after the last content block
    /// that is not of the tail. Four at most: of the blocks those after which frames follow go
    /// first, then the others, the last ones before those before them.
    #[default]
    Blocks,
    /// Nowhere.
    None,
    /// Where the source had it. Where it had more than four, the first ones lose it.
    Recorded,
    /// After the system prompt, after the last block of each of these frames or of what stands in
    /// for it, and after the last block that is not of the tail. Four at most: of the frames the
    /// last ones count.
    Stable(Vec<FrameSeq>),
}
