//! Counts of a tokenizer that nobody published, by one that is: a factor that was fitted.

use std::{fmt, sync::Arc};

use super::{Certainty, CountedText, TokenCounter};

/// Millionths, in which factors are kept: they are exact in a name and on disk.
const MILLION: u128 = 1_000_000;

/// How many tokens of one tokenizer a token of another is, in millionths.
///
/// A factor is between 0.6 and 1.8. The factors of recorded sessions were between 1.0 and 1.25; one
/// outside says that the usage is not of these texts, as where a proxy reports it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slope(u32);

impl Slope {
    /// The smallest factor, 0.6.
    pub const LEAST: Self = Self(600_000);
    /// The largest factor, 1.8.
    pub const MOST: Self = Self(1_800_000);
    /// The same count.
    pub const ONE: Self = Self(1_000_000);

    /// A factor in millionths; `None` outside of 0.6 to 1.8.
    pub fn from_millionths(millionths: u32) -> Option<Self> {
        (Self::LEAST..=Self::MOST).contains(&Self(millionths)).then_some(Self(millionths))
    }

    /// The factor in millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// So many tokens of the other tokenizer: the product, rounded to the nearest, half up.
    pub fn of(self, tokens: usize) -> usize {
        let product = tokens as u128 * u128::from(self.0);
        usize::try_from((product + MILLION / 2) / MILLION).unwrap_or(usize::MAX)
    }

    /// The count whose product this is. From a factor of 1 on no two counts have the same product.
    fn inverse(self, tokens: usize) -> Option<usize> {
        if self < Self::ONE {
            return None;
        }
        let of = u128::from(self.0);
        let base = usize::try_from((tokens as u128 * MILLION + of / 2) / of).ok()?;
        (self.of(base) == tokens).then_some(base)
    }

    /// The largest count whose product is at most `limit`.
    pub fn at_most(self, limit: usize) -> usize {
        let of = u128::from(self.0);
        let most = usize::try_from(limit as u128 * MILLION / of).unwrap_or(usize::MAX);
        // Products are rounded to the nearest.
        [most.saturating_add(1), most].into_iter().find(|at| self.of(*at) <= limit).unwrap_or(0)
    }
}

impl fmt::Display for Slope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// Counts by another counter, times a factor that was fitted to reported usage.
///
/// The factor is one for all texts, since a counter knows nothing of a text but its letters: over
/// recorded sessions, factors by the look of a text predicted usage no better than a single one.
/// The name holds the counter and the factor, as `calibrated:o200k_base*1.131250`, so that
/// [`by_name`](crate::by_name) makes the same counter again.
///
/// Counting costs what the inner counter does. [`TokenCounter::count_joined`] of a factor below 1
/// counts the joined text.
///
/// ```
/// use std::sync::Arc;
/// use afterimage_tokens::{Calibrated, Certainty, Chars4, Slope, TokenCounter};
///
/// let slope = Slope::from_millionths(1_250_000).unwrap();
/// let counter = Calibrated::new(Arc::new(Chars4), slope);
/// assert_eq!(counter.count("twelve chars"), 4); // 3 * 1.25, rounded
/// assert_eq!(counter.id(), "calibrated:chars4*1.250000");
/// assert_eq!(counter.certainty(), Certainty::Calibrated);
/// ```
#[derive(Clone)]
pub struct Calibrated {
    base: Arc<dyn TokenCounter>,
    slope: Slope,
    id: Arc<str>,
}

/// What the names of calibrated counters begin with.
const PREFIX: &str = "calibrated:";

impl Calibrated {
    /// Counts by `base`, times `slope`.
    pub fn new(base: Arc<dyn TokenCounter>, slope: Slope) -> Self {
        let id = format!("{PREFIX}{}*{slope}", base.id()).into();
        Self { base, slope, id }
    }

    /// The counter with this name, where there is one with the name of its base.
    pub(crate) fn by_name(
        name: &str,
        base: impl FnOnce(&str) -> Option<Arc<dyn TokenCounter>>,
    ) -> Option<Self> {
        let (of, slope) = name.strip_prefix(PREFIX)?.rsplit_once('*')?;
        let (whole, millionths) = slope.split_once('.')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() != 1 || millionths.len() != 6 || !is_number(whole) || !is_number(millionths)
        {
            return None;
        }
        let slope = format!("{whole}{millionths}").parse().ok()?;
        let base = base(of).filter(|base| base.certainty() != Certainty::Calibrated)?;
        Some(Self::new(base, Slope::from_millionths(slope)?)).filter(|made| made.id() == name)
    }

    /// The factor.
    pub fn slope(&self) -> Slope {
        self.slope
    }
}

impl fmt::Debug for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calibrated").field(&self.id).finish()
    }
}

impl TokenCounter for Calibrated {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn certainty(&self) -> Certainty {
        Certainty::Calibrated
    }

    fn count(&self, text: &str) -> usize {
        self.slope.of(self.base.count(text))
    }

    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        Some(self.slope.of(self.base.count_up_to(text, self.slope.at_most(limit))?))
    }

    /// The count of the inner counter, times the factor: rounded once.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        if let [part] = parts {
            return part.tokens;
        }
        let counted = parts.iter().map(|part| {
            let tokens = self.slope.inverse(part.tokens);
            let tokens = tokens.unwrap_or_else(|| self.base.count(part.text));
            CountedText { text: part.text, tokens }
        });
        let counted: Vec<CountedText<'_>> = counted.collect();
        self.slope.of(self.base.count_joined(&counted))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Chars4, by_name};

    fn slopes() -> impl Strategy<Value = Slope> {
        (600_000_u32..=1_800_000).prop_map(|of| Slope::from_millionths(of).unwrap())
    }

    proptest! {
        #[test]
        fn a_count_is_the_base_times_the_slope_rounded(text in "\\PC{0,90}", slope in slopes()) {
            let counter = Calibrated::new(Arc::new(Chars4), slope);
            let exact = Chars4.count(&text) as f64 * f64::from(slope.millionths()) / 1e6;
            prop_assert!((counter.count(&text) as f64 - exact).abs() <= 0.5 + 1e-9);
        }

        #[test]
        fn joined_parts_count_as_their_text(
            parts in proptest::collection::vec("\\PC{0,30}", 0..6), slope in slopes()
        ) {
            let counter = Calibrated::new(crate::default_counter(), slope);
            let counted: Vec<_> = parts
                .iter()
                .map(|text| CountedText { text, tokens: counter.count(text) })
                .collect();
            prop_assert_eq!(counter.count_joined(&counted), counter.count(&parts.concat()));
        }

        #[test]
        fn a_limit_is_kept_as_the_count_implies(
            text in "\\PC{0,90}", limit in 0_usize..60, slope in slopes()
        ) {
            let counter = Calibrated::new(Arc::new(Chars4), slope);
            let count = counter.count(&text);
            prop_assert_eq!(counter.count_up_to(&text, limit), (count <= limit).then_some(count));
        }

        #[test]
        fn the_name_makes_the_same_counter(slope in slopes()) {
            let counter = Calibrated::new(Arc::new(Chars4), slope);
            let again = by_name(counter.id()).unwrap();
            prop_assert_eq!(again.id(), counter.id());
            prop_assert_eq!(again.count(&"x".repeat(4_000)), slope.of(1_000));
        }
    }

    #[test]
    fn names_that_no_counter_gives_make_none() {
        for name in [
            "calibrated:chars4",
            "calibrated:chars4*1.25",
            "calibrated:chars4*1.2500000",
            "calibrated:chars4*+.250000",
            "calibrated:chars4*0.599999",
            "calibrated:chars4*1.800001",
            "calibrated:o300k*1.000000",
            "calibrated:*1.000000",
            "calibrated:calibrated:chars4*1.000000*1.000000",
        ] {
            assert!(by_name(name).is_none(), "{name}");
        }
    }
}
