//! Takes secrets out of what was recorded: keys, tokens, passwords, addresses of people and the
//! names of their home folders.
//!
//! [`RedactionRules`] are data, and say what a secret looks like. A [`Redactor`] puts a placeholder
//! in the place of each, the same one for the same secret, and keeps a [`RedactionReport`] of what
//! it found where. It works on texts, on JSON, on frames before they are rendered, and on streams
//! of events. Since frames are redacted before they are captured, chunks tile, owners stay, and
//! hashes are of what is left.
//!
//! ```
//! use afterimage::redact::{RedactionRules, Redactor};
//!
//! let mut redactor = Redactor::new(&RedactionRules::embedded()?);
//! let text = "Log in as ada@harbour.example with PGPASSWORD=tide-7-calm, then mail ada@harbour.example.";
//! assert_eq!(
//!     redactor.text(text, "line 1"),
//!     "Log in as [redacted:email:1] with PGPASSWORD=[redacted:environment:2], then mail [redacted:email:1]."
//! );
//! let first = &redactor.report().found[0];
//! assert_eq!((first.rule.as_str(), first.times, first.first.as_str()), ("email", 2, "line 1"));
//! # Ok::<(), afterimage::Error>(())
//! ```

mod bare;
mod broken;
mod cut;
mod expression;
mod frames;
mod json_text;
mod log_lists;
mod matching;
mod near;
mod pieces;
mod redactor;
mod report;
mod rules;
mod stream;
mod structure;
mod values;
mod view;

pub use redactor::Redactor;
pub use report::{Redaction, RedactionReport};
pub use rules::RedactionRules;
