//! Settings with comments are what they are without; any bytes are read or refused.
#![no_main]

use afterimage::json::{self, Value};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/cli/src/record/jsonc.rs"]
mod jsonc;

const NOISE: [&str; 8] = ["", " ", "/**/", "// \"x,\n", "/* , } */", "//\n", "/* // */", "\n/***/"];

/// Writes a value with comments, and with commas before what closes.
fn write(value: &Value, noise: &mut dyn Iterator<Item = u8>, out: &mut String) {
    let between = |noise: &mut dyn Iterator<Item = u8>, out: &mut String| {
        out.push_str(NOISE[usize::from(noise.next().unwrap_or(0)) % NOISE.len()]);
    };
    between(noise, out);
    match value {
        Value::Object(object) => {
            out.push('{');
            for (key, value) in object.iter() {
                between(noise, out);
                out.push_str(&Value::from(key.as_str()).to_string());
                between(noise, out);
                out.push(':');
                write(value, noise, out);
                out.push(',');
            }
            between(noise, out);
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for value in list {
                write(value, noise, out);
                out.push(',');
            }
            between(noise, out);
            out.push(']');
        }
        value => out.push_str(&value.to_string()),
    }
}

fuzz_target!(|input: (&[u8], &[u8])| {
    let (bytes, noise) = input;
    let _ = jsonc::read(bytes);
    let Ok(value) = json::read(bytes) else { return };
    let mut text = String::new();
    write(&value, &mut noise.iter().copied(), &mut text);
    assert_eq!(jsonc::read(text.as_bytes()).expect(&text), value);
});
