//! The behaviour tests of this crate, one module for each capability.

mod support;

mod documents;
mod history;
mod lint;
mod recorded;
mod written;
