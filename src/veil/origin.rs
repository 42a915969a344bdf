//! Where an imported frame, or a facet of it, stands in its source.

use super::{Facet, Frame};
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
    /// The name of the file, where it is another than that of the session: a subagent's.
    pub file: Option<&'f str>,
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
        let file = self.imported.as_ref().and_then(|imported| imported.file.as_deref());
        Origin { line, uuid: self.uuid.as_deref(), time: self.timestamp.as_deref(), file }
    }

    /// Where a facet that the frame adds stands in its source; [`Frame::origin`] for any other.
    /// Linear in the facets of the frame: who asks for several takes [`Frame::facet_origins`].
    pub fn origin_of(&self, facet: &str) -> Origin<'_> {
        let found = self.facet_origins().find(|(added, _)| added.holds(facet));
        found.map_or_else(|| self.origin(), |(_, origin)| origin)
    }

    /// The facets that the frame adds, in their order, and where each stands in its source, with
    /// what is inside of it. O(1) each.
    pub fn facet_origins(&self) -> impl Iterator<Item = (&Facet, Origin<'_>)> {
        let whole = self.origin();
        let parts = self.imported.as_ref().and_then(|imported| imported.get("parts"));
        let parts = parts.and_then(Value::as_array).into_iter().flatten();
        let mut parts = parts.filter_map(Value::as_object);
        // The part of the next facet, and how many facets it has left.
        let (mut part, mut left) = (None, 0);
        self.added().map(move |facet| {
            while left == 0 {
                part = parts.next();
                let blocks = |part: &Object| part.get("blocks").and_then(Value::as_u64);
                left = part.map_or(u64::MAX, |part| blocks(part).unwrap_or_default());
            }
            left -= 1;
            (facet, part.map_or(whole, |part| Origin::of_part(part, whole)))
        })
    }
}

impl<'f> Origin<'f> {
    /// What a part says, and of what it does not say, what the frame does.
    fn of_part(part: &'f Object, whole: Self) -> Self {
        let text = |key: &str| part.str_at(key);
        Self {
            line: part.get("line").and_then(Value::as_u64).or(whole.line),
            uuid: text("uuid").or(whole.uuid),
            time: text("timestamp").or(whole.time),
            file: whole.file,
        }
    }
}
