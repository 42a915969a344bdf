use std::collections::BTreeMap;

use super::{
    action::{self, Action},
    chronicle::Chronicle,
    open_result::OpenResult,
    outcome::{self, failure},
    plan::{self, Item},
    sentence,
    shell::Touch,
    speaker::{Speaker, command_in, may_be_words, speaker_of},
};
use crate::{
    compress::Passage,
    id::{ChunkType, FrameSeq, Role},
    snapshot::PartRef,
    veil::Source,
};

/// So many rules, files and errors are remembered; of more the oldest are forgotten.
const MOST_RULES: usize = 200;
const MOST_FILES: usize = 2_000;
const MOST_ERRORS: usize = 20;
const MOST_WAITING: usize = 64;

/// What of the agent's last words is remembered, in bytes.
const LAST_WORDS: usize = 1_200;

/// What the tool is called by which commands in an agent's text are run.
const SHELL: &str = "shell";

/// Where a session stands, read from what was rendered, without a model: the rules of the user,
/// what failed last, the plan, the files, and what the agent said last.
///
/// It is a fold: [`Ledger::read`] takes the frames in order, each once. Files, commands, plans and
/// errors are told by the shape of arguments and results, not by the names of tools. It is plain
/// data, so it can be saved and go on later.
///
/// ```
/// use std::sync::Arc;
///
/// use afterimage::{
///     compress::{Ledger, Passage},
///     id::{FrameSeq, Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Move berth 7. Never call the harbour at night.", ChunkOptions::new());
/// let (seq, snapshot) = (FrameSeq::new(3), Arc::new(builder.build(Millis::new(0))));
/// let mut ledger = Ledger::new();
/// ledger.read(&Passage { from: seq, to: seq, role: Role::User, source: None, snapshot });
/// assert_eq!(
///     ledger.text(100, &Chars4).as_deref(),
///     Some("Rules of the user:\n- \"Never call the harbour at night.\" [3]")
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ledger {
    /// The last frame that was read.
    pub(super) last: Option<FrameSeq>,
    /// The frame of the user's first words, and that of the last.
    pub(super) first_words: Option<FrameSeq>,
    pub(super) last_words: Option<FrameSeq>,
    pub(super) rules: Vec<Noted>,
    pub(super) files: BTreeMap<String, File>,
    /// What failed and was not done since, by what it was about.
    pub(super) errors: Vec<Failure>,
    /// The last failure, open or not.
    pub(super) last_error: Option<Failure>,
    pub(super) plan: Vec<Item>,
    pub(super) plan_at: Option<FrameSeq>,
    pub(super) said: Option<Noted>,
    /// The calls that wait for their results, the oldest first.
    waiting: Vec<Waiting>,
    /// The file that a call named last.
    open_file: Option<String>,
    /// Whether a call was seen: then commands in texts are none.
    pub(super) has_calls: bool,
    /// How often a file was touched.
    touched: u64,
}

/// A text with the frame that it is from.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Noted {
    pub(super) frame: FrameSeq,
    pub(super) text: String,
}

/// What happened to a file.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct File {
    pub(super) read: u32,
    pub(super) changed: u32,
    pub(super) is_created: bool,
    pub(super) is_deleted: bool,
    pub(super) last: FrameSeq,
    /// The order in which files were touched last.
    pub(super) order: u64,
}

impl File {
    /// Whether the session left it other than it was.
    pub(super) fn is_changed(&self) -> bool {
        self.changed > 0 || self.is_created || self.is_deleted
    }
}

/// What failed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failure {
    pub(super) frame: FrameSeq,
    /// `tool(subject)`
    pub(super) call: String,
    pub(super) key: String,
    pub(super) text: String,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    id: Option<String>,
    frame: FrameSeq,
    tool: String,
    subject: String,
    key: String,
    files: Vec<(Touched, String)>,
    /// Its place in the chronicle that was written when it was read.
    #[serde(skip)]
    place: Option<usize>,
}

/// As [`Touch`], to be saved.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
enum Touched {
    Read,
    Changed,
    Written,
    Deleted,
}

impl From<Touch> for Touched {
    fn from(touch: Touch) -> Self {
        match touch {
            Touch::Read => Self::Read,
            Touch::Changed => Self::Changed,
            Touch::Written => Self::Written,
            Touch::Deleted => Self::Deleted,
        }
    }
}

impl Ledger {
    /// A ledger of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last frame that was read.
    pub fn last_frame(&self) -> Option<FrameSeq> {
        self.last
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.files.is_empty()
            && self.last_error.is_none()
            && self.plan.is_empty()
            && self.said.is_none()
    }

    /// The rules and preferences of the user, the oldest first, each with its frame.
    pub fn rules(&self) -> impl Iterator<Item = (FrameSeq, &str)> {
        self.rules.iter().map(|rule| (rule.frame, rule.text.as_str()))
    }

    /// The files that were changed, and then those that were read, each with the frame that touched
    /// it last: the last one first.
    pub fn files(&self) -> impl Iterator<Item = (FrameSeq, &str)> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| (!file.is_changed(), std::cmp::Reverse(file.order)));
        files.into_iter().map(|(path, file)| (file.last, path.as_str()))
    }

    /// Reads the next frame. What was read before is passed over. Runs in time linear in the text.
    pub fn read(&mut self, passage: &Passage) {
        if self.last.is_none_or(|last| passage.to > last) {
            self.read_into(passage, None);
        }
    }

    /// As [`Ledger::read`], with a chronicle that takes what happened.
    pub(crate) fn read_into(&mut self, passage: &Passage, mut chronicle: Option<&mut Chronicle>) {
        self.last = Some(passage.to);
        if let Some(chronicle) = chronicle.as_deref_mut() {
            chronicle.next_message();
        }
        let mut open: Option<OpenResult<'_>> = None;
        for chunk in passage.snapshot.chunks() {
            if chunk.chunk_type() == Some(ChunkType::FORMATTING.as_str()) {
                continue;
            }
            if let Some(result) = open.as_mut().filter(|result| result.holds(chunk)) {
                result.take(chunk);
                continue;
            }
            if let Some(result) = open.take() {
                self.result(passage.from, result.id, &result.text, chronicle.as_deref_mut());
            }
            let text = chunk.content();
            let role = chunk.role().unwrap_or(passage.role);
            match chunk.part() {
                PartRef::Call { id, name } => {
                    self.has_calls = true;
                    let action = action::read(name, text);
                    self.call(passage.from, id, name, action, chronicle.as_deref_mut());
                }
                PartRef::Result { id } => open = Some(OpenResult::new(id, chunk)),
                PartRef::Text if may_be_words(chunk.chunk_type()) && !text.trim().is_empty() => {
                    let of_world = passage.source == Some(Source::Environment);
                    if !(of_world && role == Role::User) {
                        self.says(passage.from, role, text, chronicle.as_deref_mut());
                    } else if !self.has_calls && !self.waiting.is_empty() {
                        self.result(passage.from, None, text, chronicle.as_deref_mut());
                    }
                }
                _ => {}
            }
        }
        if let Some(result) = open {
            self.result(passage.from, result.id, &result.text, chronicle);
        }
    }

    pub(super) fn says(
        &mut self,
        frame: FrameSeq,
        role: Role,
        text: &str,
        mut chronicle: Option<&mut Chronicle>,
    ) {
        // In a log without calls the agent's commands stand in its text, and what a program
        // answers in the user's messages.
        let waits_in_text = !self.has_calls && !self.waiting.is_empty();
        let speaker = speaker_of(role, text, waits_in_text);
        match speaker {
            Speaker::User => {
                self.first_words.get_or_insert(frame);
                self.last_words = Some(frame);
                self.take_rules(frame, text);
            }
            Speaker::Agent => {
                let end = (0..=LAST_WORDS.min(text.len())).rev().find_map(|at| text.get(..at));
                let text = end.unwrap_or_default().trim().to_owned();
                self.said = Some(Noted { frame, text });
            }
            Speaker::Program | Speaker::Operator => {}
        }
        if let Some(chronicle) = chronicle.as_deref_mut() {
            chronicle.says(frame, speaker, text);
        }
        if speaker == Speaker::Program && waits_in_text {
            self.result(frame, None, text, chronicle);
            return;
        }
        if matches!(speaker, Speaker::Agent | Speaker::User)
            && let Some(plan) = plan::of_markdown(text)
        {
            self.take_plan(frame, plan);
        }
        if speaker == Speaker::Agent
            && !self.has_calls
            && let Some(command) = command_in(text)
        {
            self.waiting.clear();
            self.call(frame, None, SHELL, action::of_command(command), chronicle);
        }
    }

    /// Notes the rules of a text; a rule about the same replaces an earlier one.
    fn take_rules(&mut self, frame: FrameSeq, text: &str) {
        for rule in sentence::rules(text) {
            let rule = outcome::flat(&sentence::with_code(text, rule));
            self.rules.retain(|known| {
                known.text != rule
                    && !(known.frame < frame && sentence::replaces(&rule, &known.text))
            });
            self.rules.push(Noted { frame, text: rule });
        }
        let over = self.rules.len().saturating_sub(MOST_RULES);
        self.rules.drain(..over);
    }

    /// Notes a plan. One that names none of the steps before is another list, and replaces it too.
    fn take_plan(&mut self, frame: FrameSeq, plan: Vec<Item>) {
        (self.plan, self.plan_at) = (plan, Some(frame));
    }

    pub(super) fn call(
        &mut self,
        frame: FrameSeq,
        id: Option<&str>,
        tool: &str,
        action: Action,
        chronicle: Option<&mut Chronicle>,
    ) {
        let mut action = action;
        if action.edits_open_file
            && let Some(open) = self.open_file.clone()
        {
            action.subject = if action.subject.is_empty() {
                open.clone()
            } else {
                format!("{open}; {}", action.subject)
            };
            action.key.clone_from(&open);
            action.touches.push((Touch::Changed, open));
        }
        if let Some((_, path)) = action.touches.last() {
            self.open_file = Some(path.clone());
        }
        if let Some(plan) = action.plan {
            self.take_plan(frame, plan);
        }
        let place = chronicle.map(|chronicle| chronicle.call(frame, tool, &action.subject));
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.remove(0);
        }
        let files = action.touches.into_iter().map(|(touch, path)| (touch.into(), path));
        self.waiting.push(Waiting {
            id: id.filter(|id| !id.is_empty()).map(str::to_owned),
            frame,
            tool: tool.to_owned(),
            subject: action.subject,
            key: action.key,
            files: files.collect(),
            place,
        });
    }

    pub(super) fn result(
        &mut self,
        frame: FrameSeq,
        id: Option<&str>,
        text: &str,
        chronicle: Option<&mut Chronicle>,
    ) {
        let id = id.filter(|id| !id.is_empty());
        let named = id.and_then(|id| {
            self.waiting.iter().rposition(|waiting| waiting.id.as_deref() == Some(id))
        });
        let unnamed =
            || self.waiting.iter().position(|waiting| id.is_none() || waiting.id.is_none());
        let Some(at) = named.or_else(unnamed) else { return };
        let call = self.waiting.remove(at);
        let is_failed = outcome::is_failure(text);
        if let (Some(chronicle), Some(place)) = (chronicle, call.place) {
            chronicle.result(place, text, is_failed);
        }
        let done = (call.tool, call.key);
        self.errors.retain(|error| {
            let is_same = error.call.starts_with(&format!("{}(", done.0)) && error.key == done.1;
            // What failed first and works now is over; so is what failed before in the same way.
            let is_over = !is_failed && !done.1.is_empty() && error.key == done.1;
            !is_same && !is_over
        });
        if is_failed {
            let subject = call.subject;
            let failed = Failure {
                frame,
                call: format!("{}({subject})", done.0),
                key: done.1,
                text: failure(text),
            };
            self.last_error = Some(failed.clone());
            self.errors.push(failed);
            let over = self.errors.len().saturating_sub(MOST_ERRORS);
            self.errors.drain(..over);
            return;
        }
        for (touch, path) in call.files {
            self.touch(touch, path, call.frame);
        }
    }

    fn touch(&mut self, touch: Touched, path: String, frame: FrameSeq) {
        self.touched += 1;
        let order = self.touched;
        let file = self.files.entry(path).or_default();
        (file.last, file.order) = (frame, order);
        match touch {
            Touched::Read => file.read += 1,
            Touched::Changed => file.changed += 1,
            Touched::Written => {
                let is_new = file.read == 0 && file.changed == 0 && !file.is_deleted;
                file.is_created |= is_new;
                file.is_deleted = false;
                file.changed += u32::from(!is_new);
            }
            Touched::Deleted => file.is_deleted = true,
        }
        if self.files.len() > MOST_FILES {
            let oldest = self.files.iter().min_by_key(|(_, file)| (file.is_changed(), file.order));
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                self.files.remove(&path);
            }
        }
    }
}
