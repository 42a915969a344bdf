//! WebSockets: copied as they are, and read beside the copy.
//!
//! ```text
//! client ──bytes──→ Tap ──bytes──→ provider
//!                    │ Decoder: frames → messages, unpacked
//!                    └ Exchanges: `response.create` begins one, a last event ends it
//! ```
//!
//! The copy changes no byte and waits for whoever is slower. What cannot be decoded is copied all the
//! same; the exchanges that run are then marked as cut.

mod copy;
mod decoder;
mod deflate;
mod exchanges;
mod handshake;
mod tap;

pub(super) use self::handshake::{Client, client, is_handshake, pass};
pub use self::{
    decoder::{Decoder, Message},
    deflate::Deflate,
};
