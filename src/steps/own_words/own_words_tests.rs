use super::*;

#[test]
fn what_the_user_quotes_is_none_of_the_users_words() {
    let check = |text: &str, own: &str| assert_eq!(OwnWords::of(text).own(), own, "{text}");
    check(
        "Never push.\n<document>\nAlways push.\n</document>\nThanks.",
        "Never push.\n[…]\nThanks.",
    );
    check("<file path=\"a\">Always push.</file> Look at it.", "[…] Look at it.");
    check("<ide_selection>\nAlways push.", "");
    check("<file>\n</file>\nAlways push.\n</file>\nNo.", "[…]\nNo.");
    check("They say:\n> Always push.\nand so on\n\nNo.", "They say:\n[…]\n\nNo.");
    check(
        "Use \"hemp\" in `a.rs`. He wrote \"Always push. Never ask.\"",
        "Use \"hemp\" in `a.rs`. He wrote […]",
    );
    for own in [
        "<task>\nNever push.\n</task>",
        "<rules>\nNever push.\n</rules>",
        "Mend it.\n<instructions>\nNever push.\n</instructions>",
        "<user_query>\nNever push.\n</user_query>",
        "# Gate\nMend it.",
        "a < b\n<3",
        "See <https://a.example/b> first.",
        "Put it in <sum> tags.\n\n</sum>",
        "- Never push.\n- Always ask.",
    ] {
        check(own, own);
    }
    let editor = "# Context from my IDE setup:\nAlways push.\n## My request for Codex:\nLook.";
    check(editor, "[…]\nLook.");
}

#[test]
fn no_message_loses_all_of_its_words() {
    let check = |text: &str, words: &str| assert_eq!(OwnWords::of(text).words(), words, "{text}");
    check("Never push.\n```\nAlways push.\n```\nThanks.", "Never push.\n[…]\nThanks.");
    check("<ide_selection>\nAlways push.", "> <ide_selection>\n> Always push.");
    check("He wrote \"Always push. Never ask.\"", "He wrote \"Always push. Never ask.\"");
    let log = "User: Mend it.\n\nAssistant: I look.\n\nAlways push it.";
    check(log, "> User: Mend it.\n[…]");
    let session = format!("=== Session 1 ===\n{log}\n=== end ===\nAlways push it.\n=== end ===");
    check(&session, "> === Session 1 ===\n> User: Mend it.\n[…]");
    check(&format!("The log:\n\n{log}\n\nGo on."), "The log:\n\n[…]\n\nGo on.");
    for own in [
        "The README says to use npm, but please always use pnpm.",
        "15:30 is the freeze. Never merge after it.",
        "Error: handling first. Rewrite it.",
        "Subject: the crane module\nPlease rewrite it and never use unsafe.",
        "$5 per run is fine, never spend more.",
        "Always answer in German.\nOutput: a patch.",
        "On Monday Bob wrote the loader: never change it.",
        "\"Look again.\"",
        "Goal: mend it\nStyle: never use tabs",
        "✓ is fine. Never use ✗.",
        "I say: always use spaces.",
        "Mend it.  It is old.\nAsk me.  Never push it.",
        "It costs 1,000.\nNever spend 2,000.",
        "It broke two days ago\nNever push before it is green.",
        "The build:\nNever use sudo there.",
        "Fix the following line in a.rs.\n\nNever push it.",
        "Der Hafen für Züge:\nNiemals pushen.",
    ] {
        check(own, own);
    }
}

#[test]
fn rules_stand_beside_what_is_quoted() {
    let check = |text: &str, rules: &[&str]| {
        let found: Vec<&str> = OwnWords::of(text).rules().map(|(_, rule)| rule).collect();
        assert_eq!(found, rules, "{text}");
    };
    for text in [
        "Never use the word \"very\" here.",
        "`main` must never be pushed to.",
        "Don't touch the users' files, that's a rule.",
        "Answer only with \"yes\" or \"no\".",
        "As I said, never push.",
        "Mend what Bob says and never tell him.",
        "If it says closed, never moor there.",
        "Make sure the page says: it is shut.",
        "Never wait 5' or 6\" longer than that.",
        "You must run <b>all</b> of the tests.",
        "$5 per run is fine, never spend more.",
    ] {
        check(text, &[text]);
    }
    check(
        "The README says to use npm, but please always use pnpm.",
        &["The README says to use npm, but please always use pnpm."],
    );
    for text in [
        "Summarise the following text.\n\nAlways push it.",
        "The page reads as follows.\n\nAlways push it.",
        "=== notes.txt ===\nAlways push it.\n=== end ===",
        "ann@host:~/x$ cat a\nAlways push it.",
        "PS C:\\w> type a\nAlways push it.",
        "who,what\nbob,You must always push it.",
        "note: |\n  Always push it.",
        "The wiki lists these:\n- Always push it.",
        "notes.txt:\nAlways push it.",
        "Im README steht Folgendes:\nAlways push it.",
        "Боб пишет: Always push it.",
        "dependabot commented 2 days ago\nAlways push it.",
        "Reviewer comment:\nAlways push it.",
        "remote: ok\nremote: You must always push it.",
        "✓ Always push it (3 ms)\n✓ Never ask (1 ms)",
        "3f2a9c1 Always push it\n77aa01b Never ask me",
        "TIDE-1: Always push it\nTIDE-2: Never ask me",
        "karl: always push it\nmia: never ask him",
        "-- 8< --\nAlways push it.\n-- >8 --",
        "[TOOL_RESULTS]\nAlways push it.\n[/TOOL_RESULTS]",
        "Change its title to Always push it.",
        "The button reads You must never push.",
        "Ecco la mail di Bob:\nYou must push it.",
        "The ticket says:\n\n### Steps\n1. Always push it.",
        "## notes.txt\nAlways push it.",
        "Laut Bob: es eilt. Always push it.",
        "---\ntitle: x\n---\nAlways push it.",
        "who | what\n----+-----\nbob | You must always push it.",
        "keys:\n  note: You must always push it.",
        "note = '''\nAlways push it.\n'''",
        "1\n00:00:01,000 --> 00:00:03,000\nAlways push it.",
        "who     what\nbob     You must always push it.",
        "-----8<-----\nAlways push it.",
    ] {
        check(text, &[]);
    }
    check("Please:\n- Never push.\n- Always ask first.", &["Always ask first."]);
    check("While you write it:\n- Always sign it.", &["Always sign it."]);
    check("One thing to remember:\nNever light it.", &["Never light it."]);
    check("Rules for the email:\n- Always sign the email.", &["Always sign the email."]);
    check("The log:\n```\nAlways push it.\n```\nNever push it.", &["Never push it."]);
    // What stands behind output is the user's again, and what somebody wrote goes on.
    let log = "[000] tide at 7\n[001] tide at 9";
    for behind in ["Now mend it.", "Mend it.\n\nAnd before:\n[002] tide at 11\n\n[003] low"] {
        for lead in ["Output so far:", "I saw this when I ran it:", "It prints:", "The log:"] {
            let text = format!("{lead}\n{log}\n\nNever light it again.\n\n{behind}");
            check(&text, &["Never light it again."]);
            let text = format!("{lead}\n{log}\n\nLit.\n\n{log}\n\nNever light it again. {behind}");
            check(&text, &["Never light it again."]);
        }
        let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3\nValueError: bad";
        check(&format!("{trace}\n\nNever light it again.\n\n{behind}"), &["Never light it again."]);
    }
    for lead in ["Bob wrote:", "The wiki lists these:", "I got this email:"] {
        check(&format!("{lead}\n{log}\n\nAlways push it."), &[]);
    }
    for text in ["Harbour rules\nof 2021", "Berth 7", "Moor at 7.", "Moor at 7\n2. Sound"] {
        check(&format!("Output so far:\n{text}\n\nAlways push it."), &[]);
    }
    check("It prints: lamp must burn.\n\nNever light it again.", &["Never light it again."]);
}

#[test]
fn no_rule_stands_between_blocks_that_open_again_nor_in_a_log_of_a_chat() {
    let check = |text: &str, rules: &[&str]| {
        let found: Vec<&str> = OwnWords::of(text).rules().map(|(_, rule)| rule).collect();
        assert_eq!(found, rules, "{text}");
    };
    for (open, close) in
        [("```", "```"), ("~~~~", "~~~~"), ("<!--", "-->"), ("=== a ===", "=== end ===")]
    {
        let text = |behind: &str| format!("Look.\n{open}\nx\n{close}\nAlways push it.{behind}");
        check(&text(""), &["Always push it."]);
        check(&text(&format!("\n{open}\ny\n{close}\nNever light it.")), &["Never light it."]);
        check(&text(&format!("\n{close}\nx")), &[]);
    }
    let code = "```sh\nx\n```\nNever light it.\n```sh\ny\n```";
    check(&format!("Run this.\n{code}"), &["Never light it."]);
    check(&format!("Here is what Bob sent:\n{code}"), &[]);
    for [user, agent] in [
        ["User: Mend it.", "Assistant: I look."],
        ["## User\n\nMend it.", "## Assistant\n\nI look."],
        ["**Usuario:** Repáralo.", "**Asistente:** Miro."],
        ["You said:\nMend it.", "ChatGPT said:\nI look."],
        ["❯ Mend it.", "● I look."],
        ["› Mend it.", "⏺ I look."],
        ["[2031-05-02 10:02:11] user: Mend it.", "[10:03] assistant: I look."],
        ["用户（小林）：修好它。", "助手：我看看。"],
        ["[user]\nMend it.", "[assistant]\nI look."],
        ["--- Benutzer ---\nMach es.", "--- Assistent ---\nJa."],
    ] {
        let log = format!("{user}\n\n{agent}\n\nlow tide\n\nAlways push it.");
        check(&log, &[]);
        check(&format!("{log}\n\n{user}\n\nNever ask."), &[]);
        check(&format!("Never light it.\n\n{log}\n\nAlways ask."), &["Never light it."]);
        check(&format!("```\n{log}\n```\n\nNever light it."), &["Never light it."]);
    }
    for text in [
        "User: a sailor.\n\nNever light it.",
        "- User: may look.\n- Agent: may push.\n\nNever light it.",
        "User (admin) is a name.\n\nAgent is another.\n\nNever light it.",
        "User stories: three.\nAgent settings: none.\n\nNever light it.",
        "> They asked.\n\n● One\n● Two\n\nNever light it.",
    ] {
        check(text, &["Never light it."]);
    }
}

#[test]
fn only_what_stands_before_all_material_is_certain() {
    let check = |text: &str, certain: &[bool]| {
        let found: Vec<bool> = OwnWords::of(text).sentences().map(|of| of.is_certain).collect();
        assert_eq!(found, certain, "{text}");
    };
    check("Forget that. You may push `main` now. Thanks.", &[true, true, true]);
    check("<user_query>\nYou may push now.\n</user_query>", &[true]);
    check("<file>\nx\n</file>\n<user_query>\nYou may push.\n</user_query>", &[true]);
    check("You may push.\n```\nx\n```\nYou may push.", &[false, false]);
    check("Do this:\n- You may push.", &[true, false]);
    check("I found this:\n- You may push.", &[true]);
    check("- You may push.\nNote: you may push.", &[false, false]);
    check("It is \"Go on. Push.\" You may push.", &[false, false]);
    check("You may push now.\n\n-- Karl", &[false]);
    check("You may push now.\n\n```\nok\n```", &[true]);
    check("You may push now. Is that right?", &[false, false]);
    check("You may push now — the wiki.", &[false]);
}

#[test]
fn a_part_of_a_text_keeps_the_marks_of_what_it_cuts() {
    let check = |text: &str, from: &str, to: &str, kept: &str| {
        let range = text.find(from).unwrap()..text.find(to).unwrap() + to.len();
        assert_eq!(OwnWords::of(text).kept(range), kept, "{text}");
    };
    check("Look:\n```sh\nmake a\nmake b\n```\nNo.", "make b", "No.", "```sh\nmake b\n```\nNo.");
    check("Look:\n```sh\nmake a\nmake b\n```\nNo.", "Look", "make a", "Look:\n```sh\nmake a\n```");
    check("> one two three\n> four", "two", "four", "> two three\n> four");
    check("<doc>\na\nb\n</doc>", "b", "b", "<doc>\nb</doc>");
    check("He: “One. Two. Three.”", "Two", "Two.", "“Two.”");
    check("Bob wrote:\nOne.\n\nTwo.", "Two", "Two.", "Bob wrote:\nTwo.");
    check("Never push. Ask.", "push", "Ask.", "push. Ask.");
    check("User: Go.\nAssistant: Yes.\n\nPush.", "Push", "Push.", "[pasted log]\nPush.");
}

#[test]
fn the_tags_of_clients_around_a_message_are_none_of_its_words() {
    let check = |text: &str, words: &str| assert_eq!(OwnWords::of(text).inside_of_tags(), words);
    check("<current_datetime>t</current_datetime>\n\nMend it.", "Mend it.");
    check("<user_input mode=\"act\">Mend it.</user_input>", "Mend it.");
    check("<user_query>\nMend <b>it</b>.\n</user_query>\n", "Mend <b>it</b>.");
    for text in ["# Gate\nMend it.", "> Mend it.", "Mend <file>a</file> it.", "<doc>a</doc>"] {
        check(text, text);
    }
}
