//! Where the rows of a budget stand: their records, and the tools that their frames call.

use afterimage::{
    id::FrameSeq,
    veil::{Facet, History},
};
use indexmap::IndexMap;

use crate::{
    answer::answer,
    labels::{self, Label, SessionLabels},
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
            let calls = frame.added().filter_map(Facet::call);
            calls.for_each(|call| *tools.entry(call.name.to_owned()).or_default() += 1);
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

answer! {
    /// Where frames that follow each other stand.
    pub(crate) struct RangePlace {
        ..first: labels::Place,
        /// where the last of these frames stands
        last: labels::Place,
        /// the tools that these frames call, the most used first
        tools: Vec<CalledTool>,
    }

    /// A tool that frames call.
    pub(crate) struct CalledTool {
        /// its name
        tool: String,
        /// how often they call it
        calls: u64,
    }
}

impl Place {
    /// Where the frames stand, and the tools that they call.
    pub(super) fn answer(&self) -> RangePlace {
        let called =
            |(tool, calls): &(String, u64)| CalledTool { tool: tool.clone(), calls: *calls };
        RangePlace {
            first: self.first.place(),
            last: self.last.place(),
            tools: self.tools.iter().map(called).collect(),
        }
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
