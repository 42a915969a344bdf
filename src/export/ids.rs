//! Ids and names that a provider takes.

use std::collections::HashSet;

use super::{owned::OwnedJson, report::ExportReport};
use crate::{hud::Owner, id::FrameSeq};

/// What a provider asks of the ids of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdRules {
    /// How many characters an id may have.
    pub(super) longest: usize,
    /// Whether letters, digits, `_` and `-` are all that it may have.
    pub(super) plain: bool,
    /// Whether two calls anywhere in a request may not share one. Else those of one message may not.
    pub(super) unique: bool,
    /// Whether a call may have none.
    pub(super) optional: bool,
}

/// The ids that are taken.
#[derive(Debug, Default)]
pub(super) struct Ids {
    taken: HashSet<String>,
}

/// An id as a provider takes it.
#[derive(Clone, Debug)]
pub(super) struct Id {
    pub(super) text: String,
    /// Whether it is the source's own.
    pub(super) recorded: bool,
}

impl Ids {
    /// Forgets the ids of the messages so far, where only those of one message must differ.
    pub(super) fn next_message(&mut self, rules: IdRules) {
        if !rules.unique {
            self.taken.clear();
        }
    }

    /// An id for the call that is item `index` of `frame`. What it is depends on the calls before
    /// it alone, so that an id that was sent stays.
    pub(super) fn give(
        &mut self,
        recorded: Option<&str>,
        frame: Option<FrameSeq>,
        index: usize,
        rules: IdRules,
        report: &mut ExportReport,
    ) -> Id {
        let recorded = recorded.filter(|id| !id.is_empty());
        let wanted = match recorded {
            Some(id) => fitting(id, rules),
            None if rules.optional => return Id { text: String::new(), recorded: false },
            None => format!("call_{}_{index}", frame.map_or(0, FrameSeq::get)),
        };
        let mut text = wanted.clone();
        let mut number = 2;
        while !self.taken.insert(text.clone()) {
            let suffix = format!("_{number}");
            let room = rules.longest.saturating_sub(suffix.len());
            text = format!("{}{suffix}", wanted.get(..room).unwrap_or(&wanted));
            number += 1;
        }
        match recorded {
            None => report.normalise("id_made_up"),
            Some(_) if text != wanted => report.normalise("id_repeated"),
            Some(id) if text != id => report.normalise("id_respelled"),
            Some(_) => {}
        }
        Id { recorded: recorded == Some(&text), text }
    }
}

impl Id {
    pub(super) fn owned(&self, owner: &Owner) -> OwnedJson {
        if self.recorded {
            OwnedJson::of_text(&self.text, owner)
        } else {
            OwnedJson::framing(&self.text, "call_id")
        }
    }
}

/// The id as it is where it fits, else what is left of it and a hash of the whole.
fn fitting(id: &str, rules: IdRules) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = !rules.plain || id.chars().all(is_plain);
    if plain && id.chars().count() <= rules.longest {
        return id.to_owned();
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    let hash = hash.get(..12).unwrap_or_default();
    let room = rules.longest.saturating_sub(hash.len() + 1);
    let kept: String = id.chars().map(|c| if is_plain(c) { c } else { '_' }).take(room).collect();
    format!("{kept}_{hash}")
}

/// A tool's name of letters, digits, `_` and `-`, with up to 64 of them.
pub(super) fn tool_name(name: &str, owner: &Owner, report: &mut ExportReport) -> OwnedJson {
    const LONGEST: usize = 64;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_plain) {
        return OwnedJson::of_text(name, owner);
    }
    report.normalise("tool_name");
    if name.is_empty() {
        return OwnedJson::framing("unnamed", "tool_name");
    }
    let name: String =
        name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST).collect();
    OwnedJson::framing(&name, "tool_name")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: IdRules = IdRules { longest: 16, plain: true, unique: true, optional: false };

    #[test]
    fn ids_that_fit_stay_and_others_are_spelled_anew() {
        let (mut ids, mut report) = (Ids::default(), ExportReport::default());
        let mut give = |id| ids.give(id, Some(7.into()), 1, RULES, &mut report).text;
        assert_eq!(give(Some("call_1")), "call_1");
        assert_eq!(give(Some("call_1")), "call_1_2");
        assert_eq!(give(Some("")), "call_7_1");
        assert_eq!(give(None), "call_7_1_2");
        let long = give(Some("0123456789abcdefX"));
        assert_eq!((long.len(), long.starts_with("012_")), (16, true));
        assert_ne!(give(Some("0123456789abcdefY")), long);
        assert!(give(Some("a.b")).starts_with("a_b_"));
        assert_eq!(report.normalised["id_repeated"], 1);
        assert_eq!(report.normalised["id_made_up"], 2);
        assert_eq!(report.normalised["id_respelled"], 3);
    }

    #[test]
    fn ids_may_repeat_where_only_those_of_a_message_must_differ() {
        let rules = IdRules { unique: false, ..RULES };
        let (mut ids, mut report) = (Ids::default(), ExportReport::default());
        for _ in 0..2 {
            ids.next_message(rules);
            assert_eq!(ids.give(Some("a"), None, 0, rules, &mut report).text, "a");
        }
        assert_eq!(ids.give(Some("a"), None, 0, rules, &mut report).text, "a_2");
    }
}
