//! Brings every result to its call, and repairs what the history lacks.
//!
//! Which result answers which call, the history says ([`Pairs`]). A *run* is what the agent says in
//! a row. Its calls are answered by results that come before the agent speaks again; they move up to
//! stand directly after the run, as the providers want them. What comes later comes too late: the
//! agent went on without it, and a request that was sent then stays as it was.

use std::collections::HashMap;

use super::{
    ExportOptions, Orphans, UnansweredCalls,
    ids::{Id, IdRules, Ids},
    owned::OwnedText,
    report::{ExportReport, Repair, RepairKind},
    turns::{Item, Kind, Turn, Voice},
};
use crate::{
    hud::Owner,
    id::FrameSeq,
    veil::{Pairs, PartPlace},
};

/// What a form asks of pairs.
pub(super) struct PairRules {
    pub(super) ids: IdRules,
    /// Whether an item of the agent is a call or a result that stays where it is: a provider's own
    /// tool was called and answered within the agent's message.
    pub(super) inline: fn(&Turn<'_>, &Item<'_>) -> bool,
}

/// Turns whose pairs are whole: after the agent's turns stand those of voice `Tool` that answer
/// their calls.
pub(super) struct PairedTurns<'a> {
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) calls: Vec<Call<'a>>,
}

/// What is known of a call; `number` of an item is its index.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) id: Id,
    pub(super) name: &'a str,
    pub(super) owner: Owner,
    /// The member of the source's message in which the call stood, where that is an old one.
    pub(super) field: Option<&'a str>,
    /// Whether its arguments are free text and no JSON.
    pub(super) custom: bool,
    recorded: Option<&'a str>,
    frame: Option<FrameSeq>,
    /// Whether the call and its result stay in the agent's message.
    pub(super) inline: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Answered,
    Dropped,
}

impl<'a> PairedTurns<'a> {
    pub(super) fn call(&self, number: usize) -> Option<&Call<'a>> {
        self.calls.get(number)
    }
}

pub(super) fn pair<'a>(
    turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    rules: &PairRules,
    options: &'a ExportOptions,
    report: &mut ExportReport,
) -> PairedTurns<'a> {
    let mut pairing = Pairing {
        pairs,
        rules,
        options,
        report,
        ids: Ids::default(),
        turns: Vec::with_capacity(turns.len()),
        calls: Vec::new(),
        numbers: HashMap::new(),
        run: Run::default(),
    };
    for turn in turns {
        pairing.take(turn);
    }
    // A provider's own call after which nothing comes at all stays open: the provider answers it.
    let Run { followed, answered, .. } = pairing.run;
    let calls = &pairing.calls;
    let is_inline = |number: usize| calls.get(number).is_some_and(|call| call.inline);
    let gets_placeholder = !options.keep_open
        && matches!(options.unanswered, UnansweredCalls::Placeholder(_))
        && pairing.run.open.iter().any(|number| !is_inline(*number));
    let is_closed = |number: &usize| {
        followed
            || if is_inline(*number) { answered || gets_placeholder } else { !options.keep_open }
    };
    pairing.run.open.retain(is_closed);
    pairing.close();
    let Pairing { mut turns, calls, .. } = pairing;
    let is_dropped = |item: &Item<'_>| match item.kind {
        Kind::Call { number, .. } => {
            calls.get(number).is_some_and(|call| call.state == State::Dropped)
        }
        _ => false,
    };
    for turn in &mut turns {
        turn.items.retain(|item| !is_dropped(item));
    }
    turns.retain(|turn| !turn.items.is_empty());
    PairedTurns { turns, calls }
}

/// What the agent says in a row.
#[derive(Debug, Default)]
struct Run {
    /// The calls that wait for their results.
    open: Vec<usize>,
    /// Where the next result goes among the turns.
    end: usize,
    /// Whether anyone else spoke since; a result alone is not speaking.
    followed: bool,
    /// Whether a result came since.
    answered: bool,
}

struct Pairing<'a, 'r> {
    pairs: &'r Pairs,
    rules: &'r PairRules,
    options: &'a ExportOptions,
    report: &'r mut ExportReport,
    ids: Ids,
    turns: Vec<Turn<'a>>,
    calls: Vec<Call<'a>>,
    /// The numbers of the calls, by their places in the history.
    numbers: HashMap<PartPlace, usize>,
    run: Run,
}

impl<'a> Pairing<'a, '_> {
    /// Takes a turn apart: results are turns of their own, but for those that stay inline.
    fn take(&mut self, mut turn: Turn<'a>) {
        let alone = turn.items.len() == 1;
        let voice = turn.voice;
        let mut rest = Vec::new();
        let mut first = true;
        for (index, item) in std::mem::take(&mut turn.items).into_iter().enumerate() {
            let stays = voice == Voice::Agent && (self.rules.inline)(&turn, &item);
            let is_result = matches!(item.kind, Kind::Result { .. });
            if is_result && !stays {
                self.say(&turn, voice, std::mem::take(&mut rest), &mut first);
                // What a message says of itself is said of its only part.
                let imported = turn.imported.filter(|_| alone);
                let own = Turn { imported, ..turn.with(Voice::Tool, Vec::new()) };
                self.result(&own, item);
                continue;
            }
            if voice == Voice::Agent && rest.is_empty() {
                self.begin();
            }
            match item.kind {
                Kind::Call { .. } if voice == Voice::Agent => {
                    rest.push(self.call(&turn, item, index, stays));
                }
                Kind::Call { name, .. } => {
                    self.report.normalise("call_as_text");
                    rest.push(noted(item, &format!("[call of {name}]\n"), "foreign_call"));
                }
                Kind::Result { .. } => rest.extend(self.inline_result(&turn, item)),
                _ => rest.push(item),
            }
        }
        self.say(&turn, voice, rest, &mut first);
    }

    /// The agent speaks: what it called before, and got no answer to, stays without.
    fn begin(&mut self) {
        if self.run.followed || self.run.answered {
            self.close();
            self.ids.next_message(self.rules.ids);
        }
    }

    fn say(&mut self, turn: &Turn<'a>, voice: Voice, items: Vec<Item<'a>>, first: &mut bool) {
        if items.is_empty() {
            return;
        }
        let imported = turn.imported.filter(|_| std::mem::take(first));
        self.turns.push(Turn { imported, ..turn.with(voice, items) });
        if voice == Voice::Agent {
            self.run.end = self.turns.len();
        } else {
            self.run.followed = true;
        }
    }

    fn call(&mut self, turn: &Turn<'a>, item: Item<'a>, index: usize, inline: bool) -> Item<'a> {
        let Kind::Call { id, name, .. } = item.kind else { return item };
        let number = self.calls.len();
        let given = self.ids.give(id, turn.frame, index, self.rules.ids, self.report);
        self.calls.push(Call {
            id: given,
            name,
            owner: item.owner.clone(),
            field: item.field(),
            custom: turn.item_type() == Some("custom_tool_call")
                || item.block_type() == Some("custom"),
            recorded: id,
            frame: turn.frame,
            inline,
            state: State::Open,
        });
        self.run.open.push(number);
        self.numbers.extend(item.place.map(|place| (place, number)));
        Item { kind: Kind::Call { id, name, number }, ..item }
    }

    /// Takes the call that a result answers, where it still waits in the agent's last run.
    fn answer(&mut self, item: &Item<'a>, inline: bool) -> Option<usize> {
        let pair = self.pairs.of_result(item.place?)?;
        let number = *self.numbers.get(&pair.call)?;
        let call = self.calls.get_mut(number)?;
        let waiting = self.run.open.iter().position(|open| *open == number)?;
        if call.inline != inline || call.state != State::Open {
            return None;
        }
        call.state = State::Answered;
        self.run.open.remove(waiting);
        Some(number)
    }

    fn result(&mut self, turn: &Turn<'a>, item: Item<'a>) {
        let Kind::Result { id, .. } = item.kind else { return };
        let Some(number) = self.answer(&item, false) else {
            return self.orphan(turn, item);
        };
        let item = Item { kind: Kind::Result { id, number }, ..item };
        let end = self.run.end.min(self.turns.len());
        if end < self.turns.len() {
            self.report.normalise("result_moved");
        }
        self.turns.insert(end, turn.with(Voice::Tool, vec![item]));
        self.run.end = end + 1;
        self.run.answered = true;
    }

    /// A result within the agent's message, where its call is there too.
    fn inline_result(&mut self, turn: &Turn<'a>, item: Item<'a>) -> Option<Item<'a>> {
        let Kind::Result { id, .. } = item.kind else { return None };
        if let Some(number) = self.answer(&item, true) {
            return Some(Item { kind: Kind::Result { id, number }, ..item });
        }
        self.report_orphan(turn, &item, RepairKind::ResultDropped);
        None
    }

    fn report_orphan(&mut self, turn: &Turn<'a>, item: &Item<'a>, kind: RepairKind) {
        let Kind::Result { id, .. } = item.kind else { return };
        let tool = item.tool_name().map(str::to_owned);
        let call = id.map(str::to_owned);
        self.report.repaired.push(Repair { frame: turn.frame, call, tool, kind });
    }

    /// A result without its call.
    fn orphan(&mut self, turn: &Turn<'a>, item: Item<'a>) {
        let kind = match self.options.orphans {
            Orphans::Text => RepairKind::ResultAsText,
            Orphans::Drop => RepairKind::ResultDropped,
        };
        self.report_orphan(turn, &item, kind);
        if kind == RepairKind::ResultDropped {
            return;
        }
        let note = match item.tool_name() {
            Some(name) => format!("[result of an earlier call of {name}]\n"),
            None => "[result of an earlier call]\n".to_owned(),
        };
        let mut said = noted(item, &note, "orphan");
        let inside = std::mem::take(&mut said.inside);
        let items = std::iter::once(said).chain(inside).collect();
        self.turns.push(Turn { voice: Voice::User, imported: None, items, ..turn.clone() });
        self.run.followed = true;
    }

    /// Ends a run: its calls that were not answered get the placeholder, or go.
    fn close(&mut self) {
        let Run { open, mut end, .. } = std::mem::take(&mut self.run);
        for number in open {
            let Some(call) = self.calls.get_mut(number) else { continue };
            let placeholder = match &self.options.unanswered {
                UnansweredCalls::Placeholder(text) if !call.inline => Some(text),
                _ => None,
            };
            call.state = if placeholder.is_some() { State::Answered } else { State::Dropped };
            let kind = match placeholder {
                Some(_) => RepairKind::Placeholder,
                None => RepairKind::CallDropped,
            };
            let (frame, tool) = (call.frame, Some(call.name.to_owned()));
            let id = call.recorded.map(str::to_owned);
            self.report.repaired.push(Repair { frame, call: id, tool, kind });
            let Some(placeholder) = placeholder else { continue };
            let owner = Owner::Framing("placeholder");
            let mut text = OwnedText::default();
            text.push(placeholder, &owner);
            let kind = Kind::Result { id: None, number };
            let item = Item {
                kind,
                text,
                owner,
                facet: None,
                is_failed: false,
                inside: Vec::new(),
                place: None,
            };
            let turn = Turn {
                voice: Voice::Tool,
                frame,
                is_block: false,
                in_tail: false,
                imported: None,
                items: vec![item],
            };
            let at = end.min(self.turns.len());
            self.turns.insert(at, turn);
            end = at + 1;
        }
    }
}

/// An item as text, after a line of framing that says what it is.
fn noted<'a>(item: Item<'a>, note: &str, framing: &'static str) -> Item<'a> {
    let mut text = OwnedText::default();
    text.push(note, &Owner::Framing(framing));
    text.append(&item.text);
    Item { kind: Kind::Text, text, facet: None, ..item }
}
