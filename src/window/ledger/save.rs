//! The ledger of a window as JSON (`docs/FORMAT.md`), and back.

use std::sync::Arc;

use super::{WindowLedger, WrittenLedger};
use crate::{
    Error, ErrorKind, Result,
    compress::saved::{finish, flag, index, load, number, to_json},
    id::FrameSeq,
    json::{self, Fields, Object, ObjectExt, Value},
    snapshot::FrameSnapshot,
    steps::WORDS,
    summary::LedgerLine,
    veil::History,
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
        let mut object = Object::new();
        object.put("behind", self.behind.get());
        object.put("snapshot", self.snapshot.to_json());
        object.put("lines", to_json(&*self.lines));
        object.into()
    }

    fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a written ledger")?;
        let behind = FrameSeq::new(number(&mut fields, "behind")?);
        let snapshot = fields.nested("snapshot", FrameSnapshot::from_json)?;
        let snapshot = Fields::required(snapshot, "snapshot", "a snapshot")?;
        let lines: Vec<LedgerLine> = load(&mut fields, "lines")?;
        finish(fields)?;
        Ok(Self { behind, snapshot: Arc::new(snapshot), lines: Arc::new(lines) })
    }
}

impl ContextWindow {
    /// Takes over a ledger that was saved. One that was read with other words is read again.
    pub(in crate::window) fn load_ledger(&mut self, value: Value, history: &History) -> Result<()> {
        let mut fields = Fields::of(value, "a ledger")?;
        self.ledger.outside = index(&mut fields, "outside", self.transform.steps().len())?;
        let read = Fields::required(fields.take("read"), "read", "an object")?;
        let is_other = read.str_at("words").is_some_and(|words| words != WORDS);
        if is_other {
            self.read_again(&read, history).map_err(|error| error.under("read"))?;
        } else {
            let read = json::from_value(read).map_err(|error| error.under("read"))?;
            self.ledger.read = Arc::new(read);
        }
        self.ledger.limit = fields.u64("limit")?;
        self.ledger.is_stale = flag(&mut fields, "isStale")?;
        self.ledger.written = fields.nested("written", WrittenLedger::from_json)?;
        self.ledger.named = fields.nested("named", WrittenLedger::from_json)?;
        finish(fields)
    }

    /// Reads the frames that a ledger had read.
    fn read_again(&mut self, read: &Value, history: &History) -> Result<()> {
        let last = read.get("last").cloned().unwrap_or_default();
        let last: Option<FrameSeq> = json::from_value(last).map_err(|error| error.under("last"))?;
        let frames = history.frames();
        let mut until = 0..last.map_or(0, |last| frames.first_after(last));
        if until.any(|at| frames.is_forgotten(at)) {
            let message = format!(
                "expected what was read with the words {WORDS}, found others, and the history has \
                 forgotten frames that would be read again: make a new window"
            );
            return Err(Error::new(ErrorKind::Version, message).under("words"));
        }
        last.into_iter().for_each(|last| self.read_ledger(history, last));
        Ok(())
    }
}
