//! What several of these tests share.

pub(crate) mod compressing;
pub(crate) mod exporting;
pub(crate) mod histories;
#[path = "../../../crates/observe/tests/it/support/observing.rs"]
pub(crate) mod observing;
pub(crate) mod sessions;
pub(crate) mod survival;
pub(crate) mod veil_model;
