//! What residency costs by type, tool, path and turn: groups that add up to what is reported.

use std::hash::Hash;

use afterimage::bill::{Residency, ResidencyLine, Share};

use super::row::{OtherGroups, RestAnswer, ShareAnswer};

/// The shares of groups of lines, and what is in none of them.
///
/// The groups, `others`, `ungrouped` and `outside` add up to what is reported.
pub(super) struct Groups<K> {
    /// Those that cost most first.
    pub(super) shares: Vec<(K, Share)>,
    /// How many groups are not listed, and what they cost.
    pub(super) others: (u64, Share),
    /// What the lines cost that are in no group.
    pub(super) ungrouped: Share,
    /// What is in no line.
    pub(super) outside: Share,
}

impl<K: Hash + Eq> Groups<K> {
    /// The `most` groups that cost most. Linear in the lines.
    pub(super) fn of<'r>(
        residency: &'r Residency,
        most: usize,
        key: impl Fn(&'r ResidencyLine) -> Option<K>,
    ) -> Self {
        let ungrouped = residency.lines.iter().filter(|line| key(line).is_none());
        let ungrouped = sum(ungrouped.map(|line| line.share));
        let mut shares: Vec<(K, Share)> = residency.by(&key).into_iter().collect();
        let others = shares.split_off(most.min(shares.len()));
        let others = (others.len() as u64, sum(others.iter().map(|(_, share)| *share)));
        Self { shares, others, ungrouped, outside: residency.remainders() }
    }
}

impl<K> Groups<K> {
    /// What is not in the listed groups.
    pub(super) fn rest(&self, share: impl Fn(&Share) -> ShareAnswer) -> RestAnswer {
        let (groups, others) = &self.others;
        RestAnswer {
            others: OtherGroups { groups: *groups, share: share(others) },
            ungrouped: share(&self.ungrouped),
            outside: share(&self.outside),
        }
    }

    /// The same with other keys.
    pub(super) fn named<N>(self, mut name: impl FnMut(K, &Share) -> N) -> Groups<N> {
        let shares = self.shares.into_iter().map(|(key, share)| (name(key, &share), share));
        let Self { others, ungrouped, outside, .. } = self;
        Groups { shares: shares.collect(), others, ungrouped, outside }
    }
}

fn sum(shares: impl Iterator<Item = Share>) -> Share {
    shares.fold(Share::default(), Share::plus)
}
