//! The behaviour tests of this crate, one module for each capability.

mod support;

mod contract;
mod directory;
mod end;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod nats_cluster;
#[cfg(feature = "nats")]
mod nats_faults;
#[cfg(feature = "nats")]
mod nats_full;
#[cfg(feature = "nats")]
mod nats_rights;
#[cfg(feature = "nats")]
mod nats_snapshots;
#[cfg(feature = "nats")]
mod reference;
