//! Transcripts as agents write them.
