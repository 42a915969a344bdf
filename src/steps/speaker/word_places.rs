use super::{Speaker, TextLog, is_of_program, may_be_words, text_log::fenced_command};
use crate::{
    id::{ChunkType, Role},
    snapshot::{ChunkRef, FrameSnapshot, PartRef},
    veil::Source,
};

/// Where the user's words stand in a history, and which frames hold the output of commands in the
/// user's place: told by the frame's source and by its parts, not by the role alone. Each frame is looked at
/// once.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordPlaces {
    /// The indices of the frames with words of the user, in order.
    all: Vec<usize>,
    /// The frame of the agent's last command.
    command: usize,
    log: TextLog,
}

/// Whose words a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameWords {
    /// Whether they are the user's, or some of them.
    pub(crate) of_user: bool,
    /// Of a frame with a program's answer to a command in the agent's text, the frame of that command.
    pub(crate) command: Option<usize>,
    /// Whether the frame holds nothing but such an answer.
    pub(crate) is_output: bool,
}

impl WordPlaces {
    /// Looks at the next frame.
    pub(crate) fn read(
        &mut self,
        index: usize,
        source: &Source,
        snapshot: &FrameSnapshot,
    ) -> FrameWords {
        let (mut is_words, mut is_output, mut is_more) = (false, false, false);
        let formatting = Some(ChunkType::FORMATTING.as_str());
        for chunk in snapshot.chunks().filter(|chunk| chunk.chunk_type() != formatting) {
            match chunk.part() {
                PartRef::Text if chunk.content().trim().is_empty() => {}
                PartRef::Text if may_be_words(chunk.chunk_type()) => {
                    let role = chunk.role().unwrap_or(Role::User);
                    let heard = self.log.hears(Some(source), role, chunk.content());
                    is_words |= heard.speaker == Speaker::User && *source == Source::User;
                    is_output |= heard.is_answer;
                    is_more |= !heard.is_answer || heard.behind.is_some();
                    // The operator may speak between a command and its output.
                    if heard.speaker == Speaker::Agent && self.log.waits() {
                        self.command = index;
                    }
                }
                PartRef::Call { .. } => {
                    self.log.sees_call();
                    is_more = true;
                }
                _ => is_more = true,
            }
        }
        if is_words {
            self.all.push(index);
        }
        let command = is_output.then_some(self.command);
        FrameWords { of_user: is_words, command, is_output: is_output && !is_more }
    }

    /// Whether the agent's texts may hold commands.
    pub(crate) fn may_hold_commands(&self) -> bool {
        self.log.may_hold_commands()
    }

    /// Whether a frame holds words of the user.
    pub(crate) fn holds(&self, index: usize) -> bool {
        self.all.binary_search(&index).is_ok()
    }

    /// The frame of the user's first message.
    pub(crate) fn first(&self) -> Option<usize> {
        self.all.first().copied()
    }

    /// The frame of the user's last instruction.
    pub(crate) fn last(&self) -> Option<usize> {
        self.all.last().copied()
    }
}

/// The texts that the user says in a frame with words of theirs: what programs put beside them is
/// left out.
pub(crate) fn said_by_user(snapshot: &FrameSnapshot) -> impl Iterator<Item = &str> {
    let texts = snapshot.chunks().filter(|chunk| {
        let role = chunk.role().unwrap_or(Role::User);
        matches!(chunk.part(), PartRef::Text)
            && may_be_words(chunk.chunk_type())
            && role == Role::User
            && !is_of_program(chunk.content())
    });
    texts.map(ChunkRef::content)
}

/// The last command in what the agent says in a frame.
pub(crate) fn last_command(snapshot: &FrameSnapshot) -> Option<&str> {
    let is_said = |chunk: &ChunkRef<'_>| {
        matches!(chunk.part(), PartRef::Text)
            && may_be_words(chunk.chunk_type())
            && chunk.role() == Some(Role::Assistant)
    };
    snapshot
        .chunks()
        .filter(is_said)
        .filter_map(|chunk| fenced_command(chunk.content()))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        id::Millis,
        snapshot::{ChunkOptions, FrameSnapshotBuilder},
        tokens::Chars4,
    };

    const COMMAND: &str = "I look.\n```bash\ncat a.rs\n```";
    const OUTPUT: &str = "<output>\ncalm water\n</output>";

    /// The places in frames that hold a text each, and the command that each answers.
    fn places(frames: &[(Source, &str)]) -> (WordPlaces, Vec<Option<usize>>) {
        let (mut places, mut commands) = (WordPlaces::default(), Vec::new());
        for (index, (source, text)) in frames.iter().enumerate() {
            let role = match source {
                Source::Agent => Role::Assistant,
                Source::System => Role::System,
                _ => Role::User,
            };
            let mut builder = FrameSnapshotBuilder::new(&Chars4);
            builder.add_content(text, ChunkOptions::new().role(role));
            let words = places.read(index, source, &builder.build(Millis::new(0)));
            commands.push(words.command);
        }
        (places, commands)
    }

    #[test]
    fn an_output_answers_the_command_also_after_words_of_the_operator() {
        let (_, commands) = places(&[
            (Source::User, "Fix it."),
            (Source::Agent, COMMAND),
            (Source::System, "Half of the budget is left."),
            (Source::User, OUTPUT),
        ]);
        assert_eq!(commands[3], Some(1));
    }

    #[test]
    fn an_output_answers_the_command_also_after_words_of_the_user() {
        let (command, output) = ((Source::Agent, COMMAND), (Source::User, OUTPUT));
        let mut frames = vec![(Source::User, "Fix it.")];
        (0..3).for_each(|_| frames.extend([command.clone(), output.clone()]));
        frames.extend([command, (Source::User, "Stop. Never push to main."), output]);
        let (places, commands) = places(&frames);
        assert_eq!((commands[8], places.holds(8)), (None, true));
        assert_eq!(commands[9], Some(7));
    }

    #[test]
    fn what_the_environment_says_unasked_does_not_tell_where_commands_stand() {
        let words = "Wrong file, try the other one";
        let of_world = "[File: a.rs (3 lines total)]\n1:calm water";
        let ask = (Source::User, "Fix it.");
        let (command, words) = ((Source::Agent, COMMAND), (Source::User, words));
        let (said, commands) =
            places(&[ask.clone(), (Source::Environment, of_world), command, words]);
        assert_eq!((commands[1], commands[3]), (None, None));
        assert!(said.holds(3));
        // It answers a command that waits.
        let command = (Source::Agent, COMMAND);
        let (answered, commands) = places(&[ask, command, (Source::Environment, "calm water")]);
        assert_eq!(commands[2], Some(1));
        // Neither takes the place of the user.
        assert_eq!((said.first(), answered.last()), (Some(0), Some(0)));
    }
}
