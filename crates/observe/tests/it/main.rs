//! The behaviour tests of this crate, one module for each capability.

mod support;

mod answers;
mod merge;
mod recorded;
#[cfg(feature = "sqlite")]
mod store;
mod summaries;
