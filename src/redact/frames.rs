//! Frames without their secrets, before they are captured.

use super::Redactor;
use crate::{Result, veil::Frame};

impl Redactor {
    /// A frame without its secrets: in facets, in what its source says of it, and in members that
    /// are not known here. A rendering that it brought along goes where it holds a secret, so that
    /// the frame is rendered anew. Linear in what the frame holds.
    ///
    /// # Errors
    /// Those of [`Frame::from_json`], which a frame that was read does not have.
    pub fn frame(&mut self, mut frame: Frame) -> Result<Frame> {
        let place = format!("frame {}", frame.sequence);
        let snapshot = frame.rendered_snapshot.take();
        let tail = frame.rendered_tail.take();
        let mut redacted = Frame::from_json(self.value(frame.to_json(), &place))?;
        redacted.rendered_snapshot =
            snapshot.filter(|snapshot| self.find(snapshot.text(), &place).is_empty());
        redacted.rendered_tail = tail.filter(|tail| self.find(tail.text(), &place).is_empty());
        Ok(redacted)
    }
}
