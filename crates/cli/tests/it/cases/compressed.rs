//! What a compressed context says.
