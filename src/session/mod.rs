//! Where the halves of an agent's memory meet: the one layer that may know all the others.

pub mod bridge;
