//! The strings of an exchange, with where they stand: what a search looks through.

use super::{PartKind, Request, RequestPart};
use crate::{
    export::OwnedJson,
    hud::Owner,
    json::{self, Path, PathElement, Value},
    transcript::{Api, sse_events},
};

impl Request {
    /// A part with an owner for each string, and its path in the body: of a tool and of a parameter
    /// their text alone. `None` for [`PartKind::Form`], and for what is no JSON. Parses the part.
    pub fn owned_part(&self, part: &RequestPart) -> Option<(Path, OwnedJson)> {
        let (key, index) = match &part.kind {
            PartKind::Tool { index, .. } => ("tools", Some(*index)),
            PartKind::System { .. } => (self.api().system_key(), None),
            PartKind::Message { index, .. } => (self.api().conversation_key(), Some(*index)),
            PartKind::Parameter { name } => (name.as_str(), None),
            PartKind::Form => return None,
        };
        let written = self.text().part(part.range.clone())?;
        let is_member = matches!(part.kind, PartKind::Parameter { .. });
        let (open, close) = if is_member { ("{", "}") } else { ("", "") };
        let read = json::read_mended([open, &written, close].concat().as_bytes()).ok()?.0;
        let value = if is_member { read.get(key)? } else { &read };
        let owner = Owner::Recorded { facet: part.facet_id(), frame: part.frame() };
        let owned = match part.kind {
            PartKind::System { .. } | PartKind::Message { .. } => {
                OwnedJson::of_message(value, &owner)
            }
            _ => OwnedJson::of_text(
                &value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                &owner,
            ),
        };
        let key = [PathElement::Key(key.to_owned())].into_iter();
        Some((key.chain(index.map(PathElement::Index)).collect(), owned))
    }
}

impl Api {
    /// The body of a response with an owner for each string, the facet `answer`; of a stream what it
    /// would have been in one, and then the list of its events. What is no JSON is one string. Parses
    /// the body.
    pub fn owned_answer(self, response: &str) -> Vec<OwnedJson> {
        let owner = Owner::Recorded { facet: "answer".into(), frame: None };
        let whole = json::read_mended(response.as_bytes()).ok().map(|(value, _)| value);
        let events = if whole.is_none() { sse_events(response) } else { Vec::new() };
        let events = Some(events).filter(|events| !events.is_empty()).map(Value::from);
        let read: Vec<Value> =
            whole.or_else(|| self.joined(response)).into_iter().chain(events).collect();
        if read.is_empty() {
            return vec![OwnedJson::of_text(response, &owner)];
        }
        read.iter().map(|value| OwnedJson::of_message(value, &owner)).collect()
    }
}
