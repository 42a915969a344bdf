//! The behaviour tests of this crate, one module for each capability.

mod crash;
mod faults;
mod growing;
mod recorder;
mod size;
mod support;
#[cfg(feature = "wire")]
mod wire;

use afterimage_json as json;
