//! What sessions cost: forks, copies, usage in odd places, prices.
