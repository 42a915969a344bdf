//! A receipt as JSON (`docs/FORMAT.md`), and as text.

use std::fmt;

use super::{LossReceipt, LostKind, LostText, ReplacedFrames};
use crate::{
    id::FrameSeq,
    json::{self, Value},
};

/// The columns of the text.
const COLUMNS: usize = 80;

impl LossReceipt {
    /// The JSON form (`docs/FORMAT.md`). O(size).
    pub fn to_json(&self) -> Value {
        json::to_value(self).unwrap_or_default()
    }
}

/// Text of at most 80 columns where names allow it: what stands for frames, then what can no longer
/// be read, by kind and frame.
impl fmt::Display for LossReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for replaced in &self.replaced {
            writeln!(f, "{replaced}")?;
        }
        for kind in LostKind::ALL {
            let mut line = Line::new(f, kind);
            for lost in self.of_kind(kind) {
                line.push(lost)?;
            }
            line.end()?;
        }
        Ok(())
    }
}

impl fmt::Display for ReplacedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, from, to, frames, tokens_before, tokens_after, originals } = self;
        write!(f, "{:<11} {id}: ", kind.as_str())?;
        if from == to {
            write!(f, "frame {from}")?;
        } else {
            write!(f, "{frames} frames {from}–{to}")?;
        }
        write!(f, ", {tokens_before} → {tokens_after} tokens")?;
        match originals {
            super::OriginalsState::Held => Ok(()),
            _ => write!(f, ", {}", originals.as_str()),
        }
    }
}

/// A line that is written: texts of one frame.
struct Line<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    kind: LostKind,
    frame: Option<FrameSeq>,
    columns: usize,
}

impl<'a, 'f> Line<'a, 'f> {
    fn new(f: &'a mut fmt::Formatter<'f>, kind: LostKind) -> Self {
        Self { f, kind, frame: None, columns: 0 }
    }

    fn push(&mut self, lost: &LostText) -> fmt::Result {
        let next = lost.text.chars().count();
        let goes_on = self.frame == Some(lost.frame)
            && self.kind != LostKind::Rule
            && self.columns + 2 + next <= COLUMNS;
        if goes_on {
            self.columns += 2 + next;
            return write!(self.f, ", {}", lost.text);
        }
        self.end()?;
        self.frame = Some(lost.frame);
        let head = format!("{:<11} [{}] ", self.kind.as_str(), lost.frame);
        self.columns = head.chars().count() + next;
        write!(self.f, "{head}{}", lost.text)
    }

    fn end(&mut self) -> fmt::Result {
        if self.frame.take().is_some() { writeln!(self.f) } else { Ok(()) }
    }
}
