//! What tables and JSON say of a facet besides its id: where it stands in its file, and the tool call
//! that it belongs to.

mod archived;
mod recording;

use std::{collections::HashMap, sync::Arc};

use afterimage::{
    id::FacetId,
    session::ViewedFrame,
    steps::{FacetCalls, ToolCall, Touch},
    veil::{Facet, Frame, Origin},
};

pub(crate) use self::{
    archived::ArchivedLabels,
    recording::{RecordingLabels, SessionLabels},
};
use crate::{
    answer::answer,
    moment::clock,
    table::{Cell, Column, plain},
    text::{last_columns, shortened, width},
};

answer! {
    /// Where something stands in its file.
    pub(crate) struct Place {
        /// the line of the record in which it stands, or the number of the element, from one; of a
        /// subagent's session the line of that subagent's file
        line: Option<u64>,
        /// the id of that record, as the source wrote it
        uuid: Option<Arc<str>>,
        /// its time, as the source wrote it
        time: Option<Arc<str>>,
        /// the name of the subagent's file that `line` is of
        subagent_file?: Arc<str>,
    }

    /// A tool call that a facet makes or answers.
    #[derive(Default)]
    pub(crate) struct CallAnswer {
        /// the tool of the call that it is or answers
        tool: Option<Arc<str>>,
        /// the file or folder that the call names
        path: Option<Arc<str>>,
        /// what the call is about, in one line: the path, the command, what it searches for and where,
        /// the files of a patch, else the values of its arguments
        subject: Option<Arc<str>>,
        /// the files that the call touches, those of its command or patch too; the folder of a
        /// search is none. Null where there is no call
        files: Option<Vec<TouchedFile>>,
    }

    /// A file that a call touches.
    pub(crate) struct TouchedFile {
        /// its path
        path: String,
        /// `read`, `changed`, `written`, `deleted`, `moved` or `movedHere` (the file before it is here
        /// now)
        touch: Touch,
    }

    /// Where a facet stands in its file, and the tool call that it makes or answers.
    pub(crate) struct PlacedCall {
        ..place: Place,
        ..call: CallAnswer,
    }
}

/// Where a facet stands in its file, and its tool call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    line: Option<u64>,
    /// The file of the line, where it is a subagent's.
    file: Option<Arc<str>>,
    uuid: Option<Arc<str>>,
    time: Option<Arc<str>>,
    call: Option<ToolCall>,
}

impl Label {
    fn new(origin: Origin<'_>, call: Option<ToolCall>) -> Self {
        let Origin { line, uuid, time, file } = origin;
        let [file, uuid, time] = [file, uuid, time].map(|text| text.map(Arc::from));
        Self { line, file, uuid, time, call }
    }

    /// A place of which nothing but the line is known.
    pub(crate) fn of_line(line: u64) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    pub(crate) fn line(&self) -> Option<u64> {
        self.line
    }

    /// The name of the subagent's file that the line is of.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    pub(crate) fn uuid(&self) -> Option<&str> {
        self.uuid.as_deref()
    }

    /// The tool of the call.
    pub(crate) fn tool(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.tool)
    }

    /// Where it stands in its file.
    pub(crate) fn place(&self) -> Place {
        let [uuid, time, subagent_file] = [&self.uuid, &self.time, &self.file].map(Clone::clone);
        Place { line: self.line, uuid, time, subagent_file }
    }

    /// Its tool call.
    pub(crate) fn call_answer(&self) -> Option<CallAnswer> {
        let ToolCall { tool, path, subject, files } = self.call.clone()?;
        let file =
            |(touch, path): &(Touch, String)| TouchedFile { path: path.clone(), touch: *touch };
        let files = Some(files.iter().map(file).collect());
        Some(CallAnswer { tool: Some(tool), path, subject, files })
    }

    /// Where it stands in its file, and its tool call.
    pub(crate) fn placed_call(&self) -> PlacedCall {
        PlacedCall { place: self.place(), call: self.call_answer().unwrap_or_default() }
    }

    /// The columns of the place in the file.
    pub(crate) fn columns() -> [Column; 2] {
        [Column::text("TIME", 8), Column::number("LINE", 6)]
    }

    /// The cells of these columns.
    pub(crate) fn cells(&self) -> [Cell; 2] {
        let dash = || "–".to_owned();
        let line = self.line.map_or_else(dash, |line| line.to_string());
        [plain(self.time.as_deref().map_or_else(dash, clock)), plain(line)]
    }

    /// What a facet is called in so many columns: its tool or type, what its call is about, and its
    /// id where there is room for it.
    pub(crate) fn name(&self, kind: &str, id: &str, columns: usize) -> String {
        let call = self.call.as_ref();
        named(call, kind, id, columns)
    }

    /// The tool and, as far as it fits, what its call is about.
    pub(crate) fn call(&self, columns: usize) -> String {
        let Some(call) = &self.call else { return String::new() };
        let left = columns.saturating_sub(width(&call.tool) + 2);
        match (&call.path, &call.subject) {
            (Some(path), _) if left >= 8 => format!("{}  {}", call.tool, last_columns(path, left)),
            (None, Some(subject)) if left >= 8 => {
                format!("{}  {}", call.tool, shortened(subject, left))
            }
            _ => call.tool.to_string(),
        }
    }

    /// The id of a facet and, as far as they fit, its tool and what its call is about.
    pub(crate) fn after(&self, id: &str, columns: usize) -> String {
        match self.call(columns.saturating_sub(width(id) + 2)) {
            call if call.is_empty() => id.to_owned(),
            call => format!("{id}  {call}"),
        }
    }

    /// The place and the tool in a few words: `line 24, 21:41:53, Read src/lib.rs`.
    pub(crate) fn words(&self) -> String {
        let line = self.line.map(|line| match self.file() {
            Some(file) => format!("line {line} of {file}"),
            None => format!("line {line}"),
        });
        let call = self.call.as_ref().map(|call| match &call.subject {
            Some(subject) => format!("{} {subject}", call.tool),
            None => call.tool.to_string(),
        });
        let words = [line, self.time.as_deref().map(clock), call];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// What a facet is called in so many columns: the tool of its call or its type, what the call is
/// about, and its id where there is room for it.
pub(crate) fn named(call: Option<&ToolCall>, kind: &str, id: &str, columns: usize) -> String {
    let tool = call.map_or(kind, |call| &*call.tool);
    let Some((call, subject)) = call.and_then(|call| Some((call, call.subject.as_ref()?))) else {
        return format!("{tool}  {id}");
    };
    let left = columns.saturating_sub(width(tool) + 2).max(8);
    // Of a path the end says most.
    let subject = match &call.path {
        Some(path) => last_columns(path, left),
        None => shortened(subject, left).into_owned(),
    };
    let (named, id) = (format!("{tool}  {subject}"), format!("  {id}"));
    let fits = width(&named) + width(&id) <= columns;
    if fits { named + &id } else { named }
}

/// The labels of the facets of a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameLabels {
    frame: Label,
    /// Of those that have one of their own.
    facets: HashMap<FacetId, Label>,
    /// The first call that it makes or answers.
    first_call: Option<ToolCall>,
    /// Whether every result of it answers a call that is known.
    is_paired: bool,
}

impl FrameLabels {
    /// Linear in the facets.
    fn new(frame: &Frame, calls: &mut FacetCalls) -> Self {
        let mut labels = Self::of_hidden(frame);
        if frame.imported.as_ref().is_some_and(|of| of.get("parts").is_some()) {
            for (facet, origin) in frame.facet_origins() {
                labels.place(facet, &Label::new(origin, None));
            }
        }
        for of in calls.push(frame) {
            labels.is_paired &= of.is_paired;
            if labels.first_call.is_none() {
                labels.first_call.clone_from(&of.call);
            }
            let whole = &labels.frame;
            labels.facets.entry(of.facet).or_insert_with(|| whole.clone()).call = of.call;
        }
        labels
    }

    /// Those of a frame that shows nothing.
    fn of_hidden(frame: &Frame) -> Self {
        let frame = Label::new(frame.origin(), None);
        Self { frame, facets: HashMap::new(), first_call: None, is_paired: true }
    }

    /// Notes where a facet stands, and what is inside of it.
    fn place(&mut self, facet: &Facet, label: &Label) {
        self.facets.insert(facet.id.clone(), label.clone());
        facet.children.iter().for_each(|child| self.place(child, label));
    }

    /// The label of a facet of the frame.
    pub(crate) fn of(&self, facet: &str) -> &Label {
        self.facets.get(facet).unwrap_or(&self.frame)
    }

    /// That of the frame, with the first call that it makes or answers.
    pub(crate) fn frame_with_call(&self) -> Label {
        Label { call: self.first_call.clone(), ..self.frame.clone() }
    }

    /// That of the frame.
    pub(crate) fn frame(&self) -> &Label {
        &self.frame
    }
}

/// Labels the frames of a file as they come.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    calls: HashMap<Arc<str>, FacetCalls>,
}

impl Labels {
    /// The labels of the next frame, of those that show something.
    pub(crate) fn next(&mut self, session: &Arc<str>, frame: &Frame) -> FrameLabels {
        let calls = self.calls.entry(Arc::clone(session)).or_default();
        FrameLabels::new(frame, calls)
    }

    /// The labels of the next frame, whatever it shows.
    pub(crate) fn of_seen(&mut self, seen: &ViewedFrame) -> FrameLabels {
        if seen.snapshot.is_empty() {
            return FrameLabels::of_hidden(&seen.frame);
        }
        self.next(&seen.session, &seen.frame)
    }
}
