//! Secrets in whatever stands around them.
