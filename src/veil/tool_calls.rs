//! Which tool call a facet belongs to, and what the call is about.

use std::sync::Arc;

use super::{Call, Facet, Frame, OpenCalls, Source};
use crate::{id::FacetId, json::Value};

/// The longest path, in characters: systems have none that is longer.
const LONGEST_PATH: usize = 4_096;
/// The longest subject that is no path.
const LONGEST: usize = 120;
/// The names of others that say what a call is about, the likeliest first.
const SUBJECTS: [&str; 8] =
    ["command", "cmd", "pattern", "query", "url", "description", "prompt", "code"];

/// A tool call: its tool, the path that it names, and what else it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The file or folder that the call names.
    pub path: Option<Arc<str>>,
    /// What the call is about, in one line: its path, or the first 120 characters of its command, of
    /// its query, else of its first argument that is a text.
    pub subject: Option<Arc<str>>,
}

impl ToolCall {
    /// What a call says of itself.
    pub(crate) fn of(call: &Call<'_>) -> Self {
        let path = call.parameters.and_then(Call::path_in);
        let path = path.and_then(|path| one_line(path, LONGEST_PATH));
        let subject = path.clone().or_else(|| named(call, &SUBJECTS, LONGEST));
        let subject = subject.or_else(|| first(call));
        Self { tool: call.name.into(), path, subject }
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
/// [`Pairs`](super::Pairs).
///
/// ```
/// use afterimage::{json, veil::{Facet, FacetCalls, FacetOp, Frame, Source}};
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
            let made = ToolCall::of(&call);
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

/// The first of these arguments that a call has, in one line.
fn named(call: &Call<'_>, keys: &[&str], most: usize) -> Option<Arc<str>> {
    let parameters = call.parameters?;
    keys.iter().find_map(|key| line(parameters.get(key)?, most))
}

/// The first argument of a call that is a text, in one line.
fn first(call: &Call<'_>) -> Option<Arc<str>> {
    call.parameters?.as_object()?.values().find_map(|value| line(value, LONGEST))
}

/// The first line of a text. A command may be a list: a shell, its options and the script.
fn line(value: &Value, most: usize) -> Option<Arc<str>> {
    let text = match value {
        Value::Array(list) => list.last()?.as_str()?,
        value => value.as_str()?,
    };
    one_line(text, most)
}

fn one_line(text: &str, most: usize) -> Option<Arc<str>> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(most).collect::<String>().into())
}
