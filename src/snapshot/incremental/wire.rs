use std::sync::Arc;

use super::{IncrementalSnapshot, snapshot::sum_of};
use crate::{
    Error, ErrorKind, Result,
    id::{FrameSeq, Millis},
    json::{Fields, Object, ObjectExt, Value, serde_through_json},
    snapshot::{
        FrameSnapshot, RenderedChunk, SnapshotIdentity, chunk::Chunks, wire::check_structure,
    },
    text::TextRange,
};

serde_through_json!(IncrementalSnapshot);

/// The members that a full snapshot has not.
pub(super) const OWN_MEMBERS: [&str; 4] =
    ["deltaChunks", "cumulativeTokens", "basedOn", "keptChunks"];
/// The members of a full snapshot that this form has not.
const FULL_MEMBERS: [&str; 3] = ["chunks", "totalContent", "totalTokens"];

impl IncrementalSnapshot {
    /// The wire form.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        let chunks = self.delta.chunks().map(|chunk| chunk.to_owned().to_json());
        object.put("deltaChunks", chunks.collect::<Value>());
        object.put("cumulativeTokens", self.cumulative_tokens);
        object.put_some("basedOn", self.based_on.map(FrameSeq::get));
        object.put_some("keptChunks", self.kept.map(|kept| kept as u64));
        object.put("capturedAt", self.delta.captured_at.get());
        object.put_some("hasContent", self.has_content);
        object.put_some("exactTokens", self.exact_tokens);
        object.put_some("madeBy", self.delta.identity().map(|identity| identity.to_json()));
        if let Some(extra) = &self.extra {
            object.put_unknown(extra);
        }
        Value::Object(object)
    }

    /// Loads the wire form, and checks what can be checked without the base.
    ///
    /// # Errors
    /// [`ErrorKind::Sum`] where the new chunks' tokens exceed `cumulativeTokens` or, of a snapshot
    /// that keeps no chunk of another, are not all of it; [`ErrorKind::Shape`] where a member is
    /// missing, of the wrong type, belongs to the full form, or contradicts the others.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "an incremental snapshot")?;
        let array = fields.array("deltaChunks")?;
        let array = Fields::required(array, "deltaChunks", "an array")?;
        let (mut text, mut chunks) = (String::new(), Chunks::with_capacity(array.len()));
        for (index, value) in array.into_iter().enumerate() {
            let chunk = RenderedChunk::from_json(value)
                .map_err(|error| error.under(index).under("deltaChunks"))?;
            let range = TextRange::at(text.len(), chunk.content.len());
            text.push_str(&chunk.content);
            chunks.push(chunk.into_stored(range));
        }
        let total_tokens = sum_of(&chunks)?;
        let cumulative = fields.u64("cumulativeTokens")?;
        let cumulative_tokens = Fields::required(cumulative, "cumulativeTokens", "a token count")?;
        let based_on = fields.u64("basedOn")?.map(FrameSeq::new);
        let of_chunks = |kept: u64| {
            usize::try_from(kept)
                .map_err(|_| Error::expected("a number of chunks", kept).under("keptChunks"))
        };
        let kept = fields.u64("keptChunks")?.map(of_chunks).transpose()?;
        let captured_at = fields.i64("capturedAt")?;
        let captured_at =
            Fields::required(captured_at, "capturedAt", "milliseconds since the epoch")?;
        let has_content = fields.take("hasContent").and_then(|value| value.as_bool());
        let exact_tokens = fields.u64("exactTokens")?;
        let identity = fields.nested("madeBy", SnapshotIdentity::from_json)?.map(Arc::new);
        let extra = fields.rest();
        if let Some(key) = FULL_MEMBERS.iter().find(|key| extra.contains_key(key)) {
            let expected = "no member of a full snapshot beside deltaChunks";
            return Err(Error::expected(expected, format_args!("{key:?}")).under(key));
        }
        let mut snapshot = Self {
            based_on,
            kept,
            delta: FrameSnapshot {
                text,
                chunks,
                total_tokens,
                exact_tokens: None,
                captured_at: Millis::new(captured_at),
                identity,
                extra: None,
            },
            cumulative_tokens,
            exact_tokens,
            has_content,
            extra: Some(extra).filter(|extra| !extra.is_empty()).map(Box::new),
        };
        snapshot.check()?;
        // What the new chunks say themselves counts; of what is kept, the member is believed.
        let is_whole = snapshot.based_on.is_none() || snapshot.kept == Some(0);
        if is_whole || snapshot.delta.has_content() {
            let found = snapshot.delta.has_content();
            snapshot.has_content = snapshot.has_content.map(|_| found);
        }
        Ok(snapshot)
    }

    fn check(&self) -> Result<()> {
        if let (None, Some(kept)) = (self.based_on, self.kept) {
            let expected = "a frame that the snapshot is based on, since it keeps chunks";
            return Err(Error::expected(expected, format_args!("nothing, and {kept} to keep"))
                .under("basedOn"));
        }
        if self.based_on.is_none() || self.kept == Some(0) {
            self.check_total(self.delta.total_tokens)?;
            check_structure(&self.delta.chunks)?;
        } else if self.delta.total_tokens > self.cumulative_tokens {
            let message = format!(
                "the new chunks' tokens exceed the running total: expected at most {}, found {}",
                self.cumulative_tokens, self.delta.total_tokens
            );
            return Err(Error::new(ErrorKind::Sum, message).under("cumulativeTokens"));
        }
        Ok(())
    }
}
