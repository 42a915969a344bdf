use std::collections::BTreeMap;

use super::{
    chronicle::Chronicle,
    decisions::Decisions,
    excerpt::ends,
    obstacle,
    open_call::{Failure, Running, Waiting},
    open_result::OpenResult,
    trailer::Trailer,
};
use crate::{
    id::{ChunkType, FrameSeq, Role},
    snapshot::PartRef,
    steps::{
        Action, Demands, Heard, Item, OwnWords, Passage, Speaker, TextLog, WordsTable,
        may_be_words, plan,
    },
    text::{quote::LEFT_OUT, shortened},
    veil::{CallOutcome, OpenCalls, Source},
};

/// So many of what the agent found missing are remembered, and so many bytes of each.
const MOST_OBSTACLES: usize = 6;
const OBSTACLE: usize = 240;

/// So many decisions are remembered.
const MOST_DECISIONS: usize = 32;

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
/// ledger.read(&Passage::new(seq, seq, Role::User, snapshot));
/// assert_eq!(
///     ledger.text(100, &Chars4).as_deref(),
///     Some("Asked first, in part:\n- \"Never call the harbour at night.\" [3]")
/// );
/// ```
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Ledger {
    /// It was read with these words: one of others is not loaded.
    words: WordsTable,
    /// The last frame that was read.
    pub(super) last: Option<FrameSeq>,
    /// The frame of the user's first words, and that of the last.
    pub(super) first_words: Option<FrameSeq>,
    pub(super) last_words: Option<FrameSeq>,
    pub(super) rules: Demands,
    /// The same as they were when the agent first spoke, while it is not certain who speaks in the
    /// user's place since.
    #[serde(default, skip_serializing_if = "Demands::is_empty")]
    pub(super) asked: Demands,
    /// The frame with which the agent first spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_turn: Option<FrameSeq>,
    pub(super) files: BTreeMap<String, File>,
    /// What failed and was not done since, by what it was about.
    pub(super) errors: Vec<Failure>,
    /// The last failure, open or not.
    pub(super) last_error: Option<Failure>,
    pub(super) plan: Vec<Item>,
    pub(super) plan_at: Option<FrameSeq>,
    /// Whether a tool for plans wrote it down: no text and no document replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_plan_tool: bool,
    /// Whether that was a tool that agents have for it: no other tool replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_plan_known: bool,
    pub(super) said: Option<Noted>,
    /// What the agent found missing, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) obstacles: Vec<Noted>,
    /// What the agent decided or found.
    #[serde(default, skip_serializing_if = "Decisions::is_empty")]
    pub(super) decisions: Decisions,
    /// The frame of the last call that changed a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed_at: Option<FrameSeq>,
    /// The calls that wait for their results.
    pub(super) waiting: OpenCalls<Waiting>,
    /// The file that a call named last.
    pub(super) open_file: Option<String>,
    /// Work that went on when its call was answered, the oldest first.
    pub(super) running: Vec<Running>,
    /// What stands behind each output of a tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) trailers: BTreeMap<String, Trailer>,
    /// Who speaks.
    log: TextLog,
    /// The command in the agent's last text, where it is not sure that it is one.
    command: Option<Noted>,
    /// How often a file was touched.
    pub(super) touched: u64,
}

/// A text with the frame that it is from.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Noted {
    pub(super) frame: FrameSeq,
    pub(super) text: String,
}

impl Noted {
    pub(super) fn new(frame: FrameSeq, text: impl Into<String>) -> Self {
        Self { frame, text: text.into() }
    }
}

/// What happened to a file.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    pub(super) read: u32,
    pub(super) changed: u32,
    pub(super) is_created: bool,
    pub(super) is_deleted: bool,
    pub(super) last: FrameSeq,
    /// The frame that changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed_at: Option<FrameSeq>,
    /// Where it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) moved_to: Option<String>,
    /// Where it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) moved_from: Option<String>,
    /// The order in which files were touched last.
    pub(super) order: u64,
}

impl File {
    /// Whether the session left it other than it was.
    pub(super) fn is_changed(&self) -> bool {
        self.changed > 0
            || self.is_created
            || self.is_deleted
            || self.moved_to.is_some()
            || self.moved_from.is_some()
    }

    /// What happened to it, in order of time.
    pub(super) fn history(&self) -> String {
        let times = match self.changed {
            0 => None,
            1 => Some("changed".to_owned()),
            count => Some(format!("changed ×{count}")),
        };
        let moved = self.moved_from.as_ref().map(|from| format!("moved from {from}"));
        let mut did: Vec<String> = moved.into_iter().collect();
        did.extend(self.is_created.then(|| "created".to_owned()));
        did.extend(times);
        let then = if did.is_empty() { "" } else { "then " };
        did.extend(self.moved_to.as_ref().map(|to| format!("{then}moved to {to}")));
        did.extend((self.is_deleted).then(|| format!("{then}deleted")));
        did.join(", ")
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
            && self.obstacles.is_empty()
            && self.decisions.is_empty()
            && self.said.is_none()
    }

    /// The rules and preferences of the user, the oldest first, each with its frame: none while it is
    /// not certain that the user speaks, since no call was seen. O(n) for all of them.
    pub fn rules(&self) -> impl Iterator<Item = (FrameSeq, &str)> {
        let rules = self.rules.iter().filter(|_| self.is_certain());
        rules.map(|rule| (rule.frame, rule.text.as_str()))
    }

    /// Whether it is certain whose words stand in the user's place.
    pub(crate) fn is_certain(&self) -> bool {
        self.log.is_certain()
    }

    /// Whether the words of a frame are what was asked: they are certainly the user's, or stand before
    /// the agent spoke.
    pub(crate) fn is_asked(&self, frame: FrameSeq) -> bool {
        self.is_certain() || self.first_turn.is_none_or(|turn| frame < turn)
    }

    /// What was demanded: the rules of the user, or, where it is not certain who speaks, what of the
    /// task would be some.
    pub(super) fn demands(&self) -> &Demands {
        if self.is_certain() || !self.log.has_spoken() { &self.rules } else { &self.asked }
    }

    /// What a summary must not lose of what was demanded.
    pub(crate) fn demanded(&self) -> impl Iterator<Item = &str> {
        self.demands().iter().map(|demand| demand.text.as_str())
    }

    /// The files that were changed, and then those that were read, each with the frame that touched
    /// it last: the last one first. O(n) for all of them.
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
        if !passage.snapshot.is_empty() {
            self.waiting.next_frame(match &passage.source {
                Some(source) => *source == Source::Agent,
                None => passage.role == Role::Assistant,
            });
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
                let said = (&*result.text, result.stated(passage));
                self.result(passage.from, (result.id, None), said, chronicle.as_deref_mut());
            }
            let text = chunk.content();
            let role = chunk.role().unwrap_or(passage.role);
            match chunk.part() {
                PartRef::Call { id, name } => {
                    self.sees_call(passage.from);
                    let action = Action::of_text(name, text);
                    self.call(passage.from, id, name, action, chronicle.as_deref_mut());
                }
                PartRef::Result { id } => open = Some(OpenResult::new(id, chunk)),
                PartRef::Text if may_be_words(chunk.chunk_type()) && !text.trim().is_empty() => {
                    let of = (passage.source.as_ref(), role);
                    self.says(passage.from, of, text, chronicle.as_deref_mut());
                }
                _ => {}
            }
        }
        if let Some(result) = open {
            let said = (&*result.text, result.stated(passage));
            self.result(passage.from, (result.id, None), said, chronicle);
        }
    }

    /// Notes that commands do not stand in texts. Where programs answered in texts before, what they
    /// may have said counts no more.
    pub(crate) fn sees_call(&mut self, frame: FrameSeq) {
        self.first_turn.get_or_insert(frame);
        if self.log.is_sure() {
            self.rules = std::mem::take(&mut self.asked);
        }
        self.asked = Demands::default();
        self.log.sees_call();
        self.command = None;
    }

    /// Takes a text that is no call, result or thought: where it is from, as far as that is known,
    /// and the role in which it is said.
    pub(super) fn says(
        &mut self,
        frame: FrameSeq,
        (source, role): (Option<&Source>, Role),
        text: &str,
        mut chronicle: Option<&mut Chronicle>,
    ) {
        if role == Role::Assistant && !self.log.has_spoken() {
            self.first_turn = Some(frame);
            self.asked.clone_from(&self.rules);
        }
        let Heard { speaker, is_answer, behind } = self.log.hears(source, role, text);
        // What stands beside the user's words in a message may be a file.
        let is_beside = speaker == Speaker::User && self.last_words == Some(frame);
        let own = (speaker == Speaker::User && !is_beside).then(|| OwnWords::of(text));
        if let Some(own) = &own {
            self.user_says(frame, text, own, chronicle.is_some());
            self.command = None;
        }
        match speaker {
            Speaker::Agent => {
                // A chronicle tells of decisions itself.
                if chronicle.is_none() {
                    self.decisions.agent_speaks(frame, text);
                    self.decisions.keep_newest(MOST_DECISIONS);
                }
                let text = if self.log.is_sure() { without_blocks(text) } else { text.to_owned() };
                self.said = Some(Noted::new(frame, ends(&text, LAST_WORDS)));
                self.take_obstacles(frame, &text);
            }
            Speaker::User | Speaker::Program | Speaker::Operator => {}
        }
        if let Some(chronicle) = chronicle.as_deref_mut() {
            // The task stands as it is, but for a text that the user pasted above it without a mark.
            let is_later = speaker == Speaker::User && self.log.has_spoken();
            let (words, own) = match &own {
                Some(own) if is_later => (own.words(), own.own()),
                Some(own) if own.has_label() => (own.words(), own.own()),
                None if is_later => (LEFT_OUT.into(), "".into()),
                _ => (text.into(), text.into()),
            };
            chronicle.says(frame, speaker, (&words, &own));
        }
        if is_answer {
            self.answer_in_text(frame, text, chronicle.as_deref_mut());
            if let Some(words) = behind {
                self.user_says(frame, words, &OwnWords::of(words), chronicle.is_some());
                if let Some(chronicle) = chronicle {
                    chronicle.says(frame, Speaker::User, (words, words));
                }
            }
            return;
        }
        // What the agent writes may be what it read.
        if let Some(own) = own
            && !self.has_plan_tool
            && let Some(plan) = plan::of_markdown(&own.own())
        {
            self.take_plan(frame, plan);
        }
        if speaker == Speaker::Agent && self.log.may_hold_commands() {
            self.waiting = OpenCalls::default();
            let command = self.log.command(text).map(|command| Noted::new(frame, command));
            self.command = command;
            if self.log.is_sure() {
                self.begin_command(chronicle);
            }
        }
    }

    /// Notes words of the user. A chronicle tells of decisions itself.
    fn user_says(&mut self, frame: FrameSeq, text: &str, own: &OwnWords<'_>, has_chronicle: bool) {
        self.first_words.get_or_insert(frame);
        if !has_chronicle {
            self.decisions.user_speaks(&own.own());
        }
        self.rules.take(frame, text, own, self.last_words);
        // What an editor sends beside the user's words may come before them.
        if !own.is_quotation() {
            self.last_words = Some(frame);
        }
    }

    /// Notes the command in the agent's last text as a call.
    fn begin_command(&mut self, chronicle: Option<&mut Chronicle>) {
        if let Some(Noted { frame, text }) = self.command.take() {
            self.call(frame, None, SHELL, Action::of_command(&text), chronicle);
        }
    }

    /// What a program answered to a command in the agent's text.
    fn answer_in_text(
        &mut self,
        frame: FrameSeq,
        text: &str,
        mut chronicle: Option<&mut Chronicle>,
    ) {
        self.begin_command(chronicle.as_deref_mut());
        self.result(frame, (None, None), (text, CallOutcome::Unstated), chronicle);
    }

    /// Notes what the agent finds missing.
    fn take_obstacles(&mut self, frame: FrameSeq, text: &str) {
        for said in obstacle::obstacles(text) {
            let said = shortened(said, OBSTACLE);
            self.obstacles.retain(|known| known.text != said);
            self.obstacles.push(Noted::new(frame, said));
        }
        let over = self.obstacles.len().saturating_sub(MOST_OBSTACLES);
        self.obstacles.drain(..over);
    }

    /// Notes a plan. One that names none of the steps before is another list, and replaces it too.
    pub(super) fn take_plan(&mut self, frame: FrameSeq, plan: Vec<Item>) {
        (self.plan, self.plan_at) = (plan, Some(frame));
    }
}

/// A text without its blocks of code: commands in them are told as what was done.
fn without_blocks(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("```") {
        let Some((_, next)) = after.split_once("```") else { break };
        // A line that leads to a block says nothing without it.
        let before = before.trim_end();
        let (above, lead) = before.rsplit_once('\n').unwrap_or(("", before));
        plain.push_str(if lead.ends_with(':') { above } else { before });
        rest = next;
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}
