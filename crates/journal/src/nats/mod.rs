//! A journal on NATS JetStream, which many processes write and read.

mod appending;
mod connect;
mod denials;
mod ends;
mod entry;
mod ids;
mod journal;
mod needs;
mod objects;
mod options;
mod page;
mod requests;
mod snapshots;
mod wire;

pub use journal::NatsJournal;
pub use options::{Credentials, NatsOptions};
