//! The policies of the examples, read from their files.

use std::path::Path;

/// The policy for the game of the recordings, `examples/policies/spacemolt.toml`, as JSON.
pub fn spacemolt() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/policies/spacemolt.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    toml::from_str(&text).unwrap()
}
