//! The results of tools that a context holds, with the calls that they answer.

use std::{collections::HashMap, sync::Arc};

use super::{ContextWindow, change::Change, shrink::tokens_of};
use crate::{
    hud::RenderedContext,
    id::{FacetId, FrameSeq},
    snapshot::{ChunkRef, FrameSnapshot, PartRef},
    steps::{Action, Asked, Class, FileRead, LineRange, ToolCall, last_command},
    veil::{CallOutcome, Facet, Frame, History, Pair, calls_and_results},
};

/// Results of fewer tokens stay: a line would hardly say less.
const LEAST_TOKENS: u64 = 200;

/// A text of more bytes is more than a note.
const NOTE: usize = 400;

/// What runs a command that stands in the agent's text.
const SHELL: &str = "shell";

/// How much of a frame the context shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visibility {
    /// A line for each result.
    Line,
    /// All but the middle.
    Ends,
    Whole,
}

/// A frame with results that the context holds.
pub(super) struct LiveResults {
    pub(super) frame: FrameSeq,
    /// Its index in the history.
    pub(super) at: usize,
    /// The tokens that it takes now.
    pub(super) tokens: u64,
    pub(super) visibility: Visibility,
    pub(super) may_go: bool,
    pub(super) answers: Vec<AnsweredCall>,
    pub(super) text: Arc<str>,
}

/// A result with the call that it answers.
pub(super) struct AnsweredCall {
    /// The facet of the result. `None` where it is the whole frame, in a log without calls.
    result: Option<FacetId>,
    pub(super) class: Class,
    pub(super) call: Option<ToolCall>,
    /// Tool and arguments: what two calls share that ask for the same.
    pub(super) asks: Option<String>,
    /// The file that it reads.
    pub(super) read: Option<FileRead>,
    /// The lines of it that the result shows, where these can be told.
    pub(super) lines: Option<LineRange>,
    /// Whether the result says that what an earlier one showed is still so, and does not show it.
    pub(super) is_unchanged: bool,
}

impl LiveResults {
    /// The answer that a facet of the frame is.
    pub(super) fn answer_in(&self, facet: Option<&str>) -> Option<&AnsweredCall> {
        self.answers.iter().find(|answer| match &answer.result {
            Some(result) => Some(result.as_str()) == facet,
            None => true,
        })
    }
}

impl ContextWindow {
    /// The frames with results that the context holds, in order. Costs time in these.
    pub(super) fn live_results(
        &self,
        history: &History,
        context: &RenderedContext,
    ) -> Vec<LiveResults> {
        let mut held: Vec<FrameSeq> = context.frame_to_message().map(|(frame, _)| frame).collect();
        held.extend(self.changes.values().filter_map(Change::shortened).map(|what| what.frame));
        held.sort_unstable();
        held.dedup();
        let mut frames = FramesLookedAt { history, frames: HashMap::new() };
        let results = held.into_iter().filter_map(|frame| {
            let (visibility, shortened) = match self.change_of(frame) {
                // Dropped with others.
                Some(Change::Dropped(_)) => return None,
                Some(Change::Shortened { what, .. }) if what.is_masked() => {
                    (Visibility::Line, Some(what.tokens))
                }
                Some(Change::Shortened { what, .. }) => (Visibility::Ends, Some(what.tokens)),
                None => (Visibility::Whole, None),
            };
            let snapshot = self.shown(history, frame)?;
            let steps = self.transform.steps();
            let at = steps.binary_search_by_key(&frame, |step| step.sequence).ok()?;
            if !self.holds_results(at, &snapshot) {
                return None;
            }
            let tokens = shortened.unwrap_or_else(|| tokens_of(&snapshot));
            let may_go =
                visibility > Visibility::Line && tokens >= LEAST_TOKENS && !steps.get(at)?.stays;
            let answers = match self.transform.command_answered(at) {
                Some(command) => vec![AnsweredCall::in_text(history, command, snapshot.text())],
                None => frames.answers_in(frame),
            };
            let text = Arc::from(snapshot.text());
            Some(LiveResults { frame, at, tokens, visibility, may_go, answers, text })
        });
        results.collect()
    }

    /// Whether the frame with this index holds results of tools: parts of it are, or, in a log
    /// without calls, it is a program's answer to a command in the agent's text.
    pub(super) fn holds_results(&self, at: usize, snapshot: &FrameSnapshot) -> bool {
        let is_result = |chunk: ChunkRef<'_>| matches!(chunk.part(), PartRef::Result { .. });
        self.transform.command_answered(at).is_some() || snapshot.chunks().any(is_result)
    }
}

/// The frames of a history whose parts were looked at.
struct FramesLookedAt<'h> {
    history: &'h History,
    frames: HashMap<FrameSeq, Arc<Frame>>,
}

impl FramesLookedAt<'_> {
    /// The results in a frame, each with its call.
    fn answers_in(&mut self, frame: FrameSeq) -> Vec<AnsweredCall> {
        let pairs = self.history.pairs().in_frame(frame).iter();
        pairs.filter_map(|pair| self.answer(pair)).collect()
    }

    fn answer(&mut self, pair: &Pair) -> Option<AnsweredCall> {
        let result = self.frame(pair.result.frame)?;
        let result = part(&result, pair.result.number)?;
        let text = text_of(result);
        let call = self.frame(pair.call.frame);
        let call = call.as_deref().and_then(|frame| part(frame, pair.call.number)?.call());
        let asks = call.as_ref().map(|call| {
            let parameters = call.parameters.map(ToString::to_string).unwrap_or_default();
            format!("{} {}{parameters}", call.name, call.arguments.unwrap_or_default())
        });
        let made = call.map(|call| {
            let action = Action::of_call(&call);
            (call.name, FileRead::of_call(&call, &action), action)
        });
        let answer = AnsweredCall::new(made, asks, text, pair.outcome);
        Some(AnsweredCall { result: Some(result.id.clone()), ..answer })
    }

    fn frame(&mut self, frame: FrameSeq) -> Option<Arc<Frame>> {
        if let Some(found) = self.frames.get(&frame) {
            return Some(Arc::clone(found));
        }
        let found = self.history.get(frame)?;
        self.frames.insert(frame, Arc::clone(&found));
        Some(found)
    }
}

/// Of each result in a frame that answers a call, what became of the call: for the tests that hold
/// rooms to one answer.
#[cfg(all(test, feature = "record"))]
pub(crate) fn classes_of_results(history: &History, frame: FrameSeq) -> Vec<Class> {
    let mut frames = FramesLookedAt { history, frames: HashMap::new() };
    frames.answers_in(frame).iter().map(|answer| answer.class).collect()
}

impl AnsweredCall {
    fn new(
        made: Option<(&str, Option<FileRead>, Action)>,
        asks: Option<String>,
        text: &str,
        stated: CallOutcome,
    ) -> Self {
        let asked = made.as_ref();
        let asked = asked.map(|(tool, _, of)| Asked::new(tool, &of.key, &of.touches));
        let (result, class) = (None, Class::of(stated, text, asked));
        let made = made.map(|(tool, read, action)| (ToolCall::of(tool, action), read));
        let (call, read) = made.unzip();
        let read = read.flatten();
        let lines = read.as_ref().and_then(|read| read.shown(text));
        let is_unchanged = read.is_some() && text.len() < NOTE && text.contains("unchanged");
        Self { result, class, call, asks, read, lines, is_unchanged }
    }

    /// What a program answered to the command in the agent's text that the frame with this index
    /// holds.
    fn in_text(history: &History, command: usize, text: &str) -> Self {
        let asked = history.frames().snapshot(command);
        let command = asked.as_deref().and_then(last_command);
        let made = command
            .map(|command| (SHELL, FileRead::of_command(command), Action::of_command(command)));
        let asks = command.filter(|command| names_what(command)).map(|command| {
            // The same command is about another file while another one is open in an editor.
            let heading = text.lines().next().filter(|line| line.starts_with('['));
            format!("{SHELL} {command}\n{}", heading.unwrap_or_default())
        });
        Self::new(made, asks, text, CallOutcome::Unstated)
    }
}

/// Whether a command names what it is about. One word (`scroll_down`) goes on from what is shown.
fn names_what(command: &str) -> bool {
    command.split_whitespace().nth(1).is_some()
}

/// The text of a result: its own, or that of the first facet inside of it that has one.
fn text_of(facet: &Facet) -> &str {
    let inside = || facet.shown_children().map(text_of).find(|text| !text.is_empty());
    Some(&*facet.content).filter(|text| !text.is_empty()).or_else(inside).unwrap_or_default()
}

/// A call or a result in a frame, by [`PartPlace::number`](crate::veil::PartPlace).
fn part(frame: &Frame, number: u32) -> Option<&Facet> {
    calls_and_results(frame.added()).get(number as usize).copied()
}
