//! Logs without calls: commands stand in what the agent says, and what they print in the user's
//! place.

use super::{Speaker, is_of_program};
use crate::{
    id::Role,
    steps::{Class, OwnWords, is_error_line, is_prompt, own_words::is_chat_head},
    veil::{CallOutcome, Source},
};

/// Who speaks in a history, text by text. That commands stand in the agent's text is known once
/// a program has answered one: before that a block of code may be anything.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TextLog {
    commands: Commands,
    /// Whether the user spoke.
    has_words: bool,
    /// How often the agent spoke, or made a call.
    #[serde(default, skip_serializing_if = "is_zero")]
    turns: u32,
    /// Whether the agent's last text holds a command.
    waits: bool,
    /// How often the user spoke in the place of its output.
    #[serde(default, skip_serializing_if = "is_zero")]
    objections: u32,
    /// How many answers had the signs of a program around them.
    #[serde(default, skip_serializing_if = "is_zero")]
    signed: u32,
    /// Whether an answer had none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_unsigned: bool,
}

/// Who says a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard<'t> {
    pub(crate) speaker: Speaker,
    /// Whether it answers a command in the agent's text.
    pub(crate) is_answer: bool,
    /// What the user wrote behind such an answer.
    pub(crate) behind: Option<&'t str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// After so many answers with the signs of a program, and none without, prose without them is what
/// somebody writes.
const PROVEN: u32 = 3;

/// Where the agent's commands stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
enum Commands {
    #[default]
    Unknown,
    /// A call was seen: then commands in texts are none.
    InCalls,
    /// A program answered a command in the agent's text.
    InTexts,
}

impl TextLog {
    pub(crate) fn sees_call(&mut self) {
        (self.commands, self.waits) = (Commands::InCalls, false);
        self.turns = self.turns.saturating_add(1);
    }

    /// Whether the agent spoke, or made a call: before that no program can have answered.
    pub(crate) fn has_spoken(&self) -> bool {
        self.turns > 0
    }

    /// Whether it is certain that the user speaks in the user's place: what tools answer stands
    /// elsewhere.
    pub(crate) fn is_certain(&self) -> bool {
        self.commands == Commands::InCalls
    }

    /// Whether commands may stand in texts.
    pub(crate) fn may_hold_commands(&self) -> bool {
        self.commands != Commands::InCalls
    }

    /// Whether a program answered a command in the agent's text.
    pub(crate) fn is_sure(&self) -> bool {
        self.commands == Commands::InTexts
    }

    /// Whether the agent's last text holds a command that nobody answered.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// The command in a text of the agent, where it may be one.
    pub(crate) fn command<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.may_hold_commands().then(|| fenced_command(text)).flatten()
    }

    /// Takes the next text, which is no call, result or thought. What the environment says in the
    /// user's place answers a command that waits, as a program does, and is nothing else.
    pub(crate) fn hears<'t>(
        &mut self,
        source: Option<&Source>,
        role: Role,
        text: &'t str,
    ) -> Heard<'t> {
        let waited = self.waits;
        let of_world =
            role == Role::User && matches!(source, Some(Source::Environment | Source::Other(_)));
        let speaker = if of_world {
            self.waits = false;
            Speaker::Program
        } else {
            self.speaker(role, text)
        };
        let is_answer = waited && speaker == Speaker::Program;
        let behind = words_behind(text).filter(|_| is_answer && !of_world);
        Heard { speaker, is_answer, behind }
    }

    fn speaker(&mut self, role: Role, text: &str) -> Speaker {
        match role {
            Role::Assistant => {
                (self.waits, self.objections) = (self.command(text).is_some(), 0);
                self.turns = self.turns.saturating_add(1);
                Speaker::Agent
            }
            Role::System => Speaker::Operator,
            Role::User => {
                let waits = std::mem::take(&mut self.waits);
                let objections = std::mem::take(&mut self.objections);
                // Behind what the user says in between comes a text with signs of a program, or none.
                let may_answer =
                    self.is_answer(waits, text) && (objections == 0 || has_signs(text));
                if may_answer && self.is_objection(text) {
                    (self.waits, self.objections) = (waits, objections.saturating_add(1));
                    self.has_words = true;
                    Speaker::User
                } else if may_answer {
                    self.commands = Commands::InTexts;
                    if has_signs(text) {
                        self.signed = self.signed.saturating_add(1);
                    } else {
                        self.has_unsigned = true;
                    }
                    Speaker::Program
                } else if is_of_program(text) || self.has_spoken() && is_quotation(text) {
                    Speaker::Program
                } else {
                    self.has_words = true;
                    Speaker::User
                }
            }
        }
    }

    fn is_answer(&self, waits: bool, text: &str) -> bool {
        if !self.may_hold_commands() {
            return false;
        }
        waits && (self.is_sure() || is_of_program(text) || is_output(text))
            || self.has_words && self.turns > 0 && is_signed(text)
    }

    /// Whether somebody writes in the place of an answer: all answers so far had the signs of a
    /// program, and this text has none and reads like prose.
    fn is_objection(&self, text: &str) -> bool {
        self.signed >= PROVEN && !self.has_unsigned && !has_signs(text) && !is_output(text)
    }
}

/// Whether a text has the signs of a program around it.
fn has_signs(text: &str) -> bool {
    is_of_program(text) || is_signed(text)
}

/// What somebody wrote behind the output of a program, in one text with it.
fn words_behind(text: &str) -> Option<&str> {
    let begins = text.trim_start().starts_with('<') && is_of_program(text);
    let (_, behind) = begins.then(|| text.rsplit_once("</output>")).flatten()?;
    let behind = behind.trim();
    behind.lines().next().is_some_and(is_prose).then_some(behind)
}

/// Whether a text has the signs of a shell or an editor: it ends with a prompt, or begins with a
/// line like `[File: a.py (9 lines)]`.
fn is_signed(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let last = lines.next_back().unwrap_or(first);
    let name = first.strip_prefix('[').and_then(|rest| rest.split_once(": "));
    let is_heading = first.ends_with(']')
        && name.is_some_and(|(name, _)| {
            name.len() < 24 && name.chars().all(|c| c.is_alphabetic() || c == ' ')
        });
    is_heading || is_prompt(last)
}

/// Whether a text reads like what a program prints, and not like what somebody writes.
fn is_output(text: &str) -> bool {
    if is_signed(text) || Class::of(CallOutcome::Unstated, text, None).is_failure() {
        return true;
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let prose = lines.iter().filter(|line| is_prose(line)).count();
    match lines.as_slice() {
        [] => true,
        [line] => is_error_line(line) || !line.contains(' ') && line.contains(['/', '.', '_', '=']),
        lines => prose * 2 < lines.len(),
    }
}

/// Whether a line is of words.
fn is_prose(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', '>', '#', ' ']);
    let plain = line.chars().filter(|c| c.is_alphabetic() || " ,.'!?’".contains(*c)).count();
    line.starts_with(char::is_alphabetic)
        && line.split_whitespace().nth(1).is_some()
        && plain * 20 >= line.chars().count() * 17
}

/// The command in the agent's text, in a log without calls: the last fenced block that is meant for
/// a shell or names no language.
pub(crate) fn fenced_command(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut found = None;
    while let Some((_, after)) = rest.split_once("```") {
        let (language, body) = after.split_once('\n')?;
        let (body, next) = body.split_once("```")?;
        let language = language.trim().to_ascii_lowercase();
        let is_shell = language.is_empty() && is_command(body)
            || ["sh", "bash", "shell", "zsh", "console", "terminal", "command"]
                .iter()
                .any(|shell| language.contains(shell));
        if is_shell && !body.trim().is_empty() {
            found = Some(body.trim());
        }
        rest = next;
    }
    found
}

/// Whether a block of code that names no language reads like a command: its first word is that of
/// a program, and its first line no sentence.
fn is_command(body: &str) -> bool {
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(line) = lines.filter(|line| !line.starts_with('#')).find(|_| true) else {
        return false;
    };
    let first = line.trim_start_matches(['$', '(', ' ']).split(' ').next().unwrap_or_default();
    let is_word = first.starts_with(|c: char| c.is_ascii_lowercase() || "./~_".contains(c))
        || first.contains('=') && first.starts_with(|c: char| c.is_ascii_uppercase());
    let is_clean = first.chars().all(|c| c.is_ascii_alphanumeric() || "_-./~+=\"'$:".contains(c));
    let is_sentence = line.split_whitespace().nth(3).is_some()
        && (line.ends_with(['.', '!', '?', ':', ',']) || is_prose(line) && line.contains(", "));
    is_word && is_clean && !first.ends_with([':', '.', ',']) && !is_sentence
}

/// Whether all of a text is quoted.
fn is_quotation(text: &str) -> bool {
    let text = text.trim_start();
    let is_chat = || text.lines().next().is_some_and(is_chat_head);
    let may_be = !text.starts_with(char::is_alphanumeric) || is_chat();
    may_be && OwnWords::of(text).is_quotation()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_of_a_text_is_found() {
        assert_eq!(fenced_command("I look.\n```bash\nls -la\n```"), Some("ls -la"));
        assert_eq!(fenced_command("```\nopen a.py 3\n```\nThen more."), Some("open a.py 3"));
        assert_eq!(
            fenced_command("```\n# look\nPORT=1 ./run.sh\n```"),
            Some("# look\nPORT=1 ./run.sh")
        );
        assert_eq!(fenced_command("```python\nx = 1\n```"), None);
        assert_eq!(fenced_command("no block"), None);
        assert_eq!(fenced_command("```bash\nnever closed"), None);
        for prose in [
            "```\nRefund: 5\n```",
            "```\nThe ship sails at noon\n```",
            "```\nwe would leave at six, then wait for the tide.\n```",
            "```\n{\"a\": 1}\n```",
        ] {
            assert_eq!(fenced_command(prose), None, "{prose}");
        }
    }

    fn speakers(said: &[(Role, &str)]) -> Vec<Speaker> {
        let mut log = TextLog::default();
        said.iter().map(|(role, text)| log.hears(None, *role, text).speaker).collect()
    }

    #[test]
    fn prose_in_the_place_of_an_output_is_the_users_where_all_outputs_have_signs() {
        let objection = "Stop. Never push to main, ask the harbour master first.";
        let last = |outputs: &[&str]| {
            let command = (Role::Assistant, "I push.\n```bash\ngit push\n```");
            let mut said = vec![(Role::User, "Mend the quay.")];
            said.extend(outputs.iter().flat_map(|output| [command, (Role::User, *output)]));
            said.extend([command, (Role::User, objection)]);
            *speakers(&said).last().unwrap()
        };
        let signed = "<returncode>0</returncode>\n<output>\nquay.rs\n</output>";
        assert_eq!(last(&[signed; 3]), Speaker::User);
        assert_eq!(last(&[signed; 2]), Speaker::Program);
        assert_eq!(last(&[signed, signed, signed, "quay.rs"]), Speaker::Program);
    }

    #[test]
    fn what_the_user_says_behind_an_objection_is_no_output_and_an_output_is() {
        let command = (Role::Assistant, "I push.\n```bash\ngit push\n```");
        let signed = (Role::User, "<returncode>0</returncode>\n<output>\nquay.rs\n</output>");
        let objection = (Role::User, "Stop. I will paste the settings.");
        let settings = (Role::User, "port=7\nquay=9\nberth=4\nNever use port 80.");
        let mut said = vec![(Role::User, "Mend the quay.")];
        (0..3).for_each(|_| said.extend([command, signed]));
        said.extend([command, objection, settings, command, objection, signed]);
        said.extend([command, objection]);
        let (user, agent, program) = (Speaker::User, Speaker::Agent, Speaker::Program);
        let expected = [agent, user, user, agent, user, program, agent, user];
        assert_eq!(speakers(&said).split_off(7), expected);
    }

    #[test]
    fn words_behind_an_output_are_found() {
        let output = "<returncode>0</returncode>\n<output>\nquay.rs\n</output>";
        let words = "By the way: never touch k3.py line 3.";
        assert_eq!(words_behind(&format!("{output}\n\n{words}\n")), Some(words));
        assert_eq!(words_behind(output), None);
        assert_eq!(words_behind(&format!("{output}\nbash-$")), None);
        assert_eq!(words_behind(&format!("The text </output> {words}")), None);
    }

    #[test]
    fn a_program_answers_a_command_and_a_person_what_reads_like_one() {
        let (user, agent) = (Role::User, Role::Assistant);
        let command = (agent, "I look.\n```\nls\n```");
        let of_chat =
            [(user, "Fix it."), command, (user, "Thanks, that did it. Never do it again.")];
        assert_eq!(speakers(&of_chat), [Speaker::User, Speaker::Agent, Speaker::User]);
        let log = [
            (user, "Fix the tide.\n(Open file: n/a)\nbash-$"),
            command,
            (user, "tide.py\nquay.py\nbash-$"),
            command,
            (user, "Wrong guess, try once more"),
            (agent, "No command here."),
            (user, "[File: tide.py (3 lines total)]\n1:x"),
            (agent, "I give up."),
            (user, "Then leave it."),
        ];
        let (said, answered) = (Speaker::User, Speaker::Program);
        let agent = Speaker::Agent;
        let expected = [said, agent, answered, agent, answered, agent, answered, agent, said];
        assert_eq!(speakers(&log), expected);
    }
}
