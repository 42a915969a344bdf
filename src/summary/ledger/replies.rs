//! What the agent answered to a request of the user: the body of its last text before the user
//! speaks again.

use crate::{
    id::FrameSeq,
    steps::{lower, sentences},
    text::{
        first_bytes, flat, holds,
        words::replies::{CLOSINGS, TELLING},
    },
};

/// The bytes of an answer that are kept.
const LONGEST: usize = 600;

/// The bytes of an answer that are looked at.
const LOOKED_AT: usize = 4_000;

/// An exclamation of at most so many words says nothing: `Perfect!`.
const EXCLAMATION: usize = 4;

/// What the agent answered, request by request.
#[derive(Debug, Default)]
pub(super) struct Replies {
    of: Vec<(FrameSeq, String)>,
    /// The last text of the agent since the user spoke, with no call behind it.
    last: Option<(FrameSeq, String)>,
    /// Whether the user spoke.
    is_asked: bool,
}

impl Replies {
    pub(super) fn user_speaks(&mut self) {
        self.settle();
        self.is_asked = true;
    }

    pub(super) fn agent_speaks(&mut self, frame: FrameSeq, text: &str) {
        self.last = Some((frame, text.to_owned()));
    }

    /// The text before a call told what comes, and answered nothing.
    pub(super) fn agent_calls(&mut self) {
        self.last = None;
    }

    fn settle(&mut self) {
        let body = self.last.take().and_then(|(frame, text)| Some((frame, body(&text)?)));
        self.of.extend(body);
    }

    /// The answers that the user went on from, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &(FrameSeq, String)> {
        self.of.iter().rev()
    }

    /// The last one, to which the user said nothing yet.
    pub(super) fn open(&self) -> Option<(FrameSeq, String)> {
        let (frame, text) = self.last.as_ref().filter(|_| self.is_asked)?;
        Some((*frame, body(text)?))
    }
}

/// The first sentences of an answer that say something: neither an exclamation at its beginning
/// nor what only closes it.
fn body(text: &str) -> Option<String> {
    let mut body = String::new();
    for said in sentences(text) {
        let words = said.split_whitespace().count();
        let is_exclaimed = body.is_empty() && said.ends_with('!') && words <= EXCLAMATION;
        if is_exclaimed || holds(&lower(said), &CLOSINGS) {
            continue;
        }
        if !body.is_empty() {
            body.push(' ');
        }
        body.push_str(said);
        if body.len() >= LOOKED_AT {
            break;
        }
    }
    let body = telling(&body.replace("**", ""), LONGEST);
    body.contains(' ').then_some(body)
}

/// An answer in about `most` bytes: the sentences that tell a figure or a limit before others, in
/// order. Of a single sentence its beginning and its end, where the figure mostly stands.
pub(super) fn telling(answer: &str, most: usize) -> String {
    if answer.len() <= most {
        return answer.to_owned();
    }
    let said: Vec<&str> = sentences(answer).collect();
    let mut order: Vec<(bool, usize)> = said
        .iter()
        .enumerate()
        .map(|(at, said)| {
            let has_figure = said.contains(|c: char| c.is_ascii_digit());
            (!has_figure && !holds(&lower(said), &TELLING), at)
        })
        .collect();
    order.sort_unstable();
    let mut left = most;
    let mut kept: Vec<usize> = Vec::new();
    for (_, at) in &order {
        let cost = said.get(*at).map_or(usize::MAX, |said| said.len() + GAP.len());
        if cost <= left {
            left -= cost;
            kept.push(*at);
        }
    }
    kept.sort_unstable();
    let Some(last) = kept.last().copied() else {
        let first = order.first().and_then(|(_, at)| said.get(*at)).copied();
        return without_middle(first.unwrap_or(answer), most);
    };
    let mut text = String::new();
    let mut next = 0;
    for at in kept {
        text.push_str(match (at == next, text.is_empty()) {
            (true, true) => "",
            (true, false) => " ",
            (false, true) => "… ",
            (false, false) => GAP,
        });
        text.push_str(said.get(at).copied().unwrap_or_default());
        next = at + 1;
    }
    if last + 1 < said.len() {
        text.push_str(" …");
    }
    text
}

/// What stands between sentences where others are left out.
const GAP: &str = " … ";

/// A text in at most about `most` bytes: its beginning, and what leads to its last figure, or its
/// end; between words.
fn without_middle(text: &str, most: usize) -> String {
    let line = flat(text);
    if line.len() <= most {
        return line;
    }
    let room = most.saturating_sub(GAP.len()) / 2;
    let figure = line.rfind(|c: char| c.is_ascii_digit());
    let behind = figure.and_then(|at| Some(at + line.get(at..)?.find(' ')?));
    let to = behind.filter(|to| *to > most).unwrap_or(line.len());
    let head = first_bytes(&line, room);
    let head = head.rfind(' ').and_then(|at| head.get(..at)).unwrap_or(head);
    let tail = (to.saturating_sub(room)..=to).find_map(|at| line.get(at..to)).unwrap_or_default();
    let tail = tail.find(' ').and_then(|at| tail.get(at + 1..)).unwrap_or(tail);
    let end = if to < line.len() { " …" } else { "" };
    format!("{}{GAP}{}{end}", head.trim_end(), tail.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_body() {
        let text = "Perfect!\nThe lock leaks at its lower gate. The upper one holds.\n\
            ```\nlock --all\n```\nWould you like me to shut it? Let me know if this works for you.";
        assert_eq!(body(text).unwrap(), "The lock leaks at its lower gate. The upper one holds.");
        assert_eq!(body("Great! Let me know if I can do more."), None);
    }

    #[test]
    fn a_short_answer_tells_what_it_costs_and_what_cannot_be() {
        let answer = "I have looked at all berths of the harbour for you. Berth 7 costs 40 a day. \
            The pilot cannot come on Tuesday. The weather will be fine.";
        assert_eq!(telling(answer, 200), answer);
        assert_eq!(
            telling(answer, 80),
            "… Berth 7 costs 40 a day. The pilot cannot come on Tuesday. …"
        );
        let long = "The price of a berth for one more day at the northern quay of the harbour with \
            water and power comes to 105 in all, if you would like to take it.";
        assert_eq!(telling(long, 60), "The price of a berth for … and power comes to 105 …");
    }

    #[test]
    fn what_is_said_before_a_call_is_no_answer() {
        let at = FrameSeq::new;
        let mut answers = Replies::default();
        answers.user_speaks();
        answers.agent_speaks(at(1), "I look at the lock.");
        answers.agent_calls();
        answers.agent_speaks(at(3), "The lock leaks.");
        assert_eq!(answers.open(), Some((at(3), "The lock leaks.".to_owned())));
        answers.user_speaks();
        assert_eq!(answers.open(), None);
        assert_eq!(
            answers.newest_first().collect::<Vec<_>>(),
            [&(at(3), "The lock leaks.".to_owned())]
        );
    }
}
