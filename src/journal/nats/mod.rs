//! A journal on NATS JetStream, which many processes write and read.

mod appending;
mod connect;
mod ends;
mod entry;
mod journal;
mod objects;
mod options;
mod requests;
mod snapshots;
mod wire;

pub use journal::NatsJournal;
pub use options::{Credentials, NatsOptions};
