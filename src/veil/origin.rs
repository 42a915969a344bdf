//! Where an imported frame, or a facet of it, stands in its source.

use super::{FacetChange, Frame};
use crate::json::{Object, Value};

/// Where a frame, or a facet of it, stands in the file that it was imported from.
///
/// A source may write one message in several records. [`Frame::origin`] is the first of them;
/// [`Frame::origin_of`] knows the record of each facet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin<'f> {
    /// The line in the file, or the number of the element, from one.
    pub line: Option<u64>,
    /// The id of the record, as the source wrote it.
    pub uuid: Option<&'f str>,
    /// When it happened, as the source wrote it.
    pub time: Option<&'f str>,
}

impl Frame {
    /// Where the frame stands in its source. Empty for a frame that was not imported and has
    /// neither an id nor a time.
    ///
    /// ```
    /// # use afterimage::transcript::Transcript;
    /// let session = br#"{"type":"user","uuid":"u1","sessionId":"s","timestamp":"t1","message":{"role":"user","content":"hello"}}"#;
    /// let record = Transcript::new(&session[..])?.next().unwrap()?;
    /// let origin = record.frame.origin();
    /// assert_eq!((origin.line, origin.uuid, origin.time), (Some(1), Some("u1"), Some("t1")));
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn origin(&self) -> Origin<'_> {
        let line = self.imported.as_ref().map(|imported| imported.line).filter(|line| *line > 0);
        Origin { line, uuid: self.uuid.as_deref(), time: self.timestamp.as_deref() }
    }

    /// Where a facet that the frame adds stands in its source; [`Frame::origin`] for any other.
    /// Linear in the facets of the frame.
    pub fn origin_of(&self, facet: &str) -> Origin<'_> {
        let whole = self.origin();
        let parts = self.imported.as_ref().and_then(|imported| imported.get("parts"));
        let Some(parts) = parts.and_then(Value::as_array) else { return whole };
        let added = self.ops.iter().filter_map(|op| match &op.change {
            FacetChange::Add(facet) => Some(facet),
            _ => None,
        });
        let Some(index) = added.into_iter().position(|added| added.holds(facet)) else {
            return whole;
        };
        let mut end = 0;
        let part = parts.iter().filter_map(Value::as_object).find(|part| {
            end += part.get("blocks").and_then(Value::as_u64).unwrap_or_default();
            (index as u64) < end
        });
        part.map_or(whole, |part| Origin::of_part(part, whole))
    }
}

impl<'f> Origin<'f> {
    /// What a part says, and of what it does not say, what the frame does.
    fn of_part(part: &'f Object, whole: Self) -> Self {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        Self {
            line: part.get("line").and_then(Value::as_u64).or(whole.line),
            uuid: text("uuid").or(whole.uuid),
            time: text("timestamp").or(whole.time),
        }
    }
}
