//! Where the rows of a budget stand: their records, and the tools that their frames call.

use afterimage::{
    id::FrameSeq,
    json::{Object, Value},
    veil::{FacetChange, History},
};
use indexmap::IndexMap;

use crate::{
    json::object,
    labels::{Label, SessionLabels},
    text::width,
};

/// Says of frames of a session where they stand in its file.
pub(super) struct Places<'h> {
    history: &'h History,
    labels: SessionLabels,
}

/// Some frames that follow each other.
pub(super) struct Place {
    /// Where the first stands, with the call that it makes or answers first.
    pub(super) first: Label,
    last: Label,
    /// The tools that they call, the most used first, and how often.
    tools: Vec<(String, u64)>,
}

impl<'h> Places<'h> {
    pub(super) fn of(history: &'h History) -> Self {
        Self { history, labels: SessionLabels::of_history(history) }
    }

    /// The place of the frames from one to another. Linear in them.
    pub(super) fn of_frames(&self, from: FrameSeq, to: FrameSeq) -> Place {
        let frames = self.history.frames();
        let indices = frames.first_from(from)..frames.len();
        let shown = indices.filter_map(|index| frames.get(index));
        let mut tools: IndexMap<String, u64> = IndexMap::new();
        for frame in shown.take_while(|frame| frame.sequence <= to) {
            let added = frame.ops.iter().filter_map(|op| match &op.change {
                FacetChange::Add(facet) => facet.call(),
                _ => None,
            });
            added.for_each(|call| *tools.entry(call.name.to_owned()).or_default() += 1);
        }
        tools.sort_by(|_, one, _, other| other.cmp(one));
        let [first, last] = [from, to].map(|frame| self.labels.of_frame(frame));
        Place { first, last, tools: tools.into_iter().collect() }
    }

    /// The place of a frame: of one that calls no tool with the call that it answers.
    pub(super) fn of_frame(&self, frame: FrameSeq) -> Place {
        self.of_frames(frame, frame)
    }
}

impl Place {
    /// Adds the place of the first frame, `last` with that of the last, and `tools`.
    pub(super) fn put_range(&self, json: &mut Object) {
        self.first.put_place(json);
        let mut last = Object::new();
        self.last.put_place(&mut last);
        json.insert("last".to_owned(), last.into());
        let tools = self
            .tools
            .iter()
            .map(|(tool, calls)| Value::from(object! { "tool": tool.as_str(), "calls": *calls }));
        json.insert("tools".to_owned(), tools.collect());
    }

    /// The id of the row and, as far as they fit, the tools.
    pub(super) fn after(&self, id: &str, columns: usize) -> String {
        if self.tools.is_empty() {
            return self.first.after(id, columns);
        }
        let mut row = format!("{id} ");
        for (at, (tool, calls)) in self.tools.iter().enumerate() {
            let times = if *calls > 1 { format!(" ×{calls}") } else { String::new() };
            let comma = if at + 1 < self.tools.len() { "," } else { "" };
            let next = format!(" {tool}{times}{comma}");
            if width(&row) + width(&next) > columns {
                // One tool is named, whatever its name takes.
                return if at == 0 { row + &next } else { row + " …" };
            }
            row.push_str(&next);
        }
        row
    }
}
