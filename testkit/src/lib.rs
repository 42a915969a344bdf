//! What the tests of all crates share: recordings, servers, disks, the providers' rules.
//!
//! Nothing here depends on a crate of afterimage, so that a test never checks the code against
//! itself.

#![allow(missing_docs, reason = "helpers of tests, named for what they do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, clippy::missing_panics_doc)]

pub mod data;
pub mod lossy_proxy;
pub mod nats_server;
pub mod policies;
pub mod recount;
pub mod series;
pub mod small_disk;
pub mod validators;
