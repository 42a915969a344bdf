//! Compression: ranges of frames give way to summaries, and the originals stay reachable.
//!
//! It is handed frames that are already rendered, and hands plain data back: a
//! [`CompressionJob`] says what is to be summarised, an [`Engine`] or the caller's own model
//! answers.
//!
//! | engine | feature | answers |
//! |---|---|---|
//! | [`OutlineEngine`] | | without a model: who did what, and the names that will be needed |
//! | [`FnEngine`] | | with a closure |
//! | `CommandEngine` | `command` | with a program that reads the [`prompt()`] |

#[cfg(feature = "command")]
mod command;
mod engine;
mod function;
mod job;
mod outline;
mod prompt;

#[cfg(feature = "command")]
pub use command::CommandEngine;
pub use engine::Engine;
pub use function::FnEngine;
pub use job::{CompressionJob, Passage};
pub use outline::OutlineEngine;
pub use prompt::{PROMPT_TEMPLATE, prompt, prompt_from};
