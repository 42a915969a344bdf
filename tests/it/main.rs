//! The behaviour tests of this crate, one module for each capability.

mod support;

#[cfg(feature = "storage")]
mod archive;
mod archive_moves;
#[cfg(feature = "storage")]
mod archive_store;
mod branches;
mod broken_caches;
#[cfg(feature = "bpe")]
mod calibration;
mod capture_policies;
#[cfg(feature = "bpe")]
mod checked_answers;
#[cfg(feature = "bpe")]
mod checkpoint_draft;
#[cfg(feature = "storage")]
mod coding_agent;
#[cfg(feature = "command")]
mod command;
mod compress;
mod compress_faults;
mod compress_imported;
mod compress_mixed;
mod compress_pass;
mod compress_recordings;
mod continued_prompts;
mod decided_requests;
mod engine_failures;
mod export_forms;
mod export_invariants;
mod export_load;
mod exports;
#[cfg(feature = "storage")]
mod flight;
#[cfg(feature = "rules")]
mod guard;
mod hostile_files;
#[cfg(feature = "storage")]
mod import_goldens;
#[cfg(feature = "bpe")]
mod invariants;
#[cfg(feature = "storage")]
mod journal_timeline;
#[cfg(feature = "storage")]
mod journal_veil;
mod kept_strings;
mod ladder;
mod layering;
mod living_session;
mod living_session_bodies;
#[cfg(feature = "storage")]
mod living_session_faults;
mod living_session_frames;
mod living_session_memory;
#[cfg(feature = "nats")]
mod living_session_nats;
mod living_session_recordings;
mod living_session_window;
#[cfg(feature = "bpe")]
mod media;
mod memory;
mod observe_answers;
#[cfg(feature = "bpe")]
mod observe_context;
mod otlp;
#[cfg(feature = "bpe")]
mod outline;
mod pairs;
mod quoted_words;
mod ranges_on_demand;
#[cfg(feature = "bpe")]
mod receipts;
#[cfg(feature = "bpe")]
mod recordings;
mod recount;
#[cfg(feature = "rules")]
mod redact;
mod redacted_recording;
mod redacted_streams;
#[cfg(feature = "bpe")]
mod replay;
mod replay_policies;
#[cfg(feature = "bpe")]
mod request_overhead;
mod requests;
#[cfg(feature = "rules")]
mod residency;
mod resolved;
mod saved_windows;
mod scale;
mod sealing;
#[cfg(feature = "storage")]
mod session_spans;
mod snapshot_spec;
mod standing_words;
mod taken_back;
#[cfg(feature = "bpe")]
mod transcripts;
mod unforgeable;
mod unforgeable_words;
mod window;
mod window_reads;
mod window_room;
mod window_text_logs;
mod window_unseen;
mod working_summary;
