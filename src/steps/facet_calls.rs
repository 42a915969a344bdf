//! Which tool call a facet belongs to, and what the call is about.

use std::sync::Arc;

use super::{Action, Touch};
use crate::{
    id::FacetId,
    veil::{Facet, Frame, OpenCalls, Source},
};

/// A tool call: its tool, the path that it names, what else it is about, and the files it touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The file or folder that its arguments name.
    pub path: Option<Arc<str>>,
    /// What the call is about, in one line of at most about 220 bytes: its path, the first line of
    /// its command, what it searches for, the files of its patch, else the values of its
    /// arguments.
    pub subject: Option<Arc<str>>,
    /// The files that it touches, with what it does to each: those of its command and of its patch
    /// too. Where it searches is none.
    pub files: Arc<[(Touch, String)]>,
}

impl ToolCall {
    /// What a call says of itself.
    pub(crate) fn of(tool: &str, action: Action) -> Self {
        let subject = if action.values.is_empty() { action.subject } else { action.values };
        let subject = Some(subject).filter(|subject| !subject.is_empty());
        Self {
            tool: tool.into(),
            path: action.path.map(Arc::from),
            subject: subject.map(Arc::from),
            files: action.touches.into(),
        }
    }
}

/// A facet that is a call, a result of one, or inside of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetCall {
    /// The facet.
    pub facet: FacetId,
    /// The call that it is, or answers. Of a result that answers none, the tool that it names.
    pub call: Option<ToolCall>,
    /// Whether the call is known: `false` for a result that answers none.
    pub is_paired: bool,
}

/// Says of the facets of a session which tool call they belong to, frame by frame, by the rule of
/// [`Pairs`](crate::veil::Pairs).
///
/// ```
/// use afterimage::{json, steps::FacetCalls, veil::{Facet, FacetOp, Frame, Source}};
///
/// let arguments = json::read(br#"{"file_path":"src/lib.rs","limit":20}"#)?;
/// let call = Facet::tool_call("action-0", Some("c1"), "Read", arguments);
/// let result = Facet::tool_result("result-1", Some("c1"), None, "mod veil;");
/// let mut calls = FacetCalls::default();
/// calls.push(&Frame::new(0, Source::Agent).with(FacetOp::add(call)));
/// let of = calls.push(&Frame::new(1, Source::Environment).with(FacetOp::add(result)));
/// let call = of[0].call.as_ref().unwrap();
/// assert_eq!((&*call.tool, call.path.as_deref()), ("Read", Some("src/lib.rs")));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FacetCalls {
    open: OpenCalls<ToolCall>,
}

impl FacetCalls {
    /// Takes the next frame that shows something: the facets that it adds and that belong to a
    /// call, in their order. Linear in the facets, times the calls that wait for a result.
    pub fn push(&mut self, frame: &Frame) -> Vec<FacetCall> {
        self.open.next_frame(frame.source == Source::Agent);
        let mut found = Vec::new();
        for facet in frame.added() {
            self.add(facet, None, &mut found);
        }
        found
    }

    /// What is inside of a call or a result belongs to it.
    fn add(
        &mut self,
        facet: &Facet,
        around: Option<&(Option<ToolCall>, bool)>,
        found: &mut Vec<FacetCall>,
    ) {
        let call = if let Some(call) = facet.call() {
            let made = ToolCall::of(call.name, Action::of_call(&call));
            self.open.call(call.id, call.name, made.clone());
            Some((Some(made), true))
        } else if around.is_none() && facet.is_result() {
            let answered = self.open.answer(facet.call_id(), facet.tool_name());
            let named = || {
                let tool = facet.tool_name()?.into();
                Some(ToolCall { tool, ..ToolCall::default() })
            };
            Some(answered.map_or_else(|| (named(), false), |of| (Some(of.call), true)))
        } else {
            around.cloned()
        };
        if let Some((call, is_paired)) = call.clone() {
            found.push(FacetCall { facet: facet.id.clone(), call, is_paired });
        }
        for child in &facet.children {
            self.add(child, call.as_ref(), found);
        }
    }
}
