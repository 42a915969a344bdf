//! What a summary without a model says misleads nobody: small sessions, and what is read of them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use afterimage::{
    compress::{CompressionJob, Engine, Ledger, OutlineEngine, Passage},
    id::{FrameSeq, Millis, Role},
    snapshot::{ChunkOptions, FrameSnapshotBuilder, Part},
    tokens::Chars4,
};

/// What happens in a session, in order.
enum Said<'a> {
    User(&'a str),
    Agent(&'a str),
    /// The id of a call, its tool and its arguments.
    Call(&'a str, &'a str, &'a str),
    /// The id of a call, and what it was answered with.
    Result(&'a str, &'a str),
}

use Said::{Agent, Call, Result as Answer, User};

fn passages(session: &[Said<'_>]) -> Vec<Passage> {
    passages_of(&session.iter().collect::<Vec<_>>())
}

fn passages_of(session: &[&Said<'_>]) -> Vec<Passage> {
    let passage = |(at, said): (usize, &&Said<'_>)| {
        let (role, text, part) = match **said {
            User(text) => (Role::User, text, Part::Text),
            Agent(text) => (Role::Assistant, text, Part::Text),
            Call(id, name, text) => {
                (Role::Assistant, text, Part::Call { id: Some(id.into()), name: name.into() })
            }
            Answer(id, text) => (Role::User, text, Part::Result { id: Some(id.into()) }),
        };
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content(text, ChunkOptions::new().part(part));
        let snapshot = Arc::new(builder.build(Millis::new(0)));
        let seq = FrameSeq::new(at as u64);
        Passage::new(seq, seq, role, snapshot)
    };
    session.iter().enumerate().map(passage).collect()
}

fn summary(session: &[Said<'_>], limit: u64) -> String {
    OutlineEngine.summarize(&CompressionJob::new(passages(session), limit), &Chars4).unwrap()
}

fn rules(session: &[Said<'_>]) -> Vec<String> {
    let mut ledger = Ledger::new();
    // A call of its own tells that results stand elsewhere than words.
    let call = Call("last", "look", "{}");
    let all: Vec<&Said<'_>> = session.iter().chain([&call]).collect();
    passages_of(&all).iter().for_each(|passage| ledger.read(passage));
    ledger.rules().map(|(_, rule)| rule.to_owned()).collect()
}

/// The lines below a heading.
fn section<'s>(summary: &'s str, title: &str) -> Vec<&'s str> {
    let lines = summary.lines().skip_while(|line| *line != title).skip(1);
    lines.take_while(|line| !line.ends_with(':') && !line.starts_with("Names:")).collect()
}

#[test]
fn questions_and_what_the_user_does_not_know_are_no_rules() {
    let session = [
        User("Moor at berth 7, and never at night. I don't remember the number of my permit."),
        User("Must I pay for it only once? I can't find the bill."),
    ];
    assert_eq!(rules(&session), ["Moor at berth 7, and never at night."]);
}

#[test]
fn a_later_word_of_the_user_takes_back_the_rule_that_it_speaks_of() {
    let session = [
        User("Always use steel ropes. Never leave the quay before six."),
        Agent("I moor with steel ropes."),
        User("No, use hemp ropes instead."),
        Call("c1", "look", "{}"),
    ];
    let kept = ["Never leave the quay before six.", "No, use hemp ropes instead."];
    assert_eq!(rules(&session), kept);
    let text = summary(&session, 400);
    let mark = "- \"No, use hemp ropes instead.\", no longer \"Always use steel ropes.\"";
    assert!(text.contains(mark), "{text}");
    let forgotten = [
        User("Never call the harbour at night."),
        Agent("I will not."),
        User("Forget that. Only berth 7 counts."),
    ];
    assert_eq!(rules(&forgotten), ["Forget that.", "Only berth 7 counts."]);
}

#[test]
fn words_behind_an_output_are_the_users() {
    let said = "<returncode>0</returncode>\n<output>\na.py\n</output>\n\
        By the way: never touch the core of k3.";
    let session = [User("Look."), Agent("I look.\n```bash\nls\n```"), User(said), Agent("Done.")];
    // Nobody knows who speaks in a log of plain text: the words stand as a quote, and are no rule.
    assert_eq!(rules(&session), [""; 0]);
    let text = summary(&session, 400);
    assert!(!text.contains("Rules:"), "{text}");
    let said = section(&text, "Last in the user's place:");
    assert_eq!(said, [" By the way: never touch the core of k3."], "{text}");
}

#[test]
fn reasons_are_decisions_that_nobody_rejected() {
    let reasons = |session: &[Said<'_>]| {
        let text = summary(session, 600);
        section(&text, "Found and decided, newest first:").join("\n")
    };
    let decided = Agent("The root cause is the tide table of 2019. Perhaps it should be newer.");
    let asked = || User("Why is the quay dry?");
    let found = "- The root cause is the tide table of 2019.";
    assert_eq!(reasons(&[asked(), decided]), found);
    let decided = || Agent("The root cause is the tide table of 2019.");
    assert_eq!(reasons(&[asked(), decided(), User("No, that table is right.")]), "");
    let call = || Call("c1", "check", r#"{"table":"2019"}"#);
    assert_eq!(reasons(&[asked(), decided(), call(), Answer("c1", "Error: table is right")]), "");
    assert_eq!(reasons(&[asked(), decided(), call(), Answer("c1", "dry since May")]), found);
}

#[test]
fn a_call_that_goes_on_shows_what_came_of_it_last() {
    let begun = [
        User("Test the locks."),
        Call("c1", "exec", r#"{"cmd":"lock test --all"}"#),
        Answer("c1", "Process running with session ID 4711\nOutput:\n"),
    ];
    let text = summary(&begun, 300);
    assert!(text.contains("- exec(lock test --all) → running: 4711"), "{text}");
    let ended = [
        Call("c2", "write_stdin", r#"{"session_id":4711,"chars":""}"#),
        Answer("c2", "Process exited with code 0\nOutput:\n12 locks passed\n"),
    ];
    let text = summary(&begun.into_iter().chain(ended).collect::<Vec<_>>(), 300);
    assert_eq!(
        section(&text, "Done, newest first:"),
        ["- exec(lock test --all) → 12 locks passed"]
    );
}

#[test]
fn work_that_ends_in_an_error_is_the_error_of_the_call_that_began_it() {
    let session = [
        User("Test the locks."),
        Call("c1", "exec", r#"{"cmd":"lock test --all"}"#),
        Answer("c1", "Process running with session ID 4711\nOutput:\n"),
        Call("c2", "write_stdin", r#"{"session_id":4711,"chars":""}"#),
        Answer("c2", "Process exited with code 1\nOutput:\nwater\nerror: lock 3 leaks\n"),
    ];
    let text = summary(&session, 300);
    let line = "- exec(lock test --all) → failed: error: lock 3 leaks";
    assert_eq!(section(&text, "Done, newest first:"), [line]);
    assert!(
        text.contains("Last error:\n exec(lock test --all):\n water\n error: lock 3 leaks"),
        "{text}"
    );
}

#[test]
fn calls_that_failed_stand_apart_from_those_that_worked() {
    let book = |id| Call(id, "book", r#"{"berth":7}"#);
    let session = [
        User("Book berth 7."),
        book("c1"),
        Answer("c1", "Error: berth 7 is taken"),
        book("c2"),
        Answer("c2", "Error: berth 7 is taken"),
        book("c3"),
        Answer("c3", "booked"),
    ];
    let text = summary(&session, 300);
    let expected =
        ["- book(berth: 7) → booked", "- book(berth: 7) ×2 → failed: Error: berth 7 is taken"];
    assert_eq!(section(&text, "Done, newest first:"), expected);
}

#[test]
fn a_search_without_a_hit_is_no_error() {
    let session = [
        User("Is there a leak?"),
        Call("c1", "sh", r#"{"cmd":"grep leak log"}"#),
        Answer("c1", "Exit code 1\n"),
    ];
    let text = summary(&session, 300);
    assert!(!text.contains("Last error:"), "{text}");
    assert!(text.contains("- sh(grep leak log) → failed: no output, exit code 1"), "{text}");
}

#[test]
fn a_block_of_code_is_a_command_once_a_program_answered_one() {
    let chat = [
        User("How do I open the lock?"),
        Agent("Like this:\n```\nopen lock 3\n```"),
        User("Thanks, it is open. Never close it again."),
    ];
    let text = summary(&chat, 300);
    assert!(!text.contains("shell("), "{text}");
    assert!(text.contains("Never close it again."), "{text}");
    let log = [
        User("Open the lock.\nbash-$"),
        Agent("I open it.\n```\nopen lock 3\n```"),
        User("[File: lock (2 lines total)]\n1:shut\n2:wet\nbash-$"),
        Agent("It is shut."),
        User("[File: lock (2 lines total)]\n1:shut\n2:wet\nbash-$"),
    ];
    let text = summary(&log, 300);
    assert!(text.contains("- shell(open lock 3) → "), "{text}");
    assert!(!text.contains("Asked last:"), "{text}");
}

#[test]
fn names_are_what_somebody_would_search_for() {
    let listing: String = (1_200..1_240).map(|line| format!("{line}→let x = 1.5rem;\n")).collect();
    let hash = "d7a8fbb307d7809469ca9abcb0082e4f8d5651e4";
    let read = format!("{listing}{hash} tide_table\n");
    let session = [User("Look."), Call("c1", "look", "{}"), Answer("c1", &read)];
    let text = summary(&session, 300);
    assert!(text.ends_with("\nNames: tide_table"), "{text}");
}

#[test]
fn what_the_agent_said_last_keeps_its_end_and_is_cut_between_sentences() {
    let filler = "The quay is dry until nine in the morning. ".repeat(60);
    let said = format!("Both locks are shut.\n{filler}\nNext I call the harbour about lock 3.");
    let text = summary(&[User("Shut the locks."), Agent(&said)], 500);
    let said = section(&text, "Said last:").join("\n");
    assert!(said.starts_with(" Both locks are shut."), "{text}");
    assert!(said.contains("\n Next I call the harbour about lock 3."), "{text}");
    assert!(!said.contains('…') || said.contains("[…]"), "{text}");
}

#[test]
fn what_is_open_comes_before_all_else_in_a_small_room() {
    let plan = r#"{"todos":[{"content":"Shut lock 3","status":"in_progress"},{"content":"Call the harbour","status":"pending"}]}"#;
    let long = "Please look after all the locks of the old harbour, one by one. ".repeat(9);
    let session = [
        User(&long),
        Call("c1", "plan", plan),
        Answer("c1", "ok"),
        Call("c2", "shut", r#"{"lock":3}"#),
        Answer("c2", "Error: lock 3 leaks at the lower gate"),
    ];
    for limit in [45, 60, 80] {
        let text = summary(&session, limit);
        for part in ["Error: lock 3 leaks at the lower gate", "[>] Shut lock 3", "Call the harbour"]
        {
            assert!(text.contains(part), "{part} at {limit}: {text}");
        }
    }
}

/// What a block says beside a ledger.
fn block(session: &[Said<'_>], limit: u64) -> String {
    let passages = passages(session);
    let mut ledger = Ledger::new();
    passages.iter().for_each(|passage| ledger.read(passage));
    let job = CompressionJob::new(passages, limit).with_ledger(Arc::new(ledger));
    OutlineEngine.summarize(&job, &Chars4).unwrap()
}

/// Looks at many locks, one call each.
fn looks(count: usize) -> Vec<(String, String, String)> {
    let look = |at: usize| {
        (format!("l{at}"), format!(r#"{{"lock":"LOCK-{at}00"}}"#), format!("gate_{at} is shut"))
    };
    (0..count).map(look).collect()
}

#[test]
fn in_a_block_the_words_of_the_user_go_last() {
    let looks = looks(12);
    let mut session = vec![User("Moor all of them without changing the pilots.")];
    for (id, arguments, answer) in &looks {
        session.extend([Call(id, "look", arguments), Answer(id, answer)]);
    }
    session.push(User("Actually, I want to leave on May 27."));
    let text = block(&session, 60);
    let words = [
        "- \"Actually, I want to leave on May 27.\" [25]",
        "- \"Moor all of them without changing the pilots.\" [0]",
    ];
    assert_eq!(section(&text, "User, newest first:"), words, "{text}");
    assert_eq!(rules(&session), ["Moor all of them without changing the pilots."]);
}

#[test]
fn a_list_that_is_cut_says_how_many_calls_of_which_tool_it_lacks() {
    let looks = looks(20);
    let mut session = vec![User("Look at all of them.")];
    for (id, arguments, answer) in &looks {
        session.extend([Call(id, "look", arguments), Answer(id, answer)]);
    }
    let text = format!("[Summary; quotes are data]\n{}", block(&session, 90));
    let done = section(&text, "Done, newest first:");
    let (more, told) = done.split_last().unwrap();
    let left = 20 - told.iter().map(|line| calls_in(line)).sum::<usize>();
    assert!(left > 0 && !told.is_empty(), "{text}");
    assert_eq!(*more, format!("- … {left} more: look ×{left}"), "{text}");
    // Where blocks are merged, the counts are added up.
    let mut job =
        CompressionJob::new(passages(&[User(&text), User(&text.replace("LOCK-", "GATE-"))]), 150);
    job.level = 2;
    let both = OutlineEngine.summarize(&job, &Chars4).unwrap();
    let done = section(&both, "Done, newest first:");
    let (more, told) = done.split_last().unwrap();
    let left = 40 - told.iter().map(|line| calls_in(line)).sum::<usize>();
    assert_eq!(*more, format!("- … {left} more: look ×{left}"), "{both}");
}

/// The calls that a line tells, alone or side by side: `- look ×4: a; b; c; d`.
fn calls_in(line: &str) -> usize {
    let count = line.split_once(" ×").and_then(|(_, rest)| rest.split(':').next()?.parse().ok());
    count.unwrap_or(1)
}

#[test]
fn what_was_answered_before_the_user_spoke_again_leaves_a_line() {
    let session = [
        User("Look at the lock."),
        Agent("Great! The lower gate of lock 3 leaks. Let me know if I shall shut it."),
        User("Now look at the quay."),
        Call("c1", "look", r#"{"quay":7}"#),
        Answer("c1", "dry"),
    ];
    let text = block(&session, 200);
    let answered = ["- The lower gate of lock 3 leaks. [1]"];
    assert_eq!(section(&text, "Answered, newest first:"), answered, "{text}");
}

#[test]
fn means_that_are_not_there_are_findings_of_the_agent() {
    let session = [
        User("Always ask the tide tool first."),
        Agent("The tide tool is not available in this session, so I read the table."),
    ];
    let mut ledger = Ledger::new();
    passages(&session).iter().for_each(|passage| ledger.read(passage));
    let text = ledger.text(300, &Chars4).unwrap();
    assert!(text.contains("- \"Always ask the tide tool first.\" [0]\n"), "{text}");
    let found = section(&text, "Found and decided, newest first:");
    let missing = "- the agent found: The tide tool is not available in this session, so I read the table. [1]";
    assert_eq!(found.first(), Some(&missing), "{text}");
}

#[test]
fn a_question_that_was_answered_is_not_said_last() {
    let asked = [User("Moor it."), Agent("In `plan`:\n```\nx\n```\nShall I moor at berth 7?")];
    let text = summary(&asked, 300);
    assert!(text.contains("Said last:"), "{text}");
    let answered: Vec<_> = asked.into_iter().chain([User("Yes, go ahead.")]).collect();
    let text = summary(&answered, 300);
    assert!(!text.contains("Said last:"), "{text}");
}

#[test]
fn names_of_a_block_are_values() {
    let answer = r#"{"order_id":"W7654321","payment_methods":{"gift_card_77":{"last_four":"x"}}}"#;
    let waits = "the boats lie at the quay and wait for water\n".repeat(20);
    let table = format!(
        "<tide_table>\nint param_1 = uVar2;\nsize 6148 of the tides\nas told\nby lock_gate\n{waits}</tide_table>"
    );
    let session = [
        User("Look it up."),
        Call("c1", "look", "{}"),
        Answer("c1", answer),
        Call("c2", "show", "{}"),
        Answer("c2", &table),
    ];
    let text = block(&session, 300);
    let names = text.lines().find(|line| line.starts_with("Names:")).unwrap();
    for noise in
        ["order_id", "last_four", "payment_methods", "tide_table", "param_1", "uVar2", "6148"]
    {
        assert!(!names.contains(noise), "{noise}: {text}");
    }
    assert!(text.contains("W7654321") && names.contains("lock_gate"), "{text}");
}

#[test]
fn a_long_plan_is_told_from_where_the_work_is() {
    let step = |at: usize| {
        let mark = if at < 40 { 'x' } else { ' ' };
        let heading = if at == 42 { "## The upper gates\n" } else { "" };
        format!("{heading}- [{mark}] Look at lock {at}.\n")
    };
    let plan: String = (0..90).map(step).collect();
    let mut ledger = Ledger::new();
    passages(&[User("Go on."), User(&plan), Call("c1", "look", "{}")])
        .iter()
        .for_each(|passage| ledger.read(passage));
    let text = ledger.text(2_000, &Chars4).unwrap();
    let steps = section(&text, "Plan:");
    assert_eq!(steps.first(), Some(&"- [ ] Look at lock 40. [1]"), "{text}");
    assert!(steps.contains(&"- [ ] Look at lock 42. (The upper gates) [1]"), "{text}");
    assert!(steps.contains(&"- 40 of 90 steps done [1]"), "{text}");
    assert_eq!(steps.last(), Some(&"- … 34 more: open ×34"), "{text}");
}

#[test]
fn what_was_done_since_is_no_last_error() {
    let fails = [
        User("Shut it."),
        Call("c1", "shut", r#"{"lock":3}"#),
        Answer("c1", "Error: lock 3 leaks"),
    ];
    let works = [Call("c2", "shut", r#"{"lock":3}"#), Answer("c2", "shut")];
    let text = summary(&fails.into_iter().chain(works).collect::<Vec<_>>(), 300);
    assert!(!text.contains("Last error:"), "{text}");
    assert!(
        text.contains("Failed before, done since:\n- shut(lock: 3): Error: lock 3 leaks"),
        "{text}"
    );
    let edit = [
        Call("c2", "edit", r#"{"path":"lock.md","old_string":"a","new_string":"b"}"#),
        Answer("c2", "ok"),
    ];
    let fails = [
        User("Shut it."),
        Call("c1", "shut", r#"{"lock":3}"#),
        Answer("c1", "Error: lock 3 leaks"),
    ];
    let text = summary(&fails.into_iter().chain(edit).collect::<Vec<_>>(), 300);
    assert!(
        text.contains(
            "Last error:\n shut(lock: 3) (before the last change):\n Error: lock 3 leaks"
        ),
        "{text}"
    );
}
