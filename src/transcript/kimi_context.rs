//! What the context of Kimi holds, as far as its records take some of it back or replace it.

use super::{
    draft::{CompactionRecord, Replaced},
    live_messages::LiveMessages,
};
use crate::json::{Object, Value};

/// The program that makes the summaries.
const ENGINE: &str = "kimi";

/// The messages of the context.
#[derive(Default)]
pub(super) struct KimiContext {
    live: LiveMessages<Entry>,
    /// The frame of the system prompt that is in force: it is no message of the context.
    pub(super) system: Option<u64>,
}

/// What a compaction replaced, and what is wrong with what it says of that.
type CompactionOutcome = (CompactionRecord, Option<&'static str>);

/// A message of the context: what the records ask of it.
#[derive(Debug, Default)]
pub(super) struct Entry {
    kind: Kind,
    id: Option<String>,
    /// The id of the prompt that a reminder was put before.
    owner: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// What the user said, and what can be taken back.
    Prompt,
    Injection,
    Summary,
    #[default]
    Other,
}

impl Entry {
    /// Whether it is what the program says in the user's place.
    pub(super) fn is_of_program(&self) -> bool {
        self.kind != Kind::Prompt
    }

    /// The entry of a message that was appended.
    pub(super) fn of(message: &Object) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let origin = message.get("origin");
        let origin_kind = origin.and_then(|origin| origin.str_at("kind"));
        let is_user = message.str_at("role") == Some("user");
        let is_typed = || {
            let trigger = origin.and_then(|origin| origin.str_at("trigger"));
            trigger == Some("user-slash")
        };
        let kind = match origin_kind {
            Some("injection") => Kind::Injection,
            Some("compaction_summary") => Kind::Summary,
            None | Some("user") if is_user => Kind::Prompt,
            Some("skill_activation" | "plugin_command") if is_user && is_typed() => Kind::Prompt,
            _ => Kind::Other,
        };
        let owner = origin.and_then(|origin| origin.get("ownerPromptId"));
        Self { kind, id: text(message.get("id")), owner: text(owner) }
    }
}

impl KimiContext {
    pub(super) fn push(&mut self, frame: u64, entry: Entry) {
        self.live.push(frame, entry);
    }

    /// How many messages it holds.
    pub(super) fn count(&self) -> u64 {
        self.live.forgotten() + self.live.messages().len() as u64
    }

    /// Whether a summary stands in it.
    pub(super) fn has_summary(&self) -> bool {
        self.live.messages().iter().any(|(_, entry)| entry.kind == Kind::Summary)
    }

    /// The index of the first message that leaves with the last `count` prompts.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn undone(&self, count: Option<u64>) -> Result<usize, &'static str> {
        let Some(mut left) = count.filter(|count| *count > 0) else {
            return Err("takes prompts back and does not say how many");
        };
        let all = self.live.messages();
        for (at, (_, entry)) in all.iter().enumerate().rev() {
            match entry.kind {
                // The program takes back nothing that a summary replaced.
                Kind::Summary => break,
                Kind::Prompt => left -= 1,
                _ => {}
            }
            if left == 0 {
                let is_owned = |(_, before): &&(u64, Entry)| {
                    before.kind == Kind::Injection
                        && before.owner.is_some()
                        && before.owner == entry.id
                };
                let owned = all.range(..at).rev().take_while(is_owned).count();
                return Ok(at - owned);
            }
        }
        Err("takes back more prompts than the context holds")
    }

    /// The first frame that leaves where the messages from this index on leave, and the frames after
    /// it that stay.
    pub(super) fn cut(&self, at: usize) -> (u64, Vec<u64>) {
        let (cut, mut kept) = self.live.cut(at);
        kept.extend(self.system);
        (cut, kept)
    }

    /// Lets the messages from this index on leave.
    pub(super) fn leave(&mut self, at: usize) {
        if at == 0 {
            self.live.take();
        }
        self.live.split_off(at);
    }

    /// Takes a compaction, which the frame `told_at` tells of; says what it replaced, and what is wrong
    /// with what it says of that.
    pub(super) fn compact(&mut self, record: &Object, told_at: u64) -> CompactionOutcome {
        let number = |key: &str| record.get(key).and_then(Value::as_u64);
        let summary = Entry { kind: Kind::Summary, ..Entry::default() };
        let Some(kept) = number("keptUserMessageCount") else {
            let compacted = number("compactedCount").or_else(|| number("count"));
            return self.keep_rest(compacted, told_at, summary);
        };
        let head = number("keptHeadUserMessageCount").unwrap_or(0);
        let told = self.keep_prompts(kept, head);
        self.live.push(told_at, summary);
        told
    }

    /// The summary took the place of the first messages.
    fn keep_rest(
        &mut self,
        compacted: Option<u64>,
        told_at: u64,
        summary: Entry,
    ) -> CompactionOutcome {
        let told = CompactionRecord::of(ENGINE);
        let all = self.live.messages();
        let at = compacted.and_then(|count| count.checked_sub(self.live.forgotten()));
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at <= all.len());
        let first = at.and_then(|at| all.get(at)).map(|(frame, _)| *frame);
        self.live.replace_before(at.unwrap_or(usize::MAX), told_at, summary);
        let wrong = "does not say how many messages it replaced, or more than there are";
        let replaced = match (at, first) {
            (Some(_), _) if compacted == Some(0) => Replaced::BeforeFrame(0),
            (Some(_), Some(first)) => Replaced::BeforeFrame(first),
            _ => Replaced::All,
        };
        (CompactionRecord { replaced, ..told }, at.is_none().then_some(wrong))
    }

    /// What the user said was kept, the first `head` prompts and the last, before the summary.
    fn keep_prompts(&mut self, kept: u64, head: u64) -> CompactionOutcome {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let all = self.live.take();
        let prompts: Vec<_> =
            all.into_iter().filter(|(_, entry)| entry.kind == Kind::Prompt).collect();
        let (head, tail) = (count(head), count(kept.saturating_sub(head)));
        // One that was cut in two counts twice.
        let is_wrong = head.saturating_add(tail) > prompts.len() + 1;
        let from = prompts.len().saturating_sub(tail);
        let stays = prompts.into_iter().enumerate().filter(|(at, _)| *at < head || *at >= from);
        let mut frames = Vec::new();
        for (_, (frame, entry)) in stays {
            frames.push(frame);
            self.live.push(frame, entry);
        }
        frames.sort_unstable();
        let wrong = is_wrong.then_some("keeps more prompts than the context holds");
        (CompactionRecord { in_place: Some(frames), ..CompactionRecord::of(ENGINE) }, wrong)
    }
}
