//! The ledger of a window as JSON (`docs/FORMAT.md`), and back.

use std::sync::Arc;

use super::{WindowLedger, WrittenLedger};
use crate::{
    Result,
    compress::saved::{finish, flag, index, list, load, number, text, to_json},
    id::FrameSeq,
    json::{Fields, Object, ObjectExt, Value},
    snapshot::FrameSnapshot,
    summary::LedgerLine,
    window::ContextWindow,
};

impl WindowLedger {
    /// What it holds. What was read is saved too: its frames may be forgotten by then.
    pub(in crate::window) fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("read", to_json(&*self.read));
        object.put("outside", self.outside as u64);
        object.put_some("limit", self.limit);
        object.put("isStale", self.is_stale);
        object.put_some("written", self.written.as_ref().map(WrittenLedger::to_json));
        object.put_some("named", self.named.as_ref().map(WrittenLedger::to_json));
        object.into()
    }
}

impl WrittenLedger {
    fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let mut object = Object::new();
            object.put_some("frame", line.frame.map(FrameSeq::get));
            object.put("text", line.text.as_str());
            Value::from(object)
        });
        let mut object = Object::new();
        object.put("behind", self.behind.get());
        object.put("snapshot", self.snapshot.to_json());
        object.put("lines", lines.collect::<Value>());
        object.into()
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a written ledger")?;
        let behind = FrameSeq::new(number(&mut fields, "behind")?);
        let snapshot = fields.nested("snapshot", FrameSnapshot::from_json)?;
        let snapshot = Fields::required(snapshot, "snapshot", "a snapshot")?;
        let lines = list(&mut fields, "lines", |value| {
            let mut fields = Fields::of(value, "a line of a ledger")?;
            let frame = fields.u64("frame")?.map(FrameSeq::new);
            let text = text(&mut fields, "text")?;
            finish(fields).map(|()| LedgerLine { frame, text })
        })?;
        finish(fields)?;
        Ok(Self { behind, snapshot: Arc::new(snapshot), lines: Arc::new(lines) })
    }
}

impl ContextWindow {
    /// Takes over a ledger that was saved.
    pub(in crate::window) fn load_ledger(&mut self, value: Value) -> Result<()> {
        let mut fields = Fields::of(value, "a ledger")?;
        self.ledger.read = Arc::new(load(&mut fields, "read")?);
        self.ledger.outside = index(&mut fields, "outside", self.transform.steps().len())?;
        self.ledger.limit = fields.u64("limit")?;
        self.ledger.is_stale = flag(&mut fields, "isStale")?;
        self.ledger.written = fields.nested("written", WrittenLedger::from_json)?;
        self.ledger.named = fields.nested("named", WrittenLedger::from_json)?;
        finish(fields)
    }
}
