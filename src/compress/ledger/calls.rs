//! Calls and what came of them: which files were touched, what failed, what goes on.

use super::{
    action::Action,
    chronicle::Chronicle,
    open_call::{Failure, Running, Touched, Waiting},
    outcome::{self, Class},
    running,
    shell::Touch,
    state::Ledger,
};
use crate::id::FrameSeq;

/// So many files, errors and open calls are remembered; of more the oldest are forgotten.
const MOST_FILES: usize = 2_000;
const MOST_ERRORS: usize = 20;
const MOST_WAITING: usize = 64;

/// What the names of tools hold that end work.
const ENDING: [&str; 4] = ["kill", "stop", "cancel", "terminate"];

/// What the names of tools hold that run commands.
const RUNNERS: [&str; 7] = ["bash", "shell", "exec", "run", "terminal", "command", "cmd"];
/// Programs that show what others wrote, errors too.
const VIEWERS: [&str; 16] = [
    "cat", "head", "tail", "less", "more", "sed", "awk", "grep", "rg", "ag", "find", "ls", "git",
    "diff", "echo", "bat",
];

/// Whether a call runs a program whose output is its own.
fn runs_program(call: &Waiting) -> bool {
    let tool = call.tool.to_ascii_lowercase();
    let program = call.key.split(' ').next().unwrap_or_default();
    RUNNERS.iter().any(|word| tool.contains(word)) && !VIEWERS.contains(&program)
}

impl Ledger {
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
        let mut plan_before = None;
        if let Some(plan) = action.plan {
            plan_before = Some((std::mem::take(&mut self.plan), self.plan_at));
            self.take_plan(frame, plan);
        }
        let is_of = |running: &&Running| running.ids.iter().any(|id| action.handles.contains(id));
        let running = self.running.iter().rfind(is_of).cloned();
        let mut places: Vec<usize> = running.iter().filter_map(|running| running.place).collect();
        if let Some(chronicle) = chronicle {
            // A call that only asks for what another one began is none of its own.
            if let Some(running) = running.as_ref().filter(|running| running.place.is_none()) {
                places.push(chronicle.call(frame, &running.tool, &running.subject));
            }
            let lower = tool.to_ascii_lowercase();
            let is_end = ENDING.iter().any(|word| lower.contains(word));
            if running.is_none() || action.has_input || is_end {
                places.push(chronicle.call(frame, tool, &action.subject));
            }
        }
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.remove(0);
        }
        let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let asks = running.as_ref().and_then(|running| running.ids.first().cloned());
        self.waiting.push(if let Some(Running { tool, subject, key, .. }) = running {
            Waiting { id, frame, tool, subject, key, files: Vec::new(), asks, plan_before, places }
        } else {
            let files = action.touches.into_iter().map(|(touch, path)| (touch.into(), path));
            let (subject, key, files) = (action.subject, action.key, files.collect());
            Waiting {
                id,
                frame,
                tool: tool.to_owned(),
                subject,
                key,
                files,
                asks,
                plan_before,
                places,
            }
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
        let mut call = self.waiting.remove(at);
        // What the call named itself was not begun by it.
        let mut ids = running::ids(text);
        ids.retain(|id| call.asks.is_some() || !call.subject.contains(id.as_str()));
        let is_failed =
            outcome::is_failure(text) || runs_program(&call) && outcome::tells_failure(text);
        let class = match (ids.is_empty(), is_failed) {
            (false, _) => Class::Running,
            (true, true) => Class::Failed,
            (true, false) => Class::Done,
        };
        if let Some(chronicle) = chronicle {
            call.places.iter().for_each(|place| chronicle.result(*place, text, class, &ids));
        }
        if let Some(asked) = call.asks.take() {
            self.running.retain(|running| !running.ids.contains(&asked));
        }
        if class == Class::Failed
            && self.plan_at == Some(call.frame)
            && let Some((plan, at)) = call.plan_before.take()
        {
            (self.plan, self.plan_at) = (plan, at);
        }
        let files = std::mem::take(&mut call.files);
        if class != Class::Failed {
            files.iter().for_each(|(touch, path)| self.touch(*touch, path.clone(), call.frame));
        }
        if class == Class::Running {
            if self.running.len() >= MOST_WAITING {
                self.running.remove(0);
            }
            self.running.push(call.running(ids));
        } else if class == Class::Done || !outcome::is_silent(text) {
            self.settle_errors(frame, &call, &files, (text, class));
        }
    }

    /// Notes what failed, and what is over.
    fn settle_errors(
        &mut self,
        frame: FrameSeq,
        call: &Waiting,
        touched: &[(Touched, String)],
        (text, class): (&str, Class),
    ) {
        let is_failed = class == Class::Failed;
        // Who reads a file has not done to it what failed.
        let only_reads =
            !touched.is_empty() && touched.iter().all(|(touch, _)| *touch == Touched::Read);
        self.errors.retain(|error| {
            let is_same =
                error.call.starts_with(&format!("{}(", call.tool)) && error.key == call.key;
            // What failed first and works now is over; so is what failed before in the same way.
            let is_over =
                !is_failed && !only_reads && !call.key.is_empty() && error.key == call.key;
            !is_same && !is_over
        });
        if is_failed {
            let failed = Failure::new(frame, call, text);
            self.last_error = Some(failed.clone());
            self.errors.push(failed);
            let over = self.errors.len().saturating_sub(MOST_ERRORS);
            self.errors.drain(..over);
        }
    }

    fn touch(&mut self, touch: Touched, path: String, frame: FrameSeq) {
        self.touched += 1;
        let order = self.touched;
        if touch != Touched::Read {
            self.changed_at = Some(frame);
        }
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
