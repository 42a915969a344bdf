//! Any bytes are read or refused, and what is read is written back the same.
#![no_main]

use afterimage::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match json::read(bytes) {
        Ok(value) => {
            let text = value.to_string();
            let again = json::read(text.as_bytes()).expect("what was written is read");
            assert_eq!(again, value);
            assert_eq!(again.to_string(), text);
        }
        Err(error) => assert!(error.place().line.is_some()),
    }
});
