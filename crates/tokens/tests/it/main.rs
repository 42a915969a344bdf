//! The behaviour tests of this crate, one module for each capability.

mod counts;
