//! What is known of the parts of recorded requests. Most repeat those of the request before: each
//! message is parsed, hashed and counted once.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    CacheFrom, Request, RequestDiff, RequestTokens,
    cache_break::Features,
    compare::{Changes, changes, compare, is_marked},
    parts::role,
};
use crate::{
    Result,
    export::{ExportedRequest, LeafPrint, OwnedJson, PrefixRules, prefix_report},
    hud::Owner,
    json::{self, Path, PathElement, PlacedValue},
    tokens::TokenCounter,
    transcript::{Api, request_body::BodyPlaces},
};

/// How many requests are at hand: one is compared with that before it in its session, and sessions
/// may take turns.
const KEPT: usize = 8;

/// What is known of requests, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Outlines(Mutex<KnownParts>);

#[derive(Debug, Default)]
struct KnownParts {
    recent: VecDeque<(usize, Arc<Outlined>)>,
    messages: HashMap<[u8; 32], Arc<MessageFacts>>,
    heads: HashMap<[u8; 32], Arc<HeadFacts>>,
    #[cfg(test)]
    parsed: usize,
}

/// A request with what is known of its parts.
#[derive(Debug)]
pub(crate) struct Outlined {
    request: Request,
    /// `None` of a request whose conversation is no list, or that was worked out.
    outline: Option<Outline>,
}

#[derive(Debug)]
struct Outline {
    places: BodyPlaces,
    head: Arc<HeadFacts>,
    messages: Vec<Arc<MessageFacts>>,
}

/// What stands around the conversation: tools, system prompt, parameters.
#[derive(Debug)]
struct HeadFacts {
    /// The tokens of its parts.
    tokens: RequestTokens,
    /// In the order of caches: all of it, the tools, the system prompt.
    print: LeafPrint,
    tools: u64,
    system: u64,
    is_marked: bool,
}

#[derive(Debug)]
struct MessageFacts {
    print: LeafPrint,
    features: Features,
    is_marked: bool,
    /// Whether an operator says it: it counts as a system prompt.
    is_operators: bool,
}

impl MessageFacts {
    fn of(written: &str, counter: &dyn TokenCounter) -> Option<Self> {
        let value = json::read_mended(written.as_bytes()).ok()?.0;
        let nobody = Owner::Framing(Owner::UNRECORDED);
        let whole = 0..written.len();
        let place = PlacedValue { key: None, whole: whole.clone(), value: whole };
        Some(Self {
            print: OwnedJson::of_message(&value, &nobody).leaf_print(counter),
            features: Features::of_message(&value),
            is_marked: is_marked(&value),
            is_operators: matches!(role(written, &place).as_str(), "system" | "developer"),
        })
    }

    fn cost(&self, rules: PrefixRules) -> u64 {
        cost(&self.print, rules)
    }
}

fn cost(print: &LeafPrint, rules: PrefixRules) -> u64 {
    print.tokens.saturating_add(print.roles.saturating_mul(rules.per_message))
}

impl HeadFacts {
    fn of(head: &Request, counter: &dyn TokenCounter) -> Option<Self> {
        let exported = head.as_cached().ok()?;
        let tokens = |key: &str| exported.root().get(key).map_or(0, |part| part.tokens(counter));
        Some(Self {
            tokens: head.tokens(counter),
            print: exported.root().leaf_print(counter),
            tools: tokens("tools"),
            system: tokens(head.api().system_key()),
            is_marked: is_marked(head.value().ok()?),
        })
    }
}

impl Outlines {
    /// The request with this number, where it is at hand.
    pub(super) fn known(&self, number: usize) -> Option<Arc<Outlined>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known(number)
    }

    /// Takes a request in. Of `previous`, the one before it, it knows what both begin with.
    pub(super) fn take(
        &self,
        number: usize,
        previous: Option<usize>,
        request: Request,
        counter: &dyn TokenCounter,
    ) -> Arc<Outlined> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = previous.and_then(|previous| known.known(previous));
        let outline = known.outline(&request, before.as_deref(), counter);
        let outlined = Arc::new(Outlined { request, outline });
        known.recent.truncate(KEPT - 1);
        known.recent.push_front((number, Arc::clone(&outlined)));
        outlined
    }
}

impl KnownParts {
    fn known(&self, number: usize) -> Option<Arc<Outlined>> {
        let found = self.recent.iter().find(|(of, _)| *of == number);
        found.map(|(_, outlined)| Arc::clone(outlined))
    }

    fn outline(
        &mut self,
        request: &Request,
        before: Option<&Outlined>,
        counter: &dyn TokenCounter,
    ) -> Option<Outline> {
        if request.is_owned() {
            return None;
        }
        let (body, key) = (request.text(), request.api().conversation_key());
        let before = before.filter(|before| before.request.api() == request.api());
        let before =
            before.and_then(|before| Some((before.request.text(), before.outline.as_ref()?)));
        let places = before.map(|(body, outline)| (body, &outline.places));
        let (places, shared) = BodyPlaces::of(body, key, places)?;
        let head = match before.filter(|_| shared.is_head) {
            Some((_, outline)) => Arc::clone(&outline.head),
            None => self.head(&request.without_messages(&places.head(body)), counter)?,
        };
        let same = before.and_then(|(_, outline)| outline.messages.get(..shared.items));
        let mut messages = Vec::with_capacity(places.items.len());
        messages.extend_from_slice(same.unwrap_or_default());
        for place in places.items.iter().skip(messages.len()) {
            messages.push(self.message(&body.part(place.clone())?, counter)?);
        }
        Some(Outline { places, head, messages })
    }

    fn head(&mut self, head: &Request, counter: &dyn TokenCounter) -> Option<Arc<HeadFacts>> {
        // Each API reads its own members.
        let hash = *blake3::Hasher::new()
            .update(head.api().as_str().as_bytes())
            .update(head.host().unwrap_or_default().as_bytes())
            .update(head.body().as_bytes())
            .finalize()
            .as_bytes();
        if let Some(known) = self.heads.get(&hash) {
            return Some(Arc::clone(known));
        }
        let facts = Arc::new(HeadFacts::of(head, counter)?);
        self.heads.insert(hash, Arc::clone(&facts));
        Some(facts)
    }

    fn message(&mut self, written: &str, counter: &dyn TokenCounter) -> Option<Arc<MessageFacts>> {
        let hash = *blake3::hash(written.as_bytes()).as_bytes();
        if let Some(known) = self.messages.get(&hash) {
            return Some(Arc::clone(known));
        }
        #[cfg(test)]
        {
            self.parsed += 1;
        }
        let facts = Arc::new(MessageFacts::of(written, counter)?);
        self.messages.insert(hash, Arc::clone(&facts));
        Some(facts)
    }
}

/// A recorded request without its messages.
#[derive(Debug)]
pub(crate) struct RequestHead {
    facts: Arc<HeadFacts>,
    request: Request,
}

impl RequestHead {
    /// The request, whose conversation is empty.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }
}

impl Outlined {
    /// The request.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// The request without its messages. `None` of a request whose conversation is no list, or
    /// that was worked out.
    pub(crate) fn head(&self) -> Option<RequestHead> {
        let Outline { places, head, .. } = self.outline.as_ref()?;
        let request = self.request.without_messages(&places.head(self.request.text()));
        Some(RequestHead { facts: Arc::clone(head), request })
    }

    /// Whether this is the request without its messages, with the system prompt in the same frame.
    pub(crate) fn has_head(&self, head: &RequestHead) -> bool {
        let own = self.outline.as_ref().map(|outline| &outline.head);
        own.is_some_and(|own| Arc::ptr_eq(own, &head.facts))
            && self.request.system_of() == head.request.system_of()
    }

    /// The places of its messages in the body; none where [`Outlined::head`] is `None`.
    pub(crate) fn messages(&self) -> &[Range<usize>] {
        self.outline.as_ref().map_or(&[], |outline| &outline.places.items)
    }

    /// As [`Request::tokens`].
    pub(super) fn tokens(&self, counter: &dyn TokenCounter) -> RequestTokens {
        let Some(outline) = &self.outline else { return self.request.tokens(counter) };
        let mut tokens = outline.head.tokens;
        for message in &outline.messages {
            let sum = if message.is_operators { &mut tokens.system } else { &mut tokens.messages };
            *sum = sum.saturating_add(message.print.tokens);
        }
        tokens
    }

    /// As [`compare`](super::compare).
    ///
    /// # Errors
    /// Those of [`compare`](super::compare).
    pub(super) fn compare(
        &self,
        next: &Self,
        counter: &dyn TokenCounter,
        rules: PrefixRules,
    ) -> Result<RequestDiff> {
        let outlines = self.outline.as_ref().zip(next.outline.as_ref());
        match outlines.filter(|_| self.request.api() == next.request.api()) {
            Some((was, is)) => Pair { was: (self, was), is: (next, is) }.compare(counter, rules),
            None => compare(&self.request, &next.request, counter, rules),
        }
    }
}

/// Two requests to one API.
struct Pair<'p> {
    was: (&'p Outlined, &'p Outline),
    is: (&'p Outlined, &'p Outline),
}

/// Which messages of both are looked at.
struct Shown {
    /// One that both have, of those before the first that is not the same.
    kept: Option<usize>,
    /// The first that is not the same in both.
    first: usize,
}

impl Shown {
    /// The indexes of these messages in a request.
    fn of(&self, messages: &[Arc<MessageFacts>]) -> impl Iterator<Item = usize> + use<> {
        // Where one of them has values that the other lacks, what follows stands in their place.
        let rest = messages.iter().enumerate().skip(self.first + 1);
        let next = rest.into_iter().find(|(_, message)| message.print.leaves > 0);
        let end = next.map_or(messages.len(), |(index, _)| index + 1);
        self.kept.into_iter().chain(Range { start: self.first.min(end), end })
    }

    /// Where a message stands that is looked at.
    fn index(&self, shown: usize) -> usize {
        match self.kept {
            Some(kept) if shown == 0 => kept,
            Some(_) => self.first + shown - 1,
            None => self.first + shown,
        }
    }
}

impl Pair<'_> {
    fn compare(&self, counter: &dyn TokenCounter, rules: PrefixRules) -> Result<RequestDiff> {
        let ((before, was), (next, is)) = (self.was, self.is);
        let (api, key) = (next.request.api(), next.request.api().conversation_key());
        let is_same_head = Arc::ptr_eq(&was.head, &is.head);
        let both = was.messages.iter().zip(&is.messages);
        let first = both.take_while(|(was, is)| was.print == is.print).count();
        let has_values = |message: &&Arc<MessageFacts>| message.print.leaves > 0;
        // Where the heads differ in length, the first message stands beside what one of them lacks.
        let kept = is.messages.iter().take(first).position(|message| has_values(&message));
        let shown = Shown { kept: kept.filter(|_| !is_same_head), first };
        let of = |(outlined, outline)| shown_part(outlined, outline, &shown, is_same_head);
        let mut prefix = prefix_report(&of(self.was)?, &of(self.is)?, counter, rules);

        // What both begin with, and is not looked at.
        let mut same: u64 = is.messages.iter().take(first).map(|message| message.cost(rules)).sum();
        same -=
            shown.kept.and_then(|kept| is.messages.get(kept)).map_or(0, |kept| kept.cost(rules));
        let head = if is_same_head { cost(&is.head.print, rules) } else { 0 };
        let shown_last = shown.of(&is.messages).last().map_or(first, |last| (last + 1).max(first));
        let rest: u64 =
            is.messages.iter().skip(shown_last).map(|message| message.cost(rules)).sum();
        prefix.tokens =
            prefix.tokens.saturating_add(same).saturating_add(head).saturating_add(rest);
        let place = prefix.divergence.as_ref().map(|divergence| message_at(&divergence.path, key));
        let is_after = match place {
            None => true,
            Some(None) => false,
            Some(Some(at)) => shown.kept.is_none() || at > 0,
        };
        if is_after {
            prefix.unchanged = prefix.unchanged.saturating_add(same).saturating_add(head);
        }
        if let (Some(divergence), Some(Some(at))) = (&mut prefix.divergence, place) {
            divergence.path = moved(&divergence.path, shown.index(at));
        }

        let mut changes = if is_same_head {
            Changes::default()
        } else {
            let head = |(outlined, outline): (&Outlined, &Outline)| {
                outlined.request.without_messages(&outline.places.head(outlined.request.text()))
            };
            changes(&head(self.was), &head(self.is))?
        };
        let features = |outline: &Outline| {
            outline.messages.iter().fold(Features::default(), |all, of| all.and(of.features))
        };
        changes.breaks.extend(features(was).breaks(features(is), api));
        let served = match changes.breaks.iter().map(|of| of.from).min() {
            None => prefix.unchanged,
            Some(CacheFrom::Start) => 0,
            Some(CacheFrom::System) => is.head.tools,
            Some(CacheFrom::Messages) => is.head.tools.saturating_add(is.head.system),
        };
        // A transcript does not hold all marks of the requests.
        let is_whole = before.request.provenance().lacks().is_empty();
        let is_marked = was.head.is_marked || was.messages.iter().any(|message| message.is_marked);
        let is_unmarked = rules.needs_marks && is_whole && api == Api::Messages && !is_marked;
        let served = if is_unmarked { 0 } else { served };
        prefix.cached = rules.cached(prefix.unchanged.min(served));
        Ok(RequestDiff::new(prefix, changes))
    }
}

/// The request in the order of caches, with the messages that are looked at alone, and without its head
/// where that is the same in both.
fn shown_part(
    outlined: &Outlined,
    outline: &Outline,
    shown: &Shown,
    is_same_head: bool,
) -> Result<ExportedRequest> {
    let (request, body) = (&outlined.request, outlined.request.text());
    let key = request.api().conversation_key();
    let mut members = Vec::new();
    if !is_same_head {
        let head = request.without_messages(&outline.places.head(body)).as_cached();
        if let OwnedJson::Map(of_head) = head?.into_root() {
            members.extend(of_head.into_iter().filter(|(name, _)| name != key));
        }
    }
    let message = |index: usize| {
        let place = outline.places.items.get(index)?;
        let value = json::read_mended(body.part(place.clone())?.as_bytes()).ok()?.0;
        Some(request.message(index, &value))
    };
    let messages = shown.of(&outline.messages).filter_map(message).collect();
    members.push((key.to_owned(), OwnedJson::List(messages)));
    Ok(ExportedRequest::recorded(request.form(), OwnedJson::Map(members)))
}

/// The index in a path into a message.
fn message_at(path: &Path, key: &str) -> Option<usize> {
    match path.elements() {
        [PathElement::Key(of), PathElement::Index(index), ..] if of == key => Some(*index),
        _ => None,
    }
}

/// The path with another index.
fn moved(path: &Path, index: usize) -> Path {
    let elements = path.elements().iter().enumerate();
    let element = |(at, element): (usize, &PathElement)| match at {
        1 => PathElement::Index(index),
        _ => element.clone(),
    };
    elements.map(element).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{request::Provenance, tokens::Chars4};

    fn request(api: Api, body: &str) -> Request {
        Request::new(api, Provenance::Sent, body.into(), super::super::parts::Frames::default())
    }

    /// A body of Messages with this head, these messages and these members after them.
    fn body(head: &str, messages: &[String], tail: &str) -> String {
        format!("{{\"model\":\"m\"{head},\"messages\":[{}]{tail}}}", messages.join(","))
    }

    #[test]
    fn each_message_of_a_growing_conversation_is_parsed_once() {
        let outlines = Outlines::default();
        let message = |at: usize| format!("{{\"role\":\"user\",\"content\":\"word {at}\"}}");
        for number in 1..=60 {
            let messages: Vec<String> = (0..number).map(message).collect();
            let request = request(Api::Messages, &body("", &messages, ",\"tools\":[]"));
            let outlined = outlines.take(number, number.checked_sub(1), request.clone(), &Chars4);
            assert_eq!(outlined.tokens(&Chars4), request.tokens(&Chars4));
        }
        assert_eq!(outlines.0.lock().unwrap().parsed, 60);
    }

    fn message() -> impl Strategy<Value = String> {
        let marks = prop_oneof![Just(""), Just(",\"cache_control\":{\"type\":\"ephemeral\"}")];
        let text = ("[ab]{1,2}", marks)
            .prop_map(|(text, mark)| format!("[{{\"type\":\"text\",\"text\":\"{text}\"{mark}}}]"));
        let content = prop_oneof![
            "[ab]{0,2}".prop_map(|text| format!("\"{text}\"")),
            text,
            Just("[]".to_owned()),
            Just("[{\"type\":\"image\",\"source\":{\"data\":\"x\"}}]".to_owned()),
        ];
        let message = (prop_oneof![Just("user"), Just("system")], content)
            .prop_map(|(role, content)| format!("{{\"role\":\"{role}\",\"content\":{content}}}"));
        prop_oneof![8 => message, 1 => Just("{\"content\":[]}".to_owned()), 1 => Just("7".to_owned())]
    }

    fn conversation() -> impl Strategy<Value = String> {
        let heads = prop_oneof![
            4 => Just(""),
            1 => Just(",\"system\":\"s\""),
            1 => Just(",\"system\":\"sa\""),
            1 => Just(",\"system\":[]"),
            1 => Just(",\"tools\":[{\"name\":\"t\"}]"),
            1 => Just(",\"tools\":[{\"name\":\"t\"},{\"name\":\"u\"}],\"tool_choice\":\"any\""),
        ];
        let tails =
            prop_oneof![3 => Just(""), 1 => Just(",\"system\":\"b\""), 1 => Just(",\"n\":1")];
        (heads, proptest::collection::vec(message(), 0..5), tails)
            .prop_map(|(head, messages, tail)| body(head, &messages, tail))
    }

    proptest! {
        #[test]
        fn outlined_requests_compare_as_requests_do(
            bodies in proptest::collection::vec((conversation(), any::<bool>()), 2..6),
            grow in message(),
        ) {
            let outlines = Outlines::default();
            let mut before: Option<(Arc<Outlined>, Request)> = None;
            for (number, (next, grows)) in (1..).zip(bodies) {
                // Some go on from the one before.
                let next = match &before {
                    Some((_, was)) if grows => {
                        let places = BodyPlaces::of(was.text(), "messages", None).unwrap().0;
                        let (text, at) = (was.body(), places.list.end - 1);
                        let comma = if places.items.is_empty() { "" } else { "," };
                        [&text[..at], comma, &grow, &text[at..]].concat()
                    }
                    _ => next,
                };
                let request = request(Api::Messages, &next);
                let outlined = outlines.take(number, number.checked_sub(1), request.clone(), &Chars4);
                prop_assert!(outlined.outline.is_some());
                prop_assert_eq!(outlined.tokens(&Chars4), request.tokens(&Chars4));
                if let Some((known, was)) = &before {
                    for rules in [PrefixRules::EXACT, PrefixRules { minimum: 0, ..PrefixRules::ANTHROPIC }] {
                        let found = known.compare(&outlined, &Chars4, rules).unwrap();
                        let expected = compare(was, &request, &Chars4, rules).unwrap();
                        prop_assert_eq!(found, expected, "{}\n{}", was.body(), request.body());
                    }
                }
                before = Some((outlined, request));
            }
        }
    }
}
