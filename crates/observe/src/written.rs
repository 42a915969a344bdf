use std::ops::Range;

use crate::json::{Value, write_array, write_object};

/// A payload as compact JSON, and where in it the parts stand that may change by themselves.
pub(super) struct SerializedPayload {
    text: String,
    root: Part,
}

/// Where a value stands, and the members of an object or the elements of an array in it. What an
/// element holds has no parts.
pub(super) struct Part {
    range: Range<usize>,
    inside: Vec<Part>,
}

impl SerializedPayload {
    /// Writes a value that takes about `hint` bytes.
    pub(super) fn of(value: &Value, hint: usize) -> Self {
        // A text that grows is copied again and again.
        let mut text = String::with_capacity(hint);
        let root = write(value, &mut text);
        Self { text, root }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn root(&self) -> &Part {
        &self.root
    }
}

impl Part {
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    pub(super) fn inside(&self) -> &[Part] {
        &self.inside
    }
}

fn write(value: &Value, text: &mut String) -> Part {
    let start = text.len();
    let mut inside = Vec::new();
    // Writing to a text cannot fail.
    let _ = match value {
        Value::Object(members) => {
            inside.reserve_exact(members.len());
            let members = members.iter().map(|(key, value)| (key.as_str(), value));
            write_object(text, members, |text, value| {
                inside.push(write(value, text));
                Ok(())
            })
        }
        Value::Array(elements) => {
            inside.reserve_exact(elements.len());
            write_array(text, elements, |text, element| {
                let start = text.len();
                element.write(text)?;
                inside.push(Part { range: start..text.len(), inside: Vec::new() });
                Ok(())
            })
        }
        scalar => scalar.write(text),
    };
    Part { range: start..text.len(), inside }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn what_is_written_is_the_value_and_the_parts_are_its_parts() {
        let text = r#"{"a":[1,{"b":[2]},"]"],"c":{"d":{},"é\n":null}}"#;
        let written = SerializedPayload::of(&json::read(text.as_bytes()).unwrap(), 0);
        assert_eq!(written.text(), text);
        let texts = |parts: &[Part]| -> Vec<String> {
            parts.iter().map(|part| written.text()[part.range()].to_owned()).collect()
        };
        let [a, c] = written.root().inside() else { panic!("two members") };
        assert_eq!(texts(a.inside()), ["1", r#"{"b":[2]}"#, r#""]""#]);
        assert_eq!(texts(c.inside()), ["{}", "null"]);
    }
}
