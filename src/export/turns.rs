//! From the chunks of a context to turns of items: what was said, called, answered and shown.

use std::{collections::HashMap, sync::Arc};

use super::owned::{OwnedJson, OwnedText};
use crate::{
    hud::{Owner, RenderedContext, Run},
    id::{FacetId, FrameSeq, Role},
    json::Value,
    snapshot::{PartRef, SubstitutionKind},
    veil::{ContentForm, Facet, Frame, History, Imported, PartPlace, PartSource},
};

/// Who speaks a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    System,
    User,
    Agent,
    /// One result, and nothing else. Only `pairing` makes these.
    Tool,
}

/// What one frame says, or a part of it.
#[derive(Clone, Debug)]
pub(super) struct Turn<'a> {
    pub(super) voice: Voice,
    /// The frame; of a block, the last one that it stands for.
    pub(super) frame: Option<FrameSeq>,
    /// Whether a block stands there for its frames.
    pub(super) is_block: bool,
    /// Whether it is what the model sees besides frames.
    pub(super) in_tail: bool,
    /// What the source says of the message besides its content.
    pub(super) imported: Option<&'a Imported>,
    pub(super) items: Vec<Item<'a>>,
}

/// A part of a turn: what one facet says, or a framing text.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) text: OwnedText,
    /// Who owns what the item holds besides its text.
    pub(super) owner: Owner,
    pub(super) facet: Option<&'a Facet>,
    /// Whether the source says that it failed.
    pub(super) is_failed: bool,
    /// The parts of a result.
    pub(super) inside: Vec<Item<'a>>,
    /// Where a call or a result stands in the history.
    pub(super) place: Option<PartPlace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Text,
    /// A call with its number, once it is paired.
    Call {
        id: Option<&'a str>,
        name: &'a str,
        number: usize,
    },
    /// A result with the number of its call, once it is paired.
    Result {
        id: Option<&'a str>,
        number: usize,
    },
    Reasoning,
    Image,
    /// A summary that a provider made; the text is what the model reads.
    Compaction,
    Opaque,
}

impl<'a> Item<'a> {
    /// What the source says besides the text.
    pub(super) fn source(&self) -> Option<&'a PartSource> {
        self.facet?.source()
    }

    /// The provider's block, without the text.
    pub(super) fn block(&self) -> Option<Value> {
        self.source()?.to_block()
    }

    /// The type of the provider's block.
    pub(super) fn block_type(&self) -> Option<&'a str> {
        self.source()?.block.as_deref()
    }

    /// The member of the message that held it, where that is not the usual one.
    pub(super) fn field(&self) -> Option<&'a str> {
        self.source()?.field.as_deref()
    }

    /// How the content was written.
    pub(super) fn form(&self) -> Option<ContentForm> {
        self.source()?.form
    }

    /// A member of the block that has no typed place.
    pub(super) fn native(&self, key: &str) -> Option<&'a Value> {
        self.source()?.native(key)
    }

    pub(super) fn text(&self) -> OwnedJson {
        OwnedJson::Text(self.text.clone())
    }

    /// What its provider alone can read, where there is any of it: nothing is worse than none.
    pub(super) fn encrypted(&self) -> Option<&'a str> {
        self.source()?.encrypted.as_deref().filter(|content| !content.is_empty())
    }

    /// Whether it is reasoning, or a summary, that its provider alone can read.
    pub(super) fn is_hidden_reasoning(&self) -> bool {
        self.source().is_some_and(|source| match source.block.as_deref() {
            Some("compaction") => source.encrypted.as_deref().is_some_and(str::is_empty),
            Some(kind) => kind == "redacted_thinking",
            None => source.encrypted.is_some(),
        })
    }

    pub(super) fn tool_name(&self) -> Option<&'a str> {
        match self.kind {
            Kind::Call { name, .. } => Some(name),
            _ => self.facet?.tool_name(),
        }
    }
}

pub(super) fn is_empty_text(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty)
}

/// Whether a member is left out of every export: a provider refuses an empty `encrypted_content`.
pub(super) fn is_void(key: &str, value: &Value) -> bool {
    key == "encrypted_content" && is_empty_text(value)
}

impl<'a> Turn<'a> {
    /// The type of the item that the source has.
    pub(super) fn item_type(&self) -> Option<&'a str> {
        self.imported?.kind.as_deref()
    }

    /// Whether the source says that it is the developer who speaks.
    pub(super) fn is_developers(&self) -> bool {
        self.imported.and_then(|imported| imported.role.as_deref()) == Some("developer")
    }

    /// The turn with other items.
    pub(super) fn with(&self, voice: Voice, items: Vec<Item<'a>>) -> Turn<'a> {
        let Turn { frame, is_block, in_tail, imported, .. } = *self;
        Turn { voice, frame, is_block, in_tail, imported, items }
    }
}

/// How the content of the source's message was written.
pub(super) fn form_of(turn: &Turn<'_>) -> Option<ContentForm> {
    turn.imported?.form
}

/// The frames of a context: what its messages have besides their texts.
pub(super) struct Sources(HashMap<FrameSeq, Arc<Frame>>);

impl Sources {
    pub(super) fn of(history: &History, context: &RenderedContext) -> Self {
        let frames = context.messages().iter().flat_map(|message| {
            let (from, to) = message.frames().unzip();
            let all = history.frames();
            let start = from.map_or(0, |from| all.first_from(from));
            let end = to.map_or(0, |to| all.first_after(to)).max(start);
            // Of a block nothing is asked but its last frame.
            let start = if message.is_block() { end.saturating_sub(1).max(start) } else { start };
            all.slice(start..end)
        });
        Self(frames.map(|frame| (frame.sequence, frame)).collect())
    }
}

/// The turns of a context. A message of several frames is several turns.
pub(super) fn collect<'a>(sources: &'a Sources, context: &'a RenderedContext) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    // The frame whose calls and results were counted last, and how many there were.
    let mut halves = (None, 0);
    for message in context.messages() {
        let voice = match message.role() {
            Role::System => Voice::System,
            Role::User => Voice::User,
            Role::Assistant => Voice::Agent,
        };
        let mut open: Option<Open<'a>> = None;
        for run in context.runs(message) {
            let place = match &run.owner {
                Owner::Chunk { frame, .. } => Place::Frame(*frame),
                Owner::Tail { .. } => Place::Tail,
                // A block is a message of its own, and so is a frame that was shortened.
                Owner::Block { .. } => {
                    let last = message.frames().map_or(FrameSeq::new(0), |(_, last)| last);
                    match message.substitution_kind() {
                        Some(SubstitutionKind::Shortened) => Place::Frame(last),
                        _ => Place::Block(last),
                    }
                }
                // Contexts hold nothing that was recorded whole.
                Owner::Framing(_) | Owner::Recorded { .. } => Place::Framing,
            };
            if open.as_ref().is_none_or(|open| !open.takes(place)) {
                turns.extend(open.take().map(|open| open.end(&mut halves)));
                open = Some(Open::new(voice, place, sources));
            }
            if let Some(open) = &mut open {
                open.add(run);
            }
        }
        turns.extend(open.map(|open| open.end(&mut halves)));
    }
    turns
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Frame(FrameSeq),
    Tail,
    /// With the last frame that the block stands for.
    Block(FrameSeq),
    Framing,
}

/// A turn in the making.
struct Open<'a> {
    turn: Turn<'a>,
    place: Place,
    facets: HashMap<&'a str, Given<'a>>,
    /// The items of the turn that chunks went to, by the chunk's index in its snapshot: the steps
    /// from the turn's items down.
    chunks: HashMap<usize, Vec<usize>>,
    /// Where the last chunk went.
    last: Vec<usize>,
}

impl<'a> Open<'a> {
    fn new(voice: Voice, place: Place, sources: &'a Sources) -> Self {
        let (frame, source) = match place {
            Place::Frame(frame) => (Some(frame), sources.0.get(&frame)),
            Place::Block(last) => (Some(last), None),
            Place::Tail | Place::Framing => (None, None),
        };
        let mut facets = HashMap::new();
        for facet in source.iter().flat_map(|frame| frame.added()) {
            gather(facet, false, &mut facets);
        }
        let imported = source.and_then(|frame| frame.imported.as_deref());
        let (is_block, in_tail) = (matches!(place, Place::Block(_)), place == Place::Tail);
        let turn = Turn { voice, frame, is_block, in_tail, imported, items: Vec::new() };
        Self { turn, place, facets, chunks: HashMap::new(), last: Vec::new() }
    }

    /// The turn, with the places of its calls and results in the history.
    fn end(self, halves: &mut (Option<FrameSeq>, u32)) -> Turn<'a> {
        let mut turn = self.turn;
        let Place::Frame(frame) = self.place else { return turn };
        if halves.0 != Some(frame) {
            *halves = (Some(frame), 0);
        }
        for item in &mut turn.items {
            if matches!(item.kind, Kind::Call { .. } | Kind::Result { .. }) {
                item.place = Some(PartPlace { frame, number: halves.1 });
                halves.1 += 1;
            }
        }
        turn
    }

    fn takes(&self, place: Place) -> bool {
        self.place == place
    }

    fn add(&mut self, run: Run<'a>) {
        let Some(chunk) = run.chunk else {
            let text = owned(&run);
            let item = Item {
                kind: Kind::Text,
                text,
                owner: run.owner,
                facet: None,
                is_failed: false,
                inside: Vec::new(),
                place: None,
            };
            return self.turn.items.push(item);
        };
        let kind = match chunk.part() {
            PartRef::Text | PartRef::ToolDefinition => Kind::Text,
            PartRef::Call { id, name } => Kind::Call { id, name, number: usize::MAX },
            PartRef::Result { id } => Kind::Result { id, number: usize::MAX },
            PartRef::Reasoning => Kind::Reasoning,
            PartRef::Image => Kind::Image,
            PartRef::Compaction => Kind::Compaction,
            PartRef::Opaque | PartRef::Audio | PartRef::Document => Kind::Opaque,
        };
        let id = chunk.facet_ids().next();
        let given = id.and_then(|id| self.facets.get(id));
        let facet = given.map(|given| given.facet);
        let is_inside = given.is_some_and(|given| given.in_result);
        let is_failed = facet.is_some_and(|facet| facet.outcome().is_failure());
        // What the source had besides a text, a signature for example, is not that of a text which
        // was shortened.
        let is_shortened = matches!(run.owner, Owner::Block { .. })
            && matches!(kind, Kind::Text | Kind::Reasoning);
        let facet = facet.filter(|_| !is_shortened);
        // A facet has one part; where its text is long it is several chunks in a row.
        let last = self.last.clone();
        if let Some(item) = self.at(&last)
            && id.is_some()
            && first_facet(&item.owner) == id
        {
            item.text.push(run.text, &run.owner);
            self.chunks.insert(chunk.index(), last);
            return;
        }
        // The parts of a result stand inside of it.
        let parent = chunk.structure().and_then(|structure| structure.parent);
        let parent = parent.and_then(|parent| self.chunks.get(&parent)).cloned();
        let parent = parent.filter(|steps| {
            let root = steps.first().and_then(|root| self.turn.items.get(*root));
            root.is_some_and(|root| matches!(root.kind, Kind::Result { .. }))
        });
        let is_part = parent.is_some();
        // What stands inside of a result neither calls nor answers, also where a result without a
        // text has no place of its own.
        let is_half = matches!(kind, Kind::Call { .. } | Kind::Result { .. });
        let kind = if is_half && (is_part || is_inside) { Kind::Text } else { kind };
        let facet = facet.filter(|_| is_part || !(is_inside && is_half));
        let (inside, place) = Default::default();
        let (text, owner) = (owned(&run), run.owner);
        let item = Item { kind, text, owner, facet, is_failed, inside, place };
        let mut steps = parent.unwrap_or_default();
        let list = match self.at(&steps) {
            Some(result) if is_part => &mut result.inside,
            _ => &mut self.turn.items,
        };
        steps.push(list.len());
        list.push(item);
        self.chunks.insert(chunk.index(), steps.clone());
        self.last = steps;
    }

    fn at(&mut self, steps: &[usize]) -> Option<&mut Item<'a>> {
        let (first, rest) = steps.split_first()?;
        let first = self.turn.items.get_mut(*first)?;
        rest.iter().try_fold(first, |item, step| item.inside.get_mut(*step))
    }
}

fn owned(run: &Run<'_>) -> OwnedText {
    let mut text = OwnedText::default();
    text.push(run.text, &run.owner);
    text
}

fn first_facet(owner: &Owner) -> Option<&str> {
    match owner {
        Owner::Chunk { facet_ids, .. }
        | Owner::Tail { facet_ids, .. }
        | Owner::Block { facet_ids, .. } => facet_ids.first().map(FacetId::as_str),
        Owner::Recorded { facet, .. } => Some(facet.as_str()),
        Owner::Framing(_) => None,
    }
}

/// A facet that a frame adds.
struct Given<'a> {
    facet: &'a Facet,
    /// Whether it stands inside of a result.
    in_result: bool,
}

fn gather<'a>(facet: &'a Facet, in_result: bool, facets: &mut HashMap<&'a str, Given<'a>>) {
    facets.insert(facet.id.as_str(), Given { facet, in_result });
    let in_result = in_result || facet.is_result();
    facet.children.iter().for_each(|child| gather(child, in_result, facets));
}
