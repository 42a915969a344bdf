//! Calls through the wire, against a provider that does what a test wants.

mod early;
mod failures;
mod kills;
mod large;
mod passing;
mod redacted;
mod refusals;
mod secrets;
mod support;
mod tls;
mod websocket;
mod websocket_redacted;
