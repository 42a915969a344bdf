//! The sections of a checkpoint: what each is called, and how it merges.

/// A section that the format names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SectionKind {
    /// What is to be solved.
    Problem,
    /// What the session is to reach.
    SessionIntent,
    /// The heading over the sections from [`SectionKind::Decisions`] to
    /// [`SectionKind::NextActions`].
    EssentialInformation,
    /// What was decided.
    Decisions,
    /// What the work stands on.
    TechnicalContext,
    /// A table of what leads back to details: Type, Reference, Hint.
    Breadcrumbs,
    /// What happened, in order.
    PlayByPlay,
    /// A table of the files that were touched: File, Status, Key Change.
    ArtifactTrail,
    /// Where things stand.
    CurrentState,
    /// What comes next.
    NextActions,
    /// What the user asks of whoever works.
    UserRules,
}

/// How a section takes up what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeRule {
    /// It stays, unless it is replaced on purpose.
    Keep,
    /// It only grows: nothing in it is dropped.
    Grow,
    /// New entries go to its end; the oldest may be summarised.
    Append,
    /// Rows are brought up to date by their key, and new ones go to the end.
    Update,
    /// What is new takes the place of what was there.
    Replace,
}

impl SectionKind {
    /// Every section in the order of the format.
    pub const ALL: [Self; 11] = [
        Self::Problem,
        Self::SessionIntent,
        Self::EssentialInformation,
        Self::Decisions,
        Self::TechnicalContext,
        Self::Breadcrumbs,
        Self::PlayByPlay,
        Self::ArtifactTrail,
        Self::CurrentState,
        Self::NextActions,
        Self::UserRules,
    ];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Problem => "Problem",
            Self::SessionIntent => "Session Intent",
            Self::EssentialInformation => "Essential Information",
            Self::Decisions => "Decisions",
            Self::TechnicalContext => "Technical Context",
            Self::Breadcrumbs => "Breadcrumbs",
            Self::PlayByPlay => "Play-By-Play",
            Self::ArtifactTrail => "Artifact Trail",
            Self::CurrentState => "Current State",
            Self::NextActions => "Next Actions",
            Self::UserRules => "User Rules",
        }
    }

    /// The section with this heading, whatever its case and markup.
    pub fn from_title(title: &str) -> Option<Self> {
        // Names are compared without hyphens.
        let name = normal(title).replace("play by play", "play-by-play");
        Self::ALL.into_iter().find(|kind| kind.title().eq_ignore_ascii_case(&name))
    }

    /// The level of the heading: two, or three inside of Essential Information.
    pub const fn level(self) -> u8 {
        match self {
            Self::Problem | Self::SessionIntent | Self::EssentialInformation | Self::UserRules => 2,
            _ => 3,
        }
    }

    /// The columns of the section's table, where it is one.
    pub const fn columns(self) -> Option<[&'static str; 3]> {
        match self {
            Self::Breadcrumbs => Some(["Type", "Reference", "Hint"]),
            Self::ArtifactTrail => Some(["File", "Status", "Key Change"]),
            _ => None,
        }
    }

    /// How the section takes up what is new.
    pub const fn merge_rule(self) -> MergeRule {
        match self {
            Self::Decisions | Self::UserRules => MergeRule::Grow,
            Self::PlayByPlay => MergeRule::Append,
            Self::Breadcrumbs | Self::ArtifactTrail => MergeRule::Update,
            Self::CurrentState | Self::NextActions => MergeRule::Replace,
            _ => MergeRule::Keep,
        }
    }
}

/// A name as names are compared: in lower case, without markup, with single blanks.
pub(super) fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    let mut is_parted = false;
    for c in name.chars().filter(|c| !matches!(c, '*' | '_' | '`' | '"' | '“' | '”')) {
        if c.is_whitespace() || c == '-' {
            is_parted = !normal.is_empty();
            continue;
        }
        if std::mem::take(&mut is_parted) {
            normal.push(' ');
        }
        if c.is_ascii() {
            normal.push(c.to_ascii_lowercase());
        } else {
            normal.extend(c.to_lowercase());
        }
    }
    let end = normal.trim_end_matches([':', '.', '–', ' ']).len();
    normal.truncate(end);
    normal
}

/// Whether a column with this title holds the state of what a row is about.
pub(super) fn is_status(title: &str) -> bool {
    matches!(normal(title).as_str(), "status" | "state" | "phase status" | "estado" | "stand")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_known_by_their_names() {
        assert_eq!(SectionKind::from_title("play-by-play:"), Some(SectionKind::PlayByPlay));
        assert_eq!(SectionKind::from_title("**Next  actions**"), Some(SectionKind::NextActions));
        assert_eq!(SectionKind::from_title("Actions"), None);
        for kind in SectionKind::ALL {
            assert_eq!(SectionKind::from_title(kind.title()), Some(kind));
        }
    }
}
