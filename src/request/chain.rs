//! Requests that name an earlier response, or a conversation that the provider keeps. The provider has
//! what came before them, and so has the recording, where it holds that response and the request for it.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use crate::{
    id::FrameSeq,
    json::{self, PlacedValue, Value},
    transcript::{Api, Asked, CONVERSATION, Exchange, Kept, PREVIOUS, Provenance},
};

/// What the requests of a recording go on from, by their indexes.
#[derive(Debug, Default)]
pub(super) struct Chains {
    links: HashMap<usize, Link>,
    /// What was answered where another request goes on from it.
    replies: HashMap<usize, Reply>,
}

#[derive(Debug)]
struct Link {
    /// The response, or the conversation, that the request goes on from.
    id: Arc<str>,
    to: To,
    /// What its provider kept behind that.
    kept: Option<Arc<Kept>>,
    /// How many messages come before the request's own.
    messages: usize,
    /// The response from which on something is missing.
    missing: Option<Arc<str>>,
    /// What is wrong with a link, with the response that it names.
    wrong: Option<Arc<str>>,
    /// Where the request comes from as it was sent.
    sent: Provenance,
}

#[derive(Clone, Copy, Debug)]
enum To {
    /// The exchange with that response.
    Exchange(usize),
    /// The recording has no such response.
    Nothing,
    /// Nothing comes before what was kept.
    Start,
    /// It is the response to a request that came later, or to this one.
    Later(usize),
}

#[derive(Debug)]
struct Reply {
    items: Vec<String>,
    is_whole: bool,
}

impl Chains {
    /// The chains of a recording. Parses the answers of the Responses API where a request names one.
    pub(super) fn of(recorded: &[Exchange]) -> Self {
        let named = named(recorded);
        let mut chains = Self::default();
        if named.is_empty() {
            return chains;
        }
        let wanted: HashSet<&str> = named.iter().map(|named| &*named.id).collect();
        let mut holders: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, exchange) in recorded.iter().enumerate() {
            let Some(reply) = exchange.reply().filter(|reply| wanted.contains(&*reply.id)) else {
                continue;
            };
            let items = reply.items.iter().map(Value::to_string).collect();
            chains.replies.insert(index, Reply { items, is_whole: reply.is_whole });
            holders.entry(reply.id).or_default().push(index);
        }
        let mut counted: HashMap<*const Kept, usize> = HashMap::new();
        for Named { index, id, kept } in named {
            let is_start = kept.as_ref().is_some_and(|kept| kept.is_start && kept.after.is_none());
            let all = holders.get(&*id).map(Vec::as_slice).unwrap_or_default();
            // An id that comes again is that of the response before the request.
            let earlier = all.iter().rev().find(|holder| **holder < index);
            let to = match (earlier, all.first()) {
                _ if is_start => To::Start,
                (Some(holder), _) => To::Exchange(*holder),
                (None, Some(later)) => To::Later(*later),
                (None, None) => To::Nothing,
            };
            let (messages, missing) = match to {
                To::Exchange(holder) => chains.up_to(recorded, holder, &id),
                To::Nothing | To::Later(_) => (0, Some(Arc::clone(&id))),
                To::Start => (0, None),
            };
            // Requests that go on from the same share it.
            let items = kept.as_ref().map_or(0, |kept| {
                let count = || items_of(&kept.items).count();
                *counted.entry(Arc::as_ptr(kept)).or_insert_with(count)
            });
            let messages = messages + items;
            let wrong = match to {
                To::Exchange(_) | To::Nothing | To::Start => None,
                To::Later(later) if later == index => {
                    Some(format!("it names {:?}, the response to itself", &*id).into())
                }
                To::Later(later) => {
                    let number = later + 1;
                    Some(format!("it names {:?}, the response to request {number}", &*id).into())
                }
            };
            let sent = recorded.get(index).map(|of| of.provenance.clone()).unwrap_or_default();
            chains.links.insert(index, Link { id, to, kept, messages, missing, wrong, sent });
        }
        chains
    }

    /// How many messages there are up to the end of an answer, and what is missing of them.
    fn up_to(
        &self,
        recorded: &[Exchange],
        holder: usize,
        id: &Arc<str>,
    ) -> (usize, Option<Arc<str>>) {
        let own = recorded.get(holder).map_or(0, |of| Conversation::of(&of.request).items.len());
        let reply = self.replies.get(&holder);
        let before = self.links.get(&holder);
        let messages = before.map_or(0, |link| link.messages)
            + own
            + reply.map_or(0, |reply| reply.items.len());
        let cut = reply.filter(|reply| !reply.is_whole).map(|_| Arc::clone(id));
        (messages, before.and_then(|link| link.missing.clone()).or(cut))
    }

    /// Where a request comes from that is joined with what it goes on from; `None` of one that names
    /// no response.
    pub(super) fn provenance(&self, index: usize) -> Option<Provenance> {
        let Link { messages, missing, wrong, .. } = self.links.get(&index)?;
        let (messages, missing, wrong) = (*messages, missing.clone(), wrong.clone());
        Some(Provenance::Resolved { messages, missing, wrong })
    }

    /// Where that request comes from as it was sent.
    pub(super) fn sent_as(&self, index: usize) -> Option<&Provenance> {
        self.links.get(&index).map(|link| &link.sent)
    }

    /// The body of a request with all that it goes on from, as far as it is recorded; `None` of one
    /// that names no response. `body` gives those of the others. Linear in the joined text.
    pub(super) fn joined<'b>(
        &self,
        index: usize,
        body: impl Fn(usize) -> Option<&'b str>,
    ) -> Option<String> {
        self.links.get(&index)?;
        let own = body(index)?;
        let mut runs: Vec<Vec<&str>> = Vec::new();
        let own = Conversation::of(own);
        let (mut at, mut missing) = (index, None);
        // Each link leads to an earlier exchange, so this ends.
        while let Some(link) = self.links.get(&at) {
            runs.push(link.kept.iter().flat_map(|kept| items_of(&kept.items)).collect());
            match link.to {
                To::Start => break,
                To::Exchange(holder) => {
                    let reply = self.replies.get(&holder).map(|reply| &reply.items);
                    runs.push(reply.into_iter().flatten().map(String::as_str).collect());
                    at = holder;
                    runs.push(
                        body(at).map(|body| Conversation::of(body).items).unwrap_or_default(),
                    );
                }
                // A response that came later is none that the provider went on from.
                To::Nothing | To::Later(_) => {
                    missing = Some(&*link.id);
                    break;
                }
            }
        }
        let before: Vec<&str> = runs.into_iter().rev().flatten().collect();
        Some(own.joined(&before, missing))
    }
}

/// An exchange that goes on from a response, or from a conversation.
struct Named {
    index: usize,
    /// The response: the request names it, or it was the last answer before it in the conversation that
    /// the request names. That conversation, where there is none.
    id: Arc<str>,
    /// What the provider kept behind it.
    kept: Option<Arc<Kept>>,
}

/// The exchanges that go on from something.
fn named(recorded: &[Exchange]) -> Vec<Named> {
    let is_kept = recorded.iter().any(|exchange| exchange.asked.conversation.is_some());
    let mut last: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    let mut named = Vec::new();
    for (index, exchange) in recorded.iter().enumerate() {
        let Asked { previous, conversation, .. } = &exchange.asked;
        let kept = exchange.kept.clone();
        let id = match &kept {
            Some(kept) => kept.after.as_ref(),
            None => previous.as_ref().or_else(|| last.get(conversation.as_ref()?)),
        };
        let id = id.or(previous.as_ref()).or(conversation.as_ref()).cloned();
        named.extend(id.map(|id| Named { index, id, kept }));
        let kept = is_kept.then(|| exchange.kept_in()).flatten();
        if let Some((kept, reply)) = kept.and_then(|kept| Some((kept, exchange.reply()?))) {
            last.insert(kept, reply.id.into());
        }
    }
    named
}

/// The items of a list of JSON.
fn items_of(list: &str) -> impl Iterator<Item = &str> {
    json::children(list, 0..list.len()).into_iter().filter_map(|item| list.get(item.value))
}

/// The frames of the messages that a request has itself: those that it goes on from come before.
pub(super) fn own_frames(exchange: &Exchange) -> Vec<Option<FrameSeq>> {
    let frames = &exchange.frames;
    let own = if exchange.asked.goes_on() {
        Conversation::of(&exchange.request).items.len()
    } else {
        frames.len()
    };
    frames.iter().skip(frames.len().saturating_sub(own)).copied().collect()
}

/// The body of a request of the Responses API, taken apart.
struct Conversation<'b> {
    body: &'b str,
    members: Vec<PlacedValue>,
    /// The items of the input; a text alone is one of them.
    items: Vec<&'b str>,
}

impl<'b> Conversation<'b> {
    fn of(body: &'b str) -> Self {
        let members = json::children(body, 0..body.len());
        let key = Api::Responses.conversation_key();
        let input = members.iter().find(|member| member.key.as_deref() == Some(key));
        let is_null = |range: &Range<usize>| body.get(range.clone()) == Some("null");
        let input = input.map(|input| input.value.clone()).filter(|range| !is_null(range));
        let is_there = input.is_some();
        let input = input.unwrap_or_default();
        let is_list = body.get(input.clone()).is_some_and(|text| text.starts_with('['));
        let items = if is_list {
            let items = json::children(body, input).into_iter();
            items.filter_map(|item| body.get(item.value)).collect()
        } else {
            body.get(input).filter(|_| is_there).into_iter().collect()
        };
        Self { body, members, items }
    }

    /// The body with messages before its own. Where one is `missing` it still names the response.
    fn joined(&self, before: &[&str], missing: Option<&str>) -> String {
        let mut joined = String::with_capacity(self.body.len() + 64);
        let input = Api::Responses.conversation_key();
        for member in &self.members {
            let key = member.key.as_deref();
            if matches!(key, Some(PREVIOUS | CONVERSATION)) && missing.is_none() {
                continue;
            }
            joined.push(if joined.is_empty() { '{' } else { ',' });
            let name = self.body.get(member.whole.start..member.value.start).unwrap_or_default();
            joined.push_str(name);
            match (key, missing) {
                (Some(PREVIOUS), Some(id)) => joined.push_str(&Value::from(id).to_string()),
                (Some(key), _) if key == input => {
                    self.push_items(before, &mut joined);
                }
                _ => joined.push_str(self.body.get(member.value.clone()).unwrap_or_default()),
            }
        }
        // A request may have nothing to add.
        if self.members.iter().all(|member| member.key.as_deref() != Some(input)) {
            joined.push(if joined.is_empty() { '{' } else { ',' });
            joined.extend(["\"", input, "\":"]);
            self.push_items(before, &mut joined);
        }
        joined.push('}');
        joined
    }

    fn push_items(&self, before: &[&str], joined: &mut String) {
        joined.push('[');
        for (at, item) in before.iter().chain(&self.items).enumerate() {
            if at > 0 {
                joined.push(',');
            }
            let is_text = item.starts_with('"');
            joined.push_str(if is_text { "{\"role\":\"user\",\"content\":" } else { "" });
            joined.push_str(item);
            joined.push_str(if is_text { "}" } else { "" });
        }
        joined.push(']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_adds_nothing_has_what_it_goes_on_from() {
        for (body, expected) in [
            (r#"{"model":"m","previous_response_id":"r"}"#, r#"{"model":"m","input":[1,2]}"#),
            (r#"{"previous_response_id":"r"}"#, r#"{"input":[1,2]}"#),
            (r#"{"previous_response_id":"r","input":null}"#, r#"{"input":[1,2]}"#),
            (r#"{"input":[3],"previous_response_id":"r"}"#, r#"{"input":[1,2,3]}"#),
        ] {
            assert_eq!(Conversation::of(body).joined(&["1", "2"], None), expected);
        }
    }
}
