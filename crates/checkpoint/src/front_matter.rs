use std::ops::Range;

use super::lines::Lines;

/// The header of a document: lines of `key: value` between two lines `---`.
///
/// Lines of another shape are kept as they are; a line that is indented or begins with `-` belongs
/// to the key before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatter {
    pub(super) fields: Vec<Field>,
    /// The lines that are neither fields nor comments nor belong to a field.
    pub(super) malformed: Vec<usize>,
    /// The lines with those that mark the ends.
    pub(super) lines: Range<usize>,
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name before the colon.
    pub key: String,
    /// The value, without quotes and comments.
    pub value: String,
    /// The line, from zero.
    pub(super) line: usize,
    /// Where the value begins in its line, in bytes.
    pub(super) column: usize,
}

impl FrontMatter {
    /// The header at the beginning of a text; `None` where there is none, or none that ends.
    pub(super) fn read(lines: &Lines) -> Option<Self> {
        fields_at(lines, 0).filter(|_| opens(lines))
    }

    /// The value of the first field with this name, where it has one. O(fields).
    pub fn get(&self, key: &str) -> Option<&str> {
        Some(self.field(key)?.value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// The header whose first line is at `start`, from zero, even where it is set in.
pub(super) fn fields_at(lines: &Lines, start: usize) -> Option<FrontMatter> {
    if lines.get(start).trim() != "---" {
        return None;
    }
    let is_end = |line: &str| matches!(line.trim_end(), "---" | "...");
    let end = start + 1 + lines.iter().skip(start + 1).position(is_end)?;
    let mut found =
        FrontMatter { fields: Vec::new(), malformed: Vec::new(), lines: start..end + 1 };
    for index in start + 1..end {
        let line = lines.get(index);
        let belongs = line.starts_with([' ', '\t', '-']) && !found.fields.is_empty();
        if line.trim().is_empty() || line.starts_with('#') || belongs {
            continue;
        }
        match field(line, index) {
            Some(field) => found.fields.push(field),
            None => found.malformed.push(index),
        }
    }
    Some(found)
}

/// Whether a text begins as one with a header does.
pub(super) fn opens(lines: &Lines) -> bool {
    lines.get(0).trim_end() == "---"
}

/// Whether a text can stand before the colon of a field.
pub(super) fn is_name(key: &str) -> bool {
    let is_of_one = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    // A line that begins with `-` belongs to the field before it.
    !key.is_empty() && !key.starts_with('-') && key.chars().all(is_of_one)
}

fn field(line: &str, index: usize) -> Option<Field> {
    let (key, rest) = line.split_once(':')?;
    if !is_name(key) || rest.starts_with(|c: char| !c.is_whitespace()) {
        return None;
    }
    let value = rest.trim_start();
    let column = line.len() - value.len();
    Some(Field { key: key.to_owned(), value: plain(value.trim_end()), line: index, column })
}

/// A scalar without its quotes, or without the comment behind it.
fn plain(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some((inner, _)) = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote))
        {
            return inner.to_owned();
        }
    }
    let end = value.find(" #").unwrap_or(value.len());
    let value = if value.starts_with('#') { "" } else { value.get(..end).unwrap_or_default() };
    value.trim_end().to_owned()
}

/// The line of a header that says this, without a line end: on one line, without quotes inside, and
/// in quotes where it would be read as something else. O(key and value).
pub fn header_line(key: &str, value: &str) -> String {
    format!("{key}: {}", quoted(&super::diff::header_value(value)))
}

/// A value as it is written: in quotes where it would be read as something else.
pub(super) fn quoted(value: &str) -> String {
    let value: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(&value) == value {
        return value;
    }
    let quote = if value.contains('"') { '\'' } else { '"' };
    format!("{quote}{}{quote}", value.replace(quote, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_with_its_odd_lines_kept_apart() {
        let text =
            "---\ncheckpoint: \"a: b\" # id\ncreated:\ntags:\n  - x\nno field\nurl:x\n---\n# T";
        let header = FrontMatter::read(&Lines::new(text.to_owned())).unwrap();
        assert_eq!(header.get("checkpoint"), Some("a: b"));
        assert_eq!(header.get("created"), None);
        assert_eq!(header.malformed, [5, 6]);
        assert_eq!(header.lines, 0..8);
        assert_eq!(FrontMatter::read(&Lines::new("---\na: b\n".to_owned())), None);
    }

    #[test]
    fn a_value_that_is_written_is_read_back() {
        for value in ["chk-1", "a: b", "# no comment", "\"x\"", "it's", "a # b"] {
            assert_eq!(
                plain(&quoted(value)).replace(['"', '\''], ""),
                value.replace(['"', '\''], "")
            );
        }
    }
}
