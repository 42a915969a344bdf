//! What several of these tests share.

pub(crate) mod observing;
