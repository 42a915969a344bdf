//! Frames as the veil has them: where things stand in what was never rendered.

use super::{Chronicle, Ledger};
use crate::{
    id::{FrameSeq, Role},
    steps::{Action, Status, is_words},
    veil::{Facet, Frame, Source},
};

impl Ledger {
    /// Reads the next frame by what it adds, rendered or not. What was read before is passed over.
    /// Runs in time linear in the text.
    ///
    /// ```
    /// use afterimage::{compress::Ledger, id::FacetType, veil::{Facet, FacetOp, Frame, Source}};
    ///
    /// let ask = Facet::new("ask-0", FacetType::EVENT, "Move berth 7. Never call at night.");
    /// let mut ledger = Ledger::new();
    /// ledger.read_frame(&Frame::new(0, Source::User).with(FacetOp::add(ask)));
    /// let look = Facet::tool_call("call-1", Some("c"), "look", afterimage::json::Value::Null);
    /// ledger.read_frame(&Frame::new(1, Source::Agent).with(FacetOp::add(look)));
    /// let rules: Vec<&str> = ledger.rules().map(|(_, rule)| rule).collect();
    /// assert_eq!(rules, ["Never call at night."]);
    /// ```
    pub fn read_frame(&mut self, frame: &Frame) {
        self.read_frame_into(frame, None);
    }

    /// As [`Ledger::read_frame`], with a chronicle that takes what happened.
    pub(crate) fn read_frame_into(&mut self, frame: &Frame, mut chronicle: Option<&mut Chronicle>) {
        if self.last.is_some_and(|last| frame.sequence <= last) {
            return;
        }
        self.last = Some(frame.sequence);
        if frame.added().any(Facet::says_something) {
            self.waiting.next_frame(frame.source == Source::Agent);
        }
        for facet in frame.added() {
            self.read_facet(facet, frame, chronicle.as_deref_mut());
        }
    }

    fn read_facet(&mut self, facet: &Facet, frame: &Frame, mut chronicle: Option<&mut Chronicle>) {
        let at = frame.sequence;
        if let Some(call) = facet.call() {
            self.sees_call(at);
            let action = Action::of_call(&call);
            self.call(at, call.id, call.name, action, chronicle.as_deref_mut());
        } else if facet.is_result() {
            let mut text = String::new();
            gather(facet, &mut text);
            let of = (facet.call_id(), facet.tool_name());
            return self.result(at, of, (&text, facet.outcome()), chronicle);
        } else if is_words(facet) {
            let role = match frame.source {
                Source::Agent => Role::Assistant,
                Source::System => Role::System,
                Source::User | Source::Environment | Source::Other(_) => Role::User,
            };
            let of = (Some(&frame.source), role);
            self.says(at, of, &facet.content, chronicle.as_deref_mut());
        }
        for child in &facet.children {
            self.read_facet(child, frame, chronicle.as_deref_mut());
        }
    }

    /// The steps of the plan that are not done, those in work first, with the frame of the plan.
    /// O(n) for all of them.
    pub fn open_steps(&self) -> impl Iterator<Item = (FrameSeq, &str)> {
        let of_status = |status: Status| self.plan.iter().filter(move |item| item.status == status);
        let steps = [Status::InProgress, Status::Open].into_iter().flat_map(of_status);
        self.plan_at
            .filter(|_| self.is_certain())
            .into_iter()
            .flat_map(move |frame| steps.clone().map(move |item| (frame, item.text.as_str())))
    }

    /// What became of a file that the session changed, as far as calls were answered.
    pub(crate) fn fate_of(&self, path: &str) -> Option<&'static str> {
        let file = self.files.get(path).filter(|file| file.is_changed())?;
        Some(if file.is_deleted || file.moved_to.is_some() {
            "deleted"
        } else if file.is_created || file.moved_from.is_some() {
            "created"
        } else {
            "modified"
        })
    }

    /// The tools of the calls that wait for their results, the oldest first.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|(_, call)| call.tool.as_str())
    }

    /// What failed last and was not done since: the frame, the call with its subject, and the text.
    pub fn open_error(&self) -> Option<(FrameSeq, &str, &str)> {
        let last = self.last_error.as_ref()?;
        let is_open = self.errors.last() == Some(last);
        is_open.then_some((last.frame, last.call.as_str(), last.text.as_str()))
    }
}

/// The text of a facet and of what it holds, each on a line of its own.
fn gather(facet: &Facet, text: &mut String) {
    if !text.is_empty() && !facet.content.is_empty() {
        text.push('\n');
    }
    text.push_str(&facet.content);
    facet.children.iter().for_each(|child| gather(child, text));
}
