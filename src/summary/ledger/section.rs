//! The sections of a summary without a model, and the lines in them.

use crate::id::FrameSeq;

/// A line of a ledger, with the frame that it is from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerLine {
    /// The frame; `None` for headings and for a line of names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameSeq>,
    /// The line, as it stands in the text.
    pub text: String,
}

/// A section, in the order in which they stand in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Section {
    First,
    Last,
    Words,
    Rules,
    LastError,
    OpenErrors,
    Plan,
    Changed,
    Read,
    Speech,
    Told,
    Answers,
    Decisions,
    Solved,
    Calls,
    Names,
}

impl Section {
    pub(crate) const ALL: [Self; 16] = [
        Self::First,
        Self::Last,
        Self::Words,
        Self::Rules,
        Self::LastError,
        Self::OpenErrors,
        Self::Plan,
        Self::Changed,
        Self::Read,
        Self::Speech,
        Self::Told,
        Self::Answers,
        Self::Decisions,
        Self::Solved,
        Self::Calls,
        Self::Names,
    ];

    /// Its title. Where it is not certain whose words stand in the user's place, they are nobody's.
    pub(crate) fn title(self, is_certain: bool) -> &'static str {
        match self {
            Self::Last if !is_certain => "Last in the user's place:",
            Self::Words if !is_certain => "In the user's place, newest first:",
            Self::Rules if !is_certain => "Asked first, in part:",
            Self::First => "Asked first:",
            Self::Last => "Asked last:",
            Self::Rules => "Rules:",
            Self::LastError => "Last error:",
            Self::OpenErrors => "Failed and not done since:",
            Self::Plan => "Plan:",
            Self::Changed => "Files changed:",
            Self::Read => "Files read:",
            Self::Speech => "Said last:",
            Self::Told => "Summary of before:",
            Self::Words => "User, newest first:",
            Self::Answers => "Answered, newest first:",
            Self::Decisions => "Found and decided, newest first:",
            Self::Solved => "Failed before, done since:",
            Self::Calls => "Done, newest first:",
            Self::Names => "Names:",
        }
    }

    pub(crate) fn of_title(line: &str) -> Option<Self> {
        let is = |section: &Self| [true, false].map(|of| section.title(of)).contains(&line);
        Self::ALL.into_iter().find(is)
    }

    /// Whether a line is a title that says that it is not certain whose words they are.
    pub(crate) fn is_uncertain(line: &str) -> bool {
        let is = |section: Self| section.title(false) == line && section.title(true) != line;
        Self::ALL.into_iter().any(is)
    }

    /// The sections where a part of the lines would read as all of them.
    pub(crate) const LISTS: [Self; 9] = [
        Self::Rules,
        Self::Words,
        Self::Plan,
        Self::Changed,
        Self::OpenErrors,
        Self::Calls,
        Self::Read,
        Self::Answers,
        Self::Names,
    ];

    /// Whether its lines name their frames in blocks, too.
    pub(crate) fn names_frames(self) -> bool {
        matches!(self, Self::Words | Self::Answers)
    }

    /// Whether the number of its lines alone says nothing.
    pub(crate) fn is_told_by_lines(self) -> bool {
        matches!(self, Self::Answers | Self::Read | Self::Names)
    }

    /// Whether its lines stand as they are, and not as a list.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::LastError | Self::Speech | Self::Told)
    }
}

/// A line that may stand in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SectionLine {
    pub(crate) section: Section,
    pub(crate) frame: Option<FrameSeq>,
    pub(crate) text: String,
    /// The tokens of the text, where they are known.
    pub(crate) tokens: Option<usize>,
    /// What is said where there is no room for the text, the longest first.
    pub(crate) shorter: Vec<String>,
    /// So many of the shorter forms still say all that matters.
    pub(crate) whole: usize,
    /// So many of the first forms are only for room that nothing else needs.
    pub(crate) spare: usize,
    /// The forms that are longer than the one that was chosen, the longest first.
    pub(crate) longer: Vec<String>,
}

impl SectionLine {
    pub(crate) fn new(
        section: Section,
        frame: impl Into<Option<FrameSeq>>,
        text: impl Into<String>,
    ) -> Self {
        let (frame, text) = (frame.into(), text.into());
        let (tokens, shorter, whole, spare, longer) = Default::default();
        Self { section, frame, text, tokens, shorter, whole, spare, longer }
    }

    /// The number of the last form that says all that matters; 0 is the text.
    pub(crate) fn whole_forms(&self) -> usize {
        self.whole.min(self.shorter.len())
    }

    /// The line in the form of that number, which keeps the longer ones.
    pub(crate) fn take_form(&mut self, number: usize) {
        if number == 0 {
            return;
        }
        let mut forms = vec![std::mem::take(&mut self.text)];
        forms.append(&mut self.shorter);
        let number = number.min(forms.len() - 1);
        self.shorter = forms.split_off(number + 1);
        self.text = forms.pop().unwrap_or_default();
        (self.longer, self.tokens) = (forms, None);
    }

    /// The form of that number.
    pub(crate) fn form(&self, number: usize) -> &str {
        let shorter = number.checked_sub(1).and_then(|at| self.shorter.get(at));
        shorter.unwrap_or(&self.text)
    }
}
