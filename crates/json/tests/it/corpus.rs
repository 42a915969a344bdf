//! The reader on the JSON test suite: what must be accepted, what must be refused, and what was
//! decided where the standard leaves it open.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::data;

use std::fs;

use afterimage_json::ErrorKind;
use data::{files_under, recordings};

/// The files whose answer the standard leaves open: what they are written back as or how they are
/// refused, and why.
const DECIDED: &[(&str, Result<&str, ErrorKind>, &str)] = &[
    (
        "i_number_double_huge_neg_exp",
        Ok("[123.456e-789]"),
        "digits are kept, whatever a float holds",
    ),
    ("i_number_huge_exp", Ok(HUGE_EXPONENT), "digits are kept, whatever a float holds"),
    ("i_number_neg_int_huge_exp", Ok("[-1e+9999]"), "digits are kept, whatever a float holds"),
    ("i_number_too_big_pos_int", Ok("[100000000000000000000]"), "digits are kept"),
    ("i_string_1st_surrogate_but_2nd_missing", Err(ErrorKind::Json), LONE),
    ("i_string_UTF-8_invalid_sequence", Err(ErrorKind::Utf8), UTF8),
    ("i_string_UTF8_surrogate_U+D800", Err(ErrorKind::Utf8), UTF8),
    ("i_string_incomplete_surrogate_and_escape_valid", Err(ErrorKind::Json), LONE),
    ("i_string_incomplete_surrogate_pair", Err(ErrorKind::Json), LONE),
    ("i_string_incomplete_surrogates_escape_valid", Err(ErrorKind::Json), LONE),
    ("i_string_invalid_surrogate", Err(ErrorKind::Json), LONE),
    ("i_string_inverted_surrogates_U+1D11E", Err(ErrorKind::Json), LONE),
    ("i_string_iso_latin_1", Err(ErrorKind::Utf8), UTF8),
    ("i_string_overlong_sequence_6_bytes_null", Err(ErrorKind::Utf8), UTF8),
    ("i_string_truncated-utf-8", Err(ErrorKind::Utf8), UTF8),
    ("i_string_utf16LE_no_BOM", Err(ErrorKind::Json), "UTF-16 is not read"),
    ("i_structure_500_nested_arrays", Err(ErrorKind::Limit), "nesting is bounded at 128"),
    ("i_structure_UTF-8_BOM_empty_object", Err(ErrorKind::Json), "a byte order mark is not JSON"),
];

const LONE: &str = "a lone surrogate is no character, so it cannot be kept in UTF-8";
const UTF8: &str = "what is not UTF-8 cannot be kept as text";
const HUGE_EXPONENT: &str = concat!(
    "[0.4e006699999999999999999999999999999999999999999999999999999999999999999999999",
    "99999999999999999999999999999999999999999999969999999006]"
);

/// What becomes of values that parsers are known to change.
const TRANSFORMED: &[(&str, Result<&str, ErrorKind>)] = &[
    ("number_-9223372036854775808", Ok("[-9223372036854775808]")),
    ("number_-9223372036854775809", Ok("[-9223372036854775809]")),
    ("number_1.0", Ok("[1.0]")),
    ("number_1000000000000000", Ok("[1000000000000000]")),
    ("number_10000000000000000999", Ok("[10000000000000000999]")),
    ("number_1e6", Ok("[1E6]")),
    ("number_9223372036854775807", Ok("[9223372036854775807]")),
    // Two keys that look alike are two keys.
    ("object_key_nfc_nfd", Ok("{\"\u{e9}\":\"NFC\",\"e\u{301}\":\"NFD\"}")),
    // The last value of a doubled key counts.
    ("object_same_key_same_value", Ok(r#"{"a":1}"#)),
    ("string_2_invalid_codepoints", Err(ErrorKind::Utf8)),
    ("string_3_escaped_invalid_codepoints", Err(ErrorKind::Json)),
    ("string_3_invalid_codepoints", Err(ErrorKind::Utf8)),
];

/// The files of a group of the suite, by name.
fn group(name: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let folder = recordings("F-json-robustness")?.join(name);
    let files = files_under(&folder).into_iter().map(|path| {
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
    });
    Some(files.collect())
}

/// Reads, writes and reads again; what is written stands.
fn written(name: &str, bytes: &[u8]) -> Result<String, ErrorKind> {
    match afterimage_json::read(bytes) {
        Ok(value) => {
            let text = value.to_string();
            let again = afterimage_json::read(text.as_bytes()).unwrap();
            assert_eq!(again, value, "{name}");
            assert_eq!(again.to_string(), text, "{name}");
            Ok(text)
        }
        Err(error) => {
            let place = error.place();
            assert!(place.line.is_some() && place.column.is_some(), "{name}: {error}");
            assert!(!error.message().is_empty(), "{name}");
            Err(error.kind())
        }
    }
}

#[test]
fn valid_json_is_accepted_and_what_is_not_is_refused() {
    let Some(files) = group("test_parsing") else { return };
    let mut wrong = Vec::new();
    let mut seen = (0, 0);
    for (name, bytes) in &files {
        let found = written(name, bytes);
        match name.split('_').next().unwrap() {
            "y" => seen.0 += 1,
            "n" => seen.1 += 1,
            _ => continue,
        }
        if found.is_ok() != name.starts_with("y_") {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.0 > 40 && seen.1 > 90, "{seen:?} files");
}

#[test]
fn what_the_standard_leaves_open_is_decided() {
    let Some(files) = group("test_parsing") else { return };
    let open: Vec<_> = files.iter().filter(|(name, _)| name.starts_with("i_")).collect();
    let names: Vec<&str> = open.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, DECIDED.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    for ((name, bytes), (_, expected, why)) in open.into_iter().zip(DECIDED) {
        assert_eq!(written(name, bytes).as_deref(), expected.as_ref().copied(), "{name}: {why}");
    }
}

#[test]
fn values_are_not_transformed() {
    let Some(files) = group("test_transform") else { return };
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, TRANSFORMED.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for ((name, bytes), (_, expected)) in files.iter().zip(TRANSFORMED) {
        assert_eq!(written(name, bytes).as_deref(), expected.as_ref().copied(), "{name}");
    }
}

#[test]
fn every_prefix_of_every_file_has_an_answer() {
    for name in ["test_parsing", "test_transform"] {
        let Some(files) = group(name) else { return };
        for (name, bytes) in files {
            for end in 0..bytes.len().min(300) {
                let _ = written(&name, &bytes[..end]);
            }
        }
    }
}
