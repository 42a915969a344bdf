//! Spans of afterimage's own that hold only what is new since the request before.

use super::{any_value::structured, span::SpanRecord};
use crate::json::{Object, ObjectExt, Value};

impl SpanRecord {
    /// Gives a span of afterimage's that holds only what is new the rest of its request, from that
    /// of the span before in its conversation; that of this span is known then.
    pub(super) fn complete(&mut self, known: &mut Object, notes: &mut Vec<String>) {
        const NUMBER: &str = "afterimage.request.number";
        const PARTS: [&str; 3] =
            ["gen_ai.input.messages", "gen_ai.tool.definitions", "gen_ai.system_instructions"];
        let figure = |key: &str| self.attributes.get(key).and_then(Value::as_u64);
        let Some(same) = figure("afterimage.request.messages_before") else { return };
        let from = figure("afterimage.request.goes_on_from").filter(|from| *from > 0);
        if from != known.get(NUMBER).and_then(Value::as_u64) {
            let number = from.unwrap_or_default();
            notes
                .push(format!("the span of request {number} is missing: this one goes on from it"));
        }
        let [input, tools, system] = PARTS;
        let list = |of: &Object| match of.get(input).map(structured) {
            Some(Ok(Value::Array(list))) => list,
            _ => Vec::new(),
        };
        let before = list(known).into_iter().take(usize::try_from(same).unwrap_or(usize::MAX));
        let all: Value = before.chain(list(&self.attributes)).collect();
        self.attributes.put(input, all);
        for (key, same) in
            [(tools, "afterimage.request.same_tools"), (system, "afterimage.request.same_system")]
        {
            if self.attributes.get(same) == Some(&Value::Bool(true)) {
                self.attributes.put_some(key, known.get(key).cloned());
            }
        }
        let parts = PARTS.into_iter().chain([NUMBER]);
        *known = parts
            .filter_map(|key| Some((key.to_owned(), self.attributes.get(key)?.clone())))
            .collect();
    }
}
