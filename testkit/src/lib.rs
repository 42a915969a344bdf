//! What the tests of all crates share: recordings, servers, disks, the providers' rules.
//!
//! Nothing here depends on a crate of afterimage, so that a test never checks the code against
//! itself.

#![allow(missing_docs, reason = "helpers of tests, named for what they do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::missing_panics_doc)]

pub mod data;
pub mod facts;
pub mod lossy_proxy;
pub mod nats_server;
pub mod policies;
pub mod recount;
pub mod secrets;
pub mod series;
pub mod small_disk;
pub mod validators;

/// How many cases a property draws that usually draws `usual`: in proportion to `PROPTEST_CASES`,
/// where that is set, so that `scripts/properties` reaches every property. 256 is its default.
pub fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    let cases = (u64::from(usual) * asked.unwrap_or(256)).div_ceil(256);
    u32::try_from(cases.max(1)).unwrap_or(u32::MAX)
}
