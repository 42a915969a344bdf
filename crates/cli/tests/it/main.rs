//! The behaviour tests of the program, one module for each capability.

mod support;

mod archive;
mod archived_exchanges;
mod at_once;
mod bad_archive;
mod bad_fitting;
mod bad_input;
mod branches;
mod calibrated;
mod checkpoint;
mod every_command;
mod export_otlp;
mod fitting;
mod golden;
mod journal;
mod json_output;
mod labels;
mod listed_requests;
mod media;
mod observe;
mod odd_usage;
mod one_context;
mod ranges;
mod receipts;
mod record;
mod record_launch;
mod redaction;
mod replay;
mod residency;
mod session;
mod sessions;
mod sessions_scale;
mod terminal;
mod trace;
mod usage;
