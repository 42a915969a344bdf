use std::{collections::HashMap, sync::Arc};

use crate::{
    id::FacetId,
    json::Value,
    veil::{Call, Facet, FacetChange, Frame, OpenCalls, Source},
};

/// How many calls may wait for their results; the oldest are given up first.
const MOST_OPEN: usize = 4_096;
/// The longest subject, in characters.
const LONGEST: usize = 120;
/// The names of others that say what a call is about, the likeliest first.
const SUBJECTS: [&str; 8] =
    ["command", "cmd", "pattern", "query", "url", "description", "prompt", "code"];

/// A tool call: its tool, the path that it names, and what else it is about.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolCall {
    pub(super) tool: Arc<str>,
    pub(super) path: Option<Arc<str>>,
    pub(super) subject: Option<Arc<str>>,
}

/// The calls that facets of a session belong to, as the frames come.
#[derive(Debug)]
pub(super) struct Calls {
    open: OpenCalls<ToolCall>,
    of: HashMap<FacetId, ToolCall>,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self { open: OpenCalls::new(MOST_OPEN), of: HashMap::new() }
    }

    /// Takes the next frame that shows something.
    pub(super) fn push(&mut self, frame: &Frame) {
        self.open.next_frame(frame.source == Source::Agent);
        for op in &frame.ops {
            if let FacetChange::Add(facet) = &op.change {
                self.add(facet, None);
            }
        }
    }

    /// The call that a facet is, or answers.
    pub(super) fn of(&self, facet: &str) -> Option<&ToolCall> {
        self.of.get(facet)
    }

    /// What is inside of a call or a result belongs to it.
    fn add(&mut self, facet: &Facet, around: Option<&ToolCall>) {
        let call = if let Some(call) = facet.call() {
            let path = named(&call, &Call::PATHS);
            let subject = path.clone().or_else(|| named(&call, &SUBJECTS));
            let subject = subject.or_else(|| first(&call));
            let made = ToolCall { tool: call.name.into(), path, subject };
            self.open.call(call.id, call.name, made.clone());
            Some(made)
        } else if around.is_none() && facet.is_result() {
            let answered = self.open.answer(facet.call_id(), facet.tool_name());
            let named = || {
                facet.tool_name().map(|name| ToolCall { tool: name.into(), ..Default::default() })
            };
            answered.map(|answered| answered.call).or_else(named)
        } else {
            around.cloned()
        };
        for child in &facet.children {
            self.add(child, call.as_ref());
        }
        if let Some(call) = call {
            self.of.insert(facet.id.clone(), call);
        }
    }
}

/// The first of these arguments that a call has, in one line.
fn named(call: &Call<'_>, keys: &[&str]) -> Option<Arc<str>> {
    let parameters = call.parameters?;
    keys.iter().find_map(|key| line(parameters.get(key)?))
}

/// The first argument of a call that is a text, in one line.
fn first(call: &Call<'_>) -> Option<Arc<str>> {
    call.parameters?.as_object()?.values().find_map(line)
}

/// The first line of a text. A command may be a list: a shell, its options and the script.
fn line(value: &Value) -> Option<Arc<str>> {
    let text = match value {
        Value::Array(list) => list.last()?.as_str()?,
        value => value.as_str()?,
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST).collect::<String>().into())
}
