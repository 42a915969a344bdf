use std::sync::Arc;

use super::{CompressionTransform, saved::to_json};
use crate::{
    Result,
    json::{self, Value},
    snapshot::FrameSnapshot,
    veil::Frame,
};

/// The member of a snapshot that holds the state.
const MEMBER: &str = "compressionState";

/// What is written beside a snapshot that a block stands for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompressionState {
    /// The id of the block. Wire name `replacedBy`.
    pub replaced_by: Arc<str>,
    /// The tokens of the frame, the sum over its chunks. Wire name `originalTokens`.
    pub original_tokens: u64,
}

/// The same as it is read: a frame that stands for itself names no block.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenState {
    replaced_by: Option<Arc<str>>,
    original_tokens: u64,
}

impl CompressionState {
    /// The wire form. O(frames).
    pub fn to_json(&self) -> Value {
        to_json(self)
    }

    /// Loads the wire form. `None` where it names no block: the frame stands for itself. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where a member has the wrong type, or
    /// `originalTokens` is missing.
    pub fn from_json(value: Value) -> Result<Option<Self>> {
        let WrittenState { replaced_by, original_tokens } = json::from_value(value)?;
        Ok(replaced_by.map(|replaced_by| Self { replaced_by, original_tokens }))
    }

    /// What was written beside a snapshot; `None` where nothing was, or it names no block. O(size).
    ///
    /// # Errors
    /// As [`CompressionState::from_json`], at `compressionState`.
    pub fn of_snapshot(snapshot: &FrameSnapshot) -> Result<Option<Self>> {
        let written = snapshot.unknown_member(MEMBER).cloned();
        let state =
            written.map(|value| Self::from_json(value).map_err(|error| error.under(MEMBER)));
        Ok(state.transpose()?.flatten())
    }
}

impl CompressionTransform {
    /// The wire form of a frame of this history: that of [`Frame::to_json`], and beside the snapshot
    /// of a frame that a block stands for its `compressionState`. The snapshot itself never
    /// changes. O(frame).
    ///
    /// ```
    /// use afterimage::{compress::CompressionTransform, veil::{Frame, Source}};
    ///
    /// let frame = Frame::new(0, Source::User);
    /// let transform = CompressionTransform::default();
    /// assert_eq!(transform.frame_to_json(&frame), frame.to_json());
    /// ```
    pub fn frame_to_json(&self, frame: &Frame) -> Value {
        let mut json = frame.to_json();
        if let Some(state) = self.compression_state(frame.sequence)
            && let Value::Object(object) = &mut json
            && let Some(Value::Object(snapshot)) = object.get_mut("renderedSnapshot")
        {
            snapshot.insert(MEMBER.to_owned(), state.to_json());
        }
        json
    }
}
