//! What a provider keeps for its clients: items of a conversation, and earlier responses.
//!
//! Clients make conversations, add items to them, and ask for what is kept, in calls that no model
//! answers. What these hold stands before the next request that goes on from it.

use std::{collections::HashMap, sync::Arc};

use super::{
    Api, api,
    body::Payload,
    exchange::{CONVERSATION, PREVIOUS},
    interaction::Interaction,
};
use crate::json::Value;

/// What a provider held before a request, as calls of the source say that no model answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// The items, as a list of JSON.
    pub(crate) items: Arc<str>,
    /// The response that they follow.
    pub(crate) after: Option<Arc<str>>,
    /// Whether nothing comes before them, where they follow no response.
    pub(crate) is_start: bool,
}

/// A call that makes a conversation, adds to it, or asks for what a provider keeps.
pub(super) struct KeptCall {
    /// The conversation, or the response.
    id: Arc<str>,
    items: Vec<Arc<Value>>,
    kind: KeptKind,
}

enum KeptKind {
    /// The conversation was made, with these items.
    Made,
    /// The items were added to it.
    Added,
    /// A part of the list of all items: those of a conversation, or of the input of a response.
    Page { is_input: bool, is_first: bool, is_last: bool, is_reversed: bool },
    /// The response, with the one that it went on from, and whether it is one of a conversation.
    Response { previous: Option<Arc<str>>, is_in_conversation: bool },
}

impl KeptCall {
    /// The conversation, or the response.
    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The response, where it fetched one.
    pub(super) fn response_id(&self) -> Option<&str> {
        matches!(self.kind, KeptKind::Response { .. }).then_some(&*self.id)
    }

    /// `None` of any other call, and of one that failed.
    pub(super) fn of(interaction: &Interaction) -> Option<Self> {
        let mut words = api::path_of(&interaction.uri).rsplit('/');
        let path = [words.next()?, words.next()?, words.next().unwrap_or_default()];
        let is_posted = interaction.is_posted || !matches!(interaction.request, Payload::Absent);
        let is_known = matches!(
            (path, is_posted),
            (["conversations", ..], true)
                | (["items", _, "conversations"], _)
                | (["input_items", _, "responses"] | [_, "responses", _], false)
        );
        if !is_known || interaction.status.is_some_and(|status| !matches!(status, 200..300)) {
            return None;
        }
        let response = Api::Responses.response(&interaction.response)?;
        let of_path = path.get(1).copied().unwrap_or_default();
        let id = response.str_at("id").unwrap_or(of_path).into();
        let list = |of: &Value, key: &str| -> Vec<Arc<Value>> {
            let list = of.get(key).and_then(Value::as_array).unwrap_or_default();
            list.iter().cloned().map(Arc::new).collect()
        };
        let query = interaction.uri.split_once('?').map_or("", |(_, query)| query);
        let mut asked = query.split('&');
        let (id, items, kind) = match (response.str_at("object")?, path) {
            ("conversation", ["conversations", ..]) => {
                let request = interaction.request.value().unwrap_or_default();
                (id, list(&request, "items"), KeptKind::Made)
            }
            ("list", [_, _, "conversations"]) if is_posted => {
                (of_path.into(), list(&response, "data"), KeptKind::Added)
            }
            ("list", ["items" | "input_items", ..]) => {
                let kind = KeptKind::Page {
                    is_input: path.first() == Some(&"input_items"),
                    is_first: !asked.clone().any(|word| word.starts_with("after=")),
                    is_last: response.get("has_more") != Some(&Value::Bool(true)),
                    is_reversed: !asked.any(|word| word == "order=asc"),
                };
                (of_path.into(), list(&response, "data"), kind)
            }
            ("response", [_, "responses", _]) => {
                let previous = response.str_at(PREVIOUS).map(Arc::from);
                let conversation = response.get(CONVERSATION);
                let is_in_conversation = conversation.is_some_and(|of| *of != Value::Null);
                let kind = KeptKind::Response { previous, is_in_conversation };
                (id, list(&response, "output"), kind)
            }
            _ => return None,
        };
        Some(Self { id, items, kind })
    }
}

/// The id of the response that a call fetches, by its address; `None` of any other call, and of one that failed.
pub(super) fn fetched_id(interaction: &Interaction) -> Option<&str> {
    let mut words = api::path_of(&interaction.uri).rsplit('/');
    let id = words.next().filter(|_| words.next() == Some("responses"))?;
    let is_posted = interaction.is_posted || !matches!(interaction.request, Payload::Absent);
    let is_answered = interaction.status.is_none_or(|status| matches!(status, 200..300));
    (!is_posted && !interaction.is_recorded && is_answered).then_some(id)
}

/// What is kept, by the id of its conversation or response.
#[derive(Default)]
pub(super) struct KeptItems {
    states: HashMap<Arc<str>, Arc<State>>,
    /// Lists that may have further parts, each as it was asked for.
    pages: HashMap<(Arc<str>, bool), Vec<Arc<Value>>>,
}

/// The items that follow a response, or all that there are.
#[derive(Clone, Default)]
pub(super) struct State {
    items: Vec<Arc<Value>>,
    after: Option<Arc<str>>,
    is_start: bool,
    /// Whether they are the output of a response whose input may be all that was before them.
    is_output: bool,
}

impl KeptItems {
    /// Takes what a call holds. `answered` is, of a conversation, the last response that the source
    /// holds.
    pub(super) fn take(&mut self, call: KeptCall, answered: Option<Arc<str>>) {
        let KeptCall { id, items, kind } = call;
        let state = match kind {
            KeptKind::Made => State { items, is_start: true, ..State::default() },
            KeptKind::Added => {
                let known = self.states.remove(&id);
                let new = || State { after: answered, ..State::default() };
                let mut state = known.map_or_else(new, Arc::unwrap_or_clone);
                state.items.extend(items);
                state
            }
            KeptKind::Page { is_input, is_first, is_last, is_reversed } => {
                let list = self.pages.entry((Arc::clone(&id), is_input)).or_default();
                if is_first {
                    list.clear();
                }
                list.extend(items);
                if !is_last {
                    return;
                }
                let mut items = std::mem::take(list);
                if is_reversed {
                    items.reverse();
                }
                if is_input {
                    let output = self.states.get(&id).filter(|known| known.is_output);
                    let Some(known) = output else { return };
                    items.extend(known.items.iter().cloned());
                }
                State { items, is_start: true, ..State::default() }
            }
            KeptKind::Response { .. } if self.states.get(&id).is_some_and(|of| of.is_start) => {
                return;
            }
            KeptKind::Response { previous, is_in_conversation } => {
                let is_output = previous.is_none() && !is_in_conversation;
                State { items, after: previous, is_start: false, is_output }
            }
        };
        self.states.insert(id, Arc::new(state));
    }

    /// Forgets what was kept in a conversation, since an answer of it says all.
    pub(super) fn forget(&mut self, id: &str) {
        self.states.remove(id);
    }

    /// What stands before a request that goes on from this conversation, or this response, as the
    /// states that say it, the first one first. `is_held` says whether the source holds a response.
    pub(super) fn before(
        &self,
        id: &str,
        is_held: impl Fn(&str) -> bool,
    ) -> Option<Vec<&Arc<State>>> {
        let mut states = vec![self.states.get(id)?];
        while let Some(before) = states.last().and_then(|state| state.after.as_ref())
            && !is_held(before)
            && states.len() <= self.states.len()
            && let Some(state) = self.states.get(before)
        {
            states.push(state);
        }
        states.reverse();
        Some(states)
    }
}

/// The items of these states together.
pub(super) fn joined(states: &[Arc<State>]) -> (Vec<Arc<Value>>, Kept) {
    let items: Vec<_> = states.iter().flat_map(|state| &state.items).cloned().collect();
    let list: Value = items.iter().map(|item| Value::clone(item)).collect();
    let (after, is_start) =
        states.first().map(|first| (first.after.clone(), first.is_start)).unwrap_or_default();
    (items, Kept { items: list.to_string().into(), after, is_start })
}
