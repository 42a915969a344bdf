//! A window as JSON (`docs/FORMAT.md`), and back.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Budget, ContextWindow, DroppedFrames, ShortenedFrame,
    change::{Change, masked_id, shortened_id},
};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionOptions, CompressionTransform,
        saved::{expect_version, finish, flag, index, list, load, number, text, to_json},
    },
    hud::Hud,
    id::{FrameSeq, Millis},
    json::{self, Fields, Object, ObjectExt, Value},
    snapshot::FrameSnapshot,
    veil::History,
};

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

impl ContextWindow {
    /// What was planned and done, to be saved beside the history: [`ContextWindow::from_json`] goes
    /// on from there. Save it after each context that begins an epoch; one that was saved earlier is
    /// right too, and makes its later epochs anew. Costs time in what stands for frames.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("window", VERSION);
        object.put("madeBy", made_by(&self.hud));
        object.put("budget", to_json(&self.budget));
        object.put("transform", self.transform.to_json());
        object.put("changes", self.changes.values().map(change_to_json).collect::<Value>());
        let replaced = self.replaced.iter().map(|(id, changes)| {
            let mut object = Object::new();
            object.put("block", &**id);
            object.put("changes", changes.iter().map(change_to_json).collect::<Value>());
            Value::from(object)
        });
        object.put("replaced", replaced.collect::<Value>());
        object.put("ledger", self.ledger.to_json());
        object.put("isCompressing", self.is_compressing);
        object.put("lookedAt", self.looked_at as u64);
        object.put_some("seen", self.seen.map(FrameSeq::get));
        object.put("epochs", self.epochs);
        object.put_some("pending", self.pending.as_ref().map(to_json));
        object.into()
    }

    /// The window that [`ContextWindow::to_json`] saved, for the same history and a HUD like the one
    /// that it had. The next context is byte for byte what the window would have made that was
    /// saved. The history may be longer by now. Frames that it has without a snapshot are sealed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     compress::OutlineEngine, hud::{Hud, RenderRequest}, id::{FacetType, Millis}, json,
    ///     tokens::Chars4, veil::{Facet, FacetOp, Frame, History, Source},
    ///     window::{Budget, ContextWindow},
    /// };
    ///
    /// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
    /// for n in 0..40_u64 {
    ///     let said = Facet::new(format!("said-{n}"), FacetType::EVENT, "calm ".repeat(20));
    ///     hud.capture(&mut history, Frame::new(n, Source::User).with(FacetOp::add(said)), now)?;
    /// }
    /// let (budget, request) = (Budget::new(800), RenderRequest::default());
    /// let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    /// let before = window.render(&mut history, &request, &OutlineEngine, now)?;
    /// let saved = window.to_json().to_string();
    ///
    /// let saved = json::read(saved.as_bytes())?;
    /// let mut loaded = ContextWindow::from_json(saved, hud, &mut history, now)?;
    /// let after = loaded.render(&mut history, &request, &OutlineEngine, now)?;
    /// assert_eq!(before.context.to_json(), after.context.to_json());
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// Cost: O(the JSON and the frames); frames that have no snapshot yet are rendered.
    ///
    /// # Errors
    /// [`ErrorKind::Version`] for another version. The same for other tables of words, where the
    /// history has forgotten frames that the ledger would be read from again.
    /// [`ErrorKind::Conflict`] where the HUD makes other snapshots than the one before,
    /// [`ErrorKind::Shape`] for everything else that is not as `docs/FORMAT.md` says, and those of
    /// [`CompressionTransform::from_json`] and of the format.
    pub fn from_json(saved: Value, hud: Hud, history: &mut History, now: Millis) -> Result<Self> {
        let mut fields = Fields::of(saved, "a saved window")?;
        expect_version(&mut fields, "window", VERSION)?;
        let (found, expected) = (fields.take("madeBy"), made_by(&hud));
        if found.as_ref() != Some(&expected) {
            let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
            let message =
                format!("expected a window of a HUD that makes {expected}, found {found}");
            return Err(Error::new(ErrorKind::Conflict, message).under("madeBy"));
        }
        let budget: Budget = load(&mut fields, "budget")?;
        let mut window = Self::new(hud, budget, CompressionOptions::default());
        window.sealed = window.hud.seal_all(history, now)?;
        let transform = Fields::required(fields.take("transform"), "transform", "an object")?;
        window.transform = CompressionTransform::from_json(transform, history)
            .map_err(|error| error.under("transform"))?;
        window.changes = in_order(list(&mut fields, "changes", change_from_json)?)
            .map_err(|error| error.under("changes"))?;
        let replaced = list(&mut fields, "replaced", |value| {
            let mut fields = Fields::of(value, "what a block replaced")?;
            let id: Arc<str> = text(&mut fields, "block")?.into();
            let changes = list(&mut fields, "changes", change_from_json)?;
            finish(fields).map(|()| (id, changes))
        })?;
        window.replaced = replaced.into_iter().collect();
        window.edits.follow(&window.hud, history, now)?;
        let ledger = Fields::required(fields.take("ledger"), "ledger", "an object")?;
        window.load_ledger(ledger, history).map_err(|error| error.under("ledger"))?;
        window.is_compressing = flag(&mut fields, "isCompressing")?;
        window.looked_at = index(&mut fields, "lookedAt", window.transform.steps().len())?;
        let looked_at = window.transform.steps().iter().take(window.looked_at);
        window.tokens_looked_at = looked_at.map(|step| step.tokens).sum();
        window.seen = fields.u64("seen")?.map(FrameSeq::new);
        window.epochs = number(&mut fields, "epochs")?;
        window.pending = fields.nested("pending", json::from_value)?;
        finish(fields)?;
        Ok(window)
    }
}

/// What makes the snapshots that a window counts on.
fn made_by(hud: &Hud) -> Value {
    let identity = hud.identity();
    let mut object = Object::new();
    if let Some(rendering) = &identity.rendering {
        object.put("viewer", rendering.viewer.as_str());
        object.put("format", rendering.format.as_str());
        object.put("renderer", u64::from(rendering.renderer));
    }
    object.put("tokenizer", identity.tokenizer.as_str());
    object.into()
}

/// Changes by their first frame; they never overlap.
fn in_order(changes: Vec<Change>) -> Result<BTreeMap<FrameSeq, Change>> {
    let mut ordered = BTreeMap::new();
    let mut last = None;
    for (at, change) in changes.into_iter().enumerate() {
        let (from, to) = (change.from(), change.to());
        if to < from || last.is_some_and(|last| from <= last) {
            let found = format_args!("{from} to {to}");
            return Err(Error::expected("frames after those before", found).under(at));
        }
        last = Some(to);
        ordered.insert(from, change);
    }
    Ok(ordered)
}

fn change_to_json(change: &Change) -> Value {
    let mut object = Object::new();
    match change {
        Change::Dropped(dropped) => {
            object.put("from", dropped.from.get());
            object.put("to", dropped.to.get());
            object.put("tokens", dropped.tokens);
            object.put_some("block", dropped.block.as_deref());
        }
        Change::Shortened { what, snapshot } => {
            object.put("frame", what.frame.get());
            object.put("isMasked", what.is_masked());
            object.put("originalTokens", what.original_tokens);
            object.put("tokens", what.tokens);
            object.put("snapshot", snapshot.to_json());
        }
    }
    object.into()
}

fn change_from_json(value: Value) -> Result<Change> {
    let mut fields = Fields::of(value, "a change")?;
    let change = match fields.u64("frame")?.map(FrameSeq::new) {
        Some(frame) => {
            let snapshot = fields.nested("snapshot", FrameSnapshot::from_json)?;
            let snapshot = Fields::required(snapshot, "snapshot", "a snapshot")?;
            let is_masked = flag(&mut fields, "isMasked")?;
            let what = ShortenedFrame {
                frame,
                id: if is_masked { masked_id(frame) } else { shortened_id(frame) },
                original_tokens: number(&mut fields, "originalTokens")?,
                tokens: number(&mut fields, "tokens")?,
            };
            Change::Shortened { what, snapshot: Arc::new(snapshot) }
        }
        None => Change::Dropped(DroppedFrames {
            from: FrameSeq::new(number(&mut fields, "from")?),
            to: FrameSeq::new(number(&mut fields, "to")?),
            tokens: number(&mut fields, "tokens")?,
            block: fields.string("block")?.map(Arc::from),
        }),
    };
    finish(fields)?;
    Ok(change)
}
