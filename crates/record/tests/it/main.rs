//! The behaviour tests of this crate, one module for each capability.

mod crash;
mod faults;
mod recorder;
mod size;
mod support;
#[cfg(feature = "wire")]
mod wire;
