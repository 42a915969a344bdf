//! The behaviour tests of this crate, one module for each capability.

mod support;

#[cfg(feature = "storage")]
mod crash;
#[cfg(feature = "storage")]
mod damage;
mod deltas;
#[cfg(feature = "storage")]
mod disk;
#[cfg(feature = "storage")]
mod end;
mod history;
mod patch;
#[cfg(feature = "storage")]
mod recordings;
#[cfg(feature = "storage")]
mod routes;
#[cfg(feature = "storage")]
mod session;
