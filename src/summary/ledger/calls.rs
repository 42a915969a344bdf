//! Calls and what came of them: which files were touched, what failed, what goes on.

use super::{
    act::CallSubject,
    chronicle::Chronicle,
    open_call::{Failure, Running, Waiting},
    state::Ledger,
};
use crate::{
    id::FrameSeq,
    steps::{Action, CallKind, Class, Item, PlanStep, Touch, is_note, is_silent, plan, running},
    text::quote::quoted_line,
    veil::{Answered, CallOutcome},
};

/// So many files, errors and works that go on are remembered; of more the oldest are forgotten.
const MOST_FILES: usize = 2_000;
const MOST_ERRORS: usize = 20;
const MOST_RUNNING: usize = 64;

/// What the names of tools hold that end work.
const ENDING: [&str; 4] = ["kill", "stop", "cancel", "terminate"];

/// Programs that look and change nothing.
const LOOKS: [&str; 10] = ["cat", "head", "tail", "less", "more", "grep", "rg", "ag", "ls", "bat"];

/// Whether what failed was a look: `ls`, `grep`, `cat`, and nothing behind it.
fn is_look(error: &Failure) -> bool {
    let program = error.key.split(' ').next().unwrap_or_default();
    LOOKS.contains(&program) && !error.call.contains("&&") && !error.call.contains([';', '>'])
}

/// The members in what a call is about: `id: QB7, to: north`.
fn values_of(subject: &str) -> Vec<&str> {
    let subject = subject.trim_start_matches('(').trim_end_matches(')');
    let members = subject.split(", ").filter(|member| member.contains(": "));
    members.collect()
}

/// Whether two calls have most of their members in common, the first among them.
fn shares_most(one: &[&str], other: &[&str]) -> bool {
    let same = one.iter().filter(|member| other.contains(member)).count();
    one.first().is_some_and(|first| other.first() == Some(first))
        && same * 2 > one.len().max(other.len())
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
        let (name, mut action) = (tool, action);
        let tool = &*quoted_line(tool);
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
        let mut adds_step = None;
        if action.plan.is_some() || action.step.is_some() {
            plan_before = Some((self.plan.clone(), self.plan_at));
        }
        let of_file = !action.touches.is_empty();
        let is_planner = plan::is_planner(tool);
        if of_file && self.has_plan_tool || self.is_plan_known && !is_planner {
            (action.plan, action.step) = (None, None);
        }
        if let Some(plan) = action.plan.take() {
            self.take_plan(frame, plan);
            self.has_plan_tool |= !of_file;
            self.is_plan_known |= !of_file && is_planner;
            action.kind.get_or_insert(CallKind::Plan);
        } else if let Some(step) = action.step.take() {
            adds_step = self.take_step(frame, step);
            self.is_plan_known |= is_planner;
            action.kind = Some(CallKind::Plan);
        }
        let is_of = |running: &&Running| running.ids.iter().any(|id| action.handles.contains(id));
        let running = self.running.iter().rfind(is_of).cloned();
        let mut places: Vec<usize> = running.iter().filter_map(|running| running.place).collect();
        if let Some(chronicle) = chronicle {
            // A call that only asks for what another one began is none of its own.
            if let Some(running) = running.as_ref().filter(|running| running.place.is_none()) {
                let (kind, text) = (CallKind::Command, running.subject.as_str());
                let of = CallSubject { kind, text, values: "", files: &[] };
                places.push(chronicle.call(frame, &running.tool, of));
            }
            let lower = tool.to_ascii_lowercase();
            let is_end = ENDING.iter().any(|word| lower.contains(word));
            if running.is_none() || action.has_input || is_end {
                places.push(chronicle.call(frame, tool, CallSubject::of(&action)));
            }
        }
        let is_at_once = action.is_at_once;
        let asks = running.as_ref().and_then(|running| running.ids.first().cloned());
        let (tool, subject, key, files) = match running {
            Some(Running { tool, subject, key, .. }) => (tool, subject, key, Vec::new()),
            None => (tool.to_owned(), action.subject, action.key, action.touches),
        };
        let call = Waiting {
            frame,
            tool,
            subject,
            key,
            files,
            asks,
            plan_before,
            adds_step,
            is_at_once,
            places,
        };
        self.waiting.call(id, name, call);
    }

    /// Notes what came of a call: its text, and what the source states. A statement that it failed
    /// stands before what the text says.
    pub(super) fn result(
        &mut self,
        frame: FrameSeq,
        (id, tool): (Option<&str>, Option<&str>),
        (text, stated): (&str, CallOutcome),
        chronicle: Option<&mut Chronicle>,
    ) {
        let Some(Answered { mut call, .. }) = self.waiting.answer(id, tool) else { return };
        self.see_open_file(text);
        let text = self.trailers.entry(call.tool.clone()).or_default().take_off(text);
        // What the call named itself was not begun by it.
        let mut ids = if call.is_at_once { Vec::new() } else { running::ids(text) };
        ids.retain(|id| call.asks.is_some() || !call.subject.contains(id.as_str()));
        let goes_on = !ids.is_empty() && !stated.is_failure();
        let class =
            if goes_on { Class::Running } else { Class::of(stated, text, Some(call.asked())) };
        if let Some(chronicle) = chronicle {
            call.places.iter().for_each(|place| chronicle.result(*place, text, class, &ids));
        } else {
            self.decisions.result_comes(class.is_failure());
        }
        if let Some(asked) = call.asks.take() {
            self.running.retain(|running| !running.ids.contains(&asked));
        }
        if class.is_failure()
            && self.plan_at == Some(call.frame)
            && let Some((plan, at)) = call.plan_before.take()
        {
            (self.plan, self.plan_at) = (plan, at);
        }
        if !class.is_failure()
            && let Some(number) = &call.adds_step
        {
            self.name_step(number, plan::id_in(text));
        }
        let files = std::mem::take(&mut call.files);
        if !class.is_failure() {
            self.touch_all(&files, call.frame);
        }
        if class == Class::Running {
            if self.running.len() >= MOST_RUNNING {
                self.running.remove(0);
            }
            self.running.push(call.running(ids));
        } else if class == Class::Done || !is_silent(text) {
            self.settle_errors(frame, &call, &files, (text, class));
        }
    }

    /// Notes what failed, and what is over.
    fn settle_errors(
        &mut self,
        frame: FrameSeq,
        call: &Waiting,
        touched: &[(Touch, String)],
        (text, class): (&str, Class),
    ) {
        let is_failed = class.is_failure();
        let values = values_of(&call.subject);
        // Who reads a file has not done to it what failed.
        let only_reads =
            !touched.is_empty() && touched.iter().all(|(touch, _)| *touch == Touch::Read);
        self.errors.retain(|error| {
            let is_same =
                error.call.starts_with(&format!("{}(", call.tool)) && error.key == call.key;
            // What failed first and works now is over; so is what failed before in the same way.
            let is_over =
                !is_failed && !only_reads && !call.key.is_empty() && error.key == call.key;
            // So is what was asked once more with another value.
            let is_again = !is_failed
                && touched.is_empty()
                && error.call.strip_prefix(&call.tool).is_some_and(|asked| {
                    asked.starts_with('(') && shares_most(&values, &values_of(asked))
                });
            !is_same && !is_over && !is_again
        });
        // What was refused was not run, and so did not fail.
        if class == Class::Failed {
            let failed = Failure::new(frame, call, text);
            self.last_error = Some(failed.clone());
            // A look that found nothing is no work that is open.
            self.errors.retain(|error| !is_look(error));
            self.errors.push(failed);
            let over = self.errors.len().saturating_sub(MOST_ERRORS);
            self.errors.drain(..over);
        }
    }

    /// Takes from a note in a result which file is open: `(Open file: tide.py)`.
    fn see_open_file(&mut self, text: &str) {
        let is_about_file = |line: &&str| {
            is_note(line)
                && line.split_once(": ").is_some_and(|(name, _)| {
                    let name = name.to_ascii_lowercase();
                    name.contains("open") && name.contains("file")
                })
        };
        let Some(note) = text.lines().rev().take(6).map(str::trim).find(is_about_file) else {
            return;
        };
        let Some((_, path)) = note.split_once(": ") else { return };
        let path = path.trim_end_matches([')', ']']);
        let is_known = self.open_file.as_deref().is_some_and(|open| {
            path.strip_suffix(open).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        });
        if !is_known && path.contains(['.', '/']) && path != "n/a" {
            self.open_file = Some(path.to_owned());
        }
    }

    fn touch_all(&mut self, files: &[(Touch, String)], frame: FrameSeq) {
        for (at, (touch, path)) in files.iter().enumerate() {
            let other = |at: Option<usize>| files.get(at?).map(|(_, path)| path.clone());
            self.touch(*touch, path.clone(), frame);
            let Some(file) = self.files.get_mut(path) else { continue };
            match touch {
                Touch::Moved => file.moved_to = other(at.checked_add(1)),
                Touch::MovedHere => file.moved_from = other(at.checked_sub(1)),
                _ => {}
            }
        }
    }

    fn touch(&mut self, touch: Touch, path: String, frame: FrameSeq) {
        self.touched += 1;
        let order = self.touched;
        if touch != Touch::Read {
            self.changed_at = Some(frame);
        }
        let file = self.files.entry(path).or_default();
        (file.last, file.order) = (frame, order);
        if touch != Touch::Read {
            file.changed_at = Some(frame);
            file.moved_to = None;
        }
        match touch {
            Touch::Read => file.read += 1,
            Touch::Changed => file.changed += 1,
            Touch::Written => {
                let is_known = file.is_created || file.is_deleted;
                let is_new = file.read == 0 && file.changed == 0 && !is_known;
                file.is_created |= is_new;
                file.is_deleted = false;
                file.changed += u32::from(!is_new);
            }
            Touch::Deleted => file.is_deleted = true,
            Touch::Moved | Touch::MovedHere => file.is_deleted = false,
        }
        if self.files.len() > MOST_FILES {
            let oldest = self.files.iter().min_by_key(|(_, file)| (file.is_changed(), file.order));
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                self.files.remove(&path);
            }
        }
    }
}

impl Ledger {
    /// Notes what a call does to a step; gives the number of one that is added. The first one begins
    /// another plan.
    pub(super) fn take_step(&mut self, frame: FrameSeq, step: PlanStep) -> Option<String> {
        (self.plan_at, self.has_plan_tool) = (Some(frame), true);
        match step {
            PlanStep::Added(item) => {
                // A list that was written as a whole is another plan.
                if self.plan.iter().all(|item| item.id.is_none()) {
                    self.plan.clear();
                }
                let id = Some((self.plan.len() + 1).to_string());
                self.plan.push(Item { id: id.clone(), ..item });
                return id;
            }
            PlanStep::Changed { id, status, text } => {
                let of_id = |item: &&mut Item| item.id.as_deref() == Some(&*id);
                let item = self.plan.iter_mut().find(of_id)?;
                item.status = status.unwrap_or(item.status);
                item.text = text.unwrap_or_else(|| std::mem::take(&mut item.text));
            }
            PlanStep::Removed { id } => self.plan.retain(|item| item.id.as_deref() != Some(&*id)),
        }
        None
    }

    /// Notes the id that a result tells of the step that was added with a number.
    pub(super) fn name_step(&mut self, number: &str, id: Option<String>) {
        let of_number = |item: &&mut Item| item.id.as_deref() == Some(number);
        if let (Some(item), Some(_)) = (self.plan.iter_mut().rfind(of_number), &id) {
            item.id = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Chars4;

    /// A ledger of calls with their results, a frame for each: its text, and the chronicle's.
    fn told(calls: &[(&str, &str, &str)]) -> (String, Vec<String>) {
        let (mut ledger, mut chronicle) = (Ledger::new(), Chronicle::default());
        for (at, (tool, arguments, result)) in (1..).zip(calls) {
            let frame = FrameSeq::new(at);
            let action = Action::of_text(tool, arguments);
            ledger.sees_call(frame);
            ledger.call(frame, None, tool, action, Some(&mut chronicle));
            let said = (*result, CallOutcome::Unstated);
            ledger.result(frame, (None, None), said, Some(&mut chronicle));
        }
        let acts = chronicle.acts().into_iter().map(|line| line.text).collect();
        (ledger.text(2_000, &Chars4).unwrap_or_default(), acts)
    }

    fn check(calls: &[(&str, &str, &str)], expected: &str) {
        let (text, _) = told(calls);
        assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
    }

    fn sh(command: &str) -> String {
        crate::json::Value::Object([("cmd".to_owned(), command.into())].into_iter().collect())
            .to_string()
    }

    #[test]
    fn a_change_has_the_frame_of_the_last_change() {
        let write = r#"{"path":"tide.md","content":"x"}"#;
        let read = r#"{"path":"tide.md"}"#;
        check(
            &[("w", write, "ok"), ("w", write, "ok"), ("r", read, "x")],
            "- tide.md: created, changed [2]",
        );
        let look = sh("sed -n '3,9p' tide.md");
        check(&[("w", write, "ok"), ("sh", &look, "x")], "- tide.md: created [1]");
    }

    #[test]
    fn what_happens_to_a_file_stands_in_order_of_time() {
        let write = r#"{"path":"tide.md","content":"x"}"#;
        let remove = sh("rm tide.md");
        check(&[("w", write, "ok"), ("sh", &remove, "")], "- tide.md: created, then deleted [2]");
        let again = [("w", write, "ok"), ("sh", &remove, ""), ("w", write, "ok")];
        check(&again, "- tide.md: created, changed [3]");
        let moved = sh("git mv tide.md flood.md");
        let moves = [("w", write, "ok"), ("sh", &*moved, "")];
        check(&moves, "- tide.md: created, then moved to flood.md [2]");
        check(&moves, "- flood.md: moved from tide.md [2]");
    }

    #[test]
    fn what_was_asked_once_more_with_another_value_is_over() {
        let book = |card: &str| format!(r#"{{"id":"QB7","quay":"north","pay":"{card}"}}"#);
        let (first, second) = (book("gift_1"), book("card_2"));
        let failed = ("book", &*first, "Error: gift_1 is empty");
        let (text, _) = told(&[failed, ("book", &second, r#"{"id":"QB7","paid":true}"#)]);
        assert!(!text.contains("Last error:"), "{text}");
        assert!(text.contains("Failed before, done since:"), "{text}");
        let cancel = ("book", r#"{"id":"QB7","do":"cancel"}"#, "Error: no");
        let (text, _) = told(&[cancel, ("book", r#"{"id":"QB7","do":"show"}"#, "booked")]);
        assert!(text.contains("Last error:"), "{text}");
        let other = r#"{"id":"QB8","quay":"north","pay":"card_2"}"#;
        let (text, _) = told(&[failed, ("book", other, "booked")]);
        assert!(text.contains("Last error:"), "{text}");
    }

    #[test]
    fn a_look_that_found_nothing_is_no_open_work() {
        let (look, make) = (sh("ls src/quay"), sh("make tide"));
        let missing = "ls: cannot access 'src/quay': No such file or directory";
        let failed = "make: *** [tide] Error 1";
        let (text, _) = told(&[("shell", &look, missing), ("shell", &make, failed)]);
        assert!(text.contains("make tide") && !text.contains("src/quay"), "{text}");
    }

    #[test]
    fn changes_without_output_name_their_files() {
        let script = sh("python3 - <<'EOF'\ns = 1\nopen('lock.py', 'w').write(s)\nEOF");
        let calls = [("sh", &*script, "")];
        check(&calls, "- lock.py: created [1]");
        assert_eq!(told(&calls).1, ["sh(python3 - <<'EOF' … writes lock.py) → no output"]);
        let searched = sh("rg tide src/quay src/lock.rs");
        assert!(!told(&[("sh", &searched, "a\nb")]).0.contains("Files read:"));
    }

    #[test]
    fn an_editor_of_lines_changes_the_file_that_is_open() {
        let (open, edit) = (sh("create lock.py"), sh("edit 1:1\nx = 1\nend_of_edit"));
        let trailer = "\n(Open file: /quay/lock.py)\n(Current directory: /quay)\nbash-$";
        let calls = [("sh", &*open, trailer), ("sh", &*edit, trailer)];
        check(&calls, "- lock.py: created, changed [2]");
        let opened = "[File: tide.py]\n(Open file: /quay/tide.py)\nbash-$";
        check(
            &[("sh", &*sh("view 3"), opened), ("sh", &*edit, "")],
            "- /quay/tide.py: changed [2]",
        );
    }

    #[test]
    fn what_stands_behind_every_output_is_no_outcome() {
        let said = |text: &str| format!("{text}\n-- at the quay --");
        let of = |command| (sh(command), said(command));
        let all: Vec<_> = ["low", "high", "ebb", "flood"].map(of).into();
        let calls: Vec<_> = all.iter().map(|(c, r)| ("sh", c.as_str(), r.as_str())).collect();
        assert_eq!(told(&calls).1[..2], ["sh(flood) → flood", "sh(ebb) → ebb"]);
    }

    #[test]
    fn a_call_that_was_refused_is_not_told_as_done() {
        let write = r#"{"path":"tide.md","content":"x"}"#;
        for (verb, refused) in [
            ("not run", "Please always provide EXACTLY ONE action, found 2 actions."),
            ("cancelled", "[Operation Cancelled] Reason: no"),
            ("denied", "[Operation Cancelled] Reason: User did not allow tool call"),
            ("denied", "The user doesn't want this."),
            ("denied", "Permission to use w with tide.md has been denied."),
        ] {
            let (text, acts) = told(&[("w", write, refused)]);
            assert!(!text.contains("Files changed:"), "{text}");
            assert!(!text.contains("error"), "{text}");
            assert_eq!(acts, [format!("w(tide.md) → {verb}: {refused}")]);
        }
    }

    #[test]
    fn what_a_source_states_of_a_call_stands_before_its_words() {
        let (file, log) = (r#"{"path":"tide.log"}"#, "Error: the tide is out\nfatal: no water");
        let cargo = sh("cargo build");
        let broken = "   Compiling a v0.1.0\nerror[E0308]: mismatched types";
        for (tool, arguments, result, stated, expected) in [
            ("look", file, log, CallOutcome::Done, Class::Done),
            ("look", file, log, CallOutcome::Unstated, Class::Failed),
            ("look", file, "high water", CallOutcome::Denied, Class::Denied),
            ("look", file, "", CallOutcome::Cancelled, Class::Cancelled),
            ("look", file, "Cancelled: berth 7", CallOutcome::Done, Class::Done),
            ("look", file, "The user doesn't want this.", CallOutcome::Failed, Class::Denied),
            // The last program of a pipe went well.
            ("bash", &*cargo, broken, CallOutcome::Done, Class::Failed),
        ] {
            let mut ledger = Ledger::new();
            ledger.sees_call(FrameSeq::new(1));
            ledger.call(FrameSeq::new(1), None, tool, Action::of_text(tool, arguments), None);
            ledger.result(FrameSeq::new(2), (None, None), (result, stated), None);
            assert_eq!(ledger.open_error().is_some(), expected == Class::Failed, "{result}");
            assert_eq!(ledger.files().count() > 0, !expected.is_failure() && tool == "look");
        }
    }

    #[test]
    fn a_later_run_of_a_command_stands_for_the_earlier_failure() {
        let (all, one) = (sh("quaytest all"), sh("quaytest lock"));
        let fail = |what: &str| format!("Exit code 1\nError: {what}");
        let calls = [("sh", &*all, &*fail("five")), ("sh", &*one, &*fail("lock"))];
        let (text, _) = told(&calls);
        assert!(
            text.contains("Failed and not done since:\n- sh(quaytest all): Error: five [1]"),
            "{text}"
        );
        let again = fail("three");
        let (text, _) = told(&[calls[0], calls[1], ("sh", &*all, &*again)]);
        assert!(!text.contains("five") && text.contains("three"), "{text}");
    }

    #[test]
    fn steps_that_are_added_one_by_one_are_a_plan() {
        let add = |text: &str| format!(r#"{{"subject":"{text}","description":"x"}}"#);
        let (dredge, paint) = (add("Dredge"), add("Paint"));
        let begin = r#"{"taskId":"8","status":"in_progress"}"#;
        let calls = [
            ("TaskCreate", &*dredge, "Task #7 created"),
            ("TaskCreate", &*paint, "Task #8 created"),
            ("TaskUpdate", begin, "Updated task #8 status"),
        ];
        let (text, _) = told(&calls);
        assert!(text.contains("Plan:\n- [>] Paint [3]\n- [ ] Dredge [3]"), "{text}");
        let done = r#"{"taskId":"7","status":"completed"}"#;
        let more = [calls[0], calls[1], calls[2], ("TaskUpdate", done, "Updated task #7 status")];
        let (text, _) = told(&more);
        assert!(text.contains("- 1 of 2 steps done") && !text.contains("Dredge"), "{text}");
    }
}
