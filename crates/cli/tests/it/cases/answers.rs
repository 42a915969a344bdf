//! Documents and states: checkpoints, frames, observations.
