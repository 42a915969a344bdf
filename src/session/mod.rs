//! Where the halves of an agent's memory meet: the one layer that may know all the others.

#[cfg(feature = "storage")]
pub mod archive;
pub mod bridge;
mod fitting;
mod viewer;

pub use fitting::{Fit, FittedRequest, FittingStep, RequestFitter};
pub use viewer::{ViewedFrame, ViewedTail, Viewer, unknown_records};
