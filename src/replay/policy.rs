use std::fmt;

use crate::{Error, Result, compress::CompressionOptions, window::Budget};

/// Results are masked that are older than so many turns, so many turns at a time.
const TURNS: u64 = 10;
/// The most tokens of the user's words that stay.
const USER_TOKENS: u64 = 20_000;
/// How much of the room stays filled, in percent.
const FORGET_SHARE: u64 = 50;

/// How contexts are kept within the budget.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayPolicy {
    /// By a [`ContextWindow`](crate::window::ContextWindow): blocks stand for older frames.
    Blocks(CompressionOptions),
    /// The oldest frames are left out, as many as it takes, calls with their results.
    Sliding,
    /// The newest so many messages stay, as far as there is room for them: a call and its results count
    /// as one.
    Newest {
        /// How many.
        units: u64,
    },
    /// As [`Sliding`](Self::Sliding), but the user's first message stays.
    FirstAndLast,
    /// When the room is full, the oldest frames are left out until so many percent of it are filled.
    Forget {
        /// The percent.
        share: u64,
    },
    /// Results of tools get one line each once they are old. Where that is not enough, the oldest
    /// frames are left out until half of the room is filled.
    Masking {
        /// A result is old when the agent took so many turns after it.
        turns: u64,
        /// So many turns become old before their results get their lines together: what was sent
        /// stays the same meanwhile, and the cache with it.
        batch: u64,
    },
    /// When the room is full, a summary stands for everything but what the user said, as Codex
    /// does it.
    KeepUser {
        /// The most tokens of the user's words that stay, and at most half of the room; the newest
        /// go first.
        most: u64,
    },
    /// Not at all, but for the compactions that the recording tells of.
    Unlimited,
}

impl ReplayPolicy {
    /// The names of all policies, as [`by_name`](Self::by_name) takes them.
    pub const NAMES: [&'static str; 7] =
        ["none", "sliding", "first-and-last", "masking", "keep-user", "forget", "blocks"];

    /// What [`by_name`](Self::by_name) takes, for messages.
    const KNOWN: &'static str = "`none`, `sliding[:UNITS]`, `first-and-last`, \
        `masking[:TURNS[:BATCH]]`, `keep-user[:TOKENS]`, `forget[:SHARE]` or `blocks`";

    /// The policy of a name, with its figures behind colons or those that it comes with:
    ///
    /// | name | figures | without them |
    /// |---|---|---|
    /// | `sliding:20` | the newest 20 messages, a call with its results as one | as many as there is room for |
    /// | `masking:20:5` | results older than 20 turns, 5 turns at a time | `masking:10:10` |
    /// | `keep-user:8k` | the most tokens of the user's words | `keep-user:20k` |
    /// | `forget:0.3` | the share of the room that stays filled | `forget:0.5` |
    ///
    /// `none`, `first-and-last` and `blocks` have none; blocks are as the budget compresses.
    ///
    /// ```
    /// use afterimage::{replay::ReplayPolicy, window::Budget};
    ///
    /// let budget = Budget::new(8_000);
    /// for name in ReplayPolicy::NAMES {
    ///     let policy = ReplayPolicy::by_name(name, &budget)?;
    ///     assert_eq!((policy.name(), policy.to_string().as_str()), (name, name));
    /// }
    /// let masking = ReplayPolicy::Masking { turns: 20, batch: 5 };
    /// assert_eq!(ReplayPolicy::by_name("masking:20:5", &budget)?, masking);
    /// assert_eq!(masking.to_string(), "masking:20:5");
    /// assert!(ReplayPolicy::by_name("maskin", &budget).is_err());
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// O(length of the name).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where no policy has the name, or a figure is none
    /// of its own; the message lists what is known.
    pub fn by_name(name: &str, budget: &Budget) -> Result<Self> {
        let refused = || Error::expected(Self::KNOWN, format_args!("{name:?}"));
        let mut figures = name.split(':');
        let kind = figures.next().unwrap_or_default();
        let policy = match kind {
            "none" => Self::Unlimited,
            "sliding" => match figures.next() {
                None => Self::Sliding,
                Some(units) => Self::Newest { units: count(units).ok_or_else(refused)? },
            },
            "first-and-last" => Self::FirstAndLast,
            "masking" => {
                let mut figure = || match figures.next() {
                    None => Ok(TURNS),
                    Some(turns) => count(turns).ok_or_else(refused),
                };
                Self::Masking { turns: figure()?, batch: figure()? }
            }
            "keep-user" => match figures.next() {
                None => Self::KeepUser { most: USER_TOKENS },
                Some(most) => Self::KeepUser { most: count(most).ok_or_else(refused)? },
            },
            "forget" => match figures.next() {
                None => Self::Forget { share: FORGET_SHARE },
                Some(share) => Self::Forget { share: percent(share).ok_or_else(refused)? },
            },
            "blocks" => Self::Blocks(budget.compression()),
            _ => return Err(refused()),
        };
        if figures.next().is_some() { Err(refused()) } else { Ok(policy) }
    }

    /// The name, without figures.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unlimited => "none",
            Self::Sliding | Self::Newest { .. } => "sliding",
            Self::FirstAndLast => "first-and-last",
            Self::Masking { .. } => "masking",
            Self::KeepUser { .. } => "keep-user",
            Self::Forget { .. } => "forget",
            Self::Blocks(_) => "blocks",
        }
    }
}

/// The name, with the figures where they are others than it comes with.
impl fmt::Display for ReplayPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Newest { units } => write!(f, ":{units}"),
            Self::Masking { turns: TURNS, batch: TURNS } => Ok(()),
            Self::Masking { turns, batch: TURNS } => write!(f, ":{turns}"),
            Self::Masking { turns, batch } => write!(f, ":{turns}:{batch}"),
            Self::KeepUser { most } if *most != USER_TOKENS => write!(f, ":{most}"),
            Self::Forget { share } if *share != FORGET_SHARE => {
                write!(f, ":{}.{:02}", share / 100, share % 100)
            }
            _ => Ok(()),
        }
    }
}

/// A number, of thousands with `k` behind it.
fn count(figure: &str) -> Option<u64> {
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let (digits, unit) = match figure.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => (figure, 1),
    };
    let number: u64 = Some(digits).filter(|digits| is_plain(digits))?.parse().ok()?;
    number.checked_mul(unit).filter(|number| *number > 0)
}

/// A share from `0` to `1` with at most two places, in percent.
fn percent(share: &str) -> Option<u64> {
    let (whole, places) = share.split_once('.').unwrap_or((share, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() != 1 || places.len() > 2 || !is_plain(whole) || !is_plain(places) {
        return None;
    }
    let percent: u64 = format!("{whole}{places:0<2}").parse().ok()?;
    Some(percent).filter(|percent| *percent <= 100)
}
