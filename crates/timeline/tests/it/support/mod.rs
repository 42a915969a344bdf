//! What several of these tests share.

pub(crate) mod games;
pub(crate) mod states;
pub(crate) mod tale;
pub(crate) mod world;
