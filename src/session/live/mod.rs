//! A session that an agent's loop lives: see [`Session`].

mod asking;
mod beside;
mod core;
mod kept_window;
#[cfg(all(test, feature = "nats"))]
mod large_steps_tests;
mod memory;
mod model;
mod owner;
mod receipt;
mod scale;
mod session;
#[cfg(feature = "storage")]
mod spans;
mod step;
mod store;
mod stream;
mod summaries;
mod tool;

pub use model::Model;
pub use receipt::{Awaits, PaidAnswer, Receipt, SessionAnswer, SessionRequest, ToolCall};
#[cfg(feature = "nats")]
pub use session::NatsSession;
pub use session::{Session, SessionOptions};
#[cfg(feature = "storage")]
pub use store::JournalStore;
pub use store::{MemoryStore, SessionStore};
pub use stream::{AnswerStream, StreamedText};
pub use tool::Tool;
