//! The sections of a summary without a model, and the lines in them.

use crate::id::FrameSeq;

/// A line of a ledger, with the frame that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The frame; `None` for headings and for a line of names.
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
    pub(in crate::summary) const ALL: [Self; 16] = [
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
    pub(in crate::summary) fn title(self, is_certain: bool) -> &'static str {
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

    /// The titles of summaries that were written before.
    const FORMER: [(&'static str, Self); 6] = [
        ("Asked first by the user:", Self::First),
        ("Asked last by the user:", Self::Last),
        ("Rules of the user:", Self::Rules),
        ("Said last by the agent:", Self::Speech),
        ("The user also said, newest first:", Self::Words),
        ("Reasons, newest first:", Self::Decisions),
    ];

    pub(crate) fn of_title(line: &str) -> Option<Self> {
        let former = || Self::FORMER.into_iter().find(|(title, _)| *title == line);
        let is = |section: &Self| [true, false].map(|of| section.title(of)).contains(&line);
        let now = Self::ALL.into_iter().find(is);
        now.or_else(|| former().map(|(_, section)| section))
    }

    /// Whether a line is a title that says that it is not certain whose words they are.
    pub(in crate::summary) fn is_uncertain(line: &str) -> bool {
        let is = |section: Self| section.title(false) == line && section.title(true) != line;
        Self::ALL.into_iter().any(is)
    }

    /// The sections of which a part alone would read as all.
    pub(in crate::summary) const LISTS: [Self; 9] = [
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
    pub(in crate::summary) fn names_frames(self) -> bool {
        matches!(self, Self::Words | Self::Answers)
    }

    /// Whether the number of its lines alone says nothing.
    pub(in crate::summary) fn is_told_by_lines(self) -> bool {
        matches!(self, Self::Answers | Self::Read | Self::Names)
    }

    /// Whether its lines stand as they are, and not as a list.
    pub(in crate::summary) fn is_text(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::LastError | Self::Speech | Self::Told)
    }
}

/// A line that may stand in a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::summary) struct SectionLine {
    pub(in crate::summary) section: Section,
    pub(in crate::summary) frame: Option<FrameSeq>,
    pub(in crate::summary) text: String,
    /// The tokens of the text, where they are known.
    pub(in crate::summary) tokens: Option<usize>,
    /// What is said where there is no room for the text, the longest first.
    pub(in crate::summary) shorter: Vec<String>,
    /// So many of the shorter forms still say all that matters.
    pub(in crate::summary) whole: usize,
    /// So many of the first forms are only for room that nothing else needs.
    pub(in crate::summary) spare: usize,
    /// The forms that are longer than the one that was chosen, the longest first.
    pub(in crate::summary) longer: Vec<String>,
}

impl SectionLine {
    pub(in crate::summary) fn new(
        section: Section,
        frame: FrameSeq,
        text: impl Into<String>,
    ) -> Self {
        Self {
            section,
            frame: Some(frame),
            text: text.into(),
            tokens: None,
            shorter: Vec::new(),
            whole: 0,
            spare: 0,
            longer: Vec::new(),
        }
    }

    /// A line that tells how many lines of a list are left out.
    pub(in crate::summary) fn more(section: Section, text: String, shorter: Vec<String>) -> Self {
        Self {
            section,
            frame: None,
            text,
            tokens: None,
            shorter,
            whole: 0,
            spare: 0,
            longer: Vec::new(),
        }
    }

    /// The number of the last form that says all that matters; 0 is the text.
    pub(in crate::summary) fn whole_forms(&self) -> usize {
        self.whole.min(self.shorter.len())
    }

    /// The line in the form of that number, which keeps the longer ones.
    pub(in crate::summary) fn take_form(&mut self, number: usize) {
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
    pub(in crate::summary) fn form(&self, number: usize) -> &str {
        let shorter = number.checked_sub(1).and_then(|at| self.shorter.get(at));
        shorter.unwrap_or(&self.text)
    }
}
