//! What several of these tests share.

pub(crate) mod journal_spec;
pub(crate) mod journal_work;
#[cfg(feature = "nats")]
pub(crate) mod sharing;
#[cfg(feature = "nats")]
pub(crate) mod waiting;
